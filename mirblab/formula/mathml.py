"""mathml: Presentation MathML to Symbol Layout Trees, as Tangent's converter makes them."""

from __future__ import annotations

from typing import Any, NamedTuple

from mirblab.formula.elements import fold, told
from mirblab.formula.letters import styled
from mirblab.formula.mathml_rows import CLOSING, chain, fenced, is_operator, matrix, wrapped
from mirblab.formula.nodes import Node, flatten
from mirblab.formula.tree import Tree

_SKIP = frozenset({"annotation", "annotation-xml", "mphantom", "mspace", "maligngroup", "malignmark", "mglyph"})
_INVISIBLE = dict.fromkeys(map(ord, "\u2061\u2062\u2063\u2064\u200b\u200c\u200d\u2060\ufeff"))
# What other producers write for the characters that LaTeXML writes.
_SAME = {
    "−": "-", "–": "-", "‖": "∥", "'": "′", "''": "′′", "″": "′′", "‴": "′′′", "⁗": "′′′′", "∕": "/", "||": "∥",
    "‾": "¯", "―": "¯",
}  # fmt: skip
# The sources of ARQMath have HTML's &lt; in formulas, of which LaTeXML made four symbols.
_SIGNS = {("V!&", "V!l", "V!t"): "<", ("V!&", "V!g", "V!t"): ">"}
_TOKENS = {"mi": "V!", "mn": "N!", "mo": "", "mtext": "T!", "ms": "T!"}
_PLACES = {"msub": "b", "msup": "a", "msubsup": "ba", "munder": "u", "mover": "o", "munderover": "uo"}
# These only group, or only say how their content looks: alone in one of them, a bracket is still a bracket.
_PLAIN = frozenset({"mrow", "mstyle", "mpadded", "semantics", "math", "mtd"})


class _Part(NamedTuple):
    """What an element became: its name, its line of symbols, and the cells of a table's row."""

    name: str
    line: list[Node]
    cells: tuple[list[Node], ...] = ()


def parse(xml: str) -> Tree:
    """Return the layout tree of Presentation MathML, and in `problems` what was not understood; it never fails.

    LaTeXML's dialect, as ARQMath ships it, and those of other producers; with or without prefixes, a declaration,
    `<semantics>` and annotations. Entities of HTML are characters; no others are resolved, and no DTD is read.
    NTCIR's query variables become wildcards: `?name`. Takes linear time.

    >>> parse("<math><msup><mi>x</mi><mn>2</mn></msup><mo>=</mo><mn>4</mn></math>").labels
    ['V!x', 'N!2', '=', 'N!4']
    >>> parse("<math><mi>x</math>").problems
    ('<mi> is not closed',)
    """
    problems: list[str] = []

    def build(name: str, attributes: dict[str, str], parts: list[Any]) -> _Part:
        if name in _PLAIN and len(parts) == 1 and isinstance(parts[0], _Part):
            return parts[0]
        return _made(name, attributes, parts, problems)

    parts, faults = fold(xml, build, skip=_SKIP)
    return flatten(chain(_row(parts, problems)), problems=told([*faults, *problems]))


def _made(name: str, attributes: dict[str, str], parts: list[Any], problems: list[str]) -> _Part:
    """Return what an element became; the contents of an unknown one are taken as they are."""
    if name in _TOKENS:
        is_plain = "false" in (attributes.get("fence"), attributes.get("separator"))
        return _Part("plain" if is_plain else name, _token(name, attributes, parts))
    children = [part for part in parts if isinstance(part, _Part)]
    if name in _PLACES and children:
        return _Part(name, _scripts(children, _PLACES[name]))
    if name == "mmultiscripts" and children:
        return _Part(name, _multiscripts(children))
    if name == "mfrac":
        return _Part(name, [_hung("O!divide", children, "ou")])
    if name == "mroot":
        return _Part(name, [_hung("O!root", children, "wc")])
    if name in ("mtr", "mlabeledtr"):
        return _Part("mtr", [], tuple(part.line for part in children[name == "mlabeledtr" :]))
    if name == "mtable":
        return _Part(name, [_table(children)])
    if name == "mfenced":
        return _Part(name, _mfenced(attributes, children))
    if name == "qvar":
        return _Part(name, [Node("?" + (attributes.get("name") or "".join(filter(_is_text, parts)) or "x"))])
    if name == "merror":
        problems.append(f"an error of the producer: {_texts(children)}")
        return _Part(name, [Node("E!")])
    line = _row(parts, problems)
    if name == "msqrt":
        line = [Node("O!root").add("w", chain(line))]
    elif name == "menclose":
        line = [Node(attributes.get("notation") or "longdiv").add("w", chain(line))]
    return _Part(name, line)


