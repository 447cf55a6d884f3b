"""escape: texts as cells of LaTeX, Markdown and HTML."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from functools import lru_cache
from itertools import groupby
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from mirblab.display.text import escape_html, text_html
from mirblab.formula import in_text
from mirblab.formula.latex import symbols
from mirblab.formula.latex.parser import parse_latex

_MORE = r"""
− -|‐ {-}|‖ \Vert|• \bullet|· \cdot|⬝ \cdot|∫ \int|∬ \iint|∭ \iiint|∮ \oint|∯ \oint\!\!\!\!\!\int|⧸ /|⁄ /|⅟ 1/
′ {}'|″ {}''|° {}^{\circ}|ᗮ {}^{\perp}|ᘁ {}^{\ast}|⟂ \perp|⨯ \times|⊛ \circledast|⍟ \circledast|✶ \star|✝ \dagger
⁎ *|○ \bigcirc|⦃ \{\!\{|⦄ \}\!\}|⟦ [\![|⟧ ]\!]|⟪ \langle\!\langle|⟫ \rangle\!\rangle|⁅ [|⁆ ]|⦋ \underline{[}
⦌ \underline{]}|⸨ (\!(|⸩ )\!)|⟮ (|⟯ )|≔ :=|≕ =:|≼ \preccurlyeq|≽ \succcurlyeq|≦ \leqq|≧ \geqq|⩿ \leqslant
≌ \overset{\backsim}{=}|⥤ \stackrel{\rightharpoonup}{\rightharpoondown}|↥ \underline{\uparrow}|↧ \overline{\downarrow}
⤳ \rightsquigarrow|⤏ \dashrightarrow|⤞ \dashrightarrow|⇨ \Rightarrow|↿ \upharpoonleft|▸ \blacktriangleright
◃ \triangleleft|⨅ \mathop{\sqcap}|⨍ -\!\!\!\!\!\int|∆ \Delta|µ \mu|∌ \not\ni|∛ \sqrt[3]{}|⋰ \cdot^{\cdot^{\cdot}}
"""
# Commands that trees know and LaTeX with amsmath and amssymb does not.
_MISSING = frozenset(
    """
