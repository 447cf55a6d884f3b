"""one_query: the documents, values, near-duplicates, terms and formulas of one query under several systems."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from mirblab.analysis.features import query_features
from mirblab.analysis.partners import judged_grades
from mirblab.analysis.query_clusters import points
from mirblab.core.errors import MirblabError
from mirblab.data.collection import Collection
from mirblab.data.near_duplicates import near_pairs
from mirblab.display.grades import grade_meaning
from mirblab.display.text import escape_html, excerpts, text_html
from mirblab.encoders.encoding import encoder
from mirblab.evaluation.measures import evaluate
from mirblab.evaluation.significance import value_matrix
from mirblab.formula.explain import explain_match as explain_formula
from mirblab.formula.in_text import FormulaReader
from mirblab.formula.index import Index, stored_index
from mirblab.retrieval.bm25 import explain
from mirblab.retrieval.late_interaction import token_similarities
from mirblab.retrieval.systems import search_options, system

if TYPE_CHECKING:
    from IPython.display import HTML


UNJUDGED = "unjudged"


@dataclass(frozen=True)
class OneQuery:
    """One query of a collection, what each system returned for it (doc_id, score, rank), and its judgements by id."""

    collection: Collection
    query_id: str
    found: dict[str, pd.DataFrame]
    grades: dict[str, int]

    @property
    def text(self) -> str:
        """Return the query's text."""
        return self.collection.query(self.query_id)

    @cached_property
    def relevant(self) -> list[str]:
        """Return the relevant documents, the highest grade first, then by id."""
        level = self.collection.card.relevant_from
        return sorted(
            (name for name, grade in self.grades.items() if grade >= level), key=lambda n: (-self.grades[n], n)
        )

    def grade(self, doc_id: str) -> str:
        """Return the grade of a document as text, "unjudged" where it has none."""
        return str(self.grades.get(doc_id, UNJUDGED))

    def rank(self, system: str, doc_id: str) -> float:
        """Return a document's rank under a system, NaN where it was not returned."""
        own = self.found[system]
        at = np.flatnonzero(own.doc_id.to_numpy() == doc_id)
        return float(own["rank"].iloc[at[0]]) if len(at) else np.nan

    def best(self, system: str) -> str:
        """Return the document that a system has first, "" where it returned nothing."""
        return str(self.found[system].doc_id.iloc[0]) if len(self.found[system]) else ""

    def answer(self) -> str:
        """Return the best judged document, "" where nothing is relevant."""
        return self.relevant[0] if self.relevant else ""


_MOST = 10  # unjudged documents: 1,024 ways to judge them

_TOKENS = 12  # that are named of a formula
_WORDS = 8  # with which what is cut off begins

_LONGEST = 1_500  # characters of a text
_PAGE = "display:flex;flex-wrap:wrap;gap:0.5em 1.5em;align-items:flex-start"
_TEXT = "flex:1 1 24em;max-width:60em;min-width:0;overflow-wrap:anywhere"


def describe_query(collection: Collection, query_id: str, runs: Sequence[pd.DataFrame]) -> OneQuery:
    """Return what *runs*, each of one system, say of one query; MirblabError for an unknown query.

    >>> from mirblab.sources.catalogue import load
    >>> from mirblab.retrieval.systems import system
    >>> c = load("mini-qa")
    >>> one = describe_query(c, c.query_ids[0], [system("bm25").search(c)])
    >>> one.rank("bm25", one.best("bm25"))
    1.0
    """
    collection.query(query_id)  # an unknown one is refused here
    found = {}
    for run in runs:
        own = run[run.query_id == query_id][["doc_id", "score", "rank"]]
        found[str(run.attrs.get("system") or "run")] = own.assign(doc_id=own.doc_id.astype("str")).reset_index(
            drop=True
        )
    if len(found) != len(runs) or not found:
        raise MirblabError(f"each system once and at least one; found {', '.join(found) or 'none'} in {len(runs)} runs")
    return OneQuery(collection, query_id, found, judged_grades(collection, query_id))


