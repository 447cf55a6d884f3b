"""The Stack Exchange builder: every rule of the paper on dumps made by hand, and the real files beside an oracle."""

from __future__ import annotations

import gzip
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from html import escape
from pathlib import Path

import py7zr
import pytest
from built_collections import card, content, judged, rows
from hypothesis import given, settings
from hypothesis import strategies as st

from mirblab.core.errors import MirblabError
from mirblab.data.collection import load_folder
from mirblab.sources.shared.builder import connected_groups
from mirblab.sources.stackexchange import build as stackexchange_build


def post(number: int, body: str = "", title: str = "t", tags: str = "<a>", kind: int = 1, **more: str) -> str:
    cells = {"Id": f"{number}", "PostTypeId": f"{kind}", "Score": "1", "Body": body or f"<p>body {number}</p>"}
    cells |= {"Title": title, "Tags": tags} if kind == 1 else {}
    escaped = {key: escape(value).replace("\n", "&#xA;") for key, value in (cells | more).items()}
    return "<row " + " ".join(f'{key}="{value}"' for key, value in escaped.items()) + " />"


def link(one: object, other: object, kind: int = 3) -> str:
    return f'<row Id="9" PostId="{one}" RelatedPostId="{other}" LinkTypeId="{kind}" />'


def dump(folder: Path, posts: list[str], links: list[str]) -> Path:
    """Write a dump in the documented format; the posts begin on line 3."""
    folder.mkdir(parents=True)
    for name, elements in (("Posts", posts), ("PostLinks", links)):
        stem = name.lower()
        lines = ['\ufeff<?xml version="1.0" encoding="utf-8"?>', f"<{stem}>", *elements, f"</{stem}>", ""]
        (folder / f"{name}.xml").write_text("\r\n".join(lines), encoding="utf-8", newline="")
    return folder


