"""collection_report: what makes a collection easier, harder or less fair than it looks, as tables and sentences."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table

from mirblab.core import terminal
from mirblab.core.errors import MirblabError, check_not_negative, check_positive
from mirblab.core.wording import counted, shorten_label
from mirblab.data.collection import Collection
from mirblab.data.near_duplicates import RepeatedTexts, find_repeats, fold_text
from mirblab.data.parts import texts_at
from mirblab.display.escape import format_value
from mirblab.encoders.encoding import Encoder, encoder
from mirblab.evaluation import measures
from mirblab.sources.catalogue import load
from mirblab.sources.shared.lean_source import MODIFIERS

UNJUDGED = np.iinfo(np.int32).min

COLUMNS = ["query_id", "doc_id", "kind", "text"]
MIN_WHOLE_WORDS = 5  # shorter texts are not searched for in others
_DECLARED = re.compile(
    rf"\s*(?:@\[[^\]]*\]\s*)*(?:(?:{MODIFIERS})\s+)*"
    r"(?:theorem|lemma|def|definition|abbrev|structure|class|instance|inductive|axiom|corollary|fact|record|fixpoint|"
    r"proposition)\s+([^\W\d][^\s:({\[⦃⟨]*)(?=\s*(?:[:({\[⦃⟨]|where\b|extends\b|$))",
    re.IGNORECASE,
)  # what follows the name distinguishes it from prose: "Definition of a limit"
_LABEL = re.compile(
    r"(?<![\w-])[a-z]+(?:-[a-z0-9]+)*-(?:lemma|theorem|proposition|definition|remark|example|exercise|situation|"
    r"section|equation|item)-[a-z0-9]+(?:-[a-z0-9]+)*"
)
_REMNANT = re.compile(
    r"(?<![A-Za-z])\\?(?:(?:eq|auto|[cC]|name|page|hyper)?ref|label|cite[pt]?|lean|uses)\*?(?:\[[^\]]*\])?"
    r"\{[^}]*[A-Za-z]{3}[^}]*\}"
)

NAMING = ("id", "title", "declaration", "label")
OWN = "queries that may return the document of their own id"
RELATIONS = {
    "relevant": "queries that nearly repeat a relevant document",
    "unjudged": "queries that nearly repeat an unjudged document",
    "judged 0": "queries that nearly repeat a document judged not relevant",
}
BARRED = "queries that nearly repeat a document which is no candidate"
REPEATED_QUERIES = "queries that nearly repeat an earlier query"
COPIES = "documents that repeat an earlier one"
NEAR = "documents that nearly repeat an earlier one"
NAMES = "queries that contain a name of their answer: an identifier"
WORDS = "queries that contain a name of their answer: a plain word"
TITLES = "queries that contain the title of their answer"
NAMED = "queries whose own name occurs in their answer"
WHOLE = "queries that are contained in their answer, or contain it"
LEFT = "queries that contain a reference"
REFERENCES = "documents that contain a reference"

_LEAST_QUERIES = 6  # five differences of one sign have p = 2 / 2^5 in a permutation test, which is more than 0.05
FEW, MUCH = 0.01, 0.1  # the smallest shares of documents, and of truncated texts, that are reported
_CLEAR_LENGTH_BIAS = 0.1, 5.0  # distance of the AUC of length from 0.5, and in standard errors, to be reported


@dataclass(frozen=True)
class Evidence:
    """The tables and numbers from which the findings are written; the tables are those of a report."""

    collection: Collection
    summary: pd.DataFrame
    leaks: pd.DataFrame
    by_chance: int
    auc: float
    z: float
    truncation: pd.DataFrame
    judged: pd.DataFrame
    overlap: pd.DataFrame

    def count(self, what: str) -> tuple[int, float, str]:
        """Return count, share and examples of a row of the summary."""
        row = self.summary[self.summary.what == what].iloc[0]
        return int(row["count"]), float(row.share), str(row.examples)


@dataclass(frozen=True, repr=False)
class Report:
    """Findings about a collection: sentences that say what to do, most severe first, and the tables behind them.

    - `summary`: what, count, share (of the queries, documents or texts that could show it), examples (ids)
    - `duplicates`: query_id, doc_id, jaccard, is_relevant, relation ("relevant", "judged 0", "unjudged", "own"),
      is_candidate; `copies`: doc_id, other_id, jaccard, for documents that repeat an earlier one
    - `leaks`: see `find_leaks`; `lengths`: words per text; `truncation`: texts beyond encoders' lengths
    - `judged`: judgements and relevant documents per query, and Judged@10 of the runs
    - `overlap`: other, what, count, share, near_count, near_share, examples
    """

    collection: str
    findings: list[str]
    summary: pd.DataFrame
    duplicates: pd.DataFrame
    copies: pd.DataFrame
    leaks: pd.DataFrame
    lengths: pd.DataFrame
    truncation: pd.DataFrame
    judged: pd.DataFrame
    overlap: pd.DataFrame
    notes: list[str]

    def tables(self) -> dict[str, pd.DataFrame]:
        """Return the tables that are short enough to be shown whole, by title; empty ones are left out."""
        tables = {
            "what was checked": self.summary,
            "words per text": self.lengths,
            "texts beyond an encoder's length": self.truncation,
            "judgements per query": self.judged,
            "overlap with other collections": self.overlap,
        }
        return {title: table for title, table in tables.items() if len(table)}

    def _repr_html_(self) -> str:
        from mirblab.display.escape import plain_html
        from mirblab.display.table_formats import frame_html

        items = "".join(f"<li>{plain_html(text)}</li>" for text in self.findings)
        first = f"<ol>{items}</ol>" if items else "<p>There are no findings.</p>"
        parts = [frame_html(table, caption=title) for title, table in self.tables().items()]
        notes = [f"<p><small>{plain_html(note)}</small></p>" for note in self.notes]
        return "\n".join([f"<h3>{plain_html(self.collection)}</h3>", first, *parts, *notes])

    def __repr__(self) -> str:
        findings = [f"- {text}" for text in self.findings] or ["There are no findings."]
        return "\n".join([f"Report on {self.collection}", *findings])


_WIDEST = 100


def report(
    collection: str | Collection,
    *,
    encoders: Sequence[str] = ("minilm",),
    others: Sequence[str | Collection] = (),
    runs: Sequence[pd.DataFrame] = (),
    threshold: float = 0.8,
    seed: int = 0,
    n_sample: int = 2_000,
) -> Report:
    """Return a report on what makes the task of a collection easier, harder or less fair than it looks.

    Near-duplicates are pairs whose sets of word triples have a Jaccard similarity of *threshold* or more. *encoders*:
    those whose maximum length the texts may exceed, counted on *n_sample* texts a role, drawn by *seed*. *others*:
    collections whose texts may occur here. *runs*: whose first ten documents are looked up in the judgements.

    >>> found = report("mini-qa", encoders=())
    >>> found.duplicates.columns.tolist()
    ['query_id', 'doc_id', 'jaccard', 'is_relevant', 'relation', 'is_candidate']
    """
    check_positive(n_sample=n_sample)
    check_not_negative(seed=seed)
    collection, *others = map(load, [collection, *others])
    for other in others:
        if (other.name, other.split) == (collection.name, collection.split):
            raise MirblabError(f"{other.name} would be compared with itself; name another collection, or leave it out")
    groups = [collection.query_texts, collection.texts]
    groups += [texts for other in others for texts in (other.query_texts, other.texts)]
    same = find_repeats(groups, threshold, seed, n_asked=2)
    duplicates, copies = _duplicates(collection, same), _copies(collection, same)
    named, by_chance = find_leaks(collection, seed)
    words, auc, z = length_table(collection)
    truncation, problems = truncation_table(collection, encoders, n_sample, seed)
    judged = judgement_table(collection, runs)
    overlap = overlap_table(collection, others, same)
    summary = summarize_findings(collection, duplicates, copies, named, same.within(0), truncation)
    evidence = Evidence(collection, summary, named, by_chance, auc, z, truncation, judged, overlap)
    return Report(
        collection.name, describe_findings(evidence) + problems, summary, duplicates, copies, named, words, truncation,
        judged, overlap, _notes(same, threshold, n_sample),
    )  # fmt: skip


def _duplicates(collection: Collection, same: RepeatedTexts) -> pd.DataFrame:
    repeats = same.between(0, 1)
    queries, docs = repeats.one.to_numpy(), repeats.other.to_numpy()
    relevance = pair_relevances(collection, queries, docs)
    is_relevant = relevance >= collection.card.relevant_from
    is_own = collection.query_ids[queries] == collection.doc_ids[docs]
    relation = np.select([is_own, is_relevant, relevance > UNJUDGED], ["own", "relevant", "judged 0"], "unjudged")
    return pd.DataFrame({
        "query_id": collection.query_ids[queries], "doc_id": collection.doc_ids[docs], "jaccard": repeats.jaccard,
        "is_relevant": is_relevant, "relation": relation, "is_candidate": collection.candidates.permits(queries, docs),
    })  # fmt: skip


def _copies(collection: Collection, same: RepeatedTexts) -> pd.DataFrame:
    repeats = same.within(1)
    ids = collection.doc_ids
    return pd.DataFrame({"doc_id": ids[repeats.other], "other_id": ids[repeats.one], "jaccard": repeats.jaccard})


def _notes(same: RepeatedTexts, threshold: float, n_sample: int) -> list[str]:
    notes = [
        f"Near-duplicates: Jaccard similarity of word triples from {threshold:g} on, checked exactly; at the threshold "
        f"{100 * same.recall:.2f} % of the pairs are found, above it more.",
        f"Lengths in tokens are counted on at most {n_sample:,} texts a role; the interval is Wilson's, 95 %.",
    ]
    if same.n_cut:
        cut = counted(same.n_cut, "text resembles", "texts resemble")
        notes.append(f"{cut} so many others that not all pairs among them were compared.")
    return notes


def print_report(report: Report, console: Console | None = None) -> None:
    """Print the findings of a *report*, most severe first, its tables and notes (*console* None: standard output)."""
    console = console or terminal.console()
    count = len(report.findings)
    title = counted(count, "finding", "findings, most severe first") if count else "no findings"
    console.print(f"{report.collection}: {title}", style="bold")
    for number, text in enumerate(report.findings, 1):
        console.print(f"{number:3d}. {text}", soft_wrap=True)
    for title, table in report.tables().items():
        console.print(_console_table(title, table))
    for note in report.notes:
        console.print(note, soft_wrap=True, style="dim")


def _console_table(title: str, table: pd.DataFrame) -> Table:
    drawn = Table(title=title, title_justify="left")
    for name in table.columns:
        number = pd.api.types.is_numeric_dtype(table[name])
        drawn.add_column(str(name), justify="right" if number else "left", overflow="fold")
    for row in table.itertuples(index=False):
        drawn.add_row(*(_console_cell(name, value) for name, value in zip(table.columns, row, strict=True)))
    return drawn


def _console_cell(name: object, value: object) -> str:
    if isinstance(value, float) and value == value and str(name) in ("share", "near_share", "low", "high"):
        return f"{100 * value:.1f} %"
    return shorten_label(format_value(value), _WIDEST)


def summarize_findings(
    collection: Collection, duplicates: pd.DataFrame, copies: pd.DataFrame, leaks: pd.DataFrame,
    repeated_queries: pd.DataFrame, truncation: pd.DataFrame, n_examples: int = 3,
) -> pd.DataFrame:  # fmt: skip
    """Return what, count, share and examples of every check, also of those that found nothing."""
    n_queries, n_docs = len(collection.queries), len(collection.corpus)
    rows: list[dict[str, Any]] = []

    def add(what: str, ids: Iterable[str], total: int) -> None:
        once = list(dict.fromkeys(map(str, ids)))
        shown = ", ".join(once[:n_examples])
        rows.append({"what": what, "count": len(once), "share": len(once) / max(total, 1), "examples": shown})

    add(OWN, self_returning_queries(collection), n_queries)
    for relation, what in RELATIONS.items():
        chosen = (duplicates.relation == relation) & duplicates.is_candidate
        add(what, duplicates.query_id[chosen], n_queries)
    add(BARRED, duplicates.query_id[~duplicates.is_candidate], n_queries)
    add(REPEATED_QUERIES, collection.query_ids[repeated_queries.other], n_queries)
    add(COPIES, copies.doc_id[copies.jaccard == 1], n_docs)
    add(NEAR, copies.doc_id[copies.jaccard < 1], n_docs)
    for what, chosen in _leak_masks(leaks):
        add(what, leaks.query_id[chosen], n_queries)
    add(REFERENCES, leaks.doc_id[(leaks.kind == "reference") & (leaks.query_id == "")], n_docs)
    total = {"queries": n_queries, "documents": n_docs}
    for what, count in collection.oddities.items():
        share = count / max(total.get(what.split()[0], n_queries + n_docs), 1)
        rows.append({"what": what, "count": count, "share": share, "examples": ""})
    for row in truncation.itertuples():
        what = f"{row.role} texts longer than {row.encoder}'s {row.max_length:,} tokens (of {row.sampled:,} looked at)"
        rows.append({"what": what, "count": row.truncated, "share": row.share, "examples": ""})
    return pd.DataFrame(rows)


def _leak_masks(leaks: pd.DataFrame) -> Iterator[tuple[str, pd.Series]]:
    names = leaks.kind.isin(NAMING) & (leaks.kind != "title")
    can_only_be = leaks.text.map(is_identifier).astype(bool)
    yield NAMES, names & can_only_be
    yield WORDS, names & ~can_only_be
    yield TITLES, leaks.kind == "title"
    yield NAMED, leaks.kind == "query's name"
    yield WHOLE, leaks.kind.isin(["query in answer", "answer in query"])
    yield LEFT, (leaks.kind == "reference") & (leaks.query_id != "")


def describe_findings(evidence: Evidence) -> list[str]:
    """Return the findings as sentences, each with what to do about it; those that make values wrong come first."""
    findings = [
        *_on_duplicates(evidence),
        *_on_leaks(evidence),
        *_on_lengths(evidence),
        *_on_judgements(evidence),
        *_on_overlap(evidence),
    ]
    return [text for _, text in sorted(findings, key=lambda pair: -pair[0])]


def _on_duplicates(evidence: Evidence) -> Iterator[tuple[float, str]]:
    count, share, shown = evidence.count(OWN)
    if count:
        verbs = "is a document and may return itself", "are documents and may return themselves"
        yield 9 + share, (f"{_how_many(count, share, 'query', *verbs)}, for example {shown}: put candidates = "
                          "\"not-self\" into the card.")  # fmt: skip
    missed = [evidence.count(RELATIONS[relation]) for relation in ("unjudged", "judged 0")]
    if any(count for count, *_ in missed):
        shown = ", ".join(text for *_, text in missed if text)
        yield 6 + missed[0][1] + missed[1][1], (
            f"{counted(missed[0][0], 'query nearly repeats', 'queries nearly repeat')} a document that is not judged, "
            f"{missed[1][0]:,} one that is judged not relevant, for example {shown}: read such documents; judge them "
            "relevant, or leave them out of the candidates, since a system that finds them is penalised.")  # fmt: skip
    count, share, shown = evidence.count(RELATIONS["relevant"])
    if count:
        repeat = _how_many(count, share, "query", "nearly repeats", "nearly repeat")
        yield 3 + share, (f"{repeat} a relevant document, for example {shown}: "
                          "if the task is to find duplicates, shared words are enough for these; otherwise the "
                          "answer was copied from the query. Report the measures without these, too.")  # fmt: skip
    count, share, shown = evidence.count(REPEATED_QUERIES)
    if count:
        repeat = _how_many(count, share, "query", "nearly repeats", "nearly repeat")
        yield 2 + share, (f"{repeat} another query, for example {shown}: "
                          "significance tests assume independent queries; keep one of each group.")  # fmt: skip
    counts = [evidence.count(what) for what in (COPIES, NEAR)]
    if sum(share for _, share, _ in counts) >= FEW:
        yield 4 + counts[0][1] + counts[1][1], (
            f"{counted(counts[0][0], 'document repeats', 'documents repeat')} an earlier one and "
            f"{counted(counts[1][0], 'nearly does', 'nearly do')}, for example "
            f"{', '.join(text for *_, text in counts if text)}: where one of two such documents is relevant and the "
            "other unjudged, the value of a measure depends on the order of ties; merge them.")  # fmt: skip


def _how_many(count: int, share: float, noun: str, one: str, several: str) -> str:
    return f"{counted(count, noun)} ({100 * share:.1f} %) {one if count == 1 else several}"


def _on_leaks(evidence: Evidence) -> Iterator[tuple[float, str]]:
    names, words, titles = (evidence.count(what) for what in (NAMES, WORDS, TITLES))
    once = evidence.leaks[evidence.leaks.kind.isin(NAMING)].query_id.nunique()
    if once > 2 * evidence.by_chance:
        shown = ", ".join(evidence.leaks.text[evidence.leaks.kind.isin(NAMING)].drop_duplicates().head(5))
        share = once / max(len(evidence.collection.queries), 1)
        yield (8 if share >= FEW else 4) + share, (
            f"{counted(once, 'query contains', 'queries contain')} a name of the answer ({names[0]:,} an identifier, "
            f"{words[0]:,} a plain word, {titles[0]:,} a title; {evidence.by_chance:,} would by chance), for example "
            f"{shown}: mask the names, or report the measures without these queries, too.")  # fmt: skip
    for what, *verbs, text in (
        (NAMED, "has", "have", "a name of its own that occurs in the answer: remove it from the query"),
        (WHOLE, "is", "are", "contained in the answer, or the other way round: check whether one was copied"),
        (LEFT, "contains", "contain", "a reference that may name the answer: mask every reference"),
    ):
        count, share, shown = evidence.count(what)
        if count:
            yield 5 + share, f"{_how_many(count, share, 'query', *verbs)} {text}. Examples: {shown}."
    count, share, shown = evidence.count(REFERENCES)
    if count:
        contain = _how_many(count, share, "document", "contains", "contain")
        yield 3.5 + share, (f"{contain} a reference, for example {shown}: mask "
                            "these, since they contain the names of other documents.")  # fmt: skip


def _on_lengths(evidence: Evidence) -> Iterator[tuple[float, str]]:
    if abs(evidence.auc - 0.5) > _CLEAR_LENGTH_BIAS[0] and abs(evidence.z) > _CLEAR_LENGTH_BIAS[1]:
        longer = "longer" if evidence.auc > 0.5 else "shorter"
        chance = max(evidence.auc, 1 - evidence.auc)
        yield 7 + abs(evidence.auc - 0.5), (
            f"Relevant documents differ in length from the others: one is {longer} than another document in "
            f"{100 * chance:.0f} % of all cases (AUC {evidence.auc:.2f}; 0.5 would mean no difference), so that length "
            "alone helps to find them: if some documents are only titles, give all documents the same parts; otherwise "
            "compare with a system that ranks by length alone.")  # fmt: skip
    for row in evidence.truncation.to_dict("records"):
        if row["share"] >= MUCH / 10:
            many = "documents" if row["role"] == "document" else "queries"
            interval = f"{100 * row['low']:.1f} % to {100 * row['high']:.1f} %"
            seen = f"; 95 %: {interval}, from {row['sampled']:,} of {row['texts']:,}"
            yield 4 * (row["share"] >= MUCH) + row["share"], (
                f"{row['encoder']} cuts off {100 * row['share']:.1f} % of the {many} at {row['max_length']:,} tokens"
                f"{seen if row['sampled'] < row['texts'] else ''}: the encoder does not see the rest; take an encoder "
                "with a larger maximum length, or split the texts.")  # fmt: skip


def _on_judgements(evidence: Evidence) -> Iterator[tuple[float, str]]:
    n_queries, split = len(evidence.collection.queries), evidence.collection.split
    if not n_queries:
        yield 11, (f"There is no query in the split '{split}', so that only the documents were examined: take another "
                   "split, or add judgements.")  # fmt: skip
    elif n_queries < _LEAST_QUERIES:
        yield 8, (f"There {'is' if n_queries == 1 else 'are'} {counted(n_queries, 'query')} in the split '{split}': "
                  f"with fewer than {_LEAST_QUERIES} a paired permutation test cannot reach 0.05, however much two "
                  "systems differ: judge more queries.")  # fmt: skip
    without = evidence.collection.oddities.get("queries without a relevant document", 0)
    if without:
        yield 3 + without / len(evidence.collection.queries), (
            f"{counted(without, 'query has', 'queries have')} no relevant document and always the value 0: judge more "
            "documents, or exclude such queries and report that.")  # fmt: skip
    for row in evidence.judged.to_dict("records"):
        if row["what"].startswith("Judged@10") and row["mean"] < 0.9:
            yield 5 + (1 - row["mean"]), (
                f"{row['what']} is {100 * row['mean']:.0f} %: unjudged documents count as not relevant; report prime "
                "measures as well, or judge the first ten documents: "
                f"lab.judge(runs, '{evidence.collection.name}').")  # fmt: skip


def _on_overlap(evidence: Evidence) -> Iterator[tuple[float, str]]:
    for row in evidence.overlap.to_dict("records"):
        if row["near_count"] and not row["what"].startswith("documents that are documents"):
            yield 3 + row["near_share"], (
                f"{row['near_count']:,} {row['what']} ({row['other']}), {row['count']:,} of them word for word, for "
                f"example {row['examples']}: do not train or tune on the one and test on the other.")  # fmt: skip
        elif row["near_share"] >= FEW:
            yield 1 + row["near_share"], (
                f"{100 * row['near_share']:.1f} % of the {row['what']} ({row['other']}), "
                f"{100 * row['share']:.1f} % word for word: their values are not independent.")  # fmt: skip


def length_table(collection: Collection) -> tuple[pd.DataFrame, float, float]:
    """Return words per text (texts, count, mean, least, 5 %, median, 95 %, most), and the AUC of length with its z.

    The AUC is the chance that a relevant document is longer than another document, ties by half (0.5: no information);
    z is its distance from 0.5 in standard errors (Mann & Whitney, 1947); 0.5 and 0 where a side is empty.
    """
    queries, docs = _word_counts(collection.query_texts), _word_counts(collection.texts)
    chosen = collection.qrels.relevance >= collection.card.relevant_from
    is_relevant = np.zeros(len(docs), bool)
    is_relevant[collection.qrels.doc_id.cat.codes.to_numpy()[chosen]] = True
    parts = {"queries": queries, "documents": docs, "relevant documents": docs[is_relevant],
             "other documents": docs[~is_relevant]}  # fmt: skip
    table = pd.DataFrame([{"texts": name, **summarize_numbers(numbers)} for name, numbers in parts.items()])
    return table, *chance_of_larger(docs[is_relevant], docs[~is_relevant])


def _word_counts(texts: Sequence[str]) -> np.ndarray:
    return np.fromiter((len(text.split()) for text in texts), np.int64, len(texts))


def chance_of_larger(sample: np.ndarray, others: np.ndarray) -> tuple[float, float]:
    """Return the probability that one of *sample* is larger than one of *others*, ties by half, and its z."""
    if not len(sample) or not len(others):
        return 0.5, 0.0
    others = np.sort(others)
    below, upto = np.searchsorted(others, sample, "left"), np.searchsorted(others, sample, "right")
    chance = float((below + upto).mean() / 2 / len(others))
    return chance, float((chance - 0.5) / np.sqrt((len(sample) + len(others) + 1) / 12 / len(sample) / len(others)))


def truncation_table(
    collection: Collection, encoders: Sequence[str], n_sample: int = 2_000, seed: int = 0
) -> tuple[pd.DataFrame, list[str]]:
    """Return how many texts exceed each encoder's maximum length (95 % interval), and why some encoders failed."""
    rows, problems, instruction = [], [], collection.card.instruction
    for name in encoders:
        model = encoder(name)
        try:
            for role, texts in (("query", collection.query_texts), ("document", collection.texts)):
                rows.append({"encoder": name, "max_length": model.max_length, "role": role}
                            | _truncated_share(model, role, texts, instruction, n_sample, seed))  # fmt: skip
        except (MirblabError, OSError, ImportError) as error:
            problems.append(f"{name}: lengths in tokens are not known: {error}")
    columns = ["encoder", "max_length", "role", "texts", "sampled", "truncated", "share", "low", "high"]
    return pd.DataFrame(rows, columns=columns), problems


