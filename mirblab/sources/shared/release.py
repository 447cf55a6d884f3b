"""release: the files of a release: a folder, an archive, a git repository, or a dataset of the Hub."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import os
import re
import subprocess
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path, PurePosixPath

from mirblab.core import network, paths, text_files
from mirblab.core.errors import MirblabError, MissingFileError
from mirblab.core.terminal import PROGRESS
from mirblab.core.wording import first_names

_PACKED = re.compile(r"\.gz$", re.IGNORECASE)
_URL = re.compile(r"(?:https?|ssh|git|file)://|[\w.-]+@[\w.-]+:")
_PLAIN = (".json", ".jsonl", ".json.gz", ".jsonl.gz", ".tsv", ".parquet")
PARTS = ("corpus", "queries", "qrels", "excluded_ids")
_SUFFIXES = (".jsonl", ".jsonl.gz", ".tsv", ".parquet")
# As local folders, configurations and their converted copies are named: qrels are the config `default`, split `test`.
_STEMS = {part: rf"(?:data/)?{part}" for part in PARTS} | {"qrels": r"(?:(?:data/)?qrels/|default/|data/)?test"}
_LICENCES = (
    ("CeCILL-B FREE SOFTWARE", "CECILL-B"),
    ("CeCILL-C FREE SOFTWARE", "CECILL-C"),
    ("Version 2.1 dated 2013-06-21", "CECILL-2.1"),
    ("CeCILL FREE SOFTWARE", "CECILL"),
    ("Apache License", "Apache-2.0"),
    ("GNU AFFERO GENERAL PUBLIC", "AGPL"),
    ("GNU LESSER GENERAL PUBLIC", "LGPL"),
    ("GNU GENERAL PUBLIC", "GPL"),
    ("GNU Free Documentation License", "GFDL"),
    ("Mozilla Public License Version 2.0", "MPL-2.0"),
    ("Attribution-ShareAlike 4.0 International", "CC-BY-SA-4.0"),
    ("Attribution 4.0 International", "CC-BY-4.0"),
    ("CC0 1.0", "CC0-1.0"),
    ("Permission is hereby granted, free of charge", "MIT"),
    ("Redistribution and use in source and binary forms", "BSD"),
)
_SHARD = re.compile(r"(?:-|(?<=/)|^)(\d+)(?:-of-(\d+))?$")
ChooseParts = Callable[[Iterable[str], str], dict[str, list[str]]]


@dataclass(frozen=True)
class Origin:
    """The folder and the address of raw data; `commit` "" is unknown; `shown` has no paths of this machine."""

    folder: Path
    source: str
    commit: str
    shown: str


@dataclass(frozen=True)
class Release:
    """The origin of a release, and its files by their path below the folder, in order."""

    origin: Origin
    files: Mapping[str, Path]

    def matching(self, pattern: str) -> list[Path]:
        """Return the files whose path below the folder, or the last parts of it, match the regular expression."""
        return [path for name, path in self.files.items() if re.fullmatch(rf"(?:.*/)?(?:{pattern})", name)]

    def one(self, pattern: str, what: str) -> Path:
        """Return the only file that matches; FileNotFoundError for none, MirblabError for several, naming *what*."""
        paths = self.matching(pattern)
        if len(paths) > 1:
            raise MirblabError(f"{self.origin.folder} has {' and '.join(map(str, paths))}; keep one {what}")
        if not paths:
            raise MissingFileError(f"no {what} in {self.origin.folder}; found {self.shown()}")
        return paths[0]

    def shown(self) -> str:
        """Return the first names, for messages."""
        return first_names(self.files, 8)


@dataclass(frozen=True)
class DatasetFiles:
    """A dataset on this machine: folder, files by part, commit ("": unknown), licence, published checksums."""

    folder: Path
    parts: dict[str, list[str]]
    commit: str = ""
    licence: str = ""
    sums: dict[str, str] = field(default_factory=dict)

    def paths(self, part: str) -> list[Path]:
        """Return the files of a part, in order."""
        return [self.folder / name for name in self.parts[part]]

    def checked(self, again: str) -> dict[str, str]:
        """Return the SHA-256 of each file; MirblabError, with the command *again*, if the Hub publishes another one."""
        digests: dict[str, str] = {}
        for name in itertools.chain.from_iterable(self.parts.values()):
            path = self.folder / name
            digests[name], git = file_digests(path)
            published = self.sums.get(name) or git
            if published not in (digests[name], git):
                raise MirblabError(
                    f"{path} is damaged: the Hub publishes the checksum {published} for it, found {digests[name]} "
                    f"(git: {git}); remove it and run: {again}"
                )
        return digests


def split_origin(origin: str | Path) -> tuple[Path, ...]:
    """Return the existing paths that *origin* names: one, or several joined as in `PATH`; else FileNotFoundError."""
    whole = paths.expand_home(origin)
    if whole.exists():
        return (whole,)
    given = [paths.expand_home(part) for part in str(origin).split(os.pathsep) if part]
    for path in given or [whole]:
        if not path.exists():
            raise MissingFileError(f"no {path}; give a folder, or several joined by '{os.pathsep}'")
    return tuple(given)


def is_remote(origin: str) -> bool:
    """Return whether an origin is the address of a git repository."""
    return bool(_URL.match(origin))


def files_below(given: Iterable[Path]) -> list[Path]:
    """Return the *given* files and the files below the given folders, in this order, then by path; none hidden."""
    files: dict[Path, None] = {}
    for path in given:
        below = sorted(inner for inner in path.rglob("*") if inner.is_file()) if path.is_dir() else [path]
        files |= dict.fromkeys(inner for inner in below if not inner.name.startswith("."))
    return list(files)


def list_files(folder: Path) -> dict[str, Path]:
    """Return the files in a folder at any depth by their path inside it, with "/", sorted, without hidden ones."""
    names = {path.relative_to(folder): path for path in folder.rglob("*") if path.is_file()}
    shown = {name.as_posix(): path for name, path in names.items() if not any(part[0] == "." for part in name.parts)}
    return dict(sorted(shown.items()))


def file_suffix(path: Path) -> str:
    """Return the suffix of a file's name, in lower case and without `.gz`: `.xml` of `Posts.V1.3.XML.gz`."""
    return Path(_PACKED.sub("", path.name)).suffix.lower()


