"""views_tasks: the six directed tasks between the views of Lean declarations, row by row."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from mirblab.sources.shape import Parts, Row

# In the order of the MELD paper's Tables 6 to 11.
DIRECTIONS = {
    "informal-type": ("informal", "type"),
    "type-informal": ("type", "informal"),
    "informal-signature": ("informal", "signature"),
    "signature-informal": ("signature", "informal"),
    "type-signature": ("type", "signature"),
    "signature-type": ("signature", "type"),
}
ASKED = ("test", "test_new", "dev")
IDENTICAL = "-identical"  # behind the name of a split
THEOREMS = ("theorem", "lemma")


def parts(rows: Sequence[Row], direction: str) -> Parts:
    """Return one directed task: queries are one view of the rows of test, test_new and dev, documents another of all.

    A query and a document have the id of their declaration. In these splits only the declaration itself is relevant;
    in `test-identical` and the like also each one whose text repeats: the same text to be found, or the same text to
    ask with. Case counts, since Lean tells `=o[l]` from `=O[l]`.

    >>> rows = [{"id": f"d{n}", "split": "test", "informal": f"{n}", "type": "Nat"} for n in (1, 2)]
    >>> parts(rows, "informal-type").judged["test-identical"]
    [('d1', 'd1', 1), ('d1', 'd2', 1), ('d2', 'd1', 1), ('d2', 'd2', 1)]
    """
    query, document = DIRECTIONS[direction]
    asked = {split: mine for split in ASKED if (mine := [row for row in rows if row["split"] == split])}
    same = [(view, _by_text(rows, view)) for view in (query, document)]
    judged: dict[str, list[tuple[str, str, int]]] = {}
    for split, mine in asked.items():
        judged[split] = [(row["id"], row["id"], 1) for row in mine]
        equal = {row["id"]: {name for view, found in same for name in found[row[view]]} for row in mine}
        judged[split + IDENTICAL] = [(name, other, 1) for name, others in equal.items() for other in sorted(others)]
    return Parts(
        [{"_id": row["id"], "title": "", "text": row[document]} for row in rows],
        [{"_id": row["id"], "text": row[query]} for mine in asked.values() for row in mine],
        judged,
    )


def _by_text(rows: Sequence[Row], view: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for row in rows:
        found[row[view]].append(row["id"])
    return found


def counts(rows: Sequence[Row]) -> dict[str, int]:
    """Return how many declarations there are, by split, and how many texts of each view repeat another one.

    Types are counted apart for theorems and for other declarations, since those of definitions repeat far more often.
    A text that n rows share counts n - 1 times.

    >>> rows = [{"split": "test", "kind": "def", "informal": t, "signature": t, "type": "Nat"} for t in ("a", "b")]
    >>> counts(rows)["repeated types of others"]
    1
    """
    theorems = [row for row in rows if row["kind"] in THEOREMS]
    others = [row for row in rows if row["kind"] not in THEOREMS]
    return {
        "declarations": len(rows),
        "theorems and lemmas": len(theorems),
        **dict(sorted(Counter(row["split"] for row in rows).items())),
        "repeated informal texts": _repeated(rows, "informal"),
        "repeated signatures": _repeated(rows, "signature"),
        "repeated types of theorems": _repeated(theorems, "type"),
        "repeated types of others": _repeated(others, "type"),
    }


def _repeated(rows: Sequence[Row], view: str) -> int:
    return len(rows) - len({row[view] for row in rows})
