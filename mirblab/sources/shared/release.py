"""release: the files of a release: a folder, an archive, a git repository, the Hub."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import os
import re
import subprocess
import tarfile
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from mirblab.core import network, paths, text_files
from mirblab.core.errors import MirblabError

_PACKED = re.compile(r"\.gz$", re.IGNORECASE)
_URL = re.compile(r"(?:https?|ssh|git|file)://|[\w.-]+@[\w.-]+:")
_PLAIN = (".json", ".jsonl", ".json.gz", ".jsonl.gz", ".tsv", ".parquet")
PARTS = ("corpus", "queries", "qrels", "excluded_ids")
_FORMS = (".jsonl", ".jsonl.gz", ".tsv", ".parquet")
# As local folders, configurations and their converted copies are named: qrels are the config `default`, split `test`.
_STEMS = {part: rf"(?:data/)?{part}" for part in PARTS} | {"qrels": r"(?:(?:data/)?qrels/|default/|data/)?test"}
_SHARD = re.compile(r"(?:-|(?<=/)|^)(\d+)(?:-of-(\d+))?$")
Choose = Callable[[Iterable[str], str], dict[str, list[str]]]


@dataclass(frozen=True)
class Origin:
    """Where raw material lies and comes from: `commit` is "" when unknown; `shown` is free of this machine's paths."""

    folder: Path
    source: str
    commit: str
    shown: str


@dataclass(frozen=True)
class Release:
    """What was given: where it comes from, and its files by their path below the folder, in order."""

    origin: Origin
    files: Mapping[str, Path]

    def matching(self, pattern: str) -> list[Path]:
        """Return the files whose whole path below the folder, or its last parts, match the regular expression."""
        return [path for name, path in self.files.items() if re.fullmatch(rf"(?:.*/)?(?:{pattern})", name)]

    def one(self, pattern: str, what: str) -> Path:
        """Return the only file that matches; FileNotFoundError for none, MirblabError for several, naming *what*."""
        found = self.matching(pattern)
        if len(found) > 1:
            raise MirblabError(f"{self.origin.folder} has {' and '.join(map(str, found))}; keep one {what}")
        if not found:
            raise FileNotFoundError(f"no {what} in {self.origin.folder}; found {self.shown()}")
        return found[0]

    def shown(self) -> str:
        """Return the first names, for messages."""
        names = list(self.files)
        return (", ".join(names[:8]) or "nothing") + (f", and {len(names) - 8} more" if len(names) > 8 else "")


@dataclass(frozen=True)
class DatasetFiles:
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
            plain, git = file_digests(path)
            wanted = self.sums.get(inner) or plain
            if wanted not in (plain, git):
                raise MirblabError(
                    f"{path} is damaged: the Hub publishes the checksum {wanted} for it, found {plain} (git: {git}); "
                    f"remove it and run: {again}"
                )
            sums[inner] = plain
        return sums


def split_origin(origin: str | Path) -> tuple[Path, ...]:
    """Return the folders and files that *origin* names: one, or several joined as in `PATH` (`:`, on Windows `;`).

    Raises FileNotFoundError for one that does not exist.

    >>> [place.name for place in split_origin(os.curdir)]
    ['']
    """
    whole = paths.expand_home(origin)
    if whole.exists():
        return (whole,)
    places = [paths.expand_home(part) for part in str(origin).split(os.pathsep) if part]
    for place in places or [whole]:
        if not place.exists():
            raise FileNotFoundError(f"no {place}; give a folder, or several joined by '{os.pathsep}'")
    return tuple(places)


def files_below(places: Iterable[Path]) -> list[Path]:
    """Return the files anywhere below the *places*, in the order of the places, then by path; hidden ones not."""
    found: dict[Path, None] = {}
    for place in places:
        below = sorted(path for path in place.rglob("*") if path.is_file()) if place.is_dir() else [place]
        found |= dict.fromkeys(path for path in below if not path.name.startswith("."))
    return list(found)


def file_suffix(path: Path) -> str:
    """Return the ending of a file's name, in lower case and without `.gz`.

    >>> file_suffix(Path("Posts.V1.3.XML.gz")), file_suffix(Path("qrel_task1_2020_official"))
    ('.xml', '')
    """
    return Path(_PACKED.sub("", path.name)).suffix.lower()


def pick_single_file(paths: list[Path], what: str) -> Path | None:
    """Return the one path, or None when there is none; MirblabError for several, which names them."""
    if len(paths) > 1:
        raise MirblabError(f"several files have {what}: {', '.join(map(str, paths))}; keep one of them")
    return paths[0] if paths else None


def join_names(places: Iterable[Path]) -> str:
    """Return the places without this machine's paths, joined as they are given.

    >>> join_names([Path("/data/a"), Path("/other/b.tsv")]).split(os.pathsep)
    ['a', 'b.tsv']
    """
    return os.pathsep.join(place.resolve().name for place in places)


