"""card: what a collection says of itself in card.toml."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from mirblab import paths
from mirblab.errors import MirblabError, unknown
from mirblab.toml import line, read_toml

RULES = ("judged", "not-self", "earlier", "tags")


def raw(folder: Path) -> dict[str, Any]:
    """Return what `card.toml` in *folder* says, as it stands, or nothing; MirblabError when it is not TOML."""
    path = folder / "card.toml"
    return read_toml(path) if path.is_file() else {}


@dataclass(frozen=True)
class Card:
    """Task, source, licence, revision, relevance levels, instruction and candidate rules of a collection.

    Every field has a default, so that a folder without a card loads. `candidates` names rules: "judged" (only
    what was judged for the query), "not-self" (not the document of the query's own id), "earlier" (documents
    of a smaller `order`), "tags" (MIRB's rule of shared tags). `follows` is the published collection that this
    one rebuilds, `paper` the name that it is printed under; where several share a column, that is `group` instead.
    `relevant_from` is the smallest relevance that binary measures count as relevant. `language` names the proof
    assistant whose language the texts are in, where their signs do not tell. Keys that are no field are in `extra`.
    """

    name: str = ""
    title: str = ""
    task: str = ""
    source: str = ""
    licence: str = ""
    revision: str = ""
    instruction: str = ""
    paper: str = ""
    group: str = ""
    follows: str = ""
    language: str = ""
    relevance_levels: list[int] = field(default_factory=list)
    relevant_from: int = 1
    candidates: list[str] = field(default_factory=list)
    extra: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def read(cls, folder: Path) -> Card:
        """Return the card in *folder*, or an empty one; MirblabError, with file and line, for a field that is wrong."""
        try:
            return cls.from_dict(raw(folder))
        except _WrongField as error:
            path = folder / "card.toml"
            raise MirblabError(f"{path}{line(path.read_text('utf-8-sig'), error.key)}: {error}") from error

    @classmethod
    def from_dict(cls, found: dict[str, Any]) -> Card:
        """Return the card with the values *found*, checked; MirblabError for one that is wrong.

        >>> Card.from_dict({"candidates": "judged"}).candidates
        ['judged']
        """
        known = {item.name: item.default for item in fields(cls) if item.name != "extra"}
        values = {key: value for key, value in found.items() if key in known}
        rules = values.get("candidates", [])
        if not isinstance(rules, (str, list)):
            raise _WrongField("candidates", f"must be a rule or a list of rules, found {rules!r:.60}")
        values["candidates"] = [rules] if isinstance(rules, str) and rules else list(rules)
        for rule in values["candidates"]:
            if rule not in RULES:
                raise _WrongField("candidates", str(unknown("candidate rule", str(rule)[:60], RULES)))
        card = cls(**values, extra={key: value for key, value in found.items() if key not in known})
        card._check()
        return card

    def _check(self) -> None:
        for key in (item.name for item in fields(self) if item.type == "str"):
            if not isinstance(getattr(self, key), str):
                raise _WrongField(key, f"must be a text, found {getattr(self, key)!r:.60}")
        if self.name:
            try:
                paths.clean_name(self.name)
            except MirblabError as error:
                raise _WrongField("name", str(error)) from error
        levels = self.relevance_levels
        if not isinstance(levels, list) or not all(type(level) is int for level in levels):
            raise _WrongField("relevance_levels", f"must be a list of whole numbers, found {levels!r:.60}")
        if type(self.relevant_from) is not int or self.relevant_from < 1:
            raise _WrongField("relevant_from", f"must be a whole number from 1, found {self.relevant_from!r:.60}")


class _WrongField(MirblabError):
    """A field of a card that is not what it must be; its key is kept, to be looked up in the file."""

    def __init__(self, key: str, what: str) -> None:
        super().__init__(f"'{key}' {what}" if what.startswith("must") else what)
        self.key = key
