"""Files that unpack to far more than they are, and lines without end, are refused before they fill the memory."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tarfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import py7zr
import pytest

from mirblab.core import text_files
from mirblab.core.errors import MirblabError
from mirblab.core.text_files import LineProblems, read_lines
from mirblab.data import runs
from mirblab.sources import ntcir
from mirblab.sources.arqmath import formulas, release
from mirblab.sources.shared import readers
from mirblab.sources.shared.readers import read_rows
from mirblab.sources.shared.release import open_origin
from mirblab.sources.stackexchange import dump
from mirblab.sources.stackexchange.dump import RowProblems, archive_members, find_dump

BOMB = 12_000_000
TOO_LARGE = r"{} has [\d,]+ bytes and unpacks to (over )?[\d,]+, while 10,[0-9,]+ are allowed; .*set MIRBLAB_LARGEST"


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten megabytes are always allowed, so that a bomb is quickly made."""
    monkeypatch.setattr(text_files, "_LEAST_LIMIT", 10**7)


@pytest.fixture(scope="module")
def bomb() -> bytes:
    """Blank lines of 12 MB in 12 KB."""
    made = io.BytesIO()
    with gzip.GzipFile(fileobj=made, mode="wb", mtime=0, compresslevel=9) as file:
        for _ in range(BOMB // 10**6):
            file.write((b" " * 999 + b"\n") * 1000)
    return made.getvalue()


def _streamed(path: Path) -> None:
    with find_dump(path.parent, ("Posts",)).stream("Posts") as stream:
        while stream.read(1 << 20):
            pass


READERS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "lines": ("a.jsonl.gz", lambda path: list(read_lines(path, LineProblems(path)))),
    "run": ("run.trec.gz", runs.read_trec_rows),
    "topics": ("topics.xml.gz", release.read_topics),
    "formulas": ("1.tsv.gz", lambda path: list(formulas.read_formula_rows([path], RowProblems()))),
    "articles": ("Area.html.gz", lambda path: list(ntcir.read_formulas([path], RowProblems().counts))),
    "arrays": ("a.json.gz", lambda path: list(readers.read_json_records(path))),
    "dump": ("Posts.xml.gz", _streamed),
}


@pytest.mark.parametrize("name", READERS)
@pytest.mark.attacks
def test_a_small_gzip_file_that_unpacks_to_much_is_refused(name: str, bomb: bytes, tmp_path: Path):
    """Wherever gzip is read, with the name, both sizes and what allows more."""
    file, read = READERS[name]
    content = (
        _headed(bomb, b"\t".join(column.encode() for column in formulas.Formula._fields))
        if name == "formulas"
        else bomb
    )
    (tmp_path / file).write_bytes(content)
    with pytest.raises(MirblabError, match=TOO_LARGE.format(rf".*{file}")):
        read(tmp_path / file)


def _headed(bomb: bytes, header: bytes) -> bytes:
    return gzip.compress(header + b"\n") + bomb


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress], ids=["gzip", "bzip2", "xz"])
@pytest.mark.attacks
def test_an_archive_that_unpacks_to_much_is_refused_before_it_is_unpacked(
    pack: Callable[[bytes], bytes], tmp_path: Path
):
    """By what its headers say, and nothing of it is written."""
    member = tarfile.TarInfo("zeros")
    member.size = BOMB
    (tmp_path / "a.tar.gz").write_bytes(pack(member.tobuf() + bytes(2048)))
    with pytest.raises(MirblabError, match=TOO_LARGE.format(r".*a\.tar\.gz")), open_origin(tmp_path / "a.tar.gz", ""):
        pass


