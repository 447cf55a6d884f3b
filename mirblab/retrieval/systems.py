"""systems: systems by name, and systems composed of others."""

from __future__ import annotations

import ast
import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Annotated, Any, Literal

import numpy as np
import pandas as pd
from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveInt

from mirblab.core import atomic_files, paths, registry
from mirblab.core.errors import MirblabError, check_positive, unknown
from mirblab.core.ids import find_positions
from mirblab.data import runs
from mirblab.data.collection import Collection, check_fits
from mirblab.encoders.encoding import Encoder, encoder
from mirblab.encoders.local import find_trained
from mirblab.encoders.token_vectors import load_term_weights
from mirblab.evaluation import imported
from mirblab.evaluation.measures import AnyMeasure, parse_measure
from mirblab.formula import approach0
from mirblab.formula import search as structure
from mirblab.retrieval import bm25, codes, dense, feedback, fusion, late_interaction, rerank, rewriting, sparse
from mirblab.retrieval.fusion import METHODS
from mirblab.retrieval.rerank import APPROACH0
from mirblab.retrieval.run_store import RunStore

_DEEPEST = 10  # systems within each other
SHORTLIST_DEPTH = 10  # the published benchmark reranks ten documents
_WEIGHTS = re.compile(r"\d+(?:\.\d+)?(?:,\d+(?:\.\d+)?)+")
# As `system` names what was changed, where no sign outside of parentheses composes.
_CHANGED = re.compile(r"(?:(?P<name>[^+>()]+)|\((?P<composed>.+)\)) \((?P<changes>\w+ = .*)\)")
_IN_PARENTHESES = re.compile(r"\([^()]*\)")
_NEXT_CHANGE = re.compile(r"(?:, |\) \()(?=\w+ = )")  # not a comma in a list
_OPTIONS = re.compile(
    r"(?P<depth>\d+)(?:,(?P<max_length>\d+)t)?(?P<instructed>,instructed)?(?:,(?P<weight>cv|0\.\d*[1-9]\d*))?"
)

# What changes the queries of a in a~b: its label, the kind that a must be ("": any), and the settings of the name.
FEEDBACK: dict[str, tuple[str, str, dict[str, Any]]] = {
    "rm3": ("RM3", "bm25", feedback.RM3),
    "rocchio": ("Rocchio", "dense", feedback.ROCCHIO),
    "rewrite": ("rewritten queries", "", rewriting.DEFAULTS),
}
# What each method of fusion may set, beside `of`, `method` and `depth`.
FUSIONS = dict.fromkeys(METHODS, ()) | {
    "rrf": ("k",), "linear": ("weights", "span"), "sum": ("weights",), "logisr": ("sigma",),
    "cv": ("measure", "folds", "seed", "resamples", "span"),
}  # fmt: skip
_EVERY_FUSION = ("kind", "label", "paper", "of", "method", "depth")
_EVERY_SYSTEM = dict.fromkeys(("kind", "label", "paper"), str)
# What each kind of system may set besides, and of what type; * must be there.
SETTINGS_BY_KIND: dict[str, dict[str, Any]] = {
    "bm25": {
        **dict.fromkeys(("method", "tokenizer", "engine", "compat", "query_weighting"), str),
        **dict.fromkeys(("k1", "b", "delta"), float),
    },
    "dense": {"encoder*": str, "compat": str, "code_bits": Literal[1, 2]},
    "sparse": {"encoder*": str},
    "late": {"encoder*": str, "dimensions": int, "factor": int, "seed": int, "compat": str},
    "fusion": {
        "of*": list[str], "method": str, "k": float, "sigma": float, "weights": list[NonNegativeFloat], "measure": str,
        "folds": Annotated[int, Field(ge=2)], "seed": int, "resamples": int, "span": str, "depth": int,
    },
    "structure": {"weights": dict[str, Any], "b": float},
    "rm3": {
        "first*": str, "fb_docs": PositiveInt, "fb_terms": PositiveInt, "filter_terms": bool,
        "original_weight": Annotated[float, Field(ge=0, le=1)],
    },
    "rocchio": {"first*": str, "fb_docs": PositiveInt, **dict.fromkeys(("alpha", "beta", "gamma"), NonNegativeFloat)},
    "rewrite": {
        "first*": str, "prompt*": str, "original": NonNegativeInt, **dict.fromkeys(("model", "url"), str),
        **dict.fromkeys(("price_per_million_tokens", "budget"), NonNegativeFloat),
    },
    APPROACH0: {"first*": str, "depth*": int},
    "rerank": {
        "first*": str, "reranker*": str, "depth*": int, "max_length": int, "instruction": str,
        "method": Literal["cv"], "weight": Annotated[float, Field(gt=0, lt=1)],
    },
}  # fmt: skip


