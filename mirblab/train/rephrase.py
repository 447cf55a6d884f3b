"""rephrase: statements said anew by a chat model."""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd

from mirblab.analysis.lean_views import in_modules, read_views
from mirblab.core import paths, registry, stored_files
from mirblab.core.errors import MirblabError, unknown
from mirblab.core.terminal import progress, say
from mirblab.encoders.hosted.budget import Clock, Ledger, OverBudget
from mirblab.encoders.hosted.client import Batch, Client, RetryLater, estimate_tokens
from mirblab.encoders.hosted.key import Secret, read_key
from mirblab.encoders.hosted.vendors import Entry, Hosted, OpenAI, read_hosted, request_url
from mirblab.train import data, rules
from mirblab.train.data import NEGATIVE_COLUMNS, check_statements, rephrasing_table
from mirblab.train.rules import Reply, UnusableReply

STEPS = ("decompose", "rephrase", "negatives")
_PROMPT_FIELDS = {"system": str, "user": str, "retry": str, "attempts": int, "parameters": dict}
_PLACEHOLDER = re.compile(r"\{(statement|hypotheses|conclusions|normalized_form|record)\}")
URL, MODEL, KEY = "MIRBLAB_CHAT_URL", "MIRBLAB_CHAT_MODEL", "MIRBLAB_CHAT_KEY"
USUAL = OpenAI(url="https://api.openai.com/v1/chat/completions")
_ANSWER_TOKENS = 1024  # what an answer may take when the prompt does not say
_UNLIMITED = 10**9
_LIMITS = ("in_flight", "requests_per_minute", "tokens_per_minute", "timeout", "price_per_million_tokens", "budget")
_CONSEQUENCE = "what it answered is asked again"


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
    """Write new texts for the statements of a table of views, print what became of them, and return the exit status.

    *rules*: by `data.rephrase_by_rules`, without a model; *limits* are those of `chat_model`, *choice* is that of
    `choose_statements`. 130 after Ctrl-C: what came back by then is kept, and the same command continues.
    """
    rows = choose_statements(read_views(source), seed=seed, **choice)
    say(f"{source}: {len(rows):,} statements")
    if rules:
        table = data.rephrase_by_rules(rows, seed, with_negatives=negatives)
        lines = [f"rules: {(table.rephrasing != '').sum():,} of {len(table):,} statements reworded"]
    else:
        service = chat_model(model, url, **(limits or {}))
        try:
            result = rephrase(rows, service, with_negatives=negatives)
        except KeyboardInterrupt:
            say("stopped; every answer that came is kept: the same command goes on from there", to=sys.stderr)
            return 130
        table, lines = result.table, result.summary()
    for line in lines:
        say(f"  {line}")
    if negatives:
        counts = (table[list(data.NEGATIVE_COLUMNS)] != "").sum(axis=1)
        say(f"  wrong versions: {counts.sum():,}, of {(counts > 0).sum():,} statements")
    say(f"in {data.save_rephrasings(table, out or data.default_path(source))}")
    return 0


