"""build: ARQMath's tasks as collections."""

from __future__ import annotations

import difflib
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from mirblab.core.errors import MirblabError, check_known
from mirblab.core.ids import is_whole_number
from mirblab.core.terminal import say
from mirblab.sources.arqmath import formulas
from mirblab.sources.arqmath import release as texts
from mirblab.sources.arqmath.release import URL, Lab, Release, Topic, find_release, keep_judgements
from mirblab.sources.shared import builder
from mirblab.sources.shared.builder import CollectionRows, Row, replace_folders
from mirblab.sources.shared.readers import FileJudgements
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
# The title of each kind of collection, and the collection of the registry that has its task.
_CARDS = {
    "answers": ("question to graded answers", "mirb-arqmath1"),
    "formulas": ("formula with its question to graded formulas", "mirb-arqmath2"),
    "formulas-alone": ("formula to graded formulas", "mirb-wfb"),
}


def build(origin: str | Path | None, out: Path, *, pool: str = "judged") -> list[Path]:
    """Write the collections of all complete tasks of an ARQMath release under *out* and return their folders.

    Task 1 gives arqmath-YEAR-answers, task 2 arqmath-YEAR-formulas (a query is a formula with its question) and
    arqmath-YEAR-formulas-alone. Documents of task 2 are visual ids of version 3 with the LaTeX of their first formula.
    With *pool* "judged" a query's candidates are what was judged for it; with "all" they are all answers or formulas
    (names end in -open). *origin* is one or several folders, joined as in `PATH`, with Posts.V1.3.xml,
    latex_representation_v3, topics and judgements.
    """
    check_known("pool", pool, POOLS)
    if origin is None:
        raise MirblabError(f"give the folder of an ARQMath release with --from; it can be had from {URL}")
    release = find_release(origin)
    labs = _complete(release)
    suffix = "-open" if pool == "all" else ""
    names = tuple(f"arqmath-{lab.year}-{kind}{suffix}" for lab in labs for kind in _KIND[lab.task])
    with replace_folders(out := Path(out), names) as folders, _stores(out, labs) as stores:
        reading = _Reading(release, labs, everything=pool == "all")
        if release.posts and any(lab.task == 1 for lab in labs):
            reading.answers(release.posts, stores[1])
        if any(lab.task == 2 for lab in labs):
            reading.formulas(stores[2])
        source, revision = Origin(release.places[0], URL, "", join_names(release.places)), hash_files(release.used)
        kinds = [(lab, kind) for lab in labs for kind in _KIND[lab.task]]
        for folder, (lab, kind) in zip(folders, kinds, strict=True):
            rows, about = reading.rows(lab, kind, stores[lab.task])
            how = {"pool": pool}
            builder.write_collection(
                folder, rows, about, source, builder="arqmath", revision=revision, licence=LICENCE, options=how
            )
        for example in reading.odd.examples:
            say(f"  {example}")
    return [out / name for name in names]


@contextmanager
def _stores(out: Path, labs: list[Lab]) -> Iterator[dict[int, texts.RowStore]]:
    judged: dict[int, set[str]] = {1: set(), 2: set()}
    for lab in labs:
        judged[lab.task] |= {doc_id for _, doc_id in lab.judged.grades}
    with tempfile.TemporaryFile("w+b", dir=out) as answers, tempfile.TemporaryFile("w+b", dir=out) as formulas:
        yield {1: texts.RowStore(answers, judged[1]), 2: texts.RowStore(formulas, judged[2])}


