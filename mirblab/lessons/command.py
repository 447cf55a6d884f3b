"""command: the command `mirblab lessons`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mirblab.terminal import say


def lessons(
    out: Annotated[Path, typer.Option(help="The folder for the notebooks.")],
    teacher: Annotated[bool, typer.Option("--teacher", help="With the solutions.")] = False,
    only: Annotated[
        list[str] | None, typer.Option(help="Only lessons whose name begins so, such as 04; may be repeated.")
    ] = None,
    force: Annotated[bool, typer.Option(help="Replace files in which somebody worked.")] = False,
) -> None:
    """Write the eight lessons for students, or with --teacher with the solutions; what somebody changed is kept."""
    from mirblab.lessons import build

    for path in build.write(out, for_teacher=teacher, only=only or [], force=force):
        say(str(path))
