"""grades: what the grades of a collection's judgements mean, as a table to stand where grades are shown."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any

import pandas as pd

from mirblab.core import registry
from mirblab.core.errors import MirblabError, check_known
from mirblab.data.collection import Collection
from mirblab.display.result_tables import table
from mirblab.display.table_formats import Table

COUNTS_AS_RELEVANT = "counts as relevant"
_FIELDS = {"label": str, "source": str} | dict.fromkeys(("collections", "ratings", "meanings"), list[str])


def grade_table(collection: Collection) -> Table:
    """Return the grades of a collection, highest first: rating, meaning, and whether the grade counts as relevant.

    Ratings and meanings are from `registry/scales.toml`; for a collection without a scale there, the caption says so.

    >>> from mirblab.sources.catalogue import load
    >>> grade_table(load("mini-qa")).frame.rating.to_dict()
    {'grade 3': 'high', 'grade 2': 'medium', 'grade 1': 'low', 'grade 0': 'not relevant'}
    """
    name, card = scale_name(collection.name), collection.card
    levels = sorted({*card.relevance_levels, *collection.qrels.relevance.tolist()}, reverse=True)
    meanings = scale_meanings(name) if name else pd.DataFrame({"rating": [], "meaning": []}, dtype="str")
    counts = pd.Series(
        ["yes" if level >= card.relevant_from else "no" for level in levels], levels, name=COUNTS_AS_RELEVANT
    )
    shown = meanings.reindex(levels).fillna("–").join(counts)
    shown.index = [f"grade {level}" for level in levels]
    if not name:
        caption = f"The grades of {collection.name}; what they mean is not in registry/scales.toml."
        return table(shown[[COUNTS_AS_RELEVANT]], caption)
    return table(
        shown, f"What the grades of {collection.name} mean: {_scale_entry(name)['label']}.", notes=[_source_note(name)]
    )


def grade_scales_table() -> Table:
    """Return the table of all scales of the registry, the highest grade of each first.

    >>> grade_scales_table().frame.grade.tolist()[:4]
    [3, 2, 1, 0]
    """
    names = list(registry.read_registry("scales"))
    parts = [scale_meanings(name).reset_index().assign(scale=_scale_entry(name)["label"]) for name in names]
    shown = pd.concat(parts).set_index("scale") if parts else pd.DataFrame()
    return table(shown, "What the grades of judges mean.", notes=list(dict.fromkeys(map(_source_note, names))))


def grade_meaning(collection: Collection, grade: int) -> str:
    """Return the rating and meaning of a grade in a collection; "" where the registry has none."""
    name = scale_name(collection.name)
    meanings = scale_meanings(name) if name else pd.DataFrame()
    return f"{meanings.rating[grade]}: {meanings.meaning[grade]}" if grade in meanings.index else ""


def scale_name(collection_name: str) -> str:
    """Return the name of the registry's scale for a collection, "" for none."""
    for name in registry.read_registry("scales"):
        if any(fnmatchcase(collection_name, pattern) for pattern in _scale_entry(name)["collections"]):
            return name
    return ""


def scale_meanings(name: str) -> pd.DataFrame:
    """Return rating and meaning of each grade of a scale, highest first; MirblabError for an unknown scale."""
    entry = _scale_entry(name)
    return pd.DataFrame({"rating": entry["ratings"], "meaning": entry["meanings"]}).rename_axis("grade").iloc[::-1]


def _source_note(name: str) -> str:
    return f"After {_scale_entry(name)['source']}, in our own words."


def _scale_entry(name: str) -> Mapping[str, Any]:
    entries = registry.read_registry("scales")
    check_known("scale", name, entries)
    where = f"{registry.entry_file('scales', name)}: the scale '{name}'"
    entry = registry.check_table(where, entries[name], _FIELDS, _FIELDS)
    if len(entry["ratings"]) != len(entry["meanings"]):
        raise MirblabError(
            f"{where} has {len(entry['ratings'])} ratings and {len(entry['meanings'])} meanings; give one of each for "
            "every grade, from 0"
        )
    return entry
