"""chat: a chat model at an address: prompts from the registry, replies that are stored, and requests with limits."""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from pydantic import PositiveInt

from mirblab.core import atomic_files, paths, registry, stored_files
from mirblab.core.errors import MirblabError, check_known
from mirblab.core.terminal import progress
from mirblab.encoders.hosted.client import Batch, Client, checked_key, estimate_tokens, open_ledger
from mirblab.encoders.hosted.limits import Clock, RetryLater
from mirblab.encoders.hosted.vendors import Entry, Hosted, OpenAI, read_hosted, request_url

_PROMPT_FIELDS = {
    **dict.fromkeys(("system", "user", "retry"), str),
    "attempts": PositiveInt,
    "parameters": dict[str, Any],
}
_PLACEHOLDER = re.compile(r"\{(statement|hypotheses|conclusions|normalized_form|record)\}")
URL, MODEL, KEY = "MIRBLAB_CHAT_URL", "MIRBLAB_CHAT_MODEL", "MIRBLAB_CHAT_KEY"
USUAL = OpenAI(url="https://api.openai.com/v1/chat/completions")
_ANSWER_TOKENS = 1024  # what an answer may take when the prompt does not say
_UNLIMITED = 10**9
_LIMITS = ("in_flight", "requests_per_minute", "tokens_per_minute", "timeout", "price_per_million_tokens", "budget")
_CONSEQUENCE = "what it answered is asked again"


class UnusableReply(Exception):
    """A reply cannot be used; the text is the reason, one of a few, so that they can be counted."""


class Reply(NamedTuple):
    """What a model answered, and why it stopped: "stop", or "length" when it was cut off."""

    text: str
    finish: str = "stop"


@dataclass(frozen=True)
class Prompt:
    """One step's prompt: the system's message, the user's with placeholders, and the parameters of the request."""

    name: str
    system: str
    user: str
    retry: str
    attempts: int
    parameters: Mapping[str, Any]

    def message(self, record: Mapping[str, str | Sequence[str]], attempt: int = 0) -> str:
        """Return the message about one statement; from the second *attempt* on it ends with `retry`.

        *record* has "statement", and from the second step on "hypotheses", "conclusions" and "normalized_form", whose
        braces stay unchanged.

        >>> prompt = Prompt("mine", "", "Again: {statement} ({hypotheses})", "", 1, {})
        >>> prompt.message({"statement": "$x^{2} > 0$", "hypotheses": ["$x > 0$", "$x$ is real"]})
        'Again: $x^{2} > 0$ (- $x > 0$\\n- $x$ is real)'
        """
        filled = _PLACEHOLDER.sub(lambda match: _field_text(record, match[1]), self.user)
        return (filled + (self.retry if attempt else "")).strip()

    def fingerprint(self) -> str:
        """Return a hash of all that can change an answer, 16 hexadecimal digits."""
        parts = [self.name, self.system, self.user, self.retry, self.attempts, dict(self.parameters)]
        return hashlib.blake2b(json.dumps(parts, sort_keys=True).encode(), digest_size=8).hexdigest()


def read_prompt(name: str) -> Prompt:
    """Return the prompt of a step from `prompts.toml`, the package's or the home registry's; else MirblabError."""
    known = registry.read_registry("prompts")
    check_known("prompt", name, known)
    where = f"prompt '{name}' in {registry.entry_file('prompts', name)}"
    entry = registry.check_table(where, known[name], _PROMPT_FIELDS, needed=_PROMPT_FIELDS)
    try:
        json.dumps(entry["parameters"])
    except TypeError as error:
        raise MirblabError(f"{where}: its parameters cannot be sent: {error}") from error
    if not {"statement", "record"} & set(_PLACEHOLDER.findall(entry["user"])):
        raise MirblabError(f"{where} needs {{statement}} in user; write where the statement stands")
    return Prompt(name, **entry | {"system": entry["system"].strip()})


def prompts_fingerprint(prompts: Sequence[Prompt]) -> str:
    """Return one hash for several prompts, 16 hexadecimal digits."""
    joined = "".join(prompt.fingerprint() for prompt in prompts)
    return hashlib.blake2b(joined.encode(), digest_size=8).hexdigest()


def _field_text(record: Mapping[str, str | Sequence[str]], field: str) -> str:
    """Return a field of a record as text, a list with dashes; "record" is the whole record as JSON."""
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
        """Return the JSON of one request."""
        first = [{"role": "system", "content": self.system}] if self.system else []
        messages = [*first, *({"role": role, "content": text} for text in texts)]
        return {"model": entry["model"], "messages": messages, **self.parameters}


