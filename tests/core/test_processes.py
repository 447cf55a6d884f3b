"""How many cores are used: one variable decides, for whatever computes."""

from __future__ import annotations

import os

import numpy as np
import pytest

from mirblab.core import processes
from mirblab.core.errors import MirblabError
from mirblab.retrieval import dense


@pytest.mark.parametrize("given", ["0", "two", "-1", "²", "1.5"])
def test_the_number_of_cores_must_be_a_number_from_one(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A setting that cannot be meant is refused."""
    monkeypatch.setenv("MIRBLAB_THREADS", given)
    with pytest.raises(MirblabError, match="MIRBLAB_THREADS is .*; set it to a whole number from 1"):
        processes.n_cores()


def test_the_variable_decides_and_without_it_all_cores_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty one is none."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 4}, raising=False)
    for given, wanted in (("7", 7), ("", 3)):
        monkeypatch.setenv("MIRBLAB_THREADS", given)
        assert (processes.n_cores(), processes.available_cores()) == (wanted, 3)
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    assert processes.n_cores() == 2


def test_a_search_uses_as_many_threads_as_the_variable_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not one for each core of the machine, of which a process of a pool has a share."""
    seen = []

    def note(task, jobs, workers):
        seen.append(workers)
        return [task(job) for job in jobs]

    monkeypatch.setattr(dense, "run_in_threads", note)
    monkeypatch.setenv("MIRBLAB_THREADS", "3")
    dense.search(np.eye(2, dtype=np.float32), np.eye(2, dtype=np.float32), depth=1)
    assert seen == [3]
