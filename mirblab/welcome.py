"""welcome: what one can do here, by what is there already."""

from __future__ import annotations

import shutil
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

from mirblab import paths, shelf
from mirblab.terminal import say

_WIDEST, _NARROWEST = 100, 40
_WIDTH_OF_COMMANDS = 34
_TITLE = "mirblab: find theorems, proofs, premises, answers and formulas, and measure how well it works."
_MORE = (
    "Something wrong? mirblab doctor. What would run, and for how long: mirblab plan mini. What is stored: "
    "mirblab cache. All commands: mirblab --help."
)
_WHOLE = {"break_long_words": False, "break_on_hyphens": False}  # paths stay whole


@dataclass(frozen=True)
class State:
    """What was found in the home folder: collections built or added, suites run, and whether this is a checkout."""

    home: Path
    built: tuple[str, ...]
    suites: tuple[str, ...]
    is_checkout: bool


def state() -> State:
    """Look at the home folder; nothing is loaded, made or changed.

    >>> state().is_checkout in (True, False)
    True
    """
    executed = paths.figures() / "_executed"
    suites = sorted({path.parent.name for path in executed.glob("*/*.ipynb")})
    return State(paths.home(), tuple(shelf.built_names()), tuple(suites), paths.checkout() is not None)


def steps(found: State) -> list[tuple[str, str]]:
    """Return the next steps for a state, as command and what it does, the most useful first.

    >>> steps(State(Path("/tmp"), (), (), True))[0][0]
    'make lab'
    """
    lab = "make lab" if found.is_checkout else f"jupyter lab {short(paths.bundled('notebooks'))}"
    first = [(lab, "open JupyterLab; begin with 00_start_here, or with lesson 01")]
    run = ("mirblab run minilm mini-qa", "one search engine on one bundled collection, in seconds")
    batch = ("mirblab batch mini", "every notebook on the bundled data, offline, in minutes")
    lessons = ("mirblab lessons --out FOLDER", "eight lessons for students; --teacher keeps the solutions")
    own = ("mirblab add FOLDER", "a collection of your own in BEIR's layout, checked first")
    build = ("mirblab build stacks", "a real collection, from the Stacks project")
    if found.built:
        last = found.built[-1]
        use = [
            ("mirblab batch open", f"the same tables and figures for {_some(found.built)}"),
            (f"mirblab report {last}", "what makes a collection easier, harder or less fair than it looks"),
        ]
    else:
        use = [own, build]
    if found.suites:
        page = found.home / "figures" / found.suites[0]
        made = [(short(page), f"here lie the tables and figures of {_some(found.suites)}")]
        return [*first, *made, *use, lessons]
    return [*first, run, batch, *use, lessons]


def text(found: State | None = None, width: int = 0) -> str:
    """Return the welcome as lines of at most *width* characters; 0: as wide as the terminal, 80 without one.

    >>> "mirblab doctor" in text(width=80)
    True
    """
    width = min(max(width or shutil.get_terminal_size((80, 24)).columns, _NARROWEST), _WIDEST)
    found = found or state()
    blocks = [textwrap.fill(_TITLE, width, **_WHOLE), ""]
    blocks += [_line(command, what, width) for command, what in steps(found)]
    there = f"Data, vectors and figures live in {short(found.home)} (MIRBLAB_HOME moves them)."
    lines = [
        *blocks,
        "",
        *textwrap.wrap(there, width, **_WHOLE),
        *textwrap.wrap(_MORE.replace("mirblab ", f"{called()} "), width, **_WHOLE),
    ]
    return "\n".join(lines)


def _line(command: str, what: str, width: int) -> str:
    """Return one step: beside each other where there is room, else the explanation indented below."""
    command = f"{called()} {rest}" if (rest := command.removeprefix("mirblab ")) != command else command
    column = _WIDTH_OF_COMMANDS
    if len(command) + 4 <= column and width >= 2 * column:
        return textwrap.fill(
            what, width, initial_indent=f"  {command}".ljust(column), subsequent_indent=" " * column, **_WHOLE
        )
    return f"  {command}\n" + textwrap.fill(what, width, initial_indent=" " * 6, subsequent_indent=" " * 6, **_WHOLE)


def _some(names: tuple[str, ...]) -> str:
    shown = ", ".join(names[:3])
    return f"{shown} and {len(names) - 3} more" if len(names) > 3 else shown


def short(path: Path) -> str:
    """Return a path with the user's home folder as "~".

    >>> short(Path.home() / "mirblab")
    '~/mirblab'
    """
    try:
        return (Path("~") / path.relative_to(Path.home())).as_posix()
    except (ValueError, RuntimeError):  # elsewhere, or no home folder is known
        return str(path)


def called() -> str:
    """Return how the command is reached from this shell: its name where it is on the path, else with its folder.

    >>> called().endswith("mirblab")
    True
    """
    if shutil.which("mirblab"):
        return "mirblab"
    beside = Path(sys.executable).with_name("mirblab")
    try:
        return beside.relative_to(Path.cwd()).as_posix()
    except ValueError:
        return short(beside)


def show() -> None:
    """Print the welcome; characters that the output cannot carry are replaced."""
    encoding = sys.stdout.encoding or "ascii"
    say(text().encode(encoding, "replace").decode(encoding))
