"""Numbers are written alike wherever they are shown."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from mirblab.display.escape import format_interval, format_value


@pytest.mark.parametrize(
    ("value", "options", "written"),
    [
        (float("nan"), {}, "–"), (np.float32("nan"), {}, "–"), (None, {}, "–"), (pd.NA, {}, "–"), (pd.NaT, {}, "–"),
        (-0.0, {}, "0.00"), (-0.004, {}, "0.00"), (-0.006, {}, "−0.01"), (-0.0, {"how": "+.1f"}, "+0.0"),
        (-0.04, {"how": ".1f"}, "0.0"), (-0.4, {"how": ",.0f"}, "0"), (-0.0004, {"how": ".1%"}, "0.0 %"),
        # Halves that are exact in binary go to the even digit; others to where their binary number lies.
        (0.125, {}, "0.12"), (0.375, {}, "0.38"), (0.5, {"digits": 0}, "0"), (1.5, {"digits": 0}, "2"),
        (2.5, {"digits": 0}, "2"), (1.005, {}, "1.00"), (0.285, {}, "0.28"), (0.295, {}, "0.29"), (-1.005, {}, "−1.00"),
        (1234567.891, {}, "1,234,567.89"), (np.int64(-1234567), {}, "−1,234,567"),
        (0, {}, "0"), (7, {"how": ",d"}, "7"),
        (True, {}, "yes"), (np.bool_(False), {}, "no"), ("a-b", {}, "a-b"), (float("-inf"), {}, "−inf"),
        (0.0005, {"how": "p"}, "< 0.001"), (0.001, {"how": "p"}, "0.001"), (0.0496, {"how": "p"}, "0.050"),
        (1, {"how": "p"}, "1.000"),
    ],
)  # fmt: skip
def test_a_value_is_formatted(value: object, options: dict, written: str) -> None:
    """A dash for a missing one, rounded as Python rounds, a true minus sign, and no negative zero."""
    assert format_value(value, **options) == written


@pytest.mark.parametrize(
    ("low", "high", "how", "written"),
    [
        (-0.0, 0.0, "+.1f", "[+0.0, +0.0]"), (-0.001, 0.125, ".2f", "[0.00, 0.12]"),
        (-1.25, -0.75, "+.1f", "[−1.2, −0.8]"), (0.5, 1500.5, ",.0f", "[0, 1,500]"),
        (float("nan"), float("nan"), ".2f", "–"), (float("-inf"), 0.5, ".1f", "[−inf, 0.5]"),
    ],
)  # fmt: skip
def test_an_interval_is_formatted(low: float, high: float, how: str, written: str) -> None:
    """Both ends as single values; a dash where there is none."""
    assert format_interval(low, high, how) == written
