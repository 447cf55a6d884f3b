"""statements: what structure search reads of a text in a collection for a proof assistant."""

from __future__ import annotations

import re
from dataclasses import dataclass

from mirblab.data.collection import Collection
from mirblab.formula.formal.metamath import read_metamath
from mirblab.formula.formal.terms import LANGUAGES, read_term
from mirblab.formula.in_text import FormulaReader, TextFormulas, is_formal, marked_formulas, number_formulas
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


@dataclass(frozen=True, slots=True)
class FormulaSource:
    """What is read of a collection's documents and queries: formulas, or statements where `language` is one of `READ`.

    `of_documents` and `of_queries` are the readers of formulas; they name the language of either.
    """

    of_documents: FormulaReader
    of_queries: FormulaReader
    language: str

    @classmethod
    def of(cls, collection: Collection) -> FormulaSource:
        """Return how the texts of a collection are read."""
        of_documents, of_queries = FormulaReader.of(collection), FormulaReader.of(collection, "query")
        language = of_documents.language or of_queries.language
        return cls(of_documents, of_queries, language if language in READ else "")

    def documents(self, collection: Collection) -> TextFormulas:
        """Return what each document has; the title of a statement, which is its name, is no part of it."""
        if not self.language:
            return self.of_documents.owned(collection.texts)
        is_statement, texts = bool(self.of_documents.language), collection.texts
        if is_statement:
            bodies = collection.corpus.text.astype(str).tolist()
            texts = [body if body.strip() else text for body, text in zip(bodies, texts, strict=True)]
        return number_formulas(statement_sources(text, self.language, is_statement) for text in texts)

    def query(self, text: str) -> list[str]:
        """Return what a query asks for: its formulas in LaTeX, or what it states or quotes."""
        if not self.language:
            return self.of_queries.formulas(text)
        return statement_sources(text, self.language, bool(self.of_queries.language))

    def tree(self, formula: str) -> str | Tree:
        """Return a formula as it is indexed: LaTeX as it is, what is stated or quoted as an operator tree."""
        return read_source(formula, self.language) if self.language else formula
