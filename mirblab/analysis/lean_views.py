"""lean_views: Lean declarations as informal statement, signature and type, and the limit that equal texts set."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from mirblab.core import paths
from mirblab.core.errors import MirblabError, unknown
from mirblab.core.wording import first_names
from mirblab.data import digests
from mirblab.data.collection import Collection
from mirblab.evaluation import published
from mirblab.evaluation.measures import AnyMeasure, Measure, mean, parse_measure
from mirblab.sources import lean_views, mini
from mirblab.sources.lean_views import COLUMNS, MATHEMATICS, find_view_files, is_mathematical, read_declarations
from mirblab.sources.mini import read_cards
from mirblab.sources.shared import release

# The MELD paper prints one table for each direction.
TABLES = {direction: number for number, direction in enumerate(lean_views.DIRECTIONS, 6)}
BUNDLED, BUILT = "mini-views", lean_views.NAME
SYSTEM = "ceiling of row identity"


def read_views(name_or_file: str | Path = BUNDLED) -> pd.DataFrame:
    """Return a table of Lean declarations: id, module, kind, split, informal, signature, type; sorted by id.

    "mini-views" is derived from the bundled cards, "mathlib-views" exists after `mirblab build views`; else a file
    views.jsonl, .jsonl.gz or .parquet, or a folder with one. All columns are texts, stripped; names_itself (whether the
    informal text has the name) follows where the source has it. `attrs["left_out"]` counts declarations that lack a
    view. MirblabError, with file and line, for a missing column, a repeated id and broken rows, and with the command
    for a table that is not built; FileNotFoundError for a missing path.

    >>> read_views().columns.tolist()
    ['id', 'module', 'kind', 'split', 'informal', 'signature', 'type']
    """
    left_out = Counter[str]()
    rows = mini.view_rows(read_cards()) if str(name_or_file) == BUNDLED else _read(name_or_file, left_out)
    more = sorted({key for row in rows for key in row} - set(COLUMNS))
    table = pd.DataFrame(rows, columns=[*COLUMNS, *more]).astype(dict.fromkeys(COLUMNS, "str"))
    table.attrs["left_out"] = {reason: count for reason, count in left_out.items() if count}
    return table


def _read(name_or_file: str | Path, left_out: Counter[str]) -> list[dict[str, Any]]:
    path = paths.expand_home(name_or_file)
    if str(name_or_file) == BUILT:
        path = paths.data() / BUILT / lean_views.FILE
        if not path.is_file():
            raise MirblabError(f"the table '{BUILT}' is not built yet; run: mirblab build views --from views.jsonl.gz")
        digests.check_digests(path.parent)
    elif not path.exists():
        raise unknown("table of views, and no file,", str(name_or_file), [BUNDLED, BUILT])
    with release.open_release(path, "views.jsonl", "") as opened:
        return read_declarations(find_view_files(opened), left_out)


def in_modules(views: pd.DataFrame) -> pd.DataFrame:
    """Return the rows whose module's second component is one of `MATHEMATICS`, in their order.

    That is the MELD paper's choice of mathematics (Appendix A), without Lean's own machinery. MirblabError when the
    table has no column module or no row is left.
    """
    if "module" not in views:
        raise MirblabError(f"a table of views has a column module; found {', '.join(map(str, views.columns))}")
    kept = views[[is_mathematical(module) for module in views.module]].reset_index(drop=True)
    if len(views) and kept.empty:
        found = ", ".join(sorted({str(part) for part in views.module.str.split(".").str[1].dropna()}))
        raise MirblabError(f"no module has the second component {first_names(MATHEMATICS, 3)}; found {found}")
    return kept


def identity_ceiling(identical: Collection, measures: Iterable[AnyMeasure]) -> pd.DataFrame:
    """Return the best expected value of a system that cannot distinguish equal texts, when only the target counts.

    *identical* is a directed task with the split "test-identical". Such a system returns a query's n equal texts first,
    in random order: the expected value is min(1, k / n) for R@k and Success@k, and for RR the mean of 1 / rank over the
    ranks 1 to n (0 beyond k). The table is that of `measures.evaluate`; MirblabError for other measures.

    >>> from mirblab.sources.catalogue import load
    >>> identity_ceiling(load("mini-views-informal-type", "test-identical"), ["R@1", "RR"]).value.unique().tolist()
    [1.0]
    """
    parsed = [parse_measure(measure) for measure in measures]
    n_equal = identical.qrels.groupby("query_id", observed=False).size()
    parts = [
        pd.DataFrame({"measure": str(measure), "query_id": n_equal.index.astype(str), "value": _best(measure, n_equal)})
        for measure in parsed
    ]
    return pd.concat(parts, ignore_index=True).assign(system=SYSTEM, collection=identical.name)


def _best(measure: Measure, n_equal: pd.Series) -> np.ndarray:
    """Return the expected value of each query whose target has a random rank among the first *n_equal*."""
    n, k = n_equal.to_numpy(), measure.k
    if measure.name in ("R", "Success") and not measure.prime:
        return np.minimum(1.0, k / n)
    if measure.name == "RR" and not measure.prime:
        harmonic = np.concatenate([[0.0], np.cumsum(1 / np.arange(1, n.max(initial=0) + 1))])
        return harmonic[n if k is None else np.minimum(n, k)] / n
    raise MirblabError(f"the ceiling of row identity is known for R@k, Success@k and RR, not for '{measure}'")


def printed_table_number(collection: str) -> int:
    """Return the number, 6 to 11, of the MELD paper's table with the direction of a collection, else MirblabError.

    >>> printed_table_number("mini-views-informal-type"), printed_table_number("views-signature-type")
    (6, 11)
    """
    direction = collection.removeprefix("mini-").removeprefix("views-")
    if direction not in TABLES or "views-" not in collection:
        raise unknown("directed task", collection, [f"views-{name}" for name in TABLES])
    return TABLES[direction]


def compare_with_printed(values: pd.DataFrame, collection: str) -> pd.DataFrame:
    """Return the values of one directed task here, and below them those that the MELD paper prints, in percent.

    Rows are systems, columns `from` ("here" or "paper") and the measures of the *values*, RR under the paper's name
    MRR. The paper has other declarations, and more, so its values are no target for ours.

    >>> from mirblab.sources.catalogue import load
    >>> name = "mini-views-informal-type"
    >>> shown = compare_with_printed(identity_ceiling(load(name, "test-identical"), ["R@1", "RR"]), name)
    >>> shown.loc[["ceiling of row identity", "Qwen3-Embedding-8B"], "MRR"].tolist()
    [100.0, 72.65]
    """
    here = mean(values[values.collection == collection])
    wide = here.pivot(index="system", columns="measure", values="value")
    wide = 100 * wide.loc[here.system.unique(), here.measure.unique()].rename(columns={"RR": "MRR"})
    paper = published.paper_table("meld", printed_table_number(collection)).reindex(columns=wide.columns)
    paper = paper.rename(index=lambda name: name.removesuffix(" (ours)"))  # the paper's, not this project's
    table = pd.concat([wide, paper]).rename_axis(index=None, columns=None)
    table.insert(0, "from", ["here"] * len(wide) + ["paper"] * len(paper))
    return table
