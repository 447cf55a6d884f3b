"""keep: the trained model as an ordinary sentence-transformers folder, with its card, whole or not at all."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mirblab import damage, digests, engine, json_text, partials, paths
from mirblab.errors import MirblabError
from mirblab.train import checkpoint
from mirblab.train.settings import differences

RECIPE, _WORKSHOPS = "recipe.json", ".training"


def home_of(name: str) -> Path:
    """Return the folder of the finished model called *name*, whether it is there or not."""
    return paths.models() / paths.clean_name(name)


def workshop(name: str) -> Path:
    """Return the folder of the log and the checkpoints of the model called *name*."""
    return paths.models() / _WORKSHOPS / paths.clean_name(name)


def is_finished(name: str, identity: Mapping[str, Any]) -> bool:
    """Return whether the model is there; MirblabError when one is there that was trained in another way."""
    folder = home_of(name)
    if not folder.exists():
        return False
    path = folder / RECIPE
    if not path.is_file():
        raise MirblabError(f"{folder} was not trained here (it has no {RECIPE}); move it away or give another --out")
    engine.check_trained(folder)
    other = differences(json_text.read(path), json.loads(json.dumps(dict(identity))))
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
    folder = home_of(name)
    partials.sweep(workshop(name))
    beside, old = (partials.beside(workshop(name) / which) for which in ("new", "old"))
    with paths.writing(folder):
        try:
            model.save(str(beside), create_model_card=False)
            paths.write_text(beside / "README.md", card)
            paths.write_text(beside / RECIPE, json.dumps(dict(identity), indent=1, sort_keys=True) + "\n")
            digests.keep(beside)
            paths.flush_tree(beside)
            if folder.exists():
                paths.move(folder, old)
            paths.move(beside, folder)
            paths.flush_folder(folder.parent)
        finally:
            for left in (beside, old):
                shutil.rmtree(left, ignore_errors=True)
    return folder


def verify(folder: Path) -> list[str]:
    """Compare the models in *folder* with their digests, and their checkpoints; return a line for each that is wrong.

    Models stay where they are, since training takes long; damaged checkpoints are set aside with a warning.
    """
    wrong = []
    for path in damage.sound(folder):
        if path.name == _WORKSHOPS:
            wrong += [line for inner in damage.sound(path) for line in checkpoint.verify(inner)]
        elif not (path / RECIPE).is_file():
            wrong.append(damage.stranger(path))
        elif not digests.are_kept(path):
            wrong.append(f"{path} was trained by an older version and has no digests to compare it with")
        else:
            try:
                engine.check_trained(path)
            except MirblabError as error:
                wrong.append(str(error))
    return wrong
