"""state: what a step changes, as named tensors: the trained weights and what the optimiser remembers of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mirblab.errors import MirblabError

if TYPE_CHECKING:
    import torch


def trained(model: Any) -> dict[str, torch.nn.Parameter]:
    """Return the parameters that are trained, by name; tied ones once."""
    return {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}


def snapshot(model: Any, optimiser: Any) -> dict[str, torch.Tensor]:
    """Return the trained weights, the model's buffers and the optimiser's state, as tensors on the CPU by name."""
    found = {f"weight/{name}": parameter.detach() for name, parameter in trained(model).items()}
    found |= {f"buffer/{name}": value for name, value in model.named_buffers()}
    for name, parameter in trained(model).items():
        found |= {f"optimiser/{field}/{name}": value for field, value in optimiser.state[parameter].items()}
    return {name: value.cpu().contiguous() for name, value in found.items()}


def average(model: Any, before: dict[str, torch.Tensor], share: float) -> None:
    """Replace the trained weights of *model* by their mean with those of *before*, trained ones counting *share*.

    Wortsman et al. 2022 (CVPR), "Robust fine-tuning of zero-shot models".
    """
    import torch

    with torch.no_grad():
        for name, parameter in trained(model).items():
            parameter.copy_(torch.lerp(before[name].to(parameter.device), parameter, share))


def restore(model: Any, optimiser: Any, found: dict[str, torch.Tensor]) -> None:
    """Put what `snapshot` returned back; MirblabError when it belongs to a model with other parameters."""
    import torch

    weights, buffers = trained(model), dict(model.named_buffers())
    known = {f"weight/{name}": parameter.data for name, parameter in weights.items()}
    known |= {f"buffer/{name}": value for name, value in buffers.items()}
    held = {name: value for name, value in found.items() if not name.startswith("optimiser/")}
    if {name: value.shape for name, value in held.items()} != {name: value.shape for name, value in known.items()}:
        raise MirblabError("the checkpoint holds the weights of another model; begin anew with --force")
    with torch.no_grad():
        for name, value in held.items():
            known[name].copy_(value)
    for name, value in found.items():
        if name.startswith("optimiser/"):
            _, field, own = name.split("/", 2)
            # AdamW counts its steps on the CPU
            place = value.device if field == "step" else weights[own].device
            optimiser.state[weights[own]][field] = value.clone().to(place)
