"""Structure search over collections: candidates, posts, the stored index, and how well it finds."""

from __future__ import annotations

import dataclasses
import math
import shutil
import signal
import subprocess
import sys
import warnings
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import mirblab as lab
from mirblab.core import atomic_files, paths, stored_files
from mirblab.core.atomic_files import unfinished_paths
from mirblab.core.errors import MirblabError
from mirblab.data import runs
from mirblab.data.collection import Collection, load_folder
from mirblab.evaluation import measures
from mirblab.formula import in_text
from mirblab.formula import index as formula_index
from mirblab.formula import search as formula_search
from mirblab.formula.index import Index
from mirblab.formula.scoring import kind_weights
from mirblab.formula.search import search
from mirblab.retrieval.systems import system
from mirblab.sources.catalogue import load

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
    pd.testing.assert_frame_equal(run, runs.order_run(run))
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
    wanted = runs.cut_run(runs.order_run(kept), 10)
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
        for latex in in_text.text_formulas(text, bare=False):
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
    monkeypatch.setattr(formula_search, "_AT_ONCE", 7)
    pd.testing.assert_frame_equal(search(collection, depth=20), wanted)


def test_bags_do_not_see_segments():
    """An index that was added to gives the scores of one that was built at once."""
    owned = in_text.collect_formulas(POSTS, bare=False)
    items = list(zip("abcdef", owned.formulas, strict=False))
    whole, parts = Index.build(items), Index.build(items[:2]).add(items[2:])
    one, other = (list(formula_search.score_texts(index, owned, [["x^2+z", "k"], []])) for index in (whole, parts))
    np.testing.assert_allclose(one, other)
    assert len(parts.state.segments) == 2 and one[1].tolist() == [0] * 5


def test_the_power_of_rarity_leaves_the_rarest_tokens_as_they_are():
    """A query of one number has two tokens, which are here in one of three texts or in two of them."""
    owned = in_text.collect_formulas(["$1$", "$1$ again", "$3$"], bare=False)
    index = Index.build(zip("ab", owned.formulas, strict=True))
    countings = (formula_search.Counting(power=power) for power in (1.0, 2.0))
    once, twice = (list(formula_search.score_texts(index, owned, [["1"], ["3"]], counting=each)) for each in countings)
    assert twice[1][2] == pytest.approx(once[1][2], 1e-5) and once[1][2] > 0
    assert twice[0][0] / once[0][0] == pytest.approx(np.log1p(3 / 2) / np.log1p(3), 1e-5)


@pytest.mark.parametrize(("k3", "wanted"), [(math.inf, 3.0), (1.0, 3 * 2 / (3 + 1)), (3.0, 3 * 4 / (3 + 3))])
def test_repetitions_in_a_query_count_as_k3_says(k3: float, wanted: float):
    """What a query has c times counts c (k3 + 1) / (c + k3), worked by hand for a number that stands there thrice."""
    owned = in_text.collect_formulas(["$1$", "$3$"], bare=False)
    index = Index.build(zip("ab", owned.formulas, strict=True))
    counting = formula_search.Counting(k3=k3)
    once, thrice = formula_search.score_texts(index, owned, [["1"], ["1"] * 3], counting=counting)
    assert thrice[0] / once[0] == pytest.approx(wanted, 1e-5) and once[0] > 0


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
    with pytest.raises(MirblabError, match="b, how much more .* must be 0 or more; found -1"):
        search(collection, depth=10, b=-1)


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
    assert in_text.text_formulas(text, bare=True) == ([text] if found is None else found)