def _truncated_share(
    model: Encoder, role: str, texts: Sequence[str], instruction: str, n_sample: int, seed: int
) -> dict:
    places = np.random.default_rng(seed).permutation(len(texts))[:n_sample]
    count = model.n_truncated(texts_at(texts, np.sort(places)), role, instruction)
    share = count / max(len(places), 1)
    low, high = (share, share) if len(places) == len(texts) else wilson_interval(count, len(places))
    return {"texts": len(texts), "sampled": len(places), "truncated": count, "share": share, "low": low, "high": high}


def judgement_table(collection: Collection, runs: Sequence[pd.DataFrame] = ()) -> pd.DataFrame:
    """Return the judgements and the relevant documents per query, and Judged@10 of each of *runs*, a row each."""
    codes, n_queries = collection.qrels.query_id.cat.codes.to_numpy(), len(collection.queries)
    is_relevant = (collection.qrels.relevance >= collection.card.relevant_from).to_numpy()
    rows = {
        "judged per query": np.bincount(codes, minlength=n_queries),
        "relevant per query": np.bincount(codes[is_relevant], minlength=n_queries),
    }
    for number, run in enumerate(runs, 1):
        name = f"Judged@10 of {run.attrs.get('system') or f'run {number}'}"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", measures.QueryWarning)
            rows[name] = measures.evaluate(run, collection, "Judged@10").value.to_numpy()
    return pd.DataFrame([{"what": what, **summarize_numbers(numbers)} for what, numbers in rows.items()])


