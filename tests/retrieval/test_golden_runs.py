"""Runs, tokens and miniature collections stay what they were, or the number of their version is raised.

`python tests/retrieval/test_golden_runs.py` writes the golden file anew, after a number was raised.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mirblab as lab
from mirblab.formula import index
from mirblab.formula.latex.parser import parse_latex
from mirblab.formula.operators import operator_tree
from mirblab.formula.tokens import build_forest, layout_tokens, operation_tokens
from mirblab.retrieval import systems
from mirblab.sources import mini

GOLDEN = Path(__file__).parent / "golden_runs.json"
SYSTEMS = {
    "bm25": "mini-qa", "bm25-mirb": "mini-qa", "bm25-okapi": "mini-qa", "chargrams": "mini-qa", "ngram": "mini-wfb",
    "prose": "mini-qa", "minilm": "mini-qa", "minilm-late": "mini-hol", "structure": "mini-wfb", "mixed": "mini-qa",
    "approach0": "mini-wfb", "bm25+minilm": "mini-qa", "structure+minilm+bm25": "mini-qa", "bm25>maxsim@10": "mini-hol",
    "bm25q": "mini-qa", "bm25~rm3": "mini-qa", "minilm~rocchio": "mini-qa",
}  # fmt: skip
FORMULAS = (r"x^2 + y^2 = z^2", r"\frac{a}{b} \le \sqrt[3]{c}", r"\int_0^1 f(x)\,dx", r"\binom{n}{k}")


def ranking(name: str, collection: str) -> dict[str, list[tuple[str, float]]]:
    """Return the first four documents of the first eight queries with their scores."""
    run = lab.system(name).search(lab.load(collection), 50)
    run = run.astype({"query_id": str, "doc_id": str})
    return {
        query: [(doc, round(float(score), 5)) for doc, score in zip(part.doc_id[:4], part.score[:4], strict=True)]
        for query, part in list(run.groupby("query_id", sort=True))[:8]
    }


def token_digest() -> str:
    """Return a digest of the tokens of some formulas."""
    trees = [parse_latex(latex) for latex in FORMULAS]
    digest = hashlib.blake2b(digest_size=8)
    for made in (
        layout_tokens(build_forest(trees)),
        operation_tokens(build_forest([operator_tree(tree) for tree in trees])),
    ):
        for array in (made.keys.view(np.int64), made.trees, made.firsts, made.seconds):
            digest.update(np.ascontiguousarray(array, np.int64).tobytes())
    return digest.hexdigest()


def golden() -> dict[str, Any]:
    """Return what the golden file should hold."""
    return {
        "versions": systems.VERSIONS,
        "runs": {name: ranking(name, collection) for name, collection in SYSTEMS.items()},
        "tokens": [index.VERSION, token_digest()],
        "collections": [mini.VERSION, {name: lab.load(name).fingerprint for name in sorted(mini.COLLECTIONS)}],
    }


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_kind_of_run_changes_only_with_its_version(name: str):
    """Else a stored run would answer for code that gives another one."""
    stored = json.loads(GOLDEN.read_text("utf-8"))
    kind = lab.system(name).settings["kind"]
    advice = (
        f"runs of kind '{kind}' have changed: raise RUNS_VERSION in its module, "
        "and run python tests/retrieval/test_golden_runs.py"
    )
    assert stored["versions"][kind] == systems.VERSIONS[kind], advice
    found = ranking(name, SYSTEMS[name])
    assert list(found) == list(stored["runs"][name]), advice
    for query, documents in found.items():
        expected = stored["runs"][name][query]
        assert [score for _, score in documents] == pytest.approx([score for _, score in expected], abs=2e-4), advice
        apart = all(a[1] - b[1] > 1e-3 for a, b in zip(expected, expected[1:], strict=False))
        assert not apart or [doc for doc, _ in documents] == [doc for doc, _ in expected], advice


def test_tokens_and_collections_change_only_with_their_version():
    """An index, and a miniature on disk, are made anew only then."""
    stored = json.loads(GOLDEN.read_text("utf-8"))
    assert stored["tokens"] == [index.VERSION, token_digest()]
    assert stored["collections"] == [mini.VERSION, {name: lab.load(name).fingerprint for name in mini.COLLECTIONS}]


def test_every_kind_of_system_has_a_version():
    """And each is tried above, but for imported runs, which are files, and kinds whose models are not bundled."""
    assert set(systems.VERSIONS) == set(systems._SEARCHES)
    tried = {lab.system(name).settings["kind"] for name in SYSTEMS}
    assert tried == set(systems.VERSIONS) - {"imported", "rewrite", "sparse"}


if __name__ == "__main__":
    GOLDEN.write_text(json.dumps(golden(), indent=1, ensure_ascii=False) + "\n", "utf-8")
