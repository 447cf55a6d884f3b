"""A report finds what makes a collection easier, harder or less fair than it looks, and says what to do."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mirblab.analysis import collection_report
from mirblab.core import terminal
from mirblab.core.errors import MirblabError
from mirblab.data import near_duplicates
from mirblab.data.collection import Collection, load_folder
from mirblab.data.near_duplicates import find_repeats
from mirblab.evaluation.significance import compare

WORDS = (
    "every finite group ring field of prime order has a unique normal maximal ideal that is closed under sums".split()
)
Make = Callable[..., Path]


def random_texts(count: int, seed: int, length: int = 30) -> list[str]:
    """Return texts of which most repeat an earlier one with some words changed: pairs of every similarity."""
    random = np.random.default_rng(seed)
    found: list[list[str]] = []
    for number in range(count):
        if number % 4 == 0:
            words = [f"{WORDS[place]}{random.integers(60)}" for place in random.integers(0, len(WORDS), length)]
        else:
            words = list(found[int(random.integers(number))])
            for place in random.integers(0, length, random.integers(0, 5)):
                words[place] = f"w{random.integers(9999)}"
        found.append(words)
    return [" ".join(words) for words in found]


def brute(texts: list[str], threshold: float) -> dict[tuple[int, int], float]:
    """Return the similar pairs by Python's own sets of triples of words."""
    sets = [set(zip(words, words[1:], words[2:], strict=False)) for words in map(str.split, texts)]
    pairs = ((i, j) for j in range(len(texts)) for i in range(j))
    found = {(i, j): len(sets[i] & sets[j]) / len(sets[i] | sets[j]) for i, j in pairs}
    return {pair: jaccard for pair, jaccard in found.items() if jaccard >= threshold}


@pytest.mark.parametrize("threshold", [0.5, 0.8, 0.95, 1.0])
def test_near_pairs_are_those_of_comparing_all_with_all(threshold: float) -> None:
    """No pair is wrong, each similarity is exact, and at least as many are found as promised."""
    texts = random_texts(300, 1)
    wanted, found = brute(texts, threshold), near_duplicates.near_pairs(texts, threshold)
    got = dict(zip(zip(found.left.tolist(), found.right.tolist(), strict=True), found.jaccard.tolist(), strict=True))
    assert len(wanted) > 40
    assert set(got) <= set(wanted)
    assert len(got) >= near_duplicates.RECALL * len(wanted) - 1 and found.recall >= near_duplicates.RECALL
    assert all(got[pair] == pytest.approx(wanted[pair], abs=1e-12) for pair in got)


def test_a_triple_that_repeats_counts_once() -> None:
    """Sets, not lists: {abc, bca, cab, bcd} and {abc, bcd} share two of four."""
    found = near_duplicates.jaccard_similarity(["a b c a b c a b c d", "a b c d"], np.array([0]), np.array([1]))
    assert found.tolist() == [0.5]


def test_signatures_estimate_the_similarity() -> None:
    """The share of equal columns is unbiased: over many pairs its mean error is small beside its spread."""
    texts = random_texts(120, 2)
    wanted = brute(texts, 0.05)
    left, right = np.array(list(wanted)).T
    signature, _ = near_duplicates.minhash_signatures(texts, 512, seed=3)
    error = (signature[left] == signature[right]).mean(axis=1) - np.array(list(wanted.values()))
    assert abs(error.mean()) < 0.01 and error.std() < 0.03


