"""recipes: a training recipe: read from the registry, changed by hand, checked before anything is loaded."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mirblab.core import paths, registry
from mirblab.core.errors import MirblabError, unknown

# Change nothing of the weights, so a run may go on with others.
FREE_FIELDS = ("name", "label", "licence", "checkpoint_every", "evaluate_every", "evaluate_rows")
_CHOICES = {
    "precision": ("auto", "float32", "bfloat16"),
    "weights": ("float32", "bfloat16"),
    "modules": ("all", "mathematics"),
}
_PATH_FIELDS = ("data", "rephrased", "hard")
_MAY_BE_ZERO = (
    "near",
    *("warmup", "weight_decay", "clip", "lora", "late", "share", "n_hard", "seed", "steps", "max_pairs"),
    *("checkpoint_every", "evaluate_every", "evaluate_rows"),
)


@dataclass(frozen=True)
class Recipe:
    """All that determines a trained model, besides the data itself; `registry/trained.toml` explains every field.

    >>> Recipe("mine", learning_rate=2e-5).batch
    48
    """

    name: str
    label: str = ""
    licence: str = ""
    base: str = "minilm"
    tokens_from: str = ""
    tokens_share: float = 0.5
    data: str = "mathlib-views"
    split: str = "train"
    modules: str = "all"
    near: float = 0.8
    rephrased: str = ""
    view_pairs: tuple[str, ...] = ("informal:signature", "informal:type", "signature:type")
    batch: int = 48
    together: int = 1
    epochs: float = 2.0
    steps: int = 0
    max_pairs: int = 0
    learning_rate: float = 5e-5
    embedding_rate: float = 1.0
    decay: bool = False
    warmup: int = 20
    weight_decay: float = 0.0
    clip: float = 1.0
    dropout: bool = True
    trained_share: float = 1.0
    scale: float = 20.0
    symmetric: bool = True
    max_length: int = 128
    instruction: str = ""
    precision: str = "auto"
    weights: str = "float32"
    cached: bool = False
    tokens_per_pass: int = 2048
    recompute: bool = False
    lora: int = 0
    late: int = 0
    hard: str = ""
    n_hard: int = 1
    mix: str = ""
    mix_split: str = "train"
    share: float = 0.0
    seed: int = 0
    checkpoint_every: float = 120.0
    evaluate_every: int = 0
    evaluate_rows: int = 2000

    @property
    def is_static(self) -> bool:
        """Return whether the base is a static embedding made from an encoder's token embeddings."""
        return self.base.startswith("static:")

    @property
    def encoder(self) -> str:
        """Return the registry's name of the encoder that the base is, or is made from."""
        return self.base.removeprefix("static:")

    def pairs(self) -> list[tuple[str, str]]:
        """Return the pairs of columns that are drawn: ("informal", "signature"), ..."""
        return [(one.partition(":")[0], one.partition(":")[2]) for one in self.view_pairs]

    def columns(self) -> list[str]:
        """Return the columns that the pairs name, each once, in their order."""
        return list(dict.fromkeys(column for pair in self.pairs() for column in pair))

    def n_steps(self, n_rows: int) -> int:
        """Return how many steps are taken over *n_rows* rows: of `epochs`, unless `steps` or `max_pairs` say less.

        >>> Recipe("mine", batch=10, epochs=2).n_steps(105), Recipe("mine", batch=10, max_pairs=35).n_steps(105)
        (20, 4)
        """
        per_epoch = max(1, n_rows // self.batch)
        limits = [math.ceil(per_epoch * self.epochs), self.steps, math.ceil(self.max_pairs / self.batch)]
        return min(limit for limit in limits if limit)

    def determining(self) -> dict[str, Any]:
        """Return the fields that can change the trained weights, as JSON holds them; of a path its last name."""
        values = {name: value for name, value in dataclasses.asdict(self).items() if name not in FREE_FIELDS}
        return (
            values
            | {"view_pairs": list(self.view_pairs)}
            | {name: Path(getattr(self, name)).name for name in _PATH_FIELDS}
        )


def recipe(name: str, **changes: Any) -> Recipe:
    """Return the recipe called *name* in `trained.toml`, the package's or the home registry's, with *changes*.

    Raises MirblabError naming recipe and field for what is unknown, of another type, or out of range.

    >>> recipe("minilm-math", seed=3).seed
    3
    """
    known = registry.read_registry("trained")
    if name not in known:
        raise unknown("recipe", name, known)
    return check_recipe(name, known[name] | changes)


def check_recipe(name: str, fields: Mapping[str, Any]) -> Recipe:
    """Return the recipe *name* made of *fields*, or raise MirblabError with what is wrong."""
    where = f"recipe '{name}' in {_origin(name)}"
    paths.checked_name(name)
    types = {field.name: type(field.default) for field in dataclasses.fields(Recipe) if field.name != "name"}
    values: dict[str, Any] = {}
    for field, value in fields.items():
        if field not in types:
            raise unknown(f"field of {where} called", field, types)
        values[field] = _typed(where, field, value, types[field])
    made = Recipe(name, **values)
    _check_ranges(where, made)
    return made


def describe_differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """Return what differs between two recipes or states as text: "batch was 48 and is 64; ..."; "" for nothing.

    >>> describe_differences({"batch": 48, "seed": 0}, {"batch": 64, "seed": 0})
    'batch was 48 and is 64'
    """
    fields = [field for field in {**old, **new} if old.get(field) != new.get(field)]
    return "; ".join(f"{field} was {old.get(field)!r} and is {new.get(field)!r}" for field in fields)


def _typed(where: str, field: str, value: Any, wanted: type) -> Any:
    if wanted is tuple and isinstance(value, (list, tuple)) and all(isinstance(one, str) for one in value):
        return tuple(value)
    if wanted is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if type(value) is not wanted:
        words = {str: "text", int: "a whole number", float: "a number", bool: "true or false", tuple: "a list of texts"}
        raise MirblabError(f"{where}: {field} is {value!r}; write {words[wanted]}")
    return value


def _check_ranges(where: str, made: Recipe) -> None:
    for field, choices in _CHOICES.items():
        if getattr(made, field) not in choices:
            raise MirblabError(f"{where}: {field} is {getattr(made, field)!r}, not {' or '.join(choices)}")
    for field, value in dataclasses.asdict(made).items():
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            if not math.isfinite(value) or value < 0 or (value == 0 and field not in _MAY_BE_ZERO):
                raise MirblabError(f"{where}: {field} is {value!r}; write a number above 0")
    if made.tokens_from and (made.is_static or made.tokens_share > 1):
        raise MirblabError(
            f"{where}: tokens_from is {made.tokens_from!r} with tokens_share {made.tokens_share} and base "
            f"{made.base!r}; write a share up to 1, and a base that is no static embedding itself"
        )
    if made.trained_share > 1 or (made.trained_share < 1 and (made.lora or made.late)):
        raise MirblabError(
            f"{where}: trained_share is {made.trained_share} with lora = {made.lora} and late = {made.late}; write a "
            "share up to 1, and below 1 only where the base's own weights are trained"
        )
    if made.late and made.is_static:
        raise MirblabError(f"{where}: late is {made.late}, but {made.base} gives no token vectors; write late = 0")
    if made.batch < 2:
        raise MirblabError(f"{where}: batch is {made.batch}; a pair needs others to be told from, so at least 2")
    if not made.view_pairs or any(not left or not right or left == right for left, right in made.pairs()):
        raise MirblabError(
            f'{where}: view_pairs is {list(made.view_pairs)!r}; write pairs of columns: ["informal:signature"]'
        )
    if made.share >= 1 or bool(made.mix) != (made.share > 0):
        raise MirblabError(f"{where}: mix is {made.mix!r} with share {made.share}; name both, the share below 1")


def _origin(name: str) -> str:
    return registry.entry_file("trained", name)
