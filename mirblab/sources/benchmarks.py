"""benchmarks: sets that newer work measures on, from the Hub or a folder laid out like it, as collections.

MathNet-Retrieve, TheoremSearch, TheoremGraph's theorem matching, LeanSearch v2 and BRIGHT. What is fetched is a commit,
never a branch that can move: for MathNet-Retrieve and BRIGHT that of MTEB's tasks, for the others one that a public
repository names which has used the set.
"""

from __future__ import annotations

import re
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from mirblab.core.errors import MirblabError, MissingFileError
from mirblab.core.text_files import read_json
from mirblab.core.wording import first_names
from mirblab.sources import hub
from mirblab.sources.mathlib_informal import FORMAL, INFORMAL, declaration_name, first_text
from mirblab.sources.shared import builder, readers
from mirblab.sources.shared import release as releases
from mirblab.sources.shared.builder import CollectionRows, Judgement, Row, UniqueIds
from mirblab.sources.shared.readers import read_field, read_id, read_rows, read_text_list, require_object
from mirblab.sources.shared.release import Origin, Release

TIERS = ("easy", "medium", "hard")
STYLES = ("q1a_lean", "q1b_latex", "q1c_natural", "q2_slogan", "q3_nickname", "q4_special_case")
GRADES = {"exact": 2, "inexact": 1, "wrong": 0}  # what a judge of TheoremGraph says; "unjudgeable" is no judgement
_ARXIV = re.compile(r"(?:\d{4}\.\d{4,5}|[a-z-]+(?:\.[A-Z]{2})?/\d{7})")
_NUMBER = re.compile(r"(?:\b([^\W\d_]*[a-z])\b[.~\s]*)?((?:\b[A-Z]{1,3}\.?)?\d+(?:\.\d+)*|\b[A-Z]\b)")


Read = Callable[..., dict[str, CollectionRows]]


def _read_mathnet(release: Release) -> dict[str, CollectionRows]:
    """Return one collection per tier; the tiers have the same queries, each with one equivalent problem."""
    return {f"mathnet-{tier}": _read_tier(release, tier) for tier in TIERS}


def _read_tier(release: Release, tier: str) -> CollectionRows:
    left_out: Counter[str] = Counter()
    paths = {
        part: [release.one(rf"{tier}/{stem}\.(?:jsonl(?:\.gz)?|tsv)", f"{part} of the tier {tier}")]
        for part, stem in (("corpus", "corpus"), ("queries", "queries"), ("qrels", "qrels/test"))
    }
    docs, queries = hub.read_ids(paths["corpus"]), hub.read_ids(paths["queries"])
    judged = hub.read_judgements(paths["qrels"], queries, docs, left_out)
    corpus, asked = (hub.read_texts(paths[part], part, left_out) for part in ("corpus", "queries"))
    return CollectionRows(corpus, asked, {"test": judged}, left_out)


def _read_theorem_search(release: Release, *, text: str = "statement") -> dict[str, CollectionRows]:
    """Return the statements, or their slogans, with the queries of mathematicians; 2: the theorem, 1: of its paper."""
    if text not in ("statement", "slogan"):
        raise MirblabError(f"text is 'statement' or 'slogan', found '{text}'")
    left_out: Counter[str] = Counter()
    theorems, papers, asked = (
        release.one(rf"{stem}(?:-\d+-of-\d+)?\.parquet", f"{stem}.parquet")
        for stem in ("theorems?", "papers?", "theorems?-test")
    )
    queries = list(_rows(asked, ["query", "theorem number", "paper title", "link to paper on arxiv"]))
    wanted = {_arxiv(row["link to paper on arxiv"]) for _, row in queries} - {""}
    of_paper = {
        str(row["paper_id"]): _arxiv(row["link"])
        for _, row in _rows(papers, ["paper_id", "link"])
        if _arxiv(row["link"]) in wanted
    }
    slogans = release.one(r"theorem_slogan\.parquet", "theorem_slogan.parquet") if text == "slogan" else None
    stated: dict[str, list[tuple[str, str]]] = defaultdict(list)  # by paper, id and name of each statement

    for place, row in _rows(theorems, ["theorem_id", "paper_id", "name"]):
        if paper := of_paper.get(str(row["paper_id"])):
            stated[paper].append((read_id(row, "theorem_id", place), str(row["name"] or "")))
    judged: list[Judgement] = []
    texts: list[Row] = []
    for number, (place, row) in enumerate(queries, 1):
        found = stated.get(_arxiv(row["link to paper on arxiv"]), [])
        if not found:
            left_out["queries whose paper has no statement in the corpus"] += 1
            continue
        target = str(row["theorem number"] or "")
        grades = {doc: 2 if _is_same_theorem(name, target) else 1 for doc, name in found}
        left_out["queries whose theorem is not in the corpus (kept, its paper is)"] += 2 not in grades.values()
        judged += [(f"q{number:03}", doc, grade) for doc, grade in grades.items()]
        texts.append({"_id": f"q{number:03}", "text": read_field(row, "query", str, place)})

    def corpus() -> Iterator[Row]:
        with closing(sqlite3.connect("")) as store:  # a file that SQLite deletes itself, not memory
            if slogans:
                _store_slogans(slogans, store)
            for place, row in _rows(theorems, ["theorem_id", "name", "body"]):
                name = read_id(row, "theorem_id", place)
                body = _slogan(name, store) if slogans else str(row["body"] or "").strip()
                left_out["statements without a slogan (empty)"] += text == "slogan" and not body
                yield {"_id": name, "title": str(row["name"] or ""), "text": body}

    return {"theoremsearch": CollectionRows(corpus(), texts, {"test": judged}, left_out)}


