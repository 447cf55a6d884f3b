"""A map of vectors is stored, and comes with numbers that say how far to trust it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from mirblab.analysis import projection
from mirblab.analysis.projection import map_trustworthiness, nearest_rows, point_trustworthiness
from mirblab.core import paths
from mirblab.core.errors import MirblabError

VECTORS = np.random.default_rng(0).normal(size=(40, 8)).astype(np.float32)
IDS = [f"s{n:02d}" for n in range(40)]
POINTS = pd.DataFrame({
    "id": IDS, "class_id": [f"p{n // 2}" for n in range(36)] + [""] * 4, "field": ["sets", "categories"] * 20,
    "kind": ["pair"] * 36 + ["distractor"] * 4,
})  # fmt: skip
FLAT = np.random.default_rng(1).normal(size=(40, 2))


@pytest.fixture(scope="module")
def maps(tmp_path_factory) -> pd.DataFrame:
    """Maps of two seeds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MIRBLAB_HOME", str(tmp_path_factory.mktemp("home")))
        return projection.seeded_maps(POINTS, VECTORS, seeds=[0, 1], k=5)


def test_the_same_seed_gives_the_same_map_whatever_the_order_of_rows(home):
    """Coordinates are stored; rows are sorted by id before UMAP sees them."""
    one = projection.project(VECTORS, IDS, seed=1)
    shuffled = np.random.default_rng(2).permutation(40)
    two = projection.project(VECTORS[shuffled], [IDS[place] for place in shuffled], seed=1)
    assert len(list((paths.cache() / "projections").glob("*.parquet"))) == 1
    assert two.set_index("id").loc[IDS, ["x", "y"]].to_numpy().tolist() == one[["x", "y"]].to_numpy().tolist()


def test_the_map_is_that_of_umap_without_neighbours_given(monkeypatch):
    """To the last bit, also where two vectors are equal; UMAP's own search runs without being compiled."""
    import umap  # which takes two seconds

    monkeypatch.setattr(umap.umap_, "fast_knn_indices", umap.umap_.fast_knn_indices.py_func)
    vectors = VECTORS.astype(np.float32)
    vectors[3] = vectors[30]
    settings = {"n_neighbors": 15, "min_dist": 0.1, "metric": "cosine", "seed": 2}
    expected = umap.UMAP(n_neighbors=15, min_dist=0.1, metric="cosine", random_state=2, n_jobs=1).fit_transform(vectors)
    np.testing.assert_array_equal(projection._fit_umap(vectors, settings), expected)


def test_a_changed_byte_of_a_stored_map_is_noticed(home, monkeypatch):
    """Whichever byte it is: the map is named, set aside and drawn again, never another one and never a traceback."""
    wanted = projection.project(VECTORS, IDS, seed=1)
    folder = paths.cache() / "projections"
    (path,) = folder.iterdir()
    content = path.read_bytes()
    monkeypatch.setattr(
        projection, "_fit_umap", lambda vectors, settings: wanted.set_index("id").loc[sorted(IDS)].to_numpy()
    )
    for place in range(0, len(content), 29):
        path.write_bytes(content[:place] + bytes([content[place] ^ 0x01]) + content[place + 1 :])
        with pytest.warns(UserWarning, match=f"{path.name} is damaged .* and was set aside.*; it is drawn again"):
            assert projection.project(VECTORS, IDS, seed=1).equals(wanted)
        assert path.read_bytes() == content
    path.write_bytes(content[:-1])
    with pytest.warns(UserWarning, match="set aside"):
        assert projection.verify(folder) == [f"{path} is damaged; it is drawn again when it is needed"]


def test_a_map_that_cannot_be_stored_is_returned(home, capsys):
    """A file stands where the cache should be: what was computed is returned, and a line says so."""
    home.mkdir()
    (home / "cache").write_text("no folder", encoding="utf-8")
    assert projection.project(VECTORS, IDS, seed=1).id.tolist() == IDS
    assert "note: maps cannot be stored" in capsys.readouterr().err


def test_a_changed_seed_changes_the_map_and_not_the_measures_of_the_space(maps):
    """Coordinates, and what is measured on a map, move; where the partner is in the full space does not."""
    one, two = (part.reset_index(drop=True) for _, part in maps.groupby("seed"))
    assert not np.allclose(one[["x", "y"]], two[["x", "y"]])
    assert one.partner_full.tolist() == two.partner_full.tolist()
    assert one.kept.tolist() != two.kept.tolist()
    assert one.partner_map.tolist() != two.partner_map.tolist()
    tables = [map_trustworthiness(part) for part in (maps, one, two)]
    for table in tables[1:]:
        assert table[["full space", "chance"]].equals(tables[0][["full space", "chance"]])
    assert tables[1]["mean"].iloc[0] != tables[2]["mean"].iloc[0]
    ends = tables[0][["lowest", "highest"]].iloc[0].tolist()
    assert ends == sorted(table["mean"].iloc[0] for table in tables[1:])


