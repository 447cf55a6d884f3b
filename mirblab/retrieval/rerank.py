"""rerank: score the pairs of a shortlist anew, and reorder it at any depth."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from mirblab.core import network, paths, registry
from mirblab.core.errors import MirblabError, unknown
from mirblab.core.terminal import progress
from mirblab.data import runs
from mirblab.data.collection import Collection
from mirblab.encoders.encoding import encoder
from mirblab.encoders.token_vectors import load_token_vectors
from mirblab.retrieval import late_interaction

_NEEDED = {"max-sim": "encoder", "cross-encoder": "id"}  # the kinds, and what each cannot do without
PAIR_BATCH = 512
DOC_BLOCK = 500


def reranker_settings(name_or_folder: str, max_length: int = 0, instruction: str = "") -> dict[str, Any]:
    """Return all that determines a reranker's scores: the registry's entry, or a local CrossEncoder folder's digest.

    *max_length* and *instruction* replace the entry's when they are given; the instruction "card" stands for the
    collection's own. Raises MirblabError with a suggestion for an unknown name.

    >>> reranker_settings("maxsim", max_length=64)["max_length"]
    64
    """
    more = {key: value for key, value in (("max_length", max_length), ("instruction", instruction)) if value}
    return _read_entry(name_or_folder) | more


def _read_entry(name_or_folder: str) -> dict[str, Any]:
    entries = registry.read_registry("rerankers")
    if name_or_folder in entries:
        found = dict(entries[name_or_folder])
        where = f"the reranker '{name_or_folder}' in {registry.entry_file('rerankers', name_or_folder)}"
        if found.get("kind") not in _NEEDED:
            raise MirblabError(f"{where}: {unknown('kind of reranker', str(found.get('kind')), _NEEDED)}")
        if not found.get(_NEEDED[found["kind"]]):
            raise MirblabError(f"{where} lacks {_NEEDED[found['kind']]}; add it to the entry")
        for shown in ("label", "size", "licence"):
            found.pop(shown, None)
        if found["kind"] == "max-sim":
            found["key"] = encoder(found["encoder"]).key
        elif paths.path_exists(found["id"]):
            from mirblab.encoders.local import folder_digest

            found["revision"] = folder_digest(Path(found["id"]))
        elif not found.get("revision"):
            raise MirblabError(f"{where} has no revision; pin one")
        return found
    if paths.path_exists(Path(name_or_folder) / "config.json"):
        from mirblab.encoders.local import folder_digest

        folder = Path(name_or_folder)
        return {
            "kind": "cross-encoder",
            "id": folder.resolve().name,
            "revision": folder_digest(folder),
            "max_length": 512,
        }
    raise unknown("reranker", name_or_folder, entries)


def score_shortlist(
    shortlist: pd.DataFrame, collection: Collection, reranker: str, max_length: int = 0, instruction: str = ""
) -> pd.DataFrame:
    """Return a run of the same pairs whose scores are the reranker's; the options are those of `reranker_settings`.

    *shortlist* has the collection's ids as categories, as every system's run has. Raises MirblabError for an
    unknown reranker, or one whose model is not at hand.
    """
    queries = shortlist.query_id.cat.codes.to_numpy()
    docs = shortlist.doc_id.cat.codes.to_numpy()
    scorer = _scorer(reranker_settings(reranker, max_length, instruction), reranker)
    scores = scorer(collection, queries, docs) if len(shortlist) else np.empty(0, np.float32)
    return runs.from_positions(
        queries, docs, scores, collection.query_ids, collection.doc_ids, reranker, collection.name
    )


def reorder_run(run: pd.DataFrame, pairs: pd.DataFrame, depth: int) -> pd.DataFrame:
    """Return *run* with its first *depth* documents in the order of their scores in *pairs*, the rest as it was.

    Scores are ranks below zero, so that only the order counts, however large the scores were. Raises MirblabError
    when *pairs* lacks a document of the first *depth*.

    >>> run = pd.DataFrame({"query_id": "q", "doc_id": ["a", "b", "c"], "score": [3.0, 2.0, 1.0]})
    >>> pairs = pd.DataFrame({"query_id": "q", "doc_id": ["a", "b"], "score": [0.1, 0.9]})
    >>> reorder_run(run, pairs, 2).doc_id.tolist()
    ['b', 'a', 'c']
    """
    if depth < 1:
        raise MirblabError(f"the depth of a reranker must be at least 1, found {depth}")
    ranked = runs.order_run(run)
    scored = ranked.merge(
        pairs.astype({"query_id": "str", "doc_id": "str"}),
        how="left",
        suffixes=("", "_pair"),
        on=["query_id", "doc_id"],
    )
    head, pair = (ranked["rank"] <= depth).to_numpy(), scored["score_pair"].to_numpy(np.float32)
    if np.isnan(pair[head]).any():
        raise MirblabError(f"{int(np.isnan(pair[head]).sum()):,} documents of the first {depth} have no pair score")
    front = runs.order_run(ranked[head].drop(columns="rank").assign(score=pair[head]))
    fresh = pd.concat([front, ranked[~head]])
    fresh = fresh.assign(score=-fresh["rank"].astype(np.float32)).drop(columns="rank")
    fresh.attrs = dict(run.attrs)
    return runs.order_run(fresh)


Scorer = Callable[[Collection, np.ndarray, np.ndarray], np.ndarray]


def _scorer(found: dict[str, Any], name: str) -> Scorer:
    if found["kind"] == "max-sim":
        return lambda collection, queries, docs: _max_sim(found, collection, queries, docs)
    local = found if name in registry.read_registry("rerankers") else found | {"id": name}
    return lambda collection, queries, docs: _cross_encode(local, collection, queries, docs)


def _instructed_queries(found: dict[str, Any], collection: Collection) -> list[str]:
    """Return the queries with the instruction before them: the collection's own ("card"), or a text of the registry."""
    said = found.get("instruction", "")
    before = f"{collection.card.instruction} " if said == "card" else said
    return [before + text for text in collection.query_texts]


