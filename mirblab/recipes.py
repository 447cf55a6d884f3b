"""recipes: what a system's settings may say, and systems composed by their names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from mirblab.errors import MirblabError, suggest, unknown
from mirblab.fusion import METHODS
from mirblab.measures import parse

_DEEPEST = 10  # systems within each other
DEPTH = 10  # the published benchmark reranks ten documents
APPROACH0 = "approach0"
SIGNS = {"fusion": "+", "rerank": ">", APPROACH0: ">"}
_WEIGHTS = re.compile(r"\d+(?:\.\d+)?(?:,\d+(?:\.\d+)?)+")
_OPTIONS = re.compile(r"(?P<depth>\d+)(?:,(?P<max_length>\d+)t)?(?P<instructed>,instructed)?")

# What each method of fusion may set, beside `of`, `method` and `depth`.
FUSIONS = dict.fromkeys(METHODS, ()) | {
    "rrf": ("k",), "linear": ("weights", "span"), "sum": ("weights",), "logisr": ("sigma",),
    "cv": ("measure", "folds", "seed", "resamples", "span"),
}  # fmt: skip
_EVERY_FUSION = ("kind", "label", "paper", "of", "method", "depth")

# What each kind of system may set, and of what type; * must be there.
KINDS: dict[str, dict[str, type | tuple[type, ...]]] = {
    "bm25": {
        "method": str, "k1": (int, float), "b": (int, float), "delta": (int, float), "tokenizer": str, "engine": str,
        "compat": str,
    },
    "dense": {"encoder*": str, "compat": str},
    "late": {"encoder*": str, "dimensions": int, "factor": int, "seed": int, "compat": str},
    "fusion": {
        "of*": list, "method": str, "k": (int, float), "sigma": (int, float), "weights": list, "measure": str,
        "folds": int, "seed": int, "resamples": int, "span": str, "depth": int,
    },
    "structure": {"weights": dict, "b": (int, float)},
    APPROACH0: {"first*": str, "depth*": int},
    "rerank": {"first*": str, "reranker*": str, "depth*": int, "max_length": int, "instruction": str},
}  # fmt: skip


def checked(name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the *settings* of the system *name* when they can be used; MirblabError with a suggestion otherwise.

    >>> checked("own", {"kind": "bm25", "k1": 2})
    {'kind': 'bm25', 'k1': 2}
    >>> checked("own", {"kind": "bm25", "k_1": 2})
    Traceback (most recent call last):
    mirblab.errors.MirblabError: system 'own' (bm25) cannot set 'k_1'; did you mean 'k1'?
    """
    kind = str(settings.get("kind"))
    if kind not in KINDS:
        raise unknown(f"kind of system '{name}' called", kind, KINDS)
    known = {key.rstrip("*"): types for key, types in KINDS[kind].items()}
    for key, value in settings.items():
        if key in ("kind", "label", "paper"):
            if not isinstance(value, str):
                raise MirblabError(f"system '{name}': '{key}' cannot be {value!r}; write text in quotes")
            continue
        if key not in known:
            more = suggest(key, known) or f"; it takes {', '.join(known)}"
            raise MirblabError(f"system '{name}' ({kind}) cannot set '{key}'{more}")
        if not isinstance(value, known[key]) or isinstance(value, bool):
            raise MirblabError(f"system '{name}' ({kind}): '{key}' cannot be {value!r}; correct the entry")
    absent = [key[:-1] for key in KINDS[kind] if key.endswith("*") and key[:-1] not in settings]
    if absent:
        raise MirblabError(f"system '{name}' ({kind}) lacks {', '.join(absent)}; add what is missing to the entry")
    if kind == "fusion":
        _check_fusion(name, settings)
    return dict(settings)


def _check_fusion(name: str, settings: Mapping[str, Any]) -> None:
    method, of = settings.get("method", "rrf"), settings["of"]
    if not all(isinstance(part, str) for part in of):
        raise MirblabError(f"system '{name}' (fusion): of lists the names of systems, found {of!r}")
    if method not in FUSIONS:
        raise unknown("fusion method", str(method), FUSIONS)
    if len(of) < 2:
        raise MirblabError(f"system '{name}' (fusion) is of {len(of)} system; name two or more")
    for key in settings:
        if key not in (*_EVERY_FUSION, *FUSIONS[method]):
            users = [known for known, keys in FUSIONS.items() if key in keys]
            raise MirblabError(f"system '{name}' (fusion): the method '{method}' has no '{key}', '{users[0]}' has")
    weights = settings.get("weights", [])
    if "weights" in FUSIONS[method] and len(weights) != len(of):
        raise MirblabError(f"system '{name}' (fusion): {len(of)} systems need as many weights; found {len(weights)}")
    if any(isinstance(weight, bool) or not isinstance(weight, (int, float)) or not weight >= 0 for weight in weights):
        raise MirblabError(f"system '{name}' (fusion): weights are numbers from 0 up; found {weights!r}")
    if settings.get("folds", 2) < 2:
        raise MirblabError(f"system '{name}' (fusion): there are two folds or more, found {settings['folds']}")
    for measure in settings.get("measure", "nDCG").split(","):
        parse(measure)


def learns(settings: Mapping[str, Any]) -> bool:
    """Return whether a system takes something from the judgements: its weights are cross-validated."""
    return settings.get("method") == "cv"


