"""lean_source: Lean source read as text."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

# As in Lean's lexer, λ, Π and Σ are no letters, and superscripts such as the complement's are operators.
_START = (
    "A-Za-z_\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u017f\u0391-\u039f\u03a1\u03a2\u03a4-\u03a9\u03b1-\u03ba\u03bc-\u03fb"
)
_START += "\u1f00-\u1ffe\u2100-\u214f\U0001d49c-\U0001d59f"
_REST = _START + "0-9'!?\u2080-\u2089\u2090-\u209c\u1d62-\u1d6a\u2c7c"
ATOM = rf"(?:[{_START}][{_REST}]*|«[^»\n]*»)"
NAME = rf"{ATOM}(?:\.{ATOM})*"
OPENING, CLOSING = "([{⟨⦃", ")]}⟩⦄"
_BINDER_TOKEN = re.compile(
    rf"""(?<=\()(?P<argument>{ATOM})\s*:=
    |(?P<binds>∀[ᶠᵐ]?|∃[!ᶠᵐ]?|∑'?|∏'?|∫⁻?|∮|⨍⁻?|⋃|⋂|⨆|⨅|⨁|[λΣΠ]|(?:fun|let|have)(?![{_REST}.]))
    |(?P<stop>↦|=>|:=|,|(?:in|with)(?![{_REST}.]))
    |(?<!\w)(?<!(?<!\.)\.)(?P<name>{ATOM})(?:\.{ATOM})*
    |(?P<open>[(\[{{⟨⦃])|(?P<close>[)\]}}⟩⦄])|(?P<other>[^\s\w.])""",
    re.VERBOSE,
)
_SET = re.compile(rf"\s*({ATOM}(?:\s+{ATOM})*)\s*(?:\||∈|//|:(?!=))")
_TYPED = re.compile(rf"\s*((?:{ATOM}\s+)*{ATOM})\s*:(?!=)\s*", re.DOTALL)
_DEEPEST = 100  # namespaces in which a name is looked up
KINDS = ("theorem", "lemma", "def", "abbrev", "instance", "structure", "class inductive", "class", "inductive", "axiom",
         "opaque", "irreducible_def", "coinductive")  # fmt: skip
MODIFIERS = "private|protected|noncomputable|nonrec|unsafe|partial|public|meta|local|scoped"  # before a keyword
_MODIFIERS = rf"(?:(?:{MODIFIERS})\s+){{0,8}}"
_DECLARED = "|".join(kind.replace(" ", r"\s+") for kind in KINDS)
_SCOPED = "namespace|section|end|mutual|variables?|omit|include"
# Words of the second list also occur in terms and tactics, but not at the beginning of a line.
_BEGINS = re.compile(
    rf"^[ \t]*(?:@\[|{_MODIFIERS}(?:{_DECLARED}|{_SCOPED}|example|alias)(?![\w'.!?]))"
    r"|^(?:open|set_option|attribute|universe|import|export|notation3?|infix[lr]?|prefix|postfix|macro|macro_rules|syntax"
    r"|elab|elab_rules|initialize|run_cmd|add_decl_doc|library_note|blueprint_comment|tex_prelude|recall|proof_wanted"
    r"|deriving\s+instance|simproc|local|scoped|public|meta|suppress_compilation|assert_not_exists|#[a-z_]+)(?![\w'.!?])",
    re.MULTILINE,
)
_ONCE = re.compile(r"(?:open|set_option|omit|include|variable|universe|attribute)\b")
_IN = re.compile(r"[(\[{⟨⦃)\]}⟩⦄]|\sin(?=\s|$)")
WORD = re.compile(rf"{_MODIFIERS}(?P<word>{_DECLARED}|{_SCOPED}|attribute|alias|open|export)(?![\w'.!?])")
_CODE_TOKEN = re.compile(r"""'\\?"'|"(?:\\.|[^"\\])*"|/-|--[^\n]*""", re.DOTALL)
_BLOCK_COMMENT = re.compile(r"/-|-/")
_INK = re.compile(r"[^\n]")
_IS_THEOREM = re.compile(rf"{_MODIFIERS}(?:theorem|lemma)\b")
_IN_STATEMENT = re.compile(
    r"""'\\?"'|"(?:\\.|[^"\\])*"|(?<![\w.'])(?:let|letI|have|haveI|where)(?![\w'])|:=|[(\[{⟨⦃]|[)\]}⟩⦄]"""
    r"|(?<![\w.'])(?P<match>with|fun|λ)(?=\s*\n\s*\|)"
    # In `| 0 | 1 =>` a blank stands on both sides of a later bar, in contrast to those of an absolute value.
    r"|(?P<case>\n\s*\|[^|\n]*(?:(?:\n\s*|(?<=\s))\|(?=\s)[^|\n=]*){0,40}=>)",
    re.DOTALL,
)
PROVED = ("theorem", "lemma")
_DECLARES = re.compile(rf"(?:\s*\(priority[^()]*\))?\s*(?P<name>{NAME})(?:\.\{{[^}}]*\}})?")
_ALONE = re.compile(rf"{NAME}(?:\.\{{[^}}]*\}})?")
_HERE = re.compile(rf"[ \t]+({NAME})")
_IMPORT = re.compile(rf"^(?:public\s+)?(?:meta\s+)?import\s+(?:all\s+)?({NAME})", re.MULTILINE)
_OPENED = re.compile(rf"({NAME})(?:\s*\(([^)]*)\)|\s+hiding\b([^()]*))?")
_ALIAS = re.compile(rf"\s*(?:⟨(?P<both>[^⟩]*)⟩|(?P<one>{NAME}))\s*:=\s*(?P<target>{NAME})", re.DOTALL)
_EXPORT = re.compile(rf"\s*({NAME})\s*\(([^)]*)\)")
_RENAMED = re.compile(rf"({NAME})\s*(?:→|->)\s*({NAME})")
# As a tactic or a term, which holds for what follows.
_OPEN_IN = re.compile(rf"(?<![{_REST}.])open\s((?:[^()\n]|\([^()]*\))*?)\sin(?![{_REST}.])")
_QUOTED = re.compile(rf"«([{_START}][{_REST}]*)»")
_PROSE = re.compile(r"^#doc\b", re.MULTILINE)
_FIRST_FIELD = re.compile(r"(?:\bwhere\b[^\n]*|:=[ \t]*)\n([ \t]+)")
_IN_FIELD = r"[(\[{⟨⦃)\]}⟩⦄]|(?::=\s*)?(?<![\w.'])by(?![\w.'])"
_IN_BODY = re.compile(
    r"(?P<open>[(\[{⟨⦃])|(?P<close>[)\]}⟩⦄])|(?P<assigned>:=|\bwhere\b|\n\s*\|)"
    r"|(?P<tactics>(?<![\w.'])by(?![\w'.])|\n\s*(?:termination_by|decreasing_by)(?![\w'.]))"
)


