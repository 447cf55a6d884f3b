"""rules: statements reworded, renamed and made false by rules."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from mirblab.data.near_duplicates import fold_text
from mirblab.formula import in_text
from mirblab.formula.latex import parser
from mirblab.sources import hard_negatives
from mirblab.sources.hard_negatives import Change, fit_article

REWORDING_VERSION = 1  # of the rules; part of what identifies a rewording
FALSEHOODS_VERSION = 1  # of the rules
N_NEGATIVES = 3
# A letter becomes another one of its line, so that indices stay indices and maps maps. Not in the lines, because they
# may be a constant, a space of fixed meaning, a differential, an article or a pronoun: C, I, L, O, d, e, i, o, a and A.
_ALPHABETS = ("mnkjlr", "xyzwst", "fghu", "pq", "bcv", "BDEFGHJKMNPQRSTUVWXYZ", "αβγδικστ", "φψχ")
_ALPHABET = {letter: letters for letters in _ALPHABETS for letter in letters}
_AN = frozenset("aefhilmnorsxAEFHILMNORSXαειη")  # letters whose names begin with a vowel
_CODE = re.compile(r"`[^`\n]+`")
_NAME = re.compile(r"(?<![\w'])[^\W\d][\w']*")
_RUN = re.compile(r"(?<![\\A-Za-z])[A-Za-z]{3,}")
_WORDS = re.compile(r"\\(?:text[a-z]*|mbox|hbox|operatorname\*?)\s*\{([^{}]*)\}")
_BARE = re.compile(r"(?<![^\s(])[^\W\d_](?=[,.;:!?)]*(?:\s|\Z))")  # a letter by itself in prose
_NO_VARIABLE = re.compile(
    r"(?<![\w])([^\W\d_])(?:[-‑–][a-z]|\.\s+[A-Z])|[a-z][-‑–]([^\W\d_])(?!\w)"
)  # p-adic, E. Noether
_ARTICLE = re.compile(r"(?<!\w)([Aa]n?) [`$]?\Z")
_F = "[`$]"  # a formula or a piece of code begins; what is inside is hidden from the rules
_BEGIN = r"(?:\A|(?<=\. )|(?<=: ))"
_CLAUSE = r"(?:(?!\b(?:then|otherwise|only|unless|else|whenever|respectively)\b|[.;:](?:\s|\Z)|\n).)"
_END = r"(?=\.(?:\s+(?!otherwise|else|conversely)|\Z)|\Z)"
_THOUGHT = re.compile(r"\s*<think>.*?</think>", re.DOTALL)
_FENCED = re.compile(r"```(?:json)?\s*\n(?P<inner>.*)\n\s*```", re.DOTALL)
_PREAMBLE = re.compile(
    r"(?:sure|certainly|of course|okay)\b\s*[,!.:]"
    r"|(?:here(?:'s| is| are)|(?:the )?(?:reworded|rephras\w+))\b[^.\n$]{0,60}:",
    re.IGNORECASE,
)
_SIGNS = ("≤≥", "<>", "⊆⊇", "⊂⊃", "∪∩", "∀∃", "⊔⊓", "⊤⊥", "⋃⋂", "⨆⨅", "∧∨")
_OPPOSITE = {pair[side]: pair[1 - side] for pair in _SIGNS for side in (0, 1)}
_FLIP = re.compile(
    r"(?:\A|(?<=\()|(?<=[:=] ))(?P<a>[\w.']+) (?P<sign>∘|≫|⋙|⟶|⥤|→|\\circ|\\to) (?P<b>[\w.']+)(?=\Z|\)|,| =)"
)
_VERB = re.compile(
    r"(?<!\bthis )(?<!\bthat )(?<!\bwhich )(?<!\bit )(?<!\bthere )(?<=[\w`$)] )(?P<verb>is|are)\b"
    r"(?= (?!not\b|no\b|to\b|used\b|useful\b|a version\b|an? auxiliary\b|called\b|defined\b)[\w`$])",
    re.IGNORECASE,
)
_EXISTS = re.compile(r"\bthere (?P<verb>exists|exist|is|are)(?= (?:an?|some|[`$]))", re.IGNORECASE)
_HAS = re.compile(r"\bhas (?P<article>an?) (?=\w)", re.IGNORECASE)
_CONDITION = re.compile(
    r"\b(?:if|assume|suppose|assuming|whenever)\b[^.;:]{3,160}?(?P<dropped>,? and [^.,;:]{3,120}?)(?=,? then\b|, |\.)",
    re.IGNORECASE,
)
_NUMBER = {"two": "three", "three": "four", "finite": "infinite", "infinite": "finite"}
_COUNT = re.compile(r"\b(?:(?P<article>an?) )?(?P<word>two|three|finite|infinite)\b(?![ -]dimensional)", re.IGNORECASE)


@dataclass(frozen=True)
class Rule:
    """One thing that can be said in several ways: where it stands, and all its ways; `{a}` is the pattern's group a."""

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


