"""notes: a short framed text, as HTML that follows the theme and as plain text."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass

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

    The heading says what the colour says. All is escaped; what stands between backticks shows as code, between
    dollars as a formula. *choices* are hidden while a widget stands below: they are for pages where none runs.
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
    from mirblab.prose import html_of

    return html_of(text)


def show(thing: object) -> None:
    """Show *thing* in the notebook; without one, print its text."""
    from IPython.display import display

    display(thing)


def cell() -> int:
    """Return the number of the cell that runs, 0 outside a notebook."""
    from IPython import get_ipython

    shell = get_ipython()
    return shell.execution_count if shell is not None else 0
