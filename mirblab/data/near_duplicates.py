"""Pairs of texts that are nearly equal, by MinHash."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np
import pandas as pd

from mirblab.core import atomic_files, paths
from mirblab.core.errors import MirblabError
from mirblab.core.processes import n_cores, run_in_threads, split_range
from mirblab.core.terminal import progress
from mirblab.data.parts import StoredTexts, texts_at

WORDS_PER_SHINGLE = 3  # words in a shingle
N_HASHES, RECALL = 128, 0.995  # numbers per text at most, and the least share of pairs at the threshold to find
_TEXTS_PER_BLOCK, _PAIRS_PER_BLOCK = 256, 1 << 12  # handled at once, so that they stay in the cache
_LARGEST_IN_MEMORY = 1 << 21  # texts whose signatures are in memory; those of more lie in a file, half a kilobyte each
_PAIRS_PER_READING = 1 << 18  # pairs whose texts are in memory at once
_LARGEST_BUCKET = 64  # in a larger bucket a text is compared with this number of following texts
_ESTIMATE_SLACK = 0.25  # pairs with an estimate further below the threshold are not checked: six standard errors
_LETTER, _SIGN = 1, 2
_DROPPED = b'$\\{},.;:?"`'  # separate words like blanks; each other sign is a word
_SLASH, _BACKSLASH = b"/\\"
_BASE = 0x9E3779B97F4A7C15  # odd, so that it has an inverse modulo 2^64
_INVERSE = pow(_BASE, -1, 2**64)


@dataclass(frozen=True)
class NearPairs:
    """Pairs of texts at or above a Jaccard similarity, and the recall of the search for them.

    `left` < `right` are positions, `jaccard` is exact; `recall` is the probability that the search returns a pair at
    the threshold (a pair above it: more), `n_cut` the number of texts in buckets too large to compare all pairs.
    """

    left: np.ndarray
    right: np.ndarray
    jaccard: np.ndarray
    recall: float
    n_cut: int = 0


@dataclass(frozen=True)
class RepeatedTexts:
    """Classes of texts that differ only in case and white space, and the pairs of classes that are nearly equal.

    `classes[g]` has the class of each text of group g, -1 for an empty text; `pairs` has left < right, jaccard.
    """

    classes: list[np.ndarray]
    pairs: pd.DataFrame
    recall: float
    n_cut: int

    def between(self, one: int, other: int) -> pd.DataFrame:
        """Return which texts of one group repeat those of another: positions one, other; jaccard (1: same class)."""
        near = pd.concat([self.pairs, self.pairs.rename(columns={"left": "right", "right": "left"})])
        known = np.unique(np.concatenate([self.classes[one], self.classes[other]]))
        known = known[known >= 0]
        same = pd.DataFrame({"left": known, "right": known, "jaccard": 1.0})
        sides = [
            pd.DataFrame({name: np.arange(len(self.classes[group])), side: self.classes[group]})
            for name, group, side in (("one", one, "left"), ("other", other, "right"))
        ]
        repeats = sides[0].merge(pd.concat([same, near]), on="left").merge(sides[1], on="right")
        return repeats[["one", "other", "jaccard"]].sort_values(["one", "other"], ignore_index=True)

    def within(self, group: int) -> pd.DataFrame:
        """Return the pairs inside one group, as `between` does: each copy with its first text, and near pairs once."""
        texts = pd.DataFrame({"one": np.arange(len(self.classes[group])), "left": self.classes[group]})
        texts = texts[texts.left >= 0]
        first = texts.groupby("left").one.first()
        copies = texts.assign(other=texts.left.map(first), jaccard=1.0)
        copies = copies[copies.one != copies.other].rename(columns={"one": "other", "other": "one"})
        near = self.pairs[self.pairs.left.isin(first.index) & self.pairs.right.isin(first.index)]
        ends = np.sort([near.left.map(first), near.right.map(first)], axis=0)
        near = near.assign(one=ends[0], other=ends[1])
        pairs = pd.concat([copies, near])[["one", "other", "jaccard"]].astype({"one": int, "other": int})
        return pairs.sort_values(["one", "other"], ignore_index=True)

    def shared(self, one: int, other: int) -> tuple[np.ndarray, np.ndarray]:
        """Return which texts of *one* occur in *other*, and which at least nearly do, bool (n_texts,) each."""
        classes, known = self.classes[one], np.unique(self.classes[other])
        known = known[known >= 0]
        near = [self.pairs.left[self.pairs.right.isin(known)], self.pairs.right[self.pairs.left.isin(known)]]
        return np.isin(classes, known), np.isin(classes, np.concatenate([*near, known]))


def find_repeats(
    groups: Sequence[Sequence[str]], threshold: float = 0.8, seed: int = 0, n_asked: int = 0
) -> RepeatedTexts:
    """Return which texts of *groups* repeat each other, in pairs with one of the first *n_asked* groups (0: all)."""
    digests, first, classes = np.unique(
        np.concatenate([text_digests(group) for group in groups]), return_index=True, return_inverse=True
    )
    order = np.argsort(first)  # classes are numbered as they are met, so that texts are read in their order
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    first, digests, classes = first[order], digests[order], rank[classes]
    ends = np.cumsum([len(group) for group in groups])
    asked = None
    if n_asked:
        asked = np.zeros(len(digests), bool)
        asked[classes[: ends[n_asked - 1]]] = True
    near = near_pairs(GroupedTexts(groups, first), threshold, seed, asked)
    classes = np.where(digests[classes] == 0, -1, classes)
    pairs = pd.DataFrame({"left": near.left, "right": near.right, "jaccard": near.jaccard})
    return RepeatedTexts(np.split(classes, ends[:-1]), pairs, near.recall, near.n_cut)


class GroupedTexts(StoredTexts):
    """The texts at some *places* (None: all) of all *groups* one after the other, read as they are needed."""

    def __init__(self, groups: Sequence[Sequence[str]], places: np.ndarray | None = None) -> None:
        self.groups = groups
        self.starts = np.cumsum([0, *map(len, groups)])
        self.places = np.arange(self.starts[-1]) if places is None else places

    def __len__(self) -> int:
        return len(self.places)

    def at(self, rows: slice | np.ndarray) -> list[str]:
        """Return the texts of a slice, or of some rows in their order."""
        places = self.places[rows]
        group_of, found = np.searchsorted(self.starts, places, side="right") - 1, [""] * len(places)
        for number in np.unique(group_of).tolist():
            own = np.flatnonzero(group_of == number)
            texts = texts_at(self.groups[number], places[own] - self.starts[number])
            for place, text in zip(own.tolist(), texts, strict=True):
                found[place] = text
        return found


def near_pairs(
    texts: Sequence[str], threshold: float = 0.8, seed: int = 0, asked: np.ndarray | None = None
) -> NearPairs:
    """Return the pairs of *texts* whose sets of word triples have a Jaccard similarity of *threshold* or more.

    *asked*, bool (n_texts,), limits the pairs to those with at least one of these texts (None: all). A text without
    words is in no pair. Candidates share a band of their MinHash signature (Broder, SEQUENCES 1997; Indyk & Motwani,
    STOC 1998) and are then checked on the sets. Deterministic by *seed*. MirblabError for a threshold outside 0 to 1.
    """
    if not 0 < threshold <= 1:
        raise MirblabError(f"the threshold of near-duplicates lies above 0 and up to 1, found {threshold}")
    rows, bands = signature_shape(threshold)
    signature, has_words = minhash_signatures(texts, rows * bands, seed)
    left, right, n_cut = candidate_pairs(signature, has_words, rows, asked, threshold)
    close = _agreement(signature, left, right) >= threshold - _ESTIMATE_SLACK
    left, right = left[close], right[close]
    jaccard = jaccard_similarity(texts, left, right)
    kept = jaccard >= threshold
    return NearPairs(left[kept], right[kept], jaccard[kept], match_probability(threshold, rows, bands), n_cut)


def signature_shape(threshold: float) -> tuple[int, int]:
    """Return (rows, bands) of the signature: the most rows with a recall of RECALL for pairs at *threshold*.

    >>> signature_shape(0.8), round(match_probability(0.8, *signature_shape(0.8)), 4)
    ((6, 21), 0.9983)
    """
    shapes = [(rows, N_HASHES // rows) for rows in range(1, N_HASHES + 1)]
    return max((shape for shape in shapes if match_probability(threshold, *shape) >= RECALL), default=(1, N_HASHES))


def match_probability(jaccard: float, rows: int, bands: int) -> float:
    """Return the probability that a pair of this similarity agrees in all rows of at least one band."""
    return 1 - (1 - jaccard**rows) ** bands


def minhash_signatures(texts: Sequence[str], n_hashes: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return MinHash signatures, uint32 (n_texts, n_hashes), and which texts have words, bool (n_texts,).

    Two texts agree in a column with the probability of their Jaccard similarity. Each column is the minimum of (x ^ b)
    · a modulo 2^32 over the hashes x of a text, with random b and odd a, which permutes the numbers.
    """
    random = np.random.default_rng(seed)
    masks = random.integers(0, 2**32, n_hashes, dtype=np.uint32)
    factors = random.integers(0, 2**31, n_hashes, dtype=np.uint32) * np.uint32(2) + np.uint32(1)
    out, has_words = _empty_signatures(len(texts), n_hashes), np.zeros(len(texts), bool)
    with progress(len(texts), "comparing texts", "texts") as bar:

        def task(block: slice) -> None:
            starts, hashes = shingles(texts[block])
            some = np.flatnonzero(np.diff(starts))
            has_words[block.start + some] = True
            moved = np.empty_like(hashes)
            for column, (mask, factor) in enumerate(zip(masks, factors, strict=True)):
                np.bitwise_xor(hashes, mask, out=moved)
                np.multiply(moved, factor, out=moved)
                if len(some):
                    out[block.start + some, column] = np.minimum.reduceat(moved, starts[some])
            bar.update(block.stop - block.start)

        run_in_threads(task, split_range(len(texts), _TEXTS_PER_BLOCK), n_cores())
    return out, has_words


