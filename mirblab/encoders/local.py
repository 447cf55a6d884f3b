"""local: sentence-transformers models found, verified and loaded."""

from __future__ import annotations

import copy
import hashlib
import json
import os
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from mirblab.core import network, paths, text_files
from mirblab.core.errors import MirblabError
from mirblab.data import digests
from mirblab.encoders.entry import entry_file, is_folder

Entry = Mapping[str, Any]
_POOLING = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}


def sparse_vectors(model: Any, strings: list[str], role: str) -> list[np.ndarray]:
    """Return for each string the positions and weights that a SparseEncoder gives, float32 (n_terms, 2)."""
    if not strings:
        return []
    made = model.encode(strings, prompt="", task=role, show_progress_bar=False, save_to_cpu=True).coalesce()
    (rows, terms), weights = made.indices().numpy(), made.values().float().numpy()
    pairs = np.stack([terms.astype(np.float32), weights], axis=1)
    return np.split(pairs, np.searchsorted(rows, np.arange(1, len(strings))))


def _configure_sparse(name: str, entry: Entry, model: Any) -> None:
    """Cut texts where the *entry* says so, and compare it with the model, whose routes may differ by role."""
    model.max_seq_length = int(entry["max_length"])
    modes = {module.pooling_strategy for module in model.modules() if hasattr(module, "pooling_strategy")}
    width = model.encode(["a"], task="document", show_progress_bar=False).shape[1]  # a model may not know it before
    found = {"pooling": "+".join(sorted(modes)) or "none", "normalise": False, "dimensions": width}
    _compare_fields(name, entry, found)


def configure_model(name: str, entry: Entry, model: Any, is_plain: bool) -> None:
    """Change a sentence-transformers *model* in place to what its *entry* states.

    *is_plain*: the folder is a bare transformer without `modules.json`, so that the entry chooses the pooling; else the
    model's pooling must be the entry's. MirblabError names both where they differ.
    """
    if callable(model.tokenizer):
        model.max_seq_length = int(entry["max_length"])
    else:  # a static embedding, whose bare tokenizer cuts
        model.tokenizer.enable_truncation(int(entry["max_length"]))
    _read_plain_text(model)
    if entry.get("padding"):
        model.tokenizer.padding_side = entry["padding"]
    if entry.get("eos"):
        append_end_token(name, model.tokenizer, entry["eos"])
    if entry.get("attention"):
        # transformers asks the configuration for the mask and, where nothing is padded, for the kernel (from 5.2 on)
        model[0].model.config.is_causal = entry["attention"] == "causal"
    _set_pooling(entry, model, is_plain)
    for module in list(model)[1:]:
        module.float()
    _compare_with_entry(name, entry, model)


def append_end_token(name: str, tokenizer: Any, token: str) -> None:
    """Make each input end in *token*, once, also when it is cut; "auto" is the tokenizer's eos token.

    transformers 5 drops the `</s>` that e5-mistral's tokenizer is configured to add, so it must be set here.
    """
    token = tokenizer.eos_token if token == "auto" else token
    known = tokenizer.get_vocab()
    if token not in known:
        raise MirblabError(f"encoder '{name}': the tokenizer has no token {token!r}; correct eos in its entry")
    ids = tokenizer("a", verbose=False)["input_ids"]
    if ids and ids[-1] == known[token]:
        return
    begin = ids[: next((at for at, one in enumerate(ids) if one not in tokenizer.all_special_ids), 0)]
    _set_template(name, tokenizer, [*tokenizer.convert_ids_to_tokens(begin), "$A", token])


def read_pooling(config: Mapping[str, Any]) -> str:
    """Return the pooling in a Pooling module's configuration, in its new form or its old one.

    >>> read_pooling({"pooling_mode_mean_tokens": True}), read_pooling({"pooling_mode": "cls"})
    ('mean', 'cls')
    """
    mode = config.get("pooling_mode") or [name for key, name in _POOLING.items() if config.get(key)]
    return mode if isinstance(mode, str) else "+".join(mode)


