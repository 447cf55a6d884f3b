"""Approach0's scoring: by hand, against an exhaustive reading of its definition, and on judged formulas."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Callable
from math import log
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mirblab.core.errors import MirblabError
from mirblab.data import runs
from mirblab.data.collection import load_folder
from mirblab.evaluation import measures
from mirblab.formula.approach0 import MOST_LEAVES, Approach0Scorer, leaf_paths, operator_type, rescore
from mirblab.formula.operators import operator_tree
from mirblab.formula.tree import Tree, read_tangent

SUM, PRODUCT, OTHER_SUM = read_tangent("[V!x[+[V!y]]]"), read_tangent("[V!x[V!y]]"), read_tangent("[V!a[+[V!b]]]")


def types(layout: str) -> list[str]:
    """Return the leaf-root paths of a layout as one string per leaf."""
    paths = leaf_paths(operator_tree(read_tangent(layout)))
    return ["/".join(step[0] for step in steps) for steps in paths.steps]


@pytest.mark.parametrize(
    ("layout", "expected"),
    [
        ("[V!x]", ["BASE/SCRIPTS"]),
        ("[V!x,a[N!2]]", ["BASE/SCRIPTS", "BASE/SCRIPTS/O!SUP/SCRIPTS"]),
        ("[V!x,a[N!2],b[V!i]]", ["BASE/SCRIPTS"] + [f"BASE/SCRIPTS/O!{name}/SCRIPTS" for name in ("SUB", "SUP")]),
        ("[V!a[+[V!b[-[V!c]]]]]", ["BASE/SCRIPTS/ADD"] * 3),
        ("[-[V!a]]", ["BASE/SCRIPTS"]),
        ("[V!a[=[V!b[<[V!c]]]]]", ["BASE/SCRIPTS/REL"] * 3),
        ("[O!divide,o[V!a],u[V!b]]", ["BASE/SCRIPTS/RANK0/FRAC", "BASE/SCRIPTS/RANK1/FRAC"]),
    ],
)
def test_leaf_root_paths_are_those_of_approach0(layout: str, expected: list[str]) -> None:
    """x, x_i and x^2 share a path; sums and chains are flat; places count where operands cannot be exchanged."""
    assert types(layout) == expected


def test_the_score_of_a_sum_is_that_computed_by_hand() -> None:
    """Two paths of x + y below its root, ipf ln(7 / 1), all symbols agree, two leaves in the document."""
    length = 0.8 + 0.2 / log(3)
    for query, share in (
        (SUM, 1.0),
        (OTHER_SUM, 0.9),
        (read_tangent("[V!x[+[V!b]]]"), 0.95),
        (read_tangent("[V!x[-[V!y]]]"), 0.94),
    ):
        score = Approach0Scorer([SUM, read_tangent("[V!z]")]).score(query, [0])[0]
        assert score == pytest.approx(2 * log(7) / (1 + (1 - share) ** 2) * length, rel=1e-6)


def test_exchanged_operands_score_the_same_and_exchanged_parts_of_a_fraction_do_not() -> None:
    """y + x is x + y, but y/x is not x/y."""
    fraction, other = read_tangent("[O!divide,o[V!x],u[N!2]]"), read_tangent("[O!divide,o[N!2],u[V!x]]")
    scorer = Approach0Scorer([SUM, read_tangent("[V!y[+[V!x]]]"), fraction, other])
    same, exchanged, own, turned = *scorer.score(SUM, [0, 1]), *scorer.score(fraction, [2, 3])
    assert same == exchanged
    assert own > turned


def test_a_formula_finds_itself_before_a_renamed_a_longer_and_another_one() -> None:
    """The order that every part of the score is there for."""
    squares = "[V!{0},a[N!2][+[V!{1},a[N!2]{2}]]]"
    same, renamed = (read_tangent(squares.format(*names, "")) for names in ("xy", "ab"))
    longer = read_tangent(squares.format("x", "y", "[+[V!z[+[V!w[+[V!v]]]]]]"))
    scores = Approach0Scorer([renamed, same, longer, PRODUCT]).score(same, [0, 1, 2, 3])
    assert np.argsort(-scores).tolist()[:1] == [1]
    assert scores[1] > scores[0] > scores[3]
    assert scores[1] > scores[2] > scores[3]


def test_what_has_no_leaf_or_no_path_in_common_scores_zero() -> None:
    """The empty formula, on either side, and a number beside a letter."""
    scorer = Approach0Scorer([Tree([], [], ""), SUM, read_tangent("[N!7]")])
    assert scorer.score(SUM, [0, 2]).tolist() == [0.0, 0.0]
    assert scorer.score(Tree([], [], ""), [0, 1]).tolist() == [0.0, 0.0]
    assert scorer.score(SUM, []).tolist() == []


def test_only_the_first_leaves_of_a_long_formula_count() -> None:
    """A sum of 100 letters has as many paths as Approach0 keeps."""
    long = Tree(["U!plus"] + ["V!x"] * 100, [-1] + [0] * 100, "-" + "0" * 100)
    assert len(leaf_paths(long).leaves) == MOST_LEAVES


FORMULAS = st.lists(st.sampled_from(["V!x", "V!y", "+", "-", "=", "N!2", "V!z", "/", "⋅"]), min_size=1, max_size=9).map(
    lambda labels: Tree(labels, list(range(-1, len(labels) - 1)), "-" + "n" * (len(labels) - 1))
)


@given(st.lists(FORMULAS, min_size=1, max_size=6), FORMULAS)
@settings(max_examples=150, deadline=None)
def test_structure_is_the_best_over_all_pairs_of_subtrees(documents: list[Tree], query: Tree) -> None:
    """An exhaustive reading of the definition, with paths as strings, gives the same scores."""
    sectors = [_sectors(document) for document in documents]
    frequency = Counter(path for found in sectors for widths in found.values() for path in widths)
    total = frequency.total()

    def structure(ours: Counter[str], theirs: Counter[str]) -> float:
        return sum(min(ours[path], theirs[path]) * log(total / frequency[path]) for path in ours.keys() & theirs.keys())

    asked = _sectors(query).values()
    expected = [
        max((structure(ours, theirs) for ours in asked for theirs in found.values()), default=0.0) for found in sectors
    ]
    scorer = Approach0Scorer(documents)
    scores = scorer._structure(scorer._read(query), scorer._formulas)[0]
    assert scores == pytest.approx(expected, rel=1e-5, abs=1e-6)


def _sectors(layout: Tree) -> dict[int, Counter[str]]:
    """Return for each inner node how many leaves end each path below it."""
    paths = leaf_paths(operator_tree(layout))
    found: dict[int, Counter[str]] = {}
    for symbol, steps in zip(paths.symbols, paths.steps, strict=True):
        path = operator_type(symbol)
        for kind, root, _ in steps:
            path += "/" + kind
            found.setdefault(root, Counter())[path] += 1
    return found


def test_rescoring_keeps_the_first_documents_and_gives_them_new_scores(make_folder: Callable[..., Path]) -> None:
    """Of three documents two are rescored; the formula itself comes first."""
    texts = ["x+y", "x^2+y^2", "a^2+b^2=c^2"]
    collection = load_folder(
        make_folder([{"_id": f"d{n}", "title": "", "text": text} for n, text in enumerate(texts, 1)],
                    [{"_id": f"q{n}", "text": "x^2+y^2"} for n in (1, 2)])
    )  # fmt: skip
    run = pd.DataFrame({"query_id": ["q1"] * 3 + ["q2"], "doc_id": ["d1", "d2", "d3", "d3"], "score": [3, 2, 1, 1]})
    found = rescore(collection, runs.order_run(run), depth=2)
    assert found[["query_id", "doc_id"]].values.tolist() == [["q1", "d2"], ["q1", "d1"], ["q2", "d3"]]
    with pytest.raises(MirblabError, match="the scorer holds 1 formulas"):
        rescore(collection, run, scorer=Approach0Scorer(["x"]))


def test_posts_are_rescored_by_their_formulas(make_folder: Callable[..., Path]) -> None:
    """For each formula of the question the best of the answer's, added up; prose counts nothing."""
    posts = ["Take $x+y$ or $a^2+b^2=c^2$.", "No formula, x+y", "Take $x^2+y^2$, $x+y$", "$z$ and $x^2+y^2$"]
    folder = make_folder(
        [{"_id": f"d{n}", "title": "", "text": text} for n, text in enumerate(posts, 1)],
        [{"_id": "q1", "text": "Is $x^2+y^2$ more than $x+y$?"}, {"_id": "q2", "text": "Why?"}],
        "q1\td1\t1\nq2\td2\t1\n",
        'name = "tiny"\ntask = "Question-Answer Retrieval"\n',
    )
    collection = load_folder(folder)
    ids = [f"d{n}" for n in range(1, 5)]
    run = runs.order_run(
        pd.DataFrame({"query_id": ["q1"] * 4 + ["q2"], "doc_id": [*ids, "d1"], "score": [4, 3, 2, 1, 1]})
    )
    scores = rescore(collection, run).astype({"query_id": str}).set_index(["query_id", "doc_id"]).score
    scorer = Approach0Scorer(["x+y", "a^2+b^2=c^2", "x^2+y^2", "z"])
    asked = np.stack([scorer.score(latex, range(4)) for latex in ("x^2+y^2", "x+y")])
    places = {"d1": [0, 1], "d3": [2, 0], "d4": [3, 2]}
    wanted = {doc: asked[:, own].max(axis=1).sum() for doc, own in places.items()} | {"d2": 0}
    assert scores["q1"].to_dict() == pytest.approx(wanted) and scores["q2", "d1"] == 0
    assert scores["q1", "d3"] > scores["q1", "d4"] > 0


