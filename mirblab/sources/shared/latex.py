"""latex: LaTeX as prose: commands that print nothing, environments, formulas and references."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache

# The commands that print nothing of their own: what becomes of their arguments, m (left out) or p (printed).
_COMMANDS = {
    name: kinds
    for kinds, names in {
        "": """noindent indent medskip bigskip smallskip newpage clearpage cleardoublepage newline par hfill vfill hfil
            vfil centering qedhere phantomsection protect it bf rm sl em sc tt sf itshape slshape scshape upshape
            bfseries mdseries boldmath unboldmath rmfamily sffamily ttfamily normalfont selectfont tiny scriptsize
            footnotesize small large Large LARGE huge Huge normalsize break pagebreak linebreak nobreak nopagebreak
            nolinebreak medbreak bigbreak smallbreak goodbreak filbreak allowbreak allowdisplaybreaks xspace quad qquad
            thinspace enspace pause leavevmode samepage qed hline toprule midrule bottomrule ignorespaces strut null
            displaystyle textstyle raggedright raggedleft flushleft sloppy fussy relax unskip maketitle tableofcontents
            appendix columnbreak footnotemark bgroup egroup begingroup endgroup""",
        "p": """emph text textbf textit textrm texttt textsc textsf textsl textup textmd textnormal underline mbox hbox
            fbox framebox shadowbox makebox centerline url footnote href hl uline textsuperscript enquote""",
        "m": """label index sindex glossary glsadd todo marginpar marginnote pagestyle thispagestyle markright
            footcitetext shorthandon shorthandoff bibliography bibliographystyle input include includegraphics
            refstepcounter stepcounter usecounter color phantom vphantom hphantom cline cmidrule enlargethispage
            needspace pushQED setlist lstset tikzset pgfplotsset hypersetup usetikzlibrary caption captionsetup
            pagenumbering setstretch fontfamily fontseries fontshape fontencoding linespread pagecolor rowcolor
            cellcolor epsfig psfig nocite vspace hspace begin{multicols} begin{multicols*} begin{minipage}
            begin{adjustwidth} begin{varwidth} begin{spacing}""",
        "mp": "hypertarget hyperlink textcolor colorbox raisebox scalebox parbox rotatebox foreignlanguage",
        "mm": """nomenclature markboth addtocontents pdfbookmark rule fontsize numberwithin counterwithin import
            subimport inputfrom subinputfrom includefrom subincludefrom dynkin""",
        "mmp": "fcolorbox resizebox multicolumn multirow",
        "mmm": "addcontentsline definecolor crefname",
        "mmmm": "usefont",
    }.items()
    for name in names.split()
}
_ARGUMENTS = {name: kinds.count("m") for name, kinds in _COMMANDS.items() if "m" in kinds and "space" not in name}
# Commands that the readers have rules for, whatever an author makes of them.
KEPT = frozenset(
    r"""\label \ref \eqref \cref \Cref \autoref \cite \item \emph \textbf \textit \text \mbox \footnote \index
    \ensuremath \color \textcolor""".split()
)
_SILENT = re.compile(
    r"\\(?:(?P<name>" + "|".join(map(re.escape, _ARGUMENTS)) + r")(?:(?<=\})|(?![A-Za-z])\*?)|.)", re.DOTALL
)
_OPTIONS = re.compile(r"\s*+(?:\[[^][]*+\]\s*+)*+")
_OPENS_OPTION = re.compile(r"[ \t]*+(?:\n[ \t]*+)?\[")
_LINE_END = re.compile(r"(?:[ \t]*+\n(?![ \t]*+\n))?")
ESCAPED_OR_BRACE = re.compile(r"\\.|[{}]", re.DOTALL)
# A formula in a heading has brackets where an author's command is written out: to LaTeX they would end the heading.
_ESCAPED_OR_BRACKET = re.compile(r"\\\(.{1,300}?\\\)|\\.|\$(?:\\.|[^$\\]){1,300}\$|[][{}]", re.DOTALL)
_DISPLAYS = (
    r"(?:(?:equation|align|alignat|x+alignat|eqnarray|gather|multline|displaymath|math|flalign|IEEEeqnarray|dmath|(?:sub)?numcases|empheq)\*?"
    r"|tikzcd|tikzpicture|CD|diagram)"
)
# In LaTeX, a subscript or power that is no formula's shows that the environment around it is mathematical.
_OTHER_DISPLAY = re.compile(r"\\begin\s*\{([A-Za-z]+\*?)\}((?:(?!\\(?:begin|end)\s*\{).)*+)\\end\s*\{\1\}", re.DOTALL)
_SCRIPT = re.compile(r"(?<!\\)[_^](?=[A-Za-z0-9{\\*'+(-])")
_ADDRESS = re.compile(r"\\(?:url|nolinkurl|path|href)\s*\{[^{}]*\}|\\verb.*")
_OPENS_FORMULA = re.compile(
    r"\\xymatrix(?![A-Za-z])[^{}\n]{0,60}(?=\{)|\\\[|\\\(|\\begin\{(" + _DISPLAYS + r")\}|\\.|\$\$|\$", re.DOTALL
)
UNCLOSED = "environments that do not end"
_NESTING = re.compile(r"\\[\\{}$()\[\]]|[{}$]")
_EMPTY_FORMULA = re.compile(
    r"(?:\$\$?|\\[\[(]|\\begin\{[a-z]+\*?\})(?:\s|~|\\[,;:! ]|\\q?quad(?![A-Za-z])|\\[hv]space\*?\s*\{[^{}]*\}|[.,])*+"
    r"(?:\$\$?|\\[\])]|\\end\{[a-z]+\*?\})"
)
_HIDDEN = re.compile("\ue000(\\d+)\ue001")
# Code, addresses and escaped percent signs are matched first, because they only seem to hold comments.
_COMMENT = re.compile(
    r"\\begin\s*\{(?P<code>(?:verbatim|Verbatim|lstlisting|alltt)\*?|minted)\}"
    r"|\\(?:verb|lstinline)\*?(?P<mark>[^\sA-Za-z*{])[^\n]{0,300}?(?P=mark)"
    r"|\\(?:url|nolinkurl|path|href)\s*\{(?:[^{}\n]++|\{[^{}\n]*+\})*+\}|\\."
    r"|(?P<comment>%[^\n]*(?:\n(?![ \t]*\n)[ \t]*)?)",
    re.DOTALL,
)
# Where TeX stops reading a file, outside of code; one in a branch or in the body of a command is only sometimes read.
_STOPS = re.compile(
    r"\\begin\s*\{(?P<code>(?:verbatim|Verbatim|lstlisting|alltt|comment)\*?|minted)\}"
    r"|\\(?:verb|lstinline)\*?(?P<mark>[^\sA-Za-z*{])[^\n]{0,300}?(?P=mark)"
    r"|(?P<stop>\\end\s*\{document\}|\\endinput(?![A-Za-z@]))(?!\s*(?:\\(?:fi|else)(?![A-Za-z@])|\}))|\\[^A-Za-z]",
    re.DOTALL,
)
STOPPED = r"files with text after \end{document} or \endinput, which TeX does not read (left out)"
_REFERENCE = re.compile(
    r"\\(?!href|hyperref\s*\[)[A-Za-z]{0,9}[rR]ef\*?\s*(?:\[[^][{}]*\]\s*){0,4}\{([^{}]*)\}|\\hyperref\s*\[([^][]*)\]"
)
_OWN_LABEL = re.compile(r"\\[A-Za-z]+label\s*\{[^{}\s\\]+\}[ \t]*\n?")
_CITATION = re.compile(r"\\[a-z]*cite(?!mark)[a-z]*\*?\s*(?:\[[^][]*\]\s*)*\{[^{}]*\}")
_LISTS = r"(?:(?:compact|inpara)?(?:enum[a-z]*|item(?:ize)?)|(?:compact)?desc(?:ription)?|(?:triv)?list)\*?"
_LIST_STYLE = re.compile(
    r"\\(?P<command>arabic|[aA]lph|[rR]oman)\b\*?(?:\{[^{}]*\})?|(?:\b|(?<=[A-Z]))(?P<sign>[1aiAI])\b"
)
_LIST_LABEL = re.compile(r"\blabel\s*=\s*(?:\{((?:[^{}]|\{[^{}]*\})*)\}|([^,]*))")
GROUP = r"\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\}){0,500}\}"
_RAW_LIST = re.compile(rf"\\begin\s*\{{list\}}\s*({GROUP})\s*{GROUP}")
_LIST_STYLES = ("arabic", "alph", "roman", "Alph", "Roman")
_LIST_MARK = re.compile(
    r"\\begin\s*\{(?P<begin>"
    + _LISTS
    + r")\}(?:\s*\[(?P<style>(?:[^][]|\[[^][]*\])*)\])?|\\end\s*\{(?P<end>"
    + _LISTS
    + r")\}"
    r"|\\setcounter\s*\{enum(?P<level>i+v?)\}\s*\{(?P<value>\d{1,4})\}|\\item\b\s*(?:\[(?P<given>[^][]*)\])?\s*"
)
_UNWRAPPED = re.compile(
    r"\\(?P<name>"
    + "|".join(name for name, kinds in _COMMANDS.items() if kinds == "p")
    + r")\s*(?:\[[^][]*\]\s*)*(?=\{)"
)
_DROPPED = re.compile(
    r"\\(?:page|no|nopage|line)break\[\d\][ \t]*"
    r"|\\(?:" + "|".join(name for name, kinds in _COMMANDS.items() if not kinds) + r")(?![A-Za-z])[ \t]*"
    r"|\\(?:[hv]skip|kern|topsep|itemsep|parsep|parskip|parindent|(?:left|right)margin|baselineskip|arraycolsep|tabcolsep)"
    r"(?![A-Za-z])\s*=?\s*(?:-?[\d.]*\s*(?:[a-z]{2}(?![a-z])|\\[A-Za-z]+))?"
    r"|\\[vh]space\*?\s*\{[^{}]*\}|\\(?:set|addto)(?:counter|length)\s*(?:\{[^{}]*\}|\\[A-Za-z]+)\s*\{[^{}]*\}"
    r"|\\(?:begin|end)\s*\{(?:center|quote|quotation|flushleft|flushright|minipage|multicols|tabular[*x]?|longtable"
    r"|adjustwidth|varwidth|small|footnotesize|spacing|centering|sloppypar|samepage)\*?\}"
)
_ACCENTS = {"'": "\u0301", "`": "\u0300", "^": "\u0302", '"': "\u0308", "~": "\u0303", "=": "\u0304", ".": "\u0307"}
_ACCENTS |= {"v": "\u030c", "u": "\u0306", "H": "\u030b", "c": "\u0327", "k": "\u0328", "r": "\u030a", "d": "\u0323"}
_ACCENT = re.compile(
    r"""\\(?:(?P<sign>['`^"~=.])\s*|(?P<name>[vuHckrd])(?![A-Za-z])\s*)
    (?:\{\s*\\?(?P<braced>[A-Za-z])\s*\}|\\(?P<dotless>[ij])(?![A-Za-z])\s*|(?P<bare>[A-Za-z]))""",
    re.VERBOSE,
)
_LETTERS = {"ss": "ß", "ae": "æ", "AE": "Æ", "oe": "œ", "OE": "Œ", "o": "ø", "O": "Ø", "l": "ł", "L": "Ł", "i": "i"}
_LETTERS |= {"og": "«", "fg": "»", "textendash": "--", "textemdash": "---", "lq": "`", "rq": "'", "textquoteright": "'"}
_LETTERS |= {"aa": "å", "AA": "Å", "S": "§", "j": "j", "ldots": "...", "dots": "...", "LaTeX": "LaTeX", "TeX": "TeX"}
_LETTERS |= {"checkmark": "✓"}
_LETTER = re.compile(r"\\(" + "|".join(_LETTERS) + r")(?![A-Za-z])(?:[ \t]*\n|[ \t]+)?(?:\{\})?")
_ROMAN = re.compile(r"\\romannumeral\s*(\d{1,4})(?!\d)\s?")
_QUOTES = re.compile(r"``|''|\"[`']")  # the last two are those of babel in German
_NUMBERS_PARTS = re.compile(r"\\(?:begin|end)\s*\{subequations\}[ \t]*\n?")  # of one display, no paragraph
_BLANK = re.compile(r"\\[\s,;:!]|\\\\\*?(?:\[[^][]*\])?~*|(?<!\\)~")
_HAIRLINE = re.compile(r"\\rule\s*(?:\[[^][]*\])?\s*\{\s*0?\.\d+\s*pt\s*\}\s*\{\s*(?:[5-9]|\d\d)\s*pt\s*\}")
_TABLE = re.compile(
    r"\\begin\{(?P<name>tabular(?P<width>[*xy])?|long(?:table|tabu)|tabu)\}(?:(?(width)\s*\{[^{}]*\}))(?:\[[^][]*\])?"
    r"\{(?:[^{}]|\{[^{}]*\}){0,300}\}"
    r"(?P<cells>.{0,20000}?)\\end\{(?P=name)\}",
    re.DOTALL,
)
_TAG = re.compile(r"\\(?:begin|end)\s*\{([^{}]*)\}(?:[ \t]*\[(?!(?:ref|cite)\])[^][]*\])?")
_PRINTED_COMMAND = re.compile(r"\\(?:([A-Za-z]+\*?)(?:\s*\[[^][{}]*\])*\s*(?=\{)|([A-Za-z]+\*?|[^\s%&#_${}]))")
# What stands in the braces of a command without a rule and is no text: lengths, files, settings, labels.
_FIGURE_ARGUMENT = re.compile(
    r"\{\s*(?:-?[\d.]+\s*(?:in|cm|mm|pt|em|ex|pc)|-?[\d.]*\\(?:text|line|column)width|[\w/.-]+\.(?:eps|pdf|png|jpe?g|svg|tex)"
    r"|[\w -]+=[^{}\ue000]*|\w[\w.-]*[:_][\w:.-]*)\s*\}"
)
# What a formula does not need: boxes around mathematics, variants for other sizes, and the place of an end mark.
_LAYOUT = re.compile(
    r"\\(?:nonumber|notag|qedhere|xspace|allowbreak|displaybreak|nobreak)(?![A-Za-z])(?:\[\d\])?|\\math(?:open|close)\s*\{\}"
    r"|(?<=\\hbox)\s*to\s*-?[\d.]+\s*[a-z]{2}|\\hfill?(?![A-Za-z])"
    r"|\\(?:pre|post)displaypenalty\s*=?\s*-?\d+|\\(?:l?eqno)\s*(?:\\[a-z]+\s*)?\{(?:[^{}]|\{[^{}]*\})*\}"
)
# A letter of another alphabet, from an author's command, which an accent takes as its argument only in braces.
_UNBRACED = re.compile(
    r"(\\(?:overline|underline|bar|hat|tilde|vec|dot|ddot|check|breve|widehat|widetilde|sqrt))\s*"
    r"(\\math(?:bbm?|bf|cal|ds|frak|rm|scr|it|sf)(?:\s*\{[A-Za-z]\}|\s+[A-Za-z](?![A-Za-z])))"
)
_BOXED_FORMULA = re.compile(r"(\\math(?:bin|rel|ord|op)\s*|(?<![A-Za-z]))\{\$([^$]*)\$\}")
_LONGEST_OPTION = 2_000
_IN_TEXT = re.compile(r"\\(?:text|mbox)\s*\{\s*\Z")


@dataclass(eq=False)
class Environment:
    """An environment from `start` to `after`, its content from `begin` to `end`, the environments `inner` in it.

    `option` is the text in brackets, `section` counts section commands before it, `labels` are those outside `inner`.
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
        """Return the content without the inner environments."""
        edges = [self.begin, *(edge for block in self.inner for edge in (block.start, block.after)), self.end]
        return "".join(source[begin:end] for begin, end in zip(edges[::2], edges[1::2], strict=True))


def drop_environments(source: str, names: Iterable[str], instead: str = "") -> str:
    r"""Return *source* with *instead* for each environment of the *names*; one without an end stays.

    >>> drop_environments(r"a\begin{verbatim}\begin{lemma}\end{verbatim}b\begin{comment}", ["verbatim", "comment"])
    'ab\\begin{comment}'
    """
    begins = re.compile(r"\\begin\s*\{(" + "|".join(re.escape(name) for name in names) + r")\}")
    parts: list[str] = []
    endless: set[str] = set()
    last = position = 0
    while match := begins.search(source, position):
        position = match.end()
        end = None if match[1] in endless else _end_pattern(match[1]).search(source, position)
        if end:
            parts += [source[last : match.start()], instead]
            last = position = end.end()
        else:
            endless.add(match[1])
    return "".join([*parts, source[last:]])


def strip_comments(source: str) -> str:
    r"""Return *source* without comments, as TeX reads it: paragraph breaks, `\%`, code and addresses stay."""
    parts: list[str] = []
    endless: set[str] = set()
    last = position = 0
    while match := _COMMENT.search(source, position):
        position = match.end()
        if match["comment"]:
            parts.append(source[last : match.start()])
            last = position
        elif match["code"] and match["code"] not in endless:
            end = _end_pattern(match["code"]).search(source, position)
            position = end.end() if end else position
            endless |= set() if end else {match["code"]}
    return "".join([*parts, source[last:]])


def cut_at_end(source: str, odd: Counter[str]) -> str:
    r"""Return *source* (without comments) up to `\end{document}` or `\endinput`; a text after it counts in *odd*.

    >>> cut_at_end(r"A \verb|\endinput| lemma. \endinput An older one.", odd := Counter()), odd.total()
    ('A \\verb|\\endinput| lemma. ', 1)
    """
    position = 0
    while match := _STOPS.search(source, position):
        position = match.end()
        if match["stop"]:
            if source[position:].strip():
                odd[STOPPED] += 1
            return source[: match.start()]
        if match["code"]:
            end = _end_pattern(match["code"]).search(source, position)
            position = end.end() if end else position
    return source


def _end_pattern(name: str) -> re.Pattern[str]:
    return re.compile(r"\\end\s*\{" + re.escape(name) + r"\}")


def find_references(source: str) -> list[str]:
    """Return the labels that *source* refers to, in order, with repetitions."""
    found = [named or linked for named, linked in _REFERENCE.findall(source)]
    return [label.strip() for labels in found for label in labels.split(",")]


def latex_to_prose(source: str, odd: Counter[str] | None = None) -> str:
    """Return *source* (without comments) as prose with LaTeX formulas, without labels and font commands.

    References become `[ref]`, citations `[cite]`, footnotes parentheses; list items are numbered, one per line;
    `equation` becomes `$$`, other displays stay. Unknown commands and environments (removed) and unclosed formulas
    count in *odd*.
    """
    odd = Counter() if odd is None else odd
    source = _ensure_math(_HAIRLINE.sub("|", source.translate({0xE000: None, 0xE001: None})))
    source = _OWN_LABEL.sub("", drop_silent_commands(source))
    source = _REFERENCE.sub(lambda match: "[ref]" if match[2] is None else "", source)
    text, formulas = mask_formulas(_CITATION.sub("[cite]", source), odd)
    text = _plain(_unwrap(_lists(text), odd), odd)
    text = _HIDDEN.sub(lambda match: formulas[int(match[1])], text)
    return "\n".join(line for part in text.split("\n") if (line := " ".join(part.split())))


def _ensure_math(source: str) -> str:
    r"""Return *source* with `\ensuremath{x}` as `$x$`, or as `x` within a formula."""
    if r"\ensuremath" not in source:
        return source
    formulas = iter([*find_formulas(source), (len(source), len(source), True)])
    start, end, _ = next(formulas)
    ends, parts, at, waiting = match_braces(source), list[str](), 0, list[tuple[int, str]]()
    for match in re.finditer(r"\\ensuremath\s*(?=\{)|\}", source):
        if match[0] == "}":
            if waiting and waiting[-1][0] == match.start():
                parts += [source[at : match.start()], waiting.pop()[1]]
                at = match.end()
            continue
        while end <= match.start():
            start, end, _ = next(formulas)
        if match.end() in ends:
            # A macro in a subscript needs the braces; a dollar must not meet another one.
            is_text = _IN_TEXT.search(source, max(0, match.start() - 12), match.start())
            is_inside = not is_text and (start <= match.start() or any(mark for _, mark in waiting))
            follows = source[ends[match.end()] + 1 : ends[match.end()] + 2]
            needs_braces = is_inside and source[match.start() - 1 : match.start()] in ("_", "^")
            opening = "{" if needs_braces else "" if is_inside else "$"
            before = " " if opening == "$" and source[match.start() - 1 : match.start()] == "$" else ""
            closing = ("}" if needs_braces else "") if is_inside else "$ " if follows == "$" else "$"
            parts += [source[at : match.start()], before, opening]
            waiting.append((ends[match.end()], closing))
            at = match.end() + 1
    return "".join([*parts, source[at:]])


def drop_silent_commands(source: str) -> str:
    """Return *source* without the commands that print nothing, and without their arguments."""
    ends: dict[int, int] | None = None
    parts: list[str] = []
    at = blank = 0  # what is done, and up to where its line has shown nothing
    for match in _SILENT.finditer(source):
        if match["name"] is None or match.start() < at:
            continue
        ends = match_braces(source) if ends is None else ends
        after = match.end()
        for _ in range(_ARGUMENTS[match["name"]]):
            start = find_end(_OPTIONS, source, after)
            if start not in ends:
                break
            after = ends[start] + 1
        else:
            parts.append(source[at : match.start()])
            line = max(source.rfind("\n", 0, match.start()) + 1, blank)
            if not source[line : match.start()].strip(" \t"):
                # A command that fills its line is removed with the line end, which would else end the paragraph.
                after = find_end(_LINE_END, source, after)
                blank = after
            at = after
    return "".join([*parts, source[at:]])


def mask_formulas(text: str, odd: Counter[str]) -> tuple[str, list[str]]:
    """Return the text with a numbered mark for each formula, and the formulas; unclosed ones are counted in *odd*."""
    parts: list[str] = []
    formulas: list[str] = []
    last = 0
    for start, end, is_closed in find_formulas(text):
        parts.append(text[last:start])
        if is_closed and _EMPTY_FORMULA.fullmatch(text, start, end):
            parts.append(" ")
        elif is_closed:
            parts.append(f"\ue000{len(formulas)}\ue001")
            formulas.append(_formula(text[start:end]))
        else:
            odd["formulas that do not close"] += 1
            parts.append(text[start:end].strip("$"))
        last = end

    def mask(match: re.Match[str]) -> str:
        is_text = _LIST_MARK.match(match[0]) or _DROPPED.match(match[0])
        if is_text or not _SCRIPT.search(_ADDRESS.sub("", match[2])):
            return match[0]
        formulas.append(_formula(_HIDDEN.sub(lambda inner: formulas[int(inner[1])], match[0])))
        return f"\ue000{len(formulas) - 1}\ue001"

    return _OTHER_DISPLAY.sub(mask, "".join([*parts, text[last:]])), formulas


def find_formulas(text: str) -> Iterator[tuple[int, int, bool]]:
    """Yield start and end of each formula, delimiters included, and whether it closes; a dollar in braces ends none."""
    missing: set[str] = set()
    dollars: dict[int, int] | None = None
    braces: dict[int, int] | None = None
    position = 0
    while match := _OPENS_FORMULA.search(text, position):
        mark, position, end = match[0], match.end(), -1
        if mark[0] == "$":
            dollars = _next_dollars(text) if dollars is None else dollars
            closing = dollars.get(position - 1, -1)
            end = closing + len(mark) if closing >= 0 and text.startswith(mark, closing) else -1
        elif mark in (r"\[", r"\("):
            dollars = _next_dollars(text) if dollars is None else dollars
            ending = {r"\[": r"\]", r"\(": r"\)"}[mark]
            closing = dollars.get(match.start(), -1 if ending in missing else text.find(ending, position))
            end = closing + 2 if closing >= 0 else -1
            missing |= {ending} if closing < 0 else set()
        elif match[1]:
            ending = f"\\end{{{match[1]}}}"
            closing = -1 if ending in missing else text.find(ending, position)
            end = closing + len(ending) if closing >= 0 else -1
            missing |= {ending} if closing < 0 else set()
        elif mark.startswith(r"\xymatrix"):
            braces = match_braces(text) if braces is None else braces
            end = braces.get(position, -2) + 1
        else:  # an escaped sign
            continue
        position = max(end, position)
        yield match.start(), position, end >= 0


def find_environments(
    source: str, kinds: Iterable[str], odd: Counter[str]
) -> tuple[list[Environment], list[str], list[Environment]]:
    """Return the environments of the *kinds* in order, the labels outside of them, and those that do not end.

    *source* has no comments.
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
    closed, unclosed = ([block for block in blocks if (block.end < 0) == is_open] for is_open in (False, True))
    odd[UNCLOSED] += len(unclosed)
    return closed, [*loose, *(label for block in unclosed for label in block.labels)], unclosed


def _next_dollars(text: str) -> dict[int, int]:
    r"""Return for each dollar the next one no deeper in braces; a dollar in \text{...} is not the formula's.

    The same for each `\(` and `\[` and what closes it.
    """
    following: dict[int, int] = {}
    opened: list[tuple[int, int, str]] = []
    waiting: list[tuple[int, int]] = []  # places and depths, of which no later one is less deep
    depth = 0
    for match in _NESTING.finditer(text):
        sign = match[0]
        if sign == "$":
            while waiting and waiting[-1][1] >= depth:
                following[waiting.pop()[0]] = match.start()
            waiting.append((match.start(), depth))
        elif sign == "{":
            depth += 1
        elif sign == "}":
            depth -= 1
        elif sign in (r"\(", r"\["):
            opened.append((match.start(), depth, {r"\(": r"\)", r"\[": r"\]"}[sign]))
        elif sign in (r"\)", r"\]"):
            while opened and opened[-1][1] > depth:
                opened.pop()
            if opened and opened[-1][1:] == (depth, sign):
                following[opened.pop()[0]] = match.start()
    return following


@lru_cache(maxsize=1 << 16)  # most formulas of a book are short and occur often
def _formula(source: str) -> str:
    source = _BOXED_FORMULA.sub(r"\1{\2}", _LAYOUT.sub("", source))
    source = re.sub(r"\\(begin|end)\{equation\*?\}", "$$", source)
    source = " ".join(_UNBRACED.sub(r"\1{\2}", source).split())
    return " ".join(re.sub(r"^\$\$|\$\$$", lambda match: " $$ ", source).split())


def _lists(text: str) -> str:
    """Number the items in the list's style, else as amsart does, (1), (a), (i), (A) by depth; others get a star."""
    open_lists: list[tuple[str, str, int]] = []  # kind, label, and how many numbered lists are open with it
    counters: list[int] = []
    last = 0

    def mark(match: re.Match[str]) -> str:
        nonlocal last
        if match["begin"]:
            depth = open_lists[-1][2] if open_lists else 0
            label = _list_label(match["style"] or "")
            is_numbered = "enum" in match["begin"] or bool(match["begin"] == "list" and label)
            open_lists.append(
                ("enumerate" if is_numbered else "itemize", label or _LIST_STYLES[min(depth, 3)], depth + is_numbered)
            )
            counters.append(last if re.search(r"\bresume\b", match["style"] or "") else 0)
        elif match["end"]:
            last = counters[-1] if counters and open_lists[-1][0] == "enumerate" else last
            del open_lists[-1:], counters[-1:]
        elif match["value"]:
            counters[-1:] = [int(match["value"])] if counters else []
            return ""
        elif match["given"] is not None:
            return f"\n\n{match['given']} "
        else:
            counters[-1:] = [counters[-1] + 1] if counters else []
            kind, style, _ = open_lists[-1] if open_lists else ("itemize", "", 0)
            return f"\n\n{_number(style, counters[-1])} " if kind == "enumerate" else "\n\n* "
        return "\n\n"

    return _LIST_MARK.sub(mark, _RAW_LIST.sub(_name_list, text))


def _name_list(begin: re.Match[str]) -> str:
    r"""Return the beginning of a `list` as that of the kind of list that its label makes it."""
    style = _LIST_STYLE.search(begin[1])
    return rf"\begin{{enumerate}}[\{style['command']}]" if style and style["command"] else r"\begin{itemize}"


def _list_label(options: str) -> str:
    """Return the style of numbers that a list's options name, with the words around it where there are any."""
    given = _LIST_LABEL.search(options)
    template = (given[1] or given[2] or "") if given else "" if "=" in options else options
    style = _LIST_STYLE.search(template)
    if style is None:
        return ""
    name = style["command"] or _LIST_STYLES["1aiAI".index(style["sign"])]
    words = [re.sub(r"\\[A-Za-z]+\*?|[{}]", "", part) for part in (template[: style.start()], template[style.end() :])]
    return f"\ue002{name}\ue002".join(words) if re.search(r"[A-Za-z]", "".join(words)) else name


def _number(label: str, count: int) -> str:
    before, _, rest = label.partition("\ue002")
    style, _, after = rest.partition("\ue002") if rest else (label, "", "")
    letters, roman = (chr(ord("a") + (count - 1) % 26)) * (1 + (count - 1) // 26), _roman(count)
    number = (str(count), letters, roman, letters.upper(), roman.upper())[_LIST_STYLES.index(style)]
    return f"{before}{number}{after}" if rest else f"({number})"


def _unwrap(text: str, odd: Counter[str]) -> str:
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
            follows_command = re.search(r"\\[A-Za-z]+$", text[max(0, match.start() - 30) : match.start()])
            edits += [(match.start(), start + 1, " " if follows_command else ""), (end, end + 1, "")]
    parts, at = [], 0
    for start, end, instead in sorted(edits):
        parts += [text[at:start], instead]
        at = max(at, end)
    return "".join([*parts, text[at:]])


def _plain(text: str, odd: Counter[str]) -> str:
    """Return the text, whose formulas are hidden, without commands; a paragraph or list item is one line."""
    text = _ACCENT.sub(_accented, _NUMBERS_PARTS.sub(" ", text))
    text = _LETTER.sub(lambda match: _LETTERS[match[1]], text)
    text = _DROPPED.sub(" ", _ROMAN.sub(lambda match: _roman(int(match[1])), _TABLE.sub(_rows, text)))
    text = re.sub(r"\\[/@\-]", "", _BLANK.sub(" ", text))
    for match in _TAG.finditer(text):
        odd[f"environment outside mathematics: {match[1]}"] += match[0].startswith(r"\begin")
    text = _FIGURE_ARGUMENT.sub("{ }", _TAG.sub("\n\n", text))
    for named, other in _PRINTED_COMMAND.findall(text):
        odd[f"command outside mathematics: {named or other}"] += 1
    text = _PRINTED_COMMAND.sub(lambda match: "" if match[1] else " ", text)
    text = re.sub(r"(?<!\\)[{}]", "", re.sub(r"(?<!\\)&", " ", text.replace("}{", "} {")))
    text = _QUOTES.sub('"', text)
    return "\n".join(re.sub(r"\s+", " ", part) for part in re.split(r"\n\s*\n", text))


def _rows(table: re.Match[str]) -> str:
    """Return the rows of a table as lines, with bars between the cells."""
    rows = re.split(r"\\\\(?:\[[^][]*\])?|\\tabularnewline(?![A-Za-z])(?:\[[^][]*\])?", table["cells"])
    cells = ([cell for cell in re.split(r"(?<!\\)&", row) if cell.replace(r"\hline", "").strip()] for row in rows)
    return "\n\n" + "\n\n".join(" | ".join(row) for row in cells) + "\n\n"


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
    """End the innermost open block of the *kind*; blocks opened after it never end. False when none is open."""
    if all(block.kind != kind for block in stack):
        return False
    # The blocks in a block that never ends are taken to be in the next block around it.
    inner: list[Environment] = []
    while (block := stack.pop()).kind != kind:
        inner += block.inner
    block.end, block.after = match.span()
    block.inner = sorted([*block.inner, *inner], key=lambda inner: inner.start)
    if block.parent is not None:
        block.parent.inner.append(block)
    return True


def match_braces(text: str) -> dict[int, int]:
    """Return the position of the closing brace for that of each opening one that has one."""
    ends: dict[int, int] = {}
    open_now: list[int] = []
    for match in ESCAPED_OR_BRACE.finditer(text):
        if match[0] == "{":
            open_now.append(match.start())
        elif match[0] == "}" and open_now:
            ends[open_now.pop()] = match.start()
    return ends


def read_optional_argument(text: str, start: int) -> tuple[str, int]:
    r"""Return the optional argument at *start* and its end ("" and *start* without one, or above 2,000 characters).

    >>> read_optional_argument(r"\begin{lemma}[Fact {[1]}] Let", 13)
    ('Fact {[1]}', 25)
    """
    opening = _OPENS_OPTION.match(text, start)
    if opening is None:
        return "", start
    depth, begin = 0, opening.end()
    for match in _ESCAPED_OR_BRACKET.finditer(text, begin, begin + _LONGEST_OPTION):
        if match[0] == "]" and depth <= 0:
            return text[begin : match.start()], match.end()
        depth += {"{": 1, "}": -1}.get(match[0], 0)
    return "", start


def find_end(pattern: re.Pattern[str], text: str, start: int) -> int:
    """Return the end of what matches *pattern* from position *start* on, *start* where nothing does."""
    match = pattern.match(text, start)
    return match.end() if match else start