def _is_text(part: Any) -> bool:
    return isinstance(part, str)


def _texts(parts: list[_Part]) -> str:
    return " ".join(node.label.removeprefix("T!") for part in parts for node in part.line)[:60]


def _token(name: str, attributes: dict[str, str], parts: list[Any]) -> list[Node]:
    """Return the symbol of a token element, and whatever a producer has put into it besides."""
    text = " ".join(filter(_is_text, parts)).translate(_INVISIBLE).strip()
    if name == "mn":
        text = "".join(text.split())  # between thousands
    elif text in ("−", "–"):
        name = "mo"  # LaTeXML has it as an identifier where the source has the character
    if name == "mo" or "′" in text or "'" in text:
        text = _SAME.get(text, text)
        name = "mo" if len(text) > 1 and not text.strip("′") else name  # LaTeXML once wrote them with <mi>
    elif "mathvariant" in attributes:
        text = styled(text, attributes["mathvariant"])
    is_wildcard = name == "mi" and len(text) > 1 and text[0] == "?"
    line = [Node(text if is_wildcard else _TOKENS[name] + text)] if text else []
    return line + [node for part in parts if isinstance(part, _Part) for node in part.line]


def _row(parts: list[Any], problems: list[str]) -> list[Node]:
    """Return the line of a row, brackets matched; text between elements counts as text."""
    line: list[Node] = []
    loose: list[int] = []
    for part in parts:
        if isinstance(part, str):
            problems.append(f"text outside of an element: {part[:40]!r}")
            part = _Part("", [Node("T!" + part)])
        if len(part.line) == 1 and (part.name == "mo" or part.name in _PLACES):
            loose.append(len(line))
            if part.line[0].label == ";" and (sign := _SIGNS.get(tuple(node.label for node in line[-3:]))):
                del line[-3:], loose[-1]
                part = _Part("", [Node(sign)])
        line += part.line
    return fenced(line, loose)


def _hung(label: str, children: list[_Part], relations: str) -> Node:
    """Return a node with each child's line below it; one without symbols is the empty node."""
    node = Node(label)
    for relation, child in zip(relations, children, strict=False):
        node.add(relation, chain(child.line) or Node("W!"))
    return node


def _scripts(children: list[_Part], relations: str) -> list[Node]:
    """Return a base with its scripts; those of an operator stand above and below it, as Tangent has it."""
    base = children[0].line
    if len(base) == 1 and is_operator(base[0].label) and base[0].label not in CLOSING:
        relations = relations.translate({97: "o", 98: "u"})
    node = wrapped(base, relations)
    for relation, child in zip(relations, children[1:], strict=False):
        if child.name != "none":
            node.add(relation, chain(child.line) or Node("W!"))
    return [node]


def _multiscripts(children: list[_Part]) -> list[Node]:
    """Return a base with scripts behind it (b, a) and in front (d, c), in pairs as MathML lists them."""
    names = [child.name for child in children]
    split = names.index("mprescripts") if "mprescripts" in names else len(children)
    line = children[:1]
    for relations, found in (("ba", children[1:split]), ("dc", children[split + 1 :])):
        for pair in range(0, len(found), 2):
            line = [_Part("", _scripts([line[0], *found[pair : pair + 2]], relations))]
    return line[0].line


def _table(children: list[_Part]) -> Node:
    rows = [list(part.cells) if part.name == "mtr" else [part.line] for part in children]
    columns = max(map(len, rows), default=0)
    if columns * len(rows) > 4 * sum(map(len, rows)) + 100:  # one long row would make a huge table of nothing
        rows = [[cell] for row in rows for cell in row]
        columns = 1
    cells = [row[place] if place < len(row) else [] for row in rows for place in range(columns)]
    return matrix(cells, "", len(rows), columns)


def _mfenced(attributes: dict[str, str], children: list[_Part]) -> list[Node]:
    """Return what brackets and separators written out would give."""
    separators = "".join(attributes.get("separators", ",").split())
    line, loose = [Node(attributes.get("open", "("))], [0]
    for place, child in enumerate(children):
        line += child.line
        if separators and place < len(children) - 1:
            loose.append(len(line))
            line.append(Node(separators[min(place, len(separators) - 1)]))
    loose.append(len(line))
    line.append(Node(attributes.get("close", ")")))
    return [node for node in fenced(line, loose) if node.label]
