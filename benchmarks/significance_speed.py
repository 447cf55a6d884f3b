"""How long all pairs of systems take in the sign-flip test: mirblab beside scipy, interleaved in one run.

    python benchmarks/significance_speed.py [--queries 1000] [--systems 13] [--permutations 100000] [--rounds 3]

scipy tests one pair per call; the time for all pairs is one pair's time multiplied. Times are seconds of wall clock
and of CPU over all threads; each side's best round counts.
"""

from __future__ import annotations

import argparse
import os
import platform
import time
from collections.abc import Callable

import numpy as np
import pandas as pd
import scipy
from scipy import stats

from mirblab.evaluation import significance


def values_table(n_queries: int, n_systems: int, seed: int = 0) -> pd.DataFrame:
    """Return made values: a difficulty per query, noise, and small offsets between systems."""
    generator = np.random.default_rng(seed)
    base = generator.beta(0.7, 0.7, size=(n_queries, 1))
    numbers = base + generator.normal(0, 0.2, (n_queries, n_systems)) + 0.002 * np.arange(n_systems)
    matrix = pd.DataFrame(np.clip(numbers, 0, 1), columns=[f"s{n:02}" for n in range(n_systems)])
    long = matrix.assign(query_id=[f"q{n:05}" for n in range(n_queries)]).melt("query_id", var_name="system")
    return long.assign(collection="made", measure="nDCG@10")


def timed(function: Callable[[], object]) -> tuple[object, float, float]:
    """Return the function's result, its wall seconds and its CPU seconds."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = function()
    return result, time.perf_counter() - wall, time.process_time() - cpu


def main() -> None:
    """Run both sides in turn and print times, ratio, and the p values of the shared pair."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--systems", type=int, default=13)
    parser.add_argument("--permutations", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    values = values_table(given.queries, given.systems)
    matrix = significance.value_matrix(values, "nDCG@10")
    n_pairs = given.systems * (given.systems - 1) // 2

    def ours() -> pd.DataFrame:
        return significance.permutation_test(values, "nDCG@10", n_permutations=given.permutations)

    def theirs(seed: int) -> float:
        return stats.permutation_test(
            (matrix["s00"], matrix["s01"]), lambda a, b, axis: (a - b).mean(axis=axis), permutation_type="samples",
            vectorized=True, n_resamples=given.permutations, batch=1000, rng=np.random.default_rng(seed),
        ).pvalue  # fmt: skip

    print(
        f"python {platform.python_version()}, numpy {np.__version__}, scipy {scipy.__version__}, "
        f"pandas {pd.__version__}, {os.cpu_count()} CPUs, OMP_NUM_THREADS={os.environ.get('OMP_NUM_THREADS', '')}"
    )
    print(f"{given.queries} queries, {given.systems} systems ({n_pairs} pairs), {given.permutations} permutations")
    times = {"mirblab": [], "scipy": []}
    for number in range(given.rounds):
        table, *spent = timed(ours)
        times["mirblab"].append(spent)
        p, *spent = timed(lambda number=number: theirs(number))
        times["scipy"].append(spent)
        print(f"round {number}: p of the first pair: mirblab {table.p[0]:.5f}, scipy {p:.5f}")
    best = {name: np.min(rows, axis=0) for name, rows in times.items()}
    both = f"{n_pairs} pairs"
    lines = [("mirblab", both, 1), ("scipy", "1 pair", 1), ("scipy", f"{both}, derived", n_pairs)]
    for name, what, factor in lines:
        wall, cpu = best[name] * factor
        print(f"{name:8} {what:18} wall {wall:9.3f} s   CPU {cpu:9.3f} s")
    wall, cpu = n_pairs * best["scipy"] / best["mirblab"]
    print(f"ratio for {n_pairs} pairs: {wall:.0f} times in wall time, {cpu:.0f} times in CPU time")


if __name__ == "__main__":
    main()