def choose_statements(
    table: pd.DataFrame,
    *,
    split: str = "train",
    kinds: Sequence[str] = (),
    modules: str = "all",
    limit: int = 0,
    seed: int = 0,
) -> pd.DataFrame:
    """Return the rows of a table of views that are to be said anew, in their order.

    *split* "" and *kinds* () mean all; *modules* "mathematics" is the MELD paper's filter, *limit* a sample of that
    size drawn by *seed*, 0 all. Raises MirblabError for a split, kinds or modules that are not there.

    >>> choose_statements(read_views("mini-views"), split="", kinds=["instance"]).kind.unique().tolist()
    ['instance']
    """
    for column, wanted in (("split", [split] if split else []), ("kind", list(kinds))):
        known = set(table[column])
        for name in wanted:
            if name not in known:
                raise unknown(f"{column} of the views called", name, known)
        table = table[table[column].isin(wanted)] if wanted else table
    if modules not in ("all", "mathematics"):
        raise unknown("choice of modules", modules, ("all", "mathematics"))
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
    """Return what a chat model makes of the statements in *column*: parts, new text, and wrong versions when asked for.

    The recipe of Ye et al. 2026 (MELD), Appendix B: a statement is taken apart, and said anew with its parts in view;
    an answer of no use is asked for again. One that stays of no use leaves that statement out of the later steps.
    Every answer is kept under model, prompt, parameters, message and attempt, so a second call asks nothing, and one
    after Ctrl-C or a kill only what is missing. Raises MirblabError as `rephrase.ask_model` does.
    """
    check_statements(views, column)
    steps = [read_prompt(name) for name in STEPS if with_negatives or name != "negatives"]
    records: list[dict[str, Any]] = [{"statement": text.strip()} for text in views[column]]
    rows, problems = [dict[str, Any]() for _ in records], [""] * len(records)
    counts = {}
    for step in steps:
        pending = [row for row, record in enumerate(records) if record["statement"] and _is_ready(step, rows[row])]
        answers, reasons, counts[step.name] = _run_step(service, step, [records[row] for row in pending], clock)
        for row, value, reason in zip(pending, answers, reasons, strict=True):
            rows[row] |= value
            problems[row] = problems[row] or (f"{step.name}: {reason}" if reason else "")
            records[row] |= value if step.name == "decompose" else {}
    about = {"model": service.model, "prompts": prompts_fingerprint(steps)}
    return Rephrased(rephrasing_table(views.id.tolist(), rows, problems, about), counts)


@dataclass
class StepCount:
    """What became of one step: how many statements came to it, were asked now, and could be used; and why not."""

    statements: int = 0
    asked: int = 0
    usable: int = 0
    answers: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True)
class Rephrased:
    """The new texts: a row per statement, in the order given, with `REPHRASING_COLUMNS`; a missing one is "" or [].

    `problem` says at which step the last attempt failed, and why: "decompose: no JSON". `counts` has a `StepCount` for
    each step; its `answers` count the reasons why answers could not be used, also those of repeated attempts.
    """

    table: pd.DataFrame
    counts: Mapping[str, StepCount]

    def summary(self) -> list[str]:
        """Return a line for each step.

        >>> Rephrased(pd.DataFrame(), {"rephrase": StepCount(3, 4, 2, Counter({"empty": 2}))}).summary()
        ['rephrase: 2 of 3 statements usable, 4 requests now; answers of no use: empty 2']
        """
        lines = []
        for step, count in self.counts.items():
            reasons = ", ".join(f"{reason} {n:,}" for reason, n in count.answers.most_common())
            line = f"{step}: {count.usable:,} of {count.statements:,} statements usable, {count.asked:,} requests now"
            lines.append(line + (f"; answers of no use: {reasons}" if reasons else ""))
        return lines


def _is_ready(step: Prompt, row: Mapping[str, Any]) -> bool:
    """Return whether a row may come to a step: only the first one needs no parts."""
    return step.name == "decompose" or "conclusions" in row


def _run_step(
    service: ChatModel, step: Prompt, records: Sequence[Mapping[str, Any]], clock: Clock | None
) -> tuple[list[dict[str, Any]], list[str], StepCount]:
    """Return what one step gives for each record ({} for nothing), why not, and the counts."""
    store, count = ReplyStore(service.model, step), StepCount(statements=len(records))
    values, reasons = [dict[str, Any]() for _ in records], [""] * len(records)
    pending = list(range(len(records)))
    for attempt in range(step.attempts):
        messages = [step.message(records[row], attempt) for row in pending]
        count.asked += _ask_missing(service, step, store, messages, attempt, clock)
        for row, message in zip(pending, messages, strict=True):
            try:
                reply = store.get(reply_key(message, attempt))
                values[row], reasons[row] = _READERS[step.name](reply, records[row]["statement"]), ""
            except UnusableReply as reason:
                reasons[row] = str(reason)
                count.answers[str(reason)] += 1
        pending = [row for row in pending if reasons[row]]
    count.usable = len(records) - len(pending)
    return values, reasons, count