def _set_template(name: str, tokenizer: Any, template: list[str]) -> None:
    from tokenizers.processors import TemplateProcessing

    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        raise MirblabError(f"encoder '{name}': {type(tokenizer).__name__} cannot add eos; take a fast tokenizer")
    known = tokenizer.get_vocab()
    special = [(one, known[one]) for one in dict.fromkeys(template) if one != "$A"]
    backend.post_processor = TemplateProcessing(single=template, special_tokens=special)


def _read_plain_text(model: Any) -> None:
    """Make the model take a text as it is, and let its tokenizer pad.

    sentence-transformers 6 applies the tokenizer's chat template in a folder without `modules.json`; the models of the
    registry that have one (GritLM, Qwen) were published without it.
    """
    for module in model:
        config = getattr(module, "modality_config", None)
        if config and "message" in config and "text" in config:
            module.modality_config = {key: value for key, value in config.items() if key != "message"}
    # a static embedding has a bare tokenizer, which pads nothing
    if getattr(model.tokenizer, "pad_token", "") is None:
        model.tokenizer.pad_token = model.tokenizer.eos_token


def _set_pooling(entry: Entry, model: Any, is_plain: bool) -> None:
    from sentence_transformers.base.modules import Normalize
    from sentence_transformers.sentence_transformer.modules import Pooling

    if is_plain:
        del model[1:]
        model.append(Pooling(model[0].get_embedding_dimension(), entry["pooling"]))
    for module in model:
        if isinstance(module, Pooling) and "prompt_pooled" in entry:
            module.include_prompt = entry["prompt_pooled"]
    if entry["normalise"] and not any(isinstance(module, Normalize) for module in model):
        model.append(Normalize())  # as cosine similarity does afterwards, where the model's own folder leaves it out
    model.to(model.device)


def _compare_with_entry(name: str, entry: Entry, model: Any) -> None:
    modes = [read_pooling({"pooling_mode": m.pooling_mode}) for m in model if hasattr(m, "pooling_mode")]
    found = {
        "pooling": modes[0] if modes else "none",
        "normalise": any(type(module).__name__ == "Normalize" for module in model),
        "dimensions": model.get_embedding_dimension(),
    }
    _compare_fields(name, entry, found)


def _compare_fields(name: str, entry: Entry, found: Mapping[str, Any]) -> None:
    wrong = [
        f"{field} = {entry[field]!r} but the model has {it!r}" for field, it in found.items() if entry[field] != it
    ]
    if wrong:
        raise MirblabError(f"encoder '{name}': the registry says {'; '.join(wrong)}; correct the entry")


# The same weights in forms that are not read: pickles run code, and the others are for other programs.
_LEFT_OUT = ["*.bin", "*.pt", "*.pth", "*.ckpt", "*.h5", "*.msgpack", "*.onnx", "*.gguf", "onnx/*", "openvino/*"]


def find_cached(name: str, entry: Mapping[str, Any]) -> Path | None:
    """Return a model's folder in the cache (`HF_HOME`); None: to be fetched; MirblabError if that is impossible."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError

    folder = None
    try:
        folder = Path(snapshot_download(entry["id"], revision=check_revision(name, entry), local_files_only=True))
        if has_all_weights(folder):
            return folder
    except OSError:  # nothing of it is in the cache
        pass
    except HFValidationError as error:
        raise MirblabError(
            f"encoder '{name}' in {entry_file(name)}: its id {entry['id']!r} is neither a model on the Hub, "
            "owner/name, nor a folder, which begins with /, ~ or .; correct the entry"
        ) from error
    if unreachable := network.hub_unreachable_reason():
        raise _absent_model(name, entry, None if folder else OSError(unreachable))
    return None


def fetch_model(name: str, entry: Mapping[str, Any]) -> Path:
    """Return the folder of an encoder's model, fetched from the Hub; MirblabError as for `find_cached`."""
    from huggingface_hub import snapshot_download

    try:
        folder = Path(snapshot_download(entry["id"], revision=check_revision(name, entry), ignore_patterns=_LEFT_OUT))
    except (OSError, ValueError) as error:
        raise _absent_model(name, entry, error) from error
    if not has_all_weights(folder):  # offline, huggingface_hub returns what it has
        raise _absent_model(name, entry, None)
    return folder


