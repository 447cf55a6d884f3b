"""latex: your own LaTeX as statements and proofs."""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mirblab.core.errors import MirblabError
from mirblab.sources.blueprints import nodes
from mirblab.sources.own.tables import decode_file
from mirblab.sources.shared import latex
from mirblab.sources.shared.builder import UniqueIds
from mirblab.sources.shared.latex import Environment, Macro, find_environments
from mirblab.sources.stacks import Proof

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
# What is proved seldom: the proof that follows one of these belongs to the statement before it.
_NOT_PROVED = frozenset(
    """remark remarks rem rmk note notation convention definition defn dfn definitions example examples ex question
    problem conjecture hypothesis assumption setup""".split()
)


@dataclass
class LatexSources:
    """The texts of the files by name, the environments that hold statements, and what print calls them."""

    texts: dict[str, str]
    kinds: set[str]
    printed: dict[str, str]


@dataclass(eq=False)
class Statement:
    """A theorem-like environment: where it stands, its texts in plain prose with LaTeX formulas, what it refers to."""

    id: str
    kind: str
    title: str
    text: str
    file: str
    line: int
    label: str
    order: int
    references: list[str]
    proofs: list[Proof] = field(default_factory=list)


@dataclass
class LatexContent:
    """All statements in the order of files and lines, which of them each label belongs to, and what was odd."""

    statements: list[Statement]
    places: LabelIndex
    odd: Counter[str]


def read_latex(files: Mapping[str, Path], encoding: str = "") -> LatexContent:
    """Return the statements in LaTeX *files* (by the names shown in messages), read one after another.

    Statements are the usual theorem-like environments and those that the files define. Commands that the files
    define are written out. A proof belongs to the statement that its heading refers to, or that it stands in, else to
    the last one before it that can be proved, in the same section. Raises MirblabError for text in another encoding
    than *encoding* ("": UTF-8).
    """
    odd: Counter[str] = Counter()
    sources = read_sources(files, encoding, odd)
    reader = _Reader(sources, odd)
    for name, text in sources.texts.items():
        reader.file(name, text)
    return reader.found()


def read_sources(files: Mapping[str, Path], encoding: str, odd: Counter[str]) -> LatexSources:
    r"""Return LaTeX *files* (by the names shown in messages) without comments and verbatim text, with marks for lines.

    Commands are written out in the document that defines them: a file and what it inputs. Environments that any file
    defines for other ends than statements are unwrapped, or left out where print leaves them out. Counted in *odd*:
    what cannot be followed, definitions of `\begin` and `\end`, and files that cannot be read, with the first of each;
    when no file is left, the first one's error is raised.
    """
    whole = {name: latex.strip_comments(text) for name, text in _decoded(files, encoding, odd).items()}
    _refuse(whole, odd)
    texts = {name: latex.drop_environments(text, nodes.CODE) for name, text in whole.items()}
    plain = {name: drop_line_marks(text) for name, text in texts.items()}
    kinds, wrapped = nodes.statement_environments(plain.values()), _environments(plain.values())
    macros = _macros(plain, odd)
    for name, text in texts.items():
        for environment in wrapped.keys() - kinds - set(PROOFS):
            text = _unwrapped(text, environment, wrapped[environment])
        texts[name] = latex.expand_macros(text, macros[name], odd)
    return LatexSources(texts, kinds - set(PROOFS), _printed(plain.values()))


def require_statements(found: LatexContent, n_files: int, shown: str) -> None:
    """Raise MirblabError where there is nothing to build from, with what is looked for."""
    if not found.statements:
        usual = ", ".join(sorted({"theorem", "lemma", "proposition", "corollary", "definition"}))
        raise MirblabError(
            f"{shown}: {n_files:,} .tex files and no statement in them; looked for environments such as {usual}, and "
            r"for those of \newtheorem in the same files; give the folder that has the preamble, too"
        )


def _decoded(files: Mapping[str, Path], encoding: str, odd: Counter[str]) -> dict[str, str]:
    """Return the texts of the files, with marks for lines; one that cannot be read does not take the others with it."""
    texts: dict[str, str] = {}
    errors: list[MirblabError] = []
    for name, path in files.items():
        try:
            texts[name] = _marked(decode_file(path, encoding))
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
    defined = {name: latex.read_macros(text, odd) for name, text in texts.items()}
    made: dict[tuple[str, ...], dict[str, Macro]] = {}
    circular: set[str] = set()
    scopes = _scopes(texts)
    for scope in set(scopes.values()):
        macros = {command: macro for name in scope for command, macro in defined[name].items()}
        endless = latex.find_circular_macros(macros)
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
                found[(name or named).strip()] = latex.latex_to_prose(printed or given[0]).casefold()
    return found


