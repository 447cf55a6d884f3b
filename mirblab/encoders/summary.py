"""summary: tables of encoders: their inputs and their costs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from mirblab.core import registry
from mirblab.core.errors import MirblabError, check_known
from mirblab.encoders.encoding import encoder
from mirblab.encoders.entry import is_hosted
from mirblab.encoders.hosted.vendors import read_hosted
from mirblab.evaluation import published


def model_table(names: Iterable[str] | None = None) -> pd.DataFrame:
    """Return one row per encoder: its fields in the registry; all encoders when *names* is None.

    Columns: label, size, tokens (the longest input), dimensions, pooling, dtype, instruction (whether a query's prompt
    has one), remote_code, licence, revision (first eight digits, or the vendor's model), mirb (tokens in MIRB's
    published code, where they differ). The index is the registry's name.

    >>> model_table(["nv-embed-v2"])[["tokens", "mirb"]].values.tolist()
    [[32768, '512']]
    """
    known = registry.read_registry("encoders")
    rows = {}
    names = list(known if names is None else names)
    check_known("encoder", names, known)
    for name in names:
        entry = known[name]
        other = entry.get("mirb", {}).get("max_length")
        rows[name] = {
            "label": entry.get("label", name),
            "size": entry.get("size", ""),
            "tokens": int(entry["max_length"]),
            "dimensions": int(entry["dimensions"]),
            "pooling": entry.get("pooling", ""),
            "dtype": entry.get("dtype", ""),
            "instruction": "yes" if "{instruction}" in str(entry.get("prompts", {}).get("query", "")) else "no",
            "remote_code": "yes" if entry.get("trust_remote_code") else "no",
            "licence": entry.get("licence", ""),
            "revision": str(entry.get("revision") or entry.get("model", ""))[: None if "vendor" in entry else 8],
            "mirb": str(other) if other else "",
        }
    return pd.DataFrame.from_dict(rows, orient="index")


def input_table(names: Iterable[str], query: str, document: str, instruction: str = "") -> pd.DataFrame:
    """Return the exact strings that reach each encoder's tokenizer, in the correct mode and as MIRB published it.

    Columns: encoder (its name in the registry), role, input_type (what a vendor is told beside the text, "" for none),
    correct, mirb ("" where the published code gives the same). No model is loaded.

    >>> input_table(["e5-mistral-7b-instruct"], "Is it?", "A ring.", "Find it.").correct.tolist()
    ['Instruct: Find it.\\nQuery: Is it?', 'A ring.']
    >>> input_table(["voyage-3-large"], "Is it?", "A ring.").input_type.tolist()
    ['query', 'document']
    """
    known, rows = registry.read_registry("encoders"), []
    for name in (registry.match_name(given, known) for given in names):
        entry = known.get(name, {})
        for role, text in (("query", query), ("document", document)):
            right, published = (
                encoder(name, compat).strings([text], role, instruction)[0] if not compat or compat in entry else ""
                for compat in ("", "mirb")
            )
            kind = entry.get("input_types", {}).get(role, "")
            rows.append((name, role, kind, right, "" if published == right else published))
    return pd.DataFrame(rows, columns=["encoder", "role", "input_type", "correct", "mirb"])


TOKENS_PER_WORD = 2.5  # MiniLM's tokens on Stacks, MSE and ARQMath texts: 2.5 to 2.7; Metamath 1.4, Rocq 2.2
GPU = "A800 80G"
# MIRB, Appendix B: GPU hours for the whole benchmark, by millions of parameters.
PAPER_HOURS = {384: 6.0, 1_780: 36.0, 7_300: 64.0}
PAPER_NOTE = (
    f"MIRB, Appendix B, whole benchmark on an {GPU}: BM25 about 1 hour (CPU); under 1B parameters about 6 GPU hours; "
    "1.5B about 36; 7B about 64; each hosted model under 25 hours"
)


def collection_sizes() -> pd.DataFrame:
    """Return documents, queries and tokens (2.5 per word) of MIRB's twelve collections, from the paper's Table 1."""
    rows = []
    for name, part in published.paper_cells("mirb", 1).groupby("row", sort=False):
        found: dict[Any, Any] = part.set_index(["column_group", "column"])["value"].to_dict()
        if ("Test", "#corpus") not in found:
            continue
        queries, documents = int(found["Test", "#query"]), int(found["Test", "#corpus"])
        words = [float(found["Avg. Word Length", side]) for side in ("Query", "Document")]
        rows.append((name, documents, queries, round(TOKENS_PER_WORD * (queries * words[0] + documents * words[1]))))
    return pd.DataFrame(rows, columns=["paper", "documents", "queries", "tokens"])


def cost_table(
    encoders: Iterable[str] | None = None,
    stored: Mapping[tuple[str, str], float] | None = None,
    sizes: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """Return one row per encoder and collection: what encoding it takes.

    Columns: encoder, paper, documents, queries, tokens, gpu_hours (local models; NaN where the size is unknown),
    dollars (hosted ones), disk (bytes of float32 vectors), stored (share of texts that is encoded already, 0 to 1, from
    *stored* by encoder and paper). Hours are the paper's, divided by tokens and interpolated in the model's size on
    logarithmic axes, so they are those of its GPU and its batch sizes. Without *encoders*: all in the paper; *sizes*
    has the columns of `collection_sizes`, for other collections than MIRB's. MirblabError for an unknown encoder.

    >>> float(round(cost_table(["bge-large-en-v1.5"]).gpu_hours.sum(), 1))
    5.2
    """
    known = registry.read_registry("encoders")
    found = collection_sizes() if sizes is None else sizes
    names = list(encoders) if encoders is not None else published_encoders()
    check_known("encoder", names, known)
    parts = []
    for name in names:
        parts.append(found.assign(encoder=name, **_encoding_costs(name, known[name], found, stored or {})))
    columns = ["encoder", *found.columns, "gpu_hours", "dollars", "disk", "stored"]
    return pd.concat(parts, ignore_index=True)[columns] if parts else pd.DataFrame(columns=columns)


def reranking_cost_table(shortlists: Mapping[str, int], sizes: pd.DataFrame) -> pd.DataFrame:
    """Return one row per cross-encoder: what reranking all queries of collections of these *sizes* takes.

    *shortlists* has the documents that it scores for a query. Columns: reranker, pairs, gpu_hours (NaN where the size
    is unknown), by the rule of `cost_table`: a pair has the tokens of two average texts of its collection, at most
    the model's longest input.

    >>> reranking_cost_table({"bge-reranker-v2-m3": 10}, collection_sizes()).pairs.tolist() == [
    ...     10 * collection_sizes().queries.sum()
    ... ]
    True
    """
    entries, rows = registry.read_registry("rerankers"), []
    check_known("reranker", shortlists, entries)
    for name, n_documents in shortlists.items():
        tokens = 2 * sizes.tokens / (sizes.documents + sizes.queries)
        pairs = sizes.queries * n_documents
        share = (pairs * tokens.clip(upper=entries[name].get("max_length"))).sum() / collection_sizes().tokens.sum()
        hours = share * estimate_gpu_hours(str(entries[name].get("size", "")))
        rows.append((name, int(pairs.sum()), float(hours)))
    return pd.DataFrame(rows, columns=["reranker", "pairs", "gpu_hours"])


def published_encoders() -> list[str]:
    """Return the registry's names of the encoders in MIRB's Table 7, in its order."""
    known = registry.read_registry("encoders")
    rows = dict.fromkeys(published.paper_cells("mirb", 7).system)
    return [name for name in rows if name in known]


def _encoding_costs(
    name: str, entry: Mapping[str, Any], found: pd.DataFrame, stored: Mapping[tuple[str, str], float]
) -> dict:
    share = found.tokens / collection_sizes().tokens.sum()
    dimensions = int(entry.get("output_dimension", entry["dimensions"]))
    price = entry.get("price_per_million_tokens")
    return {
        "gpu_hours": np.nan if "vendor" in entry else share * estimate_gpu_hours(str(entry.get("size", ""))),
        "dollars": found.tokens * price / 1e6 if price is not None else np.nan,
        "disk": (found.documents + found.queries) * 4 * dimensions,
        "stored": [stored.get((name, paper), 0.0) for paper in found.paper],
    }


def estimate_dollars(entry: Mapping[str, Any], n_words: int) -> float:
    """Return what the vendor of an encoder is paid for texts of so many words, by the rule of `cost_table`.

    It is 0 for a model of this machine, and NaN where the *entry* names no price.

    >>> estimate_dollars(registry.read_registry("encoders")["text-embedding-3-large"], 1_000_000)
    0.325
    """
    price = read_hosted(entry).price if is_hosted(entry) else 0.0
    return float("nan") if price is None else TOKENS_PER_WORD * n_words * price / 1e6


def estimate_gpu_hours(size: str) -> float:
    """Return the GPU hours of a model of this *size* ("335M", "7.11B") on the whole benchmark; NaN for no size."""
    if not size:
        return float("nan")
    n_millions = millions(size)
    known = np.log(list(PAPER_HOURS)), np.log(list(PAPER_HOURS.values()))
    # Beyond the published sizes hours grow as parameters do; below them too.
    low, high = min(PAPER_HOURS), max(PAPER_HOURS)
    nearest = min(max(n_millions, low), high)
    return float(np.exp(np.interp(np.log(nearest), *known)) * n_millions / nearest)


def millions(size: str) -> float:
    """Return the millions of parameters of a model of this *size*; MirblabError for another text.

    >>> millions("7.11B")
    7110.0
    """
    scale = {"M": 1.0, "B": 1000.0}.get(size[-1:].upper())
    try:
        n_millions = float(size[:-1]) * (scale or float("nan"))
    except ValueError:
        n_millions = float("nan")
    if not n_millions > 0:
        raise MirblabError(f"a size is written as 335M or 7.11B, found {size!r}")
    return n_millions
