"""submission: the run files that participants of ARQMath hand in, task 1 (posts) and task 2 (formula instances)."""

from __future__ import annotations

import gzip
from pathlib import Path

import pandas as pd

from mirblab.errors import MirblabError
from mirblab.lines import Problems, lines
from mirblab.paths import write_bytes
from mirblab.runs import cut, order
from mirblab.trec import LARGEST

COLUMNS = {5: ("query_id", "doc_id", "rank", "score"), 6: ("query_id", "formula_id", "post_id", "rank", "score")}
DEEPEST = 1000  # documents for each topic that the labs take
_WANTED = "topic, post, rank, score, run in task 1; topic, formula, post, rank, score, run in task 2"
_CONSTANT = {"Q0", "0", "_"}


def read(path: str | Path) -> pd.DataFrame:
    r"""Return a submission: of task 1 a run in order, of task 2 the instances as they stand; `.gz` by suffix.

    Lines of five cells (topic, post, rank, score, run) are task 1, of six (topic, formula, post, rank, score, run)
    task 2, which gives the columns query_id, formula_id, post_id, rank, score for `instances.to_visual`. Cells are
    separated by tabs or blanks. `attrs` has the system, the task, and in `rank_differs` how many rows have a better
    score than the row of the rank before, since the labs' scripts look at scores alone. MirblabError with file and
    line for another number of cells, a run in TREC's format, what is no number, and a document given twice.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a.tsv").write_text("B.1\t77\t5\t1\t0.9\tours\nB.1\t78\t6\t2\t0.8\tours\n")
    ...     found = read(Path(folder, "a.tsv"))
    >>> found.formula_id.tolist(), found.attrs["task"], found.attrs["rank_differs"]
    (['77', '78'], 2, 0)
    """
    path = Path(path)
    problems, rows, systems, width, seen = Problems(path), [], dict[str, int](), 0, set[tuple[str, str]]()
    for number, text in lines(path, problems):
        cells = [cell.strip() for cell in text.split("\t")] if "\t" in text else text.split()
        width = width or len(cells)
        if flaw := _flaw(cells, width) or ("given a second time" if tuple(cells[:2]) in seen else ""):
            problems.note(number, f"{flaw}; found {text[:60]!r}")
            continue
        seen.add((cells[0], cells[1]))
        systems[cells[-1]] = systems.get(cells[-1], 0) + 1
        rows.append((*cells[:-3], int(cells[-3]), float(cells[-2])))
    problems.raise_if_any()
    if not rows:
        raise MirblabError(f"{path} has no lines; expected {_WANTED}")
    found = pd.DataFrame(rows, columns=list(COLUMNS[width]))
    attrs = {"system": max(systems, key=lambda name: systems[name]), "task": width - 4}
    attrs["rank_differs"] = _rank_differs(found)
    found.attrs = attrs
    return order(found) if width == 5 else found


def write(run: pd.DataFrame, path: str | Path, depth: int = DEEPEST) -> None:
    r"""Write a run of posts (task 1), or instances with formula_id and post_id (task 2), best first, ranks from 1.

    At most *depth* rows for each topic are written; the name is `attrs["system"]`, else "run"; nine significant
    digits a score. The file appears whole or not at all. MirblabError for ids with white space.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     run = pd.DataFrame({"query_id": "A.1", "doc_id": ["8", "9"], "score": [1, 2]})
    ...     write(run, Path(folder, "a.tsv"))
    ...     Path(folder, "a.tsv").read_text()
    'A.1\t9\t1\t2\trun\nA.1\t8\t2\t1\trun\n'
    """
    is_instances = "formula_id" in run.columns
    ranked = cut(order(run.rename(columns={"formula_id": "doc_id"}) if is_instances else run), depth)
    ranked = ranked.astype({"query_id": "str", "doc_id": "str"})
    columns = [ranked.query_id, ranked.doc_id, ranked["rank"], ranked.score.map("{:.9g}".format)]
    if is_instances:
        posts = run.astype({"query_id": "str", "formula_id": "str"}).set_index(["query_id", "formula_id"]).post_id
        columns.insert(2, posts.loc[pd.MultiIndex.from_frame(ranked[["query_id", "doc_id"]])].astype("str"))
    name = str(run.attrs.get("system") or "run")
    rows = ["\t".join(map(str, (*row, name))) for row in zip(*columns, strict=True)]
    for row in rows:
        if any(cell.split() != [cell] for cell in row.split("\t")) or row.count("\t") != len(columns):
            raise MirblabError(f"'{row}' has a cell that is empty or has white space; rename the id or the system")
    text = "".join(f"{row}\n" for row in rows).encode()
    write_bytes(path, gzip.compress(text, mtime=0) if Path(path).suffix == ".gz" else text)


def _flaw(cells: list[str], width: int) -> str:
    """Return what is wrong with a line, or an empty string."""
    if len(cells) != width or len(cells) not in COLUMNS:
        return f"expected {_WANTED}, in all lines alike"
    if len(cells) == 6 and cells[1] in _CONSTANT:
        return "this is a run in TREC's format; read it with read_run()"
    if not all(cells):
        return "a cell is empty"
    try:
        is_number = "_" not in cells[-3] + cells[-2] and int(cells[-3]) >= 0 and abs(float(cells[-2])) <= LARGEST
    except ValueError:
        is_number = False
    return "" if is_number else "rank and score must be numbers that a float32 holds"


def _rank_differs(found: pd.DataFrame) -> int:
    """Return how many rows have a better score than the row of the rank before."""
    by_rank = found.sort_values(["query_id", "rank"], kind="stable")
    rises = by_rank.score.diff() > 0
    return int((rises & (by_rank.query_id == by_rank.query_id.shift())).sum())
