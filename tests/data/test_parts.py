"""A corpus in parts is the corpus it was made from, whatever the cut, and a damaged part is named."""

from __future__ import annotations

import json
import os
import pickle
import random
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from peak_memory import peak_memory
from pyarrow import parquet
from tiny_encoder import make_model

import mirblab as lab
from mirblab.analysis.searching import free_text
from mirblab.core import atomic_files
from mirblab.core.errors import MirblabError
from mirblab.data import beir, near_duplicates, parts, parts_writer
from mirblab.data import collection as collection_module
from mirblab.data.collection import Collection, load_folder
from mirblab.data.oddities import count_repeats
from mirblab.encoders import encoding
from mirblab.retrieval import codes, dense, feedback, rerank
from mirblab.retrieval.systems import System
from mirblab.sources import catalogue
from mirblab.sources.metamath import find_database
from mirblab.sources.shared import builder
from mirblab.sources.shared.builder import CollectionRows, write_rows

TAGGED = [
    {"_id": f"d{n:02}", "title": f"Title {n}" * (n % 3 == 0), "text": f"ring {n % 5} α&lt;β" * (n % 4 > 0),
     "metadata": {"order": n, "tags": [f"t{n % 3}", "all"], "url": f"https://example.org/{n}"}}
    for n in range(30)
]  # fmt: skip


@pytest.fixture
def cut(monkeypatch):
    """Return a function that sets how many documents a part and a row group have."""

    def set_sizes(part: int = 7, group: int = 3) -> None:
        monkeypatch.setattr(parts_writer, "PART_DOCS", part)
        monkeypatch.setattr(parts_writer, "GROUP_DOCS", group)

    set_sizes()
    return set_sizes


def converted(name: str, out: Path) -> Collection:
    """Return a bundled collection, converted into a new folder."""
    return lab.load(catalogue.convert(name, out / name))


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="needs Linux")
def test_what_is_written_is_closed(cut, tmp_path):
    """An open file keeps its space on the disk when the collection is removed."""
    parts_writer.write_parts(tmp_path / "corpus", [parts.Document(f"d{n}", "", "a ring") for n in range(30)])
    held = [os.path.realpath(path) for path in Path("/proc/self/fd").iterdir()]
    assert not [path for path in held if path.startswith(str(tmp_path))]


def test_a_row_group_ends_at_a_number_of_characters(tmp_path, monkeypatch):
    """So that a reader, and the merge of many files, needs little memory where documents are long."""
    monkeypatch.setattr(parts_writer, "GROUP_SIZE", 100)
    documents = [parts.Document(f"d{n:02}", "t" * 5, "x" * (30 if n < 10 else 3)) for n in range(20)]
    parts_writer.write_parts(tmp_path / "corpus", documents)
    made = parts.Parts(tmp_path / "corpus")
    assert np.diff(made.starts).tolist() == [3, 3, 3, 10, 1]
    assert list(parts.read_documents(tmp_path / "corpus")) == documents


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="needs Linux")
def test_few_files_are_merged_at_a_time(cut, tmp_path, monkeypatch):
    """In passes, to the bytes of one pass; a repeated id is found in whatever pass its documents meet."""
    documents = random.Random(0).sample([parts.Document(f"d{n:03}", "", f"ring {n}") for n in range(200)], 200)
    parts_writer.write_parts(tmp_path / "one", documents)
    monkeypatch.setattr(parts_writer, "MERGED", 4)
    most, plain = [0], parts_writer._read_tables

    def watched(path):
        for table in plain(path):
            held = [os.path.realpath(path) for path in Path("/proc/self/fd").iterdir()]
            most[0] = max(most[0], sum("draft-" in path for path in held))
            yield table

    monkeypatch.setattr(parts_writer, "_read_tables", watched)
    parts_writer.write_parts(tmp_path / "other", documents)
    assert 4 <= most[0] <= 5  # and the one that is written
    one, other = ({path.name: path.read_bytes() for path in (tmp_path / name).iterdir()} for name in ("one", "other"))
    assert one == other
    with pytest.raises(parts_writer.RepeatedId, match="'d007'"):
        parts_writer.write_parts(tmp_path / "third", [*documents, parts.Document("d007", "", "")])


