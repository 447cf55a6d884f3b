"""Rows of a dump's XML: every layout is read, every broken row is named, nothing is resolved, memory is bounded."""

from __future__ import annotations

import gzip
import io
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from html import escape
from pathlib import Path

import py7zr
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mirblab.core.errors import MirblabError
from mirblab.sources.stackexchange import dump
from mirblab.sources.stackexchange.dump import DumpFiles, find_dump

WANTED = ("Id", "Body")


def read(text: str | bytes, **how: object) -> tuple[list[tuple[int, dict[str, str]]], dump.RowProblems]:
    odd = dump.RowProblems()
    data = text.encode() if isinstance(text, str) else text
    return list(dump.read_rows(io.BytesIO(data), "Posts.xml", WANTED, odd, **how)), odd


def posts(*rows: str) -> str:
    return '<?xml version="1.0" encoding="utf-8"?>\n<posts>\n' + "".join(f"  {row}\n" for row in rows) + "</posts>\n"


def test_a_row_is_read_with_its_line():
    """Unwanted attributes are dropped, missing ones are missing, and nothing is odd."""
    rows, odd = read(posts('<row Id="7" Score="3" Body="a" />', '<row Id="8" />'))
    assert rows == [(3, {"Id": "7", "Body": "a"}), (4, {"Id": "8"})]
    assert not odd.counts and not odd.examples


@pytest.mark.parametrize(
    "text",
    [
        "\ufeff" + posts('<row Id="7" Body="x y" />'),
        posts('<row Id="7" Body="x y" />').replace("\n", "\r\n"),
        '<posts><row Id="7" Body="x y"/></posts>',
        '<posts><row\tId="7"\n   Body="x\ny"\n/></posts>',
        posts("<row Id='7' Body='x y' />"),
        posts('<row Id = "7" Body="x y"></row>'),
        posts("<row Id=\"7\" Body='x y' />"),
        posts('<row Body="x&#x20;y" Id="&#55;" />'),
    ],
    ids=[
        "byte-order mark",
        "CRLF",
        "one line",
        "many lines",
        "single quotes",
        "not self-closing",
        "both quotes",
        "codes",
    ],
)
def test_every_layout_of_xml_reads_the_same(text: str):
    """The fast way and the parser agree."""
    rows, odd = read(text)
    assert [row for _, row in rows] == [{"Id": "7", "Body": "x y"}] and not odd.counts


def test_one_layer_of_escaping_is_undone():
    """The rest belongs to the HTML inside; an ampersand that was written as a number does not unescape what follows."""
    rows, _ = read(posts('<row Body="&lt;p&gt;&amp;lt; &quot;q&quot; &apos; &#38;lt; &#x26;amp;&#xA;é&#233;" />'))
    assert rows[0][1]["Body"] == '<p>&lt; "q" \' &lt; &amp;\néé'


def test_forbidden_characters_are_dropped_where_they_are_references():
    """The published dumps have some; a parser would refuse the whole file."""
    for quote in "\"'":
        rows, odd = read(posts(f"<row Body={quote}a&#x0;b&#27;c&#xD83D;d&#xFFFF;e&#x1F600;{quote} />"))
        assert rows[0][1]["Body"] == "abcde\U0001f600" and not odd.counts


GOOD = '<row Id="1" Body="good" />'


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ('<row Id="2" Body="cut', "rows cut off"),
        ('<row Id="2" Body="cut" ', "rows cut off"),
        ("<row Id='2' Body='cut", "rows cut off"),
        ('<row Id="2" Body="a" b" />', "rows not well-formed"),
        ('<row Id="2" Body=a />', "rows not well-formed"),
        ('<row Id="2" Id="3" />', "rows not well-formed"),
        ('<row Id="2" Body="a < b" />', "rows not well-formed"),
        ('<row Id="2" Body="a & b" />', "rows not well-formed"),
        ("<row Id='2' Body='a & b' />", "rows not well-formed"),
        ('<row Id="2" Body="a&nbsp;b" />', "rows not well-formed"),
        ('<row Id="2" Body="a\x01b" />', "rows not well-formed"),
        ('<row Id="2" Body="a" /> stray', "rows not well-formed"),
        ('<row Id="2"Body="a" />', "rows not well-formed"),
    ],
)
def test_a_broken_row_is_named_and_the_next_one_is_read(bad: str, reason: str):
    """It stands on line 4, between two good ones."""
    rows, odd = read(posts(GOOD, bad, GOOD))
    assert [line for line, _ in rows] == [3, 5]
    assert dict(odd.counts) == {f"Posts.xml: {reason}": 1}
    assert odd.examples[0].startswith(f"Posts.xml, line 4: {reason}")


