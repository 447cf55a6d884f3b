"""A strict judge of pages: what two parsers find in them must be on lists of what is allowed."""

from __future__ import annotations

import re
from collections.abc import Iterable
from html.parser import HTMLParser

import lxml.html

from mirblab.display import threads

HTML = frozenset(
    "a article b bdi blockquote body br caption code dd del details div dl dt em fieldset figcaption figure h1 h2 h3 "
    "h4 head hr html i img input ins kbd label legend li main mark meta noscript ol p pre s script section small span "
    "strike strong style sub summary sup svg circle path table tbody td th thead title tr u ul".split()
)
TAGS = HTML | threads.TAGS
ATTRIBUTES = {
    "a": {"href", "rel"}, "circle": {"r", "fill", "stroke", "stroke-width"}, "path": {"d", "fill"},
    "html": {"lang"}, "meta": {"charset", "content", "http-equiv", "name"}, "img": {"alt", "src"},
    "input": {"autocomplete", "checked", "name", "type", "value"}, "svg": {"viewbox"}, "ol": {"start"},
    "td": {"colspan", "rowspan", "data-value"}, "th": {"colspan", "rowspan", "scope"},
    "script": {"type"}, "div": {"hidden"},
}  # fmt: skip
EVERYWHERE = {"aria-hidden", "aria-label", "aria-live", "class", "id", "role", "style", "tabindex"}
PROPERTIES = frozenset(
    "align-items background border-collapse border-radius color display flex flex-wrap font-size gap margin max-width "
    "min-width outline overflow-x overflow-y padding table-layout text-align vertical-align white-space width".split()
)
_DECLARATION = re.compile(r"\s*([a-z-]+)\s*:\s*[-a-z0-9.,%# ]*(?:rgba?\([0-9., ]+\))?\s*")
_ADDRESS = re.compile(r"https?://|mailto:|thread-")  # the last: a page beside this one
_PICTURE = re.compile(r"data:image/png;base64,[A-Za-z0-9+/=]+$")
_MATHS = re.compile(r"\$[^$]|\\[(\[]|\\begin")


def offences(page: str, own: Iterable[str] = (), *, in_notebook: bool = False) -> list[str]:
    """Return what a page has that no page of ours may have; only the texts *own* may be styles and scripts.

    *in_notebook*: nor may it have text that MathJax would take for mathematics, whose links and styles it follows.
    """
    page.encode("utf-8")  # half a character could not be written
    found = [f"{sign!r}" for sign in sorted(set(re.findall("[\x00-\x08\x0b\x0e-\x1f\x7f]", page)))]
    tree = parsed(page)
    texts = {text.strip() for text in own}
    for element in tree.iter():
        if not isinstance(element.tag, str):
            found.append(f"{element}"[:40])
            continue
        found += _wrong(element.tag, dict(element.attrib))
        if element.tag in ("script", "style") and (element.text or "").strip() not in texts:
            found.append(f"a foreign {element.tag}")
    tokens = _Tokens()
    tokens.feed(page)
    found += tokens.found
    return found + (_left_to_mathjax(tree) if in_notebook else [])


def parsed(page: str) -> lxml.html.HtmlElement:
    """Return the tree of a page, however deep a formula in it is."""
    return lxml.html.document_fromstring(page, parser=lxml.html.HTMLParser(huge_tree=True, encoding="utf-8"))


def _wrong(tag: str, attributes: dict[str, str]) -> list[str]:
    if tag not in TAGS:
        return [tag]
    maths = threads.ATTRIBUTES if tag in threads.TAGS else set()
    found = [f"{tag} {name}" for name in attributes if name not in EVERYWHERE | ATTRIBUTES.get(tag, set()) | maths]
    for name, wanted in (("href", _ADDRESS), ("src", _PICTURE)):
        if name in attributes and not wanted.match(attributes[name]):
            found.append(f"{tag} {name}={attributes[name][:60]}")
    if tag == "input" and attributes.get("type") not in ("checkbox", "radio"):
        found.append("an input of another type")
    for part in filter(None, attributes.get("style", "").split(";")):
        declared = _DECLARATION.fullmatch(part)
        if not declared or declared[1] not in PROPERTIES:
            found.append(f"{tag} style={part[:60]}")
    return found


class _Tokens(HTMLParser):
    """A second opinion that sees every tag, wherever it stands."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += _wrong(tag, {name: value or "" for name, value in attrs})

    handle_startendtag = handle_starttag

    def handle_comment(self, data: str) -> None:
        self.found.append(f"<!--{data[:30]}")

    def handle_pi(self, data: str) -> None:
        self.found.append(f"<?{data[:30]}")


def _left_to_mathjax(tree: lxml.html.HtmlElement) -> list[str]:
    """Return the texts between which MathJax would look for formulas."""
    kept = "contains(@class, 'mathjax_ignore') or self::code or self::pre or self::script or self::style"
    texts = tree.xpath(f"//text()[not(ancestor::*[{kept}])]")
    return [f"left to MathJax: {text[:40]}" for text in texts if _MATHS.search(text)]
