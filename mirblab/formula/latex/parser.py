"""parser: LaTeX to symbol layout trees: groups, scripts, fractions, accents, arrows, fonts and text."""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mirblab.formula.latex import fences
from mirblab.formula.latex.reader import (
    ENDS,
    GONE,
    HANDLERS,
    MAX_DEPTH,
    End,
    Fence,
    Line,
    Reader,
    blank_comments,
    expand_macros,
    handles,
    tokenize,
    unescape_entities,
)
from mirblab.formula.latex.symbols import (
    BIG,
    CLOSING,
    COMMANDS,
    FONT_COMMANDS,
    INTEGRALS,
    LETTERS,
    PLAIN,
    STYLED,
    character_label,
    negated_label,
)
from mirblab.formula.tree import RELATIONS, Tree

MAX_LENGTH = 50_000  # characters; what is longer is cut off
_NO_DIGIT = re.compile(r"[^\w.]+")
_WITH_OWN_INDEX = frozenset(("O!root", "W!"))  # a root has its index in front of it
# Commands that change only the appearance.
_SILENT = """
displaystyle textstyle scriptstyle scriptscriptstyle limits nolimits displaylimits nonumber notag hfill hline quad qquad
thinspace medspace thickspace negthinspace negmedspace negthickspace enspace enskip mathstrut strut par noindent protect
relax allowbreak nobreak hfil vfill break null nobreakspace space hss llap rlap mathllap mathrlap mathclap clap bigm
Bigm biggm Biggm tiny scriptsize footnotesize small normalsize large Large LARGE huge Huge mathop mathbin mathrel
mathord mathopen mathclose mathpunct mathinner centering boxed fbox ensuremath unboldmath leavevmode cancel
bcancel xcancel hfill* mathpalette normalfont upshape itshape bfseries noalign displaybreak
"""
_WITH_ARGUMENT = (
    "label tag tag* hspace hspace* vspace vspace* phantom hphantom vphantom color textcolor ref eqref cite citep citet "
    "mspace raisebox colorbox footnote hyperref footnotemark cline"
)
Span = tuple[int, int]
PRIMES = {r"\prime": 1, "′": 1, "″": 2, "‴": 3, "⁗": 4, "’": 1}
ACCENTS = {
    "hat": "^", "widehat": "^", "bar": "¯", "overline": "¯", "vec": "→", "tilde": "~", "widetilde": "~", "dot": "˙",
    "ddot": "¨", "dddot": "⃛", "check": "ˇ", "widecheck": "ˇ", "breve": "˘", "acute": "´", "grave": "`",
    "mathring": "˚", "overrightarrow": "→", "overleftarrow": "←", "overleftrightarrow": "↔", "overbrace": "⏞",
    "overbracket": "⎴", "wideparen": "⏜", "overparen": "⏜", "overarc": "⏜",
}  # fmt: skip
UNDER = {
    "underline": "¯", "underbar": "¯", "underbrace": "⏟", "underbracket": "⎵", "underrightarrow": "→",
    "underleftarrow": "←", "utilde": "~", "undertilde": "~",
}  # fmt: skip
ARROWS = {
    "xrightarrow": "→", "xleftarrow": "←", "xleftrightarrow": "↔", "xRightarrow": "⇒", "xLeftarrow": "⇐",
    "xLeftrightarrow": "⇔", "xhookrightarrow": "↪", "xhookleftarrow": "↩", "xmapsto": "↦", "xlongequal": "=",
    "xtwoheadrightarrow": "↠", "xlongrightarrow": "⟶",
}  # fmt: skip
BRACES = frozenset("⏟⏞⎵⎴")
RAISED = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿⁱ", "0123456789+-ni", strict=True))
LOWERED = dict(zip("₀₁₂₃₄₅₆₇₈₉₊₋ₙᵢⱼₖₘ", "0123456789+-nijkm", strict=True))
INFIX = {"over": "", "above": "", "atop": "", "choose": "()", "brack": "[]", "brace": "{}"}
ENCLOSING = {
    **{"abs": "||", "norm": "∥∥", "Abs": "||", "Norm": "∥∥", "absval": "||", "pqty": "()", "bqty": "[]", "Bqty": "{}"},
    **{"paren": "()", "parens": "()", "brackets": "[]", "set": "{}", "Set": "{}"},
}
# Old switches of fonts hold until the end of their group when no brace follows.
_SWITCHES = frozenset(rf"\{name}" for name in "bf rm it sf tt cal sl em mit scr frak boldmath rmfamily".split())
INTEGRAL_SIGNS = frozenset("∫∬∭⨌∮∯")
DIFFERENTIAL = "𝑑"  # what LaTeXML writes, and Tangent after it


