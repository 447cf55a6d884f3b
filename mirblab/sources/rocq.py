"""rocq: Rocq libraries as a collection of premises."""

from __future__ import annotations

import hashlib
import itertools
import posixpath
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mirblab.core.errors import MirblabError
from mirblab.core.terminal import progress
from mirblab.sources.blueprints.repository import decode_source
from mirblab.sources.shared import builder, release
from mirblab.sources.shared.builder import LibraryStatement, Row

LEMMAS = ("Lemma", "Theorem", "Corollary", "Fact", "Remark", "Proposition", "Property")
_GOALS = ("Definition", "Let", "Example", "Instance", "Goal", "Fixpoint", "Coercion", "Canonical")
_PROVED = ("Definition", "Instance", "Example")  # theorems, where a script proves them and the style is that
_LOCALS = ("Hypothesis", "Hypotheses", "Variable", "Variables", "Context", "Let")
_ENDS = ("Qed", "Defined", "Admitted", "Abort", "Save")
# These words open, close or declare, and never occur in a proof script, so that they end a proof.
_OUTSIDE = (*LEMMAS, *"Definition Instance Section Module End Context Hypothesis Variable Variables Notation".split())
_MARK = re.compile(r'\(\*|\*\)|"[^"]*"|\.\.\.(?=\s|\Z)|(?<!\.)\.(?=\s|\Z)')
_MODIFIER = re.compile(r"(?:#\[[^\]]*\]\s*|(?:Local|Global|Program|Polymorphic|Monomorphic|Cumulative|Time)\s+)*")
_REQUIRE = re.compile(r"(?:From\s+([\w.]+)\s+)?Require\s+(?:(?:Import|Export)\s+)?(.*)\.", re.DOTALL)
_IDENTIFIER = re.compile(r"[^\W\d][\w']*")
_NAMED = re.compile(r"([^\W\d][\w']*)\s*(?:@\{[^}]*\})?\s*(.*)", re.DOTALL)
_BRACKET = re.compile(r"[()\[\]{}]|(?<!=):=(?!:)|\blet\b")
_GROUP = re.compile(r"[({\[]\s*([\w'\s]+?)\s*:")
_REFINED = re.compile(r"\bwith\s+(?:Definition|Module)\s+[\w.']+\s*:=")  # in a module's type, so that it is no alias
# A name for a term, often an old one for a lemma: `Notation old := new (only parsing).`
_NOTATION = re.compile(r"Notation\s+([^\W\d][\w']*)\s*:=\s*\(?\s*@?([^\W\d][\w']*(?:\.[^\W\d][\w']*)*)")
_TACTIC = re.compile(r'Ltac\s+([\w\']+)|Tactic\s+Notation\s+(?:\([^)]*\)\s*)?"([\w\']+)')
URL = "https://github.com/math-comp/math-comp"
LICENCE = "CECILL-B"
NAME = "rocq-premise"
PROJECTS = ("Make", "_RocqProject", "_CoqProject")
_TESTS = re.compile(r"(?:^|/)(?:tests?|test[-_]suite)/")
_MENTION = re.compile(r"(?<![\w'.])[^\W\d][\w']*(?:\.[^\W\d][\w']*)*")
# Tactics, tacticals and vernacular words: in a script they never name a lemma.
_TACTICS = frozenset(
    """abstract admit apply assert assumption auto by case change clear congr constructor contradiction cut destruct
    discriminate do done eapply eauto elim else exact exists fail field first fix fold forall from fun gen
    generalize have idtac if in induction injection intro intros inversion last left let lia linear lra match
    move nia now of pose reflexivity return revert rewrite right ring set simpl solve split subst suff
    suffices symmetry then transitivity trivial try under unfold unlock using where with without wlog yield""".split()
)


@dataclass(eq=False, slots=True)
class Lemma:
    """A lemma; `text` lacks its name; `local` are its sections' variables and hypotheses, which hide lemmas."""

    kind: str
    name: str
    modules: tuple[str, ...]
    text: str
    script: str
    local: frozenset[str]


