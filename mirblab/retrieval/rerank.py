"""rerank: scores of a reranker for the pairs of a shortlist, and the reordered run."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd

from mirblab.core import network, paths, registry
from mirblab.core.errors import MirblabError, check_known, check_positive, unknown
from mirblab.core.terminal import progress
from mirblab.core.text_files import read_json
from mirblab.data import runs
from mirblab.data.collection import Collection
from mirblab.data.parts import texts_at
from mirblab.encoders.encoding import encoder
from mirblab.encoders.local import find_trained, folder_digest, use_plain_attention
from mirblab.encoders.token_vectors import load_token_vectors
from mirblab.formula import approach0
from mirblab.retrieval import late_interaction

# Raised by one whenever the runs of this kind change; otherwise tests/retrieval/test_golden_runs.py fails.
RUNS_VERSION = 1

APPROACH0 = "approach0"
_NEEDED = {"max-sim": "encoder", "cross-encoder": "id"}  # the kinds, and what each cannot do without
_SHOWN = ("label", "size", "licence")
_FIELDS = (
    *("kind", "encoder", "id", "revision", "instruction", "dtype", "max_length", "trust_remote_code", "trained"),
    *_SHOWN,
)
_DTYPES = ("float32", "bfloat16")
_OWN_MODULES = "mirblab.encoders.segments."
PAIR_BATCH = 512
_AT_ONCE = {"cpu": 16}  # pairs in one pass; on a GPU all of a batch, which is busy then
DOC_BLOCK = 500


def reranker_settings(name_or_folder: str, max_length: int = 0, instruction: str = "") -> dict[str, Any]:
    """Return all that determines a reranker's scores; the instruction "card" stands for the collection's own.

    "approach0" scores formulas by Approach0's rules, which have neither a length nor an instruction.
    """
    if name_or_folder == APPROACH0:
        return {"kind": APPROACH0, "rules": approach0.RUNS_VERSION}
    options = {key: value for key, value in (("max_length", max_length), ("instruction", instruction)) if value}
    return _read_entry(name_or_folder) | options


def used_settings(
    name_or_folder: str, collection: Collection, max_length: int = 0, instruction: str = ""
) -> dict[str, Any]:
    """Return `reranker_settings` as they are used on *collection*: without "card" where it has no instruction.

    What reads formulas also depends on the task of the collection, which says whether each text is one formula.
    """
    settings = reranker_settings(name_or_folder, max_length, instruction)
    if settings["kind"] == APPROACH0:
        return settings | {"task": collection.card.task}
    if settings.get("instruction") == "card" and not collection.card.instruction:
        del settings["instruction"]
    return settings


def _read_entry(name_or_folder: str) -> dict[str, Any]:
    entries, folder = registry.read_registry("rerankers"), paths.expand_home(name_or_folder)
    if name_or_folder not in entries:
        if find_trained(name_or_folder):
            return {"kind": "cross-encoder"} | _trained(name_or_folder)
        if not paths.path_exists(folder / "config.json"):
            raise unknown("reranker", name_or_folder, entries)
        name, revision = folder.resolve().name, folder_digest(folder)
        return {"kind": "cross-encoder", "id": name, "revision": revision, "max_length": 512}
    entry = {key: value for key, value in entries[name_or_folder].items() if key not in _SHOWN}
    where = f"the reranker '{name_or_folder}' in {registry.entry_file('rerankers', name_or_folder)}"
    check_known(f"field of {where} called", list(entry), _FIELDS)
    if entry.get("kind") not in _NEEDED:
        raise MirblabError(f"{where}: {unknown('kind of reranker', str(entry.get('kind')), _NEEDED)}")
    if entry.get("dtype", _DTYPES[0]) not in _DTYPES:
        raise MirblabError(f"{where}: {unknown('dtype', str(entry['dtype']), _DTYPES)}")
    if entry.pop("trained", False):
        return entry | _trained(name_or_folder)
    if not entry.get(_NEEDED[entry["kind"]]):
        raise MirblabError(f"{where} lacks {_NEEDED[entry['kind']]}; add it to the entry")
    if entry["kind"] == "max-sim":
        entry["key"] = encoder(entry["encoder"]).key
    elif paths.path_exists(folder := paths.expand_home(entry["id"])):
        entry["revision"] = folder_digest(folder)
    elif not entry.get("revision"):
        raise MirblabError(f"{where} has no revision; pin one")
    return entry


def _trained(name: str) -> dict[str, Any]:
    """Return what identifies a cross-encoder that was trained here; MirblabError when it was not yet."""
    folder = find_trained(name)
    if folder is None:
        raise MirblabError(f"the reranker '{name}' is not trained yet; run: mirblab train {name}")
    if read_json(folder / "config_sentence_transformers.json").get("model_type") != "CrossEncoder":
        raise MirblabError(f"'{name}' is an encoder and scores no pairs; search with it as a system: {name}")
    length = read_json(folder / "tokenizer_config.json").get("model_max_length", 512)
    own = any(module["type"].startswith(_OWN_MODULES) for module in read_json(folder / "modules.json"))
    trust = {"trust_remote_code": True} if own else {}  # so that sentence-transformers takes a module of this package
    return {"id": name, "revision": folder_digest(folder), "max_length": length} | trust


def score_shortlist(
    shortlist: pd.DataFrame, collection: Collection, reranker: str, max_length: int = 0, instruction: str = ""
) -> pd.DataFrame:
    """Return a run of the same pairs with the reranker's scores; *shortlist* has the collection's ids as categories."""
    queries = shortlist.query_id.cat.codes.to_numpy()
    docs = shortlist.doc_id.cat.codes.to_numpy()
    settings = used_settings(reranker, collection, max_length, instruction)
    if settings["kind"] == APPROACH0:
        return approach0.rescore(collection, shortlist) if len(shortlist) else shortlist
    if settings["kind"] == "cross-encoder" and reranker not in registry.read_registry("rerankers"):
        settings["id"] = reranker  # the folder
    if trained := find_trained(reranker):
        settings["id"] = str(trained)
    score = _max_sim if settings["kind"] == "max-sim" else _cross_encode
    scores = score(settings, collection, queries, docs) if len(shortlist) else np.empty(0, np.float32)
    return runs.from_positions(
        queries, docs, scores, collection.query_ids, collection.doc_ids, reranker, collection.name
    )


def reorder_run(run: pd.DataFrame, pairs: pd.DataFrame, depth: int) -> pd.DataFrame:
    """Return *run* with its first *depth* documents in the order of *pairs*; the new scores are negative ranks."""
    check_positive(depth=depth)
    ranked = runs.order_run(run)
    pairs = pairs.astype({"query_id": "str", "doc_id": "str"})
    scored = ranked.merge(pairs, how="left", suffixes=("", "_pair"), on=["query_id", "doc_id"])
    head, pair = (ranked["rank"] <= depth).to_numpy(), scored["score_pair"].to_numpy(np.float32)
    if np.isnan(pair[head]).any():
        raise MirblabError(f"{int(np.isnan(pair[head]).sum()):,} documents of the first {depth} have no pair score")
    front = runs.order_run(ranked[head].drop(columns="rank").assign(score=pair[head]))
    reordered = pd.concat([front, ranked[~head]])
    reordered = reordered.assign(score=-reordered["rank"].astype(np.float32)).drop(columns="rank")
    reordered.attrs = dict(run.attrs)
    return runs.order_run(reordered)


def _instructed_queries(settings: dict[str, Any], collection: Collection) -> list[str]:
    instruction = settings.get("instruction", "")
    before = f"{collection.card.instruction} " if instruction == "card" else instruction
    return [before + text for text in collection.query_texts]


def _max_sim(settings: dict[str, Any], collection: Collection, queries: np.ndarray, docs: np.ndarray) -> np.ndarray:
    from threadpoolctl import threadpool_limits

    model, texts = encoder(settings["encoder"]), _instructed_queries(settings, collection)
    longest = settings.get("max_length") or None
    used_queries, query_index = np.unique(queries, return_inverse=True)
    used_docs, doc_index = np.unique(docs, return_inverse=True)
    query_rows = load_token_vectors(model, [texts[position] for position in used_queries], "query")
    doc_rows = load_token_vectors(model, texts_at(collection.texts, used_docs))
    query_vectors = late_interaction.split_by_text(query_rows, 0, len(used_queries), longest)
    scores = np.empty(len(queries), np.float32)
    # One thread: the last bit of a product depends on the number of threads.
    with threadpool_limits(1, "blas"), progress(len(used_docs), f"{collection.name}: MaxSim", "doc") as bar:
        for start in range(0, len(used_docs), DOC_BLOCK):
            vectors = late_interaction.split_by_text(doc_rows, start, min(start + DOC_BLOCK, len(used_docs)), longest)
            here = np.flatnonzero((doc_index >= start) & (doc_index < start + DOC_BLOCK))
            pairs = zip(query_index[here].tolist(), (doc_index[here] - start).tolist(), strict=True)
            scores[here] = [late_interaction.max_sim(query_vectors[query], vectors[doc]) for query, doc in pairs]
            bar.update(len(vectors))
    return scores


def _cross_encode(
    settings: dict[str, Any], collection: Collection, queries: np.ndarray, docs: np.ndarray
) -> np.ndarray:
    """Return the cross-encoder's score of each pair; pairs of one document go together, the longest documents first.

    So batches have little padding, and a model that reads query and document apart reads a document once.
    """
    import torch

    trust, max_length = bool(settings.get("trust_remote_code")), settings.get("max_length", 512)
    halved = settings.get("dtype") == "bfloat16"
    model = _cross_encoder(settings["id"], settings.get("revision", ""), max_length, trust, halved)
    device = model.device.type
    used_docs, places = np.unique(docs, return_inverse=True)
    doc_texts, query_texts = texts_at(collection.texts, used_docs), _instructed_queries(settings, collection)
    pairs = [(query_texts[query], doc_texts[place]) for query, place in zip(queries, places, strict=True)]
    query_sizes, doc_sizes = (np.array([len(text) for text in texts], np.int64) for texts in (query_texts, doc_texts))
    order = np.lexsort((-query_sizes[queries], docs, -doc_sizes[places])).tolist()
    scores = np.empty(len(pairs), np.float32)
    at_once = _AT_ONCE.get(device, PAIR_BATCH)
    with (
        torch.autocast(device, dtype=torch.bfloat16, enabled=halved),
        progress(len(pairs), f"{collection.name}: {settings['id']}", "pair") as bar,
    ):
        for start in range(0, len(pairs), PAIR_BATCH):
            batch = order[start : start + PAIR_BATCH]
            scores[batch] = model.predict(
                [pairs[index] for index in batch], batch_size=at_once, show_progress_bar=False
            )
            bar.update(len(batch))
    return scores


@lru_cache(maxsize=2)
def _cross_encoder(name: str, revision: str, max_length: int, trust: bool, halved: bool) -> Any:
    """Return the loaded model; remote code runs only for an entry that asks for it and pins a revision.

    *halved*: it will run in bfloat16.
    """
    from huggingface_hub import snapshot_download

    local = paths.path_exists(folder := paths.expand_home(name))
    name = str(folder) if local else name
    if trust and not revision:
        raise MirblabError(f"the reranker '{name}' wants remote code; pin its revision in rerankers.toml")
    pinned, unreachable = None if local else revision or None, "" if local else network.hub_unreachable_reason()
    try:
        if unreachable:  # checked before the import of libraries that take seconds
            snapshot_download(name, revision=pinned, local_files_only=True)
        from sentence_transformers import CrossEncoder

        model = CrossEncoder(
            name, revision=pinned, max_length=max_length, trust_remote_code=trust, local_files_only=bool(unreachable)
        )
        if halved:
            use_plain_attention(model)
        return model
    except OSError as error:
        raise MirblabError(
            f"the reranker '{name}' is not on this machine and the Hub cannot be reached; "
            f"download it where there is a network, or give a local folder: {unreachable or error}"
        ) from error
