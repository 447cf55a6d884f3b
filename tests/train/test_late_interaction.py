"""train.late: the MaxSim that is trained is that of the search, its gradient is right, and its loss falls."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tiny_encoder import make_model, sentences

from mirblab.core.errors import MirblabError
from mirblab.encoders import local
from mirblab.encoders.encoding import Encoder
from mirblab.retrieval import late_interaction
from mirblab.train import loss as training
from mirblab.train.loss import ranking_loss

late_loss = partial(ranking_loss, score=training.packed_scores)

LENGTHS = ([3, 1, 4, 0], [2, 5, 0, 3, 1])


def batch(lengths: list[int], d: int = 6, seed: int = 0, longest: int = 7) -> tuple[torch.Tensor, torch.Tensor]:
    """Return unit token vectors (n, longest, d) with noise in the padding, and their mask, in float64."""
    generator = torch.Generator().manual_seed(seed)
    tokens = torch.randn(len(lengths), longest, d, generator=generator, dtype=torch.float64)
    mask = torch.arange(longest) < torch.tensor(lengths)[:, None]
    mask = mask.gather(1, torch.stack([torch.randperm(longest, generator=generator) for _ in lengths]))
    return torch.nn.functional.normalize(tokens, dim=-1), mask


def packed(tokens: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return torch.cat([tokens * mask[..., None], mask[..., None]], dim=-1)


def test_scores_are_those_of_the_search():
    """Text by text, wherever the padding stands, texts without tokens included."""
    (a, am), (b, bm) = batch(LENGTHS[0]), batch(LENGTHS[1], seed=1)
    found = training.late_scores(a, am, b, bm)
    queries, docs = ([own[kept].numpy() for own, kept in zip(*side, strict=True)] for side in ((a, am), (b, bm)))
    slow = [[late_interaction.max_sim(query, doc) for doc in docs] for query in queries]
    np.testing.assert_allclose(found.numpy(), slow, atol=1e-12)
    assert training.late_scores(a[3:], am[3:], b, bm).tolist() == [[-1.0] * 5]


def test_scores_are_those_of_sentence_transformers():
    """Its MaxSim, divided by the number of query tokens."""
    from sentence_transformers.util.similarity import maxsim

    (a, am), (b, bm) = batch([3, 1, 4]), batch([2, 5, 3, 1], seed=1)
    theirs = maxsim(a, b, a_mask=am, b_mask=bm, length_normalize=True)
    np.testing.assert_allclose(training.late_scores(a, am, b, bm).numpy(), theirs.numpy(), atol=1e-6)


def test_the_loss_is_that_of_sentence_transformers_scores():
    """Cross-entropy over the batch, hard negatives as further columns."""
    from sentence_transformers.util.similarity import maxsim

    sides = [batch([3, 1, 4]), batch([2, 5, 3], seed=1), batch([4, 4], seed=2)]
    a, p, n = (packed(*side).float() for side in sides)
    columns = [maxsim(sides[0][0], s[0], a_mask=sides[0][1], b_mask=s[1], length_normalize=True) for s in sides[1:]]
    logits = 20 * torch.cat(columns, dim=1).float()
    expected = torch.nn.functional.cross_entropy(logits, torch.arange(3))
    none = np.zeros((3, 3), bool), np.zeros((3, 2), bool)
    found = late_loss(a, p, none[0], negatives=n, same_negatives=none[1])
    assert found.item() == pytest.approx(expected.item(), abs=1e-4)


def test_texts_of_one_token_have_the_loss_of_passage_vectors():
    """With one token a text, MaxSim is the cosine; what is left out is left out alike."""
    (a, am), (p, pm), (n, nm) = (batch([1] * 4, seed=seed, longest=1) for seed in range(3))
    same, others = np.eye(4, k=1, dtype=bool), np.eye(4, k=-1, dtype=bool)
    options: dict[str, Any] = {"scale": 5.0, "symmetric": True, "same_negatives": others}
    found = late_loss(packed(a, am), packed(p, pm), same, negatives=packed(n, nm), **options)
    plain = ranking_loss(a[:, 0], p[:, 0], same, negatives=n[:, 0], **options)
    assert found.item() == pytest.approx(plain.item(), abs=1e-6)


def test_the_gradient_agrees_with_finite_differences():
    """Of the loss, both ways, for every number of every token; padding has none."""
    (a, am), (p, pm) = batch(LENGTHS[0]), batch([2, 5, 3, 1], seed=1)
    a.requires_grad_(), p.requires_grad_()

    def loss(a: torch.Tensor, p: torch.Tensor) -> torch.Tensor:
        return late_loss(packed(a, am), packed(p, pm), np.zeros((4, 4), bool), scale=3.0, symmetric=True)

    assert torch.autograd.gradcheck(loss, (a, p), eps=1e-6, atol=1e-6)
    loss(a, p).backward()
    assert not a.grad[~am].any() and not p.grad[~pm].any() and a.grad[am].abs().sum() > 0.1


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_model(tmp_path_factory.mktemp("model") / "tiny")


@pytest.fixture
def model(folder: Path) -> Any:
    """Return the tiny model, loaded anew, without dropout."""
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(str(folder), device="cpu").eval()


def passes(model: Any, tokens: int = 10_000) -> training.TokenPasses:
    return training.TokenPasses(model, "tiny", tokens, "float32", length=24)


def test_passes_give_the_encoders_token_vectors(model: Any, folder: Path):
    """In the order of the texts, special tokens and padding left out, whatever the passes."""
    texts = [*sentences(9), ""]
    found = passes(model, tokens=60).vectors(texts).detach().numpy()
    assert found.shape == (10, 24, 17)
    encoder = Encoder("tiny", local.describe_folder(folder), folder)
    for row, own in zip(found, encoder.token_vectors(texts), strict=True):
        kept = row[row[:, -1] == 1, :-1]
        np.testing.assert_allclose(kept, own.reshape(kept.shape), atol=1e-5)
        assert not row[row[:, -1] == 0].any()
    with pytest.raises(MirblabError, match="tokens, padding is for 3"):
        training.TokenPasses(model, "tiny", 100, "float32", length=3).vectors(texts)


def test_loss_and_gradient_are_those_of_the_librarys_own_loss(model: Any):
    """MultiVectorMultipleNegativesRankingLoss, with MaxSim as a mean, the same weights, texts and hard negatives."""
    from sentence_transformers import MultiVectorEncoder
    from sentence_transformers.base.modules import Normalize
    from sentence_transformers.multi_vector_encoder.losses import MultiVectorMultipleNegativesRankingLoss
    from sentence_transformers.multi_vector_encoder.modules import MultiVectorMask
    from sentence_transformers.multi_vector_encoder.scoring import mean_colbert_scores

    anchors, positives, negatives = sentences(5), sentences(5, seed=1), sentences(5, seed=2)
    none = np.zeros((5, 5), bool)

    def loss_of(vectors: torch.Tensor) -> torch.Tensor:
        return late_loss(vectors[:5], vectors[5:10], none, negatives=vectors[10:], same_negatives=none)

    ours = passes(model).backward(anchors + positives + negatives, loss_of)
    weights = [weight for weight in model[0].parameters() if weight.grad is not None]
    gradients = [weight.grad.clone() for weight in weights]
    model.zero_grad()
    kept = [number for number in range(len(model.tokenizer)) if number not in model.tokenizer.all_special_ids]
    modules = [model[0], MultiVectorMask(keep_only_token_ids=kept), Normalize(module_input_name=local.TOKENS)]
    other = MultiVectorEncoder(modules=modules, device="cpu").eval()
    library = MultiVectorMultipleNegativesRankingLoss(other, scale=20.0, similarity_fct=mean_colbert_scores)
    # As a query, a text would keep its special tokens there, which the mask leaves out of documents only.
    theirs = library([{**other.preprocess(texts), "task": "document"} for texts in (anchors, positives, negatives)])
    theirs.backward()
    assert ours == pytest.approx(theirs.item(), abs=1e-5) and ours > 0.1 and len(gradients) > 10
    for weight, gradient in zip(weights, gradients, strict=True):
        np.testing.assert_allclose(weight.grad, gradient, atol=1e-5)


def test_scores_of_passes_are_those_of_the_search(model: Any, folder: Path):
    """Of exact strings, without gradients, more tokens than one block holds."""
    queries, docs = [*sentences(5), ""], sentences(90, seed=1)
    encoder = Encoder("tiny", local.describe_folder(folder), folder)
    sides = [encoder.token_vectors(texts) for texts in (queries, docs)]
    expected = [[late_interaction.max_sim(query, doc) for doc in sides[1]] for query in sides[0]]
    np.testing.assert_allclose(passes(model, tokens=60).scores(queries, docs), expected, atol=1e-5)


def test_cached_gradients_are_the_plain_ones(model: Any):
    """Pass by pass, with every weight of the model and of the layer."""
    training.add_token_layer(model, 4)
    texts = sentences(8)

    def loss_of(vectors: torch.Tensor) -> torch.Tensor:
        return late_loss(vectors[:4], vectors[4:], np.zeros((4, 4), bool))

    gradients = []
    for backward in (passes(model).backward, passes(model, tokens=40).cached_backward):
        model.zero_grad()
        loss = backward(texts, loss_of)
        gradients.append([weight.grad.clone() for weight in model.parameters() if weight.grad is not None])
    assert loss > 0 and len(gradients[0]) == len(gradients[1]) > 10
    for one, other in zip(*gradients, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)


def test_the_loss_falls_and_the_layer_is_kept_with_the_model(model: Any, folder: Path, tmp_path: Path):
    """Thirty steps of AdamW; then the folder is an ordinary one, whose token vectors are the learnt ones."""
    training.add_token_layer(model, 4, seed=1)
    first = model[1].linear.weight.detach().clone()
    optimiser = torch.optim.AdamW(model.parameters(), lr=2e-3)
    anchors, positives = sentences(8), [text[::-1] for text in sentences(8)]
    losses = []
    for _ in range(30):
        optimiser.zero_grad()
        loss_of = lambda v: late_loss(v[:8], v[8:], np.zeros((8, 8), bool), symmetric=True)  # noqa: E731
        losses.append(passes(model).backward(anchors + positives, loss_of))
        optimiser.step()
    assert losses[-1] < 0.5 * losses[0]
    assert (model[1].linear.weight - first).abs().max() > 1e-3
    model.save(str(tmp_path / "trained"), create_model_card=False)
    trained = tmp_path / "trained"
    changes = {"id": "late", "revision": local.folder_digest(trained)}
    made = Encoder("late", local.describe_folder(folder) | changes, trained)
    tokens = made.token_vectors(["prime ideal"])[0]
    assert tokens.shape == (2, 4)
    model.eval()
    with torch.no_grad():
        live = passes(model).vectors(["prime ideal"])[0].numpy()
    np.testing.assert_allclose(tokens, live[live[:, -1] == 1, :-1], atol=1e-5)


def test_a_layer_leaves_passage_vectors_as_they_are(model: Any, folder: Path):
    """And it is a random subspace before training, the same for the same seed."""
    before = model.encode(["prime ideal"])
    training.add_token_layer(model, 4, seed=1)
    np.testing.assert_array_equal(model.encode(["prime ideal"]), before)
    weight = model[1].linear.weight.detach().numpy()
    np.testing.assert_allclose(weight @ weight.T, np.eye(4), atol=1e-6)
    assert local.token_output(model) == training.TOKEN_OUTPUT
    for dimensions in (4, 17):
        with pytest.raises(MirblabError, match="take another base"):
            training.add_token_layer(model, dimensions)


@pytest.mark.parametrize("dimensions", [0, 17])
def test_a_layer_of_other_dimensions_is_refused(model: Any, dimensions: int):
    """With what is possible."""
    with pytest.raises(MirblabError, match="ask for 1 to 16 dimensions"):
        training.add_token_layer(model, dimensions)


def test_a_layer_in_the_place_of_the_hidden_states_counts_too(model: Any, folder: Path, tmp_path: Path):
    """As other libraries for late interaction keep theirs: its output overwrites what it reads."""
    from sentence_transformers.base.modules import Dense

    hidden_states = model.encode("prime ideal", output_value="token_embeddings")[1:-1].numpy()
    layer = Dense(16, 16, bias=False, activation_function=None, module_input_name=local.TOKENS)
    model.insert(1, layer)
    model.save(str(tmp_path / "other"), create_model_card=False)
    changes = {"id": "other", "revision": local.folder_digest(tmp_path / "other")}
    encoder = Encoder("other", local.describe_folder(folder) | changes, tmp_path / "other")
    found = encoder.token_vectors(["prime ideal"])
    expected = local.unit_vectors(hidden_states @ layer.linear.weight.detach().numpy().T)
    np.testing.assert_allclose(found[0], expected, atol=1e-5)


def test_a_recipe_with_late_trains_and_keeps_token_vectors(folder: Path, home: Path, monkeypatch):
    """From settings to a folder whose registry-like description knows both kinds of vectors; cached or not."""
    import pandas as pd

    from mirblab.train import training as whole
    from mirblab.train.recipes import Recipe

    monkeypatch.setenv("MIRBLAB_THREADS", "1")
    texts = sentences(24)
    rows = [(f"d{n}", text, text[::-1], "train" if n < 16 else "dev") for n, text in enumerate(texts)]
    table = pd.DataFrame(rows, columns=["id", "informal", "signature", "split"])
    plan = Recipe(
        "late-toy",
        base="tiny",
        view_pairs=("informal:signature",),
        batch=8,
        epochs=10,
        learning_rate=2e-3,
        late=4,
        max_length=24,
        warmup=0,
    )
    encoder = Encoder("tiny", local.describe_folder(folder), folder)
    monkeypatch.setattr(whole, "starting_encoder", lambda recipe: encoder)
    kept = whole.train(plan, table)
    log = whole.training_log("late-toy")
    losses = log.loss.dropna()
    assert losses.iloc[-4:].mean() < 0.8 * losses.iloc[:4].mean() and log["R@1"].notna().sum() == 2
    facts = local.describe_folder(kept)
    assert facts["dimensions"] == 16
    made = Encoder("late-toy", facts, kept)
    assert made.token_vectors(["prime ideal"])[0].shape == (2, 4) and made.vectors(["prime ideal"]).shape == (1, 16)
