"""What data say is text to the terminal and to the notebook: no markup, no control and no link, in any command."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from rich.table import Table
from typer.testing import CliRunner

from mirblab import load
from mirblab.analysis import collection_report
from mirblab.app.cli import app, main
from mirblab.core import paths, terminal
from mirblab.core.terminal import progress
from mirblab.data.collection import load_folder
from mirblab.encoders.cache import VectorStore

# Markup that rich would refuse, follow or obey, and signs that steer a terminal or turn what is read.
HOSTILE = [
    "[/b]",
    "[INST] q [/INST]",
    "[link=https://evil.example]x[/link]",
    "[bold]x",
    "\\[red]",
    ":smile:",
    "[]",
    "[/]",
]
STEERING = [
    "\x1b[31m",
    "\x1b]0;title\x07",
    "\x1b]8;;https://evil.example\x1b\\x",
    "\x9b2J",
    "\u202egnp.exe",
    "\x08\x08",
    "\r",
]
CONTROLS = set(map(chr, [*range(9), *range(11, 32), *range(127, 160), *range(0x202A, 0x202F), *range(0x2066, 0x206A)]))


def is_plain(shown: str) -> bool:
    """Return whether nothing in *shown* steers a terminal."""
    return not CONTROLS & set(shown)


@pytest.fixture
def hostile(own: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, make_folder: Callable[..., Path]) -> Path:
    """Return a collection all of whose names and texts are hostile; a system and stored vectors are so, too."""
    monkeypatch.setenv("COLUMNS", "200")
    ids = [*HOSTILE, "\x1b[31mred", "\u202egnp"]
    folder = make_folder(
        corpus=[{"_id": f"d{text}", "title": text, "text": f"so {text} x"} for text in ids],
        queries=[{"_id": f"q{text}", "text": f"{text} x"} for text in ids],
        qrels="".join(f"q{text}\td{text}\t1\n" for text in ids[:-1]),
        card='task = "[/b] \\u001b[31m"\ntitle = "[link=https://evil.example]x[/link]"\n',
        name="a[bold]b[red]",
    )
    entries = "".join(f'["s{number}"]\nkind = "bm25"\nlabel = {json.dumps(text)}\n' for number, text in enumerate(ids))
    own("systems", entries)
    for text in [*HOSTILE, *STEERING]:
        VectorStore(paths.cache() / "vectors", {"dimensions": 2, "model": text, "prompt": text, "role": text}).append(
            ["x"], [[1.0, 2.0]]
        )
    return folder


def test_every_command_shows_hostile_names_as_they_are(hostile: Path, tmp_path: Path) -> None:
    """No command crashes on markup, makes a link of it, or lets a control through."""
    folder = str(hostile)
    commands = [
        ["run", "s0", folder], ["run", "s8", folder], ["cache"], ["cache", "--verify"], 
        ["diff", folder, "s0", "s8", "--measures", "nDCG@10"], ["plan", "mini", "--only", "00"],
        ["add", folder, "--name", "x[b]y"], ["run", "no[/such]", folder], ["run", "bm25", "no[/such]\x1b[31m"],
        ["cache", "--remove", "[/x]\x1b[31m"],
    ]  # fmt: skip
    for words in commands:
        done = CliRunner().invoke(app, words)
        assert done.exception is None or isinstance(done.exception, (SystemExit, ValueError, FileNotFoundError)), (
            words,
            done.exception,
        )
        assert "MarkupError" not in repr(done.exception), words
        assert is_plain(done.output), words
        if words[:2] == ["run", "s8"]:
            assert r"\x1b[31mred" in done.output
        if words == ["cache"]:
            assert "[INST] q [/INST]" in done.output and ":smile:" in done.output


def test_a_report_shows_hostile_names_as_they_are(hostile: Path) -> None:
    """In its heading, its findings and its tables."""
    out = io.StringIO()
    collection_report.print_report(
        collection_report.report(load_folder(hostile), encoders=()), terminal.console(file=out, width=200)
    )
    assert is_plain(out.getvalue())
    assert "a[bold]b[red]: " in out.getvalue()


@pytest.mark.attacks
def test_an_error_message_steers_no_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is repeated from the command or from data is written out."""
    monkeypatch.setattr(sys, "argv", ["mirblab", "run", "bm25", "x/\x1b[31m\u202e"])
    with pytest.raises(SystemExit):
        main()
    said = capsys.readouterr().err
    assert is_plain(said) and r"\x1b[31m\u202e" in said


@pytest.mark.parametrize("text", [*HOSTILE, *STEERING])
def test_a_console_shows_every_text_as_it_is(text: str) -> None:
    """In lines, cells, headings, titles and captions; steering signs are written out."""
    out = io.StringIO()
    console = terminal.console(file=out, width=200, force_terminal=True, color_system=None)
    table = Table(text, title=text, caption=text)
    table.add_row(text)
    console.print(table)
    console.print(text)
    shown = out.getvalue()
    assert is_plain(shown)
    assert shown.count(terminal.safe_text(text)) == 5


def test_a_stream_that_cannot_carry_a_character_gets_its_number() -> None:
    """Printing never fails for an encoding."""
    out = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    terminal.say("é \ud800 \x1b", to=out)
    assert out.buffer.getvalue().decode() == "\\xe9 \\ud800 \\x1b\n"


@pytest.mark.attacks
def test_a_progress_bar_shows_a_hostile_label_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Labels name collections and models."""
    monkeypatch.delenv("MIRBLAB_PROGRESS", raising=False)
    with progress(2, "\x1b]0;title\x07[/b]") as bar:
        assert r"\x1b]0;title\x07[/b]" in str(bar)
    assert is_plain(str(bar))


def test_mathjax_leaves_plain_tables_alone() -> None:
    r"""A frame that a notebook shows as it is may hold `\href{javascript:...}` from data."""
    held = load("mini-qa")
    for frame in (held.queries.head(), pd.DataFrame({"text": [r"$\href{javascript:alert(1)}{x}$"]})):
        shown = frame._repr_html_()
        assert 'class="dataframe tex2jax_ignore mathjax_ignore"' in shown
    assert "mathjax_ignore" in held._repr_html_()
