"""Systems are found by name, composed from the registry, and searched once."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from mirblab.core import registry
from mirblab.core.errors import MirblabError
from mirblab.data.runs import cut_run
from mirblab.encoders.encoding import encoder
from mirblab.retrieval import bm25, dense, fusion, systems
from mirblab.sources import catalogue

C = "mini-hol"


def test_the_names_that_scripts_use_exist():
    """They are promised."""
    assert {"bm25", "bm25-mirb", "bm25-okapi", "minilm", "bm25+minilm"} <= set(registry.read_registry("systems"))


@pytest.mark.parametrize("name", ["bm25", "bm25-mirb", "bm25-okapi", "minilm", "bm25+minilm", "bm25>maxsim"])
def test_every_system_makes_a_run(name):
    """Columns, order, depth, and never the query itself, but for the published defect."""
    c = catalogue.load(C)
    run = systems.system(name).search(c, depth=7)
    assert run.columns.tolist() == ["query_id", "doc_id", "score", "rank"]
    assert run.attrs["system"] == name and run.attrs["collection"] == C
    assert run.groupby("query_id", observed=True).size().max() <= 7
    assert (
        run.groupby("query_id", observed=True)["rank"]
        .apply(lambda ranks: ranks.tolist() == list(range(1, len(ranks) + 1)))
        .all()
    )
    if name != "bm25-mirb":
        assert (run.query_id.astype(str) != run.doc_id.astype(str)).all()


def test_a_wrong_name_gets_a_suggestion():
    """As for collections."""
    with pytest.raises(MirblabError, match=r"no system 'bm52'.*did you mean 'bm25'\?"):
        systems.system("bm52")


@pytest.mark.parametrize(
    ("given", "name"),
    [("BM25", "bm25"), ("minilm, Late interaction", "minilm-late"),
     ("BM25 (mirb)+MiniLM@0.3,0.7", "bm25-mirb+minilm@0.3,0.7"),
     ("Bm25>MaxSim@5", "bm25>maxsim@5"), ("BM25+structure>Approach0@5", "bm25+structure>approach0@5")],
)  # fmt: skip
def test_case_does_not_matter_and_labels_are_names(given, name):
    assert systems.system(given).name == name
    assert (systems.system(given).key, systems.system(given).label) == (
        systems.system(name).key,
        systems.system(name).label,
    )


def test_settings_are_arguments():
    """The run is that of the settings, name and label tell them, and what a kind cannot set is refused."""
    c = catalogue.load("mini-qa")
    changed = systems.system("BM25", k1=0.9, b=0.4)
    assert (changed.name, changed.label) == ("bm25 (k1 = 0.9, b = 0.4)", "BM25 (k1 = 0.9, b = 0.4)")
    assert changed.search(c, 10).score.equals(bm25.search(c, depth=10, k1=0.9, b=0.4, tokenizer="math").score)
    assert (
        changed.key != systems.system("bm25").key and systems.system("bm25", k1=1.2).key == systems.system("bm25").key
    )
    fusion_of_two = systems.system("bm25+minilm", k=10)
    assert fusion_of_two.settings["k"] == 10
    assert systems.system(fusion_of_two.name).key == fusion_of_two.key != systems.system("bm25+minilm").key
    assert systems.system(changed.name).key == changed.key
    fused = systems.system(f"{changed.name}+minilm>maxsim@5")
    assert fused.parts[0].parts[0].key == changed.key and systems.system(fused.name).key == fused.key
    assert systems.system("bm25", tokenizer="mirb").name == "bm25 (tokenizer = mirb)"
    for name, settings, problem in (
        ("bm25", {"k9": 1}, "called 'k9'"), ("bm25", {"k1": "a"}, "k1 is 'a'; write a number"),
        ("bm25", {"kind": "dense"}, "'kind' of a system cannot be changed"),
        ("bm25+minilm", {"of": ["bm25", "structure"]}, "'of' of a system cannot be changed"),
        ("bm25+minilm", {"weights": [1, 2]}, "the method 'rrf' has no 'weights'"),
    ):  # fmt: skip
        with pytest.raises(MirblabError, match=problem):
            systems.system(name, **settings)


def test_a_second_search_reads_the_store(monkeypatch):
    """Also at another depth; nothing is searched twice."""
    c = catalogue.load("mini-hol")
    first = systems.system("bm25").search(c, depth=5)

    def never(*_args, **_more):
        raise RuntimeError("searched again")

    monkeypatch.setattr(bm25, "search", never)
    assert systems.system("bm25").is_stored(c)
    pd.testing.assert_frame_equal(systems.system("bm25").search(c, depth=5), first)
    deeper = systems.system("bm25").search(c, depth=20)
    pd.testing.assert_frame_equal(deeper[deeper["rank"] <= 5].reset_index(drop=True), first)


@pytest.mark.parametrize("name", ["bm25", "minilm", "bm25q"])
def test_a_very_large_run_is_stored_as_deep_as_it_is_asked_for(monkeypatch, home, link_vectors, name):
    """And is the beginning of the deeper one, which a later call makes."""
    link_vectors(home)
    c, system = catalogue.load("mini-qa").sample(31), systems.system(name)
    monkeypatch.setattr(systems, "MOST_ROWS", 10)
    shallow = system.search(c, depth=3)
    assert [system.is_stored(c, depth) for depth in (3, 4)] == [True, False]
    deep = system.search(c, depth=20)
    assert [system.is_stored(c, depth) for depth in (20, 21)] == [True, False]
    assert int(deep["rank"].max()) == 20
    assert cut_run(deep, 3).equals(shallow)


def test_the_key_knows_content_settings_and_parts():
    """What changes a run changes its key."""
    c, other = catalogue.load("mini-hol"), catalogue.load("mini-lean")
    # An encoder with which the published code agrees is the same system in both modes.
    names = [name for name in registry.read_registry("systems") if name == "bm25-mirb" or not name.endswith("-mirb")]
    # One that has to be trained first has no key before.
    trained = {name for name, entry in registry.read_registry("encoders").items() if entry.get("trained")}
    names = [name for name in names if systems.system(name).settings.get("encoder") not in trained]
    keys = {systems.system(name).run_key(found) for name in names for found in (c, other)}
    assert len(keys) == 2 * len(names)
    assert systems.system("bm25>maxsim@5").run_key(c) != systems.system("bm25>maxsim@6").run_key(c)


def test_the_weighted_fusion_scales_scores_within_each_query():
    """A query has the same ranking whatever other queries there are, so that free text is searched like a run."""
    c = catalogue.load("mini-hol")
    weights = systems.system("hybrid").settings["weights"]
    assert len(weights) == 2 and sum(weights) == pytest.approx(1)
    run, parts = systems.system("hybrid").search(c, 50), [systems.system(name).search(c) for name in ("bm25", "minilm")]
    expected = fusion.linear(parts, weights, 50, span="query")
    assert run.doc_id.tolist() == expected.doc_id.tolist()
    query = c.query_ids[3]
    alone = fusion.linear([part[part.query_id == query] for part in parts], weights, 50)
    assert run[run.query_id == query].doc_id.tolist() == alone.doc_id.tolist()


def test_own_systems_come_from_the_home_registry(own):
    """A few lines of TOML, no code."""
    own("systems", '[mine]\nkind = "bm25"\nk1 = 0.9\nb = 0.4\ntokenizer = "words"\n')
    assert systems.system("mine").settings["k1"] == 0.9
    assert len(systems.system("mine").search(catalogue.load("mini-hol"), depth=3))


def test_a_system_that_is_held_has_the_key_of_the_edited_registry(own):
    """Its searches read the model's entry anew, so a run under the old key would be of another model."""
    c, entry = catalogue.load("mini-hol"), registry.read_registry("encoders")["minilm"]
    lines = [f"{name} = {json.dumps(value)}" for name, value in entry.items() if name != "prompts"]
    encoders = "\n".join(["[mine]", *lines, 'prompts = { query = "", document = "" }'])
    own("encoders", encoders)
    own("systems", '[mine]\nkind = "dense"\nencoder = "mine"\n')
    held = [systems.system(name) for name in ("mine", "bm25+mine", "bm25+mine>maxsim@5")]
    before = [one.run_key(c) for one in held]
    own("encoders", encoders.replace("= 256", "= 32"))
    after = [one.run_key(c) for one in held]
    assert not set(before) & set(after) and after == [systems.system(one.name).run_key(c) for one in held]


