"""encoding: texts to vectors, through the cache."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from mirblab.core import atomic_files, paths, registry
from mirblab.core.errors import MirblabError, unknown
from mirblab.core.processes import n_cores
from mirblab.core.terminal import progress
from mirblab.data.parts import texts_at
from mirblab.encoders import entry, local
from mirblab.encoders.cache import VectorStore, check_texts
from mirblab.encoders.entry import entry_key, is_hosted, select_variant, vector_space

TEXTS, SECONDS = 1_000, 20.0


def append_chunks(
    store: VectorStore, texts: Sequence[str], batches: Iterable[tuple[list[int], np.ndarray]]
) -> dict[str, np.ndarray]:
    """Append what *batches* yield, positions in *texts* and vectors, also when interrupted; return what failed.

    MirblabError for a vector that is not finite, after those before it, and the others of its batch, are stored.
    """
    unstored: dict[str, np.ndarray] = {}
    rows: list[int] = []
    done: list[np.ndarray] = []
    last = time.monotonic()
    try:
        for batch, vectors in batches:
            is_finite = np.isfinite(vectors).all(axis=1)
            rows += [row for row, is_sound in zip(batch, is_finite, strict=True) if is_sound]
            done.append(vectors[is_finite])
            if not is_finite.all():
                raise MirblabError(
                    f"the vector of a text is not finite; it begins {texts[batch[is_finite.argmin()]][:60]!r}; leave "
                    'the text out, or write dtype = "float32" into the entry of an encoder of half precision'
                )
            if len(rows) >= TEXTS or time.monotonic() - last > SECONDS:
                unstored |= _stored(store, [texts[row] for row in rows], np.concatenate(done))
                rows, done, last = [], [], time.monotonic()
    finally:
        if done:
            rows = rows[: sum(map(len, done))]
            unstored |= _stored(store, [texts[row] for row in rows], np.concatenate(done))
    return unstored


def _stored(store: VectorStore, texts: list[str], vectors: np.ndarray) -> dict[str, np.ndarray]:
    return (
        {}
        if atomic_files.try_to_store("vectors", store.append, texts, vectors)
        else dict(zip(texts, vectors, strict=True))
    )


# CPU: about what stays in a core's cache; more gains nothing and costs padding. GPU: enough to keep it busy, and fewer
# tokens for wider models, so that one of 7 billion parameters has room for its activations (not tried on a GPU).
TOKENS_PER_BATCH = {"cpu": 1_024, "cuda": 65_536}


def tokens_per_batch(device: str, dimensions: int) -> int:
    """Return how many tokens a batch has at most on a *device* of torch; on a GPU fewer beyond 512 *dimensions*.

    >>> tokens_per_batch("cpu", 4096), tokens_per_batch("cuda", 384), tokens_per_batch("cuda", 4096)
    (1024, 65536, 8192)
    """
    return TOKENS_PER_BATCH["cpu"] if device == "cpu" else TOKENS_PER_BATCH["cuda"] * 512 // max(512, dimensions)


def encoder(name: str | Path, compat: str = "") -> Encoder:
    """Return the encoder called *name* in the registry, trained here, or in a local sentence-transformers folder.

    `compat="mirb"` is the encoder as MIRB's published code runs it; the key differs only where a vector can. No model
    is loaded yet. MirblabError for an unknown name or mode, with the nearest one.

    >>> encoder("nv-embed-v2").max_length, encoder("nv-embed-v2", compat="mirb").max_length
    (32768, 512)
    """
    known = registry.read_registry("encoders")
    registered = registry.match_name(str(name), known)
    if registered in known:
        entry = select_variant(registered, known[registered], compat)
        return Encoder(f"{registered}-{compat}" if compat else registered, *local.locate_model(registered, entry))
    given = paths.expand_home(name)
    folder = given if paths.path_exists(given / "modules.json") else local.find_trained(name)
    if folder is not None:
        found = local.describe_folder(folder)
        return Encoder(folder.name, select_variant(folder.name, found, compat), folder.resolve())
    raise unknown("encoder", str(name), known)


class Encoder:
    """One encoder: a model at a revision, with the prompts, length, pooling and precision it is used with."""

    def __init__(self, name: str, entry: Mapping[str, Any], folder: Path | None = None) -> None:
        self.name = name
        self.entry = select_variant(name, entry)
        self.folder = folder
        self.dimensions: int = self.entry.get("output_dimension") or self.entry["dimensions"]
        self.max_length: int = self.entry["max_length"]

    @property
    def key(self) -> dict[str, Any]:
        """Return all that determines a vector, except role, instruction and text."""
        return entry_key(self.entry)

    def prompt(self, role: str = "document", instruction: str = "") -> str:
        """Return the exact text put before an input of this *role*; `{instruction}` in the registry is filled in."""
        return entry.fill_prompt(self.name, self.entry, role, instruction)

    def strings(self, texts: Sequence[str], role: str = "document", instruction: str = "") -> list[str]:
        """Return for each text the exact input of the tokenizer or the vendor: prompt, stripped text, suffix."""
        return entry.input_strings(self.entry, role, self.prompt(role, instruction), texts)

    def space(self, role: str = "document", instruction: str = "") -> dict[str, Any]:
        """Return everything that determines a vector except its text, which identifies its part of the cache."""
        return vector_space(self.entry, role, self.prompt(role, instruction)) | {"dimensions": self.dimensions}

    @property
    def is_sparse(self) -> bool:
        """Return whether a vector is a weight for each of few terms of a vocabulary; see `term_weights`."""
        return bool(self.entry.get("sparse"))

    def store(self, role: str = "document", instruction: str = "") -> VectorStore:
        """Return the store of this encoder's vectors for one role and instruction."""
        if self.is_sparse:
            raise MirblabError(f"encoder '{self.name}' makes sparse vectors; search with a system of the kind sparse")
        return VectorStore(paths.cache() / "vectors", self.space(role, instruction))

    def missing(self, texts: Sequence[str], role: str = "document", instruction: str = "") -> int:
        """Return how many distinct *texts* are not stored yet; loads no model."""
        texts = list(dict.fromkeys(_check_texts(texts)))
        return len(self.store(role, instruction).missing(texts))

    def vectors(self, texts: Sequence[str], role: str = "document", instruction: str = "") -> np.ndarray:
        """Return one vector per text, float32 (n, d), in the order of *texts*.

        What is not stored is encoded, each distinct text once, and stored in chunks, so that an interrupted call can be
        resumed; a vector is copied from another role in which the model gets the same input. Equal calls give equal
        bytes. Where vectors cannot be stored, a message says so.
        """
        return self._stored_vectors(self.store(role, instruction), _check_texts(texts), role, instruction)

    def _stored_vectors(self, store: VectorStore, texts: list[str], role: str, instruction: str) -> np.ndarray:
        found, missing = store.read(texts)
        if not len(missing):
            return found
        del found  # so that there are never two copies of the vectors in memory
        new = list(dict.fromkeys(texts[position] for position in missing))
        new, unstored = self._take_from_roles(new, role, instruction)
        unstored |= append_chunks(store, new, self._batches(new, role, instruction)) if new else {}
        found, missing = store.read(texts)
        for position in missing:
            if texts[position] not in unstored:
                raise MirblabError(f"{len(missing)} vectors cannot be read back from {store.path}; check the disk")
            found[position] = unstored[texts[position]]
        return found

    def _take_from_roles(
        self, texts: list[str], role: str, instruction: str
    ) -> tuple[list[str], dict[str, np.ndarray]]:
        """Copy the vectors of *texts* that a role with equal inputs has; return the other texts, and what failed."""
        store, unstored = self.store(role, instruction), dict[str, np.ndarray]()
        for other in self.entry["prompts"]:
            if other == role or self.space(other, instruction) | {"role": role} != self.space(role, instruction):
                continue
            source = self.store(other, instruction)
            stored = np.setdiff1d(np.arange(len(texts)), source.missing(texts)).tolist()
            vectors, damaged = source.read([texts[position] for position in stored])
            intact = np.setdiff1d(np.arange(len(stored)), damaged)
            copied = [texts[stored[place]] for place in intact]
            unstored |= _stored(store, copied, vectors[intact]) if copied else {}
            left_out = set(copied)
            texts = [text for text in texts if text not in left_out]
        return texts, unstored

    def unstored(self, text: str, role: str = "query", instruction: str = "") -> np.ndarray:
        """Return the vector of one text, float32 (1, d), without the store; for typed input, which would fill it."""
        return next(vectors for _, vectors in self._batches(_check_texts([text]), role, instruction))

    def n_truncated(self, texts: Sequence[str], role: str = "document", instruction: str = "") -> int:
        """Return how many *texts* have more than `max_length` tokens, prompt and special tokens included."""
        return int((self._lengths(self.strings(_check_texts(texts), role, instruction)) > self.max_length).sum())

    def token_vectors(
        self, texts: Sequence[str], role: str = "document", instruction: str = "", *, with_texts: bool = False
    ) -> list[np.ndarray]:
        """Return for each text the unit vectors of its tokens, float32 (n_tokens, d), without special tokens.

        These are the last hidden states, or the output of the model's layer for late interaction, prompt tokens
        included. Not cached: see `token_vectors.load_token_vectors`. *with_texts* stores the vector of each text, which
        the same pass through the model gives, unless it is stored already. MirblabError for a static embedding.
        """
        texts = _check_texts(texts)
        self._refuse_static()
        strings = self.strings(texts, role, instruction)
        found: list[np.ndarray] = [np.empty((0, 0), np.float32)] * len(strings)
        wanted = [local.token_output(self._model), *(["sentence_embedding"] if with_texts else [])]
        whole: dict[int, np.ndarray] = {}
        for batch, features, (vectors, *of_texts) in self._forward(strings, self._left_out(role, instruction), wanted):
            for position, own in zip(
                batch, local.vectors_by_text(self._model.tokenizer, features, vectors), strict=True
            ):
                found[position] = own
            for rows in of_texts:
                whole |= zip(batch, rows, strict=True)
        if whole:
            store = self.store(role, instruction)
            missing = store.missing(texts).tolist()
            if missing:
                _stored(store, [texts[i] for i in missing], np.stack([whole[i] for i in missing]))
        return found

    def term_weights(self, texts: Sequence[str], role: str = "document", instruction: str = "") -> list[np.ndarray]:
        """Return for each text the terms of the model's vocabulary that it has, float32 (n_terms, 2): position, weight.

        Positions ascend; weights are those of sentence-transformers' SparseEncoder, whose route for the *role* is taken
        where it has several. Not cached: see `token_vectors.load_term_weights`. MirblabError for a dense encoder.
        """
        if not self.is_sparse:
            raise MirblabError(f"encoder '{self.name}' makes no sparse vectors; search with a system of the kind dense")
        return local.sparse_vectors(self._model, self.strings(_check_texts(texts), role, instruction), role)

    def tokens(self, texts: Sequence[str], role: str = "document", instruction: str = "") -> list[list[str]]:
        """Return for each text its tokens as strings, in the order of `token_vectors`, and the same error."""
        self._refuse_static()
        strings = self.strings(_check_texts(texts), role, instruction)
        return local.token_strings(self._model.tokenizer, entry.model_input(self._model, strings)) if strings else []

    def _batches(self, texts: list[str], role: str, instruction: str) -> Iterator[tuple[list[int], np.ndarray]]:
        strings = self.strings(texts, role, instruction)
        if is_hosted(self.entry):
            from mirblab.encoders.hosted import client

            yield from client.embed(self.entry, strings, role)
            return
        for batch, _, (vectors,) in self._forward(strings, self._left_out(role, instruction), ["sentence_embedding"]):
            yield batch, vectors

    def _left_out(self, role: str, instruction: str) -> str:
        """Return the prompt whose tokens are not pooled, "" where all are."""
        return "" if self.entry.get("prompt_pooled", True) else self.prompt(role, instruction)

    def _forward(
        self, strings: list[str], prompt: str, wanted: Sequence[str]
    ) -> Iterator[tuple[list[int], Any, list[np.ndarray]]]:
        """Yield batches: positions in *strings*, the tokenizer's features, and the *wanted* outputs in float32.

        Each core takes whole batches with one thread inside, since threads that share a product wait for each other.
        The longest batch is first, so that memory is exhausted at once or never; then lengths are mixed.
        """
        if self.is_sparse:
            raise MirblabError(f"encoder '{self.name}' makes sparse vectors; search with a system of the kind sparse")
        model, device = self._model, self._model.device.type
        batches = self._divide(strings)
        mixed = batches[:1] + [batches[1 + i] for i in np.random.default_rng(0).permutation(max(0, len(batches) - 1))]
        workers = n_cores() if device == "cpu" else 1
        pool = ThreadPoolExecutor(workers, initializer=_one_thread)
        try:
            with progress(len(strings), self.name, "texts") as bar:
                ahead: deque[tuple[list[int], Any, Future[list[np.ndarray]]]] = deque()
                for number, batch in enumerate(mixed, start=1):
                    # the tokenizer cannot be shared by threads, so this one does it for all
                    features = entry.model_input(model, [strings[i] for i in batch], prompt)
                    ahead.append((batch, features, pool.submit(_run_model, model, features, wanted)))
                    while len(ahead) > (8 * workers if number < len(mixed) else 0):
                        done, of_done, job = ahead.popleft()
                        yield done, of_done, job.result()
                        bar.update(len(done))
        finally:
            pool.shutdown(cancel_futures=True)

    def _divide(self, strings: list[str]) -> list[list[int]]:
        """Return positions in batches; those of a static embedding, which pads nothing, are cut without lengths."""
        if not callable(self._model.tokenizer):
            return [list(range(start, min(start + 1_000, len(strings)))) for start in range(0, len(strings), 1_000)]
        lengths = np.minimum(self._lengths(strings), self.max_length)
        return list(token_batches(lengths, tokens_per_batch(self._model.device.type, self.dimensions)))

    def _refuse_static(self) -> None:
        if not callable(self._model.tokenizer):
            raise MirblabError(
                f"encoder '{self.name}' is a static embedding, whose tokens have the same vector in every text; they "
                "are not compared one by one: take a transformer, for example minilm"
            )

    def _lengths(self, strings: list[str]) -> np.ndarray:
        return entry.token_lengths(self._model.tokenizer, strings, self.name)

    @property
    def _model(self) -> Any:
        return local.load_model(*local.load_arguments(self.name, self.entry, self.folder))