@dataclass(frozen=True)
class Binder:
    """A bound name with its type: `style` is the opening bracket; an instance, in `[`, may have the name ""."""

    style: str
    name: str
    type: str


@dataclass
class Command:
    """A command from `begin` to `end`, its keyword at `at`; `attributes` and `once` (each `... in`) precede it."""

    begin: int
    at: int = -1
    end: int = -1
    attributes: list[str] = field(default_factory=list)
    once: list[tuple[str, str]] = field(default_factory=list)


@dataclass(frozen=True)
class Opened:
    """A namespace that `open` names, `inside` of others: `only` some of its names ((): all), without `hidden`.

    With `renaming`, `only` are the new names and `given` the names of the namespace that they stand for.
    """

    inside: tuple[str, ...]
    name: str
    only: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    given: tuple[str, ...] = ()

    def meant(self, name: str) -> str:
        """Return the name that *name* stands for in the namespace, "" where it is not opened."""
        if self.only:
            return (self.given or self.only)[self.only.index(name)] if name in self.only else ""
        return "" if name in self.hidden else name


@dataclass(frozen=True)
class Place:
    """Where a declaration stands, which says what a name in it means: open namespaces, and those that `open` opened."""

    namespaces: tuple[str, ...] = ()
    opened: tuple[Opened, ...] = ()


