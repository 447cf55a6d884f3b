"""mathml: Presentation and Content MathML to trees."""

from __future__ import annotations

import html
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from mirblab.core.wording import counted
from mirblab.formula.latex.symbols import EQUIVALENT, character_label, negated_label, styled_character
from mirblab.formula.tree import OPERANDS, Node, Tree, build_tree

OPENING = frozenset("([{|∥")
CLOSING = frozenset(")]}|∥")
_BARS = OPENING & CLOSING
LOOSE = "data-loose"  # the attribute of a bracket that has no partner, and of a comma that separates no elements
# Longer or deeper documents, or those of more parts (elements and texts), are read up to here; no formula needs more.
MAX_LENGTH = 200_000
MAX_DEPTH = 500
MOST = 10_000
MAX_PROBLEMS = 20  # problems
# Every repetition is possessive, which means without backtracking, so that the time is linear.
_TOKEN = re.compile(
    r"""<!--.*?(?:-->|\Z)
      | <!\[CDATA\[(?P<data>.*?)(?:\]\]>|\Z)
      | <!DOCTYPE[^<>\[]*+\[(?:[^\]<>]|<[^<>]*+>)*+\]\s*+>
      | <[!?][^<>]*+>?
      | </\s*+(?P<close>[^\s<>]*+)[^<>]*+>?
      | <(?P<open>[A-Za-z_][^\s<>/"']*+)(?P<attributes>(?:[^<>"']++|"[^"<]*+"|'[^'<]*+')*+)>
      | <(?P<cut>[A-Za-z_][^\s<>/"']*+)[^<>]*+>?
      | (?P<text>[^<]++)
      | <""",
    re.VERBOSE | re.DOTALL,
)
_ATTRIBUTE = re.compile(r"""(?<![\w:.-])([A-Za-z_][\w:.-]*+)\s*+=\s*+(?:"([^"]*+)"|'([^']*+)')""")
_NO_CHARACTER = re.compile(r"&#[0-9]{12,}+;?")  # nor is it a number that Python reads
_BLANKS = re.compile(r"[ \t\r\n\xa0]+")  # a thin space inside a number stays
# From an element's local name, attributes and parts (texts, and what its elements became, in order): what it becomes.
Build = Callable[[str, dict[str, str], list[Any]], Any]
_CONTENT_SKIP = frozenset({"annotation", "annotation-xml", "share", "sep"})
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
_CONTENT_NAMES = {
    "superscript": "O!SUP", "subscript": "O!SUB", "formulae-sequence": "O!form-seq", "differential-d": "F!d",
    "conditional": "F!c", "determinant": "F!det", "absolute-value": "F!abs", "modulo": "O!rem", "for-all": "O!forall",
    "hyperbolic-sine": "F!sinh", "hyperbolic-cosine": "F!cosh", "hyperbolic-tangent": "F!tanh",
    "hyperbolic-cotangent": "F!coth", "hyperbolic-secant": "F!sech", "hyperbolic-cosecant": "F!csch",
}  # fmt: skip
_COLLECTIONS = {"list": "M!L-", "set": "M!S-", "vector": "M!V-"}
_CLOSURES = {"open": "O-O", "closed": "C-C", "open-closed": "O-C", "closed-open": "C-O"}
_LEAVES = {"ci": "V!", "cn": "N!", "mi": "V!", "mn": "N!", "mo": "V!", "mtext": "T!", "ms": "T!", "cs": "T!"}
_QUALIFIERS = frozenset("degree bvar lowlimit uplimit condition logbase domainofapplication momentabout".split())
_STYLES = {
    "bold": "BOLD", "bold-italic": "BOLD", "double-struck": "DOUBLE-STRUCK", "script": "SCRIPT", "fraktur": "FRAKTUR",
    "bold-script": "BOLD SCRIPT", "bold-fraktur": "BOLD FRAKTUR", "sans-serif": "SANS-SERIF", "monospace": "MONOSPACE",
    "bold-sans-serif": "SANS-SERIF BOLD", "sans-serif-italic": "SANS-SERIF ITALIC",
    "sans-serif-bold-italic": "SANS-SERIF BOLD ITALIC",
}  # fmt: skip
_SKIP = frozenset({"annotation", "annotation-xml", "mphantom", "mspace", "maligngroup", "malignmark", "mglyph"})
_INVISIBLE = dict.fromkeys(map(ord, "\u2061\u2062\u2063\u2064\u200b\u200c\u200d\u2060\ufeff"))
# What other producers write for the characters that LaTeXML writes.
_SAME = {**EQUIVALENT, "'": "′", "''": "′′", "″": "′′", "‴": "′′′", "⁗": "′′′′", "||": "∥"}
_STROKE = "\u0338"  # through the sign before it
# The sources of ARQMath have HTML's &lt; in formulas, of which LaTeXML made four symbols.
_SIGNS: dict[tuple[str, ...], str] = {("V!&", "V!l", "V!t"): "<", ("V!&", "V!g", "V!t"): ">"}
_TOKENS = {"mi": "V!", "mn": "N!", "mo": "", "mtext": "T!", "ms": "T!"}
_WITH_CHILDREN = {"mfrac": ("O!divide", "ou"), "mroot": ("O!root", "wc")}
_PLACES = {"msub": "b", "msup": "a", "msubsup": "ba", "munder": "u", "mover": "o", "munderover": "uo"}
# Elements that only group or style their content: a bracket that is alone in one of them is still a bracket.
_PLAIN = frozenset({"mrow", "mstyle", "mpadded", "semantics", "math", "mtd"})