@dataclass
class RocqFile:
    """The requirements of a file (prefix, names), its lemmas in order, its tactics and modules, and irregularities.

    `notations` are the names that notations give to terms, each with the first name of its term.
    """

    requires: list[tuple[str, list[str]]] = field(default_factory=list)
    lemmas: list[Lemma] = field(default_factory=list)
    notations: list[tuple[str, str]] = field(default_factory=list)
    tactics: set[str] = field(default_factory=set)
    modules: set[str] = field(default_factory=set)
    odd: Counter[str] = field(default_factory=Counter)


def build(origin: str | Path | None, out: Path, *, seed: int = 0, proved_definitions: bool = False) -> list[Path]:
    """Write rocq-premise under *out* and return its folder.

    *origin* is a folder, a .tar.gz or .zip, a git URL, or None for a shallow clone of math-comp. The card of another
    library has the licence that its files state. Only the files of its project file are read, or all without one;
    tests and build outputs are not. *seed* draws the test queries. With *proved_definitions* a definition, instance or
    example whose script ends with Qed or Defined is a lemma, too, as in libraries in the style of homotopy type theory.
    """
    out = Path(out)
    with release.open_origin(origin, URL) as source, builder.replace_folders(out, (NAME,)) as [folder]:
        left_out: Counter[str] = Counter()
        files, roots, digest = _read(source.folder, left_out, _PROVED if proved_definitions else ())
        ordered, needed = sort_by_requirements(files, roots, left_out)
        stated, more = _resolved(files, ordered, needed, left_out)
        if not stated:
            raise MirblabError(
                f"{source.shown or URL}: found {len(files)} .v files and no lemma; is it a Rocq library?"
            )
        if not any(item.uses for item in stated):
            raise MirblabError(
                f"{source.shown or URL}: {len(stated):,} lemmas, of which no script names another, so that there is no "
                "query; give the whole library"
            )
        rows, content = builder.premise_collection(stated, seed, left_out), f"blake2b:{digest}"
        about = builder.read_about(NAME) | {"content": content, "seed": seed, **more}
        is_math_comp = any(Path(name).stem == "ssrnat" for name in files)
        if not is_math_comp:
            about["title"] = about["title"].replace("Mathematical Components (Rocq)", "Rocq")
        origins, licence = release.find_credits(source, LICENCE, is_public=is_math_comp)
        options = ({"seed": seed} if seed else {}) | ({"proved_definitions": "true"} if proved_definitions else {})
        builder.write_collection(
            folder, rows, about, origins, builder="rocq", revision=content, licence=licence, options=options
        )
    return [out / NAME]


def sort_by_requirements(
    files: dict[str, RocqFile], roots: set[str], left_out: Counter[str]
) -> tuple[list[str], builder.Requirements]:
    """Return the files, each after those that it requires, then by path; and all direct and indirect requirements."""
    by_stem: dict[str, list[str]] = defaultdict(list)
    for name in files:
        by_stem[Path(name).stem].append(name)
    required = {name: _required(file, by_stem, roots) for name, file in files.items()}
    return builder.sort_by_requirements(required, left_out)


def _read(folder: Path, left_out: Counter[str], proved: Collection[str]) -> tuple[dict[str, RocqFile], set[str], str]:
    sources = [path for path in sorted(folder.rglob("*.v")) if _is_source(path.relative_to(folder)) and path.is_file()]
    root, listed, roots = _project(folder, sources)
    known = {path.relative_to(root).as_posix(): path for path in sources if path.is_relative_to(root)}
    names = [name for name in listed if name in known] or list(known)
    kept = sorted({name for name in names if not _TESTS.search(name)})
    left_out["files of tests, or that the project does not list"] = len(known) - len(kept)
    digest, files = hashlib.blake2b(digest_size=16), dict[str, RocqFile]()
    with progress(len(kept), "reading files", "file") as bar:
        for name in kept:
            raw = known[name].read_bytes()
            digest.update(f"{name} {len(raw)}\n".encode() + raw)
            files[name] = read_file(decode_source(raw, left_out), proved)
            left_out.update(files[name].odd)
            bar.update(1)
    return files, roots, digest.hexdigest()


