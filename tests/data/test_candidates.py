"""Candidates as lists and as rules say which documents each query may return."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from mirblab.core.errors import MirblabError
from mirblab.data import beir as on_disk
from mirblab.data import candidates as restrictions
from mirblab.data.collection import load_folder

BOTH = np.array([0, 1])


def allowed(folder) -> list[list[bool]]:
    return load_folder(folder).candidates.allowed(BOTH).tolist()


def lists(folder, stem, key, rows):
    text = "".join(json.dumps({"query-id": query, key: docs}) + "\n" for query, docs in rows)
    (folder / f"{stem}.jsonl").write_text(text, encoding="utf-8")
    return folder


def test_a_deny_list_excludes(make_folder):
    """A query without a row may return everything."""
    folder = lists(make_folder(), "excluded_ids", "excluded-ids", [("q1", ["d2", "d3"])])
    assert allowed(folder) == [[True, False, False], [True, True, True]]


def test_an_allow_list_admits(make_folder):
    """Only what is listed may be returned."""
    folder = lists(make_folder(), "candidates", "candidate-ids", [("q1", ["d2"]), ("q2", ["d1", "d3"])])
    assert allowed(folder) == [[False, True, False], [True, False, True]]


def test_an_allow_list_without_a_query_of_the_split_is_an_error(make_folder):
    """Silence would mean everything, or nothing."""
    folder = lists(make_folder(), "candidates", "candidate-ids", [("q1", ["d2"])])
    with pytest.raises(MirblabError, match="lists no candidates for 1 queries of the split, first 'q2'"):
        load_folder(folder)


def test_a_list_of_an_unknown_document_is_an_error(make_folder):
    """With file and line."""
    folder = lists(make_folder(), "excluded_ids", "excluded-ids", [("q1", ["d2"]), ("q2", ["d1", "d8"])])
    with pytest.raises(MirblabError, match=r"excluded_ids\.jsonl, line 2: names the document 'd8'"):
        load_folder(folder)


def test_judged_admits_what_was_judged_zeros_included(make_folder):
    """Judgements of 0 make up the pool."""
    assert allowed(make_folder(card='candidates = "judged"\n')) == [[True, False, False], [True, True, False]]


def test_judged_does_not_admit_what_has_a_negative_grade(make_folder):
    """Which is no judgement to measures either, and no level of relevance."""
    folder = make_folder(qrels="q1\td1\t1\nq1\td2\t-1\nq2\td2\t1\nq2\td1\t0\n", card='candidates = "judged"\n')
    assert allowed(folder) == [[True, False, False], [True, True, False]]
    assert load_folder(folder).statistics()["relevance"] == "binary"


def test_not_self_excludes_the_document_of_the_query(make_folder):
    """Same id on both sides."""
    corpus = [{"_id": name, "text": name} for name in ("d1", "d2", "q2")]
    folder = make_folder(corpus, qrels="q1\td1\t1\nq2\td2\t1\n", card='candidates = "not-self"\n')
    assert allowed(folder) == [[True, True, True], [True, True, False]]


def test_earlier_admits_smaller_orders(make_folder):
    """Equal order is not earlier; order may stand in metadata."""
    corpus = [{"_id": f"d{n}", "text": "x", "metadata": {"order": n}} for n in (1, 2, 3)]
    queries = [{"_id": "q1", "text": "x", "order": 1}, {"_id": "q2", "text": "y", "metadata": {"order": 3}}]
    folder = make_folder(corpus, queries, card='candidates = "earlier"\n')
    assert allowed(folder) == [[False, False, False], [True, True, False]]


def test_earlier_without_orders_is_an_error(make_folder):
    """And says how many rows lack one."""
    with pytest.raises(MirblabError, match="3 rows of corpus have no 'order'"):
        load_folder(make_folder(card='candidates = "earlier"\n'))


def test_tags_exclude_what_shares_half_of_the_query_s_tags_unless_gold(make_folder):
    """MIRB, section 3.1, by a slow reading of the formula."""
    rng = np.random.default_rng(3)
    tags = [f"t{n}" for n in range(6)]

    def some():
        return sorted(rng.choice(tags, size=rng.integers(0, 5), replace=False).tolist())

    corpus = [{"_id": f"d{n:02d}", "text": "x", "tags": some()} for n in range(40)]
    queries = [{"_id": f"q{n}", "text": "y", "tags": some() or ["t0"]} for n in range(5)]
    qrels = "".join(f"q{n}\td{n:02d}\t1\n" for n in range(5))
    found = load_folder(make_folder(corpus, queries, qrels, 'candidates = "tags"\n')).candidates.allowed(np.arange(5))
    for row, query in enumerate(queries):
        for column, document in enumerate(corpus):
            shared = len(set(query["tags"]) & set(document["tags"])) / len(set(query["tags"]))
            assert found[row, column] == (row == column or shared < 0.5)


def test_two_rules_hold_together(make_folder):
    """A deny-list cuts what the judged pool admits."""
    folder = lists(make_folder(card='candidates = "judged"\n'), "excluded_ids", "excluded-ids", [("q2", ["d1"])])
    assert allowed(folder) == [[True, False, False], [False, True, False]]


def test_a_block_is_the_rows_of_the_whole(make_folder):
    """Asking for some queries in any order gives their rows."""
    candidates = load_folder(make_folder(card='candidates = "judged"\n')).candidates
    whole = candidates.allowed(BOTH)
    assert (candidates.allowed(np.array([1])) == whole[[1]]).all()
    assert (candidates.allowed(np.array([1, 0])) == whole[[1, 0]]).all()


TAGGED = [["a"], ["a", "b"], ["b", "c", "d"], [], None]


@pytest.fixture
def ruled(make_folder):
    """Return a function that makes a collection of 60 documents and 8 queries under the rules of that name."""

    def make(names: list[str]):
        corpus = [{"_id": f"d{n:02}", "text": "x", "order": n % 9, "tags": TAGGED[n % 5]} for n in range(56)]
        corpus += [{"_id": f"q{n}", "text": "y", "order": 1, "tags": ["c"]} for n in range(4)]
        queries = [{"_id": f"q{n}", "text": "y", "order": n, "tags": TAGGED[n % 5]} for n in range(8)]
        qrels = "".join(f"q{n % 8}\td{n * 5 % 56:02}\t{n % 2}\n" for n in range(50))
        rules = [name for name in names if name not in ("excluded_ids", "candidates")]
        folder = make_folder(corpus, queries, qrels, f"candidates = {json.dumps(rules)}\n")
        for stem, key in (("excluded_ids", "excluded-ids"), ("candidates", "candidate-ids")):
            if stem in names:
                lists(folder, stem, key, [(f"q{n}", [f"d{d:02}" for d in range(55, n, -2)]) for n in range(8)])
        return load_folder(folder).candidates

    return make


NAMES = ["judged", "not-self", "earlier", "tags", "excluded_ids", "candidates"]


@pytest.mark.parametrize("names", [*([name] for name in NAMES), ["tags", "not-self"], NAMES], ids="+".join)
def test_a_rule_says_the_same_of_masks_parts_and_pairs(ruled, names, monkeypatch):
    """The whole mask, the mask of a run of documents, single pairs, and places in a block, asked in both ways."""
    candidates, queries = ruled(names), np.array([3, 0, 7, 5])
    for chosen in (candidates, candidates.select(np.array([1, 6, 2, 7, 4, 5, 0, 3]))):
        whole = chosen.allowed(queries)
        assert names == NAMES or (whole.any() and not whole.all())
        rows, columns = (places.ravel() for places in np.indices(whole.shape))
        assert (chosen.permits(queries[rows], columns) == whole[rows, columns]).all()
        for start, stop in ((0, 60), (0, 1), (13, 37), (55, 60)):
            assert (chosen.allowed(queries, slice(start, stop)) == whole[:, start:stop]).all()
            places = np.arange(0, 4 * (stop - start), 3)
            kept = places[whole[:, start:stop].ravel()[places]]
            for share in (0, 1):
                monkeypatch.setattr(restrictions, "_PAIRWISE_SHARE", share)
                assert (chosen.among(queries, slice(start, stop), places) == kept).all()


def test_few_places_are_asked_pair_by_pair(ruled, monkeypatch):
    """A mask of the whole block would cost more."""
    candidates = ruled(["tags"])
    monkeypatch.setattr(type(candidates), "allowed", None)
    assert len(candidates.among(np.arange(8), slice(0, 60), np.array([0, 100]))) <= 2


def test_a_query_without_tags_excludes_nothing(ruled):
    """It shares none with anybody; half of none is none."""
    assert ruled(["tags"]).allowed(np.array([3])).all()


def test_the_order_of_lines_does_not_change_the_fingerprint(make_folder):
    """Nor do two rows for one query instead of one."""
    rows = [("q1", ["d3"]), ("q2", ["d1"]), ("q1", ["d2"])]
    one = load_folder(lists(make_folder(), "excluded_ids", "excluded-ids", rows)).fingerprint
    two = load_folder(
        lists(make_folder(name="two"), "excluded_ids", "excluded-ids", [("q2", ["d1"]), ("q1", ["d2", "d3"])])
    )
    assert one == two.fingerprint


@pytest.mark.parametrize("size", [1, 3, 4, 100])
def test_texts_that_are_read_in_parts_are_the_same(make_folder, monkeypatch, size):
    """Sorted by id, with orders and tags where only some rows have them, and the same fingerprint."""
    names = ["d4", "d1", "d9", "d2", "d11", "d3", "d5", "d7"]
    corpus = [{"_id": name, "title": name[::-1], "text": f"text {name}"} for name in names]
    corpus[2] |= {"tags": ["a", "b"], "order": 3}
    corpus[6] |= {"tags": []}
    folder = make_folder(corpus, qrels="q1\td1\t1\nq2\td9\t1\n")
    whole = load_folder(folder)
    monkeypatch.setattr(on_disk, "BLOCK", size)
    parts = load_folder(folder)
    assert parts.corpus.doc_id.tolist() == sorted(names)
    pd.testing.assert_frame_equal(parts.corpus, whole.corpus)
    assert parts.fingerprint == whole.fingerprint and parts.oddities == whole.oddities
    assert "tags" in parts.corpus and "order" not in parts.queries