def test_bytes_that_are_not_utf8_are_named():
    """In either way of reading; in values that nobody wants they do not matter."""
    for quote in (b'"', b"'"):
        row = b"<row Body=" + quote + b"a\xff" + quote + b" />"
        rows, odd = read(posts("XX", GOOD).encode().replace(b"XX", row))
        assert len(rows) == 1 and dict(odd.counts) == {"Posts.xml: rows not in UTF-8": 1}
    rows, odd = read(posts("XX").encode().replace(b"XX", b'<row Id="1" Other="\xff" />'))
    assert rows == [(3, {"Id": "1"})] and not odd.counts


def test_only_the_first_examples_are_kept():
    """All are counted."""
    _, odd = read(posts(*['<row Id="2" Body="cut'] * 9, GOOD))
    assert odd.counts["Posts.xml: rows cut off"] == 9 and len(odd.examples) == 3


def test_a_file_without_its_end_is_named():
    """What came before is read."""
    rows, odd = read(posts(GOOD, GOOD)[:-30])
    assert len(rows) == 1
    assert dict(odd.counts) == {
        "Posts.xml: rows cut off": 1,
        "Posts.xml: files that end without a closing tag": 1,
    }


def test_a_row_without_end_does_not_fill_the_memory():
    """A row over 4 MiB is passed over, lines go on being counted, and the next row is read."""
    long = '<row Id="2" Body="' + "x\n" * (3 * 2**20)
    rows, odd = read(posts(GOOD, long + '" />', GOOD))
    assert [line for line, _ in rows] == [3, 3 * 2**20 + 5]
    assert dict(odd.counts) == {"Posts.xml: rows over 4 MiB": 1}
    assert odd.examples == ["Posts.xml, line 4: rows over 4 MiB"]


def test_a_row_over_the_limit_at_the_end_is_named_once():
    """Also when the file ends inside it."""
    rows, odd = read(posts(GOOD)[:-9] + '<row Body="' + "x" * (9 * 2**20))
    assert len(rows) == 1 and odd.counts["Posts.xml: rows over 4 MiB"] == 1


def test_rows_are_found_wherever_blocks_end(monkeypatch: pytest.MonkeyPatch):
    """The same rows and lines, whatever the block size, and however little a stream gives at a time."""
    text = posts(GOOD, "<row Id='2' Body='x' />", '<row Id="3" Body="cut', GOOD)
    expected = read(text)
    assert [line for line, _ in expected[0]] == [3, 4, 6]
    for size in range(1, 40):
        monkeypatch.setattr(dump, "_BLOCK", size)
        assert read(text) == expected, size


@pytest.mark.attacks
def test_declared_entities_are_never_resolved():
    """A thousand million laughs take no time and no memory: the row that uses them is malformed."""
    nested = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' if n else '<!ENTITY l0 "ha">' for n in range(10))
    outside = '<!ENTITY file SYSTEM "file:///etc/hostname">'
    start = f'<?xml version="1.0"?>\n<!DOCTYPE posts [{nested}{outside}]>\n<posts>\n'
    bad = [f"<row Body={quote}{name}{quote} />\n" for quote in "\"'" for name in ("&l9;", "&file;")]
    rows, odd = read(start + "".join(bad) + GOOD + "</posts>")
    assert rows == [(8, {"Id": "1", "Body": "good"})]
    assert odd.counts == {"Posts.xml: document types ignored": 1, "Posts.xml: rows not well-formed": 4}


def test_rows_of_other_kinds_are_passed_over_and_counted():
    """A row that does not say its kind is broken."""
    rows, odd = read(
        posts('<row Id="1" K="1" />', "<row Id='2' K='2' />", '<row Id="3" K="2" />', '<row Id="4" />'), only=("K", "1")
    )
    assert rows == [(3, {"Id": "1"})] and odd.passed == {"2": 2}
    assert dict(odd.counts) == {"Posts.xml: rows without K": 1}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (posts(GOOD).encode("utf-16"), "UTF-16"),
        (posts(GOOD).replace("utf-8", "windows-1252").encode(), "windows-1252"),
        (gzip.compress(posts(GOOD).encode(), mtime=0), "no rows"),
        (b"", "no rows"),
        (b"<posts />", "no rows"),
    ],
)
def test_what_is_no_file_of_a_dump_is_refused(data: bytes, message: str):
    """With what was found."""
    with pytest.raises(MirblabError, match=message):
        read(data)


