"""rules: the table of all rewritings of statements and formulas that keep the meaning or change it."""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random
from typing import NamedTuple

from mirblab.core.errors import check_known
from mirblab.data.near_duplicates import fold_text
from mirblab.formula.rewriting import formulas, logic, statements

KEEPS, CHANGES = "keeps", "changes"


# Where products need not commute.
_NOT_COMMUTATIVE = re.compile(
    r"group|ring\b|rings\b|algebra|matri|operator|commut|permut|quaternion|noid\b|braid", re.I
)


class Rule(NamedTuple):
    """A rewriting: its name, whether it `keeps` or `changes` the meaning, and all new texts that it makes of a text.

    `applies_to` is "formula" for rules that are checked by the values of the formula, "statement" for the others.
    """

    name: str
    effect: str
    applies_to: str
    rewrite: Callable[[str, str], list[str]]


def rewrite_text(text: str, rule: str, seed: int = 0, *, bare: bool = False) -> str | None:
    r"""Return *text* rewritten once by the *rule* of that name, or None where the rule does not apply.

    Of several places one is drawn; equal *seed*s and texts give equal results. With *bare* the text is one formula
    without delimiters. MirblabError for an unknown rule.

    >>> rewrite_text(r"If $x < y$ then it is not $\frac{y}{2}$.", "strictness-changed")
    'If $x \\le y$ then it is not $\\frac{y}{2}$.'
    """
    check_known("rule", [rule], list(RULES))
    if bare and "$" in text:
        return None
    read = f"${text}$" if bare else text
    found = [new for new in RULES[rule].rewrite(read, str(seed)) if fold_text(new) != fold_text(read)]
    new = Random(f"{seed}:{rule}:{text}").choice(found) if found else None
    return new[1:-1] if bare and new is not None else new


def _formula_rule(name: str) -> Callable[[str, str], list[str]]:
    def rewrite(text: str, seed: str) -> list[str]:
        if name == "product-commuted" and _NOT_COMMUTATIVE.search(text):
            return []
        return [
            text[:start] + new + text[end:]
            for start, end, is_latex in statements.formula_spans(text)
            if is_latex
            for new in formulas.rewrite_formula(text[start:end], name)
        ]

    return rewrite


def _changing_rule(name: str) -> Callable[[str, str], list[str]]:
    find = statements.CHANGE_FINDERS[name]
    return lambda text, seed: [text[: one.start] + one.new + text[one.end :] for one in find(text)]


RULES: dict[str, Rule] = {
    rule.name: rule
    for rule in (
        Rule("words", KEEPS, "statement", lambda text, seed: [statements.reword(text, seed, letters=False).text]),
        Rule("synonyms", KEEPS, "statement", lambda text, seed: statements.exchange_synonyms(text)),
        Rule("letters", KEEPS, "statement", lambda text, seed: [statements.rename_variables(text, seed).text]),
        *(Rule(name, KEEPS, "formula", _formula_rule(name)) for name in formulas.KEEPING),
        *(Rule(name, CHANGES, "formula", _formula_rule(name)) for name in formulas.CHANGING),
        *(Rule(name, CHANGES, "statement", _changing_rule(name)) for name in statements.CHANGE_FINDERS),
        Rule("contraposed", KEEPS, "statement", lambda text, seed: logic.contrapose(text)),
        Rule("definition-expanded", KEEPS, "statement", lambda text, seed: logic.expand_definitions(text)),
        Rule("instantiated", CHANGES, "statement", logic.instantiate),
    )
}
