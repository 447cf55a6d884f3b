"""gradients: the gradient of one batch, in passes of texts of like length, at once or cached in little memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mirblab import inputs
from mirblab.encode import token_batches
from mirblab.train.precision import autocast

if TYPE_CHECKING:
    import torch

LossOf = Callable[["torch.Tensor"], "torch.Tensor"]


@dataclass(frozen=True)
class Passes:
    """Runs texts through a sentence-transformers *model* in passes of at most *tokens* padded tokens.

    Texts of like length share a pass, so that little of it is padding; vectors come back in the texts' order.
    """

    model: Any
    name: str
    tokens: int
    precision: str

    def vectors(self, strings: Sequence[str]) -> torch.Tensor:
        """Return the vectors (n, d) of exact *strings*, with whatever gradient is wanted around the call."""
        import torch

        batches = self.split(strings)
        joined = torch.cat([self._run(strings, batch) for batch in batches])
        return joined[torch.from_numpy(np.argsort(np.concatenate(batches))).to(joined.device)]

    def scores(self, queries: Sequence[str], documents: Sequence[str]) -> np.ndarray:
        """Return the cosine of every query with every document, exact strings, float32 (n, m), without gradients."""
        import torch
        from torch.nn.functional import normalize

        with torch.no_grad():
            asked, held = (normalize(self.vectors(strings).float(), dim=1) for strings in (queries, documents))
            return (asked @ held.T).cpu().numpy()

    def backward(self, strings: Sequence[str], loss_of: LossOf) -> float:
        """Return the loss of the vectors of *strings*, its gradient added to the model's; keeps every activation."""
        loss = loss_of(self.vectors(strings))
        loss.backward()
        return float(loss.detach())

    def cached_backward(self, strings: Sequence[str], loss_of: LossOf) -> float:
        """Return what `backward` does, with the activations of one pass in memory at a time.

        Vectors are made without gradients, the loss tells each its gradient, and a second forward pass, with the
        random states of the first, carries it into the weights. Gao et al. 2021 (RepL4NLP), "Scaling deep contrastive
        learning batch size under memory limited setup".
        """
        import torch

        batches, states, found = self.split(strings), [], []
        with torch.no_grad():
            for batch in batches:
                states.append(_random_state(self.model.device))
                found.append(self._run(strings, batch).float())
        order = torch.from_numpy(np.concatenate(batches)).to(self.model.device)
        joined = torch.cat(found)
        vectors = torch.empty_like(joined).index_copy_(0, order, joined).requires_grad_()
        loss = loss_of(vectors)
        loss.backward()
        for batch, state in zip(batches, states, strict=True):
            _restore(state, self.model.device)
            again = self._run(strings, batch)
            again.backward(vectors.grad[torch.as_tensor(batch, device=vectors.device)].to(again.dtype))
        return float(loss.detach())

    def split(self, strings: Sequence[str]) -> list[list[int]]:
        """Return the positions of *strings* in passes, the longest texts first."""
        lengths = inputs.lengths(self.model.tokenizer, strings, self.name)
        return list(token_batches(np.minimum(lengths, int(min(self.model.max_seq_length, 2**31))), self.tokens))

    def _run(self, strings: Sequence[str], batch: Sequence[int]) -> torch.Tensor:
        features = inputs.features(self.model, [strings[place] for place in batch])
        device = self.model.device
        moved = {name: value.to(device) if hasattr(value, "to") else value for name, value in features.items()}
        with autocast(self.precision, device.type):
            made = self.model(moved)
        return self._wanted(made, features)

    def _wanted(self, made: Mapping[str, torch.Tensor], features: Mapping[str, Any]) -> torch.Tensor:
        """Return of a pass's output what stands for the texts, a row each."""
        return made["sentence_embedding"]


def _random_state(device: torch.device) -> list[torch.Tensor]:
    import torch

    states = [torch.get_rng_state()]
    return [*states, torch.cuda.get_rng_state(device)] if device.type == "cuda" else states


def _restore(states: list[torch.Tensor], device: torch.device) -> None:
    import torch

    torch.set_rng_state(states[0])
    for state in states[1:]:
        torch.cuda.set_rng_state(state, device)
