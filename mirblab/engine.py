"""engine: find an encoder's model, check that it is the one the registry names, and load it."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import Any

from mirblab import digests, json_text, paths
from mirblab.entries import is_folder, origin
from mirblab.errors import MirblabError
from mirblab.fit import fit, pooling_of
from mirblab.snapshot import cached, fetched, pinned

_WEIGHTS = "model.safetensors"
# What of an entry makes a loaded model; encoders that differ in prompts only share one.
LOADING = (
    *("id", "revision", "package", "sha256", "size", "max_length", "pooling", "normalise", "dtype", "dimensions"),
    *("eos", "attention", "padding", "prompt_pooled", "trust_remote_code", "code_revision"),
)


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file; within this process it is remembered as long as size and time stay the same."""
    facts = path.stat()
    return _sha256(path, facts.st_size, facts.st_mtime_ns)


@lru_cache(maxsize=64)
def _sha256(path: Path, size: int, changed: int) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def package_folder(package: str) -> Path | None:
    """Return the folder inside an installed *package* that holds `modules.json` and weights; None if not installed."""
    try:
        files = metadata.files(package) or []
    except metadata.PackageNotFoundError:
        return None
    for file in files:
        folder = Path(str(file.locate())).parent
        if file.name == "modules.json" and (folder / _WEIGHTS).is_file():
            return folder
    raise MirblabError(f"the installed package {package} holds no model (modules.json beside {_WEIGHTS}); reinstall it")


def check_digest(folder: Path, expected: str) -> None:
    """Raise MirblabError naming both digests unless the weights in *folder* have the SHA-256 that was *expected*."""
    found = sha256(folder / _WEIGHTS)
    if found != expected:
        raise MirblabError(
            f"{folder / _WEIGHTS} has SHA-256 {found}, but the registry expects {expected}; "
            "these are other weights, so nothing is encoded: reinstall the package or correct the entry"
        )


def locate(name: str, entry: Mapping[str, Any]) -> Path | None:
    """Return the model folder of a registry *entry* inside its installed package, digest checked; None: on the Hub.

    Raises MirblabError when the entry pins too little to be trusted, or when the weights are others than it says.
    """
    pinned(name, entry)
    folder = package_folder(entry["package"]) if entry.get("package") else None
    if folder is None:
        return None
    if not entry.get("sha256"):
        raise MirblabError(f"encoder '{name}' takes weights from a package and must name their sha256")
    check_digest(folder, entry["sha256"])
    return folder


def own_folder(name: str, entry: Mapping[str, Any]) -> tuple[dict[str, Any], Path | None]:
    """Return the entry and, if its id is a folder on this machine, that folder, whose digest is then the revision.

    Raises MirblabError naming the entry when the id can only be a folder and there is none, and when code in the
    folder is to be run without a commit that it is a copy of.
    """
    if entry.get("trained"):
        return _trained(name, entry)
    given = str(entry.get("id", ""))
    if not is_folder(given):
        return dict(entry), None
    folder = paths.given(given)
    if os.path.isdir(folder):
        if entry.get("trust_remote_code"):
            pinned(name, entry)  # the code in it runs only for somebody who says which commit it is a copy of
        found = folder.resolve()
        return dict(entry) | {"id": found.name, "revision": folder_digest(found)}, found
    raise MirblabError(
        f"encoder '{name}' in {origin(name)}: its id is the folder {given}, which is not there; correct the entry"
    )


def trained(name: str | Path) -> Path | None:
    """Return the folder of the model that was trained here under *name*, or None.

    >>> trained("never-trained")
    """
    folder = paths.models() / name
    return folder if paths.is_there(folder / "modules.json") else None


def _trained(name: str, entry: Mapping[str, Any]) -> tuple[dict[str, Any], Path]:
    folder = trained(name)
    if folder is None:
        raise MirblabError(f"encoder '{name}' is not trained yet; run: mirblab train {name}")
    return dict(entry) | {"id": name, "revision": folder_digest(folder)}, folder


def check_trained(folder: Path) -> None:
    """Raise MirblabError when a file of a trained model differs from the digests kept at the end of its training.

    Its README may be edited; a folder without digests, of another origin or an older version, cannot be checked.
    """
    wrong = [line for line in digests.differences(folder) if not line.startswith("README.md ")]
    if wrong:
        raise MirblabError(
            f"{folder} is not as it was trained ({digests.FILE}): {'; '.join(wrong[:3])}; train it anew: "
            f"mirblab train {folder.name} --force (a copy: copy it again)"
        )


def folder_digest(folder: Path) -> str:
    """Return a digest over the names and contents of all files of a model *folder*.

    READMEs, hidden files and the digests that are kept of a trained model are left out.
    """
    state = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        name = path.relative_to(folder).as_posix()
        if path.suffix != ".md" and name != digests.FILE and not re.search(r"(^|/)\.", name):
            state.update(f"{name}\0{sha256(path)}\n".encode())
    return state.hexdigest()[:32]


