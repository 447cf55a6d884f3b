"""Paired significance tests, intervals, corrections for several tests, effect sizes, power, and correlation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations, pairwise
from string import ascii_lowercase

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from mirblab.core.errors import MirblabError, check_known, check_not_negative, check_positive, unknown
from mirblab.core.wording import counted
from mirblab.evaluation.measures import is_rank

# Elements of one block of signs or counts: 4 MB as float64, which stays in the cache of one core.
_BLOCK = 1 << 19
_ENOUGH = 100  # queries, from which conclusions are drawn
_EMPTY_MATRIX = pd.DataFrame(index=[""])  # gives the columns of a table without comparisons their names
# By the column that a correction adds to a comparison: its name, and what it is called in a sentence.
_CORRECTIONS = {
    "p_holm": ("holm", "after Holm's correction"),
    "p_bh": ("bh", "after Benjamini and Hochberg's correction"),
    "p_bonferroni": ("bonferroni", "after Bonferroni's correction"),
    "p": ("none", "without correction"),
}
P_COLUMNS = tuple(_CORRECTIONS)
Pairs = Sequence[tuple[str, str]]
Groups = Mapping[str, str]  # of query ids to what their queries share, such as a theorem
Statistics = Callable[[pd.DataFrame, list[int], list[int]], dict[str, np.ndarray]]


def compare(
    values: pd.DataFrame,
    measure: str,
    *,
    baseline: str | None = None,
    groups: Groups | None = None,
    test: str = "permutation",
    family: str = "collection",
    correction: str | None = "holm",
    alpha: float = 0.05,
    seed: int = 0,
    n_permutations: int = 100_000,
    n_resamples: int = 10_000,
) -> pd.DataFrame:
    """Return every comparison with its p, its p corrected within the family, and the interval of the difference.

    Columns: collection, measure, system_a, system_b, difference (a minus b), p, p_holm, low, high (bootstrap, level 1 -
    *alpha*, not corrected), n_queries, significant (p_holm <= alpha), family. With a *baseline* all systems are
    compared with it (it is system_b; without others the table is empty), else all pairs. *test* is "permutation" or
    "t"; *family* is "collection" (one correction per collection) or "all" (one for the table). *correction* is "holm",
    "bh" (`benjamini_hochberg`, with the column p_bh for p_holm), "bonferroni" (p_bonferroni) or "none", also None (p
    itself decides). `attrs` hold these settings. *groups* (query id: group) are of queries that are not independent, as
    steps of one theorem: test and interval take each group as a whole. MirblabError without a baseline where there is
    no pair, and for a t-test with groups.

    >>> rows = [("a", "q1", 0.9), ("a", "q2", 0.7), ("b", "q1", 0.4), ("b", "q2", 0.8)]
    >>> values = pd.DataFrame(rows, columns=["system", "query_id", "value"]).assign(collection="c", measure="RR")
    >>> compare(values, "RR", baseline="b").difference.round(6).tolist()
    [0.2]
    """
    check_known("family", family, ["all", "collection"])
    decisive = corrected_column(correction)
    if test == "t" and groups is not None:
        raise MirblabError("the t-test takes queries as independent; with groups use test='permutation'")
    if test == "permutation":
        tested = permutation_test(
            values, measure, baseline=baseline, groups=groups, n_permutations=n_permutations, seed=seed
        )
    elif test == "t":
        tested = t_test(values, measure, baseline=baseline)
    else:
        raise unknown("test", test, ["permutation", "t"])
    if tested.empty and baseline is None:
        systems = ", ".join(map(str, values_per_query(values[values.measure == measure]).system.unique())) or "none"
        raise MirblabError(
            f"a comparison needs values per query of two or more systems; {measure} has those of {systems}"
        )
    spans = difference_intervals(
        values, measure, baseline=baseline, groups=groups, level=1 - alpha, n_resamples=n_resamples, seed=seed
    )
    table = tested.drop(columns="t", errors="ignore").assign(low=spans.low, high=spans.high)
    families = table.collection if family == "collection" else pd.Series("all collections", index=table.index)
    if decisive != "p":
        adjust = {"p_holm": holm, "p_bh": benjamini_hochberg, "p_bonferroni": bonferroni}[decisive]
        table[decisive] = table.p.groupby(families, sort=False).transform(adjust)
    table["significant"] = table[decisive] <= alpha
    sizes = families.map(families.value_counts()).map(lambda n: counted(n, "comparison"))
    table["family"] = families + " (" + sizes + ")"
    columns = ["collection", "measure", "system_a", "system_b", "difference", *dict.fromkeys(["p", decisive])]
    table = table[[*columns, "low", "high", "n_queries", "significant", "family"]]
    table.attrs = {"test": test, "baseline": baseline, "family": family, "alpha": alpha, "seed": seed}
    table.attrs["n_permutations"] = n_permutations if test == "permutation" else 0
    return table


def corrected_column(correction: str | None) -> str:
    """Return the column of a comparison whose p decides under a *correction*; MirblabError for an unknown one.

    >>> corrected_column("bh"), corrected_column(None)
    ('p_bh', 'p')
    """
    columns = {name: column for column, (name, _) in _CORRECTIONS.items()}
    wanted = "none" if correction is None else correction
    check_known("correction", wanted, columns)
    return columns[wanted]


def decisive_p(comparison: pd.DataFrame) -> tuple[str, str]:
    """Return the column of *comparison* whose p decides, and how it was corrected, as the end of a sentence.

    >>> decisive_p(pd.DataFrame(columns=["p", "p_holm"]))
    ('p_holm', "after Holm's correction")
    """
    column = next((name for name in _CORRECTIONS if name in comparison), "p")
    return column, _CORRECTIONS[column][1]


def permutation_test(
    values: pd.DataFrame,
    measure: str,
    pairs: Pairs | None = None,
    *,
    baseline: str | None = None,
    groups: Groups | None = None,
    n_permutations: int = 100_000,
    seed: int = 0,
) -> pd.DataFrame:
    """Return the paired sign-flip test of each pair: for every query the two systems are swapped or not, at random.

    The two-sided p is (1 + hits) / (1 + permutations), never 0; a hit has a |mean difference| at least as large as the
    observed one. The same *seed* gives the same p, whatever the order of systems and queries or the number of pairs.
    With *groups* (query id: group) all queries of a group are swapped together, or none. Fisher, The Design of
    Experiments, 1935; the correction by one: Phipson and Smyth, 2010.
    """
    check_positive(n_permutations=n_permutations)

    def statistics(matrix: pd.DataFrame, left: list[int], right: list[int]) -> dict[str, np.ndarray]:
        sums, _ = _group_sums(matrix.to_numpy(), _group_numbers(matrix, groups))
        hits = count_sign_flips(sums, left, right, n_permutations, seed)
        return {"p": (1 + hits) / (1 + n_permutations)}

    return _paired(values, measure, pairs, baseline, statistics)


def t_test(
    values: pd.DataFrame, measure: str, pairs: Pairs | None = None, *, baseline: str | None = None
) -> pd.DataFrame:
    """Return Student's paired t-test (Biometrika 1908) of each pair of systems: difference, t and two-sided p.

    *pairs* None: all pairs, or all systems against *baseline* (then system_b). Identical systems give t 0 and p 1; a
    difference that is the same for all queries t ±inf and p 0; one query NaN.
    """
    return _paired(values, measure, pairs, baseline, lambda matrix, *pair: paired_t(matrix.to_numpy(), *pair))


def bootstrap_intervals(
    values: pd.DataFrame,
    measure: str | None = None,
    *,
    groups: Groups | None = None,
    level: float = 0.95,
    n_resamples: int = 10_000,
    seed: int = 0,
) -> pd.DataFrame:
    """Return each system's mean with its percentile bootstrap interval: queries are drawn with replacement.

    Columns: collection, measure, system, mean, low, high, n_queries. All systems share the drawn queries. *measure*
    None: all measures of the table. With *groups* (query id: group) whole groups of queries are drawn, of any sizes.
    `attrs` hold the level. Efron, Annals of Statistics 1979; of groups: Davison and Hinkley, Bootstrap Methods and
    their Application, 1997, section 3.8.

    >>> rows = [("a", "q1", 1.0), ("a", "q2", 1.0)]
    >>> values = pd.DataFrame(rows, columns=["system", "query_id", "value"]).assign(collection="c", measure="RR")
    >>> bootstrap_intervals(values)[["mean", "low", "high"]].values.tolist()
    [[1.0, 1.0, 1.0]]
    """
    tables = []
    for name in values.measure.unique() if measure is None else [measure]:
        for collection, matrix in value_matrices(values, name):
            numbers = matrix.to_numpy()
            means = resampled_means(numbers, n_resamples, seed, _group_numbers(matrix, groups))
            low, high = percentiles(means, level)
            row = {"collection": collection, "measure": name, "system": matrix.columns, "mean": numbers.mean(axis=0)}
            tables.append(pd.DataFrame(row | {"low": low, "high": high, "n_queries": len(matrix)}))
    if not tables:
        raise MirblabError("the table is empty of values per query, so there is nothing to resample")
    intervals = pd.concat(tables, ignore_index=True)
    intervals.attrs["level"] = level
    return intervals


def difference_intervals(
    values: pd.DataFrame,
    measure: str,
    pairs: Pairs | None = None,
    *,
    baseline: str | None = None,
    groups: Groups | None = None,
    level: float = 0.95,
    n_resamples: int = 10_000,
    seed: int = 0,
) -> pd.DataFrame:
    """Return each pair's mean difference (a minus b) with its bootstrap interval, over queries or whole *groups*."""

    def statistics(matrix: pd.DataFrame, left: list[int], right: list[int]) -> dict[str, np.ndarray]:
        means = resampled_means(matrix.to_numpy(), n_resamples, seed, _group_numbers(matrix, groups))
        low, high = percentiles(means[:, left] - means[:, right], level)
        return {"low": low, "high": high}

    return _paired(values, measure, pairs, baseline, statistics)