@dataclass
class Declaration:
    """A declaration: `statement` is one line, `source` has docstring and proof, `attributes` the texts in `@[...]`.

    A theorem or lemma has a `proof`, and `local` are the types of the variables and hypotheses that it may name there.
    """

    name: str
    kind: str
    statement: str
    source: str
    attributes: list[str]
    is_private: bool = False
    path: str = ""
    is_protected: bool = False
    docstring: str = ""
    proof: str = ""
    place: Place = Place()
    local: dict[str, str] = field(default_factory=dict)


@dataclass
class LeanFile:
    """The declarations of a file; `marked` are attributes given later, with the possible meanings of every name.

    `aliases` are names of `alias` and `export` with their possible targets; `unnamed` counts declarations without a
    name.
    """

    imports: list[str] = field(default_factory=list)
    declarations: list[Declaration] = field(default_factory=list)
    aliases: dict[str, list[str]] = field(default_factory=dict)
    marked: list[tuple[str, list[list[str]]]] = field(default_factory=list)
    unnamed: int = 0


def read_lean(code: str) -> LeanFile:
    """Return what the Lean part of a file declares, in order; nothing is elaborated.

    A statement has the keyword, the full name, the variables that Lean would add, the binders and the type; that of a
    definition, structure or instance has its body up to the first tactic block, too.
    """
    reading = _Reading(code[: find_prose(code)])
    for command in split_commands(reading.code, reading.masked):
        reading.command(command)
    # A file's name has no guillemets: the module `«A-B».C` is A-B/C.lean.
    reading.lean.imports = [re.sub("[«»]", "", name) for name in _IMPORT.findall(reading.masked)]
    return reading.lean


def find_prose(code: str) -> int:
    """Return where Verso's prose begins, the end of the file when it has none."""
    found = _PROSE.search(code)
    return found.start() if found else len(code)


def split_commands(code: str, masked: str) -> Iterator[Command]:
    """Yield the commands of Lean source in order; *masked* is the source with blanks for comments and texts."""
    starts = [match.start() for match in _BEGINS.finditer(masked)]
    waiting: Command | None = None
    for start, after in itertools.pairwise([*starts, len(masked)]):
        end = start + len(masked[start:after].rstrip())
        start = end - len(masked[start:end].lstrip())
        found = waiting or Command(start)
        found.at, found.end = _before(found, code, masked, start, end), end
        # An attribute or `open ... in` without a command belongs to the next command.
        waiting = found if found.at >= end else None
        if waiting is None:
            yield found


def _before(found: Command, code: str, masked: str, at: int, end: int) -> int:
    """Move attributes and `... in` from the beginning of a command into *found*, and return the start of the rest."""
    while True:
        at = end - len(masked[at:end].lstrip())
        if masked.startswith("@[", at):
            close = find_closing_bracket(masked, at + 1, end)
            found.attributes.append(code[at + 2 : close])
            at = close + 1
        elif (once := _ONCE.match(masked, at, end)) and (after := _after_in(masked, once.end(), end)):
            found.once.append((once[0], masked[once.end() : after - len(" in")]))
            at = after
        else:
            return at


def _after_in(masked: str, start: int, end: int) -> int:
    """Return the end of the first `in` outside of brackets, 0 without one; in brackets it belongs to a binder."""
    depth = 0
    for token in _IN.finditer(masked, start, end):
        sign = token.group()
        if depth == 0 and sign.endswith("in"):
            return token.end()
        depth += (sign in OPENING) - (sign in CLOSING)
    return 0


