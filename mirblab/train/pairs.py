"""pairs: the pairs of a training, their splits and their batches."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from mirblab.core import atomic_files, ids, paths
from mirblab.core.errors import MirblabError, MissingFileError, check_known
from mirblab.core.terminal import progress, say
from mirblab.core.text_files import LineProblems, read_records
from mirblab.data.near_duplicates import find_repeats
from mirblab.formula.rewriting import statements
from mirblab.formula.rewriting.statements import N_NEGATIVES
from mirblab.sources import catalogue
from mirblab.train.recipes import Recipe

VIEW_COLUMNS = ("informal", "signature", "type")
HELD_OUT = ("dev", "test", "test_new")
NEGATIVE_COLUMNS = tuple(f"negative_{number}" for number in range(1, N_NEGATIVES + 1))
LIST_COLUMNS = ("hypotheses", "conclusions")
_LABEL_COLUMNS = ("model", "prompts", "problem")
REPHRASING_COLUMNS = ("id", "rephrasing", *LIST_COLUMNS, "normalized_form", *NEGATIVE_COLUMNS, *_LABEL_COLUMNS)
JOINED_COLUMNS = ("rephrasing", *NEGATIVE_COLUMNS)  # joined to views
RULES = "rules"  # the model's name where rules wrote the texts
# The purposes of random streams, which have different numbers.
_ORDER, _VIEWS, _MIX, _TORCH = 0, 1, 2, 3


@dataclass(frozen=True)
class TrainingTexts:
    """The texts of a recipe by view; *usable* (n_rows, n_pairs): which pairs of views each row has.

    *mixed*: queries and relevant documents of another collection; *wrong*: each row's texts made false.
    """

    columns: dict[str, list[str]]
    pairs: list[tuple[str, str]]
    usable: np.ndarray
    mixed: tuple[list[str], list[str]]
    wrong: list[list[str]]
    n_hard: int

    def __len__(self) -> int:
        return len(self.usable)

    def plan(self, recipe: Recipe) -> BatchPlan:
        """Return the plan of the batches over these texts."""
        return BatchPlan(self.usable, recipe.batch, recipe.seed, len(self.mixed[0]), recipe.share, recipe.together)

    def texts(self, draw: Draw) -> tuple[list[str], list[str], list[str]]:
        """Return anchors, positives and hard negatives."""
        if draw.is_mixed:
            return [self.mixed[0][row] for row in draw.rows], [self.mixed[1][row] for row in draw.rows], []
        anchors, positives, negatives = list[str](), list[str](), list[str]()
        for row, pair, is_flipped in zip(draw.rows, draw.pairs, draw.flipped, strict=True):
            view, positive_view = self.pairs[pair][::-1] if is_flipped else self.pairs[pair]
            anchors.append(self.columns[view][row])
            positives.append(self.columns[positive_view][row])
            candidates = [text for text in self.wrong[row] if text] if self.wrong else []
            negatives += [candidates[at] for at in draw.rng.permutation(len(candidates))[: self.n_hard]]
        return anchors, positives, negatives

    def all_texts(self) -> list[str]:
        """Return every text that may be in a batch, each once."""
        return list(dict.fromkeys(chain(*self.columns.values(), *self.mixed, *self.wrong)))

    def fingerprint(self) -> str:
        """Return a hash of all texts in their order, their pairs and their negatives: 32 hexadecimal digits."""
        state = hashlib.blake2b(digest_size=16)
        for texts in (*self.columns.values(), *self.mixed):
            state.update(f"{len(texts)}\n".encode())
            for text in texts:
                state.update(text.encode("utf-8", "surrogatepass") + b"\0")
        state.update(repr((self.pairs, [], self.wrong)).encode())  # [] keeps the hashes of stored models
        return state.hexdigest()


def gather_texts(recipe: Recipe, views: pd.DataFrame) -> TrainingTexts:
    """Return the texts of *recipe* from *views*: rows of its split with at least one pair of non-empty views."""
    if recipe.rephrased:
        views = join_rephrasings(views, read_rephrasings(recipe.rephrased))
    rows = _without_held_out(recipe, _rows_of_split(recipe, views), views)
    if recipe.together > 1:
        rows = _neighbours(recipe, rows)
    check_known(f"view in the data of recipe '{recipe.name}' called", recipe.columns(), rows.columns)
    texts = rows[recipe.columns()].fillna("").astype("str").apply(lambda column: column.str.strip())
    has = texts != ""
    usable = np.stack([(has[left] & has[right]).to_numpy() for left, right in recipe.pairs()], axis=1)
    kept = np.flatnonzero(usable.any(axis=1))
    if len(kept) < recipe.batch:
        raise MirblabError(
            f"recipe '{recipe.name}': {len(kept)} rows of split '{recipe.split}' have a pair of views, "
            f"fewer than one batch of {recipe.batch}; give more data or --set batch=..."
        )
    columns = {name: texts[name].iloc[kept].tolist() for name in recipe.columns()}
    wrong = _false_statements(recipe, rows.iloc[kept]) if recipe.hard else []
    return TrainingTexts(columns, recipe.pairs(), usable[kept], mixed_pairs(recipe), wrong, recipe.n_hard)


def mixed_pairs(recipe: Recipe) -> tuple[list[str], list[str]]:
    """Return query texts and relevant documents of the collection that *recipe* mixes in, in the judgements' order."""
    if not recipe.mix:
        return [], []
    collection = catalogue.load(recipe.mix, recipe.mix_split)
    rows = zip(*(collection.relevant[side].cat.codes for side in ("query_id", "doc_id")), strict=True)
    pairs = [(collection.query_texts[query], collection.texts[document]) for query, document in rows]
    pairs = [(query, text) for query, text in pairs if query and text and query != text]
    if len(pairs) < recipe.batch:
        raise MirblabError(
            f"recipe '{recipe.name}': {recipe.mix} has {len(pairs)} pairs in split '{recipe.mix_split}', "
            f"fewer than one batch of {recipe.batch}; mix in another collection or --set batch=..."
        )
    return [query for query, _ in pairs], [text for _, text in pairs]


