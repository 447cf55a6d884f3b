"""Statements for proof assistants are told from prose and from formulas."""

from __future__ import annotations

import pytest

from mirblab.display.text import text_html
from mirblab.formula import in_text
from mirblab.formula.in_text import formal_language, is_formal
from mirblab.formula.metamath.database import read_logic
from mirblab.sources.catalogue import load


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("|- !x y. x + y = y + x", "HOL"), ("|- ( ph -> ps )", "Metamath"), ("a b : ℕ ⊢ a + b = b + a", "Lean"),
        ("proof (prove) goal (1 subgoal): 1. P", "Isabelle"), (r"\<forall>x. P x", "Isabelle"),
        ("noncomputable def f (x : ℝ) : ℝ := x", "Lean"), ("∀ {α : Type*} (s : Set α), s ⊆ s", "Lean"),
        ("¬Summable (fun n => 1 / n : ℕ → ℝ)", "Lean"), ("def two :=\n  2", "Lean"),
        ("n.divisors.sum Nat.totient ≤ n", "Lean"), ("instance Foo.bar [Group G] [inst : Ring R] : Baz", "Lean"),
    ],
)  # fmt: skip
def test_the_language_is_named(text: str, name: str) -> None:
    """By a sign that no prose and no LaTeX has."""
    assert is_formal(text) == name and not in_text.is_bare_formula(text)


@pytest.mark.parametrize(
    "text",
    [
        "[G : G_x]", "|- 20 - 27| = 47", r"|- u| = |- 1 \cdot u|", r"(f : X \to Y)", "{x : x > 0}", "x := y + 1",
        r"\forall x : P(x)", "∀ x, x ≤ x", "a.b", "f: X → Y", r"$(x_n : n \in \mathbb{N})$", "P(X : Y)",
    ],
)  # fmt: skip
def test_formulas_stay_formulas(text: str) -> None:
    """A colon, an arrow or a bar alone says nothing."""
    assert not is_formal(text)


def test_a_statement_of_metamath_may_have_a_title() -> None:
    """Of the bundled database nearly all are recognised, but for those without a sign; inside prose none is."""
    logic, titled = read_logic("mini"), []
    for assertion in logic.assertions:
        statement = logic.statement(assertion.label)
        parts = [" ".join(("|-", *part.expression)) for part in (*statement.essential, statement)]
        titled.append("A rule of [Author] p. 7. " + " & ".join(parts[:-1]) + " => " * (len(parts) > 1) + parts[-1])
    found = [is_formal(text) for text in titled]
    assert len(found) > 100 and found.count("Metamath") > 0.95 * len(found)
    assert formal_language(titled) == "Metamath"
    assert not any(is_formal(f"{text} holds.") for text in titled if "=>" not in text)


@pytest.mark.parametrize("end", [" is a theorem.", " by step one;", " with no step."])
def test_prose_that_quotes_a_statement_of_metamath_is_none(end: str) -> None:
    """A sentence that goes on after it ends with a word and a full stop."""
    assert is_formal("The rule is known. |- ( ph -> ps )") == "Metamath"
    assert is_formal(f"The rule is known. |- ( ph -> ps ){end}") == ""
    assert is_formal(r"The rule is known. |- ( \alpha -> ps )") == ""


@pytest.mark.parametrize("unit", ["|- ", ". |- ", ". |- ( ", "( e. ", "the "])
def test_a_text_full_of_turnstiles_is_read_soon(unit: str, in_time: None) -> None:
    """Two hundred thousand characters of them."""
    is_formal("A title. |- " + unit * (200_000 // len(unit)))


@pytest.mark.parametrize("name", ["mini-lean", "mini-hol", "mini-isabelle"])
def test_code_is_shown_as_it_is_written(name: str) -> None:
    """No blank and no letter of it is set as mathematics, and lines stay lines."""
    collection = load(name)
    shown = {text: text_html(text) for text in (*collection.query_texts, *collection.texts)}
    assert not [text for text, page in shown.items() if "<math" in page or "pre-wrap" not in page]
    assert all(page.count("\n") == text.count("\n") for text, page in shown.items())


@pytest.mark.parametrize("name", ["mini-wfb", "mini-qa", "mini-mathlib", "mini-stacks", "mini-premises"])
def test_other_collections_are_in_no_such_language(name: str) -> None:
    """But for a line or two of Lean that somebody quotes."""
    collection = load(name)
    assert sum(bool(is_formal(text)) for text in (*collection.query_texts, *collection.texts)) <= 1


def test_statements_of_rocq_are_told_in_numbers() -> None:
    """A few could be bare formulas, which some of the same signs are in."""
    rocq = ["m n : n <= maxn m n", "{T : Type} (x : option T) : omap id x = x", "associative (max : T -> T -> T)",
            "K <| G -> maximal (G / K) (H / K) = maximal G H", "injective f"]  # fmt: skip
    assert formal_language(rocq * 4) == "Rocq" and formal_language(rocq) == ""
    assert formal_language([r"x \in A => y \in B", "f : X -> Y $ is $", r"\frac{a}{b} == c"] * 9) == ""


@pytest.mark.parametrize(
    ("texts", "name"),
    [
        (["ADD_SYM |- (!m. (!n. (m + n) = (n + m)))", "T", "|- (!x. x$1 = x$1)"], "HOL"),
        (["⊢ a = b", "|- !x. x = x", "x : ℕ ⊢ x = x"], "Lean"),
        (["Let $x$ be one.", "The goal is |- !x. x = x", "⊢ a = b", "Why?"], ""), ([], ""),
    ],
)  # fmt: skip
def test_a_collection_is_in_the_language_of_most_of_its_texts(texts: list[str], name: str) -> None:
    """A single text may lack the signs, or quote a line of another language."""
    assert formal_language(texts) == name


@pytest.mark.parametrize(
    "text",
    [
        r"A sequent $\Gamma$ ⊢ $\Delta$ is valid.", "theorem 2.1 says that :\n$x^2 = 1$ has two roots",
        "theorem two says that : $x$", r"so \(a\) ⊢ b", r"the turnstile ⊢ in $ \vdash $",
    ],
)  # fmt: skip
def test_a_sign_of_logic_hides_no_formula_of_a_post(text: str) -> None:
    """Delimiters say that it is prose, with formulas in it."""
    assert not is_formal(text) and len(in_text.split_text(text)) > 1


@pytest.mark.parametrize(
    "text",
    [
        "x : ℕ ⊢ f $ g $ x", "f <$> g <$> x ⊢ P", "theorem t : f $ g $ x = 1 := by simp",
        "def t (α : Q(Type)) (_ : Q(One $α)) : One Q($α)", "def t (h : Q(IsNat $a $b)) : Q($a = $b) := h",
    ],
)  # fmt: skip
def test_dollars_of_lean_delimit_no_formula(text: str) -> None:
    """It has them as operators between blanks, and before what is put into a quotation."""
    assert is_formal(text) == "Lean" and in_text.split_text(text) == [text]


def test_a_theorem_with_a_number_is_none_of_lean() -> None:
    """No name begins with a digit; modifiers may stand before the keyword."""
    assert not is_formal("theorem 2.1 says that :")
    assert is_formal("public meta lemma foo :\n  bar") == "Lean"
