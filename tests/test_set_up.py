"""pyproject.toml, requirements.lock and environment.yml say the same."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def pins() -> dict[str, Version]:
    found = {}
    for line in (ROOT / "requirements.lock").read_text("utf-8").splitlines():
        if line and not line.startswith("#"):
            name, sign, version = line.partition("==")
            assert sign, f"not a pin: {line}"
            found[canonicalize_name(name)] = Version(version)
    return found


def test_the_lock_holds_every_dependency_at_a_version_that_fits():
    """The tests' own included."""
    locked = pins()
    for line in [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["test"]]:
        wanted = Requirement(line)
        version = locked[canonicalize_name(wanted.name)]
        assert version in wanted.specifier, f"{line}: locked at {version}"


def test_torch_is_pinned_without_a_local_tag_and_without_cuda():
    """The CPU build is taken from where pip finds it."""
    locked = pins()
    assert locked["torch"] == Version("2.13.0") and locked["torch"].local is None
    assert not [name for name in locked if name.startswith(("nvidia", "triton", "cuda"))]


def test_what_was_asked_for_by_name_is_a_dependency():
    """Among them rank-bm25 and papermill."""
    names = {canonicalize_name(Requirement(line).name) for line in PROJECT["dependencies"]}
    asked = {
        "jupyterlab",
        "pandas",
        "matplotlib",
        "seaborn",
        "umap-learn",
        "scipy",
        "sentence-transformers",
        "rank-bm25",
        "papermill",
    }
    assert asked <= names


def test_conda_users_get_the_locked_versions():
    """environment.yml gives python and pip; the rest is the lock file, and pip comes last."""
    text = (ROOT / "environment.yml").read_text("utf-8")
    python = re.search(r"- python=(\d+\.\d+)", text).group(1)
    assert Version(python) in Requirement(f"python{PROJECT['requires-python']}").specifier
    entries = re.findall(r"^\s+- (.+)$", text, re.MULTILINE)
    assert entries[-3:] == ["pip:", "--requirement requirements.lock", "--editable ."]


def test_the_readme_names_the_commands_that_exist():
    """And CI runs the README's test command."""
    readme, makefile = (ROOT / "README.md").read_text("utf-8"), (ROOT / "Makefile").read_text("utf-8")
    for target in re.findall(r"^make (\w+)", readme, re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
    assert "make test" in (ROOT / ".ci" / "run").read_text("utf-8")
    assert len(readme.splitlines()) < 120


def test_the_first_page_of_the_lab_is_there_and_so_are_the_pages_that_it_links():
    """An address with a "?" of its own would hide the token that Jupyter appends; lessons are written by make lab."""
    pages = re.findall(r"default_url=/lab/tree/([^\s\",]+)", (ROOT / "Makefile").read_text("utf-8"))
    pages += re.findall(r"default_url=/lab/tree/([^\s\",]+)", (ROOT / "Dockerfile").read_text("utf-8"))
    assert len(pages) == 2 and len(set(pages)) == 1 and "?" not in pages[0]
    for link in re.findall(r"\]\(([^)]+)\)", (ROOT / pages[0]).read_text("utf-8")):
        assert (ROOT / link.replace("lessons/", "notebooks/")).is_file(), link