Alpha Aut Beta CC Chi Coker Complex Complexes End Epsilon Eta Ext FF Gal Hom Iota Kappa Ker Mor Mu N NN Nu Ob Omicron PP
Proj Q QQ R RR Reals Res Rho Sch Sh Spec Tau Tor Tr Z ZZ Zeta alef alefsym arccosh arccot arccsc arcsec arcsinh arctanh
argmax argmin cn cnums coker colim coloneqq csch curl dd degree diag divides dn eps eqqcolon exist grad gt id iddots im
infin integers isin lcm llbracket lt natnums naturals omicron ord qed qedsymbol rank rationals real reals rk rrbracket
sech semicolon sgn sign sn span supp thetasym tr vol weierp
""".split()
)
_LIKE_LATIN = ("ΑΒΕΖΗΙΚΜΝΟΡΤΧο", "ABEZHIKMNOPTXo")
_LETTERS = ("LATIN", "DOUBLE-STRUCK", "MATHEMATICAL DOUBLE-STRUCK")  # unchanged, or with the command of their alphabet
# A part of a character's Unicode name, and the command of that alphabet; the first match counts.
_ALPHABETS = (
    ("DOUBLE-STRUCK CAPITAL", "mathbb"), ("DOUBLE-STRUCK", "mathbf"), ("SCRIPT CAPITAL", "mathcal"),
    ("SCRIPT", "mathit"), ("FRAKTUR", "mathfrak"), ("BLACK-LETTER", "mathfrak"), ("SANS-SERIF", "mathsf"),
    ("MONOSPACE", "mathtt"), ("BOLD", "mathbf"), ("ITALIC", "mathit"),
)  # fmt: skip
_SCRIPTS = {"<super>": "^", "<sub>": "_"}
_KNOWN = frozenset("–—‘’‚“”„‹›«»¿¡§¶©£")  # to LaTeX, as is every Latin letter
_SPECIAL = frozenset(r"_%&#${}\^~<>|")  # to LaTeX
_NOT_ASCII = re.compile(r"[^\x00-\x7f]+")
_NAME = re.compile(r"\\[A-Za-z]+")
_COMMAND = re.compile(r"\\[A-Za-z]+$")

Piece = tuple[str, str]  # "" for text, "$" for mathematics, "^" and "_" for scripts; LaTeX

_LATEX = {char: "\\" + char for char in "_%&#${}"} | {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}",
    ">": r"\textgreater{}", "|": r"\textbar{}", "–": "--",
}  # fmt: skip
# What replaces a display environment within a line ("": nothing).
_IN_LINE = dict.fromkeys(("align", "flalign", "eqnarray", "multline", "split"), "aligned") | {
    "gather": "gathered", **dict.fromkeys(("equation", "displaymath", "math", "subequations"), "")
}  # fmt: skip
_DISPLAY = re.compile(rf"\\(begin|end)\s*\{{\s*({'|'.join(_IN_LINE)})\*?\s*\}}")
_SIDES = re.compile(r"\\(left|right)(?![a-zA-Z])")
_COMMENT = re.compile(r"(?<!\\)[%#]")
_ROWS = re.compile(r"(?<!\\)&|\\\\")
_INNERMOST = re.compile(r"\\begin\{.*\\end\{[^}]*\}")
_MAY_BE_MATHS = re.compile(r"[$\\]")
_FORMULA_OR_DOLLAR = re.compile(r"(<(math|code)\b.*?</\2>)|\\\$", re.DOTALL)
_SIGNS = {
    r"\|": r"\Vert ", "|": r"\vert ", r"\>": r"\:", "<": r"\lt ", ">": r"\gt ", "](": "] (", "`": r"\text{‘}",
}  # fmt: skip
_SIGN = re.compile(r"^(\+?)(?=[,.])")  # of a format specification, after which "z" lets no zero be negative
_LONGEST_LINE = 40  # characters of a text that stands in one line
# Formulas with commands that read or write files, or redefine others, stay text, since the LaTeX is to be compiled.
_COMMANDS = re.compile(
    r"\\(?:input|include\w*|openin|openout|read|write|immediate|special|catcode|csname|[egx]?def|(?:future)?let|"
    r"(?:re|provide)?newcommand|usepackage|lstinputlisting|verbatiminput|loop|repeat|expandafter|directlua)(?![a-zA-Z])|\^\^"
)
# Commands that amsmath, or a formula between dollars, does not know.
_NO_CELL = re.compile(r"\\(?:tag|nicefrac|[pb]?matrix\s*\{|cases\s*\{|eqalign)|\\[][()]|(?<!\\)(?:\\\\)*\\$")


class Cell(NamedTuple):
    """A cell: *mark* is "best", "second" or "", *sign* a character such as "†", *beside* the text after the number."""

    text: str
    mark: str = ""
    sign: str = ""
    beside: str = ""
    is_maths: bool = False


def escape_latex(text: str, is_maths: bool = False) -> str:
    r"""Return *text* escaped for pdfLaTeX with amsmath and amssymb; *is_maths*: complete formulas are put in `$…$`."""

    def escape(part: str) -> str:
        return replace_symbols("".join(_LATEX.get(char, char) for char in part))

    def inside(maths: str) -> str:
        return f"${replace_symbols(maths, is_maths=True)}$" if _is_whole(maths) else escape(f"${maths}$")

    return _outside_maths(text, is_maths, escape, inside)


def _is_whole(maths: str) -> bool:
    r"""Return whether a formula is complete, is parsed without problems, and may be typeset within a line."""
    sides = _SIDES.findall(maths)
    is_known = not (_COMMANDS.search(maths) or _NO_CELL.search(maths) or parse_latex(maths).problems)
    return is_known and sides.count("left") == sides.count("right")


def escape_markdown(text: str, is_maths: bool = False) -> str:
    r"""Return *text* escaped for Markdown; *is_maths*: formulas are in `$…$`, without Markdown's characters."""

    def escape(part: str) -> str:
        return re.sub(r"([\\`*_|<>$~\[\]&#])", r"\\\1", part)

    return _outside_maths(text, is_maths, escape, lambda maths: f"${_no_markup(maths)}$")


def _outside_maths(text: str, is_maths: bool, escape: Callable[[str], str], inside: Callable[[str], str]) -> str:
    """Return *text* on one line, with *escape* applied to its prose and *inside* to its formulas."""
    text = " ".join(text.split())
    if not is_maths:
        return escape(text)
    parts = enumerate(in_text.split_text(text))
    return "".join(inside(_in_line(part)) if n % 2 else escape(part.replace(r"\$", "$")) for n, part in parts)


