"""nodes: the nodes of blueprints in LaTeX, Verso and attributes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mirblab.core import paths
from mirblab.core.errors import MirblabError
from mirblab.data import beir
from mirblab.sources.blueprints import repository
from mirblab.sources.shared import latex, lean_source, readers, release
from mirblab.sources.shared.latex import find_environments
from mirblab.sources.shared.lean_source import LeanFile, find_closing_bracket
from mirblab.sources.shared.macros import (
    Macro,
    choose_branches,
    expand_macros,
    find_circular_macros,
    find_internal_macros,
    read_macros,
)

STATEMENTS = frozenset(
    """theorem lemma sublemma proposition prop corollary cor definition defn remark example claim fact observation
    conjecture question problem notation construction convention assumption hypothesis axiom exercise thm lem""".split()
)
_LEAN = re.compile(r"\\lean(?![A-Za-z])\s*\{([^{}]*)\}")
_MARKUP = re.compile(
    r"\\(?:lean|uses|proves|discussion|alsoIn|inputleannode|inputleanmodule|phantomsection)(?![A-Za-z])\s*\{[^{}]*\}"
    r"|\\(?:leanok|notready|mathlibok)(?![A-Za-z])"
)
CODE = ("verbatim", "lstlisting", "minted", "comment")
# The commands of LaTeX and of packages and classes that define an environment for statements.
DEFINE_THEOREMS = (
    "newtheorem|declaretheorem|newmdtheoremenv|mdtheorem|spnewtheorem|newframedtheorem|newshadedtheorem|newkeytheorem"
    "|newsiamthm|newsiamremark|newdefinition|newproof"
)
_NEW = re.compile(rf"\\(?:{DEFINE_THEOREMS})\*?\s*(?:\[[^][]*\]\s*)?\{{([^{{}}]+)\}}")
_OPENS = re.compile(
    r'^(?P<colons>:{3,})[ \t]*(?P<kind>[A-Za-z_]+)[ \t]*(?:"(?P<label>[^"\n]*)")?'
    r'(?P<options>(?:\s*\(\s*\w+\s*:=\s*(?:"[^"]*"|[^()"\s]+)\s*\))*)[ \t]*$',
    re.MULTILINE,
)
_VERSO_OPTION = re.compile(r'\(\s*(\w+)\s*:=\s*(?:"([^"]*)"|([^()"\s]+))')
_FENCE = re.compile(r"^(?P<mark>`{3,})[ \t]*(?P<kind>\w*)(?P<given>[^\n]*)\n", re.MULTILINE)
_INNER = re.compile(r"^(?P<mark>:{3,})[^\n:]+\n", re.MULTILINE)
_FORMULA = re.compile(r"(?P<dollars>\$\$?)(?P<ticks>`+)(?P<latex>.+?)(?P=ticks)(?!`)", re.DOTALL)
_ROLE = re.compile(r"\{[A-Za-z][^{}]*\}\[([^][]*)\]")
_CODE_ROLE = re.compile(r"\{[A-Za-z][^{}]*\}(?=`)")
_STRONG = re.compile(r"(?<![\w*])(\*{1,2}|_)(?=\S)([^*\n]{1,500}?)(?<=\S)\1(?![\w*])")
_BLUEPRINT = re.compile(r"(?<![\w.'])blueprint\??(?![\w.'])")
_LABEL = re.compile(r'\s*"([^"\n]*)"')
_ATTRIBUTE_OPTION = re.compile(r"\(\s*(\w+)\s*:=\s*")
_KINDS = {"theorem": "theorem", "lemma": "theorem"}
ADDRESS = "https://github.com/leanprover-community/mathlib4"


@dataclass
class Node:
    """A statement of a blueprint: `names` has the possible names of each declaration, `source` is the format."""

    label: str
    text: str
    names: list[list[str]]
    source: str
    kind: str = ""
    title: str = ""
    file: str = ""


def printed_source(source: str, odd: Counter[str]) -> str:
    r"""Return LaTeX as far as TeX reads it, without comments, code and what stands between `\iffalse` and `\fi`.

    >>> printed_source(r"One. \iffalse Two. \fi Three. % Four.", Counter())
    'One. Three. '
    """
    source = latex.cut_at_end(latex.strip_comments(source), odd)
    return choose_branches(latex.drop_environments(source, CODE, " "), {"iftrue": True, "iffalse": False})


def statement_environments(sources: Iterable[str]) -> set[str]:
    """Return the environments that hold statements: the usual ones and those that *sources* define."""
    written = (names for source in sources for names in _NEW.findall(printed_source(source, Counter())))
    named = {name.strip() for names in written for name in names.split(",")}
    found = STATEMENTS | named
    return {*found, *(f"{name}*" for name in found if not name.endswith("*"))} - {"proof", "proof*", ""}


def gather_macros(files: Mapping[str, str]) -> dict[str, Macro]:
    """Return the commands that the LaTeX *files* of a blueprint (texts by path) define, without those of environments.

    Of two definitions that of the last file by path counts, so that of `web.tex` rather than `print.tex`.
    """
    odd, macros = Counter[str](), dict[str, Macro]()
    for path in sorted(files):
        macros |= read_macros(printed_source(files[path], odd), odd)[0]
    kept = {*latex.KEPT, r"\todo"}
    macros = {name: macro for name, macro in macros.items() if name not in kept and not name.endswith("}")}
    unusable = find_circular_macros(macros) | find_internal_macros(macros)
    return {name: macro for name, macro in macros.items() if name not in unusable}


def read_verso_nodes(
    prose: str, known: Collection[str], file: str, odd: Counter[str], macros: Mapping[str, Macro] | None = None
) -> tuple[list[Node], list[LeanFile]]:
    """Return the nodes of the Verso part of a file, which may occur twice, and the declarations of its Lean code."""
    nodes: list[Node] = []
    code: list[LeanFile] = []
    fences, rest = _marked(prose, _FENCE)
    for fence, inside in fences:
        label = re.search(r'"([^"]*)"', fence["given"])
        if fence["kind"] == "lean":
            code.append(lean_source.read_lean(inside))
            names = [[declaration.name] for declaration in code[-1].declarations]
            nodes += [Node(label[1].strip(), "", names, "verso", file=file)] if label and names else []
        elif fence["kind"] in ("tex", "latex"):
            nodes += read_latex_nodes(inside, known, file, odd, macros)
    nodes += _blocks(rest, known, file, odd, macros)
    return nodes, code


def read_latex_nodes(
    source: str, known: Iterable[str], file: str, odd: Counter[str], macros: Mapping[str, Macro] | None = None
) -> list[Node]:
    r"""Return the nodes of one LaTeX file, those without \lean left out; *known* environments are statements."""
    source = printed_source(source, odd)
    blocks, _, _ = find_environments(source, [re.escape(kind) for kind in {*known, "proof"}], odd)
    nodes: list[Node] = []
    taken = 0
    for block in blocks:
        content = block.content(source)
        named = _LEAN.findall(content)
        if block.kind == "proof" or not named:
            odd[r"statements in LaTeX without \lean (no queries)"] += block.kind != "proof"
            continue
        taken += len(named)
        # In LaTeX an underscore of a name may be escaped.
        written = ("".join(name.replace(r"\_", "_").split()) for part in named for name in part.split(","))
        names = [[name] for name in written if name]
        label = block.labels[0] if block.labels else ""
        title, text = (clean_statement(each, odd, macros=macros) for each in (block.option, content))
        nodes.append(Node(label, text, names, "latex", block.kind, title, file))
    odd[r"\lean outside of a statement"] += len(_LEAN.findall(source)) - taken
    return nodes


def read_attribute_nodes(
    lean: LeanFile, file: str, odd: Counter[str], macros: Mapping[str, Macro] | None = None
) -> list[Node]:
    """Return the nodes of one Lean file, one for each attribute; nodes with one label are not merged yet."""
    nodes: list[Node] = []
    for declaration in lean.declarations:
        for inside in declaration.attributes:
            kind = _KINDS.get(declaration.kind, "definition")
            nodes += _nodes(inside, [[declaration.name]], kind, file, odd, macros)
    for inside, names in lean.marked:
        nodes += _nodes(inside, names, "", file, odd, macros)
    return nodes


def read_mathlib_statements(place: str, wanted: Collection[str]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the statements of the *wanted* declarations of mathlib by name, and their source for the card.

    *place* is a collection of declarations, JSON lines with `id` and `signature`, a checkout or an archive; "" is none.
    MirblabError where it has none of the *wanted* ones.
    """
    if not place:
        return {}, {}
    statements, source = _read_mathlib(place, wanted)
    if wanted and not statements:
        raise MirblabError(
            f"{place} has none of the {len(wanted):,} declarations of mathlib that are named, such as {min(wanted)}; "
            "give mathlib itself, a collection of its declarations, or JSON lines with id and signature, or nothing"
        )
    return statements, source


