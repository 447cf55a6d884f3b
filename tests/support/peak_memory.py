"""How much memory Python and numpy take while something is done."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager


class Peak:
    """The largest number of bytes that were allocated at the same time."""

    n_bytes = 0


@contextmanager
def peak_memory() -> Iterator[Peak]:
    """Yield what has the peak of the block when it has ended; tracing, which is slow, ends with the block."""
    peak = Peak()
    tracemalloc.start()
    try:
        yield peak
        peak.n_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