def overlap_table(collection: Collection, others: Sequence[Collection], same: RepeatedTexts) -> pd.DataFrame:
    """Return which texts of the *collection* occur in each of *others*, equal (case and white space aside) or near."""
    rows = []
    for number, other in enumerate(others, 1):
        for group, mine, ids in ((0, "queries", collection.query_ids), (1, "documents", collection.doc_ids)):
            for there, theirs in ((2 * number + 1, "documents"), (2 * number, "queries")):
                equal, near = same.shared(group, there)
                counts = {"count": int(equal.sum()), "near_count": int(near.sum())}
                shares = {f"{key.removesuffix('count')}share": n / max(len(ids), 1) for key, n in counts.items()}
                shown = ", ".join(ids[np.flatnonzero(near)[:3]])
                rows.append({"other": other.name, "what": f"{mine} that are {theirs} there", **counts, **shares,
                             "examples": shown})  # fmt: skip
    columns = ["other", "what", "count", "share", "near_count", "near_share", "examples"]
    return pd.DataFrame(rows, columns=columns)


def find_leaks(collection: Collection, seed: int = 0) -> tuple[pd.DataFrame, int]:
    r"""Return the leaks of answers, a row each (query_id, doc_id, kind, text), and how many occur by chance.

    Kinds: "id", "title", "declaration", "label": the query has that name of a relevant document, as whole words;
    "query's name": a relevant document has the name that the query declares or begins with; "query in answer", "answer
    in query": one contains the other; "reference": `\ref{…}` and the like, with words in it, in a query or (query_id
    "") a document. The chance is the number of queries that would name an answer of another query, assigned by *seed*.
    """
    qrels = collection.relevant
    queries, docs = (qrels[name].cat.codes.to_numpy() for name in ("query_id", "doc_id"))
    names = _NameSearch(collection)
    rows = [row for pair in zip(queries.tolist(), docs.tolist(), strict=True) for row in names.in_pair(*pair)]
    rows += names.remnants()
    return pd.DataFrame(rows, columns=COLUMNS, dtype="str"), _count_leaks_by_chance(names, queries, docs, seed)