def is_operator(label: str) -> bool:
    """Return whether a label is bare: an operator, a relation, a bracket or punctuation."""
    return not (len(label) > 1 and label[1] == "!" and label[0] in "VNTOMWUE")


def parse_content_mathml(xml: str) -> Tree:
    """Return the operator tree of Content MathML, and in `problems` what was not understood; it never fails.

    Labels are Tangent's: U! for operations whose operands have no order, O! for others, F! for functions; V!, N!, T!,
    C! for variables, numbers, texts and constants; +! and a name where the operator is an expression; E! for what
    LaTeXML could not parse. A root has its degree (2) as second operand, an integral its limits, W! for none.

    >>> parse_content_mathml("<math><apply><plus/><ci>x</ci><apply><root/><cn>2</cn></apply></apply></math>").labels
    ['U!plus', 'V!x', 'O!root', 'N!2', 'N!2']
    """

    def build(name: str, attributes: dict[str, str], parts: list[Any]) -> _ContentElement | None:
        children = [part for part in parts if isinstance(part, _ContentElement)]
        text = " ".join(part for part in parts if isinstance(part, str))
        node = _operation(name, attributes, children, text)
        return None if node is None else _ContentElement(name, node)

    parts, faults = fold_elements(xml, build, skip=_CONTENT_SKIP)
    elements = [part for part in parts if isinstance(part, _ContentElement)]
    texts = [part for part in parts if isinstance(part, str)]
    problems = [f"text outside of an element: {text[:40]!r}" for text in texts[:1]]
    return build_tree(_single_operation(elements), problems=shorten_problems([*faults, *problems]))


class _ContentElement(NamedTuple):
    """The result of an element: its name and its operation; a qualifier has that of its content."""

    name: str
    node: Node


