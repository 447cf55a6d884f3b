"""build: ARQMath's tasks as collections."""

from __future__ import annotations

import difflib
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from mirblab.core.errors import MirblabError, unknown
from mirblab.core.ids import is_whole_number
from mirblab.core.terminal import say
from mirblab.sources.arqmath import formulas
from mirblab.sources.arqmath import release as texts
from mirblab.sources.arqmath.release import URL, Lab, Release, Topic, find_release
from mirblab.sources.shared import builder
from mirblab.sources.shared.builder import CollectionRows, Row, replace_folders
from mirblab.sources.shared.readers import FileJudgements, Judgement
from mirblab.sources.shared.release import Origin, hash_files, join_names
from mirblab.sources.stackexchange import dump

# On real files: 0.60 and 0.72 for the right ids, 0.15 to 0.16 for formulas drawn at random.
LEAST_SIMILARITY = 0.35
LEAST_SHARE = 0.01
_FEWEST, _MOST = 10, 500
_LONGEST = 400
_SAYS = {
    "visual_id": "visual ids of version 3",
    "old_visual_id": "visual ids of version 2 (column old_visual_id)",
    "id": "ids of single formulas (column id)",
}
POOLS = ("judged", "all")
LICENCE = "CC-BY-SA-4.0 (posts and topics); none stated for the judgements"
LAST_YEAR = "2018"  # the labs ask for answers of 2010 to 2018 to questions of later years (Zanibbi et al. 2020)
ANSWER = ("PostTypeId", "2")
_MIRB_YEAR = 2022
_KIND = {1: ("answers",), 2: ("formulas", "formulas-alone")}
_DOCUMENT = {1: "answers", 2: "formulas"}
_NAMED = 5
_CARDS = {
    "answers": (
        "question to graded answers",
        "Question-Answer Retrieval",
        "Given a math problem, retrieve its solution.",
    ),
    "formulas": (
        "formula with its question to graded formulas",
        "Formula Retrieval",
        "Given a math formula and its context, retrieve relevant formulas.",
    ),
    "formulas-alone": (
        "formula to graded formulas",
        "Formula Retrieval",
        "Given a math formula, retrieve relevant formulas.",
    ),
}


def build(origin: str | Path | None, out: Path, *, pool: str = "judged") -> list[Path]:
    """Write the collections of all labs of a release under *out*, print what was left out, return their folders.

    Task 1 of a year makes arqmath-YEAR-answers; task 2 makes arqmath-YEAR-formulas, whose queries are the formula
    and the question that it stands in, and arqmath-YEAR-formulas-alone without the question. Documents of task 2
    are visual ids of version 3, each with the LaTeX of its first formula. With *pool* "judged" the corpus has the
    judged documents, and only what was judged for a query is a candidate; with "all" it has every answer or formula
    (names end in -open). *origin* is a folder with Posts.V1.3.xml, latex_representation_v3, topics and judgements
    anywhere below it, or several such folders joined as in `PATH`. In memory are the judged ids and, for "all", the
    numbers of the answers and 8 bytes for each visual id; texts wait on disk. The same input gives the same bytes.
    Raises MirblabError when no lab is complete, for files that cannot be read and for other versions of visual ids.
    """
    if pool not in POOLS:
        raise unknown("pool", pool, POOLS)
    if origin is None:
        raise MirblabError(f"give the folder of an ARQMath release with --from; it can be had from {URL}")
    release = find_release(origin)
    labs = _complete(release)
    suffix = "-open" if pool == "all" else ""
    names = tuple(f"arqmath-{lab.year}-{kind}{suffix}" for lab in labs for kind in _KIND[lab.task])
    with replace_folders(out := Path(out), names) as folders, _stores(out, labs) as stores:
        reading = _Reading(release, labs, everything=pool == "all")
        if any(lab.task == 1 for lab in labs):
            reading.answers(stores[1])
        if any(lab.task == 2 for lab in labs):
            reading.formulas(stores[2])
        made = {"builder": "arqmath", "revision": hash_files(release.used), "licence": LICENCE}
        made["options"] = {"pool": pool}
        found = Origin(release.places[0], URL, "", join_names(release.places))
        left = iter(folders)
        for lab in labs:
            for kind in _KIND[lab.task]:
                parts, about = reading.parts(lab, kind, stores[lab.task])
                builder.write_collection(next(left), parts, about, found, **made)
        for example in reading.odd.examples:
            say(f"  {example}")
    return [out / name for name in names]


@contextmanager
def _stores(out: Path, labs: list[Lab]) -> Iterator[dict[int, texts.RowStore]]:
    """Yield a place on disk for the documents of each task."""
    with tempfile.TemporaryFile("w+b", dir=out) as one, tempfile.TemporaryFile("w+b", dir=out) as other:
        yield {task: texts.RowStore(spool, _judged(labs, task)) for task, spool in ((1, one), (2, other))}


