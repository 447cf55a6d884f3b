"""material: the texts that a recipe trains on, from a table of views, with mixed-in pairs and hard negatives."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from mirblab.errors import MirblabError, unknown
from mirblab.terminal import say
from mirblab.train import texts as rewritten
from mirblab.train.extras import hard_negatives, mixed_pairs
from mirblab.train.plan import Draw, Plan
from mirblab.train.settings import Recipe
from mirblab.train.splits import VIEWS, without_near

HELD_OUT = ("dev", "test", "test_new")


@dataclass(frozen=True)
class Material:
    """The texts of a recipe: `columns` by view, which pairs of views each row has, and what is added to them.

    `mixed` is two equally long lists of texts that say the same; `hard` has for each row the positions of rows that
    are easily mistaken for it, and `wrong` texts that are its own made wrong.
    """

    columns: dict[str, list[str]]
    pairs: list[tuple[str, str]]
    usable: np.ndarray
    mixed: tuple[list[str], list[str]]
    hard: list[list[int]]
    wrong: list[list[str]]
    n_hard: int

    def __len__(self) -> int:
        """Return the number of rows of the main source."""
        return len(self.usable)

    def plan(self, recipe: Recipe) -> Plan:
        """Return the plan of the batches over these texts."""
        return Plan(self.usable, recipe.batch, recipe.seed, len(self.mixed[0]), recipe.share, recipe.together)

    def texts(self, draw: Draw) -> tuple[list[str], list[str], list[str]]:
        """Return anchors, positives and hard negatives of a draw; another row's negative is in the positive's view."""
        if draw.is_mixed:
            return [self.mixed[0][row] for row in draw.rows], [self.mixed[1][row] for row in draw.rows], []
        chosen = [
            self.pairs[pair][::-1] if flip else self.pairs[pair]
            for pair, flip in zip(draw.pairs, draw.flipped, strict=True)
        ]
        anchors = [self.columns[view][row] for (view, _), row in zip(chosen, draw.rows, strict=True)]
        positives = [self.columns[view][row] for (_, view), row in zip(chosen, draw.rows, strict=True)]
        return anchors, positives, self._negatives(draw, [view for _, view in chosen])

    def _negatives(self, draw: Draw, views: Sequence[str]) -> list[str]:
        found = []
        for row, view in zip(draw.rows, views, strict=True):
            near = [self.columns[view][other] for other in self.hard[row]] if self.hard else []
            near = [text for text in [*near, *(self.wrong[row] if self.wrong else [])] if text]
            found += [near[place] for place in draw.rng.permutation(len(near))[: self.n_hard]]
        return found

    def fingerprint(self) -> str:
        """Return a hash over all texts, in their order, and what belongs to what: 32 hexadecimal digits."""
        state = hashlib.blake2b(digest_size=16)
        for texts in (*self.columns.values(), *self.mixed):
            state.update(f"{len(texts)}\n".encode())
            for text in texts:
                state.update(text.encode("utf-8", "surrogatepass") + b"\0")
        state.update(repr((self.pairs, self.hard, self.wrong)).encode())
        return state.hexdigest()


def gather(recipe: Recipe, views: pd.DataFrame) -> Material:
    """Return what *recipe* trains on, out of a table of *views*: rows of its split that have at least one pair.

    A view that is "" or missing is absent. Raises MirblabError for columns that are not there, and for too few rows.
    """
    if recipe.rephrased:
        views = rewritten.join(views, rewritten.read(recipe.rephrased))
    rows = _apart(recipe, _of_split(recipe, views), views)
    if recipe.together > 1:
        rows = _neighbours(recipe, rows)
    for column in recipe.columns():
        if column not in rows:
            raise unknown(f"view in the data of recipe '{recipe.name}' called", column, rows.columns)
    texts = rows[recipe.columns()].fillna("").astype("str").apply(lambda column: column.str.strip())
    has = texts != ""
    usable = np.stack([(has[left] & has[right]).to_numpy() for left, right in recipe.pairs()], axis=1)
    kept = usable.any(axis=1)
    if kept.sum() < recipe.batch:
        raise MirblabError(
            f"recipe '{recipe.name}': {kept.sum()} rows of split '{recipe.split}' have a pair of views, "
            f"fewer than one batch of {recipe.batch}; give more data or --set batch=..."
        )
    columns = {name: texts[name][kept].tolist() for name in recipe.columns()}
    hard, wrong = hard_negatives(recipe, rows[kept]) if recipe.hard else ([], [])
    return Material(columns, recipe.pairs(), usable[kept], mixed_pairs(recipe), hard, wrong, recipe.n_hard)


def _of_split(recipe: Recipe, views: pd.DataFrame) -> pd.DataFrame:
    rows = views
    if recipe.split:
        if "split" not in rows:
            raise MirblabError(
                f"recipe '{recipe.name}' takes split '{recipe.split}', but the data has no such column; "
                "add a column split"
            )
        known = sorted(rows["split"].astype("str").unique())
        if recipe.split not in known:
            raise unknown(f"split in the data of recipe '{recipe.name}' called", recipe.split, known)
        rows = rows[(rows["split"] == recipe.split).to_numpy()]
    if recipe.modules == "mathematics":
        from mirblab.views import in_modules

        rows = in_modules(rows)
    return rows


def _neighbours(recipe: Recipe, rows: pd.DataFrame) -> pd.DataFrame:
    """Return *rows* by module and name, so that what is about the same thing stands together."""
    by = [name for name in ("module", "id") if name in rows]
    if not by:
        raise MirblabError(
            f"recipe '{recipe.name}': together = {recipe.together}, but the data has no module and no id"
        )
    return rows.sort_values(by, kind="stable")


def _apart(recipe: Recipe, rows: pd.DataFrame, views: pd.DataFrame) -> pd.DataFrame:
    """Return *rows* without those that nearly repeat a row which models are tested on; says how many went."""
    if not recipe.near or recipe.split in ("", *HELD_OUT):
        return rows
    held_out = views[views["split"].isin(HELD_OUT).to_numpy()]
    shown = [name for name in VIEWS if name in views]
    if held_out.empty or not shown:
        return rows
    blank = dict.fromkeys(shown, "")
    kept = without_near(rows.fillna(blank), held_out.fillna(blank), shown, recipe.near)
    say(f"{recipe.name}: {kept.summary()}")
    return kept.rows
