"""late_tokens: the token vectors of texts by any encoder of the registry, read from the store or made once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from mirblab import paths
from mirblab.encode import Encoder
from mirblab.errors import MirblabError
from mirblab.late_shrink import Shrink
from mirblab.late_store import Held, Stored, TokenStore
from mirblab.progress import progress

CHUNK_TEXTS = 256  # a shard each, so that an interruption costs no more than these


def token_rows(
    model: Encoder,
    texts: Sequence[str],
    role: str = "document",
    instruction: str = "",
    shrink: Shrink | None = None,
) -> Stored:
    """Return the token vectors of *texts*, in their order, memory-mapped; see `late.TokenRows`.

    Each distinct text is encoded once for its role and instruction, stored as float16 as soon as its chunk is done,
    and read from then on. What *shrink* makes of the vectors is stored in a space of its own, beside the whole ones.
    What cannot be stored is held in memory, with a line that says so.
    """
    wanted = (shrink or Shrink()).of(role)
    store = token_store(model, role, instruction, wanted)
    found, missing = store.read(texts)
    if not len(missing):
        return found
    new = list(dict.fromkeys(texts[position] for position in missing))
    unstored: dict[str, np.ndarray] = {}
    with progress(len(new), f"{model.name}: token vectors", "texts") as bar:
        for some, tokens in _made(model, new, role, instruction, wanted):
            if not paths.stored("token vectors", store.append, some, tokens):
                unstored |= zip(some, tokens, strict=True)
            bar.update(len(some))
    found, missing = store.read(texts)
    lost = [position for position in missing if texts[position] not in unstored]
    if lost:
        raise MirblabError(f"{len(lost)} texts cannot be read back from {store.path}; check the disk")
    if not len(missing):
        return found
    place = {text: number for number, text in enumerate(unstored)}
    places = np.array([place[texts[position]] for position in missing])
    return found.including(Held.of(list(unstored.values()), store.path), missing, places)


def token_store(
    model: Encoder, role: str = "document", instruction: str = "", shrink: Shrink | None = None
) -> TokenStore:
    """Return the store of an encoder's token vectors for one role and instruction."""
    wanted = (shrink or Shrink()).of(role)
    return TokenStore(paths.cache() / "tokens", {**model.space(role, instruction), **wanted.key()})


def _made(
    model: Encoder, texts: list[str], role: str, instruction: str, shrink: Shrink
) -> Iterator[tuple[list[str], list[np.ndarray]]]:
    """Yield chunks of texts with their token vectors; shrunk ones are made from the whole ones in the store."""
    whole = token_rows(model, texts, role, instruction) if shrink.name else None
    for start in range(0, len(texts), CHUNK_TEXTS):
        some = texts[start : start + CHUNK_TEXTS]
        if whole is None:
            yield some, model.token_vectors(some, role, instruction)
        else:
            places = range(start, start + len(some))
            yield some, [shrink(whole.block(place, place + 1)) for place in places]
