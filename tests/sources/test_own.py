"""One's own files as collections: LaTeX as people write it, tables as spreadsheets save them, and what is refused."""

from __future__ import annotations

import json
import posixpath
import shutil
from collections import Counter
from pathlib import Path

import pytest
from built_collections import card as built_card

from mirblab.analysis.searching.free_text import search
from mirblab.core import paths
from mirblab.core.errors import MirblabError
from mirblab.data.collection import Collection, load_folder
from mirblab.sources.own import build, latex
from mirblab.sources.shared import tables
from mirblab.sources.shared.macros import Macro, expand_macros, find_circular_macros, read_macros

PAPER = r"""\documentclass{amsart}
\newtheorem{satz}{Theorem}
\newtheorem*{rem}{Remark}
\newcommand{\R}{\mathbb{R}}
\newcommand{\norm}[1]{\lVert #1 \rVert}
\newenvironment{aside}{\comment}{\endcomment}
\begin{document}
% \begin{satz} This one is commented out. \end{satz}
\begin{satz}[Main result]\label{main} % a comment
Every $x \in \R$ has $\norm{x} \ge 0$.
\begin{aside}This is left out in print.\end{aside}
\end{satz}
\begin{rem}
Nobody proves a remark.
\end{rem}
\begin{proof}
By Lemma~\ref{help} and a look at $\norm{x}_\R$ we are done here.
\end{proof}
\begin{verbatim}
\begin{satz}Code is no statement.\end{satz}
\end{verbatim}
\begin{lemma}
Without a label, see \ref{main}.
\end{lemma}
\section{Later}
\begin{proof} A proof in a section of its own belongs to nothing here. \end{proof}
\begin{proof}[Proof of Lemma \ref{help}] The heading says which statement this proves. \end{proof}
\end{document}
"""
OTHER = r"\begin{lemma}\label{help} Helpful in the other file. \end{lemma}"


def one(origin: Path, out: Path, **options: str) -> Collection:
    folders = build.build(origin, out, **options)
    assert len(folders) == 1
    return load_folder(folders[0])


def table(tmp_path: Path, content: str | bytes, name: str = "mine.csv") -> Path:
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.fixture
def paper(tmp_path) -> Path:
    folder = tmp_path / "My Paper"
    (folder / "parts").mkdir(parents=True)
    (folder / "a.tex").write_text(PAPER, encoding="utf-8")
    (folder / "parts" / "b.tex").write_text(OTHER, encoding="utf-8")
    return folder


def test_a_folder_of_latex_makes_two_tasks(paper, tmp_path):
    """Statement to proof, and statement to the results it refers to; named after the folder; with a card."""
    proofs, premises = build.build(paper, tmp_path / "out")
    assert (proofs.name, premises.name) == ("my-paper-qa", "my-paper-premise")
    answers, used = load_folder(proofs), load_folder(premises)
    assert set(zip(answers.qrels.query_id, answers.qrels.doc_id, strict=True)) == {
        ("main", "main-proof"),
        ("help", "help-proof"),
    }
    assert set(zip(used.qrels.query_id, used.qrels.doc_id, strict=True)) == {("main", "help"), ("a.tex:22", "main")}
    card = built_card(premises)
    assert card["candidates"] == "not-self" and card["command"] == "mirblab build own --from 'My Paper'"
    assert card["counts"]["left_out"]["proofs of no statement"] == 1


def test_statements_are_read_as_their_author_meant(paper):
    """Own commands written out, comments and code gone, kinds as printed, file and line kept."""
    found = latex.read_latex({"a.tex": paper / "a.tex", "parts/b.tex": paper / "parts" / "b.tex"})
    main, remark, lemma, helped = found.statements
    assert main.text == r"Every $x \in \mathbb{R}$ has $\lVert x \rVert \ge 0$."
    assert (main.title, main.kind, main.line, remark.kind) == ("Main result", "theorem", 9, "remark")
    assert lemma.id == "a.tex:22" and PAPER.splitlines()[lemma.line - 1] == r"\begin{lemma}"
    assert main.proofs[0].text.endswith(r"$\lVert x \rVert_{\mathbb{R}}$ we are done here.")
    assert helped.file == "parts/b.tex" and len(helped.proofs) == 1 and not remark.proofs


def test_a_label_of_two_files_means_the_nearer_one(tmp_path):
    """In its own file the own one; from a third file neither."""
    for name, more in (("a", r"\ref{x}"), ("b", r"\ref{x}"), ("c", r"\ref{x}")):
        mine = "" if name == "c" else rf"\begin{{lemma}}\label{{x}} Fact {name}.\end{{lemma}}"
        (tmp_path / f"{name}.tex").write_text(
            mine + rf"\begin{{theorem}}\label{{t{name}}} See {more}.\end{{theorem}}", "utf-8"
        )
    found = one(tmp_path, tmp_path / "out")
    assert set(zip(found.qrels.query_id, found.qrels.doc_id, strict=True)) == {("ta", "x"), ("tb", "x#2")}


def test_a_label_of_two_versions_means_the_one_in_the_same_document(tmp_path):
    """References from another file of a version found two statements, and were taken for those to no statement."""
    files = {
        f"{version}/{name}": text.replace("WORD", version)
        for version in ("new", "old")
        for name, text in {
            "main.tex": r"\documentclass{book}\input{one}\input{two}",
            "one.tex": r"\begin{lemma}\label{x} Fact WORD.\end{lemma}",
            "two.tex": r"\begin{theorem} In the WORD version by \ref{x}.\end{theorem}",
        }.items()
    }
    labels = read_files(tmp_path, files).labels
    found = {version: labels.find("x", f"{version}/two.tex") for version in ("new", "old")}
    assert {version: each and each.text for version, each in found.items()} == {"new": "Fact new.", "old": "Fact old."}


def test_commands_of_the_author_are_written_out():
    """With arguments and defaults, through one another, never in a circle or without end."""
    source = r"\newcommand\a[2][d]{#1+#2}\def\b{\a{\c}}\newcommand{\c}{c}\newcommand\l{\m}\newcommand\m{\l}"
    odd: Counter[str] = Counter()
    defined, rest = read_macros(source, odd)
    macros = {name: macro for name, macro in defined.items() if name not in find_circular_macros(defined)}
    assert expand_macros(r"$\b, \a[x]{y}, \c d, \cd$", macros, odd) == r"$d+c, x+y, cd, \cd$"
    assert find_circular_macros(defined) == {r"\l", r"\m"} and rest == ""
    bomb = {rf"\{name}": Macro((), rf"\{after}" * 99) for name, after in zip("abcdefg", "bcdefgh", strict=True)}
    assert expand_macros(r"\a", bomb, odd) == r"\a"


def test_one_file_brings_what_it_inputs(tmp_path):
    """As LaTeX does; the other files of its folder are not read, and a name that is too long is that of no file."""
    (tmp_path / "part.tex").write_text(r"\begin{lemma}A field is a domain.\end{lemma}", "utf-8")
    (tmp_path / "other.tex").write_text(r"\begin{lemma}Another text.\end{lemma}", "utf-8")
    text = rf"\input{{part}}\input{{{'x' * 300}}}\begin{{lemma}}A finite domain is a field.\end{{lemma}}"
    (tmp_path / "main.tex").write_text(text, "utf-8")
    (built,) = build.build(tmp_path / "main.tex", tmp_path / "data")
    assert {text.strip() for text in load_folder(built).texts} == {
        "A field is a domain.",
        "A finite domain is a field.",
    }


def test_statements_without_proof_and_reference_can_be_searched(tmp_path, capsys):
    """They are a collection without queries."""
    folder = tmp_path / "texts"
    folder.mkdir()
    table(
        folder,
        r"\begin{lemma}A finite domain is a field.\end{lemma}\begin{lemma}A field is a domain.\end{lemma}",
        "a.tex",
    )
    (built,) = build.build(folder, tmp_path / "data")
    assert built.name == "texts-premise" and "no query, because none refers to another" in capsys.readouterr().out
    found = load_folder(built)
    assert (len(found.texts), len(found.query_ids)) == (2, 0)
    assert search("a field is a domain", found, "bm25", depth=1).frame.text.tolist() == ["A field is a domain."]


