"""judging: documents judged by keyboard, in a notebook or in a terminal."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from mirblab.analysis.judging import Judging, judge_name, pool_documents, pooled_runs
from mirblab.core.errors import MirblabError
from mirblab.data.collection import Collection
from mirblab.retrieval.systems import System
from mirblab.sources import catalogue


def judge(
    runs: str | System | pd.DataFrame | Sequence[str | System | pd.DataFrame],
    collection: str | Collection,
    depth: int = 10,
    *,
    judge: str = "",
    seed: int = 0,
    rejudge: bool = False,
) -> Judging:
    """Return the first *depth* documents of several runs, to be judged by one person without system and rank.

    *runs* are runs, systems or names of systems. *judge* is the person's name (default: the user's). Documents are in
    random order by *seed*, query by query; those that the collection has judgements of are left out unless *rejudge*.
    Judgements are stored as they are made, and the same call goes on where it was. MirblabError for an unknown system,
    a run of other documents, a depth below 1, and a name that cannot name a file.

    >>> judging = judge(["bm25", "bm25-mirb"], "mini-qa", depth=3, judge="anna")
    >>> judging.pool.columns.tolist(), judging.grades
    (['query_id', 'doc_id'], [0, 1, 2, 3])
    """
    if depth < 1:
        raise MirblabError(f"depth must be at least 1, found {depth}")
    loaded = catalogue.load(collection) if isinstance(collection, str) else collection
    found = pooled_runs(runs, loaded)
    pool = pool_documents(found, loaded, depth, seed=seed, rejudge=rejudge)
    return Judging(loaded, found, judge_name(judge), pool, depth)
