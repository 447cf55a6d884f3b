"""A map is drawn again from what was stored with it, byte for byte, in another process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import numpy as np
import pandas as pd
import pytest

from mirblab.analysis import projection
from mirblab.core.errors import MirblabError
from mirblab.display import figures, plots

FILES = ["map.csv", "map.json", "map.pdf", "map.png", "map.svg"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A map of three seeds of forty statements with awkward names, saved as a notebook saves it."""
    rng = np.random.default_rng(4)
    points = pd.DataFrame({
        "id": [f"s{n}" for n in range(38)] + ["NA", 'x "y", \n z'],
        "class_id": [f"{n // 2:03d}" for n in range(40)], "field": ["null", "Körper"] * 20,
        "kind": ["pair"] * 36 + ["distractor"] * 4,
    })  # fmt: skip
    maps = pd.concat([
        points.assign(
            seed=seed, x=rng.normal(size=40) / 3, y=rng.normal(size=40) * 1e-7, k=10, kept=rng.random(40), trust=0.9,
            partner_full=[3] * 36 + [0] * 4, partner_map=[4] * 36 + [0] * 4,
        )
        for seed in (0, 1, 2)
    ], ignore_index=True)  # fmt: skip
    said = {"caption": "A map, “quoted”.", "alt": "Dots."}
    provenance = {"parameters": {"seeds": [0, 1, 2], "share": 0.1}, "projection": {"vectors": "abc", "min_dist": 0.1}}
    provenance["versions"] = {"matplotlib": matplotlib.__version__}
    figures.save_figure(plots.map(maps), tmp_path / "made", "map", table=maps, provenance=provenance, **said)
    return tmp_path / "made"


def test_a_map_is_redrawn_to_the_same_bytes_in_a_second_process(folder: Path, tmp_path: Path):
    """PDF, PNG, SVG, and the artefact itself; the process has another hash seed, time zone and working folder."""
    code = f"import mirblab as lab; print(*lab.analysis.redraw({str(folder / 'map.csv')!r}, 'again'), sep='\\n')"
    environment = {**os.environ, "PYTHONHASHSEED": "77", "TZ": "Asia/Tokyo", "SOURCE_DATE_EPOCH": "1"}
    run = [sys.executable, "-W", "error::UserWarning", "-c", code]
    found = subprocess.run(run, capture_output=True, text=True, cwd=tmp_path, env=environment)
    assert found.returncode == 0, found.stderr
    assert [Path(line).name for line in found.stdout.split("\n") if line] == FILES
    for name in FILES:
        assert (tmp_path / "again" / name).read_bytes() == (folder / name).read_bytes(), name


def test_a_part_of_a_table_is_redrawn_too(folder: Path, tmp_path: Path):
    """Its index is stored with it, as that of every table which was cut from another."""
    table = projection._read_map_table(folder / "map.csv")
    part = table[table.seed == 1].sample(frac=1, random_state=0)
    figures.save_figure(plots.map(part), tmp_path / "part", "map", table=part, provenance={}, caption="c", alt="a")
    redrawn = projection.redraw(tmp_path / "part" / "map.csv", tmp_path / "again")
    assert [path.name for path in redrawn] == FILES
    for path in redrawn:
        assert path.read_bytes() == (tmp_path / "part" / path.name).read_bytes(), path.name


def test_other_coordinates_are_another_picture(folder: Path, tmp_path: Path):
    """So the pictures come from the stored numbers and from nothing else."""
    stored = (folder / "map.csv").read_text("utf-8")
    first = stored.split("\n")[1].split(",")
    (folder / "map.csv").write_text(stored.replace(first[5], "0.75", 1), encoding="utf-8")
    projection.redraw(folder / "map.csv", tmp_path / "again")
    for name in ("map.pdf", "map.png", "map.svg"):
        assert (tmp_path / "again" / name).read_bytes() != (folder / name).read_bytes(), name


def test_another_version_of_matplotlib_is_told(folder: Path, tmp_path: Path):
    """The bytes may differ then."""
    record = json.loads((folder / "map.json").read_text("utf-8"))
    record["provenance"]["versions"]["matplotlib"] = "3.0.0"
    (folder / "map.json").write_text(json.dumps(record), encoding="utf-8")
    with pytest.warns(UserWarning, match=r"drawn with matplotlib 3\.0\.0"):
        projection.redraw(folder / "map.json", tmp_path / "again")


def test_what_is_no_stored_map_is_refused_and_nothing_written(folder: Path, tmp_path: Path):
    """Each time with the file's name."""
    with pytest.raises(MirblabError, match=r"map\.png is no stored map"):
        projection.redraw(folder / "map.png", tmp_path / "again")
    with pytest.raises(FileNotFoundError, match="no coordinates at"):
        projection.redraw(folder / "mpa.csv", tmp_path / "again")
    (folder / "map.csv").rename(folder / "alone.csv")
    with pytest.raises(FileNotFoundError, match=r"no alone\.json beside"):
        projection.redraw(folder / "alone.csv", tmp_path / "again")
    (folder / "alone.json").write_text("{", encoding="utf-8")
    with pytest.raises(MirblabError, match=r"alone\.json, line 1: broken JSON"):
        projection.redraw(folder / "alone.csv", tmp_path / "again")
    (folder / "alone.json").write_text('{"name": "map"}', encoding="utf-8")
    with pytest.raises(MirblabError, match="it has no caption, alt, provenance"):
        projection.redraw(folder / "alone.csv", tmp_path / "again")
    (folder / "map.csv").write_text("system,value\nbm25,1\n", encoding="utf-8")
    with pytest.raises(MirblabError, match="no column id, class_id, field, kind, x, y, found system, value"):
        projection.redraw(folder / "map.csv", tmp_path / "again")
    assert not (tmp_path / "again").exists()
