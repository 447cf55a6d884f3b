"""Paired tests, intervals and corrections agree with scipy and with hand calculation."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from value_tables import value_table

from mirblab.core.errors import MirblabError
from mirblab.evaluation import significance


def random_table(n_queries: int, n_systems: int, seed: int = 0, collection: str = "c") -> pd.DataFrame:
    """Return values between 0 and 1 that share the difficulty of the queries, with ties."""
    generator = np.random.default_rng(seed)
    base = generator.beta(0.7, 0.7, size=(n_queries, 1))
    numbers = np.clip(base + generator.normal(0, 0.2, (n_queries, n_systems)), 0, 1).round(2)
    return value_table({f"s{n}": numbers[:, n].tolist() for n in range(n_systems)}, collection)


def test_wide_sorts_queries_and_keeps_the_order_of_systems() -> None:
    """Rows in any order give the same matrix; categorical ids become strings."""
    values = value_table({"b": [0.1, 0.2], "a": [0.3, 0.4]})
    shuffled = values.iloc[[1, 0, 3, 2]].astype({"query_id": "category", "system": "category"})
    matrix = significance.value_matrix(shuffled, "nDCG@10")
    assert matrix.columns.tolist() == ["b", "a"]
    assert matrix.index.tolist() == ["q00", "q01"]
    assert matrix.to_numpy().tolist() == [[0.1, 0.3], [0.2, 0.4]]


def test_wide_names_the_system_that_lacks_a_query() -> None:
    """Missing, repeated and infinite values are errors that name system and query."""
    values = value_table({"a": [0.1, 0.2], "b": [0.3, 0.4]})
    with pytest.raises(MirblabError, match="b has no finite value of nDCG@10 for query q01"):
        significance.value_matrix(values.iloc[:3], "nDCG@10")
    with pytest.raises(MirblabError, match="a has two values of nDCG@10 for query q00"):
        significance.value_matrix(pd.concat([values, values.iloc[:1]]), "nDCG@10")
    with pytest.raises(MirblabError, match="no measure 'nDCG@5'; did you mean 'nDCG@10'"):
        significance.value_matrix(values, "nDCG@5")
    both = pd.concat([values, values.assign(collection="d")])
    with pytest.raises(MirblabError, match="needs one collection, found c, d"):
        significance.value_matrix(both, "nDCG@10")
    assert significance.value_matrix(both, "nDCG@10", "d").shape == (2, 2)


def test_t_test_agrees_with_scipy_on_all_pairs() -> None:
    """t and p of every pair equal scipy's ttest_rel to 1e-12."""
    values = random_table(60, 5)
    matrix = significance.value_matrix(values, "nDCG@10")
    tested = significance.t_test(values, "nDCG@10")
    assert len(tested) == 10
    for row in tested.itertuples():
        expected = stats.ttest_rel(matrix[row.system_a], matrix[row.system_b])
        assert row.t == pytest.approx(expected.statistic, abs=1e-12, rel=1e-12)
        assert row.p == pytest.approx(expected.pvalue, abs=1e-12)


def test_t_test_at_its_edges() -> None:
    """Identical systems give 1, a constant difference almost 0, one query nothing."""
    values = value_table({"a": [0.5, 0.25, 0.75], "b": [0.5, 0.25, 0.75], "c": [0.25, 0.0, 0.5]})
    tested = significance.t_test(values, "nDCG@10", [("a", "b"), ("a", "c")])
    assert tested.p.tolist() == [1.0, 0.0]
    assert tested.t.tolist() == [0.0, np.inf]
    assert significance.t_test(values[values.query_id == "q00"], "nDCG@10").p.isna().all()


def test_permutation_agrees_with_scipy_within_monte_carlo_error() -> None:
    """scipy doubles the smaller tail, so its standard error is about twice ours; five joint ones are allowed."""
    values = random_table(40, 2, seed=3)
    matrix = significance.value_matrix(values, "nDCG@10")
    ours = significance.permutation_test(values, "nDCG@10", n_permutations=50_000).p[0]
    oracle = stats.permutation_test(
        (matrix.s0, matrix.s1), lambda a, b, axis: (a - b).mean(axis=axis), permutation_type="samples",
        vectorized=True, n_resamples=20_000, rng=np.random.default_rng(1),
    )  # fmt: skip
    error = np.sqrt(ours * (1 - ours) * (1 / 50_000 + 4 / 20_000))
    assert abs(ours - oracle.pvalue) < 5 * error