@dataclass(frozen=True)
class ChatModel(Hosted):
    """A chat model at an address, with its limits; the client returns its replies instead of vectors."""

    def vectors(self, answer: Any, n: int) -> list[Reply]:  # type: ignore[override]
        """Return the reply of an *answer*, in a list; an answer that is no chat completion is requested again."""
        try:
            [choice] = answer["choices"]
            text, finish = choice["message"]["content"], choice.get("finish_reason")
        except (KeyError, TypeError, ValueError, AttributeError):
            raise RetryLater(f"the answer of {self.host} is not a chat completion", None) from None
        return [Reply(text if isinstance(text, str) else "", str(finish or "stop"))] * n


def chat_model(model: str = "", url: str = "", **limits: Any) -> ChatModel:
    """Return the chat model *model* at *url*, a base such as http://localhost:8000/v1.

    Defaults are MIRBLAB_CHAT_MODEL and MIRBLAB_CHAT_URL. The key is MIRBLAB_CHAT_KEY or, for api.openai.com alone,
    OPENAI_API_KEY. *limits*: in_flight, requests_per_minute, tokens_per_minute, timeout, price_per_million_tokens,
    budget; by default a server on this machine gets 16 requests at once, any other OpenAI's limits. Raises MirblabError
    for what is missing or wrong.
    """
    model, url = model or os.environ.get(MODEL, ""), url or os.environ.get(URL, "")
    check_known("limit of a chat model called", limits, _LIMITS)
    for name, value, variable in (("model", model, MODEL), ("url", url, URL)):
        if not value.strip():
            raise MirblabError(f"no chat {name}: name one, or set the environment variable {variable}")
    base = url.strip().rstrip("/").removesuffix("/completions").removesuffix("/chat")
    address = request_url(f"{base}/chat", USUAL.url)
    entry = {"vendor": "openai", "model": model.strip(), "dimensions": 1, "max_length": _UNLIMITED, "truncate": "NONE"}
    entry |= {"url": f"{base}/embeddings", "timeout": 600} | limits
    is_openai = address == USUAL.url and not os.environ.get(KEY)
    entry |= {} if is_openai else {"key_variable": KEY}
    service = read_hosted(entry)
    if service.is_local:
        free = {"in_flight": 16, "requests_per_minute": _UNLIMITED, "tokens_per_minute": _UNLIMITED}
        service = read_hosted(free | entry)
    return ChatModel(
        **{part.name: getattr(service, part.name) for part in fields(Hosted)} | {"url": address, "vendor": USUAL}
    )


def ask_model(
    service: ChatModel, prompt: Prompt, messages: Sequence[str], *, clock: Clock | None = None
) -> Iterator[tuple[int, Reply]]:
    """Return an iterator over replies as they arrive: the position among *messages*, and the reply.

    Several requests are sent at once, with retries, limits and budgets as in `client.embed`. Store each reply before
    taking the next one: after Ctrl-C nothing more is sent, outstanding replies are still yielded, and KeyboardInterrupt
    is raised at the end. Raises MirblabError before anything is sent (key, budget), or when the server refuses or does
    not answer.
    """
    secret = checked_key(service)
    wire = ChatFormat(system=prompt.system, parameters=prompt.parameters)
    fixed = estimate_tokens(prompt.system) + int(prompt.parameters.get("max_tokens", _ANSWER_TOKENS))
    batches = [Batch([at], [message], estimate_tokens(message) + fixed) for at, message in enumerate(messages)]
    ledger = open_ledger(service, batches)
    client = Client(replace(service, vendor=wire), "user", secret, ledger, clock or Clock())
    return _replies(client, batches, f"{service.model}: {prompt.name}")


def _replies(client: Client, batches: list[Batch], label: str) -> Iterator[tuple[int, Reply]]:
    if not batches:
        return
    with progress(len(batches), label, "statements") as bar:
        for [position], [reply] in client.deliver(batches, bar):
            yield position, reply
    if client.failure:
        raise MirblabError(
            f"{client.failure}; {client.done:,} of {len(batches):,} answers were received and are stored; "
            "the same command continues from there"
        )