class _NameSearch:
    def __init__(self, collection: Collection) -> None:
        self.query_ids, self.doc_ids = collection.query_ids, collection.doc_ids
        self.queries, self.docs = collection.query_texts, collection.texts
        answers = np.unique(collection.relevant.doc_id.cat.codes.to_numpy().astype(np.int64))
        self.titles = dict(zip(answers.tolist(), collection.corpus.title.iloc[answers], strict=True))
        self.answers = dict(zip(answers.tolist(), texts_at(collection.texts, answers), strict=True))

    def in_pair(self, query: int, doc: int) -> Iterator[tuple[str, str, str, str]]:
        ids = str(self.query_ids[query]), str(self.doc_ids[doc])
        for kind, name in self.named(query, doc):
            yield *ids, kind, name
        for name in declared_names(self.queries[query]):
            if is_identifier(name) and occurs_as_word(name, self.answers[doc]):
                yield *ids, "query's name", name
        query_text, doc_text = fold_text(self.queries[query]), fold_text(self.answers[doc])
        if query_text != doc_text:
            if _is_long(query_text) and query_text in doc_text:
                yield *ids, "query in answer", self.queries[query][:80]
            elif _is_long(doc_text) and doc_text in query_text:
                yield *ids, "answer in query", self.answers[doc][:80]

    def named(self, query: int, doc: int) -> Iterator[tuple[str, str]]:
        """Yield kind and name of each name of the document that the query has; at most one of a kind."""
        text, seen = self.queries[query], set()
        for kind, name in document_names(str(self.doc_ids[doc]), self.titles[doc], self.answers[doc]):
            where, what = (fold_text(text), fold_text(name)) if kind == "title" else (text, name)
            if kind not in seen and occurs_as_word(what, where):
                seen.add(kind)
                yield kind, name

    def remnants(self) -> Iterator[tuple[str, str, str, str]]:
        for place, text in enumerate(self.queries):
            if match := _REMNANT.search(text):
                yield str(self.query_ids[place]), "", "reference", match[0]
        for place, text in enumerate(self.docs):
            if match := _REMNANT.search(text):
                yield "", str(self.doc_ids[place]), "reference", match[0]


