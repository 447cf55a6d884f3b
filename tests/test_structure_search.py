"""Structure search over collections: candidates, posts, the stored index, and how well it finds."""

from __future__ import annotations

import dataclasses
import warnings
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mirblab import measures, paths, runs
from mirblab.collection import Collection, load_folder
from mirblab.errors import MirblabError
from mirblab.formula import bags, texts
from mirblab.formula import search as module
from mirblab.formula.index import Index
from mirblab.formula.search import search
from mirblab.formula.weighting import kind_weights
from mirblab.shelf import load

FORMULAS = 'name = "tiny"\ntask = "Formula Retrieval"\n'
ANSWERS = 'name = "tiny"\ntask = "Question-Answer Retrieval"\n'


def corpus(*found: str) -> list[dict[str, str]]:
    """Return documents d1, d2, ... of these texts."""
    return [{"_id": f"d{number}", "title": "", "text": text} for number, text in enumerate(found, 1)]


def asked(*found: str) -> list[dict[str, str]]:
    """Return queries q1, q2, ... of these texts."""
    return [{"_id": f"q{number}", "text": text} for number, text in enumerate(found, 1)]


def ranking(run: pd.DataFrame, query_id: str) -> dict[str, float]:
    """Return the scores of a query's documents, best first."""
    own = run[run.query_id == query_id]
    return dict(zip(own.doc_id.astype(str), own.score.tolist(), strict=True))


def test_a_run_is_in_the_order_of_runs_and_says_how_it_was_made():
    """Ids, ranks and settings are those of every run."""
    run = search(load("mini-wfb"), depth=5, b=2.0, weights={"located pair": 0.5})
    pd.testing.assert_frame_equal(run, runs.order(run))
    assert run.attrs["system"] == "structure" and run.attrs["b"] == 2.0 and run.attrs["weights"]["located pair"] == 0.5
    with pytest.raises(MirblabError, match="depth must be at least 1"):
        search(load("mini-wfb"), depth=0)


def test_candidates_are_honoured_exactly():
    """The run is that without candidates, less what is excluded, and as deep."""
    collection = load("mini-wfb")
    free = search(
        dataclasses.replace(collection, candidates=type(collection.candidates)(len(collection.corpus))), depth=10**6
    )
    queries, docs = free.query_id.cat.codes.to_numpy(), free.doc_id.cat.codes.to_numpy()
    kept = free[collection.candidates.permits(queries, docs)]
    found = search(collection, depth=10)
    wanted = runs.cut(runs.order(kept), 10)
    assert found[["query_id", "doc_id"]].astype(str).equals(wanted[["query_id", "doc_id"]].astype(str))
    assert 0 < len(kept) < len(free)


POSTS = ("With $u$ and $x^2+y^2$ here", "Only $x^2+z$", "$x^2+y^2$ is $x^2+y^2$", "x^2+y^2 without dollars", "$k$, $k$")


def test_a_post_scores_by_all_of_its_formulas_together(make_folder: Callable):
    """Against BM25 over bags of tokens, summed one by one: a formula that comes twice counts twice on both sides."""
    queries = ("What is $x^2+y^2$, and $y$, and again $y$?", "Nothing asked", "$k$")
    collection = load_folder(make_folder(corpus(*POSTS), asked(*queries), "q1\td1\t1\nq2\td1\t1\nq3\td5\t1\n", ANSWERS))
    run = search(collection, depth=10, weights={"symbol": 0.75})
    kinds, index = kind_weights({"symbol": 0.75}), Index.build([("a", "x")])

    def bag(text: str) -> Counter[int]:
        found: Counter[int] = Counter()
        for latex in texts.formulas(text, bare=False):
            (tokens,) = index.queries([latex])
            found.update(dict(zip(tokens.keys.tolist(), tokens.counts.tolist(), strict=True)))
        return found

    bags = [bag(text) for text in POSTS]
    average = sum(sum(own.values()) for own in bags) / 4  # the fourth has no formula
    for query_id, query in zip(("q1", "q2", "q3"), queries, strict=True):
        wanted = {}
        for number, own in enumerate(bags, 1):
            longer = 1.2 * (1 - 0.75 + 0.75 * sum(own.values()) / average)
            wanted[f"d{number}"] = sum(
                times * kinds[key & 15] * np.log(1 + 5 / sum(key in other for other in bags))
                * own[key] * 2.2 / (own[key] + longer)
                for key, times in bag(query).items() if own[key]
            )  # fmt: skip
        found = ranking(run, query_id)
        assert found == pytest.approx({doc: score for doc, score in wanted.items() if score}, rel=1e-5)
        assert list(found) == sorted(found, key=found.__getitem__, reverse=True)
    assert ranking(run, "q2") == {} and "d4" not in set(run.doc_id)