def _operation(name: str, attributes: dict[str, str], children: list[_ContentElement], text: str) -> Node | None:
    if name in _LEAVES:
        return _leaf(name, attributes, children, text)
    if name == "csymbol":
        return Node("-!" + text if attributes.get("cd") == "unknown" else _symbol(text or attributes.get("name", "")))
    if name in ("apply", "bind", "reln"):
        return _application(children)
    if name in _COLLECTIONS:
        return _operator_node(f"{_COLLECTIONS[name]}{len(children)}", children)
    if name == "interval":
        return _operator_node(f"O!interval({_CLOSURES.get(attributes.get('closure', 'closed'), 'C-C')})", children)
    if name == "matrix":
        columns = max((len(part.node.children) for part in children), default=0)
        return _operator_node(f"M!M-{len(children)}x{columns}", children)
    if name == "matrixrow":
        return _operator_node("M!R!", children)
    if name in ("cerror", "merror"):
        return _operator_node("E!", _join_words(children))
    if name in ("math", "semantics", "mrow", "mstyle") or name in _QUALIFIERS:
        return _single_operation(children)
    return _operator_node(_symbol(name), children)


def _leaf(name: str, attributes: dict[str, str], children: list[_ContentElement], text: str) -> Node | None:
    if attributes.get("type") == "rational":
        text = text.replace(" ", "/")
    if text:
        return Node(_LEAVES[name] + text)
    return _single_operation(children) if children else Node("W!")


def _single_operation(children: list[_ContentElement]) -> Node | None:
    return _operator_node("E!", children) if len(children) > 1 else children[0].node if children else None


def _operator_node(label: str, children: list[_ContentElement]) -> Node:
    node = Node(label)
    node.children = [(OPERANDS[min(place, 61)], part.node) for place, part in enumerate(children)]
    return node


def _symbol(name: str) -> str:
    if name.startswith("delimited-"):
        return "M!D-" + name.removeprefix("delimited-")
    if name in _CONTENT_NAMES:
        return _CONTENT_NAMES[name]
    kind = "U!" if name in _UNORDERED else "F!" if name in _FUNCTIONS else "C!" if name in _CONSTANTS else "O!"
    return kind + name


def _application(children: list[_ContentElement]) -> Node | None:
    if not children:
        return None
    operator, operands = children[0].node, children[1:]
    plain = [part for part in operands if part.name not in _QUALIFIERS]
    qualifiers = [part for part in operands if part.name in _QUALIFIERS]
    if operator.label == "O!root" and not operator.children:
        plain.append(_take(qualifiers, "degree") or _ContentElement("", Node("N!2")))
    elif operator.label == "O!int" and not operator.children:
        limits = [_take(qualifiers, limit) for limit in ("lowlimit", "uplimit")]
        plain += [limit or _ContentElement("", Node("W!")) for limit in limits]
    plain += qualifiers
    if operator.children:
        inner = operator.children[0][1].label.removeprefix("+!")
        return _operator_node("+!" + inner, [children[0], *plain]) if plain else operator
    label = operator.label
    return _operator_node("F!" + label[2:] if label.startswith("V!") and plain else label, plain)


def _take(qualifiers: list[_ContentElement], name: str) -> _ContentElement | None:
    """Return the first qualifier of a *name*, which is removed from the list."""
    place = next((place for place, part in enumerate(qualifiers) if part.name == name), -1)
    return qualifiers.pop(place) if place >= 0 else None


def _join_words(children: list[_ContentElement]) -> list[_ContentElement]:
    """Return the fragments of what could not be parsed; adjacent unknown symbols in lower case become one word."""
    found: list[_ContentElement] = []
    unknown = ""
    for part in [*children, _ContentElement("", Node(""))]:
        if part.node.label.startswith("-!") and not part.node.children:
            unknown += part.node.label[2:].lower()
            continue
        if unknown:
            found.append(_ContentElement("csymbol", Node(("T!" if len(unknown) > 1 else "-!") + unknown)))
            unknown = ""
        found.append(part)
    return found[:-1]


