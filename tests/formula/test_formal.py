"""Statements in Lean, Rocq, HOL and Metamath become operator trees, and structure search finds them."""

from __future__ import annotations

import gzip
import json
import random
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

import pytest
from formula_trees import check_tree

import mirblab as lab
from mirblab.analysis import collection_report
from mirblab.data.collection import load_folder
from mirblab.formula import index
from mirblab.formula.formal.metamath import read_metamath
from mirblab.formula.formal.statements import (
    READ,
    FormulaSource,
    is_quoting,
    name_parts,
    read_source,
    statement_sources,
)
from mirblab.formula.formal.terms import read_term
from mirblab.formula.in_text import FormulaReader
from mirblab.formula.index import Index
from mirblab.formula.metamath.database import Logic, read_logic
from mirblab.formula.metamath.terms import Grammar, Term
from mirblab.formula.tree import Tree, equal_up_to_names, equal_up_to_order, write_tangent
from mirblab.sources.metamath import Assertion
from mirblab.sources.shared import lean_source

Parts = set[tuple[tuple[str, int], ...]]  # how often each variable stands in a part, of each part that has two


def written(text: str, language: str) -> str:
    return write_tangent(read_source(text, language))


def variables_below(tree: Tree) -> Parts:
    """Return how often each variable stands below each node that has more than one."""
    below: list[Counter[str]] = [Counter() for _ in tree.labels]
    for node in reversed(range(len(tree))):
        label, parent = tree.labels[node], tree.parents[node]
        below[node] += Counter([label[2:]] if label[:2] == "V!" else [])
        if parent >= 0:
            below[parent] += below[node]
    return {tuple(sorted(counts.items())) for counts in below if counts.total() > 1}


def variables_of_terms(term: Term, found: Parts) -> Counter[str]:
    """Return how often each variable stands in a term of the grammar, and add that of each of its parts to *found*."""
    if not isinstance(term, tuple):
        return Counter([str(term)])
    counts = sum((variables_of_terms(part, found) for part in term[1:]), Counter[str]())
    if counts.total() > 1:
        found.add(tuple(sorted(counts.items())))
    return counts


def test_metamath_is_read_as_its_own_grammar_reads_it() -> None:
    """Each expression of the bundled database has the same parts, by their variables, without its syntax axioms."""
    logic = read_logic("mini")
    compared = list(parts_by_grammar_and_reader(logic, logic.assertions))
    assert [expression for expression, parts, found in compared if parts != found] == []
    assert len(compared) > 100


def test_most_parts_of_set_mm_are_those_of_its_own_grammar(shared_file: Callable[[str], Path]) -> None:
    """In a sample of all its assertions, those with notations that the reader does not know included."""
    logic = read_logic(shared_file("sources/set.mm.gz"))
    compared = list(parts_by_grammar_and_reader(logic, random.Random(0).sample(logic.assertions, 3_000)))
    n_parts, n_found, n_both = (
        sum(map(len, sets)) for sets in zip(*[(p, f, p & f) for _, p, f in compared], strict=True)
    )
    assert n_both / n_parts > 0.994 and n_both / n_found > 0.943  # recall, precision
    assert sum(parts == found for _, parts, found in compared) / len(compared) > 0.87


def parts_by_grammar_and_reader(logic: Logic, assertions: list[Assertion]) -> Iterator[tuple[str, Parts, Parts]]:
    """Yield each expression of some assertions with its parts by the database's grammar, and by the reader."""
    grammar = Grammar(logic)
    for assertion in assertions:
        statement = logic.statement(assertion.label)
        for expression in (statement.expression, *(each.expression for each in statement.essential)):
            parts: Parts = set()
            variables_of_terms(grammar.parse(expression), parts)
            yield " ".join(expression), parts, variables_below(read_metamath(" ".join(expression)))


def operators_of_the_conclusion(tree: Tree) -> Counter[str]:
    """Return the labels of the nodes with operands, in the last operand of an outer quantifier or in the whole tree."""
    operands = [node for node, parent in enumerate(tree.parents) if parent == 0]
    inside = {operands[-1] if operands and tree.labels[0] == "O!forall" else 0}
    for node, parent in enumerate(tree.parents):
        if parent in inside:
            inside.add(node)
    return Counter(tree.labels[node] for node in inside & set(tree.parents))


