"""train: recipes, plans, gradients, checkpoints and what is kept, on tiny models with random weights."""

from __future__ import annotations

import errno
import json
import shutil
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tiny_training import kill_training, made_up_views

from mirblab import __version__, train
from mirblab.core import atomic_files, paths
from mirblab.core.errors import MirblabError, StorageError
from mirblab.encoders import local
from mirblab.encoders.encoding import encoder
from mirblab.retrieval.systems import system
from mirblab.train import command, loop, training
from mirblab.train.loop import Journal, newest_checkpoint, read_log, write_checkpoint
from mirblab.train.loss import Passes, ranking_loss, same_texts
from mirblab.train.pairs import BatchPlan, gather_texts, torch_seed
from mirblab.train.recipes import Recipe, check_recipe
from mirblab.train.validation import CurrentModel


@pytest.fixture
def home(home: Path, own: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, tiny: Path) -> Path:
    """Give the test a home of its own, whose registry has the tiny model as `tiny` and a recipe `mine`."""
    monkeypatch.setenv("MIRBLAB_THREADS", "1")
    rest = 'pooling = "mean"\nnormalise = true\ndtype = "float32"\ndimensions = 16\nmax_length = 48\n'
    rest += 'prompts = { query = "", document = "" }\nlicence = "MIT"\n'
    mine = f"[mine]\ntrained = true\n{rest}[still]\ntrained = true\n{rest.replace('mean', 'none')}"
    own("encoders", f'[tiny]\nid = "{tiny}"\nrevision = ""\n{rest}{mine}')
    shape = 'batch = 6\nmax_length = 16\nwarmup = 2\nlearning_rate = 1e-2\nprecision = "float32"\nevaluate_rows = 20\n'
    shape += "checkpoint_every = 0\nepochs = 2\ntokens_per_pass = 32\n"
    own("trained", f'[mine]\nbase = "tiny"\nlabel = "Mine"\n{shape}[still]\nbase = "static:tiny"\n{shape}')
    return home


def weights(model: Path) -> bytes:
    return (model / "model.safetensors").read_bytes()