def _read_mathlib(place: str, wanted: Collection[str]) -> tuple[dict[str, str], dict[str, str]]:
    path = paths.expand_home(place)
    if path.is_dir() and (corpus := beir.find_texts(path, "corpus")):
        rows = ((f"{path}, row {number}", row) for number, row in enumerate(beir.read_rows(path, "corpus"), 1))
        return _of_rows(rows, wanted), {"file": f"{path.name}/{corpus.relative_to(path).as_posix()}"}
    if path.name.endswith((".jsonl", ".jsonl.gz")):
        return _of_rows(readers.read_rows(path, None, Counter()), wanted), {"file": path.name}
    with release.open_origin(place, ADDRESS) as opened:
        return _of_source(opened.folder, wanted), {"source": opened.shown, "commit": opened.commit}


def _blocks(
    prose: str, known: Collection[str], file: str, odd: Counter[str], macros: Mapping[str, Macro] | None
) -> Iterator[Node]:
    endless: set[str] = set()
    for opened in _OPENS.finditer(prose):
        kind = opened["kind"].rstrip("_")
        if kind not in known:
            continue
        colons = opened["colons"]
        closed = None if colons in endless else _closing(colons).search(prose, opened.end())
        if closed is None:
            endless.add(colons)
            odd["blocks of Verso that do not end"] += 1
            continue
        options = {name: text or word for name, text, word in _VERSO_OPTION.findall(opened["options"])}
        names = [[name] for each in options.get("lean", "").split(",") if (name := each.strip())]
        text = clean_statement(verso_to_latex(prose[opened.end() : closed.start()]), odd, macros=macros)
        yield Node((opened["label"] or "").strip(), text, names, "verso", kind, options.get("title", ""), file)


