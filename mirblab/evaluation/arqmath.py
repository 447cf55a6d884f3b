"""Submission files of ARQMath, and runs and judgements of its visual ids."""

from __future__ import annotations

import gzip
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from mirblab.core.atomic_files import write_bytes
from mirblab.core.errors import MirblabError
from mirblab.core.ids import is_whole_number
from mirblab.core.text_files import LineProblems, read_lines
from mirblab.data.collection import Collection
from mirblab.data.runs import LARGEST_SCORE, categorical, cut_run, order_run

SUBMISSION_COLUMNS = {
    5: ("query_id", "doc_id", "rank", "score"),
    6: ("query_id", "formula_id", "post_id", "rank", "score"),
}
_LEAST_KNOWN = 0.5  # the share of instances whose visual id must be known
_LINE_FORMS = "topic, post, rank, score, run in task 1; topic, formula, post, rank, score, run in task 2"
_TREC_CONSTANTS = {"Q0", "0", "_"}


def read_submission(path: str | Path) -> pd.DataFrame:
    r"""Return a submission: of task 1 a run in order, of task 2 the formula instances in the order of the file.

    Lines of five cells (topic, post, rank, score, run) are task 1, of six (topic, formula, post, rank, score, run) task
    2, which gives the columns query_id, formula_id, post_id, rank, score for `run_of_visual_ids`. Cells are separated
    by tabs or blanks; `.gz` is unpacked. `attrs` has the system, the task, and in `rank_differs` how many rows have a
    better score than the row of the rank before, since the labs' scripts read scores alone. MirblabError with file and
    line for a broken line, a run in TREC's format and a document that is given twice.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a.tsv").write_text("B.1\t77\t5\t1\t0.9\tours\nB.1\t78\t6\t2\t0.8\tours\n")
    ...     instances = read_submission(Path(folder, "a.tsv"))
    >>> instances.formula_id.tolist(), instances.attrs["task"]
    (['77', '78'], 2)
    """
    path = Path(path)
    problems, rows, systems, seen, width = LineProblems(path), [], Counter[str](), set[tuple[str, str]](), 0
    for number, text in read_lines(path, problems):
        cells = [cell.strip() for cell in text.split("\t")] if "\t" in text else text.split()
        width = width or len(cells)
        if flaw := _line_problem(cells, width) or ("given a second time" if tuple(cells[:2]) in seen else ""):
            problems.note(number, f"{flaw}; found {text[:60]!r}")
            continue
        seen.add((cells[0], cells[1]))
        systems[cells[-1]] += 1
        rows.append((*cells[:-3], int(cells[-3]), float(cells[-2])))
    problems.raise_if_any()
    if not rows:
        raise MirblabError(f"{path} has no lines; expected {_LINE_FORMS}")
    table = pd.DataFrame(rows, columns=list(SUBMISSION_COLUMNS[width]))
    by_rank = table.sort_values(["query_id", "rank"], kind="stable")
    rises = (by_rank.score.diff() > 0) & (by_rank.query_id == by_rank.query_id.shift())
    table.attrs = {"system": systems.most_common(1)[0][0], "task": width - 4, "rank_differs": int(rises.sum())}
    return order_run(table) if width == 5 else table


def check_answer_ids(collection: Collection) -> None:
    """Raise MirblabError unless the queries are topics of task 1 (A.1) and the documents numbers of posts."""
    wrong = [f"query '{name}'" for name in collection.query_ids if not re.fullmatch(r"A\.\d+", name)][:1]
    wrong += [f"document '{name}'" for name in collection.doc_ids if not is_whole_number(name)][:1]
    if wrong:
        raise MirblabError(
            f"no run on {collection.name} can be submitted to ARQMath: task 1 has topics such as A.1 and numbers of "
            f"posts, found the {' and the '.join(wrong)}; write the run in TREC's format"
        )


