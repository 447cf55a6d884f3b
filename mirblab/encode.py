"""encode: texts to vectors through any encoder of the registry; what was encoded once is read from the cache."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from mirblab import engine, paths, registry
from mirblab.cache import VectorStore, check_texts
from mirblab.errors import MirblabError, unknown
from mirblab.progress import progress

FIELDS = ("id", "revision", "max_length", "pooling", "normalise", "dtype", "dimensions", "prompts")
# CPU: about what stays in a core's cache; more gains nothing and costs padding. GPU: enough to keep it busy.
TOKENS_PER_BATCH = {"cpu": 2_048, "cuda": 65_536}
CHUNK_TEXTS, CHUNK_SECONDS = 1_000, 20.0


def encoder(name: str | Path) -> Encoder:
    """Return the encoder called *name* in the registry, or the one in a local sentence-transformers folder.

    Nothing is loaded yet. Raises MirblabError for an unknown name, with the nearest one.
    """
    known = registry.read("encoders")
    if str(name) in known:
        return Encoder(str(name), known[str(name)])
    folder = Path(name).expanduser()
    if (folder / "modules.json").is_file():
        return Encoder(folder.name, engine.describe(folder), folder.resolve())
    raise unknown("encoder", str(name), known)


class Encoder:
    """One encoder: a model at a revision, with the prompts, length, pooling and precision it is used with."""

    def __init__(self, name: str, entry: Mapping[str, Any], folder: Path | None = None) -> None:
        absent = [field for field in FIELDS if field not in entry]
        if absent:
            raise MirblabError(f"encoder '{name}' lacks {', '.join(absent)}; add them to its entry in encoders.toml")
        if entry["dtype"] not in ("float32", "bfloat16", "float16"):
            raise MirblabError(f"encoder '{name}': dtype is {entry['dtype']!r}, not float32, bfloat16 or float16")
        self.name = name
        self.entry = dict(entry)
        self.folder = folder
        self.dimensions = int(entry["dimensions"])
        self.max_length = int(entry["max_length"])

    @property
    def key(self) -> dict[str, Any]:
        """Return all that determines a vector, role, instruction and text apart."""
        return {"model" if field == "id" else field: self.entry[field] for field in FIELDS}

    def prompt(self, role: str = "document", instruction: str = "") -> str:
        """Return the exact text put before an input of this *role*; `{instruction}` in the registry is filled in."""
        prompts = self.entry["prompts"]
        if role not in prompts:
            raise unknown(f"prompt of encoder '{self.name}' for role", role, prompts)
        return str(prompts[role]).replace("{instruction}", instruction)

    def space(self, role: str = "document", instruction: str = "") -> dict[str, Any]:
        """Return everything that determines a vector except its text: the part of the cache that holds it."""
        fixed = {name: value for name, value in self.key.items() if name != "prompts"}
        return fixed | {"role": role, "prompt": self.prompt(role, instruction)}

    def store(self, role: str = "document", instruction: str = "") -> VectorStore:
        """Return the store of this encoder's vectors for one role and instruction."""
        return VectorStore(paths.cache() / "vectors", self.space(role, instruction))

    def missing(self, texts: Sequence[str], role: str = "document", instruction: str = "") -> int:
        """Return how many distinct *texts* are not stored yet; loads no model."""
        texts = list(dict.fromkeys(_checked(texts)))
        return len(self.store(role, instruction).missing(texts))

    def vectors(self, texts: Sequence[str], role: str = "document", instruction: str = "") -> np.ndarray:
        """Return one vector per text, float32 (n, d), in the order of *texts*.

        What is stored is read; the rest is encoded, each distinct text once, and stored in chunks as soon as it is
        done, so that an interrupted call goes on where it stopped. Equal calls give equal bytes.
        """
        texts = _checked(texts)
        store = self.store(role, instruction)
        found, missing = store.read(texts)
        if not len(missing):
            return found
        del found  # so that there are never two copies of the vectors in memory
        new = list(dict.fromkeys(texts[position] for position in missing))
        self._encode(new, self.prompt(role, instruction), store)
        found, missing = store.read(texts)
        if len(missing):
            raise MirblabError(f"{len(missing)} vectors cannot be read back from {store.path}; check the disk")
        return found

    def n_truncated(self, texts: Sequence[str], role: str = "document", instruction: str = "") -> int:
        """Return how many *texts* have more than `max_length` tokens, prompt and special tokens included."""
        return int((self._lengths(_checked(texts), self.prompt(role, instruction)) > self.max_length).sum())

    def token_vectors(self, texts: Sequence[str], role: str = "document", instruction: str = "") -> list[np.ndarray]:
        """Return for each text the unit vectors of its tokens, float32 (n_tokens, d), special tokens dropped.

        These are the last hidden states, for late interaction (MaxSim); prompt tokens are among them. Not cached.
        """
        texts = _checked(texts)
        found: list[np.ndarray] = [np.empty((0, 0), np.float32)] * len(texts)
        prompt = self.prompt(role, instruction)
        for batch, features, hidden in self._forward(texts, prompt, "token_embeddings"):
            norms = np.linalg.norm(hidden, axis=-1, keepdims=True)
            hidden = hidden / np.maximum(norms, 1e-12, dtype=np.float32)
            is_special = np.isin(features["input_ids"].numpy(), self._model.tokenizer.all_special_ids)
            keep = features["attention_mask"].numpy().astype(bool) & ~is_special
            for row, position in enumerate(batch):
                found[position] = hidden[row][keep[row]]
        return found

    def _encode(self, texts: list[str], prompt: str, store: VectorStore) -> None:
        """Encode distinct *texts* and append them to *store* chunk by chunk, also when interrupted."""
        rows: list[int] = []
        done: list[np.ndarray] = []
        last = time.monotonic()
        try:
            for batch, _, vectors in self._forward(texts, prompt, "sentence_embedding"):
                rows += batch
                done.append(vectors)
                if len(rows) >= CHUNK_TEXTS or time.monotonic() - last > CHUNK_SECONDS:
                    store.append([texts[row] for row in rows], np.concatenate(done))
                    rows, done, last = [], [], time.monotonic()
        finally:
            if done:
                store.append([texts[row] for row in rows[: sum(map(len, done))]], np.concatenate(done))

    def _forward(self, texts: list[str], prompt: str, wanted: str) -> Iterator[tuple[list[int], Any, np.ndarray]]:
        """Yield batches: positions in *texts*, the tokenizer's features, and the *wanted* output in float32.

        Each core takes whole batches with one thread inside: threads that share a product wait for each other,
        and on a busy machine two of them were slower than one. The longest batch is first, so that memory runs out
        at once or never; then lengths are mixed, so that the estimate of the time left is honest.
        """
        model, device = self._model, self._model.device.type
        lengths = np.minimum(self._lengths(texts, prompt), self.max_length)
        batches = list(token_batches(lengths, TOKENS_PER_BATCH.get(device, TOKENS_PER_BATCH["cuda"])))
        mixed = batches[:1] + [batches[1 + i] for i in np.random.default_rng(0).permutation(max(0, len(batches) - 1))]
        workers = threads() if device == "cpu" else 1
        pool = ThreadPoolExecutor(workers, initializer=_one_thread)
        try:
            with progress(len(texts), self.name, "texts") as bar:
                for start in range(0, len(mixed), 8 * workers):
                    window = mixed[start : start + 8 * workers]
                    # the tokenizer cannot be shared by threads, so this one does it for all
                    features = [model.preprocess([_clean(texts[i]) for i in batch], prompt=prompt) for batch in window]
                    jobs = [pool.submit(_run, model, some, wanted) for some in features]
                    for batch, some, job in zip(window, features, jobs, strict=True):
                        yield batch, some, job.result()
                        bar.update(len(batch))
        finally:
            pool.shutdown(cancel_futures=True)

    def _lengths(self, texts: list[str], prompt: str) -> np.ndarray:
        """Return the number of tokens of each text before truncation, int64 (n,)."""
        tokenizer = self._model.tokenizer
        counts: list[int] = []
        with progress(len(texts), f"{self.name}: counting tokens", "texts") as bar:
            for start in range(0, len(texts), 1_000):
                some = [prompt + _clean(text) for text in texts[start : start + 1_000]]
                ids = tokenizer(some, truncation=False, padding=False, verbose=False, return_attention_mask=False)
                counts += map(len, ids["input_ids"])
                bar.update(len(some))
        return np.array(counts, dtype=np.int64)

    @property
    def _model(self) -> Any:
        return engine.load(self.name, json.dumps(self.entry, sort_keys=True), self.folder)


