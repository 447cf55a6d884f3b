"""Every operation on a store is failed or killed at its calls, and the same command then finishes as if nothing was."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from operations import EXHAUSTIVE, OPERATIONS

PART = "failed or killed at every call"


@pytest.mark.parametrize("name", EXHAUSTIVE)
def test_a_few_faults_harm_nothing(campaign: Callable[..., dict[str, Any]], name: str) -> None:
    """No wrong value, nothing lost; the same command then ends with the same files."""
    assert campaign(PART, "inject", name, 10)["problems"] == []


@pytest.mark.faults
@pytest.mark.parametrize("name", EXHAUSTIVE)
def test_a_fault_anywhere_harms_nothing(campaign: Callable[..., dict[str, Any]], name: str) -> None:
    """The disk full, an error of the disk, and the process killed, at each of its calls, also within a write."""
    found = campaign(PART, "inject", name, 0)
    assert found["problems"] == [] and found["faults"] > 20


@pytest.mark.faults
@pytest.mark.parametrize("name", sorted({*OPERATIONS} - {*EXHAUSTIVE}))
def test_fifty_faults_in_a_long_operation_harm_nothing(campaign: Callable[..., dict[str, Any]], name: str) -> None:
    """Training, and building all miniatures."""
    assert campaign(PART, "inject", name, 50)["problems"] == []
