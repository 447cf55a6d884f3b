"""blueprint_binders: binders of Lean source, and which names a piece of Lean mentions that it does not bind itself."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

# As Lean's lexer has them: no λ, Π or Σ, and superscripts such as the complement's are operators, not letters.
_START = (
    "A-Za-z_\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u017f\u0391-\u039f\u03a1\u03a2\u03a4-\u03a9\u03b1-\u03ba\u03bc-\u03fb"
)
_START += "\u1f00-\u1ffe\u2100-\u214f\U0001d49c-\U0001d59f"
_REST = _START + "0-9'!?\u2080-\u2089\u2090-\u209c\u1d62-\u1d6a\u2c7c"
ATOM = rf"(?:[{_START}][{_REST}]*|«[^»\n]*»)"
NAME = rf"{ATOM}(?:\.{ATOM})*"
OPENING, CLOSING = "([{⟨⦃", ")]}⟩⦄"
_TOKEN = re.compile(
    rf"""(?<=\()(?P<argument>{ATOM})\s*:=
    |(?P<binds>∀[ᶠᵐ]?|∃[!ᶠᵐ]?|∑'?|∏'?|∫⁻?|∮|⨍⁻?|⋃|⋂|⨆|⨅|⨁|[λΣΠ]|(?:fun|let|have)(?![{_REST}.]))
    |(?P<stop>↦|=>|:=|,|(?:in|with)(?![{_REST}.]))
    |(?<!\w)(?<!(?<!\.)\.)(?P<name>{ATOM})(?:\.{ATOM})*
    |(?P<open>[(\[{{⟨⦃])|(?P<close>[)\]}}⟩⦄])|(?P<other>[^\s\w.])""",
    re.VERBOSE,
)
_SET = re.compile(rf"\s*({ATOM}(?:\s+{ATOM})*)\s*(?:\||∈|//|:(?!=))")
_TYPED = re.compile(rf"\s*((?:{ATOM}\s+)*{ATOM})\s*:(?!=)\s*", re.DOTALL)


@dataclass(frozen=True)
class Binder:
    """One bound name with its type: `style` is the opening bracket; an instance without a name has the name ""."""

    style: str
    name: str
    type: str

    @property
    def is_instance(self) -> bool:
        """Return whether the binder stands in square brackets."""
        return self.style == "["


def groups(text: str) -> tuple[list[str], int]:
    """Return the bracketed groups at the beginning of *text*, and where what follows them begins.

    >>> groups("{a : A} [B a] (h : (a)) : c (d)")
    (['{a : A}', '[B a]', '(h : (a))'], 24)
    """
    found: list[str] = []
    at, depth, begin = 0, 0, 0
    for match in re.compile(r"\S").finditer(text):
        sign = match.group()
        if depth == 0 and sign not in OPENING:
            break
        begin = match.start() if depth == 0 else begin
        depth += (sign in OPENING) - (sign in CLOSING)
        if depth == 0:
            at = match.end()
            found.append(text[begin:at])
    return found, len(text) - len(text[at:].lstrip())


def binders(group: str) -> list[Binder]:
    """Return the names that one bracketed group binds; a type that is not given is "".

    >>> binders("(x y : A)")
    [Binder(style='(', name='x', type='A'), Binder(style='(', name='y', type='A')]
    >>> binders("[B a]"), binders("{x}")
    ([Binder(style='[', name='', type='B a')], [Binder(style='{', name='x', type='')])
    """
    style, inner = group[0], " ".join(group[1:-1].split())
    if typed := _TYPED.match(inner):
        return [Binder(style, name, inner[typed.end() :]) for name in typed[1].split()]
    if style == "[":
        return [Binder(style, "", inner)]
    return [Binder(style, name, "") for name in re.findall(ATOM, inner)]


def shown(chosen: list[Binder]) -> str:
    """Return binders as Lean writes them, neighbours of one type in one group.

    >>> shown([*binders("{x y : A}"), *binders("[B x]")])
    '{x y : A} [B x]'
    """
    parts: list[tuple[str, list[str], str]] = []
    for binder in chosen:
        if parts and binder.name and not binder.is_instance and parts[-1][::2] == (binder.style, binder.type):
            parts[-1][1].append(binder.name)
        else:
            parts.append((binder.style, [binder.name], binder.type))
    return " ".join(_group(*part) for part in parts)


def _group(style: str, names: list[str], kind: str) -> str:
    inner = " : ".join(part for part in (" ".join(names), kind) if part)
    return style + inner + CLOSING[OPENING.index(style)]


def mentioned(text: str) -> set[str]:
    """Return the names that *text* mentions without binding them; of `a.b` the name `a`.

    Quantifiers, sums, lambdas and the like bind up to the end of the bracket that they stand in; the name of an
    argument or field, `(a := b)`, is no mention. Notations of a project's own that bind are not known.

    >>> sorted(mentioned("(∑ x ∈ s, f x) = {y | y < z} ∧ g (n := m) w.1"))
    ['f', 'g', 'm', 's', 'w', 'z']
    """
    return set(_free(text))


def _free(text: str) -> Iterator[str]:
    bound: list[set[str]] = [set()]
    times: Counter[str] = Counter()  # in how many of these sets a name is
    binding: list[str] = [""]  # by bracket: what opened it while its names are being bound, as between `fun` and `↦`
    for token in _TOKEN.finditer(text):
        kind, sign, name = str(token.lastgroup), token.group(), token["name"]
        if kind == "open":
            in_set = _SET.match(text, token.end()) if sign == "{" and not binding[-1] else None
            bound.append(set(in_set[1].split()) if in_set else set())
            times.update(bound[-1])
            binding.append(sign if binding[-1] else "")
        elif kind == "close" and len(bound) > 1:
            names = bound.pop()
            times.subtract(names)
            binding.pop()
            if binding[-1]:
                times.update(names - bound[-1])
                bound[-1] |= names
        elif kind == "binds":
            binding[-1] = "fun"
        elif kind in ("stop", "other") and (sign, binding[-1]) != (",", "⟨"):
            binding[-1] = ""  # after the colon or the ∈ of a binder stands its type
        elif kind == "name" and binding[-1]:
            times[name] += name not in bound[-1]
            bound[-1].add(name)
        elif kind == "name" and not times[name]:
            yield name
