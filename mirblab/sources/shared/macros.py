"""macros: the commands that authors define, and texts with these commands written out."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from mirblab.sources.shared.latex import ESCAPED_OR_BRACE, GROUP, find_end, match_braces, read_optional_argument

_BLANKS = re.compile(r"\s*")
_BLANKS_AFTER_COMMAND = re.compile(r"[ \t]*(?:\n(?![ \t]*\n)[ \t]*)?")
_DEFINES = re.compile(
    r"(?P<suffix>\\WithSuffix\s*)?\\(?P<how>newcommand|renewcommand|providecommand|DeclareRobustCommand"
    r"|DeclareMathOperator|DeclarePairedDelimiterX?|(?:New|Renew|Provide|Declare)DocumentCommand|[gex]?def|let)(?![A-Za-z])\*?\s*"
    r"(?:\{\s*(?P<braced>\\[A-Za-z@]+|\\.)\s*\}|(?P<bare>\\[A-Za-z@]+|\\.))"
    r"|\\(?:(?:re)?newenvironment|(?:New|Renew|Provide|Declare)DocumentEnvironment|(?P<collects>(?:New|Renew)Environ))"
    r"\*?\s*\{(?P<environment>[^{}]+)\}"
)
_BY_SPECIFICATION = re.compile(r"\\(?:New|Renew|Provide|Declare)Document")
_SUFFIX = re.compile(r"\s*[^\s\\\[{]")
_RENAMED = r"(\\(?:(?:re)?newcommand|providecommand|DeclareMathOperator|def))(?![A-Za-z])"
_RENAMES = re.compile(
    rf"\\(?:newcommand|def)\*?\s*\{{?\s*(\\[A-Za-z]+)\s*\}}?\s*\{{\s*{_RENAMED}\s*\}}|\\let\s*(\\[A-Za-z]+)\s*=?\s*{_RENAMED}"
)
# What a command defines whose definition has one of these names its arguments.
_DEFINES_ARGUMENT = re.compile(
    r"\\(?:(?:new|renew|provide)command|DeclareRobustCommand|DeclareMathOperator|[gex]?def|let"
    r"|(?:New|Renew|Provide|Declare)DocumentCommand)\*?\s*\{?\s*(?:#\d|\\csname[^\\]*#\d)"
    r"|\\(?:(?:re)?newenvironment\*?|@namedef|csdef)\s*\{[^{}]*#\d"
)
# What sets a command to an argument, as \newcommand{\here}[1]{\renewcommand{\thepart}{#1}}.
_SETS = re.compile(r"\\renewcommand\*?\s*\{?\s*\\[A-Za-z@]+\s*\}?\s*\{[^{}]*#\d")
_NAMED = re.compile(
    r"\\expandafter\s*(?P<how>\\[A-Za-z]+\*?)\s*\\csname\s*(?P<name>[A-Za-z@]+)\s*\\endcsname"
    r"|\\(?:@namedef|csdef)\s*\{\s*(?P<defined>[A-Za-z@]+)\s*\}"
)
_CHARACTER = re.compile(r"\\(?:mathchardef|chardef)\s*(\\[A-Za-z]+)\s*=?\s*\"0*([2-7][0-9A-F])(?![0-9A-F])")
_SINGLE_TOKEN = re.compile(
    r"\\(?!(?:begin|end|[a-z]*def|let|new[a-z]+|renew[a-z]+|provide[a-z]+|Declare[A-Za-z]+)(?![A-Za-z]))(?:[A-Za-z]+|[^A-Za-z])|[^\s{}\\\[\]#%]"
)
_CHOICE = re.compile(r"\\mathchoice(?![A-Za-z])")
_COUNT = re.compile(r"\s*\[\s*(\d)\s*\]")
_PATTERN = re.compile(r"([^{}\\]|\\[A-Za-z@]+|\\.)*?(?=\{)", re.DOTALL)  # the arguments of \def and the signs between
_DELIMITED = re.compile(r"#\d|[^#]+")
_SPECIFIED = re.compile(  # the arguments of \NewDocumentCommand
    rf"(?:[+!\s]|>\s*{GROUP})*(?:(?P<plain>[mosgvb])|O\s*(?P<default>{GROUP})|t\s*\{{?(?P<sign>\\[A-Za-z]+|[^\s{{}}])\}}?"
    rf"|(?P<pair>[drDR]\s*\S\s*\S)(?:\s*{GROUP})?)\s*"
)
_ALIAS = re.compile(r"\s*=?\s*(\\(?:[A-Za-z@]+|.))")
_PRIMITIVE = re.compile(
    r"\\(?:if[a-z]*|futurelet|csname|expandafter|catcode|char|setbox|vcenter|halign|ialign|baselineskip|lineskiplimit|mathsurround|openin|[gex]?def|let|newcommand|renewcommand"
    r"|newenvironment|@[a-z]*for|loop|advance)(?![A-Za-z@])|\\[A-Za-z@]*_[A-Za-z_@]*:"
)
_INTERNAL = re.compile(r"\\[A-Za-z]*@[A-Za-z@]*")
# Tests that LaTeX knows, and whether their first argument passes them; two branches follow, with T or F one.
_NO_VALUE = "-NoValue-"
_TESTS: dict[str, Callable[[str], bool]] = {
    "IfNoValue": lambda given: given == _NO_VALUE,
    "IfValue": lambda given: given != _NO_VALUE,
    "IfBoolean": lambda given: given == r"\BooleanTrue",
    "IfBlank": lambda given: not given.strip(),
}
_TESTS |= dict.fromkeys(("ifblank", "ifstrempty", "ifempty"), _TESTS["IfBlank"])
_TESTS |= {"notblank": lambda given: bool(given.strip())}
_TEST = re.compile(r"\\(?:(?P<test>" + "|".join(_TESTS) + r")(?P<branches>TF|T|F)?|@ifnextchar|@ifstar)(?![A-Za-z@])")
# The same in TeX: \ifx\empty#1\empty, \if\relax\detokenize{#1}\relax, \ifx#1\empty.
_IS_EMPTY = re.compile(
    r"\\ifx?\s*(?:(?P<edge>\\(?:relax|@?empty)|[^\\#\s])\s*(?:\\detokenize\s*\{)?#(?P<number>\d)\}?\s*(?P=edge)"
    r"|#(?P<first>\d)\s*\\(?:@?empty|relax)|#(?P<braced>\d)\s*\{\s*\})(?![A-Za-z@])\s?"
)
_SIGN_OF_CHARACTER = re.compile(r"\\mathchar`\\?([^A-Za-z\s\\])\s?")
_RELAX = re.compile(r"\\relax(?![A-Za-z@])[ \t]*")
_EXPANDED_FIRST = re.compile(r"\\expandafter\s*(?=#\d\s*#\d)")
# What \xspace has a blank before, beside words: within a formula a blank would not matter.
_GOES_ON_IN_TEXT = re.compile(r"[ \t\n]+(?:\$|\\\(|\\(?:emph|text[a-z]+|[A-Za-z]*(?:ref|cite)[a-z]*)(?![A-Za-z]))")
_WORDS_AND_BLANK = re.compile(r"[A-Za-z][A-Za-z.,;:'~ -]*[A-Za-z.,;:]\s+")
_IN_FORMULA = re.compile(r"\\ifmmode(?![A-Za-z@])\s*(.*?)\\else(?![A-Za-z@]).*?\\fi(?![A-Za-z@])", re.DOTALL)
_NOTHING = re.compile(
    r"\\nonscript(?![A-Za-z])\s*(?:\\[:;,!>])?|\\@(?![A-Za-z@])"
    rf"|\\(?:protect|relax|noexpand|unskip|ignorespaces|newmcodes@|m@th|nolimits@|kern\s*\\z@)(?![A-Za-z@])[ \t]*"
    rf"|\\discretionary\s*{GROUP}\s*{GROUP}\s*{GROUP}"
)
_MACRO_COMMAND = re.compile(r"\\(?:(?:begin|end)\s*\{[^{}\\]*\}|[A-Za-z@]+|.)", re.DOTALL)
_CONDITIONAL = re.compile(r"\\(if[A-Za-z@]*|else|fi)(?![A-Za-z@])[ \t]*(?:\n(?![ \t]*\n))?")
# The conditionals of TeX that end with \fi; what is written inside another conditional may hold them.
_CONDITIONALS = frozenset(
    """if ifcat ifx ifnum ifdim ifodd ifvmode ifhmode ifmmode ifinner ifvoid ifhbox ifvbox ifeof ifcase ifdefined
    ifcsname iffontchar""".split()
)
_SAVED = "\ue005"  # in place of a backslash: the command as it was before an author defined it anew
_ENDS_IN_COMMAND = re.compile(r"\\[A-Za-z@]+$")
_ARGUMENT = re.compile(r"(\\[A-Za-z@]+)?#([1-9])")
_PARAGRAPH_OR_BRACE = re.compile(r"\\.|[{}]|\n[ \t]*\n", re.DOTALL)
_GROWTH = 50_000  # how many signs a paragraph may get by its commands, and how many times it may use them


@dataclass(frozen=True)
class Macro:
    r"""An author's command: the kind of each argument, and the definition; an environment's has two.

    A kind is m (in braces), O with a default and o (in brackets), t with a sign that may stand there, d with the two
    signs around it, u with the text that ends it, = with a text that is skipped, * for a star or a size in brackets
    (no argument of the definition); g is like m where there is a brace.
    """

    arguments: tuple[str, ...]
    body: str


# In LaTeX, \@dblarg\x{A} is \x[A]{A}.
_TWICE = {
    r"\@dblarg": Macro(("m",), r"\@ifnextchar[{#1}{\@xdblarg{#1}}"),
    r"\@xdblarg": Macro(("m", "m"), "#1[{#2}]{#2}"),
}


def read_macros(
    source: str, odd: Counter[str], definers: Mapping[str, Macro] | None = None
) -> tuple[dict[str, Macro], str]:
    r"""Return the commands that *source* (without comments) defines, and *source* without the definitions.

    An environment gives `\begin{name}` and `\end{name}`. Definitions that look ahead or branch count in *odd*.
    *definers* are the commands of other files that define commands, see `find_definers`.
    """
    macros, rest, own, unfollowed = _read_definitions(source, odd)
    if makers := {**(definers or {}), **own}:
        made, *_ = _read_definitions(_written_definitions(rest, makers), Counter())
        macros |= {name: macro for name, macro in made.items() if not unfollowed & set(_commands(macro.body))}
    for name in [name for name in macros if rf"\end{name[1:]}" in macros]:  # \def\claim{...}\def\endclaim{...}
        macros.setdefault(rf"\begin{{{name[1:]}}}", macros[name])
        macros.setdefault(rf"\end{{{name[1:]}}}", macros[rf"\end{name[1:]}"])
    return macros, rest


def _read_definitions(source: str, odd: Counter[str]) -> tuple[dict[str, Macro], str, dict[str, Macro], set[str]]:
    """Return commands, *source* without definitions, the commands that define others, and those not followed."""
    macros: dict[str, Macro] = {}
    definers: dict[str, Macro] = {}
    unfollowed, lets = set[str](), set[str]()
    renamed = {braced or let: usual or same for braced, usual, let, same in _RENAMES.findall(source)}
    if renamed:  # \newcommand{\nc}{\newcommand} \nc{\R}{\mathbb{R}}
        names = "|".join(map(re.escape, renamed))
        defines = re.compile(rf"({names})(?=\*?\s*(?:\{{\s*)?\\)")
        source = defines.sub(lambda match: renamed[match[1]], _RENAMES.sub("", source))
    source = _NAMED.sub(lambda named: (named["how"] or r"\def") + f"\\{named['name'] or named['defined']} ", source)
    macros |= {name: Macro((), chr(int(code, 16))) for name, code in _CHARACTER.findall(source)}
    ends = match_braces(source)
    parts: list[str] = []
    at = 0
    for match in _DEFINES.finditer(source):
        if match.start() < at:  # inside another definition
            continue
        name = match["braced"] or match["bare"]
        # \WithSuffix\newcommand\thmref*[1]{...} is what a star after \thmref makes of it.
        start = find_end(_SUFFIX, source, match.end()) if match["suffix"] else match.end()
        found, after = _definition(source, match, start, ends)
        parts.append(source[at : match.start()])
        at = after
        if match["suffix"]:
            continue
        is_command = match["how"] is not None and match["how"] != "let" and "Paired" not in match["how"]
        if found and is_command and (_DEFINES_ARGUMENT.search(found[0].body) or _SETS.search(found[0].body)):
            definers[name] = found[0]
            printed = _drop_made(found[0].body)
            macros |= {} if _PRIMITIVE.search(printed) else {name: Macro(found[0].arguments, printed)}
        elif found is None or (is_command and _is_primitive(found[0])):
            unfollowed |= {name} if name else set()
            odd["definitions of commands that cannot be followed"] += 1
        elif match["environment"]:
            macros |= {
                rf"\begin{{{match['environment'].strip()}}}": found[0],
                rf"\end{{{match['environment'].strip()}}}": found[-1],
            }
        elif match["how"] == "let" and found[0].body in (r"\relax", r"\undefined", r"\@undefined"):
            macros.pop(name, None)
        elif match["how"] == "let":
            lets |= {name} - macros.keys() if found[0].body not in macros else set()
            macros[name] = macros.get(found[0].body, found[0])
        else:
            found[0], inner = _lift_definitions(found[0])
            macros |= inner
            macros[name] = found[0]
    for name in lets & macros.keys():  # \let\oldphi\phi \renewcommand{\phi}{\varphi}
        renewed = macros.get(macros[name].body)
        if renewed and name not in _commands(renewed.body):
            macros[name] = Macro((), f"{_SAVED}{macros[name].body[1:]} ")
    while new := {name for name, each in macros.items() if definers.keys() & set(_commands(each.body))} - {*definers}:
        definers |= {name: macros[name] for name in new}
    return macros, "".join([*parts, source[at:]]), definers, unfollowed


def _commands(body: str) -> list[str]:
    return re.findall(r"\\[A-Za-z@]+", body)


def _definition(source: str, match: re.Match[str], at: int, ends: Mapping[int, int]) -> tuple[list[Macro] | None, int]:
    """Return the definition of *match*, read from *at*, of an environment both of its parts, or None, and its end."""
    how, arguments = match["how"] or "environment", tuple[str, ...]()
    if how == "let":
        alias = _ALIAS.match(source, at)
        return ([Macro((), alias[1])], alias.end()) if alias else (None, at)
    if how.endswith("def"):
        pattern = _PATTERN.match(source, at)
        if pattern is None:
            return None, at
        arguments, at = _delimited(pattern[0]), pattern.end()
    elif _BY_SPECIFICATION.match(match[0]):
        start = find_end(_BLANKS, source, at)
        arguments, at = _specified(source[start + 1 : ends.get(start, start)]), ends.get(start, at - 1) + 1
    elif how.startswith("DeclarePaired"):
        counted = _COUNT.match(source, at)
        at = counted.end() if counted else at
        arguments = ("*size", *["m"] * int(counted[1] if counted else 1))
    elif how != "DeclareMathOperator":
        counted = _COUNT.match(source, at)
        if counted:
            option, at = read_optional_argument(source, counted.end())
            n_arguments = int(counted[1])
            arguments = ("m",) * n_arguments
            arguments = (f"O{option}", *arguments[1:]) if at > counted.end() else ("*", *arguments)
    bodies: list[str] = []
    is_in_halves = match["environment"] and not match["collects"]
    n_bodies = {"DeclarePairedDelimiter": 2, "DeclarePairedDelimiterX": 3}.get(how, 2 if is_in_halves else 1)
    while len(bodies) < n_bodies:
        at = find_end(_BLANKS, source, at)
        single = _SINGLE_TOKEN.match(source, at) if how.endswith(("newcommand", "Delimiter", "DelimiterX")) else None
        if at not in ends and single is None:
            return None, at
        body, at = (single[0], single.end()) if single else (source[at + 1 : ends[at]], ends[at] + 1)
        bodies.append(_plain_body(body))
    if match["collects"]:  # \NewEnviron{boxed}{\fbox{\BODY}}
        begin, _, end = bodies[0].partition(r"\BODY")
        bodies = [begin, end]
    if how.startswith("DeclarePaired"):
        inside = re.sub(r"\\delimsize(?![A-Za-z])\s*", "", bodies[2]) if n_bodies == 3 else "#1"
        return [Macro(arguments, f"{bodies[0]} {inside} {bodies[1]}")], at
    if how == "DeclareMathOperator":
        bodies = [rf"\operatorname{{{bodies[0]}}}"]
    if r"\@ifstar" in bodies[0]:
        arguments = tuple(kind for kind in arguments if kind != "*")
    return [Macro(arguments, bodies[0]), *(Macro((), body) for body in bodies[1:])], at


def _plain_body(given: str) -> str:
    r"""Return a definition without what prints nothing; a `\relax` may be the branch of a test, or its edge."""
    body = _first_choice(_IN_FORMULA.sub(r"\\ensuremath{\1}", given.strip()))
    body = _IS_EMPTY.sub(lambda match: rf"\ifx\empty#{_number_asked(match)}\empty ", body)
    body = _RELAX.sub("{}", body) if _TEST.search(body) else body
    body = _NOTHING.sub("", _SIGN_OF_CHARACTER.sub(r"\1", _EXPANDED_FIRST.sub("", body)))
    is_open = re.search(r"(?<!\\)\\$", body) or _WORDS_AND_BLANK.fullmatch(given.lstrip())
    return f"{body} " if is_open else body


def _is_primitive(macro: Macro) -> bool:
    return _PRIMITIVE.search(_TEST.sub("", _IS_EMPTY.sub("", macro.body))) is not None


def find_definers(source: str) -> dict[str, Macro]:
    r"""Return the commands of *source* that define what their arguments name, as `\newcommand{\mk}[2]{\def#1{#2}}`."""
    defines = _DEFINES_ARGUMENT.search(source) or _SETS.search(source)
    return _read_definitions(source, Counter())[2] if defines else {}


def _drop_made(body: str) -> str:
    r"""Return the *body* of a command that defines others, without their definitions: what the command prints.

    >>> _drop_made(r"\expandafter\gdef\csname Law#1\endcsname{$#2$}\emph{#1}"), _drop_made(r"\def#1{#2}")
    ('\\emph{#1}', '')
    """
    body = re.sub(r"\\csname.*?\\endcsname", r"\\made ", re.sub(r"\\expandafter(?![A-Za-z@])\s*", "", body))
    body = _DEFINES_ARGUMENT.sub(lambda match: re.sub(r"#\d$", r"\\made", match[0]), body)
    return _read_definitions(body, Counter())[1].strip()


def drop_definitions(source: str) -> str:
    """Return *source* without the definitions of commands and environments."""
    return _read_definitions(source, Counter())[1]


def _written_definitions(source: str, definers: Mapping[str, Macro]) -> str:
    """Return the paragraphs of *source* that use the *definers*, written out."""
    uses = re.compile("(?:" + "|".join(map(re.escape, definers)) + r")(?![A-Za-z@])")
    used = (part for part in _split_paragraphs(source) if uses.search(part)) if uses.search(source) else ()
    return "".join(_expand(part, {**_TWICE, **definers}) or "" for part in used)


def _lift_definitions(macro: Macro) -> tuple[Macro, dict[str, Macro]]:
    r"""Return a command without what it redefines for its arguments, as `\given` in the braces of a set, and that."""
    if not macro.arguments or r"\renewcommand" not in macro.body:
        return macro, {}
    inner, body = read_macros(macro.body, Counter())
    return Macro(macro.arguments, body), {name: each for name, each in inner.items() if "#" not in each.body}


def _first_choice(body: str) -> str:
    r"""Return *body* with what each `\mathchoice` has for formulas of their own lines."""
    while match := _CHOICE.search(body):
        given, end = _arguments(body, match.end(), Macro(("m",) * 4, ""))
        if len(given) < 4:
            break
        body = f"{body[: match.start()]}{{{given[0]}}}{body[end:]}"
    return body


def _delimited(pattern: str) -> tuple[str, ...]:
    r"""Return the kinds of the arguments of a `\def` by what stands between its name and its braces."""
    kinds: list[str] = []
    for part in _DELIMITED.findall(pattern.strip()):
        if part[0] == "#" and part[1:]:
            kinds.append("m")
        elif part.strip():
            kinds[-1:] = [*kinds[-1:], f"={part.strip()}"] if kinds[-1:] != ["m"] else [f"u{part.strip()}"]
    return tuple(kinds)


def _specified(specification: str) -> tuple[str, ...]:
    r"""Return the kinds of the arguments of a `\NewDocumentCommand`."""
    kinds: list[str] = []
    for match in _SPECIFIED.finditer(specification):
        if match["default"]:
            kinds.append(f"O{match['default'][1:-1]}")
        elif match["plain"]:
            kinds.append({"s": "t*", "o": f"O{_NO_VALUE}", "v": "m", "b": "g"}.get(match["plain"], match["plain"]))
        else:
            kinds.append(f"t{match['sign']}" if match["sign"] else "d" + "".join(match["pair"][1:].split()))
    return tuple(kinds)


# The files of a book have nearly the same commands, each as a document of its own.
@lru_cache(maxsize=1 << 16)
def _used(body: str) -> frozenset[str]:
    return frozenset() if _TEST.search(body) else frozenset(_MACRO_COMMAND.findall(body))


@lru_cache(maxsize=1 << 16)
def _used_internally(body: str) -> frozenset[str]:
    return frozenset(_INTERNAL.findall(_TEST.sub("", _IS_EMPTY.sub("", body))))


def find_circular_macros(macros: Mapping[str, Macro]) -> set[str]:
    """Return the commands whose definition uses them, directly or through others."""
    import numpy as np
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    uses = {name: [each for each in _used(macro.body) if each in macros] for name, macro in macros.items()}
    numbers = {name: number for number, name in enumerate(macros)}
    pairs = [(numbers[name], numbers[used]) for name in uses for used in uses[name]]
    if not pairs:
        return set()
    graph = csr_array((np.ones(len(pairs), np.int8), np.array(pairs).T), shape=(len(uses), len(uses)))
    component = connected_components(graph, connection="strong")[1]
    sizes = np.bincount(component)
    return {name for name in uses if sizes[component[numbers[name]]] > 1 or name in uses[name]}


def find_internal_macros(macros: Mapping[str, Macro]) -> set[str]:
    """Return the commands whose definition uses, directly or through others, internal ones that are not defined."""
    used = {name: internal for name, macro in macros.items() if (internal := _used_internally(macro.body))}
    found: set[str] = set()
    while new := {
        name for name in used.keys() - found if any(each not in macros or each in found for each in used[name])
    }:
        found |= new
    return found


def expand_macros(text: str, macros: Mapping[str, Macro], odd: Counter[str]) -> str:
    """Return *text* with the *macros* expanded, or unchanged and counted in *odd* if it became twenty times as long."""
    parts = []
    for part in _split_paragraphs(text):
        written = _expand(part, macros)
        odd["texts whose commands are too long written out (left as they are)"] += written is None
        parts.append(part if written is None else written)
    text = "".join(parts).replace(_SAVED, "\\").replace(_NO_VALUE, "")
    text = choose_branches(text, {"iftrue": True, "iffalse": False})
    text = re.sub(r"\\xspace(?![A-Za-z])[ \t]*(?=[A-Za-z0-9(`])", " ", text)
    return re.sub(r"\\xspace(?![A-Za-z])", "", text)


def _split_paragraphs(text: str) -> list[str]:
    """Return the parts of *text* between blank lines outside of braces."""
    starts, depth = [0], 0
    for match in _PARAGRAPH_OR_BRACE.finditer(text):
        depth += {"{": 1, "}": -1}.get(match[0], 0)
        if depth <= 0 and match[0][0] == "\n":
            starts.append(match.start())
    return [text[start:end] for start, end in itertools.pairwise([*starts, len(text)])]


def choose_branches(text: str, values: Mapping[str, bool]) -> str:
    """Return *text* without the branches that *values* exclude; other conditionals and text without a `fi` stay."""
    parts, at = list[str](), 0
    is_printed: list[bool | None] = []  # of the open conditionals, None for those that stay
    for match in _CONDITIONAL.finditer(text):
        name = match[1]
        if (name not in values and name not in _CONDITIONALS) if name.startswith("if") else not is_printed:
            continue
        parts += [] if False in is_printed else [text[at : match.start()]]
        value = values.get(name) if name.startswith("if") else is_printed[-1]
        at = match.start() if value is None else match.end()
        if name != "else":
            is_printed = [*is_printed, value] if name != "fi" else is_printed[:-1]
        elif value is not None:
            is_printed[-1] = not value
    return text if False in is_printed else "".join([*parts, text[at:]])


def _expand(text: str, macros: Mapping[str, Macro]) -> str | None:
    """Return *text* with its commands written out as TeX does it, or None where it becomes too long or has no end."""
    parts, at = list[str](), 0
    limit, steps, room = len(text) + _GROWTH, 0, 20 * len(text) + _GROWTH
    while match := _MACRO_COMMAND.search(text, at):
        at, name = match.end(), match[0]
        if name not in macros and "@" in name and name.partition("@")[0] in macros:
            name = name.partition("@")[0]  # outside of styles an @ ends the name of a command
            at = match.start() + len(name)
        if name in macros:
            given, end = _arguments(text, at, macros[name], is_environment=name.endswith("}"))
            body = _fill_in(macros[name].body, given)
            is_spaced = body.endswith(r"\xspace") and bool(_GOES_ON_IN_TEXT.match(text, at))
        elif (test := _TEST.fullmatch(name)) and (decided := _decide(text, at, test)):
            (body, end), is_spaced = decided, False
        else:
            continue
        before = text[: match.start()]
        body = f"{{{body}}}" if (before or "".join(parts[-1:]))[-1:] in ("_", "^") else body
        # A command that ends in a letter, or a formula, must not run into the next word.
        runs_on = re.search(r"\\(?:[A-Za-z]+|end\{[^{}]*\})$", body) and text[end : end + 1].isalpha()
        gap = " " if runs_on or is_spaced else ""
        parts += [before] if before else []
        text, at = body + gap + text[end:], 0
        # Nor must the command before run into it.
        text = f" {text}" if text[:1].isalpha() and _ENDS_IN_COMMAND.search(before or "".join(parts[-1:])) else text
        steps, room = steps + 1, room - len(before)
        if steps > limit or len(text) > room:
            return None
    return "".join([*parts, text])


def _decide(text: str, at: int, test: re.Match[str]) -> tuple[str, int] | None:
    """Return the branch that a test before *at* prints, and the end of both branches; None: they are not there."""
    looks_ahead = test["test"] is None
    n_conditions = 0 if test[0] == r"\@ifstar" else 1
    n_branches = 1 if test["branches"] in ("T", "F") else 2
    given, end = _arguments(text, at, Macro(("m",) * (n_conditions + n_branches), ""))
    branches = given[n_conditions:]
    if not branches:
        return None
    if looks_ahead:
        wanted = {r"\bgroup": "{"}.get(given[0], given[0]) if n_conditions else "*"
        start = find_end(_BLANKS, text, end)
        is_passed = bool(wanted) and text.startswith(wanted, start)
        end = start + 1 if is_passed and not n_conditions else end
    else:
        is_passed = _TESTS[test["test"]](given[0])
    branches = {"T": [*branches, ""], "F": ["", *branches]}.get(test["branches"], branches)
    return (branches[0] if is_passed else "".join(branches[1:2])), end


def _fill_in(body: str, arguments: list[str]) -> str:
    def fill(match: re.Match[str]) -> str:
        given = "".join(arguments[int(match[2]) - 1 : int(match[2])])
        # A command must not run into the argument after it, nor an argument that ends with one into the next.
        gap = " " if _ENDS_IN_COMMAND.search(given) and body[match.end() : match.end() + 1] == "#" else ""
        return (match[1] or "") + (" " if match[1] and given[:1].isalpha() else "") + given + gap

    def ask(match: re.Match[str]) -> str:
        number = _number_asked(match)
        given = _RELAX.sub("", "".join(arguments[number - 1 : number]).strip())
        return r"\iffalse " if given else r"\iftrue "

    return _ARGUMENT.sub(fill, _IS_EMPTY.sub(ask, body) if r"\if" in body else body)


def _number_asked(test: re.Match[str]) -> int:
    return int(test["number"] or test["first"] or test["braced"])


def _closing(text: str, start: int) -> int:
    """Return the position of the brace that closes that at *start*, -1 for none."""
    depth = 0
    for match in ESCAPED_OR_BRACE.finditer(text, start):
        depth += {"{": 1, "}": -1}.get(match[0], 0)
        if not depth:
            return match.start()
    return -1


def _arguments(text: str, at: int, macro: Macro, *, is_environment: bool = False) -> tuple[list[str], int]:
    """Return the arguments from position *at*, and their end; blanks after a command without arguments are skipped.

    An environment has arguments in braces only: what else follows it is its text.
    """
    given: list[str] = []
    for kind in macro.arguments:
        found = _argument(text, at, kind, is_environment=is_environment)
        if found is None:
            break
        given, at = [*given, *found[0]], found[1]
    if not macro.arguments and text[at - 1 : at].isalpha() and text[at : at + 1].isspace():
        at = find_end(_BLANKS_AFTER_COMMAND, text, at)
    return given, at


def read_arguments(text: str, at: int, count: int) -> tuple[list[str], int]:
    r"""Return the arguments in braces from position *at*, at most *count*, and their end.

    >>> read_arguments(r"{a} {b{c}}{d}", 0, 2)
    (['a', 'b{c}'], 10)
    """
    return _arguments(text, at, Macro(("m",) * count, ""), is_environment=True)


def _argument(text: str, at: int, kind: str, *, is_environment: bool) -> tuple[list[str], int] | None:
    """Return the argument of a *kind* at a position and its end, none for what is skipped; None: it is not there."""
    start, sign = find_end(_BLANKS, text, at), kind[1:]
    if kind[0] in "*t":
        wanted = sign if kind[0] == "t" else "*"
        end = at + len(wanted) * text.startswith(wanted, at)
        if kind[0] == "t":
            return [rf"\Boolean{end > at}"], end
        return [], (read_optional_argument(text, end)[1] if sign else end)
    if kind[0] == "O":
        option, end = read_optional_argument(text, at)
        return [option if end > at else sign], end
    if kind[0] == "=":
        return ([], start + len(sign)) if text.startswith(sign, start) else None
    if kind[0] in "ud":
        end = text.find(kind[-1] if kind[0] == "d" else sign, start)
        if kind[0] == "u" and end >= 0:
            return [text[start:end].removeprefix("{").removesuffix("}")], end + len(sign)
        is_there = kind[0] == "d" and text.startswith(sign[0], start) and end >= 0
        return ([text[start + 1 : end]], end + 1) if is_there else ([_NO_VALUE], at) if kind[0] == "d" else None
    if text[start : start + 1] == "{":
        end = _closing(text, start)
        return None if end < 0 else ([text[start + 1 : end]], end + 1)
    if kind == "g":
        return [_NO_VALUE], at
    if is_environment:
        return None
    token = _MACRO_COMMAND.match(text, start)
    taken = token[0] if token else text[start : start + 1]
    return [taken], start + max(1, len(taken))
