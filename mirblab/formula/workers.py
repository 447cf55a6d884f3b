"""workers: processes that turn formulas into the segments of an index."""

from __future__ import annotations

import os
import pickle
import queue
import signal
import subprocess
import sys
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from mirblab.core import processes
from mirblab.core.errors import MirblabError
from mirblab.formula.latex.parser import parse_latex
from mirblab.formula.operators import operator_tree
from mirblab.formula.storage import Segment, build_segment, save_segment
from mirblab.formula.tokens import (
    LabelTable,
    Tokens,
    build_forest,
    concatenate_tokens,
    count_tokens,
    layout_tokens,
    operation_tokens,
)
from mirblab.formula.tree import Tree

_SIZE = 8  # bytes that say how long a message is


class WorkerPool:
    """*n* processes, each fed by a thread of this one; a context, at whose end they are gone.

    They are plain child processes and not those of `multiprocessing`, which run the user's script again and so need
    it to be written for that.
    """

    def __init__(self, n: int) -> None:
        """Start the processes; they wait for work, and ignore Ctrl-C, which their parent handles."""
        paths = os.pathsep.join(path for path in sys.path if path)
        command = [sys.executable, "-m", "mirblab.formula.workers"]
        pipe, environment = subprocess.PIPE, {**os.environ, "PYTHONPATH": paths}
        self.all = [subprocess.Popen(command, stdin=pipe, stdout=pipe, env=environment) for _ in range(n)]
        self.idle: queue.SimpleQueue[subprocess.Popen] = queue.SimpleQueue()
        for process in self.all:
            self.idle.put(process)
        self.threads = ThreadPoolExecutor(n)

    def submit(self, formulas: list[str | Tree], place: Path) -> Future:
        """Have a segment of *formulas* made in the folder *place*; the future's result is how many they are.

        MirblabError as its result when that failed.
        """
        return self.threads.submit(self._make, formulas, place)

    def _make(self, formulas: list[str | Tree], place: Path) -> int:
        process = self.idle.get()
        try:
            _send(process.stdin, (formulas, place))
            answer = _receive(process.stdout)
        except (OSError, EOFError) as error:
            raise MirblabError(f"a process that makes an index has ended unexpectedly ({error}); try again") from error
        finally:
            self.idle.put(process)
        if isinstance(answer, str):
            raise MirblabError(f"a process that makes an index has failed: {answer}")
        return len(formulas)

    def __enter__(self) -> WorkerPool:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the processes, and with them what still runs."""
        for process in self.all:
            process.kill()
        self.threads.shutdown(cancel_futures=True)
        for process in self.all:
            process.wait()
            with suppress(BrokenPipeError):  # a request that the process did not read before its end
                process.stdin.close()
            process.stdout.close()


def _send(stream: BinaryIO, message: object) -> None:
    content = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    stream.write(len(content).to_bytes(_SIZE, "little") + content)
    stream.flush()


def _receive(stream: BinaryIO) -> object:
    head = stream.read(_SIZE)
    if len(head) < _SIZE:
        raise EOFError("no answer")
    return pickle.loads(stream.read(int.from_bytes(head, "little")))


def serve(requests: BinaryIO, answers: BinaryIO) -> None:
    """Answer requests, pairs of formulas and a place, with None, or with what went wrong as text.

    The process ends with the stream of *requests*, in the middle of its work, too: nobody waits for an answer then.
    """
    from mirblab.formula.tokens import LabelTable

    labels, received = LabelTable(), queue.SimpleQueue()
    processes.end_after(lambda: _receive_requests(requests, received))
    while True:
        formulas, place = received.get()
        try:
            make_segment(formulas, labels, place)
            answer = None
        except Exception as error:
            answer = f"{type(error).__name__}: {error}"
        _send(answers, answer)


def _receive_requests(requests: BinaryIO, received: queue.SimpleQueue) -> None:
    """Pass on what is received, until the stream ends."""
    with suppress(EOFError):
        while True:
            received.put(_receive(requests))


def layout_trees(formulas: Iterable[str | Tree]) -> list[Tree]:
    """Return the layout trees of formulas, LaTeX or trees already.

    >>> layout_trees(["x^2"])[0].labels
    ['V!x', 'N!2']
    """
    return [formula if isinstance(formula, Tree) else parse_latex(formula) for formula in formulas]


def formula_tokens(layouts: list[Tree], labels: LabelTable | None = None) -> Tokens:
    """Return all tokens of layout trees, those of their operations too; *labels* remembers those of earlier ones."""
    return concatenate_tokens(
        layout_tokens(build_forest(layouts, labels)),
        operation_tokens(build_forest(map(operator_tree, layouts), labels)),
    )


def make_segment(formulas: list[str | Tree], labels: LabelTable, place: Path | None) -> Segment:
    """Return the segment of a few formulas, in the folder *place* or (None) in memory."""
    found = build_segment(len(formulas), count_tokens(formula_tokens(layout_trees(formulas), labels)))
    return found if place is None else save_segment(found, place)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    serve(sys.stdin.buffer, sys.stdout.buffer)