def test_a_trained_model_is_an_encoder_with_a_card(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From a recipe to a folder that sentence-transformers loads, with its log and what it was made of.

    A checkout that nobody installed can train, too.
    """
    from sentence_transformers import SentenceTransformer

    find = metadata.Distribution.from_name

    def find_others(name: str) -> metadata.Distribution:
        if name == "mirblab":
            raise metadata.PackageNotFoundError(name)
        return find(name)

    monkeypatch.setattr(metadata.Distribution, "from_name", find_others)
    views = made_up_views()
    with pytest.raises(MirblabError, match="encoder 'mine' is not trained yet; run: mirblab train mine"):
        encoder("mine")
    made = train.train("mine", views)
    assert made == paths.models() / "mine"
    found = encoder("mine")
    texts = views.informal.tolist()[:5]
    plain = SentenceTransformer(str(made), device="cpu")
    assert plain.max_seq_length == 48
    np.testing.assert_allclose(found.vectors(texts), plain.encode(texts), atol=1e-6)
    assert not np.allclose(found.vectors(texts), encoder("tiny").vectors(texts), atol=1e-2)
    assert found.key["model"] == "mine" and len(found.key["revision"]) == 32
    log = train.training_log("mine")
    assert log.step.tolist() == [0, *range(1, 11), 10] and log.loss.notna().sum() == 10
    assert log.loss.dropna().iloc[-3:].mean() < log.loss.dropna().iloc[:3].mean()
    assert log["R@5"].notna().sum() == 2
    card = (made / "README.md").read_text()
    assert card.startswith("---\n") and 'license: "mit"' in card and "| 10 |" in card and "R@5" in card
    assert json.loads((made / "recipe.json").read_text())["fingerprint"] in card
    assert str(home) not in card and f"mirblab {__version__}" in card
    assert not list((paths.models() / ".training" / "mine").glob("step-*"))


def passes(name: str = "tiny", tokens: int = 32) -> Passes:
    """Return the tiny model in float32, without dropout, in passes of a few texts."""
    from mirblab.train import model

    recipe = check_recipe("mine", {"base": name, "max_length": 16})
    return Passes(model.build_model(recipe, encoder("tiny")).eval(), "tiny", tokens, "float32")


def gradients(model: Any) -> dict[str, np.ndarray]:
    return {name: one.grad.numpy().copy() for name, one in model.named_parameters() if one.grad is not None}


def assert_close(one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> None:
    assert set(one) == set(other) and len(one) > 10
    for name in one:
        np.testing.assert_allclose(one[name], other[name], rtol=1e-5, atol=1e-5, err_msg=name)


@pytest.mark.parametrize("way", ["backward", "cached_backward"])
@pytest.mark.parametrize("symmetric", [False, True])
def test_gradients_are_those_of_sentence_transformers(home: Path, way: str, symmetric: bool) -> None:
    """With and without the way back and hard negatives, at once and cached, whatever passes texts share."""
    from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

    views, ours, theirs = made_up_views(8, seed=1), passes(), passes()
    anchors, positives = views.informal.tolist(), views.signature.tolist()
    negatives = [] if symmetric else views.type.tolist()[:2] * 4
    assert not same_texts(anchors, positives).any()
    sides = {"directions": ("query_to_doc", "doc_to_query"), "partition_mode": "per_direction"} if symmetric else {}
    columns = [anchors, positives, *([negatives] if negatives else [])]
    loss = MultipleNegativesRankingLoss(theirs.model, scale=20.0, **sides)
    expected = loss([theirs.model.preprocess(column) for column in columns], None)
    expected.backward()
    recipe = Recipe("mine", symmetric=symmetric)
    found = getattr(ours, way)(anchors + positives + negatives, loop._loss_of(recipe, anchors, positives, negatives))
    assert len(ours.split(anchors + positives)) > 2
    assert found == pytest.approx(expected.item(), abs=1e-5)
    assert_close(gradients(ours.model), gradients(theirs.model))


def test_cached_gradients_agree_with_dropout(home: Path) -> None:
    """The second pass draws what the first drew."""
    import torch

    found = []
    for way in ("backward", "cached_backward"):
        ours = passes()
        ours.model.train()
        torch.manual_seed(3)
        texts = made_up_views(8).informal.tolist()
        getattr(ours, way)(texts, loop._loss_of(Recipe("mine"), texts[:4], texts[4:], []))
        found.append(gradients(ours.model))
    assert_close(*found)
    still = passes()
    texts = made_up_views(8).informal.tolist()
    still.backward(texts, loop._loss_of(Recipe("mine"), texts[:4], texts[4:], []))
    name = "0.model.embeddings.word_embeddings.weight"
    assert not np.allclose(found[0][name], gradients(still.model)[name], atol=1e-4)


def test_vectors_come_back_in_the_order_of_the_texts(home: Path) -> None:
    """Texts of other lengths share a pass, or none; each gets the vector that it has alone."""
    ours = passes()
    texts = made_up_views(9).informal.tolist()
    found = ours.vectors(texts).detach().numpy()
    alone = np.concatenate([ours.vectors([text]).detach().numpy() for text in texts])
    np.testing.assert_allclose(found, alone, atol=1e-6)


def test_equal_texts_are_no_wrong_answers() -> None:
    """By hand: of three pairs the first two have one target, so only the third is a negative of theirs."""
    import torch

    anchors = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    same = same_texts(["p", "q", "r"], ["x", "x", "y"])
    loss = ranking_loss(anchors, anchors, same, scale=1.0)
    first = -np.log(np.e / (np.e + 1))
    last = -np.log(np.e / (np.e + 2))
    assert loss.item() == pytest.approx((2 * first + last) / 3, abs=1e-6)
    # a positive that is the text of another anchor
    assert same_texts(["p", "q"], ["q", "z"]).tolist() == [[False, False], [True, False]]


def test_a_plan_depends_on_seed_and_step_alone() -> None:
    """Epochs are permutations, views change from step to step, and absent views are never drawn."""
    usable = np.array([[True, True], [False, True]] * 10)
    plan, again = BatchPlan(usable, 4, seed=5), BatchPlan(usable, 4, seed=5)
    later = again.draw(7)
    for step in range(10):
        draw = plan.draw(step)
        assert usable[draw.rows, draw.pairs].all()
        assert step != 7 or (draw.rows.tolist(), draw.pairs.tolist()) == (later.rows.tolist(), later.pairs.tolist())
    epochs = [np.concatenate([plan.draw(step).rows for step in range(start, start + 5)]) for start in (0, 5)]
    assert all(sorted(rows) == list(range(20)) for rows in epochs) and epochs[0].tolist() != epochs[1].tolist()
    assert BatchPlan(usable, 4, seed=6).draw(0).rows.tolist() != plan.draw(0).rows.tolist()
    draws = [plan.draw(step) for step in range(200)]
    assert {pair for draw in draws for pair in draw.pairs[draw.rows == 0]} == {0, 1}
    assert torch_seed(plan.seed, 1) != torch_seed(plan.seed, 2)


def test_neighbours_share_a_batch() -> None:
    """Every epoch has every row once; groups of neighbours stay whole and begin elsewhere in the next epoch."""
    plan = BatchPlan(np.ones((21, 1), bool), 7, seed=0, together=7)
    epochs = [[sorted(plan.draw(step).rows.tolist()) for step in range(at, at + 3)] for at in (0, 3)]
    assert all(sorted(sum(batches, [])) == list(range(21)) for batches in epochs) and epochs[0] != epochs[1]
    close = [np.diff(sorted(plan.draw(step).rows)) for step in range(30)]
    assert np.mean(np.concatenate(close) == 1) > 0.8
    apart = [np.diff(sorted(BatchPlan(np.ones((21, 1), bool), 7, 0).draw(step).rows)) for step in range(30)]
    assert np.mean(np.concatenate(apart) == 1) < 0.5


def test_neighbours_are_rows_of_one_module(home: Path) -> None:
    """By module, then by id, whatever their order in the table was; a table with neither is refused."""
    views = made_up_views().assign(module=lambda rows: [f"m{place % 3}" for place in range(len(rows))])
    shuffled = views.sample(frac=1, random_state=1)
    found = gather_texts(train.recipe("mine", together=4, near=0.0), shuffled).columns["informal"]
    expected = views[views.split == "train"].sort_values(["module", "id"]).informal.tolist()
    assert found == expected
    with pytest.raises(MirblabError, match="together = 4.*no module and no id"):
        gather_texts(train.recipe("mine", together=4, near=0.0), views.drop(columns=["module", "id"]))


def test_token_embeddings_can_learn_faster(home: Path, tiny: Path) -> None:
    """With ten times the rate, the first step of AdamW moves the embeddings of seen words ten times as far."""
    from safetensors.torch import load_file

    views, moved = made_up_views(), {}
    start = load_file(str(tiny) + "/model.safetensors")
    for rate in (1.0, 10.0):
        out = f"rate-{rate:.0f}"
        made = train.train("mine", views, out=out, embedding_rate=rate, steps=1, clip=0.0, evaluate_rows=0)
        after = load_file(made / "model.safetensors")
        step = {name: (after[name] - start[name]).abs().max().item() for name in after}
        moved[rate] = [next(step[name] for name in step if part in name) for part in ("word_emb", "layer.0")]
    (slow, body), (fast, again) = moved[1.0], moved[10.0]
    assert fast == pytest.approx(10 * slow, rel=0.01) and again == pytest.approx(body, rel=0.01)


def test_a_base_can_begin_with_the_token_embeddings_of_a_static_model(home: Path, tiny: Path) -> None:
    """They are moved by the share, keep their lengths, and nothing else moves; what is missing is trained first."""
    from safetensors.torch import load_file
    from torch.nn.functional import cosine_similarity

    views, still = made_up_views(), paths.models() / "still"
    train.train("still", views, learning_rate=0.1)
    learned, begun = (
        load_file(still / "model.safetensors")["embedding.weight"],
        load_file(tiny / "model.safetensors"),
    )
    found = {}
    for share in (0.5, 1.0):
        more = {"tokens_from": "still", "tokens_share": share, "steps": 1, "learning_rate": 1e-12}
        found[share] = load_file(
            train.train("mine", views, out=f"share-{share}", evaluate_rows=0, **more) / "model.safetensors"
        )
    name = next(name for name in begun if "word_embeddings" in name)
    own, half, all_, learned = (
        one[1:] for one in (begun[name], found[0.5][name], found[1.0][name], learned)
    )  # 0: padding
    np.testing.assert_allclose(cosine_similarity(all_, learned), 1, atol=1e-5)
    np.testing.assert_allclose(cosine_similarity(half, own + learned), 1, atol=1e-5)
    np.testing.assert_allclose(half.norm(dim=1), own.norm(dim=1), rtol=1e-5)
    for other in set(begun) - {name}:
        np.testing.assert_allclose(found[1.0][other], begun[other], atol=1e-6)


def test_a_static_model_to_begin_with_is_trained_where_it_is_missing(home: Path) -> None:
    """Once; another one of that name later means another training; what fits not is refused."""
    more = {"data": "mini-views", "steps": 2, "evaluate_rows": 0}
    with pytest.raises(MirblabError, match="tokens_from is 'mine', whose base is 'tiny'; name a recipe whose base is"):
        train.train("mine", tokens_from="mine", **more)
    registry, static = home / "registry" / "trained.toml", 'base = "static:tiny"\n'
    registry.write_text(registry.read_text().replace(static, f'{static}data = "mini-views"\nsteps = 2\n'))
    train.train("mine", tokens_from="still", **more)
    made = weights(paths.models() / "still")
    train.train("mine", tokens_from="still", **more)
    assert weights(paths.models() / "still") == made
    train.train("still", force=True, seed=1)
    with pytest.raises(MirblabError, match="of another training: tokens_revision was"):
        train.train("mine", tokens_from="still", **more)
    with pytest.raises(MirblabError, match="'mine' is no static embedding; train one with base = 'static:tiny'"):
        train.train("mine", out="other", tokens_from="mine", **more)


@pytest.mark.parametrize("more", [{}, {"late": 4}])
def test_what_is_kept_can_be_a_mean_with_the_base(home: Path, tiny: Path, more: dict[str, Any]) -> None:
    """Of its own weights and the trained ones; the evaluation after the last step is that of the mean."""
    from safetensors.torch import load_file

    views, base = made_up_views(), load_file(tiny / "model.safetensors")
    whole, part = (train.train("mine", views, out=f"part-{share}", trained_share=share, **more) for share in (1, 0.25))
    ends, mean = load_file(whole / "model.safetensors"), load_file(part / "model.safetensors")
    for name, own in base.items():
        np.testing.assert_allclose(mean[name], own + 0.25 * (ends[name] - own), atol=1e-6, err_msg=name)
    assert any(not np.allclose(ends[name], own, atol=1e-3) for name, own in base.items())
    logs = [train.training_log(f"part-{share}") for share in (1, 0.25)]
    assert logs[0].loss.dropna().tolist() == logs[1].loss.dropna().tolist()
    assert logs[0].RR.dropna().iloc[-1] != logs[1].RR.dropna().iloc[-1]


def test_a_static_model_learns_only_tokens_that_its_texts_have(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """To the same bytes and measures as with all, although the evaluation has others."""
    views = made_up_views()
    views.loc[views.split == "dev", "informal"] += " [MASK]"
    views = views.assign(signature=views.signature.where(views.split == "dev", views.type))
    sizes: list[int] = []
    state = loop.training_state
    monkeypatch.setattr(
        loop,
        "training_state",
        lambda *given: sizes.append(len(next(iter(loop.trained_parameters(given[0]).values())))) or state(*given),
    )
    few = train.train("mine", views, base="static:tiny", evaluate_every=2, out="few")
    monkeypatch.setattr("mirblab.train.training.train_used_tokens", lambda *_: None)
    whole = train.train("mine", views, base="static:tiny", evaluate_every=2, out="whole")
    assert (few / "model.safetensors").read_bytes() == (whole / "model.safetensors").read_bytes()
    assert sizes[0] < sizes[-1]  # embeddings that were trained
    logs = [train.training_log(name).drop(columns=["seconds", "pairs_per_second"]) for name in ("few", "whole")]
    pd.testing.assert_frame_equal(*logs)


def test_a_trained_model_has_the_prompts_of_its_base(home: Path) -> None:
    """An instruction stands before a query only where the base was made for one, and an unread one is refused."""
    with pytest.raises(MirblabError, match=r"query prompt of its base tiny has no \{instruction\}"):
        train.train("mine", made_up_views(), instruction="Find it.", out="other")
    plain = train.train("mine", made_up_views(), out="plain")
    assert encoder(plain).strings(["a"], "query", "Find it.") == ["a"]
    entries = home / "registry" / "encoders.toml"
    entries.write_text(entries.read_text().replace('query = ""', 'query = "do {instruction} : "', 1))
    made = train.train("mine", made_up_views(), instruction="Find it.", out="told")
    assert encoder(made).strings(["a"], "query", "Find it.") == ["do Find it. : a"]


@pytest.mark.parametrize("base", ["tiny", "static:tiny"])
def test_a_trained_model_makes_inputs_as_its_base_does(home: Path, base: str) -> None:
    """Also without an instruction, between prompt and text and behind it, by its folder and by an entry of its own.

    A model and a checkpoint of an older version, which did not record that, are of the same training.
    """
    entries, name = home / "registry" / "encoders.toml", "still" if ":" in base else "mine"
    more = 'without_instruction = "look : "\nlead = { document = " " }\nsuffix = { query = " set" }\n[mine]'
    own = entries.read_text().replace('query = ""', 'query = "do {instruction} : "').replace("[mine]", more)
    entries.write_text(own)
    made = train.train(name, made_up_views(), evaluate_rows=0)
    expected = encoder("tiny")
    assert expected.strings(["a"], "query") == ["look : a set"] and expected.strings(["a"]) == [" a"]
    for found in (encoder(name), encoder(made)):
        for role, instruction in (("query", ""), ("query", "Find it."), ("document", "")):
            assert found.strings(["a"], role, instruction) == expected.strings(["a"], role, instruction)
    identity = json.loads((made / "recipe.json").read_text())
    older = {field: value for field, value in identity.items() if field not in local.INPUTS}
    training.store_model(name, local.load_anew(found.name, found.entry, made), "", older)
    assert training.is_finished(name, identity) and encoder(made).strings(["a"]) == ["a"]
    write_checkpoint(home, 3, {}, older)
    checkpoint = newest_checkpoint(home, identity)
    assert checkpoint is not None and checkpoint.step == 3


def test_a_trained_model_leaves_out_prompts_that_its_base_is_used_without(home: Path, tiny: Path) -> None:
    """They are in the base's folder, and its entry has none."""
    own = shutil.copytree(tiny, home / "prompted")
    config = json.loads((own / "config_sentence_transformers.json").read_text())
    config["prompts"] = {"query": "ask : ", "document": ""}
    (own / "config_sentence_transformers.json").write_text(json.dumps(config))
    entries = home / "registry" / "encoders.toml"
    entries.write_text(entries.read_text().replace(str(tiny), str(own)))
    assert encoder(own).strings(["a"], "query") == ["ask : a"] and encoder("tiny").strings(["a"], "query") == ["a"]
    made = train.train("mine", made_up_views(), evaluate_rows=0)
    assert encoder(made).strings(["a"], "query") == ["a"]


def test_dropout_can_be_left_out(home: Path) -> None:
    """With it the vectors of a text differ from pass to pass while the model is trained, without it they do not."""
    from mirblab.train.model import build_model

    for is_kept in (True, False):
        model = build_model(
            check_recipe("mine", {"base": "tiny", "max_length": 16, "dropout": is_kept}), encoder("tiny")
        )
        own = Passes(model.train(), "tiny", 32, "float32")
        one, other = (own.vectors(["ring field map"]).detach().numpy() for _ in range(2))
        assert np.array_equal(one, other) != is_kept


def test_mixed_batches_are_whole_and_evenly_spread() -> None:
    """A quarter of the steps, each source in its own epochs."""
    plan = BatchPlan(np.ones((8, 1), bool), 4, seed=0, n_mixed=4, share=0.25)
    draws = [plan.draw(step) for step in range(16)]
    assert [draw.is_mixed for draw in draws] == [False, False, False, True] * 4
    assert all(sorted(draw.rows) == [0, 1, 2, 3] for draw in draws if draw.is_mixed)
    main = [draw.rows for draw in draws if not draw.is_mixed]
    assert all(sorted(np.concatenate(main[at : at + 2])) == list(range(8)) for at in range(0, 12, 2))
    larger = BatchPlan(np.ones((8, 1), bool), 4, seed=0, n_mixed=12, share=0.25)
    mixed = [larger.draw(step).rows for step in range(3, 48, 4)]
    assert all(sorted(np.concatenate(mixed[at : at + 3])) == list(range(12)) for at in range(0, 12, 3))


def interrupted(at: int, error: BaseException) -> Callable[[CurrentModel, int], dict[str, float]]:
    """Return an evaluation that raises at one step."""

    def evaluate(model: CurrentModel, step: int) -> dict[str, float]:
        if step == at:
            raise error
        return {"norm": float(np.linalg.norm(model.vectors(["ring map"])))}

    return evaluate


@pytest.mark.parametrize(
    ("more", "at"),
    [
        ({}, 6),
        ({"cached": True, "precision": "bfloat16"}, 6),
        ({"base": "static:tiny"}, 6),
        ({"trained_share": 0.5}, 10),
    ],
)
def test_a_killed_run_ends_with_the_same_bytes(home: Path, more: dict[str, Any], at: int) -> None:
    """With dropout, at a step between two checkpoints, with the optimiser's state and the log."""
    views = made_up_views()
    whole = train.train("mine", views, out="whole", evaluate=interrupted(-1, OSError()), evaluate_every=3, **more)
    often = {"evaluate_every": 3, "checkpoint_every": 1e-9} | more
    with pytest.raises(OSError, match="pulled"):
        train.train("mine", views, evaluate=interrupted(at, OSError("pulled")), **often)
    left = sorted(path.name for path in training.workshop_folder("mine").glob("step-*"))
    assert left == [f"step-{step:08d}.safetensors" for step in (at - 2, at - 1)]
    assert not (paths.models() / "mine").exists()
    made = train.train("mine", views, evaluate=interrupted(-1, OSError()), **often)
    assert weights(made) == weights(whole)
    one, other = train.training_log("mine"), train.training_log("whole")
    columns = ["step", "loss", "learning_rate", "norm"]
    pd.testing.assert_frame_equal(one[columns], other[columns])
    assert train.train("mine", views, **often) == made


def test_on_a_gpu_sums_have_a_fixed_order_while_a_model_is_trained() -> None:
    import torch

    with loop._torch_restored("cuda"):
        assert torch.are_deterministic_algorithms_enabled()
    with loop._torch_restored("cpu"):
        assert not torch.are_deterministic_algorithms_enabled()


def test_another_seed_gives_another_model(home: Path) -> None:
    """And the same one the same bytes; a model of another recipe is not taken for this one, nor replaced unasked."""
    views = made_up_views()
    first = weights(train.train("mine", views, evaluate_rows=0))
    assert weights(train.train("mine", views, out="again", evaluate_rows=0)) == first
    with pytest.raises(MirblabError, match="exists, but is of another training: seed was 0 and is 1.*--force"):
        train.train("mine", views, evaluate_rows=0, seed=1)
    with pytest.raises(MirblabError, match="fingerprint was"):
        train.train("mine", views.assign(informal=views.informal + " a"), evaluate_rows=0)
    assert weights(paths.models() / "mine") == first
    assert weights(train.train("mine", views, evaluate_rows=0, seed=1, force=True)) != first


def test_a_forced_training_that_was_stopped_goes_on(home: Path) -> None:
    """Without --force, and the old model stays until then."""
    views, other = made_up_views(), {"seed": 1, "checkpoint_every": 1e-9, "evaluate_every": 3}
    old = weights(train.train("mine", views, evaluate_rows=0))
    new = weights(train.train("mine", views, out="whole", evaluate_rows=0, seed=1))
    with pytest.raises(OSError):
        train.train("mine", views, evaluate=interrupted(6, OSError()), force=True, **other)
    assert weights(paths.models() / "mine") == old
    assert weights(train.train("mine", views, evaluate=interrupted(3, OSError()), **other)) == new


def stopped(views: pd.DataFrame, at: int = 6) -> list[Path]:
    """Return the checkpoints of a run that stopped at a step."""
    with pytest.raises(OSError):
        train.train("mine", views, evaluate=interrupted(at, OSError()), evaluate_every=3, checkpoint_every=1e-9)
    return sorted(training.workshop_folder("mine").glob("step-*.safetensors"))


@pytest.mark.parametrize("harm", ["cut", "flip", "empty"])
def test_a_damaged_checkpoint_is_set_aside(home: Path, harm: str) -> None:
    """The one before it is taken, and the run still ends as it would have."""
    views = made_up_views()
    whole = weights(train.train("mine", views, out="whole", evaluate_rows=0))
    newest = stopped(views)[-1]
    content = bytearray(newest.read_bytes())
    content[-100] ^= 1
    newest.write_bytes({"cut": bytes(content[:-50]), "flip": bytes(content), "empty": b""}[harm])
    with pytest.warns(UserWarning, match="step-00000005.safetensors is damaged.*set aside as"):
        made = train.train("mine", views, evaluate_rows=0)
    assert weights(made) == whole
    assert (newest.parent / f"{newest.name}.damaged").exists()


def test_a_trained_model_is_compared_with_its_digests(home: Path) -> None:
    """A changed byte of any file is named when the model is loaded, or asked for again; --force mends it."""
    views = made_up_views()
    made = train.train("mine", views, evaluate_rows=0)
    (made / "README.md").write_text("My own words.", encoding="utf-8")
    wanted = encoder("mine").vectors(["ring field"])
    assert training.verify_models(paths.models()) == []
    for path in sorted(path for path in made.rglob("*") if path.is_file() and path.name != "README.md"):
        content = path.read_bytes()
        middle = len(content) // 2
        path.write_bytes(content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :])
        with pytest.raises(MirblabError, match=r"is not as it was trained .*mirblab train mine --force"):
            local.load_model.__wrapped__("mine", json.dumps({"dtype": "float32"}), made)
        with pytest.raises(MirblabError, match="is not as it was trained"):
            train.train("mine", views, evaluate_rows=0)
        (line,) = training.verify_models(paths.models())
        assert path.name in line
        path.write_bytes(content)
    (made / "model.safetensors").write_bytes(b"")
    again = encoder(train.train("mine", views, evaluate_rows=0, force=True))
    assert training.verify_models(paths.models()) == [] and (again.vectors(["ring field"]) == wanted).all()


