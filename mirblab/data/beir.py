"""The files of a collection in BEIR's layout, read line by line, checked, and written whole."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from itertools import chain, islice
from pathlib import Path
from sys import intern
from typing import Any

import numpy as np
import pandas as pd

from mirblab.core import atomic_files, ids
from mirblab.core.errors import MirblabError, MissingFileError, suggest
from mirblab.core.text_files import LineProblems, find_file, open_unpacked, read_lines, read_records
from mirblab.core.wording import first_names
from mirblab.data import parts
from mirblab.data.parts import Document
from mirblab.data.parts_writer import RepeatedId, write_parts

BLOCK = 1 << 15
DUMP_TAG = re.compile(r"[^<>|\s]+")  # in a dump of Stack Exchange, as <algebra><topology> or |algebra|topology|
LARGE = 500_000  # documents of a corpus that is written in one file
GROUPS = "groups.tsv"
# The files that list documents for each query, and the key of the list in their lines.
LIST_KEYS = {"candidates": "candidate-ids", "excluded_ids": "excluded-ids"}
QueryLists = dict[str, dict[str, list[str]]]  # by the stem of the file, the documents of each query
QueryList = Mapping[str, list[str]] | Iterable[tuple[str, list[str]]]  # of one file; pairs need not be in memory


def read_texts(folder: Path, stem: str) -> pd.DataFrame:
    """Return corpus or queries, sorted by id; FileNotFoundError, or MirblabError for wrong ids, texts and lines.

    Of a corpus in parts, titles, texts and tags are read when they are used, see `parts.PartsColumn`.
    """
    path = find_texts(folder, stem)
    if path is None:
        raise MissingFileError(_missing_file_message(folder, stem))
    if path.name == parts.MANIFEST:
        return parts.read_parts(path.parent)
    problems, tables, key = LineProblems(path), [], "doc_id" if stem == "corpus" else "query_id"
    lines: dict[str, int] = {}  # the line of each id
    rows: list[Document] = []
    for number, document in _read_documents(path, problems):
        if document.doc_id in lines:
            problems.note(number, _repeated(document.doc_id, lines[document.doc_id]))
        else:
            lines[document.doc_id] = number
            rows.append(document)
            if len(rows) == BLOCK:  # a table holds texts in a third of the memory
                tables.append(_text_table(rows, key))
                rows = []
    problems.raise_if_any()
    table, names = pd.concat([*tables, _text_table(rows, key)], ignore_index=True), list(lines)
    table = table.drop(columns=[name for name in ("order", "tags") if table[name].isna().all()])
    order = sorted(range(len(names)), key=names.__getitem__)
    return table if order == list(range(len(names))) else table.take(order).reset_index(drop=True)


def find_texts(folder: Path, stem: str) -> Path | None:
    """Return the file of corpus or queries in *folder*, for a corpus in parts their manifest; None without one."""
    path, manifest = find_file(folder, stem), folder / stem / parts.MANIFEST
    if stem != parts.FOLDER or not manifest.is_file():
        return path
    if path:
        raise MirblabError(f"{folder} has {path.name} and the parts in {parts.FOLDER}/; keep one of them")
    return manifest


def read_rows(folder: Path, stem: str) -> Iterator[dict[str, Any]]:
    """Yield the rows of corpus or queries as BEIR has them, each with all of its fields.

    MirblabError after the last row, with file, line and number of such lines, for lines that are no JSON object.
    """
    path = find_texts(folder, stem)
    if path is None:
        raise MissingFileError(_missing_file_message(folder, stem))
    if path.name != parts.MANIFEST:
        problems = LineProblems(path)
        for _, record in read_records(path, problems):
            yield record
        problems.raise_if_any()
    else:
        for document in parts.read_documents(path.parent):
            rest = json.loads(document.rest) if document.rest else {}
            yield {"_id": document.doc_id, "title": document.title, "text": document.text, **rest}


def is_large(folder: Path) -> bool:
    """Return whether the corpus of *folder* is one file with more lines than a corpus in parts is made from."""
    path = find_file(folder, "corpus")
    if path is None:
        return False
    with open_unpacked(path) as file:
        return next(islice(file, LARGE, None), None) is not None


def convert_corpus(folder: Path, target: Path, *, to_parts: bool = True) -> None:
    """Write the corpus of *folder* into the folder *target*, in parts or as `corpus.jsonl`: whole, or not at all.

    MirblabError with file and line for what `read_texts` refuses.
    """
    if not to_parts:
        rows = read_rows(folder, "corpus")
        _write_lines(target / "corpus.jsonl", (json.dumps(row, ensure_ascii=False) for row in rows))
        return
    path = find_texts(folder, "corpus")
    if path is None:
        raise MissingFileError(_missing_file_message(folder, "corpus"))
    if path.name == parts.MANIFEST:
        write_parts(target / parts.FOLDER, parts.read_documents(path.parent))
        return
    problems = LineProblems(path)
    try:
        write_parts(target / parts.FOLDER, _sound_documents(path, problems))
    except RepeatedId as error:
        with_id = (number for number, document in _read_documents(path, problems) if document.doc_id == error.doc_id)
        first, second = islice(with_id, 2)
        problems.note(second, _repeated(error.doc_id, first))
        problems.raise_if_any()


def _sound_documents(path: Path, problems: LineProblems) -> Iterator[Document]:
    """Yield the documents of a file, and raise the error about its wrong lines at the end."""
    for _, document in _read_documents(path, problems):
        yield document
    problems.raise_if_any()


def _repeated(name: str, first: int) -> str:
    return f"duplicate _id '{name}', first on line {first}"


def _read_documents(path: Path, problems: LineProblems) -> Iterator[tuple[int, Document]]:
    """Yield line number and text of each line of corpus or queries; wrong lines are noted."""
    for number, record in read_records(path, problems):
        try:
            yield number, _document(record)
        except MirblabError as error:
            problems.note(number, str(error))


def _document(record: Mapping[str, Any]) -> Document:
    """Return the document of a row; MirblabError for a wrong id or text."""
    name, text = ids.read_id(record, "_id"), record.get("text")
    if not isinstance(text, str):
        found = f"found {json.dumps(text)[:60]}" if "text" in record else f"found the keys {', '.join(record)[:80]}"
        raise MirblabError(f"'text' of '{name}' must be a text, {found}")
    rest = {key: value for key, value in record.items() if key not in ("_id", "title", "text")}
    order, tags = _order_and_tags(record)
    shown = json.dumps(rest, ensure_ascii=False) if rest else ""
    return Document(name, str(record.get("title") or ""), text, order, tags, shown)


# Names of the columns of judgements, and what they hold: 0 the query, 1 the document, 2 the score.
_QRELS_COLUMNS = {
    **dict.fromkeys(("query-id", "query_id", "qid"), 0),
    **dict.fromkeys(("corpus-id", "corpus_id", "doc-id", "doc_id", "docid", "docno"), 1),
    **dict.fromkeys(("score", "relevance", "rel", "label"), 2),
}


def read_qrels(folder: Path, split: str, query_ids: pd.Index, doc_ids: pd.Index) -> pd.DataFrame:
    """Return a split's judgements: query_id, doc_id, relevance (whole, 0 kept); errors for unknown or repeated ones."""
    path = folder / "qrels" / f"{split}.tsv"
    if not path.is_file():
        splits = split_names(folder)
        form = "found no qrels/*.tsv; its lines are a query's id, a document's id and a grade, between tabs"
        hint = f"found the splits {', '.join(splits)}{suggest(str(split), splits)}" if splits else form
        raise MissingFileError(f"no {path}; {hint}")
    problems = LineProblems(path)
    judged: dict[tuple[str, str], int] = {}
    for number, query_id, doc_id, score in _read_judgements(path, problems):
        relevance = _whole_number(score)
        if relevance is None:
            problems.note(number, f"the score must be a whole number, found '{score}'")
        elif query_id not in query_ids:
            problems.note(number, f"judges the query '{query_id}', which is not in queries")
        elif doc_id not in doc_ids:
            problems.note(number, f"judges the document '{doc_id}', which is not in corpus")
        elif (query_id, doc_id) in judged:
            problems.note(number, f"judges '{doc_id}' for '{query_id}' a second time")
        else:
            judged[query_id, doc_id] = relevance
    problems.raise_if_any()
    table = pd.DataFrame(list(judged), columns=["query_id", "doc_id"], dtype="str")
    return table.assign(relevance=np.array(list(judged.values()), np.int32))