def verso_to_latex(text: str) -> str:
    """Return Verso's markup as LaTeX, without inner blocks; a reference without words becomes `[ref]`.

    >>> verso_to_latex('By {uses "a"}[], *all* $`f_*` and {lean}`g` with $$`x*y*z`')
    'By [ref], all $f_*$ and `g` with $$x*y*z$$'
    """
    text = _marked(text, _INNER)[1]
    parts: list[str] = []
    at = 0
    for formula in _FORMULA.finditer(text):
        parts += [_prose(text[at : formula.start()]), formula["dollars"], formula["latex"], formula["dollars"]]
        at = formula.end()
    return "".join([*parts, _prose(text[at:])])


def _marked(text: str, opens: re.Pattern[str]) -> tuple[list[tuple[re.Match[str], str]], str]:
    """Return the blocks between lines of a mark and lines of the same mark alone, with the openings, and the rest."""
    blocks: list[tuple[re.Match[str], str]] = []
    rest: list[str] = []
    endless: set[str] = set()
    at = place = 0
    while opened := opens.search(text, place):
        place = opened.end()
        closed = None if opened["mark"] in endless else _closing(opened["mark"]).search(text, place)
        if closed is None:
            endless.add(opened["mark"])
            continue
        blocks.append((opened, text[place : closed.start()]))
        rest.append(text[at : opened.start()])
        at = place = closed.end()
    return blocks, "".join([*rest, text[at:]])


def _closing(mark: str) -> re.Pattern[str]:
    return re.compile(rf"^{mark}[ \t]*$", re.MULTILINE)


def _prose(text: str) -> str:
    text = _ROLE.sub(lambda role: role[1] or "[ref]", text)
    return _STRONG.sub(r"\2", _CODE_ROLE.sub("", text))


