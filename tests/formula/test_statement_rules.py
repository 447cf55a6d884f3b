"""Statements reworded, with other letters, and made false."""

from __future__ import annotations

import re

import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st
from sympy.logic.boolalg import Boolean
from sympy.logic.inference import satisfiable

from mirblab.formula.latex import parser
from mirblab.formula.rewriting.rules import RULES
from mirblab.formula.rewriting.statements import (
    SYNONYMS,
    dropped_conditions,
    exchange_synonyms,
    falsify,
    rename_variables,
    reword,
)


@pytest.mark.parametrize(
    ("text", "letters", "n_places"),
    [
        (r"If $x \in \mathbb{R}$ then $x^2 \ge 0$.", "x", 2),
        ("Let `f : X → Y` and `g : Y → Z`; `g ∘ f` maps `x` to `g (f x)`.", "fXYgZx", 12),
        ("`K.op : Jᵒᵖ ⥤ Cᵒᵖ` and `J`, `x₁` and `x'` and x", "KJx", 6),
        ("A natural number n is even or `n + 1` is.", "n", 2),
        ("`hx : 0 < x` and `f x`", "f", 1),  # the name hx was made of x
        (r"$\mathcal{F}$ of F, $\mathrm{d}x$, $gcd(g,b)$", "Fxb", 3),  # g may belong to a name
        ("p-adic, of `p`; E. Noether and `E`; `(A ⊗ P)_G` and `G`; `b.c`", "Pb", 2),
        ("`C`, `I`, `e`, `a` stay, and so does $\\undefinedcommand x$", "", 0),
    ],
)
def test_variables_are_renamed_everywhere_and_nothing_else_is(text: str, letters: str, n_places: int) -> None:
    """In LaTeX, code and prose; what may be a name stays. No two letters become one."""
    found = rename_variables(text, 3)
    assert set(found.letters) == set(letters)
    assert len(set(found.letters.values())) == len(found.letters)
    assert not set(found.letters.values()) & set(re.findall(r"(?<!\w)[A-Za-z](?![A-Za-z])", text))
    changes = [(old, new) for old, new in zip(text, found.text, strict=True) if old != new]
    assert set(changes) == set(found.letters.items()) and len(changes) == n_places


def test_renamed_formulas_have_the_same_structure() -> None:
    """The parser sees trees that differ in names only, one to one; a letter that is a command stays."""
    formula = r"\sum_{n=1}^{k} \frac{x_n^2}{f(n)} \le \int_X g(x, \alpha)\,dx"
    new = rename_variables(f"${formula}$", 1).text[1:-1]
    one, other = parser.parse_latex(formula), parser.parse_latex(new)
    assert (one.parents, one.relations) == (other.parents, other.relations)
    pairs = {(a, b) for a, b in zip(one.labels, other.labels, strict=True)}
    assert len(pairs) == len({a for a, _ in pairs}) == len({b for _, b in pairs})
    assert sum(a != b for a, b in pairs) == 6


def test_an_article_follows_the_letter_behind_it() -> None:
    """An n-th root is a k-th one."""
    found = rename_variables("an `n`-th root of an `R`-module", 0)
    for letter in found.letters.values():
        wanted = "an" if letter in "FHLMNRSXnmlr" else "a"
        assert re.search(rf"(\w+) `{letter}`", found.text)[1] == wanted


@pytest.mark.parametrize(
    ("text", "choices"),
    [
        ("If A holds, then B does.", {"Whenever A holds, B does.", "Suppose that A holds. Then B does.",
                                      "Assuming that A holds, B does.", "Let us assume that A holds. Then B does."}),
        ("It is so iff `x` is.", {"It is so exactly when `x` is.", "It is so if and only if `x` is.",
                                  "It is so precisely when `x` is."}),
        ("there exists a root", {"there is a root", "one can find a root", "we can find a root"}),
        ("there exists a unique root", {"there exists a unique root"}),
        ("If A, then B. Otherwise C.", {"If A, then B. Otherwise C."}),
        ("not for every group", {"not for every group"}),
        ("`if x then y`", {"`if x then y`"}),
        ("Let `X` be a set.", {"Suppose that `X` is a set.", "Take `X` to be a set.", "Assume that `X` is a set."}),
    ],
)  # fmt: skip
def test_rules_say_the_same_in_other_words(text: str, choices: set[str]) -> None:
    """Every way is met over some seeds, and no other; what a rule does not fit stays."""
    assert {reword(text, seed, letters=False).text for seed in range(60)} == choices


@pytest.mark.parametrize(
    ("text", "new"),
    [
        ("Every Abelian group is a module.", ["Every commutative group is a module."]),
        ("An injective map", ["A one-to-one map"]),
        ("a commutative group of $n$", ["an abelian group of $n$"]),
        ("Posets with suprema", ["Partially ordered sets with suprema"]),
        ("no non-abelian group", ["no non-commutative group"]),
        (
            "linear maps and eigenvalues",
            ["linear transformations and eigenvalues", "linear maps and characteristic values"],
        ),
        ("an injective module, a bilinear map, $abelian group$, the supremum norm", []),
        ("a multi-linear map, the essential supremum, all least upper bounds, a finite field extension", []),
        ("a f\u0131nite field", []),
    ],
)
def test_a_term_is_exchanged_for_its_synonym(text: str, new: list[str]) -> None:
    """With its article, its plural and its first letter; a word that means something else elsewhere stays."""
    assert exchange_synonyms(text) == new


