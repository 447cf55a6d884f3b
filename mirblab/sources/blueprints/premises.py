r"""premises: what the statements of blueprints in LaTeX use, from \uses, as a collection."""

from __future__ import annotations

import posixpath
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path

from mirblab.sources.blueprints.nodes import (
    Node,
    clean_statement,
    gather_macros,
    printed_source,
    statement_environments,
)
from mirblab.sources.blueprints.repository import Repository, content_revision
from mirblab.sources.shared import builder
from mirblab.sources.shared.builder import CollectionRows, Judgement, Row, UniqueIds
from mirblab.sources.shared.latex import Environment, find_environments
from mirblab.sources.shared.release import Origin

NAME = "blueprints-premise"
SPLITS = ("train", "dev", "test")
_USES = re.compile(r"\\uses(?![A-Za-z])\s*\{([^{}]*)\}")
_PROVES = re.compile(r"\\proves(?![A-Za-z])\s*\{([^{}]*)\}")
_INPUT = re.compile(r"\\(?:input|include)(?![A-Za-z])\s*(?:\{([^{}]*)\}|([^\s\\{}]+))")


@dataclass(eq=False)
class Statement:
    """A statement, the labels in it, its own first, and the labels that it (`stated`) and its proofs (`proved`) use."""

    labels: list[str]
    kind: str
    title: str
    text: str
    file: str
    stated: list[str]
    proved: list[str] = field(default_factory=list)


class PremiseCollection:
    """Statement to the older statements of its repository that its proof uses; `repositories` are facts for a card."""

    def __init__(self, blueprints: Iterable[tuple[Repository, Sequence[Node]]]) -> None:
        self.repositories: dict[str, Row] = {}
        self._corpus, self._queries, self._ids = list[Row](), list[Row](), UniqueIds()
        self._judged: dict[str, list[Judgement]] = {split: [] for split in SPLITS}
        self._left_out: Counter[str] = Counter()
        for repository, nodes in blueprints:
            self._add(repository, [node for node in nodes if node.source != "latex"])

    def write(self, folder: Path, source: Origin, options: Mapping[str, str]) -> None:
        """Write the collection, with the documents of its repository for each query if there are several of these."""
        own: dict[str, list[str]] = {}
        for row in self._corpus:
            own.setdefault(row["metadata"]["repo"], []).append(row["_id"])
        listed = ((row["_id"], own[row["metadata"]["repo"]]) for row in self._queries)
        lists = {"candidates": listed} if len(self.repositories) > 1 else {}
        content = repr([(name, card["content"]) for name, card in self.repositories.items()])
        builder.write_collection(
            folder,
            CollectionRows(self._corpus, self._queries, self._judged, self._left_out, lists=lists),
            builder.read_about(NAME) | {"repositories": self.repositories},
            source,
            builder="blueprints",
            revision=content_revision(content),
            licence=", ".join(sorted({str(card["licence"]) for card in self.repositories.values()})),
            options=options,
        )

    def _add(self, repository: Repository, inferred: Sequence[Node]) -> None:
        odd: Counter[str] = Counter()
        self._left_out["statements in attributes or Verso, whose uses Lean infers (no documents)"] += len(inferred)
        known = statement_environments(repository.latex.values())
        found = read_statements(repository.latex, known, odd)
        odd["statements in LaTeX without a label"] += sum(not each.labels for each in found)
        odd["statements in LaTeX without a text"] += sum(bool(each.labels) and not each.text for each in found)
        statements = [each for each in found if each.labels and each.text]
        premises = older_premises(statements, {_clean_label(node.label) for node in inferred}, odd)
        if not any(premises):
            self._left_out[r"repositories in which no \uses names an older statement in LaTeX"] += 1
            return
        self._left_out += odd
        name, first = repository.name, len(self._corpus)
        ids = [self._ids.new(f"{name}:{each.labels[0]}") for each in statements]
        queries: list[Row] = []
        for order, (doc_id, each, used) in enumerate(zip(ids, statements, premises, strict=True), first):
            about = {"order": order, "repo": name, "kind": each.kind, "file": each.file}
            self._corpus.append({"_id": doc_id, "title": each.title, "text": each.text, "metadata": about})
            if used:
                about = about | {"uses_of": "proof" if each.proved else "statement"}
                queries.append(
                    {"_id": doc_id, "text": builder.title_before_text(each.title, each.text), "metadata": about}
                )
        judged = [[(ids[place], ids[other], 1) for other in used] for place, used in enumerate(premises) if used]
        for split, part in split_in_order(judged).items():
            self._judged[split] += [pair for pairs in part for pair in pairs]
        self._queries += queries
        self.repositories[name] = {
            "commit": repository.commit, "licence": repository.licence, "content": repository.digest,
            "documents": len(statements), "queries": len(queries), "uses": sum(map(len, judged)),
            "queries_by_proof": sum(row["metadata"]["uses_of"] == "proof" for row in queries),
        }  # fmt: skip


def split_in_order(judged: Sequence[list[Judgement]]) -> dict[str, Sequence[list[Judgement]]]:
    """Return the first half as `train`, the next tenth as `dev` and the rest as `test`, so that `train` is the oldest.

    >>> {split: len(part) for split, part in split_in_order([[]] * 21).items()}
    {'train': 10, 'dev': 2, 'test': 9}
    """
    half, tenth = len(judged) // 2, len(judged) // 10
    return dict(zip(SPLITS, (judged[:half], judged[half : half + tenth], judged[half + tenth :]), strict=True))


