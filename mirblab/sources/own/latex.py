"""latex: your own LaTeX as statements and proofs."""

from __future__ import annotations

import posixpath
import re
import string
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mirblab.core.errors import MirblabError
from mirblab.data.near_duplicates import fold_text
from mirblab.sources.blueprints import nodes
from mirblab.sources.own import boxes
from mirblab.sources.own.environment_names import (
    FOREIGN_STATEMENTS,
    HINTS,
    classify_environment,
    classify_words,
    is_rarely_proved,
    strip_accents,
)
from mirblab.sources.own.switches import choose_branches
from mirblab.sources.own.tex_files import (
    DEFINITIONS,
    LINE_MARK,
    Documents,
    Place,
    drop_line_marks,
    find_documents,
    find_external_documents,
    find_line,
    find_places,
    find_scopes,
    read_sources,
)
from mirblab.sources.shared import latex
from mirblab.sources.shared.builder import UniqueIds
from mirblab.sources.shared.latex import Environment, find_environments
from mirblab.sources.shared.macros import (
    Macro,
    drop_definitions,
    expand_macros,
    find_circular_macros,
    find_definers,
    find_internal_macros,
    read_macros,
)
from mirblab.sources.stacks import Proof

SOLUTIONS = ("solution", "solution*", "soln", "sol", "answer", "Solution")  # what proves an exercise or an example
PROOFS = ("proof", "proof*", "pf", "Proof", *SOLUTIONS)
_FEW = 3  # places that are named
_PRINTED = re.compile(
    rf"\\(?:{nodes.DEFINE_THEOREMS}|newtcbtheorem)\*?\s*(?:\[[^][]*\]\s*)?\{{([^{{}}]+)\}}\s*"
    r"(?:\[[^][]*\]\s*)?\{((?:[^{}]|\{[^{}]*\})*)\}"
    r"|\\declaretheorem\s*\[([^][]*)\]\s*\{([^{}]+)\}|\\newkeytheorem\s*\{([^{}]+)\}\s*\[([^][]*)\]"
)
_BOXED = re.compile(r"\\newtcbtheorem\s*(?:\[[^][]*\]\s*)?\{([^{}]+)\}")
_BEFORE_ARGUMENT = re.compile(r"\s*(?:\[[^][]*\]\s*)?")
_NAME = re.compile(r"\bname\s*=\s*\{?([^{},]+)")
_REFERRED_AS = re.compile(r"\b[Rr]efname\s*=\s*\{?([^{},]+)")
_CITED = re.compile(r"[\s(,;]*\[cite\]\)?")  # whose theorem it is says nothing of it
_RESTATABLE = re.compile(r"\\begin\s*\{restatable\*?\}\s*(?:\[[^][]*\])?\s*\{[^{}]+\}\s*\{\s*([A-Za-z]+)\s*\}")
_LIKE_LABEL = re.compile(r"(?:^|\s)([A-Za-z]{1,8}:[A-Za-z][\w:.-]*)(?=\s|$)")  # among the arguments of an environment
_KEYED = re.compile(r"\s*,?\s*(?:name|title|note|label|style|continues|unnumbered|qed|restate)\s*=")
_KEY = re.compile(
    r"([a-z]+)\s*=\s*(?:\{((?:[^{}]|\{[^{}]*\})*)\}|\[((?:[^][]|\[[^][]*\])*)\]|((?:[^,{}$]|\{[^{}]*\}|\$[^$]*\$)*))"
)
_RESTATED = re.compile(r"\s*\{([^{}]+)\}\s*\{\s*([^{}]*?)\s*\}")
# Environments that an author defines as code, or as not printed.
_EXCLUDED = re.compile(
    r"\\(?:excludecomment|lstnewenvironment|DefineVerbatimEnvironment|newtcblisting|newverbatim|RecustomVerbatimEnvironment"
    r"|newminted\s*\[([^][]*)\])\s*\{([^{}]+)\}"
)
_LIST = re.compile(r"\\newlist\s*\{([^{}]+)\}\s*\{([^{}]+)\}")
_DEFINES_THEOREMS = re.compile(rf"\\(?:{nodes.DEFINE_THEOREMS}|newtcbtheorem)(?![A-Za-z])")
_KIND_NAME = re.compile(r"\\([a-z]+)name(?![A-Za-z])")  # \lemmaname, as the package babel has it
# What an environment is made of: other environments, formulas, content that is not printed.
_STRUCTURE = re.compile(
    r"\\(?:begin|end)\s*\{[^{}]*\}(?:\s*\[(?:[^][{}]|\{[^{}]*\})*\])?|\\[][()]|\$\$|\\(?:end)?comment\b|\\vbox\\bgroup"
)
_BOX = re.compile(
    r"\{(?:center|quote|quotation|minipage|trivlist|mdframed|framed|shaded|tcolorbox|flushleft|flushright|adjustwidth|"
    r"leftbar|small|footnotesize|multicols|spacing|singlespace)\*?\}"
)
_HINT = re.compile(r"\\(?:(begin)|end)\s*\{hints?\*?\}(?(1)(?:\s*\[[^][]*\])?)")
_LABEL_ARGUMENT = re.compile(r"\\[A-Za-z]*[rR]ef\*?\s*\{[^{}]*#\d[^{}]*\}")
_DOCUMENT = r"\begin{document}"
_BEGINNING = re.compile(r"\\begin\s*\{([^{}\\]+)\}")
_KEPT = latex.KEPT.union(
    r"""\pageref \nameref \proof \endproof \qed \QED \bbox \eop \section \subsection \chapter \input \include
    \documentclass \usepackage \newtheorem \( \) \[ \] \\ \$ \% \& \# \_ \{ \}""".split()
)
_DISPLAY_END = re.compile(
    r"\s*\}?\s*(\\end\s*\{(?:equation|align|gather|eqnarray|multline|split|cases)\*?\}|\$\$|\\\])"
)
FIGURES = """figure figure* wrapfigure SCfigure marginfigure table table* tikzpicture asy asydef pspicture pspicture*
    picture pgfpicture mfpic psfrags overpic prooftree algorithmic Verbatim alltt sageblock sagesilent sagecell sageout
    sagecommandline sageverbatim pycode pythoncode python code filecontents filecontents* tcblisting Verbatim*
    lstlisting* tikz axis""".split()