def _read_theorem_matching(release: Release, *, query: str = "", document: str = "") -> dict[str, CollectionRows]:
    """Return Lean declarations as queries and statements of papers as documents, judged by a language model."""
    path, left_out = release.one(r"theorem_matching\.csv", "theorem_matching.csv"), Counter[str]()
    rows = list(_rows(path, ["formal_decl", "arxiv_id", "informal_ref", "paper_title", "gpt54_label"]))
    columns = list(rows[0][1]) if rows else []
    asks = _column(query, ("formal_slogan", "formal_statement", "formal_signature", "formal_body"), "query", columns)
    says = _column(
        document, ("informal_slogan", "informal_statement", "informal_body", "informal_text"), "document", columns
    )
    asked, stated, grades = dict[str, Row](), dict[str, Row](), dict[tuple[str, str], int]()
    for place, row in rows:
        name, title = read_id(row, "formal_decl", place), f"{row['paper_title']} {row['informal_ref']}".strip()
        doc = "_".join(str(row.get("cand_sid") or f"{row['arxiv_id']} {row['informal_ref']}").split())
        if asked.setdefault(name, {"_id": name, "text": row[asks]})["text"] != row[asks]:
            raise MirblabError(
                f"{place}: the declaration '{name}' had another text in an earlier row, so that its judgements may be "
                "of two; name another column of texts with --set query=COLUMN, or give one of them another name"
            )
        if stated.setdefault(doc, {"_id": doc, "title": title, "text": row[says]})["text"] != row[says]:
            raise MirblabError(f"{place}: '{doc}' had another text in an earlier row; name another column of ids")
        grade = GRADES.get(str(row["gpt54_label"]).strip().lower())
        if grade is None:
            left_out["pairs without a verdict"] += 1
        elif grades.setdefault((name, doc), grade) != grade:
            raise MirblabError(f"{place}: judges '{doc}' for '{name}' a second time, otherwise")
    judged = [(*pair, grade) for pair, grade in grades.items()]
    return {"theorem-matching": CollectionRows(stated.values(), asked.values(), {"test": judged}, left_out)}


def _read_leansearch(release: Release) -> dict[str, CollectionRows]:
    """Return MathlibQR (one declaration per query) and MathlibMPR (groups of premises) on the same declarations."""
    path = release.one(r"(?:lsv2-mathlib|mathlib_corpus|declarations|data)[^/]*\.jsonl(?:\.gz)?", "declarations .jsonl")
    names, docs, repeated = UniqueIds(), list[Row](), 0
    for place, record in readers.read_json_records(path):
        name = declaration_name(record, place)
        doc = names.new(name)
        repeated += doc != name
        informal, formal = (first_text(record, keys, place) for keys in (INFORMAL, FORMAL))
        title = first_text(record, ("informal_name",), place)
        docs.append({"_id": doc, "title": title, "text": f"{informal}\n{formal}".strip()})
    known, made = {row["_id"] for row in docs}, {}
    for stem, name, read in (("MathlibQR", "mathlibqr", _read_qr), ("MathlibMPR", "mathlibmpr", _read_mpr)):
        found = release.matching(rf"{stem}\.json")
        if found:
            made[name] = read(found[0], release, known)
            made[name].corpus = docs
            made[name].left_out["declarations that repeat a name (kept, with a number)"] += repeated
    if not made:
        raise MissingFileError(
            f"no MathlibQR.json or MathlibMPR.json in {release.origin.folder}; found {release.shown()}"
        )
    return made


