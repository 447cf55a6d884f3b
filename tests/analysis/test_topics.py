"""Labels of topics: the labs' where a file has them, else ours, and which is which."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from mirblab.analysis.features import assign_strata
from mirblab.analysis.topics import TOPIC_LABELS, category, dependency, difficulty, read_labels, topic_labels
from mirblab.core.errors import MirblabError
from mirblab.data.collection import load_folder


@pytest.fixture
def collection(make_folder):
    """Return three queries of three kinds, with tags."""
    queries = [
        {"_id": "A.1", "text": "Prove that $n^2$ is even when $n$ is", "tags": ["elementary-number-theory"]},
        {"_id": "A.2", "text": "What is a manifold, and why is it called so?", "tags": ["manifolds", "calculus"]},
        {"_id": "A.3", "text": r"Evaluate $$\int_0^1 \frac{\ln x}{1+x^2}\,dx$$", "tags": ["sequences-and-series"]},
    ]
    return load_folder(make_folder(queries=queries, qrels="A.1\td1\t1\nA.2\td1\t1\nA.3\td2\t1\n"))


def test_a_topic_without_a_file_gets_derived_labels_that_say_so(collection):
    found = topic_labels(collection)
    assert found[["category", "dependency", "difficulty"]].values.tolist() == [
        ["Proof", "Both", "Low"],
        ["Concept", "Text", "High"],
        ["Calculation", "Formula", "Medium"],
    ]
    assert {name for column in TOPIC_LABELS for name in found[f"{column}_from"]} == {
        "derived: cue words", "derived: share of formulas", "derived: tags",
    }  # fmt: skip


def test_labels_of_the_lab_come_first_and_the_rest_is_derived(collection, tmp_path: Path):
    """An empty cell gives no label, and a topic that the collection lacks is passed over."""
    path = tmp_path / "labels.csv"
    path.write_text("Topic_ID,Type,Dependency,Difficulty\nA.1,Computation,,HARD\nA.9,Proof,Text,Low\n")
    found = topic_labels(collection, path).set_index("query_id")
    assert found.loc["A.1", ["category", "category_from"]].tolist() == ["Calculation", "labels.csv"]
    assert found.loc["A.1", ["dependency", "dependency_from"]].tolist() == ["Both", "derived: share of formulas"]
    assert found.loc["A.1", "difficulty"] == "High" and found.loc["A.2", "category_from"] == "derived: cue words"


def test_difficulty_by_values_is_in_thirds_and_says_so(collection):
    """A.2 is done best by both systems together."""
    values = pd.DataFrame({"system": ["s", "t"] * 3, "measure": "AP'", "value": [0.2, 0.4, 0.9, 0.5, 0.0, 0.1]})
    values = values.assign(query_id=["A.1", "A.1", "A.2", "A.2", "A.3", "A.3"])
    found = topic_labels(collection, values=values)
    assert found.difficulty.tolist() == ["Medium", "Low", "High"]
    assert found.difficulty_from.unique().tolist() == ["derived: mean AP' of the systems, in thirds"]
    single = topic_labels(collection, values=values[values.system.eq("s") | values.query_id.eq("A.1")][:4].assign(
        system="s", query_id=["A.1", "A.1", "A.2", "A.3"]))  # fmt: skip
    assert single.difficulty_from.unique().tolist() == ["derived: AP' of s, in thirds"]
    with pytest.raises(MirblabError, match="tiny: 1 query has no value, such as 'A.3'"):
        topic_labels(collection, values=values[values.query_id != "A.3"])
    with pytest.raises(MirblabError, match="one measure at a time, found AP', RR"):
        topic_labels(collection, values=pd.concat([values, values.assign(measure="RR")]))


def test_a_query_without_tags_has_no_difficulty(make_folder):
    found = topic_labels(load_folder(make_folder()))
    assert found.difficulty.isna().all() and found.difficulty_from.unique().tolist() == ["derived: no tags"]


def test_values_can_be_cut_by_label(collection):
    """The table is what `query_features.assign_strata` takes."""
    values = pd.DataFrame({"system": "s", "measure": "RR", "query_id": ["A.1", "A.2", "A.3"], "value": [0.1, 0.5, 1]})
    cut = assign_strata(values.assign(collection=collection.name), topic_labels(collection), "category")
    assert cut.collection.tolist() == ["Calculation", "Concept", "Proof"] and cut.value.tolist() == [1, 0.5, 0.1]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("How do I show that this series converges?", "Proof"),
        ("Find the limit of $x_n$", "Calculation"),
        ("What does it mean for a set to be open?", "Concept"),
        ("Groups", "Concept"),
        ("Is every proper ideal contained in a maximal ideal? Why can I still find one in $R$?", "Concept"),
        ("$prove$ $show$ compute the integral", "Calculation"),
        ("Improve my approximation", "Concept"),
    ],
)
def test_cue_words_outside_formulas_decide_the_category(text: str, expected: str):
    assert category(text) == expected


def test_the_share_of_formulas_decides_the_dependency():
    """Of ten characters 1, 2, 3 and 4 stand in a formula; the bounds are 20 % and 40 %."""
    assert [dependency(text) for text in ("aaaaaaaaaa", "$x$aaaaaaa", "$xy$aaaaaa", "")] == [
        "Text", "Both", "Formula", "Text",
    ]  # fmt: skip
    assert dependency("aaaa aaaa $x$ a") == "Both" and dependency("aaaaaaa aaaaaaaa $x$") == "Text"


def test_tags_decide_the_difficulty():
    assert difficulty(["elementary-set-theory"]) == "Low" and difficulty(["set-theory"]) == "High"
    assert difficulty([]) is None


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "Topic\tCategory\nA.1\tProof\nA.2\tProve\n",
            "line 3: 'Prove' is no category; expected Calculation, .*'Proof'",
        ),
        ("Topic\tCategory\nA.1\tProof\nA.1\tProof\n", "line 3: the topic 'A.1' is given a second time"),
        ("Topic\tCategory\n\tProof\n", "line 2: the topic is missing"),
        ("Topic\tColour\nA.1\tred\n", "line 1: expected a column topic and some of category.*found Topic, Colour"),
        ("", "line 1: expected a column topic .*found nothing"),
    ],
)
def test_a_broken_file_of_labels_is_refused_with_its_line(tmp_path: Path, text: str, says: str):
    (tmp_path / "labels.tsv").write_text(text)
    with pytest.raises(MirblabError, match=says):
        read_labels(tmp_path / "labels.tsv")


def test_labels_of_other_topics_are_refused(collection, tmp_path: Path):
    (tmp_path / "labels.tsv").write_text("Topic\tCategory\nA.301\tProof\n")
    with pytest.raises(MirblabError, match=r"labels none of the queries of tiny; it has A.301 ..."):
        topic_labels(collection, tmp_path / "labels.tsv")


def test_every_kind_occurs_among_the_real_topics(shared_file: Callable[[str], Path]):
    """No label swallows the others: each is given to at least one topic in twelve, in both years."""
    for year in (2020, 2021):
        folder = shared_file(f"data/arqmath-{year}-task1")
        found = topic_labels(load_folder(folder))
        for name in ("category", "dependency"):
            shares = found[name].value_counts(normalize=True)
            assert set(shares.index) == set(TOPIC_LABELS[name]) and shares.min() > 1 / 12, (year, shares)


def test_difficulty_by_ranks_is_low_where_they_are_low(collection):
    """Of ranks, lower is better."""
    values = pd.DataFrame({"system": "s", "measure": "Rank", "query_id": ["A.1", "A.2", "A.3"], "value": [5.0, 1, 90]})
    assert topic_labels(collection, values=values).difficulty.tolist() == ["Medium", "Low", "High"]


def test_difficulty_is_by_values_of_the_collection_itself(collection):
    """Another collection may have queries of the same ids."""
    values = pd.DataFrame({"system": "s", "measure": "AP", "query_id": ["A.1", "A.2", "A.3"], "value": [0.2, 0.9, 0.0]})
    others = values.assign(collection="other", value=[1.0, 0.0, 1.0])
    both = pd.concat([values.assign(collection=collection.name), others])
    assert topic_labels(collection, values=both).difficulty.tolist() == ["Medium", "Low", "High"]
