"""proving: the steps of proofs as goals, and a bounded search for a proof that applies retrieved statements."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any

import numpy as np

from mirblab.core.errors import MirblabError, check_positive
from mirblab.formula.metamath.database import (
    Expression,
    Hypothesis,
    Logic,
    Statement,
    Step,
    check_proof,
    ordered_pairs,
)
from mirblab.formula.metamath.terms import Bindings, Grammar, Pattern, Term, has_metavariable, leaves, resolve
from mirblab.sources.metamath import PROVABLE, exclusion_reason, read_period

Heads = tuple[str | None, ...]  # of a term's parts; None for a metavariable
LIMIT = 20_000  # unifications of one search


@dataclass(frozen=True, slots=True)
class Goal:
    """What is to be proved, and what may be used for it without proof.

    `context` has the theorem's essential hypotheses and, if the goal is a step of its proof, the earlier steps that
    begin with `|-`. `used` are the statements that the author applied: to the goal if it is a step, anywhere in the
    proof if it is a whole theorem.
    """

    goal_id: str
    theorem: str
    order: int
    expression: Expression
    context: tuple[Hypothesis, ...]
    used: frozenset[str]
    text: str

    @property
    def is_whole(self) -> bool:
        """Return whether the goal is a whole theorem."""
        return self.goal_id == self.theorem

    @property
    def symbols(self) -> set[str]:
        """Return the symbols of the goal and of its context."""
        return {*self.expression}.union(*(each.expression for each in self.context))


@dataclass(frozen=True, slots=True)
class Application:
    """A statement that is applied, with what closes each of its essential hypotheses.

    A closer is a hypothesis of the goal's context or again an application. `terms` are the terms for the variables.
    """

    label: str
    expression: Expression
    terms: tuple[Term, ...]
    closers: tuple[Hypothesis | Application, ...]

    @property
    def depth(self) -> int:
        """Return 1 for a statement whose hypotheses the context has, 2 if it needs one more level, and so on."""
        return 1 + max((each.depth for each in self.closers if isinstance(each, Application)), default=0)

    @property
    def labels(self) -> list[str]:
        """Return the statements that are applied, the one that concludes the goal first."""
        return [self.label, *(label for each in self.closers if isinstance(each, Application) for label in each.labels)]

    def __str__(self) -> str:
        return "\n".join(self._lines(0))

    def _lines(self, indent: int) -> Iterator[str]:
        yield f"{'  ' * indent}{' '.join(self.expression)}    by {self.label}"
        for each in self.closers:
            if isinstance(each, Application):
                yield from each._lines(indent + 1)
            else:
                yield f"{'  ' * (indent + 1)}{' '.join(each.expression)}    is {each.label}"


@dataclass(frozen=True, slots=True)
class Outcome:
    """A search for a proof: the proof or None, the unifications that were tried, whether the limit ended it."""

    proof: Application | None
    work: int
    is_exhausted: bool


def proof_goals(logic: Logic, theorem: str, *, whole: bool = False) -> list[Goal]:
    """Return the goals of a theorem's proof: each step that applies a statement and begins with `|-`.

    A step that repeats one of the context is no goal. With *whole* the theorem itself is the only one. The text of a
    goal is `hypothesis & hypothesis => statement` with the theorem's hypotheses, as the documents have it.

    >>> from mirblab.formula.metamath.database import read_logic
    >>> logic = read_logic("mini")
    >>> [(goal.text, sorted(goal.used)) for goal in proof_goals(logic, "a1i")]
    [('|- ph => |- ( ph -> ( ps -> ph ) )', ['ax-1']), ('|- ph => |- ( ps -> ph )', ['ax-mp'])]
    """
    statement = logic.statement(theorem)
    steps = check_proof(logic, statement)
    if whole:
        applied = (step.label for step in steps if step.expression[0] == PROVABLE and step.label in logic.statements)
        context = tuple(statement.essential)
        expression, used = statement.expression, frozenset(applied)
        return [Goal(theorem, theorem, statement.order, expression, context, used, statement.text)]
    return list(_step_goals(logic, statement, steps))


def _step_goals(logic: Logic, statement: Statement, steps: list[Step]) -> Iterator[Goal]:
    context = {each.expression: each for each in statement.essential}
    for number, step in enumerate(steps, 1):
        if step.expression[0] != PROVABLE or step.label not in logic.statements or step.expression in context:
            continue
        name = f"{statement.label}-{number}"
        text = replace(statement, expression=step.expression).text
        known, used = tuple(context.values()), frozenset([step.label])
        yield Goal(name, statement.label, statement.order, step.expression, known, used, text)
        context[step.expression] = Hypothesis(f"step-{number}", step.expression, is_floating=False)


def draw_goals(
    logic: Logic, at: str | date, until: str | date = "", *, n_goals: int = 0, seed: int = 0, whole: bool = False
) -> list[Goal]:
    """Return goals of the theorems contributed from the day *at* on, before *until* ("": all later ones), by id.

    At most *n_goals* (0: all) are drawn by *seed*, a second step of a theorem only when each theorem has one. Theorems
    of mathboxes and old versions are left out. MirblabError when there are none, and for a number below 0.

    >>> from mirblab.formula.metamath.database import read_logic
    >>> logic = read_logic("mini")
    >>> len(draw_goals(logic, "2025-04-15", n_goals=20))
    20
    """
    if n_goals < 0:
        raise MirblabError(f"n_goals must be 0 (all) or the number of goals, found {n_goals}")
    period = read_period(at, until)
    chosen = [
        each.label for each in logic.assertions
        if period and each.contributed and each.contributed in period
        and each.kind == "theorem" and not exclusion_reason(each)
    ]  # fmt: skip
    if not chosen:
        raise MirblabError(f"{logic.name} has no theorem contributed from '{at}' on, before '{until or 'today'}'")
    rng = np.random.default_rng(seed)
    shuffled = [chosen[place] for place in rng.permutation(len(chosen))]
    rounds: list[list[Goal]] = []
    for label in shuffled:
        if n_goals and rounds and len(rounds[0]) == n_goals:
            break  # no theorem needs a second goal
        goals = proof_goals(logic, label, whole=whole)
        for number, place in enumerate(rng.permutation(len(goals))):
            rounds += [[]] if number == len(rounds) else []
            rounds[number].append(goals[place])
    drawn = [goal for one in rounds for goal in one]
    return sorted(drawn[: n_goals or len(drawn)], key=lambda goal: goal.goal_id)


class Prover:
    """Looks for proofs in a database; what it has parsed is kept for the next goal.

    >>> from mirblab.formula.metamath.database import read_logic
    >>> prover = Prover(read_logic("mini"))
    >>> goal = proof_goals(prover.logic, "a1i", whole=True)[0]
    >>> print(prover.prove(goal, ["ax-mp", "ax-1"], depth=2).proof)
    |- ( ps -> ph )    by ax-mp
      |- ph    is a1i.1
      |- ( ph -> ( ps -> ph ) )    by ax-1
    """

    def __init__(self, logic: Logic) -> None:
        self.logic, self.grammar = logic, Grammar(logic)
        self._terms: dict[Expression, Term] = {}
        self._all: _ByHeads | None = None

    def prove(
        self,
        goal: Goal,
        first: Sequence[str],
        then: Sequence[str] | None = (),
        *,
        depth: int = 1,
        limit: int = LIMIT,
    ) -> Outcome:
        """Return a checked proof whose last step applies one of *first*, the earliest of them that does.

        Its hypotheses are in the context or, at *depth* 2, conclusions of one of *first* or *then* whose hypotheses are
        in the context (*then* None: any earlier statement). A statement that does not stand before the goal's theorem
        is not applied, nor one that leaves the goal itself to be proved. Disjoint variables are those of the theorem;
        a variable that remains free becomes a dummy variable. The search ends after *limit* unifications.
        """
        check_positive(limit=limit)
        if depth not in (1, 2):
            raise MirblabError(f"depth is 1 or 2, found {depth}")
        search = _Search(self, goal, limit)
        usable = [label for label in first if self._is_usable(label, goal)]
        closing: _ByHeads | None = None
        if depth == 2:
            closing = self._conclusions(goal, [*usable, *(then or ())], everything=then is None)
        try:
            for apply_with in [None, closing] if closing else [None]:
                for label in usable:
                    proof = search.apply_to_goal(label, apply_with)
                    if proof is not None:
                        return Outcome(proof, search.work, is_exhausted=False)
        except _Exhausted:
            return Outcome(None, search.work, is_exhausted=True)
        return Outcome(None, search.work, is_exhausted=False)

    def term(self, expression: Expression) -> Term:
        """Return the term of an expression, parsed once."""
        if expression not in self._terms:
            self._terms[expression] = self.grammar.parse(expression)
        return self._terms[expression]

    def _is_usable(self, label: str, goal: Goal) -> bool:
        statement = self.logic.statement(label)
        return statement.order < goal.order and statement.expression[0] == PROVABLE

    def _conclusions(self, goal: Goal, labels: Iterable[str], *, everything: bool) -> _ByHeads:
        if not everything:
            usable = [label for label in dict.fromkeys(labels) if self._is_usable(label, goal)]
            return _ByHeads((self.grammar.pattern(label, 0).conclusion, label) for label in usable)
        if self._all is None:
            provable = [each for each in self.logic.statements.values() if each.expression[0] == PROVABLE]
            few_first = sorted(provable, key=lambda each: (len(each.essential), each.order))
            self._all = _ByHeads((self.grammar.pattern(each.label, 0).conclusion, each.label) for each in few_first)
        return self._all


class _Exhausted(Exception):
    """The limit of a search is reached."""


class _ByHeads:
    """Things with a term each, by the heads of the term and its parts, so that few are tried that cannot unify."""

    def __init__(self, things: Iterable[tuple[Term, Any]]) -> None:
        self.groups: dict[str | None, dict[Heads, list[Any]]] = {}
        for term, thing in things:
            self.groups.setdefault(_head(term), {}).setdefault(_part_heads(term), []).append(thing)

    def like(self, term: Term) -> list[Any]:
        """Return the things whose term may unify with a resolved one."""
        head, heads = _head(term), _part_heads(term)
        found: list[Any] = []
        for root in self.groups if head is None else (head, None):
            for other, things in self.groups.get(root, {}).items():
                if root is None or head is None or _may_agree(heads, other):
                    found += things
        return found


def _may_agree(one: Heads, other: Heads) -> bool:
    return all(a == b or a is None or b is None for a, b in zip(one, other, strict=True))


def _head(term: Term) -> str | None:
    return None if isinstance(term, int) else term if isinstance(term, str) else term[0]


def _part_heads(term: Term) -> Heads:
    return tuple(map(_head, term[1:])) if isinstance(term, tuple) else ()


@dataclass(slots=True)
class _Obligation:
    """A hypothesis to be closed: by the context, or also by an application; which closer of which application it is."""

    term: Term
    owner: _Applied
    place: int


@dataclass(slots=True)
class _Applied:
    """A statement under the bindings of the search, and what closes its hypotheses so far."""

    label: str
    slot: int
    pattern: Pattern
    closers: list[Hypothesis | _Applied | None] = field(default_factory=list)


class _Search:
    """The search for a proof of one goal, with its bindings and the work that was done."""

    def __init__(self, prover: Prover, goal: Goal, limit: int) -> None:
        self.prover, self.grammar, self.goal, self.limit = prover, prover.grammar, goal, limit
        self.work = 0
        self.target = prover.term(goal.expression)
        self.context = {prover.term(each.expression): each for each in goal.context}
        self.by_heads = _ByHeads((term, (term, hypothesis)) for term, hypothesis in self.context.items())
        self.bindings: Bindings = {}
        self.trail: list[int] = []
        self.closing: _ByHeads | None = None

    def apply_to_goal(self, label: str, closing: _ByHeads | None) -> Application | None:
        """Return a proof that ends with *label*, or None; *closing* are the statements that may close a hypothesis."""
        self.bindings, self.trail, self.closing = {}, [], closing
        applied = self._applied(label, 0)
        if not self._unify(applied.pattern.conclusion, self.target):
            return None
        return self._close(applied, self._obligations(applied))

    def _applied(self, label: str, slot: int) -> _Applied:
        pattern = self.grammar.pattern(label, slot)
        return _Applied(label, slot, pattern, [None] * len(pattern.hypotheses))

    def _obligations(self, applied: _Applied) -> list[_Obligation]:
        return [_Obligation(term, applied, place) for place, term in enumerate(applied.pattern.hypotheses)]

    def _unify(self, pattern: Term, other: Term) -> bool:
        self.work += 1
        if self.work > self.limit:
            raise _Exhausted
        return self.grammar.unify(pattern, other, self.bindings, self.trail)

    def _undo(self, length: int) -> None:
        while len(self.trail) > length:
            del self.bindings[self.trail.pop()]

    def _close(self, root: _Applied, obligations: list[_Obligation]) -> Application | None:
        """Close the obligation with the fewest choices, then the others; return the proof, or None and undo all."""
        if not obligations:
            return self._finished(root)
        terms = [resolve(each.term, self.bindings) for each in obligations]
        if self.target in terms:
            return None
        choices = [self._context_like(term) for term in terms]
        # Of those without a closer in the context, a bare metavariable comes last: any statement would close it.
        sizes = [(isinstance(term, int), len(known)) for term, known in zip(terms, choices, strict=True)]
        chosen = sizes.index(min(sizes))
        rest = obligations[:chosen] + obligations[chosen + 1 :]
        obligation, term, before = obligations[chosen], terms[chosen], len(self.trail)
        if not choices[chosen] and (self.closing is None or obligation.owner is not root):
            return None
        for known, hypothesis in choices[chosen]:
            if self._unify(term, known):
                obligation.owner.closers[obligation.place] = hypothesis
                proof = self._close(root, rest)
                if proof is not None:
                    return proof
            self._undo(before)
        if self.closing is None or obligation.owner is not root:
            return None
        slot = 1 + obligation.place
        for label in self.closing.like(term):
            if not self.prover._is_usable(label, self.goal):
                continue
            applied = self._applied(label, slot)
            if self._unify(applied.pattern.conclusion, term):
                obligation.owner.closers[obligation.place] = applied
                proof = self._close(root, rest + self._obligations(applied))
                if proof is not None:
                    return proof
            self._undo(before)
        return None

    def _context_like(self, term: Term) -> list[tuple[Term, Hypothesis]]:
        if has_metavariable(term):
            return self.by_heads.like(term)
        return [(term, self.context[term])] if term in self.context else []

    def _finished(self, root: _Applied) -> Application | None:
        """Return the proof if disjoint variables are respected, checked; free metavariables become dummy variables."""
        dummies = self._bind_free(root)
        if dummies is not None:
            pairs = {*self.prover.logic.statement(self.goal.theorem).in_force}
            if all(self._is_disjoint(applied, pairs, dummies) for applied in _all_applied(root)):
                proof = self._application(root)
                _verify(self.prover, self.goal, proof, dummies)
                return proof
        return None

    def _bind_free(self, root: _Applied) -> frozenset[str] | None:
        """Bind each free metavariable to a variable that the goal does not have; None where none is left."""
        theorem, logic = self.prover.logic.statement(self.goal.theorem), self.prover.logic
        seen = self.goal.symbols
        unused = [
            each.expression for label, each in logic.floating.items()
            if label in theorem.floating and each.expression[1] not in seen
        ]  # fmt: skip
        dummies = set[str]()
        for applied in _all_applied(root):
            for variable in (each.expression[1] for each in self._floating(applied)):
                for free in leaves(resolve(self.grammar.metavariable(variable, applied.slot), self.bindings)):
                    if not isinstance(free, int):
                        continue
                    code = self.grammar.typecode(free)
                    dummy = next((name for kind, name in unused if kind == code and name not in dummies), None)
                    if dummy is None:
                        return None
                    self.bindings[free] = dummy
                    self.trail.append(free)
                    dummies.add(dummy)
        return frozenset(dummies)

    def _floating(self, applied: _Applied) -> list[Hypothesis]:
        return [each for each in self.prover.logic.statement(applied.label).hypotheses if each.is_floating]

    def _is_disjoint(self, applied: _Applied, pairs: set[tuple[str, str]], dummies: frozenset[str]) -> bool:
        for one, other in applied.pattern.disjoint:
            left, right = (leaves(resolve(each, self.bindings)) for each in (one, other))
            for a in left:
                for b in right:
                    if a == b or (a not in dummies and b not in dummies and tuple(sorted((a, b))) not in pairs):
                        return False
        return True

    def _application(self, applied: _Applied) -> Application:
        variables = [each.expression[1] for each in self._floating(applied)]
        terms = [resolve(self.grammar.metavariable(each, applied.slot), self.bindings) for each in variables]
        conclusion = resolve(applied.pattern.conclusion, self.bindings)
        closers = [self._application(each) if isinstance(each, _Applied) else each for each in applied.closers if each]
        return Application(applied.label, (PROVABLE, *self.grammar.write(conclusion)), tuple(terms), tuple(closers))


def _all_applied(root: _Applied) -> Iterator[_Applied]:
    yield root
    for each in root.closers:
        if isinstance(each, _Applied):
            yield from _all_applied(each)


def labelled_proof(prover: Prover, goal: Goal, proof: Application) -> tuple[str, ...]:
    """Return a proof as Metamath writes it: labels in reverse Polish order, the steps of terms included."""
    logic = prover.logic
    theorem = logic.statement(goal.theorem)
    names = {logic.floating[label].expression[1]: label for label in theorem.floating}

    def term_labels(term: Term) -> Iterator[str]:
        if isinstance(term, str):
            yield names[term]
        else:
            for part in term[1:]:  # type: ignore[index]
                yield from term_labels(part)
            yield term[0]  # type: ignore[index]

    def labels(each: Hypothesis | Application) -> Iterator[str]:
        if isinstance(each, Hypothesis):
            yield each.label
            return
        terms, closers = iter(each.terms), iter(each.closers)
        for hypothesis in logic.statement(each.label).hypotheses:
            yield from term_labels(next(terms)) if hypothesis.is_floating else labels(next(closers))
        yield each.label

    return tuple(labels(proof))


def _verify(prover: Prover, goal: Goal, proof: Application, dummies: frozenset[str]) -> None:
    """Check a proof with `check_proof`, which knows nothing of terms; MirblabError for a wrong one.

    The goal becomes a theorem with the context as hypotheses. Its distinct variables are those of the author's theorem,
    and each dummy variable is distinct from all others, which restricts no use of a theorem.
    """
    theorem = prover.logic.statement(goal.theorem)
    variables = dummies | {symbol for symbol in goal.symbols if symbol in prover.logic.typecodes}
    pairs = theorem.in_force | {pair for pair in ordered_pairs(variables) if dummies & set(pair)}
    labels = labelled_proof(prover, goal, proof)
    claim = replace(theorem, hypotheses=goal.context, expression=goal.expression, in_force=pairs, proof=labels)
    check_proof(prover.logic, claim)
