"""What a query is like, and how that goes with what systems reach."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from mirblab.analysis.features import assign_strata, associations, language, query_features
from mirblab.core.errors import MirblabError
from mirblab.data.collection import load_folder
from mirblab.sources import catalogue


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("α : Type*\ninst✝ : Group α\n⊢ a = b", "Lean"),
        (r"proof (prove) goal (1 subgoal): 1. \<forall>x. P x", "Isabelle"),
        ("|- !x y. x + y = y + x", "HOL"),
        (r"|- 10 EXP 24 divides FACT 100", "HOL"),
        ("|- &0 <= x", "HOL"),
        ("|- 2 = ( 1 + 1 )", "Metamath"),
        ("|- { x | x e. A } = A", "Metamath"),
        ("!n a. 1 <= n ==> P n a", "HOL"),
        ("( ph -> ps ) & ph => |- ps", "Metamath"),
        ("Is $f$ continuous?", "LaTeX"),
        (r"\int_0^1 x", "bare LaTeX"),
        ("Is the sum of two even numbers even?", "prose"),
    ],
)
def test_languages_are_told_by_their_signs(text: str, name: str):
    """One example of each."""
    assert language(text) == name


@pytest.mark.parametrize(
    ("collection", "name"),
    [("mini-lean", "Lean"), ("mini-isabelle", "Isabelle"), ("mini-hol", "HOL"), ("mini-qa", "LaTeX")],
)
def test_the_bundled_collections_are_what_they_are(collection: str, name: str):
    """Nine in ten queries at least."""
    found = query_features(catalogue.load(collection)).language
    assert (found == name).mean() > 0.9


def test_a_formal_collection_has_one_language(make_folder):
    """Some statements of Metamath have signs of HOL alone, and one of Rocq has none: most texts decide."""
    texts = [f"|- ( A. x x = y{i} -> x e. B ) => |- ph" for i in range(30)] + ["|- A = B", "|- &1 e. NN"]
    queries = [{"_id": f"q{i}", "text": text} for i, text in enumerate(texts)]
    judged = "".join(f"q{i}\td\t1\n" for i in range(len(texts)))
    found = query_features(load_folder(make_folder([{"_id": "d", "text": "|- ( ph -> ph )"}], queries, judged)))
    assert found.language.tolist() == ["Metamath"] * 32


def test_features_by_hand(make_folder):
    """Words, formulas, their share, and the overlap with the best judged document."""
    corpus = [{"_id": "d1", "text": "Every compact space is closed."}, {"_id": "d2", "text": "nothing"}]
    queries = [{"_id": "q1", "text": "Is a compact $x$ closed?", "tags": ["topology", "maps"]}]
    c = load_folder(make_folder(corpus, queries, "q1\td1\t2\nq1\td2\t1\n"))
    row = query_features(c).iloc[0]
    assert (row.words, row.formulas, row.relevant, row.field, row.language) == (5, 1, 2, "topology", "LaTeX")
    assert row.formula_share == pytest.approx(3 / 24) and row.overlap == 1.0


def a_table(n: int = 40) -> tuple[pd.DataFrame, pd.DataFrame]:
    rng = np.random.default_rng(0)
    ids = [f"q{i}" for i in range(n)]
    features = pd.DataFrame({"collection": "c", "query_id": ids, "words": rng.integers(1, 30, n), "formulas": 0,
                             "formula_share": 0.0, "relevant": 1, "overlap": rng.random(n)})  # fmt: skip
    features = features.assign(language=["Lean", "prose"] * (n // 2), field="")
    values = pd.DataFrame({"system": "s", "collection": "c", "measure": "RR", "query_id": ids,
                           "value": features.words / 30 + 0.1 * rng.random(n)})  # fmt: skip
    return values, features


def test_rho_is_scipy_s():
    """With an interval around it; features that never vary are left out."""
    values, features = a_table()
    found = associations(values, features).set_index("feature")
    assert set(found.index) == {"words", "overlap"}
    assert found.rho["words"] == pytest.approx(stats.spearmanr(features.words, values.value).statistic)
    assert found.low["words"] <= found.rho["words"] <= found.high["words"] and found.low["words"] > 0.8
    assert found.low["overlap"] < 0 < found.high["overlap"]
    longer = associations(values, features.assign(answer_words=features.words)).set_index("feature")
    assert longer.rho["answer_words"] == longer.rho["words"] == found.rho["words"]


def test_strata_cover_every_query_once_and_stand_in_order():
    """Thirds of a number, or each value of a name."""
    values, features = a_table()
    thirds = assign_strata(values, features, "words", 3)
    assert len(thirds) == len(values) and thirds.collection.nunique() == 3
    lows = [int(name.split()[1]) for name in thirds.collection.unique()]
    assert lows == sorted(lows)
    assert assign_strata(values, features, "language").collection.unique().tolist() == ["Lean", "prose"]


def test_wrong_features_and_several_measures_are_refused():
    """With a suggestion, or what was found."""
    values, features = a_table()
    with pytest.raises(MirblabError, match="did you mean 'words'"):
        assign_strata(values, features, "word")
    with pytest.raises(MirblabError, match="one measure at a time, found RR, AP"):
        associations(pd.concat([values, values.assign(measure="AP")]), features)


def test_a_correlation_is_not_that_of_one_query():
    """Of 205 queries 204 have the same number of relevant documents: nothing can be said."""
    rng, ids = np.random.default_rng(0), [f"q{at}" for at in range(205)]
    values = pd.DataFrame(
        {"system": "s", "measure": "RR", "query_id": ids, "value": rng.random(205), "collection": "c"}
    )
    features = pd.DataFrame({"collection": "c", "query_id": ids, "words": rng.random(205)})
    features = features.assign(formulas=0, formula_share=0, relevant=[0, *[2] * 204], overlap=[0.5] * 200 + [0.1] * 5)
    assert associations(values, features).feature.tolist() == ["words", "overlap"]


def test_strata_of_long_texts_have_names_of_whole_words() -> None:
    """Not 1.23e+03, which two strata would share."""
    features = pd.DataFrame({"collection": "c", "query_id": list("abcd"), "words": [1231, 1232, 1233, 1234]})
    values = pd.DataFrame({"system": "s", "collection": "c", "measure": "RR", "query_id": list("abcd"), "value": 0.5})
    names = assign_strata(values, features, "words", 2).collection.unique().tolist()
    assert names == ["words 1,231 to 1,232", "words 1,233 to 1,234"]
    with pytest.raises(MirblabError, match="n must be at least 1, found 0"):
        assign_strata(values, features, "words", 0)


def test_every_number_is_cut_into_strata() -> None:
    """Also those that are no feature of the query alone."""
    features = pd.DataFrame({"collection": "c", "query_id": list("abcd"), "answer_words": [3.0, 4.0, 8.0, 9.0]})
    values = pd.DataFrame({"system": "s", "collection": "c", "measure": "RR", "query_id": list("abcd"), "value": 0.5})
    names = assign_strata(values, features, "answer_words", 2).collection.unique().tolist()
    assert names == ["answer_words 3 to 4", "answer_words 8 to 9"]


def test_features_of_another_collection_are_refused() -> None:
    """Both are named."""
    values, features = a_table()
    for name in ("words", "language"):
        with pytest.raises(MirblabError, match=f"no query of the values has '{name}'.*features of other"):
            assign_strata(values, features.assign(collection="other"), name)


def test_a_feature_of_one_value_is_one_stratum() -> None:
    """Such as the number of formulas of prose."""
    queries = pd.DataFrame({"collection": "c", "query_id": ["a", "b"]})
    values = queries.assign(system="s", measure="RR", value=[1.0, 0.0])
    found = assign_strata(values, queries.assign(formulas=0), "formulas")
    assert found.collection.tolist() == ["formulas 0 to 0"] * 2
