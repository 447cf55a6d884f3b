"""Each rule of fusion gives the scores that its paper, and an independent program, give."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mirblab.core.errors import MirblabError
from mirblab.data import runs
from mirblab.retrieval import fusion, fusion_rules
from mirblab.retrieval.systems import system
from mirblab.retrieval.tokenizers import tokenizer
from mirblab.sources.catalogue import load

PLAIN = [name for name in fusion.METHODS if name not in ("linear", "sum")]

# Three runs without ties, and the scores that ranx 0.3.21 gives by fuse(runs, norm=None, method=...): "rrf" with
# k = 60, "bordafuse", "isr", "log_isr" (sigma is 0 there), "logn_isr" with sigma = 0.01, and "sum" and "mnz" of the
# runs after ranx.normalization.min_max_norm. With ties, and with one document alone, ranx goes its own way.
RANX = json.loads((Path(__file__).parent / "ranx_scores.json").read_text("utf-8"))


def a_run(rows: dict[str, dict[str, float]], system: str = "a") -> pd.DataFrame:
    flat = [(query, doc, score) for query, found in rows.items() for doc, score in found.items()]
    run = runs.order_run(pd.DataFrame(flat, columns=["query_id", "doc_id", "score"]))
    run.attrs = {"system": system, "collection": "tiny"}
    return run


def scores(run: pd.DataFrame) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {}
    for row in run.itertuples():
        found.setdefault(str(row.query_id), {})[str(row.doc_id)] = float(row.score)
    return found


def random_parts(seed: int, n_parts: int = 3) -> list[dict[str, dict[str, float]]]:
    """Return runs with distinct scores and at least two documents for each query."""
    rng = np.random.default_rng(seed)
    parts = []
    for _ in range(n_parts):
        part = {}
        for query in range(7):
            docs = rng.permutation(25)[: rng.integers(2, 20)]
            values = rng.permutation(200)[: len(docs)] / 7
            part[f"q{query}"] = {f"d{doc:02}": float(value) for doc, value in zip(docs, values, strict=True)}
        parts.append(part)
    return parts


@pytest.mark.parametrize(
    ("own", "name", "settings"),
    [
        *((name, name, {}) for name in ("rrf", "borda", "isr", "combsum", "combmnz")),
        ("log_isr", "logisr", {"sigma": 0.0}),
        ("logn_isr", "logisr", {"sigma": 0.01}),
    ],
)
def test_scores_equal_those_of_ranx(own: str, name: str, settings: dict):
    """To float32, on runs of different lengths."""
    fused = scores(fusion.fuse([a_run(part) for part in RANX["parts"]], name, **settings))
    expected = RANX["scores"][own]
    assert fused.keys() == expected.keys()
    for query, row in expected.items():
        assert fused[query] == pytest.approx(row, rel=1e-6, abs=1e-9)


def test_log_isr_by_hand():
    """ln(n + sigma) times the sum of 1 / rank²; polyfuse's sigma of 1 is the usual one."""
    one, two = a_run({"q": {"a": 9, "b": 8}}), a_run({"q": {"b": 9, "c": 8}})
    found = scores(fusion.log_isr([one, two]))["q"]
    assert found == pytest.approx({"a": math.log(2), "b": math.log(3) * (1 / 4 + 1), "c": math.log(2) / 4})
    published = scores(fusion.log_isr([one, two], sigma=0))["q"]
    assert published == pytest.approx({"a": 0, "b": math.log(2) * 1.25, "c": 0})


def test_borda_shares_the_points_that_a_short_run_leaves():
    """Of 3 documents a part that returns one leaves 1 + 2 points to two of them."""
    one, two = a_run({"q": {"a": 3, "b": 2, "c": 1}}), a_run({"q": {"c": 5}})
    assert scores(fusion.borda([one, two]))["q"] == {"a": 3 + 1.5, "b": 2 + 1.5, "c": 1 + 3}


def test_borda_gives_every_document_the_same_of_a_run_without_the_query():
    """(c + 1) / 2 each, so that the order is that of the other part."""
    one, two = a_run({"q": {"a": 3, "b": 2}, "p": {"a": 1}}), a_run({"p": {"a": 1}})
    assert scores(fusion.borda([one, two]))["q"] == {"a": 2 + 1.5, "b": 1 + 1.5}


@pytest.mark.parametrize("name", PLAIN)
def test_a_part_that_returns_nothing_for_a_query_leaves_the_other_order(name: str):
    """A structure run has nothing to say to a query without formulas, and must not hurt."""
    rng = np.random.default_rng(1)
    text = {f"q{query}": {f"d{doc}": float(rng.random()) for doc in range(9)} for query in range(3)}
    structure = {"q1": {"d3": 0.4, "x": 0.3}}
    alone, fused = a_run(text), fusion.fuse([a_run(text), a_run(structure, "b")], name)
    for query in ("q0", "q2"):
        assert fused[fused.query_id == query].doc_id.tolist() == alone[alone.query_id == query].doc_id.tolist()