def test_repeated_texts_are_counted_in_the_memory_of_their_hashes():
    """The writer's docstring promises 16 bytes for a document; a zero at the end of a hash counts as any byte."""
    hashes = bytearray(random.Random(0).randbytes(16 * 100_000))
    hashes[:160], hashes[-16:] = hashes[800:960], hashes[800:815] + bytes([hashes[815] ^ 1])
    hashes[320:352] = bytes(32)
    with peak_memory() as peak:
        assert count_repeats(hashes) == 11
    assert peak.n_bytes < 2 * 100_000
    assert count_repeats(bytearray()) == 0


@pytest.mark.parametrize("name", ["mini-wfb", "mini-mse-dup", "mini-mathlib"])
def test_everything_that_is_measured_on_parts_is_what_jsonl_gives(cut, tmp_path, name):
    """Fingerprint, texts, statistics, oddities and a run are equal, with rules for candidates, too."""
    one, other = lab.load(name), converted(name, tmp_path)
    assert isinstance(other.texts, parts.DocumentTexts)
    assert len(list((tmp_path / name / "corpus").glob("*.parquet"))) == -(-len(one.texts) // 7)
    assert other.fingerprint == one.fingerprint
    assert list(other.texts) == one.texts
    assert other.statistics() == one.statistics()
    assert other.oddities == one.oddities
    assert other.first_tags.tolist() == one.first_tags.tolist()
    system = lab.system("structure" if name == "mini-wfb" else "bm25")
    runs = [retrieve(system, collection) for collection in (one, other)]
    pd.testing.assert_frame_equal(*runs)
    assert len(runs[1]) > 100


def test_what_takes_a_collection_takes_one_in_parts(cut, make_folder, tmp_path, monkeypatch):
    """Vectors, also in codes, fusion, feedback, measures, similar pairs, the report and search give the same."""
    whole = lab.load("mini-qa")
    chosen = whole.doc_ids[:40]
    corpus = [{"_id": name, "title": "", "text": whole.document(name)[:60]} for name in chosen]
    queries = [{"_id": f"q{n}", "text": row["text"][10:50]} for n, row in enumerate(corpus[::8])]
    judged = "".join(f"q{n}\t{row['_id']}\t1\n" for n, row in enumerate(corpus[::8]))
    folder = make_folder(corpus, queries, judged, 'name = "few"\n')
    one, other = load_folder(folder), load_folder(catalogue.convert(folder, tmp_path / "parts"))
    monkeypatch.setattr(codes, "SMALL", 10)
    coded = lab.system("minilm", code_bits=2)
    for system in (lab.system("minilm"), coded, lab.system("bm25+minilm"), lab.system("bm25~rm3")):
        runs = [retrieve(system, collection) for collection in (one, other)]
        pd.testing.assert_frame_equal(*runs)
        values = [lab.evaluate(*pair, ["nDCG@10", "R@5"]) for pair in zip(runs, (one, other), strict=True)]
        pd.testing.assert_frame_equal(*values)
        assert values[1].value.mean() > 0.5
    for make in (
        lambda collection: str(lab.similar(collection, by="bm25", n=9)),
        lambda collection: str(lab.report(collection)),
        lambda collection: str(lab.search("finite group", collection, "bm25", depth=3)),
    ):
        assert make(one) == make(other)


def retrieve(system, collection):
    """Return the run of a system without the store, in which equal fingerprints would share it."""
    from mirblab.retrieval import systems

    return systems._SEARCHES[system.settings["kind"]](system, collection, 50)


@pytest.mark.parametrize(("part", "group"), [(1, 1), (7, 3), (8, 8), (1000, 2), (30, 30)])
def test_the_fingerprint_does_not_depend_on_the_cut(cut, make_folder, tmp_path, part, group):
    """Nor do the digest of the content, orders, tags and other fields."""
    shuffled = random.Random(part).sample(TAGGED, len(TAGGED))
    folder = make_folder(shuffled, qrels="q1\td01\t1\nq2\td02\t1\n", card='candidates = ["tags"]\n')
    queries = [{"_id": name, "text": name, "metadata": {"tags": ["t1"]}} for name in ("q1", "q2")]
    (folder / "queries.jsonl").write_text("\n".join(map(json.dumps, queries)))
    one = load_folder(folder)
    cut(part, group)
    other = load_folder(catalogue.convert(folder, tmp_path / "parts"))
    assert other.fingerprint == one.fingerprint
    assert other.oddities == one.oddities
    assert other.corpus.order.tolist() == one.corpus.order.tolist() == list(range(30))
    assert other.corpus.tags.to_list() == one.corpus.tags.to_list()
    assert other.candidates.allowed(np.arange(2)).tolist() == one.candidates.allowed(np.arange(2)).tolist()
    assert list(beir.read_rows(tmp_path / "parts", "corpus")) == TAGGED
    cut(4, 2)
    again = load_folder(catalogue.convert(tmp_path / "parts", tmp_path / "again"))
    assert again.corpus.text.array.parts.content == other.corpus.text.array.parts.content


def test_a_column_of_parts_is_read_as_a_column_in_memory(cut, tmp_path):
    """Positions, slices, masks, lists and whole columns have the same texts, in whatever order they are asked for."""
    one, other = lab.load("mini-qa"), converted("mini-qa", tmp_path)
    expected, column = one.corpus.text, other.corpus.text
    places = np.random.default_rng(0).permutation(len(expected))[:200]
    assert column.iloc[places].to_list() == expected.iloc[places].to_list()
    mask = expected.str.len() > 300
    assert column[mask].to_list() == expected[mask].to_list()
    assert column.iloc[5:50:3].to_list() == expected.iloc[5:50:3].to_list()
    assert column.iloc[-1] == expected.iloc[-1]
    assert column.astype("str").equals(expected)
    assert other.texts[10:40] == one.texts[10:40]
    assert other.texts[::-7] == one.texts[::-7]
    assert [other.texts[place] for place in places[:20]] == [one.texts[place] for place in places[:20]]
    with pytest.raises(IndexError):
        other.texts[len(one.texts)]
    assert other.document("a5-simple-a1") == one.document("a5-simple-a1")
    both = pd.concat([other.corpus, one.corpus])
    assert both.text.to_list() == expected.to_list() * 2
    assert pickle.loads(pickle.dumps(other)).texts[3] == one.texts[3]


def test_opening_reads_no_text(cut, tmp_path, monkeypatch):
    """Only the column of ids is read by load() and statistics(), and one text costs its row group only."""
    folder = catalogue.convert("mini-qa", tmp_path / "qa")
    read, plain = list[tuple[int, str]](), parts.Parts._read_group

    def watched(self, group, name):
        read.append((group, name))
        return plain(self, group, name)

    monkeypatch.setattr(parts.Parts, "_read_group", watched)
    collection = lab.load(folder)
    assert collection.statistics() == lab.load("mini-qa").statistics()
    assert {name for _, name in read} == {"doc_id"}
    read.clear()
    assert collection.texts[100]
    assert read == [(read[0][0], "title"), (read[0][0], "text")]


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="needs Linux")
def test_no_part_is_open_when_a_collection_is_replaced(cut, tmp_path, monkeypatch):
    """Windows would refuse to rename the folder, and elsewhere the removed one would keep its disk space."""

    def open_files() -> list[str]:
        held = [os.path.realpath(path) for path in Path("/proc/self/fd").iterdir()]
        return [path for path in held if path.startswith(str(tmp_path))]

    folder = catalogue.convert("mini-qa", tmp_path / "qa")
    old = lab.load(folder)
    assert old.texts[3] and open_files()
    seen = list[list[str]]()

    def watched(path, target):
        if path.is_dir():
            seen.append(open_files())
        os.replace(path, target)

    monkeypatch.setattr(atomic_files, "rename_path", watched)
    with builder.replace_folders(tmp_path, ("qa",)) as [new]:
        for path in ("card.toml", "queries.jsonl"):
            shutil.copyfile(folder / path, new / path)
        shutil.copytree(folder / "qrels", new / "qrels")
        shutil.copytree(folder / "corpus", new / "corpus")
    assert len(seen) == 2 and not any(seen) and not open_files()
    assert lab.load(folder).texts[3] == old.texts[3]


