"""Every operation on a store is failed, killed or loses power at its calls; the same command then mends everything."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from operations import EXHAUSTIVE, OPERATIONS

FAILED, CRASHED = "failed or killed at every call", "crash states after a loss of power"


@pytest.mark.parametrize("name", EXHAUSTIVE)
def test_a_few_faults_harm_nothing(campaign: Callable[..., dict[str, Any]], name: str) -> None:
    """No wrong value, nothing lost; the same command then ends with the same files."""
    assert campaign(FAILED, "inject", name, 3)["problems"] == []


@pytest.mark.faults
@pytest.mark.parametrize("name", EXHAUSTIVE)
def test_a_fault_anywhere_harms_nothing(campaign: Callable[..., dict[str, Any]], name: str) -> None:
    """The disk full, an error of the disk, and the process killed, at each of its calls, also within a write."""
    figures = campaign(FAILED, "inject", name, 0)
    assert figures["problems"] == [] and figures["faults"] > 20


@pytest.mark.faults
@pytest.mark.parametrize("name", sorted({*OPERATIONS} - {*EXHAUSTIVE}))
def test_fifty_faults_in_a_long_operation_harm_nothing(campaign: Callable[..., dict[str, Any]], name: str) -> None:
    """Training, and building all miniatures."""
    assert campaign(FAILED, "inject", name, 50)["problems"] == []


@pytest.mark.parametrize("name", ["vectors", "runs", "add", "judgements"])
def test_a_few_crash_states_harm_nothing(campaign: Callable[..., dict[str, Any]], name: str) -> None:
    """Writes and renamings that were not flushed are lost, or torn."""
    assert campaign(CRASHED, "replay", name, 5)["problems"] == []


@pytest.mark.faults
@pytest.mark.parametrize("name", sorted(OPERATIONS))
def test_no_crash_state_harms_anything(campaign: Callable[..., dict[str, Any]], name: str) -> None:
    """All of them, or of those of longer operations as many as there is time for; what had returned is still there."""
    assert campaign(CRASHED, "replay", name, 400 if name in EXHAUSTIVE else 50)["problems"] == []
