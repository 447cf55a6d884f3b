"""Metamath: proofs are checked as the language defines it, terms are parsed and unified, found proofs are proofs."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirblab.core.errors import MirblabError
from mirblab.formula.metamath.database import Expression, Hypothesis, Logic, Statement, check_proof, read_logic
from mirblab.formula.metamath.proving import Goal, Prover, draw_goals, labelled_proof, proof_goals
from mirblab.formula.metamath.terms import Grammar, Term, leaves, occurs, resolve

DEMO = """
$c 0 + = -> ( ) term wff |- $.  $v t r s P Q $.
tt $f term t $.  tr $f term r $.  ts $f term s $.  wp $f wff P $.  wq $f wff Q $.
tze $a term 0 $.  tpl $a term ( t + r ) $.  weq $a wff t = r $.  wim $a wff ( P -> Q ) $.
a1 $a |- ( t = r -> ( t = s -> r = s ) ) $.  a2 $a |- ( t + 0 ) = t $.
${ min $e |- P $.  maj $e |- ( P -> Q ) $.  mp $a |- Q $. $}
"""
# The theorem th1 of the Metamath book (section 2.2) with the author's proof, normal and compressed.
NORMAL = (
    "tt tze tpl tt weq tt tt weq tt a2 tt tze tpl tt weq tt tze tpl tt weq tt tt weq wim tt a2 "
    "tt tze tpl tt tt a1 mp mp"
)
COMPRESSED = "( tze tpl weq a2 wim a1 mp ) ABCZADZAADZAEZJJKFLIAAGHH"


@pytest.fixture(scope="module")
def logic() -> Logic:
    return read_logic("mini")


@pytest.fixture(scope="module")
def prover(logic) -> Prover:
    return Prover(logic)


def read(tmp_path: Path, text: str) -> Logic:
    path = tmp_path / "some.mm"
    path.write_text(text, encoding="utf-8")
    return read_logic(path)


def theorems(logic: Logic) -> list[Statement]:
    return [each for each in logic.statements.values() if each.proof]


@pytest.mark.parametrize("proof", [NORMAL, COMPRESSED])
def test_the_books_example_is_accepted_in_both_notations(tmp_path, proof):
    """Megill and Wheeler, Metamath, 2019, section 2.2 and appendix B."""
    logic = read(tmp_path, f"{DEMO} th1 $p |- t = t $= {proof} $.")
    assert check_proof(logic, logic.statement("th1"))[-1].expression == ("|-", "t", "=", "t")


def test_every_bundled_proof_is_accepted(logic):
    """And there are enough of them for a hundred goals."""
    assert len(theorems(logic)) > 150
    for each in theorems(logic):
        assert check_proof(logic, each)[-1].expression == each.expression
    assert len(draw_goals(logic, "2025-04-15")) >= 100


def test_a_sample_of_set_mm_is_accepted_and_its_mutations_are_refused(shared_file):
    """Of all its theorems. Whether one that was changed is proved all the same, as where the new label states what the
    old one states, decides a second checker (`proves`), which works on terms of the database's grammar, not on symbols.
    """
    logic, rng = read_logic(shared_file("sources/set.mm.gz")), random.Random(0)
    grammar, kinds = Grammar(logic), labels_by_kind(logic)
    sample = rng.sample(theorems(logic), 500)
    assert [each.label for each in sample if is_refused(logic, each) or not proves(grammar, each)] == []
    assert [each.label for each in sample if not is_refused(logic, shortened(each))] == []
    for mutate in (with_another_label, with_another_sign):
        mutated = [new for each in sample if (new := mutate(grammar, each, kinds, rng))]
        accepted = [new.label for new in mutated if not is_refused(logic, new)]
        assert accepted == [new.label for new in mutated if proves(grammar, new)]
        assert len(mutated) > 490 and len(accepted) < 5


def shortened(theorem: Statement) -> Statement:
    """Return a theorem whose compressed proof lacks its last step, or a normal one without its last label."""
    return replace(theorem, proof=(*theorem.proof[:-1], theorem.proof[-1][:-1]))


def kind_of(statement: Statement | Hypothesis) -> tuple[object, ...]:
    """Return what a label must have in common with another that stands in its place: typecode and hypotheses."""
    given = statement.hypotheses if isinstance(statement, Statement) else ()
    return (isinstance(statement, Statement), statement.expression[0], *map(kind_of, given))


def labels_by_kind(logic: Logic) -> dict[tuple[object, ...], list[str]]:
    kinds: dict[tuple[object, ...], list[str]] = {}
    for label, each in (logic.floating | logic.statements).items():
        kinds.setdefault(kind_of(each), []).append(label)
    return kinds


def with_another_label(grammar: Grammar, theorem: Statement, kinds, rng: random.Random) -> Statement | None:
    """Return a theorem with one label of its compressed proof replaced by another of its kind that may stand there."""
    logic, places = grammar.logic, list(range(1, theorem.proof.index(")")))
    for place in rng.sample(places, len(places)):
        old = theorem.proof[place]
        fitting = [
            label for label in kinds[kind_of((logic.floating | logic.statements)[old])]
            if label != old and (
                label in theorem.floating
                or (label in logic.statements and logic.statements[label].order < theorem.order)
            )
        ]  # fmt: skip
        if fitting:
            return replace(theorem, proof=(*theorem.proof[:place], rng.choice(fitting), *theorem.proof[place + 1 :]))
    return None


def with_another_sign(grammar: Grammar, theorem: Statement, _: object, rng: random.Random) -> Statement | None:
    """Return a theorem with one sign of its statement or of a hypothesis replaced by another, which the grammar reads.

    A variable is replaced by one of its typecode.
    """
    logic = grammar.logic
    lines = [(None, theorem.expression), *((each, each.expression) for each in theorem.essential)]
    places = [(each, line, place) for each, line in lines for place in range(1, len(line))]
    variables = [logic.floating[label].expression[1] for label in sorted(theorem.floating)]
    constants = sorted({sign for _, line in lines for sign in line} - set(variables)) + "-> <-> /\\ = e. C_".split()
    for each, line, place in rng.sample(places, len(places)):
        code = logic.typecodes.get(line[place])
        signs = [sign for sign in variables if logic.typecodes[sign] == code] if code else constants
        for sign in rng.sample(signs, len(signs)):
            new = (*line[:place], sign, *line[place + 1 :])
            if sign != line[place] and is_read(grammar, new):
                changed = tuple(replace(one, expression=new) if one is each else one for one in theorem.hypotheses)
                return replace(theorem, hypotheses=changed, expression=theorem.expression if each else new)
    return None


def is_read(grammar: Grammar, expression: Expression) -> bool:
    try:
        grammar.parse(expression)
    except MirblabError:
        return False
    return True


def proves(grammar: Grammar, theorem: Statement) -> bool:
    """Return whether a compressed proof proves its theorem, by terms of the grammar and a decoder of its own.

    Megill and Wheeler, Metamath, 2019, appendix B: the letters A to T end a number, U to Y begin one, Z marks a step.
    """
    logic, close = grammar.logic, theorem.proof.index(")")
    labels = [*(each.label for each in theorem.hypotheses), *theorem.proof[1:close]]
    own = {each.label: each for each in theorem.essential}
    stack: list[tuple[str, Term]] = []
    marked: list[tuple[str, Term]] = []
    number = 0
    for letter in "".join(theorem.proof[close + 1 :]):
        if letter == "Z":
            marked.append(stack[-1])
        elif letter > "T":
            number = 5 * number + ord(letter) - ord("T")
        else:
            number, place = 0, 20 * number + ord(letter) - ord("A")
            label = labels[place] if place < len(labels) else ""
            given = own.get(label) or logic.floating.get(label)
            if place >= len(labels):
                stack.append(marked[place - len(labels)])
            elif given:
                stack.append((given.expression[0], grammar.parse(given.expression)))
            elif not apply_to_terms(grammar, theorem, logic.statements[label], stack):
                return False
    return stack == [(theorem.expression[0], grammar.parse(theorem.expression))]


def apply_to_terms(grammar: Grammar, theorem: Statement, used: Statement, stack: list[tuple[str, Term]]) -> bool:
    """Replace the top of the stack by what *used* concludes from it; return False where it does not fit."""
    first = len(stack) - len(used.hypotheses)
    if first < 0:
        return False
    pairs = list(zip(used.hypotheses, stack[first:], strict=True))
    del stack[first:]
    values = {each.expression[1]: term for each, (_, term) in pairs if each.is_floating}
    for each, (code, term) in pairs:
        if code != each.expression[0] or filled(grammar.parse(each.expression), values) != term:
            return False
    for one, other in used.disjoint:
        for pair in product(leaves(values[one]), leaves(values[other])):
            if tuple(sorted(pair)) not in theorem.in_force:
                return False
    stack.append((used.expression[0], filled(grammar.parse(used.expression), values)))
    return True


def filled(term: Term, values: dict[str, Term]) -> Term:
    if isinstance(term, tuple):
        return (term[0], *(filled(part, values) for part in term[1:]))
    return values.get(term, term)


def is_refused(logic: Logic, theorem: Statement) -> bool:
    try:
        check_proof(logic, theorem)
    except MirblabError:
        return True
    return False


def test_a_proof_without_one_of_its_labels_is_refused(logic):
    """Each label in turn is left out, which never leaves a proof."""
    for each in theorems(logic)[::4]:
        for place in range(len(each.proof)):
            assert is_refused(logic, replace(each, proof=each.proof[:place] + each.proof[place + 1 :])), each.label


def test_a_statement_that_the_proof_does_not_end_with_is_refused(logic):
    """Also one with a hypothesis less, and one with another variable."""
    theorem = logic.statement("syl")
    check_proof(logic, theorem)
    with pytest.raises(MirblabError, match=r"'syl\.1', which is no hypothesis and no earlier statement"):
        check_proof(logic, replace(theorem, hypotheses=theorem.hypotheses[:3] + theorem.hypotheses[4:]))
    with pytest.raises(MirblabError, match="ends with"):
        check_proof(logic, replace(theorem, expression=tuple("|- ( ph -> ps )".split())))
    with pytest.raises(MirblabError, match="it is an axiom"):
        check_proof(logic, logic.statement("ax-1"))


def test_variables_that_must_be_distinct_are(logic):
    """`alrimiv` rests on ax-5, whose variable the formula must not have."""
    theorem = logic.statement("alrimiv")
    assert theorem.disjoint == {("ph", "x")}
    with pytest.raises(MirblabError, match="'ax-5' wants 'ph' and 'x' to be distinct"):
        check_proof(logic, replace(theorem, in_force=frozenset()))
    expression = tuple("|- ( x = x -> A. x x = x )".split())
    proof = tuple("vx cv vx cv wceq vx ax-5".split())  # with x = x for the formula
    wrong = replace(logic.statement("rsolex"), hypotheses=(), expression=expression, proof=proof)
    with pytest.raises(MirblabError, match="'ax-5' wants 'x' and 'x' to be distinct"):
        check_proof(logic, wrong)
    with pytest.raises(MirblabError, match="marks a step before there is one"):
        check_proof(logic, replace(wrong, proof=("(", ")", "ZA")))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"{DEMO} x $p |- t = t $= mp $.", "'mp' needs 4 steps, the stack has 0"),
        (f"{DEMO} x $p |- t = t $= later $. later $a |- t = t $.", "'later', which is no hypothesis and no earlier"),
        (f"{DEMO} x $p |- t = t $= x $.", "'x', which is no hypothesis"),
        (f"{DEMO} x $p |- t = t $= ? $.", "lacks steps"),
        (f"{DEMO} x $p |- t = t $= wp wq weq $.", "hypothesis tt of 'weq' does not fit 'wff P'"),
        (f"{DEMO} x $p |- t = t $= tt tt $.", "ends with"),
        (f"{DEMO} x $p |- t = t $= ( ) BAZ $.", "names the marked step 1 of 0"),
    ],
)
def test_what_is_wrong_with_a_proof_is_said(tmp_path, text, message):
    """With the theorem's label."""
    logic = read(tmp_path, text)
    with pytest.raises(MirblabError, match=f"'x'.*{message}"):
        check_proof(logic, logic.statement("x"))


