"""JSON of others is read within limits, and what cannot be read is said with file and line."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from mirblab.analysis import projection
from mirblab.core import text_files
from mirblab.core.errors import MirblabError
from mirblab.core.text_files import LineProblems
from mirblab.core.text_files import read_records as json_lines
from mirblab.data.beir import write_collection
from mirblab.data.collection import load_folder
from mirblab.encoders import local
from mirblab.evaluation import imported_values
from mirblab.sources import naturalproofs
from mirblab.sources.shared import readers, tables
from mirblab.train import loop, pairs

DEEP, NUMBER = "[" * 3000 + "]" * 3000, "1" * 5000


def collection(path: Path) -> None:
    """Load a collection whose corpus is the file."""
    write_collection(path.parent / "c", [], [{"_id": "q", "text": "x"}], {"test": []}, {})
    (path.parent / "c" / "corpus.jsonl").write_bytes(path.read_bytes())
    load_folder(path.parent / "c")


def noted(path: Path) -> None:
    """Read JSON lines and raise what was noted."""
    problems = LineProblems(path)
    list(json_lines(path, problems))
    problems.raise_if_any()


READERS = {
    "lines": noted,
    "collection": collection,
    "rows": lambda path: list(readers.read_rows(path, ["_id"], json_text_counter())),
    "arrays": lambda path: list(readers.read_json_records(path)),
    "own_table": tables.read_table,
    "rephrasings": pairs.read_rephrasings,
}
WHOLE = {
    "file": text_files.read_json,
    "mteb": lambda path: imported_values.read_mteb_values(path, "m", "mini-qa"),
    "naturalproofs": lambda path: naturalproofs.read_subset(path, masked=False),
    "map": projection._read_record,
    "model": local._read,
}


def json_text_counter():
    """Return a counter for the columns that are not used."""
    from collections import Counter

    return Counter()


@pytest.mark.parametrize(("value", "what"), [(DEEP, "nested too deeply"), (NUMBER, "more than 4,300 digits")])
@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
def test_deep_or_long_json_lines_are_refused_with_file_and_line(tmp_path, reader, value, what):
    path = tmp_path / "a.jsonl"
    path.write_text('{"_id": "a", "id": "a", "text": "x"}\n{"_id": "b", "id": "b", "text": ' + value + "}\n")
    with pytest.raises(MirblabError, match=rf"(a|corpus)\.jsonl, line 2.*{what}"):
        reader(path)


@pytest.mark.parametrize("name", READERS)
def test_half_a_character_is_refused_with_file_and_line(tmp_path, name):
    """JSON can hold a lone surrogate, and no file in UTF-8 can."""
    path = tmp_path / "a.jsonl"
    path.write_text('{"_id": "a", "id": "a", "text": "x"}\n{"_id": "b", "id": "b", "text": "\\ud800"}\n')
    with pytest.raises(MirblabError, match=r"(a|corpus)\.jsonl, line 2[:,].*half a character"):
        READERS[name](path)


@pytest.mark.parametrize(
    ("value", "what"), [(DEEP, "nested too deeply"), (NUMBER, "more than 4,300 digits"), ("[1,\n2,,]", "broken JSON")]
)
@pytest.mark.parametrize("reader", WHOLE.values(), ids=WHOLE)
def test_deep_or_long_json_files_are_refused_with_file_and_line(tmp_path, reader, value, what):
    path = tmp_path / "a.json"
    path.write_text('{"a":\n' + value + "}\n")
    with pytest.raises(MirblabError, match=rf"a\.json, line [23]: (a whole number of )?{what}"):
        reader(path)


def test_the_limit_holds_also_where_python_could_read_more(tmp_path):
    """Then a message that shows the value, or a copy of it, would fail instead."""
    path = tmp_path / "a.json.gz"
    path.write_bytes(gzip.compress(('{"a": ' + "[" * 300 + "]" * 300 + "}").encode()))
    with pytest.raises(MirblabError, match=r"line 1, item 1: nested too deeply, over 200 levels"):
        list(readers.read_json_records(path))
    assert text_files.parse_json("[" * 200 + "]" * 200)
    text = json.dumps({"a": "[{" * 5000, "b": [[]] * 500})
    assert text_files.parse_json(text) == json.loads(text)
    with pytest.raises(text_files.UnreadableJson, match="over 200 levels"):
        text_files.parse_json("[" * 201 + "1" + "]" * 201)


def test_a_damaged_line_of_a_training_log_is_named(tmp_path):
    (tmp_path / "log.jsonl").write_text(f'{{"step": {NUMBER}}}\n{{"step": 2}}\n')
    with pytest.raises(MirblabError, match=r"log\.jsonl, line 1: a whole number of more than 4,300 digits"):
        loop.read_log(tmp_path)
    (tmp_path / "log.jsonl").write_bytes(b'{"step": 1}\n\xff\n{"step": 3}\n{"step": \xff')
    with pytest.raises(MirblabError, match=r"log\.jsonl, line 2: broken JSON"):
        loop.read_log(tmp_path)


@pytest.mark.parametrize(
    ("line", "what"),
    [('{"id": 1e5}', "'id' must be a text or a whole number"), ('{"id": "a", "\\ud800": ""}', "half a character")],
)
def test_a_line_of_new_texts_that_cannot_be_used_is_named(tmp_path, line, what):
    (tmp_path / "a.jsonl").write_text(f'{{"id": "a"}}\n{line}\n')
    with pytest.raises(MirblabError, match=rf"a\.jsonl, line 2: .*{what}"):
        pairs.read_rephrasings(tmp_path / "a.jsonl")
