"""registry: the named encoders, rerankers, systems and collections, as TOML."""

from __future__ import annotations

import tomllib
from importlib import resources
from typing import Any

from mirblab import paths
from mirblab.errors import MirblabError


def read(kind: str) -> dict[str, dict[str, Any]]:
    """Return the entries of one *kind* by name; `<home>/registry/<kind>.toml` adds to them and wins.

    >>> "minilm" in read("encoders")
    True
    """
    entries = _parse(resources.files(__name__).joinpath(f"{kind}.toml").read_text("utf-8"), f"{kind}.toml")
    own = paths.home() / "registry" / f"{kind}.toml"
    if own.is_file():
        entries |= _parse(own.read_text("utf-8"), str(own))
    return entries


def _parse(text: str, name: str) -> dict[str, dict[str, Any]]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise MirblabError(f"{name} is not valid TOML: {error}; mend that place of it") from error