def test_a_database_that_is_missing_or_gives_a_variable_two_types_is_refused(tmp_path):
    """As Metamath defines it, a variable keeps its type."""
    with pytest.raises(MirblabError, match=r"no database '.*none\.mm', neither as a file"):
        read_logic(tmp_path / "none.mm")
    assert read_logic("none.mm|mini").name == "mini.mm"
    with pytest.raises(MirblabError, match="'two' must give a variable its only typecode, found 'term P'"):
        read(tmp_path, f"{DEMO} two $f term P $.")
    with pytest.raises(MirblabError, match="no statement 'a4'"):
        read(tmp_path, DEMO).statement("a4")


def test_every_expression_is_read_as_one_term_and_written_back(logic):
    """So the grammar is unambiguous on them."""
    grammar = Grammar(logic)
    for each in logic.statements.values():
        for expression in (each.expression, *(hypothesis.expression for hypothesis in each.essential)):
            if expression[0] == "|-":
                assert grammar.write(grammar.parse(expression)) == list(expression[1:])


def test_a_term_is_the_proof_of_its_syntax(logic):
    """The labels of a term in reverse Polish order prove its typecode, by the checker, which knows no terms."""
    grammar = Grammar(logic)
    theorem = logic.statement("ordertwo")

    def labels(term: Term) -> list[str]:
        if isinstance(term, str):
            return [next(each.label for each in logic.floating.values() if each.expression[1] == term)]
        return [label for part in term[1:] for label in labels(part)] + [term[0]]

    for each in logic.statements.values():
        expression = ("wff", *each.expression[1:])
        if each.expression[0] == "|-":
            proof = tuple(labels(grammar.parse(each.expression)))
            check_proof(logic, replace(theorem, hypotheses=(), expression=expression, proof=proof))


