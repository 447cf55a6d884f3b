"""training: a recipe trained, and the model kept."""

from __future__ import annotations

import importlib.metadata
import json
import shutil
import warnings
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from mirblab.core import paths, stored_files, text_files
from mirblab.core.errors import MirblabError
from mirblab.data import digests
from mirblab.encoders import local
from mirblab.encoders.encoding import Encoder
from mirblab.train import loop
from mirblab.train.data import gather_texts
from mirblab.train.evaluation import Evaluate, held_out
from mirblab.train.loop import TrainingRun, evaluation_rows, run_to_end
from mirblab.train.loss import Passes, TokenPasses, resolve_precision
from mirblab.train.model import build_model, finish_model, starting_encoder, training_device
from mirblab.train.recipes import Recipe, describe_differences, recipe

RECIPE, _WORKSHOPS = "recipe.json", ".training"
_LIBRARIES = ("mirblab", "sentence-transformers", "torch", "transformers")


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
    mirblab.core.errors.MirblabError: recipe 'minilm-math' in trained.toml: batch is 1; a pair needs others ...
    """
    plan = recipe(name, **changes) if isinstance(name, str) else replace(name, **changes)
    plan = replace(plan, name=out) if out else plan
    table = _views(plan) if views is None else views
    material, encoder = gather_texts(plan, table), starting_encoder(plan)
    facts = {"fingerprint": material.fingerprint(), "precision": resolve_precision(plan.precision, training_device())}
    identity = plan.determining() | facts | _starting_revisions(plan, encoder)
    # a forced training that was stopped goes on, although the old model is still there
    is_begun = bool(loop.checkpoint_files(workshop_folder(plan.name)))
    if not force and not is_begun and is_finished(plan.name, identity):
        return model_folder(plan.name)
    folder = _workshop(plan, force)
    if evaluate is None:
        evaluate = _usual_evaluation(plan, table)
    model = build_model(plan, encoder)
    runs_texts = partial(TokenPasses, length=plan.max_length) if plan.late else Passes
    passes = runs_texts(model, plan.name, plan.tokens_per_pass, facts["precision"])
    run = TrainingRun(plan, passes, encoder, material, folder, identity, evaluate, _base_weights(plan, encoder))
    run_to_end(run)
    facts |= {"n_rows": len(material), "n_steps": run.n_steps}
    card = model_card(plan, encoder, facts, loop.read_log(folder))
    kept = store_model(plan.name, finish_model(plan, encoder, model), card, identity)
    for path in loop.checkpoint_files(folder):
        paths.remove_path(path)
    return kept


def starting_model(name: str | Recipe) -> str:
    """Return the name of the system that the training of a recipe begins from, with which what it brings is compared.

    That is the recipe's base; for a static recipe the mean of the base's token embeddings as they are, an untrained
    model that is kept beside the trained ones, and made where it is missing.

    >>> starting_model("minilm-math")
    'minilm'
    """
    plan = recipe(name) if isinstance(name, str) else name
    if not plan.is_static:
        return plan.encoder
    system, encoder = f"{plan.encoder}-static-untrained", starting_encoder(plan)
    identity = {"base": plan.base, "base_revision": str(encoder.entry.get("revision", "")), "trained": False}
    if not is_finished(system, identity):
        model = finish_model(plan, encoder, build_model(plan, encoder))
        store_model(system, model, untrained_card(plan, encoder), identity)
    return system


def training_log(name: str) -> pd.DataFrame:
    """Return the log of the training of the model called *name*: a row per step and one per evaluation.

    Columns: step, loss, learning_rate, seconds, pairs_per_second, smoothed (mean loss of the last steps, a fifth of
    them and 20 at most), and one for each measure; what a row has not is NaN.
    Raises FileNotFoundError when it was never trained.

    >>> training_log("never-trained")
    Traceback (most recent call last):
    FileNotFoundError: no log at ...
    """
    table = loop.read_log(workshop_folder(name))
    losses = table.loss.dropna()
    width = min(20, max(1, len(losses) // 5))
    return table.assign(smoothed=losses.rolling(width, min_periods=1).mean())


def _views(plan: Recipe) -> pd.DataFrame:
    from mirblab.analysis import lean_views

    return lean_views.read_views(plan.data)


def _starting_revisions(plan: Recipe, encoder: Encoder) -> dict[str, str]:
    """Return the revisions of what the training starts from; a missing model with token embeddings is trained."""
    revisions = {"base_revision": str(encoder.entry.get("revision", ""))}
    if plan.tokens_from:
        tokens = local.find_trained(plan.tokens_from) or train(_static_recipe(plan))
        revisions["tokens_revision"] = local.folder_digest(tokens)
    return revisions


def _static_recipe(plan: Recipe) -> Recipe:
    """Return the recipe that makes the token embeddings; MirblabError for one that makes something else, or itself."""
    static = recipe(plan.tokens_from)
    if not static.is_static:
        raise MirblabError(
            f"recipe '{plan.name}': tokens_from is '{static.name}', whose base is '{static.base}'; name a recipe whose "
            f"base is 'static:{plan.base}'"
        )
    return static


def _base_weights(plan: Recipe, encoder: Encoder) -> dict[str, Any]:
    """Return the base's own weights by name where they become a part of the trained ones."""
    if plan.trained_share == 1:
        return {}
    return loop.trained_parameters(build_model(replace(plan, tokens_from=""), encoder))


