"""The ARQMath builder on a small hand-made release that has every trap, and once on the real material."""

from __future__ import annotations

import gzip
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from built_collections import card, rows

from mirblab.core.errors import MirblabError
from mirblab.data.collection import load_folder
from mirblab.sources.arqmath import build
from mirblab.sources.arqmath.formulas import EMPTY, IN_COMMENTS, NOT_IN_POST, read_formula_rows
from mirblab.sources.arqmath.release import find_release, lab_of_topic, read_topics
from mirblab.sources.shared import readers
from mirblab.sources.stackexchange.dump import RowProblems

NAMES = ("arqmath-2022-answers", "arqmath-2022-formulas", "arqmath-2022-formulas-alone")
COLUMNS = "id post_id thread_id type comment_id old_visual_id visual_id issue formula".split()


def span(latex: str, name: str = "") -> str:
    """Return a formula as the posts have it, escaped for HTML once."""
    return f'<span class="math-container"{name and f" id={name!r}"}>${latex}$</span>'


def attribute(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;").replace("\n", "&#xA;")


def post(number: int | str, kind: int, body: str, year: int = 2012) -> str:
    body = attribute(body)
    return (
        f'<row Id="{number}" PostTypeId="{kind}" ParentId="1" CreationDate="{year}-01-01T00:00:00.000" Body="{body}" />'
    )


POSTS = [
    post(1, 1, "<p>A question, not an answer.</p>"),
    post(10, 2, f"<p>Take {span('a &amp;amp;lt; b', '7')} at <b>5% off</b>, {span('x% +y')}.</p>"),
    post(11, 2, "<p>No.</p>"),
    post(11, 2, "<p>The same number again.</p>"),
    post(12, 2, "  "),
    post(13, 2, "<p>Written later.</p>", 2019),
    post(14, 2, "<p>Not judged.</p>"),
]

FORMULAS = [
    # Of visual id 100 the formulas 3 and 5 may not stand for it, 7 comes before 6 in the file.
    (5, 10, 1, "comment", 4, 1100, 100, "", "in a comment"),
    (7, 10, 1, "answer", "", 1100, 100, "v", "a+b+c"),
    (6, 1, 1, "question", "", 1100, 100, "", "a&gt;b% +c"),
    (3, 10, 1, "answer", "", 1100, 100, "d", "not in the post"),
    (8, 10, 1, "answer", "", 1200, 200, "", " "),
    (9, 11, 1, "title", "", 1300, 300, "", r"\delta&amp;% gt;0"),
    (21, 14, 1, "answer", "", 1400, 400, "", '"quoted'),
]
TOPICS1 = """<?xml version="1.0"?>
<Topics>
  <Topic number="A.301"><Title>Is &lt;span class="math-container" id="q_1"&gt;$n&amp;lt;m$&lt;/span&gt;?</Title>
    <Question>&lt;p&gt;I &lt;em&gt;guess&lt;/em&gt;.&lt;/p&gt; &lt;p&gt;So?&lt;/p&gt;</Question>
    <Tags>algebra,order</Tags></Topic>
  <Topic number="A.302"><Title>Unjudged</Title><Question></Question><Tags></Tags></Topic>
  <Topic number="A.303"><Title>Only answers that are gone</Title><Question></Question><Tags></Tags></Topic>
</Topics>"""
TOPICS2 = """<Topics><Topic number="B.301"><Formula_Id>q_1</Formula_Id><Latex>n&amp;lt;m</Latex><Title>Why?</Title>
<Question>&lt;p&gt;Because.&lt;/p&gt;</Question><Tags>order</Tags></Topic></Topics>"""
JUDGED = ("301 10 3", "301 11 0", "301 10 3", "301 12 1", "301 13 1", "303 99 2", "309 10 1")
QRELS1 = "".join("A.{}\t0\t{}\t{}\n".format(*line.split()) for line in JUDGED)
QRELS2 = "B.301 0 100 3\nB.301 0 200 1\nB.301 0 300 0\nB.301 0 999 2\n"


def table(rows: list[tuple[object, ...]], columns: list[str] = COLUMNS) -> str:
    return "".join("\t".join(map(str, row)) + "\n" for row in [tuple(columns), *rows]).replace('"quoted', '"""quoted"')


@pytest.fixture
def release(tmp_path: Path) -> Path:
    """Return a folder laid out like the release, each file somewhere below it."""
    root = tmp_path / "release"
    files = {
        "Collection/Posts.V1.3.xml": '<?xml version="1.0" encoding="utf-8"?>\n<posts>\n'
        + "\n".join(POSTS)
        + "\n</posts>\n",
        "Formulas/latex_representation_v3/2.tsv": table(FORMULAS[3:]),
        "Formulas/latex_representation_v3/1.tsv": table(FORMULAS[:3]),
        "Formulas/slt_representation_v3/1.tsv": table([(6, 1, 1, "question", "", 1, 100, "", "<math/>")]),
        "Topics/Topics_Task1_2022_V0.1.xml": TOPICS1,
        "Topics/Topics_V1.1.xml": TOPICS2,
        "Qrels/qrel_task1_2022_official": QRELS1,
        "Qrels/qrel_task1_2022_all.tsv": QRELS1 + "A.302\t0\t10\t1\n",
        "Qrels/qrel_task2_2022_official.tsv": QRELS2,
        "Qrels/.qrel_task2_2022_official.tsv": "not read, because it is hidden",
        "Qrels/qrel_reader.py": "no judgements",
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    return root


def test_a_release_makes_three_collections_that_load(release: Path, tmp_path: Path):
    """Grades of 0 stay; the judged pool is the candidates; 2022 is the year of MIRB."""
    folders = build.build(release, tmp_path / "out")
    assert [folder.name for folder in folders] == list(NAMES)
    answers, formulas, alone = (load_folder(folder) for folder in folders)
    assert answers.qrels[["query_id", "doc_id", "relevance"]].values.tolist() == [
        ["A.301", "10", 3],
        ["A.301", "11", 0],
    ]
    assert formulas.qrels.doc_id.tolist() == ["100", "300"] == alone.qrels.doc_id.tolist()
    assert [c.card.paper for c in (answers, formulas, alone)] == ["ARQMath-Task-1", "ARQMath-Task-2", ""]
    assert answers.card.candidates == ["judged"] and answers.card.relevant_from == 2
    assert answers.card.relevance_levels == [0, 1, 2, 3]


def test_answers_and_questions_are_plain_text_with_formulas_between_dollars(release: Path, tmp_path: Path):
    """Entities of any depth are unescaped, line marks dropped inside formulas only, tags kept as a list."""
    folder, *_ = build.build(release, tmp_path / "out")
    assert rows(folder / "corpus.jsonl") == {
        "10": {"_id": "10", "title": "", "text": "Take $a < b$ at 5% off, $x+y$.", "metadata": {"question": "1"}},
        "11": {"_id": "11", "title": "", "text": "No.", "metadata": {"question": "1"}},
    }
    assert rows(folder / "queries.jsonl") == {
        "A.301": {"_id": "A.301", "text": "Is $n<m$? I guess. So?", "tags": ["algebra", "order"]}
    }


def test_a_formula_stands_for_its_visual_id_by_the_smallest_id(release: Path, tmp_path: Path):
    """Not those in comments, nor those missing from their post; the post is named; the query has its question."""
    _, formulas, alone = build.build(release, tmp_path / "out")
    docs = rows(formulas / "corpus.jsonl")
    assert docs["100"]["text"] == "a>b+c"
    assert docs["100"]["metadata"] == {"post_id": "1", "formula_id": "6", "type": "question"}
    assert docs["300"]["text"] == r"\delta>0"
    assert rows(formulas / "queries.jsonl")["B.301"]["text"] == "Formula: $n<m$ Context: Why? Because."
    assert rows(alone / "queries.jsonl")["B.301"]["text"] == "n<m"
    assert rows(alone / "corpus.jsonl") == docs


def test_what_is_left_out_is_counted_and_named(release: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """By reason, in the card and on the screen."""
    answers, formulas, _ = build.build(release, tmp_path / "out")
    left_out = card(answers)["counts"]["left_out"]
    assert left_out == {
        "Posts.V1.3.xml: answers that repeat an Id": 1,
        "answers that no one judged": 1,
        "answers with HTML entities left in them (unescaped)": 1,
        "answers with LaTeXML's line marks (dropped)": 1,
        "answers without text": 1,
        "answers written after 2018, where the collection ends": 1,
        "files of judgements passed over for the official one": 1,
        "judged answers that are not there": 3,
        "judgements given twice": 1,
        "judgements of answers that are not there (grade 1)": 2,
        "judgements of answers that are not there (grade 2)": 1,
        "judgements of topics that the file of topics lacks": 1,
        "posts that are no answers (PostTypeId 1)": 1,
        "topics whose judged answers are not there (no queries)": 1,
        "topics without a judgement (no queries)": 1,
    }
    assert card(answers)["first_missing_documents"] == ["12", "13", "99"]
    assert card(answers)["examples"] == ["Posts.V1.3.xml, line 6: answers that repeat an Id (11)"]
    assert card(formulas)["judgements_file"] == "qrel_task2_2022_official.tsv"
    counted = card(formulas)["counts"]["left_out"]
    assert counted[IN_COMMENTS] == counted[NOT_IN_POST] == 1
    assert counted[EMPTY] == 1
    assert "judged answers that are not there" in capsys.readouterr().out


def test_with_pool_all_every_answer_and_formula_is_a_document(release: Path, tmp_path: Path):
    """Without candidates; a quoted cell of the table is read as csv reads it."""
    folders = build.build(release, tmp_path / "out", pool="all")
    assert [folder.name for folder in folders] == [f"{name}-open" for name in NAMES]
    assert list(rows(folders[0] / "corpus.jsonl")) == ["10", "11", "14"]
    docs = rows(folders[1] / "corpus.jsonl")
    assert sorted(docs) == ["100", "300", "400"]
    assert docs["400"]["text"] == '"quoted' and docs["100"]["text"] == "a>b+c"
    assert "candidates" not in card(folders[0]) and "paper" not in card(folders[0])
    with pytest.raises(MirblabError, match="no pool 'judge'; did you mean 'judged'"):
        build.build(release, tmp_path / "out", pool="judge")


def test_two_folders_of_gzipped_files_give_the_same_bytes(release: Path, tmp_path: Path):
    """But for what the card says of the origin."""
    first = build.build(release, tmp_path / "one")
    apart = tmp_path / "apart"
    shutil.move(release / "Qrels", apart)
    (apart / "qrel_task1_2022_all.tsv").unlink()
    for path in [
        path for path in (*apart.iterdir(), *release.rglob("*.[xt][ms][lv]")) if not path.name.startswith(".")
    ]:
        path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    third = build.build(f"{release}{os.pathsep}{apart}", tmp_path / "three")
    for one, other in zip(first, third, strict=True):
        for name in ("corpus.jsonl", "queries.jsonl", "qrels/test.tsv"):
            assert (one / name).read_bytes() == (other / name).read_bytes(), name
    assert f" --from release{os.pathsep}apart " in card(third[0])["command"]


def test_a_lab_that_is_not_complete_is_named(release: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """The others are built; when none is complete, what each lacks is said and nothing is written."""
    shutil.rmtree(release / "Collection")
    assert [folder.name for folder in build.build(release, tmp_path / "out")] == list(NAMES[1:])
    assert "not built: task 1 of 2022, which has no posts (Posts.V1.3.xml)" in capsys.readouterr().out
    shutil.rmtree(release / "Qrels")
    with pytest.raises(MirblabError, match="task 2 of 2022 has no judgements"):
        build.build(release, tmp_path / "none")
    assert not (tmp_path / "none").exists()
    with pytest.raises(MirblabError, match="neither topics .* nor judgements"):
        build.build(tmp_path / "out", tmp_path / "none")
    with pytest.raises(FileNotFoundError, match="no .*nowhere"):
        build.build(f"{release}{os.pathsep}{tmp_path / 'nowhere'}", tmp_path / "none")
    with pytest.raises(MirblabError, match="--from"):
        build.build(None, tmp_path / "none")


def test_two_files_of_one_content_are_refused(release: Path):
    """Topics, posts or judgements of one lab, when neither is the official one."""
    other = release / "Qrels" / "qrel_other.tsv"
    other.write_text(QRELS2)
    assert find_release(release).labs[2022, 2].passed_over == ["qrel_other.tsv"]
    other.with_name("qrel_official_too.tsv").write_text(QRELS2)
    with pytest.raises(MirblabError, match="several files judge task 2 of 2022: .*keep one"):
        find_release(release)
    other.with_name("qrel_official_too.tsv").unlink()
    shutil.copy(release / "Topics/Topics_V1.1.xml", release / "topics_again.xml")
    with pytest.raises(MirblabError, match="topics of task 2 of 2022, as another file has"):
        find_release(release)
    shutil.copy(release / "Collection/Posts.V1.3.xml", release / "Posts.xml")
    with pytest.raises(MirblabError, match="several files have posts"):
        find_release(release)


def test_only_version_3_of_the_formulas_is_taken(release: Path):
    """The folder's name says which it is."""
    (release / "Formulas/latex_representation_v3").rename(release / "Formulas/latex_representation_v2")
    with pytest.raises(MirblabError, match="found latex_representation_v2; .* latex_representation_v3"):
        find_release(release)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("Qrels/qrel_task2_2022_official.tsv", "B.301\t0\t100\t3\nB.301\t0\t5\n", "line 2: expected topic.*found 3"),
        ("Qrels/qrel_task2_2022_official.tsv", "B.301 0 100 4\n", "line 1: the grade must be .* 0 to 3, found '4'"),
        ("Qrels/qrel_task2_2022_official.tsv", "B.301 0 100 1.5\n", "line 1: the grade"),
        (
            "Qrels/qrel_task2_2022_official.tsv",
            "B.301 0 1 1\nB.301 0 1 2\n",
            "line 2: judges '1' .* second time, 2 after 1",
        ),
        ("Qrels/qrel_task2_2022_official.tsv", "\n", "no judgements"),
        ("Qrels/qrel_task2_2022_official.tsv", "Q7 0 100 1\n", "'Q7' is no topic of ARQMath"),
        ("Topics/Topics_V1.1.xml", TOPICS2.replace("</Latex>", ""), "line 2: not well-formed"),
        ("Topics/Topics_V1.1.xml", "<!DOCTYPE x [<!ENTITY e 'f'>]><Topics/>", "line 1: a document type"),
        ("Topics/Topics_V1.1.xml", TOPICS2.replace("n&amp;lt;m", ""), "line 2: the topic B.301 has no Latex"),
        ("Topics/Topics_V1.1.xml", TOPICS2.replace("B.301", "C.1"), "line 1: the number 'C.1'"),
        ("Topics/Topics_V1.1.xml", "<Topics></Topics>", "has no <Topic"),
        (
            "Formulas/latex_representation_v3/1.tsv",
            table(FORMULAS, COLUMNS[1:]),
            "1.tsv, line 1: no column id; found post",
        ),
        ("Formulas/latex_representation_v3/1.tsv", table(FORMULAS) + "\udcff", "1.tsv cannot be read"),
    ],
)
def test_a_broken_file_is_refused_with_its_line(release: Path, tmp_path: Path, name: str, text: str, message: str):
    """And nothing is written."""
    (release / name).write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(MirblabError, match=message):
        build.build(release, tmp_path / "out")
    assert not list((tmp_path / "out").glob("*")) if (tmp_path / "out").exists() else True


@pytest.mark.parametrize(
    "name",
    [
        "Qrels/qrel_task2_2022_official.tsv",
        "Topics/Topics_V1.1.xml",
        "Formulas/latex_representation_v3/1.tsv",
        "Collection/Posts.V1.3.xml",
    ],
)
def test_a_truncated_gzip_file_is_refused(release: Path, tmp_path: Path, name: str):
    """With its name, and nothing is written."""
    path = release / name
    path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes())[:-12])
    path.unlink()
    with pytest.raises(MirblabError, match=path.name):
        build.build(release, tmp_path / "out")
    assert not list((tmp_path / "out").glob("*")) if (tmp_path / "out").exists() else True