def build(origin: Path, out: Path, **how: object) -> tuple[Path, dict[str, dict], dict[str, dict], dict]:
    [folder] = stackexchange_build.build(origin, out, **how)
    return folder, rows(folder / "corpus.jsonl"), rows(folder / "queries.jsonl"), card(folder)


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A dump with every rule: questions 1 to 16, the duplicates 1-2, 2-3 and 4-5, and much that is left out."""
    math = '<p>Is <span class="math-container">$a &amp;lt; b$</span>?</p>'
    posts = [
        post(1, "<p>one</p>", "First & <i>", "<calculus><real-analysis>"),
        post(2, math, "Second $x<y$", "|calculus|limits|"),
        post(3, "<p>a &lt;b&gt; c</p><pre><code>x\n y</code></pre>", "Third"),
        post(4, '<p><img src="https://i.example/x.png"></p>', "figure"),
        post(5, "<p>five</p>"),
        post(6, '<p>see <a href="https://example.org">this</a> <img src="x"></p>', "figure and link"),
        post(7, '<div class="s-table-container"><table><tr><td>1</td></tr></table></div>', "table"),
        post(8, '<p><a href="x">y</a></p>', "link"),
        post(9, "<p>an answer</p>", kind=2, ParentId="1"),
        post(10, "<p>a wiki</p>", kind=5),
        post(11, "<p> </p>", " "),
        post(12, "<p>bare</p>", "", ""),
        post(13, "<p>thirteen</p>"),
        post(14, "<p>fourteen</p>"),
        post(2, "<p>again</p>"),
        '<row Id="15" PostTypeId="1" Body="cut',
        '<row Id="x" PostTypeId="1" Title="t" Body="b" />',
        post(16, "<p>sixteen</p>"),
    ]
    links = [
        link(2, 1),
        link(3, 2),
        link(1, 2),
        link(4, 5),
        link(13, 13),
        link(13, 14, kind=1),
        link(13, 99),
        link(14, 9),
        link(16, 13),
        link("x", 13),
    ]
    return dump(tmp_path / "math.stackexchange.com", posts, links)


def test_the_collection_is_question_to_its_duplicates(small: Path, tmp_path: Path):
    """Components {1, 2, 3} and {13, 16}; queries are no documents; what nothing links is a document."""
    folder, corpus, queries, _ = build(small, tmp_path / "out")
    assert folder == tmp_path / "out" / "math.stackexchange-dup"
    found = judged(folder)
    groups = {frozenset({query} | documents) for query, documents in found.items()}
    assert groups == {frozenset("123"), frozenset({"13", "16"})}
    assert found.keys() == queries.keys()
    assert corpus.keys() == {"1", "2", "3", "5", "12", "13", "14", "16"} - queries.keys()
    assert [path.name for path in (folder / "qrels").iterdir()] == ["test.tsv"]


def test_texts_and_tags_are_read(small: Path, tmp_path: Path):
    """Titles are plain text, bodies HTML; both notations of tags; a query has its title before its text."""
    texts = {}
    for seed in range(8):
        _, corpus, queries, _ = build(small, tmp_path / "out", seed=seed)
        texts |= {name: (f"{row['title']} {row['text']}", row["tags"]) for name, row in corpus.items()}
        assert all((row["text"], row["tags"]) == texts[name] for name, row in queries.items() if name in texts)
        assert all(row.keys() == {"_id", "text", "tags"} for row in queries.values())
    assert texts["1"] == ("First & <i> one", ["calculus", "real-analysis"])
    assert texts["2"] == ("Second $x<y$ Is $a < b$?", ["calculus", "limits"])
    assert texts["3"] == ("Third a <b> c\nx\n y", ["a"])
    assert texts["12"] == (" bare", [])


def test_the_type_of_a_link_has_either_name(small: Path, tmp_path: Path):
    """As in the releases of ARQMath; a link without a type is counted."""
    folder, *_, about = build(small, tmp_path / "out")
    links = (small / "PostLinks.xml").read_text("utf-8")
    (small / "PostLinks.xml").write_text(links.replace("LinkTypeId", "PostLinkTypeId"), "utf-8")
    again, *_, other = build(small, tmp_path / "again")
    assert (again / "qrels/test.tsv").read_bytes() == (folder / "qrels/test.tsv").read_bytes()
    assert other["counts"] == about["counts"]
    (small / "PostLinks.xml").write_text(links.replace('LinkTypeId="1"', 'Kind="1"'), "utf-8")
    left_out = build(small, tmp_path / "third")[3]["counts"]["left_out"]
    assert left_out["PostLinks.xml: rows without LinkTypeId or PostLinkTypeId"] == 1


def test_everything_left_out_is_counted(small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """By reason, in the card and on the screen; broken rows with file and line."""
    *_, about = build(small, tmp_path / "out")
    left_out = {
        "questions with figures": 1,
        "questions with figures and links": 1,
        "questions with tables": 1,
        "questions with links": 1,
        "posts that are no questions (PostTypeId 2)": 1,
        "posts that are no questions (PostTypeId 5)": 1,
        "questions without text": 1,
        "questions kept although odd: no title": 1,
        "questions kept although odd: no tags": 1,
        "questions kept although odd: entities escaped twice (unescaped)": 1,
        "Posts.xml: rows that repeat an Id": 1,
        "Posts.xml: rows cut off": 1,
        "Posts.xml: rows without an Id that is a number": 1,
        "PostLinks.xml: rows without PostId and RelatedPostId as numbers": 1,
        "links that are no duplicates (LinkTypeId 1)": 1,
        "duplicate links given twice": 1,
        "duplicate links from a question to itself": 1,
        "duplicate links to or from questions that are missing or left out": 3,
    }
    assert about["counts"]["left_out"] == left_out
    assert set(about["examples"]) == {
        "Posts.xml, line 17: rows that repeat an Id (2)",
        "Posts.xml, line 18: rows cut off",
        "Posts.xml, line 19: rows without an Id that is a number",
        "PostLinks.xml, line 12: rows without PostId and RelatedPostId as numbers",
    }
    shown = capsys.readouterr().out
    assert "Posts.xml, line 18: rows cut off" in shown and "1  questions with tables" in shown
    assert "components of duplicates: 2; by number of questions: 1 of 2, 1 of 3" in shown


def test_the_card_says_what_the_collection_is(small: Path, tmp_path: Path):
    """Paper, instruction without a full stop, rule of tags, seed, sizes, and no path of this machine."""
    folder, corpus, queries, card = build(small, tmp_path / "out", seed=5)
    assert card["paper"] == "MSE Dup. Question Retrieval" and card["candidates"] == "tags" and card["seed"] == 5
    assert card["instruction"] == "Given a math question, retrieve questions that are duplicates of the given one"
    assert card["revision"].startswith("blake2b:") and "archive.org" in card["source"]
    largest = next(query for query, documents in judged(folder).items() if len(documents) == 2)
    sizes = {"number": 2, "largest": 3, "query_of_the_largest": largest, "by_size": {"2": 1, "3": 1}}
    assert card["components"] == sizes
    assert (card["counts"]["documents"], card["counts"]["queries"]) == (len(corpus), len(queries)) == (6, 2)
    assert str(tmp_path) not in (folder / "card.toml").read_text("utf-8")


def test_the_rule_of_tags_holds_once_loaded(small: Path, tmp_path: Path):
    """The gold stays, what shares half of the query's tags goes."""
    folder, _, queries, _ = build(small, tmp_path / "out")
    loaded = load_folder(folder)
    assert loaded.candidates.names == ["tags"]
    query = next(name for name in queries if name in ("13", "16"))
    row = list(loaded.queries.query_id).index(query)
    [allowed] = loaded.candidates.allowed([row])
    may = set(loaded.corpus.doc_id[allowed])
    assert {"13", "16"} - {query} <= may and not may & {"3", "5", "14"} and "12" in may


