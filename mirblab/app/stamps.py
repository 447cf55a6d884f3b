"""stamps: the record of a notebook's last run, and whether its files are unchanged."""

from __future__ import annotations

import hashlib
import json
import math
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Any

from mirblab.app.suites import Job
from mirblab.core import paths
from mirblab.core.errors import MirblabError


@dataclass(frozen=True)
class Stamp:
    """The record of one run of a notebook: its files and its executed copy, by their digests.

    *key* is the hash of its inputs, empty for a run that failed; *made* is the time for readers, and is never compared.
    """

    key: str
    seconds: float
    made: str
    parameters: dict[str, Any]
    executed: str
    files: dict[str, str]


def stamp_path(job: Job) -> Path:
    """Return the path of a notebook's stamp."""
    return job.executed.with_suffix(".json")


def read_stamp(job: Job) -> Stamp | None:
    """Return the stamp of the notebook's last run, None when there was none.

    Raises MirblabError for one that is damaged, also when it names files that lie outside the notebook's own folder.
    """
    path = stamp_path(job)
    try:
        found = json.loads(path.read_text("utf-8"))
        stamp = Stamp(**found)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, RecursionError) as error:
        raise MirblabError(f"the record {path} cannot be read: {_first_line(error)}") from error
    texts = [stamp.key, stamp.made, stamp.executed]
    dictionaries = [stamp.files, stamp.parameters]
    if not all(isinstance(text, str) for text in texts) or not all(isinstance(one, dict) for one in dictionaries):
        raise MirblabError(f"the record {path} is damaged: a value in it has another type than a batch writes")
    if not is_duration(stamp.seconds):
        raise MirblabError(f"the record {path} is damaged: {stamp.seconds!r} are no seconds")
    others = _other_parts(job)
    for name, digest in stamp.files.items():
        if not isinstance(digest, str) or not _is_below(name) or name.split("/")[0] in others:
            raise MirblabError(f"the record {path} is damaged: '{name}' is no file of this notebook's folder")
    return stamp


def is_duration(value: object) -> bool:
    """Return whether *value* is a number of seconds: finite, and not negative.

    >>> is_duration(0.5), is_duration(float("nan")), is_duration([1]), is_duration(True)
    (True, False, False, False)
    """
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < math.inf


def reason_to_run(job: Job, contents: dict[str, bytes] | None = None) -> str:
    """Return why the notebook has to run, "" when it is fresh: inputs and files are as after its last run.

    *contents* holds hashes of data that are known already, and takes in new ones: give one to all jobs of a batch.
    """
    try:
        stamp = read_stamp(job)
    except MirblabError as error:
        return str(error)
    if stamp is None:
        return "it has not run yet"
    if stamp.key == "":
        return "its last run failed"
    if stamp.key != job.key(contents):
        return "the notebook, its parameters, its data, the code or a library has changed"
    changed = [name for name, digest in stamp.files.items() if not _is_same(job.folder / name, digest)]
    changed += [] if _is_same(job.executed, stamp.executed) else [job.executed.name]
    some = f"{', '.join(changed[:3])}{f' and {len(changed) - 3} more' if len(changed) > 3 else ''}"
    return f"changed or removed since: {some}" if changed else ""


def file_digest(path: Path) -> str:
    """Return the digest of a file's bytes, "" when there is no regular file that can be read."""
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()
    except OSError:
        return ""


def list_files(job: Job) -> dict[str, tuple[int, ...]]:
    """Return the files below the notebook's folder, each with what changes when it is written: never compared by age.

    Links, hidden files and the folders of the notebook's other parts are left out.
    """
    others, files = _other_parts(job), {}
    for root, folders, names in os.walk(job.folder):
        here = Path(root)
        folders[:] = [
            name for name in folders if not name.startswith(".") and (here != job.folder or name not in others)
        ]
        for name in names:
            about = os.lstat(here / name)
            if not name.startswith(".") and stat.S_ISREG(about.st_mode):
                signature = (about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns)
                files[(here / name).relative_to(job.folder).as_posix()] = signature
    return files


def record_run(job: Job, key: str, seconds: float, before: Mapping[str, tuple[int, ...]]) -> None:
    """Remove files of the last run that this one did not write, and write the record of this one.

    *before* is the `listing` from before the run. Of a run that failed, *key* is empty, and nothing is dropped.
    """
    try:
        last = read_stamp(job)
    except MirblabError:  # such a record names nothing that may be removed
        last = None
    written = [name for name, signature in list_files(job).items() if signature != before.get(name)]
    files = {name: file_digest(job.folder / name) for name in sorted(written)}
    earlier = last.files if last else {}
    if key:
        _drop(job, {name: digest for name, digest in earlier.items() if name not in files})
    else:
        files = earlier | files
    now = datetime.now().astimezone().isoformat(timespec="seconds")
    stamp = Stamp(key, round(seconds, 1), now, job.parameters, file_digest(job.executed), files)
    paths.write_text(stamp_path(job), json.dumps(asdict(stamp), indent=1))


@contextmanager
def hold_lock(job: Job) -> Iterator[None]:
    """Hold the notebook's lock, so that of two batches one waits for the other; it is released when the process ends.

    On a file system without locks nothing is locked.
    """
    from filelock import FileLock

    paths.make_folder(job.executed.parent)
    lock = FileLock(job.executed.with_name(f".{job.name}.lock"), fallback_to_soft=False)
    with suppress(OSError):
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def _drop(job: Job, files: Mapping[str, str]) -> None:
    """Remove the *files* of an earlier run that are unchanged; files that somebody has changed stay."""
    folder = paths.figures().resolve() / job.folder.relative_to(paths.figures())
    for name, digest in files.items():
        path = job.folder / name
        is_own = not path.is_symlink() and path.resolve() == folder / name  # no part of the path is a link
        if is_own and _is_same(path, digest):
            paths.remove_path(path)
            with suppress(OSError):  # a folder that is not empty stays
                for parent in PurePosixPath(name).parents:
                    (job.folder / parent).rmdir()


def _other_parts(job: Job) -> set[str]:
    """Return the folders below the notebook's own that belong to its runs for single collections."""
    if job.part:
        return set()
    stem, folder = job.source.stem, job.executed.parent
    stamps = {path.name.removeprefix(f"{stem}.").removesuffix(".json") for path in folder.glob(f"{stem}.*.json")}
    locks = {path.name.removeprefix(f".{stem}.").removesuffix(".lock") for path in folder.glob(f".{stem}.*.lock")}
    return stamps | locks


def _is_below(name: str) -> bool:
    """Return whether *name* can only be a file below the folder that it is joined to, on any platform.

    >>> [_is_below(name) for name in ("a.svg", "threads/5.html", "../a", "/a", "C:a", "a//b", "")]
    [True, True, False, False, False, False, False]
    """
    return not set("\\:\0") & set(name) and all(part not in ("", ".", "..") for part in name.split("/"))


def _is_same(path: Path, digest: str) -> bool:
    return digest != "" and file_digest(path) == digest


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
