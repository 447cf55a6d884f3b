"""lean_views: Lean declarations in three views, and the tasks between them."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from mirblab.core import atomic_files
from mirblab.core.errors import MirblabError, MissingFileError, check_known, unknown
from mirblab.sources.shared import builder, readers
from mirblab.sources.shared import release as releases
from mirblab.sources.shared.builder import CollectionRows, Judgement, Row, build_command, print_counts, replace_folders
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
# Our columns and their names in mathlib_informal_v4.*, where names and modules are lists of parts.
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


def build(origin: str | Path | None, out: Path, *, modules: str = "all") -> list[Path]:
    """Write the table mathlib-views and the six collections views-* under *out*; return the collections' folders.

    *origin* is views.jsonl, .jsonl.gz or .parquet, a folder or archive with it, or a dataset mathlib_informal_v4.*.
    *modules* "mathematics" keeps declarations whose module's second component is in `MATHEMATICS`.
    """
    check_known("choice of modules", modules, MODULES)
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
        source = replace(release.origin, source=SOURCE)
        how: Row = {"builder": "views", "revision": releases.hash_files(files), "licence": LICENCE}
        how["options"] = {"modules": modules}
        write_views(table, rows, source, left_out, **how)
        for folder, direction in zip(folders, DIRECTIONS, strict=True):
            about = builder.read_about(folder.name)
            builder.write_collection(folder, view_collection(rows, direction), about, source, **how)
    return [out / name for name in COLLECTIONS]


def read_declarations(files: Sequence[Path], left_out: Counter[str]) -> list[Row]:
    """Return one row per declaration with all views, sorted by id: the `COLUMNS`, and `names_itself` if there is one.

    The split is the row's, else that of the file's name, else by the md5 of the id (a tenth each test and dev).
    """
    named = {path: _split_of(path.name) for path in files}
    by_file = len(set(named.values())) > 1 and all(named.values())
    seen: dict[str, str] = {}
    rows: list[Row] = []
    for path in files:
        unused: Counter[str] = Counter()
        for place, record in readers.read_rows(path, _READ, unused):
            row = _row(record, place, named[path] if by_file else "", unused)
            if row["id"] in seen:
                raise MirblabError(f"{place}: the id '{row['id']}' a second time, first in {seen[row['id']]}")
            seen[row["id"]] = place
            lacking = [view for view in VIEWS if not row[view]]
            left_out.update(f"declarations without a text for {view}" for view in lacking[:1])
            rows += [] if lacking else [row]
    if not rows:
        names = releases.join_names(files)
        raise MirblabError(f"{names}: no declaration with the views {', '.join(VIEWS)}; give data that has them")
    return sorted(rows, key=lambda row: row["id"])


def is_mathematical(module: str) -> bool:
    """Return whether the second component of a module's name is one of `MATHEMATICS`."""
    return not {*module.split(".")[1:2]}.isdisjoint(MATHEMATICS)


def view_collection(rows: Sequence[Row], direction: str) -> CollectionRows:
    """Return the task from one view of the rows of test, test_new and dev to another view of all rows.

    In these splits only the declaration itself is relevant; in `test-identical` and so on also each declaration with
    the same text in one of the two views. Case counts, because `=o[l]` and `=O[l]` differ in Lean.
    """
    query, document = DIRECTIONS[direction]
    by_text: dict[tuple[str, str], list[str]] = defaultdict(list)
    for row in rows:
        for view in (query, document):
            by_text[view, row[view]].append(row["id"])
    corpus = [{"_id": row["id"], "title": "", "text": row[document]} for row in rows]
    queries, judged = list[Row](), dict[str, list[Judgement]]()
    for split in ASKED:
        if asked := [row for row in rows if row["split"] == split]:
            queries += [{"_id": row["id"], "text": row[query]} for row in asked]
            judged[split] = [(row["id"], row["id"], 1) for row in asked]
            equal = {row["id"]: {*by_text[query, row[query]], *by_text[document, row[document]]} for row in asked}
            judged[split + IDENTICAL] = [(name, other, 1) for name, others in equal.items() for other in sorted(others)]
    return CollectionRows(corpus, queries, judged)


def write_views(
    folder: Path,
    rows: Sequence[Row],
    source: Origin,
    left_out: Counter[str],
    *,
    builder: str,
    revision: str,
    licence: str,
    options: Mapping[str, Any],
) -> None:
    """Write the *rows* as gzipped JSON lines and a card into *folder*, which is no collection, and print the counts."""
    import tomli_w

    # Without a name and a date, which gzip would store, the same rows give the same bytes.
    with (
        atomic_files.write_atomically(folder / FILE) as path,
        atomic_files.open_to_write(path) as raw,
        gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=0) as file,
    ):
        file.writelines((json.dumps(row, ensure_ascii=False) + "\n").encode() for row in rows)
    counts, reasons = count_declarations(rows), {reason: n for reason, n in sorted(left_out.items()) if n}
    card = {
        "name": folder.name,
        "title": "Lean declarations in three views: informal, signature and type",
        "source": source.source,
        "licence": licence,
        "revision": source.commit or revision,
        "command": build_command(builder, source.shown, options),
        "counts": {**counts, "left_out": reasons},
    }
    atomic_files.write_text(folder / "card.toml", tomli_w.dumps(card))
    print_counts(folder.name, counts, reasons)


def count_declarations(rows: Sequence[Row]) -> dict[str, int]:
    """Return the number of declarations, also by split, and of repeated texts by view: n - 1 for a text of n rows."""
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
    """Return the file named `views`, else all JSON lines, else all parquet files; FileNotFoundError for none."""
    named = r"views\.(?:jsonl|jsonl\.gz|parquet)"
    if release.matching(named):
        return [release.one(named, "views.jsonl, .jsonl.gz or .parquet")]
    for pattern in (r"[^/]*\.jsonl(?:\.gz)?", r"[^/]*\.parquet"):
        if files := release.matching(pattern):
            return files
    raise MissingFileError(
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
    row["split"] = str(record.get("split") or split or draw_split(row["id"], (80, 10)))
    row["split"] = _OTHER_SPLITS.get(row["split"], row["split"])
    if row["split"] not in SPLITS:
        raise MirblabError(f"{place}: {unknown('split', row['split'], SPLITS)}")
    more = {"names_itself": bool(record["names_itself"])} if record.get("names_itself") is not None else {}
    return {name: row[name] for name in COLUMNS} | more


def _text(record: Row, key: str, place: str) -> str:
    """Return a text, stripped; the parts of a name joined by dots; "" for null."""
    if record[key] is None:
        return ""
    if isinstance(record[key], list):
        return ".".join(readers.read_text_list(record, key, place))
    return str(readers.read_field(record, key, str, place)).strip()


def draw_split(name: str, percent: tuple[int, int]) -> str:
    """Return the split for the md5 of a name: *percent* of train and of dev, the rest is test.

    >>> [draw_split(name, (50, 10)) for name in ("add_pow", "Nat.add_comm", "bezout")]
    ['test', 'train', 'train']
    """
    place = int(hashlib.md5(name.encode(), usedforsecurity=False).hexdigest()[:8], 16) % 100
    return "train" if place < percent[0] else "dev" if place < sum(percent) else "test"


def _split_of(name: str) -> str:
    match = _SHARD.fullmatch(name)
    split = _OTHER_SPLITS.get(match["split"], match["split"]) if match else ""
    return split if split in SPLITS else ""


def _repeated(rows: Sequence[Row], view: str) -> int:
    return len(rows) - len({row[view] for row in rows})
