"""hard: a collection of statements and proofs, made harder by proofs that look right and are not the query's."""

from __future__ import annotations

import contextlib
import json
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mirblab import digests, paths
from mirblab import folder as on_disk
from mirblab.card import raw
from mirblab.errors import MirblabError
from mirblab.lines import Problems, find, records
from mirblab.sources import hard_negatives, mini, shape
from mirblab.sources import origin as origins
from mirblab.sources.origin import Origin
from mirblab.sources.shape import Parts, Row

DEFAULT = "stacks-qa"
NOTE = (
    "Corrupted copies are made by rule and read by nobody: some mistakes may do no harm. Equal scores go by id, "
    "descending, and a copy's id comes before its original's: a system that cannot tell them apart gains nothing."
)
KEPT = ("task", "instruction", "relevance_levels", "relevant_from")


@dataclass
class _Source:
    """What is made harder: rows by id, the card, the judgements of test, and every statement's relevant documents."""

    corpus: dict[str, Row]
    queries: dict[str, Row]
    card: Row
    judged: list[tuple[str, str, int]]
    proofs: dict[str, list[str]]


@dataclass
class _Negatives:
    """By query of test, the corrupted copies of its proofs and the proofs of near statements."""

    copies: dict[str, list[Row]]
    near: dict[str, list[str]]
    left_out: Counter[str]

    def counts(self, query: str) -> Counter[str]:
        """Return how many negatives of which kind a query has."""
        return Counter(row["metadata"]["corrupted"] for row in self.copies[query]) + Counter(near=len(self.near[query]))


def build(origin: str | Path | None, out: Path, *, seed: int = 0, near: int = 5) -> list[Path]:
    """Write <name>-hard and <name>-hard-pool under *out*, print what was made, and return their folders.

    *origin* is a collection, statement to proof, by its name (None: stacks-qa) or folder; its test queries are
    kept. For each of them the corpus gains at most one corrupted copy of each relevant proof per kind of mistake
    (`corruptions`), drawn with *seed* and judged 0, and the proofs of the *near* statements that are nearest to
    the query are marked. In <name>-hard every query may return every document; in <name>-hard-pool only its own
    proofs, their corrupted copies and the near ones, so that nDCG@1 and RR tell whether a system prefers the true
    proof. The same input and seed give the same bytes. Raises MirblabError for what is no collection.
    """
    if near < 0:
        raise MirblabError(f"near must be 0 or more, found {near}")
    out = Path(out)
    with _opened(str(origin or DEFAULT), out) as (folder, shown):
        source = _read(folder)
    negatives = _negatives(source, seed, near)
    name = paths.clean_name(str(source.card.get("name") or shown))
    names = (f"{name}-hard", f"{name}-hard-pool")
    licence = str(source.card.get("licence") or "unknown")
    where = Origin(out, str(source.card.get("source", "")), str(source.card.get("revision", "")), shown)
    with origins.together(out, names) as folders:
        for target, pools in zip(folders, ({}, _pools(source, negatives)), strict=True):
            if pools:
                _write_pools(target / "candidates.jsonl", pools)
            about = _about(source, negatives, bool(pools)) | {"seed": seed, "near": near}
            parts = _parts(source, negatives, pools)
            shape.save(target, parts, about, where, builder="hard", revision="unknown", licence=licence)
    return [out / name for name in names]


@contextlib.contextmanager
def _opened(name: str, out: Path) -> Iterator[tuple[Path, str]]:
    """Yield the folder of a collection given by folder or name, and what to call it in a command."""
    if name in mini.COLLECTIONS:
        with tempfile.TemporaryDirectory(prefix="mirblab-") as folder:
            yield mini.build(name, Path(folder) / name), name
        return
    places = (out / name, paths.data() / name, paths.given(name))
    known = [folder for folder in places if folder.is_dir() and find(folder, "corpus")]
    if not known:
        raise MirblabError(f"'{name}' is neither a collection that is built nor the folder of one; build it first")
    yield known[0], known[0].resolve().name