def test_two_readers_of_a_part_have_one_lock(cut, tmp_path, monkeypatch):
    """They share its open file, which is not to be read by two threads at once."""
    parts_writer.write_parts(tmp_path / "corpus", [parts.Document(f"d{n}", "", "a ring") for n in range(6)])
    one, other = (parts.Parts(tmp_path / "corpus") for _ in range(2))
    kept, used = parts._kept_part, list[tuple[object, object]]()
    monkeypatch.setattr(parts, "_kept_part", lambda *given: used.append(kept(*given)) or used[-1])
    assert one.take("text", np.arange(3)) == other.take("text", np.arange(3))
    assert used[0][0] is used[1][0] and used[0][1] is used[1][1]


def test_a_builder_writes_parts_above_a_size(cut, tmp_path, monkeypatch):
    """The rows of a generator become parts, in the order of ids, and at that size still one file."""
    rows = [{"_id": f"d{n}", "text": f"text {n}"} for n in range(40)]
    for size, is_parts in ((39, True), (40, False)):
        monkeypatch.setattr(beir, "LARGE", size)
        given = CollectionRows((row for row in rows), [{"_id": "q", "text": "text"}], {"test": [("q", "d7", 1)]})
        folder = write_rows(tmp_path / f"of-{size}", given, {"name": "rows"})
        assert (folder / "corpus" / "manifest.json").is_file() == is_parts != (folder / "corpus.jsonl").is_file()
        assert load_folder(folder).texts[7] == f"text {sorted(str(n) for n in range(40))[7]}"


