"""blueprint_attributes: nodes of a blueprint that stand in Lean, `@[blueprint "label" (statement := ...)]`.

They are those of LeanArchitect: several declarations with one label make one node, and a node without a label has the
name of its declaration. What the attribute says of uses, proof and state is passed over.
"""

from __future__ import annotations

import re
from collections import Counter

from mirblab.sources import latex, lean_code
from mirblab.sources.blueprint_commands import closing
from mirblab.sources.blueprint_lean import Lean
from mirblab.sources.blueprint_nodes import Node, cleaned

_BLUEPRINT = re.compile(r"(?<![\w.'])blueprint\??(?![\w.'])")
_LABEL = re.compile(r'\s*"([^"\n]*)"')
_OPTION = re.compile(r"\(\s*(\w+)\s*:=\s*")
_KINDS = {"theorem": "theorem", "lemma": "theorem"}


def read(lean: Lean, file: str, odd: Counter[str]) -> list[Node]:
    r"""Return the nodes of one Lean file, one for each attribute; those with one label are not joined yet.

    >>> from mirblab.sources import blueprint_lean
    >>> code = '@[simp, blueprint "l" (title := "T") (statement := /-- One \\ref{x}. -/)]\ntheorem a : b := c'
    >>> read(blueprint_lean.read(code), "A.lean", Counter())
    [Node(label='l', text='One [ref].', names=[['a']], source='attribute', kind='theorem', title='T', file='A.lean')]
    """
    nodes: list[Node] = []
    for declaration in lean.declarations:
        for inside in declaration.attributes:
            kind = _KINDS.get(declaration.kind, "definition")
            nodes += _nodes(inside, [[declaration.name]], kind, file, odd)
    for inside, names in lean.marked:
        nodes += _nodes(inside, names, "", file, odd)
    return nodes


def _nodes(inside: str, names: list[list[str]], kind: str, file: str, odd: Counter[str]) -> list[Node]:
    """Return the nodes of one `@[...]`: one, or none when it says nothing of a blueprint."""
    if "blueprint" not in inside:
        return []
    masked = lean_code.blanked(inside)
    found = _BLUEPRINT.search(masked)
    if found is None:
        return []
    given = inside[found.end() : _end(masked, found.end())]
    named, told = _LABEL.match(given), options(given)
    label = (
        told.get("latexLabel")
        or (named[1].strip() if named else "")
        or next((name for each in names for name in each), "")
    )
    text = cleaned(latex.strip_comments(told.get("statement", "")), odd)
    title = cleaned(told.get("title", ""), odd)
    return [Node(label, text, names, "attribute", told.get("latexEnv", kind), title, file)]


def _end(masked: str, start: int) -> int:
    """Return where the attribute ends that begins before *start*: at a comma or bracket that is not its own."""
    depth = 0
    for at in range(start, len(masked)):
        if depth == 0 and masked[at] in ",)]":
            return at
        depth += (masked[at] in "([") - (masked[at] in ")]")
    return len(masked)


def options(given: str) -> dict[str, str]:
    r"""Return the options of an attribute by name: of a docstring or text what stands in it.

    >>> options(r'"l" (title := "A \\alpha") (statement := /-- B -/) (hasProof := true)')
    {'title': 'A \\alpha', 'statement': 'B', 'hasProof': 'true'}
    """
    masked, found = lean_code.blanked(given), {}
    at = 0
    while option := _OPTION.search(masked, at):
        at = closing(masked, option.start(), len(masked))
        # In the blanked text a docstring is nothing but blanks, which the pattern has taken, too.
        begin = given.index(":=", option.start()) + 2
        found[option[1]] = _value(given[begin:at].strip())
    return found


def _value(text: str) -> str:
    if text.startswith("/-"):
        return re.sub(r"\A/-[-!]?|-/\Z", "", text).strip()
    if text.startswith('"'):
        return re.sub(r"\\(.)", r"\1", text[1:-1]).strip()
    return text
