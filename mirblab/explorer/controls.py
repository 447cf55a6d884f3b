"""controls: the fields, buttons and panes of the explorer, and how they are laid out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mirblab.explorer.model import MEASURES
from mirblab.explorer.panes import STYLE


@dataclass(frozen=True)
class Controls:
    """The parts of the widget `whole`, by what they are for."""

    query: Any
    search: Any
    find: Any
    choose: Any
    count: Any
    preview: Any
    one: Any
    other: Any
    measure: Any
    back: Any
    on: Any
    step: Any
    status: Any
    log: Any
    lists: Any
    whole: Any

    @classmethod
    def build(cls, systems: Mapping[str, str]) -> Controls:
        """Return the parts for *systems*, names and labels; without a second one nothing can differ."""
        import ipywidgets as w

        names = [(label, name) for name, label in systems.items()]
        parts = _asking(w) | _stepping(w, names) | {name: w.HTML() for name in ("count", "preview", "step", "status")}
        parts |= {"log": w.Output(), "lists": w.HTML()}
        across = w.Layout(display="flex", flex_flow="row wrap", align_items="center")
        stepping = [w.Box([parts[name] for name in ("one", "other", "measure", "back", "on")], layout=across)]
        rows = [
            w.HTML(STYLE), w.Box([parts["query"], parts["search"]], layout=across), parts["preview"],
            w.Box([parts["find"], parts["count"]], layout=across), parts["choose"],
            *([*stepping, parts["step"]] if len(names) > 1 else []), parts["status"], parts["log"], parts["lists"],
        ]  # fmt: skip
        whole = w.VBox(rows)
        whole.add_class("mirblab-explorer")
        return cls(**parts, whole=whole)


def _asking(w: Any) -> dict[str, Any]:
    """Return what a query is typed into or chosen by."""
    wide = {"description_width": "4.5em"}
    return {
        "query": w.Text(
            description="Query", placeholder=r"words, and formulas as $\frac{a}{b}$; Enter searches", style=wide,
            tooltip="Type a query; Enter searches", continuous_update=True, layout=w.Layout(flex="1 1 20em"),
        ),
        "search": w.Button(
            description="Search", tooltip="Search for what is typed", button_style="primary", icon="search",
        ),
        "find": w.Text(
            description="Find", placeholder="words of a query; Enter chooses", style=wide,
            layout=w.Layout(flex="0 1 24em"),
            tooltip="Shows the queries that have these words; Enter chooses the first, Enter again the next",
        ),
        "choose": w.Select(
            description="Queries", rows=4, style=wide, layout=w.Layout(width="auto"),
            # JupyterLab takes the arrow keys, and letters, from a list for itself, so keys choose in the field above.
            tabbable=False, tooltip="The collection's queries; a click chooses one, by keys Enter in the field Find",
        ),
    }  # fmt: skip


def _stepping(w: Any, names: list[tuple[str, str]]) -> dict[str, Any]:
    """Return what steps through the queries in which two systems differ."""
    narrow, own = w.Layout(width="auto", max_width="15em"), {"description_width": "initial"}
    first, second = names[0][1], names[min(1, len(names) - 1)][1]
    button = w.Layout(width="auto")
    return {
        "one": w.Dropdown(options=names, value=first, description="Compare", style=own, layout=narrow),
        "other": w.Dropdown(options=names, value=second, description="with", style=own, layout=narrow),
        "measure": w.Dropdown(options=MEASURES, description="by", style=own, layout=narrow),
        "back": w.Button(
            description="Previous difference", icon="arrow-left", layout=button,
            tooltip="The query before, where the two systems differ more",
        ),
        "on": w.Button(
            description="Next difference", icon="arrow-right", layout=button,
            tooltip="The next query in which the two systems differ most",
        ),
    }  # fmt: skip
