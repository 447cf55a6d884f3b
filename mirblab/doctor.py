"""doctor: what an installation needs, what was found, and how to mend what is wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from mirblab import doctor_jupyter, doctor_machine, doctor_models, doctor_software
from mirblab.diagnosis import Finding, pip
from mirblab.errors import MirblabError

CHECKS: tuple[Callable[[], Finding], ...] = (
    doctor_software.python,
    doctor_software.libraries,
    doctor_software.versions,
    doctor_software.torch,
    doctor_machine.gpu,
    doctor_jupyter.kernel,
    doctor_jupyter.widgets,
    doctor_jupyter.fonts,
    doctor_jupyter.chromium,
    doctor_models.registries,
    doctor_models.model,
    doctor_models.keys,
    doctor_machine.folders,
    doctor_machine.disk,
    doctor_machine.cache,
    doctor_machine.cores,
)


def examine() -> Iterator[Finding]:
    """Yield one finding per check, as it is made: libraries, torch, GPU, Jupyter, models, keys, folders, processor.

    Nothing is changed but a probe file in the home folder, written and removed, and one vector in the cache.

    >>> next(examine()).what
    'python'
    """
    for check in CHECKS:
        yield guarded(check)


def guarded(check: Callable[[], Finding]) -> Finding:
    """Return the finding of a check; one that cannot even be made is wrong, too."""
    try:
        return check()
    except MirblabError as error:
        return Finding(check.__name__, "wrong", str(error), "do what the line says, then run mirblab doctor again")
    except (ImportError, OSError, RuntimeError, ValueError, AttributeError) as error:
        found = f"{type(error).__name__}: {error}".splitlines()[0]
        mend = pip("--force-reinstall", "--requirement", "requirements.lock") + " (in the project's folder)"
        return Finding(check.__name__, "wrong", found, mend)
