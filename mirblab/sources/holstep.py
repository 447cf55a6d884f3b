"""holstep: the HolStep release (HOL Light proofs) to a collection, conjecture to the statements its proof uses.

A file of `train/` or `test/` (named by a number) is one conjecture: `N name`, `C statement`, `T tokens`, then blocks
of three lines for its dependencies, `D name`, `A statement`, `T tokens`, and of two for proof steps, `+ statement` or
`- statement`, `T tokens`, as the release's page says (http://cl-informatik.uibk.ac.at/cek/holstep/).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from mirblab.core.errors import unknown
from mirblab.core.terminal import progress
from mirblab.core.text_files import LineProblems, read_lines
from mirblab.sources.shared import builder
from mirblab.sources.shared import release as releases
from mirblab.sources.shared.builder import CollectionRows, Row, UniqueIds, replace_folders

ADDRESS = "http://cl-informatik.uibk.ac.at/cek/holstep/"
LICENCE = "BSD-3-Clause"
NAME = "holstep"
SPLITS = ("train", "test")
CORPORA = ("all", "test")
_MAY_FOLLOW = {"": "N", "N": "C", "C": "TD+-", "T": "D+-", "D": "A", "A": "TD+-", "+": "TD+-", "-": "TD+-"}
ABOUT: Row = {
    "title": "HolStep: HOL conjecture to the statements that its proof uses",
    "follows": "mirb-hol",
    "task": "Premise Retrieval",
    "instruction": "Given a HOL conjecture, retrieve the declarations that are useful for proving it.",
    "candidates": "not-self",
}


def build(origin: str | Path | None, out: Path, *, names: bool = False, corpus: str = "all") -> list[Path]:
    """Write the collection `holstep` under *out*, print what was left out, and return its folder.

    A query is a conjecture as printed, without its name, because names of the library tell what a proof is about;
    with *names*, as published, its name stands before it. Documents are the distinct statements that conjectures
    depend on, their names as titles; equal statements are one document, under the first name. With *corpus* "test"
    they are only those that test conjectures depend on (MIRB has 3,973 documents and does not say which; the card has
    both counts). *origin* is the unpacked folder or HolStep.tgz. Raises MirblabError, with file and line, for a file
    of another format, and FileNotFoundError.
    """
    if corpus not in CORPORA:
        raise unknown("corpus of HolStep", corpus, CORPORA)
    out = Path(out)
    with (
        releases.open_release(origin, "the HolStep release", ADDRESS) as release,
        replace_folders(out, (NAME,)) as [folder],
    ):
        files = {split: release.matching(rf"{split}/\d+") for split in SPLITS}
        if not files["test"]:
            raise FileNotFoundError(
                f"no test/00001 or the like in {release.origin.folder}; found {release.shown()}; "
                "give the folder above test"
            )
        found = _read(files)
        parts = _parts(found, names, corpus)
        sizes = {f"documents_of_{split}": len(docs) for split, docs in found.used.items()}
        about = ABOUT | {"names_in_queries": names, "corpus": corpus, "sizes": sizes}
        revision = releases.hash_files([*files["train"], *files["test"]])
        made = {"builder": "holstep", "revision": revision, "licence": LICENCE}
        builder.write_collection(
            folder, parts, about, release.origin, **made, options={"names": names, "corpus": corpus}
        )
    return [out / NAME]


def _read(files: dict[str, list[Path]]) -> _Found:
    found = _Found()
    with progress(sum(map(len, files.values())), "reading HolStep", "files") as bar:
        for split, paths in files.items():
            of_split = found.depends.setdefault(split, {})
            for path in paths:
                (name, statement), *premises = read_statements(path)
                conjecture = found.add(name, statement)
                found.left_out["conjectures with the statement of another one (merged)"] += conjecture in of_split
                of_split.setdefault(conjecture, {}).update((found.add(*premise), None) for premise in premises)
                bar.update()
            found.used[split] = {doc for docs in of_split.values() for doc in docs}
    return found


def read_statements(path: Path) -> list[tuple[str, str]]:
    """Return name and printed statement of the conjecture in a file and then of each of its dependencies.

    Proof steps and token lines are passed over. Raises MirblabError with file and line when a line has another mark,
    or when a name and its statement do not follow each other.
    """
    problems, found, name, before = LineProblems(path), list[tuple[str, str]](), "", ""
    for number, mark, rest in _marked(path, problems):
        if mark not in _MAY_FOLLOW[before]:
            expected = " ".join(_MAY_FOLLOW[before])
            problems.note(number, f"'{mark}' where one of {expected} must stand; is it a HolStep file?")
            break
        if mark in "ND":
            name = rest
        elif mark in "CA":
            found.append((name, rest))
        before = mark
    if not problems.lines and before in ("", "N", "D"):
        problems.note(1, "the file ends before a statement; expected N, C, T, then D, A, T ...")
    problems.raise_if_any()
    return found


def _marked(path: Path, problems: LineProblems) -> Iterator[tuple[int, str, str]]:
    for number, text in read_lines(path, problems):
        problems.raise_if_any()
        if text[0] not in "NCTDA+-" or text[1:2] not in ("", " "):
            problems.note(number, f"expected a line that begins with N, C, T, D, A, + or -, found {text[:40]!r}")
            return
        yield number, text[0], text[2:].strip()


def _parts(found: _Found, names: bool, corpus: str) -> CollectionRows:
    docs = found.used["test"] if corpus == "test" else set().union(*found.used.values())
    judged: dict[str, list[tuple[str, str, int]]] = {split: [] for split in reversed(SPLITS)}
    left_out = found.left_out
    asked: dict[str, None] = {}
    for split, pairs in judged.items():
        for conjecture, premises in found.depends[split].items():
            kept = [doc for doc in premises if doc in docs and doc != conjecture]
            left_out["dependencies that are the conjecture itself"] += conjecture in premises
            left_out["dependencies outside the corpus of test"] += sum(doc not in docs for doc in premises)
            left_out["conjectures without a dependency (no queries)"] += not kept
            if kept and split == "train" and conjecture in found.depends["test"]:
                left_out["training conjectures that are test conjectures (left out of train)"] += 1
            elif kept:
                asked[conjecture] = None
                pairs += [(conjecture, doc, 1) for doc in kept]
    rows = (_row(doc, *found.statements[doc]) for doc in found.statements if doc in docs)
    queries = ({"_id": key, "text": _text(*found.statements[key], names)} for key in asked)
    return CollectionRows(rows, queries, judged, left_out)


@dataclass
class _Found:
    """Statements by their id, in order of appearance, and by split which conjecture depends on which of them."""

    statements: dict[str, tuple[str, str]] = field(default_factory=dict)
    ids: dict[str, str] = field(default_factory=dict)
    names: UniqueIds = field(default_factory=UniqueIds)
    depends: dict[str, dict[str, dict[str, None]]] = field(default_factory=dict)
    used: dict[str, set[str]] = field(default_factory=dict)
    left_out: Counter[str] = field(default_factory=Counter)

    def add(self, name: str, statement: str) -> str:
        """Return the id of a statement: its name, or that of the first equal statement."""
        text = " ".join(statement.split())
        if text not in self.ids:
            self.ids[text] = self.names.new(name)
            self.statements[self.ids[text]] = (name, text)
        elif self.statements[self.ids[text]][0] != name:
            self.left_out["mentions of a statement under another name (merged by its text)"] += 1
        return self.ids[text]


def _row(doc_id: str, name: str, text: str) -> Row:
    return {"_id": doc_id, "title": name, "text": text}


def _text(name: str, statement: str, names: bool) -> str:
    return f"{name} {statement}" if names else statement
