"""layout: which files of a dataset on the Hub, or of a folder laid out like it, hold corpus, queries and judgements."""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Iterable
from pathlib import Path

from mirblab import paths
from mirblab.errors import MirblabError

PARTS = ("corpus", "queries", "qrels", "excluded_ids")
_FORMS = (".jsonl", ".jsonl.gz", ".tsv", ".parquet")
# As local folders, configurations and their converted copies are named: qrels are the config `default`, split `test`.
_STEMS = {part: rf"(?:data/)?{part}" for part in PARTS} | {"qrels": r"(?:(?:data/)?qrels/|default/|data/)?test"}
_SHARD = re.compile(r"(?:-|(?<=/)|^)(\d+)(?:-of-(\d+))?$")


def parts_of(names: Iterable[str], where: str) -> dict[str, list[str]]:
    """Return the files of each part, shards in their order; a part that is not there has none.

    *names* are paths inside the dataset, with "/"; *where* names it in messages. Where a part is there in several
    forms, JSON lines go before tab-separated lines, and those before parquet. Raises MirblabError for a missing
    shard and for a part with several splits.

    >>> found = parts_of(["README.md", "corpus.jsonl", "queries/queries-00000-of-00001.parquet", "qrels/test.tsv"], "")
    >>> found["queries"], found["excluded_ids"]
    (['queries/queries-00000-of-00001.parquet'], [])
    """
    known = list(names)
    return {part: _files(part, known, where) for part in PARTS}


def _files(part: str, names: list[str], where: str) -> list[str]:
    for form in _FORMS:
        pattern = re.compile(rf"{_STEMS[part]}(?:/[^.]*|-\d+-of-\d+)?{re.escape(form)}")
        found = sorted(name for name in names if pattern.fullmatch(name))
        if found:
            _check_shards([name.removesuffix(form) for name in found], part, where)
            return found
    return []


def _check_shards(stems: list[str], part: str, where: str) -> None:
    """Raise MirblabError unless the files are all shards of one split."""
    kinds = sorted({_SHARD.sub("", stem) for stem in stems})
    if len(kinds) > 1:
        raise MirblabError(f"{where} has several splits of {part}: {', '.join(kinds)}; keep one of them")
    shards = [match for stem in stems if (match := _SHARD.search(stem))]
    wanted = {int(match[2]) for match in shards if match[2]}
    have = {int(match[1]) for match in shards}
    lacks = next(number for number in itertools.count() if number not in have)
    if wanted and lacks < max(wanted):
        raise MirblabError(f"{where} lacks shard {lacks} (from 0) of the {max(wanted)} of {part}; complete the copy")


def needed(names: Iterable[str], where: str, *, restricted: bool) -> dict[str, list[str]]:
    """Return the files of each part as `parts_of`; MirblabError, with what was looked for, for a needed one without."""
    known = list(names)
    found = parts_of(known, where)
    _check(found, known, where, restricted=restricted)
    return found


def _check(found: dict[str, list[str]], names: Iterable[str], where: str, *, restricted: bool) -> None:
    looked = {"qrels": "qrels/test.tsv, qrels/test.jsonl, default/test-*.parquet or data/test-*.parquet"}
    for part in PARTS[:4] if restricted else PARTS[:3]:
        if not found[part]:
            wanted = looked.get(part, f"{part}.jsonl, {part}/*.parquet or data/{part}-*.parquet")
            shown = sorted(names)[:12]
            raise MirblabError(f"{where} has no {part}: looked for {wanted}; found {', '.join(shown) or 'nothing'}")


def local(origin: str, hub: str, name: str, *, alone: bool) -> Path:
    """Return the folder in *origin* that holds the dataset *hub*: `msedup`, `hcju/msedup`, `hcju__msedup`, our *name*.

    *origin* may be that folder itself when it is *alone* wanted. MirblabError when it is not there.
    """
    folder = paths.given(origin)
    if not folder.is_dir():
        raise MirblabError(f"{folder} is no folder; give one with {hub} in it, laid out as on the Hub")
    tried = [hub.partition("/")[2], hub, hub.replace("/", "__"), name]
    for inner in tried:
        if (folder / inner).is_dir():
            return folder / inner
    if is_one(folder) and alone:
        return folder
    found = ", ".join(sorted(path.name for path in folder.iterdir())[:12]) or "nothing"
    one = "it is one dataset itself: build that by its own name; " if is_one(folder) else ""
    raise MirblabError(f"{folder} has no folder {', '.join(tried[:-1])} or {tried[-1]}; {one}found {found}")


def is_one(folder: Path) -> bool:
    """Return whether a folder is a dataset itself: it has a corpus."""
    return bool(_files("corpus", inside(folder), str(folder)))


def inside(folder: Path) -> list[str]:
    """Return the files in a folder at any depth, as paths with "/"; hidden ones are left out."""
    found = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return sorted(path.as_posix() for path in found if not any(part.startswith(".") for part in path.parts))


def digests(path: Path) -> tuple[str, str]:
    """Return a file's SHA-256 and the SHA-1 by which git knows it, in one pass; the Hub publishes one of the two."""
    plain, git = hashlib.sha256(), hashlib.sha1(usedforsecurity=False)
    git.update(b"blob %d\0" % path.stat().st_size)
    with open(path, "rb") as file:
        while piece := file.read(1 << 20):
            plain.update(piece)
            git.update(piece)
    return plain.hexdigest(), git.hexdigest()
