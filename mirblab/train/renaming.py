"""renaming: other letters for the variables of a statement, the same new letter wherever the old one stood."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from random import Random

from mirblab.formula import latex, posts

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


@dataclass(frozen=True)
class Renamed:
    """A text with other letters, and which became which."""

    text: str
    letters: dict[str, str]


def rename(text: str, seed: str | int) -> Renamed:
    r"""Return *text* with its variables under other letters.

    Variables are single letters: those that `formula.latex` reads as variables in LaTeX, names of one letter in code
    between backticks, and letters that stand by themselves in prose. A new letter is the name of nothing else in the
    text, so that no two become one. Letters with a usual meaning (e, i, d, C, L, O ...), with a hyphen in prose
    (p-adic), and of alphabets other than Latin and Greek stay, and so does the whole text where a formula cannot be
    read. An article before a letter follows it. Deterministic by *seed* and text.

    What it does not know: whether a letter stands for something fixed in its field, as the X of polynomials.

    >>> rename("If $x \\in \\mathbb{R}$ and `f x = 0` then x is a zero of $f$.", 1).text
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


def spans(text: str) -> list[tuple[int, int, bool]]:
    r"""Return start and end of each formula and piece of code in a text, in order, and whether it is LaTeX.

    >>> spans("a `f x` of $y$")
    [(3, 6, False), (12, 13, True)]
    """
    code = [(match.start() + 1, match.end() - 1, False) for match in _CODE.finditer(text)]
    found = [(start, end, True) for _, start, end in posts.formulas(text)]
    alone = [one for one in found if not any(start < one[1] and one[0] < end for start, end, _ in code)]
    return sorted(code + alone)


def prose(text: str) -> str:
    """Return a text, as long as before, with blanks in place of its formulas and code.

    >>> prose("Let `f x` be $0$.")
    'Let `   ` be $ $.'
    """
    signs = list(text)
    for start, end, _ in spans(text):
        signs[start:end] = " " * (end - start)
    return "".join(signs)


def _places(text: str) -> tuple[list[int], set[str]]:
    """Return where the letters stand that may be renamed (nowhere when a formula cannot be read), and all in use."""
    found: list[int] = []
    kept: set[str] = set()
    used: set[str] = set()
    for start, end, is_latex in spans(text):
        inside = (_in_latex if is_latex else _in_code)(text[start:end])
        if inside is None:
            return [], set()
        found += [start + place for place in inside[0]]
        kept |= inside[1]
        used |= inside[2]
    rest = prose(text)
    found += [match.start() for match in _BARE.finditer(rest)]
    kept |= {letter for match in _NO_VARIABLE.finditer(rest) for letter in match.groups() if letter}
    used |= kept | {text[place] for place in found}
    places = dict.fromkeys(found)
    return [place for place in places if text[place] in _ALPHABET and text[place] not in kept], used


def _in_latex(formula: str) -> tuple[list[int], set[str], set[str]] | None:
    """Return where a formula has variables of one letter, letters that must stay, and all; None when not understood."""
    tree = latex.parse(formula)
    if tree.problems:
        return None
    signs = {start: label for label, (start, end) in zip(tree.labels, tree.spans, strict=True) if end - start == 1}
    found = [start for start, label in signs.items() if label == f"V!{formula[start]}"]
    # Three letters in a row may be a name that lacks its command (gcd); in \text{...} a letter may be a variable.
    kept = {letter for word in _RUN.findall(formula) for letter in word}
    kept |= {letter for words in _WORDS.findall(formula) for letter in words}
    return found, kept, {formula[start] for start in signs}


def _in_code(code: str) -> tuple[list[int], set[str], set[str]]:
    """Return where code has names of one letter, also with indices and primes, letters that must stay, and all."""
    found: list[int] = []
    kept: set[str] = set()
    for match in _NAME.finditer(code):
        parts = match[0].split("_")
        if len(parts) == 1 and _is_letter(parts[0]) and code[match.start() - 1 : match.start()] != ".":
            found.append(match.start())
        elif len(parts) > 1:  # `hf_x`, `_G`: what is attached may be the variable
            kept |= {part[0] for part in parts if part and _is_letter(part)}
        elif len(match[0]) == 2:  # `hx`, `ℒp`
            kept |= set(match[0])
    return found, kept, {match[0][0] for match in _NAME.finditer(code) if _is_letter(match[0])}


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