def parse_latex(latex: str, macros: Mapping[str, str] | None = None) -> Tree:
    r"""Return the layout tree of a formula; an empty tree for a formula without symbols. It never raises an error.

    Labels are Tangent's, as it makes them from LaTeXML's MathML, so that LaTeX and MathML give the same trees. `spans`
    are the (start, end) in *latex* of each node's symbol or command, without its arguments; `problems` says what was
    guessed or left out, and where first. *macros* maps the author's commands, with backslash, to their text with `#1`
    to `#9`. What is beyond 50,000 characters or nested deeper than 200 is left out. Linear time.

    >>> tree = parse_latex(r"\frac{x^2}{2} + \RP(n)", {r"\RP": r"\mathbb{P}_\R"})
    >>> tree.labels
    ['O!divide', 'V!x', 'N!2', 'N!2', '+', 'V!ℙ', 'V!ℝ', 'M!()1x1', 'V!n']
    >>> tree.relations, tree.spans[:4]
    ('-oaunnbnw', [(0, 5), (6, 7), (8, 9), (11, 12)])
    >>> parse_latex(r"\sqrt{x} + \whatever").problems
    ('unknown command \\whatever at 11',)
    """
    source, places = unescape_entities(latex[:MAX_LENGTH])
    source = blank_comments(source) if "%" in source else source
    tokens, spans = tokenize(source)
    is_cut = False
    if macros and not macros.keys().isdisjoint(tokens):
        tokens, spans, is_cut = expand_macros(tokens, spans, macros)
    reader = Reader(source, tokens, spans)
    if is_cut:
        reader.problem("macros that expand without end: expanded only in part", len(tokens) - 1)
    if len(latex) > MAX_LENGTH:
        reader.problem(f"longer than {MAX_LENGTH} characters: cut off", len(tokens) - 1)
    _read_tokens(reader)
    return _build_tree(reader, places)


def _read_tokens(reader: Reader) -> None:
    tokens, spans, stack = reader.tokens, reader.spans, reader.stack
    labels, parents, relations, where = reader.labels, reader.parents, reader.relations, reader.where
    while stack:
        line = stack[-1]
        nodes, plain, i = line.nodes, line.plain, reader.i
        if line.kind == End.SINGLE and nodes and not line.groups:
            reader.close(line)
            continue
        while True:
            token = tokens[i]
            label = plain.get(token)
            if label is None:
                reader.i = i + 1
                HANDLERS.get(token, _read_unknown)(reader, line, token)
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


def _read_unknown(reader: Reader, line: Line, token: str) -> None:
    """Put what no table lists: text, a number, a character, or an unknown command as a variable with its name."""
    span = reader.spans[reader.i - 1]
    if token[0] != "\\" or len(token) == 1:
        if token[0] == "'":
            _read_primes(reader, line, token)
        elif token[0] in "0123456789." or token[0].isdecimal():
            # a number without the blanks and marks between its thousands, or three dots as one symbol
            digits = token if token.isalnum() else _NO_DIGIT.sub("", token)
            reader.put(line, "V!…" if token[-1] == "." else f"N!{digits}", span)
        else:
            reader.put(line, character_label(token), span)
    elif token.startswith((r"\begin{", r"\begin ")):
        fences.begin_environment(reader, line, token)
    elif token[-1] == "}" and len(token) > 2:
        (fences.end_environment if token.startswith(r"\end") else _read_text_token)(reader, line, token)
    else:
        reader.problem(f"unknown command {token}", reader.i - 1)
        if token[1].isalpha():
            reader.put(line, "V!" + token[1:], span)


