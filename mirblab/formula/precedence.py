"""precedence: what each symbol of a formula's line does there, and the name of its operation."""

from __future__ import annotations

# From loose to tight. `SEPARATOR` to `PRODUCT` cut a line; the others act inside a term.
SEPARATOR, ARROW, RELATION, SUM, PRODUCT = 5, 4, 3, 2, 1
OPERAND, FUNCTION, BIG, INTEGRAL, DIFFERENTIAL, POSTFIX, FENCE = 0, -1, -2, -3, -4, -5, -6

# The names are Tangent's (Content MathML's words, with F! and the symbol where it has none), with one exception: every
# sign of multiplication is U!times, because a reader who writes a dot does not mean another product.
_BY_KIND = {
    SEPARATOR: ", , ; ; . .",
    ARROW: "⇒ O!implies ⟹ O!implies ⇐ F!⇐ ⟸ F!⇐ ⇔ O!iff ⟺ O!iff : F!: ⇕ F!⇕ ⊢ F!⊢ ⊨ F!⊨ ∴ F!∴",
    RELATION: "= U!eq < O!lt > O!gt ≤ O!leq ≥ O!geq ≠ U!neq ≈ U!approx ∼ O!similar-to ≃ F!≃ ≅ F!≅ ≡ U!equivalent "
    "≢ O!not-equivalent-to ∝ F!∝ ∈ O!in ∉ O!notin ∋ F!∋ ⊂ O!subset ⊆ O!subset ⊊ F!⊊ ⊃ F!⊃ ⊇ O!superset-of-or-equals "
    "→ F!→ ← F!← ↔ F!↔ ↦ O!maps-to ⟶ F!→ ⟵ F!← ⟼ O!maps-to ⟷ F!↔ ↪ F!↪ ↠ F!↠ ↣ F!↣ ⇝ F!⇝ ⇀ F!⇀ ≪ F!≪ ≫ F!≫ "
    "≺ F!≺ ≻ F!≻ ⪯ F!⪯ ⪰ F!⪰ ≼ F!≼ ≽ F!≽ ≲ F!≲ ≳ F!≳ ∣ F!∣ | F!∣ ∤ F!∤ ∥ F!∥ ⊥ F!⊥ ⊑ F!⊑ ⊒ F!⊒ ⋈ F!⋈ ≐ F!≐ ≍ F!≍ "
    "◁ F!◁ ⊲ F!◁ ⊴ F!⊴ ⊳ F!⊳ ≔ O!assign := O!assign ↑ F!↑ ↓ F!↓ ≰ F!≰ ≱ F!≱ ≮ F!≮ ≯ F!≯ ⊄ F!⊄ ⊈ F!⊈ ↛ F!↛",
    SUM: "+ U!plus - O!minus − O!minus ± O!plus-or-minus ∓ O!minus-or-plus ∪ U!union ∩ U!intersect ∧ U!and ∨ U!or "
    "mod O!rem V!mod O!rem ⊕ O!direct-sum ∖ O!setdiff ⊖ F!⊖ ⊎ F!⊎ ⊔ F!⊔ ⊓ F!⊓ ⊻ F!⊻ △ F!△ ∸ F!∸",
    PRODUCT: "× U!times ⋅ U!times · U!times * U!times ∗ U!times ∙ U!times / O!divide ÷ O!divide ∘ O!compose "
    "⊗ O!tensor-product ⋆ F!⋆ ⊙ F!⊙ ⋊ F!⋊ ⋉ F!⋉ ⊠ F!⊠ • F!• ⊘ F!⊘ ≀ F!≀ ⨯ U!times ⌢ F!⌢",
    BIG: "∑ O!sum ∏ O!product ∐ O!coproduct ⋃ U!union ⋂ U!intersect ⋁ U!or ⋀ U!and ⨁ O!direct-sum "
    "⨂ O!tensor-product ⨀ F!⨀ ⨄ F!⨄ ⨆ F!⨆ lim O!limit limsup O!limit-supremum liminf O!limit-infimum sup O!supremum "
    "inf O!infimum colim F!colim argmax F!argmax argmin F!argmin injlim F!injlim projlim F!projlim",
    INTEGRAL: "∫ O!int ∬ O!double-integral ∭ O!triple-integral ∮ O!contour-integral ∯ F!∯ ∰ F!∰ ⨌ F!⨌",
    DIFFERENTIAL: "𝑑 F!d ⅆ F!d",
    POSTFIX: "! O!factorial !! O!double-factorial % O!percent",
    FUNCTION: "¬ O!not ∀ O!forall ∃ O!exists ∄ O!not-exists ∂ O!partialdiff ∇ F!∇ ℜ F!real ℑ F!imaginary deg O!degree "
    "dim O!dimension ker O!kernel",
    OPERAND: "∞ C!infinity ∅ C!emptyset ℏ C!hbar … V!… ⋯ V!⋯ ⋮ V!⋮ ⋱ V!⋱",
}
_FUNCTIONS = (
    "sin cos tan cot sec csc sinh cosh tanh coth sech csch arcsin arccos arctan arccot arcsec arccsc arsinh arcosh "
    "artanh arcsinh arccosh arctanh arcoth exp log ln lg lb Log Ln det gcd lcm max min arg hom Pr tr Tr sgn sign erf "
    "rank rk im diag span Re Im Res card curl grad div"
)
_LETTERLIKE = "∀∃∄∂∇∞∅ℏ¬ℜℑ"


def _roles() -> dict[str, tuple[int, str]]:
    """Return what each label does, by label: its kind and its name; names are known with and without V!."""
    found: dict[str, tuple[int, str]] = {}
    for kind, text in _BY_KIND.items():
        words = text.split()
        for label, name in zip(words[::2], words[1::2], strict=True):
            found.setdefault(label, (kind, name))
            if label.isalpha() or label in _LETTERLIKE:
                found.setdefault("V!" + label, (kind, name))
    for name in _FUNCTIONS.split():
        found[name] = found["V!" + name] = (FUNCTION, "F!" + name)
    for label, kind in (("lim sup", "O!limit-supremum"), ("lim inf", "O!limit-infimum")):
        found[label] = found["V!" + label] = (BIG, kind)
    return found


ROLES = _roles()
ACCENTS = frozenset("^ˆ~˜¯‾ˉ˙¨´`ˇ˘→←↔⃗⏞⏟⏜⏝⎴⎵_̲˚⇀↼︷︸") | {"˙˙", "˙˙˙", "...", "¯¯"}

# The operations whose operands may change places: their order says nothing to search.
COMMUTATIVE = frozenset(
    "U!eq U!neq U!plus U!times U!and U!or U!union U!intersect U!approx U!equivalent O!direct-sum "
    "O!similar-to F!≅ F!≃ F!gcd F!lcm F!max F!min O!iff F!↔ F!△ F!⊎ F!⊔ F!⊓ F!⊻".split()
)
