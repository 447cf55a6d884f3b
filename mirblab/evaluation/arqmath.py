"""ARQMath's submission files, and runs and judgements of visual ids."""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from mirblab.core.errors import MirblabError
from mirblab.core.paths import write_bytes
from mirblab.core.text_files import LineProblems, read_lines
from mirblab.data.runs import LARGEST_SCORE, categorical, cut_run, order_run

SUBMISSION_COLUMNS = {
    5: ("query_id", "doc_id", "rank", "score"),
    6: ("query_id", "formula_id", "post_id", "rank", "score"),
}
SUBMISSION_DEPTH = 1000  # documents for each topic that the labs take
_LEAST_KNOWN = 0.5  # the share of instances whose visual id must be known
_LINE_FORMS = "topic, post, rank, score, run in task 1; topic, formula, post, rank, score, run in task 2"
_TREC_CONSTANTS = {"Q0", "0", "_"}


def read_submission(path: str | Path) -> pd.DataFrame:
    r"""Return a submission: of task 1 a run in order, of task 2 the instances as they stand; `.gz` by suffix.

    Lines of five cells (topic, post, rank, score, run) are task 1, of six (topic, formula, post, rank, score, run)
    task 2, which gives the columns query_id, formula_id, post_id, rank, score for `run_of_visual_ids`. Cells are
    separated by tabs or blanks. `attrs` has the system, the task, and in `rank_differs` how many rows have a better
    score than the row of the rank before, since the labs' scripts look at scores alone. MirblabError with file and
    line for another number of cells, a run in TREC's format, a text in the place of a number, and a document that is
    given twice.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a.tsv").write_text("B.1\t77\t5\t1\t0.9\tours\nB.1\t78\t6\t2\t0.8\tours\n")
    ...     instances = read_submission(Path(folder, "a.tsv"))
    >>> instances.formula_id.tolist(), instances.attrs["task"], instances.attrs["rank_differs"]
    (['77', '78'], 2, 0)
    """
    path = Path(path)
    problems, rows, systems, width, seen = LineProblems(path), [], dict[str, int](), 0, set[tuple[str, str]]()
    for number, text in read_lines(path, problems):
        cells = [cell.strip() for cell in text.split("\t")] if "\t" in text else text.split()
        width = width or len(cells)
        if flaw := _line_problem(cells, width) or ("given a second time" if tuple(cells[:2]) in seen else ""):
            problems.note(number, f"{flaw}; found {text[:60]!r}")
            continue
        seen.add((cells[0], cells[1]))
        systems[cells[-1]] = systems.get(cells[-1], 0) + 1
        rows.append((*cells[:-3], int(cells[-3]), float(cells[-2])))
    problems.raise_if_any()
    if not rows:
        raise MirblabError(f"{path} has no lines; expected {_LINE_FORMS}")
    table = pd.DataFrame(rows, columns=list(SUBMISSION_COLUMNS[width]))
    attrs = {"system": max(systems, key=lambda name: systems[name]), "task": width - 4}
    attrs["rank_differs"] = _count_rank_differences(table)
    table.attrs = attrs
    return order_run(table) if width == 5 else table


def write_submission(run: pd.DataFrame, path: str | Path, depth: int = SUBMISSION_DEPTH) -> None:
    r"""Write a run of posts (task 1), or instances with formula_id and post_id (task 2), best first, ranks from 1.

    At most *depth* rows for each topic are written; the name is `attrs["system"]`, else "run"; nine significant
    digits a score. The file appears whole or not at all. MirblabError for ids with white space.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     run = pd.DataFrame({"query_id": "A.1", "doc_id": ["8", "9"], "score": [1, 2]})
    ...     write_submission(run, Path(folder, "a.tsv"))
    ...     Path(folder, "a.tsv").read_text()
    'A.1\t9\t1\t2\trun\nA.1\t8\t2\t1\trun\n'
    """
    is_instances = "formula_id" in run.columns
    ranked = cut_run(order_run(run.rename(columns={"formula_id": "doc_id"}) if is_instances else run), depth)
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


