"""redrawing: a map again from the coordinates that were stored with it, byte for byte."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pandas as pd

from mirblab import json_text, plots
from mirblab.errors import MirblabError

_TEXT = ("id", "class_id", "field", "kind")
_SUFFIXES = ("csv", "json", "pdf", "png", "svg")


def redraw(path: str | Path, out: str | Path) -> list[Path]:
    """Draw the map whose coordinates are stored at *path* into the folder *out*; return the paths of its five files.

    *path* is the CSV or JSON file that stands beside a map of `plots.map` that was saved with its table: the first
    has coordinates, the second name, caption, alternative text and provenance. All files, PDF, PNG and SVG among
    them, are byte for byte those that were stored, with the same version of matplotlib; a warning says when it is
    another. Raises FileNotFoundError for a missing file and MirblabError for one that is no map.

    >>> import tempfile
    >>> points = pd.DataFrame({"id": ["a", "b"], "x": [0.1, 1.0], "y": 0.0, "class_id": "p", "field": "f", "kind": ""})
    >>> folder = tempfile.mkdtemp()
    >>> said = {"provenance": {}, "caption": "A map.", "alt": "Two dots."}
    >>> shown = plots.save_figure(plots.map(points), folder, "map", table=points, **said)
    >>> again = redraw(f"{folder}/map.csv", f"{folder}/again")
    >>> [file.read_bytes() == Path(folder, file.name).read_bytes() for file in again]
    [True, True, True, True, True]
    """
    path, out = Path(path), Path(out)
    if path.suffix not in (".csv", ".json"):
        raise MirblabError(f"{path} is no stored map; name the .csv or the .json file beside the picture")
    table, record = _coordinates(path.with_suffix(".csv")), _record(path.with_suffix(".json"))
    _check_version(record["provenance"])
    plots.save_figure(plots.map(table), out, record["name"], table=table, provenance=record["provenance"],
                      caption=record["caption"], alt=record["alt"])  # fmt: skip
    return [out / f"{record['name']}.{suffix}" for suffix in _SUFFIXES]


def _coordinates(path: Path) -> pd.DataFrame:
    if not path.is_file():
        raise FileNotFoundError(f"no coordinates at {path}; a map is redrawn from the CSV file that was saved with it")
    with open(path, encoding="utf-8") as file:
        has_index = file.read(1) == ","  # a table that was a part of another has a first column without a name
    # pandas writes and reads every digit of a number; a statement called "NA" has to stay one.
    table = pd.read_csv(
        path, dtype=dict.fromkeys(_TEXT, str), keep_default_na=False, index_col=0 if has_index else None
    ).rename_axis(index=None)
    missing = [column for column in (*_TEXT, "x", "y") if column not in table]
    if missing:
        raise MirblabError(
            f"{path} is no stored map: it has no column {', '.join(missing)}, found {', '.join(table)}; "
            "give the CSV beside a map"
        )
    return table


def _record(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise FileNotFoundError(
            f"no {path.name} beside the coordinates in {path.parent}; copy it there too: it holds name and caption"
        )
    record = json_text.read(path)
    wanted = ("name", "caption", "alt", "provenance")
    missing = [name for name in wanted if name not in record] if isinstance(record, dict) else wanted
    if missing:
        raise MirblabError(
            f"{path} was not saved with a figure: it has no {', '.join(missing)}; give the file beside a map"
        )
    return record


def _check_version(provenance: dict[str, Any]) -> None:
    import matplotlib

    drawn = provenance.get("versions", {}).get("matplotlib", matplotlib.__version__)
    if drawn != matplotlib.__version__:
        warnings.warn(
            f"drawn with matplotlib {drawn}, redrawn with {matplotlib.__version__}: the same map, not the same bytes",
            stacklevel=3,
        )