def test_what_does_not_fit_the_grammar_is_refused(tmp_path, logic):
    """And a grammar that is ambiguous or left-recursive."""
    with pytest.raises(MirblabError, match=r"'\|- \( ph ->' does not fit the grammar of mini.mm"):
        Grammar(logic).parse(("|-", "(", "ph", "->"))
    with pytest.raises(MirblabError, match="'weq' and 'again' have the same form"):
        Grammar(read(tmp_path, f"{DEMO} again $a wff s = r $."))
    left = Grammar(read(tmp_path, f"{DEMO} tail $a term t 0 $."))
    with pytest.raises(MirblabError, match="left-recursive in 'term'"):
        left.parse(("|-", "0", "=", "0"))
    with pytest.raises(MirblabError, match="must name each of its variables once"):
        Grammar(read(tmp_path, f"{DEMO} twice $a term ( t - t ) $."))


TERMS: st.SearchStrategy[Term] = st.recursive(
    st.sampled_from([("c0",), "A", "B", 0, 1, 2]),
    lambda parts: st.tuples(st.just("cadd"), parts, parts) | st.tuples(st.just("cneg"), parts),
    max_leaves=8,
)


@given(TERMS, TERMS)
def test_unified_terms_are_equal_and_what_is_refused_differs(one, other):
    """A unifier makes both terms equal; terms without a common instance are not unified."""
    grammar = GRAMMAR
    first = len(grammar.variables)  # metavariables of slot 1, all of the typecode of A
    one, other = (shifted(term, first + grammar.numbers["A"]) for term in (one, other))
    bindings: dict[int, Term] = {}
    trail: list[int] = []
    if grammar.unify(one, other, bindings, trail):
        assert resolve(one, bindings) == resolve(other, bindings)
        assert sorted(trail) == sorted(bindings)
        assert not any(occurs(name, term, {}) for name, term in bindings.items())
    else:
        assert one != other and not (isinstance(one, int) and not occurs(one, other, {}))


