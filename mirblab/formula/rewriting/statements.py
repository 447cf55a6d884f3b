"""statements: sentences reworded, with renamed variables, or made false by rules."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from random import Random
from typing import NamedTuple

from mirblab.data.near_duplicates import fold_text
from mirblab.formula import in_text
from mirblab.formula.latex import parser
from mirblab.sources import hard_negatives
from mirblab.sources.hard_negatives import Change, fit_article

REWORDING_VERSION = 2  # of the rules; part of what identifies a rewording
FALSEHOODS_VERSION = 4  # of the rules
N_NEGATIVES = 3
# A letter becomes another one of its line, so that indices stay indices and maps maps. Not in the lines, because they
# may be a constant, a space of fixed meaning, a differential, an article or a pronoun: C, I, L, O, d, e, i, o, a and A.
_ALPHABETS = ("mnkjlr", "xyzwst", "fghu", "pq", "bcv", "BDEFGHJKMNPQRSTUVWXYZ", "αβγδικστ", "φψχ")
_ALPHABET = {letter: letters for letters in _ALPHABETS for letter in letters}
_AN = frozenset("aefhilmnorsxAEFHILMNORSXαειη")  # letters whose names begin with a vowel
_CODE = re.compile(r"`[^`\n]+`")
_NAME = re.compile(r"(?<![\w'])[^\W\d][\w']*")
_RUN = re.compile(r"(?<![\\A-Za-z])[A-Za-z]{3,}")
_WORDS = re.compile(r"\\(?:text[a-z]*|mbox|hbox|mathrm|operatorname\*?)\s*\{([^{}]*)\}")
_BARE = re.compile(r"(?<![^\s(])[^\W\d_](?=[,.;:!?)]*(?:\s|\Z))")  # a letter by itself in prose
_NO_VARIABLE = re.compile(
    r"(?<![\w])([^\W\d_])(?:[-‑–][a-z]|\.\s+[A-Z])|[a-z][-‑–]([^\W\d_])(?!\w)"
)  # p-adic, E. Noether
_ARTICLE = re.compile(r"(?<!\w)([Aa]n?) [`$]?\Z")
_F = "[`$]"  # a formula or a piece of code begins; what is inside is hidden from the rules
_BEGIN = r"(?:\A|(?<=\. )|(?<=: ))"
_CLAUSE = r"(?:(?!\b(?:then|otherwise|only|unless|else|whenever|respectively)\b|[.;:](?:\s|\Z)|\n).)"
_END = r"(?=\.(?:\s+(?!otherwise|else|conversely)|\Z)|\Z)"
_SIGNS = ("≤≥", "<>", "⊆⊇", "⊂⊃", "∪∩", "∀∃", "⊔⊓", "⊤⊥", "⋃⋂", "⨆⨅", "∧∨")
_OPPOSITE = {pair[side]: pair[1 - side] for pair in _SIGNS for side in (0, 1)}
_FLIP = re.compile(
    r"(?:\A|(?<=\()|(?<=[:=] ))(?P<a>[\w.']+) (?P<sign>∘|≫|⋙|⟶|⥤|→|\\circ|\\to) (?P<b>[\w.']+)(?=\Z|\)|,| =)"
)
_VERB = re.compile(
    r"(?<!\bthis )(?<!\bthat )(?<!\bwhich )(?<!\bit )(?<!\bthere )(?<!\bwhat )(?<!\bwhy )(?<!\bor )(?<=[\w`$)] )"
    r"(?P<verb>is|are)\b"
    r"(?= (?!not\b|no\b|to\b|used\b|useful\b|a version\b|an? auxiliary\b|called\b|defined\b|there\b|it\b|this\b)"
    r"[\w`$])",
    re.IGNORECASE,
)
_EXISTS = re.compile(r"\bthere (?P<verb>exists|exist|is|are)(?= (?:an?|some|[`$]))", re.IGNORECASE)
_HAS = re.compile(r"\bhas (?P<article>an?) (?=\w)", re.IGNORECASE)
# A condition begins; "only if", "even if" and "I wonder if" begin none.
_CONDITION = re.compile(
    r"(?<![\w-])(?<!\bI )(?P<word>(?:(?<!\bonly )|(?<=\band only ))(?<!\bas )(?<!\beven )(?<!\bwhat )(?<!\bwonder )"
    r"(?<!\bwondering )(?<!\bsure )(?<!\bknow )(?<!\bask )(?<!\basking )(?<!\bsee )(?<!\bcheck )(?<!\bdecide )"
    r"(?<!\bdetermine )if\b|assume|suppose|assuming|whenever)\b",
    re.IGNORECASE,
)
# What a condition in front of its conclusion follows; the conclusion then begins at "then" or a comma.
_BEFORE_FRONT = re.compile(
    r"(?:\A|[.?!:;,*)\]\n]|\b(?:that|but|or|then|so|thus|hence|show|prove|because|since|where|(?<!\bif )and))\s*\Z",
    re.I,
)
_CONDITION_END = re.compile(r"(?P<then>,?\s+then\b)|[.;:?!](?=\s|\Z|[A-Z])|\n\s*[\n*]|\Z")
_AND = re.compile(r"(?:\s*,)?\s+and\s+(?:(?:that|if|also)\s+)*(?=(?P<clause>[^,]{3,160}?)\s*(?:,\s|\Z))")
# A condition says something: it has a verb, or it is a formula with a relation.
_STATES = re.compile(
    r"\b(?:is|are|be|has|have|holds?|does|exists?|lies?|contains?|satisf\w+|vanish\w*|commutes?|converges?)\b"
)
_ORDER = r"[<>≤≥≠]|\\(?:leq?|geq?|leqslant|geqslant|lt|gt|neq?|n?mid|equiv)(?![a-zA-Z])"
_RELATION = re.compile(rf"(?P<order>{_ORDER})|[=∈⊆→:]|\\(?:(?:not)?in|subset(?:eq)?|to|cong)(?![a-zA-Z])|\be\. ")
_BRACKETS = re.compile(r"\{[^{}()]*\}|\([^{}()]*\)")
_DOMAIN = re.compile(r"(?:\\in(?![a-zA-Z])|∈|\be\.)\s*(?:\\math(?:bb|bf)|\\?[NZQRC]{1,2}\b|[ℕℤℚℝℂ])")
_MARKS = re.compile(r"[\s$`]+")
_LETTER = re.compile(r"\\[a-zA-Z]+|[^\W\d_]'*")
_THING = r"(?:[`$]+ *[`$]+|\b[B-Zb-z]\b)"  # a formula, or a letter in prose
_NAMED = re.compile(
    rf"(?P<thing>{_THING})\s*"
    r"(?P<is_a>be\b|(?:is|are) (?:an?|the|any|another|some|fixed|given)\b|are (?:\S+ ){0,6}?[a-z]+(?<!ou)(?<!s)s\b)?"
)
_NEW_THING = re.compile(r"(?:an?|another|some|any|given|only)\s", re.IGNORECASE)
_OWN_VERB = re.compile(rf"(?:{_THING}|the\b|its\b|their\b|they\b|it\b|not\b|)\s*(?:{_STATES.pattern})", re.IGNORECASE)
_PLURAL = re.compile(r"(?P<subject>.*?)\b(?:are|have|lie|belong|satisfy|commute|converge|vanish)\b")
_OF_MANY = re.compile(r"\ball\b|\band\b|\b(?!(?:its|is|this)\b)[a-z]+s\b", re.IGNORECASE)
# Behind these "and" joins two things or two variables, unless a verb came between.
_OF_THINGS = re.compile(
    r"\b(?:with|for (?:each|every|all|any|some)|where|which|whose|every|any|each|there (?:exists?|is|are)|both|either|"
    r"between)\b(?!.*\b(?:is|are|has|have|such that)\b)",
    re.IGNORECASE | re.DOTALL,
)
# These begin a conclusion, a remark or another condition.
_OTHER_CLAUSE = re.compile(
    r"\b(?:(?i:otherwise|else|unless|respectively|so|therefore|hence|thus|consequently|conversely|show|prove|find|let|"
    r"put|compute|calculate|denote|define|write|implies|iff|if|whenever|suppose|assume|what|how|why|we|you|my)|I)\b"
)
_NUMBER = {"two": "three", "three": "four", "finite": "infinite", "infinite": "finite"}
_COUNT = re.compile(
    r"\b(?<!-)(?:(?P<article>an?) )?(?P<word>two|three|finite|infinite)\b(?![ -]dimensional| (?:sum|series|product)\b)",
    re.IGNORECASE,
)


class Rule(NamedTuple):
    """Several wordings of the same thing: the pattern that finds each, and all *choices*; `{a}` is the group a."""

    name: str
    pattern: re.Pattern[str]
    choices: tuple[str, ...]


def _rule(name: str, pattern: str, *choices: str) -> Rule:
    return Rule(name, re.compile(pattern, re.IGNORECASE), choices)


RULES = (
    _rule("if, then", rf"{_BEGIN}if (?P<a>{_CLAUSE}{{3,240}}?),? then (?P<b>{_CLAUSE}{{3,240}}){_END}",
          "whenever {a}, {b}", "suppose that {a}. Then {b}", "assuming that {a}, {b}",
          "let us assume that {a}. Then {b}"),
    _rule("if", rf"{_BEGIN}if (?P<a>{_CLAUSE}{{3,240}}, {_CLAUSE}{{3,240}}){_END}",
          "whenever {a}", "assuming that {a}"),
    _rule("iff", r"\b(?:if and only if|iff|exactly when|precisely when)\b",
          "if and only if", "exactly when", "precisely when"),
    _rule("for all", rf"\b(?<!not )(?:for all|for every|for each) (?={_F})", "for all ", "for every ", "for each "),
    _rule("for every", r"\b(?<!not )(?:for every|for each) (?=[a-z]{2})", "for every ", "for each "),
    _rule("every", r"(?:\A|(?<=\. ))every (?=[a-z]{3})", "each ", "any "),
    _rule("exists", rf"\b(?:there exists|there is) (?=an? (?!unique)|some |{_F})",
          "there exists ", "there is ", "one can find ", "we can find "),
    _rule("exist", rf"\b(?:there exist|there are) (?={_F}|some |two )",
          "there exist ", "one can find ", "we can find "),
    _rule("let", r"(?:\A|(?<=\. ))let (?P<a>`[^`]*`|\$[^$]*\$|[B-Zb-z]) be (?P<b>an? )(?![^.]*\bbe\b)",
          "suppose that {a} is {b}", "take {a} to be {b}", "assume that {a} is {b}"),
    _rule("given", r"(?:\A|(?<=\. ))given (?=an? |two )", "for "),
    _rule("such that", r"(?<=[a-z`$]) (?:such that|with the property that)\b", " such that", " with the property that"),
    _rule("equals", rf"\b(?:is equal to|equals)(?= {_F}| the | an? )", "is equal to", "equals"),
    _rule("hence", r"(?:\A|(?<=\. ))(?:hence|thus|therefore|consequently),? ", "hence ", "therefore ", "consequently "),
    _rule("we have", rf", (?:we have that|we have|one has|it holds that) (?={_F})",
          ", we have ", ", one has ", ", it holds that "),
    _rule("non", r"\bnon-?(?P<a>zero|empty|trivial|negative|degenerate)\b", "non{a}", "non-{a}"),
    _rule("that is", r"\bi\.e\.,? ", "that is, ", "in other words, "),
    _rule("for example", r"\b(?:e\.g\.|for example|for instance),? ", "e.g. ", "for example, ", "for instance, "),
    _rule("subset", r"\bis a subset of(?= the\b| [`$])", "is contained in"),
    _rule("form", r"\b(?:has|is of) the form\b", "has the form", "is of the form"),
    _rule("implies", r"\b(?:implies|entails)\b(?= that\b| the\b| [`$])", "implies", "entails"),
    _rule("satisfies", r"\b(?:satisf|fulfil)(?:ies|s)\b", "satisfies", "fulfils"),
    _rule("satisfying", r"\b(?:satisfying|fulfilling)\b", "satisfying", "fulfilling"),
    _rule("consists", r"\b(?:consists|is made up) of\b", "consists of", "is made up of"),
    _rule("tends", r"\bconverges to\b", "tends to"),
    _rule("vanishes", r"(?<=[`$a-z] )vanishes\b", "is zero"),
    _rule("respect", r"\b(?:w\.r\.t\.|with respect to)(?= )", "w.r.t.", "with respect to"),
    _rule("called", r"\bis (?:called|said to be) (?=an? |[a-z]+ if\b)", "is called ", "is said to be "),
    _rule("defined", r"\bis defined (?:as|to be)(?= (?:the|an?)\b)", "is defined as", "is defined to be"),
    _rule("denotes", r"\b(?:denotes|stands for)\b", "denotes", "stands for"),
    _rule("since", r", (?:since|because) ", ", since ", ", because "),
    _rule("note", r"(?:\A|(?<=\. ))(?:note|observe) that ", "note that ", "observe that "),
)  # fmt: skip


# Terms that mean the same in every field where the cards have them, in both directions; an s makes the plural of each
# but the suprema and infima, whose plurals stay.
SYNONYMS = (
    ("abelian group", "commutative group"), ("injective map", "one-to-one map"),
    ("injective function", "one-to-one function"), ("surjective map", "onto map"),
    ("surjective function", "onto function"), ("bijection", "one-to-one correspondence"),
    ("coprime", "relatively prime"), ("pairwise disjoint", "mutually disjoint"),
    ("partially ordered set", "poset"), ("totally ordered", "linearly ordered"),
    ("greatest common divisor", "highest common factor"), ("least upper bound", "supremum"),
    ("greatest lower bound", "infimum"), ("invertible matrix", "nonsingular matrix"),
    ("invertible matrices", "nonsingular matrices"), ("identity matrix", "unit matrix"),
    ("quotient group", "factor group"), ("quotient ring", "factor ring"),
    ("division ring", "skew field"), ("finite field", "Galois field"), ("linear map", "linear transformation"),
    ("unique factorization domain", "factorial ring"), ("eigenvalue", "characteristic value"),
    ("inner product space", "pre-Hilbert space"), ("orthogonal vectors", "perpendicular vectors"),
    ("holomorphic function", "complex analytic function"), ("path-connected", "pathwise connected"),
    ("singleton set", "one-element set"), ("directed graph", "digraph"),
    ("normal distribution", "Gaussian distribution"), ("right triangle", "right-angled triangle"),
    ("equilateral triangle", "regular triangle"), ("repeating decimal", "recurring decimal"),
)  # fmt: skip
_SYNONYM = {old.lower(): new for pair in SYNONYMS for old, new in (pair, pair[::-1])}
_TERM = re.compile(
    r"\b(?<!(?<!non)-)(?<!essential )(?:(?P<article>an?) )?"  # a multi-linear map is another thing
    rf"(?P<term>{'|'.join(sorted(map(re.escape, _SYNONYM), key=len, reverse=True))})"
    r"(?P<plural>s?)\b(?![- ](?:norm|extension))",  # the supremum norm keeps its name
    re.IGNORECASE | re.ASCII,
)


def exchange_synonyms(text: str) -> list[str]:
    """Return the texts in which one term of `SYNONYMS` in the prose has become its synonym.

    >>> exchange_synonyms("Let $G$ be an abelian group.")
    ['Let $G$ be a commutative group.']
    """
    found: list[str] = []
    for match in _TERM.finditer(blank_formulas(text)):
        new = _SYNONYM[match["term"].lower()] + match["plural"]
        if new.endswith("ums"):
            continue
        before = text[: match.start("term")].rstrip()
        new = new[0].upper() + new[1:] if match["term"][0].isupper() and before[-1:] in ".?!" else new
        article = fit_article(match["article"] or "", new)
        found.append(text[: match.start()] + article + new + text[match.end() :])
    return found


class Reworded(NamedTuple):
    """A text in other words, and the names of the rules applied; "letters" for renamed variables."""

    text: str
    rules: list[str]


def reword(text: str, seed: str | int, letters: bool = True) -> Reworded:
    """Return *text* in other words wherever a rule of `RULES` applies, with other *letters* for its variables.

    Only prose is changed, except for letters (`rename_variables`); equal *seed*s and texts give equal results. Most
    words and their order stay, so that an encoder learns far less from it than from a language model's rewordings. The
    rules were checked on real statements to keep the meaning, without proof.

    >>> reword("If `n` is even, then there exists a `k` such that `n = 2 * k`.", 1).text
    'Suppose that `l` is even. Then there is an `r` with the property that `l = 2 * r`.'
    """
    random, used, words = Random(f"{seed}:{text}"), list[str](), text
    for rule in RULES:
        hidden = blank_formulas(words)
        for match in reversed(list(rule.pattern.finditer(hidden))):
            new = _chosen(rule, words, match, random)
            if new != words[match.start() : match.end()]:
                words = words[: match.start()] + new + words[match.end() :]
                used.append(rule.name)
    renamed = rename_variables(words, seed) if letters else None
    if renamed and renamed.letters:
        words, used = renamed.text, [*used, "letters"]
    return Reworded(words, list(dict.fromkeys(used)))


def _chosen(rule: Rule, text: str, match: re.Match[str], random: Random) -> str:
    groups = {name: text[slice(*match.span(name))] for name in rule.pattern.groupindex}
    old = text[match.start() : match.end()]
    wordings = [re.sub(r"\{([ab])\}", lambda field: groups[field[1]], choice) for choice in rule.choices]
    new = random.choice([wording for wording in wordings if wording.casefold() != old.casefold()] or [old])
    return new[0].upper() + new[1:] if old[0].isupper() else new


class Renamed(NamedTuple):
    """A text with renamed variables, and the new letter of each."""

    text: str
    letters: dict[str, str]


def rename_variables(text: str, seed: str | int) -> Renamed:
    r"""Return *text* with other letters for its variables; equal *seed*s and texts give equal results.

    Variables are single letters: those that `formula.latex` reads as variables in LaTeX, names of one letter in code
    between backticks, and single letters in prose. No two become one. Letters with a usual meaning (e, i, d, C, L, O
    ...), with a hyphen in prose (p-adic), and of other alphabets than Latin and Greek stay, and so does a text with a
    formula that cannot be read. Articles are adapted. Letters with a meaning in their field, as the X of polynomials,
    are not recognised.

    >>> rename_variables("If $x \\in \\mathbb{R}$ and `f x = 0` then x is a zero of $f$.", 1).text
    'If $t \\in \\mathbb{R}$ and `u t = 0` then t is a zero of $u$.'
    """
    offsets, used = _variable_offsets(text)
    random = Random(f"{seed}:{text}")
    new: dict[str, str] = {}
    for letter in dict.fromkeys(text[offset] for offset in offsets):
        free = [other for other in _ALPHABET[letter] if other not in used]
        if free:
            new[letter] = random.choice(free)
            used.add(new[letter])
    return Renamed(_replaced(text, offsets, new), new)


def _variable_offsets(text: str) -> tuple[list[int], set[str]]:
    """Return the offsets of letters that may be renamed (none if a formula cannot be read), and all letters in use."""
    offsets: list[int] = []
    kept: set[str] = set()
    used: set[str] = set()
    for start, end, is_latex in formula_spans(text):
        inside = (_in_latex if is_latex else _in_code)(text[start:end])
        if inside is None:
            return [], set()
        offsets += [start + offset for offset in inside[0]]
        kept |= inside[1]
        used |= inside[2]
    prose = blank_formulas(text)
    offsets += [match.start() for match in _BARE.finditer(prose)]
    kept |= {letter for match in _NO_VARIABLE.finditer(prose) for letter in match.groups() if letter}
    used |= kept | {text[offset] for offset in offsets}
    return [at for at in dict.fromkeys(offsets) if text[at] in _ALPHABET and text[at] not in kept], used


def _in_latex(formula: str) -> tuple[list[int], set[str], set[str]] | None:
    """Return offsets of variables in LaTeX, letters that must stay, and all letters; None when it cannot be read."""
    tree = parser.parse_latex(formula)
    if tree.problems:
        return None
    signs = {start: label for label, (start, end) in zip(tree.labels, tree.spans, strict=True) if end - start == 1}
    offsets = [start for start, label in signs.items() if label == f"V!{formula[start]}"]
    # Three letters in a row may be a name that lacks its command (gcd); in \text{...} a letter may be a variable.
    kept = set("".join([*_RUN.findall(formula), *_WORDS.findall(formula)]))
    return offsets, kept, {formula[start] for start in signs}


def _in_code(code: str) -> tuple[list[int], set[str], set[str]]:
    """Return offsets of names of one letter in code, letters that must stay, and all letters."""
    offsets: list[int] = []
    kept: set[str] = set()
    for match in _NAME.finditer(code):
        parts = match[0].split("_")
        if len(parts) == 1 and _is_letter(parts[0]) and code[match.start() - 1 : match.start()] != ".":
            offsets.append(match.start())
        elif len(parts) > 1:  # `hf_x`, `_G`: what is attached may be the variable
            kept |= {part[0] for part in parts if part and _is_letter(part)}
        elif len(match[0]) == 2:  # `hx`, `ℒp`
            kept |= set(match[0])
    return offsets, kept, {match[0][0] for match in _NAME.finditer(code) if _is_letter(match[0])}


def _is_letter(name: str) -> bool:
    """Return whether a name is one letter with indices or primes: x, x₁, x', Xᵒᵖ."""
    return all(sign == "'" or unicodedata.category(sign) in ("Lm", "No") for sign in name[1:])


