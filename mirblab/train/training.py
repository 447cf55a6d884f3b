"""training: train a model of a recipe, or go on with it, and keep it where the registry finds it."""

from __future__ import annotations

import shutil
import warnings
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from mirblab import disk, engine, paths
from mirblab.encode import Encoder
from mirblab.errors import MirblabError
from mirblab.train import base, checkpoint, journal, keep, state
from mirblab.train.evaluation import Evaluate, held_out
from mirblab.train.gradients import Passes
from mirblab.train.late import TokenPasses
from mirblab.train.loop import Run, to_the_end
from mirblab.train.material import gather
from mirblab.train.modelcard import model_card, untrained_card
from mirblab.train.precision import chosen
from mirblab.train.settings import Recipe, recipe


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

    *name*: a recipe of `trained.toml`, whose fields *changes* replaces, or a Recipe. *views*: the table that it is
    trained on; None: the recipe's data. *out*: a name for the model other than the recipe's. *evaluate*: called with
    the model and the step, returns measures for the log; None: `held_out` on split dev, where the data has one.

    The model that the recipe takes token embeddings from is trained first by its own recipe, where it is missing.
    A run that was killed goes on at its last checkpoint, and ends where it would have ended. A model that is there is
    returned as it is; *force* trains it anew, and the old one stays until the new one is whole. Raises MirblabError
    when what is there was trained in another way.

    >>> train("minilm-math", batch=1)
    Traceback (most recent call last):
    mirblab.errors.MirblabError: recipe 'minilm-math' in trained.toml: batch is 1; a pair needs others ...
    """
    plan = recipe(name, **changes) if isinstance(name, str) else replace(name, **changes)
    plan = replace(plan, name=out) if out else plan
    table = _views(plan) if views is None else views
    material, encoder = gather(plan, table), base.starting_encoder(plan)
    facts = {"fingerprint": material.fingerprint(), "precision": chosen(plan.precision, base.device())}
    identity = plan.determining() | facts | _begun_with(plan, encoder)
    # a forced training that was stopped goes on, although the old model is still there
    is_begun = bool(checkpoint.files(keep.workshop(plan.name)))
    if not force and not is_begun and keep.is_finished(plan.name, identity):
        return keep.home_of(plan.name)
    folder = _workshop(plan, force)
    if evaluate is None:
        evaluate = _usual_evaluation(plan, table)
    model = base.build(plan, encoder)
    runs_texts = partial(TokenPasses, length=plan.max_length) if plan.late else Passes
    passes = runs_texts(model, plan.name, plan.tokens_per_pass, facts["precision"])
    run = Run(plan, passes, encoder, material, folder, identity, evaluate, _before(plan, encoder))
    to_the_end(run)
    facts |= {"n_rows": len(material), "n_steps": run.n_steps}
    card = model_card(plan, encoder, facts, journal.read(folder))
    kept = keep.keep(plan.name, base.finish(plan, encoder, model), card, identity)
    for path in checkpoint.files(folder):
        disk.remove(path)
    return kept


def begun_from(name: str | Recipe) -> str:
    """Return the name of the system that the training of a recipe begins from, with which what it brings is compared.

    That is the recipe's base; for a static recipe the mean of the base's token embeddings as they are, an untrained
    model that is kept beside the trained ones, and made where it is missing.

    >>> begun_from("minilm-math")
    'minilm'
    """
    plan = recipe(name) if isinstance(name, str) else name
    if not plan.is_static:
        return plan.encoder
    system, encoder = f"{plan.encoder}-static-untrained", base.starting_encoder(plan)
    identity = {"base": plan.base, "base_revision": str(encoder.entry.get("revision", "")), "trained": False}
    if not keep.is_finished(system, identity):
        model = base.finish(plan, encoder, base.build(plan, encoder))
        keep.keep(system, model, untrained_card(plan, encoder), identity)
    return system


def log(name: str) -> pd.DataFrame:
    """Return the log of the training of the model called *name*: a row per step and one per evaluation.

    Columns: step, loss, learning_rate, seconds, pairs_per_second, smoothed (mean loss of the last steps, a fifth of
    them and 20 at most), and one for each measure; what a row has not is NaN.
    Raises FileNotFoundError when it was never trained.

    >>> log("never-trained")
    Traceback (most recent call last):
    FileNotFoundError: no log at ...
    """
    table = journal.read(keep.workshop(name))
    losses = table.loss.dropna()
    width = min(20, max(1, len(losses) // 5))
    return table.assign(smoothed=losses.rolling(width, min_periods=1).mean())


def _views(plan: Recipe) -> pd.DataFrame:
    from mirblab import views

    return views.views(plan.data)


def _begun_with(plan: Recipe, encoder: Encoder) -> dict[str, str]:
    """Return the revisions of what the training starts from; a missing model with token embeddings is trained."""
    found = {"base_revision": str(encoder.entry.get("revision", ""))}
    if plan.tokens_from:
        tokens = engine.trained(plan.tokens_from) or train(_static(plan))
        found["tokens_revision"] = engine.folder_digest(tokens)
    return found


def _static(plan: Recipe) -> Recipe:
    """Return the recipe that makes the token embeddings; MirblabError for one that makes something else, or itself."""
    found = recipe(plan.tokens_from)
    if not found.is_static:
        raise MirblabError(
            f"recipe '{plan.name}': tokens_from is '{found.name}', whose base is '{found.base}'; name a recipe whose "
            f"base is 'static:{plan.base}'"
        )
    return found


def _before(plan: Recipe, encoder: Encoder) -> dict[str, Any]:
    """Return the base's own weights by name where they become a part of the trained ones."""
    if plan.trained_share == 1:
        return {}
    return state.trained(base.build(replace(plan, tokens_from=""), encoder))


def _workshop(plan: Recipe, force: bool) -> Path:
    folder = keep.workshop(plan.name)
    if force:
        shutil.rmtree(folder, ignore_errors=True)
    return paths.make_folder(folder)


def _usual_evaluation(plan: Recipe, views: pd.DataFrame) -> Evaluate | None:
    """Return the evaluation on split dev, or None where the recipe wants none or the data cannot give it."""
    if not plan.evaluate_rows:
        return None
    missing = {"informal", "signature", "split"} - set(views.columns)
    if missing or not (views["split"] == "dev").any():
        warnings.warn(
            f"'{plan.name}' is not evaluated while it is trained: the data has no split dev with the views informal "
            "and signature; give evaluate=, or --set evaluate_rows=0",
            stacklevel=3,
        )
        return None
    return held_out(views, n_rows=plan.evaluate_rows, instruction=plan.instruction)
