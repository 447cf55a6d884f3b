"""The structure index: its scores against a slow scorer, and what happens to it on disk."""

from __future__ import annotations

import contextlib
import json
import math
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import psutil
import pytest

from mirblab.core.errors import MirblabError
from mirblab.data.candidates import Candidates, ListRule
from mirblab.formula import index as formula_index
from mirblab.formula import scoring, storage
from mirblab.formula import scoring as formula_scoring
from mirblab.formula import storage as formula_storage
from mirblab.formula.explain import explain_match
from mirblab.formula.index import Index, worker_processes
from mirblab.formula.scoring import kind_weights
from mirblab.formula.storage import load_segment, write_segment
from mirblab.formula.tokens import KIND_MASK, formula_tokens, layout_trees
from mirblab.formula.tree import Tree, read_tangent

ATOMS = ("x", "y", "z", "n", "2", "3", "\\alpha", "+", "-", "=", "(x)", "x^2", "a_n", "\\frac{x}{y}", "\\sqrt{n}")


def formulas(n: int, seed: int = 0) -> list[tuple[str, str]]:
    """Return *n* random formulas with ids in no order; some are the same."""
    draw = random.Random(seed)
    names = [f"f{number}" for number in draw.sample(range(10 * n), n)]
    return [(name, " ".join(draw.choices(ATOMS, k=draw.randint(1, 9)))) for name in names]


def bag(latex: str) -> Counter:
    """Return the tokens of a formula with how often it has them."""
    return Counter(formula_tokens(layout_trees([latex])).keys.tolist())


def slow_search(items: list[tuple[str, str]], query: str, depth: int, b: float = 4.0) -> list[tuple[str, float]]:
    """Return ids and scores by the definition, one formula after another."""

    bags, asked, kinds = [bag(latex) for _, latex in items], bag(query), kind_weights()
    documents = Counter(key for own in bags for key in own)
    worth = lambda key: kinds[key & int(KIND_MASK)] * np.log(1 + len(items) / (documents[key] or 0.5))  # noqa: E731
    capped = lambda own, key: min(own[key], 255)  # noqa: E731
    found = []
    for (name, _), own in zip(items, bags, strict=True):
        shared = sum(worth(key) * min(capped(asked, key), capped(own, key)) for key in asked if key in own)
        lengths = (sum(worth(key) * capped(some, key) for key in some) for some in (asked, own))
        length, other = lengths
        if shared:
            other = other if other < 2 * length else 2 * length * (1 + math.log(other / (2 * length)))
            found.append((name, np.float32(round((1 + b) * shared / (b * length + other), 5))))
    return sorted(sorted(found, reverse=True), key=lambda row: -row[1])[:depth]


def search(index: Index, queries: list[str], depth: int, **settings: object) -> list[list[tuple[str, np.float32]]]:
    """Return ids and scores of each query's results."""
    rows, positions, scores = index.search(queries, depth, **settings)
    found = [(index.ids[position], score) for position, score in zip(positions, scores, strict=True)]
    return [[pair for pair, row in zip(found, rows, strict=True) if row == number] for number in range(len(queries))]


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use the compiled loop, and several blocks, however small the index."""
    monkeypatch.setattr(formula_scoring, "COMPILE_FROM", 0)
    monkeypatch.setattr(formula_scoring, "NARROW", 7)


def test_results_are_those_of_exhaustive_scoring():
    """Order, scores and ties agree with the definition for every depth."""
    items = formulas(60)
    index = Index.build(items)
    for query in ("x^2+y=2", "\\frac{x}{y}", "n", "a_n (x) 3", "\\qvar{x}^2 + \\qvar{x}"):
        for depth in (1, 10, 100):
            wanted = slow_search(items, query, depth)
            found = search(index, [query], depth)[0]
            assert [score for _, score in found] == pytest.approx([score for _, score in wanted], abs=1e-5)
            if depth == 100:
                assert {name for name, _ in found} == {name for name, _ in wanted}


def test_a_query_deep_in_a_long_derivation_is_found_before_a_short_formula_with_half_of_it():
    """What is beyond twice the query's length counts by its logarithm; up to there a formula counts whole."""
    query, rest = "\\int_0^1 \\frac{\\sin x}{x} dx", " + ".join(f"a_{{{n}}}" for n in range(2, 40))
    index = Index.build([("deep", f"{query} = {rest}"), ("half", "\\int_0^1 x dx"), ("other", "b+c"), ("none", "y<z")])
    assert [name for name, _ in search(index, [query], 2)[0]] == ["deep", "half"]
    scores = scoring.score_formulas(np.full(3, 5.0), 10.0, np.array([15.0, 20.0, 20.0 * math.e]), 4.0)
    np.testing.assert_allclose(scores, [25 / 55, 25 / 60, 25 / 80], rtol=1e-6)


