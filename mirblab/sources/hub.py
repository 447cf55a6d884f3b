"""hub: the fifteen published datasets of MIRB, from the Hub or a local folder of the same layout, as collections."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

from mirblab.core import paths, registry
from mirblab.core.errors import MirblabError, check_known
from mirblab.core.terminal import progress, say
from mirblab.data.collection import read_card_table
from mirblab.sources.shared import builder, release
from mirblab.sources.shared.builder import Judgement, Row
from mirblab.sources.shared.readers import read_id, read_rows
from mirblab.sources.shared.release import DatasetFiles

Shown = TypeVar("Shown")
_ABOUT = ("title", "task", "instruction", "paper", "group", "relevance_levels", "relevant_from", "restricted", "hub")


def build(origin: str | Path | None, out: Path, names: Sequence[str] = ()) -> list[Path]:
    """Write the datasets *names* (empty: all fifteen) as collections under *out* and return their folders.

    *origin* is a folder with a folder per dataset (`msedup`, `hcju/msedup`, `hcju__msedup`), or the folder of the only
    one; None fetches each from the Hub at its pinned revision. When one of several fails, the others are still built.
    """
    known = dataset_names()
    check_known("dataset of MIRB", names, known)
    wanted = list(names) or known
    made: list[Path] = []
    failed: list[str] = []
    for name in wanted:
        try:
            made.append(_build(name, origin, Path(out), alone=len(wanted) == 1))
        except (MirblabError, OSError) as error:
            if len(wanted) == 1:
                raise
            failed.append(f"{name}: {error}")
    if failed:
        rest = f"the other {len(made)} are in {out}" if made else "none was built"
        raise MirblabError("\n  ".join([f"{len(failed)} of {len(wanted)} datasets failed, {rest}:", *failed]))
    return made


def dataset_names() -> list[str]:
    """Return the names of the published datasets, in the paper's order."""
    return [name for name, entry in registry.read_registry("collections").items() if entry.get("builder") == "mirb"]


def _build(name: str, origin: str | Path | None, out: Path, *, alone: bool) -> Path:
    entry = registry.read_registry("collections")[name]
    hub, revision, restricted = entry["hub"], str(entry.get("revision", "")), bool(entry.get("restricted"))
    if not re.fullmatch("[0-9a-f]{40}", revision):
        raise MirblabError(f"{name}: a revision is a commit of 40 hexadecimal digits, found '{revision}'")
    by_tags = restricted and entry.get("rule") == "tags"
    required = release.PARTS if restricted and not by_tags else release.PARTS[:3]
    choose = partial(release.find_parts, required=required)
    if origin is None:
        instead = (
            f"run 'mirblab build {name}' where there is a network and copy its folder to {out / name}, "
            f"or give a copy of the dataset: mirblab build {name} --from FOLDER"
        )
        files = release.fetch_dataset(hub, revision, choose=choose, instead=instead)
    else:
        folder = release.find_local_dataset(str(origin), hub, name, alone=alone)
        files = DatasetFiles(folder, choose(release.list_files(folder), str(folder)))
    sums = files.checked(f"mirblab build {name}")
    _check_unchanged(out / name, revision, sums)
    # A published list takes precedence over tags, because the paper's numbers were computed with it.
    by_tags = by_tags and not files.parts["excluded_ids"]
    with builder.replace_folders(out, (name,)) as [beside]:
        _write(beside, entry, files, sums, origin, by_tags=by_tags)
    return out / name


def _write(
    folder: Path, entry: Row, files: DatasetFiles, sums: dict[str, str], origin: str | Path | None, *, by_tags: bool
) -> None:
    left_out: Counter[str] = Counter()
    doc_ids, query_ids = read_ids(files.paths("corpus")), read_ids(files.paths("queries"))
    judged = read_judgements(files.paths("qrels"), query_ids, doc_ids, left_out)
    relevant: dict[str, set[str]] = defaultdict(set)  # also of a judged query that has none
    for query, doc, relevance in judged:
        relevant[query].update([doc] if relevance > 0 else [])
    counts = {"queries": len(relevant), "documents": len(doc_ids)}
    left_out["queries without a judgement (kept, outside the split)"] = len(query_ids) - counts["queries"]
    lists: dict[str, Iterable[tuple[str, list[str]]]] = {}
    if entry.get("restricted") and not by_tags:
        excluded = _read_excluded_ids(files.paths("excluded_ids"), query_ids, doc_ids, relevant, left_out)
        lists["excluded_ids"] = _shown(excluded, len(query_ids), f"{folder.name}: excluded_ids")
    content = "sha256:" + hashlib.sha256(json.dumps(sorted(sums.items())).encode()).hexdigest()
    about = {key: entry[key] for key in _ABOUT if key in entry}
    about |= {"candidates": ["tags"]} if by_tags else {}
    about |= {"hub_revision": entry["revision"], "published": _published(entry, counts), "files": sums}
    corpus, queries = (
        _shown(read_texts(files.paths(part), part, left_out, tags=by_tags), len(ids), f"{folder.name}: {part}")
        for part, ids in (("corpus", doc_ids), ("queries", query_ids))
    )
    parts = builder.CollectionRows(corpus, queries, {"test": judged}, left_out, lists=lists)
    shown = "" if origin is None else paths.expand_home(origin).resolve().name
    where = release.Origin(files.folder, f"https://huggingface.co/datasets/{entry['hub']}", files.commit, shown)
    licence = entry.get("licence") or files.licence or "unknown"
    builder.write_collection(folder, parts, about, where, builder=folder.name, revision=content, licence=licence)
    say(f"  {about['published']}")