@pytest.mark.parametrize(
    ("source", "says"),
    [
        (r"No statement at all.", "no statement in them; looked for environments such as corollary"),
        (b"\\begin{lemma}caf\xe9\\end{lemma}", "a.tex, line 1: byte 16 .0xE9. is not UTF-8; if '.*café"),
    ],
)
def test_latex_without_a_task_is_refused(tmp_path, source, says):
    """With what is needed."""
    folder = tmp_path / "texts"
    folder.mkdir()
    table(folder, source, "a.tex")
    with pytest.raises(MirblabError, match=says):
        build.build(folder, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_titles_ask_for_their_texts(tmp_path, capsys):
    """The known-item rule: the title is the query and not in the document; what was taken is told."""
    content = 'Nr;Name;Body;Year\n1;Alpha;"first; with a sign\nand a line";1999\n\n;;;\n2;Beta;"he said ""x""";2000\n'
    found = one(table(tmp_path, b"\xef\xbb\xbf" + content.encode()), tmp_path / "out")
    assert found.texts == ["first; with a sign\nand a line", 'he said "x"'] and found.query_texts == ["Alpha", "Beta"]
    assert found.qrels.doc_id.tolist() == ["1", "2"] and found.card.task == "Known-Item Retrieval"
    said = capsys.readouterr().out
    assert "text = 'Body', id = 'Nr', title = 'Name'; not used: 'Year'" in said and "1  empty rows" in said


def test_questions_ask_for_the_text_beside_them(tmp_path):
    """One question twice has two answers; rows without an id are numbered; tabs and Windows line ends are read."""
    content = "question\tanswer\r\nWhy?\tBecause.\r\nwhy? \tSo it is.\r\nHow?\tLike this.\r\n"
    found = one(table(tmp_path, content, "mine.tsv"), tmp_path / "out")
    assert found.query_texts == ["Why?", "How?"]
    assert found.qrels.groupby("query_id", observed=True).size().tolist() == [2, 1]
    assert set(found.doc_ids) == {"row-1", "row-2", "row-3"}


def test_questions_that_differ_in_a_formula_or_their_id_are_several(tmp_path, capsys):
    """Formulas $N(x)$ and $n(x)$ are two; a given id is never lost; what is merged is counted."""
    content = "question,answer\nIs $N(x)$ odd?,yes\nis $N(x)$  odd?,no\nIs $n(x)$ odd?,maybe\n"
    found = one(table(tmp_path, content), tmp_path / "out")
    assert found.query_ids.tolist() == ["row-1-query", "row-3-query"] and len(found.qrels) == 3
    assert "1  rows whose query is that of an earlier row (one query)" in capsys.readouterr().out
    content = "qid,question,answer\nq1,Why?,a\nq2,why?,b\n,Why?,c\nq2,Why?,d\n"
    found = one(table(tmp_path, content), tmp_path / "out")
    assert dict(found.qrels.query_id.value_counts()) == {"q1": 2, "q2": 2}


def test_queries_and_judgements_stand_in_files_of_their_own(tmp_path):
    """JSON lines and tables mix; grades survive, and several documents stand in one cell."""
    docs = table(tmp_path, '{"_id": "a 1", "text": "one"}\n{"_id": "b", "text": "two", "more": {}}\n', "docs.jsonl")
    table(tmp_path, "id,text,answers\nq,ask,a 1; b\n", "asked.csv")
    with pytest.raises(MirblabError, match="names the document 'a', which is not there"):
        build.build(docs, tmp_path / "out", queries="asked.csv")
    table(tmp_path, "id,text,answers\nq,ask,a_1;b\n", "asked.csv")
    assert len(one(docs, tmp_path / "out", queries="asked.csv").qrels) == 2
    table(tmp_path, "qid,docid,score\nq,a 1,3\nq,b,0\n", "judged.csv")
    found = one(docs, tmp_path / "out", queries="asked.csv", qrels="judged.csv")
    assert found.qrels.relevance.tolist() == [3, 0] and found.card.relevance_levels == [0, 1, 3]
    assert "judged.csv" in built_card(tmp_path / "out/docs")["command"]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("text\nonly\ntexts\n", "nothing to ask for them; found the columns 'text'; needed is a column of titles"),
        ("a,b\n1,2\n", "line 1: no column looks like the text; found 'a', 'b'; name it there, or say --set text="),
        ("id,title,text\n1,t,x\n1,u,y\n", "line 3: the id '1' again, with another text; first on line 2"),
        ("id,title,text\n1,t,x\n,u,y\n", "line 3: no id in the column 'id'; give it one, or say --set id=- to number"),
        ("id,title,text\n1,t,x,y\n", "line 2: 4 cells, but 3 columns .*; put a text that contains ',' between"),
        ('id,title,text\n1,t,"x\ny\n', "line 2: unexpected end of data; a quote that opens a cell must close it"),
        ("id,title,title\n1,t,x\n", "line 1: the name 'title' occurs twice"),
        ("id,title,text\n", "has no row with a text"),
        ("", "has no row with a text"),
        (
            b"id,title,text\n1,t,caf\xe9 noir\n",
            "line 2: byte 21 .0xE9. is not UTF-8; if '.*café noir' looks right, .* iconv -f cp1252",
        ),
        ("id,title,text\n1,t,x\n".encode("utf-16"), "is UTF-16; save it as UTF-8, or say --set encoding=utf-16"),
        (b"PK\x03\x04 and so on", "is a spreadsheet's own format; save it there as 'CSV UTF-8'"),
        ("query,text,relevance\nq,x,very\n", "line 2: the relevance must be a whole number from 0, found 'very'"),
    ],
)  # fmt: skip
def test_a_table_that_cannot_be_used_is_refused(tmp_path, content, says):
    """With file, line, what was found and what to do; and nothing is written."""
    with pytest.raises(MirblabError, match=says):
        build.build(table(tmp_path, content), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_what_was_asked_for_is_taken(tmp_path):
    """Columns by name, another encoding, another delimiter; a column that is not there has a suggestion."""
    path = table(tmp_path, "eins|zwei|drei\nx|titre|é\n".encode("cp1252"))
    chosen = {"text": "drei", "title": "ZWEI", "id": "eins", "encoding": "cp1252"}
    assert one(path, tmp_path / "out", **chosen, delimiter="bar").texts == ["é"]
    with pytest.raises(MirblabError, match="--set text=dre: no column 'dre'; did you mean 'drei'"):
        build.build(path, tmp_path / "out", **(chosen | {"text": "dre"}))
    with pytest.raises(MirblabError, match="no encoding 'klingon'"):
        build.build(path, tmp_path / "out", encoding="klingon")


def test_equal_rows_are_one_document(tmp_path, capsys):
    """Merged and counted, as blanks in ids are."""
    found = one(table(tmp_path, "id,title,text\nLemma 1,t,x\nLemma 1,t,x\n"), tmp_path / "out")
    assert found.doc_ids.tolist() == ["Lemma_1"]
    assert "rows that repeat a document (merged)" in capsys.readouterr().out


def test_votes_beside_a_text_are_no_judgements():
    """A column `score` counts in a file of judgements only."""
    columns = ["question", "answer", "score"]
    assert "relevance" not in tables.assign_columns("a.csv", columns, tables.DOCUMENTS)
    assert tables.assign_columns("a.csv", ["qid", "docid", "score"], tables.QRELS)["relevance"] == "score"


def test_labels_of_pyterrier_are_judgements(tmp_path):
    """In a file of their own and beside the queries; a label that is no number is an id."""
    docs = table(tmp_path, "docno,text\na,one\nb,two\n", "docs.csv")
    table(tmp_path, "qid,query\nq,ask\n", "asked.csv")
    table(tmp_path, "qid,docno,label\nq,a,0\nq,b,2\n", "judged.csv")
    found = one(docs, tmp_path / "out", queries="asked.csv", qrels="judged.csv")
    assert found.qrels.relevance.tolist() == [0, 2]
    table(tmp_path, "query,docno,label\nask,a,0\nask more,b,2\n", "asked.csv")
    found = one(docs, tmp_path / "out", queries="asked.csv")
    assert found.query_ids.tolist() == ["query-1", "query-2"] and found.qrels.relevance.tolist() == [0, 2]
    table(tmp_path, "label,query,docno\nlem:a,ask,a\nlem:b,ask more,b\n", "asked.csv")
    assert one(docs, tmp_path / "out", queries="asked.csv").query_ids.tolist() == ["lem:a", "lem:b"]


def test_judgements_whose_numbers_are_not_understood_are_refused(tmp_path):
    """Each would count as relevant; with `--set relevance=-` they do."""
    docs = table(tmp_path, "id,text\na,one\nb,two\n", "docs.csv")
    table(tmp_path, "id,query\nq,ask\n", "asked.csv")
    table(tmp_path, "qid,docid,who,mark\nq,a,me,0\nq,b,me,2\n", "judged.csv")
    files = {"queries": "asked.csv", "qrels": "judged.csv"}
    with pytest.raises(MirblabError, match=r"judged.csv: .* but 'mark' has numbers; say --set relevance=mark, or --s"):
        build.build(docs, tmp_path / "out", **files)
    assert one(docs, tmp_path / "out", **files, relevance="mark").qrels.relevance.tolist() == [0, 2]
    assert one(docs, tmp_path / "out", **files, relevance="-").qrels.relevance.tolist() == [1, 1]


@pytest.mark.parametrize("column", ["doc_id", "docid", "docno", "pid"])
def test_a_document_beside_a_query_is_no_id_of_the_query(tmp_path, column):
    docs = table(tmp_path, "id,text\na,one\nb,two\n", "docs.csv")
    table(tmp_path, f"query,{column}\nask,a\nask more,b\n", "asked.csv")
    found = one(docs, tmp_path / "out", queries="asked.csv")
    assert found.query_ids.tolist() == ["query-1", "query-2"] and found.qrels.doc_id.tolist() == ["a", "b"]
    table(tmp_path, "qid,docid\na,b\n", "judged.csv")  # with judgements elsewhere it is one
    table(tmp_path, f"query,{column}\nask,a\n", "asked.csv")
    assert one(docs, tmp_path / "out", queries="asked.csv", qrels="judged.csv").query_ids.tolist() == ["a"]


def test_what_tex_does_not_read_is_not_read(tmp_path, capsys):
    """Text and inputs after the end of the document or of the file; such files are counted."""
    lemma = r"\begin{lemma}\label{%s} Every %s is a sum. \end{lemma}\begin{proof} Add what is left, count. \end{proof}"
    (tmp_path / "b.tex").write_text(lemma % ("b", "beta") + "\n\\endinput\n" + lemma % ("old", "past"))
    (tmp_path / "c.tex").write_text(lemma % ("c", "gamma"))
    guard = r"\ifdefined\mine\endinput\fi\begin{verbatim}\end{document}\end{verbatim}"
    main = r"\documentclass{amsart}\begin{document}" + guard + lemma % ("a", "alpha")
    path = tmp_path / "a.tex"
    path.write_text(main + r"\input{b}\end{document}\input{c}" + lemma % ("late", "late"))
    build.build(path, tmp_path / "out", name="mine")
    assert set(load_folder(tmp_path / "out/mine-premise").doc_ids) == {"a", "b"}
    assert "     2  files with text after" in capsys.readouterr().out


def test_long_cells_and_odd_line_ends_are_whole(tmp_path):
    """More than the csv module's limit, a form feed and U+2028 inside a cell."""
    long = "x" * 200_000 + "\f\u2028end"
    assert tables.read_table(table(tmp_path, f"title,text\nt,{long}\n")).rows == [(2, {"title": "t", "text": long})]


def test_a_name_of_another_collection_is_not_taken(tmp_path):
    """Only what was built so before is replaced."""
    path, out = table(tmp_path, "title,text\nt,x\n"), tmp_path / "out"
    assert build.build(path, out, name="mine") == build.build(path, out, name="mine")
    with pytest.raises(MirblabError, match="'mini-qa' is the name of another collection here; say --set name=ANOTHER"):
        build.build(path, out, name="mini-qa")
    assert load_folder(out / "mine").card.revision.startswith("blake2b:")
    (out / "mine" / "card.toml").write_text('command = "mirblab build stacks"', encoding="utf-8")
    with pytest.raises(MirblabError, match="'mine' is the name of another"):
        build.build(path, out, name="mine")


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        (None, "", "say where your files are: --from, with a folder of .tex files"),
        ("nowhere", None, "no file or folder .*nowhere'; looked in .*; give the whole path"),
        ("a.pdf", "%PDF", "a.pdf is not a folder of .tex files, one .tex file, or a table"),
    ],
)
def test_what_is_no_origin_is_refused(tmp_path, name, content, says):
    """With what would be one."""
    if name and content is not None:
        table(tmp_path, content, name)
    with pytest.raises(MirblabError, match=says):
        build.build(tmp_path / name if name else None, tmp_path / "out")


