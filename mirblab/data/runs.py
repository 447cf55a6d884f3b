"""runs: tables of runs in their order, with ranks, cut to a depth, and TREC's run files."""

from __future__ import annotations

import csv
import gzip
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from mirblab.core import text_files
from mirblab.core.atomic_files import open_to_write, write_atomically
from mirblab.core.errors import MirblabError, check_positive
from mirblab.core.ids import are_sorted, sort_ids
from mirblab.data.ranking import count_repeats, is_ordered, query_bounds, sort_rows

if TYPE_CHECKING:
    import pyarrow as arrow

RUN_COLUMNS = ("query_id", "doc_id", "score")
FOREIGN_MARK = "§"  # marks runs and values that no system here made, whose attrs have an `origin`
LARGEST_SCORE = float(np.finfo(np.float32).max)  # scores are float32 everywhere, and infinite ones cannot be ordered
PYTERRIER = {"qid": "query_id", "docno": "doc_id", "label": "relevance"}  # PyTerrier's names of columns
_TREC_COLUMNS = ("query_id", "Q0", "doc_id", "rank", "score", "system")
BLOCK_ROWS = 1 << 22  # of all runs, that are handled together
_LINES_PER_PART = 1 << 20  # lines read at once
_BLOCK = 1 << 16  # rows written together


def order_run(run: pd.DataFrame) -> pd.DataFrame:
    """Return *run* best first within each query, with `rank` from 1: query_id, doc_id, score, rank, and its attrs.

    Scores are compared as float32 and equal ones ordered by doc_id, descending, as trec_eval does. Ids become
    categories sorted by code point, whole numbers become strings, other columns are dropped. PyTerrier's names of the
    columns (qid, docno) are understood. MirblabError for missing columns or ids, scores that are NaN or infinite as
    float32, and repeated pairs.

    >>> run = pd.DataFrame({"query_id": "q1", "doc_id": ["a", "b", "c"], "score": [0.5, 0.9, 0.5]})
    >>> order_run(run).doc_id.tolist()
    ['b', 'c', 'a']
    """
    run = rename_pyterrier(run)
    missing = [name for name in RUN_COLUMNS if name not in run.columns]
    if missing:
        found = ", ".join(map(str, run.columns)) or "none"
        raise MirblabError(
            f"a run has the columns {', '.join(RUN_COLUMNS)}; missing {', '.join(missing)}; found {found}"
        )
    queries, docs = categorical(run.query_id), categorical(run.doc_id)
    return _order_arrays(queries.codes, docs.codes, _scores(run), queries.categories, docs.categories, run.attrs)


def rename_pyterrier(table: pd.DataFrame) -> pd.DataFrame:
    """Return a run or qrels of PyTerrier (qid, docno, label) with the names used here; another table as it is."""
    return table.rename(columns=PYTERRIER) if {"qid", "docno"} <= set(table.columns) else table


def system_of(run: pd.DataFrame) -> str:
    """Return the name of the system that made a run, "run" where it does not say."""
    return str(run.attrs.get("system") or "run")


def check_distinct_systems(given: Sequence[pd.DataFrame]) -> None:
    """Raise MirblabError where two runs have a system of the same name."""
    names = [system_of(run) for run in given]
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        raise MirblabError(f"the run {repeated[0]!r} is given twice; give each once, or set its attrs['system']")


def cut_run(run: pd.DataFrame, depth: int) -> pd.DataFrame:
    """Return the first *depth* documents of each query; a run without ranks is ordered first."""
    check_positive(depth=depth)
    ranked = run if "rank" in run.columns else order_run(run)
    return ranked[ranked["rank"] <= depth].reset_index(drop=True)


def query_blocks(parts: Sequence[pd.DataFrame]) -> Iterator[Sequence[pd.DataFrame]]:
    """Yield the rows of successive queries of runs that are in order, about `BLOCK_ROWS` of all runs at a time.

    Runs that are small, are not in the order of their queries, or have other queries are yielded as they are.
    """
    if sum(map(len, parts)) <= BLOCK_ROWS or not all(_is_grouped(part) for part in parts):
        yield parts
        return
    ids = parts[0].query_id.cat.categories
    if not are_sorted(ids) or not all(part.query_id.cat.categories.equals(ids) for part in parts):
        yield parts
        return
    codes = [part.query_id.cat.codes.to_numpy() for part in parts]
    ends = [own.searchsorted(np.arange(len(ids) + 1, dtype=own.dtype)) for own in codes]
    number = np.maximum(np.sum(ends, axis=0)[1:] - 1, 0) // BLOCK_ROWS
    for first, last in pairwise([0, *(np.flatnonzero(np.diff(number)) + 1).tolist(), len(ids)]):
        if any(end[last] > end[first] for end in ends):
            yield [part.iloc[end[first] : end[last]] for part, end in zip(parts, ends, strict=True)]