def test_permutation_agrees_with_counting_all_sign_patterns() -> None:
    """With ten queries all 1,024 patterns can be counted; ties that only float rounding separates are hits."""
    values = value_table({"a": [0.3, 0.1, 0.6, 0.7, 0.2, 0.9, 0.4, 0.3, 0.8, 0.1], "b": [0.1, 0.2, 0.3, 0.6, 0.3] * 2})
    differences = np.rint(10 * np.diff(significance.value_matrix(values, "nDCG@10").to_numpy())[:, 0]).astype(int)
    signs = 1 - 2 * ((np.arange(1024)[:, None] >> np.arange(10)) & 1)
    exact = (np.abs(signs @ differences) >= abs(differences.sum())).mean()
    p = significance.permutation_test(values, "nDCG@10").p[0]
    assert p == pytest.approx(exact, abs=5 * np.sqrt(exact * (1 - exact) / 100_000))


def test_ties_up_to_rounding_are_hits() -> None:
    """0.1 + 0.2 and 0.3 differ in the last bit; every pattern is as extreme as the observed one or not, never lost."""
    values = value_table({"a": [0.1 + 0.2, 0.3], "b": [0.0, 0.0]})
    assert significance.permutation_test(values, "nDCG@10", n_permutations=20_000).p[0] == pytest.approx(0.5, abs=0.02)


def test_p_is_never_zero_and_one_for_identical_systems() -> None:
    """The smallest p is 1 / (1 + permutations); equal systems and a single query give exactly 1."""
    values = value_table({"a": [1.0] * 60, "b": [0.0] * 60, "same": [1.0] * 60})
    p = significance.permutation_test(values, "nDCG@10", n_permutations=999).set_index(["system_a", "system_b"]).p
    assert p["a", "b"] == 1 / 1000
    assert p["a", "same"] == 1.0
    one = values[values.query_id == "q00"]
    assert significance.permutation_test(one, "nDCG@10", n_permutations=99).p.eq(1.0).all()


def test_the_same_seed_gives_the_same_p_whatever_else_is_asked() -> None:
    """Order of systems, order of queries and the number of pairs change nothing; another seed does."""
    values = random_table(80, 6, seed=5)
    everything = significance.permutation_test(values, "nDCG@10", n_permutations=5000, seed=7)
    p = everything.set_index(["system_a", "system_b"]).p
    turned = significance.permutation_test(values.iloc[::-1], "nDCG@10", n_permutations=5000, seed=7)
    assert all(p[row.system_b, row.system_a] == row.p for row in turned.itertuples())
    alone = significance.permutation_test(values, "nDCG@10", [("s2", "s4")], n_permutations=5000, seed=7)
    assert alone.p[0] == p["s2", "s4"]
    assert (significance.permutation_test(values, "nDCG@10", n_permutations=5000, seed=8).p != everything.p).any()


def test_the_block_size_changes_no_coin(monkeypatch: pytest.MonkeyPatch) -> None:
    """Coins come from one stream, so that memory and results are independent."""
    values = random_table(70, 3)
    before = significance.permutation_test(values, "nDCG@10", n_permutations=3000).p
    monkeypatch.setattr(significance, "_BLOCK", 1000)
    assert significance.permutation_test(values, "nDCG@10", n_permutations=3000).p.equals(before)


def test_p_is_uniform_under_the_null() -> None:
    """200 pairs of systems without a difference: a Kolmogorov-Smirnov test finds nothing, 5 % lie under 0.05."""
    generator = np.random.default_rng(11)
    parts = [
        value_table({"a": generator.random(40).tolist(), "b": generator.random(40).tolist()}, collection=f"c{n}")
        for n in range(200)
    ]
    p = significance.permutation_test(pd.concat(parts), "nDCG@10", n_permutations=499).p
    assert stats.kstest(p, "uniform").pvalue > 0.01
    assert 0.02 < (p <= 0.05).mean() < 0.09


def test_pairs_against_a_baseline() -> None:
    """The baseline is always system_b, so a positive difference is a gain; unknown systems are named."""
    values = value_table({"base": [0.0, 0.5], "new": [1.0, 0.5]})
    tested = significance.t_test(values, "nDCG@10", baseline="base")
    assert tested[["system_a", "system_b", "difference"]].values.tolist() == [["new", "base", 0.5]]
    with pytest.raises(MirblabError, match="no system 'bse'; did you mean 'base'. Known: base, new"):
        significance.t_test(values, "nDCG@10", baseline="bse")


def test_bootstrap_agrees_with_scipy() -> None:
    """The percentile interval of a mean equals scipy's within Monte Carlo error."""
    values = random_table(100, 2, seed=2)
    row = significance.bootstrap_intervals(values, "nDCG@10", n_resamples=20_000).iloc[0]
    sample = significance.value_matrix(values, "nDCG@10").s0.to_numpy()
    oracle = stats.bootstrap((sample,), np.mean, method="percentile", n_resamples=20_000, rng=np.random.default_rng(4))
    assert row["mean"] == pytest.approx(sample.mean(), abs=1e-12)
    assert row[["low", "high"]].tolist() == pytest.approx(list(oracle.confidence_interval), abs=0.003)