@pytest.mark.parametrize("build", ["metamath", "hard", "stackexchange"])
def test_what_is_built_in_parts_is_what_is_built_in_one_file(cut, tmp_path, monkeypatch, build):
    """Of the largest sources, and of a collection that is made from one in parts."""

    def make(home: Path, large: int) -> dict[str, str]:
        monkeypatch.setenv("MIRBLAB_HOME", str(home))
        monkeypatch.setattr(beir, "LARGE", large)
        if build == "stackexchange":
            folders = catalogue.build(build, str(write_dump(home / "dump")), name="own")
        else:
            folders = catalogue.build(build, "mini-stacks" if build == "hard" else str(find_database("mini")))
        assert all((folder / "corpus" / "manifest.json").is_file() == (large == 3) for folder in folders)
        return {folder.name: lab.load(folder).fingerprint for folder in folders}

    assert make(tmp_path / "parts", 3) == make(tmp_path / "file", 10_000)


def write_dump(folder: Path) -> Path:
    """Write a dump of Stack Exchange with 60 questions, of which every third repeats an earlier one."""
    folder.mkdir(parents=True)
    posts = [
        f'<row Id="{n}" PostTypeId="1" Title="What is ring {n} good for?" Body="&lt;p&gt;Let $R_{{{n}}}$ be a ring '
        f'with {n} elements, where is it?&lt;/p&gt;" Tags="&lt;t{n}&gt;" CreationDate="2020-01-01T00:00:00.000" />'
        for n in range(1, 61)
    ]
    links = [
        f'<row Id="{n}" PostId="{n}" RelatedPostId="{n - 1}" LinkTypeId="3" CreationDate="2020-01-01T00:00:00.000" />'
        for n in range(3, 61, 3)
    ]
    for name, rows in (("posts", posts), ("postlinks", links)):
        stem = {"posts": "Posts", "postlinks": "PostLinks"}[name]
        (folder / f"{stem}.xml").write_text("\n".join(['<?xml version="1.0"?>', f"<{name}>", *rows, f"</{name}>"]))
    return folder


