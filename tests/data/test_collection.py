"""A collection is read strictly: what is wrong is named with file and line, what is odd is counted."""

from __future__ import annotations

import gzip
import json
from collections import namedtuple
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import mirblab as lab
from mirblab.analysis import compare_runs
from mirblab.core.errors import MirblabError, MissingFileError
from mirblab.data import beir
from mirblab.data.collection import Card, load_folder
from mirblab.evaluation import measures
from mirblab.sources import catalogue


def test_a_folder_without_a_card_loads(make_folder):
    """Corpus and queries are sorted by id, judgements of 0 survive, and everything may be returned."""
    found = load_folder(make_folder())
    assert found.doc_ids.tolist() == ["d1", "d2", "d3"]
    assert found.query_ids.tolist() == ["q1", "q2"]
    judged = list(
        zip(found.qrels.query_id.astype(str), found.qrels.doc_id.astype(str), found.qrels.relevance, strict=True)
    )
    assert judged == [("q1", "d1", 1), ("q2", "d1", 0), ("q2", "d2", 2)]
    assert found.candidates.allowed(np.array([0, 1])) is None
    assert found.name == "tiny"


def test_title_and_text_are_joined_by_one_space_and_stripped(make_folder):
    """A document without a title has no leading space."""
    corpus = [
        {"_id": "d1", "title": "Lemma", "text": "Let $x$."},
        {"_id": "d2", "text": " only text "},
        {"_id": "d3", "title": "T", "text": ""},
    ]
    assert load_folder(make_folder(corpus)).texts == ["Lemma Let $x$.", "only text", "T"]


def test_compression_and_line_order_do_not_change_the_fingerprint(make_folder):
    """The fingerprint is over content."""
    plain = load_folder(make_folder())
    folder = make_folder(name="other/tiny")
    lines = (folder / "corpus.jsonl").read_text().splitlines()
    (folder / "corpus.jsonl").unlink()
    with gzip.open(folder / "corpus.jsonl.gz", "wt", encoding="utf-8") as file:
        file.write("\n".join(reversed(lines)) + "\n")
    assert load_folder(folder).fingerprint == plain.fingerprint


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("corpus", [{"_id": f"d{n}", "text": f"document {n}{'!' * (n == 3)}"} for n in (1, 2, 3)]),
        ("queries", [{"_id": "q1", "text": "query one"}, {"_id": "q2", "text": "query 2"}]),
        ("qrels", "q1\td1\t1\nq2\td2\t1\nq2\td1\t0\n"),
        ("card", 'candidates = "judged"\n'),
        ("card", 'instruction = "Find it."\n'),
    ],
)
def test_every_part_of_the_content_changes_the_fingerprint(make_folder, part, value):
    """Text, judgement, candidates and instruction all count."""
    before = load_folder(make_folder()).fingerprint
    assert load_folder(make_folder(**{part: value}, name="changed")).fingerprint != before


@pytest.mark.parametrize(
    ("corpus", "message"),
    [
        ('{"_id": "d1", "text": "x"}\n{"_id": "d1", "text": "y"}\n', r"line 2: duplicate _id 'd1', first on line 1"),
        ('{"_id": "d1", "text": "x"}\n{"text": "y"}\n{"text": "z"}\n', r"line 2: no '_id'.*\(2 such lines in all\)"),
        ('{"_id": "d1", "text": "x"\n', r"line 1: broken JSON"),
        ('["d1"]\n', r"line 1: expected a JSON object, found list"),
        ('{"_id": "d1", "text": "x \\ud835"}\n', r"line 1: .*holds half a character"),
        ('{"_id": "d1", "text": null}\n', r"line 1: 'text' of 'd1' must be a text, found null"),
    ],
)
def test_a_broken_corpus_is_an_error_with_file_and_line(make_folder, corpus, message):
    """The first wrong line is named, and how many there are."""
    with pytest.raises(MirblabError, match=r"corpus\.jsonl, " + message):
        load_folder(make_folder(corpus))


