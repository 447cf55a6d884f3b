"""The bundled cards and pairs are whole, and what would be wrong with one is seen."""

from __future__ import annotations

import shutil
from collections import Counter

import numpy as np
import pytest
from card_checks import find_card_problems, find_pair_problems

from mirblab.core import paths
from mirblab.core.errors import MirblabError
from mirblab.data.near_duplicates import near_pairs
from mirblab.sources import catalogue, mini


def test_there_are_enough_and_nothing_is_wrong_with_them():
    """At least 200 cards in at least 18 fields, and fifteen pairs for each of MELD's nine pairs of fields."""
    found, pairs = mini.read_cards(), mini.read_groups("pairs")
    assert len(found) >= 200 and len({card["field"] for card in found}) >= 18
    assert len(pairs) == 9
    assert find_card_problems(found) == []
    assert find_pair_problems(pairs) == []


def test_a_file_that_is_not_named_as_its_id_is_refused(tmp_path):
    """And one that is no TOML."""
    path = tmp_path / "one.toml"
    path.write_text('id = "two"', encoding="utf-8")
    with pytest.raises(MirblabError, match="the id is 'two'; it must be the file's name, 'one'"):
        mini.read_card_file(path)
    path.write_text("id = ", encoding="utf-8")
    with pytest.raises(MirblabError, match="not valid TOML"):
        mini.read_card_file(path)


@pytest.mark.parametrize(
    ("kind", "changed", "message"),
    [
        ("cards", ("[[answers]]", "[[enswers]]"), "'enswers' is not known"),
        ("cards", ("text =", "tezt ="), r"'answers\.text' is missing"),
        ("cards", ("grade = 3", "grade = '3'"), r"'answers\.grade' must be of the type int, found '3'"),
        ("pairs", ("domains =", "demains ="), "'domains' is missing"),
    ],
)
def test_a_bundled_card_with_a_key_that_is_missing_or_not_known_is_named(tmp_path, monkeypatch, kind, changed, message):
    """It ended in a KeyError, or a miniature lost an answer without a word."""
    folder = shutil.copytree(paths.bundled_path("data", "mini", kind), tmp_path / kind)
    path = sorted(folder.glob("*.toml"))[0]
    path.write_text(path.read_text("utf-8").replace(*changed, 1), encoding="utf-8")
    monkeypatch.setattr(paths, "bundled_path", lambda *parts: tmp_path / parts[-1])
    with pytest.raises(MirblabError, match=f"{path.name}: {message}; mend it, or restore the file"):
        mini.read_cards() if kind == "cards" else mini.read_groups(kind)


def test_every_pair_is_judged_both_ways():
    """And no statement without a partner is asked for."""
    c = catalogue.load("mini-pairs")
    assert len(c.queries) == len(c.qrels) == 2 * sum(len(group["pair"]) for group in mini.read_groups("pairs"))
    fields = Counter(tag for row in c.queries.tags for tag in row)
    assert len(fields) == 18 and c.card.candidates == ["not-self"]


def test_bridges_share_no_field_and_no_wording_with_the_pairs_that_are_measured():
    """What is trained on has other fields, and nothing of it is nearly a statement of mini-pairs."""
    measured, taught = mini.read_groups("pairs"), mini.read_groups("bridges")
    assert find_pair_problems(taught) == [] and len(taught) == 16
    assert not {field for group in measured for field in group["domains"]} & {
        field for group in taught for field in group["domains"]
    }
    one, other = (
        [row[side] for group in groups for row in group["pair"] for side in ("first", "second")]
        for groups in (measured, taught)
    )
    found = near_pairs([*one, *other], 0.25, asked=np.arange(len(one + other)) < len(one))
    crossing = (found.left < len(one)) & (found.right >= len(one))
    assert not crossing.any(), [(one[a], other[b - len(one)]) for a, b in zip(found.left, found.right, strict=True)]
    train, test = (catalogue.load("mini-bridges", split) for split in ("train", "test"))
    assert len(train.qrels) == len(test.qrels) == len(other)


def test_a_build_of_the_miniatures_that_fails_leaves_none(home, monkeypatch):
    """A half without its card would be read with other rules, and found instead of the bundled one."""
    written, whole = [], mini.write_collection
    monkeypatch.setattr(
        mini, "write_collection", lambda *given: written.append(whole(*given)) if len(written) < 2 else 1 / 0
    )
    with pytest.raises(ZeroDivisionError):
        catalogue.build("mini")
    assert len(written) == 2 and list(paths.data().iterdir()) == []