def test_a_folder_without_a_choice_is_refused(tmp_path):
    """Several tables, a collection that is one already, options for tables with LaTeX."""
    for name in ("a.csv", "b.csv"):
        table(tmp_path, "title,text\nt,x\n", name)
    with pytest.raises(MirblabError, match="found several tables; give the one with the documents itself"):
        build.build(tmp_path, tmp_path / "out")
    for name in ("corpus.jsonl", "queries.jsonl"):
        table(tmp_path, "{}", name)
    with pytest.raises(MirblabError, match="is a collection already; run: mirblab add"):
        build.build(tmp_path, tmp_path / "out")
    table(tmp_path, PAPER, "a.tex")
    with pytest.raises(MirblabError, match="--set text=body is about tables, and these are LaTeX files"):
        build.build(tmp_path, tmp_path / "out", text="body")


def test_the_bundled_examples_build(tmp_path):
    """Twelve statements in two files, and twenty rows; the same input gives the same bytes."""
    found = {}
    for name in ("own-latex", "own.csv"):
        for folder in build.build(paths.bundled_path("data", "examples", name), tmp_path / "one"):
            found[folder.name] = load_folder(folder)
        build.build(paths.bundled_path("data", "examples", name), tmp_path / "two")
    assert {name: len(c.query_ids) for name, c in found.items()} == {
        "own-latex-qa": 10,
        "own-latex-premise": 8,
        "own": 20,
    }
    for path in (tmp_path / "one").rglob("*.*"):
        assert (
            path.is_dir() or path.read_bytes() == (tmp_path / "two" / path.relative_to(tmp_path / "one")).read_bytes()
        )
    assert len(found["own-latex-premise"].corpus) == 12


def test_a_chapter_of_the_stacks_project(shared_file, tmp_path):
    """Real LaTeX: nearly every lemma has a proof, no environment's name is left in a text, lines are right."""
    import tarfile

    with tarfile.open(shared_file("sources/stacks-project.tar.gz")) as tar:
        for member in tar:
            if member.name.endswith(("/sets.tex", "/preamble.tex")):
                tar.extract(member, tmp_path, filter="data")
    proofs, premises = build.build(tmp_path / "stacks-project", tmp_path / "out")
    rows = [json.loads(line) for line in (premises / "corpus.jsonl").read_text("utf-8").splitlines()]
    source = (tmp_path / "stacks-project" / "sets.tex").read_text("utf-8").splitlines()
    assert len(load_folder(proofs).query_ids) >= 10 and len(rows) >= 20
    assert all(source[row["metadata"]["line"] - 1].startswith("\\begin{" + row["metadata"]["kind"]) for row in rows)
    assert not any(word in row["text"].split() for row in rows for word in ("slogan", "reference", "history"))


def test_a_definition_of_begin_is_refused_and_the_other_files_are_read(tmp_path, capsys):
    """It is counted with file and line, and nothing in any file is read by it."""
    folder = tmp_path / "book"
    folder.mkdir()
    bad = "% first\n\\newcommand\\begin{lemma}{broken}\n\\renewcommand{\\end}[1]{#1}\n"
    bad += r"\begin{lemma}\label{b} Bad. \end{lemma}"
    (folder / "bad.tex").write_text(bad, "utf-8")
    (folder / "good.tex").write_text(r"\begin{theorem}\label{t} Fine, see \ref{b}.\end{theorem}", "utf-8")
    found = latex.read_latex({path.name: path for path in sorted(folder.iterdir())})
    assert [(one.id, one.text) for one in found.statements] == [("b", "Bad."), ("t", "Fine, see [ref].")]
    what = r"definitions of \begin or \end (left out); the first: \begin in bad.tex, line 2"
    assert found.odd[what] == 2
    build.build(folder, tmp_path / "out")
    assert what in capsys.readouterr().out


def test_commands_hold_for_their_document_alone(tmp_path):
    """A file and what it inputs; a file that two documents input has the commands of both."""
    files = {
        "a/main.tex": r"\documentclass{article}\newcommand{\R}{\mathbb{R}}\input{parts/one}\include{shared}",
        "a/parts/one.tex": r"\begin{lemma}\label{one} Real $\R$, own $\S$. \end{lemma}",
        "a/shared.tex": r"\newcommand{\S}{\mathcal{S}}",
        "b/main.tex": r"\documentclass{article}\def\R{\mathrm{ring}}"
        r"\begin{lemma}\label{two} Ring $\R$, $\S$. \end{lemma}",
        "loose.tex": r"\begin{lemma}\label{three} Loose $\R$, $\T$. \end{lemma}",
        "macros.tex": r"\newcommand{\T}{\tau}",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, "utf-8")
    found = latex.read_latex({name: tmp_path / name for name in files})
    assert {one.id: one.text for one in found.statements} == {
        "one": r"Real $\mathbb{R}$, own $\mathcal{S}$.",
        "two": r"Ring $\mathrm{ring}$, $\S$.",
        "three": r"Loose $\R$, $\tau$.",
    }


def test_an_environment_that_does_not_end_is_named_with_its_line(tmp_path, capsys):
    """It is left out, and the others are read."""
    proof = "\\begin{proof}It follows at once from the definition of a ring.\\end{proof}"
    whole = f"\\begin{{lemma}}A ring is a group.\\end{{lemma}}{proof}"
    (tmp_path / "notes.tex").write_text(f"{whole}\n\n\\begin{{lemma}}Never ended.\n{whole}", encoding="utf-8")
    build.build(tmp_path / "notes.tex", tmp_path / "out")
    assert "1  environments that do not end (lemma in line 3 of notes.tex)" in capsys.readouterr().out


def test_a_file_that_cannot_be_read_does_not_take_the_others_with_it(tmp_path, capsys):
    """It is named, with the line, and left out; alone it is refused."""
    folder = tmp_path / "book"
    folder.mkdir()
    (folder / "good.tex").write_text(r"\begin{theorem}\label{t} Fine.\end{theorem}\begin{proof}By \ref{u}.\end{proof}"
                                     r"\begin{lemma}\label{u} Small.\end{lemma}", "utf-8")  # fmt: skip
    (folder / "old.tex").write_bytes(b"\n\\begin{lemma} \xe9tale \\end{lemma}")
    build.build(folder, tmp_path / "out")
    said = capsys.readouterr().out
    assert "1  files that cannot be read (left out); the first: " in said and "old.tex, line 2" in said
    (folder / "good.tex").unlink()
    with pytest.raises(MirblabError, match=r"old.tex, line 2"):
        build.build(folder, tmp_path / "out")


def read(tmp_path: Path, source: str = "", **more: str) -> latex.LatexContent:
    """Read *source* as main.tex, beside the files *more* (`notes_sty` is notes.sty)."""
    for name, text in {"main_tex": source, **more}.items():
        (tmp_path / name.replace("_", ".")).write_text(text, "utf-8")
    names = [name.replace("_", ".") for name in ("main_tex", *more)]
    return latex.read_latex({name: tmp_path / name for name in names})


