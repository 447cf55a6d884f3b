"""Each store is written, read, killed, damaged, swept, removed and shared at random, and agrees with a dictionary.

A machine holds what was stored in a dictionary. A store may forget what was damaged or removed, and nothing else; what
it returns is what the dictionary has, to the last bit.
"""

from __future__ import annotations

import os
import random
import shutil
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test
from operations import a_run, digest, stub_umap, tiny_collection, vector

from mirblab.analysis import projection
from mirblab.core import paths
from mirblab.core.atomic_files import remove_abandoned, unfinished_name
from mirblab.core.errors import MirblabError
from mirblab.data import runs
from mirblab.encoders.cache import VectorStore
from mirblab.encoders.hosted.chat import Reply, ReplyStore, read_prompt
from mirblab.encoders.token_vectors import TokenStore
from mirblab.evaluation import imported
from mirblab.formula import index as formula_index
from mirblab.retrieval.run_store import RunStore
from mirblab.sources import catalogue

SPACE = {"model": "toy", "role": "document", "prompt": "", "dimensions": 6}
KEYS = st.integers(0, 5)


class Store:
    """What a machine asks of a store: to put and get the value of a key; one made anew stands for another process."""

    def put(self, key: int) -> None:
        """Store the value of a key."""
        raise NotImplementedError

    def get(self, key: int) -> Any:
        """Return what is stored under a key, None for nothing."""
        raise NotImplementedError

    def value(self, key: int) -> Any:
        """Return what is right for a key."""
        return digest(vector(str(key)))


class Vectors(Store):
    """The cache of vectors."""

    def __init__(self) -> None:
        self.store = VectorStore(paths.cache() / "vectors", SPACE)

    def put(self, key: int) -> None:
        self.store.append([str(key)], vector(str(key))[None])

    def get(self, key: int) -> Any:
        vectors, missing = self.store.read([str(key)])
        return None if len(missing) else digest(vectors[0])


class Tokens(Store):
    """The store of token vectors."""

    def __init__(self) -> None:
        self.store = TokenStore(paths.cache() / "tokens", SPACE)

    def put(self, key: int) -> None:
        self.store.append([str(key)], [np.stack([vector(f"{key} {row}") for row in range(key)] or [vector("")])])

    def get(self, key: int) -> Any:
        stored, missing = self.store.read([str(key)])
        return None if len(missing) else digest(stored.block(0, 1))

    def value(self, key: int) -> Any:
        rows = np.stack([vector(f"{key} {row}") for row in range(key)] or [vector("")])
        return digest(rows.astype(np.float16).astype(np.float32))


class Runs(Store):
    """The store of runs."""

    def put(self, key: int) -> None:
        RunStore(paths.cache() / "runs").put(str(key), 4, a_run(str(key)))

    def get(self, key: int) -> Any:
        found = RunStore(paths.cache() / "runs").get(str(key), 4)
        return None if found is None else digest(found)

    def value(self, key: int) -> Any:
        return digest(runs.order_run(a_run(str(key))))


class Structure(Store):
    """Structure indexes, which are opened or built: what is asked is always there, and right."""

    def put(self, key: int) -> None:
        self.get(key)

    def get(self, key: int) -> Any:
        index = formula_index.stored_index([f"x^{key}", "y", f"z_{key}"])
        return [digest(part) for part in index.search([f"x^{key} + y"], 3)]

    def value(self, key: int) -> Any:
        items = [(f"{place:010d}", one) for place, one in enumerate((f"x^{key}", "y", f"z_{key}"))]
        index = formula_index.Index.build(items)
        return [digest(part) for part in index.search([f"x^{key} + y"], 3)]


class Projections(Store):
    """Maps, which are read or made: what is asked is always there, and right."""

    def put(self, key: int) -> None:
        self.get(key)

    def get(self, key: int) -> Any:
        return digest(projection.project(self._rows(), list("abcd"), seed=key))

    def value(self, key: int) -> Any:
        rows = self._rows()
        places = np.stack([rows.sum(axis=1), rows[:, 0]], axis=1).astype(np.float64) + key
        return digest(pd.DataFrame({"id": list("abcd"), "x": places[:, 0], "y": places[:, 1]}))

    def _rows(self) -> np.ndarray:
        return np.stack([vector(name) for name in "abcd"])


class Answers(Store):
    """The answers of a chat model."""

    def __init__(self) -> None:
        self.store = ReplyStore("stub", read_prompt("rephrase"))

    def put(self, key: int) -> None:
        self.store.put(str(key), Reply(f"answer {key}", "stop"))

    def get(self, key: int) -> Any:
        store = ReplyStore("stub", read_prompt("rephrase"))
        return store.get(str(key)).text if str(key) in store else None

    def value(self, key: int) -> Any:
        return f"answer {key}"


class Added(Store):
    """Collections that were added; a damaged one is refused by name."""

    def put(self, key: int) -> None:
        if not (paths.data() / f"own{key}").exists():
            given = paths.home() / "given" / "own"
            if not given.exists():
                tiny_collection()
            catalogue.add(given, f"own{key}", task=f"task {key}")

    def get(self, key: int) -> Any:
        return catalogue.load(f"own{key}").card.task if f"own{key}" in catalogue.collection_names() else None

    def value(self, key: int) -> Any:
        return f"task {key}"