def _false_statements(recipe: Recipe, rows: pd.DataFrame) -> list[list[str]]:
    """Return each row's statement made false, as its rephrasings have it; MirblabError if no row has one."""
    absent = [name for name in NEGATIVE_COLUMNS if name not in rows]
    if absent or not (rows[list(NEGATIVE_COLUMNS)] != "").any(axis=None):
        raise MirblabError(
            f"recipe '{recipe.name}': hard = \"{recipe.hard}\", but no statement made wrong is in the rephrasings; "
            "make some with mirblab rephrase --negatives and name the file as rephrased"
        )
    return rows[list(NEGATIVE_COLUMNS)].to_numpy().tolist()


@dataclass(frozen=True)
class BatchPlan:
    """The batches of a training run; *usable* (n_rows, n_pairs) says which pairs of views a row has.

    An epoch is a seeded permutation of groups of *together* neighbouring rows, without an incomplete last batch. A
    *share* of the batches, spread evenly, is entirely from the mixed source, so that negatives are of the same kind as
    the positives.
    """

    usable: np.ndarray
    batch: int
    seed: int
    n_mixed: int = 0
    share: float = 0.0
    together: int = 1

    def draw(self, step: int) -> Draw:
        """Return the rows and views of a *step*, from 0; they depend on nothing but the seed and the step."""
        before, after = int(step * self.share), int((step + 1) * self.share)
        rng = np.random.default_rng([self.seed, _VIEWS, step])
        if after > before:
            rows = batch_rows(self.n_mixed, self.batch, self.seed, before, _MIX)
            return Draw(rows, np.zeros(len(rows), np.intp), np.zeros(len(rows), bool), True, rng)
        rows = batch_rows(len(self.usable), self.batch, self.seed, step - before, _ORDER, self.together)
        # the largest of uniform numbers, among the pairs that a row has
        pairs = np.where(self.usable[rows], rng.random((len(rows), self.usable.shape[1])), -1.0).argmax(axis=1)
        return Draw(rows, pairs, rng.random(len(rows)) < 0.5, False, rng)


