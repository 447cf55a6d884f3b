"""arguments: what is written behind --set, as Python values."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Annotated, Any

import typer

from mirblab.errors import MirblabError

Set = Annotated[list[str] | None, typer.Option("--set", help="A parameter, as name=value; may be repeated.")]


def settings(pairs: Iterable[str] | None) -> dict[str, Any]:
    """Return parameters from name=value; a value that is no literal of Python or TOML is a text.

    >>> settings(["seed=3", "data=mini-views", "decay=true"])
    {'seed': 3, 'data': 'mini-views', 'decay': True}
    """
    found = {}
    for pair in pairs or []:
        name, sign, value = pair.partition("=")
        if not sign:
            raise MirblabError(f"--set wants name=value, found '{pair}'; write for example --set seed=1")
        try:
            found[name.strip()] = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            found[name.strip()] = {"true": True, "false": False}.get(value, value)
    return found