def remark(settings: Mapping[str, Any]) -> str:
    """Return what the label of a fusion says of its method; nothing for reciprocal ranks, the usual one.

    >>> remark({"kind": "fusion", "method": "cv"})
    ' (weights cross-validated)'
    """
    method = settings.get("method", "rrf") if settings["kind"] == "fusion" else "rrf"
    return {"rrf": "", "cv": " (weights cross-validated)"}.get(method, f" ({method})")


def options(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings without what only names the system: its kind and its labels."""
    return {key: value for key, value in settings.items() if key not in ("kind", "label", "paper")}


def fusion_options(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a fusion's settings say to its method.

    >>> fusion_options({"kind": "fusion", "of": ["a", "b"], "k": 20})
    {'k': 20}
    """
    known = FUSIONS[settings.get("method", "rrf")]
    return {key: value for key, value in settings.items() if key in known}


def parts(settings: Mapping[str, Any]) -> list[str]:
    """Return the names of the systems that a system is composed of; none for one that stands alone.

    >>> parts({"kind": "fusion", "of": ["bm25", "minilm"]})
    ['bm25', 'minilm']
    """
    return [*settings.get("of", []), *([settings["first"]] if "first" in settings else [])]


def check_circle(name: str, entries: Mapping[str, Mapping[str, Any]], above: tuple[str, ...] = ()) -> None:
    """Raise MirblabError when a system is composed of itself, or of more systems within each other than are read.

    >>> check_circle("a", {"a": {"kind": "fusion", "of": ["b", "c"]}, "b": {"kind": "fusion", "of": ["a", "c"]}})
    Traceback (most recent call last):
    mirblab.errors.MirblabError: system 'a' is composed of itself (a of b of a); name other parts
    """
    if name in above:
        trail = " of ".join([*above[above.index(name) :], name])
        raise MirblabError(f"system '{name}' is composed of itself ({trail}); name other parts")
    if len(above) > _DEEPEST:
        raise MirblabError(f"system '{above[0]:.60}' has more than {_DEEPEST} systems within each other; compose fewer")
    settings = checked(name, entries[name]) if name in entries else composed(name)
    for part in parts(settings or {}):
        check_circle(part, entries, (*above, name))


def composed(name: str) -> dict[str, Any] | None:
    """Return the settings that a composed *name* stands for, or None when it is not one.

    >>> composed("bm25>maxsim")
    {'kind': 'rerank', 'first': 'bm25', 'reranker': 'maxsim', 'depth': 10}
    >>> composed("bm25+minilm+e5")
    {'kind': 'fusion', 'of': ['bm25', 'minilm', 'e5'], 'method': 'rrf', 'k': 60}
    >>> composed("bm25+minilm@0.3,0.7")
    {'kind': 'fusion', 'of': ['bm25', 'minilm'], 'method': 'linear', 'weights': [0.3, 0.7]}
    """
    first, sign, second = name.rpartition(">")
    if sign:
        reranker, _, options = second.partition("@")
        found = _OPTIONS.fullmatch(options or str(DEPTH))
        if not (first and reranker and found) or int(found["depth"]) < 1:
            raise MirblabError(
                f"'{name}' names no reranked system; write first>reranker@depth, for example bm25>maxsim@20"
            )
        more = {"max_length": int(found["max_length"] or 0), "instruction": "card" if found["instructed"] else ""}
        chosen = {key: value for key, value in more.items() if value}
        if reranker == APPROACH0:
            return checked(name, {"kind": APPROACH0, "first": first, "depth": int(found["depth"]), **chosen})
        return {"kind": "rerank", "first": first, "reranker": reranker, "depth": int(found["depth"]), **chosen}
    return _fused(name)


def _fused(name: str) -> dict[str, Any] | None:
    """Return the settings of a fusion named a+b, a+b@method or a+b@0.3,0.7; None for another name."""
    head, sign, tail = name.rpartition("@")
    if not sign or "+" in tail:  # an imported system may have @ in its name
        head, tail = name, "rrf"
    of = head.split("+")
    if len(of) < 2 or not all(of):
        return None
    found: dict[str, Any] = {"kind": "fusion", "of": of, "method": tail}
    if _WEIGHTS.fullmatch(tail):
        found |= {"method": "linear", "weights": [float(weight) for weight in tail.split(",")]}
    elif tail == "rrf":
        found["k"] = 60
    elif tail not in FUSIONS:
        raise MirblabError(f"'{name}': {unknown('fusion method', tail, FUSIONS)}")
    if tail in ("linear", "sum"):
        raise MirblabError(
            f"'{name}' has no weights; write {head}@{','.join(['0.5'] * len(of))}, or @cv to choose them"
        )
    return checked(name, found)


def reranked(first: str, reranker: str, depth: int, max_length: int = 0, instruction: str = "") -> str:
    """Return the name of the system that reranks *first*; MirblabError for a depth or a length below 1.

    >>> reranked("bm25", "maxsim", 20, 128, "card")
    'bm25>maxsim@20,128t,instructed'
    """
    if depth < 1:
        raise MirblabError(f"the depth of a reranker must be at least 1, found {depth}")
    if max_length < 0 or instruction not in ("", "card"):
        raise MirblabError(
            f'a reranker takes max_length from 0 and instruction "" or "card", found {max_length}, {instruction!r}'
        )
    more = (f",{max_length}t" if max_length else "") + (",instructed" if instruction else "")
    return f"{first}>{reranker}@{depth}{more}"


def pair_options(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a reranked system's settings say of the pairs: max_length (0: the registry's) and instruction."""
    return {"max_length": settings.get("max_length", 0), "instruction": settings.get("instruction", "")}
