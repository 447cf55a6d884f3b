"""MIRB's fifteen datasets: from a folder laid out like the Hub's, and from a server that speaks the Hub's API."""

from __future__ import annotations

import gzip
import hashlib
import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hub_server import Hub, run_in_process
from tiny_encoder import make_model

from mirblab.core import registry
from mirblab.core.errors import MirblabError
from mirblab.data.collection import load_folder
from mirblab.evaluation import measures
from mirblab.retrieval import systems
from mirblab.sources import catalogue, hub
from mirblab.sources.shared import release

FORMS = ("jsonl", "jsonl.gz", "configs", "data", "converted")
WORDS = "ring field ideal scheme prime flat".split()
TEXTS = [
    " \\frac{a}{b} ünï\u2028code\ttab  ",
    "another text",
    *(f"{word} number {n}" for n in range(2) for word in WORDS),
]
CORPUS = [{"_id": n, "title": "" if n % 2 else f"T{n}", "text": text, "url": "x"} for n, text in enumerate(TEXTS)]
QUERIES = [{"_id": f"q {n}", "text": f"{word} theorem"} for n, word in enumerate(WORDS[:3])]
QRELS = [("q 0", 2, 1.0), ("q 0", 3, 0.0), ("q 1", 3, 1.0)]
EXCLUDED = {"q 0": [8, 4, 5], "q 1": [9], "q 2": []}