def test_a_chain_through_a_question_that_is_left_out_is_broken(tmp_path: Path):
    """The paper removes posts first and closes afterwards: 1 - 2 - 3 is nothing when 2 has a figure."""
    posts = [post(1), post(2, "<img src='x'>"), post(3), post(4), post(5)]
    origin = dump(tmp_path / "site", posts, [link(1, 2), link(2, 3), link(4, 5)])
    folder, corpus, _, _ = build(origin, tmp_path / "out")
    assert judged(folder) in ({"4": {"5"}}, {"5": {"4"}})
    assert {"1", "3"} <= corpus.keys()


def test_every_question_of_a_component_can_be_the_query(tmp_path: Path):
    """Drawn evenly: 2,000 pairs, either end about half of the time, other seeds draw others."""
    origin = dump(tmp_path / "site", [post(n) for n in range(4000)], [link(n, n + 1) for n in range(0, 4000, 2)])
    drawn = [set(build(origin, tmp_path / "out", seed=seed)[2]) for seed in (0, 1)]
    even = [sum(int(name) % 2 == 0 for name in names) for names in drawn]
    assert all(900 < count < 1100 for count in even) and 900 < len(drawn[0] & drawn[1]) < 1100


def test_shares_of_the_components_make_other_splits(tmp_path: Path):
    """100 components: 20 dev, 30 train, 50 test; no query twice, and a share of nothing makes no file."""
    origin = dump(tmp_path / "site", [post(n) for n in range(200)], [link(n, n + 1) for n in range(0, 200, 2)])
    folder, _, queries, _ = build(origin, tmp_path / "out", dev=0.2, train=0.3)
    found = {split: judged(folder, split) for split in ("test", "dev", "train")}
    assert {split: len(of) for split, of in found.items()} == {"test": 50, "dev": 20, "train": 30}
    assert sorted(name for of in found.values() for name in of) == sorted(queries)
    assert all(max(map(int, of)) > 100 > min(map(int, of)) for of in found.values()), "not in the order of the ids"
    folder, *_ = build(origin, tmp_path / "out", train=0.5)
    assert sorted(path.name for path in (folder / "qrels").iterdir()) == ["test.tsv", "train.tsv"]
    for shares in ({"dev": -0.1}, {"dev": 0.5, "train": 0.5}):
        with pytest.raises(MirblabError, match="shares from 0 whose sum is below 1"):
            build(origin, tmp_path / "out", **shares)


