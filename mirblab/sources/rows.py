"""rows: JSON lines, tab-separated lines and parquet, read row by row with the number of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from mirblab import packed
from mirblab.errors import MirblabError
from mirblab.lines import Problems, lines, records
from mirblab.sources.shape import Row

_AT_ONCE = 1024


def read(
    path: Path, columns: Sequence[str], unused: Counter[str], *, at_once: int = _AT_ONCE
) -> Iterator[tuple[int, Row]]:
    """Yield the number, from 1, and the wanted *columns* of each row of a .jsonl, .jsonl.gz, .tsv or .parquet file.

    A column that a row lacks is left out of it; how many values other columns hold is added to *unused* by name.
    A tab-separated file has the columns in their order, with or without a header. Of a parquet file *at_once* rows
    are in memory at a time. Raises MirblabError, with file and line or row, for what cannot be read.
    """
    if path.suffix == ".parquet":
        yield from _parquet(path, columns, unused, at_once)
        return
    problems = Problems(path)
    for number, record in _tabbed(path, columns, problems) if path.suffix == ".tsv" else records(path, problems):
        problems.raise_if_any()
        unused.update(key for key in record if key not in columns)
        yield number, {key: record[key] for key in columns if key in record}
    problems.raise_if_any()


def place(path: Path, number: int) -> str:
    """Return where a row stands, for messages.

    >>> place(Path("corpus.jsonl"), 3), place(Path("corpus.parquet"), 3)
    ('corpus.jsonl, line 3', 'corpus.parquet, row 3')
    """
    return f"{path}, {'row' if path.suffix == '.parquet' else 'line'} {number}"


def _tabbed(path: Path, columns: Sequence[str], problems: Problems) -> Iterator[tuple[int, Row]]:
    for number, text in lines(path, problems):
        cells = text.split("\t")
        if number == 1 and set(cells) == set(columns):
            columns = cells
        elif len(cells) != len(columns):
            problems.note(number, f"expected {', '.join(columns)} separated by tabs, found {len(cells)} cells")
        else:
            yield number, dict(zip(columns, cells, strict=True))


def _parquet(path: Path, columns: Sequence[str], unused: Counter[str], at_once: int) -> Iterator[tuple[int, Row]]:
    import pyarrow as arrow
    from pyarrow.parquet import ParquetFile

    number = 0
    try:
        with ParquetFile(path) as file:
            groups = (file.metadata.row_group(number) for number in range(file.metadata.num_row_groups))
            # Rows that repeat one value take no room in the file, but each one does where it is read.
            packed.check(path, max(sum(group.total_byte_size for group in groups), file.metadata.num_rows))
            found = file.schema_arrow.names
            wanted = [name for name in columns if name in found]
            if not wanted:
                raise MirblabError(f"{path} has none of the columns {', '.join(columns)}; found {', '.join(found)}")
            unused.update({name: file.metadata.num_rows for name in found if name not in columns})
            for batch in file.iter_batches(at_once, columns=wanted, use_threads=False):
                for record in batch.to_pylist():
                    number += 1
                    yield number, record
    except (arrow.ArrowException, OSError, UnicodeDecodeError) as error:
        read = f" after row {number:,}" if number else ""
        raise MirblabError(f"{path} is no sound parquet file{read}: {error}; fetch or copy it again") from error
