"""replies: the answers of chat models on disk, so that nothing is asked twice and a kill loses no answer."""

from __future__ import annotations

import hashlib
import json
import time
import uuid
from pathlib import Path

from mirblab import damage, paths
from mirblab.errors import MirblabError
from mirblab.train.answers import Reply
from mirblab.train.prompts import Prompt

_AGAIN = "what it answered is asked again"


class Replies:
    """The answers of one model to one prompt: files of JSON lines that are only ever added to.

    Each writer has a file of its own, so any number of processes may share the folder. A line that is torn, by kill
    -9 or a full disk, or whose hash is not that of its content, counts as not there.
    """

    def __init__(self, model: str, prompt: Prompt) -> None:
        """Look at what `<cache>/replies/` has for a *model* and a *prompt*; nothing is written before `put`."""
        name = hashlib.blake2b(json.dumps([model, prompt.fingerprint()]).encode(), digest_size=8).hexdigest()
        self.folder = paths.cache() / "replies" / f"{prompt.name}-{name}"
        self._own = self._new()
        self._places: dict[str, tuple[Path, int]] = {}
        self._held: dict[str, Reply] = {}
        for path in _files(self.folder):
            sound, damaged = _read(path)
            self._places |= {key: (path, start) for key, start in sound}
            if damaged:
                damage.tell(path, f"in part: damaged lines {', '.join(map(str, damaged))}", _AGAIN)

    def __len__(self) -> int:
        """Return how many answers there are."""
        return len(self._places | self._held)

    def __contains__(self, key: str) -> bool:
        """Return whether the answer under *key* is there."""
        return key in self._places or key in self._held

    def get(self, key: str) -> Reply:
        """Return the answer under *key*; KeyError when there is none."""
        if key in self._held:
            return self._held[key]
        path, start = self._places[key]
        with path.open("rb") as file:
            file.seek(start)
            reply = _sound(file.readline())
        if reply is None or reply[0] != key:
            raise MirblabError(f"{path} was changed while it was read, at byte {start}; do it again")
        return reply[1]

    def put(self, key: str, reply: Reply) -> None:
        """Add an answer under *key*; when this returns, neither a kill nor a loss of power can lose what was paid for.

        Where it cannot be stored it is held in memory, with a line that says so.
        """
        if not paths.stored("answers", self._add, key, reply):
            self._own = self._new()  # the old file may end in the middle of a line
            self._held[key] = reply

    def _add(self, key: str, reply: Reply) -> None:
        record = {"key": key, "text": reply.text, "finish": reply.finish, "check": _check(key, reply)}
        paths.make_folder(self.folder)
        is_new = not self._own.exists()
        with paths.writing(self._own):
            with paths.open_to_write(self._own, "ab") as file:
                start = file.tell()
                file.write(json.dumps(record).encode() + b"\n")
            paths.flush(self._own)
            if is_new:
                paths.flush_folder(self.folder)
        self._places[key] = (self._own, start)

    def _new(self) -> Path:
        return self.folder / f"{time.time_ns():019d}-{uuid.uuid4().hex[:12]}.jsonl"


def verify(folder: Path) -> list[str]:
    """Read all answers in *folder*; return a line for each damaged one, and for strangers."""
    wrong = []
    for path in damage.sound(folder):
        files = _files(path)
        wrong += [damage.stranger(one) for one in (damage.sound(path) if path.is_dir() else [path]) if one not in files]
        wrong += [f"{file}, line {number} is damaged; {_AGAIN}" for file in files for number in _read(file)[1]]
    return wrong


def _files(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.glob("*.jsonl")) if path.is_file()]


def _read(path: Path) -> tuple[list[tuple[str, int]], list[int]]:
    """Return key and place of each sound line, and the numbers of the damaged ones.

    A last line that does not end was torn when its writer was killed: it is no damage, and not there.
    """
    sound, damaged, start = [], [], 0
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if (reply := _sound(line)) is not None:
                sound.append((reply[0], start))
            elif line.endswith(b"\n"):
                damaged.append(number)
            start += len(line)
    return sound, damaged


def _sound(line: bytes) -> tuple[str, Reply] | None:
    """Return key and answer of a line, or None when it is not what was written."""
    try:
        found = json.loads(line)
        name, reply = found["key"], Reply(found["text"], found["finish"])
        whole = line.endswith(b"\n") and isinstance(name, str) and found["check"] == _check(name, reply)
        return (name, reply) if whole else None
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def key(message: str, attempt: int) -> str:
    """Return the key of the answer to a *message*: the attempt counts, for a prompt may be sent unchanged again.

    >>> key("Why?", 1) == key("Why?", 1), key("Why?", 1) == key("Why?", 2)
    (True, False)
    """
    return hashlib.blake2b(json.dumps([attempt, message]).encode(), digest_size=16).hexdigest()


def _check(name: str, reply: Reply) -> str:
    return hashlib.blake2b(json.dumps([name, reply.text, reply.finish]).encode(), digest_size=6).hexdigest()