@pytest.mark.parametrize(
    ("qrels", "message"),
    [
        ("q1\td9\t1\n", r"test\.tsv, line 2: judges the document 'd9', which is not in corpus"),
        ("q1\td1\t1\nq9\td1\t1\n", r"line 3: judges the query 'q9', which is not in queries"),
        ("q1\td1\thigh\n", r"line 2: the score must be a whole number, found 'high'"),
        ("q1\td1\t0.5\n", r"line 2: the score must be a whole number"),
        ("q1\td1\n", r"line 2: expected query-id, corpus-id, score"),
        ("q1\td1\t1\nq1\td1\t2\n", r"line 3: judges 'd1' for 'q1' a second time"),
    ],
)
def test_a_broken_judgement_is_an_error_with_file_and_line(make_folder, qrels, message):
    """Judgements of what is not there are never dropped in silence."""
    with pytest.raises(MirblabError, match=message):
        load_folder(make_folder(qrels=qrels))


@pytest.mark.parametrize(
    ("header", "row"),
    [("corpus-id\tquery-id\tscore", "d1\tq1\t2"), ("score\tqid\tdocno", "2\tq1\td1"), ("qid\tdocid\trel", "q1\td1\t2")],
)
def test_a_header_says_which_column_is_which(make_folder, header, row):
    """In any order, by the names that others use."""
    folder = make_folder()
    (folder / "qrels" / "test.tsv").write_text(f"{header}\n{row}\n", encoding="utf-8")
    table = load_folder(folder).qrels
    assert table.astype("str").iloc[0].tolist() == ["q1", "d1", "2"]


def test_ids_that_are_names_of_columns_are_no_header(make_folder):
    """A first line with a number is a judgement."""
    folder = make_folder(corpus=[{"_id": "label", "text": "a"}])
    (folder / "qrels" / "test.tsv").write_text("q1\tlabel\t1\n", encoding="utf-8")
    assert load_folder(folder).qrels.astype("str").iloc[0].tolist() == ["q1", "label", "1"]


def test_a_header_that_cannot_be_understood_is_named(make_folder):
    """Before any of its rows is misread."""
    folder = make_folder()
    (folder / "qrels" / "test.tsv").write_text("query-id\tscore\titem\nq1\t1\td1\n", encoding="utf-8")
    with pytest.raises(
        MirblabError, match="line 1: the header must be query-id, corpus-id, score, found query-id, score"
    ):
        load_folder(folder)


def test_a_text_under_another_key_is_an_error_with_the_keys(make_folder):
    """So that the right one can be seen."""
    with pytest.raises(MirblabError, match="'text' of 'd1' must be a text, found the keys _id, contents"):
        load_folder(make_folder([{"_id": "d1", "contents": "a"}]))


def test_a_wrong_encoding_names_the_byte(make_folder):
    """Latin-1 is not UTF-8."""
    folder = make_folder()
    (folder / "corpus.jsonl").write_bytes(b'{"_id": "d1", "text": "Schr\xf6der"}\n')
    with pytest.raises(MirblabError, match=r"line 1: not UTF-8 at byte 27"):
        load_folder(folder)


def test_a_truncated_archive_is_an_error(make_folder):
    """Half a .gz is not read as a short corpus."""
    folder = make_folder()
    packed = gzip.compress((folder / "corpus.jsonl").read_bytes())
    (folder / "corpus.jsonl").unlink()
    (folder / "corpus.jsonl.gz").write_bytes(packed[:-12])
    with pytest.raises(MirblabError, match="cannot be read"):
        load_folder(folder)


def test_two_files_of_one_kind_are_refused(make_folder):
    """corpus.jsonl beside corpus.jsonl.gz is a question, not a choice."""
    folder = make_folder()
    (folder / "corpus.jsonl.gz").write_bytes(gzip.compress(b""))
    with pytest.raises(MirblabError, match="keep one of them"):
        load_folder(folder)


def test_a_missing_split_lists_what_is_there(make_folder):
    """The message suggests the nearest split."""
    with pytest.raises(FileNotFoundError, match=r"found the splits test; did you mean 'test'\?"):
        load_folder(make_folder(), split="tests")