def test_the_same_seed_finds_the_same_and_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Candidates depend on texts and seed, not on how many texts are worked on at once."""
    texts = random_texts(90, 4)
    before = near_duplicates.minhash_signatures(texts, 12, seed=5)[0]
    monkeypatch.setattr(near_duplicates, "_TEXTS_PER_BLOCK", 7)
    assert np.array_equal(near_duplicates.minhash_signatures(texts, 12, seed=5)[0], before)
    assert not np.array_equal(near_duplicates.minhash_signatures(texts, 12, seed=6)[0], before)


def test_shingles_ignore_case_space_and_dollars_and_keep_signs() -> None:
    """`$x^{2}$` and `x^2` are the same words; "and" and "or" of formal languages, plus and minus, are not."""

    def of(text: str) -> list[int]:
        return near_duplicates.shingles([text])[1].tolist()

    assert of("Let $x^{2}$, \\alpha") == of("let  x^2 alpha")
    assert of("p /\\ q") != of("p \\/ q") and of("a + b") != of("a - b") and of("~ p") != of("p")
    assert of("∀ x") != of("∃ x") and of("Straße") == of("STRASSE")
    assert of("") == of(" .,") == []


@pytest.mark.parametrize("count", [0, 1, 2, 3, 4])
def test_short_texts_are_one_shingle(count: int) -> None:
    """Fewer than three words make one, none makes none; a text beside another changes nothing."""
    words = " ".join("abcd"[:count])
    starts, hashes = near_duplicates.shingles(["x y z w", words, "x"])
    assert np.diff(starts).tolist() == [2, min(count, 1) if count < 3 else count - 2, 1]
    assert hashes[starts[1] : starts[2]].tolist() == near_duplicates.shingles([words])[1].tolist()


def test_texts_that_all_resemble_each_other_are_counted_as_cut() -> None:
    """A bucket of many texts is not compared all with all: the work stays bounded, and the report says so."""
    base = " ".join(f"w{n}" for n in range(90))
    found = near_duplicates.near_pairs([f"{base} {n}" for n in range(200)])
    assert len(found.left) <= 200 * near_duplicates._LARGEST_BUCKET and found.n_cut > 100


def test_pairs_that_agree_in_a_band_by_chance_are_dropped_at_once() -> None:
    """Of n texts they are about n²: kept, those of ten million texts would not fit into memory."""
    draw = np.random.default_rng(0)
    texts = [
        " ".join([f"w{n}" for n in range(30)] + [f"v{n}" for n in draw.integers(0, 10**9, 40)]) for _ in range(400)
    ]
    signature, has_words = near_duplicates.minhash_signatures([*texts, texts[7] + " end"], 126)
    every, kept = (near_duplicates.candidate_pairs(signature, has_words, 6, None, least) for least in (0.01, 0.8))
    assert len(every[0]) > 100 and len(kept[0]) < 10
    assert (7, 400) in zip(kept[0].tolist(), kept[1].tolist(), strict=True)


def test_sketches_agree_as_often_as_the_similarity_says() -> None:
    """Half of the numbers that differ have the same bit, in each column anew, also where a text has one shingle."""
    texts = [*random_texts(120, 2), *(f"one shingle {n}" for n in range(30))]
    wanted = brute(texts, 0.05) | {(i, j): 0.0 for j in range(120, 150) for i in range(120, j)}
    left, right = np.array(list(wanted)).T
    sketches = near_duplicates.one_bit_sketches(near_duplicates.minhash_signatures(texts, 512, seed=3)[0])
    share = 1 - np.bitwise_count(sketches[left] ^ sketches[right]).sum(axis=1) / 512
    error = share - (1 + np.array(list(wanted.values()))) / 2
    assert abs(error.mean()) < 0.01 and error.std() < 0.03


def test_a_threshold_outside_is_refused() -> None:
    """Percent given for a share is the likely mistake."""
    with pytest.raises(MirblabError, match="up to 1, found 80"):
        near_duplicates.near_pairs(["a"], 80)


def test_repeats_between_and_within_groups() -> None:
    """Copies go to the first one, near ones once; empty texts repeat nothing."""
    long = " ".join(f"w{n}" for n in range(40))
    found = find_repeats([["", long], [long.upper(), "other words here", "", long + " end", long]])
    assert found.between(0, 1)[["one", "other"]].to_numpy().tolist() == [[1, 0], [1, 3], [1, 4]]
    assert found.between(0, 1).jaccard.round(3).tolist() == [1.0, 0.974, 1.0]
    within = found.within(1)
    assert within.to_numpy().round(3).tolist() == [[0, 3, 0.974], [0, 4, 1.0]]
    assert [part.tolist() for part in found.shared(1, 0)] == [
        [True, False, False, False, True], [True, False, False, True, True]]  # fmt: skip


LONG = " ".join(f"word{n}" for n in range(30))


@pytest.fixture
def odd(make_folder: Make) -> Collection:
    """Return a collection with one case of everything that is looked for."""
    corpus = [
        {"_id": "d1", "text": LONG},  # q1's answer
        {"_id": "d2", "text": LONG + " more"},  # unjudged
        {"_id": "d3", "text": LONG + " again"},  # judged 0 for q1
        {"_id": "q2", "text": "a document with the id of a query and other words"},
        {"_id": "lib:Nat.sum_comm", "text": "theorem Nat.sum_comm (a b : Nat) : a + b = b + a"},
        {"_id": "d6", "title": "Yoneda Lemma", "text": "By \\ref{categories-lemma-yoneda} it is clear."},
    ]
    queries = [
        {"_id": "q1", "text": LONG},
        {"_id": "q2", "text": "we use sum_comm twice, and see \\eqref{main-formula} for it"},
        {"_id": "q3", "text": "the yoneda  lemma of categories is by \\ref{categories-lemma-yoneda} it is clear. Yes."},
        {"_id": "q4", "text": LONG.upper()},
    ]
    qrels = "q1\td1\t1\nq1\td3\t0\nq2\tlib:Nat.sum_comm\t1\nq3\td6\t1\nq4\td1\t0\n"
    return load_folder(make_folder(corpus, queries, qrels))


def test_duplicates_say_what_the_judgements_say(odd: Collection) -> None:
    """The answer, an unjudged document and one judged not relevant are told apart."""
    found = collection_report.report(odd, encoders=())
    rows = found.duplicates[["query_id", "doc_id", "relation", "is_relevant"]].to_numpy().tolist()
    assert rows == [
        ["q1", "d1", "relevant", True], ["q1", "d2", "unjudged", False], ["q1", "d3", "judged 0", False],
        ["q4", "d1", "judged 0", False], ["q4", "d2", "unjudged", False], ["q4", "d3", "unjudged", False],
    ]  # fmt: skip
    counts = found.summary.set_index("what")["count"]
    assert counts["queries that nearly repeat a relevant document"] == 1
    assert counts["queries that contain the title of their answer"] == 1
    assert counts["queries that nearly repeat an unjudged document"] == 2
    assert counts["queries that may return the document of their own id"] == 1
    assert counts["queries that nearly repeat an earlier query"] == 1
    assert counts["documents that nearly repeat an earlier one"] == 2
    assert found.duplicates.jaccard.round(3).tolist() == [1, 0.966, 0.966, 1, 0.966, 0.966]


def test_a_query_that_is_its_own_answer_does_not_return_itself_by_mistake(odd: Collection, make_folder: Make) -> None:
    """Own documents count unless they are relevant, or the rule keeps them out."""
    assert collection_report.self_returning_queries(odd).tolist() == ["q2"]
    rows = [{"_id": name, "text": name} for name in ("a", "b")]
    folder = make_folder(rows, rows, "a\ta\t1\nb\ta\t1\n", name="x")
    assert collection_report.self_returning_queries(load_folder(folder)).tolist() == ["b"]
    barred = make_folder(rows, rows, "b\ta\t1\n", card='candidates = ["not-self"]\n', name="y")
    assert collection_report.self_returning_queries(load_folder(barred)).empty


def test_every_leak_is_found_once(odd: Collection) -> None:
    """A declaration's last part, a title in other case, a reference in a query and in a document, a whole text."""
    found, by_chance = collection_report.find_leaks(odd)
    rows = sorted(found.to_numpy().tolist())
    assert rows == [
        ["", "d6", "reference", "\\ref{categories-lemma-yoneda}"],
        ["q2", "", "reference", "\\eqref{main-formula}"],
        ["q2", "lib:Nat.sum_comm", "declaration", "sum_comm"],
        ["q3", "", "reference", "\\ref{categories-lemma-yoneda}"],
        ["q3", "d6", "title", "Yoneda Lemma"],
    ]
    assert by_chance == 0


