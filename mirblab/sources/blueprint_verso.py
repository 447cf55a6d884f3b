"""blueprint_verso: nodes of a blueprint that is written in Verso, `:::theorem "label" (lean := "Name")`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator

from mirblab.sources import blueprint_lean, blueprint_nodes
from mirblab.sources.blueprint_lean import Lean
from mirblab.sources.blueprint_nodes import Node, cleaned

_OPENS = re.compile(
    r'^(?P<colons>:{3,})[ \t]*(?P<kind>[A-Za-z_]+)[ \t]*(?:"(?P<label>[^"\n]*)")?'
    r'(?P<options>(?:\s*\(\s*\w+\s*:=\s*(?:"[^"]*"|[^()"\s]+)\s*\))*)[ \t]*$',
    re.MULTILINE,
)
_OPTION = re.compile(r'\(\s*(\w+)\s*:=\s*(?:"([^"]*)"|([^()"\s]+))')
_FENCE = re.compile(r"^(?P<mark>`{3,})[ \t]*(?P<kind>\w*)(?P<given>[^\n]*)\n", re.MULTILINE)
_INNER = re.compile(r"^(?P<mark>:{3,})[^\n:]+\n", re.MULTILINE)
_FORMULA = re.compile(r"(?P<dollars>\$\$?)(?P<ticks>`+)(?P<latex>.+?)(?P=ticks)(?!`)", re.DOTALL)
_ROLE = re.compile(r"\{[A-Za-z][^{}]*\}\[([^][]*)\]")
_CODE_ROLE = re.compile(r"\{[A-Za-z][^{}]*\}(?=`)")
_STRONG = re.compile(r"(?<![\w*])(\*{1,2}|_)(?=\S)([^*\n]{1,500}?)(?<=\S)\1(?![\w*])")


def read(prose: str, known: Collection[str], file: str, odd: Counter[str]) -> tuple[list[Node], list[Lean]]:
    """Return the nodes of the Verso part of a file, and what its Lean code declares.

    A node names declarations by `(lean := "A, B")` or in a block of Lean code with its label; a block of LaTeX may
    hold the same node once more. Code is no part of a statement.

    >>> read(':::lemma_ "s" (lean := "A.s")\\nLet $`x` be {uses "b"}[big].\\n:::', ["lemma"], "", Counter())[0]
    [Node(label='s', text='Let $x$ be big.', names=[['A.s']], source='verso', kind='lemma', title='', file='')]
    """
    nodes: list[Node] = []
    code: list[Lean] = []
    fences, rest = _marked(prose, _FENCE)
    for fence, inside in fences:
        label = re.search(r'"([^"]*)"', fence["given"])
        if fence["kind"] == "lean":
            code.append(blueprint_lean.read(inside))
            names = [[declaration.name] for declaration in code[-1].declarations]
            nodes += [Node(label[1].strip(), "", names, "verso", file=file)] if label and names else []
        elif fence["kind"] in ("tex", "latex"):
            nodes += blueprint_nodes.read(inside, known, file, odd)
    nodes += _blocks(rest, known, file, odd)
    return nodes, code


def _marked(text: str, opens: re.Pattern[str]) -> tuple[list[tuple[re.Match[str], str]], str]:
    """Return what stands between lines of a mark and lines of the same mark alone, with the openings, and the rest."""
    found: list[tuple[re.Match[str], str]] = []
    rest: list[str] = []
    endless: set[str] = set()
    at = place = 0
    while opened := opens.search(text, place):
        place = opened.end()
        closed = None if opened["mark"] in endless else _closing(opened["mark"]).search(text, place)
        if closed is None:
            endless.add(opened["mark"])
            continue
        found.append((opened, text[place : closed.start()]))
        rest.append(text[at : opened.start()])
        at = place = closed.end()
    return found, "".join([*rest, text[at:]])


def _closing(mark: str) -> re.Pattern[str]:
    return re.compile(rf"^{mark}[ \t]*$", re.MULTILINE)


def _blocks(prose: str, known: Collection[str], file: str, odd: Counter[str]) -> Iterator[Node]:
    endless: set[str] = set()
    for opened in _OPENS.finditer(prose):
        kind = opened["kind"].rstrip("_")
        if kind not in known:
            continue
        colons = opened["colons"]
        closed = None if colons in endless else _closing(colons).search(prose, opened.end())
        if closed is None:
            endless.add(colons)
            odd["blocks of Verso that do not end"] += 1
            continue
        options = {name: text or word for name, text, word in _OPTION.findall(opened["options"])}
        names = [[name] for each in options.get("lean", "").split(",") if (name := each.strip())]
        text = cleaned(plain(prose[opened.end() : closed.start()]), odd)
        yield Node((opened["label"] or "").strip(), text, names, "verso", kind, options.get("title", ""), file)


def plain(text: str) -> str:
    """Return Verso's markup as LaTeX, without blocks that stand in it; a reference without words becomes `[ref]`.

    >>> plain('By {uses "a"}[], *all* $`f_*` and {lean}`g` with $$`x*y*z`')
    'By [ref], all $f_*$ and `g` with $$x*y*z$$'
    """
    text = _marked(text, _INNER)[1]
    parts: list[str] = []
    at = 0
    for formula in _FORMULA.finditer(text):
        parts += [_prose(text[at : formula.start()]), formula["dollars"], formula["latex"], formula["dollars"]]
        at = formula.end()
    return "".join([*parts, _prose(text[at:])])


def _prose(text: str) -> str:
    text = _ROLE.sub(lambda role: role[1] or "[ref]", text)
    return _STRONG.sub(r"\2", _CODE_ROLE.sub("", text))