def test_a_split_without_a_query_is_refused_where_something_is_measured(make_folder):
    """The message says which splits have queries, and which file lacks judgements; a search needs no query."""
    folder = make_folder(qrels="")
    (folder / "qrels" / "train.tsv").write_text("corpus-id\tquery-id\tscore\nd1\tq1\t1\nd2\tq1\t1\n", "utf-8")
    says = "tiny has no query in the split 'test', .*; found these queries by split: test 0, train 1; "
    wanted = rf"{says}take a split with queries, or add judgements to .*tiny/qrels/test\.tsv"
    for measured in (
        lambda: lab.experiment("bm25", folder),
        lambda: lab.experiment("bm25", ["mini-qa", folder]),
        lambda: lab.judge(["bm25"], folder),
        lambda: compare_runs.compare_runs("bm25", "structure", folder, ["RR"]),
    ):
        with pytest.raises(MirblabError, match=wanted):
            measured()
    with pytest.raises(MirblabError, match="so that nothing can be measured; load another split"):
        lab.experiment("bm25", load_folder(folder))
    assert len(lab.experiment("bm25", load_folder(folder, "train")).values) == 1
    assert len(lab.search("document", folder, "bm25").frame) == 3
    (folder / "qrels" / "train.tsv").unlink()
    with pytest.raises(MirblabError, match="found these queries by split: test 0; add judgements to"):
        lab.experiment("bm25", folder)


def test_rows_of_a_broken_file_are_an_error_with_the_line(make_folder, tmp_path, monkeypatch):
    """No line is lost in silence, also not when a corpus is copied or is too large for one file."""
    rows = '{"_id": "d1", "text": "a"}\n{"_id": "d2", \n[]\n{"_id": "d3", "text": "c"}\n'
    folder, found = make_folder(rows), []
    wanted = r"corpus\.jsonl, line 2: broken JSON: .* \(2 such lines in all\)"
    with pytest.raises(MirblabError, match=wanted):
        found += (row["_id"] for row in beir.read_rows(folder, "corpus"))
    with pytest.raises(MirblabError, match=wanted):
        beir.convert_corpus(folder, tmp_path / "copy", to_parts=False)
    assert not (tmp_path / "copy" / "corpus.jsonl").exists()
    monkeypatch.setattr(beir, "LARGE", 1)
    deep = {"_id": "d1", "text": "a", "more": json.loads("[" * 201 + "]" * 201)}
    with pytest.raises(MirblabError, match="line 1: nested too deeply"):
        beir.write_collection(tmp_path / "large", [deep, {"_id": "d2", "text": "b"}], [], {}, {})


def test_a_misspelt_folder_is_answered_with_the_nearest(make_folder):
    """As an error of mirblab, which a notebook shows without the library's frames."""
    folder = make_folder()
    with pytest.raises(MissingFileError, match=f"no folder .*; did you mean '{folder.name}'") as error:
        load_folder(folder.with_name(folder.name[:-1]))
    assert "beir.py" not in "".join(error.value._render_traceback_())


def test_only_the_queries_of_the_split_are_there(make_folder):
    """queries.jsonl holds all splits."""
    found = load_folder(make_folder(qrels="q2\td1\t1\n"))
    assert found.query_ids.tolist() == ["q2"]


def test_what_is_odd_is_counted_and_not_altered(make_folder):
    """Empty and repeated texts, entities, a query without a relevant document, one id on both sides."""
    corpus = [{"_id": "d1", "text": ""}, {"_id": "d2", "text": "a &lt; b"}, {"_id": "q1", "text": "a &lt; b"}]
    found = load_folder(make_folder(corpus, qrels="q1\td1\t0\nq2\td2\t1\n"))
    assert found.oddities == {
        "documents without text": 1,
        "documents that repeat another's text": 1,
        "texts with HTML entities": 2,
        "queries without a relevant document": 1,
        "queries that have the id of a document": 1,
    }
    assert found.texts[1] == "a &lt; b"


@pytest.mark.parametrize(
    ("text", "count"),
    [(r"\mathrm{u60233} (r)", 1), ("a \ue14b b", 1), (r"x_{u123} \mathrm{u50000}", 0), ("∀x é", 0), (r"u60233", 0)],
)
def test_signs_of_a_private_font_are_counted(make_folder, text: str, count: int):
    """Their numbers, as LaTeXML writes them, lie in Unicode's private use area."""
    found = load_folder(make_folder([{"_id": "d1", "text": text}], qrels="q1\td1\t1\n"))
    assert found.oddities.get("texts with signs of a private font", 0) == count


