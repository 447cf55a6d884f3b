"""card: what a collection says of itself in card.toml."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from mirblab.errors import MirblabError, unknown

RULES = ("judged", "not-self", "earlier", "tags")


def raw(folder: Path) -> dict[str, Any]:
    """Return what `card.toml` in *folder* says, as it stands, or nothing; MirblabError when it is not TOML."""
    path = folder / "card.toml"
    try:
        return tomllib.loads(path.read_text("utf-8")) if path.is_file() else {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise MirblabError(f"{path} is not valid TOML in UTF-8: {error}; mend that place of it") from error


@dataclass(frozen=True)
class Card:
    """Task, source, licence, revision, relevance levels, instruction and candidate rules of a collection.

    Every field has a default, so that a folder without a card loads. `candidates` names rules: "judged" (only
    what was judged for the query), "not-self" (not the document of the query's own id), "earlier" (documents
    of a smaller `order`), "tags" (MIRB's rule of shared tags). `paper` is the printed name of the published
    collection that this one rebuilds. `relevant_from` is the smallest relevance that binary measures count as
    relevant. Keys that are no field are kept in `extra`.
    """

    name: str = ""
    title: str = ""
    task: str = ""
    source: str = ""
    licence: str = ""
    revision: str = ""
    instruction: str = ""
    paper: str = ""
    relevance_levels: list[int] = field(default_factory=list)
    relevant_from: int = 1
    candidates: list[str] = field(default_factory=list)
    extra: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def read(cls, folder: Path) -> Card:
        """Return the card in *folder*, or an empty one; MirblabError when it cannot be understood."""
        return cls.from_dict(raw(folder), str(folder / "card.toml"))

    @classmethod
    def from_dict(cls, found: dict[str, Any], where: str = "card") -> Card:
        """Return the card with the values *found*, checked.

        >>> Card.from_dict({"candidates": "judged"}).candidates
        ['judged']
        """
        known = {item.name: item.default for item in fields(cls) if item.name != "extra"}
        values = {key: value for key, value in found.items() if key in known}
        rules = values.get("candidates", [])
        if not isinstance(rules, (str, list)):
            raise MirblabError(f"{where}: 'candidates' must be a rule or a list of rules, found {rules!r}")
        values["candidates"] = [rules] if isinstance(rules, str) and rules else list(rules)
        for rule in values["candidates"]:
            if rule not in RULES:
                raise MirblabError(f"{where}: {unknown('candidate rule', str(rule), RULES)}")
        card = cls(**values, extra={key: value for key, value in found.items() if key not in known})
        card._check(where)
        return card

    def _check(self, where: str) -> None:
        texts = ("name", "title", "task", "source", "licence", "revision", "instruction", "paper")
        for key in texts:
            if not isinstance(getattr(self, key), str):
                raise MirblabError(f"{where}: '{key}' must be a text, found {getattr(self, key)!r}")
        levels = self.relevance_levels
        if not isinstance(levels, list) or not all(type(level) is int for level in levels):
            raise MirblabError(f"{where}: 'relevance_levels' must be a list of whole numbers, found {levels!r}")
        if type(self.relevant_from) is not int or self.relevant_from < 1:
            raise MirblabError(f"{where}: 'relevant_from' must be a whole number from 1, found {self.relevant_from!r}")
