"""A collection is served over HTTP and to a client of MCP, to this machine alone, and nothing is written."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator

import httpx
import mcp
import pytest

from mirblab.analysis.searching.free_text import search
from mirblab.analysis.searching.similar_statements import similar
from mirblab.app import server
from mirblab.core.errors import MirblabError

TEXT = "every finite integral domain is a field"


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Return the address at which a process serves mini-qa."""
    command = [sys.executable, "-m", "mirblab", "serve", "mini-qa", "--by", "bm25", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().split()[0]
        process.terminate()


def get(address: str, path: str, **headers: str) -> httpx.Response:
    for _ in range(50):  # the port is printed shortly before it answers
        try:
            return httpx.get(address + path, headers=headers, timeout=60)
        except httpx.ConnectError:
            asyncio.run(asyncio.sleep(0.1))
    raise AssertionError("nothing answers")


def test_http_answers_as_the_function_does(address: str) -> None:
    answer = get(address, f"/search?text={TEXT}&depth=3").json()
    wanted = search(TEXT, "mini-qa", "bm25", depth=3)
    assert [row["doc_id"] for row in answer["rows"]] == wanted.frame.doc_id.tolist()
    assert [row["rank"] for row in answer["rows"]] == [1, 2, 3] and answer["caption"] == wanted.caption
    pairs = get(address, "/similar?n=2").json()["rows"]
    assert len(pairs) == 2 and {"score", "left", "right", "left_text", "shared"} <= set(pairs[0])
    by_words = similar("mini-qa", by="bm25", n=2).frame
    assert [(row["left"], row["right"]) for row in pairs] == list(zip(by_words.left, by_words.right, strict=True))
    about = get(address, "/").json()
    assert about["documents"] == 869 and about["system of similar"] == "bm25"


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("/search", "no text to search for"),
        ("/search?text=x&depth=0", "depth is from 1 to 1000, found 0"),
        ("/search?text=x&deep=1", "no parameter 'deep'; did you mean 'depth'?"),
        ("/similar?n=many", "n is a whole number"),
        (f"/similar?n={'9' * 5_000}", f"n is a whole number of at most 18 digits, found '{'9' * 20} …'"),
        ("/search?text=x&depth=3&depth=5", "depth is given 2 times; give it once"),
    ],
)
def test_a_wrong_request_is_answered_with_a_message(address: str, path: str, problem: str) -> None:
    answer = get(address, path)
    assert answer.status_code == 400 and problem in answer.json()["error"]


def test_pages_of_the_web_cannot_ask(address: str) -> None:
    """A name that was made to lead here is refused, and nothing can be changed."""
    assert get(address, "/", Host="elsewhere.example").status_code == 400
    assert httpx.post(address + "/search?text=x").status_code == 405


def test_a_client_of_mcp_finds_and_uses_the_tools(address: str) -> None:
    """A wrong argument is an error that says what is wrong."""

    async def ask() -> tuple[list[str], dict, str]:
        async with mcp.Client(f"{address}/mcp") as client:
            tools = await client.list_tools()
            answer = await client.call_tool("search", {"text": TEXT, "depth": 2})
            wrong = await client.call_tool("search", {"text": TEXT, "depth": 0})
            assert wrong.is_error
            names = [tool.name for tool in tools.tools]
            return names, json.loads(answer.content[0].text), wrong.content[0].text

    names, answer, problem = asyncio.run(ask())
    assert names == ["search", "similar"] and "depth is from 1 to 1000, found 0" in problem
    wanted = search(TEXT, "mini-qa", "bm25", depth=2).frame
    assert [row["doc_id"] for row in answer["rows"]] == wanted.doc_id.tolist()


def test_what_cannot_be_served_is_refused(address: str) -> None:
    with pytest.raises(MirblabError, match="did you mean 'mini-qa'"):
        server.build_server("mini-qq")
    with pytest.raises(MirblabError, match="port .* cannot be used: .*; choose another with --port"):
        server.serve("mini-qa", "bm25", port=int(address.rpartition(":")[2]))
    with pytest.raises(
        MirblabError, match="port 99999 cannot be used: ports are from 0 to 65535; choose another with --port"
    ):
        server.serve("mini-qa", "bm25", port=99999)


def test_another_system_compares_statements_where_the_chosen_one_cannot() -> None:
    """The answer says which."""
    made = server.build_server("mini-hol", "bm25>maxsim@10")
    answer = asyncio.run(made.call_tool("similar", {"n": 2}))
    told = json.dumps(answer, default=str)
    assert "bm25>maxsim@10 cannot compare statements; minilm does." in told