def test_queries_are_answered_in_batches_alike(monkeypatch: pytest.MonkeyPatch):
    """However many go together, and from however many segments."""
    collection = load("mini-qa").sample(30)
    wanted = search(collection, depth=20)
    monkeypatch.setattr(bags, "_AT_ONCE", 7)
    pd.testing.assert_frame_equal(search(collection, depth=20), wanted)


def test_bags_do_not_see_segments():
    """An index that was added to gives the scores of one that was built at once."""
    owned = texts.owned(POSTS, bare=False)
    items = list(zip("abcdef", owned.formulas, strict=False))
    whole, parts = Index.build(items), Index.build(items[:2]).add(items[2:])
    one, other = (list(bags.scores(index, owned, [["x^2+z", "k"], []])) for index in (whole, parts))
    np.testing.assert_allclose(one, other)
    assert len(parts.state.segments) == 2 and one[1].tolist() == [0] * 5


def test_several_formulas_of_a_formula_query_count_by_their_lengths(make_folder: Callable):
    """Where texts are formulas: who has the long one is before who has the short one, and who has both scores 1."""
    long, short = "\\sum_{n=1}^{m} a_n + b = c^2", "k"
    folder = make_folder(
        corpus(f"${long}$", f"${short}$", f"${short}$, ${long}$"),
        asked(f"${short}$ and ${long}$", "$z$"),
        card=FORMULAS,
    )
    collection = load_folder(folder)
    scores = ranking(search(collection, depth=10), "q1")
    index = Index.build([("a", long), ("b", short)])
    lengths = [query.length for query in index.queries([long, short])]
    assert list(scores) == ["d3", "d1", "d2"] and scores["d3"] == 1
    other = float(index.search([short], 2)[2][1]) if len(index.search([short], 2)[2]) > 1 else 0.0
    assert scores["d1"] == pytest.approx((lengths[0] + other * lengths[1]) / sum(lengths), abs=1e-5)


def test_a_formula_in_its_context_is_the_formula(make_folder: Callable):
    """Not what else the context has."""
    folder = make_folder(
        corpus("a+b", "c^2"), asked("Formula: a+b Context: When $c^2$ is odd.", "$c^2$"), card=FORMULAS
    )
    run = search(load_folder(folder), depth=10)
    assert list(ranking(run, "q1")) == ["d1"] and list(ranking(run, "q2")) == ["d2"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("x^2", ["x^2"]),
        ("", []),
        ("$x^2$", ["x^2"]),
        ("\\begin{cases} 1 & \\text{if $x$} \\end{cases} + y", None),
        ("\\begin{pmatrix} 1 \\end{pmatrix} v", None),
        ("$$ x $$", ["x"]),
        ("\\(a\\) or \\[b\\], [math]c[/math]", ["a", "b", "c"]),
        ("\\@@eqnarray$\\displaystyle x$&$\\displaystyle y$", None),
    ],
)
def test_a_text_of_a_formula_collection_is_one_formula(text: str, found: list[str] | None):
    """Unless it is delimited; a dollar or an environment inside changes nothing (None: the whole text)."""
    assert texts.formulas(text, bare=True) == ([text] if found is None else found)


