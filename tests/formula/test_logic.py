"""Statements rewritten by logic say what they should, in every small group, ring, space, order and graph."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import combinations
from math import isqrt
from pathlib import Path
from typing import Any, NamedTuple

import finite_structures as finite
import numpy as np
import pytest
import sympy
from finite_structures import subsets

from mirblab.core.errors import MirblabError
from mirblab.core.registry import read_registry
from mirblab.formula.rewriting.logic import contrapose, expand_definitions, instantiate, negate_clause
from mirblab.formula.rewriting.rules import CHANGES, KEEPS, RULES, rewrite_text
from mirblab.sources.hard_negatives import reverse_implications


class Check(NamedTuple):
    """The wordings of an entry, and both sides evaluated on instances: the term in another way, the wording as read."""

    wordings: tuple[str, ...]
    instances: Sequence[Any]
    term: Callable[..., bool]
    wording: Callable[..., bool]


def power_order(group: finite.Group, x: Any) -> int:
    order, power = 1, x
    while power != group.one:
        order, power = order + 1, group.times(power, x)
    return order


def n_classes(group: finite.Group) -> int:
    return len({frozenset(group.conjugate(frozenset({x}), y) for y in group.elements) for x in group.elements})


def cosets(group: finite.Group, part: finite.Set, is_left: bool) -> set[finite.Set]:
    pairs = ((lambda x, y: group.times(x, y)), (lambda x, y: group.times(y, x)))
    return {frozenset(pairs[not is_left](x, y) for y in part) for x in group.elements}


def is_normal(group: finite.Group, part: finite.Set) -> bool:
    return all(group.conjugate(part, x) == part for x in group.elements)


def is_proper(ring: finite.Ring, ideal: finite.Set) -> bool:
    return len(ideal) < len(ring.elements)


def maximal(ring: finite.Ring, ideal: finite.Set, ideals: Iterable[finite.Set]) -> bool:
    return is_proper(ring, ideal) and not any(ideal < other and is_proper(ring, other) for other in ideals)


def has_inverse(ring: finite.Ring, x: Any) -> bool:
    return any(ring.times(x, y) == ring.one for y in ring.elements)


def prime(ring: finite.Ring, ideal: finite.Set) -> bool:
    return is_proper(ring, ideal) and all(
        x in ideal or y in ideal for x in ring.elements for y in ring.elements if ring.times(x, y) in ideal
    )


def nilradical(ring: finite.Ring, ideals: Iterable[finite.Set]) -> finite.Set:
    return frozenset(ring.elements).intersection(*(one for one in ideals if prime(ring, one)))


def minus(ring: finite.Ring, x: Any) -> Any:
    return next(y for y in ring.elements if ring.plus(x, y) == ring.zero)


def non_units_add(ring: finite.Ring) -> bool:
    rest = [x for x in ring.elements if not has_inverse(ring, x)]
    return bool(rest) and all(ring.plus(x, y) in rest for x in rest for y in rest)


def separated(space: finite.Space, x: Any, y: Any) -> bool:
    return any(x in one and y in other and not one & other for one in space.opens for other in space.opens)


def image(values: Sequence[int], part: finite.Set) -> finite.Set:
    return frozenset(values[x] for x in part)


def preimage(values: Sequence[int], part: finite.Set) -> finite.Set:
    return frozenset(x for x, value in enumerate(values) if value in part)


def divisors(n: int) -> list[int]:
    return [d for d in range(1, n + 1) if n % d == 0]


def divides(n: int, other: int) -> bool:
    return other % n == 0


def blocks(n: int) -> list[finite.Set]:
    """Return the relations "in the same block", for all partitions of n points."""
    labels = {tuple(one) for one in np.ndindex(*(n,) * n)}
    return [frozenset((x, y) for x in range(n) for y in range(n) if one[x] == one[y]) for one in labels]


def walks(graph: np.ndarray) -> np.ndarray:
    return np.linalg.matrix_power(graph + np.eye(len(graph), dtype=int), len(graph))


def has_colours(graph: np.ndarray) -> bool:
    edges = np.argwhere(graph)
    return any(all((a in red) != (b in red) for a, b in edges) for red in subsets(range(len(graph))))


def spectrum(matrix: np.ndarray) -> np.ndarray:
    return np.sort(np.linalg.eigvalsh(matrix.astype(float)))


VECTORS = [np.array(one) for one in np.ndindex(3, 3)]
UNIT = np.eye(2, dtype=int)
NUMBERS = range(1, 80)
GROUPS = [(group,) for group in finite.GROUPS]
SPACES = [(space,) for space in finite.SPACES]
GRAPHS = [(graph,) for graph in finite.GRAPHS]
MATRICES = [(matrix,) for matrix in finite.MATRICES]
MAPS = [(one,) for one in finite.MAPS]
INTEGERS = [(n,) for n in NUMBERS]


def inverses(a: np.ndarray) -> list[np.ndarray]:
    return [b for b in finite.MATRICES if ((a @ b) % 3 == UNIT).all() and ((b @ a) % 3 == UNIT).all()]


def determinant(a: np.ndarray) -> int:
    return int(a[0, 0] * a[1, 1] - a[0, 1] * a[1, 0]) % 3


CHECKS: dict[str, Check] = {
    "abelian-group": Check(
        ("group{name} in which any two elements commute", "any two elements of {name} commute"), GROUPS,
        lambda group: n_classes(group) == len(group.elements),
        lambda group: all(group.times(x, y) == group.times(y, x) for x, y in combinations(group.elements, 2)),
    ),
    "cyclic-group": Check(
        ("group{name} that is generated by one element", "{name} is generated by one element"), GROUPS,
        lambda group: max(power_order(group, x) for x in group.elements) == len(group.elements),
        lambda group: any(group.generated([x]) == frozenset(group.elements) for x in group.elements),
    ),
    "simple-group": Check(  # with fewer than 60 elements
        ("group{name} with exactly two normal subgroups",), GROUPS,
        lambda group: sympy.isprime(len(group.elements)),
        lambda group: sum(is_normal(group, part) for part in finite.subgroups(group)) == 2,
    ),
    "normal-subgroup": Check(
        ("subgroup{name}{place} that is equal to each of its conjugates",), finite.SUBGROUPS,
        lambda group, part: cosets(group, part, True) == cosets(group, part, False), is_normal,
    ),
    "trivial-group": Check(
        ("group{name} with only one element",), GROUPS,
        lambda group: all(x == group.one for x in group.elements), lambda group: len(group.elements) == 1,
    ),
    "unit": Check(
        ("{name} has a multiplicative inverse{place}",), finite.ELEMENTS,
        lambda ring, x: len({ring.times(x, y) for y in ring.elements}) == len(ring.elements), has_inverse,
    ),
    "invertible": Check(
        ("{name} has an inverse",), MATRICES, lambda a: determinant(a) != 0, lambda a: bool(inverses(a)),
    ),
    "nilpotent": Check(
        ("element{name}{place} that has a power equal to zero", "some power of {name} is zero"),
        [(ring, ideals, x) for ring, ideals in finite.RING_IDEALS for x in ring.elements],
        lambda ring, ideals, x: x in nilradical(ring, ideals), lambda ring, ideals, x: ring.zero in ring.powers(x),
    ),
    "idempotent": Check(
        ("element{name}{place} that is equal to its own square", "{name} is equal to its own square"), finite.ELEMENTS,
        lambda ring, x: ring.times(x, ring.plus(ring.one, minus(ring, x))) == ring.zero,
        lambda ring, x: ring.times(x, x) == x,
    ),
    "integral-domain": Check(  # a finite one is a field
        ("non-trivial commutative ring{name} in which the product of any two non-zero elements is non-zero",),
        finite.RING_IDEALS, lambda ring, ideals: len(ideals) == 2,
        lambda ring, ideals: len(ring.elements) > 1 and not any(
            ring.times(x, y) == ring.zero for x in ring.elements for y in ring.elements if ring.zero not in (x, y)
        ),
    ),
    "local-ring": Check(
        ("ring{name} with exactly one maximal ideal",), finite.RING_IDEALS,
        lambda ring, ideals: non_units_add(ring),
        lambda ring, ideals: sum(maximal(ring, one, ideals) for one in ideals) == 1,
    ),
    "reduced-ring": Check(
        ("ring{name} in which zero is the only element with a power equal to zero",), finite.RING_IDEALS,
        lambda ring, ideals: len(nilradical(ring, ideals)) == 1,
        lambda ring, ideals: [x for x in ring.elements if ring.zero in ring.powers(x)] == [ring.zero],
    ),
    "boolean-ring": Check(  # a power of two many idempotents, as many as prime ideals are exponents
        ("ring{name} in which every element is equal to its own square",), finite.RING_IDEALS,
        lambda ring, ideals: len(ring.elements) == 2 ** sum(prime(ring, one) for one in ideals),
        lambda ring, ideals: all(ring.times(x, x) == x for x in ring.elements),
    ),
    "principal-ideal": Check(
        ("ideal{name}{place} that is generated by one element",), finite.IDEALS,
        lambda ring, ideal, ideals: any(
            ideal == frozenset(ring.elements).intersection(*(one for one in ideals if x in one)) for x in ideal
        ),
        lambda ring, ideal, ideals: any(ring.ideal([x]) == ideal for x in ring.elements),
    ),
    "prime-ideal": Check(  # in a finite ring, the prime ideals are the maximal ones
        ("proper ideal{name}{place} that contains a product only if it contains one of the factors",), finite.IDEALS,
        maximal, lambda ring, ideal, ideals: prime(ring, ideal),
    ),
    "maximal-ideal": Check(  # the quotient is a field
        ("proper ideal{name}{place} that is contained in no other proper ideal",), finite.IDEALS,
        lambda ring, ideal, ideals: is_proper(ring, ideal) and all(
            any(ring.plus(ring.times(x, y), minus(ring, ring.one)) in ideal for y in ring.elements)
            for x in ring.elements if x not in ideal
        ),
        maximal,
    ),
    "closed-subset": Check(
        ("{noun}{name}{place} with an open complement",), finite.PARTS,
        lambda space, part: space.closure(part) == part, lambda space, part: space.points - part in space.opens,
    ),
    "open-subset": Check(
        ("{noun}{name}{place} with a closed complement",), finite.PARTS,
        lambda space, part: all(any(x in one and one <= part for one in space.opens) for x in part),
        lambda space, part: space.closure(space.points - part) == space.points - part,
    ),
    "dense-subset": Check(
        ("subset{name}{place} that meets every non-empty open set",), finite.PARTS,
        lambda space, part: space.closure(part) == space.points,
        lambda space, part: all(one & part for one in space.opens if one),
    ),
    "hausdorff-space": Check(  # a finite one is discrete
        ("space{name} in which any two distinct points have disjoint neighbourhoods",), SPACES,
        lambda space: len(space.opens) == 2 ** len(space.points),
        lambda space: all(separated(space, x, y) for x, y in combinations(space.points, 2)),
    ),
    "discrete-space": Check(
        ("space{name} in which every subset is open",), SPACES,
        lambda space: all(frozenset({x}) in space.opens for x in space.points),
        lambda space: all(part in space.opens for part in subsets(space.points)),
    ),
    "irreducible-space": Check(
        ("non-empty space{name} that is not the union of two proper closed subsets",), SPACES,
        lambda space: all(one & other for one in space.opens for other in space.opens if one and other),
        lambda space: bool(space.points) and not any(
            one | other == space.points for one in space.closed() for other in space.closed()
            if space.points not in (one, other)
        ),
    ),
    "continuous-map": Check(
        (
            "{noun}{name} under which the preimage of every open set is open",
            "the preimage of every open set under {name} is open",
        ),
        finite.CONTINUOUS,
        lambda one, other, values: all(
            image(values, one.closure(part)) <= other.closure(image(values, part)) for part in subsets(one.points)
        ),
        lambda one, other, values: all(preimage(values, part) in one.opens for part in other.opens),
    ),
    "injective-map": Check(
        ("{noun}{name} that sends distinct elements to distinct elements",
         "{name} sends distinct elements to distinct elements"), MAPS,
        lambda one: len(set(one.values)) == len(one.values),
        lambda one: all(x != y for x, y in combinations(one.values, 2)),
    ),
    "surjective-map": Check(
        ("{noun}{name} that takes every value in its codomain", "{name} takes every value in its codomain"), MAPS,
        lambda one: len(set(one.values)) == one.size, lambda one: all(y in one.values for y in range(one.size)),
    ),
    "bijective-map": Check(
        ("{noun}{name} that takes every value in its codomain exactly once",
         "{name} takes every value in its codomain exactly once"), MAPS,
        lambda one: len(set(one.values)) == len(one.values) == one.size,
        lambda one: all(one.values.count(y) == 1 for y in range(one.size)),
    ),
    "even": Check(
        ("integer{name} that is divisible by $2$", "{name} is divisible by $2$"), INTEGERS,
        lambda n: f"{n:b}"[-1] == "0", lambda n: divides(2, n),
    ),
    "odd": Check(
        ("integer{name} that is not divisible by $2$", "{name} is not divisible by $2$"), INTEGERS,
        lambda n: f"{n:b}"[-1] == "1", lambda n: not divides(2, n),
    ),
    "prime": Check(
        ("positive integer{name} with exactly two positive divisors", "{name} has exactly two positive divisors"),
        INTEGERS, sympy.isprime, lambda n: len(divisors(n)) == 2,
    ),
    "square-free": Check(
        ("integer{name} that is divisible by no square greater than $1$",), INTEGERS,
        lambda n: set(sympy.factorint(n).values()) <= {1},
        lambda n: not any(divides(d * d, n) for d in range(2, n + 1)),
    ),
    "perfect-square": Check(
        ("{name} is the square of an integer",), INTEGERS,
        lambda n: all(exponent % 2 == 0 for exponent in sympy.factorint(n).values()), lambda n: isqrt(n) ** 2 == n,
    ),
    "coprime": Check(
        ("the greatest common divisor of {name} and {other} is $1$",), list(combinations(NUMBERS, 2)),
        lambda n, m: not set(sympy.primefactors(n)) & set(sympy.primefactors(m)),
        lambda n, m: max(set(divisors(n)) & set(divisors(m))) == 1,
    ),
    "symmetric-matrix": Check(
        ("matrix{name} that is equal to its transpose", "{name} is equal to its transpose"), MATRICES,
        lambda a: all((x @ a @ y - y @ a @ x) % 3 == 0 for x in VECTORS for y in VECTORS),
        lambda a: bool((a == a.T).all()),
    ),
    "singular-matrix": Check(
        ("square matrix{name} without an inverse",), MATRICES,
        lambda a: any(x.any() and not ((a @ x) % 3).any() for x in VECTORS), lambda a: not inverses(a),
    ),
    "diagonal-matrix": Check(
        ("matrix{name} whose entries off the diagonal are zero",), MATRICES,
        lambda a: bool((a @ np.diag([1, 2]) % 3 == np.diag([1, 2]) @ a % 3).all()),
        lambda a: not (a[0, 1] or a[1, 0]),
    ),
    "orthogonal-matrix": Check(
        ("square matrix{name} whose transpose is its inverse",), MATRICES,
        lambda a: all(((a @ x) @ (a @ y) - x @ y) % 3 == 0 for x in VECTORS for y in VECTORS),
        lambda a: any((b == a.T).all() for b in inverses(a)),
    ),
    "equivalence-relation": Check(
        ("reflexive, symmetric and transitive relation{name}{place}",), finite.RELATIONS,
        lambda n, relation: relation in blocks(n),
        lambda n, relation: finite.is_reflexive(n, relation) and finite.is_transitive(relation)
        and all((y, x) in relation for x, y in relation),
    ),
    "totally-ordered-set": Check(
        ("partially ordered set{name} in which any two elements are comparable",), finite.ORDERS,
        lambda n, order: sorted(sum((x, y) in order for y in range(n)) for x in range(n)) == list(range(1, n + 1)),
        lambda n, order: all((x, y) in order or (y, x) in order for x, y in combinations(range(n), 2)),
    ),
    "antichain": Check(
        ("set{name} of pairwise incomparable elements",), finite.ORDER_PARTS,
        lambda n, order, part: sum(x in part and y in part for x, y in order) == len(part),
        lambda n, order, part: not any((x, y) in order or (y, x) in order for x, y in combinations(part, 2)),
    ),
    "bipartite-graph": Check(  # Coulson and Rushbrooke (1940): the spectrum is symmetric
        ("graph{name} whose vertices have two colours such that no edge joins two vertices of one colour",), GRAPHS,
        lambda graph: np.allclose(spectrum(graph), np.sort(-spectrum(graph))), has_colours,
    ),
    "complete-graph": Check(
        ("graph{name} in which any two vertices are joined by an edge",), GRAPHS,
        lambda graph: graph.sum() == len(graph) * (len(graph) - 1),
        lambda graph: all(graph[a, b] for a, b in combinations(range(len(graph)), 2)),
    ),
    "connected-graph": Check(  # Kirchhoff's matrix has 0 as eigenvalue once
        ("graph{name} in which any two vertices are joined by a path",), GRAPHS,
        lambda graph: int((spectrum(np.diag(graph.sum(0)) - graph) < 1e-9).sum()) == 1,
        lambda graph: bool(walks(graph).all()),
    ),
    "regular-graph": Check(  # the vector of ones is an eigenvector
        ("graph{name} whose vertices all have the same number of neighbours",), GRAPHS,
        lambda graph: np.linalg.matrix_rank(np.stack([graph @ np.ones(len(graph)), np.ones(len(graph))])) == 1,
        lambda graph: len({int(row.sum()) for row in graph}) == 1,
    ),
}  # fmt: skip


def test_every_wording_is_evaluated() -> None:
    """A changed wording of the registry has to be evaluated anew, and its text is written down here."""
    wordings = {
        name: tuple(entry[field] for field in ("noun_becomes", "clause_becomes") if field in entry)
        for name, entry in read_registry("definitions").items()
    }
    assert wordings == {name: check.wordings for name, check in CHECKS.items()}


@pytest.mark.parametrize("name", CHECKS)
def test_a_term_and_its_definition_agree_on_every_structure(name: str) -> None:
    """And both hold on some and fail on others, so that the agreement says something."""
    check = CHECKS[name]
    values = [(bool(check.term(*one)), bool(check.wording(*one))) for one in check.instances]
    assert all(term == wording for term, wording in values)
    assert {term for term, _ in values} == {True, False}


@pytest.mark.parametrize("name", CHECKS)
def test_the_definition_of_another_term_is_refused(name: str) -> None:
    """Of the terms about the same structures, no other definition and no negated one agrees."""
    check, same = CHECKS[name], {"hausdorff-space": {"discrete-space"}, "discrete-space": {"hausdorff-space"},
                                 "prime-ideal": {"maximal-ideal"}, "maximal-ideal": {"prime-ideal"}}  # fmt: skip
    others = [
        other.wording
        for key, other in CHECKS.items()
        if other.instances is check.instances and key not in {name, *same.get(name, ())}
    ]
    for mutated in (*others, lambda *one: not check.wording(*one)):
        assert any(bool(check.term(*one)) != bool(mutated(*one)) for one in check.instances)


def test_the_structures_are_as_many_as_are_known() -> None:
    """OEIS A000001, A000688, A000798, A000110, A001035 and A001187; Euler's function counts units."""
    sizes = [len(group.elements) for group in finite.GROUPS]
    abelian = [len(group.elements) for group in finite.GROUPS if CHECKS["abelian-group"].wording(group)]
    assert [sizes.count(n) for n in range(1, 9)] == [1, 1, 1, 2, 1, 2, 1, 5]
    assert [abelian.count(n) for n in range(1, 9)] == [1, 1, 1, 2, 1, 1, 1, 3]
    for group in finite.GROUPS:
        assert all(
            group.times(group.times(x, y), z) == group.times(x, group.times(y, z))
            for x in group.elements for y in group.elements for z in group.elements
        )  # fmt: skip
    assert [sum(len(space.points) == n for space in finite.SPACES) for n in (1, 2, 3)] == [1, 4, 29]
    assert [sum(n == size for size, _ in finite.ORDERS) for n in (1, 2, 3)] == [1, 3, 19]
    equivalences = [n for n, relation in finite.RELATIONS if CHECKS["equivalence-relation"].wording(n, relation)]
    assert [equivalences.count(n) for n in (1, 2, 3)] == [1, 2, 5]
    connected = [len(graph) for graph in finite.GRAPHS if CHECKS["connected-graph"].wording(graph)]
    assert [connected.count(n) for n in (1, 2, 3, 4)] == [1, 1, 4, 38]
    assert [sum(has_inverse(ring, x) for x in ring.elements) for ring in finite.MODULO[1:]] == [
        sympy.totient(n) for n in range(2, 13)
    ]


