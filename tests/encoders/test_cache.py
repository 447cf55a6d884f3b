"""cache, shard: every vector comes back under its text, damage is noticed, and no kill or race yields a wrong one."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xxhash
from hasty_writer import hasty_writer
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import load_file
from stored_vectors import SPACE, flip, names, rows, shards

from mirblab.core import atomic_files
from mirblab.core.errors import MirblabError
from mirblab.encoders import cache, spaces, token_vectors
from mirblab.encoders import cache as encoders_cache
from mirblab.encoders.cache import KeyIndex, VectorStore
from mirblab.encoders.token_vectors import StoredTokens, TokenStore


@pytest.fixture
def store(tmp_path: Path) -> VectorStore:
    """Return a store with 50 texts in two shards."""
    store = VectorStore(tmp_path, SPACE)
    store.append(names(30), rows(names(30)))
    store.append(names(20, 30), rows(names(20, 30)))
    return store


Kind = type[VectorStore] | type[TokenStore]


def contents(kind: Kind, texts: list[str], d: int = 6) -> Any:
    """Return what a store of this kind keeps for each text: a vector, or that vector as one row of token vectors."""
    return rows(texts, d) if kind is VectorStore else list(rows(texts, d)[:, None])


def check_contents(found: Any, texts: list[str], start: int = 0) -> None:
    """Compare what was read, from a position on, with what was stored: token vectors as float16."""
    if isinstance(found, StoredTokens):
        expected = rows(texts).astype(np.float16).astype(np.float32)
        np.testing.assert_array_equal(found.block(start, start + len(texts)), expected)
    else:
        np.testing.assert_array_equal(found[start : start + len(texts)], rows(texts))


@pytest.fixture(params=[VectorStore, TokenStore])
def either(tmp_path: Path, request: pytest.FixtureRequest) -> VectorStore | TokenStore:
    """Return a store of vectors, or one of token vectors, with 50 texts in two shards."""
    store = request.param(tmp_path, SPACE)
    for texts in (names(30), names(20, 30)):
        store.append(texts, contents(request.param, texts))
    return store


def test_vectors_come_back_in_the_order_of_the_texts(store: VectorStore) -> None:
    """Any order, repeated texts included, gives each text its own vector bit for bit."""
    asked = [names(50)[i] for i in np.random.default_rng(0).integers(0, 50, 200)]
    vectors, missing = store.read(asked)
    assert len(missing) == 0
    np.testing.assert_array_equal(vectors, rows(asked))


@pytest.mark.parametrize("n", [0, 1, 169, 170, 171, 5000])
@pytest.mark.parametrize("d", [1, 6, 7, 384])
def test_any_number_of_rows_and_dimensions(tmp_path: Path, n: int, d: int) -> None:
    """Lengths around the block of a gather, odd dimensions and none at all come back right."""
    vectors = np.random.default_rng(n).standard_normal((n, d), dtype=np.float32)
    VectorStore(tmp_path, SPACE | {"dimensions": d}).append(names(n), vectors)
    found, missing = VectorStore(tmp_path, SPACE | {"dimensions": d}).read(names(n) + ["absent"])
    np.testing.assert_array_equal(found[:n], vectors)
    assert found.shape == (n + 1, d) and missing.tolist() == [n]


def test_missing_texts_are_named_by_position_and_their_rows_are_nan(store: VectorStore) -> None:
    """What is not stored is never a plausible number."""
    vectors, missing = store.read(["x", *names(2), "y", "x"])
    assert missing.tolist() == [0, 3, 4] == store.missing(["x", *names(2), "y", "x"]).tolist()
    assert np.isnan(vectors[missing]).all() and not np.isnan(vectors[1:3]).any()


@pytest.mark.parametrize("part", ["model", "revision", "role", "prompt", "max_length", "pooling", "normalise", "dtype"])
def test_each_part_of_the_space_gives_another_space(store: VectorStore, part: str) -> None:
    """A vector is never found under another model, revision, role, prompt, length, pooling, norm or precision."""
    other = VectorStore(store.path.parent, SPACE | {part: "other"})
    assert other.path != store.path and other.missing(names(50)).tolist() == list(range(50))


def test_a_shard_copied_into_another_space_is_refused(store: VectorStore) -> None:
    """A file in the wrong folder is set aside, because its header names its space."""
    other = VectorStore(store.path.parent, SPACE | {"role": "query"})
    other.append(["q"], rows(["q"]))
    (other.path / "0-stray.safetensors").write_bytes(shards(store)[0].read_bytes())
    with pytest.warns(UserWarning, match="0-stray.*another space"):
        assert len(other.missing(names(30))) == 30


def test_equal_spaces_are_one_whatever_the_order_of_their_parts(tmp_path: Path) -> None:
    """The folder is named by the canonical form of the space."""
    assert VectorStore(tmp_path, SPACE).path == VectorStore(tmp_path, dict(reversed(SPACE.items()))).path


def test_other_tools_can_open_a_shard(store: VectorStore) -> None:
    """safetensors reads the file, and finds vectors, keys and one checksum per row."""
    tensors = load_file(shards(store)[0])
    np.testing.assert_array_equal(tensors["vectors"], rows(names(30)))
    assert tensors["keys"].shape == (30, 16) and tensors["keys"].dtype == np.uint8
    assert tensors["checks"].shape == (30,)


STRANGE = ["", "\0", "a\0", "a", "é", "e\u0301", "\ud800", "\udfff", "\ud83d\ude00", "😀", " ", "\n", "𝔸", "x" * 10**6]


def test_strange_texts_have_keys_of_their_own(tmp_path: Path) -> None:
    """Empty, NUL, lone surrogates, composed and decomposed letters, a million characters: all distinct."""
    vectors = np.random.default_rng(0).standard_normal((len(STRANGE), 6), dtype=np.float32)
    VectorStore(tmp_path, SPACE).append(STRANGE, vectors)
    for position, text in enumerate(STRANGE):
        np.testing.assert_array_equal(VectorStore(tmp_path, SPACE).read([text])[0][0], vectors[position])


@settings(max_examples=50, deadline=None)
@given(st.lists(st.text(st.characters(), max_size=20), unique=True))
def test_keys_are_a_function_of_the_text_alone(texts: list[str]) -> None:
    """A text has one key, alone or among others, and distinct texts have distinct ones."""
    together = cache.text_keys(texts)
    alone = [cache.text_keys([text])[0].tolist() for text in texts]
    assert together.tolist() == alone and len({tuple(key) for key in alone}) == len(texts)


def test_the_key_of_a_text_never_changes() -> None:
    """Stored caches stay valid: the key is BLAKE2b of UTF-8, 128 bits, with no key or salt."""
    expected = hashlib.blake2b("Soit $X$ un schéma".encode(), digest_size=16).digest()
    assert cache.text_keys(["Soit $X$ un schéma"]).tobytes() == expected


def test_texts_made_to_collide_keep_their_own_vectors(tmp_path: Path) -> None:
    """Two texts with one key under xxh3-128 and the public seed that was ours.

    xxh3 multiplies the halves of (data ^ secret): where the text makes one half 0, the other does not count; what is
    added besides is balanced by a second such place.
    """
    shape = "\x1aq\u05a6{}" + 955 * "x" + "f-\x15\\{}" + 231 * "y"
    texts = [shape.format("a", "b"), shape.format("b", "a")]
    hashes = {xxhash.xxh3_128_digest(text.encode(), 0x6D697262) for text in texts}
    assert len(set(texts)) == 2 and len(hashes) == 1
    store, tokens = VectorStore(tmp_path, SPACE), TokenStore(tmp_path, SPACE)
    store.append(texts, np.array([[1.0] * 6, [2.0] * 6]))
    tokens.append(texts, [np.full((1, 2), 1.0), np.full((1, 2), 2.0)])
    assert store.read(texts)[0][:, 0].tolist() == [1.0, 2.0]
    assert tokens.read(texts)[0].block(0, 2)[:, 0].tolist() == [1.0, 2.0]


@pytest.mark.parametrize("bad", [None, 3, b"bytes", float("nan"), ["x"]])
def test_a_text_that_is_no_string_is_named_by_position(store: VectorStore, bad: object) -> None:
    """The error says where and what was found."""
    with pytest.raises(MirblabError, match=f"text 1 is {type(bad).__name__}"):
        store.read(["a", bad])  # type: ignore[list-item]


def test_wrong_shapes_and_numbers_are_refused(store: VectorStore) -> None:
    """Too few rows, another width, NaN and infinity are not stored."""
    for vectors in (np.zeros((1, 6)), np.zeros((2, 5)), np.zeros(12)):
        with pytest.raises(MirblabError, match=r"need vectors \(2, 6\)"):
            store.append(["a", "b"], vectors)
    for value in (np.nan, np.inf):
        with pytest.raises(MirblabError, match="not finite, the first for 'b'; nothing"):
            store.append(["a", "b"], np.array([[0.0] * 6, [value] * 6]))
    assert len(store.missing(["a", "b"])) == 2


def test_first_halves_that_collide_are_told_apart(tmp_path: Path) -> None:
    """Keys with equal first halves, stored and asked, find their own rows only."""
    keys = np.array([[7, 3], [7, 1], [5, 9], [7, 2], [2**64 - 1, 0], [2**64 - 1, 5]], np.uint64)
    vectors = np.arange(36, dtype=np.float32).reshape(6, 6)
    (tmp_path / "s").mkdir()
    for name, some in (("a", slice(0, 2)), ("b", slice(2, 6))):
        encoders_cache.write_shard(tmp_path / "s" / f"{name}.safetensors", keys[some], vectors[some], "space")
    opened = [encoders_cache.open_shard(tmp_path / "s" / f"{name}.safetensors", 6, "space") for name in "ab"]
    asked = np.array([[7, 2], [7, 4], [2**64 - 1, 5], [7, 3], [5, 8], [7, 1], [0, 0], [2**64 - 1, 9]], np.uint64)
    assert KeyIndex(opened).find(asked).tolist() == [3, -1, 5, 0, -1, 1, -1, -1]
    out = np.zeros((8, 6), np.float32)
    missing, damaged = cache._fill(KeyIndex(opened), asked, out)
    assert missing.tolist() == [1, 4, 6, 7] and not damaged
    np.testing.assert_array_equal(out[[0, 2, 3, 5]], vectors[[3, 5, 0, 1]])


def test_of_texts_stored_twice_the_oldest_vector_is_read(tmp_path: Path) -> None:
    """Duplicates do no harm and repeated reads are bit-identical, in this process and in new ones."""
    store = VectorStore(tmp_path, SPACE)
    for value in (1.0, 2.0, 3.0):
        store.append(["a", "b"], np.full((2, 6), value))
        assert (store.read(["a", "b"])[0] == 1.0).all()
    assert (VectorStore(tmp_path, SPACE).read(["a", "b"])[0] == 1.0).all()


@pytest.mark.parametrize(("kind", "d"), [(VectorStore, 4), (VectorStore, 5), (TokenStore, 4)])
def test_a_flipped_bit_anywhere_is_noticed(tmp_path: Path, kind: Kind, d: int) -> None:
    """Whichever byte of a shard changes, header, checksums, vectors, ends or keys, nothing wrong is ever read."""
    store = kind(tmp_path, SPACE | {"dimensions": d})
    store.append(names(4), contents(kind, names(4), d))
    path = shards(store)[0]
    whole = path.read_bytes()
    for at in range(len(whole)):
        path.write_bytes(whole)
        flip(path, at)
        with pytest.warns(UserWarning, match="is damaged .* and was set aside"):
            found, missing = kind(tmp_path, store.space).read(names(4))
        assert missing.tolist() == [0, 1, 2, 3], f"byte {at}"
        assert kind is TokenStore or np.isnan(found).all(), f"byte {at}"
        assert not path.exists() and path.with_name(path.name + ".damaged").exists()


def test_two_signs_flipped_in_one_row_are_noticed() -> None:
    """The checksum sees changes that would cancel in a plain sum of 64-bit words."""
    vectors = np.ones((1, 8), np.float32)
    other = vectors.copy()
    other[0, [1, 5]] *= -1
    keys = np.zeros((1, 2), np.uint64)
    assert encoders_cache.row_checks(keys, vectors) != encoders_cache.row_checks(keys, other)
    assert encoders_cache.row_checks(keys, vectors) != encoders_cache.row_checks(
        keys, np.roll(np.arange(8, dtype=np.float32), 1)[None]
    )


@pytest.mark.parametrize("content", ["empty", "cut", "longer", "foreign", "text", "huge header"])
def test_a_file_that_is_no_whole_shard_is_set_aside(either: VectorStore | TokenStore, content: str) -> None:
    """Truncated, empty, lengthened and foreign files are named in a warning; the rest is read."""
    path = shards(either)[0]
    whole = path.read_bytes()
    made = {
        "empty": b"", "cut": whole[:-1], "longer": whole + b"\0",
        "foreign": b"\x93NUMPY" + bytes(200), "text": b"hello",
        "huge header": b"\xff" * 8 + whole[8:],
    }  # fmt: skip
    path.write_bytes(made[content])
    with pytest.warns(UserWarning, match=path.name):
        found, missing = type(either)(either.path.parent, SPACE).read(names(50))
    assert missing.tolist() == list(range(30))
    check_contents(found, names(20, 30), start=30)


def test_damage_after_a_store_was_opened_is_noticed(either: VectorStore | TokenStore) -> None:
    """A shard that changes under an open store is opened again and set aside; another that has the texts answers."""
    either.append(names(30), contents(type(either), names(30)))
    first, second, _ = shards(either)
    either.read(names(50))
    flip(first, -3)
    with pytest.warns(UserWarning, match=f"{first.name} .*set aside"):
        found, missing = either.read(names(50))
    assert not len(missing)
    check_contents(found, names(50))
    second.write_bytes(second.read_bytes()[:-100])
    with pytest.warns(UserWarning, match="bytes long instead of"):
        assert either.read(names(50))[1].tolist() == list(range(30, 50))


def test_a_damaged_shard_that_cannot_be_renamed_is_passed_over(
    store: VectorStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a folder that is read-only, damage is still noticed, said once, and never read."""

    def refuse(*paths: object) -> None:
        raise PermissionError(13, "Permission denied")

    flip(shards(store)[0], 20)
    monkeypatch.setattr(cache.os, "replace", refuse)
    fresh = VectorStore(store.path.parent, SPACE)
    with pytest.warns(UserWarning, match="could not be renamed"):
        assert len(fresh.missing(names(50))) == 30
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(fresh.missing(names(50))) == 30