_ANY_REFERENCE = re.compile(
    r"\\[A-Za-z]*refrange\*?\s*\{(?P<first>[^{}\\]+)\}\s*\{(?P<last>[^{}\\]+)\}"
    r"|\\(?!label)(?P<name>[A-Za-z]+)\*?\s*\{(?P<labels>[^{}\\]+)\}"
)
_WORDS = r"(?:theorem|lemma|proposition|corollary|claim|result|statement|fact|assertion)"
_MENTION = re.compile(r"\b(?:pro(?:ve|ves|ving)|proofs?\s+(?:of|for))\b(?P<what>.*)", re.IGNORECASE | re.DOTALL)
# What a proof right after it shows to exist, or solves.
_SOMETIMES_PROVED = re.compile(
    r"\bde?fi?n|\bconstruction|exerci[sc]|problem|question|aufgabe|algorithm",
    re.IGNORECASE,
)
_GOES_ON = re.compile(
    r"pro(?:of|v)|show|verif|argument|alternative|another|converse|direction|remain|finally|part\b|step|case",
    re.IGNORECASE,
)
_HEADS = re.compile(r"\\(?:part|chapter|(?:sub)*section)(?![A-Za-z])")
_FEW_WORDS = 4  # in formulas that stand alone between two proofs there is no claim
_THIS = re.compile(
    rf"\W*(?:of\W+)?(?:(?:this|that|the|our|these)(?:\s+(?:same|main|above|previous|preceding|last))?\s+{_WORDS}\b(?!\s*~?\d)|it\b|this\b)",
    re.IGNORECASE,
)
_KIND_ALONE = re.compile(rf"\W*(?:(?:the|this|that|our)\s+)?(?:(?:main|last|previous)\s+)?({_WORDS})\W*", re.IGNORECASE)
_ANOTHER = re.compile(rf"\b{_WORDS}s?\b", re.IGNORECASE)
# A proof as plain TeX has it, from \proof or a heading to a sign for its end.
_HEADING = re.compile(
    r"(?:\\(?:textbf|textit|textsc|emph|underline|(?:sub)?paragraph\*?|(?:sub)*section\*)\s*\{\s*|\{\s*(?=\\))"
    r"(?:\\(?:bf|it|em|sc|sl|bfseries|itshape|scshape)\s*)*"
    r"(?P<heading>(?:Proof|PROOF|Sketch of (?:the )?proof)(?=\s*(?:[][.:(}$\\~]|of\b|for\b|that\b|sketch))"
    r"(?:[^{}]|\{[^{}]*\}){0,200})\}\s*[.:]?"
)
_END_SIGN = (
    r"\\(?:qed|QED|endproof|bbox|eop|eproof|qedsymbol)(?![A-Za-z])"
    r"|(?:\\hfill\s*\$?|\$)\s*\\(?:Box|square|blacksquare)(?![A-Za-z])\s*\$?"
)
# A heading as an argument: words without a command, which would set all of them in another font.
_HEADED = re.compile(r"\s*\{([A-Z](?:[^{}\\]|\\[^A-Za-z])*)\}(?=\s*\S)")
_ANY_KIND = re.compile(r"\b(?:" + "|".join(nodes.STATEMENTS) + r")\b", re.IGNORECASE)
_BOXED_ARGUMENTS = re.compile(r"\s*\{((?:[^{}]|\{[^{}]*\})*)\}\s*\{([^{}]*)\}")
# On which slides beamer shows what follows: \item<2->, \begin{proof}<3->, \uncover<+->{...}.
_OVERLAY = re.compile(
    r"(\\(?:item|uncover|visible|only|onslide|alert|alt|pause|color|text[a-z]{2}|emph|begin\s*\{[A-Za-z]+\*?\}))"
    r"<(?:[a-z]+[:@])?[\d+.][\d+.,:@| a-z()-]*>"
)
_NUMBERED = Macro((), r"\arabic")  # a counter, as LaTeX prints it where an author does not say how
_NOTES = {"reference"}  # on the literature, beside a statement of the Stacks project
_PICTURE = "\ue004"  # in place of a picture's code: [diagram] within a formula, nothing elsewhere
_ONLY_PICTURE = re.compile(rf"^(?: *{_PICTURE})+ *\n?| *{_PICTURE}", re.MULTILINE)
_DIAGRAM = re.compile(_PICTURE + r"|\\xymatrix(?![A-Za-z])|\\begin\s*\{(?:tikzcd|CD|diagram|tikzpicture)\}")
_SIGN = re.compile(r"\\([%&#_])")
# Commands of packages in terms of others, where no author has defined them.
_PACKAGES_COMMANDS, _ = read_macros(
    r"""\newcommand{\texorpdfstring}[2]{#1}\newcommand{\tcboxmath}[1]{#1}\newcommand{\Aboxed}[1]{#1}
    \newcommand{\sidenote}[1]{\footnote{#1}}\newcommand{\tablefootnote}[1]{\footnote{#1}}
    \newcommand{\footnotetext}[1]{\footnote{#1}}\newcommand{\mathclap}[1]{#1}\newcommand{\mathrlap}[1]{#1}
    \newcommand{\mathllap}[1]{#1}\newcommand{\vcentcolon}{:}\newcommand{\coloneq}{:=}\newcommand{\eqcolon}{=:}
    \newcommand{\widebar}[1]{\overline{#1}}\newcommand{\num}[1]{#1}\newcommand{\nth}[1]{#1th}
    \newcommand{\MoveEqLeft}{}\newcommand{\pause}{}\newcommand{\immediate}{}\newcommand{\write}[2]{}
    \newcommand{\typeout}[1]{}\newcommand{\uncover}[1]{#1}\newcommand{\visible}[1]{#1}\newcommand{\only}[1]{#1}
    \newcommand{\alert}[1]{#1}\newcommand{\alt}[2]{#2}\NewDocumentCommand{\onslide}{g}{#1}
    \newcommand{\glossary}{\@ifnextchar({\glossary@key}{\glossary@entry}}
    \def\glossary@key(#1)#2#3{}\newcommand{\glossary@entry}[1]{}
    \newcommand{\ier}{er}\newcommand{\iers}{ers}\newcommand{\iere}{re}\newcommand{\ieres}{res}
    \newcommand{\ieme}{e}\newcommand{\iemes}{es}\newcommand{\up}[1]{#1}\newcommand{\fup}[1]{#1}
    \NewDocumentEnvironment{tasks}{o d()}{\begin{enumerate}[a)]}{\end{enumerate}}
    \NewDocumentCommand{\task}{s d() o}{\item}\NewDocumentCommand{\unit}{o m}{\IfValueTF{#1}{#1~}{}#2}
    \NewDocumentCommand{\unitfrac}{o m m}{\IfValueTF{#1}{#1~}{}#2/#3}
    \NewDocumentCommand{\marginnote}{o m o}{}\NewDocumentCommand{\scalerel}{s m m}{#2}
    \NewDocumentCommand{\raisebox}{m o o m}{#4}\newcommand{\tikzset}[1]{}\def\tikzstyle#1=[#2]{}
    \newcommand{\prd}[1]{\prod_{(#1)}\@ifnextchar\bgroup{\prd}{\,}}
    \newcommand{\lam}[1]{\lambda(#1).\@ifnextchar\bgroup{\lam}{\,}}
    \newcommand{\defeq}{:=}\newcommand{\mathchoice}[4]{#1}\newcommand{\abs}[1]{|#1|}\newcommand{\norm}[1]{\|#1\|}
    \newcommand{\vb}[1]{\mathbf{#1}}\newcommand{\dd}[1]{\mathrm{d}#1}\newcommand{\qty}[1]{#1}
    \NewDocumentCommand{\dv}{o m g}{\frac{\mathrm{d}\IfValueTF{#1}{^{#1}}{}\IfValueTF{#3}{#2}{}}{\mathrm{d}
    \IfValueTF{#3}{#3}{#2}\IfValueTF{#1}{^{#1}}{}}}
    \NewDocumentCommand{\pdv}{o m g}{\frac{\partial\IfValueTF{#1}{^{#1}}{}\IfValueTF{#3}{#2}{}}{\partial
    \IfValueTF{#3}{#3}{#2}\IfValueTF{#1}{^{#1}}{}}}""",
    Counter(),
)
# Authors define letters of other alphabets by loops: \calA to \calZ.
_PACKAGES_COMMANDS |= {
    rf"\{name}{letter}": Macro((), rf"\{alphabet}{{{letter}}}")
    for name, alphabet in {"cal": "mathcal", "scr": "mathscr", "frak": "mathfrak", "bb": "mathbb"}.items()
    for letter in string.ascii_letters
}