@dataclass(frozen=True, eq=False)
class VectorReader:
    """The vectors of many texts, float32 (n, d), of which those of some texts at a time are encoded or read.

    `vectors[start:stop]` and `vectors[positions]` are arrays in memory.
    """

    model: Encoder
    texts: Sequence[str]
    role: str = "document"
    instruction: str = ""
    ndim = 2

    @cached_property
    def store(self) -> VectorStore:
        """Return the store, opened once: an open one knows its shards, of which millions of texts have thousands."""
        return self.model.store(self.role, self.instruction)

    @property
    def shape(self) -> tuple[int, int]:
        """Return the number of texts and that of dimensions."""
        return len(self.texts), self.model.dimensions

    def __len__(self) -> int:
        """Return the number of texts."""
        return len(self.texts)

    def __getitem__(self, rows: slice | np.ndarray) -> np.ndarray:
        """Return the vectors of a slice, or at positions, in their order."""
        return self.read(self.texts[rows] if isinstance(rows, slice) else texts_at(self.texts, rows))

    def read(self, texts: Sequence[str]) -> np.ndarray:
        """Return the vectors of some texts, in their order."""
        return self.model._stored_vectors(self.store, _check_texts(texts), self.role, self.instruction)


def token_batches(lengths: np.ndarray, budget: int) -> Iterator[list[int]]:
    """Yield positions in batches, longest text first, each padded to at most *budget* tokens (or a single longer text).

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


def _check_texts(texts: Sequence[str]) -> list[str]:
    check_texts(texts)
    return list(texts)


def _one_thread() -> None:
    import torch

    torch.set_num_threads(1)


def _run_model(model: Any, features: Mapping[str, Any], wanted: Sequence[str]) -> list[np.ndarray]:
    """Return outputs of the model for a batch; pooling is in float32 whatever the precision of the weights."""
    import torch

    first, *rest = model
    with torch.inference_mode():
        output = first({n: v.to(model.device) if torch.is_tensor(v) else v for n, v in features.items()})
        if "token_embeddings" in output:
            output["token_embeddings"] = output["token_embeddings"].float()
        # all of them for a vector, which a static embedding has before it is normalised
        are_tokens = "sentence_embedding" not in wanted and all(name in output for name in wanted)
        for module in local.token_layers(rest) if are_tokens else rest:
            output = module(output)
        return [output[name].float().cpu().numpy() for name in wanted]