def token_batches(lengths: np.ndarray, budget: int) -> Iterator[list[int]]:
    """Yield positions in batches, longest text first; a batch padded to its longest holds at most *budget* tokens.

    A single text beyond the budget makes a batch of its own.

    >>> list(token_batches(np.array([2, 9, 4, 4]), 8))
    [[1], [2, 3], [0]]
    """
    batch: list[int] = []
    for position in np.argsort(-lengths, kind="stable").tolist():
        if batch and lengths[batch[0]] * (len(batch) + 1) > budget:
            yield batch
            batch = []
        batch.append(position)
    if batch:
        yield batch


def threads() -> int:
    """Return how many cores encoding may use: `MIRBLAB_THREADS`, else all that this process may run on."""
    named = os.environ.get("MIRBLAB_THREADS", "")
    if named and (not named.isdigit() or int(named) < 1):
        raise MirblabError(f"MIRBLAB_THREADS is {named!r}; set it to a whole number from 1")
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return int(named) if named else available


def _checked(texts: Sequence[str]) -> list[str]:
    check_texts(texts)
    return list(texts)


def _clean(text: str) -> str:
    """Return *text* with lone surrogates, which no tokenizer accepts, as U+FFFD; other texts as they are."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _one_thread() -> None:
    import torch

    torch.set_num_threads(1)


def _run(model: Any, features: Mapping[str, Any], wanted: str) -> np.ndarray:
    """Return one output of the model for a batch; pooling is in float32 whatever the precision of the weights."""
    import torch

    first, *rest = model
    with torch.inference_mode():
        output = first({n: v.to(model.device) if torch.is_tensor(v) else v for n, v in features.items()})
        if "token_embeddings" in output:
            output["token_embeddings"] = output["token_embeddings"].float()
        if wanted not in output:
            for module in rest:
                output = module(output)
        return output[wanted].float().cpu().numpy()
