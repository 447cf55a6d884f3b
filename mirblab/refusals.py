"""refusals: what a vendor's answer other than vectors means: try again, send less, or stop and say what to do."""

from __future__ import annotations

import email.utils
import re
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from mirblab.errors import MirblabError
from mirblab.hosted import Hosted

if TYPE_CHECKING:
    import httpx

AGAIN = (408, 429, 500, 502, 503, 504, 529)
_TOO_LARGE = re.compile(
    r"(?i)max_tokens_per_request|(context|input) length|too many (tokens|inputs|texts)|too (long|large)|batch size"
    r"|tokens? .{0,40}(limit|exceed)|exceed.{0,60}(token|length)|max\w* .{0,30}tokens|number of texts"
)


class TooLarge(Exception):
    """The vendor refuses a batch for its size; the text is what it said."""


class Again(Exception):
    """An attempt failed in a way that may pass: what happened, and the seconds to wait that were asked for or None."""


def refusal(response: httpx.Response, hosted: Hosted) -> Exception:
    """Return what an answer other than 200 means; vendors echo keys, so redact its text before it is shown."""
    status, host = response.status_code, hosted.host
    said = message(response)
    told = f"{host} answers {status}" + (f": {said}" if said else "")
    if status == 413 or (status in (400, 422) and _TOO_LARGE.search(said)):
        return TooLarge(told)
    if status in AGAIN and "insufficient_quota" not in said:
        return Again(told, retry_after(response.headers.get("Retry-After", "")))
    if 300 <= status < 400:
        target = urlsplit(response.headers.get("Location", "")).hostname or host
        return MirblabError(f"{told}; it points to {target}, where the key is not sent; if that is right, set url")
    variable, model = hosted.key_variable, hosted.model
    advice = {
        401: f"set the environment variable {variable} to a key that {host} accepts",
        402: "the account's credit is used up",
        403: f"the account of the key in {variable} may not use '{model}'",
        404: f"check model ('{model}') and url",
        429: "the account's quota is used up",
    }
    return MirblabError(f"{told}; {advice.get(status, 'check model, url and parameters')}")


def decoded(response: httpx.Response) -> Any:
    """Return the JSON of a response, or None when it is none."""
    try:
        return response.json()
    except (ValueError, RecursionError):
        return None


def message(response: httpx.Response) -> str:
    """Return what the vendor says in an error's body, on one line of at most 300 characters."""
    found = decoded(response)
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


def share(problem: str) -> float:
    """Return how much of a text to keep: by the two numbers of tokens in the vendor's message, else nine tenths.

    >>> round(share("maximum context length is 8192 tokens, however you requested 16384 tokens"), 2), share("too long")
    (0.49, 0.9)
    """
    numbers = {int(number.replace(",", "")) for number in re.findall(r"(\d[\d,]*) tokens", problem)}
    return 0.98 * min(numbers) / max(numbers) if len(numbers) == 2 and min(numbers) else 0.9
