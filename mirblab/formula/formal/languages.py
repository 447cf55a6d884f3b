"""languages: the signs of Lean, Rocq and HOL: how they are spelled, and how tightly they bind."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from mirblab.formula.formal.signs import parse_spellings
from mirblab.sources.shared.lean_source import MODIFIERS

# How tightly signs bind, as Lean and Mathlib declare it; the other languages have the same order.
DEFINED, PIPED, ASCRIBED, EQUIVALENT, IMPLIED, OR, AND, NOT, RELATED = 2, 4, 8, 20, 25, 30, 35, 40, 50
ADDED, MULTIPLIED, SCALED, RAISED, COMPOSED, TIGHTEST = 65, 70, 73, 75, 90, 1000
APPLIED = 51  # f <| x and x |>.f of Lean: looser than applications and operations, but tighter than relations
RIGHT = frozenset("→ ⟶ ∨ ∧ ^ • ≫ ⋙ $ ∘ × :: ++ ↔ :=".split())  # these bind from the right
# By the Unicode sign, and by the first character of signs that are not listed, such as →ₗ[R].
_TIGHTNESS = {
    DEFINED: ":= ≔",
    1: "| // ∂",
    PIPED: "$ & ;",
    ASCRIBED: ":",
    10: "⟶ ⥤ ⟹ ⊣",
    EQUIVALENT: "↔ ⇔",
    IMPLIED: "→ ⇒ ↪ ↠ ≃ ≅ ↦ ⟷ ⊢ ⤳ ⇀ ↝",
    OR: "∨",
    AND: "∧",
    RELATED: "= ≠ < > ≤ ≥ ∈ ∉ ∋ ⊆ ⊂ ⊇ ⊃ ∣ ∤ ≡ ≈ ∼ ~ ≪ ≫ ⊑ ≼ ≺ ⋖ ⩿ ∥ ? in is ⊨ ∝ ▸ ◁ ⊴ ⊲ !",
    ADDED: "+ - ∪ ++ :: ⊕ △ ± − ⊻ ⊎ ∆",
    68: "⊔",
    69: "⊓",
    MULTIPLIED: "* / % ∩ \\ ∖ × ⊗ ⨯ ⧸ ⋊ ⊠ ∗ ⋅ · ∥ .",
    72: "×ℂ",
    SCALED: "• ⬝ @ ⊙ ✶ ⋆",
    RAISED: "^ ∧ˢ",
    80: "'' ⁻¹' |_",
    82: "×ˢ",
    COMPOSED: "∘ ≫ ⋙ ◫ ◁ ▷ ⇑",
}
_BY_SIGN = {sign: tight for tight, signs in _TIGHTNESS.items() for sign in signs.split()}


@dataclass(frozen=True)
class Language:
    """A language: its `token`s, and what its signs do; `spelled` has the Unicode sign of each spelling.

    `head` is what stands before a statement and says nothing of it, such as a keyword and the name of a theorem.
    `tight` says how tightly signs bind where that differs from the other languages. `prefixes` and `binders` say how
    tightly a sign holds what follows it, above `TIGHTEST` one argument only; a binder's variables go up to a sign of
    `ends`. `words`, and what `infix` matches, are operations that are written as words, and `silent` signs say nothing
    that a search needs.
    """

    name: str
    token: re.Pattern[str]
    head: re.Pattern[str] | None = None
    spelled: Mapping[str, str] = field(default_factory=dict)
    tight: Mapping[str, int] = field(default_factory=dict)
    prefixes: Mapping[str, int] = field(default_factory=dict)
    postfixes: frozenset[str] = frozenset()
    fences: Mapping[str, str] = field(default_factory=dict)
    binders: Mapping[str, int] = field(default_factory=dict)
    ends: frozenset[str] = frozenset({","})
    words: frozenset[str] = frozenset()
    silent: frozenset[str] = frozenset()
    infix: re.Pattern[str] = re.compile("(?!)")

    def tightness(self, sign: str) -> int:
        """Return how tightly a sign binds the expressions at its sides; -1 for what is no such sign."""
        if sign in self.tight:
            return self.tight[sign]
        common = self.spelled.get(sign, sign)
        if common in _BY_SIGN:
            return _BY_SIGN[common]
        if sign in self.fences:
            return -1
        if sign in self.words or self.infix.fullmatch(sign):
            return RELATED
        if sign[0] in ":`#" and sign[1:2] not in ("", ">") and not sign[1].isalpha():  # A :^ x, A #<= B of Rocq
            return self.tightness(sign[1:])
        if "%" in sign[1:] and sign[-1].isalpha():  # *%R is the function of an operation
            return -1
        first = sign[0]
        if first.isalnum() or first in "_'\"([{⊥⊤∅∞√":
            return -1
        if first in "\\`" and sign[1:2].isalpha():
            return -1 if first == "`" != sign[-1] else RELATED  # `I_n, and n `div` m
        return _BY_SIGN.get(first, MULTIPLIED)


_FENCES = {pair[0]: pair[1] for pair in "() [] {} ⟨⟩ ⟦⟧ ⌊⌋ ⌈⌉ ⦃⦄ ‖‖ || ⟪⟫ ⟮⟯".split()}
_LAMBDAS = {"fun": DEFINED, "λ": DEFINED}
INTEGRALS = frozenset("∫ ∫⁻ ⨍ ⨍⁻".split())  # a sign ∂ ends what they integrate, and a measure follows it
_BIG = dict.fromkeys("∑ ∏ ∐ ⨁ ⨂ ∑' ∏' ∑ᶠ ∏ᶠ ⋁ ⋀ Σ Π Σ' Π₀ Π₂ ∏ᵉ".split(), MULTIPLIED - 3)
_BIG |= dict.fromkeys(["⨆", "⨅", "⋃", "⋂", "∮", *INTEGRALS], 60)
_QUANTIFIED = dict.fromkeys("∀ ∃ ∃! ∀ᶠ ∃ᶠ ∀ᵐ ∃ᵐ ∄ ε".split(), DEFINED)
_LEAN_WORD = r"[^\W\dλΠΣ∑∏](?:(?![ˣᵀᴴᶜ⁺⁻†])[\w'!?])*"
LEAN = Language(
    name="Lean",
    head=re.compile(
        rf"\s*(?:@\[[^\]]*\]\s*)?(?:(?:{MODIFIERS})\s+)*"
        r"(?:(?:theorem|lemma|def|abbrev|structure|class(?: inductive)?|inductive|axiom|opaque|irreducible_def)"
        r"\s+[^\s:({\[⦃]+"
        r"|(?:instance|example)(?:\s+[^\s:({\[⦃]+)?)"
    ),
    token=re.compile(
        r"(?:Type|Sort|Category)\*|!!?\[|ℝ≥0∞?|[ℕℤ]∞|ℕ\+|//|∃!|[∀∃][ᶠᵐ]|[∑∏Σ][ᶠ']?|[ΠΣ]['₀₂]?|∫⁻?|⁻¹'?|'{2}|\.\.|:=|=>|⁻[¹ᵐ]"
        rf"|«[^»]*»|{_LEAN_WORD}(?:\.(?:{_LEAN_WORD}|\d+))*(?:\.\{{[^{{}}]*\}})?"
        r"|\d+(?:\.\d+)?(?:e-?\d+)?|\.(?:" + _LEAN_WORD + r"|\d+)|λ|✝[⁰¹²³⁴-⁹]*"
        r"|[→≃≅↪≤=+*][A-Za-z+*₀-₉ₐ-ₜᵃ-ᵪ₀ₗ-]*(?=\[)|(?<=\s)[→≃↪][A-Za-z]{1,3}(?=\s)|∘S?L(?=\s)|×ℂ|<\|(?=\s)|(?<=\s)\|(?:>(?=[.\s])|[|_](?=\s))"
        r"|[()\[\]{}⟨⟩⟦⟧⌊⌋⌈⌉⦃⦄⟪⟫‖|,;]|[ˣᵀᴴᶜ⁺†!]|ᵒᵖ"
        r"|[^\w\s()\[\]{}⟨⟩⟦⟧⌊⌋⌈⌉⦃⦄⟪⟫‖|,;∀∃∑∏¬√⇑↑↓∞⊤⊥∅·•ℙ∫⨆⨅⋃⋂⨁⨂]+[ᵃ-ᵡₐ-ₜᵢᵣᵤᵥⱼᶠᵐˢ₀-₉]*|[^\w\s]['ᵃ-ᵡₐ-ₜᵢᵣᵤᵥⱼᶠᵐˢ₀-₉]*"
    ),
    spelled={"-": "-", "||": "∨", "&&": "∧", "!=": "≠", "==": "=", "\\": "∖", "->": "→", "<->": "↔", "#": "card",
             "Category*": "Category"},
    tight={"#": -1, "·": -1, "<|": APPLIED, "|>": APPLIED},
    prefixes={"¬": NOT, "-": SCALED, "√": TIGHTEST, "∂": TIGHTEST, "#": TIGHTEST + 1},
    postfixes=frozenset("⁻¹ ᵀ ᴴ ᶜ ˣ ! † ⁺ ⁻ ᵒᵖ ₊ ⟆".split()),
    fences=_FENCES | {"![": "]", "!![": "]"},
    binders=_QUANTIFIED | _BIG | _LAMBDAS,
    ends=frozenset({",", "↦", "=>"}),
    words=frozenset({"in", "with", "at", "extends", "deriving"}),
    silent=frozenset({"↑", "⇑", "↥", "@"}),
)  # fmt: skip
DIVIDERS = {"[/\\": "&", "[&&": "&", "[\\/": "|", "[||": "|"}  # of Rocq: what stands before the last of several
_ROCQ_WORD = r"[^\W\d_λ]\w*'*"
ROCQ = Language(
    name="Rocq",
    token=re.compile(
        r"`\|(?:`(?!\|))?|`[\[\]]|`[({]|`[A-Za-z]\w*`|`_|`[A-Z](?=_)|`!|[.%]\[|\.\("
        r"|\[(?:[-+*/^=<>#]+|\+X\*)\]|[+-]oo\b|\[(?:/\\|\\/|&&|\|\||~:)|'\[|><\||\^'[+-]?|\^#"
        r"|\\is(?:n't)?(?: an?)?\b|\\[A-Za-z]+'?|%\||\|\||:\|:|:\\:|@(?:\^-1)?[:`]|@\*|<\[|\]>|\\(?=\w)"
        r"|\*m:?(?!\w)|[-+*/:<>=^&|]+%[A-Z]\w*|(?<=\[)(?:f?set|pred)[:~`]|<\|(?:<\|)?|(?<=\s)\|[:`](?=\s)"
        r"|%:~?\w+|(?<=[\w')\]}⟧])%[A-Za-z]\w*|\.[+*]\w+|\.-\d+|(?:\.-[^\W\d]\w*)+|\.\d"
        r"|'[A-Za-z]+\d*(?:\*(?=_))?|#\|`?|=[12i](?!\w)|\^-1|\^[T*](?!\w)|%[%/=]"
        rf"|<<|>>|\[~|∃!|exists!|{_ROCQ_WORD}(?:\.{_ROCQ_WORD})*|\d+|,,|[()\[\]{{}},;]|@(?=[A-Za-z(])|\||_"
        r"|[^\w\s()\[\]{},;|@_%⟦⟧⟨⟩⌊⌋⌈⌉∀∃∏∑¬]+[ᵢ-ᵪ₀-₉ₐ-ₜ]*|\S"
    ),
    spelled=parse_spellings(r"""
