"""Collections are found by name, derived from the cards, and added whole."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from mirblab.app import cli
from mirblab.core import paths
from mirblab.core.errors import MirblabError
from mirblab.data import beir
from mirblab.sources import catalogue, mini


def test_every_bundled_collection_loads():
    """Twelve after MIRB's, nine after MELD's; none has a judged-relevant document outside its candidates."""
    assert len(mini.COLLECTIONS) == 21
    for name in mini.COLLECTIONS:
        found = catalogue.load(name)
        assert found.name == name and found.card.licence == "CC0-1.0" and found.card.task
        assert len(found.queries) > 5 and len(found.corpus) > 20


def test_a_wrong_name_gets_a_suggestion():
    """As in the README."""
    with pytest.raises(MirblabError, match=r"no collection 'mini-qq'.*did you mean 'mini-qa'\?"):
        catalogue.load("mini-qq")


def test_a_known_collection_that_is_not_built_names_the_command():
    """The next step is in the message."""
    with pytest.raises(MirblabError, match="not built yet; run: mirblab build stacks"):
        catalogue.load("stacks-qa")


def test_a_published_collection_is_known_before_it_is_here():
    """The list says what is here; suggestions come from all names; asking where it is fetches nothing."""
    assert not any(name.startswith("mirb-") for name in catalogue.collection_names())
    with pytest.raises(MirblabError, match=r"no collection 'mirb-mathlb'.*did you mean 'mirb-mathlib'\?"):
        catalogue.load("mirb-mathlb")
    with pytest.raises(MirblabError, match="'mirb-mathlib' is not built yet; run: mirblab build mirb-mathlib"):
        catalogue.collection_folder("mirb-mathlib")
    assert not (paths.data() / "mirb-mathlib").exists()


def test_the_four_parts_of_naturalproofs_share_a_printed_name():
    """The main table makes one column of them."""
    parts = ("numbertheory", "proofwiki", "realanalysis", "stacks")
    assert catalogue.collection_groups() == {f"mirb-{part}-premise": "NaturalProofs" for part in parts}


def test_mini_is_derived_again_when_it_is_old():
    """Another revision in the card means that the cards have changed since."""
    before = catalogue.load("mini-hol").fingerprint
    card = paths.data() / "mini-hol" / "card.toml"
    card.write_text(card.read_text().replace(mini.miniature_revision(), "old"), encoding="utf-8")
    (paths.data() / "mini-hol" / "corpus.jsonl").write_text('{"_id": "x", "text": "y"}\n', encoding="utf-8")
    assert catalogue.load("mini-hol").fingerprint == before


def test_a_folder_that_is_a_collection_is_taken_as_it_is(make_folder):
    """By the notebook on one's own files; what describes LaTeX and tables is refused."""
    folder = make_folder()
    assert catalogue.build_from_files(str(folder), name="", text="") == [folder]
    with pytest.raises(MirblabError, match="leave text out"):
        catalogue.build_from_files(str(folder), text="statement")


@pytest.mark.parametrize(
    ("source", "option", "says"),
    [
        ("rocq", {"proved_definitions": "no"}, "options of 'rocq': proved_definitions is 'no'; write true or false"),
        ("same-theorem", {"judged_only": 1}, "judged_only is 1; write true or false"),
        ("rocq", {"seed": "first"}, "seed is 'first'; write a whole number"),
        ("rocq", {"seed": True}, "seed is True; write a whole number"),
        ("stackexchange", {"dev": "half"}, "dev is 'half'; write a number"),
        ("own", {"name": 1.5}, "name is 1.5; write text in quotes"),
        ("blueprints", {"names": [1]}, "the options of 'blueprints': names"),
    ],
)
def test_an_option_of_another_type_is_refused_before_anything_is_read(source, option, says):
    with pytest.raises(MirblabError, match=re.escape(says)):
        catalogue.build(source, "nowhere", **option)


def test_a_number_that_is_meant_as_a_text_is_one(tmp_path):
    """As a folder that is called 2024; on the command line it is what was typed."""
    (tmp_path / "a.csv").write_text("title,text\nt,x\n", encoding="utf-8")
    [folder] = catalogue.build("own", str(tmp_path / "a.csv"), name=2024)
    assert folder.name == "2024"
    assert cli.parse_settings(["name=007", "title=1e5", "seed=1_0"], catalogue.text_options("own")) == {
        "name": "007", "title": "1e5", "seed": 10
    }  # fmt: skip