def _build_tree(reader: Reader, places: list[int] | None) -> Tree:
    labels, parents, relations, where = reader.labels, reader.parents, reader.relations, reader.where
    if reader.bare:
        _move_scripts_in_front(reader)
    if not reader.is_ordered:
        order = _reading_order(parents, relations)
        new = {node: place for place, node in enumerate(order)} | {-1: -1}
        labels, relations = [labels[node] for node in order], [relations[node] for node in order]
        where, parents = [where[node] for node in order], [new[parents[node]] for node in order]
    if reader.has_integral:
        _mark_differentials(labels, parents, relations)
    if places is not None:
        where = [(places[start], places[end]) for start, end in where]
    problems = [f"{what} at {places[start] if places else start}" for what, start in reader.problems.items()]
    return Tree(labels, parents, "".join(relations), where, tuple(problems))


def _move_scripts_in_front(reader: Reader) -> None:
    """Make scripts without a base those in front of the next symbol, as LaTeXML has them; there must be one."""
    labels, parents, relations = reader.labels, reader.parents, reader.relations
    bare = set(reader.bare)
    after = {parent: node for node, parent in enumerate(parents) if parent in bare and relations[node] == "n"}
    after = {node: base for node, base in after.items() if labels[base] not in _WITH_OWN_INDEX}
    for node, parent in enumerate(parents):
        if parent in after and relations[node] in "ab":
            parents[node], relations[node] = after[parent], "c" if relations[node] == "a" else "d"
    for node, base in after.items():
        parents[base], relations[base], parents[node] = parents[node], relations[node], GONE
        reader.is_ordered = False


def _reading_order(parents: list[int], relations: list[str]) -> list[int]:
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


@handles("{", commands="bgroup begingroup")
def _open_group(reader: Reader, line: Line, token: str) -> None:
    line.groups.append((len(line.nodes), line.font, line.plain))


@handles("}", commands="egroup endgroup")
def _close_group(reader: Reader, line: Line, token: str) -> None:
    if line.groups:
        _, line.font, line.plain = line.groups.pop()
    elif line.kind == End.GROUP:
        fences.settle_cases(reader, line)
        reader.close(line)
    elif line.kind in (End.REST, End.SINGLE) or (line.kind == End.CELL and line.data.is_braced):
        reader.i -= 1
        reader.close(line)
    else:
        reader.problem("closing brace without its partner", reader.i - 1)


@handles("")
def _finish_formula(reader: Reader, line: Line, token: str) -> None:
    reader.i -= 1
    if line.kind in (End.GROUP, End.BRACKET) or line.groups:
        reader.problem("brace or bracket not closed", reader.i)
    if reader.lefts:
        reader.problem(r"\left without its \right", reader.i)
    fences.settle_cases(reader, line)
    reader.close(line)


@handles("~", "%", *(f"\\{char}" for char in ",;:! >/-()[]@\n\t"), commands=_SILENT)
def _skip_command(reader: Reader, line: Line, token: str) -> None:
    pass


@handles(commands=_WITH_ARGUMENT)
def _skip_argument(reader: Reader, line: Line, token: str) -> None:
    option = reader.bracket()
    reader.i += len(option) + 2 if option else 0
    if reader.tokens[reader.i] != "{" and token.startswith(r"\tag"):
        reader.i += reader.tokens[reader.i] not in ("", "}")
    reader.skip_braces()


@handles(commands="rule definecolor setlength fcolorbox")
def _skip_arguments(reader: Reader, line: Line, token: str) -> None:
    _skip_argument(reader, line, token)
    reader.skip_braces()


@handles(commands="hskip vskip kern mkern mskip")
def _skip_length(reader: Reader, line: Line, token: str) -> None:
    if reader.tokens[reader.i] == "-":
        reader.i += 1
    if reader.tokens[reader.i][:1].isdigit() or reader.tokens[reader.i][:1] == ".":
        reader.i += 1
        unit = "".join(reader.tokens[reader.i : reader.i + 2])
        reader.i += 2 * (unit in ("pt", "em", "ex", "mu", "cm", "mm", "in", "pc", "bp", "sp"))


