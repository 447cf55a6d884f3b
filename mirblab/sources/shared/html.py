"""html: the HTML of a post as plain text that keeps its mathematics; nothing in it is executed or fetched."""

from __future__ import annotations

import html as standard
import re
from functools import lru_cache, partial
from html import entities
from typing import NamedTuple

_NOT_TEXT = re.compile(r"<!--.*?(?:-->|\Z)|<(script|style)\b.*?(?:</\1\s*>|\Z)", re.DOTALL | re.IGNORECASE)
_PRE = re.compile(r"<pre\b[^<>]*>(.*?)(?:</pre\s*>|\Z)", re.DOTALL | re.IGNORECASE)
_INLINE = re.compile(
    r"</?(?:span|em|strong|code|b|i|u|s|sup|sub|kbd|del|ins|strike|small|big|tt|font|a)(?:\s[^<>]*)?/?>", re.IGNORECASE
)
_TAG = re.compile(r"</?[a-zA-Z][^<>]*>")
# Formulas have no tags, because a smaller-than sign in them is always escaped.
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
    """Return the text of a title, which is plain, or HTML if it has a `math-container`, as `html_to_text` does.

    >>> title_to_text("When  is $a<b$ &amp; $c>d$?")
    ('When is $a<b$ & $c>d$?', False)
    """
    if "math-container" in source:
        return html_to_text(source)
    text, layers = unescape_entities(source)
    return " ".join(text.split()), layers > 1


def html_to_text(source: str) -> tuple[str, bool]:
    """Return the text of HTML with formulas between dollars, and whether entities were escaped more than once.

    A `math-container` without dollars gets them. Lines of `<pre>` stay, other white space becomes single blanks.
    """
    if source.count("math-container") > source.count('"math-container">$'):
        source = _BARE_FORMULA.sub(lambda match: _between_dollars(match[2]), source)
    # Most posts have only these tags; replacing them is several times as fast as the patterns for any tag.
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
    """Return the kinds of elements in the HTML of a post, of "figure", "link" and "table", in this order."""
    found = {match.lastindex for match in _HELD.finditer(source)}
    return tuple(kind for number, kind in enumerate(_KINDS, 1) if number in found)


def find_formulas(source: str) -> list[Formula]:
    r"""Return the formulas in the `math-container`s of a post, in order, unescaped and without their delimiters.

    >>> find_formulas('<span class="math-container" id="7">$$a &amp;lt; b$$</span>')
    [Formula(id='7', latex='a < b')]
    """
    formulas = []
    for attributes, latex in _FORMULA.findall(source):
        name = _ID.search(attributes)
        formulas.append(Formula(name[1] if name else "", strip_delimiters(unescape_entities(latex)[0].strip())))
    return formulas


def _without_tags(source: str, between: str) -> str:
    return _TAG.sub(between, _INLINE.sub("", source))


def _add(blocks: list[str], source: str, *, is_code: bool) -> bool:
    """Append the text of a part of a post unless it is empty; return whether it was escaped twice."""
    text, layers = unescape_entities(source)
    if is_code:
        text = "\n".join(line.rstrip() for line in text.splitlines()).strip("\n")
    else:
        text = " ".join(text.split())
    if text.strip():
        blocks.append(text)
    return layers > 1


def unescape_entities(text: str) -> tuple[str, int]:
    """Return *text* without entities, and the number of layers of escaping.

    Only entities with a semicolon count (`a &not b` is LaTeX); unknown names stay; control characters are removed.
    """
    quick = text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&") if "&" in text else text
    if "&" not in quick or not _ENTITY.search(quick):
        return quick, int(quick != text)
    layers = 0
    for _ in range(_MOST_PASSES):
        depths = [0]
        text = _ENTITY.sub(partial(_replacement, depths), text)
        layers += max(depths)
        if not max(depths):
            break
    return text, layers


def _between_dollars(latex: str) -> str:
    inner = latex.strip()
    sign = "$$" if inner.startswith(("\\begin", "\\[")) else "$"
    return f"{sign}{strip_delimiters(inner)}{sign}" if inner else ""


def _replacement(depths: list[int], match: re.Match[str]) -> str:
    character = _character(match[2])
    depths.append(match[1].count(";") + (character is not None))
    return f"&{match[2]};" if character is None else character


@lru_cache(maxsize=4096)
def _character(name: str) -> str | None:
    return standard.unescape(f"&{name};") if name[0] == "#" else entities.html5.get(f"{name};")


def strip_delimiters(latex: str) -> str:
    """Return LaTeX without its delimiters; some posts have "$$$"."""
    for left, right in _DELIMITERS:
        if latex.startswith(left) and latex.endswith(right) and len(latex) >= len(left + right):
            latex = latex[len(left) : -len(right)].strip()
    return latex
