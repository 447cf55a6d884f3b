"""loss: the ranking loss over vectors or token vectors, and its gradient for large batches."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from mirblab.core.errors import MirblabError
from mirblab.encoders import entry, local
from mirblab.encoders.encoding import token_batches
from mirblab.retrieval.late_interaction import NOTHING, TokenMatrices, max_sim_matrix, split_by_budget

if TYPE_CHECKING:
    import torch

TOKEN_OUTPUT = "token_vectors"  # beside the hidden states, so that the model's passage vectors stay what they are
_TOKENS_PER_BLOCK = 512  # document tokens at a time
LossOf = Callable[["torch.Tensor"], "torch.Tensor"]


def cosines(queries: torch.Tensor, documents: torch.Tensor) -> torch.Tensor:
    """Return the cosine of every row of *queries* (n, d) with every row of *documents* (m, d), float32 (n, m)."""
    from torch.nn.functional import normalize

    return normalize(queries.float(), dim=-1) @ normalize(documents.float(), dim=-1).T


def ranking_loss(
    anchors: torch.Tensor,
    positives: torch.Tensor,
    same: np.ndarray,
    *,
    scale: float = 20.0,
    symmetric: bool = False,
    negatives: torch.Tensor | None = None,
    same_negatives: np.ndarray | None = None,
    score: Callable[[torch.Tensor, torch.Tensor], torch.Tensor] = cosines,
) -> torch.Tensor:
    """Return the mean cross-entropy of each anchor's positive under a softmax of *score* times *scale*, a scalar >= 0.

    *anchors* and *positives* are n texts, (n, d) for cosines, *negatives* m further columns for every anchor. *same*
    (n, n) and *same_negatives* (n, m) are True where a text is no wrong answer, and is left out. *symmetric*: the mean
    with the loss from positives to anchors. Henderson et al. 2017 (multiple negatives), van den Oord et al. 2018.
    """
    import torch
    from torch.nn.functional import cross_entropy

    def scored(others: torch.Tensor, left_out: np.ndarray) -> torch.Tensor:
        mask = torch.from_numpy(left_out).to(anchors.device)
        return (scale * score(anchors, others)).masked_fill(mask, -torch.inf)

    right, scores = torch.arange(len(anchors), device=anchors.device), scored(positives, same)
    columns = scores
    if negatives is not None and same_negatives is not None:
        columns = torch.cat([scores, scored(negatives, same_negatives)], dim=1)
    loss = cross_entropy(columns, right)
    return (loss + cross_entropy(scores.T, right)) / 2 if symmetric else loss


def same_texts(anchors: Sequence[str], positives: Sequence[str]) -> np.ndarray:
    """Return (n, n): whether, by equal texts, another anchor's positive (column) is no wrong answer to an anchor."""
    a, p = _text_numbers(anchors, positives)
    same = (a[:, None] == a) | (p[:, None] == p) | (a[:, None] == p)
    np.fill_diagonal(same, False)
    return same


def same_as_negatives(anchors: Sequence[str], positives: Sequence[str], negatives: Sequence[str]) -> np.ndarray:
    """Return (n, m): whether a hard negative (column) has the text of an anchor (row) or of its positive."""
    a, p, n = _text_numbers(anchors, positives, negatives)
    return (a[:, None] == n) | (p[:, None] == n)


def _text_numbers(*columns: Sequence[str]) -> list[np.ndarray]:
    known: dict[str, int] = {}
    return [np.array([known.setdefault(text, len(known)) for text in column], dtype=np.intp) for column in columns]


def resolve_precision(precision: str, device: str) -> str:
    """Return "float32" or "bfloat16"; "auto": bfloat16 on hardware that has it (a GPU, AVX512-BF16 or AMX)."""
    if precision != "auto":
        return precision
    import torch

    if device == "cuda":
        return "bfloat16" if torch.cuda.is_bf16_supported() else "float32"
    able = torch.cpu.get_capabilities()
    return "bfloat16" if able.get("avx512_bf16") or able.get("amx_bf16") else "float32"


