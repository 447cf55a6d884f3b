"""texts: how the formulas of a collection's texts are read, which document has which, and how many have none."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mirblab.collection import Collection
from mirblab.formula import posts
from mirblab.formula.formal import language as formal_language

FORMULA_TASK = "Formula Retrieval"
_IN_CONTEXT = re.compile(r"\s*Formula:\s*(?P<formula>.*?)\s*(?:Context:.*)?", re.DOTALL)
_DELIMITERS = ("$", "\\(", "\\[", "math]")
_OPENS = re.compile(r"(\$+|\\[(\[]|\[i?math\])\s*\Z")
_CLOSES = re.compile(r"\s*(\$+|\\[)\]]|\[/i?math\])")
_MATHS = re.compile(r"[\\^_={}&+<>]")
_WORD = re.compile(r"(?<![\\A-Za-z{])[A-Za-z]{4,}")
_MOST_WORDS = 2
_ENOUGH, _MOST = 1000, 0.9  # texts that are looked at, and the share of them that must be formulas


@dataclass(frozen=True, slots=True)
class Owned:
    """The distinct formulas of some texts, in order of first appearance, and where they are.

    The formulas of text i are `numbers[starts[i] : starts[i + 1]]`, positions in `formulas`, as often as it has them.
    """

    formulas: list[str]
    numbers: np.ndarray
    starts: np.ndarray

    @property
    def is_single(self) -> bool:
        """Return whether no text has more than one formula."""
        return bool(np.diff(self.starts).max(initial=0) <= 1)

    def column(self) -> list[str]:
        """Return the formula of each text, empty where there is none, when no text has several."""
        sizes, first = np.diff(self.starts).tolist(), self.starts.tolist()
        return [self.formulas[self.numbers[at]] if size else "" for size, at in zip(sizes, first, strict=False)]

    def best(self, scores: np.ndarray) -> np.ndarray:
        """Return for each text the largest of the scores of its formulas, 0 for a text without any; float32."""
        found = np.zeros(len(self.starts) - 1, dtype=np.float32)
        filled = np.flatnonzero(np.diff(self.starts))
        if len(filled):
            found[filled] = np.maximum.reduceat(scores[self.numbers], self.starts[filled])
        return found

    def take(self, places: np.ndarray) -> Owned:
        """Return the formulas of the texts at *places*, in that order, with the same numbers.

        >>> owned(["$x$", "$y$ $z$"], bare=False).take(np.array([1])).numbers.tolist()
        [1, 2]
        """
        sizes = np.diff(self.starts)[places]
        starts = np.concatenate([[0], np.cumsum(sizes)])
        rows = np.arange(starts[-1]) + np.repeat(self.starts[places] - starts[:-1], sizes)
        return Owned(self.formulas, self.numbers[rows], starts)


@dataclass(frozen=True, slots=True)
class Reader:
    """How formulas are read from the documents, or the queries, of a collection: decided once for all of its texts.

    `is_bare`: each text is one formula. `language`: the proof assistant whose language the texts are in, "" for none;
    in such a language a dollar or a backslash is no LaTeX, so that there is no formula.
    """

    is_bare: bool
    language: str = ""

    @classmethod
    def of(cls, collection: Collection, role: str = "document") -> Reader:
        """Return the reader of a collection's documents, or with *role* "query" of its queries.

        >>> from mirblab.shelf import load
        >>> Reader.of(load("mini-hol")), Reader.of(load("mini-wfb"), "query")
        (Reader(is_bare=False, language='HOL'), Reader(is_bare=True, language=''))
        """
        card = collection.card
        if card.task == FORMULA_TASK:
            return cls(is_bare=True)
        of_documents = card.language or formal_language(collection.texts)
        is_bare = not of_documents and are_formulas(card.task, collection.texts)
        if role == "document":
            return cls(is_bare, of_documents)
        return cls(is_bare, card.language or formal_language(collection.query_texts))

    def formulas(self, text: str) -> list[str]:
        """Return the LaTeX of the formulas in a text, as the function `formulas` does; none in a proof assistant's."""
        return [] if self.language else formulas(text, self.is_bare)

    def owned(self, texts: Sequence[str]) -> Owned:
        """Return the formulas of *texts*, as the function `owned` does."""
        return owned([""] * len(texts) if self.language else texts, self.is_bare)


def language(collection: Collection) -> str:
    """Return the proof assistant whose language a collection's documents are in, or else its queries; "" for none.

    >>> from mirblab.shelf import load
    >>> [language(load(name)) for name in ("mini-lean", "mini-views-signature-informal", "mini-qa")]
    ['Lean', 'Lean', '']
    """
    return Reader.of(collection).language or Reader.of(collection, "query").language


