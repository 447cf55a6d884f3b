"""tokens: token embeddings that a static model has learned, as those that a transformer starts from."""

from __future__ import annotations

from typing import Any

from mirblab import engine
from mirblab.encode import encoder
from mirblab.errors import MirblabError
from mirblab.train.settings import Recipe


def start(recipe: Recipe, model: Any) -> None:
    """Move the token embeddings of *model* towards those of the static model `recipe.tokens_from`, by its share.

    Each keeps its length, so that position and layer normalisation weigh as before. Raises MirblabError when the two
    models do not have the same tokens and dimensions.
    """
    import torch

    static = encoder(recipe.tokens_from)
    learned = engine.load_anew(static.name, static.entry, static.folder)
    own, table = model[0].model.get_input_embeddings().weight, getattr(learned[0], "embedding", None)
    if table is None:
        raise MirblabError(f"{_where(recipe)} is no static embedding; train one with base = 'static:{recipe.base}'")
    if table.weight.shape != own.shape or learned.tokenizer.get_vocab() != model.tokenizer.get_vocab():
        raise MirblabError(
            f"{_where(recipe)} has {tuple(table.weight.shape)} tokens and dimensions, '{recipe.base}' has "
            f"{tuple(own.shape)}, or other tokens; take one whose base is 'static:{recipe.base}'"
        )
    with torch.no_grad():
        moved = torch.lerp(own.float(), table.weight.to(own.device), recipe.tokens_share)
        lengths = own.norm(dim=1, keepdim=True) / moved.norm(dim=1, keepdim=True).clamp_min(1e-12)
        own.copy_(moved * lengths)


def _where(recipe: Recipe) -> str:
    return f"recipe '{recipe.name}': tokens_from = '{recipe.tokens_from}'"