def _in_line(maths: str) -> str:
    r"""Return a formula that may stand between dollars: `align`, and rows in no environment, become `aligned`."""
    maths = _DISPLAY.sub(lambda match: rf"\{match[1]}{{{_IN_LINE[match[2]]}}}" if _IN_LINE[match[2]] else "", maths)
    maths = _COMMENT.sub(r"\\\g<0>", maths.strip())
    has_rows = not maths.startswith(r"\begin") and _ROWS.search(_INNERMOST.sub("", maths))
    return rf"\begin{{aligned}}{maths}\end{{aligned}}" if has_rows else maths


def _no_markup(maths: str) -> str:
    for sign, name in _SIGNS.items():
        maths = maths.replace(sign, name)
    return maths


def latex_cell(cell: Cell) -> str:
    """Return a cell for LaTeX: the best bold, the second underlined, signs raised."""
    text = escape_latex(cell.text, cell.is_maths)
    text = {"best": rf"\textbf{{{text}}}", "second": rf"\underline{{{text}}}"}.get(cell.mark, text)
    sign = {"†": r"$^{\dagger}$", "‡": r"$^{\ddagger}$"}.get(cell.sign, escape_latex(cell.sign))
    return text + sign + (rf" {{\scriptsize {escape_latex(cell.beside)}}}" if cell.beside else "")


def markdown_cell(cell: Cell) -> str:
    """Return a cell for Markdown; since Markdown has no underline, the second is in `<u>`."""
    text = escape_markdown(cell.text, cell.is_maths)
    text = {"best": f"**{text}**", "second": f"<u>{text}</u>"}.get(cell.mark, text)
    return text + escape_markdown(cell.sign) + (f" {escape_markdown(cell.beside)}" if cell.beside else "")


def format_value(value: Any, digits: int = 2, how: str = "") -> str:
    """Return one value as text: "–" for a missing one, floats rounded, thousands separated, true minus signs.

    *how* is a format specification that takes the place of *digits*, or "p": a p value, to the third digit.

    >>> [format_value(value) for value in (1234567, -0.125, float("nan"), True)], format_value(0.00012, how=".1g")
    (['1,234,567', '−0.12', '–', 'yes'], '0.0001')
    >>> format_value(0.0123, how="p"), format_value(-0.001), format_value(-0.001, how="+.1f")
    ('0.012', '0.00', '+0.0')
    >>> format_value(0.62, how=".0%")
    '62 %'
    """
    if value is None or value is pd.NA or value is pd.NaT or (isinstance(value, Real) and value != value):
        return "–"
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, Real) and how == "p":
        return "< 0.001" if value < 0.001 else f"{value:.3f}"
    if isinstance(value, Real):
        chosen = how or "," if isinstance(value, Integral) else _SIGN.sub(r"\1z", how or f",.{digits}f")
        return format(value, chosen).replace("-", "−").replace("%", " %")
    return str(value)


def format_interval(low: float, high: float, how: str) -> str:
    """Return an interval in brackets, its ends by the format specification *how*; "–" where there is none.

    >>> format_interval(-0.05, 0.125, "+.2f"), format_interval(float("nan"), float("nan"), ".1f")
    ('[−0.05, +0.12]', '–')
    """
    return f"[{format_value(low, how=how)}, {format_value(high, how=how)}]" if low == low else "–"


def replace_symbols(text: str, is_maths: bool = False) -> str:
    r"""Return *text* with commands in `$…$` for what pdfLaTeX does not know; in mathematics, without the dollars.

    Letters of other scripts stay: a document that has them needs babel. What has no command is its code point.

    >>> print(replace_symbols("∀ x₁ ∈ 𝓝 a, f⁻¹ ≤ é ⥢"), replace_symbols("αx⁻¹", is_maths=True))
    $\forall$ x$_{1}$ $\in$ $\mathcal{N}$ a, f$^{-1}$ $\le$ é $\mathtt{U{+}2962}$ \alpha x{}^{-1}
    >>> print(replace_symbols(r"\Spec(\ZZ)", is_maths=True))
    \operatorname{Spec}(\mathbb{Z})
    >>> print(replace_symbols("x_ℝ + u_…", is_maths=True))
    x_{\mathbb{R}} + u_{\ldots }
    """
    if is_maths:
        text = _NAME.sub(lambda match: _known_command(match[0]), text)

    def written(chars: str) -> str:
        pieces = [piece for char in chars for piece in _pieces(char)]
        return "".join(
            _join_pieces(list(run), is_maths) for _, run in groupby(pieces, key=lambda piece: piece[0] != "")
        )

    def replaced(match: re.Match[str]) -> str:
        if is_maths and match.string[: match.start()][-1:] in ("_", "^"):  # TeX takes one token, and a command is more
            return f"{{{written(match[0][0])}}}{written(match[0][1:])}"
        return written(match[0])

    return _NOT_ASCII.sub(replaced, unicodedata.normalize("NFC", text))