def test_each_synonym_is_exchanged_back() -> None:
    """No term stands twice in the table."""
    terms = [term for pair in SYNONYMS for term in pair]
    assert len(set(terms)) == len(terms)
    for term in terms:
        (new,) = exchange_synonyms(f"it is {term} here")
        assert exchange_synonyms(new) == [f"it is {term} here"]


def test_the_same_seed_gives_the_same_words() -> None:
    """Other seeds give other words."""
    text = "If `n` is even, then there exists `k` such that `n = 2 * k`."
    assert reword(text, 5) == reword(text, 5)
    assert len({reword(text, seed).text for seed in range(20)}) > 5


@pytest.mark.parametrize(
    ("text", "kind", "new"),
    [
        ("`a ≤ b` always", "sign-exchanged", "`a ≥ b` always"),
        ("the map `g ∘ f`", "flipped", "the map `f ∘ g`"),
        ("the map `h (x) ∘ f y`", "", ""),
        ("`f` is continuous", "negated", "`f` is not continuous"),
        ("there exists a root", "negated", "there does not exist a root"),
        ("If A holds and B holds, then C.", "condition-dropped", "If A holds, then C."),
        ("If $a > b$ and $b > c$, then $a > c$.", "condition-dropped", "If $a > b$, then $a > c$."),
        (r"Assume $(b_s)_{s \in S}$ and $(c_t)_{t \in T}$ are bases, so V is free.", "condition-dropped", ""),
        ("If $f: X \\to Y$ and $g: Y \\to Z$ are injective, so is gf.", "condition-dropped", ""),
        ("a finite group", "number-changed", "an infinite group"),
        ("a quasi-finite morphism", "number-changed", ""),
        ("`f` maps to an injective map", "notion-exchanged", "`f` maps to a surjective map"),
        ("If `x < y`, then `f x < f y`.", "converse", "If `f x < f y`, then `x < y`."),
        ("A ring.", "", ""),
    ],
)
def test_falsehoods_change_one_thing(text: str, kind: str, new: str) -> None:
    """The kinds of `corruptions` in code too, and our own."""
    found = {one.kind: one.text for one in falsify(text, 0, n=9)}
    assert found.get(kind, "") == new
    assert kind or not found


@pytest.mark.parametrize(
    ("text", "new"),
    [
        ("If $p$ is a prime and $p \\mid ab$, then $p \\mid a$.", "If $p$ is a prime, then $p \\mid a$."),
        ("Suppose $f$ is flat, and that $X$ is reduced. Then $Y$ is.", "Suppose $f$ is flat. Then $Y$ is."),
        ("$M$ is flat if $K$ is flat and $L$ is flat.", "$M$ is flat if $K$ is flat."),
        ("$M$ is flat if and only if $K$ is flat, and $L$ is flat.", "$M$ is flat if and only if $K$ is flat."),
        ("If $f$ has a pole and is bounded, $f$ is odd.", "If $f$ has a pole, $f$ is odd."),
        ("If $X$ is finite and $f$ and $g$ are odd, then $X$ is odd.", "If $X$ is finite, then $X$ is odd."),
        (
            "If $G$ is finite and $a$ is a unit of $G$ and $b > 2$ then $a = b$.",
            "If $G$ is finite and $a$ is a unit of $G$ then $a = b$.",
        ),
        (
            "Assume $Q$ holds at $1$ and every set in $C$ has $Q$. Then $Q$ holds.",
            "Assume $Q$ holds at $1$. Then $Q$ holds.",
        ),
    ],
)
def test_of_two_conditions_the_last_is_dropped(text: str, new: str) -> None:
    """Before a conclusion that begins at "then" or a comma, or behind one."""
    assert [text[: one.start] + one.new + text[one.end :] for one in dropped_conditions(text)] == [new]


