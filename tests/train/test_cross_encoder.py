"""A cross-encoder from collections: what it learns from, what is left out, and that the same seed gives the same."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from tiny_training import WORDS, kill_training

from mirblab import train
from mirblab.core import paths
from mirblab.core.errors import MirblabError
from mirblab.encoders import segments
from mirblab.encoders.encoding import encoder
from mirblab.retrieval import rerank
from mirblab.retrieval.systems import system
from mirblab.sources import catalogue
from mirblab.train import training
from mirblab.train.command import run_training
from mirblab.train.lists import gather_lists
from mirblab.train.loop import read_log
from mirblab.train.loss import PairPasses, list_loss
from mirblab.train.model import build_cross_encoder
from mirblab.train.recipes import Recipe, recipe

CHANGES = """
kind = "cross-encoder"
base = "tiny"
collections = ["made-up"]
batch = 4
steps = 6
warmup = 2
n_negatives = 3
first_depth = 10
held_out_queries = 4
max_length = 24
learning_rate = 1e-2
easy = 0.5
precision = "float32"
checkpoint_every = 1e-6
"""
BI_ENCODER = {"kind": "bi-encoder", "easy": 0.0, "held_out_queries": 4, "scale": 10.0, "n_negatives": 1}


def write_collection(folder: Path, splits: dict[str, int], seed: int = 0) -> Path:
    """Write a collection of made-up words with as many queries in each split, of which each has one document."""
    rng = np.random.default_rng(seed)
    n = sum(splits.values())
    texts = [" ".join(rng.choice(WORDS, 7)) for _ in range(n)]
    (folder / "qrels").mkdir(parents=True)
    documents = pd.DataFrame({"_id": [f"d{at:03d}" for at in range(n)], "title": "", "text": texts})
    documents.to_json(folder / "corpus.jsonl", orient="records", lines=True)
    queries = pd.DataFrame(
        {"_id": [f"q{at:03d}" for at in range(n)], "text": [text[: len(text) // 2] for text in texts]}
    )
    queries.to_json(folder / "queries.jsonl", orient="records", lines=True)
    at = 0
    for split, count in splits.items():
        rows = [f"q{row:03d}\td{row:03d}\t1" for row in range(at, at + count)]
        (folder / "qrels" / f"{split}.tsv").write_text("\n".join(["query-id\tcorpus-id\tscore", *rows, ""]))
        at += count
    (folder / "card.toml").write_text('name = "made-up"\ninstruction = "Find the text."\n')
    return folder


@pytest.fixture
def home(home: Path, own: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, tiny: Path) -> Path:
    """Give the test a home with a made-up collection, the tiny model, and a recipe `mine` that is a reranker."""
    monkeypatch.setenv("MIRBLAB_THREADS", "1")
    rest = 'pooling = "mean"\nnormalise = true\ndtype = "float32"\ndimensions = 16\nmax_length = 48\n'
    rest += 'prompts = { query = "", document = "" }\nlicence = "MIT"\n'
    own("encoders", f'[tiny]\nid = "{tiny}"\nrevision = ""\n{rest}')
    own("trained", f"[mine]\n{CHANGES}")
    own("rerankers", '[mine]\nkind = "cross-encoder"\ntrained = true\n')
    write_collection(home / "data" / "made-up", {"train": 40, "test": 24})
    return home


def weights(model: Path) -> list[bytes]:
    return [path.read_bytes() for path in sorted(model.rglob("*.safetensors"))]


def test_a_trained_cross_encoder_reranks(home: Path) -> None:
    """It says how to train it before; afterwards anyone's CrossEncoder loads it, and its scores can be mixed."""
    from sentence_transformers import CrossEncoder

    with pytest.raises(MirblabError, match="reranker 'mine' is not trained yet; run: mirblab train mine"):
        system("bm25>mine@10")
    made = train.train("mine")
    log = train.training_log("mine")
    assert log.loss.notna().sum() == 6 and log["nDCG@10"].notna().sum() == 2
    assert log["bm25"].dropna().nunique() == 1 and {"mean with bm25", "pairs_per_second"} <= set(log.columns)
    collection = catalogue.load("made-up")
    shortlist = system("bm25").search(collection, 10)
    scored = rerank.score_shortlist(shortlist, collection, "mine")
    plain = CrossEncoder(str(made), device="cpu")
    names = zip(scored.query_id, scored.doc_id, strict=True)
    pairs = [(collection.query(query), collection.document(document)) for query, document in names]
    np.testing.assert_allclose(scored.score, plain.predict(pairs), atol=1e-5)
    assert plain.max_seq_length == 24 and scored.score.min() < 0  # no sigmoid, which would make good scores equal
    assert "cross-encoder" in (made / "README.md").read_text() and str(home) not in (made / "README.md").read_text()
    alone, mixed, chosen = (system(f"bm25>mine@10{more}") for more in ("", ",0.3", ",cv"))
    first = system("bm25").search(collection)
    query = collection.query_ids[0]
    parts = [run[run.query_id == query].set_index("doc_id").score.astype(float) for run in (shortlist, scored)]
    bm25, own = ((part - part.min()) / (part.max() - part.min()) for part in parts)
    expected = (0.7 * bm25 + 0.3 * own).to_dict()
    for each, wanted in ((alone, own.to_dict()), (mixed, expected)):
        run = each.search(collection)
        best = run[run.query_id == query].doc_id.tolist()
        values = [wanted[doc] for doc in best[:10]]
        assert values == sorted(values, reverse=True) and set(best) == set(first[first.query_id == query].doc_id)
    assert chosen.learns and not mixed.learns and len(chosen.search(collection)) == len(first)
    assert str(home) not in str(alone.key)
    with pytest.raises(
        MirblabError, match="mine is a cross-encoder and makes no vectors; rerank with it: bm25>mine@50"
    ):
        system("mine").search(collection)