def test_equal_scores_are_ordered_by_id_descending_also_where_the_ranking_ends():
    """The ids are not in the order in which the formulas came."""
    index = Index.build([(name, "x+1") for name in ("b", "d", "a", "c")] + [("e", "z^2")])
    assert [name for name, _ in search(index, ["x+1"], 3)[0]] == ["d", "c", "b"]


@pytest.mark.usefixtures("compiled")
def test_ties_across_blocks_are_ordered_by_id_too():
    """A later block may hold the larger id."""
    names = [f"f{number:02}" for number in np.random.default_rng(3).permutation(40)]
    index = Index.build([(name, "x+1") for name in names])
    assert [name for name, _ in search(index, ["x+1"], 5)[0]] == ["f39", "f38", "f37", "f36", "f35"]


def test_the_compiled_loop_gives_the_same_bits(compiled: None, monkeypatch: pytest.MonkeyPatch):
    """In blocks of seven formulas, too."""
    items, queries = formulas(50), [latex for _, latex in formulas(20, seed=1)]
    fast = Index.build(items).search(queries, 10)
    monkeypatch.setattr(formula_scoring, "COMPILE_FROM", 1 << 60)
    for one, other in zip(fast, Index.build(items).search(queries, 10), strict=True):
        assert np.array_equal(one, other)


def test_a_formula_scores_one_against_itself_and_less_against_others():
    """Exactly one: sums do not depend on their order."""
    items = formulas(80)
    index = Index.build(items)
    bags = {name: bag(latex) for name, latex in items}
    for (own, _), best in zip(items, search(index, [latex for _, latex in items], 100), strict=True):
        assert best[0][1] == 1
        assert all((score == 1) == (bags[name] == bags[own]) for name, score in best)


def test_sums_of_weights_are_exact_whatever_their_order():
    """The length of a formula is to the last bit that of the same formula as a query."""
    items = formulas(80)
    index = Index.build(items[:30]).add(items[30:])
    for weights in (None, {"located pair": 0.3, "symbol": 1.7}):
        asked = index.queries([latex for _, latex in items], weights)
        assert [query.length for query in asked] == index.lengths(weights).tolist()