def run_of_visual_ids(
    instances: pd.DataFrame, visual_ids: Mapping[str, str], *, by: str = "score", judged: pd.DataFrame | None = None
) -> pd.DataFrame:
    """Return the run of visual ids that a run of formula instances makes: each one where its first instance stands.

    *instances* has query_id, formula_id, score (`arqmath.read_submission`), *visual_ids* maps formula ids to visual ids
    (`sources.arqmath_instances.visual_ids`). Max aggregation: a visual id has the score of its best instance, and
    equal scores are ordered by visual id, as in any run. With *by* "rank" the column rank decides instead. The labs'
    scripts of 2020 first drop the instances that were not judged themselves, although another instance of the same
    visual id was; *judged* (query_id and doc_id, a formula id) does that. `attrs["not_mapped"]` counts instances
    without a visual id, which are left out; when most are, MirblabError: the ids are of another release.

    >>> rows = {"query_id": "B.1", "formula_id": ["1", "2", "3"], "score": [0.9, 0.8, 0.7]}
    >>> run = run_of_visual_ids(pd.DataFrame(rows), {"1": "v", "2": "v", "3": "w"})
    >>> run.doc_id.tolist(), run["rank"].tolist()
    (['v', 'w'], [1, 2])
    """
    table = _checked(instances, by)
    if judged is not None:
        pairs = pd.MultiIndex.from_frame(_ids_as_text(judged[["query_id", "doc_id"]]))
        table = table[pd.MultiIndex.from_frame(table[["query_id", "formula_id"]]).isin(pairs)]
    known, n_missing = _with_visual_ids(table, visual_ids)
    best = known.groupby(["query_id", "doc_id"], as_index=False, sort=False).score.max()
    run = order_run(best)
    run.attrs = {**instances.attrs, "not_mapped": n_missing}
    return run


def qrels_of_visual_ids(qrels: pd.DataFrame, visual_ids: Mapping[str, str]) -> pd.DataFrame:
    """Return judgements of visual ids: the highest relevance of the instances that were judged, 0 too.

    *qrels* has query_id, doc_id (a formula id) and relevance. `attrs["not_mapped"]` counts what has no visual id.

    >>> rows = {"query_id": "B.1", "doc_id": ["1", "2", "3"], "relevance": [1, 3, 0]}
    >>> qrels_of_visual_ids(pd.DataFrame(rows), {"1": "v", "2": "v", "3": "w"}).values.tolist()
    [['B.1', 'v', 3], ['B.1', 'w', 0]]
    """
    missing = [name for name in ("query_id", "doc_id", "relevance") if name not in qrels.columns]
    if missing:
        raise MirblabError(f"judgements lack {', '.join(missing)}; found {', '.join(map(str, qrels.columns))}")
    table = qrels.assign(**_ids_as_text(qrels[["query_id", "doc_id"]])).rename(columns={"doc_id": "formula_id"})
    known, n_missing = _with_visual_ids(table, visual_ids)
    highest = known.groupby(["query_id", "doc_id"], as_index=False, sort=False).relevance.max()
    highest.attrs["not_mapped"] = n_missing
    return highest


def _line_problem(cells: list[str], width: int) -> str:
    """Return what is wrong with a line, or an empty string."""
    if len(cells) != width or len(cells) not in SUBMISSION_COLUMNS:
        return f"expected {_LINE_FORMS}, in all lines alike"
    if len(cells) == 6 and cells[1] in _TREC_CONSTANTS:
        return "this is a run in TREC's format; read it with read_run()"
    if not all(cells):
        return "a cell is empty"
    try:
        is_number = "_" not in cells[-3] + cells[-2] and int(cells[-3]) >= 0 and abs(float(cells[-2])) <= LARGEST_SCORE
    except ValueError:
        is_number = False
    return "" if is_number else "rank and score must be numbers that a float32 holds"


def _count_rank_differences(instances: pd.DataFrame) -> int:
    """Return how many rows have a better score than the row of the rank before."""
    by_rank = instances.sort_values(["query_id", "rank"], kind="stable")
    rises = by_rank.score.diff() > 0
    return int((rises & (by_rank.query_id == by_rank.query_id.shift())).sum())


def _checked(instances: pd.DataFrame, by: str) -> pd.DataFrame:
    """Return query_id, formula_id and the score that counts."""
    if by not in ("score", "rank"):
        raise MirblabError(f"by is 'score' or 'rank', not '{by}'")
    missing = [name for name in ("query_id", "formula_id", by) if name not in instances.columns]
    if missing:
        raise MirblabError(f"instances lack {', '.join(missing)}; found {', '.join(map(str, instances.columns))}")
    table = _ids_as_text(instances[["query_id", "formula_id"]])
    return table.assign(score=instances.score if by == "score" else -instances["rank"])


def _with_visual_ids(table: pd.DataFrame, visual_ids: Mapping[str, str]) -> tuple[pd.DataFrame, int]:
    """Return the rows whose formula has a visual id, as doc_id, and the number of the others."""
    ids = table.formula_id.map(visual_ids)
    n_missing = int(ids.isna().sum())
    if n_missing > _LEAST_KNOWN * len(table):
        first = table.formula_id[ids.isna()].iloc[0]
        raise MirblabError(
            f"{n_missing:,} of {len(table):,} instances have no visual id, such as '{first}'; give the formulas of the "
            "release that the run was made with"
        )
    return table.assign(doc_id=ids)[ids.notna()], n_missing


def _ids_as_text(table: pd.DataFrame) -> pd.DataFrame:
    """Return columns of ids as text; MirblabError for what is none, such as 42.0."""
    return table.apply(lambda ids: pd.Series(categorical(ids), ids.index).astype("str"))