def _replaced(text: str, offsets: list[int], new: dict[str, str]) -> str:
    for offset in sorted(offsets, reverse=True):
        old, letter = text[offset], new.get(text[offset], text[offset])
        before = text[:offset]
        if (old in _AN) != (letter in _AN) and (match := _ARTICLE.search(before)):
            fitting = match[1][0] + ("n" if letter in _AN else "")
            before = before[: match.start(1)] + fitting + before[match.end(1) :]
        text = before + letter + text[offset + 1 :]
    return text


class Falsehood(NamedTuple):
    """A statement with one change, and the kind of the change."""

    kind: str
    text: str


def falsify(text: str, seed: str | int, n: int = N_NEGATIVES) -> list[Falsehood]:
    """Return up to *n* different versions of a statement that say something else, of as many kinds as possible.

    The changes are those of `sources.hard_negatives`, also in code between backticks, and: Lean's signs exchanged, maps
    composed in another order or reversed, a condition dropped, "is" negated, etc. Equal *seed*s and texts give equal
    results. That they are false is likely, but not checked: a converse may hold, a condition may be superfluous.
    """
    random = Random(f"{seed}:{text}")
    options = [(kind, _changed_texts(text, find)) for kind, find in CHANGE_FINDERS.items()]
    options = [(kind, texts) for kind, texts in options if texts]
    random.shuffle(options)
    for _, texts in options:
        random.shuffle(texts)
    falsehoods, seen = list[Falsehood](), {fold_text(text)}
    for turn in range(max((len(texts) for _, texts in options), default=0)):
        for kind, texts in options:
            if turn < len(texts) and len(falsehoods) < n and fold_text(texts[turn]) not in seen:
                seen.add(fold_text(texts[turn]))
                falsehoods.append(Falsehood(kind, texts[turn]))
    return falsehoods


