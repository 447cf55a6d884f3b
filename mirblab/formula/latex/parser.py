"""parser: LaTeX to symbol layout trees."""

from __future__ import annotations

import re
from collections.abc import Mapping

from mirblab.formula.latex import structures
from mirblab.formula.latex.reader import (
    BRACKET,
    CELL,
    GONE,
    GROUP,
    LEFT,
    REST,
    SINGLE,
    Line,
    Reader,
    expand_macros,
    tokenize,
    unescape_entities,
)
from mirblab.formula.latex.structures import mark_differentials
from mirblab.formula.latex.symbols import BARS, CLOSERS, FONT_COMMANDS, INTEGRALS, OPENERS, character_label
from mirblab.formula.tree import RELATIONS, Tree

_NO_DIGIT = re.compile(r"[^\w.]+")


def read_number(reader: Reader, line: Line, token: str) -> None:
    """Put a number without the blanks and marks between its thousands, or three dots as one symbol."""
    label = "V!…" if token[-1] == "." else "N!" + (token if token.isalnum() else _NO_DIGIT.sub("", token))
    reader.put(line, label, reader.spans[reader.i - 1])


def open_group(reader: Reader, line: Line, token: str) -> None:
    """Open a group on the line; its nodes are spliced into it."""
    line.groups.append((len(line.nodes), line.font, line.plain))


def close_group(reader: Reader, line: Line, token: str) -> None:
    """Close a group, or the argument that the brace ends."""
    if line.groups:
        _, line.font, line.plain = line.groups.pop()
    elif line.kind == GROUP:
        structures.settle_cases(reader, line)
        reader.close(line)
    elif line.kind in (REST, SINGLE) or (line.kind == CELL and line.data.is_braced):
        reader.i -= 1
        reader.close(line)
    else:
        reader.problem("closing brace without its partner", reader.i - 1)


def finish_formula(reader: Reader, line: Line, token: str) -> None:
    """End the formula: close whatever is open."""
    reader.i -= 1
    if line.kind in (GROUP, BRACKET) or line.groups:
        reader.problem("brace or bracket not closed", reader.i)
    if any(kind == LEFT for _, kind in line.fences):
        reader.problem(r"\left without its \right", reader.i)
    structures.settle_cases(reader, line)
    reader.close(line)


def skip_command(reader: Reader, line: Line, token: str) -> None:
    """Pass over a command that changes only the looks."""


def skip_argument(reader: Reader, line: Line, token: str) -> None:
    """Pass over a command and its argument in braces, or one token where a tag has none."""
    structures.skip_option(reader)
    if reader.tokens[reader.i] != "{" and token.startswith(r"\tag"):
        reader.i += reader.tokens[reader.i] not in ("", "}")
    structures.skip_braces(reader)


def skip_arguments(reader: Reader, line: Line, token: str) -> None:
    """Pass over a command and its two arguments in braces."""
    skip_argument(reader, line, token)
    structures.skip_braces(reader)


def skip_length(reader: Reader, line: Line, token: str) -> None:
    """Pass over a command and its length, such as 3pt."""
    if reader.tokens[reader.i] == "-":
        reader.i += 1
    if reader.tokens[reader.i][:1].isdigit() or reader.tokens[reader.i][:1] == ".":
        reader.i += 1
        unit = "".join(reader.tokens[reader.i : reader.i + 2])
        reader.i += 2 * (unit in ("pt", "em", "ex", "mu", "cm", "mm", "in", "pc", "bp", "sp"))


def read_unknown(reader: Reader, line: Line, token: str) -> None:
    """Put what no table knows: text, a number, a character, or an unknown command as a variable with its name."""
    if token[0] != "\\" or len(token) == 1:
        if token[0] == "'":
            structures.read_primes(reader, line, token)
        elif token[0] in "0123456789." or token[0].isdecimal():
            read_number(reader, line, token)
        else:
            reader.put(line, character_label(token), reader.spans[reader.i - 1])
    elif token.startswith(r"\begin{") or token.startswith(r"\begin "):
        structures.begin_environment(reader, line, token)
    elif token[-1] == "}" and len(token) > 2:
        (structures.end_environment if token.startswith(r"\end") else structures.read_text_token)(reader, line, token)
    else:
        reader.problem(f"unknown command {token}", reader.i - 1)
        if token[1].isalpha():
            reader.put(line, "V!" + token[1:], reader.spans[reader.i - 1])


def _handle_all(handler: object, names: str) -> dict[str, object]:
    """Return the commands of these names with one handler."""
    return dict.fromkeys([f"\\{name}" for name in names.split()], handler)


