"""lean_views: Lean declarations in three views, and the tasks between them."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import shlex
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from mirblab.core import paths, registry
from mirblab.core.errors import MirblabError, unknown
from mirblab.core.terminal import say
from mirblab.sources.shared import builder, readers, release
from mirblab.sources.shared import release as releases
from mirblab.sources.shared.builder import CollectionRows, Row, replace_folders
from mirblab.sources.shared.release import Origin, Release

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
NAME, FILE = "mathlib-views", "views.jsonl.gz"
ADDRESS = "https://huggingface.co/datasets/FrenzyMath/mathlib_informal_v4.19.0"
SOURCE = "https://github.com/leanprover-community/mathlib4"
LICENCE = "Apache-2.0"
COLLECTIONS = tuple(f"views-{direction}" for direction in DIRECTIONS)
MODULES = ("all", "mathematics")
_KEYS = ("title", "task", "instruction")


def build(origin: str | Path | None, out: Path, *, modules: str = "all") -> list[Path]:
    """Write the table mathlib-views and the six collections views-* under *out*, and return the collections' folders.

    *origin* is views.jsonl, .jsonl.gz or .parquet, a folder or an archive that holds it, or a copy of a dataset
    mathlib_informal_v4.*. *modules* "mathematics" keeps declarations whose module's second component is one of the
    MELD paper's. All seven folders appear, or none; the same input gives the same bytes. Raises MirblabError, with
    file and line, and FileNotFoundError.
    """
    if modules not in MODULES:
        raise unknown("choice of modules", modules, MODULES)
    out, left_out = Path(out), Counter[str]()
    with (
        releases.open_release(origin, "views.jsonl, or a dataset mathlib_informal_v4.*,", ADDRESS) as release,
        replace_folders(out, (NAME, *COLLECTIONS)) as [table, *folders],
    ):
        files = find_view_files(release)
        rows = read_declarations(files, left_out)
        if modules == "mathematics":
            kept = [row for row in rows if is_mathematical(row["module"])]
            left_out["declarations of other modules"] = len(rows) - len(kept)
            rows = kept
        if not any(row["split"] == "test" for row in rows):
            raise MirblabError(
                f"{release.shown()}: none of {len(rows):,} declarations is in the split test; "
                "give data with such a split"
            )
        found = replace(release.origin, source=SOURCE)
        made: Row = {"builder": "views", "revision": releases.hash_files(files), "licence": LICENCE}
        made["options"] = {"modules": modules}
        write_views(table, rows, found, left_out, **made)
        for folder, direction in zip(folders, DIRECTIONS, strict=True):
            builder.write_collection(folder, view_collection(rows, direction), _about(folder.name), found, **made)
    return [out / name for name in COLLECTIONS]


def read_declarations(files: Sequence[Path], left_out: Counter[str]) -> list[Row]:
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
        for place, record in readers.read_rows(path, _READ, unused):
            row = _row(record, place, named[path] if by_file else "", unused)
            if row["id"] in seen:
                raise MirblabError(f"{place}: the id '{row['id']}' a second time, first in {seen[row['id']]}")
            seen[row["id"]] = place
            lacking = [view for view in VIEWS if not row[view]]
            left_out.update(f"declarations without a text for {view}" for view in lacking[:1])
            found += [] if lacking else [row]
    if not found:
        raise MirblabError(
            f"{release.join_names(files)}: no declaration with the views {', '.join(VIEWS)}; give data that has them"
        )
    return sorted(found, key=lambda row: row["id"])


def is_mathematical(module: str, modules: Sequence[str] = MATHEMATICS) -> bool:
    """Return whether the second component of a module's name is one of *modules*.

    >>> is_mathematical("Mathlib.Order.Lattice"), is_mathematical("Mathlib.Tactic.Ring"), is_mathematical("Mathlib")
    (True, False, False)
    """
    return module.split(".")[1:2] != [] and module.split(".")[1] in modules


def view_collection(rows: Sequence[Row], direction: str) -> CollectionRows:
    """Return one directed task: queries are one view of the rows of test, test_new and dev, documents another of all.

    A query and a document have the id of their declaration. In these splits only the declaration itself is relevant;
    in `test-identical` and the like also each one whose text repeats: the same text to be found, or the same text to
    ask with. Case counts, since Lean tells `=o[l]` from `=O[l]`.

    >>> rows = [{"id": f"d{n}", "split": "test", "informal": f"{n}", "type": "Nat"} for n in (1, 2)]
    >>> view_collection(rows, "informal-type").judged["test-identical"]
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
    return CollectionRows(
        [{"_id": row["id"], "title": "", "text": row[document]} for row in rows],
        [{"_id": row["id"], "text": row[query]} for mine in asked.values() for row in mine],
        judged,
    )