def test_texts_of_a_damaged_shard_are_read_from_another_that_has_them(store: VectorStore) -> None:
    """Only what no whole shard holds is missing."""
    store.append(names(10), rows(names(10)))
    flip(shards(store)[0], shards(store)[0].stat().st_size - 30 * 16 - 3)  # within the last row
    fresh = VectorStore(store.path.parent, SPACE)
    with pytest.warns(UserWarning, match="a row differs"):
        vectors, missing = fresh.read(names(30))
    assert missing.tolist() == list(range(10, 30))
    np.testing.assert_array_equal(vectors[:10], rows(names(10)))


def test_verify_names_damaged_shards_and_sets_them_aside(either: VectorStore | TokenStore) -> None:
    """Every row is checked, also those that nobody asked for."""
    assert either.verify() == []
    first, second = shards(either)
    flip(first, first.stat().st_size - 30 * 16 - 3)
    flip(second, second.stat().st_size - 1)
    with pytest.warns(UserWarning, match="set aside"):
        assert type(either)(either.path.parent, SPACE).verify() == [first.name, second.name]
    assert type(either)(either.path.parent, SPACE).sizes()["damaged"] == 2


def test_partial_files_are_ignored_and_swept_when_their_writer_has_ended(
    store: VectorStore, abandoned: Callable[[Path], Path]
) -> None:
    """What a killed writer leaves is no shard; it is counted, and removed once nobody can be writing it."""
    half, written = shards(store)[0].read_bytes()[:500], store.path / "1-a.safetensors"
    left, other = atomic_files.unfinished_name(written), abandoned(written)
    for path in (left, other):
        path.write_bytes(half)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(VectorStore(store.path.parent, SPACE).read(names(50))[1]) == 0
    assert store.sizes()["partial"] == 2
    assert atomic_files.remove_abandoned(store.path.parent) == [other] and left.exists()
    left.unlink()
    assert len(store.read(names(50))[1]) == 0


