"""topic_rules: our own rules for what kind of question a topic is: cue words, share of formulas, tags."""

from __future__ import annotations

import re
from collections.abc import Sequence

_FORMULA = re.compile(r"\$\$.+?\$\$|\$[^$]+\$", re.DOTALL)
_CUES = {
    "Proof": r"prov(?:e[sdn]?|ing)|proofs?|show(?:s|ing|n)? that|show|disprove|counter-?examples?|induction|"
    r"contradiction|verify|if and only if|implies",
    "Calculation": r"comput\w*|calculat\w*|evaluat\w*|find(?:ing)?|determin(?:e|ing)|solv(?:e|ing)|solutions?|"
    r"simplif\w*|integrat(?:e|ing)|differentiat(?:e|ing)|factor(?:ing|i[sz]e)?|how many|sum of|values? of|"
    r"probability that",
    "Concept": r"what (?:is|are|does|do)|why|mean(?:s|ing)?|defin(?:e|ed|ition|itions)|understand(?:ing)?|intuit\w*|"
    r"difference between|explain|explanation|interpret\w*|references?|examples? of|is it (?:true|possible)|"
    r"when (?:is|does)",
}
_FOUND = {name: re.compile(rf"\b(?:{cues})\b", re.IGNORECASE) for name, cues in _CUES.items()}
_FEW, _MOST = 0.2, 0.4  # shares of the characters that stand in formulas
_SCHOOL = re.compile(
    r"precalculus|calculus|arithmetic|trigonometr|elementary|percentages|fractions|word-problem|quadratics|"
    r"linear-equations|systems-of-equations|puzzle|limits|integration|derivatives"
)
_ADVANCED = re.compile(
    r"algebraic-|categor|measure-theory|functional-analysis|topology|manifold|homolog|representation-theory|galois|"
    r"commutative-algebra|differential-geometry|stochastic|operator|lie-|sobolev|pde|partial-differential|"
    r"(?<!elementary-)set-theory|model-theory|martingale|scheme|abstract-algebra|analytic-number|riemannian|logic"
)


def category(text: str) -> str:
    """Return Proof, Calculation or Concept: the one with most cue words outside the formulas, in this order on ties.

    Each cue counts once however often it comes; those in the first fifteen words, where the title is, count twice.
    A text without any is Concept.

    >>> category("Prove that $n^2$ is even"), category("Find the sum $1+2$"), category("Why is it called a group?")
    ('Proof', 'Calculation', 'Concept')
    """
    words = _FORMULA.sub(" ", text)
    title = " ".join(words.split()[:15])
    counts = {name: len(_cues(pattern, words)) + len(_cues(pattern, title)) for name, pattern in _FOUND.items()}
    best = max(counts, key=lambda name: counts[name])
    return best if counts[best] else "Concept"


def _cues(pattern: re.Pattern[str], text: str) -> set[str]:
    return {found.lower() for found in pattern.findall(text)}


def dependency(text: str) -> str:
    """Return Text when under 20 % of the characters stand in formulas, Formula from 40 % on, else Both.

    >>> dependency("What is a group?"), dependency("$x^2+1=0$ over $Z$?"), dependency("Is the group $(Z,+)$ cyclic?")
    ('Text', 'Formula', 'Both')
    """
    share = sum(map(len, _FORMULA.findall(text))) / max(len(text.strip()), 1)
    return "Text" if share < _FEW else "Formula" if share >= _MOST else "Both"


def difficulty(tags: Sequence[str]) -> str | None:
    """Return High when a tag is of graduate mathematics, else Low when one is of school or first year, else Medium.

    None without tags.

    >>> difficulty(["calculus", "limits"]), difficulty(["calculus", "measure-theory"]), difficulty(["matrices"])
    ('Low', 'High', 'Medium')
    """
    if not tags:
        return None
    if any(_ADVANCED.search(tag) for tag in tags):
        return "High"
    return "Low" if any(_SCHOOL.search(tag) for tag in tags) else "Medium"
