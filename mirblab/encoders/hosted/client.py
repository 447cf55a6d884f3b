"""client: requests to a hosted model, with retries and in order."""

from __future__ import annotations

import asyncio
import contextlib
import queue
import random
import threading
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from mirblab.core.errors import MirblabError
from mirblab.core.processes import defer_interrupt
from mirblab.core.terminal import ProgressBar, progress
from mirblab.encoders.entry import replace_surrogates
from mirblab.encoders.hosted.key import Secret, hide_from_logs, read_key
from mirblab.encoders.hosted.limits import (
    Clock,
    Ledger,
    OverBudget,
    Pace,
    RetryLater,
    TooLarge,
    decode_json,
    explain_refusal,
    share_to_keep,
)
from mirblab.encoders.hosted.vendors import Hosted, read_hosted

if TYPE_CHECKING:
    import httpx

ATTEMPTS = 7
FIRST_WAIT, LONGEST_WAIT, PATIENCE = 1.0, 60.0, 900.0  # seconds
GRACE = 2.0  # seconds for pending answers after Ctrl-C

Answer = tuple[list[int], np.ndarray]


@dataclass(frozen=True)
class Batch:
    """The texts of one request with their positions, and their estimated numbers of tokens, which are upper limits."""

    places: list[int]
    texts: list[str]
    tokens: int

    def halves(self) -> tuple[Batch, Batch]:
        """Return the two halves of a batch."""
        middle, tokens = len(self.texts) // 2, -(-self.tokens // 2)
        first = Batch(self.places[:middle], self.texts[:middle], tokens)
        return first, Batch(self.places[middle:], self.texts[middle:], tokens)