def _is_source(path: Path) -> bool:
    """Tell the files of a library from build outputs and from those that an editor hides."""
    return not any(part.startswith(("_build", "_opam", ".")) for part in path.parts)


def read_file(source: str, proved: Collection[str] = ()) -> RocqFile:
    """Return the content of a file; what cannot be read is counted and raises no error.

    Declarations of the kinds *proved*, as "Definition", are lemmas where a script proves them, and no term.
    """
    reader = _Reader(proved)
    for sentence in split_sentences(source):
        reader.take(sentence)
    reader.close("proofs that do not end")
    return reader.file


def split_sentences(source: str) -> Iterator[str]:
    """Yield the sentences of a file without (nested) comments; a full stop counts outside strings, before a blank."""
    depth, start = 0, 0
    parts: list[str] = []
    for mark in _MARK.finditer(source):
        if mark[0] == "(*":
            parts += [source[start : mark.start()]] if depth == 0 else []
            depth += 1
        elif mark[0] == "*)" and depth:
            depth, start = depth - 1, mark.end()
        elif mark[0][0] == "." and not depth:
            sentence = " ".join(" ".join([*parts, source[start : mark.end()]]).split())
            parts, start = [], mark.end()
            yield sentence


class _Reader:
    def __init__(self, proved: Collection[str]) -> None:
        self.proved = proved
        self.file = RocqFile()
        self.scopes: list[tuple[str, bool, set[str]]] = []  # name, whether a module, names that it declares
        self.proof: tuple[str, str, str] | None = None  # kind, name, statement
        self.script: list[str] = []

    def take(self, sentence: str) -> None:
        # Inside a proof a bullet, or the braces around subgoals, may stand before a sentence: "} Qed."
        body = _MODIFIER.sub("", sentence.lstrip("{}+-* "), count=1)
        word = match[0] if (match := re.match(r"[\w.]*\w", body)) else ""
        if required := _REQUIRE.match(body):
            self.file.requires.append((required[1] or "", re.sub(r"\([^)]*\)|-", " ", required[2]).split()))
            return
        if self.proof:
            if word in _ENDS:
                self._finish(word)
                return
            if word not in _OUTSIDE:
                self._step(word, body)
                return
            self.close("proofs that do not end")
        if tactic := _TACTIC.match(body):
            self.file.tactics.add(tactic[1] or tactic[2])
        elif (notation := _NOTATION.match(body)) and not sentence.startswith("Local"):
            self.file.notations.append((notation[1], notation[2]))
        elif word in ("Section", "Module", "End"):
            self._scope(word, body)
        elif word in LEMMAS or word in _GOALS or word in _LOCALS:
            self._declare(word, body[len(word) :].strip())
        elif word == "Proof":
            self.proof, self.script = ("", "", ""), []

    def _step(self, word: str, body: str) -> None:
        if word != "Proof":
            self.script.append(body)
            return
        rest = body[len("Proof") :].strip(" .")
        if rest and rest.split()[0] not in ("using", "with"):
            self.script.append(rest)
            self._finish("Proof")

    def _declare(self, kind: str, rest: str) -> None:
        if kind in _LOCALS and self.scopes:
            names = _GROUP.findall(rest) if rest[:1] in ("(", "{", "[", "`") else [re.split(r":|\.\Z", rest)[0]]
            names = [rest.split(" ")[0]] if kind == "Let" else [name for group in names for name in group.split()]
            self.scopes[-1][2].update(name.strip(".:") for name in names)
        if kind in _LOCALS and kind != "Let":
            return
        named = _NAMED.match(rest)
        if not named:
            self.file.odd["lemmas without a name"] += kind in LEMMAS
            if not split_statement(rest)[1]:
                self.proof, self.script = ("", "", ""), []
            return
        stated, term = split_statement(named[2])
        self.proof, self.script = (kind, named[1], stated), [term]
        if term or kind in ("Coercion", "Canonical"):
            self._finish(":=")

    def _finish(self, word: str) -> None:
        kind, name, stated = self.proof or ("", "", "")
        self.proof = None
        if kind not in LEMMAS and not (kind in self.proved and word in ("Qed", "Defined")):
            self.file.odd["definitions, instances and goals (no documents)"] += bool(kind)
        elif word in ("Admitted", "Abort"):
            self.file.odd[f"lemmas that end with {word} (no documents)"] += 1
        elif not stated:
            self.file.odd["lemmas without a statement"] += 1
        else:
            modules = tuple(scope for scope, is_module, _ in self.scopes if is_module)
            local = frozenset().union(*(names for *_, names in self.scopes))
            script = " ".join(self.script)
            self.file.lemmas.append(Lemma(kind, name, modules, stated, script, local - {name}))

    def close(self, reason: str) -> None:
        if self.proof and self.proof[0] in LEMMAS:
            self.file.odd[reason] += 1
            self._finish(reason)
        self.proof = None

    def _scope(self, word: str, body: str) -> None:
        names = _IDENTIFIER.findall(body)[1:]
        if word == "End":
            while names and self.scopes:
                if self.scopes.pop()[0] == names[0]:
                    break
            return
        names = [name for name in names if name not in ("Import", "Export", "Type")]
        self.file.modules.update(names[:1] if word == "Module" else ())
        if names and ":=" not in _REFINED.sub("", body):
            self.scopes.append((names[0], word == "Module", set()))


