"""mapl: Magnushammer's Isabelle data (MAPL; Mikuła et al. 2023) as a collection, proof state to the next premises."""

from __future__ import annotations

import hashlib
import json
import tempfile
from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

from mirblab.core.errors import MirblabError, MissingFileError
from mirblab.sources.shared import builder, readers
from mirblab.sources.shared import release as releases
from mirblab.sources.shared.builder import CollectionRows, Judgement, Row, replace_folders
from mirblab.sources.shared.release import Release

ADDRESS = "https://huggingface.co/datasets/Simontwice/premise_selection_in_isabelle"
LICENCE = "Apache-2.0"
NAME = "mapl"
COLUMNS = ("state", "premise_name", "premise_statement")


def build(
    origin: str | Path | None, out: Path, *, test: int = 4000, dev: int = 4000, train: int = 100_000, seed: int = 0
) -> list[Path]:
    """Write the collection `mapl` under *out* and return its folder.

    Queries are distinct states, documents distinct premise statements. Each of the *test* and *dev* queries uses a
    premise that no state outside them uses (`builder.split_by_novel_premises` with *seed*, because MIRB's split is not
    published); of the other states *train* are drawn. *origin* is `full_dataset.json` or a folder with it. Memory is
    about 150 bytes a state or premise and 16 a pair (of some four million).
    """
    if min(test - 1, dev, train) < 0:
        raise MirblabError(f"test must be at least 1, dev and train at least 0, found {test}, {dev} and {train}")
    out = Path(out)
    with (
        releases.open_release(origin, "the pairs of MAPL (full_dataset.json)", ADDRESS) as release,
        replace_folders(out, (NAME,)) as [folder],
        tempfile.TemporaryFile("w+b", dir=folder.parent) as spool,
    ):
        files = find_pair_files(release)
        reading = _Reading(files, spool, {"test": test, "dev": dev}, train, seed)
        rows = CollectionRows(reading.corpus(), reading.queries(), reading.judged, reading.left_out)
        about = builder.read_about(NAME) | {"seed": seed, "split": "novel premises"}
        how: Row = {"builder": "mapl", "licence": LICENCE}
        options = {"test": test, "dev": dev, "train": train, "seed": seed}
        revision = releases.hash_files(files)
        builder.write_collection(folder, rows, about, release.origin, revision=revision, options=options, **how)
    return [out / NAME]


def find_pair_files(release: Release) -> list[Path]:
    """Return the files with pairs: `full_dataset.json`, else all .jsonl, else all .parquet files."""
    for pattern in (r"full_dataset\.jsonl?(?:\.gz)?", r"[^/]*\.jsonl(?:\.gz)?", r"[^/]*\.parquet", r"[^/]*\.json"):
        files = release.matching(pattern)
        if kept := [path for path in files if "raw_data" not in path.relative_to(release.origin.folder).parts]:
            return kept
    raise MissingFileError(
        f"no full_dataset.json, .jsonl or .parquet file; found {release.shown()}; give the folder that holds one"
    )


class _Reading:
    """One pass over the pairs: premises are written at once, states wait in a *spool* until they are split."""

    def __init__(self, files: Sequence[Path], spool: IO[bytes], wanted: dict[str, int], train: int, seed: int) -> None:
        self.files, self.spool, self.wanted, self.train, self.seed = files, spool, wanted, train, seed
        self.judged: dict[str, list[Judgement]] = {}
        self.left_out = Counter[str]()
        self._kept = np.empty(0, np.int64)

    def corpus(self) -> Iterator[Row]:
        """Yield the documents; the judgements and counts are complete after the last one."""
        states, premises = _Known(), _Known()
        queries, docs = array("q"), array("q")
        for place, pair in read_pairs(self.files):
            state, name, premise = (_text(pair, key, place) for key in COLUMNS)
            if not state or not premise:
                self.left_out["pairs without a state or a premise statement"] += 1
                continue
            (query, is_new_state), (doc, is_new_premise) = states.add(state), premises.add(premise)
            queries.append(query)
            docs.append(doc)
            if is_new_state:
                self.spool.write(json.dumps(state).encode() + b"\n")
            if is_new_premise:
                yield {"_id": _doc(doc), "title": "", "text": premise, "metadata": {"name": name}}
        try:
            if not queries:
                raise MirblabError("no pair of a state and a premise statement in it")
            self._judge(np.array(queries, np.int64), np.array(docs, np.int64))
        except MirblabError as error:
            raise MirblabError(f"{', '.join(map(str, self.files))}: {error}") from error

    def queries(self) -> Iterator[Row]:
        self.spool.seek(0)
        kept = set(self._kept.tolist())
        for number, line in enumerate(self.spool):
            if number in kept:
                yield {"_id": _query(number), "text": json.loads(line)}

    def _judge(self, states: np.ndarray, premises: np.ndarray) -> None:
        base = int(premises.max()) + 1
        distinct = np.unique(states * base + premises)
        self.left_out["pairs that repeat an earlier one"] = len(states) - len(distinct)
        states, premises = np.divmod(distinct, base)
        splits = builder.split_by_novel_premises(states, premises, **self.wanted, seed=self.seed)
        self.left_out["states with a held-out premise beyond the wanted number"] = len(splits["left"])
        n_train = len(splits["train"])
        drawn = np.random.default_rng(self.seed).permutation(n_train)[: self.train]
        splits["train"] = np.sort(splits["train"][drawn])
        self.left_out["training states that were not drawn"] = n_train - len(drawn)
        for split in ("test", "dev", "train"):
            if len(splits[split]):
                here = np.isin(states, splits[split])
                chosen = zip(states[here].tolist(), premises[here].tolist(), strict=True)
                self.judged[split] = [(_query(state), _doc(premise), 1) for state, premise in chosen]
        self._kept = np.concatenate([splits[split] for split in self.judged])


def read_pairs(files: Sequence[Path]) -> Iterator[tuple[str, Row]]:
    """Yield place and columns of each pair; MirblabError for what cannot be read."""
    for path in files:
        if path.suffix == ".parquet":
            yield from readers.read_rows(path, COLUMNS, Counter())
        else:
            yield from readers.read_json_records(path)


class _Known:
    """Texts numbered from 0; texts that differ in white space only are one."""

    def __init__(self) -> None:
        self._numbers: dict[bytes, int] = {}

    def add(self, text: str) -> tuple[int, bool]:
        key = hashlib.blake2b(" ".join(text.split()).encode(), digest_size=16).digest()
        before = len(self._numbers)
        number = self._numbers.setdefault(key, before)
        return number, number == before


def _text(pair: Row, key: str, place: str) -> str:
    value: Any = readers.read_field(pair, key, object, place)
    return "" if value is None else str(readers.read_field(pair, key, str, place)).strip()


def _query(number: int) -> str:
    return f"state-{number + 1}"


def _doc(number: int) -> str:
    return f"premise-{number + 1}"