def test_the_same_seed_gives_the_same_bytes_in_every_process(small: Path, tmp_path: Path):
    """Whatever the order of sets; another seed gives others."""
    found = []
    for run, (hash_seed, seed) in enumerate([("1", 0), ("2", 0), ("3", 1)]):
        where = f"{str(small)!r}, {str(tmp_path / f'o{run}')!r}"
        code = f"from mirblab.sources.stackexchange import build; build.build({where}, seed={seed})"
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        subprocess.run([sys.executable, "-c", code], env=environment, check=True, capture_output=True)
        found.append(content(tmp_path / f"o{run}"))
    assert found[0] == found[1] and len(found[0]) == 5
    assert found[0] != found[2]


def test_an_archive_and_a_folder_give_the_same_collection(small: Path, tmp_path: Path):
    """But for the revision and the command, which name what was given."""
    archive = tmp_path / "math.stackexchange.com.7z"
    with py7zr.SevenZipFile(archive, "w") as file:
        for name in ("Posts.xml", "PostLinks.xml"):
            file.write(small / name, name)
    one, other = (content(build(origin, tmp_path / f"{n}")[0]) for n, origin in enumerate([small, archive]))
    assert all(one.pop(name) != other.pop(name) for name in ("card.toml", "digests.txt")) and one == other


def test_names_can_be_given(small: Path, tmp_path: Path):
    """And are checked."""
    assert build(small, tmp_path / "out", name="mine")[3]["name"] == "mine"
    with pytest.raises(MirblabError, match="cannot name a collection"):
        build(small, tmp_path / "out", name="a/b")
    with pytest.raises(MirblabError, match=r"--from: a .7z archive of https://archive.org"):
        stackexchange_build.build(None, tmp_path / "out")


def test_a_failed_build_changes_nothing(small: Path, tmp_path: Path):
    """No duplicates, or a file that breaks off: the older collection stays, and nothing is left beside it."""
    folder, *_ = build(small, tmp_path / "out")
    before = content(tmp_path / "out")
    other = dump(tmp_path / "other" / small.name, [post(1), post(2)], [link(7, 8)])
    with pytest.raises(MirblabError, match="no two questions that are kept are duplicates of each other, of 1 dup"):
        build(other, tmp_path / "out")
    data = gzip.compress((small / "Posts.xml").read_bytes())
    (small / "Posts.xml").unlink()
    (small / "Posts.xml.gz").write_bytes(data[:-20])
    with pytest.raises(MirblabError, match=r"Posts.xml.gz breaks off after \d+ rows"):
        build(small, tmp_path / "out")
    assert content(tmp_path / "out") == before
    assert [path.name for path in (tmp_path / "out").iterdir()] == [folder.name]


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=40))
@settings(max_examples=300, deadline=None)
def test_components_are_the_transitive_closure(pairs: list[tuple[int, int]]):
    """The oracle closes the relation step by step; the order and direction of the links do not matter."""
    reach = {thing: {thing} for pair in pairs for thing in pair}
    for _ in reach:
        for one, other in pairs:
            both = reach[one] | reach[other]
            reach |= {thing: both for thing in both}
    expected = sorted(sorted(group) for group in {frozenset(group) for group in reach.values()})
    assert connected_groups(pairs) == expected
    assert connected_groups([(other, one) for one, other in reversed(pairs)]) == expected


def test_a_long_chain_needs_no_deep_recursion():
    """A hundred thousand in a row, either way."""
    chain = [(n, n + 1) for n in range(100_000)]
    assert connected_groups(chain) == connected_groups(chain[::-1]) == [list(range(100_001))]