@dataclass
class OwnProof(Proof):
    """A proof, and the line of its file on which it begins (0: unknown)."""

    line: int = 0


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
    proofs: list[OwnProof] = field(default_factory=list)


class LabelIndex:
    """The statement of each label, where a label stands several times, as in two versions of a paper.

    It means the statement in the file that refers to it, else in the document of that file; *documents* has them. A
    label may have the prefix that a file gives to those of another file's document, see `find_external_documents`.
    """

    def __init__(self, documents: Mapping[str, int], prefixes: Mapping[str, Mapping[str, str]]) -> None:
        self._documents, self._prefixes = documents, prefixes
        self._in_file: dict[tuple[str, str], Statement] = {}
        self._anywhere: dict[str, list[Statement]] = {}

    def add(self, label: str, statement: Statement) -> bool:
        """Add a label and return whether it is new in its file; the first statement of a label counts."""
        self._anywhere.setdefault(label, []).append(statement)
        return self._in_file.setdefault((statement.file, label), statement) is statement

    def find(self, label: str, file: str) -> Statement | None:
        """Return the statement that *label* means in a *file*, or None: unknown there, and not unique elsewhere."""
        anywhere = self._anywhere.get(label, [])
        near = [each for each in anywhere if self._documents[each.file] == self._documents[file]]
        unique = next((found[0] for found in (near, anywhere) if len(found) == 1), None)
        if statement := self._in_file.get((file, label)) or unique:
            return statement
        there = self._prefixes.get(file, {})
        others = (self.find(label[len(each) :], there[each]) for each in there if label.startswith(each))
        return next(filter(None, others), None)


@dataclass
class ReadFile:
    """The text of a file, and where its provable statements and its proofs end in it; None is for a proof."""

    source: str
    ends: list[tuple[int, Statement | None]] = field(default_factory=list)


