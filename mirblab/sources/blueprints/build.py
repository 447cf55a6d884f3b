"""build: Lean blueprints as collections of informal and formal statements."""

from __future__ import annotations

import difflib
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mirblab.core import paths
from mirblab.core.errors import MirblabError, check_known
from mirblab.data.near_duplicates import fold_text
from mirblab.sources.blueprints import nodes, premises
from mirblab.sources.blueprints import repository as repositories
from mirblab.sources.blueprints.nodes import Node
from mirblab.sources.blueprints.repository import Repository
from mirblab.sources.shared import builder, lean_source, release
from mirblab.sources.shared.builder import CollectionRows, Row, UniqueIds
from mirblab.sources.shared.lean_source import Declaration, LeanFile

_HAVE_MEMBERS = ("structure", "class", "inductive", "class inductive")
MOST = 1000  # characters of a definition; of a longer one the beginning is kept
FEWEST = 4  # the least number of words of a statement
RUN = 6  # so many consecutive words of a statement must not occur in its documents
SAME = 0.9  # difflib's ratio from which a text counts as a misprint of another
_WORD = re.compile(r"[^\W\d_]{2,}")
MATHLIB = "Apache-2.0"
COLLECTIONS = ("blueprints", "blueprints-paired", "blueprints-leaky")


@dataclass(eq=False)
class Document:
    """A declaration as a document: `text` is its statement, `source` its text in the file `path`."""

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
    """A statement with the declarations that it names; `sources` are its formats."""

    node: Node
    documents: list[Document] = field(default_factory=list)
    sources: set[str] = field(default_factory=set)

    def add(self, document: Document) -> None:
        """Add a declaration, once."""
        if document not in self.documents:
            self.documents.append(document)


def build(origin: str | Path | None, out: Path, *, names: str | Sequence[str] = "", mathlib: str = "") -> list[Path]:
    """Write the collections of `COLLECTIONS`, and that of premises if it has a query, under *out*; return the folders.

    *origin* is a repository, or a folder of repositories (folders or archives), of which *names* selects some. With
    *mathlib* (a collection or JSON lines of its statements, or its source) statements that name a declaration of
    mathlib are queries, too. Raises MirblabError for unreadable input, and when no statement is left.
    """
    out, chosen = Path(out), re.split(r"[,\s]+", names) if isinstance(names, str) else list(names)
    chosen = [name for name in chosen if name]
    if not origin:
        raise MirblabError("give a folder of repositories with --from, each a folder, .tar.gz or .zip, or one of them")
    options = {"names": ",".join(chosen)} if chosen else {}
    options |= {"mathlib": Path(mathlib).name} if mathlib else {}
    with release.open_origin(origin, "the repositories named in this card") as source:
        odd: Counter[str] = Counter()
        blueprints, names_read = list[Blueprint](), set[str]()
        for repository in repositories.read_repositories(source, odd):
            names_read.add(repository.name)
            if not chosen or repository.name in chosen:
                blueprints.append(Blueprint(repository, odd))
        check_known("repository", sorted(chosen), names_read)
        made = BlueprintCollections(blueprints, mathlib, odd)
        if not made.pairs:
            raise MirblabError(
                f"{source.shown}: {len(blueprints)} repositories, and no statement that names a declaration; "
                f"give others, or check for \\lean{{...}}; a Lean library without a blueprint has none, and "
                "mirblab build lean takes premises and docstrings from one"
            )
        uses = premises.PremiseCollection((blueprint.repository, blueprint.nodes) for blueprint in blueprints)
        written = (*COLLECTIONS, premises.NAME) if uses.repositories else COLLECTIONS
        how = {"builder": "blueprints", "revision": made.revision, "licence": made.licence}
        with builder.replace_folders(out, written) as folders:
            for folder in folders[: len(COLLECTIONS)]:
                about = builder.read_about(folder.name) | made.about
                builder.write_collection(folder, made.rows(folder.name), about, source, options=options, **how)
            if uses.repositories:
                uses.write(folders[-1], source, options)
    return [out / name for name in written]


def bundled_collection() -> CollectionRows:
    """Return the collection of the small blueprint that ships with the project."""
    odd: Counter[str] = Counter()
    repository = repositories.read_repository(paths.bundled_path("data", "mini", "blueprint"), "small", "", odd)
    return BlueprintCollections([Blueprint(repository, odd)], "", odd).rows("blueprints")


