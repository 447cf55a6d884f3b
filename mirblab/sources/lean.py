"""lean: a Lean library as collections of its docstrings and of its premises, from its source alone."""

from __future__ import annotations

import itertools
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mirblab.core.errors import MirblabError
from mirblab.core.terminal import progress, say
from mirblab.sources.blueprints import repository as repositories
from mirblab.sources.shared import builder, lean_source, release
from mirblab.sources.shared.builder import CollectionRows, Judgement, LibraryStatement, Row, UniqueIds
from mirblab.sources.shared.lean_source import ATOM, NAME, Declaration, LeanFile, Opened, Place

PREMISE, INFORMAL = "lean-premise", "lean-informal"
FEWEST = 4  # words of a docstring that is a query
_TESTS = re.compile(r"(?:^|/)tests?/|^\w*Tests?/")
_LEAN3 = re.compile(r"(?:^|:=|,)[ \t]*begin[ \t]*$|^(?:open_locale|noncomputable theory)\b", re.MULTILINE)
_SOURCE_FOLDER = re.compile(r'\bsrcDir\s*:?=\s*"([^"]+)"')
# In a proof these are words of the language, and those of `_TACTICS` tactics where one may begin, although a
# declaration may be called so.
_WORDS = frozenset(
    """at by by_cases calc decreasing_by do else from fun generalizing have haveI if in let letI match nofun
    nomatch only open rename_i return rfl set_option show sorry suffices termination_by then this try using where
    with""".split()
)
_TACTICS = frozenset(
    """abel aesop all_goals any_goals apply apply_fun assumption bound by_contra case cases change choose classical
    clear congr constructor continuity contradiction contrapose conv convert convert_to decide dsimp erw exact
    exact_mod_cast exacts exfalso exists ext field_simp filter_upwards fin_cases first fun_prop funext gcongr
    generalize grind group induction infer_instance injection injections interval_cases intro intros iterate left
    lia lift linarith linear_combination measurability mod_cast mono next nlinarith norm_cast norm_num nth_rewrite
    nth_rw obtain omega on_goal peel positivity push_cast push_neg qify rcases refine rename repeat replace rewrite
    right ring ring_nf rintro rw rwa set simp simp_all simp_rw simpa skip specialize split split_ifs stop
    subsingleton subst swap symm tauto to trans trivial unfold use wlog zify""".split()
)
# What stands before a tactic on its line; in brackets that begin a line stands a term more often.
_BEFORE_TACTIC = re.compile(
    r"(?:\A|[;·{↦]|(?:<;|=)>|(?<!<)\||<;>\s*\[|(?:\A|\s)\.|(?<![\w.'])(?:by|do|then|else|try|repeat'?|first|focus"
    r"|all_goals|any_goals|iterate|fail_if_success|conv_lhs|conv_rhs|next|with_reducible)(?:\s+\d+)?)\Z"
)
_ADDITIVE = {"one": "zero", "mul": "add", "smul": "vadd", "inv": "neg", "div": "sub", "prod": "sum", "pow": "nsmul",
             "zpow": "zsmul"}  # fmt: skip
_MULTIPLICATIVE = re.compile(rf"(?<![^_])(?:{'|'.join(_ADDITIVE)})(?![^_'\d])")
_TO_ADDITIVE = re.compile(rf"\bto_additive\b(?:\s+existing\b)?(?:\s*[(\[][^)\]]*[)\]])*\s*({NAME})?")
# Attributes that make further declarations, `shift_apply` of `shift`.
_MAKES_NAMES = re.compile(r"\b(?:simps|reassoc|elementwise)\b")
_TYPES = ("structure", "class", "inductive", "class inductive")
_BY_LEAN = re.compile(r"mk|rec|recOn|casesOn|ext|ext_iff|noConfusion|inj|injEq|brecOn|below|(?:eq_|to|inst|sizeOf)\w*")
_ROLE = re.compile(r"\{\w[^{}`]*\}(?=`)")
_TEX = re.compile(r"(\$\$?)`([^`]*)`")
_BRACKETED = r"[(\[{⟨⦃][^()\[\]{}⟨⟩⦃⦄]*+[)\]}⟩⦄]"
for _ in range(3):  # patterns are seldom deeper
    _BRACKETED = rf"[(\[{{⟨⦃](?:[^()\[\]{{}}⟨⟩⦃⦄]|{_BRACKETED})*+[)\]}}⟩⦄]"
