"""Candidates as lists and as rules say which documents each query may return."""

from __future__ import annotations

import json

import numpy as np
import pytest

from mirblab.collection import load_folder
from mirblab.errors import MirblabError

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
