"""limits: what may be sent: requests and tokens per minute, dollars, and what a refusal (429, too long) asks for."""

from __future__ import annotations

import asyncio
import email.utils
import json
import math
import re
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from mirblab.core import atomic_files, paths, stored_files, text_files
from mirblab.core.errors import MirblabError
from mirblab.encoders.hosted.vendors import BUDGET, Hosted, read_budgets

if TYPE_CHECKING:
    import httpx


RETRIED_STATUSES = (408, 429, 500, 502, 503, 504, 529)
_TOO_LARGE = re.compile(
    r"(?i)max_tokens_per_request|(context|input) length|too many (tokens|inputs|texts)|too (long|large)|batch size"
    r"|tokens? .{0,40}(limit|exceed)|exceed.{0,60}(token|length)|max\w* .{0,30}tokens|number of texts"
)


class Clock:
    """The time, and waiting for it; tests replace it."""

    def now(self) -> float:
        """Return seconds that never decrease."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)


class Bucket:
    """A token bucket: at most *per_minute* in any minute, a tenth at once, the rest at nine tenths of the rate."""

    def __init__(self, per_minute: float, clock: Clock) -> None:
        self.capacity = max(1.0, per_minute / 10)
        self.rate = max(per_minute - self.capacity, per_minute / 2) / 60
        self._clock = clock
        self._level, self._last = self.capacity, clock.now()

    def take(self, amount: float) -> float:
        """Return the seconds to wait before *amount* may be sent; it counts as taken."""
        now = self._clock.now()
        self._level = min(self.capacity, self._level + (now - self._last) * self.rate)
        self._last = now
        self._level -= amount
        return max(0.0, -self._level / self.rate)

    def give(self, amount: float) -> None:
        """Put back what was taken and not used; a negative *amount* takes more."""
        self._level += amount


class Pace:
    """When the next request may be sent: two buckets, and the time for which the vendor asked all to wait."""

    def __init__(self, hosted: Hosted, clock: Clock) -> None:
        self._clock, self._until = clock, 0.0
        self._requests = Bucket(hosted.requests_per_minute, clock)
        self._tokens = Bucket(hosted.tokens_per_minute, clock)

    async def wait(self, tokens: int) -> None:
        """Wait until a request of so many *tokens* may be sent."""
        asked = self._until - self._clock.now()
        seconds = max(asked, self._requests.take(1), self._tokens.take(tokens))
        if seconds > 0:
            await self._clock.sleep(seconds)

    def hold(self, seconds: float) -> None:
        """Send nothing for so many *seconds*."""
        self._until = max(self._until, self._clock.now() + seconds)

    def settle(self, estimated: int, used: int) -> None:
        """Correct the count of tokens when the vendor has reported the number used."""
        self._tokens.give(estimated - used)


class OverBudget(MirblabError):
    """The request costs more than the budget has left."""


class Ledger:
    """What this call spent, on disk before each request is sent, so that every process and later run counts it.

    One file per call in `<cache>/spending/` states what was or may have been paid: a lost answer counts in full, also
    after kill -9. `MIRBLAB_BUDGET` is for all models together, an entry's `budget` for its model.
    """

    def __init__(self, hosted: Hosted) -> None:
        self._hosted, self._budgets = hosted, read_budgets(hosted.entry)
        self._folder = paths.cache() / "spending"
        self._path = self._folder / f"{time.time_ns():019d}-{uuid.uuid4().hex[:12]}.json"
        self._paid = self._pending = 0
        self._ratio = 1.0  # how far the vendor's counts went above our estimates
        self._changed = asyncio.Condition()
        if self._budgets and hosted.price is None:
            raise MirblabError(
                f"{next(iter(self._budgets))} is set, but the price of '{hosted.model}' is not known; "
                "add price_per_million_tokens to its entry in encoders.toml"
            )

    def check(self, tokens: int) -> None:
        """Raise OverBudget, with the numbers, when so many *tokens* more would exceed a budget."""
        needed = self._dollars(self._paid + self._pending + tokens * self._ratio)
        for name, most in self._budgets.items():
            before = sum_spending(self._folder, None if name == BUDGET else self._hosted.model, self._path)
            if before + needed > most:
                here = self._dollars(self._paid + self._pending)
                raise OverBudget(
                    f"{tokens:,} tokens more with '{self._hosted.model}' cost about ${needed - here:.4f}; "
                    f"of the budget of ${most:.4f} ({name}) ${max(0.0, most - before - here):.4f} is left "
                    f"(what was spent is in {self._folder}); raise the budget, or take fewer texts"
                )

    async def reserve(self, tokens: int) -> None:
        """Count *tokens* as pending; wait for pending answers when they decide; raise OverBudget."""
        async with self._changed:
            while self._pending and not self._fits(tokens):
                await self._changed.wait()
            self.check(tokens)
            self._pending += tokens
            self._write()

    async def settle(self, estimated: int, used: int) -> None:
        """Count *used* tokens as paid in place of those *estimated*."""
        async with self._changed:
            self._pending -= estimated
            self._paid += used
            self._ratio = max(self._ratio, used / max(1, estimated))
            self._write()
            self._changed.notify_all()

    def _fits(self, tokens: int) -> bool:
        try:
            self.check(tokens)
        except OverBudget:
            return False
        return True

    def _dollars(self, tokens: float) -> float:
        return tokens * (self._hosted.price or 0.0) / 1e6

    def _write(self) -> None:
        if not self._hosted.price:
            return
        paid, pending = self._dollars(self._paid), self._dollars(self._pending)
        atomic_files.write_text(self._path, json.dumps({"model": self._hosted.model, "paid": paid, "pending": pending}))


def sum_spending(folder: Path, model: str | None = None, but: Path | None = None) -> float:
    """Return the dollars that the files in *folder* count, of one *model* or of all, except the file *but*."""
    bills = [_read_spending(path) for path in sorted(folder.glob("[!.]*.json")) if path != but]
    return sum((dollars for name, dollars in bills if model in (None, name)), 0.0)


def verify(folder: Path) -> list[str]:
    """Return a line for each unreadable file in *folder*; none is set aside, since it counts."""
    wrong = []
    for path in stored_files.sound_paths(folder):
        try:
            _read_spending(path)
        except (MirblabError, OSError) as error:
            wrong.append(str(error) if path.suffix == ".json" else stored_files.unknown_file_message(path))
    return wrong


def _read_spending(path: Path) -> tuple[str, float]:
    try:
        found = text_files.read_json(path)
        model, sums = found["model"], [found["paid"], found["pending"]]
        if any(type(dollars) not in (int, float) or not 0 <= dollars < math.inf for dollars in sums):
            raise MirblabError(f"{sums!r:.60} are no sums")
    except (ValueError, KeyError, TypeError) as error:
        raise MirblabError(f"{path} cannot be read ({error}); delete it to forget what it counts") from error
    return model, sum(sums)


class TooLarge(Exception):
    """The vendor refuses a batch for its size; the text is the vendor's message."""