def _empty_signatures(n_texts: int, n_hashes: int) -> np.ndarray:
    """Return zeros, uint32 (n_texts, n_hashes): in memory, or for many texts in a file without a name, by columns."""
    if n_texts <= _LARGEST_IN_MEMORY:
        return np.zeros((n_texts, n_hashes), np.uint32)
    folder, n_bytes = paths.cache(), 4 * n_texts * n_hashes
    try:
        atomic_files.make_folder(folder)
        with tempfile.TemporaryFile(dir=folder) as file:
            if hasattr(os, "posix_fallocate"):  # so that a full disk is an error here and not a crash later
                os.posix_fallocate(file.fileno(), 0, n_bytes)
            return np.memmap(file, np.uint32, "w+", shape=(n_texts, n_hashes), order="F")
    except OSError as error:
        raise MirblabError(
            f"the signatures of {n_texts:,} texts need {n_bytes / 1e9:.1f} GB in {folder}: {error}; free some room, "
            "or set MIRBLAB_HOME to a folder on another disk"
        ) from error


def candidate_pairs(
    signature: np.ndarray, has_words: np.ndarray, rows: int, asked: np.ndarray | None, threshold: float
) -> tuple[np.ndarray, np.ndarray, int]:
    """Return the pairs (left < right, each once) that agree in a band, and how many texts were in too large buckets.

    Without those whose sketches agree in fewer bits than those of pairs at *threshold* do, less six standard errors: of
    n texts about n² agree in a band by chance, and all of them would neither fit into memory nor be checked in time.
    """
    here, packed, cut = np.flatnonzero(has_words), [np.empty(0, np.int64)], np.zeros(len(signature), bool)
    sketches, n_bits, agreeing = one_bit_sketches(signature), signature.shape[1], (1 + threshold) / 2
    most_different = n_bits * (1 - agreeing) + 6 * np.sqrt(n_bits * agreeing * (1 - agreeing))
    for first in range(0, signature.shape[1], rows):
        key = np.zeros(len(here), np.uint64)
        for column in range(first, first + rows):
            key = (key ^ signature[here, column]) * np.uint64(0x9E3779B97F4A7C15)
            key ^= key >> np.uint64(29)
        order = np.argsort(key, kind="stable")
        key, texts = key[order], here[order]
        for step in range(1, _LARGEST_BUCKET + 1):
            same = np.flatnonzero(key[step:] == key[:-step])
            if not len(same):
                break
            one, other = texts[same], texts[same + step]
            if asked is not None:
                wanted = asked[one] | asked[other]
                one, other = one[wanted], other[wanted]
            if step == _LARGEST_BUCKET:
                cut[one] = True
            is_near = _differing_bits(sketches, one, other) <= most_different
            packed.append(one[is_near] << 32 | other[is_near])
    pairs = np.unique(np.concatenate(packed))
    return pairs >> 32, pairs & 0xFFFFFFFF, int(cut.sum())


