"""Hard negatives: every kind of mistake by hand, and the collections that are made of them."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from built_collections import card, content, rows

from mirblab.core import paths
from mirblab.core.errors import MirblabError
from mirblab.data.beir import write_lists
from mirblab.data.collection import load_folder
from mirblab.sources import hard_negatives
from mirblab.sources.hard_negatives import KINDS, build, corrupt, find_formula_spans, mask_formulas


def all_of(kind: str, proof: str) -> list[str]:
    """Return the proof after each possible mistake of a kind."""
    return [proof[: change.start] + change.new + proof[change.end :] for change in KINDS[kind](proof)]


@pytest.mark.parametrize(
    ("kind", "proof", "expected"),
    [
        ("relation-reversed", r"So $a \leq b$.", [r"So $a \geq b$."]),
        ("relation-reversed", r"$U \subset V < 2$", [r"$U \supset V < 2$", r"$U \subset V > 2$"]),
        ("relation-reversed", r"$A \subseteq B$ and $x \ge 0$",
         [r"$A \supseteq B$ and $x \ge 0$", r"$A \subseteq B$ and $x \le 0$"]),
        ("relation-reversed", r"a < b in prose, $\sum_{i < n} x$, $\not\subset$, $<x, y>$, $f \leftarrow g$", []),
        ("relation-reversed", r"$\xymatrix{A \ar@{>->}[r] & B < C}$ and $\left< x \right.$", []),
        ("quantifier-changed", r"For all $x$ this holds.", ["For some $x$ this holds."]),
        ("quantifier-changed", r"It holds for some $x$.", ["It holds for every $x$."]),
        ("quantifier-changed", r"Every ideal is $\forall x$.",
         [r"Some ideal is $\forall x$.", r"Every ideal is $\exists x$."]),
        ("quantifier-changed", r"for all but finitely many, almost every, $\text{for all}$", []),
        ("notion-exchanged", "an injective map", ["a surjective map"]),
        ("notion-exchanged", "A surjective map", ["An injective map"]),
        ("notion-exchanged", "Injective maps", ["Surjective maps"]),
        ("notion-exchanged", "an open\nsubset", ["a closed subset"]),
        ("notion-exchanged", r"the union $A \cup B$", [r"the intersection $A \cup B$", r"the union $A \cap B$"]),
        ("notion-exchanged", r"an intersection of finitely many",
         ["a union of finitely many", "an intersection of infinitely many"]),
        ("notion-exchanged", r"an injective resolution, K-injective $\cupdot$, algebraically closed, opening", []),
        ("hypothesis-changed", "Since $f$ is flat, done.", ["Since $f$ is not flat, done."]),
        ("hypothesis-changed", "Assume that $f, g$ are flat.", ["Assume that $f, g$ are not flat."]),
        ("hypothesis-changed", "Take a nonzero $x$.", ["Take a zero $x$."]),
        ("hypothesis-changed", "A nonempty set.", ["An empty set."]),
        ("hypothesis-changed", "Then $f$ is flat. If $f$ is not flat, so be it. Suppose $x$ is in $A$.", []),
        ("step-dropped", "First. By [ref] it holds. Then done. So last.", ["First. Then done. So last."]),
        ("step-dropped", "Let $x$ be. Thus $y = 1. 2$. $z$ is so by [ref]. End.",
         ["Let $x$ be. $z$ is so by [ref]. End.", "Let $x$ be. Thus $y = 1. 2$. End."]),
        ("step-dropped", "Only. Two.", []),
        ("step-dropped", "Let $x$. We have to show [ref]. Since i.e. Nothing.\n(1) By [ref]. So.\n(2) End.", []),
        ("indices-swapped", "$f_i : U_i \\to V_j$", ["$f_i : U_j \\to V_i$"]),
        ("indices-swapped", r"$x_{ij}$", [r"$x_{ji}$"]),
        ("indices-swapped", r"$H^{n + 1}(X_{i-1})$", [r"$H^{n - 1}(X_{i-1})$", r"$H^{n + 1}(X_{i+1})$"]),
        ("indices-swapped", r"$(-1)^{n+1} x_{n+1}$", [r"$(-1)^{n+1} x_{n-1}$"]),
        ("indices-swapped", r"$\mathcal{F}_i \to G_{12}$", [r"$\mathcal{F}_{12} \to G_i$"]),
        ("indices-swapped", r"$x_1 + x_2$, $A \otimes_R B_i$, $a_i b_i$, $x^{i+10}$, x_i y_j", []),
        ("converse", "If $a$, then $b$.", ["If $b$, then $a$."]),
        ("converse", "Now if it rains then $b$ holds; so.", ["Now if $b$ holds then it rains; so."]),
        ("converse", "(1) implies (2) and $a$ implies that $b$.",
         ["(2) implies (1) and $a$ implies that $b$.", "(1) implies (2) and $b$ implies that $a$."]),
        ("converse", "$a$ implies that $b$ is flat.", []),
        ("converse", r"(1) $\Rightarrow$ (2)", [r"(1) $\Leftarrow$ (2)"]),
        ("converse", "If $a$ then we are done. $a$ if and only if $b$. If $a$, then $b$, i.e. $c$.", []),
    ],
)  # fmt: skip
def test_each_kind_of_mistake_by_hand(kind: str, proof: str, expected: list[str]):
    """All places where it can be made, and none where it would break words, diagrams or commands."""
    assert sorted(all_of(kind, proof)) == sorted(expected)


def test_formulas_are_found_with_dollars_inside_braces():
    """Escaped dollars open nothing; what does not close is prose."""
    text = r"a \$ $x \text{ $y$ }$ b \begin{align*} c \end{align*} \(d\) $$e$$ $open"
    found = [text[start:end] for start, end in find_formula_spans(text)]
    assert found == [r"$x \text{ $y$ }$", r"\begin{align*} c \end{align*}", r"\(d\)", "$$e$$"]
    assert len(mask_formulas(text)) == len(text)


def test_the_same_seed_makes_the_same_mistake():
    """Another seed another one, and None where there is no place."""
    proof = " ".join(f"$a_{number} < {number}$" for number in range(50))
    made = [corrupt(proof, "relation-reversed", seed) for seed in ("0", "0", "1")]
    assert made[0] == made[1] != made[2]
    assert made[0].before == "<" and made[0].after == ">"
    assert corrupt("No formula.", "relation-reversed", "0") is None


def test_a_mistake_that_changes_nothing_is_none():
    """Swapping equal sides gives the same text."""
    assert corrupt("If $a$, then $a$.", "converse", "0") is None


def test_a_copy_is_never_another_document():
    """Blanks and case do not make a difference."""
    rows = {"p": {"_id": "p", "text": "so $a < b$"}, "q": {"_id": "q", "text": "So  $a > b$"}}
    left_out = Counter[str]()
    assert hard_negatives.corrupt_documents(rows, ["p"], 0, left_out) == {"p": []}
    assert left_out["corrupted copies with the text of another document"] == 1


def test_near_statements_are_the_nearest_by_bm25():
    """More shared rare words first, equal scores by id; own proofs, and statements that share nothing, never."""
    texts = {
        "q": "red green",
        "b": "red green",
        "a": "red green",
        "c": "red blue blue",
        "d": "yellow",
        "e": "red green",
    }
    proofs = {name: [f"{name}p"] for name in texts} | {"e": ["qp"]}
    assert hard_negatives.find_nearest_proofs(texts, proofs, ["q"], 9) == {"q": ["ap", "bp", "cp"]}
    assert hard_negatives.find_nearest_proofs(texts, proofs, ["q"], 1) == {"q": ["ap"]}


PROOF = "Since $f$ is flat, $a < b$. Hence $U \\subset V$ by [ref]. It holds for all $x$. If $x$, then $y$."
CARD = (
    'name = "tiny-qa"\ntitle = "Tiny"\ntask = "Question-Answer Retrieval"\ninstruction = "Find."\nlicence = "CC0-1.0"\n'
    + ('source = "nowhere"\nrevision = "r1"\npaper = "Stacks"\n')
)


@pytest.fixture
def tiny(make_folder: Callable[..., Path]) -> Path:
    """Three statements with proofs, the third of another split, and a proof of nothing."""
    corpus = [
        {"_id": "s1-proof", "title": "", "text": PROOF, "metadata": {"order": 1}},
        {"_id": "s2-proof", "title": "T", "text": "Trivial."},
        {"_id": "s3-proof", "title": "", "text": "So $c < d$."},
        {"_id": "s4-proof", "title": "", "text": "Far away."},
    ]
    statements = {"s1": "flat maps are open", "s2": "flat maps exist", "s3": "all flat maps are open"}
    queries = [{"_id": name, "text": text} for name, text in statements.items()]
    folder = make_folder(corpus, queries, "s1\ts1-proof\t1\ns2\ts2-proof\t1\n", CARD, "tiny-qa")
    (folder / "qrels" / "train.tsv").write_text("query-id\tcorpus-id\tscore\ns3\ts3-proof\t1\n")
    return folder


@pytest.fixture
def made(tiny: Path, tmp_path: Path) -> Path:
    """The folder with both hard collections."""
    build(tiny, tmp_path / "out", near=2)
    return tmp_path / "out"


def test_copies_are_judged_0_and_say_what_was_changed(made: Path):
    """Each differs from its original, which stays; queries say how many negatives of which kind they got."""
    corpus = rows(made / "tiny-qa-hard" / "corpus.jsonl")
    copies = {name: row for name, row in corpus.items() if "~" in name}
    kinds = {"relation-reversed", "quantifier-changed", "hypothesis-changed", "step-dropped", "converse"}
    assert set(copies) == {f"s1-proof~{kind}" for kind in kinds}
    for name, row in copies.items():
        assert row["text"].split() != PROOF.split() and row["metadata"]["of"] == "s1-proof"
        assert row["metadata"]["corrupted"] == name.split("~")[1] and row["metadata"]["order"] == 1
        assert row["metadata"]["after"] in row["text"] and row["metadata"]["before"] in PROOF
    found = load_folder(made / "tiny-qa-hard")
    zero = found.qrels[found.qrels.relevance == 0]
    assert set(zero.doc_id) == set(copies) and set(zero.query_id) == {"s1"}
    assert len(found.corpus) == 9 and not found.candidates.rules
    queries = rows(made / "tiny-qa-hard" / "queries.jsonl")
    assert queries["s1"]["metadata"] == {
        "negatives": dict.fromkeys(sorted(kinds | {"near"}), 1) | {"near": 2},
        "near": ["s3-proof", "s2-proof"],
    }
    assert queries["s2"]["metadata"]["negatives"] == {"near": 2} and "s3" not in queries
    assert corpus["s3-proof"]["metadata"] == {"near_to": ["s1", "s2"]}


def test_a_pool_holds_the_proof_its_copies_and_near_proofs(made: Path):
    """And nothing else can be returned."""
    found = load_folder(made / "tiny-qa-hard-pool")
    assert found.candidates.names == ["candidates"]
    allowed = [set(found.doc_ids[found.candidates.allowed([place])[0]]) for place in (0, 1)]
    copies = {name for name in found.doc_ids if "~" in name}
    assert set(found.doc_ids) == allowed[0]
    assert allowed == [{"s1-proof", "s2-proof", "s3-proof", *copies}, {"s1-proof", "s2-proof", "s3-proof"}]
    assert found.qrels[found.qrels.relevance == 1].doc_id.tolist() == ["s1-proof", "s2-proof"]


def test_the_card_says_where_it_comes_from_and_what_is_in_it(made: Path):
    """Source, licence and revision of the original; not the name of the paper's collection."""
    found = card(made / "tiny-qa-hard-pool")
    assert (found["source"], found["licence"], found["revision"]) == ("nowhere", "CC0-1.0", "r1")
    assert found["command"] == "mirblab build hard --from tiny-qa --set near=2" and "paper" not in found
    assert found["instruction"] == "Find." and found["negatives"]["near"] == 4 and found["negatives"]["converse"] == 1
    left_out = found["counts"]["left_out"]
    assert left_out["queries without a corrupted copy of their proof"] == 1
    assert left_out["proofs without a place for a mistake of the kind notion-exchanged"] == 2
    assert left_out["queries of other splits"] == 1