def _workshop(plan: Recipe, force: bool) -> Path:
    folder = workshop_folder(plan.name)
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


def model_folder(name: str) -> Path:
    """Return the folder of the finished model called *name*, whether it is there or not."""
    return paths.models() / paths.checked_name(name)


def workshop_folder(name: str) -> Path:
    """Return the folder of the log and the checkpoints of the model called *name*."""
    return paths.models() / _WORKSHOPS / paths.checked_name(name)


def is_finished(name: str, identity: Mapping[str, Any]) -> bool:
    """Return whether the model is there; MirblabError when one is there that was trained in another way."""
    folder = model_folder(name)
    if not folder.exists():
        return False
    path = folder / RECIPE
    if not path.is_file():
        raise MirblabError(f"{folder} was not trained here (it has no {RECIPE}); move it away or give another --out")
    local.check_trained(folder)
    other = describe_differences(text_files.read_json(path), json.loads(json.dumps(dict(identity))))
    if other:
        raise MirblabError(
            f"{folder} is there, but of another training: {other}. Train it anew with --force, or give the new model "
            "a name of its own with --out"
        )
    return True


def store_model(name: str, model: Any, card: str, identity: Mapping[str, Any]) -> Path:
    """Write *model*, its *card* and what it was made of to its folder, replacing an older one; return the folder.

    Readers see the old folder, none for a moment, or the new one, never a part of it.
    """
    folder = model_folder(name)
    paths.remove_abandoned(workshop_folder(name))
    beside, old = (paths.unfinished_name(workshop_folder(name) / which) for which in ("new", "old"))
    with paths.writing(folder):
        try:
            model.save(str(beside), create_model_card=False)
            paths.write_text(beside / "README.md", card)
            paths.write_text(beside / RECIPE, json.dumps(dict(identity), indent=1, sort_keys=True) + "\n")
            digests.write_digests(beside)
            paths.flush_tree(beside)
            if folder.exists():
                paths.rename_path(folder, old)
            paths.rename_path(beside, folder)
            paths.flush_folder(folder.parent)
        finally:
            for left in (beside, old):
                shutil.rmtree(left, ignore_errors=True)
    return folder


def verify_models(folder: Path) -> list[str]:
    """Compare the models in *folder* with their digests, and their checkpoints; return a line for each that is wrong.

    Models stay where they are, since training takes long; damaged checkpoints are set aside with a warning.
    """
    wrong = []
    for path in stored_files.sound_paths(folder):
        if path.name == _WORKSHOPS:
            wrong += [line for inner in stored_files.sound_paths(path) for line in loop.verify_checkpoints(inner)]
        elif not (path / RECIPE).is_file():
            wrong.append(stored_files.unknown_file_message(path))
        elif not digests.has_digests(path):
            wrong.append(f"{path} was trained by an older version and has no digests to compare it with")
        else:
            try:
                local.check_trained(path)
            except MirblabError as error:
                wrong.append(str(error))
    return wrong


def model_card(recipe: Recipe, encoder: Encoder, facts: Mapping[str, Any], table: pd.DataFrame) -> str:
    """Return the card of a model trained by *recipe* from *encoder*; *table* is the log of its training.

    *facts* has n_rows, n_steps, fingerprint and precision. Nothing of the machine is written into it.
    """
    parts = [
        _card_header(recipe, encoder),
        f"# {recipe.label or recipe.name}",
        _card_summary(recipe, encoder),
        f"## Data\n\n{_card_data(recipe, facts)}",
        f"## Recipe\n\n{_card_recipe(recipe, facts)}",
        f"## Evaluation\n\n{_card_evaluation(recipe, table)}",
        f"## Limits\n\n{_card_limits(recipe)}",
    ]
    return "\n\n".join(parts) + "\n"


def untrained_card(recipe: Recipe, encoder: Encoder) -> str:
    """Return the card of what a static *recipe* begins from: the token embeddings of *encoder*, as they are."""
    start = encoder.entry.get("id", recipe.encoder)
    about = f"The mean of the token embeddings of {start}, untrained: no attention, no order of words."
    use = f"It is kept to say what training brings to a model that begins as it does (base `{recipe.base}`)."
    return f"{_card_header(recipe, encoder)}\n\n# {recipe.encoder}, static, untrained\n\n{about} {use}\n"