@pytest.mark.parametrize("name", ["combsum", "combmnz"])
def test_one_document_alone_moves_nothing_but_itself(name: str):
    """Min-max makes it 1, as the best of a longer list; all others keep their order, the best one with 1 or more."""
    text, structure = {f"d{doc}": 9.0 - doc for doc in range(9)}, {"d7": 0.01}
    fused = scores(fusion.fuse([a_run({"q": text}), a_run({"q": structure}, "b")], name))["q"]
    assert sorted(fused, key=lambda doc: (fused[doc], doc), reverse=True)[:2] == ["d7", "d0"]
    others = [doc for doc in fused if doc != "d7"]
    assert others == [f"d{doc}" for doc in range(9) if doc != 7] and fused["d0"] == 1.0


@pytest.mark.parametrize("name", PLAIN)
def test_empty_runs_are_runs(name: str):
    """Alone they give an empty run, beside others they change no order."""
    empty, one = a_run({}), a_run({"q": {"a": 2, "b": 1}})
    assert len(fusion.fuse([empty, empty], name)) == 0
    assert fusion.fuse([empty, one, empty], name).doc_id.tolist() == ["a", "b"]


@pytest.mark.parametrize("name", PLAIN)
def test_ties_go_by_document_and_depth_cuts_after_them(name: str):
    """Equal scores: doc_id descending, as everywhere."""
    parts = [a_run({"q": {"a": 2, "b": 1}}), a_run({"q": {"b": 2, "a": 1}}, "b")]
    whole = fusion.fuse(parts, name)
    assert whole.doc_id.tolist() == ["b", "a"] and whole.score.nunique() == 1
    assert fusion.fuse(parts, name, depth=1).doc_id.tolist() == ["b"]


@pytest.mark.parametrize("name", PLAIN)
def test_blocks_change_nothing(name: str, monkeypatch):
    """A few rows at a time or all at once."""
    parts = [a_run(part) for part in random_parts(3)]
    whole = fusion.fuse(parts, name, depth=5)
    monkeypatch.setattr(fusion_rules, "_ROWS", 10)
    pd.testing.assert_frame_equal(fusion.fuse(parts, name, depth=5), whole)


def test_many_ids_do_not_overflow():
    """130 queries do not fit into the 8 bits of a short run's codes, nor 200 documents into those of another's."""
    one = a_run({f"q{query:03}": {"a": 2.0, "b": 1.0} for query in range(130)})
    two = a_run({"q129": {f"d{doc:03}": float(doc) for doc in range(200)}})
    fused = fusion.rrf([one, two])
    assert len(fused) == 260 + 200
    assert scores(fused)["q129"]["d199"] == pytest.approx(1 / 61) and scores(fused)["q000"]["a"] == pytest.approx(
        1 / 61
    )


def test_a_wrong_method_gets_a_suggestion():
    """And wrong numbers an explanation."""
    one = a_run({"q": {"a": 1}})
    with pytest.raises(MirblabError, match="no fusion method 'combmns'.*did you mean 'combmnz'"):
        fusion.fuse([one], "combmns")
    with pytest.raises(MirblabError, match="weights are numbers from 0 up; found -1, 2"):
        fusion.linear([one, one], [-1, 2])
    with pytest.raises(MirblabError, match="sigma .* at least 0; found -1"):
        fusion.log_isr([one, one], sigma=-1)
    with pytest.raises(MirblabError, match="at least 1, found 0"):
        fusion.rrf([one], depth=0)


def test_a_weighted_sum_takes_scores_as_they_are():
    """By hand: no part is scaled, and what a part does not return counts 0."""
    one = pd.DataFrame({"query_id": "q", "doc_id": ["a", "b"], "score": [9.0, 1.0]})
    two = pd.DataFrame({"query_id": "q", "doc_id": ["b", "c"], "score": [5.0, 6.0]})
    run = fusion.fuse([one, two], "sum", weights=[1, 2])
    assert dict(zip(run.doc_id, run.score, strict=True)) == {"a": 9, "b": 11, "c": 12}
    with pytest.raises(MirblabError, match="one weight per run is needed; found 2 runs and 1 weights"):
        fusion.weighted_sum([one, two], [1])


def test_mixed_search_adds_prose_and_formulas():
    """A word in a formula is no prose, and a post with both is before those with one."""
    texts = ["The prime $x^2+y^2$", "The prime", "Say $x^2+y^2$", "$prime$"]
    assert tokenizer("prose")(texts) == [["prime"], ["prime"], ["say"], []]
    c = load("mini-qa").sample(20)
    parts = [system(name).search(c) for name in ("structure", "prose")]
    expected = fusion.weighted_sum(parts, [1, 2], 1000)
    assert system("mixed").search(c).doc_id.astype(str).tolist() == expected.doc_id.astype(str).tolist()