def _max_sim(found: dict[str, Any], collection: Collection, queries: np.ndarray, docs: np.ndarray) -> np.ndarray:
    """Return MaxSim for each pair; every text is encoded once, stored, and read in blocks."""
    model, texts = encoder(found["encoder"]), _instructed_queries(found, collection)
    longest = found.get("max_length") or None
    asked, query_place = np.unique(queries, return_inverse=True)
    wanted, doc_place = np.unique(docs, return_inverse=True)
    query_rows = load_token_vectors(model, [texts[place] for place in asked], "query")
    doc_rows = load_token_vectors(model, [collection.texts[place] for place in wanted])
    query_vectors = late_interaction.split_by_text(query_rows, 0, len(asked), longest)
    scores = np.empty(len(queries), np.float32)
    with progress(len(wanted), f"{collection.name}: MaxSim", "doc") as bar:
        for start in range(0, len(wanted), DOC_BLOCK):
            vectors = late_interaction.split_by_text(doc_rows, start, min(start + DOC_BLOCK, len(wanted)), longest)
            here = np.flatnonzero((doc_place >= start) & (doc_place < start + DOC_BLOCK))
            pairs = list(zip(query_place[here].tolist(), (doc_place[here] - start).tolist(), strict=True))
            scores[here] = late_interaction.score_pairs(query_vectors, vectors, pairs)
            bar.update(len(vectors))
    return scores


def _cross_encode(found: dict[str, Any], collection: Collection, queries: np.ndarray, docs: np.ndarray) -> np.ndarray:
    """Return the cross-encoder's score of each pair, longest pairs first so that batches waste little."""
    model = _cross_encoder(
        found["id"], found.get("revision", ""), found.get("max_length", 512), bool(found.get("trust_remote_code"))
    )
    texts, asked = collection.texts, _instructed_queries(found, collection)
    pairs = [(asked[query], texts[doc]) for query, doc in zip(queries, docs, strict=True)]
    longest = sorted(range(len(pairs)), key=lambda place: -len(pairs[place][0]) - len(pairs[place][1]))
    scores = np.empty(len(pairs), np.float32)
    with progress(len(pairs), f"{collection.name}: {found['id']}", "pair") as bar:
        for start in range(0, len(pairs), PAIR_BATCH):
            places = longest[start : start + PAIR_BATCH]
            scores[places] = model.predict([pairs[place] for place in places], batch_size=16, show_progress_bar=False)
            bar.update(len(places))
    return scores


@lru_cache(maxsize=2)
def _cross_encoder(name: str, revision: str, max_length: int, trust: bool) -> Any:
    """Return the loaded model; remote code runs only for an entry that asks for it and pins a revision."""
    from huggingface_hub import snapshot_download

    local = paths.path_exists(name)
    if trust and not revision:
        raise MirblabError(f"the reranker '{name}' wants remote code; pin its revision in rerankers.toml")
    revised, silence = None if local else revision or None, "" if local else network.hub_unreachable_reason()
    try:
        if silence:  # asked before the libraries, which take seconds to import
            snapshot_download(name, revision=revised, local_files_only=True)
        from sentence_transformers import CrossEncoder

        return CrossEncoder(
            name, revision=revised, max_length=max_length, trust_remote_code=trust, local_files_only=bool(silence)
        )
    except OSError as error:
        raise MirblabError(
            f"the reranker '{name}' is not on this machine and the Hub cannot be reached; "
            f"download it where there is a network, or give a local folder: {silence or error}"
        ) from error
