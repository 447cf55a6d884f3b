"""thread_html: the HTML of posts made safe to show: only known tags stay, and formulas become MathML or code."""

from __future__ import annotations

import html as standard
import re
from collections.abc import Iterator

from mirblab.sources import html
from mirblab.sources.thread_math import Render, formula

_TAGS = frozenset(
    "a b blockquote br code dd del dl dt em h1 h2 h3 h4 hr i ins kbd li ol p pre s strike strong sub sup table tbody "
    "td th thead tr u ul".split()
)
_SCHEMES = ("http://", "https://", "mailto:")
CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")  # no HTML may have them
# Formulas wait behind two private characters while the rest is cleaned; these are taken out of the source before.
_OPEN, _CLOSE = "\ue000", "\ue001"
_PRIVATE, _PLACE = re.compile("[\ue000\ue001]"), re.compile("\ue000([0-9]+)\ue001")
_CODE = re.compile(r"<(/?)(pre|code)\b[^<>]*>", re.IGNORECASE)
# All lengths are bounded, so that no post takes more than linear time.
_CONTAINER = re.compile(r"<span\b[^<>]{0,200}\bmath-container\b[^<>]{0,200}>([^<]*)</span>", re.IGNORECASE)
_DOLLARS = re.compile(
    r"(\$\$[^$<]{1,9000}\$\$)|(?<![\\$\w])(\$(?=[^\s$<])[^$<]{1,2000}?(?<![\s\\])\$)(?![\w$])|"
    r"(\\begin\{(align|equation|gather|eqnarray|multline)(\*?)\}[^<]{0,5000}?\\end\{\4\5\})"
)
_IMAGE = re.compile(r"<img\b[^<>]*>", re.IGNORECASE)
_ALT = re.compile(r"""\balt\s*=\s*(?:"([^"]*)"|'([^']*)')""", re.IGNORECASE)


def safe(source: str, render: Render | None = None) -> str:
    r"""Return the HTML of a post with nothing in it that runs, is fetched or changes the page around it.

    Tags for text, lists, tables, code and links to http, https and mail stay; scripts, styles, event handlers,
    frames and forms go, pictures become their alternative text. Formulas (containers, `$`, `$$`, bare align and the
    like, not in code) are shown by *render*, whose MathML is checked; without it, or where it fails, as code.

    >>> safe('<p onclick="x()">Is <b>it</b>?<script>x()</script> <img src="//x.org/a.png" alt="a graph"></p>')
    '<p>Is <b>it</b>? [picture: a graph]</p>'
    >>> safe('<p>Is <span class="math-container" id="1">$a &lt; b$</span>?</p>')
    '<p>Is <code class="latex">a &lt; b</code>?</p>'
    """
    import nh3

    shown: list[str] = []

    def put(found: re.Match[str]) -> str:
        shown.append(formula(found[0] if found.re is _DOLLARS else found[1], render))
        return f"{_OPEN}{len(shown) - 1}{_CLOSE}"

    parts = [
        part if is_code else _DOLLARS.sub(put, _CONTAINER.sub(put, _IMAGE.sub(_alternative, part)))
        for part, is_code in _parts(_PRIVATE.sub("", CONTROL.sub("\ufffd", source)))
    ]
    clean = nh3.clean(
        "".join(parts),
        tags=set(_TAGS),
        clean_content_tags={"script", "style"},
        attributes={"a": {"href"}, "ol": {"start"}, "td": {"colspan", "rowspan"}, "th": {"colspan", "rowspan"}},
        attribute_filter=_allowed,
        url_schemes={"http", "https", "mailto"},
        link_rel="noopener noreferrer nofollow",
    )
    return _PLACE.sub(lambda found: shown[int(found[1])] if int(found[1]) < len(shown) else "", clean)


def _parts(source: str) -> Iterator[tuple[str, bool]]:
    """Yield the parts of a post in order, and whether each is code, in which a dollar is no formula's."""
    begin, name = 0, ""
    for found in _CODE.finditer(source):
        is_end, tag = bool(found[1]), found[2].lower()
        if is_end == bool(name) and (not name or tag == name):
            end = found.end() if is_end else found.start()
            yield source[begin:end], is_end
            begin, name = end, "" if is_end else tag
    yield source[begin:], bool(name)


def safe_line(source: str, render: Render | None = None) -> str:
    """Return a title or comment as safe HTML: plain text, unless a formula's container shows that it is HTML.

    >>> safe_line("Is a<b & c?")
    'Is a&lt;b &amp; c?'
    """
    return safe(source if "math-container" in source else standard.escape(html.unescape(source)[0]), render)


def _alternative(found: re.Match[str]) -> str:
    alt = _ALT.search(found[0])
    text = (alt[1] or alt[2] or "").strip() if alt else ""
    return f"[picture: {text or 'without a description'}]".replace("<", "&lt;").replace("$", "&#36;")


def _allowed(tag: str, attribute: str, value: str) -> str | None:
    """Return an attribute's value, or None where it must go: other addresses, and places of formulas."""
    if _PRIVATE.search(value):
        return None
    if attribute == "rel":  # the library's own
        return value
    if attribute == "href":
        return value if value.strip().lower().startswith(_SCHEMES) else None
    return value if value.isdecimal() and len(value) < 4 else None
