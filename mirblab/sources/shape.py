"""shape: what every builder makes of its source, written with a card that counts what was left out."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mirblab import folder as on_disk
from mirblab import registry
from mirblab.sources.origin import Origin
from mirblab.terminal import say

Row = dict[str, Any]


@dataclass
class Parts:
    """One collection to be written: rows of corpus and queries, judgements by split, and what was left out.

    `corpus` and `queries` may be generators, so that nothing has to fit in memory; `left_out` may count while
    they run. `judged` has (query, document, relevance) by split.
    """

    corpus: Iterable[Row]
    queries: Iterable[Row]
    judged: dict[str, list[tuple[str, str, int]]]
    left_out: Counter[str] = field(default_factory=Counter)


def save(
    folder: Path,
    parts: Parts,
    about: Row,
    found: Origin,
    *,
    builder: str,
    revision: str,
    licence: str,
    options: Mapping[str, Any] | None = None,
) -> Path:
    """Write one collection into *folder*, with its card, print how much there is and what was left out, and why.

    *about* goes into the card as it is (title, task, instruction, candidates, relevance_levels ...); with `follows`,
    the published collection that this one rebuilds, the card gets the name that the registry says it is printed
    under. *builder* is the word after `mirblab build`, *options* what was set there. Returns *folder*.
    """
    counts: Counter[str] = Counter()
    origin = ["--from", found.shown] if found.shown else []
    chosen = [word for name, value in (options or {}).items() for word in ("--set", f"{name}={value}")]
    facts = {
        "name": folder.name,
        "relevance_levels": [0, 1],
        "relevant_from": 1,
        **_printed(about),
        "source": found.source,
        "licence": licence,
        "revision": found.commit or revision,
        "command": shlex.join(["mirblab", "build", builder, *origin, *chosen]),
    }

    def card() -> Row:
        left_out = {reason: count for reason, count in sorted(parts.left_out.items()) if count}
        return facts | {"counts": {**counts, **_judgements(parts), "left_out": left_out}}

    corpus, queries = (
        _counted(rows, counts, what) for rows, what in ((parts.corpus, "documents"), (parts.queries, "queries"))
    )
    on_disk.write(folder, corpus, queries, parts.judged, card)
    _report(folder.name, card()["counts"])
    return folder


def _printed(about: Row) -> Row:
    """Return *about* with the printed name of what it follows: `paper`, or `group` where several share one column."""
    entry = registry.read("collections")[about["follows"]] if "follows" in about else {}
    return about | {key: entry[key] for key in ("paper", "group") if key in entry}


def _counted(rows: Iterable[Row], counts: Counter[str], what: str) -> Iterator[Row]:
    for row in rows:
        counts[what] += 1
        yield row


def _judgements(parts: Parts) -> Row:
    counts: Row = {}
    for split, pairs in parts.judged.items():
        counts |= {f"queries_{split}": len({query for query, *_ in pairs}), f"judgements_{split}": len(pairs)}
    return counts


def _report(name: str, counts: Row) -> None:
    shown = ", ".join(f"{key.replace('_', ' ')} {value:,}" for key, value in counts.items() if key != "left_out")
    say(f"{name}: {shown}")
    for reason, count in counts["left_out"].items():
        say(f"  left out or odd: {count:>6,}  {reason}")


def folded(text: str) -> str:
    """Return *text* as it counts for repeats: case folded, blanks of every kind as one.

    >>> folded("A  Ring\\n")
    'a ring'
    """
    return " ".join(text.casefold().split())