def pick_single_file(paths: list[Path], what: str) -> Path | None:
    """Return the only path, or None for none; MirblabError, which names them, for several."""
    if len(paths) > 1:
        raise MirblabError(f"several files have {what}: {', '.join(map(str, paths))}; keep one of them")
    return paths[0] if paths else None


def join_names(given: Iterable[Path]) -> str:
    """Return the names of files and folders without this machine's paths, joined as in `PATH`."""
    return os.pathsep.join(path.resolve().name for path in given)


def hash_files(paths: Iterable[Path]) -> str:
    """Return a hash of the bytes of files, in their order."""
    digest = hashlib.blake2b(digest_size=16)
    for path in paths:
        with open(path, "rb") as file:
            digest.update(hashlib.file_digest(file, "blake2b").digest())
    return f"blake2b:{digest.hexdigest()}"


@contextlib.contextmanager
def open_release(origin: str | Path | None, what: str, address: str) -> Iterator[Release]:
    """Yield the release at *origin*: a folder, an archive, a git URL, or one .json, .jsonl, .tsv or .parquet file.

    *what* and *address* describe it in errors and in the card; nothing is fetched from *address*.
    """
    if not origin:
        raise MirblabError(f"give {what} with --from, as a folder or an archive; it is published at {address}")
    path = paths.expand_home(origin)
    if path.is_file() and path.name.endswith(_PLAIN):
        yield Release(Origin(path.parent, address, "", path.name), {path.name: path})
        return
    with open_origin(origin, address) as opened:
        yield Release(opened, list_files(opened.folder))