@pytest.fixture
def home(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a home folder of the test's own, in whose cache every index is stored, however small."""
    monkeypatch.setattr(formula_index, "_WORTH_STORING", 0)
    return home


def stored() -> set[Path]:
    """Return the folders of the indexes in the cache; tests of one run share it."""
    return set((paths.cache() / "structure").glob("*"))


def test_an_index_is_stored_once_and_opened_again(monkeypatch: pytest.MonkeyPatch):
    """A damaged one is built again, and other texts get another."""
    monkeypatch.setattr(formula_index, "_WORTH_STORING", 0)
    collection = load("mini-wfb")
    before = stored()
    wanted = search(collection, depth=10)
    (folder,) = stored() - before
    files = {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}
    assert search(collection, depth=10).equals(wanted)
    assert files == {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}
    for path in folder.rglob("postings.npy"):
        path.write_bytes(path.read_bytes()[:-1])
    with pytest.warns(UserWarning, match=r"postings\.npy is damaged.*set aside.*it is built again"):
        assert search(collection, depth=10).equals(wanted)
    assert len(stored() - before) == 2 and formula_index.verify(folder.parent) == []
    shutil.rmtree(stored_files.damaged_paths(folder.parent)[0])
    other = dataclasses.replace(collection, corpus=collection.corpus.assign(text="x"))
    search(other, depth=1)
    assert len(stored() - before) == 2


KILLED = """
import os, signal, sys
from pathlib import Path
from mirblab.core import atomic_files, paths
from mirblab.formula import index

moves = []

def move(source, target, real=atomic_files.rename_path):
    moves.append(target)
    if len(moves) == int(sys.argv[1]):
        os.kill(os.getpid(), signal.SIGKILL)
    real(source, target)

atomic_files.rename_path = move
index._WORTH_STORING = 0
index.stored_index(["x^2", "y+1", r"\\frac{x}{y}"])
"""


@pytest.mark.parametrize("rename", [1, 2])
def test_a_build_that_was_killed_heals(rename: int, home: Path):
    """Killed before its manifest, or with all files written and only the last rename missing: the next build is whole.

    The manifest of the unfinished folder was taken for that of an index: nothing could be built or opened any more.
    """
    killed = subprocess.run([sys.executable, "-c", KILLED, str(rename)], check=False)
    assert killed.returncode == -signal.SIGKILL
    (left,) = unfinished_paths(paths.cache() / "structure")
    assert (left / "manifest.json").is_file() == (rename == 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        index = formula_index.stored_index(["x^2", "y+1", r"\frac{x}{y}"])
    assert len(index) == 3 and index.folder == left.parent and unfinished_paths(paths.cache()) == []
    assert [path.name for path in index.folder.iterdir()] == ["000001"]


def test_what_is_left_of_an_index_is_set_aside(home: Path):
    """A generation whose manifest is gone, and strangers among the indexes: told, and never a traceback."""
    folder = formula_index.stored_index(["x^2", "y+1"]).folder
    (folder / "000001" / "manifest.json").unlink()
    (folder.parent / "note.txt").write_text("mine", encoding="utf-8")
    with pytest.warns(UserWarning, match="no structure index at .* and was set aside as"):
        assert len(formula_index.stored_index(["x^2", "y+1"])) == 2
    (line,) = formula_index.verify(folder.parent)
    assert line == f"{folder.parent / 'note.txt'} does not belong here and is never read; move it away"
    (folder / "000001" / "0" / "ids.json").write_text("[]", encoding="utf-8")
    with pytest.warns(UserWarning, match=r"ids\.json is damaged"):
        assert "ids.json is damaged" in formula_index.verify(folder.parent)[0]
    assert len(stored_files.damaged_paths(folder.parent)) == 2 and len(formula_index.stored_index(["x^2", "y+1"])) == 2


def test_indexes_of_an_older_parser_are_named(home: Path):
    """They are never read again, and no damage."""
    folder = formula_index.stored_index(["x^2", "y+1"]).folder
    assert formula_index.older(folder.parent) == []
    manifest = folder / "000001" / "manifest.json"
    manifest.write_text(manifest.read_text("utf-8").replace("mirblab-structure-2", "mirblab-structure-1"), "utf-8")
    assert formula_index.older(folder.parent) == [(folder, 1)] and formula_index.verify(folder.parent) == []


def test_where_nothing_can_be_written_the_index_is_built_in_memory(home: Path):
    """A file stands where the folder should be."""
    home.mkdir()
    (home / "cache").write_text("no folder", encoding="utf-8")
    index = formula_index.stored_index(["x^2", "y+1"])
    assert len(index) == 2 and index.folder is None


@pytest.mark.parametrize("rename", [1, 2])
def test_an_index_that_is_removed_while_it_is_built_is_built_in_memory(
    rename: int, home: Path, monkeypatch: pytest.MonkeyPatch
):
    """Another process removes the store at a rename, or right after the last; others make the folder again."""
    really, moves = atomic_files.rename_path, []

    def move(source: Path, target: Path) -> None:
        moves.append(target)
        if rename == 2:
            really(source, target)
        if len(moves) == rename:
            shutil.rmtree(paths.cache())
            (paths.cache() / "structure" / formula_index._formulas_digest(["x^2", "y+1"])).mkdir(parents=True)
        if rename == 1:
            really(source, target)

    monkeypatch.setattr(atomic_files, "rename_path", move)
    index = formula_index.stored_index(["x^2", "y+1"])
    assert len(index) == 2 and index.folder is None and len(moves) == rename


def test_two_may_build_at_once(monkeypatch: pytest.MonkeyPatch):
    """Both get the same run, and one index remains."""
    monkeypatch.setattr(formula_index, "_WORTH_STORING", 0)
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


def test_no_document_at_all_is_an_empty_run_without_a_warning(make_folder: Callable, recwarn: pytest.WarningsRecorder):
    """Rarity among no documents is not divided by 0."""
    folder = make_folder("\n", [{"_id": "q1", "text": "$x$"}], "")
    assert lab.search("$x$", folder, "structure").frame.empty
    assert not [str(warned.message) for warned in recwarn if warned.category is RuntimeWarning]


def test_texts_without_formulas_score_nothing():
    """Also at the ends of the corpus."""
    owned = in_text.collect_formulas(["", "$x$ $y$", "", "$y$", ""], bare=False)
    assert owned.best(np.array([0.25, 0.5], np.float32)).tolist() == [0, 0.5, 0, 0.5, 0]
    assert not owned.is_single and in_text.collect_formulas(["$x$", ""], bare=False).column() == ["x", ""]


def values(collection: Collection, relevant_from: int | None = None) -> pd.Series:
    """Return the means of the official measures."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = measures.evaluate(
            search(collection, depth=1000), collection, ["nDCG'", "AP'", "P'@10", "Bpref"], relevant_from
        )
    return found.groupby("measure").value.mean()


def test_the_formulas_of_wikipedia_are_found(shared_file: Callable[[str], Path]):
    """NTCIR-12, the judged ones: Bpref partial and full, topic 13 without a fully relevant document."""
    collection = load_folder(shared_file("data/ntcir12-wfb"))
    assert values(collection, 1)["Bpref"] >= 0.76
    assert values(collection, 3)["Bpref"] * 20 / 19 >= 0.66


def test_the_judged_formulas_of_arqmath_are_found(shared_file: Callable[[str], Path]):
    """ARQMath-1 task 2 among the judged formulas only, which takes seconds instead of a minute."""
    whole = load_folder(shared_file("data/arqmath-2020-task2"))
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


HOL = (
    "|- !x:real^2 y. x$1 = y$1 /\\ x$2 = y$2 ==> x = y",
    "|- !x y:real^2. (x + y)$1 = x$1 + y$1 /\\ (x + y)$2 = x$2 + y$2",
    "|- !A:real^N^M i. transp A$i = column i A$i",
)


@pytest.mark.parametrize("system_name", ["structure", "structure>approach0@10", "mixed", "ngram"])
def test_dollars_in_the_language_of_a_proof_assistant_are_no_latex(
    make_folder: Callable[..., Path], system_name: str
) -> None:
    """They select a component there; structure search reads the whole statement, and n-grams read words."""
    folder = make_folder(
        corpus(*HOL),
        asked(*HOL),
        qrels="q1\td1\t1\nq2\td2\t1\nq3\td3\t1\n",
        card='name = "tiny"\ntask = "Premise Retrieval"\n',
    )
    collection = load_folder(folder)
    run = system(system_name).search(collection)
    assert not any(in_text.FormulaReader.of(collection).formulas(text) for text in collection.texts)
    assert run[run["rank"] == 1].doc_id.tolist() == ["d1", "d2", "d3"]
    if system_name == "ngram":
        assert "3 of 3 queries and 3 of 3 documents have no formula" in run.attrs["note"]
        assert run.doc_id.tolist() == system("bm25").search(collection).doc_id.tolist()


def test_a_run_counts_texts_without_a_formula_and_says_so_only_of_most(make_folder: Callable[..., Path]) -> None:
    """The counts are kept in any case."""
    folder = make_folder(corpus("$x$", "No formula", "$y$ and $x$"), asked("$x$", "$y$"), card=ANSWERS)
    for name in ("structure", "ngram"):
        attrs = system(name).search(load_folder(folder)).attrs
        assert attrs["no_formula"] == {"queries": [0, 2], "documents": [1, 3]} and "note" not in attrs
    few = system("structure").search(load("mini-mathlib"))
    assert few.attrs["note"] == "205 of 205 queries and 214 of 408 documents have no formula"


def test_the_card_names_a_language_without_signs(make_folder: Callable[..., Path]) -> None:
    """Such texts are read as words, and the same collection without that line has another fingerprint."""
    rocq = ("addnC m n : m + n = n + m", "mulnC m n : m * n = n * m", "leqnn n : n <= n")
    folders = [
        make_folder(corpus(*rocq), asked(*rocq), card='name = "tiny"\n' + line, name=f"rocq{place}")
        for place, line in enumerate(("", 'language = "Rocq"\n'))
    ]
    silent, named = map(load_folder, folders)
    assert (in_text.collection_language(silent), in_text.collection_language(named)) == (
        "",
        "Rocq",
    ) and silent.fingerprint != named.fingerprint
    pd.testing.assert_series_equal(system("ngram").search(named).doc_id, system("bm25").search(named).doc_id)