def holm(p: ArrayLike) -> np.ndarray:
    """Return the p values of one family adjusted by Holm's step-down method, in the order given, at most 1.

    NaN is no test: it stays NaN and does not count. Holm, Scandinavian Journal of Statistics 1979.

    >>> holm([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.06, 0.06]
    """
    p = np.asarray(p, dtype=np.float64)
    tested = np.flatnonzero(~np.isnan(p))
    order = tested[np.argsort(p[tested], kind="stable")]
    adjusted = np.full(len(p), np.nan)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(p[order] * np.arange(len(order), 0, -1)))
    return adjusted


def benjamini_hochberg(p: ArrayLike) -> np.ndarray:
    """Return the p values of one family adjusted by Benjamini and Hochberg's step-up method, in the order given.

    Rejecting those of at most q keeps the expected share of false rejections (false discovery rate) at q, if the tests
    are independent or positively dependent. NaN is no test: it stays NaN and does not count. Benjamini and Hochberg,
    Journal of the Royal Statistical Society B 1995.

    >>> benjamini_hochberg([0.01, 0.04, 0.03, 0.005]).round(9).tolist()
    [0.02, 0.04, 0.04, 0.02]
    """
    from scipy.stats import false_discovery_control

    p = np.asarray(p, dtype=np.float64)
    tested = ~np.isnan(p)
    adjusted = np.full(len(p), np.nan)
    adjusted[tested] = false_discovery_control(p[tested])
    return adjusted


