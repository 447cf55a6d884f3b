"""Queries are rewritten once by the chat model that is named, and searched as they then are."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from vendor_server import Handler, VendorServer, running

import mirblab as lab
from mirblab.core.errors import MirblabError
from mirblab.data.collection import load_folder
from mirblab.retrieval import rewriting

DOCS = ["a ring without zero divisors", "an integral domain", "a module over a ring", "a finite field"]


class Rewriter:
    """A chat model that knows another word for some queries."""

    def __init__(self) -> None:
        self.words = {"domain": "ring without zero divisors", "GF(q)": "finite field"}

    def __call__(self, handler: Handler, body: dict[str, Any]) -> None:
        """Answer as a server of chat completions does."""
        query = body["messages"][-1]["content"].split("\n")[1]
        choice = {"message": {"role": "assistant", "content": self.words.get(query, "")}, "finish_reason": "stop"}
        handler.reply(200, {"choices": [choice], "usage": {"total_tokens": 9}})


@pytest.fixture
def server(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[VendorServer]:
    """Return a chat model that the environment names, with a home where nothing has been answered."""
    with running() as made:
        made.always = Rewriter()
        monkeypatch.setenv("MIRBLAB_CHAT_MODEL", "small-9b")
        monkeypatch.setenv("MIRBLAB_CHAT_URL", f"{made.url}/v1")
        monkeypatch.setenv("MIRBLAB_CHAT_KEY", "sk-test")
        yield made


@pytest.fixture
def collection(make_folder: Any) -> Any:
    """Return four documents and three queries, one of which the model cannot rewrite."""
    corpus = [{"_id": f"d{number}", "title": "", "text": text} for number, text in enumerate(DOCS)]
    queries = [{"_id": "q1", "text": "domain"}, {"_id": "q2", "text": "GF(q)"}, {"_id": "q3", "text": "module"}]
    return load_folder(make_folder(corpus, queries, "q1\td0\t1\nq2\td3\t1\nq3\td2\t1\n"))


def first(run: Any) -> dict[str, str]:
    return run[run["rank"] == 1].set_index("query_id").doc_id.astype("str").to_dict()


def test_a_rewritten_query_finds_what_its_words_did_not(server: VendorServer, collection: Any) -> None:
    """The query stands before its rewriting; a query without one is searched as it is, with a warning."""
    plain = lab.system("bm25").search(collection)
    assert set(plain.query_id) == {"q1", "q3"}
    with pytest.warns(rewriting.RewritingWarning, match="small-9b gave no text for 1 of 3 queries"):
        run = lab.system("bm25~rewrite").search(collection)
    assert first(run) == {"q1": "d0", "q2": "d3", "q3": "d2"}
    assert set(run[run.query_id == "q1"].doc_id) >= {"d0", "d1"}  # by its rewriting, and by itself
    assert run.attrs["system"] == "bm25~rewrite" and lab.system("bm25~rewrite").label == "BM25 with rewritten queries"
    with pytest.warns(rewriting.RewritingWarning):
        alone = lab.system("bm25~rewrite", original=0).search(collection)
    assert "d1" not in set(alone[alone.query_id == "q1"].doc_id) and first(alone)["q3"] == "d2"


def test_each_query_is_asked_for_once(server: VendorServer, collection: Any) -> None:
    """The run is stored, and so are the answers, which another system uses; an empty one is asked for twice."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rewriting.RewritingWarning)
        lab.system("bm25~rewrite").search(collection)
        assert sorted(body["messages"][-1]["content"].count("was empty") for body in server.requests) == [0, 0, 0, 1]
        lab.system("bm25~rewrite").search(collection)
        lab.system("bm25 (k1 = 0.9)~rewrite").search(collection)
    assert len(server.requests) == 4
    assert "The query:\ndomain" in [body["messages"][-1]["content"] for body in server.requests]


def test_model_and_prompt_are_in_the_key_and_the_address_is_not(
    server: VendorServer, collection: Any, own: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that another model, or another prompt, makes another run."""
    key = lab.system("bm25~rewrite").run_key(collection)
    monkeypatch.setenv("MIRBLAB_CHAT_URL", "http://localhost:1/v1")
    assert lab.system("bm25~rewrite").run_key(collection) == key
    assert lab.system("bm25~rewrite", budget=1.0).run_key(collection) == key
    assert lab.system("bm25~rewrite", model="other").run_key(collection) != key
    own("prompts", '[rewrite]\nsystem = ""\nuser = "{statement}"\nretry = ""\nattempts = 1\nparameters = {}\n')
    assert lab.system("bm25~rewrite").run_key(collection) != key


def test_free_text_is_rewritten_too(server: VendorServer, collection: Any) -> None:
    """With what matched by the words that were searched."""
    found = lab.search("domain", collection, "bm25~rewrite", depth=2).frame
    assert found.doc_id.tolist() == ["d0", "d1"] and len(server.requests) == 1


def test_what_is_missing_or_wrong_is_said(collection: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model is named by the environment, or by the system, and a prompt by the registry."""
    monkeypatch.delenv("MIRBLAB_CHAT_MODEL", raising=False)
    with pytest.raises(MirblabError, match="no chat model: name one, or set the environment variable"):
        lab.system("bm25~rewrite").search(collection)
    with pytest.raises(MirblabError, match="no prompt 'rewrit'.*did you mean 'rewrite'"):
        lab.system("bm25~rewrite", model="m", url="http://localhost:1/v1", prompt="rewrit").search(collection)