@pytest.mark.parametrize("level", [0.8, 0.95])
def test_intervals_of_differences_agree_with_scipy(level: float) -> None:
    """Of all pairs, within Monte Carlo error; the difference is that of the means."""
    values = random_table(50, 3, seed=6)
    matrix = significance.value_matrix(values, "nDCG@10")
    found = significance.difference_intervals(values, "nDCG@10", level=level, n_resamples=20_000)
    assert len(found) == 3
    for row in found.itertuples():
        sample = (matrix[row.system_a] - matrix[row.system_b]).to_numpy()
        assert row.difference == pytest.approx(sample.mean(), abs=1e-12)
        assert [row.low, row.high] == pytest.approx(scipy_interval(sample, level), abs=0.004)


def scipy_interval(sample: np.ndarray, level: float = 0.95) -> list[float]:
    """Return scipy's percentile bootstrap interval of a mean."""
    settings = {"method": "percentile", "n_resamples": 20_000, "confidence_level": level}
    return list(stats.bootstrap((sample,), np.mean, rng=np.random.default_rng(4), **settings).confidence_interval)


def test_bootstrap_is_paired() -> None:
    """Two systems that differ by a constant have a difference without width, wide as their own intervals are."""
    values = value_table({"a": [0.0, 0.25, 0.75, 0.5], "b": [0.25, 0.5, 1.0, 0.75]})
    difference = significance.difference_intervals(values, "nDCG@10", n_resamples=500).iloc[0]
    assert difference[["difference", "low", "high"]].tolist() == pytest.approx([-0.25] * 3, abs=1e-12)
    own = significance.bootstrap_intervals(values, n_resamples=500)
    assert (own.high - own.low > 0.2).all()
    assert own.columns.tolist() == ["collection", "measure", "system", "mean", "low", "high", "n_queries"]


def test_bootstrap_repeats_and_checks_its_arguments() -> None:
    """The same seed gives the same intervals; impossible levels and numbers are refused."""
    values = random_table(30, 3)
    once, twice = (significance.bootstrap_intervals(values, n_resamples=200, seed=3) for _ in range(2))
    pd.testing.assert_frame_equal(once, twice)
    with pytest.raises(MirblabError, match="level must lie between 0 and 1"):
        significance.bootstrap_intervals(values, level=95)
    with pytest.raises(MirblabError, match="n_resamples must be at least 1"):
        significance.bootstrap_intervals(values, n_resamples=0)
    for tested in (significance.bootstrap_intervals, significance.compare):
        with pytest.raises(MirblabError, match="seed must be at least 0, found -1"):
            tested(values, "nDCG@10", seed=-1)
    with pytest.raises(MirblabError, match="n_permutations must be at least 1"):
        significance.permutation_test(values, "nDCG@10", n_permutations=0)
    with pytest.raises(MirblabError, match="empty"):
        significance.bootstrap_intervals(values.iloc[:0])


def test_groups_are_drawn_whole() -> None:
    """By hand: of groups {1, 0} and {1}, both draws are {1, 0}, {1} or one of each: a mean of 1/2, 1 or 2/3."""
    values = value_table({"a": [1.0, 0.0, 1.0]})
    groups = {"q00": "x", "q01": "x", "q02": "y"}
    matrix = significance.value_matrix(values, "nDCG@10").to_numpy()
    drawn = significance.resampled_means(matrix, 4000, 0, np.array([0, 0, 1]))
    means, counts = np.unique(drawn.round(12), return_counts=True)
    assert means.tolist() == pytest.approx([1 / 2, 2 / 3, 1])
    assert counts / 4000 == pytest.approx([1 / 4, 1 / 2, 1 / 4], abs=0.03)
    row = significance.bootstrap_intervals(values, groups=groups).iloc[0]
    assert row[["mean", "low", "high"]].tolist() == pytest.approx([2 / 3, 1 / 2, 1])
    with pytest.raises(MirblabError, match="groups lacks 1 query, such as 'q02'; give each query its group"):
        significance.bootstrap_intervals(values, groups={"q00": "x", "q01": "x"})


