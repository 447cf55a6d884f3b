"""Tests and doctests have a home of their own, compute on one thread each, and leave no figure open."""

from __future__ import annotations

import gc
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

# Several workers share the cores, and a thread that waits for another one burns the time of both.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")


# Vectors of the bundled model, and maps, are kept from one run of the tests to the next; `pytest --cache-clear` forgets
# them. Those that notebooks stored in the checkout are used too, by links, since they may be many. Their key is the
# model's revision, or the settings of the map, and the exact input; the tests of encoding and of maps have homes of
# their own.
SHARED = ("vectors", "tokens", "projections")
KEPT = ("*/sentence-transformers-all-MiniLM-L6-v2-*", "projections")


def _kept_and_shared(session: pytest.Session) -> tuple[Path, Path] | None:
    """Return where vectors are kept and where the workers of this run share them; None in a worker and without cache.

    In a worker the folder of the run is that of the process which started it.
    """
    cache = getattr(session.config, "cache", None)
    if cache is None or "PYTEST_XDIST_WORKER" in os.environ:
        return None
    return cache.mkdir("vectors"), session.config._tmp_path_factory.getbasetemp() / "shared"


def _links(folder: str, names: list[str]) -> list[str]:
    return [name for name in names if Path(folder, name).is_symlink()]


def pytest_sessionstart(session: pytest.Session) -> None:
    """Give the workers what earlier runs and the notebooks of this checkout encoded."""
    if folders := _kept_and_shared(session):
        kept, shared = folders
        shutil.copytree(kept, shared)
        stored = session.config.rootpath / "cache"
        for folder in stored.glob(KEPT[0]):
            for path in folder.iterdir():
                link = shared / path.relative_to(stored)
                link.parent.mkdir(parents=True, exist_ok=True)
                if not link.exists():
                    link.symlink_to(path)


def pytest_collection_finish() -> None:
    """Leave what was imported out of each later search for garbage, which else takes a twentieth of the time."""
    gc.collect()
    gc.freeze()


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Keep what the workers encoded."""
    if folders := _kept_and_shared(session):
        kept, shared = folders
        for folder in (folder for pattern in KEPT for folder in shared.glob(pattern)):
            shutil.copytree(folder, kept / folder.relative_to(shared), ignore=_links, dirs_exist_ok=True)


@pytest.fixture(scope="session")
def link_vectors(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], None]:
    """Return a function that lets a home share vectors and maps with all workers, so that a text is encoded once."""
    base = tmp_path_factory.getbasetemp()
    shared = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "shared"

    def link(home: Path) -> None:
        (home / "cache").mkdir(parents=True, exist_ok=True)
        for name in SHARED:
            (shared / name).mkdir(parents=True, exist_ok=True)
            (home / "cache" / name).symlink_to(shared / name, target_is_directory=True)

    return link


@pytest.fixture(autouse=True, scope="session")
def _temporary_home(tmp_path_factory: pytest.TempPathFactory, link_vectors: Callable[[Path], None]) -> None:
    """Every test run keeps data, caches and figures in a temporary folder, one per worker."""
    home = tmp_path_factory.mktemp("home")
    link_vectors(home)
    os.environ["MIRBLAB_HOME"] = str(home)
    os.environ["MIRBLAB_PROGRESS"] = "0"


@pytest.fixture(autouse=True)
def _close_figures() -> Iterator[None]:
    """Close every figure after its test or doctest; one that draws nothing does not import pyplot."""
    yield
    if pyplot := sys.modules.get("matplotlib.pyplot"):
        pyplot.close("all")