def test_the_way_a_build_is_cut_changes_no_byte(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Batches of 2, 7 and all, the first made here and the others by processes beside; the files are the same."""
    contents = []
    for size in (2, 7, 1 << 13):
        monkeypatch.setattr(formula_index, "BATCH_FORMULAS", size)
        Index.build(iter(formulas(30)), tmp_path / str(size))
        files = sorted(path for path in (tmp_path / str(size)).rglob("*") if path.is_file())
        contents.append([(path.name, path.read_bytes()) for path in files])
    assert contents[0] == contents[1] == contents[2] and len(contents[0]) == 7


@pytest.mark.parametrize("on_disk", [True, False])
def test_adding_and_merging_are_as_if_all_had_been_indexed_at_once(tmp_path: Path, on_disk: bool):
    """Every score to the last bit, for three segments, for one, and when opened again."""
    items, queries = formulas(90), [latex for _, latex in formulas(15, seed=2)]
    wanted = search(Index.build(items), queries, 12)
    folder = tmp_path / "index" if on_disk else None
    index = Index.build(items[:40], folder).add(items[40:41]).add(items[41:])
    assert len(index.state.segments) == 3 and search(index, queries, 12) == wanted
    assert search(index, queries, 12, weights={"located pair": 0.3}) == search(
        Index.build(items), queries, 12, weights={"located pair": 0.3}
    )
    merged = index.merge()
    assert len(merged.state.segments) == 1 and search(merged, queries, 12) == wanted
    if folder is not None:
        assert [path.name for path in folder.iterdir()] == ["000004"]
        assert search(Index.open(folder), queries, 12) == wanted


def test_a_large_build_makes_several_segments(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """Their search is that of one."""
    items = formulas(40)
    wanted = search(Index.build(items), ["x^2+y"], 40)
    monkeypatch.setattr(formula_index, "SEGMENT_FORMULAS", 16)
    index = Index.build(items, tmp_path / "index")
    assert [part.n for part in index.state.segments] == [16, 16, 8] and search(index, ["x^2+y"], 40) == wanted


def test_what_is_not_a_candidate_never_comes_back_and_costs_nobody_a_place():
    """The best of those allowed fill the ranking."""
    items = sorted(formulas(50))
    index = Index.build(items)
    everything = index.search(["x^2+y=2"], 50)[1]
    allowed = np.sort(everything[5::2])
    rule = ListRule.from_pairs("judged", np.zeros(len(allowed), np.int64), allowed, 1, allow=True)
    found = index.search(["x^2+y=2"], 10, Candidates(50, (rule,)))[1]
    assert found.tolist() == everything[5::2][:10].tolist()


def test_formulas_without_a_shared_token_never_come_back():
    """Nor does an empty formula, and an empty query finds nothing."""
    index = Index.build([("a", "x"), ("b", ""), ("c", "\\sum")])
    found = search(index, ["x", "", "\\qvar{u}", "\\prod"], 10)
    assert [[name for name, _ in row] for row in found] == [["a"], [], [], []]
    assert not index.scores(index.queries([""])[0]).any()


def test_a_stored_index_that_is_damaged_or_foreign_says_so(tmp_path: Path):
    """One byte of any file, a missing file, another format, and nothing at all."""
    folder = tmp_path / "index"
    Index.build(formulas(20), folder)
    for path in [path for path in folder.rglob("*") if path.is_file()]:
        before = path.read_bytes()
        path.write_bytes(before[:-2] + bytes([before[-2] ^ 1]) + before[-1:])
        with pytest.raises(MirblabError, match="build the index again"):
            Index.open(folder)
        path.unlink()
        with pytest.raises((MirblabError, FileNotFoundError)):
            Index.open(folder)
        path.write_bytes(before)
    assert len(Index.open(folder)) == 20
    with pytest.raises(FileNotFoundError, match="does not exist"):
        Index.open(tmp_path / "nowhere")
    manifest = folder / "000001" / "manifest.json"
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"format": "other"}))
    with pytest.raises(MirblabError, match="has the format 'other', expected 'mirblab-structure-2'"):
        Index.open(folder)


def test_an_index_of_another_parser_is_not_searched(tmp_path: Path):
    """Its tokens would not be those of the query."""
    Index.build(formulas(5), tmp_path / "index")
    manifest = tmp_path / "index" / "000001" / "manifest.json"
    said = {key: value for key, value in json.loads(manifest.read_text()).items() if key != "check"} | {"code": "0"}
    manifest.write_text(json.dumps(said | {"check": storage.manifest_checksum(said)}))
    with pytest.raises(MirblabError, match="built by another version of the parser"):
        Index.open(tmp_path / "index")


def test_a_build_that_fails_leaves_the_index_as_it_was(tmp_path: Path):
    """Also when the failure comes after some formulas, or is an id given twice."""
    items = formulas(20)

    def broken() -> Iterator[tuple[str, str]]:
        yield ("new", "x")
        raise KeyboardInterrupt

    index = Index.build(items, tmp_path / "index")
    for bad, error in ((broken(), KeyboardInterrupt), ([items[3]], MirblabError), ([("a", 3)], MirblabError)):
        with pytest.raises(error):
            index.add(bad)
        assert [path.name for path in (tmp_path / "index").iterdir()] == ["000001"]
        assert len(Index.open(tmp_path / "index")) == 20
    with pytest.raises(MirblabError, match=f"two formulas have the id '{items[3][0]}'"):
        index.add([items[3]])
    with pytest.raises(MirblabError, match="holds an index already"):
        Index.build(items, tmp_path / "index")


def test_a_process_that_fails_fails_the_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Its error is raised here, its death is reported, no file is left behind, and no process stays."""
    folder = tmp_path / "part"
    with pytest.raises(MirblabError, match="has ended unexpectedly"), worker_processes(1) as pool:
        assert pool.submit(write_segment, ["x^2", "y"], folder).result() == 2 and load_segment(2, folder).n == 2
        with pytest.raises(MirblabError, match="malformed tree string"):
            pool.submit(read_tangent, "[V!x").result()
        worker = psutil.Process(pool.submit(os.getpid).result())
        worker.kill()
        pool.submit(write_segment, ["x"], folder).result()
    assert not worker.is_running()
    with worker_processes(1) as pool:
        worker = psutil.Process(pool.submit(os.getpid).result())
        pool.submit(time.sleep, 600)
    assert not worker.is_running()
    monkeypatch.setattr(formula_index, "BATCH_FORMULAS", 2)

    def interrupted() -> Iterator[tuple[str, str]]:
        yield from formulas(12)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Index.build(interrupted(), tmp_path / "index")
    assert not any((tmp_path / "index").iterdir())


def test_who_adds_second_is_told_and_nobodys_formulas_are_lost(tmp_path: Path):
    """Two processes opened the same state."""
    first = Index.build([("a", "x")], tmp_path / "index")
    second = Index.open(tmp_path / "index")
    first.add([("b", "y")])
    with pytest.raises(MirblabError, match="another process has changed the index"):
        second.add([("c", "z")])
    assert Index.open(tmp_path / "index").ids == ["a", "b"]


@pytest.mark.parametrize("is_done", [True, False])
def test_who_removes_old_files_leaves_those_of_a_newer_generation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_done: bool
):
    """Another process adds in between; *is_done*: it has removed the old files itself already."""
    Index.build([("a", "x")], tmp_path / "index")
    commit, waiting = formula_storage._commit, [("c", "z")]

    def commit_before_another(beside: Path, target: Path) -> None:
        commit(beside, target)
        if waiting:
            with monkeypatch.context() as patch:
                if not is_done:
                    patch.setattr(formula_storage, "_remove_unused", lambda *_: None)
                Index.open(tmp_path / "index").add([waiting.pop()])

    monkeypatch.setattr(formula_storage, "_commit", commit_before_another)
    assert Index.open(tmp_path / "index").add([("b", "y")]).ids == ["a", "b", "c"]
    assert Index.open(tmp_path / "index").ids == ["a", "b", "c"]


