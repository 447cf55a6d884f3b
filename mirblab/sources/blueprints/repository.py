"""repository: repositories of blueprints in a folder, as folders or archives, and the texts of their files."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mirblab.core.errors import MirblabError
from mirblab.core.terminal import progress
from mirblab.core.wording import first_names
from mirblab.sources.shared import release
from mirblab.sources.shared.release import Origin

ADDRESS = "the public repositories of the blueprints"
_ARCHIVE = re.compile(r"\.(?:tar|tar\.gz|tgz|tar\.bz2|tar\.xz|zip)$", re.IGNORECASE)
_MARKS = ("lakefile.lean", "lakefile.toml", "lean-toolchain", "blueprint")
_REVISION = re.compile(r"-(?:main|master|(?P<commit>[0-9a-f]{40}|v?\d[\w.]*))$")
_NODE = re.compile(rb"\\(?:lean|uses)\s*\{")
# Dependencies and build outputs are no part of a repository.
_NOT_ITS_OWN = frozenset({".git", ".lake", "lake-packages", "build", "node_modules"})


@dataclass
class Repository:
    """A repository's texts by path: all Lean files, and the LaTeX of its blueprint; `licence` may be "none stated"."""

    name: str
    commit: str = ""
    licence: str = "none stated"
    lean: dict[str, str] = field(default_factory=dict)
    latex: dict[str, str] = field(default_factory=dict)
    digest: str = ""


def read_repositories(found: Origin, odd: Counter[str]) -> Iterator[Repository]:
    """Yield the repositories at an origin by name: the folder itself, or the folders and archives in it."""
    inside = sorted(found.folder.iterdir())
    places = find_roots(found.folder) or [
        path for path in inside if find_roots(path) or (path.is_file() and _ARCHIVE.search(path.name))
    ]
    if not places:
        shown = first_names((path.name for path in inside), 8)
        raise MirblabError(
            f"{found.shown or found.folder.name} holds no repository (a folder with a lakefile, a lean-toolchain or a "
            f"blueprint) and no archive of one; found {shown}"
        )
    taken: dict[str, str] = {}
    with progress(len(places), "reading repositories", "repository") as bar:
        for place in places:
            for repository in _read(place, found, odd):
                if other := taken.get(repository.name):
                    raise MirblabError(
                        f"{other} and {place.name} are both the repository '{repository.name}'; keep one"
                    )
                taken[repository.name] = place.name
                yield repository
            bar.update(1)


def _read(place: Path, found: Origin, odd: Counter[str]) -> Iterator[Repository]:
    with release.open_origin(place, "") as opened:
        for root in find_roots(opened.folder) or [opened.folder]:
            name = _ARCHIVE.sub("", place.name) if root == opened.folder and place.is_file() else root.name
            # A single archive is unpacked into a temporary folder, whose name means nothing.
            name = _ARCHIVE.sub("", found.shown) if root == found.folder and found.shown else name
            commit = opened.commit or (found.commit if place == found.folder else "")
            if revision := _REVISION.search(name):
                name, commit = name[: revision.start()], commit or revision["commit"] or ""
            repository = read_repository(root, "_".join(name.split()), commit, odd)
            if repository.lean:
                yield repository
            else:
                odd["repositories without Lean"] += 1


def read_repository(root: Path, name: str, commit: str, odd: Counter[str]) -> Repository:
    """Return the texts of the repository in the folder *root*; files in other encodings are counted in *odd*."""
    repository, digest = Repository(name, commit, release.find_licence(root)), hashlib.blake2b(digest_size=16)
    found = sorted((path.relative_to(root).as_posix(), path) for path in root.rglob("*") if path.is_file())
    files = {short: path for short, path in found if _NOT_ITS_OWN.isdisjoint(short.split("/"))}
    latex = _find_latex({short: path for short, path in files.items() if path.suffix == ".tex"})
    for short, path in files.items():
        is_lean = path.suffix == ".lean" and short != "lakefile.lean"
        if is_lean or short in latex:
            raw = path.read_bytes()
            digest.update(f"{short} {len(raw)}\n".encode() + raw)
            (repository.lean if is_lean else repository.latex)[short] = decode_source(raw, odd)
    repository.digest = f"blake2b:{digest.hexdigest()}"
    return repository


def _find_latex(files: Mapping[str, Path]) -> set[str]:
    r"""Return the files of a blueprint: below a folder of that name, else in a folder with a \lean or \uses."""
    named = {short for short in files if any("blueprint" in part.lower() for part in short.split("/")[:-1])}
    if named:
        return named
    folders = {short.partition("/")[0] for short, path in files.items() if _NODE.search(path.read_bytes())}
    return {short for short in files if short.partition("/")[0] in folders}


def content_revision(content: str) -> str:
    """Return the revision of a collection for its card, a digest of what was read."""
    return f"blake2b:{hashlib.blake2b(content.encode(), digest_size=16).hexdigest()}"


def decode_source(raw: bytes, odd: Counter[str]) -> str:
    """Return a file's text with Unix line ends; one that is not UTF-8 is read as UTF-16 or Latin-1, and counted."""
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        odd["files that are not UTF-8 (read as UTF-16 or Latin-1)"] += 1
        text = raw.decode("utf-16" if raw[:2] in (b"\xff\xfe", b"\xfe\xff") else "latin-1", "replace")
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "")


def find_roots(folder: Path) -> list[Path]:
    """Return *folder* if it is a repository, or the repository that is its only entry, as in an unpacked archive."""
    if not folder.is_dir():
        return []
    if any((folder / mark).exists() for mark in _MARKS):
        return [folder]
    inside = [path for path in folder.iterdir() if not path.name.startswith(".")]
    return find_roots(inside[0]) if len(inside) == 1 else []
