"""hub: MIRB's fifteen published datasets, from the Hub or from a local folder laid out like it, to collections."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

from mirblab.core import paths, registry
from mirblab.core.errors import MirblabError, unknown
from mirblab.core.terminal import progress, say
from mirblab.data.collection import read_card_table
from mirblab.sources.shared import beir, builder, release
from mirblab.sources.shared.builder import Row
from mirblab.sources.shared.release import DatasetFiles

ABOUT = ("title", "task", "instruction", "paper", "group", "relevance_levels", "relevant_from", "restricted", "hub")


def build(origin: str | Path | None, out: Path, names: Sequence[str] = ()) -> list[Path]:
    """Write the datasets *names* (empty: all fifteen) as collections under *out* and return their folders.

    *origin* is a folder that has a folder per dataset (`msedup`, `hcju/msedup`, `hcju__msedup`), or, for a single
    one, its own folder; None fetches each from the Hub at its pinned revision. Each collection appears whole or not
    at all; when one of several fails, the others are built and the error at the end says which failed and why.
    """
    known = dataset_names()
    for name in names:
        if name not in known:
            raise unknown("dataset of MIRB", name, known)
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
    """Return the names of the published datasets, in the paper's order.

    >>> len(dataset_names()), dataset_names()[0]
    (15, 'mirb-mathlib')
    """
    return [name for name, entry in registry.read_registry("collections").items() if entry.get("builder") == "mirb"]


def _build(name: str, origin: str | Path | None, out: Path, *, alone: bool) -> Path:
    entry = registry.read_registry("collections")[name]
    hub, revision, restricted = entry["hub"], str(entry.get("revision", "")), bool(entry.get("restricted"))
    if not re.fullmatch("[0-9a-f]{40}", revision):
        raise MirblabError(f"{name}: a revision is a commit of 40 hexadecimal digits, found '{revision}'")
    by_tags = restricted and entry.get("rule") == "tags"
    choose = partial(release.find_required_parts, restricted=restricted and not by_tags)
    if origin is None:
        instead = (
            f"run 'mirblab build {name}' where there is a network and copy its folder to {out / name}, "
            f"or give a copy of the dataset: mirblab build {name} --from FOLDER"
        )
        found = release.fetch_dataset(hub, revision, choose=choose, instead=instead)
    else:
        folder = release.find_local_dataset(str(origin), hub, name, alone=alone)
        found = DatasetFiles(folder, choose(release.list_files(folder), str(folder)))
    sums = found.checked(f"mirblab build {name}")
    _compare(out / name, revision, sums)
    # A published list stands even where documents carry tags: it is what the paper's numbers were made with.
    by_tags = by_tags and not found.parts["excluded_ids"]
    with builder.replace_folders(out, (name,)) as [beside]:
        _write(beside, entry, found, sums, origin, by_tags=by_tags)
    return out / name


def _write(
    folder: Path, entry: Row, found: DatasetFiles, sums: dict[str, str], origin: str | Path | None, *, by_tags: bool
) -> None:
    left_out: Counter[str] = Counter()
    docs, queries = beir.read_ids(found.paths("corpus")), beir.read_ids(found.paths("queries"))
    judged = beir.read_judgements(found.paths("qrels"), queries, docs, left_out)
    counts = {"queries": len({query for query, *_ in judged}), "documents": len(docs)}
    left_out["queries without a judgement (kept, outside the split)"] = len(queries) - counts["queries"]
    if entry.get("restricted") and not by_tags:
        paths_of_lists, relevant = found.paths("excluded_ids"), _relevant(judged)
        lists = beir.read_excluded_ids(paths_of_lists, queries, docs, relevant, left_out)
        _write_lists(folder, lists, len(queries))
    content = "sha256:" + hashlib.sha256(json.dumps(sorted(sums.items())).encode()).hexdigest()
    about = {key: entry[key] for key in ABOUT if key in entry}
    about |= {"candidates": ["tags"]} if by_tags else {}
    about |= {"hub_revision": entry["revision"], "published": _published(entry, counts), "files": sums}
    rows = (
        _shown(beir.read_texts(found.paths(what), what, left_out, tags=by_tags), len(ids), f"{folder.name}: {what}")
        for what, ids in (("corpus", docs), ("queries", queries))
    )
    parts = builder.CollectionRows(*rows, {"test": judged}, left_out)
    shown = "" if origin is None else paths.expand_home(origin).resolve().name
    where = release.Origin(found.folder, f"https://huggingface.co/datasets/{entry['hub']}", found.commit, shown)
    licence = entry.get("licence") or found.licence or "unknown"
    builder.write_collection(folder, parts, about, where, builder=folder.name, revision=content, licence=licence)
    say(f"  {about['published']}")


def _relevant(judged: Iterable[beir.Judgement]) -> dict[str, set[str]]:
    """Return the relevant documents of every judged query, also of one that has none."""
    found: dict[str, set[str]] = defaultdict(set)
    for query, doc, relevance in judged:
        found[query].update([doc] if relevance > 0 else [])
    return dict(found)


def _write_lists(folder: Path, lists: Iterator[Row], n_queries: int) -> None:
    """Write the excluded lists line by line; all of them need not fit in memory."""
    with (
        paths.write_atomically(folder / "excluded_ids.jsonl") as path,
        paths.open_to_write(path, "w") as file,
    ):
        for row in _shown(lists, n_queries, f"{folder.name}: excluded_ids"):
            file.write(json.dumps(row, ensure_ascii=False) + "\n")


def _shown(rows: Iterable[Row], total: int, label: str) -> Iterator[Row]:
    with progress(total, label, "row") as bar:
        for row in rows:
            yield row
            bar.update()


def _compare(folder: Path, revision: str, sums: dict[str, str]) -> None:
    """Raise MirblabError when a file is not what an earlier build of the same revision read under its name."""
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
    """Return whether the collection is as large as the paper prints, and what differs."""
    wanted = {what: entry[what] for what in counts if what in entry}
    if not wanted:
        return f"the paper prints no counts for this part of {entry.get('group', 'its group')}"
    other = [f"{what} {counts[what]:,} instead of {number:,}" for what, number in wanted.items()
             if counts[what] != number]  # fmt: skip
    shown = ", ".join(f"{number:,} {what}" for what, number in wanted.items())
    return "differs from the paper: " + ", ".join(other) if other else f"as published: {shown}"
