"""graph: which statements the proofs of earlier theorems use, and what that says about a new theorem."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from mirblab.core.errors import MirblabError, check_known, check_not_negative, check_positive
from mirblab.core.wording import counted
from mirblab.data import runs
from mirblab.data.candidates import EarlierRule, ListRule, NotSelfRule, Rule
from mirblab.data.collection import Collection
from mirblab.data.ranking import top_k

if TYPE_CHECKING:
    from scipy.sparse import csr_array

DEPTH = 1_000  # documents of each query in a run
# Chosen on training queries of three of the collections that docs/findings.md names.
N_FOUND = 100  # first documents of a text search from which the graph is entered
TELEPORT = {"pagerank": 0.15, "personalised": 0.5}  # probability that a walk ends at a statement and begins anew
HUB_SHARE = 0.01  # a premise of more than this share of the proofs is a hub
_ROUNDS = 20  # in each of which every edge is offered one exchange
_BLOCK = 64  # queries whose scores of all documents are in memory at once


@dataclass(frozen=True)
class ProofGraph:
    """The uses of earlier proofs: `uses` (n_docs, n_docs) is 1 where the proof of the row's theorem uses the column.

    `age` (n_docs,) numbers the documents from 0, the oldest. Every edge goes to an older document, so that a walk along
    the edges never reaches one that is newer than where it began.
    """

    collection: str
    doc_ids: pd.Index
    age: np.ndarray
    uses: csr_array

    @cached_property
    def n_uses(self) -> np.ndarray:
        """Return how many proofs use each document, (n_docs,)."""
        return np.bincount(self.uses.indices, minlength=len(self.age))

    @cached_property
    def n_proofs(self) -> int:
        """Return how many theorems have a proof that uses a document."""
        return int(np.count_nonzero(np.diff(self.uses.indptr)))

    def count_older(self, collection: Collection) -> np.ndarray:
        """Return how many documents are older than each query, (n_queries,).

        A query that is a document of the same id has that document's age. In a collection of a period (`mirblab build
        --at --until`) other queries are newer than all documents; elsewhere MirblabError, as their age is not known.
        """
        if not self.doc_ids.equals(collection.doc_ids):
            raise MirblabError(f"the graph of {self.collection} has other documents than {collection.name}")
        places = self.doc_ids.get_indexer(collection.query_ids)
        if (places < 0).any() and not collection.card.extra.get("until"):
            raise MirblabError(
                f"{collection.name} has "
                f"{counted((places < 0).sum(), 'query that is no document', 'queries that are no documents')}, such as "
                f"'{collection.query_ids[places < 0][0]}', so that nobody knows which documents are older; take a "
                "collection of a period (mirblab build SOURCE --at DAY --until DAY)"
            )
        return np.where(places < 0, len(self.age), self.age[places])

    @cached_property
    def _edges_by_age(self) -> tuple[np.ndarray, np.ndarray]:
        edges = self.uses.tocoo()
        order = np.argsort(self.age[edges.row], kind="stable")
        return self.age[edges.row][order], edges.col[order]


def premise_graph(training: Collection) -> ProofGraph:
    """Return the graph of the relevant judgements of *training*, a split whose queries are documents, too.

    The age of a document is its place in the `order` of the corpus. A use of the theorem itself or of a later one is
    left out. MirblabError without an `order`, and when no query is a document.

    >>> from mirblab.sources.catalogue import build_periods, load
    >>> [folder] = build_periods("mini", ["2025-03-01", "2026-01-01"])  # doctest: +ELLIPSIS
    metamath-premise-at-2025-03-01: ...
    >>> graph = premise_graph(load(str(folder), split="train"))
    >>> graph.n_proofs, hub_table(graph, 0.2).index.tolist()
    (54, ['syl', 'ax-mp'])
    """
    orders = training.corpus["order"] if "order" in training.corpus else pd.Series(pd.NA, training.corpus.index)
    if orders.isna().any():
        raise MirblabError(f"{training.name}: documents have no 'order', so nobody knows what was there before what")
    age = np.empty(len(orders), dtype=np.int64)
    age[np.argsort(orders.to_numpy(dtype=np.int64), kind="stable")] = np.arange(len(orders))
    used = training.relevant
    theorems = training.doc_ids.get_indexer(training.query_ids)[used.query_id.cat.codes]
    premises = used.doc_id.cat.codes.to_numpy().astype(np.int64)
    is_older = (theorems >= 0) & (age[premises] < age[theorems])
    if not is_older.any():
        raise MirblabError(
            f"{training.name}, {training.split}: no query is a document that uses an older one; the graph needs a "
            "split for training whose queries have the ids of documents"
        )
    uses = _ones(theorems[is_older], premises[is_older], len(age))
    return ProofGraph(training.name, training.doc_ids, age, uses)


def _ones(rows: np.ndarray, columns: np.ndarray, n: int) -> csr_array:
    from scipy.sparse import csr_array

    return csr_array((np.ones(len(rows)), (rows, columns)), shape=(n, n))


def hub_table(graph: ProofGraph, share: float = HUB_SHARE) -> pd.DataFrame:
    """Return the documents that more than a *share* of the proofs use, most used first: proofs, share; by doc_id.

    MirblabError for a *share* that is not above 0 and at most 1.

    >>> from mirblab.data.collection import from_rows
    >>> corpus = [{"_id": name, "text": name, "metadata": {"order": n}} for n, name in enumerate("abcd")]
    >>> uses = [("b", "a", 1), ("c", "a", 1), ("d", "c", 1), ("d", "b", 1)]
    >>> c = from_rows(corpus, corpus[1:], uses, {"name": "c"})
    >>> hub_table(premise_graph(c), 0.5).proofs.to_dict()
    {'a': 2}
    """
    if not 0 < share <= 1:
        raise MirblabError(f"a share of the proofs is above 0 and at most 1, found {share}")
    table = pd.DataFrame({"proofs": graph.n_uses, "share": graph.n_uses / graph.n_proofs}, pd.Index(graph.doc_ids))
    return table[table.share > share].sort_values("proofs", ascending=False, kind="stable").rename_axis("doc_id")


def exchange_edges(graph: ProofGraph, seed: int = 0) -> ProofGraph:
    """Return the graph with premises that were exchanged at random between proofs, as a control.

    A proof keeps its number of premises and a premise its number of proofs, and every edge still goes to an older
    document, so that popularity remains and the knowledge of which proof uses what is lost. An exchange that would give
    a proof the same premise twice is left out. Maslov and Sneppen, Science 2002.
    """
    check_not_negative(seed=seed)
    rng, edges, n = np.random.default_rng(seed), graph.uses.tocoo(), np.int64(len(graph.age))
    theorems, premises = edges.row.astype(np.int64), edges.col.astype(np.int64)
    for _ in range(_ROUNDS):
        one, other = rng.permutation(len(premises))[: len(premises) // 2 * 2].reshape(2, -1)
        new = theorems[one] * n + premises[other], theorems[other] * n + premises[one]
        wanted, counts = np.unique(np.concatenate(new), return_counts=True)
        taken = np.concatenate([theorems * n + premises, wanted[counts > 1]])
        able = (graph.age[premises[other]] < graph.age[theorems[one]]) & (
            graph.age[premises[one]] < graph.age[theorems[other]]
        )
        able &= ~(np.isin(new[0], taken) | np.isin(new[1], taken))
        one, other = one[able], other[able]
        premises[one], premises[other] = premises[other], premises[one]
    return replace(graph, uses=_ones(theorems, premises, len(graph.age)))


def describe_graph(graph: ProofGraph, collection: Collection, share: float = HUB_SHARE) -> dict[str, object]:
    """Return the size of the graph and what its hubs hold of the judgements of *collection*, for a row of a table.

    Keys: collection, documents, proofs, uses, queries, hubs (documents that more than a *share* of the proofs use), of
    the judgements (their share, 0 to 1), most used (the first five hubs with the number of proofs).

    >>> from mirblab.data.collection import from_rows
    >>> corpus = [{"_id": name, "text": name, "metadata": {"order": n}} for n, name in enumerate("abcd")]
    >>> uses = [("b", "a", 1), ("c", "a", 1), ("d", "c", 1), ("d", "b", 1)]
    >>> c = from_rows(corpus, corpus[1:], uses, {"name": "c"})
    >>> [describe_graph(premise_graph(c), c, 0.5)[key] for key in ("uses", "hubs", "of the judgements", "most used")]
    [4, 1, 0.5, 'a 2']
    """
    hubs = hub_table(graph, share)
    held = collection.relevant.doc_id.isin(hubs.index).mean()
    named = ", ".join(f"{name} {row.proofs:,.0f}" for name, row in hubs.head(5).iterrows())
    sizes = {"documents": len(graph.age), "proofs": graph.n_proofs, "uses": graph.uses.nnz}
    return {"collection": collection.name, **sizes, "queries": len(collection.query_ids),
            "hubs": len(hubs), "of the judgements": float(held), "most used": named}  # fmt: skip


def earlier_only(collection: Collection, graph: ProofGraph) -> Collection:
    """Return *collection* in which a query may return only documents that are older than it, beside its other rules.

    >>> from mirblab.data.collection import from_rows
    >>> corpus = [{"_id": name, "text": name, "metadata": {"order": n}} for n, name in enumerate("abcd")]
    >>> uses = [("b", "a", 1), ("c", "a", 1), ("d", "c", 1), ("d", "b", 1)]
    >>> c = from_rows(corpus, corpus[1:], uses, {"name": "c"})
    >>> earlier_only(c, premise_graph(c)).candidates.allowed(np.arange(3)).sum(axis=1).tolist()
    [1, 2, 3]
    """
    rule = EarlierRule(graph.age, _by_rule_row(collection, graph.count_older(collection)))
    return _with_rule(collection, rule)


def without_documents(collection: Collection, doc_ids: Iterable[str]) -> Collection:
    """Return *collection* in which no query may return one of *doc_ids*, such as hubs, which are not judged either.

    Queries that have no relevant document then are left out; the name gets "-nohub".

    >>> from mirblab.data.collection import from_rows
    >>> corpus = [{"_id": name, "text": name, "metadata": {"order": n}} for n, name in enumerate("abcd")]
    >>> uses = [("b", "a", 1), ("c", "a", 1), ("d", "c", 1), ("d", "b", 1)]
    >>> c = from_rows(corpus, corpus[1:], uses, {"name": "c"})
    >>> left = without_documents(c, ["a"])
    >>> left.name, left.query_ids.tolist(), left.candidates.allowed(np.arange(1)).tolist()
    ('c-nohub', ['d'], [[False, True, True, True]])
    """
    unwanted = pd.Index(list(doc_ids), dtype=object)
    check_known(f"document of {collection.name}", map(str, unwanted), collection.doc_ids)
    kept = collection.qrels[~collection.qrels.doc_id.isin(unwanted)]
    has_relevant = collection.query_ids.isin(kept[kept.relevance >= collection.card.relevant_from].query_id)
    if not has_relevant.any():
        raise MirblabError(
            f"{collection.name}: without {counted(len(unwanted), 'document')} no query has a relevant one"
        )
    rows = np.flatnonzero(has_relevant)
    queries = collection.queries.iloc[rows].reset_index(drop=True)
    kept = kept[kept.query_id.isin(queries.query_id)].reset_index(drop=True)
    kept = kept.assign(query_id=pd.Categorical(kept.query_id.astype("str"), pd.Index(queries.query_id, name=None)))
    groups = collection.groups  # whose documents are all judged
    groups = None if groups is None else groups[~groups.doc_id.isin(unwanted)].reset_index(drop=True)
    left = replace(
        collection, name=f"{collection.name}-nohub", queries=queries, qrels=kept,
        candidates=collection.candidates.select(rows), groups=groups,
    )  # fmt: skip
    n_rules = int(left.candidates.rows.max()) + 1 if left.candidates.rows is not None else len(rows)
    places = collection.doc_ids.get_indexer(unwanted)
    pairs = np.repeat(np.arange(n_rules), len(places)), np.tile(places, n_rules)
    return _with_rule(left, ListRule.from_pairs("nohub", *pairs, n_rules, allow=False))


def vary_candidates(collection: Collection, graph: ProofGraph, hubs: Iterable[str]) -> dict[str, Collection]:
    """Return *collection* under four rules of what a query may return, by the ending of its name.

    "all": every document but the query itself; "earlier": those that are older than it; "all-nohub" and
    "earlier-nohub": the same without *hubs*, which are not judged either, so that queries may be left out. Rules of the
    collection other than these remain.

    >>> from mirblab.data.collection import from_rows
    >>> corpus = [{"_id": name, "text": name, "metadata": {"order": n}} for n, name in enumerate("abcd")]
    >>> uses = [("b", "a", 1), ("c", "a", 1), ("d", "c", 1), ("d", "b", 1)]
    >>> c = from_rows(corpus, corpus[1:], uses, {"name": "c"})
    >>> variants = vary_candidates(c, premise_graph(c), ["a"])
    >>> {name: int(one.candidates.allowed(np.arange(1)).sum()) for name, one in variants.items()}
    {'all': 3, 'earlier': 1, 'all-nohub': 2, 'earlier-nohub': 2}
    """
    others = tuple(rule for rule in collection.candidates.rules if not isinstance(rule, EarlierRule | NotSelfRule))
    bare = replace(collection, candidates=replace(collection.candidates, rules=others))
    own = _by_rule_row(bare, graph.doc_ids.get_indexer(bare.query_ids))
    variants = {"all": _with_rule(bare, NotSelfRule(own)), "earlier": earlier_only(bare, graph)}
    variants = {name: replace(one, name=f"{collection.name}-{name}") for name, one in variants.items()}
    unwanted = list(hubs)
    return variants | {f"{name}-nohub": without_documents(one, unwanted) for name, one in variants.items()}


def _with_rule(collection: Collection, rule: Rule) -> Collection:
    candidates = collection.candidates
    return replace(collection, candidates=replace(candidates, rules=(*candidates.rules, rule)))


def _by_rule_row(collection: Collection, numbers: np.ndarray) -> np.ndarray:
    """Return the numbers of the queries at the positions that the rules of the candidates use."""
    rows = collection.candidates.rows
    return numbers if rows is None else np.bincount(rows, numbers).astype(numbers.dtype)


def popularity(graph: ProofGraph, collection: Collection, depth: int = DEPTH) -> pd.DataFrame:
    """Return the run "popularity": each query's documents by ln(1 + n), n the proofs older than it that use them.

    >>> from mirblab.data.collection import from_rows
    >>> corpus = [{"_id": name, "text": name, "metadata": {"order": n}} for n, name in enumerate("abcd")]
    >>> uses = [("b", "a", 1), ("c", "a", 1), ("d", "c", 1), ("d", "b", 1)]
    >>> c = from_rows(corpus, corpus[1:], uses, {"name": "c"})
    >>> popularity(premise_graph(c), c).query("query_id == 'd'").doc_id.tolist()  # a proof of its own does not count
    ['a']
    """
    ages, premises = graph._edges_by_age
    older = graph.count_older(collection)

    def scores(rows: np.ndarray) -> np.ndarray:
        ends, place = np.unique(np.searchsorted(ages, older[rows]), return_inverse=True)
        return np.log1p([np.bincount(premises[:end], minlength=len(graph.age)) for end in ends])[place]

    return _run(collection, scores, "popularity", depth)


def pagerank_prior(
    graph: ProofGraph,
    collection: Collection,
    found: pd.DataFrame | None = None,
    *,
    depth: int = DEPTH,
) -> pd.DataFrame:
    """Return the run "pagerank", or "personalised" with *found*: documents by the probability that a walk is there.

    A walk goes from a theorem to one of its premises, each as likely, and with probability 0.15 (0.5 with *found*), or
    where there is no premise, begins anew: at any document that is older than the query, or with *found*, a run of
    *collection*, at one of its first 100 documents in proportion to 1 / rank. PageRank: Brin and Page, WWW 1998;
    personalised: Haveliwala, WWW 2002. Since every edge goes to an older document, the equations are triangular and are
    solved exactly.

    >>> from mirblab.data.collection import from_rows
    >>> corpus = [{"_id": name, "text": name, "metadata": {"order": n}} for n, name in enumerate("abcd")]
    >>> uses = [("b", "a", 1), ("c", "a", 1), ("d", "c", 1), ("d", "b", 1)]
    >>> c = from_rows(corpus, corpus[1:], uses, {"name": "c"})
    >>> pagerank_prior(premise_graph(c), c).query("query_id == 'c'").doc_id.tolist()
    ['a', 'b']
    """
    name = "pagerank" if found is None else "personalised"
    solve, older = _walk_solver(graph, 1 - TELEPORT[name]), graph.count_older(collection)
    starts = None if found is None else _first_documents(graph, collection, found)

    def scores(rows: np.ndarray) -> np.ndarray:
        if starts is not None:
            return solve(starts[rows].toarray())
        ends, place = np.unique(older[rows], return_inverse=True)
        return solve((graph.age < ends[:, None]).astype(np.float64))[place]

    return _run(collection, scores, name, depth)


def _walk_solver(graph: ProofGraph, damping: float) -> Callable[[np.ndarray], np.ndarray]:
    """Return a function from where walks begin, (n, n_docs), to the probabilities of being at each document.

    With r the starts, P the steps and d the damping, x = d P'x + c r for a constant c that also holds the walks that
    ended without a premise; so x is (I - d P')⁻¹ r, divided by its sum.
    """
    from scipy.sparse import csc_array, diags_array, eye_array
    from scipy.sparse.linalg import splu

    by_age = np.argsort(graph.age)
    steps = diags_array(damping / np.maximum(np.diff(graph.uses.indptr), 1)) @ graph.uses
    equations = csc_array((eye_array(len(by_age)) - steps.T).tocsr()[by_age][:, by_age])
    factors = splu(equations, permc_spec="NATURAL", diag_pivot_thresh=0.0)  # triangular: no entries are added

    def solve(starts: np.ndarray) -> np.ndarray:
        visits = np.empty_like(starts)
        visits[:, by_age] = factors.solve(np.ascontiguousarray(starts[:, by_age].T)).T
        return visits / np.maximum(visits.sum(axis=1, keepdims=True), np.finfo(float).tiny)

    return solve


def expand_by_neighbours(
    graph: ProofGraph, collection: Collection, found: pd.DataFrame, depth: int = DEPTH
) -> pd.DataFrame:
    """Return the run "neighbours": each query's documents by the share of the theorems found that use them, 0 to 1.

    The theorems are the first 100 documents of *found*, a run of *collection*, each weighted by 1 / rank. A premise is
    returned whether or not its text was found. After the premise selection by nearest neighbours of Kaliszyk and Urban
    ("Learning-assisted automated reasoning with Flyspeck", Journal of Automated Reasoning 2014).

    >>> from mirblab.data.collection import from_rows
    >>> corpus = [{"_id": name, "text": name, "metadata": {"order": n}} for n, name in enumerate("abcd")]
    >>> uses = [("b", "a", 1), ("c", "a", 1), ("d", "c", 1), ("d", "b", 1)]
    >>> c = from_rows(corpus, corpus[1:], uses, {"name": "c"})
    >>> found = pd.DataFrame({"query_id": "d", "doc_id": ["b", "a"], "score": [2.0, 1.0]})
    >>> found = runs.order_run(found.astype({"query_id": c.qrels.query_id.dtype, "doc_id": c.qrels.doc_id.dtype}))
    >>> neighbours = expand_by_neighbours(premise_graph(c), c, found)
    >>> neighbours.doc_id.tolist(), f"{neighbours.score[0]:.2f}"
    (['a'], '0.67')
    """
    starts = _first_documents(graph, collection, found)
    return _run(collection, lambda rows: (starts[rows] @ graph.uses).toarray(), "neighbours", depth)


def _first_documents(graph: ProofGraph, collection: Collection, found: pd.DataFrame) -> csr_array:
    """Return 1 / rank of the first documents of each query, divided by their sum, (n_queries, n_docs).

    Documents that are not older than the query, such as itself, are left out: their proofs are not known yet.
    """
    from scipy.sparse import csr_array

    first = runs.cut_run(found, N_FOUND)
    queries, docs = first.query_id.cat, first.doc_id.cat
    if not (queries.categories.equals(collection.query_ids) and docs.categories.equals(collection.doc_ids)):
        raise MirblabError(f"the run is not one of {collection.name}: its ids differ; search this collection")
    weights, rows, columns = 1.0 / first["rank"].to_numpy(), queries.codes.to_numpy(), docs.codes.to_numpy()
    is_older = graph.age[columns] < graph.count_older(collection)[rows]
    weights, rows, columns = weights[is_older], rows[is_older], columns[is_older]
    weights /= np.bincount(rows, weights, minlength=len(collection.query_ids))[rows]
    return csr_array((weights, (rows, columns)), (len(collection.query_ids), len(collection.doc_ids)))


def _run(collection: Collection, scores: Callable[[np.ndarray], np.ndarray], name: str, depth: int) -> pd.DataFrame:
    """Return the *depth* documents with the best scores above 0; *scores* gives those of rows of queries."""
    check_positive(depth=depth)
    parts = []
    for start in range(0, len(collection.query_ids), _BLOCK):
        rows = np.arange(start, min(start + _BLOCK, len(collection.query_ids)))
        block = scores(rows).astype(np.float32)
        block[block <= 0] = -np.inf
        places, docs, best = top_k(block, depth, collection.candidates.allowed(rows))
        parts.append((places + start, docs, best))
    queries, docs, best = (np.concatenate(column) for column in zip(*parts, strict=True))
    return runs.from_positions(queries, docs, best, collection.query_ids, collection.doc_ids, name, collection.name)