def shifted(term: Term, first: int) -> Term:
    """Return a term with the metavariables 0, 1, 2 as those of *A*, *B*, *C* in slot 1."""
    if isinstance(term, tuple):
        return (term[0], *(shifted(part, first) for part in term[1:]))
    return term + first if isinstance(term, int) else term


GRAMMAR = Grammar(read_logic("mini"))


def test_a_metavariable_takes_terms_of_its_typecode_only(prover):
    """A formula does not stand for a term."""
    grammar = prover.grammar
    formula, term = grammar.metavariable("ph", 1), grammar.metavariable("A", 1)
    assert not grammar.unify(formula, term, {}, [])
    assert not grammar.unify(term, ("wn", "ph"), {}, [])
    assert grammar.unify(term, ("cv", "x"), {}, [])
    assert not grammar.unify(formula, ("wn", formula), {}, [])


def test_the_authors_statement_proves_each_step(logic, prover):
    """At depth 1, from the earlier steps; the proof is one that the checker accepts."""
    for theorem in theorems(logic)[::3]:
        for goal in proof_goals(logic, theorem.label):
            outcome = prover.prove(goal, sorted(goal.used))
            assert outcome.proof is not None and outcome.proof.labels == list(goal.used), goal.goal_id
            claim = replace(theorem, hypotheses=goal.context, expression=goal.expression,
                            proof=labelled_proof(prover, goal, outcome.proof))  # fmt: skip
            check_proof(logic, claim)