def _ask_missing(
    service: ChatModel, step: Prompt, store: ReplyStore, messages: Sequence[str], attempt: int, clock: Clock | None
) -> int:
    """Ask for the messages whose answers are not stored, each once, and return how many they were."""
    name = partial(reply_key, attempt=attempt)
    missing = list(dict.fromkeys(message for message in messages if name(message) not in store))
    if missing:
        for place, reply in ask_model(service, step, missing, clock=clock):
            store.put(name(missing[place]), reply)
    return len(missing)


_READERS: dict[str, Callable[[Reply, str], Any]] = {
    "decompose": lambda reply, _: asdict(rules.read_decomposition(reply)),
    "rephrase": lambda reply, statement: {"rephrasing": rules.read_rephrasing(reply, statement)},
    "negatives": lambda reply, statement: dict(
        zip(NEGATIVE_COLUMNS, rules.read_negatives(reply, statement), strict=True)
    ),
}


@dataclass(frozen=True)
class Prompt:
    """One step's prompt: what is said first, the message with its places, and what is sent along."""

    name: str
    system: str
    user: str
    retry: str
    attempts: int
    parameters: Mapping[str, Any]

    def message(self, record: Mapping[str, str | Sequence[str]], attempt: int = 0) -> str:
        """Return the message about one statement; from the second *attempt* on it ends with `retry`.

        *record* has "statement", and from the second step on "hypotheses", "conclusions" and "normalized_form". What
        is filled in is not looked through again, so a statement may have braces.

        >>> prompt = Prompt("mine", "", "Again: {statement} ({hypotheses})", "", 1, {})
        >>> prompt.message({"statement": "$x^{2} > 0$", "hypotheses": ["$x > 0$", "$x$ is real"]})
        'Again: $x^{2} > 0$ (- $x > 0$\\n- $x$ is real)'
        """
        filled = _PLACEHOLDER.sub(lambda place: _field_text(record, place[1]), self.user)
        return (filled + (self.retry if attempt else "")).strip()

    def fingerprint(self) -> str:
        """Return a hash over all that can change an answer, 16 hexadecimal digits."""
        parts = [self.name, self.system, self.user, self.retry, self.attempts, dict(self.parameters)]
        return hashlib.blake2b(json.dumps(parts, sort_keys=True).encode(), digest_size=8).hexdigest()


def read_prompt(name: str) -> Prompt:
    """Return the prompt of a step: `prompts.toml` of the package, or the one of that name in the home's registry.

    Raises MirblabError for an unknown step, and for fields that are absent, unknown or of another type.

    >>> read_prompt("rephrase").attempts
    3
    """
    known = registry.read_registry("prompts")
    if name not in known:
        raise unknown("prompt", name, known)
    entry = known[name]
    for key in entry:
        if key not in _PROMPT_FIELDS:
            raise unknown(f"field of prompt '{name}' called", key, _PROMPT_FIELDS)
    for key, kind in _PROMPT_FIELDS.items():
        if not isinstance(entry.get(key), kind) or isinstance(entry.get(key), bool):
            raise MirblabError(f"prompt '{name}' in prompts.toml: {key} is {entry.get(key)!r}, not {kind.__name__}")
    try:
        json.dumps(entry["parameters"])
    except TypeError as error:
        raise MirblabError(f"prompt '{name}' in prompts.toml: its parameters cannot be sent: {error}") from error
    if not {"statement", "record"} & set(_PLACEHOLDER.findall(entry["user"])) or entry["attempts"] < 1:
        raise MirblabError(f"prompt '{name}' in prompts.toml needs {{statement}} in user, and attempts from 1")
    return Prompt(name, entry["system"].strip(), *(entry[field] for field in list(_PROMPT_FIELDS)[1:]))


