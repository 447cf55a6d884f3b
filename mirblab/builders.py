"""builders: which raw source makes which collections."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mirblab import paths
from mirblab.errors import MirblabError, unknown
from mirblab.sources import (
    arqmath,
    blueprints,
    hard,
    holstep,
    hub,
    leandojo,
    mapl,
    mathlib_informal,
    meld,
    metamath,
    mini,
    naturalproofs,
    ntcir,
    own,
    rocq,
    stackexchange,
    stacks,
    views,
)
from mirblab.sources.origin import together


def build(source: str, origin: str = "", **options: Any) -> list[Path]:
    """Build the collections of a *source* under the data folder and return their folders.

    *origin* is a folder, an archive or a URL ("": the source's public repository); the *options* are those of the
    source's builder, such as `name` and `seed`. Raises MirblabError with a suggestion for an unknown source, and
    for an option that the source does not have.

    >>> [folder.name for folder in build("mini")][:2]
    ['mini-mathlib', 'mini-mse-dup']
    """
    if source in hub.datasets():
        return hub.build(origin or None, paths.data(), names=[source])
    if source not in BUILDERS:
        raise unknown("source", source, [*BUILDERS, *hub.datasets()])
    builder = BUILDERS[source]
    known = list(inspect.signature(builder).parameters)[2:]
    for option in options:
        if option not in known:
            raise MirblabError(f"'{source}' cannot be built with --set {option}=...; it takes {_options(known)}")
    return builder(origin or None, paths.data(), **options)


def harden(name: str, *, near: int = 5, seed: int = 0) -> list[Path]:
    """Return the folders of <name>-hard and <name>-hard-pool, made from a collection of statements and proofs.

    They stand in the cache, not among the collections that suites find; `build("hard", name)` puts them there. See
    `sources.hard.build` for what they hold, and for *near* and *seed*.

    >>> [folder.name for folder in harden("mini-stacks", near=1)]  # doctest: +ELLIPSIS
    mini-stacks-hard: documents ...
    ['mini-stacks-hard', 'mini-stacks-hard-pool']
    """
    return hard.build(name, paths.cache() / "collections", seed=seed, near=near)


def collect(origin: str = "", **options: Any) -> list[Path]:
    """Return the folders of the collections made from one's own files, or from the two bundled examples ("").

    They stand in the cache, not among the collections that suites find; `build("own", origin)` puts them there. See
    `sources.own.build` for the *options*.

    >>> [folder.name for folder in collect()]  # doctest: +ELLIPSIS
    own-latex: 2 .tex files, 12 statements...
    ['own-latex-qa', 'own-latex-premise', 'own']
    """
    examples = [paths.bundled("data", "examples", name) for name in ("own-latex", "own.csv")]
    into = paths.cache() / "collections"
    return [folder for one in ([origin] if origin else examples) for folder in own.build(one, into, **options)]


def _options(names: list[str]) -> str:
    return ", ".join(f"--set {name}=..." for name in names) or "--from only"


def _mini(origin: str | None, out: Path) -> list[Path]:
    if origin:
        raise MirblabError("mini is built from the bundled cards; leave --from out")
    names = tuple(mini.COLLECTIONS)
    with together(out, names) as folders:  # a half without its card would be read, with other rules
        for name, folder in zip(names, folders, strict=True):
            mini.build(name, folder)
    return [out / name for name in names]


BUILDERS: dict[str, Callable[..., list[Path]]] = {
    "arqmath": arqmath.build,
    "blueprints": blueprints.build,
    "hard": hard.build,
    "holstep": holstep.build,
    "leandojo": leandojo.build,
    "mapl": mapl.build,
    "mathlib-informal": mathlib_informal.build,
    "meld": meld.build,
    "metamath": metamath.build,
    "mini": _mini,
    "mirb": hub.build,
    "naturalproofs": naturalproofs.build,
    "ntcir": ntcir.build,
    "own": own.build,
    "rocq": rocq.build,
    "stackexchange": stackexchange.build,
    "stacks": stacks.build,
    "views": views.build,
}