def _nodes(
    inside: str, names: list[list[str]], kind: str, file: str, odd: Counter[str], macros: Mapping[str, Macro] | None
) -> list[Node]:
    if "blueprint" not in inside:
        return []
    masked = lean_source.blank_comments(inside)
    keyword = _BLUEPRINT.search(masked)
    if keyword is None:
        return []
    given = inside[keyword.end() : _end(masked, keyword.end())]
    named, options = _LABEL.match(given), read_options(given)
    label = options.get("latexLabel") or (named[1].strip() if named else "")
    label = label or next((name for each in names for name in each), "")
    text = clean_statement(latex.strip_comments(options.get("statement", "")), odd, macros=macros)
    title = clean_statement(options.get("title", ""), odd, macros=macros)
    return [Node(label, text, names, "attribute", options.get("latexEnv", kind), title, file)]


def read_options(given: str) -> dict[str, str]:
    """Return the options of an attribute by name, docstrings and texts without their quotes."""
    masked, options, at = lean_source.blank_comments(given), dict[str, str](), 0
    while option := _ATTRIBUTE_OPTION.search(masked, at):
        at = find_closing_bracket(masked, option.start(), len(masked))
        # A docstring is blank in the masked text, so that the pattern has matched it, too.
        begin = given.index(":=", option.start()) + 2
        options[option[1]] = _value(given[begin:at].strip())
    return options


def clean_statement(
    source: str,
    odd: Counter[str],
    without_rule: Counter[str] | None = None,
    macros: Mapping[str, Macro] | None = None,
) -> str:
    """Return a statement without markup and code, as prose with LaTeX formulas; diagrams count as formulas.

    The author's *macros* are written out. The commands and environments without a rule are counted in *odd*, and by
    name in *without_rule*.
    """
    unknown: Counter[str] = Counter()
    source = latex.drop_environments(_MARKUP.sub("", source), CODE, " ")
    source = expand_macros(source, macros, odd) if macros else source
    text = re.sub(r"\\(?:begin|end)\{math\}", "", latex.latex_to_prose(source, unknown))
    for what, count in unknown.items():
        place, _, name = what.partition(" outside mathematics: ")
        odd[f"{place}s outside of mathematics without a rule" if name else what] += count
        if name and without_rule is not None:
            without_rule[rf"\{name}" if place == "command" else rf"\begin{{{name}}}"] += count
    return text


def _end(masked: str, start: int) -> int:
    """Return the end of the attribute at *start*: a comma or closing bracket outside of its brackets."""
    depth = 0
    for at in range(start, len(masked)):
        if depth == 0 and masked[at] in ",)]":
            return at
        depth += (masked[at] in "([") - (masked[at] in ")]")
    return len(masked)


def _value(text: str) -> str:
    if text.startswith("/-"):
        return re.sub(r"\A/-[-!]?|-/\Z", "", text).strip()
    if text.startswith('"'):
        return re.sub(r"\\(.)", r"\1", text[1:-1]).strip()
    return text


def _of_source(folder: Path, wanted: Collection[str]) -> dict[str, str]:
    ends = {name.rpartition(".")[2] for name in wanted}
    statements: dict[str, str] = {}
    # A link to no file is the lock that Emacs leaves beside an open file.
    for path in (path for path in sorted(folder.rglob("*.lean")) if path.is_file() and path.name[0] != "."):
        code = repository.decode_source(path.read_bytes(), Counter())
        if any(end in code for end in ends):
            for declaration in lean_source.read_lean(code).declarations:
                if declaration.name in wanted and not declaration.is_private:
                    statements.setdefault(declaration.name, declaration.statement)
    return statements


def _of_rows(rows: Iterable[tuple[str, Mapping[str, Any]]], wanted: Collection[str]) -> dict[str, str]:
    statements: dict[str, str] = {}
    for place, record in rows:
        name, text = record.get("id", record.get("_id")), record.get("signature", record.get("text"))
        if not isinstance(name, str) or not isinstance(text, str):
            columns = ", ".join(record)
            raise MirblabError(f"{place}: expected 'id' and 'signature', or '_id' and 'text'; found {columns}")
        if name in wanted:
            statements[name] = " ".join(text.split())
    return statements
