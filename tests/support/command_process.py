"""A process that has imported the libraries: each command, or Python code, runs in a fork, which spares the imports."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

SERVER = """
import atexit, gc, json, os, shlex, subprocess, sys, traceback
import seaborn, sentence_transformers
from mirblab.app import cli, doctor
from mirblab.app.batch import run_tasks

def run_in_fork(task):
    child = os.fork()
    if child == 0:
        status = 0
        try:
            task()
        except SystemExit as end:
            status = end.code or 0
        except BaseException:
            traceback.print_exc()
            status = 1
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)  # the libraries need not be torn down
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

def run_command(words):
    sys.argv[1:] = words
    cli.main()

def end_process(process, owner):
    if os.getpid() == owner:  # and not a fork of it
        process.terminate()
        process.wait()

def run_shell(text):
    "Run each line as a shell would that stops at the first error; mirblab in a fork, with & beside the others."
    for line in filter(None, text.splitlines()):
        name, *words = shlex.split(line)
        sys.stdout.flush()
        if words[-1:] == ["&"]:
            atexit.register(end_process, subprocess.Popen([name, *words[:-1]]), os.getpid())
            continue
        ended = run_in_fork(lambda: run_command(words)) if name == "mirblab" else subprocess.call([name, *words])
        if ended:
            print(f"{line} ended with status {ended}", file=sys.stderr)
            sys.exit(ended)

def answer(words, code, folder, environment, outputs):
    os.chdir(folder)
    os.environ.update(environment)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for number, path in enumerate(outputs, 1):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
    if code:
        exec(compile(code, "<code>", "exec"), {"__name__": "__main__", "run_shell": run_shell})
    else:
        run_command(words)

gc.freeze()  # so that a fork does not touch, and thereby copy, what was imported
for line in sys.stdin:
    asked = json.loads(line)
    print(run_in_fork(lambda: answer(*asked)), flush=True)
"""


class CommandProcess:
    """Runs `mirblab` with words, or Python code, as `subprocess.run` would; *folder* takes what they print."""

    def __init__(self, folder: Path) -> None:
        self.outputs = [folder / "stdout", folder / "stderr"]
        environment = {**os.environ, "COLUMNS": "140", "NO_COLOR": "1"}
        command = [sys.executable, "-c", SERVER]
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self.process = subprocess.Popen(command, env=environment, text=True, **pipes)

    def run(self, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Return how a command ended and what it printed."""
        return self._run(list(words), "", Path.cwd(), environment)

    def run_code(self, code: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
        """Return how Python code ended, which ran in *folder*, and what it printed; it has `run_shell`, too."""
        return self._run([], code, folder, environment)

    def _run(
        self, words: list[str], code: str, folder: Path, environment: dict[str, str]
    ) -> subprocess.CompletedProcess[str]:
        assert self.process.stdin is not None and self.process.stdout is not None
        asked = [words, code, str(folder), environment, list(map(str, self.outputs))]
        self.process.stdin.write(json.dumps(asked) + "\n")
        self.process.stdin.flush()
        status = int(self.process.stdout.readline())
        stdout, stderr = (path.read_text("utf-8") for path in self.outputs)
        return subprocess.CompletedProcess(words, status, stdout, stderr)

    def end(self) -> None:
        """End the process."""
        with self.process:
            self.process.kill()
