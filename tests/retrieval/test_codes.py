"""codes: estimates are what their definition says, and a search by codes finds what an exact one finds."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mirblab as lab
from mirblab.app import stores
from mirblab.core.errors import MirblabError
from mirblab.core.mapped_files import release_pages
from mirblab.data import runs
from mirblab.data.candidates import Candidates, ListRule
from mirblab.encoders.encoding import encoder
from mirblab.retrieval import codes, dense

SPACE = {"model": "made up", "dimensions": 40}


def vectors_of(n: int, d: int, seed: int = 0) -> np.ndarray:
    """Unit vectors around a common mean, in clusters of a few, as those of texts are."""
    random = np.random.default_rng(seed)
    centres = random.standard_normal((max(1, n // 20), d))
    made = centres[random.integers(0, len(centres), n)] + 0.7 * random.standard_normal((n, d)) + 1
    return dense.normalise(made)


def coded(folder: Path, vectors: np.ndarray, bits: int = 2) -> codes.CodedVectors:
    """Codes of vectors whose texts are their numbers."""
    texts = list(map(str, range(len(vectors))))
    return codes.encode_collection(folder, SPACE, texts, bits, lambda some: vectors[[int(text) for text in some]])


def plain_codes(rotated: np.ndarray, bits: int) -> np.ndarray:
    """The values that stand for the entries, by their definition."""
    limits = (codes._WIDE * np.sqrt((rotated.astype(np.float64) ** 2).mean(axis=1, keepdims=True))).astype(np.float32)
    sizes = np.where(np.abs(rotated) > limits, 3, 1) if bits == 2 else 1
    return np.where(rotated >= 0, 1, -1) * sizes


def plain_search(
    queries: np.ndarray, vectors: np.ndarray, depth: int, bits: int, allowed: np.ndarray
) -> list[list[int]]:
    """The best by rows among the best by estimate among what is allowed, by full sorts."""
    sample = np.linspace(0, len(vectors) - 1, min(len(vectors), codes.CENTRE_FROM)).astype(int)
    centre = vectors[sample].mean(axis=0, dtype=np.float64).astype(np.float32)
    made, (n, d) = codes.encode_vectors(vectors, centre, bits), vectors.shape
    estimates = codes.estimate_products(*made, *codes.quantise_queries(queries), d)
    estimates[~allowed] = -np.inf
    whole, steps = codes.round_rows(vectors)
    rows, found = whole * steps[:, None], []
    products = [np.einsum("ij,j->i", rows, query) for query in queries]
    for own, scores in zip(estimates, products, strict=True):
        best = np.lexsort((-np.arange(n), -own))[: codes.n_candidates(n, d, depth, bits)]
        best = best[own[best] > -np.inf]
        found.append(best[np.lexsort((-best, -scores[best]))][:depth].tolist())
    return found


def lists(found: tuple, n_queries: int) -> list[list[int]]:
    rows, positions, _ = found
    return [positions[rows == row].tolist() for row in range(n_queries)]


def equal(one: tuple, other: tuple) -> bool:
    return all(np.array_equal(left, right) for left, right in zip(one, other, strict=True))


def recall(found: tuple, expected: tuple) -> float:
    pairs = [set(zip(part[0].tolist(), part[1].tolist(), strict=True)) for part in (found, expected)]
    return len(pairs[0] & pairs[1]) / len(pairs[1])


@pytest.mark.parametrize("d", [1, 2, 3, 40, 64, 100, 384])
def test_the_rotation_keeps_products_and_spreads_each_dimension(d):
    """It is orthogonal, and a vector along one axis has no large entry afterwards."""
    rotated = codes.rotate(np.eye(d, dtype=np.float32))
    np.testing.assert_allclose(rotated @ rotated.T, np.eye(d), atol=2e-6)
    if d >= 40:
        assert np.abs(rotated).max() < 0.75 and (np.abs(rotated) > 1e-6).mean() > 0.5


def test_a_vector_is_coded_without_regard_to_the_others():
    """Else results would depend on how vectors are cut into parts."""
    vectors = vectors_of(50, 100)
    whole, factors = codes.encode_vectors(vectors, vectors[0] * 0.5, 2)
    for cut in (slice(0, 1), slice(7, 30)):
        own, own_factors = codes.encode_vectors(vectors[cut], vectors[0] * 0.5, 2)
        np.testing.assert_array_equal(own, whole[:, cut])
        np.testing.assert_array_equal(own_factors, factors[cut])


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 300), st.integers(1, 600), st.sampled_from(codes.BITS), st.integers(0, 99))
def test_estimates_are_what_their_definition_says(d, n, bits, seed):
    """Signs, sizes, factors and levels in plain numpy, whatever the length of a vector and of a block."""
    random = np.random.default_rng(seed)
    vectors, queries = random.standard_normal((n, d)).astype(np.float32), random.standard_normal((3, d))
    centre = random.standard_normal(d).astype(np.float32)
    coded_rows, factors = codes.encode_vectors(vectors, centre, bits)
    planes, steps = codes.quantise_queries(queries)
    found = codes.estimate_products(coded_rows, factors, planes, steps, d)

    rotated, asked = codes.rotate(vectors - centre), codes.rotate(queries)
    x = plain_codes(rotated, bits)
    factor = (rotated.astype(np.float64) ** 2).sum(axis=1) / (rotated.astype(np.float64) * x).sum(axis=1)
    step = np.abs(asked).max(axis=1, keepdims=True) / 15
    levels = 2 * np.clip(np.round((asked / step + 15) / 2), 0, 15) - 15
    np.testing.assert_allclose(factors, factor, rtol=1e-5)
    np.testing.assert_allclose(found, (levels * step) @ (x * factor[:, None]).T, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("bits", "error"), [(1, 0.04), (2, 0.02)])
def test_the_estimate_is_right_on_average_and_errs_less_with_more_bits(bits, error):
    """For unit vectors of 384 dimensions, and queries near some of them."""
    vectors = vectors_of(2000, 384)
    queries = vectors[:50] + np.random.default_rng(1).normal(0, 0.02, (50, 384)).astype(np.float32)
    centre = vectors.mean(axis=0)
    coded_rows, factors = codes.encode_vectors(vectors, centre, bits)
    found = codes.estimate_products(coded_rows, factors, *codes.quantise_queries(queries), 384)
    wanted = queries @ (vectors - centre).T
    assert np.polyfit(wanted.ravel(), found.ravel(), 1)[0] == pytest.approx(1, abs=0.015)
    assert abs((found - wanted).mean()) < 0.002
    assert np.sqrt(((found - wanted) ** 2).mean()) < error


@pytest.mark.parametrize("bits", codes.BITS)
def test_where_all_are_candidates_the_result_is_exact_ties_included(tmp_path, bits):
    """Entries whose size is 0 or the largest, which 16 bits hold, and most documents several times."""
    random = np.random.default_rng(3)
    docs, queries = random.integers(-1, 2, (133, 4)).astype(np.float32), random.integers(-2, 3, (17, 4))
    queries[0] = docs[5] = 0
    found, expected = (
        codes.search(queries, coded(tmp_path, docs, bits), depth=60),
        dense.search(queries, docs, depth=60),
    )
    assert equal(found[:2], expected[:2]) and found[2] == pytest.approx(expected[2])


def test_rows_of_any_size_lose_half_a_step_at_most():
    """From the smallest numbers that float32 has in full to the largest; rows of zeros stay zeros."""
    vectors = vectors_of(40, 64) * np.logspace(-30, 37, 40, dtype=np.float32)[:, None]
    vectors[3] = 0
    rows, steps = codes.round_rows(vectors)
    assert rows.dtype == np.int16 and (np.abs(rows).max(axis=1) == np.where(steps > 0, 32767, 0)).all()
    assert (np.abs(rows.astype(float) * steps[:, None] - vectors) <= 0.501 * steps[:, None]).all()


@pytest.mark.parametrize("bits", codes.BITS)
def test_neither_threads_nor_parts_change_a_byte(tmp_path, monkeypatch, bits):
    """Where few documents are candidates, and every vector is there twice; a plain search finds the same."""
    vectors = np.repeat(vectors_of(1500, 384), 2, axis=0)
    queries = vectors[::75] + vectors_of(40, 384, 1)
    whole = coded(tmp_path / "whole", vectors, bits)
    found = codes.search(queries, whole, depth=10, threads=1)
    assert len(whole.parts) == 1 and codes.n_candidates(3000, 384, 10, bits) < 200
    assert lists(found, 40) == plain_search(queries, vectors, 10, bits, np.ones((40, 3000), bool))
    assert recall(found, dense.search(queries, vectors, depth=10)) > 0.9
    assert equal(found, codes.search(queries, whole, depth=10, threads=3))
    alone = codes.search(queries[5:6], whole, depth=10, threads=3)  # the threads share its candidates
    assert equal(alone[1:], [column[50:60] for column in found[1:]])
    monkeypatch.setattr(codes, "PART", 701)
    monkeypatch.setattr(codes, "_CELLS", 9000)
    cut = coded(tmp_path / "cut", vectors, bits)
    assert len(cut.parts) == 5
    assert equal(found, codes.search(queries, cut, depth=10, threads=2))


@pytest.mark.skipif(not Path("/proc/self/smaps").is_file(), reason="needs Linux, which says what is in memory")
def test_rows_that_many_queries_read_leave_the_memory(tmp_path):
    """Those of a few stay, since the next query may be one of a person who waits."""
    vectors = vectors_of(3000, 384)
    made, queries = coded(tmp_path, vectors), vectors_of(40, 384, 1)

    def least_kilobytes() -> int:  # of the maps of the file: of its codes, factors, steps and rows
        _, *maps = Path("/proc/self/smaps").read_text().split(next(tmp_path.iterdir()).name)
        return min(int(one.partition("\nRss:")[2].split()[0]) for one in maps)

    for n, is_kept in ((32, True), (40, False), (1, True)):
        codes.search(queries[:n], made, depth=10)
        assert (least_kilobytes() > 0) is is_kept, n


@pytest.mark.parametrize("allow", [True, False])
def test_no_place_is_lost_to_a_document_that_may_not_be_returned(tmp_path, allow):
    """The best 500 of each query are forbidden, which are more than there are candidates; or only 20 are allowed."""
    vectors, queries = vectors_of(3000, 384), vectors_of(40, 384, 1)
    random = np.random.default_rng(2)
    rows, docs, _ = dense.search(queries, vectors, depth=500)
    if allow:
        rows, docs = np.repeat(np.arange(40), 20), random.integers(0, 3000, 800)
    restricted = Candidates(3000, (ListRule.from_pairs("list", rows, docs, 40, allow=allow),))
    found = codes.search(queries, coded(tmp_path, vectors), depth=15, candidates=restricted, threads=2)
    assert restricted.permits(found[0], found[1]).all()
    assert lists(found, 40) == plain_search(queries, vectors, 15, 2, restricted.allowed(np.arange(40)))
    if allow:
        expected = dense.search(queries, vectors, depth=15, candidates=restricted)
        assert recall(found, expected) == 1 and len(found[0]) == len(expected[0])


@pytest.mark.parametrize("bits", codes.BITS)
def test_equal_estimates_of_every_document_give_the_last_documents(tmp_path, monkeypatch, bits):
    """Over several blocks and parts, of which only a few documents are candidates."""
    monkeypatch.setattr(codes, "PART", 1900)
    monkeypatch.setattr(codes, "_CELLS", 1000)
    documents = coded(tmp_path, np.ones((5000, 384), np.float32), bits)
    assert codes.n_candidates(5000, 384, 3, bits) < 1000
    found = codes.search(np.ones((1, 384)), documents, depth=3, threads=2)
    assert found[1].tolist() == [4999, 4998, 4997]


def test_no_query_and_nothing_allowed_give_nothing(tmp_path):
    """Three empty arrays; a query that may return nothing takes nothing from another one."""
    vectors = vectors_of(300, 40)
    documents, none = coded(tmp_path, vectors), np.empty(0, np.int64)
    nothing = Candidates(300, (ListRule.from_pairs("allow", none, none, 2, allow=True),))
    one = Candidates(300, (ListRule.from_pairs("allow", np.array([1]), np.array([7]), 2, allow=True),))
    assert [len(part) for part in codes.search(vectors[:0], documents, depth=5)] == [0, 0, 0]
    assert [len(part) for part in codes.search(vectors[:2], documents, depth=5, candidates=nothing)] == [0, 0, 0]
    found = codes.search(vectors[:2], documents, depth=5, candidates=one)
    assert (found[0].tolist(), found[1].tolist()) == ([1], [7])


def test_a_stopped_build_continues_and_a_second_one_reads(tmp_path, monkeypatch):
    """What was stored stays; texts that were added later need only their own part."""
    monkeypatch.setattr(codes, "PART", 100)
    vectors, asked = vectors_of(250, 40), list[int]()
    texts = list(map(str, range(250)))

    def read(some: list[str]) -> np.ndarray:
        if len(asked) == 2:
            asked.append(-1)
            raise KeyboardInterrupt
        asked.append(len(some))
        return vectors[[int(text) for text in some]]

    with pytest.raises(KeyboardInterrupt):
        codes.encode_collection(tmp_path, SPACE, texts, 2, read)
    assert asked == [250, 100, -1] and len(list(tmp_path.iterdir())) == 1  # the centre, one part, and the stop
    first = codes.encode_collection(tmp_path, SPACE, texts, 2, read)
    assert asked[3:] == [250, 100, 50]
    second = codes.encode_collection(tmp_path, SPACE, texts, 2, read)
    assert asked[6:] == [250]
    for one, other in zip(first.parts, second.parts, strict=True):
        assert equal((one.codes, one.factors, one.rows), (other.codes, other.factors, other.rows))


@pytest.mark.parametrize("damage", ["head", "codes", "cut", "empty"])
def test_a_damaged_part_is_set_aside_and_made_again(tmp_path, damage):
    """With a warning; the result is the same."""
    vectors, queries = vectors_of(300, 40), vectors_of(5, 40, 1)
    before = codes.search(queries, coded(tmp_path, vectors), depth=10)
    (path,) = tmp_path.iterdir()
    content = bytearray(path.read_bytes())
    if damage in ("head", "codes"):
        content[20 if damage == "head" else -300 * 80 - 2000] ^= 1
    path.write_bytes({"cut": content[:-7], "empty": b""}.get(damage, content))
    with pytest.warns(UserWarning, match="set aside.*made again"):
        after = codes.search(queries, coded(tmp_path, vectors), depth=10)
    assert equal(before, after) and len(list(tmp_path.iterdir())) == 2


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="needs Linux")
def test_a_file_of_codes_is_mapped_once(tmp_path):
    """Each map counts as an open file, of which a process may have a thousand; pages of rows are given back alone."""
    vectors = vectors_of(300, 400)
    before = len(os.listdir("/proc/self/fd"))
    made = coded(tmp_path, vectors)
    assert len(os.listdir("/proc/self/fd")) == before + 1
    [part] = made.parts
    copies = part.codes.copy(), part.rows.copy()
    release_pages(part.rows)
    assert equal(copies, (part.codes, part.rows))


def test_a_damaged_row_is_found_by_verify(home):
    """`mirblab cache --verify` reads the rows too, and names what does not belong there."""
    (store,) = [one for one in stores.STORES if one.name == "codes"]
    coded(store.path / "space", vectors_of(300, 40))
    assert store.verify() == []
    (path,) = (store.path / "space").iterdir()
    content = bytearray(path.read_bytes())
    content[-5] ^= 1
    path.write_bytes(content)
    (store.path / "space" / "notes.txt").write_text("mine")
    with pytest.warns(UserWarning, match="set aside"):
        wrong = store.verify()
    assert len(wrong) == 2 and "is damaged" in wrong[0] and "does not belong here" in wrong[1]


def test_without_room_codes_stay_in_memory(tmp_path, capsys):
    """A folder that cannot be made costs time later, but no result now."""
    vectors, queries = vectors_of(300, 40), vectors_of(5, 40, 1)
    (tmp_path / "taken").write_text("a file")
    found = codes.search(queries, coded(tmp_path / "taken", vectors), depth=10)
    assert "codes cannot be stored" in capsys.readouterr().err
    assert equal(found, codes.search(queries, coded(tmp_path / "free", vectors), depth=10))


def test_what_cannot_be_coded_or_searched_is_refused(tmp_path):
    """With what was found."""
    vectors = vectors_of(30, 40)
    with pytest.raises(MirblabError, match="1 or 2 bits; found 30 texts, 3 bits"):
        coded(tmp_path, vectors, 3)
    with pytest.raises(MirblabError, match="found 0 texts"):
        coded(tmp_path, vectors[:0])
    with pytest.raises(MirblabError, match=r"must be \(n, 40\), found \(2, 39\)"):
        codes.search(np.ones((2, 39)), coded(tmp_path, vectors), depth=3)
    with pytest.raises(MirblabError, match="depth must be at least"):
        codes.search(vectors, coded(tmp_path, vectors), depth=0)
    vectors[7, 3] = np.inf
    with pytest.raises(MirblabError, match="1 vectors are not finite, the first in row 7"):
        coded(tmp_path / "other", vectors)
    with pytest.raises(MirblabError, match="code_bits"):
        lab.system("minilm", code_bits=3)
    with pytest.raises(MirblabError, match="without code_bits"):
        lab.system("minilm (code_bits = 2)~rocchio")


@pytest.mark.parametrize(("bits", "counts"), [(1, [1000, 12590, 63096]), (2, [400, 1265, 3178])])
def test_the_number_of_candidates_grows_faster_beyond_ten_thousand_vectors_for_each_result(bits, counts):
    """Of ten thousand, a million and ten million vectors for a depth of 100; it never shrinks."""
    assert [codes.n_candidates(n, 384, 100, bits) for n in (10_000, 1_000_000, 10_000_000)] == pytest.approx(
        counts, abs=1
    )
    many = [codes.n_candidates(n, 384, 10, bits) for n in np.geomspace(1, 1e9, 200).astype(int).tolist()]
    assert many == sorted(many)


@pytest.mark.parametrize("bits", codes.BITS)
@pytest.mark.parametrize("name", ["mini-qa", "mini-hol"])
def test_on_real_statements_measures_are_those_of_exact_search(tmp_path, name, bits):
    """Vectors of MiniLM, restrictions included, at a depth at which not all documents are candidates."""
    c, model, depth = lab.load(name), encoder("minilm"), 20
    documents, queries = (
        model.vectors(texts, role) for texts, role in ((c.texts, "document"), (c.query_texts, "query"))
    )
    made = codes.encode_collection(tmp_path, SPACE, c.texts, bits, lambda some: model.vectors(some))
    assert codes.n_candidates(len(c.texts), 384, depth, bits) < len(c.texts)
    means = []
    for search, docs in ((dense.search, documents), (codes.search, made)):
        hits = search(queries, docs, depth=depth, candidates=c.candidates)
        run = runs.from_positions(*hits, c.query_ids, c.doc_ids, "minilm", name)
        means.append(lab.mean(lab.evaluate(run, c, ["nDCG@10", "AP", "R@20"])))
    assert np.abs(means[0].value.to_numpy() - means[1].value.to_numpy()).max() <= 0.002


def test_the_system_takes_codes_for_many_documents_only(monkeypatch):
    """Its run has the setting in its name and key; up to `SMALL` documents it is that of the exact system."""
    c, exact, by_codes = lab.load("mini-qa"), lab.system("minilm"), lab.system("minilm", code_bits=2)
    assert by_codes.name == "minilm (code_bits = 2)" and lab.system(by_codes.name).key == by_codes.key != exact.key
    expected = exact.search(c, 50)
    assert by_codes.search(c, 50)[["query_id", "doc_id", "score"]].equals(expected[["query_id", "doc_id", "score"]])
    monkeypatch.setattr(codes, "SMALL", 10)
    found = lab.system("minilm", code_bits=1).search(c, 50)
    assert np.abs(found.score.to_numpy() - expected.score.to_numpy()).max() < 1e-3
    assert (found.score.to_numpy() != expected.score.to_numpy()).any()
