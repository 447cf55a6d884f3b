"""html: the HTML of a post to plain text that keeps its mathematics; nothing in it is executed or fetched."""

from __future__ import annotations

import html as standard
import re
from functools import lru_cache
from html import entities
from typing import NamedTuple

_NOT_TEXT = re.compile(r"<!--.*?(?:-->|\Z)|<(script|style)\b.*?(?:</\1\s*>|\Z)", re.DOTALL | re.IGNORECASE)
_PRE = re.compile(r"<pre\b[^<>]*>(.*?)(?:</pre\s*>|\Z)", re.DOTALL | re.IGNORECASE)
_INLINE = re.compile(
    r"</?(?:span|em|strong|code|b|i|u|s|sup|sub|kbd|del|ins|strike|small|big|tt|font|a)(?:\s[^<>]*)?/?>", re.IGNORECASE
)
_TAG = re.compile(r"</?[a-zA-Z][^<>]*>")
# Formulas hold no tag: a smaller-than sign in them is always escaped.
_OPENED = r"""<span((?:\s+id=["'][^"'<>]*["'])?\s+class=["']math-container["'][^<>]*)>"""
_FORMULA = re.compile(_OPENED + r"([^<]*)</span>", re.IGNORECASE)
_BARE_FORMULA = re.compile(_OPENED + r"(?!\s*\$)([^<]*)</span>", re.IGNORECASE)
_ID = re.compile(r"""\bid\s*=\s*["']?([^\s"'<>]+)""")
_HELD = re.compile(r"<(?:(img|svg|picture|figure|video|iframe|object|embed)|(a)|(table))(?=[\s/>])", re.IGNORECASE)
_KINDS = ("figure", "link", "table")
# One match for any number of layers, so that text escaped a thousand times is still read in one pass.
_ENTITY = re.compile(
    r"&((?:(?:amp|AMP|#0*38|#[xX]0*26);)*)([a-zA-Z][a-zA-Z0-9]{1,31}|#[0-9]{1,8}|#[xX][0-9a-fA-F]{1,7});"
)
_MOST_PASSES = 8
_DELIMITERS = (("$$", "$$"), ("$", "$"), ("\\[", "\\]"), ("\\(", "\\)"))


class Formula(NamedTuple):
    """A formula of a post: the `id` of its `math-container` ("" without one), and its LaTeX without delimiters."""

    id: str
    latex: str


def title_to_text(source: str) -> tuple[str, bool]:
    """Return the text of a title, as `html_to_text` does.

    A title is plain text ("is $a<b$?"), except in ARQMath's files, whose containers of formulas show that it is HTML.

    >>> title_to_text("When  is $a<b$ &amp; $c>d$?")
    ('When is $a<b$ & $c>d$?', False)
    """
    if "math-container" in source:
        return html_to_text(source)
    text, layers = unescape_entities(source)
    return " ".join(text.split()), layers > 1


def html_to_text(source: str) -> tuple[str, bool]:
    r"""Return the text of HTML, and whether entities were escaped more often than HTML asks for.

    Formulas stay between dollars as MathJax reads them (`$`, `$$`, and bare environments such as align outside a
    `math-container`); a container without dollars gets them. White space becomes single spaces, but the lines of
    `<pre>` stay lines. Comments, scripts and styles are removed with what is in them, other tags without.

    >>> html_to_text('<p>Is <span class="math-container">$a &amp;lt; b$</span> <em>so</em>?</p>\n<p>Yes</p>')
    ('Is $a < b$ so? Yes', True)
    >>> html_to_text("<pre><code>if x:\n    y\n</code></pre><p>a &amp; b</p>")
    ('if x:\n    y\na & b', False)
    """
    if source.count("math-container") > source.count('"math-container">$'):
        source = _BARE_FORMULA.sub(lambda match: _between_dollars(match[2]), source)
    # Most posts have these tags alone; replacing them is several times as fast as the patterns for any tag.
    plain = source.replace('<span class="math-container">', "").replace("</span>", "")
    plain = plain.replace("<p>", " ").replace("</p>", " ")
    blocks: list[str] = []
    if "<" not in plain:
        is_deep = _add(blocks, plain, is_code=False)
        return "".join(blocks), is_deep
    plain = _NOT_TEXT.sub(" ", plain)
    end, is_deep = 0, False
    for match in _PRE.finditer(plain):
        for inner, is_code in ((plain[end : match.start()], False), (match[1], True)):
            is_deep |= _add(blocks, _without_tags(inner, "" if is_code else " "), is_code=is_code)
        end = match.end()
    is_deep |= _add(blocks, _without_tags(plain[end:], " "), is_code=False)
    return "\n".join(blocks), is_deep


