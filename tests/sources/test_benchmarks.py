"""Sets that newer work measures on: made-up files with the published columns become the collections they should."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from built_collections import card
from hub_server import Hub, run_in_process
from peak_memory import peak_memory

from mirblab.core.errors import MirblabError
from mirblab.data.collection import load_folder
from mirblab.evaluation.measures import evaluate
from mirblab.evaluation.significance import tier_drops
from mirblab.sources import benchmarks, catalogue
from mirblab.sources.shared import release
from mirblab.sources.shared.release import Origin, Release

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def lines(path: Path, rows: list[Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")


def parquet(path: Path, rows: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pd.DataFrame(rows).to_parquet(path)


def publish_mathnet(folder: Path) -> Path:
    for tier in benchmarks.TIERS:
        docs = [f"p{n}::{kind}" for n in (1, 2) for kind in (f"eq::{tier}", "orig", "nm::1")]
        lines(folder / tier / "corpus.jsonl", [{"_id": doc, "text": f"problem {doc}"} for doc in docs])
        lines(folder / tier / "queries.jsonl", [{"_id": f"p{n}", "text": f"problem {n}"} for n in (1, 2)])
        judged = [{"query-id": f"p{n}", "corpus-id": f"p{n}::eq::{tier}", "score": 1} for n in (1, 2)]
        lines(folder / tier / "qrels" / "test.jsonl", judged)
    return folder


def publish_theorem_search(folder: Path) -> Path:
    stated = [
        (1, 7, "Theorem 3.1", "Let $X$ be proper."),
        (2, 7, "Lemma 3.10", "Let $Y$ be flat."),
        (3, 8, "", "Else."),
    ]
    parquet(
        folder / "theorem.parquet",
        [dict(zip(("theorem_id", "paper_id", "name", "body"), row, strict=True)) | {"label": "x"} for row in stated],
    )
    parquet(
        folder / "theorem_slogan.parquet", [{"theorem_id": n, "model": "m", "slogan": f"slogan {n}"} for n in (1, 1, 2)]
    )
    parquet(
        folder / "paper.parquet",
        [
            {"paper_id": 7, "link": "http://arxiv.org/abs/2310.15076v2", "title": "On X"},
            {"paper_id": 8, "link": "http://arxiv.org/abs/math/0601001", "title": "On Z"},
        ],
    )
    asked = [("proper", "Thm. 3.1", "2310.15076"), ("none of these", "Theorem 9", "2310.15076v1"),
             ("elsewhere", "Theorem 1", "1901.00001")]  # fmt: skip
    parquet(folder / "theorems-test.parquet",
            [{"query": query, "theorem number": number, "paper title": "t", "link to paper on arxiv": f"https://arxiv.org/abs/{paper}"}
             for query, number, paper in asked])  # fmt: skip
    return folder


MATCHES = [("Nat.add_comm", "s1", "exact"), ("Nat.mul_comm", "s1", "wrong"), ("Nat.mul_comm", "s2", "inexact"),
           ("Nat.gcd", "s2", "unjudgeable")]  # fmt: skip


def publish_matching(folder: Path, **renamed: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    rows = [{"formal_decl": decl, "formal_slogan": f"says {decl}", "cand_sid": doc, "arxiv_id": "2310.15076",
             "informal_ref": f"Theorem {doc}", "informal_slogan": f'a "sum", {doc}', "paper_title": "On sums",
             "sim": 0.9, "gpt54_label": label, "deepseek_label": "exact"} for decl, doc, label in MATCHES]  # fmt: skip
    pd.DataFrame(rows).rename(columns=renamed).to_csv(folder / "theorem_matching.csv", index=False)
    return folder


def publish_leansearch(folder: Path) -> Path:
    lines(folder / "corpus" / "lsv2-mathlib-v4.28.0-rc1.jsonl",
          [{"name": name.split("."), "informal_name": "Title", "informal_description": f"about {name}",
            "signature": ": P"} for name in ("Nat.add_comm", "Nat.mul_comm", "Nat.gcd")])  # fmt: skip
    declared = [{"id": "1", "full_name": "Nat.add_comm", "difficulty": "Easy", "kind": "theorem", "q1a_lean": "a + b",
                 "q1b_latex": "", "q2_slogan": "addition commutes"},
                {"id": "2", "full_name": "Gone.lemma", "difficulty": "Hard", "kind": "def", "q1c_natural": "gone"},
                {"id": "3", "full_name": "Nat.gcd", "difficulty": "Hard", "kind": "def",
                 "q1c_natural": "divisor"}]  # fmt: skip
    benchmark = folder / "benchmark"
    benchmark.mkdir(parents=True)
    (benchmark / "MathlibQR.json").write_text(json.dumps(declared), "utf-8")
    shared = {"shared_declarations": ["Nat.gcd"], "note": "x"}
    (benchmark / "MathlibQR_shared171.json").write_text(json.dumps(shared), "utf-8")
    groups = [
        {"kind": "original", "docs": ["Nat.add_comm", "Nat.mul_comm"]},
        {"kind": "original", "docs": ["Nat.gcd"]},
        {"kind": "alternative", "docs": ["Gone.lemma"]},
    ]
    stated = [{"id": "m1", "pr": 1, "formal_main_result": "T", "NL_main_result": "Sums commute.",
               "formal_statement": "…", "premise_group": groups}]  # fmt: skip
    (benchmark / "MathlibMPR.json").write_text(json.dumps(stated), "utf-8")
    return folder


def publish_bright(folder: Path) -> Path:
    for task in ("theoremqa_theorems", "aops"):
        docs = [{"id": f"{task}/{n}.txt", "content": f"theorem {n}"} for n in range(4)]
        parquet(folder / "documents" / f"{task}-00000-of-00001.parquet", docs)
        parquet(folder / "examples" / f"{task}-00000-of-00001.parquet", [
            {"id": f"{n}", "query": f"problem {n}", "reasoning": "r", "excluded_ids": excluded,
             "gold_ids": [f"{task}/{n}.txt"], "gold_ids_long": ["N/A"], "gold_answer": ""}
            for n, excluded in ((0, ["N/A"]), (1, [f"{task}/2.txt"]))])  # fmt: skip
    return folder


def judged(folder: Path, split: str = "test") -> list[tuple[str, str, int]]:
    qrels = load_folder(folder, split).qrels
    return list(zip(qrels.query_id.astype(str), qrels.doc_id.astype(str), qrels.relevance.tolist(), strict=True))


def test_the_tiers_of_mathnet_share_their_queries(tmp_path: Path) -> None:
    """One positive each; a system's drop from tier to tier is measured on them."""
    made = benchmarks.mathnet(publish_mathnet(tmp_path / "m"), tmp_path / "out")
    assert [folder.name for folder in made] == ["mathnet-easy", "mathnet-medium", "mathnet-hard"]
    assert judged(made[0]) == [("p1", "p1::eq::easy", 1), ("p2", "p2::eq::easy", 1)]
    values = []
    for folder, found in zip(made, (2, 1, 0), strict=True):
        loaded = load_folder(folder)
        first = [f"p{n}::eq::{folder.name.removeprefix('mathnet-')}" if n <= found else f"p{n}::orig" for n in (1, 2)]
        run = pd.DataFrame({"query_id": ["p1", "p2"], "doc_id": first, "score": 1.0})
        values.append(evaluate(run, loaded, "Hit@1"))
    drops = tier_drops(pd.concat(values), "Success@1", [folder.name for folder in made], n_resamples=50)
    assert drops.difference.tolist() == [-0.5, -0.5, -1.0]
    assert load_folder(made[0]).card.licence == "CC-BY-4.0"