def test_a_large_folder_is_added_in_parts(cut, make_folder, monkeypatch, home, abandoned):
    """`add` converts one large file, and its copy has the same content; a second call finds it there."""
    monkeypatch.setattr(beir, "LARGE", 10)
    folder = make_folder(TAGGED, qrels="q1\td01\t1\nq2\td02\t1\n")
    left = abandoned(home / "data" / "parts")  # by a call that was killed
    left.mkdir(parents=True)
    for _ in range(2):
        target, notes = catalogue.add(folder, name="large")
    assert (target / "corpus" / "manifest.json").is_file()
    assert any("HTML entities" in note for note in notes)
    assert lab.load("large").fingerprint == load_folder(folder).fingerprint
    assert [path.name for path in (home / "data").iterdir()] == ["large"]
    (folder / "corpus.jsonl").write_text('{"_id": "d1", "text": 5}\n' * 12)
    with pytest.raises(MirblabError, match=r"tiny/corpus.jsonl, line 1: 'text' of 'd1'"):
        catalogue.add(folder, name="other")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"_id": "d05", "text": "again"}', r"line 31: duplicate _id 'd05', first on line \d+"),
        ('{"_id": "d99"}', "line 31: 'text' of 'd99' must be a text"),
        ("{", "line 31: broken JSON"),
    ],
)
def test_a_wrong_file_is_not_converted(cut, make_folder, tmp_path, line, message):
    """The error names the line, as that of load does, and nothing is left."""
    folder = make_folder(random.Random(1).sample(TAGGED, 30), qrels="q1\td01\t1\nq2\td02\t1\n")
    with open(folder / "corpus.jsonl", "a") as file:
        file.write("\n" + line if not (folder / "corpus.jsonl").read_text().endswith("\n") else line)
    with pytest.raises(MirblabError, match=message):
        load_folder(folder)
    (tmp_path / "out").mkdir()
    with pytest.raises(MirblabError, match=message):
        catalogue.convert(folder, tmp_path / "out" / "parts")
    assert not any((tmp_path / "out").iterdir())


def test_what_cannot_be_converted_is_refused(cut, tmp_path, make_folder):
    """A bundled collection, one without a card, one in that form, and a folder that exists are left as they are."""
    with pytest.raises(MirblabError, match="bundled"):
        catalogue.convert("mini-qa")
    plain = make_folder()
    with pytest.raises(MirblabError, match=r"has no card.toml and is not replaced; give a new folder with --out"):
        catalogue.convert(plain)
    with pytest.raises(MirblabError, match="exists; name a new folder"):
        catalogue.convert("mini-qa", plain)
    with pytest.raises(MirblabError, match="form of a corpus"):
        catalogue.convert("mini-qa", tmp_path / "new", to="part")
    folder = catalogue.convert("mini-qa", tmp_path / "qa")
    with pytest.raises(MirblabError, match="in the form 'parts' already"):
        catalogue.convert(folder)
    (folder / "corpus.jsonl").write_text("{}")
    (folder / "digests.txt").unlink()
    with pytest.raises(MirblabError, match=r"corpus.jsonl and the parts in corpus/; keep one of them"):
        lab.load(folder)


def test_there_and_back_in_place_gives_the_same_rows(cut, tmp_path, make_folder):
    """Every other file of the folder stays, and every field of a document."""
    folder = make_folder(TAGGED, qrels="q1\td01\t1\nq2\td02\t1\n", card='title = "Mine"\n')
    (folder / "reading.md").write_text("notes")
    before = load_folder(folder).fingerprint
    catalogue.convert(folder)
    assert not (folder / "corpus.jsonl").exists()
    assert (folder / "reading.md").read_text() == "notes"
    assert load_folder(folder).fingerprint == before
    catalogue.convert(folder, to="jsonl")
    assert [json.loads(line) for line in (folder / "corpus.jsonl").read_text().splitlines()] == TAGGED
    assert not (folder / "corpus").exists()
    assert load_folder(folder).fingerprint == before


def damage(path: Path, offset: int) -> None:
    """Change one byte of a file."""
    content = bytearray(path.read_bytes())
    content[offset] ^= 0x10
    path.write_bytes(content)


def test_a_damaged_part_is_named(cut, tmp_path, make_folder):
    """Cut, missing and exchanged parts are errors of load; a changed byte of a text is one of the text that is read."""
    cut(10, 5)
    made = catalogue.convert(make_folder(TAGGED, qrels="q1\td01\t1\nq2\td02\t1\n"), tmp_path / "made")
    (made / "digests.txt").unlink()  # what the manifest detects without them
    for change, message in (
        (lambda path: path.write_bytes(path.read_bytes()[:-100]), r"part-00001.parquet should have [\d,]+ bytes"),
        (lambda path: path.unlink(), "part-00001.parquet is missing"),
        (lambda path: damage(path, -20), "part-00001.parquet is not the file that was written"),
        (
            lambda path: shutil.copyfile(path.with_name("part-00002.parquet"), path),
            "part-00001.parquet (should|is not)",
        ),
    ):
        folder = shutil.copytree(made, tmp_path / "broken")
        change(folder / "corpus" / "part-00001.parquet")
        with pytest.raises(MirblabError, match=message):
            load_folder(folder)
        shutil.rmtree(folder)
    folder = shutil.copytree(made, tmp_path / "broken")
    path = folder / "corpus" / "part-00001.parquet"
    place = parquet.ParquetFile(path).metadata.row_group(1).column(2).data_page_offset
    damage(path, place + 60)
    collection = load_folder(folder)
    assert collection.texts[14] == load_folder(made).texts[14]
    with pytest.raises(MirblabError, match=r"part-00001.parquet is damaged .*; copy the folder again, or build"):
        list(collection.texts)
    with pytest.raises(MirblabError, match=r"part-00001.parquet is damaged"):
        _ = collection.fingerprint


