"""thread_math: the formulas of a post as MathML that was checked, or as code."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from xml.parsers import expat

from mirblab.sources import arqmath_texts as texts

Render = Callable[[str, bool], str]  # LaTeX without delimiters, and whether it is a display, to a `<math>` element
TAGS = frozenset(
    "math mrow mi mn mo mtext mspace ms mfrac msqrt mroot mstyle merror mpadded mphantom menclose msub msup msubsup "
    "munder mover munderover mmultiscripts mprescripts none mtable mtr mtd semantics annotation".split()
)
ATTRIBUTES = frozenset(
    "accent accentunder alttext aria-label class columnalign columnlines columnspan depth dir display displaystyle "
    "fence form height intent largeop linethickness lspace mathvariant maxsize minsize movablelimits notation rowlines "
    "rowspan rspace scriptlevel separator stretchy symmetric voffset width xmlns".split()
)
_LONGEST = 20_000  # characters of LaTeX; beyond, a formula is shown as it is written
_WIDE = 60  # characters of LaTeX from which a formula in a line may be wider than a small screen, and gets a bar


def formula(source: str, render: Render | None = None) -> str:
    """Return a formula, as it stands in HTML between its delimiters or without them, as MathML or code.

    >>> formula("$x &lt; 1$")
    '<code class="latex">x &lt; 1</code>'
    """
    text = texts.of_latex(source).text
    latex = _bare(text)
    if not latex:
        return ""
    is_display = text.startswith(("$$", "\\[", "\\begin"))
    markup = checked(render(latex, is_display)) if render and len(latex) <= _LONGEST else ""
    markup = markup or f'<code class="latex">{escape(latex)}</code>'
    kind = "display" if is_display else "wide" if len(latex) >= _WIDE and markup.startswith("<math") else ""
    return f'<span class="{kind}">{markup}</span>' if kind else markup


def _bare(latex: str) -> str:
    """Return LaTeX without its delimiters."""
    for left, right in (("$$", "$$"), ("$", "$"), ("\\[", "\\]"), ("\\(", "\\)")):
        if latex.startswith(left) and latex.endswith(right) and len(latex) >= len(left + right):
            return latex[len(left) : -len(right)].strip()
    return latex


def checked(markup: str) -> str:
    """Return MathML that has known elements and attributes only, else an empty string.

    >>> checked("<math><mi>x</mi></math>"), checked("<math><mi onclick='x()'>x</mi></math>"), checked("<b>x</b>")
    ('<math><mi>x</mi></math>', '', '')
    """
    ok: list[bool] = []
    parser = expat.ParserCreate("UTF-8")

    def start(name: str, attributes: dict[str, str]) -> None:
        ok.append(name in TAGS and (bool(ok) or name == "math") and set(attributes) <= ATTRIBUTES)

    parser.StartElementHandler = start
    for kind in ("StartDoctypeDecl", "Comment", "ProcessingInstruction", "StartCdataSection"):
        setattr(parser, f"{kind}Handler", lambda *_: ok.append(False))
    try:
        parser.Parse(markup.encode(), True)
    except (expat.ExpatError, UnicodeEncodeError):
        return ""
    return markup if ok and all(ok) else ""
