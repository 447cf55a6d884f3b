"""rewriting: queries that a chat model rewrites before they are searched."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from mirblab.encoders.hosted.chat import Reply, UnusableReply, chat_model, read_prompt, run_prompt

# Raised by one whenever the runs of this kind change; otherwise tests/retrieval/test_golden_runs.py fails.
RUNS_VERSION = 1

DEFAULTS: dict[str, Any] = {"prompt": "rewrite", "original": 1}
_MODEL = ("model", "url", "price_per_million_tokens", "budget")


class RewritingWarning(UserWarning):
    """The chat model gave no text for some queries, which are searched as they are."""


def rewrite(texts: Sequence[str], *, prompt: str = "rewrite", original: int = 1, **model: Any) -> list[str]:
    """Return each text as it is searched: itself *original* times, then what a chat model made of it, on lines.

    *prompt* is a table of `prompts.toml`, whose {statement} is the text; *model* has `model`, `url`,
    `price_per_million_tokens` and `budget` as in `chat_model`. Answers are stored under model, prompt and text, so that
    each text is asked for once; empty texts are not sent. `original` = 0 searches the answer alone, as HyDE does
    (Gao et al., ACL 2023); Query2doc (Wang et al., EMNLP 2023) repeats the query five times for BM25. MirblabError as
    `ask_model` raises it.
    """
    service, pending = chat_model(**model), [text for text in dict.fromkeys(texts) if text.strip()]
    records = [{"statement": text} for text in pending]
    values, reasons, _ = run_prompt(service, read_prompt(prompt), records, lambda reply, _: _read_text(reply))
    answers = dict(zip(pending, values, strict=True))
    if n_without := sum(map(bool, reasons)):
        count = f"{n_without:,} of {len(texts):,} queries"
        message = f"{service.model} gave no text for {count}, which are searched as they are"
        warnings.warn(message, RewritingWarning, stacklevel=2)
    rewritten = []
    for text in texts:
        answer = answers.get(text)
        rewritten.append("\n".join([text] * max(original, 0 if answer else 1) + ([answer] if answer else [])))
    return rewritten


def rewriting_key(settings: dict[str, Any]) -> dict[str, Any]:
    """Return *settings* with the model's name and the prompt's fingerprint, and without address, price and budget."""
    kept = {name: value for name, value in settings.items() if name not in _MODEL}
    model = chat_model(**{name: settings[name] for name in _MODEL if name in settings}).model
    return kept | {"model": model, "prompt": read_prompt(settings["prompt"]).fingerprint()}


def _read_text(reply: Reply) -> str:
    if text := reply.text.strip():
        return text
    raise UnusableReply("empty")