def test_unicode_ids_and_a_byte_order_mark_are_read(make_folder):
    """A mark at the start of a file belongs to no line."""
    text = "\ufeff" + json.dumps({"_id": "Zermelo–Fraenkel:1", "text": "∀x"}, ensure_ascii=False) + "\n"
    found = load_folder(make_folder(text, qrels="q1\tZermelo–Fraenkel:1\t1\n"))
    assert found.document("Zermelo–Fraenkel:1") == "∀x"


def test_an_unknown_document_is_an_error(make_folder):
    """Also one that would sort after the last."""
    with pytest.raises(MirblabError, match="no document 'zzz' in tiny"):
        load_folder(make_folder()).document("zzz")


def test_a_card_with_an_unknown_rule_gets_a_suggestion(make_folder):
    """The file is named."""
    with pytest.raises(MirblabError, match=r"card\.toml.*did you mean 'judged'"):
        load_folder(make_folder(card='candidates = "juged"\n'))


def test_every_shared_collection_loads(shared_file: Callable[[str], Path]):
    """Counts of reference/data.md."""
    counts = {"stacks-qa": (648, 11_512), "setmm": (2_000, 23_516), "ntcir12-wfb": (20, 3_490), "mse-dup": (354, 8_537)}
    for name, (n_queries, n_documents) in counts.items():
        found = load_folder(shared_file(f"data/{name}"))
        assert (len(found.queries), len(found.corpus)) == (n_queries, n_documents)


def test_an_example_is_never_cut_inside_a_formula(make_folder):
    """Half a formula would be typeset as anything."""
    corpus = [{"_id": "d1", "text": "Let $x + y = z$ hold for all of them."}, {"_id": "d2", "text": "b"}]
    found = load_folder(make_folder(corpus, qrels="q1\td1\t1\n")).example(longest=12)
    assert found["document"] == "Let …" and found["query"] == "query 1"


def test_a_sample_keeps_corpus_and_candidates(make_folder):
    """The same seed draws the same queries; 0 keeps all; the fingerprint tells them apart."""
    found = load_folder(make_folder(card='candidates = "judged"\n'))
    part = found.sample(1, seed=0)
    assert len(part.queries) == 1 and len(part.corpus) == 3
    place = found.query_ids.get_loc(part.query_ids[0])
    assert part.candidates.allowed(np.array([0])).tolist() == found.candidates.allowed(np.array([place])).tolist()
    assert set(part.qrels.query_id) == set(part.query_ids)
    assert part.fingerprint != found.fingerprint and part.fingerprint == found.sample(1, seed=0).fingerprint
    assert found.sample(0) is found and found.sample(9) is found


def test_tags_may_be_one_text_with_commas(make_folder):
    """ARQMath's shared collections write them so."""
    queries = [{"_id": "q1", "text": "a", "tags": "functions, calculus"}, {"_id": "q2", "text": "b", "tags": ""}]
    assert load_folder(make_folder(queries=queries)).queries.tags.tolist() == [["functions", "calculus"], []]


def test_tags_may_be_written_as_in_a_dump(make_folder):
    """Of Stack Exchange, in either notation."""
    queries = [
        {"_id": "q1", "text": "a", "tags": "<algebra><real-analysis>"},
        {"_id": "q2", "text": "b", "tags": "|algebra|"},
    ]
    found = load_folder(make_folder(queries=queries)).queries.tags.tolist()
    assert found == [["algebra", "real-analysis"], ["algebra"]]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("task = 3", "task is 3; write text in quotes"),
        ("group = ['a']", r"group is \['a'\]; write text in quotes"),
        ("relevance_levels = [0, 'high']", "relevance_levels.1 is 'high'; write a whole number"),
        ("relevant_from = true", "relevant_from is True; write a whole number"),
        ("relevant_from = 0", "relevant_from is 0; write a number above 0"),
        ("candidates = 7", "candidates is 7; write a list"),
        ("candidates = ['juged']", "candidates.0 is 'juged'; write 'judged', 'not-self', 'earlier' or 'tags'"),
        ("name = 'a/b'", "'a/b' cannot name a collection"),
        ("title = ", "not valid TOML: Invalid value"),
    ],
)
def test_a_field_of_a_card_that_is_wrong_is_told_with_file_and_line(make_folder, wrong, message):
    """It stands in line 4 here, below another that is right."""
    folder = make_folder(card=f'# a card\nsource = "right"\n\n{wrong}\n')
    with pytest.raises(MirblabError, match=rf"card\.toml.*line 4.*{message}|card\.toml.*{message}.*line 4"):
        load_folder(folder)