class Client:
    """A thread that sends batches until it is stopped, with its own event loop, since Jupyter uses the usual one."""

    def __init__(self, hosted: Hosted, role: str, secret: Secret, ledger: Ledger, clock: Clock) -> None:
        self.failure, self.done = "", 0
        self._hosted, self._role, self._secret = hosted, role, secret
        self._ledger, self._clock, self._pace = ledger, clock, Pace(hosted, clock)
        self._jitter = random.Random()  # no result depends on it, and processes must not all wait equally long
        self._batches: deque[Batch] = deque()
        self._back: queue.SimpleQueue[Answer | None] = queue.SimpleQueue()
        self._room = asyncio.Semaphore(2 * hosted.in_flight)
        self._workers: list[asyncio.Task[None]] = []
        self._on_wire: set[Any] = set()

    def deliver(self, batches: Sequence[Batch], bar: ProgressBar) -> Iterator[Answer]:
        """Yield the positions and vectors of each batch as they arrive; `failure` then states what went wrong.

        After Ctrl-C nothing more is sent, pending answers get two seconds, what arrived is yielded, and then
        KeyboardInterrupt is raised; a second Ctrl-C raises it at once. A slow reader delays sending.
        """
        self._batches.extend(batches)
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._thread, name="mirblab-client", daemon=True).start()
        with defer_interrupt(lambda: self._call(self._wind_up)):
            try:
                while (found := self._next()) is not None:
                    self.done += len(found[0])
                    bar.update(len(found[0]))
                    yield found
                    self._call(self._room.release)
            finally:
                self._call(self._cancel)

    def _next(self) -> Answer | None:
        while True:
            with contextlib.suppress(queue.Empty):
                return self._back.get(timeout=0.5)  # a wait without end cannot be interrupted on Windows

    def _call(self, function: Any, *args: Any) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended, and with it all that could be stopped
            self._loop.call_soon_threadsafe(function, *args)

    def _thread(self) -> None:
        try:
            with hide_from_logs(self._secret), asyncio.Runner(loop_factory=lambda: self._loop) as runner:
                runner.run(self._all())
        except Exception as error:  # noqa: BLE001  a traceback through the network's libraries could show the key
            self._note(f"{type(error).__name__}: {error}")
        finally:
            self._back.put(None)

    async def _all(self) -> None:
        import httpx

        hosted = self._hosted
        async with httpx.AsyncClient(
            headers=self._secret.headers(),
            timeout=httpx.Timeout(hosted.timeout, connect=min(10.0, hosted.timeout)),
            follow_redirects=False,
            verify=not hosted.url.startswith("http:"),  # reading the certificates takes a while, and http has none
            trust_env=not hosted.is_local,  # a proxy must not see what stays on this machine
        ) as client:
            self._workers = [self._loop.create_task(self._work(client)) for _ in range(hosted.in_flight)]
            await asyncio.wait(self._workers)
        self._back.put(None)  # not only in _thread: what a loop does when it is closed can take long

    async def _work(self, client: httpx.AsyncClient) -> None:
        while self._batches and not self.failure:
            await self._room.acquire()
            if self.failure or not self._batches:
                return
            batch = self._batches.popleft()
            try:
                self._back.put((batch.places, await self._vectors(client, batch)))
            except TooLarge as refused:
                self._room.release()
                self._smaller(batch, str(refused))
            except MirblabError as error:
                self._stop(str(error))
            except Exception as error:  # noqa: BLE001  as in _thread
                self._stop(f"{type(error).__name__}: {error}")

    def _note(self, reason: str) -> None:
        """Keep the first reason; every message about a failure passes here, where the key is removed."""
        self.failure = self.failure or self._secret.redact(reason)

    def _stop(self, reason: str) -> None:
        """Send nothing more; keep the first reason. Pending requests are paid for, so their answers are still taken."""
        self._note(reason)
        for worker in self._workers:
            if worker not in self._on_wire and worker is not asyncio.current_task(self._loop):
                worker.cancel()

    def _wind_up(self) -> None:
        self._stop("interrupted")
        self._loop.call_later(GRACE, self._cancel)

    def _cancel(self) -> None:
        self._batches.clear()  # for workers that have not started yet
        for worker in self._workers:
            worker.cancel()

    def _smaller(self, batch: Batch, problem: str) -> None:
        """Put a refused batch back as two, or its only text cut shorter; else stop."""
        if len(batch.texts) > 1:
            self._batches.extendleft(reversed(batch.halves()))
            return
        text = batch.texts[0]
        kept = int(len(text) * share_to_keep(problem))
        if not self._hosted.cuts or kept < 1:
            self._stop(f"text {batch.places[0]} ('{text[:40]}...') is refused for its length; shorten it: {problem}")
            return
        shorter = text[-kept:] if self._hosted.entry.get("truncate") == "START" else text[:kept]
        self._batches.appendleft(replace(batch, texts=[shorter]))

    async def _vectors(self, client: httpx.AsyncClient, batch: Batch) -> np.ndarray:
        problem = ""
        for attempt in range(ATTEMPTS):
            if attempt:
                # full jitter: requests that failed together must not be repeated together
                await self._clock.sleep(self._jitter.uniform(0, min(LONGEST_WAIT, FIRST_WAIT * 2**attempt)))
            await self._pace.wait(batch.tokens)
            await self._ledger.reserve(batch.tokens)
            self._on_wire.add(asyncio.current_task())
            try:
                return await self._attempt(client, batch)
            except RetryLater as again:
                problem, asked = again.args
            finally:
                self._on_wire.discard(asyncio.current_task())
            if asked is not None and asked > PATIENCE:
                raise MirblabError(f"{problem}; the vendor asks to wait {asked:,.0f} s; repeat the command after that")
            self._pace.hold(asked or 0.0)
        raise MirblabError(f"{problem}; tried {ATTEMPTS} times")

    async def _attempt(self, client: httpx.AsyncClient, batch: Batch) -> np.ndarray:
        """Return the vectors of a batch from one request; what it cost, or may have cost, is recorded."""
        import httpx

        hosted, used, problem = self._hosted, batch.tokens, ""
        try:
            async with asyncio.timeout(hosted.timeout):
                body = hosted.vendor.body(hosted.entry, batch.texts, self._role)
                response = await client.post(hosted.url, json=body)
            if response.status_code == 200:
                answer = decode_json(response)
                used = hosted.usage(answer, batch.tokens)
            elif response.status_code != 504:  # behind a gateway that gave up, the vendor may have gone on
                used = 0
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            used, problem = 0, f"{hosted.host} cannot be reached ({_error_text(error)}); is there a network?"
        except (httpx.TimeoutException, TimeoutError):
            problem = f"{hosted.host} did not answer in {hosted.timeout:g} s"
        except httpx.HTTPError as error:
            problem = f"the connection to {hosted.host} broke ({_error_text(error)})"
        await self._ledger.settle(batch.tokens, used)
        self._pace.settle(batch.tokens, used)
        if problem:
            raise RetryLater(problem, None)
        if response.status_code != 200:
            raise explain_refusal(response, hosted)
        return hosted.vectors(answer, len(batch.texts))


def _error_text(error: Exception) -> str:
    return str(error) or type(error).__name__


_LETTERS = bytes(range(65, 91)) + bytes(range(97, 123))
_SPACES = b" \t\n\r"
_WORDS = bytes(byte if byte in _LETTERS else 32 for byte in range(256))


