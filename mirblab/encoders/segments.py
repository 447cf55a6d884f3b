"""segments: a cross-encoder that reads query and document apart first and together in new layers.

The module imports torch, and is imported only where such a model is built or loaded.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import torch
from sentence_transformers.base.modules import Module, Transformer
from torch.nn.functional import gelu, linear, normalize, pad, scaled_dot_product_attention

_HEAD = 64  # dimensions of an attention head
_GROUP = 4  # texts of similar length that are encoded together while something is trained
_KEPT = 1000  # texts whose token vectors are kept while nothing is trained: the queries of a shortlist come again


class SegmentTransformer(Transformer):
    """A transformer that encodes the query and the document of each pair apart, and each distinct text once.

    So the token vectors are those of the encoder whose weights it has. MacAvaney et al. (SIGIR 2020), "Efficient
    document re-ranking for transformers by precomputing term representations", let both meet in the last layers only.
    """

    @classmethod
    def of(cls, transformer: Transformer) -> SegmentTransformer:
        """Return *transformer*, whose weights it shares, as one that encodes segments apart."""
        made = cls.__new__(cls)
        made.__dict__ = transformer.__dict__
        return made.train(transformer.training)

    def forward(self, features: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        """Add token_embeddings to *features*: tokens of the queries (type 0), then of the documents (type 1)."""
        ids, used = features["input_ids"], features["attention_mask"].bool()
        is_document = features["token_type_ids"].bool() & used
        n_query, n_document = (used & ~is_document).sum(1), is_document.sum(1)
        # a document begins at the query's last token, in whose place it has the first token of all texts
        places = (n_query[:, None] - 1 + torch.arange(int(n_document.max()) + 1, device=ids.device)).clamp(
            max=ids.shape[1] - 1
        )
        documents = torch.cat([ids[:, :1], ids.gather(1, places)[:, 1:]], dim=1)
        parts = [self._encode(ids[:, : int(n_query.max())], n_query), self._encode(documents, n_document + 1)]
        tokens, masks = ([part[at] for part in parts] for at in (0, 1))
        types = torch.cat([torch.full_like(mask, number) for number, mask in enumerate(masks)], dim=1)
        return features | {
            "token_embeddings": torch.cat(tokens, dim=1), "attention_mask": torch.cat(masks, dim=1),
            "token_type_ids": types,
        }  # fmt: skip

    def train(self, mode: bool = True) -> SegmentTransformer:
        """Set the mode, and forget what was encoded if the weights may have changed."""
        if mode or self.training or "_known" not in vars(self):
            self._known = OrderedDict[bytes, torch.Tensor]()
        super().train(mode)
        return self

    def _encode(self, ids: torch.Tensor, lengths: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the token vectors (n, l, d) and the mask (n, l) of texts of *lengths* tokens."""
        mask = (torch.arange(ids.shape[1], device=ids.device) < lengths[:, None]).long()
        distinct, row_of = torch.unique(ids * mask, dim=0, return_inverse=True)
        used = torch.zeros_like(distinct).index_copy_(0, row_of, mask)
        if torch.is_grad_enabled() or self.training:
            return self._token_vectors_by_length(distinct, used)[row_of], mask
        sizes = used.sum(1).tolist()
        keys = [row[:size].tobytes() for row, size in zip(distinct.cpu().numpy(), sizes, strict=True)]
        if new := [at for at, key in enumerate(keys) if key not in self._known]:
            width = max(sizes[at] for at in new)
            encoded = self._token_vectors(distinct[new, :width], used[new, :width])
            self._known |= {keys[at]: row[: sizes[at]].clone() for at, row in zip(new, encoded, strict=True)}
        for key in keys:
            self._known.move_to_end(key)
        vectors = torch.nn.utils.rnn.pad_sequence([self._known[key] for key in keys], batch_first=True)
        while len(self._known) > _KEPT:
            self._known.popitem(last=False)
        return vectors[row_of], mask

    def _token_vectors_by_length(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Return the token vectors (n, l, d); on a processor, where padding costs what a token does, in groups."""
        if ids.device.type != "cpu":
            return self._token_vectors(ids, mask)
        lengths = mask.sum(1)
        order = torch.argsort(lengths, descending=True, stable=True)
        vectors = []
        for group in order.split(_GROUP):
            length = int(lengths[group[0]])
            encoded = self._token_vectors(ids[group, :length], mask[group, :length])
            vectors.append(pad(encoded, (0, 0, 0, ids.shape[1] - length)))
        return torch.cat(vectors)[torch.argsort(order)]

    def _token_vectors(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        features = {"input_ids": ids, "attention_mask": mask, "token_type_ids": torch.zeros_like(ids)}
        return super().forward(features)["token_embeddings"]


class _StoredModule(Module):
    def save(self, output_path: str, *_: Any, safe_serialization: bool = True, **__: Any) -> None:
        """Write the weights and the settings to a folder, as the other modules of sentence-transformers do."""
        self.save_config(output_path)
        self.save_torch_weights(output_path, safe_serialization=safe_serialization)

    @classmethod
    def load(
        cls,
        model_name_or_path: str,
        subfolder: str = "",
        token: bool | str | None = None,
        cache_folder: str | None = None,
        revision: str | None = None,
        local_files_only: bool = False,
        init_defaults: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> _StoredModule:
        """Return the module that `save` wrote."""
        where: dict[str, Any] = {
            "subfolder": subfolder, "token": token, "cache_folder": cache_folder, "revision": revision,
            "local_files_only": local_files_only,
        }  # fmt: skip
        model = cls(**cls.load_config(model_name_or_path, **where))
        cls.load_torch_weights(model_name_or_path, model=model, **where)
        return model


class SegmentInteraction(_StoredModule):
    """Layers in which the tokens of query and document attend to each other; untrained, they change nothing.

    *width*: dimensions of the token vectors; *layers*: their number.
    """

    config_keys = ["width", "layers"]

    def __init__(self, width: int, layers: int) -> None:
        super().__init__()
        self.width, self.layers = width, layers
        self.types = torch.nn.Parameter(torch.zeros(2, width))
        self.blocks = torch.nn.ModuleList(
            torch.nn.TransformerEncoderLayer(
                width, max(1, width // _HEAD), 2 * width, 0.0, "gelu", batch_first=True, norm_first=True
            )
            for _ in range(layers)
        )
        for name, parameter in self.blocks.named_parameters():
            if name.rpartition(".")[0].endswith(("out_proj", "linear2")):
                torch.nn.init.zeros_(parameter)

    def forward(self, features: dict[str, Any], **_: Any) -> dict[str, Any]:
        """Change token_embeddings in *features*, which have attention_mask and token_type_ids."""
        tokens, used = features["token_embeddings"], features["attention_mask"].bool()[:, None, None]
        tokens = tokens + self.types[features["token_type_ids"]]
        for block in self.blocks:
            tokens = _layer(block, tokens, used)
        return features | {"token_embeddings": tokens}


def _layer(block: Any, tokens: torch.Tensor, used: torch.Tensor) -> torch.Tensor:
    """Return the output of *block*, a TransformerEncoderLayer that normalises first and has no dropout."""
    tokens = tokens + _attended(block.self_attn, block.norm1(tokens), used)
    return tokens + block.linear2(gelu(block.linear1(block.norm2(tokens))))


def _attended(attention: torch.nn.MultiheadAttention, tokens: torch.Tensor, used: torch.Tensor) -> torch.Tensor:
    """Return what *tokens* (n, l, d) attend to where *used* (n, 1, 1, l) is True.

    As `attention` itself does, which expands the mask to every pair of tokens first. In bfloat16 a processor is faster
    by plain products (torch 2.13, AVX512-BF16).
    """
    n, length, width = tokens.shape
    projected = linear(tokens, attention.in_proj_weight, attention.in_proj_bias)
    query, key, value = projected.view(n, length, 3, attention.num_heads, -1).permute(2, 0, 3, 1, 4)
    if projected.device.type == "cpu" and projected.dtype == torch.bfloat16:
        left_out = torch.zeros(used.shape, dtype=projected.dtype).masked_fill_(~used, -torch.inf)
        weights = (query * attention.head_dim**-0.5) @ key.transpose(-1, -2) + left_out
        heads = weights.softmax(-1) @ value
    else:
        heads = scaled_dot_product_attention(query, key, value, attn_mask=used)
    return attention.out_proj(heads.transpose(1, 2).reshape(n, length, width))


class SegmentSimilarity(_StoredModule):
    """The scaled cosine of the mean token vectors of both segments, plus a linear layer of the mean of all tokens.

    A transformer that was trained as a passage encoder begins with the order of its passage vectors, while a linear
    layer alone begins with none. *width*: dimensions of the token vectors.
    """

    config_keys = ["width"]

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width
        self.scale = torch.nn.Parameter(torch.tensor(10.0))
        self.linear = torch.nn.Linear(width, 1, bias=False)
        torch.nn.init.zeros_(self.linear.weight)

    def forward(self, features: dict[str, Any], **_: Any) -> dict[str, Any]:
        """Add "scores" (n, 1) to *features*, which have token_embeddings, attention_mask and token_type_ids."""
        tokens = features["token_embeddings"].float()
        used, document = features["attention_mask"].float(), features["token_type_ids"].float()
        # scores of similar documents differ by less than a step of bfloat16
        with torch.autocast(tokens.device.type, enabled=False):
            query, text, both = (
                torch.einsum("nld,nl->nd", tokens, weights) / weights.sum(1, keepdim=True).clamp(min=1)
                for weights in (used * (1 - document), used * document, used)
            )
            cosine = (normalize(query, dim=-1) * normalize(text, dim=-1)).sum(-1, keepdim=True)
            return features | {"scores": self.scale * cosine + self.linear(both)}