@dataclass
class LatexContent:
    """All statements in the order of files and lines, and the proofs with heading, statement before and text between.

    `printed` has the printed names of the environments `kinds`, `boxed` those whose title and label are arguments;
    `environments` counts what was read, `unknown` the commands and environments without a rule; `headed` are those
    whose first argument is their heading in the file that is read.
    """

    kinds: set[str]
    printed: dict[str, str]
    boxed: dict[str, str]
    odd: Counter[str]
    places: dict[str, tuple[int, Place]]  # of each file: its document, its place there
    external: dict[str, dict[str, str]] = field(default_factory=dict)  # of each file, see `find_external_documents`
    statements: list[Statement] = field(default_factory=list)
    labels: LabelIndex = field(init=False)
    ids: UniqueIds = field(default_factory=UniqueIds)
    proofs: list[tuple[OwnProof, str, Statement | None, str]] = field(default_factory=list)
    environments: Counter[str] = field(default_factory=Counter)
    unknown: Counter[str] = field(default_factory=Counter)
    headed: set[str] = field(default_factory=set)
    unclosed: list[str] = field(default_factory=list)  # places of environments that do not end
    read: dict[str, ReadFile] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.labels = LabelIndex({file: document for file, (document, _) in self.places.items()}, self.external)

    def read_file(self, name: str, source: str) -> None:
        """Read the statements and proofs of one file."""
        statements: dict[int, Statement] = {}
        last: tuple[Statement, Environment] | None = None
        latest: tuple[Statement, Environment] | None = None
        end_of_proof = 0
        ends = self.read.setdefault(name, ReadFile(source)).ends
        for block in self._blocks(name, source):
            if block.kind not in PROOFS:
                if statement := self._statement(block, source, name):
                    statements[id(block)] = statement
                    latest = latest if statement.kind in HINTS else (statement, block)
                    last = last if is_rarely_proved(statement.kind) else (statement, block)
                    ends += [] if is_rarely_proved(statement.kind) else [(block.after, statement)]
            elif proof := self._proof(block, source, name):
                option, last = drop_line_marks(block.option), _not_inside(last, block, statements)
                before = last[0] if last and last[1].section == block.section else None
                before = before if latest or ends else self._last_before(name, source[: block.start])
                ends.append((block.after, None))
                is_second = last is not None and last[1].after < end_of_proof <= block.start
                gap = drop_line_marks(source[max(last[1].after, end_of_proof) : block.start]) if last else ""
                if block.kind in SOLUTIONS or re.search(r"\b(?:[Ss]olution|[Aa]nswer)\b", option):
                    before = latest[0] if latest else None
                elif (is_second or before is None) and latest and _owns_next(latest, block, source, end_of_proof):
                    before = latest[0]
                elif is_second and not option.strip() and _is_claim(gap):
                    before = None
                end_of_proof = max(end_of_proof, block.after)
                self.proofs.append((proof, option, statements.get(id(block.parent)) or before, gap))

    def _blocks(self, name: str, source: str) -> list[Environment]:
        """Return the statements and proofs of a file, in order, and note those without an end and with a heading."""
        kinds = [re.escape(kind) for kind in sorted({*self.kinds, *PROOFS})]
        blocks, _, unclosed = find_environments(source, kinds, self.odd)
        self.unclosed += [f"{block.kind} in line {find_line(source, block.start)} of {name}" for block in unclosed]
        n_blocks = Counter(block.kind for block in blocks)
        self.environments += n_blocks
        n_headed = Counter(block.kind for block in blocks if _HEADED.match(source, block.begin))
        self.headed = {kind for kind, count in n_headed.items() if 2 * count > n_blocks[kind]}
        return blocks

    def _last_before(self, name: str, text: str) -> Statement | None:
        r"""Return the statement before the `\input` of a file whose *text* has none before a proof, or None.

        Neither a heading nor a proof may stand between them, nor a file without either.
        """
        document, place = self.places[name]
        above = {file: own for file, (number, own) in self.places.items() if number == document and file in self.read}
        parent = next((file for file, own in above.items() if place and own == place[:-1]), "")
        if not parent or _HEADS.search(text):
            return None
        beside = [file for file, own in above.items() if own and own[:-1] == place[:-1] and own < place]
        near = max(beside, key=lambda file: above[file], default="")
        start, end = (self._find_input(parent, file) if file else 0 for file in (near, name))
        within, owner = self.read[parent], None
        ends = [(at, each) for at, each in within.ends if at <= end]
        if ends and (not near or ends[-1][0] > start):
            at, owner = ends[-1]
        elif near and self.read[near].ends and not _HEADS.search(self.read[near].source, self.read[near].ends[-1][0]):
            at, owner = start, self.read[near].ends[-1][1]
        return None if owner is None or _HEADS.search(within.source, at, end) else owner

    def _find_input(self, parent: str, name: str) -> int:
        """Return where the text of *parent* inputs a file, its end if that is unknown."""
        stem, source = posixpath.splitext(posixpath.basename(name))[0], self.read[parent].source
        found = re.search(rf"\\[A-Za-z]+\*?\s*\{{[^{{}}]*(?<![\w-]){re.escape(stem)}(?:\.tex)?\s*\}}", source)
        return found.start() if found else len(source)

    def _proof(self, block: Environment, source: str, name: str) -> OwnProof | None:
        content = self._show_inner(drop_line_marks(source[block.begin : block.end]))
        text = self._clean(content)
        self.odd["proofs without a text"] += not text
        return OwnProof(text, latex.find_references(content), name, find_line(source, block.start)) if text else None

    def _statement(self, block: Environment, source: str, name: str) -> Statement | None:
        content, option = self._show_inner(drop_line_marks(self._content(block, source))), drop_line_marks(block.option)
        labels = [label for label in block.labels if label]
        if block.kind.rstrip("*") in self.boxed and (given := _BOXED_ARGUMENTS.match(content)):
            option, content = given[1], content[given.end() :]
            labels = [f"{self.boxed[block.kind.rstrip('*')]}:{given[2]}", *labels] if given[2] else labels
        heading = _HEADED.match(content) if block.kind in self.headed else None
        if heading:
            option, content = heading[1], content[heading.end() :]
        if not labels and (given := _LIKE_LABEL.search(option)):
            option, labels = option.replace(given[0], ""), [given[1]]
        text = self._clean(content if "hint" in self.kinds else _HINT.sub(_name_hint, content))
        if not text:
            self.odd["statements without a text"] += 1
            return None
        line, label = find_line(source, block.start), labels[0] if labels else ""
        kind = block.kind.rstrip("*")
        title = _CITED.sub("", self._clean(option)).strip(" ,;")
        if heading and (named := _ANY_KIND.search(title)):
            kind, title = named[0].casefold(), title if title.casefold() != named[0].casefold() else ""
        statement = Statement(
            id=self.ids.new(label or (f"{name}:{line}" if line else name)),
            kind=kind if heading else self.printed.get(block.kind) or self.printed.get(kind) or kind,
            title=title if re.search(r"\w", re.sub(r"\$[^$]*\$", "x", title)) else "",
            text=text, file=name, line=line, label=label, order=len(self.statements),
            references=[*latex.find_references(option), *latex.find_references(content)],
        )  # fmt: skip
        self.statements.append(statement)
        for each in labels:
            self.odd["labels that stand twice in a file (the first counts)"] += not self.labels.add(each, statement)
        return statement

    def _content(self, block: Environment, source: str) -> str:
        """Return the content of a statement without the proofs and solutions in it."""
        parts, at = list[str](), block.begin
        for inner in block.inner:
            kept = self._content(inner, source) if inner.kind not in PROOFS else None
            parts.append(source[at : inner.start if kept is None else inner.begin])
            parts += [] if kept is None else [kept, source[inner.end : inner.after]]
            at = inner.after
        return "".join([*parts, source[at : block.end]])

    def _show_inner(self, proof: str) -> str:
        """Return a proof with the claims in it, and their proofs, as text after their names."""
        if r"\begin" not in proof:
            return proof
        kinds = "|".join(map(re.escape, sorted({*self.kinds, *PROOFS})))

        def name(match: re.Match[str]) -> str:
            kind = match[2]
            word = "Proof" if kind in PROOFS else (self.printed.get(kind) or kind.rstrip("*")).capitalize()
            title = (match[3] or "").strip(" \"`'.")
            if title:
                word = title if kind in PROOFS else f"{word} ({title})"
            return f"\n\n{word}. " if match[1] else "\n\n"

        option = r"\s*\[((?:[^][{}]|\{[^{}]*\})*)\]"
        return re.sub(rf"\\(?:(begin)|end)\s*\{{({kinds})\}}(?(1)(?:{option})?)", name, proof)

    def _clean(self, source: str) -> str:
        return _print_signs(nodes.clean_statement(source, self.odd, self.unknown))

    def assign_proofs(self) -> None:
        """Give every proof to the statements that its heading or the sentence before it names, else to the one before.

        A proof that is announced as that of a statement which cannot be found is that of none. Needs all labels.
        """
        titled = [
            (fold_text(each.title), each)
            for each in self.statements
            if len(each.title) > 5 and not _KIND_ALONE.fullmatch(each.title) and not is_rarely_proved(each.kind)
        ]
        for proof, option, before, gap in self.proofs:
            owners = self._owners(proof, option, before, gap, titled)
            for owner in owners:
                owner.proofs.append(proof)
            self.odd["proofs of no statement"] += not owners

    def _owners(
        self, proof: OwnProof, option: str, before: Statement | None, gap: str, titled: list[tuple[str, Statement]]
    ) -> list[Statement]:
        """Return the statements that a proof is of, by its heading and the sentence before it; *titled* have titles."""
        sentence = re.split(r"[.:!?]\s|\n\s*\n", gap.strip().rstrip(".:"))[-1]
        for said in (option, sentence):
            mention = _MENTION.search(said)
            what = mention["what"] if mention else said if said is option else ""
            found = [self.labels.find(label, proof.stem) for label in dict.fromkeys(latex.find_references(what))]
            owners = list(dict.fromkeys(owner for owner in found if owner is not None))
            alone = _KIND_ALONE.fullmatch(what) if mention else None
            if mention and not owners and not alone:
                owners = _find_titled(fold_text(latex.latex_to_prose(what)).strip(), titled, proof.stem)
            if owners:
                return owners
            # "This lemma will prove the theorem" stands before the proof of the lemma.
            by_another = mention is not None and _ANOTHER.search(said[: mention.start()])
            if alone and not by_another:
                before = self._find_latest(alone[1].casefold(), proof) or before
                break
            if gap.strip() and mention and _ANOTHER.search(what) and not _THIS.match(what):
                before = None
        return [before] if before is not None else []

    def is_later(self, statement: Statement, file: str, line: int) -> bool:
        """Return whether a statement begins after a *line* of a *file* of its document: a proof there cannot use it."""
        (own, place), (other, there) = self.places[statement.file], self.places[file]
        return own == other and (*place, (statement.line, 0)) > (*there, (line, 0))

    def _find_latest(self, kind: str, proof: OwnProof) -> Statement | None:
        """Return the last statement of a *kind* before a proof in its file; None: there is none."""
        before = (each for each in reversed(self.statements) if each.file == proof.stem and each.line < proof.line)
        return next((each for each in before if each.kind.split()[-1:] == [kind]), None)


