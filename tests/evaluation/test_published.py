"""The papers' numbers are stored to the last digit and can be looked up."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from readers import READERS, Reader

from mirblab.core import registry
from mirblab.core.errors import MirblabError
from mirblab.data.collection import Collection, load_folder
from mirblab.display import result_tables
from mirblab.evaluation import published
from mirblab.sources import catalogue, ntcir

COLLECTIONS = [
    "Informalized Mathlib4 Retrieval", "MSE Dup. Question Retrieval", "MO Dup. Question Retrieval", "ARQMath-Task-1",
    "ProofWiki", "Stacks", "NaturalProofs", "LeanDojo", "MAPL", "HolStep", "NTCIR-WFB", "ARQMath-Task-2",
]  # fmt: skip


def recomputed_averages(table: int) -> pd.DataFrame:
    """Return printed and recomputed averages, one row per system (and reranker)."""
    found = published.paper_cells("mirb", table)
    numbers = (
        found.assign(value=found.value.astype(float)).groupby([found.collection == "Avg.", "system"], sort=False).value
    )
    means = numbers.mean().unstack(0)
    return means.set_axis(["recomputed", "printed"], axis=1).rename_axis("system").reset_index()


@pytest.mark.parametrize(("table", "n_averages"), [(9, 13), (10, 15)])
def test_every_average_recomputed_from_its_cells_agrees_to_rounding(table: int, n_averages: int) -> None:
    """Every Avg. is the unweighted mean of the 12 printed cells; half a last digit plus their rounding is allowed."""
    averages = recomputed_averages(table)
    assert len(averages) == n_averages
    assert (averages.printed - averages.recomputed).abs().max() <= 0.005 + 1e-9


def test_the_one_average_that_sits_on_the_edge() -> None:
    """text-embedding-3-large averages 49.935 exactly and is printed 49.93."""
    row = recomputed_averages(9).set_index("system").loc["text-embedding-3-large"]
    assert row.recomputed == pytest.approx(49.935, abs=1e-9)
    assert row.printed == 49.93


def test_table_9_is_as_wide_as_printed() -> None:
    """13 systems by 12 collections and the average, in the paper's order, as numbers."""
    table = published.paper_table("mirb", 9)
    assert table.columns.tolist() == [*COLLECTIONS, "Avg."]
    assert table.index[[0, -1]].tolist() == ["BM25", "voyage-3-large"]
    assert table.shape == (13, 13)
    assert all(pd.api.types.is_float_dtype(kind) for kind in table.dtypes)
    assert table.loc["voyage-3-large"].tolist() == [
        57.36, 60.33, 82.87, 52.45, 91.69, 62.62, 32.74, 13.02, 17.77, 32.68, 76.91, 74.00, 54.54,
    ]  # fmt: skip


def test_table_10_without_a_reranker_repeats_table_9() -> None:
    """The first number of each cell of Table 10 is the system's value in Table 9."""
    rerank, main = published.paper_table("mirb", 10), published.paper_table("mirb", 9)
    for system in rerank.columns.get_level_values("column").unique():
        assert rerank[(system, "no reranker")].tolist() == main.loc[system].tolist()


def test_table_1_counts_are_numbers_and_words_are_text() -> None:
    """Counts come without thousands separators; the relevancy column stays text."""
    table = published.paper_table("mirb", "1")
    assert table.index.tolist() == COLLECTIONS
    assert table.loc["MSE Dup. Question Retrieval", "#corpus"] == 1350505
    assert table["#query"].sum() == 40 + 25116 + 225 + 78 + 1099 + 776 + 2060 + 4109 + 4000 + 1411 + 39 + 76
    assert table.loc["ARQMath-Task-1", "Relevancy"] == "4-level"


def test_tables_7_and_8_hold_lengths_sizes_and_instructions() -> None:
    """Maximum lengths are numbers ("-" is missing), sizes and instructions are text."""
    models = published.paper_table("mirb", 7)
    assert models.loc["NV-Embed-v2"].tolist() == ["7.85B", 32768, 32768, "Yes"]
    assert models.loc["BM25", ["Max |Q|", "Max |D|"]].isna().all()
    instructions = published.paper_cells("mirb", 8).set_index("collection").value
    assert instructions["MO Dup. Question Retrieval"] == instructions["MSE Dup. Question Retrieval"]
    assert instructions["HolStep"].startswith("Given a HOL conjecture")