def test_the_same_seed_gives_the_same_bytes(tiny: Path, made: Path, tmp_path: Path):
    """By name and by folder alike; another seed draws other places."""
    first = content(made)
    shutil.copytree(tiny, paths.data() / "tiny-qa")
    try:
        build("tiny-qa", tmp_path / "named", near=2)
    finally:
        shutil.rmtree(paths.data() / "tiny-qa")
    assert content(tmp_path / "named") == first
    seeds = [build(tiny, tmp_path / f"seed{seed}", seed=seed)[0] for seed in range(1, 5)]
    assert len({(folder / "corpus.jsonl").read_bytes() for folder in seeds}) > 1


def test_a_miniature_collection_can_be_made_hard(tmp_path: Path):
    """Every query's own proof stays among its candidates, with wrong ones."""
    folders = build("mini-proofwiki", tmp_path)
    assert [folder.name for folder in folders] == ["mini-proofwiki-hard", "mini-proofwiki-hard-pool"]
    found = load_folder(folders[1])
    texts = {" ".join(text.casefold().split()) for text in found.texts}
    assert len(texts) == len(found.texts)
    for row in rows(folders[1] / "queries.jsonl").values():
        assert sum(row["metadata"]["negatives"].values()) >= 5
    gold = found.qrels[found.qrels.relevance > 0]
    places = [found.query_ids.get_indexer(gold.query_id), found.doc_ids.get_indexer(gold.doc_id)]
    assert found.candidates.permits(*places).all()