def test_the_fused_run_is_the_fusion_of_its_parts():
    """Reciprocal rank, k = 60, over 1000 documents each."""
    c = catalogue.load(C)
    parts = [systems.system(name).search(c, 1000) for name in ("bm25", "minilm")]
    fused, stored = fusion.rrf(parts, 60), systems.system("bm25+minilm").search(c, 1000)
    assert stored.doc_id.tolist() == fused.doc_id.tolist()


def test_a_fused_run_does_not_depend_on_how_deep_was_asked_before(own, home, link_vectors):
    """The parts always have the registry's depth."""
    link_vectors(home)
    c = catalogue.load("mini-hol").sample(20)
    own("systems", '[two]\nkind = "fusion"\nof = ["bm25", "minilm"]\ndepth = 10\n')
    deep = systems.system("two").search(c, depth=2000)
    assert deep.groupby("query_id", observed=True).size().max() <= 20
    shallow = systems.system("two").search(c, depth=5)
    assert shallow.doc_id.tolist() == deep[deep["rank"] <= 5].doc_id.tolist()


def test_dense_search_is_the_cosine():
    """Scores are products of unit vectors."""
    c = catalogue.load("mini-hol")
    model = encoder("minilm")
    queries = model.vectors(c.query_texts, "query", c.card.instruction)
    documents = model.vectors(c.texts, "document", c.card.instruction)
    run = systems.system("minilm").search(c, depth=1)
    best = (queries @ documents.T).max(axis=1)
    np.testing.assert_allclose(run.score, best, atol=1e-5)
    assert dense.search(queries, documents, depth=1)[1].tolist() == run.doc_id.cat.codes.tolist()


