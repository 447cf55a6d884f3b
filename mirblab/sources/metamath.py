"""metamath: a Metamath database to two collections: statement to what its proof uses, comment to statement."""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from mirblab import paths
from mirblab.errors import MirblabError
from mirblab.sources import metamath_database as databases
from mirblab.sources import origin as origins
from mirblab.sources import premises, shape
from mirblab.sources.metamath_database import Assertion, Database
from mirblab.sources.origin import Origin
from mirblab.sources.premises import Stated
from mirblab.sources.shape import Parts, Row

URL = "https://github.com/metamath/set.mm"
LICENCE = "CC0-1.0"
N_HUBS_SHOWN = 20
_OLD = re.compile(r"(?:OLD|ALT)[A-Z0-9]*$")
_NOTE = re.compile(
    r"\s*\((?:Contributed|Revised|Proof (?:shortened|modification)|New usage|The proof was shortened|Moved)\b"
    r"[^()]*(?:\([^()]*\)[^()]*)*\)"
)
_LABEL_MARK = re.compile(r"(?:^|(?<=\s))~\s+(?=\S)")
_FORMULA = re.compile(r"`[^`]*`")
_SOURCE = re.compile(r"(?:[A-Z]\w+ )?\S+ (?:\([^)]*\) )?(?:of|in) \[\w+\]|\[\w+\]|pp?\. [\d-]+")


def build(origin: str | Path | None, out: Path, *, seed: int = 0) -> list[Path]:
    """Write metamath-premise and metamath-informal under *out*, print what was left out, return the folders.

    *origin* is a database (a .mm file, or that gzipped), a folder, archive or git URL with one, or None for a
    shallow clone of the public set.mm. *seed* draws the test queries. The same input and seed give the same
    bytes. Raises MirblabError for what is no Metamath. The licence in the card is that of set.mm.
    """
    out = Path(out)
    with _opened(origin) as (found, path), origins.together(out, tuple(COLLECTIONS)) as folders:
        database = databases.read(path)
        if not database.assertions:
            raise MirblabError(f"{path.name} asserts nothing that begins with '|-'; is it a logic in Metamath?")
        content = f"blake2b:{database.digest}"
        for folder in folders:
            derive, about = COLLECTIONS[folder.name]
            parts, more = derive(database, seed)
            about = about | {"content": content, "seed": seed, "database": path.name, **more}
            shape.save(folder, parts, about, found, builder="metamath", revision=content, licence=LICENCE)
    return [out / name for name in COLLECTIONS]


@contextlib.contextmanager
def _opened(origin: str | Path | None) -> Iterator[tuple[Origin, Path]]:
    """Yield what *origin* stands for, and the database in it."""
    path = None if origin is None else paths.given(origin)
    if path is not None and path.is_file() and path.name.endswith((".mm", ".mm.gz")):
        yield Origin(path.parent, URL, "", path.name), path
        return
    with origins.opened(origin, URL) as found:
        inside = [found.folder, *sorted(folder for folder in found.folder.iterdir() if folder.is_dir())]
        known = [path for folder in inside for suffix in ("mm", "mm.gz") for path in sorted(folder.glob(f"*.{suffix}"))]
        named = [path for path in known if path.name in ("set.mm", "set.mm.gz")]
        if len(named or known) != 1:
            names = ", ".join(path.name for path in (named or known)[:8]) or "none"
            raise MirblabError(f"looked for set.mm, or one database *.mm, found {names}; name the file with --from")
        yield found, (named or known)[0]


def _premises(database: Database, seed: int) -> tuple[Parts, Row]:
    """Return statement to the assertions that its proof uses, and what the card says of hubs."""
    left_out = Counter(database.odd)
    stated = [
        Stated(each.label, "", each.text, [] if each.kind == "unproved" else each.uses, each.order,
               {"kind": each.kind, "section": each.section}, _bar(each))
        for each in database.assertions
    ]  # fmt: skip
    parts = premises.parts(stated, seed, left_out)
    hubs = premises.hubs(stated)
    parts.judged["test_nohub"] = premises.without(parts.judged["test"], hubs, left_out)
    n_judged = sum(len(item.uses) for item in stated)
    share = round(sum(hubs.values()) / max(1, n_judged), 4)
    return parts, {"hubs": {"number": len(hubs), "share": share, "most_used": dict([*hubs.items()][:N_HUBS_SHOWN])}}


def _bar(each: Assertion) -> str:
    """Return why an assertion may not be a query of test or dev, "" when it may."""
    if each.in_mathbox:
        return "in a mathbox"
    is_old = _OLD.search(each.label) or "obsolete" in each.comment.casefold()
    return "an old or alternative version" if is_old else ""


def _informal(database: Database, seed: int) -> tuple[Parts, Row]:
    """Return comment to statement; what does not describe one statement alone is left out."""
    left_out = Counter(database.odd)
    comments = {each.label: prose(each.comment) for each in database.assertions}
    repeated, texts = Counter(comments.values()), Counter(each.text for each in database.assertions)
    asked: list[Assertion] = []
    for each in database.assertions:
        reason = _bar(each) or _unfit(comments[each.label], each.label)
        reason = reason or ("the comment of another one" if repeated[comments[each.label]] > 1 else "")
        reason = reason or ("the text of another one" if texts[each.text] > 1 else "")
        left_out[f"assertions that are no query: {reason}"] += bool(reason)
        asked += [] if reason else [each]
    where = premises.splits([each.label for each in asked], seed)
    judged: dict[str, list[tuple[str, str, int]]] = {split: [] for split in (*premises.SIZES, "train")}
    for each in asked:
        judged[where[each.label]].append((f"{each.label}-comment", each.label, 1))
    queries = ({"_id": f"{each.label}-comment", "text": comments[each.label], "metadata": _metadata(each)}
               for each in asked)  # fmt: skip
    corpus = ({"_id": each.label, "title": "", "text": each.text, "metadata": _metadata(each)}
              for each in database.assertions)  # fmt: skip
    return Parts(corpus, queries, judged, left_out), {}


def _metadata(each: Assertion) -> Row:
    return {"order": each.order, "kind": each.kind, "section": each.section}


def prose(comment: str) -> str:
    """Return a comment without the marks of labels and the notes on who contributed, shortened or revised what.

    >>> prose("Inference form of ~ con3 . (Contributed by NM, 5-Aug-1993.) (Proof shortened by X Y, 3-Jan-2013.)")
    'Inference form of con3 .'
    """
    return " ".join(_LABEL_MARK.sub("", _NOTE.sub("", comment)).split())


def _unfit(text: str, label: str) -> str:
    """Return why a comment is no query for its assertion, "" when it is one."""
    if label in {word.strip(".,;:()\"'") for word in text.split()}:
        return "the comment names the assertion itself"
    if text.startswith("Lemma for"):
        return 'the comment begins with "Lemma for"'
    n_words = len(_SOURCE.sub(" ", _FORMULA.sub(" ", text)).split())
    return "" if n_words >= 5 else "the comment has under five words, formulas and sources not counted"


COLLECTIONS = {
    "metamath-premise": (
        _premises,
        {
            "title": "Metamath: statement to the assertions that its proof uses",
            "task": "Premise Retrieval",
            "instruction": "Given a Metamath statement, retrieve the assertions that are useful for proving it.",
            "candidates": "earlier",
        },
    ),
    "metamath-informal": (
        _informal,
        {
            "title": "Metamath: comment to the formal statement that it describes",
            "task": "Semantic Statement Retrieval",
            "instruction": "Given a mathematical query, retrieve relevant theorems.",
        },
    ),
}
