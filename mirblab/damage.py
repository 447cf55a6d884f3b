"""damage: what is not what was written is set aside under another name and told of, never used and never deleted."""

from __future__ import annotations

import os
import uuid
import warnings
from pathlib import Path

from mirblab import partials, paths

SUFFIX = ".damaged"


def set_aside(path: Path, reason: str, then: str) -> bool:
    """Rename the damaged file or folder *path* to `<name>.damaged`, and warn; return whether it is out of the way.

    *then* says what follows for the user. Where it cannot be renamed, as in a folder that is read-only, the warning
    says so, and the caller passes it over. What another process has set aside or removed meanwhile is no news.
    """
    aside = path.with_name(f"{path.name}{SUFFIX}")
    if aside.exists():
        aside = path.with_name(f"{path.name}.{uuid.uuid4().hex[:8]}{SUFFIX}")
    try:
        paths.move(path, aside)
    except FileNotFoundError:
        return True
    except OSError as error:
        tell(path, f"{reason}; it could not be renamed: {error.strerror}", then)
        return False
    warnings.warn(f"{path} is damaged ({reason}) and was set aside as {aside.name}; {then}", stacklevel=3)
    return True


def tell(path: Path, reason: str, then: str) -> None:
    """Warn that *path*, which stays where it is, is passed over."""
    warnings.warn(f"{path} is passed over ({reason}); {then}", stacklevel=3)


def stranger(path: Path) -> str:
    """Return the line for a file or folder that no store has written where it is."""
    return f"{path} does not belong here and is never read; move it away"


def sound(folder: str | Path) -> list[Path]:
    """Return what lies in *folder* itself, by name, but what is unfinished or was set aside."""
    return [
        path for path in sorted(Path(folder).glob("*"))
        if not path.name.endswith(SUFFIX) and not partials.is_partial(path)
    ]  # fmt: skip


def within(folder: str | Path) -> list[Path]:
    """Return the files and folders in *folder* and below that were set aside, by path."""
    damaged = []
    for root, folders, files in os.walk(folder):
        damaged += [Path(root) / name for name in folders + files if name.endswith(SUFFIX)]
        folders[:] = [name for name in folders if not name.endswith(SUFFIX)]
    return sorted(damaged)
