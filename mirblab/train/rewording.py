"""rewording: statements in other words by rules that keep their meaning; a stand-in where no chat model is at hand."""

from __future__ import annotations

import re
from dataclasses import dataclass
from random import Random

from mirblab.train.renaming import prose, rename

VERSION = 1  # of the rules; part of what identifies a rewording
_F = "[`$]"  # a formula or a piece of code begins; what is inside is hidden from the rules
_BEGIN = r"(?:\A|(?<=\. )|(?<=: ))"
_CLAUSE = r"(?:(?!\b(?:then|otherwise|only|unless|else|whenever|respectively)\b|[.;:](?:\s|\Z)|\n).)"
_END = r"(?=\.(?:\s+(?!otherwise|else|conversely)|\Z)|\Z)"


@dataclass(frozen=True)
class Rule:
    """One thing that can be said in several ways: where it stands, and all its ways; `{a}` is the pattern's group a."""

    name: str
    pattern: re.Pattern[str]
    choices: tuple[str, ...]


@dataclass(frozen=True)
class Reworded:
    """A text in other words, and by which rules: their names, and "letters" when variables have other ones."""

    text: str
    rules: list[str]


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


def reword(text: str, seed: str | int, letters: bool = True) -> Reworded:
    """Return *text* in other words wherever a rule of `RULES` applies, and with other *letters* for its variables.

    Rules look at prose only, what is in formulas and code stays but for its letters (`renaming.rename`). Deterministic
    by *seed* and text. A text to which nothing applies comes back as it is, with no rules.

    It is a stand-in: sentences keep their order and most of their words, so it teaches an encoder far less than what
    a language model writes. The rules were chosen so that each keeps the meaning, and read over on real statements;
    that the new text says the same is not proved, and now and then its English is stiff.

    >>> reword("If `n` is even, then there exists a `k` such that `n = 2 * k`.", 1).text
    'Suppose that `l` is even. Then there is an `r` with the property that `l = 2 * r`.'
    """
    random, used, words = Random(f"{seed}:{text}"), list[str](), text
    for rule in RULES:
        hidden = prose(words)
        for match in reversed(list(rule.pattern.finditer(hidden))):
            new = _chosen(rule, words, match, random)
            if new != words[match.start() : match.end()]:
                words = words[: match.start()] + new + words[match.end() :]
                used.append(rule.name)
    renamed = rename(words, seed) if letters else None
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