def test_theorem_search_grades_the_theorem_and_its_paper(tmp_path: Path) -> None:
    """2 for the theorem of that number, 1 for others of the paper; a query without its paper is counted."""
    folder = benchmarks.theorem_search(publish_theorem_search(tmp_path / "t"), tmp_path / "out")[0]
    assert judged(folder) == [("q001", "1", 2), ("q001", "2", 1), ("q002", "1", 1), ("q002", "2", 1)]
    loaded = load_folder(folder)
    assert loaded.document("1") == "Theorem 3.1 Let $X$ be proper." and loaded.card.relevant_from == 2
    left = loaded.card.extra["counts"]["left_out"]
    assert left == {"queries whose paper has no statement in the corpus": 1,
                    "queries whose theorem is not in the corpus (kept, its paper is)": 1}  # fmt: skip
    again = benchmarks.theorem_search(tmp_path / "t", tmp_path / "out", text="slogan")[0]
    assert load_folder(again).document("1") == "Theorem 3.1 slogan 1"
    with pytest.raises(MirblabError, match="text is 'statement' or 'slogan', found 'body'"):
        benchmarks.theorem_search(tmp_path / "t", tmp_path / "out", text="body")


@pytest.mark.parametrize(
    ("number", "same"),
    [
        ("Theorem A.1", {"Theorem A.1"}),
        ("Thm. 1", {"Theorem 1"}),
        ("Lemma 1", {"Lemma 1"}),
        ("1", {"Theorem 1", "Lemma 1"}),
        ("Theorem B", {"Main Theorem B"}),
        ("Theorem", set()),
    ],
)
def test_the_letter_and_the_kind_of_a_theorem_count(tmp_path: Path, number: str, same: set[str]) -> None:
    """Only the digits were compared, so that Theorem A.1 stood for Theorem 1, Lemma 1 and Theorem B.1, too."""
    folder, names = publish_theorem_search(tmp_path / "t"), ["Theorem A.1", "Theorem 1", "Lemma 1", "Theorem B.1"]
    names += ["Main Theorem B", "Remark"]
    stated = [{"theorem_id": name, "paper_id": 7, "name": name, "body": f"Body of {name}."} for name in names]
    parquet(folder / "theorem.parquet", stated)
    asked = {"query": "q", "theorem number": number, "paper title": "t", "link to paper on arxiv": "2310.15076"}
    parquet(folder / "theorems-test.parquet", [asked])
    found = judged(benchmarks.theorem_search(folder, tmp_path / "out")[0])
    assert {doc for _, doc, grade in found if grade == 2} == same and len(found) == len(names)


