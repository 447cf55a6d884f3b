"""model: the model that is trained: base, adapters, static tokens."""

from __future__ import annotations

from typing import Any

from mirblab.core.errors import MirblabError
from mirblab.encoders import local
from mirblab.encoders.encoding import Encoder, encoder
from mirblab.train import loss
from mirblab.train.recipes import Recipe


def starting_encoder(recipe: Recipe) -> Encoder:
    """Return the registry's encoder that *recipe* starts from; MirblabError for one that cannot be trained here."""
    base = encoder(recipe.encoder)
    if "vendor" in base.entry:
        raise MirblabError(
            f"recipe '{recipe.name}': '{recipe.encoder}' runs at a vendor and cannot be trained here; take another base"
        )
    if not base.entry.get("prompt_pooled", True):
        raise MirblabError(
            f"recipe '{recipe.name}': '{recipe.encoder}' leaves its prompt out of the pooling, which training does "
            "not do; take another base"
        )
    return base


def training_device() -> str:
    """Return where models are loaded: "cuda" where there is such a GPU, else "cpu"."""
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def build_model(recipe: Recipe, base: Encoder) -> Any:
    """Return a new sentence-transformers model of *recipe*, made of the encoder *base*, ready to be trained.

    What is drawn for it (LoRA's first weights) comes from the recipe's seed. Texts are cut at the recipe's length.
    """
    import torch

    numbers = {"dtype": "float32" if recipe.is_static else recipe.weights}
    model = local.load_anew(base.name, base.entry | numbers, base.folder)
    if recipe.is_static:
        return static_model(model, recipe.max_length)
    if recipe.tokens_from:
        move_token_embeddings(recipe, model)
    if recipe.lora:
        with torch.random.fork_rng():
            torch.manual_seed(recipe.seed)
            add_adapters(recipe, model)
    if not recipe.dropout:
        _without_dropout(model)
    if recipe.late:
        loss.add_token_layer(model, recipe.late, recipe.seed)
    if recipe.recompute:
        whole = model[0].model
        # transformers 5.2x gave it another name
        enable = getattr(whole, "activation_checkpointing_enable", None) or whole.gradient_checkpointing_enable
        enable({"use_reentrant": False})
    model.max_seq_length = recipe.max_length
    return model


def finish_model(recipe: Recipe, base: Encoder, model: Any) -> Any:
    """Return *model* as it is kept: adapters merged into the weights, texts read as far as the encoder *base* does."""
    if recipe.is_static:
        model[0].tokenizer.enable_truncation(base.max_length)
        return model
    if recipe.lora:
        merge_adapters(model)
    model.max_seq_length = base.max_length
    return model


def static_model(model: Any, max_length: int) -> Any:
    """Return a model that is the mean of *model*'s token embeddings, normalised: no attention, no order of words."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import Normalize
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding

    weights = model[0].model.get_input_embeddings().weight.detach().float().clone()
    module = StaticEmbedding(model.tokenizer, embedding_weights=weights)
    module.tokenizer.enable_truncation(max_length)
    return SentenceTransformer(modules=[module, Normalize()], device=str(model.device))


def add_adapters(recipe: Recipe, model: Any) -> None:
    """Freeze *model* and put a trainable adapter of the recipe's rank beside each of its linear layers.

    The adapters are held in float32, whatever the frozen weights are held in. Hu et al. 2022 (ICLR).
    Raises MirblabError where peft is not installed.
    """
    try:
        from peft import LoraConfig
    except ImportError as error:
        raise MirblabError(
            f"recipe '{recipe.name}' has lora = {recipe.lora}, which needs peft: pip install 'mirblab[train-gpu]'"
        ) from error
    settings = LoraConfig(r=recipe.lora, lora_alpha=2 * recipe.lora, lora_dropout=0.0, target_modules="all-linear")
    model[0].model.add_adapter(settings)
    for parameter in model.parameters():
        if parameter.requires_grad:
            parameter.data = parameter.data.float()


def merge_adapters(model: Any) -> None:
    """Add the adapters' products to the weights beside them, and take the adapters out again."""
    from peft.tuners.tuners_utils import BaseTunerLayer

    whole = model[0].model
    for name, layer in list(whole.named_modules()):
        if isinstance(layer, BaseTunerLayer):
            layer.merge()
            parent, _, own = name.rpartition(".")
            setattr(whole.get_submodule(parent), own, layer.get_base_layer())
    whole._hf_peft_config_loaded = False
    del whole.peft_config


def move_token_embeddings(recipe: Recipe, model: Any) -> None:
    """Move the token embeddings of *model* towards those of the static model `recipe.tokens_from`, by its share.

    Each keeps its length, so that position and layer normalisation weigh as before. Raises MirblabError when the two
    models do not have the same tokens and dimensions.
    """
    import torch

    static = encoder(recipe.tokens_from)
    learned = local.load_anew(static.name, static.entry, static.folder)
    weights, table = model[0].model.get_input_embeddings().weight, getattr(learned[0], "embedding", None)
    if table is None:
        raise MirblabError(f"{_where(recipe)} is no static embedding; train one with base = 'static:{recipe.base}'")
    if table.weight.shape != weights.shape or learned.tokenizer.get_vocab() != model.tokenizer.get_vocab():
        raise MirblabError(
            f"{_where(recipe)} has {tuple(table.weight.shape)} tokens and dimensions, '{recipe.base}' has "
            f"{tuple(weights.shape)}, or other tokens; take one whose base is 'static:{recipe.base}'"
        )
    with torch.no_grad():
        mixed = torch.lerp(weights.float(), table.weight.to(weights.device), recipe.tokens_share)
        lengths = weights.norm(dim=1, keepdim=True) / mixed.norm(dim=1, keepdim=True).clamp_min(1e-12)
        weights.copy_(mixed * lengths)


def _where(recipe: Recipe) -> str:
    return f"recipe '{recipe.name}': tokens_from = '{recipe.tokens_from}'"


def _without_dropout(model: Any) -> None:
    """Let every layer of *model* keep all of its activations; attention, too, which then runs fused on a CPU."""
    import torch

    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
        # Qwen's layers keep a number instead of a layer
        if isinstance(getattr(module, "attention_dropout", None), float):
            module.attention_dropout = 0.0
