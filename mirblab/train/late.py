"""late: late interaction in training: the token vectors of a batch, their MaxSim, its loss, and a layer to learn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mirblab import hidden
from mirblab.errors import MirblabError
from mirblab.late import NOTHING, Ragged, max_sims
from mirblab.late_search import token_blocks
from mirblab.train.gradients import Passes

if TYPE_CHECKING:
    import torch

_SCORED = 512  # document tokens at a time
OUTPUT = "token_vectors"  # beside the hidden states, so that the model's passage vectors stay what they are


@dataclass(frozen=True)
class TokenPasses(Passes):
    """Runs texts as `Passes` does, for the unit vectors of their tokens in the place of one vector each.

    They come back as (n, length, d + 1): padded with zeros to *length* tokens, the last column 1 where a token is, so
    that a batch is one tensor and its gradient, at once or cached, is that of `Passes`. Special tokens are padding.
    """

    length: int = 128

    def _wanted(self, made: Mapping[str, torch.Tensor], features: Mapping[str, Any]) -> torch.Tensor:
        import torch
        from torch.nn.functional import normalize, pad

        mask = torch.from_numpy(hidden.is_token(self.model.tokenizer, features)).to(self.model.device)
        if mask.shape[1] > self.length:
            raise MirblabError(f"a text has {mask.shape[1]} tokens, padding is for {self.length}; raise length")
        tokens = normalize(made[hidden.output(self.model)].float(), dim=-1) * mask[..., None]
        return pad(torch.cat([tokens, mask[..., None].float()], dim=-1), (0, 0, 0, self.length - mask.shape[1]))

    def scores(self, queries: Sequence[str], documents: Sequence[str]) -> np.ndarray:
        """Return the MaxSim of every query with every document, exact strings, float32 (n, m), without gradients."""
        asked, held = (self._rows(strings) for strings in (queries, documents))
        own, parts = asked.block(0, len(queries)), [np.empty((len(queries), 0), np.float32)]
        for cut in token_blocks(held.lengths, _SCORED, _SCORED):
            block = held.block(cut.start, cut.stop)
            parts.append(max_sims(own, asked.lengths, block, held.lengths[cut]))
        return np.concatenate(parts, axis=1)

    def _rows(self, strings: Sequence[str]) -> Ragged:
        """Return the token vectors without padding, pass by pass, so that little memory is held."""
        import torch

        found: list[np.ndarray] = [np.empty((0, 0), np.float32)] * len(strings)
        for batch in self.split(strings):
            with torch.no_grad():
                made = self._run(strings, batch).cpu().numpy()
            for place, own in zip(batch, made, strict=True):
                found[place] = own[own[:, -1] == 1, :-1]
        return Ragged.of(found)


def late_scores(
    query_tokens: torch.Tensor, query_mask: torch.Tensor, document_tokens: torch.Tensor, document_mask: torch.Tensor
) -> torch.Tensor:
    """Return the MaxSim of every query with every document, (n, m), as `late.max_sim` has it, with its gradient.

    Tokens are (n, length, d) unit vectors and (m, length, d); masks (n, length) and (m, length) are True where a
    token of the text is: special tokens and padding count on neither side. A text without tokens scores -1.

    >>> import torch
    >>> query, mask = torch.eye(2)[None], torch.tensor([[True, True]])
    >>> late_scores(query, mask, query, torch.tensor([[True, False]])).tolist()
    [[0.5]]
    """
    import torch

    query_mask, document_mask = query_mask.bool(), document_mask.bool()
    asked, held = query_mask.any(0), document_mask.any(0)  # places that are padding in every text cost nothing
    cosines = torch.einsum("qid,kjd->qkij", query_tokens[:, asked], document_tokens[:, held])
    best = cosines.masked_fill(~document_mask[:, held][None, :, None], -torch.inf)
    counts = query_mask.sum(1)[:, None]
    is_full = (counts > 0) & document_mask.any(1)
    if not cosines.numel():
        return cosines.new_full(is_full.shape, NOTHING)
    summed = best.max(-1).values.masked_fill(~query_mask[:, asked][:, None] | ~is_full[..., None], 0.0).sum(-1)
    return torch.where(is_full, summed / counts.clamp(min=1), NOTHING)


def packed_scores(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Return the MaxSim of texts as `TokenPasses` packs them, (n, length, d + 1): the *score* of `loss.ranking_loss`.

    The softmax over the batch is that of Khattab and Zaharia (SIGIR 2020); since MaxSim is a mean here and not a sum,
    the loss's scale is that of a cosine.
    """
    return late_scores(one[..., :-1], one[..., -1], other[..., :-1], other[..., -1])


def add_layer(model: Any, dimensions: int, seed: int = 0) -> None:
    """Give a sentence-transformers *model*, in place, a linear layer from its hidden states to token vectors.

    The layer is an ordinary Dense module without bias, kept with the model; its first weights are a random subspace,
    as in `late_shrink.projected`. Passage vectors stay what they are. Raises MirblabError for a model without hidden
    states, with such a layer, or with fewer dimensions.
    """
    import torch
    from sentence_transformers.base.modules import Dense

    width = model[0].get_embedding_dimension()
    if not hasattr(model[0], "model") or hidden.layers(model):
        raise MirblabError("a layer of token vectors wants a transformer that has none yet; take another base")
    if not 0 < dimensions <= width:
        raise MirblabError(f"token vectors are made of {width} numbers; ask for 1 to {width} dimensions")
    basis = np.linalg.qr(np.random.default_rng(seed).standard_normal((width, dimensions)))[0].T
    weight = torch.tensor(np.ascontiguousarray(basis), dtype=torch.float32)
    names = {"module_input_name": hidden.TOKENS, "module_output_name": OUTPUT}
    layer = Dense(width, dimensions, bias=False, activation_function=None, init_weight=weight, **names)
    model.insert(1, layer.to(model.device))
