"""What the campaign found, added up over all its tests: a table at the end, also for docs/reliability.md."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from campaign import ONE_THREAD

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BEGIN, END = "<!-- the table of make test-faults -->", "<!-- end of the table -->"
COLUMNS = {
    "operations": "operations", "faults": "injected faults", "inputs": "inputs tried", "wrong": "wrong values",
    "lost": "things lost", "crashes": "crashes", "hangs": "hangs", "redone": "units computed again",
}  # fmt: skip
PARTS = ("failed or killed at every call", "crash states after a loss of power", "failed system calls",
         "state machines against a dictionary", "several processes at once", "mutated inputs", "attacks")  # fmt: skip


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let the table be written into a page, and fewer damaged inputs be tried."""
    parser.addoption("--inputs", type=int, default=10_000, help="damaged inputs for each reader")
    parser.addoption("--figures", default="", help="a Markdown page whose table of the campaign is replaced")


@pytest.fixture
def figures(record_property: Callable[[str, object], None]) -> Callable[..., None]:
    """Return a function that adds figures to a part of the table; they are counted when the test fails, too."""

    def add(part: str, **counts: int) -> None:
        unknown = {*counts} - {*COLUMNS}
        if part not in PARTS or unknown:
            raise ValueError(f"no part {part!r} of the table, or no columns {sorted(unknown)}")
        record_property("figures", {"part": part, **counts})

    return add


@pytest.fixture
def campaign(figures: Callable[..., None]) -> Callable[..., dict[str, Any]]:
    """Return a function that runs `campaign.py` in a process of its own, adds its figures, and returns them."""

    def run(part: str, how: str, name: str, points: int) -> dict[str, Any]:
        command = [sys.executable, str(HERE / "campaign.py"), how, name, str(points)]
        environment = {**os.environ, **ONE_THREAD, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=1500)
        if done.returncode:
            pytest.fail(f"{' '.join(command[1:])}: {done.stderr[-2000:]}")
        found = json.loads(done.stdout)
        figures(part, operations=1, **{name: found[name] for name in COLUMNS if name in found})
        return found

    return run


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Print the table, and write it into the page of --figures."""
    table = _table(_sums(terminalreporter))
    if len(table) <= 2:
        return
    terminalreporter.section("the campaign")
    terminalreporter.write_line("\n".join(table))
    if config.getoption("--figures"):
        page = ROOT / config.getoption("--figures")
        before, _, rest = page.read_text("utf-8").partition(BEGIN)
        page.write_text("\n".join([before + BEGIN, "", *table, "", END]) + rest.partition(END)[2], encoding="utf-8")


def _sums(reporter: Any) -> dict[str, dict[str, int]]:
    """Return the figures of all tests by part; a test marked `attacks` counts as one input."""
    sums: dict[str, dict[str, int]] = {part: {} for part in PARTS}
    for outcome in ("passed", "failed"):
        for report in reporter.stats.get(outcome, []):
            if report.when != "call":
                continue
            records = [found for name, found in report.user_properties if name == "figures"]
            if "attacks" in report.keywords:
                records.append({"part": "attacks", "inputs": 1, "crashes": int(outcome == "failed")})
            for record in records:
                own = sums[record["part"]]
                for name in COLUMNS:
                    own[name] = own.get(name, 0) + record.get(name, 0)
    return {part: own for part, own in sums.items() if own}


def _table(sums: dict[str, dict[str, int]]) -> list[str]:
    total = {name: sum(own[name] for own in sums.values()) for name in COLUMNS}
    lines = ["| what was tried | " + " | ".join(COLUMNS.values()) + " |", "| --- |" + " ---: |" * len(COLUMNS)]
    rows = [*sums.items(), ("together", total)] if sums else []
    return lines + [f"| {part} | " + " | ".join(f"{own[name]:,}" for name in COLUMNS) + " |" for part, own in rows]
