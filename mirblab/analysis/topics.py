"""topics: the labels of topics that ARQMath uses: category, dependency and difficulty."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from mirblab.core.errors import MirblabError, suggest
from mirblab.core.text_files import LineProblems, read_lines
from mirblab.core.wording import counted
from mirblab.data.collection import Collection
from mirblab.evaluation.measures import is_rank

_FORMULA = re.compile(r"\$\$.+?\$\$|\$[^$]+\$", re.DOTALL)
# Of equal counts the first is taken: a question that asks why, and mentions what was found, is no calculation.
_CUES = {
    "Proof": r"prov(?:e[sdn]?|ing)|proofs?|show(?:s|ing|n)? that|show|disprove|counter-?examples?|induction|"
    r"contradiction|verify|if and only if|implies",
    "Concept": r"what (?:is|are|does|do)|why|mean(?:s|ing)?|defin(?:e|ed|ition|itions)|understand(?:ing)?|intuit\w*|"
    r"difference between|explain|explanation|interpret\w*|references?|examples? of|is it (?:true|possible)|"
    r"when (?:is|does)",
    "Calculation": r"comput\w*|calculat\w*|evaluat\w*|find(?:ing)?|determin(?:e|ing)|solv(?:e|ing)|solutions?|"
    r"simplif\w*|integrat(?:e|ing)|differentiat(?:e|ing)|factor(?:ing|i[sz]e)?|how many|sum of|values? of|"
    r"probability that",
}
_FOUND = {name: re.compile(rf"\b(?:{cues})\b", re.IGNORECASE) for name, cues in _CUES.items()}
_FEW, _MOST = 0.2, 0.4  # shares of the characters that stand in formulas
_SCHOOL = re.compile(
    r"precalculus|calculus|arithmetic|trigonometr|elementary|percentages|fractions|word-problem|quadratics|"
    r"linear-equations|systems-of-equations|puzzle|limits|integration|derivatives"
)
_ADVANCED = re.compile(
    r"algebraic-|categor|measure-theory|functional-analysis|topology|manifold|homolog|representation-theory|galois|"
    r"commutative-algebra|differential-geometry|stochastic|operator|lie-|sobolev|pde|partial-differential|"
    r"(?<!elementary-)set-theory|model-theory|martingale|scheme|abstract-algebra|analytic-number|riemannian|logic"
)

TOPIC_LABELS = {
    "category": ("Calculation", "Concept", "Proof"),
    "dependency": ("Text", "Formula", "Both"),
    "difficulty": ("Low", "Medium", "High"),
}
_IDS = ("query_id", "topic_id", "topicid", "topic", "number", "id")
_OTHER_COLUMNS = {"type": "category", "question type": "category", "topic category": "category", "level": "difficulty"}
_OTHER_WORDS = {
    "computation": "Calculation", "calculations": "Calculation", "concepts": "Concept", "proofs": "Proof",
    "formulas": "Formula", "formulae": "Formula", "easy": "Low", "hard": "High", "mid": "Medium",
}  # fmt: skip
_NONE = "no tags"


def topic_labels(
    collection: Collection, path: str | Path | None = None, values: pd.DataFrame | None = None
) -> pd.DataFrame:
    """Return one row per query: what kind of question it is, and where each label comes from.

    Columns: collection, query_id, and category (Calculation, Concept, Proof), dependency (Text, Formula, Both),
    difficulty (Low, Medium, High, or None), each followed by a column such as category_from: the name of the file at
    *path* that labels the topic (`read_labels`), else "derived: " and the rule (`category`, `dependency`,
    `difficulty`). The labels of the labs were given by people (Mansouri et al. 2021); derived ones are by our rules,
    and must not be compared with published figures. With *values*, of one measure and any systems, the derived
    difficulty is Low for the best third of the queries and High for the worst: then values by difficulty say nothing
    about these systems. The table suits `features.assign_strata`.

    >>> from mirblab.sources.catalogue import load
    >>> topic_labels(load("mini-qa")).category_from.unique().tolist()
    ['derived: cue words']
    """
    given, file_name = (_given(collection, path), Path(path).name) if path is not None else ({}, "")
    levels, by_values = ({}, "") if values is None else (_by_values(collection, values), _thirds_of(values))
    tags = collection.queries["tags"] if "tags" in collection.queries else [None] * len(collection.queries)
    rows = []
    for query_id, text, query_tags in zip(collection.query_ids, collection.query_texts, tags, strict=True):
        by_tags = difficulty(query_tags or ()), "tags" if query_tags else _NONE
        derived = {
            "category": (category(text), "cue words"),
            "dependency": (dependency(text), "share of formulas"),
            "difficulty": (levels[query_id], by_values) if levels else by_tags,
        }
        row = {"collection": collection.name, "query_id": query_id}
        for name, (label, rule) in derived.items():
            given_label = given.get(query_id, {}).get(name)
            row |= {name: given_label or label, f"{name}_from": file_name if given_label else f"derived: {rule}"}
        rows.append(row)
    return pd.DataFrame(rows)


def _given(collection: Collection, path: str | Path) -> dict[str, dict[str, str]]:
    given = read_labels(path)
    if given and not given.keys() & set(collection.query_ids):
        shown = ", ".join(list(given)[:3])
        raise MirblabError(f"{path} labels none of the queries of {collection.name}; it has {shown} ...")
    return given


def _by_values(collection: Collection, values: pd.DataFrame) -> dict[str, str]:
    """Return the difficulty of each query by thirds of the mean over systems; equal means get the easier one."""
    if values.measure.nunique() != 1:
        raise MirblabError(f"one measure at a time, found {', '.join(map(str, values.measure.unique())) or 'none'}")
    if "collection" in values:  # another one may have queries of the same ids
        values = values[values.collection == collection.name]
    means = values.astype({"query_id": "str"}).groupby("query_id").value.mean()
    means = means.reindex(collection.query_ids)
    if means.isna().any():
        without = counted(int(means.isna().sum()), "query has", "queries have")
        raise MirblabError(f"{collection.name}: {without} no value, such as '{means.index[means.isna()][0]}'")
    lower_first = is_rank(str(values.measure.iloc[0]))
    thirds = ((means.rank(method="min", ascending=lower_first) - 1) * 3 // len(means)).astype(int)
    return {str(query_id): TOPIC_LABELS["difficulty"][third] for query_id, third in thirds.items()}


def _thirds_of(values: pd.DataFrame) -> str:
    measure, systems = values.measure.iloc[0], values.system.astype(str).unique()
    return f"{measure} of {systems[0]}, in thirds" if len(systems) == 1 else f"mean {measure} of the systems, in thirds"


def category(text: str) -> str:
    """Return Proof, Concept or Calculation, by the cue words outside formulas; the first fifteen words count twice.

    Of equal counts the first in this order is taken.
    """
    words = _FORMULA.sub(" ", text)
    title = " ".join(words.split()[:15])
    counts = {name: len(_cues(pattern, words)) + len(_cues(pattern, title)) for name, pattern in _FOUND.items()}
    best = max(counts, key=lambda name: counts[name])
    return best if counts[best] else "Concept"


def _cues(pattern: re.Pattern[str], text: str) -> set[str]:
    return {match.lower() for match in pattern.findall(text)}


def dependency(text: str) -> str:
    """Return Text when under 20 % of the characters stand in formulas, Formula from 40 % on, else Both."""
    share = sum(map(len, _FORMULA.findall(text))) / max(len(text.strip()), 1)
    return "Text" if share < _FEW else "Formula" if share >= _MOST else "Both"


def difficulty(tags: Sequence[str]) -> str | None:
    """Return High for a tag of graduate mathematics, else Low for one of school or first year, else Medium."""
    if not tags:
        return None
    if any(_ADVANCED.search(tag) for tag in tags):
        return "High"
    return "Low" if any(_SCHOOL.search(tag) for tag in tags) else "Medium"


def read_labels(path: str | Path) -> dict[str, dict[str, str]]:
    """Return the labels in a table with a header: {topic: {"category": "Proof", ...}}; `.csv` has commas, else tabs.

    We have not seen the organisers' files, so the columns are assumed: one of topics (topic, topic_id, query_id, number
    or id) and some of category (or type), dependency and difficulty, in any case. MirblabError, with file and line, for
    a missing column and an unknown label.
    """
    path = Path(path)
    problems, labels = LineProblems(path), dict[str, dict[str, str]]()
    stem = path.name.removesuffix(".gz")
    numbered = read_lines(path, problems)
    header = _cells(next(numbered, (1, ""))[1], stem, 1, problems)
    problems.raise_if_any()
    columns = [_column(name) for name in header]
    if columns.count("topic") != 1 or not set(columns) & set(TOPIC_LABELS):
        raise MirblabError(f"{path}, line 1: expected a column topic and some of {', '.join(TOPIC_LABELS)}; "
                           f"found {', '.join(header) or 'nothing'}")  # fmt: skip
    for number, text in numbered:
        cells = _cells(text, stem, number, problems)
        row = {name: cell.strip() for name, cell in zip(columns, cells, strict=False) if name and cell.strip()}
        topic = row.pop("topic", "")
        if not topic or topic in labels:
            problems.note(number, f"the topic '{topic}' is given a second time" if topic else "the topic is missing")
            continue
        labels[topic] = {name: _label(name, word, number, problems) for name, word in row.items()}
    problems.raise_if_any()
    return labels


def _cells(text: str, name: str, number: int, problems: LineProblems) -> list[str]:
    try:
        return next(csv.reader([text], delimiter="," if name.endswith(".csv") else "\t"), [])
    except csv.Error as error:
        problems.note(number, f"{error}")
        return []


def _column(name: str) -> str:
    plain = name.strip().lower().replace("_", " ")
    if plain.replace(" ", "_") in _IDS or plain.replace(" ", "") in _IDS:
        return "topic"
    return plain if plain in TOPIC_LABELS else _OTHER_COLUMNS.get(plain, "")


def _label(name: str, word: str, number: int, problems: LineProblems) -> str:
    label = _OTHER_WORDS.get(word.lower(), word.capitalize())
    if label not in TOPIC_LABELS[name]:
        known = TOPIC_LABELS[name]
        problems.note(number, f"'{word}' is no {name}; expected {', '.join(known)}{suggest(word, known)}")
    return label