_PATTERN = rf"(?:[ \t]*+(?:(?!(?:at|using|with|from|in|by|generalizing)\b){ATOM}|[_|@-]|{_BRACKETED}))++"
# Names behind these tactics are bound, as those of `fun` are.
_BINDS = re.compile(
    rf"(?<![\w.'])(?:(?:intros?|rintro|ext1?|funext|rename_i|choose!?|next|with|case'?)(?P<steps>[ \t]{_PATTERN})"
    rf"|(?:obtain|replace|suffices|set|by_cases|wlog|haveI|letI)(?P<named>[ \t]{_PATTERN})(?=\s*:))"
    r"|^[ \t]*\|(?P<case>[^\n|]*)=>",
    re.MULTILINE,
)
_FUNCTION = re.compile(r"\bfun ([^↦=\n]{0,500})(?:↦|=>)")
_ASSIGNED = re.compile(r"\s*:=")
_BEGINS_FIELD = re.compile(r"(?:[{(⟨]|(?<![\w.'])(?:let|have|set|where))\Z")  # what stands before it on its line
_JOINS = re.compile(r"(?<!:)[=≠≤<≥>≃≅∣∧∨→↔∈∉⊆∘×⊕•*+/∪∩-]\Z")  # of two parts of a type
_LONE = re.compile(rf"(?<![\w.'«]){ATOM}(?![\w.'])")
_STATED = re.compile(
    rf"(?<![\w.'])(?:have|obtain|replace|suffices)[ \t]+({ATOM})[ \t]*:(?!=)((?:(?!:=).){{1,200}})", re.DOTALL
)
_HEAD = re.compile(rf"\s*@?({NAME})([^→↔=≤≥<>∧∨≠∈∉⊆∣+*∘×⟶≃]*)\Z")


@dataclass(eq=False, slots=True)
class Document:
    """A declaration in the file `path`; `text` is its statement without keyword and name, `inside` its namespaces."""

    id: str
    declaration: Declaration
    path: str
    order: int
    text: str
    inside: list[str]

    @property
    def title(self) -> str:
        """Keyword and full name, so that title and text are the declaration as Lean reads it."""
        return f"{self.declaration.kind} {self.declaration.name}"


def build(origin: str | Path | None, out: Path, *, seed: int = 0) -> list[Path]:
    """Write lean-premise and lean-informal under *out* and return their folders; one without a query is not made.

    *origin* is a folder, a .tar.gz or .zip, or a git URL of a library in Lean 4, of which nothing is run. Documents are
    all declarations with a name. Relevant to a theorem or lemma are the older declarations of the library that its
    proof names, whether or not its statement names them as well, and to a docstring its declaration. *seed* draws the
    test queries. Raises MirblabError for a folder without Lean 4, and where there is no query at all.
    """
    out = Path(out)
    if not origin:
        raise MirblabError("give a Lean library with --from: a folder, a .tar.gz or .zip, or the URL of a repository")
    with release.open_origin(origin, "a Lean library") as source:
        left_out: Counter[str] = Counter()
        root = (repositories.find_roots(source.folder) or [source.folder])[0]
        found = repositories.read_repository(root, source.shown, source.commit, left_out)
        files = _read(found.lean, source.shown, left_out)
        library = Library(files, required_files(root, files), left_out)
        made = {PREMISE: library.premises(seed), INFORMAL: library.docstrings(seed)}
        asked = {name: rows for name, rows in made.items() if any(rows.judged.values())}
        n_found = f"{source.shown}: of {len(library.documents):,} declarations"
        if not asked:
            raise MirblabError(
                f"{n_found} no proof names an older one, and no docstring describes one, so that there is no query; "
                "give the whole library"
            )
        if PREMISE not in asked:
            say(f"{PREMISE} is not made: {n_found} no proof names an older one")
        if INFORMAL not in asked:
            say(f"{INFORMAL} is not made: {n_found} no docstring describes one alone")
        origins, licence = release.find_credits(source, "", is_public=False)
        options = {"seed": seed} if seed else {}
        kinds = Counter(sorted(each.declaration.kind for each in library.documents))
        facts = {"content": found.digest, "seed": seed, "kinds": kinds}
        with builder.replace_folders(out, tuple(asked)) as folders:
            for folder, (name, rows) in zip(folders, asked.items(), strict=True):
                about = builder.read_about(name) | facts | ({"names": library.mentions} if name == PREMISE else {})
                builder.write_collection(
                    folder,
                    rows,
                    about,
                    origins,
                    builder="lean",
                    revision=found.digest,
                    licence=licence,
                    options=options,
                )
    return [out / name for name in asked]


