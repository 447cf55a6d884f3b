"""Time and memory of the search for near-duplicates, on generated texts as long as MSE's, and its recall.

Every hundredth text is a copy of an earlier one with a few words changed, so that pairs on both sides of the threshold
exist. Recall is checked against all pairs of a small part. The extrapolation to the published size takes the time of
comparing as linear in the number of texts and the number of candidates as quadratic.
"""

from __future__ import annotations

import argparse
import os
import platform
import resource
import sys
import time
from importlib.metadata import version
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from mse_size import forms, posts  # noqa: E402  the script beside this one

from mirblab.core.processes import n_cores  # noqa: E402
from mirblab.data import near_duplicates  # noqa: E402
from mirblab.data.near_duplicates import find_repeats  # noqa: E402

PUBLISHED = 1_350_505 + 25_116


def texts(count: int, seed: int) -> list[str]:
    """Return *count* posts of 116 words on average; every hundredth repeats an earlier one with words changed."""
    random, names = np.random.default_rng(seed), forms(1_000_000)
    found: list[str] = []
    for start in range(0, count, 20_000):
        some, _ = posts(random, min(20_000, count - start), 116.4)
        for number, ranks in enumerate(some, start):
            words = names[ranks].tolist()
            if number % 100 == 99:
                words = found[int(random.integers(number))].split()
                for place in random.integers(0, len(words), random.integers(0, 1 + len(words) // 20)):
                    words[place] = "changed"
            found.append(" ".join(words))
    return found


def all_pairs(some: list[str], threshold: float) -> set[tuple[int, int]]:
    """Return the pairs at or above the threshold, by comparing all with all."""
    left, right = np.triu_indices(len(some), 1)
    similar = near_duplicates.jaccard_similarity(some, left, right) >= threshold
    return set(zip(left[similar].tolist(), right[similar].tolist(), strict=True))


def peak() -> float:
    """Return the most memory that this process has had, in GiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def main() -> None:
    """Print sizes, times, memory, recall, and what the published size would take."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--texts", type=int, default=100_000)
    parser.add_argument("--check", type=int, default=2_000, help="texts compared all with all")
    parser.add_argument("--threshold", type=float, default=0.8)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    os.environ["MIRBLAB_PROGRESS"] = "0"
    print(f"python {platform.python_version()}, numpy {version('numpy')}, {n_cores()} cores; {vars(given)}")
    made = texts(given.texts, given.seed)
    size, n_words = sum(map(len, made)) / 1e6, sum(len(text.split()) for text in made) / len(made)
    print(f"{len(made):,} texts, {n_words:.0f} words each, {size:.0f} MB; {peak():.2f} GiB")
    wall, cpu = time.perf_counter(), time.process_time()
    found = find_repeats([made], given.threshold, given.seed)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    print(f"repeats: {wall:.1f} s wall, {cpu:.1f} s CPU, peak {peak():.2f} GiB; {len(found.pairs):,} near pairs")
    rows, bands = near_duplicates.signature_shape(given.threshold)
    begun = time.process_time()
    signature, has_words = near_duplicates.minhash_signatures(made, rows * bands, given.seed)
    signed = time.process_time()
    left, _, n_cut = near_duplicates.candidate_pairs(signature, has_words, rows, None, given.threshold)
    print(f"  signatures {signed - begun:.1f} s CPU; {bands} bands of {rows} {time.process_time() - signed:.1f} s CPU: "
          f"{len(left):,} candidates, {n_cut:,} texts in too large a bucket")  # fmt: skip
    factor = PUBLISHED / len(made)
    print(f"at {PUBLISHED:,} texts: about {cpu * factor / 60:.1f} min of CPU, up to {len(left) * factor**2:,.0f} "
          f"candidates, {PUBLISHED * rows * bands * 4 / 2**30:.2f} GiB of signatures")  # fmt: skip
    part = made[: given.check]
    wanted = all_pairs(part, given.threshold)
    got = near_duplicates.near_pairs(part, given.threshold, given.seed)
    pairs = set(zip(got.left.tolist(), got.right.tolist(), strict=True))
    print(f"recall on {len(part):,} texts, all with all: {len(pairs & wanted)} of {len(wanted)}, "
          f"{len(pairs - wanted)} wrong; promised at the threshold: {got.recall:.4f}")  # fmt: skip


if __name__ == "__main__":
    main()