def test_values_are_found_under_registry_and_printed_names() -> None:
    """A system is found by both names and in any case; what the paper lacks is None."""
    assert published.paper_lookup({})("bm25-mirb", "HolStep") == published.paper_lookup({})("BM25", "HolStep") == 25.88
    assert published.paper_lookup({})("voyage-3-large>jina-reranker-v2-base-multilingual", "ARQMath-Task-1") == 53.03
    assert published.paper_lookup({})("bm25", "mini-stacks") is None


def test_every_number_keeps_the_printed_decimals() -> None:
    """Results have two decimals, trailing zeros included, and no cell is empty."""
    results = published.paper_cells("mirb", 9).value.tolist() + published.paper_cells("mirb", 10).value.tolist()
    assert all(re.fullmatch(r"\d+\.\d\d", number) for number in results)
    assert "55.00" in results
    assert (published.paper_cells().value != "").all()


def test_an_unknown_paper_or_table_is_named() -> None:
    """The error lists what is stored."""
    with pytest.raises(MirblabError, match="no paper 'merb'; .*did you mean 'mirb'"):
        published.paper_table("merb", 9)
    with pytest.raises(MirblabError, match="no table '99'"):
        published.paper_table("mirb", 99)


def test_zhongs_tables_are_stored_as_printed() -> None:
    """Tables 1 to 4 by row and column; equal headings are told apart by their group; "-" is missing."""
    one, two, three, four = (published.paper_table("zhong", number) for number in (1, 2, 3, 4))
    assert [table.shape for table in (one, two, three, four)] == [(12, 8), (10, 2), (11, 4), (6, 4)]
    assert one.loc["ColBERT (Zhong et al.)"].tolist() == [0.545, 0.483, 25.1, 0.329, 0.128, 0.213, 0.136, 69.5]
    assert one["ARQMath-2"].loc["MathBERT (ensemble)"].isna().all()
    assert two.loc["Approach0 + DPR"].tolist() == [0.62, 0.70]
    assert three.loc["Approach0"].tolist() == [0.381, 0.189, 0.234, 0.180]
    assert four.loc["CombSUM"].tolist() == [0.411, 0.213, 0.296, 0.216]


MELD_SHAPES = {1: (9, 2), 2: (8, 5), 3: (8, 3), 4: (8, 3), 5: (9, 2)} | dict.fromkeys(range(6, 12), (9, 4))


def printed_tables(text: str) -> dict[int, tuple[list[str], list[list[str]]]]:
    """Return header and rows of every table of a paper's text, by number."""
    found = re.finditer(r"^Table (\d+): .*\n\n((?:\|.*\n)+)", text, re.MULTILINE)
    split = {int(m[1]): [[cell.strip() for cell in line[1:-1].split("|")] for line in m[2].splitlines()] for m in found}
    return {number: (lines[0], lines[2:]) for number, lines in split.items()}


def test_melds_tables_are_stored_as_printed() -> None:
    """Tables 1 to 11 by shape, count and a few cells; numbers keep their decimals, percent signs go."""
    assert {number: published.paper_table("meld", number).shape for number in MELD_SHAPES} == MELD_SHAPES
    assert len(published.paper_cells("meld")) == sum(rows * columns for rows, columns in MELD_SHAPES.values())
    two, five, eleven = (published.paper_table("meld", number) for number in (2, 5, 11))
    assert two.columns.tolist() == ["Recall@1", "Recall@3", "Recall@5", "Recall@10", "Recall@20"]
    assert two.loc["MathLeap-Octen-8B (ours)"].tolist() == [28.9, 55.0, 63.7, 77.2, 89.8]
    assert five.loc["F2LLM-v2-14B"].tolist() == [0.37, 10.17]
    assert eleven.loc["KaLM-Gemma3-12B"].tolist() == [67.16, 87.33, 90.83, 76.03]
    assert all(
        pd.api.types.is_float_dtype(kind)
        for number in range(2, 12)
        for kind in published.paper_table("meld", number).dtypes
    )
    directed = published.paper_cells("meld").query("table in ['6', '7', '8', '9', '10', '11']")
    assert directed.value.str.fullmatch(r"\d+\.\d\d").all()
    assert directed.collection.nunique() == 6


