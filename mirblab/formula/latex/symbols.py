"""symbols: which label each LaTeX command and character has in a tree."""

from __future__ import annotations

import contextlib
import re
import string
import unicodedata
from functools import lru_cache

# Bare labels: operators, relations, arrows and punctuation. Each line: the character, then its commands.
_BARE = r"""
≤ le leq leqslant leqq eqslantless|≥ ge geq geqslant geqq eqslantgtr|≠ ne neq|≡ equiv|∼ sim thicksim|≃ simeq
≈ approx thickapprox|≅ cong|∝ propto varpropto|≪ ll|≫ gg|⋘ lll|⋙ ggg|≺ prec|≻ succ|⪯ preceq preccurlyeq
⪰ succeq succcurlyeq|≍ asymp|≐ doteq|≑ doteqdot Doteq|≜ triangleq|≔ coloneqq|≕ eqqcolon|≲ lesssim|≳ gtrsim
≶ lessgtr|≷ gtrless|⋖ lessdot|⋗ gtrdot|≮ nless|≯ ngtr|≰ nleq nleqslant|≱ ngeq ngeqslant|≁ nsim|≇ ncong
∈ in isin|∉ notin|∋ ni owns|⊂ subset|⊃ supset|⊆ subseteq subseteqq|⊇ supseteq supseteqq
⊊ subsetneq subsetneqq varsubsetneq
⊋ supsetneq supsetneqq|⊈ nsubseteq|⊉ nsupseteq|⊏ sqsubset|⊐ sqsupset|⊑ sqsubseteq|⊒ sqsupseteq|⋐ Subset|⋑ Supset
∣ mid divides shortmid|∤ nmid nshortmid|∥ parallel shortparallel|∦ nparallel|⊥ perp bot|⊤ top|⊢ vdash|⊣ dashv
⊨ models vDash|⊩ Vdash|⊬ nvdash|⊭ nvDash
→ to rightarrow|← gets leftarrow|↔ leftrightarrow|⟶ longrightarrow|⟵ longleftarrow|⟷ longleftrightarrow
⇒ Rightarrow|⇐ Leftarrow|⇔ Leftrightarrow iff|⟹ implies Longrightarrow|⟸ impliedby Longleftarrow
⟺ Longleftrightarrow
↦ mapsto|⟼ longmapsto|↪ hookrightarrow|↩ hookleftarrow|↠ twoheadrightarrow|↞ twoheadleftarrow|↣ rightarrowtail
↑ uparrow|↓ downarrow|↕ updownarrow|⇑ Uparrow|⇓ Downarrow|⇕ Updownarrow|↗ nearrow|↘ searrow|↙ swarrow|↖ nwarrow
⇝ leadsto rightsquigarrow|⇌ rightleftharpoons|⇋ leftrightharpoons|⇀ rightharpoonup|⇁ rightharpoondown
↼ leftharpoonup|↽ leftharpoondown
⇄ rightleftarrows|⇆ leftrightarrows|⇉ rightrightarrows|↛ nrightarrow|⇏ nRightarrow|⇎ nLeftrightarrow
↾ restriction upharpoonright|⊸ multimap|↺ circlearrowleft|↻ circlearrowright
⋅ cdot|× times|÷ div|± pm|∓ mp|∗ ast|⋆ star|∘ circ|∙ bullet|∩ cap|∪ cup|⊎ uplus|⊓ sqcap|⊔ sqcup|∧ wedge land
∨ vee lor
⊕ oplus|⊖ ominus|⊗ otimes|⊘ oslash|⊙ odot|⊞ boxplus|⊠ boxtimes|⊡ boxdot|⋉ ltimes|⋊ rtimes|⋈ bowtie Join|∔ dotplus
⊻ veebar|⊼ barwedge
∖ setminus smallsetminus|≀ wr|⨿ amalg|† dagger|‡ ddagger|⋄ diamond|◁ triangleleft lhd vartriangleleft
▷ triangleright rhd vartriangleright
⊴ trianglelefteq unlhd|⊵ trianglerighteq unrhd|△ bigtriangleup|▽ bigtriangledown|◯ bigcirc|⋔ pitchfork
⌢ frown smallfrown|⌣ smile smallsmile
∂ partial|∇ nabla|∀ forall|∃ exists exist|∄ nexists|∴ therefore|∵ because|√ surd|/ slash|\ backslash
∑ sum|∏ prod|∐ coprod|⋂ bigcap|⋃ bigcup|⨆ bigsqcup
⋁ bigvee|⋀ bigwedge
⨁ bigoplus|⨂ bigotimes|⨀ bigodot|⨄ biguplus|: colon|⟨ langle|⟩ rangle|⌊ lfloor|⌋ rfloor|⌈ lceil|⌉ rceil
⟦ llbracket|⟧ rrbracket|⌜ ulcorner|⌝ urcorner|⌞ llcorner|⌟ lrcorner|⟮ lgroup|⟯ rgroup
lim lim|sup sup|inf inf|det det|mod mod bmod|dim dim|> gt|< lt|; semicolon
"""
# V! labels: Greek and other letters, and symbols that denote an object.
_THINGS = r"""
α alpha|β beta|γ gamma|δ delta|ϵ epsilon|ε varepsilon|ζ zeta|η eta|θ theta|ϑ vartheta thetasym|ι iota|κ kappa
ϰ varkappa|λ lambda
μ mu|ν nu|ξ xi|ο omicron|π pi|ϖ varpi|ρ rho|ϱ varrho|σ sigma|ς varsigma|τ tau|υ upsilon|ϕ phi|φ varphi|χ chi|ψ psi
ω omega
Γ Gamma varGamma|Δ Delta varDelta|Θ Theta varTheta|Λ Lambda varLambda|Ξ Xi varXi|Π Pi varPi|Σ Sigma varSigma
Υ Upsilon varUpsilon
Φ Phi varPhi|Ψ Psi varPsi|Ω Omega varOmega|Α Alpha|Β Beta|Ε Epsilon|Ζ Zeta|Η Eta|Ι Iota|Κ Kappa|Μ Mu|Ν Nu|Ο Omicron
Ρ Rho|Τ Tau|Χ Chi|ϝ digamma
∞ infty infin|… ldots dots dotsc dotso textellipsis mathellipsis|⋯ cdots dotsb dotsm dotsi|⋮ vdots|⋱ ddots|⋰ iddots
∅ emptyset varnothing empty|¬ neg lnot
∠ angle|∡ measuredangle|ℓ ell|ℏ hbar hslash|ℜ Re|ℑ Im|℘ wp weierp|ℵ aleph alef alefsym|ℶ beth|ℷ gimel|ı imath
ȷ jmath|ð eth|∁ complement
△ triangle vartriangle|▲ blacktriangle|□ Box square|■ blacksquare qedsymbol qed|◊ Diamond lozenge|⧫ blacklozenge
♢ diamondsuit|♣ clubsuit|♡ heartsuit|♠ spadesuit
♮ natural|♯ sharp|♭ flat|★ bigstar|✓ checkmark|° degree|℧ mho|§ S|¶ P|© copyright|£ pounds|ø o|Ø O|å aa|æ ae
Æ AE|œ oe|Œ OE|ß ss|ł l|Ł L
ℂ Complex cnums Complexes|ℝ R Reals reals real|ℕ N naturals natnums|ℤ Z integers|ℚ Q rationals
ℝ RR|ℂ CC|ℕ NN|ℤ ZZ|ℚ QQ|𝔽 FF|ℙ PP|𝔸 AA|ϵ eps|d dd
"""
# Names set upright; those of limits (lim, sup, det ...) are operators, above.
_NAMES = """
sin cos tan cot sec csc sinh cosh tanh coth sech csch arcsin arccos arctan arccot arcsec arccsc arcsinh arccosh arctanh
log ln lg exp gcd lcm max min argmax argmin deg ker hom arg Pr injlim projlim colim varinjlim varprojlim sgn
Hom Ext Tor End Aut Gal Spec Proj Ker Coker coker im id tr Tr rank rk span diag Res Mor
Ob Sh Sch supp ord vol curl grad
sign sn cn dn
"""
# Names that take their scripts above and below, as all operators do.
BIG = frozenset(f"V!{name}" for name in ("max", "min", "argmax", "argmin", "colim", "injlim", "projlim"))
INTEGRALS = {r"\int": "∫", r"\intop": "∫", r"\smallint": "∫", r"\iint": "∬", r"\iiint": "∭", r"\iiiint": "⨌"} | {
    **{r"\oint": "∮", r"\oiint": "∯"},
    **{sign: sign for sign in "∫∬∭⨌∮∯"},
}
# The fences that Tangent matches; angle brackets, floors and ceilings are plain symbols to it.
OPENERS = {"(": "(", "[": "[", r"\{": "{", r"\lbrace": "{", r"\lbrack": "[", r"\lvert": "|", r"\lVert": "∥"}
CLOSERS = {")": ")", "]": "]", r"\}": "}", r"\rbrace": "}", r"\rbrack": "]", r"\rvert": "|", r"\rVert": "∥"}
BARS = {"|": "|", r"\vert": "|", r"\|": "∥", r"\Vert": "∥", "||": "∥", "∥": "∥", "‖": "∥"}
CLOSING = frozenset(")]}|∥")  # unlike other operators they have their scripts behind, not above and below
FONT_COMMANDS = {
    rf"\{name}": font
    for font, names in {
        "bf": "mathbf bf bm boldsymbol pmb mathbold boldmath bold symbf vb mathbfit",
        "bb": "mathbb Bbb mathds mathbbm bbm symbb",
        "cal": "mathcal cal mathscr scr EuScript mathpzc symcal mathbfcal",
        "frak": "mathfrak frak goth symfrak",
        "sf": "mathsf sf textsf",
        "tt": "mathtt tt",
        "rm": "mathrm rm mathup symup rmfamily roman upright operatorname operatorname* opname",
        "it": "mathit it mathnormal mit symit em sl",
    }.items()
    for name in names.split()
}
# Unicode's words for the letters of a font; other fonts, such as italics, are plain letters.
_STYLES = {
    "bf": "BOLD",
    "bb": "DOUBLE-STRUCK",
    "cal": "SCRIPT",
    "frak": "FRAKTUR",
    "sf": "SANS-SERIF",
    "tt": "MONOSPACE",
}
_LETTER_NAME = re.compile("(?:(?:LATIN|GREEK) (CAPITAL|SMALL) LETTER|(DIGIT)) (.+)")
MERGING = frozenset({"bf", "sf", "tt", "rm", "it"})  # adjacent letters of these fonts are one name


