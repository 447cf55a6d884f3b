"""Numbers printed in papers, as data: mirb, zhong (structure and dense retrieval), arqmath (the lab), meld."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources

import pandas as pd

from mirblab.core import registry
from mirblab.core.errors import suggest, unknown

# Where the value of a system on a collection stands, in the order in which it is looked for.
_RESULT_TABLES = (("mirb", "9"), ("mirb", "10"))


def paper_cells(paper: str = "", table: int | str = "") -> pd.DataFrame:
    """Return the printed cells in the order of the paper, one row each, every column as text.

    Columns: paper, table, row_group, row, column_group, column, variant, value (as printed, thousands separators
    removed), unit, system (the registry's name), collection (the paper's printed name), source.
    *paper* and *table* narrow the choice; the empty string means all. Raises MirblabError for unknown ones.

    >>> paper_cells("mirb", 9).value.head(2).tolist()
    ['31.49', '22.85']
    """
    cells = _cells()
    for column, wanted in (("paper", str(paper)), ("table", str(table))):
        if wanted and wanted not in set(cells[column]):
            raise unknown(column, wanted, cells[column].unique())
        cells = cells[cells[column] == wanted] if wanted else cells
    return cells.reset_index(drop=True)


def paper_table(paper: str, table: int | str) -> pd.DataFrame:
    """Return one table as wide as it is printed: rows and columns in the paper's order, numbers as float or int.

    Columns have a second level, the variant, where a cell holds several numbers (MIRB's Table 10: before and after
    two rerankers), and a first one, the group, where two columns have the same heading (Table 1 of Zhong et al.).
    "-" is a missing value. Raises MirblabError for a paper or table that is not stored.

    >>> paper_table("mirb", 9).loc["BM25", ["Stacks", "Avg."]].tolist()
    [35.49, 32.23]
    >>> paper_table("mirb", 10).loc["Stacks", "voyage-3-large"].tolist()
    [62.62, 45.76, 53.75]
    >>> paper_table("zhong", 4)["nDCG'"].nlargest(2, keep="all").index.tolist()
    ['RRF (k = 60)', 'Linear']
    """
    cells = paper_cells(paper, table)
    keys = ["column", "variant"] if cells.variant.ne("").any() else ["column"]
    if cells.duplicated(["row", *keys]).any():
        keys = ["column_group", *keys]
    rows, columns = cells.row.drop_duplicates(), cells[keys].drop_duplicates()
    order = pd.MultiIndex.from_frame(columns) if len(keys) > 1 else pd.Index(columns.column)
    wide = cells.pivot(index="row", columns=keys, values="value").reindex(index=rows, columns=order)
    return wide.apply(_numbers).rename_axis(index=None)


def paper_value(system: str, collection: str) -> float | None:
    """Return MIRB's nDCG@10 in percent (0 to 100) of a system on a collection, or None where it printed none.

    *system* is a name of the registry ("bm25-mirb", "nv-embed-v2>bge-reranker-v2-m3") or the printed one ("BM25");
    *collection* is the name that MIRB prints, which cards and the registry give as `paper`, or "Avg.".
    Our `bm25` has other settings than the printed "BM25", so case counts. Sources: MIRB's Tables 9 and 10.

    >>> paper_value("bm25-mirb", "Stacks"), paper_value("BM25", "Avg."), paper_value("bm25", "Stacks")
    (35.49, 32.23, None)
    """
    return _values().get((system, collection))


@dataclass(frozen=True)
class PaperLookup:
    """The paper's number of a system on one of our collections; *notes* says which have a name that is not printed."""

    papers: Mapping[str, str]

    def __call__(self, system: str, collection: str) -> float | None:
        """Return the number in percent, or None where the paper has none."""
        return paper_value(system, self.papers.get(collection, collection))

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
    """Return the function of system and collection that `main_table` asks for the paper's number.

    *papers* maps our collections to the names that MIRB prints (a card's `paper`); "" means none, and a name that
    is not among them stands for itself, as that of a group does. A name that is not printed is noted in the table.

    >>> paper_lookup({"stacks-qa": "Stacks"})("bm25-mirb", "stacks-qa")
    35.49
    """
    return PaperLookup(papers)


def paper_instruction(collection: str) -> str:
    """Return the query instruction that MIRB's Table 8 prints for a collection (printed name).

    Raises MirblabError when the table has none for it.

    >>> paper_instruction("Stacks")
    'Given a math theorem, retrieve its proof.'
    """
    instructions = paper_cells("mirb", 8).query("collection != ''").set_index("collection").value
    if collection not in instructions.index:
        raise unknown("instruction for collection", collection, instructions.index)
    return str(instructions[collection])


@lru_cache
def _cells() -> pd.DataFrame:
    """Return `registry/published.csv`, one row per printed cell, every column as text."""
    with resources.files("mirblab").joinpath("registry", "published.csv").open(encoding="utf-8") as file:
        return pd.read_csv(file, dtype=str, keep_default_na=False)


def _numbers(column: pd.Series) -> pd.Series:
    """Return a column of printed cells as numbers when all of them are, else as text; "-" becomes missing."""
    present = column.where(column != "-")
    numbers = pd.to_numeric(present, errors="coerce")
    return numbers if numbers.notna().equals(present.notna()) else present


@lru_cache
def _values() -> dict[tuple[str, str], float]:
    """Return the stored results by (system, collection), under the printed and the registry's name of the system."""
    values: dict[tuple[str, str], float] = {}
    for paper, table in _RESULT_TABLES:
        for cell in paper_cells(paper, table).itertuples():
            values.setdefault((cell.system, cell.collection), float(cell.value))
            if not cell.variant:
                values.setdefault((cell.row, cell.collection), float(cell.value))
    return values