def fold_elements(xml: str, build: Build, *, skip: frozenset[str] = frozenset()) -> tuple[list[Any], list[str]]:
    """Return what *build* makes of the outermost elements, and what was wrong with the document; it never fails.

    *build* gets an element's local name, attributes and parts (texts, and what *build* returned for its elements,
    unless None). Elements named in *skip* are left out. Only character references and HTML's named entities are
    understood. An unclosed element ends with the one around it; an end tag without start is ignored. Linear time.

    >>> fold_elements("<a x='1'>one <m:b/>&amp; two</a>", lambda name, attributes, parts: (name, attributes, parts))
    ([('a', {'x': '1'}, ['one', ('b', {}, []), '& two'])], [])
    >>> fold_elements("<a><b>", lambda name, attributes, parts: name)
    (['a'], ['2 elements are not closed'])
    """
    reader = _Reader(build, skip)
    if len(xml) > MAX_LENGTH:
        reader.problems.append(f"only the first {MAX_LENGTH:,} of {len(xml):,} characters were read")
    for token in _TOKEN.finditer(xml, 0, MAX_LENGTH):
        if reader.n_parts >= MOST:
            reader.problems.append(f"only the first {MOST:,} elements and texts were read")
            break
        kind = token.lastgroup
        if kind in ("open", "cut", "attributes"):
            name = token["open"] or token["cut"]
            attributes = token["attributes"] or ""
            reader.start(_local(name), attributes)
            if kind == "cut":
                reader.problems.append(f"a start tag is cut short: {token[0][:40]!r}")
            if attributes.endswith("/") or (kind == "cut" and token[0].endswith("/>")):
                reader.stop(_local(name))
        elif kind == "close":
            reader.stop(_local(token["close"]))
        elif kind == "text":
            reader.text(_unescaped(token["text"]))
        elif kind == "data":
            reader.text(token["data"])
    return reader.end()


class _Reader:
    def __init__(self, build: Build, skip: frozenset[str]) -> None:
        self.build, self.skip = build, skip
        self.frames: list[tuple[str, str, list[Any]]] = [("", "", [])]
        self.opened: Counter[str] = Counter()
        self.ignored: Counter[str] = Counter()
        self.problems: list[str] = []
        self.n_parts = 0

    def start(self, name: str, attributes: str) -> None:
        if len(self.frames) > MAX_DEPTH:
            if not self.ignored:
                self.problems.append(f"elements deeper than {MAX_DEPTH} were not read")
            self.ignored[name] += 1
            return
        self.n_parts += 1
        self.frames.append((name, attributes, []))
        self.opened[name] += 1

    def stop(self, name: str) -> None:
        if self.ignored[name]:
            self.ignored[name] -= 1
        elif not self.opened[name]:
            self.problems.append(f"an end tag without its start: </{name[:40]}>")
        else:
            while (closed := self._close()) != name:
                self.problems.append(f"<{closed[:40]}> is not closed")

    def _close(self) -> str:
        name, attributes, parts = self.frames.pop()
        self.opened[name] -= 1
        if name not in self.skip:
            pairs = _ATTRIBUTE.findall(attributes)
            made = self.build(name, {_local(key): _unescaped(one or other) for key, one, other in pairs}, parts)
            if made is not None:
                self.frames[-1][2].append(made)
        return name

    def text(self, text: str) -> None:
        text = _BLANKS.sub(" ", text).strip()
        if text:
            self.n_parts += 1
            self.frames[-1][2].append(text)

    def end(self) -> tuple[list[Any], list[str]]:
        if (missing := len(self.frames) - 1) > 0:
            self.problems.append(f"{counted(missing, 'element is', 'elements are')} not closed")
        while len(self.frames) > 1:
            self._close()
        return self.frames[0][2], self.problems


def _local(name: str) -> str:
    return name.rpartition(":")[2]


def _unescaped(text: str) -> str:
    """Return *text* without entities; a number of a dozen digits and more is no character."""
    return html.unescape(_NO_CHARACTER.sub("\ufffd", text)) if "&" in text else text


