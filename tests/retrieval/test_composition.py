"""A system's settings are checked before anything runs, and names compose systems."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from mirblab.core import registry
from mirblab.core.errors import MirblabError
from mirblab.data.collection import Collection
from mirblab.evaluation import measures
from mirblab.retrieval import rerank, systems
from mirblab.retrieval.systems import check_settings, parse_composed_name
from mirblab.sources import catalogue


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"kind": "bm25", "k_1": 2}, "no field of system 'own' .* called 'k_1'; did you mean 'k1'"),
        ({"kind": "bm25", "k1": "2"}, "k1 is '2'; write a number"),
        ({"kind": "bm25", "k1": True}, "k1 is True; write a number"),
        ({"kind": "dense"}, "lacks encoder"),
        ({"kind": "fusion", "of": ["bm25"]}, "of 1 system; name two or more"),
        ({"kind": "fusion", "of": ["bm25", "minilm"], "method": "rff"}, "did you mean 'rrf'"),
        ({"kind": "fusion", "of": ["bm25", "minilm"], "method": "linear"}, "2 systems need as many weights; found 0"),
        ({"kind": "bm52"}, "did you mean 'bm25'"),
        ({}, "no kind of system"),
    ],
)
def test_wrong_settings_are_refused_with_a_suggestion(settings: dict, message: str):
    """Not with a traceback from the engine that they reach."""
    with pytest.raises(MirblabError, match=message):
        check_settings("own", settings)


def test_the_home_registry_is_checked_too(own):
    """A misspelt key in it names the system."""
    own("systems", '[own]\nkind = "bm25"\nk_1 = 2\n')
    with pytest.raises(MirblabError, match=r"no field of system 'own' \(bm25\) called 'k_1'"):
        systems.system("own")


def test_a_reranked_system_can_be_reranked():
    """First the best six of BM25, then the best three of those, by another reading of the same reranker."""
    c = catalogue.load("mini-qa").sample(4)
    twice = systems.system("bm25>maxsim@6>maxsim@3,4t")
    assert twice.settings["first"] == "bm25>maxsim@6"
    once, found = systems.system("bm25>maxsim@6").search(c, 10), twice.search(c, 10)
    below = [run[run["rank"] > 3][["query_id", "doc_id"]].astype(str).values.tolist() for run in (once, found)]
    assert below[0] == below[1]


@pytest.mark.parametrize(
    "name",
    ["bm25>", ">maxsim", "bm25>maxsim@0", "bm25>maxsim@x", "bm25+", "bm25>maxsim@5,", "bm25>maxsim@5,0.0"],
)
def test_a_name_that_composes_nothing_is_refused(name: str):
    """With an example, or what there is."""
    with pytest.raises(MirblabError, match="for example bm25>maxsim@20|no system"):
        systems.system(name)


@pytest.mark.parametrize(
    ("made", "name", "parts"),
    [
        (lambda: systems.system("bm25", method="bm25+"), "bm25 (method = bm25+)", []),
        (lambda: systems.system("bm25-mirb", compat=""), "bm25-mirb (compat = '')", []),
        (lambda: systems.system(systems.system("bm25", method="bm25+"), b=0.4), "bm25 (method = bm25+) (b = 0.4)", []),
        (lambda: systems.system(systems.system("bm25+minilm", k=10).name + "+structure"),
         "(bm25+minilm) (k = 10)+structure", ["(bm25+minilm) (k = 10)", "structure"]),
        (lambda: systems.system(f"structure+{systems.system('bm25+minilm@combmnz', depth=50).name}@borda"),
         "structure+(bm25+minilm@combmnz) (depth = 50)@borda", ["structure", "(bm25+minilm@combmnz) (depth = 50)"]),
        (lambda: systems.system(systems.system("bm25>maxsim@5", depth=6).name + ">maxsim@3"),
         "(bm25>maxsim@5) (depth = 6)>maxsim@3", ["(bm25>maxsim@5) (depth = 6)"]),
    ],
)  # fmt: skip
def test_signs_in_parentheses_compose_nothing_outside(made: Callable, name: str, parts: list[str]):
    """They compose the system that is changed there, or belong to a setting."""
    system = made()
    assert (system.name, [part.name for part in system.parts]) == (name, parts)
    assert systems.system(name).key == system.key


def test_unknown_parts_of_a_composed_name_get_suggestions():
    """Whichever side they stand on."""
    with pytest.raises(MirblabError, match="did you mean 'minilm'"):
        systems.system("bm25+minilmm")
    with pytest.raises(MirblabError, match="did you mean 'maxsim'"):
        systems.system("bm25>maxim")


def test_length_and_instruction_change_scores_and_keys():
    """Each is part of what determines a run."""
    c = catalogue.load("mini-qa").sample(3)
    run = systems.system("bm25").search(c, 5)
    scores = {
        name: rerank.score_shortlist(run, c, "maxsim", **options).score.tolist()
        for name, options in {"plain": {}, "short": {"max_length": 3}, "told": {"instruction": "card"}}.items()
    }
    assert scores["plain"] != scores["short"] and scores["plain"] != scores["told"]
    names = ["bm25>maxsim@5", "bm25>maxsim@5,3t", "bm25>maxsim@5,instructed"]
    assert len({systems.system(name).run_key(c) for name in names}) == 3


def test_an_instruction_that_a_collection_lacks_changes_no_query(monkeypatch):
    """The pairs are stored as those without an instruction, so not even a blank may stand before a query."""
    c = catalogue.load("mini-qa").sample(2)
    c = replace(c, card=replace(c.card, instruction=""))
    asked, run = list[str](), systems.system("bm25").search(c, 5)

    def score(settings: dict, collection: Collection, queries: np.ndarray, docs: np.ndarray) -> np.ndarray:
        asked.extend(rerank._instructed_queries(settings, collection))
        return np.zeros(len(docs), np.float32)

    monkeypatch.setattr(rerank, "_max_sim", score)
    rerank.score_shortlist(run, c, "maxsim", instruction="card")
    assert asked == c.query_texts


@pytest.mark.parametrize(
    "made",
    [
        lambda: systems.system("bm25+minilm@0.5,0.5", weights=[0.3, 0.7]),
        lambda: systems.system("structure", weights={"symbol": 1.0, "whole": 2.0}, b=3.0),
        lambda: systems.system(systems.system("bm25", k1=0.9), k1=1.0, b=0.4),
    ],
)
def test_the_name_of_a_changed_system_is_a_name(made: Callable[[], systems.System]):
    """Also where a list or a table was changed, and where a changed system was changed again."""
    changed = made()
    assert systems.system(changed.name).settings == changed.settings


def test_evaluate_wants_a_collection_not_its_name():
    """And says what to do."""
    run = pd.DataFrame({"query_id": ["q"], "doc_id": ["d"], "score": [1.0]})
    with pytest.raises(MirblabError, match="found 'mini-qa'; load"):
        measures.evaluate(run, "mini-qa", "RR")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"method": "combmns"}, "did you mean 'combmnz'"),
        ({"method": "combmnz", "k": 60}, "the method 'combmnz' has no 'k', 'rrf' has"),
        ({"weights": [0.5, 0.5]}, "the method 'rrf' has no 'weights', 'linear' has"),
        ({"method": "cv", "weights": [0.5, 0.5]}, "the method 'cv' has no 'weights', 'linear' has"),
        ({"method": "linear", "weights": [1.0]}, "2 systems need as many weights; found 1"),
        ({"method": "linear", "weights": [0.0, 0.0]}, "no weight is above 0"),
        ({"method": "linear", "weights": [1.0, "2"]}, "weights.1 is '2'; write a number"),
        ({"method": "linear", "weights": [1.0, -1]}, "weights.1 is -1; write a number from 0"),
        ({"method": "cv", "folds": 1}, "folds is 1; write a number from 2"),
        ({"method": "cv", "measure": "nDGC'"}, "did you mean"),
    ],
)
def test_a_fusion_may_set_what_its_method_uses(settings: dict, message: str):
    """Before anything is searched."""
    with pytest.raises(MirblabError, match=message):
        check_settings("own", {"kind": "fusion", "of": ["bm25", "minilm"], **settings})


def test_names_choose_the_method_of_a_fusion():
    """After @: a method, or weights; + binds more tightly than >."""
    assert parse_composed_name("a+b@combmnz") == {"kind": "fusion", "of": ["a", "b"], "method": "combmnz"}
    assert parse_composed_name("a+b+c@cv") == {"kind": "fusion", "of": ["a", "b", "c"], "method": "cv"}
    assert parse_composed_name("a+b@rrf") == parse_composed_name("a+b")
    assert parse_composed_name("a+b@0.25,1")["weights"] == [0.25, 1.0]
    assert parse_composed_name("a+b@cv>c@20") == {"kind": "rerank", "first": "a+b@cv", "reranker": "c", "depth": 20}
    assert parse_composed_name("a+b>c@20>d") == {"kind": "rerank", "first": "a+b>c@20", "reranker": "d", "depth": 10}
    assert parse_composed_name("a>approach0@50") == {"kind": "approach0", "first": "a", "depth": 50}
    assert parse_composed_name("a@cv") is None and parse_composed_name("a") is None


def test_an_imported_system_may_have_the_sign_of_a_method_in_its_name():
    """Before a +, since nothing else can stand there."""
    assert parse_composed_name("own@2+bm25") == {"kind": "fusion", "of": ["own@2", "bm25"], "method": "rrf", "k": 60}


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("bm25+minilm@combmns", "no fusion method 'combmns'.*did you mean 'combmnz'"),
        ("bm25+minilm@linear", "has no weights; write bm25\\+minilm@0.5,0.5, or @cv"),
        ("bm25+minilm@0.5,0.3,0.2", "2 systems need as many weights; found 3"),
        ("bm25>approach0@5,128t", "called 'max_length'"),
        ("bm25>approach0@0", "write first>reranker@depth"),
    ],
)
def test_a_composed_name_that_means_nothing_is_explained(name: str, message: str):
    """With what to write."""
    with pytest.raises(MirblabError, match=message):
        parse_composed_name(name)


def test_labels_say_how_a_fusion_was_made():
    """Cross-validated weights above all."""
    labels = {name: systems.system(name).label for name in ("bm25+bm25-okapi", "bm25+bm25-okapi@cv", "bm25+minilm@isr")}
    assert labels["bm25+bm25-okapi"] == "BM25 + BM25 (rank-bm25)"
    assert labels["bm25+bm25-okapi@cv"] == "BM25 + BM25 (rank-bm25) (weights cross-validated)"
    assert labels["bm25+minilm@isr"] == "BM25 + MiniLM (isr)"
    learnt = [name for name in registry.read_registry("systems") if systems.system(name).learns]
    assert learnt and all("weights cross-validated" in systems.system(name).label for name in learnt)