def split_statement(text: str) -> tuple[str, str]:
    """Return binders and type after a lemma's name, and the term after `:=` ("": none)."""
    text = text.strip().removesuffix(".")
    depth, lets, end = 0, 0, len(text)
    for mark in _BRACKET.finditer(text):
        if mark[0] in "([{)]}":
            depth += 1 if mark[0] in "([{" else -1
        elif depth == 0 and mark[0] == "let":
            lets += 1
        elif depth == 0 and lets:
            lets -= 1
        elif depth == 0:
            end = mark.start()
            break
    stated = text[:end].strip()
    return (stated[1:].strip() if stated.startswith(":") else stated), text[end + 2 :].strip()


def _project(folder: Path, sources: list[Path]) -> tuple[Path, list[str], set[str]]:
    """Return the folder of the project file, the files that it lists, and its logical names."""
    outside_tests = [path for path in sources if not _TESTS.search(path.relative_to(folder).as_posix())]
    inside = [folder, *sorted(path for path in folder.iterdir() if path.is_dir())]
    for root in inside:
        texts = [(root / name).read_text("utf-8", "replace") for name in PROJECTS if (root / name).is_file()]
        # A part of a library, such as its examples, may have a project file of its own, which lists that part only.
        if texts and all(path.is_relative_to(root) for path in outside_tests):
            lines = [line.split("#")[0].strip() for text in texts for line in text.splitlines()]
            roots = set(re.findall(r"-[RQ]\s+\S+\s+(\w+)", "\n".join(lines)))
            words = [word.strip('"') for line in lines for word in line.split()]
            return root, [posixpath.normpath(word) for word in words if word.endswith(".v")], roots
    return folder, [], set()


def _required(file: RocqFile, by_stem: dict[str, list[str]], roots: set[str]) -> list[str]:
    """Return the files that one requires; of several with the name, those whose folders agree with the most names.

    Where the library's *roots* are known, Coq.Bool.Bool is no file of its own unless all of these names agree.
    """
    required: set[str] = set()
    for prefix, names in file.requires:
        for name in names:
            parts = [*prefix.split("."), *name.split(".")] if prefix else name.split(".")
            same = by_stem.get(parts[-1], [])
            agreeing = {path: _common_end(Path(path).with_suffix("").parts, parts) for path in same}
            best = max(agreeing.values(), default=0)
            if not roots or parts[0] in roots or best == len(parts):
                required.update(path for path, count in agreeing.items() if count == best)
    return sorted(required)


