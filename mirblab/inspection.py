"""inspection: a report on any collection: near-duplicates, leaks, lengths, overlap and what was judged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from mirblab import coverage, findings, leaks, lengths, tally
from mirblab.collection import Collection
from mirblab.repeats import Repeats, repeats


@dataclass(frozen=True, repr=False)
class Report:
    """What was found in a collection, as tables, and what to do about it, in sentences, worst first.

    - `summary`: what, count, share (of the queries, documents or texts that could show it), examples (ids)
    - `duplicates`: query_id, doc_id, jaccard, is_relevant, relation ("relevant", "judged 0", "unjudged", "own"),
      is_candidate; `twins`: doc_id, other_id, jaccard, for documents that repeat an earlier one
    - `leaks`: query_id, doc_id, kind, text, as `leaks.leaks` gives them
    - `lengths`: words per text; `truncation`: texts beyond each encoder's length, with a 95 % interval
    - `judged`: judgements and relevant documents per query, and Judged@10 of the runs
    - `overlap`: other, what, count, share, near_count, near_share, examples
    """

    collection: str
    findings: list[str]
    summary: pd.DataFrame
    duplicates: pd.DataFrame
    twins: pd.DataFrame
    leaks: pd.DataFrame
    lengths: pd.DataFrame
    truncation: pd.DataFrame
    judged: pd.DataFrame
    overlap: pd.DataFrame
    notes: list[str]

    def tables(self) -> dict[str, pd.DataFrame]:
        """Return the tables that are short enough to be shown whole, by title; empty ones are left out."""
        found = {
            "what was looked for": self.summary,
            "words per text": self.lengths,
            "texts beyond an encoder's length": self.truncation,
            "judgements per query": self.judged,
            "overlap with other collections": self.overlap,
        }
        return {title: table for title, table in found.items() if len(table)}

    def _repr_html_(self) -> str:
        from mirblab.browsing import html
        from mirblab.escape import plain_html

        items = "".join(f"<li>{plain_html(text)}</li>" for text in self.findings)
        first = f"<ol>{items}</ol>" if items else "<p>Nothing stands out.</p>"
        parts = [html(table, caption=title) for title, table in self.tables().items()]
        notes = [f"<p><small>{plain_html(note)}</small></p>" for note in self.notes]
        return "\n".join([f"<h3>{plain_html(self.collection)}</h3>", first, *parts, *notes])

    def __repr__(self) -> str:
        return "\n".join([f"Report on {self.collection}", *(f"- {text}" for text in self.findings)])


def report(
    collection: Collection,
    *,
    encoders: Sequence[str] = ("minilm",),
    others: Sequence[Collection] = (),
    runs: Sequence[pd.DataFrame] = (),
    threshold: float = 0.8,
    seed: int = 0,
    n_sample: int = 2_000,
) -> Report:
    """Return what is odd in a collection: what makes a task easier, harder or less fair than it looks.

    Near-duplicates are pairs whose sets of word triples have a Jaccard similarity from *threshold* on. *encoders*:
    whose maximum length the texts may exceed, counted on at most *n_sample* texts a role. *others*: collections
    whose texts may occur here. *runs*: whose first ten documents are looked up in the judgements. The same *seed*
    gives the same report.

    >>> from mirblab.shelf import load
    >>> found = report(load("mini-qa"), encoders=())
    >>> found.duplicates.columns.tolist()
    ['query_id', 'doc_id', 'jaccard', 'is_relevant', 'relation', 'is_candidate']
    """
    groups = [collection.query_texts, collection.texts]
    groups += [texts for other in others for texts in (other.query_texts, other.texts)]
    same = repeats(groups, threshold, seed, n_asked=2)
    duplicates, twins = _duplicates(collection, same), _twins(collection, same)
    named, by_chance = leaks.leaks(collection, seed)
    words, auc, z = lengths.lengths(collection)
    truncation, problems = lengths.truncation(collection, encoders, n_sample, seed)
    judged = coverage.judged(collection, runs)
    overlap = coverage.overlap(collection, others, same)
    summary = tally.tally(collection, duplicates, twins, named, same.within(0), truncation)
    facts = findings.Facts(collection, summary, duplicates, named, by_chance, auc, z, truncation, judged, overlap)
    return Report(
        collection.name, findings.sentences(facts) + problems, summary, duplicates, twins, named, words, truncation,
        judged, overlap, _notes(same, threshold, n_sample),
    )  # fmt: skip


def _duplicates(collection: Collection, same: Repeats) -> pd.DataFrame:
    """Return the queries and documents that nearly repeat each other, and what the judgements say of them."""
    found = same.between(0, 1)
    queries, docs = found.one.to_numpy(), found.other.to_numpy()
    relevance = coverage.relevances(collection, queries, docs)
    is_relevant = relevance >= collection.card.relevant_from
    own = collection.query_ids[queries] == collection.doc_ids[docs]
    relation = np.select([own, is_relevant, relevance > coverage.UNJUDGED], ["own", "relevant", "judged 0"], "unjudged")
    return pd.DataFrame({
        "query_id": collection.query_ids[queries], "doc_id": collection.doc_ids[docs], "jaccard": found.jaccard,
        "is_relevant": is_relevant, "relation": relation, "is_candidate": collection.candidates.permits(queries, docs),
    })  # fmt: skip


def _twins(collection: Collection, same: Repeats) -> pd.DataFrame:
    found = same.within(1)
    ids = collection.doc_ids
    return pd.DataFrame({"doc_id": ids[found.other], "other_id": ids[found.one], "jaccard": found.jaccard})


def _notes(same: Repeats, threshold: float, n_sample: int) -> list[str]:
    notes = [
        f"Near-duplicates: Jaccard similarity of word triples from {threshold:g} on, checked exactly; at the threshold "
        f"{same.recall:.2%} of the pairs are found, above it more.",
        f"Lengths in tokens are counted on at most {n_sample:,} texts a role; the interval is Wilson's, 95 %.",
    ]
    if same.n_cut:
        notes.append(f"{same.n_cut:,} texts resemble so many others that not all pairs among them were compared.")
    return notes
