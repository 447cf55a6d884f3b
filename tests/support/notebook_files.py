"""Notebooks of one cell to run in a batch."""

from __future__ import annotations

from pathlib import Path

import nbformat

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