def shorten_problems(problems: Sequence[str]) -> list[str]:
    """Return the first twenty different problems, and how many more there are."""
    different = list(dict.fromkeys(problems))
    more = len(different) - MAX_PROBLEMS
    return different if more <= 0 else [*different[:MAX_PROBLEMS], f"and {more:,} more"]


def parse_mathml(xml: str) -> Tree:
    """Return the layout tree of Presentation MathML, and in `problems` what was not understood; it never fails.

    It reads LaTeXML's dialect, as in ARQMath, and those of others, with `<semantics>` and annotations. HTML's entities
    are characters; no others are resolved. NTCIR's query variables become wildcards: `?name`. Linear time.

    >>> parse_mathml("<math><msup><mi>x</mi><mn>2</mn></msup><mo>=</mo><mn>4</mn></math>").labels
    ['V!x', 'N!2', '=', 'N!4']
    >>> parse_mathml("<math><mi>x</math>").problems
    ('<mi> is not closed',)
    """
    problems: list[str] = []

    def build(name: str, attributes: dict[str, str], parts: list[Any]) -> _LayoutElement:
        if name in _PLAIN and len(parts) == 1 and isinstance(parts[0], _LayoutElement):
            return parts[0]
        return _layout_element(name, attributes, parts, problems)

    parts, faults = fold_elements(xml, build, skip=_SKIP)
    return build_tree(chain_nodes(_row(parts, problems)), problems=shorten_problems([*faults, *problems]))


class _LayoutElement(NamedTuple):
    name: str
    line: list[Node]
    cells: tuple[list[Node], ...] = ()


def _layout_element(name: str, attributes: dict[str, str], parts: list[Any], problems: list[str]) -> _LayoutElement:
    if name in _TOKENS:
        return _LayoutElement("plain" if LOOSE in attributes else name, _token(name, attributes, parts))
    children = [part for part in parts if isinstance(part, _LayoutElement)]
    if name in _PLACES and children:
        return _LayoutElement(name, _scripts(children, _PLACES[name]))
    if name == "mmultiscripts" and children:
        return _LayoutElement(name, _multiscripts(children))
    if name in _WITH_CHILDREN:
        return _LayoutElement(name, [_with_children(_WITH_CHILDREN[name][0], children, _WITH_CHILDREN[name][1])])
    if name in ("mtr", "mlabeledtr"):
        return _LayoutElement("mtr", [], tuple(part.line for part in children[name == "mlabeledtr" :]))
    if name == "mtable":
        return _LayoutElement(name, [_table(children)])
    if name == "mfenced":
        return _LayoutElement(name, _mfenced(attributes, children))
    if name == "qvar":
        text = "".join(part for part in parts if isinstance(part, str))
        return _LayoutElement(name, [Node("?" + (attributes.get("name") or text or "x"))])
    if name == "merror":
        texts = " ".join(node.label.removeprefix("T!") for part in children for node in part.line)
        problems.append(f"an error of the producer: {texts[:60]}")
        return _LayoutElement(name, [Node("E!")])
    line = _row(parts, problems)
    if name == "msqrt":
        line = [Node("O!root").add("w", chain_nodes(line))]
    elif name == "menclose":
        line = [Node(attributes.get("notation") or "longdiv").add("w", chain_nodes(line))]
    return _LayoutElement(name, line)


def _token(name: str, attributes: dict[str, str], parts: list[Any]) -> list[Node]:
    text = " ".join(part for part in parts if isinstance(part, str)).translate(_INVISIBLE).strip()
    if name == "mn":
        text = "".join(text.split())  # between thousands
    elif name == "mi" and _is_sign(text):
        name = "mo"  # LaTeXML has it as an identifier where the source has the character
    if name == "mo" or "′" in text or "'" in text:
        text = negated_label(_SAME.get(text[0], text[0])) if text[1:] == _STROKE else _SAME.get(text, text)
        name = "mo" if len(text) > 1 and not text.strip("′") else name  # LaTeXML once wrote them with <mi>
    elif style := _STYLES.get(attributes.get("mathvariant", "")):
        text = "".join(styled_character(character, style) for character in text)
    is_wildcard = name == "mi" and len(text) > 1 and text[0] == "?"
    line = [Node(text if is_wildcard else _TOKENS[name] + text)] if text else []
    return line + [node for part in parts if isinstance(part, _LayoutElement) for node in part.line]


