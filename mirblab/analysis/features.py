"""features: length, formulas, language and field of queries, and their association with values."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
from pandas.api.types import is_bool_dtype, is_numeric_dtype

from mirblab.analysis.partners import best_judged
from mirblab.core.errors import MirblabError, check_positive, unknown
from mirblab.data.collection import Collection
from mirblab.evaluation.significance import spearman_interval
from mirblab.formula.in_text import FormulaReader, is_formal, split_at_formulas

NUMBERS = ("words", "formulas", "formula_share", "relevant", "overlap")
_VARYING = 5  # queries that must differ from the commonest number, so that what is found is not that of one query
_FORMULA = re.compile(r"\$\$.+?\$\$|\$[^$]+\$|\\\(.+?\\\)|\\\[.+?\\\]", re.DOTALL)
_WORD = re.compile(r"[^\W\d_]{2,}")
# For a text that is in no proof assistant's language: the first pattern that matches gives the language.
_LANGUAGES = (("LaTeX", _FORMULA), ("bare LaTeX", re.compile(r"\\[A-Za-z]+|[_^]\{")))


def query_features(collection: Collection) -> pd.DataFrame:
    """Return one row per query with features that may make it hard.

    Columns: collection, query_id, words (separated by blanks), formulas (between delimiters, or the whole text where a
    collection's texts are formulas), formula_share (of the characters, 0 to 1), relevant (documents judged so), overlap
    (share of the query's words of two letters or more that its best judged document has, 0 to 1; NaN without one),
    language (that of most queries where it is a proof assistant's, otherwise by signs in the query), field (the first
    tag).

    >>> from mirblab.sources.catalogue import load
    >>> query_features(load("mini-hol")).language.value_counts().idxmax()
    'HOL'
    """
    first = best_judged(collection)
    best = dict(zip(first.query_id.astype("str"), first.doc_id.astype("str"), strict=True))
    tags = collection.queries["tags"] if "tags" in collection.queries else [None] * len(collection.queries)
    reader = FormulaReader.of(collection, "query")
    rows = []
    for query_id, text, query_tags in zip(collection.query_ids, collection.query_texts, tags, strict=True):
        is_formula = reader.is_bare and reader.formulas(text) == [text]
        parts = [text] if reader.language else ["", text, ""] if is_formula else split_at_formulas(text)
        n_prose = sum(map(len, parts[::2]))
        language_name = reader.language or ("bare LaTeX" if is_formula else language(text))
        overlap = _overlap(text, collection.document(best[query_id])) if query_id in best else np.nan
        field = query_tags[0] if query_tags else ""
        share = 1 - n_prose / max(len(text), 1)
        row = (query_id, len(text.split()), len(parts) // 2, share, overlap, language_name, field)
        rows.append(row)
    names = ["query_id", "words", "formulas", "formula_share", "overlap", "language", "field"]
    features = pd.DataFrame(rows, columns=names)
    judged = collection.relevant
    counts = judged.query_id.astype("str").value_counts()
    features.insert(0, "collection", collection.name)
    return features.assign(relevant=features.query_id.map(counts).fillna(0).astype(int))


def _overlap(query: str, document: str) -> float:
    words, others = ({word.lower() for word in _WORD.findall(text)} for text in (query, document))
    return len(words & others) / len(words) if words else float("nan")


def associations(
    values: pd.DataFrame, features: pd.DataFrame, *, level: float = 0.95, n_resamples: int = 1_000, seed: int = 0
) -> pd.DataFrame:
    """Return Spearman's rank correlation of each numeric feature with each system's values, by collection.

    *values* are of one measure, *features* from `query_features` or `outcome_features`, with a column first_rank where
    it is known. Columns: collection, system, feature, rho (-1 to 1), low, high (percentile bootstrap over queries),
    n_queries. Pairs are left out in which fewer than five queries (of fewer than ten: half) differ from the commonest
    number of either side.

    >>> ids = ["q1", "q2", "q3"]
    >>> values = pd.DataFrame({"system": "s", "measure": "RR", "query_id": ids, "value": [0.1, 0.5, 1]})
    >>> features = pd.DataFrame({"collection": "c", "query_id": ids, "words": [9, 5, 2]})
    >>> features = features.assign(formulas=0, formula_share=0, relevant=1, overlap=0.5)
    >>> associations(values.assign(collection="c"), features).rho.tolist()
    [-1.0]
    """
    if values.measure.nunique() != 1:
        raise MirblabError(f"one measure at a time, found {', '.join(map(str, values.measure.unique())) or 'none'}")
    joined = values.assign(**{name: values[name].astype("str") for name in ("collection", "query_id")}).merge(
        features, on=["collection", "query_id"], validate="many_to_one"
    )
    rows = []
    for (collection, system), part in joined.groupby(["collection", "system"], sort=False, observed=True):
        for feature in [name for name in (*NUMBERS, "answer_words", "first_rank") if name in part]:
            pair = part[[feature, "value"]].dropna().to_numpy(dtype=float)
            if len(pair) > 2 and all(map(varies, pair.T)):
                rho, low, high = spearman_interval(pair, level=level, n_resamples=n_resamples, seed=seed)
                rows.append((collection, system, feature, rho, low, high, len(pair)))
    return pd.DataFrame(rows, columns=["collection", "system", "feature", "rho", "low", "high", "n_queries"])


def varies(numbers: np.ndarray) -> bool:
    """Return whether at least five of the *numbers* (n,), or half of fewer than ten, differ from the commonest one.

    >>> varies(np.arange(20) < 4), varies(np.arange(20) < 5)
    (False, True)
    """
    n_uncommon = len(numbers) - int(np.unique(numbers, return_counts=True)[1].max())
    return n_uncommon >= min(_VARYING, len(numbers) // 2)


def assign_strata(values: pd.DataFrame, features: pd.DataFrame, feature: str, n: int = 3) -> pd.DataFrame:
    """Return *values* whose collection is the stratum of the query by a feature, for intervals and plots by stratum.

    A numeric feature is cut into at most *n* quantiles over all queries ("words 3 to 17"); another one is taken as it
    is. Queries without the feature are left out.

    >>> ids = ["q1", "q2", "q3"]
    >>> values = pd.DataFrame({"system": "s", "measure": "RR", "query_id": ids, "value": [0.1, 0.5, 1]})
    >>> features = pd.DataFrame({"collection": "c", "query_id": ids, "words": [9, 5, 2]})
    >>> assign_strata(values.assign(collection="c"), features, "words", 2).collection.tolist()
    ['words 2 to 5', 'words 2 to 5', 'words 9 to 9']
    """
    check_positive(n=n)
    if feature not in features.columns or feature in ("collection", "query_id"):
        raise unknown("feature", feature, [*NUMBERS, "language", "field"])
    known = features[["collection", "query_id", feature]].dropna()
    is_number = is_numeric_dtype(known[feature]) and not is_bool_dtype(known[feature])
    names = _cut(known[feature], feature, n) if is_number and len(known) else known[feature].replace("", "none")
    labelled = known[["collection", "query_id"]].assign(stratum=names.astype("str"))
    texts = values.assign(**{name: values[name].astype("str") for name in ("collection", "query_id")})
    joined = texts.merge(labelled, on=["collection", "query_id"])
    if joined.empty:
        found, of = (", ".join(dict.fromkeys(map(str, t.collection))) or "none" for t in (values, labelled))
        raise MirblabError(f"no query of the values has '{feature}'; values are of {found}, features of {of}; "
                           "take the features of the same collections")  # fmt: skip
    unique = joined.collection + " " + joined.query_id  # the same id may occur in two collections
    order = dict.fromkeys(names.cat.categories if hasattr(names, "cat") else sorted(set(joined.stratum)))
    by_stratum = joined.assign(collection=joined.stratum, query_id=unique).drop(columns="stratum")
    return pd.concat([by_stratum[by_stratum.collection == name] for name in order], ignore_index=True)


def _cut(column: pd.Series, feature: str, n: int) -> pd.Series:
    codes = pd.qcut(column, n, labels=False, duplicates="drop").fillna(0)  # a single value has no edges
    how = ",.0f" if (column % 1 == 0).all() else ".3g"
    ends = column.groupby(codes).agg(["min", "max"])
    labels = {code: f"{feature} {low:{how}} to {high:{how}}" for code, low, high in ends.itertuples()}
    return codes.map(labels).astype(pd.CategoricalDtype(list(labels.values()), ordered=True))


def language(text: str) -> str:
    """Return Isabelle, HOL, Metamath, Lean, LaTeX (prose with formulas), bare LaTeX or prose, by signs in a text."""
    return is_formal(text) or next((name for name, pattern in _LANGUAGES if pattern.search(text)), "prose")