def count_queries(folder: Path) -> dict[str, int]:
    """Return the number of judged queries of each split that a folder has judgements for; broken lines do not count."""
    counts = {}
    for split in split_names(folder):
        path = folder / "qrels" / f"{split}.tsv"
        counts[split] = len({query_id for _, query_id, *_ in _read_judgements(path, LineProblems(path))})
    return counts


def read_judgements(folder: Path, split: str) -> list[tuple[str, str, str]]:
    """Return query, document and score of each judgement of a split as they are written; broken lines are left out.

    >>> read_judgements(Path("nowhere"), "test")
    []
    """
    path = folder / "qrels" / f"{split}.tsv"
    if not path.is_file():
        return []
    return [(query, doc, score.strip()) for _, query, doc, score in _read_judgements(path, LineProblems(path))]


def has_queries(folder: Path, split: str) -> bool:
    """Return whether a folder has a judgement, and so a query, for a split."""
    path = folder / "qrels" / f"{split}.tsv"
    return path.is_file() and any(_read_judgements(path, LineProblems(path)))


def _read_judgements(path: Path, problems: LineProblems) -> Iterator[tuple[int, str, str, str]]:
    """Yield line number, query, document and score of each judgement in a file; lines without all three are noted."""
    order = [0, 1, 2]  # of query, document and score
    for number, text in read_lines(path, problems):
        cells = text.split("\t") if "\t" in text else text.split()
        if len(cells) != 3:
            problems.note(number, f"expected query-id, corpus-id, score separated by tabs, found {len(cells)} cells")
            continue
        roles = [_QRELS_COLUMNS.get(cell.strip().lower()) for cell in cells] if number == 1 else []
        if set(roles) - {None} and all(_whole_number(cell) is None for cell in cells):
            if set(roles) == {0, 1, 2}:
                order = [roles.index(role) for role in range(3)]
            elif roles[2] != 2:  # other names for the ids are understood, if the score comes last
                problems.note(1, f"the header must be query-id, corpus-id, score, found {', '.join(cells)}")
            continue
        yield number, cells[order[0]], cells[order[1]], cells[order[2]]


