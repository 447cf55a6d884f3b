"""Pairs per second of training: mirblab's loop beside SentenceTransformerTrainer, on the same pairs of texts.

    python benchmarks/train_speed.py [--steps 10] [--batch 48] [--threads 1] [--encoder minilm]
                                     [--precisions float32,bfloat16]

Both train a fresh copy of the model for the same number of steps on the same pairs (views of mathlib declarations from
the shared data, MIRBLAB_SHARED, default ../shared; else synthetic ones), cut at 128 tokens, with the same symmetric
loss at scale 20. The trainer has CachedMultipleNegativesRankingLoss (32 texts at a time) and batches without
duplicates; mirblab runs uncached, its default, and cached. The first step of each is not counted. CPU seconds count
all threads, and are the ones to trust on a machine that does other things, too.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import platform
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

os.environ["MIRBLAB_PROGRESS"] = "0"
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import pandas as pd  # noqa: E402

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from mirblab.analysis import lean_views  # noqa: E402
from mirblab.encoders.encoding import encoder  # noqa: E402
from mirblab.train import loop  # noqa: E402
from mirblab.train.loss import Passes  # noqa: E402
from mirblab.train.model import build_model, training_device  # noqa: E402
from mirblab.train.pairs import gather_texts  # noqa: E402
from mirblab.train.recipes import check_recipe  # noqa: E402

VERSIONS = ("mirblab", "sentence-transformers", "torch", "transformers", "accelerate")


def main() -> None:
    """Train with each way in each precision and print pairs per second and CPU seconds per step."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=10, help="steps that are counted")
    parser.add_argument("--batch", type=int, default=48)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--encoder", default="minilm")
    parser.add_argument("--precisions", default="float32,bfloat16")
    given = parser.parse_args()
    import torch

    os.environ["MIRBLAB_THREADS"] = str(given.threads)
    torch.set_num_threads(given.threads)
    print(f"Python {platform.python_version()}, {', '.join(f'{n} {importlib.metadata.version(n)}' for n in VERSIONS)}")
    print(f"{given.encoder}, {given.steps} steps of {given.batch} pairs, {given.threads} threads, load {load()}")
    rows = table((given.steps + 1) * given.batch)
    for precision in given.precisions.split(","):
        fields = {"base": given.encoder, "batch": given.batch, "epochs": 1, "precision": precision, "split": ""}
        for name, way in (("trainer, cached", theirs), ("mirblab", ours), ("mirblab, cached", ours)):
            wall, cpu = way(rows, fields | {"cached": "cached" in name})
            wall, cpu = wall / given.steps, cpu / given.steps
            rate = f"{given.batch / wall:7.2f} pairs/s"
            print(f"{precision:9} {name:16} {rate}  {wall:6.2f} s and {cpu:6.2f} CPU-s a step", flush=True)


def load() -> str:
    """Return the load of the machine, which says how far to trust wall times."""
    return f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown"


def table(n: int) -> pd.DataFrame:
    """Return *n* rows of real views, or of synthetic ones."""
    folder = ROOT / os.environ.get("MIRBLAB_SHARED", "../shared") / "data" / "mathlib-views"
    found = lean_views.read_views(folder if folder.is_dir() else "mini-views")
    print(f"data: {folder.name if folder.is_dir() else 'mini-views'}, {len(found):,} rows")
    return found.sample(n, random_state=0, replace=n > len(found)).reset_index(drop=True)


def ours(rows: pd.DataFrame, fields: dict[str, Any]) -> tuple[float, float]:
    """Return the wall and CPU seconds of all steps but the first, by mirblab."""
    recipe = check_recipe("bench", fields | {"view_pairs": ["informal:signature"]})
    material, found = gather_texts(recipe, rows), encoder(recipe.encoder)
    model = build_model(recipe, found).train()
    passes = Passes(model, "bench", recipe.tokens_per_pass, recipe.precision)
    run = loop.TrainingRun(recipe, passes, found, material, Path("."), {})
    optimiser = loop._optimiser(run)
    loop._step(run, optimiser, 0)
    start, cpu = time.perf_counter(), time.process_time()
    for step in range(1, run.n_steps):
        loop._step(run, optimiser, step)
    return time.perf_counter() - start, time.process_time() - cpu


def theirs(rows: pd.DataFrame, fields: dict[str, Any]) -> tuple[float, float]:
    """Return the wall and CPU seconds of all steps but the first, by sentence-transformers' own trainer."""
    from datasets import Dataset
    from sentence_transformers import SentenceTransformerTrainer, SentenceTransformerTrainingArguments
    from sentence_transformers.sentence_transformer.losses import CachedMultipleNegativesRankingLoss
    from sentence_transformers.training_args import BatchSamplers
    from transformers import TrainerCallback

    recipe = check_recipe("bench", fields)
    model = build_model(recipe, encoder(recipe.encoder))
    loss = CachedMultipleNegativesRankingLoss(
        model,
        scale=20.0,
        mini_batch_size=32,
        directions=("query_to_doc", "doc_to_query"),
        partition_mode="per_direction",
    )
    marks: list[tuple[float, float]] = []

    class Clock(TrainerCallback):
        def on_step_end(self, *_: Any, **__: Any) -> None:
            marks.append((time.perf_counter(), time.process_time()))

    with tempfile.TemporaryDirectory() as out:
        settings = SentenceTransformerTrainingArguments(
            output_dir=out, per_device_train_batch_size=recipe.batch, max_steps=len(rows) // recipe.batch,
            learning_rate=recipe.learning_rate, lr_scheduler_type="constant_with_warmup", warmup_steps=recipe.warmup,
            bf16=recipe.precision == "bfloat16", batch_sampler=BatchSamplers.NO_DUPLICATES, report_to="none",
            save_strategy="no", disable_tqdm=True, logging_strategy="no", dataloader_drop_last=True,
            use_cpu=training_device() == "cpu",
        )  # fmt: skip
        data = Dataset.from_dict({"anchor": rows.informal.tolist(), "positive": rows.signature.tolist()})
        SentenceTransformerTrainer(
            model=model, args=settings, train_dataset=data, loss=loss, callbacks=[Clock()]
        ).train()
    return marks[-1][0] - marks[0][0], marks[-1][1] - marks[0][1]


if __name__ == "__main__":
    main()
