"""Rewritten documents, and what systems make of them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from mirblab.analysis.invariance.outcomes import compare_twins, correlate_with_values, summarise_twins, twin_values
from mirblab.analysis.invariance.twins import Twins, query_name, rewrite_documents, twin_name
from mirblab.core.errors import MirblabError
from mirblab.data import beir
from mirblab.data.collection import Collection, load_folder
from mirblab.evaluation.measures import evaluate
from mirblab.formula.rewriting.rules import CHANGES, KEEPS, RULES, rewrite_text
from mirblab.retrieval.systems import system
from mirblab.sources.catalogue import load


@pytest.fixture(scope="module")
def pairs() -> Twins:
    return rewrite_documents(load("mini-pairs"), 12)


def made(folder, texts: list[str], **card: object) -> Collection:
    corpus = [{"_id": f"d{number}", "text": text} for number, text in enumerate(texts)]
    beir.write_collection(
        folder, corpus, [{"_id": "q", "text": "one"}], {"test": [("q", "d0", 1)]}, {"name": "c", **card}
    )
    return load_folder(folder)


def test_each_document_has_one_twin_of_either_kind(pairs: Twins) -> None:
    """Made by the rule that the table names, from the text of the document; no document twice."""
    texts = load("mini-pairs")
    for row in pairs.table.itertuples():
        assert row.text == texts.document(str(row.doc_id))
        assert (RULES[str(row.kept_rule)].effect, RULES[str(row.changed_rule)].effect) == (KEEPS, CHANGES)
        assert row.kept == rewrite_text(str(row.text), str(row.kept_rule))
        assert row.changed == rewrite_text(str(row.text), str(row.changed_rule))
    assert len({row.text for row in pairs.table.itertuples()}) == 12 == pairs.table.doc_id.nunique()


def test_equal_seeds_give_equal_twins_and_rules_are_spread(pairs: Twins) -> None:
    """Twelve documents meet more rules than those that apply most often."""
    pd.testing.assert_frame_equal(pairs.table, rewrite_documents(load("mini-pairs"), 12).table)
    assert set(rewrite_documents(load("mini-pairs"), 12, seed=1).table.doc_id) != set(pairs.table.doc_id)
    assert pairs.table.changed_rule.value_counts().max() <= 2


def test_the_collections_hold_what_is_compared(pairs: Twins) -> None:
    """The whole corpus for ranks; for a duel a query's own two twins and no other document."""
    corpus = load("mini-pairs")
    assert pairs.ranks.texts == corpus.texts and len(pairs.ranks.query_ids) == 36
    first = pairs.table.iloc[0]
    assert pairs.ranks.query(query_name(first.doc_id, "kept")) == first.kept
    assert pairs.duels.document(twin_name(first.doc_id, "changed")) == first.changed
    allowed = pairs.duels.candidates.allowed(np.arange(12))
    assert allowed is not None and allowed.sum(axis=1).tolist() == [2] * 12


def test_no_order_of_names_prefers_a_twin() -> None:
    """Where a system breaks ties by name, about half of the kept twins come first."""
    first = [twin_name(f"d{number}", "kept") < twin_name(f"d{number}", "changed") for number in range(400)]
    assert 160 < sum(first) < 240


def test_ranks_are_those_of_the_evaluation(pairs: Twins) -> None:
    """The reciprocal rank of `evaluate`, for every version of every document."""
    outcomes = compare_twins(["ngram"], pairs)
    run = system("ngram").search(pairs.ranks)
    values = evaluate(run, pairs.ranks, ["RR"]).astype({"query_id": "str"}).set_index("query_id").value
    for version in ("unchanged", "kept", "changed"):
        wanted = values[[query_name(name, version) for name in outcomes.doc_id]].to_numpy()
        np.testing.assert_allclose((1 / outcomes[f"rank_{version}"]).fillna(0), wanted)


def test_a_bag_of_words_does_not_see_the_order_but_a_sign(tmp_path) -> None:
    """BM25 scores a commuted sum as the original itself and a difference lower; exchanged operands of `-` tie."""
    texts = ["If $a+b=c$ then so it is.", "For numbers $x+y=z$ and nothing else.", "Where $p+q=r$ holds, we stop."]
    collection = made(tmp_path, texts)
    outcomes = compare_twins(["bm25"], rewrite_documents(collection, rules=["sum-commuted", "plus-minus"]))
    assert outcomes.duel.tolist() == [1, 1, 1] and outcomes.rank_kept.tolist() == [1, 1, 1]
    assert outcomes.kept_signs.tolist() == [4] * 3 and outcomes.changed_signs.tolist() == [1] * 3
    outcomes = compare_twins(["bm25"], rewrite_documents(collection, rules=["letters", "plus-minus"]))
    assert outcomes.duel.tolist() == [-1, -1, -1]
    blind = made(tmp_path / "blind", ["If $a+b=c^{k}$ then so it is."])
    outcomes = compare_twins(["bm25"], rewrite_documents(blind, rules=["sum-commuted", "power-exchanged"]))
    assert outcomes.duel.tolist() == [0]


