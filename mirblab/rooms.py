"""rooms: the version of each kind of run, so that changed code never answers with an old run."""

from __future__ import annotations

# Raised by one whenever the runs of a kind change; tests/test_rooms.py fails when they change without it.
VERSIONS = {
    "bm25": 1,
    "dense": 1,
    "late": 1,
    "structure": 1,
    "approach0": 1,
    "fusion": 1,
    "rerank": 1,
    "imported": 1,
}