@pytest.mark.parametrize(
    ("name", "text", "is_there"),
    [
        ("sum", "the sum of", True), ("sum", "a sum.", True), ("sum", "sum_comm", False), ("sum", "resum", False),
        ("sum", "Nat.sum", False), ("sum", "sum.le", False), ("Loop", "a loop", False), ("x'", "x' y", True),
        ("x", "x' y", False), ("a-b", "see a-b", True),
    ],
)  # fmt: skip
def test_a_name_is_found_as_a_whole_word(name: str, text: str, is_there: bool) -> None:
    """Inside a longer name it is another name."""
    assert collection_report.occurs_as_word(name, text) is is_there


def test_prose_declares_nothing() -> None:
    """Only what is followed like a declaration is one."""
    assert list(collection_report.declared_names("Definition of a limit (in a space)")) == []
    assert list(collection_report.declared_names("@[simp] noncomputable def ℕ.foo' {α} : α")) == ["ℕ.foo'"]
    assert list(collection_report.declared_names("spaces-morphisms-lemma-birational Let X")) == [
        "spaces-morphisms-lemma-birational"
    ]


def test_a_query_that_begins_with_its_label_is_found_in_its_answer(make_folder: Make) -> None:
    """Labels that were left in spell out the answer."""
    corpus = [{"_id": "d1", "text": "We refer to spaces-lemma-birational here."}, {"_id": "d2", "text": "x"}]
    queries = [{"_id": "q1", "text": "spaces-lemma-birational Let X be a space"}]
    found = collection_report.find_leaks(load_folder(make_folder(corpus, queries, "q1\td1\t1\n")))[0]
    assert found.to_numpy().tolist() == [["q1", "d1", "query's name", "spaces-lemma-birational"]]