def _is_grouped(run: pd.DataFrame) -> bool:
    """Return whether the rows of a run stand in the order of its queries, which are categories without missing ones."""
    if "query_id" not in run or not isinstance(run.query_id.dtype, pd.CategoricalDtype):
        return False
    codes = run.query_id.cat.codes.to_numpy()
    is_ascending = bool((codes[:1] >= 0).all() and (codes[1:] >= codes[:-1]).all())
    return run.query_id.cat.categories.dtype == "str" and is_ascending


def from_positions(
    rows: np.ndarray,
    positions: np.ndarray,
    scores: np.ndarray,
    query_ids: pd.Index,
    doc_ids: pd.Index,
    system: str,
    collection: str,
    **notes: Any,
) -> pd.DataFrame:
    """Return the ordered run of flat arrays: row of *query_ids*, position in *doc_ids*, score; *notes* become attrs."""
    attrs = {"system": system, "collection": collection, **notes}
    rows, positions = _checked_positions(rows, query_ids, "query"), _checked_positions(positions, doc_ids, "document")
    queries = categorical(pd.Series(pd.Categorical.from_codes(rows, query_ids)))
    docs = categorical(pd.Series(pd.Categorical.from_codes(positions, doc_ids)))
    scores = np.asarray(scores, dtype=np.float32)
    return _order_arrays(queries.codes, docs.codes, scores, queries.categories, docs.categories, attrs)


def read_trec_run(path: str | Path, system: str = "") -> pd.DataFrame:
    """Return the run in a TREC file (query_id, Q0, doc_id, rank, score, system; `.gz` by suffix), in order.

    As in trec_eval, scores decide and the rank column is ignored. *system*, else the most frequent name in the last
    column, becomes `attrs["system"]`; `attrs["origin"]` is the file, so that tables mark values of unknown origin. An
    empty file gives an empty run. MirblabError names file, line and number of such lines.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "bm25.trec").write_text("q1 Q0 d1 1 2.5 bm25\\nq1 Q0 d2 2 3.5 bm25\\n")
    ...     read_trec_run(Path(folder, "bm25.trec")).doc_id.tolist()
    ['d2', 'd1']
    """
    rows = read_trec_rows(Path(path))
    names = rows.pop("system").value_counts()
    name = system or (str(names.index[0]) if len(names) else "run")
    rows.attrs = {"system": name, "origin": f"the file {Path(path).name}"}
    try:
        return order_run(rows)
    except MirblabError as error:
        raise MirblabError(f"{path}: {error}") from error


def write_run(run: pd.DataFrame, path: str | Path) -> None:
    """Write *run* as a TREC file, in order; `.gz` by suffix; the system is `attrs["system"]`, else "run".

    Scores have nine significant digits, so that the same float32 are read back. The file is written whole or not at
    all. MirblabError for an id or a system's name that is empty or has white space.

    >>> from tempfile import TemporaryDirectory
    >>> run = pd.DataFrame({"query_id": "q1", "doc_id": ["a", "b"], "score": [0.5, 0.9]})
    >>> with TemporaryDirectory() as folder:
    ...     write_run(run, Path(folder, "bm25.trec.gz"))
    ...     read_trec_run(Path(folder, "bm25.trec.gz")).doc_id.tolist()
    ['b', 'a']
    """
    run, path = order_run(run), Path(path)
    queries, docs = _writable_ids(run.query_id), _writable_ids(run.doc_id)
    system = system_of(run)
    if system.split() != [system]:
        raise MirblabError(f"the system name '{system}' has white space, which a TREC file cannot hold; rename it")
    with write_atomically(path) as beside, _open_text_bytes(beside) as file:
        for begin in range(0, len(run), _BLOCK):
            part = run.iloc[begin : begin + _BLOCK]
            ids = queries[part.query_id.cat.codes], docs[part.doc_id.cat.codes]
            rows = zip(*ids, part["rank"].tolist(), part.score.tolist(), strict=True)
            lines = [f"{query_id} Q0 {doc_id} {rank} {score:.9g} {system}\n" for query_id, doc_id, rank, score in rows]
            file.write("".join(lines).encode("utf-8"))