def _known_command(command: str) -> str:
    if command[1:] not in _MISSING:
        return command
    label = symbols.COMMANDS[command].removeprefix("V!")
    return rf"\operatorname{{{label}}}" if len(label) > 1 else "".join(text for _, text in _pieces(label))


@lru_cache(maxsize=4096)
def _pieces(char: str) -> tuple[Piece, ...]:
    """Return the LaTeX for one character; nothing for an invisible one."""
    if char in _commands():
        return (("$", _commands()[char]),)
    how, *codes = unicodedata.decomposition(char).split() or [""]
    plain = "".join(chr(int(code, 16)) for code in codes) if how.startswith("<") else ""
    if how in _SCRIPTS:
        return ((_SCRIPTS[how], "".join(text for part in plain for _, text in _pieces(part))),)
    name, category = unicodedata.name(char, ""), unicodedata.category(char)
    font = next((font for words, font in _ALPHABETS if words in name), "") if how == "<font>" else ""
    if font:
        return (("$", rf"\{font}{{{_commands().get(plain, plain)}}}"),)
    if plain and not _SPECIAL & set(plain):
        return tuple(piece for part in plain for piece in _pieces(part))
    if char.isascii() or category[0] in "LZ" or char in _KNOWN:
        return (("", char),)
    return () if category in ("Cf", "Mn") else (("$", rf"\mathtt{{U{{+}}{ord(char):04X}}}"),)


@lru_cache(maxsize=1)
def _commands() -> dict[str, str]:
    commands: dict[str, str] = {}
    for command, label in symbols.COMMANDS.items():
        char = label.removeprefix("V!")
        if len(char) == 1 and not (char.isascii() or char in _KNOWN or unicodedata.name(char).startswith(_LETTERS)):
            commands.setdefault(char, command)
    commands |= {char: rf"\mathrm{{{like}}}" for char, like in zip(*_LIKE_LATIN, strict=True)}
    return commands | dict(entry.split(None, 1) for line in _MORE.strip().splitlines() for entry in line.split("|"))


def _join_pieces(pieces: list[Piece], is_maths: bool) -> str:
    if not pieces[0][0]:
        return "".join(text for _, text in pieces)
    made = ""
    for kind, run in groupby(pieces, key=lambda piece: piece[0]):
        inner = " ".join(text for _, text in run)
        if kind == "$":
            made += inner + " " * bool(_COMMAND.search(inner))
        else:  # an empty base before it wherever something else may have a script already
            made += f"{'{}' * (is_maths or made != '')}{kind}{{{inner.replace(' ', '')}}}"
    return made if is_maths else f"${made.rstrip()}$"


def plain_html(text: str) -> str:
    r"""Return *text* escaped on one line, marked so that MathJax does not read a dollar in it as mathematics."""
    safe = escape_html(" ".join(text.split()))
    return f'<span class="tex2jax_ignore mathjax_ignore">{safe}</span>' if _MAY_BE_MATHS.search(safe) else safe


def maths_html(text: str) -> str:
    r"""Return *text* with its formulas as MathML, and `\$` as the dollar that it stands for."""
    return _FORMULA_OR_DOLLAR.sub(lambda match: match[1] or "$", text_html(text))


def is_long(cell: Cell) -> bool:
    """Return whether the text of a cell takes more than a line."""
    return len(cell.text) > _LONGEST_LINE


def html_cell(cell: Cell, value: str = "", is_number: bool = False) -> str:
    """Return a `<td>`; *value* is the number that it is sorted by ("": its text), *is_number* aligns it right."""
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
