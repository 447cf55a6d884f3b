"""build: Lean blueprints as collections of informal and formal statements."""

from __future__ import annotations

import difflib
import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mirblab.core import paths
from mirblab.core.errors import MirblabError, unknown
from mirblab.sources.blueprints import lean_source, nodes
from mirblab.sources.blueprints import repository as blueprints_repository
from mirblab.sources.blueprints.lean_source import Declaration, LeanFile
from mirblab.sources.blueprints.nodes import Node
from mirblab.sources.blueprints.repository import Repository
from mirblab.sources.shared import builder, release
from mirblab.sources.shared.builder import CollectionRows, Row, UniqueIds, fold_text

_HAVE_MEMBERS = ("structure", "class", "inductive", "class inductive")
MOST = 1000  # characters of a definition; what a longer one says first is what a reader looks at
FEWEST = 4  # words of a statement that says something
RUN = 6  # words of a statement that no document of it may hold in a row
SAME = 0.9  # how alike, by difflib, are two texts of which one is the other with a misprint
_WORD = re.compile(r"[^\W\d_]{2,}")
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


@dataclass(eq=False)
class Document:
    """A declaration as a document: `text` is its statement, `source` its text in the file."""

    id: str
    name: str
    kind: str
    text: str
    source: str
    path: str
    repository: str
    is_private: bool = False


@dataclass
class Pair:
    """A statement with the declarations that it names; `sources` are the formats in which it stands."""

    node: Node
    documents: list[Document] = field(default_factory=list)
    sources: set[str] = field(default_factory=set)

    def add(self, document: Document) -> None:
        """Take in a declaration, once."""
        if document not in self.documents:
            self.documents.append(document)


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
    with release.open_origin(origin, "the repositories named in this card") as found:
        odd: Counter[str] = Counter()
        read, here = list[Blueprint](), set[str]()
        for repository in blueprints_repository.read_repositories(found, odd):
            here.add(repository.name)
            if not chosen or repository.name in chosen:
                read.append(Blueprint(repository, odd))
        if missing := sorted(set(chosen) - here):
            raise unknown("repository", missing[0], here)
        made = BlueprintCollections(read, mathlib, odd)
        if not made.pairs:
            raise MirblabError(
                f"{found.shown}: {len(read)} repositories, and no statement that names a declaration; "
                f"give others, or check for \\lean{{...}}"
            )
        with builder.replace_folders(out, tuple(COLLECTIONS)) as folders:
            for folder in folders:
                about = {"title": COLLECTIONS[folder.name], **ABOUT, **made.about}
                facts = {"builder": "blueprints", "revision": made.revision, "licence": made.licence}
                builder.write_collection(folder, made.parts(folder.name), about, found, **facts, options=options)
    return [out / name for name in COLLECTIONS]


def bundled_collection() -> CollectionRows:
    """Return the collection of the small blueprint that ships with the project.

    >>> [row["_id"] for row in bundled_collection().queries][:2]
    ['q:small:def:double', 'q:small:lem:double-add']
    """
    odd: Counter[str] = Counter()
    repository = blueprints_repository.read_repository(
        paths.bundled_path("data", "mini", "blueprint"), "small", "", odd
    )
    return BlueprintCollections([Blueprint(repository, odd)], "", odd).parts("blueprints")


def bundled_files() -> list[Path]:
    """Return the files of the small blueprint from which `bundled_collection` is made."""
    return sorted(path for path in paths.bundled_path("data", "mini", "blueprint").rglob("*") if path.is_file())


class BlueprintCollections:
    """What the blueprints give together: pairs with the ids of their queries, and documents."""

    def __init__(self, read: Sequence[Blueprint], mathlib: str, odd: Counter[str]) -> None:
        """Pair the statements of each blueprint; what makes no pair is counted in *odd*."""
        wanted = {name for blueprint in read for name in blueprint.missing()} if mathlib else set()
        statements, source = nodes.read_mathlib_statements(mathlib, wanted)
        self.pairs, self.cards, self.left_out = dict[str, Pair](), Row(), odd
        ids, used = UniqueIds(), list[Blueprint]()
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

    def parts(self, name: str) -> CollectionRows:
        """Return one of the `COLLECTIONS`."""
        everything, left_out = name == "blueprints", self.left_out.copy()
        left_out["private declarations that no statement names"] = self._private * everything
        chosen = [one for one in self._all.values() if everything or one.id in self._paired]
        corpus = [self._document(one, name == "blueprints-leaky") for one in chosen]
        judged = [(query, one.id, 1) for query, pair in self.pairs.items() for one in pair.documents]
        return CollectionRows(corpus, [_query(*item) for item in self.pairs.items()], {"test": judged}, left_out)

    def _document(self, one: Document, leaky: bool) -> Row:
        about = {"repo": one.repository, "kind": one.kind, "path": one.path, "paired": one.id in self._paired}
        return {"_id": one.id, "title": "", "text": one.source if leaky else one.text, "metadata": about}


