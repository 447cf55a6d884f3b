"""Tiny encoders with random weights, and texts of the words that they know."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from transformers import BertTokenizer

WORDS = "let be a scheme ring field of the is flat prime ideal query : $ x".split()


def make_tokenizer() -> BertTokenizer:
    """Return a tokenizer of `WORDS`, and of other words letter by letter."""
    from transformers import BertTokenizer

    letters = "abcdefghijklmnopqrstuvwxyz0123456789"
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    vocabulary = special + WORDS + [c for c in letters if c not in WORDS] + [f"##{c}" for c in letters]
    return BertTokenizer(vocab={word: number for number, word in enumerate(vocabulary)})


SIZES = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}


def make_sparse_model(target: Path, *, inference_free: bool = False) -> Path:
    """Write a tiny SPLADE model to *target* and return it; *inference_free*: a query's tokens have fixed weights."""
    import torch
    from sentence_transformers import SparseEncoder
    from sentence_transformers.base.modules import Router, Transformer
    from sentence_transformers.sparse_encoder.modules import SparseStaticEmbedding, SpladePooling
    from transformers import BertConfig, BertForMaskedLM

    tokenizer, raw = make_tokenizer(), target.parent / "raw-sparse"
    torch.manual_seed(0)
    model = BertForMaskedLM(BertConfig(vocab_size=len(tokenizer), max_position_embeddings=32, **SIZES))
    torch.nn.init.normal_(model.cls.predictions.bias, -0.1, 0.1)  # about half of the vocabulary is left out
    model.save_pretrained(raw)
    tokenizer.save_pretrained(raw)
    modules = [Transformer(str(raw), transformer_task="fill-mask"), SpladePooling("max")]
    if inference_free:
        weights = torch.linspace(0.5, 2.0, len(tokenizer))
        queries = SparseStaticEmbedding(tokenizer=tokenizer, weight=weights)
        modules = [Router.for_query_document(query_modules=[queries], document_modules=modules)]
    whole = SparseEncoder(modules=modules, device="cpu")
    whole.max_seq_length = 24
    whole.save_pretrained(str(target))
    return target


def make_model(target: Path) -> Path:
    """Write a tiny model to *target* and return it; the same weights each time."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import Normalize, Transformer
    from sentence_transformers.sentence_transformer.modules import Pooling
    from transformers import BertConfig, BertModel

    tokenizer = make_tokenizer()
    torch.manual_seed(0)
    model = BertModel(BertConfig(vocab_size=len(tokenizer), max_position_embeddings=32, **SIZES))
    raw = target.parent / "raw"
    model.save_pretrained(raw)
    tokenizer.save_pretrained(raw)
    whole = SentenceTransformer(modules=[Transformer(str(raw)), Pooling(16), Normalize()], device="cpu")
    whole.max_seq_length = 24
    whole.save(str(target))
    return target


def sentences(n: int, seed: int = 0) -> list[str]:
    """Return *n* distinct texts of 1 to 40 words."""
    rng = np.random.default_rng(seed)
    return [f"x{i} " + " ".join(rng.choice(WORDS, rng.integers(0, 40))) for i in range(n)]