def lack(queries: Sequence[bool], documents: Sequence[bool], language: str = "") -> dict[str, Any]:
    """Return what the attrs of a run say of texts in which the system found no formula.

    *queries* and *documents* say of each text whether there is one. `no_formula` has the four counts; where most
    queries or most documents have none, `note` says so, and what became of code in a *language* that was read as words.

    >>> lack([True, True], [False, False, True])["note"]
    'no formula in 0 of 2 queries and 2 of 3 documents'
    >>> lack([True, True], [True, True, True])
    {'no_formula': {'queries': [0, 2], 'documents': [0, 3]}}
    """
    counts = {"queries": _without(queries), "documents": _without(documents)}
    found: dict[str, Any] = {"no_formula": counts}
    if any(2 * n_lacking > n_texts for n_lacking, n_texts in counts.values()):
        said = " and ".join(f"{n:,} of {total:,} {what}" for what, (n, total) in counts.items())
        found["note"] = f"no formula in {said}{f'; texts in {language} are read as words' if language else ''}"
    return found


def _without(has_formula: Sequence[bool]) -> list[int]:
    return [len(has_formula) - int(np.count_nonzero(has_formula)), len(has_formula)]


def are_formulas(task: str, texts: Sequence[str]) -> bool:
    """Return whether each of a collection's texts is one formula: what the *task* says, else how most of them look.

    >>> are_formulas("", ["x^2", "a_1+b"]), are_formulas("", ["Let $x$ be 1.", "n"]), are_formulas("Why?", ["x^2"])
    (True, False, False)
    """
    if task:
        return task == FORMULA_TASK
    looked_at = [text for text in texts[:: max(1, len(texts) // _ENOUGH)] if text.strip()]
    alone = sum(
        (bool(_MATHS.search(text)) or len(text.split()) == 1) and not _marked(text) and not _is_prose(text)
        for text in looked_at
    )
    return bool(looked_at) and alone >= _MOST * len(looked_at)


def _is_prose(text: str) -> bool:
    """Return whether a text has several words that are neither commands nor in braces, as names and texts are."""
    return len(_WORD.findall(text)) > _MOST_WORDS


def formulas(text: str, bare: bool) -> list[str]:
    r"""Return the LaTeX of the formulas in a text; with *bare* those of a collection whose texts are formulas.

    A bare text is one formula unless it marks its formulas by delimiters; of "Formula: ... Context: ..." it is the
    first part. Elsewhere only what is marked is a formula.

    >>> formulas(r"x^2 + \text{if $x$ is odd}", bare=True), formulas("$x$ and $y$", bare=True)
    (['x^2 + \\text{if $x$ is odd}'], ['x', 'y'])
    >>> formulas("Formula: a+b Context: Let $a$ be one.", bare=True), formulas("Why?", bare=False)
    (['a+b'], [])
    """
    if not bare:
        return [latex for latex, _, _ in posts.formulas(text)]
    if text.startswith("Formula:") and (match := _IN_CONTEXT.fullmatch(text)) is not None:
        text = match["formula"]
    return _marked(text) or ([text] if text.strip() else [])


def owned(texts: Iterable[str], bare: bool) -> Owned:
    """Return the formulas of *texts*, found as `formulas` does.

    >>> found = owned(["$x$ and $y$", "", "$y$"], bare=False)
    >>> found.formulas, found.numbers.tolist(), found.starts.tolist()
    (['x', 'y'], [0, 1, 1], [0, 2, 2, 3])
    """
    known: dict[str, int] = {}
    numbers: list[int] = []
    starts = [0]
    for text in texts:
        numbers += [known.setdefault(latex, len(known)) for latex in formulas(text, bare)]
        starts.append(len(numbers))
    return Owned(list(known), np.array(numbers, dtype=np.int64), np.array(starts, dtype=np.int64))


def _marked(text: str) -> list[str]:
    """Return the formulas that delimiters mark in a text; none where what is between them is mathematics, too.

    A dollar may stand inside of a formula: in a text, or in what LaTeXML writes for an equation array; and an
    environment needs no delimiter.
    """
    if not any(delimiter in text for delimiter in _DELIMITERS):
        return []
    found, last = posts.formulas(text), 0
    for _, start, end in found:
        before = text[last:start]
        delimiter = _OPENS.search(before)
        if delimiter is None or _MATHS.search(_CLOSES.sub("", before[: delimiter.start()], count=1)):
            return []
        last = end
    return [] if _MATHS.search(_CLOSES.sub("", text[last:], count=1)) else [latex for latex, _, _ in found]
