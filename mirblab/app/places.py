"""places: where the tasks of a command run: in this process, in processes of this machine, or on a Dask cluster.

A task is a function of this package with names as arguments; what it makes is in the stores of the home folder, which
every process of a place shares.
"""

from __future__ import annotations

import io
import logging
import os
import re
import socket
import sys
import threading
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, CancelledError, Executor, Future, ThreadPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool, ProcessPoolExecutor
from contextlib import contextmanager, redirect_stdout, suppress
from dataclasses import dataclass, replace
from multiprocessing import current_process, get_context
from typing import Any, TypeVar

from mirblab.app import hand_runs
from mirblab.core import atomic_files, paths, processes
from mirblab.core.errors import MirblabError
from mirblab.core.terminal import PROGRESS, say
from mirblab.encoders.hosted.vendors import BUDGET
from mirblab.sources import catalogue

Result = TypeVar("Result")
LOCAL = "local"
STARTS = 3  # of a task on "pool:N" whose process ends
CONNECT_SECONDS = 10
LOOK_SECONDS = 1.0  # between two looks at which workers a Dask cluster has
EMPTY_LOOKS = 15  # in a row, after which it is said that no worker is left: a killed one may be started again at once
NOTEBOOK = "notebook"  # the resource of a Dask worker that may run notebooks
_ADDRESS = re.compile(r"(tcp|tls)://(\[[0-9a-fA-F:.]+\]|[^:/\[\]]+):\d+")
_START_WORKER = "dask worker {} --host 127.0.0.1 --nthreads 1"
_THIS_MACHINE = ("127.0.0.1", "localhost", "[::1]")
PERMITS = "whoever can reach the scheduler may then run any program as the user of its workers"


@dataclass(frozen=True)
class Conditions:
    """What a task needs of its process: how many *threads* it may use, and, elsewhere, the same home and code.

    *token* is the name of a file in the cache of *home*; "" stands for a process that was started from here. *seen*
    are paths that must be there, too. *budget* is that of the command, "" for none, and holds during the task.
    """

    threads: int
    token: str = ""
    home: str = ""
    code: bytes = b""
    versions: Mapping[str, str] | None = None
    seen: tuple[str, ...] = ()
    budget: str = ""


@dataclass(frozen=True, eq=False)
class Task:
    """What a worker does at a time: it calls *function*, one of a module, with plain *arguments*.

    It does so when the tasks *after* which it comes have ended. *shown* and *seconds* are what is said of it.
    """

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    shown: str = ""
    seconds: float = 0.0
    is_paid: bool = False  # a vendor is paid for it
    after: tuple[Task, ...] = ()


@dataclass
class Place:
    """Where tasks run: *runs* None is this process, in which runs are made one after another.

    *n_workers* processes on *n_machines* take tasks, one at a time each, and *n_for_notebooks* of them notebooks. On a
    Dask cluster both numbers follow what joins and what is lost; without a worker they are 1, since a task waits.
    """

    runs: Executor | None
    notebooks: Executor
    conditions: Conditions
    n_workers: int
    n_for_notebooks: int
    n_machines: int = 1
    has_sent_notebooks: bool = False

    def submit(self, task: Callable[..., Result], /, *arguments: object, is_notebook: bool = False) -> Future[Result]:
        """Return the future result of *task*, a function of a module, with plain *arguments*."""
        self.has_sent_notebooks |= is_notebook
        executor = self.runs if self.runs is not None and not is_notebook else self.notebooks
        return _send(executor, self.conditions, task, *arguments)

    def results(
        self,
        tasks: Iterable[Task],
        read: Callable[[Task, Future[Any]], Result],
        *,
        is_notebook: bool = False,
        watch: Callable[[Task], object] = lambda _: None,
    ) -> Iterator[tuple[Task, Result]]:
        """Yield each task when it has ended, and what *read* makes of its future, which is not kept.

        At most as many are sent as there are workers, so that Dask holds the loss of a worker against the task that it
        had begun, and not against others. *watch* is called about twice a second with each task that is sent and has
        not ended. When *read* raises MirblabError, tasks that are paid for are finished first, if they were begun, and
        the others are cancelled.
        """
        unsent, sent, ended = list(tasks), dict[Future[Any], Task](), set[Task]()
        while unsent or sent:
            n_free = (self.n_for_notebooks if is_notebook else self.n_workers) - len(sent)
            ready = [task for task in unsent if ended.issuperset(task.after)]
            for task in ready[: max(0, n_free)]:
                unsent.remove(task)
                sent[self.submit(task.function, *task.arguments, is_notebook=is_notebook)] = task
            done = wait(sent, timeout=0.5, return_when=FIRST_COMPLETED).done
            while done:
                future = done.pop()
                task = sent.pop(future)
                try:
                    result = read(task, future)
                except MirblabError:
                    for other, its_task in sent.items():
                        if not its_task.is_paid:
                            other.cancel()
                    wait([other for other, its_task in sent.items() if its_task.is_paid])
                    raise
                del future  # kept, it would have Dask do its task again if the worker that has the result is lost
                ended.add(task)
                yield task, result
            for task in sent.values():
                watch(task)

    def run(self, task: Callable[..., Result], /, *arguments: object) -> Result:
        """Return the result of *task*, which this process calls if it makes runs, and else one worker.

        What a worker prints and warns of is printed here when it has finished. Every file and folder of this machine
        among the *arguments*, by its whole path as `whole_path` returns it, must be there, too. MirblabError, and
        OSError for a file, are those of the task; MirblabError for a worker that is lost or lacks such a path.
        """
        if self.runs is None:
            return task(*arguments)
        texts = [part for one in arguments if isinstance(one, str) for part in (one, *one.split(os.pathsep))]
        seen = tuple(dict.fromkeys(text for text in texts if os.path.isabs(text) and paths.path_exists(text)))
        future = _send(self.runs, replace(self.conditions, seen=seen), _run_with_lines, task, *arguments)
        try:
            result, lines, warned = future.result()
        except Exception as error:
            if isinstance(error, OSError) and error.filename:
                raise
            raise MirblabError(explain_failure(error)) from error
        for line in lines:
            say(line)
        for text in warned:
            warnings.warn(text, stacklevel=2)
        return result