def torch_seed(seed: int, step: int) -> int:
    """Return the seed of the model's random numbers (dropout) at a *step*."""
    return int(np.random.SeedSequence([seed, _TORCH, step]).generate_state(1, np.uint64)[0] >> 1)


@dataclass(frozen=True)
class Draw:
    """The batch of one step: *rows* of the main or the mixed source, and the index of each row's pair of views."""

    rows: np.ndarray
    pairs: np.ndarray
    flipped: np.ndarray
    is_mixed: bool
    rng: np.random.Generator


@dataclass(frozen=True)
class SeparatedRows:
    """The rows to train on; *why* has a row per dropped view: `id`, `view`, `held_id` that it repeats, `jaccard`."""

    rows: pd.DataFrame
    why: pd.DataFrame
    recall: float

    def summary(self) -> str:
        """Return one line with the number of dropped rows, in all and by view."""
        per_view = self.why.groupby("view", sort=False).id.nunique()
        shown = ", ".join(f"{view} {count:,}" for view, count in per_view.items())
        n_dropped = self.why.id.nunique()
        before = f"{n_dropped:,} of {len(self.rows) + n_dropped:,} training rows nearly repeat a held-out row"
        return f"{before}{f' ({shown})' if shown else ''}, {len(self.rows):,} are left"


def drop_near_duplicates(
    train: pd.DataFrame,
    held_out: pd.DataFrame,
    columns: Sequence[str] = VIEW_COLUMNS,
    threshold: float = 0.8,
    seed: int = 0,
) -> SeparatedRows:
    """Return the rows of *train* without those that have a view nearly equal to that view of a *held_out* row.

    That is: a Jaccard similarity of word triples of at least *threshold*, or a difference in case and white space only.
    Raises MirblabError for a missing column, and for an id in both tables.
    """
    for table in (train, held_out):
        _check_ids(table, columns)
    names = sorted(set(train.id) & set(held_out.id))
    if names:
        raise MirblabError(f"{len(names)} ids are in training and held out, the first is '{names[0]}'; drop them first")
    tables, recall = [], 1.0
    for column in columns:
        same = find_repeats([held_out[column].tolist(), train[column].tolist()], threshold, seed, n_asked=1)
        pairs = same.between(1, 0)
        rows, held_rows = (pairs[name].to_numpy(dtype=np.int64) for name in ("one", "other"))
        ids = {"id": train.id.to_numpy()[rows], "view": column, "held_id": held_out.id.to_numpy()[held_rows]}
        tables.append(pd.DataFrame(ids | {"jaccard": pairs.jaccard.to_numpy()}))
        recall = min(recall, same.recall)
    why = pd.concat(tables, ignore_index=True)
    return SeparatedRows(train[~train.id.isin(why.id)], why, recall)


def rephrase_by_rules(
    views: pd.DataFrame, seed: int = 0, *, column: str = "informal", with_negatives: bool = False
) -> pd.DataFrame:
    """Return the table of rephrasings for the statements in *column*, written by `statements.reword` and `falsify`.

    A statement to which no rule applies gets "" and the `problem` "no rule applies". Equal *seed*s give equal tables.
    Raises MirblabError for a missing column.

    >>> rows = pd.DataFrame({"id": ["a"], "informal": ["If $n$ is even then $n + 1$ is not."]})
    >>> rephrase_by_rules(rows).rephrasing[0]
    'Whenever $l$ is even, $l + 1$ is not.'
    """
    check_statements(views, column)
    rows, problems = list[dict[str, str]](), list[str]()
    with progress(len(views), "rewording", "statements") as bar:
        for text in views[column]:
            new = statements.reword(text, seed)
            wrong = statements.falsify(text, seed) if with_negatives else []
            row = {"rephrasing": new.text if new.rules else ""}
            rows.append(row | {name: version.text for name, version in zip(NEGATIVE_COLUMNS, wrong, strict=False)})
            problems.append("" if new.rules else "no rule applies")
            bar.update()
    version = f"{RULES}-{statements.REWORDING_VERSION}.{statements.FALSEHOODS_VERSION}-{seed}"
    return rephrasing_table(views.id.tolist(), rows, problems, {"model": RULES, "prompts": version})


