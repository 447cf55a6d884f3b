"""lines: text files read line by line, plain or gzipped, with every broken line noted."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mirblab.errors import MirblabError


class Problems:
    """What makes a file unusable: each line is noted, and the error names the first and how many there are."""

    def __init__(self, path: Path) -> None:
        """Begin with no problem in the file at *path*."""
        self.path, self.found = path, []

    def note(self, line: int, what: str) -> None:
        """Remember that a line is wrong, and why."""
        self.found.append((line, what))

    def raise_if_any(self) -> None:
        """Raise MirblabError with file, line and number when something was noted."""
        if self.found:
            line, what = self.found[0]
            more = f" ({len(self.found):,} such lines in all)" if len(self.found) > 1 else ""
            raise MirblabError(f"{self.path}, line {line}: {what}{more}")


def find(folder: Path, stem: str, *, suffixes: tuple[str, ...] = (".jsonl", ".jsonl.gz")) -> Path | None:
    """Return the file `stem` + one of the *suffixes* in *folder*, or None; MirblabError when there are several."""
    found = [path for suffix in suffixes if (path := folder / f"{stem}{suffix}").is_file()]
    if len(found) > 1:
        raise MirblabError(f"{folder} has {' and '.join(path.name for path in found)}; keep one of them")
    return found[0] if found else None


def lines(path: Path, problems: Problems) -> Iterator[tuple[int, str]]:
    """Yield number and text of each line that is not blank, from 1; lines that are not UTF-8 are noted."""
    opener = gzip.open if path.suffix == ".gz" else open
    try:
        with opener(path, "rb") as file:
            for number, raw in enumerate(file, 1):
                if number == 1:
                    raw = raw.removeprefix(b"\xef\xbb\xbf")
                try:
                    text = raw.decode("utf-8").rstrip("\r\n")
                except UnicodeDecodeError as error:
                    problems.note(number, f"not UTF-8 at byte {error.start}; save the file as UTF-8")
                    continue
                if text.strip():
                    yield number, text
    except (EOFError, OSError, zlib.error) as error:
        raise MirblabError(f"{path} cannot be read: {error}; copy or unpack it again") from error


def records(path: Path, problems: Problems) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield line number and object of each line of a .jsonl file; broken lines are noted."""
    for number, text in lines(path, problems):
        try:
            record = json.loads(text)
        except json.JSONDecodeError as error:
            problems.note(number, f"broken JSON: {error.msg} at character {error.pos + 1}")
            continue
        if isinstance(record, dict):
            yield number, record
        else:
            problems.note(number, f"expected a JSON object, found {type(record).__name__}")
