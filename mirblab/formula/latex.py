"""latex: a formula in LaTeX to its Symbol Layout Tree, whatever is wrong with it."""

from __future__ import annotations

from collections.abc import Mapping

from mirblab.formula import lexer
from mirblab.formula.differentials import mark
from mirblab.formula.handlers import HANDLERS, unknown
from mirblab.formula.macros import expand
from mirblab.formula.reader import GONE, SINGLE, Reader
from mirblab.formula.tree import RELATIONS, Tree

LENGTH = 50_000  # characters; what is longer is cut off


def parse(latex: str, macros: Mapping[str, str] | None = None) -> Tree:
    r"""Return the layout tree of a formula; an empty tree where there is nothing to see. It fails for no string.

    Labels are Tangent's, as it makes them from LaTeXML's MathML, so that LaTeX and MathML give the same trees.
    `spans` are the places in *latex* of what the user wrote for each node: its symbol or its command, without the
    arguments, which have nodes of their own. `problems` says what was guessed or left out, and where first. *macros*
    are the author's commands with their backslash, and what they stand for, with `#1` to `#9` for arguments. What is
    longer than 50,000 characters is cut off, what is nested deeper than 200 left out. Takes linear time, and no stack.

    >>> tree = parse(r"\frac{x^2}{2} + \RP(n)", {r"\RP": r"\mathbb{P}_\R"})
    >>> tree.labels
    ['O!divide', 'V!x', 'N!2', 'N!2', '+', 'V!ℙ', 'V!ℝ', 'M!()1x1', 'V!n']
    >>> tree.relations, tree.spans[:4]
    ('-oaunnbnw', [(0, 5), (6, 7), (8, 9), (11, 12)])
    >>> parse(r"\sqrt{x} + \whatever").problems
    ('unknown command \\whatever at 11',)
    """
    source, places = lexer.unescape(latex[:LENGTH])
    tokens, spans = lexer.cut(source)
    is_cut = False
    if macros and not macros.keys().isdisjoint(tokens):
        tokens, spans, is_cut = expand(tokens, spans, macros)
    reader = Reader(source, tokens, spans)
    if is_cut:
        reader.problem("macros that go on for ever: expanded only in part", len(tokens) - 1)
    if len(latex) > LENGTH:
        reader.problem(f"longer than {LENGTH} characters: cut off", len(tokens) - 1)
    _run(reader)
    return _tree(reader, places)


def _run(reader: Reader) -> None:
    """Read all tokens: what is one node by itself here, everything else by its handler."""
    tokens, spans, stack = reader.tokens, reader.spans, reader.stack
    labels, parents, relations, where = reader.labels, reader.parents, reader.relations, reader.where
    while stack:
        line = stack[-1]
        nodes, plain, i = line.nodes, line.plain, reader.i
        if line.kind == SINGLE and nodes:
            reader.close(line)
            continue
        while True:
            token = tokens[i]
            label = plain.get(token)
            if label is None:
                reader.i = i + 1
                HANDLERS.get(token, unknown)(reader, line, token)
                break
            if nodes:
                parents.append(nodes[-1])
                relations.append("n")
            else:
                parents.append(line.parent)
                relations.append(line.relation)
            nodes.append(len(labels))
            labels.append(label)
            where.append(spans[i])
            i += 1
            reader.i = i


def _tree(reader: Reader, places: list[int] | None) -> Tree:
    """Return the tree of what was read, in reading order."""
    labels, parents, relations, where = reader.labels, reader.parents, reader.relations, reader.where
    if reader.bare:
        _in_front(reader)
    if not reader.is_ordered:
        order = _order(parents, relations)
        new = {node: place for place, node in enumerate(order)} | {-1: -1}
        labels, relations = [labels[node] for node in order], [relations[node] for node in order]
        where, parents = [where[node] for node in order], [new[parents[node]] for node in order]
    if reader.has_integral:
        mark(labels, parents, relations)
    if places is not None:
        where = [(places[start], places[end]) for start, end in where]
    problems = [f"{what} at {places[start] if places else start}" for what, start in reader.problems.items()]
    return Tree(labels, parents, "".join(relations), where, tuple(problems))


def _in_front(reader: Reader) -> None:
    """Make scripts without a base those in front of the next symbol, as LaTeXML has them; there must be one."""
    labels, parents, relations = reader.labels, reader.parents, reader.relations
    bare = set(reader.bare)
    after = {parent: node for node, parent in enumerate(parents) if parent in bare and relations[node] == "n"}
    after = {node: base for node, base in after.items() if labels[base] not in _HAVE_THEIRS}
    for node, parent in enumerate(parents):
        if parent in after and relations[node] in "ab":
            parents[node], relations[node] = after[parent], "c" if relations[node] == "a" else "d"
    for node, base in after.items():
        parents[base], relations[base], parents[node] = parents[node], relations[node], GONE
        reader.is_ordered = False


_HAVE_THEIRS = frozenset(("O!root", "W!"))  # a root has its index there


def _order(parents: list[int], relations: list[str]) -> list[int]:
    """Return the nodes depth first, siblings by RELATIONS."""
    below: list[list[int]] = [[] for _ in parents]
    waiting = []
    for node, parent in enumerate(parents):
        if parent == -1:
            waiting.append(node)
        elif parent != GONE:
            below[parent].append(node)
    order = []
    while waiting:
        node = waiting.pop()
        order.append(node)
        children = below[node]
        if len(children) > 1:
            children.sort(key=lambda child: -RELATIONS.index(relations[child]))
        waiting += children
    return order
