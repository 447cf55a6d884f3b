"""tex_files: files of your own LaTeX, and which of them make one document."""

from __future__ import annotations

import os
import posixpath
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path

from mirblab.core.errors import MirblabError
from mirblab.sources.shared import latex
from mirblab.sources.shared.tables import decode_file

DEFINITIONS = (".sty", ".cls")  # files that are read for definitions alone
# Redefined, these would hide every environment; only packages have reason to define them.
_REDEFINES = r"\\(?:(?:re)?newcommand|providecommand|DeclareRobustCommand|def)\*?\s*\{?\s*\\(?:begin|end)(?![A-Za-z])"
_REFUSED = re.compile("\ue002(\\d+)\ue003(" + _REDEFINES + ")")
_MARKED = re.compile(_REDEFINES + r"|\\begin\s*\{")
LINE_MARK = re.compile("\ue002(\\d+)\ue003")
_NEAR = 12  # characters that a mark takes at most
_INPUT = re.compile(
    r"\\(?:input|include|subfile|subfileinclude|InputIfFileExists)(?![A-Za-z])\s*(?:\{([^{}]*)\}|([^\s{}\\]+))"
    r"|\\(?:sub)?(?:import|inputfrom|includefrom)\*?\s*\{([^{}]*)\}\s*\{([^{}]*)\}"
    r"|\\documentclass\s*\[([^][]*)\]\s*\{subfiles\}"
)
# A folder that a command names, by a value in the same file, or else that of the first file.
_PATH_COMMAND = re.compile(r"\\([A-Za-z]+)(?:\{\})?/?")
_PATH_VALUE = re.compile(r"\\(?:def|newcommand\*?)\s*\{?\s*\\([A-Za-z]+)\s*\}?\s*\{([\w. /-]*?)/?\}")
_PACKAGES = re.compile(r"\\(?:usepackage|RequirePackage|documentclass|LoadClass)\s*(?:\[[^][]*\]\s*)?\{([^{}]*)\}")
_EXTERNAL = re.compile(r"\\externaldocument\s*\[([^][]+)\]\s*(?:\[[^][]*\]\s*)?\{([^{}]+)\}")
_OWN_CLASS = re.compile(r"\\documentclass(?!\s*\[[^][]*\]\s*\{subfiles\})")
# Where a file stands in its document: for each input that leads to it, its line in the file that has it, and which one
# of the inputs there it is, from 1.
Place = tuple[tuple[int, int], ...]
Documents = dict[str, dict[str, Place]]  # by the first file of each: its files in TeX's order, with their places


def read_sources(files: Mapping[str, Path], encoding: str, odd: Counter[str]) -> dict[str, str]:
    r"""Return the texts of LaTeX files as far as TeX reads them, without comments.

    Definitions of `\begin` and `\end` are left out. Before each beginning of an environment stands a mark of its line,
    see `find_line`. What cannot be read is counted in *odd*; MirblabError when that is all.
    """
    decoded = _decoded(files, encoding, odd)
    texts = {name: latex.cut_at_end(latex.strip_comments(text), odd) for name, text in decoded.items()}
    _refuse(texts, odd)
    return texts


def decode_source(path: Path, encoding: str) -> str:
    """Return the text of a LaTeX file, in UTF-8 where it is that, else in the *encoding*: a folder may have both."""
    try:
        return decode_file(path)
    except MirblabError:
        if not encoding:
            raise
        return decode_file(path, encoding)


def _decoded(files: Mapping[str, Path], encoding: str, odd: Counter[str]) -> dict[str, str]:
    texts: dict[str, str] = {}
    errors: list[MirblabError] = []
    for name, path in files.items():
        try:
            texts[name] = _marked(decode_source(path, encoding))
        except MirblabError as error:
            errors.append(error)
    if errors and not texts:
        raise errors[0]
    if errors:
        odd[f"files that cannot be read (left out); the first: {errors[0]}"] = len(errors)
    return texts


def _marked(text: str) -> str:
    r"""Return *text* with its line number before each beginning of an environment, or definition of `\begin`."""
    text = text.translate({0xE002: None, 0xE003: None, 0xE004: None})
    parts, last, line = [], 0, 1
    for match in _MARKED.finditer(text):
        line += text.count("\n", last, match.start())
        parts += [text[last : match.start()], f"\ue002{line}\ue003"]
        last = match.start()
    return "".join([*parts, text[last:]])


