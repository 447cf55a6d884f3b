"""Numbers printed in papers, as data: mirb, zhong (structure and dense retrieval), arqmath (the lab), meld, and others.

The others are single figures of theoremsearch, leansearch-v2, theoremgraph and bright.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources

import pandas as pd

from mirblab.core import registry
from mirblab.core.errors import check_known, suggest

# The tables that have the value of a system on a collection, in the order in which they are searched.
_RESULT_TABLES = (("mirb", "9"), ("mirb", "10"))


def paper_cells(paper: str = "", table: int | str = "") -> pd.DataFrame:
    """Return the printed cells, one row each, in the order of the paper, as text; "" is any paper or table."""
    cells = _cells()
    for column, wanted in (("paper", str(paper)), ("table", str(table))):
        if wanted:
            check_known(column, wanted, cells[column].unique())
            cells = cells[cells[column] == wanted]
    return cells.reset_index(drop=True)


def paper_table(paper: str, table: int | str) -> pd.DataFrame:
    """Return one table as wide as it is printed: rows and columns in the paper's order, numbers as float or int.

    Columns have a second level, the variant, where a cell holds several numbers (MIRB's Table 10: before and after two
    rerankers), and a first one, the group, where two columns have the same heading (Table 1 of Zhong et al.). "-" is a
    missing value. MirblabError for a paper or table that is not stored.

    >>> paper_table("mirb", 10).loc["Stacks", "voyage-3-large"].tolist()
    [62.62, 45.76, 53.75]
    """
    cells = paper_cells(paper, table)
    keys = ["column", "variant"] if cells.variant.ne("").any() else ["column"]
    if cells.duplicated(["row", *keys]).any():
        keys = ["column_group", *keys]
    rows, columns = cells.row.drop_duplicates(), cells[keys].drop_duplicates()
    order = pd.MultiIndex.from_frame(columns) if len(keys) > 1 else pd.Index(columns.column)
    wide = cells.pivot(index="row", columns=keys, values="value").reindex(index=rows, columns=order)
    return wide.apply(_numbers).rename_axis(index=None)


@dataclass(frozen=True)
class PaperLookup:
    """The paper's number of a system on one of our collections; `notes` says which of the names are not printed."""

    papers: Mapping[str, str]

    def __call__(self, system: str, collection: str) -> float | None:
        return _values().get((system, self.papers.get(collection, collection)))

    @property
    def notes(self) -> list[str]:
        """Return a sentence for each name in a card that no paper prints, since no distance can be shown for it."""
        known = registry.printed_names()
        return [
            f"The card of {collection} says paper = '{paper}', which is no published collection"
            f"{suggest(paper, known)}; no distance is shown for it."
            for collection, paper in self.papers.items()
            if paper and paper not in known
        ]


def paper_lookup(papers: Mapping[str, str]) -> PaperLookup:
    """Return the function of system and collection from which `main_table` gets the paper's number.

    *papers* maps our collections to the names that MIRB prints (a card's `paper`); "" means none, and a collection
    that is not in it stands for itself. The numbers are MIRB's nDCG@10 in percent (Tables 9 and 10), or None where it
    prints none; a system has its name in the registry ("bm25-mirb") or the printed one ("BM25"), whose case counts. A
    name that is not printed is noted in the table.

    >>> paper_lookup({"stacks-qa": "Stacks"})("bm25-mirb", "stacks-qa")
    35.49
    """
    return PaperLookup(papers)


@lru_cache
def _cells() -> pd.DataFrame:
    with resources.files("mirblab").joinpath("registry", "published.csv").open(encoding="utf-8") as file:
        return pd.read_csv(file, dtype=str, keep_default_na=False)


def _numbers(column: pd.Series) -> pd.Series:
    """Return a column of printed cells as numbers when all of them are, else as text; "-" becomes missing."""
    present = column.where(column != "-")
    numbers = pd.to_numeric(present, errors="coerce")
    return numbers if numbers.notna().equals(present.notna()) else present


@lru_cache
def _values() -> dict[tuple[str, str], float]:
    values: dict[tuple[str, str], float] = {}
    for paper, table in _RESULT_TABLES:
        for cell in paper_cells(paper, table).to_dict("records"):
            values.setdefault((cell["system"], cell["collection"]), float(cell["value"]))
            if not cell["variant"]:
                values.setdefault((cell["row"], cell["collection"]), float(cell["value"]))
    return values
