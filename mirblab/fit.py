"""fit: make a loaded model read, attend and pool as its registry entry says, and refuse one that cannot."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mirblab.errors import MirblabError

Entry = Mapping[str, Any]
_POOLING = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}


def fit(name: str, entry: Entry, model: Any, is_plain: bool) -> None:
    """Change a sentence-transformers *model* in place to what its *entry* says.

    *is_plain*: the folder is a bare transformer without `modules.json`, so the pooling is the entry's to choose;
    else the model's own pooling must be the entry's. Raises MirblabError naming both sides where they differ.
    """
    if callable(model.tokenizer):
        model.max_seq_length = int(entry["max_length"])
    else:  # a static embedding, whose bare tokenizer cuts
        model.tokenizer.enable_truncation(int(entry["max_length"]))
    _read_plain_text(model)
    if entry.get("padding"):
        model.tokenizer.padding_side = entry["padding"]
    if entry.get("eos"):
        end_with(name, model.tokenizer, entry["eos"])
    if entry.get("attention"):
        # transformers asks the configuration for the mask and, where nothing is padded, for the kernel (from 5.2 on)
        model[0].model.config.is_causal = entry["attention"] == "causal"
    _pool(entry, model, is_plain)
    for module in list(model)[1:]:
        module.float()
    _compare(name, entry, model)


def end_with(name: str, tokenizer: Any, token: str) -> None:
    """Make each input end in *token*, once, however long it is; "auto" is the tokenizer's own eos token.

    transformers 5 drops the `</s>` that e5-mistral's tokenizer is configured to add, so asking for it is not
    enough. An eos written into the text instead would be cut off with the end of a long text.
    """
    token = tokenizer.eos_token if token == "auto" else token
    known = tokenizer.get_vocab()
    if token not in known:
        raise MirblabError(f"encoder '{name}': the tokenizer has no token {token!r}; correct eos in its entry")
    ids = tokenizer("a", verbose=False)["input_ids"]
    if ids and ids[-1] == known[token]:
        return
    begin = ids[: next((at for at, one in enumerate(ids) if one not in tokenizer.all_special_ids), 0)]
    _process(name, tokenizer, [*tokenizer.convert_ids_to_tokens(begin), "$A", token])


def pooling_of(config: Mapping[str, Any]) -> str:
    """Return the pooling that a Pooling module's configuration asks for, in its new form or its old one.

    >>> pooling_of({"pooling_mode_mean_tokens": True}), pooling_of({"pooling_mode": "cls"})
    ('mean', 'cls')
    """
    mode = config.get("pooling_mode") or [name for key, name in _POOLING.items() if config.get(key)]
    return mode if isinstance(mode, str) else "+".join(mode)


def _process(name: str, tokenizer: Any, template: list[str]) -> None:
    """Give the tokenizer a template of special tokens around the text `$A`."""
    from tokenizers.processors import TemplateProcessing

    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        raise MirblabError(f"encoder '{name}': {type(tokenizer).__name__} cannot be told to add eos; no fast tokenizer")
    known = tokenizer.get_vocab()
    special = [(one, known[one]) for one in dict.fromkeys(template) if one != "$A"]
    backend.post_processor = TemplateProcessing(single=template, special_tokens=special)


def _read_plain_text(model: Any) -> None:
    """Make the model take a text as it is, and let its tokenizer pad.

    sentence-transformers 6 sends every text through the tokenizer's chat template where a folder without
    `modules.json` has one; the models of the registry that have one (GritLM, Qwen) were published without it.
    """
    for module in model:
        config = getattr(module, "modality_config", None)
        if config and "message" in config and "text" in config:
            module.modality_config = {key: value for key, value in config.items() if key != "message"}
    # a static embedding has a bare tokenizer, which pads nothing
    if getattr(model.tokenizer, "pad_token", "") is None:
        model.tokenizer.pad_token = model.tokenizer.eos_token


def _pool(entry: Entry, model: Any, is_plain: bool) -> None:
    from sentence_transformers.base.modules import Normalize
    from sentence_transformers.sentence_transformer.modules import Pooling

    if is_plain:
        del model[1:]
        model.append(Pooling(model[0].get_embedding_dimension(), entry["pooling"]))
    for module in model:
        if isinstance(module, Pooling) and "prompt_pooled" in entry:
            module.include_prompt = entry["prompt_pooled"]
    if entry["normalise"] and not any(isinstance(module, Normalize) for module in model):
        model.append(Normalize())  # as cosine similarity does afterwards, where the model's own folder leaves it out
    model.to(model.device)


def _compare(name: str, entry: Entry, model: Any) -> None:
    """Raise MirblabError unless pooling, normalisation and dimensions of the loaded model are the entry's."""
    modes = [pooling_of({"pooling_mode": m.pooling_mode}) for m in model if hasattr(m, "pooling_mode")]
    found = {
        "pooling": modes[0] if modes else "none",
        "normalise": any(type(module).__name__ == "Normalize" for module in model),
        "dimensions": model.get_embedding_dimension(),
    }
    wrong = [
        f"{field} = {entry[field]!r} but the model has {it!r}" for field, it in found.items() if entry[field] != it
    ]
    if wrong:
        raise MirblabError(f"encoder '{name}': the registry says {'; '.join(wrong)}; correct the entry")