def _refuse(texts: dict[str, str], odd: Counter[str]) -> None:
    first, count = "", 0
    for name, text in texts.items():
        for match in _REFUSED.finditer(text):
            command = match[2].split("\\")[-1]
            first, count = first or rf"\{command} in {name}, line {match[1]}", count + 1
        texts[name] = _REFUSED.sub("", text)
    if count:
        odd[rf"definitions of \begin or \end (left out); the first: {first}"] = count


def drop_line_marks(text: str) -> str:
    """Return *text* without its marks of line numbers."""
    return LINE_MARK.sub("", text)


def find_line(text: str, start: int) -> int:
    """Return the line of its file on which the environment or input at *start* begins, 0 if it is unknown.

    An input and what a command begins have no mark; their line is then counted from the mark before it.
    """
    marks = LINE_MARK.findall(text, max(0, start - _NEAR), start)
    if marks:
        return int(marks[-1])
    before = text.rfind("\ue002", 0, start)
    mark = LINE_MARK.match(text, before) if before >= 0 else None
    return int(mark[1]) + text.count("\n", mark.end(), start) if mark else 0


def document_files(path: Path, encoding: str = "") -> dict[str, Path]:
    r"""Return a LaTeX file and the files below its folder that it inputs, or loads as packages, by their names.

    A file that is neither in UTF-8 nor in the *encoding* is among them; what it inputs is not.
    """
    files, names = {path.name: path}, [path.name]
    while names:
        name = names.pop()
        try:
            text = latex.cut_at_end(latex.strip_comments(decode_source(files[name], encoding)), Counter())
        except MirblabError:  # which `read_sources` raises, or counts
            continue
        packages = [[posixpath.join(posixpath.dirname(name), each)] for ends in _packages(text) for each in ends]
        for places in [*packages, *(places for _, places in _input_places(name, text))]:
            there = [each for each in places if not posixpath.isabs(each) and os.path.isfile(path.parent / each)][:1]
            names += [each for each in there if each not in files]
            files |= {each: path.parent / each for each in there}
    return files


def find_documents(texts: Mapping[str, str]) -> Documents:
    """Return the documents by their first file: their files in TeX's order, with their places.

    A document begins with a file that no other one inputs. Where files input each other, as a main file and its
    sections with the package subfiles, it begins with the file that has a class of its own.
    """
    by_stem: dict[str, list[str]] = {}
    for name in texts:
        by_stem.setdefault(_stem(name), []).append(name)
    inputs = {name: _inputs(name, text, by_stem) for name, text in texts.items()}
    input_by_others = {each for name, names in inputs.items() for each in names if each != name}
    documents = {
        name: _read_by(name, inputs)
        for name, text in texts.items()
        if name not in input_by_others and (inputs[name] or r"\documentclass" in text)
    }
    read = {name for files in documents.values() for name in files}
    for name in sorted(texts, key=lambda name: not _OWN_CLASS.search(texts[name])):
        if inputs[name] and name not in read:
            documents[name] = _read_by(name, inputs)
            read |= documents[name].keys()
    return documents


def _read_by(first: str, inputs: Mapping[str, Mapping[str, int]]) -> dict[str, Place]:
    """Return a file and all that it inputs, in the order in which TeX reads them, with their places."""
    read: dict[str, Place] = {}
    waiting: list[tuple[str, Place]] = [(first, ())]
    while waiting:
        name, place = waiting.pop()
        if name not in read:
            read[name] = place
            below = [(each, (*place, (line, at))) for at, (each, line) in enumerate(inputs[name].items(), 1)]
            waiting += reversed(below)
    return read


def find_places(texts: Iterable[str], documents: Documents) -> dict[str, tuple[int, Place]]:
    """Return for each file its document, the one of most files first, and its place there; loose files come last."""
    loose: list[Mapping[str, Place]] = [{name: ()} for name in texts]
    places: dict[str, tuple[int, Place]] = {}
    for number, files in enumerate([*sorted(documents.values(), key=len, reverse=True), *loose]):
        for name, place in files.items():
            places.setdefault(name, (number, place))
    return places


def find_scopes(texts: Mapping[str, str], documents: Documents) -> dict[str, tuple[str, ...]]:
    """Return by file the files of its documents in TeX's order, and of those nearest to it where they have no class."""
    in_documents = {name for files in documents.values() for name in files}
    loose = [name for name in texts if name not in in_documents]
    scopes: dict[str, dict[str, None]] = {name: {} for name in texts}
    whole = {first: files for first, files in documents.items() if r"\documentclass" in texts[first]}
    for first, files in documents.items():
        near = _nearest(first, whole) if first not in whole else []
        for name in files:
            scopes[name] |= dict.fromkeys((*near, *files))
    for name in loose:
        scopes[name] = dict.fromkeys((*_nearest(name, documents), *loose))
    return {name: tuple(scope) for name, scope in scopes.items()}


