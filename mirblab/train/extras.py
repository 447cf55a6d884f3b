"""extras: what a recipe adds to its views: pairs of another collection, and hard negatives from a file."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from mirblab import paths, shelf
from mirblab.errors import MirblabError
from mirblab.lines import Problems, records
from mirblab.train.settings import Recipe
from mirblab.train.texts import NEGATIVES

WRITTEN = "written"  # by a model or by rules, beside the rephrasings


def mixed_pairs(recipe: Recipe) -> tuple[list[str], list[str]]:
    """Return query texts and relevant documents of the collection that *recipe* mixes in; two empty lists for none.

    They are in the order of the judgements. Raises MirblabError when they are fewer than one batch.
    """
    if not recipe.mix:
        return [], []
    held = shelf.load(recipe.mix, recipe.mix_split)
    queries, documents = (held.relevant[side].cat.codes.tolist() for side in ("query_id", "doc_id"))
    found = [(held.query_texts[one], held.texts[other]) for one, other in zip(queries, documents, strict=True)]
    found = [(query, text) for query, text in found if query and text and query != text]
    if len(found) < recipe.batch:
        raise MirblabError(
            f"recipe '{recipe.name}': {recipe.mix} has {len(found)} pairs in split '{recipe.mix_split}', "
            f"fewer than one batch of {recipe.batch}; mix in another collection or --set batch=..."
        )
    return [query for query, _ in found], [text for _, text in found]


def hard_negatives(recipe: Recipe, rows: pd.DataFrame) -> tuple[list[list[int]], list[list[str]]]:
    """Return for each of *rows* the positions of its hard negatives among them, or its own statement made wrong.

    One of the two lists is empty. "written" takes the columns negative_1, ... of the recipe's rephrasings; else
    the recipe's file has a JSON object per line: `id`, and `negatives`, a list of ids. Raises MirblabError when no row
    has a negative, and naming file and line for what is wrong in a file.
    """
    if recipe.hard != WRITTEN:
        return _listed(recipe, rows["id"].astype("str").tolist()), []
    absent = [name for name in NEGATIVES if name not in rows]
    if absent or not (rows[list(NEGATIVES)] != "").any(axis=None):
        raise MirblabError(
            f"recipe '{recipe.name}': hard = \"{WRITTEN}\", but no statement made wrong is in the rephrasings; "
            "make some with mirblab rephrase --negatives and name the file as rephrased"
        )
    return [], rows[list(NEGATIVES)].to_numpy().tolist()


def _listed(recipe: Recipe, ids: Sequence[str]) -> list[list[int]]:
    """Return the positions that a file of hard negatives names; those that are not among *ids* are left out."""
    path = paths.given(recipe.hard)
    if not path.is_file():
        raise FileNotFoundError(
            f"recipe '{recipe.name}': no file of hard negatives at {path}; correct hard in the recipe, or make the file"
        )
    places, problems = {one: place for place, one in enumerate(ids)}, Problems(path)
    found: list[list[int]] = [[] for _ in ids]
    for number, record in records(path, problems):
        near = record.get("negatives")
        if not isinstance(record.get("id"), str) or not isinstance(near, list):
            problems.note(number, 'expected {"id": "...", "negatives": ["...", ...]}')
        elif record["id"] in places:
            found[places[record["id"]]] = [places[one] for one in near if one in places and one != record["id"]]
    problems.raise_if_any()
    if not any(found):
        raise MirblabError(
            f"{path} has no negative for any of the {len(ids):,} rows of recipe '{recipe.name}'; "
            "make it from the same data"
        )
    return found