def test_add_copies_and_load_finds_it(make_folder):
    """The copy has the same content, whatever the name."""
    folder = make_folder(name="own-one")
    target, notes = catalogue.add(folder, task="Premise Retrieval")
    found = catalogue.load("own-one")
    assert target == paths.data() / "own-one" and notes == []
    assert found.card.task == "Premise Retrieval"
    assert found.texts == catalogue.load(folder).texts
    assert not list(paths.data().glob(".*"))


def test_adding_twice_replaces_and_adding_another_is_refused(make_folder):
    """Nothing is lost: another collection of the same name needs another name."""
    catalogue.add(make_folder(name="own-two"))
    catalogue.add(make_folder(name="own-two"))
    other = make_folder(name="elsewhere/own-two", qrels="q1\td1\t1\n")
    with pytest.raises(MirblabError, match="holds another collection of that name"):
        catalogue.add(other)
    texts = [{"_id": f"d{n}", "text": f"another text {n}"} for n in (1, 2, 3)]
    with pytest.raises(MirblabError, match="holds another collection of that name"):
        catalogue.add(make_folder(texts, name="there/own-two"))
    with pytest.raises(MirblabError, match="is in the data folder already"):
        catalogue.add(paths.data() / "own-two")
    assert catalogue.load("own-two").texts[0] == "document 1"


def test_files_of_the_same_bytes_are_not_compared_text_by_text(make_folder, monkeypatch):
    """Adding an unchanged folder again reads its texts twice, when it is checked and when it is written."""
    folder, read, read_texts = make_folder(name="own-same"), [], beir.read_texts
    catalogue.add(folder)
    monkeypatch.setattr(beir, "read_texts", lambda *given: read.append(given[1]) or read_texts(*given))
    catalogue.add(folder)
    assert read == ["corpus", "queries"] * 2
    (folder / "corpus.jsonl").write_text((folder / "corpus.jsonl").read_text() + "\n", encoding="utf-8")
    catalogue.add(folder)
    assert read == ["corpus", "queries"] * 2 + ["corpus", "queries", "corpus", "corpus", "corpus", "queries"]


def test_adding_again_keeps_what_was_said_the_first_time(make_folder):
    """In options of the command; what the folder's own card says counts, and a change by it is told."""
    folder = make_folder(name="own-card")
    catalogue.add(folder, candidates=["judged"], relevant_from=2)
    assert catalogue.add(folder) == (paths.data() / "own-card", ["queries without a relevant document: 1"])
    found = catalogue.load("own-card").card
    assert (found.candidates, found.relevant_from) == (["judged"], 2)
    catalogue.add(folder, relevant_from=1)
    assert catalogue.load("own-card").card.relevant_from == 1 and catalogue.load("own-card").card.candidates
    catalogue.add(folder, relevant_from=2)
    (folder / "card.toml").write_text("relevant_from = 1\n", encoding="utf-8")
    _, notes = catalogue.add(folder)
    assert notes == ["the card of the collection that is replaced had relevant_from = 2; the folder's card says 1"]
    twins = make_folder(queries=[{"_id": "d1", "text": "one"}], qrels="d1\td2\t1\n", name="own-twins")
    catalogue.add(twins, candidates=["all"])
    assert catalogue.add(twins)[1] == ["queries that have the id of a document: 1"]
    assert catalogue.load("own-twins").card.candidates == []


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("qrels/dev.tsv", "query-id\tcorpus-id\tscore\nq1\td2\t1\n"),
        ("excluded_ids.jsonl", '{"query-id": "q1", "excluded-ids": ["d3"]}\n'),
        ("candidates.jsonl", "".join(f'{{"query-id": "q{n}", "candidate-ids": ["d{n}"]}}\n' for n in (1, 2))),
        ("groups.tsv", "query-id\tgroup\tcorpus-id\nq1\t1\td1\n"),
        ("queries.jsonl", "".join(f'{{"_id": "q{n}", "text": "query {n}"}}\n' for n in (1, 2, 3))),
    ],
)
def test_nothing_that_changed_is_replaced_by_adding_again(make_folder, name, content):
    """The parts that differ are named, whichever split they are of."""
    folder = make_folder(name="own-parts")
    catalogue.add(folder, f"own-{name[:3]}")
    (folder / name).write_text(content, encoding="utf-8")
    part = name.removesuffix(".jsonl")
    with pytest.raises(MirblabError, match=f"holds another collection of that name, which differs in {part}; give"):
        catalogue.add(folder, f"own-{name[:3]}")


