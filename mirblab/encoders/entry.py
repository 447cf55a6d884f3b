"""entry: an encoder's entry in the registry, its exact inputs and its cache key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from pydantic import NonNegativeFloat, PositiveInt

from mirblab.core import paths, registry
from mirblab.core.errors import MirblabError, check_known, unknown
from mirblab.core.terminal import progress
from mirblab.encoders.hosted.key import check_keys
from mirblab.formula import ngrams

Entry = dict[str, Any]

LOCAL: tuple[str, ...] = ("id", "revision", "max_length", "pooling", "normalise", "dtype", "dimensions", "prompts")
HOSTED: tuple[str, ...] = ("vendor", "model", "max_length", "normalise", "dimensions", "prompts")
# Fields that determine vectors but are part of the key only where they are set, so that older keys stay valid.
SOMETIMES = (
    *("eos", "attention", "padding", "prompt_pooled", "code_revision", "truncate", "output_dimension", "url"),
    "pretokens",
)
BY_ROLE = ("prompts", "lead", "suffix", "input_types")
VARIANTS = ("mirb",)
_TEXT = (
    "label size licence id revision package sha256 pooling dtype eos attention padding code_revision "
    "without_instruction vendor model truncate url key_variable pretokens"
).split()
_NUMBER = (
    "max_length dimensions output_dimension batch_texts batch_tokens requests_per_minute tokens_per_minute in_flight"
).split()
TYPES: dict[str, Any] = (
    dict.fromkeys(("price_per_million_tokens", "budget", "timeout"), NonNegativeFloat)
    | dict.fromkeys(_TEXT, str)
    | dict.fromkeys(_NUMBER, PositiveInt)
    | dict.fromkeys(("normalise", "trust_remote_code", "prompt_pooled", "trained", "sparse"), bool)
    | dict.fromkeys(BY_ROLE, dict[str, str])
    | dict.fromkeys(VARIANTS, dict[str, Any])
    | {"dtype": Literal["float32", "bfloat16", "float16"], "pretokens": Literal["pya0", "pya0-plain", "pya0-wide"]}
    | {"attention": Literal["causal", "bidirectional"], "padding": Literal["left", "right"]}
)


def is_hosted(entry: Mapping[str, Any]) -> bool:
    """Return whether a vendor runs the model; else it runs here."""
    return "vendor" in entry


def is_folder(identifier: Any) -> bool:
    """Return whether an id is a folder on this machine, absolute or with "~" or "." in front; else it is on the Hub.

    >>> is_folder("~/models/mine"), is_folder("./mine"), is_folder("owner/name")
    (True, True, False)
    """
    given = str(identifier or "")
    return given.startswith(".") or paths.expand_home(given).is_absolute()


def check_entry(name: str, entry: Any) -> Entry:
    """Return the *entry* of the encoder *name* as a dict; MirblabError naming file, entry and field if it is wrong."""

    def where(_: str = "") -> str:
        return f"encoder '{name}' in {entry_file(name)}"

    if not isinstance(entry, Mapping):
        raise MirblabError(f"{where()} is {entry!r}, not a table; write [{name}] above its fields")
    try:
        check_keys(entry)
    except MirblabError as error:
        raise MirblabError(f"{where()}: {error}") from error
    for field, value in entry.items():
        if field not in TYPES and isinstance(value, Mapping):
            raise MirblabError(f'{where()} holds a table {field!r}; a name with a dot needs quotes: ["name.{field}"]')
    needed = HOSTED if is_hosted(entry) else LOCAL
    if entry.get("trained"):  # what is trained here is known by its name, and by a digest of its files
        needed = tuple(field for field in needed if field not in ("id", "revision"))
    elif is_folder(entry.get("id")):
        needed = tuple(field for field in needed if field != "revision")
    registry.check_table(where, entry, TYPES, needed)
    for variant in VARIANTS:
        if variant in entry:
            registry.check_table(f"{where()}, {variant}", entry[variant], TYPES)
    return dict(entry)


def select_variant(name: str, entry: Any, compat: str = "") -> Entry:
    """Return the checked entry without its variants, with the fields of the one named *compat*, tables merged by role.

    MirblabError when the entry has no such variant.

    >>> entry = {"vendor": "x", "model": "m", "max_length": 9, "normalise": True, "dimensions": 2,
    ...          "prompts": {"query": "q: ", "document": ""}, "mirb": {"prompts": {"document": " "}}}
    >>> select_variant("m", entry)["prompts"]["document"], select_variant("m", entry, "mirb")["prompts"]
    ('', {'query': 'q: ', 'document': ' '})
    """
    whole = check_entry(name, entry)
    found = {field: value for field, value in whole.items() if field not in VARIANTS}
    if not compat:
        return found
    known = [one for one in VARIANTS if one in whole]
    check_known(f"compat mode of encoder '{name}' called", compat, known)
    for field, value in whole[compat].items():
        found[field] = found.get(field, {}) | value if field in BY_ROLE else value
    return check_entry(name, found)


def entry_key(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return all of an entry that determines its vectors, except role, instruction and text."""
    fields = HOSTED if is_hosted(entry) else LOCAL
    found = {"model" if field == "id" else field: entry[field] for field in fields}
    optional = (*SOMETIMES, "without_instruction", *BY_ROLE)
    found |= {name: entry[name] for name in optional if name not in found and _is_set(entry.get(name))}
    found |= {name: True for name in ("sparse", "trust_remote_code") if entry.get(name)}
    # other rules of pre-tokenisation give other vectors
    return found | ({"pretokens_version": ngrams.VERSION} if "pretokens" in found else {})


