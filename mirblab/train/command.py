"""command: what `mirblab train` prints."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from mirblab.core.terminal import say
from mirblab.encoders import local
from mirblab.train import training
from mirblab.train.loop import LOG_FILE, evaluation_rows
from mirblab.train.recipes import recipe
from mirblab.train.training import train, training_log


def run_training(name: str, changes: Mapping[str, Any], *, out: str = "", force: bool = False) -> int:
    """Train the model of the recipe *name* and print what it reached; return the exit status (130: Ctrl-C)."""
    shown = out or name
    was_there = local.find_trained(shown) is not None and not force
    try:
        folder = train(recipe(name, **changes), out=out, force=force)
    except KeyboardInterrupt:
        is_logged = (training.workshop_folder(shown) / LOG_FILE).is_file()
        step = max(training_log(shown).step, default=0) if is_logged else 0
        say(f"stopped after step {step}; the same command without --force continues from there", to=sys.stderr)
        return 130
    state = "is there" if was_there else "is trained"
    say(f"{shown} {state}: {folder}")
    if (training.workshop_folder(shown) / LOG_FILE).is_file():
        print_summary(shown)
    return 0


def train_model(name: str, changes: Mapping[str, Any], out: str, force: bool) -> str:
    """Train the model of a recipe without a word, as a task of another process, and return its folder."""
    return str(train(recipe(name, **changes), out=out, force=force))


def print_summary(name: str) -> None:
    """Print how long the training of a model took and what its log's first and last evaluation say."""
    table = training_log(name)
    if len(steps := table.dropna(subset="loss")):
        seconds, pairs = steps.seconds.sum(), (steps.seconds * steps.pairs_per_second).sum()
        say(f"  {len(steps):,} steps in {seconds:,.0f} s, {pairs / seconds:.1f} pairs a second")
    rows = evaluation_rows(table).to_dict("records")
    for line in rows[:1] + rows[1:][-1:]:
        measures = ", ".join(f"{measure} {value:.4f}" for measure, value in line.items() if measure != "step")
        say(f"  step {int(line['step']):,}: {measures}")
