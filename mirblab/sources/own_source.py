"""own_source: LaTeX files made ready to be read: no comments, own commands written out, line numbers kept as marks."""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from mirblab.errors import MirblabError
from mirblab.sources import blueprint_nodes, latex, own_macros, unprinted
from mirblab.sources.own_macros import Macro
from mirblab.sources.own_table import decoded

PROOFS = ("proof", "proof*", "pf", "Proof")
_PRINTED = re.compile(
    r"\\(?:newtheorem|spnewtheorem|newmdtheoremenv)\*?\s*\{([^{}]+)\}\s*(?:\[[^][]*\]\s*)?\{([^{}]*)\}"
    r"|\\declaretheorem\s*\[([^][]*)\]\s*\{([^{}]+)\}"
)
_NAME = re.compile(r"\bname\s*=\s*\{?([^{},]+)")
_ENVIRONMENT = re.compile(
    r"\\(?:new|renew)environment\*?\s*\{(?P<name>[^{}]+)\}(?:\s*\[[^][]*\]){0,2}\s*"
    r"\{\s*(?P<hidden>\\comment\b)?|\\excludecomment\s*\{(?P<left_out>[^{}]+)\}"
)
# Without them no environment could be found any more, and packages alone have reason to define them.
_REDEFINES = r"\\(?:(?:re)?newcommand|providecommand|DeclareRobustCommand|def)\*?\s*\{?\s*\\(?:begin|end)(?![A-Za-z])"
_REFUSED = re.compile("\ue002(\\d+)\ue003(" + _REDEFINES + ")")
_MARKED = re.compile(_REDEFINES + r"|\\begin\s*\{")
_INPUT = re.compile(
    r"\\(?:input|include|subfile|subfileinclude)(?![A-Za-z])\s*(?:\{([^{}]*)\}|([^\s{}\\]+))"
    r"|\\(?:sub)?(?:import|inputfrom|includefrom)\*?\s*\{([^{}]*)\}\s*\{([^{}]*)\}"
    r"|\\documentclass\s*\[([^][]*)\]\s*\{subfiles\}"
)
_MARK = re.compile("\ue002(\\d+)\ue003")
_NEAR = 12  # characters that a mark takes at most


@dataclass
class Sources:
    """The texts of the files by name, the environments that hold statements, and what print calls them."""

    texts: dict[str, str]
    kinds: set[str]
    printed: dict[str, str]


def read(files: Mapping[str, Path], encoding: str, odd: Counter[str]) -> Sources:
    r"""Return LaTeX *files* (by their names for people) without comments and verbatim text, with marks for lines.

    Commands are written out in the document that defines them: a file and what it inputs. Environments that any file
    defines for other ends than statements are unwrapped, or left out where print leaves them out. Counted in *odd*:
    what cannot be followed, definitions of `\begin` and `\end`, and files that cannot be read, with the first of each;
    when no file is left, the first one's error is raised.
    """
    whole = {name: latex.strip_comments(text) for name, text in _decoded(files, encoding, odd).items()}
    _refuse(whole, odd)
    texts = {name: unprinted.without(text, blueprint_nodes.CODE) for name, text in whole.items()}
    plain = {name: unmarked(text) for name, text in texts.items()}
    kinds, wrapped = blueprint_nodes.kinds(plain.values()), _environments(plain.values())
    macros = _macros(plain, odd)
    for name, text in texts.items():
        for environment in wrapped.keys() - kinds - set(PROOFS):
            text = _unwrapped(text, environment, wrapped[environment])
        texts[name] = own_macros.expanded(text, macros[name], odd)
    return Sources(texts, kinds - set(PROOFS), _printed(plain.values()))


def _decoded(files: Mapping[str, Path], encoding: str, odd: Counter[str]) -> dict[str, str]:
    """Return the texts of the files, with marks for lines; one that cannot be read does not take the others with it."""
    texts: dict[str, str] = {}
    errors: list[MirblabError] = []
    for name, path in files.items():
        try:
            texts[name] = _marked(decoded(path, encoding))
        except MirblabError as error:
            errors.append(error)
    if errors and not texts:
        raise errors[0]
    if errors:
        odd[f"files that cannot be read (left out); the first: {errors[0]}"] = len(errors)
    return texts


def _refuse(texts: dict[str, str], odd: Counter[str]) -> None:
    r"""Take the definitions of `\begin` and `\end` out of *texts*, and count them, with file and line of the first."""
    first, count = "", 0
    for name, text in texts.items():
        for match in _REFUSED.finditer(text):
            command = match[2].split("\\")[-1]
            first, count = first or rf"\{command} in {name}, line {match[1]}", count + 1
        texts[name] = _REFUSED.sub("", text)
    if count:
        odd[rf"definitions of \begin or \end (left out); the first: {first}"] = count


