"""views_rows: Lean declarations in three views, read from views.jsonl or from FrenzyMath's layout and checked."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from mirblab.errors import MirblabError, unknown
from mirblab.sources import places, release, rows
from mirblab.sources.shape import Row

VIEWS = ("informal", "signature", "type")
SPLITS = ("train", "dev", "test", "test_new", "new_extra")
COLUMNS = ("id", "module", "kind", "split", *VIEWS)
FORMS = (".jsonl", ".parquet")
# The second components of modules that are mathematics rather than Lean's own machinery (MELD paper, Appendix A).
MATHEMATICS = (
    "Algebra", "AlgebraicGeometry", "AlgebraicTopology", "Analysis", "CategoryTheory", "Combinatorics",
    "Computability", "Condensed", "Control", "Data", "Dynamics", "FieldTheory", "Geometry", "GroupTheory",
    "InformationTheory", "LinearAlgebra", "Logic", "MeasureTheory", "ModelTheory", "NumberTheory", "Order",
    "Probability", "RepresentationTheory", "RingTheory", "SetTheory", "Topology",
)  # fmt: skip
# Ours, and what mathlib_informal_v4.* calls it; there names and modules are lists of their parts.
_NAMES = {
    "id": ("id", "name"),
    "module": ("module", "module_name"),
    "kind": ("kind",),
    "informal": ("informal", "informal_description"),
    "signature": ("signature",),
    "type": ("type",),
}
_READ = [*dict.fromkeys(name for names in _NAMES.values() for name in names), "split", "names_itself"]
_OTHER_SPLITS = {"val": "dev", "valid": "dev", "validation": "dev"}
_SHARD = re.compile(r"(?P<split>[a-z_]+?)(?:[-_]\d+(?:-of-\d+)?)?\.(?:jsonl|jsonl\.gz|parquet)")


def read(files: Sequence[Path], left_out: Counter[str]) -> list[Row]:
    """Return one row per declaration, sorted by id: the `COLUMNS`, and `names_itself` where the source has it.

    Texts are stripped. A row without a split takes it from its file's name when the files are named by splits, else
    from the md5 of its id: one of ten is test, one dev. Rows that lack a view are counted in *left_out*. Raises
    MirblabError, with file and line, for a column that is missing, a repeated id, an unknown split and broken rows.
    """
    named = {path: _split_of(path.name) for path in files}
    by_file = len(set(named.values())) > 1 and all(named.values())
    seen: dict[str, str] = {}
    found: list[Row] = []
    for path in files:
        unused: Counter[str] = Counter()
        for number, record in rows.read(path, _READ, unused):
            place = rows.place(path, number)
            row = _row(record, place, named[path] if by_file else "", unused)
            if row["id"] in seen:
                raise MirblabError(f"{place}: the id '{row['id']}' a second time, first in {seen[row['id']]}")
            seen[row["id"]] = place
            lacking = [view for view in VIEWS if not row[view]]
            left_out.update(f"declarations without a text for {view}" for view in lacking[:1])
            found += [] if lacking else [row]
    if not found:
        raise MirblabError(
            f"{places.shown(files)}: no declaration with the views {', '.join(VIEWS)}; give data that has them"
        )
    return sorted(found, key=lambda row: row["id"])


def _row(record: Row, place: str, split: str, unused: Iterable[str]) -> Row:
    keys = {ours: next((name for name in names if name in record), "") for ours, names in _NAMES.items()}
    absent = [" or ".join(_NAMES[ours]) for ours, name in keys.items() if not name]
    if absent:
        shown = ", ".join([*record, *unused]) or "none"
        raise MirblabError(f"{place}: no column {', no column '.join(absent)}; found {shown}")
    row = {ours: _text(record, name, place) for ours, name in keys.items()}
    row["id"] = "_".join(row["id"].split())
    if not row["id"]:
        raise MirblabError(f"{place}: '{keys['id']}' is empty; every declaration needs its name")
    row["split"] = _split(record, row["id"], place, split)
    more = {"names_itself": bool(record["names_itself"])} if record.get("names_itself") is not None else {}
    return {name: row[name] for name in COLUMNS} | more


def _text(record: Row, key: str, place: str) -> str:
    """Return a text, stripped; the parts of a name joined by dots; "" for what is missing."""
    if record[key] is None:
        return ""
    if isinstance(record[key], list):
        return ".".join(release.texts(record, key, place))
    return str(release.field(record, key, str, place)).strip()


def _split(record: Row, name: str, place: str, by_file: str) -> str:
    given = str(record.get("split") or by_file or drawn(name, (80, 10)))
    split = _OTHER_SPLITS.get(given, given)
    if split not in SPLITS:
        raise MirblabError(f"{place}: {unknown('split', split, SPLITS)}")
    return split


def _split_of(name: str) -> str:
    """Return the split that a file's name says, or ""."""
    match = _SHARD.fullmatch(name)
    split = _OTHER_SPLITS.get(match["split"], match["split"]) if match else ""
    return split if split in SPLITS else ""


def drawn(name: str, percent: tuple[int, int]) -> str:
    """Return the split that the md5 of a name draws: *percent* of train and of dev, the rest is test.

    >>> [drawn(name, (50, 10)) for name in ("add_pow", "Nat.add_comm", "bezout")]
    ['test', 'train', 'train']
    """
    place = int(hashlib.md5(name.encode(), usedforsecurity=False).hexdigest()[:8], 16) % 100
    return "train" if place < percent[0] else "dev" if place < sum(percent) else "test"


def of_mathematics(module: str, modules: Sequence[str] = MATHEMATICS) -> bool:
    """Return whether the second component of a module's name is one of *modules*.

    >>> of_mathematics("Mathlib.Order.Lattice"), of_mathematics("Mathlib.Tactic.Ring"), of_mathematics("Mathlib")
    (True, False, False)
    """
    return module.split(".")[1:2] != [] and module.split(".")[1] in modules