def _read_text_token(reader: Reader, line: Line, token: str) -> None:
    r"""Put the text of `\text{...}` or the name of `\operatorname{...}`, which come as one token."""
    command, _, inner = token.partition("{")
    words = " ".join(inner[:-1].replace("~", " ").split())
    if command.startswith(r"\operatorname"):
        name = words.replace(" ", "")
        reader.put(line, COMMANDS.get("\\" + name) or "V!" + name, reader.spans[reader.i - 1])
    elif words:
        reader.put(line, "T!" + words, reader.spans[reader.i - 1])


def _mark_differentials(labels: list[str], parents: Sequence[int], relations: Sequence[str]) -> None:
    """Relabel each d that stands behind an integral sign and before a variable; nodes in reading order."""
    behind: list[bool] = []  # an integral sign stands before the node, on its line or on one around it
    for node, (parent, relation) in enumerate(zip(parents, relations, strict=True)):
        if parent < 0 or relation in "abcd":
            behind.append(False)
            continue
        behind.append(behind[parent] or (relation == "n" and labels[parent] in INTEGRAL_SIGNS))
        if relation == "n" and behind[parent] and labels[parent] == "V!d" and labels[node][:2] == "V!":
            labels[parent] = DIFFERENTIAL


@handles("^", "_", r"\sp", r"\sb")
def _read_script(reader: Reader, line: Line, token: str) -> None:
    nodes, base = line.nodes, _script_base(reader, line)
    label, is_upper = reader.labels[base], token in ("^", r"\sp")
    if (base, "o" if is_upper else "u") in reader.braced:  # what an over- or underbrace says
        relation = "o" if is_upper else "u"
        base = reader.wrap(line, len(nodes) - 1, "M!1x1", "w", reader.where[base])
    elif label in BIG or label[1:2] != "!" and label[0] != "?" and label not in CLOSING:
        relation = "o" if is_upper else "u"
    else:
        relation = "a" if is_upper else "b"
    before = reader.ends.get((base, relation))
    if before is not None and reader.labels[before][0] != "′":  # x'^2 is one script in TeX, x^1^2 an error
        reader.problem(f"second {'superscript' if is_upper else 'subscript'} on one symbol", reader.i - 1)
    parent, hang = reader.place(base, relation)
    reader.argument(parent, hang, _note_end, (base, relation))


def _script_base(reader: Reader, line: Line) -> int:
    """Return the node that a script hangs on: the last one, or an empty one at a beginning and after a lone `{}`."""
    nodes, at = line.nodes, reader.i - 1
    kind = line.fences[-1][1] if line.fences and line.fences[-1][0] == len(nodes) - 1 else Fence.NOTHING
    if kind in (Fence.BAR, Fence.DOUBTFUL):  # it has a script, so it opens nothing
        line.fences.pop()
    if nodes and kind not in (Fence.OPENING, Fence.LEFT):
        label = reader.labels[nodes[-1]]
        if label[1:2] == "!" or label in CLOSING or at < 2 or reader.tokens[at - 2 : at] != ["{", "}"]:
            return nodes[-1]
    reader.bare.append(reader.put(line, "W!", (reader.spans[at][0],) * 2))
    return nodes[-1]


def _note_end(reader: Reader, nodes: list[int], key: tuple[int, str]) -> None:
    reader.ends[key] = nodes[-1]


@handles(*INTEGRALS)
def _read_integral(reader: Reader, line: Line, token: str) -> None:
    reader.has_integral = True
    reader.put(line, INTEGRALS[token], reader.spans[reader.i - 1])


@handles("'")
def _read_primes(reader: Reader, line: Line, token: str) -> None:
    """Put primes as one superscript."""
    base, label, span = _script_base(reader, line), *_primes(reader)
    parent, hang = reader.place(base, "a")
    reader.ends[base, "a"] = reader.add(label, span, parent, hang)


