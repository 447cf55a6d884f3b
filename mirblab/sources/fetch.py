"""fetch: a dataset from the Hub at a pinned revision, with every file checked."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from mirblab import network
from mirblab.errors import MirblabError
from mirblab.sources import layout

Choose = Callable[[Iterable[str], str], dict[str, list[str]]]


@dataclass(frozen=True)
class Found:
    """A dataset on this machine: its folder, the files of each part, its commit ("" when unknown) and licence."""

    folder: Path
    parts: dict[str, list[str]]
    commit: str = ""
    licence: str = ""
    sums: dict[str, str] = field(default_factory=dict)

    def paths(self, part: str) -> list[Path]:
        """Return the files of a part, in order."""
        return [self.folder / name for name in self.parts[part]]

    def checked(self, again: str) -> dict[str, str]:
        """Return the SHA-256 of every file, in order of the parts, checked against what the Hub publishes of it.

        Raises MirblabError for a damaged file; *again* is the command that fetches it anew.
        """
        sums: dict[str, str] = {}
        for path in (path for part in self.parts for path in self.paths(part)):
            inner = path.relative_to(self.folder).as_posix()
            plain, git = layout.digests(path)
            wanted = self.sums.get(inner) or plain
            if wanted not in (plain, git):
                raise MirblabError(
                    f"{path} is damaged: the Hub publishes the checksum {wanted} for it, found {plain} (git: {git}); "
                    f"remove it and run: {again}"
                )
            sums[inner] = plain
        return sums


def dataset(hub: str, revision: str, *, choose: Choose, instead: str) -> Found:
    """Return the dataset *hub* at *revision* from the Hub, or from its cache when there is no network.

    *choose* takes the names of all files, and what to call the dataset in messages, and returns the files to fetch by
    part, or raises when one is lacking. Files that are complete in the library's cache are not fetched again. *instead*
    says what else one can do, for the message when nothing can be had. Raises MirblabError for that, and for a server
    that answers with another commit. No code of the dataset is run.
    """
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HfHubHTTPError, HTTPError

    where = f"{hub} at revision {revision}"
    if silence := network.hub_silence():
        return _cached(hub, revision, where, choose, f"{silence}; {instead}", OSError(silence))
    try:
        info = HfApi().dataset_info(hub, revision=revision, files_metadata=True, timeout=20)
    except (HTTPError, OSError) as error:
        status = error.response.status_code if isinstance(error, HfHubHTTPError) else 0
        if 400 <= status < 500 and status not in (408, 429):
            raise MirblabError(f"the Hub refuses {where}: {_first(error)}; {instead}") from error
        return _cached(hub, revision, where, choose, f"{_first(error)}; {instead}", error)
    if info.sha != revision:
        raise MirblabError(
            f"the Hub answers with commit {info.sha} when asked for {where}; nothing was taken: try again later"
        )
    sums = {file.rfilename: file.lfs.sha256 if file.lfs else file.blob_id for file in info.siblings or []}
    parts = choose(sums, where)
    folder = _download(hub, revision, [name for names in parts.values() for name in names], instead)
    licence = getattr(info.card_data, "license", None) or ""
    return Found(folder, parts, revision, str(licence), sums)


def _download(hub: str, revision: str, names: list[str], instead: str) -> Path:
    """Return the folder of the snapshot, after its files were fetched one after the other."""
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import HTTPError
    from tqdm.auto import tqdm

    bars = partial(tqdm, disable=True) if os.environ.get("MIRBLAB_PROGRESS") == "0" else None
    folder = Path()
    for name in names:
        try:
            path = Path(hf_hub_download(hub, name, repo_type="dataset", revision=revision, tqdm_class=bars))
        except (HTTPError, OSError) as error:
            raise MirblabError(
                f"{name} of {hub} at revision {revision} could not be fetched whole: {_first(error)}; "
                f"try again, what is complete is kept; else {instead}"
            ) from error
        folder = path.parents[name.count("/")]
        if folder.name != revision:
            raise MirblabError(
                f"the Hub sent {name} of {hub} from commit {folder.name}, not {revision}; "
                "it is not used: try again later"
            )
    return folder


def _cached(hub: str, revision: str, where: str, choose: Choose, reason: str, error: Exception) -> Found:
    """Return the dataset from the library's cache, when all of it is there."""
    from huggingface_hub import snapshot_download

    try:
        folder = Path(snapshot_download(hub, repo_type="dataset", revision=revision, local_files_only=True))
        parts = choose(layout.inside(folder), str(folder))
    except (OSError, MirblabError):
        raise MirblabError(f"{where} is not on this machine and the Hub cannot be reached: {reason}") from error
    return Found(folder, parts, revision)


def _first(error: Exception) -> str:
    """Return the first line of a library's message, without a full stop."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0].rstrip(".: ")
