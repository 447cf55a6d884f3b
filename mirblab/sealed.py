"""sealed: files whose names end with a digest of their content, so that damage shows whenever one is read."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection
from pathlib import Path

from mirblab import damage, paths

_DIGEST = re.compile(r"-([0-9a-f]{32})$")


def write(folder: Path, stem: str, suffix: str, content: bytes | memoryview) -> Path:
    """Write *content* as `<stem>-<digest><suffix>` into *folder*, whole or not at all, and return its path."""
    path = folder / f"{stem}-{_digest(content)}{suffix}"
    paths.write_bytes(path, content)
    return path


def read(path: Path, then: str) -> bytes | None:
    """Return the bytes of a sealed file, or None when they are not those that its name was made from, or it is gone.

    A damaged file is set aside with a warning, in which *then* says what follows for the user.
    """
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        damage.tell(path, f"it cannot be read: {error.strerror}", then)
        return None
    if path.stem.endswith(f"-{_digest(content)}"):
        return content
    damage.set_aside(path, "its content is not what its name was made from", then)
    return None


def is_sealed(path: Path) -> bool:
    """Return whether *path* is a file whose name ends with a digest; its content is not read."""
    return _DIGEST.search(path.stem) is not None and path.is_file()


def verify(folder: Path, suffix: str, then: str, older: Collection[Path] = ()) -> list[str]:
    """Read all sealed files in *folder*; set damaged ones aside; return a line for each, and for each stranger.

    *older* are the files of an older version, which nobody reads.
    """
    wrong = []
    for path in damage.sound(folder):
        if path in older:
            continue
        if path.suffix != suffix or not is_sealed(path):
            wrong.append(damage.stranger(path))
        elif read(path, then) is None:
            wrong.append(f"{path} is damaged; {then}")
    return wrong


def _digest(content: bytes | memoryview) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()
