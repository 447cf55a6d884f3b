"""tangent: the strings in which Tangent writes layout and operator trees."""

from __future__ import annotations

import re

from mirblab.errors import MirblabError
from mirblab.formula.nodes import Node, flatten
from mirblab.formula.tree import OPERANDS, Tree

_PART = re.compile(r"(?:,([0-9A-Za-z]))?\[([^\[\],]*)|\]")
_NAMES = {"comma": ",", "lsqb": "[", "rsqb": "]", "quest": "?", "lt": "<", "gt": ">", "amp": "&"}
_ENTITY = re.compile(f"&({'|'.join(_NAMES)});")
# What Tangent escapes, and an ampersand that would read as one of its entities.
_ESCAPED = re.compile(rf"[,\[\]?]|&(?=(?:{'|'.join(_NAMES)});)")
_ENTITIES = {",": "&comma;", "[": "&lsqb;", "]": "&rsqb;", "?": "&quest;", "&": "&amp;"}
_QUOTED = re.compile(r'\\?"(\[.*\])\\?"', re.DOTALL)
_QUOTE = re.compile(r'\\?"\\?"')
# The next symbol comes first, then the others as Tangent writes them most often.
_WRITTEN = {relation: place for place, relation in enumerate("nabcdouwe")}


def read(text: str) -> Tree:
    """Return the tree of a Tangent string, layout or operator tree; the empty tree for an empty string.

    Children come back in reading order, whatever their order in *text*. A string that still carries the quotes of a
    CSV file (the judged formulas of ARQMath have 24) is unquoted first. Raises MirblabError that names the position
    (in characters, from 1) of what is malformed. Takes time linear in the length, and no stack.

    >>> read("[V!f[M!()1x2,w[V!x[&comma;],e[N!2]]]]").labels
    ['V!f', 'M!()1x2', 'V!x', ',', 'N!2']
    >>> read("[V!x[+]")
    Traceback (most recent call last):
    mirblab.errors.MirblabError: malformed tree string at character 7, its end: 1 bracket is not closed; found '[V!x[+]'
    """
    text = text.strip()
    if (quoted := _QUOTED.fullmatch(text)) is not None:
        text = _QUOTE.sub('"', quoted[1])
    root: Node | None = None
    opened: list[Node] = []
    end = 0
    for part in _PART.finditer(text):
        if part.start() != end or (root is not None and not opened):
            break
        relation, label = part.groups()
        if label is None:
            if not opened:
                break
            opened.pop()
        else:
            node = Node(_ENTITY.sub(_character, label) if "&" in label else label)
            if opened:
                opened[-1].children.append((relation or "n", node))
            elif relation:
                break
            root = root or node
            opened.append(node)
        end = part.end()
    if end != len(text):
        raise _malformed(text, end, f"neither a bracket nor a comma and one of {OPERANDS} before a bracket")
    if opened:
        raise _malformed(text, end, f"{len(opened)} bracket{'s are' if len(opened) > 1 else ' is'} not closed")
    return flatten(root)


def write(tree: Tree) -> str:
    """Return the Tangent string of *tree*, such that `read` gives the same tree; an empty one for the empty tree.

    >>> write(Tree(["V!x", "N!2", "=", "?"], [-1, 0, 0, 2], "-ann"))
    '[V!x[=[&quest;]],a[N!2]]'
    """
    below: list[list[int]] = [[] for _ in tree.labels]
    for parent, child, _ in tree.edges():
        below[parent].append(child)
    is_layout = not any(relation in "0123456789" for relation in tree.relations)
    written: list[str] = []
    waiting: list[int] = [0] if len(tree) else []
    while waiting:
        node = waiting.pop()
        if node < 0:
            written.append("]")
            continue
        relation = tree.relations[node]
        written.append("[" if relation == "-" or (relation == "n" and is_layout) else f",{relation}[")
        written.append(_ESCAPED.sub(_entity, tree.labels[node]))
        waiting.append(-1)
        children = below[node]
        if len(children) > 1 and is_layout:
            children = sorted(children, key=lambda child: _WRITTEN.get(tree.relations[child], 9))
        waiting.extend(reversed(children))
    return "".join(written)


def _character(entity: re.Match[str]) -> str:
    return _NAMES[entity[1]]


def _entity(character: re.Match[str]) -> str:
    return _ENTITIES[character[0]]


def _malformed(text: str, end: int, what: str) -> MirblabError:
    place = "its end" if end == len(text) else repr(text[end : end + 20])
    found = text if len(text) <= 60 else text[:57] + "..."
    return MirblabError(
        f"malformed tree string at character {end + (end < len(text))}, {place}: {what}; found {found!r}"
    )