def bonferroni(p: ArrayLike) -> np.ndarray:
    """Return the p values of one family multiplied by their number, at most 1, in the order given.

    Holm's method limits the false rejections equally and rejects at least as much; this one also holds for intervals.
    NaN is no test: it stays NaN and does not count. Dunn, Journal of the American Statistical Association 1961.

    >>> bonferroni([0.01, 0.4]).tolist()
    [0.02, 0.8]
    """
    p = np.asarray(p, dtype=np.float64)
    return np.minimum(1.0, p * np.count_nonzero(~np.isnan(p)))


def effect_sizes(
    values: pd.DataFrame,
    measure: str,
    pairs: Pairs | None = None,
    *,
    baseline: str | None = None,
    level: float = 0.95,
    n_resamples: int = 10_000,
    seed: int = 0,
) -> pd.DataFrame:
    """Return each pair's standardised mean difference over queries, with its percentile bootstrap interval.

    Columns: collection, measure, system_a, system_b, difference (a minus b), effect, low, high, n_queries. The effect
    is Cohen's d_z, the mean of the differences over their standard deviation (n - 1): t over the root of n. 0.2 is
    called small, 0.5 medium, 0.8 large. Equal systems have 0, a difference that is the same for all queries ±inf, and a
    single query NaN. Cohen, Statistical Power Analysis, 1988; why to report it with an interval: Sakai, SIGIR Forum
    48(1), 2014.

    >>> rows = [("a", "q1", 0.9), ("a", "q2", 0.7), ("b", "q1", 0.4), ("b", "q2", 0.5)]
    >>> values = pd.DataFrame(rows, columns=["system", "query_id", "value"]).assign(collection="c", measure="RR")
    >>> effect_sizes(values, "RR").effect.round(2).tolist()
    [1.65]
    """

    def statistics(matrix: pd.DataFrame, left: list[int], right: list[int]) -> dict[str, np.ndarray]:
        numbers = matrix.to_numpy()
        differences = numbers[:, left] - numbers[:, right]
        moments = np.hstack([differences, differences**2])
        mean, square = np.hsplit(resampled_means(moments, n_resamples, seed), 2)
        drawn = _effects(mean, square, len(numbers))
        effect, largest = _effect(differences), np.abs(np.where(np.isinf(drawn), 0, drawn)).max(axis=0)
        low, high = (
            np.where(np.isfinite(effect), end, effect)
            for end in percentiles(np.clip(drawn, -largest, largest), level)  # few queries may be drawn all alike
        )
        return {"effect": effect, "low": low, "high": high}

    return _paired(values, measure, pairs, baseline, statistics)


def queries_needed(
    values: pd.DataFrame,
    measure: str,
    pairs: Pairs | None = None,
    *,
    baseline: str | None = None,
    power: float = 0.8,
    alpha: float = 0.05,
) -> pd.DataFrame:
    """Return for each pair how many queries a next study needs to find its difference significant.

    Columns: collection, measure, system_a, system_b, difference, effect (see `effect_sizes`), n_needed (the smallest
    number of queries with which a two-sided paired t-test at *alpha* rejects with probability *power*, if mean and
    standard deviation of the differences are those observed; inf without a difference), detectable (the smallest
    |difference| that this number of queries finds with that power; NaN for a single query), n_queries. For m
    comparisons with Bonferroni's correction give *alpha* / m. From noncentral t, as in Cohen, Statistical Power
    Analysis, 1988; as a way to choose the size of a topic set: Sakai, Information Retrieval Journal 19, 2016.

    >>> rows = [(name, f"q{n}", value) for name, up in (("a", 0.2), ("b", 0)) for n, value in enumerate([up, 0.1, 0.3])]
    >>> values = pd.DataFrame(rows, columns=["system", "query_id", "value"]).assign(collection="c", measure="RR")
    >>> queries_needed(values, "RR").n_needed.tolist()
    [26.0]
    """
    for name, share in (("power", power), ("alpha", alpha)):
        if not 0 < share < 1:
            raise MirblabError(f"{name} must lie between 0 and 1, found {share}; power 0.8 and alpha 0.05 are usual")
    if power <= alpha:
        raise MirblabError(f"power must be larger than alpha, found {power} and {alpha}; 0.8 and 0.05 are usual")

    def statistics(matrix: pd.DataFrame, left: list[int], right: list[int]) -> dict[str, np.ndarray]:
        numbers = matrix.to_numpy()
        differences = numbers[:, left] - numbers[:, right]
        effect = _effect(differences)
        needed = np.array([_smallest_sample(abs(each), power, alpha) for each in effect])
        spread = differences.std(axis=0, ddof=1) if len(numbers) > 1 else np.full(len(left), np.nan)
        return {"effect": effect, "n_needed": needed, "detectable": _detectable(len(numbers), power, alpha) * spread}

    return _paired(values, measure, pairs, baseline, statistics)