def test_slogans_are_not_held_in_memory(tmp_path: Path) -> None:
    """Of 20,000 long slogans in another order than the statements each finds its own, the first where there are two."""
    n = 20_000
    said = {number: f"slogan {number} " + "x" * 400 for number in range(1, n)}  # the last statement has none
    rows = [{"theorem_id": number, "slogan": text} for number, text in reversed(said.items())]
    folder = publish_theorem_search(tmp_path / "t")
    parquet(folder / "theorem_slogan.parquet", [*rows, {"theorem_id": 7, "slogan": "a later one"}])
    stated = [{"theorem_id": number, "paper_id": 9, "name": "", "body": ""} for number in range(1, n + 1)]
    parquet(folder / "theorem.parquet", stated)
    with release.open_release(folder, "TheoremSearch", "") as files, peak_memory() as peak:
        made = benchmarks.SOURCES["theoremsearch"].read(files, text="slogan")["theoremsearch"]
        texts = hashlib.sha256()
        for row in made.corpus:
            texts.update(row["text"].encode())
    assert texts.hexdigest() == hashlib.sha256("".join(said.values()).encode()).hexdigest()
    assert made.left_out["statements without a slogan (empty)"] == 1
    assert peak.n_bytes < sum(map(len, said.values())) / 2


def test_one_name_of_two_declarations_is_refused(tmp_path: Path) -> None:
    """As one document of two texts is: judgements of the second would count for the first."""
    path = publish_matching(tmp_path / "a") / "theorem_matching.csv"
    rows = pd.read_csv(path)
    rows.loc[2, "formal_slogan"] = "says another thing"
    rows.to_csv(path, index=False)
    with pytest.raises(MirblabError, match=r"line 4: the declaration 'Nat.mul_comm' had another text .* --set query="):
        benchmarks.theorem_matching(tmp_path / "a", tmp_path / "out")


