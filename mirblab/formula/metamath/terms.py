"""terms: the expressions of a Metamath database as trees by its own grammar, and the unification of two of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from mirblab.core.errors import MirblabError
from mirblab.formula.metamath.database import Expression, Logic
from mirblab.sources.metamath import PROVABLE

# A variable of the database that stands for itself, a metavariable that may be replaced (the slot of a statement times
# the number of variables, plus the variable's number), or the label of a syntax axiom with a term for each variable.
Term = str | int | tuple
Bindings = dict[int, Term]
WFF = "wff"  # the typecode of what may follow `|-`


@dataclass(slots=True)
class _Node:
    """A place in the syntax axioms of one typecode: what may follow, and the axioms that end here."""

    constants: dict[str, _Node] = field(default_factory=dict)
    typecodes: dict[str, _Node] = field(default_factory=dict)
    label: str = ""


@dataclass(frozen=True, slots=True)
class Pattern:
    """A statement whose variables are metavariables: conclusion, essential hypotheses, pairs that must be distinct."""

    conclusion: Term
    hypotheses: tuple[Term, ...]
    disjoint: tuple[tuple[int, int], ...]


class Grammar:
    """The grammar of a database: its axioms that do not begin with `|-`, one production each.

    An expression is read by recursive descent over a prefix tree of the productions, where each typecode is read once
    at each place (Norvig, Computational Linguistics 1991). The grammar must be unambiguous and not left-recursive, as
    that of set.mm is.
    """

    def __init__(self, logic: Logic) -> None:
        self.logic = logic
        self.variables = list(logic.typecodes)
        self.numbers = {variable: number for number, variable in enumerate(self.variables)}
        self.codes = [logic.typecodes[variable] for variable in self.variables]
        self.typecodes: dict[str, str] = {}  # of the terms that begin with the label of a syntax axiom
        self._roots: dict[str, _Node] = {}
        self._orders: dict[str, list[int]] = {}  # places of the arguments among the variables in the order of the text
        self._productions: dict[str, Expression] = {}
        self._patterns: dict[tuple[str, int], Pattern] = {}
        for statement in logic.statements.values():
            if statement.expression[0] != PROVABLE and not statement.proof:
                self._add(statement.label, statement.expression, [each.expression[1] for each in statement.hypotheses])

    def _add(self, label: str, expression: Expression, variables: list[str]) -> None:
        placed = [symbol for symbol in expression[1:] if symbol in self.numbers]
        if sorted(placed) != sorted(variables):
            raise MirblabError(f"the syntax axiom '{label}' must name each of its variables once: {expression}")
        node = self._roots.setdefault(expression[0], _Node())
        for symbol in expression[1:]:
            edges = node.typecodes if symbol in self.numbers else node.constants
            node = edges.setdefault(self.logic.typecodes.get(symbol, symbol), _Node())
        if node.label:
            raise MirblabError(f"the grammar is ambiguous: '{node.label}' and '{label}' have the same form")
        node.label, self.typecodes[label], self._productions[label] = label, expression[0], expression
        self._orders[label] = [placed.index(variable) for variable in variables]

    def parse(self, expression: Expression) -> Term:
        """Return the term that follows the typecode of an expression; MirblabError when there is none, or several.

        >>> from mirblab.formula.metamath.database import read_logic
        >>> grammar = Grammar(read_logic("mini"))
        >>> grammar.parse(tuple("|- ( ph -> -. ps )".split()))
        ('wi', 'ph', ('wn', 'ps'))
        """
        code = WFF if expression[0] == PROVABLE else expression[0]
        reading = _Reading(self, expression)
        terms = [term for end, term in reading.read(code, 1) if end == len(expression)]
        if len(terms) != 1:
            what = "is ambiguous" if terms else "does not fit the grammar"
            raise MirblabError(f"'{' '.join(expression):.200}' {what} of {self.logic.name}")
        return terms[0]

    def write(self, term: Term) -> list[str]:
        """Return the symbols of a term without metavariables, which `parse` reads as this term."""
        if isinstance(term, str):
            return [term]
        if isinstance(term, int):
            raise MirblabError(f"the term has a metavariable for '{self.variables[term % len(self.variables)]}'")
        in_text = dict(zip(self._orders[term[0]], term[1:], strict=True))
        symbols, place = list[str](), 0
        for symbol in self._productions[term[0]][1:]:
            if symbol in self.numbers:
                symbols += self.write(in_text[place])
                place += 1
            else:
                symbols.append(symbol)
        return symbols

    def pattern(self, label: str, slot: int) -> Pattern:
        """Return a statement as a pattern; patterns of different slots have no metavariable in common."""
        if (label, slot) not in self._patterns:
            statement = self.logic.statement(label)
            first = slot * len(self.variables)
            expressions = [statement.expression, *(each.expression for each in statement.essential)]
            terms = [self._open(self.parse(each), first) for each in expressions]
            pairs = tuple((first + self.numbers[one], first + self.numbers[other]) for one, other in statement.disjoint)
            self._patterns[label, slot] = Pattern(terms[0], tuple(terms[1:]), pairs)
        return self._patterns[label, slot]

    def _open(self, term: Term, first: int) -> Term:
        if isinstance(term, str):
            return first + self.numbers[term]
        return (term[0], *(self._open(part, first) for part in term[1:]))  # type: ignore[index]

    def metavariable(self, variable: str, slot: int) -> int:
        """Return the metavariable of a variable in the patterns of a slot."""
        return slot * len(self.variables) + self.numbers[variable]

    def typecode(self, term: Term) -> str:
        """Return the typecode of a term."""
        if isinstance(term, tuple):
            return self.typecodes[term[0]]
        return self.codes[self.numbers[term] if isinstance(term, str) else term % len(self.variables)]

    def unify(self, left: Term, right: Term, bindings: Bindings, trail: list[int]) -> bool:
        """Bind metavariables so that two terms become equal, and return whether that is possible.

        It is Robinson's unification (J. ACM 1965) with a check of typecodes. What is bound is added to the *trail*,
        also when the terms do not unify, so that the caller can undo it.
        """
        pairs = [(left, right)]
        while pairs:
            one, other = pairs.pop()
            while type(one) is int and one in bindings:
                one = bindings[one]
            while type(other) is int and other in bindings:
                other = bindings[other]
            if one is other:
                continue
            if type(other) is int and type(one) is not int:
                one, other = other, one
            if type(one) is int:
                if one == other:
                    continue
                if self.codes[one % len(self.codes)] != self.typecode(other) or occurs(one, other, bindings):
                    return False
                bindings[one] = other
                trail.append(one)
            elif type(one) is str or type(other) is str:
                if one != other:
                    return False
            elif one[0] != other[0]:  # type: ignore[index]
                return False
            else:
                pairs += zip(one[1:], other[1:], strict=True)  # type: ignore[index]
        return True


class _Reading:
    """One expression, of which each typecode is read once at each place."""

    def __init__(self, grammar: Grammar, expression: Expression) -> None:
        self.grammar, self.symbols = grammar, expression
        self.read_before: dict[tuple[str, int], list[tuple[int, Term]] | None] = {}

    def read(self, code: str, place: int) -> list[tuple[int, Term]]:
        """Return the ends and terms of all that begins at a place and has a typecode."""
        key = (code, place)
        if key in self.read_before:
            before = self.read_before[key]
            if before is None:
                raise MirblabError(f"the grammar of {self.grammar.logic.name} is left-recursive in '{code}'")
            return before
        self.read_before[key] = None
        found: list[tuple[int, Term]] = []
        if place < len(self.symbols):
            symbol = self.symbols[place]
            if self.grammar.logic.typecodes.get(symbol) == code:
                found.append((place + 1, symbol))
            if code in self.grammar._roots:
                found += self._follow(self.grammar._roots[code], place, ())
        self.read_before[key] = found
        return found

    def _follow(self, node: _Node, place: int, arguments: tuple[Term, ...]) -> Iterator[tuple[int, Term]]:
        if node.label:
            yield place, (node.label, *(arguments[number] for number in self.grammar._orders[node.label]))
        if place < len(self.symbols):
            after = node.constants.get(self.symbols[place])
            if after is not None:
                yield from self._follow(after, place + 1, arguments)
            for code, follower in node.typecodes.items():
                for end, term in self.read(code, place):
                    yield from self._follow(follower, end, (*arguments, term))


def occurs(metavariable: int, term: Term, bindings: Bindings) -> bool:
    """Return whether a metavariable occurs in a term, under the bindings."""
    terms = [term]
    while terms:
        each = terms.pop()
        while type(each) is int and each in bindings:
            each = bindings[each]
        if each == metavariable and type(each) is int:
            return True
        if type(each) is tuple:
            terms += each[1:]
    return False


def resolve(term: Term, bindings: Bindings) -> Term:
    """Return a term with what its metavariables are bound to, all the way down."""
    while type(term) is int and term in bindings:
        term = bindings[term]
    if type(term) is tuple:
        return (term[0], *[resolve(part, bindings) for part in term[1:]])
    return term


def has_metavariable(term: Term) -> bool:
    """Return whether a metavariable occurs in a resolved term."""
    if type(term) is tuple:
        return any(has_metavariable(part) for part in term[1:])
    return type(term) is int


def leaves(term: Term) -> Counter[str | int]:
    """Return how often each variable and metavariable occurs in a term.

    >>> leaves(("wi", "ph", ("wn", "ph")))
    Counter({'ph': 2})
    """
    if not isinstance(term, tuple):
        return Counter([term])
    return sum((leaves(part) for part in term[1:]), Counter())