def _is_long(text: str) -> bool:
    return len(text.split()) >= MIN_WHOLE_WORDS


def _count_leaks_by_chance(names: _NameSearch, queries: np.ndarray, docs: np.ndarray, seed: int) -> int:
    """Return how many queries name an answer of another query, when each is paired with the answers of one other."""
    order = np.random.default_rng(seed).permutation(np.unique(queries))
    other_query = dict(zip(order.tolist(), np.roll(order, 1).tolist(), strict=True))
    pairs = list(zip(queries.tolist(), docs.tolist(), strict=True))
    judged = set(pairs)
    others = [(other_query[query], doc) for query, doc in pairs if (other_query[query], doc) not in judged]
    return len({query for query, doc in others if any(names.named(query, doc))})


def summarize_numbers(numbers: np.ndarray) -> dict[str, float]:
    """Return count, mean, least, 5 %, median, 95 % and most of some numbers; NaN for none.

    >>> summarize_numbers(np.array([1, 2, 9]))["median"]
    2.0
    """
    names = ("least", "5 %", "median", "95 %", "most")
    if not len(numbers):
        return {"count": 0, "mean": np.nan} | dict.fromkeys(names, np.nan)
    marks = np.quantile(numbers, [0, 0.05, 0.5, 0.95, 1])
    return {"count": len(numbers), "mean": float(np.mean(numbers))} | dict(zip(names, marks.tolist(), strict=True))