def test_a_name_is_no_collection():
    """The next step is in the message."""
    with pytest.raises(MirblabError, match=r"wants a Collection, found 'mini-hol'; load it with load\(\) first"):
        systems.system("bm25").search("mini-hol")


def test_depth_must_be_positive():
    """Zero documents are no answer."""
    with pytest.raises(MirblabError, match="depth must be at least 1, found 0"):
        systems.system("bm25").search(catalogue.load("mini-hol"), depth=0)


def test_structure_search_and_its_rival_make_runs():
    """By the names that are promised."""
    c = catalogue.load("mini-formula").sample(25)
    for name in ("structure", "ngram", "structure+bm25", "structure>approach0@5"):
        run = systems.system(name).search(c, depth=9)
        assert run.attrs["system"] == name and len(run) and run["rank"].max() <= 9
    assert {"structure+minilm", "structure+minilm+bm25", "approach0"} <= set(registry.read_registry("systems"))


def test_structure_search_takes_its_settings(own, monkeypatch):
    """They change the run, and so its key."""
    own("systems", '[mine]\nkind = "structure"\nb = 30\n[mine.weights]\npair = 0.0\n')
    asked = {}
    monkeypatch.setattr(systems.structure, "search", lambda collection, **more: asked.update(more) or empty())
    c = catalogue.load("mini-formula")
    systems.system("mine").search(c)
    assert asked == {"depth": 1000, "b": 30, "weights": {"pair": 0.0}}
    assert systems.system("mine").run_key(c) != systems.system("structure").run_key(c)


def empty() -> pd.DataFrame:
    return pd.DataFrame({"query_id": ["f"], "doc_id": ["g"], "score": [1.0]}).iloc[:0].astype({"query_id": "str"})


def test_approach0_orders_the_shortlist_and_nothing_below():
    """The first five by its score, the rest as they were."""
    c = catalogue.load("mini-formula").sample(4)
    first, found = (systems.system(name).search(c, 9) for name in ("structure", "structure>approach0@5"))
    for query in c.query_ids:
        one, two = (run[run.query_id == query].doc_id.astype(str).tolist() for run in (first, found))
        assert set(one[:5]) == set(two[:5]) and one[5:] == two[5:]
    assert first.doc_id.tolist() != found.doc_id.tolist()