def test_a_collection_without_a_query_can_be_added_and_converted(tmp_path):
    """As mirblab build own writes one of statements that refer to none."""
    path = tmp_path / "alone.tex"
    lemma = r"\begin{lemma} Every %s is a sum. \end{lemma}\begin{proof} Add what is left and then count it. \end{proof}"
    path.write_text(lemma % "one" + lemma % "other", encoding="utf-8")
    folder = catalogue.build("own", str(path))[1]
    assert folder.name == "alone-premise" and not len(catalogue.load(folder).queries)
    target, _ = catalogue.add(folder, "renamed")
    assert catalogue.load("renamed").texts == catalogue.load(folder).texts
    converted = catalogue.load(catalogue.convert("renamed"))
    assert list(converted.texts) == catalogue.load(folder).texts


def test_add_keeps_a_query_from_finding_itself(make_folder):
    """Where queries are documents of the same id, the card says not-self, and the user is told."""
    corpus = [{"_id": f"q{n}", "text": f"statement {n}"} for n in (1, 2, 3)]
    queries = [{"_id": f"q{n}", "text": f"statement {n}"} for n in (1, 2)]
    folder = make_folder(corpus, queries, "q1\tq2\t1\nq2\tq3\t1\n", name="own-three")
    _, notes = catalogue.add(folder)
    assert catalogue.load("own-three").candidates.names == ["not-self"]
    assert any("a query may not return itself" in note for note in notes)
    assert catalogue.load(folder).candidates.names == []
    catalogue.add(folder, candidates=["all"])
    assert catalogue.load("own-three").candidates.names == []


def test_add_refuses_a_broken_collection_and_leaves_nothing(make_folder):
    """It is checked before it is copied."""
    folder = make_folder(json.dumps({"_id": "d1"}) + "\n", name="broken")
    with pytest.raises(MirblabError, match=r"corpus\.jsonl, line 1"):
        catalogue.add(folder)
    assert not (paths.data() / "broken").exists()


def test_add_refuses_names_that_no_folder_can_have(make_folder):
    """Also on other platforms."""
    for name in ("a/b", "..", "con:", " x"):
        with pytest.raises(MirblabError, match="cannot name a collection"):
            catalogue.add(make_folder(), name)


@pytest.mark.attacks
def test_a_path_is_a_folder_and_never_a_name(make_folder, monkeypatch):
    """Also with Windows' separator."""
    folder = make_folder(name="here")
    monkeypatch.chdir(folder.parent)
    assert catalogue.collection_folder("./here").name == "here"
    assert catalogue.load("here").name == "here"
    with pytest.raises(FileNotFoundError):
        catalogue.load("C:\\nowhere\\at all")


@pytest.mark.parametrize("name", ["../x", "/elsewhere/x", "a/b", "CON", "nul.txt", "x" * 101, "é" * 60, "a\\u001bb"])
def test_a_name_that_is_no_name_of_a_folder_is_refused_wherever_it_comes_from(make_folder, tmp_path, name):
    """In a card it decided where `mirblab run --out` wrote; the message names the card."""
    folder = make_folder(card=f'title = "x"\nname = "{name}"\n')
    with pytest.raises(MirblabError, match=r"card\.toml, line 2: .* cannot name a collection"):
        catalogue.load(folder)
    with pytest.raises(MirblabError, match="cannot name a collection"):
        replace(catalogue.load("mini-qa"), name=name)


def test_a_folder_whose_name_is_no_name_is_refused_and_a_card_can_give_another(make_folder):
    """Files are written under it."""
    folder = make_folder(name="what?")
    with pytest.raises(MirblabError, match=r"'what\?' cannot name a collection"):
        catalogue.load(folder)
    (folder / "card.toml").write_text('name = "what"\n')
    assert catalogue.load(folder).name == "what"


@pytest.mark.parametrize("name", ["x" * 300, "./" + "x" * 300, "~nobody-at-all/x", "a\0b"])
def test_a_name_that_no_file_can_have_is_an_error_in_words(name):
    """Not one of the system's."""
    with pytest.raises((MirblabError, FileNotFoundError), match=r"no collection|no folder|cannot be read"):
        catalogue.load(name)