def _common_end(ours: Sequence[str], theirs: Sequence[str]) -> int:
    pairs = zip(reversed(ours), reversed(theirs), strict=False)
    return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))


def _resolved(
    files: dict[str, RocqFile], ordered: list[str], needed: builder.Requirements, left_out: Counter[str]
) -> tuple[list[LibraryStatement], Row]:
    """Return the lemmas in order with the lemmas that they name, and counts of ambiguous names."""
    tactics = _TACTICS.union(*(file.tactics for file in files.values()))
    stems = Counter(Path(name).stem for name in files)
    modules = set(stems).union(*(file.modules for file in files.values()))
    known: dict[str, list[tuple[str, str]]] = defaultdict(list)  # name to file and id of each lemma, in their order
    named: dict[str, list[tuple[str, str]]] = defaultdict(list)  # the same for what notations name
    taken: Counter[str] = Counter()
    stated: list[LibraryStatement] = []
    mentions: Counter[str] = Counter()
    for path in ordered:
        find = _Finder(path, needed[path], known, named, modules)
        file = Path(path).stem if stems[Path(path).stem] == 1 else path.removesuffix(".v").replace("/", ".")
        for lemma in files[path].lemmas:
            uses = _uses(lemma, find, tactics, mentions)
            name = ".".join([file, *lemma.modules, lemma.name])
            taken[name] += 1
            left_out["lemmas with the name of an earlier one in the same module (their id ends with #2)"] += (
                taken[name] > 1
            )
            name += f"#{taken[name]}" if taken[name] > 1 else ""
            about = {"file": path, "kind": lemma.kind}
            stated.append(LibraryStatement(name, lemma.name, lemma.text, uses, len(stated), about))
            known[lemma.name].append((path, name))
        for name, target in files[path].notations:
            named[name] += [(path, document) for _, document in find.matches(target)[-1:]]
    left_out["mentions of a section's variable that has a lemma's name (no premises)"] = mentions.pop("local", 0)
    several = sum(len(places) > 1 for places in known.values())
    return stated, {"names": {"different": len(known), "of_several_lemmas": several, **mentions}}


@dataclass(frozen=True)
class _Finder:
    """What the names in a file mean: `known` lemmas, and those that notations of earlier files have `named`.

    A name behind that of a module or file, as in Order.le0x, may stand in a module that this one includes or exports;
    behind that of none of the library's *modules*, as in Nat.add_comm, it is another library's.
    """

    path: str
    needed: set[str]
    known: dict[str, list[tuple[str, str]]]
    named: dict[str, list[tuple[str, str]]]
    modules: Collection[str]

    def matches(self, mention: str) -> list[tuple[str, str]]:
        """Return file and id of the lemmas that a name may mean: of several, those of the same file last."""
        before, _, name = mention.rpartition(".")
        found = [*self.named.get(name, ()), *self.known.get(name, ())]
        reached = [(file, doc) for file, doc in found if file == self.path or file in self.needed]
        matches = [(file, doc) for file, doc in reached if f".{doc}".endswith(f".{mention}")]
        if not matches and (not before or before.rpartition(".")[2] in self.modules):
            matches = reached
        return sorted(matches, key=lambda match: match[0] == self.path)


def _uses(lemma: Lemma, find: _Finder, tactics: Collection[str], mentions: Counter[str]) -> list[str]:
    """Return the lemmas that a script names: of several, the last in the same file, else the last before it."""
    uses: dict[str, None] = {}
    for mention in _MENTION.findall(re.sub(r'"[^"]*"', " ", lemma.script)):
        if mention in tactics:
            continue
        matches = find.matches(mention)
        if mention in lemma.local:
            mentions["local"] += bool(matches)
        elif matches:
            mentions["mentions"] += 1
            mentions["ambiguous_mentions"] += len(matches) > 1
            uses[matches[-1][1]] = None
    return list(uses)