def _read_qr(path: Path, release: Release, known: set[str]) -> CollectionRows:
    left_out, texts, judged = Counter[str](), list[Row](), dict[str, list[Judgement]]({"test": []})
    shared: set[str] = set()
    for found in release.matching(r"MathlibQR_shared171\.json"):
        shared = set(read_text_list(require_object(read_json(found), str(found)), "shared_declarations", str(found)))
    for place, record in readers.read_json_records(path):
        target = str(read_field(record, "full_name", str, place)).strip()
        for style in STYLES:
            text = first_text(record, (style,), place)
            if text and target not in known:
                left_out["queries whose declaration is not in the corpus"] += 1
            elif text:
                name = f"{read_id(record, 'id', place)}_{style}"
                tags = [style, *filter(None, (first_text(record, (key,), place) for key in ("difficulty", "kind")))]
                texts.append({"_id": name, "text": text, "tags": tags})
                judged["test"].append((name, target, 1))
                if target in shared:
                    judged.setdefault("shared", []).append((name, target, 1))
    return CollectionRows([], texts, judged, left_out)


def _read_mpr(path: Path, release: Release, known: set[str]) -> CollectionRows:
    left_out, texts, groups = Counter[str](), list[Row](), list[tuple[str, str, str]]()
    for place, record in readers.read_json_records(path):
        query, number = read_id(record, "id", place), 0
        for number, entry in enumerate(read_field(record, "premise_group", list, place), 1):
            group = require_object(entry, f"{place}, group {number}")
            named = f"{number}-{first_text(group, ('kind',), place) or 'group'}"
            members = dict.fromkeys(read_text_list(group, "docs", place))
            here = [name for name in members if name in known]
            left_out["premises that are not in the corpus"] += len(members) - len(here)
            left_out["groups without a premise in the corpus"] += not here
            groups += [(query, named, name) for name in here]
        texts.append({"_id": query, "text": read_field(record, "NL_main_result", str, place).strip()})
    judged = [(query, doc, 1) for query, doc in dict.fromkeys((query, doc) for query, _, doc in groups)]
    return CollectionRows([], texts, {"test": judged}, left_out, groups)


def _read_bright(release: Release) -> dict[str, CollectionRows]:
    """Return the two mathematical tasks of BRIGHT, with the documents that are excluded for a query."""
    made = {
        f"bright-{task.replace('_', '-')}": _read_task(release, task)
        for task in ("theoremqa_theorems", "aops")
        if release.matching(rf"documents/{task}(?:-|/).*\.parquet")
    }
    if not made:
        raise MissingFileError(f"no documents/aops-*.parquet in {release.origin.folder}; found {release.shown()}")
    return made


def _read_task(release: Release, task: str) -> CollectionRows:
    documents = release.matching(rf"documents/{task}(?:-|/).*\.parquet")
    examples = release.matching(rf"examples/{task}(?:-|/).*\.parquet")
    left_out, texts, judged, excluded = Counter[str](), list[Row](), list[Judgement](), dict[str, list[str]]()
    docs = {read_id(row, "id", place) for path in documents for place, row in _rows(path, ["id", "content"])}
    for place, row in (each for path in examples for each in _rows(path, ["id", "query", "gold_ids", "excluded_ids"])):
        query, gold = read_id(row, "id", place), dict.fromkeys(map(str, row["gold_ids"] or []))
        excluded[query] = [name for name in map(str, row["excluded_ids"] or []) if name in docs]
        if both := set(gold) & set(excluded[query]):
            raise MirblabError(f"{place}: '{min(both)}' is relevant and excluded; BRIGHT allows only one of the two")
        left_out["relevant documents that are not in the corpus"] += sum(name not in docs for name in gold)
        judged += [(query, name, 1) for name in gold if name in docs]
        texts.append({"_id": query, "text": read_field(row, "query", str, place)})
    corpus = (
        {"_id": row["id"], "text": str(row["content"])}
        for path in documents
        for _, row in _rows(path, ["id", "content"])
    )
    lists = {"excluded_ids": excluded} if any(excluded.values()) else {}
    return CollectionRows(corpus, texts, {"test": judged}, left_out, lists=lists)


