"""The data recipe over real sockets: prompts filled in, answers read strictly, nothing asked twice, keys unseen."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from vendor_server import Handler, VendorServer, running, status

from mirblab.core import paths
from mirblab.core.errors import MirblabError
from mirblab.encoders.hosted import limits
from mirblab.encoders.hosted.chat import (
    Prompt,
    Reply,
    ReplyStore,
    UnusableReply,
    ask_model,
    chat_model,
    read_prompt,
    reply_key,
    verify_replies,
)
from mirblab.train import pairs
from mirblab.train.pairs import NEGATIVE_COLUMNS, REPHRASING_COLUMNS
from mirblab.train.rephrase import (
    STEPS,
    read_decomposition,
    read_negatives,
    read_rephrasing,
    rephrase,
    run_rephrasing,
)

KEY = "sk-test-4f9a8b7c6d5e4f3a2b1c0d9e"


class Watch(limits.Clock):
    """A clock that does not wait."""

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(0)


class Model:
    """A chat model: *wrong* has what it answers in place of the right thing, by (step, statement, attempt)."""

    def __init__(self) -> None:
        self.wrong: dict[tuple[str, str, int], Any] = {}
        self.wait: Callable[[], object] = lambda: None
        self.asked: list[tuple[str, str, int]] = []
        self.lives = 10**9

    def __call__(self, handler: Handler, body: dict[str, Any]) -> None:
        """Answer as a server of chat completions does."""
        step, statement, attempt = self.read(body)
        self.asked.append((step, statement, attempt))
        self.wait()
        self.lives -= 1
        if self.lives < 0:
            handler.close_connection = True
            return
        found = self.wrong.get((step, statement, attempt), self.right(step, statement))
        if isinstance(found, bytes):
            handler.reply(200, found)
            return
        text, finish = found if isinstance(found, tuple) else (found, "stop")
        choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": finish}
        handler.reply(200, {"id": "x", "choices": [choice], "usage": {"total_tokens": 50}})

    def read(self, body: dict[str, Any]) -> tuple[str, str, int]:
        """Return step, statement and attempt of a request, by the words of its prompt."""
        system, user = (message["content"] for message in body["messages"])
        [step] = [name for name in STEPS if read_prompt(name).system == system]
        found = re.search(r"S\d+ holds\.", user)
        return step, found[0] if found else "", int(user.endswith(read_prompt(step).retry.strip()))

    def right(self, step: str, statement: str) -> str:
        """Return a usable answer."""
        if step == "decompose":
            return json.dumps({"hypotheses": [], "conclusions": [statement], "normalized_form": f"If so, {statement}"})
        if step == "rephrase":
            return f"It is true that {statement}"
        return json.dumps({"hard_negatives": [f"{word} {statement}" for word in ("Never", "Seldom", "Not")]})


def statements(n: int) -> pd.DataFrame:
    """Return a table of *n* statements."""
    return pd.DataFrame({"id": [f"d{i}" for i in range(n)], "informal": [f"S{i} holds." for i in range(n)]})


@pytest.fixture
def model() -> Model:
    """Return a model that answers well."""
    return Model()


@pytest.fixture
def server(model: Model) -> Iterator[VendorServer]:
    """Yield a server of that model."""
    with running() as one:
        one.always = model
        yield one


@pytest.fixture(autouse=True)
def _alone(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give each test its own home, a known key, and no budget or address."""
    for name in ("MIRBLAB_BUDGET", "MIRBLAB_CHAT_URL", "MIRBLAB_CHAT_MODEL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("MIRBLAB_CHAT_KEY", KEY)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-openai-and-nobody-else-0123")


def service(server: VendorServer, **limits: Any) -> Any:
    return chat_model("small-9b", f"{server.url}/v1", **limits)


# ------------------------------------------------------------------ what goes out