def _primes(reader: Reader) -> tuple[str, Span]:
    first = reader.i - 1
    while (token := reader.tokens[reader.i])[:1] == "'" or token in PRIMES:
        reader.i += 1
    count = sum(PRIMES.get(token) or len(token) for token in reader.tokens[first : reader.i])
    return "′" * count, (reader.spans[first][0], reader.spans[reader.i - 1][1])


@handles(*PRIMES)
def _read_prime_command(reader: Reader, line: Line, token: str) -> None:
    r"""Put `\prime` or its character: as a symbol in a superscript, otherwise as a superscript itself."""
    if token == r"\prime" or (line.relation == "a" and not line.nodes):
        reader.put(line, *_primes(reader))
    else:
        _read_primes(reader, line, token)


@handles(*RAISED, *LOWERED)
def _read_small_signs(reader: Reader, line: Line, token: str) -> None:
    """Put the characters of a power or an index, as in x² and a₁₂, as a script; neighbouring digits are one number."""
    base, relation = _script_base(reader, line), "a" if token in RAISED else "b"
    signs = RAISED if token in RAISED else LOWERED
    reader.i -= 1
    while sign := signs.get(reader.tokens[reader.i]):
        start = reader.i
        while sign.isdigit() and (digit := signs.get(reader.tokens[reader.i + 1], "")).isdigit():
            sign += digit
            reader.i += 1
        label = f"N!{sign}" if sign.isdigit() else f"V!{sign}" if sign.isalpha() else sign
        span = (reader.spans[start][0], reader.spans[reader.i][1])
        parent, hang = reader.place(base, relation)
        reader.ends[base, relation] = reader.add(label, span, parent, hang)
        reader.i += 1


@handles(commands=["smash", "smash*"])
def _skip_position(reader: Reader, line: Line, token: str) -> None:
    reader.skip_position("tb")


@handles(commands="mathchoice")
def _read_choice(reader: Reader, line: Line, token: str) -> None:
    """Read the first of four arguments, that of a display."""
    _read_on_line(reader, line, _skip_choices, None)


def _skip_choices(reader: Reader, line: Line, first: int, data: None) -> None:
    for _ in range(3):
        reader.skip_braces()


@handles(commands="frac dfrac tfrac cfrac nicefrac sfrac")
def _read_fraction(reader: Reader, line: Line, token: str) -> None:
    if token == r"\cfrac":
        reader.skip_position("lrc")
    node = reader.put(line, "O!divide", reader.spans[reader.i - 1])
    reader.argument(node, "o", _read_second, (node, "u"))


def _read_second(reader: Reader, nodes: list[int], place: tuple[int, str]) -> None:
    reader.argument(*place)


@handles(commands="binom dbinom tbinom")
def _read_binomial(reader: Reader, line: Line, token: str) -> None:
    span = reader.spans[reader.i - 1]
    fence = reader.put(line, "M!()1x1", span)
    node = reader.add("O!divide", span, fence, "w")
    reader.argument(node, "o", _read_second, (node, "u"))


@handles(commands=INFIX)
def _read_infix(reader: Reader, line: Line, token: str) -> None:
    r"""Read `\over` and its like: what precedes it in its group over what follows; a second one is ignored."""
    span, fence = reader.spans[reader.i - 1], INFIX[token[1:]]
    if (line.kind == End.REST and not line.groups) or line.depth + len(line.groups) > MAX_DEPTH:
        reader.problem(f"{token} left out", reader.i - 1)
        return
    first = min(line.groups[-1][0], len(line.nodes)) if line.groups else 0
    lefts = [at + (kind == Fence.LEFT) for at, kind in line.fences if kind in Fence.AFTER_LEFT]
    first = max([first, *lefts])  # \left and \right are a group, too
    node = reader.wrap(line, first, "O!divide", "o", span)
    if fence:
        reader.wrap(line, first, f"M!{fence}1x1", "w", span)
    reader.open(node, "u", End.REST)


@handles(commands=ENCLOSING)
def _read_enclosed(reader: Reader, line: Line, token: str) -> None:
    reader.argument(reader.put(line, f"M!{ENCLOSING[token[1:]]}1x1", reader.spans[reader.i - 1]), "w")


