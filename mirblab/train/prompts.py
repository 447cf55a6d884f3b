"""prompts: what a chat model is asked at each step of the data recipe, read from the registry and filled in."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mirblab import registry
from mirblab.errors import MirblabError, unknown

STEPS = ("decompose", "rephrase", "negatives")
_FIELDS = {"system": str, "user": str, "retry": str, "attempts": int, "parameters": dict}
_PLACE = re.compile(r"\{(statement|hypotheses|conclusions|normalized_form|record)\}")


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
        filled = _PLACE.sub(lambda place: _written(record, place[1]), self.user)
        return (filled + (self.retry if attempt else "")).strip()

    def fingerprint(self) -> str:
        """Return a hash over all that can change an answer, 16 hexadecimal digits."""
        parts = [self.name, self.system, self.user, self.retry, self.attempts, dict(self.parameters)]
        return hashlib.blake2b(json.dumps(parts, sort_keys=True).encode(), digest_size=8).hexdigest()


def prompt(name: str) -> Prompt:
    """Return the prompt of a step: `prompts.toml` of the package, or the one of that name in the home's registry.

    Raises MirblabError for an unknown step, and for fields that are absent, unknown or of another type.

    >>> prompt("rephrase").attempts
    3
    """
    known = registry.read("prompts")
    if name not in known:
        raise unknown("prompt", name, known)
    entry = known[name]
    for field in entry:
        if field not in _FIELDS:
            raise unknown(f"field of prompt '{name}' called", field, _FIELDS)
    for field, kind in _FIELDS.items():
        if not isinstance(entry.get(field), kind) or isinstance(entry.get(field), bool):
            raise MirblabError(f"prompt '{name}' in prompts.toml: {field} is {entry.get(field)!r}, not {kind.__name__}")
    try:
        json.dumps(entry["parameters"])
    except TypeError as error:
        raise MirblabError(f"prompt '{name}' in prompts.toml: its parameters cannot be sent: {error}") from error
    if not {"statement", "record"} & set(_PLACE.findall(entry["user"])) or entry["attempts"] < 1:
        raise MirblabError(f"prompt '{name}' in prompts.toml needs {{statement}} in user, and attempts from 1")
    return Prompt(name, entry["system"].strip(), *(entry[field] for field in list(_FIELDS)[1:]))


def fingerprint(prompts: Sequence[Prompt]) -> str:
    """Return one hash for several prompts, 16 hexadecimal digits.

    >>> len(fingerprint([prompt("decompose"), prompt("rephrase")]))
    16
    """
    joined = "".join(one.fingerprint() for one in prompts)
    return hashlib.blake2b(joined.encode(), digest_size=8).hexdigest()


def _written(record: Mapping[str, str | Sequence[str]], field: str) -> str:
    """Return one field of a record as a message has it: a text, a list with dashes, or all of it as JSON."""
    if field == "record":
        return json.dumps(dict(record), ensure_ascii=False, indent=1)
    value = record.get(field, "")
    return value if isinstance(value, str) else "\n".join(f"- {item}" for item in value) or "- nothing"
