"""Errors of the project are shown in a notebook without the frames of libraries."""

from __future__ import annotations

import pytest
from IPython.core.interactiveshell import InteractiveShell


def test_a_cell_shows_its_own_line_and_the_message(capsys: pytest.CaptureFixture[str]):
    """What the user wrote, then what is wrong; the library's lines are left out."""
    shell = InteractiveShell()
    shell.run_cell("import mirblab as lab\n\n\ndef load():\n    return lab.load('mini-qq')\n\n\nload()", silent=False)
    shown = capsys.readouterr().out.splitlines()
    assert shown[:2] == ["Line 8 of the cell: load()", "Line 5 of the cell: return lab.load('mini-qq')"]
    assert shown[2].startswith("MirblabError: no collection 'mini-qq'; did you mean 'mini-qa'?") and len(shown) == 3


def test_other_errors_keep_their_frames(capsys: pytest.CaptureFixture[str]):
    """An error of Python's own may be a mistake of ours."""
    InteractiveShell().run_cell("import mirblab as lab\nlab.load(1 / 0)")
    assert "ZeroDivisionError" in (shown := capsys.readouterr().out) and "Traceback" in shown