def texts(content: latex.LatexContent) -> list[str]:
    return [statement.text for statement in content.statements]


def test_what_a_book_and_its_slides_say_is_one_statement(tmp_path):
    """Two documents with one text made two queries, each with the proof of its own file alone."""
    lemma = r"\begin{lemma}%s Every ring has a unit.\end{lemma}\begin{proof} %s \end{proof}"
    use = r"\begin{theorem}\label{t} Rings are rings, by \ref{unit}.\end{theorem}"
    book = lemma % (r"\label{unit}", "It is a monoid, which has one by what was said.") + use
    (tmp_path / "book.tex").write_text(book)
    (tmp_path / "slides.tex").write_text(lemma % ("", "See the book, or take the empty product of its elements."))
    answers, premises = map(load_folder, build.build(tmp_path, tmp_path / "out"))
    assert answers.qrels[["query_id", "doc_id"]].to_numpy().tolist() == [
        ["unit", "unit-proof"], ["unit", "unit-proof-2"]
    ]  # fmt: skip
    assert premises.doc_ids.tolist() == ["t", "unit"] and premises.qrels.doc_id.tolist() == ["unit"]


def test_premises_are_older_in_the_order_of_the_document(tmp_path):
    """Files were in the order of their names; "left as Exercise 7", below the proof, is no premise."""
    lemma = r"\begin{lemma}\label{a:lemma} Rings are rings.\end{lemma}"
    theorem = r"""\begin{theorem}\label{t} Fields are rings.\end{theorem}
        \begin{exercise}\label{e} Prove one half of it.\end{exercise}
        \begin{proof} By \ref{a:lemma}; for the rest see \ref{e} and \ref{later}. \end{proof}
        \begin{lemma}\label{later} Fields are fields.\end{lemma}"""
    (tmp_path / "main.tex").write_text(r"\documentclass{book}\input{second}\input{first}")
    (tmp_path / "second.tex").write_text(lemma)
    (tmp_path / "first.tex").write_text(theorem)
    _, premises = map(load_folder, build.build(tmp_path, tmp_path / "out"))
    lines = (tmp_path / "out" / premises.name / "corpus.jsonl").read_text().splitlines()
    assert [json.loads(line)["_id"] for line in lines] == ["a:lemma", "t", "e", "later"]
    assert set(premises.qrels.doc_id) == {"a:lemma", "e"}
    left_out = built_card(tmp_path / "out" / premises.name)["counts"]["left_out"]
    assert left_out["references to a later statement"] == 1


def read_files(tmp_path: Path, files: dict[str, str]) -> latex.LatexContent:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, "utf-8")
    return latex.read_latex({name: tmp_path / name for name in sorted(files)})


def later(content: latex.LatexContent, label: str) -> set[str]:
    """Return the labels of the statements that are later than the one with the *label*."""
    [one] = [each for each in content.statements if each.label == label]
    return {each.label for each in content.statements if content.is_later(each, one.file, one.line)}


def test_what_stands_below_an_input_is_later_than_the_file(tmp_path):
    """The whole main file came first, so that its theorem could not use a lemma of a file above it."""
    lines = [r"\documentclass{book}", r"\begin{lemma}\label{a} One.\end{lemma}", "% Next.", r"\input{part}",
             r"\begin{theorem}\label{t} By \ref{p}.\end{theorem}"]  # fmt: skip
    content = read_files(tmp_path, {
        "main.tex": "\n".join(lines),
        "part.tex": r"\begin{lemma}\label{p} Two, not by \ref{t}.\end{lemma}",
    })  # fmt: skip
    assert later(content, "a") == {"p", "t"} and later(content, "p") == {"t"} and later(content, "t") == set()


def test_sections_that_name_their_main_file_are_in_its_order(tmp_path):
    """Main file and sections of the package subfiles input each other: all were read alone, in the order of names."""
    section = r"\documentclass[main]{subfiles}\begin{lemma}\label{%s} In $\R$.\end{lemma}"
    content = read_files(tmp_path, {
        "main.tex": r"\documentclass{book}\newcommand{\R}{A}\subfile{z}\subfile{a}",
        "z.tex": section % "one",
        "a.tex": section % "two",
        "loop.tex": r"\documentclass{book}\newcommand{\R}{B}\input{loop}\begin{lemma}\label{b} In $\R$.\end{lemma}",
    })  # fmt: skip
    assert [each.label for each in content.statements] == ["one", "two", "b"] and later(content, "one") == {"two"}
    assert texts(content) == ["In $A$.", "In $A$.", "In $B$."]


def test_a_name_between_quotes_is_input(tmp_path):
    """As for a file whose name has a blank; its commands were not written out."""
    content = read_files(tmp_path, {
        "main.tex": r'\documentclass{book}\newcommand{\R}{A}\input{"my part"}', "other.tex": r"\documentclass{book}",
        "my part.tex": r"\begin{lemma} In $\R$.\end{lemma}",
    })  # fmt: skip
    assert content.places["my part.tex"][0] == content.places["main.tex"][0]


def test_one_file_in_another_encoding_brings_what_it_inputs(tmp_path):
    """It was refused, with the advice to name the encoding that was named; an input in another one ended all."""
    (tmp_path / "main.tex").write_bytes(r"\input{part}\begin{lemma} Für Ringe.\end{lemma}".encode("cp1252"))
    (tmp_path / "part.tex").write_bytes(r"\begin{lemma} Für Körper.\end{lemma}".encode("cp1252"))
    assert set(one(tmp_path / "main.tex", tmp_path / "out", encoding="cp1252").texts) == {"Für Ringe.", "Für Körper."}
    (tmp_path / "main.tex").write_text(r"\input{part}\begin{lemma} Für Ringe.\end{lemma}", "utf-8")
    assert one(tmp_path / "main.tex", tmp_path / "out").texts == ["Für Ringe."]


def test_a_proof_below_a_statement_is_not_that_of_one_inside(tmp_path):
    """It was that of the claim, which comes last; what an example has in it is proved below the example."""
    claim = r"\begin{claim}\label{%s} It holds.\end{claim}"
    source = r"\begin{theorem}\label{t} All. " + claim % "c" + r"\end{theorem}\begin{proof} By hand.\end{proof}"
    source += r"\begin{example} Some. " + claim % "d" + r"\end{example}\begin{proof} By foot.\end{proof}"
    proofs = {each.label: [proof.text for proof in each.proofs] for each in read(tmp_path, source).statements}
    assert proofs == {"t": ["By hand."], "c": [], "": [], "d": ["By foot."]}


def test_brackets_after_an_environment_are_text(tmp_path):
    """They were taken for an option of its end."""
    source = r"\begin{theorem} All.\end{theorem}\begin{proof} A \begin{claim}[B] b.\end{claim} [Known.] c.\end{proof}"
    assert read(tmp_path, source).statements[0].proofs[0].text == "A\nClaim (B). b.\n[Known.] c."
    assert theorem(tmp_path, r"Add. \begin{hint} Twice.\end{hint} [Or not.]") == "Add.\nHint: Twice.\n[Or not.]"


def test_a_boxed_theorem_without_arguments_is_passed_over(tmp_path):
    r"""As in a command that defines some; it ended in an IndexError."""
    assert texts(read(tmp_path, r"\newtcbtheorem{foo}\begin{lemma} One.\end{lemma}")) == ["One."]


@pytest.mark.parametrize(
    ("printed", "owner"),
    [
        ("Beweis", "satz"),
        (r"D\'emonstration", "satz"),
        ("Proof", "satz"),
        ("Proof sketch", "satz"),
        (r"L\"osung", "bemerkung"),
        ("Correction", "bemerkung"),
        ("Answer", "bemerkung"),
    ],
)
def test_a_proof_that_newtheorem_defines_is_no_statement(tmp_path, printed: str, owner: str):
    """Proofs were documents and queries; a solution is that of the statement before it, a proof that of the theorem."""
    content = read(
        tmp_path,
        rf"\newtheorem{{satz}}{{Satz}}\newtheorem*{{bew}}{{{printed}}}\newtheorem{{bem}}{{Bemerkung}}"
        r"\begin{satz}\label{s} Ringe sind Ringe.\end{satz}\begin{bem} Das ist leicht.\end{bem}"
        r"\begin{bew} Ein Ring ist ein Ring. \end{bew}\begin{bew*} Er ist auch einer. \end{bew*}",
    )
    assert [each.kind for each in content.statements] == ["satz", "bemerkung"]
    assert [each.kind for each in content.statements if each.proofs] == [owner]


def test_a_hint_stands_between_an_exercise_and_its_solution(tmp_path):
    """A solution below a hint was that of the hint, and a proof, too."""
    content = read(
        tmp_path,
        r"\newtheorem{ind}{Indications}\begin{lemma}\label{one} One.\end{lemma}"
        r"\begin{exercise}\label{two} Two.\end{exercise}\begin{ind} Add.\end{ind}"
        r"\begin{solution} By adding. \end{solution}\begin{proof} By hand. \end{proof}",
    )
    proofs = {each.label: [proof.text for proof in each.proofs] for each in content.statements if each.proofs}
    assert proofs == {"one": ["By hand."], "two": ["By adding."]}


