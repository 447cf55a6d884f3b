"""api and its room: right vectors from hosted encoders over real sockets, within limits and budget, keys unseen."""

from __future__ import annotations

import _thread
import asyncio
import email.utils
import json
import signal
import subprocess
import sys
import textwrap
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from vendor_server import DIMENSIONS, VendorServer, changed, dropped, held, running, status, vector

from mirblab.core import paths
from mirblab.core.errors import MirblabError
from mirblab.encoders.cache import VectorStore
from mirblab.encoders.hosted import client, limits
from mirblab.encoders.hosted.key import Secret
from mirblab.encoders.hosted.vendors import read_hosted, request_url

KEY = "sk-test-4f9a8b7c6d5e4f3a2b1c0d9e"
PATHS = {"openai": "/v1", "voyage": "/v1", "cohere": "/v2"}
INPUT_TYPES = {
    "openai": {},
    "voyage": {"query": "query", "document": "document"},
    "cohere": {"query": "search_query", "document": "search_document"},
}


class Watch(limits.Clock):
    """A clock that does not wait: it writes down what it was asked for, and its time goes on by so much and no more."""

    def __init__(self) -> None:
        self.waits: list[float] = []
        self.time = 1000.0

    def now(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.time += seconds
        await asyncio.sleep(0)


@pytest.fixture
def server() -> Iterator[VendorServer]:
    """Yield a server of all three vendors."""
    with running() as one:
        yield one


@pytest.fixture(autouse=True)
def _alone(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give each test its own home, a known key, and no budget."""
    monkeypatch.delenv("MIRBLAB_BUDGET", raising=False)
    for name in ("OPENAI_API_KEY", "COHERE_API_KEY", "VOYAGE_API_KEY"):
        monkeypatch.setenv(name, KEY)


@pytest.fixture
def wound_up(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Return what is set when the first Ctrl-C has stopped the sending; answers on the way get an hour after it."""
    event, wind_up = threading.Event(), client.Client._wind_up
    monkeypatch.setattr(client, "GRACE", 3600.0)
    monkeypatch.setattr(client.Client, "_wind_up", lambda self: (wind_up(self), event.set()))
    return event


@pytest.fixture
def watch() -> Watch:
    """Return a clock that does not wait."""
    return Watch()


def entry(server: VendorServer, vendor: str = "openai", **more: Any) -> dict[str, Any]:
    """Return a registry entry for the server."""
    found = {"vendor": vendor, "model": "m-large", "dimensions": DIMENSIONS, "max_length": 512}
    found |= {"url": server.url + PATHS[vendor], "input_types": INPUT_TYPES[vendor]}
    return found | {"requests_per_minute": 10**6, "tokens_per_minute": 10**9} | more


def collect(answers: Iterator[tuple[list[int], np.ndarray]], n: int) -> np.ndarray:
    """Return the vectors in the order of the texts; rows that never came are NaN."""
    found = np.full((n, DIMENSIONS), np.nan, np.float32)
    for places, vectors in answers:
        assert vectors.dtype == np.float32 and vectors.shape == (len(places), DIMENSIONS)
        found[places] = vectors
    return found


def expected(texts: list[str], kind: str = "") -> np.ndarray:
    return np.array([vector(text, kind) for text in texts], np.float32).reshape(-1, DIMENSIONS)


def texts_of(n: int, words: int = 3) -> list[str]:
    return [f"t{i} " + "ring " * (words - 1) for i in range(n)]


def expected_tokens(settings: dict[str, Any], texts: list[str]) -> int:
    return sum(batch.tokens for batch in client.plan_batches(read_hosted(settings), texts))


# ------------------------------------------------------------------ what goes out, what comes back


@pytest.mark.parametrize("vendor", ["openai", "cohere", "voyage"])
@pytest.mark.parametrize("n", [0, 1, 7, 8, 9])
def test_every_vendor_gives_the_vector_of_each_text_in_its_place(server: VendorServer, vendor: str, n: int):
    """Whatever the order of the answers and of the rows in them; batches of 0, 1, n - 1, n, n + 1 of 8."""
    texts = texts_of(n)
    found = collect(client.embed(entry(server, vendor, batch_texts=8), texts, "document"), n)
    assert np.array_equal(found, expected(texts, INPUT_TYPES[vendor].get("document", "")))
    assert len(server.requests) == -(-n // 8)


def test_the_requests_are_what_each_vendor_documents(server: VendorServer):
    """Path, body and key, field by field."""
    wire = {}
    for vendor in PATHS:
        list(client.embed(entry(server, vendor), ["a ring"], "query"))
        wire[vendor] = server.requests.pop()
        assert server.headers.pop()["Authorization"] == f"Bearer {KEY}"
    assert wire == {
        "openai": {"path": "/v1/embeddings", "model": "m-large", "input": ["a ring"], "encoding_format": "float"},
        "voyage": {"path": "/v1/embeddings", "model": "m-large", "input": ["a ring"], "input_type": "query"}
        | {"truncation": True},
        "cohere": {"path": "/v2/embed", "model": "m-large", "texts": ["a ring"], "input_type": "search_query"}
        | {"embedding_types": ["float"], "truncate": "END"},
    }


@pytest.mark.parametrize(
    ("vendor", "field"), [("openai", "dimensions"), ("cohere", "output_dimension"), ("voyage", "output_dimension")]
)
def test_other_dimensions_are_asked_for_by_the_vendors_name(server: VendorServer, vendor: str, field: str):
    """`output_dimension` in the entry; without it nothing is asked."""
    list(client.embed(entry(server, vendor, dimensions=3072, output_dimension=DIMENSIONS), ["x"], "query"))
    assert server.requests[0][field] == DIMENSIONS


def test_blank_texts_are_never_sent_and_have_the_zero_vector(server: VendorServer):
    """OpenAI refuses them; a zero vector resembles nothing."""
    found = collect(client.embed(entry(server), ["", "x", " \n"], "document"), 3)
    assert np.array_equal(found, np.array([[0] * 4, vector("x"), [0] * 4], np.float32)) and server.texts == ["x"]
    list(client.embed(entry(server), ["", " "], "document"))
    assert len(server.requests) == 1


def test_lone_surrogates_are_sent_as_the_replacement_character(server: VendorServer):
    """No vendor takes them."""
    list(client.embed(entry(server), ["a\ud800b ∀"], "document"))
    assert server.texts == ["a\ufffdb ∀"]


def test_vectors_have_length_one_only_when_the_entry_says_so(server: VendorServer):
    """Otherwise they are the vendor's to the last bit."""
    found = collect(client.embed(entry(server, normalise=True), ["x", ""], "query"), 2)
    raw = expected(["x"])
    assert np.allclose(found[0], raw[0] / np.linalg.norm(raw[0]), atol=1e-7) and not found[1].any()


def test_batches_keep_to_the_tokens_and_a_large_text_goes_alone(server: VendorServer):
    """Estimated tokens: never more in one request, unless one text alone has them."""
    texts = ["w " * 10, "w " * 10, "w " * 500, "w " * 10]
    list(client.embed(entry(server, "voyage", batch_tokens=40, max_length=9_000), texts, "document"))
    assert sorted(len(body["input"]) for body in server.requests) == [1, 1, 2]


def test_a_text_that_openai_may_refuse_goes_alone(server: VendorServer):
    """OpenAI cuts nothing: one long text must not spoil a batch of 2,048."""
    list(client.embed(entry(server, max_length=100), ["a b", "w " * 200, "c d"], "document"))
    assert sorted(len(body["input"]) for body in server.requests) == [1, 1, 1]


@pytest.mark.parametrize(("settings", "n"), [({}, 4), ({"in_flight": 2}, 2)])
def test_a_few_requests_are_on_the_way_at_once(
    server: VendorServer, settings: dict[str, int], n: int, monkeypatch: pytest.MonkeyPatch, in_time: None
):
    """Four by default, `in_flight` by the entry; the server answers when so many are there."""
    together, attempt = threading.Barrier(n), client.Client._attempt
    sent, most = 0, 0

    async def count(*given: Any) -> np.ndarray:
        nonlocal sent, most
        sent += 1
        most = max(most, sent)
        try:
            return await attempt(*given)
        finally:
            sent -= 1

    monkeypatch.setattr(client.Client, "_attempt", count)
    server.always = lambda handler, body: (together.wait(), handler.embed(body))
    list(client.embed(entry(server, batch_texts=1, **settings), texts_of(12), "document"))
    assert most == n


def test_it_works_inside_a_running_event_loop(server: VendorServer):
    """As in JupyterLab, whose kernel runs one."""

    async def cell() -> np.ndarray:
        return collect(client.embed(entry(server), ["x"], "query"), 1)

    assert np.array_equal(asyncio.run(cell()), expected(["x"]))


def test_a_slow_reader_makes_the_sending_wait(server: VendorServer, monkeypatch: pytest.MonkeyPatch, in_time: None):
    """A paused loop must not go on spending: when both workers wait, twice `in_flight` requests are ahead of it."""
    waiting = threading.Semaphore(0)

    class Room(asyncio.Semaphore):
        async def acquire(self) -> bool:
            if self.locked():
                waiting.release()
            return await super().acquire()

    monkeypatch.setattr(asyncio, "Semaphore", Room)
    answers = client.embed(entry(server, batch_texts=1, in_flight=2), texts_of(50), "document")
    next(answers)
    for _ in range(2):
        waiting.acquire()
    assert len(server.requests) == 4
    answers.close()


# ------------------------------------------------------------------ retries


def test_429_is_tried_again_after_the_seconds_that_it_asks_for(server: VendorServer, watch: Watch):
    """Retry-After: 7 means no request for seven seconds."""
    server.plan = [status(429, Retry_After="7")]
    found = collect(client.embed(entry(server), ["x"], "query", clock=watch), 1)
    assert np.array_equal(found, expected(["x"])) and len(server.requests) == 2
    assert sum(watch.waits) == pytest.approx(7)


def test_429_may_name_a_date(server: VendorServer, watch: Watch):
    """Retry-After as an HTTP date."""
    server.plan = [status(503, Retry_After=email.utils.formatdate(time.time() + 30, usegmt=True))]
    list(client.embed(entry(server), ["x"], "query", clock=watch))
    assert 0 < sum(watch.waits) <= 30


def test_all_wait_when_one_is_told_to(server: VendorServer, watch: Watch):
    """The limit is the account's, not the request's."""
    server.plan = [status(429, Retry_After="40")]
    list(client.embed(entry(server, batch_texts=1, in_flight=1), texts_of(3), "query", clock=watch))
    assert sum(watch.waits) == pytest.approx(40) and len(server.requests) == 4


def test_a_vendor_that_asks_for_hours_ends_the_run(server: VendorServer, watch: Watch):
    """Nobody waits a day in front of a bar."""
    server.plan = [status(429, Retry_After="86400")]
    with pytest.raises(MirblabError, match="asks to wait 86,400 s"):
        list(client.embed(entry(server), ["x"], "query", clock=watch))
    assert not watch.waits


@pytest.mark.parametrize("code", [500, 502, 503, 504])
def test_the_vendors_troubles_are_tried_again_with_growing_jitter(server: VendorServer, watch: Watch, code: int):
    """Each wait is drawn between zero and a bound that doubles."""
    server.plan = [status(code)] * 4
    found = collect(client.embed(entry(server), ["x"], "query", clock=watch), 1)
    assert np.array_equal(found, expected(["x"]))
    assert len(watch.waits) == 4 and all(0 <= wait <= 2**n for n, wait in enumerate(watch.waits, 1))


def test_waits_are_drawn_over_the_whole_range(server: VendorServer):
    """Full jitter: neither equal waits, nor only long ones."""
    firsts = []
    for _ in range(20):
        watch, server.plan = Watch(), [status(500)]
        list(client.embed(entry(server), ["x"], "query", clock=watch))
        firsts += watch.waits
    assert min(firsts) < 0.8 and max(firsts) > 1.2 and len(set(firsts)) == 20


def test_a_connection_that_breaks_in_the_middle_is_tried_again(server: VendorServer, watch: Watch):
    """Half an answer is no answer."""
    server.plan = [dropped, dropped]
    found = collect(client.embed(entry(server), ["x", "y"], "query", clock=watch), 2)
    assert np.array_equal(found, expected(["x", "y"])) and len(server.requests) == 3


def test_a_server_that_is_too_slow_is_tried_again(server: VendorServer, watch: Watch, in_time: None):
    """After `timeout` seconds."""
    server.plan = [held]
    found = collect(client.embed(entry(server, timeout=0.4), ["x"], "query", clock=watch), 1)
    assert np.array_equal(found, expected(["x"])) and len(server.requests) >= 2


def test_a_server_that_never_stops_trickling_is_timed_out(server: VendorServer, watch: Watch, in_time: None):
    """The timeout is for the whole answer, not from byte to byte."""

    def trickle(handler: Any, body: dict[str, Any]) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", "1000000")
        handler.end_headers()
        while not server.release.wait(0.1):
            handler.wfile.write(b" ")
            handler.wfile.flush()

    server.plan = [trickle]
    found = collect(client.embed(entry(server, timeout=0.4), ["x"], "query", clock=watch), 1)
    assert np.array_equal(found, expected(["x"])) and len(server.requests) >= 2


def test_after_seven_attempts_the_error_says_what_is_kept_and_how_to_go_on(server: VendorServer, watch: Watch):
    """The batches before it are yielded first."""
    server.plan, server.always = [api_embed, api_embed], status(503, {"message": "overloaded"})
    got, answers = [], client.embed(entry(server, batch_texts=2, in_flight=1), texts_of(6), "query", clock=watch)
    with pytest.raises(MirblabError) as caught:
        for places, _ in answers:
            got += places
    assert got == [0, 1, 2, 3] and len(server.requests) == 2 + 7
    assert str(caught.value) == (
        "127.0.0.1 answers 503: overloaded; tried 7 times; 4 of 6 texts were encoded and are stored; "
        "the same command continues from there"
    )


def test_a_refused_connection_is_tried_again_and_then_named(server: VendorServer, watch: Watch, closed_port: int):
    """A request that reached nobody costs nothing."""
    with pytest.raises(
        MirblabError, match=r"127\.0\.0\.1 cannot be reached \(.+\); is there a network\?; tried 7 times"
    ):
        list(client.embed(entry(server, url=f"http://127.0.0.1:{closed_port}/v1"), ["x"], "query", clock=watch))
    assert len(watch.waits) == 6 and not list((paths.cache() / "spending").glob("*"))


def api_embed(handler: Any, body: dict[str, Any]) -> None:
    handler.embed(body)


# ------------------------------------------------------------------ refusals


@pytest.mark.parametrize(
    ("code", "advice"),
    [
        (400, "check model, url and parameters"),
        (401, "set the environment variable OPENAI_API_KEY"),
        (402, "credit is used up"),
        (403, "may not use 'm-large'"),
        (404, r"check model \('m-large'\) and url"),
        (422, "check model, url and parameters"),
    ],
)
def test_what_cannot_pass_is_not_tried_again(server: VendorServer, watch: Watch, code: int, advice: str):
    """One request, no wait, and what to do."""
    server.always = status(code, {"error": {"message": "no"}})
    with pytest.raises(MirblabError, match=f"127.0.0.1 answers {code}: no; .*{advice}.*0 of 1 texts"):
        list(client.embed(entry(server), ["x"], "query", clock=watch))
    assert len(server.requests) == 1 and not watch.waits


def test_an_empty_account_is_not_tried_again(server: VendorServer, watch: Watch):
    """OpenAI says 429 for it as well."""
    server.always = status(429, {"error": {"message": "You exceeded", "code": "insufficient_quota"}})
    with pytest.raises(MirblabError, match="quota is used up"):
        list(client.embed(entry(server), ["x"], "query", clock=watch))
    assert len(server.requests) == 1


@pytest.mark.parametrize("said", ["message", "413"])
def test_a_batch_that_is_refused_for_its_size_is_halved(server: VendorServer, watch: Watch, said: str):
    """Until it fits; every text has its vector once, and nobody waits."""
    texts = texts_of(16)
    if said == "message":
        server.most_tokens = 12
    else:
        server.plan = [status(413, b"Payload Too Large")]
    got: list[int] = []
    found = np.empty((16, DIMENSIONS), np.float32)
    for places, vectors in client.embed(entry(server), texts, "query", clock=watch):
        got += places
        found[places] = vectors
    assert sorted(got) == list(range(16)) and np.array_equal(found, expected(texts)) and not watch.waits
    assert len(server.requests) == (7 if said == "message" else 3)


def test_a_text_that_is_too_long_for_openai_is_cut_by_the_vendors_numbers(server: VendorServer):
    """`truncate` is END by default; OpenAI has no such option, so the text is shortened and sent again."""
    server.most_length = 50
    list(client.embed(entry(server), ["word " * 80], "document"))
    sent = server.requests[-1]["input"][0]
    assert ("word " * 80).startswith(sent) and 45 <= len(sent.split()) <= 50 and len(server.requests) == 2


def test_a_text_that_is_too_long_is_an_error_when_nothing_may_be_cut(server: VendorServer):
    """`truncate = "NONE"`; the text is named."""
    server.most_length = 50
    with pytest.raises(MirblabError, match=r"text 1 \('word word .*\.\.\.'\) is refused for its length"):
        list(client.embed(entry(server, truncate="NONE"), ["x", "word " * 80], "document"))


def test_a_redirect_is_not_followed(server: VendorServer):
    """The key goes nowhere else; the error names the host."""
    with running() as other:
        server.always = status(307, b"", Location=f"{other.url}/v1/embeddings")
        with pytest.raises(MirblabError, match="answers 307; it points to 127.0.0.1, where the key is not sent"):
            list(client.embed(entry(server), ["x"], "query"))
        assert not other.requests and len(server.requests) == 1


# ------------------------------------------------------------------ wrong answers


def without_last(answer: dict[str, Any]) -> None:
    answer["data"].pop()


def same_index(answer: dict[str, Any]) -> None:
    for row in answer["data"]:
        row["index"] = 0


def short(answer: dict[str, Any]) -> None:
    answer["data"][0]["embedding"].pop()


def short_all(answer: dict[str, Any]) -> None:
    for row in answer["data"]:
        row["embedding"].pop()


def not_a_number(answer: dict[str, Any]) -> None:
    answer["data"][0]["embedding"][0] = float("nan")


def too_big(answer: dict[str, Any]) -> None:
    answer["data"][0]["embedding"][0] = 1e300


def as_text(answer: dict[str, Any]) -> None:
    for row in answer["data"]:
        row["embedding"] = list(map(str, row["embedding"]))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (without_last, "2 vectors came back"),
        (same_index, "index is not 0 to 2"),
        (short, "has not the form"),
        (short_all, r"expected numbers \(3, 4\), found float64 \(3, 3\)"),
        (not_a_number, "1 of 3 vectors are not finite"),
        (too_big, "1 of 3 vectors are not finite"),
        (as_text, "expected numbers"),
        (lambda answer: {"data": None}, "has not the form of openai's"),
        (lambda answer: {"embeddings": {"float": [[1, 2, 3, 4]] * 3}}, "has not the form"),
        (lambda answer: [1, 2], "has not the form"),
        (lambda answer: b'{"data": [', "has not the form"),
        (lambda answer: b"<html>welcome to the hotel</html>", "has not the form"),
        (lambda answer: b"\xff\xfe", "has not the form"),
    ],
)
def test_a_wrong_answer_is_an_error_and_never_a_vector(server: VendorServer, watch: Watch, change: Any, message: str):
    """Number, order, dimensions, finite numbers, form; not tried again, since it was paid for."""
    server.always = changed(change)
    answers = client.embed(entry(server), texts_of(3), "query", clock=watch)
    with pytest.raises(MirblabError, match=message):
        next(answers)
    assert len(server.requests) == 1 and not watch.waits


def test_too_few_vectors_from_cohere_are_an_error(server: VendorServer):
    """Cohere's have no index: the number must be right."""
    server.always = changed(lambda answer: answer["embeddings"]["float"].pop() and None)
    with pytest.raises(MirblabError, match=r"expected numbers \(3, 4\), found float64 \(2, 4\)"):
        list(client.embed(entry(server, "cohere"), texts_of(3), "query"))


# ------------------------------------------------------------------ money


def test_over_budget_nothing_is_sent_and_the_numbers_are_given(server: VendorServer, monkeypatch: Any):
    """Estimated before the first request."""
    monkeypatch.setenv("MIRBLAB_BUDGET", "0.0001")
    priced = entry(server, price_per_million_tokens=1.0)
    tokens = expected_tokens(priced, texts_of(100))
    cost = rf"{tokens:,} tokens more .* cost about \${tokens / 1e6:.4f}; of the budget of \$0\.0001 "
    with pytest.raises(MirblabError, match=cost + r"\(MIRBLAB_BUDGET\) \$0\.0001 is left .*nothing was sent"):
        client.embed(priced, texts_of(100), "document")
    assert not server.requests


def test_the_run_stops_before_the_vendors_own_count_passes_the_budget(server: VendorServer):
    """The vendor counts three times what we estimated: the next batch is expected to cost three times as well."""
    texts = texts_of(40)
    assert expected_tokens(entry(server), texts) == 350
    count = 26

    def dear(answer: dict[str, Any]) -> None:
        answer["usage"]["total_tokens"] = count * len(answer["data"])

    server.always = changed(dear)
    most = 530 / 1e6  # twenty answers, and 10 tokens: what we estimate for one more, but not what it costs
    priced = entry(server, price_per_million_tokens=1.0, budget=most, batch_texts=1, in_flight=1)
    got: list[int] = []
    with pytest.raises(MirblabError, match=r"budget of \$.* \(budget\).*of 40 texts were encoded and are stored"):
        for places, _ in client.embed(priced, texts, "document"):
            got += places
    paid = limits.sum_spending(paths.cache() / "spending")
    assert 0 < paid <= most and len(got) == len(server.requests) == 20
    assert paid == pytest.approx(len(got) * count / 1e6)


def test_what_was_spent_counts_in_the_next_call_too(server: VendorServer, monkeypatch: Any):
    """A budget for each of twenty collections would be none; MIRBLAB_BUDGET is for all, `budget` for one model."""
    priced = entry(server, price_per_million_tokens=1.0)
    cost = expected_tokens(priced, texts_of(10)) / 1e6
    list(client.embed(priced, texts_of(10), "document"))
    monkeypatch.setenv("MIRBLAB_BUDGET", str(cost))
    with pytest.raises(MirblabError, match="is left"):
        client.embed(priced | {"model": "other"}, texts_of(10), "document")
    monkeypatch.delenv("MIRBLAB_BUDGET")
    with pytest.raises(MirblabError, match=r"\(budget\)"):
        client.embed(priced | {"budget": cost}, texts_of(10), "document")
    list(client.embed(priced | {"budget": cost, "model": "other"}, texts_of(10), "document"))


def test_the_error_says_how_many_dollars_are_left(server: VendorServer):
    """What earlier calls spent, what this call paid and what is pending are taken off; never less than nothing."""

    async def spend(ledger: limits.Ledger, paid: int, pending: int) -> None:
        await ledger.reserve(paid)
        await ledger.settle(paid, paid)
        await ledger.reserve(pending)

    service = read_hosted(entry(server, price_per_million_tokens=1000.0, budget=2.0))  # a dollar for 1,000 tokens
    asyncio.run(spend(limits.Ledger(service), 200, 100))
    ledger = limits.Ledger(service)
    asyncio.run(spend(ledger, 400, 250))
    with pytest.raises(MirblabError, match=r"cost about \$1\.5000; of the budget of \$2\.0000 .* \$1\.0500 is left"):
        ledger.check(1500)
    service = read_hosted(entry(server, price_per_million_tokens=1000.0, budget=0.1))
    with pytest.raises(MirblabError, match=r" \$0\.0000 is left"):
        limits.Ledger(service).check(1)


def test_a_lost_answer_counts_in_full(server: VendorServer, watch: Watch):
    """It may have been billed; a refusal was not."""
    priced = entry(server, price_per_million_tokens=1.0)
    most = expected_tokens(priced, ["a ring"]) / 1e6
    server.plan = [dropped, status(500), status(429)]
    list(client.embed(priced, ["a ring"], "document", clock=watch))
    assert limits.sum_spending(paths.cache() / "spending") == pytest.approx(most + 2e-6)


def test_a_budget_without_a_price_is_an_error(server: VendorServer, monkeypatch: Any):
    """It could not be kept."""
    monkeypatch.setenv("MIRBLAB_BUDGET", "5")
    remote = {name: value for name, value in entry(server).items() if name != "url"}
    with pytest.raises(MirblabError, match="add price_per_million_tokens"):
        client.embed(remote, ["x"], "query")
    list(client.embed(entry(server), ["x"], "query"))  # this machine costs nothing
    monkeypatch.setenv("MIRBLAB_BUDGET", "five")
    with pytest.raises(MirblabError, match="MIRBLAB_BUDGET is 'five'; write a number"):
        client.embed(entry(server), ["x"], "query")


def test_the_plan_counts_requests_and_tokens(server: VendorServer):
    """By hand; what the vendor cuts is not paid for."""
    limited = entry(server, "cohere", batch_texts=2, max_length=10)
    batches = client.plan_batches(read_hosted(limited), ["a b c", "", "w " * 100, "x"])
    # three words and two; 100 words are cut to 10; one word and two; 3 texts in batches of 2
    assert [batch.tokens for batch in batches] == [15, 3]
    assert client.plan_batches(read_hosted(limited), []) == []


# ------------------------------------------------------------------ pace


def test_requests_and_tokens_per_minute_are_kept(server: VendorServer, watch: Watch):
    """In no minute of the clock are there more than the entry allows."""
    texts, sent = texts_of(60), []
    limited = entry(server, batch_texts=1, requests_per_minute=20, in_flight=3)
    server.always = lambda handler, body: (sent.append(watch.now()), handler.embed(body))
    list(client.embed(limited, texts, "document", clock=watch))
    times = np.sort(sent)
    most = max(int(((times >= start) & (times < start + 60)).sum()) for start in times)
    assert 15 <= most <= 20 + 3 and sum(watch.waits) > 100


def test_a_bucket_lets_no_minute_through_more_than_its_rate():
    """Any pattern of amounts; the worst minute is checked."""
    rng, clock = np.random.default_rng(0), Watch()
    bucket, passed = limits.Bucket(1_000, clock), []
    for amount in rng.integers(1, 90, 400).tolist():
        asyncio.run(clock.sleep(bucket.take(amount)))
        passed.append((clock.now(), amount))
    worst = max(sum(a for t, a in passed if start <= t < start + 60) for start, _ in passed)
    assert 850 <= worst <= 1_000


# ------------------------------------------------------------------ interruption


def test_after_ctrl_c_what_came_back_is_yielded_and_a_second_call_sends_only_the_rest(
    server: VendorServer, tmp_path: Path, in_time: None
):
    """A real SIGINT to a real process with four requests on the way, the vectors in the embedding cache."""
    space = {"model": "m-large", "role": "document", "dimensions": DIMENSIONS}
    texts = texts_of(40)
    script = f"""
        import json, sys
        from mirblab.encoders.hosted import client as api
        from mirblab.encoders.cache import VectorStore
        wind_up = api.Client._wind_up
        api.GRACE, api.Client._wind_up = 3600.0, lambda self: (wind_up(self), print("stopped", flush=True))
        entry, texts = json.loads(sys.stdin.read())
        store = VectorStore({str(tmp_path / "v")!r}, {space!r})
        for places, vectors in api.embed(entry, texts, "document"):
            store.append([texts[place] for place in places], vectors)
            print(len(places), flush=True)
    """
    on_the_way = threading.Semaphore(0)
    server.plan = [api_embed] * 6
    server.always = lambda handler, body: (on_the_way.release(), held(handler, body))
    job = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    job.stdin.write(json.dumps([entry(server, batch_texts=1), texts]))
    job.stdin.close()
    job.stdin = None  # so that communicate() leaves it alone
    assert [job.stdout.readline() for _ in range(6)] == ["1\n"] * 6
    for _ in range(4):
        on_the_way.acquire()
    job.send_signal(signal.SIGINT)
    assert job.stdout.readline() == "stopped\n"
    server.release.set()
    _, err = job.communicate()
    assert job.returncode != 0 and "KeyboardInterrupt" in err and KEY not in err
    store = VectorStore(tmp_path / "v", space)
    missing = store.missing(texts).tolist()
    answered = len(server.texts)
    assert 40 - len(missing) == answered == 10
    rest = [texts[place] for place in missing]
    for places, vectors in client.embed(entry(server, batch_texts=1), rest, "document"):
        store.append([rest[place] for place in places], vectors)
    assert np.array_equal(store.read(texts)[0], expected(texts)) and sorted(server.texts[answered:]) == sorted(rest)


def test_ctrl_c_while_a_batch_is_stored_neither_spoils_it_nor_loses_the_others(
    server: VendorServer, wound_up: threading.Event, in_time: None
):
    """The interrupt waits until what came back was yielded, wherever it strikes."""
    server.plan, server.always = [api_embed], held
    got: list[int] = []
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        for places, _ in client.embed(entry(server, batch_texts=1), texts_of(30), "document"):
            if not got:
                _thread.interrupt_main()
                wound_up.wait()
                server.release.set()
            got += places
    assert 1 <= len(got) == len(server.requests) <= 5 and signal.getsignal(signal.SIGINT) is before


def test_the_second_ctrl_c_strikes_at_once(server: VendorServer, wound_up: threading.Event, in_time: None):
    """For who does not want to wait for what is on the way."""

    def press_twice(handler: Any, body: dict[str, Any]) -> None:
        _thread.interrupt_main()
        wound_up.wait()
        _thread.interrupt_main()
        held(handler, body)

    server.always = press_twice
    with pytest.raises(KeyboardInterrupt):
        list(client.embed(entry(server), ["x"], "query"))
    assert wound_up.is_set()


def test_what_is_on_the_way_for_longer_than_the_grace_is_given_up(
    server: VendorServer, monkeypatch: pytest.MonkeyPatch, in_time: None
):
    """And counts as spent."""
    monkeypatch.setattr(client, "GRACE", 0.1)
    server.always = lambda handler, body: (_thread.interrupt_main(), held(handler, body))
    priced = entry(server, price_per_million_tokens=1.0)
    with pytest.raises(KeyboardInterrupt):
        list(client.embed(priced, ["x"], "query"))
    assert limits.sum_spending(paths.cache() / "spending") == expected_tokens(priced, ["x"]) / 1e6


def test_it_works_outside_the_main_thread(server: VendorServer):
    """Where signals cannot be handled."""
    got: list[np.ndarray] = []
    thread = threading.Thread(target=lambda: got.append(collect(client.embed(entry(server), ["x"], "query"), 1)))
    thread.start()
    thread.join()
    assert np.array_equal(got[0], expected(["x"]))


def test_ctrl_c_does_not_wait_for_a_backoff(server: VendorServer, wound_up: threading.Event, in_time: None):
    """Sleeping workers end at once."""

    class Pressed(limits.Clock):
        async def sleep(self, seconds: float) -> None:
            _thread.interrupt_main()
            await asyncio.Event().wait()

    server.always = status(429, Retry_After="600")
    with pytest.raises(KeyboardInterrupt):
        list(client.embed(entry(server), ["x"], "query", clock=Pressed()))
    assert wound_up.is_set()


def test_no_thread_is_left_behind(server: VendorServer, in_time: None):
    """After success, failure, and a loop that was left early."""
    list(client.embed(entry(server), ["x"], "query"))
    answers = client.embed(entry(server, batch_texts=1), texts_of(30), "query")
    next(answers)
    assert any(thread.name == "mirblab-client" for thread in threading.enumerate())
    answers.close()
    server.always = status(400)
    with pytest.raises(MirblabError):
        list(client.embed(entry(server), ["x"], "query"))
    for thread in threading.enumerate():
        if thread.name == "mirblab-client":
            thread.join()


# ------------------------------------------------------------------ keys


def shown(error: BaseException) -> str:
    """Return all that anybody could print of an error: text, repr, traceback, chained errors, the library's locals."""
    parts, chained = ["".join(traceback.format_exception(error))], [error]
    while chained:
        one = chained.pop()
        inner = one.__traceback__.tb_next if one is error and one.__traceback__ else one.__traceback__  # not the test's
        whole = traceback.TracebackException(type(one), one, inner, capture_locals=True)
        parts += [str(one), repr(one), repr(one.args), repr(vars(one)), "".join(whole.format(chain=False))]
        chained += [other for other in (one.__cause__, one.__context__) if other is not None]
    return "".join(parts)


ECHO = {"error": {"message": f"Incorrect API key provided: {KEY}. Also {KEY[:9]}****{KEY[-4:]} and {KEY[8:20]}."}}
UNICODE_ECHO = json.dumps(ECHO).replace("-", "\\u002d").encode()
FAILURES = {
    "401": [status(401, ECHO)],
    "401 escaped": [status(401, UNICODE_ECHO)],
    "400": [status(400, ECHO)],
    "403 text": [status(403, f"Bearer {KEY}".encode())],
    "404 base64": [status(404, {"detail": __import__("base64").b64encode(f"x:{KEY}".encode()).decode()})],
    "429": [status(429, ECHO)] * 9,
    "500": [status(500, ECHO)] * 9,
    "redirect": [status(302, {}, Location=f"https://{KEY}.example.org/?key={KEY}")],
    "dropped": [dropped] * 9,
    "nonsense": [changed(lambda answer: f'["{KEY}"'.encode())],
    "echo as vectors": [changed(lambda answer: {"data": [{"index": 0, "embedding": KEY}]})],
    "bad header": [status(500, ECHO, Retry_After=KEY)] * 9,
    "too large": [status(413, ECHO)],
}


@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize("given", ["argument", "environment"])
@pytest.mark.attacks
def test_no_error_shows_the_key(
    server: VendorServer, watch: Watch, failure: str, given: str, logged: Any, capfd: Any, monkeypatch: Any
):
    """Not whole, not in part, not in a log of any library, not in a local variable of a traceback."""
    server.plan = list(FAILURES[failure])
    if given == "argument":
        monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(MirblabError) as caught:
        settings = entry(server, truncate="NONE")
        list(client.embed(settings, ["x"], "query", KEY if given == "argument" else None, clock=watch))
    assert server.headers[0]["Authorization"] == f"Bearer {KEY}"
    everything = shown(caught.value) + logged() + "".join(capfd.readouterr())
    for piece in (KEY, KEY[:9], KEY[8:20], KEY[-8:]):
        assert piece not in everything
    assert caught.value.__cause__ is None


@pytest.mark.attacks
def test_keys_that_cannot_be_used_are_refused_unseen(server: VendorServer, monkeypatch: Any):
    """Absent, with a space inside, not ASCII, or written into the entry."""
    remote = {name: value for name, value in entry(server, "voyage").items() if name != "url"}
    monkeypatch.delenv("VOYAGE_API_KEY")
    with pytest.raises(MirblabError, match="no key for api.voyageai.com: set the environment variable VOYAGE_API_KEY"):
        client.embed(remote, ["x"], "query")
    for bad in (KEY + " x" + KEY, KEY + "é", "\n" + KEY + "\x07"):
        with pytest.raises(MirblabError, match="spaces or letters beyond ASCII") as caught:
            client.embed(remote, ["x"], "query", bad)
        assert KEY[:9] not in shown(caught.value)
    with pytest.raises(MirblabError, match="field 'api_key'; keys are read from the environment"):
        client.embed(remote | {"api_key": "x"}, ["x"], "query")
    with pytest.raises(MirblabError, match="write the name, never the key"):
        client.embed(remote | {"key_variable": KEY}, ["x"], "query")


@pytest.mark.attacks
def test_a_vendors_key_goes_to_no_other_host(server: VendorServer, monkeypatch: Any):
    """Unless the entry names the variable; this machine may have it, or none."""
    elsewhere = entry(server, url="https://models.example.org/v1")
    with pytest.raises(MirblabError, match="OPENAI_API_KEY is a key for api.openai.com, not for models.example.org"):
        client.embed(elsewhere, ["x"], "query")
    assert read_hosted(elsewhere | {"key_variable": "EXAMPLE_KEY"}).key_variable == "EXAMPLE_KEY"
    monkeypatch.delenv("OPENAI_API_KEY")
    list(client.embed(entry(server), ["x"], "query"))
    assert "Authorization" not in server.headers[0]


@pytest.mark.attacks
def test_a_proxy_never_sees_what_stays_on_this_machine(server: VendorServer, monkeypatch: Any):
    """Plain http with a key would go through it in the clear."""
    with running() as proxy:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url)
        monkeypatch.delenv("NO_PROXY", raising=False)
        monkeypatch.delenv("no_proxy", raising=False)
        list(client.embed(entry(server), ["x"], "query"))
        assert len(server.requests) == 1 and not proxy.requests


