"""engines: systems that are searched live, a query at a time, over indexes and vectors that are made once."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import repeat
from typing import Any, Protocol

from mirblab import dense, encode, late_search, lexical, recipes
from mirblab.collection import Collection
from mirblab.explorer import highlights
from mirblab.explorer.ranking import Asked, Ranking, candidates
from mirblab.formula import search as structure
from mirblab.late import Ragged
from mirblab.late_shrink import Shrink
from mirblab.late_tokens import token_rows
from mirblab.prose import Mark

_IN_MEMORY = 1 << 29  # bytes of token vectors; more stay on disk, where a search takes seconds


class Engine(Protocol):
    """A system over one collection, made ready once."""

    making: str  # what is made before the first search, for who waits
    marked: str  # what `marks` marks, "" for nothing

    def prepare(self) -> None:
        """Make what every search needs."""

    def search(self, asked: Asked, depth: int) -> Ranking:
        """Return at most *depth* documents, best first."""

    def marks(self, asked: Asked, positions: Sequence[int]) -> list[list[Mark]]:
        """Return for each document which characters of its text matched, and how strongly."""


class Words:
    """BM25 of any kind."""

    making, marked = "an index of its terms", "terms that match, the stronger the more they add to the score"

    def __init__(self, collection: Collection, settings: dict[str, Any]) -> None:
        self.collection, self.options = collection, recipes.options(settings)
        self.options.pop("engine", None)

    @cached_property
    def _ready(self) -> lexical.Prepared:
        return lexical.Prepared.of(self.collection, **self.options)

    def prepare(self) -> None:
        """Index the corpus."""
        self._ready.search(["x"], 1)

    def search(self, asked: Asked, depth: int) -> Ranking:
        """Search the index."""
        return Ranking(*self._ready.search([asked.text], depth, candidates(self.collection, asked))[1:])

    def marks(self, asked: Asked, positions: Sequence[int]) -> list[list[Mark]]:
        """Mark terms by what they add to the score."""
        name = self._ready.settings["tokenizer"]
        found = []
        for position in positions:
            parts = self._ready.explain(asked.text, self.collection.doc_ids[position])
            gains = dict(zip(parts.term, parts.contribution, strict=True))
            found.append(highlights.terms(self.collection.texts[position], gains, name))
        return found


class Vectors:
    """One vector for a text: nothing says what matched."""

    making, marked = "vectors of all documents", ""

    def __init__(self, collection: Collection, settings: dict[str, Any]) -> None:
        self.collection = collection
        self.model = encode.encoder(settings["encoder"], settings.get("compat", ""))

    @cached_property
    def _documents(self) -> Any:
        return self.model.vectors(self.collection.texts, "document", self.collection.card.instruction)

    def prepare(self) -> None:
        """Encode the corpus, or read its vectors."""
        self._documents  # noqa: B018  made here

    def search(self, asked: Asked, depth: int) -> Ranking:
        """Encode the query, and compare it with every document."""
        instruction = self.collection.card.instruction
        if asked.row is None:
            query = self.model.unstored(asked.text, "query", instruction)
        else:
            query = self.model.vectors([asked.text], "query", instruction)
        allowed = candidates(self.collection, asked)
        return Ranking(*dense.search(query, self._documents, depth=depth, candidates=allowed)[1:])

    def marks(self, asked: Asked, positions: Sequence[int]) -> list[list[Mark]]:
        """Mark nothing."""
        return [[] for _ in positions]


class Tokens:
    """Late interaction: a vector for each token."""

    making = "token vectors of all documents"

    def __init__(self, collection: Collection, settings: dict[str, Any]) -> None:
        found = recipes.options(settings)
        self.collection = collection
        self.model = encode.encoder(found["encoder"], found.get("compat", ""))
        self.shrink = Shrink(*(found.get(key, usual) for key, usual in (("dimensions", 0), ("factor", 1), ("seed", 0))))
        # Where tokens were pooled no row is a token.
        self.marked = "" if self.shrink.factor > 1 else "tokens that answer a token of the query, by their cosine"

    @cached_property
    def _documents(self) -> Any:
        rows = self._rows(self.collection.texts, "document")
        if 4 * rows.dimensions * int(rows.lengths.sum()) > _IN_MEMORY:
            return rows
        return Ragged(rows.block(0, len(rows.lengths)), rows.lengths)

    def _rows(self, texts: Sequence[str], role: str) -> Any:
        return token_rows(self.model, texts, role, self.collection.card.instruction, self.shrink)

    def _asked(self, asked: Asked) -> Any:
        """Return the token vectors of a query; those of free text are not kept."""
        if asked.row is not None:
            return self._rows([asked.text], "query")
        shrink, made = self.shrink.of("query"), self.model.token_vectors
        found = made([asked.text], "query", self.collection.card.instruction)
        return Ragged.of([shrink(found[0]) if shrink.name else found[0]])

    def prepare(self) -> None:
        """Encode the corpus, or open its vectors."""
        self._documents  # noqa: B018  made here

    def search(self, asked: Asked, depth: int) -> Ranking:
        """Encode the query, and compare its tokens with those of every document."""
        query, allowed = self._asked(asked), candidates(self.collection, asked)
        return Ranking(*late_search.search(query, self._documents, depth=depth, candidates=allowed)[1:])

    def marks(self, asked: Asked, positions: Sequence[int]) -> list[list[Mark]]:
        """Mark the tokens that are the best for a token of the query."""
        if not self.marked:
            return [[] for _ in positions]
        query, texts = self._asked(asked).block(0, 1), [self.collection.texts[at] for at in positions]
        tokens = self.model.tokens(texts, "document", self.collection.card.instruction)
        rows = [self._documents.block(at, at + 1) for at in positions]
        return [highlights.tokens(*each, query) for each in zip(texts, tokens, rows, strict=True)]


class Formulas:
    """Structure search."""

    making, marked = "an index of its formulas", "parts of formulas that agree with the query's"

    def __init__(self, collection: Collection, settings: dict[str, Any]) -> None:
        self.collection, self.options = collection, recipes.options(settings)

    @cached_property
    def _ready(self) -> structure.Prepared:
        return structure.Prepared.of(self.collection)

    def prepare(self) -> None:
        """Read and index all formulas."""
        self._ready  # noqa: B018  made here

    def search(self, asked: Asked, depth: int) -> Ranking:
        """Search the index; a query without a formula finds nothing."""
        allowed = candidates(self.collection, asked)
        return Ranking(*self._ready.search([asked.text], depth, allowed, **self.options)[1:])

    def marks(self, asked: Asked, positions: Sequence[int]) -> list[list[Mark]]:
        """Mark the parts of formulas that the query has, too."""
        queries = self._ready.reader.formulas(asked.text)
        pairs = highlights.nearest(self._ready, queries, positions)
        texts = (self.collection.texts[at] for at in positions)
        return [
            highlights.formulas(*each, self._ready.index) for each in zip(texts, repeat(queries), pairs, strict=False)
        ]