def write_views(
    folder: Path,
    rows: Sequence[Row],
    found: Origin,
    left_out: Counter[str],
    *,
    builder: str,
    revision: str,
    licence: str,
    options: Mapping[str, Any],
) -> None:
    """Write the *rows* as gzipped JSON lines and a card into *folder*, and print how many there are.

    The folder has no corpus, so that it is no collection. The same rows give the same bytes.
    """
    # Without a name and a date, which gzip would store.
    with (
        paths.write_atomically(folder / FILE) as path,
        paths.open_to_write(path) as raw,
        gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=0) as file,
    ):
        file.writelines((json.dumps(row, ensure_ascii=False) + "\n").encode() for row in rows)
    chosen = [word for name, value in options.items() for word in ("--set", f"{name}={value}")]
    counts, reasons = count_declarations(rows), {reason: n for reason, n in sorted(left_out.items()) if n}
    card = {
        "name": folder.name,
        "title": "Lean declarations in three views: informal, signature and type",
        "source": found.source,
        "licence": licence,
        "revision": found.commit or revision,
        "command": shlex.join(["mirblab", "build", builder, "--from", found.shown, *chosen]),
        "counts": {**counts, "left_out": reasons},
    }
    _write(folder / "card.toml", card)
    say(f"{folder.name}: {', '.join(f'{name} {count:,}' for name, count in counts.items())}")
    for reason, count in reasons.items():
        say(f"  left out or odd: {count:>6,}  {reason}")


def count_declarations(rows: Sequence[Row]) -> dict[str, int]:
    """Return how many declarations there are, by split, and how many texts of each view repeat another one.

    Types are counted apart for theorems and for other declarations, since those of definitions repeat far more often.
    A text that n rows share counts n - 1 times.

    >>> rows = [{"split": "test", "kind": "def", "informal": t, "signature": t, "type": "Nat"} for t in ("a", "b")]
    >>> count_declarations(rows)["repeated types of others"]
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


def find_view_files(release: Release) -> list[Path]:
    """Return the files that hold the rows: the one named `views`, else all JSON lines, or all parquet files, there are.

    Raises FileNotFoundError when there are none.
    """
    named = r"views\.(?:jsonl|jsonl\.gz|parquet)"
    if release.matching(named):
        return [release.one(named, "views.jsonl, .jsonl.gz or .parquet")]
    for pattern in (r"[^/]*\.jsonl(?:\.gz)?", r"[^/]*\.parquet"):
        if found := release.matching(pattern):
            return found
    raise FileNotFoundError(
        f"no {' or '.join(FORMS)} file in {release.origin.folder}; found {release.shown()}; "
        "give the folder that holds one"
    )


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
        return ".".join(readers.read_text_list(record, key, place))
    return str(readers.read_field(record, key, str, place)).strip()


def _split(record: Row, name: str, place: str, by_file: str) -> str:
    given = str(record.get("split") or by_file or draw_split(name, (80, 10)))
    split = _OTHER_SPLITS.get(given, given)
    if split not in SPLITS:
        raise MirblabError(f"{place}: {unknown('split', split, SPLITS)}")
    return split


def draw_split(name: str, percent: tuple[int, int]) -> str:
    """Return the split that the md5 of a name draws: *percent* of train and of dev, the rest is test.

    >>> [draw_split(name, (50, 10)) for name in ("add_pow", "Nat.add_comm", "bezout")]
    ['test', 'train', 'train']
    """
    place = int(hashlib.md5(name.encode(), usedforsecurity=False).hexdigest()[:8], 16) % 100
    return "train" if place < percent[0] else "dev" if place < sum(percent) else "test"


def _split_of(name: str) -> str:
    """Return the split that a file's name says, or ""."""
    match = _SHARD.fullmatch(name)
    split = _OTHER_SPLITS.get(match["split"], match["split"]) if match else ""
    return split if split in SPLITS else ""


def _by_text(rows: Sequence[Row], view: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for row in rows:
        found[row[view]].append(row["id"])
    return found


def _repeated(rows: Sequence[Row], view: str) -> int:
    return len(rows) - len({row[view] for row in rows})


def _write(path: Path, card: Row) -> None:
    import tomli_w

    paths.write_text(path, tomli_w.dumps(card))


def _about(name: str) -> Row:
    entry = registry.read_registry("collections")[name]
    return {key: entry[key] for key in _KEYS}