class _Reading:
    """One pass over a file; `masked` is the source, as long as before, with blanks for comments and texts."""

    def __init__(self, code: str) -> None:
        self.code, self.masked = code, blank_comments(code)
        self.lean, self.scope = LeanFile(), Scope()
        self._docs = {
            end: start for kind, start, end in split_pieces(code) if code.startswith("/--", start) and kind == "comment"
        }

    def command(self, command: Command) -> None:
        found = WORD.match(self.masked, command.at, command.end)
        if found is None:
            return
        word, given = found["word"], self.masked[found.end() : command.end]
        self.scope.enter("", is_namespace=False)
        for once in command.once:
            self._set(*once)
        self._read(command, found, given)
        self.scope.leave("")
        here = _HERE.match(given)
        if word in ("namespace", "section", "mutual"):
            self.scope.enter(here[1] if here else "", is_namespace=word == "namespace")
        elif word == "end":
            self.scope.leave(here[1] if here else "")
        self._set(word, given)

    def _set(self, word: str, given: str) -> None:
        if word.startswith("variable"):
            self.scope.variable(given)
        elif word == "include":
            self.scope.include(given)
        elif word == "omit":
            self.scope.omit(given)
        elif word == "open":
            self.scope.open(given)

    def _read(self, command: Command, found: re.Match[str], given: str) -> None:
        word = " ".join(found["word"].split())
        if word in KINDS:
            self._declaration(command, found, word)
        elif word == "alias" and (alias := _ALIAS.match(given)):
            names = re.findall(NAME, alias["both"] or alias["one"])
            targets = self.scope.names(plain_name(alias["target"]))
            self.lean.aliases |= {self.scope.full_name(plain_name(name)): targets for name in names if name != "_"}
        elif word == "export" and (exported := _EXPORT.match(given)):
            spaces = self.scope.names(plain_name(exported[1]))
            for name in map(plain_name, exported[2].split()):
                self.lean.aliases[self.scope.full_name(name)] = [f"{space}.{name}" for space in spaces]
        elif word == "attribute" and given.lstrip().startswith("["):
            close = find_closing_bracket(self.masked, found.end(), command.end)
            names = re.findall(NAME, self.masked[close : command.end])
            inside = self.code[self.masked.index("[", found.end()) + 1 : close]
            self.lean.marked.append((inside, [self.scope.names(name) for name in names]))

    def _declaration(self, command: Command, found: re.Match[str], kind: str) -> None:
        named = _DECLARES.match(self.masked, found.end(), command.end)
        if named is None:
            self.lean.unnamed += 1
            return
        name = self.scope.full_name(plain_name(named["name"]))
        declared, proof = split_proof(f"{kind} x {self.code[named.end() : command.end]}")
        declared = declared.removeprefix(f"{kind} x").strip()
        text = " ".join([f"{kind} {name}", *_declared(kind, declared, self.scope)])
        modifiers = self.masked[command.at : found.start("word")]
        docstring, start = self._docstring(command)
        each = Declaration(name, kind, text, self.code[start : command.end], command.attributes)
        each.is_private, each.is_protected = "private" in modifiers, "protected" in modifiers
        for opened in _OPEN_IN.findall(blank_comments(proof)):
            self.scope.open(opened)
        each.docstring, each.proof, each.place = docstring, proof, self.scope.place()
        each.local = self.scope.types(declared) if proof else {}
        self.lean.declarations.append(each)

    def _docstring(self, command: Command) -> tuple[str, int]:
        """Return the docstring of a command, which may also stand behind `open ... in`, and where its source begins."""
        start = command.begin
        end = len(self.code[:start].rstrip())
        if end in self._docs:
            start = self._docs[end]
            return self.code[start:end], start
        inside = (self.code[at:end] for end, at in self._docs.items() if start <= at < command.at)
        texts = [text for text in inside if not any(text in each for each in command.attributes)]
        return "".join(texts[-1:]), start


def blank_comments(code: str) -> str:
    """Return Lean source, as long as it was, with blanks for comments and for the contents of quotes."""
    parts = []
    for kind, start, end in split_pieces(code):
        part = code[start:end]
        if kind == "text":
            part = part[0] + _INK.sub(" ", part[1:-1]) + part[-1]
        parts.append(_INK.sub(" ", part) if kind == "comment" else part)
    return "".join(parts)