def test_a_request_is_what_chat_completions_document(server: VendorServer) -> None:
    """Path, model, messages, parameters and key; nothing else."""
    step = read_prompt("decompose")
    [(place, reply)] = ask_model(service(server), step, ["S1 holds."])
    assert (place, json.loads(reply.text)["conclusions"]) == (0, ["S1 holds."])
    assert server.requests == [
        {
            "path": "/v1/chat/completions",
            "model": "small-9b",
            "messages": [{"role": "system", "content": step.system}, {"role": "user", "content": "S1 holds."}],
            "temperature": 0.0,
            "max_tokens": 1024,
        }
    ]
    assert server.headers[0]["Authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize("url", ["/v1", "/v1/", "/v1/chat", "/v1/chat/completions"])
def test_the_address_is_a_base_or_the_whole(url: str) -> None:
    """As users of OpenAI's client write it."""
    assert chat_model("m", f"http://localhost:8000{url}").url == "http://localhost:8000/v1/chat/completions"


def test_model_and_address_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """And the error names the variable."""
    with pytest.raises(MirblabError, match="no chat model: .*MIRBLAB_CHAT_MODEL"):
        chat_model()
    monkeypatch.setenv("MIRBLAB_CHAT_MODEL", "m")
    with pytest.raises(MirblabError, match="no chat url: .*MIRBLAB_CHAT_URL"):
        chat_model()
    monkeypatch.setenv("MIRBLAB_CHAT_URL", "https://models.example.org/v1")
    found = chat_model()
    assert (found.model, found.host, found.key_variable) == ("m", "models.example.org", "MIRBLAB_CHAT_KEY")
    with pytest.raises(MirblabError, match="plain http is for this machine only"):
        chat_model("m", "http://models.example.org/v1")
    with pytest.raises(MirblabError, match="no limit of a chat model called 'inflight'.*did you mean 'in_flight'"):
        chat_model(inflight=3)


@pytest.mark.attacks
def test_the_key_of_openai_goes_to_openai_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another host without a key of its own is an error before anything is sent."""
    monkeypatch.delenv("MIRBLAB_CHAT_KEY")
    assert chat_model("m", "https://api.openai.com/v1").key_variable == "OPENAI_API_KEY"
    with pytest.raises(MirblabError, match=r"no key for models\.example\.org: .*MIRBLAB_CHAT_KEY"):
        ask_model(chat_model("m", "https://models.example.org/v1"), read_prompt("rephrase"), ["x"])


def test_several_requests_are_on_their_way_at_once(server: VendorServer, model: Model, in_time: None) -> None:
    """Up to in_flight, and no more; the model answers when four are there."""
    model.wait = threading.Barrier(4).wait
    rephrase(statements(12), service(server, in_flight=4))
    assert server.busiest == 4


def test_a_budget_stops_before_anything_is_sent(server: VendorServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """The budget of the hosted encoders holds here too."""
    monkeypatch.setenv("MIRBLAB_BUDGET", "0.001")
    with pytest.raises(limits.OverBudget, match="nothing was sent"):
        rephrase(statements(5), service(server, price_per_million_tokens=10.0))
    assert server.requests == []


# ------------------------------------------------------------------ what comes back


def test_the_recipe_gives_parts_new_text_and_wrong_versions(server: VendorServer) -> None:
    """One row per statement, in order; the decomposition is shown to the later steps."""
    found = rephrase(statements(3), service(server), with_negatives=True)
    assert found.table.columns.tolist() == list(REPHRASING_COLUMNS)
    row = found.table.iloc[1]
    assert (row.id, row.rephrasing, row.conclusions) == ("d1", "It is true that S1 holds.", ["S1 holds."])
    assert [row[name] for name in NEGATIVE_COLUMNS] == ["Never S1 holds.", "Seldom S1 holds.", "Not S1 holds."]
    assert (row.model, row.problem, row.normalized_form) == ("small-9b", "", "If so, S1 holds.")
    assert found.table.prompts.nunique() == 1
    users = [body["messages"][1]["content"] for body in server.requests]
    assert any("It assumes:\n- nothing" in user and "It claims:\n- S1 holds." in user for user in users)
    assert any('"normalized_form": "If so, S1 holds."' in user for user in users)
    assert [(count.statements, count.asked, count.usable) for count in found.counts.values()] == [(3, 3, 3)] * 3


def test_a_second_run_asks_nothing_and_gives_the_same(server: VendorServer, own: Callable[..., Path]) -> None:
    """Also for a statement that stands twice; another model, prompt or parameter is asked anew."""
    table = pd.concat([statements(4), statements(1).assign(id="again")], ignore_index=True)
    first = rephrase(table, service(server))
    assert len(server.requests) == 8
    second = rephrase(table, service(server))
    assert len(server.requests) == 8
    pd.testing.assert_frame_equal(first.table, second.table)
    assert [count.asked for count in second.counts.values()] == [0, 0]
    rephrase(table, chat_model("another", f"{server.url}/v1"))
    assert len(server.requests) == 16
    own(
        "prompts",
        '[rephrase]\nsystem = "Reword."\nuser = "{statement}"\nretry = " Again."\nattempts = 1\nparameters = {}\n',
    )
    rephrase(table, service(server))
    assert len(server.requests) == 20
    assert server.requests[-1]["messages"][0]["content"] == "Reword."


def test_an_answer_of_no_use_is_asked_for_again_and_counted(server: VendorServer, model: Model) -> None:
    """Empty, cut off, no JSON: with the addition of the prompt; after the last attempt the row is left without."""
    model.wrong = {
        ("rephrase", "S0 holds.", 0): " \n",
        ("rephrase", "S1 holds.", 0): ("It is tr", "length"),
        ("rephrase", "S2 holds.", 0): None,
        ("decompose", "S3 holds.", 0): '{"hypotheses": ["H"',
        ("rephrase", "S4 holds.", 0): "",
        ("rephrase", "S4 holds.", 1): "S4  HOLDS.",
        ("decompose", "S5 holds.", 0): "I cannot do that.",
        ("decompose", "S5 holds.", 1): "[]",
    }
    found = rephrase(statements(7), service(server))
    assert found.table.rephrasing.tolist() == [f"It is true that S{i} holds." for i in range(4)] + [
        "", "", "It is true that S6 holds.",
    ]  # fmt: skip
    assert found.table.problem.tolist() == [""] * 4 + ["rephrase: unchanged", "decompose: other JSON", ""]
    assert dict(found.counts["decompose"].answers) == {"no JSON": 2, "other JSON": 2}
    assert dict(found.counts["rephrase"].answers) == {"empty": 3, "cut off": 1, "unchanged": 2}
    assert found.counts["rephrase"].statements == 6  # one has no parts
    assert ("rephrase", "S0 holds.", 1) in model.asked
    assert model.asked.count(("rephrase", "S4 holds.", 1)) == 2
    assert "decompose: 6 of 7 statements usable, 10 requests now; answers of no use: no JSON 2" in found.summary()[0]
    asked = len(model.asked)
    rephrase(statements(7), service(server))
    assert len(model.asked) == asked


def test_failures_that_pass_are_waited_out(server: VendorServer, model: Model) -> None:
    """429 with Retry-After, 503, an answer that is no JSON, and one that is no chat completion."""
    server.plan = [status(429, Retry_After="1"), status(503), status(200, b"<html>"), status(200, {"choices": []})]
    found = rephrase(statements(3), service(server), clock=Watch())
    assert (found.table.problem == "").all() and len(server.requests) == 6 + 4


def test_a_server_that_dies_keeps_what_it_said(server: VendorServer, model: Model) -> None:
    """The error says how far it came; when the server is back only the rest is asked for."""
    model.lives = 5
    with pytest.raises(
        MirblabError, match=r"connection to 127.0.0.1 broke .*; 5 of 9 answers were received and are stored"
    ):
        rephrase(statements(9), service(server, in_flight=1), clock=Watch())
    model.lives, model.asked = 10**9, []
    found = rephrase(statements(9), service(server))
    assert found.counts["decompose"].asked == 4
    assert (found.table.rephrasing != "").all()


def test_a_refusal_stops_with_what_to_do(server: VendorServer) -> None:
    """A wrong key is tried once."""
    server.always = status(401, {"error": {"message": f"Incorrect API key provided: {KEY}"}})
    with pytest.raises(MirblabError, match="answers 401.*MIRBLAB_CHAT_KEY") as caught:
        rephrase(statements(4), service(server, in_flight=1))
    assert KEY not in str(caught.value) and len(server.requests) == 1


@pytest.mark.attacks
def test_the_key_is_in_no_file_and_no_log(server: VendorServer, logged: Callable[[], str]) -> None:
    """Neither whole nor in part, with everything logged."""
    rephrase(statements(2), service(server, price_per_million_tokens=1.0))
    files = [path for path in paths.home().rglob("*") if path.is_file()]
    assert files
    assert not [path for path in files if KEY[8:].encode() in path.read_bytes()]
    assert "chat/completions" in logged() and KEY[8:] not in logged()


_JOB = """
import sys
import pandas as pd
from mirblab.encoders.hosted import client
from mirblab.encoders.hosted.chat import chat_model
from mirblab.train.rephrase import rephrase

wind_up = client.Client._wind_up
client.GRACE, client.Client._wind_up = 3600.0, lambda self: (wind_up(self), print("stopped", flush=True))
rows = pd.DataFrame({"id": [f"d{i}" for i in range(40)], "informal": [f"S{i} holds." for i in range(40)]})
rephrase(rows, chat_model("small-9b", sys.argv[1], in_flight=4))
"""


@pytest.mark.parametrize("blow", [signal.SIGKILL, signal.SIGINT])
def test_a_run_that_is_stopped_goes_on_where_it_was(
    server: VendorServer, model: Model, blow: signal.Signals, in_time: None
) -> None:
    """After kill -9 requests on the wire and answers not yet stored are repeated, after Ctrl-C none."""
    on_the_way = threading.Semaphore(0)

    def hold() -> None:
        if len(model.asked) > 15:
            on_the_way.release()
            server.release.wait()

    model.wait = hold
    command = [sys.executable, "-c", textwrap.dedent(_JOB), f"{server.url}/v1"]
    job = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    for _ in range(4):  # as many as are in flight
        on_the_way.acquire()
    job.send_signal(blow)
    assert job.stdout.readline() == ("stopped\n" if blow == signal.SIGINT else "")
    server.release.set()
    assert job.wait() != 0
    assert 15 <= len(model.asked) < 80
    found = rephrase(statements(40), service(server))
    assert (found.table.rephrasing != "").all()
    repeated = len(model.asked) - 80
    assert 4 <= repeated <= 2 * 4 if blow == signal.SIGKILL else repeated == 0


# ------------------------------------------------------------------ the store


def test_a_torn_or_changed_line_counts_as_not_there() -> None:
    """The others stay."""
    step = read_prompt("rephrase")
    store = ReplyStore("m", step)
    for number in range(3):
        store.put(reply_key(f"q{number}", 0), Reply(f"answer {number} ∀\n", "stop"))
    [path] = store.folder.glob("*.jsonl")
    raw = path.read_bytes()
    path.write_bytes(raw.replace(b"answer 1", b"answer 7")[:-5])
    again = ReplyStore("m", step)
    assert len(again) == 1 and again.get(reply_key("q0", 0)) == Reply("answer 0 ∀\n", "stop")
    again.put(reply_key("q2", 0), Reply("new", "length"))
    assert ReplyStore("m", step).get(reply_key("q2", 0)) == Reply("new", "length")
    assert len(ReplyStore("another", step)) == 0


def test_damaged_answers_are_named_by_file_and_line(home: Path) -> None:
    """Whatever stands in a line that ends, it is told and asked again; strangers are named and passed over."""
    step = read_prompt("rephrase")
    store = ReplyStore("m", step)
    for number in range(3):
        store.put(reply_key(f"q{number}", 0), Reply(f"answer {number}", "stop"))
    [path] = store.folder.glob("*.jsonl")
    lines = path.read_bytes().splitlines()
    (store.folder / "folder.jsonl").mkdir()
    (store.folder.parent / "note.txt").write_text("mine", encoding="utf-8")
    for bad in (lines[1].replace(b"answer 1", b"answer 7"), b"[" * 3000, b"3", b"\xff", b'{"key": ["q"]}', b""):
        path.write_bytes(b"\n".join([lines[0], bad, lines[2], b'{"torn']))
        with pytest.warns(UserWarning, match=rf"{path.name} is passed over \(in part: damaged lines 2\)"):
            again = ReplyStore("m", step)
        assert len(again) == 2 and again.get(reply_key("q2", 0)).text == "answer 2"
        other, stranger, line = verify_replies(store.folder.parent)
        assert f"{path.name}, line 2 is damaged" in line and "folder.jsonl does not belong" in stranger
        assert "note.txt does not belong here" in other
    path.write_bytes(path.read_bytes().replace(b"answer 0", b"answer 9"))
    with pytest.raises(MirblabError, match="was changed while it was read"):
        again.get(reply_key("q0", 0))


def test_an_answer_that_cannot_be_stored_is_held_in_memory(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It was paid for; a line says that the next process asks again."""
    home.mkdir()
    (home / "cache").write_text("no folder", encoding="utf-8")
    store = ReplyStore("m", read_prompt("rephrase"))
    store.put("a", Reply("x", "stop"))
    assert "a" in store and len(store) == 1 and store.get("a") == Reply("x", "stop")
    assert "note: answers cannot be stored" in capsys.readouterr().err


# ------------------------------------------------------------------ prompts and answers


def test_braces_of_a_statement_and_of_a_prompt_stay_as_they_are() -> None:
    """Only the known places are filled in, once."""
    one = Prompt("p", "", r"\{x\} {other} {statement} | {hypotheses}", "", 1, {})
    found = one.message({"statement": "{hypotheses} $x^{2}$", "hypotheses": ["{statement}"]})
    assert found == r"\{x\} {other} {hypotheses} $x^{2}$ | - {statement}"


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ('user = "{statement}"', "lacks system, retry, attempts, parameters"),
        ('system = ""\nuser = "nothing"\nretry = ""\nattempts = 1\nparameters = {}', "needs {statement} in user"),
        (
            'system = ""\nuser = "{statement}"\nretry = ""\nattempts = 0\nparameters = {}',
            "attempts is 0; write",
        ),
        ('sytem = ""', "did you mean 'system'"),
    ],
)
def test_a_prompt_of_ones_own_is_checked(entry: str, problem: str, own: Callable[..., Path]) -> None:
    """Field by field."""
    own("prompts", f"[decompose]\n{entry}\n")
    with pytest.raises(MirblabError, match=re.escape(problem)):
        read_prompt("decompose")


