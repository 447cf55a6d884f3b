"""systems: systems by name and their composition."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from mirblab.core import paths, registry
from mirblab.core.errors import MirblabError, suggest, unknown
from mirblab.data import runs
from mirblab.data.collection import Collection
from mirblab.encoders.encoding import Encoder, encoder
from mirblab.encoders.local import find_trained
from mirblab.evaluation import imported
from mirblab.evaluation.measures import parse_measure
from mirblab.formula import approach0
from mirblab.formula import search as structure
from mirblab.retrieval import bm25, dense, fusion, late_interaction, rerank, run_store
from mirblab.retrieval.fusion import METHODS
from mirblab.retrieval.run_store import RunStore

_DEEPEST = 10  # systems within each other
SHORTLIST_DEPTH = 10  # the published benchmark reranks ten documents
APPROACH0 = "approach0"
SIGNS = {"fusion": "+", "rerank": ">", APPROACH0: ">"}
_WEIGHTS = re.compile(r"\d+(?:\.\d+)?(?:,\d+(?:\.\d+)?)+")
_OPTIONS = re.compile(r"(?P<depth>\d+)(?:,(?P<max_length>\d+)t)?(?P<instructed>,instructed)?")

# What each method of fusion may set, beside `of`, `method` and `depth`.
FUSIONS = dict.fromkeys(METHODS, ()) | {
    "rrf": ("k",), "linear": ("weights", "span"), "sum": ("weights",), "logisr": ("sigma",),
    "cv": ("measure", "folds", "seed", "resamples", "span"),
}  # fmt: skip
_EVERY_FUSION = ("kind", "label", "paper", "of", "method", "depth")

# What each kind of system may set, and of what type; * must be there.
SETTINGS_BY_KIND: dict[str, dict[str, type | tuple[type, ...]]] = {
    "bm25": {
        "method": str, "k1": (int, float), "b": (int, float), "delta": (int, float), "tokenizer": str, "engine": str,
        "compat": str,
    },
    "dense": {"encoder*": str, "compat": str},
    "late": {"encoder*": str, "dimensions": int, "factor": int, "seed": int, "compat": str},
    "fusion": {
        "of*": list, "method": str, "k": (int, float), "sigma": (int, float), "weights": list, "measure": str,
        "folds": int, "seed": int, "resamples": int, "span": str, "depth": int,
    },
    "structure": {"weights": dict, "b": (int, float)},
    APPROACH0: {"first*": str, "depth*": int},
    "rerank": {"first*": str, "reranker*": str, "depth*": int, "max_length": int, "instruction": str},
}  # fmt: skip


def check_settings(name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the *settings* of the system *name* when they can be used; MirblabError with a suggestion otherwise.

    >>> check_settings("own", {"kind": "bm25", "k1": 2})
    {'kind': 'bm25', 'k1': 2}
    >>> check_settings("own", {"kind": "bm25", "k_1": 2})
    Traceback (most recent call last):
    mirblab.core.errors.MirblabError: system 'own' (bm25) cannot set 'k_1'; did you mean 'k1'?
    """
    kind = str(settings.get("kind"))
    if kind not in SETTINGS_BY_KIND:
        raise unknown(f"kind of system '{name}' called", kind, SETTINGS_BY_KIND)
    known = {key.rstrip("*"): types for key, types in SETTINGS_BY_KIND[kind].items()}
    for key, value in settings.items():
        if key in ("kind", "label", "paper"):
            if not isinstance(value, str):
                raise MirblabError(f"system '{name}': '{key}' cannot be {value!r}; write text in quotes")
            continue
        if key not in known:
            more = suggest(key, known) or f"; it takes {', '.join(known)}"
            raise MirblabError(f"system '{name}' ({kind}) cannot set '{key}'{more}")
        if not isinstance(value, known[key]) or isinstance(value, bool):
            raise MirblabError(f"system '{name}' ({kind}): '{key}' cannot be {value!r}; correct the entry")
    absent = [key[:-1] for key in SETTINGS_BY_KIND[kind] if key.endswith("*") and key[:-1] not in settings]
    if absent:
        raise MirblabError(f"system '{name}' ({kind}) lacks {', '.join(absent)}; add what is missing to the entry")
    if kind == "fusion":
        _check_fusion(name, settings)
    return dict(settings)


