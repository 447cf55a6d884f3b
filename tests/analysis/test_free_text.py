"""search: the documents of a text of one's own are those of a run with that query."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import mirblab as lab
from mirblab.analysis.searching import free_text
from mirblab.app.cli import app
from mirblab.core.errors import MirblabError
from mirblab.data.collection import Collection
from mirblab.sources.own.tex_files import document_files

TEXT = "Every finite integral domain is a field; $x^2 = 1$ has two solutions"


@pytest.fixture(scope="module")
def qa() -> Collection:
    return lab.load("mini-qa")


@pytest.mark.parametrize(
    ("by", "name"),
    [
        *((by, "mini-qa") for by in ("bm25", "bm25-okapi", "structure", "bm25+structure", "structure>approach0@20")),
        ("bm25~rm3", "mini-qa"),
        ("minilm~rocchio", "mini-hol"),
    ],
)
def test_a_query_of_the_collection_has_the_documents_of_its_run(by: str, name: str):
    """With their scores and judgements, however the text is wrapped into lines."""
    whole = lab.load(name)
    few, row = whole.sample(10), 7
    frame = lab.search("\n ".join(few.query_texts[row].split(" ")), whole, by, depth=6).frame
    run = lab.system(by).search(few, depth=1000)
    expected = run[run.query_id == few.query_ids[row]].head(6)
    assert frame.doc_id.tolist() == expected.doc_id.astype(str).tolist()
    np.testing.assert_allclose(frame.score, expected.score, rtol=1e-5)
    grades = whole.qrels[whole.qrels.query_id == few.query_ids[row]].set_index("doc_id").relevance
    assert frame.relevance.tolist() == [grades.get(doc_id, pd.NA) for doc_id in frame.doc_id]
    assert frame.index.tolist() == list(range(1, len(frame) + 1))


def test_another_text_is_searched_for_as_a_query_would_be(qa: Collection):
    """Without judgements; what matched are terms of the text, the rarest first."""
    queries = pd.DataFrame({"query_id": ["q"], "text": [TEXT]}).astype("str")
    alone = replace(qa, queries=queries, qrels=qa.qrels.head(0), oddities={})
    expected = lab.system("bm25").search(alone, depth=10)
    frame = lab.search(TEXT, qa, "bm25").frame
    assert frame.doc_id.tolist() == expected.doc_id.astype(str).tolist()
    np.testing.assert_allclose(frame.score, expected.score, rtol=1e-5)
    assert "relevance" not in frame and {"domain", "field"} <= set(frame.matched.iloc[0].split(", "))


def test_restrictions_hold_for_queries_of_the_collection_only():
    """A premise may not stand after the statement that it serves; a text of one's own may return all."""
    premises = lab.load("mini-premises")
    row = 0
    allowed = premises.candidates.select(np.array([row]))
    frame = lab.search(premises.query_texts[row], premises, "bm25", depth=50).frame
    positions = premises.doc_ids.get_indexer(pd.Index(frame.doc_id))
    assert allowed.permits(np.zeros(len(positions), np.int64), positions).all()
    free = lab.search(premises.query_texts[row] + " .", premises, "bm25", depth=50).frame
    positions = premises.doc_ids.get_indexer(pd.Index(free.doc_id))
    assert not allowed.permits(np.zeros(len(positions), np.int64), positions).all()


def test_several_texts_and_a_latex_file(qa: Collection, tmp_path):
    """Each is a query with a name: the beginning of the text, or the label of the statement."""
    frame = lab.search(["finite fields", "open sets"], qa, "bm25", depth=3).frame
    assert (
        frame["query"].tolist() == ["finite fields"] * 3 + ["open sets"] * 3 and frame.index.tolist() == [1, 2, 3] * 2
    )
    path = tmp_path / "notes.tex"
    path.write_text(
        "\\begin{theorem}\\label{thm:field} Every finite integral domain is a field.\\end{theorem}\n"
        "\\begin{lemma} A compact set is closed.\\end{lemma}\n",
        encoding="utf-8",
    )
    frame = lab.search(path, qa, "bm25", depth=2).frame
    assert frame["query"].unique().tolist() == ["thm:field", "A compact set is closed."]
    alone = lab.search("Every finite integral domain is a field.", qa, "bm25", depth=2).frame
    assert frame.doc_id.tolist()[:2] == alone.doc_id.tolist()


def test_the_caption_has_a_word_as_a_word_and_a_formula_as_a_formula():
    assert "for 'compact' by BM25" in lab.search("compact", "mini-qa", "bm25").caption
    assert "for '$x^2$' by Structure" in lab.search("x^2", "mini-wfb", "structure").caption


