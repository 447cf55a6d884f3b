"""A language model pretrained further: what is masked, BERT's loss, new tokens, and that a derived model keeps them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tiny_training import WORDS, kill_training

from mirblab import train
from mirblab.core import paths
from mirblab.core.errors import MirblabError
from mirblab.encoders import local
from mirblab.encoders.encoding import encoder
from mirblab.train import pretraining
from mirblab.train.model import build_language_model
from mirblab.train.pretraining import MaskedPasses, gather_sentences, language_loss, split_sentences
from mirblab.train.recipes import recipe

RECIPES = """
[mine]
kind = "language-model"
base = "tiny"
collections = ["made-up"]
batch = 4
steps = 6
warmup = 2
held_out_queries = 4
max_length = 40
learning_rate = 1e-2
precision = "float32"
pretokens = "pya0"
new_tokens = 3

[derived]
base = "mine"
collections = ["made-up:train"]
n_negatives = 1
batch = 4
steps = 2
held_out_queries = 0
"""
REST = 'pooling = "mean"\nnormalise = true\ndtype = "float32"\ndimensions = 16\nmax_length = 48\nlicence = "MIT"\n'


@pytest.fixture
def home(home: Path, own: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, tiny: Path) -> Path:
    """Give the test a home with documents of three sentences, a formula in each, and the recipes."""
    rng = np.random.default_rng(0)
    monkeypatch.setenv("MIRBLAB_THREADS", "1")
    prompts = 'prompts = { query = "", document = "" }\n'
    own("encoders", f'[tiny]\nid = "{tiny}"\nrevision = ""\n{REST}{prompts}')
    own("trained", RECIPES)
    folder = home / "data" / "made-up"
    (folder / "qrels").mkdir(parents=True)
    rows = [
        ". ".join(
            f"{' '.join(rng.choice(WORDS, 5)).capitalize()} $\\frac a{digit}$" for digit in rng.integers(9, size=3)
        )
        for _ in range(30)
    ]
    queries = [" ".join(rng.choice(WORDS, 4)) for _ in range(30)]
    for stem, texts, letter in (("corpus", rows, "d"), ("queries", queries, "q")):
        lines = [json.dumps({"_id": f"{letter}{at}", "text": text}) for at, text in enumerate(texts)]
        (folder / f"{stem}.jsonl").write_text("\n".join([*lines, ""]))
    for split, places in (("train", range(24)), ("test", range(24, 30))):
        judged = [f"q{at}\td{at}\t1" for at in places]
        (folder / "qrels" / f"{split}.tsv").write_text("\n".join(["query-id\tcorpus-id\tscore", *judged, ""]))
    return home


def weights(model: Path) -> list[bytes]:
    return [path.read_bytes() for path in sorted(model.rglob("*.safetensors"))]


def language_model(changes: dict[str, Any] | None = None) -> tuple[Any, Any, Any]:
    """Return the recipe, its sentences and the model before the training."""
    plan, base = recipe("mine", **(changes or {})), encoder("tiny")
    tokenizer = local.load_anew(base.name, base.entry, base.folder).tokenizer
    sentences = gather_sentences(plan, tokenizer)
    return plan, sentences, build_language_model(plan, base, sentences.new_words)


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("One. Two! Three?", ["One.", "Two!", "Three?"]),
        ("See e.g. this, i.e. that", ["See e.g. this, i.e. that"]),
        (r"Let $x = 1. A$ be. \[y. B\] Then $z$", ["Let $x = 1. A$ be.", "$y. B$ Then $z$"]),
        ("A title\n\nand a text", ["A title", "and a text"]),
        ("", []),
    ],
)
def test_sentences_end_outside_of_formulas(text: str, sentences: list[str]) -> None:
    """At a full stop before a capital or a formula, and at a blank line."""
    assert split_sentences(text) == sentences


def test_the_loss_is_that_of_bert(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of transformers' BertForPreTraining with the same weights, masked tokens and order of sentences."""
    from transformers import BertForPreTraining

    plan, sentences, model = language_model({"dropout": False})
    chosen: list[torch.Tensor] = []
    choose = MaskedPasses._choose
    monkeypatch.setattr(MaskedPasses, "_choose", lambda self, ids: chosen.append(choose(self, ids)) or chosen[-1])
    inputs: list[dict[str, torch.Tensor]] = []
    model[0].register_forward_pre_hook(lambda _, given: inputs.append(dict(given[0])))
    model.eval()
    pairs = sentences.draw(plan, 0)
    passes = MaskedPasses(model, "mine", 10_000, "float32", 0.3)
    rows = passes.vectors(pairs)
    theirs = BertForPreTraining(model[0].model.config).eval()
    theirs.bert.load_state_dict(model[0].model.state_dict(), strict=False)
    heads, own = theirs.cls.predictions, model[-1]
    for target, source in (
        (heads.transform.dense, own.words[0]), (heads.transform.LayerNorm, own.words[2]),
        (theirs.bert.pooler.dense, own.next[0]), (theirs.cls.seq_relationship, own.next[2]),
    ):  # fmt: skip
        target.load_state_dict(source.state_dict())
    heads.bias.data = own.bias.data
    heads.decoder.weight = theirs.bert.embeddings.word_embeddings.weight
    heads.decoder.bias = heads.bias
    order = passes.split(pairs)[0]
    follows = torch.tensor([0 if pairs[at][2] else 1 for at in order])
    names = ("input_ids", "attention_mask", "token_type_ids")
    given = {name: inputs[-1][name] for name in names}
    labels = chosen[-1].masked_fill(chosen[-1] == -1, -100)
    expected = theirs(**given, labels=labels, next_sentence_label=follows)
    torch.testing.assert_close(language_loss(plan)(rows), expected.loss, rtol=1e-4, atol=1e-5)
    guessed = expected.prediction_logits.argmax(-1)[labels != -100] == labels[labels != -100]
    assert rows[:, 1].sum() == (labels != -100).sum() and rows[:, 2].sum() == guessed.sum()
    assert rows[:, 4].sum() == (expected.seq_relationship_logits.argmax(-1) == follows).sum()
    of_words = theirs(**given, labels=labels, next_sentence_label=None)
    masked = torch.nn.functional.cross_entropy(of_words.prediction_logits[labels != -100], labels[labels != -100])
    alone = language_loss(recipe("mine", next_sentence=False))(rows)
    torch.testing.assert_close(alone, masked, rtol=1e-4, atol=1e-5)