class BlueprintCollections:
    """The queries of all blueprints with their documents, and the facts for the card."""

    def __init__(self, blueprints: Sequence[Blueprint], mathlib: str, odd: Counter[str]) -> None:
        wanted = {name for blueprint in blueprints for name in blueprint.missing()} if mathlib else set()
        statements, source = nodes.read_mathlib_statements(mathlib, wanted)
        self.pairs, self.left_out = dict[str, Pair](), odd
        ids, cards, documents = UniqueIds(), Row(), list[Document]()
        for blueprint in blueprints:
            pairs, card = blueprint.pairs(statements, odd)
            if pairs:
                name = blueprint.repository.name
                cards[name] = card
                documents += blueprint.library.documents
                self.pairs |= {ids.new(f"q:{name}:{pair.node.label or pair.node.names[0][0]}"): pair for pair in pairs}
        odd["repositories in which no statement names a declaration"] += len(blueprints) - len(cards)
        self.about = {"repositories": cards} | ({"mathlib": source} if source else {})
        licences = {str(card["licence"]) for card in cards.values()} | ({MATHLIB} if statements else set())
        self.licence = ", ".join(sorted(licences))
        content = repr([(name, card["content"]) for name, card in cards.items()]) + repr(statements)
        self.revision = repositories.content_revision(content)
        self._paired = {document.id: document for pair in self.pairs.values() for document in pair.documents}
        self._documents = {each.id: each for each in documents if each.id in self._paired or not each.is_private}
        self._n_private = len(documents) - len(self._documents)
        self._documents |= self._paired

    def rows(self, name: str) -> CollectionRows:
        """Return one of the `COLLECTIONS`."""
        left_out, corpus = self.left_out.copy(), list[Row]()
        left_out["private declarations that no statement names"] = self._n_private * (name == "blueprints")
        for each in self._documents.values():
            if name != "blueprints" and each.id not in self._paired:
                continue
            about = {"repo": each.repository, "kind": each.kind, "path": each.path, "paired": each.id in self._paired}
            text = each.source if name == "blueprints-leaky" else each.text
            corpus.append({"_id": each.id, "title": "", "text": text, "metadata": about})
        judged = [(query, document.id, 1) for query, pair in self.pairs.items() for document in pair.documents]
        return CollectionRows(corpus, [_query(*item) for item in self.pairs.items()], {"test": judged}, left_out)


class Blueprint:
    """A repository with the `nodes` of its blueprint, in all formats, and the `library` of declarations."""

    def __init__(self, repository: Repository, odd: Counter[str]) -> None:
        self.repository = repository
        self.nodes: list[Node] = []
        leans: list[LeanFile] = []
        verso: list[Node] = []
        known, macros = nodes.statement_environments(repository.latex.values()), nodes.gather_macros(repository.latex)
        for path, source in repository.latex.items():
            self.nodes += nodes.read_latex_nodes(source, known, path, odd, macros)
        for path, code in repository.lean.items():
            lean = lean_source.read_lean(code)
            in_prose, more = nodes.read_verso_nodes(code[lean_source.find_prose(code) :], known, path, odd, macros)
            self.nodes += nodes.read_attribute_nodes(lean, path, odd, macros)
            verso += in_prose
            for declaration in (declaration for part in (lean, *more) for declaration in part.declarations):
                declaration.path = path
            leans += [lean, *more]
        # A statement in several formats is kept in the first of LaTeX, attributes and Verso.
        self.nodes += verso
        self.library = Library(repository.name, leans, odd)

    def missing(self) -> set[str]:
        """Return the full names that names without a declaration in this repository may mean."""
        unknown_names = (names for node in self.nodes for names in node.names if not self.library.find(names)[0])
        return {name for names in unknown_names for name in names}

    def pairs(self, mathlib: Mapping[str, str], left_out: Counter[str]) -> tuple[list[Pair], Row]:
        """Return the statements with their declarations, and the facts for the card of the repository."""
        names: Counter[str] = Counter()
        pairs = pair_statements(self.nodes, self.library, mathlib, names, left_out)
        left_out["names that no file declares (mathlib's, of another library, or out of date)"] += names["not found"]
        return pairs, {
            "commit": self.repository.commit,
            "licence": self.repository.licence,
            "content": self.repository.digest,
            "declarations": len(self.library.documents),
            "nodes": len(self.nodes),
            "queries": len(pairs),
            "names": {how: count for how, count in sorted(names.items()) if count},
        }


def pair_statements(
    nodes: Iterable[Node], library: Library, mathlib: Mapping[str, str], how_found: Counter[str], left_out: Counter[str]
) -> list[Pair]:
    """Return the statements of one repository that become queries; *how_found* counts how names were resolved.

    Nodes with one label, equal texts, and nodes of two formats that name the same declarations are one statement.
    """
    kept: dict[str, Pair] = {}
    for pair in _in_one_format(_by_label(nodes, library, mathlib, how_found, left_out), left_out):
        words = len(pair.node.text.split())
        if not pair.documents:
            left_out["statements none of whose declarations is found"] += 1
        elif words < FEWEST:
            left_out[f"statements under {FEWEST} words" if words else "nodes without a statement"] += 1
        else:
            first = kept.setdefault(fold_text(pair.node.text), pair)
            left_out["statements with the text of another one (merged)"] += first is not pair
            for document in pair.documents:
                first.add(document)
    for pair in kept.values():
        clean = [document for document in pair.documents if not leaks_statement(pair.node.text, document.text)]
        left_out["judgements of documents that hold their statement"] += len(pair.documents) - len(clean)
        pair.documents = clean
    return [pair for pair in kept.values() if pair.documents]