def find_elements(source: str) -> tuple[str, ...]:
    """Return which of "figure", "link" and "table" the HTML of a post has, in this order.

    >>> find_elements('<p><a href="x">see</a> <b>bold</b> <code>&lt;img&gt;</code></p><table><tr></tr></table>')
    ('link', 'table')
    """
    found = {match.lastindex for match in _HELD.finditer(source)}
    return tuple(kind for number, kind in enumerate(_KINDS, 1) if number in found)


def find_formulas(source: str) -> list[Formula]:
    r"""Return the formulas in the `math-container`s of a post, in order, unescaped and without their delimiters.

    >>> find_formulas('<span class="math-container" id="7">$$a &amp;lt; b$$</span>')
    [Formula(id='7', latex='a < b')]
    """
    return [
        Formula(_own_id(match[1]), _bare(unescape_entities(match[2])[0].strip())) for match in _FORMULA.finditer(source)
    ]


def _without_tags(source: str, between: str) -> str:
    return _TAG.sub(between, _INLINE.sub("", source))


def _add(blocks: list[str], source: str, *, is_code: bool) -> bool:
    """Append the text of a part of a post unless there is none; return whether it was escaped twice."""
    text, layers = unescape_entities(source)
    if is_code:
        text = "\n".join(line.rstrip() for line in text.splitlines()).strip("\n")
    else:
        text = " ".join(text.split())
    if text.strip():
        blocks.append(text)
    return layers > 1


def unescape_entities(text: str) -> tuple[str, int]:
    r"""Return *text* without entities, and how many layers of escaping it had.

    Only entities that end in a semicolon count: the alignments of LaTeX (`a &not b`) are not taken for entities.
    Unknown names stay. Half characters (surrogates) become U+FFFD and other control characters nothing.

    >>> unescape_entities("a &lt; b &amp;amp;amp;gt; c & d &nosuch; &not e")
    ('a < b > c & d &nosuch; &not e', 4)
    """
    quick = text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&") if "&" in text else text
    if "&" not in quick or not _ENTITY.search(quick):
        return quick, int(quick != text)
    layers = 0
    for _ in range(_MOST_PASSES):
        depths = [0]
        text = _ENTITY.sub(lambda match, depths=depths: _replacement(match, depths), text)
        layers += max(depths)
        if not max(depths):
            break
    return text, layers


def _between_dollars(latex: str) -> str:
    inner = latex.strip()
    sign = "$$" if inner.startswith(("\\begin", "\\[")) else "$"
    return f"{sign}{_bare(inner)}{sign}" if inner else ""


def _replacement(match: re.Match[str], depths: list[int]) -> str:
    """Return what an entity stands for, and note how often it was escaped."""
    character = _character(match[2])
    depths.append(match[1].count(";") + (character is not None))
    return f"&{match[2]};" if character is None else character


@lru_cache(maxsize=4096)
def _character(name: str) -> str | None:
    return standard.unescape(f"&{name};") if name[0] == "#" else entities.html5.get(f"{name};")


def _own_id(attributes: str) -> str:
    found = _ID.search(attributes)
    return found[1] if found else ""


def _bare(latex: str) -> str:
    """Return LaTeX without its delimiters; some posts have "$$$"."""
    for left, right in _DELIMITERS:
        if latex.startswith(left) and latex.endswith(right) and len(latex) >= len(left + right):
            latex = latex[len(left) : -len(right)].strip()
    return latex
