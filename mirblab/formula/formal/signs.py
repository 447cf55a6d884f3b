"""signs: what the signs of proof assistants' languages are called in operator trees."""

from __future__ import annotations

from collections.abc import Mapping

from mirblab.formula.operators import ROLES

_NAMES = {"^": "O!SUP", "≡": "U!equivalent", "|": "O!conditional-set", "∪": "U!union", "∩": "U!intersect"}


def operation_name(sign: str, spelled: Mapping[str, str]) -> str:
    """Return the label of a sign as operator trees of LaTeX have it; *spelled* has the Unicode sign of its spellings.

    >>> operation_name("/\\\\", {"/\\\\": "∧"}), operation_name("Ord", {})
    ('U!and', 'Ord')
    """
    common = spelled.get(sign, sign)
    return _NAMES.get(common) or ROLES.get(common, (0, common))[1]


def parse_spellings(text: str) -> dict[str, str]:
    """Return the Unicode sign of each spelling; a line of *text* has a Unicode sign and its spellings."""
    lines = [line.split() for line in text.strip().splitlines()]
    return {sign: line[0] for line in lines for sign in line}