def one_bit_sketches(signature: np.ndarray) -> np.ndarray:
    """Return one bit of each number of the signatures, uint64 (n_texts, n_words).

    Those of two texts agree with the probability (1 + J) / 2, with J their Jaccard similarity: Li and König, "b-Bit
    Minwise Hashing" (WWW 2010). The lowest bit of a number would be that of a shingle's hash, the same in all columns.
    """
    sketches = np.zeros((len(signature), -(-signature.shape[1] // 64)), np.uint64)
    for column in range(signature.shape[1]):
        bit = (signature[:, column] * np.uint32(_BASE & 0xFFFFFFFF)) >> np.uint32(31)
        sketches[:, column // 64] |= bit.astype(np.uint64) << np.uint64(column % 64)
    return sketches


def _differing_bits(sketches: np.ndarray, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    blocks = split_range(len(left), _PAIRS_PER_BLOCK)
    parts = [np.bitwise_count(sketches[left[b]] ^ sketches[right[b]]).sum(axis=1, dtype=np.int64) for b in blocks]
    return np.concatenate([np.empty(0, np.int64), *parts])


def jaccard_similarity(texts: Sequence[str], left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return the exact Jaccard similarity of the sets of word triples of each pair of positions, float64 (n_pairs,)."""
    found = [np.empty(0)]
    for some in split_range(len(left), _PAIRS_PER_READING):
        involved, positions = np.unique(np.concatenate([left[some], right[some]]), return_inverse=True)
        starts, sets = _sets(texts_at(texts, involved))
        n_pairs = len(positions) // 2
        task = partial(_jaccard, starts, sets, positions[:n_pairs], positions[n_pairs:])
        found += run_in_threads(task, split_range(n_pairs, _PAIRS_PER_BLOCK), n_cores())
    return np.concatenate(found)


def shingles(texts: Sequence[str], size: int = WORDS_PER_SHINGLE) -> tuple[np.ndarray, np.ndarray]:
    """Return (starts, hashes): text i has the shingles `hashes[starts[i]:starts[i + 1]]`, uint32, repeats included.

    A shingle is *size* words in a row, or all of a shorter text; a word is a run of letters, digits and `_`, or one
    other sign. Case, white space, full stops, commas and LaTeX's `$ \\ { }` make no difference. A text without words
    has no shingle. Hashes are polynomials in the bytes modulo 2^64, mixed and cut to 32 bits.
    """
    words, n_words = _words(texts)
    ends = np.cumsum(n_words)
    counts = np.where(n_words > 0, np.maximum(n_words - size + 1, 1), 0)
    starts = np.concatenate([[0], np.cumsum(counts)])
    first = np.arange(starts[-1]) + np.repeat(ends - n_words - starts[:-1], counts)
    stop, hashes = np.repeat(ends, counts), np.zeros(len(first), np.uint64)
    for step in range(size if len(words) else 0):
        at = first + step
        word = np.where(at < stop, words[np.minimum(at, len(words) - 1)], np.uint64(0))
        hashes = hashes * np.uint64(_BASE) + word
    return starts, (_mixed(hashes) >> np.uint64(32)).astype(np.uint32)


def text_digests(texts: Sequence[str]) -> np.ndarray:
    """Return one uint64 per text, (n_texts,): equal for texts that `fold_text` makes equal, and 0 for empty texts.

    Among two million texts the probability of a false match is one in ten million.

    >>> a, b, c, empty = text_digests(["A ring", "a  RING", "a field", " "])
    >>> bool(a == b), bool(a == c), int(empty)
    (True, False, 0)
    """
    folded = (fold_text(text).encode("utf-8", "surrogatepass") for text in texts)
    numbers = (
        int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little") if text else 0 for text in folded
    )
    return np.fromiter(numbers, np.uint64, len(texts))


def fold_text(text: str) -> str:
    """Return *text* without differences of case and white space."""
    return " ".join(text.casefold().split())


def _agreement(signature: np.ndarray, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    parts = [(signature[left[b]] == signature[right[b]]).mean(axis=1) for b in split_range(len(left), _PAIRS_PER_BLOCK)]
    return np.concatenate([np.empty(0), *parts])


def _sets(texts: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Return (starts, hashes) of the texts' shingles, distinct and ascending within each text."""
    sizes, sets = [np.zeros(1, np.int64)], []
    for block in split_range(len(texts), _TEXTS_PER_BLOCK):
        starts, hashes = shingles(texts[block])
        owner = np.repeat(np.arange(len(starts) - 1, dtype=np.uint64), np.diff(starts))
        keys = np.unique(owner << np.uint64(32) | hashes)
        sizes.append(np.bincount((keys >> np.uint64(32)).astype(np.int64), minlength=len(starts) - 1))
        sets.append(keys.astype(np.uint32))
    return np.cumsum(np.concatenate(sizes)), np.concatenate([*sets, np.empty(0, np.uint32)])


def _jaccard(starts: np.ndarray, sets: np.ndarray, left: np.ndarray, right: np.ndarray, block: slice) -> np.ndarray:
    """Return the similarity of the pairs in *block*; shared elements occur twice among those of a pair."""
    sides = np.concatenate([left[block], right[block]])
    sizes = starts[sides + 1] - starts[sides]
    begins = np.cumsum(sizes) - sizes
    at = np.arange(sizes.sum()) + np.repeat(starts[sides] - begins, sizes)
    n_pairs = len(sides) // 2
    owner = np.repeat(np.tile(np.arange(n_pairs, dtype=np.uint64), 2), sizes)
    keys = np.sort(owner << np.uint64(32) | sets[at])
    twice = keys[1:][keys[1:] == keys[:-1]]
    shared = np.bincount((twice >> np.uint64(32)).astype(np.int64), minlength=n_pairs)
    total = sizes[:n_pairs] + sizes[n_pairs:] - shared
    return shared / np.maximum(total, 1)


def _words(texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Return the hash of each word of all texts, in order, and how many words each text has."""
    encoded = [fold_text(text).encode("utf-8", "surrogatepass") for text in texts]
    # A blank after each text, so that no word continues in the next text.
    letters = np.frombuffer(b" ".join([*encoded, b""]), dtype=np.uint8)
    kind = _KINDS[letters]
    # "/\" and "\/" are the signs "and" and "or" of formal languages; elsewhere a backslash begins a command.
    at = np.flatnonzero(letters[:-1] + letters[1:] == _SLASH + _BACKSLASH)
    at = at[(letters[at] == _SLASH) | (letters[at] == _BACKSLASH)]
    kind[np.where(letters[at] == _BACKSLASH, at, at + 1)] = _SIGN
    is_letter = np.concatenate([[False], kind == _LETTER, [False]])
    begins = (kind == _SIGN) | (is_letter[1:-1] & ~is_letter[:-2])
    ends = (kind == _SIGN) | (is_letter[1:-1] & ~is_letter[2:])
    first, stop = np.flatnonzero(begins), np.flatnonzero(ends) + 1
    sums = np.concatenate([[np.uint64(0)], np.cumsum((letters + np.uint64(1)) * _powers(_BASE, len(letters)))])
    # Dividing by the power at which a word begins makes its hash independent of its place.
    hashes = (sums[stop] - sums[first]) * _powers(_INVERSE, len(letters))[first]
    text_ends = np.cumsum(np.fromiter(map(len, encoded), np.int64, len(encoded)) + 1)
    return _mixed(hashes), np.diff(np.searchsorted(first, text_ends), prepend=0)


def _powers(base: int, count: int) -> np.ndarray:
    return _powers_table(base, max(count - 1, 1).bit_length())[:count]


@lru_cache(maxsize=8)
def _powers_table(base: int, bits: int) -> np.ndarray:
    powers = np.full(1 << bits, base, np.uint64)
    powers[0] = 1
    return np.cumprod(powers, out=powers)


def _mixed(numbers: np.ndarray) -> np.ndarray:
    """Return uint64 *numbers* with every bit depending on all (Steele, Lea & Flood's SplitMix64, OOPSLA 2014)."""
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return numbers ^ (numbers >> np.uint64(31))


def _kinds() -> np.ndarray:
    """Return for each byte whether it separates words, belongs to a word, or is a word, uint8 (256,)."""
    kinds = np.full(256, _SIGN, np.uint8)
    letters = [code for code in range(256) if code >= 128 or chr(code).isalnum() or chr(code) == "_"]
    kinds[letters] = _LETTER
    kinds[list(range(33))] = 0
    kinds[list(_DROPPED)] = 0
    return kinds


_KINDS = _kinds()
