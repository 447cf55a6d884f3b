"""statements: what structure search reads of a text in a collection for a proof assistant."""

from __future__ import annotations

import re
from collections.abc import Iterable

from mirblab.formula.formal.metamath import read_metamath
from mirblab.formula.formal.terms import LANGUAGES, read_term
from mirblab.formula.in_text import TextFormulas, is_formal, marked_formulas, number_formulas
from mirblab.formula.latex.parser import parse_latex
from mirblab.formula.operators import operator_tree
from mirblab.formula.tree import OPERANDS, Tree

METAMATH = "Metamath"
READ = (*LANGUAGES, METAMATH)  # the languages whose statements have operator trees
_CODE = re.compile(r"`([^`\n]+)`")


def statement_sources(text: str, language: str, is_statement: bool) -> list[str]:
    """Return what a text in a collection for a proof assistant states: itself, or what a text in prose quotes.

    Prose quotes formulas in LaTeX, which are returned between dollars, and code in the *language* between backticks.

    >>> statement_sources("If $a = b$, then `s.card` is even.", "Lean", is_statement=False)
    ['$a = b$', 's.card']
    """
    if is_statement or is_formal(text) == language:
        return [text] if text.strip() else []
    return [f"${latex}$" for latex, _, _ in marked_formulas(text)] + _CODE.findall(text)


def read_source(source: str, language: str) -> Tree:
    """Return the operator tree of what `statement_sources` returns; it never fails.

    A statement that is nested too deeply for recursion, as none in a library is, is read as a row of its words.
    """
    if source[:1] == "$" == source[-1:]:
        return operator_tree(parse_latex(source[1:-1]))
    try:
        return read_metamath(source) if language == METAMATH else read_term(source, language)
    except RecursionError:
        words = source.split()
        labels = ["W!", *(f"V!{word}" if len(word) == 1 and word.isalpha() else word for word in words)]
        return Tree(labels, [-1] + [0] * len(words), "-" + OPERANDS[-1] * len(words))


def collect_statements(texts: Iterable[str], language: str, is_statement: bool) -> TextFormulas:
    """Return what each of *texts* states or quotes, as `statement_sources` does."""
    return number_formulas(statement_sources(text, language, is_statement) for text in texts)