def wilson_interval(count: int, n: int, level: float = 0.95) -> tuple[float, float]:
    """Return the interval, of 95 % or another *level*, of the share *count* / *n*, 0 to 1 (Wilson, JASA 1927).

    >>> [round(end, 3) for end in wilson_interval(0, 30)]
    [0.0, 0.114]
    """
    from scipy.stats import binomtest

    low, high = binomtest(count, n).proportion_ci(level, method="wilson") if n else (0.0, 1.0)
    return float(low), float(high)


def pair_relevances(collection: Collection, queries: np.ndarray, docs: np.ndarray) -> np.ndarray:
    """Return the relevance of each pair of positions, query and document, or UNJUDGED, int32 (n_pairs,)."""
    known = _pair_numbers(*(collection.qrels[name].cat.codes.to_numpy() for name in ("query_id", "doc_id")))
    order, wanted = np.argsort(known), _pair_numbers(queries, docs)
    if not len(known):
        return np.full(len(wanted), UNJUDGED, np.int32)
    places = order[np.minimum(np.searchsorted(known, wanted, sorter=order), len(known) - 1)]
    relevance = collection.qrels.relevance.to_numpy()[places]
    return np.where(known[places] == wanted, relevance, UNJUDGED).astype(np.int32)


def _pair_numbers(queries: np.ndarray, docs: np.ndarray) -> np.ndarray:
    return np.asarray(queries).astype(np.int64) << 32 | np.asarray(docs).astype(np.int64)