@dataclass(frozen=True)
class Reworded:
    """A text in other words, and by which rules: their names, and "letters" when variables have other ones."""

    text: str
    rules: list[str]


def reword(text: str, seed: str | int, letters: bool = True) -> Reworded:
    """Return *text* in other words wherever a rule of `RULES` applies, and with other *letters* for its variables.

    Rules look at prose only, what is in formulas and code stays but for its letters (`rename_variables`). Deterministic
    by *seed* and text. A text to which nothing applies comes back as it is, with no rules.

    It is a stand-in: sentences keep their order and most of their words, so it teaches an encoder far less than what
    a language model writes. The rules were chosen so that each keeps the meaning, and read over on real statements;
    that the new text says the same is not proved, and now and then its English is stiff.

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
    """Return one of the rule's ways to say what matches, another one than now, beginning with a capital as now."""
    groups = {name: text[slice(*match.span(name))] for name in rule.pattern.groupindex}
    old = text[match.start() : match.end()]
    ways = [re.sub(r"\{([ab])\}", lambda place: groups[place[1]], choice) for choice in rule.choices]
    ways = [way for way in ways if way.casefold() != old.casefold()] or [old]
    new = random.choice(ways)
    return new[0].upper() + new[1:] if old[0].isupper() else new


@dataclass(frozen=True)
class Renamed:
    """A text with other letters, and which became which."""

    text: str
    letters: dict[str, str]


def rename_variables(text: str, seed: str | int) -> Renamed:
    r"""Return *text* with its variables under other letters.

    Variables are single letters: those that `formula.latex` reads as variables in LaTeX, names of one letter in code
    between backticks, and letters that stand by themselves in prose. A new letter is the name of nothing else in the
    text, so that no two become one. Letters with a usual meaning (e, i, d, C, L, O ...), with a hyphen in prose
    (p-adic), and of alphabets other than Latin and Greek stay, and so does the whole text where a formula cannot be
    read. An article before a letter follows it. Deterministic by *seed* and text.

    What it does not know: whether a letter stands for something fixed in its field, as the X of polynomials.

    >>> rename_variables("If $x \\in \\mathbb{R}$ and `f x = 0` then x is a zero of $f$.", 1).text
    'If $t \\in \\mathbb{R}$ and `u t = 0` then t is a zero of $u$.'
    """
    places, taken = _places(text)
    letters = list(dict.fromkeys(text[place] for place in places))
    if not letters:
        return Renamed(text, {})
    random = Random(f"{seed}:{text}")
    new: dict[str, str] = {}
    for letter in letters:
        free = [other for other in _ALPHABET[letter] if other not in taken]
        if free:
            new[letter] = random.choice(free)
            taken.add(new[letter])
    return Renamed(_replaced(text, places, new), new)


def _places(text: str) -> tuple[list[int], set[str]]:
    """Return where the letters stand that may be renamed (nowhere when a formula cannot be read), and all in use."""
    offsets: list[int] = []
    kept: set[str] = set()
    used: set[str] = set()
    for start, end, is_latex in formula_spans(text):
        inside = (_in_latex if is_latex else _in_code)(text[start:end])
        if inside is None:
            return [], set()
        offsets += [start + place for place in inside[0]]
        kept |= inside[1]
        used |= inside[2]
    rest = blank_formulas(text)
    offsets += [match.start() for match in _BARE.finditer(rest)]
    kept |= {letter for match in _NO_VARIABLE.finditer(rest) for letter in match.groups() if letter}
    used |= kept | {text[place] for place in offsets}
    places = dict.fromkeys(offsets)
    return [place for place in places if text[place] in _ALPHABET and text[place] not in kept], used


def _in_latex(formula: str) -> tuple[list[int], set[str], set[str]] | None:
    """Return where a formula has variables of one letter, letters that must stay, and all; None when not understood."""
    tree = parser.parse_latex(formula)
    if tree.problems:
        return None
    signs = {start: label for label, (start, end) in zip(tree.labels, tree.spans, strict=True) if end - start == 1}
    offsets = [start for start, label in signs.items() if label == f"V!{formula[start]}"]
    # Three letters in a row may be a name that lacks its command (gcd); in \text{...} a letter may be a variable.
    kept = {letter for word in _RUN.findall(formula) for letter in word}
    kept |= {letter for words in _WORDS.findall(formula) for letter in words}
    return offsets, kept, {formula[start] for start in signs}