@pytest.mark.parametrize("suffix", [".zip", ".tar.gz"])
def test_an_archive_is_read_as_the_folder_in_it(tmp_path, suffix):
    """A .zip, as Overleaf gives it, was said to be a spreadsheet's own format."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "main.tex").write_text(r"\begin{lemma} One.\end{lemma}\input{part}", "utf-8")
    (tmp_path / "in" / "part.tex").write_text(r"\begin{lemma} Two.\end{lemma}", "utf-8")
    shutil.make_archive(str(tmp_path / "My Thesis"), {".zip": "zip", ".tar.gz": "gztar"}[suffix], tmp_path / "in")
    found = one(tmp_path / f"My Thesis{suffix}", tmp_path / "out")
    assert (found.name, list(found.texts)) == ("my-thesis-premise", ["One.", "Two."])


@pytest.mark.parametrize("kind", ["problem", "exercise", "question", "Aufgabe", "definition"])
@pytest.mark.parametrize("above", ["", r"\section{One}\begin{lemma}\label{one} One.\end{lemma}\section{Two}"])
def test_a_proof_right_behind_a_problem_is_its_own_where_no_statement_needs_it(tmp_path, kind, above):
    """In problem sheets, which have no theorem to be proved, all proofs were lost."""
    pair = rf"\begin{{{kind}}}\label{{%s}} Show %s.\end{{{kind}}}" "\n\n" r"\begin{proof} By %s. \end{proof}"
    both = pair % ("a", "three", "adding") + pair % ("b", "four", "squares")
    content = read(tmp_path, above + both + r"Notes.\begin{proof} No. \end{proof}")
    proofs = {each.label: [proof.text for proof in each.proofs] for each in content.statements if each.proofs}
    assert proofs == {"a": ["By adding."], "b": ["By squares."]}
    assert content.odd["proofs of no statement"] == 1


def test_a_second_proof_right_behind_a_problem_is_its_own(tmp_path):
    """It was another one of the lemma."""
    source = r"\begin{lemma}\label{a} One.\end{lemma}\begin{proof} Yes.\end{proof}"
    source += r"\begin{problem}\label{b} Two.\end{problem}\begin{proof} Add.\end{proof}\begin{proof} Or not.\end{proof}"
    proofs = {each.label: [proof.text for proof in each.proofs] for each in read(tmp_path, source).statements}
    assert proofs == {"a": ["Yes.", "Or not."], "b": ["Add."]}


@pytest.mark.parametrize(
    ("statement", "proof"),
    [("Satz", "Beweis"), ("theoreme", "preuve"), ("lemme*", "demonstration"), ("teorema", "demostracion")],
)
@pytest.mark.parametrize("preamble", ["", r"\newenvironment{%s}[1][]{\textbf{#1}}{}"])
def test_environments_of_other_languages_need_no_definition(tmp_path, statement, proof, preamble):
    r"""By \newenvironment, or in a class that is not in the folder, they were no statements and no proofs."""
    preamble = preamble and preamble % statement
    texts = (
        rf"\begin{{{statement}}}[Gauss] Es gilt $a$.\end{{{statement}}}\begin{{{proof}}} Klar ist $b$.\end{{{proof}}}"
    )
    (only,) = read(tmp_path, preamble + texts).statements
    assert (only.title, only.text, [each.text for each in only.proofs]) == ("Gauss", "Es gilt $a$.", ["Klar ist $b$."])


def test_exercises_of_other_languages_are_not_proved(tmp_path):
    """Without accents, too: the proof below is that of the statement before."""
    source = r"""\begin{lema}\label{one} Uno.\end{lema}\begin{observacion} Dos.\end{observacion}
    \begin{proof} Si. \end{proof}\begin{Aufgabe}\label{two} Drei.\end{Aufgabe}\begin{Loesung} Vier. \end{Loesung}"""
    proved = {each.label: len(each.proofs) for each in read(tmp_path, source).statements}
    assert proved == {"one": 1, "": 0, "two": 1}


@pytest.mark.parametrize(("opens", "closes"), [("$", "$"), (r"\(", r"\)")])
def test_a_heading_may_have_brackets_by_a_command(tmp_path, opens, closes):
    """The heading ended at a root's brackets, once they were written out, and its rest stood in the text."""
    preamble = r"\newcommand{\cbrt}[1]{\sqrt[3]{#1}}\newcommand{\ring}{R[G]}"
    source = rf"{preamble}\begin{{lemma}}[On {opens}\cbrt2{closes} and {opens}\ring{closes}] It is.\end{{lemma}}"
    (statement,) = read(tmp_path, source).statements
    title = rf"On {opens}\sqrt[3]{{2}}{closes} and {opens}R[G]{closes}"
    assert (statement.title, statement.text) == (title, "It is.")


def test_headings_may_have_keys(tmp_path):
    """Of thmtools and tcolorbox; the keys stood in the title, and the label was lost. `restatable` was no statement."""
    content = read(
        tmp_path,
        r"\begin{lemma}[name={Zorn, or $[0,1]$},label=zorn] Chains have bounds.\end{lemma}"
        r"\begin{lemma}[{label=chain},name=Kette $A_{1,2}$] Chains are chains.\end{lemma}"
        r"\begin{restatable}[Main]{theorem}{mainagain}\label{main} By \cref{zorn} it holds.\end{restatable}"
        r"\begin{proof} By \cref{chain} all is well.\end{proof}",
    )
    assert [(each.kind, each.title, each.label) for each in content.statements] == [
        ("lemma", "Zorn, or $[0,1]$", "zorn"), ("lemma", "Kette $A_{1,2}$", "chain"), ("theorem", "Main", "main")
    ]  # fmt: skip
    assert content.statements[2].text == "By lemma [ref] it holds." and len(content.statements[2].proofs) == 1


def test_a_citation_is_no_title(tmp_path):
    """`[cite]` stood before the text of each query of a book that cites everywhere."""
    source = r"\begin{lemma}[\cite{x}] One.\end{lemma}\begin{lemma}[Zorn, \cite{x}] \og Two\fg{} it is.\end{lemma}"
    content = read(tmp_path, source + r"\begin{lemma}[{Zorn (\cite[p. 2]{y})}] Three.\end{lemma}")
    assert [each.title for each in content.statements] == ["", "Zorn", "Zorn"]
    assert content.statements[1].text == "«Two» it is."


def test_a_bar_that_a_set_defines_for_itself_is_written_out(tmp_path):
    r"""The `\given` of mathtools' manual: the definition itself stood in the formulas."""
    preamble = (
        r"\newcommand\bar[1][]{\nonscript\:#1\vert\nonscript\:}\providecommand\given{}"
        r"\DeclarePairedDelimiterX\set[1]\{\}{\renewcommand\given{\bar[\delimsize]}#1}"
    )
    assert theorem(tmp_path, r"So $\set{x \given x > 0}$ and $\set*{0}$.", preamble) == (
        r"So $\{ x \vert x > 0 \}$ and $\{ 0 \}$."
    )


def test_files_of_two_encodings_are_read(tmp_path):
    """The encoding that the error names was taken for all files, so that `für` in UTF-8 became `fÃ¼r`."""
    (tmp_path / "old.tex").write_bytes(r"\begin{lemma} Für alle Ringe.\end{lemma}".encode("cp1252"))
    (tmp_path / "new.tex").write_text(r"\begin{lemma} Für alle Körper.\end{lemma}", "utf-8")
    files = {name: tmp_path / name for name in ("new.tex", "old.tex")}
    assert texts(latex.read_latex(files, "cp1252")) == ["Für alle Körper.", "Für alle Ringe."]
    assert texts(latex.read_latex(files)) == ["Für alle Körper."]


def test_a_command_with_a_suffix_keeps_its_definition(tmp_path):
    r"""`\WithSuffix\newcommand\see*[1]{...}` replaced `\see` by a star."""
    preamble = r"\newcommand{\see}[1]{Lemma~#1}\WithSuffix\newcommand\see*[1]{only #1}"
    assert theorem(tmp_path, r"By \see{two} and \see*{three}.", preamble) == "By Lemma two and Lemma three."


def test_styles_are_found_from_the_folder_of_another_main_file(tmp_path):
    """A section that compiles alone names paths from its own folder; its commands were not written out."""
    files = {
        "a/b/section.tex": r"\documentclass[../../include/alone]{subfiles}\begin{lemma} In $\RR$.\end{lemma}",
        "include/alone.tex": r"\documentclass{book}\newcommand*{\where}{../../..}\input{\where/sty/mine.sty}",
        "sty/mine.sty": r"\newcommand{\RR}{\mathbb{R}}",
    }
    assert texts(read_files(tmp_path, files)) == [r"In $\mathbb{R}$."]


def test_a_command_may_name_the_folder_of_a_package(tmp_path):
    """The package was not read, and its commands were not written out."""
    files = {
        "one/main.tex": r"\documentclass{book}\usepackage[x]{\where mine}\begin{lemma} In $\RR$.\end{lemma}",
        "mine.sty": r"\newcommand{\RR}{\mathbb{R}}",
    }
    assert texts(read_files(tmp_path, files)) == [r"In $\mathbb{R}$."]


