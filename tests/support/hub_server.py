"""A server that speaks the part of the Hub's API that is needed, and can misbehave."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from mirblab.sources.shared import release


class Hub:
    """A server of datasets, given their folders and commits by name; it notes what was asked."""

    def __init__(self, folders: dict[str, Path], revisions: dict[str, str], licence: str = "cc-by-sa-4.0") -> None:
        self.folders, self.revisions, self.licence = folders, revisions, licence
        self.asked: list[str] = []
        self.info_commits: dict[str, str] = {}
        self.file_commits: dict[str, str] = {}
        self.damaged: dict[str, str] = {}
        self.status: dict[str, int] = {}
        self.actions: dict[str, list[str]] = {}  # by file, what happens to the next requests: "half" or "refuse"
        hub = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:  # noqa: N802
                hub.answer(self, with_body=True)

            def do_HEAD(self) -> None:  # noqa: N802
                hub.answer(self, with_body=False)

            def log_message(self, *_: object) -> None:
                """Be quiet."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}"

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()

    def answer(self, request: BaseHTTPRequestHandler, *, with_body: bool) -> None:
        path = request.path.partition("?")[0]
        self.asked.append(f"{request.command} {path} {request.headers.get('Range', '')}".strip())
        info = re.fullmatch(r"/api/datasets/([\w-]+/[\w-]+)/revision/([0-9a-f]{40})", path)
        file = re.fullmatch(r"/datasets/([\w-]+/[\w-]+)/resolve/([0-9a-f]{40})/(.+)", path)
        found = info or file
        status = self.status.get(found[1], 0) if found else 404
        if status or found[2] != self.revisions.get(found[1]):
            request.send_response(status or 404)
            request.send_header("X-Error-Code", "" if status else "RevisionNotFound")
            request.send_header("Content-Length", "0")
            request.end_headers()
        elif info:
            body = json.dumps(self.info(info[1])).encode()
            self.send(request, 200, body, with_body, {"Content-Type": "application/json"})
        else:
            self.file(request, file[1], file[3], with_body)

    def info(self, name: str) -> dict[str, Any]:
        """Return names and checksums: a small file has git's, a large one its SHA-256."""
        folder = self.folders[name]
        siblings: list[dict[str, Any]] = [{"rfilename": "README.md", "size": 1, "blobId": "0" * 40}]
        for inner in release.list_files(folder):
            plain, git = release.file_digests(folder / inner)
            size = (folder / inner).stat().st_size
            large = {"lfs": {"sha256": plain, "size": size, "pointerSize": 100}} if "corpus" in inner else {}
            siblings.append({"rfilename": inner, "size": size, "blobId": "f" * 40 if large else git, **large})
        commit = self.info_commits.get(name, self.revisions[name])
        return {"id": name, "sha": commit, "siblings": siblings, "cardData": {"license": self.licence}}

    def file(self, request: BaseHTTPRequestHandler, name: str, inner: str, with_body: bool) -> None:
        path = self.folders[name] / inner
        body, commit = path.read_bytes(), self.file_commits.get(name, self.revisions[name])
        headers = {"ETag": f'"{release.file_digests(path)["corpus" not in inner]}"', "X-Repo-Commit": commit}
        if inner == self.damaged.get(name):
            body = body[:-2] + b"x" + body[-1:]
        start = int(re.fullmatch(r"bytes=(\d+)-", request.headers.get("Range", "bytes=0-"))[1])
        action = self.actions[inner].pop(0) if with_body and self.actions.get(inner) else ""
        if action == "refuse":
            self.send(request, 503, b"", with_body, {})
        elif action == "half":
            self.send(request, 200, body, with_body, headers, sent=len(body) // 2)
            request.close_connection = True
        else:
            headers |= {"Content-Range": f"bytes {start}-{len(body) - 1}/{len(body)}"} if start else {}
            self.send(request, 206 if start else 200, body[start:], with_body, headers)

    def send(
        self,
        request: BaseHTTPRequestHandler,
        status: int,
        body: bytes,
        with_body: bool,
        headers: dict[str, str],
        sent: int | None = None,
    ) -> None:
        request.send_response(status)
        for key, value in (headers | {"Content-Length": str(len(body))}).items():
            request.send_header(key, value)
        request.end_headers()
        if with_body:
            request.wfile.write(body[:sent])


def run_in_process(home: Path, url: str, words: list[str], **environment: str) -> subprocess.CompletedProcess[str]:
    """Run Python with *words* in a process: the Hub's library reads its settings when it is imported."""
    settings = {"MIRBLAB_HOME": str(home), "HF_HOME": str(home.parent / "hf"), "HF_ENDPOINT": url}
    settings |= {"HF_HUB_OFFLINE": "0", "HF_HUB_DISABLE_TELEMETRY": "1"}
    command = [sys.executable, "-W", "ignore", *words]
    return subprocess.run(command, env=os.environ | settings | environment, capture_output=True, text=True, timeout=60)
