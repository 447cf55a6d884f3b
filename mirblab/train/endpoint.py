"""endpoint: any server that speaks OpenAI's chat completions, asked through the courier of the hosted encoders."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar

from mirblab.api import n_tokens
from mirblab.courier import Batch, Courier
from mirblab.errors import MirblabError, unknown
from mirblab.hosted import Hosted, endpoint, hosted
from mirblab.limits import Clock, Ledger, OverBudget
from mirblab.progress import progress
from mirblab.refusals import Again
from mirblab.secret import Secret, environment
from mirblab.train.answers import Reply
from mirblab.train.prompts import Prompt
from mirblab.vendors import Entry, OpenAI

URL, MODEL, KEY = "MIRBLAB_CHAT_URL", "MIRBLAB_CHAT_MODEL", "MIRBLAB_CHAT_KEY"
USUAL = OpenAI(url="https://api.openai.com/v1/chat/completions")
_ANSWER_TOKENS = 1024  # what an answer may take when the prompt does not say
_UNLIMITED = 10**9
_LIMITS = ("in_flight", "requests_per_minute", "tokens_per_minute", "timeout", "price_per_million_tokens", "budget")


@dataclass(frozen=True)
class Wire(OpenAI):
    """The wire format of chat completions: a batch is one message, `choices` hold its answer."""

    system: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    truncates: ClassVar[bool] = False

    def body(self, entry: Entry, texts: Sequence[str], role: str) -> dict[str, Any]:
        """Return the JSON of one request.

        >>> Wire(system="Be brief.").body({"model": "m"}, ["Why?"], "user")["messages"][1]
        {'role': 'user', 'content': 'Why?'}
        """
        first = [{"role": "system", "content": self.system}] if self.system else []
        messages = [*first, *({"role": role, "content": text} for text in texts)]
        return {"model": entry["model"], "messages": messages, **self.parameters}


@dataclass(frozen=True)
class Chat(Hosted):
    """A chat model at an address, with its limits; what the courier brings back are replies, not vectors."""

    def vectors(self, answer: Any, n: int) -> list[Reply]:  # type: ignore[override]
        """Return the reply of an *answer*, in a list; an answer that is no chat completion is asked for again."""
        try:
            [choice] = answer["choices"]
            text, finish = choice["message"]["content"], choice.get("finish_reason")
        except (KeyError, TypeError, ValueError, AttributeError):
            raise Again(f"the answer of {self.host} is not a chat completion", None) from None
        return [Reply(text if isinstance(text, str) else "", str(finish or "stop"))] * n


def chat(model: str = "", url: str = "", **limits: Any) -> Chat:
    """Return the chat model called *model* at *url*, a base such as http://localhost:8000/v1.

    Both are read from MIRBLAB_CHAT_MODEL and MIRBLAB_CHAT_URL when they are "". The key is that of MIRBLAB_CHAT_KEY,
    or, for api.openai.com alone, of OPENAI_API_KEY. *limits* are fields that an encoder's entry may have: in_flight,
    requests_per_minute, tokens_per_minute, timeout, price_per_million_tokens, budget. Without them a server on this
    machine gets 16 requests at once, and any other OpenAI's limits. Raises MirblabError for what is absent or wrong.

    >>> chat("qwen3", "http://localhost:8000/v1").url
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
    address = endpoint(f"{base}/chat", USUAL.url)
    entry = {"vendor": "openai", "model": model.strip(), "dimensions": 1, "max_length": _UNLIMITED, "truncate": "NONE"}
    entry |= {"url": f"{base}/embeddings", "timeout": 600} | limits
    usual = address == USUAL.url and not os.environ.get(KEY)
    found = hosted(entry | ({} if usual else {"key_variable": KEY}))
    if found.is_local:
        free = {"in_flight": 16, "requests_per_minute": _UNLIMITED, "tokens_per_minute": _UNLIMITED}
        found = replace(found, **{name: value for name, value in free.items() if name not in limits})
    return Chat(**{part.name: getattr(found, part.name) for part in fields(Hosted)} | {"url": address, "vendor": USUAL})


def ask(
    service: Chat, prompt: Prompt, messages: Sequence[str], *, clock: Clock | None = None
) -> Iterator[tuple[int, Reply]]:
    """Return an iterator over replies as they come: the place among *messages*, and the reply.

    Several requests are on their way at once; failures that may pass are tried again, limits and budgets kept, as
    `api.embed` does. Store each reply before asking for the next one: after Ctrl-C nothing more is sent, what came
    back is still yielded, and KeyboardInterrupt is raised at the end. Raises MirblabError before anything is sent
    (key, budget), or from the iterator when the server refuses or does not answer.
    """
    secret = _key(service)
    wire = Wire(system=prompt.system, parameters=prompt.parameters)
    longest = int(prompt.parameters.get("max_tokens", _ANSWER_TOKENS))
    fixed = n_tokens(prompt.system) + longest
    batches = [Batch([place], [message], n_tokens(message) + fixed) for place, message in enumerate(messages)]
    ledger = Ledger(service)
    try:
        ledger.check(sum(batch.tokens for batch in batches))
    except OverBudget as error:
        raise OverBudget(f"{error}; nothing was sent") from None
    courier = Courier(replace(service, vendor=wire), "user", secret, ledger, clock or Clock())
    return _replies(courier, batches, f"{service.model}: {prompt.name}")


def _replies(courier: Courier, batches: list[Batch], label: str) -> Iterator[tuple[int, Reply]]:
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


def _key(service: Chat) -> Secret:
    secret = environment(service.key_variable)
    if not secret and not service.is_local:
        raise MirblabError(f"no key for {service.host}: set the environment variable {service.key_variable}")
    if not secret.is_sendable:
        raise MirblabError(f"the key in {service.key_variable} has spaces or letters beyond ASCII; copy it once more")
    return secret