@pytest.mark.attacks
def test_a_secret_shows_nothing():
    """Neither printed, nor formatted, nor looked into, nor pickled."""
    import pickle

    secret = Secret(KEY)
    assert KEY not in f"{secret} {secret!r} {vars(Secret)} {secret._reveal!r}"
    with pytest.raises(MirblabError, match="never written to a file"):
        pickle.dumps(secret)


def test_redaction_leaves_the_rest_of_a_message_readable():
    """What to do must still be found in it."""
    said = "model 'm' needs 8192 tokens; see https://platform.openai.com/account/api-keys"
    assert Secret(KEY).redact(said) == said and Secret("").redact(said) == said


# ------------------------------------------------------------------ entries


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"vendor": "voyag"}, "did you mean 'voyage'"),
        ({"batch_texts": 0}, "batch_texts is 0; write a number above 0"),
        ({"dimensions": "x"}, "dimensions is 'x'"),
        ({"timeout": -1}, "timeout is -1"),
        ({"truncate": "MIDDLE"}, "truncate is 'MIDDLE'"),
        ({"truncate": "START"}, "with Cohere only"),
        ({"vendor": "cohere", "input_types": {}}, "Cohere needs input_types"),
        ({"url": "http://models.example.org/v1"}, "is not https"),
        ({"url": "http://localhost.example.org/v1"}, "is not https"),
        ({"url": "https://me:pw@models.example.org/v1"}, "carries a user, a password"),
        ({"url": "ftp://localhost/v1"}, "is not https"),
        ({"price_per_million_tokens": "dear"}, "price_per_million_tokens is 'dear'"),
    ],
)
def test_an_entry_that_cannot_work_is_refused_before_anything_is_sent(server: VendorServer, change: Any, message: str):
    """With the field and what to write."""
    with pytest.raises(MirblabError, match=message):
        client.embed(entry(server) | change, ["x"], "query")
    assert not server.requests


