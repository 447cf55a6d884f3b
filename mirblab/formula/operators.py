"""operators: symbol layout trees to operator trees."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from mirblab.formula.latex.symbols import negated_label
from mirblab.formula.tree import OPERANDS, Tree

NOWHERE = (0, 0)
_SHAPE = re.compile(r"M!(.*?)(\d{1,4})x(\d{1,4})", re.DOTALL)
_SINGLE = {"||": "F!abs", "∥∥": "O!norm", "‖‖": "O!norm", "⌊⌋": "F!floor", "⌈⌉": "F!ceiling", "[]": "M!D-[]"}
_ENDS = {"(": "O", ")": "O", "[": "C", "]": "C"}
_AROUND = {"()": "O!matrix", "[]": "O!matrix", "||": "F!det", "∥∥": "O!norm", "": ""}
# From loose to tight. `SEPARATOR` to `PRODUCT` cut a line; the others act inside a term.
SEPARATOR, ARROW, RELATION, SUM, PRODUCT = 5, 4, 3, 2, 1
OPERAND, FUNCTION, BIG, INTEGRAL, DIFFERENTIAL, POSTFIX, FENCE = 0, -1, -2, -3, -4, -5, -6
# The names are Tangent's (Content MathML's words, with F! and the symbol where it has none), with one exception: every
# sign of multiplication is U!times, because a reader who writes a dot does not mean another product. A binomial
# coefficient is O!divide, as in layout trees: where LaTeX was made from these, as in ARQMath's, it is (\frac{n}{k}).
_BY_KIND = {
    SEPARATOR: ", , ; ; . .",
    ARROW: "⇒ O!implies ⟹ O!implies ⇐ F!⇐ ⟸ F!⇐ ⇔ O!iff ⟺ O!iff : F!: ⇕ F!⇕ ⊢ F!⊢ ⊨ F!⊨ ∴ F!∴ ∵ F!∵ ⊩ F!⊩ ⊬ F!⊬ ⊭ F!⊭ "
    "⇏ F!⇏ ⇎ F!⇎",
    RELATION: "= U!eq < O!lt > O!gt ≤ O!leq ≥ O!geq ≠ U!neq ≈ U!approx ∼ O!similar-to ≃ F!≃ ≅ F!≅ ≡ U!equivalent "
    "≢ O!not-equivalent-to ∝ F!∝ ∈ O!in ∉ O!notin ∋ F!∋ ⊂ O!subset ⊆ O!subset ⊊ F!⊊ ⊃ F!⊃ ⊇ O!superset-of-or-equals "
    "→ F!→ ← F!← ↔ F!↔ ↦ O!maps-to ⟶ F!→ ⟵ F!← ⟼ O!maps-to ⟷ F!↔ ↪ F!↪ ↠ F!↠ ↣ F!↣ ⇝ F!⇝ ⇀ F!⇀ ≪ F!≪ ≫ F!≫ "
    "≺ F!≺ ≻ F!≻ ⪯ F!⪯ ⪰ F!⪰ ≼ F!≼ ≽ F!≽ ≲ F!≲ ≳ F!≳ ∣ F!∣ | F!∣ ∤ F!∤ ∥ F!∥ ⊥ F!⊥ ⊑ F!⊑ ⊒ F!⊒ ⋈ F!⋈ ≐ F!≐ ≍ F!≍ "
    "◁ F!◁ ⊲ F!◁ ⊴ F!⊴ ⊳ F!▷ ≔ O!assign := O!assign ↑ F!↑ ↓ F!↓ ≰ F!≰ ≱ F!≱ ≮ F!≮ ≯ F!≯ ⊄ F!⊄ ⊈ F!⊈ ↛ F!↛ "
    "⋘ F!⋘ ⋙ F!⋙ ≑ F!≑ ≜ F!≜ ≕ F!≕ ≶ F!≶ ≷ F!≷ ⋖ F!⋖ ⋗ F!⋗ ≁ F!≁ ≄ F!≄ ≇ F!≇ ≉ F!≉ ∌ F!∌ ∦ F!∦ ⊋ F!⊋ ⊅ F!⊅ ⊉ F!⊉ "
    "⊏ F!⊏ ⊐ F!⊐ ⋐ F!⋐ ⋑ F!⋑ ⊣ F!⊣ ▷ F!▷ ⊵ F!⊵ ⋔ F!⋔ ↩ F!↩ ↞ F!↞ ↕ F!↕ ⇑ F!⇑ ⇓ F!⇓ ↗ F!↗ ↘ F!↘ ↙ F!↙ ↖ F!↖ "
    "⇌ F!⇌ ⇋ F!⇋ ⇁ F!⇁ ↼ F!↼ ↽ F!↽ ⇄ F!⇄ ⇆ F!⇆ ⇉ F!⇉ ⊸ F!⊸",
    SUM: "+ U!plus - O!minus − O!minus ± O!plus-or-minus ∓ O!minus-or-plus ∪ U!union ∩ U!intersect ∧ U!and ∨ U!or "
    "mod O!rem V!mod O!rem ⊕ O!direct-sum ∖ O!setdiff ⊖ F!⊖ ⊎ F!⊎ ⊔ F!⊔ ⊓ F!⊓ ⊻ F!⊻ △ F!△ ∸ F!∸ "
    "⊞ F!⊞ ∔ F!∔ ⊼ F!⊼ ⨿ F!⨿",
    PRODUCT: "× U!times ⋅ U!times · U!times * U!times ∗ U!times ∙ U!times / O!divide ÷ O!divide ∘ O!compose "
    "⊗ O!tensor-product ⋆ F!⋆ ⊙ F!⊙ ⋊ F!⋊ ⋉ F!⋉ ⊠ F!⊠ • F!• ⊘ F!⊘ ≀ F!≀ ⨯ U!times ⌢ F!⌢ ⌣ F!⌣ ⊡ F!⊡ ⋄ F!⋄ ↾ F!↾",
    BIG: "∑ O!sum ∏ O!product ∐ O!coproduct ⋃ U!union ⋂ U!intersect ⋁ U!or ⋀ U!and ⨁ O!direct-sum "
    "⨂ O!tensor-product ⨀ F!⨀ ⨄ F!⨄ ⨆ F!⨆ lim O!limit limsup O!limit-supremum liminf O!limit-infimum sup O!supremum "
    "inf O!infimum colim F!colim argmax F!argmax argmin F!argmin injlim F!injlim projlim F!projlim",
    INTEGRAL: "∫ O!int ∬ O!double-integral ∭ O!triple-integral ∮ O!contour-integral ∯ F!∯ ∰ F!∰ ⨌ F!⨌",
    DIFFERENTIAL: "𝑑 F!d ⅆ F!d",
    POSTFIX: "! O!factorial !! O!double-factorial % O!percent",
    FUNCTION: "¬ O!not ∀ O!forall ∃ O!exists ∄ O!not-exists ∂ O!partialdiff ∇ F!∇ ℜ F!real ℑ F!imaginary deg O!degree "
    "dim O!dimension ker O!kernel",
    OPERAND: "∞ C!infinity ∅ C!emptyset ℏ C!hbar … V!… ⋯ V!⋯ ⋮ V!⋮ ⋱ V!⋱",
}
_FUNCTIONS = (
    "sin cos tan cot sec csc sinh cosh tanh coth sech csch arcsin arccos arctan arccot arcsec arccsc arsinh arcosh "
    "artanh arcsinh arccosh arctanh arcoth exp log ln lg lb Log Ln det gcd lcm max min arg hom Pr tr Tr sgn sign erf "
    "rank rk im diag span Re Im Res card curl grad div"
)
_LETTERLIKE = "∀∃∄∂∇∞∅ℏ¬ℜℑ"


def _roles() -> dict[str, tuple[int, str]]:
    found: dict[str, tuple[int, str]] = {}
    for kind, text in _BY_KIND.items():
        words = text.split()
        for label, name in zip(words[::2], words[1::2], strict=True):
            found.setdefault(label, (kind, name))
            if label.isalpha() or label in _LETTERLIKE:
                found.setdefault("V!" + label, (kind, name))
    relations = [(label, kind) for label, (kind, _) in found.items() if kind in (RELATION, ARROW)]
    for label, kind in relations:  # only those that have no name of their own, as ≠ has
        found.setdefault(negated_label(label), (kind, "F!" + negated_label(label)))
    for name in _FUNCTIONS.split():
        found[name] = found["V!" + name] = (FUNCTION, "F!" + name)
    for label, name in (("lim sup", "O!limit-supremum"), ("lim inf", "O!limit-infimum")):
        found[label] = found["V!" + label] = (BIG, name)
    return found


ROLES = _roles()
ACCENTS = frozenset("^ˆ~˜¯‾ˉ˙¨´`ˇ˘→←↔⃗⏞⏟⏜⏝⎴⎵_̲˚⇀↼︷︸") | {"˙˙", "˙˙˙", "...", "¯¯"}
# The operations whose operands may change places: their order says nothing to search.
COMMUTATIVE = frozenset(
    "U!eq U!neq U!plus U!times U!and U!or U!union U!intersect U!approx U!equivalent O!direct-sum "
    "O!similar-to F!≅ F!≃ F!gcd F!lcm F!max F!min O!iff F!↔ F!△ F!⊎ F!⊔ F!⊓ F!⊻".split()
)
# What stands on a line: its kind (precedence), its name, its operation, and the elements of a bare fence.
Item = tuple[int, str, int, Sequence[int]]
TIMES = "U!times"
DIFFERENTIALS = frozenset({"V!d", "V!𝑑", "V!ⅆ"})
_PLAIN = (OPERAND, "")
_NONE: Sequence = ()
_CALLS = ("()", "[]", "{}")  # the fences that may hold a function's arguments
_TAKEN = {"O!divide": "ou", "O!binomial": "ou", "O!root": "wc"}  # what is no script but an operand, in order
_BARS = ("F!∣", "F!:")  # what divides a set {x | x > 0} in two
_SCRIPTS = "buaocd"
_BARE_FENCES = {"⌊": "⌋", "⌈": "⌉", "⟨": "⟩"}  # whose layout is two signs unless \left and \right are written


class Operations:
    """Operations by number: a label, the numbers of the operands, and the span of the operator in the source."""

    def __init__(self) -> None:
        self.labels: list[str] = []
        self.operands: list[list[int]] = []
        self.spans: list[tuple[int, int]] = []

    def add(self, label: str, operands: list[int] | None = None, span: tuple[int, int] = NOWHERE) -> int:
        """Return the number of a new operation on *operands* (None: a leaf)."""
        self.labels.append(label)
        self.operands.append(operands if operands is not None else [])
        self.spans.append(span)
        return len(self.labels) - 1

    def apply(self, function: int, arguments: list[int]) -> int:
        """Return a function of *arguments*; one with scripts is `+!` and its name, as Tangent has sin^2 x."""
        inner = self.operands[function]
        if not inner:
            self.operands[function] = arguments
            return function
        return self.add("+!" + self.labels[inner[0]].removeprefix("+!"), [function, *arguments])

    def tree(self, root: int, problems: tuple[str, ...] = (), *, spans: bool = True) -> Tree:
        """Return the operator tree below the operation *root*; operands beyond the 62nd share the last relation."""
        labels: list[str] = []
        parents: list[int] = []
        relations: list[str] = []
        found: list[tuple[int, int]] = []
        waiting = [(root, -1, "-")]
        while waiting:
            number, parent, relation = waiting.pop()
            below, place = self.operands[number], len(labels)
            for at in range(len(below) - 1, -1, -1):
                waiting.append((below[at], place, OPERANDS[at] if at < 62 else OPERANDS[-1]))
            labels.append(self.labels[number])
            parents.append(parent)
            relations.append(relation)
            found.append(self.spans[number])
        return Tree(labels, parents, "".join(relations), found if spans else [], problems)


@lru_cache(maxsize=4096)
def matrix_shape(label: str) -> tuple[str, int, int]:
    """Return the fence, the rows and the columns that a label M!… names; no rows where it names none."""
    found = _SHAPE.fullmatch(label)
    return (found[1], int(found[2]), int(found[3])) if found else (label[2:], 0, 0)


def has_bar(tree: Tree, fraction: int) -> bool:
    r"""Return whether a *fraction* has a bar, which `\binom` has not."""
    fence, spans = tree.parents[fraction], tree.spans
    if fence < 0 or not spans or tree.labels[fence][:2] != "M!":
        return True
    return spans[fence] != spans[fraction] or spans[fence] == (0, 0)


def operator_tree(tree: Tree) -> Tree:
    """Return the operator tree of a layout *tree*; an operator tree is returned unchanged. Never fails.

    Labels are Tangent's (`ROLES`, `add_fence`), children are 0, 1, …. f(x) is a product of f and x, as in LaTeXML;
    known functions and names of several letters are applied (F!sin, F!Hom). Products by any sign or none are U!times;
    subscripts stand inside superscripts. An operator has the span of its symbol, (0, 0) where nothing is written.
    Linear time.

    >>> from mirblab.formula.tree import read_tangent, write_tangent
    >>> write_tangent(operator_tree(read_tangent("[V!a[+[N!2[V!b[=[V!c,b[V!n],a[N!2]]]]]]]")))
    '[U!eq,0[U!plus,0[V!a],1[U!times,0[N!2],1[V!b]]],1[O!SUP,0[O!SUB,0[V!c],1[V!n]],1[N!2]]]'
    """
    if not tree.labels or not set(tree.relations).isdisjoint("0123456789"):
        return tree
    return _OperatorTreeBuilder(tree).whole()


class _OperatorTreeBuilder:
    """The operations of a layout tree, built from its last node to its first: children precede their parents."""

    def __init__(self, tree: Tree) -> None:
        size = len(tree.labels)
        self.tree = tree
        self.grown = Operations()
        self.spans = tree.spans or [NOWHERE] * size
        self.after = [-1] * size  # the next node of the line
        self.below: dict[int, list[tuple[str, int]]] = {}  # by node: relation and first node of each line that hangs
        self.heads: dict[int, tuple[int, bool]] = {}  # by first node of a line: operation, and whether a comma ends it
        self.powers: dict[int, int] = {}  # by primes: what follows them in the superscript

    def whole(self) -> Tree:
        tree, labels, heads, below = self.tree, self.tree.labels, self.heads, self.below
        node = len(labels)
        for relation, parent in zip(reversed(tree.relations), reversed(tree.parents), strict=True):
            node -= 1
            if relation == "n":
                self.after[parent] = node
                continue
            if labels[node][0:1] == "′":
                heads[node] = self.primes(node)
            else:
                heads[node] = self.line(node, relation == "w" and labels[parent].startswith("M!{}1x"))
            if parent >= 0:
                below.setdefault(parent, []).append((relation, node))
        return self.grown.tree(heads[0][0], tree.problems, spans=bool(tree.spans))

    def primes(self, node: int) -> tuple[int, bool]:
        """Return the primes at *node*; a power after them is kept, since it is applied after them."""
        if self.after[node] >= 0:
            self.powers[node] = self.line(self.after[node], False)[0]
        return self.grown.add("V!" + self.tree.labels[node], span=self.spans[node]), False

    def line(self, node: int, is_set: bool) -> tuple[int, bool]:
        if self.after[node] < 0 and node not in self.below:
            label = self.tree.labels[node]
            kind, name = ROLES.get(label, _PLAIN)
            if kind == PRODUCT:  # alone it multiplies nothing: a dual R^*, units R^×, a complex K^•
                name = f"V!{label}"
            return self.grown.add(name or label, span=self.spans[node]), kind == SEPARATOR
        items: list[Item] = []
        while node >= 0:
            if node in self.below:
                items.append(self.item(node, self.below[node]))
            else:
                label = self.tree.labels[node]
                kind, name = ROLES.get(label, _PLAIN)
                name = name or label
                items.append((kind, name, self.grown.add(name, None, self.spans[node]), _NONE))
            node = self.after[node]
        ends = items[-1][0] == SEPARATOR
        if any(item[1] in _BARE_FENCES for item in items):
            items = _close_bare_fences(self.grown, items)
        bar = next((at for at, item in enumerate(items) if item[1] in _BARS), 0) if is_set else 0
        if bar:
            parts = [add_line(self.grown, items[:bar]), add_line(self.grown, items[bar + 1 :])]
            return self.grown.add("O!conditional-set", parts, self.grown.spans[items[bar][2]]), ends
        return add_line(self.grown, items), ends

    def item(self, node: int, hanging: list[tuple[str, int]]) -> Item:
        label = self.tree.labels[node]
        kind, name = ROLES.get(label, _PLAIN)
        name = name or label
        if label.startswith("M!"):
            bare, elements = self.fence(node, hanging)
            kind = FENCE if label[2:4] in _CALLS else OPERAND
        else:
            bare, elements = self.base(node, label, name, hanging), []
        number = self.scripts(bare, hanging, _TAKEN.get(label, ""))
        return (kind if number == bare or kind != FENCE else OPERAND), name, number, elements

    def base(self, node: int, label: str, name: str, hanging: list[tuple[str, int]]) -> int:
        operands = [self.heads[head][0] for taken in _TAKEN.get(label, "w") for own, head in hanging if own == taken]
        if label == "O!root" and len(operands) == 1:
            operands.append(self.grown.add("N!2", span=self.spans[node]))
        return self.grown.add(name, operands, self.spans[node])

    def fence(self, node: int, hanging: list[tuple[str, int]]) -> tuple[int, list[int]]:
        label, elements, is_list = self.tree.labels[node], [], False
        head = next((head for relation, head in hanging if relation == "w"), -1)
        while head >= 0:
            operation, ends = self.heads[head]
            elements.append(operation)
            head = next((head for relation, head in self.below.get(head, _NONE) if relation == "e"), -1)
            is_list = is_list or (ends and head >= 0)
        number = add_fence(self.grown, label, elements, is_list, self.spans[node])
        if self.grown.labels[number] == "O!conditional-set" or (len(elements) > 1 and not is_list):
            return number, [number]
        return number, elements

    def scripts(self, number: int, hanging: list[tuple[str, int]], taken: str) -> int:
        for relation in _SCRIPTS:
            for own, head in hanging:
                if own == relation and relation not in taken:
                    number = self.script(number, relation, head)
        return number

    def script(self, number: int, relation: str, head: int) -> int:
        grown, script = self.grown, self.heads[head][0]
        mark = grown.labels[script]
        if relation in "uo" and not grown.operands[script] and self.tree.labels[head].removeprefix("V!") in ACCENTS:
            return grown.add("F!" + mark.removeprefix("V!").removeprefix("F!"), [number], grown.spans[script])
        number = grown.add("O!SUB" if relation in "bud" else "O!SUP", [number, script])
        if head in self.powers:
            number = grown.add("O!SUP", [number, self.powers[head]])
        return number


def _close_bare_fences(grown: Operations, items: list[Item]) -> list[Item]:
    r"""Return *items* with one item for what stands between \lfloor and \rfloor and their like."""
    closed: list[Item] = []
    opened: list[int] = []
    for item in items:
        _, name, number, _ = item
        if name in _BARE_FENCES and not grown.operands[number]:
            opened.append(len(closed))
        elif opened and name == _BARE_FENCES[closed[opened[-1]][1]]:
            start = opened.pop()
            _, fence, first, _ = closed[start]
            pieces = [piece for piece in _split_at(closed[start + 1 :], SEPARATOR)[0] if piece]
            elements = [add_line(grown, piece) for piece in pieces]
            label = f"M!{fence}{name}1x{max(len(elements), 1)}"
            whole = add_fence(grown, label, elements, len(elements) > 1, grown.spans[first])
            del closed[start:]
            item = (OPERAND, label, _replace_base(grown, number, whole), _NONE)
        closed.append(item)
    return closed


def _replace_base(grown: Operations, scripted: int, base: int) -> int:
    """Return *base* with the scripts of another operation."""
    below = grown.operands[scripted]
    if not below:
        return base
    below[0] = _replace_base(grown, below[0], base)
    return scripted


def add_line(grown: Operations, items: list[Item]) -> int:
    """Return the operation that a line of *items* stands for; an empty line is W!, a lone operator a leaf.

    From loose to tight: sequences of statements, arrows of logic and colons, relations, lists, sums, products. A chain
    a = b < c is U!and of a = b and < c, as in Tangent; a missing side is W!.
    """
    while items and items[-1][0] == SEPARATOR:
        items.pop()
    if len(items) == 1:
        return items[0][2]
    kinds = {item[0] for item in items}
    if SEPARATOR in kinds and (RELATION in kinds or ARROW in kinds):
        return _add_statements(grown, items)
    return _add_loosest(grown, items)


def _add_statements(grown: Operations, items: list[Item]) -> int:
    """Return O!form-seq of statements with commas and relations: in x = 1, 2, y > 0 the 2 belongs to the first."""
    statements: list[list[Item]] = []
    has_relation = False
    pieces, cuts = _split_at(items, SEPARATOR)
    for piece, cut in zip(pieces, [cuts[0], *cuts], strict=True):
        is_statement = any(item[0] in (RELATION, ARROW) for item in piece)
        if statements and not (is_statement and has_relation):
            statements[-1] += [cut, *piece]
        elif piece:
            statements.append(piece)
        has_relation = has_relation or is_statement
    parts = [_add_loosest(grown, statement) for statement in statements]
    return parts[0] if len(parts) == 1 else grown.add("O!form-seq", parts)


def _split_at(items: list[Item], kind: int) -> tuple[list[list[Item]], list[Item]]:
    pieces: list[list[Item]] = [[]]
    cuts: list[Item] = []
    for item in items:
        if item[0] == kind:
            cuts.append(item)
            pieces.append([])
        else:
            pieces[-1].append(item)
    return pieces, cuts


def _add_loosest(grown: Operations, items: list[Item]) -> int:
    kinds = {item[0] for item in items}
    if not items:
        return grown.add("W!")
    if ARROW in kinds:
        return _add_relations(grown, items, ARROW)
    if RELATION in kinds:
        return _add_relations(grown, items, RELATION)
    if SEPARATOR in kinds:
        pieces = [_add_loosest(grown, piece) for piece in _split_at(items, SEPARATOR)[0] if piece]
        return pieces[0] if len(pieces) == 1 else grown.add(f"M!L-{len(pieces)}", pieces)
    return _add_sum(grown, items) if SUM in kinds else add_term(grown, items)


def _add_relations(grown: Operations, items: list[Item], kind: int) -> int:
    """Return relations between neighbours: one relation of two sides, or U!and of a = b and then only right sides."""
    pieces, cuts = _split_at(items, kind)
    sides = [_add_loosest(grown, piece) for piece in pieces]
    links = [grown.apply(cuts[0][2], sides[:2])]
    links += [grown.apply(cut[2], [side]) for cut, side in zip(cuts[1:], sides[2:], strict=True)]
    return links[0] if len(links) == 1 else grown.add("U!and", links)


def _add_sum(grown: Operations, items: list[Item]) -> int:
    """Return a sum, from the left: a - b + c is U!plus of a - b and c; a + b + c is one U!plus.

    A sign without a term before it belongs to the term behind it; a sign at the end makes O!limit-from.
    """
    left = last = -1
    signs: list[int] = []
    piece: list[Item] = []
    for place, item in enumerate(items):
        before = items[place - 1][0] if place else SUM
        is_sign = before == PRODUCT or (before in (BIG, INTEGRAL) and item[1] == "O!minus")
        if item[0] != SUM or is_sign:
            piece.append(item)
            continue
        if piece:
            left, last = _join_sum(grown, left, last, signs, add_term(grown, piece))
            signs, piece = [], []
        signs.append(item[2])
    if piece:
        return _join_sum(grown, left, last, signs, add_term(grown, piece))[0]
    return grown.add("O!limit-from", [left, *signs] if left >= 0 else signs)


def _join_sum(grown: Operations, left: int, last: int, signs: list[int], right: int) -> tuple[int, int]:
    """Return the sum and, when it may take another operand of the same sign, the same number again, else -1."""
    is_first = left < 0
    if is_first and signs and grown.labels[signs[-1]] == "O!rem":
        grown.labels[signs[-1]] = "F!pmod"
    for sign in reversed(signs if is_first else signs[1:]):
        right = grown.apply(sign, [right])
    if is_first:
        return right, -1
    if left == last and grown.labels[left] == grown.labels[signs[0]] and not grown.operands[signs[0]]:
        grown.operands[left].append(right)
        return left, left
    joined = grown.apply(signs[0], [left, right])
    return joined, joined


def add_term(grown: Operations, items: list[Item]) -> int:
    """Return the operation of *items* without a sum, a relation or a list in them, in one pass."""
    if len(items) == 1:
        return items[0][2]
    if max(item[0] for item in items) == OPERAND == min(item[0] for item in items):
        return grown.add(TIMES, [item[2] for item in items])
    state = _Term(grown)
    for place, item in enumerate(items):
        kind, name, number, elements = item
        if kind == FENCE and state.opened and not state.factors and state.opened[-1].item[0] == FUNCTION:
            state.close(list(elements))
        elif kind == OPERAND or kind == FENCE:
            if place + 1 < len(items) and (opener := _function_kind(state, name, number, items[place + 1][0])):
                state.open((opener, name, number, ()))
            else:
                state.operand(number)
        elif kind == POSTFIX:
            state.postfix(item)
        elif kind == PRODUCT:
            state.sign(item)
        else:
            state.is_integral = state.is_integral or kind == INTEGRAL
            state.open((DIFFERENTIAL, name, number, ()) if kind == SUM else item)
    return state.end()


class _Term:
    """One pass over a term: the factors so far, an operator that waits for its right side, and open functions.

    A function takes the factors up to the next function or operator (sin 2x cos y is a product), or only a fence right
    behind it; a big operator takes all that follows; a differential or a sign inside a product takes one factor.
    Division and other operators bind from the left: a/bc is (a/b)c, as in LaTeXML.
    """

    def __init__(self, grown: Operations) -> None:
        self.grown = grown
        self.factors: list[int] = []
        self.operator: Item | None = None
        self.span = NOWHERE
        self.opened: list[_Open] = []
        self.is_integral = False
        self.is_joined = False  # whether the last operand stands below an operator, as the c of ab/c

    def operand(self, number: int) -> None:
        self.is_joined = self.operator is not None
        if self.operator is not None:
            number = self._binary(self.operator, number)
            self.operator = None
        self.factors.append(number)
        if self.opened and self.opened[-1].item[0] == DIFFERENTIAL:
            self.close([self.product()])

    def _binary(self, operator: Item, right: int) -> int:
        """Return all factors so far, the *operator*, and *right*; equal neighbours share a node but for division."""
        grown, name, left = self.grown, operator[1], self.product()
        self.factors, self.span = [], NOWHERE
        if name != "O!divide" and grown.labels[left] == name and len(grown.operands[left]) > 1:
            grown.operands[left].append(right)
            return left
        return grown.apply(operator[2], [left, right])

    def product(self) -> int:
        """Return the factors as one operation, a single one as it is; (mod n) behind them annotates them."""
        grown, factors = self.grown, self.factors
        if len(factors) == 1:
            return factors[0]
        if factors and grown.labels[factors[-1]] == "F!pmod":
            left = grown.add(TIMES, factors[:-1], self.span) if len(factors) > 2 else factors[0]
            return grown.add("O!annotated", [left, factors[-1]])
        return grown.add(TIMES, factors, self.span) if factors else grown.add("W!")

    def open(self, item: Item) -> None:
        if self.opened and self.factors and self.opened[-1].item[0] == FUNCTION:
            self.close([self.product()])
        self.opened.append(_Open(item, self.factors, self.operator, self.span))
        self.factors, self.operator, self.span = [], None, NOWHERE

    def close(self, arguments: list[int]) -> None:
        """Give the last one that waits its *arguments*, and go on where it stood; without arguments it is a factor."""
        last = self.opened.pop()
        self.factors, self.operator, self.span = last.factors, last.operator, last.span
        self.operand(self.grown.apply(last.item[2], arguments) if arguments else last.item[2])

    def sign(self, item: Item) -> None:
        if self.opened and self.factors and self.opened[-1].item[0] == FUNCTION:
            self.close([self.product()])
        if not self.factors or self.operator is not None:
            self.operand(item[2])
        elif item[1] != TIMES or self.grown.operands[item[2]]:
            self.operator = item
        elif self.span == NOWHERE:
            self.span = self.grown.spans[item[2]]

    def postfix(self, item: Item) -> None:
        if self.factors and self.operator is None:
            operands = self.grown.operands[self.factors[-1]] if self.is_joined else self.factors
            operands[-1] = self.grown.apply(item[2], [operands[-1]])
        else:
            self.operand(item[2])

    def end(self) -> int:
        if self.operator is not None:
            operator, self.operator = self.operator, None
            self.operand(operator[2])
        while self.opened:
            self.close([self.product()] if self.factors else [])
        return self.product()


class _Open(NamedTuple):
    item: Item
    factors: list[int]
    operator: Item | None
    span: tuple[int, int]


def _function_kind(state: _Term, name: str, number: int, after: int) -> int:
    """Return the kind of a letter that is a function (differential, or a name before a fence), and name it; else 0."""
    if state.is_integral and name in DIFFERENTIALS and after in (OPERAND, FENCE):
        kind = DIFFERENTIAL
    elif after == FENCE and len(name) > 3 and name.startswith("V!") and name[2:].isalpha():
        kind = FUNCTION
    else:
        return 0
    if not state.grown.operands[number]:
        state.grown.labels[number] = "F!" + ("d" if kind == DIFFERENTIAL else name[2:])
    return kind


def add_fence(grown: Operations, label: str, elements: list[int], is_list: bool, span: tuple[int, int]) -> int:
    """Return the operation of a fence or matrix with the *label* M!…; *is_list*: commas stand between the elements.

    As in LaTeXML: (a) is a, (a,b) and [a,b) intervals, (a,b,c) a vector, {a,b} a set, |a| and ‖a‖ an absolute value and
    a norm, rows are M!R! below M!M-RxC; elements in other fences are M!D- and the fence.
    """
    fence, rows, columns = matrix_shape(label)
    n_elements = len(elements)
    if rows > 1 or (n_elements > 1 and not is_list):
        return _add_matrix(grown, fence, (rows, columns), elements, span)
    if not elements:
        return grown.add(label, span=span)
    if fence == "{}":
        return _add_set(grown, elements, span)
    if n_elements == 1 and fence in ("()", ""):
        return elements[0]
    if n_elements == 1 and fence in _SINGLE:
        return grown.add(_SINGLE[fence], elements, span)
    if n_elements == 2 and len(fence) == 2 and fence[0] in "([" and fence[1] in ")]":
        return grown.add(f"O!interval({_ENDS[fence[0]]}-{_ENDS[fence[1]]})", elements, span)
    return grown.add(f"M!V-{n_elements}" if fence in ("()", "") else f"M!D-{fence}", elements, span)


def _add_matrix(
    grown: Operations, fence: str, size: tuple[int, int], elements: list[int], span: tuple[int, int]
) -> int:
    """Return a matrix of rows in its fence; a system of cases has its cells without rows, as in LaTeXML."""
    if fence == "{":
        return grown.add("O!cases", elements, span)
    rows, width = size[0], max(size[1], 1)
    lines = [elements[start : start + width] for start in range(0, len(elements), width)]
    inner = grown.add(f"M!M-{rows}x{width}", [grown.add("M!R!", line) for line in lines], span)
    outer = _AROUND.get(fence, f"M!D-{fence}")
    return grown.add(outer, [inner], span) if outer else inner


def _add_set(grown: Operations, elements: list[int], span: tuple[int, int]) -> int:
    if grown.labels[elements[0]] != "O!conditional-set":
        return grown.add(f"M!S-{len(elements)}", elements, span)
    if len(elements) > 1:
        sides = grown.operands[elements[0]]
        sides[1] = grown.add(f"M!L-{len(elements)}", [sides[1], *elements[1:]])
    return elements[0]