class RetryLater(Exception):
    """An attempt failed in a way that may pass: the reason, and the seconds that the vendor asked to wait, or None."""


def explain_refusal(response: httpx.Response, hosted: Hosted) -> Exception:
    """Return the exception for a status other than 200; its text may repeat the key, so redact it."""
    status, host = response.status_code, hosted.host
    reason = error_message(response)
    message = f"{host} answers {status}" + (f": {reason}" if reason else "")
    if status == 413 or (status in (400, 422) and _TOO_LARGE.search(reason)):
        return TooLarge(message)
    if status in RETRIED_STATUSES and "insufficient_quota" not in reason:
        return RetryLater(message, retry_after(response.headers.get("Retry-After", "")))
    if 300 <= status < 400:
        target = urlsplit(response.headers.get("Location", "")).hostname or host
        return MirblabError(f"{message}; it points to {target}, where the key is not sent; if that is right, set url")
    variable, model = hosted.key_variable, hosted.model
    advice = {
        401: f"set the environment variable {variable} to a key that {host} accepts",
        402: "the account's credit is used up",
        403: f"the account of the key in {variable} may not use '{model}'",
        404: f"check model ('{model}') and url",
        429: "the account's quota is used up",
    }
    return MirblabError(f"{message}; {advice.get(status, 'check model, url and parameters')}")


def decode_json(response: httpx.Response) -> Any:
    """Return the JSON of a response, or None when it is none."""
    try:
        return response.json()
    except (ValueError, RecursionError):
        return None


def error_message(response: httpx.Response) -> str:
    """Return what the vendor says in an error's body, on one line of at most 300 characters."""
    found = decode_json(response)
    for name in ("error", "message", "detail"):
        if isinstance(found, dict) and found.get(name):
            found = found[name]
            break
    if isinstance(found, dict):
        found = " ".join(str(found[name]) for name in ("message", "code", "type") if found.get(name))
    text = str(found or response.text)
    return " ".join("".join(c if c.isprintable() else " " for c in text[:3_000]).split())[:300]


def retry_after(header: str) -> float | None:
    """Return the seconds that a Retry-After header asks for, in seconds or as a date; None when unreadable.

    >>> retry_after("7"), retry_after("Wed, 21 Oct 2015 07:28:00 GMT"), retry_after("soon")
    (7.0, 0.0, None)
    """
    if re.fullmatch(r"\d+(\.\d+)?", header.strip()):
        return float(header)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(header).timestamp() - time.time())
    except (ValueError, TypeError):
        return None


def share_to_keep(problem: str) -> float:
    """Return how much of a text to keep: by the two numbers of tokens in the vendor's message, else nine tenths.

    >>> round(share_to_keep("maximum context length is 8192 tokens, however you requested 16384 tokens"), 2)
    0.49
    """
    numbers = {int(number.replace(",", "")) for number in re.findall(r"(\d[\d,]*) tokens", problem)}
    return 0.98 * min(numbers) / max(numbers) if len(numbers) == 2 and min(numbers) else 0.9
