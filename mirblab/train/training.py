"""training: train a recipe and store the model."""

from __future__ import annotations

import json
import shutil
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any

import pandas as pd

from mirblab import __version__
from mirblab.core import atomic_files, paths, stored_files, text_files
from mirblab.core.errors import MirblabError
from mirblab.data import digests
from mirblab.encoders import local
from mirblab.encoders.encoding import Encoder
from mirblab.train import loop
from mirblab.train.lists import RankingLists, gather_lists, held_out_lists
from mirblab.train.loop import TrainingRun, evaluation_rows, run_to_end
from mirblab.train.loss import PairPasses, Passes, TokenPasses, resolve_precision
from mirblab.train.model import (
    build_cross_encoder,
    build_language_model,
    build_model,
    finish_model,
    starting_encoder,
    train_used_tokens,
    training_device,
)
from mirblab.train.pairs import TrainingTexts, gather_texts
from mirblab.train.pretraining import MaskedPasses, Sentences, gather_sentences, held_out_sentences
from mirblab.train.recipes import Recipe, describe_differences, recipe
from mirblab.train.validation import Evaluate, held_out

_WORKSHOPS = ".training"
_LIBRARIES = ("sentence-transformers", "torch", "transformers")


def train(
    name: str | Recipe,
    views: pd.DataFrame | None = None,
    *,
    out: str = "",
    evaluate: Evaluate | None = None,
    force: bool = False,
    **changes: Any,
) -> Path:
    """Train the model of a recipe and return its folder, an ordinary one of sentence-transformers.

    *name*: a recipe of `trained.toml`, whose fields *changes* replaces, or a Recipe. *views*: the table to train on;
    None: the recipe's data. *out*: another name for the model. *evaluate* returns measures for the log, given the model
    and the step; None: `held_out` on split dev, where the data has one. A missing model whose token embeddings the
    recipe needs is trained first. An interrupted run is continued at its last checkpoint, and ends with the same
    weights. An existing model is returned; *force* trains it again and replaces it at the end. Raises MirblabError for
    an existing model that was trained in another way, and while another process trains one of that name.

    >>> train("minilm-math", batch=1)
    Traceback (most recent call last):
    mirblab.core.errors.MirblabError: recipe 'minilm-math' in trained.toml: batch is 1; write a number from 2
    """
    plan = recipe(name, **changes) if isinstance(name, str) else replace(name, **changes)
    plan = replace(plan, name=out) if out else plan
    model_folder(plan.name)  # a name that cannot be, and a base that is not here, are refused before data are gathered
    base = starting_encoder(plan)
    if plan.is_language_model:
        if base.entry.get("pretokens", plan.pretokens) != plan.pretokens:
            raise MirblabError(
                f"recipe '{plan.name}': its base has pretokens = {base.entry['pretokens']!r}; write "
                f'pretokens = "{base.entry["pretokens"]}"'
            )
        tokenizer = local.load_anew(base.name, base.entry, base.folder).tokenizer
        return _train(plan, base, gather_sentences(plan, tokenizer), evaluate, force)
    if plan.collections:
        return _train(plan, base, gather_lists(plan), evaluate, force)
    if views is None:
        from mirblab.analysis import lean_views

        views = lean_views.read_views(plan.data)
    return _train(plan, base, gather_texts(plan, views), evaluate or _default_evaluation(plan, views), force)


def _train(
    plan: Recipe,
    encoder: Encoder,
    material: TrainingTexts | RankingLists | Sentences,
    evaluate: Evaluate | None,
    force: bool,
) -> Path:
    precision = resolve_precision(plan.precision, training_device())
    identity = plan.determining() | {"fingerprint": material.fingerprint(), "precision": precision}
    identity |= _starting_revisions(plan, encoder)
    folder = workshop_folder(plan.name)
    # A forced training that was stopped goes on, although the old model still exists.
    if not force and not loop.checkpoint_files(folder) and is_finished(plan.name, identity):
        return model_folder(plan.name)
    busy = (
        f"another process trains '{folder.name}' now; wait until it has ended, or give this model a name of its own "
        "with --out"
    )
    with atomic_files.hold_lock(folder, busy):
        if force:
            shutil.rmtree(folder, ignore_errors=True)
        atomic_files.make_folder(folder)
        return _train_and_store(plan, encoder, material, evaluate, identity)