def _check_fusion(name: str, settings: Mapping[str, Any]) -> None:
    method, of = settings.get("method", "rrf"), settings["of"]
    if not all(isinstance(part, str) for part in of):
        raise MirblabError(f"system '{name}' (fusion): of lists the names of systems, found {of!r}")
    if method not in FUSIONS:
        raise unknown("fusion method", str(method), FUSIONS)
    if len(of) < 2:
        raise MirblabError(f"system '{name}' (fusion) is of {len(of)} system; name two or more")
    for key in settings:
        if key not in (*_EVERY_FUSION, *FUSIONS[method]):
            users = [known for known, keys in FUSIONS.items() if key in keys]
            raise MirblabError(f"system '{name}' (fusion): the method '{method}' has no '{key}', '{users[0]}' has")
    weights = settings.get("weights", [])
    if "weights" in FUSIONS[method] and len(weights) != len(of):
        raise MirblabError(f"system '{name}' (fusion): {len(of)} systems need as many weights; found {len(weights)}")
    if any(isinstance(weight, bool) or not isinstance(weight, (int, float)) or not weight >= 0 for weight in weights):
        raise MirblabError(f"system '{name}' (fusion): weights are numbers from 0 up; found {weights!r}")
    if settings.get("folds", 2) < 2:
        raise MirblabError(f"system '{name}' (fusion): there are two folds or more, found {settings['folds']}")
    for measure in settings.get("measure", "nDCG").split(","):
        parse_measure(measure)


def is_cross_validated(settings: Mapping[str, Any]) -> bool:
    """Return whether a system takes something from the judgements: its weights are cross-validated."""
    return settings.get("method") == "cv"


def label_remark(settings: Mapping[str, Any]) -> str:
    """Return what the label of a fusion says of its method; nothing for reciprocal ranks, the usual one.

    >>> label_remark({"kind": "fusion", "method": "cv"})
    ' (weights cross-validated)'
    """
    method = settings.get("method", "rrf") if settings["kind"] == "fusion" else "rrf"
    return {"rrf": "", "cv": " (weights cross-validated)"}.get(method, f" ({method})")