def _read(sources: Mapping[str, str], shown: str, left_out: Counter[str]) -> dict[str, LeanFile]:
    """Return the files in Lean 4 by their path; those of tests and in Lean 3 are counted in *left_out*."""
    files: dict[str, LeanFile] = {}
    with progress(len(sources), "reading files", "file") as bar:
        for path, code in sources.items():
            if _TESTS.search(path):
                left_out["files of tests"] += 1
            elif _LEAN3.search(lean_source.blank_comments(code)):
                left_out["files in Lean 3"] += 1
            else:
                files[path] = lean_source.read_lean(code)
            bar.update(1)
    if not any(lean.declarations for lean in files.values()):
        n_old = left_out["files in Lean 3"]
        n_found = f"{len(sources)} .lean files" + (f", {n_old} of them in Lean 3" if n_old else "")
        raise MirblabError(
            f"{shown}: found {n_found} and no declaration of Lean 4 with a name; give the folder of a library, an "
            "archive or a clone of it"
        )
    return files


def required_files(root: Path, files: Mapping[str, LeanFile]) -> dict[str, list[str]]:
    """Return the files that each one imports, found by the names of their modules, A/B.lean for `A.B`.

    The modules of a package stand below the folder of its lakefile, or below that file's source folders. A repository
    may hold several packages, such as an old version in a folder: a name means a module of the same package first.
    """
    inside = {path: [f"{part}/".removeprefix("./") for part in Path(path).parents] for path in files}
    lakes = {folder: _source_folders(root / folder) for folder in {"", *itertools.chain(*inside.values())}}
    packages = {folder for folder, found in lakes.items() if found is not None} | {""}
    own = {path: next(folder for folder in folders if folder in packages) for path, folders in inside.items()}
    modules: dict[str, dict[str, str]] = {folder: {} for folder in sorted(packages)}
    for path, package in own.items():
        short = path.removeprefix(package)
        inner = next((short.removeprefix(folder) for folder in lakes[package] or () if short.startswith(folder)), short)
        modules[package][inner.removesuffix(".lean").replace("/", ".")] = path
        if lakes[package] is None:  # the folder of a root module may have been given
            modules[package].setdefault(f"{root.name}.{path.removesuffix('.lean')}".replace("/", "."), path)
    required: dict[str, list[str]] = {}
    for path, lean in files.items():
        known = [modules[own[path]], *modules.values()]
        found = (next((names[name] for names in known if name in names), "") for name in lean.imports)
        required[path] = sorted({*found} - {""})
    return required


def _source_folders(folder: Path) -> list[str] | None:
    """Return the source folders that a lakefile names, None for a folder without a lakefile."""
    lakes = [path.read_text("utf-8", "replace") for path in sorted(folder.glob("lakefile.*"))]
    if not lakes:
        return None
    return sorted({f"{Path(inner).as_posix()}/" for text in lakes for inner in _SOURCE_FOLDER.findall(text)})