def test_the_bundled_prompts_share_no_sentence_with_the_paper(shared_file: Callable[[str], Path]) -> None:
    """Ours ask for the same in other words: no eight words in a row are the paper's."""

    def runs(text: str) -> set[tuple[str, ...]]:
        words = re.findall(r"[a-z]+", text.lower())
        return {tuple(words[at : at + 8]) for at in range(len(words) - 7)}

    paper = runs(shared_file("papers/003_*.txt").read_text("utf-8"))
    for name in STEPS:
        one = read_prompt(name)
        assert not runs(f"{one.system} {one.user} {one.retry}") & paper


GOOD = '{"hypotheses": ["a"], "conclusions": ["b"]}'


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "empty"),
        ("<think>let me see</think>\n", "empty"),
        ("<think>let me see", "cut off"),
        ("The parts: " + GOOD, "no JSON"),
        (GOOD + GOOD, "no JSON"),
        ("[1]", "other JSON"),
        ('{"hypotheses": "a", "conclusions": ["b"]}', "other JSON"),
        ('{"hypotheses": [1], "conclusions": ["b"]}', "other JSON"),
        ('{"hypotheses": [], "conclusions": ["b"], "normalized_form": 3}', "other JSON"),
        ('{"hypotheses": [], "conclusions": []}', "no conclusion"),
        ('{"conclusions": ["b"]}', "other JSON"),
        ("[" * 100_000, "no JSON"),
    ],
)
def test_a_decomposition_of_another_form_is_of_no_use(text: str, reason: str) -> None:
    """And says why."""
    with pytest.raises(UnusableReply, match=f"^{reason}$"):
        read_decomposition(Reply(text))


