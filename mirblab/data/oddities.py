"""oddities: what is odd in the texts of a corpus, counted text by text."""

from __future__ import annotations

import hashlib
import re

import numpy as np

_ENTITY = re.compile(r"&(?:[a-zA-Z][a-zA-Z0-9]{1,31}|#[0-9]{1,7}|#x[0-9a-fA-F]{1,6});")
_PRIVATE = re.compile("[\ue000-\uf8ff]")  # signs that only one font has
_PRIVATE_NUMBER = re.compile(r"\{u(?:57[3-9]|5[89]\d|6[0-3]\d)\d\d\}")  # the same as decimal numbers of LaTeXML's


class TextOddities:
    """Counts of documents: without text, that repeat another's, with HTML entities, with signs of one font."""

    def __init__(self) -> None:
        self._n_empty = self._n_entities = self._n_private = 0
        self._hashes = bytearray()  # of 128 bits each

    def add(self, title: str, text: str) -> None:
        """Count one more document."""
        self._n_empty += not text.strip()
        self._n_entities += has_entity(text)
        self._n_private += has_private_sign(text)
        self._hashes += hashlib.blake2b(f"{title} {text}".encode(), digest_size=16).digest()

    def counts(self) -> dict[str, int]:
        """Return the counts, in this order, those of 0 included."""
        return {
            "documents without text": self._n_empty,
            "documents that repeat another's text": count_repeats(self._hashes),
            "texts with HTML entities": self._n_entities,
            "texts with signs of a private font": self._n_private,
        }


def has_entity(text: str) -> bool:
    """Return whether a text has an HTML entity such as `&lt;`."""
    return "&" in text and _ENTITY.search(text) is not None


def has_private_sign(text: str) -> bool:
    r"""Return whether a text has a sign of Unicode's private use area, or its number as in `\mathrm{u60233}`.

    What such a sign looks like is known to the font of its page alone, so that no search can read it.
    """
    if "{u" in text and _PRIVATE_NUMBER.search(text):
        return True
    return not text.isascii() and _PRIVATE.search(text) is not None


def count_repeats(hashes: bytearray) -> int:
    """Return how many of the *hashes*, of 16 bytes each, repeat an earlier one; they are sorted in place."""
    ordered = np.frombuffer(hashes, dtype="S16")
    ordered.sort()
    return int((ordered[1:] == ordered[:-1]).sum())