@contextlib.contextmanager
def open_origin(origin: str | Path | None, default: str) -> Iterator[Origin]:
    """Yield the folder for *origin*: a folder, a tar or zip archive, a git URL, or None for the URL *default*.

    Archives are unpacked with path checks and clones are shallow, in a temporary folder; nothing is executed.
    """
    text = default if origin is None else str(origin)
    path = paths.expand_home(text)
    if origin is not None and path.is_dir():
        yield Origin(path, default, _commit(path) if (path / ".git").exists() else "", path.resolve().name)
        return
    if not is_remote(text) and not path.is_file():
        raise MirblabError(f"'{text}' is neither a folder, nor an archive, nor a git URL; check the path")
    with tempfile.TemporaryDirectory(prefix="mirblab-") as name:
        folder = Path(name) / "source"
        if path.is_file():
            unpack(path, folder)
            yield Origin(folder, default, "", path.name)
        else:
            public = clone(text, folder)
            yield Origin(folder, public, _commit(folder), "" if origin is None else public)


def find_parts(names: Iterable[str], where: str, required: Iterable[str] = ()) -> dict[str, list[str]]:
    """Return the files of each part, shards in order, from *names* inside the dataset; *where* names it in messages.

    JSON lines take precedence over TSV, and TSV over parquet. MirblabError for missing shards and *required* parts.
    """
    names = sorted(names)
    parts = {part: _part_files(part, names, where) for part in PARTS}
    for part in required:
        if not parts[part]:
            wanted = f"{part}.jsonl, {part}/*.parquet or data/{part}-*.parquet"
            if part == "qrels":
                wanted = "qrels/test.tsv, qrels/test.jsonl, default/test-*.parquet or data/test-*.parquet"
            raise MirblabError(f"{where} has no {part}: looked for {wanted}; found {first_names(names, 12)}")
    return parts


def find_local_dataset(origin: str, hub: str, name: str, *, alone: bool) -> Path:
    """Return the folder of the dataset *hub* in *origin*, or *origin* itself, if *alone*."""
    folder = paths.expand_home(origin)
    if not folder.is_dir():
        raise MirblabError(f"{folder} is no folder; give one with {hub} in it, laid out as on the Hub")
    tried = [hub.partition("/")[2], hub, hub.replace("/", "__"), name]
    for inner in tried:
        if (folder / inner).is_dir():
            return folder / inner
    is_dataset = bool(_part_files("corpus", list(list_files(folder)), str(folder)))
    if is_dataset and alone:
        return folder
    shown = first_names(sorted(path.name for path in folder.iterdir()), 12)
    itself = "it is one dataset itself: build that by its own name; " if is_dataset else ""
    raise MirblabError(f"{folder} has no folder {', '.join(tried[:-1])} or {tried[-1]}; {itself}found {shown}")


def file_digests(path: Path) -> tuple[str, str]:
    """Return a file's SHA-256 and its SHA-1 in git, in one pass; the Hub publishes one of the two."""
    plain, git = hashlib.sha256(), hashlib.sha1(usedforsecurity=False)
    git.update(b"blob %d\0" % path.stat().st_size)
    with open(path, "rb") as file:
        while piece := file.read(1 << 20):
            plain.update(piece)
            git.update(piece)
    return plain.hexdigest(), git.hexdigest()