def search_options(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings without what only names the system: its kind and its labels."""
    return {key: value for key, value in settings.items() if key not in ("kind", "label", "paper")}


def fusion_options(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a fusion's settings say to its method.

    >>> fusion_options({"kind": "fusion", "of": ["a", "b"], "k": 20})
    {'k': 20}
    """
    known = FUSIONS[settings.get("method", "rrf")]
    return {key: value for key, value in settings.items() if key in known}


def part_names(settings: Mapping[str, Any]) -> list[str]:
    """Return the names of the systems that a system is composed of; none for one that stands alone.

    >>> part_names({"kind": "fusion", "of": ["bm25", "minilm"]})
    ['bm25', 'minilm']
    """
    return [*settings.get("of", []), *([settings["first"]] if "first" in settings else [])]


def check_circle(name: str, entries: Mapping[str, Mapping[str, Any]], above: tuple[str, ...] = ()) -> None:
    """Raise MirblabError when a system is composed of itself, or of more systems within each other than are read.

    >>> check_circle("a", {"a": {"kind": "fusion", "of": ["b", "c"]}, "b": {"kind": "fusion", "of": ["a", "c"]}})
    Traceback (most recent call last):
    mirblab.core.errors.MirblabError: system 'a' is composed of itself (a of b of a); name other parts
    """
    if name in above:
        trail = " of ".join([*above[above.index(name) :], name])
        raise MirblabError(f"system '{name}' is composed of itself ({trail}); name other parts")
    if len(above) > _DEEPEST:
        raise MirblabError(f"system '{above[0]:.60}' has more than {_DEEPEST} systems within each other; compose fewer")
    settings = check_settings(name, entries[name]) if name in entries else parse_composed_name(name)
    for part in part_names(settings or {}):
        check_circle(part, entries, (*above, name))


def parse_composed_name(name: str) -> dict[str, Any] | None:
    """Return the settings that a composed *name* stands for, or None when it is not one.

    >>> parse_composed_name("bm25>maxsim")
    {'kind': 'rerank', 'first': 'bm25', 'reranker': 'maxsim', 'depth': 10}
    >>> parse_composed_name("bm25+minilm+e5")
    {'kind': 'fusion', 'of': ['bm25', 'minilm', 'e5'], 'method': 'rrf', 'k': 60}
    >>> parse_composed_name("bm25+minilm@0.3,0.7")
    {'kind': 'fusion', 'of': ['bm25', 'minilm'], 'method': 'linear', 'weights': [0.3, 0.7]}
    """
    first, sign, second = name.rpartition(">")
    if sign:
        reranker, _, options = second.partition("@")
        found = _OPTIONS.fullmatch(options or str(SHORTLIST_DEPTH))
        if not (first and reranker and found) or int(found["depth"]) < 1:
            raise MirblabError(
                f"'{name}' names no reranked system; write first>reranker@depth, for example bm25>maxsim@20"
            )
        more = {"max_length": int(found["max_length"] or 0), "instruction": "card" if found["instructed"] else ""}
        chosen = {key: value for key, value in more.items() if value}
        if reranker == APPROACH0:
            return check_settings(name, {"kind": APPROACH0, "first": first, "depth": int(found["depth"]), **chosen})
        return {"kind": "rerank", "first": first, "reranker": reranker, "depth": int(found["depth"]), **chosen}
    return _parse_fusion_name(name)


def _parse_fusion_name(name: str) -> dict[str, Any] | None:
    """Return the settings of a fusion named a+b, a+b@method or a+b@0.3,0.7; None for another name."""
    head, sign, tail = name.rpartition("@")
    if not sign or "+" in tail:  # an imported system may have @ in its name
        head, tail = name, "rrf"
    of = head.split("+")
    if len(of) < 2 or not all(of):
        return None
    found: dict[str, Any] = {"kind": "fusion", "of": of, "method": tail}
    if _WEIGHTS.fullmatch(tail):
        found |= {"method": "linear", "weights": [float(weight) for weight in tail.split(",")]}
    elif tail == "rrf":
        found["k"] = 60
    elif tail not in FUSIONS:
        raise MirblabError(f"'{name}': {unknown('fusion method', tail, FUSIONS)}")
    if tail in ("linear", "sum"):
        raise MirblabError(
            f"'{name}' has no weights; write {head}@{','.join(['0.5'] * len(of))}, or @cv to choose them"
        )
    return check_settings(name, found)


def reranked_name(first: str, reranker: str, depth: int, max_length: int = 0, instruction: str = "") -> str:
    """Return the name of the system that reranks *first*; MirblabError for a depth or a length below 1.

    >>> reranked_name("bm25", "maxsim", 20, 128, "card")
    'bm25>maxsim@20,128t,instructed'
    """
    if depth < 1:
        raise MirblabError(f"the depth of a reranker must be at least 1, found {depth}")
    if max_length < 0 or instruction not in ("", "card"):
        raise MirblabError(
            f'a reranker takes max_length from 0 and instruction "" or "card", found {max_length}, {instruction!r}'
        )
    more = (f",{max_length}t" if max_length else "") + (",instructed" if instruction else "")
    return f"{first}>{reranker}@{depth}{more}"


def pair_options(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a reranked system's settings say of the pairs: max_length (0: the registry's) and instruction."""
    return {"max_length": settings.get("max_length", 0), "instruction": settings.get("instruction", "")}


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

        >>> from mirblab.sources.catalogue import load
        >>> run = system("bm25").search(load("mini-qa"), depth=3)
        >>> run.columns.tolist(), int(run["rank"].max())
        (['query_id', 'doc_id', 'score', 'rank'], 3)
        """
        if not isinstance(collection, Collection):
            raise MirblabError(f"search wants a Collection, found {collection!r:.60}; load it with load() first")
        if depth < 1:
            raise MirblabError(f"depth must be at least 1, found {depth}")
        # At least the usual depth, so that one search serves every later question.
        deep, make = max(depth, DEPTH), _SEARCHES[self.settings["kind"]]
        run = _store().once(self.run_key(collection), depth, deep, lambda: make(self, collection, deep))
        run = _with_collection_ids(run, collection, self.name)
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
        return _settings_digest(parts)

    @cached_property
    def origin(self) -> str:
        """Return who made the runs of an imported system, or of such a part of this one; "" for what is made here."""
        if self.settings["kind"] == "imported":
            return " and ".join(dict.fromkeys(origin for *_, origin in self.settings["files"].values()))
        return ", ".join(f"with {part.name}: {part.origin}" for part in self.parts if part.origin)

    @cached_property
    def learns(self) -> bool:
        """Return whether the run depends on the judgements: somewhere in it weights are cross-validated."""
        return is_cross_validated(self.settings) or any(part.learns for part in self.parts)

    @cached_property
    def key(self) -> dict[str, Any]:
        """Return all that determines this system's runs, parts of a composition included."""
        found = {name: value for name, value in self.settings.items() if name not in ("label", "paper")}
        if "of" in found:
            found["of"] = [part.key for part in self.parts]
        if "first" in found:
            found["first"] = self.parts[0].key
        if "encoder" in found:
            found["encoder"] = _encoder(found).key
            found.pop("compat", None)  # what differs is in the encoder's key
        if "reranker" in found:
            found["reranker"] = rerank.reranker_settings(found["reranker"], **pair_options(found))
        return found | {"version": run_store.VERSIONS[found["kind"]]}

    @cached_property
    def parts(self) -> list[System]:
        """Return the systems that this one is composed of, itself not included."""
        return [system(name) for name in part_names(self.settings)]

    def rerank(self, reranker: str, depth: int = SHORTLIST_DEPTH, max_length: int = 0, instruction: str = "") -> System:
        """Return the system whose first *depth* documents are ordered by *reranker*.

        *max_length* tokens and an *instruction* before the query ("card": the collection's own) take the place of
        the registry's when they are given.

        >>> system("bm25").rerank("maxsim", depth=50).name
        'bm25>maxsim@50'
        """
        return system(reranked_name(self.name, reranker, depth, max_length, instruction))


def system_names() -> list[str]:
    """Return the registered systems.

    >>> {"bm25", "bm25-mirb", "bm25-okapi", "minilm", "bm25+minilm"} <= set(system_names())
    True
    """
    return sorted(registry.read_registry("systems"))


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
    entries = registry.read_registry("systems")
    check_circle(name, entries)
    if name in entries:
        return System(name, str(entries[name].get("label", name)), check_settings(name, entries[name]))
    if name in imported.imported_systems():
        return System(name, f"{name} {runs.FOREIGN_MARK}", imported.imported_settings(name))
    if find_trained(name):
        return System(name, name, {"kind": "dense", "encoder": name})
    found = parse_composed_name(name)
    if found is None:
        raise unknown("system", name, {*entries, *imported.imported_systems()})
    label = f" {SIGNS[found['kind']]} ".join(system(part).label for part in part_names(found))
    made = System(name, label + label_remark(found), found)
    if found["kind"] == "rerank":
        rerank.reranker_settings(found["reranker"])
    if ">" in name:
        made = replace(made, label=f"{label} > {name.rpartition('>')[2]}")
    return made


def _bm25(self: System, collection: Collection, depth: int) -> pd.DataFrame:
    return bm25.search(collection, depth=depth, **search_options(self.settings))


def _structure(self: System, collection: Collection, depth: int) -> pd.DataFrame:
    return structure.search(collection, depth=depth, **search_options(self.settings))


def _dense(self: System, collection: Collection, depth: int) -> pd.DataFrame:
    model, instruction = _encoder(self.settings), collection.card.instruction
    documents = model.vectors(collection.texts, "document", instruction)
    queries = model.vectors(collection.query_texts, "query", instruction)
    found = dense.search(queries, documents, depth=depth, candidates=collection.candidates)
    return runs.from_positions(*found, collection.query_ids, collection.doc_ids, self.name, collection.name)


def _late(self: System, collection: Collection, depth: int) -> pd.DataFrame:
    return late_interaction.search_collection(collection, depth, self.name, **search_options(self.settings))


def _encoder(settings: Mapping[str, Any]) -> Encoder:
    return encoder(settings["encoder"], settings.get("compat", ""))


def _fusion(self: System, collection: Collection, depth: int) -> pd.DataFrame:
    # Always the same depth of the parts, else the ranking would depend on how deep somebody asked before.
    parts = [part.search(collection, self.settings.get("depth", DEPTH)) for part in self.parts]
    method, options = self.settings.get("method", "rrf"), fusion_options(self.settings)
    if method == "cv":
        return fusion.cross_validated(parts, collection, depth=depth, **options)
    return fusion.fuse(parts, method, depth, **options)


def _rerank(self: System, collection: Collection, depth: int) -> pd.DataFrame:
    first, reranked = self.parts[0], self.settings["depth"]
    options = pair_options(self.settings)
    pairs = pair_scores(first, self.settings["reranker"], collection, reranked, **options)
    return rerank.reorder_run(first.search(collection, max(depth, reranked)), pairs, reranked)


def _approach0(self: System, collection: Collection, depth: int) -> pd.DataFrame:
    reranked = self.settings["depth"]
    found = self.parts[0].search(collection, max(depth, reranked))
    scored = approach0.rescore(collection, found, reranked)
    return rerank.reorder_run(found, scored, reranked)


def pair_scores(
    first: System, reranker: str, collection: Collection, depth: int, max_length: int = 0, instruction: str = ""
) -> pd.DataFrame:
    """Return the reranker's scores of the first *depth* documents of each query, as a run; scored once and stored."""
    options = {"max_length": max_length, "instruction": instruction}
    parts = {
        "first": first.run_key(collection),
        "reranker": rerank.reranker_settings(reranker, **options),
        "depth": depth,
        "version": run_store.VERSIONS["rerank"],
    }
    scored = _store().once(
        _settings_digest(parts),
        depth,
        depth,
        lambda: rerank.score_shortlist(first.search(collection, depth), collection, reranker, **options),
    )
    return _with_collection_ids(scored, collection, reranker)


def _imported(self: System, collection: Collection, depth: int) -> pd.DataFrame:
    return runs.cut_run(imported.read_imported_run(self.name, collection), depth)


_SEARCHES = {
    "approach0": _approach0, "bm25": _bm25, "dense": _dense, "fusion": _fusion, "imported": _imported,
    "late": _late, "rerank": _rerank, "structure": _structure,
}  # fmt: skip


def _store() -> RunStore:
    return RunStore(paths.cache() / "runs")


def _settings_digest(parts: dict[str, Any]) -> str:
    return hashlib.blake2b(json.dumps(parts, sort_keys=True).encode(), digest_size=16).hexdigest()


def _with_collection_ids(run: pd.DataFrame, collection: Collection, name: str) -> pd.DataFrame:
    """Return the run with ids as categories of the collection, so that codes are positions."""
    columns: dict[str, Sequence[Any]] = {}
    for column, ids in (("query_id", collection.query_ids), ("doc_id", collection.doc_ids)):
        codes = ids.get_indexer(run[column].cat.categories)[run[column].cat.codes]
        columns[column] = pd.Categorical.from_codes(np.asarray(codes), ids)
    out = run.assign(**columns)
    out.attrs = {**run.attrs, "system": name, "collection": collection.name}
    return out