def _send(
    executor: Executor, conditions: Conditions, task: Callable[..., Result], *arguments: object
) -> Future[Result]:
    """Return the future result of *task*; that it cannot be sent, as to a scheduler that ended, is its failure."""
    try:
        return executor.submit(run_task, conditions, task, *arguments)
    except Exception as error:  # noqa: BLE001  whatever Dask raises is reported with what was to be made
        failed = Future[Result]()
        failed.set_exception(error)
        return failed


@contextmanager
def open_place(on: str = LOCAL, n_workers: int = 0, *, insecure: bool = False) -> Iterator[Place]:
    """Yield the place *on*: "local", "pool:N", or a Dask scheduler, "tcp://HOST:PORT" or "tls://HOST:PORT".

    "local" makes runs in this process, and runs notebooks in *n_workers* others (0: one per two cores, at least two).
    When the block ends by an exception, as by Ctrl-C, what waits is cancelled and processes of this machine are ended.
    MirblabError for another *on*, for a scheduler that is not there or without workers, for workers with another home
    or other code, and, unless *insecure*, for an address without TLS that other machines can reach.
    """
    size = re.fullmatch(r"pool:([1-9]\d{0,3})", on)
    if on != LOCAL and n_workers:
        raise MirblabError(f"--jobs is for --on local, found --on {on}; write pool:{n_workers} for that many processes")
    if on == LOCAL:
        yield from _pool(on, n_workers if n_workers > 0 else default_workers(), starts=1)
    elif size:
        yield from _pool(on, int(size[1]), starts=STARTS)
    elif _ADDRESS.fullmatch(on):
        yield from _cluster(on, insecure)
    else:
        raise MirblabError(f"no place '{on}'; write local, pool:4 for four processes, or tcp://HOST:PORT or "
                           "tls://HOST:PORT for a Dask scheduler")  # fmt: skip


