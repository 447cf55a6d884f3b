"""rewriting: queries that a chat model rewrites before they are searched."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from mirblab.encoders.hosted.chat import ChatModel, ReplyStore, ask_missing, chat_model, read_prompt, reply_key

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
    service, step = _service(model), read_prompt(prompt)
    store = ReplyStore(service.model, step)
    answers: dict[str, str] = {}
    pending = [text for text in dict.fromkeys(texts) if text.strip()]
    for attempt in range(step.attempts):
        messages = [step.message({"statement": text}, attempt) for text in pending]
        ask_missing(service, step, store, messages, attempt, None)
        for text, message in zip(pending, messages, strict=True):
            answers[text] = store.get(reply_key(message, attempt)).text.strip()
        pending = [text for text in pending if not answers[text]]
    if pending:
        count = f"{len(pending):,} of {len(texts):,} queries"
        message = f"{service.model} gave no text for {count}, which are searched as they are"
        warnings.warn(message, RewritingWarning, stacklevel=2)
    rewritten = []
    for text in texts:
        answer = answers.get(text, "")
        rewritten.append("\n".join([text] * max(original, 0 if answer else 1) + [answer] * bool(answer)))
    return rewritten


def rewriting_key(settings: dict[str, Any]) -> dict[str, Any]:
    """Return *settings* with the model's name and the prompt's fingerprint, and without address, price and budget."""
    kept = {name: value for name, value in settings.items() if name not in _MODEL}
    model = _service({name: settings[name] for name in _MODEL if name in settings}).model
    return kept | {"model": model, "prompt": read_prompt(settings["prompt"]).fingerprint()}


def _service(model: dict[str, Any]) -> ChatModel:
    return chat_model(**model)
