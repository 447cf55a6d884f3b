"""escape: text, numbers and cells for LaTeX, Markdown and HTML."""

from __future__ import annotations

import re
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from mirblab.prose import escaped, html_of

_LATEX = {char: "\\" + char for char in "_%&#${}"} | {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}",
    ">": r"\textgreater{}", "|": r"\textbar{}", "−": "$-$", "–": "--", "†": r"$\dagger$", "‡": r"$\ddagger$",
    "×": r"$\times$", "≤": r"$\leq$", "≥": r"$\geq$",
}  # fmt: skip
_MATHS = re.compile(r"(?<!\\)(\$(?:\\.|[^$\\])+\$)")
_MAY_BE_MATHS = re.compile(r"[$\\]")
_FORMULA_OR_DOLLAR = re.compile(r"(<(math|code)\b.*?</\2>)|\\\$", re.DOTALL)
_SIGNS = {
    r"\|": r"\Vert ", "|": r"\vert ", r"\>": r"\:", "<": r"\lt ", ">": r"\gt ", "](": "] (", "`": r"\text{‘}",
}  # fmt: skip
_SHORT = 40  # characters of a text that stands in one line
# Commands that read or write files, or change what others mean, stay text where the LaTeX is to be compiled.
_COMMANDS = re.compile(
    r"\\(?:input|include\w*|openin|openout|read|write|immediate|special|catcode|csname|[egx]?def|(?:future)?let|"
    r"(?:re|provide)?newcommand|usepackage|lstinputlisting|verbatiminput|loop|repeat|expandafter|directlua)(?![a-zA-Z])|\\^\\^"
)


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

    def escape(part: str) -> str:
        return "".join(_LATEX.get(char, char) for char in part)

    return _outside_maths(text, is_maths, escape, lambda part: escape(part) if _COMMANDS.search(part) else part)


def markdown(text: str, is_maths: bool = False) -> str:
    r"""Return *text* with Markdown's special characters escaped; with *is_maths*, `$…$` stays, but for signs of HTML.

    In it bars become \vert, angle brackets \lt and \gt, and links fall apart, for readers that do not know mathematics.

    >>> print(markdown("a_b|c"), markdown("set $|x|$", is_maths=True))
    a\_b\|c set $\vert x\vert $
    """

    return _outside_maths(text, is_maths, lambda part: re.sub(r"([\\`*_|<>$~\[\]&#])", r"\\\1", part), _no_markup)


def _no_markup(maths: str) -> str:
    for sign, name in _SIGNS.items():
        maths = maths.replace(sign, name)
    return maths


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
    if value is None or value is pd.NA or value is pd.NaT or (isinstance(value, Real) and value != value):
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
    return text + markdown(cell.sign) + (f" {markdown(cell.beside)}" if cell.beside else "")


def plain_html(text: str) -> str:
    r"""Return *text* escaped, on one line; what MathJax might take for mathematics, and follow, is kept from it.

    >>> print(plain_html("a < b"), plain_html("$5"))
    a &lt; b <span class="tex2jax_ignore mathjax_ignore">$5</span>
    """
    safe = escaped(" ".join(text.split()))
    return f'<span class="tex2jax_ignore mathjax_ignore">{safe}</span>' if _MAY_BE_MATHS.search(safe) else safe


def maths_html(text: str) -> str:
    r"""Return *text* with its formulas as MathML, and `\$` as the dollar that it stands for.

    >>> "<mi>x</mi>" in maths_html(r"\$5 for $x$"), r"\$5" in maths_html(r"\$5 for $x$")
    (True, False)
    """
    return _FORMULA_OR_DOLLAR.sub(lambda found: found[1] or "$", html_of(text))


def is_long(cell: Cell) -> bool:
    """Return whether the text of a cell takes more than a line."""
    return len(cell.text) > _SHORT


def html_cell(cell: Cell, value: str = "", is_number: bool = False) -> str:
    """Return a `<td>` with marks, sign and what stands beside the number.

    *value* is the number that the cell is sorted by ("": its text), *is_number* sets it flush right.
    """
    text = maths_html(cell.text) if cell.is_maths else plain_html(cell.text)
    text = {"best": f"<b>{text}</b>", "second": f"<u>{text}</u>"}.get(cell.mark, text)
    sign = f"<sup>{plain_html(cell.sign)}</sup>" if cell.sign else ""
    beside = f" <small>{plain_html(cell.beside)}</small>" if cell.beside else ""
    inner = f"{text}{sign}{beside}"
    if cell.is_maths or is_long(cell):
        long = " mirblab-long" if is_long(cell) else ""
        inner = f'<div class="mirblab-cell{long}">{inner}</div>'
    says = (' class="mirblab-number"' if is_number else "") + (f' data-value="{value}"' if value else "")
    return f"<td{says}>{inner}</td>"