→ ->
↔ <->
∧ /\ && &
∨ \/ ||
¬ ~ ~~
= == =1 =2 =i :=: :==: [=]
≠ != <> :!=: [#] ~=
< [<]
≤ <= [<=]
≥ >= [>=]
+ [+]
- [-] [--]
* [*]
/ [/]
∈ \in \is
∉ \notin \isn't
⊆ \subset <: `<=`
⊂ \proper `<`
∪ :|: `|`
∩ :&: `&`
∖ :\: `\`
∆ `+`
ᶜ ~`
'' @: @`
⁻¹' @^-1: @^-1`
|: |`
:\ `\
∘ \o o
∣ %|
^ ^+ [^]
∑ \sum
∏ \prod
∀ forall ∏
∀ᶠ \forall
∃ exists exists2 ∑
∃! exists!
⋃ \bigcup
⋂ \bigcap
∅ set0
× ** `*`
! `!
lookup !!
ℕ nat
ℤ int
ℂ algC
ℚ rat
"""),
    tight=dict.fromkeys("`div` `mod` `quot` `rem` `max` `min` mod ><| \\x \\max \\min".split(), MULTIPLIED)
    | dict.fromkeys("|: |` [+X*]".split(), ADDED) | dict.fromkeys("--> %=".split(), RELATED)
    | dict.fromkeys("~~ \\oo \\bar".split(), -1) | dict.fromkeys(":\\: `\\`".split(), 68)
    | {"o": COMPOSED, "!!": COMPOSED, "!!!": COMPOSED, "&&": 62, "||": 60, "<$>": 60, "==>": 57, "&": PIPED},
    prefixes={"~": NOT} | dict.fromkeys("~~ - ! ~` [--]".split(), SCALED)
    | dict.fromkeys(("\\dim", "\\rank", "\\det", "\\tr"), TIGHTEST),
    postfixes=frozenset("^-1 ^* ^T ^' ^'+ ^'- ^# `!".split()),
    fences=_FENCES | dict.fromkeys(["[~", "[~:", ".[", "%[", "'[", *DIVIDERS], "]") | {".(": ")"}
    | {"#|": "|", "#|`": "|", "<[": "]>", "<<": ">>", "`|": "|", "`[": "[", "`]": "[", "`(": ")", "`{": "}"},
    binders=dict.fromkeys("∀ forall \\forall ∏ ∃ exists exists2 ∃! exists! ∑ fun λ".split(), DEFINED)
    | dict.fromkeys(
        r"\sum \esum \int \max \min \bigcup \bigcap \sup \inf \bigmax \bigmin \join \meet \lcm \gcd \bigA".split(),
        MULTIPLIED - 3)
    | dict.fromkeys(
        r"\prod \big \dprod \cprod \matrix \row \col \mxblock \mxdiag \mxcol \mxrow".split(), MULTIPLIED + 1),
    ends=frozenset({",", "=>"}),
    words=frozenset({"in", "is", "of", "with", "as", "do"}),
    silent=frozenset({"@"}),
)  # fmt: skip
HOL = Language(
    name="HOL",
    head=re.compile(r"\s*(?:\w+\s+)?\|-"),
    token=re.compile(
        r"[?!@]!?(?=\s*[(\w])|\\(?=[(\w])|\?!|[A-Za-z]\w*'*|_\w+|\d+(?:\.\d+)?|[()\[\]{},;`]|\.\.|\.|&(?=\d|\()|--(?=[\w(&])|~"
        r"|/\\|\\/|[^\w\s()\[\]{},;`.~]+"
    ),
    spelled=parse_spellings(r"""
→ ==> ->
↔ <=>
∧ /\
∨ \/
¬ ~
≤ <=
≥ >=
∈ IN
⊆ SUBSET
⊂ PSUBSET
∪ UNION
∩ INTER
∖ DIFF
∘ o
× CROSS
∣ divides
∀ !
∃ ?
∃! ?!
∑ sum nsum
∏ product nproduct
⋃ UNIONS
⋂ INTERS
∅ EMPTY
^ pow EXP
/ DIV
- --
ℕ num
ℤ int
ℝ real
ℂ complex
"""),
    tight={"DIFF": 68, "..": 60, "$": COMPOSED} | dict.fromkeys(("dot", "cross", "hull"), MULTIPLIED),
    prefixes={"~": NOT, "--": SCALED, "&": TIGHTEST},
    fences=_FENCES,
    binders={"!": DEFINED, "?": DEFINED, "?!": DEFINED, "@": DEFINED, "\\": DEFINED, "lambda": DEFINED, "!!": DEFINED},
    ends=frozenset({"."}),
    words=frozenset("IN SUBSET PSUBSET UNION INTER DIFF INSERT DELETE o CROSS divides pow EXP DIV MOD "
                    "HAS_SIZE homeomorphic within".split()),
    silent=frozenset({"&"}),
    infix=re.compile(r"has_\w+|isomorphic_\w+|\w+_o[fn]"),
)  # fmt: skip