def _train_and_store(
    plan: Recipe,
    encoder: Encoder,
    material: TrainingTexts | RankingLists | Sentences,
    evaluate: Evaluate | None,
    identity: Mapping[str, Any],
) -> Path:
    folder, fingerprint, precision = workshop_folder(plan.name), identity["fingerprint"], identity["precision"]
    if isinstance(material, Sentences):
        model = build_language_model(plan, encoder, material.new_words)
    else:
        model = build_cross_encoder(plan, encoder) if plan.is_cross else build_model(plan, encoder)
    if plan.is_static and isinstance(material, TrainingTexts) and plan.trained_share == 1 and not plan.weight_decay:
        roles = {role: encoder.strings(material.all_texts(), role, plan.instruction) for role in ("query", "document")}
        train_used_tokens(model, {string for strings in roles.values() for string in strings})
    passes = _passes(plan)(model, plan.name, plan.tokens_per_pass, precision)
    if isinstance(material, RankingLists) and plan.evaluate_rows:
        evaluate = evaluate or held_out_lists(plan, material)
    if isinstance(material, Sentences) and plan.evaluate_rows:
        evaluate = evaluate or held_out_sentences(plan, material)
    before = {}
    if plan.trained_share < 1:  # the base's own weights become a part of the trained ones
        before = loop.trained_parameters(build_model(replace(plan, tokens_from=""), encoder))
    run = TrainingRun(plan, passes, encoder, material, folder, identity, evaluate, before)
    run_to_end(run)
    facts = {"n_rows": len(material), "n_steps": run.n_steps, "fingerprint": fingerprint, "precision": precision}
    card = model_card(plan, encoder, facts, loop.read_log(folder))
    finished = model if plan.is_cross else finish_model(plan, encoder, model)
    trained = store_model(plan.name, finished, card, identity)
    for path in loop.checkpoint_files(folder):
        atomic_files.remove_path(path)
    return trained


def _passes(plan: Recipe) -> Callable[[Any, str, int, str], Passes]:
    if plan.is_language_model:
        return partial(MaskedPasses, mask_share=plan.mask_share)
    if plan.is_cross:
        return PairPasses
    return partial(TokenPasses, length=plan.max_length) if plan.late else Passes


def starting_model(name: str | Recipe) -> str:
    """Return the system that the training of a recipe starts from, with which the trained one is compared.

    It is the recipe's base, or for a static recipe the mean of the base's token embeddings, made if it is missing.

    >>> starting_model("minilm-math")
    'minilm'
    """
    plan = recipe(name) if isinstance(name, str) else name
    if not plan.is_static:
        return plan.encoder
    system, encoder = f"{plan.encoder}-static-untrained", starting_encoder(plan)
    identity = {"base": plan.base, "trained": False} | _starting_revisions(replace(plan, tokens_from=""), encoder)
    if not is_finished(system, identity):
        model = finish_model(plan, encoder, build_model(plan, encoder))
        store_model(system, model, model_card(plan, encoder), identity)
    return system