def _judged(labs: list[Lab], task: int) -> set[str]:
    return {doc_id for lab in labs if lab.task == task and lab.judged for _, doc_id in lab.judged.grades}


def _complete(release: Release) -> list[Lab]:
    """Return the labs that can be built; print what the others lack."""
    labs = [lab for _, lab in sorted(release.labs.items())]
    lacks = {f"task {lab.task} of {lab.year}": missing for lab in labs if (missing := release.missing(lab))}
    if len(lacks) == len(labs):
        shown = "; ".join(f"{lab} has no {missing}" for lab, missing in lacks.items())
        raise MirblabError(
            f"{join_names(release.places)} has no ARQMath task that is complete: "
            f"{shown or 'neither topics (*topics*.xml) nor judgements (*qrel*)'}"
        )
    for lab, missing in lacks.items():
        say(f"not built: {lab}, which has no {missing}")
    return [lab for lab in labs if not release.missing(lab)]


class _Reading:
    """What one reading of posts and formulas finds, for the labs that are built from it."""

    def __init__(self, release: Release, labs: list[Lab], *, everything: bool) -> None:
        self.release, self.labs, self.everything = release, labs, everything
        self.odd = dump.RowProblems()
        self.left_out: dict[int, Counter[str]] = {1: Counter(), 2: Counter()}
        self.versions: dict[int, dict[str, float]] = {}

    def answers(self, store: texts.RowStore) -> None:
        """Put the answers that are wanted into *store*."""
        files = dump.find_dump(self.release.posts.parent, ("Posts",))
        name, left_out, seen = files.shown("Posts"), self.left_out[1], set[int]()
        with files.stream("Posts") as stream:
            for line, row in dump.read_rows(stream, name, ("Id", "ParentId", "Body", "CreationDate"), self.odd, ANSWER):
                post_id = row.get("Id", "")
                if not self.everything and post_id not in store.judged:
                    left_out["answers that no one judged"] += 1
                elif not is_whole_number(post_id) or int(post_id) in seen:
                    reason = "answers that repeat an Id" if is_whole_number(post_id) else "answers without an Id"
                    self.odd.note(name, line, reason, post_id)
                elif row.get("CreationDate", "")[:4] > LAST_YEAR:
                    left_out[f"answers written after {LAST_YEAR}, where the collection ends"] += 1
                else:
                    seen.add(int(post_id))
                    self._keep(store, post_id, row)
        left_out.update({f"posts that are no answers (PostTypeId {kind})": n for kind, n in self.odd.passed.items()})

    def _keep(self, store: texts.RowStore, post_id: str, row: dict[str, str]) -> None:
        text, odd = texts.clean_post(row.get("Body", ""))
        if text:
            store.add(
                {"_id": post_id, "title": "", "text": text, "metadata": {"question": row.get("ParentId", "")}}, odd
            )
        else:
            self.left_out[1]["answers without text"] += 1

    def formulas(self, store: texts.RowStore) -> None:
        """Put the formulas that are wanted into *store*, after the judgements were seen to name these."""
        picked = formulas.PickedFormulas(store.judged, everything=self.everything)
        picked.read(self.release.formulas, self.odd)
        for lab in self.labs:
            if lab.task == 2:
                queries = {topic.id: texts.clean_latex(topic.latex).text for topic in lab.topics}
                self.versions[lab.year] = check_visual_ids(lab.judged, queries, picked.occurs)
        picked.documents(self.release.formulas, store)
        self.left_out[2] += picked.left_out

    def parts(self, lab: Lab, kind: str, store: texts.RowStore) -> tuple[CollectionRows, Row]:
        """Return one collection of a lab, and what its card says."""
        left_out = Counter(self.left_out[lab.task])
        left_out.update(self.odd.counts)
        left_out["files of judgements passed over for the official one"] = len(lab.passed_over)
        pairs, missing = _split(lab, store, left_out)
        asked = {query_id for query_id, _, _ in pairs}
        queries = [_query(topic, kind, left_out) for topic in lab.topics if topic.id in asked]
        wanted = None if self.everything else {doc_id for _, doc_id, _ in pairs}
        about = _about(lab, kind, everything=self.everything) | {"examples": self.odd.examples}
        about |= {"judgements_file": lab.judged.path.name, "first_missing_documents": missing[:_NAMED]}
        if lab.task == 2:
            about["visual_ids"] = self.versions[lab.year]
        return CollectionRows(
            store.rows(wanted, _DOCUMENT[lab.task], left_out), queries, {"test": pairs}, left_out
        ), about