def most_different_query(values: pd.DataFrame, measure: str, collection: str = "") -> str:
    """Return the query on which the systems' values lie farthest apart, the first by id where several do.

    >>> rows = [("a", "q1", 0.5), ("b", "q1", 0.4), ("a", "q2", 0.1), ("b", "q2", 0.9)]
    >>> values = pd.DataFrame(rows, columns=["system", "query_id", "value"]).assign(collection="c", measure="RR")
    >>> most_different_query(values, "RR")
    'q2'
    """
    matrix = value_matrix(values, measure, collection)
    gaps = np.ptp(matrix.to_numpy(), axis=1).round(12)
    return str(matrix.index[int(np.argmax(gaps))])


def judged_ranks(one: OneQuery) -> pd.DataFrame:
    """Return the judged documents with their rank under each system: doc_id, grade, is_relevant, a column per system.

    The highest grade first, then the best rank; NaN where a system did not return the document.

    >>> import mirblab as lab
    >>> c = lab.load("mini-qa")
    >>> one = describe_query(c, c.query_ids[0], [lab.system("bm25").search(c)])
    >>> judged_ranks(one).columns.tolist()
    ['doc_id', 'grade', 'is_relevant', 'bm25']
    """
    rows = [
        (name, grade, name in one.relevant, *(one.rank(s, name) for s in one.found))
        for name, grade in one.grades.items()
    ]
    table = pd.DataFrame(rows, columns=["doc_id", "grade", "is_relevant", *one.found])
    best = table[list(one.found)].min(axis=1).fillna(np.inf)
    return table.iloc[np.lexsort([table.doc_id, best, -table.grade])].reset_index(drop=True)


def top_documents(one: OneQuery, depth: int = 10, longest: int = 120) -> pd.DataFrame:
    """Return the first *depth* documents of each system: system, rank, doc_id, grade, score, of_first, elsewhere, text.

    *of_first* is the score as a share of that of the first (NaN where that is not above 0); *elsewhere* the document's
    ranks in the other systems ("–": not returned). Texts are cut at *longest* characters, no formula in two.

    >>> import mirblab as lab
    >>> c = lab.load("mini-qa")
    >>> one = describe_query(c, c.query_ids[0], [lab.system("bm25").search(c)])
    >>> top_documents(one, depth=2)[["system", "rank", "of_first"]].round(2).values.tolist()
    [['bm25', 1, 1.0], ['bm25', 2, 0.85]]
    """
    parts = []
    for label, own in one.found.items():
        part = own.head(depth)
        others = [other for other in one.found if other != label]
        texts = [one.collection.document(name) for name in part.doc_id]
        columns = {
            "system": label,
            "rank": part["rank"].astype(int),
            "doc_id": part.doc_id,
            "grade": [one.grade(name) for name in part.doc_id],
            "score": part.score.astype(float),
            "of_first": _of_first(own, part.score),
            "elsewhere": [", ".join(f"{s} {place(one.rank(s, name))}" for s in others) for name in part.doc_id],
            "text": excerpts(texts, one.collection.card.task, longest),
        }
        parts.append(pd.DataFrame(columns))
    return pd.concat(parts, ignore_index=True)


def relevant_distances(one: OneQuery) -> pd.DataFrame:
    """Return how far each relevant document is from the top, a row per system and document.

    Columns: system, doc_id, grade, rank, score, first (the score of the system's first document), of_first (the
    document's as a share of it), above (how many documents that are not relevant, unjudged ones among them, stand
    above it). A document that was not returned has NaN.

    >>> import mirblab as lab
    >>> c = lab.load("mini-qa")
    >>> one = describe_query(c, c.query_ids[0], [lab.system("bm25").search(c)])
    >>> relevant_distances(one)[["rank", "above"]].head(2).values.tolist()
    [[2.0, 0.0], [4.0, 1.0]]
    """
    rows = []
    for label, own in one.found.items():
        is_relevant = own.doc_id.isin(one.relevant).to_numpy()
        for name in one.relevant:
            at = np.flatnonzero(own.doc_id.to_numpy() == name)
            found = own.iloc[at[:1]]
            score = float(found.score.iloc[0]) if len(at) else np.nan
            first = float(own.score.iloc[0]) if len(own) else np.nan
            above = float((~is_relevant[: at[0]]).sum()) if len(at) else np.nan
            share = float(_of_first(own, found.score)[0]) if len(at) else np.nan
            rows.append((label, name, one.grades[name], one.rank(label, name), score, first, share, above))
    return pd.DataFrame(rows, columns=["system", "doc_id", "grade", "rank", "score", "first", "of_first", "above"])