def test_parts_that_changed_after_they_were_built_are_refused(cut, tmp_path):
    """Where digests are stored, another manifest or a new file is an error, too, as for every collection."""
    folder = catalogue.convert("mini-qa", tmp_path / "qa")
    (folder / "corpus" / "part-99999.parquet").write_bytes(b"PAR1")
    with pytest.raises(MirblabError, match=r"corpus/part-99999.parquet is new"):
        lab.load(folder)


def test_a_killed_conversion_is_no_collection(cut, tmp_path):
    """Until all parts are written there is no folder that could be taken for a corpus; the next run cleans up."""
    code = (
        "import os, sys\n"
        "from mirblab.data import parts_writer\n"
        "from mirblab.sources import catalogue\n"
        "parts_writer.PART_DOCS = 7\n"
        "plain, written = parts_writer._write_part, []\n"
        "def write(path, rows, tell):\n"
        "    plain(path, rows, tell)\n"
        "    written.append(path)\n"
        "    if len(written) == 20:\n"
        "        os.kill(os.getpid(), 9)\n"
        "parts_writer._write_part = write\n"
        "catalogue.convert('mini-qa', sys.argv[1])\n"
    )
    out = tmp_path / "out" / "qa"
    ended = subprocess.run([sys.executable, "-c", code, out], env=os.environ, capture_output=True)
    assert ended.returncode == -9
    left = list(out.parent.iterdir())
    assert len(left) == 1 and left[0].name.startswith(".")
    assert lab.load(catalogue.convert("mini-qa", out)).fingerprint == lab.load("mini-qa").fingerprint
    assert list(out.parent.iterdir()) == [out]


def test_a_corpus_of_nothing_has_no_part(cut, make_folder, tmp_path):
    """An empty file is an empty corpus in either form."""
    folder = make_folder(" ", " ", "query-id\tcorpus-id\tscore\n")
    beir.convert_corpus(folder, tmp_path)
    made = parts.read_parts(tmp_path / "corpus")
    assert len(made) == 0 and made.text.to_list() == []


@pytest.mark.parametrize("name", ["mini-mathlib", "mini-mse-dup", "mini-premises", "mini-wfb"])
def test_a_sample_of_the_documents_has_the_rules_of_all(cut, tmp_path, name):
    """Every judged document is in it, and each query may return of it what it may return of all."""
    one, other = lab.load(name), converted(name, tmp_path)
    few = other.sample(9, seed=1, n_documents=60)
    assert few.fingerprint == one.sample(9, seed=1, n_documents=60).fingerprint
    assert few.fingerprint != other.sample(9, seed=1, n_documents=61).fingerprint
    assert not isinstance(few.corpus.text.array, parts.PartsColumn)
    assert len(few.corpus) == max(60, few.qrels.doc_id.nunique()) and len(few.query_ids) == 9
    queries, places = one.query_ids.get_indexer(few.query_ids), one.doc_ids.get_indexer(few.doc_ids)
    assert few.texts == [one.texts[place] for place in places]
    whole = one.candidates.allowed(queries)
    expected = None if whole is None else whole[:, places].tolist()
    masks = few.candidates.allowed(np.arange(9)), few.candidates.allowed(np.arange(9), slice(5, 40))
    assert expected is None or (masks[0].tolist() == expected and masks[1].tolist() == [row[5:40] for row in expected])
    judged = [collection.qrels.astype({"doc_id": "str", "query_id": "str"}) for collection in (few, one)]
    assert judged[0].equals(judged[1][judged[1].query_id.isin(few.query_ids)].reset_index(drop=True))
    assert len(lab.evaluate(lab.system("bm25").search(few, 5), few, "nDCG@10")) == 9
    with pytest.raises(MirblabError, match="n_documents must not be negative, found -1"):
        other.sample(0, n_documents=-1)


