"""trec: run files of six columns, as trec_eval reads them."""

from __future__ import annotations

import csv
import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

import numpy as np
import pandas as pd

from mirblab import packed
from mirblab.errors import MirblabError
from mirblab.paths import open_to_write, write_atomically

if TYPE_CHECKING:
    import pyarrow as arrow

_TREC = ("query_id", "Q0", "doc_id", "rank", "score", "system")
_BLOCK = 1 << 16  # lines written at once
_AT_ONCE = 1 << 20  # lines read at once
LARGEST = float(np.finfo(np.float32).max)  # scores are float32 everywhere, and infinite ones cannot be ordered


def read(path: Path) -> pd.DataFrame:
    """Return the rows of a run file as they stand: query_id, doc_id, score, system; blank lines are skipped.

    Ids are text: `001`, `1e5` and `True` stay what they are. MirblabError with file, line and number of such lines
    when a line does not have six columns or its score is no number that a float32 can hold; also for a gzip file
    that is damaged or cut off.
    """
    import pyarrow as arrow

    try:
        table = arrow.concat_tables(_tables(path)).unify_dictionaries()
    except MirblabError:
        raise
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise MirblabError(f"{path} is not a whole gzip file: {error}; fetch or write it again") from error
    except (ValueError, OverflowError) as error:
        _refuse_lines(path)
        raise MirblabError(f"{path} cannot be read as a run: {error}; give a file in TREC's form") from error
    rows = table.to_pandas()
    is_whole = "" not in set(rows.system.cat.categories) and set(rows.more.cat.categories) <= {""}
    if not is_whole or np.abs(rows.score).max() > LARGEST or rows.score.hasnans:
        _refuse_lines(path)
    return rows[["query_id", "doc_id", "score", "system"]]


def _tables(path: Path) -> Iterator[arrow.Table]:
    """Yield the rows as Arrow tables of at most a million: ids, system and what stands too much as dictionaries.

    Every column is read as text: pandas takes a column of categories that all look like numbers for numbers (issue 17).
    """
    import pyarrow as arrow
    from pyarrow import compute

    columns = [*_TREC, "more"]  # "more" is empty in a good file
    with packed.opened(path) as file, pd.read_csv(
        file, sep=r"\s+", header=None, names=columns, dtype="str", quoting=csv.QUOTE_NONE, na_filter=False,
        encoding="utf-8", chunksize=_AT_ONCE,
    ) as parts:  # fmt: skip
        for part in parts:
            kept = part.drop(columns=["Q0", "rank"])
            texts = arrow.Table.from_pandas(kept, preserve_index=False)
            numbers = compute.replace_substring_regex(texts["score"], pattern=r"^\+([^+-])", replacement=r"\1")
            encoded = {name: compute.dictionary_encode(texts[name]) for name in texts.column_names}
            yield arrow.table(encoded | {"score": compute.cast(numbers, arrow.float64())})


def write(run: pd.DataFrame, path: Path) -> None:
    """Write an ordered *run*: nine significant digits a score, the same bytes for the same run, whole or not at all.

    MirblabError for an id or a system's name that is empty or has white space.
    """
    queries, docs = _writable(run.query_id), _writable(run.doc_id)
    system = str(run.attrs.get("system") or "run")
    if system.split() != [system]:
        raise MirblabError(f"the system name '{system}' has white space, which a TREC file cannot hold; rename it")
    with write_atomically(path) as beside, _text_bytes(beside) as file:
        for begin in range(0, len(run), _BLOCK):
            part = run.iloc[begin : begin + _BLOCK]
            ids = queries[part.query_id.cat.codes], docs[part.doc_id.cat.codes]
            rows = zip(*ids, part["rank"].tolist(), part.score.tolist(), strict=True)
            lines = [f"{query_id} Q0 {doc_id} {rank} {score:.9g} {system}\n" for query_id, doc_id, rank, score in rows]
            file.write("".join(lines).encode("utf-8"))


def _writable(ids: pd.Series) -> np.ndarray:
    """Return the categories as an array of strings; MirblabError for one in use that a TREC file cannot hold."""
    names = ids.cat.categories.to_numpy(dtype=object)
    for code in np.unique(ids.cat.codes):
        if names[code].split() != [names[code]]:
            raise MirblabError(
                f"{ids.name} '{names[code]}' is empty or has white space, which a TREC file cannot hold; rename it"
            )
    return names


@contextmanager
def _text_bytes(path: Path) -> Iterator[IO[bytes]]:
    """Open *path* for writing; compressed without a time when it ends in `.gz`, so that bytes repeat."""
    with open_to_write(path) as file:
        if path.suffix != ".gz":
            yield file
            return
        with gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0, compresslevel=6) as packed:
            yield packed


def _refuse_lines(path: Path) -> None:
    """Raise MirblabError for the first line of a run file that is malformed, with the number of such lines."""
    bad: list[tuple[int, str]] = []
    with packed.opened(path) as file:
        for number, line in packed.numbered(path, file):
            fields = line.split()
            if fields and (reason := _flaw(fields)):
                bad.append((number, reason))
    if bad:
        number, reason = bad[0]
        more = f" ({len(bad):,} such lines)" if len(bad) > 1 else ""
        raise MirblabError(f"{path}, line {number}: {reason}; a line is 'query_id Q0 doc_id rank score system'{more}")


def _flaw(fields: list[bytes]) -> str:
    """Return what is wrong with the fields of a line, or an empty string."""
    if len(fields) != len(_TREC):
        return f"found {len(fields)} columns instead of {len(_TREC)}"
    try:
        b"".join(fields).decode("utf-8")
        score = float("no number" if b"_" in fields[4] else fields[4])  # Python would take 1_000 for a thousand
    except UnicodeDecodeError:
        return "the text is not UTF-8"
    except ValueError:
        return f"the score '{fields[4].decode():.60}' is no number"
    if np.isnan(score):
        return "the score is NaN"
    is_large = abs(score) > LARGEST
    return f"the score '{fields[4].decode():.60}' is infinite or larger than a float32 holds" if is_large else ""