def test_a_map_is_turned_and_mirrored_but_not_stretched(maps):
    """Distances are UMAP's; the longest extent is horizontal; the second map lies along the first."""
    for seed, part in maps.groupby("seed"):
        placed, found = part[["x", "y"]].to_numpy(), projection.project(VECTORS, IDS, seed=seed)[["x", "y"]].to_numpy()
        placed, found = (flat - flat.mean(axis=0) for flat in (placed, found))
        assert np.allclose(placed @ placed.T, found @ found.T)
        assert placed[:, 0].var() >= placed[:, 1].var() and abs(placed[:, 0] @ placed[:, 1]) < 1e-6
    one, two = (part[["x", "y"]].to_numpy() for _, part in maps.groupby("seed"))
    assert (one * two).sum(axis=0).min() >= 0


def test_maps_carry_what_determined_them(maps):
    """The settings of UMAP, its version, and a hash of the vectors that no order of rows changes."""
    assert {"umap-learn", "n_neighbors", "min_dist", "metric", "k", "vectors"} <= set(maps.attrs)
    assert maps.attrs["seeds"] == [0, 1]
    assert maps.attrs["vectors"] == projection.vectors_fingerprint(VECTORS[::-1], IDS[::-1])
    assert maps.attrs["vectors"] != projection.vectors_fingerprint(VECTORS[::-1], IDS)


def test_trustworthiness_is_that_of_scikit_learn():
    """The mean over the points, for several k and both metrics."""
    from sklearn.manifold import trustworthiness

    for k in (1, 5, 12):
        for metric in ("cosine", "euclidean"):
            found = point_trustworthiness(VECTORS, FLAT, [""] * 40, k, metric).trust.mean()
            assert found == pytest.approx(trustworthiness(VECTORS, FLAT, n_neighbors=k, metric=metric), abs=1e-12)


def test_all_neighbours_are_kept_by_the_same_space():
    """Unit vectors have the same neighbours by cosine and by distance."""
    unit = VECTORS / np.linalg.norm(VECTORS, axis=1, keepdims=True)
    found = point_trustworthiness(unit, unit, POINTS.class_id, 5)
    assert (found[["kept", "trust"]] == 1).all().all()
    assert (found.partner_full == found.partner_map).all()


def test_neighbours_kept_agree_with_a_slow_count():
    """Two lists of the five nearest, and what they share."""
    full, flat = nearest_rows(VECTORS, 5), nearest_rows(FLAT, 5, "euclidean")
    slow = [len(set(one) & set(other)) / 5 for one, other in zip(full.tolist(), flat.tolist(), strict=True)]
    assert point_trustworthiness(VECTORS, FLAT, [""] * 40, 5).kept.tolist() == slow


def test_the_rank_of_the_partner_by_hand():
    """Points on a line; who has no class, or is alone in it, has no partner."""
    line = np.array([[0.0], [0.1], [5.0], [9.0], [9.3]])
    found = point_trustworthiness(line, line, ["a", "a", "b", "", "b"], 1, "euclidean")
    assert found.partner_full.tolist() == [1, 1, 2, 0, 2]
    assert point_trustworthiness(line, line, ["", "", "", "c", "d"], 1, "euclidean").partner_map.tolist() == [0] * 5


def test_of_several_members_of_a_class_the_nearest_counts():
    """Three statements that say the same."""
    line = np.array([[0.0], [1.0], [1.5], [4.0]])
    assert point_trustworthiness(line, line, ["a", "x", "a", "a"], 1, "euclidean").partner_full.tolist() == [2, 0, 2, 1]