def fetch_dataset(hub: str, revision: str, *, choose: ChooseParts, instead: str) -> DatasetFiles:
    """Return the dataset *hub* at *revision* from the Hub, or from its cache without a network; runs no code of it.

    *choose* takes the names of all files and of the dataset and returns files by part; *instead* is advice in errors.
    """
    from huggingface_hub import HfApi, snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HTTPError

    where = f"{hub} at revision {revision}"
    try:
        if reason := network.hub_unreachable_reason():
            raise OSError(reason)
        info = HfApi().dataset_info(hub, revision=revision, files_metadata=True, timeout=20)
    except (HTTPError, OSError) as error:
        status = error.response.status_code if isinstance(error, HfHubHTTPError) else 0
        if 400 <= status < 500 and status not in (408, 429):
            raise MirblabError(f"the Hub refuses {where}: {_first_line(error)}; {instead}") from error
        try:
            folder = Path(snapshot_download(hub, repo_type="dataset", revision=revision, local_files_only=True))
            return DatasetFiles(folder, choose(list_files(folder), str(folder)), revision)
        except (OSError, MirblabError):
            raise MirblabError(
                f"{where} is not on this machine and the Hub cannot be reached: {_first_line(error)}; {instead}"
            ) from error
    if info.sha != revision:
        raise MirblabError(
            f"the Hub answers with commit {info.sha} when asked for {where}; nothing was taken: try again later"
        )
    sums = {file.rfilename: (file.lfs.sha256 if file.lfs else file.blob_id) or "" for file in info.siblings or []}
    parts = choose(sums, where)
    folder = _download(hub, revision, [name for names in parts.values() for name in names], instead)
    licence = getattr(info.card_data, "license", None) or ""
    return DatasetFiles(folder, parts, revision, str(licence), sums)


def unpack(archive: Path, folder: Path) -> None:
    """Unpack a zip or tar archive with checks of its paths and its size; MirblabError when that is impossible.

    What macOS adds to an archive, `__MACOSX` and files whose names begin with "._", is left out.
    """
    try:
        extract = _unpack_zip if _is_zip(archive) else _unpack_tar
        extract(archive, folder)
    except (MirblabError, MemoryError):
        raise
    except Exception as error:  # of a damaged header tarfile and zipfile raise much besides their own errors
        what = f"{error}" or type(error).__name__
        raise MirblabError(
            f"{archive} cannot be unpacked: {what}; expected a .tar.gz or .zip with relative paths"
        ) from error


def _is_zip(archive: Path) -> bool:
    with open(archive, "rb") as file:
        return file.read(4) == b"PK\x03\x04"


def _unpack_tar(archive: Path, folder: Path) -> None:
    with text_files.open_archive(archive) as file, tarfile.open(fileobj=file, mode="r:") as tar:
        size, wanted = 0, list[tarfile.TarInfo]()
        for member in tar:
            size += member.size
            text_files.check_unpacked_size(archive, size)
            wanted += [] if _is_of_macos(member.name) else [member]
        tar.extractall(folder, wanted, filter="data")


def _unpack_zip(archive: Path, folder: Path) -> None:
    with zipfile.ZipFile(archive) as packed:
        text_files.check_unpacked_size(archive, sum(member.file_size for member in packed.infolist()))
        for name in map(PurePosixPath, packed.namelist()):
            if name.is_absolute() or ".." in name.parts:
                raise ValueError(f"'{name}' would lie outside of the folder")
        packed.extractall(folder, [name for name in packed.namelist() if not _is_of_macos(name)])


def _is_of_macos(name: str) -> bool:
    parts = PurePosixPath(name).parts
    return "__MACOSX" in parts or bool(parts and parts[-1].startswith("._"))


def clone(url: str, folder: Path, *, whole: bool = False) -> str:
    """Clone a git repository, its newest commit or the *whole* history, and return the address without a password."""
    public = re.sub(r"(?<=://)[^/@]*@", "", url)
    # Without a terminal prompt, a private or misspelt address fails at once instead of waiting for a password.
    quiet = {**os.environ, "GIT_TERMINAL_PROMPT": "0", "GIT_LFS_SKIP_SMUDGE": "1"}
    depth = ["--bare"] if whole else ["--depth", "1"]
    command = ["git", "-c", "protocol.ext.allow=never", "clone", "--quiet", *depth, "--", url, str(folder)]
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
    return public


