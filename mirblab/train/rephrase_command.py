"""rephrase_command: what `mirblab rephrase` does and prints: which statements, how many are usable, and where."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from mirblab.errors import unknown
from mirblab.terminal import say
from mirblab.train import texts
from mirblab.train.endpoint import chat
from mirblab.train.rephrase import rephrase
from mirblab.views import in_modules, views


def run(
    source: str,
    *,
    rules: bool = False,
    model: str = "",
    url: str = "",
    negatives: bool = False,
    out: str | Path = "",
    seed: int = 0,
    limits: dict[str, Any] | None = None,
    **choice: Any,
) -> int:
    """Write new texts for the statements of a table of views, print what became of them, and return the exit status.

    *rules*: by `texts.by_rules`, without a model; *limits* are those of `endpoint.chat`, *choice* is that of `chosen`.
    130 after Ctrl-C: what came back by then is kept, and the same command goes on from there.
    """
    rows = chosen(views(source), seed=seed, **choice)
    say(f"{source}: {len(rows):,} statements")
    if rules:
        found = texts.by_rules(rows, seed, with_negatives=negatives)
        lines = [f"rules: {(found.rephrasing != '').sum():,} of {len(found):,} statements reworded"]
    else:
        service = chat(model, url, **(limits or {}))
        try:
            made = rephrase(rows, service, with_negatives=negatives)
        except KeyboardInterrupt:
            say("stopped; every answer that came is kept: the same command goes on from there", to=sys.stderr)
            return 130
        found, lines = made.table, made.summary()
    for line in lines:
        say(f"  {line}")
    if negatives:
        counts = (found[list(texts.NEGATIVES)] != "").sum(axis=1)
        say(f"  wrong versions: {counts.sum():,}, of {(counts > 0).sum():,} statements")
    say(f"in {texts.save(found, out or texts.default(source))}")
    return 0


def chosen(
    table: pd.DataFrame,
    *,
    split: str = "train",
    kinds: Sequence[str] = (),
    modules: str = "all",
    limit: int = 0,
    seed: int = 0,
) -> pd.DataFrame:
    """Return the rows of a table of views that are to be said anew, in their order.

    *split* "" and *kinds* () mean all; *modules* "mathematics" is the MELD paper's filter, *limit* a sample of that
    size drawn by *seed*, 0 all. Raises MirblabError for a split, kinds or modules that are not there.

    >>> chosen(views("mini-views"), split="", kinds=["instance"]).kind.unique().tolist()
    ['instance']
    """
    for column, wanted in (("split", [split] if split else []), ("kind", list(kinds))):
        known = set(table[column])
        for name in wanted:
            if name not in known:
                raise unknown(f"{column} of the views called", name, known)
        table = table[table[column].isin(wanted)] if wanted else table
    if modules not in ("all", "mathematics"):
        raise unknown("choice of modules", modules, ("all", "mathematics"))
    table = in_modules(table) if modules == "mathematics" else table
    return table.sample(limit, random_state=seed).sort_index() if 0 < limit < len(table) else table