HANDLERS = (
    _handle_all(
        skip_command,
        "displaystyle textstyle scriptstyle scriptscriptstyle limits nolimits displaylimits nonumber notag hfill "
        "hline quad qquad thinspace medspace thickspace negthinspace negmedspace negthickspace enspace enskip "
        "mathstrut strut par noindent protect relax allowbreak nobreak hfil vfill break null nobreakspace space hss "
        "llap rlap mathllap mathrlap mathclap clap bigm Bigm biggm Biggm tiny scriptsize footnotesize small "
        "normalsize large Large LARGE huge Huge mathop mathbin mathrel mathord mathopen mathclose mathpunct "
        "mathinner centering smash smash* boxed fbox ensuremath unboldmath leavevmode cancel bcancel xcancel hfill* "
        "mathchoice mathpalette normalfont upshape itshape bfseries noalign displaybreak",
    )
    | dict.fromkeys(["~", "%", *(f"\\{char}" for char in ",;:! >/-()[]@\n\t")], skip_command)
    | _handle_all(
        skip_argument, "label tag tag* hspace hspace* vspace vspace* phantom hphantom vphantom color textcolor ref"
    )
    | _handle_all(skip_argument, "eqref cite citep citet mspace raisebox colorbox footnote hyperref footnotemark cline")
    | _handle_all(skip_arguments, "rule definecolor setlength fcolorbox")
    | _handle_all(skip_length, "hskip vskip kern mkern mskip")
    | _handle_all(structures.read_fraction, "frac dfrac tfrac cfrac nicefrac sfrac")
    | _handle_all(structures.read_binomial, "binom dbinom tbinom")
    | _handle_all(structures.read_braced_matrix, " ".join(structures.BRACED))
    | _handle_all(structures.read_infix, " ".join(structures.INFIX))
    | _handle_all(structures.read_enclosed, " ".join(structures.ENCLOSING))
    | _handle_all(structures.read_accent, " ".join((*structures.ACCENTS, *structures.UNDER)))
    | _handle_all(structures.read_arrow, " ".join((*structures.ARROWS, "xleftarrow*", "xrightarrow*")))
    | _handle_all(structures.read_stacked, "overset stackrel underset")
    | _handle_all(structures.read_modulo, "pmod pod")
    | _handle_all(
        structures.read_text,
        "text mbox textrm textnormal textit textbf textsf texttt textsc textup textmd hbox intertext",
    )
    | dict.fromkeys(FONT_COMMANDS, structures.read_font)
    | dict.fromkeys("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", structures.read_letter)
    | dict.fromkeys(structures.SEPARATORS, structures.end_cell)
    | dict.fromkeys(OPENERS, structures.read_opener)
    | dict.fromkeys(CLOSERS, structures.read_closer)
    | dict.fromkeys(BARS, structures.read_bar)
    | dict.fromkeys(INTEGRALS, structures.read_integral)
    | _handle_all(structures.read_sized_fence, "big Big bigg Bigg bigl Bigl biggl Biggl bigr Bigr biggr Biggr")
    | _handle_all(structures.read_left_right, "left right middle")
    | _handle_all(open_group, "bgroup begingroup")
    | _handle_all(close_group, "egroup endgroup")
    | {
        "^": structures.read_script,
        "_": structures.read_script,
        r"\sp": structures.read_script,
        r"\sb": structures.read_script,
    }
    | {"{": open_group, "}": close_group, "": finish_formula, "$": structures.read_dollar, "'": structures.read_primes}
    | dict.fromkeys(structures.PRIMES, structures.read_prime_command)
    | {r"\sqrt": structures.read_root, r"\not": structures.read_negation, r"\qvar": structures.read_wildcard}
)


MAX_LENGTH = 50_000  # characters; what is longer is cut off


def parse_latex(latex: str, macros: Mapping[str, str] | None = None) -> Tree:
    r"""Return the layout tree of a formula; an empty tree where there is nothing to see. It fails for no string.

    Labels are Tangent's, as it makes them from LaTeXML's MathML, so that LaTeX and MathML give the same trees.
    `spans` are the places in *latex* of what the user wrote for each node: its symbol or its command, without the
    arguments, which have nodes of their own. `problems` says what was guessed or left out, and where first. *macros*
    are the author's commands with their backslash, and what they stand for, with `#1` to `#9` for arguments. What is
    longer than 50,000 characters is cut off, what is nested deeper than 200 left out. Takes linear time, and no stack.

    >>> tree = parse_latex(r"\frac{x^2}{2} + \RP(n)", {r"\RP": r"\mathbb{P}_\R"})
    >>> tree.labels
    ['O!divide', 'V!x', 'N!2', 'N!2', '+', 'V!ℙ', 'V!ℝ', 'M!()1x1', 'V!n']
    >>> tree.relations, tree.spans[:4]
    ('-oaunnbnw', [(0, 5), (6, 7), (8, 9), (11, 12)])
    >>> parse_latex(r"\sqrt{x} + \whatever").problems
    ('unknown command \\whatever at 11',)
    """
    source, places = unescape_entities(latex[:MAX_LENGTH])
    tokens, spans = tokenize(source)
    is_cut = False
    if macros and not macros.keys().isdisjoint(tokens):
        tokens, spans, is_cut = expand_macros(tokens, spans, macros)
    reader = Reader(source, tokens, spans)
    if is_cut:
        reader.problem("macros that go on for ever: expanded only in part", len(tokens) - 1)
    if len(latex) > MAX_LENGTH:
        reader.problem(f"longer than {MAX_LENGTH} characters: cut off", len(tokens) - 1)
    _read_tokens(reader)
    return _build_tree(reader, places)


def _read_tokens(reader: Reader) -> None:
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
                HANDLERS.get(token, read_unknown)(reader, line, token)
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


def _build_tree(reader: Reader, places: list[int] | None) -> Tree:
    """Return the tree of what was read, in reading order."""
    labels, parents, relations, where = reader.labels, reader.parents, reader.relations, reader.where
    if reader.bare:
        _move_scripts_in_front(reader)
    if not reader.is_ordered:
        order = _reading_order(parents, relations)
        new = {node: place for place, node in enumerate(order)} | {-1: -1}
        labels, relations = [labels[node] for node in order], [relations[node] for node in order]
        where, parents = [where[node] for node in order], [new[parents[node]] for node in order]
    if reader.has_integral:
        mark_differentials(labels, parents, relations)
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


_WITH_OWN_INDEX = frozenset(("O!root", "W!"))  # a root has its index there


def _reading_order(parents: list[int], relations: list[str]) -> list[int]:
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