def plain_name(name: str) -> str:
    """Return a name without the guillemets that it does not need.

    >>> plain_name("Chebyshev.«θ».«a-b»")
    'Chebyshev.θ.«a-b»'
    """
    return _QUOTED.sub(r"\1", name)


def find_closing_bracket(masked: str, start: int, end: int) -> int:
    """Return the place of the bracket that closes the first one at or after *start*, *end* when none does."""
    depth = 0
    for at in range(start, end):
        sign = masked[at]
        depth += (sign in OPENING) - (sign in CLOSING)
        if depth == 0 and sign in CLOSING:
            return at
    return end


def extract_statement(code: str) -> str:
    """Return a declaration without comments, docstring and attributes, and a theorem or lemma without its proof.

    A proof begins at the first `:=` outside of brackets and `let`, at `where`, or at a case `| pattern =>`; where the
    statement itself has cases, as after `match ... with`, only at `:=`.
    """
    return split_proof(code)[0]


def split_proof(code: str) -> tuple[str, str]:
    """Return what `extract_statement` returns, and the proof of a theorem or lemma from its `:=` on, else ""."""
    code = drop_attributes(drop_comments(code))
    if not _IS_THEOREM.match(code):
        return code, ""
    depth, bindings, has_cases = 0, 0, False
    for token in _IN_STATEMENT.finditer(code):
        text = token.group()
        if text[0] in "([{⟨⦃)]}⟩⦄":
            depth += 1 if text in "([{⟨⦃" else -1
        elif depth == 0 and text[0] in "lh":
            bindings += 1
        elif depth == 0 and token["match"]:
            has_cases = True
        elif depth == 0 and (text == ":=" or (not has_cases and (text == "where" or token["case"]))):
            if text == ":=" and bindings:
                bindings -= 1
            else:
                return code[: token.start()].rstrip(), code[token.start() :]
    return code, ""


def drop_attributes(code: str) -> str:
    """Return a declaration without the attributes before it, `@[simp, to_additive "a text"]`."""
    while code.startswith("@["):
        depth, end = 0, len(code)
        for token in re.finditer(r'"(?:\\.|[^"\\])*"|[\[\]]', code, re.DOTALL):
            depth += {"[": 1, "]": -1}.get(token.group(), 0)
            if depth == 0 and token.group() == "]":
                end = token.end()
                break
        code = code[end:].lstrip()
    return code


def drop_comments(code: str) -> str:
    """Return Lean source without line comments, block comments (they nest) and docstrings; texts in quotes stay."""
    kept = (code[start:end] for kind, start, end in split_pieces(code) if kind != "comment")
    lines = (line.rstrip() for line in "".join(kept).split("\n"))
    return "\n".join(line for line in lines if line).strip()


def split_pieces(code: str) -> Iterator[tuple[str, int, int]]:
    """Yield the pieces of Lean source in order: kind (code, text in quotes, or comment), start and end."""
    at = 0
    while token := _CODE_TOKEN.search(code, at):
        begin, end, text = token.start(), token.end(), token.group()
        if begin > at:
            yield "code", at, begin
        at = _comment_end(code, end) if text == "/-" else end
        yield "text" if text[0] in "'\"" else "comment", begin, at
    if at < len(code):
        yield "code", at, len(code)


def _comment_end(code: str, at: int) -> int:
    depth = 1
    for token in _BLOCK_COMMENT.finditer(code, at):
        depth += 1 if token.group() == "/-" else -1
        if depth == 0:
            return token.end()
    return len(code)


def _declared(kind: str, declared: str, scope: Scope) -> Iterator[str]:
    """Yield the variables that a declaration takes, and *declared*, its statement after the name, with a short body."""
    groups, after = split_binder_groups(declared)
    names = {binder.name for group in groups for binder in read_binders(group)}
    if kind not in PROVED:
        body = drop_defaults(declared[after:]) if kind in ("structure", "class") else declared[after:]
        declared = declared[:after] + shorten_body(body)
    taken = format_binders(scope.needed(declared, names))
    yield from (part for part in (taken, " ".join(declared.split())) if part)