def test_the_command_of_a_card_has_the_revision_that_was_asked_for(tmp_path: Path, monkeypatch) -> None:
    """And not the one that is taken anyway."""
    folder, pinned = publish_matching(tmp_path / "a"), benchmarks.SOURCES["theorem-matching"].revision
    asked: list[str] = []

    def fetched(known: object, source: str, revision: str) -> tuple[Release, str]:
        asked.append(revision)
        origin = Origin(folder, "address", revision, "")
        return Release(origin, {"theorem_matching.csv": folder / "theorem_matching.csv"}), "MIT"

    monkeypatch.setattr(benchmarks, "_fetch", fetched)
    for revision, more in (("", ""), (pinned, ""), ("a" * 40, f" --set revision={'a' * 40}")):
        [made] = benchmarks.theorem_matching(None, tmp_path / "out", revision=revision)
        assert card(made)["command"] == f"mirblab build theorem-matching{more}"
    assert asked == ["", pinned, "a" * 40]


def test_theorem_matching_takes_the_verdicts_as_grades(tmp_path: Path) -> None:
    """Exact 2, inexact 1, wrong 0, no verdict no judgement; columns of texts may be named."""
    folder = benchmarks.theorem_matching(publish_matching(tmp_path / "a"), tmp_path / "out")[0]
    assert judged(folder) == [("Nat.add_comm", "s1", 2), ("Nat.mul_comm", "s1", 0), ("Nat.mul_comm", "s2", 1)]
    assert load_folder(folder).document("s1") == 'On sums Theorem s1 a "sum", s1'
    other = publish_matching(tmp_path / "b", formal_slogan="lean", informal_slogan="tex")
    with pytest.raises(MirblabError, match="no column formal_slogan or .* for the text of a query; found formal_decl, "
                       "lean,.*--set query=COLUMN"):  # fmt: skip
        benchmarks.theorem_matching(other, tmp_path / "out")
    again = benchmarks.theorem_matching(other, tmp_path / "named", query="lean", document="tex")[0]
    assert judged(again) == judged(folder)
    with pytest.raises(MirblabError, match="line 2: no column gpt54_label; found formal_decl, "):
        benchmarks.theorem_matching(publish_matching(tmp_path / "c", gpt54_label="label"), tmp_path / "out")


def test_leansearch_gives_queries_in_styles_and_groups_of_premises(tmp_path: Path) -> None:
    """A declaration that the corpus lacks is counted; a group is found with any of its members."""
    made = benchmarks.leansearch(publish_leansearch(tmp_path / "l"), tmp_path / "out")
    assert judged(made[0]) == [("1_q1a_lean", "Nat.add_comm", 1), ("1_q2_slogan", "Nat.add_comm", 1),
                               ("3_q1c_natural", "Nat.gcd", 1)]  # fmt: skip
    assert judged(made[0], "shared") == [("3_q1c_natural", "Nat.gcd", 1)]
    loaded = load_folder(made[0])
    assert loaded.document("Nat.gcd") == "Title about Nat.gcd\n: P" and loaded.queries.tags[0][:2] == [
        "q1a_lean",
        "Easy",
    ]
    assert loaded.card.extra["counts"]["left_out"] == {"queries whose declaration is not in the corpus": 1}
    groups = load_folder(made[1])
    assert groups.groups.values.tolist() == [["m1", "1-original", "Nat.add_comm"], ["m1", "1-original", "Nat.mul_comm"],
                                             ["m1", "2-original", "Nat.gcd"]]  # fmt: skip
    run = pd.DataFrame({"query_id": "m1", "doc_id": ["Nat.mul_comm", "Nat.add_comm"], "score": [2.0, 1.0]})
    assert evaluate(run, groups, "GroupR@10").value.tolist() == [0.5]
    with pytest.raises(FileNotFoundError, match="no declarations"):
        benchmarks.leansearch(tmp_path / "l" / "benchmark", tmp_path / "out")


