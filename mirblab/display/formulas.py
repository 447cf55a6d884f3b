"""formulas: formulas that were found, rendered beside each other, with what they share with the query marked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pandas as pd

from mirblab.display.escape import format_value, plain_html
from mirblab.display.figures import require_columns
from mirblab.display.text import MATH_FONTS, SCROLLS, is_large, source_beginning
from mirblab.formula.explain import Explanation, explain_match
from mirblab.formula.index import Index
from mirblab.formula.latex.parser import parse_latex
from mirblab.formula.markup import highlight_latex, to_mathml

if TYPE_CHECKING:
    from IPython.display import HTML


STYLE = f".mirblab-formulas {MATH_FONTS}"
_HALF_PAGE, _PAGE = 12, 45  # nodes of a formula that about fit beside its facts, in half of a page and in all of it
_SMALLEST = 0.7  # of the size of letters; what does not fit then can be scrolled
_CELL = "text-align:left;vertical-align:middle;padding:0.2em 0.6em"
_TABLE = "table-layout:auto;border-collapse:collapse"  # notebooks make the columns of a table equally wide
_QUIET = ' class="tex2jax_ignore mathjax_ignore"'  # a dollar in a source is no mathematics for MathJax


def formula_lists(
    query: str, lists: Mapping[str, pd.DataFrame], index: Index | None = None, *, title: str = ""
) -> HTML:
    r"""Return a *query* and the formulas of several lists, rendered, the lists side by side.

    *lists*: titles and tables, best first, with `formula` (LaTeX) and any other columns. With an *index*, what matches
    the query is marked by its strength. Everything is escaped. Raises MirblabError for a list without `formula`.

    >>> shown = formula_lists("x^2", {"first": pd.DataFrame({"rank": [1], "formula": ["a<b"]})}).data
    >>> "<mo>&lt;</mo>" in shown, ">rank</th>" in shown
    (True, True)
    """
    from IPython.display import HTML

    for rows in lists.values():
        require_columns(rows, "formula")
    sizes = [len(parse_latex(latex)) for rows in lists.values() for latex in rows["formula"]]
    basis = "24em" if max(sizes, default=0) <= _HALF_PAGE else "100%"
    parts = [_list(query, name, rows, index, basis) for name, rows in lists.items()]
    caption = f"<figcaption>{plain_html(title)}</figcaption>" if title else ""
    query_html = f'<div style="{SCROLLS};font-size:1.2em">{rendered(query)}</div>'
    columns = f'<div style="display:flex;flex-wrap:wrap;gap:0.5em 1.5em;align-items:flex-start">{"".join(parts)}</div>'
    return HTML(_figure(caption, query_html, columns))


def _list(query: str, name: str, rows: pd.DataFrame, index: Index | None, basis: str) -> str:
    facts = [column for column in rows.columns if column != "formula"]
    head = f"{_CELL};white-space:nowrap"
    heads = "".join(f'<th style="{head}">{plain_html(str(column))}</th>' for column in (*facts, "formula"))
    lines = []
    for row in rows.to_dict("records"):
        why = None if index is None else explain_match(query, row["formula"], index)
        cells = "".join(f'<td style="{_CELL}">{plain_html(format_value(row[fact]))}</td>' for fact in facts)
        shown = f'<div style="{SCROLLS}">{rendered(row["formula"], why)}</div>'
        lines.append(f'<tr>{cells}<td style="{_CELL};max-width:0;width:100%">{shown}</td></tr>')
    caption = f'<caption style="text-align:left"><b>{plain_html(name)}</b></caption>'
    body = f"{caption}<thead><tr>{heads}</tr></thead><tbody>{''.join(lines)}</tbody>"
    return f'<div style="flex:1 1 {basis};min-width:0"><table style="{_TABLE};width:100%">{body}</table></div>'


def formula_pair(why: Explanation, query: str, document: str, *, title: str = "") -> HTML:
    """Return query and document of an explanation, rendered and as LaTeX source, with the matches marked in both.

    *query* and *document* are the LaTeX that was explained. The score, shares and renamed variables are listed below.

    >>> import mirblab as lab
    >>> index = lab.formula.Index.build([("one", "x^2 + y^2")])
    >>> why = lab.formula.explain_match("a^2 + b^2", "x^2 + y^2", index)
    >>> "<math" in formula_pair(why, "a^2 + b^2", "x^2 + y^2").data
    True
    """
    from IPython.display import HTML

    sides = (("query", query, why.query, why.query_nodes), ("document", document, why.document, why.document_nodes))
    rows = [
        f'<tr><th style="{_CELL}">{name}</th><td style="{_CELL};max-width:0;width:100%">'
        f'<div style="{SCROLLS};font-size:1.2em">{to_mathml(tree, nodes, latex=latex)}</div>'
        f"<span{_QUIET}>{highlight_latex(latex, tree, nodes)}</span></td></tr>"
        for name, latex, tree, nodes in sides
    ]
    names = ", ".join(f"{plain_html(mine)} became {plain_html(its)}" for mine, its in why.renamed)
    found, used = (f"{100 * share:.0f} %" for share in (why.found, why.used))
    shares = f"score {why.score:.3f}: {found} of the query found, {used} of the document used"
    caption = f"<figcaption>{shares}{'; ' + names if names else ''}</figcaption>"
    head = f'<caption style="text-align:left"><b>{plain_html(title)}</b></caption>' if title else ""
    table = f'<table style="{_TABLE};width:100%">{head}{"".join(rows)}</table>'
    return HTML(_figure(table, caption))


def _figure(*parts: str) -> str:
    opened = f'<figure class="mirblab-formulas" style="margin:0 0 1em 0"><style>{STYLE}</style>'
    return f"{opened}{''.join(parts)}</figure>"


def rendered(latex: str, why: Explanation | None = None) -> str:
    """Return one formula as HTML, with the matches of *why* marked; a large one as the beginning of its source."""
    tree = parse_latex(latex) if why is None else why.document
    if is_large(tree):
        return source_beginning(latex, _QUIET)
    shown = to_mathml(tree, () if why is None else why.document_nodes, latex=latex)
    size = max(_SMALLEST, _PAGE / max(len(tree), _PAGE))
    return shown if size == 1 else f'<span style="font-size:{size:.2f}em">{shown}</span>'