@given(
    st.lists(st.text(st.characters(exclude_categories=["Cs", "Cc"]) | st.sampled_from("<>&\"'\n\t;#xa")), max_size=5)
)
@settings(max_examples=200, deadline=None)
def test_any_text_survives_as_the_parser_of_the_standard_library_reads_it(bodies: list[str]):
    """Escaped as the dumps do it, and by another writer; the oracle is ElementTree."""
    escaped = [escape(body).replace("\n", "&#xA;").replace("\t", "&#x9;") for body in bodies]
    text = posts(*(f'<row Id="{place}" Body="{body}" />' for place, body in enumerate(escaped)), GOOD)
    text = "".join(c for c in text if ord(c) not in (0xFFFE, 0xFFFF))
    expected = [{key: row.get(key) for key in WANTED} for row in ElementTree.fromstring(text)]
    rows, odd = read(text)
    assert [row for _, row in rows] == expected and not odd.counts
    other = ElementTree.Element("posts")
    other.extend(ElementTree.Element("row", row) for row in expected)
    assert [row for _, row in read(ElementTree.tostring(other))[0]] == expected


def write(folder: Path, **files: str | bytes) -> Path:
    folder.mkdir(exist_ok=True)
    for name, content in files.items():
        stem, _, packed = name.partition("_")
        data = content.encode() if isinstance(content, str) else content
        (folder / f"{stem}.xml{'.' + packed if packed else ''}").write_bytes(data)
    return folder


def rows_of(files: DumpFiles, odd: dump.RowProblems) -> list[dict[str, str]]:
    with files.stream("Posts") as stream:
        return [row for _, row in dump.read_rows(stream, files.shown("Posts"), WANTED, odd)]


def test_plain_gzipped_and_archived_files_read_the_same(tmp_path: Path):
    """Also with a version in the name, as ARQMath's, and in a folder inside the archive."""
    text = posts(*[f'<row Id="{n}" Body="b{n}" />' for n in range(5000)])
    origins = [
        write(tmp_path / "plain", Posts=text),
        write(tmp_path / "gz", Posts_gz=gzip.compress(text.encode())),
        write(tmp_path / "v", **{"Posts.V1.3_gz": gzip.compress(text.encode())}),
        tmp_path / "site.org.7z",
    ]
    with py7zr.SevenZipFile(origins[-1], "w") as archive:
        archive.writestr(b"x" * 10**6, "site/Comments.xml")
        archive.writestr(text.encode(), "site/Posts.xml")
    found = [find_dump(origin, ("Posts",)) for origin in origins]
    everything = [rows_of(files, dump.RowProblems()) for files in found]
    assert everything[0][4999] == {"Id": "4999", "Body": "b4999"}
    assert all(rows == everything[0] for rows in everything)
    assert [files.site for files in found] == ["plain", "gz", "v", "site.org"]
    assert found[-1].shown("Posts") == "site.org.7z: Posts.xml"


