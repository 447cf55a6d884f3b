"""segments: a cross-encoder's score as the similarity of query and document after they have read each other.

The module imports torch, and is imported only where such a model is built or loaded.
"""

from __future__ import annotations

from typing import Any

import torch
from sentence_transformers.base.modules import Module
from torch.nn.functional import normalize


class SegmentSimilarity(Module):
    """The scaled cosine of the mean token vectors of both segments, plus a linear layer of the mean of all tokens.

    A transformer that was trained as a passage encoder begins with about the order of its passage vectors, while a
    linear layer alone begins with none. *width*: dimensions of the token vectors.
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
        tokens = features["token_embeddings"]
        used, document = features["attention_mask"].to(tokens.dtype), features["token_type_ids"].to(tokens.dtype)
        query, text, both = (
            torch.einsum("nld,nl->nd", tokens, weights) / weights.sum(1, keepdim=True).clamp(min=1)
            for weights in (used * (1 - document), used * document, used)
        )
        cosine = (normalize(query, dim=-1) * normalize(text, dim=-1)).sum(-1, keepdim=True)
        return features | {"scores": self.scale * cosine + self.linear(both)}

    def save(self, output_path: str, *_: Any, safe_serialization: bool = True, **__: Any) -> None:
        """Write the weights and the width to a folder, as the other modules of sentence-transformers do."""
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
    ) -> SegmentSimilarity:
        """Return the module that `save` wrote."""
        where: dict[str, Any] = {
            "subfolder": subfolder, "token": token, "cache_folder": cache_folder, "revision": revision,
            "local_files_only": local_files_only,
        }  # fmt: skip
        model = cls(**cls.load_config(model_name_or_path, **where))
        cls.load_torch_weights(model_name_or_path, model=model, **where)
        return model