def publish(folder: Path, form: str, *, restricted: bool = False, **replaced: list[dict[str, Any]]) -> Path:
    """Write a dataset to *folder* in one of the layouts that the Hub knows; parts can be replaced."""
    import pyarrow as arrow
    from pyarrow import parquet

    parts: dict[str, list[dict[str, Any]]] = {"corpus": CORPUS, "queries": QUERIES}
    parts["qrels"] = [dict(zip(("query-id", "corpus-id", "score"), row, strict=True)) for row in QRELS]
    parts |= (
        {"excluded_ids": [{"query-id": q, "excluded-ids": ids} for q, ids in EXCLUDED.items()]} if restricted else {}
    )
    for part, rows in (parts | replaced).items():
        halves = [rows[: len(rows) // 2], rows[len(rows) // 2 :]] if part == "corpus" else [rows]
        stem = "qrels/test" if part == "qrels" else part
        if form == "jsonl" and part == "qrels":
            cells = [f"{row['query-id']}\t{row['corpus-id']}\t{row['score']}" for row in rows]
            write(folder / "qrels" / "test.tsv", "\n".join(["query-id\tcorpus-id\tscore", *cells, ""]).encode())
        elif form.startswith("jsonl"):
            text = "".join(json.dumps(row) + "\n" for row in rows).encode()
            write(folder / f"{stem}.{form}", gzip.compress(text) if form.endswith("gz") else text)
        for number, half in enumerate(halves if not form.startswith("jsonl") else []):
            shard = f"{number:05}-of-{len(halves):05}"
            config, split = ("default", "test") if part == "qrels" else (part, part)
            name = {
                "configs": f"{config}/{split}-{shard}.parquet",
                "data": f"data/{split}-{shard}.parquet",
                "converted": f"{config}/{split}/{number:04}.parquet",
            }[form]
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            parquet.write_table(arrow.Table.from_pylist(half), folder / name, row_group_size=4)
    return folder


def write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def published() -> dict[str, dict[str, Any]]:
    """Return the registry's entries of the fifteen."""
    return {
        name: entry for name, entry in registry.read_registry("collections").items() if entry.get("builder") == "mirb"
    }


def test_the_registry_holds_the_fifteen_with_exact_instructions_and_revisions() -> None:
    """As in the reference: one instruction per task, seven restricted, four that share a printed column."""
    found = published()
    assert list(found) == hub.dataset_names() and len(found) == 15
    assert all(re.fullmatch("[0-9a-f]{40}", entry["revision"]) for entry in found.values())
    assert len({entry["hub"] for entry in found.values()}) == len({entry["revision"] for entry in found.values()}) == 15
    restricted = {entry["hub"].removeprefix("hcju/") for entry in found.values() if entry.get("restricted")}
    assert restricted == {"msedup", "modup", "mseqa", "realanalysisps", "numbertheoryps", "wikiformula", "mseformula"}
    names = sorted(catalogue.collection_groups())
    assert names == [f"mirb-{part}-premise" for part in ("numbertheory", "proofwiki", "realanalysis",
                                                                         "stacks")]  # fmt: skip
    from mirblab.evaluation.published import paper_cells

    instructions = paper_cells("mirb", 8).set_index("collection").value
    counts = paper_cells("mirb", 1).pivot(index="collection", columns="column", values="value")
    for entry in found.values():
        paper = entry.get("paper") or entry["group"]
        assert entry["instruction"] == instructions[paper]
        assert ("group" in entry) != ("paper" in entry)
        if "paper" in entry:
            assert [str(entry["queries"]), str(entry["documents"])] == counts.loc[paper, ["#query", "#corpus"]].tolist()
    assert {entry.get("paper") or entry["group"] for entry in found.values()} == set(counts.index)


def test_all_fifteen_load_from_a_local_folder_and_honour_their_lists(home: Path, tmp_path: Path) -> None:
    """Whatever the layout; a restricted document is never returned by bm25, and may be by bm25-mirb."""
    for number, (name, entry) in enumerate(published().items()):
        inside = [entry["hub"], entry["hub"].split("/")[1], entry["hub"].replace("/", "__"), name][number % 4]
        publish(tmp_path / "hub" / inside, FORMS[number % 5], restricted=bool(entry.get("restricted")))
    folders = hub.build(str(tmp_path / "hub"), home / "data")
    assert [folder.name for folder in folders] == list(published())
    model = make_model(tmp_path / "model" / "tiny")
    write(home / "registry" / "encoders.toml", tiny_entry(model).encode())
    write(home / "registry" / "systems.toml", b'[tiny]\nkind = "dense"\nencoder = "tiny"\nlabel = "Tiny"\n')
    for name, entry in published().items():
        found = catalogue.load(name)
        assert found.doc_ids.tolist() == sorted(str(n) for n in range(14)) and found.query_ids.tolist() == [
            "q 0",
            "q 1",
        ]
        assert found.corpus.set_index("doc_id").loc["0", "text"] == TEXTS[0]
        assert found.card.instruction == entry["instruction"] and found.card.task == entry["task"]
        assert found.qrels.relevance.tolist() == [1, 0, 1]
        assert found.candidates.names == (["excluded_ids"] if entry.get("restricted") else [])
        for system in ("bm25", "bm25-mirb", "tiny"):
            run = systems.system(system).search(found, 100)
            returned = {query: set(rows.doc_id) for query, rows in run.astype(str).groupby("query_id")}
            hidden = {q: {str(n) for n in ids} & returned[q] for q, ids in EXCLUDED.items() if q in returned}
            allowed = not entry.get("restricted") or system == "bm25-mirb"
            assert bool(any(hidden.values())) == allowed, (name, system)
            values = measures.evaluate(run, found, ["nDCG@10"])
            # By hand: of two that tie the greater id comes first; that one is not relevant, and excluded if any is.
            first = 1 if entry.get("restricted") else 1 / math.log2(3)
            if system == "bm25":
                assert values.value.tolist() == pytest.approx([first, first])


def tiny_entry(model: Path) -> str:
    digest = hashlib.sha256((model / "model.safetensors").read_bytes()).hexdigest()
    return (
        f'[tiny]\nlabel = "Tiny"\nid = {json.dumps(str(model))}\nrevision = ""\nsha256 = "{digest}"\nmax_length = 24\n'
        'pooling = "mean"\nnormalise = true\ndtype = "float32"\ndimensions = 16\n'
        'prompts = { query = "query: {instruction} ", document = "" }\n'
    )


def test_the_card_says_where_everything_came_from(home: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    """Dataset, revision, checksums of what was read, counts, command; never a path of this machine."""
    publish(tmp_path / "copy" / "msedup", "jsonl", restricted=True)
    [folder] = hub.build(tmp_path / "copy", home / "data", names=["mirb-mse-dup"])
    card = load_folder(folder).card
    files = ["corpus.jsonl", "queries.jsonl", "qrels/test.tsv", "excluded_ids.jsonl"]
    sums = {name: hashlib.sha256((tmp_path / "copy" / "msedup" / name).read_bytes()).hexdigest() for name in files}
    assert card.extra["files"] == sums and card.extra["hub"] == "hcju/msedup"
    assert card.extra["hub_revision"] == "fda2c63e29fbd6e09426d8ad87bfe41f9e5dedf3"
    assert card.revision.startswith("sha256:") and card.licence == "unknown"
    assert card.source == "https://huggingface.co/datasets/hcju/msedup"
    assert card.extra["command"] == "mirblab build mirb-mse-dup --from copy"
    assert str(tmp_path) not in (folder / "card.toml").read_text("utf-8")
    left_out = {"queries without a judgement (kept, outside the split)": 1}
    left_out |= {"values of the column url of corpus (not used)": 14}
    counts = {"documents": 14, "queries": 3, "queries_test": 2, "judgements_test": 3, "left_out": left_out}
    assert card.extra["counts"] == counts
    differs = "differs from the paper: queries 2 instead of 25,116, documents 14 instead of 1,350,505"
    assert card.extra["published"] == differs and differs in capsys.readouterr().out
    assert not list(home.joinpath("data").glob(".*"))


def test_the_same_files_give_the_same_bytes_and_layouts_give_the_same_collection(home: Path, tmp_path: Path) -> None:
    """Built twice from one layout, and once from each."""
    seen, fingerprints = [], set()
    for form in FORMS:
        origin = publish(tmp_path / form, form, restricted=True)
        [folder] = hub.build(origin, tmp_path / f"out-{form}", names=["mirb-wfb"])
        before = {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        hub.build(origin, tmp_path / f"out-{form}", names=["mirb-wfb"])
        assert before == {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        seen.append({name: before[name] for name in before if name not in ("card.toml", "digests.txt")})
        fingerprints.add(load_folder(folder).fingerprint)
    assert all(one == seen[0] for one in seen) and len(fingerprints) == 1


def test_as_published_is_said_only_when_it_is(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    """The user's own registry may pin another revision of the same dataset."""
    own = '[mirb-hol]\nbuilder = "mirb"\nhub = "hcju/holps"\nrevision = "%s"\nqueries = 2\ndocuments = 14\n'
    write(home / "registry" / "collections.toml", (own % ("a" * 40)).encode())
    hub.build(publish(tmp_path / "holps", "data"), home / "data", names=["mirb-hol"])
    assert "as published: 2 queries, 14 documents" in capsys.readouterr().out
    assert catalogue.load("mirb-hol").card.extra["hub_revision"] == "a" * 40
    write(home / "registry" / "collections.toml", (own % "main").encode())
    with pytest.raises(MirblabError, match="mirb-hol: a revision is a commit of 40 hexadecimal digits, found 'main'"):
        hub.build(tmp_path / "holps", home / "data", names=["mirb-hol"])


def test_a_changed_file_under_the_same_revision_is_named(home: Path, tmp_path: Path) -> None:
    """The collection that is there stays as it is."""
    origin = publish(tmp_path / "holps", "jsonl")
    [folder] = hub.build(origin, home / "data", names=["mirb-hol"])
    before = load_folder(folder).fingerprint
    publish(origin, "jsonl", queries=[*QUERIES, {"_id": "new", "text": "new"}])
    with pytest.raises(MirblabError, match=r"queries\.jsonl has changed under the same revision a2272075.*SHA-256"):
        hub.build(origin, home / "data", names=["mirb-hol"])
    assert load_folder(folder).fingerprint == before


def test_without_lists_the_rule_of_tags_stands_in_and_with_lists_they_win(home: Path, tmp_path: Path) -> None:
    """For the two collections of duplicates; a row without tags is named."""
    tagged = {
        "corpus": [row | {"tags": ["t0" if row["_id"] % 2 else "t1"]} for row in CORPUS],
        "queries": [row | {"tags": ["t1", "t2", "t3"]} for row in QUERIES],
    }
    plain = publish(tmp_path / "plain", "configs", **tagged)
    [folder] = hub.build(plain, home / "data", names=["mirb-mo-dup"])
    assert load_folder(folder).candidates.names == ["tags"] and not (folder / "excluded_ids.jsonl").exists()
    listed = publish(tmp_path / "listed", "configs", restricted=True, **tagged)
    [folder] = hub.build(listed, tmp_path / "other", names=["mirb-mo-dup"])
    assert load_folder(folder).candidates.names == ["excluded_ids"]
    publish(tmp_path / "bare", "jsonl")
    with pytest.raises(MirblabError, match=r"corpus\.jsonl, line 1: no list of tags; without excluded_ids"):
        hub.build(tmp_path / "bare", tmp_path / "bare-out", names=["mirb-mo-dup"])
    with pytest.raises(MirblabError, match="bare has no excluded_ids: looked for excluded_ids.jsonl"):
        hub.build(tmp_path / "bare", tmp_path / "bare-out", names=["mirb-wfb"])


def row(part: str, **values: Any) -> dict[str, Any]:
    """Return a good row of a part with some values replaced."""
    good = {
        "corpus": {"_id": "x", "text": "t"},
        "queries": {"_id": "x", "text": "t"},
        "qrels": {"query-id": "q 0", "corpus-id": "2", "score": 1},
        "excluded_ids": {"query-id": "q 2", "excluded-ids": ["1"]},
    }
    return good[part] | values


@pytest.mark.parametrize(
    ("part", "bad", "message"),
    [
        ("corpus", {"_id": "3"}, "'3' is the _id of an earlier row, too"),
        ("corpus", {"_id": ""}, "no '_id'; found \"\""),
        ("corpus", {"_id": "a\tb"}, "'_id' has a tab or a line break: 'a\\\\tb'"),
        ("corpus", {"text": None}, "'text' must be a text, found null"),
        ("queries", {"_id": None}, "no '_id'; found null"),
        ("qrels", {"query-id": "q 9"}, "judges the query 'q 9', which is not in queries"),
        ("qrels", {"corpus-id": "99"}, "judges the document '99', which is not in corpus"),
        ("qrels", {"score": float("nan")}, "the score must be a number, found NaN"),
        ("excluded_ids", {"excluded-ids": ["2", "99"]}, "excludes the document '99', which is not in corpus"),
        ("excluded_ids", {"query-id": "q 0"}, "lists the query 'q 0' a second time"),
        ("excluded_ids", {"excluded-ids": None}, "'excluded-ids' must be a list, found null"),
    ],
)
@pytest.mark.parametrize("form", ["jsonl.gz", "converted"])
def test_a_bad_row_is_named_with_file_and_row_and_nothing_is_left(
    home: Path, tmp_path: Path, part: str, bad: dict[str, Any], message: str, form: str
) -> None:
    """In text files by line, in parquet by row of the shard."""
    good: dict[str, list[dict[str, Any]]] = {
        "corpus": [{"_id": str(item["_id"]), "text": item["text"]} for item in CORPUS],
        "queries": QUERIES,
        "qrels": [dict(zip(("query-id", "corpus-id", "score"), (q, str(d), s), strict=True)) for q, d, s in QRELS],
        "excluded_ids": [{"query-id": q, "excluded-ids": [str(n) for n in EXCLUDED[q]]} for q in ("q 0", "q 1")],
    }
    rows = [*good[part], row(part, **bad)]
    origin = publish(tmp_path / "wikiformula", form, restricted=True, **(good | {part: rows}))
    number = len(rows) - len(rows) // 2 if part == "corpus" and form == "converted" else len(rows)
    stem = {"jsonl.gz": {"qrels": "qrels/test"}.get(part, part), "converted": ""}[form]
    where = rf"{stem}\.jsonl\.gz, line {number}" if stem else rf"000[01]\.parquet, row {number}"
    with pytest.raises(MirblabError, match=f"{where}: {message}"):
        hub.build(origin, home / "data", names=["mirb-wfb"])
    assert not list((home / "data").iterdir())


def test_odd_rows_are_counted_and_treated_as_the_published_code_does(home: Path, tmp_path: Path) -> None:
    """Scores are cut, the last judgement of a pair counts, lists of unknown queries do nothing."""
    judged = [(*QRELS[0][:2], 1.0), (*QRELS[1][:2], 0), (*QRELS[2][:2], 1.0), (*QRELS[0][:2], 2.9)]
    rows = [dict(zip(("query-id", "corpus-id", "score"), row, strict=True)) for row in judged]
    lists = [{"query-id": q, "excluded-ids": ids} for q, ids in [("q 0", [2, 4]), ("q 1", [9]), ("nobody", [1])]]
    origin = publish(tmp_path / "d", "jsonl.gz", restricted=True, qrels=rows, excluded_ids=lists)
    [folder] = hub.build(origin, home / "data", names=["mirb-wfb"])
    found = load_folder(folder)
    assert found.qrels.relevance.tolist() == [2, 0, 1]
    assert found.card.extra["counts"]["left_out"] == {
        "excluded lists of queries that are not in queries": 1,
        "judgements of a pair that is judged again (the last counts)": 1,
        "queries without a judgement (kept, outside the split)": 1,
        "relevant documents that are excluded for their query": 1,
        "scores with a fraction (cut to whole numbers)": 1,
        "values of the column url of corpus (not used)": 14,
    }


def test_a_query_of_the_split_without_a_list_is_an_error(home: Path, tmp_path: Path) -> None:
    """The published code stops there, too; a query outside the split needs none."""
    lists = [{"query-id": "q 1", "excluded-ids": []}]
    origin = publish(tmp_path / "d", "configs", restricted=True, excluded_ids=lists)
    with pytest.raises(MirblabError, match=r"excluded_ids-00000-of-00001\.parquet: no row for 1 queries.*first 'q 0'"):
        hub.build(origin, home / "data", names=["mirb-arqmath1"])


def test_damaged_files_missing_parts_and_missing_shards_are_named(home: Path, tmp_path: Path) -> None:
    """Each with the file and what to do."""
    origin = publish(tmp_path / "holps", "configs")
    shard = origin / "corpus" / "corpus-00001-of-00002.parquet"
    whole = shard.read_bytes()
    shard.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(MirblabError, match=r"corpus-00001-of-00002\.parquet is no sound parquet file: .*again"):
        hub.build(origin, home / "data", names=["mirb-hol"])
    shard.unlink()
    with pytest.raises(MirblabError, match=r"holps lacks shard 1 \(from 0\) of the 2 of corpus; complete the copy"):
        hub.build(origin, home / "data", names=["mirb-hol"])
    shard.write_bytes(whole)
    (origin / "default" / "test-00000-of-00001.parquet").unlink()
    with pytest.raises(MirblabError, match=r"has no qrels: looked for qrels/test\.tsv.*found corpus/corpus-00000-of"):
        hub.build(origin, home / "data", names=["mirb-hol"])
    broken = publish(tmp_path / "broken", "jsonl")
    with open(broken / "queries.jsonl", "ab") as file:
        file.write(b'{"_id": "q 8", \n')
    with pytest.raises(MirblabError, match=r"queries\.jsonl, line 4: broken JSON"):
        hub.build(broken, home / "data", names=["mirb-hol"])
    assert not list((home / "data").iterdir())


def test_splits_and_forms_are_told_apart() -> None:
    """Several splits of a part are refused; JSON lines go before parquet; other splits of the judgements are left."""
    names = ["corpus.jsonl", "corpus/corpus-00000-of-00001.parquet", "queries/a-00000-of-00001.parquet"]
    names += ["default/train-00000-of-00001.parquet", "qrels/dev.tsv", "qrels/test.tsv", "corpus-old.jsonl"]
    found = release.find_parts(names, "x")
    assert found["corpus"] == ["corpus.jsonl"] and found["qrels"] == ["qrels/test.tsv"] and not found["excluded_ids"]
    with pytest.raises(MirblabError, match="x has several splits of queries: queries/a, queries/b; keep one"):
        release.find_parts([*names, "queries/b-00000-of-00001.parquet"], "x")
    many = [f"data/corpus-{n:05}-of-00012.parquet" for n in range(12)]
    assert release.find_parts(reversed(many), "x")["corpus"] == many


def test_one_that_fails_does_not_lose_the_others(home: Path, tmp_path: Path) -> None:
    """The error at the end says which failed and why; unknown names and folders get a suggestion."""
    publish(tmp_path / "hub" / "holps", "jsonl")
    publish(tmp_path / "hub" / "leanps", "data", queries=[])
    with pytest.raises(MirblabError) as failed:
        hub.build(tmp_path / "hub", home / "data", names=["mirb-lean", "mirb-hol", "mirb-isabelle"])
    text = str(failed.value)
    assert text.startswith("2 of 3 datasets failed, the other 1 are in ")
    assert "mirb-lean: " in text and "mirb-isabelle: " in text and "has no folder isabelleps" in text
    assert [path.name for path in (home / "data").iterdir()] == ["mirb-hol"]
    with pytest.raises(MirblabError, match="no dataset of MIRB 'mirb-leen'.*did you mean 'mirb-lean'"):
        hub.build(None, home / "data", names=["mirb-leen"])
    with pytest.raises(MirblabError, match="it is one dataset itself: build that by its own name"):
        hub.build(tmp_path / "hub" / "holps", home / "data")
    with pytest.raises(MirblabError, match="nowhere is no folder; give one with hcju/holps in it"):
        hub.build(tmp_path / "nowhere", home / "data", names=["mirb-hol"])


def test_an_interrupted_build_leaves_what_was_there(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C in the middle of the texts: the older collection stays, and nothing half-made lies about."""
    origin = publish(tmp_path / "holps", "jsonl")
    [folder] = hub.build(origin, home / "data", names=["mirb-hol"])
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    rows = hub.read_texts

    def stops(*arguments: Any, **options: Any) -> Iterator[dict[str, Any]]:
        yield next(rows(*arguments, **options))
        raise KeyboardInterrupt

    monkeypatch.setattr(hub, "read_texts", stops)
    with pytest.raises(KeyboardInterrupt):
        hub.build(origin, home / "data", names=["mirb-hol"])
    assert before == {path: path.read_bytes() for path in (home / "data").rglob("*") if path.is_file()}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Hub]:
    """Return a server that has four datasets, one of them restricted."""
    names = ("mirb-hol", "mirb-isabelle", "mirb-mathlib", "mirb-wfb")
    entries = {published()[name]["hub"]: published()[name] for name in names}
    folders = {name: tmp_path / "served" / name for name in entries}
    for name, folder in folders.items():
        restricted = name == "hcju/wikiformula"
        publish(folder, "configs" if restricted else "jsonl", restricted=restricted)
    running = Hub(folders, {name: entry["revision"] for name, entry in entries.items()})
    yield running
    running.close()


def in_a_process(tmp_path: Path, url: str, *names: str, **environment: str) -> list[str]:
    """Load collections by name one after the other in a new process; return for each what came of it."""
    code = (
        "import sys\nfrom mirblab.sources import catalogue\nfrom mirblab.core.errors import MirblabError\n"
        "for name in sys.argv[1:]:\n"
        "    try:\n        found = catalogue.load(name)\n"
        "        card = found.card\n"
        "        print('>>', name, len(found.queries), found.candidates.names, card.revision, card.licence)\n"
        "    except MirblabError as error:\n        print('>>', 'MirblabError', error)\n"
    )
    done = run_in_process(tmp_path / "home", url, ["-c", code, *names], **environment)
    assert done.returncode == 0, done.stderr
    return [line.removeprefix(">> ") for line in done.stdout.splitlines() if line.startswith(">> ")]


def test_a_collection_that_is_not_here_is_fetched_by_its_name_once(server: Hub, tmp_path: Path) -> None:
    """At the pinned revision, with the dataset's own licence; what is here, or in the library's cache, stays."""
    revisions = server.revisions["hcju/holps"], server.revisions["hcju/wikiformula"]
    first, wfb, second = in_a_process(tmp_path, server.url, "mirb-hol", "mirb-wfb", "mirb-hol")
    assert first == second == f"mirb-hol 2 [] {revisions[0]} cc-by-sa-4.0"
    assert wfb == f"mirb-wfb 2 ['excluded_ids'] {revisions[1]} cc-by-sa-4.0"
    assert all(any(revision in asked for revision in revisions) for asked in server.asked)
    assert not any("README" in asked for asked in server.asked)
    assert len([asked for asked in server.asked if "/revision/" in asked]) == 2
    server.asked.clear()
    [again] = in_a_process(tmp_path, server.url, "mirb-hol", MIRBLAB_HOME=str(tmp_path / "second"))
    assert again == first and len(server.asked) == 1
    [cached] = in_a_process(tmp_path, server.url, "mirb-hol", MIRBLAB_HOME=str(tmp_path / "third"), HF_HUB_OFFLINE="1")
    assert cached.startswith("mirb-hol 2 [] " + revisions[0]) and len(server.asked) == 1


def test_a_broken_connection_is_resumed(server: Hub, tmp_path: Path) -> None:
    """Within a call from where it broke, in steps of ten megabytes; a second call takes up the files that lack."""
    long = [*QUERIES, {"_id": "long", "text": "ring " * 5_000_000}]
    publish(server.folders["hcju/holps"], "jsonl", queries=long)
    server.actions = {"queries.jsonl": ["half", "refuse", "half"]}
    first, second = in_a_process(tmp_path, server.url, "mirb-hol", "mirb-hol")
    assert re.match(r"MirblabError queries\.jsonl of hcju/holps at revision a2272.* could not be fetched whole", first)
    assert "try again, what is complete is kept; else run 'mirblab build mirb-hol'" in first
    assert second.startswith("mirb-hol 2 []")
    sums = load_folder(tmp_path / "home" / "data" / "mirb-hol").card.extra["files"]
    served = (server.folders["hcju/holps"] / "queries.jsonl").read_bytes()
    assert sums["queries.jsonl"] == hashlib.sha256(served).hexdigest()
    gets = [asked.split("/")[-1].strip() for asked in server.asked if asked.startswith("GET /datasets")]
    part = ["queries.jsonl", f"queries.jsonl bytes={10 * 2**20}-"]
    assert gets == ["corpus.jsonl", *part, *part, "test.tsv"]


def test_another_commit_or_content_is_refused(server: Hub, tmp_path: Path) -> None:
    """Whether the list of files, a file's header or the content itself is not the pinned revision's.

    That a dataset is not there is told apart from a Hub that is out of order.
    """
    server.info_commits = {"hcju/holps": "b" * 40}
    server.file_commits = {"hcju/isabelleps": "c" * 40}
    server.damaged = {"hcju/mathlibretrieval": "queries.jsonl"}
    server.status = {"hcju/wikiformula": 503}
    names = ("mirb-hol", "mirb-isabelle", "mirb-mathlib", "mirb-lean", "mirb-wfb")
    listed, sent, damaged, unknown, down = in_a_process(tmp_path, server.url, *names)
    assert listed.startswith(f"MirblabError the Hub answers with commit {'b' * 40} when asked for hcju/holps at revi")
    assert sent.startswith(
        f"MirblabError the Hub sent corpus.jsonl of hcju/isabelleps from commit {'c' * 40}, not 9370"
    )
    assert re.match(r"MirblabError .*queries\.jsonl is damaged: the Hub publishes the checksum \w{40} for it", damaged)
    assert unknown.startswith("MirblabError the Hub refuses hcju/leanps at revision 7d07605f")
    assert "the Hub cannot be reached: " in down and "503" in down
    assert not list((tmp_path / "home" / "data").glob("*"))


def test_without_a_network_the_message_says_what_to_do_at_once(tmp_path: Path, closed_port: int, in_time: None) -> None:
    """Offline by setting, and by a port on which nothing listens; both ways out are named."""
    url = f"http://127.0.0.1:{closed_port}"
    for offline in ("1", "0"):
        [message] = in_a_process(tmp_path, url, "mirb-mathlib", HF_HUB_OFFLINE=offline)
        assert "hcju/mathlibretrieval at revision c5109809d6b9e9704edde7e89faffeda3a066be1 is not on this " in message
        folder = tmp_path / "home" / "data" / "mirb-mathlib"
        assert f"where there is a network and copy its folder to {folder}, or give a copy of the dataset" in message
        assert message.endswith("mirblab build mirb-mathlib --from FOLDER")