class Blueprint:
    """The content of a repository: the `nodes` of its blueprint, in all formats, and the `library` of declarations."""

    def __init__(self, repository: Repository, odd: Counter[str]) -> None:
        """Read all files of a repository; what is odd in them is counted."""
        self.repository = repository
        self.nodes: list[Node] = []
        leans: list[LeanFile] = []
        verso: list[Node] = []
        known = nodes.statement_environments(repository.latex.values())
        for path, source in repository.latex.items():
            self.nodes += nodes.read_latex_nodes(source, known, path, odd)
        for path, code in repository.lean.items():
            lean = lean_source.read_lean(code)
            told, more = nodes.read_verso_nodes(code[lean_source.find_prose(code) :], known, path, odd)
            self.nodes += nodes.read_attribute_nodes(lean, path, odd)
            verso += told
            for found in (lean, *more):
                for declaration in found.declarations:
                    declaration.path = path
                leans.append(found)
        # Of a statement in several formats the first is kept: LaTeX, then attributes, then Verso.
        self.nodes += verso
        self.library = Library(repository.name, leans, odd)

    def missing(self) -> set[str]:
        """Return what the names may stand for that the repository does not declare."""
        names = (names for node in self.nodes for names in node.names if self.library.find(names)[0] is None)
        return {name for each in names for name in each}

    def pairs(self, mathlib: Mapping[str, str], left_out: Counter[str]) -> tuple[list[Pair], Row]:
        """Return the statements with their declarations, and what the card says of the repository."""
        found: Counter[str] = Counter()
        made = pair_statements(self.nodes, self.library, mathlib, found, left_out)
        left_out["names that no file declares (mathlib's, of another library, or out of date)"] += found["not found"]
        names = {how: count for how, count in sorted(found.items()) if count}
        counts = {"declarations": len(self.library.documents), "nodes": len(self.nodes), "queries": len(made)}
        about = {"commit": self.repository.commit, "licence": self.repository.licence}
        return made, {**about, "content": self.repository.digest, **counts, "names": names}


def pair_statements(
    nodes: Iterable[Node], library: Library, mathlib: Mapping[str, str], found: Counter[str], left_out: Counter[str]
) -> list[Pair]:
    """Return the statements of one repository that make queries, in order.

    Nodes with one label are one statement, unless one format has two texts for it, as are those in two formats that
    name the same declarations, and those with the same text. *found* counts how names were found, *left_out* what
    makes no query, and why.
    """
    told: list[Pair] = []
    for pair in _in_one_format(_by_label(nodes, library, mathlib, found, left_out), left_out):
        words = len(pair.node.text.split())
        if not pair.documents:
            left_out["statements none of whose declarations is found"] += 1
        elif words < FEWEST:
            left_out[f"statements under {FEWEST} words" if words else "nodes without a statement"] += 1
        else:
            told.append(pair)
    kept: dict[str, Pair] = {}
    for pair in told:
        first = kept.setdefault(fold_text(pair.node.text), pair)
        left_out["statements with the text of another one (merged)"] += first is not pair
        for document in pair.documents:
            first.add(document)
    return [pair for pair in kept.values() if _without_leaks(pair, left_out)]


def _by_label(
    nodes: Iterable[Node], library: Library, mathlib: Mapping[str, str], found: Counter[str], left_out: Counter[str]
) -> list[Pair]:
    known: dict[str, Pair] = {}
    for number, node in enumerate(nodes):
        key = node.label or f"\n{number}"
        if _is_another(node, known.get(key)):
            left_out["labels of several statements (each makes a query, with its own declarations)"] += 1
            key = f"{node.label}\n{''.join(node.text.split())}"
        pair = known.setdefault(key, Pair(node))
        if not pair.node.text:
            pair.node = node
        elif node.text and node.source not in pair.sources | {pair.node.source}:
            left_out["nodes with the label of one in another format (that one is kept)"] += 1
        pair.sources.add(node.source)
        for names in node.names:
            document, how = library.find(names, node.file)
            if document is None and (document := mathlib_document(names, mathlib)):
                how = "in mathlib"
            found[how] += 1
            if document:
                pair.add(document)
    return list(known.values())


