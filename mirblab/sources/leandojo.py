"""leandojo: LeanDojo's benchmark as a collection of premises."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from mirblab.core.errors import MirblabError, check_known
from mirblab.sources.shared import builder, lean_source, readers
from mirblab.sources.shared import release as releases
from mirblab.sources.shared.builder import CollectionRows, Judgement, Row, UniqueIds, replace_folders
from mirblab.sources.shared.readers import read_field, require_object

Position = tuple[int, int]
ADDRESS = "https://doi.org/10.5281/zenodo.8040109"
LICENCE = "CC-BY-2.0"
NAME = "leandojo"
STRATEGIES = ("novel_premises", "random")
CODE = ("statements", "published")
FILES = {"test": "test", "dev": "val", "train": "train"}


def build(
    origin: str | Path | None, out: Path, *, code: str = "statements", strategy: str = "novel_premises"
) -> list[Path]:
    """Write the collection `leandojo` under *out* and return its folder.

    Queries are the distinct states before a tactic that names a premise, documents all premises. *code* "published"
    keeps comments, docstrings, attributes and proofs in them. The split *strategy* is per theorem, so a test state may
    use only premises known from training; no state of test is a query of dev or train. *origin* is the release.
    """
    check_known("treatment of code", code, CODE)
    check_known("split of LeanDojo", strategy, STRATEGIES)
    out = Path(out)
    with (
        releases.open_release(origin, "LeanDojo Benchmark 4", ADDRESS) as release,
        replace_folders(out, (NAME,)) as [folder],
    ):
        corpus = release.one(r"corpus\.jsonl", "corpus.jsonl")
        files = {
            split: release.one(rf"{strategy}/{stem}\.json", f"{strategy}/{stem}.json") for split, stem in FILES.items()
        }
        left_out: Counter[str] = Counter()
        states = _States(files, Premises(corpus, left_out, published=code == "published"), left_out)
        rows = CollectionRows(states.premises.rows(), states.queries(), states.judged, left_out)
        about = builder.read_about(NAME) | {"code": code, "split": strategy}
        options = {"code": code, "strategy": strategy}
        revision = releases.hash_files([corpus, *files.values()])
        how = {"builder": "leandojo", "revision": revision, "licence": LICENCE}
        builder.write_collection(folder, rows, about, release.origin, options=options, **how)
    return [out / NAME]


class _States:
    """One pass over the theorems of test, dev and train, in this order, after the premises are known."""

    def __init__(self, files: dict[str, Path], premises: Premises, left_out: Counter[str]) -> None:
        self.files, self.premises, self.left_out = files, premises, left_out
        self.judged: dict[str, list[Judgement]] = {split: [] for split in files}
        self._names = UniqueIds()
        self._seen: dict[bytes, tuple[str, str]] = {}

    def queries(self) -> Iterator[Row]:
        """Yield the queries; the judgements are complete after the last one."""
        used: dict[str, dict[str, dict[str, None]]] = {split: {} for split in self.files}
        trained: set[str] = set()
        for split in self.files:
            for state, name, premises in self._tactics(split):
                trained.update(premises if split == "train" else ())
                key = hashlib.blake2b(state.encode(), digest_size=16).digest()
                first, query = self._seen.setdefault(key, (split, ""))
                if first != split:
                    self.left_out[f"states of {split} that are states of {first} (left out of {split})"] += 1
                    continue
                if query:
                    self.left_out["states that repeat an earlier one of their split (merged)"] += 1
                else:
                    query = self._names.new(name)
                    self._seen[key] = (split, query)
                    yield {"_id": query, "text": state}
                used[split].setdefault(query, {}).update(dict.fromkeys(premises))
        for split, queries in used.items():
            self.judged[split] += [(query, doc, 1) for query, docs in queries.items() for doc in docs]
            if split != "train":
                known = sum(trained.issuperset(docs) for docs in queries.values())
                self.left_out[f"{split} queries of which training shows every premise (kept)"] = known
            if not queries:
                raise MirblabError(
                    f"{self.files[split]}: no tactic in it names a premise of {self.premises.path.name}; "
                    "give both of one release"
                )

    def _tactics(self, split: str) -> Iterator[tuple[str, str, list[str]]]:
        for place, theorem in readers.read_json_records(self.files[split]):
            name = read_field(theorem, "full_name", str, place)
            for number, record in enumerate(read_field(theorem, "traced_tactics", list, place)):
                where = f"{place}, tactic {number + 1}"
                tactic = require_object(record, where)
                state = read_field(tactic, "state_before", str, where).strip()
                premises = [self.premises.find(mention, where) for mention in _mentions(tactic, where)]
                if not any(premises):
                    self.left_out[f"tactics of {split} that name no premise"] += 1
                elif "⊢" not in state:
                    self.left_out["states without a goal"] += 1
                else:
                    yield state, f"{name}:{number + 1}", [doc for doc in premises if doc]


class Premises:
    """The premises of a traced repository, complete after the last of `rows`; *published* keeps code as it is."""

    def __init__(self, path: Path, left_out: Counter[str], *, published: bool) -> None:
        self.path, self.left_out, self.published = path, left_out, published
        self._by_name: dict[tuple[str, str], str] = {}
        self._by_place: dict[str, list[tuple[Position, Position, str]]] = {}

    def rows(self) -> Iterator[Row]:
        """Yield one document per premise, with its full name as id (`#2` for a second one) and its code as text."""
        names = UniqueIds()
        for place, file in readers.read_json_records(self.path):
            path = read_field(file, "path", str, place)
            if path in self._by_place:
                raise MirblabError(f"{place}: the file '{path}' came before")
            here = self._by_place[path] = []
            for record in read_field(file, "premises", list, place):
                premise = require_object(record, f"{place}, premises")
                name, code = premise.get("full_name"), str(premise.get("code") or "")
                if reason := _no_premise(name, code):
                    self.left_out[f"declarations that are no premises: {reason}"] += 1
                    continue
                name = read_field(premise, "full_name", str, place)
                doc = names.new(name)
                self.left_out["premises that repeat a full name (kept, with a number)"] += doc != name
                self._by_name.setdefault((path, name), doc)
                here.append((read_position(premise, "start", place), read_position(premise, "end", place), doc))
                read_field(premise, "code", str, place)
                yield {"_id": doc, "title": "", "text": self._text(code), "metadata": {"path": path}}

    def _text(self, code: str) -> str:
        text = code.strip() if self.published else lean_source.extract_statement(code)
        self.left_out["premises of which only comments are left (kept as published)"] += not text
        self.left_out["premises with comments, attributes or proofs taken out"] += bool(text) and text != code.strip()
        return text or code.strip()

    def find(self, mention: Mapping[str, Any], place: str) -> str:
        """Return the document that a provenance (`full_name`, `def_path`, `def_pos`) names, or "".

        Without that name it is the first premise around the position, as in ReProver (Yang et al. 2023).
        """
        path, name = read_field(mention, "def_path", str, place), read_field(mention, "full_name", str, place)
        at = read_position(mention, "def_pos", place)
        if (path, name) in self._by_name:
            return self._by_name[path, name]
        premise = next((doc for start, end, doc in self._by_place.get(path, ()) if start <= at <= end), "")
        self.left_out["mentions found by their position, not by name"] += bool(premise)
        self.left_out["mentions of no premise in the corpus"] += not premise
        return premise


def read_position(record: Mapping[str, Any], key: str, place: str) -> Position:
    """Return a position, [line, column] from 1; MirblabError with *place* for anything else."""
    position = read_field(record, key, list, place)
    if len(position) != 2 or not all(type(number) is int for number in position):
        raise MirblabError(f"{place}: '{key}' must be [line, column], found {position}")
    return position[0], position[1]


def _no_premise(name: object, code: str) -> str:
    if name is None:
        return "no name"
    if not code.strip():
        return "no code"
    if "user__.n" in str(name) or (str(name).startswith("[") and str(name).endswith("]")):
        return "generated names and mutual definitions"
    return ""


def _mentions(tactic: Mapping[str, Any], place: str) -> list[Mapping[str, Any]]:
    found = read_field(tactic, "annotated_tactic", list, place)
    if len(found) != 2 or not isinstance(found[0], str) or not isinstance(found[1], list):
        raise MirblabError(f"{place}: 'annotated_tactic' must be [text, list of premises], found {str(found)[:60]}")
    return [require_object(mention, f"{place}, annotated_tactic") for mention in found[1]]