def tier_drops(
    values: pd.DataFrame,
    measure: str,
    tiers: Sequence[str],
    *,
    level: float = 0.95,
    n_resamples: int = 10_000,
    seed: int = 0,
) -> pd.DataFrame:
    """Return how much each system loses from each of *tiers*, collections with the same queries, to the next.

    Columns: system, measure, tier, next_tier, difference (the next minus this, so that a drop is negative), low, high
    (percentile bootstrap over queries), n_queries; the last row of a system is from the first tier to the last.
    MirblabError when a system lacks a tier or a query of it.

    >>> rows = [("easy", "q1", 0.9), ("easy", "q2", 0.7), ("hard", "q1", 0.4), ("hard", "q2", 0.3)]
    >>> values = pd.DataFrame(rows, columns=["collection", "query_id", "value"]).assign(system="s", measure="RR")
    >>> tier_drops(values, "RR", ["easy", "hard"]).difference.round(6).tolist()
    [-0.45]
    """
    if len(set(tiers)) < max(2, len(tiers)):
        raise MirblabError(f"a drop needs two or more different tiers, found {', '.join(tiers) or 'none'}")
    for tier in tiers:
        rows_named(values, "collection", tier)
    kept = values[values.collection.isin(tiers)]
    swapped = kept.assign(system=kept.collection.astype("str"), collection=kept.system.astype("str"))
    steps = dict.fromkeys([*pairwise(tiers), (tiers[0], tiers[-1])])
    pairs = [(after, before) for before, after in steps]
    settings = {"level": level, "n_resamples": n_resamples, "seed": seed}
    drops = difference_intervals(swapped, measure, pairs, **settings)  # type: ignore[arg-type]
    names = {"collection": "system", "system_b": "tier", "system_a": "next_tier"}
    columns = ["system", "measure", "tier", "next_tier", "difference", "low", "high", "n_queries"]
    return drops.rename(columns=names)[columns]


def period_changes(
    values: pd.DataFrame,
    measure: str,
    periods: Sequence[str],
    baseline: str,
    *,
    level: float = 0.95,
    n_resamples: int = 10_000,
    seed: int = 0,
) -> pd.DataFrame:
    """Return how each system's difference to the *baseline* changes from the first of *periods* to the last.

    Periods are collections with different queries. The difference to a system that learnt from none of them takes out
    how hard a period is. Columns: system, measure, first, last (the mean differences), change (last minus first), low,
    high (percentile bootstrap: the queries of each period are drawn by themselves), p (two-sided permutation test of
    Welch's t, which may have different variances: Janssen 1997), p_holm, n_first, n_last. MirblabError when a system
    lacks a period, or a period has one query.

    >>> rows = [("old", "bm25", 0.5), ("old", "m", 0.7), ("new", "bm25", 0.4), ("new", "m", 0.4)]
    >>> values = pd.DataFrame(rows, columns=["collection", "system", "value"]).assign(measure="RR")
    >>> values = pd.concat([values.assign(query_id="q1"), values.assign(query_id="q2")])
    >>> period_changes(values, "RR", ["old", "new"], "bm25").change.round(6).tolist()
    [-0.2]
    """
    from scipy.stats import permutation_test as permute

    check_positive(n_resamples=n_resamples)
    if len(periods) < 2 or periods[0] == periods[-1]:
        raise MirblabError(f"a change needs two different periods, found {', '.join(periods) or 'none'}")
    ends = [value_matrix(values, measure, name) for name in (periods[0], periods[-1])]
    for name, matrix in zip((periods[0], periods[-1]), ends, strict=True):
        if len(matrix) < 2:
            raise MirblabError(f"a change needs two or more queries of each period; {name} has {len(matrix)}")
        check_known(f"system with values on {name}", [baseline, *ends[0].columns, *ends[1].columns], matrix.columns)
    systems = [name for name in ends[0].columns if name != baseline]
    first, last = (matrix[systems].to_numpy() - matrix[[baseline]].to_numpy() for matrix in ends)
    drawn = [resampled_means(numbers, n_resamples, seed + place) for place, numbers in enumerate((first, last))]
    low, high = percentiles(drawn[1] - drawn[0], level)
    p = [
        permute((last[:, i], first[:, i]), _welch, vectorized=True, n_resamples=n_resamples, batch=256,
                rng=np.random.default_rng(seed)).pvalue
        for i in range(len(systems))
    ]  # fmt: skip
    columns = {"first": first.mean(axis=0), "last": last.mean(axis=0)}
    columns |= {"change": columns["last"] - columns["first"], "low": low, "high": high, "p": p, "p_holm": holm(p)}
    sizes = {"n_first": len(first), "n_last": len(last)}
    return pd.DataFrame({"system": systems, "measure": measure, **columns, **sizes})