def read_groups(folder: Path, all_query_ids: Set[str], relevant: pd.DataFrame) -> pd.DataFrame:
    """Return the groups of the split's queries in `groups.tsv`: query_id, group, doc_id, all text, in its order.

    *relevant* are the split's relevant judgements; a member that is not among them is an error, as are repeated ones.
    """
    path = folder / GROUPS
    problems, rows = LineProblems(path), dict[tuple[str, ...], None]()
    known = set(zip(relevant.query_id.astype("str"), relevant.doc_id.astype("str"), strict=True))
    judged = {query for query, _ in known}
    for number, text in read_lines(path, problems):
        cells = tuple(text.split("\t"))
        if number == 1 and cells == ("query-id", "group", "corpus-id"):
            continue
        if len(cells) != 3 or not all(cells):
            problems.note(number, f"expected query-id, group, corpus-id separated by tabs, found {len(cells)} cells")
        elif cells[0] not in all_query_ids:
            problems.note(number, f"names the query '{cells[0]}', which is not in queries")
        elif cells in rows:
            problems.note(number, f"names '{cells[2]}' in the group '{cells[1]}' of '{cells[0]}' a second time")
        elif cells[0] in judged and (cells[0], cells[2]) not in known:
            problems.note(number, f"names '{cells[2]}', which is not judged relevant for '{cells[0]}'")
        elif cells[0] in judged:
            rows[cells] = None
    problems.raise_if_any()
    return pd.DataFrame(list(rows), columns=["query_id", "group", "doc_id"], dtype="str")


def read_group_rows(folder: Path) -> list[tuple[str, ...]]:
    """Return the rows of `groups.tsv`, query, group and document, as they are written; none without the file.

    >>> read_group_rows(Path("nowhere"))
    []
    """
    path = folder / GROUPS
    if not path.is_file():
        return []
    rows = [tuple(text.split("\t")) for _, text in read_lines(path, LineProblems(path))]
    return rows[1:] if rows[:1] == [("query-id", "group", "corpus-id")] else rows