def _print_signs(text: str) -> str:
    r"""Return *text* with `[diagram]` for one, and `\%`, `\&`, `\#`, `\_` outside of formulas as signs.

    >>> _print_signs(r"at 50\% of $a\%b$, by euler\_phi, as in \[\xymatrix{A \ar[r] & B}\]")
    'at 50% of $a\\%b$, by euler_phi, as in [diagram]'
    """
    parts, last = list[str](), 0
    for start, end, _ in latex.find_formulas(text):
        formula = "[diagram]" if _DIAGRAM.search(text, start, end) else text[start:end]
        parts += [_SIGN.sub(r"\1", text[last:start]), formula]
        last = end
    return _ONLY_PICTURE.sub("", "".join([*parts, _SIGN.sub(r"\1", text[last:])])).strip()


def _find_titled(named: str, titled: Iterable[tuple[str, Statement]], file: str) -> list[Statement]:
    """Return the statement that a heading names by its title, or none; in another *file* only by the whole title."""
    found = [
        (title, each)
        for title, each in titled
        if named == title or (each.file == file and (title in named or (len(named) > 5 and named in title)))
    ]
    best = max(
        found, key=lambda pair: (pair[1].file == file, pair[0] == named, len(pair[0]), pair[1].order), default=None
    )
    return [best[1]] if best else []


def _not_inside(
    last: tuple[Statement, Environment] | None, proof: Environment, statements: Mapping[int, Statement]
) -> tuple[Statement, Environment] | None:
    """Return the *last* statement that is proved, or the one around it that has ended before a *proof*, too."""
    around = last[1].parent if last else None
    while around is not None and around.after <= proof.start:
        statement = statements.get(id(around))
        last = (statement, around) if statement and not is_rarely_proved(statement.kind) else last
        around = around.parent
    return last


def _owns_next(latest: tuple[Statement, Environment], proof: Environment, source: str, end_of_proof: int) -> bool:
    """Return whether the latest statement, after the last proof, stands right before *proof* and may have one."""
    statement, block = latest
    is_next = block.after >= end_of_proof and not drop_line_marks(source[block.after : proof.start]).strip()
    return is_next and _SOMETIMES_PROVED.search(statement.kind) is not None


def _is_claim(gap: str) -> bool:
    """Return whether the text between two proofs says something of its own, which the second one proves."""
    prose = latex.latex_to_prose(gap)
    return len(re.findall(r"[A-Za-z]{2,}", prose)) >= _FEW_WORDS and not _GOES_ON.search(prose)


def _name_hint(match: re.Match[str]) -> str:
    return "\n\nHint: " if match[1] else "\n\n"


def read_latex(files: Mapping[str, Path], encoding: str = "") -> LatexContent:
    """Return the statements in LaTeX *files* (by name), with the authors' commands replaced by their definitions.

    Files of `DEFINITIONS` are read for commands and environments alone. A proof belongs to the statements that its
    heading or the sentence before it names, else to that around it or the last provable one before it.
    """
    odd: Counter[str] = Counter()
    texts = read_sources(files, encoding, odd)
    texts = {name: _drop_bookmark_definitions(text) for name, text in texts.items()}
    texts = {name: boxes.define_boxes(latex.drop_environments(text, nodes.CODE)) for name, text in texts.items()}
    texts = choose_branches(texts)
    documents = find_documents(texts)
    places = find_places(texts, documents)
    macros, anew = _macros(texts, documents, places, odd)
    plain = [expand_macros(drop_line_marks(text), _theorem_macros(macros[name]), odd) for name, text in texts.items()]
    printed = _printed(plain)
    proofs = {name: like for name, words in printed.items() if (like := classify_words(words))}
    proofs |= {f"{name}*": like for name, like in proofs.items()}
    used = {name for text in texts.values() for name in _BEGINNING.findall(text)}
    proofs |= _undefined_proofs(used - {*printed, *PROOFS}, macros)
    kinds = {kind for kind in nodes.statement_environments(plain) if "#" not in kind}
    foreign = {name.rstrip("*") for name in used if strip_accents(name.rstrip("*")) in FOREIGN_STATEMENTS}
    kinds |= {*foreign, *(f"{name}*" for name in foreign)}
    made = _printed_kinds(macros.values(), {*PROOFS, *proofs, *kinds})
    kinds, printed = kinds | {each for name in made for each in (name, f"{name}*")}, made | printed
    kinds -= {*PROOFS, *proofs}
    boxed = {name: prefix for text in plain for name, prefix in _boxed(text) if name not in proofs}
    external = find_external_documents(texts, documents)
    content = LatexContent(kinds | boxed.keys(), printed, boxed, odd, places, external)
    hidden = {name for text in plain for names in _EXCLUDED.findall(text) for name in names if name}
    written_macros: dict[int, dict[str, Macro]] = {}  # by document, whose files share one table of commands
    ready: dict[str, str] = {}
    for name, text in texts.items():
        if name.lower().endswith(DEFINITIONS):
            continue
        body, shared = drop_definitions(text), id(macros[name])
        if shared not in written_macros:
            written_macros[shared] = _environments(macros[name], content.kinds, plain) | _aliases(proofs)
        written = written_macros[shared] | anew[name] if anew[name] else written_macros[shared]
        ready[name] = _written_out(body, written, content.kinds, hidden, odd)
    labels = _kinds_of_labels(ready, content)
    restatable = {name for text in texts.values() for name in _RESTATABLE.findall(text)}
    ready = _announce_restated(ready, restatable) if restatable else ready
    for name in sorted(ready, key=lambda name: content.places[name]):
        content.read_file(name, _plain_references(ready[name], labels))
    content.assign_proofs()
    if content.unclosed:
        more = ", ..." if len(content.unclosed) > _FEW else ""
        odd[f"{latex.UNCLOSED} ({', '.join(content.unclosed[:_FEW])}{more})"] = odd.pop(latex.UNCLOSED)
    return content