# Predicates of an element of a ring, as they stand in a sentence.
PREDICATES: dict[str, Callable[[finite.Ring, Any], bool]] = {
    "$x$ is a unit": has_inverse,
    "$x$ has a multiplicative inverse": has_inverse,
    "$x$ is nilpotent": lambda ring, x: ring.zero in ring.powers(x),
    "some power of $x$ is zero": lambda ring, x: ring.zero in ring.powers(x),
    "$x$ is idempotent": lambda ring, x: ring.times(x, x) == x,
    "$x$ is equal to its own square": lambda ring, x: ring.times(x, x) == x,
    "$x = 0$": lambda ring, x: x == ring.zero,
    "$x^2 = 1$": lambda ring, x: ring.times(x, x) == ring.one,
}


def truth(clause: str, ring: finite.Ring, x: Any) -> bool:
    """Return whether a clause, a negated one, or two with "and" or "or" hold of an element."""
    for word, join in ((" and ", all), (" or ", any)):
        if word in clause:
            return join(truth(part, ring, x) for part in clause.split(word))
    if clause in PREDICATES:
        return PREDICATES[clause](ring, x)
    return not PREDICATES[clause.replace(" is not ", " is ").replace(r"\neq", "=").replace("has no", "has a")](ring, x)


def verdicts(sentence: str) -> list[bool]:
    """Return for each ring whether "If P, then Q." holds of all its elements."""
    condition, conclusion = sentence.removeprefix("If ").removesuffix(".").split(", then ")
    return [
        all(truth(conclusion, ring, x) for x in ring.elements if truth(condition, ring, x)) for ring in finite.RINGS
    ]


