"""fusion: one run made of several, by any method, with weights that are given or cross-validated."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import pandas as pd

from mirblab.errors import unknown
from mirblab.folds import fold_table
from mirblab.methods import borda, comb_anz, comb_max, comb_mnz, comb_sum, isr, linear, log_isr, rrf, weighted_sum
from mirblab.provenance import biggest_gains, provenance
from mirblab.tuning import cross_validated

__all__ = [
    "METHODS", "biggest_gains", "borda", "comb_anz", "comb_max", "comb_mnz", "comb_sum", "cross_validated",
    "fold_table", "fuse", "isr", "linear", "log_isr", "provenance", "rrf", "weighted_sum",
]  # fmt: skip

# By the names that polyfuse gives them.
METHODS: Mapping[str, Callable[..., pd.DataFrame]] = MappingProxyType(
    {
        "rrf": rrf,
        "linear": linear,
        "sum": weighted_sum,
        "borda": borda,
        "combsum": comb_sum,
        "combmnz": comb_mnz,
        "combanz": comb_anz,
        "combmax": comb_max,
        "isr": isr,
        "logisr": log_isr,
    }
)


def fuse(parts: Sequence[pd.DataFrame], method: str = "rrf", depth: int | None = None, **settings: Any) -> pd.DataFrame:
    """Return the fusion of runs by a method of METHODS; *settings* are the method's own (rrf: k; linear: weights).

    >>> one = pd.DataFrame({"query_id": "q", "doc_id": ["a", "b"], "score": [9.0, 1.0]})
    >>> fuse([one, one], "combmnz", depth=1).score.tolist()
    [4.0]
    """
    if method not in METHODS:
        raise unknown("fusion method", str(method), METHODS)
    return METHODS[method](parts, depth=depth, **settings)