def _written_out(
    body: str, macros: Mapping[str, Macro], kinds: Collection[str], hidden: Collection[str], odd: Counter[str]
) -> str:
    """Return a text with its commands written out, all proofs as environments, and without pictures and code."""
    written = expand_macros(_OVERLAY.sub(r"\1 ", body), macros, odd)
    n_figures = len(re.findall(r"\\begin\s*\{(?:" + "|".join(map(re.escape, FIGURES)) + r")\}", written))
    odd["figures, tables beside the text and code of pictures"] += n_figures
    written = latex.drop_environments(written, (*nodes.CODE, *hidden, *_NOTES - set(kinds)), " ")
    written = latex.drop_environments(written, FIGURES, f" {_PICTURE} ")
    return _mark_plain_proofs(_plain_headings(written, kinds), kinds, odd)


def _printed_kinds(tables: Iterable[Mapping[str, Macro]], known: Collection[str]) -> dict[str, str]:
    """Return the kinds that environments of the author print, without those of proofs and those around *known* ones."""
    found: dict[str, str] = {}
    for commands in {id(each): each for each in tables}.values():
        for name, kind in boxes.find_printed_kinds(commands).items():
            body = commands[rf"\begin{{{name}}}"].body
            if not classify_environment(name, body) and not {*known} & set(_BEGINNING.findall(body)):
                found[name] = kind
    return found


def _undefined_proofs(names: Iterable[str], macros: Mapping[str, Mapping[str, Macro]]) -> dict[str, str]:
    """Return what those of *names* are read as that mean proof or solution in a language, and that no file defines."""
    defined = {command for commands in {id(each): each for each in macros.values()}.values() for command in commands}
    likes = {name: classify_words(name.rstrip("*").casefold()) for name in names if rf"\begin{{{name}}}" not in defined}
    return {name: like for name, like in likes.items() if like}


def _aliases(names: Mapping[str, str]) -> dict[str, Macro]:
    """Return commands that make each environment of *names* the one that it is like."""
    pairs = [(name, like) for name, like in names.items() if name != like]
    return {
        f"{edge}{{{name}}}": Macro((), f"{edge}{{{like}}}") for name, like in pairs for edge in (r"\begin", r"\end")
    }


def _theorem_macros(macros: Mapping[str, Macro]) -> dict[str, Macro]:
    return {name: macro for name, macro in macros.items() if _DEFINES_THEOREMS.search(macro.body)}


def _boxed(text: str) -> Iterator[tuple[str, str]]:
    r"""Yield the name of each environment of `\newtcbtheorem` and the prefix of its labels, its last argument."""
    ends = latex.match_braces(text)
    for match in _BOXED.finditer(text):
        at, given = match.end(), list[str]()
        while len(given) < 3:
            before = _BEFORE_ARGUMENT.match(text, at)
            start = before.end() if before else at
            if start not in ends:
                break
            given.append(text[start + 1 : ends[start]])
            at = ends[start] + 1
        if given:
            yield match[1].strip(), given[-1].strip()


def _environments(macros: Mapping[str, Macro], kinds: Collection[str], plain: Iterable[str]) -> dict[str, Macro]:
    r"""Return *macros*, each environment in them as the structure it is made of, without boxes, skips and words.

    One that is no statement and names a proof or a solution becomes that; arguments of it or a statement become its
    heading.
    """
    written = {command: macro for command, macro in macros.items() if not command.endswith("}")}
    lists = {name.strip(): like.strip() for text in plain for name, like in _LIST.findall(text)}
    for edge in (r"\begin", r"\end"):
        written |= {f"{edge}{{{name}}}": Macro((), f"{edge}{{{like}}}") for name, like in lists.items()}
    bare = "|".join(["proof", *(kind for kind in kinds if kind.isalpha() and rf"\{kind}" not in macros)])
    as_command = re.compile(rf"\\(end)?({bare})(?![A-Za-z@])\*?")  # \proof ... \endproof in a definition
    for command, begin in macros.items():
        if not command.startswith(r"\begin{"):
            continue
        name = command[len(r"\begin{") : -1]
        end = macros[rf"\end{{{name}}}"]
        counted = re.sub(r"\\the[A-Za-z]+", lambda used: macros.get(used[0], _NUMBERED).body, begin.body)
        counted, ended = (
            as_command.sub(lambda match: rf"\{'end' if match[1] else 'begin'}{{{match[2]}}}", body)
            for body in (counted, end.body)
        )
        opened, closed = _structure(counted, r"\begin"), _structure(ended, r"\end")
        holds = {*kinds, *PROOFS} & set(re.findall(r"\\begin\s*\{([^{}]*)\}", opened))
        heading = boxes.write_heading(begin)
        if holds & {*kinds}:
            opened += boxes.write_labels(begin.body)
        if name in kinds and not holds:
            if not heading:
                continue
            opened, closed = rf"\begin{{{name.rstrip('*')}*}}{heading}", rf"\end{{{name.rstrip('*')}*}}"
        elif name in PROOFS:
            continue
        elif not holds and (like := classify_environment(name, begin.body)):
            # Solution of \ref{ex:#1}
            named = [heading.partition("]")[0].strip("["), *_LABEL_ARGUMENT.findall(begin.body)]
            heading = f"[{' '.join(named)}]" if any(named) else ""
            opened, closed = rf"\begin{{{like}}}{heading}", rf"\end{{{like}}}"
        written[command] = Macro(begin.arguments, opened)
        written[rf"\end{{{name}}}"] = Macro((), closed)
    endless = find_circular_macros(written)
    return {name: macro for name, macro in written.items() if name not in endless}


