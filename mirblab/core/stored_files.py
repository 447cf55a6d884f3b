"""Stored files whose names hold a digest of their content, and damaged files, which are set aside."""

from __future__ import annotations

import hashlib
import re
import uuid
import warnings
from pathlib import Path

from mirblab.core import atomic_files

SUFFIX = ".damaged"
_DIGEST = re.compile(r"-([0-9a-f]{32})$")


def write_sealed(folder: Path, stem: str, suffix: str, content: bytes | memoryview) -> Path:
    """Write *content* as `<stem>-<digest><suffix>` into *folder*, whole or not at all, and return its path."""
    path = folder / f"{stem}-{_digest(content)}{suffix}"
    atomic_files.write_bytes(path, content)
    return path


def read_sealed(path: Path, then: str) -> bytes | None:
    """Return a sealed file's bytes, or None if it is missing, or damaged and set aside with a warning (*then*)."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        warn_passed_over(path, f"it cannot be read: {error.strerror}", then)
        return None
    if path.stem.endswith(f"-{_digest(content)}"):
        return content
    set_aside(path, "its content is not what its name was made from", then)
    return None


def is_sealed(path: Path) -> bool:
    """Return whether *path* is a file whose name ends with a digest; its content is not read."""
    return _DIGEST.search(path.stem) is not None and path.is_file()


def verify_sealed(folder: Path, suffix: str, then: str) -> list[str]:
    """Check all sealed files in *folder*; set damaged ones aside; return a line for each problem."""
    wrong = []
    for path in sound_paths(folder):
        if path.suffix != suffix or not is_sealed(path):
            wrong.append(unknown_file_message(path))
        elif read_sealed(path, then) is None:
            wrong.append(f"{path} is damaged; {then}")
    return wrong


def set_aside(path: Path, reason: str, then: str) -> bool:
    """Rename a damaged *path* to `<name>.damaged`, and warn what follows (*then*); return False where impossible."""
    aside = path.with_name(f"{path.name}{SUFFIX}")
    if aside.exists():
        aside = path.with_name(f"{path.name}.{uuid.uuid4().hex[:8]}{SUFFIX}")
    try:
        atomic_files.rename_path(path, aside)
    except FileNotFoundError:
        return True
    except OSError as error:
        warn_passed_over(path, f"{reason}; it could not be renamed: {error.strerror}", then)
        return False
    warnings.warn(f"{path} is damaged ({reason}) and was set aside as {aside.name}; {then}", stacklevel=3)
    return True


def warn_passed_over(path: Path, reason: str, then: str) -> None:
    """Warn that *path* is not used, and stays as it is."""
    warnings.warn(f"{path} is passed over ({reason}); {then}", stacklevel=3)


def unknown_file_message(path: Path) -> str:
    """Return the message about a file or folder that no store has written."""
    return f"{path} does not belong here and is never read; move it away"


def sound_paths(folder: str | Path) -> list[Path]:
    """Return the files and folders directly in *folder*, by name, without unfinished ones and those set aside."""
    return [
        path for path in sorted(Path(folder).glob("*"))
        if not path.name.endswith(SUFFIX) and not atomic_files.is_unfinished(path)
    ]  # fmt: skip


def damaged_paths(folder: str | Path) -> list[Path]:
    """Return the files and folders in *folder* and below that were set aside, by path."""
    return atomic_files.matching_paths(folder, lambda name: name.endswith(SUFFIX))


def _digest(content: bytes | memoryview) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()