def training_log(name: str) -> pd.DataFrame:
    """Return the log of the training of the model called *name*: a row per step and one per evaluation.

    Columns: step, loss, learning_rate, seconds, pairs_per_second, smoothed (mean loss of the steps around this one: a
    fifth of all, at most 20; how many is `attrs["window"]`), and one for each measure, NaN where a row has no value.
    Raises MissingFileError for a model that was never trained.

    >>> training_log("never-trained")
    Traceback (most recent call last):
    mirblab.core.errors.MissingFileError: no log at ...
    """
    table = loop.read_log(workshop_folder(name))
    losses = table.loss.dropna().astype(float)
    width = min(20, max(1, len(losses) // 5))
    table = table.assign(smoothed=losses.rolling(width, min_periods=1, center=True).mean())
    table.attrs["window"] = width
    return table


def _starting_revisions(plan: Recipe, encoder: Encoder) -> dict[str, Any]:
    """Return the revisions of what the training starts from, and how the base's entry makes inputs of texts.

    A missing model with token embeddings is trained.
    """
    revisions: dict[str, Any] = {"base_revision": str(encoder.entry.get("revision", ""))}
    if not plan.is_cross:  # the trained model must make its inputs in the same way
        revisions |= {field: encoder.entry[field] for field in local.INPUTS if field in encoder.entry}
    if tokens := tokens_model(plan):
        revisions["tokens_revision"] = local.folder_digest(tokens)
    return revisions


def tokens_model(plan: Recipe) -> Path | None:
    """Return the folder of the static model with whose token embeddings *plan* begins; a missing one is trained.

    None where it begins with none. MirblabError for a recipe that is not static.
    """
    if not plan.tokens_from:
        return None
    if tokens := local.find_trained(plan.tokens_from):
        return tokens
    static = recipe(plan.tokens_from)
    if not static.is_static:
        raise MirblabError(
            f"recipe '{plan.name}': tokens_from is '{static.name}', whose base is '{static.base}'; name a recipe whose "
            f"base is 'static:{plan.base}'"
        )
    return train(static)


def _default_evaluation(plan: Recipe, views: pd.DataFrame) -> Evaluate | None:
    if not plan.evaluate_rows:
        return None
    missing = {"informal", "signature", "split"} - set(views.columns)
    if missing or not (views["split"] == "dev").any():
        warnings.warn(
            f"'{plan.name}' is not evaluated while it is trained: the data have no split dev with the views informal "
            "and signature; give evaluate=, or --set evaluate_rows=0",
            stacklevel=3,
        )
        return None
    return held_out(views, n_rows=plan.evaluate_rows, instruction=plan.instruction)


def model_folder(name: str) -> Path:
    """Return the folder of the finished model *name*, which need not exist."""
    return paths.models() / paths.checked_name(name, of="a model")


def workshop_folder(name: str) -> Path:
    """Return the folder of the log and the checkpoints of the model *name*."""
    return paths.models() / _WORKSHOPS / paths.checked_name(name, of="a model")


def is_finished(name: str, identity: Mapping[str, Any]) -> bool:
    """Return whether the model exists; MirblabError if it was trained in another way."""
    folder = model_folder(name)
    if not folder.exists():
        return False
    path = folder / local.RECIPE
    if not path.is_file():
        raise MirblabError(
            f"{folder} was not trained here (it has no {local.RECIPE}); move it away or give another --out"
        )
    local.check_trained(folder)
    other = describe_differences(text_files.read_json(path), json.loads(json.dumps(dict(identity))))
    if other:
        raise MirblabError(
            f"{folder} exists, but is of another training: {other}. Train it anew with --force, or give the new model "
            "a name of its own with --out"
        )
    return True


def store_model(name: str, model: Any, card: str, identity: Mapping[str, Any]) -> Path:
    """Write *model*, its *card* and its *identity* to its folder, which is replaced as a whole; return the folder."""
    folder = model_folder(name)
    atomic_files.remove_abandoned(workshop_folder(name))
    beside, old = (atomic_files.unfinished_name(workshop_folder(name) / which) for which in ("new", "old"))
    with atomic_files.writing(folder):
        try:
            model.save(str(beside), create_model_card=False)
            atomic_files.write_text(beside / "README.md", card)
            atomic_files.write_text(beside / local.RECIPE, json.dumps(dict(identity), indent=1, sort_keys=True) + "\n")
            digests.write_digests(beside)
            atomic_files.flush_tree(beside)
            if folder.exists():
                atomic_files.rename_path(folder, old)
            atomic_files.rename_path(beside, folder)
            atomic_files.flush_folder(folder.parent)
        finally:
            if old.exists() and not folder.exists():
                atomic_files.rename_path(old, folder)
            for left in (beside, old):
                shutil.rmtree(left, ignore_errors=True)
    return folder


def verify_models(folder: Path) -> list[str]:
    """Return a line for each damaged model or checkpoint in *folder*; damaged checkpoints are moved aside."""
    wrong = []
    for path in stored_files.sound_paths(folder):
        if path.name == _WORKSHOPS:
            wrong += [line for inner in stored_files.sound_paths(path) for line in loop.verify_checkpoints(inner)]
        elif not (path / local.RECIPE).is_file():
            wrong.append(stored_files.unknown_file_message(path))
        elif not digests.has_digests(path):
            wrong.append(f"{path} was trained by an older version and has no digests to compare it with")
        else:
            try:
                local.check_trained(path)
            except MirblabError as error:
                wrong.append(str(error))
    return wrong


def model_card(
    plan: Recipe, encoder: Encoder, facts: Mapping[str, Any] | None = None, log: pd.DataFrame | None = None
) -> str:
    """Return the card of a model trained by *plan* from *encoder*; without *facts* it is not trained yet."""
    from jinja2 import Environment

    needs = {"n_hard": plan.hard, "mix_split": plan.mix, "tokens_share": plan.tokens_from}
    settings = {
        name: value
        for name, value in plan.determining().items()
        if value not in ("", 0, 0.0, False) and needs.get(name, True)
    }
    settings["dropout"] = plan.dropout
    if facts:
        settings |= {"steps": facts["n_steps"], "precision": facts["precision"]}
    evaluations = pd.DataFrame() if log is None else evaluation_rows(log)
    first_and_last = evaluations.iloc[[0, -1]] if len(evaluations) > 1 else evaluations
    environment = Environment(keep_trailing_newline=True)
    environment.filters["json"] = json.dumps
    return environment.from_string((files(__package__) / "card.md").read_text("utf-8")).render(
        recipe=plan,
        base=encoder.entry.get("id", plan.encoder),
        licence=str(encoder.entry.get("licence", "")),
        dimensions=encoder.dimensions,
        pairs=list(dict.fromkeys(plan.pairs())),
        facts=facts,
        data=Path(plan.data).name,
        versions=", ".join([f"mirblab {__version__}", *(f"{name} {version(name)}" for name in _LIBRARIES)]),
        settings=settings,
        evaluations=first_and_last.to_dict("records"),
        measures=[name for name in evaluations.columns if name != "step"],
    )