def _card_header(recipe: Recipe, encoder: Encoder) -> str:
    fields: dict[str, Any] = {
        "language": "en",
        "library_name": "sentence-transformers",
        "pipeline_tag": "sentence-similarity",
        "tags": ["sentence-transformers", "feature-extraction", "mathematics", "lean"],
        "base_model": encoder.entry["id"] if "id" in encoder.entry else recipe.encoder,
    }
    if encoder.entry.get("licence"):
        fields["license"] = str(encoder.entry["licence"]).lower()
    return "---\n" + "\n".join(f"{name}: {json.dumps(value)}" for name, value in fields.items()) + "\n---"


def _card_summary(recipe: Recipe, encoder: Encoder) -> str:
    base = encoder.entry.get("id", recipe.encoder)
    start = f"the token embeddings of {base} alone (no attention, no order of words)" if recipe.is_static else base
    if recipe.tokens_from:
        start += f" with token embeddings moved towards those of {recipe.tokens_from}"
    shown = "; ".join(f"{left} and {right}" for left, right in dict.fromkeys(recipe.pairs()))
    return (
        f"An encoder of texts about mathematics, {encoder.dimensions} dimensions, trained from {start} with mirblab. "
        f"It was taught that different views of one declaration belong together: {shown}.\n\n"
        "```python\nfrom sentence_transformers import SentenceTransformer\n\n"
        f'model = SentenceTransformer("{recipe.name}")  # this folder\n'
        'vectors = model.encode(["Every finite integral domain is a field.", "theorem ..."])\n```'
    )


def _card_data(recipe: Recipe, facts: Mapping[str, Any]) -> str:
    rows = f"split `{recipe.split or 'all'}`, modules: {recipe.modules}; {facts['n_rows']:,} rows"
    lines = [
        f"- {Path(recipe.data).name}, {rows}",
        f"- licence: {recipe.licence or 'not stated'}",
        f"- fingerprint of all training texts: `{facts['fingerprint']}`",
    ]
    if recipe.mix:
        lines.append(f"- {recipe.share:.0%} of the batches are pairs of {recipe.mix} (split `{recipe.mix_split}`)")
    if recipe.hard:
        lines.append(f"- {recipe.n_hard} hard negatives for each anchor that has any")
    return "\n".join(lines)


def _card_recipe(recipe: Recipe, facts: Mapping[str, Any]) -> str:
    shown = {name: value for name, value in recipe.determining().items() if value not in ("", 0, 0.0, False)}
    shown["dropout"] = recipe.dropout
    needs = {"n_hard": recipe.hard, "mix_split": recipe.mix, "tokens_share": recipe.tokens_from}
    unused = [field for field, needed in needs.items() if not needed]
    shown = {name: value for name, value in shown.items() if name not in unused}
    shown |= {"steps": facts["n_steps"], "precision": facts["precision"]}
    rows = [f"| {name} | {json.dumps(value)} |" for name, value in shown.items()]
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in _LIBRARIES)
    after = "falling evenly to 0" if recipe.decay else "constant"
    loss = "Multiple negatives ranking over cosines, equal texts of a batch left out"
    return (
        f"{loss}; AdamW, {after} after warm-up. Made with {versions}.\n\n| setting | value |\n|---|---|\n"
        + "\n".join(rows)
    )


def _card_evaluation(recipe: Recipe, table: pd.DataFrame) -> str:
    rows_of_log = evaluation_rows(table)
    if not len(rows_of_log):
        return "Not evaluated while it was trained."
    rows_of_log = rows_of_log.iloc[[0, -1]] if len(rows_of_log) > 1 else rows_of_log
    names = [name for name in rows_of_log.columns if name != "step"]
    rows = [
        f"| {int(row['step'])} | " + " | ".join(f"{row[name]:.4f}" for name in names) + " |"
        for row in rows_of_log.to_dict("records")
    ]
    about = "Measured in the training's precision on held-out rows, before the first step and after the last."
    head = f"| step | {' | '.join(names)} |\n|---|{'---|' * len(names)}"
    return f"{about}\n\n{head}\n" + "\n".join(rows)


def _card_limits(recipe: Recipe) -> str:
    lines = [
        "- What it knows of mathematics it knows from one library's names, types and docstrings, in English and Lean; "
        "other notations, languages and proof assistants were not seen.",
        "- It was shaped for one task. Tasks that the base was good at can be worse now: measure yours before "
        "replacing the base.",
        f"- Training cut every text at {recipe.max_length} tokens; what stands later in a text was never taught.",
        "- Near vectors mean that texts look alike to the model. Neither is evidence that two statements are "
        "equivalent, nor that one of them is true.",
        "- The evaluation above has a small corpus, so its values are higher than those on a whole library.",
    ]
    return "\n".join(lines)
