"""stamps: records of notebooks' last runs in a batch, and whether their outputs are still fresh."""

from __future__ import annotations

import json
import math
import os
import stat
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Any

from mirblab.app.suite_files import Job
from mirblab.core import atomic_files, paths
from mirblab.core.errors import MirblabError
from mirblab.core.wording import first_names

FAILED = "its last run failed"  # a reason to run a notebook


@dataclass(frozen=True)
class Stamp:
    """The record of one run of a notebook; *key* is the hash of its inputs, "" for a failed run."""

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
    """Return the stamp of the notebook's last run or None; MirblabError for a damaged one, or files outside."""
    path = stamp_path(job)
    try:
        stamp = Stamp(**json.loads(path.read_text("utf-8")))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, RecursionError) as error:
        reason = next(iter(str(error).splitlines()), "")
        raise MirblabError(f"the record {path} cannot be read: {type(error).__name__}: {reason}") from error
    texts, dictionaries = (stamp.key, stamp.made, stamp.executed), (stamp.files, stamp.parameters)
    if not all(isinstance(text, str) for text in texts) or not all(isinstance(entry, dict) for entry in dictionaries):
        raise MirblabError(f"the record {path} is damaged: a value in it has another type than a batch writes")
    if not is_duration(stamp.seconds):
        raise MirblabError(f"the record {path} is damaged: {stamp.seconds!r} is no number of seconds")
    other_parts = _other_parts(job)
    for name, digest in stamp.files.items():
        if not isinstance(digest, str) or not _is_below(name) or name.split("/")[0] in other_parts:
            raise MirblabError(f"the record {path} is damaged: '{name}' is no file of this notebook's folder")
    return stamp


def is_duration(value: object) -> bool:
    """Return whether *value* is a finite number of seconds of at least 0.

    >>> is_duration(0.5), is_duration(float("nan")), is_duration([1]), is_duration(True)
    (True, False, False, False)
    """
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < math.inf


def reason_to_run(job: Job, contents: dict[str, bytes] | None = None) -> str:
    """Return why the notebook has to run, "" if it is fresh; *contents* caches digests of data for a whole batch."""
    try:
        stamp = read_stamp(job)
    except MirblabError as error:
        return str(error)
    if stamp is None:
        return "it has not run yet"
    if stamp.key == "":
        return FAILED
    if stamp.key != job.key(contents):
        return "the notebook, its parameters, its data, the code or a library has changed"
    changed = [name for name, digest in stamp.files.items() if not _is_same(job.folder / name, digest)]
    changed += [] if _is_same(job.executed, stamp.executed) else [job.executed.name]
    return f"changed or removed since: {first_names(changed, 3)}" if changed else ""


def file_digest(path: Path) -> str:
    """Return the digest of a file's bytes, "" if it cannot be read."""
    try:
        return paths.content_digest(path).hex() if path.is_file() else ""
    except OSError:
        return ""


def list_files(job: Job) -> dict[str, tuple[int, ...]]:
    """Return the files of the notebook's part with inode, size and times, without links and hidden files."""
    other_parts, files = _other_parts(job), dict[str, tuple[int, ...]]()
    for root, folders, names in os.walk(job.folder):
        hidden = other_parts if Path(root) == job.folder else set()
        folders[:] = [name for name in folders if not name.startswith(".") and name not in hidden]
        for path in (Path(root, name) for name in names if not name.startswith(".")):
            status = path.lstat()
            if stat.S_ISREG(status.st_mode):
                signature = (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
                files[path.relative_to(job.folder).as_posix()] = signature
    return files


def record_run(job: Job, key: str, seconds: float, before: Mapping[str, tuple[int, ...]]) -> None:
    """Write the record of a run, and unless it failed (*key* "") remove files of the last run that it did not write.

    *before* is from `list_files` before the run.
    """
    try:
        last = read_stamp(job)
    except MirblabError:  # a damaged record names nothing that may be removed
        last = None
    written = [name for name, signature in list_files(job).items() if signature != before.get(name)]
    files = {name: file_digest(job.folder / name) for name in sorted(written)}
    earlier = last.files if last else {}
    if key:
        _remove_unchanged(job, {name: digest for name, digest in earlier.items() if name not in files})
    else:
        files = earlier | files
    now = datetime.now().astimezone().isoformat(timespec="seconds")
    stamp = Stamp(key, round(seconds, 1), now, job.parameters, file_digest(job.executed), files)
    atomic_files.write_text(stamp_path(job), json.dumps(asdict(stamp), indent=1))


def _remove_unchanged(job: Job, files: Mapping[str, str]) -> None:
    """Remove the *files* of an earlier run, except changed ones and those behind links."""
    folder = paths.figures().resolve() / job.folder.relative_to(paths.figures())
    for name, digest in files.items():
        path = job.folder / name
        if not path.is_symlink() and path.resolve() == folder / name and _is_same(path, digest):
            atomic_files.remove_path(path)
            with suppress(OSError):  # a folder that is not empty stays
                for parent in PurePosixPath(name).parents:
                    (job.folder / parent).rmdir()


def _other_parts(job: Job) -> set[str]:
    if job.part:
        return set()
    stem, folder = job.source.stem, job.executed.parent
    records = [*folder.glob(f"{stem}.*.json"), *folder.glob(f".{stem}.*.lock")]
    return {path.stem.removeprefix(".").removeprefix(f"{stem}.") for path in records}


def _is_below(name: str) -> bool:
    """Return whether *name*, joined to any folder on any platform, is a path below it.

    >>> [_is_below(name) for name in ("a.svg", "threads/5.html", "../a", "/a", "C:a", "a//b", "")]
    [True, True, False, False, False, False, False]
    """
    return not set("\\:\0") & set(name) and all(part not in ("", ".", "..") for part in name.split("/"))


def _is_same(path: Path, digest: str) -> bool:
    return digest != "" and file_digest(path) == digest