@pytest.mark.parametrize(
    "change",
    [
        {"url": f"https://models.example.org/v1?api_key={KEY}"},
        {"url": f"https://models.example.org/v1?x={KEY}"},
        {"url": f"https://me:{KEY}@models.example.org/v1"},
        {"url": f"https://{KEY}@models.example.org/v1"},
        {"url": f"me:{KEY}@models.example.org/v1"},
        {"url": f"https://models.example.org/v1#{KEY}"},
        {"url": "https://models.example.org/sk-0123456789abcdefghij/v1"},
        {"url": f"https://me:{KEY}@[::1/v1"},
        {"key_variable": f"{KEY}-x"},
        {"api_key": KEY},
    ],
)
@pytest.mark.attacks
def test_a_key_in_an_entry_is_refused_before_it_reaches_a_cache_or_a_message(
    change: dict[str, Any], server: VendorServer, own: Callable[..., Path]
) -> None:
    """An encoder that carries one is never made, so no key, no provenance and no message holds it."""
    import tomli_w

    from mirblab.app.doctor import registries
    from mirblab.encoders.encoding import encoder

    fields = {"vendor": "openai", "model": "m", "max_length": 9, "normalise": True, "dimensions": 2}
    own("encoders", tomli_w.dumps({"mine": {**fields, "prompts": {"query": "", "document": ""}, **change}}))
    with pytest.raises(MirblabError, match=r"encoder 'mine' in .*encoders.toml") as caught:
        encoder("mine")
    finding = registries()
    assert finding.state == "wrong"
    for said in (str(caught.value), repr(caught.value.__cause__), finding.text):
        assert KEY not in said and "0123456789abcdefghij" not in said
    own("encoders", f'api_key = "{KEY}"\n')
    with pytest.raises(MirblabError) as caught:
        encoder("minilm")
    assert KEY not in str(caught.value)


def test_an_unknown_role_is_refused_at_once(server: VendorServer):
    """Cohere and Voyage encode by role."""
    with pytest.raises(MirblabError, match="no input_type for role 'querry'; .*did you mean 'query'"):
        client.embed(entry(server, "voyage"), ["x"], "querry")


def test_an_absent_field_is_named():
    """In one message, all of them."""
    with pytest.raises(MirblabError, match="lacks model, dimensions, max_length"):
        read_hosted({"vendor": "openai"})


@pytest.mark.parametrize("url", ["https://h.org/v1", "https://h.org/v1/", "https://h.org/v1/embeddings"])
def test_a_url_may_be_a_base_or_the_whole_address(url: str):
    """As people write it for vLLM and TEI."""
    assert request_url(url, "https://api.openai.com/v1/embeddings") == "https://h.org/v1/embeddings"


def test_a_plan_loads_no_network_library():
    """`mirblab plan` needs none."""
    settings = {"vendor": "openai", "model": "m", "dimensions": 4, "max_length": 9}
    code = (
        "import sys; from mirblab.encoders.hosted import client, vendors; "
        f"client.plan_batches(vendors.read_hosted({settings}), ['x']); print('httpx' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