LET = "Let $x$ be an element of a ring. "
SENTENCES = [
    f"If {condition}, then {conclusion}."
    for one in PREDICATES
    for condition in (one, one.replace(" is ", " is not ") if "$x$ is" in one else "$x = 0$", f"{one} and $x^2 = 1$")
    for conclusion in PREDICATES
    if conclusion not in condition
]


def test_the_contrapositive_holds_in_the_same_rings_and_the_converse_does_not() -> None:
    """Over all sentences of a small grammar; a clause with "some" or a pronoun is left."""
    n_converses = 0
    for sentence in SENTENCES:
        found = [new.removeprefix(LET) for new in contrapose(LET + sentence)]
        assert len(found) == (0 if "some power" in sentence or "its own" in sentence else 1), sentence
        for new in found:
            assert verdicts(new) == verdicts(sentence), (sentence, new)
        for change in reverse_implications(sentence):
            converse = sentence[: change.start] + change.new + sentence[change.end :]
            n_converses += verdicts(converse) != verdicts(sentence)
    assert len(SENTENCES) > 100 and n_converses > 50


def test_an_expanded_sentence_holds_in_the_same_rings() -> None:
    """And some sentence is expanded at either clause."""
    found = [(sentence, new) for sentence in SENTENCES for new in expand_definitions(sentence)]
    assert len(found) > 60
    for sentence, new in found:
        assert verdicts(new[0] + new[1:]) == verdicts(sentence), (sentence, new)