class Library:
    """What a repository declares, found by name."""

    def __init__(self, repository: str, leans: Iterable[LeanFile], odd: Counter[str]) -> None:
        """Make a document of each declaration; one that says the same as another one of its name is left out."""
        self.documents: list[Document] = []
        self._by_name: dict[str, list[Document]] = defaultdict(list)
        self._by_end: dict[str, set[str]] = defaultdict(set)
        self._aliases: dict[str, list[str]] = {}
        ids = UniqueIds()
        found = list(leans)
        # A name in a blueprint means the declaration that others can use.
        for declaration in sorted((one for lean in found for one in lean.declarations), key=lambda one: one.is_private):
            self._add(repository, declaration, ids, odd)
        for lean in found:
            self._aliases |= lean.aliases
            odd["instances and other declarations without a name"] += lean.unnamed

    def _add(self, repository: str, found: Declaration, ids: UniqueIds, odd: Counter[str]) -> None:
        same = self._by_name[found.name]
        text = cut_text(found.statement)
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


def mathlib_document(names: Iterable[str], mathlib: Mapping[str, str]) -> Document | None:
    """Return the document of the first of the *names* that mathlib has, given its statements by name.

    >>> mathlib_document(["A.b", "b"], {"b": "theorem b : c"}).id
    'mathlib:b'
    """
    for name in names:
        if name in mathlib:
            text = mathlib[name]
            return Document(
                f"mathlib:{name}", name, text.split()[0] if text else "", cut_text(text), text, "", "mathlib"
            )
    return None


def cut_text(text: str) -> str:
    """Return the first `MOST` characters of a text, up to a blank.

    >>> len(cut_text("word " * 400))
    999
    """
    return text if len(text) <= MOST else text[: text.rindex(" ", 0, MOST + 1) if " " in text[:MOST] else MOST]


def _declares(source: str, member: str) -> bool:
    return re.search(rf"(?:\n\s*|\|\s*|[({{]){re.escape(member)}(?![\w'])", source) is not None


def _is_another(node: Node, first: Pair | None) -> bool:
    """Return whether a node says something else than the first one of its label, as where a label was copied."""
    if first is None or first.node.source != node.source or not (first.node.text and node.text):
        return False
    one, other = ("".join(text.split()) for text in (first.node.text, node.text))
    return difflib.SequenceMatcher(None, one, other, autojunk=False).ratio() < SAME


def _in_one_format(told: Iterable[Pair], left_out: Counter[str]) -> list[Pair]:
    """Return the pairs without those that name what one in another format names."""
    seen: dict[frozenset[str], Pair] = {}
    kept: list[Pair] = []
    for pair in told:
        names = frozenset(document.id for document in pair.documents)
        first = seen.setdefault(names, pair)
        if names and first.node.text and first.sources.isdisjoint(pair.sources):
            left_out["nodes that name what one in another format names (that one is kept)"] += 1
        else:
            kept.append(pair)
    return kept


def _without_leaks(pair: Pair, left_out: Counter[str]) -> bool:
    """Take documents that hold the statement off a pair, and return whether one is left."""
    clean = [document for document in pair.documents if not leaks_statement(pair.node.text, document.text)]
    left_out["judgements of documents that hold their statement"] += len(pair.documents) - len(clean)
    pair.documents = clean
    return bool(clean)


def leaks_statement(statement: str, document: str, run: int = RUN) -> bool:
    """Return whether a document holds a statement: its whole text, or *run* of its words in a row.

    Case and blanks do not count; words are runs of two or more letters, so that formulas and numbers, which both
    sides share by right, are none.

    >>> leaks_statement("Every group of prime order $p$ is cyclic", "/-- every group of prime order `p` is cyclic -/")
    True
    """
    if fold_text(statement) in fold_text(document):
        return True
    asked, told = (_WORD.findall(text.casefold()) for text in (statement, document))
    runs = {tuple(told[at : at + run]) for at in range(len(told) - run + 1)}
    return any(tuple(asked[at : at + run]) in runs for at in range(len(asked) - run + 1))


def _query(name: str, pair: Pair) -> Row:
    node = pair.node
    about = {"repo": name.split(":")[1], "title": node.title, "source": node.source, "kind": node.kind}
    words = set(re.findall(r"[\w']{2,}", node.text))
    named = any(one.name.rpartition(".")[2] in words for one in pair.documents)
    in_mathlib = any(one.repository == "mathlib" for one in pair.documents)
    about |= {"file": node.file, "names_decl": named, "in_mathlib": in_mathlib}
    return {"_id": name, "text": node.text, "metadata": about}