@pytest.mark.parametrize("method", ["combmnz", "borda", "logisr"])
def test_a_name_chooses_the_method(method: str):
    """The run is that of the method, over 1000 documents of each part."""
    c = catalogue.load("mini-hol").sample(20)
    parts = [systems.system(name).search(c, 1000) for name in ("bm25", "bm25-mirb")]
    found = systems.system(f"bm25+bm25-mirb@{method}").search(c, 1000)
    assert found.doc_id.tolist() == fusion.fuse(parts, method, 1000).doc_id.tolist()


def test_given_weights_are_those_of_the_name():
    """In the order of the parts."""
    c = catalogue.load("mini-hol").sample(20)
    parts = [systems.system(name).search(c, 1000) for name in ("bm25", "bm25-mirb")]
    found = systems.system("bm25+bm25-mirb@0.9,0.1").search(c, 1000)
    assert found.doc_id.tolist() == fusion.linear(parts, [0.9, 0.1]).doc_id.tolist()


def test_cross_validated_weights_are_stored_with_the_run():
    """And shown as a table, when the run is read again, too."""
    c = catalogue.load("mini-hol")
    for _ in range(2):
        run = systems.system("bm25+bm25-mirb@cv").search(c)
        table = fusion.fold_table(run)
        assert table.columns.tolist() == ["fold", "queries", "bm25", "bm25-mirb", "trained", "held_out"]
        assert len(table) == 20 and table.queries.sum() == len(c.query_ids)


def test_few_queries_are_fused_by_reciprocal_ranks():
    """Nineteen cannot choose weights."""
    c = catalogue.load("mini-hol").sample(19)
    run = systems.system("bm25+bm25-mirb@cv").search(c)
    assert run.attrs["method"] == "rrf" and "needed to choose weights: 20" in run.attrs["why"]
    assert run.doc_id.tolist() == systems.system("bm25+bm25-mirb").search(c).doc_id.tolist()


def test_the_judgements_are_in_the_key_of_weights_that_were_learnt_from_them():
    """Grades, and from which one on a document is relevant; other systems do not look at the latter."""
    c = catalogue.load("mini-hol")
    stricter = replace(c, card=replace(c.card, relevant_from=c.card.relevant_from + 1))
    fewer = replace(c, qrels=c.qrels.iloc[1:])
    learnt, plain = systems.system("bm25+bm25-mirb@cv"), systems.system("bm25+bm25-mirb")
    reranked = systems.system("bm25+bm25-mirb@cv>maxsim@5")
    assert learnt.learns and reranked.learns and not plain.learns
    assert len({learnt.run_key(found) for found in (c, stricter, fewer)}) == 3
    assert reranked.run_key(c) != reranked.run_key(stricter)
    assert plain.run_key(c) == plain.run_key(stricter)


@pytest.mark.parametrize(
    ("name", "reads_formulas"),
    [("structure", True), ("bm25>approach0@20", True), ("bm25+structure", True), ("ngram", True), ("ngram~rm3", True),
     ("bm25 (tokenizer = pya0)", True), ("bm25>maxsim@5", False), ("bm25", False)],
)  # fmt: skip
def test_the_task_is_in_the_key_of_what_reads_formulas(name, reads_formulas):
    """It says whether each text is one formula; a card that is corrected gets other runs."""
    c = catalogue.load("mini-hol")
    other = replace(c, card=replace(c.card, task="Formula Retrieval"))
    system = systems.system(name)
    assert system.reads_formulas == (system.run_key(c) != system.run_key(other)) == reads_formulas


def test_a_new_task_gives_new_scores_of_a_reranker_of_formulas():
    """They are stored by pair, whatever system asks for them."""
    c = catalogue.load("mini-wfb").sample(3)
    other = replace(c, card=replace(c.card, task="Question Answering"))
    found = [systems.pair_scores(systems.system("bm25"), "approach0", each, 5) for each in (c, other)]
    assert found[0].score.max() > 0 == found[1].score.max()


def test_the_method_is_in_the_key():
    """Each makes its own run."""
    c = catalogue.load("mini-hol")
    names = [f"bm25+bm25-mirb{tail}" for tail in ("", "@cv", "@isr", "@0.5,0.5", "@0.4,0.6")]
    assert len({systems.system(name).run_key(c) for name in names}) == len(names)