def test_chance_is_what_points_strewn_over_the_page_reach():
    """Partners by hand: three pairs and a class of three among twelve points; the map by ten random ones."""
    classes = ["a", "a", "b", "b", "c", "c", "d", "d", "d", "", "", ""]
    found = point_trustworthiness(VECTORS[:12], FLAT[:12], classes, 3).assign(seed=0, class_id=classes)
    near = (6 * 1 / 11 + 3 * 2 / 11) / 9, (6 * 3 / 11 + 3 * (1 - (9 * 8 * 7) / (11 * 10 * 9))) / 9
    assert map_trustworthiness(found).chance.to_numpy()[2:] == pytest.approx(near)
    rng = np.random.default_rng(5)
    maps = [
        point_trustworthiness(rng.normal(size=(150, 6)), rng.normal(size=(150, 2)), [""] * 150, 20).assign(seed=seed)
        for seed in range(10)
    ]
    table = map_trustworthiness(pd.concat(maps).assign(class_id=""))
    assert table["mean"].to_numpy() == pytest.approx(table.chance.to_numpy(), abs=0.01)


def test_without_pairs_the_table_has_no_partners():
    """Distractors alone."""
    found = point_trustworthiness(VECTORS, FLAT, [""] * 40, 5).assign(seed=0, class_id="")
    assert map_trustworthiness(found).index.tolist() == ["share of the 5 nearest kept", "trustworthiness, 5 nearest"]


def test_nearest_agrees_with_a_slow_search():
    """By cosine, never itself."""
    unit = VECTORS / np.linalg.norm(VECTORS, axis=1, keepdims=True)
    found = nearest_rows(VECTORS, 3)
    for row in range(40):
        slow = sorted((other for other in range(40) if other != row), key=lambda other: -(unit[row] @ unit[other]))
        assert found[row].tolist() == slow[:3]


def test_too_few_points_and_a_bad_k_are_errors():
    """With the numbers that were found."""
    with pytest.raises(MirblabError, match="at least 4 vectors"):
        projection.project(VECTORS[:3], IDS[:3])
    with pytest.raises(MirblabError, match="k must be between 1 and 39, found 40"):
        nearest_rows(VECTORS, 40)
    with pytest.raises(MirblabError, match="needs a seed, found none"):
        projection.seeded_maps(POINTS, VECTORS, seeds=[])
    with pytest.raises(MirblabError, match="found 40 vectors, 40 places and 39 classes"):
        point_trustworthiness(VECTORS, FLAT, [""] * 39)
    with pytest.raises(MirblabError, match="no metric 'cosin'"):
        nearest_rows(VECTORS, 3, "cosin")


def test_regions_are_named_by_the_words_of_their_statements_and_are_the_same_on_every_map():
    """Formulas give no words; the other maps keep the regions of the first; what all say names none."""
    texts = [f"Each prime ideal $n{n}$ of a ring." for n in range(15)] + [f"A compact space $K{n}$." for n in range(15)]
    first = pd.DataFrame({"id": range(30), "text": texts, "seed": 3, "x": [0.0] * 15 + [5.0] * 15, "y": 0.0})
    both = pd.concat([first, first.assign(seed=4, x=np.arange(30.0))], ignore_index=True)
    both.attrs = {"k": 10}
    found = projection.label_regions(both)
    assert found.region.unique().tolist() == ["ideal, prime", "compact, space"] and found.attrs == {"k": 10}
    assert (found.region[:30].to_numpy() == found.region[30:].to_numpy()).all()
    assert set(projection.label_regions(both.assign(text="The same.")).region) == {""}
    with pytest.raises(MirblabError, match="no column 'text'"):
        projection.label_regions(both.drop(columns="text"))


def test_a_map_of_too_many_points_is_refused(monkeypatch):
    """The error says how many are drawn, and how to take a sample."""
    monkeypatch.setattr(projection, "LARGEST_MAP", 39)
    with pytest.raises(MirblabError, match=r"at most 39 points, found 40; draw a sample, for example rows = np.random"):
        projection.project(VECTORS, IDS)


def test_a_map_of_another_version_is_drawn_anew(home, monkeypatch):
    """The version is part of what a stored map is found by."""
    keys: list[dict] = []
    monkeypatch.setattr(projection, "_fit_umap", lambda vectors, settings: keys.append(settings) or vectors[:, :2])
    for number in ("0.5.1", "9.9.9", "9.9.9"):
        monkeypatch.setattr(projection, "version", lambda name, number=number: number)
        projection.project(np.eye(6), [f"d{n}" for n in range(6)])
    assert [settings["umap-learn"] for settings in keys] == ["0.5.1", "9.9.9"]


def test_one_neighbour_and_no_map_are_refused():
    """With what to do."""
    with pytest.raises(MirblabError, match="at least 2 neighbours of each point, found 1"):
        projection.project(np.eye(6), [f"d{n}" for n in range(6)], n_neighbors=1)
    with pytest.raises(MirblabError, match="the table of maps is empty"):
        projection.map_trustworthiness(pd.DataFrame(columns=["seed", "k"]))
