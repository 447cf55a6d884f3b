"""The published file of pairs becomes a collection, and what is not understood is refused."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hub_server import Hub, run_in_process

from mirblab.core.errors import MirblabError
from mirblab.data.collection import load_folder
from mirblab.sources import catalogue, meld


def _pair(number: int, first: tuple[str, str], second: tuple[str, str]) -> dict[str, Any]:
    entries = [{"framing": framing, "statement": statement} for framing, statement in (first, second)]
    return {"id": number, "domain": "algebra", "topic": "x", "entry_1": entries[0], "entry_2": entries[1]}


CONTENT = {
    "pairs": [
        _pair(1, ("vector spaces", "Every space has a $basis$."), ("module theory", "A module over a field is free.")),
        _pair(2, ("vector spaces", "A map has a rank."), ("module theory", "A morphism has a\nlength of image.")),
        _pair(31, ("representation theory", "Characters, as they “are”."), ("Fourier analysis", "Two transforms. ")),
    ],
    "distractors": {"module theory": ["Some modules are not free.", "None is."], "Fourier analysis": ["It sums."]},
}
DOCS = {
    "vector-spaces--module-theory--001-1": ("Every space has a $basis$.", "vector spaces"),
    "vector-spaces--module-theory--001-2": ("A module over a field is free.", "module theory"),
    "vector-spaces--module-theory--002-1": ("A map has a rank.", "vector spaces"),
    "vector-spaces--module-theory--002-2": ("A morphism has a\nlength of image.", "module theory"),
    "representation-theory--fourier-analysis--031-1": ("Characters, as they “are”.", "representation theory"),
    "representation-theory--fourier-analysis--031-2": ("Two transforms.", "Fourier analysis"),
    "module-theory--d01": ("Some modules are not free.", "module theory"),
    "module-theory--d02": ("None is.", "module theory"),
    "fourier-analysis--d01": ("It sums.", "Fourier analysis"),
}
PARTNERS = {name: name[:-1] + {"1": "2", "2": "1"}[name[-1]] for name in DOCS if "--d0" not in name}


pytestmark = pytest.mark.usefixtures("home")


def put(folder: Path, content: Any) -> None:
    """Write the published file, and what else lies beside it there."""
    folder.mkdir()
    (folder / meld.FILE_NAME).write_text(json.dumps(content, indent=1), "utf-8")
    (folder / "distractors_all.json").write_text("{}", "utf-8")
    (folder / "README.md").write_text("about", "utf-8")


@pytest.mark.parametrize("given", ["copy", f"copy/{meld.FILE_NAME}"])
def test_the_published_file_becomes_a_collection(given: str, tmp_path: Path) -> None:
    """Statements are query and document under one id with their field as tag; distractors are documents."""
    put(tmp_path / "copy", CONTENT)
    [folder] = catalogue.build("meld", str(tmp_path / given))
    found = catalogue.load("meld")
    assert folder.name == "meld"
    rows = zip(found.doc_ids, found.texts, found.corpus["tags"], strict=True)
    assert {name: (text, tags[0]) for name, text, tags in rows} == DOCS
    assert dict(zip(found.query_ids, found.query_texts, strict=True)) == {name: DOCS[name][0] for name in PARTNERS}
    assert dict(zip(found.qrels.query_id, found.qrels.doc_id, strict=True)) == PARTNERS
    assert found.candidates.names == ["not-self"] and set(found.qrels.relevance) == {1}


def test_it_has_the_shape_of_the_bundled_pairs(tmp_path: Path) -> None:
    """The same columns, the same rule, the same ends of ids."""
    put(tmp_path / "copy", CONTENT)
    catalogue.build("meld", str(tmp_path / "copy"))
    published, bundled = catalogue.load("meld"), catalogue.load("mini-pairs")
    assert list(published.corpus) == list(bundled.corpus) and list(published.queries) == list(bundled.queries)
    assert published.card.task == bundled.card.task and published.card.instruction == bundled.card.instruction
    assert all(re.search(r"-[12]$", name) for found in (published, bundled) for name in found.query_ids)


def test_the_card_says_how_it_differs_from_the_published_set(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    """With the counts of both, the command without a path, and the licence that the set is published under."""
    put(tmp_path / "copy", CONTENT)
    [folder] = catalogue.build("meld", str(tmp_path / "copy"))
    card = catalogue.load("meld").card
    differs = f"differs from the paper: 3 pairs of 2 pairs of fields, 3 distractors instead of {meld.PUBLISHED}"
    assert card.extra["published"] == differs and differs in capsys.readouterr().out
    assert (card.extra["command"], card.licence) == ("mirblab build meld --from copy", "Apache-2.0")
    assert str(tmp_path) not in (folder / "card.toml").read_text("utf-8")


def test_a_set_of_the_published_size_is_said_to_be_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the number of pairs, of pairs of fields and of distractors."""
    monkeypatch.setattr(meld, "PUBLISHED", "3 pairs of 2 pairs of fields, 3 distractors")
    put(tmp_path / "copy", CONTENT)
    catalogue.build("meld", str(tmp_path / "copy"))
    assert catalogue.load("meld").card.extra["published"] == f"as published: {meld.PUBLISHED}"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda top: top.pop("pairs"), r"pairs_2\.json: no 'pairs'; found the keys distractors"),
        (lambda top: top.pop("distractors"), r"pairs_2\.json: no 'distractors'; found the keys pairs"),
        (lambda top: top.update(distractors=[]), r"pairs_2\.json: 'distractors' must be of type dict, found"),
        (lambda top: top["distractors"].update(x=[7]), r"distractors: 'x' must be a list of texts, found '7' in it"),
        (lambda top: top["pairs"].append("x"), r"pair 4: expected a JSON object, found 'x'"),
        (lambda top: top["pairs"][1].pop("entry_2"), r"pair 2, entry_2: expected a JSON object, found 'None'"),
        (lambda top: top["pairs"][1]["entry_1"].pop("framing"), r"pair 2: no 'framing'; found the keys statement"),
        (lambda top: top["pairs"][1]["entry_1"].update(statement=3), r"'statement' must be of type str, found '3'"),
        (lambda top: top["pairs"][1].update(id="one"), r"pair 2: 'id' must be of type int, found 'one'"),
        (lambda top: top["pairs"][1].update(id=0), r"pair 2: 'id' must be at least 1, found '0'"),
        (lambda top: top["pairs"][1]["entry_2"].update(framing=" "), r"pair 2, entry_2: 'framing' must not be empty"),
        (lambda top: top["pairs"][1]["entry_1"].update(statement=""), r"pair 2, entry_1: 'statement' must not be em"),
        (lambda top: top["pairs"][1].update(id=1), r"duplicate _id 'vector-spaces--module-theory--001-1'"),
        (lambda top: top["pairs"].clear(), r"would have no query with a judgement"),
    ],
)  # fmt: skip
def test_what_is_amiss_is_named_with_its_pair(
    change: Callable[[dict[str, Any]], object], message: str, home: Path, tmp_path: Path
) -> None:
    """And nothing is written."""
    content = copy.deepcopy(CONTENT)
    change(content)
    put(tmp_path / "copy", content)
    with pytest.raises(MirblabError, match=message):
        catalogue.build("meld", str(tmp_path / "copy"))
    assert not (home / "data" / "meld").exists()