def estimate_tokens(text: str) -> int:
    """Return about how many tokens a text has, rather too many, without the vendor's tokenizer.

    One for each word, one more for every four letters in all, one for each digit, sign or non-ASCII byte, and two. With
    MiniLM's WordPiece less than 1 % of texts have more; whole collections have 12 % (formulas) to 70 % (prose) fewer.

    >>> estimate_tokens("Let x^{2}+1 be prime."), estimate_tokens("")
    (15, 2)
    """
    raw = text.encode("utf-8", "replace")
    words = raw.translate(_WORDS).split()
    return len(words) + sum(map(len, words)) // 4 + len(raw.translate(None, _LETTERS + _SPACES)) + 2


def embed(
    entry: Mapping[str, Any], texts: Sequence[str], role: str, key: str | None = None, *, clock: Clock | None = None
) -> Iterator[tuple[list[int], np.ndarray]]:
    """Return an iterator over answers as they arrive: positions in *texts*, and vectors, float32 (n_positions, d).

    *entry* is a table of encoders.toml; *role* is query or document; *key* is read from the environment when None. The
    vector of a blank text is zero, without a request. Append each batch to the cache before asking for the next, since
    it is the only store of what was paid for; a repeated call with the missing texts resumes. After Ctrl-C nothing more
    is sent, what arrived is still yielded, and KeyboardInterrupt is raised at the end, or by a second Ctrl-C at once.

    MirblabError before anything is sent (entry, key, budget), or from the iterator when the vendor refuses, does not
    answer after several attempts, answers wrongly, or when the next request would exceed the budget.
    """
    secret = Secret(key)
    key = None  # from here on a traceback that shows local variables shows no key
    service = read_hosted(entry)
    secret = checked_key(service, secret)
    service.vendor.body(service.entry, [], role)  # an unknown role is an error now, not in the middle
    texts = [replace_surrogates(text) for text in texts]
    batches = plan_batches(service, texts)
    ledger = open_ledger(service, batches)
    return _answers(service, texts, batches, Client(service, role, secret, ledger, clock or Clock()))


def checked_key(service: Hosted, secret: Secret | None = None) -> Secret:
    """Return *secret*, or the key in the environment; MirblabError where it is missing or cannot be sent."""
    secret = secret or read_key(service.key_variable)
    if not secret and not service.is_local:
        raise MirblabError(f"no key for {service.host}: set the environment variable {service.key_variable}")
    if not secret.is_sendable:
        raise MirblabError(f"the key in {service.key_variable} has spaces or letters beyond ASCII; copy it once more")
    return secret


def open_ledger(service: Hosted, batches: Sequence[Batch]) -> Ledger:
    """Return the ledger of a service; OverBudget if the *batches* would cost more than the budget allows."""
    ledger = Ledger(service)
    try:
        ledger.check(sum(batch.tokens for batch in batches))
    except OverBudget as error:
        raise OverBudget(f"{error}; nothing was sent") from None
    return ledger


def _answers(
    service: Hosted, texts: list[str], batches: list[Batch], client: Client
) -> Iterator[tuple[list[int], np.ndarray]]:
    blank = [place for place, text in enumerate(texts) if not text.strip()]
    if blank:
        yield blank, np.zeros((len(blank), service.dimensions), np.float32)
    if not batches:
        return
    with progress(len(texts), service.model, "texts") as bar:
        bar.update(len(blank))
        yield from client.deliver(batches, bar)
    if client.failure:
        raise MirblabError(
            f"{client.failure}; {client.done + len(blank):,} of {len(texts):,} texts were encoded and are stored; "
            "the same command continues from there"
        )


def plan_batches(service: Hosted, texts: Sequence[str]) -> list[Batch]:
    """Return the texts that are not blank in batches within the limits; a text that is too large goes alone."""
    most = min(service.batch_tokens, service.tokens_per_minute)
    whole = most if service.vendor.truncates else min(most, service.max_length)
    found: list[Batch] = []
    places: list[int] = []
    counts: list[int] = []
    total = 0
    for place, text in enumerate(texts):
        if not text.strip():
            continue
        count = estimate_tokens(text)
        full = len(places) == service.batch_texts or total + count > most
        if places and (full or counts[-1] > whole or count > whole):
            found.append(_batch(service, texts, places, counts))
            places, counts, total = [], [], 0
        places.append(place)
        counts.append(count)
        total += count
    return found + [_batch(service, texts, places, counts)] if places else found


def _batch(service: Hosted, texts: Sequence[str], places: list[int], counts: list[int]) -> Batch:
    """Return a batch with the tokens that are paid for: text beyond the model's length is cut."""
    most = service.max_length if service.cuts else max(counts)
    return Batch(places, [texts[place] for place in places], sum(min(count, most) for count in counts))