def test_a_file_that_only_a_search_path_finds_is_input(tmp_path):
    """As with TEXINPUTS, where only one file has the name; of two with the name neither is taken."""
    one, two = (rf"\begin{{lemma}} {word} $\RR$.\end{{lemma}}" for word in ("One", "Two"))
    files = {
        "main.tex": r"\documentclass{book}\newcommand{\RR}{R}\input{part1.2}\input{many}",
        "x/y/part1.2.tex": one, "x/many.tex": two, "z/many.tex": two,
    }  # fmt: skip
    content = read_files(tmp_path, files)
    assert content.places["x/y/part1.2.tex"][0] == 0 and content.places["x/many.tex"][0] > 0


def test_the_signs_of_a_formula_are_words_of_a_proof(tmp_path):
    """A short sentence with a long formula is a proof; a short sentence alone is none."""
    lemma = r"\begin{lemma}\label{%s} Every %s is one.\end{lemma}\begin{proof}%s\end{proof}"
    source = lemma % ("a", "one", "Apply it to $g(x)=f(x)-x$.") + lemma % ("b", "two", "By Lemma \\ref{a}.")
    table(tmp_path, source, "a.tex")
    folders = build.build(tmp_path / "a.tex", tmp_path / "out")
    assert load_folder(folders[0]).doc_ids.tolist() == ["a-proof"]


def test_no_name_of_an_environment_or_picture_is_in_a_text(tmp_path):
    """Unknown environments are left out and counted by name; code of pictures and tables beside the text goes."""
    source = r"""\begin{theorem} Either \begin{strange}[opt] $n$ is odd\end{strange} or
    \begin{strange} \cite{x}\end{strange}
    \begin{tikzpicture}\draw (0,0) -- (1,1);\end{tikzpicture} \includegraphics[width=3cm]{a.png}
    \begin{figure}\begin{asy} draw(x); \end{asy}\caption{A picture}\end{figure}
    \begin{tabular}{|c|c|} \hline $n$ & odd \\ 1 & yes \tabularnewline[2pt] 2 & no \end{tabular}
    \picked{2in}{3in}{f.eps}even.\end{theorem}"""
    found = read(tmp_path, source)
    assert texts(found) == ["Either\n$n$ is odd\nor\n[cite]\n$n$ | odd\n1 | yes\n2 | no\neven."]
    assert found.unknown == {r"\begin{strange}": 2, r"\picked": 1}


def test_a_note_on_the_literature_is_no_part_of_a_statement(tmp_path):
    """`reference`, as in the Stacks project, is left out, unless the author made it a kind of statement."""
    source = r"\begin{theorem}\begin{reference}\cite{x}\end{reference}All $n$ are odd.\end{theorem}"
    assert texts(read(tmp_path, source)) == ["All $n$ are odd."]
    assert "[cite]" in texts(read(tmp_path, r"\newtheorem{reference}{Reference}" + source))[0]


def test_environments_of_the_author_are_what_they_are_made_of(tmp_path):
    """Displays, lists with their style, statements with a heading, proofs; boxes around them leave nothing."""
    source = r"""\newenvironment{beq}{\begin{equation}}{\end{equation}}\def\be{\begin{align*}}\def\ee{\end{align*}}
    \newenvironment{alist}{\begin{list}{(\alph{c})}{\usecounter{c}\topsep 0pt}}{\end{list}}
    \newenvironment{roster}{\begin{enumerate}[(i)]}{\end{enumerate}}
    \newtheorem{alg}{Algorithm}\newenvironment{recipe}[1]{\begin{alg}[#1]\index{#1}}{\end{alg}}
    \newenvironment{why}[1]{\par\textbf{Proof of #1.}}{\hfill$\Box$}
    \newenvironment{boxed}[2][c]{\begin{center}\fbox{#2}}{\end{center}}
    \begin{lemma}\label{l} If \begin{beq} x=y \end{beq} and \be a &= b \ee then
    \begin{alist}\item one \item two\end{alist}\begin{roster}\item three\item four\end{roster}
    \begin{boxed}{1pt} so \end{boxed}
    \end{lemma}\begin{recipe}{Divide} Halve it.\end{recipe}\begin{why}{Lemma \ref{l}} It is plain.\end{why}"""
    found = read(tmp_path, source)
    lemma, algorithm = found.statements
    first = "If $$ x=y $$ and \\begin{align*}a &= b \\end{align*} then"
    assert lemma.text.split("\n") == [first, "(a) one", "(b) two", "(i) three", "(ii) four", "so"]
    assert (algorithm.kind, algorithm.title, algorithm.text) == ("algorithm", "Divide", "Halve it.")
    assert [proof.text for proof in lemma.proofs] == ["It is plain."]


def test_styles_beside_the_source_are_read(tmp_path):
    r"""Commands and theorems of .sty and .cls files, through those they load; none is a statement itself."""
    style = r"""\RequirePackage{symbols}\newtheorem{satz}{Theorem}\def\abb#1#2{#1\to #2}
    \newenvironment{unused}{\begin{satz}}{\end{satz}}\newcommand{\odd}[1]{\@ifnextchar[{\a}{\b}}"""
    symbols = r"""\DeclareMathOperator{\rank}{rank}\newcommand{\Z}{\ensuremath{\mathbb{Z}}\xspace}
    \NewDocumentCommand{\norm}{O{2} m}{\|#2\|_{#1}}\DeclarePairedDelimiter{\abs}{|}{|}\let\eps=\varepsilon"""
    source = r"""\documentclass{book}\usepackage[x]{notes}\begin{document}\begin{satz} In \Z, and \Z is $\Z$, $x_\Z$:
    $\abb{A}{B}$, $\rank f$, $\norm{x}$, $\norm[1]{y}$, $\abs*{z}$, $\eps$.\end{satz}\end{document}"""
    found = read(tmp_path, source, notes_sty=style, symbols_sty=symbols)
    expected = (
        r"In $\mathbb{Z}$, and $\mathbb{Z}$ is $\mathbb{Z}$, $x_{\mathbb{Z}}$: $A\to B$, $\operatorname{rank}f$, "
    )
    assert texts(found) == [expected + r"$\|x\|_{2}$, $\|y\|_{1}$, $| z |$, $\varepsilon$."]
    assert [one.kind for one in found.statements] == ["theorem"]


def test_proofs_in_plain_tex_are_proofs(tmp_path):
    r"""From \proof or a heading to a sign for the end, also within a display; one without an end is left out."""
    source = r"""\newcommand{\proof}{{\bf Proof }}\newcommand{\bbox}{\rule{6pt}{6pt}}
    \begin{lemma} First.\end{lemma} \proof By hand.\bbox After it.
    \begin{lemma} Second.\end{lemma} \proof Thus $$ x = y. \eqno{\bbox} $$ After it.
    \begin{lemma} Third.\end{lemma} \textbf{Proof.} By foot. \hfill $\square$
    \begin{lemma} Fourth.\end{lemma} \proof It never ends. \section{Next} \proof Nor does this one."""
    found = read(tmp_path, source)
    assert [[proof.text for proof in one.proofs] for one in found.statements] == [
        ["By hand."], ["Thus $$ x = y. $$"], ["By foot."], [],
    ]  # fmt: skip
    assert found.odd["proofs without a sign for their end (left out)"] == 2


def test_no_label_is_in_a_text(tmp_path):
    """A reference is its kind, where the command prints that, and a neutral word; also by a command without a rule."""
    source = r"""\begin{lemma}\label{sub_galois} One.\end{lemma}\begin{lemma}\label{b} Two.\end{lemma}
    \begin{theorem} By \fullref{sub_galois} and \see{sub_galois}, \Cref{b}, \cref{b,sub_galois}, \vref{gone},
    $\mathfrak{b}$.
    \end{theorem}"""
    found = read(tmp_path, source)
    words = "By lemma [ref] and lemma [ref], Lemma [ref], lemmas [ref] and [ref], [ref], "
    assert texts(found)[-1] == words + r"$\mathfrak{b}$."
    assert set(found.statements[-1].references) == {"sub_galois", "b", "gone"}


def test_examples_do_not_ask_for_premises(tmp_path):
    """They are documents; a theorem that refers to them still asks."""
    source = r"""\begin{example}\label{e} By \ref{t}.
    \begin{solution} It is by Theorem \ref{t} and a bit more.\end{solution}
    \end{example}\begin{theorem}\label{t} As in \ref{e}.\end{theorem}"""
    table(tmp_path, source, "a.tex")
    answers, premises = map(load_folder, build.build(tmp_path / "a.tex", tmp_path / "out"))
    assert premises.query_ids.tolist() == ["t"] and set(premises.doc_ids) == {"e", "t"}
    assert answers.qrels.query_id.tolist() == ["e"]


@pytest.mark.parametrize(
    ("between", "heading", "owner"),
    [
        ("", "", "b"),
        ("We now prove the first theorem.", "", None),
        ("Now for it. We are ready to prove Theorem~\\ref{a}.", "", "a"),
        ("We can now give the proof of Euler's Formula.", "", "a"),
        ("We prove this theorem by induction.", "", "b"),
        ("", "[Proof of Euler's formula]", "a"),
        ("", "[Proof of the theorem]", "b"),
        ("A word.", "[Proof of Theorem 7]", None),
        ("A word.", "[Second proof]", "b"),
    ],
)
def test_a_proof_is_that_of_the_statement_that_is_named(tmp_path, between, heading, owner):
    """By heading or sentence, label or title; one that names another statement is not that of the one before."""
    source = rf"""\begin{{theorem}}[Euler's formula]\label{{a}} First.\end{{theorem}}
    \begin{{theorem}}\label{{b}} Second.\end{{theorem}} {between}
    \begin{{proof}}{heading} It is so.\end{{proof}}"""
    found = read(tmp_path, source)
    assert [one.id for one in found.statements if one.proofs] == ([owner] if owner else [])
    assert found.odd["proofs of no statement"] == (owner is None)


