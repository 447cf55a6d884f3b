"""failures: the queries on which one system beats another, and how these queries differ from the rest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

import numpy as np
import pandas as pd

from mirblab.analysis.collection_report import wilson_interval
from mirblab.analysis.features import NUMBERS, query_features, varies
from mirblab.analysis.partners import best_judged, judged_grades
from mirblab.core.errors import MirblabError, check_not_negative, check_positive
from mirblab.core.wording import counted
from mirblab.data.collection import Collection
from mirblab.data.runs import order_run
from mirblab.display.escape import format_interval, format_value
from mirblab.display.text import excerpts
from mirblab.evaluation.measures import gain_sign
from mirblab.evaluation.significance import holm, value_matrices

OUTCOMES = ("won", "tied", "lost")
_LEAST_DIFFERENCE = 1e-9  # differences below this are rounding

KINDS = ("language", "field")
COLUMNS = ["feature", "group", "others", "chance", "low", "high", "p", "p_holm", "differs", "n_group", "n_others"]
_LEAST_SHARE, _LEAST_QUERIES = 0.05, 3  # of all queries, before a language or a field is compared
_BLOCK = 1 << 21  # random numbers at a time
_MANY = 1_000  # queries on either side, from which on sums of ranks are drawn from the normal distribution
_Z = 1.959964

Part = tuple[np.ndarray, np.ndarray, np.ndarray]  # numbers, their ranks from 0, marks of the group


def query_outcomes(values: pd.DataFrame, measure: str, winner: str, loser: str, *, margin: float = 0.0) -> pd.DataFrame:
    """Return the values of two systems on every query, per collection the winner's largest gain first.

    Columns: collection, query_id, winner, loser (their values), difference (winner minus loser, of ranks
    loser minus winner), outcome: won where the *winner*
    is ahead by more than *margin*, lost where it is behind by more, else tied. The names stand in `attrs`. MirblabError
    for a system that has no values, and for a margin outside 0 to 1.

    >>> rows = [("a", "q1", 1.0), ("a", "q2", 0.5), ("b", "q1", 0.0), ("b", "q2", 0.5)]
    >>> values = pd.DataFrame(rows, columns=["system", "query_id", "value"]).assign(collection="c", measure="RR")
    >>> query_outcomes(values, "RR", "a", "b").outcome.tolist()
    ['won', 'tied']
    """
    if not 0 <= margin < 1:
        raise MirblabError(f"a margin is a difference of values, from 0 to below 1; found {margin}")
    parts = []
    for collection, matrix in value_matrices(values, measure):
        missing = [name for name in (winner, loser) if name not in matrix]
        if missing or winner == loser:
            known = ", ".join(map(str, matrix.columns))
            raise MirblabError(
                f"two systems are compared, '{winner}' and '{loser}'; {collection} has values of {known}"
            )
        pair = matrix[[winner, loser]].to_numpy()
        part = pd.DataFrame(
            {"collection": collection, "query_id": matrix.index, "winner": pair[:, 0], "loser": pair[:, 1]}
        )
        parts.append(part)
    if not parts:
        raise MirblabError(f"no values per query of {measure} to compare; imported means have none")
    table = pd.concat(parts, ignore_index=True)
    table["difference"] = (table.winner - table.loser) * gain_sign(measure)
    behind, ahead = (side * table.difference > margin + _LEAST_DIFFERENCE for side in (-1, 1))
    table["outcome"] = np.select([ahead, behind], ["won", "lost"], "tied")
    ordered = table.sort_values(
        ["collection", "difference", "query_id"], ascending=[True, False, True], ignore_index=True
    )
    ordered.attrs = {"winner": winner, "loser": loser, "measure": measure, "margin": margin}
    return ordered


def count_outcomes(table: pd.DataFrame) -> pd.DataFrame:
    """Return how often each outcome occurs in a table of `query_outcomes`: three rows per collection.

    Columns: collection, outcome, queries, share with low and high (Wilson's 95 % interval), at_zero (queries on which
    both systems reach 0), difference (mean over these queries; NaN for none).

    >>> rows = [("c", "q1", 1.0, 0.0, 1.0, "won"), ("c", "q2", 0.0, 0.0, 0.0, "tied")]
    >>> names = ["collection", "query_id", "winner", "loser", "difference", "outcome"]
    >>> count_outcomes(pd.DataFrame(rows, columns=names))[["outcome", "queries", "at_zero"]].to_numpy().tolist()
    [['won', 1, 0], ['tied', 1, 1], ['lost', 0, 0]]
    """
    rows = []
    for collection, part in table.groupby("collection", sort=False, observed=True):
        for outcome in OUTCOMES:
            queries = part[part.outcome == outcome]
            at_zero = int(((queries.winner == 0) & (queries.loser == 0)).sum())
            share = (len(queries) / len(part), *wilson_interval(len(queries), len(part)))
            rows.append((str(collection), outcome, len(queries), *share, at_zero, queries.difference.mean()))
    names = ["collection", "outcome", "queries", "share", "low", "high", "at_zero", "difference"]
    return pd.DataFrame(rows, columns=names)


def outcome_gains(table: pd.DataFrame) -> pd.DataFrame:
    """Return the differences of `query_outcomes` as values of a system "winner − loser", for `associations`.

    >>> rows = [("c", "q1", 1.0, 0.5, 0.5, "won")]
    >>> names = ["collection", "query_id", "winner", "loser", "difference", "outcome"]
    >>> made = pd.DataFrame(rows, columns=names)
    >>> made.attrs = {"winner": "a", "loser": "b", "measure": "RR"}
    >>> outcome_gains(made)[["system", "value"]].to_numpy().tolist()
    [['a − b', 0.5]]
    """
    names = table.attrs
    gains = table[["collection", "query_id"]].assign(value=table.difference, measure=names["measure"])
    return gains.assign(system=f"{names['winner']} − {names['loser']}")


def label_queries(table: pd.DataFrame, collections: Sequence[Collection], longest: int = 40) -> pd.DataFrame:
    """Return a table of `query_outcomes` with a column label for plots: the id of the query and its first words.

    Where there are several *collections*, the name of the query's own one stands before its id.

    >>> from mirblab.sources.catalogue import load
    >>> c = load("mini-qa")
    >>> rows = pd.DataFrame({"collection": c.name, "query_id": c.query_ids[:1]})
    >>> label_queries(rows, [c], longest=12).label[0].count("How do I")
    1
    """
    texts = {(c.name, str(q)): text for c in collections for q, text in zip(c.query_ids, c.query_texts, strict=True)}
    pairs = zip(table.collection.astype(str), table.query_id.astype(str), strict=True)
    several = len(collections) > 1
    shown = [(f"{name} {query}" if several else query, _begun(texts[name, query], longest)) for name, query in pairs]
    return table.assign(label=[f"{which}: {text}" for which, text in shown])


def _begun(text: str, longest: int) -> str:
    whole = " ".join(text.split())
    return whole if len(whole) <= longest else f"{whole[:longest].rpartition(' ')[0] or whole[:longest]} …"


def outcome_features(collections: Sequence[Collection]) -> pd.DataFrame:
    """Return `query_features` of several collections, with answer_words, the length of the best judged document.

    >>> from mirblab.sources.catalogue import load
    >>> "answer_words" in outcome_features([load("mini-qa")])
    True
    """
    parts = []
    for collection in collections:
        features, best = query_features(collection), best_judged(collection)
        words = {
            str(q): len(collection.document(str(d)).split()) for q, d in zip(best.query_id, best.doc_id, strict=True)
        }
        parts.append(features.assign(answer_words=features.query_id.map(words).astype(float)))
    return pd.concat(parts, ignore_index=True)


def outcome_examples(
    rows: pd.DataFrame,
    collections: Sequence[Collection],
    runs: Mapping[tuple[str, str], pd.DataFrame],
    longest: int = 160,
) -> pd.DataFrame:
    """Return the queries of *rows* for reading: text, the first document of each system, the rank of the answer.

    *rows* has collection, query_id; *runs* has the run of each (collection, system), the winner's first. Columns:
    collection, query_id, query, and for each system "first of S" (the text at rank 1, after its grade, "?" for an
    unjudged one) and "answer in S" (the best rank of a relevant document; "none" where none was returned, "–" where
    nothing is relevant). Texts are cut at *longest* characters, never within a formula.

    >>> import mirblab as lab
    >>> c = lab.load("mini-qa")
    >>> runs = {(c.name, s): lab.system(s).search(c) for s in ("bm25", "bm25-mirb")}
    >>> rows = pd.DataFrame({"collection": [c.name], "query_id": c.query_ids[:1]})
    >>> outcome_examples(rows, [c], runs)["answer in bm25"].tolist()
    ['1']
    """
    by_name = {collection.name: collection for collection in collections}
    queries = list(zip(rows.collection.astype(str), rows.query_id.astype(str), strict=True))
    table = pd.DataFrame(queries, columns=["collection", "query_id"])
    table["query"] = [excerpts([by_name[c].query(q)], by_name[c].card.task, longest)[0] for c, q in queries]
    looked = {key: order_run(run).groupby("query_id", observed=True) for key, run in runs.items()}
    for system in dict.fromkeys(system for _, system in runs):
        pairs = [_case(by_name[c], q, looked[c, system], longest) for c, q in queries]
        table[f"first of {system}"] = [first for first, _ in pairs]
        table[f"answer in {system}"] = [answer for _, answer in pairs]
    return table


def _case(collection: Collection, query_id: str, run: pd.api.typing.DataFrameGroupBy, longest: int) -> tuple[str, str]:
    judged = judged_grades(collection, query_id)
    ranking = run.get_group(query_id).doc_id.astype(str).tolist() if query_id in run.groups else []
    wanted = {name for name, grade in judged.items() if grade >= collection.card.relevant_from}
    answer = next((f"{rank:,}" for rank, name in enumerate(ranking, 1) if name in wanted), "none" if wanted else "–")
    if not ranking:
        return "nothing", answer
    text = excerpts([collection.document(ranking[0])], collection.card.task, longest)[0]
    return f"[{judged.get(ranking[0], '?')}] {text}", answer


def contrast_groups(
    features: pd.DataFrame, group: Sequence[bool] | np.ndarray, *, n_permutations: int = 9_999, seed: int = 0
) -> pd.DataFrame:
    """Return how the queries of a *group*, bool (n_queries,), differ from the others of the same collections.

    *features* is from `query_features` or `outcome_features`; each frequent language or field is a feature of its own.
    Columns: feature, group and others (medians, or shares of a language or field, as a mean over the collections),
    chance (0 to 1, that a query of the group has more of it than another one of its collection, ties by half; 0.5 is no
    difference; Mann & Whitney 1947), low and high (95 %, Newcombe, Statistics in Medicine 2006, method 5; variances of
    collections are added), p (two sided, labels permuted within each collection), p_holm over the table, differs
    (p_holm <= 0.05), n_group, n_others.
    Smallest p first. A collection counts where at least five queries (of fewer than ten: half) differ from the
    commonest number. Empty where the group or the rest is empty, or no feature varies.

    >>> table = pd.DataFrame({"collection": "c", "query_id": list("abcdefgh"), "words": [9, 9, 9, 9, 1, 1, 1, 1]})
    >>> found = contrast_groups(table, [True] * 4 + [False] * 4)
    >>> found[["feature", "group", "others", "chance", "differs"]].to_numpy().tolist()
    [['words', 9.0, 1.0, 1.0, True]]
    """
    check_positive(n_permutations=n_permutations)
    check_not_negative(seed=seed)
    inside = np.asarray(group, dtype=bool)
    if len(inside) != len(features):
        found = f"{counted(len(features), 'query')}, {counted(len(inside), 'mark')}"
        raise MirblabError(f"one mark per query is needed, found {found}")
    rows = []
    collections = features.collection.astype("str").to_numpy()
    for name, column, is_share in _columns(features):
        parts = list(_parts(column, inside, collections))
        if parts:
            rows.append((name, *_middles(parts, is_share), *_tested(parts, n_permutations, seed)))
    names = ["feature", "group", "others", "chance", "low", "high", "p", "n_group", "n_others"]
    table = pd.DataFrame(rows, columns=names)
    table["p_holm"] = holm(table.p)
    table["differs"] = table.p_holm <= 0.05
    return table.iloc[np.lexsort([-(table.chance - 0.5).abs(), table.p])].reset_index(drop=True)[COLUMNS]


def _columns(features: pd.DataFrame) -> Iterator[tuple[str, np.ndarray, bool]]:
    """Yield each feature's name, its numbers (n_queries,), and whether it is a yes or no."""
    for name in (*NUMBERS, "answer_words"):
        if name in features:
            yield name, features[name].to_numpy(dtype=float), False
    for kind in (kind for kind in KINDS if kind in features):
        counts = features[kind].replace("", np.nan).dropna().value_counts()
        least = max(_LEAST_QUERIES, _LEAST_SHARE * len(features))
        for value in sorted(counts.index[counts.between(least, len(features) - least)]):
            yield f"{kind} {value}", (features[kind] == value).to_numpy(dtype=float), True