def test_a_name_that_is_everywhere_is_no_finding(make_folder: Make) -> None:
    """Where as many queries name the answers of others, the name says nothing: the sentence is left out."""
    corpus = [{"_id": f"n{n}.space", "text": f"text {n}"} for n in range(6)]
    queries = [{"_id": f"q{n}", "text": f"a space of size {n}"} for n in range(6)]
    collection = load_folder(make_folder(corpus, queries, "".join(f"q{n}\tn{n}.space\t1\n" for n in range(6))))
    assert collection_report.find_leaks(collection)[1] == 6
    assert not any(
        "name of their answer" in text for text in collection_report.report(collection, encoders=()).findings
    )


def test_an_answer_that_queries_share_is_no_chance(make_folder: Make) -> None:
    """What names its own answer is counted as a leak, not as chance, whoever it was dealt from."""
    corpus = [{"_id": "n1.space", "text": "text"}]
    queries = [{"_id": f"q{n}", "text": f"a space of size {n}"} for n in range(2)]
    collection = load_folder(make_folder(corpus, queries, "q0\tn1.space\t1\nq1\tn1.space\t1\n"))
    found, by_chance = collection_report.find_leaks(collection)
    assert found.text.tolist() == ["space", "space"] and by_chance == 0


def test_auc_is_that_of_all_pairs() -> None:
    """Against counting; equal lengths count by half."""
    random = np.random.default_rng(0)
    some, others = random.integers(0, 9, 40), random.integers(2, 12, 70)
    wanted = ((some[:, None] > others) + (some[:, None] == others) / 2).mean()
    assert collection_report.chance_of_larger(some, others)[0] == pytest.approx(wanted)
    assert collection_report.chance_of_larger(some, np.array([])) == (0.5, 0.0)


def test_length_that_gives_relevant_documents_away_is_said(make_folder: Make) -> None:
    """Title-only answers among full texts; without a difference nothing is said."""
    corpus = [{"_id": f"d{n}", "text": "w " * (4 if n < 20 else 40 + n)} for n in range(60)]
    queries = [{"_id": f"q{n}", "text": f"q {n}"} for n in range(20)]
    folder = make_folder(corpus, queries, "".join(f"q{n}\td{n}\t1\n" for n in range(20)))
    found = collection_report.report(load_folder(folder),
                              encoders=())  # fmt: skip
    assert any("shorter than another document in 100 % of all cases (AUC 0.00" in text for text in found.findings)
    assert found.lengths.set_index("texts").loc["relevant documents", "median"] == 4
    same = [{"_id": f"d{n}", "text": f"text {n}"} for n in range(60)]
    equal = load_folder(make_folder(same, queries, "".join(f"q{n}\td{n}\t1\n" for n in range(20)), name="equal"))
    assert not any("AUC" in text for text in collection_report.report(equal, encoders=()).findings)