def test_a_card_that_is_not_utf_8_is_told_with_file_and_line(make_folder):
    """A whole number of 5,000 digits and nesting without end are told, too."""
    folder = make_folder()
    for raw, message in [
        (b'title = "x"\ntask = "na\xefve"\n', r"card\.toml, line 2: the byte 0xef is not UTF-8"),
        (b"relevant_from = " + b"1" * 5000, r"card\.toml is not valid TOML"),
        (b"x = " + b"[" * 5000, r"card\.toml"),
    ]:
        (folder / "card.toml").write_bytes(raw)
        with pytest.raises(MirblabError, match=message):
            load_folder(folder)


def test_a_damaged_card_is_read_or_refused_and_never_ends_in_a_traceback(make_folder):
    """A thousand changed, missing or doubled bytes of a card with every field."""
    whole = (
        b'name = "tiny"\ntitle = "T"\nrelevance_levels = [0, 1, 2]\nrelevant_from = 2\ncandidates = ["not-self"]\n'
        b'follows = "mirb-hol"\npaper = "HolStep"\n[counts]\ndocuments = 3\n'
    )
    folder, rng = make_folder(), np.random.default_rng(0)
    for _ in range(1000):
        place, kind = rng.integers(len(whole)), rng.integers(3)
        middle = (bytes([rng.integers(256)]), b"", whole[place : place + 9] * 2)[kind]
        (folder / "card.toml").write_bytes(whole[:place] + middle + whole[place + 1 :])
        try:
            Card.read(folder)
        except MirblabError as error:
            assert "card.toml" in str(error)


def test_groups_of_documents_are_read_checked_and_measured(make_folder):
    """Those of the split's queries, whose members are relevant; each wrong line is told with its number."""
    folder = make_folder()
    plain = load_folder(folder).fingerprint
    rows = ["query-id\tgroup\tcorpus-id", "q1\ta\td1", "q2\ta\td2"]
    (folder / "groups.tsv").write_text("\n".join([*rows, ""]))
    found = load_folder(folder)
    assert found.groups.values.tolist() == [["q1", "a", "d1"], ["q2", "a", "d2"]]
    assert found.fingerprint != plain
    run = pd.DataFrame({"query_id": ["q1", "q2"], "doc_id": "d1", "score": 1.0})
    assert measures.evaluate(run, found, "GroupR@1").value.tolist() == [1, 0]
    assert measures.evaluate(run, found.sample(1, seed=1), "GroupR@1").value.size == 1
    for wrong, message in {
        "q1\td1": "expected query-id, group, corpus-id separated by tabs, found 2",
        "q9\ta\td1": "names the query 'q9'",
        "q1\ta\td1": "names 'd1' in the group 'a' of 'q1' a second time",
        "q2\tb\td1": "names 'd1', which is not judged relevant for 'q2'",
    }.items():
        (folder / "groups.tsv").write_text("\n".join([*rows, wrong, ""]))
        with pytest.raises(MirblabError, match=f"groups.tsv, line 4: {message}"):
            load_folder(folder)


def dataset(**replaced):
    """Return an object of the shape of a dataset of ir_datasets, which is no dependency here."""
    document, query = namedtuple("Doc", "doc_id title text url"), namedtuple("Query", "query_id title description")
    qrel = namedtuple("Qrel", "query_id doc_id relevance iteration")
    parts = {
        "docs_iter": [document("d1", "Lemma", "Let $x$.", "x"), document("d2", "", "Let $y$.", "y")],
        "queries_iter": [query("q1", "a lemma", "one on x")],
        "qrels_iter": [qrel("q1", "d1", 2, "0"), qrel("q1", "d2", 0, "0")],
    } | replaced
    methods = {name: (lambda rows=rows: iter(rows)) for name, rows in parts.items() if rows is not None}
    return SimpleNamespace(dataset_id=lambda: "small/train", **methods)