def test_a_special_case_follows_and_does_not_say_the_same() -> None:
    """A statement for every n holds in fewer rings than for one: some have x^n = x for the drawn n alone."""
    sentence = "For every integer $n \\geq 2$ we have $x^n = x$."
    powers = {ring: [power_of(ring, n) for n in range(2, 30)] for ring in map(tuple, finite.RINGS)}
    for seed in range(6):
        (new,) = instantiate(sentence, str(seed))
        n = int(new.removeprefix("For $n = ").split("$")[0])
        general = {ring for ring, holds in powers.items() if all(holds)}
        special = {ring for ring, holds in powers.items() if holds[n - 2]}
        assert n >= 2 and general <= special
    assert any({r for r, h in powers.items() if h[n - 2]} > {r for r, h in powers.items() if all(h)} for n in (3, 5, 7))


def power_of(ring: tuple, n: int) -> bool:
    """Return whether x^n = x for every element of a ring."""
    made = finite.Ring(*ring)
    for x in made.elements:
        power = x
        for _ in range(n - 1):
            power = made.times(power, x)
        if power != x:
            return False
    return True


@pytest.mark.parametrize(
    ("clause", "negation"),
    [
        ("$G$ is not finite", "$G$ is finite"),
        ("the $R$-module $M$ is flat over $S$", "the $R$-module $M$ is not flat over $S$"),
        ("$A \\to B$ is étale", "$A \\to B$ is not étale"),
        ("$a$ and $b$ are coprime", "$a$ and $b$ are not coprime"),
        ("$f$ has a zero in $K$", "$f$ has no zero in $K$"),
        ("$f$ has no inverse", "$f$ has an inverse"),
        ("$p$ divides $ab$", "$p$ does not divide $ab$"),
        ("$p$ does not divide $ab$", "$p$ divides $ab$"),
        ("the sequence $a_n$ converges", "the sequence $a_n$ does not converge"),
        ("$x\\in A$", "$x\\notin A$"),
        ("$\\dim X=n$", "$\\dim X\\neq n$"),
        ("$$x \\neq 0$$", "$$x = 0$$"),
        ("$n\\leq m+1$", "$n> m+1$"),
        ("$p \\mid q$", "$p \\nmid q$"),
    ],
)
def test_a_clause_is_negated_as_a_reader_expects(clause: str, negation: str) -> None:
    """Also back again, where both forms are known."""
    assert negate_clause(clause) == negation