def read_trec_rows(path: Path) -> pd.DataFrame:
    """Return the rows of a run file in their order: query_id, doc_id, score, system; blank lines are skipped.

    Ids are text: `001`, `1e5` and `True` stay unchanged. MirblabError for a damaged gzip file, and, with file and line,
    for lines without six columns, with a score that is no number that a float32 can hold, or with another second column
    than the first line, as in a submission to ARQMath's task 2, whose third column is no document.
    """
    import pyarrow as arrow

    try:
        table = arrow.concat_tables(_trec_tables(path)).unify_dictionaries()
    except MirblabError:
        raise
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise MirblabError(f"{path} is not a whole gzip file: {error}; fetch or write it again") from error
    except (ValueError, OverflowError) as error:
        _refuse_lines(path)
        raise MirblabError(f"{path} cannot be read as a run: {error}; give a file in TREC's form") from error
    rows = table.to_pandas()
    is_whole = "" not in set(rows.system.cat.categories) and set(rows.more.cat.categories) <= {""}
    if not is_whole or np.abs(rows.score).max() > LARGEST_SCORE or rows.score.hasnans:
        _refuse_lines(path)
    return rows[["query_id", "doc_id", "score", "system"]]


def categorical(ids: pd.Series) -> pd.Categorical[Any]:
    """Return ids as a categorical sorted by code point; MirblabError for missing, empty and otherwise invalid ids."""
    if isinstance(ids.dtype, pd.CategoricalDtype):
        codes, known = ids.cat.codes.to_numpy(), ids.cat.categories
    else:
        codes, known = pd.factorize(ids)
        known = pd.Index(known)
    if len(codes) and codes.min() < 0:
        raise MirblabError(f"{int((codes < 0).sum()):,} rows have no {ids.name}; give every row one")
    if (known == "").any():
        raise MirblabError(f"{ids.name} is empty in some rows; give every row one")
    if known.dtype == "str":
        if not are_sorted(known):
            known, place = sort_ids(known)
            codes = place[codes]
        return pd.Categorical.from_codes(codes, dtype=pd.CategoricalDtype(known), validate=False)
    names = [_as_text(name, ids.name) for name in known]
    ordered, position = np.unique(np.array(names, dtype=object), return_inverse=True)
    return pd.Categorical.from_codes(position[codes], pd.Index(ordered, dtype="str"), validate=False)


def _order_arrays(
    queries: np.ndarray, docs: np.ndarray, scores: np.ndarray, query_ids: pd.Index, doc_ids: pd.Index, attrs: dict
) -> pd.DataFrame:
    if not np.isfinite((scores.min(initial=0), scores.max(initial=0))).all():
        bad = np.flatnonzero(~np.isfinite(scores))
        what = "NaN" if np.isnan(scores[bad]).all() else "NaN or infinite"
        first = query_ids[queries[bad[0]]]
        raise MirblabError(f"{len(bad):,} scores are {what}, the first in query '{first}'; leave such documents out")
    if not is_ordered(queries, docs, scores):
        queries, docs, scores = sort_rows(queries, docs, scores)
    bounds = query_bounds(queries)
    count, (query, doc) = count_repeats(queries, docs, bounds)
    if count:
        pair = f"query '{query_ids[query]}', document '{doc_ids[doc]}'"
        raise MirblabError(f"{count:,} rows repeat a document of the same query, the first {pair}; keep one of each")
    rank = np.arange(1, len(queries) + 1, dtype=np.int32)
    rank -= np.repeat(bounds[:-1].astype(np.int32), np.diff(bounds))
    columns = {
        "query_id": pd.Categorical.from_codes(queries, dtype=pd.CategoricalDtype(query_ids), validate=False),
        "doc_id": pd.Categorical.from_codes(docs, dtype=pd.CategoricalDtype(doc_ids), validate=False),
        "score": scores,
        "rank": rank,
    }
    run = pd.DataFrame(columns, copy=False)
    run.attrs = dict(attrs)
    return run


def _scores(run: pd.DataFrame) -> np.ndarray:
    try:
        with np.errstate(over="ignore"):  # what becomes infinite is refused
            return run.score.to_numpy(dtype=np.float32, na_value=np.nan)
    except (TypeError, ValueError) as error:
        raise MirblabError(f"the column score must hold numbers; found {run.score.dtype}: {error}") from error


def _checked_positions(positions: np.ndarray, ids: pd.Index, kind: str) -> np.ndarray:
    positions = np.asarray(positions)
    if not positions.size:
        return positions.astype(np.int64)
    if positions.min() < 0 or positions.max() >= len(ids):
        span = f"{positions.min()} to {positions.max()}"
        raise MirblabError(f"{kind} positions run from {span}, but there are {len(ids):,} ids")
    return positions


def _as_text(name: object, column: object) -> str:
    if isinstance(name, str):
        return name
    if isinstance(name, (int, np.integer)) and not isinstance(name, bool):
        return str(int(name))
    raise MirblabError(f"{column} must be text or whole numbers; found {name!r} ({type(name).__name__})")