def _welch(left: np.ndarray, right: np.ndarray, axis: int) -> np.ndarray:
    """Return Welch's t of two samples; 0 where they are constant and equal."""
    difference = left.mean(axis=axis) - right.mean(axis=axis)
    squares = (sample.var(axis=axis, ddof=1) / sample.shape[axis] for sample in (left, right))
    error = np.sqrt(sum(squares))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.nan_to_num(difference / error, nan=0.0, posinf=1e9, neginf=-1e9)


def significance_letters(comparison: pd.DataFrame) -> pd.DataFrame:
    """Return letters for each system by collection: two systems share a letter unless they differ significantly.

    *comparison* is from `significance.compare` over all pairs (no baseline). Columns: collection, system, group, from
    the best mean to the worst; "a" is the group of the best. Compact letter display: Piepho, Journal of Computational
    and Graphical Statistics 2004. MirblabError when a pair is missing.

    >>> pairs = pd.DataFrame({"collection": "c", "system_a": ["x", "x", "y"], "system_b": ["y", "z", "z"],
    ...                       "difference": [0.1, 0.3, 0.2], "significant": [False, True, False]})
    >>> significance_letters(pairs)[["system", "group"]].values.tolist()
    [['x', 'a'], ['y', 'ab'], ['z', 'b']]
    """
    parts = [_lettered(str(name), part) for name, part in comparison.groupby("collection", sort=False, observed=True)]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=["collection", "system", "group"])


def describe_comparison(comparison: pd.DataFrame) -> list[str]:
    """Return a sentence for each pair of systems and measure: which mean is higher, and whether significantly.

    *comparison* is from `compare`. For one collection the sentence has the difference and Holm's p, for several the
    numbers of collections on which the difference is significant. A last sentence says where fewer than 100 queries are
    compared.

    >>> row = {"measure": "RR", "system_a": "x", "system_b": "y", "difference": 0.1, "p_holm": 0.02}
    >>> describe_comparison(pd.DataFrame([row | {"collection": "c", "significant": True}]))
    ["x has a higher RR than y, by 0.100 on average; the difference is significant (p = 0.020 after Holm's
    correction)."]
    """
    pairs = comparison.groupby(["system_a", "system_b", "measure"], sort=False, observed=True)
    return [*(_sentence(rows) for _, rows in pairs), *_few_queries(comparison)]


def _few_queries(comparison: pd.DataFrame) -> list[str]:
    """Return a sentence on the collections of a comparison with too few queries; none where each has enough."""
    if "n_queries" not in comparison or not len(comparison):
        return []
    counts = comparison.groupby("collection", sort=False, observed=True).n_queries.min()
    n_few = int((counts < _ENOUGH).sum())
    if not n_few:
        return []
    if len(counts) == 1:
        return [f"{counted(counts.iloc[0], 'query is', 'queries are')} too few to conclude from."]
    some = f"{n_few} of the {len(counts)} collections {'has' if n_few == 1 else 'have'}"
    which = "Each collection has" if n_few == len(counts) else some
    return [f"{which} fewer than {_ENOUGH} queries, which are too few to conclude from."]