@pytest.mark.parametrize("name", ["mini-qa", "mini-wfb", "mini-mathlib"])
def test_free_text_is_answered_from_the_stored_index(cut, tmp_path, monkeypatch, name):
    """Documents, scores and what matched are those of one file, also above the number that fits in memory."""
    one, other = lab.load(name), converted(name, tmp_path)
    texts = [*one.query_texts[:20], "a finite integral domain is a field", "qqzzqq"]
    expected = lab.search(texts, one, "bm25").frame
    free_text._engines.clear()  # equal collections share an engine
    monkeypatch.setattr(collection_module, "MOST_TEXTS", 10)
    pd.testing.assert_frame_equal(lab.search(texts, other, "bm25").frame, expected)
    assert len(expected) > 50
    assert expected.matched.str.len().gt(0).all()


def test_what_works_in_memory_refuses_too_many_documents_in_parts(cut, tmp_path, monkeypatch):
    """The error has both numbers and a sample to take; the sample is taken, and one file is read as before."""
    one, other = lab.load("mini-pairs"), converted("mini-pairs", tmp_path)
    run = retrieve(lab.system("bm25"), other)
    monkeypatch.setattr(collection_module, "MOST_TEXTS", 100)
    query = lab.analysis.describe_query(other, other.query_ids[0], [run])
    uses = [
        lambda collection: lab.similar(collection, by="bm25q", n=5),
        lambda collection: lab.similar(lab.load("mini-qa"), collection, by="bm25q", n=5),
        lambda collection: lab.analysis.rewrite_documents(collection, 5),
        lambda collection: lab.analysis.query_formula_matches(replace(query, collection=collection), []),
        lambda collection: retrieve(lab.system("bm25-mirb"), collection),
        lambda collection: retrieve(System("okapi", "okapi", {"kind": "bm25", "engine": "rank-bm25"}), collection),
        lambda collection: retrieve(lab.system("bm25~rm3"), collection),
    ]
    message = r"in memory, with at most 100 documents .* has 324; take a sample, .*\.sample\(0, n_documents=10\)"
    for use in uses:
        with pytest.raises(MirblabError, match=message):
            use(other)
        use(one)
    for by in ("bm25", "structure", "bm25+minilm"):  # which need no texts in memory
        assert lab.similar(other, by=by, n=5).frame.equals(lab.similar(one, by=by, n=5).frame)
    assert len(lab.similar(other.sample(1, n_documents=80), by="bm25q", n=5).frame) == 5
    for kind, instead in (
        ("sparse", "$"),
        ("late", r", or rerank a search by codes: minilm \(code_bits = 2\)>maxsim@1000$"),
    ):
        with pytest.raises(MirblabError, match=message + instead):
            retrieve(System(kind, kind, {"kind": kind, "encoder": "minilm"}), other)


def test_late_interaction_over_parts_scores_the_candidates_of_a_search_by_codes(cut, tmp_path, monkeypatch, own):
    """With all documents as candidates the order is that of the exact search; else no other token vectors are read."""
    one, other = (collection.sample(20) for collection in (lab.load("mini-pairs"), converted("mini-pairs", tmp_path)))
    model = str(make_model(tmp_path / "tiny"))
    own("rerankers", f'[tiny-maxsim]\nkind = "max-sim"\nencoder = "{model}"\n')
    own("systems", f'[tiny]\nkind = "dense"\nencoder = "{model}"\n')
    monkeypatch.setattr(codes, "SMALL", 10)
    monkeypatch.setattr(collection_module, "MOST_TEXTS", 100)
    exact = retrieve(System("late", "late", {"kind": "late", "encoder": model}), one)
    asked, plain = list[int](), rerank.load_token_vectors

    def load(encoder, texts, *given):
        asked.append(len(texts))
        return plain(encoder, texts, *given)

    monkeypatch.setattr(rerank, "load_token_vectors", load)
    lab.system("tiny (code_bits = 2)>tiny-maxsim@3").search(other, 3)
    assert len(asked) == 2 and asked[0] == 20 and 3 <= asked[1] <= 60
    found = lab.system("tiny (code_bits = 2)>tiny-maxsim@324").search(other, 50)
    both = [run.set_index(["query_id", "rank"]).sort_index() for run in (found, exact)]
    assert both[0].index.equals(both[1].index)
    # Products of other sizes differ in the last bit, which decides between equal scores.
    assert (both[0].doc_id.astype("str") == both[1].doc_id.astype("str")).mean() > 0.98


