"""meld_rows: the rows of a published table, whatever its form: parquet, JSON, JSON lines, comma or tab separated."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from mirblab.errors import MirblabError
from mirblab.sources import arrays, rows
from mirblab.sources.shape import Row

FORMS = (".parquet", ".jsonl", ".jsonl.gz", ".json", ".json.gz", ".csv", ".tsv")


def records(path: Path) -> Iterator[tuple[str, Row]]:
    """Yield the place, for messages, and all columns of each row.

    A JSON object that holds lists of objects (`{"fields": ..., "pairs": [{...}], "distractors": [{...}]}`) stands for
    these objects: each has the other entries as columns, too, and the name of its list as `list`. Raises MirblabError,
    with file and line or row, for what cannot be read.
    """
    if path.suffix == ".parquet":
        for number, row in rows.read(path, _columns(path), Counter()):
            yield rows.place(path, number), row
    elif path.suffix in (".csv", ".tsv"):
        yield from _separated(path)
    else:
        for place, record in arrays.records(path):
            yield from ((place, row) for row in _spread(record))


def _columns(path: Path) -> list[str]:
    import pyarrow as arrow
    from pyarrow.parquet import read_schema

    try:
        return list(read_schema(path).names)
    except (arrow.ArrowException, OSError, UnicodeDecodeError) as error:
        raise MirblabError(f"{path} is no sound parquet file: {error}; fetch or copy it again") from error


def _separated(path: Path) -> Iterator[tuple[str, Row]]:
    with open(path, encoding="utf-8-sig", newline="") as file:
        reader = csv.DictReader(file, delimiter="\t" if path.suffix == ".tsv" else ",", strict=True)
        try:
            for row in reader:
                place = f"{path}, line {reader.line_num}"
                if None in row or None in row.values():
                    raise MirblabError(
                        f"{place}: the header has {len(reader.fieldnames or [])} columns, the row has not"
                    )
                yield place, row
        except (csv.Error, UnicodeDecodeError) as error:
            raise MirblabError(f"{path}, line {reader.line_num}: {error}") from error


def _spread(record: Row) -> list[Row]:
    """Return the objects in the lists of a record, each with what stands beside the lists, or the record itself."""
    lists = {
        key: value for key, value in record.items() if isinstance(value, list) and value and isinstance(value[0], dict)
    }
    beside = {key: value for key, value in record.items() if key not in lists}
    return [beside | {"list": key} | item for key, items in lists.items() for item in items] if lists else [record]