def test_the_bytes_of_a_space_are_told_while_files_come_and_go(store: VectorStore) -> None:
    """As when another process renames what it has written."""
    before = store.sizes()["bytes"]
    with hasty_writer(store.path):
        assert min(store.sizes()["bytes"] for _ in range(1000)) >= before


def test_spaces_lists_what_is_stored(store: VectorStore) -> None:
    """The listing has a row per space with its parts, and opens each as a store."""
    VectorStore(store.path.parent, SPACE | {"role": "query", "prompt": "query: "}).append(["q"], rows(["q"]))
    (store.path.parent / "stray").mkdir()
    found = {one.space["role"]: one for one in spaces.open_spaces(store.path.parent)}
    assert found["document"].sizes()["texts"] == 50 and found["document"].sizes()["shards"] == 2
    assert found["query"].space["prompt"] == "query: " and found["query"].sizes()["texts"] == 1
    assert spaces.open_spaces(store.path.parent / "absent") == []


def test_a_damaged_description_is_named_and_written_again(store: VectorStore) -> None:
    """`space.json` tells people whose vectors these are; whatever stands there, the vectors are read."""
    path = store.path / "space.json"
    for content in (b"", b"[1, 2", b"[]", b"\xff", b'{"dimensions": 7}', b"[" * 100_000, None):
        path.unlink()
        path.mkdir() if content is None else path.write_bytes(content)
        fresh = VectorStore(store.path.parent, SPACE)
        assert len(fresh.missing(names(50))) == 0 and spaces.open_spaces(store.path.parent) == []
        with pytest.warns(UserWarning, match=r"space\.json is damaged .* and was set aside"):
            assert "space.json does not say whose vectors these are" in spaces.verify(store.path.parent)[0]
        fresh.append(["more"], rows(["more"]))
        assert [one.space for one in spaces.open_spaces(store.path.parent)] == [SPACE]
    assert spaces.verify(store.path.parent) == []


