"""base: the model that training starts from: an encoder, its token embeddings alone, or an encoder under LoRA."""

from __future__ import annotations

from typing import Any

from mirblab import engine
from mirblab.encode import Encoder, encoder
from mirblab.errors import MirblabError
from mirblab.train import adapters, late, tokens
from mirblab.train.settings import Recipe


def starting_encoder(recipe: Recipe) -> Encoder:
    """Return the registry's encoder that *recipe* starts from; MirblabError for one that cannot be trained here."""
    found = encoder(recipe.encoder)
    if "vendor" in found.entry:
        raise MirblabError(
            f"recipe '{recipe.name}': '{recipe.encoder}' runs at a vendor and cannot be trained here; take another base"
        )
    if not found.entry.get("prompt_pooled", True):
        raise MirblabError(
            f"recipe '{recipe.name}': '{recipe.encoder}' leaves its prompt out of the pooling, which training does "
            "not do; take another base"
        )
    return found


def device() -> str:
    """Return where models are loaded: "cuda" where there is such a GPU, else "cpu"."""
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def build(recipe: Recipe, found: Encoder) -> Any:
    """Return a new sentence-transformers model of *recipe*, made of the encoder *found*, ready to be trained.

    What is drawn for it (LoRA's first weights) comes from the recipe's seed. Texts are cut at the recipe's length.
    """
    import torch

    numbers = {"dtype": "float32" if recipe.is_static else recipe.weights}
    model = engine.load_anew(found.name, found.entry | numbers, found.folder)
    if recipe.is_static:
        return static(model, recipe.max_length)
    if recipe.tokens_from:
        tokens.start(recipe, model)
    if recipe.lora:
        with torch.random.fork_rng():
            torch.manual_seed(recipe.seed)
            adapters.add(recipe, model)
    if not recipe.dropout:
        _without_dropout(model)
    if recipe.late:
        late.add_layer(model, recipe.late, recipe.seed)
    if recipe.recompute:
        whole = model[0].model
        # transformers 5.2x gave it another name
        enable = getattr(whole, "activation_checkpointing_enable", None) or whole.gradient_checkpointing_enable
        enable({"use_reentrant": False})
    model.max_seq_length = recipe.max_length
    return model


def static(model: Any, max_length: int) -> Any:
    """Return a model that is the mean of *model*'s token embeddings, normalised: no attention, no order of words."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import Normalize
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding

    weights = model[0].model.get_input_embeddings().weight.detach().float().clone()
    module = StaticEmbedding(model.tokenizer, embedding_weights=weights)
    module.tokenizer.enable_truncation(max_length)
    return SentenceTransformer(modules=[module, Normalize()], device=str(model.device))


def _without_dropout(model: Any) -> None:
    """Let every layer of *model* keep all of its activations; attention, too, which then runs fused on a CPU."""
    import torch

    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
        # Qwen's layers keep a number instead of a layer
        if isinstance(getattr(module, "attention_dropout", None), float):
            module.attention_dropout = 0.0


def finish(recipe: Recipe, found: Encoder, model: Any) -> Any:
    """Return *model* as it is kept: adapters merged into the weights, texts read as far as the encoder *found* does."""
    if recipe.is_static:
        model[0].tokenizer.enable_truncation(found.max_length)
        return model
    if recipe.lora:
        adapters.merge(model)
    model.max_seq_length = found.max_length
    return model
