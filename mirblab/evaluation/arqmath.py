"""Submission files of ARQMath's first task, and runs read from these, TREC's files and tables."""

from __future__ import annotations

import gzip
import re
import zlib
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pandas as pd

from mirblab.core.atomic_files import write_bytes
from mirblab.core.errors import MirblabError
from mirblab.core.ids import is_whole_number
from mirblab.core.text_files import LineProblems, open_unpacked, read_lines
from mirblab.data.collection import Collection
from mirblab.data.runs import LARGEST_SCORE, cut_run, order_run, read_trec_run, system_of

_LINE_FORM = "topic, post, rank, score, run"


def is_submission(path: Path) -> bool:
    """Return whether the first line of a file has the form of a submission to task 1, such as "A.1 77 1 0.9 ours"."""
    return _form(path) == "submission"


def is_run_file(path: Path) -> bool:
    """Return whether the first line of a file is one of a run, in TREC's form or of a submission to task 1.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "bm25.tsv")
    ...     for text in ("q1 Q0 d1 1 2.5 bm25", "A.1 77 1 0.9 ours", "system,collection,measure,value"):
    ...         _ = path.write_text(text)
    ...         print(is_run_file(path))
    True
    True
    False
    """
    return _form(path) != ""


def read_run(path: str | Path | pd.DataFrame, system: str = "") -> pd.DataFrame:
    """Return the run in a file of TREC's form or a submission to ARQMath's task 1, as its first line says, in order.

    Scores decide and the rank column is ignored; `.gz` is unpacked. *system*, else the most frequent name in the last
    column, becomes `attrs["system"]`; `attrs["origin"]` is the file, so that tables mark values of unknown origin. A
    table of PyTerrier (qid, docno, score) or of ir_measures (query_id, doc_id, score) may be given for a file. An
    empty file gives an empty run. MirblabError names file, line and number of wrong lines.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "run").write_text("A.1 77 2 0.8 ours\\nA.1 78 1 0.9 ours\\n")
    ...     read_run(Path(folder, "run")).doc_id.tolist()
    ['78', '77']
    """
    if isinstance(path, pd.DataFrame):
        run = order_run(path)
        run.attrs = {"system": system or system_of(path), "origin": "a table"}
    elif is_submission(Path(path)):
        run = read_submission(path)
        run.attrs["system"] = system or system_of(run)
    else:
        run = read_trec_run(path, system)
    return run


def _form(path: Path) -> str:
    """Return "submission" or "trec" by the first line that is not blank, "" for a file of another form."""
    with suppress(OSError, EOFError, zlib.error), open_unpacked(path) as file:  # reading says what is wrong
        line = next(filter(bytes.strip, iter(lambda: file.readline(1000), b"")), b"")
        cells = line.decode("utf-8-sig", "replace").split()
        if len(cells) == 5 and cells[0].startswith("A.") and not _line_problem(cells):
            return "submission"
        if len(cells) == 6 and not _line_problem([*cells[:1], *cells[2:]]):
            return "trec"
    return ""


def read_submission(path: str | Path) -> pd.DataFrame:
    r"""Return the run in a submission to task 1: lines of topic, post, rank, score, run (tabs or blanks).

    As in the labs' scripts, scores decide and the rank column is ignored; `.gz` is unpacked. MirblabError with file and
    line for a broken line and for a document that is given twice.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a.tsv").write_text("A.1\t77\t2\t0.8\tours\nA.1\t78\t1\t0.9\tours\n")
    ...     read_submission(Path(folder, "a.tsv")).doc_id.tolist()
    ['78', '77']
    """
    path = Path(path)
    problems, rows, systems, seen = LineProblems(path), [], Counter[str](), set[tuple[str, str]]()
    for number, text in read_lines(path, problems):
        cells = [cell.strip() for cell in text.split("\t")] if "\t" in text else text.split()
        if flaw := _line_problem(cells) or ("given a second time" if tuple(cells[:2]) in seen else ""):
            problems.note(number, f"{flaw}; found {text[:60]!r}")
            continue
        seen.add((cells[0], cells[1]))
        systems[cells[4]] += 1
        rows.append((cells[0], cells[1], float(cells[3])))
    problems.raise_if_any()
    if not rows:
        raise MirblabError(f"{path} has no lines; expected {_LINE_FORM}")
    run = pd.DataFrame(rows, columns=["query_id", "doc_id", "score"])
    run.attrs = {"system": systems.most_common(1)[0][0], "origin": f"the file {path.name}"}
    return order_run(run)


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
    """Write a run as a submission to task 1, best first, ranks from 1; the name of the run is `attrs["system"]`.

    At most *depth* rows per topic are written (the labs take 1000), whole or not at all.
    """
    ranked = cut_run(order_run(run), depth).astype({"query_id": "str", "doc_id": "str"})
    name = system_of(run)
    columns = (ranked.query_id, ranked.doc_id, ranked["rank"], ranked.score.map("{:.9g}".format))
    rows = ["\t".join(map(str, (*row, name))) for row in zip(*columns, strict=True)]
    for row in rows:
        if any(cell.split() != [cell] for cell in row.split("\t")) or row.count("\t") != len(columns):
            raise MirblabError(f"'{row}' has a cell that is empty or has white space; rename the id or the system")
    text = "".join(f"{row}\n" for row in rows).encode()
    write_bytes(path, gzip.compress(text, mtime=0) if Path(path).suffix == ".gz" else text)


def _line_problem(cells: list[str]) -> str:
    if len(cells) != 5:
        return f"expected {_LINE_FORM}"
    if not all(cells):
        return "a cell is empty"
    try:
        is_number = "_" not in cells[2] + cells[3] and int(cells[2]) >= 0 and abs(float(cells[3])) <= LARGEST_SCORE
    except ValueError:
        is_number = False
    return "" if is_number else "rank and score must be numbers that a float32 holds"