def prompts_fingerprint(prompts: Sequence[Prompt]) -> str:
    """Return one hash for several prompts, 16 hexadecimal digits.

    >>> len(prompts_fingerprint([read_prompt("decompose"), read_prompt("rephrase")]))
    16
    """
    joined = "".join(one.fingerprint() for one in prompts)
    return hashlib.blake2b(joined.encode(), digest_size=8).hexdigest()


def _field_text(record: Mapping[str, str | Sequence[str]], field: str) -> str:
    """Return one field of a record as a message has it: a text, a list with dashes, or all of it as JSON."""
    if field == "record":
        return json.dumps(dict(record), ensure_ascii=False, indent=1)
    value = record.get(field, "")
    return value if isinstance(value, str) else "\n".join(f"- {item}" for item in value) or "- nothing"


@dataclass(frozen=True)
class ChatFormat(OpenAI):
    """The wire format of chat completions: a batch is one message, `choices` hold its answer."""

    system: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    truncates: ClassVar[bool] = False

    def body(self, entry: Entry, texts: Sequence[str], role: str) -> dict[str, Any]:
        """Return the JSON of one request.

        >>> ChatFormat(system="Be brief.").body({"model": "m"}, ["Why?"], "user")["messages"][1]
        {'role': 'user', 'content': 'Why?'}
        """
        first = [{"role": "system", "content": self.system}] if self.system else []
        messages = [*first, *({"role": role, "content": text} for text in texts)]
        return {"model": entry["model"], "messages": messages, **self.parameters}


@dataclass(frozen=True)
class ChatModel(Hosted):
    """A chat model at an address, with its limits; what the courier brings back are replies, not vectors."""

    def vectors(self, answer: Any, n: int) -> list[Reply]:  # type: ignore[override]
        """Return the reply of an *answer*, in a list; an answer that is no chat completion is asked for again."""
        try:
            [choice] = answer["choices"]
            text, finish = choice["message"]["content"], choice.get("finish_reason")
        except (KeyError, TypeError, ValueError, AttributeError):
            raise RetryLater(f"the answer of {self.host} is not a chat completion", None) from None
        return [Reply(text if isinstance(text, str) else "", str(finish or "stop"))] * n


def chat_model(model: str = "", url: str = "", **limits: Any) -> ChatModel:
    """Return the chat model called *model* at *url*, a base such as http://localhost:8000/v1.

    Both are read from MIRBLAB_CHAT_MODEL and MIRBLAB_CHAT_URL when they are "". The key is that of MIRBLAB_CHAT_KEY,
    or, for api.openai.com alone, of OPENAI_API_KEY. *limits* are fields that an encoder's entry may have: in_flight,
    requests_per_minute, tokens_per_minute, timeout, price_per_million_tokens, budget. Without them a server on this
    machine gets 16 requests at once, and any other OpenAI's limits. Raises MirblabError for what is absent or wrong.

    >>> chat_model("qwen3", "http://localhost:8000/v1").url
    'http://localhost:8000/v1/chat/completions'
    """
    model, url = model or os.environ.get(MODEL, ""), url or os.environ.get(URL, "")
    for name in limits:
        if name not in _LIMITS:
            raise unknown("limit of a chat model called", name, _LIMITS)
    for name, value, variable in (("model", model, MODEL), ("url", url, URL)):
        if not value.strip():
            raise MirblabError(f"no chat {name}: name one, or set the environment variable {variable}")
    base = url.strip().rstrip("/").removesuffix("/completions").removesuffix("/chat")
    address = request_url(f"{base}/chat", USUAL.url)
    entry = {"vendor": "openai", "model": model.strip(), "dimensions": 1, "max_length": _UNLIMITED, "truncate": "NONE"}
    entry |= {"url": f"{base}/embeddings", "timeout": 600} | limits
    is_openai = address == USUAL.url and not os.environ.get(KEY)
    service = read_hosted(entry | ({} if is_openai else {"key_variable": KEY}))
    if service.is_local:
        free = {"in_flight": 16, "requests_per_minute": _UNLIMITED, "tokens_per_minute": _UNLIMITED}
        service = replace(service, **{name: value for name, value in free.items() if name not in limits})
    return ChatModel(
        **{part.name: getattr(service, part.name) for part in fields(Hosted)} | {"url": address, "vendor": USUAL}
    )


