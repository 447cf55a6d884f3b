"""mapl: Magnushammer's Isabelle data (MAPL) to a collection, proof state to the premises of the next step.

Read are the state-premise pairs of Mikuła et al. 2023, `full_dataset.json` of Simontwice/premise_selection_in_isabelle:
JSON lines (or an array, or parquet) of `statement`, `state`, `step`, `premise_name`, `premise_statement`, of which the
second, fourth and fifth count. The raw trajectories (`raw_data/`) are not read. MIRB's own split is not published.
"""

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

from mirblab.core.errors import MirblabError
from mirblab.sources.shared import builder, readers
from mirblab.sources.shared import release as releases
from mirblab.sources.shared.builder import CollectionRows, Row, replace_folders
from mirblab.sources.shared.release import Release

ADDRESS = "https://huggingface.co/datasets/Simontwice/premise_selection_in_isabelle"
LICENCE = "Apache-2.0"
NAME = "mapl"
COLUMNS = ("state", "premise_name", "premise_statement")
ABOUT: Row = {
    "title": "MAPL: Isabelle proof state to the premises that the next step uses",
    "follows": "mirb-isabelle",
    "task": "Premise Retrieval",
    "instruction": "Given an Isabelle proof state, retrieve the declarations that are useful for proving it.",
}


def build(
    origin: str | Path | None, out: Path, *, test: int = 4000, dev: int = 4000, train: int = 100_000, seed: int = 0
) -> list[Path]:
    """Write the collection `mapl` under *out*, print what was left out, and return its folder.

    Queries are distinct states, documents distinct premise statements (which begin with the premise's name). Each of
    the *test* and *dev* queries uses a premise that no state outside them uses (`builder.split_by_novel_premises`,
    drawn with *seed*); of the other states *train* are drawn as training queries. *origin* is the file of pairs, or
    a folder with it. Texts wait on disk: memory is about 150 bytes a state or premise and 16 a pair (of some four
    million). The same file and seed give the same bytes. Raises MirblabError, with file and line, for what is no
    pair, and when the states are too few.
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
        parts = CollectionRows(reading.corpus(), reading.queries(), reading.judged, reading.left_out)
        revision, about = releases.hash_files(files), ABOUT | {"seed": seed, "split": "novel premises"}
        made = {"builder": "mapl", "revision": revision, "licence": LICENCE}
        builder.write_collection(
            folder,
            parts,
            about,
            release.origin,
            **made,
            options={"test": test, "dev": dev, "train": train, "seed": seed},
        )
    return [out / NAME]


def find_pair_files(release: Release) -> list[Path]:
    """Return the files with pairs: `full_dataset.json`, else all .jsonl, else all .parquet files."""
    for pattern in (r"full_dataset\.jsonl?(?:\.gz)?", r"[^/]*\.jsonl(?:\.gz)?", r"[^/]*\.parquet", r"[^/]*\.json"):
        found = [path.relative_to(release.origin.folder) for path in release.matching(pattern)]
        if kept := [release.origin.folder / name for name in found if "raw_data" not in name.parts]:
            return kept
    raise FileNotFoundError(
        f"no full_dataset.json, .jsonl or .parquet file; found {release.shown()}; give the folder that holds one"
    )


class _Reading:
    """One pass over the pairs: premises go straight to the corpus, states wait in a *spool* for the split."""

    def __init__(self, files: Sequence[Path], spool: IO[bytes], wanted: dict[str, int], train: int, seed: int) -> None:
        self.files, self.spool, self.wanted, self.train, self.seed = files, spool, wanted, train, seed
        self.judged: dict[str, list[tuple[str, str, int]]] = {}
        self.left_out = Counter[str]()
        self._kept = np.empty(0, np.int64)

    def corpus(self) -> Iterator[Row]:
        """Yield the documents; the judgements and counts are filled when they are through."""
        states, premises = _Known(), _Known()
        ends = (array("q"), array("q"))
        for place, pair in read_pairs(self.files):
            state, name, premise = (_text(pair, key, place) for key in COLUMNS)
            if not state or not premise:
                self.left_out["pairs without a state or a premise statement"] += 1
                continue
            (query, is_new_state), (doc, is_new_premise) = states.add(state), premises.add(premise)
            for end, number in zip(ends, (query, doc), strict=True):
                end.append(number)
            if is_new_state:
                self.spool.write(json.dumps(state).encode() + b"\n")
            if is_new_premise:
                yield {"_id": _doc(doc), "title": "", "text": premise, "metadata": {"name": name}}
        if not ends[0]:
            raise MirblabError(f"{', '.join(map(str, self.files))}: no pair of a state and a premise statement in it")
        self._judge(np.array(ends[0], np.int64), np.array(ends[1], np.int64))

    def queries(self) -> Iterator[Row]:
        """Yield the queries, after the corpus."""
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
        try:
            found = builder.split_by_novel_premises(states, premises, **self.wanted, seed=self.seed)
        except MirblabError as error:
            raise MirblabError(f"{', '.join(map(str, self.files))}: {error}") from error
        self.left_out["states with a held-out premise beyond the wanted number"] = len(found.pop("left"))
        everything = len(found["train"])
        drawn = np.random.default_rng(self.seed).permutation(everything)[: self.train]
        found["train"] = np.sort(found["train"][drawn])
        self.left_out["training states that were not drawn"] = everything - len(found["train"])
        for split in ("test", "dev", "train"):
            if len(found[split]):
                here = np.isin(states, found[split])
                chosen = zip(states[here].tolist(), premises[here].tolist(), strict=True)
                self.judged[split] = [(_query(state), _doc(premise), 1) for state, premise in chosen]
        self._kept = np.concatenate([found[split] for split in self.judged])


def read_pairs(files: Sequence[Path]) -> Iterator[tuple[str, Row]]:
    """Yield place and columns of each pair; MirblabError for what cannot be read."""
    for path in files:
        if path.suffix == ".parquet":
            yield from readers.read_rows(path, COLUMNS, Counter())
        else:
            yield from readers.read_json_records(path)


class _Known:
    """Texts that came up, each with its number from 0; texts that differ in white space only are one."""

    def __init__(self) -> None:
        self._numbers: dict[bytes, int] = {}

    def add(self, text: str) -> tuple[int, bool]:
        """Return the number of a text and whether it is new."""
        key = hashlib.blake2b(" ".join(text.split()).encode(), digest_size=16).digest()
        before = len(self._numbers)
        number = self._numbers.setdefault(key, before)
        return number, number == before


def _text(pair: Row, key: str, place: str) -> str:
    """Return a text of a pair without blanks around it; an absent value of a known key is an empty text."""
    value: Any = readers.read_field(pair, key, object, place)
    return "" if value is None else str(readers.read_field(pair, key, str, place)).strip()


def _query(number: int) -> str:
    return f"state-{number + 1}"


def _doc(number: int) -> str:
    return f"premise-{number + 1}"
