"""content: Content MathML to operator trees, as Tangent's converter makes them."""

from __future__ import annotations

from typing import Any, NamedTuple

from mirblab.formula.elements import fold, told
from mirblab.formula.nodes import Node, flatten, operand
from mirblab.formula.tree import Tree

_SKIP = frozenset({"annotation", "annotation-xml", "share", "sep"})
_UNORDERED = frozenset("eq neq plus times and or xor union intersect equivalent approx".split())
_FUNCTIONS = frozenset(
    "sin cos tan cot sec csc sinh cosh tanh coth sech csch arcsin arccos arctan arccot arcsec arccsc arcsinh arccosh "
    "arctanh arccoth log ln exp abs det gcd lcm max min floor ceiling real imaginary arg pmod".split()
)
_CONSTANTS = frozenset(
    "infinity emptyset pi exponentiale imaginaryi eulergamma true false notanumber reals integers rationals "
    "naturalnumbers complexes primes".split()
)
# LaTeXML's and MathML's names, where Tangent has others.
_NAMES = {
    "superscript": "O!SUP", "subscript": "O!SUB", "formulae-sequence": "O!form-seq", "differential-d": "F!d",
    "conditional": "F!c", "determinant": "F!det", "absolute-value": "F!abs", "modulo": "O!rem", "for-all": "O!forall",
    "hyperbolic-sine": "F!sinh", "hyperbolic-cosine": "F!cosh", "hyperbolic-tangent": "F!tanh",
    "hyperbolic-cotangent": "F!coth", "hyperbolic-secant": "F!sech", "hyperbolic-cosecant": "F!csch",
}  # fmt: skip
_COLLECTIONS = {"list": "M!L-", "set": "M!S-", "vector": "M!V-"}
_CLOSURES = {"open": "O-O", "closed": "C-C", "open-closed": "O-C", "closed-open": "C-O"}
_LEAVES = {"ci": "V!", "cn": "N!", "mi": "V!", "mn": "N!", "mo": "V!", "mtext": "T!", "ms": "T!", "cs": "T!"}
_QUALIFIERS = frozenset("degree bvar lowlimit uplimit condition logbase domainofapplication momentabout".split())


class _Part(NamedTuple):
    """What an element became: its name and its operation; a qualifier has that of what is in it."""

    name: str
    node: Node


def parse(xml: str) -> Tree:
    """Return the operator tree of Content MathML, and in `problems` what was not understood; it never fails.

    As Tangent has it: U! for operations whose operands have no order, O! for others, F! for functions; V!, N!, T!, C!
    for variables, numbers, texts and constants; +! and a name where the operator is itself an expression. What LaTeXML
    could not parse is E! and its fragments, with -! for an unknown symbol and T! for several side by side. A root has
    its degree (2) as second operand, an integral its limits, W! where there are none. `<share>` is left out.

    >>> parse("<math><apply><plus/><ci>x</ci><apply><root/><cn>2</cn></apply></apply></math>").labels
    ['U!plus', 'V!x', 'O!root', 'N!2', 'N!2']
    """
    problems: list[str] = []

    def build(name: str, attributes: dict[str, str], parts: list[Any]) -> _Part | None:
        children = [part for part in parts if isinstance(part, _Part)]
        text = " ".join(part for part in parts if isinstance(part, str))
        node = _operation(name, attributes, children, text)
        return None if node is None else _Part(name, node)

    parts, faults = fold(xml, build, skip=_SKIP)
    found = [part for part in parts if isinstance(part, _Part)]
    if len(found) < len(parts):
        problems.append(f"text outside of an element: {next(part for part in parts if isinstance(part, str))[:40]!r}")
    return flatten(_alone(found), problems=told([*faults, *problems]))


def _operation(name: str, attributes: dict[str, str], children: list[_Part], text: str) -> Node | None:
    """Return what an element became; None for one without content."""
    if name in _LEAVES:
        return _leaf(name, attributes, children, text)
    if name == "csymbol":
        return Node("-!" + text if attributes.get("cd") == "unknown" else _symbol(text or attributes.get("name", "")))
    if name in ("apply", "bind", "reln"):
        return _applied(children)
    if name in _COLLECTIONS:
        return _with(f"{_COLLECTIONS[name]}{len(children)}", children)
    if name == "interval":
        return _with(f"O!interval({_CLOSURES.get(attributes.get('closure', 'closed'), 'C-C')})", children)
    if name == "matrix":
        columns = max((len(part.node.children) for part in children), default=0)
        return _with(f"M!M-{len(children)}x{columns}", children)
    if name == "matrixrow":
        return _with("M!R!", children)
    if name in ("cerror", "merror"):
        return _with("E!", _worded(children))
    if name in ("math", "semantics", "mrow", "mstyle") or name in _QUALIFIERS:
        return _alone(children)
    return _with(_symbol(name), children)


def _symbol(name: str) -> str:
    """Return the label of an operator's or a constant's name."""
    if name.startswith("delimited-"):
        return "M!D-" + name.removeprefix("delimited-")
    if name in _NAMES:
        return _NAMES[name]
    kind = "U!" if name in _UNORDERED else "F!" if name in _FUNCTIONS else "C!" if name in _CONSTANTS else "O!"
    return kind + name


def _with(label: str, children: list[_Part]) -> Node:
    node = Node(label)
    node.children = [(operand(place), part.node) for place, part in enumerate(children)]
    return node


def _worded(children: list[_Part]) -> list[_Part]:
    """Return the fragments of what could not be parsed: unknown symbols side by side are a word, all in lower case."""
    found: list[_Part] = []
    unknown = ""
    for part in [*children, _Part("", Node(""))]:
        if part.node.label.startswith("-!") and not part.node.children:
            unknown += part.node.label[2:].lower()
            continue
        if unknown:
            found.append(_Part("csymbol", Node(("T!" if len(unknown) > 1 else "-!") + unknown)))
            unknown = ""
        found.append(part)
    return found[:-1]


def _alone(children: list[_Part]) -> Node | None:
    """Return the one operation; several side by side are an error and its parts."""
    return _with("E!", children) if len(children) > 1 else children[0].node if children else None


def _leaf(name: str, attributes: dict[str, str], children: list[_Part], text: str) -> Node | None:
    if attributes.get("type") == "rational":
        text = text.replace(" ", "/")
    if text:
        return Node(_LEAVES[name] + text)
    return _alone(children) if children else Node("W!")


def _applied(children: list[_Part]) -> Node | None:
    """Return an operator with its operands, those that qualify it (degree, limits) last."""
    if not children:
        return None
    operator, operands = children[0].node, children[1:]
    plain = [part for part in operands if part.name not in _QUALIFIERS]
    known = {part.name: part for part in operands if part.name in _QUALIFIERS}
    empty = _Part("", Node("W!"))
    if operator.label == "O!root" and not operator.children:
        plain.append(known.pop("degree", None) or _Part("", Node("N!2")))
    elif operator.label == "O!int" and not operator.children:
        plain += [known.pop("lowlimit", None) or empty, known.pop("uplimit", None) or empty]
    plain += known.values()
    if operator.children:
        inner = operator.children[0][1].label.removeprefix("+!")
        return _with("+!" + inner, [children[0], *plain]) if plain else operator
    label = operator.label
    return _with("F!" + label[2:] if label.startswith("V!") and plain else label, plain)
