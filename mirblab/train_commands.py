"""train_commands: the commands `mirblab train` and `mirblab rephrase`."""

from __future__ import annotations

from typing import Annotated

import typer

from mirblab import arguments
from mirblab.arguments import Set


def train(
    name: Annotated[str, typer.Argument(help="A recipe of registry/trained.toml, such as minilm-math.")],
    settings: Set = None,
    out: Annotated[str, typer.Option(help="A name for the model; default: the recipe's.")] = "",
    seed: Annotated[int | None, typer.Option(help="The same as --set seed=N.")] = None,
    force: Annotated[bool, typer.Option(help="Train anew what is there, or begun.")] = False,
) -> None:
    """Train an encoder and keep it in the models folder; what was stopped or killed goes on at its last checkpoint."""
    from mirblab.train import command

    changes = arguments.settings(settings) | ({} if seed is None else {"seed": seed})
    raise typer.Exit(command.run(name, changes, out=out, force=force))


def rephrase(
    source: Annotated[
        str, typer.Argument(help="A table of views: mathlib-views, mini-views, or a file.")
    ] = "mathlib-views",
    model: Annotated[str, typer.Option(help="The chat model; default: MIRBLAB_CHAT_MODEL.")] = "",
    url: Annotated[str, typer.Option(help="Its address, http://localhost:8000/v1; default: MIRBLAB_CHAT_URL.")] = "",
    rules: Annotated[bool, typer.Option("--rules", help="By rules, without a model.")] = False,
    negatives: Annotated[bool, typer.Option("--negatives", help="Also three wrong versions of each.")] = False,
    split: Annotated[str, typer.Option(help="Whose statements; empty: all.")] = "train",
    kind: Annotated[list[str] | None, typer.Option(help="Only theorem, lemma ...; may be repeated.")] = None,
    modules: Annotated[str, typer.Option(help="all, or mathematics.")] = "all",
    limit: Annotated[int, typer.Option(help="A sample of that many; 0: all.")] = 0,
    seed: Annotated[int, typer.Option(help="Of the rules and the sample.")] = 0,
    out: Annotated[str, typer.Option(help="A .parquet or .jsonl file; default: data/rephrasings/.")] = "",
    settings: Set = None,
) -> None:
    """Say statements anew, for training; nothing is asked twice. --set in_flight=8 or budget=5 limits a model."""
    from mirblab.train import rephrase_command

    found = {"split": split, "kinds": kind or [], "modules": modules, "limit": limit}
    asked = {"model": model, "url": url, "limits": arguments.settings(settings)}
    status = rephrase_command.run(source, rules=rules, negatives=negatives, out=out, seed=seed, **asked, **found)
    raise typer.Exit(status)
