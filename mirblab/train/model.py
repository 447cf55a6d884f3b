"""model: the model that is trained: base, adapters, static tokens."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from mirblab.core.errors import MirblabError
from mirblab.encoders import local
from mirblab.encoders.encoding import Encoder, encoder
from mirblab.train import loss
from mirblab.train.pretraining import add_language_heads, remove_language_heads
from mirblab.train.recipes import Recipe


def starting_encoder(recipe: Recipe) -> Encoder:
    """Return the encoder that *recipe* starts from; MirblabError for one that cannot be trained here."""
    base = encoder(recipe.encoder)
    if "vendor" in base.entry:
        raise MirblabError(
            f"recipe '{recipe.name}': '{recipe.encoder}' runs at a vendor and cannot be trained here; take another base"
        )
    if base.folder and local.is_static(base.folder):
        raise MirblabError(
            f"recipe '{recipe.name}': '{recipe.encoder}' is a static embedding, and training begins with a "
            'transformer; take the encoder that it was made from, as base = "..." or base = "static:..."'
        )
    if not base.entry.get("prompt_pooled", True):
        raise MirblabError(
            f"recipe '{recipe.name}': '{recipe.encoder}' leaves its prompt out of the pooling, which training does "
            "not do; take another base"
        )
    return base


def training_device() -> str:
    """Return "cuda" where there is such a GPU, else "cpu"."""
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def build_model(recipe: Recipe, base: Encoder) -> Any:
    """Return a new model of *recipe* from *base*, ready to be trained; LoRA's weights depend on the recipe's seed.

    MirblabError for a recipe with an instruction whose base has no place for one.
    """
    import torch

    if recipe.instruction and "{instruction}" not in str(base.entry["prompts"].get("query")):
        raise MirblabError(
            f"recipe '{recipe.name}' has an instruction, and the query prompt of its base {base.name} has no "
            "{instruction}, so that it would not be read; register the base with a prompt that has it, or leave it out"
        )
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
    _prepare(recipe, model)
    if recipe.late:
        loss.add_token_layer(model, recipe.late, recipe.seed)
    if recipe.recompute:
        whole = model[0].model
        # transformers 5.2x gave it another name
        enable = getattr(whole, "activation_checkpointing_enable", None) or whole.gradient_checkpointing_enable
        enable({"use_reentrant": False})
    return model


def build_language_model(recipe: Recipe, base: Encoder, new_words: Sequence[str]) -> Any:
    """Return a new model of *recipe* with BERT's layers for both tasks of pretraining and tokens for *new_words*."""
    model = local.load_anew(base.name, base.entry | {"dtype": "float32"}, base.folder)
    add_language_heads(model, recipe, new_words)
    _prepare(recipe, model)
    return model


def build_cross_encoder(recipe: Recipe, base: Encoder) -> Any:
    """Return a new CrossEncoder of *recipe*: *base*'s transformer and what makes a score of its token vectors.

    `pooling` "segments" compares both segments after layers in which they read each other; else a linear layer, drawn
    by the seed and near 0, follows the pooling. There is no sigmoid, so that scores of good documents differ.
    """
    if base.entry.get("pretokens"):
        raise MirblabError(
            f"recipe '{recipe.name}': '{recipe.base}' reads rewritten formulas (pretokens), which a cross-encoder does "
            "not; take another base"
        )
    import torch
    from sentence_transformers import CrossEncoder
    from sentence_transformers.sentence_transformer.modules import Pooling

    transformer = local.load_anew(base.name, base.entry | {"dtype": "float32"}, base.folder)[0]
    width = transformer.get_embedding_dimension()
    if recipe.pooling == "segments":
        if "token_type_ids" not in transformer.tokenizer.model_input_names:
            raise MirblabError(
                f"recipe '{recipe.name}': the tokens of '{recipe.base}' do not say which belong to the document, as "
                'pooling = "segments" needs; write pooling = "mean"'
            )
        transformer.model.config.num_labels = 1  # what CrossEncoder reads where no Dense layer makes the scores
        modules = _segment_modules(recipe, transformer, width)
    else:
        modules = [transformer, Pooling(width, recipe.pooling), _score_layer(recipe, width)]
    model = CrossEncoder(
        modules=modules,
        num_labels=1,
        device=training_device(),
        activation_fn=torch.nn.Identity(),
    )
    _prepare(recipe, model)
    return model


def _segment_modules(recipe: Recipe, transformer: Any, width: int) -> list[Any]:
    import torch

    from mirblab.encoders.segments import SegmentInteraction, SegmentSimilarity, SegmentTransformer

    with torch.random.fork_rng():
        torch.manual_seed(recipe.seed)
        interaction = SegmentInteraction(width, recipe.joint_layers)
    return [SegmentTransformer.of(transformer), interaction, SegmentSimilarity(width)]


def _score_layer(recipe: Recipe, width: int) -> Any:
    import torch
    from sentence_transformers.base.modules import Dense

    drawn = np.random.default_rng(recipe.seed).standard_normal((1, width)) * 0.02
    return Dense(
        width,
        1,
        activation_function=None,
        init_weight=torch.tensor(drawn, dtype=torch.float32),
        init_bias=torch.zeros(1),
        module_output_name="scores",
    )


def finish_model(recipe: Recipe, base: Encoder, model: Any) -> Any:
    """Return *model* as it is stored: without pretraining's layers, adapters merged.

    It has the maximum length of *base*, and its prompts, with which it was trained.
    """
    model.prompts = dict(base.entry["prompts"])
    if recipe.is_static:
        if hasattr(model[0].embedding, "whole"):
            model[0].embedding = model[0].embedding.joined()
        model[0].tokenizer.enable_truncation(base.max_length)
        return model
    if recipe.is_language_model:
        remove_language_heads(model)
    if recipe.lora:
        merge_adapters(model)
    model.max_seq_length = base.max_length
    return model


