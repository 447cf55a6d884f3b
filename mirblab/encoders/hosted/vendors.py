"""vendors: the vendors' formats of requests and answers."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar
from urllib.parse import urlsplit

import numpy as np

from mirblab.core.errors import MirblabError, check_known, unknown
from mirblab.core.registry import check_table
from mirblab.encoders.entry import TYPES
from mirblab.encoders.hosted.key import check_keys, check_url

BUDGET = "MIRBLAB_BUDGET"  # dollars that hosted models may cost, all together
Entry = Mapping[str, Any]


@dataclass(frozen=True)
class OpenAI:
    """The API of OpenAI, which vLLM and TEI follow; an entry may replace its limits, per request or per minute."""

    url: str = "https://api.openai.com/v1/embeddings"
    key_variable: str = "OPENAI_API_KEY"
    batch_texts: int = 2_048
    batch_tokens: int = 300_000
    requests_per_minute: int = 3_000
    tokens_per_minute: int = 1_000_000
    truncates: ClassVar[bool] = False  # whether the vendor itself cuts what is too long

    def body(self, entry: Entry, texts: Sequence[str], role: str) -> dict[str, Any]:
        """Return the JSON of one request."""
        found = {"model": entry["model"], "input": list(texts), "encoding_format": "float"}
        return found | _given_dimensions(entry, "dimensions")

    def rows(self, answer: Any, n: int) -> list[Any]:
        """Return the *n* vectors of an answer in the order of the texts, which `index` gives."""
        data = answer["data"]
        places = [row["index"] for row in data]
        if sorted(places) != list(range(n)):
            raise MirblabError(f"{len(places)} vectors came back whose index is not 0 to {n - 1}, each once")
        by_place = dict(zip(places, data, strict=True))
        return [by_place[place]["embedding"] for place in range(n)]

    def usage(self, answer: Any) -> Any:
        """Return the number of tokens that the vendor counted."""
        return answer["usage"]["total_tokens"]


@dataclass(frozen=True)
class Cohere(OpenAI):
    """Cohere's v2/embed: `input_type` is needed from v3 on, vectors come in order, tokens as billed units."""

    url: str = "https://api.cohere.com/v2/embed"
    key_variable: str = "COHERE_API_KEY"
    batch_texts: int = 96
    batch_tokens: int = 128_000
    requests_per_minute: int = 300
    tokens_per_minute: int = 30_000_000  # none is published; 300 requests of 96 texts stay below
    truncates: ClassVar[bool] = True

    def body(self, entry: Entry, texts: Sequence[str], role: str) -> dict[str, Any]:
        found = {"model": entry["model"], "texts": list(texts), "input_type": input_type(entry, role)}
        found |= {"embedding_types": ["float"], "truncate": entry.get("truncate", "END")}
        return found | _given_dimensions(entry, "output_dimension")

    def rows(self, answer: Any, n: int) -> list[Any]:
        return list(answer["embeddings"]["float"])

    def usage(self, answer: Any) -> Any:
        return answer["meta"]["billed_units"]["input_tokens"]


@dataclass(frozen=True)
class Voyage(OpenAI):
    """Voyage's embeddings: OpenAI's answer, with `input_type` and `truncation` in the request."""

    url: str = "https://api.voyageai.com/v1/embeddings"
    key_variable: str = "VOYAGE_API_KEY"
    batch_texts: int = 128
    batch_tokens: int = 120_000
    requests_per_minute: int = 2_000
    tokens_per_minute: int = 3_000_000
    truncates: ClassVar[bool] = True

    def body(self, entry: Entry, texts: Sequence[str], role: str) -> dict[str, Any]:
        """Return the JSON of one request; `truncate = "NONE"` becomes `truncation: false`."""
        found = {"model": entry["model"], "input": list(texts), "input_type": input_type(entry, role)}
        return (
            found
            | {"truncation": entry.get("truncate", "END") != "NONE"}
            | _given_dimensions(entry, "output_dimension")
        )


VENDORS = {"cohere": Cohere(), "openai": OpenAI(), "voyage": Voyage()}


def input_type(entry: Entry, role: str) -> str | None:
    """Return the `input_type` of a *role*; None (the text as it is) when the entry has no `input_types` at all."""
    known = entry.get("input_types", {})
    if known and role not in known:
        raise unknown("input_type for role", role, known)
    return known.get(role)


def _given_dimensions(entry: Entry, theirs: str) -> dict[str, Any]:
    return {theirs: entry["output_dimension"]} if "output_dimension" in entry else {}


