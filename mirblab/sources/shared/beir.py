"""beir: texts, judgements and excluded lists as BEIR and MTEB publish them, checked row by row."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from pathlib import Path

from mirblab.core.errors import MirblabError
from mirblab.sources.shared.builder import Row
from mirblab.sources.shared.readers import read_id, read_rows

Judgement = tuple[str, str, int]


def read_ids(files: Sequence[Path]) -> set[str]:
    """Return the ids of corpus or queries as texts; MirblabError with file and row for a missing or double one."""
    found: set[str] = set()
    for path in files:
        for place, row in read_rows(path, ["_id"], Counter()):
            name = read_id(row, "_id", place)
            if name in found:
                raise MirblabError(f"{place}: '{name}' is the _id of an earlier row, too; give each row its own")
            found.add(name)
    return found


def read_texts(files: Sequence[Path], what: str, left_out: Counter[str], *, tags: bool = False) -> Iterator[Row]:
    """Yield the rows of corpus or queries: `_id`, `title` where there is one, and `text`, unchanged.

    With *tags* every row must have a list of tags, which is kept. How many values of other columns are dropped is
    added to *left_out*. Raises MirblabError with file and row for what is no text.
    """
    columns, unused = ["_id", "title", "text", *(["tags"] if tags else [])], Counter()
    for path in files:
        for place, row in read_rows(path, columns, unused):
            kept = {"_id": read_id(row, "_id", place)} | {key: row[key] for key in columns[1:] if key in row}
            if kept.get("title", "") is None:
                del kept["title"]
            for key in ("title", "text"):
                if key in kept or key == "text":
                    _check_text(kept.get(key), key, place)
            if tags and not isinstance(kept.get("tags"), list):
                raise MirblabError(f"{place}: no list of tags; without excluded_ids every row needs one")
            yield kept
    _count(unused, what, left_out)


def read_judgements(
    files: Sequence[Path], queries: Container[str], docs: Container[str], left_out: Counter[str]
) -> list[Judgement]:
    """Return (query, document, relevance), each pair once; relevance is the score cut to a whole number.

    As in the published loader the last of several rows for a pair counts; such rows and cut scores are added to
    *left_out*. Raises MirblabError with file and row for unknown queries and documents and for scores that are no
    numbers.
    """
    found: dict[tuple[str, str], int] = {}
    unused: Counter[str] = Counter()
    for path in files:
        for place, row in read_rows(path, ["query-id", "corpus-id", "score"], unused):
            query, doc = read_id(row, "query-id", place), read_id(row, "corpus-id", place)
            if query not in queries:
                raise MirblabError(
                    f"{place}: judges the query '{query}', which is not in queries; "
                    "add it there, or leave this line out"
                )
            if doc not in docs:
                raise MirblabError(
                    f"{place}: judges the document '{doc}', which is not in corpus; "
                    "add it there, or leave this line out"
                )
            score = _score(row.get("score"), place)
            left_out["judgements of a pair that is judged again (the last counts)"] += (query, doc) in found
            left_out["scores with a fraction (cut to whole numbers)"] += not score.is_integer()
            found[query, doc] = int(score)
    _count(unused, "qrels", left_out)
    return [(*pair, relevance) for pair, relevance in found.items()]


def read_excluded_ids(
    files: Sequence[Path],
    queries: Container[str],
    docs: Container[str],
    judged: Mapping[str, Container[str]],
    left_out: Counter[str],
) -> Iterator[Row]:
    """Yield `query-id` and `excluded-ids` of each row, ids as texts, one row in memory at a time.

    *judged* maps the queries of the split to their relevant documents. Raises MirblabError with file and row for
    unknown documents and double rows, and, at the end, for a query of the split that has no row: the published
    code stops there, too. Rows of unknown queries and relevant documents that are excluded are added to *left_out*.
    """
    seen: set[str] = set()
    for path in files:
        for place, row in read_rows(path, ["query-id", "excluded-ids"], Counter(), at_once=8):
            query, names = read_id(row, "query-id", place), row.get("excluded-ids")
            if not isinstance(names, list):
                raise MirblabError(f"{place}: 'excluded-ids' must be a list, found {_short(names)}")
            if query in seen:
                raise MirblabError(f"{place}: lists the query '{query}' a second time; keep one of the lines")
            seen.add(query)
            if query not in queries:
                left_out["excluded lists of queries that are not in queries"] += 1
                continue
            names = [read_id({"excluded-ids": name}, "excluded-ids", place) for name in names]
            unknown = next((name for name in names if name not in docs), None)
            if unknown is not None:
                raise MirblabError(f"{place}: excludes the document '{unknown}', which is not in corpus; leave it out")
            own = judged.get(query, ())
            left_out["relevant documents that are excluded for their query"] += sum(name in own for name in names)
            yield {"query-id": query, "excluded-ids": names}
    without = [query for query in judged if query not in seen]
    if without:
        where = ", ".join(map(str, files))
        raise MirblabError(
            f"{where}: no row for {len(without):,} queries of the split, first '{min(without)}'; add a row for each"
        )


def _count(unused: Counter[str], what: str, left_out: Counter[str]) -> None:
    left_out.update({f"values of the column {name} of {what} (not used)": count for name, count in unused.items()})


def _check_text(value: object, key: str, place: str) -> None:
    if not isinstance(value, str):
        raise MirblabError(f"{place}: '{key}' must be a text, found {_short(value)}")


def _score(value: object, place: str) -> float:
    try:
        score = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        score = math.nan
    if not math.isfinite(score) or abs(score) >= 2**31:
        raise MirblabError(f"{place}: the score must be a number, found {_short(value)}")
    return score


def _short(value: object) -> str:
    return json.dumps(value, default=str)[:60]
