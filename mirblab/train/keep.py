"""keep: the trained model as an ordinary sentence-transformers folder, with its card, whole or not at all."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mirblab import paths
from mirblab.errors import MirblabError
from mirblab.train.settings import differences

RECIPE = "recipe.json"


def home_of(name: str) -> Path:
    """Return the folder of the finished model called *name*, whether it is there or not."""
    return paths.models() / paths.clean_name(name)


def workshop(name: str) -> Path:
    """Return the folder of the log and the checkpoints of the model called *name*."""
    return paths.models() / ".training" / paths.clean_name(name)


def is_finished(name: str, identity: Mapping[str, Any]) -> bool:
    """Return whether the model is there; MirblabError when one is there that was trained in another way."""
    folder = home_of(name)
    if not folder.exists():
        return False
    path = folder / RECIPE
    if not path.is_file():
        raise MirblabError(f"{folder} was not trained here (it has no {RECIPE}); move it away or give another --out")
    other = differences(json.loads(path.read_text("utf-8")), json.loads(json.dumps(dict(identity))))
    if other:
        raise MirblabError(
            f"{folder} is there, but of another training: {other}. Train it anew with --force, or give the new model "
            "a name of its own with --out"
        )
    return True


def keep(name: str, model: Any, card: str, identity: Mapping[str, Any]) -> Path:
    """Write *model*, its *card* and what it was made of to its folder, replacing an older one; return the folder.

    Readers see the old folder, none for a moment, or the new one, never a part of it.
    """
    folder, beside, old = home_of(name), workshop(name) / "new.partial", workshop(name) / "old.partial"
    for left in (beside, old):  # by a process that was killed
        shutil.rmtree(left, ignore_errors=True)
    try:
        model.save(str(beside), create_model_card=False)
        (beside / "README.md").write_text(card, encoding="utf-8")
        (beside / RECIPE).write_text(json.dumps(dict(identity), indent=1, sort_keys=True) + "\n", encoding="utf-8")
        _flush(beside)
        if folder.exists():
            os.replace(folder, old)
        os.replace(beside, folder)
        paths.flush_folder(folder.parent)
    finally:
        for left in (beside, old):
            shutil.rmtree(left, ignore_errors=True)
    return folder


def _flush(folder: Path) -> None:
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            with open(path, "rb+") as file:
                os.fsync(file.fileno())
        else:
            paths.flush_folder(path)
    paths.flush_folder(folder)
