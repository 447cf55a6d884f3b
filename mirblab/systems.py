"""systems: named, composed systems from the registry, searched once and then read from the run store."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from mirblab import dense, fusion, late_search, lexical, paths, recipes, registry, rerank, results, rooms, runs
from mirblab.collection import Collection
from mirblab.encode import Encoder, encoder
from mirblab.engine import trained
from mirblab.errors import MirblabError, unknown
from mirblab.formula import approach0
from mirblab.formula import search as structure
from mirblab.run_store import RunStore

DEPTH = 1000


@dataclass(frozen=True)
class System:
    """What makes a run for a collection; `settings` is all that determines it.

    >>> system("bm25").settings["k1"]
    1.2
    """

    name: str
    label: str
    settings: dict[str, Any]

    def search(self, collection: Collection, depth: int = DEPTH) -> pd.DataFrame:
        """Return the run: query_id, doc_id, score, rank, at most *depth* documents per query, best first.

        A run that was made before is read from the store; a deeper one answers a shallower question.

        >>> from mirblab.shelf import load
        >>> run = system("bm25").search(load("mini-qa"), depth=3)
        >>> run.columns.tolist(), int(run["rank"].max())
        (['query_id', 'doc_id', 'score', 'rank'], 3)
        """
        if not isinstance(collection, Collection):
            raise MirblabError(f"search wants a Collection, found {collection!r:.60}; load it with load() first")
        if depth < 1:
            raise MirblabError(f"depth must be at least 1, found {depth}")
        # At least the usual depth, so that one search serves every later question.
        deep, make = max(depth, DEPTH), _KINDS[self.settings["kind"]]
        run = _store().once(self.run_key(collection), depth, deep, lambda: make(self, collection, deep))
        run = _over(run, collection, self.name)
        if self.origin:
            run.attrs = {"origin": self.origin, **run.attrs}
        return run

    def is_stored(self, collection: Collection, depth: int = DEPTH) -> bool:
        """Return whether the run is in the store already."""
        return _store().has(self.run_key(collection), depth)

    def run_key(self, collection: Collection) -> str:
        """Return the hash of all that determines the run: the collection (with its judgements), settings and code."""
        parts: dict[str, Any] = {"collection": collection.fingerprint, "system": self.key}
        if self.learns:
            parts["relevant_from"] = collection.card.relevant_from
        return _hash(parts)

    @property
    def origin(self) -> str:
        """Return who made the runs of an imported system, or of such a part of this one; "" for what is made here."""
        if self.settings["kind"] == "imported":
            return " and ".join(dict.fromkeys(origin for *_, origin in self.settings["files"].values()))
        return ", ".join(f"with {part.name}: {part.origin}" for part in self.parts() if part.origin)

    @property
    def learns(self) -> bool:
        """Return whether the run depends on the judgements: somewhere in it weights are cross-validated."""
        return recipes.learns(self.settings) or any(part.learns for part in self.parts())

    @property
    def key(self) -> dict[str, Any]:
        """Return all that determines this system's runs, parts of a composition included."""
        found = {name: value for name, value in self.settings.items() if name not in ("label", "paper")}
        if "of" in found:
            found["of"] = [system(part).key for part in found["of"]]
        if "first" in found:
            found["first"] = system(found["first"]).key
        if "encoder" in found:
            found["encoder"] = _encoder(found).key
            found.pop("compat", None)  # what differs is in the encoder's key
        if "reranker" in found:
            found["reranker"] = rerank.settings(found["reranker"], **recipes.pair_options(found))
        return found | {"version": rooms.VERSIONS[found["kind"]]}

    def parts(self) -> list[System]:
        """Return the systems that this one is composed of, itself not included."""
        return [system(name) for name in recipes.parts(self.settings)]

    def rerank(self, reranker: str, depth: int = recipes.DEPTH, max_length: int = 0, instruction: str = "") -> System:
        """Return the system whose first *depth* documents are ordered by *reranker*.

        *max_length* tokens and an *instruction* before the query ("card": the collection's own) take the place of
        the registry's when they are given.

        >>> system("bm25").rerank("maxsim", depth=50).name
        'bm25>maxsim@50'
        """
        return system(recipes.reranked(self.name, reranker, depth, max_length, instruction))


def system_names() -> list[str]:
    """Return the registered systems.

    >>> {"bm25", "bm25-mirb", "bm25-okapi", "minilm", "bm25+minilm"} <= set(system_names())
    True
    """
    return sorted(registry.read("systems"))


