"""Without arguments, the command says what one can do here, by what is there already."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mirblab.app import console
from mirblab.sources import catalogue, mini

REPO = Path(__file__).resolve().parents[2]


@pytest.fixture
def home(home) -> Path:
    """Return an empty home folder of mirblab."""
    home.mkdir()
    return home


def commands(found: console.HomeState) -> list[str]:
    return [command for command, _ in console.next_steps(found)]


def test_in_an_empty_home_it_names_bundled_data_and_where_more_comes_from(home):
    """And makes nothing."""
    found = console.home_state()
    assert found.built == found.suites == ()
    assert {"mirblab run minilm mini-qa", "mirblab batch mini", "mirblab build stacks"} <= set(commands(found))
    assert not list(home.iterdir())


def test_collections_that_were_added_are_named_with_what_to_do_with_them(home, make_folder, monkeypatch):
    """The bundled ones do not count; a really added one does."""
    monkeypatch.setattr(mini, "COLLECTIONS", {"mini-hol": mini.COLLECTIONS["mini-hol"]})
    catalogue.build("mini")
    assert console.home_state().built == ()
    catalogue.add(make_folder(name="my-own"))
    found = console.home_state()
    assert found.built == ("my-own",)
    assert "mirblab batch open" in commands(found) and "mirblab report my-own" in commands(found)
    assert "mirblab build stacks" not in commands(found)


def test_after_a_batch_it_says_where_the_figures_are(home):
    """An executed notebook lies in the folder of its suite."""
    (home / "figures" / "_executed" / "mini").mkdir(parents=True)
    assert console.home_state().suites == ()
    (home / "figures" / "_executed" / "mini" / "00_start_here.ipynb").write_text("{}", "utf-8")
    found = console.home_state()
    assert found.suites == ("mini",) and any(command.endswith("figures/mini") for command in commands(found))
    assert "mirblab batch mini" not in commands(found)


def test_paths_are_short_and_an_installation_without_a_checkout_has_no_make(monkeypatch, tmp_path):
    """The user's home folder is "~"; a wheel brings its notebooks along."""
    monkeypatch.setenv("HOME", str(tmp_path))
    said = console.welcome_text(console.HomeState(tmp_path / "lab", (), (), False), 80)
    assert "~/lab" in said and str(tmp_path) not in said
    assert "make lab" not in said and "jupyter lab " in said


@pytest.mark.parametrize("width", [40, 60, 80, 100])
def test_no_line_is_wider_than_the_terminal(home, width):
    """Commands and paths stay whole: only a line that is one command or path may be longer."""
    found = console.HomeState(Path("/srv/lab"), tuple(f"collection-{i}" for i in range(9)), ("mini",), True)
    for line in console.welcome_text(found, width).splitlines():
        assert len(line) <= width or line.strip() in commands(found), line


def test_a_very_narrow_and_a_very_wide_terminal_change_nothing_more(home):
    """Between 40 and 100 characters."""
    found = console.HomeState(Path("/srv/lab"), (), (), True)
    assert console.welcome_text(found, 5) == console.welcome_text(found, 40)
    assert console.welcome_text(found, 900) == console.welcome_text(found, 100)


def test_it_prints_without_a_terminal_and_without_a_home_folder(tmp_path):
    """As in a container or a cron job: ASCII output, no HOME."""
    env = {name: value for name, value in os.environ.items() if name not in ("HOME", "COLUMNS", "TERM")}
    env |= {"MIRBLAB_HOME": str(tmp_path), "PYTHONIOENCODING": "ascii", "PATH": "/nowhere"}
    ask = [sys.executable, "-c", "from mirblab.app import console; console.print_welcome()"]
    done = subprocess.run(ask, capture_output=True, text=True, env=env, cwd=REPO)
    assert done.returncode == 0, done.stderr
    assert "mirblab doctor" in done.stdout and max(map(len, done.stdout.splitlines())) <= 80


def test_a_command_that_is_not_on_the_path_is_shown_with_its_folder(monkeypatch):
    """What is shown can be typed."""
    monkeypatch.setenv("PATH", "/nowhere")
    assert console.command_name() not in ("", "mirblab") and console.command_name().endswith("/mirblab")
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent))
    assert console.command_name() == "mirblab"


def test_every_command_that_it_names_exists(home):
    """Each is a command of the program, with the options shown."""
    from typer.main import get_command

    from mirblab.app.cli import app

    known = get_command(app).commands
    for built in ((), ("mine",)):
        for command in commands(console.HomeState(home, built, ("mini",), True)):
            if command.startswith("mirblab "):
                name = command.split()[1]
                assert name in known, name
                options = {option for one in known[name].params for option in one.opts}
                assert {word for word in command.split() if word.startswith("--")} <= options


def test_looking_takes_no_time():
    """Neither torch nor matplotlib is loaded."""
    code = "import sys; from mirblab.app import console; console.welcome_text(); print([n for n in ('torch', 'matplotlib') if n in sys.modules])"  # noqa: E501
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"
