"""Tables of values per query from lists, for tests of measures' statistics."""

from __future__ import annotations

import pandas as pd


def value_table(columns: dict[str, list[float]], collection: str = "c", measure: str = "nDCG@10") -> pd.DataFrame:
    """Return a table of values from one list per system; queries are q00, q01, ..."""
    rows = [
        (system, collection, measure, f"q{n:02}", float(value))
        for system, numbers in columns.items()
        for n, value in enumerate(numbers)
    ]
    return pd.DataFrame(rows, columns=["system", "collection", "measure", "query_id", "value"])
