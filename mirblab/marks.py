"""marks: which cells of a table are marked, and why."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd

from mirblab.errors import MirblabError
from mirblab.typeset import Table

Published = Callable[[str, str], float | None]


def state(distance: float, tolerance: tuple[float, float] = (0.05, 1.0)) -> str:
    """Return how near a value is to the paper's: "OK" up to the first tolerance, "near" up to the second, else "off".

    >>> [state(distance) for distance in (-0.04, 0.3, -2.0)]
    ['OK', 'near', 'off']
    """
    size = round(abs(distance), 9)
    return "OK" if size <= tolerance[0] else "near" if size <= tolerance[1] else "off"


def best_and_second(frame: pd.DataFrame, digits: int, unmarked: Sequence) -> pd.DataFrame:
    """Return "best" and "second" for each column, by the numbers as printed; nothing for a single system."""
    marks = pd.DataFrame("", index=frame.index, columns=frame.columns)
    if len(frame) < 2:
        return marks
    printed = frame.map(lambda number: float(f"{number:.{digits}f}")).to_numpy()
    for column, name in enumerate(frame.columns):
        if name in unmarked:
            continue
        found = printed[:, column]
        for mark, number in zip(("best", "second"), np.unique(found[~np.isnan(found)])[::-1], strict=False):
            marks.iloc[found == number, column] = mark
    return marks


def add_signs(shown: Table, comparison: pd.DataFrame) -> None:
    """Mark the systems of *shown* that differ from the baseline of *comparison*: † better, ‡ worse, and say so.

    *comparison* is from `significance.compare`; its rows meet the columns by collection, else by measure. Raises
    MirblabError unless there is exactly one baseline.
    """
    baselines = comparison.system_b.unique()
    if len(baselines) != 1:
        raise MirblabError(
            f"marks need a comparison with one baseline, found {len(baselines)}; call compare(..., baseline=...)"
        )
    signs = pd.DataFrame("", index=shown.frame.index, columns=shown.frame.columns)
    columns = {last(name): name for name in reversed(list(signs.columns))}
    for row in comparison.itertuples():
        column = columns.get(str(row.collection), columns.get(str(row.measure)))
        if row.significant and row.system_a in signs.index and column is not None:
            signs.loc[row.system_a, [column]] = "†" if row.difference > 0 else "‡"
    shown.signs = shown.signs + signs if shown.signs.size else signs
    done, measures = comparison.attrs, ", ".join(dict.fromkeys(comparison.measure.astype(str)))
    shown.notes.append(
        f"† better, ‡ worse than {baselines[0]} in {measures}: paired {done.get('test', 'permutation')} test over "
        f"queries, p at most {done.get('alpha', 0.05)} after Holm's correction; family: {_families(comparison)}."
    )


def add_distance(
    shown: Table, published: Published, tolerance: tuple[float, float], collections: set[str], unmarked: Sequence
) -> None:
    """Put the distance to the paper's number and its state beside the numbers of *shown*, and say so.

    *published(system, collection)* is the paper's number in printed units or None; only *collections* are asked for.
    Its `notes`, where it has some, become notes of the table.
    """
    shown.notes += getattr(published, "notes", [])
    frame = shown.frame
    paper = pd.DataFrame(np.nan, index=frame.index, columns=frame.columns)
    texts, states = paper.astype(object).fillna(""), paper.astype(object)
    for column, name in enumerate(frame.columns):
        is_collection = last(name) in collections and name not in unmarked
        for row, system in enumerate(frame.index if is_collection else []):
            number = published(str(system), last(name))
            if number is None or np.isnan(frame.iat[row, column]):
                continue
            distance = frame.iat[row, column] - number
            paper.iat[row, column], states.iat[row, column] = number, state(distance, tolerance)
            texts.iat[row, column] = f"({_signed(distance, shown.digits)} {state(distance, tolerance)})"
    if paper.isna().to_numpy().all():
        return
    shown.beside = texts
    shown.extra = {"paper": paper, "distance": (frame - paper).astype(float), "state": states}
    shown.notes.append(
        f"In parentheses: distance to the paper's number; OK up to {tolerance[0]:g}, near up to {tolerance[1]:g}, "
        "else off."
    )


def _signed(number: float, digits: int) -> str:
    """Return a number with its sign; what prints as zero has none.

    >>> _signed(-0.004, 2), _signed(-1.5, 2), _signed(0.25, 1)
    ('0.00', '−1.50', '+0.2')
    """
    text = f"{number:+.{digits}f}".replace("-", "−")
    return text if text.strip("+−0.") else text[1:]


def _families(comparison: pd.DataFrame) -> str:
    """Return what Holm's correction covered, in few words."""
    sizes = comparison.groupby("family", sort=False).size()
    if len(sizes) > 2 and sizes.nunique() == 1:
        return f"the {sizes.iloc[0]} comparisons of each collection"
    return ", ".join(map(str, sizes.index))


def last(name: object) -> str:
    """Return a column's own name, without the group above it."""
    return str(name[-1] if isinstance(name, tuple) else name)