@pytest.mark.parametrize(
    ("between", "heading", "owner"),
    [
        ("", "", "a"),
        ("Here is another argument.", "", "a"),
        ("Hence two curves are isomorphic when their invariants agree.", "", None),
        ("Hence two curves are isomorphic when their invariants agree.", "[Second proof]", "a"),
        (r"\begin{definition} A gcd. \end{definition}", "[Construction]", "main.tex:2"),
        (r"\begin{remark} It is known. \end{remark}", "", "a"),
        (r"\begin{example} A curve. \end{example}", "", "a"),
    ],
)
def test_a_second_proof_after_a_claim_in_the_text_is_that_of_the_claim(tmp_path, between, heading, owner):
    """Unless its heading says more, or the text between goes on with the statement."""
    source = rf"""\begin{{theorem}}\label{{a}} All.\end{{theorem}}\begin{{proof}}One way.\end{{proof}}
    {between} \begin{{proof}}{heading}Another way.\end{{proof}}"""
    found = read(tmp_path, source)
    assert {proof.text: each.id for each in found.statements for proof in each.proofs} == {"One way.": "a"} | (
        {"Another way.": owner} if owner else {}
    )
    assert found.odd["proofs of no statement"] == (owner is None)


def test_a_heading_names_the_statement_whose_title_it_has_part_of(tmp_path):
    """No definition, and none that shares a word with another file."""
    one = r"""\begin{definition}[Ergodic]\label{d} A.\end{definition}
    \begin{theorem}[Maximal Ergodic Theorem, Wiener]\label{a} B.\end{theorem}
    \begin{lemma}\label{b} C.\end{lemma}\begin{proof}[Proof of Maximal Ergodic Theorem]By the lemma.\end{proof}"""
    other = r"""\begin{theorem}[The main theorem of ergodic theory]\label{o} D.\end{theorem}
    \begin{lemma}\label{p} E.\end{lemma}\begin{proof}[Proof of theorem] F.\end{proof}"""
    for name, text in (("one.tex", one), ("other.tex", other)):
        (tmp_path / name).write_text(text, encoding="utf-8")
    found = latex.read_latex({name: tmp_path / name for name in ("one.tex", "other.tex")})
    assert {each.id: [proof.text for proof in each.proofs] for each in found.statements if each.proofs} == {
        "a": ["By the lemma."], "o": ["F."],
    }  # fmt: skip


def test_a_proof_has_the_claims_in_it(tmp_path):
    """With their proofs, under their names and titles; each claim is a statement, too. A proof without text is none."""
    source = r"""\begin{theorem} All.\end{theorem}\begin{proof} First \begin{claim}["Part"] a part.\end{claim}
    \begin{proof}[Proof] Easy.\end{proof} Then all.\end{proof}\begin{proof}\todo{later}\end{proof}"""
    theorem, claim = read(tmp_path, source).statements
    assert theorem.proofs[0].text == "First\nClaim (Part). a part.\nProof. Easy.\nThen all."
    assert [proof.text for proof in claim.proofs] == ["Easy."] and len(theorem.proofs) == 1


def test_a_page_shows_what_was_read(paper, tmp_path, capsys):
    """Counts, commands without a rule, and texts beside their source; the folder loads with its digests."""
    (paper / "b.tex").write_text(r"\begin{lemma} An \unheard{of} fact.\end{lemma}", encoding="utf-8")
    folder = build.build(paper, tmp_path / "out")[0]
    page = (folder / "reading.md").read_text("utf-8")
    assert "| `satz` | theorem | 1 |" in page and r"| `\unheard` | 1 |" in page
    assert "### main (theorem, a.tex, line 9)" in page and r"\begin{satz}[Main result]\label{main} % a comment" in page
    assert str(folder / "reading.md") in capsys.readouterr().out
    load_folder(folder)


def theorem(tmp_path: Path, inside: str, preamble: str = "") -> str:
    path = tmp_path / "a.tex"
    path.write_text(rf"{preamble}\begin{{theorem}}{inside}\end{{theorem}}", encoding="utf-8")
    return latex.read_latex({"a.tex": path}).statements[0].text


@pytest.mark.parametrize(
    ("inside", "text"),
    [
        (r"Numbers.\quad\textit{Hint:} add.", "Numbers. Hint: add."),
        (r"See \bookref[two][b]{lem:one} and \hyperref[lem:one]{it}.", "See [ref] and it."),
        (r"So $a \mathbin{$\displaystyle\circ$} b$.", r"So $a \mathbin{\displaystyle\circ} b$."),
        (r"\booklabel{thm:two} Rings are rings.", "Rings are rings."),
        (r"\turn[origin=c]{Rings} are rings.", "Rings are rings."),
        (r"So \xymatrix@C=2em{A \ar[r]^f & B} holds.", "So [diagram] holds."),
        (r"\setlength\itemsep{2pt} Rings are rings.", "Rings are rings."),
        (r"\begin{tabular}{cc}\multicolumn{2}{c}{a} \\ \cline{1-2} b & c\end{tabular}", "a\nb | c"),
        (r"So \begin{ladder} A_1 & \alpha \end{ladder} holds.", r"So \begin{ladder} A_1 & \alpha \end{ladder} holds."),
        (r"So \begin{ladder} $A_1$ and \url{a_b} \end{ladder} hold.", "So\n$A_1$ and a_b\nhold."),
        (r"\pagebreak[3] Rings are rings.\subimport*{../figures/}{ring.pdf_t}", "Rings are rings."),
        (r"Add. \begin{hint}[Easy] Twice.\end{hint}", "Add.\nHint: Twice."),
        (r"So \begin{diagram} A & \rTo & B \end{diagram}", "So [diagram]"),
        (r"Rings \[ \hspace{1em} \] are rings.", "Rings are rings."),
        (r"Rings \(\xrightarrow{\text{\(a\)}} b\) are.", r"Rings \(\xrightarrow{\text{\(a\)}} b\) are."),
        (r"A \foo[c] {width=3pt}\foo{eq:one} ring.", "A ring."),
        (r"See \parencite[2]{x} and \footcite{y}.", "See [cite] and [cite]."),
        (r"$$ x = y \leqno\text{(1)} $$", "$$ x = y $$"),
        (r"\begin{enumerate}[label=(P\arabic*)]\item A \item B\end{enumerate}", "(P1) A\n(P2) B"),
        (r"\begin{enumerate}[label={[\roman*]}]\item A \item B\end{enumerate}", "(i) A\n(ii) B"),
        (r"\begin{enumthm}\item A\end{enumthm}So\begin{enumthm}[resume]\item B\end{enumthm}", "(1) A\nSo\n(2) B"),
        (r"\begin{lemma}[Small] All.\end{lemma} Then\begin{proof} no.\end{proof} so.", "Lemma (Small). All.\nThen so."),
    ],
)  # fmt: skip
def test_what_has_no_rule_of_its_own_leaves_no_residue(tmp_path, inside, text):
    """Labels, options and lengths of unknown commands are no text; what has a subscript is a formula."""
    assert theorem(tmp_path, inside) == text


@pytest.mark.parametrize(
    ("definition", "folder"), [(r"\newcommand{\path}{.}", "."), (r"\def\path{sty}", "sty"), (r"\let\path\here", ".")]
)
def test_a_folder_may_be_named_by_a_command(tmp_path, definition, folder):
    r"""`\input{\path/style.sty}` is read from that folder, or from the folder of the first file."""
    main = rf"\documentclass{{book}}{definition}\input{{\path/style.sty}}\begin{{theorem}}$\R$\end{{theorem}}"
    (tmp_path / "sty").mkdir()
    (tmp_path / "main.tex").write_text(main, encoding="utf-8")
    style = posixpath.normpath(f"{folder}/style.sty")
    (tmp_path / style).write_text(r"\def\R{A}", encoding="utf-8")
    files = {name: tmp_path / name for name in ("main.tex", style)}
    assert latex.read_latex(files).statements[0].text == "$A$"


