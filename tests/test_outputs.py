"""Tables and figures land in their folder, each with what it was made from."""

from __future__ import annotations

import json

import pandas as pd

from mirblab import paths, plots, shelf, systems, tables
from mirblab.outputs import output, versions


def test_a_table_and_a_figure_land_with_provenance():
    """Parameters, fingerprints, model revisions, commit and versions stand in a JSON beside each."""
    c = shelf.load("mini-hol")
    out = output("99_example", "own", "part", collections=[c], systems=[systems.system("minilm")], seed=7)
    frame = pd.DataFrame({"name": ["a", "b"], "count": [1, 2]})
    out.table(tables.table(frame, "Two rows."), "rows")
    shown = out.figure(plots.bars(frame), "bars", caption="Two bars.", alt="Bars of 1 and 2.", table=frame)
    folder = paths.figures() / "own" / "99_example" / "part"
    files = {path.name for path in folder.iterdir()}
    assert files == {
        *(f"rows.{suffix}" for suffix in ("tex", "md", "csv", "json")),
        *(f"bars.{suffix}" for suffix in ("pdf", "png", "svg", "csv", "json")),
    }
    assert 'alt="Bars of 1 and 2."' in shown.data
    for name in ("rows", "bars"):
        provenance = json.loads((folder / f"{name}.json").read_text("utf-8"))["provenance"]
        assert provenance["parameters"] == {"seed": 7}
        assert provenance["collections"]["mini-hol"]["fingerprint"] == c.fingerprint
        assert provenance["systems"]["minilm"]["encoder"]["revision"].startswith("1110a243")
        assert provenance["versions"] == versions() and "python" in provenance["versions"]
        assert str(paths.home()) not in json.dumps(provenance)