def test_a_header_of_an_archive_does_not_fill_the_memory(tmp_path: Path):
    """A name may be as long as its header says, which tarfile reads whole."""
    member = tarfile.TarInfo("pax")
    member.type, member.size = tarfile.XHDTYPE, BOMB
    made = io.BytesIO()
    with gzip.GzipFile(fileobj=made, mode="wb", mtime=0) as file:
        file.write(member.tobuf(tarfile.USTAR_FORMAT))
        for _ in range(BOMB // 10**6):
            file.write(bytes(10**6))
    (tmp_path / "a.tgz").write_bytes(made.getvalue())
    with pytest.raises(MirblabError, match=TOO_LARGE.format(r".*a\.tgz")), open_origin(tmp_path / "a.tgz", ""):
        pass


@pytest.mark.attacks
def test_a_7z_archive_that_unpacks_to_much_is_refused(tmp_path: Path):
    """By what its directory says."""
    with py7zr.SevenZipFile(tmp_path / "a.7z", "w", filters=[{"id": py7zr.FILTER_LZMA2, "preset": 0}]) as archive:
        archive.writestr(bytes(BOMB), "Posts.xml")
    with pytest.raises(MirblabError, match=TOO_LARGE.format(r".*a\.7z")):
        archive_members(tmp_path / "a.7z")


@pytest.mark.parametrize("rows", [["x" * BOMB], [0] * BOMB], ids=["a long text", "many rows"])
def test_a_parquet_file_that_unpacks_to_much_is_refused(rows: list[object], tmp_path: Path):
    """By what its footer says of bytes and of rows."""
    import pyarrow
    from pyarrow import parquet

    path = tmp_path / "a.parquet"
    parquet.write_table(pyarrow.table({"_id": rows}), path, compression="zstd", row_group_size=BOMB)
    with pytest.raises(MirblabError, match=TOO_LARGE.format(r".*a\.parquet")):
        list(read_rows(path, ["_id"], Counter()))


def test_the_environment_allows_more_or_less(bomb: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """In gigabytes; what is no number of them is refused."""
    (tmp_path / "a.jsonl.gz").write_bytes(bomb)
    monkeypatch.setenv("MIRBLAB_LARGEST", "0.02")
    assert list(read_lines(tmp_path / "a.jsonl.gz", LineProblems(tmp_path / "a.jsonl.gz"))) == []
    monkeypatch.setenv("MIRBLAB_LARGEST", "0.001")
    with pytest.raises(MirblabError, match="while 1,000,000 are allowed"):
        list(read_lines(tmp_path / "a.jsonl.gz", LineProblems(tmp_path / "a.jsonl.gz")))
    for wrong in ("much", "-1", "0", "nan", "1e99"):
        monkeypatch.setenv("MIRBLAB_LARGEST", wrong)
        with pytest.raises(
            MirblabError, match=f"MIRBLAB_LARGEST must be a number of gigabytes, such as 50, found '{wrong}'"
        ):
            text_files.unpacking_limit(1)


def test_a_line_without_end_is_refused_with_its_number(tmp_path: Path):
    """A line is read whole, so that one of gigabytes would fill the memory."""
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"a": 1}\n' + b" " * (2**26 + 1))
    with pytest.raises(MirblabError, match=r"a\.jsonl, line 2: longer than 67,108,864 bytes.*set MIRBLAB_LARGEST"):
        list(read_lines(path, LineProblems(path)))


def test_what_a_sound_file_unpacks_to_is_allowed(monkeypatch: pytest.MonkeyPatch):
    """Two hundred times its size, and 256 MiB in any case."""
    monkeypatch.undo()
    assert (
        text_files.unpacking_limit(0) == text_files.unpacking_limit(2**20) == 2**28
        and text_files.unpacking_limit(2**30) == 200 * 2**30
    )


def _member(name: str, kind: bytes = tarfile.REGTYPE, target: str = "") -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.type, made.linkname = kind, target
    return made


SLIPS = {
    "a parent": [_member("../outside.tex")],
    "a parent within": [_member("a/../../outside.tex")],
    "an absolute name": [_member("{root}/outside.tex")],
    "a link that leads out": [_member("a.tex", tarfile.SYMTYPE, "../../secret.tex")],
    "an absolute link": [_member("a.tex", tarfile.SYMTYPE, "{root}/secret.tex")],
    "a folder that is a link": [_member("a", tarfile.SYMTYPE, ".."), _member("a/outside.tex")],
    "a hard link": [_member("a.tex", tarfile.LNKTYPE, "../secret.tex")],
    "an absolute hard link": [_member("a.tex", tarfile.LNKTYPE, "{root}/secret.tex")],
    "a device": [_member("a.tex", tarfile.CHRTYPE)],
    "a block device": [_member("a.tex", tarfile.BLKTYPE)],
    "a pipe": [_member("a.tex", tarfile.FIFOTYPE)],
    "a name of 5,000 letters": [_member("a" * 5000)],
    "a path of 5,000 letters": [_member("a/" * 5000 + "b")],
    "a drive of Windows": [_member("C:\\outside.tex"), _member("C:/outside.tex")],
    "a share of Windows": [_member("\\\\host\\share\\outside.tex"), _member("//host/outside.tex")],
    "a name with control characters": [_member("a\n\x1b[2Jb.tex")],
    "no name": [_member("")],
}


@pytest.mark.parametrize("form", ["", "gz", "bz2", "xz"])
@pytest.mark.parametrize("slip", SLIPS)
@pytest.mark.attacks
def test_an_archive_writes_and_shows_nothing_outside_its_folder(
    slip: str, form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """It is refused, or what it holds lies inside, with no way out of it."""
    (tmp_path / "secret.tex").write_text("secret")
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    archive = tmp_path / f"a.tar.{form}"
    with tarfile.open(archive, f"w:{form}") as tar:
        for member in SLIPS[slip]:
            name, target = (text.replace("{root}", str(tmp_path)) for text in (member.name, member.linkname))
            tar.addfile(member.replace(name=name, linkname=target, deep=False))
    try:
        with open_origin(archive, "") as found:
            inside = [path.resolve() for path in found.folder.rglob("*")]
            assert all(path.is_relative_to(found.folder.resolve()) for path in inside)
            assert not any(path.is_file() and path.read_bytes() for path in inside)
            assert all(path.is_file() or path.is_dir() for path in inside)
    except MirblabError as error:
        assert "cannot be unpacked" in str(error) and archive.name in str(error)
    assert sorted(path.name for path in tmp_path.rglob("*")) == sorted([archive.name, "secret.tex", "temporary"])


@pytest.mark.parametrize(
    "name", ["../../Posts.xml", "/tmp/Posts.xml", "C:\\Posts.xml", "a\x1bb/Posts.xml", "a" * 5000 + "/Posts.xml"]
)
def test_names_in_a_7z_archive_write_nothing(name: str, tmp_path: Path):
    """A member is read into a pipe, whatever it is called."""
    place = tmp_path / "deep" / "er" / "site.7z"
    place.parent.mkdir(parents=True)
    with py7zr.SevenZipFile(place, "w") as archive:
        archive.writestr(b"<posts></posts>", "x" * len(name))
        archive.header.files_info.files[0]["filename"] = name
    before = sorted(tmp_path.rglob("*"))
    try:
        files = find_dump(place, ("Posts",))
        with files.stream("Posts") as stream:
            assert list(dump.read_rows(stream, files.shown("Posts"), ("Id",), RowProblems())) == []
    except (MirblabError, FileNotFoundError) as error:
        assert "site.7z" in str(error) or "Posts.xml" in str(error)
    assert sorted(tmp_path.rglob("*")) == before
