"""A learned sparse model searches as sentence-transformers scores, from stored vectors, within the restrictions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tiny_encoder import make_sparse_model, sentences

from mirblab.core import paths
from mirblab.core.errors import MirblabError
from mirblab.data.candidates import Candidates, ListRule
from mirblab.data.collection import Collection, load_folder
from mirblab.encoders import local, token_vectors
from mirblab.encoders.encoding import Encoder, encoder
from mirblab.retrieval import sparse
from mirblab.retrieval.systems import system

ENTRY = """
[tiny-sparse]
sparse = true
id = "{folder}"
max_length = 24
pooling = "max"
normalise = false
dtype = "float32"
dimensions = {dimensions}
prompts = {{ query = "query : ", document = "" }}
"""
SYSTEM = '[tiny-sparse]\nkind = "sparse"\nlabel = "Tiny SPLADE"\nencoder = "{encoder}"\n'
N_TERMS = 91
DOCS, QUERIES = sentences(40), sentences(9, seed=1)


@pytest.fixture(scope="module", params=[False, True], ids=["splade", "inference-free"])
def folder(request, tmp_path_factory) -> Path:
    """Return the folder of a tiny SparseEncoder, with one route for both roles or with two."""
    return make_sparse_model(tmp_path_factory.mktemp("sparse") / "model", inference_free=request.param)


@pytest.fixture
def register(folder, own):
    """Return a function that writes both registry entries, by which the folder is a system."""

    def write(dimensions: int = N_TERMS, named: str = "tiny-sparse") -> Encoder:
        own("encoders", ENTRY.format(folder=folder, dimensions=dimensions))
        own("systems", SYSTEM.format(encoder=named))
        return encoder("tiny-sparse")

    return write


@pytest.fixture
def collection(make_folder) -> Collection:
    corpus = [{"_id": f"d{number:02}", "title": "", "text": text} for number, text in enumerate(DOCS)]
    queries = [{"_id": f"d{number:02}", "text": text} for number, text in enumerate(QUERIES)]
    qrels = "".join(f"d{number:02}\td{number + 9:02}\t1\n" for number in range(len(QUERIES)))
    return load_folder(make_folder(corpus, queries, qrels, 'candidates = "not-self"'))


def similarities(folder: Path) -> np.ndarray:
    """Return what sentence-transformers itself gives for all queries and documents."""
    from sentence_transformers import SparseEncoder

    model = SparseEncoder(str(folder), device="cpu")
    queries = model.encode_query(QUERIES, prompt="query : ")
    return model.similarity(queries, model.encode_document(DOCS)).to_dense().numpy()


def test_a_run_has_the_scores_of_sentence_transformers(register, folder, collection):
    """All of them to 1e-5, in order, but for the document that is the query."""
    register()
    run, expected = system("tiny-sparse").search(collection, 100), similarities(folder)
    rows, docs = (run[column].cat.codes.to_numpy() for column in ("query_id", "doc_id"))
    np.testing.assert_allclose(run.score, expected[rows, docs], rtol=1e-5, atol=1e-5)
    assert (rows != docs).all()
    np.fill_diagonal(expected, 0.0)
    assert len(run) == (expected > 0).sum()
    first = run[run["rank"] == 1]
    np.testing.assert_allclose(first.score, expected.max(axis=1), rtol=1e-5)


def test_a_restricted_document_is_not_returned(register):
    """Whether the allowed ones are listed or the others."""
    model = register()
    queries, docs = (
        token_vectors.load_term_weights(model, texts, role) for texts, role in ((QUERIES, "query"), (DOCS, "document"))
    )
    whole = sparse.search(queries, docs, depth=40)
    rows, listed = np.repeat(np.arange(9), 20), np.tile(np.arange(0, 40, 2), 9)
    for allow in (True, False):
        rule = ListRule.from_pairs("list", rows, listed, 9, allow=allow)
        found = sparse.search(queries, docs, depth=40, candidates=Candidates(40, (rule,)))
        kept = (whole[1] % 2 == 0) == allow
        assert [column.tolist() for column in found] == [column[kept].tolist() for column in whole]
    with pytest.raises(MirblabError, match="depth must be at least 1"):
        sparse.search(queries, docs, depth=0)


def test_what_is_stored_is_not_encoded_again(register, monkeypatch):
    """And it is the same to the last bit: positions and weights are stored as float32."""
    model = register()
    made = model.term_weights(DOCS)
    first = token_vectors.load_term_weights(model, DOCS)
    monkeypatch.setattr(local, "sparse_vectors", None)
    again = token_vectors.load_term_weights(encoder("tiny-sparse"), DOCS[::-1])
    assert (again[::-1] != first).nnz == 0
    for row, pairs in enumerate(made):
        own = first[[row]].tocoo()
        assert own.col.tolist() == pairs[:, 0].astype(int).tolist() and own.data.tolist() == pairs[:, 1].tolist()
    assert token_vectors.verify(paths.cache() / "tokens") == []
    (shard,) = (paths.cache() / "tokens").glob("*/*.safetensors")
    content = bytearray(shard.read_bytes())
    content[-1] ^= 1
    shard.write_bytes(content)
    assert len(token_vectors.verify(paths.cache() / "tokens")) == 1


def test_an_entry_that_does_not_fit_is_refused(register):
    """A wrong size of the vocabulary, a dense system, and a sparse system with a dense encoder."""
    model = register(dimensions=90)
    with pytest.raises(MirblabError, match="the registry says dimensions = 90 but the model has 91"):
        model.term_weights(DOCS[:1])
    model = register()
    with pytest.raises(MirblabError, match="makes sparse vectors; search with a system of the kind sparse"):
        model.vectors(DOCS[:1])
    with pytest.raises(MirblabError, match="makes sparse vectors"):
        model.token_vectors(DOCS[:1])
    with pytest.raises(MirblabError, match="encoder 'minilm' makes no sparse vectors"):
        encoder("minilm").term_weights(DOCS[:1])


def test_a_folder_without_an_entry_is_sparse_too(home, collection):
    """As one that was trained here under a name; its prompts are its own."""
    make_sparse_model(paths.models() / "my-splade")
    found = system("my-splade")
    assert found.settings == {"kind": "sparse", "encoder": "my-splade"}
    assert encoder("my-splade").entry["dimensions"] == N_TERMS
    assert found.search(collection, 3)["rank"].max() == 3