class Scope:
    """The open namespaces and sections of a Lean file, outermost first."""

    def __init__(self) -> None:
        self._levels = [_Level("", False)]

    def enter(self, name: str, *, is_namespace: bool) -> None:
        """Open a namespace or section; `A.B` opens two."""
        for part in re.findall(ATOM, plain_name(name)) or [""]:
            self._levels.append(_Level(part, is_namespace))

    def leave(self, name: str) -> None:
        """Close as many levels as the name has parts, at least one; a superfluous `end` is ignored."""
        for _ in re.findall(ATOM, name) or [""]:
            if len(self._levels) > 1:
                self._levels.pop()

    def names(self, name: str) -> list[str]:
        """Return the full names that *name* may mean here, the innermost namespace first."""
        if name.startswith("_root_."):
            return [name.removeprefix("_root_.")]
        parts = [level.name for level in self._levels if level.is_namespace]
        outermost = max(0, len(parts) - _DEEPEST)
        return [".".join([*parts[:count], name]) for count in range(len(parts), outermost - 1, -1)]

    def full_name(self, name: str) -> str:
        """Return the name that a declaration called *name* gets here."""
        if name.startswith("_root_."):
            return name.removeprefix("_root_.")
        return ".".join([*(level.name for level in self._levels if level.is_namespace), name])

    def place(self) -> Place:
        """Return what the names of a declaration here may mean."""
        opened = tuple(each for level in self._levels for each in level.opened)
        return Place(tuple(level.name for level in self._levels if level.is_namespace), opened)

    def open(self, text: str) -> None:
        """Note the namespaces of an `open` command; `open scoped` opens no names, one `renaming` only the new ones."""
        if text.split()[:1] != ["scoped"]:
            inside = self.place().namespaces
            opened, _, renamed = plain_name(text).partition("renaming")
            given, new = tuple(zip(*_RENAMED.findall(renamed), strict=True)) or ((), ())
            self._levels[-1].opened += [
                Opened(inside, name, tuple(only.split()) or new, tuple(hidden.split()), given)
                for name, only, hidden in _OPENED.findall(opened)
            ]

    def types(self, declared: str) -> dict[str, str]:
        """Return the types of the variables here, and of those that a statement binds before its colon, by name."""
        own = (binder for group in split_binder_groups(declared)[0] for binder in read_binders(group))
        found = [*(binder for binder, _ in self._variables()), *own]
        return {binder.name: binder.type for binder in found if binder.name}

    def variable(self, text: str) -> None:
        """Add the binders of a `variable` command; one without a type changes how an older one is bound."""
        level = self._levels[-1]
        for group in split_binder_groups(text)[0]:
            for binder in read_binders(group):
                older = [known for known, _ in self._variables() if known.name and known.name == binder.name]
                if older and not binder.type:
                    binder = Binder(binder.style, binder.name, older[-1].type)
                level.variables.append((binder, free_names(binder.type)))

    def include(self, text: str) -> None:
        """Note the names of an `include` command."""
        self._levels[-1].included |= set(re.findall(ATOM, text))

    def omit(self, text: str) -> None:
        """Note the names and instances of an `omit` command."""
        groups, after = split_binder_groups(text)
        inner = {" ".join(group[1:-1].split()) for group in groups}
        names = {name for part in inner for name in part.split()[:1]}
        self._levels[-1].omitted |= inner | names | set(re.findall(ATOM, text[after:]))

    def _variables(self) -> list[tuple[Binder, set[str]]]:
        return [known for level in self._levels for known in level.variables]

    def needed(self, text: str, own: Iterable[str]) -> list[Binder]:
        """Return the variables that a declaration takes, in order, as Lean does; *own* are the names that it binds.

        They are those that *text* or a taken one mentions, the included ones, and instances of taken variables only.
        """
        known = self._visible()
        omitted = set().union(*(level.omitted for level in self._levels))
        included = set().union(*(level.included for level in self._levels)) - omitted
        wanted = free_names(text) - set(own) | included
        taken: set[int] = set()
        while more := {place for place in known if place not in taken and _is_taken(known, place, wanted, omitted)}:
            taken |= more
            wanted |= set().union(*(known[place][1] for place in more))
        return [known[place][0] for place in sorted(taken)]

    def _visible(self) -> dict[int, tuple[Binder, set[str]]]:
        """Return the visible variables with the names in their types, in order of the first binder of each."""
        places: dict[str, int] = {}
        found: dict[int, tuple[Binder, set[str]]] = {}
        for number, (binder, mentions) in enumerate(self._variables()):
            place = places.setdefault(binder.name, number) if binder.name else number
            if place in found and found[place][0].type != binder.type:
                del found[place]
                place = places[binder.name] = number
            found[place] = binder, mentions
        return dict(sorted(found.items()))


