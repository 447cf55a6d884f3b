"""views_table: the table of Lean declarations on disk, with a card that counts what repeats and what was left out."""

from __future__ import annotations

import gzip
import json
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mirblab import paths
from mirblab.sources import views_tasks
from mirblab.sources.origin import Origin
from mirblab.sources.shape import Row
from mirblab.terminal import say

NAME, FILE = "mathlib-views", "views.jsonl.gz"


def save(
    folder: Path,
    rows: Sequence[Row],
    found: Origin,
    left_out: Counter[str],
    *,
    builder: str,
    revision: str,
    licence: str,
    options: Mapping[str, Any],
) -> None:
    """Write the *rows* as gzipped JSON lines and a card into *folder*, and print how many there are.

    The folder has no corpus, so that it is no collection. The same rows give the same bytes.
    """
    # Without a name and a date, which gzip would store.
    with (
        paths.write_atomically(folder / FILE) as path,
        paths.open_to_write(path) as raw,
        gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=0) as file,
    ):
        file.writelines((json.dumps(row, ensure_ascii=False) + "\n").encode() for row in rows)
    chosen = [word for name, value in options.items() for word in ("--set", f"{name}={value}")]
    counts, reasons = views_tasks.counts(rows), {reason: n for reason, n in sorted(left_out.items()) if n}
    card = {
        "name": folder.name,
        "title": "Lean declarations in three views: informal, signature and type",
        "source": found.source,
        "licence": licence,
        "revision": found.commit or revision,
        "command": shlex.join(["mirblab", "build", builder, "--from", found.shown, *chosen]),
        "counts": {**counts, "left_out": reasons},
    }
    _write(folder / "card.toml", card)
    say(f"{folder.name}: {', '.join(f'{name} {count:,}' for name, count in counts.items())}")
    for reason, count in reasons.items():
        say(f"  left out or odd: {count:>6,}  {reason}")


def _write(path: Path, card: Row) -> None:
    import tomli_w

    paths.write_text(path, tomli_w.dumps(card))
