"""diagnosis: what one check of an installation found, and how to mend it."""

from __future__ import annotations

import sys
from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at: `state` is "ok", "note" or "wrong"; `mend` says what to do.

    "wrong" keeps something from working; "note" is worth knowing, and everything works without a change.

    >>> Finding("disk", "wrong", "0.1 GB free", "free some space").mend
    'free some space'
    """

    what: str
    state: str
    found: str
    mend: str = ""


def pip(*words: str) -> str:
    """Return the command that installs *words* into the Python that runs now, whichever `pip` the shell finds.

    >>> pip("numpy").endswith("-m pip install numpy")
    True
    """
    return " ".join([sys.executable, "-m", "pip", "install", *words])