def test_a_dataset_of_ir_datasets_is_a_collection():
    """Title and text joined by one space, a topic by its title, every judgement kept; only the name is new."""
    found = catalogue.load(dataset())
    assert (found.name, found.texts, found.query_texts) == ("small-train", ["Lemma Let $x$.", "Let $y$."], ["a lemma"])
    assert found.qrels.relevance.tolist() == [2, 0]
    other, plain = namedtuple("Doc", "doc_id head body n"), namedtuple("Query", "query_id text")
    fields = dataset(docs_iter=[other("d1", "one", "two", 3), other("d2", "", "four", 5)],
                     queries_iter=[plain("q1", "text")])  # fmt: skip
    assert catalogue.load(fields).texts == ["one two", "four"] and catalogue.load(fields).query_texts == ["text"]


def pyterrier_dataset(**replaced):
    """Return an object of the shape of a dataset of PyTerrier, which is no dependency here."""
    parts = {
        "get_corpus_iter": [
            {"docno": "d1", "title": "Lemma", "text": "Let $x$.", "url": 3},
            {"docno": "d2", "text": "b"},
        ],
        "get_topics": pd.DataFrame({"qid": ["q1", "q2"], "query": ["a $x$", "two"], "narrative": "long"}),
        "get_qrels": pd.DataFrame({"qid": ["q1", "q1", "q2"], "docno": ["d1", "d2", "d2"], "label": [2, 0, 1]}),
    } | replaced
    methods = {name: (lambda verbose=True, rows=rows: rows) for name, rows in parts.items() if rows is not None}
    return SimpleNamespace(name="small/train", **methods)


def test_a_dataset_of_pyterrier_is_a_collection():
    """Its documents are dictionaries, its topics and judgements tables; one over ir_datasets is read as that."""
    found = catalogue.load(pyterrier_dataset())
    assert (found.name, found.texts, found.query_texts) == ("small-train", ["Lemma Let $x$.", "b"], ["a $x$", "two"])
    assert found.qrels.values.tolist() == [["q1", "d1", 2], ["q1", "d2", 0], ["q2", "d2", 1]]
    topics = pd.DataFrame({"qid": ["q1", "q2"], "title": ["short", None], "narrative": ["long", "only"]})
    assert catalogue.load(pyterrier_dataset(get_topics=topics)).query_texts == ["short", "only"]
    behind = SimpleNamespace(irds_ref=dataset, **vars(pyterrier_dataset()))
    assert catalogue.load(behind).fingerprint == catalogue.load(dataset()).fingerprint


def test_a_dataset_of_pyterrier_that_lacks_something_is_refused():
    """A method, what a method does not have, and a column, which is told with those that are there."""

    def unmade():
        raise NotImplementedError("no qrels here")

    with pytest.raises(MirblabError, match="has no get_qrels; give a dataset with documents and judgements"):
        catalogue.load(pyterrier_dataset(get_qrels=None))
    broken = pyterrier_dataset()
    broken.get_qrels = unmade
    with pytest.raises(MirblabError, match=r"\(no qrels here\); give a dataset that has all three"):
        catalogue.load(broken)
    with pytest.raises(MirblabError, match="judgements of .* have no label; found qid, docno, score"):
        qrels = pd.DataFrame({"qid": ["q1"], "docno": ["d1"], "score": [1.0]})
        catalogue.load(pyterrier_dataset(get_qrels=qrels))


def test_a_run_that_is_given_for_a_collection_is_told_where_it_belongs():
    """The table of PyTerrier or of ours was looked up by its printed rows before."""
    run = pd.DataFrame({"qid": ["q1"], "docno": ["d1"], "score": [1.0]})
    with pytest.raises(MirblabError, match=r"columns qid, docno, score; read a run with lab\.read_run\(table\)"):
        catalogue.load(run)
    with pytest.raises(MirblabError, match="found the columns none; read a run"):
        catalogue.load(pd.DataFrame())


def test_a_dataset_without_judgements_or_with_broken_ones_is_refused():
    """What is missing is named, and a problem is told with the dataset's name for a folder."""
    with pytest.raises(MirblabError, match="has no qrels_iter; give a dataset with documents and judgements"):
        catalogue.load(dataset(qrels_iter=None))
    wrong = [SimpleNamespace(query_id="q1", doc_id="d9", relevance=1)]
    with pytest.raises(MirblabError, match="^small-train/qrels/test.tsv, line 2: judges the document 'd9'"):
        catalogue.load(dataset(qrels_iter=wrong))
