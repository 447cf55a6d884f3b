"""blueprints: repositories of blueprints to collections: informal statement to the Lean declarations that it names."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from mirblab import paths
from mirblab.errors import MirblabError, unknown
from mirblab.sources import blueprint_files, blueprint_mathlib, shape
from mirblab.sources import origin as origins
from mirblab.sources.blueprint_library import Document
from mirblab.sources.blueprint_pairs import Pair
from mirblab.sources.blueprint_read import Blueprint
from mirblab.sources.release import Names
from mirblab.sources.shape import Parts, Row

TITLE = "Blueprints: informal statement to the Lean declarations that it names"
ABOUT: Row = {
    "task": "Semantic Statement Retrieval",
    "instruction": "Given a mathematical statement, retrieve the Lean declarations that formalize it.",
    "note": "Read from text, without Lean: a document is keyword, full name, the variables that Lean would "
    "add, binders and type; of a definition also its body up to the first tactic block, at most 1,000 characters.",
}
MATHLIB = "Apache-2.0"
COLLECTIONS = {
    "blueprints": f"{TITLE}, among all declarations",
    "blueprints-paired": f"{TITLE}, among those that a statement names",
    "blueprints-leaky": f"{TITLE}; docstring, attributes and proof left in, which often repeat the statement",
}


def build(origin: str | Path | None, out: Path, *, names: str | Sequence[str] = "", mathlib: str = "") -> list[Path]:
    """Write the collections of `COLLECTIONS` under *out*, print what was left out, and return their folders.

    *origin* is a folder that holds repositories as folders or archives, or one of them; only the repositories *names*
    are taken when some are given. Statements that name a declaration of mathlib are pairs when *mathlib* is given: a
    collection or JSON lines of its statements, or its source. The folders appear together or not at all; the same
    input gives the same bytes. Raises MirblabError for what cannot be read, and when no statement is left.
    """
    out, chosen = Path(out), re.split(r"[,\s]+", names) if isinstance(names, str) else list(names)
    chosen = [name for name in chosen if name]
    if not origin:
        raise MirblabError("give a folder of repositories with --from, each a folder or a .tar.gz, or one of them")
    options = {"names": ",".join(chosen)} if chosen else {}
    options |= {"mathlib": Path(mathlib).name} if mathlib else {}
    with origins.opened(origin, "the repositories named in this card") as found:
        odd: Counter[str] = Counter()
        read, here = list[Blueprint](), set[str]()
        for repository in blueprint_files.repositories(found, odd):
            here.add(repository.name)
            if not chosen or repository.name in chosen:
                read.append(Blueprint(repository, odd))
        if missing := sorted(set(chosen) - here):
            raise unknown("repository", missing[0], here)
        made = Made(read, mathlib, odd)
        if not made.pairs:
            raise MirblabError(
                f"{found.shown}: {len(read)} repositories, and no statement that names a declaration; "
                f"give others, or check for \\lean{{...}}"
            )
        with origins.together(out, tuple(COLLECTIONS)) as folders:
            for folder in folders:
                about = {"title": COLLECTIONS[folder.name], **ABOUT, **made.about}
                facts = {"builder": "blueprints", "revision": made.revision, "licence": made.licence}
                shape.save(folder, made.parts(folder.name), about, found, **facts, options=options)
    return [out / name for name in COLLECTIONS]


def bundled() -> Parts:
    """Return the collection of the small blueprint that ships with the project.

    >>> [row["_id"] for row in bundled().queries][:2]
    ['q:small:def:double', 'q:small:lem:double-add']
    """
    odd: Counter[str] = Counter()
    repository = blueprint_files.read(paths.bundled("data", "mini", "blueprint"), "small", "", odd)
    return Made([Blueprint(repository, odd)], "", odd).parts("blueprints")


def bundled_files() -> list[Path]:
    """Return the files of the small blueprint from which `bundled` is made."""
    return sorted(path for path in paths.bundled("data", "mini", "blueprint").rglob("*") if path.is_file())


class Made:
    """What the blueprints give together: pairs with the ids of their queries, and documents."""

    def __init__(self, read: Sequence[Blueprint], mathlib: str, odd: Counter[str]) -> None:
        """Pair the statements of each blueprint; what makes no pair is counted in *odd*."""
        wanted = {name for blueprint in read for name in blueprint.missing()} if mathlib else set()
        statements, source = blueprint_mathlib.statements(mathlib, wanted)
        self.pairs, self.cards, self.left_out = dict[str, Pair](), Row(), odd
        ids, used = Names(), list[Blueprint]()
        for blueprint in read:
            found, card = blueprint.pairs(statements, odd)
            if found:
                used.append(blueprint)
                name = blueprint.repository.name
                self.cards[name] = card
                self.pairs |= {ids.new(f"q:{name}:{pair.node.label or pair.node.names[0][0]}"): pair for pair in found}
        odd["repositories in which no statement names a declaration"] += len(read) - len(used)
        self.about = {"repositories": self.cards} | ({"mathlib": source} if source else {})
        licences = {str(card["licence"]) for card in self.cards.values()} | ({MATHLIB} if statements else set())
        self.licence = ", ".join(sorted(licences))
        content = repr([(name, card["content"]) for name, card in self.cards.items()]) + repr(statements)
        self.revision = f"blake2b:{hashlib.blake2b(content.encode(), digest_size=16).hexdigest()}"
        self._choose(used)

    def _choose(self, used: Sequence[Blueprint]) -> None:
        """Set the documents: those that a statement names, and all others that are not private."""
        self._paired = {one.id: one for pair in self.pairs.values() for one in pair.documents}
        declared = {one.id: one for blueprint in used for one in blueprint.library.documents}
        self._all = {key: one for key, one in declared.items() if key in self._paired or not one.is_private}
        self._private = len(declared) - len(self._all)
        self._all |= self._paired

    def parts(self, name: str) -> Parts:
        """Return one of the `COLLECTIONS`."""
        everything, left_out = name == "blueprints", self.left_out.copy()
        left_out["private declarations that no statement names"] = self._private * everything
        chosen = [one for one in self._all.values() if everything or one.id in self._paired]
        corpus = [self._document(one, name == "blueprints-leaky") for one in chosen]
        judged = [(query, one.id, 1) for query, pair in self.pairs.items() for one in pair.documents]
        return Parts(corpus, [_query(*item) for item in self.pairs.items()], {"test": judged}, left_out)

    def _document(self, one: Document, leaky: bool) -> Row:
        about = {"repo": one.repository, "kind": one.kind, "path": one.path, "paired": one.id in self._paired}
        return {"_id": one.id, "title": "", "text": one.source if leaky else one.text, "metadata": about}


def _query(name: str, pair: Pair) -> Row:
    node = pair.node
    about = {"repo": name.split(":")[1], "title": node.title, "source": node.source, "kind": node.kind}
    words = set(re.findall(r"[\w']{2,}", node.text))
    named = any(one.name.rpartition(".")[2] in words for one in pair.documents)
    in_mathlib = any(one.repository == "mathlib" for one in pair.documents)
    about |= {"file": node.file, "names_decl": named, "in_mathlib": in_mathlib}
    return {"_id": name, "text": node.text, "metadata": about}