def ask_model(
    service: ChatModel, prompt: Prompt, messages: Sequence[str], *, clock: Clock | None = None
) -> Iterator[tuple[int, Reply]]:
    """Return an iterator over replies as they come: the place among *messages*, and the reply.

    Several requests are on their way at once; failures that may pass are tried again, limits and budgets kept, as
    `client.embed` does. Store each reply before asking for the next one: after Ctrl-C nothing more is sent, what came
    back is still yielded, and KeyboardInterrupt is raised at the end. Raises MirblabError before anything is sent
    (key, budget), or from the iterator when the server refuses or does not answer.
    """
    secret = _service_key(service)
    wire = ChatFormat(system=prompt.system, parameters=prompt.parameters)
    longest = int(prompt.parameters.get("max_tokens", _ANSWER_TOKENS))
    fixed = estimate_tokens(prompt.system) + longest
    batches = [Batch([place], [message], estimate_tokens(message) + fixed) for place, message in enumerate(messages)]
    ledger = Ledger(service)
    try:
        ledger.check(sum(batch.tokens for batch in batches))
    except OverBudget as error:
        raise OverBudget(f"{error}; nothing was sent") from None
    courier = Client(replace(service, vendor=wire), "user", secret, ledger, clock or Clock())
    return _replies(courier, batches, f"{service.model}: {prompt.name}")


def _replies(courier: Client, batches: list[Batch], label: str) -> Iterator[tuple[int, Reply]]:
    if not batches:
        return
    with progress(len(batches), label, "statements") as bar:
        for [place], [reply] in courier.deliver(batches, bar):
            yield place, reply
    if courier.failure:
        raise MirblabError(
            f"{courier.failure}; {courier.done:,} of {len(batches):,} answers came back and are stored; "
            "the same command goes on from there"
        )


def _service_key(service: ChatModel) -> Secret:
    secret = read_key(service.key_variable)
    if not secret and not service.is_local:
        raise MirblabError(f"no key for {service.host}: set the environment variable {service.key_variable}")
    if not secret.is_sendable:
        raise MirblabError(f"the key in {service.key_variable} has spaces or letters beyond ASCII; copy it once more")
    return secret