def oracle(posts: Path, links: Path) -> tuple[Counter[str], set[str], set[frozenset[str]]]:
    """Return why questions fall, those kept, and the components, by lxml and scipy."""
    import numpy as np
    from lxml import etree
    from lxml import html as parser
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    reasons, kept = Counter(), []
    with gzip.open(posts) as file:
        for row in etree.parse(file).getroot():
            if row.get("PostTypeId") == "1":
                body = parser.fromstring(f"<div>{row.get('Body')}</div>")
                kinds = {"figures": "img", "links": "a", "tables": "table"}
                names = [what for what, tag in kinds.items() if list(body.iter(tag))]
                reasons[" and ".join(names)] += 1
                kept += [] if names else [row.get("Id")]
    with gzip.open(links) as file:
        pairs = [
            (kept.index(row.get("PostId")), kept.index(row.get("RelatedPostId")))
            for row in etree.parse(file).getroot()
            if row.get("LinkTypeId") == "3" and {row.get("PostId"), row.get("RelatedPostId")} <= set(kept)
        ]
    ends = np.array(pairs).T
    _, labels = connected_components(coo_array((np.ones(len(pairs)), ends), shape=(len(kept),) * 2))
    groups = {frozenset(kept[place] for place in np.flatnonzero(labels == label)) for label in np.unique(labels)}
    return reasons, set(kept), {group for group in groups if len(group) > 1}


def test_the_real_posts_of_arqmath_agree_with_an_oracle(shared_file: Callable[[str], Path], tmp_path: Path):
    """2,769 questions, 3,395 answers, 1,616 duplicate links; lxml and scipy find the same questions and components."""
    source = shared_file("sources/arqmath-collection")
    folder, corpus, queries, card = build(source, tmp_path)
    reasons, kept, groups = oracle(source / "Posts.V1.3.xml.gz", source / "PostLinks.V1.3.xml.gz")
    left_out = card["counts"]["left_out"]
    assert left_out["posts that are no questions (PostTypeId 2)"] == 3395
    assert left_out["links that are no duplicates (LinkTypeId 1)"] == 5411
    assert len(corpus) + len(queries) == len(kept) == reasons[""]
    assert corpus.keys() | queries.keys() == kept and not corpus.keys() & queries.keys()
    assert reasons.total() == 2769
    assert {f"questions with {why}": n for why, n in reasons.items() if why}.items() <= left_out.items()
    assert {frozenset({query} | documents) for query, documents in judged(folder).items()} == groups
    assert len(groups) == card["components"]["number"] == len(queries)
    links = sum(count for reason, count in left_out.items() if reason.startswith("duplicate links"))
    assert 1616 - links >= sum(len(group) - 1 for group in groups)


def coffee_dump(shared_file: Callable[[str], Path], tmp_path: Path) -> Path:
    """Return a dump with the posts of the coffee site; the test is skipped where they are not at hand."""
    source = shared_file("sources/stackexchange")
    origin = tmp_path / "coffee.stackexchange.com"
    origin.mkdir()
    shutil.copyfile(source / "coffee.Posts.xml.gz", origin / "Posts.xml.gz")
    return origin


def test_the_real_posts_of_a_site_are_read(shared_file: Callable[[str], Path], tmp_path: Path):
    """The coffee site's 225 questions; its own links are not at hand, so that those of another site find nothing."""
    origin = coffee_dump(shared_file, tmp_path)
    shutil.copyfile(shared_file("sources/stackexchange/other-site.PostLinks.xml.gz"), origin / "PostLinks.xml.gz")
    with pytest.raises(MirblabError, match="no two questions that are kept .* of 92 duplicate links"):
        build(origin, tmp_path / "out")
    (origin / "PostLinks.xml.gz").write_bytes(gzip.compress(f"<postlinks>{link(2, 3)}</postlinks>".encode()))
    _, corpus, queries, card = build(origin, tmp_path / "out")
    left_out = card["counts"]["left_out"]
    assert sum(n for why, n in left_out.items() if why.startswith("questions with")) == 225 - len(corpus) - len(queries)
    assert (left_out["posts that are no questions (PostTypeId 2)"], len(queries)) == (327, 1)
    everything = corpus | queries
    assert everything.keys() >= {"2", "3"} and all(row["tags"] for row in everything.values())
    assert card["name"] == "coffee.stackexchange-dup" and "paper" not in card


def answer(number: int, parent: object, score: object = 1, **more: str) -> str:
    return post(number, kind=2, **({"ParentId": f"{parent}", "Score": f"{score}"} | more))


