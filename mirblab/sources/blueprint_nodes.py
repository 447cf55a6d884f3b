"""blueprint_nodes: the nodes of a blueprint in LaTeX: statements that name Lean declarations with `\\lean{...}`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from mirblab.sources import latex, unprinted
from mirblab.sources.environments import scan

STATEMENTS = frozenset(
    """theorem lemma sublemma proposition prop corollary cor definition defn remark example claim fact observation
    conjecture question problem notation construction convention assumption hypothesis axiom exercise thm lem""".split()
)
_LEAN = re.compile(r"\\lean(?![A-Za-z])\s*\{([^{}]*)\}")
_MARKUP = re.compile(
    r"\\(?:lean|uses|proves|discussion|alsoIn|inputleannode|inputleanmodule|phantomsection)(?![A-Za-z])\s*\{[^{}]*\}"
    r"|\\(?:leanok|notready|mathlibok)(?![A-Za-z])"
)
CODE = ("verbatim", "lstlisting", "minted", "comment")
_DIAGRAM = re.compile(r"\\(begin|end)\s*\{(tikzcd|tikzpicture|CD)\}")
_NEW = re.compile(r"\\(?:newtheorem|declaretheorem|newmdtheoremenv|spnewtheorem)\*?\s*(?:\[[^][]*\]\s*)?\{([^{}]+)\}")


@dataclass
class Node:
    """A statement of a blueprint: `names` holds for each declaration what it may be called, the likeliest first.

    `source` is latex, attribute or verso; `file` the path in the repository.
    """

    label: str
    text: str
    names: list[list[str]]
    source: str
    kind: str = ""
    title: str = ""
    file: str = ""


def kinds(sources: Iterable[str]) -> set[str]:
    r"""Return the environments that hold statements: the usual ones and those that *sources* define.

    >>> sorted(kind for kind in kinds([r"\newtheorem*{satz}[theorem]{Satz}"]) if "satz" in kind)
    ['satz', 'satz*']
    """
    named = {name.strip() for source in sources for name in _NEW.findall(latex.strip_comments(source))}
    found = STATEMENTS | named
    return {*found, *(f"{name}*" for name in found if not name.endswith("*"))} - {"proof", "proof*", ""}


def read(source: str, known: Iterable[str], file: str, odd: Counter[str]) -> list[Node]:
    r"""Return the nodes of one LaTeX file, in order; *known* are the environments of statements.

    Comments do not count. A node without \lean is no pair, and is counted in *odd*, as is a \lean that stands in no
    statement.

    >>> read(r"\begin{lemma}[Sum]\label{s}\lean{A.s, t} One\ref{x}. \end{lemma}% \lean{u}", ["lemma"], "", Counter())
    [Node(label='s', text='One[ref].', names=[['A.s'], ['t']], source='latex', kind='lemma', title='Sum', file='')]
    """
    source = latex.strip_comments(source)
    blocks, _ = scan(source, [re.escape(kind) for kind in {*known, "proof"}], odd)
    nodes: list[Node] = []
    taken = 0
    for block in blocks:
        content = block.content(source)
        named = _LEAN.findall(content)
        if block.kind == "proof" or not named:
            odd[r"statements in LaTeX without \lean (no queries)"] += block.kind != "proof"
            continue
        taken += len(named)
        names = [[name] for part in named for each in part.split(",") if (name := _name(each))]
        label = block.labels[0] if block.labels else ""
        title = cleaned(block.option, odd)
        nodes.append(Node(label, cleaned(content, odd), names, "latex", block.kind, title, file))
    odd[r"\lean outside of a statement"] += len(_LEAN.findall(source)) - taken
    return nodes


def _name(text: str) -> str:
    """Return a name as Lean writes it; in LaTeX an underscore may be escaped."""
    return "".join(text.replace(r"\_", "_").split())


def cleaned(source: str, odd: Counter[str]) -> str:
    r"""Return a statement without what a blueprint marks in it, as prose in which only the mathematics is LaTeX.

    A diagram counts as mathematics; verbatim text is code and goes.

    >>> cleaned(r"\label{a}\uses{b}\leanok Let $x \in \bbR$, see \cite{c}.", Counter())
    'Let $x \\in \\bbR$, see [cite].'
    """
    unknown: Counter[str] = Counter()
    source = _DIAGRAM.sub(_as_mathematics, unprinted.without(_MARKUP.sub("", source), CODE, " "))
    text = re.sub(r"\\(?:begin|end)\{math\}", "", latex.clean(source, unknown))
    for what, count in unknown.items():
        odd["commands outside of mathematics without a rule" if what.startswith("command ") else what] += count
    return text


def _as_mathematics(edge: re.Match[str]) -> str:
    """Return the edge of a diagram within that of a formula, which only counts where there is none around it."""
    inner = rf"\{edge[1]}{{{edge[2]}}}"
    return rf"\begin{{math}}{inner}" if edge[1] == "begin" else rf"{inner}\end{{math}}"