def describe(folder: Path) -> dict[str, Any]:
    """Return the registry fields of a sentence-transformers *folder*, read from its configuration files.

    The result has id, revision (a digest of its files), max_length, pooling, normalise, dtype, dimensions, prompts.
    """
    if not (folder / _WEIGHTS).is_file():
        raise MirblabError(f"{folder} holds no {_WEIGHTS}; a sentence-transformers folder needs it")
    modules = _read(folder / "modules.json")
    kinds = {str(module["type"]).rsplit(".", 1)[-1]: folder / module["path"] for module in modules}
    model = _read(folder / "config.json")
    own = _read(folder / "sentence_bert_config.json")
    wide = _read(folder / "config_sentence_transformers.json")
    longest = own.get("max_seq_length") or _read(folder / "tokenizer_config.json").get("model_max_length")
    dimensions = model.get("hidden_size")
    dense = _read(kinds["Dense"] / "config.json") if "Dense" in kinds else {}
    if dense.get("module_input_name", "sentence_embedding") == "sentence_embedding":  # else a layer of token vectors
        dimensions = dense.get("out_features", dimensions)
    if "StaticEmbedding" in kinds:
        longest, dimensions = _static(kinds["StaticEmbedding"])
    prompts = dict(wide.get("prompts") or {})
    prompts = {"document": ""} | prompts | {"query": prompts.get("query", "") + "{instruction}"}
    return {
        "id": folder.name,
        "revision": folder_digest(folder),
        "max_length": int(min(longest or 512, model.get("max_position_embeddings") or 512)),
        "pooling": pooling_of(_read(kinds["Pooling"] / "config.json")) if "Pooling" in kinds else "none",
        "normalise": "Normalize" in kinds,
        "dtype": "float32",
        "dimensions": dimensions,
        "prompts": prompts,
    }


def _static(folder: Path) -> tuple[int | None, int]:
    """Return the longest text, None for any, and the dimensions of a static embedding."""
    from safetensors import safe_open

    with safe_open(str(folder / _WEIGHTS), framework="np") as weights:
        dimensions = weights.get_slice("embedding.weight").get_shape()[1]
    return (_read(folder / "tokenizer.json").get("truncation") or {}).get("max_length"), int(dimensions)


def _read(path: Path) -> Any:
    return json_text.read(path) if path.is_file() else {}


def loading(name: str, entry: Mapping[str, Any], folder: Path | None) -> tuple[str, str, Path | None]:
    """Return what `load` is called with for an encoder; MirblabError for one that runs at a vendor."""
    if "vendor" in entry:
        raise MirblabError(
            f"encoder '{name}' runs at {entry['vendor']}, which returns one vector per text: its tokens "
            "can be neither counted nor compared here; take an encoder that runs on this machine"
        )
    wanted = {field: entry[field] for field in LOADING if field in entry}
    # under the registered name, so that both modes share one loaded model where it is the same
    return name.removesuffix("-mirb"), json.dumps(wanted, sort_keys=True), folder


def load_anew(name: str, entry: Mapping[str, Any], folder: Path | None) -> Any:
    """Return a newly loaded model that nobody else has, for a caller who changes it (training)."""
    return load.__wrapped__(*loading(name, entry, folder))


@lru_cache(maxsize=2)
def load(name: str, entry_json: str, folder: Path | None) -> Any:
    """Return the sentence-transformers model of a registry entry (as JSON), on the GPU if there is one.

    Loaded once per process; the last two are kept, on a GPU only the last. Raises MirblabError when the weights, the
    pooling, the normalisation or the dimensions are not the entry's, or when the model cannot be found.
    """
    entry = json.loads(entry_json)
    # before the libraries, which take seconds: a machine without a network and the model learns it at once
    found = folder or locate(name, entry) or cached(name, entry)
    import torch
    from sentence_transformers import SentenceTransformer
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()  # weights from disk load in a moment; the bar only disturbs ours
    device = "cuda" if torch.cuda.is_available() else "cpu"
    _check_device(name, entry, device)
    if folder is not None:
        check_trained(folder)
    found = found or fetched(name, entry)
    if folder is None and entry.get("sha256"):
        check_digest(found, entry["sha256"])
    if device == "cuda":
        load.cache_clear()  # two models of 7 billion parameters do not fit beside each other on most GPUs
        torch.cuda.empty_cache()
    trust = {"trust_remote_code": entry.get("trust_remote_code") is True}
    code = {"code_revision": entry["code_revision"]} if entry.get("code_revision") else {}
    numbers = {"dtype": getattr(torch, entry["dtype"]), "use_safetensors": True} | code
    try:
        engine = SentenceTransformer(str(found), device=device, model_kwargs=numbers, config_kwargs=code, **trust)
    except (OSError, ValueError, ImportError) as error:
        raise MirblabError(
            f"encoder '{name}': the model in {found} cannot be loaded: {error}; mirblab doctor checks the libraries"
        ) from error
    fit(name, entry, engine, is_plain=not (found / "modules.json").is_file())
    return engine.eval()


def _check_device(name: str, entry: Mapping[str, Any], device: str) -> None:
    if device == "cpu" and entry["dtype"] == "float16":
        raise MirblabError(
            f"encoder '{name}' is float16, which needs a GPU; to run it here, copy its entry of encoders.toml to "
            f'{paths.home() / "registry" / "encoders.toml"} with dtype = "bfloat16" or "float32"'
        )
