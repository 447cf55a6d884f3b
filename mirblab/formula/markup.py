"""markup: a tree as MathML for a browser, and LaTeX as HTML, with what matched marked."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator, Mapping

from mirblab.formula.mathml import CLOSING, LOOSE, OPENING, is_operator
from mirblab.formula.operators import has_bar, matrix_shape
from mirblab.formula.tree import Tree, shown_label

_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")  # no XML may have them
_ACCENTS = frozenset("¯^~˙¨´`˘ˇ→←⏞⏟˚⃗")
# Signs with scripts above and below. Others have them at the corner, except relations and arrows.
_STACKED = frozenset("∑∏∐⋃⋂⨆⋁⋀⨁⨂⨀⨄") | {"lim", "sup", "inf", "lim sup", "lim inf", "det"}
_ARROWS = re.compile("[\u2190-\u21ff\u27f0-\u27ff\u2900-\u297f]")
_RELATIONS = frozenset("=≡≐≃≅≈∼≤≥<>:⊂⊆")
_TOKENS = {"V!": "mi", "N!": "mn", "T!": "mtext"}
_ORANGE = "230,159,0"  # of the figures' palette; letters on it are readable in light and dark themes
_SCRIPTS = {"": "", "b": "msub", "a": "msup", "ba": "msubsup", "u": "munder", "o": "mover", "uo": "munderover"}
_BAR = '<mrow style="border-{}:1px solid">'  # as long as what it stands over or under
_SIDES = {"mover": ("o", "accent", "top"), "munder": ("u", "accentunder", "bottom")}
_Work = list[str | int]  # what to write: text as it is, or the place of the node at which a line begins


def to_mathml(
    tree: Tree, matched: Iterable[int] | Mapping[int, float] = (), *, latex: str = "", display: bool = False
) -> str:
    """Return a layout tree as Presentation MathML, the *matched* nodes marked; no script, everything escaped.

    *matched* holds nodes, or how strongly each is to be marked, 0 to 1. *latex* is the text for screen readers;
    *display*: on a separate line. `mathml.parse_mathml` nearly always restores the tree. Operator trees are written as
    functions.

    >>> print(to_mathml(Tree(["V!x", "N!2"], [-1, 0], "-a"), latex="x^2").partition('aria-label="x^2">')[2])
    <mrow><msup><mi>x</mi><mrow><mn>2</mn></mrow></msup></mrow></math>
    """
    writer = _Writer(tree, _match_weights(matched))
    label = _escape(latex or " ".join(map(shown_label, tree.labels)))
    head = f'<math xmlns="http://www.w3.org/1998/Math/MathML" display="{"block" if display else "inline"}" '
    return f'{head}alttext="{label}" aria-label="{label}"><mrow>{"".join(writer.written())}</mrow></math>'


class _Writer:
    """The elements of a tree in order, with a stack of what is still to be written."""

    def __init__(self, tree: Tree, weights: Mapping[int, float]) -> None:
        self.tree, self.weights = tree, weights
        self.below: list[dict[str, int]] = [{} for _ in tree.labels]
        for parent, child, relation in tree.edges():
            self.below[parent].setdefault(relation, child)
        self.is_operation = any(relation in "0123456789" for relation in tree.relations)
        self.is_tall = [label == "O!divide" or _count_rows(label) > 1 for label in tree.labels]
        for parent, child, relation in reversed(list(tree.edges())):
            self.is_tall[parent] |= self.is_tall[child] or relation in "uo"

    def written(self) -> Iterator[str]:
        waiting: _Work = [0] if len(self.tree) else []
        while waiting:
            work = waiting.pop()
            if isinstance(work, str):
                yield work
            else:
                waiting += reversed(self.function(work) if self.is_operation else self.line(work))

    def function(self, node: int) -> _Work:
        kind, name = self.tree.labels[node][:2], self.tree.labels[node]
        work: _Work = [self.token(node, _TOKENS.get(kind, "mi"), shown_label(name))]
        for place, child in enumerate(self.below[node].values()):
            work += ["<mo>,</mo>" if place else "<mo>(</mo>", child]
        return [*work, "<mo>)</mo>"] if len(work) > 1 else work

    def line(self, node: int) -> _Work:
        below = self.below[node]
        name, relations = self.scripts(node)
        work = self.base(node)
        if relations:
            relation, attribute, side = _SIDES.get(name, ("", "", ""))
            if (mark := below.get(relation, 0)) and self.tree.labels[mark] in _ACCENTS and not self.below[mark]:
                accent: _Work = [mark]  # within a row it would float too far away
                if self.tree.labels[mark] == "¯" and (relation == "u" or self.tree.labels[node] == "M!1x1"):
                    work = [_BAR.format(side), *work, "</mrow>"]
                    accent = ['<mrow style="display:none">', mark, "</mrow>"]
                work = [f'<{name} {attribute}="true">', *_row(work), *accent, f"</{name}>"]
            else:
                work = [f"<{name}>", *_row(work), *self.arguments(node, relations), f"</{name}>"]
            outer = "".join(one for one in "ba" if one in below and name.startswith(("mu", "mo")))
            if name := _SCRIPTS[outer]:
                work = [f"<{name}>", *work, *self.arguments(node, outer), f"</{name}>"]
        return [*work, below["n"]] if "n" in below else work

    def scripts(self, node: int) -> tuple[str, str]:
        below, label = self.below[node], self.tree.labels[node]
        if ("c" in below or "d" in below) and label != "O!root":
            return "mmultiscripts", "ba|dc"
        inner = "" if label == "O!divide" else "".join(relation for relation in "uo" if relation in below)
        if inner:
            at_corner = all(_is_at_corner(label, relation) for relation in inner)
            return _SCRIPTS[inner.translate({117: "b", 111: "a"}) if at_corner else inner], inner
        inner = "".join(relation for relation in "ba" if relation in below)
        return _SCRIPTS[inner], inner

    def arguments(self, node: int, relations: str) -> _Work:
        work: _Work = []
        for relation in relations:
            if relation == "|":
                work.append("<mprescripts></mprescripts>")
            elif relation in self.below[node]:
                work += ["<mrow>", self.below[node][relation], "</mrow>"]
            else:
                work.append("<none></none>")
        return work

    def base(self, node: int) -> _Work:
        label, below = self.tree.labels[node], self.below[node]
        kind = label[:2]
        if label == "O!divide":
            fraction = "mfrac" if has_bar(self.tree, node) else 'mfrac linethickness="0"'
            return [self.framed(fraction, node), *self.arguments(node, "ou"), "</mfrac>"]
        if label == "O!root" and "c" in below:
            return [self.framed("mroot", node), *self.arguments(node, "wc"), "</mroot>"]
        if label == "O!root":
            return [self.framed("msqrt", node), *self.arguments(node, "w")[1:-1], "</msqrt>"]
        if kind == "M!":
            return self.fence(node)
        if kind == "W!":
            return ["<mi></mi>"]
        if kind == "E!":
            return [f"<merror>{self.token(node, 'mtext', label[2:] or '?')}</merror>"]
        if kind == "T!":
            return [self.token(node, "mtext", f"\xa0{label[2:]}\xa0")]
        if kind in _TOKENS:
            return [self.token(node, _TOKENS[kind], label[2:])]
        if "w" in below:
            box = f'{self.framed("menclose", node)[:-1]} notation="{_escape(label)}">'
            return [box, *self.arguments(node, "w"), "</menclose>"]
        return [self.operator(node) if is_operator(label) and label[:1] != "?" or label == "?" else
                self.token(node, "mi", label)]  # fmt: skip

    def operator(self, node: int) -> str:
        """Return an operator; a bracket or a comma states when it is neither fence nor separator.

        The attributes `fence` and `separator` do not say so, because MathJax has `fence="false"` at brackets in pairs.
        """
        label, says = self.tree.labels[node], ""
        if label in OPENING or label in CLOSING:
            says = f' {LOOSE}="true" stretchy="false"'
        elif label == "," and "n" in self.below[node]:
            says = f' {LOOSE}="true"'
        elif label == "𝑑":
            says = ' rspace="0"'  # a differential stands close to its variable
        elif label == "mod" and self.tree.relations[node] == "w":
            says = ' lspace="0"'
        return self.token(node, "mo", "−" if label == "-" else label, says)

    def fence(self, node: int) -> _Work:
        fence, rows, columns = matrix_shape(self.tree.labels[node])
        cells = []
        cell = self.below[node].get("w")
        while cell is not None:
            cells.append(cell)
            cell = self.below[cell].get("e")
        before = "0.4em" if cells and self.tree.labels[cells[0]] == "mod" else "0"  # the gap of a congruence
        # as in print, only what has more than a line is taller than its brackets
        grows = "true" if rows > 1 or any(self.is_tall[cell] for cell in cells[:1]) else "false"
        start, end = (
            self.token(node, "mo", part, f' form="{form}" lspace="{gap}" rspace="0" stretchy="{grows}"') if part else ""
            for part, form, gap in ((fence[:1], "prefix", before), (fence[1:], "postfix", "0"))
        )
        if rows <= 1 and (columns == 1 or all(self.ends_with_comma(cell) for cell in cells[:-1])):
            return ["<mrow>", start, *cells, end, "</mrow>"]
        work: _Work = ["<mrow>", start, "<mtable>"]
        for place, cell in enumerate(cells):
            work += ["<mtr>"] if place % max(columns, 1) == 0 else []
            work += ["<mtd>", cell, "</mtd>"]
            work += ["</mtr>"] if (place + 1) % max(columns, 1) == 0 or place == len(cells) - 1 else []
        return [*work, "</mtable>", end, "</mrow>"]

    def ends_with_comma(self, node: int) -> bool:
        while "n" in self.below[node]:
            node = self.below[node]["n"]
        return self.tree.labels[node] == ","

    def token(self, node: int, name: str, text: str, says: str = "") -> str:
        """Return a leaf, with its background where the node is matched."""
        ground = _match_style(self.weights[node]) if node in self.weights else ""
        return f"<{name}{says}{ground}>{_escape(text)}</{name}>"

    def framed(self, name: str, node: int) -> str:
        outline = f"outline:2px solid rgba({_ORANGE},{0.3 + 0.7 * self.weights.get(node, 0):.2f})"
        return f'<{name} class="mirblab-match" style="{outline}">' if node in self.weights else f"<{name}>"


def _count_rows(label: str) -> int:
    return matrix_shape(label)[1] if label[:2] == "M!" else 0


def _row(work: _Work) -> _Work:
    is_one = len(work) == 1 or str(work[0])[1:].startswith(("mrow", "mfrac", "msqrt", "mroot"))
    return work if is_one else ["<mrow>", *work, "</mrow>"]


def _is_at_corner(label: str, relation: str) -> bool:
    is_plain = label[1:2] != "!" and label[:1] != "?" and label not in _STACKED and not _ARROWS.match(label)
    return is_plain and (relation == "u" or label not in _RELATIONS)


def _escape(text: str) -> str:
    return html.escape(_CONTROL.sub("\ufffd", text))


def _match_style(weight: float, radius: int = 0) -> str:
    corner = f";border-radius:{radius}px" if radius else ""
    return f' class="mirblab-match" style="background:rgba({_ORANGE},{0.2 + 0.45 * weight:.2f});color:inherit{corner}"'


def _match_weights(matched: Iterable[int] | Mapping[int, float]) -> dict[int, float]:
    pairs = matched.items() if isinstance(matched, Mapping) else ((node, 1.0) for node in matched)
    return {int(node): min(1.0, float(weight)) for node, weight in pairs if weight > 0}


def highlight_latex(latex: str, tree: Tree, matched: Iterable[int] | Mapping[int, float] = ()) -> str:
    """Return the source of *tree* as HTML, the spans of the *matched* nodes in `<mark>`; everything escaped."""
    strength = [0.0] * len(latex)
    for node, weight in _match_weights(matched).items():
        start, end = tree.spans[node] if tree.spans else (0, 0)
        for place in range(max(start, 0), min(end, len(latex))):
            strength[place] = max(strength[place], weight)
    written, start = [], 0
    for end in range(1, len(latex) + 1):
        if end == len(latex) or strength[end] != strength[start]:
            text = _escape(latex[start:end])
            written.append(f"<mark{_match_style(strength[start], 2)}>{text}</mark>" if strength[start] else text)
            start = end
    return f'<code class="mirblab-latex">{"".join(written)}</code>'