def test_verifying_models_names_damaged_checkpoints_and_strangers(home: Path) -> None:
    """Checkpoints are set aside; what is no model, and a model without digests, is named and stays."""
    newest = stopped(made_up_views())[-1]
    newest.write_bytes(newest.read_bytes()[:-50])
    (paths.models() / "note.txt").write_text("mine", encoding="utf-8")
    (paths.models() / "old").mkdir()
    (paths.models() / "old" / "recipe.json").write_text("{}", encoding="utf-8")
    with pytest.warns(UserWarning, match="is damaged .* and was set aside"):
        checkpoint_line, stranger, old = training.verify_models(paths.models())
    assert newest.name in checkpoint_line and "does not belong here" in stranger and "has no digests" in old


def test_a_line_of_the_log_that_is_no_step_is_named(tmp_path: Path) -> None:
    """File and line, and what to do; the torn last line of a killed process is no damage, and is dropped."""
    path = tmp_path / "log.jsonl"
    for line in ("3", "[]", '{"loss": 1}', '{"step": "1"}', '{"st', "[" * 3000):
        path.write_text(f'{{"step": 0}}\n{line}\n{{"step": 2}}\n', encoding="utf-8")
        with pytest.raises(MirblabError, match=r"log\.jsonl, line 2: .*; delete the line"):
            Journal(tmp_path, 5)
    path.write_text('{"step": 1, "loss": 2.0}\n{"step": 2, "loss": 1.0}\n{"step": 3, "lo', encoding="utf-8")
    assert read_log(tmp_path).step.tolist() == [1, 2]
    Journal(tmp_path, 1).write({"step": 2, "loss": 0.5})
    assert read_log(tmp_path).loss.tolist() == [2.0, 0.5]


