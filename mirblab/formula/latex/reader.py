"""reader: the tokens of a LaTeX formula, with macros expanded."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any

from mirblab.formula.latex.symbols import PLAIN


class End:
    """Where a line ends.

    GROUP with its brace, SINGLE after one element, REST before whatever ends the line around it, BRACKET with its
    bracket, CELL with `&`, a new row or the end of its environment, TOP with the formula.
    """

    GROUP, SINGLE, REST, BRACKET, CELL, TOP = range(6)


class Fence:
    """The entries of `Line.fences`, which wait for a partner.

    OPENING an opening fence, BAR a bar that may be one, DOUBTFUL a bar that divides if it has no partner, LEFT a fence
    after \\left, NOTHING the full stop after \\left.
    """

    OPENING, BAR, DOUBTFUL, LEFT, NOTHING = range(5)
    AFTER_LEFT = (LEFT, NOTHING)


MAX_DEPTH = 200  # how far lines and fences may be nested
# Which relations must already be there when one is added, or the nodes are not in reading order.
_LATER = {"a": "", "b": "a", "u": "ba", "o": "uba", "w": "uba", "c": "woub", "d": "woub"}
GONE = -2  # the parent of a node that was put and then taken away
_SKIPPED = {End.GROUP: "{}", End.SINGLE: "{}", End.BRACKET: "[]"}
ENDS = frozenset({"", "}", "&", "\\\\", "\\right", "\\end"})
Handler = Callable[["Reader", "Line", str], None]
HANDLERS: dict[str, Handler] = {}  # what reads a token that is not one node by itself


def handles(*tokens: str, commands: str | Iterable[str] = ()) -> Callable[[Handler], Handler]:
    """Return a decorator that registers a function as handler of *tokens* and of *commands* (without backslash)."""
    names = commands.split() if isinstance(commands, str) else commands

    def register(handler: Handler) -> Handler:
        HANDLERS.update(dict.fromkeys([*tokens, *(f"\\{name}" for name in names)], handler))
        return handler

    return register


class Line:
    """One baseline: its nodes so far, where its first node hangs, and where it ends.

    `groups` are the open braces on the line, `fences` the positions in `nodes` of opening fences that wait for their
    partner. At the end `after(reader, nodes, data)` is called.
    """

    __slots__ = ("parent", "relation", "kind", "after", "data", "nodes", "groups", "fences", "plain", "font", "depth")

    def __init__(self, parent: int, relation: str, kind: int, after: Callable | None, data: Any, depth: int) -> None:
        self.parent, self.relation, self.kind, self.after, self.data = parent, relation, kind, after, data
        self.nodes: list[int] = []
        self.groups: list[tuple[int, str, dict[str, str]]] = []
        self.fences: list[tuple[int, int]] = []
        self.plain, self.font, self.depth = PLAIN, "", depth


class Reader:
    """The tokens, the position among them, the nodes made so far and the stack of open lines."""

    __slots__ = (
        *("bare", "braced", "cells", "ends", "has_integral", "i", "is_ordered", "labels", "lefts", "parents"),
        *("problems", "relations", "source", "spans", "stack", "tokens", "unopened", "where"),
    )

    def __init__(self, source: str, tokens: list[str], spans: list[tuple[int, int]]) -> None:
        self.source, self.tokens, self.spans, self.i = source, tokens, spans, 0
        self.labels: list[str] = []
        self.parents: list[int] = []
        self.relations: list[str] = []
        self.where: list[tuple[int, int]] = []
        self.bare: list[int] = []  # empty nodes that scripts hang on
        self.ends: dict[tuple[int, str], int] = {}  # (node, relation) -> last node of that script's line
        self.braced: set[tuple[int, str]] = set()  # (node, relation) of over- and underbraces
        self.problems: dict[str, int] = {}  # what was not understood, and where first
        self.is_ordered, self.has_integral = True, False
        self.cells, self.unopened = 0, 0  # cells that are open; environments nested too deep to be opened
        self.lefts = 0  # \left that wait for their \right
        self.stack = [Line(-1, "-", End.TOP, None, None, 0)]

    def put(self, line: Line, label: str, span: tuple[int, int]) -> int:
        """Add a node at the end of the line and return it."""
        node = len(self.labels)
        self.labels.append(label)
        self.where.append(span)
        if line.nodes:
            self.parents.append(line.nodes[-1])
            self.relations.append("n")
        else:
            self.parents.append(line.parent)
            self.relations.append(line.relation)
        line.nodes.append(node)
        return node

    def add(self, label: str, span: tuple[int, int], parent: int, relation: str) -> int:
        """Add a node that stands on no open line and return it."""
        self.labels.append(label)
        self.where.append(span)
        self.parents.append(parent)
        self.relations.append(relation)
        return len(self.labels) - 1

    def wrap(self, line: Line, first: int, label: str, relation: str, span: tuple[int, int]) -> int:
        """Put the nodes of the line from position *first* on under a new node, by *relation*; return the new node."""
        node = len(self.labels)
        head = line.nodes[first] if first < len(line.nodes) else -1
        if head < 0:
            head = self.put(line, "W!", (span[0], span[0]))
            node += 1
        self.add(label, span, self.parents[head], self.relations[head])
        self.parents[head], self.relations[head] = node, relation
        line.nodes[first:] = [node]
        line.fences = [fence for fence in line.fences if fence[0] < first + (fence[1] == Fence.NOTHING)]
        self.is_ordered = False
        return node

    def place(self, base: int, relation: str) -> tuple[int, str]:
        """Return where a script of *base* hangs: on it, or at the end of the script that is there already."""
        there = self.ends.get((base, relation))
        if there is not None:
            self.is_ordered = False
            return there, "n"
        if self.ends:
            for later in _LATER[relation]:
                if (base, later) in self.ends:
                    self.is_ordered = False
        return base, relation

    def argument(self, parent: int, relation: str, after: Callable | None = None, data: Any = None) -> None:
        """Read the next argument onto a line that hangs on *parent*; then call *after* with its nodes."""
        i, tokens, line = self.i, self.tokens, self.stack[-1]
        token = tokens[i]
        if token == "{":
            self.i = i + 1
            label = line.plain.get(tokens[i + 1])
            if label is not None and tokens[i + 2] == "}":
                self.i = i + 3
                node = self.add(label, self.spans[i + 1], parent, relation)
            else:
                self.open(parent, relation, End.GROUP, after, data)
                return
        elif (label := line.plain.get(token)) is not None:
            self.i = i + 1
            node = self.add(label, self.spans[i], parent, relation)
        elif token[:1].isdigit():
            start, end = self.spans[i]
            tokens[i] = token[1:].lstrip(" \\,;{}")
            self.spans[i] = (end - len(tokens[i]) if end - start == len(token) else start, end)
            if not tokens[i]:
                self.i = i + 1
            node = self.add("N!" + token[0], (start, start + 1), parent, relation)
        elif token in ENDS or token.startswith("\\end"):
            self.problem("argument missing", i)
            node = self.add("W!", (self.spans[i][0],) * 2, parent, relation)
        else:
            self.open(parent, relation, End.SINGLE, after, data)
            return
        if after is not None:
            after(self, [node], data)

    def open(self, parent: int, relation: str, kind: int, after: Callable | None = None, data: Any = None) -> None:
        """Begin a line that hangs on *parent*; nested too deep, it is left out."""
        above = self.stack[-1]
        depth = above.depth + len(above.fences) + 1
        if depth > MAX_DEPTH and kind in _SKIPPED:
            self._skip(kind)
            node = self.add("W!", (self.spans[self.i][0],) * 2, parent, relation)
            if after is not None:
                after(self, [node], data)
            return
        line = Line(parent, relation, kind, after, data, depth)
        line.plain, line.font = above.plain, above.font
        self.stack.append(line)

    def close(self, line: Line) -> None:
        """End the line, which is the innermost one."""
        self.stack.pop()
        if not line.nodes and line.kind not in (End.TOP, End.CELL):
            self.put(line, "W!", (self.spans[self.i][0],) * 2)
        if line.after is not None:
            line.after(self, line.nodes, line.data)

    def problem(self, what: str, i: int) -> None:
        """Note what was not understood at token *i*; the first twenty kinds are kept."""
        if len(self.problems) < 20:
            self.problems.setdefault(what, self.spans[i][0])

    def bracket(self) -> list[str]:
        """Return the tokens in the bracket that begins here; none when there is no bracket, or a long one."""
        if self.tokens[self.i] != "[":
            return []
        inner = self.tokens[self.i + 1 : self.i + 12]
        return inner[: inner.index("]")] if "]" in inner else []

    def skip_position(self, allowed: str) -> None:
        """Pass over a bracket that has one of the *allowed* letters, as `[b]` behind a smash."""
        inner = self.bracket()
        self.i += 3 if len(inner) == 1 and inner[0] in allowed else 0

    def skip_braces(self) -> None:
        """Pass over an argument in braces, if there is one."""
        if self.tokens[self.i] == "{":
            self._skip_to_end("{}", 0)

    def _skip(self, kind: int) -> None:
        self.problem(f"nested deeper than {MAX_DEPTH}: left out", self.i)
        self._skip_to_end(_SKIPPED[kind], int(kind != End.SINGLE))

    def _skip_to_end(self, pair: str, level: int) -> None:
        while token := self.tokens[self.i]:
            level += (token == pair[0]) - (token == pair[1])
            self.i += 1
            if level <= 0:
                break


TEXT_COMMANDS = (
    r"text|textrm|textnormal|textit|textbf|textsf|texttt|textsc|textup|textmd|mbox|hbox|intertext|shortintertext"
)
# One alternative for each kind of token, the commonest first; nothing in it can match the same text in two ways for
# long, so the time is linear. Text and names are one token with their braces, because blanks count inside them.
TOKEN = re.compile(
    r"[^\\\d'.:|!\s]"
    rf"|\\(?:(?:begin|end)\s*\{{[a-zA-Z]*\*?\}}|(?:{TEXT_COMMANDS}|operatorname\*?)\s*\{{[^{{}}$\\]*\}}"
    r"|(?:[hv]space|operatorname|tag|hfill|smash|xleftarrow|xrightarrow)\*|[a-zA-Z]+|.)"
    r"|\d(?:[\d ]*\d)?(?:(?:\\[ ,;]|\{,\})\d{3}(?!\d))*(?:\.\d+)?|\s+|'+|\.\s?\.\s?\.|\.\d+|:=|\|\|?|!!?|.",
    re.DOTALL,
)
ENTITY = re.compile(r"&(?:[a-zA-Z]{2,31}\d{0,2}|#\d{1,7}|#[xX][0-9a-fA-F]{1,6});")
# Hides the end of a line from TeX. In formulas that LaTeXML wrote, a blank stands for the end of a line.
_LINE_END = re.compile(r"(?<!\\)%(?=\s)")
_COMMENT = re.compile(r"(\\.)|%[^\n]*\n?", re.DOTALL)
SENTINELS = ("", "", "", "")  # so that three tokens ahead can be read at the end, too


def _find_tokens(latex: str, pattern: re.Pattern[str] = TOKEN) -> list[str]:
    return pattern.findall(blank_comments(latex) if "%" in latex else latex)


def blank_comments(latex: str) -> str:
    r"""Return LaTeX of the same length with blanks for its comments, which only a text of several lines has.

    In one line a percent sign is a mark of LaTeXML for the end of a line, or a percentage.

    >>> blank_comments("a % why\nb"), blank_comments(r"5\%% b"), blank_comments("5%")
    ('a      b', '5\\%  b', '5%')
    """
    if "\n" in latex.strip():
        return _COMMENT.sub(lambda found: found[1] or " " * len(found[0]), latex)
    return _LINE_END.sub(" ", latex)


def tokenize(latex: str) -> tuple[list[str], list[tuple[int, int]]]:
    """Return the tokens of *latex* without its blanks, then four empty ones, and the (start, end) of each."""
    tokens = _find_tokens(latex)
    ends = list(accumulate(map(len, tokens)))
    spans = list(zip([0, *ends], ends, strict=False))
    if any(map(str.isspace, tokens)):
        kept = [pair for pair in zip(tokens, spans, strict=True) if not pair[0].isspace()]
        tokens, spans = [token for token, _ in kept], [span for _, span in kept]
    tokens += SENTINELS
    spans += [(len(latex), len(latex))] * len(SENTINELS)
    return tokens, spans


def unescape_entities(latex: str) -> tuple[str, list[int] | None]:
    """Return *latex* without HTML entities, and for each of its positions the one in the source; None: the same."""
    places: list[int] | None = None
    for _ in range(2):  # &amp;lt; is escaped twice
        if "&" not in latex or not ENTITY.search(latex):
            break
        latex, places = _unescape_once(latex, places or list(range(len(latex) + 1)))
    return latex, places


def _unescape_once(latex: str, places: Sequence[int]) -> tuple[str, list[int]]:
    parts, kept, last = [], [], 0
    for found in ENTITY.finditer(latex):
        plain = html.unescape(found[0])
        parts += [latex[last : found.start()], plain]
        kept += [*places[last : found.start()], *[places[found.start()]] * len(plain)]
        last = found.end()
    return "".join([*parts, latex[last:]]), [*kept, *places[last:]]


MAX_MACRO_TOKENS = 20_000  # tokens that the macros of one formula may add; \a -> \a\a would otherwise never end
_PARAMETER = re.compile(r"#([1-9])")
_BODY_TOKEN = re.compile(rf"{_PARAMETER.pattern}|{TOKEN.pattern}".replace("([1-9])", "[1-9]"), re.DOTALL)
Pair = tuple[str, tuple[int, int]]


def expand_macros(
    tokens: list[str], spans: list[tuple[int, int]], macros: Mapping[str, str]
) -> tuple[list[str], list[tuple[int, int]], bool]:
    """Return tokens and spans with macros expanded repeatedly, and whether that was cut short.

    Tokens of a macro's text have the span of its command, arguments (in braces, or one token each) their own.
    """
    waiting = list(zip(reversed(tokens), reversed(spans), strict=True))
    done: list[Pair] = []
    bodies: dict[str, tuple[list[str], int]] = {}
    budget = MAX_MACRO_TOKENS
    while waiting:
        token, span = waiting.pop()
        if token not in macros or budget <= 0:
            done.append((token, span))
            continue
        body, n_arguments = bodies.get(token) or bodies.setdefault(token, _read_body(macros[token]))
        arguments = [_take_argument(waiting) for _ in range(n_arguments)]
        brought = _fill_body(body, arguments, span, budget)
        budget -= len(brought) + 1
        waiting += reversed(brought)
    return [token for token, _ in done], [span for _, span in done], budget <= 0


def _read_body(text: str) -> tuple[list[str], int]:
    tokens = [token for token in _find_tokens(text, _BODY_TOKEN) if not token.isspace()]
    return tokens, max((int(digit) for digit in _PARAMETER.findall(text)), default=0)


def _take_argument(waiting: list[Pair]) -> list[Pair]:
    if not waiting or not waiting[-1][0]:
        return []
    if waiting[-1][0] != "{":
        return [waiting.pop()]
    waiting.pop()
    found: list[Pair] = []
    level = 1
    while waiting and waiting[-1][0]:
        token = waiting[-1][0]
        level += (token == "{") - (token == "}")
        pair = waiting.pop()
        if not level:
            break
        found.append(pair)
    return found


def _fill_body(body: list[str], arguments: list[list[Pair]], span: tuple[int, int], most: int) -> list[Pair]:
    brought: list[Pair] = []
    texts: list[str] = []
    size = 0  # a long text counts as several tokens
    for token in body:
        if len(brought) + size > most:
            break
        if len(token) == 2 and token[0] == "#":
            brought += _in_braces(arguments[int(token[1]) - 1], span)
        elif token[0] == "\\" and "#" in token and _PARAMETER.search(token):
            texts = texts or [_written(argument) for argument in arguments]
            brought += _fill_text(token, arguments, texts, span)
            size += len(brought[-1][0]) // 10
        else:
            brought.append((token, span))
    return brought


def _in_braces(argument: list[Pair], span: tuple[int, int]) -> list[Pair]:
    first, last = (argument[0][1], argument[-1][1]) if argument else (span, span)
    return [("{", first), *argument, ("}", last)]


def _fill_text(token: str, arguments: list[list[Pair]], texts: list[str], span: tuple[int, int]) -> list[Pair]:
    r"""Return the tokens of `\text{the #1 case}`: one where the arguments are plain, else parts of text around them."""
    command, _, inner = token.partition("{")
    brought: list[Pair] = []
    words = ""
    for place, part in enumerate(_PARAMETER.split(inner[:-1])):
        text = texts[int(part) - 1] if place % 2 else part
        if not any(sign in text for sign in "{}$\\"):
            words += text
            continue
        brought += [(f"{command}{{{words}}}", span)] if words.strip() else []
        brought += [(command.rstrip(), span), *_in_braces(arguments[int(part) - 1], span)]
        words = ""
    return [*brought, (f"{command}{{{words}}}", span)] if words.strip() or not brought else brought


def _written(argument: list[Pair]) -> str:
    """Return an argument as it is written, with one blank for several."""
    parts = []
    last = argument[0][1][0] if argument else 0
    for token, (start, end) in argument:
        parts.append(f" {token}" if start > last else token)
        last = end
    return "".join(parts)