class Library:
    """The declarations of a library in its order, imports before importers, and what the names in their proofs mean."""

    def __init__(
        self, files: Mapping[str, LeanFile], required: Mapping[str, Sequence[str]], left_out: Counter[str]
    ) -> None:
        ordered, self._needed = builder.sort_by_requirements(required, left_out)
        self.documents: list[Document] = []
        self.mentions: Counter[str] = Counter()
        self._left_out, self._unread = left_out, Counter[str]()
        self._known, ids = defaultdict[str, list[Document]](list), UniqueIds()
        self._making = defaultdict[str, list[Document]](list)  # those of which attributes make further names
        for path in ordered:
            for each in files[path].declarations:
                text = each.statement.removeprefix(f"{each.kind} {each.name}").strip()
                inside = dict.fromkeys([*_outwards(each.name.split(".")[:-1]), *_outwards(each.place.namespaces)])
                spaces = [namespace for namespace in inside if namespace]
                document = Document(ids.new(each.name), each, path, len(self.documents), text, spaces)
                is_repeated = document.id != each.name
                left_out["declarations with the name of an earlier one (their id ends with #2)"] += is_repeated
                self.documents.append(document)
                for name in dict.fromkeys([each.name, *additive_names(each)]):
                    self._known[name].append(document)
                    if any(map(_MAKES_NAMES.search, each.attributes)):
                        self._making[name].append(document)
            left_out["instances and other declarations without a name"] += files[path].unnamed
            for alias, targets in files[path].aliases.items():
                meant = next(filter(None, map(self._aliased, targets)), [])
                left_out["aliases of other libraries' declarations"] += not meant
                left_out["aliases (no documents, but names of their declarations)"] += bool(meant)
                if meant:
                    self._known[alias] += meant
        self._namespaces = {space for name in self._known for space in _outwards(name.split(".")[:-1])} - {""}
        self._fields = {name.rpartition(".")[2] for name in self._known}
        self._opened_at: dict[Place, list[tuple[Opened, str]]] = {}

    def _aliased(self, name: str) -> list[Document]:
        """Return the declarations with a full name; those of a type for one of its parts, which `export` may name."""
        space, _, part = name.rpartition(".")
        own = [each for each in self._known.get(space, ()) if each.declaration.kind in _TYPES]
        return self._known.get(name) or [each for each in own if _has_part(each.declaration, [part])]

    def premises(self, seed: int) -> CollectionRows:
        """Return theorem to the older declarations that its proof names."""
        stated = [
            LibraryStatement(each.id, each.title, each.text, self._uses(each), each.order, _about(each))
            for each in self.documents
        ]
        return builder.premise_collection(stated, seed, self._left_out + self._unread)

    def docstrings(self, seed: int) -> CollectionRows:
        """Return docstring to declaration; a docstring of several declarations, or with its own's name, is no query."""
        left_out, asked = self._left_out.copy(), dict[str, str]()
        texts = {each.id: clean_docstring(each.declaration.docstring) for each in self.documents}
        repeated, same = Counter(texts.values()), Counter(each.text for each in self.documents)
        for each in self.documents:
            reason = _unfit(texts[each.id], each.declaration.name)
            reason = reason or ("the docstring of another one" if repeated[texts[each.id]] > 1 else "")
            if reason := reason or ("the statement of another one" if same[each.text] > 1 else ""):
                left_out[f"declarations that are no query: {reason}"] += 1
            else:
                asked[each.id] = texts[each.id]
        where = builder.draw_splits(asked, seed)
        judged: dict[str, list[Judgement]] = {split: [] for split in (*builder.SIZES, "train")}
        corpus, queries = list[Row](), list[Row]()
        for each in self.documents:
            about = {"order": each.order, **_about(each)}
            corpus.append({"_id": each.id, "title": each.title, "text": each.text, "metadata": about})
            if each.id in asked:
                queries.append({"_id": f"{each.id}-docstring", "text": asked[each.id], "metadata": about})
                judged[where[each.id]].append((f"{each.id}-docstring", each.id, 1))
        return CollectionRows(corpus, queries, judged, left_out)

    def _uses(self, user: Document) -> list[str]:
        """Return the declarations that a proof names, without repetitions; local names mean none."""
        uses: dict[str, None] = {}
        proof = lean_source.blank_comments(user.declaration.proof)
        types = user.declaration.local | dict(_STATED.findall(proof))
        for mention, is_bound in lean_source.find_mentions(bind_as_functions(proof)):
            name, first = mention[0], mention["name"]
            if _is_word(mention) or _is_assigned(mention):
                continue
            if is_bound or first in types or first == "this":
                document = self._member(name, types.get(first, ""), user)
            else:
                document = self._find(name, user)
                self.mentions["by their name"] += document is not None
            if document:
                uses[document.id] = None
        return list(uses)

    def _member(self, name: str, kind: str, user: Document) -> Document | None:
        """Return the declaration that `h.field` means for a local h, if the head of its type and the field name it."""
        local, _, fields = name.partition(".")
        if not fields:
            is_hidden = self._find(local, user) is not None
            self._unread["mentions of a local name that a declaration has (no premises)"] += is_hidden
            return None
        member, head = fields.split(".")[0], _HEAD.match(_without_brackets(kind))
        document = self._exactly(f"{head[1]}.{member}", user) if head else None
        self.mentions["by the type of a hypothesis"] += document is not None
        is_unread = head is None and member in self._fields
        self._unread["mentions behind a dot whose meaning the text does not say (no premises)"] += is_unread
        return document

    def _find(self, name: str, user: Document) -> Document | None:
        """Return what a name means in a proof: the longest beginning of it that names a declaration."""
        parts = re.findall(ATOM, lean_source.plain_name(name))
        for count in range(len(parts), 0, -1):
            begin = ".".join(parts[:count])
            if document := self._exactly(begin, user):
                # In a namespace `Nat.succ_le` may be another library's, although the namespace has its own `Nat`.
                is_own = begin == document.declaration.name or _has_part(document.declaration, parts[count:])
                return document if is_own else None
        return None

    def _exactly(self, name: str, user: Document) -> Document | None:
        """Return the declaration with a name as Lean looks it up: the innermost namespace, then root and `open`."""
        if name.startswith("_root_."):
            return self._visible(name.removeprefix("_root_."), name, user)
        for namespace in user.inside:
            if document := self._visible(f"{namespace}.{name}", name, user):
                return document
        document = self._visible(name, name, user)
        if "." in name and document:
            return document
        found = {document} | {
            # What `open` names one by one may be protected.
            self._visible(full := f"{namespace}.{meant}", full if opened.only else name, user)
            for opened, namespace in self._opened(user.declaration.place)
            if (meant := opened.meant(name))
        }
        found.discard(None)
        self._unread["mentions of a name that several opened namespaces have (no premises)"] += len(found) > 1
        return found.pop() if len(found) == 1 else None

    def _opened(self, place: Place) -> list[tuple[Opened, str]]:
        """Return what `open` opened with the full names of its namespaces, of those in which the library has names."""
        if place not in self._opened_at:
            found: list[tuple[Opened, str]] = []
            for each in place.opened:
                around = [*_outwards(each.inside), *(namespace for opened, namespace in found if not opened.only)]
                names = dict.fromkeys(f"{namespace}.{each.name}".removeprefix(".") for namespace in around)
                found += [(each, name) for name in names if name in self._namespaces]
            self._opened_at[place] = found
        return self._opened_at[place]

    def _visible(self, full: str, name: str, user: Document) -> Document | None:
        """Return the last declaration with a full name that stands before *user* or in a file that its file imports.

        A private one is visible in its file only, a protected one by its name alone from nowhere.
        """
        for each in reversed(self._known.get(full) or self._maker(full)):
            is_here = each.path == user.path and each.order < user.order
            is_imported = self._needed.has(user.path, each.path) and not each.declaration.is_private
            is_protected = each.declaration.is_protected and "." not in name and full != name
            if (is_here or is_imported) and not is_protected:
                return each
        return None

    def _maker(self, full: str) -> list[Document]:
        """Return the declaration of which an attribute made a name: `Space.shift` of `Space.shift_apply_coe`."""
        first, end = full.rfind(".") + 2, len(full)
        while (end := full.rfind("_", first, end)) > 0:
            if full[:end] in self._making:
                return self._making[full[:end]]
        return []


