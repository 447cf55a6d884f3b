"""own_latex: the statements in any LaTeX files, with titles, labels, proofs, references, and where each stands."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mirblab.errors import MirblabError
from mirblab.sources import blueprint_nodes, latex, own_source
from mirblab.sources.book import Proof
from mirblab.sources.environments import Block, scan
from mirblab.sources.own_source import Sources
from mirblab.sources.release import Names

# What is proved seldom: the proof that follows one of these belongs to the statement before it.
_NOT_PROVED = frozenset(
    """remark remarks rem rmk note notation convention definition defn dfn definitions example examples ex question
    problem conjecture hypothesis assumption setup""".split()
)


@dataclass(eq=False)
class Statement:
    """A theorem-like environment: where it stands, its texts in plain prose with LaTeX formulas, what it refers to."""

    id: str
    kind: str
    title: str
    text: str
    file: str
    line: int
    label: str
    order: int
    references: list[str]
    proofs: list[Proof] = field(default_factory=list)


@dataclass
class Found:
    """All statements in the order of files and lines, which of them each label belongs to, and what was odd."""

    statements: list[Statement]
    places: Places
    odd: Counter[str]


class Places:
    """Which statement each label belongs to; a label of several files means the one in the file that refers to it."""

    def __init__(self) -> None:
        """Begin with no label."""
        self._own: dict[tuple[str, str], Statement] = {}
        self._anywhere: dict[str, list[Statement]] = {}

    def add(self, label: str, statement: Statement) -> bool:
        """Take in a label; return whether it is new in its file: the first one counts."""
        self._anywhere.setdefault(label, []).append(statement)
        return self._own.setdefault((statement.file, label), statement) is statement

    def find(self, label: str, file: str) -> Statement | None:
        """Return the statement that *label* means in a *file*, or None: no statement has it, or several elsewhere."""
        others = self._anywhere.get(label, [])
        return self._own.get((file, label)) or (others[0] if len(others) == 1 else None)


def read(files: Mapping[str, Path], encoding: str = "") -> Found:
    """Return the statements in LaTeX *files* (by their names for people), read one after another.

    Statements are the usual theorem-like environments and those that the files define. Commands that the files
    define are written out. A proof belongs to the statement that its heading refers to, or that it stands in, else to
    the last one before it that can be proved, in the same section. Raises MirblabError for text in another encoding
    than *encoding* ("": UTF-8).
    """
    odd: Counter[str] = Counter()
    sources = own_source.read(files, encoding, odd)
    reader = _Reader(sources, odd)
    for name, text in sources.texts.items():
        reader.file(name, text)
    return reader.found()


class _Reader:
    """Collects statements file by file; proofs find theirs at the end, when all labels are known."""

    def __init__(self, sources: Sources, odd: Counter[str]) -> None:
        self.kinds = [re.escape(kind) for kind in sorted({*sources.kinds, *own_source.PROOFS})]
        self.printed, self.odd = sources.printed, odd
        self.statements: list[Statement] = []
        self.places = Places()
        self.names = Names()
        self.proofs: list[tuple[Proof, list[str], Statement | None]] = []

    def file(self, name: str, source: str) -> None:
        """Read the statements and proofs of one file."""
        made: dict[int, Statement] = {}
        last: tuple[Statement, int] | None = None
        for block in scan(source, self.kinds, self.odd)[0]:
            if block.kind in own_source.PROOFS:
                parent = made.get(id(block.parent))
                near = last[0] if last and last[1] == block.section else None
                content = own_source.unmarked(block.content(source))
                proof = Proof(self._clean(content), latex.references(content), name)
                self.proofs.append((proof, latex.references(block.option), parent or near))
                continue
            statement = self._statement(block, source, name)
            if statement is not None:
                made[id(block)] = statement
                last = last if _NOT_PROVED & set(statement.kind.split()) else (statement, block.section)

    def _statement(self, block: Block, source: str, name: str) -> Statement | None:
        content = own_source.unmarked(block.content(source))
        text = self._clean(content)
        if not text:
            self.odd["statements without a text"] += 1
            return None
        line, label = own_source.line_of(source, block.start), block.labels[0] if block.labels else ""
        kind = self.printed.get(block.kind, block.kind.rstrip("*"))
        place = f"{name}:{line}" if line else name
        title = self._clean(own_source.unmarked(block.option))
        found = Statement(self.names.new(label or place), kind, title, text, name, line, label, len(self.statements),
                          latex.references(content))  # fmt: skip
        self.statements.append(found)
        for own in block.labels:
            self.odd["labels that stand twice in a file (the first counts)"] += not self.places.add(own, found)
        return found

    def _clean(self, content: str) -> str:
        return blueprint_nodes.cleaned(content, self.odd)

    def found(self) -> Found:
        """Give every proof to the statements that its heading names, else to the one before it."""
        for proof, named, near in self.proofs:
            places = [self.places.find(label, proof.stem) for label in dict.fromkeys(named)]
            owners = [place for place in places if place is not None] or ([near] if near is not None else [])
            for owner in owners:
                owner.proofs.append(proof)
            self.odd["proofs of no statement"] += not owners
        return Found(self.statements, self.places, self.odd)


def refuse_empty(found: Found, n_files: int, shown: str) -> None:
    """Raise MirblabError where there is nothing to build from, with what is looked for."""
    if not found.statements:
        usual = ", ".join(sorted({"theorem", "lemma", "proposition", "corollary", "definition"}))
        raise MirblabError(
            f"{shown}: {n_files:,} .tex files and no statement in them; looked for environments such as {usual}, and "
            r"for those of \newtheorem in the same files; give the folder that has the preamble, too"
        )
