"""report_view: a report on a collection, printed for people."""

from __future__ import annotations

import pandas as pd
from rich.console import Console
from rich.table import Table

from mirblab import terminal
from mirblab.escape import display
from mirblab.inspection import Report

_WIDEST = 100


def show(report: Report, console: Console | None = None) -> None:
    """Print the findings of a *report*, worst first, then its tables and what they rest on.

    *console* None: standard output.
    """
    console = console or terminal.console()
    console.print(f"{report.collection}: {len(report.findings)} findings, worst first", style="bold")
    for number, text in enumerate(report.findings, 1):
        console.print(f"{number:3d}. {text}", soft_wrap=True)
    for title, table in report.tables().items():
        console.print(_drawn(title, table))
    for note in report.notes:
        console.print(note, soft_wrap=True, style="dim")


def _drawn(title: str, table: pd.DataFrame) -> Table:
    """Return a table for the console: shares in percent, long texts cut."""
    drawn = Table(title=title, title_justify="left")
    for name in table.columns:
        number = pd.api.types.is_numeric_dtype(table[name])
        drawn.add_column(str(name), justify="right" if number else "left", overflow="fold")
    for row in table.itertuples(index=False):
        drawn.add_row(*(_cell(name, value) for name, value in zip(table.columns, row, strict=True)))
    return drawn


def _cell(name: object, value: object) -> str:
    """Return one value as a text of bearable length."""
    is_share = isinstance(value, float) and str(name) in ("share", "near_share", "low", "high")
    text = f"{value:.1%}" if is_share and value == value else display(value)
    return text if len(text) <= _WIDEST else text[: _WIDEST - 1] + "…"