def clean_docstring(docstring: str) -> str:
    """Return the text of a docstring in one line, without Verso's roles, and with TeX's signs around its formulas.

    >>> clean_docstring("/-- The {name}`sum`\\n    of $`x`. -/")
    'The `sum` of $x$.'
    """
    text = _TEX.sub(r"\1\2\1", _ROLE.sub("", docstring.removeprefix("/--").removesuffix("-/")))
    return " ".join(text.split())


def additive_names(declaration: Declaration) -> list[str]:
    """Return the name of what `to_additive` declares beside a declaration, as given or by the rule for names.

    >>> additive_names(Declaration("Real.mul_inv_le_one'", "lemma", "", "", ["simp, to_additive (attr := simp)"]))
    ["Real.add_neg_le_zero'"]
    """
    namespace, dot, own = declaration.name.rpartition(".")
    found = [match[1] for text in declaration.attributes for match in _TO_ADDITIVE.finditer(text)]
    names = [given or _MULTIPLICATIVE.sub(lambda part: _ADDITIVE[part[0]], own) for given in found]
    return [name if "." in name else f"{namespace}{dot}{name}" for name in names]


def _unfit(docstring: str, name: str) -> str:
    """Return why a docstring is no query for its declaration, "" when it is one."""
    if not docstring:
        return "no docstring"
    short = name.rpartition(".")[2]
    named = rf"(?<![\w']){re.escape(short)}(?![\w'])"
    if re.search(named, docstring if "_" in short else " ".join(re.findall(r"`[^`]*`", docstring))):
        return "the docstring names the declaration itself"
    return f"the docstring has under {FEWEST} words" if len(docstring.split()) < FEWEST else ""


