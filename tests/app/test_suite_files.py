"""Suites: what they name, what is left out of them with a reason, and the docs' table of what each paper's makes."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

from mirblab.app import hand_runs, inventory, suite_files
from mirblab.app.batch import run_planning
from mirblab.core import paths
from mirblab.core.errors import MirblabError

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAPERS = ("mirb", "zhong", "meld", "arqmath")


@pytest.fixture
def read(tmp_path, monkeypatch, home):
    """Return a function that reads a suite of one notebook from TOML, and what was left out of it."""
    folder = tmp_path / "suites"
    folder.mkdir()
    monkeypatch.setattr(suite_files, "suites_folder", lambda: folder)

    def read_one(parameters: str, rest: str = "", top: str = "") -> tuple[list[suite_files.Job], dict[str, str]]:
        (folder / "own.toml").write_text(
            f'{top}\n[[notebook]]\nname = "11_main_table"\nparameters = {{ {parameters} }}\n{rest}\n', encoding="utf-8"
        )
        missing: dict[str, str] = {}
        return suite_files.read_suite("own", tell=missing.__setitem__), missing

    return read_one


def test_the_first_that_is_here_is_taken_and_what_is_marked_is_left_out(read):
    """Collections, systems and models alike; each with what it needs."""
    (job,), missing = read(
        'collections = ["mirb-wfb|mini-wfb", "mirb-hol?", "mini-qa"], '
        'systems = ["bm25", "minilm-math?", "nv-embed-v2|minilm", "bm25>minilm-cross@20?"]'
    )
    assert job.collections == ["mini-wfb", "mini-qa"] and job.systems == ["bm25", "minilm"]
    assert missing == {
        "mirb-wfb": "needs mirblab build mirb-wfb; mini-wfb is taken",
        "mirb-hol": "needs mirblab build mirb-hol",
        "minilm-math": "needs mirblab train minilm-math",
        "nv-embed-v2": "needs a download from the Hub; minilm is taken",
        "bm25>minilm-cross@20": "needs mirblab train minilm-cross",
    }


def test_a_collection_without_a_query_is_left_out_of_all_that_were_built(read, make_folder):
    """It is said once; one whose queries are in another split only has none to measure, either."""
    paths.data().mkdir(parents=True)
    for name, qrels in (("asked", "q1\td1\t1\n"), ("bare", ""), ("trained", "")):
        make_folder(qrels=qrels, name=name).rename(paths.data() / name)
    judged = paths.data() / "trained" / "qrels"
    (judged / "test.tsv").rename(judged / "train.tsv")
    (job,), missing = read('collections = ["*"]')
    why = "no query in the split 'test', so that nothing can be measured"
    assert job.collections == ["asked"] and missing == {"bare": why, "trained": why}


def test_a_notebook_of_which_nothing_is_here_is_left_out(read):
    """And one whose collections must be built first."""
    jobs, missing = read('collections = ["mirb-hol?"]')
    assert jobs == [] and missing["11_main_table"] == "none of its collections can be used here"
    jobs, missing = read("", 'needs = ["stacks-qa", "blueprints"]')
    assert jobs == [] and missing == {"11_main_table": "needs mirblab build blueprints, mirblab build stacks"}


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ('collections = ["mirb-holl|mini-holl"]', "no collection 'mini-holl'; did you mean 'mini-hol'"),
        ('systems = ["bm52?|bm25"]', "no system 'bm52"),
        ('systems = ["bm52|bm53"]', "no system 'bm52'"),
        ('collections = ["mirb-hol"]', "the collection 'mirb-hol' is not built yet; run: mirblab build mirb-hol"),
    ],
)
def test_a_misspelt_name_is_refused_also_where_it_may_be_left_out(read, parameters, message):
    """What is not marked must be here."""
    with pytest.raises(MirblabError, match=message):
        read(parameters)


def test_a_notebook_runs_for_each_of_the_suites_own_collections(read, tmp_path):
    """Those that match, where `collection` is a star; an override replaces the list."""
    top = '[parameters]\ncollections = ["mirb-wfb|mini-wfb?", "mini-qa", "mini-hol"]'
    (tmp_path / "suites" / "own.toml").write_text(
        top + '\n[[notebook]]\nname = "13_significance"\nmatch = ["*-qa", "*-wfb"]\nparameters = { collection = "*" }\n'
        '[[notebook]]\nname = "15_hard_queries"\nmatch = ["!*-hol"]\n[[notebook]]\nname = "10_collections"\n'
    )
    jobs = suite_files.read_suite("own")
    assert [job.name for job in jobs] == [
        "13_significance.mini-wfb",
        "13_significance.mini-qa",
        "15_hard_queries",
        "10_collections",
    ]
    assert [job.collections for job in jobs[2:]] == [["mini-wfb", "mini-qa"], ["mini-wfb", "mini-qa", "mini-hol"]]
    (job,) = suite_files.read_suite("own", {"collections": ["mini-hol"]}, ["15"])
    assert job.collections == ["mini-hol"]


@pytest.mark.parametrize("suite", PAPERS)
def test_a_papers_suite_runs_in_part_without_its_data(suite, home):
    """The bundled collections stand for them, or a notebook is left out; sizes and encoders give the costs."""
    missing: dict[str, str] = {}
    jobs = suite_files.read_suite(suite, tell=missing.__setitem__)
    assert jobs and missing and all(why.startswith(("needs ", "none of its ")) for why in missing.values())
    assert (suite_files.collection_sizes(suite).tokens > 0).all() and "minilm" in run_planning.encoders_in(suite)
    assert all(inventory.state("system", name) == "ready" for job in jobs for name in job.systems)


def test_a_plan_counts_the_documents_that_each_cross_encoder_scores():
    """A table's first stages and composed names; MaxSim is among the encoders."""
    assert run_planning.reranked_in("mirb") == dict.fromkeys(
        ("bge-reranker-v2-m3", "jina-reranker-v2-base-multilingual", "minilm-cross", "minilm-cross-instructed"), 60
    )
    assert run_planning.reranked_in("zhong") == {"minilm-cross": 40} and run_planning.reranked_in("meld") == {}