def test_a_position_that_is_not_there_is_refused() -> None:
    """The message says how many formulas there are."""
    with pytest.raises(MirblabError, match="a scorer of 1 formulas has no positions"):
        Approach0Scorer([SUM]).score(SUM, [1])


@pytest.fixture(scope="module")
def judged(shared_file: Callable[[str], Path]) -> tuple[dict[str, Tree], dict[str, Tree], pd.DataFrame]:
    """Return layouts of the judged formulas and of the queries, and the judgements, of 15 topics of ARQMath."""
    folder = shared_file("data/arqmath-2020-task2")
    qrels = pd.read_csv(folder / "qrels" / "test.tsv", sep="\t", dtype={0: str, 1: str}, quoting=3)
    qrels.columns = ["query_id", "doc_id", "relevance"]
    qrels = qrels[qrels.query_id.isin(sorted(set(qrels.query_id))[::3])]
    wanted = set(qrels.doc_id)
    with gzip.open(folder / "corpus.jsonl.gz", "rt", encoding="utf-8") as file:
        rows = [row for line in file if (row := json.loads(line))["_id"] in wanted and row.get("slt")]
    with (folder / "queries.jsonl").open(encoding="utf-8") as file:
        asked = [json.loads(line) for line in file]
    queries = {row["_id"]: read_tangent(row["slt"]) for row in asked if row["_id"] in set(qrels.query_id)}
    formulas = {}
    for row in rows:
        try:
            formulas[row["_id"]] = read_tangent(row["slt"])
        except MirblabError:
            continue  # two of the published strings have an unescaped bracket
    return formulas, queries, qrels


