"""loop: the steps of a training, its checkpoints and its log."""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import xxhash

from mirblab.core import atomic_files, stored_files, text_files
from mirblab.core.errors import MirblabError, MissingFileError
from mirblab.core.processes import defer_interrupt, n_cores
from mirblab.core.terminal import progress
from mirblab.encoders.encoding import Encoder
from mirblab.train.lists import ListBatch, RankingLists
from mirblab.train.loss import (
    LossOf,
    Passes,
    cosines,
    list_loss,
    packed_scores,
    ranking_loss,
    same_as_negatives,
    same_texts,
)
from mirblab.train.pairs import TrainingTexts, torch_seed
from mirblab.train.pretraining import Sentences, language_loss
from mirblab.train.recipes import Recipe, describe_differences
from mirblab.train.validation import CurrentModel, Evaluate

if TYPE_CHECKING:
    import torch

LOG_FILE = "log.jsonl"
N_KEPT = 2
_OF_STEPS = ("loss", "smoothed", "learning_rate", "seconds", "pairs_per_second")
_CHECKPOINT_NAME = "step-{:08d}.safetensors"
_CONSEQUENCE = "the training goes on from the one before it"


@dataclass(frozen=True)
class TrainingRun:
    """A training run; *before* has the base's weights by name if the result is a mean of them and the trained ones."""

    recipe: Recipe
    passes: Passes
    encoder: Encoder
    material: TrainingTexts | RankingLists | Sentences
    folder: Path
    identity: Mapping[str, Any]
    evaluate: Evaluate | None = None
    before: Mapping[str, Any] = field(default_factory=dict)

    @property
    def n_steps(self) -> int:
        """Return the number of steps of the whole run."""
        return self.recipe.n_steps(len(self.material))


def run_to_end(run: TrainingRun) -> None:
    """Take all remaining steps from the newest checkpoint on, changing the model in place.

    After Ctrl-C the step is finished, a checkpoint written and KeyboardInterrupt raised. The random numbers of a step
    depend on the seed and its number only, so that an interrupted run ends with the same weights. Raises MirblabError
    for a checkpoint of another run, and for a loss that is not finite.
    """
    optimiser = _optimiser(run)
    checkpoint = newest_checkpoint(run.folder, run.identity)
    if checkpoint is not None:
        restore_state(run.passes.model, optimiser, checkpoint.tensors)
    start = checkpoint.step if checkpoint else 0
    journal, stop = Journal(run.folder, checkpoint.step if checkpoint else -1), threading.Event()
    run.passes.model.train()
    with (
        _torch_restored(run.passes.model.device.type),
        defer_interrupt(stop.set),
        progress(run.n_steps, f"training {run.recipe.name}", "steps") as bar,
    ):
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
                average_weights(run.passes.model, run.before, run.recipe.trained_share)
            every = run.recipe.evaluate_every
            if done == run.n_steps or (every and done % every == 0):
                _evaluate(run, journal, done)
            seconds = run.recipe.checkpoint_every
            if stop.is_set() or done == run.n_steps or (seconds and time.monotonic() - saved >= seconds):
                journal.flush()
                write_checkpoint(run.folder, done, training_state(run.passes.model, optimiser), run.identity)
                saved = time.monotonic()
            if stop.is_set():
                break
    run.passes.model.eval()


def learning_rate(recipe: Recipe, step: int, n_steps: int) -> float:
    """Return the learning rate of a *step*, from 0: linear warm-up, then constant or linear decay to 0.

    >>> [learning_rate(Recipe("mine", learning_rate=1.0, warmup=2), step, 4) for step in range(4)]
    [0.5, 1.0, 1.0, 1.0]
    >>> [learning_rate(Recipe("mine", learning_rate=1.0, warmup=2, decay=True), step, 4) for step in range(4)]
    [0.5, 1.0, 1.0, 0.5]
    """
    rising = (step + 1) / recipe.warmup if recipe.warmup else 1.0
    falling = (n_steps - step) / max(1, n_steps - recipe.warmup) if recipe.decay else 1.0
    return recipe.learning_rate * min(1.0, rising, falling)


