"""figures_command: the command `mirblab figures`."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Annotated, Any

import typer

from mirblab.terminal import say


def figures(
    remove: Annotated[
        list[str] | None, typer.Option(help="A run by hand, as listed here, or all of them; may be repeated.")
    ] = None,
) -> None:
    """List the tables and figures that are there: those of suites, and of runs by hand, which --remove removes."""
    from mirblab import by_hand

    if remove:
        for run in by_hand.remove(remove):
            say(f"removed {run.folder}")
        return
    contents: dict[str, bytes] = {}
    for line in [*_of_suites(contents), *_by_hand(contents)] or ["none yet: run mirblab batch mini, or a notebook"]:
        say(line)


def _of_suites(contents: dict[str, bytes]) -> Iterator[str]:
    """Yield two lines for each notebook that a batch has run."""
    from mirblab import paths, stamps, suites

    for path in sorted((paths.figures() / "_executed").glob("*/*.json")):
        stem, _, part = path.stem.partition(".")
        job = suites.Job(path.parent.name, paths.bundled("notebooks") / f"{stem}.ipynb", {"part": part})
        try:
            stamp = stamps.read(job)
        except ValueError as error:
            yield f"{job.suite}/{job.name}: {error}"
            continue
        if stamp is not None:
            sizes = [about[1] for about in stamps.listing(job).values()]
            yield _line(f"{job.suite}/{job.name}", stamp.made, sizes, _state(job, stamp.parameters, contents))
            yield from _asked(job.source.stem, stamp.parameters)


def _state(job: Any, parameters: dict[str, Any], contents: dict[str, bytes]) -> str:
    """Return whether what the batch left is fresh, for the parameters with which it ran."""
    from mirblab import stamps
    from mirblab.parameters import check_types, parameters_of

    try:
        defaults = parameters_of(job.source)
        check_types(parameters, defaults, job.name)
        reason = stamps.staleness(dataclasses.replace(job, parameters=parameters), contents)
    except FileNotFoundError:
        reason = "there is no such notebook any more"
    except ValueError as error:
        reason = str(error)
    return f"not fresh: {reason}" if reason else "fresh"


def _by_hand(contents: dict[str, bytes]) -> Iterator[str]:
    from mirblab import by_hand

    runs = by_hand.hand_runs()
    yield from [f"by hand, in {by_hand.folder()}; mirblab figures --remove NAME removes one"] if runs else []
    for run in runs:
        files = [path for path in run.folder.rglob("*") if path.is_file()]
        yield _line(run.name, run.made, [path.stat().st_size for path in files], run.state(contents))
        yield from _asked(run.notebook, run.parameters)


def _line(name: str, made: str, sizes: list[int], state: str) -> str:
    from mirblab.disk import readable_size

    return f"{name}: {made}, {len(sizes)} files, {readable_size(sum(sizes))}; {state}"


def _asked(notebook: str, parameters: dict[str, Any]) -> Iterator[str]:
    """Yield a line with the parameters that differ from the notebook's defaults, when some do."""
    from mirblab import by_hand

    defaults = by_hand.defaults_of(notebook)
    differing = [f"{name} = {value!r}" for name, value in parameters.items() if defaults.get(name) != value]
    yield from [f"    {', '.join(differing)}"] if differing else []