def _complete(release: Release) -> list[Lab]:
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
    def __init__(self, release: Release, labs: list[Lab], *, everything: bool) -> None:
        self.release, self.labs, self.everything = release, labs, everything
        self.odd = dump.RowProblems()
        self.left_out: dict[int, Counter[str]] = {1: Counter(), 2: Counter()}
        self.versions: dict[int, dict[str, float]] = {}

    def answers(self, posts: Path, store: texts.RowStore) -> None:
        files = dump.find_dump(posts.parent, ("Posts",))
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
                    text, odd = texts.clean_post(row.get("Body", ""))
                    about = {"question": row.get("ParentId", "")}
                    if text:
                        store.add({"_id": post_id, "title": "", "text": text, "metadata": about}, odd)
                    left_out["answers without text"] += not text
        left_out.update({f"posts that are no answers (PostTypeId {kind})": n for kind, n in self.odd.passed.items()})

    def formulas(self, store: texts.RowStore) -> None:
        """Check that the judgements use visual ids of version 3, then put the wanted formulas into *store*."""
        picked = formulas.PickedFormulas(store.judged, everything=self.everything)
        picked.read(self.release.formulas, self.odd)
        for lab in self.labs:
            if lab.task == 2:
                queries = {topic.id: texts.clean_latex(topic.latex).text for topic in lab.topics}
                self.versions[lab.year] = check_visual_ids(lab.judged, queries, picked.occurs)
        picked.documents(self.release.formulas, store)
        self.left_out[2] += picked.left_out

    def rows(self, lab: Lab, kind: str, store: texts.RowStore) -> tuple[CollectionRows, Row]:
        left_out, what = self.left_out[lab.task] + self.odd.counts, _DOCUMENT[lab.task]
        left_out["files of judgements passed over for the official one"] = len(lab.passed_over)
        left_out["judgements given twice"] = lab.judged.n_repeated
        kept, missing = keep_judgements(lab.judged.grades, {topic.id for topic in lab.topics}, store, what, left_out)
        if not kept:
            raise MirblabError(
                f"{lab.judged.path}: none of its {what} is there; do posts and judgements belong together?"
            )
        asked = {query_id for query_id, _, _ in kept}
        queries = [_query(topic, kind, left_out) for topic in lab.topics if topic.id in asked]
        wanted = None if self.everything else {doc_id for _, doc_id, _ in kept}
        about = _about(lab, kind, everything=self.everything) | {"examples": self.odd.examples}
        about |= {"judgements_file": lab.judged.path.name, "first_missing_documents": missing[:_NAMED]}
        about |= {"visual_ids": self.versions[lab.year]} if lab.task == 2 else {}
        return CollectionRows(store.rows(wanted, what, left_out), queries, {"test": kept}, left_out), about


def check_visual_ids(
    judged: FileJudgements, queries: Mapping[str, str], occurs: Mapping[str, Mapping[str, str]]
) -> dict[str, float]:
    """Return the share of judged ids that exist and the similarity of pairs of grade 3; MirblabError for other ids.

    Because ids are dense, those of another version load without an error but mean other formulas. *occurs* maps each
    column to the LaTeX of its judged ids. The similarity (0 to 1) is difflib's mean ratio over at most 500 pairs.
    """
    ids = {doc_id for _, doc_id in judged.grades}
    alike = {key: formula_similarity(judged, queries, formulas) for key, formulas in occurs.items()}
    share, (n_pairs, similarity) = len(occurs["visual_id"]) / len(ids), alike["visual_id"]
    if share < LEAST_SHARE or (n_pairs >= _FEWEST and similarity < LEAST_SIMILARITY):
        fit = [key for key, (n, value) in alike.items() if n >= _FEWEST and value >= LEAST_SIMILARITY]
        looks = _SAYS[fit[0]] if fit else "ids of another release: no column of the formulas fits"
        raise MirblabError(
            f"{judged.path}: {100 * share:.1f} % of its ids are visual ids of the formulas, and its pairs of the "
            f"highest grade have a similarity of {similarity:.2f} ({n_pairs} pairs; the right version has at least "
            f"{LEAST_SIMILARITY}); they look like {looks}; give judgements by visual ids of version 3"
        )
    return {"share_found": round(share, 4), "pairs_of_grade_3": n_pairs, "similarity": round(similarity, 4)}


def formula_similarity(
    judged: FileJudgements, queries: Mapping[str, str], formulas: Mapping[str, str]
) -> tuple[int, float]:
    """Return number and mean similarity (0 to 1) of the pairs of the highest grade whose formula is in *formulas*."""
    highest = max(judged.grades.values())
    best = [pair for pair, grade in judged.grades.items() if grade == highest]
    pairs = [(queries[query], formulas[doc]) for query, doc in best if query in queries and doc in formulas]
    ratios = [
        difflib.SequenceMatcher(
            None, query[:_LONGEST], texts.clean_latex(latex).text[:_LONGEST], autojunk=False
        ).ratio()
        for query, latex in pairs[:_MOST]
    ]
    return len(ratios), sum(ratios) / len(ratios) if ratios else 0.0


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
    title, like = _CARDS[kind]
    about: Row = {
        "title": f"ARQMath {lab.year}: {title}{' in the whole collection' if everything else ''}",
        **builder.read_task(like),
        "relevance_levels": [0, 1, 2, 3],
        "relevant_from": 2,
        "pool": "all" if everything else "judged",
    }
    if not everything:
        about["candidates"] = "judged"
        if lab.year == _MIRB_YEAR and kind != "formulas-alone":
            about["follows"] = f"mirb-arqmath{lab.task}"
    return about
