"""blueprint_library: the documents of one repository, and which of them a blueprint means by a name."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from mirblab.sources.blueprint_lean import Declaration, Lean
from mirblab.sources.release import Names

_HAVE_MEMBERS = ("structure", "class", "inductive", "class inductive")
MOST = 1000  # characters of a definition; what a longer one says first is what a reader looks at


@dataclass(eq=False)
class Document:
    """A declaration as a document: `text` is its statement, `source` what stands in the file."""

    id: str
    name: str
    kind: str
    text: str
    source: str
    path: str
    repository: str
    is_private: bool = False


class Library:
    """What a repository declares, found by name."""

    def __init__(self, repository: str, leans: Iterable[Lean], odd: Counter[str]) -> None:
        """Make a document of each declaration; one that says the same as another one of its name is left out."""
        self.documents: list[Document] = []
        self._by_name: dict[str, list[Document]] = defaultdict(list)
        self._by_end: dict[str, set[str]] = defaultdict(set)
        self._aliases: dict[str, list[str]] = {}
        ids = Names()
        found = list(leans)
        # A name in a blueprint means the declaration that others can use.
        for declaration in sorted((one for lean in found for one in lean.declarations), key=lambda one: one.is_private):
            self._add(repository, declaration, ids, odd)
        for lean in found:
            self._aliases |= lean.aliases
            odd["instances and other declarations without a name"] += lean.unnamed

    def _add(self, repository: str, found: Declaration, ids: Names, odd: Counter[str]) -> None:
        same = self._by_name[found.name]
        text = cut(found.statement)
        if any(text == document.text for document in same):
            odd["declarations with name and text of another one"] += 1
            return
        odd["declarations with the name of another one (their id ends with #2)"] += bool(same)
        name = ids.new(f"{repository}:{found.name}")
        document = Document(name, found.name, found.kind, text, found.source, found.path, repository, found.is_private)
        same.append(document)
        self.documents.append(document)
        self._by_end[found.name.rpartition(".")[2]].add(found.name)

    def find(self, names: Iterable[str], file: str = "") -> tuple[Document | None, str]:
        """Return the document that one of the *names* means, and how it was found; of several that in *file*.

        Tried are the full name, an alias of it, a field or constructor (the document is then that of the structure),
        and an ending of just one full name.
        """
        names = list(names)
        for name in names:
            if document := self._exact(name, file):
                return document, "exact"
        for name in names:
            for target in self._aliases.get(name, ()):
                if document := self._exact(target, file):
                    return document, "by alias"
        for name in names:
            owner, _, member = name.rpartition(".")
            document = self._exact(owner, file)
            if document and document.kind in _HAVE_MEMBERS and _declares(document.source, member):
                return document, "as a field"
        for name in names:
            ends = [full for full in self._by_end.get(name.rpartition(".")[2], ()) if full.endswith(f".{name}")]
            if len(ends) == 1:
                return self._exact(ends[0], file), "by its ending"
        return None, "not found"

    def _exact(self, name: str, file: str) -> Document | None:
        same = self._by_name.get(name.removeprefix("_root_."), [])
        return next((document for document in same if document.path == file), same[0] if same else None)


def _declares(source: str, member: str) -> bool:
    return re.search(rf"(?:\n\s*|\|\s*|[({{]){re.escape(member)}(?![\w'])", source) is not None


def cut(text: str) -> str:
    """Return the first `MOST` characters of a text, up to a blank.

    >>> len(cut("word " * 400))
    999
    """
    return text if len(text) <= MOST else text[: text.rindex(" ", 0, MOST + 1) if " " in text[:MOST] else MOST]


def from_mathlib(names: Iterable[str], mathlib: Mapping[str, str]) -> Document | None:
    """Return the document of the first of the *names* that mathlib has, given its statements by name.

    >>> from_mathlib(["A.b", "b"], {"b": "theorem b : c"}).id
    'mathlib:b'
    """
    for name in names:
        if name in mathlib:
            text = mathlib[name]
            return Document(f"mathlib:{name}", name, text.split()[0] if text else "", cut(text), text, "", "mathlib")
    return None
