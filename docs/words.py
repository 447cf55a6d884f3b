"""words: Markdown and docstrings as HTML: formulas as MathML, code coloured, headings with anchors, nothing remote."""

from __future__ import annotations

import html
import re
from typing import Any

import mistune
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

from mirblab.formula import markup
from mirblab.formula.latex import parser

_FORMATTER = HtmlFormatter(nowrap=True)
_DOCTEST = re.compile(r"^>>> .*(?:\n.+)*", re.MULTILINE)
_LANGUAGES = {"sh": "bash", "": "text"}


def slug(text: str) -> str:
    """Return the anchor of a heading.

    >>> slug("What is `nDCG'`?")
    'what-is-ndcg'
    """
    return re.sub(r"[^a-z0-9]+", "-", re.sub(r"<[^>]+>|['’`]", "", html.unescape(text)).lower()).strip("-")


def code(text: str, language: str = "") -> str:
    """Return *text* as a coloured block of code; an unknown language stays plain."""
    name = _LANGUAGES.get(language, language)
    try:
        inner = highlight(text.rstrip("\n") + "\n", get_lexer_by_name(name), _FORMATTER)
    except ClassNotFound:
        inner = html.escape(text)
    return f'<pre tabindex="0"><code>{inner}</code></pre>\n'


def formula(text: str, *, display: bool = False) -> str:
    """Return LaTeX as MathML."""
    return markup.to_mathml(parser.parse_latex(text), latex=text, display=display)


class _Renderer(mistune.HTMLRenderer):
    """Mistune's HTML, with anchors for headings, coloured code, and tables that scroll."""

    def __init__(self, down: int) -> None:
        super().__init__(escape=True)
        self.down, self.used = down, set[str]()

    def heading(self, text: str, level: int, **attrs: Any) -> str:
        name, level = slug(text), min(level + self.down, 6)
        while name in self.used:
            name += "-more"
        self.used.add(name)
        return f'<h{level} id="{name}">{text}</h{level}>\n'

    def block_code(self, code_: str, info: str | None = None) -> str:
        return code(code_, (info or "").split(" ")[0])


def markdown(text: str, down: int = 0) -> str:
    """Return Markdown as HTML; *down* levels are added to each heading. Raw HTML in it is shown, not used."""
    renderer = _Renderer(down)
    made = mistune.create_markdown(renderer=renderer, plugins=["table", "math", "strikethrough"])
    renderer.register("inline_math", lambda _, text: formula(text))
    renderer.register("block_math", lambda _, text: f"<p>{formula(text, display=True)}</p>\n")
    renderer.register("table", lambda _, text: f'<div class="wide" tabindex="0"><table>{text}</table></div>\n')
    return str(made(text))


def docstring(text: str) -> str:
    """Return a docstring as HTML: its Markdown, with its examples as coloured code; `$` stays a character."""
    fenced = _DOCTEST.sub(lambda found: f"```pycon\n{found[0]}\n```", text)
    renderer = _Renderer(3)
    return str(mistune.create_markdown(renderer=renderer, plugins=["table"])(fenced))


def inline(text: str) -> str:
    """Return one paragraph of a docstring as HTML, without the paragraph's own tag.

    >>> inline("Return *run* best first, with `rank` from 1.")
    'Return <em>run</em> best first, with <code>rank</code> from 1.'
    """
    return docstring(text).strip().removeprefix("<p>").removesuffix("</p>")


def plain(page: str) -> str:
    """Return the words of a piece of HTML, for the search.

    >>> plain("<p>a <b>b</b></p><script>c</script>")
    'a b'
    """
    without = re.sub(r"<(script|style|math)\b.*?</\1>", " ", page, flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", without)).split())