def _about(each: Document) -> Row:
    return {"file": each.path, "kind": each.declaration.kind}


def _outwards(parts: Iterable[str]) -> Iterator[str]:
    """Yield the namespaces that are open in one, the innermost first and the root, "", last."""
    parts = list(parts)
    yield from (".".join(parts[:count]) for count in range(len(parts), -1, -1))


def bind_as_functions(proof: str) -> str:
    """Return a proof in which everything that binds a name does so as Lean's `fun` or `have`, which hold up to the end.

    >>> bind_as_functions("by\\n  rintro x ⟨y, hy⟩\\n  exact hy").split("\\n")[1]
    '  fun x ⟨y, hy⟩ ↦'
    """
    lines: list[str] = []
    for line in _BINDS.sub(_bind, proof).split("\n"):
        # What is bound before a goal that is left open is bound behind the brackets as well.
        left = _FUNCTION.findall(line) if "?_" in line else []
        lines.append(f"{line} fun {' '.join(left)} ↦" if left else line)
    return "\n".join(lines)


def _bind(match: re.Match[str]) -> str:
    """Return what a tactic binds as Lean's `fun` or `have`, so that `find_mentions` knows that it is bound."""
    if match["case"] is not None:
        return f"fun {' '.join(_LONE.findall(re.sub(r':[^,()⟨⟩]*', '', match['case'])))} ↦"
    pattern = re.sub(r"[|@-]", " ", match["steps"] or match["named"]).strip()
    return f"fun {pattern} ↦" if match["steps"] else f"have {pattern}"


def _has_part(declaration: Declaration, rest: Sequence[str]) -> bool:
    """Return whether the first name of *rest* may stand behind that of a declaration: a type's must be its own."""
    if not rest or declaration.kind not in _TYPES or _BY_LEAN.fullmatch(rest[0]):
        return True
    return re.search(rf"(?<![\w.']){re.escape(rest[0])}(?![\w'])", declaration.statement) is not None


def _is_word(mention: re.Match[str]) -> bool:
    """Return whether a name is a word of the language, or a tactic where one may begin."""
    if mention[0] not in _TACTICS:
        return mention[0] in _WORDS
    line = _line_before(mention)
    before = line.rstrip("( \t")
    return _BEFORE_TACTIC.search(before) is not None and bool(before or "(" not in line)


def _is_assigned(mention: re.Match[str]) -> bool:
    """Return whether a name is that of a field, an argument or a variable that gets a value; a type's end is none."""
    if not _ASSIGNED.match(mention.string, mention.end()):
        return False
    line, before = _line_before(mention).rstrip(), mention.string[: mention.start()].rstrip()
    if before.endswith(","):  # in braces stand the fields of a structure
        return _innermost_bracket(before) == "{"
    # A sign at the end of a line joins a type with what follows.
    return bool(_BEGINS_FIELD.search(line)) if line else not _JOINS.search(before)


def _line_before(mention: re.Match[str]) -> str:
    return mention.string[mention.string.rfind("\n", 0, mention.start()) + 1 : mention.start()]


def _innermost_bracket(text: str) -> str:
    """Return the last bracket that is open at the end of a text, "" for none."""
    depth = 0
    for sign in reversed(text):
        depth += (sign in lean_source.CLOSING) - (sign in lean_source.OPENING)
        if depth < 0:
            return sign
    return ""


def _without_brackets(text: str) -> str:
    """Return a type without what stands in brackets.

    >>> _without_brackets("IdentDistrib X (f Y) [a (b)]").split()
    ['IdentDistrib', 'X']
    """
    kept, depth = [], 0
    for sign in text:
        depth += sign in lean_source.OPENING
        kept += [sign] if depth == 0 else []
        depth -= sign in lean_source.CLOSING
    return "".join(kept)