def _parts(column: np.ndarray, inside: np.ndarray, collections: np.ndarray) -> Iterator[Part]:
    """Yield each collection in which the feature varies and both sides have queries with a value of it."""
    from scipy.stats import rankdata

    for name in dict.fromkeys(collections.tolist()):
        here = (collections == name) & ~np.isnan(column)
        numbers, marks = column[here], inside[here]
        if 0 < marks.sum() < len(marks) and varies(numbers):
            yield numbers, rankdata(numbers) - 1, marks


def _middles(parts: list[Part], is_share: bool) -> tuple[float, float]:
    middle = np.mean if is_share else np.median
    inside, outside = (
        float(np.mean([middle(own[marks == side]) for own, _, marks in parts])) for side in (True, False)
    )
    return inside, outside


def _tested(parts: list[Part], n_permutations: int, seed: int) -> tuple[float, float, float, float, int, int]:
    """Return chance, its interval and p, and the sizes of both sides; U of Mann and Whitney is summed over parts."""
    inner = sum(n * (n - 1) / 2 for n in (int(marks.sum()) for *_, marks in parts))
    pairs = sum(int(marks.sum()) * int((~marks).sum()) for *_, marks in parts)
    sums = sum((ranks[marks].sum() for _, ranks, marks in parts), start=0.0) - inner
    moved = np.zeros(n_permutations)
    for place, (_, ranks, marks) in enumerate(parts):
        moved += _sums(ranks, int(marks.sum()), n_permutations, (seed, place))
    far = np.abs(moved - inner - pairs / 2) >= abs(sums - pairs / 2) - 1e-9
    sizes = [(int(marks.sum()), int((~marks).sum())) for *_, marks in parts]
    inside, others = (sum(side) for side in zip(*sizes, strict=True))
    chance = float(sums / pairs)
    return chance, *_newcombe(chance, sizes), float((1 + far.sum()) / (1 + n_permutations)), inside, others


