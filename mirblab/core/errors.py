"""errors: the project's exception, and suggestions for misspelt names."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from pathlib import Path


class MirblabError(ValueError):
    """Something the user gave cannot be used; the message says what, what was found, and what to do.

    >>> from mirblab.sources.catalogue import load
    >>> try:
    ...     load("mini-qq")
    ... except MirblabError as error:
    ...     print(str(error)[-25:])
    ; did you mean 'mini-qa'?
    """


class StorageError(MirblabError):
    """A file cannot be written: the disk is full, or the rights are missing; nothing was half-written."""

    def __init__(self, message: str, path: Path, is_read_only: bool) -> None:
        """Keep the *path* that cannot be written, and whether that is so for all files there, however small."""
        super().__init__(message, path, is_read_only)
        self.path, self.is_read_only = path, is_read_only

    def __str__(self) -> str:
        """Return the message alone."""
        return str(self.args[0])


def suggest(name: str, known: Iterable[str]) -> str:
    """Return "; did you mean 'x'?" for the nearest of *known*, or an empty string when none is near.

    >>> suggest("stack-qa", ["stacks-qa", "mini-qa"])
    "; did you mean 'stacks-qa'?"
    >>> suggest("stacks", ["stacks-with-many-words", "mini-qa"])  # the only one that begins so
    "; did you mean 'stacks-with-many-words'?"
    >>> suggest("zzz", ["stacks-qa"])
    ''
    """
    folded = {candidate.lower(): candidate for candidate in known}
    near = difflib.get_close_matches(name.lower(), folded, n=1, cutoff=0.6)
    longer = [candidate for candidate in folded if len(name) > 2 and candidate.startswith(name.lower())]
    near = near or (longer if len(longer) == 1 else [])
    return f"; did you mean '{folded[near[0]]}'?" if near else ""


def unknown(kind: str, name: str, known: Iterable[str]) -> MirblabError:
    """Return the error for a *name* that is none of *known*, with what was found and the nearest one.

    >>> str(unknown("collection", "stack-qa", ["stacks-qa"]))
    "no collection 'stack-qa'; found stacks-qa; did you mean 'stacks-qa'?"
    """
    names = sorted(known)
    shown = ", ".join(names[:30]) + (f", and {len(names) - 30} more" if len(names) > 30 else "")
    return MirblabError(f"no {kind} '{name}'; found {shown or 'none'}{suggest(name, names)}")
