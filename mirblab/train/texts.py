"""texts: the table of new texts: made by rules where no chat model is at hand, kept in a file, joined to views."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from mirblab import ids, paths
from mirblab.errors import MirblabError
from mirblab.lines import Problems, records
from mirblab.progress import progress
from mirblab.train import falsehoods, rewording
from mirblab.train.answers import N_NEGATIVES

NEGATIVES = tuple(f"negative_{number}" for number in range(1, N_NEGATIVES + 1))
LISTS = ("hypotheses", "conclusions")
COLUMNS = ("id", "rephrasing", *LISTS, "normalized_form", *NEGATIVES, "model", "prompts", "problem")
RULES = "rules"  # stands for the model's name where rules wrote the texts
ADDED = ("rephrasing", *NEGATIVES)  # what is joined to views


def table(
    names: Sequence[str], rows: Sequence[Mapping[str, Any]], problems: Sequence[str], about: Mapping[str, str]
) -> pd.DataFrame:
    """Return rows of new texts as a table of `COLUMNS`; what a row lacks is "" or [].

    >>> table(["a"], [{"rephrasing": "x"}], [""], {"model": "m"})[["id", "rephrasing", "negative_1"]].iloc[0].tolist()
    ['a', 'x', '']
    """
    empty: dict[str, Any] = dict.fromkeys(COLUMNS, "") | {name: [] for name in LISTS}
    full = [
        empty | row | about | {"id": one, "problem": why} for one, row, why in zip(names, rows, problems, strict=True)
    ]
    return pd.DataFrame(full, columns=list(COLUMNS)).astype({name: "str" for name in COLUMNS if name not in LISTS})


def by_rules(
    views: pd.DataFrame, seed: int = 0, *, column: str = "informal", with_negatives: bool = False
) -> pd.DataFrame:
    """Return the table for the statements in *column*, written by `rewording.reword` and `falsehoods.wrong`.

    "" where no rule applies: `problem` then says "no rule applies". Deterministic by *seed*; needs no network. Raises
    MirblabError for a column that is not there.

    >>> rows = pd.DataFrame({"id": ["a"], "informal": ["If $n$ is even then $n + 1$ is not."]})
    >>> by_rules(rows).rephrasing[0]
    'Whenever $l$ is even, $l + 1$ is not.'
    """
    check(views, column)
    rows, problems = list[dict[str, str]](), list[str]()
    with progress(len(views), "rewording", "statements") as bar:
        for text in views[column]:
            new = rewording.reword(text, seed)
            wrong = falsehoods.wrong(text, seed) if with_negatives else []
            row = {"rephrasing": new.text if new.rules else ""}
            rows.append(row | {name: one.text for name, one in zip(NEGATIVES, wrong, strict=False)})
            problems.append("" if new.rules else "no rule applies")
            bar.update()
    version = f"{RULES}-{rewording.VERSION}.{falsehoods.VERSION}-{seed}"
    return table(views.id.tolist(), rows, problems, {"model": RULES, "prompts": version})


def check(views: pd.DataFrame, column: str) -> None:
    """Raise MirblabError unless *views* has ids, each once, and a *column* of texts."""
    for name in ("id", column):
        if name not in views:
            raise MirblabError(f"a table of statements has a column {name}; found {', '.join(map(str, views.columns))}")
    if views.id.duplicated().any():
        raise MirblabError(f"id '{views.id[views.id.duplicated()].iloc[0]}' occurs twice; ids name one row each")


def default(source: str | Path) -> Path:
    """Return where the new texts of a table of views are kept: `<home>/data/rephrasings/<its name>.parquet`.

    >>> default("mathlib-views").name, default("mine/views.jsonl.gz").name
    ('mathlib-views.parquet', 'views.parquet')
    """
    return paths.data() / "rephrasings" / f"{paths.clean_name(Path(source).name.split('.')[0])}.parquet"


def save(found: pd.DataFrame, path: str | Path) -> Path:
    """Write the table to *path*, .parquet or .jsonl, whole or not at all, and return the path.

    The same table gives the same bytes. Raises MirblabError for another ending.
    """
    path = paths.given(path)
    if path.suffix not in (".parquet", ".jsonl"):
        raise MirblabError(f"{path.name} is neither .parquet nor .jsonl; name it with one of these endings")
    is_parquet = path.suffix == ".parquet"
    lines = "" if is_parquet else found.to_json(orient="records", lines=True, force_ascii=False)
    paths.write_bytes(path, found.to_parquet(index=False) if is_parquet else lines.encode())
    return path


def read(path: str | Path) -> pd.DataFrame:
    """Return the table that `save` wrote. Raises FileNotFoundError, and MirblabError for a file of another form."""
    path = paths.given(path)
    if not path.is_file():
        raise FileNotFoundError(f"no rephrasings at {path}; run: mirblab rephrase")
    found = _parquet(path) if path.suffix == ".parquet" else _lines(path)
    absent = [name for name in COLUMNS if name not in found]
    if absent:
        raise MirblabError(f"{path} has no column {', '.join(absent)}; give a file that mirblab rephrase wrote")
    return found[list(COLUMNS)]


def _parquet(path: Path) -> pd.DataFrame:
    try:
        return pd.read_parquet(path)
    except (ValueError, OSError) as error:
        raise MirblabError(f"{path} cannot be read as rephrasings: {error}; run: mirblab rephrase") from error


def _lines(path: Path) -> pd.DataFrame:
    """Return the objects of JSON lines as rows; pandas would take some texts for dates and numbers."""
    problems, rows = Problems(path), []
    for number, record in records(path, problems):
        try:
            rows.append(record | {"id": ids.of(record, "id")})
            json.dumps(record, ensure_ascii=False).encode()
        except MirblabError as error:
            problems.note(number, str(error))
        except UnicodeEncodeError:
            problems.note(number, "holds half a character (a lone surrogate); repair the text")
    problems.raise_if_any()
    return pd.DataFrame(rows)


def join(views: pd.DataFrame, found: pd.DataFrame) -> pd.DataFrame:
    """Return *views* with the columns rephrasing and negative_1 to negative_3, "" where there is none.

    Raises MirblabError when not one id is in both tables.

    >>> views = pd.DataFrame({"id": ["a", "b"], "informal": ["$n$ is even", "A ring"]})
    >>> join(views, by_rules(views)).rephrasing.tolist()
    ['$l$ is even', '']
    """
    if not set(views.id) & set(found.id):
        raise MirblabError(
            "no id of the views is among the rephrasings; they belong to another table; run: mirblab rephrase"
        )
    added = found.set_index("id")[list(ADDED)].reindex(views.id).fillna("")
    return views.assign(**{name: added[name].array for name in ADDED})
