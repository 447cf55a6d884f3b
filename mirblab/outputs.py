"""outputs: where a notebook's tables and figures go, each with its provenance."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from mirblab import by_hand, imported, paths, plots, results, tables
from mirblab.collection import Collection
from mirblab.figures import figure_of
from mirblab.making import commit, models_in, versions
from mirblab.parameters import SUITE_RUN, current, is_notebook
from mirblab.systems import System


@dataclass
class Outputs:
    """The folder for a notebook's tables and figures, and what everything in it was made from.

    *by_hand* is what the notebook was asked for when no batch runs it, None in a batch; it is put on record with the
    first thing that is saved.
    `others` says who made the systems that were not made here: in everything that is saved their names bear a mark,
    and a note says whose they are.
    """

    folder: Path
    provenance: dict[str, Any] = field(default_factory=dict)
    by_hand: dict[str, Any] | None = None
    others: Mapping[str, str] = field(default_factory=dict)

    def figure(self, axes: Any, name: str, *, caption: str, alt: str, table: pd.DataFrame | None = None) -> Any:
        """Save a figure as PDF, PNG and SVG with its numbers and provenance, and return it for display."""
        self._begin()
        if self.others:
            caption, alt = imported.sign_figure(figure_of(axes), caption, alt, self.others)
        return plots.save_figure(
            axes, self.folder, name, provenance=self.provenance, caption=caption, alt=alt, table=table
        )

    def table(self, table: tables.Table, name: str) -> tables.Table:
        """Save a table as TeX, Markdown and CSV with its provenance, and return it for display."""
        self._begin()
        table = imported.sign_table(table, self.others)
        table.save(self.folder, name, self.provenance)
        return table

    def _begin(self) -> None:
        if self.by_hand is not None:
            by_hand.put_on_record(self.folder, self.provenance["notebook"], self.by_hand)
            self.by_hand = None


def output(
    notebook: str,
    suite: str,
    part: str = "",
    *,
    collections: Sequence[Collection] = (),
    systems: Sequence[System] = (),
    runs: Sequence[pd.DataFrame] = (),
    **parameters: Any,
) -> Outputs:
    """Return where the tables and figures of *notebook* land, with provenance filled in.

    In a batch that is `figures/<suite>/<notebook>/`, and *part* below it for a notebook that the suite runs several
    times. Everywhere else, in the lab, under papermill and in a script, it is a folder of its own below
    `figures/_by_hand/`, named after what the notebook was asked for, so that no suite's files are replaced; it is
    printed in a notebook, and `mirblab figures` lists it. Raises MirblabError as `check_parameters` does.

    *runs* are those that the notebook shows and that none of *systems* made, as from `read_run`; they are marked, as
    imported systems are.

    Provenance holds the parameters, the collections' fingerprints and revisions, the systems' settings
    (model revisions among them), the git commit and the versions of the libraries.

    >>> output("10_collections", "mini", depth=10).provenance["parameters"]
    {'depth': 10}
    """
    provenance = {
        "notebook": notebook,
        "suite": suite,
        "parameters": parameters,
        "collections": {
            found.name: {"fingerprint": found.fingerprint, "split": found.split, "revision": found.card.revision}
            for found in collections
        },
        "systems": {found.name: found.key for found in systems},
        "models": models_in(parameters),
        "commit": commit(),
        "versions": versions(),
    }
    if runs:
        provenance["runs"] = [run.attrs for run in runs]
    others = _others(collections, systems, runs)
    defaults, given = current()
    if os.environ.get(SUITE_RUN) == json.dumps([suite, notebook, part]):
        return Outputs(paths.figures() / suite / notebook / part, provenance, others=others)
    names = {"collections": list(provenance["collections"]), "systems": list(provenance["systems"])}
    names |= {"runs": [str(run.attrs.get("system")) for run in runs]} if runs else {}
    asked = defaults | given or {"suite": suite, "part": part, **names, **parameters}
    asked = json.loads(json.dumps(asked, default=str))  # as its record will say it
    folder = by_hand.folder_of(notebook, asked, by_hand.defaults_of(notebook) or defaults)
    if is_notebook():
        print(f"Tables and figures of this run: {folder} (listed by: mirblab figures)")
    return Outputs(folder, provenance, asked, others)


def _others(
    collections: Sequence[Collection], systems: Sequence[System], runs: Sequence[pd.DataFrame]
) -> dict[str, str]:
    """Return who made the systems and the runs that were not made here, and what was left out of them, by name."""
    said = {str(run.attrs.get("system")): [run.attrs["origin"], run.attrs.get("remainder")]
            for run in runs if run.attrs.get("origin")}  # fmt: skip
    for one in systems:
        if one.origin:
            records = results.runs(one.name)
            cut = [results.remainder(record.n_rows, record.n_unknown, name) for name, record in records.items()
                   if record.n_unknown and name in {found.name for found in collections}]  # fmt: skip
            said[one.name] = [one.origin, *cut]
    return {name: "; ".join(str(text) for text in parts if text) for name, parts in said.items()}
