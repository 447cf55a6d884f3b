"""panes: the explorer's lists, preview and sentences as escaped HTML."""

from __future__ import annotations

from collections.abc import Sequence

from mirblab.analysis.searching.free_text import one_line
from mirblab.app.explorer.model import FAR, Answer, Column, Hit
from mirblab.core.wording import counted
from mirblab.display.text import MATH_FONTS, Mark, escape_html, split_pieces, template, text_html

_LONGEST = 420  # characters of a document in a list
_BEFORE = 60  # characters shown before the first strong match, where that is further down
STYLE = f"<style>\n.mirblab-explorer {MATH_FONTS}\n{template('explorer.css')}\n</style>"


def lists(answer: Answer) -> str:
    """Return the lists of all systems side by side, below what is known of the query."""
    sections = "".join(_section(column, bool(answer.query_id)) for column in answer.columns)
    return f'<p class="mirblab-quiet">{_about(answer)}</p><div class="mirblab-lists">{sections}</div>'


def preview(text: str) -> str:
    """Return a query with its formulas rendered."""
    shown = text_html(text) if text.strip() else '<span class="mirblab-quiet">Nothing typed yet.</span>'
    return f'<div class="mirblab-asked" role="region" aria-label="The query, rendered" tabindex="0">{shown}</div>'


def status(sentence: str, is_problem: bool = False) -> str:
    """Return a sentence that screen readers announce, highlighted if it is a problem."""
    kind = ' class="mirblab-problem"' if is_problem else ""
    lead = "<b>Problem:</b> " if is_problem else ""
    return f'<p role="status" aria-live="polite"{kind}>{lead}{escape_html(sentence)}</p>'


def static(answer: Answer) -> str:
    """Return the query and its lists for a page without widgets."""
    return f'{STYLE}<div class="mirblab-explorer">{preview(answer.text)}{lists(answer)}</div>'


def plain(answer: Answer) -> str:
    """Return the lists as text, one line for each system."""
    lines = [f"Query: {answer.text:.200}"]
    for column in answer.columns:
        results = ", ".join(hit.doc_id for hit in column.hits) or column.problem or "nothing found"
        lines.append(f"{column.label}: {results}")
    return "\n".join(map(one_line, lines))


def window(text: str, marks: Sequence[Mark]) -> tuple[str, list[Mark], bool]:
    """Return the part of *text* to show (perhaps around its strongest mark), its marks, and whether it begins later."""
    strongest = max(marks, key=lambda mark: mark[2], default=(0, 0, 0.0))
    if strongest[0] < _LONGEST or any(start < _LONGEST for start, _, _ in marks):
        return text, list(marks), False
    begin = 0
    for piece in split_pieces(text):
        if piece.start > strongest[0]:
            break
        if not piece.is_formula:
            last = min(piece.start + len(piece.text), strongest[0])
            begin = max(text.rfind(" ", piece.start, max(piece.start, last - _BEFORE)) + 1, piece.start)
    kept = [(start - begin, end - begin, strength) for start, end, strength in marks if start >= begin]
    return text[begin:], kept, begin > 0


def _about(answer: Answer) -> str:
    if not answer.query_id:
        return "Free text: it has no judgements, and every document of the collection may be found."
    n_relevant = counted(answer.n_relevant, "document")
    return f"Query <b>{escape_html(answer.query_id)}</b> of the collection: {n_relevant} judged relevant."


def _section(column: Column, is_judged: bool) -> str:
    name, label = escape_html(column.name), escape_html(column.label)
    head = f'<h3>{label}</h3><p class="mirblab-quiet">{name}{_marked(column)}</p>'
    if column.problem:
        body = f'<p class="mirblab-problem"><b>Problem:</b> {escape_html(column.problem)}</p>'
    elif not column.hits:
        body = "<p>Nothing found.</p>"
    else:
        body = f"<ol>{''.join(_item(hit, is_judged) for hit in column.hits)}</ol>"
    return f'<section aria-label="{label}">{head}{body}</section>'


def _marked(column: Column) -> str:
    return f"; marked: {escape_html(column.marked)}" if column.marked else ""


def _item(hit: Hit, is_judged: bool) -> str:
    kind, verdict = _verdict(hit, is_judged)
    text, marks, is_later = window(hit.text, hit.marks)
    shown = ("… " if is_later else "") + text_html(text, marks, longest=_LONGEST)
    head = f"<b>{hit.rank}.</b> {escape_html(hit.doc_id)} · {hit.score:.3f}{verdict}"
    return (
        f'<li class="{kind}" value="{hit.rank}"><p class="mirblab-quiet">{head}</p>'
        f'<div class="mirblab-text">{shown or "(empty text)"}</div>{_elsewhere(hit)}</li>'
    )


def _verdict(hit: Hit, is_judged: bool) -> tuple[str, str]:
    """Return the class of an item, and whether its document was judged relevant, in words and with a sign."""
    if not is_judged:
        return "free", ""
    if hit.relevance is None:
        return "unjudged", " · <b>? unjudged</b>"
    title = f' title="{escape_html(hit.meaning)}"' if hit.meaning else ""
    if hit.is_relevant:
        return "relevant", f" · <b{title}>✓ relevant ({hit.relevance})</b>"
    return "not-relevant", f" · <b{title}>✗ not relevant ({hit.relevance})</b>"


def _elsewhere(hit: Hit) -> str:
    parts = [
        f"{rank} in {escape_html(name)}" if rank else f"not in {escape_html(name)}’s first {FAR}"
        for name, rank in hit.elsewhere.items()
    ]
    return f'<p class="mirblab-quiet">{"; ".join(parts)}</p>' if parts else ""
