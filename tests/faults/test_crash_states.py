"""What a loss of power can leave of an operation is read right or not at all, and the same command mends it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from operations import EXHAUSTIVE, OPERATIONS

PART = "crash states after a loss of power"


@pytest.mark.parametrize("name", ["vectors", "runs", "replies", "add", "import values", "build own", "write a table"])
def test_a_few_crash_states_harm_nothing(campaign: Callable[..., dict[str, Any]], name: str) -> None:
    """Writes and renamings that were not flushed are lost, or torn."""
    assert campaign(PART, "replay", name, 24)["problems"] == []


@pytest.mark.faults
@pytest.mark.parametrize("name", sorted(OPERATIONS))
def test_no_crash_state_harms_anything(campaign: Callable[..., dict[str, Any]], name: str) -> None:
    """All of them, or of those of longer operations as many as there is time for; what had returned is still there."""
    assert campaign(PART, "replay", name, 400 if name in EXHAUSTIVE else 50)["problems"] == []
