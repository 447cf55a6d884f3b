"""outcomes: how far rewritten documents fall in rank, and how often a changed twin stands above one that is not."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher
from os.path import commonprefix

import numpy as np
import pandas as pd

from mirblab.analysis.invariance.twins import UNCHANGED, Twins, query_name, twin_name
from mirblab.core.errors import MirblabError
from mirblab.core.wording import counted
from mirblab.evaluation.significance import bootstrap_intervals, spearman_interval, values_per_query
from mirblab.formula.rewriting.rules import CHANGES, KEEPS
from mirblab.retrieval.systems import DEPTH, System
from mirblab.retrieval.systems import system as system_named

ALL_RULES = "all rules"
FOUND, RECIPROCAL_RANK, RANK_CHANGE = "first", "RR", "RR change"
KEPT_ABOVE, TIE, CHANGED_ABOVE, DUEL = "kept above", "tie", "changed above", "duel"
_VERSIONS = (UNCHANGED, "kept", "changed")
_N_RESAMPLES = 2_000
_NEAR = 1e-6  # relative difference of two scores that count as equal: a sum in another order


def compare_twins(systems: Sequence[System | str], twins: Twins) -> pd.DataFrame:
    """Return what each system makes of each document and its twins: a row per system and document.

    Columns: system, doc_id, kept_rule, changed_rule, the number of characters that each twin changes (kept_signs,
    changed_signs), the ranks of the original in the whole corpus when it is searched by its own text, by the kept and
    by the changed twin (rank_unchanged, rank_kept, rank_changed; from 1, NaN below the first `DEPTH` documents), and
    duel: 1 when the original as a query scores its kept twin above the changed one, -1 when the changed one is above, 0
    for equal scores.

    >>> from mirblab.analysis.invariance.twins import rewrite_documents
    >>> from mirblab.sources.catalogue import load
    >>> compare_twins(["bm25"], rewrite_documents(load("mini-pairs"), 3)).rank_unchanged.tolist()
    [1.0, 1.0, 1.0]
    """
    if not systems:
        raise MirblabError("there is no system to compare; name at least one, such as 'bm25'")
    made, texts = list(map(system_named, systems)), twins.table
    signs = {
        f"{version}_signs": [_count_changed(*pair) for pair in zip(texts.text, texts[version], strict=True)]
        for version in ("kept", "changed")
    }
    table = texts[["doc_id", "kept_rule", "changed_rule"]].assign(**signs)
    return pd.concat([_system_outcomes(one, twins, table) for one in made], ignore_index=True)


def _count_changed(text: str, twin: str) -> int:
    """Return how many characters are replaced, inserted or deleted between two texts, by `difflib`."""
    start = len(commonprefix([text, twin]))  # what is alike at both ends takes most of difflib's time
    text, twin = text[start:], twin[start:]
    end = len(commonprefix([text[::-1], twin[::-1]]))
    changes = SequenceMatcher(None, text[: len(text) - end], twin[: len(twin) - end], autojunk=False).get_opcodes()
    return sum(
        max(old_to - old_at, new_to - new_at) for kind, old_at, old_to, new_at, new_to in changes if kind != "equal"
    )


def _system_outcomes(system: System, twins: Twins, table: pd.DataFrame) -> pd.DataFrame:
    run = system.search(twins.ranks, depth=DEPTH).astype({"query_id": "str", "doc_id": "str"})
    originals = {query_name(name, version): name for name in table.doc_id for version in _VERSIONS}
    ranks = run[run.query_id.map(originals) == run.doc_id].set_index("query_id")["rank"].astype(float)
    columns = {
        f"rank_{version}": ranks.reindex([query_name(name, version) for name in table.doc_id]).to_numpy()
        for version in _VERSIONS
    }
    run = system.search(twins.duels, depth=DEPTH).astype({"query_id": "str", "doc_id": "str"})
    originals = {twin_name(name, version): name for name in table.doc_id for version in ("kept", "changed")}
    run = run[run.doc_id.map(originals) == run.query_id]  # bm25-mirb returns what is no candidate, too
    scores = run.set_index("doc_id").score.astype(float)
    kept, changed = (
        scores.reindex([twin_name(name, version) for name in table.doc_id]).fillna(-np.inf).to_numpy()
        for version in ("kept", "changed")
    )
    duel = np.where(np.isclose(kept, changed, rtol=_NEAR, atol=0), 0, np.where(kept > changed, 1, -1))
    return table.assign(system=system.name, **columns, duel=duel)[["system", *table, *columns, "duel"]]


def twin_values(outcomes: pd.DataFrame) -> pd.DataFrame:
    """Return the outcomes as values: system, collection, measure, query_id, value, where a collection is a rule.

    Each document counts under its kept rule, under its changed rule, and under "all rules" of either kind. The measures
    are "first" (the original is ranked first for the twin, 0 or 1), "RR" of the original for the twin, "RR change"
    (this minus its RR for its own text, -1 to 1), "kept above", "tie", "changed above" of the duel, 0 or 1, and "duel",
    the first minus the last of these. Collections are named "keeps: RULE" and "changes: RULE"; in "unchanged" the query
    is the document's own text.

    >>> outcomes = pd.DataFrame({"system": "s", "doc_id": ["a"], "kept_rule": "words", "changed_rule": "negated",
    ...     "rank_unchanged": 1.0, "rank_kept": 2.0, "rank_changed": 1.0, "duel": -1})
    >>> values = twin_values(outcomes)
    >>> values[(values.collection == "keeps: words") & (values.measure == "RR")].value.tolist()
    [0.5]
    """
    base = outcomes[["system"]].assign(query_id=outcomes.doc_id)
    own = (1 / outcomes.rank_unchanged).fillna(0)
    tables = []
    for effect, version in ((UNCHANGED, UNCHANGED), (KEEPS, "kept"), (CHANGES, "changed")):
        ranks = outcomes[f"rank_{version}"]
        numbers = {FOUND: ranks == 1, RECIPROCAL_RANK: (1 / ranks).fillna(0)}
        groups = [pd.Series(UNCHANGED, outcomes.index)]
        if effect != UNCHANGED:
            numbers |= {RANK_CHANGE: numbers[RECIPROCAL_RANK] - own, DUEL: outcomes.duel}
            numbers |= {KEPT_ABOVE: outcomes.duel > 0, TIE: outcomes.duel == 0, CHANGED_ABOVE: outcomes.duel < 0}
            rules = outcomes[f"{version}_rule"].astype("str")
            groups = [effect + ": " + rules, pd.Series(f"{effect}: {ALL_RULES}", outcomes.index)]
        for group in groups:
            named = base.assign(collection=group)
            tables += [named.assign(measure=name, value=value.astype(float)) for name, value in numbers.items()]
    return pd.concat(tables, ignore_index=True)[["system", "collection", "measure", "query_id", "value"]]


def summarise_twins(outcomes: pd.DataFrame, *, seed: int = 0) -> pd.DataFrame:
    """Return the report card: a row per system, effect ("keeps", "changes") and rule, with 95 % intervals.

    Columns: system, effect, rule, documents, then the measures of `twin_values`, each with its low and high (percentile
    bootstrap over documents, Efron 1979). The rows "all rules" count each document once.

    >>> outcomes = pd.DataFrame({"system": "s", "doc_id": ["a", "b"], "kept_rule": "words", "changed_rule": "negated",
    ...     "rank_unchanged": 1.0, "rank_kept": [1.0, 2.0], "rank_changed": 1.0, "duel": [1, -1]})
    >>> summarise_twins(outcomes)[["effect", "rule", "documents", "RR", "changed above"]].values.tolist()[0]
    ['keeps', 'words', 2, 0.75, 0.5]
    """
    values = twin_values(outcomes)
    intervals = bootstrap_intervals(values[values.collection != UNCHANGED], n_resamples=_N_RESAMPLES, seed=seed)
    names = intervals.collection.str.split(": ", n=1, expand=True)
    intervals = intervals.assign(effect=names[0], rule=names[1], order=range(len(intervals)))
    keys = ["system", "effect", "rule"]
    wide = intervals.pivot(index=keys, columns="measure", values=["mean", "low", "high"])
    first = intervals.groupby(keys).agg(documents=("n_queries", "first"), order=("order", "min")).sort_values("order")
    columns = {"documents": first.documents}
    for measure in (FOUND, RECIPROCAL_RANK, RANK_CHANGE, KEPT_ABOVE, TIE, CHANGED_ABOVE, DUEL):
        ends = (("mean", ""), ("low", " low"), ("high", " high"))
        columns |= {measure + end: wide[name, measure] for name, end in ends}
    return pd.DataFrame(columns).loc[first.index].reset_index()


def correlate_with_values(outcomes: pd.DataFrame, values: pd.DataFrame, measure: str, *, seed: int = 0) -> pd.DataFrame:
    """Return how well the duels of systems predict their effectiveness: a row per collection of *values*.

    Columns: collection, systems (those in both tables), rho (Spearman's, -1 to 1) between the mean duel of a system (1:
    the kept twin is always above) and the mean of *measure*, and low and high, the 95 % bootstrap interval over
    systems, which are few. NaN where a column does not vary. MirblabError for fewer than three systems.

    >>> outcomes = pd.DataFrame({"system": ["a", "b", "c"], "duel": [-1, 0, 1]})
    >>> rows = [("a", "q", 0.1), ("b", "q", 0.2), ("c", "q", 0.3)]
    >>> values = pd.DataFrame(rows, columns=["system", "query_id", "value"]).assign(collection="c", measure="RR")
    >>> correlate_with_values(outcomes, values, "RR")[["systems", "rho"]].values.tolist()
    [[3.0, 1.0]]
    """
    duels, rows = outcomes.groupby("system").duel.mean(), []
    selected = values_per_query(values[values.measure == measure])
    for name, part in selected.groupby("collection", observed=True):
        means = part.groupby("system", observed=True).value.mean()
        shared = [one for one in duels.index if one in means.index]
        if len(shared) < 3:
            raise MirblabError(
                f"{counted(len(shared), 'system has', 'systems have')} both duels and values of {measure} on {name}; a "
                "correlation needs three"
            )
        pair = np.column_stack([duels[shared], means[shared]])
        rows.append((str(name), len(shared), *spearman_interval(pair, seed=seed)))
    if not rows:
        raise MirblabError(f"the table has no values of {measure}; found {', '.join(values.measure.unique())}")
    return pd.DataFrame(rows, columns=["collection", "systems", "rho", "low", "high"])