def _changed_texts(text: str, find: Callable[[str], Iterable[Change]]) -> list[str]:
    return [text[: change.start] + change.new + text[change.end :] for change in find(text)]


def _with_code(find: Callable[[str], Iterable[Change]]) -> Callable[[str], Iterable[Change]]:
    """Return a finder of `hard_negatives` that also reads code between backticks, not only formulas."""

    def finder(text: str) -> Iterable[Change]:
        if "$" in text or text.count("`") % 2:
            return find(text)
        changes = find(text.replace("`", "$"))
        return [Change(change.start, change.end, change.new.replace("$", "`")) for change in changes]

    return finder


def exchanged_signs(text: str) -> list[Change]:
    """Return the signs of order, sets and logic in formulas and code, each as its opposite."""
    changes: list[Change] = []
    for start, end, _ in formula_spans(text):
        inner = text[start:end]
        if "<" in inner and ">" in inner:
            continue
        changes += [
            Change(start + place, start + place + 1, _OPPOSITE[sign])
            for place, sign in enumerate(inner)
            if sign in _OPPOSITE and (sign not in "<>" or inner[place - 1 : place + 2].strip() == sign)
        ]
    return changes


def flipped_maps(text: str) -> list[Change]:
    """Return `f ∘ g` as `g ∘ f`, and arrows between two names the other way."""
    return [
        Change(start + match.start(), start + match.end(), f"{match['b']} {match['sign']} {match['a']}")
        for start, end, _ in formula_spans(text)
        for match in _FLIP.finditer(text[start:end])
        if match["a"] != match["b"]
    ]