def check_revision(name: str, entry: Mapping[str, Any]) -> str:
    """Return the entry's revision; MirblabError, with the way to pin one, unless it is a commit of 40 hex digits."""
    revision = entry["revision"]
    if re.fullmatch(r"[0-9a-f]{40}", revision):
        return str(revision)
    if revision:
        raise MirblabError(f"encoder '{name}': revision {revision!r} is no commit; pin all 40 hex digits")
    raise MirblabError(
        f"encoder '{name}' has no revision, because none was known when it was registered: look up the commit at "
        f"https://huggingface.co/{entry['id']}/commits/main, copy the entry [{name}] of mirblab/registry/encoders.toml "
        f'to {paths.home() / "registry" / "encoders.toml"} and write revision = "<its 40 hex digits>" there'
    )


def has_all_weights(folder: Path) -> bool:
    """Return whether a model *folder* has all its weights (safetensors), unlike after an interrupted download."""
    for index in folder.rglob("model.safetensors.index.json"):
        found = text_files.read_json(index)
        shards = found.get("weight_map") if isinstance(found, dict) else None
        if not isinstance(shards, dict):
            raise MirblabError(f"{index} has no object 'weight_map'; fetch or copy the model again")
        return all((index.parent / str(shard)).is_file() for shard in shards.values())
    return any(True for _ in folder.rglob("model.safetensors"))


def _absent_model(name: str, entry: Mapping[str, Any], error: Exception | None) -> MirblabError:
    package = f"install the package {entry['package']}, or " if entry.get("package") else ""
    size = f" ({entry['size']} parameters)" if entry.get("size") else ""
    status = getattr(getattr(error, "response", None), "status_code", None)
    detail = f" ({str(error).splitlines()[0]})" if error and str(error) else ""
    why = f"the Hub answered {status}" if status else f"the Hub cannot be reached{detail}"
    where = "is not on this machine" if error else "is not whole on this machine (no safetensors, or not all of them)"
    gated = ", log in with `hf auth login` if it is gated" if status in (401, 403) else ""
    return MirblabError(
        f"encoder '{name}': the model {entry['id']}{size} {where}, and {why}; {package}"
        f"run `hf download {entry['id']} --revision {entry['revision']}` where there is a network{gated} "
        f"(HF_HOME says where it lies), or give a local folder as the entry's id"
    )


