"""loop: the steps of a training run, with its log, evaluations and checkpoints; a killed one goes on where it stood."""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mirblab.encode import Encoder, threads
from mirblab.errors import MirblabError
from mirblab.interrupts import gently
from mirblab.progress import progress
from mirblab.train import checkpoint, state
from mirblab.train.evaluation import Evaluate, Live
from mirblab.train.gradients import Passes
from mirblab.train.journal import Journal
from mirblab.train.late import packed_scores
from mirblab.train.loss import cosines, ranking_loss, same_as_negatives, same_texts
from mirblab.train.material import Material
from mirblab.train.settings import Recipe


@dataclass(frozen=True)
class Run:
    """A training run: a model in `passes`, the encoder it was, its texts, and the folder of its log and checkpoints.

    *before* are the base's weights by name, where the last step ends with a mean of them and the trained ones.
    """

    recipe: Recipe
    passes: Passes
    encoder: Encoder
    material: Material
    folder: Path
    identity: Mapping[str, Any]
    evaluate: Evaluate | None = None
    before: Mapping[str, Any] = field(default_factory=dict)

    @property
    def n_steps(self) -> int:
        """Return how many steps the whole run takes."""
        n_rows = len(self.material)
        return self.recipe.n_steps(n_rows)


def to_the_end(run: Run) -> None:
    """Take all steps that are not taken yet, from the newest checkpoint on; the model in *run* is changed in place.

    Ctrl-C ends the step, writes a checkpoint and raises KeyboardInterrupt. Whatever is drawn in a step comes from the
    seed and the step's number, so that a run which was killed ends with the weights of one which was not.
    Raises MirblabError for a checkpoint of another run, and for a loss that is no number.
    """
    optimiser = _optimiser(run)
    found = checkpoint.newest(run.folder, run.identity)
    if found is not None:
        state.restore(run.passes.model, optimiser, found.tensors)
    start = found.step if found else 0
    journal, stop = Journal(run.folder, found.step if found else -1), threading.Event()
    run.passes.model.train()
    with _torch_as_it_was(), gently(stop.set), progress(run.n_steps, f"training {run.recipe.name}", "steps") as bar:
        bar.update(start)
        if start == 0:
            _evaluate(run, journal, 0)
        saved, done = time.monotonic(), start
        for done in range(start + 1, run.n_steps + 1):
            line = _step(run, optimiser, done - 1)
            journal.write(line)
            bar.set_postfix_str(f"loss {line['loss']:.3f}")
            bar.update()
            if done == run.n_steps and run.before:  # before the last checkpoint, so that nobody does it twice
                state.average(run.passes.model, run.before, run.recipe.trained_share)
            every = run.recipe.evaluate_every
            if done == run.n_steps or (every and done % every == 0):
                _evaluate(run, journal, done)
            every = run.recipe.checkpoint_every
            if stop.is_set() or done == run.n_steps or (every and time.monotonic() - saved >= every):
                journal.flush()
                checkpoint.write(run.folder, done, state.snapshot(run.passes.model, optimiser), run.identity)
                saved = time.monotonic()
            if stop.is_set():
                break
    run.passes.model.eval()


def learning_rate(recipe: Recipe, step: int, n_steps: int) -> float:
    """Return the learning rate of a *step*, from 0: it rises evenly over the warm-up, then stays or falls evenly to 0.

    >>> [learning_rate(Recipe("mine", learning_rate=1.0, warmup=2), step, 4) for step in range(4)]
    [0.5, 1.0, 1.0, 1.0]
    >>> [learning_rate(Recipe("mine", learning_rate=1.0, warmup=2, decay=True), step, 4) for step in range(4)]
    [0.5, 1.0, 1.0, 0.5]
    """
    rising = (step + 1) / recipe.warmup if recipe.warmup else 1.0
    falling = (n_steps - step) / max(1, n_steps - recipe.warmup) if recipe.decay else 1.0
    return recipe.learning_rate * min(1.0, rising, falling)


def _optimiser(run: Run) -> Any:
    """Return AdamW over the trained weights: those of the token embeddings, which most texts do not touch, apart."""
    import torch

    models = [part for part in run.passes.model.modules() if hasattr(part, "get_input_embeddings")]
    tokens = {id(model.get_input_embeddings().weight) for model in models}
    rest, own = [], []
    for weight in state.trained(run.passes.model).values():
        (own if id(weight) in tokens else rest).append(weight)
    groups = [{"params": rest, "rate": 1.0}, {"params": own, "rate": run.recipe.embedding_rate}]
    groups = [group for group in groups if group["params"]]
    return torch.optim.AdamW(groups, lr=run.recipe.learning_rate, weight_decay=run.recipe.weight_decay, fused=True)


def _step(run: Run, optimiser: Any, step: int) -> dict[str, float]:
    """Take one step and return its line of the log."""
    import torch

    start, recipe = time.perf_counter(), run.recipe
    plan = run.material.plan(recipe)
    torch.manual_seed(plan.torch_seed(step))
    anchors, positives, negatives = run.material.texts(plan.draw(step))
    optimiser.zero_grad(set_to_none=True)
    backward = run.passes.cached_backward if recipe.cached else run.passes.backward
    loss = backward(_strings(run, anchors, positives, negatives), _loss_of(recipe, anchors, positives, negatives))
    if not math.isfinite(loss):
        raise MirblabError(
            f"recipe '{recipe.name}': the loss of step {step + 1} is {loss}; lower the learning rate or set "
            "precision=float32. The checkpoints before it are kept"
        )
    if recipe.clip:
        torch.nn.utils.clip_grad_norm_(state.trained(run.passes.model).values(), recipe.clip)
    rate = learning_rate(recipe, step, run.n_steps)
    for group in optimiser.param_groups:
        group["lr"] = rate * group["rate"]
    optimiser.step()
    seconds = time.perf_counter() - start
    facts = {"loss": loss, "learning_rate": rate, "seconds": round(seconds, 3)}
    return {"step": step + 1, **facts, "pairs_per_second": round(len(anchors) / seconds, 2)}


def _strings(run: Run, anchors: list[str], positives: list[str], negatives: list[str]) -> list[str]:
    asked = run.encoder.strings(anchors, "query", run.recipe.instruction)
    return asked + run.encoder.strings(positives) + run.encoder.strings(negatives)


def _loss_of(recipe: Recipe, anchors: list[str], positives: list[str], negatives: list[str]) -> Any:
    """Return the loss as a function of the vectors of anchors, positives and negatives, joined in this order."""
    n, same = len(anchors), same_texts(anchors, positives)
    others = same_as_negatives(anchors, positives, negatives) if negatives else None

    def loss_of(vectors: Any) -> Any:
        further = vectors[2 * n :] if negatives else None
        columns = {"negatives": further, "same_negatives": others}
        kind = {
            "scale": recipe.scale,
            "symmetric": recipe.symmetric,
            "score": packed_scores if recipe.late else cosines,
        }
        return ranking_loss(vectors[:n], vectors[n : 2 * n], same, **kind, **columns)

    return loss_of


def _evaluate(run: Run, journal: Journal, step: int) -> None:
    if run.evaluate is not None:
        found = run.evaluate(Live(run.passes, run.encoder), step)
        journal.write({"step": step} | {name: float(value) for name, value in found.items()})


@contextlib.contextmanager
def _torch_as_it_was() -> Iterator[None]:
    """Give torch the cores that encoding may use, and put its threads and random states back afterwards."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(threads())
    try:
        with torch.random.fork_rng():
            yield
    finally:
        torch.set_num_threads(before)