def test_a_segment_never_grows_beyond_what_a_posting_can_say(monkeypatch: pytest.MonkeyPatch):
    """Positions have 24 bits."""
    monkeypatch.setattr(formula_storage, "MOST_FORMULAS", 3)
    with pytest.raises(MirblabError, match="3 formulas at most, found 4; leave them unmerged"):
        Index.build(formulas(2)).add(formulas(2, seed=5)).merge()


def test_settings_are_checked():
    """Before anything is searched."""
    index = Index.build([("a", "x")])
    for settings, message in (
        ({"depth": 0}, "depth must be at least 1"),
        ({"depth": 1, "b": -1.0}, "must be 0 or more"),
        ({"depth": 1, "weights": {"pairs": 1}}, "no kind of token 'pairs'"),
        ({"depth": 1, "weights": {"located pair": -1}}, "between 0 and 1000"),
    ):
        with pytest.raises(MirblabError, match=message):
            index.search(["x"], **settings)
    with pytest.raises(MirblabError, match="must be 0 or more; found -1"):
        index.scores(index.queries(["x"])[0], b=-1)


def test_a_formula_without_tokens_scores_zero_also_where_only_its_own_share_counts():
    """Not 0/0, which would take the other formulas of its document along."""
    index = Index.build([("a", "x^2"), ("b", "")])
    assert index.scores(index.queries(["x^2"])[0], b=0).tolist() == [1, 0]