def _of_first(own: pd.DataFrame, scores: pd.Series) -> np.ndarray:
    first = float(own.score.iloc[0]) if len(own) else 0.0
    return scores.to_numpy(dtype=float) / first if first > 0 else np.full(len(scores), np.nan)


def similar_queries(one: OneQuery, values: pd.DataFrame, measure: str, by: str = "", n: int = 5) -> pd.DataFrame:
    """Return the *n* other queries whose content is nearest: query_id, cosine, query, and each system's value.

    *by* is an encoder, or "" for terms (see `query_clusters.points`). Empty for a collection of one query.

    >>> import mirblab as lab
    >>> c = lab.load("mini-qa")
    >>> one = describe_query(c, c.query_ids[0], [lab.system("bm25").search(c)])
    >>> values = lab.evaluate(lab.system("bm25").search(c), c, "RR")
    >>> similar_queries(one, values, "RR", n=2).columns.tolist()
    ['query_id', 'cosine', 'query', 'bm25']
    """
    collection = one.collection
    rows = points([collection], by)
    here = collection.query_ids.get_loc(one.query_id)
    cosine = np.asarray((rows @ rows[[here]].T).todense() if not by else rows @ rows[here]).ravel()
    cosine[here] = -np.inf
    order = np.argsort(-cosine.round(6), kind="stable")[: min(n, len(cosine) - 1)]
    near = [str(collection.query_ids[at]) for at in order]
    table = pd.DataFrame({"query_id": near, "cosine": cosine[order].astype(float)})
    table["query"] = excerpts([collection.query(name) for name in near], collection.card.task)
    return table.join(value_matrix(values, measure, collection.name).reindex(near).reset_index(drop=True))


def query_near_duplicates(one: OneQuery, depth: int = 10, threshold: float = 0.8) -> pd.DataFrame:
    """Return near-duplicates of the query and of its documents: what, doc_id, grade, twin, twin_grade, jaccard.

    Looked at are the query itself ("query"), the judged documents and the first *depth* of each system ("document"),
    against the whole corpus, by `near_duplicates.near_pairs`. A pair of different grades, or with an unjudged side,
    moves values.

    >>> import mirblab as lab
    >>> c = lab.load("mini-qa")
    >>> one = describe_query(c, c.query_ids[0], [lab.system("bm25").search(c)])
    >>> len(query_near_duplicates(one))
    0
    """
    collection = one.collection
    wanted = {*one.grades, *(name for own in one.found.values() for name in own.doc_id.head(depth))}
    asked = np.append(collection.doc_ids.isin(list(wanted)), True)
    pairs = near_pairs([*collection.texts, one.text], threshold, asked=asked)
    rows = []
    for left, right, jaccard in zip(pairs.left.tolist(), pairs.right.tolist(), pairs.jaccard.tolist(), strict=True):
        twin = str(collection.doc_ids[left])
        if right == len(collection.texts):
            rows.append(("query", one.query_id, "", twin, one.grade(twin), jaccard))
            continue
        names = sorted((twin, str(collection.doc_ids[right])), key=lambda name: (name not in wanted, name))
        rows.append(("document", names[0], one.grade(names[0]), names[1], one.grade(names[1]), jaccard))
    table = pd.DataFrame(rows, columns=["what", "doc_id", "grade", "twin", "twin_grade", "jaccard"])
    return table.sort_values(
        ["what", "jaccard", "doc_id", "twin"], ascending=[False, False, True, True], ignore_index=True
    )


def place(rank: float) -> str:
    """Return a rank as it is printed, "–" for a document that was not returned.

    >>> place(12.0), place(np.nan)
    ('12', '–')
    """
    return "–" if np.isnan(rank) else f"{int(rank):,}"


