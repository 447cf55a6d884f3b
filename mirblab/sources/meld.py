"""meld: MELD's pairs of equivalent statements."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from mirblab.core.errors import MirblabError
from mirblab.core.terminal import say
from mirblab.core.text_files import read_json
from mirblab.core.wording import first_names
from mirblab.sources.shared import builder
from mirblab.sources.shared import release as releases
from mirblab.sources.shared.builder import CollectionRows, Judgement, Row, replace_folders
from mirblab.sources.shared.readers import read_field, read_text_list, require_object
from mirblab.sources.shared.release import Origin, Release, fetch_dataset

HUB = "uw-math-ai/MELD-dataset"
ADDRESS = f"https://huggingface.co/datasets/{HUB}"
LICENCE = "Apache-2.0"
NAME = "meld"
FILE, FILE_NAME = r"adversarial_theorem_pairs\w*\.json", "adversarial_theorem_pairs_2.json"
PUBLISHED = "270 pairs of 9 pairs of fields, 541 distractors"


def build(origin: str | Path | None, out: Path, *, revision: str = "") -> list[Path]:
    """Write the collection `meld` under *out* and return its folder.

    *origin* is a folder or an archive with the published file of pairs, which has the distractors, too, or that file;
    without one it comes from the Hub at the commit *revision*. A statement is a query and a document, with the name of
    its pair and -1 or -2; a distractor is a document. The field, there called framing, is the tag.
    """
    out = Path(out)
    with open_pairs(origin, revision) as (release, licence), replace_folders(out, (NAME,)) as [folder]:
        path = release.one(FILE, FILE_NAME)
        rows, counts = read_pairs(path)
        is_whole = counts == PUBLISHED
        shown = f"as published: {counts}" if is_whole else f"differs from the paper: {counts} instead of {PUBLISHED}"
        about, hashed = builder.read_about(NAME) | {"published": shown}, releases.hash_files([path])
        options: Row = {"revision": revision} if revision else {}
        builder.write_collection(
            folder, rows, about, release.origin, builder=NAME, revision=hashed, licence=licence, options=options
        )
    say(f"  {shown}")
    return [out / NAME]


@contextlib.contextmanager
def open_pairs(origin: str | Path | None, revision: str) -> Iterator[tuple[Release, str]]:
    """Yield the release at *origin* or, without it, of the Hub at *revision*, and its licence."""
    if origin:
        if revision:
            raise MirblabError(f"a revision is for the Hub; --from {origin} is read as it is, so leave one of them out")
        with releases.open_release(origin, FILE_NAME, ADDRESS) as release:
            yield release, LICENCE
        return
    if not re.fullmatch("[0-9a-f]{40}", revision):
        raise MirblabError(
            f"give a copy of {ADDRESS} with --from FOLDER, or the commit to fetch, of 40 hexadecimal digits: "
            f"mirblab build meld --set revision=COMMIT; found '{revision}'"
        )

    def choose(names: Iterable[str], where: str) -> dict[str, list[str]]:
        listed = sorted(names)
        if not (pairs := [name for name in listed if re.fullmatch(FILE, name)]):
            raise MirblabError(f"{where} has no {FILE_NAME}; found {first_names(listed, 8)}")
        return {"pairs": pairs}

    instead = "copy its files here and run: mirblab build meld --from FOLDER"
    fetched = fetch_dataset(HUB, revision, choose=choose, instead=instead)
    fetched.checked("mirblab build meld")
    files = {name: fetched.folder / name for name in fetched.parts["pairs"]}
    yield Release(Origin(fetched.folder, ADDRESS, fetched.commit, ""), files), fetched.licence or LICENCE


def read_pairs(path: Path) -> tuple[CollectionRows, str]:
    """Return the collection in the published file, in its order, and what it counts; MirblabError names the pair."""
    top = require_object(read_json(path), str(path))
    docs, judged, fields = list[Row](), list[Judgement](), set[tuple[str, ...]]()
    for number, value in enumerate(read_field(top, "pairs", list, str(path)), 1):
        place = f"{path}, pair {number}"
        pair = require_object(value, place)
        entries = [require_object(pair.get(key), f"{place}, {key}") for key in ("entry_1", "entry_2")]
        framings, texts = (
            [str(read_field(entry, key, str, place)).strip() for entry in entries] for key in ("framing", "statement")
        )
        for key, given in (("framing", framings), ("statement", texts)):
            if not all(given):
                raise MirblabError(f"{place}, entry_{1 + given.index('')}: '{key}' must not be empty")
        if (identifier := read_field(pair, "id", int, place)) < 1:
            raise MirblabError(f"{place}: 'id' must be at least 1, found '{identifier}'")
        fields.add(tuple(framings))
        stem = f"{'--'.join(map(_name_part, framings))}--{identifier:03}"
        docs += [_document(f"{stem}-{1 + side}", texts[side], framings[side]) for side in (0, 1)]
        judged += [(f"{stem}-1", f"{stem}-2", 1), (f"{stem}-2", f"{stem}-1", 1)]
    queries = [{key: row[key] for key in ("_id", "text", "tags")} for row in docs]
    others, place = read_field(top, "distractors", dict, str(path)), f"{path}, distractors"
    alone = [(field, read_text_list(others, field, place)) for field in others]
    for field, statements in alone:
        stem = f"{_name_part(field)}--d"
        docs += [_document(f"{stem}{number:02}", text.strip(), field) for number, text in enumerate(statements, 1)]
    n_alone = len(docs) - len(queries)
    counts = f"{len(queries) // 2:,} pairs of {len(fields)} pairs of fields, {n_alone:,} distractors"
    return CollectionRows(docs, queries, {"test": judged}), counts


def _document(name: str, text: str, field: str) -> Row:
    return {"_id": name, "title": "", "text": text, "tags": [field]}


def _name_part(field: str) -> str:
    return re.sub(r"[^\w.]+", "-", field).strip("-.").lower()