def test_b_moves_from_is_my_formula_to_contains_my_formula():
    """A longer formula that contains the query gains on a short one that has half of it."""
    index = Index.build([("long", "x^2+y^2 = z^2 + a + b + c + d + e"), ("short", "x^2+y"), ("other", "u")])
    first = [search(index, ["x^2+y^2"], 2, b=b)[0][0][0] for b in (0.1, 100.0)]
    assert first == ["short", "long"]


def test_an_explanation_adds_up_to_the_score_of_the_search():
    """For every pair, and the shares of nodes lie between 0 and 1."""
    items = formulas(25)
    index = Index.build(items)
    for query in ("x^2+y=2", "\\frac{y}{x} + n"):
        found = dict(search(index, [query], 25)[0])
        for name, latex in items:
            why = explain_match(query, latex, index)
            assert np.float32(why.score) == found.get(name, 0)
            assert why.tokens.contribution.sum() == pytest.approx(why.found * index.queries([query])[0].length)
            shares = [*why.query_nodes.values(), *why.document_nodes.values()]
            assert all(0 <= share <= 1 for share in shares) and len(why.query_nodes) == len(why.query)


def test_an_explanation_says_where_a_located_pair_is():
    """From the root, or from the last relation symbol above, behind which pairs agree wherever it is."""
    index = Index.build([("a", "x+y=|z|+1"), ("b", "u")])
    why = explain_match("x+y=|z|+1", "u+v+w=|z|+1", index)
    assert set(why.tokens.token[why.tokens.kind == "located pair"]) == {
        "= →n ||",
        "|| →w z at n",
        "|| →n + at n",
        "+ →n 1 at nn",
    }
    same = explain_match("x+y", "x+y", index)
    assert set(same.tokens.token[same.tokens.kind == "located pair"]) == {"x →n + at the root", "+ →n y at n"}


def test_the_same_formula_is_explained_wholly_and_a_renamed_one_names_the_names():
    """Every node agrees; x is y and n is m."""
    index = Index.build([("a", "x^n+x=2"), ("b", "y^m+y=2"), ("c", "z")])
    same, other = explain_match("x^n+x=2", "x^n+x=2", index), explain_match("x^n+x=2", "y^m+y=2", index)
    assert set(same.query_nodes.values()) == {1.0} and same.renamed == [] and same.score == 1
    assert other.renamed == [("x", "y"), ("n", "m")] and 0 < other.score < 1
    assert explain_match("x", "\\prod", index).tokens.empty
    assert explain_match("f^n = 0", "c' = f'(c)", index).renamed == [("f", "c")]  # a prime is no variable
    assert explain_match(r"\mathfrak{x}", "x", index).renamed == []  # as in matching, the font does not matter


def test_trees_and_latex_ask_the_same_question():
    """A query may come from MathML."""
    index = Index.build(formulas(30))
    tree = layout_trees(["x^2+y"])[0]
    assert isinstance(tree, Tree) and search(index, [tree], 5) == search(index, ["x^2+y"], 5)


