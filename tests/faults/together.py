"""together: one of several processes on one home: python together.py NAME SEED SECONDS; it prints what it did as JSON.

It takes operations at random for so many seconds and compares each value with the one that is right; "remover" deletes
stores meanwhile.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import sys
import time
import traceback
import warnings
from pathlib import Path
from typing import Any

from operations import OPERATIONS, start

NAMES = (
    "vectors", "token vectors", "runs", "structure index", "projections", "replies", "write a run", "write a table",
    "import values",
)  # fmt: skip


def work(seed: int, seconds: float) -> dict[str, Any]:
    """Return how many operations were done, how many were refused, and what was wrong or a crash."""
    from mirblab.core.errors import MirblabError

    chance, end = random.Random(seed), time.monotonic() + seconds
    right: dict[str, Any] = json.loads((Path(os.environ["MIRBLAB_HOME"]) / "given" / "right.json").read_text("utf-8"))
    found: dict[str, Any] = {"operations": 0, "refused": 0, "wrong": 0, "crashes": 0, "problems": []}
    while time.monotonic() < end:
        name = chance.choice(NAMES)
        found["operations"] += 1
        try:
            value = json.loads(json.dumps(OPERATIONS[name].run()))
        except (MirblabError, FileNotFoundError) as error:
            found["refused"] += 1
            found.setdefault("said", str(error)[:300])
        except Exception:
            found["crashes"] += 1
            found["problems"].append(f"{name}: {traceback.format_exc()[-1500:]}")
        else:
            if any(right[name].get(part) != own for part, own in value.items()):  # some may be gone
                found["wrong"] += 1
                found["problems"].append(f"{name}: {value}")
    return found


def remove(seconds: float) -> dict[str, Any]:
    """Delete stores in a loop."""
    end, number = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        for store in ("vectors", "tokens", "runs", "structure", "projections", "replies"):
            shutil.rmtree(Path(os.environ["MIRBLAB_HOME"]) / "cache" / store, ignore_errors=True)
            number += 1
            time.sleep(0.02)
    return {"operations": 0, "faults": number}


def prepare() -> None:
    """Write what the operations need, and what each returns, on a home that nobody shares."""
    OPERATIONS["import values"].prepare()
    right = {name: OPERATIONS[name].run() for name in NAMES}
    path = Path(os.environ["MIRBLAB_HOME"]) / "given" / "right.json"
    path.write_text(json.dumps(right), encoding="utf-8")


def main(what: str, seed: str, seconds: str) -> None:
    """Do one of the three, and print what it came to."""
    warnings.simplefilter("ignore")
    for name in NAMES:
        start(name)
    if what == "prepare":
        prepare()
    else:
        print(json.dumps(remove(float(seconds)) if what == "remover" else work(int(seed), float(seconds))))


if __name__ == "__main__":
    main(*sys.argv[1:])