def test_bright_leaves_out_what_is_excluded_for_a_query(tmp_path: Path) -> None:
    """ "N/A" excludes nothing; a document that is relevant and excluded is an error, as in BRIGHT's code."""
    made = benchmarks.bright(publish_bright(tmp_path / "b"), tmp_path / "out")
    assert [folder.name for folder in made] == ["bright-theoremqa-theorems", "bright-aops"]
    loaded = load_folder(made[1])
    assert judged(made[1]) == [("0", "aops/0.txt", 1), ("1", "aops/1.txt", 1)]
    assert loaded.candidates.names == ["excluded_ids"]
    path = tmp_path / "b" / "examples" / "aops-00000-of-00001.parquet"
    parquet(path, [{"id": "1", "query": "q", "excluded_ids": ["aops/1.txt"], "gold_ids": ["aops/1.txt"]}])
    with pytest.raises(MirblabError, match="row 1: 'aops/1.txt' is relevant and excluded"):
        benchmarks.bright(tmp_path / "b", tmp_path / "out")


@pytest.mark.parametrize("source", [name for name in benchmarks.SOURCES if name != "leansearch"])
def test_nothing_is_fetched_from_a_branch(source: str, tmp_path: Path) -> None:
    """The error says how to name a commit, and how to give a copy."""
    assert re.fullmatch("[0-9a-f]{40}", benchmarks.SOURCES[source].revision)
    for revision in ("main", "a75a0eb4"):
        wanted = f"that is named, found '{revision}': mirblab build {source} --set revision=COMMIT .*--from FOLDER"
        with pytest.raises(MirblabError, match=wanted):
            benchmarks.build(source, None, tmp_path, revision=revision)


@pytest.mark.parametrize("named", [COMMIT, ""])
def test_a_revision_is_fetched_from_the_hub_and_noted_in_the_card(named: str, tmp_path: Path) -> None:
    """The named one, else the pinned one, from a server that speaks the Hub's API; only files that are read."""
    commit = named or benchmarks.SOURCES["mathnet"].revision
    folder = publish_mathnet(tmp_path / "m")
    (folder / "easy" / "large.bin").write_bytes(b"x")
    server = Hub({"ShadenA/MathNet-Retrieve": folder}, {"ShadenA/MathNet-Retrieve": commit})
    try:
        words = ["-m", "mirblab", "build", "mathnet", *(["--set", f"revision={named}"] if named else [])]
        done = run_in_process(tmp_path / "home", server.url, words)
        assert done.returncode == 0, done.stderr
        assert not any("large.bin" in line for line in server.asked)
        card = load_folder(tmp_path / "home" / "data" / "mathnet-hard").card
        assert card.revision == commit and card.source.endswith("/datasets/ShadenA/MathNet-Retrieve")
    finally:
        server.close()


def test_theorem_search_has_the_licence_that_the_hub_states(tmp_path: Path) -> None:
    """It is the permissive set; a copy may be of the other one, whose licence is another, so its card says none."""
    commit, folder = benchmarks.SOURCES["theoremsearch"].revision, publish_theorem_search(tmp_path / "t")
    permissive = "uw-math-ai/theorem-search-dataset-permissive"
    server = Hub({permissive: folder}, {permissive: commit}, "cc-by-4.0")
    try:
        done = run_in_process(tmp_path / "home", server.url, ["-m", "mirblab", "build", "theoremsearch"])
        assert done.returncode == 0, done.stderr
        card = load_folder(tmp_path / "home" / "data" / "theoremsearch").card
        assert (card.revision, card.licence) == (commit, "cc-by-4.0")
        assert card.source == f"https://huggingface.co/datasets/{permissive}"
    finally:
        server.close()
    copied = benchmarks.theorem_search(folder, tmp_path / "out")[0]
    assert load_folder(copied).card.licence == "unknown"


def test_the_catalogue_builds_them_and_says_what_is_missing(tmp_path: Path, home: Path) -> None:
    """By name, with options; a collection that is not built names its command."""
    with pytest.raises(MirblabError, match="'mathlibmpr' is not built yet; run: mirblab build leansearch"):
        catalogue.load("mathlibmpr")
    made = catalogue.build("leansearch", str(publish_leansearch(tmp_path / "l")))
    assert [folder.name for folder in made] == ["mathlibqr", "mathlibmpr"] and len(
        catalogue.load("mathlibmpr").groups
    ) == 3
    copied, _ = catalogue.add(made[1], name="own-mpr")
    assert len(load_folder(copied).groups) == 3