@pytest.mark.parametrize(
    "clause",
    [
        "every $x$ is zero", "$f$ is continuous and bounded", "$f$ is either even or odd",
        "$x$ is a limit of a sequence", "it is finite", "$A \\subset B$", "$x = a, b$",
        "$f$ is constant on some interval", "$a < b < c$", "$a, b \\in A$",
        "$f$ has zeros", "$f$ has no zeros", "$f$ has a unique zero", "there is a zero", "$f : A \\to B$ is injective",
        "$a, b$ is even", "$f$ has a limit $L$", "$f$ is a map $A \\to B$", "$f$ is constant Show",
        "$x$ is in $A$, which is open", "$G < H$", "$x$ is a point $x \\in X$", "", "$x$", "$n = 1, \\dots, k$",
    ],
)  # fmt: skip
def test_a_clause_without_a_certain_negation_is_left(clause: str) -> None:
    """Quantifiers, two clauses, lists, chains, inclusions, and letters that are introduced."""
    assert negate_clause(clause) is None


@pytest.mark.parametrize(
    "text",
    [
        "If $K$ is a field, then $K^2$ is finite.",  # says what K is
        "If $n = 2k$, then $m = 2l$.",  # l is said to exist
        "If $f$ is flat, then it is open. Conversely, an open map is flat.",
        "If $f$ is flat over $S$, then it is open.",  # S or f
        "The category is small. If $f$ is flat, then it is a setoid.",  # the category or f
        "In a partially ordered set, if so. If $x < y$, then $f(x) = z$.",
        "If you read this, then $x$ is known.",
        "If $x \\in X$ and $F$ is flat at $x$, then $F$ is smooth.",
        "Is it true? If $f$ is flat, then $f$ is open and closed.",
    ],
)
def test_a_sentence_without_a_certain_contrapositive_is_left(text: str) -> None:
    """Where a clause needs the other or the next sentence needs this one."""
    assert contrapose(text) == []