_WEIGHTS = "model.safetensors"
RECIPE = "recipe.json"  # beside the weights of a model that was trained here: all that determines it
# What of a base's entry makes the inputs of a training, beside its prompts, which the model's own configuration keeps.
INPUTS = ("pretokens", "without_instruction", "lead", "suffix")
# What of an entry makes a loaded model; encoders that differ in prompts only share one.
LOADING = (
    *("id", "revision", "package", "sha256", "size", "max_length", "pooling", "normalise", "dtype", "dimensions"),
    *("eos", "attention", "padding", "prompt_pooled", "trust_remote_code", "code_revision", "sparse"),
)


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file, remembered in this process while size and time stay the same."""
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
    """Raise MirblabError naming both digests unless the weights in *folder* have the *expected* SHA-256."""
    found = sha256(folder / _WEIGHTS)
    if found != expected:
        raise MirblabError(
            f"{folder / _WEIGHTS} has SHA-256 {found}, but the registry expects {expected}; "
            "these are other weights, so nothing is encoded: reinstall the package or correct the entry"
        )


def locate_packaged(name: str, entry: Mapping[str, Any]) -> Path | None:
    """Return the folder in an installed package, digest checked; None: on the Hub. MirblabError for a wrong entry."""
    check_revision(name, entry)
    folder = package_folder(entry["package"]) if entry.get("package") else None
    if folder is None:
        return None
    if not entry.get("sha256"):
        raise MirblabError(f"encoder '{name}' takes weights from a package and must name their sha256")
    check_digest(folder, entry["sha256"])
    return folder


def locate_model(name: str, entry: Mapping[str, Any]) -> tuple[dict[str, Any], Path | None]:
    """Return the entry and, if its id is a folder on this machine, that folder, whose digest is then the revision.

    MirblabError naming the entry when there is no such folder, or when code in it is to be run without a commit.
    """
    if entry.get("trained"):
        return _locate_trained(name, entry)
    given = str(entry.get("id", ""))
    if not is_folder(given):
        return dict(entry), None
    folder = paths.expand_home(given)
    if os.path.isdir(folder):
        if entry.get("trust_remote_code"):
            check_revision(name, entry)  # its code runs only if the entry names the commit that it is a copy of
        found = folder.resolve()
        return dict(entry) | {"id": found.name, "revision": folder_digest(found)}, found
    raise MirblabError(
        f"encoder '{name}' in {entry_file(name)}: its id is the folder {given}, which is not there; correct the entry"
    )


def is_static(folder: Path) -> bool:
    """Return whether the model in *folder* is a static embedding: a vector for each token, without a transformer."""
    return any(str(module["type"]).endswith(".StaticEmbedding") for module in _read(folder / "modules.json"))


def find_trained(name: str | Path) -> Path | None:
    """Return the folder of the model that was trained here under *name*, or None."""
    folder = paths.models() / name
    return folder if paths.path_exists(folder / "modules.json") else None


def _locate_trained(name: str, entry: Mapping[str, Any]) -> tuple[dict[str, Any], Path]:
    folder = find_trained(name)
    if folder is None:
        raise MirblabError(f"encoder '{name}' is not trained yet; run: mirblab train {name}")
    inputs = _trained_inputs(folder)
    pretokens = inputs.get("pretokens", "")
    if pretokens != entry.get("pretokens", ""):
        advice = f'write pretokens = "{pretokens}" into' if pretokens else "take pretokens out of"
        raise MirblabError(
            f"encoder '{name}': its model was trained with pretokens = {pretokens!r}, and its entry has "
            f"{entry.get('pretokens', '')!r}; {advice} its entry in {entry_file(name)}"
        )
    return inputs | dict(entry) | {"id": name, "revision": folder_digest(folder)}, folder


def check_trained(folder: Path) -> None:
    """Raise MirblabError when a file of a trained model, except its README, differs from its digest, if it has one."""
    wrong = [line for line in digests.find_differences(folder) if not line.startswith("README.md ")]
    if wrong:
        raise MirblabError(
            f"{folder} is not as it was trained ({digests.DIGEST_FILE}): {'; '.join(wrong[:3])}; train it anew: "
            f"mirblab train {folder.name} --force (a copy: copy it again)"
        )


def folder_digest(folder: Path) -> str:
    """Return a digest over names and contents of a model *folder*, without READMEs, hidden files and stored digests."""
    state = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        name = path.relative_to(folder).as_posix()
        if path.suffix != ".md" and name != digests.DIGEST_FILE and not re.search(r"(^|/)\.", name):
            state.update(f"{name}\0{sha256(path)}\n".encode())
    return state.hexdigest()[:32]


def describe_folder(folder: Path) -> dict[str, Any]:
    """Return the registry fields of a sentence-transformers *folder*, read from its configuration files.

    A collection's instruction stands before a query only where the folder's own prompt has `{instruction}`, as it has
    for a model that was trained here from a base with such a prompt.
    """
    if not (folder / _WEIGHTS).is_file():
        raise MirblabError(f"{folder} holds no {_WEIGHTS}; a sentence-transformers folder needs it")
    return copy.deepcopy(_describe(folder, folder_digest(folder)))


@lru_cache(maxsize=16)
def _describe(folder: Path, digest: str) -> dict[str, Any]:
    modules = _read(folder / "modules.json")
    kinds = {str(module["type"]).rsplit(".", 1)[-1]: folder / module["path"] for module in modules}
    model = _read(folder / "config.json")
    own = _read(folder / "sentence_bert_config.json")
    wide = _read(folder / "config_sentence_transformers.json")
    if wide.get("model_type") == "CrossEncoder":
        raise MirblabError(f"{folder} is a cross-encoder and makes no vectors; rerank with it: bm25>{folder.name}@50")
    longest = own.get("max_seq_length") or _read(folder / "tokenizer_config.json").get("model_max_length")
    dimensions = model.get("hidden_size")
    dense = _read(kinds["Dense"] / "config.json") if "Dense" in kinds else {}
    if dense.get("module_input_name", "sentence_embedding") == "sentence_embedding":  # else a layer of token vectors
        dimensions = dense.get("out_features", dimensions)
    if "StaticEmbedding" in kinds:
        longest, dimensions = _static(kinds["StaticEmbedding"])
    is_sparse = wide.get("model_type") == "SparseEncoder"
    poolings = {str(_read(path).get("pooling_strategy")) for path in folder.glob("*SpladePooling/config.json")}
    dimensions = model.get("vocab_size") if is_sparse else dimensions
    return (
        {
            "id": folder.name,
            "revision": digest,
            "max_length": int(min(longest or 512, model.get("max_position_embeddings") or 512)),
            "pooling": read_pooling(_read(kinds["Pooling"] / "config.json")) if "Pooling" in kinds else "none",
            "normalise": "Normalize" in kinds,
            "dtype": "float32",
            "dimensions": dimensions,
            "prompts": {"query": "", "document": ""} | dict(wide.get("prompts") or {}),
        }
        | _trained_inputs(folder)
        | ({"sparse": True, "pooling": "+".join(sorted(poolings)) or "none"} if is_sparse else {})
    )


def _trained_inputs(folder: Path) -> dict[str, Any]:
    """Return those of `INPUTS` with which a model was trained here; an empty `without_instruction` is one, too."""
    recipe = _read(folder / RECIPE)
    return {
        field: recipe[field]
        for field in INPUTS
        if recipe.get(field) or (field == "without_instruction" and field in recipe)
    }


def _static(folder: Path) -> tuple[int | None, int]:
    from safetensors import safe_open

    with safe_open(str(folder / _WEIGHTS), framework="np") as weights:
        dimensions = weights.get_slice("embedding.weight").get_shape()[1]
    return (_read(folder / "tokenizer.json").get("truncation") or {}).get("max_length"), int(dimensions)


def _read(path: Path) -> Any:
    return text_files.read_json(path) if path.is_file() else {}


def load_arguments(name: str, entry: Mapping[str, Any], folder: Path | None) -> tuple[str, str, Path | None]:
    """Return what `load_model` is called with for an encoder; MirblabError for one that runs at a vendor."""
    if "vendor" in entry:
        raise MirblabError(
            f"encoder '{name}' runs at {entry['vendor']}, which returns one vector per text: its tokens "
            "can be neither counted nor compared here; take an encoder that runs on this machine"
        )
    wanted = {field: entry[field] for field in LOADING if field in entry}
    # under the registered name, so that both modes share one loaded model where it is the same
    return name.removesuffix("-mirb"), json.dumps(wanted, sort_keys=True), folder


def load_anew(name: str, entry: Mapping[str, Any], folder: Path | None) -> Any:
    """Return a newly loaded model for a caller who changes it (training)."""
    return load_model.__wrapped__(*load_arguments(name, entry, folder))


def use_plain_attention(model: Any) -> None:
    """Compute attention by plain products where *model* is a transformer on a CPU, whose fused attention is slow.

    A training step of MiniLM in bfloat16 took half the time (torch 2.13, AMX), as has scoring (AVX512-BF16).
    """
    if model.device.type == "cpu" and hasattr(model[0], "model"):
        model[0].model.set_attn_implementation("eager")


@lru_cache(maxsize=2)
def load_model(name: str, entry_json: str, folder: Path | None) -> Any:
    """Return the sentence-transformers model of a registry entry (as JSON), on the GPU if there is one.

    The last two models stay in memory, on a GPU only the last. MirblabError when weights, pooling, normalisation or
    dimensions are not the entry's, or when the model cannot be found.
    """
    entry = json.loads(entry_json)
    # before the libraries are imported, which takes seconds, so that a missing model is reported at once
    found = folder or locate_packaged(name, entry) or find_cached(name, entry)
    import torch
    from sentence_transformers import SentenceTransformer, SparseEncoder
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()  # loading from disk is quick, and the library's bar would disturb ours
    device = "cuda" if torch.cuda.is_available() else "cpu"
    _check_device(name, entry, device)
    if folder is not None:
        check_trained(folder)
        if folder_digest(folder) != entry["revision"]:
            raise MirblabError(
                f"the model in {folder} has changed since '{name}' was made; call encoder('{name}') anew"
            )
    found = found or fetch_model(name, entry)
    if folder is None and entry.get("sha256"):
        check_digest(found, entry["sha256"])
    if device == "cuda":
        load_model.cache_clear()  # two models of 7 billion parameters do not fit beside each other on most GPUs
        torch.cuda.empty_cache()
    code = {"code_revision": entry["code_revision"]} if entry.get("code_revision") else {}
    numbers = {"dtype": getattr(torch, entry["dtype"]), "use_safetensors": True} | code
    try:
        engine: Any = (SparseEncoder if entry.get("sparse") else SentenceTransformer)(
            str(found),
            device=device,
            trust_remote_code=entry.get("trust_remote_code") is True,
            model_kwargs=numbers,
            config_kwargs=code,
        )
    except (OSError, ValueError, ImportError) as error:
        raise MirblabError(
            f"encoder '{name}': the model in {found} cannot be loaded: {error}; mirblab doctor checks the libraries"
        ) from error
    if entry.get("sparse"):
        _configure_sparse(name, entry, engine)
    else:
        configure_model(name, entry, engine, is_plain=not (found / "modules.json").is_file())
    return engine.eval()


def _check_device(name: str, entry: Mapping[str, Any], device: str) -> None:
    if device == "cpu" and entry["dtype"] == "float16":
        raise MirblabError(
            f"encoder '{name}' is float16, which needs a GPU; to run it here, copy its entry of encoders.toml to "
            f'{paths.home() / "registry" / "encoders.toml"} with dtype = "bfloat16" or "float32"'
        )


TOKENS = "token_embeddings"


def token_output(model: Any) -> str:
    """Return the name of the model's output with token vectors: last hidden states, or a layer for late interaction."""
    made = [layer.module_output_name for layer in token_layers(model)]
    return made[-1] if made else TOKENS


