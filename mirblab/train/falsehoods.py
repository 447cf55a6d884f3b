"""falsehoods: statements made wrong by rules, one change each: hard negatives where no chat model is at hand."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from mirblab.shingles import fold
from mirblab.sources import corruptions
from mirblab.sources.corruption_words import article
from mirblab.sources.corruptions import Change
from mirblab.train.answers import N_NEGATIVES
from mirblab.train.renaming import prose, spans

VERSION = 1  # of the rules
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
class Wrong:
    """A statement with one change, and which kind of change it is."""

    kind: str
    text: str


def wrong(text: str, seed: str | int, n: int = N_NEGATIVES) -> list[Wrong]:
    """Return up to *n* versions of a statement that say something else, no two alike, of as many kinds as possible.

    Changes are those of `sources.corruptions` (a relation reversed, a quantifier or notion exchanged, a hypothesis
    changed, indices swapped, the converse), also in code between backticks, and: signs of Lean exchanged, maps
    composed or going the other way, a condition dropped, "is" made "is not", and the like. Deterministic by *seed*
    and text; fewer than *n*, down to none, where there is no place for a change.

    It is a stand-in: that the result is false is likely and not checked. A dropped condition may have been
    superfluous, a converse may hold, and a definition that is changed is another definition rather than a falsehood.

    >>> [one.kind for one in wrong("If `f` is injective, then `f x ≤ f y`.", 0)]
    ['converse', 'sign-exchanged', 'hypothesis-changed']
    """
    random = Random(f"{seed}:{text}")
    options = [(kind, _texts(text, find)) for kind, find in KINDS.items()]
    options = [(kind, texts) for kind, texts in options if texts]
    random.shuffle(options)
    for _, texts in options:
        random.shuffle(texts)
    found, seen = list[Wrong](), {fold(text)}
    for turn in range(max((len(texts) for _, texts in options), default=0)):
        for kind, texts in options:
            if turn < len(texts) and len(found) < n and fold(texts[turn]) not in seen:
                seen.add(fold(texts[turn]))
                found.append(Wrong(kind, texts[turn]))
    return found


def _texts(text: str, find: Callable[[str], list[Change]]) -> list[str]:
    """Return the text with each of the changes that *find* names, one at a time."""
    return [text[: change.start] + change.new + text[change.end :] for change in find(text)]


def _with_code(find: Callable[[str], list[Change]]) -> Callable[[str], list[Change]]:
    """Return the finder of `corruptions`, which knows formulas between dollars, for code between backticks too."""

    def finder(text: str) -> list[Change]:
        if "$" in text or text.count("`") % 2:
            return find(text)
        found = find(text.replace("`", "$"))
        return [Change(one.start, one.end, one.new.replace("$", "`")) for one in found]

    return finder


def exchanged_signs(text: str) -> list[Change]:
    """Return the signs of order, sets and logic in formulas and code, each as its opposite."""
    found: list[Change] = []
    for start, end, _ in spans(text):
        inner = text[start:end]
        if "<" in inner and ">" in inner:
            continue
        found += [
            Change(start + place, start + place + 1, _OPPOSITE[sign])
            for place, sign in enumerate(inner)
            if sign in _OPPOSITE and (sign not in "<>" or inner[place - 1 : place + 2].strip() == sign)
        ]
    return found


def flipped(text: str) -> list[Change]:
    """Return `f ∘ g` as `g ∘ f`, and arrows between two names the other way."""
    return [
        Change(start + match.start(), start + match.end(), f"{match['b']} {match['sign']} {match['a']}")
        for start, end, _ in spans(text)
        for match in _FLIP.finditer(text[start:end])
        if match["a"] != match["b"]
    ]


def negated(text: str) -> list[Change]:
    """Return "is" as "is not", "there exists" as "there does not exist", and "has a" as "has no"."""
    hidden = prose(text)
    found = [Change(match.end("verb"), match.end("verb"), " not") for match in _VERB.finditer(hidden)]
    negative = {"exists": "does not exist", "exist": "do not exist", "is": "is not", "are": "are not"}
    for match in _EXISTS.finditer(hidden):
        found.append(Change(*match.span("verb"), negative[match["verb"].lower()]))
    return found + [Change(*match.span("article"), "no") for match in _HAS.finditer(hidden)]


def dropped_conditions(text: str) -> list[Change]:
    """Return "if A and B, then ..." without "and B"."""
    return [Change(*match.span("dropped"), "") for match in _CONDITION.finditer(prose(text))]


def changed_numbers(text: str) -> list[Change]:
    """Return "two" as "three", and "finite" as "infinite" and back."""
    found = []
    for match in _COUNT.finditer(prose(text)):
        new = _NUMBER[match["word"].lower()]
        new = new.capitalize() if match["word"][0].isupper() else new
        found.append(Change(match.start(), match.end(), article(match["article"] or "", new) + new))
    return found


KINDS: dict[str, Callable[[str], list[Change]]] = {
    **{kind: _with_code(find) for kind, find in corruptions.KINDS.items() if kind != "step-dropped"},
    "sign-exchanged": exchanged_signs,
    "flipped": flipped,
    "negated": negated,
    "condition-dropped": dropped_conditions,
    "number-changed": changed_numbers,
}
