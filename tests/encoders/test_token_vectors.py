"""late_store, late_shard, late_tokens: every text's token vectors come back, made once, and no damage goes unseen."""

from __future__ import annotations

import shutil
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from peak_memory import peak_memory
from safetensors.numpy import load_file
from stored_vectors import SPACE, names, shards
from tiny_encoder import make_model, sentences

from mirblab.core import paths
from mirblab.core.errors import MirblabError, StorageError
from mirblab.encoders import cache, spaces, token_vectors
from mirblab.encoders.encoding import Encoder, encoder
from mirblab.encoders.token_vectors import Shrink, StoredTokens, TokenStore
from mirblab.retrieval import late_interaction
from mirblab.retrieval.systems import System, system
from mirblab.sources import catalogue


def tokens(texts: list[str], d: int = 6) -> list[np.ndarray]:
    """Return for each text 0 to 6 rows that depend on the text alone, exact as float16."""
    found = []
    for text in texts:
        random = np.random.default_rng(list(text.encode()))
        found.append(random.standard_normal((random.integers(0, 7), d)).astype(np.float16).astype(np.float32))
    return found


def matrices(stored: StoredTokens) -> list[np.ndarray]:
    return [stored.block(place, place + 1) for place in range(len(stored.lengths))]


def agree(stored: StoredTokens, expected: list[np.ndarray]) -> None:
    assert stored.lengths.tolist() == [len(one) for one in expected]
    for ours, theirs in zip(matrices(stored), expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.fixture
def store(tmp_path: Path) -> TokenStore:
    """Return a store with 50 texts in two shards."""
    store = TokenStore(tmp_path, SPACE)
    store.append(names(30), tokens(names(30)))
    store.append(names(20, 30), tokens(names(20, 30)))
    return store


def test_token_vectors_come_back_in_the_order_of_the_texts(store: TokenStore) -> None:
    """Any order, repeated texts and texts without tokens included, one by one and in blocks over two shards."""
    asked = [names(50)[i] for i in np.random.default_rng(0).integers(0, 50, 200)]
    stored, missing = store.read(asked)
    expected = tokens(asked)
    assert not len(missing) and 0 in stored.lengths
    agree(stored, expected)
    for start, stop in ((0, 200), (3, 61), (7, 7), (150, 200)):
        joined = np.concatenate([np.empty((0, 6)), *expected[start:stop]])
        np.testing.assert_array_equal(stored.block(start, stop), joined)
    assert stored.block(0, 3).dtype == np.float32


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(0, 5), min_size=1, max_size=9), st.integers(1, 5))
def test_any_lengths_and_dimensions(tmp_path_factory: pytest.TempPathFactory, lengths: list[int], d: int) -> None:
    """One text without tokens alone, too."""
    store = TokenStore(tmp_path_factory.mktemp("any"), SPACE)
    texts = names(len(lengths))
    made = [np.full((n, d), place, np.float32) for place, n in enumerate(lengths)]
    store.append(texts, made)
    stored, missing = store.read(texts)
    agree(stored, made)
    assert not len(missing) and stored.dimensions == d


def test_missing_texts_are_named_by_position(store: TokenStore) -> None:
    """They have no rows, and the others theirs."""
    stored, missing = store.read(["other", *names(2), "another"])
    assert missing.tolist() == [0, 3]
    agree(stored, [np.empty((0, 6)), *tokens(names(2)), np.empty((0, 6))])
    nothing, missing = TokenStore(store.path.parent, SPACE | {"revision": "r2"}).read(names(2))
    assert missing.tolist() == [0, 1] and nothing.block(0, 2).shape == (0, 0)


def test_reading_takes_no_memory_of_shards_times_texts(store: TokenStore) -> None:
    """Of which a million texts have four thousand."""
    texts = [f"text {number}" for number in range(300)]
    expected = tokens(texts)
    for text, one in zip(texts, expected, strict=True):
        store.append([text], [one])
    asked = np.random.default_rng(0).integers(300, size=20_000).tolist()
    store.read(texts)  # the shards are open now
    with peak_memory() as peak:
        found, missing = store.read([texts[number] for number in asked])
    assert peak.n_bytes < 300 * len(asked) and not len(missing)
    np.testing.assert_array_equal(found.block(0, 50), np.concatenate([expected[number] for number in asked[:50]]))


def test_other_tools_can_open_a_shard(store: TokenStore) -> None:
    """It is a safetensors file: rows float16, and where each text's rows end."""
    found = load_file(shards(store)[0])
    assert found["rows"].dtype == np.float16 and found["rows"].shape == (found["ends"][-1], 6)
    np.testing.assert_array_equal(found["rows"], np.concatenate(tokens(names(30))))


