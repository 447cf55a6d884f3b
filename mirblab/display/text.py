"""text: a text as safe HTML with formulas, and excerpts."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from importlib.resources import files
from typing import NamedTuple

import numpy as np

from mirblab.formula import in_text
from mirblab.formula.in_text import FORMULA_TASK, are_formulas, formal_language, is_formal
from mirblab.formula.latex.parser import parse_latex
from mirblab.formula.markup import to_mathml
from mirblab.formula.tree import Tree

Mark = tuple[int, int, float]  # start, end, strength from 0 to 1


def template(name: str) -> str:
    """Return the text of a file of `display/templates` without its last line end."""
    return (files(__package__) / "templates" / name).read_text("utf-8").removesuffix("\n")


# Fonts with the measures that brackets and scripts need; without one of them browsers place these badly.
MATH_FONTS = template("math.css")

_MOST_NODES = 400  # a larger formula is shown as the beginning of its source
_LONGEST = 300  # characters of that
_WIDE = 14  # nodes of a formula that may be wider than a narrow column, so that it gets a box that scrolls
_CLOSER = re.compile(r"\s*(?:\${1,3}|\\[)\]]|\[/i?math\])?")
CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")  # no HTML may have them
_PARAGRAPH = re.compile(r"\n\s*\n\s*")
_ORANGE = "230,159,0"  # as in formulas
# MathJax must not read a dollar in prose as mathematics, and signs that change the direction of writing end here.
_WHOLE = '<bdi class="mirblab-prose tex2jax_ignore mathjax_ignore">{}</bdi>'
_CODE = '<code style="white-space:pre-wrap;background:none;padding:0">{}</code>'
SCROLLS = "overflow-x:auto;overflow-y:hidden;padding:.15em 0"  # overflow-x alone would let it scroll upwards, too
_BOX = f'<span style="display:inline-block;max-width:100%;{SCROLLS};vertical-align:middle">{{}}</span>'


class Piece(NamedTuple):
    """A part of a text, where it starts, and whether it is a formula (LaTeX without delimiters)."""

    text: str
    start: int
    is_formula: bool


# Punctuation after a formula must not begin a line; browsers break there whatever character follows.
_BOUND = re.compile(r"[.,;:!?)\]]{1,3}")
_TIED = '<span style="white-space:nowrap">{}</span>'

_DOLLAR = re.compile(r"\\*\$")


def text_html(text: str, marks: Sequence[Mark] = (), *, longest: int = 0) -> str:
    r"""Return *text* as HTML without scripts and links: prose escaped, formulas as MathML.

    *marks*: ranges of characters and how strongly they are marked, 0 to 1; in formulas, the symbols in the range.
    *longest*: the text is cut after that many characters, or before the formula that would be cut (0: all of it). A
    large formula is the beginning of its source, a statement for a proof assistant is code.
    """
    strength = _strengths(len(text), marks)
    written = [""]
    for piece in truncate_pieces(text, longest):
        weights = strength[piece.start : piece.start + len(piece.text)]
        bound = 0 if piece.is_formula else _n_bound(written[-1], piece.text)
        if bound:
            written[-1] = _TIED.format(written[-1] + _prose_html(piece.text[:bound], weights[:bound]))
        rest = piece.text[bound:]
        written.append(_marked_formula(rest, weights) if piece.is_formula else _prose_html(rest, weights[bound:]))
    inner = "".join(written)
    return _WHOLE.format(_CODE.format(inner) if is_formal(text) else inner)


def _strengths(size: int, marks: Sequence[Mark]) -> np.ndarray:
    strengths = np.zeros(size)
    for start, end, strength in marks:
        marked = strengths[max(start, 0) : max(end, 0)]
        np.fmax(marked, np.minimum(strength, 1.0), out=marked)
    return strengths


def _n_bound(before: str, text: str) -> int:
    """Return how many characters of *text* must stay on a line with the formula *before* it."""
    match = _BOUND.match(text) if before.startswith("<math") else None
    return match.end() if match else 0


def _marked_formula(latex: str, strength: np.ndarray) -> str:
    if not strength.any():
        return formula_html(latex)
    spans = parse_latex(latex).spans
    nodes = ((node, float(strength[slice(*span)].max(initial=0))) for node, span in enumerate(spans))
    return formula_html(latex, tuple((node, weight) for node, weight in nodes if weight))


def _prose_html(text: str, strength: np.ndarray) -> str:
    edges = [0, *(np.flatnonzero(np.diff(strength[: len(text)])) + 1).tolist(), len(text)]
    return "".join(_marked_prose(text[a:b], float(strength[a]) if a < len(strength) else 0.0) for a, b in _pairs(edges))


def _marked_prose(text: str, strength: float) -> str:
    safe = _PARAGRAPH.sub("<br>", escape_html(text))
    if strength <= 0:
        return safe
    ground = f"background:rgba({_ORANGE},{0.2 + 0.45 * strength:.2f});color:inherit;border-radius:2px"
    return f'<mark class="mirblab-match" style="{ground}">{safe}</mark>'


def _pairs(edges: list[int]) -> Iterator[tuple[int, int]]:
    return zip(edges, edges[1:], strict=False)


def excerpts(texts: Sequence[str], task: str = "", longest: int = 160) -> list[str]:
    r"""Return the beginning of each text, at most *longest* characters and "…", formulas between dollars.

    Bare formulas (by *task*, else by the look of most texts) are put between dollars; one that is too long is cut and
    left without them, since half a formula cannot be typeset. A post ends before the formula that would be cut.
    Statements for a proof assistant have no formulas (`in_text.formal_language`).

    >>> excerpts([r"x^2"], "Formula Retrieval"), excerpts([r"Let \(x\) be $$y + z$$, then", "Why?"], "", 14)
    (['$x^2$'], ['Let $x$ be …', 'Why?'])
    """
    if task != FORMULA_TASK and formal_language(texts):
        return [_short_post([text], longest) for text in texts]
    bare = are_formulas(task, texts)
    return [
        _short_formula(text, longest)
        if bare and "$" not in text
        else _short_post(in_text.split_at_formulas(text), longest)
        for text in texts
    ]


def _short_post(parts: Sequence[str], longest: int) -> str:
    """Return the first words and formulas of a post, which alternate in *parts*; dollars in its prose are escaped."""
    shown_parts, left = list[str](), longest
    for place, part in enumerate(parts):
        plain = " ".join(f"<{part}>".split())[1:-1]
        shown = f"${plain}$" if place % 2 else _DOLLAR.sub(r"\\$", plain).rstrip("\\")
        if len(shown) > left:
            begun = "".join([*shown_parts, "" if place % 2 else shown[:left].rpartition(" ")[0]])
            return f"{begun.rstrip()} …"
        shown_parts.append(shown)
        left -= len(shown)
    return "".join(shown_parts)


def _short_formula(text: str, longest: int) -> str:
    return f"${text.strip()}$" if len(text) <= longest else f"{text[:longest]}…"


def escape_html(text: str) -> str:
    """Return *text* escaped for HTML, quotes too, with U+FFFD for characters that HTML does not allow.

    >>> escape_html('<b title="x">' + chr(0))
    '&lt;b title=&quot;x&quot;&gt;\ufffd'
    """
    return html.escape(CONTROL.sub("\ufffd", text))


def is_large(tree: Tree) -> bool:
    """Return whether a formula's MathML would be too long, so that `source_beginning` is shown."""
    return len(tree) > _MOST_NODES


