"""rocq: a Rocq library's files to one collection: lemma to the earlier lemmas that its proof script names."""

from __future__ import annotations

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

from mirblab.errors import MirblabError
from mirblab.progress import progress
from mirblab.sources import origin as origins
from mirblab.sources import premises, rocq_source, shape
from mirblab.sources.premises import Stated
from mirblab.sources.rocq_source import File, Lemma
from mirblab.sources.shape import Row

URL = "https://github.com/math-comp/math-comp"
LICENCE = "CECILL-B"
NAME = "rocq-premise"
PROJECTS = ("Make", "_RocqProject", "_CoqProject")
_TESTS = re.compile(r"(?:^|/)(?:tests?|test[-_]suite)/")
_MENTION = re.compile(r"(?<![\w'.])[^\W\d][\w']*(?:\.[^\W\d][\w']*)*")
# Tactics, tacticals and vernacular words: in a script they are never a lemma, even when one has their name.
_TACTICS = frozenset(
    """abstract admit apply assert assumption auto by case change clear congr constructor contradiction cut destruct
    discriminate do done eapply eauto elim else exact exists fail field first fix fold forall from fun gen
    generalize have idtac if in induction injection intro intros inversion last left let lia linear lra match
    move nia now of pose reflexivity return revert rewrite right ring set simpl solve split subst suff
    suffices symmetry then transitivity trivial try under unfold unlock using where with without wlog yield""".split()
)
ABOUT = {
    "title": "Mathematical Components (Rocq): lemma to the lemmas that its proof names",
    "task": "Premise Retrieval",
    "language": "Rocq",
    "instruction": "Given a Rocq statement, retrieve the lemmas that are useful for proving it.",
    "candidates": "earlier",
    "note": "Read from text, without Rocq: variables and hypotheses of the enclosing section are not in the "
    "statements; premises are the names in the script, so that lemmas used by automation or hints are missing.",
}


def build(origin: str | Path | None, out: Path, *, seed: int = 0) -> list[Path]:
    """Write rocq-premise under *out*, print what was left out, and return its folder.

    *origin* is a folder, a .tar.gz, a git URL, or None for a shallow clone of the public repository of math-comp.
    Read are the files that its project file lists, or all, tests left out. *seed* draws the test queries. The
    same input and seed give the same bytes. Raises MirblabError when there is no lemma, and for text that is not
    UTF-8. The licence in the card is that of math-comp.
    """
    out = Path(out)
    with origins.opened(origin, URL) as found, origins.together(out, (NAME,)) as [folder]:
        left_out: Counter[str] = Counter()
        files, roots, digest = _read(found.folder, left_out)
        ordered, needed = in_order(files, roots, left_out)
        stated, more = _resolved(files, ordered, needed, left_out)
        if not stated:
            raise MirblabError(f"{found.shown or URL}: found {len(files)} .v files and no lemma; is it a Rocq library?")
        parts, content = premises.parts(stated, seed, left_out), f"blake2b:{digest}"
        about = ABOUT | {"content": content, "seed": seed, **more}
        shape.save(folder, parts, about, found, builder="rocq", revision=content, licence=LICENCE)
    return [out / NAME]


def _read(folder: Path, left_out: Counter[str]) -> tuple[dict[str, File], set[str], str]:
    """Return the files by path, the logical names of the project, and a hash of what was read."""
    root, listed, roots = _project(folder)
    known = {path.relative_to(root).as_posix(): path for path in sorted(root.rglob("*.v"))}
    names = [name for name in listed if name in known] or list(known)
    kept = sorted({name for name in names if not _TESTS.search(name)})
    left_out["files of tests, or that the project does not list"] = len(known) - len(kept)
    digest = hashlib.blake2b(digest_size=16)
    files: dict[str, File] = {}
    with progress(len(kept), "reading files", "file") as bar:
        for name in kept:
            raw = known[name].read_bytes()
            digest.update(f"{name} {len(raw)}\n".encode() + raw)
            try:
                files[name] = rocq_source.read(raw.decode("utf-8-sig"))
            except UnicodeDecodeError as error:
                line = raw.count(b"\n", 0, error.start) + 1
                raise MirblabError(f"{name}, line {line}: not UTF-8; take the files of the git repository") from error
            left_out.update(files[name].odd)
            bar.update(1)
    return files, roots, digest.hexdigest()