def test_wrong_shapes_and_numbers_are_refused(store: TokenStore) -> None:
    """Nothing is stored then."""
    for texts, made, message in (
        (["a"], [], "1 texts need as many matrices"),
        (["a", "b"], [np.ones((2, 6)), np.ones((1, 5))], r"text 1 have the shape \(1, 5\), where others have 6"),
        (["a"], [np.array([[np.nan] * 6])], "text 0 .* not finite"),
        (["a"], [np.full((1, 6), 1e6)], "text 0 .* not finite"),
    ):
        with pytest.raises(MirblabError, match=message), np.errstate(over="ignore"):
            store.append(texts, made)
    assert store.missing(["a"]).tolist() == [0] and len(shards(store)) == 2


def test_a_shard_that_is_removed_while_it_is_read_is_an_error(store: TokenStore) -> None:
    """Never other numbers."""
    stored, _ = store.read(names(50))
    shutil.rmtree(store.path)
    with pytest.raises(MirblabError, match="was removed while it was read"):
        stored.block(0, 50)


def test_no_store_of_vectors_takes_the_files_for_its_own(store: TokenStore) -> None:
    """It would set them aside as damaged."""
    assert spaces.open_spaces(store.path.parent) == []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert cache.VectorStore(store.path.parent, store.space).read(names(3))[1].tolist() == [0, 1, 2]
    assert not len(store.read(names(50))[1])


def test_stores_of_token_vectors_are_listed(store: TokenStore) -> None:
    """Those of vectors and broken ones are not."""
    cache.VectorStore(store.path.parent, SPACE).append(["a"], np.ones((1, 6), np.float32))
    (store.path.parent / "broken").mkdir()
    (store.path.parent / "broken" / "space.json").write_text("{")
    assert [one.path for one in spaces.open_spaces(store.path.parent, TokenStore)] == [store.path]
    assert spaces.open_spaces(store.path.parent, TokenStore)[0].sizes()["texts"] == 50


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_model(tmp_path_factory.mktemp("model") / "tiny")


@pytest.fixture
def tiny(folder: Path, home: Path) -> Encoder:
    """Return a tiny random encoder with an empty store."""
    return encoder(folder)


def test_a_second_call_encodes_nothing(tiny: Encoder, folder: Path, passes: list[int]) -> None:
    """In another order or by another Encoder neither; the bytes are the same, near the model's own numbers."""
    texts = [*sentences(40), "", sentences(1)[0]]
    first = token_vectors.load_token_vectors(tiny, texts)
    assert sum(passes) == 41
    again = token_vectors.load_token_vectors(encoder(folder), texts[::-1])
    agree(again, matrices(first)[::-1])
    assert sum(passes) == 41
    for ours, theirs in zip(matrices(first), tiny.token_vectors(texts), strict=True):
        np.testing.assert_allclose(ours, theirs.reshape(len(theirs), -1 if len(theirs) else 16), atol=5e-4)