def _optimiser(run: TrainingRun) -> Any:
    """Return AdamW over the trained weights.

    Token embeddings, which most texts do not use, and new layers of a cross-encoder or a language model have rates of
    their own.
    """
    import torch

    models = [part for part in run.passes.model.modules() if hasattr(part, "get_input_embeddings")]
    token_weights = {id(model.get_input_embeddings().weight) for model in models}
    named = trained_parameters(run.passes.model)
    has_new = run.recipe.is_cross or run.recipe.is_language_model
    new = [weight for name, weight in named.items() if has_new and not name.startswith("0.")]
    weights = [weight for weight in named.values() if all(weight is not head for head in new)]
    others = [weight for weight in weights if id(weight) not in token_weights]
    embeddings = [weight for weight in weights if id(weight) in token_weights]
    rates = ((others, 1.0), (embeddings, run.recipe.embedding_rate), (new, run.recipe.head_rate))
    groups = [{"params": params, "rate": rate} for params, rate in rates if params]
    return torch.optim.AdamW(groups, lr=run.recipe.learning_rate, weight_decay=run.recipe.weight_decay, fused=True)


def _step(run: TrainingRun, optimiser: Any, step: int) -> dict[str, float]:
    import torch

    start, recipe = time.perf_counter(), run.recipe
    torch.manual_seed(torch_seed(recipe.seed, step))
    parts, n_pairs = _inputs(run, step)
    optimiser.zero_grad(set_to_none=True)
    backward = run.passes.cached_backward if recipe.cached else run.passes.backward
    loss = sum(backward(strings, loss_of) for strings, loss_of in parts)
    if not math.isfinite(loss):
        raise MirblabError(
            f"recipe '{recipe.name}': the loss of step {step + 1} is {loss}; lower the learning rate or set "
            "precision=float32. The checkpoints before it are kept"
        )
    if recipe.clip:
        torch.nn.utils.clip_grad_norm_(trained_parameters(run.passes.model).values(), recipe.clip)
    rate = learning_rate(recipe, step, run.n_steps)
    for group in optimiser.param_groups:
        group["lr"] = rate * group["rate"]
    optimiser.step()
    seconds = time.perf_counter() - start
    facts = {"loss": loss, "learning_rate": rate, "seconds": round(seconds, 3)}
    return {"step": step + 1, **facts, "pairs_per_second": round(n_pairs / seconds, 2)}


def _inputs(run: TrainingRun, step: int) -> tuple[list[tuple[list[Any], LossOf]], int]:
    """Return the parts of a *step*, texts or pairs of texts with the loss of their vectors, and the number of pairs.

    The loss of the step is the sum over its parts, whose gradients need no other part's activations.
    """
    recipe, material, relevant = run.recipe, run.material, None
    if isinstance(material, Sentences):
        sentences = material.draw(recipe, step)
        return [(sentences, language_loss(recipe))], len(sentences)
    if isinstance(material, RankingLists):
        lists = material.draw(recipe, step)
        if recipe.is_cross:
            return _list_parts(recipe, lists), lists.first.size
        anchors, relevant = lists.queries, lists.relevant
        positives, *others = (list(column) for column in zip(*lists.documents, strict=True))
        negatives = [text for column in others for text in column]
    else:
        anchors, positives, negatives = material.texts(material.plan(recipe).draw(step))
    queries = run.encoder.strings(anchors, "query", recipe.instruction)
    strings = [*queries, *run.encoder.strings(positives), *run.encoder.strings(negatives)]
    return [(strings, _loss_of(recipe, anchors, positives, negatives, relevant))], len(anchors)