def find_readers(texts: Mapping[str, str], documents: Documents) -> dict[str, tuple[str, ...]]:
    """Return by file the files of its document, of several that of most files; else those of `find_scopes`."""
    readers = find_scopes(texts, documents)
    largest: dict[str, str] = {}
    for first in sorted(documents, key=lambda first: -len(documents[first])):
        for name in documents[first]:
            largest.setdefault(name, first)
    return readers | {name: readers[first] for name, first in largest.items()}


def find_external_documents(texts: Mapping[str, str], documents: Documents) -> dict[str, dict[str, str]]:
    r"""Return by file the prefixes that its documents give to the labels of other files, by the package xr.

    >>> texts = {"two.tex": r"\externaldocument[I-]{one}", "one.tex": ""}
    >>> find_external_documents(texts, {})
    {'two.tex': {'I-': 'one.tex'}}
    """
    by_stem = {_stem(name): name for name in reversed(list(texts)) if not name.lower().endswith(DEFINITIONS)}
    external: dict[str, dict[str, str]] = {}
    for name, text in texts.items():
        named = {prefix: by_stem[_stem(file)] for prefix, file in _EXTERNAL.findall(text) if _stem(file) in by_stem}
        for other in (
            {name, *(each for files in documents.values() if name in files for each in files)} if named else ()
        ):
            external[other] = external.get(other, {}) | named
    return external


def _nearest(name: str, documents: Mapping[str, Iterable[str]]) -> list[str]:
    """Return the files of the documents in a file's folder, else of those in the next one above it."""
    near, folder = list[str](), posixpath.join(name, "")
    while not near and folder:
        folder = posixpath.dirname(folder)
        near = [each for first, files in documents.items() if posixpath.dirname(first) == folder for each in files]
    return near


def _inputs(name: str, text: str, by_stem: Mapping[str, Collection[str]]) -> dict[str, int]:
    """Return the files that one inputs, of all *by_stem*, with the line; that of a package or class is 0.

    A path starts at the file's folder or at the first one. One that starts elsewhere, as in a folder of TEXINPUTS or
    beside another main file, means the only file it fits.
    """
    inputs: dict[str, int] = {}
    for ends in (tuple(map(posixpath.basename, paths)) for paths in _packages(text)):
        near = [each for each in by_stem.get(_stem(ends[0]), ()) if posixpath.basename(each) in ends]
        beside = [each for each in near if posixpath.dirname(each) == posixpath.dirname(name)]
        inputs |= dict.fromkeys((beside or near)[:1], 0)
    for line, places in _input_places(name, text):
        known = by_stem.get(_stem(places[0]), ())
        end = re.sub(r"^(?:\.\./)+", "", places[0])
        fitting = [each for each in known if f"/{each}".endswith((f"/{end}", f"/{end}.tex"))]
        found = [each for each in places if each in known][:1] or (fitting if len(fitting) == 1 else [])
        inputs |= {each: line for each in found if each not in inputs}
    return inputs


def _stem(path: str) -> str:
    return re.sub(r"\.(?:tex|sty|cls)$", "", posixpath.basename(path), flags=re.IGNORECASE)


def _packages(text: str) -> list[tuple[str, ...]]:
    """Return the names that the file of each package or class of a text may have, without a folder by a command."""
    named = [each for names in _PACKAGES.findall(text) for each in names.split(",")]
    wanted = [_PATH_COMMAND.sub("", each).strip() for each in named]
    return [tuple(f"{each}{ending}" for ending in DEFINITIONS) for each in wanted]


def _input_places(name: str, text: str) -> Iterator[tuple[int, tuple[str, str]]]:
    """Yield line and path of each input of a file, in order; a path may start at the file's folder or the first one."""
    folders = {command: f"{value}/" for command, value in _PATH_VALUE.findall(text)}
    for match in _INPUT.finditer(text):
        braced, bare, folder, file, whole = match.groups("")
        wanted = posixpath.join(folder, file) if file else braced or bare or whole
        wanted = _PATH_COMMAND.sub(lambda command: folders.get(command[1], ""), wanted.strip(' "\n\t'))
        for path in (posixpath.join(posixpath.dirname(name), wanted), wanted):
            path = posixpath.normpath(path)
            yield find_line(text, match.start()), (path, f"{path}.tex")
