"""widget: the widget of the explorer."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pandas as pd

from mirblab.app.explorer import panes
from mirblab.app.explorer.model import MEASURES, Answer, Model, one_line, sentence
from mirblab.app.explorer.panes import STYLE
from mirblab.core.errors import MirblabError
from mirblab.data.collection import Collection
from mirblab.display.escape import format_value


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


_LATE = 0.3  # seconds in which a field may still send what was typed before Enter
_MOST_CHOICES = 200  # queries in the list at once
_LONGEST = 160  # characters of a query there


def explore(collection: Collection, systems: Sequence[str] = ("bm25", "minilm"), *, depth: int = 10) -> Explorer:
    """Return a widget that searches a collection by one to four *systems* and shows their lists side by side.

    Type a query, LaTeX between dollars, or choose one of the collection's; each list has the first *depth* documents
    with formulas rendered, what was judged, what matched (terms, parts of formulas, tokens; dense systems do not say)
    and where the document stands in the other lists. Buttons step through the queries in which two systems differ
    most. Nothing comes from a network. Indexes and vectors are made at the first search, read from the cache where they
    are there, and kept. Raises MirblabError for unknown or too many systems.

    >>> from mirblab.sources.catalogue import load
    >>> explore(load("mini-qa"), ["bm25"], depth=3).answer.columns[0].hits[0].rank
    1
    """
    return Explorer(Model(collection, systems, depth))


class Explorer:
    """The widget: `model` answers, `controls` are the fields and buttons, `answer` is what is shown."""

    def __init__(self, model: Model) -> None:
        """Build the widget and answer the collection's first query."""
        self.model, self.controls = model, Controls.build(model.labels)
        self.answer: Answer | None = None
        self.order: pd.DataFrame | None = None
        self.place = -1
        self._is_quiet, self._submitted = False, 0.0
        queries = list(zip(model.collection.query_ids, model.collection.query_texts, strict=True))
        self._queries = [(_label(query_id, text), str(query_id)) for query_id, text in queries]
        self._folded = [f"{query_id} {text}".casefold() for query_id, text in queries]
        model.tell = lambda text: self._say(text)
        self._wire()
        self.narrow("")
        if self._queries:
            self.choose(self._queries[0][1])

    def _wire(self) -> None:
        """Connect every field and button with what it does."""
        parts = self.controls
        parts.query.observe(lambda change: self._typed(), names="value")
        parts.query.on_msg(lambda _, content, __: self._enter() if content.get("event") == "submit" else None)
        parts.search.on_click(lambda _: self.search())
        parts.find.observe(lambda change: self.narrow(change["new"]), names="value")
        parts.find.on_msg(lambda _, content, __: self.next_match() if content.get("event") == "submit" else None)
        parts.choose.observe(lambda change: self.choose(change["new"]), names="value")
        for one in (parts.one, parts.other, parts.measure):
            one.observe(lambda change: self._forget(), names="value")
        parts.back.on_click(lambda _: self.step(-1))
        parts.on.on_click(lambda _: self.step(1))

    def search(self) -> None:
        """Answer what is typed."""
        self._guarded(lambda: self._show(self.controls.query.value, ""))

    def choose(self, query_id: str | None) -> None:
        """Answer a query of the collection."""
        if query_id is not None and not self._is_quiet:
            self._guarded(lambda: self._show("", query_id))

    def narrow(self, words: str) -> None:
        """Offer the queries that have all *words*, in id or text."""
        wanted = words.casefold().split()
        found = [query for query, low in zip(self._queries, self._folded, strict=True) if all(w in low for w in wanted)]
        with self._quietly():
            self.controls.choose.options = found[:_MOST_CHOICES]
            self.controls.choose.value = None
        shown = f", the first {_MOST_CHOICES} are listed" if len(found) > _MOST_CHOICES else ""
        self.controls.count.value = panes.said(f"{len(found):,} of {len(self._queries):,} queries{shown}.")

    def next_match(self) -> None:
        """Answer the first of the listed queries, or the one after that which is shown: Enter in the field above."""
        listed = [query_id for _, query_id in self.controls.choose.options]
        shown = self.answer.query_id if self.answer else ""
        place = listed.index(shown) + 1 if shown in listed else 0
        self.choose(listed[place % len(listed)] if listed else None)

    def step(self, by: int) -> None:
        """Answer the next query, or that before, in the order of how much the two chosen systems differ."""
        self._guarded(lambda: self._step(by))

    def _step(self, by: int) -> None:
        one, other, measure = (part.value for part in (self.controls.one, self.controls.other, self.controls.measure))
        if one == other:
            raise MirblabError(f"'{one}' does not differ from itself; choose two systems")
        if self.order is None:
            self.order = self.model.differences(one, other, measure)
        self.place = min(max(self.place + by, 0), len(self.order) - 1)
        row = self.order.iloc[self.place]
        self._show("", str(row.query_id))
        first, second = self.model.labels[one], self.model.labels[other]
        self.controls.step.value = panes.said(
            f"Query {self.place + 1:,} of {len(self.order):,} by difference: {measure} is {row.one:.3f} for {first}, "
            f"{row.other:.3f} for {second}, difference {format_value(row.difference, how='+.3f')}."
        )

    def _forget(self) -> None:
        self.order, self.place = None, -1
        self.controls.step.value = panes.said("")

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
        # What was typed just before Enter may come after it.
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
        """Do something; what goes wrong becomes a sentence, and progress bars appear below it while it lasts."""
        with self.controls.log:
            try:
                action()
            except Exception as error:  # the widget must live on, and a traceback would vanish in a log
                self._say(sentence(error), is_problem=True)
        self.controls.log.outputs = ()

    @contextmanager
    def _quietly(self) -> Iterator[None]:
        """Change fields without answering to it."""
        was, self._is_quiet = self._is_quiet, True
        try:
            yield
        finally:
            self._is_quiet = was

    def _say(self, text: str, is_problem: bool = False) -> None:
        self.controls.status.value = panes.said(text, is_problem)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        """Return the widget, and what it shows now for where there are no widgets."""
        found = dict(self.controls.whole._repr_mimebundle_() or {})
        kept = {"text/plain": repr(self)}
        return found | kept | ({"text/html": panes.static(self.answer)} if self.answer else {})

    def __repr__(self) -> str:
        """Return the collection, the systems, and what they found, as text."""
        head = f"Explorer of {self.model.collection.name}: {', '.join(self.model.systems)}"
        return f"{head}\n{panes.plain(self.answer)}" if self.answer else head


def _label(query_id: str, text: str) -> str:
    """Return how a query is offered: its id and the beginning of its text."""
    line = one_line(f"{query_id}: {text}")
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]} …"
