"""A tiny model with dropout, made-up Lean declarations to train it on, and a training that is killed."""

from __future__ import annotations

import multiprocessing
import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

WORDS = "ring field group map sum set open closed finite prime ideal kernel image order limit norm".split()


def made_up_views(n: int = 40, seed: int = 0) -> pd.DataFrame:
    """Return views of *n* made-up declarations in two vocabularies, a quarter in split dev, the rest in train."""
    rng = np.random.default_rng(seed)
    rows = []
    for place in range(n):
        words = rng.choice(WORDS, rng.integers(3, 8)).tolist()
        formal = [f"{word}x" for word in words]
        split = "dev" if place % 4 == 0 else "train"
        rows.append((f"x{place:03d}", split, " ".join(words), " ".join(formal), " ".join(["a", *formal[::-1]])))
    return pd.DataFrame(rows, columns=["id", "split", "informal", "signature", "type"])


def write_bert(folder: Path) -> Path:
    """Write a BERT with random weights and dropout below *folder*, for sentence-transformers, and return its folder."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import Normalize, Transformer
    from sentence_transformers.sentence_transformer.modules import Pooling
    from transformers import BertConfig, BertModel, BertTokenizer

    raw, out = folder / "raw", folder / "bert"
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS, "a", *(f"{word}x" for word in WORDS)]
    BertTokenizer(vocab={piece: at for at, piece in enumerate(pieces)}).save_pretrained(raw)
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    torch.manual_seed(0)
    BertModel(BertConfig(vocab_size=len(pieces), max_position_embeddings=64, **sizes)).save_pretrained(raw)
    modules = [Transformer(str(raw), max_seq_length=48), Pooling(16, "mean"), Normalize()]
    SentenceTransformer(modules=modules, device="cpu").save(str(out))
    return out


def kill_training(*arguments: Any, step: int = 8, **settings: Any) -> Path:
    """Train in a process that SIGKILL ends after *step* steps; return the folder of its checkpoints.

    The other arguments are those of `train.train`, with `out`.
    """
    from mirblab import train
    from mirblab.core import paths
    from mirblab.train.training import workshop_folder

    def evaluate(model: object, at: int) -> dict[str, float]:
        if at == step:
            os.kill(os.getpid(), signal.SIGKILL)
        return {}

    settings |= {"checkpoint_every": 1e-9, "evaluate": evaluate, "evaluate_every": 4}
    other = multiprocessing.get_context("fork").Process(target=train.train, args=arguments, kwargs=settings)
    other.start()
    other.join()
    folder = workshop_folder(settings["out"])
    assert other.exitcode == -signal.SIGKILL and list(folder.glob("step-*.safetensors"))
    assert not (paths.models() / settings["out"]).exists()
    return folder