@dataclass(frozen=True)
class Passes:
    """Runs texts through a *model* in passes of texts of similar length, at most *tokens* padded tokens each."""

    model: Any
    name: str
    tokens: int
    precision: str

    def vectors(self, strings: Sequence[Any]) -> torch.Tensor:
        """Return the vectors (n, d) of exact *strings*, with gradients where torch computes them."""
        import torch

        batches = self.split(strings)
        joined = torch.cat([self._run(strings, batch) for batch in batches])
        return joined[torch.from_numpy(np.argsort(np.concatenate(batches))).to(joined.device)]

    def scores(self, queries: Sequence[str], documents: Sequence[str]) -> np.ndarray:
        """Return the cosine of every query with every document, exact strings, float32 (n, m), without gradients."""
        import torch
        from torch.nn.functional import normalize

        with torch.no_grad():
            left, right = (normalize(self.vectors(strings).float(), dim=1) for strings in (queries, documents))
            return (left @ right.T).cpu().numpy()

    def backward(self, strings: Sequence[Any], loss_of: LossOf) -> float:
        """Return the loss of the vectors of *strings*, and add its gradient to the model's."""
        loss = loss_of(self.vectors(strings))
        loss.backward()
        return float(loss.detach())

    def cached_backward(self, strings: Sequence[str], loss_of: LossOf) -> float:
        """Do what `backward` does, with the activations of one pass in memory at a time.

        The loss of vectors without gradients gives the gradient of each vector, which a second forward pass, with the
        random states of the first, carries into the weights. Gao et al. 2021 (RepL4NLP), "Scaling deep contrastive
        learning batch size under memory limited setup".
        """
        import torch

        batches, states, vectors_of_passes = self.split(strings), [], []
        with torch.no_grad():
            for batch in batches:
                states.append(_random_state(self.model.device))
                vectors_of_passes.append(self._run(strings, batch).float())
        order = torch.from_numpy(np.concatenate(batches)).to(self.model.device)
        joined = torch.cat(vectors_of_passes)
        vectors = torch.empty_like(joined).index_copy_(0, order, joined).requires_grad_()
        loss = loss_of(vectors)
        loss.backward()
        gradients = cast("torch.Tensor", vectors.grad)
        for batch, state in zip(batches, states, strict=True):
            _restore_random_state(state, self.model.device)
            again = self._run(strings, batch)
            again.backward(gradients[torch.as_tensor(batch, device=vectors.device)].to(again.dtype))
        return float(loss.detach())

    def split(self, strings: Sequence[Any]) -> list[list[int]]:
        """Return the positions of *strings* in passes, the longest texts first."""
        lengths = entry.token_lengths(self.model.tokenizer, strings, self.name)
        return list(token_batches(np.minimum(lengths, int(min(self.model.max_seq_length, 2**31))), self.tokens))

    def _run(self, strings: Sequence[Any], batch: Sequence[int]) -> torch.Tensor:
        import torch

        features = entry.model_input(self.model, [strings[position] for position in batch])
        device = self.model.device
        moved = {name: value.to(device) if hasattr(value, "to") else value for name, value in features.items()}
        with torch.autocast(device.type, dtype=torch.bfloat16, enabled=self.precision != "float32"):
            output = self.model(moved)
        return self._rows_of(output, features)

    def _rows_of(self, output: Mapping[str, torch.Tensor], features: Mapping[str, Any]) -> torch.Tensor:
        return output["sentence_embedding"]


def _random_state(device: torch.device) -> list[torch.Tensor]:
    import torch

    states = [torch.get_rng_state()]
    return [*states, torch.cuda.get_rng_state(device)] if device.type == "cuda" else states


def _restore_random_state(states: list[torch.Tensor], device: torch.device) -> None:
    import torch

    torch.set_rng_state(states[0])
    for state in states[1:]:
        torch.cuda.set_rng_state(state, device)


@dataclass(frozen=True)
class TokenPasses(Passes):
    """Runs texts as `Passes` does for token vectors (n, length, d + 1); the last column is 1 for tokens, else 0."""

    length: int = 128

    def _rows_of(self, output: Mapping[str, torch.Tensor], features: Mapping[str, Any]) -> torch.Tensor:
        import torch
        from torch.nn.functional import normalize, pad

        mask = torch.from_numpy(local.is_token(self.model.tokenizer, features)).to(self.model.device)
        if mask.shape[1] > self.length:
            raise MirblabError(f"a text has {mask.shape[1]} tokens, padding is for {self.length}; raise length")
        tokens = normalize(output[local.token_output(self.model)].float(), dim=-1) * mask[..., None]
        return pad(torch.cat([tokens, mask[..., None].float()], dim=-1), (0, 0, 0, self.length - mask.shape[1]))

    def scores(self, queries: Sequence[str], documents: Sequence[str]) -> np.ndarray:
        """Return the MaxSim of every query with every document, exact strings, float32 (n, m), without gradients."""
        left, right = self._token_matrices(queries), self._token_matrices(documents)
        query_rows, parts = left.block(0, len(queries)), [np.empty((len(queries), 0), np.float32)]
        for cut in split_by_budget(right.lengths, _TOKENS_PER_BLOCK, _TOKENS_PER_BLOCK):
            block = right.block(cut.start, cut.stop)
            parts.append(max_sim_matrix(query_rows, left.lengths, block, right.lengths[cut]))
        return np.concatenate(parts, axis=1)

    def _token_matrices(self, strings: Sequence[str]) -> TokenMatrices:
        """Return the token vectors without padding, computed pass by pass to save memory."""
        import torch

        token_vectors: list[np.ndarray] = [np.empty((0, 0), np.float32)] * len(strings)
        for batch in self.split(strings):
            with torch.no_grad():
                rows = self._run(strings, batch).cpu().numpy()
            for position, tokens in zip(batch, rows, strict=True):
                token_vectors[position] = tokens[tokens[:, -1] == 1, :-1]
        return TokenMatrices.of(token_vectors)