def test_a_cross_encoder_of_segments_begins_with_the_order_of_its_base(home: Path) -> None:
    """Its first score is ten times the cosine of its base's vectors; it loads again with what it has learnt."""
    train.train("mine", pooling="segments", steps=1, learning_rate=1e-9, max_length=64)
    collection = catalogue.load("made-up")
    shortlist = system("bm25").search(collection, 10)
    scored = rerank.score_shortlist(shortlist, collection, "mine")
    assert rerank.reranker_settings("mine")["trust_remote_code"]
    base = encoder("tiny")
    queries, documents = base.vectors(collection.query_texts, role="query"), base.vectors(collection.texts)
    cosines = (queries[scored.query_id.cat.codes] * documents[scored.doc_id.cat.codes]).sum(1)
    np.testing.assert_allclose(scored.score, 10 * cosines, atol=1e-3)


@pytest.mark.parametrize("pooling", ["mean", "segments"])
@pytest.mark.parametrize("is_training", [True, False])
def test_scores_are_float32_while_the_layers_are_bfloat16(
    home: Path, pooling: str, is_training: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of many made-up pairs has a score of its own; in bfloat16 many would share one.

    Layers of an even number of heads return bfloat16 from torch's fast path, which is taken in evaluation.
    """
    monkeypatch.setattr(segments, "_HEAD", 8)
    plan = recipe("mine", pooling=pooling)
    model = build_cross_encoder(plan, encoder("tiny"))
    model.train(is_training)
    pairs = [(" ".join(WORDS[:at]), WORDS[at]) for at in range(1, 9)]
    with torch.set_grad_enabled(is_training):
        scores = PairPasses(model, "mine", 2048, "bfloat16").vectors(pairs)
    assert scores.dtype == torch.float32 and len(set(scores[:, 0].tolist())) == len(pairs)


def test_segments_read_each_other_and_no_other_pair(home: Path) -> None:
    """After some training a score is no longer that of vectors apart, and is the same in any batch."""
    train.train("mine", pooling="segments", head_rate=10)
    revision = rerank.reranker_settings("mine")["revision"]
    model = rerank._cross_encoder(str(paths.models() / "mine"), revision, 64, True, False)
    pairs = [("ring field", "group"), ("ring field", " ".join(WORDS[:9])), ("", ""), (WORDS[3], WORDS[3])]
    together = model.predict(pairs)
    np.testing.assert_allclose(together, [model.predict([pair])[0] for pair in pairs], atol=1e-5)
    np.testing.assert_allclose(model.predict(pairs), together, atol=1e-6)  # from the vectors that it has kept
    transformer, interaction, similarity = model
    apart = transformer(model.preprocess(pairs))
    joint = interaction(apart)
    assert not np.allclose(similarity(joint)["scores"].detach(), similarity(apart)["scores"].detach(), atol=1e-2)
    other = apart["token_embeddings"].detach().clone()
    other[0, -1] += 100  # a position that is padding
    assert not apart["attention_mask"][0, -1]
    again = similarity(interaction(apart | {"token_embeddings": other}))["scores"]
    np.testing.assert_allclose(again.detach(), similarity(joint)["scores"].detach(), atol=1e-5)


def test_texts_that_are_encoded_by_length_have_the_gradient_of_one_pass(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seven documents of one to nine words, each beside the same query, in groups of two and in one group."""
    model = build_cross_encoder(recipe("mine", pooling="segments"), encoder("tiny"))
    pairs = [("ring field", " ".join(WORDS[: at or 9])) for at in (3, 0, 1, 5, 2, 7, 4)]
    found = []
    for size in (2, 7):
        monkeypatch.setattr(segments, "_GROUP", size)
        model.zero_grad()
        scores = PairPasses(model, "mine", 2048, "float32").vectors(pairs)
        (scores[:, 0] * torch.arange(7)).sum().backward()
        gradients = [weight.grad.flatten() for weight in model.parameters() if weight.grad is not None]
        found.append((scores.detach(), torch.cat(gradients)))
    (scores, gradient), (whole, expected) = found
    assert scores[:, 0].unique().numel() == 7 and expected.abs().max() > 0.1
    np.testing.assert_allclose(scores, whole, atol=1e-4)
    np.testing.assert_allclose(gradient, expected, atol=1e-3)


@pytest.mark.parametrize(("halved", "tolerance"), [(False, 1e-4), (True, 0.3)])
def test_layers_of_both_segments_are_those_of_torch(halved: bool, tolerance: float) -> None:
    """Random layers on texts of several lengths; torch's own TransformerEncoderLayer is the reference."""
    torch.manual_seed(0)
    interaction = segments.SegmentInteraction(2 * segments._HEAD, 2)
    for parameter in interaction.parameters():
        torch.nn.init.normal_(parameter, std=0.15)
    mask = (torch.arange(9) < torch.tensor([9, 4, 1])[:, None]).long()
    features = {
        "token_embeddings": torch.randn(3, 9, 2 * segments._HEAD), "attention_mask": mask,
        "token_type_ids": (torch.arange(9) > 2).long().expand(3, 9),
    }  # fmt: skip
    expected = features["token_embeddings"] + interaction.types[features["token_type_ids"]]
    for block in interaction.blocks:
        expected = block(expected, src_key_padding_mask=mask == 0)
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=halved):
        found = interaction(features)["token_embeddings"]
    used = mask.bool()
    np.testing.assert_allclose(found[used].detach(), expected[used].detach(), atol=tolerance)