@handles("√", commands="sqrt")
def _read_root(reader: Reader, line: Line, token: str) -> None:
    if token == "√" and reader.tokens[reader.i] == "(":
        reader.put(line, token, reader.spans[reader.i - 1])
        return
    node = reader.put(line, "O!root", reader.spans[reader.i - 1])
    if reader.tokens[reader.i] == "[":
        reader.i += 1
        reader.open(node, "c", End.BRACKET, _read_second, (node, "w"))
    else:
        reader.argument(node, "w")


@handles(commands=[*ACCENTS, *UNDER])
def _read_accent(reader: Reader, line: Line, token: str) -> None:
    name = token[1:]
    mark, relation = (ACCENTS[name], "o") if name in ACCENTS else (UNDER[name], "u")
    _read_on_line(reader, line, _add_accent, (mark, relation, reader.spans[reader.i - 1]))


def _read_on_line(reader: Reader, line: Line, after: Callable, data: Any) -> None:
    """Read the next argument as the next nodes of this line, then call *after* with the number of nodes before."""
    parent, relation = (line.nodes[-1], "n") if line.nodes else (line.parent, line.relation)
    reader.argument(parent, relation, _append_nodes, (line, after, data))


def _append_nodes(reader: Reader, nodes: list[int], context: tuple) -> None:
    line, after, data = context
    first = len(line.nodes)
    line.nodes += nodes
    after(reader, line, first, data)


def _add_accent(reader: Reader, line: Line, first: int, context: tuple[str, str, Span]) -> None:
    mark, relation, span = context
    base = _accent_base(reader, line, first, relation, span)
    reader.place(base, relation)
    reader.ends[base, relation] = reader.add(mark, span, base, relation)
    if mark in BRACES:
        reader.braced.add((base, relation))


def _accent_base(reader: Reader, line: Line, first: int, relation: str, span: Span) -> int:
    """Return the node that a mark hangs on: a wrapper where there are several, or where one has such a mark already."""
    base = line.nodes[-1]
    if len(line.nodes) - first > 1 or reader.labels[base] == "O!divide" or (base, relation) in reader.ends:
        reader.wrap(line, first, "M!1x1", "w", span)
    return line.nodes[-1]


@handles(commands="overset stackrel underset")
def _read_stacked(reader: Reader, line: Line, token: str) -> None:
    relation = "u" if token == r"\underset" else "o"
    reader.argument(-1, relation, _read_stacked_base, (line, relation, reader.spans[reader.i - 1]))


def _read_stacked_base(reader: Reader, nodes: list[int], context: tuple[Line, str, Span]) -> None:
    line, relation, span = context
    _read_on_line(reader, line, _hang_stacked, (nodes, relation, span))


def _hang_stacked(reader: Reader, line: Line, first: int, context: tuple[list[int], str, Span]) -> None:
    nodes, relation, span = context
    base = _accent_base(reader, line, first, relation, span)
    reader.is_ordered = False
    reader.parents[nodes[0]], reader.relations[nodes[0]] = reader.place(base, relation)
    reader.ends[base, relation] = nodes[-1]


@handles(commands=[*ARROWS, "xleftarrow*", "xrightarrow*"])
def _read_arrow(reader: Reader, line: Line, token: str) -> None:
    node = reader.put(line, ARROWS[token[1:].rstrip("*")], reader.spans[reader.i - 1])
    if reader.tokens[reader.i] == "[":
        reader.i += 1
        reader.is_ordered = False
        reader.open(node, "u", End.BRACKET, _read_above_arrow, node)
    else:
        reader.argument(node, "o", _note_end, (node, "o"))


def _read_above_arrow(reader: Reader, nodes: list[int], node: int) -> None:
    reader.ends[node, "u"] = nodes[-1]
    reader.argument(node, "o", _note_end, (node, "o"))


@handles(commands="not")
def _read_negation(reader: Reader, line: Line, token: str) -> None:
    if reader.tokens[reader.i] not in ENDS:
        _read_on_line(reader, line, _negate, reader.spans[reader.i - 1])