def hash_files(paths: Iterable[Path]) -> str:
    """Return a hash of the bytes of files, in their order."""
    digest = hashlib.blake2b(digest_size=16)
    for path in paths:
        with open(path, "rb") as file:
            digest.update(hashlib.file_digest(file, "blake2b").digest())
    return f"blake2b:{digest.hexdigest()}"


@contextlib.contextmanager
def open_release(origin: str | Path | None, what: str, address: str) -> Iterator[Release]:
    """Yield the release at *origin*: a folder, a tar archive, a git URL, or one .json, .jsonl, .tsv or .parquet file.

    *what* and *address* say in errors and in the card what is wanted and where it is published: nothing is fetched
    from there by itself. Raises MirblabError without an origin and for what cannot be read.
    """
    if not origin:
        raise MirblabError(f"give {what} with --from, as a folder or an archive; it is published at {address}")
    path = paths.expand_home(origin)
    if path.is_file() and path.name.endswith(_PLAIN):
        yield Release(Origin(path.parent, address, "", path.name), {path.name: path})
        return
    with open_origin(origin, address) as found:
        inside = (file for file in found.folder.rglob("*") if file.is_file() and ".git" not in file.parts)
        names = {file.relative_to(found.folder).as_posix(): file for file in inside}
        yield Release(found, dict(sorted(names.items())))


@contextlib.contextmanager
def open_origin(origin: str | Path | None, default: str) -> Iterator[Origin]:
    """Yield the folder that *origin* stands for: a folder, a tar archive, a git URL, or None for the URL *default*.

    Archives are unpacked with path checks and clones are shallow, both into a temporary folder that is removed
    at the end; nothing is executed. Raises MirblabError for what cannot be found, unpacked or cloned.
    """
    text = default if origin is None else str(origin)
    path = paths.expand_home(text)
    if origin is not None and path.is_dir():
        yield Origin(path, default, _commit(path) if (path / ".git").exists() else "", path.resolve().name)
        return
    if not _URL.match(text) and not path.is_file():
        raise MirblabError(f"'{text}' is neither a folder, nor an archive, nor a git URL; check the path")
    with tempfile.TemporaryDirectory(prefix="mirblab-") as name:
        folder = Path(name) / "source"
        if path.is_file():
            _unpack(path, folder)
            yield Origin(folder, default, "", path.name)
        else:
            public = re.sub(r"(?<=://)[^/@]*@", "", text)
            _clone(text, public, folder)
            yield Origin(folder, public, _commit(folder), "" if origin is None else public)


def find_required_parts(names: Iterable[str], where: str, *, restricted: bool) -> dict[str, list[str]]:
    """Return the files of each part as `find_parts`; MirblabError, with what was looked for, for one without."""
    known = list(names)
    found = find_parts(known, where)
    _check_parts(found, known, where, restricted=restricted)
    return found


def find_parts(names: Iterable[str], where: str) -> dict[str, list[str]]:
    """Return the files of each part, shards in their order; a part that is not there has none.

    *names* are paths inside the dataset, with "/"; *where* names it in messages. Where a part is there in several
    forms, JSON lines go before tab-separated lines, and those before parquet. Raises MirblabError for a missing
    shard and for a part with several splits.

    >>> found = find_parts(["README.md", "corpus.jsonl", "queries/queries-0-of-1.parquet", "qrels/test.tsv"], "")
    >>> found["queries"], found["excluded_ids"]
    (['queries/queries-0-of-1.parquet'], [])
    """
    known = list(names)
    return {part: _files(part, known, where) for part in PARTS}


def find_local_dataset(origin: str, hub: str, name: str, *, alone: bool) -> Path:
    """Return the folder in *origin* that holds the dataset *hub*: `msedup`, `hcju/msedup`, `hcju__msedup`, our *name*.

    *origin* may be that folder itself when it is *alone* wanted. MirblabError when it is not there.
    """
    folder = paths.expand_home(origin)
    if not folder.is_dir():
        raise MirblabError(f"{folder} is no folder; give one with {hub} in it, laid out as on the Hub")
    tried = [hub.partition("/")[2], hub, hub.replace("/", "__"), name]
    for inner in tried:
        if (folder / inner).is_dir():
            return folder / inner
    if is_dataset(folder) and alone:
        return folder
    found = ", ".join(sorted(path.name for path in folder.iterdir())[:12]) or "nothing"
    one = "it is one dataset itself: build that by its own name; " if is_dataset(folder) else ""
    raise MirblabError(f"{folder} has no folder {', '.join(tried[:-1])} or {tried[-1]}; {one}found {found}")


