"""What can be checked of the container files without a container: they parse, agree, and name what exists."""

from __future__ import annotations

import ast
import fnmatch
import json
import os
import re
import shlex
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
DOCKERFILE = (ROOT / "Dockerfile").read_text("utf-8")
POST_BUILD = (ROOT / "binder" / "postBuild").read_text("utf-8")
UV_PIN = re.compile(r"^uv==\d+\.\d+\.\d+$", re.MULTILINE)


def instructions() -> list[tuple[str, str]]:
    """Return the Dockerfile's instructions, continued lines joined, comments left out."""
    lines = [line for line in DOCKERFILE.splitlines() if not line.lstrip().startswith("#")]
    joined = "\n".join(lines).replace("\\\n", " ")
    return [tuple(line.split(None, 1)) for line in joined.splitlines() if line.strip()]


def of(kind: str) -> list[str]:
    return [rest for name, rest in instructions() if name == kind]


def ignored(path: str) -> bool:
    """Return whether .dockerignore leaves a path out: the last rule that matches it or a folder above it."""
    result, parts = False, path.split("/")
    above = ["/".join(parts[: n + 1]) for n in range(len(parts))]
    for rule in (ROOT / ".dockerignore").read_text("utf-8").splitlines():
        if rule and not rule.startswith("#"):
            keep, pattern = rule.startswith("!"), rule.removeprefix("!")
            patterns = [pattern, pattern.removeprefix("**/")]
            if any(fnmatch.fnmatch(one, p) and one.count("/") >= p.count("/") for one in above for p in patterns):
                result = not keep
    return result


def test_every_image_has_a_version_and_none_is_the_latest():
    """One base, with a tag; the same Python as for conda's and Binder's users."""
    assert all(":" in base and not base.endswith(":latest") for base in of("FROM"))
    version = re.search(r"python:(\d+\.\d+)", of("FROM")[0]).group(1)
    assert f"python={version}" in (ROOT / "environment.yml").read_text("utf-8")
    assert (ROOT / "binder" / "runtime.txt").read_text("utf-8") == f"python-{version}\n"
    assert ":latest" not in DOCKERFILE + POST_BUILD


def test_what_is_copied_exists_and_is_not_ignored():
    """The lock file, and everything that the notebooks need."""
    for line in of("COPY"):
        *sources, _ = [word for word in line.split() if not word.startswith("--")]
        for source in sources:
            assert (ROOT / source).exists(), source
            assert source == "." or not ignored(source), source
    needed = ["data/mini/cards/bezout.toml", "notebooks/00_start_here.ipynb", "mirblab/app/cli.py", "pyproject.toml"]
    for path in [*needed, "README.md", "binder/warm.py", "data/README.md"]:
        assert (ROOT / path).exists() and not ignored(path), path
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    included = settings["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    assert included and not [path for path in included if ignored(path)]  # else the package cannot be installed
    useless = [".git/config", ".venv/bin/python", "cache/vectors/x", "data/stacks-qa/corpus.jsonl", "figures/a.png"]
    assert all(ignored(path) for path in [*useless, "mirblab/app/__pycache__/cli.pyc", "docs/site/index.html"])


def test_versions_are_those_of_the_lock_file():
    """Both install requirements.lock with the CPU build of torch, by one pinned tool, and pin nothing else."""
    assert len(UV_PIN.findall((ROOT / "binder" / "requirements.txt").read_text("utf-8"))) == 1
    assert "--requirement requirements.txt" in DOCKERFILE
    for text in (DOCKERFILE, POST_BUILD):
        assert re.search(r"uv pip install .*--torch-backend=cpu .*--requirement requirements\.lock", text)
        assert "==" not in text and "--no-deps --no-build-isolation --editable ." in text
    locked = (ROOT / "requirements.lock").read_text("utf-8")
    assert "\nhatchling==" in locked and "\neditables==" in locked  # what --no-build-isolation needs
    assert "\njupyterlab==" in locked


def test_the_container_does_not_run_as_root_and_starts_jupyterlab():
    """On a port that is exposed, with a token, since no option switches it off."""
    kinds = [name for name, _ in instructions()]
    assert of("USER") == ["reader"] and "useradd" in DOCKERFILE
    assert kinds.index("USER") < len(kinds) - 1 - kinds[::-1].index("RUN") < kinds.index("CMD")
    start = json.loads(of("CMD")[0])
    assert start[:2] == ["jupyter", "lab"] and f"--port={of('EXPOSE')[0]}" in start
    assert not re.search(r"token|password|allow.root", " ".join(start))
    root = next(word.split("=")[1] for word in start if "root_dir" in word)
    assert (ROOT / root).is_dir()


def test_what_the_command_of_the_makefile_sets_is_set_in_the_container():
    """The kernels' traffic is encrypted in both."""
    makefile = (ROOT / "Makefile").read_text("utf-8").replace("\\\n", "")
    lab = next(line for line in makefile.splitlines() if "jupyter lab" in line)
    asked = {word for word in shlex.split(lab) if word.startswith("--")}
    assert asked <= set(json.loads(of("CMD")[0]))


def test_the_devcontainer_is_valid_and_fits_the_dockerfile():
    """Same user, same folder, same port; the files that it names exist."""
    found = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text("utf-8"))
    folder = ROOT / ".devcontainer"
    assert (folder / found["build"]["dockerfile"]).resolve() == ROOT / "Dockerfile"
    assert (folder / found["build"]["context"]).resolve() == ROOT
    assert [found["remoteUser"]] == of("USER") and [found["workspaceFolder"]] == of("WORKDIR")
    assert f"target={found['workspaceFolder']}," in found["workspaceMount"]
    assert [str(port) for port in found["forwardPorts"]] == of("EXPOSE")
    assert (ROOT / found["postCreateCommand"].split()[1]).is_file()


def test_binder_finds_its_files_in_one_folder_and_may_run_them():
    """repo2docker reads binder/ alone when it exists, and runs postBuild, which must be executable."""
    assert not (ROOT / ".binder").exists()  # of two such folders one would be passed over
    names = {path.name for path in (ROOT / "binder").iterdir() if path.is_file()}
    assert {"requirements.txt", "runtime.txt", "postBuild"} <= names
    assert not names & {"environment.yml", "Dockerfile"}  # each would replace requirements.txt and runtime.txt
    assert os.access(ROOT / "binder" / "postBuild", os.X_OK) and POST_BUILD.startswith("#!/usr/bin/env bash\n")
    assert subprocess.run(["bash", "-n", str(ROOT / "binder" / "postBuild")]).returncode == 0


def test_the_warm_up_uses_public_names_that_exist():
    """It is run when an image is built, so a stale name would be found late."""
    import mirblab

    tree = ast.parse((ROOT / "binder" / "warm.py").read_text("utf-8"))
    used = {
        node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "lab"
    }
    assert used and used <= set(mirblab.__all__)
    assert all("warm.py" in text for text in (DOCKERFILE, POST_BUILD))


@pytest.mark.parametrize("file", ["Dockerfile", "binder/postBuild", ".devcontainer/devcontainer.json"])
@pytest.mark.attacks
def test_no_key_and_no_host_is_written_into_an_image(file):
    """Addresses of registries belong to whoever builds."""
    text = (ROOT / file).read_text("utf-8")
    assert not re.search(r"https?://|index-url|_KEY|TOKEN=", text)