def test_the_bound_never_rejects_what_the_floor_accepts():
    """A formula is at least as long as what it shares."""
    draw = np.random.default_rng(0)
    for _ in range(300):
        asked, b = draw.uniform(0.1, 50), draw.choice([0.0, 0.5, 3.0])
        shared = draw.uniform(0, asked)
        score = float(scoring.score_formulas(np.array([shared]), asked, np.array([shared * draw.uniform(1, 2)]), b)[0])
        assert shared > scoring.least_shared(score, asked, b) or shared == 0


def test_a_reader_of_an_old_generation_is_not_disturbed(tmp_path: Path):
    """It keeps its arrays while another process adds and merges."""
    old = Index.build(formulas(30), tmp_path / "index")
    wanted = search(old, ["x^2"], 5)
    Index.open(tmp_path / "index").add([("new", "x^2")]).merge()
    assert search(old, ["x^2"], 5) == wanted
    assert storage.read_generation(tmp_path / "index").number == 3


def test_who_reads_ids_after_another_merged_is_told_to_open_the_index_again(tmp_path: Path):
    """They are read when they are first asked for, and their file is gone."""
    Index.build([("a", "x")], tmp_path / "index")
    old = Index.open(tmp_path / "index")
    Index.open(tmp_path / "index").add([("b", "y")]).merge()
    with pytest.raises(MirblabError, match="another process has changed the index in .*index meanwhile; open it again"):
        old.ids  # noqa: B018


def test_who_opens_while_another_merges_reads_the_newer_generation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The other one merges right after the number of the current generation was read."""
    Index.build([("a", "x")], tmp_path / "index")
    last_generation, waiting = formula_storage.last_generation, [("b", "y")]

    def merge_after_the_look(folder: Path) -> int:
        number = last_generation(folder)
        if waiting:
            item = waiting.pop()  # first, since it looks for the generation, too
            Index.open(folder).add([item]).merge()
        return number

    monkeypatch.setattr(formula_storage, "last_generation", merge_after_the_look)
    assert Index.open(tmp_path / "index").ids == ["a", "b"]


@pytest.mark.skipif(sys.platform == "win32", reason="Ctrl-C there goes to every process of the console")
def test_ctrl_c_ends_a_build_and_its_processes_without_a_word_from_them(tmp_path: Path):
    """The signal reaches the whole process group, as in a terminal; only the main process raises KeyboardInterrupt."""
    script = (
        "from mirblab.formula import index; from pathlib import Path; import psutil\n"
        "index.BATCH_FORMULAS = 20\n"
        "def formulas():\n"
        "    for number in range(10_000_000):\n"
        "        if number == 2_000: print(*[p.pid for p in psutil.Process().children(recursive=True)], flush=True)\n"
        "        yield str(number), 'x^2'\n"
        f"index.Index.build(formulas(), Path({str(tmp_path / 'index')!r}))"
    )
    command, pipe = [sys.executable, "-c", script], subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, start_new_session=True) as build:
        children = [psutil.Process(int(pid)) for pid in build.stdout.readline().split()]
        os.killpg(build.pid, signal.SIGINT)
        errors = build.communicate(timeout=20)[1]
    assert children and errors.count("Traceback") == 1 and errors.rstrip().endswith("KeyboardInterrupt"), errors
    psutil.wait_procs(children, timeout=5)
    assert not any(child.is_running() for child in children) and not any((tmp_path / "index").iterdir())


def test_its_processes_end_with_the_one_that_started_them():
    """Also when that one is killed while they work; nobody would take their answer."""
    script = (
        "import os, time; from mirblab.formula.index import worker_processes; from mirblab.formula.storage import *\n"
        "with worker_processes(1) as pool:\n"
        "    print(pool.submit(os.getpid).result(), flush=True); pool.submit(make_segment, ['x^2'] * 300_000).result()"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as parent:
        child = psutil.Process(int(parent.stdout.readline()))
        parent.kill()
    try:
        child.wait(timeout=5)
    finally:
        with contextlib.suppress(psutil.Error):
            child.kill()