def test_signature_and_type_of_a_declaration_have_the_same_conclusion(shared_file: Callable[[str], Path]) -> None:
    """Binders stand before a colon, or behind a quantifier: 9,125 of 9,139 conclusions agreed, and all of these 499."""
    with gzip.open(shared_file("data/mathlib-views/views.jsonl.gz"), "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in islice(lines, 0, None, 110)]
    read = [
        [operators_of_the_conclusion(read_source(row[view], "Lean")) for view in ("signature", "type")] for row in rows
    ]
    assert len(read) == 499
    assert sum(one == other for one, other in read) >= 0.99 * len(read)
    assert sum(bool(one) for one, _ in read) >= 0.9 * len(read)


@pytest.mark.parametrize(
    ("language", "one", "other"),
    [
        ("Lean", "theorem a {x y : ℝ} : x + y = y + x", "lemma bc.d {a b : ℝ} : a + b = b + a"),
        ("Lean", "theorem t {s : Finset ℕ} : s.card = 0", "∀ {t : Finset ℕ}, Finset.card t = 0"),
        ("Lean", "∀ x : ℝ, (f x : ℂ) = 1 ∧ P x ∨ Q", "∀ x : ℝ, ((f x = 1) ∧ P x) ∨ Q"),
        ("Lean", "theorem t {left right : ℕ} : f left = right", "theorem t {u v : ℕ} : f u = v"),
        ("Lean", "a b : ℕ\nhyp : a = b\n⊢ b = a", "theorem t (a b : ℕ) (h : a = b) : b = a"),
        ("Lean", "M : Type u\ninst✝ : Group M\n⊢ P M", "theorem t (M : Type u) [Group M] : P M"),
        ("HOL", "|- !lo hi. lo < hi ==> P lo", "|- !a b. a < b ==> P a"),
        ("Lean", "a → b → c", "a → (b → c)"),
        ("Lean", "a - b - c", "(a - b) - c"),
        ("Lean", "-x ^ 2", "-(x ^ 2)"),
        ("Lean", "∑ i ∈ s, f i + 1 = 2", "(∑ i ∈ s, f i + 1) = 2"), ("Lean", "f (g x) y", "h (k z) w"),
        ("Lean", "theorem t (h : 0 < x) : P x", "theorem t : ∀ (h : 0 < x), P x"), ("Lean", "↑x = (y)", "x = y"),
        ("Lean", "structure S (M N : Type*) [Group M] [Ring N]", "∀ (M N : Type*) [Group M] [Ring N],"),
        ("Lean", "class C (elt : Type*) extends Group elt, Ring elt", "∀ (A : Type*) extends Group A, Ring A,"),
        ("Lean", "abbrev A (left : Type*) := List left", "∀ (X : Type*), List X"),
        ("Lean", "f x <| g <| h y", "f x (g (h y))"), ("Lean", "f x |>.foo y", "(f x).foo y"),
        ("Lean", "theorem t (g : Set <| F 2) : a = f <| b + c", "theorem t (g : Set (F 2)) : a = f (b + c)"),
        ("Lean", "f (· + 1) = a", "f (fun y ↦ y + 1) = a"),
        ("Lean", "Tendsto f .atTop l ∧ x ∈ .Ioi 2", "Tendsto f Filter.atTop l ∧ x ∈ Set.Ioi 2"),
        ("Lean", "f (.Icc a b) = g <| .mk c", "f (Icc a b) = g (mk c)"),
        ("Lean", "f (g x 2 |>.foo) = a || b", "f ((g x 2).foo) = a || b"), ("Lean", "a || b = true", "a || (b = true)"),
        ("Lean", "f |x| y = c * |d|", "f (|x|) y = c * (|d|)"), ("Lean", "|a * |b|| = |c|", "(|a * (|b|)|) = |c|"),
        ("Lean", "||x| - |y|| = 0", "|(|x|) - (|y|)| = 0"),
        ("Lean", "{x | f (log |x|) = y}", "{x | f (log (|x|)) = y}"),
        ("Lean", "#s = n", "s.card = n"), ("Lean", "f #s #(t ∪ u) ^ 2", "(f (card s) (card (t ∪ u))) ^ 2"),
        ("Lean", "∫ x, f x + g x ∂μ = c", "(∫ x, (f x + g x) ∂μ) = c"),
        ("Lean", "∫ x, ∫ y, f x y ∂ν ∂μ", "∫ x, (∫ y, f x y ∂ν) ∂μ"),
        ("Lean", "∫ x, if p then x else y ∂μ", "∫ x, (if p then x else y) ∂μ"),
        ("Lean", "⋃ i, s i ∪ t i ⊆ u", "(⋃ i, (s i ∪ t i)) ⊆ u"), ("Lean", "⨆ i, f i ⊔ g i", "⨆ i, (f i ⊔ g i)"),
        ("Lean", "a ⊔ b ⊓ c", "a ⊔ (b ⊓ c)"), ("Lean", "a ∪ b \\ c ×ˢ d", "a ∪ (b \\ (c ×ˢ d))"),
        ("Lean", "s ×ℂ t \\ u", "(s ×ℂ t) \\ u"), ("Lean", "f |_ U = g", "(f |_ U) = g"),
        ("Rocq", "(x \\in A) = (x \\in B) || p && q", "(x \\in A) = ((x \\in B) || (p && q))"),
        ("Rocq", "~~ a && b = c", "((~~ a) && b) = c"), ("Rocq", "a && b ==> c || d", "(a && b) ==> (c || d)"),
        ("Rocq", "A *m B *m C + D = E", "((A *m B) *m C) + D = E"), ("Rocq", "a *m: A = B", "(a *m: A) = B"),
        ("Rocq", "A <| B -> x \\in y |: A", "(A <| B) -> (x \\in (y |: A))"),
        ("Rocq", "A :|: B :\\: C", "A :|: (B :\\: C)"), ("HOL", "s UNION t DIFF u", "s UNION (t DIFF u)"),
        ("Rocq", "m n : m + n = n + m", "p q : p + q = q + p"),
        ("Rocq", "x : x \\in A -> P x", "y : (y \\in A) -> P y"),
        ("Rocq", "n : (n %| m)%N = true", "n : (n %| m) = true"),
        ("Rocq", "(i : nat) : i.+1 = i", "(j : nat) : (j.+1) = j"),
        ("Rocq", "∀ x y, x ∈ A -> P y", r"forall x y, x \in A -> P y"),
        ("Rocq", "∃ x, f = λ y, g x", "exists x, f = fun y => g x"),
        ("Rocq", "`{Foo A} (x : A) : x = x", "(H : Foo A) (x : A) : x = x"),
        ("Rocq", "`(Foo A) : P A", "(H : Foo A) : P A"), ("Rocq", "∀ `{!Foo A}, P A", "forall (H : Foo A), P A"),
        ("Rocq", "`{Foo A, !Bar A} : P A", "(H : Foo A) (K : Bar A) : P A"),
        ("Rocq", "`{K : Bar A} : P K", "(H : Bar A) : P H"),
        ("Rocq", "l `pre` k ++ m -> P", "(l `pre` (k ++ m)) -> P"),
        ("Rocq", "a + b `mod` c = d", "(a + (b `mod` c)) = d"),
        ("Rocq", "P ><| V = W", "(P ><| V) = W"), ("Rocq", "H :!=: 1 -> P H", "(H :!=: 1) -> P H"),
        ("Rocq", "f (M :^ x) = f M :^ x", "f (M :^ x) = ((f M) :^ x)"),
        ("Rocq", "P 'N_G(A) 'Z(G)", "P ('N_G(A)) ('Z(G))"),
        ("Rocq", "'O_p^'(G) = 'E_p^2(H)", "('O_p^'(G)) = ('E_p^2(H))"),
        ("Rocq", "p^'.-group A", "(p^').-group A"), ("Rocq", "\\sigma(M)^'.-Hall(M) H", "((\\sigma(M))^').-Hall(M) H"),
        ("Rocq", "[/\\ a = b, c & d]", "(a = b) /\\ c /\\ d"), ("Rocq", "[|| a, b | c]", "a || b || c"),
        ("Rocq", "[&& P x, Q x & R x] = b", "(P x && Q x && R x) = b"),
        ("Rocq", "abelian s`_i.+1 = t", "(abelian (s`_(i.+1))) = t"), ("Rocq", "'I_n.+1 -> R", "'I_(n.+1) -> R"),
        ("Rocq", "a = b + c %[mod d] -> e", "((a = (b + c)) %[mod d]) -> e"),
        ("Rocq", "A `|` B `<=` C `\\` D", "(A :|: B) \\subset (C :\\: D)"),
        ("Rocq", "x \\in ~` `I_n", "x \\in (~` (`I_n))"),
        ("Rocq", "{subset A <= B}", "A \\subset B"), ("Rocq", "\\prod_(i < n) F i * a", "(\\prod_(i < n) F i) * a"),
        ("Rocq", "\\sum_(i < n) F i * a", "\\sum_(i < n) (F i * a)"), ("Rocq", "f \\max g + h", "(f \\max g) + h"),
        ("Rocq", "foldr *%R 1 s", "foldr ( *%R ) 1 s"), ("Rocq", "x [*] y [=] z [-] x", "(x * y) = (z - x)"),
        ("Rocq", "(a + b) mod c = d", "((a + b) mod c) = d"), ("Rocq", "n`! * m = 1", "(n`!) * m = 1"),
        ("Lean", "f R ![a, b] = 0", "(f R (![a, b])) = 0"), ("Lean", "α →o β → γ", "α →o (β → γ)"),
        ("Lean", "M →ₗ[R] N →ₗ[R] P", "M →ₗ[R] (N →ₗ[R] P)"),
        ("Lean", "theorem t [Category* C] : P", "theorem t [Category C] : P"),
        ("HOL", "!f:real^N->real e. P f e", "!f:(real^N->real) e. P f e"),
        ("HOL", "&0 <= x$j /\\ a", "(&0 <= (x$j)) /\\ a"),
        ("HOL", "!x:real^N y:real. P x y", "!(x:real^N) (y:real). P x y"), ("HOL", "(0..n-1)", "(0..(n - 1))"),
        ("HOL", "f a continuous_on s /\\ b", "((f a) continuous_on s) /\\ b"),
        ("HOL", "x dot y <= c", "(x dot y) <= c"),
        ("HOL", "|- !x y. x + y = y + x", "|- !a b. a + b = b + a"),
        ("HOL", "|- !x. &0 <= x ==> P x", "!x. (0 <= x) ==> P x"),
        ("HOL", "FOO |- x IN s UNION t", "x IN (s UNION t)"), ("HOL", "~(x = y) /\\ z", "(~(x = y)) /\\ z"),
        ("Metamath", "|- ( ph -> ( ps -> ph ) )", "|- ( ch -> ( th -> ch ) )"),
        ("Metamath", "|- ph & |- ( ph -> ps ) => |- ps", "Given ` |- ph ` . |- ph & |- ( ph -> ps ) => |- ps"),
    ],
)  # fmt: skip
def test_what_says_the_same_has_the_same_tree(language: str, one: str, other: str) -> None:
    """Up to names, to keywords, to parentheses, and to the two ways to call a function."""
    trees = [read_source(text, language) for text in (one, other)]
    assert equal_up_to_names(*trees), [write_tangent(tree) for tree in trees]


def test_a_successor_of_rocq_is_an_operator() -> None:
    """`.+1` stands behind its only operand."""
    tree = read_source("(i : nat) : i.+1 = i", "Rocq")
    assert write_tangent(tree) == "[O!forall,0[ℕ],1[U!eq,0[+1,0[V!i]],1[V!i]]]"


@pytest.mark.parametrize(
    ("language", "text", "latex"),
    [
        ("Lean", "a + b = c * d", "a + b = c d"), ("Lean", "x ∈ A ∪ B", r"x \in A \cup B"),
        ("Lean", "p ∧ q ∧ r", r"p \wedge q \wedge r"), ("Lean", "0 < x", "0 < x"),
        ("Rocq", "m + n <= p", r"m + n \le p"),
        ("HOL", "x IN s UNION t", r"x \in s \cup t"),
        ("Metamath", "|- ( A u. B ) = ( B u. A )", r"A \cup B = B \cup A"),
        ("Lean", "a / b ≠ 0", r"a / b \neq 0"), ("Lean", "|x - y| ≤ 2", r"|x - y| \le 2"),
    ],
)  # fmt: skip
def test_a_statement_has_the_tree_of_the_same_formula_in_latex(language: str, text: str, latex: str) -> None:
    """So that prose finds statements by the formulas that it quotes."""
    assert equal_up_to_order(read_source(text, language), read_source(f"${latex}$", language)), written(text, language)


@pytest.mark.parametrize(
    ("language", "text", "tree"),
    [
        ("Lean", "instance Foo.bar [Group G] : Baz G where x := 1", "[O!forall,0[Group,0[V!G]],1[Baz,0[V!G]]]"),
        ("Lean", "f ≫ g = 𝟙 X", "[U!eq,0[F!≫,0[V!f],1[V!g]],1[𝟙,0[V!X]]]"),
        ("Lean", "{x : ℝ | 0 < x}", "[O!conditional-set,0[V!x],1[O!lt,0[N!0],1[V!x]]]"),
        ("Lean", "if p then a else b", "[if,0[V!p],1[V!a],2[V!b]]"),
        ("Lean", "R → K⟮X⟯ → M", "[F!→,0[V!R],1[F!→,0[V!K,0[M!D-⟮⟯,0[V!X]]],1[V!M]]]"),
        ("Lean", "M →ₗ[R] N", "[→ₗ,0[V!M],1[V!N],2[M!D-&lsqb;&rsqb;,0[V!R]]]"),
        ("Lean", "Tendsto f (𝓝 <| a) l", "[Tendsto,0[V!f],1[𝓝,0[V!a]],2[V!l]]"),
        ("Lean", "(a || b) = true", "[U!eq,0[U!or,0[V!a],1[V!b]],1[true]]"),
        ("Lean", "∫ x in s, f x ∂μ", "[O!int,0[V!s],1[V!f,0[V!x]],2[V!μ]]"),
        ("Lean", "#{x | p x} + #[a]", "[U!plus,0[F!card,0[O!conditional-set,0[V!x],1[V!p,0[V!x]]]],"
         "1[F!card,0[M!D-&lsqb;&rsqb;,0[V!a]]]]"),
        ("Lean", "‖f‖ₑ = |x|ₗ", "[U!eq,0[ₑ,0[O!norm,0[V!f]]],1[ₗ,0[F!abs,0[V!x]]]]"),
        ("Lean", "f ∘L g = h", "[U!eq,0[∘L,0[V!f],1[V!g]],1[V!h]]"),
        ("Rocq", "A *m f x", "[*m,0[V!A],1[V!f,0[V!x]]]"),
        ("Lean", "f ‖x‖ = g ⌊x⌋", "[U!eq,0[V!f,0[O!norm,0[V!x]]],1[V!g,0[F!floor,0[V!x]]]]"),
        ("Rocq", "#|A| = 2", "[U!eq,0[#,0[V!A]],1[N!2]]"), ("Rocq", "f #|A|", "[V!f,0[#,0[V!A]]]"),
        ("Rocq", "(h : #|A| = m) : m = k", "[O!forall,0[U!eq,0[#,0[V!A]],1[V!m]],1[U!eq,0[V!m],1[V!k]]]"),
        ("Rocq", "`|x - y| <= `|x|", "[O!leq,0[F!abs,0[O!minus,0[V!x],1[V!y]]],1[F!abs,0[V!x]]]"),
        ("Rocq", "x `|` y", "[U!union,0[V!x],1[V!y]]"),
        ("Rocq", "x ≡ₚ y -> P", "[F!→,0[≡ₚ,0[V!x],1[V!y]],1[V!P]]"),
        ("Rocq", "root p x.[i] = p.[x]", "[U!eq,0[root,0[V!p],1[.&lsqb;,0[V!x],1[V!i]]],1[.&lsqb;,0[V!p],1[V!x]]]"),
        ("Rocq", "(f : g `]a, b[) : x \\in `[a, +oo[",
         "[O!forall,0[V!g,0[M!D-`&rsqb;&lsqb;,0[V!a],1[V!b]]],1[O!in,0[V!x],1[M!D-`&lsqb;&lsqb;,0[V!a],1[+oo]]]]"),
        ("Rocq", "x \\in `]-oo, b] -> P", "[F!→,0[O!in,0[V!x],1[M!D-`&rsqb;&lsqb;,0[-oo],1[V!b]]],1[V!P]]"),
        ("Rocq", r"\sum_(i < n) F i = 0", "[U!eq,0[O!sum,0[O!lt,0[V!i],1[V!n]],1[V!F,0[V!i]]],1[N!0]]"),
        ("Rocq", "(H : ∏ (x : A), P (x ,, y)) (e : a = b) : Q",
         "[O!forall,0[O!forall,0[V!A],1[V!P,0[M!V-2,0[V!x],1[V!y]]]],1[U!eq,0[V!a],1[V!b]],2[V!Q]]"),
        ("Rocq", "∑ f g : T, P f", "[O!exists,0[V!T],1[V!P,0[V!f]]]"),
        ("Rocq", "{f : forall a, P a & {b : B | Q b}}",
         "[O!exists,0[O!forall,0[V!P,0[V!a]]],1[O!exists,0[V!B],1[V!Q,0[V!b]]]]"),
        ("Rocq", "(h : f (a, b), c) : Q", "[O!forall,0[V!f,0[M!V-2,0[V!a],1[V!b]]],1[V!c],2[V!Q]]"),
        ("Rocq", "{i:⟦m⟧} : φ₁ = i%stn", "[O!forall,0[M!D-⟦⟧,0[V!m]],1[U!eq,0[V!φ₁],1[V!i]]]"),
        ("Rocq", "match l with S n => f n | O => y end = z",
         "[U!eq,0[match,0[V!l],1[V!S,0[V!n]],2[V!f,0[V!n]],3[V!O],4[V!y]],1[V!z]]"),
        ("Rocq", "b.(field) = field b", "[U!eq,0[field,0[V!b]],1[field,0[V!b]]]"),
        ("Rocq", "m !! i = n ∪ m !! i", "[U!eq,0[lookup,0[V!m],1[V!i]],1[U!union,0[V!n],1[lookup,0[V!m],1[V!i]]]]"),
        ("Rocq", "{homo f : aa bb / aa <= bb}", "[M!S-1,0[homo,0[V!f],1[O!leq,0[V!aa],1[V!bb]]]]"),
        ("Rocq", "#|G : H| = 2", "[U!eq,0[#,0[F!:,0[V!G],1[V!H]]],1[N!2]]"),
        ("Rocq", "\\forall aa \\near F, P aa", "[∀ᶠ,0[\\near,0[V!aa],1[V!F]],1[V!P,0[V!aa]]]"),
        ("Rocq", "f @^-1` A = f @` B", "[U!eq,0[⁻¹',0[V!f],1[V!A]],1['',0[V!f],1[V!B]]]"),
        ("Rocq", "exists! x, f o g = x", "[∃!,0[U!eq,0[O!compose,0[V!f],1[V!g]],1[V!x]]]"),
        ("Rocq", "let x := a in x = b", "[let,0[V!a],1[U!eq,0[V!x],1[V!b]]]"),
        ("HOL", "let x = a in x = b", "[let,0[V!a],1[U!eq,0[V!x],1[V!b]]]"),
        ("HOL", "!(qq,s). f qq = s", "[O!forall,0[U!eq,0[V!f,0[V!qq]],1[V!s]]]"),
        ("HOL", "let aa,b = c in aa = b", "[let,0[V!c],1[U!eq,0[V!aa],1[V!b]]]"),
        ("HOL", "?x. f x = &0", "[O!exists,0[U!eq,0[V!f,0[V!x]],1[N!0]]]"),
        ("Metamath", "|- A e. B & |- ph => |- F : A --> B",
         "[=>,0[&,0[O!in,0[V!A],1[V!B]],1[V!ph]],1[-->,0[V!F],1[V!A],2[V!B]]]"),
        ("Metamath", "|- { x | ph } = <. A , 1 >.",
         "[U!eq,0[O!conditional-set,0[V!x],1[V!ph]],1[M!V-2,0[V!A],1[N!1]]]"),
    ],
)  # fmt: skip
def test_notations_are_read(language: str, text: str, tree: str) -> None:
    """Of each language some that the others do not have."""
    assert written(text, language) == tree


@pytest.mark.parametrize("language", READ)
def test_any_text_has_a_tree(language: str) -> None:
    """Unclosed brackets, signs alone, prose and nothing at all."""
    signs = "( ) [ ] { } | ‖ : := , . -> → /\\ ! ? ∀ \\ \\sum_ _ % # @ ` <. >. if then x 1 f.g .h ∈ A. { ∑ where"
    signs = [*signs.split(), "&", "=>", "∏", "let"]
    signs += "[/\\ [|| 'N ^' `_ .( .[ %[ #|` `I_n `|` {homo \\forall \\max *%R end $ continuous_on .. ![".split()
    bodies = ["match", "with", "|", "=>", ";", ")", "end", "x", ","]
    drawn = random.Random(0)
    texts = ["", " ", "Let x be a set.", "((((", "))))", "∀", "|- ", "theorem", "!", "\\big[", *signs]
    texts += [" ".join(drawn.choices(signs, k=drawn.randint(2, 12))) for _ in range(300)]
    inner = [":", "&", "|", "=>", ",", "x", "forall", "("]
    texts += [f"{{ x : {' '.join(drawn.choices(inner, k=drawn.randint(1, 8)))} }} -> y" for _ in range(300)]
    texts += [f"match x {' '.join(drawn.choices(bodies, k=drawn.randint(1, 8)))}" for _ in range(300)]
    for text in texts:
        tree = read_source(text, language)
        assert len(tree) and tree.parents[0] == -1 and all(0 <= up < at for at, up in enumerate(tree.parents) if at), (
            text
        )
    for depth in (100, 5_000):
        assert "V!x" in read_source("( " * depth + "x" + " )" * depth, language).labels


STATEMENTS = {
    "Lean": ("theorem {x y : ℝ} : x + y = y + x", "theorem (s : Set ℕ) : s ∩ s = s", "lemma (h : 0 < n) : n ≠ 0"),
    "Rocq": ("m n : m + n = n + m", "A : A :&: A = A", "n : 0 < n -> n != 0"),
    "HOL": ("|- !m n. m + n = n + m", "|- !s. s INTER s = s", "|- !n. 0 < n ==> ~(n = 0)"),
    "Metamath": ("|- ( A + B ) = ( B + A )", "|- ( A i^i A ) = A", "|- ( 0 < A -> A =/= 0 )"),
}


@pytest.fixture
def make_collection(make_folder: Callable[..., Path]) -> Callable[..., Path]:
    def make(texts: tuple[str, ...], queries: tuple[str, ...], language: str = "") -> Path:
        documents = [{"_id": f"d{n}", "title": "", "text": text} for n, text in enumerate(texts, 1)]
        asked = [{"_id": f"q{n}", "text": text} for n, text in enumerate(queries, 1)]
        qrels = "".join(f"q{n}\td{n}\t1\n" for n in range(1, len(queries) + 1))
        return make_folder(documents, asked, qrels, card=f'name = "tiny"\nlanguage = "{language}"\n')

    return make


@pytest.mark.parametrize("language", READ)
def test_structure_search_ranks_a_renamed_statement_first(make_collection: Callable[..., Path], language: str) -> None:
    """Each query is the statement of its document with other names of variables."""
    texts = STATEMENTS[language]
    table = str.maketrans({"m": "a", "A": "C", "n": "k", "s": "t", "B": "D"})
    queries = tuple(text if "theorem" in text or "lemma" in text else text.translate(table) for text in texts)
    if language in ("Lean", "HOL"):
        queries = tuple(text.replace("n", "k") if "∩" not in text and "INTER" not in text else text for text in texts)
        queries = tuple(text.replace("theorek", "theorem") for text in queries)
    run = lab.system("structure").search(load_folder(make_collection(texts, queries, language)), depth=3)
    best = run[run["rank"] == 1]
    assert best.doc_id.str[1:].tolist() == best.query_id.str[1:].tolist() and len(best) == 3
    assert "note" not in run.attrs and run.attrs["weights"]["subexpression"] == 2.0


def test_prose_finds_statements_by_what_it_quotes(make_collection: Callable[..., Path]) -> None:
    """A formula in LaTeX, code, and prose alone, which finds nothing and is counted."""
    queries = ("Sums commute: $a + b = b + a$.", "The set `t ∩ t` is `t`.", "Positive numbers are not zero.")
    run = lab.system("structure").search(load_folder(make_collection(STATEMENTS["Lean"], queries, "")), depth=3)
    assert run[run["rank"] == 1].doc_id.tolist() == ["d1", "d2"]
    assert run.attrs["no_formula"] == {"queries": [1, 3], "documents": [0, 3]}
    assert statement_sources(queries[2], "Lean", is_statement=False) == []


def test_statements_find_prose(make_collection: Callable[..., Path]) -> None:
    """The documents' formulas are read where only the queries are in the language."""
    texts = ("Sums commute: $a + b = b + a$.", "The set `t ∩ t` is `t`.", "A ring.")
    run = lab.system("structure").search(load_folder(make_collection(texts, STATEMENTS["Lean"][:2], "")), depth=1)
    assert run.doc_id.tolist() == ["d1", "d2"]


def test_of_a_title_only_the_parts_are_read(make_folder: Callable[..., Path]) -> None:
    """It is the name of a declaration, so it is no part of what that states, but says what that is about."""
    documents = [
        {"_id": "a", "title": "mem_prodC", "text": "x y : x = y"},
        {"_id": "b", "title": "b", "text": "ring R"},
    ]
    folder = make_folder(documents, [{"_id": "q", "text": "x y : x = y"}, {"_id": "r", "text": "prodM 1"}],
                         "q\ta\t1\nr\ta\t1\n", card='name = "tiny"\nlanguage = "Rocq"\n')  # fmt: skip
    collection = load_folder(folder)
    run = lab.system("structure").search(collection, depth=5)
    assert run[["query_id", "doc_id"]].to_numpy().tolist() == [["q", "a"], ["r", "a"]]
    source = FormulaSource.of(collection)
    assert source.documents(collection).formulas == ["x y : x = y", "ring R"]
    assert source.documents(collection, named=True).formulas == ["x y : x = y", "\0mem prod", "ring R", "\0ring"]
    assert source.query("prodM 1") == ["prodM 1"] and source.query("prodM 1", named=True) == ["prodM 1", "\0prod"]


def test_names_are_read_by_their_parts(make_collection: Callable[..., Path]) -> None:
    """In code, too, but not in Metamath, whose names have no words, and not in formulas in LaTeX."""
    assert name_parts("theorem Nat.dvd_mulLeft x1 : f (isOpen') Nat") == ["\0nat dvd mul left is open"]
    assert name_parts("x + y = 2") == [] and read_source("\0sum comm", "Lean").labels == ["?names", "T!sum", "T!comm"]
    prose = load_folder(make_collection(STATEMENTS["Lean"], ("With $\\sin x$ see `Set.inter_self`.", "None."), ""))
    assert FormulaSource.of(prose).query(prose.query_texts[0], named=True) == [
        "$\\sin x$", "Set.inter_self", "\0set inter self see"]  # fmt: skip
    assert FormulaSource.of(prose).query("The sets that are $x$.", named=True) == ["$x$", "\0set"]
    assert FormulaSource.of(prose).query("None.", named=True) == ["\0none"]
    assert FormulaSource.of(prose).query("It is.", named=True) == []
    sets = load_folder(make_collection(STATEMENTS["Metamath"], ("|- ( Top + A ) = A",), "Metamath"))
    assert FormulaSource.of(sets).query("|- ( Top + A ) = A", named=True) == ["|- ( Top + A ) = A"]


def test_words_of_prose_ask_for_parts_of_names(make_collection: Callable[..., Path]) -> None:
    """Also where they are inflected, in either direction; words that most texts have do not."""
    names = (
        "theorem Nat.even_add_self (n : ℕ) : n + n = n + n",
        "theorem Set.inter_comm (s t : Set α) : s ∩ t = t ∩ s",
    )
    prose = ("The intersections of sets.", "Evenness of additions with itself.")
    for documents, queries, found in ((names, prose, ["d2", "d1"]), (prose, names, ["d2", "d1"])):
        collection = load_folder(make_collection(documents, queries, ""))
        assert FormulaSource.of(collection).has_prose
        run = lab.system("structure").search(collection, depth=1)
        assert run.sort_values("query_id").doc_id.tolist() == found
    both = FormulaSource.of(load_folder(make_collection(names, names, "")))
    assert not both.has_prose
    assert both.query("It is the `n` of the sums that commute.", named=True) == ["n", "\0sums commute"]


def test_prose_with_code_is_no_statement() -> None:
    """Signs of Lean in what it quotes do not make it one; signs between its words do."""
    text = "The rank `M.eRk X` is the `ℕ∞`-valued cardinality of each basis."
    assert is_quoting(text) and not is_quoting("theorem T (s : Set ℕ) : s ∩ `x` = s")
    assert statement_sources(text, "Lean", is_statement=False) == ["M.eRk X", "ℕ∞"]


def test_sets_of_numbers_and_arrows_are_those_of_statements() -> None:
    for latex, lean in ((r"\mathbb{Z}", "ℤ"), (r"p \iff q", "p ↔ q"), (r"p \implies q", "p → q")):
        assert read_source(f"${latex}$", "Lean").labels == read_source(lean, "Lean").labels


def test_numbered_variables_are_those_of_statements() -> None:
    """A subscript that is a number belongs to the name; another one does not, nor the index of a set of numbers."""
    assert read_source("$E_2 + x_{12}$", "Lean") == read_source("E₂ + x₁₂", "Lean")
    assert read_source("$x_1^2 = y$", "Lean") == read_source("x₁ ^ 2 = y", "Lean")
    for latex in ("x_i", "x_{1,2}", r"\mathbb{Z}_2", "2_1"):
        assert "O!SUB" in read_source(f"${latex}$", "Lean").labels
    assert "O!SUB" in read_source("$x_1$", "Metamath").labels


def test_numbers_are_parts_of_names() -> None:
    """Statements are cited by number; a digit alone, as behind a variable, says too little."""
    assert name_parts("theorem Equation1648_not_implies_Equation206 (x1 : G)") == [
        "\0equation 1648 not implies equation 206"
    ]
    assert name_parts("Equation 1648 and 2", stem=True) == ["\0equat 1648 and"]


def test_a_stored_index_of_statements_is_found_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not that of the same texts read as LaTeX, nor that of other code."""
    monkeypatch.setattr(index, "_WORTH_STORING", 2)
    texts = ["x + y = y + x", "x ∈ s"]
    built = index.stored_index(texts, "Lean")
    assert built.folder is not None and index.stored_index(texts, "Lean").folder == built.folder
    query = [read_source("a + b = b + a", "Lean")]
    assert index.stored_index(texts, "Lean").search(query, 1)[2].tolist() == pytest.approx(
        Index.build([(text, read_source(text, "Lean")) for text in texts]).search(query, 1)[2].tolist()
    )
    assert index.stored_index(texts).folder != built.folder
    monkeypatch.setattr(index, "FORMAL_VERSION", "0")
    assert index.stored_index(texts, "Lean").folder != built.folder


@pytest.mark.parametrize("blank", ["\n\n", "\n  \n", "\n\n\n"])
def test_every_goal_of_a_proof_state_is_read(blank: str) -> None:
    """Each has its own hypotheses; a state of one goal stays what it was."""
    first, second = "case inl\nx : ℕ\n⊢ x ≤ 1", "case inr\nx : ℕ\nh : x = 1\n⊢ x ≤ 2"
    one, other = (write_tangent(read_term(goal, "Lean")) for goal in (first, second))
    assert one == write_tangent(read_term("theorem t (x : ℕ) : x ≤ 1", "Lean"))
    tree = check_tree(read_term(f"{first}{blank}{second}", "Lean"))
    assert write_tangent(tree) == f"[U!and,0{one},1{other}]"
    assert read_term(f"x : ℕ{blank}⊢ x ≤ 1\n\n", "Lean") == read_term(first, "Lean")


def test_prose_is_prose_where_the_queries_are_statements() -> None:
    """By what it quotes, unless it is in the language; code in a collection has signs that look like quotes."""
    source = FormulaSource.of(lab.load("mini-lean"))
    assert source.of_queries.language == "Lean"
    assert source.query("the sum $a + b$ is $b + a$") == ["$a + b$", "$b + a$"]
    assert source.query("what does `Finset.card s` count") == ["Finset.card s"]
    for statement in ("theorem t : f $ g $ x = 1", "f $ g $ x", "a + b = b + a"):
        assert source.query(statement) == [statement]
    assert source.query("see `f` of $x$", title="") == ["see `f` of $x$"]  # a document
    rocq, metamath = (FormulaSource(*[FormulaReader(False, name)] * 2, name) for name in ("Rocq", "Metamath"))
    for statement in ("`|x| <= `|y|", "n `div` m = k", "forall x : R, `|x| = `|- x|"):
        assert rocq.query(statement) == [statement]
    assert metamath.query("( F ` x ) = ( G ` x )") == ["( F ` x ) = ( G ` x )"]
    hol = FormulaSource(*[FormulaReader(False, "HOL")] * 2, "HOL")
    assert hol.query("|- !x. x$1 = y$1") == ["|- !x. x$1 = y$1"]


def test_every_modifier_of_lean_is_passed_over() -> None:
    """They may stand before any declaration, in several lists of which one is made."""
    for modifiers in ("public", "meta", "public meta", "@[simp] public noncomputable"):
        assert read_term(f"{modifiers} theorem t (x : ℕ) : x = 1", "Lean") == read_term(
            "theorem t (x : ℕ) : x = 1", "Lean"
        )
        declared = modifiers.removeprefix("@[simp] ") + " theorem t : x"
        assert lean_source.WORD.match(declared) and lean_source._IS_THEOREM.match(declared)
        assert collection_report._DECLARED.match(f"{modifiers} theorem t : x")[1] == "t"