def _project(folder: Path) -> tuple[Path, list[str], set[str]]:
    """Return the root of a library, the files that its project file lists, and the logical names that it gives."""
    inside = [folder, *sorted(path for path in folder.iterdir() if path.is_dir())]
    for root in inside:
        texts = [(root / name).read_text("utf-8", "replace") for name in PROJECTS if (root / name).is_file()]
        if texts:
            lines = [line.split("#")[0].strip() for text in texts for line in text.splitlines()]
            roots = set(re.findall(r"-[RQ]\s+\S+\s+(\w+)", "\n".join(lines)))
            return root, [line for line in lines if line.endswith(".v")], roots
    return folder, [], set()


def in_order(files: dict[str, File], roots: set[str], left_out: Counter[str]) -> tuple[list[str], dict[str, set[str]]]:
    """Return the files so that each stands after those that it requires, and all that each requires, far or near.

    Ties go by path. What is required from other libraries is passed over; a circle is broken and counted.

    >>> files = {"a.v": File([("", ["b"])]), "b.v": File()}
    >>> in_order(files, set(), Counter())
    (['b.v', 'a.v'], {'b.v': set(), 'a.v': {'b.v'}})
    """
    by_stem: dict[str, list[str]] = defaultdict(list)
    for name in files:
        by_stem[Path(name).stem].append(name)
    needed: dict[str, set[str]] = {}
    open_files: set[str] = set()

    def visit(name: str) -> None:
        open_files.add(name)
        found: set[str] = set()
        for other in _required(files[name], by_stem, roots):
            if other in open_files:
                left_out["requirements in a circle"] += other != name
                continue
            if other not in needed:
                visit(other)
            found |= {other, *needed[other]}
        open_files.discard(name)
        needed[name] = found

    for name in sorted(files):
        if name not in needed:
            visit(name)
    return list(needed), needed


def _required(file: File, by_stem: dict[str, list[str]], roots: set[str]) -> list[str]:
    """Return the files that one requires; of several with the name, those in the folder that the prefix names."""
    found: list[str] = []
    for prefix, names in file.requires:
        for name in names:
            parts = [*prefix.split("."), *name.split(".")] if prefix else name.split(".")
            if roots and prefix and parts[0] not in roots:
                continue
            same = by_stem.get(parts[-1], [])
            near = [path for path in same if set(parts[1:-1]) & set(Path(path).parts[:-1])]
            found += near or same
    return sorted(set(found))


def _resolved(
    files: dict[str, File], ordered: list[str], needed: dict[str, set[str]], left_out: Counter[str]
) -> tuple[list[Stated], Row]:
    """Return the lemmas in order with the lemmas that they name, and how many names were ambiguous."""
    tactics = _TACTICS.union(*(file.tactics for file in files.values()))
    stems = Counter(Path(name).stem for name in files)
    known: dict[str, list[tuple[str, int, str]]] = defaultdict(list)  # name to path, order and id of each lemma
    taken: Counter[str] = Counter()
    stated: list[Stated] = []
    mentions: Counter[str] = Counter()
    for path in ordered:
        file = Path(path).stem if stems[Path(path).stem] == 1 else path.removesuffix(".v").replace("/", ".")
        for lemma in files[path].lemmas:
            uses = _uses(lemma, path, needed[path], known, tactics, mentions)
            name = ".".join([file, *lemma.modules, lemma.name])
            taken[name] += 1
            name += f"#{taken[name]}" if taken[name] > 1 else ""
            place = len(stated)
            stated.append(Stated(name, lemma.name, lemma.text, uses, place, {"file": path, "kind": lemma.kind}))
            known[lemma.name].append((path, place, name))
    left_out["lemmas with the name of an earlier one in the same module (their id ends with #2)"] = sum(
        count - 1 for count in taken.values()
    )
    left_out["mentions of a section's variable that has a lemma's name (no premises)"] = mentions.pop("local", 0)
    several = sum(len(places) > 1 for places in known.values())
    return stated, {"names": {"different": len(known), "of_several_lemmas": several, **mentions}}


def _uses(
    lemma: Lemma,
    path: str,
    needed: set[str],
    known: dict[str, list[tuple[str, int, str]]],
    tactics: Iterable[str],
    mentions: Counter[str],
) -> list[str]:
    """Return the lemmas that a script names: of several, the last in the same file, else the last one before."""
    found: dict[str, None] = {}
    for mention in _MENTION.findall(re.sub(r'"[^"]*"', " ", lemma.script)):
        name = mention.rpartition(".")[2]
        if mention in tactics or name not in known:
            continue
        places = [place for place in known[name] if place[0] == path or place[0] in needed]
        places = [place for place in places if f".{place[2]}".endswith(f".{mention}")] or places
        if mention in lemma.local:
            mentions["local"] += bool(places)
        elif places:
            mentions["mentions"] += 1
            mentions["ambiguous_mentions"] += len(places) > 1
            found[([place for place in places if place[0] == path] or places)[-1][2]] = None
    return list(found)