def test_every_cell_of_meld_equals_the_papers_text(shared_file: Callable[[str], Path]) -> None:
    """Rows, columns, order and digits, by machine."""
    printed = printed_tables(shared_file("papers/003_*.txt").read_text("utf-8"))
    assert set(printed) == set(MELD_SHAPES)
    for number, (head, rows) in printed.items():
        cells = published.paper_cells("meld", number)
        if number == 1:
            assert cells.value.tolist() == [cell for row in rows for cell in row]
            assert cells.column.drop_duplicates().tolist() == head
            continue
        assert [head[1:]] * len(rows) == [part.column.tolist() for _, part in cells.groupby("row", sort=False)]
        assert cells.row.drop_duplicates().tolist() == [row[0] for row in rows]
        assert cells.value.tolist() == [cell.removesuffix("%") for row in rows for cell in row[1:]]


def test_melds_systems_are_those_of_the_registry() -> None:
    """The paper spells a model in up to three ways; each is one entry, whose label is one of them."""
    cells = published.paper_cells("meld").query("table != '1'")
    encoders = registry.read_registry("encoders")
    assert set(cells.system) <= set(encoders)
    assert cells.system.nunique() == 10
    spellings = cells.groupby("system").row.unique()
    assert sorted(spellings["kalm-embedding-gemma3-12b-2511"]) == [
        "KaLM-Embedding-Gemma3-12B", "KaLM-Embedding-Gemma3-12B-2511", "KaLM-Gemma3-12B",
    ]  # fmt: skip
    for system, rows in spellings.items():
        assert encoders[system]["label"].lower() in {row.removesuffix(" (ours)").lower() for row in rows}


def test_melds_recalls_are_shares_of_their_queries() -> None:
    """Table 2 counts 540 statements; Table 3 fits 4378 queries and not the 3729 pairs that the text names."""

    def fits(table: int, n: int, digits: int) -> bool:
        possible = {f"{100 * count / n:.{digits}f}" for count in range(n + 1)}
        return set(published.paper_cells("meld", table).value) <= possible

    assert fits(2, 540, 1) and fits(3, 4378, 2)
    assert not fits(3, 3729, 2)
    assert "4378" in published.paper_cells("meld", 3).source[0]


def test_the_registry_names_the_columns_of_table_9_and_no_others():
    """It is the one list of printed names: cards are filled from it, and misspelt ones are told by it."""
    entries = registry.read_registry("collections").values()
    printed = {entry.get("paper") or entry.get("group") for entry in entries if entry["builder"] == "mirb"}
    assert printed == set(COLLECTIONS)
    assert set(COLLECTIONS) == set(published.paper_cells("mirb", 9).collection) - {"Avg."}
    assert set(registry.printed_names()) <= set(published.paper_cells().collection)


# What rebuilds a column of Table 9: which small input of the fault tests, in a folder of which name.
REBUILT = {
    "Informalized Mathlib4 Retrieval": ("mathlib-informal: data.jsonl", "in"),
    "MSE Dup. Question Retrieval": ("stackexchange: Posts.xml", "math.stackexchange.com"),
    "MO Dup. Question Retrieval": ("stackexchange: Posts.xml", "mathoverflow.net"),
    "ARQMath-Task-1": ("arqmath: Collection/Posts.V1.3.xml", "in"),
    "ARQMath-Task-2": ("arqmath: Collection/Posts.V1.3.xml", "in"),
    "ProofWiki": ("naturalproofs", "in"),
    "Stacks": ("naturalproofs", "in"),
    "NaturalProofs": ("naturalproofs", "in"),
    "LeanDojo": ("leandojo: corpus.jsonl", "in"),
    "MAPL": ("mapl: json lines", "in"),
    "HolStep": ("holstep: test/0001", "in"),
    "NTCIR-WFB": ("ntcir: qrels.txt", "in"),  # with the levels that MIRB has
}


