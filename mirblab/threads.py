"""threads: question threads of a dump as HTML pages, their formulas rendered, with an index page."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from mirblab.errors import MirblabError
from mirblab.paths import write_text
from mirblab.sources import dump, thread_page
from mirblab.sources import threads as reader
from mirblab.terminal import say

INDEX = "index.html"


def write(origin: str | Path, ids: Iterable[str | int], out: str | Path, *, formulas: str = "mathml") -> list[Path]:
    """Write a page for each thread and an index page to the folder *out*; return their paths, the index first.

    *origin* is a Stack Exchange dump or an ARQMath release (a folder or a .7z archive), *ids* are those of questions
    or of answers. *formulas* are shown as "mathml", by our own parser, or as "latex". The pages need no network, no
    script and no other file. Each appears whole or not at all, and nothing is written when an id is unknown; pages
    of other threads in *out* stay, but the index lists these alone. Broken rows of the dump are counted and printed.
    """
    if formulas not in ("mathml", "latex"):
        raise MirblabError(f"formulas are 'mathml' or 'latex', not '{formulas}'")
    odd = dump.Odd()
    found = reader.read(origin, ids, odd)
    render = mathml if formulas == "mathml" else None
    shown = [thread.question.id for thread in found]
    texts = {thread_page.file_name(one.question.id): thread_page.page(one, render, shown) for one in found}
    texts = {INDEX: thread_page.index(found, render, Path(origin).resolve().name)} | texts
    for name, text in texts.items():
        write_text(Path(out) / name, text)
    for example in odd.examples:
        say(f"  {example}")
    return [Path(out) / name for name in texts]


def mathml(latex: str, is_display: bool) -> str:
    """Return Presentation MathML of LaTeX without delimiters, by our own parser; the LaTeX is its alternative text."""
    from mirblab.formula import latex as parser
    from mirblab.formula import markup

    return markup.mathml(parser.parse(latex), latex=latex, display=is_display)