@pytest.mark.parametrize(
    ("text", "new"),
    [
        ("If $f$ is flat, then it is open.", "If $f$ is not open, then $f$ is not flat."),
        ("Suppose that $f$ is flat. Then $f$ is open.", "Suppose that $f$ is not open. Then $f$ is not flat."),
        (
            "Let $x$ lie in $U$ or $V$. If $x \\in U$ and $f$ is flat, then $x \\in V$.",
            "Let $x$ lie in $U$ or $V$. If $x \\notin V$, then $x \\notin U$ or $f$ is not flat.",
        ),
        ("For all numbers $x < y$. If $x < y$ then $y > z$.", None),
    ],
)
def test_a_sentence_is_contraposed_as_a_reader_expects(text: str, new: str | None) -> None:
    """A pronoun becomes its noun, and "and" becomes "or"."""
    assert contrapose(text) == ([new] if new else [])


@pytest.mark.parametrize(
    ("text", "new"),
    [
        ("every finite abelian group is", "every finite group in which any two elements commute is"),
        ("an abelian group $G$.", "a group $G$ in which any two elements commute."),
        ("Let $Z$ be a closed subset of $X$.", "Let $Z$ be a subset of $X$ with an open complement."),
        ("Let $f$ be an injective map $f : A \\to B$.",
         "Let $f$ be a map $f : A \\to B$ that sends distinct elements to distinct elements."),
        ("$f$ is injective if so.", "$f$ sends distinct elements to distinct elements if so."),
        ("If the integers $a$ and $b$, where $n$ is even, agree", None),
        ("if $a$ and $b$ are coprime, then", "if the greatest common divisor of $a$ and $b$ is $1$, then"),
        ("Suppose $R$ is a principal ideal domain.", None),
        ("the local ring $A$ is", None),
        ("$x$ is a unit in $R$.", "$x$ has a multiplicative inverse in $R$."),
        ("$x$ is a unit of $R$.", None),
        ("A closed set is one whose complement is open.", None),
        ("an abelian group of order $4$", None),
        ("the product of $f$ and $g$ is injective.", None),
        ("Suppose $f$ is injective and bounded.", None),
        ("Suppose the permutation is odd, where $n$ is even.", None),
        ("Let $\\mathcal F$ be a sheaf. Then $f$ is surjective.", None),
    ],
)  # fmt: skip
def test_a_definition_stands_only_for_the_whole_term(text: str, new: str | None) -> None:
    """With article, name and place, and never where more of the phrase follows."""
    assert expand_definitions(text) == ([new] if new else [])


