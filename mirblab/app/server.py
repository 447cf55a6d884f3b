"""server: search and similar pairs of one collection for other programs, over HTTP and as tools of MCP."""

from __future__ import annotations

import json
import re
import socket
import threading
from collections.abc import Callable
from functools import partial, wraps
from typing import TYPE_CHECKING, Any

from mirblab.analysis.searching.free_text import DEFAULT_SYSTEM
from mirblab.analysis.searching.free_text import search as search_collection
from mirblab.analysis.searching.similar_statements import can_compare
from mirblab.analysis.searching.similar_statements import similar as find_similar
from mirblab.core.errors import MirblabError, check_known
from mirblab.core.terminal import say
from mirblab.core.wording import cut_long
from mirblab.display.table_formats import Table
from mirblab.retrieval.systems import system
from mirblab.sources import catalogue

if TYPE_CHECKING:
    from mcp.server import MCPServer
    from starlette.datastructures import QueryParams

HOST = "127.0.0.1"  # this machine alone
MOST = 1000  # documents or pairs of one answer
COMPARING = "minilm"  # compares statements where the chosen system cannot
_USAGE = {"search": "/search?text=a+field&depth=10", "similar": "/similar?n=20", "tools of MCP": "/mcp"}


def build_server(collection: str, by: str = DEFAULT_SYSTEM) -> MCPServer:
    """Return a server of one collection, which only reads; the first search makes what the system *by* needs.

    Similar statements are found by the same system where it can compare them, else by `COMPARING`, as the answer says.

    Over HTTP `/search` and `/similar` answer GET with JSON; the tools of MCP are the same. MirblabError for an unknown
    collection or system, and without the package mcp.
    """
    try:
        from mcp.server import MCPServer
    except ImportError as error:
        raise MirblabError("mirblab serve needs the package mcp; run: pip install 'mcp>=2.3'") from error
    loaded, chosen, lock = catalogue.load(collection), system(by), threading.Lock()
    comparing = chosen if can_compare(chosen) else system(COMPARING)
    about = {"collection": loaded.name, "documents": len(loaded.corpus), "system": chosen.name}
    about |= {"system of similar": comparing.name, "paths": _USAGE}
    purpose = loaded.card.title or loaded.name
    instructions = f"Finds statements of the collection {loaded.name}: {purpose}."
    server = MCPServer("mirblab", instructions=instructions, log_level="WARNING")

    def search(text: str, depth: int = 10) -> dict[str, Any]:
        """Return the best documents for a text in words or with formulas between dollars: id, text, score."""
        with lock:  # one search at a time: they share an index
            return _answer(search_collection(text, loaded, chosen, depth=_checked_count("depth", depth)))

    def similar(n: int = 20) -> dict[str, Any]:
        """Return the pairs of the collection's statements that probably say the same, best first, with their texts."""
        with lock:
            answer = _answer(find_similar(loaded, by=comparing, n=_checked_count("n", n)))
        if comparing is not chosen:
            answer["notes"].append(f"{chosen.name} cannot compare statements; {comparing.name} does.")
        return answer

    for tool in (search, similar):
        server.tool()(_with_tool_errors(tool))
        server.custom_route(f"/{tool.__name__}", methods=["GET"])(partial(_respond, tool))
    server.custom_route("/", methods=["GET"])(partial(_respond, lambda: about))
    return server


def _with_tool_errors(function: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    """Return the *function*, each MirblabError of which becomes the error whose message a client of MCP gets."""
    from mcp.server.mcpserver.exceptions import ToolError

    @wraps(function)
    def tool(*given: Any, **named: Any) -> dict[str, Any]:
        try:
            return function(*given, **named)
        except MirblabError as error:
            raise ToolError(str(error)) from error

    return tool


def _answer(table: Table) -> dict[str, Any]:
    rows = json.loads(table.frame.reset_index().to_json(orient="records"))
    return {"caption": table.caption, "notes": table.notes, "rows": rows}


def _checked_count(name: str, count: int) -> int:
    if not 1 <= count <= MOST:
        raise MirblabError(f"{name} is from 1 to {MOST}, found {count}")
    return count


async def _respond(function: Callable[..., dict[str, Any]], request: Any) -> Any:
    """Answer a request with what the *function* returns; status 400 with a message for wrong parameters."""
    from anyio import to_thread
    from starlette.responses import JSONResponse

    try:
        arguments = _read_arguments(function, request.query_params)
        return JSONResponse(await to_thread.run_sync(lambda: function(**arguments)))
    except MirblabError as error:
        return JSONResponse({"error": str(error)}, status_code=400)


def _read_arguments(function: Callable[..., Any], given: QueryParams) -> dict[str, Any]:
    types = {name: wanted for name, wanted in function.__annotations__.items() if name != "return"}
    check_known("parameter", given.keys(), types)
    if "text" in types and not given.get("text", "").strip():
        raise MirblabError(f"there is no text to search for; ask for example {_USAGE['search']}")
    for name, value in given.items():
        if (times := len(given.getlist(name))) > 1:
            raise MirblabError(f"{name} is given {times} times; give it once")
        if types[name] == "int" and not re.fullmatch(r"[+-]?\d{1,18}", value):
            raise MirblabError(f"{name} is a whole number of at most 18 digits, found '{cut_long(value, 20)}'")
    return {name: int(value) if types[name] == "int" else value for name, value in given.items()}


def serve(collection: str, by: str = DEFAULT_SYSTEM, *, port: int = 8765, stdio: bool = False) -> None:
    """Serve a collection on this machine until Ctrl-C: over HTTP on *port*, or with *stdio* to the program that asks.

    Requests for another host are refused, so that no page of the web can ask through a browser. MirblabError when the
    port is taken.
    """
    server = build_server(collection, by)
    if stdio:
        server.run("stdio")
        return
    import uvicorn
    from starlette.middleware.trustedhost import TrustedHostMiddleware

    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except (OSError, OverflowError) as error:
            why = error.strerror if isinstance(error, OSError) else "ports are from 0 to 65535"
            raise MirblabError(f"port {port} cannot be used: {why}; choose another with --port") from error
        port = probe.getsockname()[1]
    app = server.streamable_http_app(host=HOST)
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=[HOST, "localhost"])
    say(f"http://{HOST}:{port} answers; MCP at http://{HOST}:{port}/mcp; Ctrl-C ends it")
    uvicorn.run(app, host=HOST, port=port, log_level="warning")
