"""builders: which raw source makes which collections."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from mirblab import paths
from mirblab.errors import MirblabError, unknown
from mirblab.sources import mini, stacks


def build(source: str, origin: str = "") -> list[Path]:
    """Build the collections of a *source* under the data folder and return their folders.

    *origin* is a folder, an archive or a URL ("": the source's public repository). Raises MirblabError with a
    suggestion for an unknown source.
    """
    if source not in BUILDERS:
        raise unknown("source", source, BUILDERS)
    return BUILDERS[source](origin)


def _mini(origin: str) -> list[Path]:
    if origin:
        raise MirblabError("mini is built from the bundled cards; leave --from out")
    return [mini.build(name, paths.data() / name) for name in mini.COLLECTIONS]


def _stacks(origin: str) -> list[Path]:
    return stacks.build(origin or None, paths.data())


BUILDERS: dict[str, Callable[[str], list[Path]]] = {"mini": _mini, "stacks": _stacks}