def check_visual_ids(
    judged: FileJudgements, queries: Mapping[str, str], occurs: Mapping[str, Mapping[str, str]]
) -> dict[str, float]:
    """Return how many judged ids occur, and how alike the pairs of grade 3 are; MirblabError for another version.

    With ids of another version everything loads and means nothing, because ids are dense: most occur, as other
    formulas. *queries* maps topics to LaTeX; *occurs* maps each column of ids to the LaTeX of the judged ids in it.
    The similarity, from 0 to 1, is the mean of difflib's ratio over at most 500 pairs; it decides from ten pairs on.
    """
    ids = {doc_id for _, doc_id in judged.grades}
    shares = {key: len(found) / len(ids) for key, found in occurs.items()}
    alike = {key: formula_similarity(judged, queries, found) for key, found in occurs.items()}
    share, (n_pairs, similarity) = shares["visual_id"], alike["visual_id"]
    if share < LEAST_SHARE or (n_pairs >= _FEWEST and similarity < LEAST_SIMILARITY):
        fit = [key for key, (n, value) in alike.items() if n >= _FEWEST and value >= LEAST_SIMILARITY]
        looks = _SAYS[fit[0]] if fit else "ids of another release: no column of the formulas fits"
        raise MirblabError(
            f"{judged.path}: {share:.1%} of its ids are visual ids of the formulas, and its pairs of the highest grade "
            f"have a similarity of {similarity:.2f} ({n_pairs} pairs; the right version has at least "
            f"{LEAST_SIMILARITY}); they look like {looks}; give judgements by visual ids of version 3"
        )
    return {"share_found": round(share, 4), "pairs_of_grade_3": n_pairs, "similarity": round(similarity, 4)}


def formula_similarity(
    judged: FileJudgements, queries: Mapping[str, str], found: Mapping[str, str]
) -> tuple[int, float]:
    """Return number and mean similarity of the pairs of the highest grade whose formula is *found*."""
    highest = max(judged.grades.values())
    pairs = [
        (queries[query_id], found[doc_id])
        for (query_id, doc_id), grade in judged.grades.items()
        if grade == highest and query_id in queries and doc_id in found
    ][:_MOST]
    ratios = [
        difflib.SequenceMatcher(None, query, texts.clean_latex(latex).text[:_LONGEST], autojunk=False).ratio()
        for query, latex in ((query[:_LONGEST], latex) for query, latex in pairs)
    ]
    return len(ratios), sum(ratios) / len(ratios) if ratios else 0.0


def _split(lab: Lab, store: texts.RowStore, left_out: Counter[str]) -> tuple[list[Judgement], list[str]]:
    """Return the judgements whose topic and document exist, and the judged documents that do not."""
    known, what = {topic.id for topic in lab.topics}, _DOCUMENT[lab.task]
    pairs: list[Judgement] = []
    missing: dict[str, None] = {}
    for (query_id, doc_id), grade in lab.judged.grades.items():
        if query_id not in known:
            left_out["judgements of topics that the file of topics lacks"] += 1
        elif doc_id not in store.found:
            left_out[f"judgements of {what} that are not there (grade {grade})"] += 1
            missing[doc_id] = None
        else:
            pairs.append((query_id, doc_id, grade))
    if not pairs:
        raise MirblabError(f"{lab.judged.path}: none of its {what} is there; do posts and judgements belong together?")
    judged, kept = {query_id for query_id, _ in lab.judged.grades}, {query_id for query_id, _, _ in pairs}
    left_out["judgements given twice"] = lab.judged.n_repeated
    left_out[f"judged {what} that are not there"] = len(missing)
    left_out["topics without a judgement (no queries)"] = len(known - judged)
    left_out[f"topics whose judged {what} are not there (no queries)"] = len((known & judged) - kept)
    return pairs, list(missing)


def _query(topic: Topic, kind: str, left_out: Counter[str]) -> Row:
    title, body = texts.clean_post(topic.title, is_title=True), texts.clean_post(topic.question)
    question, odd = f"{title.text} {body.text}".strip(), {*title.odd, *body.odd}
    if kind == "answers":
        text, about = question, {}
    else:
        formula = texts.clean_latex(topic.latex)
        odd = set(formula.odd) | (odd if kind == "formulas" else set())
        text = f"Formula: ${formula.text}$ Context: {question}" if kind == "formulas" else formula.text
        about = {"metadata": {"formula": formula.text, "formula_id": topic.formula_id}}
    left_out.update(f"queries {each}" for each in odd)
    return {"_id": topic.id, "text": text, "tags": topic.tags, **about}


def _about(lab: Lab, kind: str, *, everything: bool) -> Row:
    title, task, instruction = _CARDS[kind]
    about: Row = {
        "title": f"ARQMath {lab.year}: {title}{' in the whole collection' if everything else ''}",
        "task": task,
        "instruction": instruction,
        "relevance_levels": [0, 1, 2, 3],
        "relevant_from": 2,
        "pool": "all" if everything else "judged",
    }
    if not everything:
        about["candidates"] = "judged"
        if lab.year == _MIRB_YEAR and kind != "formulas-alone":
            about["follows"] = f"mirb-arqmath{lab.task}"
    return about