def test_a_cut_gzip_says_how_many_rows_were_read(tmp_path: Path):
    """The number is that of whole blocks before the cut."""
    text = posts(*[f'<row Id="{n}" Body="{n * 7919 % 100003}" />' for n in range(200_000)])
    data = gzip.compress(text.encode(), 1)
    files = find_dump(write(tmp_path / "d", Posts_gz=data[: len(data) * 2 // 3]), ("Posts",))
    with pytest.raises(MirblabError, match=r"Posts.xml.gz breaks off after ([\d,]+) rows: .*fetch it again") as caught:
        rows_of(files, dump.RowProblems())
    read_before = int(str(caught.value).split("after ")[1].split(" rows")[0].replace(",", ""))
    assert 80_000 < read_before < 135_000


def test_a_cut_or_damaged_archive_is_an_error(tmp_path: Path):
    """Cut: its directory is gone. Damaged inside: the rows before the damage were read."""
    text = posts(*[f'<row Id="{n}" Body="{n * 7919 % 100003}" />' for n in range(100_000)])
    path = tmp_path / "site.7z"
    with py7zr.SevenZipFile(path, "w", filters=[{"id": py7zr.FILTER_BZIP2}]) as archive:
        archive.writestr(text.encode(), "Posts.xml")
    data = bytearray(path.read_bytes())
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(MirblabError, match=r"site.7z is no whole 7z archive, so that no row was read.*fetch it again"):
        find_dump(path, ("Posts",))
    data[len(data) * 3 // 4] ^= 0xFF
    path.write_bytes(data)
    with pytest.raises(MirblabError, match=r"Posts.xml breaks off after [\d,]+ rows: .*fetch it again"):
        rows_of(find_dump(path, ("Posts",)), dump.RowProblems())


def test_names_in_an_archive_never_become_paths(tmp_path: Path):
    """A member that points outside is read like any other and writes nothing."""
    (tmp_path / "deep" / "er").mkdir(parents=True)
    path = tmp_path / "deep" / "er" / "site.7z"
    with py7zr.SevenZipFile(path, "w") as archive:
        archive.writestr(posts(GOOD).encode(), "inner/Posts.xml")
    before = sorted(tmp_path.rglob("*"))
    assert len(rows_of(find_dump(path, ("Posts",)), dump.RowProblems())) == 1
    assert sorted(tmp_path.rglob("*")) == before


def test_reading_an_archive_may_stop_early(tmp_path: Path):
    """The thread that unpacks ends with it."""
    path = tmp_path / "site.7z"
    with py7zr.SevenZipFile(path, "w") as archive:
        archive.writestr(posts(*[GOOD] * 200_000).encode(), "Posts.xml")
    code = (
        "from mirblab.sources.stackexchange import dump\n"
        f"with dump.find_dump({str(path)!r}, ('Posts',)).stream('Posts') as stream: print(stream.read(5))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr, done.returncode) == ("b'<?xml'\n", "", 0)


def test_without_py7zr_the_message_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Two ways: the extra, or unpacking it oneself."""
    monkeypatch.setitem(sys.modules, "py7zr", None)
    (tmp_path / "site.7z").write_bytes(b"7z")
    with pytest.raises(MirblabError, match=r"pip install --editable '\.\[dumps\]'; or unpack it with `7z x site.7z`"):
        find_dump(tmp_path / "site.7z", ("Posts",))


def test_a_missing_or_doubled_file_is_named(tmp_path: Path):
    """With what is there; comments and the history of posts are not taken for posts."""
    folder = write(tmp_path / "d", PostHistory="", MyPosts="", Posts=posts(GOOD))
    assert find_dump(folder, ("Posts",)).names == {"Posts": "Posts.xml"}
    with pytest.raises(FileNotFoundError, match=r"no PostLinks.xml or PostLinks.xml.gz.*found MyPosts.xml, PostHist"):
        find_dump(folder, ("Posts", "PostLinks"))
    write(folder, Posts_gz=b"")
    with pytest.raises(MirblabError, match=r"Posts.xml and Posts.xml.gz; keep one"):
        find_dump(folder, ("Posts",))
    with pytest.raises(FileNotFoundError, match="nowhere"):
        find_dump(tmp_path / "nowhere", ("Posts",))
    with pytest.raises(MirblabError, match="neither a .7z archive nor a folder"):
        find_dump(folder / "Posts.xml", ("Posts",))


def test_the_real_files_have_the_documented_rows(shared_file: Callable[[str], Path]):
    """Counts of the shared data's notes; byte-order marks, CRLF and single quotes are in them."""
    folder = shared_file("sources/stackexchange")
    kinds = {"coffee.Posts": ("PostTypeId", "1"), "other-site.PostLinks": ("LinkTypeId", "3")}
    expected = {
        "coffee.Posts": (225, {"2": 327, "4": 20, "5": 20}),
        "other-site.PostLinks": (92, {"1": 892}),
        "other-site.Tags": (205, {}),
    }
    for name, (count, passed) in expected.items():
        odd = dump.RowProblems()
        with gzip.open(folder / f"{name}.xml.gz") as stream:
            found = sum(1 for _ in dump.read_rows(stream, name, WANTED, odd, kinds.get(name)))
        assert (found, dict(odd.passed), dict(odd.counts)) == (count, passed, {})