@dataclass(frozen=True)
class _Source:
    """A published set: what it is called, where it is, which of its files are read (a pattern), how, and which commit.

    Without a *revision* it is read from a copy only.
    """

    what: str
    address: str
    files: str
    read: Read
    revision: str = ""


SOURCES = {
    "mathnet": _Source("MathNet-Retrieve", "ShadenA/MathNet-Retrieve",
                       r"(?:easy|medium|hard)/(?:corpus|queries|qrels/test)\.jsonl", _read_mathnet,
                       "edab33b5ae2c56c18da0b9a174530de2012a1075"),
    # uw-math-ai/theorem-search-dataset is laid out alike, has more statements and is CC-BY-SA-4.0; it is not fetched.
    "theoremsearch": _Source("TheoremSearch's permissive statements", "uw-math-ai/theorem-search-dataset-permissive",
                             r"(?:theorems?|papers?|theorem_slogan|theorems?-test)\.parquet", _read_theorem_search,
                             "ad938d87de4a55d64fdd8562a59d8da98c02f297"),
    "theorem-matching": _Source("TheoremGraph's matches", "uw-math-ai/theorem-matching", r"theorem_matching\.csv",
                                _read_theorem_matching, "5caba941dd716f17dba4880bd7173edfb1cc36d1"),
    "leansearch": _Source("the benchmark of LeanSearch v2 and its declarations as .jsonl, in one folder",
                          "https://github.com/frenzymath/LeanSearch-v2", "", _read_leansearch),
    "bright": _Source("BRIGHT", "xlangai/BRIGHT", r"(?:documents|examples)/(?:theoremqa_theorems|aops)-.*\.parquet",
                      _read_bright, "a75a0eb483f6a5233a6efc2d63d71540a4443dfb"),
}  # fmt: skip


def build(
    source: str, origin: str | Path | None, out: Path, *, revision: str = "", options: Mapping[str, Any] | None = None
) -> list[Path]:
    """Write the collections of one of `SOURCES` under *out* and return their folders.

    *origin* is a folder laid out like the published set, or an archive of it; None fetches it from the Hub at
    *revision*, a commit of 40 hexadecimal digits ("": the pinned one, where there is one). *options* are those of the
    set's reader. MirblabError for a file, column or value that is not as published, FileNotFoundError for a missing
    file.
    """
    known, given = SOURCES[source], dict(options or {})
    if origin is None and not known.address.startswith("https:"):
        chosen = {"revision": revision} if revision not in ("", known.revision) else {}
        return _write(source, *_fetch(known, source, revision), Path(out), given, chosen)
    with releases.open_release(origin, known.what, _web(known.address)) as release:
        return _write(source, release, "", Path(out), given)


def mathnet(origin: str | Path | None, out: Path, *, revision: str = "") -> list[Path]:
    """Write mathnet-easy, -medium and -hard; see `build`."""
    return build("mathnet", origin, out, revision=revision)


def theorem_search(origin: str | Path | None, out: Path, *, revision: str = "", text: str = "statement") -> list[Path]:
    """Write theoremsearch, whose documents are statements or, with *text* "slogan", their slogans; see `build`."""
    return build("theoremsearch", origin, out, revision=revision, options={"text": text})


def theorem_matching(
    origin: str | Path | None, out: Path, *, revision: str = "", query: str = "", document: str = ""
) -> list[Path]:
    """Write theorem-matching; *query* and *document* name the columns of the two texts; see `build`."""
    return build("theorem-matching", origin, out, revision=revision, options={"query": query, "document": document})


def leansearch(origin: str | Path | None, out: Path) -> list[Path]:
    """Write mathlibqr and mathlibmpr, whichever the folder has; see `build`."""
    return build("leansearch", origin, out)


def bright(origin: str | Path | None, out: Path, *, revision: str = "") -> list[Path]:
    """Write bright-theoremqa-theorems and bright-aops, whichever the folder has; see `build`."""
    return build("bright", origin, out, revision=revision)