@pytest.mark.parametrize("log", ["", '{"step": 0, "R@1": 0.5}\n'])
def test_a_log_has_its_columns_before_the_first_step(home: Path, log: str) -> None:
    """A training that was stopped in its first step has an evaluation at most, and no loss."""
    atomic_files.write_text(training.workshop_folder("mine") / "log.jsonl", log)
    table = train.training_log("mine")
    assert {"step", "loss", "smoothed", "seconds"} <= set(table) and len(table) == log.count("step")
    command.print_summary("mine")


def test_ctrl_c_in_the_first_step_is_told_without_a_traceback(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """No step has been logged then."""

    def stop(*_: object, **__: object) -> None:
        atomic_files.write_text(training.workshop_folder("mine") / "log.jsonl", "")
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "train", stop)
    assert command.run_training("mine", {}) == 130
    assert "stopped after step 0" in capsys.readouterr().err


def test_the_old_model_stays_where_the_new_one_cannot_take_its_place(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both had been removed where only the last renaming failed."""
    made = train.train("mine", made_up_views(), evaluate_rows=0)
    old, rename = weights(made), atomic_files.rename_path

    def refused(source: Path, target: Path) -> None:
        if target == made and ".new" in source.name:
            raise PermissionError(errno.EACCES, "no right", str(target))
        rename(source, target)

    monkeypatch.setattr(atomic_files, "rename_path", refused)
    with pytest.raises(StorageError, match="cannot be written"):
        train.train("mine", made_up_views(), evaluate_rows=0, seed=1, force=True)
    assert weights(made) == old and training.verify_models(paths.models()) == []


def test_a_checkpoint_of_another_run_is_refused(home: Path) -> None:
    """What differs is named: a setting, or the data; nothing is lost, and --force begins anew."""
    views = made_up_views()
    before = stopped(views)
    with pytest.raises(MirblabError, match="learning_rate was 0.01 and is 0.02.*--force.*--out"):
        train.train("mine", views, learning_rate=0.02)
    with pytest.raises(MirblabError, match="fingerprint was"):
        train.train("mine", views.iloc[:-1])
    assert sorted(training.workshop_folder("mine").glob("step-*.safetensors")) == before
    assert train.train("mine", views, learning_rate=0.02, force=True, evaluate_rows=0).is_dir()


def test_ctrl_c_writes_a_checkpoint(home: Path) -> None:
    """At the end of the step, with nothing lost: the next call takes the steps that are left."""
    import os
    import signal

    views = made_up_views()
    whole = weights(train.train("mine", views, out="whole", evaluate_rows=0))

    def press(model: CurrentModel, step: int) -> dict[str, float]:
        if step == 4:
            os.kill(os.getpid(), signal.SIGINT)
        return {}

    with pytest.raises(KeyboardInterrupt):
        train.train("mine", views, evaluate=press, evaluate_every=4)
    assert [path.name for path in training.workshop_folder("mine").glob("step-*")] == ["step-00000004.safetensors"]
    assert train.training_log("mine").step.max() == 4
    assert weights(train.train("mine", views, evaluate_rows=0)) == whole


def test_two_trainings_of_one_name_do_not_share_log_and_checkpoints(home: Path) -> None:
    """The second is refused while the first one runs, also with --force, and afterwards goes on."""
    views, refused = made_up_views(), list[bool]()
    whole = weights(train.train("mine", views, out="whole", evaluate_rows=0))

    def begin_another(model: CurrentModel, step: int) -> dict[str, float]:
        refused.append(step == 6)
        with pytest.raises(MirblabError, match="another process trains 'mine' now; wait until it has ended, or give"):
            train.train("mine", views, evaluate_rows=0, force=refused[-1])
        return {}

    assert weights(train.train("mine", views, evaluate=begin_another, evaluate_every=6)) == whole
    assert refused == [False, True, False]
    assert weights(train.train("mine", views, evaluate_rows=0, force=True)) == whole
    assert training.verify_models(paths.models()) == []


def test_a_static_embedding_is_trained_and_encodes(home: Path) -> None:
    """It needs no attention, is found by name, and counts its tokens."""
    made = train.train("still", made_up_views(), learning_rate=0.1)
    found = encoder("still")
    texts = ["ring field", "field ring", "ring " * 100]
    vectors = found.vectors(texts)
    np.testing.assert_array_equal(vectors[0], vectors[1])
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    assert found.n_truncated(texts) == 1
    described = encoder(made)
    assert (described.dimensions, described.max_length, described.entry["pooling"]) == (16, 48, "none")
    np.testing.assert_array_equal(described.vectors(texts), vectors)


def test_a_static_embedding_is_no_base_and_has_no_token_vectors(home: Path) -> None:
    """It has no transformer, which is said before data are gathered."""
    train.train("still", made_up_views(), evaluate_rows=0)
    for base in ("still", "static:still"):
        with pytest.raises(MirblabError, match="'still' is a static embedding, and training begins with a transformer"):
            train.train("mine", base=base, data="nowhere")
    for method in (encoder("still").token_vectors, encoder("still").tokens):
        with pytest.raises(MirblabError, match="encoder 'still' is a static embedding, whose tokens have the same vec"):
            method(["ring field"])


def test_a_static_recipe_is_compared_with_the_untrained_static_model(home: Path, tiny: Path) -> None:
    """That is what its training begins from: the mean of the base's token embeddings, not the base."""
    from sentence_transformers import SentenceTransformer

    assert train.starting_model("mine") == "tiny" and train.starting_model("still") == "tiny-static-untrained"
    stamp = (paths.models() / "tiny-static-untrained" / "model.safetensors").stat().st_mtime_ns
    whole = SentenceTransformer(str(tiny), device="cpu")
    tokens = whole[0].model.get_input_embeddings().weight.detach().numpy()
    ids = whole.tokenizer("ring field set", add_special_tokens=False)["input_ids"]
    mean = tokens[ids].mean(axis=0)
    start = system(train.starting_model("still")).settings["encoder"]
    np.testing.assert_allclose(encoder(start).vectors(["ring field set"])[0], mean / np.linalg.norm(mean), atol=1e-6)
    assert not np.allclose(encoder(start).vectors(["ring field"]), encoder("tiny").vectors(["ring field"]), atol=1e-2)
    train.train("still", made_up_views(), evaluate_rows=0)
    assert (paths.models() / start / "model.safetensors").stat().st_mtime_ns == stamp
    assert "untrained" in (paths.models() / start / "README.md").read_text()


def test_a_model_without_an_entry_is_found_by_its_name(home: Path) -> None:
    """What was trained under --out needs no line in the registry."""
    train.train("mine", made_up_views(), out="other", evaluate_rows=0)
    assert encoder("other").dimensions == 16 and encoder("other").vectors(["ring"]).shape == (1, 16)


def test_lora_trains_adapters_only_and_leaves_an_ordinary_model(home: Path) -> None:
    """Its checkpoints hold the adapters alone; the kept model has them merged, and a resumed run ends the same."""
    pytest.importorskip("peft", reason="needs PEFT: pip install '.[train-gpu]'")
    from safetensors import safe_open
    from sentence_transformers import SentenceTransformer

    views, more = made_up_views(), {"lora": 4, "recompute": True, "cached": True}
    whole = train.train("mine", views, out="whole", evaluate_rows=0, **more)
    plain = {name for name, _ in SentenceTransformer(str(whole), device="cpu").named_parameters()}
    assert plain == {name for name, _ in passes().model.named_parameters()}
    assert not np.allclose(encoder("whole").vectors(["ring"]), encoder("tiny").vectors(["ring"]), atol=1e-3)
    with pytest.raises(OSError):
        train.train("mine", views, evaluate=interrupted(6, OSError()), evaluate_every=3, checkpoint_every=1e-9, **more)
    with safe_open(sorted(training.workshop_folder("mine").glob("step-*"))[-1], framework="np") as file:
        held = [name for name in file.keys() if name.startswith("weight/")]
    assert held and all("lora_" in name for name in held)
    assert weights(train.train("mine", views, evaluate_rows=0, **more)) == weights(whole)


def test_a_collection_can_be_mixed_in(home: Path) -> None:
    """Its relevant pairs fill their share of the batches."""
    recipe = train.recipe("mine", mix="mini-qa", mix_split="test", share=0.5)
    material = gather_texts(recipe, made_up_views())
    plan = material.plan(recipe)
    anchors, positives, _ = material.texts(plan.draw(1))
    assert plan.draw(1).is_mixed and len(anchors) == 6
    from mirblab.sources import catalogue

    held = catalogue.load("mini-qa")
    assert set(anchors) <= set(held.query_texts) and set(positives) <= set(held.texts)


def test_absent_views_are_never_drawn() -> None:
    """An empty text and a missing one are absent; rows without a pair are left out."""
    views = made_up_views(12).assign(rephrased="")
    views.loc[1, "rephrased"], views.loc[2, "informal"], views.loc[3, ["informal", "signature"]] = "again", None, ""
    recipe = check_recipe("mine", {"batch": 2, "view_pairs": ["informal:rephrased", "informal:signature"]})
    material = gather_texts(recipe, views)
    assert len(material) == 7 and material.usable[:, 0].tolist() == [True] + [False] * 6
    texts = [
        text for step in range(20) for side in material.texts(material.plan(recipe).draw(step))[:2] for text in side
    ]
    assert "" not in texts and "again" in texts


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"bach": 3}, "no field of recipe 'mine' in trained.toml called 'bach'.*did you mean 'batch'"),
        ({"batch": "3"}, "batch is '3'; write a whole number"),
        ({"batch": 1}, "batch is 1; write a number from 2"),
        ({"learning_rate": 0}, "learning_rate is 0; write a number above 0"),
        ({"learning_rate": float("nan")}, "learning_rate is nan"),
        ({"precision": "fp16"}, "precision is 'fp16'; write 'auto', 'float32' or 'bfloat16'"),
        ({"view_pairs": ["informal"]}, "write pairs of columns"),
        ({"view_pairs": ["type:type"]}, "write pairs of columns"),
        ({"mix": "mini-qa"}, "name both"),
        ({"tokens_from": "still", "tokens_share": 1.5}, "tokens_share is 1.5; write a number up to 1"),
        ({"trained_share": 1.5}, "trained_share is 1.5"),
        ({"trained_share": 0.5, "lora": 4}, "below 1 only where the base's own weights are trained"),
        ({"tokens_from": "still", "base": "static:tiny"}, "a base that is no static embedding itself"),
    ],
)
def test_a_wrong_recipe_is_refused(fields: dict[str, Any], message: str) -> None:
    """Before anything is loaded, naming the field."""
    with pytest.raises(MirblabError, match=message):
        check_recipe("mine", fields)