def check_settings(name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the *settings* of the system *name* when they can be used; MirblabError with a suggestion otherwise."""
    kind = str(settings.get("kind"))
    if kind not in SETTINGS_BY_KIND:
        raise unknown(f"kind of system '{name}' called", kind, SETTINGS_BY_KIND)
    types = SETTINGS_BY_KIND[kind]
    needed = [key[:-1] for key in types if key.endswith("*")]
    known = {key.rstrip("*"): wanted for key, wanted in types.items()} | _EVERY_SYSTEM
    registry.check_table(f"system '{name}' ({kind})", settings, known, needed)
    if kind == "fusion":
        _check_fusion(name, settings)
    return dict(settings)


def _check_fusion(name: str, settings: Mapping[str, Any]) -> None:
    method, of = settings.get("method", "rrf"), settings["of"]
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
    if weights and not any(weights):
        raise MirblabError(f"system '{name}' (fusion): no weight is above 0, so nothing is ordered; raise one")
    for measure in settings.get("measure", "nDCG").split(","):
        parse_measure(measure)


def search_options(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings without the kind and the labels of the system."""
    return {key: value for key, value in settings.items() if key not in ("kind", "label", "paper")}


def fusion_options(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return those of a fusion's settings that are options of its method."""
    known = FUSIONS[settings.get("method", "rrf")]
    return {key: value for key, value in settings.items() if key in known}


def feedback_options(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a system that changes its queries, without its first part."""
    return {key: value for key, value in search_options(settings).items() if key != "first"}


def part_names(settings: Mapping[str, Any]) -> list[str]:
    """Return the names of the systems that a system is composed of, none for a single system."""
    return [*settings.get("of", []), *([settings["first"]] if "first" in settings else [])]


def check_circle(name: str, entries: Mapping[str, Mapping[str, Any]], above: tuple[str, ...] = ()) -> None:
    """Raise MirblabError when a system is composed of itself, or when more systems are nested than allowed."""
    if name in above:
        trail = " of ".join([*above[above.index(name) :], name])
        raise MirblabError(f"system '{name}' is composed of itself ({trail}); name other parts")
    if len(above) > _DEEPEST:
        raise MirblabError(f"system '{above[0]:.60}' has more than {_DEEPEST} systems within each other; compose fewer")
    settings = check_settings(name, entries[name]) if name in entries else parse_composed_name(name)
    for part in part_names(settings or {}):
        check_circle(part, entries, (*above, name))


def parse_composed_name(name: str) -> dict[str, Any] | None:
    """Return the settings that a composed *name* stands for, or None when it is not one."""
    *first_parts, second = _split_name(name, ">")
    if first_parts:
        first = "".join(first_parts[:-1])
        reranker, _, options = second.partition("@")
        match = _OPTIONS.fullmatch(options or str(SHORTLIST_DEPTH))
        if not (first and reranker and match) or int(match["depth"]) < 1:
            raise MirblabError(
                f"'{name}' names no reranked system; write first>reranker@depth, for example bm25>maxsim@20"
            )
        pairs = {"max_length": int(match["max_length"] or 0), "instruction": "card" if match["instructed"] else ""}
        mixed = {"method": "cv"} if match["weight"] == "cv" else {"weight": float(match["weight"] or 0)}
        chosen = {"depth": int(match["depth"])} | {key: value for key, value in (pairs | mixed).items() if value}
        if reranker == APPROACH0:
            return check_settings(name, {"kind": APPROACH0, "first": first, **chosen})
        return {"kind": "rerank", "first": first, "reranker": reranker, **chosen}
    return _parse_fusion_name(name)


def _split_name(name: str, signs: str) -> list[str]:
    """Return the parts of a *name* and the *signs* between them; those in parentheses are of a system changed there.

    >>> _split_name("(bm25+minilm) (k = 10)+structure", "+")
    ['(bm25+minilm) (k = 10)', '+', 'structure']
    """
    outside, before = name, ""
    while outside != before:
        outside, before = _IN_PARENTHESES.sub(lambda match: " " * len(match[0]), outside), outside
    places = (place for match in re.finditer(f"[{signs}]", outside) for place in match.span())
    return [name[start:end] for start, end in pairwise([0, *places, len(name)])]


def _parse_fusion_name(name: str) -> dict[str, Any] | None:
    """Return the settings of a fusion named a+b, a+b@method or a+b@0.3,0.7, or of feedback; None for another name."""
    *head_parts, tail = _split_name(name, "@")
    head = "".join(head_parts[:-1])
    if not head_parts or "+" in tail:  # an imported system may have @ in its name
        head, tail = name, "rrf"
    of = _split_name(head, "+")[::2]
    if len(of) < 2 or not all(of):
        return _parse_feedback_name(name)
    settings: dict[str, Any] = {"kind": "fusion", "of": of, "method": tail}
    if _WEIGHTS.fullmatch(tail):
        settings |= {"method": "linear", "weights": [float(weight) for weight in tail.split(",")]}
    elif tail == "rrf":
        settings["k"] = 60
    elif tail not in FUSIONS:
        raise MirblabError(f"'{name}': {unknown('fusion method', tail, FUSIONS)}")
    if tail in ("linear", "sum"):
        raise MirblabError(
            f"'{name}' has no weights; write {head}@{','.join(['0.5'] * len(of))}, or @cv to choose them"
        )
    return check_settings(name, settings)


def _parse_feedback_name(name: str) -> dict[str, Any] | None:
    """Return the settings of a system named a~rm3 or a~rocchio; None for another name."""
    first, _, kind = name.rpartition("~")
    return {"kind": kind, "first": first, **FEEDBACK[kind][2]} if first and kind in FEEDBACK else None


def _check_feedback(owner: System) -> System:
    """Return a system whose first part, where it changes that part's queries, is one that it can change."""
    kind = owner.settings["kind"]
    if kind not in FEEDBACK:
        return owner
    (first,), wanted = owner.parts, FEEDBACK[kind][1]
    if not wanted:
        if first.settings["kind"] == "imported":
            raise MirblabError(
                f"'{owner.name}': the run of '{first.name}' was imported, so its queries stay as they were"
            )
        return owner
    is_other = first.settings.get("engine", "bm25s") != "bm25s" or (wanted == "bm25" and first.settings.get("compat"))
    if first.settings["kind"] != wanted or is_other or "code_bits" in first.settings:
        what = "terms of BM25 without compat" if wanted == "bm25" else "vectors of an encoder without code_bits"
        raise MirblabError(
            f"'{owner.name}': {kind} changes {what}, and '{first.name}' has none; write bm25~rm3 or minilm~rocchio"
        )
    return owner


def pair_options(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return how a reranked system scores pairs: max_length (0: the registry's) and instruction."""
    return {"max_length": settings.get("max_length", 0), "instruction": settings.get("instruction", "")}


DEPTH = 1000
MOST_ROWS = 5_000_000  # of a run that is stored deeper than it is asked for
CUT_KINDS = ("bm25", "dense", "sparse")  # whose first documents are the same at every depth


def search_depth(measures: Iterable[AnyMeasure]) -> int:
    """Return how many documents of each query the measures need: the usual depth, or their deepest cutoff.

    >>> search_depth(["nDCG@10", "AP"]), search_depth(["nDCG@10", "R@1500"])
    (1000, 1500)
    """
    return max([DEPTH, *(parse_measure(measure).k or 0 for measure in measures)])


@dataclass(frozen=True)
class System:
    """A system that makes a run for a collection; `settings` is all that determines it.

    >>> system("bm25").settings["k1"]
    1.2
    """

    name: str
    label: str
    settings: dict[str, Any]

    def search(self, collection: Collection, depth: int = DEPTH) -> pd.DataFrame:
        """Return the run: query_id, doc_id, score, rank, at most *depth* documents per query, best first.

        A stored run of the same or a larger depth is read from the store.

        >>> from mirblab.sources.catalogue import load
        >>> run = system("bm25").search(load("mini-qa"), depth=3)
        >>> run.columns.tolist(), int(run["rank"].max())
        (['query_id', 'doc_id', 'score', 'rank'], 3)
        """
        if not isinstance(collection, Collection):
            raise MirblabError(f"search wants a Collection, found {collection!r:.60}; load it with load() first")
        check_positive(depth=depth)
        deep, make = self._stored_depth(collection, depth), _SEARCHES[self.settings["kind"]]
        ids = collection.query_ids, collection.doc_ids
        run = _store().once(self.run_key(collection), depth, deep, lambda: make(self, collection, deep), ids)
        run = _with_collection_ids(run, collection, self.name)
        if self.origin:
            run.attrs = {"origin": self.origin, **run.attrs}
        return run

    def _stored_depth(self, collection: Collection, depth: int) -> int:
        """Return how deep a search for *depth* documents goes: the usual depth at least, so that one search is enough
        for later calls, unless that makes a very large run whose first documents a shallower search finds as well.
        """
        is_cut = self.settings["kind"] in CUT_KINDS and len(collection.queries) * DEPTH > MOST_ROWS
        return depth if is_cut else max(depth, DEPTH)

    def is_stored(self, collection: Collection, depth: int = DEPTH) -> bool:
        """Return whether the run is in the store already."""
        return _store().has(self.run_key(collection), depth)

    def run_key(self, collection: Collection) -> str:
        """Return the hash of all that determines the run: the collection (with its judgements), settings and code."""
        parts: dict[str, Any] = {"collection": collection.fingerprint, "system": self.key}
        if self.learns:
            parts["relevant_from"] = collection.card.relevant_from
        if self.reads_formulas:
            parts["task"] = collection.card.task
        return _settings_digest(parts)

    @cached_property
    def origin(self) -> str:
        """Return who made the runs of an imported system, or of imported parts; "" when all runs are made here."""
        if self.settings["kind"] == "imported":
            return " and ".join(dict.fromkeys(origin for *_, origin in self.settings["files"].values()))
        return ", ".join(f"with {part.name}: {part.origin}" for part in self.parts if part.origin)

    @cached_property
    def learns(self) -> bool:
        """Return whether the run depends on the judgements, by cross-validated weights of this system or of a part."""
        return self.settings.get("method") == "cv" or any(part.learns for part in self.parts)

    @cached_property
    def reads_formulas(self) -> bool:
        """Return whether the run depends on what a collection's task says of its texts: that each is one formula."""
        is_own = self.settings["kind"] in ("structure", APPROACH0) or self.settings.get("reranker") == APPROACH0
        is_own = is_own or self.settings.get("tokenizer") in bm25.FORMULA_TOKENIZERS
        return is_own or any(part.reads_formulas for part in self.parts)

    @property
    def key(self) -> dict[str, Any]:
        """Return all that determines this system's runs, parts of a composition included.

        It is derived anew each time, since the registry may be edited, and a model of this machine trained again.
        """
        key = {name: value for name, value in self.settings.items() if name not in ("label", "paper")}
        if "of" in key:
            key["of"] = [part.key for part in self.parts]
        if "first" in key:
            key["first"] = self.parts[0].key
        if "encoder" in key:
            key["encoder"] = _encoder(key).key
            key.pop("compat", None)  # the encoder's key has the difference
        if "code_bits" in key:
            key["codes"] = codes.VERSION
        if key["kind"] == "rewrite":
            key = rewriting.rewriting_key(key)
        if "reranker" in key:
            key["reranker"] = rerank.reranker_settings(key["reranker"], **pair_options(key))
        return key | {"version": VERSIONS[key["kind"]]}

    @cached_property
    def parts(self) -> list[System]:
        """Return the systems that this one is composed of, itself not included."""
        return [system(name) for name in part_names(self.settings)]


def system(name: str | System, /, **settings: Any) -> System:
    """Return a system by its name in the registry, or one composed by its name; *settings* replace the registry's.

    "a+b" fuses by reciprocal rank (k = 60), "a+b@combmnz" by another method, "a+b@cv" with cross-validated weights,
    "a+b@0.3,0.7" with given ones; "a>b@50" lets the reranker b order the first 50 documents of a (10 without a depth),
    and "a>approach0@50" Approach0's scoring; "a>b@50,0.6" by 0.6 of b's score and 0.4 of a's, "a>b@50,cv" by weights
    that are cross-validated. "a~rm3" adds terms of BM25's first documents to its queries, "a~rocchio" moves vectors to
    those of the first documents, "a~rewrite" lets a chat model rewrite queries; ~ binds more tightly than + and >. A
    model trained here (`--out NAME`) is a dense or sparse system without an entry.
    Case does not matter, and labels are names, too; a system is returned as it is. MirblabError with a suggestion for
    an unknown name or setting, and for what is neither a name nor a system.

    >>> system("bm25-mirb+MiniLM>maxsim").settings["first"]
    'bm25-mirb+minilm'
    >>> system("bm25", k1=0.9, b=0.4).name  # which is a name, too
    'bm25 (k1 = 0.9, b = 0.4)'
    """
    if isinstance(name, System):
        return _changed_system(name, settings) if settings else name
    if not isinstance(name, str):
        raise MirblabError(
            f"a system is a name or what lab.system() returns, found {type(name).__name__}; a run of your own becomes "
            "a system by: mirblab import-results FILE"
        )
    is_single = len(_split_name(name, "+>")) == 1
    if is_single and (match := _CHANGED.fullmatch(name)) and name not in imported.imported_systems():
        changes = dict(pair.split(" = ", 1) for pair in _NEXT_CHANGE.split(match["changes"]))
        settings = {key: _literal(value) for key, value in changes.items()} | settings
        name = match["name"] or match["composed"]
    if settings:
        return _changed_system(system(name), settings)
    entries = registry.read_registry("systems")
    name = _registered_name(name, entries)
    check_circle(name, entries)
    if name in entries:
        label = str(entries[name].get("label", name))
        return _check_feedback(System(name, label, check_settings(name, entries[name])))
    if name in imported.imported_systems():
        return System(name, f"{name} {runs.FOREIGN_MARK}", imported.imported_settings(name))
    if find_trained(name):
        return System(name, name, {"kind": "sparse" if encoder(name).is_sparse else "dense", "encoder": name})
    composed = parse_composed_name(name)
    if composed is None:
        known, (head, sign, kind) = {*entries, *imported.imported_systems()}, name.rpartition("~")
        raise unknown(f"feedback on '{head}' called", kind, FEEDBACK) if sign else unknown("system", name, known)
    parts = [system(part).label for part in part_names(composed)]
    if composed["kind"] == "fusion":
        method = composed["method"]
        remark = {"rrf": "", "cv": " (weights cross-validated)"}.get(method, f" ({method})")
        return System(name, " + ".join(parts) + remark, composed)
    if composed["kind"] in FEEDBACK:
        return _check_feedback(System(name, f"{parts[0]} with {FEEDBACK[composed['kind']][0]}", composed))
    if composed["kind"] == "rerank":
        rerank.reranker_settings(composed["reranker"])  # MirblabError for an unknown one
    return System(name, f"{parts[0]} > {name.rpartition('>')[2]}", composed)


def _registered_name(name: str, entries: Mapping[str, Mapping[str, Any]]) -> str:
    """Return a name, composed or not, with its parts as the registry writes them."""
    if name in entries or name in imported.imported_systems() or find_trained(name):
        return name
    whole, rerankers = registry.match_name(name, entries), registry.read_registry("rerankers") | {APPROACH0: {}}
    if whole in entries:
        return whole
    feedbacks: dict[str, dict[str, Any]] = {kind: {} for kind in FEEDBACK}
    parts, after = list[str](), {">": rerankers, "~": feedbacks}
    for part in _split_name(name, "+>~"):
        head, sign, options = part.partition("@")
        known = after.get("".join(parts[-1:]), entries)
        parts.append(f"{registry.match_name(head, known)}{sign}{options}")
    return "".join(parts)


def _literal(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def _changed_system(given: System, changes: Mapping[str, Any]) -> System:
    """Return the system with other settings, which are added to its name and label."""
    own = {"kind", "of", "first", "label", "paper"} & set(changes)
    if own or given.settings["kind"] == "imported":
        what = f"'{min(own)}' of a system" if own else f"settings of '{given.name}', which was imported,"
        raise MirblabError(f"{what} cannot be changed; name another system")
    note = ", ".join(f"{key} = {value or repr(value)}" for key, value in changes.items())
    settings = check_settings(given.name, {**given.settings, **changes})
    name = f"({given.name})" if part_names(given.settings) else given.name
    return System(f"{name} ({note})", f"{given.label} ({note})", settings)


def _bm25(self: System, collection: Collection, depth: int) -> pd.DataFrame:
    return bm25.search(collection, depth=depth, **search_options(self.settings))


def _structure(self: System, collection: Collection, depth: int) -> pd.DataFrame:
    return structure.search(collection, depth=depth, **search_options(self.settings))


def _dense(self: System, collection: Collection, depth: int) -> pd.DataFrame:
    model, instruction = _encoder(self.settings), collection.card.instruction
    documents = codes.load_documents(model, collection.texts, instruction, self.settings.get("code_bits", 0))
    queries = model.vectors(collection.query_texts, "query", instruction)
    hits = codes.search(queries, documents, depth=depth, candidates=collection.candidates)
    return runs.from_positions(*hits, collection.query_ids, collection.doc_ids, self.name, collection.name)


def _sparse(self: System, collection: Collection, depth: int) -> pd.DataFrame:
    check_fits(collection, "the search by sparse vectors")
    model, instruction = _encoder(self.settings), collection.card.instruction
    documents = load_term_weights(model, collection.texts, "document", instruction)
    queries = load_term_weights(model, collection.query_texts, "query", instruction)
    hits = sparse.search(queries, documents, depth=depth, candidates=collection.candidates)
    return runs.from_positions(*hits, collection.query_ids, collection.doc_ids, self.name, collection.name)


def _late(self: System, collection: Collection, depth: int) -> pd.DataFrame:
    return late_interaction.search_collection(collection, depth, self.name, **search_options(self.settings))


def _rm3(self: System, collection: Collection, depth: int) -> pd.DataFrame:
    indexed = bm25.IndexedCollection.of(collection, **search_options(self.parts[0].settings))
    options = feedback_options(self.settings) | {"candidates": collection.candidates}
    hits = feedback.rm3(indexed, collection.query_texts, depth=depth, **options)
    return runs.from_positions(*hits, collection.query_ids, collection.doc_ids, self.name, collection.name)


def _rocchio(self: System, collection: Collection, depth: int) -> pd.DataFrame:
    model, instruction = _encoder(self.parts[0].settings), collection.card.instruction
    documents = codes.load_vectors(model, collection.texts, instruction)
    queries = model.vectors(collection.query_texts, "query", instruction)
    options = feedback_options(self.settings) | {"candidates": collection.candidates}
    hits = feedback.rocchio(queries, documents, depth=depth, **options)
    return runs.from_positions(*hits, collection.query_ids, collection.doc_ids, self.name, collection.name)


def _rewrite(self: System, collection: Collection, depth: int) -> pd.DataFrame:
    texts = rewriting.rewrite(collection.query_texts, **feedback_options(self.settings))
    asked = pd.Series(texts, collection.queries.index, collection.queries.text.dtype)
    run = self.parts[0].search(replace(collection, queries=collection.queries.assign(text=asked)), depth)
    return _with_collection_ids(run, collection, self.name)


def _encoder(settings: Mapping[str, Any]) -> Encoder:
    return encoder(settings["encoder"], settings.get("compat", ""))


def _fusion(self: System, collection: Collection, depth: int) -> pd.DataFrame:
    # The depth of the parts is always the same, else the ranking would depend on the depth of earlier searches.
    parts = [part.search(collection, self.settings.get("depth", DEPTH)) for part in self.parts]
    method, options = self.settings.get("method", "rrf"), fusion_options(self.settings)
    if method == "cv":
        return fusion.cross_validated(parts, collection, depth=depth, **options)
    return fusion.fuse(parts, method, depth, **options)


def _rerank(self: System, collection: Collection, depth: int) -> pd.DataFrame:
    first, reranked = self.parts[0], self.settings["depth"]
    pairs = pair_scores(first, self.settings["reranker"], collection, reranked, **pair_options(self.settings))
    run, weight = first.search(collection, max(depth, reranked)), self.settings.get("weight", 0.0)
    parts, notes = [runs.cut_run(run, reranked), pairs], dict[str, Any]()
    if weight:
        pairs = fusion.linear(parts, [1 - weight, weight])
    elif self.settings.get("method") == "cv":
        pairs = fusion.cross_validated(parts, collection, "nDCG@10")
        notes = {str(name): value for name, value in pairs.attrs.items()}
    reordered = rerank.reorder_run(run, pairs, reranked)
    reordered.attrs = notes | reordered.attrs
    return reordered


def _approach0(self: System, collection: Collection, depth: int) -> pd.DataFrame:
    reranked = self.settings["depth"]
    run = self.parts[0].search(collection, max(depth, reranked))
    return rerank.reorder_run(run, approach0.rescore(collection, run, reranked), reranked)


def pair_scores(
    first: System, reranker: str, collection: Collection, depth: int, max_length: int = 0, instruction: str = ""
) -> pd.DataFrame:
    """Return a run of the reranker's scores of each query's first *depth* documents.

    Each pair of a query and a document is scored once and stored, whatever first stage or depth asks for it.
    """
    options: dict[str, Any] = {"max_length": max_length, "instruction": instruction}
    settings = rerank.used_settings(reranker, collection, **options)
    parts = {"pairs": settings, "collection": collection.fingerprint, "version": VERSIONS["rerank"]}
    store, key = _store(), _settings_digest(parts)

    def numbered(run: pd.DataFrame) -> pd.Series:
        """Return the scores of a run by one number for each pair of a query and a document."""
        run = _with_collection_ids(run, collection, reranker)
        numbers = run.query_id.cat.codes.to_numpy(np.int64) * len(collection.doc_ids) + run.doc_id.cat.codes.to_numpy()
        return pd.Series(run.score.to_numpy(np.float32), numbers)

    shortlist = first.search(collection, depth)
    wanted = numbered(shortlist).index
    known = [numbered(run) for run in store.parts(key)]
    is_missing = ~wanted.isin(np.concatenate([np.empty(0, np.int64), *(scores.index for scores in known)]))
    if is_missing.any():
        scored = rerank.score_shortlist(shortlist[is_missing], collection, reranker, **options)
        atomic_files.try_to_store("runs", store.put, key, len(scored), scored)
        known.append(numbered(scored))
    every = pd.concat(known) if known else numbered(shortlist)  # an empty one
    scored = shortlist.assign(score=every[~every.index.duplicated()][wanted].to_numpy())
    scored.attrs = {}  # those of the first stage
    return _with_collection_ids(runs.order_run(scored), collection, reranker)


def _imported(self: System, collection: Collection, depth: int) -> pd.DataFrame:
    known, found = self.settings["files"], imported.imported_settings(self.name)["files"]
    if known.get(collection.name) != found.get(collection.name):
        raise MirblabError(
            f"the imported run of '{self.name}' on {collection.name} has changed since the system was made; take the "
            f"system anew with lab.system('{self.name}')"
        )
    return runs.cut_run(imported.read_imported_run(self.name, collection), depth)


_SEARCHES = {
    "approach0": _approach0, "bm25": _bm25, "dense": _dense, "fusion": _fusion, "imported": _imported,
    "late": _late, "rerank": _rerank, "rewrite": _rewrite, "rm3": _rm3, "rocchio": _rocchio, "sparse": _sparse,
    "structure": _structure,
}  # fmt: skip
VERSIONS = {
    "approach0": approach0.RUNS_VERSION,
    "bm25": bm25.RUNS_VERSION,
    "dense": dense.RUNS_VERSION,
    "fusion": fusion.RUNS_VERSION,
    "imported": imported.RUNS_VERSION,
    "late": late_interaction.RUNS_VERSION,
    "rerank": rerank.RUNS_VERSION,
    "rewrite": rewriting.RUNS_VERSION,
    "rm3": feedback.RUNS_VERSION,
    "rocchio": feedback.RUNS_VERSION,
    "sparse": sparse.RUNS_VERSION,
    "structure": structure.RUNS_VERSION,
}


def _store() -> RunStore:
    return RunStore(paths.cache() / "runs")


def _settings_digest(parts: dict[str, Any]) -> str:
    return hashlib.blake2b(json.dumps(parts, sort_keys=True).encode(), digest_size=16).hexdigest()


def _with_collection_ids(run: pd.DataFrame, collection: Collection, name: str) -> pd.DataFrame:
    """Return the run with the collection's ids as categories, so that codes are positions."""
    columns: dict[str, pd.Categorical[Any]] = {}
    for column, ids in (("query_id", collection.query_ids), ("doc_id", collection.doc_ids)):
        if run[column].cat.categories is not ids:
            codes = find_positions(run[column].cat.categories, ids).astype(np.int32)[run[column].cat.codes]
            columns[column] = pd.Categorical.from_codes(codes, ids)
    out = run.assign(**columns)
    out.attrs = {**run.attrs, "system": name, "collection": collection.name}
    return out
