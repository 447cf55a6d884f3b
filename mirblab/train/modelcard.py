"""modelcard: the README.md of a trained model, in the Hub's format: what it is, what it saw, what it reaches."""

from __future__ import annotations

import importlib.metadata
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from mirblab.encode import Encoder
from mirblab.train.journal import evaluations
from mirblab.train.settings import Recipe

_LIBRARIES = ("mirblab", "sentence-transformers", "torch", "transformers")


def model_card(recipe: Recipe, encoder: Encoder, facts: Mapping[str, Any], table: pd.DataFrame) -> str:
    """Return the card of a model trained by *recipe* from *encoder*; *table* is the log of its training.

    *facts* has n_rows, n_steps, fingerprint and precision. Nothing of the machine is written into it.
    """
    parts = [
        _head(recipe, encoder),
        f"# {recipe.label or recipe.name}",
        _what(recipe, encoder),
        f"## Data\n\n{_data(recipe, facts)}",
        f"## Recipe\n\n{_recipe(recipe, facts)}",
        f"## Evaluation\n\n{_evaluation(recipe, table)}",
        f"## Limits\n\n{_limits(recipe)}",
    ]
    return "\n\n".join(parts) + "\n"


def untrained_card(recipe: Recipe, encoder: Encoder) -> str:
    """Return the card of what a static *recipe* begins from: the token embeddings of *encoder*, as they are."""
    start = encoder.entry.get("id", recipe.encoder)
    about = f"The mean of the token embeddings of {start}, untrained: no attention, no order of words."
    use = f"It is kept to say what training brings to a model that begins as it does (base `{recipe.base}`)."
    return f"{_head(recipe, encoder)}\n\n# {recipe.encoder}, static, untrained\n\n{about} {use}\n"


def _head(recipe: Recipe, encoder: Encoder) -> str:
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


def _what(recipe: Recipe, encoder: Encoder) -> str:
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


def _data(recipe: Recipe, facts: Mapping[str, Any]) -> str:
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


def _recipe(recipe: Recipe, facts: Mapping[str, Any]) -> str:
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


def _evaluation(recipe: Recipe, table: pd.DataFrame) -> str:
    found = evaluations(table)
    if not len(found):
        return "Not evaluated while it was trained."
    found = found.iloc[[0, -1]] if len(found) > 1 else found
    names = [name for name in found.columns if name != "step"]
    rows = [
        f"| {int(row['step'])} | " + " | ".join(f"{row[name]:.4f}" for name in names) + " |"
        for row in found.to_dict("records")
    ]
    about = "Measured in the training's precision on held-out rows, before the first step and after the last."
    head = f"| step | {' | '.join(names)} |\n|---|{'---|' * len(names)}"
    return f"{about}\n\n{head}\n" + "\n".join(rows)


def _limits(recipe: Recipe) -> str:
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
