"""database: the statements of a Metamath database with their hypotheses and proofs, and the check of a proof."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import combinations, product
from pathlib import Path
from typing import Any

from mirblab.core.errors import MirblabError, unknown
from mirblab.sources.metamath import Assertion, Reader, Tokens, decode_step, find_database

Expression = tuple[str, ...]  # a typecode and the symbols that follow it
Pair = tuple[str, str]  # two variables, in alphabetical order


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """A hypothesis `$f` (a variable and its typecode) or `$e`."""

    label: str
    expression: Expression
    is_floating: bool


@dataclass(frozen=True, slots=True)
class Statement:
    """An axiom or a theorem with its frame: the mandatory hypotheses in their order, and distinct variables.

    `disjoint` has the pairs of variables of the frame that must be distinct, `in_force` those that a proof may rely on,
    dummy variables included; `floating` has the labels of the variables that a proof may use. `proof` is empty for an
    axiom. `order` counts the statements with a label from 0.
    """

    label: str
    order: int
    hypotheses: tuple[Hypothesis, ...]
    expression: Expression
    disjoint: frozenset[Pair]
    in_force: frozenset[Pair]
    floating: frozenset[str]
    proof: tuple[str, ...] = ()

    @property
    def essential(self) -> list[Hypothesis]:
        """Return the hypotheses that are no variables."""
        return [each for each in self.hypotheses if not each.is_floating]

    @property
    def text(self) -> str:
        """Return `hypothesis & hypothesis => statement`, as the collections of a database write it."""
        given = " & ".join(" ".join(each.expression) for each in self.essential)
        return f"{given} => {' '.join(self.expression)}" if given else " ".join(self.expression)


@dataclass(frozen=True, slots=True)
class Step:
    """A step of a proof: what was applied (a hypothesis or a statement), to which earlier steps, with what result."""

    label: str
    arguments: tuple[int, ...]
    expression: Expression


@dataclass
class Logic:
    """What a database states: hypotheses `$f`, axioms and theorems by label, in the order of the file.

    `typecodes` has the typecode of each variable; `assertions` has what is said about each statement that begins with
    `|-`: its comment, the day on which it was contributed, the labels of its proof.
    """

    name: str
    floating: dict[str, Hypothesis] = field(default_factory=dict)
    statements: dict[str, Statement] = field(default_factory=dict)
    typecodes: dict[str, str] = field(default_factory=dict)
    assertions: list[Assertion] = field(default_factory=list)

    def statement(self, label: str) -> Statement:
        """Return the axiom or theorem with a label; MirblabError for an unknown one."""
        if label not in self.statements:
            raise unknown("statement", label, self.statements)
        return self.statements[label]

    def __repr__(self) -> str:
        return f"Logic('{self.name}', {len(self.statements):,} statements, {len(self.assertions):,} of them provable)"


def read_logic(source: str | Path) -> Logic:
    """Read a database, plain or gzipped, with the files that it includes; MirblabError with file and line.

    *source* is a file .mm or .mm.gz, the name of one in the data folder, or "mini", the bundled database; "a|b" is the
    first that is here.

    >>> read_logic("mini").statement("a1i").text
    '|- ph => |- ( ps -> ph )'
    """
    reader = _FrameReader(Tokens(find_database(source)))
    reader.read()
    reader.logic.assertions = reader.assertions
    return reader.logic


class _FrameReader(Reader):
    def __init__(self, tokens: Tokens) -> None:
        super().__init__(tokens)
        self.logic = Logic(tokens.path.name)
        self.places: dict[str, int] = {}  # of the hypotheses, which a proof names in their order
        self.shared: dict[object, frozenset[Any]] = {}  # equal sets are kept once

    def keep(self, keyword: str, label: str, words: list[str]) -> None:
        super().keep(keyword, label, words)
        self.places[label] = len(self.places)
        if keyword == "$f":
            if len(words) != 2 or self.logic.typecodes.get(words[1], words[0]) != words[0]:
                raise MirblabError(
                    f"{self.tokens.where}: '{label}' must give a variable its only typecode, found '{' '.join(words)}'"
                )
            self.logic.floating[label] = Hypothesis(label, (words[0], words[1]), is_floating=True)
            self.logic.typecodes[words[1]] = words[0]
        elif keyword in ("$a", "$p"):
            split = words.index("$=") if keyword == "$p" else len(words)
            self.logic.statements[label] = self._framed(label, tuple(words[:split]), tuple(words[split + 1 :]))

    def _framed(self, label: str, expression: Expression, proof: tuple[str, ...]) -> Statement:
        essential = [Hypothesis(name, tuple(words), is_floating=False) for name, words in self.essential]
        symbols = set(expression).union(*(each.expression for each in essential))
        floating = [self.logic.floating[name] for name, variable in self.floating if variable in symbols]
        hypotheses = sorted(floating + essential, key=lambda each: self.places[each.label])
        key = tuple(map(tuple, self.disjoint))
        in_force = self.shared.setdefault(key, frozenset(pair for group in key for pair in ordered_pairs(group)))
        usable = self.shared.setdefault(tuple(self.floating), frozenset(name for name, _ in self.floating))
        mandatory = frozenset(pair for pair in in_force if pair[0] in symbols and pair[1] in symbols)
        order = len(self.logic.statements)
        return Statement(label, order, tuple(hypotheses), expression, mandatory, in_force, usable, proof)


def ordered_pairs(variables: Iterable[str]) -> list[Pair]:
    """Return all pairs of different variables, each in alphabetical order.

    >>> ordered_pairs(["y", "x"])
    [('x', 'y')]
    """
    return list(combinations(sorted(set(variables)), 2))


def check_proof(logic: Logic, theorem: Statement) -> list[Step]:
    """Return the steps of a theorem's proof, of which the last states the theorem; MirblabError if it proves it not.

    A proof is a list of labels in reverse Polish order, or compressed (Megill and Wheeler, Metamath, 2019, sections
    4.3, 4.4 and appendix B): a hypothesis puts its expression on a stack; an axiom or an earlier theorem takes its
    hypotheses from the stack, under one substitution of expressions for variables, and puts its conclusion there. Where
    two variables must be distinct, the expressions for them may share no variable, and each pair of their variables
    must be distinct in the theorem.

    >>> logic = read_logic("mini")
    >>> [step.label for step in check_proof(logic, logic.statement("a1i"))][-2:]
    ['ax-1', 'ax-mp']
    """
    stack: list[int] = []
    steps: list[Step] = []
    marked: list[int] = []
    own = {each.label: each for each in theorem.hypotheses if not each.is_floating}
    for entry in _entries(theorem):
        if entry is None:
            if not stack:
                raise _fault(theorem, steps, "marks a step before there is one")
            marked.append(stack[-1])
            continue
        if isinstance(entry, int):
            if entry >= len(marked):
                raise _fault(theorem, steps, f"names the marked step {entry + 1} of {len(marked)}")
            stack.append(marked[entry])
            continue
        if entry in own or (entry in theorem.floating and entry in logic.floating):
            steps.append(Step(entry, (), (own.get(entry) or logic.floating[entry]).expression))
        else:
            used = logic.statements.get(entry)
            if used is None or used.order >= theorem.order:
                raise _fault(theorem, steps, f"uses '{entry}', which is no hypothesis and no earlier statement")
            steps.append(_applied(logic, theorem, used, stack, steps))
        stack.append(len(steps) - 1)
    if len(stack) != 1 or steps[stack[0]].expression != theorem.expression:
        left = [" ".join(steps[number].expression) for number in stack]
        raise _fault(theorem, steps, f"ends with {left or 'nothing'}, not with '{' '.join(theorem.expression)}'")
    return steps


def _applied(logic: Logic, theorem: Statement, used: Statement, stack: list[int], steps: list[Step]) -> Step:
    """Return the step that *used* makes of the top of the stack, which it takes from there."""
    count = len(used.hypotheses)
    if count > len(stack):
        raise _fault(theorem, steps, f"'{used.label}' needs {count} steps, the stack has {len(stack)}")
    arguments = tuple(stack[len(stack) - count :])
    del stack[len(stack) - count :]
    substitution: dict[str, Expression] = {}
    for hypothesis, number in zip(used.hypotheses, arguments, strict=True):
        given = steps[number].expression
        if hypothesis.is_floating and given[0] == hypothesis.expression[0]:
            substitution[hypothesis.expression[1]] = given[1:]
    for hypothesis, number in zip(used.hypotheses, arguments, strict=True):
        expected = hypothesis.expression
        if expected[1:] and hypothesis.is_floating and expected[1] in substitution:
            continue
        if substitute(expected, substitution) != steps[number].expression:
            found = " ".join(steps[number].expression)
            raise _fault(theorem, steps, f"the hypothesis {hypothesis.label} of '{used.label}' does not fit '{found}'")
    for one, other in used.disjoint:
        variables = [[symbol for symbol in substitution[each] if symbol in logic.typecodes] for each in (one, other)]
        for pair in product(*variables):
            if (min(pair), max(pair)) not in theorem.in_force:  # which has no variable twice
                raise _fault(theorem, steps, f"'{used.label}' wants '{pair[0]}' and '{pair[1]}' to be distinct")
    return Step(used.label, arguments, substitute(used.expression, substitution))


def substitute(expression: Expression, substitution: dict[str, Expression]) -> Expression:
    """Return an expression with a sequence of symbols for each variable of the *substitution*, all at once."""
    symbols: list[str] = []
    for symbol in expression:
        if symbol in substitution:
            symbols.extend(substitution[symbol])
        else:
            symbols.append(symbol)
    return tuple(symbols)


def _entries(theorem: Statement) -> Sequence[str | int | None]:
    """Return a proof as labels, numbers from 0 of marked steps, and None, which marks the step before it."""
    proof = theorem.proof
    if not proof:
        raise MirblabError(f"'{theorem.label}' has no proof: it is an axiom")
    if "?" in "".join(proof) and ("?" in proof or proof[0] == "("):
        raise MirblabError(f"the proof of '{theorem.label}' lacks steps: it has a '?'")
    if proof[0] != "(":
        return list(proof)
    close = proof.index(")") if ")" in proof else len(proof) - 1
    labels = [*(each.label for each in theorem.hypotheses), *proof[1:close]]
    entries: list[str | int | None] = []
    code = ""
    for letter in "".join(proof[close + 1 :]):
        if letter == "Z":
            entries.append(None)
            continue
        code += letter
        if "A" <= letter <= "T":
            number = decode_step(code) - 1
            entries.append(labels[number] if number < len(labels) else number - len(labels))
            code = ""
    return entries


def _fault(theorem: Statement, steps: list[Step], what: str) -> MirblabError:
    return MirblabError(f"the proof of '{theorem.label}' is wrong after step {len(steps)}: {what}")