def rebuilt(name: str, root: Path) -> list[Collection]:
    """Return the collections that a builder makes of a small input, which lies in the folder *root*."""
    reader: Reader = next(one for one in READERS if one.name.startswith(name))
    path = reader.prepare(root)
    for stem in ("proofwiki", "trench", "stein") if name == "naturalproofs" else ():
        path.with_name(f"naturalproofs_{stem}.json").write_bytes(path.read_bytes())
    made = ntcir.build(root, root.parent / "out", levels=3) if name.startswith("ntcir") else reader.call(root)
    return [load_folder(folder) for folder in made]


def main_table(held: list[Collection]) -> result_tables.Table:
    """Return the table of notebook 11 for one system, which finds everything."""
    values = pd.DataFrame([("bm25-mirb", one.name, "nDCG@10", query, 1.0) for one in held for query in one.query_ids],
                          columns=["system", "collection", "measure", "query_id", "value"])  # fmt: skip
    return result_tables.main_table(
        values, "nDCG@10", tasks={one.name: one.card.task for one in held}, groups=catalogue.collection_groups(held),
        published=published.paper_lookup({one.name: one.card.paper for one in held}),
    )  # fmt: skip


@pytest.mark.parametrize("column", COLLECTIONS)
def test_a_collection_that_a_builder_rebuilds_shows_its_distance_to_the_papers_column(column: str, tmp_path: Path):
    """From the raw material to the number: builder, card, table, distance, for every column of Table 9."""
    name, place = REBUILT[column]
    held = rebuilt(name, tmp_path / place)
    own = [one for one in held if column in (one.card.paper, one.card.group)]
    assert len(own) == (4 if column == "NaturalProofs" else 1)
    shown = main_table(own)
    number = published.paper_lookup({})("BM25", column)
    assert shown.extra["paper"].iloc[0].dropna().tolist() == [number]
    assert shown.extra["distance"].iloc[0].dropna().tolist() == [pytest.approx(100 - number)]
    assert f"{100 - number:+.2f} off" in shown.to_markdown().replace("−", "-")


def test_a_rebuilt_group_that_lacks_a_part_shows_no_distance_and_says_what_is_missing(tmp_path: Path):
    """A mean over three of NaturalProofs' four parts is not the paper's column."""
    parts = [one for one in rebuilt("naturalproofs", tmp_path / "in") if one.card.group]
    shown = main_table(parts[:3])
    told = f"NaturalProofs is not complete: {parts[3].card.follows} is missing"
    assert not shown.extra and told in shown.to_markdown()


def test_a_printed_name_that_no_paper_has_is_said_when_added_and_in_the_table(make_folder):
    """Also for a card that an older version wrote: its distance is not left out without a word."""
    target, notes = catalogue.add(make_folder(name="old-dup"), paper="MSE Dup.")
    wrong = "which is no published collection; did you mean 'MSE Dup. Question Retrieval'?"
    assert [note for note in notes if wrong in note]
    assert wrong in main_table([load_folder(target)]).to_markdown()
    assert catalogue.add(make_folder(name="new-dup"), paper="MSE Dup. Question Retrieval")[1] == []


def test_figures_of_newer_sets_are_stored_with_their_source() -> None:
    """Single figures, each named by paper and measure; a missing one is "-"."""
    bright = published.paper_table("bright", "pyserini")
    assert bright.loc["BM25 with query-side weighting"].tolist() == [0.0492, 0.148]
    search = published.paper_table("theoremsearch", "results")
    assert search.loc["Qwen3-Embedding-8B"].tolist() == [45.0, 56.8] and search.loc["Google"].isna().tolist() == [
        True,
        False,
    ]
    groups = published.paper_table("leansearch-v2", "abstract-2")
    assert groups["Recall@10 (group)"].tolist() == [46.1, 38.0, 9.3]
