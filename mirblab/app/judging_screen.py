"""judging_screen: documents judged by keyboard, in a notebook or in a terminal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from types import SimpleNamespace
from typing import Any

import pandas as pd
import typer

from mirblab.analysis.judging import Judging, judge_name, pool_documents, pooled_runs
from mirblab.app.explorer import panes
from mirblab.core.errors import MirblabError, check_positive
from mirblab.core.terminal import say
from mirblab.data.collection import Collection
from mirblab.display.grades import grade_meaning
from mirblab.display.text import text_html
from mirblab.retrieval.systems import System
from mirblab.sources import catalogue

_HELP = "Keys, after a click here: a grade judges, the arrows left and right move, u takes the last judgement back."
# Buttons answer to keys; JupyterLab would take letters and arrows for itself.
_KEYS = """
const attach = left => {
  const box = element.closest('.mirblab-judging');
  if (!box) { if (left) setTimeout(attach, 20, left - 1); return; }
  box.tabIndex = 0;
  box.setAttribute('data-lm-suppress-shortcuts', 'true');
  box.addEventListener('keydown', event => {
    const button = box.querySelector('.mirblab-key-' + CSS.escape(event.key));
    if (!button || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    event.stopPropagation();
    button.click();
    box.focus({preventScroll: true});
  });
};
attach(500);
"""
# A key that is pressed before the script has run would be lost, so the widget cannot be clicked until then; where no
# script runs, it is shown after two seconds all the same.
_STYLE = """<style>
@keyframes mirblab-no-keys { from, to { visibility: hidden } }
.mirblab-judging:not([tabindex]) { animation: mirblab-no-keys 2s }
</style>"""


def judge(
    runs: str | System | pd.DataFrame | Sequence[str | System | pd.DataFrame],
    collection: str | Collection,
    depth: int = 10,
    *,
    judge: str = "",
    disputed: int = 0,
    seed: int = 0,
    rejudge: bool = False,
) -> JudgingWidget:
    """Return the first *depth* documents of several runs, to be judged by one person without system and rank.

    *runs* are runs, systems or names of systems. *judge* is the person's name (default: the user's). Documents are in
    random order by *seed*, query by query; those that the collection has judgements of are left out unless *rejudge*.
    With *disputed* (0: all) there are at most so many, those on which the runs disagree most: which, if relevant, would
    change the differences of the runs' DCG@*depth* most. Judgements are stored as they are made, and the same call goes
    on where it was. MirblabError for an unknown system, a run of other documents, a depth below 1, *disputed* with one
    run, and a name that cannot name a file.

    >>> judging = judge(["bm25", "bm25-mirb"], "mini-qa", depth=3, judge="anna")
    >>> judging.pool.columns.tolist(), judging.grades
    (['query_id', 'doc_id'], [0, 1, 2, 3])
    """
    check_positive(depth=depth)
    loaded = catalogue.load_with_queries(collection)
    found = pooled_runs(runs, loaded)
    pool = pool_documents(found, loaded, depth, disputed=disputed, seed=seed, rejudge=rejudge)
    return JudgingWidget(loaded, found, judge_name(judge), pool, depth)


class JudgingWidget(Judging):
    """A `Judging` that a notebook shows as a widget; `controls` are its buttons and what it shows."""

    @cached_property
    def controls(self) -> SimpleNamespace:
        """Return the buttons, what they show, and the `whole` widget with all of them."""
        import ipywidgets as w

        script = {"output_type": "display_data", "metadata": {}, "data": {"application/javascript": _KEYS}}
        controls = SimpleNamespace(
            text=w.HTML(), status=w.HTML(), keys=w.Output(outputs=(script,)),
            grades={grade: w.Button(description=str(grade), tooltip=grade_meaning(self.original, grade),
                                    button_style="primary", layout=w.Layout(width="4em")) for grade in self.grades},
            previous=w.Button(icon="arrow-left", tooltip="The document before", layout=w.Layout(width="4em")),
            next=w.Button(icon="arrow-right", tooltip="The next document", layout=w.Layout(width="4em")),
            undo=w.Button(description="Undo", tooltip="Take the last judgement back", layout=w.Layout(width="5em")),
        )  # fmt: skip
        for grade, button in controls.grades.items():
            self._wire(button, str(grade), partial(self.grade, grade))
        self._wire(controls.previous, "ArrowLeft", partial(self.move, -1))
        self._wire(controls.next, "ArrowRight", partial(self.move, 1))
        self._wire(controls.undo, "u", self.undo)
        buttons = w.HBox([controls.previous, *controls.grades.values(), controls.next, controls.undo])
        controls.whole = w.VBox([w.HTML(panes.STYLE + _STYLE), controls.status, controls.text, buttons, controls.keys])
        controls.whole.add_class("mirblab-explorer").add_class("mirblab-judging")
        return controls

    def _wire(self, button: Any, key: str, action: Callable[[], object]) -> None:
        button.add_class(f"mirblab-key-{key}")
        button.on_click(lambda _: self._do(action))

    def _do(self, action: Callable[[], object]) -> None:
        problem = ""
        try:
            action()
        except (MirblabError, OSError) as error:  # the widget must go on, and a traceback would vanish in a log
            problem = str(error)
        self._show(problem)

    def _show(self, problem: str = "") -> None:
        self.controls.text.value = self._text_html()
        self.controls.status.value = panes.status(problem or self._progress(), is_problem=bool(problem))
        own = self.relevance_of(*self.shown) if self.shown else None
        for grade, button in self.controls.grades.items():
            button.button_style = "success" if grade == own else "primary"

    def _progress(self) -> str:
        if not len(self.pool):
            return "There is no document to judge: the collection has judgements of all that were pooled."
        counts = f"{self.n_judged:,} of {len(self.pool):,} documents judged by {self.judge}"
        if self.n_judged == len(self.pool):
            return f"{counts}: all. Its methods changes() and agreement() show what follows."
        return f"{counts}; this is number {self.position + 1:,}. {_HELP}"

    def _text_html(self) -> str:
        if self.shown is None:
            return ""
        query_id, doc_id = self.shown
        document = text_html(self.original.document(doc_id)) or "(empty text)"
        return f'{panes.preview(self.original.query(query_id))}<hr><div class="mirblab-text">{document}</div>'

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        self._show()
        static = f'{panes.STYLE}<div class="mirblab-explorer">{panes.status(self._progress())}{self._text_html()}</div>'
        return {**(self.controls.whole._repr_mimebundle_() or {}), "text/plain": repr(self), "text/html": static}


def judge_in_terminal(judging: Judging) -> None:
    """Ask for the grade of one document after the other, until all are judged, or q or the end of the input."""
    grades = {str(grade): grade for grade in judging.grades}
    for name, grade in grades.items():
        if meaning := grade_meaning(judging.original, grade):
            say(f"{name}: {meaning}")
    question = f"{', '.join(grades)}, u to undo, n or b for the next or the one before, q to stop"
    query_id = ""
    while judging.shown and judging.n_judged < len(judging.pool):
        if judging.shown[0] != query_id:
            query_id = judging.shown[0]
            say(f"\n=== Query\n{judging.original.query(query_id)}")
        counts = f"{judging.n_judged:,} of {len(judging.pool):,} judged"
        say(f"\n--- Document {judging.position + 1:,} ({counts})\n{judging.original.document(judging.shown[1])}\n")
        try:
            answer = typer.prompt(question, prompt_suffix=": ").strip().lower()
        except typer.Abort:
            answer = "q"
        if answer == "q":
            break
        if answer in grades:
            judging.grade(grades[answer])
        elif answer in ("n", "b"):
            judging.move(1 if answer == "n" else -1)
        elif answer != "u":
            say(f"'{answer}' is no grade; give one of {question}")
        elif not judging.undo():
            say("there is nothing to undo in this session")
    say(f"\n{judging.n_judged:,} of {len(judging.pool):,} documents judged, in {judging.path}")
