"""blueprint_lean: the declarations of a Lean file, read as text: name, statement with its variables, attributes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from mirblab.sources import lean_code
from mirblab.sources.blueprint_binders import ATOM, NAME, binders, groups, shown
from mirblab.sources.blueprint_commands import KINDS, WORD, Command, closing, commands
from mirblab.sources.blueprint_scope import Scope

PROVED = ("theorem", "lemma")
_DECLARES = re.compile(rf"(?:\s*\(priority[^()]*\))?\s*(?P<name>{NAME})(?:\.\{{[^}}]*\}})?")
_HERE = re.compile(rf"[ \t]+({NAME})")
_ALIAS = re.compile(rf"\s*(?:⟨(?P<both>[^⟩]*)⟩|(?P<one>{NAME}))\s*:=\s*(?P<target>{NAME})", re.DOTALL)
_PROSE = re.compile(r"^#doc\b", re.MULTILINE)
_TACTICS = re.compile(r"(?<![\w.'])by(?![\w'.])|\n\s*(?:termination_by|decreasing_by)(?![\w'.])")


@dataclass
class Declaration:
    """A declaration: its full name, its `statement` in one line, and the `source` with docstring and proof.

    `attributes` are the insides of `@[...]` as they stand.
    """

    name: str
    kind: str
    statement: str
    source: str
    attributes: list[str]
    is_private: bool = False
    path: str = ""


@dataclass
class Lean:
    """What a file declares; `marked` are attributes given later, each with what every name may stand for."""

    declarations: list[Declaration] = field(default_factory=list)
    aliases: dict[str, list[str]] = field(default_factory=dict)
    marked: list[tuple[str, list[list[str]]]] = field(default_factory=list)
    unnamed: int = 0


def prose(code: str) -> int:
    """Return where Verso's prose begins, the end of the file when it has none.

    >>> prose("open Verso\\n#doc (Manual) \\"A\\" =>\\ntheorem says")
    11
    """
    found = _PROSE.search(code)
    return found.start() if found else len(code)


def read(code: str) -> Lean:
    """Return what the Lean part of a file declares, in order; nothing is elaborated.

    A statement has the keyword, the full name, the variables that Lean would add, the binders and the type. That of
    a definition, structure or instance has its body up to the first tactic block, too.

    >>> found = read("namespace A\\nvariable (n : Nat)\\n/-- Doc. -/\\n@[simp] theorem b : n = n := by rfl")
    >>> found.declarations[0].statement, found.declarations[0].attributes
    ('theorem A.b (n : Nat) : n = n', ['simp'])
    """
    reading = _Reading(code[: prose(code)])
    for command in commands(reading.code, reading.masked):
        reading.command(command)
    return reading.lean


class _Reading:
    """One pass over a file; `masked` is the source with blanks for comments and texts, place for place."""

    def __init__(self, code: str) -> None:
        self.code, self.masked = code, lean_code.blanked(code)
        self.lean, self.scope = Lean(), Scope()
        docs = (place for place in lean_code.pieces(code) if place[0] == "comment")
        self._docs = {end: start for _, start, end in docs if code.startswith("/--", start)}

    def command(self, command: Command) -> None:
        """Take in what a command declares, or what it means for those that follow."""
        found = WORD.match(self.masked, command.at, command.end)
        if found is None:
            return
        word, given = found["word"], self.masked[found.end() : command.end]
        self.scope.enter("", is_namespace=False)
        for once in command.once:
            self._set(*once)
        self._read(command, found, given)
        self.scope.leave("")
        here = _HERE.match(given)
        if word in ("namespace", "section", "mutual"):
            self.scope.enter(here[1] if here else "", is_namespace=word == "namespace")
        elif word == "end":
            self.scope.leave(here[1] if here else "")
        self._set(word, given)

    def _set(self, word: str, given: str) -> None:
        if word.startswith("variable"):
            self.scope.variable(given)
        elif word == "include":
            self.scope.include(given)
        elif word == "omit":
            self.scope.omit(given)

    def _read(self, command: Command, found: re.Match[str], given: str) -> None:
        word = " ".join(found["word"].split())
        if word in KINDS:
            self._declaration(command, found, word)
        elif word == "alias" and (alias := _ALIAS.match(given)):
            for name in re.findall(NAME, alias["both"] or alias["one"]):
                self.lean.aliases[self.scope.full_name(name)] = self.scope.names(alias["target"])
        elif word == "attribute" and given.lstrip().startswith("["):
            close = closing(self.masked, found.end(), command.end)
            names = re.findall(NAME, self.masked[close : command.end])
            inside = self.code[self.masked.index("[", found.end()) + 1 : close]
            self.lean.marked.append((inside, [self.scope.names(name) for name in names]))

    def _declaration(self, command: Command, found: re.Match[str], kind: str) -> None:
        named = _DECLARES.match(self.masked, found.end(), command.end)
        if named is None:
            self.lean.unnamed += 1
            return
        name = self.scope.full_name(named["name"])
        told = lean_code.statement(f"{kind} x {self.code[named.end() : command.end]}").removeprefix(f"{kind} x")
        text = " ".join([f"{kind} {name}", *_told(kind, told.strip(), self.scope)])
        source = self.code[self._documented(command.begin) : command.end]
        is_private = "private" in self.masked[command.at : found.start("word")]
        self.lean.declarations.append(Declaration(name, kind, text, source, command.attributes, is_private))

    def _documented(self, begin: int) -> int:
        """Return where the docstring before the place *begin* begins, or *begin* when there is none."""
        return self._docs.get(len(self.code[:begin].rstrip()), begin)


def _told(kind: str, told: str, scope: Scope) -> Iterator[str]:
    """Yield the variables that a declaration takes, and what it says itself; `told` is what follows its name."""
    own, after = groups(told)
    names = {binder.name for group in own for binder in binders(group)}
    if kind not in PROVED:
        told = told[:after] + body(told[after:])
    taken = shown(scope.needed(told, names))
    yield from (part for part in (taken, " ".join(told.split())) if part)


def body(text: str) -> str:
    """Return what a definition says after its binders, without what begins with its first tactic block.

    >>> body(": Nat where\\n  a := 1\\n  b := by simp"), body(":= by exact 2")
    (': Nat where\\n  a := 1', '')
    """
    assigned = re.search(r":=|\bwhere\b|\n\s*\|", text)
    tactics = _TACTICS.search(text, assigned.start()) if assigned else None
    if tactics is None:
        return text
    return re.sub(rf"(?:(?<=\s){ATOM}\s*)?:=\s*$", "", text[: tactics.start()]).rstrip()
