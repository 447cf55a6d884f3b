"""holstep: the HolStep release (HOL Light proofs) as a collection, conjecture to the statements that its proof uses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from mirblab.core.errors import MissingFileError, check_known
from mirblab.core.terminal import progress
from mirblab.core.text_files import LineProblems, read_lines
from mirblab.sources.shared import builder
from mirblab.sources.shared import release as releases
from mirblab.sources.shared.builder import CollectionRows, Judgement, Row, UniqueIds, replace_folders

ADDRESS = "http://cl-informatik.uibk.ac.at/cek/holstep/"
LICENCE = "BSD-3-Clause"
NAME = "holstep"
SPLITS = ("train", "test")
CORPORA = ("all", "test")
_MAY_FOLLOW = {"": "N", "N": "C", "C": "TD+-", "T": "D+-", "D": "A", "A": "TD+-", "+": "TD+-", "-": "TD+-"}


def build(origin: str | Path | None, out: Path, *, names: bool = False, corpus: str = "all") -> list[Path]:
    """Write the collection `holstep` under *out* and return its folder.

    A query is a conjecture without its name, which reveals what the proof is about, or with it (*names*, as published).
    Documents are the distinct statements that conjectures use; with *corpus* "test" those of test conjectures (MIRB has
    3,973 documents and does not say which). *origin* is the unpacked folder or HolStep.tgz.
    """
    check_known("corpus of HolStep", corpus, CORPORA)
    out = Path(out)
    with (
        releases.open_release(origin, "the HolStep release", ADDRESS) as release,
        replace_folders(out, (NAME,)) as [folder],
    ):
        files = {split: release.matching(rf"{split}/\d+") for split in SPLITS}
        if not files["test"]:
            raise MissingFileError(
                f"no test/00001 or the like in {release.origin.folder}; found {release.shown()}; "
                "give the folder above test"
            )
        library = _read(files)
        parts = _parts(library, names, corpus)
        sizes = {f"documents_of_{split}": len(library.used(split)) for split in files}
        about = builder.read_about(NAME) | {"names_in_queries": names, "corpus": corpus, "sizes": sizes}
        revision = releases.hash_files([*files["train"], *files["test"]])
        made: Row = {"builder": "holstep", "revision": revision, "licence": LICENCE}
        made["options"] = {"names": names, "corpus": corpus}
        builder.write_collection(folder, parts, about, release.origin, **made)
    return [out / NAME]


@dataclass
class _Library:
    """Statements by id, in order of appearance, and by split which conjecture uses which of them."""

    statements: dict[str, tuple[str, str]] = field(default_factory=dict)
    depends: dict[str, dict[str, dict[str, None]]] = field(default_factory=dict)
    left_out: Counter[str] = field(default_factory=Counter)
    _ids: dict[str, str] = field(default_factory=dict)
    _names: UniqueIds = field(default_factory=UniqueIds)

    def add(self, name: str, statement: str) -> str:
        """Return the id of a statement: its name, or the id of the first equal statement."""
        text = " ".join(statement.split())
        if text not in self._ids:
            self._ids[text] = self._names.new(name)
            self.statements[self._ids[text]] = (name, text)
        elif self.statements[self._ids[text]][0] != name:
            self.left_out["mentions of a statement under another name (merged by its text)"] += 1
        return self._ids[text]

    def used(self, split: str) -> set[str]:
        return set().union(*self.depends[split].values())


def _read(files: dict[str, list[Path]]) -> _Library:
    library = _Library()
    with progress(sum(map(len, files.values())), "reading HolStep", "files") as bar:
        for split, paths in files.items():
            depends = library.depends.setdefault(split, {})
            for path in paths:
                (name, statement), *premises = read_statements(path)
                conjecture = library.add(name, statement)
                library.left_out["conjectures with the statement of another one (merged)"] += conjecture in depends
                depends.setdefault(conjecture, {}).update((library.add(*premise), None) for premise in premises)
                bar.update()
    return library


def read_statements(path: Path) -> list[tuple[str, str]]:
    """Return name and statement of a file's conjecture and of its dependencies; MirblabError with file and line.

    The file has `N name` and `C statement`, then `D name` and `A statement` for each dependency, and `+ statement` or
    `- statement` for each proof step, each followed by `T tokens` (http://cl-informatik.uibk.ac.at/cek/holstep/).
    """
    problems, statements, name, before = LineProblems(path), list[tuple[str, str]](), "", ""
    for number, mark, rest in _marked(path, problems):
        if mark not in _MAY_FOLLOW[before]:
            expected = " ".join(_MAY_FOLLOW[before])
            problems.note(number, f"'{mark}' where one of {expected} must stand; is it a HolStep file?")
            break
        if mark in "ND":
            name = rest
        elif mark in "CA":
            statements.append((name, rest))
        before = mark
    if not problems.lines and before in ("", "N", "D"):
        problems.note(1, "the file ends before a statement; expected N, C, T, then D, A, T ...")
    problems.raise_if_any()
    return statements


def _marked(path: Path, problems: LineProblems) -> Iterator[tuple[int, str, str]]:
    for number, text in read_lines(path, problems):
        problems.raise_if_any()
        if text[0] not in "NCTDA+-" or text[1:2] not in ("", " "):
            problems.note(number, f"expected a line that begins with N, C, T, D, A, + or -, found {text[:40]!r}")
            return
        yield number, text[0], text[2:].strip()


def _parts(library: _Library, names: bool, corpus: str) -> CollectionRows:
    docs = library.used("test") | (library.used("train") if corpus == "all" else set())
    judged: dict[str, list[Judgement]] = {split: [] for split in reversed(SPLITS)}
    left_out, statements = library.left_out, library.statements
    queries: dict[str, Row] = {}
    for split, pairs in judged.items():
        for conjecture, premises in library.depends[split].items():
            kept = [doc for doc in premises if doc in docs and doc != conjecture]
            left_out["dependencies that are the conjecture itself"] += conjecture in premises
            left_out["dependencies outside the corpus of test"] += sum(doc not in docs for doc in premises)
            left_out["conjectures without a dependency (no queries)"] += not kept
            if kept and split == "train" and conjecture in library.depends["test"]:
                left_out["training conjectures that are test conjectures (left out of train)"] += 1
            elif kept:
                text = " ".join(statements[conjecture]) if names else statements[conjecture][1]
                queries[conjecture] = {"_id": conjecture, "text": text}
                pairs += [(conjecture, doc, 1) for doc in kept]
    rows = ({"_id": doc, "title": name, "text": text} for doc, (name, text) in statements.items() if doc in docs)
    return CollectionRows(rows, queries.values(), judged, left_out)