def _sums(ranks: np.ndarray, n: int, n_permutations: int, seeds: tuple[int, int]) -> np.ndarray:
    size = len(ranks)
    if min(n, size - n) > _MANY:  # their sums are normal to any digit that is printed
        error = np.sqrt(n * (size - n) / (size - 1) * ranks.var())
        return np.random.default_rng(seeds).normal(n * ranks.mean(), error, n_permutations)
    if 2 * n > size:
        return ranks.sum() - _sums(ranks, size - n, n_permutations, seeds)
    return ranks[_drawn(size, n, n_permutations, seeds)].sum(axis=1)


@lru_cache(maxsize=4)
def _drawn(size: int, n: int, n_permutations: int, seeds: tuple[int, int]) -> np.ndarray:
    """Return *n* of *size* positions drawn without replacement, (n_permutations, n); the same for all features."""
    generator, step, samples = np.random.default_rng(seeds), max(1, _BLOCK // size), [np.empty((0, n), np.int32)]
    for start in range(0, n_permutations, step):
        lots = generator.random((min(step, n_permutations - start), size))
        samples.append(np.argpartition(lots, n - 1, axis=1)[:, :n].astype(np.int32))
    return np.concatenate(samples)


def _newcombe(chance: float, sizes: Sequence[tuple[int, int]]) -> tuple[float, float]:
    """Return the ends of the interval: where the score of *chance* against them is exactly 1.96.

    *sizes* has the group and the others of each collection, whose variances of U are added.
    """
    from scipy.optimize import brentq

    pairs = sum(group * others for group, others in sizes)

    def score(truth: float) -> float:
        rise = (1 - truth) / (2 - truth) + truth / (1 + truth)
        factor = sum(group * others * (1 + ((group + others) / 2 - 1) * rise) for group, others in sizes)
        return (chance - truth) ** 2 - _Z**2 * truth * (1 - truth) * factor / pairs**2

    middle = min(max(chance, 1e-9), 1 - 1e-9)  # at the ends the score is 0, too
    low = brentq(score, 0.0, middle) if chance > 0 else 0.0
    high = brentq(score, middle, 1.0) if chance < 1 else 1.0
    return float(low), float(high)


def describe_contrasts(table: pd.DataFrame, group: str = "these queries") -> str:
    """Return in words what a table of `contrast_groups` shows, also when no feature differs significantly.

    >>> row = {"feature": "words", "group": 9.0, "others": 4.0, "chance": 0.9, "low": 0.7, "high": 0.95, "p_holm": 0.01}
    >>> describe_contrasts(pd.DataFrame([row | {"differs": True}]))
    'These queries have more words (9 against 4; chance 0.90 [0.70, 0.95], corrected p 0.010).'
    """
    if not len(table):
        return f"Nothing can be compared: {group} are none or all of their collections, or no feature varies."
    if not table.differs.any():
        return (
            f"No feature differs significantly: none of {len(table)} distinguishes {group} from the others "
            f"(smallest corrected p {table.p_holm.min():.2f}). That is no proof that they are equal."
        )
    return f"{group[:1].upper()}{group[1:]} have {briefly(table)}."


def briefly(table: pd.DataFrame) -> str:
    """Return in words what differs significantly in a table of `contrast_groups`, the smallest p first.

    >>> briefly(pd.DataFrame({"differs": [False]}))
    'no significant difference'
    """
    parts = [
        f"{'more' if row['chance'] > 0.5 else 'less'} {row['feature'].replace('_', ' ')} "
        f"({row['group']:.3g} against {row['others']:.3g}; chance {row['chance']:.2f} "
        f"{format_interval(row['low'], row['high'], '.2f')}, corrected p {format_value(row['p_holm'], how='p')})"
        for row in table[table.differs.astype(bool)].to_dict("records")
    ]
    return "; ".join(parts) or "no significant difference"