def read_lists(folder: Path) -> QueryLists:
    """Return the documents that `candidates.jsonl` and `excluded_ids.jsonl` list, by stem and query, unchecked.

    A file that is not there has no entry. MirblabError for broken lines.

    >>> read_lists(Path("nowhere"))
    {}
    """
    found: QueryLists = {}
    for stem, key in LIST_KEYS.items():
        if path := find_file(folder, stem):
            problems, found[stem] = LineProblems(path), {}
            for number, record in read_records(path, problems):
                try:
                    names = found[stem].setdefault(ids.read_id(record, "query-id"), [])
                    names += _ids_of_list(record.get(key), key)
                except MirblabError as error:
                    problems.note(number, str(error))
            problems.raise_if_any()
    return found


def write_lists(folder: Path, lists: Mapping[str, QueryList]) -> None:
    """Write what `read_lists` reads; the lists of each stem become one file, also if there are none.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write_lists(Path(folder), {"excluded_ids": {"q1": ["d2", "d3"]}})
    ...     read_lists(Path(folder))
    {'excluded_ids': {'q1': ['d2', 'd3']}}
    """
    for stem, listed in lists.items():
        pairs = listed.items() if isinstance(listed, Mapping) else listed
        rows = ({"query-id": query, LIST_KEYS[stem]: names} for query, names in pairs)
        _write_lines(folder / f"{stem}.jsonl", (json.dumps(row, ensure_ascii=False) for row in rows))