@pytest.fixture
def answered(tmp_path: Path) -> Path:
    """A dump of questions 1 to 5 and 20, their answers, one before its question, and much that is left out."""
    figure = '<p>See <a href="https://example.org">this</a> <img src="x"></p>'
    posts = [
        post(1, "<p>one</p>", "First", "<calculus><limits>", AcceptedAnswerId="11"),
        answer(11, 1, 0),  # accepted
        answer(12, 1, 8),  # more than seven
        answer(13, 1, 7),
        answer(14, 1, -9),
        answer(21, 20, 8, Body=figure),  # before its question
        post(2, figure, "Second", "|algebra|", AcceptedAnswerId="19"),  # of an answer that is not there
        answer(15, 2, 8),
        post(3, "<p>three</p>", tags="<a>", AcceptedAnswerId="13"),  # of an answer to another question
        answer(16, 3, 7),
        post(4, "<p>four</p>"),
        answer(17, 99, 50),
        answer(18, 4, 50, Body="<p><img src='x'></p>"),
        answer(22, 4, "many"),
        post(5, " ", " "),
        answer(23, 5, 50),
        answer(11, 4, 50),
        post(30, kind=5),
        answer(24, "x", 50),
        post(20, "<p>twenty &amp;amp; more</p>", "", "", AcceptedAnswerId=""),
    ]
    folder = dump(tmp_path / "math.stackexchange.com", posts, [])
    (folder / "PostLinks.xml").unlink()
    return folder


def test_questions_find_their_accepted_answers_and_those_with_many_votes(answered: Path, tmp_path: Path):
    """More than seven, or as many as are wanted; the others are documents that nobody judged."""
    folder, corpus, queries, about = build(answered, tmp_path / "out", relevant="answers")
    assert folder.name == about["name"] == "math.stackexchange-answers"
    assert judged(folder) == {"1": {"11", "12"}, "2": {"15"}, "20": {"21"}}
    assert queries.keys() == {"1", "2", "20"}
    assert corpus.keys() == {"11", "12", "13", "14", "15", "16", "21", "22"}
    assert about["relevant_answers"] == {"votes": 7, "accepted": 1, "by_votes_only": 3}
    assert load_folder(folder).candidates.names == [] and "follows" not in about
    folder, *_ = build(answered, tmp_path / "out", relevant="answers", votes=6)
    assert judged(folder) == {"1": {"11", "12", "13"}, "2": {"15"}, "3": {"16"}, "20": {"21"}}


def test_an_answer_has_the_tags_of_its_question(answered: Path, tmp_path: Path):
    """Also one that stands before it; of figures and links the words are kept."""
    _, corpus, queries, _ = build(answered, tmp_path / "out", relevant="answers")
    tags = {name: row["tags"] for name, row in corpus.items()}
    assert tags["11"] == tags["14"] == queries["1"]["tags"] == ["calculus", "limits"]
    assert tags["15"] == ["algebra"] and tags["21"] == queries["20"]["tags"] == []
    assert {row["metadata"]["question"] for name, row in corpus.items() if name in ("11", "14")} == {"1"}
    assert corpus["21"]["text"] == "See this" and corpus["11"]["text"] == "body 11"
    assert [queries[name]["text"] for name in ("1", "2", "20")] == ["First one", "Second See this", "twenty & more"]


