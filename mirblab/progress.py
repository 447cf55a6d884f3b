"""progress: one progress bar for every long step, with an estimate of the time left."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from mirblab import terminal


class Bar(Protocol):
    """Anything that is told how much has been done."""

    def update(self, n: int = 1) -> object:
        """Count *n* more units as done."""

    def set_postfix_str(self, text: str) -> object:
        """Show *text* behind the bar."""


@contextmanager
def progress(total: int, label: str, unit: str = "it") -> Iterator[Bar]:
    """Yield a bar over *total* units; it appears after one second and is silent when `MIRBLAB_PROGRESS=0`."""
    from tqdm.auto import tqdm

    silent, said = os.environ.get("MIRBLAB_PROGRESS") == "0", terminal.safe(label)
    with tqdm(total=total, desc=said, unit=f" {unit}", delay=1, mininterval=0.5, leave=False, disable=silent) as bar:
        yield bar
