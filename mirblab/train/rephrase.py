"""rephrase: the data recipe: statements taken apart, said anew and made wrong, by a chat model, asked only once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

import pandas as pd

from mirblab.limits import Clock
from mirblab.train import answers
from mirblab.train.answers import Reply, Unusable
from mirblab.train.endpoint import Chat, ask
from mirblab.train.prompts import STEPS, Prompt, fingerprint, prompt
from mirblab.train.replies import Replies, key
from mirblab.train.texts import NEGATIVES, check, table

_READERS: dict[str, Callable[[Reply, str], Any]] = {
    "decompose": lambda reply, _: asdict(answers.decomposition(reply)),
    "rephrase": lambda reply, statement: {"rephrasing": answers.rephrasing(reply, statement)},
    "negatives": lambda reply, statement: dict(zip(NEGATIVES, answers.negatives(reply, statement), strict=True)),
}


@dataclass
class Count:
    """What became of one step: how many statements came to it, were asked now, and could be used; and why not."""

    statements: int = 0
    asked: int = 0
    usable: int = 0
    answers: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True)
class Rephrased:
    """The new texts, one row per statement in the order given, of `texts.COLUMNS`; "" and [] where there is none.

    `problem` says at which step the last attempt failed, and why: "decompose: no JSON". `counts` has a `Count` for
    each step; its `answers` are the reasons of all answers that were of no use, also of attempts that were repeated.
    """

    table: pd.DataFrame
    counts: Mapping[str, Count]

    def summary(self) -> list[str]:
        """Return a line for each step.

        >>> Rephrased(pd.DataFrame(), {"rephrase": Count(3, 4, 2, Counter({"empty": 2}))}).summary()
        ['rephrase: 2 of 3 statements usable, 4 requests now; answers of no use: empty 2']
        """
        lines = []
        for step, count in self.counts.items():
            reasons = ", ".join(f"{reason} {n:,}" for reason, n in count.answers.most_common())
            line = f"{step}: {count.usable:,} of {count.statements:,} statements usable, {count.asked:,} requests now"
            lines.append(line + (f"; answers of no use: {reasons}" if reasons else ""))
        return lines


def rephrase(
    views: pd.DataFrame,
    service: Chat,
    *,
    column: str = "informal",
    with_negatives: bool = False,
    clock: Clock | None = None,
) -> Rephrased:
    """Return what a chat model makes of the statements in *column*: parts, new text, and wrong versions when asked for.

    The recipe of Ye et al. 2026 (MELD), Appendix B: a statement is taken apart, and said anew with its parts in view;
    an answer of no use is asked for again. One that stays of no use leaves that statement out of the later steps.
    Every answer is kept under model, prompt, parameters, message and attempt, so a second call asks nothing, and one
    after Ctrl-C or a kill only what is missing. Raises MirblabError as `endpoint.ask` does.
    """
    check(views, column)
    steps = [prompt(name) for name in STEPS if with_negatives or name != "negatives"]
    records: list[dict[str, Any]] = [{"statement": text.strip()} for text in views[column]]
    rows, problems = [dict[str, Any]() for _ in records], [""] * len(records)
    counts = {}
    for step in steps:
        todo = [row for row, record in enumerate(records) if record["statement"] and _is_ready(step, rows[row])]
        found, reasons, counts[step.name] = _step(service, step, [records[row] for row in todo], clock)
        for row, value, reason in zip(todo, found, reasons, strict=True):
            rows[row] |= value
            problems[row] = problems[row] or (f"{step.name}: {reason}" if reason else "")
            records[row] |= value if step.name == "decompose" else {}
    about = {"model": service.model, "prompts": fingerprint(steps)}
    return Rephrased(table(views.id.tolist(), rows, problems, about), counts)


def _is_ready(step: Prompt, row: Mapping[str, Any]) -> bool:
    """Return whether a row may come to a step: only the first one needs no parts."""
    return step.name == "decompose" or "conclusions" in row


def _step(
    service: Chat, step: Prompt, records: Sequence[Mapping[str, Any]], clock: Clock | None
) -> tuple[list[dict[str, Any]], list[str], Count]:
    """Return what one step gives for each record ({} for nothing), why not, and the counts."""
    store, count = Replies(service.model, step), Count(statements=len(records))
    found, reasons = [dict[str, Any]() for _ in records], [""] * len(records)
    pending = list(range(len(records)))
    for attempt in range(step.attempts):
        messages = [step.message(records[row], attempt) for row in pending]
        count.asked += _fetch(service, step, store, messages, attempt, clock)
        for row, message in zip(pending, messages, strict=True):
            try:
                reply = store.get(key(message, attempt))
                found[row], reasons[row] = _READERS[step.name](reply, records[row]["statement"]), ""
            except Unusable as reason:
                reasons[row] = str(reason)
                count.answers[str(reason)] += 1
        pending = [row for row in pending if reasons[row]]
    count.usable = len(records) - len(pending)
    return found, reasons, count


def _fetch(
    service: Chat, step: Prompt, store: Replies, messages: Sequence[str], attempt: int, clock: Clock | None
) -> int:
    """Ask for the messages whose answers are not stored, each once, and return how many they were."""
    name = partial(key, attempt=attempt)
    missing = list(dict.fromkeys(message for message in messages if name(message) not in store))
    if missing:
        for place, reply in ask(service, step, missing, clock=clock):
            store.put(name(missing[place]), reply)
    return len(missing)