def test_other_files_and_options_are_refused(tmp_path: Path) -> None:
    """With what was found, and what is taken."""
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy" / "pairs.csv").write_text("x")
    with pytest.raises(FileNotFoundError, match=r"no adversarial_theorem_pairs_2\.json in .*; found pairs\.csv"):
        catalogue.build("meld", str(tmp_path / "copy"))
    with pytest.raises(MirblabError, match="'meld' cannot be built with --set first=...; it takes --set revision="):
        catalogue.build("meld", str(tmp_path / "copy"), first="u")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Hub]:
    """Return a server that has the set."""
    put(tmp_path / "served", CONTENT)
    running = Hub({meld.HUB: tmp_path / "served"}, {meld.HUB: "a" * 40}, "mit")
    yield running
    running.close()


def test_the_hub_is_asked_for_a_commit_that_the_user_names(server: Hub, home: Path, tmp_path: Path) -> None:
    """The card has the commit and the licence; without a commit, or with both origins, it is an error."""
    command = ["-m", "mirblab", "build", "meld", "--set"]
    done = run_in_process(home, server.url, [*command, f"revision={'a' * 40}"])
    assert done.returncode == 0, done.stderr
    found = load_folder(home / "data" / "meld")
    assert set(found.doc_ids) == set(DOCS)
    assert (found.card.revision, found.card.licence) == ("a" * 40, "mit")
    assert found.card.extra["command"] == f"mirblab build meld --set revision={'a' * 40}"
    refused = run_in_process(home, server.url, [*command, f"revision={'b' * 40}"])
    assert refused.returncode == 2 and "the Hub refuses uw-math-ai/MELD-dataset at revision bbbb" in refused.stderr
    with pytest.raises(MirblabError, match=r"give a copy of https.*--set revision=COMMIT; found ''"):
        catalogue.build("meld")
    with pytest.raises(MirblabError, match="leave one of them out"):
        catalogue.build("meld", str(tmp_path / "served"), revision="a" * 40)
