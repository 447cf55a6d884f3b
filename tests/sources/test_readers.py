"""Large JSON arrays and JSON lines are read object by object, wherever the chunks end, and errors have a place."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from peak_memory import peak_memory

from mirblab.core.errors import MirblabError
from mirblab.sources.shared import readers

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
OBJECTS = st.lists(st.dictionaries(st.text(max_size=5), VALUES, max_size=4), max_size=6)


@settings(max_examples=150, deadline=None)
@given(OBJECTS, st.integers(1, 40), st.sampled_from([None, 1]), st.booleans())
def test_objects_survive_any_chunk(
    tmp_path_factory: pytest.TempPathFactory, objects: list[object], chunk: int, indent: int | None, as_array: bool
):
    """An oracle: the json module on the whole text."""
    path = tmp_path_factory.mktemp("arrays") / "a.json"
    lines = "".join(json.dumps(one, indent=indent) + "\n" for one in objects)
    path.write_text(json.dumps(objects, indent=indent) if as_array else lines, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(readers, "_CHUNK", chunk)
        assert [found for _, found in readers.read_json_records(path)] == objects


def test_places_are_lines_and_items(tmp_path: Path):
    """Lines from 1, also in a gzipped file with a byte-order mark."""
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress(b"\xef\xbb\xbf" + b'\n{"a": 1}\n\n{"a":\n 2}\n{"a": 3}'))
    assert [(place.removeprefix(f"{path}, "), found["a"]) for place, found in readers.read_json_records(path)] == [
        ("line 2, item 1", 1),
        ("line 4, item 2", 2),
        ("line 6, item 3", 3),
    ]
    path.write_bytes(gzip.compress(b'{"a": 1}\n')[:-12])
    with pytest.raises(MirblabError, match=r"a.jsonl.gz cannot be read: Compressed file ended"):
        list(readers.read_json_records(path))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[{"a": 1},\n{"a": 2}', "line 2: the array does not end; is the file cut short"),
        ('[{"a": 1},\n{"a": "x', "line 2, item 2: broken JSON: Unterminated string"),
        ('[{"a": 1},\n{"a" 2}, {"b": "' + "x" * 200 + '"}]', "line 2, item 2: broken JSON: Expecting ':'"),
        ('{"a": 1}\n[2]', r"line 2, item 2: expected a JSON object, found something that begins with '\['"),
        ("[1]", "line 1, item 1: expected a JSON object"),
        ("nonsense", "line 1, item 1: expected a JSON object"),
        ('{"a": 1}\n]', "line 2: something after the end"),
        ('[{"a": 1}]\n{"a": 2}', "line 2: something after the end"),
        ('{"a": ' * 200_000, "nested too deeply"),
    ],
)
def test_broken_files_have_a_place(tmp_path: Path, text: str, message: str):
    """File, line and item."""
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(MirblabError, match=f"a.json, {message}" if message.startswith("line") else message):
        list(readers.read_json_records(tmp_path / "a.json"))


def test_other_encodings_are_refused(tmp_path: Path):
    """With the file."""
    (tmp_path / "a.json").write_bytes('{"a": "ü"}'.encode("latin-1"))
    with pytest.raises(MirblabError, match="a.json: not UTF-8"):
        list(readers.read_json_records(tmp_path / "a.json"))


def test_an_error_is_seen_at_once_and_memory_stays_bounded(tmp_path: Path):
    """40 MB on one line are read within a few MB, and a broken item near the beginning does not pull in the rest."""
    path = tmp_path / "a.json"
    item = json.dumps({"text": "x" * 10_000})
    path.write_text(f"[{', '.join([item] * 4000)}]")
    with peak_memory() as peak:
        assert sum(1 for _ in readers.read_json_records(path)) == 4000
    assert peak.n_bytes < 12e6
    path.write_text(f'[{item}, {{"text" 1}}, {", ".join([item] * 4000)}]')
    with peak_memory() as peak, pytest.raises(MirblabError, match="item 2: broken JSON"):
        list(readers.read_json_records(path))
    assert peak.n_bytes < 12e6