def test_a_text_in_which_a_system_finds_nothing(qa: Collection):
    """The table is empty, and says so, and how a formula is written where there is none."""
    nothing = "It has nothing that Structure finds in a document."
    table = lab.search("no formula here", qa, "structure")
    assert table.frame.empty and table.notes == [f"{nothing} Formulas stand between dollars: $x^2 + y^2$."]
    assert lab.search("nor here: $\\,$", qa, "structure").notes == [nothing]


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("  ", {}, "needs a text that is not empty"),
        ([], {}, "needs a text that is not empty"),
        (None, {}, "needs a text that is not empty, or several; found None"),
        (["a", 3], {}, "needs a text that is not empty"),
        ("a", {"depth": 0}, "depth must be at least 1, found 0"),
        ("a", {"by": "bm26"}, "did you mean 'bm25'"),
        ("a", {"by": "bm25+structure@cv"}, "answers the collection's queries only: its weights"),
    ],
)
def test_what_cannot_be_searched_for_is_refused(text, options: dict, message: str, qa: Collection):
    with pytest.raises(MirblabError, match=message):
        lab.search(text, qa, **{"by": "bm25", **options})


def test_a_latex_file_is_read_with_what_it_inputs(qa: Collection, tmp_path):
    """Macros of a file and of a package beside it, and the statements of a chapter, whatever else lies there."""
    parts = {
        "notes.tex": r"\input{macros}\usepackage{mine, amsmath}\include{chapters/one}"
        "\n\\begin{theorem}\\label{a} $\\RR$ is a \\kind.\\end{theorem}",
        "macros.tex": r"\newcommand{\RR}{\mathbb{R}}",
        "mine.sty": r"\newcommand{\kind}{field}",
        "chapters/one.tex": r"\begin{lemma}\label{b} It is not finite, and \input{chapters/two} holds.\end{lemma}",
        "chapters/two.tex": r"\input{notes}",
        "other.tex": r"\begin{lemma}\label{c} It is unread.\end{lemma}\renewcommand{\RR}{wrong}",
    }
    for name, text in parts.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert sorted(document_files(tmp_path / "notes.tex")) == sorted(parts.keys() - {"other.tex"})
    queries = dict(free_text._labelled_texts(tmp_path / "notes.tex"))
    assert queries["a"] == r"$\mathbb{R}$ is a field." and queries.keys() == {"a", "b"}


def test_a_latex_file_that_is_missing_or_has_no_statement(qa: Collection, tmp_path):
    with pytest.raises(MirblabError, match=r"missing\.tex is no file"):
        lab.search(tmp_path / "missing.tex", qa, "bm25")
    (tmp_path / "empty.tex").write_text("Nothing here.", encoding="utf-8")
    with pytest.raises(MirblabError, match=r"empty\.tex"):
        lab.search(tmp_path / "empty.tex", qa, "bm25")


def test_the_command_prints_documents_and_writes_them(tmp_path):
    """Words need no quotes; texts with brackets are no markup."""
    out = tmp_path / "found.csv"
    command = ["search", "mini-qa", "finite", "[/b]", "field", "--by", "bm25", "-n", "2", "--out", str(out)]
    printed = CliRunner().invoke(app, command, catch_exceptions=False).output
    written = pd.read_csv(out)
    assert written.columns.tolist() == ["rank", "doc_id", "score", "text", "matched"] and len(written) == 2
    assert all(doc_id in printed for doc_id in written.doc_id) and "[/b]" in printed
    with pytest.raises(MirblabError, match="give a text to search for"):
        CliRunner().invoke(app, ["search", "mini-qa"], catch_exceptions=False)


def test_the_default_is_the_weighted_fusion():
    """Without a system the search is that of hybrid."""
    text = "a finite integral domain is a field"
    default = lab.search(text, "mini-hol", depth=3)
    assert default.frame.equals(lab.search(text, "mini-hol", "hybrid", depth=3).frame)
    assert "BM25 + MiniLM (weighted)" in default.caption


@pytest.mark.parametrize(
    "text", ["the sum $a + b$ is $b + a$", "a + b = b + a", "`s.card` is what I look for, not words"]
)
@pytest.mark.parametrize("by", ["structure", "bm25>approach0@20", "structure>approach0@20"])
def test_a_text_is_read_beside_the_queries_of_a_formal_collection(by: str, text: str):
    """Its documents are those of the same query in the collection; prose is prose by what it quotes.

    Neither does a single query show the language, nor are words of prose code: those that no name has change nothing.
    """
    whole = lab.load("mini-lean")
    queries = pd.concat([whole.queries, pd.DataFrame({"query_id": ["zz"], "text": [text]})], ignore_index=True)
    ids = pd.Categorical(whole.qrels.query_id.astype(str), queries.query_id)
    more = replace(whole, queries=queries.astype("str"), qrels=whole.qrels.assign(query_id=ids), oddities={})
    run = lab.system(by).search(more, depth=20)
    frame = lab.search(text, whole, by, depth=5).frame
    assert frame.doc_id.tolist() == run[run.query_id == "zz"].doc_id.astype(str).tolist()[:5]
    if not by.startswith("bm25"):
        one, other = (
            lab.search(text.replace("the sum", word).replace("what I look for", word), whole, by, depth=5).frame
            for word in ("the frobnication", "a quux and")
        )
        assert one.doc_id.tolist() == other.doc_id.tolist()