def test_wilson_covers_the_truth() -> None:
    """In about 95 of 100 samples the share lies inside; the ends stay within 0 and 1."""
    counts = np.random.default_rng(0).binomial(200, 0.1, 2_000)
    intervals = [collection_report.wilson_interval(int(count), 200) for count in counts]
    covered = np.mean([low <= 0.1 <= high for low, high in intervals])
    assert 0.93 < covered < 0.97
    assert collection_report.wilson_interval(5, 5)[1] == 1.0 and collection_report.wilson_interval(0, 0) == (0.0, 1.0)


def test_truncation_counts_a_seeded_sample_and_says_so(odd: Collection, monkeypatch: pytest.MonkeyPatch) -> None:
    """All texts: no interval; a sample: an interval; an encoder that cannot count is named and the report goes on."""

    class Counts:
        max_length = 20

        def n_truncated(self, texts: list[str], role: str, instruction: str) -> int:
            return sum(len(text.split()) > self.max_length for text in texts)

    with monkeypatch.context() as patch:
        patch.setattr(collection_report, "encoder", lambda name: Counts())
        table, problems = collection_report.truncation_table(odd, ["words"])
        assert table[["role", "texts", "sampled", "truncated", "low", "high"]].to_numpy().tolist() == [
            ["query", 4, 4, 2, 0.5, 0.5], ["document", 6, 6, 3, 0.5, 0.5]]  # fmt: skip
        part = collection_report.truncation_table(odd, ["words"], n_sample=3, seed=1)[0]
        assert part.sampled.tolist() == [3, 3] and (part.low < part.share).all() and (part.high > part.share).all()
    found = collection_report.report(odd, encoders=["text-embedding-3-large"])
    assert "lengths in tokens are not known" in found.findings[-1] and found.truncation.empty
    with pytest.raises(MirblabError, match="did you mean 'minilm'"):
        collection_report.report(odd, encoders=["minillm"])


def test_overlap_counts_equal_and_near_texts(odd: Collection, make_folder: Make) -> None:
    """Case and white space make no difference; near ones include the equal ones."""
    other = load_folder(make_folder(
        [{"_id": "x1", "text": LONG.title()}, {"_id": "x2", "text": LONG + " and so on"}, {"_id": "x3", "text": "z"}],
        [{"_id": "y1", "text": "the last"}], "y1\tx1\t1\n", name="other"))  # fmt: skip
    found = collection_report.report(odd, encoders=(), others=[other])
    rows = found.overlap.set_index("what")
    assert rows["count"].to_dict() == {
        "queries that are documents there": 2, "queries that are queries there": 0,
        "documents that are documents there": 1, "documents that are queries there": 0,
    }  # fmt: skip
    assert rows.near_count["documents that are documents there"] == 3
    assert any("do not train or tune on the one" in text for text in found.findings)


def test_judged_shares_of_runs(odd: Collection) -> None:
    """Judged@10 of a run stands beside the judgements per query."""
    run = pd.DataFrame({"query_id": ["q1"] * 2, "doc_id": ["d1", "d2"], "score": [2.0, 1.0]})
    run.attrs["system"] = "own"
    found = collection_report.judgement_table(odd, [run]).set_index("what")
    assert found.loc["judged per query", ["mean", "most"]].tolist() == [1.25, 2]
    assert found.loc["relevant per query", ["mean", "least"]].tolist() == [0.75, 0]
    assert found.loc["Judged@10 of own", "mean"] == pytest.approx(0.5 / 4)


