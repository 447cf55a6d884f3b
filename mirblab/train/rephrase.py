"""rephrase: statements rephrased by a chat model."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from mirblab.analysis.lean_views import in_modules, read_views
from mirblab.core.errors import check_known
from mirblab.core.terminal import say
from mirblab.data.near_duplicates import fold_text
from mirblab.encoders.hosted.chat import (
    ChatModel,
    Reply,
    StepCount,
    UnusableReply,
    chat_model,
    prompts_fingerprint,
    read_prompt,
    run_prompt,
)
from mirblab.encoders.hosted.limits import Clock
from mirblab.formula.rewriting.statements import N_NEGATIVES
from mirblab.train import pairs
from mirblab.train.pairs import NEGATIVE_COLUMNS, check_statements, rephrasing_table

STEPS = ("decompose", "rephrase", "negatives")
_THOUGHT = re.compile(r"\s*<think>.*?</think>", re.DOTALL)
_FENCED = re.compile(r"```(?:json)?\s*\n(?P<inner>.*)\n\s*```", re.DOTALL)
_PREAMBLE = re.compile(
    r"(?:sure|certainly|of course|okay)\b\s*[,!.:]"
    r"|(?:here(?:'s| is| are)|(?:the )?(?:reworded|rephras\w+))\b[^.\n$]{0,60}:",
    re.IGNORECASE,
)


def run_rephrasing(
    source: str,
    *,
    rules: bool = False,
    model: str = "",
    url: str = "",
    negatives: bool = False,
    out: str | Path = "",
    seed: int = 0,
    limits: dict[str, Any] | None = None,
    **choice: Any,
) -> int:
    """Rephrase a table of views by a chat model or *rules*; print a summary; return the exit status (130: Ctrl-C)."""
    path = pairs.check_ending(out or pairs.default_path(source))
    rows = choose_statements(read_views(source), seed=seed, **choice)
    say(f"{source}: {len(rows):,} statements")
    if rules:
        table = pairs.rephrase_by_rules(rows, seed, with_negatives=negatives)
        lines = [f"rules: {(table.rephrasing != '').sum():,} of {len(table):,} statements reworded"]
    else:
        service = chat_model(model, url, **(limits or {}))
        try:
            result = rephrase(rows, service, with_negatives=negatives)
        except KeyboardInterrupt:
            say("stopped; every received answer is stored, and the same command continues from there", to=sys.stderr)
            return 130
        table, lines = result.table, result.summary()
    for line in lines:
        say(f"  {line}")
    if negatives:
        counts = (table[list(pairs.NEGATIVE_COLUMNS)] != "").sum(axis=1)
        say(f"  wrong versions: {counts.sum():,}, of {(counts > 0).sum():,} statements")
    say(f"in {pairs.save_rephrasings(table, path)}")
    return 0


def choose_statements(
    table: pd.DataFrame,
    *,
    split: str = "train",
    modules: str = "all",
    limit: int = 0,
    seed: int = 0,
) -> pd.DataFrame:
    """Return the rows of a table of views that are to be rephrased, in their order.

    *split* "" means all; *modules* "mathematics" is the MELD paper's filter; *limit*: the size of a sample drawn by
    *seed* (0: all). Raises MirblabError for an unknown split or choice of modules.
    """
    if split:
        check_known("split of the views called", split, set(table["split"]))
        table = table[table["split"] == split]
    check_known("choice of modules", modules, ("all", "mathematics"))
    table = in_modules(table) if modules == "mathematics" else table
    return table.sample(limit, random_state=seed).sort_index() if 0 < limit < len(table) else table


def rephrase(
    views: pd.DataFrame,
    service: ChatModel,
    *,
    column: str = "informal",
    with_negatives: bool = False,
    clock: Clock | None = None,
) -> Rephrased:
    """Return parts, rephrasings and, if wanted, wrong versions of the statements in *column* by a chat model.

    After Ye et al. 2026 (MELD), Appendix B: a statement is decomposed, and rephrased given its parts. The model is
    asked again after an unusable answer; after the last attempt the statement is left out of later steps. Each answer
    is stored under model, prompt, parameters, message and attempt. Raises MirblabError as `ask_model` does.
    """
    check_statements(views, column)
    steps = [read_prompt(name) for name in STEPS if with_negatives or name != "negatives"]
    records: list[dict[str, Any]] = [{"statement": text.strip()} for text in views[column]]
    rows, problems = [dict[str, Any]() for _ in records], [""] * len(records)
    counts = {}
    for step in steps:
        # Only the first step needs no parts.
        ready = [step.name == "decompose" or "conclusions" in row for row in rows]
        pending = [row for row, record in enumerate(records) if record["statement"] and ready[row]]
        answers, reasons, counts[step.name] = run_prompt(
            service, step, [records[row] for row in pending], _READERS[step.name], clock
        )
        for row, value, reason in zip(pending, answers, reasons, strict=True):
            rows[row] |= value or {}
            problems[row] = problems[row] or (f"{step.name}: {reason}" if reason else "")
            records[row] |= value or {} if step.name == "decompose" else {}
    about = {"model": service.model, "prompts": prompts_fingerprint(steps)}
    return Rephrased(rephrasing_table(views.id.tolist(), rows, problems, about), counts)


@dataclass(frozen=True)
class Rephrased:
    """The new texts, a row per statement in the given order, with `REPHRASING_COLUMNS`; a missing one is "" or [].

    The column problem has the step and the reason of the last failure: "decompose: no JSON". *counts* has a `StepCount`
    for each step; its *answers* include those of repeated attempts.
    """

    table: pd.DataFrame
    counts: Mapping[str, StepCount]

    def summary(self) -> list[str]:
        """Return a line for each step."""
        lines = []
        for step, count in self.counts.items():
            reasons = ", ".join(f"{reason} {n:,}" for reason, n in count.answers.most_common())
            line = f"{step}: {count.usable:,} of {count.statements:,} statements usable, {count.asked:,} requests now"
            lines.append(line + (f"; answers of no use: {reasons}" if reasons else ""))
        return lines


def read_decomposition(reply: Reply) -> dict[str, Any]:
    """Return hypotheses, conclusions and normalized_form of a reply: a JSON object, alone or in a code fence.

    Raises UnusableReply: "empty", "cut off", "no JSON", "other JSON" (lists of texts are wanted), "no conclusion".
    """
    answer = _reply_object(reply)
    form = answer.get("normalized_form", "")
    hypotheses, conclusions = (_answer_texts(answer.get(name)) for name in ("hypotheses", "conclusions"))
    if not isinstance(form, str):
        raise UnusableReply("other JSON")
    if not conclusions:
        raise UnusableReply("no conclusion")
    return {"hypotheses": hypotheses, "conclusions": conclusions, "normalized_form": form.strip()}


def read_rephrasing(reply: Reply, statement: str) -> str:
    """Return the new text of a *statement*.

    Raises UnusableReply: "empty", "cut off", "unchanged" (but for case and blanks), "not a statement alone" (a code
    fence, or an introduction such as "Here is ...").
    """
    text = _reply_text(reply)
    if text.startswith("```") or _PREAMBLE.match(text):
        raise UnusableReply("not a statement alone")
    if fold_text(text) == fold_text(statement):
        raise UnusableReply("unchanged")
    return text


def read_negatives(reply: Reply, statement: str) -> list[str]:
    """Return the three wrong versions of a *statement* that a reply has.

    Raises UnusableReply as `read_decomposition`, and: "not three", "repeats" (each other, or the statement).
    """
    texts = _answer_texts(_reply_object(reply).get("hard_negatives"))
    if len(texts) != N_NEGATIVES:
        raise UnusableReply("not three")
    if len({fold_text(text) for text in [*texts, statement]}) != N_NEGATIVES + 1:
        raise UnusableReply("repeats")
    return texts


def _reply_text(reply: Reply) -> str:
    """Return the reply without the reasoning that some models write first."""
    text = _THOUGHT.sub("", reply.text, count=1) if reply.text.lstrip().startswith("<think>") else reply.text
    if reply.finish == "length" or text.lstrip().startswith("<think>"):
        raise UnusableReply("cut off")
    if not text.strip():
        raise UnusableReply("empty")
    return text.strip()


def _reply_object(reply: Reply) -> dict[str, Any]:
    text = _reply_text(reply)
    fenced = _FENCED.fullmatch(text)
    try:
        answer = json.loads(fenced["inner"] if fenced else text)
    except (ValueError, RecursionError):
        raise UnusableReply("no JSON") from None
    if not isinstance(answer, dict):
        raise UnusableReply("other JSON")
    return answer


def _answer_texts(value: Any) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(item, str) and item.strip() for item in value):
        raise UnusableReply("other JSON")
    return [item.strip() for item in value]


_READERS: dict[str, Callable[[Reply, str], Any]] = {
    "decompose": lambda reply, _: read_decomposition(reply),
    "rephrase": lambda reply, statement: {"rephrasing": read_rephrasing(reply, statement)},
    "negatives": lambda reply, statement: dict(zip(NEGATIVE_COLUMNS, read_negatives(reply, statement), strict=True)),
}