def test_intervals_over_groups_agree_with_scipy() -> None:
    """scipy draws pairs of a group's sum and size, and divides their sums."""
    values = random_table(90, 2, seed=8)
    matrix = significance.value_matrix(values, "nDCG@10")
    groups = {query: str(n % 30 // (1 + n % 2)) for n, query in enumerate(matrix.index)}  # of three or six queries
    by_group = matrix.assign(size=1.0).groupby(groups).sum()
    oracle = stats.bootstrap(
        (by_group.s0 - by_group.s1, by_group["size"]), lambda a, b, axis: a.sum(axis=axis) / b.sum(axis=axis),
        paired=True, vectorized=True, method="percentile", n_resamples=20_000, rng=np.random.default_rng(4),
    )  # fmt: skip
    ours = significance.compare(values, "nDCG@10", groups=groups, n_resamples=20_000, n_permutations=99).iloc[0]
    assert ours.difference == pytest.approx((matrix.s0 - matrix.s1).mean(), abs=1e-12)
    assert [ours.low, ours.high] == pytest.approx(list(oracle.confidence_interval), abs=0.003)


def test_a_permutation_swaps_whole_groups() -> None:
    """Three groups have eight sign patterns, of which two are as extreme as the observed one; the queries have 64."""
    values = value_table({"a": [0.4, 0.2, 0.3, 0.1, 0.5, 0.2], "b": [0.0] * 6})
    groups = {f"q{n:02}": f"g{n // 2}" for n in range(6)}
    p = [significance.permutation_test(values, "nDCG@10", groups=each).p[0] for each in (groups, None)]
    assert p == pytest.approx([2 / 8, 2 / 64], abs=0.008)
    with pytest.raises(MirblabError, match="the t-test takes queries as independent; with groups use test='permut"):
        significance.compare(values, "nDCG@10", test="t", groups=groups)


def test_copies_of_a_query_add_nothing_as_a_group() -> None:
    """And groups of one query each change no value."""
    values = random_table(20, 3, seed=9)
    copies = pd.concat([values.assign(query_id=values.query_id + f"-{n}") for n in range(4)])
    settings = {"n_permutations": 2000, "n_resamples": 500}
    alone = significance.compare(values, "nDCG@10", **settings)
    by_query = {query: query[:3] for query in copies.query_id}
    grouped = significance.compare(copies, "nDCG@10", groups=by_query, **settings)
    columns = ["difference", "p", "low", "high"]
    np.testing.assert_allclose(grouped[columns], alone[columns], atol=1e-12)
    one_each = significance.compare(values, "nDCG@10", groups={q: q for q in values.query_id}, **settings)
    pd.testing.assert_frame_equal(one_each, alone)


def test_holm_by_hand() -> None:
    """0.01 × 4, 0.02 × 3, 0.03 × 2 (raised to the one before), 0.5 × 1; order kept, NaN left out, at most 1."""
    assert significance.holm([0.5, 0.01, 0.03, 0.02]).tolist() == pytest.approx([0.5, 0.04, 0.06, 0.06])
    assert significance.holm(pd.Series([0.9, 0.8])).tolist() == [1.0, 1.0]
    assert significance.holm([]).tolist() == []
    adjusted = significance.holm([np.nan, 0.02, 0.04])
    assert np.isnan(adjusted[0])
    assert adjusted[1:].tolist() == pytest.approx([0.04, 0.04])


def test_holm_agrees_with_its_definition() -> None:
    """Each hypothesis has the largest p · (how many are as large or larger) among those with no larger p, at most 1."""
    p = (np.random.default_rng(8).random(60) ** 3).round(3)
    assert len(set(p)) < len(p)  # some are equal
    raised = {one: min(1.0, one * sum(other >= one for other in p)) for one in p}
    expected = [max(raised[other] for other in p if other <= one) for one in p]
    assert significance.holm(p).tolist() == pytest.approx(expected, abs=1e-12)
    assert len(set(expected)) > 10 and max(expected) == 1


def test_benjamini_hochberg_by_hand() -> None:
    """Best of five first: .001 × 5, .008 × 5/2, then .039, .041, .042 × 5/3, 5/4, 5/5, lowered to the next: .042."""
    adjusted = significance.benjamini_hochberg([0.042, 0.001, 0.041, 0.008, 0.039])
    assert adjusted.tolist() == pytest.approx([0.042, 0.005, 0.042, 0.02, 0.042])
    assert significance.holm([0.042, 0.001, 0.041, 0.008, 0.039]).max() > 0.05  # it is stricter
    assert significance.benjamini_hochberg([]).tolist() == []
    adjusted = significance.benjamini_hochberg(pd.Series([np.nan, 0.02, 0.9]))
    assert np.isnan(adjusted[0])
    assert adjusted[1:].tolist() == pytest.approx([0.04, 0.9])


def test_bonferroni_by_hand() -> None:
    """Times the number of tests, at most 1; NaN is none."""
    assert significance.bonferroni([0.5, 0.01, np.nan, 0.03]).tolist()[:2] == [1.0, 0.03]
    assert np.isnan(significance.bonferroni([0.5, 0.01, np.nan])[2]) and len(significance.bonferroni([])) == 0


def test_effect_sizes_agree_with_scipy() -> None:
    """d_z is t over the root of n; its interval is scipy's percentile bootstrap, up to the noise of resampling."""
    values = random_table(40, 3, seed=4)
    matrix = significance.value_matrix(values, "nDCG@10").to_numpy()
    found = significance.effect_sizes(values, "nDCG@10", n_resamples=20_000, seed=1)
    assert found[["difference", "n_queries"]].equals(
        significance.t_test(values, "nDCG@10")[["difference", "n_queries"]]
    )
    for row, (a, b) in zip(found.itertuples(), ((0, 1), (0, 2), (1, 2)), strict=True):
        differences = matrix[:, a] - matrix[:, b]
        assert row.effect == pytest.approx(stats.ttest_rel(matrix[:, a], matrix[:, b]).statistic / np.sqrt(40))

        def effect(drawn: np.ndarray, axis: int) -> np.ndarray:
            return drawn.mean(axis) / drawn.std(axis, ddof=1)

        theirs = stats.bootstrap((differences,), effect, method="percentile", n_resamples=20_000, rng=0)
        ends = theirs.confidence_interval
        assert [row.low, row.high] == pytest.approx([ends.low, ends.high], abs=0.02)


def test_effect_sizes_without_spread() -> None:
    """Equal systems have 0, a constant difference ±inf, one query NaN; few queries give no NaN and no warning."""
    same = value_table({"a": [0.5, 0.75, 0.25], "b": [0.5, 0.75, 0.25], "c": [0.25, 0.5, 0.0], "d": [0.5, 0.0, 0.0]})
    found = significance.effect_sizes(same, "nDCG@10", baseline="a", n_resamples=500)
    assert found[["effect", "low", "high"]].to_numpy()[:2].tolist() == [[0, 0, 0], [-np.inf] * 3]
    assert np.isfinite(found[["effect", "low", "high"]].to_numpy()[2]).all()
    one = significance.effect_sizes(same[same.query_id == "q00"], "nDCG@10", baseline="a", n_resamples=500)
    assert one.effect.isna().all()
    power = significance.queries_needed(same, "nDCG@10", baseline="a")
    assert power.n_needed.tolist()[:2] == [np.inf, 2]


# The numbers of pairs that statsmodels 0.15's TTestPower.solve_power gives, rounded up: (effect, power, alpha).
POWER = {(0.2, 0.8, 0.05): 199, (0.5, 0.8, 0.05): 34, (0.8, 0.8, 0.05): 15, (0.1, 0.9, 0.01): 1492, (2.0, 0.8, 0.05): 5,
         (0.02, 0.8, 0.05): 19625}  # fmt: skip


@pytest.mark.parametrize(("effect", "power", "alpha"), POWER)
def test_the_number_of_queries_that_a_next_study_needs(effect: float, power: float, alpha: float) -> None:
    """As statsmodels has it, and with so many random queries the t-test rejects about as often."""
    spread = np.random.default_rng(0).normal(size=50)
    differences = effect + (spread - spread.mean()) / spread.std(ddof=1)
    values = value_table({"a": differences.tolist(), "b": [0.0] * 50})
    found = significance.queries_needed(values, "nDCG@10", power=power, alpha=alpha).iloc[0]
    assert found.effect == pytest.approx(effect) and found.n_needed == POWER[effect, power, alpha]
    if found.n_needed < 2000:
        drawn = np.random.default_rng(1).normal(effect, 1, (4000, int(found.n_needed)))
        found_by = [(stats.ttest_1samp(part, 0, axis=1).pvalue <= alpha).mean() for part in (drawn, drawn[:, 1:])]
        assert found_by[0] > power - 0.02 and found_by[1] < power + 0.02
    again = effect * 10 + (spread - spread.mean()) / spread.std(ddof=1)
    other = significance.queries_needed(value_table({"a": again.tolist(), "b": [0.0] * 50}), "nDCG@10").detectable[0]
    assert other == pytest.approx(0.404183, abs=1e-5)  # statsmodels: the effect that 50 pairs find


def test_power_refuses_what_is_no_share() -> None:
    """Power in percent is a usual slip."""
    with pytest.raises(MirblabError, match="power must lie between 0 and 1, found 80"):
        significance.queries_needed(random_table(10, 2), "nDCG@10", power=80)
    with pytest.raises(MirblabError, match="power must be larger than alpha, found 0.05 and 0.8"):
        significance.queries_needed(random_table(10, 2), "nDCG@10", power=0.05, alpha=0.8)


def test_drops_from_tier_to_tier_are_paired_by_query() -> None:
    """Each step and the whole way; the interval is that of the paired difference between the two collections."""
    tiers = [random_table(30, 2, seed=n, collection=name) for n, name in enumerate(("easy", "medium", "hard"))]
    values = pd.concat(tiers)
    found = significance.tier_drops(values, "nDCG@10", ["easy", "medium", "hard"], n_resamples=500)
    assert found.groupby("system", sort=False)[["tier", "next_tier"]].apply(lambda t: t.values.tolist()).iloc[0] == [
        ["easy", "medium"], ["medium", "hard"], ["easy", "hard"]]  # fmt: skip
    means = values.groupby(["system", "collection"]).value.mean()
    for row in found.itertuples():
        assert row.difference == pytest.approx(means[row.system, row.next_tier] - means[row.system, row.tier])
        assert row.low <= row.difference <= row.high and row.n_queries == 30
    assert len(significance.tier_drops(values, "nDCG@10", ["easy", "hard"], n_resamples=9)) == 2
    found = significance.tier_drops(values, "nDCG@10", ["easy", "hard"], n_resamples=20_000)
    matrices = {name: significance.value_matrix(values, "nDCG@10", name) for name in ("easy", "hard")}
    for row in found.itertuples():
        changes = (matrices["hard"][row.system] - matrices["easy"][row.system]).to_numpy()
        assert [row.low, row.high] == pytest.approx(scipy_interval(changes), abs=0.008)
    with pytest.raises(MirblabError, match="no collection 'heavy'"):
        significance.tier_drops(values, "nDCG@10", ["easy", "heavy"])
    with pytest.raises(MirblabError, match="two or more different tiers, found easy"):
        significance.tier_drops(values, "nDCG@10", ["easy"])
    with pytest.raises(MirblabError, match="no finite value"):
        significance.tier_drops(values.iloc[1:], "nDCG@10", ["easy", "hard"])


def test_the_change_between_periods_is_that_of_two_samples() -> None:
    """Of different queries: p agrees with Welch's test, and the interval with its own, on near-normal values."""
    draw = np.random.default_rng(5)
    samples = {"old": draw.normal(0.3, 0.1, 400), "new": draw.normal(0.27, 0.15, 300)}
    tables = []
    for name, gain in samples.items():
        base = draw.uniform(0, 0.5, len(gain))  # how hard a query is cancels out
        rows = {"bm25": base, "model": base + gain, "same": base}
        tables += [
            pd.DataFrame({"system": system, "collection": name, "measure": "RR", "value": numbers,
                          "query_id": [f"{name}{n}" for n in range(len(gain))]})
            for system, numbers in rows.items()
        ]  # fmt: skip
    values = pd.concat(tables)
    found = significance.period_changes(values, "RR", ["old", "new"], "bm25").set_index("system")
    welch = stats.ttest_ind(samples["new"], samples["old"], equal_var=False)
    low, high = welch.confidence_interval()
    assert found.loc["model", ["low", "high"]].tolist() == pytest.approx([low, high], abs=0.002)
    assert found.p["model"] == pytest.approx(welch.pvalue, abs=0.005) and found.p_holm["model"] == 2 * found.p["model"]
    assert found.loc["model", "first":"change"].tolist() == pytest.approx(  # type: ignore[misc]
        [samples["old"].mean(), samples["new"].mean(), samples["new"].mean() - samples["old"].mean()]
    )
    assert found.loc["same", ["change", "low", "high", "p"]].tolist() == [0, 0, 0, 1]
    assert found[["n_first", "n_last"]].drop_duplicates().values.tolist() == [[400, 300]]
    again = significance.period_changes(values, "RR", ["old", "new"], "bm25").set_index("system")
    pd.testing.assert_frame_equal(found, again)


def test_a_change_between_periods_needs_both() -> None:
    """With the systems and queries that it compares."""
    values = pd.concat([random_table(9, 2, seed=n, collection=name) for n, name in enumerate(("old", "new"))])
    one, *others = values.system.unique()
    is_old, is_first = values.collection == "old", values.query_id == values.query_id.iloc[0]
    for periods, table, message in (
        (["old"], values, "a change needs two different periods, found old"),
        (["old", "newer"], values, "no collection 'newer'"),
        (["old", "new"], values[is_old | (values.system == one)], f"'{others[0]}'"),
        (["old", "new"], values[is_old | is_first], "new has 1"),
    ):
        with pytest.raises(MirblabError, match=message):
            significance.period_changes(table, "nDCG@10", periods, one)


def test_compare_with_each_correction() -> None:
    """The corrected p decides, within its family; None and "none" leave p itself; Holm's is the default."""
    values = pd.concat([random_table(30, 4, seed=1, collection="c"), random_table(20, 4, seed=2, collection="d")])
    settings = {"n_permutations": 2000, "n_resamples": 100}
    by_name = {name: significance.compare(values, "nDCG@10", correction=name, **settings)
               for name in ("holm", "bh", "bonferroni", "none", None)}  # fmt: skip
    pd.testing.assert_frame_equal(by_name["holm"], significance.compare(values, "nDCG@10", **settings))
    bh = by_name["bh"]
    for name, rows in by_name["bonferroni"].groupby("collection"):
        np.testing.assert_allclose(rows.p_bonferroni, np.minimum(1, 6 * rows.p), err_msg=str(name))
    assert (by_name["bonferroni"].p_bonferroni >= by_name["holm"].p_holm).all()
    assert "p_holm" not in bh and bh.significant.equals(bh.p_bh <= 0.05)
    for name, rows in bh.groupby("collection"):
        np.testing.assert_allclose(rows.p_bh, stats.false_discovery_control(rows.p), err_msg=str(name))
    pd.testing.assert_frame_equal(by_name["none"], by_name[None])
    assert not {"p_holm", "p_bh"} & set(by_name["none"].columns)
    assert by_name["none"].significant.equals(by_name["none"].p <= 0.05)
    n_significant = [by_name[name].significant.sum() for name in ("holm", "bh", "none")]
    assert n_significant == sorted(n_significant) and n_significant[0] < n_significant[2]
    with pytest.raises(
        MirblabError, match="no correction 'holms'; did you mean 'holm'. Known: bh, bonferroni, holm, none"
    ):
        significance.compare(values, "nDCG@10", correction="holms")


def test_compare_corrects_within_its_family() -> None:
    """With two collections the family is each one's pairs, or all of them."""
    values = pd.concat([random_table(30, 3, seed=1, collection="c"), random_table(20, 3, seed=2, collection="d")])
    each = significance.compare(values, "nDCG@10", n_permutations=2000, n_resamples=500)
    whole = significance.compare(values, "nDCG@10", n_permutations=2000, n_resamples=500, family="all")
    assert each.family.unique().tolist() == ["c (3 comparisons)", "d (3 comparisons)"]
    assert whole.family.unique().tolist() == ["all collections (6 comparisons)"]
    assert each.n_queries.tolist() == [30] * 3 + [20] * 3
    np.testing.assert_allclose(each.p_holm[:3], significance.holm(each.p[:3]))
    np.testing.assert_allclose(whole.p_holm, significance.holm(whole.p))
    assert (each.significant == (each.p_holm <= 0.05)).all()
    assert ((each.low <= each.difference) & (each.difference <= each.high)).all()
    assert each.attrs["n_permutations"] == 2000


def test_compare_with_the_t_test_and_with_one_system() -> None:
    """The t-test can take the place of the permutation test; one system alone has nothing to be compared with."""
    values = random_table(30, 3)
    by_t = significance.compare(values, "nDCG@10", baseline="s0", test="t", n_resamples=100)
    assert by_t.p.tolist() == significance.t_test(values, "nDCG@10", baseline="s0").p.tolist()
    assert "t" not in by_t
    alone = values[values.system == "s0"]
    assert significance.compare(alone, "nDCG@10", baseline="s0", n_resamples=10).empty
    with pytest.raises(MirblabError, match="two or more systems; nDCG@10 has those of s0"):
        significance.compare(alone, "nDCG@10", n_resamples=10)
    with pytest.raises(MirblabError, match="no test 'wilcoxon'; found permutation, t"):
        significance.compare(values, "nDCG@10", test="wilcoxon")
    with pytest.raises(MirblabError, match="no family 'al'"):
        significance.compare(values, "nDCG@10", family="al")


def test_imported_means_are_left_out_and_nothing_fails() -> None:
    """A mean without queries is in no test: alone, beside others, as the baseline, and where nothing else is there."""
    own = [(s, c, "RR", f"q{n}", v + n / 10) for s, v in (("a", 0.1), ("b", 0.5)) for c in ("c1", "c2")
           for n in range(4)]  # fmt: skip
    columns = ["system", "collection", "measure", "query_id", "value"]
    ours = pd.DataFrame(own, columns=columns)
    theirs = pd.DataFrame([("x", "c1", "RR", "", 0.9), ("a", "c3", "RR", "", 0.35)], columns=columns)
    both = pd.concat([ours, theirs.assign(origin="MTEB")], ignore_index=True)
    options = {"n_permutations": 99, "n_resamples": 9}
    for test in ("permutation", "t"):
        found, wanted = (significance.compare(part, "RR", test=test, **options) for part in (both, ours))
        pd.testing.assert_frame_equal(found, wanted)
    assert significance.compare(both, "RR", baseline="x", **options).empty
    nothing = significance.compare(theirs, "RR", baseline="x", **options)
    assert nothing.empty and "p_holm" in nothing and "significant" in nothing
    assert significance.t_test(both, "RR", [("a", "x"), ("a", "b")]).collection.tolist() == ["c1", "c2"]
    intervals = significance.bootstrap_intervals(both, "RR", n_resamples=9)
    assert intervals.system.tolist() == ["a", "b", "a", "b"]
    with pytest.raises(MirblabError, match="empty of values per query"):
        significance.bootstrap_intervals(theirs, "RR")


def test_a_comparison_is_described_in_sentences_that_agree_with_it() -> None:
    """One collection: the difference and p; several: how often it is significant; equal means are called equal.

    A last sentence says where there are fewer than 100 queries.
    """
    few = "8 queries are too few to conclude from."
    far = {"x": [0.9, 0.8, 0.7, 0.9, 0.8, 0.9, 0.7, 0.8], "y": [0.1, 0.2, 0.1, 0.0, 0.2, 0.1, 0.3, 0.2]}
    one = significance.compare(value_table(far), "nDCG@10", baseline="x")
    assert significance.describe_comparison(one) == [
        f"y has a lower nDCG@10 than x, by 0.663 on average; the difference is significant (p = {one.p_holm[0]:.3f}).",
        few,
    ]
    near = {"x": far["x"], "y": [0.7, *far["x"][1:]]}
    unclear = significance.compare(value_table(near), "nDCG@10", baseline="x")
    assert significance.describe_comparison(unclear) == [
        "y has a lower nDCG@10 than x, by 0.025 on average; the difference is not significant (p = 1.000).",
        few,
    ]
    same = significance.compare(value_table({"x": far["x"], "y": far["x"]}), "nDCG@10", baseline="x")
    assert significance.describe_comparison(same) == ["y and x have the same nDCG@10 on average.", few]
    tiny = significance.describe_comparison(unclear.assign(difference=-0.0004))
    assert tiny == [
        "y and x differ in nDCG@10 by less than 0.0005 on average; the difference is not significant (p = 1.000).",
        few,
    ]
    several = pd.concat([one, unclear.assign(collection="d"), same.assign(collection="e")])
    assert significance.describe_comparison(several) == [
        "y has a significantly higher nDCG@10 than x on none of 3 collections, and a significantly lower one on 1.",
        "Each collection has fewer than 100 queries, which are too few to conclude from.",
    ]
    mixed = several.assign(n_queries=[99, 100, 101])
    assert significance.describe_comparison(mixed)[1:] == [
        "1 of the 3 collections has fewer than 100 queries, which are too few to conclude from."
    ]
    assert len(significance.describe_comparison(one.assign(n_queries=100))) == 1
    assert significance.describe_comparison(one[:0]) == []
    plain = significance.compare(value_table(far), "nDCG@10", baseline="x", correction=None)
    assert significance.describe_comparison(plain)[0].endswith(f"(p = {plain.p[0]:.3f} without correction).")


@pytest.mark.parametrize("size", [1, 2])
def test_the_interval_of_a_rank_correlation_agrees_with_scipy(size: int) -> None:
    """Where rows are drawn one by one, and where pairs of them are drawn as wholes."""
    rng = np.random.default_rng(2)
    x = np.repeat(rng.random(40), size)
    pair = np.column_stack([x, (x + np.repeat(rng.normal(0, 0.3, 40), size) + rng.normal(0, 0.1, len(x))).round(1)])

    def rho(drawn: np.ndarray) -> float:
        rows = (drawn[:, None] * size + np.arange(size)).ravel()
        return float(stats.spearmanr(pair[rows, 0], pair[rows, 1]).statistic)

    theirs = stats.bootstrap((np.arange(40),), rho, vectorized=False, method="percentile", n_resamples=3_000, rng=0)
    groups = None if size == 1 else np.repeat(np.arange(40), size)
    found = significance.spearman_interval(pair, groups, n_resamples=20_000)
    assert found[0] == pytest.approx(stats.spearmanr(pair).statistic, abs=1e-12)
    assert found[1:] == pytest.approx(tuple(theirs.confidence_interval), abs=0.02)


def test_a_rank_correlation_without_resamples_or_with_a_wrong_level_is_refused() -> None:
    """As the other intervals, in words of its own and not numpy's."""
    pair = np.random.default_rng(0).random((9, 2))
    with pytest.raises(MirblabError, match="n_resamples must be at least 1, found 0"):
        significance.spearman_interval(pair, n_resamples=0)
    with pytest.raises(MirblabError, match="level must lie between 0 and 1, found 95"):
        significance.spearman_interval(pair, level=95)


def test_the_effect_of_one_query_has_no_interval() -> None:
    """Its standard deviation is not known."""
    found = significance.effect_sizes(value_table({"a": [0.5], "b": [0.25]}), "nDCG@10")
    assert found[["effect", "low", "high"]].isna().all(axis=None)
