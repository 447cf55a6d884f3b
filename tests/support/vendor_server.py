"""A server on this machine that speaks the wire formats of OpenAI, Cohere and Voyage, and fails when it is told to."""

from __future__ import annotations

import hashlib
import json
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

DIMENSIONS = 4


def vector(text: str, kind: str = "") -> list[float]:
    """Return the numbers that the server gives a text: another text or input_type, other numbers."""
    digest = hashlib.sha256(f"{kind}\0{text}".encode()).digest()
    return [byte / 255 + 0.25 for byte in digest[:DIMENSIONS]]


def n_tokens(text: str) -> int:
    """Return the tokens that the server counts: words."""
    return len(text.split())


class VendorServer(ThreadingHTTPServer):
    """Answers like a vendor; *plan* holds what to do instead for the next requests, one function each."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.plan: list[Callable[[Handler, dict[str, Any]], None]] = []
        self.always: Callable[[Handler, dict[str, Any]], None] | None = None
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.busy = self.busiest = 0
        self.most_tokens = self.most_length = 10**9
        self.lock = threading.Lock()
        self.release = threading.Event()

    @property
    def url(self) -> str:
        """Return the address of the server."""
        return f"http://127.0.0.1:{self.server_address[1]}"

    @property
    def texts(self) -> list[str]:
        """Return every text that was received, in order."""
        return [text for body in self.requests for text in body.get("input", body.get("texts", []))]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: clients go away on purpose here."""


class Handler(BaseHTTPRequestHandler):
    """One request."""

    protocol_version = "HTTP/1.1"
    server: VendorServer

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""

    def do_POST(self) -> None:
        """Answer as the vendor whose path it is, unless the plan says otherwise."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with self.server.lock:
            self.server.requests.append({"path": self.path} | body)
            self.server.headers.append(dict(self.headers))
            self.server.busy += 1
            self.server.busiest = max(self.server.busiest, self.server.busy)
            step = self.server.plan.pop(0) if self.server.plan else self.server.always
        try:
            (step or Handler.embed)(self, body)
        finally:
            with self.server.lock:
                self.server.busy -= 1

    def embed(self, body: dict[str, Any]) -> None:
        """Check the request as the vendor would, then answer it."""
        texts = body.get("input", body.get("texts"))
        problem = self._problem(body, texts)
        if problem:
            self.reply(400, {"error": {"message": problem, "type": "invalid_request_error", "code": None}})
            return
        self.reply(200, self.answer(body, texts))

    def answer(self, body: dict[str, Any], texts: list[str]) -> dict[str, Any]:
        """Return the vendor's answer; OpenAI's and Voyage's rows are shuffled."""
        tokens, kind = sum(map(n_tokens, texts)), body.get("input_type") or ""
        vectors = [vector(text, kind) for text in texts]
        if self.path == "/v2/embed":
            units = {"api_version": {"version": "2"}, "billed_units": {"input_tokens": tokens}}
            return {"id": "x", "embeddings": {"float": vectors}, "texts": texts, "meta": units}
        rows = [{"object": "embedding", "index": i, "embedding": one} for i, one in enumerate(vectors)]
        random.Random(len(texts)).shuffle(rows)
        return {"object": "list", "data": rows, "model": body["model"], "usage": {"total_tokens": tokens}}

    def _problem(self, body: dict[str, Any], texts: Any) -> str:
        if not isinstance(texts, list) or not texts or not all(isinstance(text, str) and text for text in texts):
            return "input cannot be an empty string"
        if self.path == "/v2/embed" and len(texts) > 96:
            return f"invalid request: total number of texts must be at most 96 - received {len(texts)}"
        if self.path == "/v2/embed" and not (body.get("input_type") and body.get("embedding_types") == ["float"]):
            return "input_type is required for this model"
        longest, total = max(map(n_tokens, texts)), sum(map(n_tokens, texts))
        if longest > self.server.most_length:
            return (
                f"This model's maximum context length is {self.server.most_length} tokens, however you requested "
                f"{longest} tokens ({longest} in your prompt; 0 for the completion)."
            )
        if total > self.server.most_tokens:
            return f"Requested {total} tokens, max {self.server.most_tokens} tokens per request"
        return ""

    def reply(self, status: int, body: Any, **headers: str) -> None:
        """Send one answer; *body* is sent as it is when it is bytes."""
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(raw)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(raw)


Step = Callable[[Handler, dict[str, Any]], None]


def status(code: int, body: Any = None, **headers: str) -> Step:
    """Return the step that answers with a status."""
    return lambda handler, _: handler.reply(code, {"error": {"message": "busy"}} if body is None else body, **headers)


def changed(change: Callable[[dict[str, Any]], Any]) -> Step:
    """Return the step that answers as usual, but changed."""

    def step(handler: Handler, body: dict[str, Any]) -> None:
        answer = handler.answer(body, body.get("input", body.get("texts")))
        handler.reply(200, change(answer) or answer)

    return step


def dropped(handler: Handler, body: dict[str, Any]) -> None:
    """Answer half, then close the connection."""
    raw = json.dumps(handler.answer(body, body.get("input", body.get("texts")))).encode()
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(raw)))
    handler.end_headers()
    handler.wfile.write(raw[: len(raw) // 2])
    handler.wfile.flush()
    handler.close_connection = True


def held(handler: Handler, body: dict[str, Any]) -> None:
    """Answer when the test sets `release`, or is over."""
    handler.server.release.wait()
    handler.embed(body)


@contextmanager
def running() -> Iterator[VendorServer]:
    """Yield a server that runs in a thread."""
    server = VendorServer()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.release.set()
        server.shutdown()
        server.server_close()
