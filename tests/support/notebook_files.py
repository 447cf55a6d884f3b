"""Notebooks of one cell to run in a batch, and the cells of ours with other parameters."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import nbformat

OURS = Path(__file__).resolve().parents[2] / "notebooks"
PARAMETERS = (
    'suite: str = "own"  # suite\nword: str = "a"  # a word\nn: int = 1  # a number\nx: float = 0.5  # a share\n'
)
WRITE = """
from pathlib import Path
import os
folder = Path(os.environ["MIRBLAB_HOME"]) / "figures" / suite / "{name}"
folder.mkdir(parents=True, exist_ok=True)
_ = (folder / (word + ".txt")).write_text(word * n)
"""


def notebook(folder: Path, name: str, code: str, parameters: str = PARAMETERS) -> None:
    book = nbformat.v4.new_notebook()
    book.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    first = nbformat.v4.new_code_cell(parameters)
    first.metadata["tags"] = ["parameters"]
    book.cells = [nbformat.v4.new_markdown_cell("# A question?"), first, nbformat.v4.new_code_cell(code)]
    nbformat.write(book, folder / f"{name}.ipynb")


def run_cells(name: str, **parameters: object) -> tuple[dict[str, Any], str]:
    """Run the cells of one of our notebooks with other parameters; return its variables, and what the last one says."""
    book = nbformat.read(OURS / f"{name}.ipynb", as_version=4)
    shown = [cell for cell in book.cells if "remove-cell" not in cell.metadata.get("tags", [])]
    cells = [cell for cell in shown if cell.cell_type == "code"]
    space: dict[str, Any] = {"display": lambda *_: None}
    exec(cells[0].source, space)
    space |= parameters
    for cell in cells[1:-1]:
        exec(compile(cell.source, cell.id, "exec"), space)
    *first, last = ast.parse(cells[-1].source).body
    assert isinstance(last, ast.Expr)
    exec(compile(ast.Module(first, []), cells[-1].id, "exec"), space)
    return space, eval(compile(ast.Expression(last.value), cells[-1].id, "eval"), space).data