def is_dataset(folder: Path) -> bool:
    """Return whether a folder is a dataset itself: it has a corpus."""
    return bool(_files("corpus", list_files(folder), str(folder)))


def file_digests(path: Path) -> tuple[str, str]:
    """Return a file's SHA-256 and the SHA-1 by which git knows it, in one pass; the Hub publishes one of the two."""
    plain, git = hashlib.sha256(), hashlib.sha1(usedforsecurity=False)
    git.update(b"blob %d\0" % path.stat().st_size)
    with open(path, "rb") as file:
        while piece := file.read(1 << 20):
            plain.update(piece)
            git.update(piece)
    return plain.hexdigest(), git.hexdigest()


def fetch_dataset(hub: str, revision: str, *, choose: Choose, instead: str) -> DatasetFiles:
    """Return the dataset *hub* at *revision* from the Hub, or from its cache when there is no network.

    *choose* takes the names of all files, and what to call the dataset in messages, and returns the files to fetch by
    part, or raises when one is lacking. Files that are complete in the library's cache are not fetched again. *instead*
    says what else one can do, for the message when nothing can be had. Raises MirblabError for that, and for a server
    that answers with another commit. No code of the dataset is run.
    """
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HfHubHTTPError, HTTPError

    where = f"{hub} at revision {revision}"
    if silence := network.hub_unreachable_reason():
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
    return DatasetFiles(folder, parts, revision, str(licence), sums)


def _unpack(archive: Path, folder: Path) -> None:
    try:
        with text_files.open_archive(archive) as file, tarfile.open(fileobj=file, mode="r:") as tar:
            size = 0
            for member in tar:
                size += member.size
                text_files.check_unpacked_size(archive, size)
            tar.extractall(folder, filter="data")
    except (MirblabError, MemoryError):
        raise
    except Exception as error:  # of a damaged header tarfile raises much besides its own errors
        what = f"{error}" or type(error).__name__
        raise MirblabError(f"{archive} cannot be unpacked: {what}; expected a .tar.gz with relative paths") from error


def _clone(url: str, public: str, folder: Path) -> None:
    # Without a terminal prompt, a private or misspelt address fails at once instead of waiting for a password.
    quiet = {**os.environ, "GIT_TERMINAL_PROMPT": "0", "GIT_LFS_SKIP_SMUDGE": "1"}
    command = ["git", "-c", "protocol.ext.allow=never", "clone", "--quiet", "--depth", "1", "--", url, str(folder)]
    instead = "give a folder or a .tar.gz with --from"
    try:
        done = subprocess.run(command, env=quiet, capture_output=True, text=True, errors="replace", timeout=1800)
    except FileNotFoundError as error:
        raise MirblabError(f"git is not installed, so {public} cannot be cloned; {instead}") from error
    except subprocess.TimeoutExpired as error:
        raise MirblabError(f"cloning {public} took over half an hour; {instead}") from error
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1].replace(url, public)
        raise MirblabError(f"cannot clone {public}: {last}; is there a network? Else {instead}")


def _commit(folder: Path) -> str:
    """Return the commit that is checked out, or "" when git is missing or refuses."""
    try:
        done = subprocess.run(["git", "-C", str(folder), "rev-parse", "HEAD"], capture_output=True, text=True)
    except FileNotFoundError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


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


def _check_parts(found: dict[str, list[str]], names: Iterable[str], where: str, *, restricted: bool) -> None:
    looked = {"qrels": "qrels/test.tsv, qrels/test.jsonl, default/test-*.parquet or data/test-*.parquet"}
    for part in PARTS[:4] if restricted else PARTS[:3]:
        if not found[part]:
            wanted = looked.get(part, f"{part}.jsonl, {part}/*.parquet or data/{part}-*.parquet")
            shown = sorted(names)[:12]
            raise MirblabError(f"{where} has no {part}: looked for {wanted}; found {', '.join(shown) or 'nothing'}")


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


def _cached(hub: str, revision: str, where: str, choose: Choose, reason: str, error: Exception) -> DatasetFiles:
    """Return the dataset from the library's cache, when all of it is there."""
    from huggingface_hub import snapshot_download

    try:
        folder = Path(snapshot_download(hub, repo_type="dataset", revision=revision, local_files_only=True))
        parts = choose(list_files(folder), str(folder))
    except (OSError, MirblabError):
        raise MirblabError(f"{where} is not on this machine and the Hub cannot be reached: {reason}") from error
    return DatasetFiles(folder, parts, revision)


def list_files(folder: Path) -> list[str]:
    """Return the files in a folder at any depth, as paths with "/"; hidden ones are left out."""
    found = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return sorted(path.as_posix() for path in found if not any(part.startswith(".") for part in path.parts))


def _first(error: Exception) -> str:
    """Return the first line of a library's message, without a full stop."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0].rstrip(".: ")
