"""arqmath_files: where the files of an ARQMath release lie, and which labs they make up."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from mirblab.errors import MirblabError, unknown
from mirblab.sources import arqmath_topics as topics
from mirblab.sources import judgements, places
from mirblab.sources.arqmath_topics import Topic
from mirblab.sources.judgements import Judged

URL = "https://www.cs.rit.edu/~dprl/ARQMath/"
HIGHEST = 3
_POSTS = re.compile(r"Posts(?:\.[\w.-]+)?\.xml(?:\.gz)?")
_QRELS = ("", ".tsv", ".txt", ".qrel", ".qrels", ".dat")
_FORMULAS = "latex_representation_v3"
REPRESENTATIONS = ("latex", "slt", "opt")
_PREFERRED = re.compile(r"official|v3")


@dataclass
class Lab:
    """One task of one year: its topics, its judgements, and the files that were passed over for these."""

    year: int
    task: int
    topics: list[Topic] = field(default_factory=list)
    judged: Judged | None = None
    passed_over: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Release:
    """The files of a release, and its labs that have topics or judgements, by year and task."""

    places: tuple[Path, ...]
    posts: Path | None
    formulas: list[Path]
    labs: dict[tuple[int, int], Lab]
    used: list[Path]

    def missing(self, lab: Lab) -> str:
        """Return what a lab lacks to be built, or "" when nothing is missing."""
        lacks = {
            "topics (a file like Topics_Task1_2022.xml)": not lab.topics,
            "judgements (a file like qrel_task1_2022_official.tsv)": lab.judged is None,
            "posts (Posts.V1.3.xml)": lab.task == 1 and self.posts is None,
            f"formulas ({_FORMULAS}/*.tsv)": lab.task == 2 and not self.formulas,
        }
        return " and ".join(what for what, is_missing in lacks.items() if is_missing)


def find(origin: str | Path) -> Release:
    """Return what lies at *origin*: a folder, or several joined as in `PATH`; archives in them are not looked into.

    Posts are found by name, topics and judgements by name and the numbers of their topics, formulas in folders
    named latex_representation_v3. Where one lab has several judgements, the file named "official" or "v3" is taken.
    Raises MirblabError when two files have the same content, and for what cannot be read.
    """
    where = places.split(origin)
    found = places.files(where)
    labs: dict[tuple[int, int], Lab] = {}
    posts = places.only([path for path in found if _POSTS.fullmatch(path.name)], "posts")
    formulas = sorted((path for path in found if _is_formulas(path)), key=_by_number)
    _no_other_version(found, formulas)
    used = [path for path in found if places.kind(path) == ".xml" and "topics" in path.name.lower()]
    for path in used:
        _add_topics(labs, path)
    used += _add_judgements(
        labs, [path for path in found if "qrel" in path.name.lower() and places.kind(path) in _QRELS]
    )
    return Release(where, posts, formulas, labs, [*([posts] if posts else []), *formulas, *used])


def formulas(origin: str | Path, representation: str = "latex") -> list[Path]:
    """Return the files of formulas of version 3 in one of `REPRESENTATIONS`, by number, anywhere below *origin*.

    They are LaTeX, "slt" Presentation MathML and "opt" Content MathML. FileNotFoundError when there are none.
    """
    if representation not in REPRESENTATIONS:
        raise unknown("representation", representation, REPRESENTATIONS)
    where, folder = places.split(origin), f"{representation}_representation_v3"
    found = sorted((path for path in places.files(where) if _is_formulas(path, folder)), key=_by_number)
    if not found:
        raise FileNotFoundError(f"no {folder}/*.tsv below {places.shown(where)}; the release can be had from {URL}")
    return found


def _is_formulas(path: Path, folder: str = _FORMULAS) -> bool:
    return path.parent.name.lower().startswith(folder) and places.kind(path) == ".tsv"


def _by_number(path: Path) -> tuple[int, str]:
    digits = re.match(r"\d+", path.name)
    return int(digits[0]) if digits else 0, str(path)


def _no_other_version(found: list[Path], formulas: list[Path]) -> None:
    others = {path.parent.name for path in found if _is_formulas(path, "latex_representation")}
    if others and not formulas:
        raise MirblabError(f"found {', '.join(sorted(others))}; the visual ids of task 2 are those of {_FORMULAS}")


def _add_topics(labs: dict[tuple[int, int], Lab], path: Path) -> None:
    by_lab: dict[tuple[int, int], list[Topic]] = {}
    for topic in topics.read(path):
        by_lab.setdefault(_key(topic.id, path), []).append(topic)
    for (year, task), read in by_lab.items():
        lab = labs.setdefault((year, task), Lab(year, task))
        if lab.topics:
            raise MirblabError(f"{path} has topics of task {task} of {year}, as another file has; keep one of them")
        lab.topics = read


def _add_judgements(labs: dict[tuple[int, int], Lab], paths: list[Path]) -> list[Path]:
    """Give each lab its judgements; return the files that were taken."""
    choices: dict[tuple[int, int], list[Judged]] = {}
    for path in paths:
        read = judgements.read(path, HIGHEST)
        keys = {query_id: _key(query_id, path) for query_id in dict.fromkeys(query_id for query_id, _ in read.grades)}
        for key in sorted(set(keys.values())):
            grades = {pair: grade for pair, grade in read.grades.items() if keys[pair[0]] == key}
            choices.setdefault(key, []).append(Judged(path, grades, read.n_repeated))
    for key, found in choices.items():
        taken = found if len(found) == 1 else [one for one in found if _PREFERRED.search(one.path.name.lower())]
        if len(taken) != 1:
            named = ", ".join(str(one.path) for one in found)
            raise MirblabError(f"several files judge task {key[1]} of {key[0]}: {named}; keep one of them")
        lab = labs.setdefault(key, Lab(*key))
        lab.judged = taken[0]
        lab.passed_over = [one.path.name for one in found if one is not taken[0]]
    return list(dict.fromkeys(lab.judged.path for _, lab in sorted(labs.items()) if lab.judged))


def _key(topic_id: str, path: Path) -> tuple[int, int]:
    key = topics.lab(topic_id)
    if key is None:
        raise MirblabError(f"{path}: '{topic_id}' is no topic of ARQMath; expected A.1 or B.201, say")
    return key
