"""recipes: training recipes, read from the registry, changed and checked before anything is loaded."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, get_type_hints

from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt

from mirblab.core import paths, registry
from mirblab.core.errors import MirblabError, check_known

# Fields that do not change the weights, so that a run may be continued with other values.
FREE_FIELDS = ("name", "label", "licence", "checkpoint_every", "evaluate_every", "evaluate_rows")
_PATH_FIELDS = ("data", "rephrased")
CROSS, LANGUAGE = "cross-encoder", "language-model"
# Fields of one kind of model or of data only; other recipes have their defaults, and do not depend on them.
_NEW_LAYERS_FIELDS = ("kind", "head_rate")
_CROSS_FIELDS = ("loss", "pooling", "joint_layers", "first_weight", "instructed")
_LANGUAGE_FIELDS = ("pretokens", "new_tokens", "mask_share", "next_sentence")
_ENCODER_FIELDS = ("tokens_from", "tokens_share", "scale", "symmetric", "instruction", "cached", "late")
_LIST_FIELDS = ("max_queries", "first", "first_depth", "n_negatives", "negatives", "margin", "easy")
_COLLECTION_FIELDS = ("collections", "apart", "held_out_queries")
_VIEW_FIELDS = (
    "data", "split", "modules", "rephrased", "view_pairs", "together", "hard", "n_hard", "mix", "mix_split", "share",
)  # fmt: skip
_Share = Annotated[float, Field(gt=0, le=1)]


@dataclass(frozen=True)
class Recipe:
    """All that determines a trained model, except the data; `registry/trained.toml` explains every field.

    >>> Recipe("mine", learning_rate=2e-5).batch
    48
    """

    name: str
    label: str = ""
    licence: str = ""
    kind: Literal["bi-encoder", "cross-encoder", "language-model"] = "bi-encoder"
    base: str = "minilm"
    tokens_from: str = ""
    tokens_share: _Share = 0.5
    data: str = "mathlib-views"
    split: str = "train"
    modules: Literal["all", "mathematics"] = "all"
    near: NonNegativeFloat = 0.8
    rephrased: str = ""
    view_pairs: tuple[str, ...] = ("informal:signature", "informal:type", "signature:type")
    batch: Annotated[int, Field(ge=2)] = 48
    together: PositiveInt = 1
    epochs: PositiveFloat = 2.0
    steps: NonNegativeInt = 0
    max_pairs: NonNegativeInt = 0
    learning_rate: PositiveFloat = 5e-5
    embedding_rate: PositiveFloat = 1.0
    decay: bool = False
    warmup: NonNegativeInt = 20
    weight_decay: NonNegativeFloat = 0.0
    clip: NonNegativeFloat = 1.0
    dropout: bool = True
    trained_share: _Share = 1.0
    scale: PositiveFloat = 20.0
    symmetric: bool = True
    max_length: PositiveInt = 128
    instruction: str = ""
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    weights: Literal["float32", "bfloat16"] = "float32"
    cached: bool = False
    tokens_per_pass: PositiveInt = 2048
    recompute: bool = False
    lora: NonNegativeInt = 0
    late: NonNegativeInt = 0
    hard: Literal["", "written"] = ""
    n_hard: NonNegativeInt = 1
    mix: str = ""
    mix_split: str = "train"
    share: Annotated[float, Field(ge=0, lt=1)] = 0.0
    collections: tuple[str, ...] = ()
    apart: tuple[str, ...] = ()
    max_queries: NonNegativeInt = 0
    first: str = "bm25"
    first_depth: Annotated[int, Field(ge=2)] = 50
    n_negatives: NonNegativeInt = 7
    negatives: Literal["first", "tags", "judged"] = "first"
    margin: Annotated[float, Field(ge=0, lt=1)] = 0.0
    easy: Annotated[float, Field(ge=0, le=1)] = 0.0
    loss: Literal["listwise", "binary"] = "listwise"
    pooling: Literal["mean", "cls", "segments"] = "mean"
    joint_layers: PositiveInt = 2
    head_rate: PositiveFloat = 1.0
    first_weight: NonNegativeFloat = 0.0
    instructed: bool = False
    held_out_queries: NonNegativeInt = 60
    pretokens: Literal["", "pya0", "pya0-plain", "pya0-wide"] = ""
    new_tokens: NonNegativeInt = 0
    mask_share: Annotated[float, Field(gt=0, lt=1)] = 0.15
    next_sentence: bool = True
    seed: NonNegativeInt = 0
    checkpoint_every: NonNegativeFloat = 120.0
    evaluate_every: NonNegativeInt = 0
    evaluate_rows: NonNegativeInt = 2000

    @property
    def is_static(self) -> bool:
        """Return whether the base is a mean of an encoder's token embeddings."""
        return self.base.startswith("static:")

    @property
    def is_cross(self) -> bool:
        """Return whether a cross-encoder is trained, and not an encoder."""
        return self.kind == CROSS

    @property
    def is_language_model(self) -> bool:
        """Return whether the base is pretrained further, by masked words and the next sentence."""
        return self.kind == LANGUAGE

    def unused_fields(self) -> tuple[str, ...]:
        """Return the fields on which a model of this kind, from collections or from views, does not depend."""
        of_kind = {
            "bi-encoder": (*_NEW_LAYERS_FIELDS, *_CROSS_FIELDS, *_LANGUAGE_FIELDS),
            CROSS: (*_ENCODER_FIELDS, *_LANGUAGE_FIELDS),
            LANGUAGE: (*_ENCODER_FIELDS, *_CROSS_FIELDS, *_LIST_FIELDS),
        }[self.kind]
        from_collections = self.collections or self.kind != "bi-encoder"
        return (*of_kind, *(_VIEW_FIELDS if from_collections else (*_LIST_FIELDS, *_COLLECTION_FIELDS)))

    @property
    def encoder(self) -> str:
        """Return the encoder that the base is, or is made from."""
        return self.base.removeprefix("static:")

    def pairs(self) -> list[tuple[str, str]]:
        """Return the pairs of columns to draw from: ("informal", "signature"), ..."""
        return [(pair.partition(":")[0], pair.partition(":")[2]) for pair in self.view_pairs]

    def columns(self) -> list[str]:
        """Return the columns of the pairs, each once."""
        return list(dict.fromkeys(column for pair in self.pairs() for column in pair))

    def n_steps(self, n_rows: int) -> int:
        """Return the number of steps for *n_rows* rows: `epochs` of them, unless `steps` or `max_pairs` is less.

        >>> Recipe("mine", batch=10, epochs=2).n_steps(105), Recipe("mine", batch=10, max_pairs=35).n_steps(105)
        (20, 4)
        """
        per_epoch = max(1, n_rows // self.batch)
        limits = [math.ceil(per_epoch * self.epochs), self.steps, math.ceil(self.max_pairs / self.batch)]
        return min(limit for limit in limits if limit)

    def determining(self) -> dict[str, Any]:
        """Return the fields that can change the trained weights, as JSON has them; of a path its last name."""
        left_out = (*FREE_FIELDS, *self.unused_fields())
        values = dataclasses.asdict(self) | {name: Path(getattr(self, name)).name for name in _PATH_FIELDS}
        listed = {name: list(value) for name, value in values.items() if isinstance(value, tuple)}
        return {name: value for name, value in (values | listed).items() if name not in left_out}


def recipe(name: str, /, **changes: Any) -> Recipe:
    """Return the recipe *name* of `trained.toml`, the package's or the home registry's, with *changes*.

    A list may be text with commas, as it is typed on a command line. Raises MirblabError with recipe and field for what
    is unknown, of another type, or out of range.

    >>> recipe("minilm-math", seed=3).seed, recipe("minilm-cross", collections="mini-qa, mini-stacks").collections
    (3, ('mini-qa', 'mini-stacks'))
    """
    known = registry.read_registry("trained")
    check_known("recipe", name, known)
    for field, kind in get_type_hints(Recipe).items():
        if kind == tuple[str, ...] and isinstance(changes.get(field), str):
            changes[field] = [part.strip() for part in changes[field].split(",") if part.strip()]
    return check_recipe(name, known[name] | changes)


def check_recipe(name: str, fields: Mapping[str, Any]) -> Recipe:
    """Return the recipe *name* with *fields*, or raise MirblabError with what is wrong."""
    where = f"recipe '{name}' in {registry.entry_file('trained', name)}"
    paths.checked_name(name, of="a model")
    types = get_type_hints(Recipe, include_extras=True)
    del types["name"]
    lists_as_tuples = {field: tuple(value) if isinstance(value, list) else value for field, value in fields.items()}
    made = Recipe(name, **registry.check_table(where, lists_as_tuples, types))
    _check_combinations(where, made)
    return made


def describe_differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """Return the differences of two recipes or states as text, "" for none.

    What of the base's inputs older versions did not record is compared only where *old* has it.

    >>> describe_differences({"batch": 48, "seed": 0}, {"batch": 64, "seed": 0, "lead": {"document": " "}})
    'batch was 48 and is 64'
    """
    unrecorded = {"without_instruction", "lead", "suffix"} - set(old)
    fields = [field for field in {**old, **new} if old.get(field) != new.get(field) and field not in unrecorded]
    return "; ".join(f"{field} was {old.get(field)!r} and is {new.get(field)!r}" for field in fields)


def _check_kind(where: str, made: Recipe) -> None:
    """Raise MirblabError for a field of another kind that is set, and for a missing one of this kind."""
    plain = Recipe(made.name)
    wrong = [name for name in made.unused_fields() if name != "kind" and getattr(made, name) != getattr(plain, name)]
    if made.kind != plain.kind and not made.collections:
        raise MirblabError(f'{where}: a {made.kind} learns from collections; write collections = ["stacks-qa"]')
    if wrong:
        data = "collections" if made.collections else "views"
        raise MirblabError(
            f"{where}: a {made.kind} from {data} has no {', '.join(wrong)}; take it out, or give another kind or data"
        )
    if made.is_cross and not made.n_negatives:
        raise MirblabError(f"{where}: a cross-encoder ranks a document above others; write n_negatives = 7")
    if made.kind != plain.kind and (made.is_static or made.lora or made.recompute or made.trained_share < 1):
        raise MirblabError(
            f"{where}: a {made.kind} is trained whole, from a transformer; take out static:, lora, recompute and "
            "trained_share"
        )
    if made.new_tokens and not made.pretokens:
        raise MirblabError(f'{where}: new_tokens are words of pre-tokenised formulas; write pretokens = "pya0"')


def _check_combinations(where: str, made: Recipe) -> None:
    _check_kind(where, made)
    if made.tokens_from and made.is_static:
        raise MirblabError(
            f"{where}: tokens_from is {made.tokens_from!r} with base {made.base!r}; write a base that is no static "
            "embedding itself"
        )
    if made.trained_share < 1 and made.lora:
        raise MirblabError(
            f"{where}: trained_share is {made.trained_share} with lora = {made.lora}; write a share below 1 only where "
            "the base's own weights are trained"
        )
    if made.late and made.is_static:
        raise MirblabError(f"{where}: late is {made.late}, but {made.base} gives no token vectors; write late = 0")
    if not made.view_pairs or any(not left or not right or left == right for left, right in made.pairs()):
        raise MirblabError(
            f'{where}: view_pairs is {list(made.view_pairs)!r}; write pairs of columns: ["informal:signature"]'
        )
    if bool(made.mix) != (made.share > 0):
        raise MirblabError(f"{where}: mix is {made.mix!r} with share {made.share}; name both")