def negated(text: str) -> list[Change]:
    """Return "is" as "is not", "there exists" as "there does not exist", and "has a" as "has no"."""
    hidden = blank_formulas(text)
    negative = {"exists": "does not exist", "exist": "do not exist", "is": "is not", "are": "are not"}
    return [
        *(Change(match.end("verb"), match.end("verb"), " not") for match in _VERB.finditer(hidden)),
        *(Change(*match.span("verb"), negative[match["verb"].lower()]) for match in _EXISTS.finditer(hidden)),
        *(Change(*match.span("article"), "no") for match in _HAS.finditer(hidden)),
    ]


def dropped_conditions(text: str) -> list[Change]:
    r"""Return "if A and B, then ..." without "and B", where A and B are both conditions; so in "... if A and B." too.

    B stays where it declares a variable ("and $c \in \mathbb{R}$"), and where the text says it twice.

    >>> dropped_conditions("If $a > b$ and $b > c$, then $a > c$.")
    [Change(start=10, end=22, new='')]
    """
    hidden, changes = blank_formulas(text), list[Change]()
    for start, end, is_last in _condition_spans(hidden):
        for joined in reversed(list(_AND.finditer(hidden[:end], start))):
            # "A, B and C" may be a list of other things.
            is_list = "," in hidden[start : joined.start()] and "," not in joined[0]
            if not (is_last and is_list) and _is_condition(text, hidden, start, joined):
                changes.append(Change(joined.start(), joined.end("clause"), ""))
                break
    return changes