def default_workers() -> int:
    """Return how many notebooks run at once where nobody says so."""
    return max(2, processes.n_cores() // 2)


def explain_failure(error: Exception) -> str:
    """Return why a task has no result."""
    name = type(error).__name__  # of Dask's classes, which may not be installed
    if isinstance(error, CancelledError) or name == "ClosedClientError":
        return "its scheduler ended, or it was cancelled there"
    if name == "KilledWorker":
        killed: Any = error
        return f"its worker ended {killed.allowed_failures + 1} times, killed or for want of memory, the last one at " \
               f"{killed.last_worker.address}; give workers more memory, or look at what they have printed"  # fmt: skip
    return str(error) if isinstance(error, MirblabError) else f"it failed with {name}: {error}"


def result_of(task: Task, future: Future[Any]) -> Any:
    """Return the result of *task*; MirblabError with the reason where it has none."""
    try:
        return future.result()
    except Exception as error:  # whatever a worker raised
        raise MirblabError(explain_failure(error)) from error


def whole_path(name: str) -> str:
    """Return the whole path of a file or folder here, or of several joined as in `PATH`, for another working folder.

    The name of a collection and what is not here stay as they are.

    >>> whole_path("mini-qa"), whole_path("https://example.org/a.git")
    ('mini-qa', 'https://example.org/a.git')
    """
    parts = [name] if paths.path_exists(name) else name.split(os.pathsep)
    if name in catalogue.known_collections() or not all(map(paths.path_exists, parts)):
        return name
    return os.pathsep.join(map(os.path.abspath, parts))


def _run_with_lines(task: Callable[..., Result], *arguments: object) -> tuple[Result, list[str], list[str]]:
    """Return the result of *task*, the lines that it prints to standard output, and the texts of its warnings."""
    with warnings.catch_warnings(record=True) as warned, redirect_stdout(io.StringIO()) as printed:
        result = task(*arguments)
    return result, printed.getvalue().splitlines(), [str(one.message) for one in warned]


_one_task = threading.Lock()  # of a process: tasks change its environment


def run_task(conditions: Conditions, task: Callable[..., Result], *arguments: object) -> Result:
    """Return the result of *task* in this process, which takes no other one meanwhile, under the *conditions*."""
    from threadpoolctl import threadpool_limits

    threads = str(conditions.threads)
    with _one_task, threadpool_limits(conditions.threads), _budget(conditions.budget):
        # for libraries that are loaded later, for `n_cores`, and for the kernels of notebooks
        os.environ.update({"OMP_NUM_THREADS": threads, processes.THREADS: threads, PROGRESS: "0"})
        if conditions.token:
            if obstacle := find_obstacle(conditions, describe_process(conditions.token)):
                raise MirblabError(f"the worker on {socket.gethostname()} (process {os.getpid()}) {obstacle}")
            if unseen := [path for path in conditions.seen if not paths.path_exists(path)]:
                raise MirblabError(f"the worker on {socket.gethostname()} does not see {unseen[0]}, which is on the "
                                   "machine of this command; move it to a folder that all machines share")  # fmt: skip
            # A nanny makes its worker a daemon, which may not start the processes that build an index or run a kernel.
            current_process()._config["daemon"] = False  # type: ignore[attr-defined]
        try:
            return task(*arguments)
        except MirblabError as error:
            text = str(error)
        raise MirblabError(text)  # alone: Dask cannot send an error with two bases, nor one that has such a cause


@contextmanager
def _budget(dollars: str) -> Iterator[None]:
    """Set the budget of this process to *dollars*, "" for its own one, until the block ends."""
    own = os.environ.get(BUDGET, "")
    os.environ[BUDGET] = dollars or own  # an empty one is none
    try:
        yield
    finally:
        os.environ[BUDGET] = own


def describe_process(token: str, dask_worker: Any = None) -> dict[str, Any]:
    """Return what `find_obstacle` asks of a process, and, of a Dask worker, its machine, cores and resources."""
    found: dict[str, Any] = {
        "home": str(paths.home()),
        "sees_token": (paths.cache() / token).is_file(),
        "code": hand_runs.code_digest(),
        "versions": hand_runs.library_versions(),
    }
    if dask_worker is not None and found["sees_token"]:
        atomic_files.check_writable(paths.cache())
        state = dask_worker.state
        found |= {"n_threads": state.nthreads, "resources": dict(state.total_resources)}
        found |= {"machine": socket.gethostname(), "cores": processes.available_cores()}
        found |= {"listens": dask_worker.listen_address}
    return found


def find_obstacle(conditions: Conditions, found: Mapping[str, Any]) -> str:
    """Return why a process cannot take tasks, beginning with a verb, and what to do; "" if it can."""
    if not found["sees_token"]:
        return f"has the home {found['home']}, which is not {conditions.home} of this command; set MIRBLAB_HOME to a " \
               "folder that all machines share, and start the worker again"  # fmt: skip
    for name, version in (conditions.versions or {}).items():
        if (other := found["versions"].get(name, "none")) != version:
            return f"has {name} {other}, and this command {version}; install the same versions, and start it again"
    if found["code"] != conditions.code:
        return "has another state of mirblab's code, data or libraries; install the same one, and start it again"
    if found.get("n_threads", 1) != 1:
        return f"takes {found['n_threads']} tasks at a time, which would share one environment; start it with " \
               "--nthreads 1, and with --nworkers for several at a time"  # fmt: skip
    return ""


class Pool(Executor):
    """Processes of this machine, each of which runs one task at a time.

    A process that ends (killed, or for want of memory) is replaced, and its task begins again, *starts* times at most.
    Each has an executor of its own, since `ProcessPoolExecutor` ends all its processes when one of them is lost.
    """

    def __init__(self, n: int, starts: int = STARTS) -> None:
        self._starts = starts
        self._threads = ThreadPoolExecutor(n)
        self._own = threading.local()
        self._executors: list[ProcessPoolExecutor] = []
        self._lock = threading.Lock()
        self._is_ending = False

    def submit(self, task: Callable[..., Result], /, *arguments: Any) -> Future[Result]:  # type: ignore[override]
        """Return the future result of the task; MirblabError where its process ended each time."""
        return self._threads.submit(self._run, task, arguments)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the processes after their tasks; without *wait* at once, and nothing is started any more."""
        with self._lock:
            self._is_ending = self._is_ending or not wait
        self._threads.shutdown(wait=wait, cancel_futures=cancel_futures)
        if not wait:
            for executor in self._executors:  # whose process would otherwise finish the task that it has taken
                processes.end_processes(list((executor._processes or {}).values()))
        for executor in self._executors:
            executor.shutdown(wait=wait, cancel_futures=cancel_futures)

    def _run(self, task: Callable[..., Result], arguments: tuple[Any, ...]) -> Result:
        for _ in range(self._starts):
            with suppress(BrokenProcessPool):
                return self._start(task, arguments).result()
            self._own.executor = None
        raise MirblabError(f"its process ended, killed or for want of memory ({self._starts} starts)")

    def _start(self, task: Callable[..., Result], arguments: tuple[Any, ...]) -> Future[Result]:
        with self._lock:
            if self._is_ending:
                raise MirblabError("it was not started any more")
            if getattr(self._own, "executor", None) is None:
                processes.start_resource_tracker()
                self._own.executor = ProcessPoolExecutor(1, get_context("spawn"), processes.end_with_parent)
                self._executors.append(self._own.executor)
            started: Future[Result] = self._own.executor.submit(task, *arguments)
            return started


def _pool(name: str, n: int, starts: int) -> Iterator[Place]:
    pool, threads = Pool(n, starts), max(1, processes.n_cores() // n)
    try:
        yield Place(None if name == LOCAL else pool, pool, Conditions(threads), n, n)
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    pool.shutdown()


def _cluster(address: str, insecure: bool) -> Iterator[Place]:
    if not address.startswith("tls:"):
        _check_exposure([address], insecure)
    client = _connect(address)
    # Under a name that is swept up if this process is killed.
    token = atomic_files.unfinished_name(atomic_files.make_folder(paths.cache()) / "cluster")
    try:
        with atomic_files.open_to_write(token):
            pass
        yield from _use_cluster(client, address, token.name, insecure)
    finally:
        with suppress(OSError):
            token.unlink(missing_ok=True)
        client.close()


def _use_cluster(client: Any, address: str, token: str, insecure: bool) -> Iterator[Place]:
    conditions = Conditions(
        1, token, str(paths.home()), hand_runs.code_digest(), hand_runs.library_versions(),
        budget=os.environ.get(BUDGET, ""),
    )  # fmt: skip
    workers = _examine_workers(client, address, conditions)
    if not address.startswith("tls:"):
        # A server that is reached at 127.0.0.1 may listen at all addresses of its machine.
        listens = client.run_on_scheduler(lambda dask_scheduler: dask_scheduler.listen_address)
        _check_exposure([listens, *(worker["listens"] for worker in workers)], insecure)
    here = Counter(worker["machine"] for worker in workers)
    threads = min(max(1, worker["cores"] // here[worker["machine"]]) for worker in workers)
    n_chosen = sum(NOTEBOOK in worker["resources"] for worker in workers)
    offered = {"resources": {NOTEBOOK: 1}} if n_chosen else {}
    runs, notebooks = client.get_executor(pure=False), client.get_executor(pure=False, **offered)
    n, ended = len(workers), threading.Event()
    place = Place(runs, notebooks, replace(conditions, threads=threads), n, n_chosen or n, len(here))
    threading.Thread(target=_watch_workers, args=(client, address, place, n_chosen > 0, ended), daemon=True).start()
    try:
        yield place
    except BaseException:
        for executor in (runs, notebooks):
            if client.status == "running":  # and not closed, as where the scheduler ended, which has no tasks any more
                executor.shutdown(wait=False)
        raise
    finally:
        ended.set()


def _watch_workers(client: Any, address: str, place: Place, are_chosen: bool, ended: threading.Event) -> None:
    """Keep the numbers of workers of *place*, until *ended*, and print a line whenever none is left that can take the
    tasks, and when there is one again.

    With *are_chosen* only workers that offer the resource take notebooks.
    """
    lacking, n_empty = "", 0
    while not ended.wait(LOOK_SECONDS):
        try:
            resources = [worker["resources"] for worker in client.scheduler_info()["workers"].values()]
        except (OSError, ValueError, RuntimeError):  # a lost scheduler is reported by its tasks
            return
        n, n_chosen = len(resources), sum(NOTEBOOK in offered or not are_chosen for offered in resources)
        place.n_workers, place.n_for_notebooks = max(1, n), max(1, n_chosen)
        before, is_enough = lacking, n_chosen or (n and not place.has_sent_notebooks)
        lacking = "" if is_enough else f"worker with the resource {NOTEBOOK}" if n else "worker"
        if not lacking and n_empty >= EMPTY_LOOKS:
            say(f"{address} has a {before} again", to=sys.stderr)
        n_empty = n_empty + 1 if lacking and lacking == before else int(bool(lacking))
        if n_empty == EMPTY_LOOKS:
            start = _START_WORKER.format(address) + (f' --resources "{NOTEBOOK}=1"' if n else "")
            say(f"no {lacking} is left at {address}; the tasks wait for one: {start}; Ctrl-C stops the command",
                to=sys.stderr)  # fmt: skip


def _check_exposure(addresses: Iterable[str], insecure: bool) -> None:
    """Raise MirblabError, or say so if it is *insecure*, for the first of the *addresses* that others may reach."""
    for address in addresses:
        if address.partition("://")[2].rpartition(":")[0] not in _THIS_MACHINE:
            if insecure:
                say(f"--insecure: {address} is open to other machines; {PERMITS}", to=sys.stderr)
                return
            raise MirblabError(
                f"{address} is open to other machines, and Dask runs whatever it is sent; start scheduler and workers "
                f"with --host 127.0.0.1, take tls:// with certificates, or add --insecure: {PERMITS}"
            )


def _connect(address: str) -> Any:
    """Return a client of Dask's scheduler; MirblabError where Dask is not installed, or nothing answers."""
    try:
        from distributed import Client, Security
    except ModuleNotFoundError as error:
        raise MirblabError(
            f"--on {address} needs Dask, and {error.name} is not installed; in a checkout: "
            "pip install --editable '.[cluster]'"
        ) from error
    logging.getLogger("distributed.client").setLevel(logging.CRITICAL)  # a lost scheduler is reported by its tasks
    security = Security()
    if address.startswith("tls:") and security.get_connection_args("client").get("ssl_context") is None:
        raise MirblabError(
            f"{address} needs certificates in Dask's configuration: distributed.comm.tls.ca-file, and client.cert "
            "and client.key below it"
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of other versions, which are refused below
            return Client(address, timeout=CONNECT_SECONDS, security=security, set_as_default=False, name="mirblab")
    except (OSError, ValueError, TypeError) as error:
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise MirblabError(
            f"no scheduler of Dask answers at {address} within {CONNECT_SECONDS} s ({reason}); start one: "
            "dask scheduler --host 127.0.0.1 --port 8786"
        ) from error


def _examine_workers(client: Any, address: str, conditions: Conditions) -> list[dict[str, Any]]:
    """Return what each worker says of itself; MirblabError when there is none, or for the first that cannot be used."""
    from distributed import TimeoutError

    try:
        client.wait_for_workers(1, timeout=CONNECT_SECONDS)
    except TimeoutError as error:
        raise MirblabError(
            f"the scheduler at {address} has no worker; start one: {_START_WORKER.format(address)}"
        ) from error
    found = client.run(describe_process, conditions.token, on_error="return")
    for worker, answer in found.items():
        if isinstance(answer, MirblabError):  # it has mirblab, and says why and what to do
            raise MirblabError(f"the worker at {worker} cannot be used: {answer}")
        if isinstance(answer, Exception):
            reason = f"{type(answer).__name__}: {answer}"
            raise MirblabError(f"the worker at {worker} cannot run mirblab ({reason}); install it there as it is here")
        if obstacle := find_obstacle(conditions, answer):
            raise MirblabError(f"the worker at {worker} {obstacle}")
    return list(found.values())
