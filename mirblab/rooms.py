"""rooms: which modules make each kind of run, as one hash, so that changed code never answers with an old run."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from pathlib import Path

_HERE = Path(__file__).parent
_ORDER = ("runs", "ranking")
_WORDS = ("tokenizers", "spellings", "chargrams", "formula/ngrams", "formula/pretokens", "formula/pretoken_names",
          "formula/posts", "formula/texts", "formula/formal", "formula/lexer")  # fmt: skip
_FUSION = ("fusion", "methods", "voting", "folds", "tuning", "provenance", "measures", "judged", "per_query")
_LATE = ("late", "late_tokens", "late_store", "late_shard", "late_shrink", "hidden", "cache", "shard", "index")
# A name with a slash and a star is every module of that room.
ROOMS = {
    "bm25": ("lexical", "candidates", "rules", "postings", "weights", "best", *_WORDS, *_ORDER),
    "dense": ("dense", "candidates", "rules", "best", *_ORDER),
    "late": ("late_search", *_LATE, "candidates", "rules", "best", *_ORDER),
    "structure": ("formula/*", "candidates", "rules", "best", *_ORDER),
    "approach0": ("formula/*", "rerank", "systems", *_ORDER),
    "fusion": ("systems", *_FUSION, *_ORDER),
    "rerank": ("rerank", "systems", *_LATE, *_ORDER),
    "imported": ("results", "trec", *_ORDER),
}  # fmt: skip


def files(kind: str) -> list[Path]:
    """Return the modules that make a kind of run, in a fixed order.

    >>> [path.name for path in files("dense")][:2]
    ['dense.py', 'candidates.py']
    """
    return [path for room in ROOMS[kind] for path in sorted(_HERE.glob(f"{room}.py"))]


@lru_cache
def code(kind: str) -> str:
    """Return a hash over the modules that make a kind of run, 16 hexadecimal digits.

    >>> len(code("bm25"))
    16
    """
    digest = hashlib.blake2b(digest_size=8)
    for path in files(kind):
        digest.update(path.read_bytes().replace(b"\r\n", b"\n"))
    return digest.hexdigest()
