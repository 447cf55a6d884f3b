"""diff_command: the command `mirblab diff`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mirblab.terminal import say


def diff(
    first: Annotated[str, typer.Argument(help="A system, such as bm25, or a run file in TREC's format.")],
    second: Annotated[str, typer.Argument(help="What it is compared with: another system or run file.")],
    collection: Annotated[str, typer.Option(help="The collection of both, by name or folder.")],
    measures: Annotated[str, typer.Option(help="Measures, separated by commas; the first ranks the queries.")] = (
        "nDCG@10,AP,R@100"
    ),
    k: Annotated[int, typer.Option(help="How many first documents are looked at.")] = 10,
    out: Annotated[Path | None, typer.Option(help="A .csv file for everything, query by query.")] = None,
    queries: Annotated[int, typer.Option(help="How many queries that gained, and that lost, are shown.")] = 5,
    p: Annotated[float, typer.Option(help="Of rank-biased overlap, 0 to 1: 0.9 looks at about ten ranks.")] = 0.9,
    depth: Annotated[int, typer.Option(help="Documents per query.")] = 1000,
    split: Annotated[str, typer.Option(help="Which split's queries.")] = "test",
    seed: Annotated[int, typer.Option(help="Of the test and the intervals.")] = 0,
) -> None:
    """Compare two runs of a collection: means, luck, queries, documents that moved, and what nobody judged."""
    from mirblab import diff_view

    wanted = [name.strip() for name in measures.split(",") if name.strip()]
    found = diff_view.compared(
        first, second, collection, wanted, k=k, n_queries=queries, p=p, depth=depth, split=split, seed=seed
    )
    diff_view.show(found)
    if out is not None:
        say(f"wrote {diff_view.write(found, out)}")