def _fetch(known: _Source, source: str, revision: str) -> tuple[Release, str]:
    """Return the files and the licence that the Hub states, "" where it cannot be asked."""
    again = f"mirblab build {source} --from FOLDER"
    revision = revision or known.revision
    if not re.fullmatch("[0-9a-f]{40}", revision):
        raise MirblabError(
            f"{known.what} is fetched at a commit of {_web(known.address)} that is named, found '{revision}': "
            f"mirblab build {source} --set revision=COMMIT (40 hexadecimal digits), or give a copy: {again}"
        )
    choose = partial(_choose, pattern=known.files)
    files = releases.fetch_dataset(known.address, revision, choose=choose, instead=f"give a copy: {again}")
    files.checked(f"mirblab build {source}")
    origin = Origin(files.folder, _web(known.address), files.commit, "")
    return Release(origin, {name: files.folder / name for name in files.parts["files"]}), files.licence


def _choose(names: Iterable[str], where: str, *, pattern: str) -> dict[str, list[str]]:
    names = sorted(names)
    chosen = [name for name in names if re.fullmatch(pattern, name)]
    if not chosen:
        raise MirblabError(f"{where} has none of the files that are read; found {first_names(names, 12)}")
    return {"files": chosen}


def _write(
    source: str, release: Release, licence: str, out: Path, options: Row, fetched: Mapping[str, str] | None = None
) -> list[Path]:
    """Write the collections; *licence* is what the Hub states, and counts where the registry has none.

    *options* are those of the reader, *fetched* what says which release it is, for the command in the card.
    """
    made = SOURCES[source].read(release, **options)
    content = releases.hash_files(release.files.values())
    with builder.replace_folders(out, tuple(made)) as folders:
        for folder, (name, rows) in zip(folders, made.items(), strict=True):
            about = builder.read_about(name)
            stated = about.pop("licence", "") or licence or "unknown"
            chosen = {key: value for key, value in options.items() if value} | dict(fetched or {})
            builder.write_collection(folder, rows, about, release.origin, builder=source, revision=content,
                                     licence=stated, options=chosen)  # fmt: skip
    return [out / name for name in made]


def _web(address: str) -> str:
    return address if address.startswith("https:") else f"https://huggingface.co/datasets/{address}"


def _rows(path: Path, columns: list[str]) -> Iterator[tuple[str, Row]]:
    """Yield place and row, each of which must have all *columns*; a .csv file has others, too."""
    for place, row in read_rows(path, None if path.suffix == ".csv" else columns, Counter()):
        missing = [column for column in columns if column not in row]
        if missing:
            raise MirblabError(f"{place}: no column {', '.join(missing)}; found {', '.join(map(str, row)) or 'none'}")
        yield place, row


def _column(given: str, usual: tuple[str, ...], option: str, columns: list[str]) -> str:
    found = next((name for name in ([given] if given else usual) if name in columns), "")
    if not found:
        raise MirblabError(
            f"theorem_matching.csv has no column {given or ' or '.join(usual)} for the text of a {option}; found "
            f"{', '.join(columns) or 'none'}; name one with --set {option}=COLUMN"
        )
    return found


def _store_slogans(path: Path, store: sqlite3.Connection) -> None:
    """Store the first slogan of each statement, in whatever order the file has them."""
    rows = _rows(path, ["theorem_id", "slogan"])
    found = ((read_id(row, "theorem_id", place), str(row["slogan"] or "").strip()) for place, row in rows)
    try:
        store.execute("CREATE TABLE slogans (id TEXT PRIMARY KEY, slogan TEXT) WITHOUT ROWID")
        store.executemany("INSERT OR IGNORE INTO slogans VALUES (?, ?)", found)
    except sqlite3.Error as error:
        raise MirblabError(f"the slogans of {path} do not fit into a temporary file: {error}; set TMPDIR") from error


def _slogan(name: str, store: sqlite3.Connection) -> str:
    found = store.execute("SELECT slogan FROM slogans WHERE id = ?", (name,)).fetchone()
    return str(found[0]) if found else ""


def _arxiv(link: object) -> str:
    found = _ARXIV.search(str(link or ""))
    return found[0] if found else ""


def _is_same_theorem(name: str, other: str) -> bool:
    """Tell whether two names have one number, and words before it that begin alike, as Thm. and Theorem do.

    >>> [_is_same_theorem("Theorem A.1", name) for name in ("Thm. A.1", "A.1", "Theorem 1", "Lemma A.1")]
    [True, True, False, False]
    """
    found = [number.groups("") for number in map(_NUMBER.search, (name, other)) if number]
    if len(found) < 2 or found[0][1] != found[1][1]:
        return False
    words = {word[:2].casefold() for word, _ in found if word}
    return len(words) < 2
