"""inventory: which collections, systems, models and measures there are, and which of them can be used now."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

import pandas as pd

from mirblab.core import registry
from mirblab.encoders.entry import is_folder, is_hosted
from mirblab.encoders.hosted.vendors import read_hosted
from mirblab.encoders.local import find_trained
from mirblab.evaluation import imported
from mirblab.evaluation import measures as measure_module
from mirblab.retrieval import systems as system_module
from mirblab.sources import catalogue, mini

READY = "ready"
Entries = Mapping[str, Mapping[str, Any]]


def collections() -> pd.DataFrame:
    """Return title, task and state of every known collection, by name.

    The state is "bundled", "ready" (built or added), or the command that builds it.

    >>> collections().loc["mini-qa", "state"]
    'bundled'
    """
    table = catalogue.collection_table()[["title", "task"]]
    built, entries = catalogue.built_names(), registry.read_registry("collections")
    table = table.reindex([*table.index, *(name for name in built if name not in table.index)], fill_value="")
    return table.assign(state=[_collection_state(name, built, entries.get(name, {})) for name in table.index])


def state(kind: str, name: str) -> str:
    """Return the state of a collection, system, encoder or reranker; "" for a collection that is not known."""
    if kind == "collection":
        entry = registry.read_registry("collections").get(name)
        built = catalogue.built_names()
        return _collection_state(name, built, entry or {}) if entry or name in (*built, *mini.COLLECTIONS) else ""
    models = _model_entries()
    if kind == "system":
        return _system_state(name, registry.read_registry("systems"), models)
    return model_state(name, models[kind].get(name, {}))


def _collection_state(name: str, built: Collection[str], entry: Mapping[str, Any]) -> str:
    if name in mini.COLLECTIONS:
        return "bundled"
    if name in built:
        return READY
    builder = entry.get("builder", "stacks")
    return f"mirblab build {name if builder == 'mirb' else builder}"


def systems() -> pd.DataFrame:
    """Return label, kind and state of every registered or imported system, by name; others are composed of these.

    The state is "ready", or what the system's model needs first: a training, a download, a key.

    >>> systems().loc["bm25+minilm", ["kind", "state"]].tolist()
    ['fusion', 'ready']
    """
    entries, models = registry.read_registry("systems"), _model_entries()
    rows = {
        name: (str(entry.get("label", name)), str(entry["kind"]), _system_state(name, entries, models))
        for name, entry in entries.items()
    }
    rows |= {name: (name, "imported", READY) for name in imported.imported_systems()}
    return pd.DataFrame.from_dict(rows, orient="index", columns=["label", "kind", "state"])


def _model_entries() -> dict[str, Entries]:
    return {kind: registry.read_registry(f"{kind}s") for kind in ("encoder", "reranker")}


def _system_state(name: str, entries: Entries, models: Mapping[str, Entries]) -> str:
    settings = entries.get(name) or system_module.parse_composed_name(name) or {}
    needs = [_system_state(part, entries, models) for part in system_module.part_names(settings)]
    needs += [
        model_state(settings[kind], known.get(settings[kind], {})) for kind, known in models.items() if kind in settings
    ]
    return "; ".join(dict.fromkeys(state for state in needs if state != READY)) or READY


def models() -> pd.DataFrame:
    """Return label, kind, parameters, longest input (tokens) and state of every encoder and reranker, by name.

    >>> models().loc[["minilm", "maxsim"], "state"].tolist()
    ['ready', 'ready']
    """
    rows = {}
    for kind, entries in _model_entries().items():
        for name, entry in entries.items():
            label, size = str(entry.get("label", name)), str(entry.get("size", ""))
            rows[name] = (label, kind, size, str(entry.get("max_length", "")), model_state(name, entry))
    return pd.DataFrame.from_dict(rows, orient="index", columns=["label", "kind", "parameters", "tokens", "state"])


def model_state(name: str, entry: Mapping[str, Any]) -> str:
    """Return "ready" for a model that can be used now without a network, else what it needs first.

    Hosted models are "ready" where their key is set. Nothing is loaded or asked.
    """
    from huggingface_hub import try_to_load_from_cache

    if "encoder" in entry:  # a reranker by token vectors
        return model_state(entry["encoder"], registry.read_registry("encoders").get(entry["encoder"], {}))
    if entry.get("trained"):
        return READY if find_trained(name) else f"mirblab train {name}"
    if is_hosted(entry):
        variable = read_hosted(entry).key_variable
        return READY if os.environ.get(variable) else f"a key in {variable}"
    identifier = str(entry.get("id", ""))
    if entry.get("package") or is_folder(identifier) or find_trained(name):
        return READY
    stored = try_to_load_from_cache(identifier, "config.json", revision=entry.get("revision")) if identifier else None
    return READY if isinstance(stored, str) else "a download from the Hub"


def measures() -> pd.DataFrame:
    """Return the measures by name: whether `@k` is needed or possible, whether there is a prime form, and the meaning.

    >>> measures().loc["RR", "prime"]
    "RR'"
    """
    cutoffs = {"needed": "{0}@10", "may": "{0}, {0}@10", "none": "{0}"}
    rows = {}
    for name, known in measure_module.DEFINITIONS.items():
        plain = measure_module.Measure(name, p=known.p)
        prime = str(replace(plain, prime=True)) if known.prime else ""
        rows[name] = (cutoffs[known.k].format(plain), prime, _meaning(known.formula))
    return pd.DataFrame.from_dict(rows, orient="index", columns=["written", "prime", "meaning"])


def _meaning(formula: Any) -> str:
    return str(formula.__doc__).partition("\n")[0].removeprefix("Return ").rstrip(".")