def test_findings_are_sorted_and_shown(odd: Collection) -> None:
    """What makes values wrong comes first; HTML and console show every finding, and markup stays text."""
    found = collection_report.report(odd, encoders=())
    order = ["1 query (25.0 %) is a document and may return itself", "a name of the answer",
             "are 4 queries in the split 'test': with", "not judged", "a reference that may name",
             "documents repeat an earlier one", "1 document (16.7 %) contains a reference", "a relevant document",
             "1 query has no relevant document", "1 query (25.0 %) nearly repeats another query"]  # fmt: skip
    assert len(found.findings) == len(order)
    assert all(words in text for words, text in zip(order, found.findings, strict=True)), found.findings
    html, out = found._repr_html_(), io.StringIO()
    assert html.count("<li>") == len(found.findings) and html.count("<table") == len(found.tables())
    collection_report.print_report(found, terminal.console(file=out, width=200))
    assert all(text[:60] in out.getvalue() for text in found.findings)
    assert repr(found).count("\n- ") == len(found.findings)


def test_a_clean_collection_has_no_findings(make_folder: Make) -> None:
    """Nothing is said where nothing is odd."""
    queries = [{"_id": f"q{n}", "text": f"query {n}"} for n in range(6)]
    judged = "".join(f"q{n}\td1\t1\n" for n in range(6))
    found = collection_report.report(load_folder(make_folder(queries=queries, qrels=judged)), encoders=())
    assert found.findings == [] and "There are no findings" in found._repr_html_()
    assert repr(found).endswith("There are no findings.") and (found.summary["count"] == 0).all()
    collection_report.print_report(found, terminal.console(file=(out := io.StringIO()), width=200))
    assert out.getvalue().startswith("tiny: no findings\n")


@pytest.mark.parametrize(
    ("judged", "says"),
    [("", "There is no query in the split 'test', so that only the documents were examined"),
     ("q1\td1\t1\n", "There is 1 query in the split 'test': with fewer than 6 a paired permutation test cannot reach")],
)  # fmt: skip
def test_a_report_on_few_queries_says_so(make_folder: Make, judged: str, says: str) -> None:
    """It is the first finding, since without queries most checks have nothing to look at."""
    found = collection_report.report(load_folder(make_folder(qrels=judged)), encoders=())
    assert len(found.findings) == 1 and found.findings[0].startswith(says)
    collection_report.print_report(found, terminal.console(file=(out := io.StringIO()), width=200))
    assert out.getvalue().startswith("tiny: 1 finding\n")


def test_a_name_or_a_folder_is_enough(make_folder: Make) -> None:
    """As for a search; a collection is not compared with itself, but with another split of itself."""
    folder = make_folder()
    assert collection_report.report(str(folder), encoders=()).collection == "tiny"
    with pytest.raises(MirblabError, match="tiny would be compared with itself"):
        collection_report.report(str(folder), encoders=(), others=[str(folder)])
    (folder / "qrels" / "dev.tsv").write_text("q1\td1\t1\n", "utf-8")
    assert len(collection_report.report(str(folder), encoders=(), others=[load_folder(folder, "dev")]).overlap) == 4


def test_with_five_queries_no_permutation_test_reaches_005() -> None:
    """As the report says of fewer than six; with six it does."""
    for n, is_reached in ((5, False), (6, True)):
        values = pd.DataFrame({
            "system": ["one"] * n + ["other"] * n, "collection": "c", "measure": "RR", "query_id": [*range(n)] * 2,
            "value": [0.0] * n + [1.0] * n,
        }).astype({"query_id": "str"})  # fmt: skip
        assert (compare(values, "RR", baseline="one").p.item() < 0.05) == is_reached


def test_known_facts_of_the_shared_collections(shared_file: Callable[[str], Path]) -> None:
    """The blueprint queries that contain their declaration's name, and the title-only answers of mse-dup."""
    import json

    place = shared_file("data/blueprints")
    flagged = {row["_id"] for row in map(json.loads, (place / "queries.jsonl").open(encoding="utf-8"))
               if row["metadata"]["names_decl"]}  # fmt: skip
    found, by_chance = collection_report.find_leaks(load_folder(place))
    assert len(flagged) == 82 and flagged <= set(found.query_id) and by_chance < 5
    _, auc, z = collection_report.length_table(load_folder(shared_file("data/mse-dup")))
    assert auc < 0.4 and z < -10