@dataclass
class _Level:
    """One open namespace, section or `mutual`; `name` is "" for one without a name."""

    name: str
    is_namespace: bool
    variables: list[tuple[Binder, set[str]]] = field(default_factory=list)  # each with what its type mentions
    opened: list[Opened] = field(default_factory=list)
    included: set[str] = field(default_factory=set)
    omitted: set[str] = field(default_factory=set)


def free_names(text: str) -> set[str]:
    """Return the names that *text* mentions without binding them; of `a.b` the name `a`, of `(a := b)` only `b`.

    Quantifiers, sums and lambdas bind up to the end of their bracket. A project's notations are not recognised.

    >>> sorted(free_names("(∑ x ∈ s, f x) = {y | y < z} ∧ g (n := m) w.1"))
    ['f', 'g', 'm', 's', 'w', 'z']
    """
    return {mention["name"] for mention, is_bound in find_mentions(text) if not is_bound}


def find_mentions(text: str) -> Iterator[tuple[re.Match[str], bool]]:
    """Yield the places where *text* mentions a name, as `a.b` with the group `name` a, and whether it binds that.

    >>> [(mention[0], is_bound) for mention, is_bound in find_mentions("fun x ↦ x.le.trans (Nat.le_add y)")]
    [('x.le.trans', True), ('Nat.le_add', False), ('y', False)]
    """
    bound: list[set[str]] = [set()]
    times: Counter[str] = Counter()  # in how many of these sets a name is
    binding: list[str] = [""]  # by bracket: what opened it while its names are being bound, as between `fun` and `↦`
    for token in _BINDER_TOKEN.finditer(text):
        kind, sign, name = str(token.lastgroup), token.group(), token["name"]
        if kind == "open":
            in_set = _SET.match(text, token.end()) if sign == "{" and not binding[-1] else None
            bound.append(set(in_set[1].split()) if in_set else set())
            times.update(bound[-1])
            binding.append(sign if binding[-1] else "")
        elif kind == "close" and len(bound) > 1:
            names = bound.pop()
            times.subtract(names)
            binding.pop()
            if binding[-1]:
                times.update(names - bound[-1])
                bound[-1] |= names
        elif kind == "binds":
            binding[-1] = "fun"
        elif kind in ("stop", "other") and (sign, binding[-1]) != (",", "⟨"):
            binding[-1] = ""  # after the colon or the ∈ of a binder stands its type
        elif kind == "name" and binding[-1]:
            times[name] += name not in bound[-1]
            bound[-1].add(name)
        elif kind == "name":
            yield token, times[name] > 0


def split_binder_groups(text: str) -> tuple[list[str], int]:
    """Return the bracketed groups at the beginning of *text*, and the start of the rest."""
    groups: list[str] = []
    at, depth, begin = 0, 0, 0
    for match in re.finditer(r"\S", text):
        sign = match.group()
        if depth == 0 and sign not in OPENING:
            break
        begin = match.start() if depth == 0 else begin
        depth += (sign in OPENING) - (sign in CLOSING)
        if depth == 0:
            at = match.end()
            groups.append(text[begin:at])
    return groups, len(text) - len(text[at:].lstrip())