def _negate(reader: Reader, line: Line, first: int, span: Span) -> None:
    node = line.nodes[first]
    label = reader.labels[node]
    if label[:2] not in ("O!", "M!", "W!"):
        reader.labels[node] = negated_label(label)
    reader.where[node] = (span[0], max(span[1], reader.where[node][1]))


@handles(commands="pmod pod")
def _read_modulo(reader: Reader, line: Line, token: str) -> None:
    span = reader.spans[reader.i - 1]
    fence = reader.put(line, "M!()1x1", span)
    if token == r"\pmod":
        reader.argument(reader.add("mod", span, fence, "w"), "n")
    else:
        reader.argument(fence, "w")


@handles(commands="text mbox textrm textnormal textit textbf texttt textsc textup textmd hbox intertext")
def _read_text(reader: Reader, line: Line, token: str) -> None:
    if reader.tokens[reader.i] == "{":
        reader.i += 1
        line.groups.append((len(line.nodes), line.font, line.plain))
        line.font, line.plain = "text", PLAIN
        _read_text_part(reader, line)


def _read_text_part(reader: Reader, line: Line) -> None:
    tokens, first, level = reader.tokens, reader.i, 0
    while tokens[reader.i] not in ("", "$") and (level or tokens[reader.i] != "}"):
        level += (tokens[reader.i] == "{") - (tokens[reader.i] == "}")
        reader.i += 1
    if reader.i > first:
        start, end = reader.spans[first][0], reader.spans[reader.i - 1][1]
        found = reader.source[start:end] if start < end else " ".join(tokens[first : reader.i])
        words = " ".join(found.replace("{", "").replace("}", "").replace("~", " ").split())
        if words:
            reader.put(line, "T!" + words, (start, end))
    if tokens[reader.i] == "$":
        reader.i += 1


@handles("$")
def _read_dollar(reader: Reader, line: Line, token: str) -> None:
    """Go back from mathematics to the text around it; elsewhere a dollar is ignored."""
    if line.font == "text" and line.groups:
        _read_text_part(reader, line)


@handles(*FONT_COMMANDS)
def _read_font(reader: Reader, line: Line, token: str) -> None:
    name, following = FONT_COMMANDS[token], reader.tokens[reader.i]
    if following == "{":
        reader.i += 1
        line.groups.append((len(line.nodes), line.font, line.plain))
        line.font, line.plain = name, STYLED[name]
    elif token in _SWITCHES:
        line.font, line.plain = name, STYLED[name]
    else:
        label = STYLED[name].get(following) or LETTERS.get(name, {}).get(following)
        if label is not None:
            reader.i += 1
            reader.put(line, label, reader.spans[reader.i - 1])


@handles(*string.ascii_letters)
def _read_letter(reader: Reader, line: Line, token: str) -> None:
    nodes, label, (start, end) = line.nodes, LETTERS[line.font][token], reader.spans[reader.i - 1]
    begin = line.groups[-1][0] if line.groups else 0
    before = reader.tokens[reader.i - 2] if reader.i > 1 else ""
    if len(nodes) > begin and nodes[-1] == len(reader.labels) - 1 and before in LETTERS["rm"]:
        reader.labels[nodes[-1]] += label[2:]
        reader.where[nodes[-1]] = (reader.where[nodes[-1]][0], end)
    else:
        reader.put(line, label, (start, end))


@handles(commands="qvar")
def _read_wildcard(reader: Reader, line: Line, token: str) -> None:
    tokens, start, name = reader.tokens, reader.i - 1, ""
    if tokens[reader.i] == "{":
        reader.i += 1
        while tokens[reader.i] not in ("}", ""):
            name += tokens[reader.i].lstrip("\\")
            reader.i += 1
        reader.i += tokens[reader.i] == "}"
    elif tokens[reader.i] not in ("", "}", "&"):
        name = tokens[reader.i].lstrip("\\")
        reader.i += 1
    reader.put(line, "?" + name, (reader.spans[start][0], reader.spans[reader.i - 1][1]))
