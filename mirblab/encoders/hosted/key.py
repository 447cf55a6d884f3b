"""key: a key that is read from the environment, sent, and shown to nobody."""

from __future__ import annotations

import base64
import logging
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import SplitResult, quote, urlsplit

from mirblab.core.errors import MirblabError

_SHOWN = "[key]"
_PIECE = 6  # this many consecutive characters of the key count as the key
_KEY = re.compile(r"(?i)\b(?:sk-|hf_|key[-_=])[\w-]{12,}")
_SHAPES = re.compile(r"(?i)\bbearer\s+\S+|\b(?:sk|pa|co|hf)[-_][\w*.\-…]{8,}")


class Secret:
    """A key whose repr, string and attributes show nothing; an empty one stands for "no key".

    >>> Secret("sk-0123456789")
    Secret([key])
    """

    __slots__ = ("_reveal",)

    def __init__(self, key: str | None) -> None:
        key = (key or "").strip()
        self._reveal = lambda: key

    def __repr__(self) -> str:
        return f"Secret({_SHOWN})" if self else "Secret()"

    def __bool__(self) -> bool:
        return bool(self._reveal())

    def __reduce__(self) -> str:
        raise MirblabError("a key is never written to a file; read it from the environment where it is used")

    @property
    def is_sendable(self) -> bool:
        """Return whether the key can stand in a header: printable ASCII without spaces."""
        key = self._reveal()
        return key.isascii() and key.isprintable() and " " not in key

    def headers(self) -> dict[str, str]:
        """Return the header that carries the key; do not store it."""
        return {"Authorization": f"Bearer {self._reveal()}"} if self else {}

    def redact(self, text: str) -> str:
        """Return *text* without anything that looks like the key: whole, in part, masked, or encoded."""
        text = _SHAPES.sub(_SHOWN, text)
        key = self._reveal()
        if not key:
            return text
        for form in _written_forms(key):
            text = text.replace(form, _SHOWN)
        length = min(_PIECE, len(key))
        pieces = {form[i : i + length] for form in _written_forms(key) for i in range(len(form) - length + 1)}
        known = re.compile("|".join(map(re.escape, sorted(pieces))))
        return re.sub(r"\S+", lambda word: _SHOWN if known.search(word[0]) else word[0], text)


def check_url(url: str) -> SplitResult:
    """Return the parts of a *url*; MirblabError, which does not repeat it, where it may carry a key.

    A url appears in cache keys, provenance and messages, so a user, a password, a query, a fragment and whatever has
    the form of a key are refused.

    >>> check_url("https://api.example.org/v1").hostname
    'api.example.org'
    """
    try:
        parts = urlsplit(url.strip())
        host, _ = parts.hostname or "", parts.port
    except ValueError as error:
        raise MirblabError("the url cannot be read; write it as https://host/path") from error
    if parts.username or parts.password or parts.query or parts.fragment or "@" in url or _KEY.search(parts.path):
        where = f" at '{host}'" if host else ""
        raise MirblabError(
            f"the url{where} carries a user, a password or a query, or a key in its path; leave them out: the key "
            "stands in an environment variable, which key_variable names"
        )
    return parts


def check_keys(entry: Mapping[str, Any]) -> None:
    """Raise MirblabError, which repeats no value, when an entry of the registry carries a key in any of its fields."""
    written = {"key", "api_key", "apikey", "token", "secret", "password"} & {str(field).lower() for field in entry}
    if written:
        raise MirblabError(f"the entry has a field '{min(written)}'; keys are read from the environment, never written")
    if not re.fullmatch(r"[A-Za-z_]\w*", str(entry.get("key_variable", "X"))):
        raise MirblabError("key_variable is not the name of an environment variable; write the name, never the key")
    if isinstance(entry.get("url"), str):
        check_url(entry["url"])


def read_key(variable: str) -> Secret:
    """Return the key in an environment variable; an empty one when it is not set."""
    return Secret(os.environ.get(variable))


@contextmanager
def hide_from_logs(secret: Secret) -> Iterator[None]:
    """Keep the key out of the logs of the network's libraries: on DEBUG they record the headers that a vendor sends."""
    names = ("httpx", "httpcore.http11", "httpcore.connection", "httpcore.proxy")
    loggers = [logging.getLogger(name) for name in names]
    guard = _Guard(secret)
    for logger in loggers:
        logger.addFilter(guard)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(guard)


class _Guard(logging.Filter):
    def __init__(self, secret: Secret) -> None:
        super().__init__()
        self._secret = secret

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg, record.args = self._secret.redact(record.getMessage()), ()
        return True


def _written_forms(key: str) -> list[str]:
    raw = key.encode("utf-8", "replace")
    return list(dict.fromkeys([key, quote(key, safe=""), base64.b64encode(raw).decode().rstrip("="), raw.hex()]))