def system(name: str) -> System:
    """Return a system by its name in the registry, or one composed by its name.

    "a+b" fuses by reciprocal rank (k = 60), "a+b@combmnz" by another method, "a+b@cv" with cross-validated weights,
    "a+b@0.3,0.7" with given ones; "a>b@50" lets the reranker b order the first 50 documents of a, 10 when no depth
    is given, and "a>approach0@50" Approach0's scoring. A model that was trained here (`--out NAME`) is a dense system
    without an entry. MirblabError with a suggestion for an unknown name.

    >>> system("bm25+minilm").label
    'BM25 + MiniLM'
    >>> system("bm25-mirb+minilm>maxsim").settings["first"]
    'bm25-mirb+minilm'
    """
    entries = registry.read("systems")
    recipes.check_circle(name, entries)
    if name in entries:
        return System(name, str(entries[name].get("label", name)), recipes.checked(name, entries[name]))
    if name in results.names():
        return System(name, f"{name} {runs.SIGN}", results.settings(name))
    if trained(name):
        return System(name, name, {"kind": "dense", "encoder": name})
    found = recipes.composed(name)
    if found is None:
        raise unknown("system", name, {*entries, *results.names()})
    label = f" {recipes.SIGNS[found['kind']]} ".join(system(part).label for part in recipes.parts(found))
    made = System(name, label + recipes.remark(found), found)
    if found["kind"] == "rerank":
        rerank.settings(found["reranker"])
    if ">" in name:
        made = replace(made, label=f"{label} > {name.rpartition('>')[2]}")
    return made


def _bm25(self: System, collection: Collection, depth: int) -> pd.DataFrame:
    return lexical.search(collection, depth=depth, **recipes.options(self.settings))


def _structure(self: System, collection: Collection, depth: int) -> pd.DataFrame:
    return structure.search(collection, depth=depth, **recipes.options(self.settings))


def _dense(self: System, collection: Collection, depth: int) -> pd.DataFrame:
    model, instruction = _encoder(self.settings), collection.card.instruction
    documents = model.vectors(collection.texts, "document", instruction)
    queries = model.vectors(collection.query_texts, "query", instruction)
    found = dense.search(queries, documents, depth=depth, candidates=collection.candidates)
    return runs.from_positions(*found, collection.query_ids, collection.doc_ids, self.name, collection.name)


def _late(self: System, collection: Collection, depth: int) -> pd.DataFrame:
    return late_search.run(collection, depth, self.name, **recipes.options(self.settings))


def _encoder(settings: Mapping[str, Any]) -> Encoder:
    return encoder(settings["encoder"], settings.get("compat", ""))


def _fusion(self: System, collection: Collection, depth: int) -> pd.DataFrame:
    # Always the same depth of the parts, else the ranking would depend on how deep somebody asked before.
    parts = [part.search(collection, self.settings.get("depth", DEPTH)) for part in self.parts()]
    method, options = self.settings.get("method", "rrf"), recipes.fusion_options(self.settings)
    if method == "cv":
        return fusion.cross_validated(parts, collection, depth=depth, **options)
    return fusion.fuse(parts, method, depth, **options)


def _rerank(self: System, collection: Collection, depth: int) -> pd.DataFrame:
    first, reranked = self.parts()[0], self.settings["depth"]
    options = recipes.pair_options(self.settings)
    pairs = pair_scores(first, self.settings["reranker"], collection, reranked, **options)
    return rerank.reorder(first.search(collection, max(depth, reranked)), pairs, reranked)


def _approach0(self: System, collection: Collection, depth: int) -> pd.DataFrame:
    reranked = self.settings["depth"]
    found = self.parts()[0].search(collection, max(depth, reranked))
    scored = approach0.rescore(collection, found, reranked)
    return rerank.reorder(found, scored, reranked)


def pair_scores(
    first: System, reranker: str, collection: Collection, depth: int, max_length: int = 0, instruction: str = ""
) -> pd.DataFrame:
    """Return the reranker's scores of the first *depth* documents of each query, as a run; scored once and stored."""
    options = {"max_length": max_length, "instruction": instruction}
    parts = {
        "first": first.run_key(collection),
        "reranker": rerank.settings(reranker, **options),
        "depth": depth,
        "version": rooms.VERSIONS["rerank"],
    }
    scored = _store().once(
        _hash(parts),
        depth,
        depth,
        lambda: rerank.score_shortlist(first.search(collection, depth), collection, reranker, **options),
    )
    return _over(scored, collection, reranker)


def _imported(self: System, collection: Collection, depth: int) -> pd.DataFrame:
    return runs.cut(results.run(self.name, collection), depth)


_KINDS = {
    "approach0": _approach0, "bm25": _bm25, "dense": _dense, "fusion": _fusion, "imported": _imported,
    "late": _late, "rerank": _rerank, "structure": _structure,
}  # fmt: skip


def _store() -> RunStore:
    return RunStore(paths.cache() / "runs")


def _hash(parts: dict[str, Any]) -> str:
    return hashlib.blake2b(json.dumps(parts, sort_keys=True).encode(), digest_size=16).hexdigest()


def _over(run: pd.DataFrame, collection: Collection, name: str) -> pd.DataFrame:
    """Return the run with ids as categories of the collection, so that codes are positions."""
    columns: dict[str, Sequence[Any]] = {}
    for column, ids in (("query_id", collection.query_ids), ("doc_id", collection.doc_ids)):
        codes = ids.get_indexer(run[column].cat.categories)[run[column].cat.codes]
        columns[column] = pd.Categorical.from_codes(np.asarray(codes), ids)
    out = run.assign(**columns)
    out.attrs = {**run.attrs, "system": name, "collection": collection.name}
    return out
