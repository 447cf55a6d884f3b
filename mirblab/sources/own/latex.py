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
from mirblab.sources.shared import latex
from mirblab.sources.shared.builder import UniqueIds
from mirblab.sources.shared.latex import Environment, Macro, find_environments
from mirblab.sources.shared.tables import decode_file
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
# Redefined, these would hide every environment; only packages have reason to define them.
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
# Rarely proved: a proof after one of these belongs to the statement before it.
_NOT_PROVED = frozenset(
    """remark remarks rem rmk note notation convention definition defn dfn definitions example examples ex question
    problem conjecture hypothesis assumption setup""".split()
)


@dataclass(eq=False)
class Statement:
    """A theorem-like environment: its place, its texts as prose with LaTeX formulas, and the labels it refers to."""

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


class LabelIndex:
    """The statement of each label; a label in several files means the statement in the file that refers to it."""

    def __init__(self) -> None:
        self._in_file: dict[tuple[str, str], Statement] = {}
        self._anywhere: dict[str, list[Statement]] = {}

    def add(self, label: str, statement: Statement) -> bool:
        """Add a label and return whether it is new in its file; the first statement of a label counts."""
        self._anywhere.setdefault(label, []).append(statement)
        return self._in_file.setdefault((statement.file, label), statement) is statement

    def find(self, label: str, file: str) -> Statement | None:
        """Return the statement that *label* means in a *file*, or None: unknown there, and not unique elsewhere."""
        anywhere = self._anywhere.get(label, [])
        return self._in_file.get((file, label)) or (anywhere[0] if len(anywhere) == 1 else None)


@dataclass
class LatexContent:
    """All statements in the order of files and lines; `proofs` have the labels in their heading and their statement."""

    kinds: set[str]
    printed: dict[str, str]
    odd: Counter[str]
    statements: list[Statement] = field(default_factory=list)
    labels: LabelIndex = field(default_factory=LabelIndex)
    ids: UniqueIds = field(default_factory=UniqueIds)
    proofs: list[tuple[Proof, list[str], Statement | None]] = field(default_factory=list)

    def read_file(self, name: str, source: str) -> None:
        """Read the statements and proofs of one file."""
        statements: dict[int, Statement] = {}
        last: tuple[Statement, int] | None = None
        kinds = [re.escape(kind) for kind in sorted({*self.kinds, *PROOFS})]
        for block in find_environments(source, kinds, self.odd)[0]:
            if block.kind in PROOFS:
                before = last[0] if last and last[1] == block.section else None
                content = drop_line_marks(block.content(source))
                proof = Proof(nodes.clean_statement(content, self.odd), latex.find_references(content), name)
                owner = statements.get(id(block.parent)) or before
                self.proofs.append((proof, latex.find_references(block.option), owner))
            elif statement := self._statement(block, source, name):
                statements[id(block)] = statement
                last = last if _NOT_PROVED & set(statement.kind.split()) else (statement, block.section)

    def _statement(self, block: Environment, source: str, name: str) -> Statement | None:
        content = drop_line_marks(block.content(source))
        text = nodes.clean_statement(content, self.odd)
        if not text:
            self.odd["statements without a text"] += 1
            return None
        line, label = find_line(source, block.start), block.labels[0] if block.labels else ""
        statement = Statement(
            id=self.ids.new(label or (f"{name}:{line}" if line else name)),
            kind=self.printed.get(block.kind, block.kind.rstrip("*")),
            title=nodes.clean_statement(drop_line_marks(block.option), self.odd),
            text=text, file=name, line=line, label=label, order=len(self.statements),
            references=latex.find_references(content),
        )  # fmt: skip
        self.statements.append(statement)
        for each in block.labels:
            self.odd["labels that stand twice in a file (the first counts)"] += not self.labels.add(each, statement)
        return statement

    def assign_proofs(self) -> None:
        """Give every proof to the statements that its heading names, else to the one before it; needs all labels."""
        for proof, named, before in self.proofs:
            statements = [self.labels.find(label, proof.stem) for label in dict.fromkeys(named)]
            owners = [owner for owner in statements if owner is not None] or ([before] if before is not None else [])
            for owner in owners:
                owner.proofs.append(proof)
            self.odd["proofs of no statement"] += not owners


def read_latex(files: Mapping[str, Path], encoding: str = "") -> LatexContent:
    """Return the statements in LaTeX *files* (by name), with the authors' commands replaced by their definitions.

    A proof belongs to the statements that its heading names, else to that around it or the last provable one before it.
    """
    odd: Counter[str] = Counter()
    texts, kinds, printed = _read_sources(files, encoding, odd)
    content = LatexContent(kinds, printed, odd)
    for name, text in texts.items():
        content.read_file(name, text)
    content.assign_proofs()
    return content


