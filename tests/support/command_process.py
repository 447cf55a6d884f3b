"""The command line in a process that has imported it: each command runs in a fork, which spares the imports."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

SERVER = """
import json, os, sys
from mirblab.app import batch, cli, doctor

for line in sys.stdin:
    words, environment, outputs = json.loads(line)
    child = os.fork()
    if child == 0:
        os.environ.update(environment)
        for number, path in enumerate(outputs, 1):
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
        sys.argv[1:] = words
        cli.main()
        sys.exit()
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


class CommandProcess:
    """Runs `mirblab` with words and environment variables, as `subprocess.run` would; *folder* takes what it prints."""

    def __init__(self, folder: Path) -> None:
        self.outputs = [folder / "stdout", folder / "stderr"]
        environment = {**os.environ, "COLUMNS": "140", "NO_COLOR": "1"}
        command = [sys.executable, "-c", SERVER]
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self.process = subprocess.Popen(command, env=environment, text=True, **pipes)

    def run(self, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Return how a command ended and what it printed."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps([words, environment, list(map(str, self.outputs))]) + "\n")
        self.process.stdin.flush()
        status = int(self.process.stdout.readline())
        stdout, stderr = (path.read_text("utf-8") for path in self.outputs)
        return subprocess.CompletedProcess(words, status, stdout, stderr)

    def end(self) -> None:
        """End the process."""
        with self.process:
            self.process.kill()