def test_a_system_that_returns_other_documents_is_read_by_its_own_twins(pairs: Twins) -> None:
    """As the published BM25 does, which ranks what is no candidate with a score of 0."""
    outcomes = compare_twins(["bm25-mirb", "bm25"], pairs)
    assert outcomes.system.tolist() == ["bm25-mirb"] * 12 + ["bm25"] * 12
    assert outcomes[outcomes.system == "bm25-mirb"].duel.abs().sum() >= 6


def test_bare_formulas_are_rewritten_without_delimiters() -> None:
    """In a collection of formulas every text is one."""
    table = rewrite_documents(load("mini-wfb"), 30, ["letters", "sum-commuted", "converse", "plus-minus"]).table
    assert len(table) >= 10
    assert not table.kept.str.contains("$", regex=False).any()


def test_the_summary_counts_each_document_once() -> None:
    """Shares by rule and of all rules, by hand; the intervals hold them."""
    outcomes = pd.DataFrame(
        {
            "system": "s", "doc_id": list("abcd"), "kept_rule": ["words", "words", "letters", "letters"],
            "changed_rule": ["negated"] * 3 + ["converse"], "rank_unchanged": [1.0, 1.0, 1.0, 2.0],
            "rank_kept": [1.0, 2.0, 4.0, np.nan], "rank_changed": [1.0, 1.0, 1.0, 2.0], "duel": [1, -1, 0, -1],
        }
    )  # fmt: skip
    card = summarise_twins(outcomes).set_index(["effect", "rule"])
    kept, words = card.loc[("keeps", "all rules")], card.loc[("keeps", "words")]
    assert (kept.documents, words.documents, card.loc[("changes", "converse")].documents) == (4, 2, 1)
    assert (kept["first"], kept.RR, words.RR) == (0.25, (1 + 0.5 + 0.25) / 4, 0.75)
    assert (kept["kept above"], kept.tie, kept["changed above"], kept.duel) == (0.25, 0.25, 0.5, -0.25)
    assert (kept["RR change"], words["RR change"]) == (kept.RR - 0.875, words.RR - 1)
    assert (card.loc[("changes", "negated")]["changed above"], card.loc[("changes", "converse")].RR) == (1 / 3, 0.5)
    assert (card["RR low"] <= card.RR).all() and (card.RR <= card["RR high"]).all()
    values = twin_values(outcomes)
    assert values[(values.collection == "unchanged") & (values.measure == "RR")].value.tolist() == [1, 1, 1, 0.5]


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({"rules": ["words", "letters"]}, "of one kind.*changes it"),
        ({"rules": ["wods", "negated"]}, "no rule 'wods'.*did you mean 'words'"),
        ({"rules": []}, "no rule.*leave `rules` out for all"),
        ({"n_documents": 0}, "n_documents"),
        ({"longest": 5}, "no document of mini-pairs with at most 5 characters"),
    ],
)
def test_wrong_choices_are_named(choice: dict, message: str) -> None:
    """With what to do."""
    with pytest.raises(MirblabError, match=message):
        rewrite_documents(load("mini-pairs"), **choice)


def test_a_proof_assistants_language_is_not_rewritten(tmp_path) -> None:
    """Rules for LaTeX and English do not read it."""
    lean = ["/-- If $a+b=c$, then so it is. -/ theorem a : 1 + 1 = 2", "theorem b (n : ℕ) : n + 0 = n := rfl"]
    assert len(rewrite_documents(made(tmp_path / "prose", lean[:1] + ["Another text."]), 2).table) == 1
    with pytest.raises(MirblabError, match="statements or formulas in LaTeX"):
        rewrite_documents(made(tmp_path, lean, language="Lean"))


def test_no_system_is_refused(pairs: Twins) -> None:
    """A card without a system has no rows."""
    with pytest.raises(MirblabError, match="no system"):
        compare_twins([], pairs)


def test_duels_are_correlated_with_effectiveness_over_systems() -> None:
    """Spearman's coefficient as SciPy has it; systems without values are left out, and two are too few."""
    from scipy.stats import spearmanr

    random = np.random.default_rng(0)
    names = [f"s{number}" for number in range(7)]
    outcomes = pd.DataFrame({"system": names, "duel": random.normal(size=7)})
    rows = [(name, "c", "RR", "q", value) for name, value in zip(names[:6], random.random(6), strict=True)]
    values = pd.DataFrame(rows, columns=["system", "collection", "measure", "query_id", "value"])
    row = correlate_with_values(outcomes, values, "RR").iloc[0]
    assert row.systems == 6 and row.rho == pytest.approx(spearmanr(outcomes.duel[:6], values.value).statistic)
    assert row.low <= row.rho <= row.high
    with pytest.raises(MirblabError, match="2 systems have both.*needs three"):
        correlate_with_values(outcomes.head(2), values, "RR")
    with pytest.raises(MirblabError, match="no values of AP; found RR"):
        correlate_with_values(outcomes, values, "AP")