def test_json_may_stand_alone_in_a_fence_or_after_a_thought() -> None:
    """What models do without being asked to."""
    for text in (GOOD, f"```json\n{GOOD}\n```", f"<think>hm {{</think>\n\n```\n{GOOD}\n```"):
        assert read_decomposition(Reply(text))["hypotheses"] == ["a"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Here is a rephrasing: x is y", "not a statement alone"),
        ("Sure! x is y", "not a statement alone"),
        ("```\nx is y\n```", "not a statement alone"),
        ("Rephrased statement: x is y", "not a statement alone"),
        (" X  is y.", "unchanged"),
    ],
)
def test_a_rephrasing_is_the_statement_alone(text: str, reason: str) -> None:
    """No introduction, no fence, and not the same again."""
    with pytest.raises(UnusableReply, match=reason):
        read_rephrasing(Reply(text), "x is y.")
    assert read_rephrasing(Reply("Here is where $f: A \\to B$ vanishes."), "x is y") != ""


def test_negatives_are_three_and_differ() -> None:
    """From each other and from the statement."""
    for found, reason in ((["a", "b"], "not three"), (["a", "b", "B "], "repeats"), (["a", "b", "s"], "repeats")):
        with pytest.raises(UnusableReply, match=reason):
            read_negatives(Reply(json.dumps({"hard_negatives": found})), "S")