def _table(rows: str, prefix: str) -> dict[str, str]:
    """Return command -> label of rows of "character command command", separated by bars and line ends."""
    entries = [entry.split() for line in rows.strip().splitlines() for entry in line.split("|")]
    return {"\\" + command: prefix + label for label, *commands in entries for command in commands}


def styled_character(character: str, style: str) -> str:
    """Return a letter or digit in one of Unicode's styles, such as "BOLD SCRIPT", or unchanged where it has none."""
    match = _LETTER_NAME.fullmatch(unicodedata.name(character, ""))
    if match is None:
        return character
    letter = f"{match[1] or match[2]} {match[3]}"
    older = style.replace("FRAKTUR", "BLACK-LETTER")
    for full in (f"MATHEMATICAL {style} {letter}", f"{older} {letter}"):
        with contextlib.suppress(KeyError):
            return unicodedata.lookup(full)
    return character


def _letters(font: str) -> dict[str, str]:
    style = _STYLES.get(font, "")
    found = {letter: styled_character(letter, style) if style else letter for letter in string.ascii_letters}
    digits = {digit: styled_character(digit, style) for digit in string.digits} if style else {}
    return {letter: f"V!{styled}" for letter, styled in found.items()} | {
        digit: f"N!{styled}" for digit, styled in digits.items() if styled != digit
    }