class ReplyStore:
    """The answers of one model to one prompt: files of JSON lines, to which lines are only added.

    Each writer has a separate file, so that several processes may share the folder. Incomplete lines (of a killed
    writer, or on a full disk) and lines with a wrong hash are ignored.
    """

    def __init__(self, model: str, prompt: Prompt) -> None:
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
        return len(self._places | self._held)

    def __contains__(self, key: str) -> bool:
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
        """Add an answer under *key*, flushed to disk; one that cannot be stored is kept in memory, with a note."""
        if not atomic_files.try_to_store("answers", self._add, key, reply):
            self._own = self._new()  # the old file may end in the middle of a line
            self._held[key] = reply

    def _add(self, key: str, reply: Reply) -> None:
        record = {"key": key, "text": reply.text, "finish": reply.finish, "check": _reply_checksum(key, reply)}
        atomic_files.make_folder(self.folder)
        is_new = not self._own.exists()
        with atomic_files.writing(self._own):
            with atomic_files.open_to_write(self._own, "ab") as file:
                start = file.tell()
                file.write(json.dumps(record).encode() + b"\n")
            atomic_files.flush_file(self._own)
            if is_new:
                atomic_files.flush_folder(self.folder)
        self._places[key] = (self._own, start)

    def _new(self) -> Path:
        return self.folder / f"{time.time_ns():019d}-{uuid.uuid4().hex[:12]}.jsonl"


def verify_replies(folder: Path) -> list[str]:
    """Return a line for each damaged answer in *folder*, and for each file that does not belong there."""
    problems: list[str] = []
    for path in stored_files.sound_paths(folder):
        files = _reply_files(path)
        others = [
            inner for inner in (stored_files.sound_paths(path) if path.is_dir() else [path]) if inner not in files
        ]
        problems += map(stored_files.unknown_file_message, others)
        for file in files:
            _, damaged = _read_reply_file(file)
            problems += [f"{file}, line {number} is damaged; {_CONSEQUENCE}" for number in damaged]
    return problems


def reply_key(message: str, attempt: int) -> str:
    """Return the key of the answer to a *message* at an *attempt*."""
    return hashlib.blake2b(json.dumps([attempt, message]).encode(), digest_size=16).hexdigest()


def _reply_files(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.glob("*.jsonl")) if path.is_file()]


def _read_reply_file(path: Path) -> tuple[list[tuple[str, int]], list[int]]:
    """Return key and offset of each intact line, and the numbers of damaged ones, except an incomplete last line."""
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
    try:
        record = json.loads(line)
        name, reply = record["key"], Reply(record["text"], record["finish"])
        whole = line.endswith(b"\n") and isinstance(name, str) and record["check"] == _reply_checksum(name, reply)
        return (name, reply) if whole else None
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def _reply_checksum(name: str, reply: Reply) -> str:
    return hashlib.blake2b(json.dumps([name, reply.text, reply.finish]).encode(), digest_size=6).hexdigest()


@dataclass
class StepCount:
    """The counts of one step: statements, new requests, usable answers, and the reasons why others were not usable."""

    statements: int = 0
    asked: int = 0
    usable: int = 0
    answers: Counter[str] = field(default_factory=Counter)


def run_prompt(
    service: ChatModel,
    prompt: Prompt,
    records: Sequence[Mapping[str, Any]],
    read: Callable[[Reply, str], Any],
    clock: Clock | None = None,
) -> tuple[list[Any], list[str], StepCount]:
    """Return what *read* makes of the reply for each record (None: none), the reasons why others have none, the counts.

    *read* gets the reply and the record's statement, and raises UnusableReply for a reply that is asked for again, at
    most `attempts` times. Replies are stored; those that are stored already are not asked for.
    """
    store, count = ReplyStore(service.model, prompt), StepCount(statements=len(records))
    values, reasons = [None for _ in records], [""] * len(records)
    pending = list(range(len(records)))
    for attempt in range(prompt.attempts):
        messages = [prompt.message(records[row], attempt) for row in pending]
        missing = list(dict.fromkeys(message for message in messages if reply_key(message, attempt) not in store))
        if missing:
            for position, reply in ask_model(service, prompt, missing, clock=clock):
                store.put(reply_key(missing[position], attempt), reply)
        count.asked += len(missing)
        for row, message in zip(pending, messages, strict=True):
            try:
                values[row] = read(store.get(reply_key(message, attempt)), records[row]["statement"])
                reasons[row] = ""
            except UnusableReply as reason:
                reasons[row] = str(reason)
                count.answers[str(reason)] += 1
        pending = [row for row in pending if reasons[row]]
    count.usable = len(records) - len(pending)
    return values, reasons, count
