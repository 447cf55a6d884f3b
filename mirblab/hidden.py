"""hidden: the token vectors of a model's batch, and the tokens themselves, special ones and padding left out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

TOKENS = "token_embeddings"


def output(model: Any) -> str:
    """Return the name of the model's output that holds its token vectors for late interaction.

    These are the last hidden states, or what a sentence-transformers Dense module makes of them: the layer that
    `train.late` learns.
    """
    made = [layer.module_output_name for layer in layers(model)]
    return made[-1] if made else TOKENS


def layers(modules: Iterable[Any]) -> list[Any]:
    """Return those of a model's modules that change each token's vector, and nothing else."""
    return [module for module in modules if getattr(module, "module_input_name", "") == TOKENS]


def is_token(tokenizer: Any, features: Mapping[str, Any]) -> np.ndarray:
    """Return where a batch has tokens of the text, bool (n_texts, n_places): not special ones, not padding."""
    is_special = np.isin(features["input_ids"].cpu().numpy(), tokenizer.all_special_ids)
    return features["attention_mask"].cpu().numpy().astype(bool) & ~is_special


def rows(tokenizer: Any, features: Mapping[str, Any], vectors: np.ndarray) -> list[np.ndarray]:
    """Return for each text of a batch the unit vectors (n_tokens, d) of its tokens."""
    made = unit(vectors)
    return [own[kept] for own, kept in zip(made, is_token(tokenizer, features), strict=True)]


def labels(tokenizer: Any, features: Mapping[str, Any]) -> list[list[str]]:
    """Return for each text of a batch its tokens as strings, in the order of `rows`."""
    ids = features["input_ids"].cpu().numpy()
    kept = is_token(tokenizer, features)
    return [tokenizer.convert_ids_to_tokens(own[here].tolist()) for own, here in zip(ids, kept, strict=True)]


def unit(vectors: np.ndarray) -> np.ndarray:
    """Return float32 vectors with length 1 along the last axis; zeros stay zero.

    >>> unit(np.array([[3, 4], [0, 0]], np.float32)).tolist()
    [[0.6000000238418579, 0.800000011920929], [0.0, 0.0]]
    """
    norms = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return vectors / np.maximum(norms, 1e-12, dtype=np.float32)