def _environments(texts: Iterable[str]) -> dict[str, bool]:
    """Return the environments that authors define for themselves, and whether their content is left out in print."""
    found = {}
    for text in texts:
        for match in _ENVIRONMENT.finditer(text):
            found[(match["name"] or match["left_out"]).strip()] = bool(match["hidden"] or match["left_out"])
    return found


def _unwrapped(text: str, environment: str, is_hidden: bool) -> str:
    """Return *text* without the marks of an environment, and without its content where print leaves that out."""
    name = re.escape(environment)
    if is_hidden:
        text = latex.drop_environments(text, [environment])
    return re.sub(rf"\\(?:begin|end)\s*\{{{name}\}}", "", text)


class _Reader:
    """Collects statements file by file; proofs find theirs at the end, when all labels are known."""

    def __init__(self, sources: LatexSources, odd: Counter[str]) -> None:
        self.kinds = [re.escape(kind) for kind in sorted({*sources.kinds, *PROOFS})]
        self.printed, self.odd = sources.printed, odd
        self.statements: list[Statement] = []
        self.places = LabelIndex()
        self.names = UniqueIds()
        self.proofs: list[tuple[Proof, list[str], Statement | None]] = []

    def file(self, name: str, source: str) -> None:
        """Read the statements and proofs of one file."""
        made: dict[int, Statement] = {}
        last: tuple[Statement, int] | None = None
        for block in find_environments(source, self.kinds, self.odd)[0]:
            if block.kind in PROOFS:
                parent = made.get(id(block.parent))
                near = last[0] if last and last[1] == block.section else None
                content = drop_line_marks(block.content(source))
                proof = Proof(self._clean(content), latex.find_references(content), name)
                self.proofs.append((proof, latex.find_references(block.option), parent or near))
                continue
            statement = self._statement(block, source, name)
            if statement is not None:
                made[id(block)] = statement
                last = last if _NOT_PROVED & set(statement.kind.split()) else (statement, block.section)

    def _statement(self, block: Environment, source: str, name: str) -> Statement | None:
        content = drop_line_marks(block.content(source))
        text = self._clean(content)
        if not text:
            self.odd["statements without a text"] += 1
            return None
        line, label = find_line(source, block.start), block.labels[0] if block.labels else ""
        kind = self.printed.get(block.kind, block.kind.rstrip("*"))
        place = f"{name}:{line}" if line else name
        title = self._clean(drop_line_marks(block.option))
        found = Statement(self.names.new(label or place), kind, title, text, name, line, label, len(self.statements),
                          latex.find_references(content))  # fmt: skip
        self.statements.append(found)
        for own in block.labels:
            self.odd["labels that stand twice in a file (the first counts)"] += not self.places.add(own, found)
        return found

    def _clean(self, content: str) -> str:
        return nodes.clean_statement(content, self.odd)

    def found(self) -> LatexContent:
        """Give every proof to the statements that its heading names, else to the one before it."""
        for proof, named, near in self.proofs:
            places = [self.places.find(label, proof.stem) for label in dict.fromkeys(named)]
            owners = [place for place in places if place is not None] or ([near] if near is not None else [])
            for owner in owners:
                owner.proofs.append(proof)
            self.odd["proofs of no statement"] += not owners
        return LatexContent(self.statements, self.places, self.odd)


class LabelIndex:
    """Which statement each label belongs to; a label of several files means the one in the file that refers to it."""

    def __init__(self) -> None:
        """Begin with no label."""
        self._own: dict[tuple[str, str], Statement] = {}
        self._anywhere: dict[str, list[Statement]] = {}

    def add(self, label: str, statement: Statement) -> bool:
        """Take in a label; return whether it is new in its file: the first one counts."""
        self._anywhere.setdefault(label, []).append(statement)
        return self._own.setdefault((statement.file, label), statement) is statement

    def find(self, label: str, file: str) -> Statement | None:
        """Return the statement that *label* means in a *file*, or None: no statement has it, or several elsewhere."""
        others = self._anywhere.get(label, [])
        return self._own.get((file, label)) or (others[0] if len(others) == 1 else None)


def drop_line_marks(text: str) -> str:
    """Return *text* without the marks."""
    return _MARK.sub("", text)


def find_line(text: str, start: int) -> int:
    """Return the line of its file on which the environment stands that begins at *start*, 0 where it is not known."""
    marks = _MARK.findall(text, max(0, start - _NEAR), start)
    return int(marks[-1]) if marks else 0