def test_broken_rows_of_formulas_are_counted_and_named(tmp_path: Path):
    """Reading goes on behind them."""
    path = tmp_path / "1.tsv"
    good, other = table(FORMULAS[:2]).splitlines(keepends=True)[1:]
    path.write_text(table([]) + good + "1\t2\n" + other.replace("7", "x", 1) + other)
    odd = RowProblems()
    found = list(read_formula_rows([path], odd))
    assert [row[0] for row in found] == ["5", "7"]
    assert odd.examples == [
        "1.tsv, line 3: rows with another number of cells (2)",
        "1.tsv, line 4: rows without whole numbers as ids",
    ]


def test_judgements_by_other_ids_are_refused():
    """Everything would load and mean nothing; the message says which ids they look like."""
    latex = [f"\\int_0^{n} x^{{{n}}} dx + \\alpha_{n}" for n in range(12)]
    queries = {f"B.{n + 1}": latex[n] for n in range(12)}
    judged = readers.FileJudgements(Path("qrel.tsv"), {(f"B.{n + 1}", str(n)): 3 for n in range(12)}, 0)
    right = {str(n): latex[n] for n in range(12)}
    wrong = {str(n): "k" for n in range(12)}
    fits = build.check_visual_ids(judged, queries, {"visual_id": right, "old_visual_id": {}, "id": {}})
    assert fits == {"share_found": 1.0, "pairs_of_grade_3": 12, "similarity": 1.0}
    with pytest.raises(MirblabError, match=r"similarity of 0.0\d \(12 pairs.*ids of single formulas \(column id\)"):
        build.check_visual_ids(judged, queries, {"visual_id": wrong, "old_visual_id": wrong, "id": right})
    with pytest.raises(MirblabError, match="visual ids of version 2"):
        build.check_visual_ids(judged, queries, {"visual_id": wrong, "old_visual_id": right, "id": wrong})
    with pytest.raises(MirblabError, match="0.0 % of its ids .* another release: no column"):
        build.check_visual_ids(judged, queries, {"visual_id": {}, "old_visual_id": {}, "id": {}})


