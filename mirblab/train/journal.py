"""journal: the log of a training run: a JSON object per step, and one per evaluation."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from mirblab import json_text, paths
from mirblab.errors import MirblabError

FILE = "log.jsonl"
_OF_STEPS = ("loss", "smoothed", "learning_rate", "seconds", "pairs_per_second")


class Journal:
    """Appends lines to the log in *folder*; opened at a step, it forgets what was written of later ones."""

    def __init__(self, folder: Path, step: int) -> None:
        """Keep the lines up to *step*; a torn last line, of a process that was killed, is dropped too."""
        self.path = folder / FILE
        kept = [line for line in _lines(self.path) if line["step"] <= step]
        paths.write_text(self.path, "".join(json.dumps(line) + "\n" for line in kept))

    def write(self, line: Mapping[str, Any]) -> None:
        """Append one line and hand it to the system at once."""
        with paths.writing(self.path), paths.open_to_write(self.path, "a") as file:
            file.write(json.dumps(dict(line)) + "\n")

    def flush(self) -> None:
        """Put the log on disk."""
        with paths.writing(self.path):
            paths.flush(self.path)


def read(folder: Path) -> pd.DataFrame:
    """Return the log in *folder* as a table with a row per line, in their order."""
    if not (folder / FILE).is_file():
        raise FileNotFoundError(f"no log at {folder / FILE}; train the model first, which writes it")
    return pd.DataFrame(_lines(folder / FILE))


def evaluations(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of a log that hold an evaluation: step, and a column per measure."""
    columns = [name for name in table.columns if name not in _OF_STEPS]
    if len(columns) < 2:
        return pd.DataFrame(columns=["step"])
    return table[columns].dropna(subset=columns[1:], how="all").reset_index(drop=True)


def _lines(path: Path) -> list[dict[str, Any]]:
    """Return the objects of a log; MirblabError with file and line for a broken line that is not the last."""
    found = []
    lines = path.read_bytes().splitlines() if path.is_file() else []
    for number, text in enumerate(lines, 1):
        try:
            line = json_text.loads(text.decode("utf-8", "backslashreplace"))
            if not (isinstance(line, dict) and isinstance(line.get("step"), int)):
                raise json_text.Unreadable("no object with a whole number 'step'")
            found.append(line)
        except json_text.Unreadable as error:
            if number < len(lines):
                raise MirblabError(f"{path}, line {number}: {error}; delete the line") from error
    return found
