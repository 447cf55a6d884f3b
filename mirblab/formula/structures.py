"""structures: fractions, roots, accents and what else builds a tree above single symbols."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mirblab.formula.reader import BRACKET, DEPTH, ENDS, REST, Line, Reader
from mirblab.formula.scripts import scripted

Span = tuple[int, int]
ACCENTS = {
    "hat": "^", "widehat": "^", "bar": "¯", "overline": "¯", "vec": "→", "tilde": "~", "widetilde": "~", "dot": "˙",
    "ddot": "¨", "dddot": "⃛", "check": "ˇ", "widecheck": "ˇ", "breve": "˘", "acute": "´", "grave": "`",
    "mathring": "˚", "overrightarrow": "→", "overleftarrow": "←", "overleftrightarrow": "↔", "overbrace": "⏞",
    "overbracket": "⎴", "wideparen": "⏜", "overparen": "⏜", "overarc": "⏜",
}  # fmt: skip
UNDER = {
    "underline": "¯", "underbar": "¯", "underbrace": "⏟", "underbracket": "⎵", "underrightarrow": "→",
    "underleftarrow": "←", "utilde": "~", "undertilde": "~",
}  # fmt: skip
ARROWS = {
    "xrightarrow": "→", "xleftarrow": "←", "xleftrightarrow": "↔", "xRightarrow": "⇒", "xLeftarrow": "⇐",
    "xLeftrightarrow": "⇔", "xhookrightarrow": "↪", "xhookleftarrow": "↩", "xmapsto": "↦", "xlongequal": "=",
    "xtwoheadrightarrow": "↠", "xlongrightarrow": "⟶",
}  # fmt: skip


def fraction(reader: Reader, line: Line, token: str) -> None:
    r"""Read `\frac` and its like: numerator over, denominator under."""
    node = reader.put(line, "O!divide", reader.spans[reader.i - 1])
    reader.argument(node, "o", _denominator, node)


def binomial(reader: Reader, line: Line, token: str) -> None:
    r"""Read `\binom`: a fraction between fences, as LaTeXML draws it."""
    span = reader.spans[reader.i - 1]
    fence = reader.put(line, "M!()1x1", span)
    node = reader.add("O!divide", span, fence, "w")
    reader.argument(node, "o", _denominator, node)


def _denominator(reader: Reader, nodes: list[int], node: int) -> None:
    reader.argument(node, "u")


BRACES = frozenset("⏟⏞⎵⎴")
INFIX = {"over": "", "above": "", "atop": "", "choose": "()", "brack": "[]", "brace": "{}"}


def infix(reader: Reader, line: Line, token: str) -> None:
    r"""Read `\over` and its like: what precedes it in its group over what follows; a second one says nothing."""
    span, fence = reader.spans[reader.i - 1], INFIX[token[1:]]
    if (line.kind == REST and not line.groups) or line.depth + len(line.groups) > DEPTH:
        reader.problem(f"{token} left out", reader.i - 1)
        return
    first = min(line.groups[-1][0], len(line.nodes)) if line.groups else 0
    node = reader.wrap(line, first, "O!divide", "o", span)
    if fence:
        reader.wrap(line, first, f"M!{fence}1x1", "w", span)
    reader.open(node, "u", REST)


ENCLOSING = {
    **{"abs": "||", "norm": "∥∥", "Abs": "||", "Norm": "∥∥", "absval": "||", "pqty": "()", "bqty": "[]", "Bqty": "{}"},
    **{"paren": "()", "parens": "()", "brackets": "[]", "set": "{}", "Set": "{}"},
}


def enclosed(reader: Reader, line: Line, token: str) -> None:
    r"""Read `\abs{x}` and its like, of the packages physics and mathtools, as a fence."""
    reader.argument(reader.put(line, f"M!{ENCLOSING[token[1:]]}1x1", reader.spans[reader.i - 1]), "w")


def root(reader: Reader, line: Line, token: str) -> None:
    r"""Read `\sqrt`, its index in front."""
    node = reader.put(line, "O!root", reader.spans[reader.i - 1])
    if reader.tokens[reader.i] == "[":
        reader.i += 1
        reader.open(node, "c", BRACKET, _radicand, node)
    else:
        reader.argument(node, "w")


def _radicand(reader: Reader, nodes: list[int], node: int) -> None:
    reader.argument(node, "w")


def here(reader: Reader, line: Line, after: Callable, data: Any) -> None:
    """Read the next argument as the next nodes of this line, then call *after* with the number of nodes before."""
    parent, relation = (line.nodes[-1], "n") if line.nodes else (line.parent, line.relation)
    reader.argument(parent, relation, _arrived, (line, after, data))


def _arrived(reader: Reader, nodes: list[int], told: tuple) -> None:
    line, after, data = told
    first = len(line.nodes)
    line.nodes += nodes
    after(reader, line, first, data)


def accent(reader: Reader, line: Line, token: str) -> None:
    """Read an accented or overlined base; several nodes are wrapped."""
    name = token[1:]
    mark, relation = (ACCENTS[name], "o") if name in ACCENTS else (UNDER[name], "u")
    here(reader, line, _marked, (mark, relation, reader.spans[reader.i - 1]))


def _marked(reader: Reader, line: Line, first: int, told: tuple[str, str, Span]) -> None:
    mark, relation, span = told
    base = _base(reader, line, first, relation, span)
    reader.place(base, relation)
    reader.ends[base, relation] = reader.add(mark, span, base, relation)
    if mark in BRACES:
        reader.braced.add((base, relation))


def _base(reader: Reader, line: Line, first: int, relation: str, span: Span) -> int:
    """Return the one node that a mark hangs on: a wrapper where there are several, or has a mark there already."""
    base = line.nodes[-1]
    if len(line.nodes) - first > 1 or reader.labels[base] == "O!divide" or (base, relation) in reader.ends:
        reader.wrap(line, first, "M!1x1", "w", span)
    return line.nodes[-1]


def stacked(reader: Reader, line: Line, token: str) -> None:
    r"""Read `\overset`, `\stackrel` and `\underset`: first what is set, then the base."""
    relation = "u" if token == r"\underset" else "o"
    reader.argument(-1, relation, _set, (line, relation, reader.spans[reader.i - 1]))


def _set(reader: Reader, nodes: list[int], told: tuple[Line, str, Span]) -> None:
    line, relation, span = told
    here(reader, line, _based, (nodes, relation, span))


def _based(reader: Reader, line: Line, first: int, told: tuple[list[int], str, Span]) -> None:
    nodes, relation, span = told
    base = _base(reader, line, first, relation, span)
    reader.is_ordered = False
    reader.parents[nodes[0]], reader.relations[nodes[0]] = reader.place(base, relation)
    reader.ends[base, relation] = nodes[-1]


def arrow(reader: Reader, line: Line, token: str) -> None:
    """Read an arrow with text above, and below in brackets."""
    node = reader.put(line, ARROWS[token[1:].rstrip("*")], reader.spans[reader.i - 1])
    if reader.tokens[reader.i] == "[":
        reader.i += 1
        reader.is_ordered = False
        reader.open(node, "u", BRACKET, _over, node)
    else:
        reader.argument(node, "o", scripted, (node, "o"))


def _over(reader: Reader, nodes: list[int], node: int) -> None:
    reader.ends[node, "u"] = nodes[-1]
    reader.argument(node, "o", scripted, (node, "o"))


def negated(reader: Reader, line: Line, token: str) -> None:
    r"""Read `\not` before a relation."""
    if reader.tokens[reader.i] not in ENDS:
        here(reader, line, _negate, reader.spans[reader.i - 1])


NEGATED = dict(zip("=∈<>≤≥⊂⊃⊆⊇∃≡∼≃≅≈∋∣∥→⇒⇔⊢⊨|", "≠∉≮≯≰≱⊄⊅⊈⊉∄≢≁≄≇≉∌∤∦↛⇏⇎⊬⊭∤", strict=True))


def _negate(reader: Reader, line: Line, first: int, span: Span) -> None:
    node = line.nodes[first]
    label = reader.labels[node]
    if label[:2] not in ("O!", "M!", "W!"):
        sign = label[:2] + "¬" + label[2:] if label[1:2] == "!" else "¬" + label
        reader.labels[node] = NEGATED.get(label, sign)
    reader.where[node] = (span[0], max(span[1], reader.where[node][1]))


def modulo(reader: Reader, line: Line, token: str) -> None:
    r"""Read `\pmod` as a fence around mod and its argument."""
    span = reader.spans[reader.i - 1]
    if token == r"\pmod":
        parent, hang = reader.put(line, "M!()1x1", span), "w"
        parent = reader.add("mod", span, parent, hang)
        reader.argument(parent, "n")
    else:  # \pod
        reader.argument(reader.put(line, "M!()1x1", span), "w")
