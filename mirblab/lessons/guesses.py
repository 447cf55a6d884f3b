"""guesses: ask for a guess before an experiment and compare it with the result."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mirblab.core.errors import MirblabError, unknown

# JupyterLab's own colours, so that light and dark themes both read well; after each comma what other pages get.
_FRAMES = {
    "right": "var(--jp-success-color1, #2e7d32)",
    "wrong": "var(--jp-warn-color1, #b75301)",
    "empty": "var(--jp-layout-color4, #767676)",
    "guess": "var(--jp-brand-color1, #1565c0)",
}
_HIDING = (
    "<style>.jp-OutputArea-child:has(+ .jp-OutputArea-child :is(.widget-radio, .widget-box)) .mirblab-choices"
    "{display:none}</style>"
)
_CODE = re.compile(r"`([^`\n]+)`")


@dataclass(frozen=True)
class Note:
    """A *heading* and a *text* in a frame of one *kind*: right, wrong, empty or guess.

    The heading gives the same information as the colour. All text is escaped; text between backticks is shown as
    code, and text between dollars as a formula. *choices* are hidden while a widget is shown below: they are for pages
    on which no widget runs.
    """

    kind: str
    heading: str
    text: str = ""
    choices: str = ""

    def __repr__(self) -> str:
        return f"{self.heading} {self.text}".strip()

    def _repr_html_(self) -> str:
        style = (
            f"border-left: 4px solid {_FRAMES[self.kind]}; padding: 0.4em 0.8em; margin: 0.4em 0; max-width: 50em; "
            "background: var(--jp-layout-color2, transparent); color: var(--jp-ui-font-color1, inherit)"
        )
        text = f" {_inline(self.text)}" if self.text else ""
        return (
            f'<div role="status" aria-live="polite" class="tex2jax_ignore mathjax_ignore" style="{style}">'
            f"<strong>{_inline(self.heading)}</strong>{text}{self._choices()}</div>"
        )

    def _choices(self) -> str:
        return f'{_HIDING}<div class="mirblab-choices">{_inline(self.choices)}</div>' if self.choices else ""


def _inline(text: str) -> str:
    """Return *text* as HTML: code between backticks, formulas between dollars as MathML, all else escaped."""
    parts = _CODE.split(text)
    return "".join(
        f"<code>{html.escape(part)}</code>" if place % 2 else _prose(part) for place, part in enumerate(parts)
    )


def _prose(text: str) -> str:
    if "$" not in text:
        return html.escape(text)
    from mirblab.display.text import text_html

    return text_html(text)


def show_output(thing: object) -> None:
    """Show *thing* in the notebook; outside a notebook, print its text."""
    from IPython.display import display

    display(thing)


def running_cell() -> int:
    """Return the execution count of the running cell, 0 outside a notebook."""
    from IPython import get_ipython

    shell = get_ipython()
    return shell.execution_count if shell is not None else 0


_NOTHING = "nothing chosen yet"


def guess(question: str, choices: Sequence[str] | tuple[float, float]) -> Guess:
    """Show and return a *question* with radio buttons for *choices*, or with a slider between two numbers.

    Nothing is chosen at first, also in Run All. Two whole numbers give a slider of whole numbers.

    >>> mine = guess("How many of three?", (0, 3))
    Your guess: How many of three? (from 0 to 3)
    >>> mine.compare(2)
    You did not guess; it is 2.
    """
    made = Guess(question, choices)
    made.show()
    return made


class Guess:
    """A *question*, its *choices*, and what was chosen."""

    def __init__(self, question: str, choices: Sequence[str] | tuple[float, float]) -> None:
        self.question, self.choices = question, choices
        self.is_range = len(choices) == 2 and not any(isinstance(choice, str) for choice in choices)
        if isinstance(choices, str) or len(choices) < 2 or (self.is_range and not choices[0] < choices[1]):
            raise MirblabError(
                f"a guess needs two or more choices, or a lowest and a highest number; found {choices!r}"
            )
        self.cell = running_cell()
        self.input, self.chosen = None, None

    def show(self) -> None:
        """Show the question and the widget for the answer; outside a notebook, print both as one line of text."""
        if not running_cell():
            return print(f"Your guess: {self.question} ({self._said()})")
        self.input = self.input or self._widget()
        show_output(Note("guess", "Your guess:", self.question, self._said()))
        show_output(self.input)

    def compare(self, actual: str | float) -> Note:
        """Return a note that compares the guess with the *actual* answer; MirblabError if that is no choice."""
        if not self.is_range and str(actual) not in self.choices:
            raise unknown("choice", str(actual), list(map(str, self.choices)))
        truth = self._written(actual)
        if self.chosen is None:
            return Note("guess", f"You did not guess; it is {truth}.")
        mine = self._written(self.chosen)
        if mine == truth:
            return Note("right", f"✓ You guessed it: {truth}.")
        return Note("guess", f"You guessed {mine}; it is {truth}.", self._distance(actual))

    def _written(self, answer: str | float) -> str:
        return _number(answer, self.choices) if self.is_range else f"“{answer}”"

    def _distance(self, actual: str | float) -> str:
        if not self.is_range:
            return ""
        lowest, highest = self.choices
        far = (self.chosen - float(actual)) / (highest - lowest)
        if abs(far) <= 0.05:
            return "That is close."
        return "Your guess was too high." if far > 0 else "Your guess was too low."

    def _said(self) -> str:
        if self.is_range:
            return f"from {self.choices[0]:g} to {self.choices[1]:g}"
        return " / ".join(map(str, self.choices))

    def _widget(self) -> Any:
        return self._slider() if self.is_range else self._buttons()

    def _buttons(self) -> Any:
        import ipywidgets

        buttons = ipywidgets.RadioButtons(options=list(self.choices), index=None, layout={"width": "auto"})
        buttons.observe(lambda change: self._choose(change["new"]), "value")
        return buttons

    def _slider(self) -> Any:
        import ipywidgets

        lowest, highest = self.choices
        is_whole = all(isinstance(end, int) for end in self.choices)
        kind = ipywidgets.IntSlider if is_whole else ipywidgets.FloatSlider
        step = 1 if is_whole else (highest - lowest) / 100
        slider = kind(value=lowest, min=lowest, max=highest, step=step, readout=False, layout={"width": "24em"})
        ends = [ipywidgets.Label(f"{end:g}") for end in self.choices]
        shown = ipywidgets.Label(_NOTHING)

        def choose(change: dict[str, Any]) -> None:
            self._choose(change["new"])
            shown.value = f"your guess: {_number(change['new'], self.choices)}"

        slider.observe(choose, "value")
        return ipywidgets.HBox([ends[0], slider, ends[1], shown])

    def _choose(self, value: Any) -> None:
        self.chosen = value

    def _ipython_display_(self) -> None:
        # `guess` has already shown the question, whether or not it is the last line of its cell.
        if running_cell() != self.cell:
            self.show()


def _number(value: str | float, choices: Sequence[Any]) -> str:
    """Return a number as text: without decimals if it and its range are whole, else with three digits."""
    if all(isinstance(end, int) for end in choices) and float(value) == int(float(value)):
        return f"{int(float(value)):,}"
    return f"{float(value):.3g}"
