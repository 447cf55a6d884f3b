"""Python runs this in every process that starts with this folder on its path: the injector, in a batch and its kernels.

MIRBLAB_FAULT is "NUMBER ACTION HOME"; the first process that comes to that number has the fault, and no other one.
Without it, with MIRBLAB_EVENTS, each process writes how many calls it made so far.
"""

import os
from pathlib import Path

if os.environ.get("MIRBLAB_FAULT"):
    from injector import Fault, Injector

    number, action, home = os.environ["MIRBLAB_FAULT"].split(" ", 2)
    counted = Path(f"{home}.events")
    counted.mkdir(exist_ok=True)

    class Once(Injector):
        """An injector whose fault happens in one process only, and which tells how far this one came."""

        def step(self, kind, path, data=None):
            """Count an event; give the fault up where another process was first."""
            mine = counted / str(os.getpid())
            handle = os.open(f"{mine}", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
            os.write(handle, b".")
            os.close(handle)
            if self.fault is not None and len(self.events) + 1 == self.fault.number:
                try:
                    os.close(os.open(counted / "fired", os.O_CREAT | os.O_EXCL | os.O_WRONLY))
                except FileExistsError:
                    self.fault = None
            return super().step(kind, path, data)

    Once(Path(home), Fault(int(number), action)).on()
