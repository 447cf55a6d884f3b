"""A tiny encoder with random weights, and texts of the words that it knows."""

from __future__ import annotations

from pathlib import Path

import numpy as np

WORDS = "let be a scheme ring field of the is flat prime ideal query : $ x".split()


def make_model(target: Path) -> Path:
    """Write a tiny model to *target* and return it; the same weights each time."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import Normalize, Transformer
    from sentence_transformers.sentence_transformer.modules import Pooling
    from transformers import BertConfig, BertModel, BertTokenizer

    letters = "abcdefghijklmnopqrstuvwxyz0123456789"
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    vocabulary = special + WORDS + [c for c in letters if c not in WORDS] + [f"##{c}" for c in letters]
    tokenizer = BertTokenizer(vocab={word: number for number, word in enumerate(vocabulary)})
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    model = BertModel(BertConfig(vocab_size=len(vocabulary), max_position_embeddings=32, **sizes))
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