def _trec_tables(path: Path) -> Iterator[arrow.Table]:
    """Yield Arrow tables of at most a million rows; all is text, since pandas would convert ids like 001 (issue 17).

    MirblabError for a second column that is not one constant: the third one then is no document.
    """
    import pyarrow as arrow
    from pyarrow import compute

    columns = [*_TREC_COLUMNS, "more"]  # "more" is empty in a good file
    second: set[str] = set()
    with text_files.open_unpacked(path) as file, pd.read_csv(
        file, sep=r"\s+", header=None, names=columns, dtype="str", quoting=csv.QUOTE_NONE, na_filter=False,
        encoding="utf-8", chunksize=_LINES_PER_PART,
    ) as parts:  # fmt: skip
        for part in parts:
            second.update(part.Q0.unique())
            if len(second) > 1:
                _refuse_lines(path)
                _refuse_second_column(path)
            kept = part.drop(columns=["Q0", "rank"])
            texts = arrow.Table.from_pandas(kept, preserve_index=False)
            numbers = compute.replace_substring_regex(texts["score"], pattern=r"^\+([^+-])", replacement=r"\1")
            encoded = {name: compute.dictionary_encode(texts[name]) for name in texts.column_names}
            yield arrow.table(encoded | {"score": compute.cast(numbers, arrow.float64())})


def _writable_ids(ids: pd.Series) -> np.ndarray:
    """Return the categories as an array of strings; MirblabError for one in use that a TREC file cannot hold."""
    names = ids.cat.categories.to_numpy(dtype=object)
    check_trec_ids(names[np.unique(ids.cat.codes)], str(ids.name))
    return names


def check_trec_ids(ids: Iterable[str], name: str) -> None:
    """Raise MirblabError for an id that a TREC file cannot hold, because it is empty or has white space.

    >>> check_trec_ids(["q 1"], "query_id")
    Traceback (most recent call last):
    mirblab.core.errors.MirblabError: query_id 'q 1' is empty or has white space, which a TREC file cannot hold; ...
    """
    for each in ids:
        if each.split() != [each]:
            raise MirblabError(f"{name} '{each}' is empty or has white space, which a TREC file cannot hold; rename it")


@contextmanager
def _open_text_bytes(path: Path) -> Iterator[IO[bytes] | gzip.GzipFile]:
    """Open *path* for writing; a `.gz` file gets no time stamp, so that equal content gives equal bytes."""
    with open_to_write(path) as file:
        if path.suffix != ".gz":
            yield file
            return
        with gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0, compresslevel=6) as packed:
            yield packed


def _refuse_lines(path: Path) -> None:
    problems = text_files.LineProblems(path)
    with text_files.open_unpacked(path) as file:
        for number, line in text_files.numbered_lines(path, file):
            fields = line.split()
            if fields and (reason := _line_problem(fields)):
                problems.note(number, f"{reason}; a line is 'query_id Q0 doc_id rank score system'")
    problems.raise_if_any()


def _refuse_second_column(path: Path) -> None:
    """Raise MirblabError with the first line whose second column is not that of the first line."""
    first = b""
    with text_files.open_unpacked(path) as file:
        for number, line in text_files.numbered_lines(path, file):
            fields = line.split()
            first = first or fields[1] if fields else first
            if not fields or fields[1] == first:
                continue
            if fields[0].startswith(b"B."):
                raise MirblabError(
                    f"{path}, line {number}: the second column changes for the topic {fields[0].decode():.60}, as in a "
                    "submission to ARQMath's task 2 (topic, formula, post, rank, score, run), whose formulas have to "
                    "be mapped to visual ids first; write one line 'topic Q0 visual_id rank score run' for each of them"
                )
            found = f"'{fields[1].decode():.60}' after '{first.decode():.60}'"
            raise MirblabError(
                f"{path}, line {number}: the second column is {found}, but it has to be the same in all lines, such "
                "as Q0; a line is 'query_id Q0 doc_id rank score system'"
            )


def _line_problem(fields: list[bytes]) -> str:
    if len(fields) != len(_TREC_COLUMNS):
        return f"found {len(fields)} columns instead of {len(_TREC_COLUMNS)}"
    try:
        b"".join(fields).decode("utf-8")
        score = float("no number" if b"_" in fields[4] else fields[4])  # Python would take 1_000 for a thousand
    except UnicodeDecodeError:
        return "the text is not UTF-8"
    except ValueError:
        return f"the score '{fields[4].decode():.60}' is no number"
    if np.isnan(score):
        return "the score is NaN"
    is_large = abs(score) > LARGEST_SCORE
    return f"the score '{fields[4].decode():.60}' is infinite or larger than a float32 holds" if is_large else ""
