"""letters: the fonts of MathML as Unicode's mathematical letters."""

from __future__ import annotations

import unicodedata

_NAMES = {
    "bold": "BOLD",
    "italic": "",
    "normal": "",
    "bold-italic": "BOLD",
    "double-struck": "DOUBLE-STRUCK",
    "script": "SCRIPT",
    "bold-script": "BOLD SCRIPT",
    "fraktur": "FRAKTUR",
    "bold-fraktur": "BOLD FRAKTUR",
    "sans-serif": "SANS-SERIF",
    "bold-sans-serif": "SANS-SERIF BOLD",
    "sans-serif-italic": "SANS-SERIF ITALIC",
    "sans-serif-bold-italic": "SANS-SERIF BOLD ITALIC",
    "monospace": "MONOSPACE",
}


def styled(text: str, variant: str) -> str:
    """Return *text* in the letters of a `mathvariant`; italic and unknown ones change nothing.

    >>> styled("Rx", "double-struck"), styled("H", "fraktur"), styled("x", "normal"), styled("+", "bold")
    ('ℝ𝕩', 'ℌ', 'x', '+')
    """
    name = _NAMES.get(variant, "")
    return "".join(_letter(character, name) for character in text) if name else text


def _letter(character: str, name: str) -> str:
    plain = unicodedata.name(character, "")
    for alphabet in ("LATIN ", "GREEK "):
        if plain.startswith((f"{alphabet}CAPITAL LETTER ", f"{alphabet}SMALL LETTER ")):
            rest = plain.removeprefix("LATIN ").removeprefix("GREEK ").replace(" LETTER", "")
            older = {"FRAKTUR": "BLACK-LETTER"}.get(name, name)
            for full in (f"MATHEMATICAL {name} {rest}", f"{older} {rest}"):
                try:
                    return unicodedata.lookup(full)
                except KeyError:
                    continue
    if plain.startswith("DIGIT "):
        try:
            return unicodedata.lookup(f"MATHEMATICAL {name} {plain}")
        except KeyError:
            return character
    return character
