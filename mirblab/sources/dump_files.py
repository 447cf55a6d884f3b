"""dump_files: where the files of a Stack Exchange dump lie, a folder or a .7z archive, and their bytes as streams."""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from mirblab import packed, paths
from mirblab.errors import MirblabError
from mirblab.progress import Bar, progress
from mirblab.sources import sevenzip
from mirblab.sources.dump import Readable


@dataclass(frozen=True)
class Files:
    """The files of one dump: `names` maps "Posts" to a file in the folder `path`, or to a member of that archive."""

    path: Path
    names: dict[str, str]

    @property
    def site(self) -> str:
        """The name of the folder or archive, which for a dump as published is the site's: math.stackexchange.com."""
        return self.path.resolve().name.removesuffix(".7z")

    def shown(self, stem: str) -> str:
        """Return the name of a file without folders, after that of its archive, for messages."""
        name = Path(self.names[stem]).name
        return f"{self.path.name}: {name}" if self.path.is_file() else name

    def revision(self) -> str:
        """Return a hash of the bytes as they lie: of the archive, or of the files."""
        digest = hashlib.blake2b(digest_size=16)
        paths = [self.path] if self.path.is_file() else [self.path / name for _, name in sorted(self.names.items())]
        for path in paths:
            with open(path, "rb") as file:
                digest.update(hashlib.file_digest(file, "blake2b").digest())
        return f"blake2b:{digest.hexdigest()}"

    @contextlib.contextmanager
    def stream(self, stem: str) -> Iterator[Readable]:
        """Yield the unpacked bytes of a file, with a progress bar; what is damaged is an error of its `read()`."""
        label = f"reading {self.shown(stem)}"
        with contextlib.ExitStack() as stack:
            position: Callable[[], int] | None = None
            if self.path.is_file():
                total = sevenzip.members(self.path)[self.names[stem]]
                inner = stack.enter_context(sevenzip.stream(self.path, self.names[stem]))
            else:
                raw = stack.enter_context(open(self.path / self.names[stem], "rb"))
                total, position = (self.path / self.names[stem]).stat().st_size, raw.tell
                inner = packed.unpacked(self.path / self.names[stem], raw)
            bar = stack.enter_context(progress(total // 10**6, label, "MB"))
            yield _Watched(inner, bar, position)


class _Watched:
    """A stream that moves the bar as it is read, by its own `position` or by what came out of it."""

    def __init__(self, inner: Readable, bar: Bar, position: Callable[[], int] | None) -> None:
        self._inner, self._bar, self._position = inner, bar, position
        self._done, self._shown = 0, 0

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes, and move the bar."""
        found = self._inner.read(size)
        self._done = self._position() if self._position else self._done + len(found)
        self._bar.update(self._done // 10**6 - self._shown)
        self._shown = self._done // 10**6
        return found


def find(origin: str | Path, stems: tuple[str, ...]) -> Files:
    """Return the *stems* ("Posts", "PostLinks") of the dump at *origin*: a .7z archive, or a folder.

    In a folder `Posts.xml`, `Posts.xml.gz` and names with a version (`Posts.V1.3.xml.gz`) are found. Raises
    FileNotFoundError for a place that does not exist or lacks a file, MirblabError for two files of one stem and for
    an archive that cannot be read.
    """
    path = paths.given(origin)
    if path.is_dir():
        there = sorted(entry.name for entry in path.iterdir() if entry.is_file())
    elif path.suffix.lower() == ".7z" and path.is_file():
        there = sorted(sevenzip.members(path))
    elif path.exists():
        raise MirblabError(f"{path} is neither a .7z archive nor a folder of a Stack Exchange dump; give one of these")
    else:
        raise FileNotFoundError(f"no {path}; give a .7z archive of a Stack Exchange dump, or the folder it unpacks to")
    return Files(path, {stem: _one(path, stem, there) for stem in stems})


def _one(path: Path, stem: str, there: list[str]) -> str:
    wanted = re.compile(rf"(?:.*/)?{stem}(?:\.[\w.-]+)?\.xml(?:\.gz)?")
    found = [name for name in there if wanted.fullmatch(name)]
    if len(found) > 1:
        raise MirblabError(f"{path} has {' and '.join(found)}; keep one of them")
    if not found:
        shown = ", ".join(there[:8]) or "nothing"
        raise FileNotFoundError(f"no {stem}.xml or {stem}.xml.gz in {path}; found {shown}; is it a site's whole dump?")
    return found[0]