class Imported(Store):
    """Values that others measured; a damaged import is refused by name."""

    def put(self, key: int) -> None:
        given = paths.home() / "given" / f"values{key}.csv"
        given.parent.mkdir(parents=True, exist_ok=True)
        given.write_text(f"system,collection,measure,value\ntheirs{key},mini-qa,P@5,0.{key}5\n", encoding="utf-8")
        imported.import_results(given)

    def get(self, key: int) -> Any:
        if f"theirs{key}" not in imported.imported_systems():
            return None
        return imported.read_imported_values([f"theirs{key}"]).value.tolist()

    def value(self, key: int) -> Any:
        return [float(f"0.{key}5")]


STORES = {"vectors": Vectors, "token vectors": Tokens, "runs": Runs, "structure": Structure, "projections": Projections,
          "replies": Answers, "collections": Added, "results": Imported}  # fmt: skip
FOLDERS = {"collections": "data", "results": "results"}


def machine(kind: str, counts: dict[str, int]) -> type[RuleBasedStateMachine]:
    """Return the machine of one kind of store, which counts what it does."""

    class Machine(RuleBasedStateMachine):
        """Random commands on a store, each compared with the dictionary of what was stored."""

        def __init__(self) -> None:
            super().__init__()
            self.home = Path(tempfile.mkdtemp(prefix="mirblab-machine-", dir=_place()))
            os.environ["MIRBLAB_HOME"] = str(self.home)
            self.store, self.held, self.is_damaged = STORES[kind](), {}, False

        def teardown(self) -> None:
            """Remove the home."""
            shutil.rmtree(self.home, ignore_errors=True)

        @rule(key=KEYS)
        def write(self, key: int) -> None:
            """Store a key; a store that was damaged may refuse, by name."""
            counts["operations"] += 1
            try:
                self.store.put(key)
                self.held[key] = self.store.value(key)
            except MirblabError:
                if not self.is_damaged:
                    raise

        @rule(key=KEYS)
        def read(self, key: int) -> None:
            """What is stored is right; what is not damaged is there."""
            counts["operations"] += 1
            try:
                found = self.store.get(key)
            except MirblabError:
                if not self.is_damaged:
                    raise
                return
            if found is not None:
                if found != self.store.value(key):
                    counts["wrong"] += 1
                assert found == self.store.value(key)
            elif key in self.held and not self.is_damaged:
                counts["lost"] += 1
                raise AssertionError(f"{key} was stored and is gone")

        @rule()
        def another_process(self) -> None:
            """A store made anew finds what is on the disk."""
            self.store = STORES[kind]()

        @rule(chance=st.randoms(use_true_random=False))
        def killed(self, chance: random.Random) -> None:
            """A writer that was killed leaves half of a file, or of a folder."""
            counts["faults"] += 1
            files = self._files()
            if files:
                path = chance.choice(files)
                content = path.read_bytes()
                unfinished_name(path).write_bytes(content[: chance.randrange(len(content) + 1)])

        @rule(chance=st.randoms(use_true_random=False))
        def damaged(self, chance: random.Random) -> None:
            """A byte of a file changes, it loses its end, or gets another one."""
            files = self._files()
            if not files:
                return
            counts["faults"] += 1
            path = chance.choice(files)
            content = bytearray(path.read_bytes())
            how = chance.choice(("flip", "cut", "more"))
            if how == "flip" and content:
                content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
            elif how == "cut":
                del content[chance.randrange(len(content) + 1) :]
            else:
                content += chance.randbytes(chance.choice((1, 7, 100)))
            path.write_bytes(bytes(content))
            self.is_damaged = True

        @rule()
        def swept(self) -> None:
            """What killed writers left goes, and nothing else."""
            counts["operations"] += 1
            before = self._files()
            remove_abandoned(self.home)
            assert self._files() == before

        @rule()
        def removed(self) -> None:
            """The whole store is deleted behind its back."""
            counts["faults"] += 1
            shutil.rmtree(self.home / FOLDERS.get(kind, "cache"), ignore_errors=True)
            self.held, self.is_damaged = {}, False

        def _files(self) -> list[Path]:
            folder = self.home / FOLDERS.get(kind, "cache")
            found = sorted(path for path in folder.rglob("*") if path.is_file())
            return [path for path in found if ".partial." not in str(path) and ".damaged" not in str(path)]

    return Machine


def _place() -> str | None:
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Store the smallest index, and make maps at once; give back the home."""
    monkeypatch.setenv("MIRBLAB_HOME", os.environ.get("MIRBLAB_HOME", ""))
    monkeypatch.setattr(formula_index, "_WORTH_STORING", 1)
    monkeypatch.setattr(projection, "_fit_umap", projection._fit_umap)
    stub_umap()


def run(kind: str, figures: Callable[..., None], examples: int, steps: int) -> None:
    """Run the machine of a kind, and add what it did to the table."""
    counts = dict.fromkeys(("operations", "faults", "wrong", "lost"), 0)
    wanted = settings(max_examples=examples, stateful_step_count=steps, deadline=None, derandomize=True,
                      suppress_health_check=list(HealthCheck), print_blob=False)  # fmt: skip
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            run_state_machine_as_test(machine(kind, counts), settings=wanted)
    finally:
        figures("state machines against a dictionary", **counts)


@pytest.mark.parametrize("kind", STORES)
def test_a_store_agrees_with_a_dictionary(figures: Callable[..., None], kind: str) -> None:
    """In short stories."""
    run(kind, figures, 12, 20)


@pytest.mark.faults
@pytest.mark.parametrize("kind", STORES)
def test_a_store_agrees_with_a_dictionary_for_long(figures: Callable[..., None], kind: str) -> None:
    """In a hundred and fifty long ones."""
    run(kind, figures, 150, 50)