def _read_sources(
    files: Mapping[str, Path], encoding: str, odd: Counter[str]
) -> tuple[dict[str, str], set[str], dict[str, str]]:
    """Return the texts by file, with their document's commands expanded, the environments and their printed names."""
    texts = {name: latex.strip_comments(text) for name, text in _decoded(files, encoding, odd).items()}
    _refuse(texts, odd)
    texts = {name: latex.drop_environments(text, nodes.CODE) for name, text in texts.items()}
    plain = {name: drop_line_marks(text) for name, text in texts.items()}
    kinds, wrapped = nodes.statement_environments(plain.values()), _environments(plain.values())
    macros = _macros(plain, odd)
    for name, text in texts.items():
        for environment in wrapped.keys() - kinds - set(PROOFS):
            if wrapped[environment]:
                text = latex.drop_environments(text, [environment])
            text = re.sub(rf"\\(?:begin|end)\s*\{{{re.escape(environment)}\}}", "", text)
        texts[name] = latex.expand_macros(text, macros[name], odd)
    return texts, kinds - set(PROOFS), _printed(plain.values())


def require_statements(content: LatexContent, n_files: int, shown: str) -> None:
    """Raise MirblabError, which names the usual environments, when the files have no statement."""
    if not content.statements:
        usual = ", ".join(sorted({"theorem", "lemma", "proposition", "corollary", "definition"}))
        raise MirblabError(
            f"{shown}: {n_files:,} .tex files and no statement in them; looked for environments such as {usual}, and "
            r"for those of \newtheorem in the same files; give the folder that has the preamble, too"
        )


def _decoded(files: Mapping[str, Path], encoding: str, odd: Counter[str]) -> dict[str, str]:
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
    """Return by file the files of its documents in TeX's order; a document begins with a file that none inputs."""
    inputs = {name: _inputs(name, text, texts) for name, text in texts.items()}
    input_by_others = {name for names in inputs.values() for name in names}
    documents = [
        _read_by(name, inputs)
        for name, text in texts.items()
        if name not in input_by_others and (inputs[name] or r"\documentclass" in text)
    ]
    in_documents = {name for document in documents for name in document}
    documents.append([name for name in texts if name not in in_documents])
    scopes: dict[str, dict[str, None]] = {name: {} for name in texts}
    for document in documents:
        for name in document:
            scopes[name] |= dict.fromkeys(document)
    return {name: tuple(scope) for name, scope in scopes.items()}


def _read_by(first: str, inputs: Mapping[str, list[str]]) -> list[str]:
    """Return a file and all that it inputs, in the order in which TeX reads them."""
    read: dict[str, None] = {}
    waiting = [first]
    while waiting:
        name = waiting.pop()
        if name not in read:
            read[name] = None
            waiting += reversed(inputs[name])
    return list(read)


def _inputs(name: str, text: str, names: Collection[str]) -> list[str]:
    """Return those of *names* that a file inputs; a path starts at the file's folder or at the first one."""
    inputs: list[str] = []
    for braced, bare, folder, file, whole in _INPUT.findall(text):
        wanted = posixpath.join(folder, file).strip() if file else (braced or bare or whole).strip()
        for path in (posixpath.join(posixpath.dirname(name), wanted), wanted):
            path = posixpath.normpath(path)
            inputs += [each for each in (path, f"{path}.tex") if each in names][:1]
    return list(dict.fromkeys(inputs))


def _marked(text: str) -> str:
    r"""Return *text* with its line number before each beginning of an environment, or definition of `\begin`."""
    text = text.translate({0xE002: None, 0xE003: None})
    parts, last, line = [], 0, 1
    for match in _MARKED.finditer(text):
        line += text.count("\n", last, match.start())
        parts += [text[last : match.start()], f"\ue002{line}\ue003"]
        last = match.start()
    return "".join([*parts, text[last:]])


def _printed(texts: Iterable[str]) -> dict[str, str]:
    r"""Return the printed names of environments: `\newtheorem{thm}{Theorem}` gives thm: theorem."""
    found = {}
    for text in texts:
        for name, printed, options, named in _PRINTED.findall(text):
            given = _NAME.findall(options)[-1:]
            if name or given:
                found[(name or named).strip()] = latex.latex_to_prose(printed or given[0]).casefold()
    return found


def _environments(texts: Iterable[str]) -> dict[str, bool]:
    """Return the environments that authors define, and whether their content is not printed."""
    return {
        (match["name"] or match["left_out"]).strip(): bool(match["hidden"] or match["left_out"])
        for text in texts
        for match in _ENVIRONMENT.finditer(text)
    }


def drop_line_marks(text: str) -> str:
    """Return *text* without its marks of line numbers."""
    return _MARK.sub("", text)


def find_line(text: str, start: int) -> int:
    """Return the line of its file on which the environment at *start* begins, 0 if it is unknown."""
    marks = _MARK.findall(text, max(0, start - _NEAR), start)
    return int(marks[-1]) if marks else 0
