"""environments: where the environments of a LaTeX source begin and end, what nests in them, and their labels."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from mirblab.sources import latex


@dataclass(eq=False)
class Block:
    """An environment from `start` to `after`, its content from `begin` to `end`.

    `option` is what stands in brackets after `\\\\begin{...}`; `section` counts the section commands before it;
    `labels` are those directly in it, not those of the blocks `inner` that stand in it.
    """

    kind: str
    start: int
    begin: int
    option: str
    section: int
    parent: Block | None
    end: int = -1
    after: int = -1
    labels: list[str] = field(default_factory=list)
    inner: list[Block] = field(default_factory=list)

    def content(self, source: str) -> str:
        """Return the content without the blocks that stand in it."""
        edges = [self.begin, *(edge for block in self.inner for edge in (block.start, block.after)), self.end]
        return "".join(source[begin:end] for begin, end in zip(edges[::2], edges[1::2], strict=True))


def scan(source: str, kinds: Iterable[str], odd: Counter[str]) -> tuple[list[Block], list[str]]:
    r"""Return the environments of the *kinds* in order of their beginning, and the labels that stand in none.

    *source* has no comments. Environments that do not end are left out and counted in *odd*, as are ends without
    a beginning; both leave the other environments as they are.

    >>> source = r"\label{s}\begin{lemma}[Fact]\label{a}X\begin{proof}\label{b}Y\end{proof}\end{lemma}"
    >>> blocks, loose = scan(source, ["lemma", "proof"], Counter())
    >>> [(block.kind, block.option, block.labels, block.content(source)) for block in blocks], loose
    ([('lemma', 'Fact', ['a'], '\\label{a}X'), ('proof', '', ['b'], '\\label{b}Y')], ['s'])
    """
    mark = re.compile(r"\\(begin|end)\s*\{(" + "|".join(kinds) + r")\}|\\label\s*\{([^{}]*)\}|\\(section)\b")
    blocks: list[Block] = []
    stack: list[Block] = []
    loose: list[str] = []
    section = 0
    for match in mark.finditer(source):
        action, kind, label, heading = match.groups()
        if action == "begin":
            option, begin = latex.option(source, match.end())
            blocks.append(Block(kind, match.start(), begin, option, section, stack[-1] if stack else None))
            stack.append(blocks[-1])
        elif action == "end":
            odd["ends of environments that did not begin"] += not _close(stack, kind, match)
        elif heading:
            section += 1
        else:
            (stack[-1].labels if stack else loose).append(label.strip())
    closed = [block for block in blocks if block.end >= 0]
    odd["environments that do not end"] += len(blocks) - len(closed)
    return closed, [*loose, *(label for block in blocks if block.end < 0 for label in block.labels)]


def _close(stack: list[Block], kind: str, match: re.Match[str]) -> bool:
    """End the innermost open block of the *kind*; those opened after it never end. False when none is open."""
    place = next((at for at in range(len(stack) - 1, -1, -1) if stack[at].kind == kind), -1)
    if place < 0:
        return False
    block = stack[place]
    block.end, block.after = match.span()
    # What stands in a block that never ends stands, for all that can be known, in the next one around it.
    for lost in stack[place + 1 :]:
        block.inner += lost.inner
    block.inner.sort(key=lambda inner: inner.start)
    del stack[place:]
    if block.parent is not None:
        block.parent.inner.append(block)
    return True
