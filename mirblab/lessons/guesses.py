"""guesses: ask for a guess before an experiment and compare it with the result."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mirblab.core.errors import MirblabError, check_known

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

    All text is escaped, except code between backticks and formulas between dollars. *choices* are for pages without
    widgets, and hidden while a widget is shown.
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
        choices = f'{_HIDING}<div class="mirblab-choices">{_inline(self.choices)}</div>' if self.choices else ""
        return (
            f'<div role="status" aria-live="polite" class="tex2jax_ignore mathjax_ignore" style="{style}">'
            f"<strong>{_inline(self.heading)}</strong>{text}{choices}</div>"
        )


def _inline(text: str) -> str:
    def prose(part: str) -> str:
        if "$" not in part:
            return html.escape(part)
        from mirblab.display.text import text_html

        return text_html(part)

    parts = enumerate(_CODE.split(text))
    return "".join(f"<code>{html.escape(part)}</code>" if number % 2 else prose(part) for number, part in parts)


def show_output(output: object) -> None:
    """Show *output* in the notebook; outside a notebook, print its text."""
    from IPython.display import display

    display(output)


def running_cell() -> int:
    """Return the execution count of the running cell, 0 outside a notebook."""
    from IPython import get_ipython

    shell = get_ipython()
    return shell.execution_count if shell is not None else 0


def guess(question: str, choices: Sequence[str] | tuple[float, float]) -> Guess:
    """Show and return a *question* with radio buttons for *choices*, or with a slider between two numbers.

    Nothing is chosen at first, also after Run All. Two whole numbers give a slider of whole numbers.

    >>> mine = guess("How many of three?", (0, 3))
    Your guess: How many of three? (from 0 to 3)
    >>> mine.compare(2)
    You did not guess; it is 2.
    """
    new_guess = Guess(question, choices)
    new_guess.show()
    return new_guess


class Guess:
    """A *question*, its *choices*, and what was chosen."""

    def __init__(self, question: str, choices: Sequence[str] | tuple[float, float]) -> None:
        self.question = question
        self.choices: tuple[Any, ...] = tuple(choices)
        self.is_range = len(choices) == 2 and not any(isinstance(choice, str) for choice in choices)
        is_empty = self.is_range and not self.choices[0] < self.choices[1]
        if isinstance(choices, str) or len(choices) < 2 or is_empty:
            raise MirblabError(
                f"a guess needs two or more choices, or a lowest and a highest number; found {choices!r}"
            )
        self.cell = running_cell()
        self.input: Any = None
        self.chosen: Any = None

    def show(self) -> None:
        """Show the question and the widget for the answer; outside a notebook, print both as one line of text."""
        if not running_cell():
            return print(f"Your guess: {self.question} ({self._choices_text()})")
        self.input = self.input or self._widget()
        show_output(Note("guess", "Your guess:", self.question, self._choices_text()))
        show_output(self.input)

    def compare(self, actual: str | float) -> Note:
        """Return a note that compares the guess with the *actual* answer; MirblabError if that is no choice."""
        if not self.is_range:
            check_known("choice", str(actual), map(str, self.choices))
        truth = self._text(actual)
        if self.chosen is None:
            return Note("guess", f"You did not guess; it is {truth}.")
        mine, distance = self._text(self.chosen), ""
        if mine == truth:
            return Note("right", f"✓ You guessed it: {truth}.")
        if self.is_range:
            lowest, highest = self.choices
            share = (self.chosen - float(actual)) / (highest - lowest)
            distance = f"Your guess was too {'high' if share > 0 else 'low'}."
            distance = "That is close." if abs(share) <= 0.05 else distance
        return Note("guess", f"You guessed {mine}; it is {truth}.", distance)

    def _text(self, answer: str | float) -> str:
        if not self.is_range:
            return f"“{answer}”"
        number, is_whole = float(answer), all(isinstance(end, int) for end in self.choices)
        return f"{int(number):,}" if is_whole and number.is_integer() else f"{number:.3g}"

    def _choices_text(self) -> str:
        if self.is_range:
            return f"from {self.choices[0]:g} to {self.choices[1]:g}"
        return " / ".join(map(str, self.choices))

    def _widget(self) -> Any:
        import ipywidgets

        if not self.is_range:
            buttons = ipywidgets.RadioButtons(options=list(self.choices), index=None, layout={"width": "auto"})
            buttons.observe(lambda change: setattr(self, "chosen", change["new"]), "value")
            return buttons
        lowest, highest = self.choices
        is_whole = all(isinstance(end, int) for end in self.choices)
        kind = ipywidgets.IntSlider if is_whole else ipywidgets.FloatSlider
        step = 1 if is_whole else (highest - lowest) / 100
        slider = kind(value=lowest, min=lowest, max=highest, step=step, readout=False, layout={"width": "24em"})
        ends = [ipywidgets.Label(f"{end:g}") for end in self.choices]
        shown = ipywidgets.Label("nothing chosen yet")

        def choose(change: dict[str, Any]) -> None:
            self.chosen = change["new"]
            shown.value = f"your guess: {self._text(self.chosen)}"

        slider.observe(choose, "value")
        return ipywidgets.HBox([ends[0], slider, ends[1], shown])

    def _ipython_display_(self) -> None:
        # `guess` has already shown the question, whether or not it is the last line of its cell.
        if running_cell() != self.cell:
            self.show()
