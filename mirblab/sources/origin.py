"""origin: raw material from a folder, archive or git repository, and folders that appear together or not at all."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import tarfile
import tempfile
import uuid
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mirblab import paths
from mirblab.errors import MirblabError

_URL = re.compile(r"(?:https?|ssh|git|file)://|[\w.-]+@[\w.-]+:")
_MOST_BYTES = 2**31


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
    path = Path(text).expanduser()
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
        with tarfile.open(archive, "r:*") as tar:
            size = sum(member.size for member in tar)
            if size > _MOST_BYTES:
                raise MirblabError(f"{archive} unpacks to {size:,} bytes, over the limit of {_MOST_BYTES:,}; check it")
            tar.extractall(folder, filter="data")
    except (tarfile.TarError, EOFError, OSError, zlib.error) as error:
        raise MirblabError(f"{archive} cannot be unpacked: {error}; expected a .tar.gz with relative paths") from error


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

    Only a folder that is empty or has a card.toml is replaced; MirblabError for any other.
    """
    for name in names:
        target = out / name
        is_ours = (target / "card.toml").is_file() or (target.is_dir() and not any(target.iterdir()))
        if target.exists() and not is_ours:
            raise MirblabError(f"{target} exists and is no collection (it has no card.toml); move it away first")
    out.mkdir(parents=True, exist_ok=True)
    beside = out / f".{uuid.uuid4().hex[:12]}.partial"
    new = [beside / "new" / name for name in names]
    try:
        for folder in new:
            folder.mkdir(parents=True)
        yield new
        for folder in new:
            for inner in [folder, *folder.rglob("*/")]:
                paths.flush_folder(inner)
        _swap(new, [out / name for name in names], beside / "old")
        paths.flush_folder(out)
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _swap(new: list[Path], targets: list[Path], attic: Path) -> None:
    """Rename each new folder to its target; when one fails, put everything back as it was."""
    attic.mkdir()
    undo: list[tuple[Path, Path]] = []
    try:
        for folder, target in zip(new, targets, strict=True):
            if target.exists():
                os.replace(target, attic / target.name)
                undo.append((attic / target.name, target))
            os.replace(folder, target)
            undo.append((target, folder))
    except OSError:
        for now, before in reversed(undo):
            os.replace(now, before)
        raise