def document_names(doc_id: str, title: str, text: str) -> Iterator[tuple[str, str]]:
    """Yield (kind, name), each name once, for what a document is called: title, declared name or label, id.

    >>> list(document_names("pfr:Loop.average", "", "def Loop.average (f : Loop) := ..."))
    [('declaration', 'Loop.average'), ('declaration', 'average'), ('id', 'pfr:Loop.average')]
    """
    declared, tail = list(declared_names(text)), re.split(r"[:/]", doc_id)[-1]
    names = [("title", title)] if len(title.split()) > 1 else []
    names += [("label" if _LABEL.fullmatch(name) else "declaration", name) for name in declared if len(name) > 1]
    names += [("declaration", last) for name in [*declared, tail] if len(last := name.rpartition(".")[2]) > 3
              and "." in name]  # fmt: skip
    names += [("id", name) for name in (doc_id, tail) if is_identifier(name) or (name.isdigit() and len(name) > 4)]
    seen: set[str] = set()
    for kind, name in names:
        if name not in seen:
            seen.add(name)
            yield kind, name


def declared_names(text: str) -> Iterator[str]:
    """Yield the name that a text declares, and the label that it begins with."""
    if match := _DECLARED.match(text):
        yield match[1]
    if match := _LABEL.match(text):
        yield match[0]


def is_identifier(word: str) -> bool:
    """Return whether a word can only be a name: six or more characters with `_`, `.`, `-` or a capital inside.

    >>> is_identifier("sum_comm"), is_identifier("isHolomorphicOn"), is_identifier("average"), is_identifier("05N2")
    (True, True, False, False)
    """
    return len(word) > 5 and " " not in word and re.search(r"[a-zA-Z0-9][_.:A-Z-]+[a-zA-Z0-9]", word) is not None


def occurs_as_word(name: str, text: str) -> bool:
    """Return whether *name* occurs in *text* as a whole word of the same case."""
    if name not in text:
        return False
    return re.search(rf"(?<![\w.]){re.escape(name)}(?![\w'])(?!\.\w)", text) is not None


def self_returning_queries(collection: Collection) -> pd.Index:
    """Return the ids of the queries that may return the document of their own id, though it is not relevant."""
    queries = np.flatnonzero(collection.query_ids.isin(collection.doc_ids))
    docs = collection.doc_ids.get_indexer(collection.query_ids[queries])
    wanted = pair_relevances(collection, queries, docs) >= collection.card.relevant_from
    return collection.query_ids[queries[collection.candidates.permits(queries, docs) & ~wanted]]