def read_statements(files: Mapping[str, str], known: Iterable[str], odd: Counter[str]) -> list[Statement]:
    r"""Return the statements of a blueprint in the order of its document; *known* environments are statements.

    A proof belongs to the statements that its \proves name, else to the statement around it, else to the last one
    before it in the section, as in plasTeX's plugin for the graph of blueprints.
    """
    pieces = list(read_in_order(files, odd))
    source = "".join(text for _, text in pieces)
    starts = list(accumulate((len(text) for _, text in pieces), initial=0))
    blocks, _, _ = find_environments(source, [re.escape(kind) for kind in {*known, "proof"}], odd)
    statements: dict[int, Statement] = {}
    proofs: list[tuple[list[str], list[str], Statement | None]] = []
    macros = gather_macros(files)
    last: Environment | None = None
    for block in blocks:
        content = block.content(source)
        if block.kind == "proof":
            proofs.append((_labels(_USES, content), _labels(_PROVES, content), _owner(block, last, statements)))
            continue
        title, text = (clean_statement(each, odd, macros=macros) for each in (block.option, content))
        labels = [label for label in map(_clean_label, block.labels) if label]
        file = pieces[bisect_right(starts, block.start) - 1][0]
        statements[id(block)] = Statement(labels, block.kind, title, text, file, _labels(_USES, content))
        last = block
    by_label = {label: each for each in reversed(statements.values()) for label in each.labels}
    for uses, proved, before in proofs:
        owners = [by_label[label] for label in proved if label in by_label] if proved else [before] if before else []
        odd["uses in proofs of no statement"] += len(uses) * (not owners)
        for owner in owners:
            owner.proved += uses
    n_placed = sum(len(each.stated) for each in statements.values()) + sum(len(uses) for uses, *_ in proofs)
    odd["uses outside of statements and proofs"] += len(_labels(_USES, source)) - n_placed
    return list(statements.values())


def read_in_order(files: Mapping[str, str], odd: Counter[str]) -> Iterator[tuple[str, str]]:
    r"""Yield the files as pieces (path, text), without comments and code, in the order in which LaTeX reads them.

    It begins with the main files, which have a \documentclass, and follows \input and \include, to each file once; what
    no main file reads is left out. Without a main file it begins with all files, sorted.
    """
    plain = {path: printed_source(files[path], odd) for path in sorted(files)}
    main = [path for path in plain if r"\documentclass" in plain[path]] or list(plain)
    read: set[str] = set()
    for path in main:
        # Each open file with the texts between its \input and the names in them, in turn.
        waiting = [_opened(path, plain, read)] if path not in read else []
        while waiting:
            inside, parts = waiting[-1]
            piece = next(parts, None)
            if piece is None:
                waiting.pop()
            elif not piece[1]:
                yield inside, piece[0]
            elif found := _find_file(piece[0], path, inside, plain):
                waiting += [_opened(found, plain, read)] if found not in read else []
            else:
                odd[r"files that \input or \include names and that are not there"] += 1
    odd["files in LaTeX that no main file reads"] += len(plain) - len(read)


def _opened(path: str, plain: Mapping[str, str], read: set[str]) -> tuple[str, Iterator[tuple[str, bool]]]:
    """Return a file's path, and its texts (False) and the names that it reads between them (True)."""
    read.add(path)
    parts: list[tuple[str, bool]] = []
    text, at = plain[path], 0
    for named in _INPUT.finditer(text):
        parts += [(text[at : named.start()], False), ((named[1] or named[2] or "").strip(), True)]
        at = named.end()
    return path, iter([*parts, (text[at:] + "\n", False)])


def _find_file(name: str, main: str, inside: str, plain: Mapping[str, str]) -> str:
    """Return the path of the file that *name* means, from the main file's folder, else from the file's own, or ""."""
    places = (posixpath.join(posixpath.dirname(path), f"{name.removesuffix('.tex')}.tex") for path in (main, inside))
    return next((path for path in map(posixpath.normpath, places) if path in plain), "")


def _owner(block: Environment, last: Environment | None, statements: Mapping[int, Statement]) -> Statement | None:
    around = statements.get(id(block.parent))
    is_near = last is not None and last.section == block.section
    return around or (statements[id(last)] if is_near else None)


def older_premises(statements: Sequence[Statement], inferred: set[str], odd: Counter[str]) -> list[list[int]]:
    """Return the places of the older statements that each one uses, without repetitions.

    Where a proof says what it uses, only that counts, since the statement's own uses are then what its words mean.
    """
    places: dict[str, int] = {}
    for place, each in enumerate(statements):
        odd["labels of several statements (the first one is meant)"] += sum(label in places for label in each.labels)
        places = dict.fromkeys(each.labels, place) | places
    premises: list[list[int]] = []
    for place, each in enumerate(statements):
        older: dict[int, None] = {}
        for label in each.proved or each.stated:
            other = places.get(label)
            if other is None:
                odd[f"uses of {'statements in attributes or Verso' if label in inferred else 'unknown labels'}"] += 1
            elif other < place:
                older[other] = None
            else:
                odd["uses of a newer statement" if other > place else "uses of the statement itself"] += 1
        premises.append(list(older))
    return premises


def _labels(command: re.Pattern[str], source: str) -> list[str]:
    named = (label for labels in command.findall(source) for label in labels.split(","))
    return [label for label in map(_clean_label, named) if label]


def _clean_label(label: str) -> str:
    """Return a label as it is compared: an underscore may be escaped, and a line may break in it."""
    return " ".join(label.replace(r"\_", "_").split())
