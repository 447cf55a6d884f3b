"""blueprint_mathlib: statements of mathlib by name, for the nodes of blueprints that point there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from pathlib import Path

from mirblab import paths
from mirblab.lines import Problems, find, records
from mirblab.sources import blueprint_files, blueprint_lean
from mirblab.sources import origin as origins

ADDRESS = "https://github.com/leanprover-community/mathlib4"


def statements(place: str, wanted: Collection[str]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the statements of the *wanted* declarations that mathlib has, by name, and where they are from.

    *place* is a collection whose document ids are names, a file of JSON lines with `id` and `signature` (or `_id`
    and `text`), or a checkout or archive of mathlib; for "" nothing is returned. Mathlib is seldom the one that a
    repository was built with, so its commit, where it is known, belongs into the card. Raises MirblabError, with file
    and line, for lines that hold something else.
    """
    path = paths.given(place)
    if not place:
        return {}, {}
    lines = find(path, "corpus") if path.is_dir() else path if path.name.endswith((".jsonl", ".jsonl.gz")) else None
    if lines is not None:
        return _of_lines(lines, wanted), {"file": f"{path.name}/{lines.name}" if path.is_dir() else path.name}
    with origins.opened(place, ADDRESS) as opened:
        return _of_source(opened.folder, wanted), {"source": opened.shown, "commit": opened.commit}


def _of_source(folder: Path, wanted: Collection[str]) -> dict[str, str]:
    """Return the statements in Lean files; one that holds no last part of a wanted name is passed over unread."""
    ends = {name.rpartition(".")[2] for name in wanted}
    found: dict[str, str] = {}
    for path in sorted(folder.rglob("*.lean")):
        code = blueprint_files.decoded(path.read_bytes(), Counter())
        if any(end in code for end in ends):
            for one in blueprint_lean.read(code).declarations:
                if one.name in wanted and not one.is_private:
                    found.setdefault(one.name, one.statement)
    return found


def _of_lines(path: Path, wanted: Collection[str]) -> dict[str, str]:
    problems, found = Problems(path), dict[str, str]()
    for number, record in records(path, problems):
        name, text = record.get("id", record.get("_id")), record.get("signature", record.get("text"))
        if not isinstance(name, str) or not isinstance(text, str):
            problems.note(number, f"expected 'id' and 'signature', or '_id' and 'text'; found {', '.join(record)}")
        elif name in wanted:
            found[name] = " ".join(text.split())
    problems.raise_if_any()
    return found