def spearman_interval(
    pair: np.ndarray, groups: np.ndarray | None = None, *, level: float = 0.95, n_resamples: int = 1_000, seed: int = 0
) -> tuple[float, float, float]:
    """Return rho, from -1 to 1, of the two columns of *pair* (n, 2), and the ends of its percentile bootstrap interval.

    Rows are drawn, or whole *groups* of one size where rows are not independent. Resamples in which a column does not
    vary are left out; NaN where it never varies. Efron, Annals of Statistics 1979.
    """
    check_positive(n_resamples=n_resamples)
    ends = _interval_ends(level)
    members = _group_rows(len(pair), groups)
    if not len(pair) or not np.ptp(pair, axis=0).all():
        return (np.nan, np.nan, np.nan)
    drawn = _generator(seed).integers(0, len(members), (n_resamples, len(members)))
    step = max(1, _BLOCK // len(pair))
    blocks = (members[drawn[start : start + step]] for start in range(0, n_resamples, step))
    resampled = [_correlations(pair[rows.reshape(len(rows), -1)]) for rows in blocks]
    low, high = np.nanquantile(np.concatenate(resampled), ends)
    return float(_correlations(pair[None])[0]), float(low), float(high)


def value_matrix(values: pd.DataFrame, measure: str, collection: str = "") -> pd.DataFrame:
    """Return the values of one measure and collection as a matrix, queries (sorted) × systems (as they come).

    *collection* may be empty when the table holds only one. Imported means (query_id "") are left out. MirblabError for
    an unknown measure or collection, and for a value that is missing, repeated or not finite.

    >>> values = pd.DataFrame({"system": ["a", "b"], "query_id": "q", "value": [1.0, 0.5]})
    >>> value_matrix(values.assign(collection="c", measure="RR"), "RR").loc["q"].tolist()
    [1.0, 0.5]
    """
    selected = values_per_query(values[rows_named(values, "measure", measure)])
    if collection:
        selected = selected[rows_named(selected, "collection", collection)]
    names = selected.collection.unique()
    if len(names) != 1:
        shown = ", ".join(map(str, names)) or "none"
        raise MirblabError(f"{measure} needs one collection, found {shown}; name the collection")
    keys = selected[["query_id", "system"]].astype(str)
    if keys.duplicated().any():
        query, system = keys[keys.duplicated()].iloc[0]
        raise MirblabError(f"{system} has two values of {measure} for query {query}; keep one")
    matrix = keys.assign(value=selected.value.astype(float)).pivot(index="query_id", columns="system", values="value")
    _check_finite(matrix, measure)
    return matrix[list(dict.fromkeys(keys.system))].rename_axis(columns=None)


def value_matrices(values: pd.DataFrame, measure: str) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield each collection's name and its matrix queries × systems; none where only means were imported."""
    selected = values_per_query(values[rows_named(values, "measure", measure)])
    for name in selected.collection.unique():
        yield str(name), value_matrix(selected, measure, str(name))


def values_per_query(values: pd.DataFrame) -> pd.DataFrame:
    """Return the values of single queries, without imported means."""
    return values[values.query_id != ""]


def systems_with_means_only(values: pd.DataFrame, measure: str, tested: pd.DataFrame) -> set[str]:
    """Return the systems with imported means of a measure that have no column in the matrix *tested*."""
    means = values[(values.measure == measure) & (values.query_id == "")]
    return set(means.system.astype(str)) - set(tested.columns)


def rows_named(table: pd.DataFrame, column: str, name: str) -> pd.Series:
    """Return which rows have *name* in a column, bool (n_rows,); MirblabError with a suggestion when none has."""
    chosen = table[column] == name
    if not chosen.any():
        raise unknown(column, name, map(str, table[column].unique()))
    return chosen


def paired_t(numbers: np.ndarray, left: list[int], right: list[int]) -> dict[str, np.ndarray]:
    """Return t and two-sided p for each pair of columns (*left*, *right*) of *numbers* (n_queries, n_systems)."""
    from scipy.special import stdtr

    differences, n_queries = numbers[:, left] - numbers[:, right], len(numbers)
    if n_queries < 2:
        return {"t": np.full(len(left), np.nan), "p": np.full(len(left), np.nan)}
    mean, error = differences.mean(axis=0), differences.std(axis=0, ddof=1) / np.sqrt(n_queries)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where(mean == 0, 0.0, mean / error)
    return {"t": t, "p": 2 * stdtr(n_queries - 1, -np.abs(t))}


def count_sign_flips(
    numbers: np.ndarray, left: list[int], right: list[int], n_permutations: int, seed: int
) -> np.ndarray:
    """Return how many sign patterns give each pair an absolute sum at least as large as observed.

    Values become integers of at most 50 - log2(n) bits in float64, so that every sum is exact and p depends neither on
    the order of summation nor on the other pairs. Swapping the systems of a query flips the sign of their difference,
    so the product of the signs with the systems (not with the pairs) is enough. Rounding to integers can change a sum
    of n differences by n; the limit is lower by 2n, so that ties are hits.
    """
    from threadpoolctl import threadpool_limits

    n_queries = len(numbers)
    bits = 50 - int(np.ceil(np.log2(n_queries)))
    _, exponent = np.frexp(np.abs(numbers).max(initial=0.0))
    whole = np.rint(np.ldexp(numbers, bits - int(exponent)))
    total = whole.sum(axis=0)
    limits = np.abs(total[left] - total[right]) - 2 * n_queries
    hits = np.zeros(len(left), dtype=np.int64)
    # One thread: the product is thin, so a second one gains a third at best, and waiting for it on a busy machine
    # made the test five times slower.
    with threadpool_limits(1, "blas"):
        for chosen in _random_signs(n_queries, n_permutations, seed):
            sums = 2 * (chosen @ whole) - total
            for pair, (a, b) in enumerate(zip(left, right, strict=True)):
                hits[pair] += np.count_nonzero(np.abs(sums[:, a] - sums[:, b]) >= limits[pair])
    return hits


def resampled_means(numbers: np.ndarray, n_resamples: int, seed: int, groups: np.ndarray | None = None) -> np.ndarray:
    """Return the means (n_resamples, n_systems) of as many samples of queries, as a product with their counts.

    With *groups*, each query's number from 0, whole groups are drawn; a mean is that of all their queries.
    """
    check_positive(n_resamples=n_resamples)
    sums, sizes = _group_sums(numbers, groups)
    n_groups, generator, blocks = len(sums), _generator(seed), []
    step = max(1, _BLOCK // n_groups)
    for start in range(0, n_resamples, step):
        n_rows = min(step, n_resamples - start)
        drawn = generator.integers(0, n_groups, size=(n_rows, n_groups))
        drawn += np.arange(n_rows)[:, None] * n_groups
        counts = np.bincount(drawn.ravel(), minlength=n_rows * n_groups).reshape(n_rows, n_groups).astype(np.float64)
        blocks.append(counts @ sums / (counts @ sizes)[:, None])
    return np.concatenate(blocks)


def _group_sums(numbers: np.ndarray, groups: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Return the sums of each group's rows, (n_groups, n_systems), and their sizes; None: each row is a group."""
    if groups is None:
        return numbers, np.ones(len(numbers))
    sums = np.zeros((groups.max() + 1, numbers.shape[1]))
    np.add.at(sums, groups, numbers)
    return sums, np.bincount(groups).astype(np.float64)


def _group_numbers(matrix: pd.DataFrame, groups: Groups | None) -> np.ndarray | None:
    """Return the number of each query's group, from 0 as they come; MirblabError for a query without one."""
    if groups is None or matrix is _EMPTY_MATRIX:
        return None
    without = [query for query in matrix.index if query not in groups]
    if without:
        lacking = counted(len(without), "query", "queries")
        raise MirblabError(f"groups lacks {lacking}, such as '{without[0]}'; give each query its group")
    return pd.factorize(matrix.index.map(groups))[0]


def percentiles(means: np.ndarray, level: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the ends of the central interval that holds *level* (0 to 1) of each column."""
    low, high = np.quantile(means, _interval_ends(level), axis=0)
    return low, high


def _interval_ends(level: float) -> list[float]:
    if not 0 < level < 1:
        raise MirblabError(f"level must lie between 0 and 1, found {level}; 0.95 is usual")
    return [(1 - level) / 2, (1 + level) / 2]


def _paired(
    values: pd.DataFrame, measure: str, pairs: Pairs | None, baseline: str | None, statistics: Statistics
) -> pd.DataFrame:
    """Return one row per collection and pair, with the columns that *statistics(matrix, left, right)* computes."""
    tables = []
    for collection, matrix, left, right in _testable_matrices(values, measure, pairs, baseline) or [
        ("", _EMPTY_MATRIX, [], [])
    ]:
        numbers = matrix.to_numpy()
        table = {
            "collection": collection,
            "measure": measure,
            "system_a": matrix.columns[left],
            "system_b": matrix.columns[right],
            "difference": (numbers[:, left] - numbers[:, right]).mean(axis=0),
        }
        tables.append(pd.DataFrame(table | statistics(matrix, left, right) | {"n_queries": len(matrix)}))
    return pd.concat(tables, ignore_index=True)


def _testable_matrices(
    values: pd.DataFrame, measure: str, pairs: Pairs | None, baseline: str | None
) -> list[tuple[str, pd.DataFrame, list[int], list[int]]]:
    testable = []
    for collection, matrix in value_matrices(values, measure):
        absent = systems_with_means_only(values, measure, matrix)
        if baseline not in absent:
            wanted = None if pairs is None else [pair for pair in pairs if not absent & set(pair)]
            testable.append((collection, matrix, *_pairs(matrix, wanted, baseline)))
    return testable


def _pairs(matrix: pd.DataFrame, pairs: Pairs | None, baseline: str | None) -> tuple[list[int], list[int]]:
    systems = list(matrix.columns)
    if pairs is None and baseline is None:
        pairs = list(combinations(systems, 2))
    elif pairs is None:
        pairs = [(system, str(baseline)) for system in systems if system != baseline]
    named = {name for pair in pairs for name in pair} | ({baseline} - {None})
    check_known("system", map(str, named), systems)
    return [systems.index(a) for a, _ in pairs], [systems.index(b) for _, b in pairs]


def _check_finite(matrix: pd.DataFrame, measure: str) -> None:
    bad = ~np.isfinite(matrix.to_numpy())
    if bad.any():
        row, column = np.argwhere(bad)[0]
        raise MirblabError(
            f"{matrix.columns[column]} has no finite value of {measure} for query {matrix.index[row]} "
            f"({counted(bad.sum(), 'such cell')}); every system needs every query, 0 where it returned nothing"
        )


def _generator(seed: int) -> np.random.Generator:
    check_not_negative(seed=seed)
    return np.random.default_rng(seed)


def _random_signs(n_queries: int, n_rows: int, seed: int) -> Iterator[np.ndarray]:
    """Yield blocks of random 0 and 1, float64, (rows of the block, n_queries), the same for each block size."""
    generator, n_words = _generator(seed), -(-n_queries // 64)
    step = max(1, _BLOCK // n_queries)
    for start in range(0, n_rows, step):
        words = generator.integers(0, 2**64, size=(min(step, n_rows - start), n_words), dtype=np.uint64)
        octets = words.astype("<u8", copy=False).view(np.uint8)
        yield np.unpackbits(octets, axis=1, count=n_queries, bitorder="little").astype(np.float64)


def _effect(differences: np.ndarray) -> np.ndarray:
    """Return d_z of each column of *differences* (n_queries, n_pairs); NaN for a single query."""
    if len(differences) < 2:
        return np.full(differences.shape[1], np.nan)
    return _effects(differences.mean(axis=0), (differences**2).mean(axis=0), len(differences))


def _effects(mean: np.ndarray, square: np.ndarray, n: int) -> np.ndarray:
    """Return mean over standard deviation (n - 1), from means of values and of their squares, elementwise."""
    variance = (square - mean**2) * n / max(n - 1, 1)
    spread = np.sqrt(np.where(variance > 1e-12 * square, variance, 0.0))  # the rest is an error of rounding
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(mean == 0, 0.0, mean / spread)


def _power(effect: float, n: int, alpha: float) -> float:
    """Return the probability that a two-sided paired t-test of *n* queries rejects at *alpha*, given the effect."""
    from scipy.special import ncfdtr, stdtrit

    critical = stdtrit(n - 1, 1 - alpha / 2)  # the square of noncentral t is noncentral F
    return float(1 - ncfdtr(1, n - 1, n * effect**2, float(critical) ** 2))


def _smallest_sample(effect: float, power: float, alpha: float) -> float:
    """Return the smallest number of queries, at least 2, with which `_power` reaches *power*; inf or NaN without."""
    if not 0 < effect < np.inf:
        return {0.0: np.inf, np.inf: 2.0}.get(effect, np.nan)
    high = 2
    while _power(effect, high, alpha) < power:
        high *= 2
        if high > 1 << 40:
            return np.inf
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _power(effect, middle, alpha) >= power else (middle, high)
    return float(high)


def _detectable(n: int, power: float, alpha: float) -> float:
    """Return the smallest effect that *n* queries find with *power*; NaN for a single one."""
    from scipy.optimize import brentq

    if n < 2:
        return np.nan
    high = 1.0
    while _power(high, n, alpha) < power:
        high *= 2
    return float(brentq(lambda effect: _power(effect, n, alpha) - power, 0, high))


def _sentence(rows: pd.DataFrame) -> str:
    row = rows.iloc[0]
    a, b, measure = row.system_a, row.system_b, row.measure
    if len(rows) == 1:
        if row.difference == 0:
            return f"{a} and {b} have the same {measure} on average."
        order = "higher" if row.difference > 0 else "lower"
        sign = "" if row.significant else "not "
        column, corrected = decisive_p(rows)
        is_alone = column != "p" and "(1 comparison)" in str(row.get("family"))
        corrected = "" if is_alone else f" {corrected}"
        p = "p < 0.001" if row[column] < 0.001 else f"p = {row[column]:.3f}"
        size = f"{abs(row.difference):.3f}"
        means = (
            f"{a} and {b} differ in {measure} by less than 0.0005 on average"
            if float(size) == 0
            else f"{a} has a {order} {measure} than {b}, by {size} on average"
        )
        return f"{means}; the difference is {sign}significant ({p}{corrected})."
    higher = (rows.significant & (rows.difference > 0)).sum()
    lower = (rows.significant & (rows.difference < 0)).sum()
    return (
        f"{a} has a significantly higher {measure} than {b} on {higher or 'none'} of {len(rows)} collections, "
        f"and a significantly lower one on {lower or 'none'}."
    )


def _lettered(collection: str, pairs: pd.DataFrame) -> pd.DataFrame:
    names = list(dict.fromkeys([*pairs.system_a, *pairs.system_b]))
    if len(pairs) != len(names) * (len(names) - 1) // 2:
        wanted = counted(len(names) * (len(names) - 1) // 2, "pair")
        raise MirblabError(f"{collection}: {len(names)} systems have {wanted}, found {len(pairs)}; compare without a "
                           "baseline")  # fmt: skip
    # Sums of differences order the systems by their means.
    gains = pairs.groupby("system_a").difference.sum().reindex(names, fill_value=0.0)
    gains -= pairs.groupby("system_b").difference.sum().reindex(names, fill_value=0.0)
    lower_first = "measure" in pairs and is_rank(str(pairs.measure.iloc[0]))
    ordered = sorted(names, key=lambda name: gains[name] if lower_first else -gains[name])
    significant = pairs[pairs.significant.astype(bool)]
    different = {frozenset(pair) for pair in zip(significant.system_a, significant.system_b, strict=True)}
    sets = sorted(_maximal_sets(ordered, different), key=lambda group: sorted(ordered.index(name) for name in group))
    shared = ["".join(_letter(number) for number, group in enumerate(sets) if name in group) for name in ordered]
    return pd.DataFrame({"collection": collection, "system": ordered, "group": shared})


def _maximal_sets(names: Sequence[str], different: set[frozenset[str]]) -> list[set[str]]:
    sets = [set(names)]
    for pair in sorted(different, key=sorted):
        for group in [group for group in sets if pair <= group]:
            sets.remove(group)
            for name in pair:
                rest = group - {name}
                if not any(rest <= other for other in sets):
                    sets = [other for other in sets if not other <= rest] + [rest]
    return sets


def _letter(number: int) -> str:
    return ascii_lowercase[number] if number < 26 else f"[{number + 1}]"


def _group_rows(n: int, groups: np.ndarray | None) -> np.ndarray:
    """Return the rows of each group, (n_groups, size); without *groups* every row is a group."""
    if groups is None:
        return np.arange(n)[:, None]
    numbers = np.unique(np.asarray(groups), return_inverse=True)[1]
    sizes = np.bincount(numbers)
    if len(np.unique(sizes)) > 1:
        raise MirblabError(f"groups must be of one size to be drawn as wholes, found {sizes.min()} to {sizes.max()}")
    return np.argsort(numbers, kind="stable").reshape(len(sizes), -1)


def _correlations(samples: np.ndarray) -> np.ndarray:
    """Return the rank correlation of the two columns of each sample, (n_samples, n, 2); NaN where one is constant."""
    from scipy.stats import rankdata

    ranks = rankdata(samples.transpose(2, 0, 1), axis=2)
    centred = ranks - ranks.mean(axis=2, keepdims=True)
    scale = np.sqrt((centred**2).sum(axis=2).prod(axis=0))
    with np.errstate(invalid="ignore", divide="ignore"):
        return (centred[0] * centred[1]).sum(axis=1) / scale