LOCAL = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True)
class Hosted:
    """A hosted encoder: its vendor's API, its address, and its limits."""

    entry: Mapping[str, Any]
    vendor: OpenAI
    url: str
    dimensions: int
    max_length: int
    batch_texts: int
    batch_tokens: int
    requests_per_minute: int
    tokens_per_minute: int
    in_flight: int
    timeout: float
    price: float | None  # dollars for a million tokens; None: not known

    @property
    def model(self) -> str:
        """Return the model's name, as the vendor writes it."""
        return str(self.entry["model"])

    @property
    def host(self) -> str:
        """Return the host that requests go to."""
        return urlsplit(self.url).hostname or ""

    @property
    def is_local(self) -> bool:
        """Return whether requests stay on this machine."""
        return self.host in LOCAL

    @property
    def cuts(self) -> bool:
        """Return whether a text that is too long is cut (by the vendor, or for OpenAI here); else it is an error."""
        return self.entry.get("truncate", "END") != "NONE"

    @property
    def key_variable(self) -> str:
        """Return the variable that holds the key; MirblabError where a vendor's key would go to another host."""
        usual = urlsplit(self.vendor.url).hostname
        named = self.entry.get("key_variable")
        if named is None and not self.is_local and self.host != usual:
            raise MirblabError(
                f"{self.vendor.key_variable} is a key for {usual}, not for {self.host}; "
                f"name the variable with that host's key as key_variable in the entry of '{self.model}'"
            )
        return str(named or self.vendor.key_variable)

    def vectors(self, answer: Any, n: int) -> np.ndarray:
        """Return an answer's vectors, float32 (n, d), in the order of the texts; MirblabError for wrong ones."""
        try:
            found = np.array(self.vendor.rows(answer, n))
        except MirblabError:
            raise
        except (KeyError, TypeError, ValueError, IndexError, AttributeError):
            raise MirblabError(f"the answer has not the form of {self.entry['vendor']}'s embeddings") from None
        wanted = (n, self.dimensions)
        if found.shape != wanted or found.dtype.kind not in "fi":
            raise MirblabError(f"expected numbers {wanted}, found {found.dtype} {found.shape}; check dimensions")
        with np.errstate(over="ignore"):
            found = found.astype(np.float32)
        bad = np.flatnonzero(~np.isfinite(found).all(axis=1))
        if len(bad):
            raise MirblabError(f"{len(bad)} of {n} vectors are not finite, the first is number {bad[0]}")
        if self.entry.get("normalise"):
            found /= np.maximum(np.linalg.norm(found, axis=1, keepdims=True), np.float32(1e-12))
        return found

    def usage(self, answer: Any, estimated: int) -> int:
        """Return the tokens that the vendor counted for an *answer*, or the *estimated* ones without such a count."""
        try:
            tokens = self.vendor.usage(answer)
        except (KeyError, TypeError):
            return estimated
        is_count = isinstance(tokens, int | float) and not isinstance(tokens, bool) and 0 <= tokens < 1e15
        return math.ceil(tokens) if is_count else estimated


def read_hosted(entry: Mapping[str, Any]) -> Hosted:
    """Return the hosted encoder that an *entry* describes, without key or network; MirblabError for a wrong entry."""
    check_keys(entry)
    check_table("a hosted encoder", entry, TYPES, needed=("vendor", "model", "dimensions", "max_length"))
    check_known("vendor", entry["vendor"], VENDORS)
    vendor = VENDORS[entry["vendor"]]
    _check_modes(entry)
    url = request_url(entry.get("url", vendor.url), vendor.url)
    limits = ("batch_texts", "batch_tokens", "requests_per_minute", "tokens_per_minute")
    return Hosted(
        entry=dict(entry),
        vendor=vendor,
        url=url,
        dimensions=entry.get("output_dimension", entry["dimensions"]),
        max_length=entry["max_length"],
        **{name: entry.get(name, getattr(vendor, name)) for name in limits},
        in_flight=entry.get("in_flight", 4),
        timeout=float(entry.get("timeout") or 120),
        price=entry.get("price_per_million_tokens", 0.0 if urlsplit(url).hostname in LOCAL else None),
    )


def read_budgets(entry: Mapping[str, Any]) -> dict[str, float]:
    """Return the budgets in force, in dollars by their names: `MIRBLAB_BUDGET` and the entry's `budget`.

    >>> read_budgets({"budget": 2})
    {'budget': 2.0}
    """
    budgets = {"budget": float(entry["budget"])} if "budget" in entry else {}
    budget = os.environ.get(BUDGET)
    if not budget:
        return budgets
    try:
        dollars = float(budget)
    except ValueError:
        dollars = math.nan
    if not 0 <= dollars < math.inf:
        raise MirblabError(f"{BUDGET} is {budget!r}; write a number from 0, for example 5 or 0.50")
    return {BUDGET: dollars} | budgets


def request_url(url: str, usual: str) -> str:
    """Return the address of requests for a base or whole *url*; MirblabError unless it is https or this machine."""
    parts, tail = check_url(url.strip().rstrip("/")), "/" + usual.rsplit("/", 1)[1]
    if not parts.hostname or not (parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in LOCAL)):
        raise MirblabError(f"the url '{url}' is not https://...; plain http is for this machine only")
    whole = parts.geturl()
    return whole if whole.endswith(tail) else whole + tail


def _check_modes(entry: Mapping[str, Any]) -> None:
    mode, vendor = entry.get("truncate", "END"), entry["vendor"]
    if mode not in ("NONE", "START", "END") or (mode == "START" and vendor != "cohere"):
        raise MirblabError(f"truncate is {mode!r}; write END or NONE (or START, with Cohere only)")
    if vendor == "cohere" and not entry.get("input_types"):
        raise MirblabError('Cohere needs input_types = { query = "search_query", document = "search_document" }')
