"""one_query: the documents, values, near-duplicates, terms and formulas of one query under several systems."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from mirblab.analysis.features import query_features
from mirblab.analysis.partners import judged_grades
from mirblab.analysis.query_clusters import points
from mirblab.core.errors import MirblabError, check_positive
from mirblab.core.wording import counted
from mirblab.data.collection import Collection, check_fits
from mirblab.data.near_duplicates import GroupedTexts, near_pairs
from mirblab.data.runs import order_run, system_of
from mirblab.display.grades import grade_meaning
from mirblab.display.text import escape_html, excerpts, text_html
from mirblab.encoders.encoding import encoder
from mirblab.evaluation.measures import evaluate, parse_measures
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
    rankings: dict[str, pd.DataFrame]
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
        ranking = self.rankings[system]
        at = np.flatnonzero(ranking.doc_id.to_numpy() == doc_id)
        return float(ranking["rank"].iloc[at[0]]) if len(at) else np.nan

    def best(self, system: str) -> str:
        """Return the document that a system has first, "" where it returned nothing."""
        return str(self.rankings[system].doc_id.iloc[0]) if len(self.rankings[system]) else ""

    def answer(self) -> str:
        """Return the best judged document, "" where nothing is relevant."""
        return self.relevant[0] if self.relevant else ""


_MOST = 10  # unjudged documents: 1,024 ways to judge them

_TOKENS = 12  # tokens of a formula that are named
_WORDS = 8  # words of a truncated part that are shown

_LONGEST = 1_500  # characters of a text
_PAGE = "display:flex;flex-wrap:wrap;gap:0.5em 1.5em;align-items:flex-start"
_TEXT = "flex:1 1 24em;max-width:60em;min-width:0;overflow-wrap:anywhere"


def describe_query(collection: Collection, query_id: str, runs: Sequence[pd.DataFrame]) -> OneQuery:
    """Return what *runs*, each of one system, returned for one query; MirblabError for an unknown query.

    >>> import mirblab as lab
    >>> c = lab.load("mini-qa")
    >>> query = describe_query(c, c.query_ids[0], [lab.system("bm25").search(c)])
    >>> query.rank("bm25", query.best("bm25"))
    1.0
    """
    collection.query(query_id)  # raises MirblabError for an unknown query
    rankings = {}
    for given in runs:
        run = order_run(given)
        ranking = run[run.query_id == query_id][["doc_id", "score", "rank"]].astype({"doc_id": "str"})
        rankings[system_of(run)] = ranking.reset_index(drop=True)
    if len(rankings) != len(runs) or not rankings:
        names = ", ".join(rankings) or "none"
        of_runs = counted(len(runs), "run")
        raise MirblabError(f"one run of each system is needed; found the systems {names} in {of_runs}")
    return OneQuery(collection, query_id, rankings, judged_grades(collection, query_id))


def most_different_query(values: pd.DataFrame, measure: str, collection: str = "") -> str:
    """Return the query with the largest range of the systems' values, the first by id where several have it.

    >>> rows = [("a", "q1", 0.5), ("b", "q1", 0.4), ("a", "q2", 0.1), ("b", "q2", 0.9)]
    >>> values = pd.DataFrame(rows, columns=["system", "query_id", "value"]).assign(collection="c", measure="RR")
    >>> most_different_query(values, "RR")
    'q2'
    """
    matrix = value_matrix(values, measure, collection)
    gaps = np.ptp(matrix.to_numpy(), axis=1).round(12)
    return str(matrix.index[int(np.argmax(gaps))])


def judged_ranks(query: OneQuery) -> pd.DataFrame:
    """Return the judged documents with their rank under each system: doc_id, grade, is_relevant, a column per system.

    The highest grade first, then the best rank; NaN where a system did not return the document.

    >>> import mirblab as lab
    >>> c = lab.load("mini-qa")
    >>> query = describe_query(c, c.query_ids[0], [lab.system("bm25").search(c)])
    >>> judged_ranks(query).columns.tolist()
    ['doc_id', 'grade', 'is_relevant', 'bm25']
    """
    rows = [
        (name, grade, name in query.relevant, *(query.rank(s, name) for s in query.rankings))
        for name, grade in query.grades.items()
    ]
    table = pd.DataFrame(rows, columns=["doc_id", "grade", "is_relevant", *query.rankings])
    best = table[list(query.rankings)].min(axis=1).fillna(np.inf)
    return table.iloc[np.lexsort([table.doc_id, best, -table.grade])].reset_index(drop=True)


def top_documents(query: OneQuery, depth: int = 10, longest: int = 120) -> pd.DataFrame:
    """Return the first *depth* documents of each system: system, rank, doc_id, grade, score, of_first, elsewhere, text.

    *of_first* is the score as a share of that of the first (NaN where that is not above 0); *elsewhere* has the ranks
    in the other systems ("–": not returned). Texts are cut at *longest* characters, never within a formula.

    >>> import mirblab as lab
    >>> c = lab.load("mini-qa")
    >>> query = describe_query(c, c.query_ids[0], [lab.system("bm25").search(c)])
    >>> top_documents(query, depth=2)[["system", "rank", "of_first"]].round(2).values.tolist()
    [['bm25', 1, 1.0], ['bm25', 2, 0.85]]
    """
    check_positive(depth=depth)
    parts = []
    for label, ranking in query.rankings.items():
        part = ranking.head(depth)
        others = [other for other in query.rankings if other != label]
        texts = [query.collection.document(name) for name in part.doc_id]
        columns = {
            "system": label,
            "rank": part["rank"].astype(int),
            "doc_id": part.doc_id,
            "grade": [query.grade(name) for name in part.doc_id],
            "score": part.score.astype(float),
            "of_first": _of_first(ranking, part.score),
            "elsewhere": [", ".join(f"{s} {place(query.rank(s, name))}" for s in others) for name in part.doc_id],
            "text": excerpts(texts, query.collection.card.task, longest),
        }
        parts.append(pd.DataFrame(columns))
    return pd.concat(parts, ignore_index=True)


def relevant_distances(query: OneQuery) -> pd.DataFrame:
    """Return how far each relevant document is from the top, a row per system and document.

    Columns: system, doc_id, grade, rank, score, first (the score of the system's first document), of_first (the
    document's as a share of it), above (how many documents that are not relevant, or unjudged, are ranked above it).
    NaN for a document that was not returned.

    >>> import mirblab as lab
    >>> c = lab.load("mini-qa")
    >>> query = describe_query(c, c.query_ids[0], [lab.system("bm25").search(c)])
    >>> relevant_distances(query)[["rank", "above"]].head(2).values.tolist()
    [[2.0, 0.0], [4.0, 1.0]]
    """
    rows = []
    for label, ranking in query.rankings.items():
        is_relevant = ranking.doc_id.isin(query.relevant).to_numpy()
        for name in query.relevant:
            at = np.flatnonzero(ranking.doc_id.to_numpy() == name)
            row = ranking.iloc[at[:1]]
            score = float(row.score.iloc[0]) if len(at) else np.nan
            first = float(ranking.score.iloc[0]) if len(ranking) else np.nan
            above = float((~is_relevant[: at[0]]).sum()) if len(at) else np.nan
            share = float(_of_first(ranking, row.score)[0]) if len(at) else np.nan
            rows.append((label, name, query.grades[name], query.rank(label, name), score, first, share, above))
    return pd.DataFrame(rows, columns=["system", "doc_id", "grade", "rank", "score", "first", "of_first", "above"])


def _of_first(ranking: pd.DataFrame, scores: pd.Series) -> np.ndarray:
    first = float(ranking.score.iloc[0]) if len(ranking) else 0.0
    return scores.to_numpy(dtype=float) / first if first > 0 else np.full(len(scores), np.nan)


def similar_queries(query: OneQuery, values: pd.DataFrame, measure: str, by: str = "", n: int = 5) -> pd.DataFrame:
    """Return the *n* other queries whose content is nearest: query_id, cosine, query, and each system's value.

    *by* is an encoder, or "" for terms (see `query_clusters.points`).

    >>> import mirblab as lab
    >>> c = lab.load("mini-qa")
    >>> query = describe_query(c, c.query_ids[0], [lab.system("bm25").search(c)])
    >>> values = lab.evaluate(lab.system("bm25").search(c), c, "RR")
    >>> similar_queries(query, values, "RR", n=2).columns.tolist()
    ['query_id', 'cosine', 'query', 'bm25']
    """
    check_positive(n=n)
    collection = query.collection
    rows = points([collection], by)
    here = collection.query_ids.get_loc(query.query_id)
    cosine = np.asarray((rows @ rows[[here]].T).todense() if not by else rows @ rows[here]).ravel()
    cosine[here] = -np.inf
    order = np.argsort(-cosine.round(6), kind="stable")[: min(n, len(cosine) - 1)]
    near = [str(collection.query_ids[at]) for at in order]
    table = pd.DataFrame({"query_id": near, "cosine": cosine[order].astype(float)})
    table["query"] = excerpts([collection.query(name) for name in near], collection.card.task)
    return table.join(value_matrix(values, measure, collection.name).reindex(near).reset_index(drop=True))


def query_near_duplicates(query: OneQuery, depth: int = 10, threshold: float = 0.8) -> pd.DataFrame:
    """Return near-duplicates of the query and of its documents: what, doc_id, grade, other_id, other_grade, jaccard.

    The query itself ("query"), the judged documents and the first *depth* of each system ("document") are compared with
    the whole corpus. A pair affects the values of measures if its grades differ, or if one document is unjudged.

    >>> import mirblab as lab
    >>> c = lab.load("mini-qa")
    >>> query = describe_query(c, c.query_ids[0], [lab.system("bm25").search(c)])
    >>> len(query_near_duplicates(query))
    0
    """
    check_positive(depth=depth)
    collection = query.collection
    wanted = {*query.grades, *(name for ranking in query.rankings.values() for name in ranking.doc_id.head(depth))}
    selected = np.append(collection.doc_ids.isin(list(wanted)), True)
    pairs = near_pairs(GroupedTexts([collection.texts, [query.text]]), threshold, asked=selected)
    rows = []
    for left, right, jaccard in zip(pairs.left.tolist(), pairs.right.tolist(), pairs.jaccard.tolist(), strict=True):
        other = str(collection.doc_ids[left])
        if right == len(collection.texts):
            rows.append(("query", query.query_id, "", other, query.grade(other), jaccard))
            continue
        names = sorted((other, str(collection.doc_ids[right])), key=lambda name: (name not in wanted, name))
        rows.append(("document", names[0], query.grade(names[0]), names[1], query.grade(names[1]), jaccard))
    table = pd.DataFrame(rows, columns=["what", "doc_id", "grade", "other_id", "other_grade", "jaccard"])
    return table.sort_values(
        ["what", "jaccard", "doc_id", "other_id"], ascending=[False, False, True, True], ignore_index=True
    )


def place(rank: float) -> str:
    """Return a rank as it is printed, "–" for a document that was not returned.

    >>> place(12.0), place(np.nan)
    ('12', '–')
    """
    return "–" if np.isnan(rank) else f"{int(rank):,}"


def query_bounds(query: OneQuery, measures: list[str], k: int = 10) -> pd.DataFrame:
    """Return each measure as it is, and over all ways to judge the unjudged documents among the first *k*.

    Columns: system, measure, value, unjudged (how many of the first k), none_relevant (all judged 0), all_relevant (all
    of the highest grade that the query's collection has), low and high (over every subset of them being relevant, the
    others judged 0, and the value as it is). An nDCG may fall when more documents are relevant, since the best possible
    ranking improves as well. MirblabError for k outside 1 to 10.

    >>> import mirblab as lab
    >>> c = lab.load("mini-qa")
    >>> table = query_bounds(describe_query(c, c.query_ids[0], [lab.system("bm25").search(c)]), ["P@10"])
    >>> bool(table.low[0] <= table.value[0] <= table.high[0])
    True
    """
    if not 1 <= k <= _MOST:
        raise MirblabError(f"k must be from 1 to {_MOST}, since each unjudged document doubles the cases; found {k}")
    names = [str(measure) for measure in parse_measures(measures)]
    card, judged = query.collection.card, query.collection.qrels.relevance
    grade = max(1, card.relevant_from, *card.relevance_levels, int(judged.max()) if len(judged) else 1)
    return pd.concat([_of_system(query, system, names, k, grade) for system in query.rankings], ignore_index=True)


def _of_system(query: OneQuery, system: str, measures: list[str], k: int, grade: int) -> pd.DataFrame:
    ranking = query.rankings[system]
    holes = [name for name in ranking.doc_id.head(k) if name not in query.grades]
    ways = (np.arange(2 ** len(holes))[:, None] >> np.arange(len(holes))) & 1
    known = pd.DataFrame({"doc_id": list(query.grades), "relevance": list(query.grades.values())})
    names = [f"{way:04d}" for way in range(len(ways))]
    judged = [known.assign(query_id="as it is")]
    for name, way in zip(names, ways, strict=True):
        more = pd.DataFrame({"doc_id": holes, "relevance": (grade * way).astype(int)})
        judged.append(pd.concat([known, more]).assign(query_id=name))
    run = pd.concat([ranking.assign(query_id=name) for name in ("as it is", *names)], ignore_index=True)
    whole = query.collection  # its highest grade and its number of documents count in ERR and Rank
    card = replace(whole.card, relevance_levels=[grade])
    qrels, doc_ids = pd.concat(judged, ignore_index=True), whole.doc_ids.union(pd.Index(holes, dtype="str"))
    qrels["doc_id"] = pd.Categorical(qrels.doc_id, doc_ids)
    values = _evaluated(run, replace(whole, qrels=qrels, card=card, groups=None), measures)
    rows = []
    for measure in measures:
        part = values[values.measure == measure].set_index("query_id").value
        ends = float(part.min()), float(part.max())
        row = (part["as it is"], len(holes), part[names[0]], part[names[-1]], *ends)
        rows.append((system, measure, *row))
    names = ["system", "measure", "value", "unjudged", "none_relevant", "all_relevant", "low", "high"]
    return pd.DataFrame(rows, columns=names)


def _evaluated(run: pd.DataFrame, collection: Collection, measures: list[str]) -> pd.DataFrame:
    """Return the values, without the warning of a query that has no relevant document."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        values = evaluate(run[["query_id", "doc_id", "score"]], collection, measures)
    return values.astype({"query_id": "str", "measure": "str"})


def query_facts(query: OneQuery, model: str = "minilm") -> pd.DataFrame:
    """Return the properties of the query as text: columns what, value.

    Length, formulas, language, field; tokens of the encoder *model* and the text that it cuts off ("": no encoder);
    judged and relevant documents, and the words that it shares with the best of them.

    >>> import mirblab as lab
    >>> c = lab.load("mini-qa")
    >>> query = describe_query(c, c.query_ids[0], [lab.system("bm25").search(c)])
    >>> query_facts(query, model="").what.head(3).tolist()
    ['words', 'formulas', 'share of formulas']
    """
    row = query_features(query.collection).set_index("query_id").loc[query.query_id]
    facts = {
        "words": f"{row.words:,}", "formulas": f"{row.formulas:,}", "share of formulas": f"{row.formula_share:.2f}",
        "language": row.language, "field": row.field or "none",
    }  # fmt: skip
    if model:
        instruction, limit = query.collection.card.instruction, encoder(model).max_length
        n_tokens = len(encoder(model).tokens([query.text], "query", instruction)[0])
        facts[f"tokens that {model} sees"] = f"{n_tokens:,} of at most {limit:,}, special ones among these"
        facts[f"cut off by {model}"] = _part(cut_off(query.text, model, instruction), query.text)
        if query.answer():
            whole = query.collection.document(query.answer())
            cut = cut_off(whole, model, instruction, "document")
            facts[f"cut off of the best answer by {model}"] = _part(cut, whole)
    facts["judged documents"] = f"{len(query.grades):,}"
    facts["relevant documents"] = f"{len(query.relevant):,}"
    facts["words shared with the best"] = "–" if np.isnan(row.overlap) else f"{row.overlap:.2f}"
    return pd.DataFrame({"what": list(facts), "value": list(facts.values())})


def _part(cut: str, whole: str) -> str:
    words = cut.split()
    if not words:
        return "nothing"
    return f"{len(words):,} of {len(whole.split()):,} words, from “{' '.join(words[:_WORDS])}” on"


def cut_off(text: str, model: str = "minilm", instruction: str = "", role: str = "query") -> str:
    """Return the last words of a text, which an encoder truncates; "" where it encodes the whole text."""
    words, model_encoder = text.split(), encoder(model)
    low, high = 0, len(words)
    if not words or not model_encoder.n_truncated([text], role, instruction):
        return ""
    while low < high:
        middle = (low + high + 1) // 2
        if model_encoder.n_truncated([" ".join(words[:middle])], role, instruction):
            high = middle - 1
        else:
            low = middle
    return " ".join(words[low:])


def query_term_scores(query: OneQuery, doc_ids: Sequence[str], name: str = "bm25") -> pd.DataFrame:
    """Return what each of the query's terms adds to the BM25 score of some documents: term, idf, a column per document.

    *name* is a system of the kind bm25. The largest contribution comes first; a column sums to the document's score.

    >>> import mirblab as lab
    >>> c = lab.load("mini-qa")
    >>> query = describe_query(c, c.query_ids[0], [lab.system("bm25").search(c)])
    >>> query_term_scores(query, [query.answer()]).term.head(3).tolist()
    ['a_5', '5', 'A']
    """
    settings = system(name).settings
    if settings.get("kind") != "bm25" or settings.get("compat") or settings.get("engine", "bm25s") != "bm25s":
        raise MirblabError(f"only a system of the kind bm25 has terms to explain, '{name}' has none; take 'bm25'")
    chosen = {key: value for key, value in search_options(settings).items() if key not in ("engine", "compat")}
    parts = {name: explain(query.collection, query.text, name, **chosen).set_index("term") for name in doc_ids}
    columns = {name: part.contribution for name, part in parts.items()}
    if not columns:
        return pd.DataFrame(columns=["term", "idf"])
    table = pd.DataFrame({"idf": parts[doc_ids[0]].idf} | columns).rename_axis("term").reset_index()
    size = table[list(columns)].max(axis=1)
    return table.iloc[np.lexsort([table.term, -size])].reset_index(drop=True)


def query_formula_matches(query: OneQuery, doc_ids: Sequence[str]) -> pd.DataFrame:
    """Return for each document and formula of the query the document's nearest formula by structure search.

    Columns: doc_id, query, document (LaTeX between dollars, "" where nothing is shared), score, found and used (0 to 1,
    shares of the query's and the document's weight), renamed (names that changed), shared (the heaviest tokens). The
    best of a document first. All formulas of a post count together, so these scores do not sum to the system's.

    >>> import mirblab as lab
    >>> c = lab.load("mini-qa")
    >>> query = describe_query(c, c.query_ids[0], [lab.system("bm25").search(c)])
    >>> bool(query_formula_matches(query, [query.answer()]).score.between(0, 1).all())
    True
    """
    collection = query.collection
    check_fits(collection, "the comparison of formulas")
    reader = FormulaReader.of(collection)
    formulas = list(dict.fromkeys(FormulaReader.of(collection, "query").formulas(query.text)))
    known = reader.owned(collection.texts).formulas
    index, rows = stored_index(known), []
    scores = [index.scores(tokens) for tokens in index.queries(formulas)]
    for doc_id in dict.fromkeys(doc_ids):
        held = set(reader.formulas(collection.document(doc_id)))
        places = np.array([at for at, latex in enumerate(known) if latex in held], dtype=np.int64)
        for formula, formula_scores in zip(formulas, scores, strict=True):
            best = known[places[formula_scores[places].argmax()]] if formula_scores[places].max(initial=0) > 0 else ""
            rows.append((doc_id, *_matched(formula, best, index)))
    names = ["doc_id", "query", "document", "score", "found", "used", "renamed", "shared"]
    table = pd.DataFrame(rows, columns=names)
    first = table.doc_id.map({name: at for at, name in enumerate(dict.fromkeys(doc_ids))})
    return table.iloc[np.lexsort([-table.score, first])].reset_index(drop=True)


def _matched(query: str, document: str, index: Index) -> tuple[str, str, float, float, float, str, str]:
    if not document:
        return f"${query}$", "", 0.0, 0.0, 0.0, "", ""
    why = explain_formula(query, document, index)
    renamed = ", ".join(f"{name} → {other}" for name, other in why.renamed)
    shared = "  ".join(why.tokens.token.drop_duplicates().head(_TOKENS))
    return f"${query}$", f"${document}$", why.score, why.found, why.used, renamed, shared


def query_token_matches(query: OneQuery, doc_id: str, model: str = "minilm", most: int = 30) -> pd.DataFrame:
    """Return the cosines of query tokens with those document tokens that are the best match of one of them.

    At most the first *most* query tokens are kept; `attrs["score"]` is the MaxSim of all of them.

    >>> import mirblab as lab
    >>> c = lab.load("mini-qa")
    >>> query = describe_query(c, c.query_ids[0], [lab.system("bm25").search(c)])
    >>> len(query_token_matches(query, query.answer(), most=5))
    5
    """
    check_positive(most=most)
    table = token_similarities(query.text, query.collection.document(doc_id), model, query.collection.card.instruction)
    rows = table.iloc[:most]
    kept = np.unique(rows.to_numpy().argmax(axis=1))
    columns = rows.iloc[:, kept]
    columns.attrs = dict(table.attrs)
    return columns


def query_texts_html(query: OneQuery, doc_ids: Sequence[str] = (), longest: int = _LONGEST) -> HTML:
    """Return the query and documents as HTML, side by side where there is room: grade and ranks above each text.

    Texts are cut at *longest* characters and escaped; there is no script, and nothing is loaded from elsewhere.

    >>> import mirblab as lab
    >>> c = lab.load("mini-qa")
    >>> query = describe_query(c, c.query_ids[0], [lab.system("bm25").search(c)])
    >>> query_texts_html(query, [query.best("bm25")]).data.count("<section")
    2
    """
    from IPython.display import HTML

    parts = [_section(f"Query {query.query_id}", query.collection.name, query.text, longest)]
    for name in dict.fromkeys(name for name in doc_ids if name):
        grade = query.grade(name)
        ranks = ", ".join(f"{system} {place(query.rank(system, name))}" for system in query.rankings)
        meant = grade_meaning(query.collection, int(grade)) if grade.isdigit() else ""
        facts = f"{f'grade {grade}' if grade.isdigit() else grade}{f' ({meant})' if meant else ''}; rank: {ranks}"
        parts.append(_section(f"Document {name}", facts, query.collection.document(name), longest))
    return HTML(f'<div style="{_PAGE}">{"".join(parts)}</div>')


def _section(title: str, facts: str, text: str, longest: int) -> str:
    head = f"<p><b>{escape_html(title)}</b> <small>{escape_html(facts)}</small></p>"
    return f'<section style="{_TEXT}">{head}<p>{text_html(text, longest=longest)}</p></section>'
