"""adapters: low-rank adapters (LoRA) in a model that is too large to be trained whole."""

from __future__ import annotations

from typing import Any

from mirblab.errors import MirblabError
from mirblab.train.settings import Recipe


def add(recipe: Recipe, model: Any) -> None:
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


def merge(model: Any) -> None:
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