@dataclass(frozen=True)
class PairPasses(Passes):
    """Runs (query, document) pairs through a cross-encoder; a pair's vector is its score, (n, 1)."""

    def split(self, strings: Sequence[Any]) -> list[list[int]]:
        """Return the positions of pairs in passes, the longest first."""
        lengths = [len(ids) for ids in self.tokenised(strings)["input_ids"]]
        return list(token_batches(np.array(lengths), self.tokens))

    def tokenised(self, pairs: Sequence[Any], **options: Any) -> Mapping[str, Any]:
        """Return the tokenizer's output for *pairs*, of which the longer text is cut first."""
        first, second = ([pair[side] for pair in pairs] for side in (0, 1))
        longest = self.model.max_seq_length
        return self.model.tokenizer(first, second, truncation="longest_first", max_length=longest, **options)

    def _run(self, strings: Sequence[Any], batch: Sequence[int]) -> torch.Tensor:
        import torch

        device = self.model.device
        features = self.model.preprocess([strings[position] for position in batch])
        moved = {name: value.to(device) if hasattr(value, "to") else value for name, value in features.items()}
        *layers, last = self.model
        output: Any = moved
        with torch.autocast(device.type, dtype=torch.bfloat16, enabled=self.precision != "float32"):
            for module in layers:
                output = module(output)
                # Scores of similar documents differ by less than a step of bfloat16.
                output[local.TOKENS] = output[local.TOKENS].float()
        return last(output)["scores"]


def list_loss(scores: torch.Tensor, first: np.ndarray, weight: float, kind: str) -> torch.Tensor:
    """Return the mean loss of *scores* (batch, 1 + n), of which the first in each row is the relevant document's.

    "listwise": its cross-entropy under a softmax over the row (Cao et al., ICML 2007, with one relevant document);
    "binary": the cross-entropy of each document by itself (Nogueira and Cho 2019). The first stage's scores *first*, of
    the same shape, are added with *weight*, so that the model learns what they lack.
    """
    import torch
    from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy

    logits = scores + weight * torch.from_numpy(first).to(scores.device)
    if kind == "binary":
        right = torch.zeros_like(logits)
        right[:, 0] = 1.0
        return binary_cross_entropy_with_logits(logits, right)
    return cross_entropy(logits, torch.zeros(len(logits), dtype=torch.long, device=logits.device))


def late_scores(
    query_tokens: torch.Tensor, query_mask: torch.Tensor, document_tokens: torch.Tensor, document_mask: torch.Tensor
) -> torch.Tensor:
    """Return the MaxSim of every query with every document, (n, m), with its gradient.

    Tokens are unit vectors (n, length, d) and (m, length, d); masks (n, length) and (m, length) are False for special
    tokens and padding. A text without tokens scores -1.
    """
    import torch

    query_mask, document_mask = query_mask.bool(), document_mask.bool()
    used, held = query_mask.any(0), document_mask.any(0)  # padding in every text is skipped
    cosines = torch.einsum("qid,kjd->qkij", query_tokens[:, used], document_tokens[:, held])
    best = cosines.masked_fill(~document_mask[:, held][None, :, None], -torch.inf)
    counts = query_mask.sum(1)[:, None]
    is_full = (counts > 0) & document_mask.any(1)
    if not cosines.numel():
        return cosines.new_full(is_full.shape, NOTHING)
    summed = best.max(-1).values.masked_fill(~query_mask[:, used][:, None] | ~is_full[..., None], 0.0).sum(-1)
    return torch.where(is_full, summed / counts.clamp(min=1), NOTHING)


def packed_scores(queries: torch.Tensor, documents: torch.Tensor) -> torch.Tensor:
    """Return the MaxSim of texts as `TokenPasses` packs them, (n, length, d + 1): a *score* for `ranking_loss`.

    The softmax over the batch is that of Khattab and Zaharia (SIGIR 2020); MaxSim is a mean here and not a sum, so the
    loss needs the scale of a cosine.
    """
    return late_scores(queries[..., :-1], queries[..., -1], documents[..., :-1], documents[..., -1])


def add_token_layer(model: Any, dimensions: int, seed: int = 0) -> None:
    """Give a sentence-transformers *model*, in place, a linear layer from its hidden states to token vectors.

    It is a Dense module without bias, saved with the model; its first weights are a random subspace, as in
    `token_vectors.project_tokens`. Passage vectors do not change. Raises MirblabError for a model without hidden
    states, with such a layer, or with fewer dimensions.
    """
    import torch
    from sentence_transformers.base.modules import Dense

    width = model[0].get_embedding_dimension()
    if not hasattr(model[0], "model") or local.token_layers(model):
        raise MirblabError("a layer of token vectors wants a transformer that has none yet; take another base")
    if not 0 < dimensions <= width:
        raise MirblabError(f"token vectors are made of {width} numbers; ask for 1 to {width} dimensions")
    basis = np.linalg.qr(np.random.default_rng(seed).standard_normal((width, dimensions)))[0].T
    weight = torch.tensor(np.ascontiguousarray(basis), dtype=torch.float32)
    layer = Dense(
        width,
        dimensions,
        bias=False,
        activation_function=None,
        init_weight=weight,
        module_input_name=local.TOKENS,
        module_output_name=TOKEN_OUTPUT,
    )
    model.insert(1, layer.to(model.device))