def _read(folder: Path) -> _Source:
    """Return a collection's rows as they are, after the checks that loading makes."""
    digests.check(folder)
    corpus, queries = (on_disk.read_texts(folder, stem) for stem in ("corpus", "queries"))
    about = raw(folder)
    asked: list[tuple[str, str, int]] = []
    proofs: dict[str, list[str]] = {}
    for split in sorted({"test", *on_disk.splits(folder)}):
        judged = on_disk.read_qrels(folder, split, queries.query_id, corpus.doc_id)
        pairs = list(zip(judged.query_id, judged.doc_id, judged.relevance.tolist(), strict=True))
        asked = pairs if split == "test" else asked
        for query, doc, relevance in pairs:
            own = proofs.setdefault(query, [])
            own += [doc] if relevance >= about.get("relevant_from", 1) and doc not in own else []
    return _Source(_rows(folder, "corpus"), _rows(folder, "queries"), about, asked, proofs)


def _rows(folder: Path, stem: str) -> dict[str, Row]:
    path = find(folder, stem) or folder / f"{stem}.jsonl"
    return {str(row["_id"]): row for _, row in records(path, Problems(path))}


def _negatives(source: _Source, seed: int, n_near: int) -> _Negatives:
    """Return the wrong proofs of every test query."""
    left_out: Counter[str] = Counter()
    asked = list(dict.fromkeys(query for query, *_ in source.judged))
    if not any(source.proofs[query] for query in asked):
        raise MirblabError("no query of test has a relevant document, so that there is no proof to corrupt")
    right = sorted({doc for query in asked for doc in source.proofs[query]})
    by_proof = hard_negatives.corrupted(source.corpus, right, seed, left_out)
    texts = {name: row["text"] for name, row in source.queries.items()}
    near = hard_negatives.near(texts, source.proofs, asked, n_near)
    copies = {query: [row for doc in source.proofs[query] for row in by_proof[doc]] for query in asked}
    left_out["queries without a corrupted copy of their proof"] = sum(not rows for rows in copies.values())
    left_out["queries without a relevant document"] = sum(not source.proofs[query] for query in asked)
    left_out["queries of other splits"] = len(source.queries) - len(asked)
    return _Negatives(copies, near, left_out)


def _pools(source: _Source, negatives: _Negatives) -> dict[str, list[str]]:
    """Return the documents that each query of the pool may return, right ones first."""
    found = {
        query: [*source.proofs[query], *(row["_id"] for row in rows), *negatives.near[query]]
        for query, rows in negatives.copies.items()
    }
    return {query: list(dict.fromkeys(names)) for query, names in found.items() if names}


def _write_pools(path: Path, pools: dict[str, list[str]]) -> None:
    with paths.write_atomically(path) as beside, paths.open_to_write(beside, "w") as file:
        for query, names in pools.items():
            file.write(json.dumps({"query-id": query, "candidate-ids": names}, ensure_ascii=False) + "\n")


def _parts(source: _Source, negatives: _Negatives, pools: dict[str, list[str]]) -> Parts:
    """Return the collection over all documents, or, with *pools*, over what is in one."""
    near_to: dict[str, list[str]] = defaultdict(list)
    for query, docs in negatives.near.items():
        for doc in docs:
            near_to[doc].append(query)
    corpus = {name: _marked(row, {"near_to": near_to[name]} if name in near_to else {})
              for name, row in source.corpus.items()}  # fmt: skip
    copies = {row["_id"]: row for rows in negatives.copies.values() for row in rows}
    wanted = {name for names in pools.values() for name in names}
    rows = {name: row for name, row in (corpus | copies).items() if not pools or name in wanted}
    queries = (
        _marked(source.queries[query], {"negatives": dict(sorted(negatives.counts(query).items())), "near": docs})
        for query, docs in negatives.near.items() if not pools or query in pools
    )  # fmt: skip
    wrong = [(query, row["_id"], 0) for query, made in negatives.copies.items() for row in made]
    judged = [pair for pair in (*source.judged, *wrong) if pair[1] in rows]
    return Parts(rows.values(), queries, {"test": judged}, Counter(negatives.left_out))


def _marked(row: Row, more: Row) -> Row:
    return {**row, "metadata": {**(row.get("metadata") or {}), **more}} if more else row


def _about(source: _Source, negatives: _Negatives, is_pool: bool) -> Row:
    """Return the card: what stays of the source's, the title, and how many negatives of which kind there are."""
    total = sum((negatives.counts(query) for query in negatives.copies), Counter[str]())
    title = str(source.card.get("title") or "Statement to its proof")
    more = "among corrupted copies and near proofs only" if is_pool else "with corrupted copies among the documents"
    kept = {key: source.card[key] for key in KEPT if key in source.card}
    return {
        **kept,
        "title": f"{title}, {more}",
        "note": NOTE,
        "negatives": dict(sorted(total.items())),
    }
