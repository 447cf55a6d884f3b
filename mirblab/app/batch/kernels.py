"""kernels: kernels that are forked from one process, so that a batch imports the libraries of notebooks once.

On Linux alone: macOS does not let a process fork that has loaded its frameworks, and Windows has no fork.
"""

from __future__ import annotations

import contextlib
import os
import sys
from multiprocessing import get_context, parent_process
from multiprocessing.process import BaseProcess
from typing import Any, cast

from jupyter_client import AsyncKernelManager
from jupyter_client.connect import KernelConnectionInfo
from jupyter_client.provisioning import LocalProvisioner

from mirblab.core import processes

_LIBRARIES = (
    "ipykernel.kernelapp",
    "ipykernel.debugger",
    "matplotlib_inline.backend_inline",
    "matplotlib.backends.backend_pdf",
    "matplotlib.backends.backend_svg",
    "seaborn",
    "sentence_transformers",
    "mirblab.app.hand_runs",  # with what loads a collection, searches it and measures a run
)
_LAUNCHER = "ipykernel_launcher"


class ForkedKernelManager(AsyncKernelManager):
    """A kernel manager of jupyter_client whose kernels are forked from a process that has imported the libraries."""

    def __init__(self, **traits: Any) -> None:
        super().__init__(**traits)
        self.provisioner = _ForkingProvisioner(kernel_id="", kernel_spec=self.kernel_spec, parent=self)


class _ForkingProvisioner(LocalProvisioner):
    async def launch_kernel(self, cmd: list[str], **kwargs: Any) -> KernelConnectionInfo:
        if cmd[0] != sys.executable or _LAUNCHER not in cmd:  # a kernel of the user's own by this name
            return await super().launch_kernel(cmd, **kwargs)
        context = get_context("forkserver")
        context.set_forkserver_preload(list(_LIBRARIES))
        arguments = cmd[cmd.index(_LAUNCHER) :]
        process = context.Process(target=_run_kernel, args=(arguments, kwargs["env"], kwargs.get("cwd")))
        process.start()
        self.process = cast(Any, _Started(process))
        self.pid = self.pgid = process.pid
        self.cwd = kwargs.get("cwd")
        return self.connection_info


class _Started:
    """A process of multiprocessing with those methods of `subprocess.Popen` that jupyter_client calls."""

    stdin = stdout = stderr = None

    def __init__(self, process: BaseProcess) -> None:
        self._process = process
        self.pid = process.pid
        self.kill, self.terminate = process.kill, process.terminate

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self) -> int | None:
        self._process.join()
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
        if self._process.pid is not None and self._process.exitcode is None:
            os.kill(self._process.pid, number)


def _run_kernel(arguments: list[str], environment: dict[str, str], folder: str | None) -> None:
    """Run an IPython kernel in this process, which was just forked, as `python -m ipykernel_launcher` does.

    Standard error goes where that of the process that asked for the kernel goes, and the kernel ends with it.
    """
    processes.end_with_parent()
    os.setsid()  # so that a signal to the kernel's group reaches what it has started, and nothing else
    with contextlib.suppress(OSError):  # a socket cannot be opened again
        descriptor = os.open(f"/proc/{cast(Any, parent_process()).pid}/fd/2", os.O_WRONLY | os.O_APPEND)
        os.dup2(descriptor, 2)
        os.close(descriptor)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder or os.curdir)
    sys.argv = [*arguments, f"--IPKernelApp.parent_handle={os.getppid()}"]
    from ipykernel import kernelapp

    kernelapp.launch_new_instance()