def test_a_reranker_in_bfloat16_scores_nearly_alike(home: Path) -> None:
    """Another type for it is refused."""
    train.train("mine", pooling="segments", head_rate=10)
    collection = catalogue.load("made-up")
    shortlist, entry = system("bm25").search(collection, 10), '[mine]\nkind = "cross-encoder"\ntrained = true\n'
    whole = rerank.score_shortlist(shortlist, collection, "mine").score
    (home / "registry" / "rerankers.toml").write_text(entry + 'dtype = "bfloat16"\n')
    halved = rerank.score_shortlist(shortlist, collection, "mine").score
    assert not np.array_equal(whole, halved)
    np.testing.assert_allclose(halved, whole, atol=0.3 * whole.std())
    (home / "registry" / "rerankers.toml").write_text(entry + 'dtype = "int8"\n')
    with pytest.raises(MirblabError, match="int8"):
        rerank.score_shortlist(shortlist, collection, "mine")


def test_the_same_seed_gives_the_same_bytes(home: Path) -> None:
    """Another seed gives others, of the new layer, too."""
    one, again, other = (train.train("mine", out=out, seed=seed) for out, seed in (("a", 0), ("b", 0), ("c", 1)))
    assert weights(one) == weights(again) != weights(other)


@pytest.mark.parametrize(
    "changes", [{}, BI_ENCODER, BI_ENCODER | {"late": 8}], ids=["cross-encoder", "bi-encoder", "late interaction"]
)
def test_a_killed_training_goes_on_to_the_same_bytes(home: Path, changes: dict[str, Any]) -> None:
    """In the middle of a training from collections, with documents of the first stage."""
    whole = train.train("mine", **changes, steps=24, out="whole")
    workshop = kill_training("mine", **changes, steps=24, out="cut")
    assert weights(train.train("mine", **changes, steps=24, out="cut")) == weights(whole)
    assert read_log(workshop).loss.dropna().tolist() == train.training_log("whole").loss.dropna().tolist()


