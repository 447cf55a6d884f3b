"""boxes: environments that an author makes by hand or by a package of boxes, and the kind of statement they print."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from mirblab.sources.blueprints import nodes
from mirblab.sources.own.environment_names import FOREIGN_STATEMENTS, strip_accents
from mirblab.sources.shared import latex
from mirblab.sources.shared.macros import Macro

_DEFINES = re.compile(
    r"\\(?:(?:re)?newtcolorbox|(?P<specified>(?:New|Renew|Declare|Provide)TColorBox)|newmdenv)(?![A-Za-z])\*?"
)
_COUNT = re.compile(r"\s*\[\s*\d\s*\]")
_BLANKS = re.compile(r"\s*")
_BEGIN = re.compile(r"\\begin\s*\{[^{}]*\}")
_LABEL = re.compile(r"\\label\s*\{[^{}]*\}")
_KEYS = re.compile(r"\\tcbset\s*\{(#\d)\}")
_HEADING = re.compile(r"\\(?:part|chapter|(?:sub)*section|(?:sub)?paragraph)(?![A-Za-z])")
# What has the name of a kind and does not print it.
_UNPRINTED = re.compile(
    r"\\(?:begin|end|(?:ref)?stepcounter|(?:set|addto)counter|usecounter|newcounter|color|hypertarget|theoremstyle)\s*\{[^{}]*\}"
    r"|\\addcontentsline\s*\{[^{}]*\}\s*\{[^{}]*\}\s*\{[^{}]*\}"
)
_WORD = re.compile(r"(?<![\\\w@])[^\W\d_]+")
_OPTION = re.compile(r"(?:[^,{}\[\]]|\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\}|\[[^\[\]]*\])+")


def define_boxes(text: str) -> str:
    r"""Return *text* with each `\newtcolorbox`, `\NewTColorBox` and `\newmdenv` as the environment of its title.

    >>> define_boxes(r"\newtcolorbox[auto counter]{big}[2][]{colback=red, title={Lemma: #2}, #1}")
    '\\newenvironment{big}[2][]{Lemma: #2\\tcbset{#1}}{}'
    """
    parts, at = list[str](), 0
    ends = latex.match_braces(text) if _DEFINES.search(text) else {}
    for match in _DEFINES.finditer(text):
        options, after = latex.read_optional_argument(text, match.end())
        name, after = _braced(text, after, ends)
        how, signature = "newenvironment", ""
        if match["specified"]:
            how, (specified, after) = "NewDocumentEnvironment", _braced(text, after, ends)
            signature = f"{{{specified}}}"
        elif match[0].endswith("box"):
            start, counted = after, latex.find_end(_COUNT, text, after)
            after = latex.read_optional_argument(text, counted)[1] if counted > after else after
            signature = text[start:after]
        if not match[0].startswith(r"\newmdenv"):
            options, after = _braced(text, after, ends)
        if name:
            parts += [text[at : match.start()], rf"\{how}{{{name}}}{signature}{{{''.join(_printed(options))}}}{{}}"]
            at = after
    return "".join([*parts, text[at:]])


def find_kind(body: str) -> str:
    r"""Return the kind of statement that the beginning of an environment prints, in small letters, or "".

    >>> find_kind(r"\refstepcounter{Lemma}\begin{tcolorbox}[title=Theorem~\thethm: #1]"), find_kind(r"\section{Lemma}")
    ('theorem', '')
    """
    if _HEADING.search(body):
        return ""
    parts, at = list[str](), 0
    for match in _BEGIN.finditer(body):
        options, after = latex.read_optional_argument(body, match.end())
        shown = "".join(_printed(options)) if "=" in options else options
        parts += [body[at : match.start()], f" {shown} "]
        at = after
    words = _WORD.findall(_UNPRINTED.sub(" ", "".join([*parts, body[at:]])))
    return next((word.casefold() for word in words if word[0].isupper() and _is_kind(word)), "")


def write_heading(begin: Macro) -> str:
    r"""Return the heading of a statement whose environment has a definition: arguments and labels."""
    labels, keys = _LABEL.findall(begin.body), _KEYS.findall(begin.body)
    count = sum(kind[0] not in "*=" for kind in begin.arguments)
    elsewhere = "".join([*labels, *keys])
    arguments = " ".join(f"#{number}" for number in range(1, count + 1) if f"#{number}" not in elsewhere)
    if keys:
        return f"[name={{{arguments}}}, {', '.join(keys)}]" + "".join(labels)
    return (f"[{arguments}]" if arguments else "") + "".join(labels)


def write_labels(body: str) -> str:
    r"""Return the labels in the definition of an environment.

    >>> write_labels(r"\begin{theorem}[#1]\label{thm:#2}")
    '\\label{thm:#2}'
    """
    return "".join(_LABEL.findall(body))


def find_printed_kinds(commands: Mapping[str, Macro]) -> dict[str, str]:
    """Return the kind of statement that each environment among the *commands* prints, without those that print none."""
    begins = {
        command[len(r"\begin{") : -1]: each for command, each in commands.items() if command.startswith(r"\begin{")
    }
    return {name: kind for name, each in begins.items() if (kind := find_kind(each.body))}


def _braced(text: str, at: int, ends: Mapping[int, int]) -> tuple[str, int]:
    """Return what stands in the braces at a position, and their end; "" and the position where there are none."""
    start = latex.find_end(_BLANKS, text, at)
    return (text[start + 1 : ends[start]], ends[start] + 1) if start in ends else ("", at)


def _printed(options: str) -> Iterator[str]:
    r"""Yield the title in the *options* of a box, its label as `\label`, and an argument of options as `\tcbset`."""
    for option in _OPTION.findall(options):
        key, _, value = (part.strip() for part in option.partition("="))
        value = value[1:-1] if value[:1] == "{" and value[-1:] == "}" else value
        if key in ("title", "frametitle"):
            yield value
        elif key == "label":
            yield rf"\label{{{value}}}"
        elif re.fullmatch(r"#\d", key):
            yield rf"\tcbset{{{key}}}"


def _is_kind(word: str) -> bool:
    return word.casefold() in nodes.STATEMENTS or strip_accents(word) in FOREIGN_STATEMENTS
