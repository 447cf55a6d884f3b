"""Digests of a collection's files, stored when it is built or added, and the check against them."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

from mirblab.core import atomic_files, stored_files
from mirblab.core.errors import MirblabError

DIGEST_FILE = "digests.txt"
_LINE = re.compile(r"([0-9a-f]{64})  (.+)")


def write_digests(folder: Path) -> None:
    """Write the BLAKE2b digests of all files below *folder* to `digests.txt`, in the format of `b2sum --length=256`."""
    text = "".join(f"{digest}  {name}\n" for name, digest in _current_digests(folder).items())
    atomic_files.write_bytes(folder / DIGEST_FILE, text.encode("utf-8", "surrogateescape"))


def check_digests(folder: Path, read: Mapping[Path, str] = MappingProxyType({})) -> None:
    """Raise MirblabError when a file of *folder* differs from its digest, is missing or new; see `find_differences`."""
    wrong = find_differences(folder, read)
    if wrong:
        more = f" and {len(wrong) - 3:,} more" if len(wrong) > 3 else ""
        raise MirblabError(
            f"{folder} is not as it was built or added ({DIGEST_FILE}): {'; '.join(wrong[:3])}{more}; remove it and "
            f"build or add it anew, or accept it as a new collection: mirblab add {shlex.quote(str(folder))} --again"
        )


def find_differences(folder: Path, read: Mapping[Path, str] = MappingProxyType({})) -> list[str]:
    """Return a phrase for each file of *folder* that differs from its digest; none where no digests were stored.

    Every file is hashed, except those just read, whose digests are in *read*. MirblabError for an unreadable folder.
    """
    content = read_digest_file(folder)
    if content is None:
        return []
    now = _current_digests(folder, read)
    before: dict[str, str] = {}
    for number, line in enumerate(content.decode("utf-8", "surrogateescape").split("\n"), 1):
        match = _LINE.fullmatch(line)
        if match:
            before[match[2]] = match[1]
        elif line:
            return [f"{DIGEST_FILE}, line {number}, is not a digest and the name of a file"]
    return [
        f"{_printable_name(name)} {_difference(before.get(name), now.get(name))}"
        for name in sorted({*before, *now})
        if before.get(name) != now.get(name)
    ]


def verify_collections(folder: Path) -> list[str]:
    """Compare the collections in *folder* with their digests; return a line for each difference and unknown file."""
    wrong = [stored_files.unknown_file_message(path) for path in stored_files.sound_paths(folder) if not path.is_dir()]
    folders = [path for path in stored_files.sound_paths(folder) if path.is_dir()]
    return wrong + [f"{path}: {line}; it is made again" for path in folders for line in find_differences(path)[:3]]


def has_digests(folder: Path) -> bool:
    """Return whether *folder* has a `digests.txt`, which folders that were copied by hand or are older lack."""
    return read_digest_file(folder) is not None


def read_digest_file(folder: Path) -> bytes | None:
    """Return the content of the folder's `digests.txt`, which differs between builds; None where there is none."""
    try:
        return (folder / DIGEST_FILE).read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        raise MirblabError(f"{str(folder)[:200]!r} cannot be read: {error}") from error


def _current_digests(folder: Path, read: Mapping[Path, str] = MappingProxyType({})) -> dict[str, str]:
    """Return the digest of every file below *folder* by relative name; a line feed in a name is written as \\n."""
    names = {name.replace("\n", "\\n"): path for name, path in _walk_files(str(folder), "")}
    return {
        name: read.get(Path(names[name])) or file_digest(names[name]) for name in sorted(names) if name != DIGEST_FILE
    }


def _walk_files(folder: str, prefix: str) -> Iterator[tuple[str, str]]:
    """Yield name and path of the files below a folder; `Path.rglob` takes as long as hashing a small collection."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name[0] == ".":
                continue
            if entry.is_dir(follow_symlinks=False):
                yield from _walk_files(entry.path, f"{prefix}{entry.name}/")
            elif entry.is_file():
                yield prefix + entry.name, entry.path


def file_digest(path: str | Path) -> str:
    """Return the BLAKE2b digest of a file (32 bytes, hexadecimal); MirblabError when it cannot be read."""
    try:
        file = open(path, "rb")  # noqa: SIM115  closed below
    except OSError as error:
        raise MirblabError(f"{path} cannot be read: {error.strerror}; copy it again, or change its rights") from error
    with file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=32)).hexdigest()


def _difference(before: str | None, now: str | None) -> str:
    if before is None:
        return "is new"
    return "is missing" if now is None else "has another content"


def _printable_name(name: str) -> str:
    """Return a file's name with unprintable characters escaped, such as a damaged line may have.

    >>> _printable_name("caf\\u00e9.md"), _printable_name("\\udcff.md") == r"\\udcff.md"
    ('café.md', True)
    """
    return name if name.isprintable() else name.encode("unicode_escape").decode()