def test_what_is_masked(home: Path) -> None:
    """Never a special token, of each text at least one; of the chosen ones four fifths are hidden."""
    _, _, model = language_model()
    passes = MaskedPasses(model, "mine", 10_000, "float32", 0.2)
    tokens = model.tokenizer([" ".join(WORDS)] * 200 + ["ring"], padding=True, return_tensors="pt")["input_ids"]
    targets = passes._choose(tokens)
    masked, chosen = passes._mask(tokens, targets), targets != -1
    special = torch.isin(tokens, torch.tensor(model.tokenizer.all_special_ids))
    assert not (chosen & special).any() and chosen.any(dim=1).all()
    assert (masked[~chosen] == tokens[~chosen]).all() and (targets[chosen] == tokens[chosen]).all()
    assert 0.17 < (chosen.sum() / (~special).sum()).item() < 0.23
    assert 0.76 < (masked[chosen] == model.tokenizer.mask_token_id).float().mean() < 0.84
    assert 0.07 < (masked[chosen] == tokens[chosen]).float().mean() < 0.14  # some random tokens are the same


def test_half_of_the_second_sentences_are_of_other_documents(home: Path) -> None:
    """And the others are the next one."""
    plan, sentences, _ = language_model({"batch": 40})
    at = {
        sentence: (number, place)
        for number, own in enumerate(sentences.documents)
        for place, sentence in enumerate(own)
    }
    pairs = [pair for step in range(20) for pair in sentences.draw(plan, step)]
    for first, second, is_next in pairs:
        (document, place), (other, where) = at[first], at[second]
        assert (other, where) == (document, place + 1) if is_next else other != document
    assert 0.45 < np.mean([is_next for *_, is_next in pairs]) < 0.55
    assert len(sentences.held_out) == 4 and len(sentences.documents) == 26
    assert all(is_next for *_, is_next in sentences.draw(recipe("mine", next_sentence=False), 0))


def test_a_new_token_begins_as_the_mean_of_its_pieces(home: Path) -> None:
    """And texts become shorter by it."""
    _, sentences, model = language_model()
    assert sentences.new_words[:2] == ["$frac$", "$a$"] and len(sentences.new_words) == 3
    base = encoder("tiny")
    plain = local.load_anew(base.name, base.entry, base.folder)
    pieces = plain.tokenizer("$frac$", add_special_tokens=False)["input_ids"]
    own = model.tokenizer("ring $frac$ field", add_special_tokens=False)["input_ids"]
    assert len(pieces) > 1 and len(own) == 3
    old, new = (one[0].model.get_input_embeddings().weight.detach() for one in (plain, model))
    torch.testing.assert_close(new[own[1]], old[pieces].mean(dim=0))
    torch.testing.assert_close(new[: len(old)], old)


