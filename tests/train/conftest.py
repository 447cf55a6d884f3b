"""What the tests of training share: a tiny BERT with random weights."""

from __future__ import annotations

from pathlib import Path

import pytest
from tiny_training import write_bert


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a tiny BERT."""
    return write_bert(tmp_path_factory.mktemp("tiny"))
