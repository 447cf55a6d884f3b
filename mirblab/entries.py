"""entries: an encoder's entry in the registry, checked, with its variants, and what of it determines a vector."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mirblab import paths, registry
from mirblab.errors import MirblabError, unknown
from mirblab.formula import pretokens
from mirblab.secret import check_keys

Entry = dict[str, Any]

LOCAL = ("id", "revision", "max_length", "pooling", "normalise", "dtype", "dimensions", "prompts")
HOSTED = ("vendor", "model", "max_length", "normalise", "dimensions", "prompts")
# Determine a vector too, but only where they are set: an entry without them keeps the key that it had before.
SOMETIMES = ("eos", "attention", "prompt_pooled", "code_revision", "truncate", "output_dimension", "url", "pretokens")
BY_ROLE = ("prompts", "lead", "suffix", "input_types")
VARIANTS = ("mirb",)
_TEXT = (
    "label size licence id revision package sha256 pooling dtype eos attention padding code_revision "
    "without_instruction vendor model truncate url key_variable pretokens"
).split()
_NUMBER = (
    "max_length dimensions output_dimension batch_texts batch_tokens requests_per_minute tokens_per_minute in_flight"
).split()
_TYPES: dict[str, type] = (
    dict.fromkeys(("price_per_million_tokens", "budget", "timeout"), float)
    | dict.fromkeys(_TEXT, str)
    | dict.fromkeys(_NUMBER, int)
    | dict.fromkeys(("normalise", "trust_remote_code", "prompt_pooled", "trained"), bool)
    | dict.fromkeys((*BY_ROLE, *VARIANTS), dict)
)
_WORDS = {
    float: "a number from 0",
    str: "text in quotes",
    int: "a whole number from 1",
    bool: "true or false",
    dict: "a table",
}
_CHOICES = {
    "dtype": ("float32", "bfloat16", "float16"),
    "attention": ("causal", "bidirectional"),
    "padding": ("left", "right"),
    "pretokens": tuple(pretokens.FORMS),
}


def is_hosted(entry: Mapping[str, Any]) -> bool:
    """Return whether a vendor runs the model; else it runs here.

    >>> is_hosted({"vendor": "cohere"}), is_hosted({"id": "owner/name"})
    (True, False)
    """
    return "vendor" in entry


def is_folder(identifier: Any) -> bool:
    """Return whether an id is a folder on this machine, absolute or with "~" or "." in front; else it is on the Hub.

    >>> is_folder("~/models/mine"), is_folder("./mine"), is_folder("owner/name")
    (True, True, False)
    """
    given = str(identifier or "")
    return given.startswith(".") or paths.given(given).is_absolute()


def checked(name: str, entry: Any) -> Entry:
    """Return the *entry* of the encoder *name* as a dict; MirblabError naming file, entry and field if it is wrong.

    Wrong are unknown fields, missing ones, values of another type, and values that no model can have.
    """
    where = f"encoder '{name}' in {origin(name)}"
    if not isinstance(entry, Mapping):
        raise MirblabError(f"{where} is {entry!r}, not a table; write [{name}] above its fields")
    try:
        check_keys(entry)
    except MirblabError as error:
        raise MirblabError(f"{where}: {error}") from error
    for field, value in entry.items():
        _check_field(where, field, value)
    needed = HOSTED if is_hosted(entry) else LOCAL
    if entry.get("trained"):  # what is trained here is known by its name, and by a digest of its files
        needed = tuple(field for field in needed if field not in ("id", "revision"))
    elif is_folder(entry.get("id")):
        needed = tuple(field for field in needed if field != "revision")
    absent = [field for field in needed if field not in entry]
    if absent:
        raise MirblabError(f"{where} lacks {', '.join(absent)}; add what is missing to the entry")
    return dict(entry)


def variant(name: str, entry: Any, compat: str = "") -> Entry:
    """Return the checked entry as it is used: without its variants, or with the fields of the one named *compat*.

    Tables by role are merged role by role. Raises MirblabError when the entry has no such variant.

    >>> entry = {"vendor": "x", "model": "m", "max_length": 9, "normalise": True, "dimensions": 2,
    ...          "prompts": {"query": "q: ", "document": ""}, "mirb": {"prompts": {"document": " "}}}
    >>> variant("m", entry)["prompts"]["document"], variant("m", entry, "mirb")["prompts"]
    ('', {'query': 'q: ', 'document': ' '})
    """
    whole = checked(name, entry)
    found = {field: value for field, value in whole.items() if field not in VARIANTS}
    if not compat:
        return found
    known = [one for one in VARIANTS if one in whole]
    if compat not in known:
        raise unknown(f"compat mode of encoder '{name}' called", compat, known)
    for field, value in whole[compat].items():
        found[field] = found.get(field, {}) | value if field in BY_ROLE else value
    return checked(name, found)


def key(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return all of an entry that determines its vectors, role, instruction and text apart."""
    fields = HOSTED if is_hosted(entry) else LOCAL
    found = {"model" if field == "id" else field: entry[field] for field in fields}
    optional = (*SOMETIMES, "without_instruction", *BY_ROLE)
    found |= {name: entry[name] for name in optional if name not in found and _is_set(entry.get(name))}
    # other rules of pre-tokenisation give other vectors
    return found | ({"pretokens_version": pretokens.VERSION} if "pretokens" in found else {})


def space(entry: Mapping[str, Any], role: str, prompt: str) -> dict[str, Any]:
    """Return everything that determines a vector except its text, for one role and its filled-in *prompt*."""
    found = {name: value for name, value in key(entry).items() if name not in (*BY_ROLE, "without_instruction")}
    mine = {name: entry[name][role] for name in BY_ROLE[1:] if entry.get(name, {}).get(role)}
    return found | {"role": role, "prompt": prompt} | mine


def origin(name: str) -> str:
    """Return the file that the entry *name* comes from: the home registry's if it is there, else the package's."""
    return registry.origin("encoders", name)


def _is_set(value: Any) -> bool:
    return value not in (None, "", True, {})


def _check_field(where: str, field: str, value: Any) -> None:
    if field not in _TYPES and isinstance(value, Mapping):
        raise MirblabError(f'{where} holds a table {field!r}; a name with a dot needs quotes: ["name.{field}"]')
    if field not in _TYPES:
        raise unknown(f"field of {where} called", field, _TYPES)
    wanted = _TYPES[field]
    is_right = isinstance(value, wanted)
    if wanted in (int, float):
        is_number = isinstance(value, (int, wanted)) and not isinstance(value, bool)
        is_right = is_number and value >= (1 if wanted is int else 0)
    if not is_right:
        raise MirblabError(f"{where}: {field} is {value!r}; write {_WORDS[wanted]}")
    if field in _CHOICES and value not in _CHOICES[field]:
        raise MirblabError(f"{where}: {field} is {value!r}; write {' or '.join(_CHOICES[field])}")
    for inner in value if field in BY_ROLE else ():
        if not isinstance(value[inner], str):
            raise MirblabError(f"{where}: {field}.{inner} is {value[inner]!r}; write text in quotes")
    for inner in value if field in VARIANTS else ():
        _check_field(f"{where}, {field}", inner, value[inner])
