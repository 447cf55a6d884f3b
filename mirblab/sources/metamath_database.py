"""metamath_database: a Metamath database as assertions with their hypotheses, comments and the labels they use."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mirblab.errors import MirblabError
from mirblab.lines import Problems, lines
from mirblab.sources.metamath_proofs import Used, used

PROVABLE = "|-"
_HEADING = re.compile(r"(?:#{8,}|(?:#\*){4,}#?|(?:=-){4,}=?|(?:-\.){4,}-?)")
_DATE = re.compile(r"\[\d{1,2}-\w{3}-\d{2,4}\]")


@dataclass(eq=False, slots=True)
class Assertion:
    """A `$a` or `$p` whose statement begins with `|-`: an axiom, a definition, or a theorem.

    `text` is `hypothesis & hypothesis => statement`; `uses` the assertions of this kind that its proof uses, all
    of them earlier; `order` its place among all assertions of the file; `kind` axiom, theorem, or unproved, for a
    theorem whose proof lacks steps.
    """

    label: str
    kind: str
    text: str
    uses: list[str]
    comment: str
    section: str
    in_mathbox: bool
    order: int


@dataclass
class Database:
    """The assertions in the order of the file, a hash of what was read, and what was odd."""

    assertions: list[Assertion]
    digest: str
    odd: Counter[str]


def read(path: Path) -> Database:
    """Read a database, plain or gzipped, with the files that it includes, which must lie in the same folder.

    Raises MirblabError with file and line for what is no Metamath, and FileNotFoundError for a missing file.
    """
    tokens = _Tokens(path)
    reader = _Reader(tokens)
    reader.read()
    return Database(reader.assertions, tokens.digest.hexdigest(), reader.odd)


class _Tokens:
    """The tokens of a file and of those that it includes; a comment is one token, which begins with `$(`."""

    def __init__(self, path: Path) -> None:
        self.path, self.root = path, path.parent.resolve()
        self.seen: set[Path] = set()
        self.digest = hashlib.blake2b(digest_size=16)
        self.where = path.name

    def read(self, path: Path) -> Iterator[str]:
        """Yield the tokens of one file; of one that was read before, none, as Metamath has it."""
        if path.resolve() in self.seen:
            return
        self.seen.add(path.resolve())
        problems, inside = Problems(path), []
        for number, line in lines(path, problems):
            self.digest.update(line.encode() + b"\n")
            self.where = f"{path.name}, line {number}"
            for token in line.split():
                if inside:
                    inside.append(token)
                    if token == {"$(": "$)", "$[": "$]"}[inside[0]]:
                        whole, inside = inside, []
                        yield from self._whole(whole)
                        self.where = f"{path.name}, line {number}"
                elif token in ("$(", "$["):
                    inside = [token]
                else:
                    yield token
        problems.raise_if_any()
        if inside:
            raise MirblabError(f"{path.name}: the last '{inside[0]}' does not end")

    def _whole(self, inside: list[str]) -> Iterator[str]:
        if inside[0] == "$(":
            yield " ".join(inside[:-1])
            return
        path = (self.root / " ".join(inside[1:-1])).resolve()
        if not path.is_relative_to(self.root) or not path.is_file():
            raise MirblabError(
                f"{self.where}: includes '{path.name}', which is not in the folder of {self.path.name}; put it there"
            )
        yield from self.read(path)


class _Reader:
    """Follows the scopes of a database and collects what it asserts."""

    def __init__(self, tokens: _Tokens) -> None:
        self.tokens, self.stream = tokens, tokens.read(tokens.path)
        self.assertions: list[Assertion] = []
        self.odd: Counter[str] = Counter()
        self.codes: dict[str, str] = {}  # label to typecode; "" for hypotheses
        self.floating: list[tuple[str, str]] = []  # label and variable of each $f in force
        self.essential: list[tuple[str, list[str]]] = []  # label and tokens of each $e in force
        self.scopes: list[tuple[int, int]] = []
        self.comment, self.section, self.n_assertions, self.in_mathbox = "", "", 0, False

    def read(self) -> None:
        """Read to the end of the file."""
        label = ""
        for token in self.stream:
            if token.startswith("$("):
                self._remark(token[2:].split())
                continue
            if token[0] == "$":
                self._statement(token, label)
                label = self.comment = ""
            elif label:
                raise self._error(f"'{token}' follows the label '{label}'; expected $e, $f, $a or $p")
            else:
                label = token
        if label or self.scopes:
            raise self._error(f"the file ends in the middle of {'a scope' if self.scopes else 'a statement'}")

    def _statement(self, keyword: str, label: str) -> None:
        if label and keyword not in ("$e", "$f", "$a", "$p"):
            raise self._error(f"'{keyword}' after the label '{label}'; expected $e, $f, $a or $p")
        if keyword == "${":
            self.scopes.append((len(self.floating), len(self.essential)))
        elif keyword == "$}" and self.scopes:
            n_floating, n_essential = self.scopes.pop()
            del self.floating[n_floating:], self.essential[n_essential:]
        elif keyword in ("$c", "$v", "$d"):
            self._words()
        elif keyword in ("$e", "$f", "$a", "$p"):
            self._labelled(keyword, label, self._words())
        else:
            raise self._error(f"'{keyword}' has no place here")

    def _words(self) -> list[str]:
        """Return the tokens up to `$.`, without comments."""
        words: list[str] = []
        for token in self.stream:
            if token == "$.":
                return words
            if token in ("${", "$}", "$c", "$v", "$d", "$e", "$f", "$a", "$p"):
                break
            if not token.startswith("$("):
                words.append(token)
        raise self._error("a statement does not end with '$.'")

    def _labelled(self, keyword: str, label: str, words: list[str]) -> None:
        if not label or label in self.codes:
            raise self._error(f"the label '{label}' is taken" if label else f"'{keyword}' has no label")
        if not words:
            raise self._error(f"the statement '{label}' is empty")
        self.codes[label] = words[0] if keyword in ("$a", "$p") else ""
        if keyword == "$f":
            self.floating.append((label, words[-1]))
        elif keyword == "$e":
            self.essential.append((label, words))
        else:
            self._assertion(keyword, label, words)

    def _assertion(self, keyword: str, label: str, words: list[str]) -> None:
        order, self.n_assertions = self.n_assertions, self.n_assertions + 1
        statement, proof = words, Used([])
        if keyword == "$p":
            if "$=" not in words:
                raise self._error(f"the theorem '{label}' has no proof; expected '$='")
            split = words.index("$=")
            statement = words[:split]
            proof = used(words[split + 1 :], self._mandatory(statement), f"{self.tokens.where} ('{label}')")
        if not statement or statement[0] != PROVABLE:
            return
        self._count(proof)
        hypotheses = " & ".join(" ".join(tokens) for _, tokens in self.essential)
        text = f"{hypotheses} => {' '.join(statement)}" if hypotheses else " ".join(statement)
        kind = "axiom" if keyword == "$a" else "unproved" if proof.incomplete else "theorem"
        uses = [name for name in proof.labels if self.codes.get(name) == PROVABLE and name != label]
        self.assertions.append(
            Assertion(label, kind, text, uses, self.comment, self.section, self.in_mathbox, order)
        )  # fmt: skip

    def _mandatory(self, statement: list[str]) -> list[str]:
        """Return the labels of the hypotheses that an assertion has: of its variables, and the essential ones."""
        symbols = {*statement, *(token for _, tokens in self.essential for token in tokens)}
        return [
            *(label for label, variable in self.floating if variable in symbols),
            *(label for label, _ in self.essential),
        ]

    def _count(self, proof: Used) -> None:
        self.odd["labels that a compressed proof lists and does not use"] += proof.idle
        self.odd["labels in proofs that nothing earlier has"] += sum(name not in self.codes for name in proof.labels)
        self.odd["proofs that lack steps (documents, no queries)"] += proof.incomplete

    def _remark(self, words: list[str]) -> None:
        """Keep a comment for the assertion that follows; a heading begins a section."""
        if words and _HEADING.fullmatch(words[0]):
            end = next((place for place, word in enumerate(words[1:], 1) if _HEADING.fullmatch(word)), len(words))
            self.section, self.comment = " ".join(words[1:end]), ""
            self.in_mathbox = self.in_mathbox or "mathbox" in self.section.casefold()
        elif not (len(words) == 1 and _DATE.fullmatch(words[0])):
            self.comment = " ".join(words)

    def _error(self, what: str) -> MirblabError:
        return MirblabError(f"{self.tokens.where}: {what}")