def test_wrong_data_is_refused(home: Path) -> None:
    """A view, a split or enough rows that are not there."""
    with pytest.raises(MirblabError, match="no view in the data of recipe 'mine' called 'signature'"):
        train.train("mine", made_up_views().drop(columns="signature"))
    with pytest.raises(MirblabError, match="no split .* called 'training'.*did you mean 'train'"):
        train.train("mine", made_up_views(), split="training")
    with pytest.raises(MirblabError, match="30 rows of split 'train' have a pair of views, fewer than one batch of 64"):
        train.train("mine", made_up_views(), batch=64)
    with pytest.raises(MirblabError, match="no recipe 'mime'; did you mean 'mine'"):
        train.train("mime")


def test_a_loss_that_is_no_number_stops_the_run(home: Path) -> None:
    """Nothing of it is kept."""
    with pytest.raises(MirblabError, match="the loss of step .* is .*lower the learning rate"):
        train.train("mine", made_up_views(), learning_rate=1e30, clip=0.0, evaluate_rows=0, warmup=0)
    assert not (paths.models() / "mine").exists()


def test_the_packages_recipes_are_sound_and_have_encoders() -> None:
    """Each that is an encoder is one by its own name, and its base is registered."""
    from mirblab.core import registry

    for name in registry.read_registry("trained"):
        assert train.recipe(name).encoder in registry.read_registry("encoders")
    trained = {name for name, entry in registry.read_registry("encoders").items() if entry.get("trained")}
    assert trained <= set(registry.read_registry("trained")) and "minilm-math" in trained