@pytest.mark.parametrize(
    ("text", "new"),
    [
        ("for all $n \\geq 4$.", "for $n = {}$."),
        ("For every $x \\in \\mathbb{R}$ so.", "For $x = {}$ so."),
        ("for each prime number $p$,", "for $p = {}$,"),
        ("$\\forall n \\in \\mathbb{N} : n \\geq 0$", "$\\forall n \\in \\{{{}\\}} : n \\geq 0$"),
        ("for every $\\varepsilon > 0$ there", "for $\\varepsilon = {}$ there"),
        ("for all $i$", None),
        ("for all $t \\geq 1$", None),
        ("for all $n \\geq 1$ and $m$", None),
        ("for any integers $k$ and $p$", None),
        ("for all primes $p$ dividing $n$", None),
        ("for all $n \\geq 1$ as $n \\to \\infty$", None),
        ("for all $n \\geq 1$ and some $n$", None),
        ("for every $n \\in \\mathbb{Z}^{+} \\cup \\{0\\}$", None),
    ],
)
def test_a_variable_with_a_known_domain_has_one_value(text: str, new: str | None) -> None:
    """In prose and in formulas; a letter of unknown domain or that is used for more stays."""
    found = instantiate(text, "0")
    assert len(found) == (new is not None)
    for one in found:
        before, after = str(new).replace("{{", "{").replace("}}", "}").split("{}")
        assert one.startswith(before) and one.endswith(after)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ('noun = "monoid"', "'mine' in .*definitions.toml has only one of noun and noun_becomes; write both"),
        ('clause = "is (free"\nclause_becomes = "{name} is"', "clause is 'is .free', which cannot be read"),
        (
            'clause = "is free"\nclause_becomes = "{it} is"',
            "clause_becomes is '{it} is'.*a wording with {noun}, {name}",
        ),
        ('subject = "maps"', "subject is 'maps'; write 'map'.*did you mean 'map'"),
        ('verb = "is"', "verb"),
    ],
)
def test_a_definition_of_ones_own_is_used_or_refused(entry: str, message: str, own: Callable[..., Path]) -> None:
    """With the file, the entry and what to write."""
    own("definitions", '[mine]\nnoun = "free monoid"\nnoun_becomes = "monoid{name} without relations"\n')
    assert expand_definitions("a free monoid.") == ["a monoid without relations."]
    own("definitions", f"[mine]\n{entry}\n")
    with pytest.raises(MirblabError, match=message):
        expand_definitions("a free monoid.")


def test_the_rules_say_what_they_do_to_the_meaning() -> None:
    """A contrapositive and a definition keep it; a special case says less."""
    effects = {name: RULES[name].effect for name in ("contraposed", "definition-expanded", "instantiated")}
    assert effects == {"contraposed": KEEPS, "definition-expanded": KEEPS, "instantiated": CHANGES}
    assert rewrite_text("\\forall n \\in \\mathbb{N}: n = m", "instantiated", bare=True) is not None
    assert rewrite_text("If $x = 0$, then $x$ is even.", "contraposed") == "If $x$ is not even, then $x \\neq 0$."