def test_a_proof_of_depth_two_applies_one_more_statement(logic, prover):
    """The theorem's hypotheses are its only context."""
    goal = proof_goals(logic, "mpd", whole=True)[0]
    assert prover.prove(goal, ["ax-mp", "a2i"]).proof is None
    proof = prover.prove(goal, ["ax-mp", "a2i"], depth=2).proof
    assert proof is not None and proof.depth == 2 and proof.labels == ["ax-mp", "a2i"]
    assert str(proof).splitlines()[0] == "|- ( ph -> ch )    by ax-mp"
    assert prover.prove(goal, ["ax-mp"], depth=2).proof is None
    assert prover.prove(goal, ["ax-mp"], ["a2i"], depth=2).proof == prover.prove(goal, ["ax-mp"], None, depth=2).proof


def test_a_statement_that_comes_later_or_restates_the_goal_is_not_applied(logic, prover):
    """Nor the theorem itself."""
    goal = proof_goals(logic, "syl", whole=True)[0]
    assert prover.prove(goal, ["syl", "imim2i"], None, depth=2).proof is None
    assert prover.prove(proof_goals(logic, "id", whole=True)[0], ["pm2.43i"], depth=2).proof is None


def test_distinct_variables_of_the_theorem_decide(logic, prover):
    """`ax-5` is applied in a theorem whose variables are distinct, and in no other."""
    goal = replace(proof_goals(logic, "alrimiv", whole=True)[0], expression=tuple("|- ( ph -> A. x ph )".split()))
    assert prover.prove(goal, ["ax-5"]).proof is not None
    assert prover.prove(replace(goal, theorem="albii"), ["ax-5"]).proof is None


def test_a_statement_that_leaves_the_goal_itself_is_no_step(tmp_path):
    """Else a rule that only repeats its hypothesis would be useful for whatever another statement proves."""
    text = "${ same.1 $e |- t = s $.  same $a |- t = s $. $}  refl $a |- t = t $.  goal $p |- r = r $= tr refl $."
    logic = read(tmp_path, f"{DEMO}{text}")
    goal, prover = proof_goals(logic, "goal", whole=True)[0], Prover(logic)
    assert prover.prove(goal, ["same"], None, depth=2).proof is None
    assert prover.prove(goal, ["refl"], None, depth=2).proof is not None


def test_a_variable_that_stays_free_becomes_a_dummy(tmp_path):
    """Nothing fixes the term between two statements, so a variable that the goal lacks stands for it."""
    text = """
    ${ mid.1 $e |- t = s $.  mid $a |- r = r $. $}  refl $a |- t = t $.  goal $p |- r = r $= tr tt tt mid $."""
    logic = read(tmp_path, f"{DEMO}{text}")
    goal = proof_goals_of_unproved(logic, "goal")
    proof = Prover(logic).prove(goal, ["mid"], ["refl"], depth=2).proof
    assert proof is not None and proof.labels == ["mid", "refl"]
    assert proof.closers[0].expression == ("|-", "t", "=", "t")


def proof_goals_of_unproved(logic: Logic, label: str) -> Goal:
    """Return the goal of a theorem whose proof is wrong."""
    statement = logic.statement(label)
    return Goal(label, label, statement.order, statement.expression, (), frozenset(), statement.text)


def test_the_limit_counts_unifications(logic, prover):
    """So that a search ends at the same place on every machine."""
    goal = proof_goals(logic, "19.43", whole=True)[0]
    outcome = prover.prove(goal, ["bitri"], None, depth=2, limit=50)
    assert outcome.proof is None and outcome.is_exhausted and outcome.work == 51
    with pytest.raises(MirblabError, match="depth is 1 or 2, found 3"):
        prover.prove(goal, ["bitri"], depth=3)


def test_goals_are_drawn_by_day_and_by_seed(logic):
    """A second step of a theorem comes only after one of each."""
    goals = draw_goals(logic, "2025-04-15", "2025-06-01", n_goals=30)
    assert goals == draw_goals(logic, "2025-04-15", "2025-06-01", n_goals=30)
    assert goals != draw_goals(logic, "2025-04-15", "2025-06-01", n_goals=30, seed=1)
    assert len({goal.theorem for goal in goals}) == len(goals) == 30
    days = {each.label: each.contributed for each in logic.assertions}
    assert all("2025-04-15" <= str(days[goal.theorem]) < "2025-06-01" for goal in goals)
    assert all(goal.is_whole for goal in draw_goals(logic, "2025-04-15", whole=True))
    with pytest.raises(MirblabError, match="has no theorem contributed from '2031-01-01' on"):
        draw_goals(logic, "2031-01-01")
    with pytest.raises(MirblabError, match=r"n_goals must be 0 \(all\) or the number of goals, found -5"):
        draw_goals(logic, "2025-04-15", n_goals=-5)
