"""widget: the widget of the explorer."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pandas as pd

from mirblab.analysis.searching.free_text import one_line
from mirblab.app.explorer import panes
from mirblab.app.explorer.model import MEASURES, Answer, Model, sentence
from mirblab.app.explorer.panes import STYLE
from mirblab.core.errors import MirblabError
from mirblab.core.wording import cut_long
from mirblab.data.collection import Collection
from mirblab.display.escape import format_value
from mirblab.sources.catalogue import load

_LATE = 0.3  # seconds in which a field may still send what was typed before Enter
_MOST_CHOICES = 200  # queries in the list at once
_LONGEST = 160  # characters of a query there


def build_controls(systems: Mapping[str, str]) -> SimpleNamespace:
    """Return the fields and buttons for *systems*, names and labels, and the `whole` widget with all of them."""
    import ipywidgets as w

    names = [(label, name) for name, label in systems.items()]
    controls = SimpleNamespace(
        **_query_controls(w), **_difference_controls(w, names), log=w.Output(), lists=w.HTML(),
        **{name: w.HTML() for name in ("count", "preview", "difference", "status")},
    )  # fmt: skip

    def row(*widgets: Any) -> Any:
        return w.Box(widgets, layout=w.Layout(display="flex", flex_flow="row wrap", align_items="center"))

    stepping = row(controls.first, controls.second, controls.measure, controls.previous, controls.next)
    rows = [
        w.HTML(STYLE),
        row(controls.query, controls.search),
        controls.preview,
        row(controls.find, controls.count),
        controls.choose,
        *([stepping, controls.difference] if len(names) > 1 else []),  # one system differs from no other
        controls.status,
        controls.log,
        controls.lists,
    ]
    controls.whole = w.VBox(rows)
    controls.whole.add_class("mirblab-explorer")
    return controls


def _query_controls(w: Any) -> dict[str, Any]:
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


def _difference_controls(w: Any, names: list[tuple[str, str]]) -> dict[str, Any]:
    narrow, style = w.Layout(width="auto", max_width="15em"), {"description_width": "initial"}
    first, second = names[0][1], names[min(1, len(names) - 1)][1]
    button = w.Layout(width="auto")
    return {
        "first": w.Dropdown(options=names, value=first, description="Compare", style=style, layout=narrow),
        "second": w.Dropdown(options=names, value=second, description="with", style=style, layout=narrow),
        "measure": w.Dropdown(options=MEASURES, description="by", style=style, layout=narrow),
        "previous": w.Button(
            description="Previous difference", icon="arrow-left", layout=button,
            tooltip="The query before, where the two systems differ more",
        ),
        "next": w.Button(
            description="Next difference", icon="arrow-right", layout=button,
            tooltip="The next query in which the two systems differ most",
        ),
    }  # fmt: skip


def explore(collection: str | Collection, systems: Sequence[str] = ("bm25", "minilm"), *, depth: int = 10) -> Explorer:
    """Return a widget that searches a collection, or one of that name, by one to four *systems*, side by side.

    Type a query, LaTeX between dollars, or choose one of the collection's. Each list has the first *depth* documents
    with formulas, judgements, matches (terms, parts of formulas, tokens; none for dense systems) and their ranks in the
    other lists. Buttons step through the queries in which two systems differ most. Indexes and vectors are read from
    the cache, or made at the first search. Raises MirblabError for unknown or too many systems.

    >>> explore("mini-qa", ["bm25"], depth=3).answer.columns[0].hits[0].rank
    1
    """
    return Explorer(Model(load(collection), systems, depth))


class Explorer:
    """The widget: `model` answers queries, `controls` are the fields and buttons, `answer` is the current answer."""

    def __init__(self, model: Model) -> None:
        self.model, self.controls = model, build_controls(model.labels)
        self.answer: Answer | None = None
        self.order: pd.DataFrame | None = None
        self.position = -1  # in that order
        self._is_quiet, self._submitted = False, 0.0
        queries = list(zip(model.collection.query_ids, model.collection.query_texts, strict=True))
        labels = [cut_long(one_line(f"{query_id}: {text}"), _LONGEST) for query_id, text in queries]
        self._queries = list(zip(labels, map(str, model.collection.query_ids), strict=True))
        self._folded = [f"{query_id} {text}".casefold() for query_id, text in queries]
        model.tell = self._say
        self._wire()
        self.narrow("")
        if self._queries:
            self.choose(self._queries[0][1])

    def _wire(self) -> None:
        controls = self.controls
        controls.query.observe(lambda change: self._typed(), names="value")
        controls.query.on_msg(lambda _, content, __: self._enter() if content.get("event") == "submit" else None)
        controls.search.on_click(lambda _: self.search())
        controls.find.observe(lambda change: self.narrow(change["new"]), names="value")
        controls.find.on_msg(lambda _, content, __: self.next_match() if content.get("event") == "submit" else None)
        controls.choose.observe(lambda change: self.choose(change["new"]), names="value")
        for control in (controls.first, controls.second, controls.measure):
            control.observe(lambda change: self._forget(), names="value")
        controls.previous.on_click(lambda _: self.step(-1))
        controls.next.on_click(lambda _: self.step(1))

    def search(self) -> None:
        """Answer the typed query."""
        self._guarded(lambda: self._show(self.controls.query.value, ""))

    def choose(self, query_id: str | None) -> None:
        """Answer a query of the collection."""
        if query_id is not None and not self._is_quiet:
            self._guarded(lambda: self._show("", query_id))

    def narrow(self, words: str) -> None:
        """Offer the queries that have all *words*, in id or text."""
        wanted, pairs = words.casefold().split(), zip(self._queries, self._folded, strict=True)
        matches = [query for query, folded in pairs if all(word in folded for word in wanted)]
        with self._quietly():
            self.controls.choose.options = matches[:_MOST_CHOICES]
            self.controls.choose.value = None
        shown = f", the first {_MOST_CHOICES} are listed" if len(matches) > _MOST_CHOICES else ""
        self.controls.count.value = panes.status(f"{len(matches):,} of {len(self._queries):,} queries{shown}.")

    def next_match(self) -> None:
        """Answer the first of the listed queries, or the one after the current query (Enter in the field Find)."""
        listed = [query_id for _, query_id in self.controls.choose.options]
        shown = self.answer.query_id if self.answer else ""
        position = listed.index(shown) + 1 if shown in listed else 0
        self.choose(listed[position % len(listed)] if listed else None)

    def step(self, by: int) -> None:
        """Answer the query *by* steps further in the order of the two chosen systems' differences."""
        self._guarded(lambda: self._step(by))

    def _step(self, by: int) -> None:
        controls = self.controls
        first, second, measure = controls.first.value, controls.second.value, controls.measure.value
        if first == second:
            raise MirblabError(f"'{first}' does not differ from itself; choose two systems")
        if self.order is None:
            self.order = self.model.differences(first, second, measure)
        self.position = min(max(self.position + by, 0), len(self.order) - 1)
        row, labels = self.order.iloc[self.position], self.model.labels
        self._show("", str(row.query_id))
        controls.difference.value = panes.status(
            f"Query {self.position + 1:,} of {len(self.order):,} by difference: {measure} is {row.one:.3f} for "
            f"{labels[first]}, {row.other:.3f} for {labels[second]}, "
            f"difference {format_value(row.difference, how='+.3f')}."
        )

    def _forget(self) -> None:
        self.order, self.position = None, -1
        self.controls.difference.value = panes.status("")

    def _show(self, text: str, query_id: str) -> None:
        started = time.perf_counter()
        self._say("Searching …")
        self.answer = self.model.ask(text, query_id)
        with self._quietly():
            self.controls.query.value = one_line(self.answer.text)
            listed = [value for _, value in self.controls.choose.options]
            self.controls.choose.value = self.answer.query_id if self.answer.query_id in listed else None
        self.controls.preview.value = panes.preview(self.answer.text)
        self.controls.lists.value = panes.lists(self.answer)
        self._say(f"Answered in {time.perf_counter() - started:.2f} s.")

    def _typed(self) -> None:
        if self._is_quiet:
            return
        # What was typed just before Enter may arrive after it.
        if time.monotonic() - self._submitted < _LATE:
            self._enter()
        else:
            self._guarded(self._preview)

    def _preview(self) -> None:
        self.controls.preview.value = panes.preview(self.controls.query.value)

    def _enter(self) -> None:
        self.search()
        self._submitted = time.monotonic()

    def _guarded(self, action: Callable[[], Any]) -> None:
        with self.controls.log:
            try:
                action()
            except Exception as error:  # the widget must go on, and a traceback would vanish in a log
                self._say(sentence(error), is_problem=True)
        self.controls.log.outputs = ()

    @contextmanager
    def _quietly(self) -> Iterator[None]:
        before, self._is_quiet = self._is_quiet, True
        try:
            yield
        finally:
            self._is_quiet = before

    def _say(self, text: str, is_problem: bool = False) -> None:
        self.controls.status.value = panes.status(text, is_problem)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        bundle = dict(self.controls.whole._repr_mimebundle_() or {}) | {"text/plain": repr(self)}
        return bundle | ({"text/html": panes.static(self.answer)} if self.answer else {})

    def __repr__(self) -> str:
        head = f"Explorer of {self.model.collection.name}: {', '.join(self.model.systems)}"
        return f"{head}\n{panes.plain(self.answer)}" if self.answer else head
