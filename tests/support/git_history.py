"""git_history: git repositories that tests make, by a person and on days of their own."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path


def git(folder: Path, *words: str, day: str = "2019-01-01") -> str:
    """Run git in a folder and return what it prints; commits are of the *day*, without the settings of the user."""
    who = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
    at = {name: f"{day}T12:00:00Z" for name in ("GIT_COMMITTER_DATE", "GIT_AUTHOR_DATE")} | {"HOME": str(folder)}
    command = ["git", "-C", str(folder), *who, *words]
    done = subprocess.run(command, env={**os.environ, **at}, check=True, capture_output=True, text=True)
    return done.stdout.strip()