def stored() -> set[Path]:
    """Return the folders of the indexes in the cache; tests of one run share it."""
    return set((paths.cache() / "structure").glob("*"))


def test_an_index_is_stored_once_and_opened_again(monkeypatch: pytest.MonkeyPatch):
    """A damaged one is built again, and other texts get another."""
    monkeypatch.setattr(module, "_WORTH_STORING", 0)
    collection = load("mini-wfb")
    before = stored()
    wanted = search(collection, depth=10)
    (folder,) = stored() - before
    files = {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}
    assert search(collection, depth=10).equals(wanted)
    assert files == {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}
    for path in folder.rglob("postings.npy"):
        path.write_bytes(path.read_bytes()[:-1])
    assert search(collection, depth=10).equals(wanted)
    other = dataclasses.replace(collection, corpus=collection.corpus.assign(text="x"))
    search(other, depth=1)
    assert len(stored() - before) == 2


def test_two_may_build_at_once(monkeypatch: pytest.MonkeyPatch):
    """Both get the same run, and one index remains."""
    monkeypatch.setattr(module, "_WORTH_STORING", 0)
    collection = dataclasses.replace(load("mini-wfb"), corpus=load("mini-wfb").corpus.assign(title="+"))
    before = stored()
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda depth: search(collection, depth=depth), [10] * 4))
    assert all(run.equals(found[0]) for run in found)
    (folder,) = stored() - before
    assert [path.name for path in folder.iterdir()] == ["000001"]


def test_no_formula_anywhere_gives_an_empty_run(make_folder: Callable):
    """Prose is no formula."""
    run = search(load_folder(make_folder(card=ANSWERS)), depth=3)
    assert run.empty and list(run.columns) == ["query_id", "doc_id", "score", "rank"]


def test_texts_without_formulas_score_nothing():
    """Also at the ends of the corpus."""
    owned = texts.owned(["", "$x$ $y$", "", "$y$", ""], bare=False)
    assert owned.best(np.array([0.25, 0.5], np.float32)).tolist() == [0, 0.5, 0, 0.5, 0]
    assert not owned.is_single and texts.owned(["$x$", ""], bare=False).column() == ["x", ""]


def values(collection: Collection, relevant_from: int | None = None) -> pd.Series:
    """Return the means of the official measures."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = measures.evaluate(
            search(collection, depth=1000), collection, ["nDCG'", "AP'", "P'@10", "Bpref"], relevant_from
        )
    return found.groupby("measure").value.mean()


def test_the_formulas_of_wikipedia_are_found(shared: Path):
    """NTCIR-12, the judged ones: Bpref partial and full, topic 13 without a fully relevant document."""
    collection = load_folder(shared / "data" / "ntcir12-wfb")
    assert values(collection, 1)["Bpref"] >= 0.76
    assert values(collection, 3)["Bpref"] * 20 / 19 >= 0.66


def test_the_judged_formulas_of_arqmath_are_found(shared: Path):
    """ARQMath-1 task 2 among the judged formulas only, which takes seconds instead of a minute."""
    whole = load_folder(shared / "data" / "arqmath-2020-task2")
    judged = np.unique(whole.qrels.doc_id.cat.codes)
    ids = whole.doc_ids[judged]
    qrels = whole.qrels.assign(doc_id=pd.Categorical(whole.qrels.doc_id.astype("str"), ids))
    small = dataclasses.replace(
        whole,
        corpus=whole.corpus.iloc[judged].reset_index(drop=True),
        qrels=qrels,
        candidates=type(whole.candidates)(len(judged)),
    )
    found = values(small)
    assert found["nDCG'"] >= 0.82 and found["AP'"] >= 0.575 and found["P'@10"] >= 0.53 and found["Bpref"] >= 0.52