def test_strangers_in_a_store_are_passed_over(store: VectorStore) -> None:
    """Folders called like a shard, links that lead nowhere, and files beside the spaces."""
    (store.path / "0-folder.safetensors").mkdir()
    (store.path / "0-link.safetensors").symlink_to("nowhere")
    (store.path.parent / "note.txt").write_text("mine", encoding="utf-8")
    fresh = VectorStore(store.path.parent, SPACE)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(fresh.missing(names(50))) == 0
        (line,) = spaces.verify(store.path.parent)
    assert "note.txt does not belong here and is never read" in line


def test_vectors_of_an_older_version_are_counted_and_never_read(tmp_path: Path) -> None:
    """Their keys were no BLAKE2b of the texts, and they hold no texts from which others could be made."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(encoders_cache, "FORMAT", "mirblab-vectors-2")
        patch.setattr(token_vectors, "FORMAT", "mirblab-tokens-1")
        old, tokens = VectorStore(tmp_path / "v", SPACE), TokenStore(tmp_path / "t", SPACE)
        old.append(names(50), rows(names(50)))
        tokens.append(names(3), [np.ones((2, 4))] * 3)
    assert len(VectorStore(tmp_path / "v", SPACE).missing(names(50))) == 50
    assert spaces.older(tmp_path / "v") == [(old.path, 50)] and token_vectors.older(tmp_path / "t") == [
        (tokens.path, 3)
    ]
    assert spaces.verify(tmp_path / "v") == [] == token_vectors.verify(tmp_path / "t")
    VectorStore(tmp_path / "v", SPACE).append(["a"], rows(["a"]))
    assert spaces.older(tmp_path / "v") == [(old.path, 50)]


def test_the_texts_of_a_deleted_space_are_missing(store: VectorStore) -> None:
    """Those of other spaces are not."""
    other = VectorStore(store.path.parent, SPACE | {"role": "query"})
    other.append(["q"], rows(["q"]))
    store.read(names(50))
    shutil.rmtree(store.path)
    assert len(store.missing(names(50))) == 50 and len(other.missing(["q"])) == 0


def test_a_reader_sees_what_another_store_appended_meanwhile(store: VectorStore) -> None:
    """The folder is listed again at each read."""
    reader = VectorStore(store.path.parent, SPACE)
    assert len(reader.missing(names(60))) == 10
    store.append(names(10, 50), rows(names(10, 50)))
    assert len(reader.missing(names(60))) == 0


WRITER = """
import sys
import numpy as np
sys.path[:0] = {path!r}
from stored_vectors import SPACE, names, rows
from mirblab.encoders.cache import VectorStore
store = VectorStore({folder!r}, SPACE)
for start in range(0, 200, 10):
    store.append(names(10, start), rows(names(10, start)))
    print(start, flush=True)