def token_layers(modules: Iterable[Any]) -> list[Any]:
    """Return those of a model's modules that change each token's vector, and nothing else."""
    return [module for module in modules if getattr(module, "module_input_name", "") == TOKENS]


def is_token(tokenizer: Any, features: Mapping[str, Any]) -> np.ndarray:
    """Return where a batch has tokens of the text, bool (n_texts, n_positions), neither special ones nor padding."""
    is_special = np.isin(features["input_ids"].cpu().numpy(), tokenizer.all_special_ids)
    return features["attention_mask"].cpu().numpy().astype(bool) & ~is_special


def vectors_by_text(tokenizer: Any, features: Mapping[str, Any], vectors: np.ndarray) -> list[np.ndarray]:
    """Return for each text of a batch the unit vectors (n_tokens, d) of its tokens."""
    made = unit_vectors(vectors)
    return [own[kept] for own, kept in zip(made, is_token(tokenizer, features), strict=True)]


def token_strings(tokenizer: Any, features: Mapping[str, Any]) -> list[list[str]]:
    """Return for each text of a batch its tokens as strings, in the order of `vectors_by_text`."""
    ids = features["input_ids"].cpu().numpy()
    kept = is_token(tokenizer, features)
    return [tokenizer.convert_ids_to_tokens(own[here].tolist()) for own, here in zip(ids, kept, strict=True)]


def unit_vectors(vectors: np.ndarray) -> np.ndarray:
    """Return float32 vectors with length 1 along the last axis; zeros stay zero."""
    norms = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return vectors / np.maximum(norms, 1e-12, dtype=np.float32)