def test_judged_formulas_are_ranked_better_than_by_the_engine(judged: tuple) -> None:
    """The C engine reaches nDCG' 0.753 on all 45 topics of this collection; these are every third of them."""
    formulas, queries, qrels = judged
    ids = list(formulas)
    scorer = Approach0Scorer(list(formulas.values()))
    parts = [
        pd.DataFrame({"query_id": name, "doc_id": ids, "score": scorer.score(query, range(len(ids)))})
        for name, query in queries.items()
    ]
    values = measures.evaluate(runs.order_run(pd.concat(parts)), qrels, ["nDCG'"])
    assert values.value.mean() >= 0.753


def test_scores_go_with_those_of_the_engine(tmp_path: Path) -> None:
    """PyA0 orders a handful of formulas much as we do."""
    pya0 = pytest.importorskip("pya0", reason="needs PyA0, on Linux: pip install '.[approach0]'")
    texts = [
        "x^2+y^2", "a^2+b^2", "x^2+y^2=z^2", "x+y", "x^2", r"\frac{x}{y}", r"\sqrt{x^2+y^2}", "x^2-y^2", "(x+y)^2",
        "x^2+y^2+z^2+w^2+v^2+u^2", r"\sin x", "x^3+y^3",
    ]  # fmt: skip
    index = pya0.index_open(str(tmp_path / "index"), option="w")
    writer = pya0.index_writer(index)
    numbers = {pya0.writer_add_doc(writer, f"[imath]{text}[/imath]"): place for place, text in enumerate(texts)}
    pya0.writer_flush(writer)
    pya0.writer_close(writer)
    pya0.index_close(index)
    index = pya0.index_open(str(tmp_path / "index"), option="r")
    answer = json.loads(pya0.search(index, [{"str": "x^2+y^2", "type": "tex"}], topk=20, verbose=False))
    pya0.index_close(index)
    theirs = pd.Series({numbers[hit["docid"]]: hit["score"] for hit in answer["hits"]})
    ours = pd.Series(Approach0Scorer(texts).score("x^2+y^2", theirs.index), index=theirs.index)
    assert len(theirs) >= 6
    assert ours.corr(theirs, method="spearman") >= 0.8
    assert ours.idxmax() == theirs.idxmax() == 0
