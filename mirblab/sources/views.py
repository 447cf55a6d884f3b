"""views: a table of Lean declarations in three views to six collections, one for each direction between two views.

Read are `views.jsonl` (also .gz or .parquet) with `id`, `module`, `kind`, `split`, `informal`, `signature`, `type`, and
FrenzyMath's mathlib_informal_v4.* with `name`, `module_name`, `kind`, `informal_description`, `signature`, `type`, from
which the MELD paper makes its six tasks.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

from mirblab import registry
from mirblab.errors import MirblabError, unknown
from mirblab.sources import release as releases
from mirblab.sources import shape, views_table, views_tasks
from mirblab.sources.origin import together
from mirblab.sources.release import Release
from mirblab.sources.shape import Row
from mirblab.sources.views_rows import FORMS, of_mathematics, read

ADDRESS = "https://huggingface.co/datasets/FrenzyMath/mathlib_informal_v4.19.0"
SOURCE = "https://github.com/leanprover-community/mathlib4"
LICENCE = "Apache-2.0"
COLLECTIONS = tuple(f"views-{direction}" for direction in views_tasks.DIRECTIONS)
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
        releases.opened(origin, "views.jsonl, or a dataset mathlib_informal_v4.*,", ADDRESS) as release,
        together(out, (views_table.NAME, *COLLECTIONS)) as [table, *folders],
    ):
        files = files_of(release)
        rows = read(files, left_out)
        if modules == "mathematics":
            kept = [row for row in rows if of_mathematics(row["module"])]
            left_out["declarations of other modules"] = len(rows) - len(kept)
            rows = kept
        if not any(row["split"] == "test" for row in rows):
            raise MirblabError(
                f"{release.shown()}: none of {len(rows):,} declarations is in the split test; "
                "give data with such a split"
            )
        found = replace(release.origin, source=SOURCE)
        made: Row = {"builder": "views", "revision": releases.revision(files), "licence": LICENCE}
        made["options"] = {"modules": modules}
        views_table.save(table, rows, found, left_out, **made)
        for folder, direction in zip(folders, views_tasks.DIRECTIONS, strict=True):
            shape.save(folder, views_tasks.parts(rows, direction), _about(folder.name), found, **made)
    return [out / name for name in COLLECTIONS]


def files_of(release: Release) -> list[Path]:
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


def _about(name: str) -> Row:
    entry = registry.read("collections")[name]
    return {key: entry[key] for key in _KEYS}