def read_binders(group: str) -> list[Binder]:
    """Return the names that one bracketed group binds; a type that is not given is ""."""
    style, inner = group[0], " ".join(group[1:-1].split())
    if typed := _TYPED.match(inner):
        return [Binder(style, name, inner[typed.end() :]) for name in typed[1].split()]
    if style == "[":
        return [Binder(style, "", inner)]
    return [Binder(style, name, "") for name in re.findall(ATOM, inner)]


def drop_defaults(text: str) -> str:
    """Return the fields of a structure, one a line, without default values in tactics; in a term `_` stands for them.

    >>> " ".join(drop_defaults("where\\n x : T := by\\n  exact a\\n y : x = b := fun i ↦ by simp\\n z : S").split())
    'where x : T y : x = b := fun i ↦ _ z : S'
    """
    masked = blank_comments(text)
    first = _FIRST_FIELD.search(masked)
    if first is None:
        return text
    parts: list[str] = []
    at, depth, is_left_out = 0, 0, False
    for token in re.compile(rf"{_IN_FIELD}|\n(?!{first[1]}[ \t])").finditer(masked, first.end()):
        sign = token.group()
        depth += (sign in OPENING) - (sign in CLOSING)
        if sign == "\n":
            at = token.start() if is_left_out else at
            depth, is_left_out = 0, False
        elif sign.endswith("by") and depth <= 0 and not is_left_out:
            parts.append(text[at : token.start()] + ("" if sign.startswith(":=") else "_"))
            is_left_out = True
    return "".join([*parts, "" if is_left_out else text[at:]])


def shorten_body(text: str) -> str:
    """Return the part of a definition after its binders, up to its first tactic block outside of brackets.

    In brackets, `_` stands for the first tactic block and what follows it there.

    >>> shorten_body(": Fin 9 := ⟨min n 8, by omega⟩")
    ': Fin 9 := ⟨min n 8, _⟩'
    """
    parts: list[str] = []
    at, depth = 0, 0
    assigned = ""  # the sign with which the body begins
    left_out = 0  # the depth of the brackets whose rest is left out
    for token in _IN_BODY.finditer(blank_comments(text)):
        kind = str(token.lastgroup)
        depth += (kind == "open") - (kind == "close")
        if left_out and depth < left_out:
            at, left_out = token.start(), 0
        elif kind == "assigned" and depth == 0:
            assigned = assigned or token.group()
        elif kind == "tactics" and assigned and not left_out:
            parts.append(text[at : token.start()])
            if depth == 0:
                # Without its proof a field says nothing; before the first sign stands the type.
                field_name = rf"(?:\n[ \t]*{ATOM}(?:[ \t][^\n:]*)?|(?<=\s){ATOM}\s*)?" if assigned != ":=" else ""
                return re.sub(rf"{field_name}:=\s*$", "", "".join(parts)).rstrip()
            parts.append("_")
            left_out = depth
    return "".join([*parts, text[at:]])


def format_binders(chosen: list[Binder]) -> str:
    """Return binders as Lean writes them, neighbours of one type in one group."""
    parts: list[tuple[str, list[str], str]] = []
    for binder in chosen:
        if parts and binder.style != "[" and parts[-1][::2] == (binder.style, binder.type):
            parts[-1][1].append(binder.name)
        else:
            parts.append((binder.style, [binder.name], binder.type))
    return " ".join(_group(*part) for part in parts)


def _is_taken(known: dict[int, tuple[Binder, set[str]]], place: int, wanted: set[str], omitted: set[str]) -> bool:
    binder, mentions = known[place]
    if binder.type in omitted or binder.name in omitted:
        return binder.name in wanted and binder.name != ""
    if binder.name in wanted and binder.name:
        return True
    names = {other.name for other, _ in known.values() if other.name}
    if binder.style == "[" and _ALONE.fullmatch(binder.type) and not mentions & names:  # it lacks no variable
        return True
    # An instance that names no variable hides some behind a notation, and is taken with any variable.
    return binder.style == "[" and (mentions & names <= wanted if mentions & names else bool(names & wanted))


def _group(style: str, names: list[str], kind: str) -> str:
    inner = " : ".join(part for part in (" ".join(names), kind) if part)
    return style + inner + CLOSING[OPENING.index(style)]