def test_what_a_query_may_not_return_it_may_not_return_when_it_is_hard(tiny: Path, tmp_path: Path):
    """By rules and lists of the origin, which hold for the copies of a proof as for the proof; groups stay, too."""
    (tiny / "card.toml").write_text(f'{CARD}candidates = ["not-self", "judged"]\nlanguage = "Lean"\n')
    (tiny / "qrels" / "test.tsv").write_text("q\tc\ts\n".replace("q\tc\ts", "query-id\tcorpus-id\tscore")
                                             + "s1\ts1-proof\t1\ns1\ts3-proof\t0\ns2\ts2-proof\t1\n")  # fmt: skip
    (tiny / "excluded_ids.jsonl").write_text('{"query-id": "s1", "excluded-ids": ["s4-proof"]}\n')
    (tiny / "groups.tsv").write_text("query-id\tgroup\tcorpus-id\ns1\t1\ts1-proof\ns3\t1\ts3-proof\n")
    for found in map(load_folder, build(tiny, tmp_path / "out")):
        assert found.candidates.names[-2:] == ["not-self", "judged"] and found.card.language == "Lean"
        assert "excluded_ids" in found.candidates.names
        assert found.groups is not None and found.groups.doc_id.tolist() == ["s1-proof"]
        allowed = found.candidates.allowed(found.query_ids.get_indexer(["s1"]))[0]
        copies = {name for name in found.doc_ids if "~" in name}
        assert copies and set(found.doc_ids[allowed]) == {"s1-proof", "s3-proof", *copies}
    lists = {"s1": ["s1-proof"], "s2": ["s2-proof", "s3-proof"], "s3": ["s3-proof"]}
    write_lists(tiny, {"candidates": lists})
    (tiny / "card.toml").write_text(CARD)
    for found in map(load_folder, build(tiny, tmp_path / "listed")):
        allowed = [set(found.doc_ids[row]) for row in found.candidates.allowed(np.arange(2))]
        assert allowed == [{"s1-proof", *copies}, {"s2-proof", "s3-proof"}]
    assert rows(tmp_path / "listed/tiny-qa-hard-pool/queries.jsonl")["s1"]["metadata"]["near"] == []


def test_a_rule_by_which_no_copy_could_be_returned_is_refused(make_folder: Callable[..., Path], tmp_path: Path):
    corpus = [{"_id": "p", "text": PROOF, "tags": ["a"]}]
    queries = [{"_id": "s", "text": "flat maps are open", "tags": ["a"]}]
    folder = make_folder(corpus, queries, "s\tp\t1\n", f'{CARD}candidates = "tags"\n', "tiny-qa")
    with pytest.raises(MirblabError, match="the card of tiny-qa says candidates = 'tags', by which no wrong copy"):
        build(folder, tmp_path / "out")


def test_what_cannot_be_made_hard_is_refused(tiny: Path, tmp_path: Path):
    """An unknown name, no relevant document, a negative number."""
    with pytest.raises(MirblabError, match="'nothing-qa' is neither a collection that is built nor the folder of one"):
        build("nothing-qa", tmp_path / "out")
    with pytest.raises(MirblabError, match="near must be 0 or more, found -1"):
        build(tiny, tmp_path / "out", near=-1)
    (tiny / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\ns1\ts1-proof\t0\n")
    with pytest.raises(MirblabError, match="no query of test has a relevant document"):
        build(tiny, tmp_path / "out")
    assert not (tmp_path / "out").exists()