def read_ids(files: Sequence[Path]) -> set[str]:
    """Return the ids of corpus or queries; MirblabError, with file and row, for a missing or repeated id."""
    ids: set[str] = set()
    for path in files:
        for place, row in read_rows(path, ["_id"], Counter()):
            name = read_id(row, "_id", place)
            if name in ids:
                raise MirblabError(f"{place}: '{name}' is the _id of an earlier row, too; give each row its own")
            ids.add(name)
    return ids


def read_texts(files: Sequence[Path], part: str, left_out: Counter[str], *, tags: bool = False) -> Iterator[Row]:
    """Yield `_id`, `title` (if any) and `text` of each row unchanged; with *tags* each row must have a list of tags."""
    columns, unused = ["_id", "title", "text", *(["tags"] if tags else [])], Counter[str]()
    for path in files:
        for place, row in read_rows(path, columns, unused):
            kept = {"_id": read_id(row, "_id", place)} | {key: row[key] for key in columns[1:] if key in row}
            if kept.get("title", "") is None:
                del kept["title"]
            for key in ("title", "text"):
                if not isinstance(kept.get(key, "" if key == "title" else None), str):
                    raise MirblabError(f"{place}: '{key}' must be a text, found {_short(kept.get(key))}")
            if tags and not isinstance(kept.get("tags"), list):
                raise MirblabError(f"{place}: no list of tags; without excluded_ids every row needs one")
            yield kept
    _count_unused(unused, part, left_out)


def read_judgements(
    files: Sequence[Path], queries: Container[str], docs: Container[str], left_out: Counter[str]
) -> list[Judgement]:
    """Return distinct (query, document, relevance) with whole scores; as published, the last row for a pair counts."""
    relevances: dict[tuple[str, str], int] = {}
    unused: Counter[str] = Counter()
    for path in files:
        for place, row in read_rows(path, ["query-id", "corpus-id", "score"], unused):
            query, doc = read_id(row, "query-id", place), read_id(row, "corpus-id", place)
            for kind, name, known, part in (("query", query, queries, "queries"), ("document", doc, docs, "corpus")):
                if name not in known:
                    raise MirblabError(
                        f"{place}: judges the {kind} '{name}', which is not in {part}; "
                        "add it there, or leave this line out"
                    )
            score = _score(row.get("score"), place)
            left_out["judgements of a pair that is judged again (the last counts)"] += (query, doc) in relevances
            left_out["scores with a fraction (cut to whole numbers)"] += not score.is_integer()
            relevances[query, doc] = int(score)
    _count_unused(unused, "qrels", left_out)
    return [(*pair, relevance) for pair, relevance in relevances.items()]


def _read_excluded_ids(
    files: Sequence[Path],
    queries: Container[str],
    docs: Container[str],
    relevant: Mapping[str, Container[str]],
    left_out: Counter[str],
) -> Iterator[tuple[str, list[str]]]:
    """Yield the lists of excluded ids; a query of the split without one is an error, as in the published code."""
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
            unreachable = sum(name in relevant.get(query, ()) for name in names)
            left_out["relevant documents that are excluded for their query"] += unreachable
            yield query, names
    without = [query for query in relevant if query not in seen]
    if without:
        where = ", ".join(map(str, files))
        raise MirblabError(
            f"{where}: no row for {len(without):,} queries of the split, first '{min(without)}'; add a row for each"
        )


def _count_unused(unused: Counter[str], part: str, left_out: Counter[str]) -> None:
    left_out.update({f"values of the column {name} of {part} (not used)": count for name, count in unused.items()})


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


def _shown(rows: Iterable[Shown], total: int, label: str) -> Iterator[Shown]:
    with progress(total, label, "row") as bar:
        for row in rows:
            yield row
            bar.update()


def _check_unchanged(folder: Path, revision: str, sums: dict[str, str]) -> None:
    """Raise MirblabError when a file differs from the one that an earlier build of the same revision read."""
    try:
        before = read_card_table(folder)
    except MirblabError:
        return
    files = before.get("files", {}) if before.get("hub_revision") == revision else {}
    for name, digest in sums.items():
        if files.get(name, digest) != digest:
            raise MirblabError(
                f"{name} has changed under the same revision {revision}: SHA-256 {digest}, and {files[name]} when "
                f"{folder} was built; find out which is right, and remove that folder to build anew"
            )


def _published(entry: Row, counts: dict[str, int]) -> str:
    wanted = {what: entry[what] for what in counts if what in entry}
    if not wanted:
        return f"the paper prints no counts for this part of {entry.get('group', 'its group')}"
    other = [f"{what} {counts[what]:,} instead of {number:,}" for what, number in wanted.items()
             if counts[what] != number]  # fmt: skip
    shown = ", ".join(f"{number:,} {what}" for what, number in wanted.items())
    return "differs from the paper: " + ", ".join(other) if other else f"as published: {shown}"