def real(shared_file: Callable[[str], Path]) -> str:
    return f"{shared_file('sources/arqmath-collection')}{os.pathsep}{shared_file('sources/arqmath-official')}"


def test_the_real_material_agrees_with_what_others_built_from_it(shared_file: Callable[[str], Path], tmp_path: Path):
    """Judgements to the last line; queries but for what the other builder loses; formulas but for the one chosen."""
    built = {folder.name: folder for folder in build.build(real(shared_file), tmp_path)}
    for mine, theirs, differ in (
        ("arqmath-2020-answers", "arqmath-2020-task1", set()),
        # Three have a bare align environment, which gets dollars here; A.258 has "M<x", cut off as a tag there.
        ("arqmath-2021-answers", "arqmath-2021-task1", {"A.255", "A.258", "A.268", "A.283"}),
        ("arqmath-2021-formulas-alone", "arqmath-2021-task2", set()),
    ):
        other = shared_file(f"data/{theirs}")
        lines = [(folder / "qrels/test.tsv").read_text().splitlines() for folder in (built[mine], other)]
        assert sorted(lines[0]) == sorted(lines[1])
        queries, expected = rows(built[mine] / "queries.jsonl"), rows(other / "queries.jsonl")
        assert {name for name, row in queries.items() if row["text"] != expected[name]["text"]} == differ
        docs, expected = rows(built[mine] / "corpus.jsonl"), rows(other / "corpus.jsonl")
        assert docs.keys() <= expected.keys()
    assert "M<x" in rows(built["arqmath-2021-answers"] / "queries.jsonl")["A.258"]["text"]
    assert [card(built[f"arqmath-{year}-formulas"])["visual_ids"]["pairs_of_grade_3"] for year in (2020, 2021)] == [
        48,
        144,
    ]
    texts = (built["arqmath-2021-formulas"] / "corpus.jsonl").read_text("utf-8")
    assert not any(entity in texts for entity in ("&lt;", "&gt;", "&amp;", "% "))