def write_submission(run: pd.DataFrame, path: str | Path, depth: int = 1000) -> None:
    """Write a run of posts (task 1), or instances with formula_id and post_id (task 2), best first, ranks from 1.

    At most *depth* rows per topic are written (the labs take 1000), whole or not at all; the name is `attrs["system"]`.
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
    """Return the run of visual ids for a run of formula instances: each visual id has the score of its best instance.

    *instances* has query_id, formula_id, score (`read_submission`), *visual_ids* maps formula ids to visual ids
    (`sources.arqmath.formulas.read_visual_ids`). With *by* "rank" the column rank decides instead. *judged* (query_id
    and doc_id, a formula id) keeps only judged instances, as the labs' scripts of 2020 do. `attrs["not_mapped"]` counts
    the instances without a visual id, which are left out; MirblabError when most have none, since then the ids are of
    another release.

    >>> rows = {"query_id": "B.1", "formula_id": ["1", "2", "3"], "score": [0.9, 0.8, 0.7]}
    >>> run = run_of_visual_ids(pd.DataFrame(rows), {"1": "v", "2": "v", "3": "w"})
    >>> run.doc_id.tolist(), run["rank"].tolist()
    (['v', 'w'], [1, 2])
    """
    if by not in ("score", "rank"):
        raise MirblabError(f"by is 'score' or 'rank', not '{by}'")
    _check_columns(instances, ("query_id", "formula_id", by), "instances")
    table = _ids_as_text(instances[["query_id", "formula_id"]])
    table = table.assign(score=instances.score if by == "score" else -instances["rank"])
    if judged is not None:
        pairs = pd.MultiIndex.from_frame(_ids_as_text(judged[["query_id", "doc_id"]]))
        table = table[pd.MultiIndex.from_frame(table[["query_id", "formula_id"]]).isin(pairs)]
    known, n_missing = _with_visual_ids(table, visual_ids)
    run = order_run(known.groupby(["query_id", "doc_id"], sort=False).score.max().reset_index())
    run.attrs = {**instances.attrs, "not_mapped": n_missing}
    return run


def qrels_of_visual_ids(qrels: pd.DataFrame, visual_ids: Mapping[str, str]) -> pd.DataFrame:
    """Return judgements of visual ids: the highest relevance of the judged instances of each, which may be 0.

    *qrels* has query_id, doc_id (a formula id) and relevance. `attrs["not_mapped"]` counts those without a visual id.

    >>> rows = {"query_id": "B.1", "doc_id": ["1", "2", "3"], "relevance": [1, 3, 0]}
    >>> qrels_of_visual_ids(pd.DataFrame(rows), {"1": "v", "2": "v", "3": "w"}).values.tolist()
    [['B.1', 'v', 3], ['B.1', 'w', 0]]
    """
    _check_columns(qrels, ("query_id", "doc_id", "relevance"), "judgements")
    table = qrels.assign(**_ids_as_text(qrels[["query_id", "doc_id"]])).rename(columns={"doc_id": "formula_id"})
    known, n_missing = _with_visual_ids(table, visual_ids)
    highest = known.groupby(["query_id", "doc_id"], sort=False).relevance.max().reset_index()
    highest.attrs["not_mapped"] = n_missing
    return highest


def _line_problem(cells: list[str], width: int) -> str:
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


def _check_columns(table: pd.DataFrame, needed: tuple[str, ...], what: str) -> None:
    missing = [name for name in needed if name not in table.columns]
    if missing:
        raise MirblabError(f"{what} lack {', '.join(missing)}; found {', '.join(map(str, table.columns))}")


def _with_visual_ids(table: pd.DataFrame, visual_ids: Mapping[str, str]) -> tuple[pd.DataFrame, int]:
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
    """Return columns of ids as text; MirblabError for what is no id, such as 42.0."""
    return table.assign(**{name: categorical(table[name]).astype("str") for name in table.columns})