def _in_code(code: str) -> tuple[list[int], set[str], set[str]]:
    """Return where code has names of one letter, also with indices and primes, letters that must stay, and all."""
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
    """Return whether a name is one letter and what is set small beside it: x, x₁, x', Xᵒᵖ."""
    return all(sign == "'" or unicodedata.category(sign) in ("Lm", "No") for sign in name[1:])


def _replaced(text: str, places: list[int], new: dict[str, str]) -> str:
    """Return *text* with the letters at *places* replaced, and the articles before them made to fit."""
    for place in sorted(places, reverse=True):
        old, letter = text[place], new.get(text[place], text[place])
        before = text[:place]
        if (old in _AN) != (letter in _AN) and (match := _ARTICLE.search(before)):
            fitting = match[1][0] + ("n" if letter in _AN else "")
            before = before[: match.start(1)] + fitting + before[match.end(1) :]
        text = before + letter + text[place + 1 :]
    return text


@dataclass(frozen=True)
class Falsehood:
    """A statement with one change, and which kind of change it is."""

    kind: str
    text: str


def falsify(text: str, seed: str | int, n: int = N_NEGATIVES) -> list[Falsehood]:
    """Return up to *n* versions of a statement that say something else, no two alike, of as many kinds as possible.

    Changes are those of `sources.corruptions` (a relation reversed, a quantifier or notion exchanged, a hypothesis
    changed, indices swapped, the converse), also in code between backticks, and: signs of Lean exchanged, maps
    composed or going the other way, a condition dropped, "is" made "is not", and the like. Deterministic by *seed*
    and text; fewer than *n*, down to none, where there is no place for a change.

    It is a stand-in: that the result is false is likely and not checked. A dropped condition may have been
    superfluous, a converse may hold, and a definition that is changed is another definition rather than a falsehood.

    >>> [one.kind for one in falsify("If `f` is injective, then `f x ≤ f y`.", 0)]
    ['converse', 'sign-exchanged', 'hypothesis-changed']
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


class UnusableReply(Exception):
    """An answer is of no use; the text is the reason, out of a few, so that they can be counted."""


@dataclass(frozen=True)
class Reply:
    """What a model answered, and why it stopped: "stop", or "length" when it was cut off."""

    text: str
    finish: str = "stop"


@dataclass(frozen=True)
class Decomposition:
    """A statement taken apart."""

    hypotheses: list[str]
    conclusions: list[str]
    normalized_form: str


def read_decomposition(reply: Reply) -> Decomposition:
    """Return the parts that an answer names: a JSON object, alone or in one fence of code.

    Raises Unusable: "empty", "cut off", "no JSON", "other JSON" (lists of texts are wanted), "no conclusion".

    >>> read_decomposition(Reply('{"hypotheses": ["x is even"], "conclusions": ["x + 2 is even"]}')).conclusions
    ['x + 2 is even']
    """
    answer = _reply_object(reply)
    form = answer.get("normalized_form", "")
    hypotheses, conclusions = (_answer_texts(answer.get(name)) for name in ("hypotheses", "conclusions"))
    if not isinstance(form, str):
        raise UnusableReply("other JSON")
    if not conclusions:
        raise UnusableReply("no conclusion")
    return Decomposition(hypotheses, conclusions, form.strip())


def read_rephrasing(reply: Reply, statement: str) -> str:
    """Return the new text of a *statement*.

    Raises Unusable: "empty", "cut off", "unchanged" (but for case and blanks), "not a statement alone" (a fence of
    code, or an introduction such as "Here is ...").

    >>> read_rephrasing(Reply(" Twice a number is even. "), "2n is even")
    'Twice a number is even.'
    """
    text = _reply_text(reply)
    if text.startswith("```") or _PREAMBLE.match(text):
        raise UnusableReply("not a statement alone")
    if fold_text(text) == fold_text(statement):
        raise UnusableReply("unchanged")
    return text


def read_negatives(reply: Reply, statement: str) -> list[str]:
    """Return the three wrong versions of a *statement* that an answer holds.

    Raises Unusable: as `decomposition`, "not three", and "repeats" (each other, or the statement).

    >>> read_negatives(Reply('{"hard_negatives": ["a < b", "a = b", "a > c"]}'), "a > b")
    ['a < b', 'a = b', 'a > c']
    """
    texts = _answer_texts(_reply_object(reply).get("hard_negatives"))
    if len(texts) != N_NEGATIVES:
        raise UnusableReply("not three")
    if len({fold_text(text) for text in [*texts, statement]}) != N_NEGATIVES + 1:
        raise UnusableReply("repeats")
    return texts


def _reply_text(reply: Reply) -> str:
    """Return the answer without what a model thought aloud before it."""
    text = _THOUGHT.sub("", reply.text, count=1) if reply.text.lstrip().startswith("<think>") else reply.text
    if reply.finish == "length" or text.lstrip().startswith("<think>"):
        raise UnusableReply("cut off")
    if not text.strip():
        raise UnusableReply("empty")
    return text.strip()


def _reply_object(reply: Reply) -> dict[str, Any]:
    text = _reply_text(reply)
    fenced = _FENCED.fullmatch(text)
    try:
        answer = json.loads(fenced["inner"] if fenced else text)
    except (ValueError, RecursionError):
        raise UnusableReply("no JSON") from None
    if not isinstance(answer, dict):
        raise UnusableReply("other JSON")
    return answer


def _answer_texts(value: Any) -> list[str]:
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise UnusableReply("other JSON")
    if not all(isinstance(item, str) and item.strip() for item in value):
        raise UnusableReply("other JSON")
    return [item.strip() for item in value]


def _changed_texts(text: str, find: Callable[[str], list[Change]]) -> list[str]:
    """Return the text with each of the changes that *find* names, one at a time."""
    return [text[: change.start] + change.new + text[change.end :] for change in find(text)]


def _with_code(find: Callable[[str], list[Change]]) -> Callable[[str], list[Change]]:
    """Return the finder of `corruptions`, which knows formulas between dollars, for code between backticks too."""

    def finder(text: str) -> list[Change]:
        if "$" in text or text.count("`") % 2:
            return find(text)
        changes = find(text.replace("`", "$"))
        return [Change(one.start, one.end, one.new.replace("$", "`")) for one in changes]

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
    changes = [Change(match.end("verb"), match.end("verb"), " not") for match in _VERB.finditer(hidden)]
    negative = {"exists": "does not exist", "exist": "do not exist", "is": "is not", "are": "are not"}
    for match in _EXISTS.finditer(hidden):
        changes.append(Change(*match.span("verb"), negative[match["verb"].lower()]))
    return changes + [Change(*match.span("article"), "no") for match in _HAS.finditer(hidden)]


def dropped_conditions(text: str) -> list[Change]:
    """Return "if A and B, then ..." without "and B"."""
    return [Change(*match.span("dropped"), "") for match in _CONDITION.finditer(blank_formulas(text))]


def changed_numbers(text: str) -> list[Change]:
    """Return "two" as "three", and "finite" as "infinite" and back."""
    changes = []
    for match in _COUNT.finditer(blank_formulas(text)):
        new = _NUMBER[match["word"].lower()]
        new = new.capitalize() if match["word"][0].isupper() else new
        changes.append(Change(match.start(), match.end(), fit_article(match["article"] or "", new) + new))
    return changes


CHANGE_FINDERS: dict[str, Callable[[str], list[Change]]] = {
    **{kind: _with_code(find) for kind, find in hard_negatives.KINDS.items() if kind != "step-dropped"},
    "sign-exchanged": exchanged_signs,
    "flipped": flipped_maps,
    "negated": negated,
    "condition-dropped": dropped_conditions,
    "number-changed": changed_numbers,
}


def formula_spans(text: str) -> list[tuple[int, int, bool]]:
    r"""Return start and end of each formula and piece of code in a text, in order, and whether it is LaTeX.

    >>> formula_spans("a `f x` of $y$")
    [(3, 6, False), (12, 13, True)]
    """
    code = [(match.start() + 1, match.end() - 1, False) for match in _CODE.finditer(text)]
    formulas = [(start, end, True) for _, start, end in in_text.marked_formulas(text)]
    alone = [one for one in formulas if not any(start < one[1] and one[0] < end for start, end, _ in code)]
    return sorted(code + alone)


def blank_formulas(text: str) -> str:
    """Return a text, as long as before, with blanks in place of its formulas and code.

    >>> blank_formulas("Let `f x` be $0$.")
    'Let `   ` be $ $.'
    """
    signs = list(text)
    for start, end, _ in formula_spans(text):
        signs[start:end] = " " * (end - start)
    return "".join(signs)