# ------------------------------------------------------------------ without a model


def test_most_real_statements_can_be_reworded(shared_file: Callable[[str], Path]) -> None:
    """Of a sample at least half; each new text is another one, and the same when made again."""
    table = pd.read_json(shared_file("data/mathlib-views/views.jsonl.gz"), lines=True, nrows=1500, dtype=False)
    found = pairs.rephrase_by_rules(table, with_negatives=True)
    done = found.rephrasing != ""
    assert done.mean() > 0.5 and (found.negative_1 != "").mean() > 0.6
    assert (found.rephrasing[done] != table.informal[done]).all()
    pd.testing.assert_frame_equal(found, pairs.rephrase_by_rules(table, with_negatives=True))


@pytest.mark.parametrize("ending", ["parquet", "jsonl"])
def test_the_table_comes_back_from_its_file_and_joins_its_views(tmp_path: Path, ending: str) -> None:
    """Lists stay lists; the same table gives the same bytes; rows without new text have ""."""
    views = pd.DataFrame({"id": ["a", "b", "c"], "informal": ["If $x$ then $y$.", "A ring", "$n \\le m$"]})
    found = pairs.rephrase_by_rules(views.head(2), with_negatives=True)
    found.at[0, "hypotheses"] = ["$x$", "∀"]
    path = pairs.save_rephrasings(found, tmp_path / f"new.{ending}")
    again = pairs.read_rephrasings(path)
    assert list(again.hypotheses[0]) == ["$x$", "∀"] and again.columns.tolist() == list(REPHRASING_COLUMNS)
    assert pairs.save_rephrasings(again, tmp_path / f"again.{ending}").read_bytes() == path.read_bytes()
    joined = pairs.join_rephrasings(views.iloc[::-1], again)
    assert joined.id.tolist() == ["c", "b", "a"] and joined.rephrasing.tolist()[:2] == ["", ""]
    assert joined.rephrasing.tolist()[2] == found.rephrasing[0] != ""


