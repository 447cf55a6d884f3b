"""Tests of display draw without a window, and leave no figure open."""

from __future__ import annotations

from collections.abc import Iterator

import matplotlib
import pytest

matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def _close_figures() -> Iterator[None]:
    """Close every figure after its test."""
    yield
    import matplotlib.pyplot as plt

    plt.close("all")
