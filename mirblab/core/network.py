"""Whether a server can be reached, decided in three seconds; the Hub's library tries silently for two minutes."""

from __future__ import annotations

import queue
import socket
import ssl
from threading import Thread
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

TIMEOUT = 3.0


def hub_unreachable_reason(seconds: float = TIMEOUT) -> str:
    """Return why the Hub (`HF_ENDPOINT`) cannot be reached, or "" when it can be, or when `HF_HUB_OFFLINE` is set."""
    from huggingface_hub import constants

    return "" if constants.HF_HUB_OFFLINE else unreachable_reason(constants.ENDPOINT, seconds)


def unreachable_reason(url: str, seconds: float = TIMEOUT) -> str:
    """Return why no server answers at *url* (through the proxy, if one is set) within *seconds*, or "" when one does.

    All addresses of a host are tried at the same time, so that a blocked protocol (IPv6) does not delay the other.
    """
    answers: queue.SimpleQueue[str] = queue.SimpleQueue()
    # In a thread, since looking up a name has no time limit.
    Thread(target=_try_addresses, args=(url, seconds, answers), daemon=True).start()
    try:
        return answers.get(timeout=seconds + 0.5)
    except queue.Empty:
        return f"no answer in {seconds:g} s"


def _try_addresses(url: str, seconds: float, answers: queue.SimpleQueue[str]) -> None:
    parts = urlsplit(url)
    host, is_secure = parts.hostname or "", parts.scheme == "https"
    if getproxies().get(parts.scheme) and not proxy_bypass(host):
        answers.put(_try_proxy(url, seconds))
        return
    try:
        addresses = socket.getaddrinfo(host, parts.port or (443 if is_secure else 80), type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        answers.put(f"{host}: {getattr(error, 'strerror', None) or error}")
        return
    failures: queue.SimpleQueue[str] = queue.SimpleQueue()
    for kind, _, _, _, address in addresses:
        server = host if is_secure else ""
        Thread(target=_try_connection, args=(kind, address, server, seconds, answers, failures), daemon=True).start()
    reasons = [failures.get() for _ in addresses]  # this ends only when no address answers
    answers.put(reasons[0] if reasons else f"{host} has no address")


def _try_connection(
    kind: int, address: tuple, server: str, seconds: float, answers: queue.SimpleQueue, failures: queue.SimpleQueue
) -> None:
    """Open a connection, encrypted if *server* is named; certificates are not checked, since no data are sent."""
    try:
        with socket.socket(kind, socket.SOCK_STREAM) as line:
            line.settimeout(seconds)
            line.connect(address)
            if server:
                context = ssl.create_default_context()
                context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
                context.wrap_socket(line, server_hostname=server).close()
    except OSError as error:
        failures.put(f"{address[0]}: {error.strerror or error}")
    else:
        answers.put("")


def _try_proxy(url: str, seconds: float) -> str:
    import httpx

    try:
        httpx.head(url, timeout=seconds)
    except httpx.ReadTimeout:  # connected, and slow
        return ""
    except (httpx.HTTPError, httpx.InvalidURL, ValueError, ImportError) as error:  # ImportError: a proxy by SOCKS
        return f"by the proxy: {error or type(error).__name__}"
    return ""
