"""escape: text, numbers and cells for LaTeX, Markdown and HTML."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

_LATEX = {char: "\\" + char for char in "_%&#${}"} | {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}",
    ">": r"\textgreater{}", "|": r"\textbar{}", "−": "$-$", "–": "--", "†": r"$\dagger$", "‡": r"$\ddagger$",
    "×": r"$\times$", "≤": r"$\leq$", "≥": r"$\geq$",
}  # fmt: skip
_MATHS = re.compile(r"(?<!\\)(\$(?:\\.|[^$\\])+\$)")


class Cell(NamedTuple):
    """One cell: its text, "best" or "second" or "", a sign such as "†", what stands beside it, and if it has maths."""

    text: str
    mark: str = ""
    sign: str = ""
    beside: str = ""
    is_maths: bool = False


def latex(text: str, is_maths: bool = False) -> str:
    r"""Return *text* with LaTeX's special characters escaped; with *is_maths*, `$…$` stays as it is.

    >>> print(latex("50% of x_1 & $y"), latex("let $x_1$ & y", is_maths=True))
    50\% of x\_1 \& \$y let $x_1$ \& y
    """
    return _outside_maths(text, is_maths, lambda part: "".join(_LATEX.get(char, char) for char in part))


def markdown(text: str, is_maths: bool = False) -> str:
    r"""Return *text* with Markdown's special characters escaped; with *is_maths*, `$…$` stays, bars become \vert.

    >>> print(markdown("a_b|c"), markdown("set $|x|$", is_maths=True))
    a\_b\|c set $\vert x\vert $
    """

    def bars(maths: str) -> str:
        return maths.replace(r"\|", r"\Vert ").replace("|", r"\vert ")

    return _outside_maths(text, is_maths, lambda part: re.sub(r"([\\`*_|<>$~\[\]&#])", r"\\\1", part), bars)


def _outside_maths(
    text: str, is_maths: bool, escape: Callable[[str], str], inside: Callable[[str], str] = lambda maths: maths
) -> str:
    text = " ".join(text.split())
    if not is_maths:
        return escape(text)
    parts = _MATHS.split(text)
    return "".join(inside(part) if n % 2 else escape(part) for n, part in enumerate(parts))


def display(value: Any, digits: int = 2, how: str = "") -> str:
    """Return one value as text: "–" for a missing one, floats rounded, thousands separated, true minus signs.

    *how* is a format specification that takes the place of *digits*.

    >>> display(1234567), display(-0.125, 2), display(float("nan")), display(True), display(0.00012, how=".1g")
    ('1,234,567', '−0.12', '–', 'yes', '0.0001')
    """
    if value is None or value is pd.NA or (isinstance(value, Real) and value != value):
        return "–"
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, Real):
        default = "," if isinstance(value, Integral) else f",.{digits}f"
        return format(value, how or default).replace("-", "−")
    return str(value)


def latex_cell(cell: Cell) -> str:
    """Return a cell for LaTeX: the best bold, the second underlined, signs raised."""
    text = latex(cell.text, cell.is_maths)
    text = {"best": rf"\textbf{{{text}}}", "second": rf"\underline{{{text}}}"}.get(cell.mark, text)
    sign = {"†": r"$^{\dagger}$", "‡": r"$^{\ddagger}$"}.get(cell.sign, latex(cell.sign))
    return text + sign + (rf" {{\footnotesize {latex(cell.beside)}}}" if cell.beside else "")


def markdown_cell(cell: Cell) -> str:
    """Return a cell for Markdown, which has no underline of its own: `<u>` stands for it."""
    text = markdown(cell.text, cell.is_maths)
    text = {"best": f"**{text}**", "second": f"<u>{text}</u>"}.get(cell.mark, text)
    return text + cell.sign + (f" {markdown(cell.beside)}" if cell.beside else "")


def plain_html(text: str, is_maths: bool = False) -> str:
    """Return *text* escaped; a `$` outside declared maths is kept from MathJax."""
    safe = html.escape(" ".join(text.split()))
    return safe if is_maths or "$" not in safe else f'<span class="tex2jax_ignore mathjax_ignore">{safe}</span>'


def html_cell(cell: Cell) -> str:
    """Return a `<td>` with marks, sign and what stands beside the number."""
    text = plain_html(cell.text, cell.is_maths)
    text = {"best": f"<b>{text}</b>", "second": f"<u>{text}</u>"}.get(cell.mark, text)
    sign = f"<sup>{plain_html(cell.sign)}</sup>" if cell.sign else ""
    beside = f" <small>{plain_html(cell.beside)}</small>" if cell.beside else ""
    return f"<td>{text}{sign}{beside}</td>"