def _condition_spans(hidden: str) -> Iterator[tuple[int, int, bool]]:
    """Yield start and end of each condition, and whether its conclusion stands before it."""
    for match in _CONDITION.finditer(hidden):
        start, end = match.end(), next(_CONDITION_END.finditer(hidden, match.end()))
        if end["then"] or match["word"].lower() in ("assume", "suppose"):
            yield start, end.start(), False
        elif not _BEFORE_FRONT.search(hidden[: match.start()]):
            yield start, end.start(), True
        elif (comma := hidden.find(", ", start, end.start())) > 0:
            yield start, comma, False


def _is_condition(text: str, hidden: str, start: int, joined: re.Match[str]) -> bool:
    """Return whether *joined* adds a second condition to that from *start*, which the text says only once."""
    kept, (at, end) = hidden[start : joined.start()], joined.span("clause")
    clause, named = joined["clause"], _NAMED.match(joined["clause"])
    says_something = _STATES.search(kept) or _relation(text[start : joined.start()])
    if not says_something or _OTHER_CLAUSE.search(hidden[start:end]) or _NEW_THING.match(clause):
        return False
    if _MARKS.sub("", text).count(_MARKS.sub("", text[at:end])) > 1:
        return False
    thing = text[at : at + named.end("thing")] if named else ""
    letters = set(_LETTER.findall(thing))
    is_of_kept = bool(letters) and letters <= _letters(text, hidden, start, joined.start())
    if _STATES.search(clause):
        plural = _PLURAL.match(clause)
        is_whole = not plural or _OF_MANY.search(plural["subject"]) or "," in _outside_brackets(thing)
        is_own = _OWN_VERB.match(clause) or not _OF_THINGS.search(kept)
        return bool(is_whole and is_own and (is_of_kept or not named or not named["is_a"]))
    relation = _relation(thing)
    is_alone = named is not None and named.end("thing") == len(clause.rstrip())
    if not is_alone or relation is None or _OF_THINGS.search(kept) or _DOMAIN.search(thing):
        return False  # "and exponent $d > 0$", "for all $x$ and $y > 0$", "and $c \in \mathbb{R}$"
    is_known = relation[0] == "=" and letters <= _letters(text, hidden, 0, at)
    return bool(relation["order"]) or is_of_kept or is_known