def test_positions_of_a_column_in_parts_are_those_of_an_array(cut, tmp_path):
    """From the end, twice, by a mask and of a slice; one outside is an error."""
    column = converted("mini-wfb", tmp_path).corpus.text.array
    plain = np.array(lab.load("mini-wfb").corpus.text)
    mask = np.arange(len(plain)) % 3 == 0
    for places in (np.array([3, -1, 3, 0]), mask, np.array([], dtype=np.int64)):
        assert list(column[places]) == plain[places].tolist()
        assert list(column[5::2][places[: len(plain[5::2])]]) == plain[5::2][places[: len(plain[5::2])]].tolist()
    for outside in (len(plain), -len(plain) - 1):
        with pytest.raises(IndexError, match=f"outside of the {len(plain):,} values"):
            column[np.array([outside])]


def test_near_duplicates_of_a_collection_in_parts_are_found_without_its_texts_in_memory(cut, tmp_path, monkeypatch):
    """The report and the pairs of a query are those of one file; few texts are in memory, signatures go to a file."""
    one, other = lab.load("mini-formula"), converted("mini-formula", tmp_path)

    def pairs_of(collection: Collection) -> list[pd.DataFrame]:
        run = retrieve(lab.system("bm25"), collection)
        query = lab.analysis.describe_query(collection, collection.query_ids[0], [run])
        report = lab.report(collection, encoders=(), threshold=0.4)
        near = lab.analysis.query_near_duplicates(query, threshold=0.4)
        return [near, report.copies, report.duplicates, report.summary, report.leaks, report.lengths]

    expected = pairs_of(one)
    assert len(expected[0]) and len(expected[1]) > 50
    n_read, plain = list[int](), parts.texts_at
    monkeypatch.setattr(near_duplicates, "texts_at", lambda texts, at: n_read.append(len(at)) or plain(texts, at))
    monkeypatch.setattr(collection_module, "MOST_TEXTS", 10)
    for name, size in (("_LARGEST_IN_MEMORY", 10), ("_PAIRS_PER_READING", 8), ("_TEXTS_PER_BLOCK", 32)):
        monkeypatch.setattr(near_duplicates, name, size)
    assert isinstance(near_duplicates.minhash_signatures(other.texts, 4)[0], np.memmap)
    for table, wanted in zip(pairs_of(other), expected, strict=True):
        pd.testing.assert_frame_equal(table, wanted)
    assert 0 < max(n_read) <= 32 < len(one.texts)


def test_exact_vectors_of_a_collection_in_parts_are_not_in_memory_together(cut, tmp_path, monkeypatch):
    """They are encoded and searched part by part, and the run is that of all at once, byte for byte."""
    one, other = (collection.sample(30) for collection in (lab.load("mini-pairs"), converted("mini-pairs", tmp_path)))
    monkeypatch.setattr(dense, "CHUNK_DOCS", 128)
    monkeypatch.setitem(dense.search.__kwdefaults__, "doc_block", 64)
    read, plain = list[int](), encoding.VectorReader.read
    monkeypatch.setattr(encoding.VectorReader, "read", lambda self, some: read.append(len(some)) or plain(self, some))
    system = System("dense", "dense", {"kind": "dense", "encoder": str(make_model(tmp_path / "tiny"))})
    whole = retrieve(system, one)
    assert read == [len(one.doc_ids)] == [324]
    read.clear()
    run = retrieve(system, other)
    pd.testing.assert_frame_equal(run, whole)
    assert run.score.to_numpy().tobytes() == whole.score.to_numpy().tobytes()
    assert read == [68, 128, 128]
    model = encoding.encoder(system.settings["encoder"])
    queries = model.vectors(one.query_texts, "query")
    moved = [feedback.rocchio(queries, codes.load_vectors(model, each.texts, ""), depth=9) for each in (one, other)]
    for left, right in zip(*moved, strict=True):
        assert left.tobytes() == right.tobytes()
