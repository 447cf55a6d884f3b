"""origin: raw material from a folder, archive or git repository, and folders that appear together or not at all."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mirblab import digests, packed, partials, paths
from mirblab.collection import read_splits
from mirblab.errors import MirblabError
from mirblab.lines import find

_URL = re.compile(r"(?:https?|ssh|git|file)://|[\w.-]+@[\w.-]+:")


@dataclass(frozen=True)
class Origin:
    """Where raw material lies and comes from: `commit` is "" when unknown; `shown` is free of this machine's paths."""

    folder: Path
    source: str
    commit: str
    shown: str


@contextlib.contextmanager
def opened(origin: str | Path | None, default: str) -> Iterator[Origin]:
    """Yield the folder that *origin* stands for: a folder, a tar archive, a git URL, or None for the URL *default*.

    Archives are unpacked with path checks and clones are shallow, both into a temporary folder that is removed
    at the end; nothing is executed. Raises MirblabError for what cannot be found, unpacked or cloned.
    """
    text = default if origin is None else str(origin)
    path = paths.given(text)
    if origin is not None and path.is_dir():
        yield Origin(path, default, _commit(path) if (path / ".git").exists() else "", path.resolve().name)
        return
    if not _URL.match(text) and not path.is_file():
        raise MirblabError(f"'{text}' is neither a folder, nor an archive, nor a git URL; check the path")
    with tempfile.TemporaryDirectory(prefix="mirblab-") as name:
        folder = Path(name) / "source"
        if path.is_file():
            _unpack(path, folder)
            yield Origin(folder, default, "", path.name)
        else:
            public = re.sub(r"(?<=://)[^/@]*@", "", text)
            _clone(text, public, folder)
            yield Origin(folder, public, _commit(folder), "" if origin is None else public)


def _unpack(archive: Path, folder: Path) -> None:
    try:
        with packed.archived(archive) as file, tarfile.open(fileobj=file, mode="r:") as tar:
            size = 0
            for member in tar:
                size += member.size
                packed.check(archive, size)
            tar.extractall(folder, filter="data")
    except (MirblabError, MemoryError):
        raise
    except Exception as error:  # of a damaged header tarfile raises much besides its own errors
        what = f"{error}" or type(error).__name__
        raise MirblabError(f"{archive} cannot be unpacked: {what}; expected a .tar.gz with relative paths") from error


def _clone(url: str, public: str, folder: Path) -> None:
    # Without a terminal prompt, a private or misspelt address fails at once instead of waiting for a password.
    quiet = {**os.environ, "GIT_TERMINAL_PROMPT": "0", "GIT_LFS_SKIP_SMUDGE": "1"}
    command = ["git", "-c", "protocol.ext.allow=never", "clone", "--quiet", "--depth", "1", "--", url, str(folder)]
    instead = "give a folder or a .tar.gz with --from"
    try:
        done = subprocess.run(command, env=quiet, capture_output=True, text=True, errors="replace", timeout=1800)
    except FileNotFoundError as error:
        raise MirblabError(f"git is not installed, so {public} cannot be cloned; {instead}") from error
    except subprocess.TimeoutExpired as error:
        raise MirblabError(f"cloning {public} took over half an hour; {instead}") from error
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1].replace(url, public)
        raise MirblabError(f"cannot clone {public}: {last}; is there a network? Else {instead}")


def _commit(folder: Path) -> str:
    """Return the commit that is checked out, or "" when git is missing or refuses."""
    try:
        done = subprocess.run(["git", "-C", str(folder), "rev-parse", "HEAD"], capture_output=True, text=True)
    except FileNotFoundError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


@contextlib.contextmanager
def together(out: Path, names: tuple[str, ...]) -> Iterator[list[Path]]:
    """Yield new folders to fill; on success they become *out*/name, replacing older ones, on failure nothing changes.

    Each collection among them is read as `load` would read it, in every split, and each folder gets the digests of its
    files, before the first is moved. Only a folder that is empty or has a card.toml is replaced. Raises MirblabError
    for any other, and for a collection that cannot be read or has no query with a judgement in any split; StorageError
    when the disk or the rights do not allow it.
    """
    for name in names:
        target = out / name
        is_ours = (target / "card.toml").is_file() or (target.is_dir() and not any(target.iterdir()))
        if target.exists() and not is_ours:
            raise MirblabError(f"{target} exists and is no collection (it has no card.toml); move it away first")
    paths.make_folder(out)
    finish(out)
    beside = partials.beside(out / "build")
    new = [beside / "new" / name for name in names]
    with paths.writing(out):
        try:
            for folder in new:
                paths.make_folder(folder)
            yield new
            for folder in new:
                _check(folder, out)
                digests.keep(folder)
                paths.flush_tree(folder)
            _swap(new, [out / name for name in names], beside / "old")
            paths.flush_folder(out)
        finally:
            shutil.rmtree(beside / "old", ignore_errors=True)  # before what is new, which it says to be whole
            shutil.rmtree(beside, ignore_errors=True)


def _check(folder: Path, out: Path) -> None:
    """Raise MirblabError when *folder* holds a collection that will not load from *out*, or has nothing to ask."""
    if not find(folder, "corpus"):
        return
    try:
        splits = read_splits(folder)
    except (MirblabError, FileNotFoundError) as error:
        told = str(error).replace(str(folder.parent), str(out))
        raise MirblabError(f"{told} (this was about to be written; nothing was changed)") from error
    if all(one.qrels.empty for one in splits):
        raise MirblabError(
            f"'{folder.name}' would have no query with a judgement, so that nothing could be measured on it; nothing "
            f"was written in {out}; is the source whole?"
        )


def finish(out: Path) -> None:
    """Move into place what a killed build under *out* had begun to move, and remove what it had not written whole."""
    for left in sorted(out.glob(".*.partial.build")):
        if not partials.is_abandoned(left):
            continue
        own = partials.beside(out / "build")
        try:
            paths.move(left, own)
        except FileNotFoundError:  # another process does the same
            continue
        if (own / "old").is_dir():
            new = sorted((own / "new").glob("*"))  # none where the build was killed when it had moved all
            _swap(new, [out / folder.name for folder in new], own / "old")
        shutil.rmtree(own, ignore_errors=True)


def _swap(new: list[Path], targets: list[Path], attic: Path) -> None:
    """Rename each new folder to its target; when one fails, put everything back as it was.

    The *attic* is there as long as this lasts, which tells `finish` that all that is new had been written.
    """
    paths.make_folder(attic)
    undo: list[tuple[Path, Path]] = []
    try:
        for folder, target in zip(new, targets, strict=True):
            if target.exists():
                paths.move(target, attic / target.name)
                undo.append((attic / target.name, target))
            paths.move(folder, target)
            undo.append((target, folder))
    except BaseException:  # Ctrl-C, too
        for now, before in reversed(undo):
            paths.move(now, before)
        raise