def _letters(text: str, hidden: str, start: int, end: int) -> set[str]:
    """Return the letters in the formulas of a part of a text, and those that stand alone in its prose."""
    formulas = (text[max(start, one) : min(end, other)] for one, other, _ in formula_spans(text))
    return {letter for each in formulas for letter in _LETTER.findall(each)} | set(
        re.findall(r"\b[^\W\d_]\b", hidden[start:end])
    )


def _relation(text: str) -> re.Match[str] | None:
    """Return the first relation outside of brackets: what the index of (b_s)_{s ∈ S} says is no condition."""
    return _RELATION.search(_outside_brackets(text))


def _outside_brackets(text: str) -> str:
    """Return a text of the same length with blanks for what stands in braces and round brackets."""
    while _BRACKETS.search(text):
        text = _BRACKETS.sub(lambda match: " " * len(match[0]), text)
    return text


def changed_numbers(text: str) -> list[Change]:
    """Return "two" as "three", and "finite" as "infinite" and back."""
    changes = []
    for match in _COUNT.finditer(blank_formulas(text)):
        new = _NUMBER[match["word"].lower()]
        new = new.capitalize() if match["word"][0].isupper() else new
        changes.append(Change(match.start(), match.end(), fit_article(match["article"] or "", new) + new))
    return changes


CHANGE_FINDERS: dict[str, Callable[[str], Iterable[Change]]] = {
    **{kind: _with_code(find) for kind, find in hard_negatives.KINDS.items() if kind != "step-dropped"},
    "sign-exchanged": exchanged_signs,
    "flipped": flipped_maps,
    "negated": negated,
    "condition-dropped": dropped_conditions,
    "number-changed": changed_numbers,
}


def formula_spans(text: str) -> list[tuple[int, int, bool]]:
    """Return start and end of each formula and piece of code, in order, and whether it is LaTeX.

    >>> formula_spans("a `f x` of $y$")
    [(3, 6, False), (12, 13, True)]
    """
    code = [(match.start() + 1, match.end() - 1, False) for match in _CODE.finditer(text)]
    formulas = [(start, end, True) for _, start, end in in_text.marked_formulas(text)]
    alone = [span for span in formulas if not any(start < span[1] and span[0] < end for start, end, _ in code)]
    return sorted(code + alone)


def blank_formulas(text: str) -> str:
    """Return a text of the same length with blanks for its formulas and code."""
    signs = list(text)
    for start, end, _ in formula_spans(text):
        signs[start:end] = " " * (end - start)
    return "".join(signs)
