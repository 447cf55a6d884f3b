"""batching: the batch of a tiny suite, as a process that can be killed: python batching.py FOLDER; it prints states."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from mirblab.app import batch, suites
from mirblab.core import paths

if __name__ in ("__main__", "__mp_main__"):  # this process and its children, but not a test that only imports it
    paths.bundled_path = lambda *parts: Path(sys.argv[1]).joinpath(*parts)

if __name__ == "__main__":
    stale = [job for job, _ in batch.find_stale(suites.read_suite("own"))]
    outcomes = batch.run_notebooks(stale, 2, lambda *_: None, lambda _: None)
    states = {outcome.job.name: f"{outcome.state} {outcome.problem}" for outcome in outcomes}
    print(json.dumps(states | {"stale": " ".join(job.name for job, _ in batch.find_stale(suites.read_suite("own")))}))
