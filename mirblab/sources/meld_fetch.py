"""meld_fetch: the published set of MELD from a folder, an archive, or the Hub at a commit that the user names."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from mirblab.errors import MirblabError
from mirblab.sources import fetch
from mirblab.sources import release as releases
from mirblab.sources.meld_rows import FORMS
from mirblab.sources.origin import Origin
from mirblab.sources.release import Release

HUB = "uw-math-ai/MELD-dataset"
ADDRESS = f"https://huggingface.co/datasets/{HUB}"


@contextlib.contextmanager
def opened(origin: str | Path | None, revision: str) -> Iterator[tuple[Release, str]]:
    """Yield the files, and their licence ("unknown" for a local copy), of *origin*, or of the Hub at *revision*.

    Raises MirblabError for neither or both of the two, and for a revision that is no commit.
    """
    if origin:
        if revision:
            raise MirblabError(f"a revision is for the Hub; --from {origin} is read as it is, so leave one of them out")
        with releases.opened(origin, "the tables of MELD", ADDRESS) as release:
            yield release, "unknown"
        return
    if not re.fullmatch("[0-9a-f]{40}", revision):
        raise MirblabError(
            f"give a copy of {ADDRESS} with --from FOLDER, or the commit to fetch, of 40 hexadecimal digits: "
            f"mirblab build meld --set revision=COMMIT; found '{revision}'"
        )
    instead = "copy its files here and run: mirblab build meld --from FOLDER"
    found = fetch.dataset(HUB, revision, choose=_tables, instead=instead)
    found.checked("mirblab build meld")
    files = {name: found.folder / name for name in sorted(found.parts["tables"])}
    yield Release(Origin(found.folder, ADDRESS, found.commit, ""), files), found.licence or "unknown"


def _tables(names: Iterable[str], where: str) -> dict[str, list[str]]:
    known = sorted(names)
    tables = [name for name in known if name.endswith(FORMS)]
    if not tables:
        raise MirblabError(f"{where} has no {', '.join(FORMS)} file; found {', '.join(known[:12]) or 'nothing'}")
    return {"tables": tables}