def static_model(model: Any, max_length: int) -> Any:
    """Return a model that is the normalised mean of *model*'s token embeddings, without attention."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import Normalize
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding

    weights = model[0].model.get_input_embeddings().weight.detach().float().clone()
    module = StaticEmbedding(model.tokenizer, embedding_weights=weights)
    module.tokenizer.enable_truncation(max_length)
    return SentenceTransformer(modules=[module, Normalize()], device=str(model.device))


def train_used_tokens(model: Any, strings: Iterable[str]) -> None:
    """Let a static *model* be trained, in place, on the embeddings of the tokens of *strings* alone; `joined` ends it.

    The others would never have a gradient and, without weight decay, would never change; a step over all of them takes
    ten times as long where few are used.
    """
    import torch
    from torch import nn

    class UsedTokens(nn.Module):
        """Stands for an EmbeddingBag; *whole* keeps the embeddings that are not trained."""

        def __init__(self, whole: nn.EmbeddingBag, used: torch.Tensor) -> None:
            super().__init__()
            self.whole, self.used = (whole,), used  # in a tuple, so that it is no part of what is trained or stored
            self.places = torch.full((len(whole.weight),), -1).index_copy(0, used.cpu(), torch.arange(len(used)))
            self.places = self.places.to(whole.weight.device)
            self.weight = nn.Parameter(whole.weight.detach()[used].clone())

        def forward(self, ids: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
            places = self.places[ids]
            rows: torch.Tensor = self.weight
            if bool((others := places < 0).any()):  # a text of an evaluation
                rows = torch.cat([rows, self.whole[0].weight[ids[others]]])
                places = places.masked_scatter(others, torch.arange(len(self.weight), len(rows), device=ids.device))
            return nn.functional.embedding_bag(places, rows, offsets, mode=self.whole[0].mode)

        def joined(self) -> nn.EmbeddingBag:
            with torch.no_grad():
                self.whole[0].weight[self.used] = self.weight
            return self.whole[0]

    ids = [encoding.ids for encoding in model[0].tokenizer.encode_batch(list(strings), add_special_tokens=False)]
    used = torch.tensor(sorted({token for row in ids for token in row}), device=model.device)
    model[0].embedding = UsedTokens(model[0].embedding, used)


def add_adapters(recipe: Recipe, model: Any) -> None:
    """Freeze *model* and add a trainable float32 adapter to each of its linear layers (Hu et al., ICLR 2022)."""
    try:
        from peft import LoraConfig
    except ImportError as error:
        raise MirblabError(
            f"recipe '{recipe.name}' has lora = {recipe.lora}, which needs peft; in the checkout: "
            "pip install --editable '.[train-gpu]'"
        ) from error
    settings = LoraConfig(r=recipe.lora, lora_alpha=2 * recipe.lora, lora_dropout=0.0, target_modules="all-linear")
    model[0].model.add_adapter(settings)
    for parameter in model.parameters():
        if parameter.requires_grad:
            parameter.data = parameter.data.float()


def merge_adapters(model: Any) -> None:
    """Add the adapters' products to the weights, and remove the adapters."""
    from peft.tuners.tuners_utils import BaseTunerLayer

    whole = model[0].model
    for name, layer in list(whole.named_modules()):
        if isinstance(layer, BaseTunerLayer):
            layer.merge()
            parent, _, layer_name = name.rpartition(".")
            setattr(whole.get_submodule(parent), layer_name, layer.get_base_layer())
    whole._hf_peft_config_loaded = False
    del whole.peft_config


def move_token_embeddings(recipe: Recipe, model: Any) -> None:
    """Move *model*'s token embeddings towards those of the static model `recipe.tokens_from`, by the recipe's share.

    Each keeps its length, so that position and layer normalisation weigh as before. Raises MirblabError if the models
    differ in tokens or dimensions.
    """
    import torch

    static = encoder(recipe.tokens_from)
    learned = local.load_anew(static.name, static.entry, static.folder)
    weights, table = model[0].model.get_input_embeddings().weight, getattr(learned[0], "embedding", None)
    where = f"recipe '{recipe.name}': tokens_from = '{recipe.tokens_from}'"
    if table is None:
        raise MirblabError(f"{where} is no static embedding; train one with base = 'static:{recipe.base}'")
    if table.weight.shape != weights.shape or learned.tokenizer.get_vocab() != model.tokenizer.get_vocab():
        raise MirblabError(
            f"{where} has {tuple(table.weight.shape)} tokens and dimensions, '{recipe.base}' has "
            f"{tuple(weights.shape)}, or other tokens; take one whose base is 'static:{recipe.base}'"
        )
    with torch.no_grad():
        mixed = torch.lerp(weights.float(), table.weight.to(weights.device), recipe.tokens_share)
        lengths = weights.norm(dim=1, keepdim=True) / mixed.norm(dim=1, keepdim=True).clamp_min(1e-12)
        weights.copy_(mixed * lengths)


def _prepare(recipe: Recipe, model: Any) -> None:
    """Set what every transformer is trained with: dropout, attention and the longest text."""
    if not recipe.dropout:
        _without_dropout(model)
    local.use_plain_attention(model)
    model.max_seq_length = recipe.max_length


def _without_dropout(model: Any) -> None:
    """Disable dropout in every layer, also in attention, which then runs fused on a CPU."""
    import torch

    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
        # Qwen's layers keep a number instead of a layer
        if isinstance(getattr(module, "attention_dropout", None), float):
            module.attention_dropout = 0.0
