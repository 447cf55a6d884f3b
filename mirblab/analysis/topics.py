"""topics: ARQMath's labels of topics."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from mirblab.core.errors import MirblabError, suggest
from mirblab.core.text_files import LineProblems, read_lines
from mirblab.data.collection import Collection

_FORMULA = re.compile(r"\$\$.+?\$\$|\$[^$]+\$", re.DOTALL)
_CUES = {
    "Proof": r"prov(?:e[sdn]?|ing)|proofs?|show(?:s|ing|n)? that|show|disprove|counter-?examples?|induction|"
    r"contradiction|verify|if and only if|implies",
    "Calculation": r"comput\w*|calculat\w*|evaluat\w*|find(?:ing)?|determin(?:e|ing)|solv(?:e|ing)|solutions?|"
    r"simplif\w*|integrat(?:e|ing)|differentiat(?:e|ing)|factor(?:ing|i[sz]e)?|how many|sum of|values? of|"
    r"probability that",
    "Concept": r"what (?:is|are|does|do)|why|mean(?:s|ing)?|defin(?:e|ed|ition|itions)|understand(?:ing)?|intuit\w*|"
    r"difference between|explain|explanation|interpret\w*|references?|examples? of|is it (?:true|possible)|"
    r"when (?:is|does)",
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
_BY_VALUES, _NONE = "mean value of the systems, in thirds", "no tags"


def topic_labels(
    collection: Collection, path: str | Path | None = None, values: pd.DataFrame | None = None
) -> pd.DataFrame:
    """Return one row per query: what kind of question it is, and where each label comes from.

    Columns: collection, query_id, and category (Calculation, Concept, Proof), dependency (Text, Formula, Both),
    difficulty (Low, Medium, High; None when nothing tells), each followed by a column such as category_from: the
    name of the file at *path* where that labels the topic (`read_labels`), else "derived: " and the rule
    (`topic_rules`). Labels of the labs were given by people (Mansouri et al. 2021); derived ones are ours, and must
    not be compared with published figures by label. With *values*, of one measure and any systems, the derived
    difficulty is Low for the third of the queries that systems do best on, and High for the worst third: then
    values by difficulty say nothing about these systems, since they made the labels. `query_features.assign_strata`
    takes the table: `strata(values, topic_labels(collection), "category")`.

    >>> from mirblab.sources.catalogue import load
    >>> topic_labels(load("mini-qa")).category_from.unique().tolist()
    ['derived: cue words']
    """
    given = _given(collection, path) if path is not None else {}
    levels = _by_values(collection, values) if values is not None else {}
    tags = collection.queries["tags"] if "tags" in collection.queries else [None] * len(collection.queries)
    rows = []
    for query_id, text, own in zip(collection.query_ids, collection.query_texts, tags, strict=True):
        by_tags = difficulty(own or ()), "tags" if own else _NONE
        derived = {
            "category": (category(text), "cue words"),
            "dependency": (dependency(text), "share of formulas"),
            "difficulty": (levels[query_id], _BY_VALUES) if levels else by_tags,
        }
        row = {"collection": collection.name, "query_id": query_id}
        for name, (label, rule) in derived.items():
            theirs = given.get(query_id, {}).get(name)
            row |= {name: theirs or label, f"{name}_from": Path(path).name if theirs else f"derived: {rule}"}
        rows.append(row)
    return pd.DataFrame(rows)


def _given(collection: Collection, path: str | Path) -> dict[str, dict[str, str]]:
    """Return the labels in a file; MirblabError when it has none of the collection's queries."""
    given = read_labels(path)
    if given and not given.keys() & set(collection.query_ids):
        shown = ", ".join(list(given)[:3])
        raise MirblabError(f"{path} labels none of the queries of {collection.name}; it has {shown} ...")
    return given


def _by_values(collection: Collection, values: pd.DataFrame) -> dict[str, str]:
    """Return the third that each query is in by the mean over systems; equal means share the easier one."""
    if values.measure.nunique() != 1:
        raise MirblabError(f"one measure at a time, found {', '.join(map(str, values.measure.unique())) or 'none'}")
    means = values.astype({"query_id": "str"}).groupby("query_id").value.mean()
    means = means.reindex(collection.query_ids)
    if means.isna().any():
        raise MirblabError(f"{int(means.isna().sum())} queries of {collection.name} have no value, such as "
                           f"'{means.index[means.isna()][0]}'")  # fmt: skip
    thirds = ((means.rank(method="min", ascending=False) - 1) * 3 // len(means)).astype(int)
    return {query_id: TOPIC_LABELS["difficulty"][third] for query_id, third in thirds.items()}


def category(text: str) -> str:
    """Return Proof, Calculation or Concept: the one with most cue words outside the formulas, in this order on ties.

    Each cue counts once however often it comes; those in the first fifteen words, where the title is, count twice.
    A text without any is Concept.

    >>> category("Prove that $n^2$ is even"), category("Find the sum $1+2$"), category("Why is it called a group?")
    ('Proof', 'Calculation', 'Concept')
    """
    words = _FORMULA.sub(" ", text)
    title = " ".join(words.split()[:15])
    counts = {name: len(_cues(pattern, words)) + len(_cues(pattern, title)) for name, pattern in _FOUND.items()}
    best = max(counts, key=lambda name: counts[name])
    return best if counts[best] else "Concept"


def _cues(pattern: re.Pattern[str], text: str) -> set[str]:
    return {found.lower() for found in pattern.findall(text)}


def dependency(text: str) -> str:
    """Return Text when under 20 % of the characters stand in formulas, Formula from 40 % on, else Both.

    >>> dependency("What is a group?"), dependency("$x^2+1=0$ over $Z$?"), dependency("Is the group $(Z,+)$ cyclic?")
    ('Text', 'Formula', 'Both')
    """
    share = sum(map(len, _FORMULA.findall(text))) / max(len(text.strip()), 1)
    return "Text" if share < _FEW else "Formula" if share >= _MOST else "Both"


def difficulty(tags: Sequence[str]) -> str | None:
    """Return High when a tag is of graduate mathematics, else Low when one is of school or first year, else Medium.

    None without tags.

    >>> difficulty(["calculus", "limits"]), difficulty(["calculus", "measure-theory"]), difficulty(["matrices"])
    ('Low', 'High', 'Medium')
    """
    if not tags:
        return None
    if any(_ADVANCED.search(tag) for tag in tags):
        return "High"
    return "Low" if any(_SCHOOL.search(tag) for tag in tags) else "Medium"


def read_labels(path: str | Path) -> dict[str, dict[str, str]]:
    r"""Return the labels in a table with a header: {topic: {"category": "Proof", ...}}; `.csv` has commas, else tabs.

    The organisers publish the labels apart from the topics, in files that we have not seen; what is assumed is a
    column of topics (topic, topic_id, query_id, number or id; A.201, say) and some of the columns category (or
    type), dependency and difficulty, in any case. Computation is read as Calculation, Easy and Hard as Low and
    High; empty cells give no label. MirblabError with file and line for another word, and for a missing column.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a.tsv").write_text("Topic\tCategory\nA.201\tcomputation\n")
    ...     read_labels(Path(folder, "a.tsv"))
    {'A.201': {'category': 'Calculation'}}
    """
    path = Path(path)
    problems, found = LineProblems(path), dict[str, dict[str, str]]()
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
        if not topic or topic in found:
            problems.note(number, f"the topic '{topic}' a second time" if topic else "no topic")
            continue
        found[topic] = {name: _label(name, word, number, problems) for name, word in row.items()}
    problems.raise_if_any()
    return found


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