@pytest.mark.parametrize("notebook", ["11_main_table", "13_significance"])
def test_what_is_not_trained_is_left_out_of_the_open_tables(notebook, home, monkeypatch):
    """With what must be trained first; the systems without training stay."""
    monkeypatch.setattr(suite_files, "_built_names", lambda _: ["mini-qa"])
    missing: dict[str, str] = {}
    (job,) = suite_files.read_suite("open", only=[notebook], tell=missing.__setitem__)
    assert {"bm25q", "bm25~rm3", "minilm~rocchio"} <= set(job.systems)
    trained = ("minilm-qa", "minilm-pretrained-qa")
    assert {name: missing[name] for name in trained} == {name: f"needs mirblab train {name}" for name in trained}


@pytest.mark.parametrize(
    ("notebook", "trained"),
    [
        ("20_formula_retrieval", {"bm25>minilm-cross@20", "bm25>maxsim-qa@20"}),
        ("21_fusion", {"bm25>minilm-cross@20"}),
        ("35_late_interaction", {"bm25>minilm-cross@20", "minilm-late-qa"}),
    ],
)
def test_trained_rerankers_are_in_the_open_tables_that_take_rerankers(notebook, trained, home, make_folder):
    """And are left out where they are not trained, with what must be trained first."""
    make_folder(name="home/data/ntcir12-wfb")
    missing: dict[str, str] = {}
    (job,) = suite_files.read_suite("open", only=[notebook], tell=missing.__setitem__)
    assert "bm25" in job.systems and not trained & set(job.systems)
    assert {name for name, why in missing.items() if why.startswith("needs mirblab train")} >= trained


@pytest.mark.parametrize(
    ("notebook", "bundled", "real"),
    [
        ("62_time_travel", [], "some-premise-at-2020-01-01"),
        ("63_proof_graph", [], "some-premise-at-2020-01-01"),
        ("64_same_theorem", ["mini-views-informal-signature"], "same-theorem-cards-mathlib"),
    ],
)
def test_the_open_findings_take_bundled_material_until_their_own_is_built(notebook, bundled, real, home, make_folder):
    """With the notebook's defaults, since those of the suite are for whole libraries; what is given is kept."""
    paths.data().mkdir(parents=True)
    for others in ([], ["my-own"]):
        for other in others:
            make_folder(name=other).rename(paths.data() / other)
        missing: dict[str, str] = {}
        (job,) = suite_files.read_suite("open", {"seed": 3}, only=[notebook], tell=missing.__setitem__)
        defaults = hand_runs.notebook_parameters(job.source)
        assert job.parameters == defaults | {"suite": "open", "seed": 3} and job.collections == bundled
        assert missing == {f"collections of {notebook}": "none is built or added; bundled ones are taken"}
    make_folder(name=real).rename(paths.data() / real)
    (job,) = suite_files.read_suite("open", only=[notebook])
    assert job.collections == [real]


def test_the_docs_table_of_tables_is_what_the_suites_say():
    """Each table and figure of the four papers stands there once; run docs/tables.py after a change of a suite."""
    tables = runpy.run_path(str(DOCS / "tables.py"))
    for suite in PAPERS:
        rows = list(tables["rows"](suite))
        assert sorted(row[0] for row in rows) == sorted(tables["PARTS"][suite])
        assert all(bool(missing) == (complete == "no") for *_, complete, missing, _ in rows)
        assert all(re.match(r"2\d{3}-\d\d-\d\d: \w|no: \w", row[-1]) for row in rows)
    text = (DOCS / "tables.md").read_text("utf-8")
    assert text == tables["page"]()
    assert tables["join_parts"](["Table 2", "Table 3", "Table 5"]) == "Tables 2-3, 5"
    assert "\n| Tables 2-6, 11-17 |" in text and "\n| Table 1 |" in text


def test_only_known_keys_stand_in_a_suite():
    """A misspelt key would otherwise be ignored."""
    for path in suite_files.suites_folder().glob("*.toml"):
        content = suite_files.read_suite_file(path.stem)
        assert set(content) <= {"paper", "note", "parameters", "notebook", "size", "unmade", "verify"}, path
        for entry in content["notebook"]:
            assert set(entry) <= {"name", "parameters", "match", "needs", "bundled", "seconds", "makes"}, entry
            assert all(set(made) <= {"parts", "missing", "made"} for made in entry.get("makes", [])), entry