def test_wrong_tables_are_named(tmp_path: Path) -> None:
    """Columns, ids, endings, files."""
    with pytest.raises(MirblabError, match="has a column informal; found id"):
        pairs.rephrase_by_rules(pd.DataFrame({"id": ["a"]}))
    with pytest.raises(MirblabError, match="id 'a' occurs twice"):
        pairs.rephrase_by_rules(pd.DataFrame({"id": ["a", "a"], "informal": ["x", "y"]}))
    with pytest.raises(MirblabError, match=r"new\.csv is neither"):
        pairs.save_rephrasings(pd.DataFrame(), tmp_path / "new.csv")
    with pytest.raises(FileNotFoundError, match="run: mirblab rephrase"):
        pairs.read_rephrasings(tmp_path / "no.parquet")
    (tmp_path / "other.jsonl").write_text('{"id": "a"}\n')
    with pytest.raises(MirblabError, match="has no column rephrasing"):
        pairs.read_rephrasings(tmp_path / "other.jsonl")
    with pytest.raises(MirblabError, match="belong to another table"):
        pairs.join_rephrasings(statements(2), pairs.rephrase_by_rules(statements(1).assign(id="z")))
    twice = pd.concat([pairs.rephrase_by_rules(statements(1).assign(id="z"))] * 2)
    for ending in ("parquet", "jsonl"):
        path = pairs.save_rephrasings(twice, tmp_path / f"twice.{ending}")
        with pytest.raises(MirblabError, match=rf"twice\.{ending}: id 'z' occurs twice.*leave all but one row"):
            pairs.read_rephrasings(path)
    with pytest.raises(MirblabError, match="id 'z' occurs twice"):
        pairs.join_rephrasings(statements(1).assign(id="z"), twice)