def source_beginning(latex: str, attributes: str = "") -> str:
    """Return the first characters of a formula's source as code; *attributes* are inserted in the tag.

    >>> source_beginning("x<y")
    '<code>x&lt;y …</code>'
    """
    return f"<code{attributes}>{escape_html(latex[:_LONGEST])} …</code>"


@lru_cache(maxsize=512)
def split_pieces(text: str) -> tuple[Piece, ...]:
    """Return the non-empty prose and the formulas of *text* in turn, without delimiters."""
    parts = in_text.split_text(text)
    if len(parts) == 3 and parts[1] == text:
        return (Piece(text, 0, True),)
    places, last, pieces = in_text.marked_formulas(text), 0, []
    for number, part in enumerate(parts):
        if number % 2:
            pieces.append(Piece(part, places[number // 2][1], True))
            last = places[number // 2][2]
        elif part:
            pieces.append(Piece(part, _start(text, part, last) if number else 0, False))
    return tuple(pieces)


def _start(text: str, prose: str, last: int) -> int:
    """Return where *prose* begins after the formula that ends at *last*, behind its closing delimiter."""
    at = text.index(prose, last)
    while not _CLOSER.fullmatch(text, last, at) and (following := text.find(prose, at + 1)) >= 0:
        at = following
    return at


def truncate_pieces(text: str, longest: int) -> Iterator[Piece]:
    """Yield the pieces of the first *longest* characters (0: all), and "…"; only a first formula may be longer."""
    left, before = longest, ""
    for number, piece in enumerate(split_pieces(text)):
        if longest and len(piece.text) > left and (number or not piece.is_formula):
            head, blank, _ = piece.text[: max(left, 0)].rpartition(" ")
            begun = "" if piece.is_formula else (head if blank else piece.text[: max(left, 0)]).rstrip()
            yield Piece(begun, piece.start, False)
            yield Piece("…" if (before + begun)[-1:].isspace() else " …", len(text), False)
            return
        yield piece
        left, before = left - len(piece.text), piece.text


@lru_cache(maxsize=4096)
def formula_html(latex: str, matched: tuple[tuple[int, float], ...] = ()) -> str:
    """Return a formula as MathML with the *matched* nodes marked by their strengths; a large one as source.

    >>> formula_html("x").startswith("<math"), formula_html("x+" * 999).startswith("<code>x+x")
    (True, True)
    """
    tree = parse_latex(latex)
    if is_large(tree):
        return source_beginning(latex)
    shown = to_mathml(tree, dict(matched), latex=latex)
    return _BOX.format(shown) if len(tree) > _WIDE else shown
