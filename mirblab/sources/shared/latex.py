"""latex: LaTeX to prose: what is not printed, environments, the authors' macros."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

# How many arguments in braces of a command are no text; what follows them, such as the words of a target, is text.
_ARGUMENTS = dict.fromkeys(
    """label index sindex glossary glsadd todo marginpar marginnote hypertarget pagestyle thispagestyle markright
    bibliography bibliographystyle input include includegraphics refstepcounter stepcounter""".split(),
    1,
)
_ARGUMENTS |= dict.fromkeys("nomenclature markboth addtocontents pdfbookmark".split(), 2) | {"addcontentsline": 3}
_SILENT = re.compile(r"\\(?:(?P<name>" + "|".join(_ARGUMENTS) + r")(?![A-Za-z])\*?|.)", re.DOTALL)
_OPTIONS = re.compile(r"\s*+(?:\[[^][]*+\]\s*+)*+")
_LINE_END = re.compile(r"(?:[ \t]*+\n(?![ \t]*+\n))?")
_ESCAPED_OR_BRACE = re.compile(r"\\.|[{}]", re.DOTALL)
_DISPLAYS = r"(?:equation|align|alignat|eqnarray|gather|multline|displaymath|math|flalign)\*?"
_OPENS_FORMULA = re.compile(r"\\\[|\\\(|\\begin\{(" + _DISPLAYS + r")\}|\\.|\$\$|\$", re.DOTALL)
_HIDDEN = re.compile("\ue000(\\d+)\ue001")
# What a comment may stand in only seemingly: code, addresses, and a percent sign with a backslash.
_COMMENT = re.compile(
    r"\\begin\s*\{(?P<code>(?:verbatim|Verbatim|lstlisting|alltt)\*?|minted)\}"
    r"|\\(?:verb|lstinline)\*?(?P<mark>[^\sA-Za-z*{])[^\n]{0,300}?(?P=mark)"
    r"|\\(?:url|nolinkurl|path|href)\s*\{(?:[^{}\n]++|\{[^{}\n]*+\})*+\}|\\."
    r"|(?P<comment>%[^\n]*(?:\n(?![ \t]*\n)[ \t]*)?)",
    re.DOTALL,
)
_REFERENCE = re.compile(r"\\(?:[cC]|eq|auto|page|name)?ref\*?\s*\{([^{}]*)\}|\\hyperref\s*\[([^][]*)\]")
_CITATION = re.compile(r"\\cite[a-z]*\*?\s*(?:\[[^][]*\]\s*)*\{[^{}]*\}")
_LIST_MARK = re.compile(
    r"\\begin\s*\{(?P<begin>enumerate|itemize|description)\}(?:\s*\[[^][]*\])?|\\end\s*\{(?P<end>enumerate|itemize|description)\}"
    r"|\\setcounter\s*\{enum(?P<level>i+v?)\}\s*\{(?P<value>\d{1,4})\}|\\item\b\s*(?:\[(?P<given>[^][]*)\])?\s*"
)
_UNWRAPPED = re.compile(
    r"\\(?P<name>emph|text|text(?:bf|it|rm|tt|sc|sf|sl|up|normal)|underline|mbox|hbox|url|footnote|href)\s*(?=\{)"
)
_DROPPED = re.compile(
    r"""\\(?:(?:med|big|small)skip|(?:no)?indent|newpage|clearpage|newline|linebreak|par|[hv]fill|centering|qedhere
    |phantomsection|protect|it|bf|rm|sl|em|sc|tt|sf|(?:it|sl|sc|up)shape|(?:bf|md)series|(?:rm|sf|tt)family
    |tiny|small|large|normalsize)(?![A-Za-z])[ \t]*
    |\\[vh]space\*?\s*\{[^{}]*\}|\\(?:set|addto)(?:counter|length)\s*\{[^{}]*\}\s*\{[^{}]*\}|\\(?:begin|end)\s*\{(?:center|quote|quotation|flushleft|flushright)\}""",
    re.VERBOSE,
)
_ACCENTS = {"'": "\u0301", "`": "\u0300", "^": "\u0302", '"': "\u0308", "~": "\u0303", "=": "\u0304", ".": "\u0307"}
_ACCENTS |= {"v": "\u030c", "u": "\u0306", "H": "\u030b", "c": "\u0327", "k": "\u0328", "r": "\u030a", "d": "\u0323"}
_ACCENT = re.compile(
    r"""\\(?:(?P<sign>['`^"~=.])\s*|(?P<name>[vuHckrd])(?![A-Za-z])\s*)
    (?:\{\s*\\?(?P<braced>[A-Za-z])\s*\}|\\(?P<dotless>[ij])(?![A-Za-z])\s*|(?P<bare>[A-Za-z]))""",
    re.VERBOSE,
)
_LETTERS = {"ss": "ß", "ae": "æ", "AE": "Æ", "oe": "œ", "OE": "Œ", "o": "ø", "O": "Ø", "l": "ł", "L": "Ł", "i": "i"}
_LETTERS |= {"aa": "å", "AA": "Å", "S": "§", "j": "j", "ldots": "...", "dots": "...", "LaTeX": "LaTeX", "TeX": "TeX"}
_LETTER = re.compile(r"\\(" + "|".join(_LETTERS) + r")(?![A-Za-z])(?:[ \t]*\n|[ \t]+)?(?:\{\})?")
_ROMAN = re.compile(r"\\romannumeral\s*(\d{1,4})(?!\d)\s?")
_BLANK = re.compile(r"\\[\s,;:!]|(?<!\\)~|\\\\(?:\[[^][]*\])?")
_PRINTED_COMMAND = re.compile(r"\\([A-Za-z]+\*?|[^\s%&#_${}])")
_LONGEST_OPTION = 2_000
_DEFINES = re.compile(
    r"\\(?P<how>newcommand|renewcommand|providecommand|DeclareRobustCommand|DeclareMathOperator|def)\*?\s*"
    r"(?:\{\s*(?P<braced>\\[A-Za-z]+|\\.)\s*\}|(?P<bare>\\[A-Za-z]+|\\.))"
)
_COUNT = re.compile(r"\s*\[\s*(\d)\s*\]")
_MACRO_COMMAND = re.compile(r"\\(?:[A-Za-z]+|.)", re.DOTALL)
_ARGUMENT = re.compile(r"#([1-9])")
_ROUNDS, _GROWTH = 20, 50_000  # how deep definitions may use each other, and how long a text may become


@dataclass(eq=False)
class Environment:
    """An environment from `start` to `after`, its content from `begin` to `end`.

    `option` is what stands in brackets after `\\\\begin{...}`; `section` counts the section commands before it;
    `labels` are those directly in it, not those of the blocks `inner` that stand in it.
    """

    kind: str
    start: int
    begin: int
    option: str
    section: int
    parent: Environment | None
    end: int = -1
    after: int = -1
    labels: list[str] = field(default_factory=list)
    inner: list[Environment] = field(default_factory=list)

    def content(self, source: str) -> str:
        """Return the content without the blocks that stand in it."""
        edges = [self.begin, *(edge for block in self.inner for edge in (block.start, block.after)), self.end]
        return "".join(source[begin:end] for begin, end in zip(edges[::2], edges[1::2], strict=True))


@dataclass(frozen=True)
class Macro:
    """A command of its author: how many arguments it takes, the default of the first (None: it has none), its text."""

    n_arguments: int
    default: str | None
    body: str


def drop_environments(source: str, names: Iterable[str], instead: str = "") -> str:
    r"""Return *source* with *instead* in the place of the environments of the *names*; one that does not end is kept.

    >>> drop_environments(r"a\begin{verbatim}\begin{lemma}\end{verbatim}b\begin{comment}", ["verbatim", "comment"])
    'ab\\begin{comment}'
    """
    begins = re.compile(r"\\begin\s*\{(" + "|".join(re.escape(name) for name in names) + r")\}")
    parts: list[str] = []
    endless: set[str] = set()
    at = place = 0
    while match := begins.search(source, place):
        place = match.end()
        end = None if match[1] in endless else end_pattern(match[1]).search(source, place)
        if end is None:
            endless.add(match[1])
            continue
        parts += [source[at : match.start()], instead]
        at = place = end.end()
    return "".join([*parts, source[at:]])


def strip_comments(source: str) -> str:
    r"""Return *source* without comments, as TeX reads it: `\%`, code and addresses stay.

    A comment swallows its line end and the blanks that begin the next line, but never a paragraph break.

    >>> strip_comments("50\\% of all % so they say\n  rings\\\\% end\n")
    '50\\% of all rings\\\\'
    """
    parts: list[str] = []
    endless: set[str] = set()
    at = place = 0
    while match := _COMMENT.search(source, place):
        place = match.end()
        if match["comment"]:
            parts.append(source[at : match.start()])
            at = place
        elif match["code"] and match["code"] not in endless:
            end = end_pattern(match["code"]).search(source, place)
            place = end.end() if end else place
            endless |= set() if end else {match["code"]}
    return "".join([*parts, source[at:]])


def end_pattern(name: str) -> re.Pattern[str]:
    """Return the pattern of the end of an environment."""
    return re.compile(r"\\end\s*\{" + re.escape(name) + r"\}")


def find_closing_brace(text: str, start: int) -> int:
    r"""Return the position of the brace that closes the one at *start*, or -1 when none does.

    >>> find_closing_brace(r"{a\}{b}}c", 0)
    7
    """
    depth = 0
    for match in _ESCAPED_OR_BRACE.finditer(text, start):
        depth += {"{": 1, "}": -1}.get(match[0], 0)
        if depth <= 0:
            return match.start()
    return -1


def find_references(source: str) -> list[str]:
    r"""Return the labels that *source* refers to, in order, each as often as it occurs.

    >>> find_references(r"By Lemmas \ref{lemma-a}, \ref{b} and (\eqref{lemma-a})")
    ['lemma-a', 'b', 'lemma-a']
    """
    return [(named or linked).strip() for named, linked in _REFERENCE.findall(source)]


def latex_to_prose(source: str, odd: Counter[str] | None = None) -> str:
    r"""Return *source* (without comments) as prose: no labels, index entries or font commands; mathematics as it was.

    References become `[ref]`, citations `[cite]`, footnotes a parenthesis, accents letters; list items are
    numbered as the book prints them, one per line; `equation` becomes `$$`, other displays stay. What has no
    rule is counted in *odd*: commands outside mathematics (removed; what stood in their braces stays), formulas
    and braces that do not close.

    >>> latex_to_prose(r"\label{x}Let {\it A} be \'etale, see \ref{y}.\begin{enumerate}\item $a\%$ \end{enumerate}")
    'Let A be étale, see [ref].\n(1) $a\\%$'
    """
    odd = Counter() if odd is None else odd
    source = source.translate({0xE000: None, 0xE001: None})
    source = _REFERENCE.sub(lambda match: "[ref]" if match[2] is None else "", drop_silent_commands(source))
    text, formulas = mask_formulas(_CITATION.sub("[cite]", source), odd)
    text = _plain(_unwrap(_lists(text), odd), odd)
    text = unmask_formulas(text, formulas)
    return "\n".join(line for part in text.split("\n") if (line := " ".join(part.split())))


def drop_silent_commands(source: str) -> str:
    r"""Return *source* without the commands that print nothing where they stand, and without their arguments.

    >>> drop_silent_commands(r"A \emph{ring}\index{ring!of $\{\}$}\label{a} is \hypertarget{b}{small}\todo{prove}.")
    'A \\emph{ring} is {small}.'
    """
    ends: dict[int, int] | None = None
    parts: list[str] = []
    at = blank = 0  # what is done, and up to where its line has shown nothing
    for match in _SILENT.finditer(source):
        if match["name"] is None or match.start() < at:
            continue
        ends = match_braces(source) if ends is None else ends
        after = match.end()
        for _ in range(_ARGUMENTS[match["name"]]):
            start = _OPTIONS.match(source, after).end()
            if start not in ends:
                break
            after = ends[start] + 1
        else:
            parts.append(source[at : match.start()])
            line = max(source.rfind("\n", 0, match.start()) + 1, blank)
            if not source[line : match.start()].strip(" \t"):
                # A line of its own goes with its end, which would else become a blank line, a paragraph's end.
                after = _LINE_END.match(source, after).end()
                blank = after
            at = after
    return "".join([*parts, source[at:]])


def mask_formulas(text: str, odd: Counter[str]) -> tuple[str, list[str]]:
    r"""Return the text with a numbered mark for each formula, and the formulas; odd ones are counted in *odd*.

    >>> marked, formulas = mask_formulas(r"Let $a$ be \[b\]", Counter())
    >>> formulas, unmask_formulas(marked, formulas)
    (['$a$', '\\[b\\]'], 'Let $a$ be \\[b\\]')
    """
    parts: list[str] = []
    formulas: list[str] = []
    ends = _Ends(text)
    position = 0
    while match := _OPENS_FORMULA.search(text, position):
        end = ends.of(match)
        parts.append(text[position : match.start()])
        if end > 0:
            parts.append(f"\ue000{len(formulas)}\ue001")
            formulas.append(_formula(text[match.start() : end]))
        else:
            odd["formulas that do not close"] += end < 0
            parts.append(match[0] if match[0] not in ("$", "$$") else "")
        position = max(end, match.end())
    return "".join([*parts, text[position:]]), formulas


def unmask_formulas(text: str, formulas: list[str]) -> str:
    """Return the *text* with the *formulas* in the place of their marks."""
    return _HIDDEN.sub(lambda match: formulas[int(match[1])], text)


def find_environments(source: str, kinds: Iterable[str], odd: Counter[str]) -> tuple[list[Environment], list[str]]:
    r"""Return the environments of the *kinds* in order of their beginning, and the labels that stand in none.

    *source* has no comments. Environments that do not end are left out and counted in *odd*, as are ends without
    a beginning; both leave the other environments as they are.

    >>> source = r"\label{s}\begin{lemma}[Fact]\label{a}X\begin{proof}\label{b}Y\end{proof}\end{lemma}"
    >>> blocks, loose = find_environments(source, ["lemma", "proof"], Counter())
    >>> [(block.kind, block.option, block.labels, block.content(source)) for block in blocks], loose
    ([('lemma', 'Fact', ['a'], '\\label{a}X'), ('proof', '', ['b'], '\\label{b}Y')], ['s'])
    """
    mark = re.compile(r"\\(begin|end)\s*\{(" + "|".join(kinds) + r")\}|\\label\s*\{([^{}]*)\}|\\(section)\b")
    blocks: list[Environment] = []
    stack: list[Environment] = []
    loose: list[str] = []
    section = 0
    for match in mark.finditer(source):
        action, kind, label, heading = match.groups()
        if action == "begin":
            option, begin = read_optional_argument(source, match.end())
            blocks.append(Environment(kind, match.start(), begin, option, section, stack[-1] if stack else None))
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


def read_macros(source: str, odd: Counter[str]) -> dict[str, Macro]:
    r"""Return the commands that a *source* (without comments) defines, the last definition of each.

    Counted in *odd* and left alone: definitions with a pattern (`\def\f#1.{...}`) and those that do not end.

    >>> source = r"\DeclareMathOperator*{\rk}{rk}\newcommand\pair[2][x]{(#1,#2)}"
    >>> {name: (one.n_arguments, one.default, one.body) for name, one in read_macros(source, Counter()).items()}
    {'\\rk': (0, None, '\\operatorname{rk}'), '\\pair': (2, 'x', '(#1,#2)')}
    """
    found: dict[str, Macro] = {}
    ends = match_braces(source)
    for match in _DEFINES.finditer(source):
        name, at = match["braced"] or match["bare"], match.end()
        counted = _COUNT.match(source, at) if match["how"] not in ("def", "DeclareMathOperator") else None
        default, at = read_optional_argument(source, counted.end()) if counted else ("", at)
        has_default = counted is not None and at > counted.end()
        at = re.compile(r"\s*").match(source, counted.end() if counted and not has_default else at).end()
        end = ends.get(at, -1)
        if end < 0:
            odd["definitions of commands that cannot be followed"] += 1
            continue
        body = source[at + 1 : end].strip().replace(r"\xspace", " ")
        body = rf"\operatorname{{{body}}}" if match["how"] == "DeclareMathOperator" else body
        found[name] = Macro(int(counted[1]) if counted else 0, default if has_default else None, body)
    return found


def find_circular_macros(macros: Mapping[str, Macro]) -> set[str]:
    r"""Return the commands that need themselves to be written out.

    >>> bodies = {r"\a": r"\b", r"\b": r"\a", r"\c": r"\a"}
    >>> sorted(find_circular_macros({name: Macro(0, None, body) for name, body in bodies.items()}))
    ['\\a', '\\b']
    """
    return _in_circles({name: macros.keys() & set(_MACRO_COMMAND.findall(macros[name].body)) for name in macros})


def expand_macros(text: str, macros: Mapping[str, Macro], odd: Counter[str]) -> str:
    r"""Return *text* with the *macros* written out, also those in what they stand for.

    A text that would become twenty times as long stays as it is, and is counted in *odd*.

    >>> expand_macros(r"Let $x \in \R^n$", {r"\R": Macro(0, None, r"\mathbb R")}, Counter())
    'Let $x \\in \\mathbb R^n$'
    """
    limit, start = 20 * len(text) + _GROWTH, text
    for _ in range(_ROUNDS):
        once = _once(text, macros, limit)
        if once == text:
            return text
        if once is None:
            break
        text = once
    odd["texts whose commands are too long written out (left as they are)"] += 1
    return start


class _Ends:
    """The ends of the formulas of a text; an ending that was once not found is not searched for again."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.missing: set[str] = set()
        self.dollars: dict[int, int] | None = None

    def of(self, opening: re.Match[str]) -> int:
        """Return where the formula ends that begins with *opening*, -1 when it does not, 0 when none begins."""
        mark = opening[0]
        if mark in (r"\[", r"\(") or opening[1]:
            closing = {r"\[": r"\]", r"\(": r"\)"}.get(mark, f"\\end{{{opening[1]}}}")
            end = -1 if closing in self.missing else self.text.find(closing, opening.end())
            self.missing |= {closing} if end < 0 else set()
            return end + len(closing) if end >= 0 else -1
        if mark[0] != "$":
            return 0
        if self.dollars is None:
            self.dollars = _next_dollars(self.text)
        end = self.dollars.get(opening.end() - 1, -1)
        return end + len(mark) if end >= 0 and self.text.startswith(mark, end) else -1


def _next_dollars(text: str) -> dict[int, int]:
    r"""Return for the place of each dollar the next one that stands no deeper in braces.

    One inside braces belongs to \text{...}, not to the formula around it.
    """
    following: dict[int, int] = {}
    waiting: list[tuple[int, int]] = []  # places and depths, of which no later one is less deep
    depth = 0
    for match in re.compile(r"\\.|[{}$]", re.DOTALL).finditer(text):
        if match[0] == "$":
            while waiting and waiting[-1][1] >= depth:
                following[waiting.pop()[0]] = match.start()
            waiting.append((match.start(), depth))
        depth += {"{": 1, "}": -1}.get(match[0], 0)
    return following


def _formula(source: str) -> str:
    source = re.sub(r"\\(?:nonumber|notag)(?![A-Za-z])", "", source)
    source = re.sub(r"\\(begin|end)\{equation\*?\}", "$$", source)
    source = " ".join(source.split())
    return " ".join(re.sub(r"^\$\$|\$\$$", lambda match: " $$ ", source).split())


def _lists(text: str) -> str:
    """Number the items as amsart prints them, (1), (a), (i), (A) by depth; other lists get a star."""
    open_lists: list[tuple[str, int]] = []
    counters: list[int] = []

    def mark(match: re.Match[str]) -> str:
        if match["begin"]:
            kind, depth = open_lists[-1] if open_lists else ("", 0)
            open_lists.append((match["begin"], depth + (kind == "enumerate")))
            counters.append(0)
        elif match["end"]:
            del open_lists[-1:], counters[-1:]
        elif match["value"]:
            counters[-1:] = [int(match["value"])] if counters else []
            return ""
        elif match["given"] is not None:
            return f"\n\n{match['given']} "
        else:
            counters[-1:] = [counters[-1] + 1] if counters else []
            kind, depth = open_lists[-1] if open_lists else ("itemize", 0)
            return f"\n\n{_number(depth, counters[-1])} " if kind == "enumerate" else "\n\n* "
        return "\n\n"

    return _LIST_MARK.sub(mark, text)


def _number(depth: int, count: int) -> str:
    letters = (chr(ord("a") + (count - 1) % 26)) * (1 + (count - 1) // 26)
    return f"({(str(count), letters, _roman(count), letters.upper())[min(depth, 3)]})"


def _unwrap(text: str, odd: Counter[str]) -> str:
    r"""Replace \emph{x} and its like by x, footnotes by a parenthesis, links by their text."""
    ends = match_braces(text)
    edits: list[tuple[int, int, str]] = []
    gone = 0
    for match in _UNWRAPPED.finditer(text):
        start, end = match.end(), ends.get(match.end(), -1)
        if match.start() < gone:
            continue
        if end < 0:
            odd["braces that do not close"] += 1
            edits.append((match.start(), start, ""))
        elif match["name"] == "href":
            edits.append((match.start(), end + 1, ""))
            gone = end + 1
        elif match["name"] == "footnote":
            inner = text[start + 1 : end]
            left = start + 1 + len(inner) - len(inner.lstrip())
            edits += [(match.start(), left, " ("), (max(left, start + 1 + len(inner.rstrip())), end + 1, ")")]
        else:
            edits += [(match.start(), start + 1, ""), (end, end + 1, "")]
    parts, at = [], 0
    for start, end, instead in sorted(edits):
        parts += [text[at:start], instead]
        at = max(at, end)
    return "".join([*parts, text[at:]])


def _plain(text: str, odd: Counter[str]) -> str:
    """Return the text, whose formulas are hidden, without commands; a paragraph or list item is one line."""
    text = _ACCENT.sub(_accented, text)
    text = _LETTER.sub(lambda match: _LETTERS[match[1]], text)
    text = _DROPPED.sub(" ", _ROMAN.sub(lambda match: _roman(int(match[1])), text))
    text = re.sub(r"\\[/@\-]", "", _BLANK.sub(" ", text))
    for name in _PRINTED_COMMAND.findall(text):
        odd[f"command outside mathematics: {name}"] += 1
    text = re.sub(r"(?<!\\)[{}]", "", _PRINTED_COMMAND.sub(" ", text)).replace("``", '"').replace("''", '"')
    return "\n".join(re.sub(r"\s+", " ", part) for part in re.split(r"\n\s*\n", text))


def _roman(count: int) -> str:
    digits = ((100, "c"), (90, "xc"), (50, "l"), (40, "xl"), (10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i"))
    numeral = ""
    for value, digit in digits:
        times, count = divmod(count, value)
        numeral += digit * times
    return numeral


def _accented(match: re.Match[str]) -> str:
    letter = match["braced"] or match["dotless"] or match["bare"]
    return unicodedata.normalize("NFC", letter + _ACCENTS[match["sign"] or match["name"]])


def _close(stack: list[Environment], kind: str, match: re.Match[str]) -> bool:
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


def _in_circles(uses: Mapping[str, set[str]]) -> set[str]:
    """Return those that use themselves, through others or not."""
    import numpy as np
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    place = {name: number for number, name in enumerate(uses)}
    pairs = [(place[name], place[used]) for name in uses for used in uses[name]]
    if not pairs:
        return set()
    rows, columns = np.array(pairs).T
    graph = csr_array((np.ones(len(pairs), np.int8), (rows, columns)), shape=(len(uses), len(uses)))
    part_of = connected_components(graph, connection="strong")[1]
    sizes = np.bincount(part_of)
    return {name for name in uses if sizes[part_of[place[name]]] > 1 or name in uses[name]}


def _once(text: str, macros: Mapping[str, Macro], limit: int) -> str | None:
    """Return *text* with its commands written out, or None where it becomes longer than *limit*."""
    parts, last, at, room = [], 0, 0, limit
    ends = match_braces(text)
    while match := _MACRO_COMMAND.search(text, at):
        at = match.end()
        macro = macros.get(match[0])
        if macro is None:
            continue
        given, end = _arguments(text, at, macro, ends)
        body = _ARGUMENT.sub(lambda sign, given=given: "".join(given[int(sign[1]) - 1 : int(sign[1])]), macro.body)
        body = f"{{{body}}}" if match.start() and text[match.start() - 1] in "_^" else body
        # A command that ends in a letter must not run into the next one.
        gap = " " if re.search(r"\\[A-Za-z]+$", body) and text[end : end + 1].isalpha() else ""
        parts += [text[last : match.start()], body, gap]
        room -= sum(map(len, parts[-3:]))
        if room < 0:
            return None
        last = at = end
    return "".join([*parts, text[last:]]) if room >= len(text) - last else None


def match_braces(text: str) -> dict[int, int]:
    r"""Return for the place of each brace that opens the place of the one that closes it; those without one not.

    >>> match_braces(r"{a\}{b}}{")
    {4: 6, 0: 7}
    """
    ends: dict[int, int] = {}
    open_now: list[int] = []
    for match in _ESCAPED_OR_BRACE.finditer(text):
        if match[0] == "{":
            open_now.append(match.start())
        elif match[0] == "}" and open_now:
            ends[open_now.pop()] = match.start()
    return ends


def _arguments(text: str, at: int, macro: Macro, ends: Mapping[int, int]) -> tuple[list[str], int]:
    """Return the arguments that follow position *at*, and where they end; blanks after a bare command are eaten."""
    given: list[str] = []
    if macro.default is not None:
        option, end = read_optional_argument(text, at)
        given, at = [option if end > at else macro.default], end
    while len(given) < macro.n_arguments:
        start = re.compile(r"\s*").match(text, at).end()
        if text[start : start + 1] == "{":
            end = ends.get(start, -1)
            if end < 0:
                break
            given.append(text[start + 1 : end])
            at = end + 1
        else:
            token = _MACRO_COMMAND.match(text, start)
            given.append(token[0] if token else text[start : start + 1])
            at = start + max(1, len(given[-1]))
    if not macro.n_arguments and text[at - 1 : at].isalpha():
        at = re.compile(r"[ \t]*(?:\n(?![ \t]*\n)[ \t]*)?").match(text, at).end() if text[at : at + 1].isspace() else at
    return given, at


def read_optional_argument(text: str, start: int) -> tuple[str, int]:
    r"""Return the optional argument that follows position *start* and where it ends ("" and *start* without one).

    Brackets inside braces do not end it. One that is longer than two thousand characters is none.

    >>> read_optional_argument(r"\begin{lemma}[Fact {[1]}] Let", 13)
    ('Fact {[1]}', 25)
    """
    begin = re.compile(r"[ \t]*+(?:\n[ \t]*+)?\[").match(text, start)
    depth = 0
    for match in (
        re.compile(r"\\.|[][{}]", re.DOTALL).finditer(text, begin.end(), begin.end() + _LONGEST_OPTION) if begin else ()
    ):
        if match[0] == "]" and depth <= 0:
            return text[begin.end() : match.start()], match.end()
        depth += {"{": 1, "}": -1}.get(match[0], 0)
    return "", start
