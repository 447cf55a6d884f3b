"""The solutions that stand in a lesson's notebook, as answers to its checks."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from mirblab.lessons import check
from mirblab.lessons.build import without_solutions
from mirblab.lessons.exercises import Verdict

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"


def exercises(lesson: str) -> dict[str, tuple[str, str]]:
    """Return for each checked exercise the names of its check and its answer, and the cell's source."""
    cells = json.loads((NOTEBOOKS / f"{lesson}.ipynb").read_text("utf-8"))["cells"]
    found, source = {}, ""
    for cell in cells:
        tags = cell["metadata"].get("tags", [])
        if "exercise" in tags:
            source = "".join(cell["source"])
        if "check" in tags:
            _, name, rest = "".join(cell["source"]).split('"')
            found[name] = (rest.strip(" ,)"), source)
    return found


def answer_of(source: str, name: str) -> Any:
    """Return what an exercise's cell defines as *name*."""
    space = {"np": np, "product": product}
    exec(source, space)
    return space[name]


def verdicts(lesson: str, name: str) -> tuple[Verdict, Verdict]:
    """Return what the check *name* says of the solution in the notebook, and of the exercise without it."""
    answer, source = exercises(lesson)[name]
    return check(name, answer_of(source, answer)), check(name, answer_of(without_solutions(source), answer))