def _is_sign(text: str) -> bool:
    """Return whether an identifier is one sign of mathematics that LaTeX has as an operator or a relation."""
    return len(text) == 1 and unicodedata.category(text) in ("Sm", "Pd") and is_operator(character_label(text))


def _scripts(children: list[_LayoutElement], relations: str) -> list[Node]:
    """Return a base with its scripts; those of an operator stand above and below it, as in Tangent."""
    base = children[0].line
    if len(base) == 1 and is_operator(base[0].label) and base[0].label not in CLOSING:
        relations = relations.translate({97: "o", 98: "u"})
    node = wrap_base(base, relations)
    for relation, child in zip(relations, children[1:], strict=False):
        if child.name != "none":
            node.add(relation, chain_nodes(child.line) or Node("W!"))
    return [node]


def wrap_base(line: Sequence[Node], relations: str) -> Node:
    """Return the node that scripts by *relations* hang on: the line's only node if it has none yet, else an `M!1x1`."""
    if len(line) == 1 and not any(line[0].first(relation) for relation in relations):
        return line[0]
    return matrix_node([line], "", 1, 1) if line else Node("W!")


def matrix_node(cells: Sequence[Sequence[Node]], fence: str, rows: int, columns: int) -> Node:
    """Return the `M!` node of *rows* × *columns* cells, in row order."""
    node = Node(f"M!{fence}{rows}x{columns}")
    heads = [chain_nodes(cell) or Node("W!") for cell in cells]
    return node.add("w", chain_nodes(heads or [Node("W!")], "e"))


def chain_nodes(line: Sequence[Node], relation: str = "n") -> Node | None:
    """Return the first node of a *line*, each node hanging on the one before it; None for an empty line."""
    for before, after in zip(line, line[1:], strict=False):
        before.add(relation, after)
    return line[0] if line else None


def _multiscripts(children: list[_LayoutElement]) -> list[Node]:
    names = [child.name for child in children]
    split = names.index("mprescripts") if "mprescripts" in names else len(children)
    line = children[:1]
    for relations, found in (("ba", children[1:split]), ("dc", children[split + 1 :])):
        for pair in range(0, len(found), 2):
            line = [_LayoutElement("", _scripts([line[0], *found[pair : pair + 2]], relations))]
    return line[0].line


def _with_children(label: str, children: list[_LayoutElement], relations: str) -> Node:
    node = Node(label)
    for relation, child in zip(relations, children, strict=False):
        node.add(relation, chain_nodes(child.line) or Node("W!"))
    return node


def _table(children: list[_LayoutElement]) -> Node:
    rows = [list(part.cells) if part.name == "mtr" else [part.line] for part in children]
    columns = max(map(len, rows), default=0)
    if columns * len(rows) > 4 * sum(map(len, rows)) + 100:  # one long row would make a huge table of nothing
        rows = [[cell] for row in rows for cell in row]
        columns = 1
    cells = [row[place] if place < len(row) else [] for row in rows for place in range(columns)]
    return matrix_node(cells, "", len(rows), columns)


def _mfenced(attributes: dict[str, str], children: list[_LayoutElement]) -> list[Node]:
    separators = "".join(attributes.get("separators", ",").split())
    line, loose = [Node(attributes.get("open", "("))], [0]
    for place, child in enumerate(children):
        line += child.line
        if separators and place < len(children) - 1:
            loose.append(len(line))
            line.append(Node(separators[min(place, len(separators) - 1)]))
    loose.append(len(line))
    line.append(Node(attributes.get("close", ")")))
    return [node for node in match_fences(line, loose) if node.label]


