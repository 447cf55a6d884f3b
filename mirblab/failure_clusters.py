"""failure_clusters: the queries of one outcome in clusters: what each is about, and how it differs from the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from mirblab import contrasts, query_clusters
from mirblab.collection import Collection
from mirblab.errors import MirblabError, unknown
from mirblab.escape import display
from mirblab.excerpts import excerpts
from mirblab.failures import OUTCOMES
from mirblab.paired import holm

_CLEAR = 0.25  # a silhouette up to this says "no substantial structure" (Kaufman & Rousseeuw, 1990)


@dataclass(frozen=True)
class FailureClusters:
    """The queries of one outcome, sorted into clusters by their content.

    `who` says which queries these are ("queries that bm25 wins"). `members`: collection, query_id, cluster (its name),
    difference, is_typical. `table`: a row per cluster, the largest first: cluster, queries, difference (mean), typical
    (a query), differs (in words). `contrasts`: cluster and the columns of `contrasts.contrasts`, each cluster against
    all other queries, p_holm over all clusters. `fits`: n_clusters, silhouette. `near`: what
    `query_clusters.together` says of all these queries.
    """

    who: str
    members: pd.DataFrame
    table: pd.DataFrame
    contrasts: pd.DataFrame
    fits: pd.DataFrame
    near: dict[str, float]

    def said(self) -> str:
        """Return in a few sentences how clear the clusters are, and whether they are more than luck."""
        n = len(self.members)
        if not n:
            return f"There are no {self.who}, so there is nothing to cluster."
        if n == 1:
            return f"Of {self.who} there is one: it has nothing in common with others that could be tested."
        return " ".join([self._clear(), self._near(), self._differs()])

    def first(self, n: int) -> pd.DataFrame:
        """Return at most *n* members of each cluster: its typical query, then those with the largest difference."""
        place = {name: number for number, name in enumerate(self.table.cluster)}
        keys = {"place": self.members.cluster.map(place), "size": -self.members.difference.abs()}
        ordered = self.members.assign(**keys, other=~self.members.is_typical.astype(bool))
        ordered = ordered.sort_values(["place", "other", "size", "query_id"])
        found = ordered.groupby("cluster", sort=False).head(n)
        return found[list(self.members.columns)].reset_index(drop=True)

    def _clear(self) -> str:
        n = f"{len(self.members):,} {self.who}"
        if not len(self.fits):
            return f"{n} are too few or too alike for several clusters: they stay one."
        best = self.fits.silhouette.max()
        how = "no clear groups: the clusters only sort them" if best <= _CLEAR else "groups"
        return f"{n} make {len(self.table)} clusters; their best silhouette, {best:.2f}, says that they lie in {how}."

    def _near(self) -> str:
        if np.isnan(self.near["p"]):
            return "Whether they lie together cannot be tested."
        share, chance, p = (self.near[name] for name in ("share", "by_chance", "p"))
        more = "nearer to each other than" if p <= 0.05 else "no nearer to each other than"
        return (
            f"By their content they lie {more} other queries do: of the queries nearest to one of them, {share:.0%} "
            f"are of them, too, and {chance:.0%} would be by chance (p {display(p, how='p')})."
        )

    def _differs(self) -> str:
        if not len(self.contrasts):
            return "No feature can be compared."
        if not self.contrasts.differs.any():
            return "No cluster differs from the other queries in a feature beyond luck, so no cause is in sight."
        own = dict.fromkeys(self.contrasts.cluster[self.contrasts.differs])
        return (
            f"Beyond luck differ: {'; '.join(own)}. A cluster is made by content, so that what goes with content, such "
            "as formulas, differs with it, failure or not; what sets all of them apart says more."
        )


def failure_clusters(
    collections: Sequence[Collection],
    table: pd.DataFrame,
    features: pd.DataFrame,
    outcome: str = "won",
    *,
    by: str = "",
    most: int = 6,
    seed: int = 0,
) -> FailureClusters:
    """Return the queries of one *outcome* (won, tied, lost) in clusters by their content, described.

    *table* is from `failures.outcomes`, *features* from `failures.traits`, over the same *collections*. *by* is an
    encoder, or "" for terms; *most* is the largest number of clusters. Clusters are named by the terms that tell them
    from all other queries. The same *seed* gives the same clusters, whatever the order of the table's rows.

    >>> from mirblab.shelf import load
    >>> from mirblab.failures import traits
    >>> c = load("mini-qa")
    >>> rows = pd.DataFrame({"collection": c.name, "query_id": c.query_ids, "difference": 0.0, "outcome": "tied"})
    >>> failure_clusters([c], rows, traits([c]), "lost").said()
    'There are no queries that the winner loses, so there is nothing to cluster.'
    """
    if outcome not in OUTCOMES:
        raise unknown("outcome", outcome, OUTCOMES)
    asked = _in_turn(collections, table)
    marks = (asked.outcome == outcome).to_numpy()
    texts = np.array([text for own in collections for text in own.query_texts], dtype=object)
    if not marks.any():
        return _none(_who(table, outcome))
    rows = query_clusters.points(collections, by)
    made = query_clusters.cluster(rows[marks], most=most, seed=seed)
    names = _told_apart(query_clusters.names(texts[marks], made.labels, texts[~marks]))
    members = asked[marks].assign(cluster=np.array(names, dtype=object)[made.labels], is_typical=False)
    members.iloc[made.centre, members.columns.get_loc("is_typical")] = True
    described = asked[["collection", "query_id"]].merge(features, on=["collection", "query_id"], how="left")
    compared = _contrasts(described, members, names, seed)
    near = query_clusters.together(rows, marks, asked.collection.tolist(), seed=seed)
    shown = members[["collection", "query_id", "cluster", "difference", "is_typical"]].reset_index(drop=True)
    return FailureClusters(
        _who(table, outcome), shown, _table(collections, members, names, compared), compared, made.fits, near
    )


def _who(table: pd.DataFrame, outcome: str) -> str:
    if outcome == "tied":
        return "queries that are tied"
    loser = table.attrs.get("loser", "")
    if outcome == "lost":
        return f"queries that {loser} wins" if loser else "queries that the winner loses"
    return f"queries that {table.attrs.get('winner', 'the winner')} wins"


def _in_turn(collections: Sequence[Collection], table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of *table* in the order of the collections' queries; MirblabError where one is missing."""
    pairs = [(own.name, str(query)) for own in collections for query in own.query_ids]
    asked = pd.DataFrame(pairs, columns=["collection", "query_id"]).merge(
        table.astype({"collection": "str", "query_id": "str"}), on=["collection", "query_id"], how="left"
    )
    missing = asked.query_id[asked.outcome.isna()]
    if len(missing) or len(asked) != len(pairs):
        found = f"{len(missing):,} without, the first '{missing.iloc[0]}'" if len(missing) else "some twice"
        raise MirblabError(f"every query of the collections needs one outcome; found {found}")
    return asked


