"""The project's exceptions, and suggestions for misspelt names."""

from __future__ import annotations

import difflib
import traceback
from collections.abc import Iterable, Mapping
from pathlib import Path

from mirblab.core.wording import first_names


class MirblabError(ValueError):
    """An input that cannot be used; the message says what is wrong, what was found, and what to do.

    >>> from mirblab.sources.catalogue import load
    >>> try:
    ...     load("mini-qq")
    ... except MirblabError as error:
    ...     print(str(error)[:54])
    no collection 'mini-qq'; did you mean 'mini-qa'? Known
    """

    def _render_traceback_(self) -> list[str]:
        """Return what IPython shows: the lines of the user's cells and the message, without the frames of libraries."""
        frames = [one for one in traceback.extract_tb(self.__traceback__) if _is_cell(one.filename)]
        return [*(f"Line {one.lineno} of the cell: {one.line}" for one in frames), f"{type(self).__name__}: {self}"]


class StorageError(MirblabError):
    """A file that cannot be written, because the disk is full or rights are missing; no part of it was written."""

    def __init__(self, message: str, path: Path, is_read_only: bool) -> None:
        """Keep the *path*, and whether not even an empty file can be written there (*is_read_only*)."""
        super().__init__(message, path, is_read_only)
        self.path, self.is_read_only = path, is_read_only

    def __str__(self) -> str:
        return str(self.args[0])


class MissingFileError(MirblabError, FileNotFoundError):
    """A file or folder that is not there; the message says what is there, or what makes it."""


def _is_cell(file: str) -> bool:
    """Return whether code comes from a cell: ipykernel names a file for each, IPython gives each a name in <>."""
    return "ipykernel_" in file or file.startswith("<ipython-input")


def suggest(name: str, known: Iterable[str]) -> str:
    """Return "; did you mean 'x'?" for the most similar of *known*, or an empty string when none is similar.

    >>> suggest("stack-qa", ["stacks-qa", "mini-qa"]), suggest("zzz", ["stacks-qa"])
    ("; did you mean 'stacks-qa'?", '')
    >>> suggest("stacks", ["stacks-with-many-words", "mini-qa"])  # the only one that begins so
    "; did you mean 'stacks-with-many-words'?"
    """
    folded = {candidate.lower(): candidate for candidate in known}
    near = difflib.get_close_matches(name.lower(), folded, n=1, cutoff=0.6)
    longer = [candidate for candidate in folded if len(name) > 2 and candidate.startswith(name.lower())]
    near = near or (longer if len(longer) == 1 else [])
    return f"; did you mean '{folded[near[0]]}'?" if near else ""


def unknown(kind: str, name: str, known: Iterable[str]) -> MirblabError:
    """Return the error for a *name* that is not among *known*: first the nearest of these, then at most five."""
    names = sorted(known)
    nearest, shown = suggest(name, names), first_names(names, 5, "none")
    return MirblabError(f"no {kind} '{name}'{f'{nearest} Known:' if nearest else '; found'} {shown}")


def check_known(kind: str, names: str | Iterable[str], known: Iterable[str]) -> None:
    """Raise the error of `unknown` for the first of *names*, one or several, that is not among *known*."""
    known = list(known)
    for name in [names] if isinstance(names, str) else names:
        if name not in known:
            raise unknown(kind, name, known)


def check_positive(**numbers: int) -> None:
    """Raise MirblabError, with its name, for the first of the *numbers* that is below 1."""
    _check_at_least(1, numbers)


def check_not_negative(**numbers: int) -> None:
    """Raise MirblabError, with its name, for the first of the *numbers*, such as a seed, that is below 0."""
    _check_at_least(0, numbers)


def _check_at_least(least: int, numbers: Mapping[str, int]) -> None:
    for name, number in numbers.items():
        if number < least:
            raise MirblabError(f"{name} must be at least {least}, found {number}")