def query_bounds(one: OneQuery, measures: list[str], k: int = 10) -> pd.DataFrame:
    """Return each measure as it is and over all ways of judging the unjudged among the first *k* documents.

    Columns: system, measure, value, unjudged (how many of the first k, at most ten), none_relevant (all judged 0),
    all_relevant (all of the highest grade that the query's collection has), low and high (over every subset of them
    being relevant, the others judged 0, and the value as it is). An nDCG may fall when more becomes relevant, since
    the best possible ranking grows as well. MirblabError for k outside 1 to 10.

    >>> from mirblab.data.collection import Collection
    >>> from mirblab.analysis.one_query import describe_query
    >>> from mirblab.sources.catalogue import load
    >>> from mirblab.retrieval.systems import system
    >>> c = load("mini-qa")
    >>> table = query_bounds(describe_query(c, c.query_ids[0], [system("bm25").search(c)]), ["P@10"])
    >>> bool(table.low[0] <= table.value[0] <= table.high[0])
    True
    """
    if not 1 <= k <= _MOST:
        raise MirblabError(f"bounds look at the first 1 to {_MOST} documents, since each doubles the ways; found {k}")
    levels = [
        *one.collection.card.relevance_levels,
        int(one.collection.qrels.relevance.max()) if len(one.collection.qrels) else 1,
    ]
    grade = max(1, one.collection.card.relevant_from, *levels)
    return pd.concat([_of_system(one, name, measures, k, grade) for name in one.found], ignore_index=True)


def _of_system(one: OneQuery, system: str, measures: list[str], k: int, grade: int) -> pd.DataFrame:
    own = one.found[system]
    holes = [name for name in own.doc_id.head(k) if name not in one.grades]
    ways = (np.arange(2 ** len(holes))[:, None] >> np.arange(len(holes))) & 1
    known = pd.DataFrame({"doc_id": list(one.grades), "relevance": list(one.grades.values())})
    names = [f"{way:04d}" for way in range(len(ways))]
    judged = [known.assign(query_id="as it is")]
    for name, way in zip(names, ways, strict=True):
        more = pd.DataFrame({"doc_id": holes, "relevance": (grade * way).astype(int)})
        judged.append(pd.concat([known, more]).assign(query_id=name))
    run = pd.concat([own.assign(query_id=name) for name in ("as it is", *names)], ignore_index=True)
    values = _evaluated(run, pd.concat(judged, ignore_index=True), measures, one.collection.card.relevant_from)
    rows = []
    for measure in measures:
        part = values[values.measure == measure].set_index("query_id").value
        ends = float(part.min()), float(part.max())
        row = (part["as it is"], len(holes), part[names[0]], part[names[-1]], *ends)
        rows.append((system, measure, *row))
    names = ["system", "measure", "value", "unjudged", "none_relevant", "all_relevant", "low", "high"]
    return pd.DataFrame(rows, columns=names)