def _structure(body: str, edge: str) -> str:
    """Return the environments and signs of formulas that *body*, half of a definition, begins or ends (the *edge*)."""
    body = re.sub(r"\\csname\s*(end)?([a-z]+\*?)\s*\\endcsname", rf"\{edge}{{\2}}", body)
    found = [token for token in _STRUCTURE.findall(body) if not _BOX.search(token)]
    if any(token.endswith(("comment", "bgroup")) for token in found):
        return edge + "{comment}"
    if edge == r"\begin":  # a list that is made from scratch is named by the label of its items
        style = re.search(r"\{list\}\s*\{[^}]*(\\(?:arabic|alph|roman|Alph))", body)
        named = rf"\begin{{enumerate}}[{style[1]}]" if style else r"\begin{itemize}"
        found = [named if "{list}" in token else token for token in found]
    return "".join(found)


def _plain_headings(text: str, kinds: Collection[str]) -> str:
    r"""Return *text* with `\begin{lemma}[name=Zorn, label=zorn]` as `\begin{lemma}[Zorn]\label{zorn}`.

    A `restatable` statement, of the package thm-restate, becomes one of its kind; the name by which it is stated again
    is a label of it.
    """
    step = re.compile(
        r"\\begin\s*\{(?P<begin>" + "|".join(map(re.escape, sorted({*kinds, *PROOFS}))) + r"|restatable\*?)\}"
        r"|\\end\s*\{restatable\*?\}"
    )
    parts, at, waiting, again = list[str](), 0, "", ""
    for match in step.finditer(text):
        option, after = latex.read_optional_argument(text, match.end())
        option = _without_braces(option)
        kind = match["begin"] or waiting
        if not match["begin"]:
            parts += [text[at : match.start()], rf"\label{{{again}}}\end{{{kind}}}"] if kind else []
            at, waiting = (match.end() if kind else at), ""
            continue
        if kind.startswith("restatable"):
            named = _RESTATED.match(text, after)
            kind, after, waiting, again = (named[1], named.end(), named[1], named[2]) if named else ("", at, "", "")
        elif not _KEYED.match(option):
            continue
        if kind:
            heading, label = _heading_of_keys(option) if _KEYED.match(option) else (option, "")
            written = (f"[{{{heading}}}]" if heading else "") + (rf"\label{{{label}}}" if label else "")
            parts += [text[at : match.start()], rf"\begin{{{kind}}}", written]
            at = after
    return "".join([*parts, text[at:]])


def _announce_restated(texts: Mapping[str, str], names: Collection[str]) -> dict[str, str]:
    r"""Return *texts* with "Proof of \ref{main}." for each `\main*` before a proof, where *names* can be restated."""
    again = re.compile(
        r"\\(" + "|".join(map(re.escape, sorted(names))) + r")(?![A-Za-z@])\*?"
        r"\s*(?=(?:" + LINE_MARK.pattern + r")?\s*\\begin\s*\{(?:" + "|".join(map(re.escape, PROOFS)) + r")\})"
    )
    return {file: again.sub(r"\n\nProof of \\ref{\1}.\n", text) for file, text in texts.items()}


def _without_braces(option: str) -> str:
    """Return an option whose first keys stand in braces of their own without these."""
    start = len(option) - len(option.lstrip())
    end = latex.match_braces(option).get(start) if _KEYED.match(option, start + 1) else None
    return option if end is None else option[start + 1 : end] + option[end + 1 :]


def _heading_of_keys(option: str) -> tuple[str, str]:
    """Return the name, or title, and the label among the keys of an option."""
    values = {key: (braced or bracketed or plain).strip() for key, braced, bracketed, plain in _KEY.findall(option)}
    return values.get("name") or values.get("title") or values.get("note") or "", values.get("label", "")


def _mark_plain_proofs(text: str, kinds: Collection[str], odd: Counter[str]) -> str:
    r"""Return *text* with `\proof` ... `\qed`, and a heading "Proof" ... `\qed`, as environments."""
    blocks = "|".join(map(re.escape, sorted({*kinds, *PROOFS})))
    step = re.compile(
        rf"\\(?P<edge>begin|end)\s*\{{(?:{blocks})\}}|(?P<section>\\(?:sub)*(?:section|chapter)(?![A-Za-z]))"
        rf"|(?P<proof>\\proof(?![A-Za-z@])\s*(?:\{{\}})?|{_HEADING.pattern})|(?P<sign>{_END_SIGN})"
    )
    parts, at, depth = list[str](), 0, 0
    opened: re.Match[str] | None = None
    for match in step.finditer(text):
        if match["edge"] == "end":
            depth = max(0, depth - 1)
        elif depth == 0 and match["proof"]:
            odd["proofs without a sign for their end (left out)"] += opened is not None
            opened = match
        elif depth == 0 and match["sign"] and opened:
            heading = f"[{opened['heading'].rstrip('. :')}]" if opened["heading"] else ""
            display = _DISPLAY_END.match(text, match.end())  # of a display that has the sign in it
            inside = re.sub(r"\\(?:tag\*?|eqno)\s*\{?\s*$", "", text[opened.end() : match.start()])
            inside += display[1] if display else ""
            parts += [text[at : opened.start()], rf"\begin{{proof}}{heading} ", inside, r"\end{proof}"]
            at, opened = display.end() if display else match.end(), None
        elif match["edge"] or match["section"]:
            odd["proofs without a sign for their end (left out)"] += opened is not None
            opened = None
            depth += match["edge"] == "begin"
    odd["proofs without a sign for their end (left out)"] += opened is not None
    return "".join([*parts, text[at:]])