@pytest.mark.parametrize(
    ("preamble", "inside", "text"),
    [
        (r"\newif\iflong", r"A\iflong B\else C\fi D", "ACD"),
        (r"\newif\iflong\longtrue", r"A\iflong B\ifx\a\b E\fi\else C\fi{} D", "AB E D"),
        ("", r"A\iffalse B\ifnum1=1 C\fi E\else F\fi{} G", "AF G"),
        ("", r"A \iff B and \iffalse C", "A B and C"),
        (r"\newif\iflong\newcommand{\more}[1]{\iflong #1\fi}", r"A\more{B} C", "A C"),
        (r"\newcommand{\nc}{\newcommand}\nc{\R}{\mathbb{R}}\nc\Q{\mathbb{Q}}", r"$\R\Q$", r"$\mathbb{R}\mathbb{Q}$"),
        (
            r"\def\Z{\mathbb Z}\newcommand{\ol}{\overline}",
            r"$\ol\Z$ and $\hat\Z$",
            r"$\overline{\mathbb Z}$ and $\hat{\mathbb Z}$",
        ),
        (r"\let\nc=\newcommand \nc{\R}{\mathbb{R}}", r"$\R$", r"$\mathbb{R}$"),
        (r"\NewDocumentCommand\R", r"$\R$ has a broken definition", r"$\R$ has a broken definition"),
        (r"\newcommand\m[1]{\circ#1}\newcommand\p[1]{\ifempty{#1}{}{x}}", r"$\m A, \circ\p1$", r"$\circ A, \circ x$"),
        (r"\def\pair(#1,#2){<#1|#2>}\def\cut#1:#2\end{#1}", r"$\pair(a,b)\cut c:d\end$", "$<a|b>c$"),
        (
            r"\NewDocumentCommand\Sat{t/ m m o D(){w}}{\IfBooleanT{#1}{\not}#2#3\IfNoValueF{#4}{[#4]}}",
            r"$\Sat/{M}{A}[s]$, $\Sat MA$",
            r"$\not MA[s]$, $MA$",
        ),
        (
            r"\newcommand\q{\@ifstar{\q@a}{\q@b}}\newcommand\q@a[1]{A#1}\newcommand\q@b[1]{B#1}",
            r"$\q*{x}\q{y}$",
            "$AxBy$",
        ),
        (r"\def\all#1{\forall#1\@ifnextchar\bgroup{\all}{.}}", r"$\all{x}{y} z$", r"$\forall x\forall y. z$"),
        (r"\newcommand\low[1]{\@undefined{#1}}\newcommand\high{\low}", r"$\high{A}$", r"$\low{A}$"),
        (r"\newcommand\pd[2][]{\ifx\empty#1\empty D#2\else D^#1#2\fi}", r"$\pd{f}\pd[2]{g}$", "$DfD^2g$"),
        (r"\newcommand\up[1]{u^{#1}}\newcommand\y{\mathsf{y}}\newcommand\ap{\up}", r"$\ap\y$", r"$u^{\mathsf{y}}$"),
        (
            r"\DeclarePairedDelimiterX{\ip}[2]{<}{>}{#1\delimsize|#2}",
            r"$\ip*{a}{b}, \ip[\big]cd$",
            "$< a|b >, < c|d >$",
        ),
        (
            r"\declaretheorem[style=x]{foo}\newtheorem{bar}{}",
            r"$\calL \bbR$ \texorpdfstring{$x$}{y}",
            r"$\mathcal{L}\mathbb{R}$ $x$",
        ),
        ("", r"$\dv[2]{f}{x}\pdv{y}$", r"$\frac{\mathrm{d}^{2}f}{\mathrm{d} x^{2}}\frac{\partial}{\partial y}$"),
        (r"\lstnewenvironment{sg}{}{}", r"A \begin{sg} x_1 = 2 \end{sg} B", "A B"),
        ("", r"A \begin{filecontents*}{b.tex}\begin{lemma}C.\end{lemma}\end{filecontents*} B", "A B"),
        ("", r"A \begin{tcblisting}{}\begin{lemma}C.\end{lemma}\end{tcblisting} B", "A B"),
        ("", r"\begin{multicols*}{2} A\end{multicols*} B", "A B"),
        (
            r"\lstnewenvironment{sg}{}{}",
            r"A \begin{sg}\begin{table}\end{sg} B\begin{table}c\end{table} C",
            "A B C",
        ),
        (
            r"\DeclarePairedDelimiter\set\lbrace\rbrace\newcommand\ol\overline",
            r"$\set{\ol a}$",
            r"$\lbrace \overline a \rbrace$",
        ),
        (r"\newcommand{\pt}{\mathchoice{\ast} {\ast}{\hbox{\vcenter{$\ast$}}}{s}{}}", r"$\pt_1$", r"${\ast}{}_1$"),
        ("", r"$x \pause = y$ \pause so", "$x = y$ so"),
        ("", r"\marginnote{\emph{Lecture 4}}[0cm] A $\scalerel*{A}{B}$", "A $A$"),
        (r'\mathchardef\usc="2D', r"$\mathsf{is\usc{}set}$", r"$\mathsf{is-{}set}$"),
        (r"\newcommand{\R}", r"$\R$\newcommand{\Q}{\mathbb{Q}} $\Q$", r"$\R$ $\mathbb{Q}$"),
        (r"\newcommand{\Z}{\mathbb Z}\pdfstringdefDisableCommands{\def\Z{Z}}", r"$\Z$", r"$\mathbb Z$"),
        ("", r"So $A:=\text{\ensuremath{\bigcup B}}$", r"So $A:=\text{$\bigcup B$}$"),
        ("", r"A triangle \[\begin{tikzpicture}\draw;\end{tikzpicture}\] here", "A triangle [diagram] here"),
        (
            r"\newcounter{en}\renewcommand{\theen}{\roman{en}}"
            r"\newenvironment{enum}{\begin{list}{(\theen)}{\usecounter{en}}}{\end{list}}",
            r"\begin{enum}\item A\item B\end{enum}",
            "(i) A\n(ii) B",
        ),
        (
            "",
            r"\tikzstyle{t}=[draw=gray!30,thick]\tikzset{u/.style={red}} $\to{\raisebox{-.6ex}[0ex][0ex]{A}}$",
            "$\\to{A}$",
        ),
        ("", r"$\prd{x:A}{y:B} \lam{x} x$", r"$\prod_{(x:A)}\prod_{(y:B)}\, \lambda(x).\, x$"),
        (r"\newcommand{\widebar}{\@thebar}", r"$\widebar{x}$", r"$\overline{x}$"),
        ("", r"at 50\% of \texttt{a\_b} \& $c\%d$", r"at 50% of a_b & $c\%d$"),
    ],
)
def test_conditionals_and_renamed_definitions_are_those_of_tex(tmp_path, preamble, inside, text):
    """One branch of each switch is printed, and a command that defines commands may have a name of its own."""
    assert theorem(tmp_path, inside, preamble) == text


def test_a_heading_may_be_an_argument(tmp_path):
    """Where most environments of a name begin with one; it is the kind, or the title, and no text."""
    head = r"\begin{thm}{Exercise} One.\end{thm}\begin{thm}[!]{Menelaus's theorem}\label{m} Two.\end{thm}"
    content = read(tmp_path, r"\newtheorem{thm}{Thm}" + head + r"\begin{lemma} By theorem~\vref{m}.\end{lemma}")
    assert [(one.kind, one.title, one.text) for one in content.statements] == [
        ("exercise", "", "One."), ("theorem", "Menelaus's theorem", "Two."), ("lemma", "", "By theorem [ref]."),
    ]  # fmt: skip


def test_a_chapter_on_its_own_has_the_commands_of_the_book(tmp_path):
    """Of the document above its folder; those of a document beside it are nearer."""
    files = {
        "book.tex": r"\documentclass{book}\newcommand{\A}{a}\newcommand{\B}{b}",
        "part/all.tex": r"\input{one}",
        "part/one.tex": r"\begin{lemma} $\A$.\end{lemma}",
        "old/two.tex": r"\begin{lemma} $\B$.\end{lemma}",
    }
    content = read_files(tmp_path, files)
    assert sorted(texts(content)) == ["$a$.", "$b$."]


def test_a_word_that_begins_with_proof_is_no_proof(tmp_path):
    """Only a heading opens a proof: no entry of an index, no title of a chapter and no word in the middle of a text."""
    path = tmp_path / "a.tex"
    path.write_text(
        r"\chapter{Proof techniques}\begin{lemma}One.\end{lemma}\index{proof!by hand} A \textbf{proof by hand} \qed"
        r"\begin{lemma}Two.\end{lemma}{\bf Proof.} It is clear from the first one. \qed",
        encoding="utf-8",
    )
    content = latex.read_latex({"a.tex": path})
    assert [[proof.text for proof in each.proofs] for each in content.statements] == [
        [],
        ["It is clear from the first one."],
    ]


@pytest.mark.parametrize(
    ("said", "owner"),
    [
        (r"\begin{proof}[Proof of the theorem]", "theorem"),
        (r"\begin{proof}[Proof of Theorem]", "theorem"),
        (r"We now prove the main theorem.\begin{proof}", "theorem"),
        (r"Here is a proof of the same statement.\begin{proof}", "lemma"),
        (r"This lemma will prove the theorem.\begin{proof}", "lemma"),
        (r"\begin{proof}[Proof of the lemma]", "lemma"),
        (r"\begin{proof}", "lemma"),
    ],
)
def test_the_theorem_is_the_last_theorem(tmp_path, said, owner):
    """A proof of "the theorem" after a lemma is that of the theorem, although the lemma stands between them."""
    path = tmp_path / "a.tex"
    path.write_text(
        f"\\begin{{theorem}}Big.\\end{{theorem}}\n\\begin{{lemma}}Small.\\end{{lemma}}\n{said}\nBy hand.\\end{{proof}}",
        encoding="utf-8",
    )
    content = latex.read_latex({"a.tex": path})
    assert [each.kind for each in content.statements if each.proofs] == [owner]