def _by_label(
    nodes: Iterable[Node], library: Library, mathlib: Mapping[str, str], how_found: Counter[str], left_out: Counter[str]
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
            how_found[how] += 1
            if document:
                pair.add(document)
    return list(known.values())


class Library:
    """The declarations of a repository, which can be searched by name."""

    def __init__(self, repository: str, leans: Iterable[LeanFile], odd: Counter[str]) -> None:
        self.documents: list[Document] = []
        self._by_name: dict[str, list[Document]] = defaultdict(list)
        self._by_end: dict[str, set[str]] = defaultdict(set)
        self._aliases: dict[str, list[str]] = {}
        ids, declarations = UniqueIds(), list[Declaration]()
        for lean in leans:
            declarations += lean.declarations
            self._aliases |= lean.aliases
            odd["instances and other declarations without a name"] += lean.unnamed
        # A name in a blueprint means the declaration that others can use.
        for each in sorted(declarations, key=lambda declaration: declaration.is_private):
            same, text = self._by_name[each.name], cut_text(each.statement)
            if any(text == document.text for document in same):
                odd["declarations with name and text of another one"] += 1
                continue
            odd["declarations with the name of another one (their id ends with #2)"] += bool(same)
            doc_id = ids.new(f"{repository}:{each.name}")
            document = Document(doc_id, each.name, each.kind, text, each.source, each.path, repository, each.is_private)
            same.append(document)
            self.documents.append(document)
            self._by_end[each.name.rpartition(".")[2]].add(each.name)

    def find(self, names: Iterable[str], file: str = "") -> tuple[Document | None, str]:
        """Return the document that names mean (exact, alias, field or unique ending; of several in *file*), and how."""
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
            declares = rf"(?:\n\s*|\|\s*|[({{]){re.escape(member)}(?![\w'])"
            if document and document.kind in _HAVE_MEMBERS and re.search(declares, document.source):
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
    """Return the document of the first of the *names* that mathlib has, given its statements by name."""
    for name in names:
        if name in mathlib:
            text = mathlib[name]
            kind = text.split()[0] if text else ""
            return Document(f"mathlib:{name}", name, kind, cut_text(text), text, "", "mathlib")
    return None


def cut_text(text: str) -> str:
    """Return the first `MOST` characters of a text, up to a blank.

    >>> len(cut_text("word " * 400))
    999
    """
    return text if len(text) <= MOST else text[: text.rindex(" ", 0, MOST + 1) if " " in text[:MOST] else MOST]


def _is_another(node: Node, first: Pair | None) -> bool:
    """Return whether a node states something else than the first node of its label, as where a label was copied."""
    if first is None or first.node.source != node.source or not (first.node.text and node.text):
        return False
    one, other = ("".join(text.split()) for text in (first.node.text, node.text))
    return difflib.SequenceMatcher(None, one, other, autojunk=False).ratio() < SAME


def _in_one_format(pairs: Iterable[Pair], left_out: Counter[str]) -> list[Pair]:
    """Return the pairs without those whose declarations a pair in another format names already."""
    seen: dict[frozenset[str], Pair] = {}
    kept: list[Pair] = []
    for pair in pairs:
        names = frozenset(document.id for document in pair.documents)
        first = seen.setdefault(names, pair)
        if names and first.node.text and first.sources.isdisjoint(pair.sources):
            left_out["nodes that name what one in another format names (that one is kept)"] += 1
        else:
            kept.append(pair)
    return kept


def leaks_statement(statement: str, document: str, run: int = RUN) -> bool:
    """Return whether a document has a statement or *run* of its words in a row; formulas and numbers do not count."""
    if fold_text(statement) in fold_text(document):
        return True
    asked, given = (_WORD.findall(text.casefold()) for text in (statement, document))
    runs = {tuple(given[at : at + run]) for at in range(len(given) - run + 1)}
    return any(tuple(asked[at : at + run]) in runs for at in range(len(asked) - run + 1))


def _query(name: str, pair: Pair) -> Row:
    node, words = pair.node, set(re.findall(r"[\w']{2,}", pair.node.text))
    about = {
        "repo": name.split(":")[1],
        "title": node.title,
        "source": node.source,
        "kind": node.kind,
        "file": node.file,
        "names_decl": any(document.name.rpartition(".")[2] in words for document in pair.documents),
        "in_mathlib": any(document.repository == "mathlib" for document in pair.documents),
    }
    return {"_id": name, "text": node.text, "metadata": about}
