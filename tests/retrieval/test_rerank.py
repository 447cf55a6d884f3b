"""A reranker reorders the first documents of a run and leaves the rest below."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from threadpoolctl import threadpool_limits

from mirblab.core import registry
from mirblab.core.errors import MirblabError
from mirblab.data import runs
from mirblab.retrieval import rerank, systems
from mirblab.sources import catalogue


def a_run(scores: dict[str, float]) -> pd.DataFrame:
    return pd.DataFrame({"query_id": "q1", "doc_id": list(scores), "score": list(scores.values())})


def test_only_the_first_documents_are_reordered():
    """The rest keeps its order, below."""
    run = a_run({"d1": 9, "d2": 8, "d3": 7, "d4": 6, "d5": 5})
    pairs = a_run({"d1": -3.0, "d2": 0.5, "d3": 0.1})
    fresh = rerank.reorder_run(run, pairs, 3)
    assert fresh.doc_id.tolist() == ["d2", "d3", "d1", "d4", "d5"]
    assert rerank.reorder_run(run, pairs, 2).doc_id.tolist() == ["d2", "d1", "d3", "d4", "d5"]


def test_the_rest_keeps_its_order_however_large_the_scores_are():
    """Float32 cannot tell 5e8 from 5e8 - 1."""
    run = a_run({"d1": 9, "d2": 8, "d3": 7, "d4": 6, "d5": 5})
    assert rerank.reorder_run(run, a_run({"d1": 4e8, "d2": 5e8}), 2).doc_id.tolist() == ["d2", "d1", "d3", "d4", "d5"]


def test_a_missing_pair_score_and_a_bad_depth_are_errors():
    """Nothing is put anywhere by chance."""
    run = a_run({"d1": 9, "d2": 8})
    with pytest.raises(MirblabError, match="1 documents of the first 2 have no pair score"):
        rerank.reorder_run(run, a_run({"d1": 1.0}), 2)
    with pytest.raises(MirblabError, match="at least 1, found 0"):
        rerank.reorder_run(run, run, 0)


def test_an_unknown_reranker_gets_a_suggestion():
    """From the registry."""
    with pytest.raises(MirblabError, match=r"no reranker 'maxsimm'.*did you mean 'maxsim'"):
        rerank.reranker_settings("maxsimm")


def test_maxsim_scores_are_those_of_a_slow_sum():
    """Mean over query tokens of the best cosine, with MiniLM's own token vectors."""
    c = catalogue.load("mini-hol").sample(3)
    first = systems.system("bm25").search(c, depth=4)
    scored = rerank.score_shortlist(first, c, "maxsim")
    assert set(zip(scored.query_id, scored.doc_id, strict=True)) == set(zip(first.query_id, first.doc_id, strict=True))
    row = scored.iloc[0]
    model = rerank.encoder("minilm")
    query = model.token_vectors([c.query(row.query_id)], "query")[0]
    document = model.token_vectors([c.document(row.doc_id)], "document")[0]
    slow = np.mean([max(float(token @ other) for other in document) for token in query])
    assert row.score == pytest.approx(slow, abs=1e-4)


def test_scores_of_maxsim_do_not_depend_on_the_number_of_threads():
    """Which is another one in a pool and on a cluster, whose runs have the bytes of those of one process."""
    c = catalogue.load("mini-views-type-informal")
    first = systems.system("bm25").search(c, depth=5)
    scores = []
    for n_threads in (1, 2, 8):
        with threadpool_limits(n_threads):
            scores.append(rerank.score_shortlist(first, c, "maxsim").score.to_numpy())
    assert np.array_equal(scores[0], scores[1]) and np.array_equal(scores[0], scores[2])