def test_what_repeats_a_query_of_an_evaluation_is_left_out(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A query of the test split as training query, and as document, whatever its case."""
    before = gather_lists(recipe("mine"))
    folder = home / "data" / "made-up"
    queries = pd.read_json(folder / "queries.jsonl", lines=True).set_index("_id").text
    documents = pd.read_json(folder / "corpus.jsonl", lines=True, dtype=str).fillna("")
    queries["q050"] = queries["q000"].upper()
    queries["q051"] = documents.text[1]
    queries.reset_index().to_json(folder / "queries.jsonl", orient="records", lines=True)
    capsys.readouterr()
    after = gather_lists(recipe("mine"))
    texts = [query.text for query in (*after.queries, *after.held_out)]
    assert len(before) + len(before.held_out) == 40 and len(texts) == 38
    assert queries["q000"] not in texts and queries["q001"] not in texts
    assert all(1 not in (*query.relevant, *query.others) for query in (*after.queries, *after.held_out))
    assert "1 of 40 queries and 1 of 64 documents nearly repeat a query of an evaluation" in capsys.readouterr().out
    assert before.fingerprint() != after.fingerprint()


def test_what_repeats_a_query_of_a_collection_apart_is_left_out(home: Path) -> None:
    """That collection is not trained on, and is evaluated."""
    other = write_collection(home / "data" / "other", {"test": 3}, seed=5)
    text = pd.read_json(home / "data" / "made-up" / "queries.jsonl", lines=True).text[2]
    lines = pd.read_json(other / "queries.jsonl", lines=True)
    lines.loc[0, "text"] = text
    lines.to_json(other / "queries.jsonl", orient="records", lines=True)
    one, both = (gather_lists(recipe("mine", apart=apart)) for apart in ((), ("other",)))
    assert len(one) + len(one.held_out) - len(both) - len(both.held_out) == 1


def test_a_collection_in_a_folder_is_compared_with_its_own_queries(home: Path, tmp_path: Path) -> None:
    """And not with those of the collection at home whose name is in its card; a folder may have a split train only."""
    own = write_collection(tmp_path / "own", {"train": 30, "test": 3}, seed=5)
    other = write_collection(tmp_path / "other", {"train": 30}, seed=5)
    (other / "card.toml").write_text('name = "elsewhere"\n')
    lines = pd.read_json(own / "queries.jsonl", lines=True)
    lines.loc[30, "text"] = lines.text[2]
    lines.to_json(own / "queries.jsonl", orient="records", lines=True)
    both, alone = (gather_lists(recipe("mine", collections=(str(folder),))) for folder in (own, other))
    assert len(both) + len(both.held_out) == 29 and len(alone) + len(alone.held_out) == 30
    whole = gather_lists(recipe("mine", collections=(f"{other}:train",), apart=(str(own),)))
    assert len(whole) + len(whole.held_out) < 30


def test_a_base_that_is_not_trained_is_named_before_data_are_gathered(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Gathering takes a minute, after which the error came."""
    monkeypatch.setattr(training, "gather_lists", lambda plan: pytest.fail("it was gathered"))
    with pytest.raises(MirblabError, match="encoder 'minilm-qa' is not trained yet; run: mirblab train minilm-qa"):
        training.train("mine", base="minilm-qa")


def test_a_list_has_its_relevant_document_first_and_no_near_duplicate(home: Path) -> None:
    """Negatives are different, not relevant, from the shortlist when none may be easy, and drawn by seed and step."""
    material, plan = gather_lists(recipe("mine")), recipe("mine", easy=0.0)
    for step in range(10):
        lists = material.draw(plan, step)
        pairs, first = lists.pairs(), lists.first
        assert pairs == material.draw(plan, step).pairs() and first.shape == (4, 4)
        for at in range(0, 16, 4):
            query, documents = pairs[at][0], [document for _, document in pairs[at : at + 4]]
            assert documents[0].startswith(query) and len(set(documents)) == 4
            assert not any(document.startswith(query) for document in documents[1:])
        known = [[[text.startswith(query) for text in row] for row in lists.documents] for query in lists.queries]
        assert (lists.relevant == np.array(known)).all() and lists.relevant[range(4), range(4), 0].all()
    assert material.draw(plan, 0).pairs() != material.draw(plan, 1).pairs()
    deep = material.draw(recipe("mine", easy=1.0), 0).first
    assert (deep[:, 1:] == 0).all() and (first[:, 1:] > 0).any()
    instructed = gather_lists(recipe("mine", instructed=True))
    assert instructed.queries[0].text == "Find the text. " + material.queries[0].text
    card = home / "data" / "made-up" / "card.toml"
    card.write_text(card.read_text().replace('instruction = "Find the text."', ""))
    with pytest.raises(MirblabError, match="none in the card of made-up"):
        gather_lists(recipe("mine", instructed=True))


def test_negatives_are_below_the_margin(home: Path) -> None:
    """A document that scores nearly as high as the relevant one may be relevant, and is not learnt from."""
    low, high = (gather_lists(recipe("mine", margin=margin)) for margin in (0.0, 0.6))
    by_text = {query.text: query for query in low.queries}
    cut = 0
    for query in high.queries:
        before = by_text[query.text]
        assert set(query.others) <= set(before.others) and query.relevant == before.relevant
        cut += len(query.others) < len(before.others)
    assert cut > 10


@pytest.mark.parametrize(("first", "name", "split"), [("structure", "mini-wfb", "test"), ("tiny", "made-up", "train")])
def test_negatives_are_those_of_any_first_stage(home: Path, first: str, name: str, split: str) -> None:
    """Of structure search and of vectors, too: its documents in its order, without those that are relevant."""
    (home / "registry" / "systems.toml").write_text('[tiny]\nlabel = "Tiny"\nkind = "dense"\nencoder = "tiny"\n')
    changes = BI_ENCODER | {"first": first, "collections": (f"{name}:{split}",), "first_depth": 6, "max_queries": 20}
    material = gather_lists(recipe("mine", **changes, near=0.0))
    collection = catalogue.load(name, split).sample(20, 0)
    run, queries = system(first).search(collection), [*material.queries, *material.held_out]
    assert len(queries) > 12 and len(set(collection.query_texts)) == 20
    for query in queries:
        place = collection.query_texts.index(query.text)
        returned = run[run.query_id.cat.codes == place].doc_id.cat.codes.tolist()
        assert query.shortlist.tolist() == returned[:6]
        assert query.others.tolist() == [at for at in returned[:60] if at not in query.relevant]


def write_tags(folder: Path) -> None:
    """Give the documents and queries of a made-up collection one of two tags by their number."""
    for name in ("corpus", "queries"):
        table = pd.read_json(folder / f"{name}.jsonl", lines=True, dtype=str)
        table["tags"] = [["even" if int(key[1:]) % 2 == 0 else "odd"] for key in table["_id"]]
        table.to_json(folder / f"{name}.jsonl", orient="records", lines=True)


def test_negatives_can_share_a_tag_with_the_query(home: Path) -> None:
    """They are drawn at random from all such documents, whatever the first stage returned."""
    write_tags(home / "data" / "made-up")
    material = gather_lists(recipe("mine", negatives="tags", first_depth=6))
    for query in material.queries:
        assert len(query.others) == 6 == query.n_hard and not set(query.others) & set(query.relevant)
        assert len({at % 2 for at in (*query.others, *query.relevant)}) == 1
    assert len({at for query in material.queries for at in query.others}) > 50


def test_negatives_can_be_judged_not_relevant(home: Path) -> None:
    """They are drawn before any of the first stage, which fills up; what repeats the relevant one is left out."""
    folder = home / "data" / "made-up"
    texts = pd.read_json(folder / "corpus.jsonl", lines=True, dtype=str).text
    texts[49] = texts[3]
    pd.DataFrame({"_id": [f"d{at:03d}" for at in texts.index], "title": "", "text": texts}).to_json(
        folder / "corpus.jsonl", orient="records", lines=True
    )
    plan, plain = (
        recipe("mine", negatives=name, held_out_queries=0, steps=40, epochs=4) for name in ("judged", "first")
    )
    returned = gather_lists(plain).queries
    judged = {"q000": [50, 51, 52, 53, 54], "q001": returned[1].others[[2, 1]].tolist(), "q003": [49]}
    with (folder / "qrels" / "train.tsv").open("a") as file:
        file.writelines(f"{query}\td{at:03d}\t0\n" for query, places in judged.items() for at in places)
    material = gather_lists(plan)
    assert [query.n_judged for query in material.queries[:5]] == [5, 2, 0, 0, 0]
    place_of, drawn = {text: place for place, text in enumerate(texts)}, list[list[int]]()
    for step in range(plan.steps):
        drawn += [[place_of[text] for text in row] for row in material.draw(plan, step).documents]
    assert {at for relevant, *wrong in drawn if relevant == 0 for at in wrong} == {*judged["q000"]}
    second = [wrong for relevant, *wrong in drawn if relevant == 1]
    assert second and all(len({*judged["q001"], *wrong}) == len(set(wrong)) == 3 for wrong in second)
    assert set(material.queries[1].others) == set(returned[1].others)
    assert len(material.queries[1].others) == len(returned[1].others)
    unknown = [replace(material.queries[0], n_judged=0), *material.queries[1:]]
    assert replace(material, queries=unknown).fingerprint() != material.fingerprint()
    others = ["most of the first 10 that bm25 returned", "judged not relevant where there are enough, else most of"]
    for name, told in zip(("first", "judged"), others, strict=True):
        card = (train.train("mine", negatives=name, steps=1, out=name) / "README.md").read_text()
        assert f"one relevant document and 3 others, {told}" in card


def test_the_recipe_for_answers_learns_from_a_real_dump(
    home: Path, shared_file: Callable[[str], Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A question's wrong answer shares a tag with it and is not relevant."""
    dump = shared_file("sources/stackexchange/coffee.Posts.xml.gz")
    origin = tmp_path / "coffee.stackexchange.com"
    origin.mkdir()
    shutil.copyfile(dump, origin / "Posts.xml.gz")
    catalogue.build("stackexchange", str(origin), relevant="answers", train=0.9)
    name = "coffee.stackexchange-answers"
    changes = {"base": "tiny", "collections": name, "apart": "", "steps": 2, "batch": 4, "max_length": 24}
    assert run_training("minilm-answers", changes, out="learnt") == 0
    assert "learnt is trained" in capsys.readouterr().out
    collection, made = catalogue.load(name, "train"), recipe("minilm-answers", **changes)
    material = gather_lists(made)
    assert (made.negatives, made.n_negatives) == ("tags", 1) and len(material) + len(material.held_out) > 80
    place_of = {text: place for place, text in enumerate(collection.query_texts)}
    relevant = collection.qrels.groupby("query_id", observed=True).doc_id.agg(set)
    for query in material.queries:
        place = place_of[query.text]
        wrong, tags = set(collection.doc_ids[query.others]), set(collection.queries.tags[place])
        assert wrong and not wrong & relevant[collection.query_ids[place]]
        assert all(tags & set(collection.corpus.tags[row]) for row in query.others)
    batch = material.draw(made, 0)
    assert [len(row) for row in batch.documents] == [2] * 4 and not batch.relevant[range(4), range(4), 1].any()


@pytest.mark.parametrize("changes", [{}, {"n_negatives": 0}, {"late": 8}, {"cached": True}])
def test_an_encoder_learns_from_collections(home: Path, changes: dict[str, Any]) -> None:
    """By passage vectors and by token vectors, with and without documents of the first stage."""
    first = train.train("mine", **(BI_ENCODER | changes), steps=30, out="learnt")
    log = train.training_log("learnt")
    losses = log.loss.dropna()
    assert losses.iloc[-5:].mean() < losses.iloc[:5].mean()
    values = log["nDCG@10"].dropna()
    assert len(values) == 2 and (first / "model.safetensors").is_file()
    card = (first / "README.md").read_text()
    assert "made-up" in card and "views of one declaration" not in card


def test_a_document_that_is_relevant_to_another_query_is_no_wrong_answer(home: Path) -> None:
    """Two queries of a batch share their relevant document, which is left out of each other's columns."""
    import torch

    from mirblab.train.loop import _loss_of

    relevant = np.zeros((2, 2, 2), bool)
    relevant[:, :, 0] = True
    plan = recipe("mine", **BI_ENCODER, symmetric=False)
    vectors = torch.eye(6)[[0, 1, 0, 1, 4, 5]]
    left_out = float(_loss_of(plan, ["a", "b"], ["c", "d"], ["e", "f"], relevant)(vectors))
    expected = np.log(1 + 2 * np.exp(-10.0))
    assert left_out == pytest.approx(expected, rel=1e-2)
    relevant[0, 1, 1] = True  # the other list's negative, which is the second column of negatives
    one_less = float(_loss_of(plan, ["a", "b"], ["c", "d"], ["e", "f"], relevant)(vectors))
    assert one_less == pytest.approx((np.log(1 + np.exp(-10.0)) + expected) / 2, rel=1e-2)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"collections": ("made-up:test",)},
            "made-up has no split 'test' to train on .found test, train; dev and test",
        ),
        ({"collections": ("made-up:dev",)}, "made-up has no split 'dev' to train on"),
        ({"collections": ("other",)}, "other has no split 'train' to train on .found test"),
        ({"collections": ()}, "learns from collections"),
        ({"collections": ("made-upp",)}, "did you mean 'made-up'"),
        (
            {"batch": 60},
            "40 queries of made-up have a relevant document and 3 others, and 4 of them are held out for evaluation; "
            "36 are left, fewer than one batch of 60; .* --set held_out_queries",
        ),
        ({"kind": "sparse-encoder"}, "kind is 'sparse-encoder'"),
        ({"late": 8}, "a cross-encoder from collections has no late"),
        ({"kind": "bi-encoder", "head_rate": 2.0}, "a bi-encoder from collections has no head_rate; take it out"),
        ({"kind": "bi-encoder", "view_pairs": ("a:b",)}, "a bi-encoder from collections has no view_pairs"),
        ({"kind": "bi-encoder", "collections": ()}, "a bi-encoder from views has no first_depth, n_negatives"),
        ({"lora": 4}, "a cross-encoder is trained whole"),
        ({"trained_share": 0.5}, "a cross-encoder is trained whole"),
        ({"n_negatives": 0}, "a cross-encoder ranks a document above others"),
        ({"negatives": "tags"}, 'negatives = "tags", but made-up has no tags'),
        ({"negatives": "judged"}, 'negatives = "judged", but no judgement of made-up is 0; write negatives = "first"'),
        ({"negatives": "hardest"}, "negatives is 'hardest'"),
    ],
)
def test_what_cannot_be_trained_is_refused(home: Path, changes: dict[str, Any], message: str) -> None:
    """With the recipe, what is wrong and what to do, before a model is loaded."""
    write_collection(home / "data" / "other", {"test": 3})
    with pytest.raises(MirblabError, match=message):
        train.train("mine", **changes)