def test_what_is_left_out_of_the_answers_is_counted(answered: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """By reason, in the card and on the screen."""
    *_, about = build(answered, tmp_path / "out", relevant="answers")
    assert about["counts"]["left_out"] == {
        "answers that are not relevant to their question (documents without a judgement)": 4,
        "answers whose question is missing or left out": 3,
        "answers with figures and links (kept, with their words only)": 1,
        "answers without text": 1,
        "answers kept although odd: no Score that is a number": 1,
        "questions whose accepted answer is missing, left out or another question's": 2,
        "questions with figures and links (kept, with their words only)": 1,
        "questions without a relevant answer (no queries)": 2,
        "questions without text": 1,
        "questions kept although odd: entities escaped twice (unescaped)": 1,
        "questions kept although odd: no tags": 1,
        "questions kept although odd: no title": 1,
        "posts that are no questions and no answers (PostTypeId 5)": 1,
        "Posts.xml: rows that repeat an Id": 1,
    }
    shown = capsys.readouterr().out
    assert "relevant answers: 1 accepted, 3 others with more than 7 votes" in shown
    assert "Posts.xml, line 19: rows that repeat an Id (11)" in shown


def test_questions_with_answers_are_split_by_share(tmp_path: Path):
    """100 questions of two relevant answers: 20 dev, 70 train, 10 test, none twice; the seed decides which."""
    posts = [each for n in range(100) for each in (post(n), answer(n + 100, n, 9), answer(n + 200, n, 8))]
    origin = dump(tmp_path / "site", posts, [])
    drawn = []
    for seed in (0, 0, 1):
        folder, _, queries, _ = build(origin, tmp_path / "o", relevant="answers", dev=0.2, train=0.7, seed=seed)
        splits = {split: judged(folder, split) for split in ("test", "dev", "train")}
        assert {split: len(of) for split, of in splits.items()} == {"test": 10, "dev": 20, "train": 70}
        assert sorted(name for of in splits.values() for name in of) == sorted(queries)
        assert all(
            documents == {f"{int(q) + 100}", f"{int(q) + 200}"} for of in splits.values() for q, documents in of.items()
        )
        drawn.append(set(splits["dev"]))
    assert drawn[0] == drawn[1] != drawn[2]


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"relevant": "answer"}, "answer.*did you mean 'answers'"),
        ({"relevant": "answers", "votes": -1}, "votes is a whole number from 0, found -1"),
        ({"relevant": "answers", "votes": "many"}, "votes is a whole number from 0, found 'many'"),
        ({"votes": 3}, "duplicates have none; write --set relevant=answers"),
        (
            {"relevant": "answers", "votes": 60},
            "of 2 answers to 2 questions none is accepted or has more than 60 votes",
        ),
    ],
)
def test_wrong_options_for_answers_are_refused(tmp_path: Path, how: dict[str, object], message: str):
    """And nothing is written."""
    origin = dump(tmp_path / "site", [post(1), post(2), answer(3, 1, 60), answer(4, 2, 8)], [link(1, 2)])
    with pytest.raises(MirblabError, match=message):
        build(origin, tmp_path / "out", **how)
    assert not any((tmp_path / "out").glob("*"))


def test_the_real_answers_of_a_site_agree_with_an_oracle(shared_file: Callable[[str], Path], tmp_path: Path):
    """The coffee site's 327 answers to 225 questions; ElementTree finds the same judgements, texts and tags."""
    from xml.etree import ElementTree

    origin = coffee_dump(shared_file, tmp_path)
    folder, corpus, queries, about = build(origin, tmp_path / "out", relevant="answers", train=0.5)
    with gzip.open(origin / "Posts.xml.gz") as file:
        posts = ElementTree.parse(file).getroot().findall("row")
    questions = {row.get("Id"): row for row in posts if row.get("PostTypeId") == "1"}
    answers = {row.get("Id"): row for row in posts if row.get("PostTypeId") == "2"}
    expected: dict[str, set[str]] = {}
    for name, row in answers.items():
        if int(row.get("Score")) > 7 or questions[row.get("ParentId")].get("AcceptedAnswerId") == name:
            expected.setdefault(row.get("ParentId"), set()).add(name)
    assert (len(questions), len(answers), len(expected), sum(map(len, expected.values()))) == (225, 327, 120, 128)
    assert judged(folder) == expected and queries.keys() == expected.keys() and corpus.keys() == answers.keys()
    assert about["counts"]["queries_train"] == 60 == len(judged(folder, "train"))
    assert all(
        f"<{'><'.join(row['tags'])}>" == questions[row["metadata"]["question"]].get("Tags") for row in corpus.values()
    )
    assert all(row["metadata"]["question"] == answers[name].get("ParentId") for name, row in corpus.items())