def read_id_lists(
    path: Path, key: str, query_ids: pd.Index, all_query_ids: Set[str], doc_ids: pd.Index, *, every_query: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Return the positions (queries, documents) of the pairs in a list file such as excluded_ids.jsonl.

    Lists of queries outside the split are skipped. MirblabError for unknown ids and broken lines, and, with
    *every_query*, when a query of the split has no list.
    """
    problems, lists = LineProblems(path), list[tuple[int, np.ndarray]]()
    for number, record in read_records(path, problems):
        try:
            query_id, names = ids.read_id(record, "query-id"), _ids_of_list(record.get(key), key)
        except MirblabError as error:
            problems.note(number, str(error))
            continue
        if query_id not in all_query_ids:
            problems.note(number, f"names the query '{query_id}', which is not in queries")
        elif query_id in query_ids:
            positions = doc_ids.get_indexer(pd.Index(names, dtype="str"))
            if (positions < 0).any():
                problems.note(number, f"names the document '{names[positions.argmin()]}', which is not in corpus")
            lists.append((int(query_ids.searchsorted(query_id)), np.unique(positions)))
    problems.raise_if_any()
    sizes = np.array([len(positions) for _, positions in lists], np.int64)
    queries = np.repeat(np.array([query for query, _ in lists], np.int64), sizes)
    without = np.setdiff1d(np.arange(len(query_ids)), queries)
    if every_query and len(without):
        raise MirblabError(
            f"{path} lists no candidates for {len(without):,} queries of the split, first '{query_ids[without[0]]}'; "
            "add a line for each"
        )
    return queries, np.concatenate([np.empty(0, np.int64), *(positions for _, positions in lists)])


def split_names(folder: Path) -> list[str]:
    """Return the names of the splits that a folder has judgements for."""
    return sorted(path.stem for path in (folder / "qrels").glob("*.tsv"))


def iterate_texts(column: pd.Series) -> Iterator[str]:
    """Yield a column's texts in blocks, since a list of them all would need as much memory again as a large corpus."""
    for start in range(0, len(column), BLOCK):
        yield from column.iloc[start : start + BLOCK].to_list()


def write_collection(
    folder: Path,
    corpus: Iterable[Mapping[str, Any]],
    queries: Iterable[Mapping[str, Any]],
    qrels: Mapping[str, Iterable[tuple[str, str, int]]],
    card: Mapping[str, Any] | Callable[[], Mapping[str, Any]],
    groups: Iterable[tuple[str, ...]] = (),
    *,
    in_one_file: bool = False,
) -> Path:
    """Write a collection and return *folder*; the card is written last, so that an unfinished collection has none.

    A corpus of more than `LARGE` documents is written in parts, unless *in_one_file*, in memory that is bounded.

    *corpus* and *queries* are rows with `_id` and `text`; *qrels* maps splits to (query, document, relevance); *groups*
    are (query, group, document). A *card* that counts rows is a function, called after they are written. Equal content
    gives equal bytes.
    """
    import tomli_w

    _write_corpus(folder, iter(corpus), math.inf if in_one_file else LARGE)
    _write_lines(folder / "queries.jsonl", (json.dumps(row, ensure_ascii=False) for row in queries))
    for split, judgements in qrels.items():
        lines = (f"{query}\t{document}\t{relevance}" for query, document, relevance in judgements)
        _write_lines(folder / "qrels" / f"{split}.tsv", chain(["query-id\tcorpus-id\tscore"], lines))
    if members := ["\t".join(row) for row in groups]:
        _write_lines(folder / GROUPS, chain(["query-id\tgroup\tcorpus-id"], members))
    atomic_files.write_text(folder / "card.toml", tomli_w.dumps(dict(card() if callable(card) else card)))
    return folder


def _write_corpus(folder: Path, rows: Iterator[Mapping[str, Any]], most: float) -> None:
    """Write `corpus.jsonl`, and turn it into parts when there are more than *most* rows."""
    first = rows if most == math.inf else islice(rows, int(most))
    _write_lines(folder / "corpus.jsonl", (json.dumps(row, ensure_ascii=False) for row in first))
    if (more := next(rows, None)) is not None:
        try:
            write_parts(folder / parts.FOLDER, map(_document, chain(read_rows(folder, "corpus"), [more], rows)))
        except MirblabError as error:
            raise MirblabError(f"{folder / parts.FOLDER}: {error}") from error
        (folder / "corpus.jsonl").unlink()


def _write_lines(path: Path, lines: Iterable[str]) -> None:
    with atomic_files.write_atomically(path) as beside, atomic_files.open_to_write(beside, "w") as file:
        file.writelines(f"{line}\n" for line in lines)


def split_tags(text: str) -> list[str]:
    """Return the tags in a text with commas, or in one of the notations of Stack Exchange's dumps.

    >>> split_tags("real analysis, limits"), split_tags("<algebra><topology>"), split_tags("|a|b|")
    (['real analysis', 'limits'], ['algebra', 'topology'], ['a', 'b'])
    """
    if text.lstrip()[:1] in ("<", "|"):
        return DUMP_TAG.findall(text)
    return [tag.strip() for tag in text.split(",") if tag.strip()]


def _order_and_tags(record: Mapping[str, Any]) -> tuple[int | None, list[str] | None]:
    """Return order and tags of a row, at its top level or in its `metadata`; tags may be one text, see `split_tags`."""
    metadata = record.get("metadata")
    inner = metadata if isinstance(metadata, dict) else {}
    order, tags = (record.get(key, inner.get(key)) for key in ("order", "tags"))
    if isinstance(tags, str):
        tags = split_tags(tags)
    return (
        order if isinstance(order, int) and not isinstance(order, bool) and abs(order) < 2**63 else None,
        [intern(str(tag)) for tag in tags] if isinstance(tags, list) else None,
    )


def _text_table(rows: list[Document], key: str) -> pd.DataFrame:
    columns = list(zip(*rows, strict=True)) if rows else [()] * 6
    table = pd.DataFrame({key: pd.Series(columns[0], dtype="str")})
    if key == "doc_id":
        table["title"] = pd.Series(columns[1], dtype="str")
    table["text"] = pd.Series(columns[2], dtype="str")
    table["order"] = pd.array(columns[3], dtype="Int64")
    table["tags"] = pd.Series(columns[4], dtype="object")
    return table


def _whole_number(text: str) -> int | None:
    try:
        number = float(text if "_" not in text else "")  # Python would take 1_0 for ten
    except ValueError:
        return None
    return int(number) if number.is_integer() and abs(number) < 2**31 else None


def _ids_of_list(names: object, key: str) -> list[str]:
    if not isinstance(names, list):
        raise MirblabError(f"'{key}' must be a list of ids")
    return [ids.read_id({key: name}, key) for name in names]


def _missing_file_message(folder: Path, stem: str) -> str:
    if not folder.is_dir():
        beside = folder.parent.iterdir() if folder.parent.is_dir() else ()
        return f"no folder {folder}{suggest(folder.name, [path.name for path in beside if path.is_dir()])}"
    names = first_names(sorted(path.name for path in folder.iterdir()), 12)
    return f"{folder} is not a collection: it needs {stem}.jsonl or {stem}.jsonl.gz; found {names}"