def test_a_new_token_is_no_part_of_a_word(home: Path) -> None:
    """Without dollars a symbol's name begins many words."""
    plan, base = recipe("mine", pretokens="pya0-plain"), encoder("tiny")
    model = build_language_model(plan, base, ["ring", "no"])
    assert "no" not in model.tokenizer.tokenize("norm nox") and "no" in model.tokenizer.tokenize("norm no")


def test_it_has_the_prompts_of_its_base(home: Path) -> None:
    """And splits of collections are refused, since it reads all documents; a short sentence is no formula."""
    file = home / "registry" / "encoders.toml"
    file.write_text(file.read_text().replace('query = ""', 'query = "ask : "'))
    assert encoder(train.train("mine", out="asked")).strings(["every ring has a norm"], "query") == [
        "ask : every ring has a norm"
    ]
    with pytest.raises(MirblabError, match="write 'made-up' in place of 'made-up:train'"):
        train.train("mine", collections=["made-up:train"], out="part")
    assert pretraining._rewriter("pya0")("Why?") == "why?"


def test_it_learns_and_is_an_encoder(home: Path) -> None:
    """The same bytes after kill -9; it keeps its tokens, not its layers; what is trained from it as well."""
    whole = train.train("mine", steps=30, out="whole")
    log = train.training_log("whole")
    assert log.loss.iloc[-6:].mean() < log.loss.dropna().iloc[:6].mean()
    assert log.perplexity.dropna().iloc[-1] < log.perplexity.dropna().iloc[0]
    assert {"masked right", "next right"} <= set(log.columns)
    losses, width = log.loss.dropna(), log.attrs["window"]
    assert log.smoothed[losses.index[width // 2]] == pytest.approx(losses.iloc[:width].mean())
    kill_training("mine", steps=30, out="cut")
    assert weights(train.train("mine", steps=30, out="cut")) == weights(whole)
    card = (whole / "README.md").read_text()
    assert "masked words and whether a sentence follows" in card and "negatives ranking" not in card
    assert "perplexity" in card and "pairs of sentences of 4 documents" in card
    made = encoder(whole)
    assert made.strings([r"Ring $\frac12$"]) == ["ring $frac$"] and made.key["pretokens"] == "pya0"
    assert made.vectors(["ring $a$"]).shape == (1, 16)
    train.train("mine")
    derived = encoder(train.train("derived"))
    assert derived.strings([r"$\frac12$"]) == ["$frac$"] and derived.key["pretokens"] == "pya0"
    for one in (made, derived):  # the tokens are kept, the layers of pretraining are not
        model = local.load_anew(one.name, one.entry, one.folder)
        assert model.tokenizer.tokenize("$frac$") == ["$frac$"] and len(model) == 3
    with pytest.raises(MirblabError, match="reads rewritten formulas"):
        train.train("derived", kind="cross-encoder", out="reranker")


def test_an_entry_that_would_read_other_texts_is_refused(home: Path) -> None:
    """Its vectors would be of texts that the model never saw."""
    train.train("mine")
    file = home / "registry" / "encoders.toml"
    file.write_text(f'{file.read_text()}[mine]\ntrained = true\n{REST}prompts = {{ query = "", document = "" }}\n')
    with pytest.raises(MirblabError, match=r"trained with pretokens = 'pya0', and its entry has ''"):
        encoder("mine")
    file.write_text(f'{file.read_text()}pretokens = "pya0"\n')
    assert encoder("mine").folder == paths.models() / "mine"
    with pytest.raises(MirblabError, match=r"its base has pretokens = 'pya0'; write pretokens = \"pya0\""):
        train.train("mine", base="mine", pretokens="", new_tokens=0, out="again")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"collections": []}, "a language-model learns from collections"),
        ({"pretokens": ""}, 'write pretokens = "pya0"'),
        ({"mask_share": 1.0}, "mask_share is 1.0"),
        ({"lora": 4}, "trained whole"),
        ({"scale": 3.0}, "a language-model from collections has no scale"),
        ({"kind": "bi-encoder"}, "has no pretokens, new_tokens"),
    ],
)
def test_a_wrong_recipe_is_refused(home: Path, fields: dict[str, Any], message: str) -> None:
    """Before anything is loaded."""
    with pytest.raises(MirblabError, match=message):
        recipe("mine", **fields)


def test_too_few_sentences_are_refused(home: Path) -> None:
    """With the number that was found."""
    with pytest.raises(MirblabError, match=r"have 52 pairs of sentences, fewer than one batch of 60"):
        train.train("mine", batch=60)
