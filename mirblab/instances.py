"""instances: runs and judgements of formula instances to those of visually distinct formulas, as ARQMath's task 2."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from mirblab.errors import MirblabError
from mirblab.runs import categorical, order

_FEWEST = 0.5  # the share of instances whose visual id must be known


def to_visual(
    instances: pd.DataFrame, visual_ids: Mapping[str, str], *, by: str = "score", judged: pd.DataFrame | None = None
) -> pd.DataFrame:
    """Return the run of visual ids that a run of formula instances makes: each one where its first instance stands.

    *instances* has query_id, formula_id, score (`submission.read`), *visual_ids* maps formula ids to visual ids
    (`sources.arqmath_instances.visual_ids`). Max aggregation: a visual id has the score of its best instance, and
    equal scores are ordered by visual id, as in any run. With *by* "rank" the column rank decides instead. The labs'
    scripts of 2020 first drop the instances that were not judged themselves, although another instance of the same
    visual id was; *judged* (query_id and doc_id, a formula id) does that. `attrs["not_mapped"]` counts instances
    without a visual id, which are left out; when most are, MirblabError: the ids are of another release.

    >>> rows = {"query_id": "B.1", "formula_id": ["1", "2", "3"], "score": [0.9, 0.8, 0.7]}
    >>> run = to_visual(pd.DataFrame(rows), {"1": "v", "2": "v", "3": "w"})
    >>> run.doc_id.tolist(), run["rank"].tolist()
    (['v', 'w'], [1, 2])
    """
    table = _checked(instances, by)
    if judged is not None:
        pairs = pd.MultiIndex.from_frame(_texts(judged[["query_id", "doc_id"]]))
        table = table[pd.MultiIndex.from_frame(table[["query_id", "formula_id"]]).isin(pairs)]
    known, n_missing = _mapped(table, visual_ids)
    best = known.groupby(["query_id", "doc_id"], as_index=False, sort=False).score.max()
    run = order(best)
    run.attrs = {**instances.attrs, "not_mapped": n_missing}
    return run


def to_visual_qrels(qrels: pd.DataFrame, visual_ids: Mapping[str, str]) -> pd.DataFrame:
    """Return judgements of visual ids: the highest relevance of the instances that were judged, 0 too.

    *qrels* has query_id, doc_id (a formula id) and relevance. `attrs["not_mapped"]` counts what has no visual id.

    >>> rows = {"query_id": "B.1", "doc_id": ["1", "2", "3"], "relevance": [1, 3, 0]}
    >>> to_visual_qrels(pd.DataFrame(rows), {"1": "v", "2": "v", "3": "w"}).values.tolist()
    [['B.1', 'v', 3], ['B.1', 'w', 0]]
    """
    missing = [name for name in ("query_id", "doc_id", "relevance") if name not in qrels.columns]
    if missing:
        raise MirblabError(f"judgements lack {', '.join(missing)}; found {', '.join(map(str, qrels.columns))}")
    table = qrels.assign(**_texts(qrels[["query_id", "doc_id"]])).rename(columns={"doc_id": "formula_id"})
    known, n_missing = _mapped(table, visual_ids)
    found = known.groupby(["query_id", "doc_id"], as_index=False, sort=False).relevance.max()
    found.attrs["not_mapped"] = n_missing
    return found


def _checked(instances: pd.DataFrame, by: str) -> pd.DataFrame:
    """Return query_id, formula_id and the score that counts."""
    if by not in ("score", "rank"):
        raise MirblabError(f"by is 'score' or 'rank', not '{by}'")
    missing = [name for name in ("query_id", "formula_id", by) if name not in instances.columns]
    if missing:
        raise MirblabError(f"instances lack {', '.join(missing)}; found {', '.join(map(str, instances.columns))}")
    table = _texts(instances[["query_id", "formula_id"]])
    return table.assign(score=instances.score if by == "score" else -instances["rank"])


def _texts(table: pd.DataFrame) -> pd.DataFrame:
    """Return columns of ids as text; MirblabError for what is none, such as 42.0."""
    return table.apply(lambda ids: pd.Series(categorical(ids), ids.index).astype("str"))


def _mapped(table: pd.DataFrame, visual_ids: Mapping[str, str]) -> tuple[pd.DataFrame, int]:
    """Return the rows whose formula has a visual id, as doc_id, and the number of the others."""
    found = table.formula_id.map(visual_ids)
    n_missing = int(found.isna().sum())
    if n_missing > _FEWEST * len(table):
        first = table.formula_id[found.isna()].iloc[0]
        raise MirblabError(
            f"{n_missing:,} of {len(table):,} instances have no visual id, such as '{first}'; give the formulas of the "
            "release that the run was made with"
        )
    return table.assign(doc_id=found)[found.notna()], n_missing