def _macros(texts: Mapping[str, str], odd: Counter[str]) -> dict[str, dict[str, Macro]]:
    """Return for each file the commands that its documents define; of two definitions the later one counts."""
    defined = {name: own_macros.defined(text, odd) for name, text in texts.items()}
    made: dict[tuple[str, ...], dict[str, Macro]] = {}
    circular: set[str] = set()
    scopes = _scopes(texts)
    for scope in set(scopes.values()):
        macros = {command: macro for name in scope for command, macro in defined[name].items()}
        endless = own_macros.circular(macros)
        circular |= endless
        made[scope] = {command: macro for command, macro in macros.items() if command not in endless}
    odd["definitions of commands that use themselves"] += len(circular)
    return {name: made[scopes[name]] for name in texts}


def _scopes(texts: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Return for each file the files of the documents that it belongs to, in the order in which they are read.

    A document begins with a file that no other inputs. Files that input nothing and that nobody inputs are, unless
    they begin a document themselves, taken for parts of one whose first file is not there.
    """
    inputs = {name: _inputs(name, text, texts) for name, text in texts.items()}
    taken = {other for found in inputs.values() for other in found}
    firsts = [name for name in texts if name not in taken and (inputs[name] or r"\documentclass" in texts[name])]
    documents = [_read_by(first, inputs) for first in firsts]
    loose = texts.keys() - {name for document in documents for name in document}
    documents.append({name: None for name in texts if name in loose})
    scopes: dict[str, dict[str, None]] = {name: {} for name in texts}
    for document in documents:
        for name in document:
            scopes[name] |= document
    return {name: tuple(scope) for name, scope in scopes.items()}


def _read_by(first: str, inputs: Mapping[str, list[str]]) -> dict[str, None]:
    """Return a file and all that it inputs, in the order in which TeX reads them."""
    found: dict[str, None] = {}
    waiting = [first]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = None
            waiting += reversed(inputs[name])
    return found


def _inputs(name: str, text: str, names: Collection[str]) -> list[str]:
    """Return the files that one inputs, of those in *names*; a path counts from its folder or from the first one."""
    found: list[str] = []
    for braced, bare, folder, file, whole in _INPUT.findall(text):
        wanted = posixpath.join(folder, file).strip() if file else (braced or bare or whole).strip()
        for place in (posixpath.join(posixpath.dirname(name), wanted), wanted):
            place = posixpath.normpath(place)
            found += [each for each in (place, f"{place}.tex") if each in names][:1]
    return list(dict.fromkeys(found))


def unmarked(text: str) -> str:
    """Return *text* without the marks."""
    return _MARK.sub("", text)


def line_of(text: str, start: int) -> int:
    """Return the line of its file on which the environment stands that begins at *start*, 0 where it is not known."""
    marks = _MARK.findall(text, max(0, start - _NEAR), start)
    return int(marks[-1]) if marks else 0


def _marked(text: str) -> str:
    """Return *text* with its line number before each beginning of an environment (or what defines that anew)."""
    text = text.translate({0xE002: None, 0xE003: None})
    parts, last, line = [], 0, 1
    for match in _MARKED.finditer(text):
        line += text.count("\n", last, match.start())
        parts += [text[last : match.start()], f"\ue002{line}\ue003"]
        last = match.start()
    return "".join([*parts, text[last:]])


def _printed(texts: Iterable[str]) -> dict[str, str]:
    r"""Return how environments are called in print: `\newtheorem{thm}{Theorem}` gives thm: theorem."""
    found = {}
    for text in texts:
        for name, printed, options, named in _PRINTED.findall(text):
            given = _NAME.findall(options)[-1:]
            if name or given:
                found[(name or named).strip()] = latex.clean(printed or given[0]).casefold()
    return found


def _environments(texts: Iterable[str]) -> dict[str, bool]:
    """Return the environments that authors define for themselves, and whether print leaves out what stands in them."""
    found = {}
    for text in texts:
        for match in _ENVIRONMENT.finditer(text):
            found[(match["name"] or match["left_out"]).strip()] = bool(match["hidden"] or match["left_out"])
    return found


def _unwrapped(text: str, environment: str, is_hidden: bool) -> str:
    """Return *text* without the marks of an environment, and without what stands in it where print leaves it out."""
    name = re.escape(environment)
    if is_hidden:
        text = unprinted.without(text, [environment])
    return re.sub(rf"\\(?:begin|end)\s*\{{{name}\}}", "", text)
