"""statements: what structure search reads of a text in a collection for a proof assistant."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, lru_cache, partial

from mirblab.data.collection import Collection
from mirblab.formula.formal.metamath import read_metamath
from mirblab.formula.formal.terms import LANGUAGES, read_term
from mirblab.formula.in_text import (
    STOP_WORDS,
    FormulaReader,
    TextFormulas,
    count_prose_words,
    english_stemmer,
    has_marked_formula,
    is_formal,
    looks_like_rocq,
    marked_formulas,
    number_formulas,
    split_at_formulas,
)
from mirblab.formula.latex.parser import LOWERED, parse_latex
from mirblab.formula.operators import operator_tree
from mirblab.formula.tree import OPERANDS, Tree

METAMATH = "Metamath"
READ = (*LANGUAGES, METAMATH)  # the languages whose statements have operator trees
_CODE = re.compile(r"`([^`\n]+)`")
_QUOTED = re.compile(r"(?<![^\s(])`(?=\S)[^`\n]*\w[^`\n]*(?<=\S)`(?![\w`])")
_NAME = re.compile(r"[^\W\d][\w']+|\d+")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_A-Za-z]+")
# Words of the languages, which say nothing of what a statement is about.
_RESERVED = frozenset("Prop Sort Type abbrev class def exists forall fun in instance lemma structure theorem".split())
_PARTS_FOLLOW = "\0"  # stands before parts of names, and in no text
# What LaTeX and statements call differently: sets of numbers are no variables there, and one arrow implies.
_STATED = {f"V!{letter}": letter for letter in "ℕℤℚℝℂ"} | {"O!iff": "F!↔", "O!implies": "F!→", "O!maps-to": "O!lambda"}
_SUBSCRIPTS = str.maketrans({digit: sign for sign, digit in LOWERED.items()})
_NAMES = "?names"  # the root of their tree: a wildcard, so that it has no token
_stemmer = cache(english_stemmer)


def statement_sources(text: str, language: str, is_statement: bool) -> list[str]:
    """Return what a text in a collection for a proof assistant states: itself, or what a text in prose quotes.

    Prose quotes formulas in LaTeX, which are returned between dollars, and code in the *language* between backticks.

    >>> statement_sources("If $a = b$, then `s.card` is even.", "Lean", is_statement=False)
    ['$a = b$', 's.card']
    """
    if is_statement or _is_stated(text, language):
        return [text] if text.strip() else []
    return [f"${latex}$" for latex, _, _ in marked_formulas(text)] + _CODE.findall(text)


def _is_stated(text: str, language: str) -> bool:
    return is_formal(text) == language and not is_quoting(text)


def is_quoting(text: str) -> bool:
    """Return whether a text is prose that quotes a formula between delimiters, or code between backticks.

    Backticks are signs of Rocq and Metamath as well, and so there must be words of prose and no blank at their insides.

    >>> is_quoting("the sum $a + b$ is $b + a$"), is_quoting("`|x| <= `|y|"), is_quoting("what does `s.card` say")
    (True, False, True)
    """
    without, n_quoted = _QUOTED.subn(" ", text)
    if n_quoted and count_prose_words(without) > 1 and not is_formal(without) and not looks_like_rocq(text):
        return True
    return not is_formal(text) and has_marked_formula(text)


def name_parts(text: str, *, stem: bool = False) -> list[str]:
    r"""Return as one source the parts of the names in a statement or of its own name; none where there are no names.

    Libraries make names of the words for what a statement says, and so the words and numbers of prose are names of one
    part. Each name counts once; its parts are in lower case and have two characters at least, and with *stem* are
    reduced to their stems (Snowball English). `read_source` makes leaves of them.

    >>> name_parts("theorem Finset.sum_comm : Eq1648 x = mulrC"), name_parts("Sums commute.", stem=True)
    (['\x00finset sum comm eq 1648 mulr'], ['\x00sum commut'])
    """
    names = [name for name in dict.fromkeys(_NAME.findall(text)) if name not in _RESERVED]
    parts = " ".join(filter(None, (_parts(name, stem) for name in names)))
    return [_PARTS_FOLLOW + parts] if parts else []


@lru_cache(maxsize=1 << 16)
def _parts(name: str, stem: bool) -> str:
    reduce = _stemmer() if stem else str
    return " ".join(reduce(part.lower()) for part in _PART.findall(name) if len(part) > 1)


def _words(text: str) -> str:
    """Return the words of a text in prose outside of formulas between delimiters and code between backticks."""
    prose = _CODE.sub(" ", " ".join(split_at_formulas(text)[::2]))
    return " ".join(word for word in _NAME.findall(prose) if word.lower() not in STOP_WORDS)


def read_source(source: str, language: str) -> Tree:
    """Return the operator tree of what `statement_sources` or `name_parts` returns; it never fails.

    A statement that is nested too deeply for recursion, as none in a library is, is read as a row of its words.
    """
    if source[:1] == _PARTS_FOLLOW:
        return _row(_NAMES, [f"T!{part}" for part in source[1:].split()])
    if len(source) > 1 and source[0] == "$" == source[-1]:
        tree = operator_tree(parse_latex(source[1:-1]))
        return tree if language == METAMATH else _as_stated(tree)
    try:
        return read_metamath(source) if language == METAMATH else read_term(source, language)
    except RecursionError:
        return _row("W!", [f"V!{word}" if len(word) == 1 and word.isalpha() else word for word in source.split()])


def _as_stated(tree: Tree) -> Tree:
    """Return the tree of a LaTeX formula as statements have it: with their labels, and with the variable x₁ for x_1."""
    labels, parents = [_STATED.get(label, label) for label in tree.labels], tree.parents
    joined = {node for node in range(len(tree)) if _is_numbered(labels, parents, node)}
    for node in joined:
        labels[node] = labels[node + 1] + labels[node + 2].removeprefix("N!").translate(_SUBSCRIPTS)
    kept = [node for node, parent in enumerate(parents) if parent not in joined]
    places = {node: place for place, node in enumerate(kept)} | {-1: -1}
    parents = [places[parents[node]] for node in kept]
    return Tree([labels[node] for node in kept], parents, "".join(tree.relations[node] for node in kept))


def _is_numbered(labels: list[str], parents: list[int], node: int) -> bool:
    """Return whether a node is a variable with a number as its subscript, with two leaves and no other descendant."""
    if labels[node] != "O!SUB" or parents[node + 1 : node + 3] != [node, node]:
        return False
    variable, number = labels[node + 1 : node + 3]
    is_last = all(parent < node for parent in parents[node + 3 : node + 4])
    return is_last and variable.startswith("V!") and re.fullmatch(r"N![0-9]+", number) is not None


def is_names(tree: Tree) -> bool:
    """Return whether a tree is that of parts of names."""
    return tree.labels[0] == _NAMES


def _row(root: str, labels: list[str]) -> Tree:
    return Tree([root, *labels], [-1] + [0] * len(labels), "-" + OPERANDS[0] * len(labels))


@dataclass(frozen=True, slots=True)
class FormulaSource:
    """What is read of a collection's documents and queries: formulas, or statements where `language` is one of `READ`.

    `of_documents` and `of_queries` are the readers of formulas; they name the language of either.

    >>> from mirblab.sources.catalogue import load
    >>> source = FormulaSource.of(load("mini-lean"))
    >>> source.language, source.tree("a b : ℕ ⊢ a = b").labels
    ('Lean', ['O!forall', 'ℕ', 'U!eq', 'V!a', 'V!b'])
    """

    of_documents: FormulaReader
    of_queries: FormulaReader
    language: str

    @property
    def has_prose(self) -> bool:
        """Return whether the documents or the queries are in prose where the others are statements."""
        return bool(self.language) and not (self.of_documents.language and self.of_queries.language)

    @classmethod
    def of(cls, collection: Collection) -> FormulaSource:
        """Return how the texts of a collection are read."""
        of_documents, of_queries = FormulaReader.of(collection), FormulaReader.of(collection, "query")
        language = of_documents.language or of_queries.language
        return cls(of_documents, of_queries, language if language in READ else "")

    def documents(self, collection: Collection, *, named: bool = False) -> TextFormulas:
        """Return what each document has; the title of a statement, which is its name, is no part of it.

        *named*: of statements and code also the parts of their names, the title among them, and of prose its words (not
        in Metamath).
        """
        if not self.language:
            return self.of_documents.owned(collection.texts)
        is_statement, texts = bool(self.of_documents.language), collection.texts
        titles = [""] * len(texts)
        if is_statement:
            bodies, titles = (collection.corpus[column].astype(str).tolist() for column in ("text", "title"))
            texts = [body if body.strip() else text for body, text in zip(bodies, texts, strict=True)]
        return number_formulas(map(partial(self._read, is_statement=is_statement, named=named), texts, titles))

    def query(
        self, text: str, *, named: bool = False, is_document: bool = False, title: str | None = None
    ) -> list[str]:
        """Return what a query asks for: its formulas in LaTeX, or what it states or quotes; *named* as of documents.

        *is_document*: it is written as the documents are. *title* is that of a document, "" for none; None: the text
        is a query, which is prose where it quotes something, also where the collection's queries are statements.
        """
        reader = self.of_documents if is_document else self.of_queries
        if not self.language:
            return reader.formulas(text)
        is_statement = bool(reader.language) and (title is not None or not is_quoting(text))
        name = title or "" if is_statement else ""
        body = text.removeprefix(name).strip() or text
        return self._read(body, name, is_statement=is_statement, named=named)

    def _read(self, text: str, title: str, *, is_statement: bool, named: bool) -> list[str]:
        is_statement = is_statement or _is_stated(text, self.language)
        found = statement_sources(text, self.language, is_statement)
        if named and self.language != METAMATH:
            code = [source for source in found if source[:1] != "$"]
            names = " ".join([title, *code, "" if is_statement else _words(text)])
            found += name_parts(names, stem=self.has_prose)
        return found

    def tree(self, formula: str) -> str | Tree:
        """Return a formula as it is indexed: LaTeX as it is, what is stated or quoted as an operator tree."""
        return read_source(formula, self.language) if self.language else formula