# ------------------------------------------------------------------ the command


def test_the_command_writes_the_table_and_says_how_it_went(
    server: VendorServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By a model and by rules, for the bundled views and for a file."""
    out = tmp_path / "new.parquet"
    statements(3).assign(module="Mathlib.Order.X", kind="theorem", split="train", signature="s", type="t").to_json(
        tmp_path / "views.jsonl", orient="records", lines=True
    )
    asked = {"model": "small-9b", "url": f"{server.url}/v1", "negatives": True}
    assert run_rephrasing(str(tmp_path / "views.jsonl"), out=out, limit=2, **asked) == 0
    shown = capsys.readouterr().out
    assert "2 statements" in shown and "rephrase: 2 of 2 statements usable, 2 requests now" in shown
    assert "wrong versions: 6, of 2 statements" in shown and str(out) in shown
    assert len(pairs.read_rephrasings(out)) == 2
    assert run_rephrasing("mini-views", rules=True, split="") == 0
    shown = capsys.readouterr().out
    assert "statements reworded" in shown
    assert len(pairs.read_rephrasings(pairs.default_path("mini-views"))) > 100


def test_the_command_names_a_wrong_ending_before_it_works(capsys: pytest.CaptureFixture) -> None:
    """Nothing was asked of a model or reworded by then."""
    with pytest.raises(MirblabError, match=r"new\.csv is neither"):
        run_rephrasing("mini-views", rules=True, out="new.csv")
    assert not capsys.readouterr().out


def test_the_command_names_a_choice_that_is_not_there() -> None:
    """Splits and modules."""
    for choice, problem in (
        ({"split": "tran"}, "no split of the views called 'tran'.*did you mean 'train'"),
        ({"modules": "maths"}, "no choice of modules 'maths'"),
    ):
        with pytest.raises(MirblabError, match=problem):
            run_rephrasing("mini-views", rules=True, **choice)
