"""MAPL: pairs of state and premise become a collection whose test states use premises that training never shows."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from built_collections import card, content, judged, rows
from hypothesis import given, settings
from hypothesis import strategies as st

from mirblab.core.errors import MirblabError
from mirblab.data.collection import load_folder
from mirblab.sources import mapl
from mirblab.sources.shared.builder import split_by_novel_premises


def pair(goal: str, name: str, **more: object) -> dict[str, object]:
    return {
        "statement": "lemma x: a",
        "state": f"proof (prove)\n goal (1 subgoal):\n  1. {goal}",
        "step": "by simp",
        "premise_name": name,
        "premise_statement": f' {name}: shows "{name}"',
    } | more


PAIRS = [pair(f"s{n}", "common") for n in range(8)] + [pair(f"s{n}", f"own{n}") for n in (0, 3, 5)]


def write(path: Path, pairs: list[dict[str, object]]) -> Path:
    """Write pairs as JSON lines, as an array (.json), or as parquet, by the ending."""
    if path.suffix == ".parquet":
        import pandas as pd

        pd.DataFrame(pairs).to_parquet(path)
    elif path.suffix == ".json":
        path.write_text(json.dumps(pairs, indent=2))
    else:
        text = "".join(json.dumps(row) + "\n" for row in pairs)
        path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


def test_pairs_become_queries_and_documents(tmp_path: Path):
    """Each test state uses a premise that no training state uses; premises keep their printed statement."""
    (folder,) = mapl.build(write(tmp_path / "full_dataset.jsonl", PAIRS), tmp_path / "out", test=2, dev=1)
    found = {split: judged(folder, split) for split in ("test", "dev", "train")}
    assert {split: len(queries) for split, queries in found.items()} == {"test": 2, "dev": 1, "train": 5}
    seen = set().union(*found["train"].values())
    assert all(docs - seen for split in ("test", "dev") for docs in found[split].values())
    corpus, queries = rows(folder / "corpus.jsonl"), rows(folder / "queries.jsonl")
    assert corpus["premise-1"] == {
        "_id": "premise-1",
        "title": "",
        "text": 'common: shows "common"',
        "metadata": {"name": "common"},
    }
    assert list(corpus) == ["premise-1", "premise-2", "premise-3", "premise-4"]
    assert queries["state-1"] == {"_id": "state-1", "text": "proof (prove)\n goal (1 subgoal):\n  1. s0"}
    assert found["train"]["state-2"] == {"premise-1"}
    loaded = load_folder(folder)
    assert loaded.card.instruction == (
        "Given an Isabelle proof state, retrieve the declarations that are useful for proving it."
    )
    assert loaded.card.paper == "MAPL" and not loaded.card.candidates


@pytest.mark.parametrize("name", ["full_dataset.json", "full_dataset.jsonl.gz", "part-0.parquet"])
def test_every_form_of_the_file_gives_the_same(tmp_path: Path, name: str):
    """Array, lines, gzipped lines and parquet; the trajectories in raw_data beside them are not read."""
    (plain,) = mapl.build(write(tmp_path / "full_dataset.jsonl", PAIRS), tmp_path / "plain", test=2, dev=1)
    given = tmp_path / "raw_data" / "other"
    (given / "raw_data").mkdir(parents=True)
    write(given / name, PAIRS)
    write(given / "raw_data" / "all_data.json", [{"statement": "x", "transitions": []}])
    (folder,) = mapl.build(given, tmp_path / "out", test=2, dev=1)
    for part in ("corpus.jsonl", "queries.jsonl", "qrels/test.tsv", "qrels/train.tsv"):
        assert (folder / part).read_bytes() == (plain / part).read_bytes()


def test_what_repeats_or_is_missing_is_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """Blanks do not tell texts apart; a pair without a text is left out; training may be a sample."""
    odd = [
        pair("s0", "common", state="proof (prove) goal (1 subgoal): 1. s0"),
        pair("s0", "common", premise_statement=None),
        pair("s0", "common", state="  "),
    ]
    (folder,) = mapl.build(write(tmp_path / "p.jsonl", PAIRS + odd), tmp_path / "out", test=1, dev=0, train=2)
    about = card(folder)
    assert about["counts"]["left_out"] == {
        "pairs that repeat an earlier one": 1,
        "pairs without a state or a premise statement": 2,
        "training states that were not drawn": 5,
    }
    assert (about["seed"], about["counts"]["queries"]) == (0, 3)
    assert "5  training states that were not drawn" in capsys.readouterr().out
    assert not (folder / "qrels" / "dev.tsv").exists()


def test_the_seed_decides(tmp_path: Path):
    """The same seed gives the same bytes; another one another test state."""
    path = write(tmp_path / "p.jsonl", [pair(f"s{n}", f"own{n}") for n in range(40)])
    first, same, other = (
        content(mapl.build(path, tmp_path / name, test=3, dev=0, seed=seed)[0])
        for name, seed in (("a", 1), ("b", 1), ("c", 2))
    )
    assert first == same and first["qrels/test.tsv"] != other["qrels/test.tsv"]


def test_broken_pairs_are_refused(tmp_path: Path):
    """With file, line and item; also when the states are too few."""
    path = write(tmp_path / "p.jsonl", PAIRS[:2] + [{"state": "x", "premise_name": "y"}])
    with pytest.raises(
        MirblabError, match=r"p.jsonl, line 3, item 3: no 'premise_statement'; found the keys state, pre"
    ):
        mapl.build(path, tmp_path / "out")
    write(path, [pair("s", "n", state=7)])
    with pytest.raises(MirblabError, match=r"line 1, item 1: 'state' must be of type str, found '7'"):
        mapl.build(path, tmp_path / "out")
    write(path, PAIRS)
    with pytest.raises(MirblabError, match=r"\.jsonl?: 8 states cannot give 8,000 of unseen premises"):
        mapl.build(path, tmp_path / "out")
    with pytest.raises(MirblabError, match="test must be at least 1"):
        mapl.build(path, tmp_path / "out", test=0)
    write(path, [pair("s", "n", state="")])
    with pytest.raises(MirblabError, match="no pair of a state and a premise statement"):
        mapl.build(path, tmp_path / "out")
    assert not any((tmp_path / "out").iterdir())


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 12)), min_size=1, max_size=120),
    st.integers(1, 6),
    st.integers(0, 4),
    st.integers(0, 9),
)
def test_each_evaluated_state_uses_an_unseen_premise(pairs: list[tuple[int, int]], test: int, dev: int, seed: int):
    """For any pairs: the parts are disjoint, complete and of the wanted size, and training shows too little."""
    states, premises = (np.array(column) for column in zip(*pairs, strict=True))
    try:
        found = split_by_novel_premises(states, premises, test=test, dev=dev, seed=seed)
    except MirblabError as error:
        assert "ask for fewer test and dev states" in str(error)
        return
    together = [state for part in found.values() for state in part.tolist()]
    assert sorted(together) == sorted({state for state, _ in pairs}) and len(found["train"]) > 0
    assert (len(found["test"]), len(found["dev"])) == (test, dev)
    seen = {premise for state, premise in pairs if state in found["train"]}
    for state in (*found["test"], *found["dev"]):
        assert {premise for other, premise in pairs if other == state} - seen
    again = split_by_novel_premises(states, premises, test=test, dev=dev, seed=seed)
    assert all((found[name] == again[name]).all() for name in found)


def test_the_least_used_premises_are_held_out():
    """As in LeanDojo: of three premises the one that two states use is held out, before the one of five."""
    states = np.array([0, 1, 2, 3, 4, 0, 5, 6, 7, 8, 9, 10])
    premises = np.array([0, 0, 0, 0, 0, 1, 1, 2, 2, 2, 2, 2])
    found = split_by_novel_premises(states, premises, test=2)
    assert found["test"].tolist() == [0, 5] and found["train"].tolist() == [1, 2, 3, 4, 6, 7, 8, 9, 10]
