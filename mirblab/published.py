"""published: the papers' numbers, as data."""

from __future__ import annotations

from functools import lru_cache
from importlib import resources

import pandas as pd

from mirblab.errors import MirblabError, unknown

# Where the value of a system on a collection stands, in the order in which it is looked for.
_RESULTS = (("mirb", "9"), ("mirb", "10"))


@lru_cache
def _cells() -> pd.DataFrame:
    """Return `registry/published.csv`, one row per printed cell, every column as text."""
    with resources.files("mirblab").joinpath("registry", "published.csv").open(encoding="utf-8") as file:
        return pd.read_csv(file, dtype=str, keep_default_na=False)


def cells(paper: str = "", table: int | str = "") -> pd.DataFrame:
    """Return the printed cells in the order of the paper, one row each, every column as text.

    Columns: paper, table, row_group, row, column_group, column, variant, value (as printed, thousands separators
    removed), unit, system (the registry's name), collection (the paper's printed name), source.
    *paper* and *table* narrow the choice; the empty string means all. Raises MirblabError for unknown ones.

    >>> cells("mirb", 9).value.head(2).tolist()
    ['31.49', '22.85']
    """
    found = _cells()
    for column, wanted in (("paper", str(paper)), ("table", str(table))):
        if wanted and wanted not in set(found[column]):
            raise unknown(column, wanted, found[column].unique())
        found = found[found[column] == wanted] if wanted else found
    return found.reset_index(drop=True)


def published(paper: str, table: int | str) -> pd.DataFrame:
    """Return one table as wide as it is printed: rows and columns in the paper's order, numbers as float or int.

    Columns have a second level, the variant, where a cell holds several numbers (MIRB's Table 10: before and after
    two rerankers). "-" is a missing value. Raises MirblabError for a paper or table that is not stored.

    >>> published("mirb", 9).loc["BM25", ["Stacks", "Avg."]].tolist()
    [35.49, 32.23]
    >>> published("mirb", 10).loc["Stacks", "voyage-3-large"].tolist()
    [62.62, 45.76, 53.75]
    """
    found = cells(paper, table)
    keys = ["column", "variant"] if found.variant.ne("").any() else ["column"]
    rows, columns = found.row.drop_duplicates(), found[keys].drop_duplicates()
    order = pd.MultiIndex.from_frame(columns) if len(keys) > 1 else pd.Index(columns.column)
    wide = found.pivot(index="row", columns=keys, values="value").reindex(index=rows, columns=order)
    return wide.apply(_numbers).rename_axis(index=None)


def _numbers(column: pd.Series) -> pd.Series:
    """Return a column of printed cells as numbers when all of them are, else as text; "-" becomes missing."""
    present = column.where(column != "-")
    numbers = pd.to_numeric(present, errors="coerce")
    return numbers if numbers.notna().equals(present.notna()) else present


@lru_cache
def _values() -> dict[tuple[str, str], float]:
    """Return the stored results by (system, collection), in lower case, under the printed and the registry's name."""
    values: dict[tuple[str, str], float] = {}
    for paper, table in _RESULTS:
        for cell in cells(paper, table).itertuples():
            collection, number = cell.collection.lower(), float(cell.value)
            values.setdefault((cell.system.lower(), collection), number)
            if not cell.variant:
                values.setdefault((cell.row.lower(), collection), number)
    return values


def value(system: str, collection: str) -> float | None:
    """Return MIRB's nDCG@10 in percent (0 to 100) of a system on a collection, or None where it printed none.

    *system* is a name of the registry ("bm25-mirb", "nv-embed-v2>bge-reranker-v2-m3") or the printed one ("BM25");
    *collection* is the name that MIRB prints, which cards and the registry give as `paper`, or "Avg.".
    Case does not count. Sources: MIRB's Tables 9 and 10.

    >>> value("bm25-mirb", "Stacks"), value("BM25", "Avg."), value("minilm", "Stacks")
    (35.49, 32.23, None)
    """
    return _values().get((system.lower(), collection.lower()))


def systems() -> dict[str, str]:
    """Return the printed name of each of MIRB's systems by its name in the registry.

    >>> systems()["bm25-mirb"]
    'BM25'
    """
    models = cells("mirb", 7)
    return dict(zip(models.system, models.row, strict=True))


def instruction(collection: str) -> str:
    """Return the query instruction that MIRB's Table 8 prints for a collection (printed name).

    Raises MirblabError when the table has none for it.

    >>> instruction("Stacks")
    'Given a math theorem, retrieve its proof.'
    """
    found = cells("mirb", 8).query("collection != ''").set_index("collection").value
    if collection not in found.index:
        raise unknown("instruction for collection", collection, found.index)
    return str(found[collection])


def recomputed_averages(table: int | str) -> pd.DataFrame:
    """Return printed and recomputed averages of MIRB's Table 9 or 10: system, printed, recomputed, in percent.

    MIRB averages the 12 collections without weights. Raises MirblabError for a table without averages.

    >>> recomputed_averages(9).set_index("system").loc["text-embedding-3-large"].round(3).tolist()
    [49.93, 49.935]
    """
    found = cells("mirb", table)
    is_average = found.collection == "Avg."
    if not is_average.any():
        raise MirblabError(f"MIRB's table {table} prints no averages; tables 9 and 10 do")
    numbers = found.assign(value=found.value.astype(float))
    printed = numbers[is_average].groupby("system", sort=False).value.first()
    mean = numbers[~is_average].groupby("system", sort=False).value.mean()
    return pd.DataFrame({"printed": printed, "recomputed": mean}).rename_axis("system").reset_index()
