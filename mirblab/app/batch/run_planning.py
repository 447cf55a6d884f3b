"""run_planning: which runs are missing, and what they need: texts to encode, pairs to score, time, dollars, disk."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mirblab.app import suite_files
from mirblab.app.batch import stamps
from mirblab.app.suite_files import Job
from mirblab.core import paths, registry, text_files
from mirblab.core.errors import MirblabError
from mirblab.data.collection import Collection
from mirblab.data.parts import texts_at
from mirblab.encoders import summary
from mirblab.encoders.cache import VectorStore, space_digest
from mirblab.encoders.encoding import Encoder, encoder
from mirblab.encoders.token_vectors import TokenStore, open_token_store
from mirblab.retrieval import dense, rerank
from mirblab.retrieval.systems import DEPTH, System, parse_composed_name, system
from mirblab.sources import catalogue

TEXTS_PER_SECOND = 70.0  # MiniLM on two cores
PAIRS_PER_SECOND = 50.0  # a cross-encoder of MiniLM's size on two cores; larger ones are slower in proportion
MINILM_SIZE = 22.7  # millions of parameters
TOKEN_BYTES = 130_000  # of a text's token vectors, float16
TERMS_PER_TEXT = 200  # of a learned sparse vector, of which each takes 8 bytes
SECONDS_PER_RUN = 0.35  # of a run whose texts are encoded
_BY_TOKENS = ("late", "rerank")  # kinds of systems that may encode the tokens of texts
SMALL = 2_000  # documents, in which a search that encodes nothing takes seconds


@dataclass(frozen=True)
class MissingRun:
    """A run that is not stored yet, and how many texts must be encoded and pairs scored for it, at most."""

    system: str
    collection: str
    n_texts: int
    n_bytes: int
    seconds: float
    shares_texts_with: frozenset[str] = frozenset()  # collections that were counted before
    n_pairs: int = 0  # of a query and a document, for a reranker
    dollars: float = 0.0  # for a hosted encoder, by `summary.estimate_dollars`; NaN: its price is not known
    depth: int = DEPTH  # documents a query


def missing_runs(jobs: Sequence[Job]) -> list[MissingRun]:
    """Return the runs that the jobs need and that are not stored yet, parts before their compositions.

    What reads token vectors comes first, since these passes through the model store the vectors of the texts, too.
    A run of a small collection for which nothing is encoded is left to the notebook: a search uses one core, so it
    would leave the others idle here.
    """
    needed: dict[str, list[str]] = {}
    for job in jobs:
        for collection_name in job.collections:
            needed.setdefault(collection_name, []).extend(job.systems)
    return find_missing(needed, SMALL)


def find_missing(
    needed: Mapping[str, Iterable[str]], smallest: int = 0, split: str = "test", depth: int = DEPTH
) -> list[MissingRun]:
    """Return the runs of the systems *needed* by collection that are not stored, in the order of `missing_runs`.

    Of a collection of fewer than *smallest* documents only those for which something may be encoded. *depth* is how
    many documents a query those of the systems themselves need, from 1; their parts are of the usual depth.
    """
    missing, counted = [], dict[Path | str, dict[int, str]]()
    for collection_name in sorted(needed):
        collection = catalogue.load(collection_name, split)
        wholes = [system(name) for name in needed[collection_name]]
        depths = {part.name: DEPTH for whole in wholes for part in with_parts(whole)}
        depths |= {whole.name: depth for whole in wholes}
        for name in sorted(depths, key=lambda name: not reads_tokens(system(name))):
            if not system(name).is_stored(collection, depths[name]):
                run = _missing_run(system(name), collection, collection_name, counted)
                run = replace(run, depth=depths[name])
                if run.n_texts or reads_tokens(system(name)) or len(collection.doc_ids) >= smallest:
                    missing.append(run)
    return missing


def reads_tokens(one: System) -> bool:
    """Return whether a system may encode the tokens of texts: late interaction, or a reranker."""
    return one.settings["kind"] in _BY_TOKENS


def with_parts(whole: System) -> list[System]:
    """Return the system after all systems that it is composed of."""
    return [*(deeper for part in whole.parts for deeper in with_parts(part)), whole]


def encoders_in(suite: str) -> list[str]:
    """Return the encoders of the systems that a suite names, also of those that cannot be used here."""
    names: dict[str, None] = {}
    for name in suite_files.systems_named_in(suite):
        with contextlib.suppress(MirblabError):  # a reranker that is not trained yet
            names |= {part.settings["encoder"]: None for part in with_parts(system(name)) if "encoder" in part.settings}
    return list(names)


def reranked_in(suite: str) -> dict[str, int]:
    """Return how many documents a query each cross-encoder scores that a suite names, also one that cannot be used.

    The shortlists of all first stages are counted, each at its largest depth.
    """
    found: dict[str, int] = {}
    entries, depths = registry.read_registry("rerankers"), dict[tuple[str, str], int]()
    for name in suite_files.systems_named_in(suite):
        settings = parse_composed_name(name) or {}
        if settings.get("kind") == "rerank":
            depths[settings["first"], settings["reranker"]] = settings["depth"]
    for given in (entry.get("parameters", {}) for entry in suite_files.read_suite_file(suite)["notebook"]):
        for reranker in given.get("rerankers", []):
            for first in given["systems"]:
                key = first.removesuffix("?"), reranker.removesuffix("?")
                depths[key] = max(depths.get(key, 0), *given["depths"])
    for (_, reranker), depth in depths.items():
        if entries.get(reranker, {}).get("kind") == "cross-encoder":
            found[reranker] = found.get(reranker, 0) + depth
    return found


def _missing_run(
    system: System, collection: Collection, collection_name: str, counted: dict[Path | str, dict[int, str]]
) -> MissingRun:
    n_texts = n_bytes = n_pairs = 0
    seconds, dollars, owners = SECONDS_PER_RUN, 0.0, set[str]()
    model = encoder_of(system)
    if system.settings["kind"] == "rerank":
        n_pairs = len(collection.queries) * min(system.settings["depth"], len(collection.doc_ids))
        size = registry.read_registry("rerankers").get(system.settings["reranker"], {}).get("size", "")
        seconds += n_pairs / PAIRS_PER_SECOND * summary.millions(size) / MINILM_SIZE if size else 0.0
    if model and reads_tokens(system):
        owners |= _count_missing(model, collection, counted, open_token_store, collection_name)[2]
        n_texts = _count_missing(model, collection, {}, open_token_store)[0]  # shortlists differ in their documents
        n_texts = min(n_texts, n_pairs + len(collection.queries)) if n_pairs else n_texts
        n_bytes = n_texts * TOKEN_BYTES
    if model and "encoder" in system.settings:
        store = open_token_store if model.is_sparse else Encoder.store
        n_passages, n_words, others = _count_missing(model, collection, counted, store, collection_name)
        owners |= others
        dollars = summary.estimate_dollars(model.entry, n_words)
        n_bytes += n_passages * (8 * TERMS_PER_TEXT if model.is_sparse else 4 * model.dimensions + 24)
        n_texts = max(n_texts, n_passages)
    seconds += n_texts / encoding_rate()
    others = owners - {collection_name}
    return MissingRun(system.name, collection_name, n_texts, n_bytes, seconds, frozenset(others), n_pairs, dollars)


def encoder_of(one: System) -> Encoder | None:
    """Return the encoder whose vectors the system itself reads, those of tokens included, or None."""
    settings = one.settings
    if settings["kind"] == "rerank":
        settings = rerank.reranker_settings(settings["reranker"])
    return encoder(settings["encoder"], settings.get("compat", "")) if settings.get("encoder") else None


def count_missing_texts(model: Encoder, collection: Collection) -> int:
    """Return how many texts of a collection are not stored yet, each once."""
    return _count_missing(model, collection, {}, open_token_store if model.is_sparse else Encoder.store)[0]


def _count_missing(
    model: Encoder,
    collection: Collection,
    counted: dict[Path | str, dict[int, str]],
    open_store: Callable[[Encoder, str, str], VectorStore | TokenStore],
    owner: str = "",
) -> tuple[int, int, set[str]]:
    """Return how many texts are not stored yet, each once over all calls with the same *counted*, how many words they
    have, and for which collections the others of them were counted.

    Collections share vectors, so that a text may be encoded for another collection before, also in another role and
    for its token vectors. *counted* has, by the store of its vectors, and by the model's input whatever the role, and
    by the text's hash, the collection for which each text was counted; *owner* is this one's name.
    """
    n_texts, n_words, owners = 0, 0, set[str]()
    for texts, role in ((collection.texts, "document"), (collection.query_texts, "query")):
        store = open_store(model, role, collection.card.instruction)
        # A role with the same inputs takes these vectors, and a pass for token vectors stores them.
        inputs = inputs_digest(model, collection.card.instruction, role)
        seen, owner_of = (counted.setdefault(path, {}) for path in (store.path, inputs))
        missing = store.missing(texts)
        for start in range(0, len(missing), dense.CHUNK_DOCS):
            for text in texts_at(texts, missing[start : start + dense.CHUNK_DOCS]):
                owners.add(owner_of.setdefault(key := hash(text), owner))
                if key in seen:
                    continue
                seen[key] = owner
                n_texts, n_words = n_texts + 1, n_words + len(text.split())
    return n_texts, n_words, owners


def inputs_digest(model: Encoder, instruction: str, role: str) -> str:
    """Return a digest that two roles share in which the model gets the same input for a text."""
    return space_digest("", model.space(role, instruction) | {"role": ""})


def stored_shares(encoders: Sequence[str] | None = None) -> dict[tuple[str, str], float]:
    """Return the share of encoded texts, 0 to 1, by encoder and collection (on disk) as MIRB's paper names it."""
    counts: dict[tuple[str, str], tuple[int, int]] = {}
    groups = catalogue.collection_groups()
    for collection in (catalogue.load(name) for name in catalogue.built_names() if name.startswith("mirb-")):
        n_texts = len(set(collection.texts)) + len(set(collection.query_texts))
        for name in summary.published_encoders() if encoders is None else encoders:
            key = name, groups.get(collection.name, collection.card.paper)
            n_stored, n_all = counts.get(key, (0, 0))
            counts[key] = n_stored + n_texts - count_missing_texts(encoder(name), collection), n_all + n_texts
    return {key: n_stored / n_all for key, (n_stored, n_all) in counts.items()}


def encoding_rate() -> float:
    """Return texts encoded per second as measured by the last batch on this machine, else `TEXTS_PER_SECOND`."""
    try:
        rate = json.loads((paths.cache() / "rate.json").read_text("utf-8"))["texts_per_second"]
    except (OSError, KeyError, TypeError, ValueError, RecursionError):  # absent or damaged: the next batch writes it
        return TEXTS_PER_SECOND
    return float(rate) if stamps.is_duration(rate) and rate > 0 else TEXTS_PER_SECOND


def verify_rate(path: Path) -> list[str]:
    """Return a line if the file of the measured speed is damaged; the next batch replaces it."""
    try:
        sound = stamps.is_duration(text_files.read_json(path)["texts_per_second"])
    except (OSError, KeyError, TypeError, ValueError):
        sound = False
    return [] if sound else [f"{path} is damaged; a default is used until the next batch writes it again"]