def test_on_the_real_material_ids_of_another_version_are_refused(shared_file: Callable[[str], Path], tmp_path: Path):
    """As many of them occur, but they mean other formulas."""
    folder = shutil.copytree(shared_file("sources/arqmath-official"), tmp_path / "official")
    for path in folder.glob("*task1*"):
        path.unlink()
    path = folder / "qrels.arqmath-2021-task2-official.v3.txt.gz"
    judged = [line.split("\t") for line in gzip.decompress(path.read_bytes()).decode().splitlines()]
    docs = [cells[2] for cells in judged]
    text = "".join(
        f"{cells[0]}\t0\t{doc}\t{cells[3]}\n" for cells, doc in zip(judged, docs[4000:] + docs[:4000], strict=True)
    )
    path.unlink()
    path.with_name("qrels.arqmath-2021-task2-official.v3.txt").write_text(text)
    with pytest.raises(MirblabError, match=r"11.0 % of its ids .* similarity of 0\.[12]\d .*no column of the formulas"):
        build.build(f"{shared_file('sources/arqmath-collection')}{os.pathsep}{folder}", tmp_path / "out")


def test_the_numbers_of_topics_say_their_lab(shared_file: Callable[[str], Path]):
    """All 383 real topics belong to the lab that their file names."""
    counts = {}
    for path in sorted(shared_file("sources/arqmath-official").glob("topics*.gz")):
        found = {lab_of_topic(topic.id) for topic in read_topics(path)}
        counts[path.name[15:25]] = (found, len(read_topics(path)))
    assert counts == {
        "2020-task1": ({(2020, 1)}, 98),
        "2020-task2": ({(2020, 2)}, 85),
        "2021-task1": ({(2021, 1)}, 100),
        "2021-task2": ({(2021, 2)}, 100),
    }