def test_only_the_newest_two_checkpoints_stay(tmp_path: Path, abandoned: Callable[[Path], Path]) -> None:
    """And what a killed process left half written is swept."""
    import torch

    for step in range(4):
        write_checkpoint(tmp_path, step, {"weight/a": torch.ones(2) * step}, {"seed": 0})
    abandoned(tmp_path / "step-00000009.safetensors").write_bytes(b"half")
    found = newest_checkpoint(tmp_path, {"seed": 0})
    assert found is not None and found.step == 3 and found.tensors["weight/a"].tolist() == [3.0, 3.0]
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"step-0000000{n}.safetensors" for n in (2, 3)]
    shutil.rmtree(tmp_path)
    assert newest_checkpoint(tmp_path, {}) is None


def test_kill_9_loses_only_steps_since_the_last_checkpoint(home: Path) -> None:
    """A process killed at a moment of its own ends, after another call, with the weights of one that was not."""
    views = made_up_views()
    whole = weights(train.train("mine", views, out="whole", evaluate_rows=0))
    kill_training("mine", views, out="cut", evaluate_rows=0)
    assert weights(train.train("mine", views, out="cut", evaluate_rows=0)) == whole


def test_the_command_trains_and_says_what_it_reached(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Once; the second time it says that the model is there."""
    from mirblab.train import command

    made_up_views().assign(module="Mathlib.Algebra.Group", kind="theorem").to_json(
        tmp_path / "views.jsonl", orient="records", lines=True
    )
    changes = {"data": str(tmp_path / "views.jsonl"), "seed": 2}
    assert command.run_training("mine", changes, out="own") == 0
    first = capsys.readouterr().out
    assert "own is trained" in first and "10 steps in" in first and "step 0: R@1" in first and "step 10: R@1" in first
    assert command.run_training("mine", changes, out="own") == 0
    assert "own is there" in capsys.readouterr().out
    assert str(tmp_path) not in (paths.models() / "own" / "README.md").read_text()