COMMANDS = (
    _table(_BARE, "")
    | _table(_THINGS, "V!")
    | {"\\" + name: "V!" + name for name in _NAMES.split()}
    | {rf"\{name}": "lim sup" for name in ("limsup", "varlimsup")}
    | {rf"\{name}": "lim inf" for name in ("liminf", "varliminf")}
    | {r"\%": "%", r"\&": "V!&", r"\#": "V!#", r"\$": "V!$", r"\_": "V!_", "...": "V!…"}
)
_CHARACTERS = (
    {char: char for char in "+-*/=<>,;:.!"} | {char: "V!" + char for char in '?@#"`'} | {":=": ":=", "!!": "!!"}
)
# Tokens that are one node wherever they occur, with their labels; longer numbers are added when they occur.
PLAIN = COMMANDS | _CHARACTERS | _letters("it") | {str(digit): f"N!{digit}" for digit in range(10)}
# The same inside a font command. Letters of the fonts that merge are left out, because they need a look at what
# stands before them.
STYLED = {
    font: {
        token: label for token, label in PLAIN.items() if not (font in MERGING and len(token) == 1 and token.isalpha())
    }
    | ({} if font in MERGING else _letters(font))
    for font in FONT_COMMANDS.values()
}
LETTERS = {font: _letters(font) for font in MERGING}
_KNOWN = {label[-1]: label for label in COMMANDS.values() if len(label) in (1, 3)}
# Each line: the character of a label, then others for the same sign, as authors type them and as LaTeXML, MathJax and
# others write them in MathML. The last lines have accents.
_OTHERS = """
≤ ⩽ ≦ ⪕|≥ ⩾ ≧ ⪖|⪯ ≼|⪰ ≽|⊆ ⫅|⊇ ⫆|⊊ ⫋ ⊊︀ ⫋︀|⊋ ⫌ ⊋︀ ⫌︀|⊥ ⟂|⊨ ⊧|◁ ⊲|▷ ⊳|≑ ⩷|≔ ⩴|∥ ‖
- − –|⋅ · ‧|∙ •|/ ∕ ⁄|∖ ⧵|⟨ 〈 〈|⟩ 〉 〉|◊ ◇|□ ◻|ℏ ħ|Ω \u2126|μ \u00b5
¯ ˉ ‾ ― \u0304 \u0305|→ \u20d7|← \u20d6|↔ \u20e1|^ ˆ \u0302|~ ˜ \u0303|˙ \u0307|¨ \u0308|ˇ \u030c|˘ \u0306|´ \u0301
` \u0300|˚ \u030a
"""
_ROWS = [entry.split() for line in _OTHERS.strip().splitlines() for entry in line.split("|")]
EQUIVALENT = {other: own for own, *others in _ROWS for other in others}
NEGATED = dict(zip("=∈<>≤≥⊂⊃⊆⊇∃≡∼≃≅≈∋∣∥→⇒⇔⊢⊨|", "≠∉≮≯≰≱⊄⊅⊈⊉∄≢≁≄≇≉∌∤∦↛⇏⇎⊬⊭∤", strict=True))


def negated_label(label: str) -> str:
    r"""Return the label of `\not` and the sign of a *label*; one that has no own character has ¬ before it.

    >>> negated_label("∈"), negated_label("≺"), negated_label("V!p")
    ('∉', '¬≺', 'V!¬p')
    """
    sign = f"{label[:2]}¬{label[2:]}" if label[1:2] == "!" else f"¬{label}"
    return NEGATED.get(label, sign)


@lru_cache(maxsize=4096)
def character_label(char: str) -> str:
    """Return the label of a character that no table lists: a variable, a number, or an operator, bare.

    >>> character_label("⩽"), character_label("Ω"), character_label("†")
    ('≤', 'V!Ω', '†')
    """
    char = EQUIVALENT.get(char, char)
    if char in _KNOWN:
        return _KNOWN[char]
    category = unicodedata.category(char)
    if category == "Nd":
        return "N!" + char
    return char if category in ("Sm", "Po", "Ps", "Pe", "Pd") else "V!" + char
