"""paths: where data, caches and figures live, and how a file appears whole or not at all."""

from __future__ import annotations

import hashlib
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mirblab.errors import MirblabError

_PACKAGE = Path(__file__).resolve().parent


def checkout() -> Path | None:
    """Return the root of the git checkout that this package runs from, or None when it was installed as a wheel."""
    root = _PACKAGE.parent
    return root if (root / "pyproject.toml").is_file() and (root / "notebooks").is_dir() else None


def home() -> Path:
    """Return the folder that holds `data/`, `cache/`, `models/` and `figures/`.

    `MIRBLAB_HOME` when it is set, else the checkout, else the platform's folder for user data.
    """
    named = os.environ.get("MIRBLAB_HOME")
    if named:
        return Path(named).expanduser().resolve()
    root = checkout()
    if root is not None:
        return root
    from platformdirs import user_data_path

    return user_data_path("mirblab")


def data() -> Path:
    """Return the folder of the collections that were built or added: `<home>/data`."""
    return home() / "data"


def cache() -> Path:
    """Return the folder of stored vectors and runs: `<home>/cache`; safe to delete, costly to make again."""
    return home() / "cache"


def models() -> Path:
    """Return the folder of the models that were trained here: `<home>/models`."""
    return home() / "models"


def figures() -> Path:
    """Return the folder of tables, figures and executed notebooks: `<home>/figures`."""
    return home() / "figures"


def bundled(*parts: str) -> Path:
    """Return the path of something that ships with the project, for example `bundled("data", "mini")`.

    Raises FileNotFoundError when the installation lacks it.
    """
    for root in (checkout(), _PACKAGE / "bundled"):
        if root is not None and (path := root.joinpath(*parts)).exists():
            return path
    raise FileNotFoundError(f"this installation lacks {'/'.join(parts)}; reinstall mirblab")


@contextmanager
def write_atomically(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path beside *path*; on success it is flushed to disk and renamed, on failure removed.

    Readers see the old file or the new one, never a half. The temporary name keeps all suffixes, so that
    writers which look at them (gzip, parquet) behave alike.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{uuid.uuid4().hex[:12]}.partial.{path.name}")
    try:
        yield beside
        with open(beside, "rb+") as file:
            os.fsync(file.fileno())
        os.replace(beside, path)
        flush_folder(path.parent)
    finally:
        beside.unlink(missing_ok=True)


def flush_folder(folder: Path) -> None:
    """Put the folder's entries on disk, so that a rename survives a loss of power; Windows has no way to ask."""
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def content(path: Path) -> bytes:
    """Return a hash of a file, or of the names and bytes of all files of a folder, hidden ones left out."""
    digest = hashlib.blake2b(path.read_bytes() if path.is_file() else b"", digest_size=16)
    for one in sorted(one for one in path.rglob("*") if one.is_file() and not one.name.startswith(".")):
        digest.update(one.relative_to(path).as_posix().encode() + b"\0" + one.read_bytes())
    return digest.digest()


def clean_name(name: str) -> str:
    """Return *name* if it can name a folder on every platform, else raise MirblabError.

    >>> clean_name("stacks-qa")
    'stacks-qa'
    """
    bad = set('<>:"/\\|?*') & set(name)
    if not name or bad or name.strip(". ") != name or any(ord(char) < 32 for char in name):
        raise MirblabError(f"'{name}' cannot name a collection; use letters, digits, '-', '_', '+' and '.'")
    return name