"""


def start_writer(folder: Path) -> subprocess.Popen[str]:
    """Start a process that appends 200 texts in shards of ten and reports each."""
    code = WRITER.format(path=sys.path, folder=str(folder))
    return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)


def test_a_killed_writer_loses_nothing_it_acknowledged(tmp_path: Path) -> None:
    """kill -9 while writing: all acknowledged rows are there, none is wrong."""
    writer = start_writer(tmp_path)
    acknowledged = [int(writer.stdout.readline()) for _ in range(7)]
    writer.kill()
    writer.wait()
    vectors, missing = VectorStore(tmp_path, SPACE).read(names(200))
    assert missing.tolist() == list(range(200 - len(missing), 200)) and len(missing) <= 200 - 10 * len(acknowledged)
    np.testing.assert_array_equal(vectors[: 200 - len(missing)], rows(names(200 - len(missing))))


def test_two_processes_may_write_the_same_texts_at_once(tmp_path: Path) -> None:
    """Without a lock both end well, and a reader beside them never sees anything wrong."""
    writers = [start_writer(tmp_path), start_writer(tmp_path)]
    reader = VectorStore(tmp_path, SPACE)
    expected = rows(names(200))
    while any(writer.poll() is None for writer in writers):
        vectors, missing = reader.read(names(200))
        present = np.setdiff1d(np.arange(200), missing)
        np.testing.assert_array_equal(vectors[present], expected[present])
    assert [writer.returncode for writer in writers] == [0, 0]
    np.testing.assert_array_equal(reader.read(names(200))[0], expected)
    for writer in writers:
        writer.stdout.close()


def test_a_reader_beside_one_that_opens_a_shard_finds_all(store: VectorStore, monkeypatch) -> None:
    """Shards and index are replaced together: between the two, all texts would be missing for another thread."""
    store.append(names(3), rows(names(3)))
    index, missing = cache.KeyIndex, []

    def read_meanwhile(shards):
        if not missing:
            missing.append(-1)  # so that the reader's own index is made without another reader
            reader = threading.Thread(target=lambda: missing.append(len(store.read(names(3))[1])))
            reader.start()
            reader.join()
        return index(shards)

    monkeypatch.setattr(cache, "KeyIndex", read_meanwhile)
    store.read(names(3))
    assert missing == [-1, 0]


def test_threads_may_share_a_store(store: VectorStore) -> None:
    """Readers in several threads, with an appending one beside them, all get the right vectors."""
    wrong: list[int] = []

    def read() -> None:
        for _ in range(30):
            vectors, missing = store.read(names(50))
            wrong.append(len(missing) + int((vectors != rows(names(50))).sum()))

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for start in range(50, 90, 2):
        store.append(names(2, start), rows(names(2, start)))
    for reader in readers:
        reader.join()
    assert sum(wrong) == 0 and len(wrong) == 90