class ReplyStore:
    """The answers of one model to one prompt: files of JSON lines that are only ever added to.

    Each writer has a file of its own, so any number of processes may share the folder. A line that is torn, by kill
    -9 or a full disk, or whose hash is not that of its content, counts as not there.
    """

    def __init__(self, model: str, prompt: Prompt) -> None:
        """Look at what `<cache>/replies/` has for a *model* and a *prompt*; nothing is written before `put`."""
        name = hashlib.blake2b(json.dumps([model, prompt.fingerprint()]).encode(), digest_size=8).hexdigest()
        self.folder = paths.cache() / "replies" / f"{prompt.name}-{name}"
        self._own = self._new()
        self._places: dict[str, tuple[Path, int]] = {}
        self._held: dict[str, Reply] = {}
        for path in _reply_files(self.folder):
            sound, damaged = _read_reply_file(path)
            self._places |= {key: (path, start) for key, start in sound}
            if damaged:
                stored_files.warn_passed_over(
                    path, f"in part: damaged lines {', '.join(map(str, damaged))}", _CONSEQUENCE
                )

    def __len__(self) -> int:
        """Return how many answers there are."""
        return len(self._places | self._held)

    def __contains__(self, key: str) -> bool:
        """Return whether the answer under *key* is there."""
        return key in self._places or key in self._held

    def get(self, key: str) -> Reply:
        """Return the answer under *key*; KeyError when there is none."""
        if key in self._held:
            return self._held[key]
        path, start = self._places[key]
        with path.open("rb") as file:
            file.seek(start)
            reply = _parse_reply_line(file.readline())
        if reply is None or reply[0] != key:
            raise MirblabError(f"{path} was changed while it was read, at byte {start}; do it again")
        return reply[1]

    def put(self, key: str, reply: Reply) -> None:
        """Add an answer under *key*; when this returns, neither a kill nor a loss of power can lose what was paid for.

        Where it cannot be stored it is held in memory, with a line that says so.
        """
        if not paths.try_to_store("answers", self._add, key, reply):
            self._own = self._new()  # the old file may end in the middle of a line
            self._held[key] = reply

    def _add(self, key: str, reply: Reply) -> None:
        record = {"key": key, "text": reply.text, "finish": reply.finish, "check": _reply_checksum(key, reply)}
        paths.make_folder(self.folder)
        is_new = not self._own.exists()
        with paths.writing(self._own):
            with paths.open_to_write(self._own, "ab") as file:
                start = file.tell()
                file.write(json.dumps(record).encode() + b"\n")
            paths.flush_file(self._own)
            if is_new:
                paths.flush_folder(self.folder)
        self._places[key] = (self._own, start)

    def _new(self) -> Path:
        return self.folder / f"{time.time_ns():019d}-{uuid.uuid4().hex[:12]}.jsonl"


def verify_replies(folder: Path) -> list[str]:
    """Read all answers in *folder*; return a line for each damaged one, and for strangers."""
    wrong = []
    for path in stored_files.sound_paths(folder):
        files = _reply_files(path)
        wrong += [
            stored_files.unknown_file_message(one)
            for one in (stored_files.sound_paths(path) if path.is_dir() else [path])
            if one not in files
        ]
        wrong += [
            f"{file}, line {number} is damaged; {_CONSEQUENCE}"
            for file in files
            for number in _read_reply_file(file)[1]
        ]
    return wrong


def reply_key(message: str, attempt: int) -> str:
    """Return the key of the answer to a *message*: the attempt counts, for a prompt may be sent unchanged again.

    >>> reply_key("Why?", 1) == reply_key("Why?", 1), reply_key("Why?", 1) == reply_key("Why?", 2)
    (True, False)
    """
    return hashlib.blake2b(json.dumps([attempt, message]).encode(), digest_size=16).hexdigest()


def _reply_files(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.glob("*.jsonl")) if path.is_file()]


def _read_reply_file(path: Path) -> tuple[list[tuple[str, int]], list[int]]:
    """Return key and place of each sound line, and the numbers of the damaged ones.

    A last line that does not end was torn when its writer was killed: it is no damage, and not there.
    """
    sound, damaged, start = [], [], 0
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if (reply := _parse_reply_line(line)) is not None:
                sound.append((reply[0], start))
            elif line.endswith(b"\n"):
                damaged.append(number)
            start += len(line)
    return sound, damaged


def _parse_reply_line(line: bytes) -> tuple[str, Reply] | None:
    """Return key and answer of a line, or None when it is not what was written."""
    try:
        record = json.loads(line)
        name, reply = record["key"], Reply(record["text"], record["finish"])
        whole = line.endswith(b"\n") and isinstance(name, str) and record["check"] == _reply_checksum(name, reply)
        return (name, reply) if whole else None
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def _reply_checksum(name: str, reply: Reply) -> str:
    return hashlib.blake2b(json.dumps([name, reply.text, reply.finish]).encode(), digest_size=6).hexdigest()