@pytest.mark.parametrize(
    "text",
    [
        r"If $T$ is a set with $b > 0$ and $c \in \mathbb{R}$, then $T$ is big.",
        r"If $f(x) > 0$ for each $x \in X$ and $c \in \mathbb{R}$, then $f$ is big.",
        "If $V$ has bounded size with constant $c > 1$ and exponent $d > 0$, then $V$ is big.",
        r"If $f$ is flat, and if $x \in |X|$, then $f(x)$ is big.",
        r"If $f$ is flat and $R \to R'$ is a ring map, then $R'$ is flat.",
        "If $X$ is flat and $a, b: X \\to Y$ are maps, then $a$ is flat.",
        "Suppose $x = 3 - 2i$ and $y = 4 + i$. Find $xy$.",
        "If $X$ is compact and a set of points has a limit, then $X$ is big.",
        "If $X$ is compact, then $f$ is bounded and $g$ is bounded.",
        "If $X$ is compact, then $f$ is bounded and if $g$ is odd, $f$ is odd.",
        "If $X$ is compact, its image is compact and its closure is compact.",
        "If $f$ is compact, its image is compact and $g$ is bounded.",
        "$M$ is flat if and only if $M$ is odd, and $N$ is flat if and only if $N$ is odd.",
        "It is compact only if $X$ is bounded and $X$ is closed.",
        "I wonder if $X$ is bounded and $X$ is closed.",
        "Suppose $X$ is compact and we have $x > 0$. Show it.",
        "If $x \\in X$ and its inverse are units, then $X$ is odd.",
        "If $a > m$ and $b > m$, then $ab > m$. Here $b> m$.",
        "If for every $U = V$ and all $s > 0$ the section $t$ is flat, then $X$ is.",
        "$X$ is big if $X$ is flat, $Y$ is odd and $Z$ is even.",
    ],
)
def test_what_is_no_second_condition_stays(text: str) -> None:
    """A variable that is declared, the conclusion, a question, or what the text says twice."""
    assert dropped_conditions(text) == []


def test_falsehoods_differ_from_each_other_and_from_the_statement() -> None:
    """At most n, as many kinds as there are, the same for the same seed."""
    text = "If `f` and `g` are injective and `X` is finite, then `g ∘ f` is injective and `a ≤ b`."
    found = falsify(text, 1)
    assert len({one.text for one in found} | {text}) == 4 and len({one.kind for one in found}) == 3
    assert falsify(text, 1) == found and falsify(text, 1, n=1) == found[:1]


ATOMS = ("is {}even", "is {}prime", "is {}positive", "is {}square", "has {} root", "has {} divisor", "{}= 0")


def clause(atom: str, is_positive: bool) -> str:
    """Return an atom about $x$ or its negation, in words or as a formula."""
    if "= 0" in atom:
        return "$x = 0$" if is_positive else r"$x \neq 0$"
    if atom.startswith("has"):
        return f"$x$ {atom.format('a' if is_positive else 'no')}"
    return f"$x$ {atom.format('' if is_positive else 'not ')}"


@st.composite
def propositions(draw: st.DrawFn) -> str:
    """Draw a sentence of two or three clauses, each with an atom of its own, so that none is always true."""
    atoms = draw(st.permutations(ATOMS))[: draw(st.integers(2, 3))]
    *conditions, conclusion = (clause(atom, draw(st.booleans())) for atom in atoms)
    form = draw(st.sampled_from(("If {}, then {}.", "Suppose that {}. Then {}.", "Whenever {}, {}.", "{} iff {}.")))
    return form.format(" and ".join(conditions), conclusion)


def read_proposition(text: str) -> Boolean:
    """Return a sentence as SymPy's logic; ValueError for one that is no conditional and no equivalence of clauses."""
    for pattern, kind in (
        (r"(?:If|Whenever|Assuming that) (.+?),(?: then)? (.+)\.", sympy.Implies),
        (r"(?:Suppose|Assume|Let us assume)(?: that)? (.+)\. Then (.+)\.", sympy.Implies),
        (r"(.+) (?:iff|if and only if|exactly when|precisely when) (.+)\.", sympy.Equivalent),
    ):
        if match := re.fullmatch(pattern, text):
            return kind(*map(read_clauses, match.groups()))
    raise ValueError(text)


def read_clauses(text: str) -> Boolean:
    joined = sympy.Or if " or " in text else sympy.And
    return joined(*map(read_clause, re.split(" and | or ", text)))


def read_clause(text: str) -> Boolean:
    match = re.fullmatch(
        r"\$\w (?P<sign>=|\\neq) 0\$|\$\w\$ (?:is (?P<not>not )?|has (?P<article>an?|no) )(?P<atom>\w+)", text
    )
    if not match:
        raise ValueError(text)
    symbol = sympy.Symbol(match["atom"] or "zero")
    return ~symbol if match["not"] or match["sign"] == r"\neq" or match["article"] == "no" else symbol


@settings(max_examples=200, deadline=None, derandomize=True)
@given(propositions(), st.integers(0, 5))
def test_rules_keep_or_change_the_truth_table(text: str, seed: int) -> None:
    """SymPy decides whether the old and the new statement have the same values; it knows no rule."""
    said = read_proposition(text)
    for name in ("words", "letters", "contraposed"):
        for new in RULES[name].rewrite(text, str(seed)):
            assert not satisfiable(said ^ read_proposition(new)), (name, text, new)
    for name in ("negated", "condition-dropped", "converse"):
        for new in RULES[name].rewrite(text, str(seed)):
            assert satisfiable(said ^ read_proposition(new)), (name, text, new)


@pytest.mark.parametrize("name", ["words", "letters", "contraposed", "negated", "condition-dropped", "converse"])
def test_each_of_these_rules_applies_to_a_proposition(name: str) -> None:
    """So that the test above says something of it."""
    text = "If $x$ is even and $x$ has a root, then $x$ is prime."
    assert [new for new in RULES[name].rewrite(text, "0") if new != text]
