"""Pairs of statements that say the same become points with a class."""

from __future__ import annotations

import pytest

from mirblab.analysis.partners import equivalence_statements
from mirblab.core.errors import MirblabError
from mirblab.sources import catalogue


def test_pairs_across_fields_have_two_members_and_their_fields():
    """A pair that is judged both ways counts once."""
    points = equivalence_statements(catalogue.load("mini-pairs"), n_pairs=10, seed=1)
    pairs = points[points.kind == "equivalent"]
    assert pairs.groupby("class_id").size().tolist() == [2] * 10
    assert pairs.id.is_unique and pairs.field.tolist() == ["query", "document"] * 10


def test_two_fields_that_are_paired_become_the_colours(make_folder):
    """As in a subset of MELD: each statement is a query and a document, tagged with its field."""
    rows = [
        {"_id": f"{side}{n}", "text": f"{side} {n}", "tags": [side]} for side in ("module", "space") for n in (1, 2)
    ]
    qrels = "".join(f"{a}{n}\t{b}{n}\t1\n" for n in (1, 2) for a, b in (("module", "space"), ("space", "module")))
    points = equivalence_statements(catalogue.load(make_folder(rows, rows, qrels)))
    assert points.field.tolist() == ["module", "space", "module", "space"]


def test_distractors_have_no_class(make_folder):
    """Without tags the field is the side."""
    points = equivalence_statements(catalogue.load(make_folder()), n_pairs=5, n_distractors=5)
    assert points[points.kind == "distractor"].class_id.unique().tolist() == [""]
    assert points[points.kind == "judged relevant"].field.tolist() == ["query", "document"] * 2
    assert points.id.tolist() == ["query:q1", "document:d1", "query:q2", "document:d2", "document:d3"]
    judged = make_folder(qrels="q1\td1\t1\nq1\td2\t1\n", name="judged")
    assert equivalence_statements(catalogue.load(judged), n_distractors=5).id.tolist()[2:] == ["document:d3"]


def test_the_best_judged_document_is_the_partner(make_folder):
    """Relevance 2 before 1; equal relevance by id."""
    points = equivalence_statements(catalogue.load(make_folder(qrels="q1\td1\t1\nq1\td3\t2\nq1\td2\t2\n")))
    assert points.id.tolist() == ["query:q1", "document:d2"]


def test_a_collection_without_relevant_documents_is_an_error(make_folder):
    """There is no pair to show."""
    with pytest.raises(MirblabError, match="no pair to show"):
        equivalence_statements(catalogue.load(make_folder(qrels="q1\td1\t0\n")))


def test_fields_narrow_the_map_and_distractors_are_new_points():
    """One pair of MELD's fields: every pair of it, and only statements without a partner beside them."""
    c = catalogue.load("mini-pairs")
    fields = ["vector spaces", "module theory"]
    points = equivalence_statements(c, n_pairs=60, n_distractors=8, fields=fields)
    assert set(points.field) == set(fields) and points.id.is_unique
    assert (points.kind == "equivalent").sum() == 32 and (points.kind == "distractor").sum() == 4
    with pytest.raises(MirblabError, match="did you mean 'module theory'"):
        equivalence_statements(c, fields=["modul theory"])


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("mini-pairs", "equivalent"), ("mini-bridges", "equivalent"), ("mini-views-type-informal", "equivalent"),
        ("mini-premises", "judged relevant"), ("mini-mse-dup", "judged relevant"),
        ("mini-blueprint", "judged relevant"), ("mini-qa", "judged relevant"),
    ],
)  # fmt: skip
def test_pairs_are_equivalent_where_the_card_says_so_only(name: str, kind: str):
    """A theorem and the lemma that its proof uses do not say the same."""
    points = equivalence_statements(catalogue.load(name), n_pairs=3, n_distractors=2)
    assert set(points.kind) <= {kind, "distractor"} and kind in set(points.kind)


@pytest.mark.parametrize(("settings", "message"), [
    ({"n_pairs": -1}, "n_pairs must be at least 1, found -1"),
    ({"n_distractors": -1}, "n_distractors must be at least 0, found -1"),
    ({"seed": -1}, "seed must be at least 0, found -1"),
])  # fmt: skip
def test_numbers_below_the_least_are_refused(settings: dict[str, int], message: str):
    """And do not take all but the last pair or distractor."""
    with pytest.raises(MirblabError, match=message):
        equivalence_statements(catalogue.load("mini-pairs"), **settings)


def test_no_two_pairs_share_a_statement(make_folder):
    """Each class has two members, and the number of pairs that were left out is said."""
    texts = [{"_id": f"{side}{n}", "text": f"{side} {n}"} for side in "sd" for n in range(4)]
    both = {"_id": "d1", "text": "d 1"}  # a query that is a document, too
    queries = [*(row for row in texts if row["_id"][0] == "s"), both]
    qrels = "s0\td0\t1\ns1\td0\t1\ns2\td1\t1\nd1\td2\t1\ns3\td3\t1\n"
    collection = catalogue.load(make_folder([row for row in texts if row["_id"][0] == "d"], queries, qrels))
    for seed in range(5):
        points = equivalence_statements(collection, n_pairs=2, seed=seed)
        assert points.groupby("class_id").size().tolist() == [2, 2] and points.attrs["left_out"] == 2
    assert equivalence_statements(catalogue.load("mini-pairs")).attrs["left_out"] == 0