def _kinds_of_labels(texts: Mapping[str, str], content: LatexContent) -> dict[str, str]:
    """Return the printed kind of statement for each label, "" for a label of something else."""
    found: dict[str, str] = {}
    kinds = [re.escape(kind) for kind in sorted({*content.kinds, *PROOFS})]
    for text in texts.values():
        found |= dict.fromkeys((label.strip() for label in re.findall(r"\\label\s*\{([^{}]*)\}", text)), "")
        for block in find_environments(text, kinds, Counter())[0]:
            if block.kind not in PROOFS and block.labels:
                kind, heading = block.kind.rstrip("*"), _HEADED.match(text, block.begin)
                named = _ANY_KIND.search(heading[1]) if heading else None
                kind = content.printed.get(block.kind) or content.printed.get(kind) or kind
                found[block.labels[0]] = named[0].casefold() if named else kind
    return found


def _plain_references(text: str, kinds: Mapping[str, str]) -> str:
    r"""Return *text* with each command whose argument is a label as `\ref`, after the kind where it prints that."""

    def plain(match: re.Match[str]) -> str:
        if match["last"]:
            return rf"\ref{{{match['first']}}} to \ref{{{match['last']}}}"
        labels = [label.strip() for label in match["labels"].split(",")]
        name = match["name"]
        is_reference = name.lower().endswith("ref") or (":" in match["labels"] or "_" in match["labels"])
        if name in ("ref", "eqref", "pageref", "begin", "end") or not (is_reference and kinds.keys() >= set(labels)):
            return match[0]
        kind = kinds[labels[0]] if not name.endswith(("nameref", "hyperref")) else ""
        before = text[max(0, match.start() - 30) : match.start()].rstrip(" ~\n").casefold()
        kind = "" if kind and before.endswith((kind, f"{kind}s")) else kind  # a number alone, as of \vref
        many = len(labels) > 1 and {kinds[label] for label in labels} == {kind}
        word = {"corollary": "corollaries"}.get(kind, f"{kind}s") if many else kind
        word = word.capitalize() if name[0].isupper() else word
        return f"{word} " * bool(kind) + " and ".join(rf"\ref{{{label}}}" for label in labels)

    return _ANY_REFERENCE.sub(plain, text)


def require_statements(content: LatexContent, n_files: int, shown: str) -> None:
    """Raise MirblabError, which names the usual environments, when the files have no statement."""
    if not content.statements:
        usual = ", ".join(sorted({"theorem", "lemma", "proposition", "corollary", "definition"}))
        raise MirblabError(
            f"{shown}: {n_files:,} .tex files and no statement in them; looked for environments such as {usual}, and "
            r"for those of \newtheorem in the same files; give the folder that has the preamble, too"
        )


def _drop_bookmark_definitions(text: str) -> str:
    r"""Return *text* without `\pdfstringdefDisableCommands{...}`, what commands are in bookmarks only."""
    places = list(re.finditer(r"\\pdfstringdefDisableCommands\s*(?=\{)", text))
    ends = latex.match_braces(text) if places else {}
    for match in reversed(places):
        text = text[: match.start()] + text[ends.get(match.end(), match.end() - 1) + 1 :]
    return text


def _macros(
    texts: Mapping[str, str], documents: Documents, places: Mapping[str, tuple[int, Place]], odd: Counter[str]
) -> tuple[dict[str, dict[str, Macro]], dict[str, dict[str, Macro]]]:
    """Return for each file the commands of its documents, the last definition of each, and those that count there.

    The second has what the file, or one before it in its document, defines in another way than the last one.
    """
    definers = {name: each for text in texts.values() for name, each in find_definers(text).items()}
    defined = {name: read_macros(drop_line_marks(text), odd, definers)[0] for name, text in texts.items()}
    made: dict[tuple[str, ...], dict[str, Macro]] = {}
    circular: set[str] = set()
    scopes = find_scopes(texts, documents)
    for scope in set(scopes.values()):
        macros = _PACKAGES_COMMANDS | {
            command: macro for name in scope for command, macro in defined[name].items() if command not in _KEPT
        }
        commands = {command: macro for command, macro in macros.items() if not command.endswith("}")}
        endless, internal = find_circular_macros(commands), find_internal_macros(commands)
        circular |= endless
        usable = {command: macro for command, macro in macros.items() if command not in endless | internal}
        made[scope] = {c: _PACKAGES_COMMANDS[c] for c in internal & _PACKAGES_COMMANDS.keys()} | usable
    odd["definitions of commands that use themselves"] += len(circular)
    last = {name: made[scopes[name]] for name in texts}
    return last, _defined_anew(texts, defined, last, places)


def _defined_anew(
    texts: Mapping[str, str],
    defined: Mapping[str, Mapping[str, Macro]],
    last: Mapping[str, Mapping[str, Macro]],
    places: Mapping[str, tuple[int, Place]],
) -> dict[str, dict[str, Macro]]:
    """Return for each file the commands whose definition there, or before it in its document, is not the *last* one."""
    macros_of: dict[str, set[Macro]] = {}
    for commands in defined.values():
        for command, macro in commands.items():
            macros_of.setdefault(command, set()).add(macro)
    several = {command for command, macros in macros_of.items() if len(macros) > 1 and not command.endswith("}")}
    anew, document, state = dict[str, dict[str, Macro]](), -1, dict[str, Macro]()
    begin = {
        places[name][0]: find_line(text, max(0, text.find(_DOCUMENT)))
        for name, text in texts.items()
        if not places[name][1]
    }

    def order(name: str) -> tuple[int, int, Place]:
        document, place = places[name]  # what a main file inputs above its document comes before its own definitions
        return document, (0 if place[0][0] < begin.get(document, 0) else 2) if place else 1, place

    for name in sorted(texts, key=order):
        state = state if places[name][0] == document else {}
        document = places[name][0]
        usable = several & defined[name].keys() & last[name].keys()
        state = state | {
            command: macro
            for command in sorted(usable)
            if command not in (macro := defined[name][command]).body and "@" not in macro.body
        }
        anew[name] = {command: macro for command, macro in state.items() if last[name].get(command) != macro}
    return anew


def _printed(texts: Iterable[str]) -> dict[str, str]:
    r"""Return the printed names of environments: `\newtheorem{thm}{Theorem}` gives thm: theorem."""
    found: dict[str, str] = {}
    for text in texts:
        for name, printed, options, named, keyed, keys in _PRINTED.findall(text):
            given = (_NAME.findall(options or keys) or _REFERRED_AS.findall(options or keys))[-1:]
            words = latex.latex_to_prose(_KIND_NAME.sub(r"\1", printed or "".join(given)))
            words = re.sub(r"\$[^$]*\$", "", words).casefold().strip()
            if words:
                found |= {each.strip(): words for each in (name or named or keyed).split(",")}
    return found