def test_a_step_in_parts_has_the_gradient_of_the_whole(home: Path) -> None:
    """Each part holds the activations of a few queries only, and the losses add up."""
    for out, tokens in (("one", 8192), ("parts", 96)):
        train.train("mine", out=out, tokens_per_pass=tokens, dropout=False)
    loss_one, loss_parts = (train.training_log(out).loss.dropna() for out in ("one", "parts"))
    np.testing.assert_allclose(loss_one, loss_parts, rtol=1e-3)
    assert len(loss_one) == 6 and loss_one.nunique() == 6


def test_the_listwise_loss_is_that_of_a_softmax(home: Path) -> None:
    """By hand, with the first stage's score, and of each document by itself."""
    import torch

    scores, first = torch.tensor([[1.0, 0.0]]), np.array([[0.0, 1.0]], np.float32)
    assert float(list_loss(scores, first, 0.0, "listwise")) == pytest.approx(np.log(1 + np.exp(-1)))
    assert float(list_loss(scores, first, 1.0, "listwise")) == pytest.approx(np.log(2))
    by_itself = (np.log(1 + np.exp(-1)) + np.log(2)) / 2
    assert float(list_loss(scores, first, 0.0, "binary")) == pytest.approx(by_itself)


def test_an_encoders_recipe_does_not_depend_on_a_cross_encoders_fields() -> None:
    """So that models which were trained before there were cross-encoders are still found as finished."""
    assert not {"kind", "collections", "easy"} & set(Recipe("mine").determining())
    assert "view_pairs" not in recipe("minilm-cross").determining()