@pytest.mark.parametrize("pooled", [True, False])
def test_a_pass_for_tokens_stores_the_vectors_of_the_texts(
    tiny: Encoder, folder: Path, pooled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are those of `vectors`, also where a prompt's tokens are not pooled; those that are stored are kept."""
    prompts = {"document": "a prompt: ", "query": ""}
    model = Encoder("tiny", tiny.entry | {"prompts": prompts, "prompt_pooled": pooled}, folder)
    texts = sentences(12)
    expected = np.concatenate([model.unstored(text, "document") for text in texts])
    early = model.vectors(texts[:3])
    token_vectors.load_token_vectors(model, [*texts, texts[0]])
    monkeypatch.setattr(Encoder, "_forward", lambda *_: pytest.fail("a text was encoded again"))
    vectors = model.vectors(texts)
    np.testing.assert_allclose(vectors, expected, atol=1e-6)
    np.testing.assert_array_equal(vectors[:3], early)


def test_an_interrupted_call_goes_on_where_it_stopped(
    tiny: Encoder, passes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whole chunks are kept."""
    monkeypatch.setattr(token_vectors, "CHUNK_TEXTS", 10)
    texts, encode = sentences(40), tiny.token_vectors

    def interrupted(some, *rest, **options):
        if texts[20] in some:
            raise KeyboardInterrupt
        return encode(some, *rest, **options)

    with pytest.raises(KeyboardInterrupt), monkeypatch.context() as patch:
        patch.setattr(tiny, "token_vectors", interrupted)
        token_vectors.load_token_vectors(tiny, texts)
    assert sum(passes) == 20
    agree(token_vectors.load_token_vectors(tiny, texts), matrices(token_vectors.load_token_vectors(tiny, texts)))
    assert sum(passes) == 40


def test_token_vectors_that_cannot_be_stored_are_held_in_memory(
    tiny: Encoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """They are those that would have been stored, beside those that are, and a line says so."""
    texts = ["a ring", "a field", "a group"]
    wanted = matrices(token_vectors.load_token_vectors(tiny, texts))
    shrink = Shrink(factor=2)
    shrunk = matrices(token_vectors.load_token_vectors(tiny, texts, shrink=shrink))
    monkeypatch.setenv("MIRBLAB_HOME", str(tmp_path / "elsewhere"))
    token_vectors.load_token_vectors(tiny, texts[1:2])

    def full(*_: object) -> None:
        raise StorageError("the disk is full", paths.cache() / "tokens" / "x", is_read_only=False)

    monkeypatch.setattr(TokenStore, "append", full)
    agree(token_vectors.load_token_vectors(tiny, [*texts, texts[0]]), [*wanted, wanted[0]])
    agree(token_vectors.load_token_vectors(tiny, texts, shrink=shrink), shrunk)
    assert capsys.readouterr().err.count("note: token vectors cannot be stored; they are used now") == 1


def test_roles_and_revisions_are_stored_apart(tiny: Encoder) -> None:
    """All that determines a vector is in the space; merging tokens is for documents only."""
    spaces = [
        token_vectors.open_token_store(tiny, *arguments).path
        for arguments in (
            ("document",),
            ("query",),
            ("document", "", Shrink(4)),
            ("document", "", Shrink(4, seed=1)),
            ("document", "", Shrink(0, 2)),
        )
    ]
    assert len(set(spaces)) == 5
    assert token_vectors.open_token_store(tiny, "query", "", Shrink(0, 2)).path == spaces[1]
    assert token_vectors.open_token_store(tiny, "document", "", Shrink(0, 1, seed=7)).path == spaces[0]


def test_shrunk_tokens_are_stored_once_and_made_without_the_model(tiny: Encoder, passes: list[int]) -> None:
    """From the whole ones in the store."""
    texts = sentences(12)
    whole = matrices(token_vectors.load_token_vectors(tiny, texts))
    shrink = Shrink(4, 2)
    expected = [shrink(one).astype(np.float16).astype(np.float32) for one in whole]
    agree(token_vectors.load_token_vectors(tiny, texts, shrink=shrink), expected)
    shutil.rmtree(token_vectors.open_token_store(tiny).path)
    agree(token_vectors.load_token_vectors(tiny, texts, shrink=shrink), expected)
    assert sum(passes) == 12


def test_a_system_of_the_kind_late_is_max_sim_over_all_documents(tiny: Encoder, folder: Path, make_folder) -> None:
    """Scores are those of `max_sim`, the order is that of every run, and what is smaller has another key."""
    corpus = [{"_id": f"d{n}", "text": text} for n, text in enumerate([*sentences(8), "a ring", "a ring"])]
    collection = catalogue.load(make_folder(corpus, [{"_id": "q1", "text": "ring x"}], "q1\td1\t1\n"))
    made = System("own", "own", {"kind": "late", "encoder": str(folder)})
    run = made.search(collection, 10)
    query = tiny.token_vectors(["ring x"], "query")[0]
    scores = [late_interaction.max_sim(query, one) for one in tiny.token_vectors(collection.texts)]
    expected = dict(zip(collection.doc_ids, scores, strict=True))
    assert run.score.tolist() == pytest.approx([expected[doc] for doc in run.doc_id], abs=1e-3)
    assert run.score.is_monotonic_decreasing and len(run) == 10
    twins = [doc for doc in run.doc_id if doc in ("d8", "d9")]
    assert twins == ["d9", "d8"]
    small = System("own", "own", made.settings | {"dimensions": 4, "factor": 2})
    assert small.run_key(collection) != made.run_key(collection) and len(small.search(collection, 10)) == 10


def test_minilm_late_is_registered() -> None:
    """With the encoder's key in its own."""
    assert system("minilm-late").key["encoder"]["model"].endswith("all-MiniLM-L6-v2")
    with pytest.raises(MirblabError, match="called 'dimension'; did you mean 'dimensions'"):
        from mirblab.retrieval.systems import check_settings

        check_settings("x", {"kind": "late", "encoder": "minilm", "dimension": 3})


def test_token_vectors_are_those_of_a_multi_vector_encoder() -> None:
    """sentence-transformers' own class gives the same, where it leaves out the tokens that stand for no text."""
    from sentence_transformers import MultiVectorEncoder
    from sentence_transformers.multi_vector_encoder.modules import MultiVectorMask

    model, texts = encoder("minilm"), ["Every ring $R$ with $1 \\neq 0$ has a maximal ideal.", "a field"]
    ours = model.token_vectors(texts)
    transformer, tokenizer = model._model[0], model._model.tokenizer
    kept = [number for number in range(len(tokenizer)) if number not in tokenizer.all_special_ids]
    other = MultiVectorEncoder(modules=[transformer, MultiVectorMask(keep_only_token_ids=kept)], device="cpu")
    for own, theirs in zip(ours, map(np.asarray, other.encode_document(texts)), strict=True):
        lengths = np.linalg.norm(theirs, axis=1, keepdims=True)
        np.testing.assert_allclose(own, theirs / lengths, atol=2e-6)