@pytest.fixture(scope="module")
def tiny_cross_encoder(tmp_path_factory) -> str:
    """Return the folder of a randomly initialised CrossEncoder that knows a few words."""
    from sentence_transformers import CrossEncoder
    from transformers import BertConfig, BertForSequenceClassification, BertTokenizerFast

    folder = tmp_path_factory.mktemp("cross")
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "query", "document", *"0123456789", "a", "b"]
    (folder / "vocab.txt").write_text("\n".join(words), encoding="utf-8")
    tokenizer = BertTokenizerFast(str(folder / "vocab.txt"))
    config = BertConfig(
        vocab_size=len(words), hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16,
        max_position_embeddings=64, num_labels=1,
    )  # fmt: skip
    BertForSequenceClassification(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    CrossEncoder(str(folder), max_length=32).save_pretrained(str(folder))
    return str(folder)


def test_a_cross_encoder_from_a_folder_reranks(tiny_cross_encoder, make_folder):
    """Scores are those of the library, pair by pair; the order of the batch does not matter."""
    from sentence_transformers import CrossEncoder

    corpus = [{"_id": f"d{n}", "text": "document " + "a b " * n + str(n)} for n in range(1, 6)]
    c = catalogue.load(make_folder(corpus, qrels="q1\td1\t1\nq2\td2\t1\n"))
    run = runs.from_positions([0, 0, 0, 1], [0, 3, 1, 2], [4, 3, 2, 1], c.query_ids, c.doc_ids, "x", c.name)
    scored = rerank.score_shortlist(run, c, tiny_cross_encoder)
    model = CrossEncoder(tiny_cross_encoder)
    assert len(scored) == len(run)
    for row in scored.itertuples():
        single = model.predict([(c.query(row.query_id), c.document(row.doc_id))])[0]
        assert row.score == pytest.approx(float(single), abs=1e-5)


def test_a_folder_in_the_home_may_begin_with_a_tilde(tiny_cross_encoder, make_folder, monkeypatch):
    """Given by name, or as the id of an entry, which was looked for on the Hub."""
    for home in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(home, str(Path(tiny_cross_encoder).parent))
    tilde = f"~/{Path(tiny_cross_encoder).name}"
    c = catalogue.load(make_folder())
    run = runs.from_positions([0, 1], [0, 1], [1, 1], c.query_ids, c.doc_ids, "x", c.name)
    expected = rerank.score_shortlist(run, c, tiny_cross_encoder).score.tolist()
    assert rerank.score_shortlist(run, c, tilde).score.tolist() == expected
    own = registry.read_registry("rerankers") | {"own": {"kind": "cross-encoder", "id": tilde, "max_length": 32}}
    monkeypatch.setattr(registry, "read_registry", lambda name: own)
    assert len(rerank.reranker_settings("own")["revision"]) == len(rerank.reranker_settings(tilde)["revision"])
    assert rerank.score_shortlist(run, c, "own").score.tolist() == expected


def test_a_hub_model_that_is_not_here_says_what_to_do(monkeypatch):
    """No traceback from inside a library."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)  # read once, when it is imported
    c = catalogue.load("mini-hol").sample(1)
    run = systems.system("bm25").search(c, depth=1)
    with pytest.raises(MirblabError, match="not on this machine and the Hub cannot be reached"):
        rerank.score_shortlist(run, c, "bge-reranker-v2-m3")


def test_each_pair_is_scored_once(tiny_cross_encoder, make_folder, home, monkeypatch):
    """Whatever first stage, depth or instruction that a collection does not have asks for it, with the same scores."""
    c = catalogue.load(make_folder(queries=[{"_id": f"q{n}", "text": f"document {n}"} for n in (1, 2)]))
    asked: list[int] = []
    score = rerank.score_shortlist
    monkeypatch.setattr(
        rerank, "score_shortlist", lambda run, *rest, **options: asked.append(len(run)) or score(run, *rest, **options)
    )
    bm25, grams = systems.system("bm25"), systems.system("chargrams")
    shallow = systems.pair_scores(bm25, tiny_cross_encoder, c, 1)
    deep = systems.pair_scores(bm25, tiny_cross_encoder, c, 3)
    others = systems.pair_scores(grams, tiny_cross_encoder, c, 3, instruction="card")
    assert systems.pair_scores(grams, tiny_cross_encoder, c, 2).attrs["system"] == tiny_cross_encoder
    pairs = [set(zip(run.query_id, run.doc_id, strict=True)) for run in (shallow, deep, others)]
    assert pairs[0] < pairs[1] and sum(asked) == len(pairs[1] | pairs[2])
    whole = score(bm25.search(c, 3), c, tiny_cross_encoder)
    pd.testing.assert_frame_equal(
        deep.astype({"query_id": "str", "doc_id": "str"}), whole.astype({"query_id": "str", "doc_id": "str"})
    )
    empty = systems.pair_scores(systems.system("structure"), tiny_cross_encoder, c, 3)
    assert not len(empty) and list(empty.columns) == list(deep.columns)