def _list_parts(recipe: Recipe, lists: ListBatch) -> list[tuple[list[Any], LossOf]]:
    """Return the pairs of a few queries at a time, as many as fit into one pass, with their share of the mean loss."""
    n_documents = lists.first.shape[1]
    size = max(1, recipe.tokens_per_pass // (recipe.max_length * n_documents))
    pairs, parts = lists.pairs(), list[tuple[list[Any], LossOf]]()
    for start in range(0, len(lists.queries), size):
        first = lists.first[start : start + size]

        def loss_of(scores: torch.Tensor, first: np.ndarray = first) -> torch.Tensor:
            share = len(first) / len(lists.queries)
            return share * list_loss(scores.view(first.shape), first, recipe.first_weight, recipe.loss)

        parts.append((pairs[start * n_documents : (start + size) * n_documents], loss_of))
    return parts


def _loss_of(
    recipe: Recipe, anchors: list[str], positives: list[str], negatives: list[str], relevant: np.ndarray | None = None
) -> LossOf:
    """Return the ranking loss of a batch; texts that equal an answer, and *relevant* documents, are no wrong answers.

    *relevant* (n, n, 1 + m): whether a query has each list's relevant document, and its m others, as relevant ones.
    """
    n, same = len(anchors), same_texts(anchors, positives)
    same_negatives = same_as_negatives(anchors, positives, negatives) if negatives else None
    if relevant is not None:
        same |= relevant[:, :, 0] & ~np.eye(n, dtype=bool)
        if same_negatives is not None:
            same_negatives |= np.swapaxes(relevant[:, :, 1:], 1, 2).reshape(n, -1)

    def loss_of(vectors: torch.Tensor) -> torch.Tensor:
        return ranking_loss(
            vectors[:n],
            vectors[n : 2 * n],
            same,
            scale=recipe.scale,
            symmetric=recipe.symmetric,
            negatives=vectors[2 * n :] if negatives else None,
            same_negatives=same_negatives,
            score=packed_scores if recipe.late else cosines,
        )

    return loss_of


def _evaluate(run: TrainingRun, journal: Journal, step: int) -> None:
    if run.evaluate is not None:
        measures = run.evaluate(CurrentModel(run.passes, run.encoder), step)
        journal.write({"step": step} | {name: float(value) for name, value in measures.items()})


@contextlib.contextmanager
def _torch_restored(device: str) -> Iterator[None]:
    """Let torch use the cores that encoding may use, and on a GPU only sums in a fixed order; restore it afterwards.

    Without the second the same training gives other bytes each time. cuBLAS reads its own setting from the environment.
    """
    import torch

    threads, was_fixed = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()
    torch.set_num_threads(n_cores())
    if device == "cuda":
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        torch.use_deterministic_algorithms(True)
    try:
        with torch.random.fork_rng():
            yield
    finally:
        torch.set_num_threads(threads)
        torch.use_deterministic_algorithms(was_fixed)


@dataclass(frozen=True)
class Checkpoint:
    """The state after *step* steps as named tensors."""

    step: int
    tensors: dict[str, torch.Tensor]


def write_checkpoint(folder: Path, step: int, tensors: Mapping[str, torch.Tensor], identity: Mapping[str, Any]) -> Path:
    """Write a checkpoint with a checksum, completely or not at all; keep the newest two; return the file."""
    from safetensors.torch import save_file

    about = json.dumps({"step": step, "identity": dict(identity)}, sort_keys=True)
    path = folder / _CHECKPOINT_NAME.format(step)
    with atomic_files.write_atomically(path) as beside:
        save_file(dict(tensors), str(beside), metadata={"about": about, "digest": _content_digest(about, tensors)})
    for old in checkpoint_files(folder)[:-N_KEPT]:
        atomic_files.remove_path(old)
    return path


def newest_checkpoint(folder: Path, identity: Mapping[str, Any]) -> Checkpoint | None:
    """Return the newest intact checkpoint in *folder* or None; MirblabError if its *identity* is another one."""
    atomic_files.remove_abandoned(folder)
    for path in reversed(checkpoint_files(folder)):
        try:
            about, tensors = _read_checkpoint(path)
        except MirblabError as error:
            stored_files.set_aside(path, str(error), _CONSEQUENCE)
            continue
        other = describe_differences(about["identity"], json.loads(json.dumps(dict(identity))))
        if other:
            raise MirblabError(
                f"{path} is of another training: {other}. Take the change back, begin anew with --force, "
                "or give the new model a name of its own with --out"
            )
        return Checkpoint(int(about["step"]), tensors)
    return None


def verify_checkpoints(folder: Path) -> list[str]:
    """Return a line for each damaged checkpoint in *folder*, which is moved aside with a warning."""
    wrong = []
    for path in checkpoint_files(folder):
        try:
            _read_checkpoint(path)
        except MirblabError as error:
            stored_files.set_aside(path, str(error), _CONSEQUENCE)
            wrong.append(f"{path}: {error}")
    return wrong


def checkpoint_files(folder: Path) -> list[Path]:
    """Return the checkpoints of *folder*, oldest first."""
    return sorted(path for path in folder.glob("step-*.safetensors") if re.search(r"step-\d{8}\.", path.name))


def _read_checkpoint(path: Path) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(str(path), framework="pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}
    except (SafetensorError, OSError, ValueError) as error:
        raise MirblabError(f"it cannot be read: {error}") from error
    if metadata.get("digest") != _content_digest(metadata.get("about", ""), tensors):
        raise MirblabError("its content differs from its checksum")
    return json.loads(metadata["about"]), tensors


def _content_digest(about: str, tensors: Mapping[str, torch.Tensor]) -> str:
    import torch

    state = xxhash.xxh3_128(about.encode())
    for name in sorted(tensors):
        value = tensors[name].contiguous()
        state.update(f"{name}{tuple(value.shape)}{value.dtype}".encode())
        if value.numel():
            state.update(value.reshape(-1).view(torch.uint8).numpy().data)
    return state.hexdigest()


def trained_parameters(model: Any) -> dict[str, torch.nn.Parameter]:
    """Return the trained parameters by name, tied ones once."""
    return {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}


def training_state(model: Any, optimiser: Any) -> dict[str, torch.Tensor]:
    """Return the trained weights, the model's buffers and the optimiser's state as CPU tensors by name."""
    tensors = {f"weight/{name}": parameter.detach() for name, parameter in trained_parameters(model).items()}
    tensors |= {f"buffer/{name}": value for name, value in model.named_buffers()}
    for name, parameter in trained_parameters(model).items():
        tensors |= {f"optimiser/{field}/{name}": value for field, value in optimiser.state[parameter].items()}
    return {name: value.cpu().contiguous() for name, value in tensors.items()}


def restore_state(model: Any, optimiser: Any, tensors: dict[str, torch.Tensor]) -> None:
    """Restore what `training_state` returned; MirblabError for a model with other parameters."""
    import torch

    weights = trained_parameters(model)
    current = {f"weight/{name}": parameter.data for name, parameter in weights.items()}
    current |= {f"buffer/{name}": value for name, value in model.named_buffers()}
    stored = {name: value for name, value in tensors.items() if not name.startswith("optimiser/")}
    if {name: value.shape for name, value in stored.items()} != {name: value.shape for name, value in current.items()}:
        raise MirblabError("the checkpoint has the weights of another model; begin anew with --force")
    with torch.no_grad():
        for name, value in stored.items():
            current[name].copy_(value)
    for name in sorted(tensors.keys() - stored.keys()):
        _, field, parameter_name = name.split("/", 2)
        weight = weights[parameter_name]
        optimiser.state[weight][field] = tensors[name].clone().to(weight.device)


def average_weights(model: Any, before: Mapping[str, torch.Tensor], share: float) -> None:
    """Replace the trained weights by their mean, of weight *share*, with *before* (Wortsman et al., CVPR 2022)."""
    import torch

    with torch.no_grad():
        for name, parameter in trained_parameters(model).items():
            parameter.copy_(torch.lerp(before[name].to(parameter.device), parameter, share))


class Journal:
    """Appends lines to the log in *folder*, after removing lines after *step* and an incomplete last one."""

    def __init__(self, folder: Path, step: int) -> None:
        self.path = folder / LOG_FILE
        kept = [line for line in _log_lines(self.path) if line["step"] <= step]
        atomic_files.write_text(self.path, "".join(json.dumps(line) + "\n" for line in kept))

    def write(self, line: Mapping[str, Any]) -> None:
        """Append one line and pass it to the operating system."""
        with atomic_files.writing(self.path), atomic_files.open_to_write(self.path, "a") as file:
            file.write(json.dumps(dict(line)) + "\n")

    def flush(self) -> None:
        """Force the log to disk."""
        with atomic_files.writing(self.path):
            atomic_files.flush_file(self.path)


def read_log(folder: Path) -> pd.DataFrame:
    """Return the log in *folder* as a table with a row per line, which has the columns of steps also without a step."""
    if not (folder / LOG_FILE).is_file():
        raise MissingFileError(f"no log at {folder / LOG_FILE}; train the model first, which writes it")
    table = pd.DataFrame(_log_lines(folder / LOG_FILE))
    return table.reindex(columns=list(dict.fromkeys(["step", *table.columns, *_OF_STEPS])))


def evaluation_rows(table: pd.DataFrame) -> pd.DataFrame:
    """Return the evaluations of a log: step, and a column per measure."""
    columns = [name for name in table.columns if name not in _OF_STEPS]
    if len(columns) < 2:
        return pd.DataFrame(columns=["step"])
    return table[columns].dropna(subset=columns[1:], how="all").reset_index(drop=True)


def _log_lines(path: Path) -> list[dict[str, Any]]:
    entries = []
    lines = path.read_bytes().splitlines() if path.is_file() else []
    for number, text in enumerate(lines, 1):
        try:
            line = text_files.parse_json(text.decode("utf-8", "backslashreplace"))
            if not (isinstance(line, dict) and isinstance(line.get("step"), int)):
                raise text_files.UnreadableJson("no object with a whole number 'step'")
            entries.append(line)
        except text_files.UnreadableJson as error:
            if number < len(lines):
                raise MirblabError(f"{path}, line {number}: {error}; delete the line") from error
    return entries