def _contrasts(features: pd.DataFrame, members: pd.DataFrame, names: list[str], seed: int) -> pd.DataFrame:
    parts = []
    for name in names:
        inside = np.zeros(len(features), dtype=bool)
        inside[members.index[members.cluster == name]] = True
        found = contrasts.contrasts(features, inside, seed=seed)
        parts.append(found.assign(cluster=name))
    table = pd.concat(parts, ignore_index=True)
    table["p_holm"] = holm(table.p)
    return table.assign(differs=table.p_holm <= 0.05)


def _table(
    collections: Sequence[Collection], members: pd.DataFrame, names: list[str], compared: pd.DataFrame
) -> pd.DataFrame:
    by_name, rows = {own.name: own for own in collections}, []
    for name in names:
        own, found = members[members.cluster == name], compared[compared.cluster == name]
        typical = own[own.is_typical].iloc[0]
        collection = by_name[typical.collection]
        text = excerpts([collection.query(typical.query_id)], collection.card.task)[0]
        rows.append((name, len(own), own.difference.mean(), text, contrasts.briefly(found)))
    return pd.DataFrame(rows, columns=["cluster", "queries", "difference", "typical", "differs"])


def _told_apart(names: list[str]) -> list[str]:
    """Return the names with a number where two are the same."""
    return [
        f"{name} ({names[:place].count(name) + 1})" if names.count(name) > 1 else name
        for place, name in enumerate(names)
    ]


def _none(who: str) -> FailureClusters:
    frames: list[Any] = [
        pd.DataFrame(columns=columns)
        for columns in (
            ["collection", "query_id", "cluster", "difference", "is_typical"],
            ["cluster", "queries", "difference", "typical", "differs"],
            ["cluster", *contrasts.COLUMNS],
            ["n_clusters", "silhouette"],
        )
    ]
    near = {"share": np.nan, "by_chance": np.nan, "p": np.nan, "n": 0}
    return FailureClusters(who, *frames, near)