def vector_space(entry: Mapping[str, Any], role: str, prompt: str) -> dict[str, Any]:
    """Return everything that determines a vector except its text, for one role and its filled-in *prompt*."""
    found = {name: value for name, value in entry_key(entry).items() if name not in (*BY_ROLE, "without_instruction")}
    mine = {name: entry[name][role] for name in BY_ROLE[1:] if entry.get(name, {}).get(role)}
    return found | {"role": role, "prompt": prompt} | mine


def entry_file(name: str) -> str:
    """Return the file that the entry *name* comes from: the home registry's if it is there, else the package's."""
    return registry.entry_file("encoders", name)


def _is_set(value: Any) -> bool:
    return value not in (None, "", True, {})


def fill_prompt(name: str, entry: Mapping[str, Any], role: str, instruction: str = "") -> str:
    """Return the exact text put before an input of this *role*; `{instruction}` in the entry is filled in.

    Without an instruction such a prompt becomes the entry's `without_instruction`, if it has that.

    >>> entry = {"prompts": {"query": "Instruct: {instruction}\\nQuery: "}, "without_instruction": ""}
    >>> fill_prompt("toy", entry, "query", "Find it."), fill_prompt("toy", entry, "query")
    ('Instruct: Find it.\\nQuery: ', '')
    """
    if role not in entry["prompts"]:
        raise unknown(f"prompt of encoder '{name}' for role", role, entry["prompts"])
    template = str(entry["prompts"][role])
    if "{instruction}" in template and not instruction and "without_instruction" in entry:
        return str(entry["without_instruction"])
    return template.replace("{instruction}", instruction)


def input_strings(entry: Mapping[str, Any], role: str, prompt: str, texts: Sequence[str]) -> list[str]:
    """Return the tokenizer's input: *prompt*, the role's `lead`, the stripped text, the role's `suffix`.

    Texts are stripped as sentence-transformers before 6 did, on which the models were trained. Lone surrogates, which
    no tokenizer accepts, become U+FFFD. An entry with `pretokens` has the formulas of each text rewritten as words.

    >>> input_strings({"suffix": {"query": "</s>"}}, "query", "q: ", [" a ring "])
    ['q: a ring</s>']
    >>> input_strings({"pretokens": "pya0"}, "query", "Q: ", ["Is $x\\\\le y$?"])
    ['Q: is $x$ $le$ $y$?']
    """
    if entry.get("pretokens"):
        texts = list(map(ngrams.named_pretokenisation(entry["pretokens"]), texts))
    lead, suffix = (entry.get(field, {}).get(role, "") for field in ("lead", "suffix"))
    if not (prompt or lead or suffix):  # then what needs no change is not copied: a corpus can be a gigabyte
        return [replace_surrogates(text.strip()) for text in texts]
    return [replace_surrogates(f"{prompt}{lead}{text.strip()}{suffix}") for text in texts]


def replace_surrogates(text: str) -> str:
    """Return *text* with lone surrogates as U+FFFD; other texts as they are."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def model_input(model: Any, found: Sequence[str], prompt: str = "") -> dict[str, Any]:
    """Return token ids, padded and cut; with *prompt*, also the number of its tokens, which are not to be pooled."""
    made = model.preprocess(list(found))
    return made | {"prompt_length": count_prompt_tokens(model.tokenizer, prompt)} if prompt else made


def count_prompt_tokens(tokenizer: Any, prompt: str) -> int:
    """Return how many tokens stand before the text: the prompt's and special ones, but no special ones after it.

    The prompt is tokenised alone, as in sentence-transformers and the GritLM library: where a tokenizer joins its last
    space to the first word of the text, that word's first token counts as prompt.
    """
    whole = tokenizer(prompt, verbose=False)["input_ids"]
    bare = tokenizer(prompt, add_special_tokens=False, verbose=False)["input_ids"]
    starts = (start for start in range(len(whole)) if whole[start : start + len(bare)] == bare)
    return next(starts, 0) + len(bare)


def token_lengths(tokenizer: Any, found: Sequence[str], name: str) -> np.ndarray:
    """Return the number of tokens of each exact string before truncation, int64 (n,); *name* is for progress."""
    counts: list[int] = []
    if not callable(tokenizer):
        return _bare_lengths(tokenizer, found)
    with progress(len(found), f"{name}: counting tokens", "texts") as bar:
        for start in range(0, len(found), 1_000):
            some = list(found[start : start + 1_000])
            ids = tokenizer(some, truncation=False, padding=False, verbose=False, return_attention_mask=False)
            counts += map(len, ids["input_ids"])
            bar.update(len(some))
    return np.array(counts, dtype=np.int64)


def _bare_lengths(tokenizer: Any, found: Sequence[str]) -> np.ndarray:
    """Return `token_lengths` for the bare tokenizer of a static embedding, which adds no special tokens."""
    encodings = _without_truncation(tokenizer).encode_batch(found, add_special_tokens=False)
    return np.array([len(one.ids) for one in encodings], dtype=np.int64)


@lru_cache(maxsize=4)
def _without_truncation(tokenizer: Any) -> Any:
    """Return a copy of a bare tokenizer that truncates nothing."""
    whole = type(tokenizer).from_str(tokenizer.to_str())
    whole.no_truncation()
    return whole
