"""How well vectors tell fields, against how well they find partners: cases whose answer is known."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from mirblab.analysis.projection import separability_table
from mirblab.core.errors import MirblabError

N_PAIRS = 24


def statements(n_fields: int = 2) -> pd.DataFrame:
    """Pairs whose sides are of two fields that follow each other."""
    rows = []
    for pair in range(N_PAIRS):
        for side in (0, 1):
            rows.append((f"{pair:02d}-{side}", f"{pair:02d}", f"field {(2 * pair + side) % n_fields}", pair))
    return pd.DataFrame(rows, columns=["id", "class_id", "field", "pair"])


def noise(size: float = 0.01, rows: int = 2 * N_PAIRS, seed: int = 3) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(rows, 40)) * size


def by_field(points: pd.DataFrame) -> np.ndarray:
    """Vectors that know the field and nothing else."""
    return np.eye(40)[pd.factorize(points.field)[0]] + noise(rows=len(points))


def by_meaning(points: pd.DataFrame) -> np.ndarray:
    """Vectors that know the pair and nothing else."""
    return np.eye(40)[points.pair] + noise()


@pytest.mark.parametrize("n_fields", [2, 4, 6])
def test_the_two_ends_of_the_scale(n_fields: int):
    """Field alone leads by about 1, meaning alone by about -1, for two fields and for many."""
    points = statements(n_fields)
    found = separability_table(points, {"field": by_field(points), "meaning": by_meaning(points)}, k=1)
    assert found.model.tolist() == ["field", "meaning"]
    assert found.fields.tolist() == [n_fields] * 2 and found.pairs.tolist() == [N_PAIRS] * 2
    assert found.probe[0] == 1 and found.own_field[0] == 1 and found.partner[0] == 0
    assert found.partner[1] == 1 and found.own_field[1] == 0 and found.probe[1] < 1 / n_fields + 0.2
    assert found.lead[0] == pytest.approx(1 + found.partner_chance[0] / (1 - found.partner_chance[0]))
    assert found.lead[1] < -0.7
    assert (found.low <= found.lead).all() and (found.lead <= found.high).all()


def test_chances_by_hand():
    """48 statements of two fields and 4 distractors of the first: of 51 others, 1 is the partner."""
    points = statements()
    alone = pd.DataFrame({"id": [f"x{n}" for n in range(4)], "class_id": "", "field": "field 0", "pair": 0})
    points = pd.concat([points, alone], ignore_index=True)
    row = separability_table(points, {"m": noise(1.0, 52)}, k=5).iloc[0]
    assert row.statements == 48 and row.partner_chance == pytest.approx(1 / 51)
    assert row.own_field_chance == pytest.approx((27 / 51 + 23 / 51) / 2)


def test_a_pair_is_never_on_both_sides_of_a_fold():
    """Pairs within a field: who learnt a statement's partner would know its field; who did not must guess."""
    points = statements()
    points["field"] = [f"field {pair % 2}" for pair in points.pair]
    assert separability_table(points, {"m": by_meaning(points)}).probe[0] < 0.7


def test_a_rare_field_counts_as_much_as_a_frequent_one():
    """Balanced accuracy: 40 of 48 statements are told for certain, and two rare fields not from each other."""
    points = statements()
    points["field"] = np.where(points.pair < 20, "frequent", points.field)
    known = np.eye(40)[(points.pair >= 20).astype(int)]
    found = separability_table(points, {f"seed {seed}": known + noise(seed=seed) for seed in range(8)}).probe.mean()
    assert found == pytest.approx((1 + 1 / 2 + 1 / 2) / 3, abs=0.12)  # a plain share would be at least 40 / 48


def test_the_order_of_rows_and_of_models_changes_nothing():
    """Rows are sorted by id for the folds, distractors among them, and models share the drawn pairs."""
    points = statements(4)
    alone = points.tail(12).assign(id=[f"x{n:02d}" for n in range(12)], class_id="")
    points = pd.concat([points, alone], ignore_index=True)
    spaces = {"a": noise(1.0, 60), "b": by_field(points) + noise(0.3, 60)}
    for seed in range(3):
        shuffled = np.random.default_rng(seed).permutation(len(points))
        one = separability_table(points, spaces, k=5)
        other = {name: spaces[name][shuffled] for name in "ba"}
        two = separability_table(points.iloc[shuffled], other, k=5)
        pd.testing.assert_frame_equal(one, two.iloc[::-1].reset_index(drop=True))


def test_the_interval_is_that_of_the_bootstrap_over_pairs():
    """The lead is a mean over pairs: with all pairs alike there is no width; a lower level is narrower."""
    points = statements()
    alike = separability_table(points, {"m": by_field(points)}).iloc[0]
    assert [alike.low, alike.high] == pytest.approx([alike.lead] * 2)
    vectors = {"m": noise(1.0)}
    found = separability_table(points, vectors).iloc[0]
    assert found.high - found.low > 0.1
    narrow = separability_table(points, vectors, level=0.5).iloc[0]
    assert narrow.high - narrow.low < found.high - found.low


def test_tags_come_before_fields_where_every_statement_has_one():
    """Sides of a collection are a makeshift for its fields."""
    points = statements(2)
    tagged = points.assign(tag=[f"tag {pair % 3}" for pair in points.pair])
    assert separability_table(tagged, {"m": noise(1.0)}).fields[0] == 3
    tagged.loc[0, "tag"] = ""
    assert separability_table(tagged, {"m": noise(1.0)}).fields[0] == 2


def test_a_field_of_two_statements_is_enough():
    """Each of the two folds learns from one of them and is tested on the other."""
    points = statements()
    points["field"] = ["rare", "common"] + ["common", "rare"] + ["common"] * (len(points) - 4)
    row = separability_table(points, {"m": by_field(points)}, k=1).iloc[0]
    assert row.fields == 2 and row.probe == pytest.approx(1)


def test_what_cannot_be_measured_is_refused():
    """One field, a field of one statement, and vectors that do not fit."""
    points = statements()
    with pytest.raises(MirblabError, match="0 fields have statements with a partner"):
        separability_table(points.assign(class_id=points.id), {"m": noise()})
    with pytest.raises(MirblabError, match="1 field has statements with a partner"):
        separability_table(points.assign(field="all"), {"m": noise()})
    with pytest.raises(MirblabError, match="field rare has one statement only"):
        separability_table(points.assign(field=["rare", *points.field[1:]]), {"m": noise()})
    with pytest.raises(MirblabError, match="m has 47 vectors for 48 statements"):
        separability_table(points, {"m": noise(rows=47)})
