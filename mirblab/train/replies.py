"""replies: the answers of chat models on disk, so that nothing is asked twice and a kill loses no answer."""

from __future__ import annotations

import hashlib
import json
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

from mirblab import paths
from mirblab.train.answers import Reply
from mirblab.train.prompts import Prompt


class Replies:
    """The answers of one model to one prompt: files of JSON lines that are only ever added to.

    Each writer has a file of its own, so any number of processes may share the folder. A line that is torn, by kill
    -9 or a full disk, or whose hash is not that of its content, counts as not there.
    """

    def __init__(self, model: str, prompt: Prompt) -> None:
        """Look at what `<cache>/replies/` has for a *model* and a *prompt*; nothing is written before `put`."""
        name = hashlib.blake2b(json.dumps([model, prompt.fingerprint()]).encode(), digest_size=8).hexdigest()
        self.folder = paths.cache() / "replies" / f"{prompt.name}-{name}"
        self._own = self.folder / f"{time.time_ns():019d}-{uuid.uuid4().hex[:12]}.jsonl"
        self._places = dict(self._read())

    def __len__(self) -> int:
        """Return how many answers there are."""
        return len(self._places)

    def __contains__(self, key: str) -> bool:
        """Return whether the answer under *key* is there."""
        return key in self._places

    def get(self, key: str) -> Reply:
        """Return the answer under *key*; KeyError when there is none."""
        path, start = self._places[key]
        with path.open("rb") as file:
            file.seek(start)
            found = json.loads(file.readline())
        return Reply(found["text"], found["finish"])

    def put(self, key: str, reply: Reply) -> None:
        """Add an answer under *key*; when this returns, a kill of the process cannot lose it."""
        record = {"key": key, "text": reply.text, "finish": reply.finish, "check": _check(key, reply)}
        self.folder.mkdir(parents=True, exist_ok=True)
        with self._own.open("ab") as file:
            start = file.tell()
            file.write(json.dumps(record).encode() + b"\n")
        self._places[key] = (self._own, start)

    def _read(self) -> Iterator[tuple[str, tuple[Path, int]]]:
        """Yield key and place of each sound line."""
        for path in sorted(self.folder.glob("*.jsonl")):
            start = 0
            with path.open("rb") as file:
                for line in file:
                    try:
                        found = json.loads(line)
                        reply = Reply(found["text"], found["finish"])
                        if line.endswith(b"\n") and found["check"] == _check(found["key"], reply):
                            yield found["key"], (path, start)
                    except (ValueError, KeyError, TypeError):
                        pass
                    start += len(line)


def key(message: str, attempt: int) -> str:
    """Return the key of the answer to a *message*: the attempt counts, for a prompt may be sent unchanged again.

    >>> key("Why?", 1) == key("Why?", 1), key("Why?", 1) == key("Why?", 2)
    (True, False)
    """
    return hashlib.blake2b(json.dumps([attempt, message]).encode(), digest_size=16).hexdigest()


def _check(name: str, reply: Reply) -> str:
    return hashlib.blake2b(json.dumps([name, reply.text, reply.finish]).encode(), digest_size=6).hexdigest()