def rephrasing_table(
    names: Sequence[str], rows: Sequence[Mapping[str, Any]], problems: Sequence[str], about: Mapping[str, str]
) -> pd.DataFrame:
    """Return rows of new texts as a table of `REPHRASING_COLUMNS`; a missing field of a row is "" or []."""
    empty: dict[str, Any] = dict.fromkeys(REPHRASING_COLUMNS, "") | {name: [] for name in LIST_COLUMNS}
    texts = zip(names, rows, problems, strict=True)
    records = [empty | dict(row) | dict(about) | {"id": name, "problem": why} for name, row, why in texts]
    types = {name: "str" for name in REPHRASING_COLUMNS if name not in LIST_COLUMNS}
    return pd.DataFrame(records, columns=list(REPHRASING_COLUMNS)).astype(types)


def check_statements(views: pd.DataFrame, column: str) -> None:
    """Raise MirblabError unless *views* has unique ids and a *column* of texts."""
    for name in ("id", column):
        if name not in views:
            raise MirblabError(f"a table of statements has a column {name}; found {', '.join(map(str, views.columns))}")
    _check_ids(views, [])


def default_path(source: str | Path) -> Path:
    """Return the path for the rephrasings of a table of views: `<home>/data/rephrasings/<its name>.parquet`."""
    return paths.data() / "rephrasings" / f"{paths.checked_name(Path(source).name.split('.')[0])}.parquet"


def save_rephrasings(rephrasings: pd.DataFrame, path: str | Path) -> Path:
    """Write the table to *path*, .parquet or .jsonl, completely or not at all, and return the path.

    Equal tables give equal bytes. Raises MirblabError for another suffix.

    >>> import tempfile
    >>> table = pd.DataFrame({"id": ["a"], "rephrasing": ["One is a number."]})
    >>> save_rephrasings(table, Path(tempfile.mkdtemp()) / "new.jsonl").name
    'new.jsonl'
    """
    path = check_ending(path)
    if path.suffix == ".parquet":
        atomic_files.write_bytes(path, rephrasings.to_parquet(index=False))
    else:
        atomic_files.write_text(path, rephrasings.to_json(orient="records", lines=True, force_ascii=False))
    return path


def check_ending(path: str | Path) -> Path:
    """Return the path of a file of rephrasings, with `~` expanded; MirblabError unless it is .parquet or .jsonl."""
    path = paths.expand_home(path)
    if path.suffix not in (".parquet", ".jsonl"):
        raise MirblabError(f"{path.name} is neither .parquet nor .jsonl; name it with one of these endings")
    return path


def read_rephrasings(path: str | Path) -> pd.DataFrame:
    """Return the table that `save_rephrasings` wrote; FileNotFoundError, or MirblabError for an invalid file.

    It is invalid without one of the columns, and with an id in two rows.
    """
    path = paths.expand_home(path)
    if not path.is_file():
        raise MissingFileError(f"no rephrasings at {path}; run: mirblab rephrase")
    rephrasings = _read_parquet(path) if path.suffix == ".parquet" else _read_lines(path)
    absent = [name for name in REPHRASING_COLUMNS if name not in rephrasings]
    if absent:
        raise MirblabError(f"{path} has no column {', '.join(absent)}; give a file that mirblab rephrase wrote")
    try:
        _check_ids(rephrasings, [])
    except MirblabError as error:
        raise MirblabError(f"{path}: {error}; leave all but one row of it out") from error
    return rephrasings[list(REPHRASING_COLUMNS)]


def join_rephrasings(views: pd.DataFrame, rephrasings: pd.DataFrame) -> pd.DataFrame:
    """Return *views* with rephrasing and negative_1 to negative_3 ("": none).

    MirblabError if no id is in both tables, and if one is in two rows of *rephrasings*.
    """
    _check_ids(rephrasings, [])
    if not set(views.id) & set(rephrasings.id):
        raise MirblabError(
            "no id of the views is among the rephrasings; they belong to another table; run: mirblab rephrase"
        )
    added = rephrasings.set_index("id")[list(JOINED_COLUMNS)].reindex(views.id).fillna("")
    return views.assign(**{name: added[name].array for name in JOINED_COLUMNS})


