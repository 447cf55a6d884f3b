"""inputs: the exact strings that reach an encoder's tokenizer, and the tokens that the model is given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mirblab.errors import unknown
from mirblab.formula import pretokens
from mirblab.progress import progress


def prompt(name: str, entry: Mapping[str, Any], role: str, instruction: str = "") -> str:
    """Return the exact text put before an input of this *role*; `{instruction}` in the entry is filled in.

    Without an instruction a prompt that asks for one becomes the entry's `without_instruction`, if it has that.

    >>> entry = {"prompts": {"query": "Instruct: {instruction}\\nQuery: "}, "without_instruction": ""}
    >>> prompt("toy", entry, "query", "Find it."), prompt("toy", entry, "query")
    ('Instruct: Find it.\\nQuery: ', '')
    """
    if role not in entry["prompts"]:
        raise unknown(f"prompt of encoder '{name}' for role", role, entry["prompts"])
    template = str(entry["prompts"][role])
    if "{instruction}" in template and not instruction and "without_instruction" in entry:
        return str(entry["without_instruction"])
    return template.replace("{instruction}", instruction)


def strings(entry: Mapping[str, Any], role: str, prompt: str, texts: Sequence[str]) -> list[str]:
    """Return what reaches the tokenizer: *prompt*, the role's `lead`, the stripped text, the role's `suffix`.

    Texts are stripped because the models were trained and published on sentence-transformers that did so
    (releases before 6 strip, 6.2 does not). Lone surrogates, which no tokenizer accepts, become U+FFFD. An entry with
    `pretokens` has the formulas of each text, but of nothing else, rewritten as words.

    >>> strings({"suffix": {"query": "</s>"}}, "query", "q: ", [" a ring "])
    ['q: a ring</s>']
    >>> strings({"pretokens": "pya0"}, "query", "Q: ", ["Is $x\\\\le y$?"])
    ['Q: is $x$ $le$ $y$?']
    """
    if entry.get("pretokens"):
        texts = list(map(pretokens.rewriter(entry["pretokens"]), texts))
    lead, suffix = (entry.get(field, {}).get(role, "") for field in ("lead", "suffix"))
    if not (prompt or lead or suffix):  # then what needs no change is not copied: a corpus can be a gigabyte
        return [clean(text.strip()) for text in texts]
    return [clean(f"{prompt}{lead}{text.strip()}{suffix}") for text in texts]


def clean(text: str) -> str:
    """Return *text* with lone surrogates as U+FFFD; other texts as they are."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def features(model: Any, found: Sequence[str], prompt: str = "") -> dict[str, Any]:
    """Return the model's input for exact strings: token ids padded to the longest, cut at the maximum length.

    *prompt* is given when its tokens are to be left out of the pooling; their number is then among the features.
    """
    made = model.preprocess(list(found))
    return made | {"prompt_length": prompt_tokens(model.tokenizer, prompt)} if prompt else made


def prompt_tokens(tokenizer: Any, prompt: str) -> int:
    """Return how many tokens stand before the text: the prompt's, and special ones before it, but none after it.

    The prompt is tokenised alone, as sentence-transformers and the GritLM library do: where a tokenizer joins the
    prompt's last space to the first word of the text, that word's first token counts as prompt, here as there.
    """
    whole = tokenizer(prompt, verbose=False)["input_ids"]
    bare = tokenizer(prompt, add_special_tokens=False, verbose=False)["input_ids"]
    starts = (start for start in range(len(whole)) if whole[start : start + len(bare)] == bare)
    return next(starts, 0) + len(bare)


def lengths(tokenizer: Any, found: Sequence[str], name: str) -> np.ndarray:
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
    """Return what `lengths` does for the bare tokenizer of a static embedding, which adds no special tokens."""
    whole = type(tokenizer).from_str(tokenizer.to_str())
    whole.no_truncation()
    return np.array([len(one.ids) for one in whole.encode_batch(found, add_special_tokens=False)], dtype=np.int64)