def _evaluated(run: pd.DataFrame, qrels: pd.DataFrame, measures: list[str], relevant_from: int) -> pd.DataFrame:
    """Return the values; that a query without a relevant document scores 0 needs no warning here."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        values = evaluate(run[["query_id", "doc_id", "score"]], qrels, measures, relevant_from)
    return values.astype({"query_id": "str", "measure": "str"})


def query_facts(one: OneQuery, model: str = "minilm") -> pd.DataFrame:
    """Return what the query is like, as text: columns what, value.

    Length, formulas, language, field; tokens of the encoder *model* and the text that it cuts off ("": no encoder);
    judged and relevant documents, and the words that it shares with the best of them.

    >>> import mirblab as lab
    >>> c = lab.load("mini-qa")
    >>> one = describe_query(c, c.query_ids[0], [lab.system("bm25").search(c)])
    >>> query_facts(one, model="").what.head(3).tolist()
    ['words', 'formulas', 'share of formulas']
    """
    row = query_features(one.collection).set_index("query_id").loc[one.query_id]
    found = {
        "words": f"{row.words:,}", "formulas": f"{row.formulas:,}", "share of formulas": f"{row.formula_share:.2f}",
        "language": row.language, "field": row.field or "none",
    }  # fmt: skip
    if model:
        asked, cut = encoder(model), cut_off(one.text, model, one.collection.card.instruction)
        n_tokens = len(asked.tokens([one.text], "query", one.collection.card.instruction)[0])
        found[f"tokens that {model} sees"] = f"{n_tokens:,} of at most {asked.max_length:,}, special ones among these"
        found[f"cut off by {model}"] = _part(cut, one.text)
        if one.answer():
            whole = one.collection.document(one.answer())
            cut = cut_off(whole, model, one.collection.card.instruction, "document")
            found[f"cut off of the best answer by {model}"] = _part(cut, whole)
    found["judged documents"] = f"{len(one.grades):,}"
    found["relevant documents"] = f"{len(one.relevant):,}"
    found["words shared with the best"] = "–" if np.isnan(row.overlap) else f"{row.overlap:.2f}"
    return pd.DataFrame({"what": list(found), "value": list(found.values())})


def _part(cut: str, whole: str) -> str:
    """Return how much of a text is cut off, and where that begins."""
    words = cut.split()
    if not words:
        return "nothing"
    return f"{len(words):,} of {len(whole.split()):,} words, from “{' '.join(words[:_WORDS])}” on"


def cut_off(text: str, model: str = "minilm", instruction: str = "", role: str = "query") -> str:
    """Return the end of a text that an encoder does not see, by words; "" where it sees all.

    >>> cut_off("a ring"), cut_off("ring " * 600).split()[:2]
    ('', ['ring', 'ring'])
    """
    words, asked = text.split(), encoder(model)
    low, high = 0, len(words)
    if not words or not asked.n_truncated([text], role, instruction):
        return ""
    while low < high:
        middle = (low + high + 1) // 2
        if asked.n_truncated([" ".join(words[:middle])], role, instruction):
            high = middle - 1
        else:
            low = middle
    return " ".join(words[low:])


def query_term_scores(one: OneQuery, doc_ids: Sequence[str], name: str = "bm25") -> pd.DataFrame:
    """Return what each of the query's terms adds to the BM25 score of some documents: term, idf, a column per document.

    *name* is a system of the kind bm25. The largest contribution of all first; a column sums to the document's score.

    >>> import mirblab as lab
    >>> c = lab.load("mini-qa")
    >>> one = describe_query(c, c.query_ids[0], [lab.system("bm25").search(c)])
    >>> query_term_scores(one, [one.answer()]).term.head(3).tolist()
    ['a_5', '5', 'A']
    """
    settings = system(name).settings
    if settings.get("kind") != "bm25" or settings.get("compat") or settings.get("engine", "bm25s") != "bm25s":
        raise MirblabError(f"only a system of the kind bm25 has terms to explain, '{name}' has none; take 'bm25'")
    chosen = {key: value for key, value in search_options(settings).items() if key not in ("engine", "compat")}
    parts = [explain(one.collection, one.text, doc_id, **chosen).set_index("term") for doc_id in dict.fromkeys(doc_ids)]
    columns = {doc_id: part.contribution for doc_id, part in zip(dict.fromkeys(doc_ids), parts, strict=True)}
    if not columns:
        return pd.DataFrame(columns=["term", "idf"])
    table = pd.DataFrame({"idf": parts[0].idf} | columns).rename_axis("term").reset_index()
    size = table[list(columns)].max(axis=1)
    return table.iloc[np.lexsort([table.term, -size])].reset_index(drop=True)


def query_formula_matches(one: OneQuery, doc_ids: Sequence[str]) -> pd.DataFrame:
    """Return for each document and formula of the query the document's formula that structure search finds nearest.

    Columns: doc_id, query, document (LaTeX between dollars, "" where nothing is shared), score, found and used (0 to 1,
    shares of the query's and the document's weight), renamed (names that changed), shared (the heaviest tokens). The
    best of a document first. In a post all formulas count together: these scores do not sum to the system's.

    >>> import mirblab as lab
    >>> c = lab.load("mini-qa")
    >>> one = describe_query(c, c.query_ids[0], [lab.system("bm25").search(c)])
    >>> bool(query_formula_matches(one, [one.answer()]).score.between(0, 1).all())
    True
    """
    collection = one.collection
    reader = FormulaReader.of(collection)
    asked = list(dict.fromkeys(FormulaReader.of(collection, "query").formulas(one.text)))
    known = reader.owned(collection.texts).formulas
    index, rows = stored_index(known), []
    scores = [index.scores(own) for own in index.queries(asked)]
    for doc_id in dict.fromkeys(doc_ids):
        held = set(reader.formulas(collection.document(doc_id)))
        places = np.array([at for at, own in enumerate(known) if own in held], dtype=np.int64)
        for query, own in zip(asked, scores, strict=True):
            best = known[places[own[places].argmax()]] if own[places].max(initial=0) > 0 else ""
            rows.append((doc_id, *_matched(query, best, index)))
    names = ["doc_id", "query", "document", "score", "found", "used", "renamed", "shared"]
    table = pd.DataFrame(rows, columns=names)
    first = table.doc_id.map({name: at for at, name in enumerate(dict.fromkeys(doc_ids))})
    return table.iloc[np.lexsort([-table.score, first])].reset_index(drop=True)


def _matched(query: str, document: str, index: Index) -> tuple[str, str, float, float, float, str, str]:
    if not document:
        return f"${query}$", "", 0.0, 0.0, 0.0, "", ""
    why = explain_formula(query, document, index)
    renamed = ", ".join(f"{one} → {other}" for one, other in why.renamed)
    shared = "  ".join(why.tokens.token.drop_duplicates().head(_TOKENS))
    return f"${query}$", f"${document}$", why.score, why.found, why.used, renamed, shared


def query_token_matches(one: OneQuery, doc_id: str, model: str = "minilm", most: int = 30) -> pd.DataFrame:
    """Return the cosines of query tokens with those document tokens that are the best match of one of them.

    Of more than *most* query tokens the first so many are kept; `attrs["score"]` is the MaxSim of all of them.

    >>> import mirblab as lab
    >>> c = lab.load("mini-qa")
    >>> one = describe_query(c, c.query_ids[0], [lab.system("bm25").search(c)])
    >>> len(query_token_matches(one, one.answer(), most=5))
    5
    """
    table = token_similarities(one.text, one.collection.document(doc_id), model, one.collection.card.instruction)
    rows = table.iloc[:most]
    kept = np.unique(rows.to_numpy().argmax(axis=1))
    found = rows.iloc[:, kept]
    found.attrs = dict(table.attrs)
    return found


def query_texts_html(one: OneQuery, doc_ids: Sequence[str] = (), longest: int = _LONGEST) -> HTML:
    """Return the query and documents as HTML, side by side where there is room: grade and ranks above each text.

    Texts are cut at *longest* characters. Everything is escaped; there is no script, and nothing comes from elsewhere.

    >>> from mirblab.sources.catalogue import load
    >>> from mirblab.analysis.one_query import describe_query
    >>> from mirblab.retrieval.systems import system
    >>> c = load("mini-qa")
    >>> one = describe_query(c, c.query_ids[0], [system("bm25").search(c)])
    >>> query_texts_html(one, [one.best("bm25")]).data.count("<section")
    2
    """
    from IPython.display import HTML

    parts = [_section(f"Query {one.query_id}", one.collection.name, one.text, longest)]
    for name in dict.fromkeys(name for name in doc_ids if name):
        grade = one.grade(name)
        ranks = ", ".join(f"{system} {place(one.rank(system, name))}" for system in one.found)
        meant = grade_meaning(one.collection, int(grade)) if grade.isdigit() else ""
        facts = f"{f'grade {grade}' if grade.isdigit() else grade}{f' ({meant})' if meant else ''}; rank: {ranks}"
        parts.append(_section(f"Document {name}", facts, one.collection.document(name), longest))
    return HTML(f'<div style="{_PAGE}">{"".join(parts)}</div>')


def _section(title: str, facts: str, text: str, longest: int) -> str:
    head = f"<p><b>{escape_html(title)}</b> <small>{escape_html(facts)}</small></p>"
    return f'<section style="{_TEXT}">{head}<p>{text_html(text, longest=longest)}</p></section>'
