"""doctor_jupyter: whether notebooks start on this Python, widgets and fonts show, and a browser is there for tests."""

from __future__ import annotations

import os
import shutil
import sys
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

from mirblab.diagnosis import Finding, pip

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