def _commit(folder: Path) -> str:
    """Return the commit that is checked out, or "" when git is missing or fails."""
    try:
        return run_git(folder, "rev-parse", "HEAD")
    except MirblabError:
        return ""


def run_git(repository: Path, *words: str, **variables: str) -> str:
    """Return what git prints, with environment *variables*; MirblabError when it is missing or fails."""
    command = ["git", "-C", str(repository), *words]
    try:
        done = subprocess.run(
            command, env={**os.environ, **variables}, capture_output=True, text=True, errors="replace"
        )
    except FileNotFoundError as error:
        raise MirblabError("git is not installed, and the history of a repository needs it") from error
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise MirblabError(f"git {words[0]} failed in {repository}: {last}")
    return done.stdout.strip()


def _part_files(part: str, names: list[str], where: str) -> list[str]:
    for suffix in _SUFFIXES:
        pattern = re.compile(rf"{_STEMS[part]}(?:/[^.]*|-\d+-of-\d+)?{re.escape(suffix)}")
        files = sorted(name for name in names if pattern.fullmatch(name))
        if files:
            _check_shards([name.removesuffix(suffix) for name in files], part, where)
            return files
    return []


def _check_shards(stems: list[str], part: str, where: str) -> None:
    kinds = sorted({_SHARD.sub("", stem) for stem in stems})
    if len(kinds) > 1:
        raise MirblabError(f"{where} has several splits of {part}: {', '.join(kinds)}; keep one of them")
    shards = [match for stem in stems if (match := _SHARD.search(stem))]
    wanted = {int(match[2]) for match in shards if match[2]}
    have = {int(match[1]) for match in shards}
    lacks = next(number for number in itertools.count() if number not in have)
    if wanted and lacks < max(wanted):
        raise MirblabError(f"{where} lacks shard {lacks} (from 0) of the {max(wanted)} of {part}; complete the copy")


def _download(hub: str, revision: str, names: list[str], instead: str) -> Path:
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import HTTPError
    from tqdm.auto import tqdm

    bars = partial(tqdm, disable=True) if os.environ.get(PROGRESS) == "0" else None
    folder = Path()
    for name in names:
        try:
            path = Path(
                hf_hub_download(hub, name, repo_type="dataset", revision=revision, tqdm_class=bars)  # type: ignore[arg-type]
            )
        except (HTTPError, OSError) as error:
            raise MirblabError(
                f"{name} of {hub} at revision {revision} could not be fetched whole: {_first_line(error)}; "
                f"try again, what is complete is kept; else {instead}"
            ) from error
        folder = path.parents[name.count("/")]
        if folder.name != revision:
            raise MirblabError(
                f"the Hub sent {name} of {hub} from commit {folder.name}, not {revision}; "
                "it is not used: try again later"
            )
    return folder


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0].rstrip(".: ")


def find_credits(origin: Origin, licence: str, *, is_public: bool) -> tuple[Origin, str]:
    """Return origin and licence for a card: those of the public library, else what was given, and what it states."""
    if is_public:
        return origin, licence
    return replace(origin, source=origin.shown or origin.source), find_licence(origin.folder)


def find_licence(root: Path) -> str:
    """Return the short name of the licence that a file in the folder *root* states, else "none stated".

    A file that is there and not recognised is named: "see LICENSE". In an unpacked archive, whose only entry is a
    folder, it is that folder's.
    """
    inside = [path for path in root.glob("*") if not path.name.startswith(".")]
    if len(inside) == 1 and inside[0].is_dir():
        return find_licence(inside[0])
    named = re.compile(r"LICEN[CS]E|COPYING|CeCILL", re.IGNORECASE)
    files = sorted(path for path in inside if named.match(path.name))
    texts = {path.name: path.read_bytes().decode("utf-8", "replace") for path in files if path.is_file()}
    known = (short for text in texts.values() for words, short in _LICENCES if words in text)
    return next(known, f"see {next(iter(texts))}" if texts else "none stated")
