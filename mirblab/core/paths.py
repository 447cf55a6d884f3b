"""Where data, caches, models and figures are, and names that can be paths."""

from __future__ import annotations

import atexit
import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from mirblab.core.errors import MirblabError, MissingFileError
from mirblab.core.wording import cut_long

_PACKAGE_FOLDER = Path(__file__).resolve().parents[1]
_DEVICE_NAMES = re.compile(r"(?i)(?:con|prn|aux|nul|com[0-9]|lpt[0-9])\s*")  # what Windows calls its devices


def home() -> Path:
    """Return the folder of all data and results: `MIRBLAB_HOME`, else the checkout, else the platform's data folder."""
    from platformdirs import user_data_path

    named = os.environ.get("MIRBLAB_HOME")
    return expand_home(named).resolve() if named else checkout_root() or user_data_path("mirblab")


def data() -> Path:
    """Return the folder of the collections that were built or added."""
    return home() / "data"


def cache() -> Path:
    """Return the folder of stored vectors and runs, which is safe to delete, but slow to compute again."""
    return home() / "cache"


def models() -> Path:
    """Return the folder of the models that were trained here."""
    return home() / "models"


def figures() -> Path:
    """Return the folder of tables, figures and executed notebooks."""
    return home() / "figures"


def checkout_root() -> Path | None:
    """Return the root of the git checkout that this package runs from, or None when it was installed as a wheel."""
    root = _PACKAGE_FOLDER.parent
    return root if (root / "pyproject.toml").is_file() and (root / "notebooks").is_dir() else None


def bundled_path(*parts: str) -> Path:
    """Return the path of a file or folder that ships with the project; FileNotFoundError when it is not installed."""
    for root in (checkout_root(), _PACKAGE_FOLDER / "bundled"):
        if root is not None and (path := root.joinpath(*parts)).exists():
            return path
    raise MissingFileError(f"this installation lacks {'/'.join(parts)}; reinstall mirblab")


@lru_cache(maxsize=1)
def scratch_folder() -> Path:
    """Return a temporary folder of this process, which is removed when it ends."""
    folder = Path(tempfile.mkdtemp(prefix="mirblab-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def expand_home(path: str | Path) -> Path:
    """Return a path in which "~" is replaced by the user's home folder; it stays where there is no such user."""
    return Path(os.path.expanduser(path))


def path_exists(path: str | Path) -> bool:
    """Return whether there is a file or folder at *path*; also False for a name that is too long or has a zero byte."""
    return os.path.exists(path)


def checked_name(name: str, longest: int = 100, of: str = "a collection") -> str:
    """Return *name* if it can name a folder on every platform, of at most *longest* bytes, else raise MirblabError.

    *of* is what it names, for the error.
    """
    bad = set('<>:"/\\|?*') & set(name)
    if not name or bad or name.strip(". ") != name or not name.isprintable():
        why = "use letters, digits, '-', '_', '+' and '.'"
    elif _DEVICE_NAMES.fullmatch(name.partition(".")[0]):
        why = "Windows keeps it for a device"
    elif len(name.encode()) > longest:
        why = f"it takes {len(name.encode()):,} bytes, of at most {longest}"
    else:
        return name
    raise MirblabError(f"{cut_long(name, longest)!r} cannot name {of}; {why}")


def content_digest(path: Path) -> bytes:
    """Return a hash of a file, or of the names and bytes of all files of a folder except hidden ones."""
    digest = hashlib.blake2b(digest_size=16)
    files = sorted(file for file in path.rglob("*") if file.is_file() and not file.name.startswith("."))
    for file in [path] if path.is_file() else files:
        if file != path:
            digest.update(file.relative_to(path).as_posix().encode() + b"\0")
        with open(file, "rb") as opened:
            hashlib.file_digest(opened, lambda: digest)  # block by block
    return digest.digest()


def total_size(files: Iterable[os.PathLike[str]]) -> int:
    """Return the bytes of *files*, without those that somebody removed since they were listed."""
    n_bytes = 0
    for file in files:
        with suppress(FileNotFoundError):
            n_bytes += os.stat(file).st_size
    return n_bytes


def readable_size(n_bytes: float) -> str:
    """Return a size for people.

    >>> readable_size(0), readable_size(3_100_000)
    ('0 B', '3.1 MB')
    """
    for unit in ("B", "kB", "MB", "GB"):
        if n_bytes < 1000:
            return f"{n_bytes:.0f} {unit}" if unit == "B" else f"{n_bytes:.1f} {unit}"
        n_bytes /= 1000
    return f"{n_bytes:.1f} TB"
