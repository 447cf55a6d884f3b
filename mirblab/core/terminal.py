"""Text and progress bars in a terminal."""

from __future__ import annotations

import io
import os
import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol, TextIO

if TYPE_CHECKING:
    from rich.console import Console

PROGRESS = "MIRBLAB_PROGRESS"  # "0": no bars

# Controls (C0 without tab and line end, DEL, C1), signs that change the direction of writing or begin a new line,
# halves of characters (lone surrogates), and invisible copies of ASCII.
_CONTROLS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\U000e0000-\U000e007f]"
)


def safe_text(text: object) -> str:
    """Return a text with escapes for control characters except tabs and line ends, so that a terminal obeys none."""
    return _CONTROLS.sub(lambda match: match[0].encode("unicode_escape").decode(), str(text))


def say(text: object, *, to: TextIO | None = None) -> None:
    """Print one text, made safe; characters that the stream cannot carry are replaced. *to* None: standard output."""
    stream = to or sys.stdout
    encoding = getattr(stream, "encoding", None) or "utf-8"
    print(safe_text(text).encode(encoding, "backslashreplace").decode(encoding), file=stream, flush=True)


def escape_what_streams_cannot_carry() -> None:
    """Have characters that standard output or standard error cannot carry printed as escapes, by any library."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # and not what a program put in its place
            stream.reconfigure(errors="backslashreplace")


def say_warnings() -> None:
    """Have warnings printed as one safe line each on standard error, without the line of our code that gave them."""
    warnings.showwarning = lambda message, *_, **__: say(f"mirblab: {message}", to=sys.stderr)


def console(**options: Any) -> Console:
    """Return a console of rich on standard output that prints every text safely, without markup and emoji."""
    from rich.console import Console

    class _Plain(Console):
        def render_str(self, text: str, **how: Any) -> Any:
            return super().render_str(safe_text(text), **how | {"markup": False, "emoji": False})

    return _Plain(highlight=False, markup=False, emoji=False, **options)


class ProgressBar(Protocol):
    """Anything that shows how much has been done."""

    def update(self, n: int = 1) -> object:
        """Count *n* more units as done."""

    def set_postfix_str(self, text: str) -> object:
        """Show *text* behind the bar."""


@contextmanager
def progress(total: int | None, label: str, unit: str = "it") -> Iterator[ProgressBar]:
    """Yield a bar over *total* units; it appears after one second and is silent when `MIRBLAB_PROGRESS=0`."""
    from tqdm.auto import tqdm

    silent, text = os.environ.get(PROGRESS) == "0", safe_text(label)
    with tqdm(total=total, desc=text, unit=f" {unit}", delay=1, mininterval=0.5, leave=False, disable=silent) as bar:
        yield bar