def match_fences(line: list[Node], loose: Sequence[int]) -> list[Node]:
    """Return a *line* with its brackets matched; *loose* are the positions of what may be a bracket or a comma.

    Each closing bracket is matched with the last free opening one, whatever its shape; a bar with the last free bar if
    no free bracket stands between. A first bracket without a partner takes the last one, or a table at the end.
    """
    if loose and loose[-1] == len(line) - 2 and line[-2].label in OPENING and _is_table(line[-1]):
        line[-1].label = f"M!{line[-2].label}{line[-1].label[2:]}"  # cases: what opens is never closed
        del line[-2]
        loose = loose[:-1]
    pairs = _bracket_pairs(line, loose)
    if not pairs:
        return line
    commas = {place for place in loose if line[place].label == ","}
    begins = {end: begin for begin, end in pairs.items()}
    open_now: list[list[list[Node]]] = [[[]]]  # the elements so far of the row, and of each bracket that is open
    for place, node in enumerate(line):
        if place in pairs:
            open_now.append([[]])
        elif place in begins:
            elements = open_now.pop()
            open_now[-1][-1].append(_fence_node(line[begins[place]], elements, node))
        else:
            open_now[-1][-1].append(node)
            if len(open_now) > 1 and place in commas:
                open_now[-1].append([])
    return open_now[0][0]


def _is_table(node: Node) -> bool:
    label = node.label
    return label[:2] == "M!" and label[2:3].isdigit() and label != "M!1x1" and len(node.children) == 1


def _bracket_pairs(line: Sequence[Node], loose: Sequence[int]) -> dict[int, int]:
    free: list[int] = []
    n_brackets = 0  # free ones that are no bars
    pairs: dict[int, int] = {}
    for place in loose:
        label = line[place].label
        if label in _BARS and free and line[free[-1]].label == label and free[-1] != place - 1:
            pairs[free.pop()] = place
        elif label in OPENING and not line[place].children:
            free.append(place)
            n_brackets += label not in _BARS
        elif label in CLOSING and label not in _BARS and n_brackets:
            while line[start := free.pop()].label in _BARS:  # a bar in brackets, as in P(A|B), is not one of a pair
                pass
            pairs[start] = place
            n_brackets -= 1
    last = len(line) - 1
    if free and free[0] == 0 and last > 0 and loose[-1] == last and line[last].label in CLOSING:
        return {0: last}  # LaTeXML makes a row of each pair of brackets, so the ends of a row belong together
    return pairs


def _fence_node(opening: Node, elements: list[list[Node]], closing: Node) -> Node:
    """Return the node of a pair of brackets, or of the matrix between them, with the closing bracket's scripts."""
    fence = opening.label + closing.label
    if len(elements) > 1 and not elements[-1]:
        elements = elements[:-1]  # nothing after the last comma
    if len(elements) == 1 and len(elements[0]) == 1 and _is_table(only := elements[0][0]):
        only.label = f"M!{fence}{only.label[2:]}"
        only.children += closing.children
        return only
    node = matrix_node(elements, fence, 1, len(elements))
    node.children += closing.children
    return node


def _row(parts: list[Any], problems: list[str]) -> list[Node]:
    line: list[Node] = []
    loose: list[int] = []
    for part in parts:
        if isinstance(part, str):
            problems.append(f"text outside of an element: {part[:40]!r}")
            part = _LayoutElement("", [Node("T!" + part)])
        if len(part.line) == 1 and (part.name == "mo" or part.name in _PLACES):
            loose.append(len(line))
            if part.line[0].label == ";" and (sign := _SIGNS.get(tuple(node.label for node in line[-3:]))):
                del line[-3:], loose[-1]
                part = _LayoutElement("", [Node(sign)])
        line += part.line
    return match_fences(line, loose)