def _rows_of_split(recipe: Recipe, views: pd.DataFrame) -> pd.DataFrame:
    rows = views
    if recipe.split:
        if "split" not in rows:
            raise MirblabError(
                f"recipe '{recipe.name}' takes split '{recipe.split}', but the data has no such column; "
                "add a column split"
            )
        known = sorted(rows["split"].astype("str").unique())
        check_known(f"split in the data of recipe '{recipe.name}' called", recipe.split, known)
        rows = rows[(rows["split"] == recipe.split).to_numpy()]
    if recipe.modules == "mathematics":
        from mirblab.analysis.lean_views import in_modules

        rows = in_modules(rows)
    return rows


def _neighbours(recipe: Recipe, rows: pd.DataFrame) -> pd.DataFrame:
    """Return *rows* ordered by module and name, so that rows on the same subject are neighbours."""
    by = [name for name in ("module", "id") if name in rows]
    if not by:
        raise MirblabError(
            f"recipe '{recipe.name}': together = {recipe.together}, but the data has no module and no id"
        )
    return rows.sort_values(by, kind="stable")


def _without_held_out(recipe: Recipe, rows: pd.DataFrame, views: pd.DataFrame) -> pd.DataFrame:
    """Return *rows* without those that nearly repeat a test row, and print how many were dropped."""
    if not recipe.near or recipe.split in ("", *HELD_OUT):
        return rows
    held_out = views[views["split"].isin(HELD_OUT).to_numpy()]
    shown = [name for name in VIEW_COLUMNS if name in views]
    if held_out.empty or not shown:
        return rows
    blank = dict.fromkeys(shown, "")
    kept = drop_near_duplicates(rows.fillna(blank), held_out.fillna(blank), shown, recipe.near)
    say(f"{recipe.name}: {kept.summary()}")
    return kept.rows


def batch_rows(n_rows: int, batch: int, seed: int, number: int, stream: int = _ORDER, together: int = 1) -> np.ndarray:
    """Return the rows of the batch *number*, from 0, of epochs that are seeded permutations of all rows."""
    epoch, place = divmod(number, max(1, n_rows // batch))
    return _permutation(n_rows, seed, stream, epoch, together)[place * batch : (place + 1) * batch]


@lru_cache(maxsize=4)
def _permutation(n_rows: int, seed: int, stream: int, epoch: int, together: int) -> np.ndarray:
    """Return all rows: groups of *together* neighbours, with random boundaries, in a random order."""
    rng = np.random.default_rng([seed, stream, epoch])
    if together == 1:
        order = rng.permutation(n_rows)
    else:
        groups = np.split(np.arange(n_rows), np.arange(rng.integers(together), n_rows, together))
        order = np.concatenate([groups[number] for number in rng.permutation(len(groups))])
    order.flags.writeable = False
    return order


def _check_ids(table: pd.DataFrame, columns: Sequence[str]) -> None:
    check_known("column", ["id", *columns], table.columns)
    if table.id.duplicated().any():
        raise MirblabError(f"id '{table.id[table.id.duplicated()].iloc[0]}' occurs twice; ids name one row each")


def _read_parquet(path: Path) -> pd.DataFrame:
    try:
        return pd.read_parquet(path)
    except (ValueError, OSError) as error:
        raise MirblabError(f"{path} cannot be read as rephrasings: {error}; run: mirblab rephrase") from error


def _read_lines(path: Path) -> pd.DataFrame:
    """Return the objects of JSON lines; pandas would convert some texts to dates and numbers."""
    problems, rows = LineProblems(path), []
    for number, record in read_records(path, problems):
        try:
            rows.append(record | {"id": ids.read_id(record, "id")})
        except MirblabError as error:
            problems.note(number, str(error))
    problems.raise_if_any()
    return pd.DataFrame(rows)
