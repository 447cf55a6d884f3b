"""batching: batches of a tiny suite, each in a fork of this process, which spares the imports.

`python batching.py FOLDER` reads the environment of a batch from a line of JSON, and answers with a line
of JSON: how it ended, with which error, and the states of its notebooks.
"""

from __future__ import annotations

import json
import os
import runpy
import sys
from multiprocessing import get_context
from pathlib import Path

import papermill  # noqa: F401  the forks then have it
from injector import in_child

from mirblab.app import places, suite_files
from mirblab.app.batch import notebooks
from mirblab.core import paths

EVERYWHERE = Path(__file__).resolve().parent / "everywhere" / "sitecustomize.py"


def run_batch(environment: dict[str, str]) -> dict[str, str]:
    """Return what became of each notebook that was not fresh, and under "stale" which are not fresh afterwards."""
    os.environ.update(environment)
    runpy.run_path(str(EVERYWHERE))
    stale = [job for job, _ in notebooks.find_stale(suite_files.read_suite("own"))]
    with places.open_place("local", 2) as place:
        outcomes = notebooks.run_notebooks(stale, place, lambda *_: None, lambda _: None)
    states = {outcome.job.name: f"{outcome.state} {outcome.problem}" for outcome in outcomes}
    return states | {"stale": " ".join(job.name for job, _ in notebooks.find_stale(suite_files.read_suite("own")))}


def main(folder: str) -> None:
    """Answer each line of the input."""
    paths.bundled_path = lambda *parts: Path(folder).joinpath(*parts)
    places.get_context = lambda _: get_context("fork")
    for line in sys.stdin:
        ended = in_child(lambda line=line: run_batch(json.loads(line)), seconds=300)
        print(json.dumps({"how": ended.how, "said": ended.said, "states": ended.value}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
