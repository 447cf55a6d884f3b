"""The Stacks builder on a small hand-made project that has every trap, and once on the real archive."""

from __future__ import annotations

import re
import tarfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from built_collections import card, content, judged_by_split, rows
from git_history import git

from mirblab.core.errors import MirblabError
from mirblab.data.collection import load_folder
from mirblab.sources import stacks
from mirblab.sources.shared import latex

NAMES = ("stacks-qa", "stacks-premise", "stacks-premise-earlier", "stacks-slogan")

CHAPTERS = r"""
\begin{enumerate}
\item \hyperref[sets-section-phantom]{Set Theory}
% \item \hyperref[ghost-section-phantom]{Commented out}
\item \hyperref[algebra-section-phantom]{Algebra}
\item \hyperref[coding-section-phantom]{Coding Style}
\item \hyperref[index-section-phantom]{Index}
\end{enumerate}
"""

TAGS = """# comment, not a tag
0001,algebra-lemma-first
0002,algebra-theorem-main
0003,algebra-definition-ring
0004,sets-lemma-set
0005,algebra-lemma-shared-one
0006,algebra-lemma-shared-two
0007,algebra-lemma-omitted
0008,algebra-lemma-leaf
0009,algebra-equation-main
000A,algebra-remark-aside
000B,algebra-lemma-bare
000C,algebra-lemma-other-leaf
broken line
"""

SETS = r"""\input{preamble}
\title{Set Theory}
\begin{document}
\section{Sets}
\label{section-sets}
\begin{lemma}
\label{lemma-set}
Every set is \emph{small} % \end{lemma} in a comment
in {\it the} sense of \cite[Theorem 3]{Kunen}, at 50\% of its size.
\end{lemma}

\begin{proof}
By Algebra, Theorem \ref{algebra-theorem-main} and Section \ref{section-sets} this is so.
\end{proof}
\end{document}
"""

ALGEBRA = r"""\input{preamble}
\title{\'Etale Algebra}
\begin{document}
\section{Rings}
\label{section-rings}

\begin{definition}
\label{definition-ring}
\begin{history}
Old, see \ref{lemma-first}.
\end{history}
A {\it ring} is a set\footnote{See \emph{Sets}, Lemma \ref{sets-lemma-set}.} with $+$ and~$\cdot$.
\end{definition}

\begin{lemma}[Name of \emph{it}]
\label{lemma-first}
\begin{slogan}
Rings   are \'etale.
\end{slogan}
\begin{reference}
\cite[IV 3.2]{EGA}
\end{reference}
Let $A$ be a ring, see Definition \ref{definition-ring}.
The following are equivalent
\begin{enumerate}
\item\label{item-one} $A$ is \'etale \v Cech,
\item for $\text{all $x$ and $50\%$}$ we have
\begin{enumerate}
\item $x = 0$, or
\item ``not''.
\end{enumerate}
\item[(*)] last.
\end{enumerate}
\medskip\noindent
Moreover
\begin{equation}
\label{equation-first}
\xymatrix{ A \ar[r] & B }
\end{equation}
holds.
\end{lemma}

\begin{remark}
\label{remark-aside}
A remark on Lemma \ref{lemma-first}.
\end{remark}

\begin{proof}
By Definition \ref{definition-ring}, Remark \ref{remark-aside}, the lemma \ref{lemma-first}
and nothing \ref{lemma-missing} we win.
\begin{enumerate}
\item First. % a comment
\item Second, see $$\label{equation-inside} a = b$$
\end{enumerate}
\end{proof}

\begin{theorem}
\label{theorem-main}
The main thing is
\begin{equation}
\label{equation-main}
a = b
\end{equation}
\end{theorem}

\noindent
Some prose in between.

\section{Proofs}

\begin{lemma}
\label{lemma-leaf}
A leaf.
\begin{proof}
Nested: combine (\ref{equation-main}) with item (\ref{item-one}) of Lemma \ref{lemma-first}.
\end{proof}
\end{lemma}

\begin{proof}[Second proof]
Another one that cites Equation \ref{equation-inside} and Lemma \ref{lemma-first}.
\end{proof}

\begin{proof}[Proof of Theorem \ref{theorem-main}]
This proof stands far from its theorem but cites Definition \ref{definition-ring}.
\end{proof}

\begin{lemma}
\label{lemma-shared-one}
One.
\end{lemma}
\begin{proof}
This is a special case of Theorem \ref{theorem-main}.
\end{proof}
\begin{lemma}
\label{lemma-shared-two}
Two.
\end{lemma}
\begin{proof}
This is a special  CASE of Theorem \ref{theorem-main}.
\end{proof}
\begin{lemma}
\label{lemma-omitted}
Three.
\end{lemma}
\begin{proof}
Omitted. Hint: use Lemma \ref{lemma-first} many times over.
\end{proof}
\begin{lemma}
\label{lemma-bare}
Four.
\end{lemma}
\begin{lemma}
\label{lemma-other-leaf}
Five, with macro \foo{kept}.
\end{lemma}
\begin{proof}
Apply Lemma \ref{lemma-omitted} to the given data.
\end{proof}
\begin{lemma}
No label.
\end{lemma}
\begin{lemma}
\label{lemma-untagged}
Six.
\end{lemma}

\section{Loose}
\begin{proof}
Of nothing at all, in a new section.
\end{proof}
\begin{verbatim}
\begin{lemma} 100% sham \end{lemma}
\end{verbatim}
\begin{lemma}
\label{lemma-open}
Never ends.
\end{document}
"""

CODING = r"""\begin{lemma}
\label{lemma-sham}
A sham.
\end{lemma}
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A Stacks project of two chapters, a chapter that is left out, and one that is missing."""
    folder = tmp_path / "tiny-stacks"
    (folder / "tags").mkdir(parents=True)
    files = {"chapters": CHAPTERS, "sets": SETS, "algebra": ALGEBRA, "coding": CODING}
    for name, text in files.items():
        (folder / f"{name}.tex").write_text(text, encoding="utf-8", newline="\n")
    (folder / "tags" / "tags").write_text(TAGS, encoding="utf-8", newline="\n")
    return folder


@pytest.fixture
def built(project: Path, tmp_path: Path) -> Path:
    """The folder in which the collections of the project are."""
    stacks.build(project, tmp_path / "out")
    return tmp_path / "out"


def all_judged(folder: Path) -> dict[str, list[str]]:
    return {query: docs for split in judged_by_split(folder).values() for query, docs in split.items()}


def test_statements_are_prose_with_mathematics(built: Path):
    """No label, list, font or slogan command stays; references are masked; formulas stay; items have numbers.

    A query begins with the name of its statement.
    """
    corpus = rows(built / "stacks-premise" / "corpus.jsonl")
    assert {name: row["text"] for name, row in corpus.items()} == {
        "0004": r"Every set is small in the sense of [cite], at 50\% of its size.",
        "0003": r"A ring is a set (See Sets, Lemma [ref].) with $+$ and $\cdot$.",
        "0001": "Let $A$ be a ring, see Definition [ref]. The following are equivalent\n"
        "(1) $A$ is étale Čech,\n"
        "(2) for $\\text{all $x$ and $50\\%$}$ we have\n"
        "(a) $x = 0$, or\n"
        '(b) "not".\n'
        "(*) last.\n"
        r"Moreover $$ \xymatrix{ A \ar[r] & B } $$ holds.",
        "0002": "The main thing is $$ a = b $$",
        "0008": "A leaf.",
        "0005": "One.",
        "0006": "Two.",
        "0007": "Three.",
        "000B": "Four.",
        "000C": "Five, with macro kept.",
        "algebra-lemma-untagged": "Six.",
    }
    assert corpus["0001"]["title"] == "Name of it"
    query = rows(built / "stacks-qa" / "queries.jsonl")["0001"]
    assert query["text"].startswith("Name of it. Let $A$ be a ring")
    assert corpus["0001"]["metadata"] == {
        "order": 2,
        "kind": "lemma",
        "tag": "0001",
        "chapter": "Étale Algebra",
        "label": "algebra-lemma-first",
    }


def test_proofs_find_their_statement(built: Path):
    """Also after a remark, inside the statement, as a second proof, and far away with a heading."""
    corpus = rows(built / "stacks-qa" / "corpus.jsonl")
    assert {name: row["text"] for name, row in corpus.items()} == {
        "0004-proof": "By Algebra, Theorem [ref] and Section [ref] this is so.",
        "0001-proof": "By Definition [ref], Remark [ref], the lemma [ref] and nothing [ref] we win.\n"
        "(1) First.\n(2) Second, see $$ a = b $$",
        "0008-proof": "Nested: combine ([ref]) with item ([ref]) of Lemma [ref].",
        "0008-proof-2": "Another one that cites Equation [ref] and Lemma [ref].",
        "0002-proof": "This proof stands far from its theorem but cites Definition [ref].",
        "0005-proof": "This is a special case of Theorem [ref].",
        "000C-proof": "Apply Lemma [ref] to the given data.",
    }
    assert all_judged(built / "stacks-qa") == {
        "0001": ["0001-proof"],
        "0002": ["0002-proof"],
        "0004": ["0004-proof"],
        "0008": ["0008-proof", "0008-proof-2"],
        "000C": ["000C-proof"],
    }


def test_premises_are_the_statements_that_the_proofs_name(built: Path):
    """Labels of equations and items count for their statement; the statement itself and remarks do not count."""
    assert all_judged(built / "stacks-premise") == {
        "0004": ["0002"],
        "0001": ["0003"],
        "0002": ["0003"],
        "0008": ["0002", "0001"],
        "0005": ["0002"],
        "0006": ["0002"],
        "0007": ["0001"],
        "000C": ["0007"],
    }


def test_judgements_that_point_forward_leave_the_earlier_collection(built: Path):
    """0004 uses 0002, which stands later; nothing that is judged is out of reach, and the count is in the card."""
    whole, folder = built / "stacks-premise", built / "stacks-premise-earlier"
    expected = all_judged(whole)
    assert expected.pop("0004") == ["0002"]
    assert all_judged(folder) == expected
    assert "0004" in rows(whole / "queries.jsonl") and "0004" not in rows(folder / "queries.jsonl")
    assert (folder / "corpus.jsonl").read_bytes() == (whole / "corpus.jsonl").read_bytes()
    left_out = card(folder)["counts"]["left_out"]
    assert left_out["judgements of a statement that stands later (the rule would hide it)"] == 1
    assert left_out["statements all of whose premises stand later (documents, no queries)"] == 1
    for split in ("test", "dev", "train"):
        found = load_folder(folder, split)
        assert found.candidates.names == ["earlier"]
        places = [ids.get_indexer(column) for ids, column in
                  ((found.query_ids, found.qrels.query_id), (found.doc_ids, found.qrels.doc_id))]  # fmt: skip
        assert found.candidates.permits(*places).all()


def test_leaves_are_halved_by_md5_and_the_rest_is_train(built: Path):
    """0004 is named by a definition's footnote, 0001, 0002 and 0007 by proofs; the other queries are leaves."""
    found = {split: sorted(queries) for split, queries in judged_by_split(built / "stacks-premise").items()}
    # By md5sum: 000C 31579f..., 0006 7f8bb0..., 0008 926aba..., 0005 d39934...
    assert found == {"test": ["0006", "000C"], "dev": ["0005", "0008"], "train": ["0001", "0002", "0004", "0007"]}
    answers = judged_by_split(built / "stacks-qa")
    for split in ("test", "dev", "train"):
        assert set(answers[split]) <= set(found[split])


def test_slogans_find_their_statement(built: Path):
    """One split, the statement without its slogan."""
    folder = built / "stacks-slogan"
    assert judged_by_split(folder) == {"test": {"0001-slogan": ["0001"]}}
    assert rows(folder / "queries.jsonl")["0001-slogan"]["text"] == "Rings are étale."
    assert (folder / "corpus.jsonl").read_bytes() == (built / "stacks-premise" / "corpus.jsonl").read_bytes()


def test_the_card_counts_what_was_left_out(built: Path, project: Path):
    """With the reason, in the card, and nothing of this machine's paths."""
    found = card(built / "stacks-qa")
    assert found["counts"].pop("left_out") == {
        "chapters in chapters.tex without a file": 1,
        "chapters left out (coding, exercises)": 1,
        "command outside mathematics: foo": 1,
        "environments that do not end": 1,
        "items without a label: lemma": 1,
        "lines of tags/tags that are not 'tag,label', or repeat a tag or label": 1,
        "proofs of no statement": 1,
        "proofs under six words, or omitted": 1,
        "proofs with the text of another one (merged)": 1,
        "statements whose proof another one shares (documents, no queries)": 2,
        "statements without a proof": 2,
        "statements without a tag (their label is the id)": 1,
    }
    assert found["counts"]["documents"] == 7
    assert found["command"] == "mirblab build stacks --from tiny-stacks"
    assert found["revision"].startswith("blake2b:") and found["licence"] == "GFDL-1.2-or-later"
    left_out = card(built / "stacks-premise")["counts"]["left_out"]
    assert {reason: count for reason, count in left_out.items() if "reference" in reason or "premise" in reason} == {
        "references in proofs to items of the kind remark": 1,
        "references in proofs to labels of nothing (they do not exist)": 1,
        "references in proofs to labels of proofs": 1,
        "references in proofs to labels of sections, or equations outside items": 1,
        "references in proofs to the statement itself": 1,
        "statements whose proof names no premise (documents, no queries)": 2,
    }
    assert not any(str(project.parent).encode() in raw for raw in content(built).values())


def test_the_report_is_printed(project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """Each collection on a line, then what was left out of it."""
    stacks.build(project, tmp_path / "out")
    printed = capsys.readouterr().out
    assert "stacks-qa: documents 7, " in printed
    assert "left out or odd:      1  proofs of no statement" in printed


def test_the_collections_load(built: Path):
    """With MIRB's instructions, and the query's own statement kept from its answers."""
    found = {name: load_folder(built / name) for name in NAMES}
    assert found["stacks-qa"].card.instruction == "Given a math theorem, retrieve its proof."
    assert found["stacks-premise"].card.candidates == ["not-self"]
    assert found["stacks-premise"].card.instruction == (
        "Given a math theorem, retrieve useful references, such as theorems, lemmas, and definitions, "
        "that are useful for proving the given theorem."
    )
    assert found["stacks-slogan"].card.instruction == "Given a mathematical query, retrieve relevant theorems."
    assert found["stacks-slogan"].card.task == "Semantic Statement Retrieval"


def archive(project: Path, path: Path, **renamed: str) -> Path:
    """Pack the project as path; *renamed* maps a file's stem to its name in the archive."""
    with tarfile.open(path, "w:gz") as tar:
        for file in sorted(project.rglob("*")):
            if file.is_file():
                tar.add(file, renamed.get(file.stem, f"tiny-stacks/{file.relative_to(project)}"))
    return path


def test_an_archive_gives_the_same_bytes(project: Path, built: Path, tmp_path: Path):
    """One of the same name, which the command names."""
    (tmp_path / "packed").mkdir()
    stacks.build(archive(project, tmp_path / "packed" / "tiny-stacks"), tmp_path / "again")
    assert content(tmp_path / "again") == content(built)
    assert sorted(path.name for path in built.iterdir()) == sorted(NAMES)


def test_a_git_url_is_cloned_and_its_commit_noted(project: Path, tmp_path: Path):
    """Through file://, since tests have no network."""
    git(project, "init", "--quiet")
    git(project, "add", ".")
    git(project, "commit", "--quiet", "-m", "x")
    commit = git(project, "rev-parse", "HEAD")
    stacks.build(f"file://{project}", tmp_path / "cloned")
    assert card(tmp_path / "cloned" / "stacks-qa")["revision"] == commit
    stacks.build(project, tmp_path / "folder")
    found = card(tmp_path / "folder" / "stacks-qa")
    assert (found["revision"], found["source"]) == (commit, stacks.URL)


def test_a_password_in_a_url_is_not_kept(tmp_path: Path):
    """Neither in the error nor, therefore, in a card."""
    with pytest.raises(MirblabError) as error:
        stacks.build("file://user:secret@localhost/no/such/repository", tmp_path / "out")
    assert "secret" not in str(error.value) and "cannot clone file://localhost/no/such/repository" in str(error.value)
    assert "give a folder or a .tar.gz with --from" in str(error.value)


def test_without_git_or_network_the_error_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The default origin is the public repository."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MirblabError, match=r"git is not installed, so https://github.com/stacks/stacks-project cannot"):
        stacks.build(None, tmp_path / "out")


def test_broken_origins_are_refused(project: Path, tmp_path: Path):
    """Missing, not an archive, cut short, not a Stacks project, no chapter, not UTF-8."""
    out = tmp_path / "out"
    with pytest.raises(MirblabError, match="neither a folder, nor an archive, nor a git URL"):
        stacks.build(tmp_path / "nowhere", out)
    (tmp_path / "text.tar.gz").write_text("no archive")
    with pytest.raises(MirblabError, match="text.tar.gz cannot be unpacked"):
        stacks.build(tmp_path / "text.tar.gz", out)
    whole = archive(project, tmp_path / "whole.tar.gz").read_bytes()
    (tmp_path / "half.tar.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(MirblabError, match="half.tar.gz cannot be unpacked"):
        stacks.build(tmp_path / "half.tar.gz", out)
    (tmp_path / "empty").mkdir()
    with pytest.raises(MirblabError, match="empty .*looked for chapters.tex and tags/tags.*found nothing"):
        stacks.build(tmp_path / "empty", out)
    (project / "algebra.tex").write_bytes(b"fine\nna\xefve\n")
    with pytest.raises(MirblabError, match=r"algebra.tex, line 2: not UTF-8"):
        stacks.build(project, out)
    for stem in ("algebra", "sets", "coding"):
        (project / f"{stem}.tex").unlink()
    with pytest.raises(MirblabError, match="chapters.tex names 4 chapters, and no file of them is there"):
        stacks.build(project, out)
    assert not out.exists() or not list(out.iterdir())


@pytest.mark.attacks
def test_an_archive_cannot_write_outside(project: Path, tmp_path: Path):
    """A member that points out of the folder is refused; nothing appears."""
    bad = archive(project, tmp_path / "bad.tar.gz", coding="../../escaped.tex")
    with pytest.raises(MirblabError, match="bad.tar.gz cannot be unpacked"):
        stacks.build(bad, tmp_path / "out")
    assert not list(tmp_path.rglob("escaped.tex"))


@pytest.mark.attacks
def test_an_archive_that_unpacks_to_too_much_is_refused(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Before anything is written."""
    monkeypatch.setenv("MIRBLAB_LARGEST", "0.000001")
    with pytest.raises(
        MirblabError, match=r"bomb.tar.gz has [\d,]+ bytes and unpacks to (over )?[\d,]+, while 1,000 are allowed"
    ):
        stacks.build(archive(project, tmp_path / "bomb.tar.gz"), tmp_path / "out")


def test_a_folder_that_is_no_collection_is_not_replaced(project: Path, tmp_path: Path):
    """Somebody's own files under that name stay."""
    (tmp_path / "out" / "stacks-qa").mkdir(parents=True)
    (tmp_path / "out" / "stacks-qa" / "thesis.txt").write_text("mine")
    with pytest.raises(MirblabError, match="stacks-qa exists and is no collection"):
        stacks.build(project, tmp_path / "out")
    assert (tmp_path / "out" / "stacks-qa" / "thesis.txt").read_text() == "mine"


def test_a_proof_of_two_statements_belongs_to_both(project: Path, tmp_path: Path):
    """It is one document, shared_file, so neither statement asks for it; one of a missing label belongs to none."""
    more = r"""
\section{More}
\begin{proof}[Proof of Lemmas \ref{lemma-bare} and \ref{lemma-untagged}]
Both follow from Lemma \ref{lemma-first} and some work.
\end{proof}
\begin{proof}[Proof of Lemma \ref{lemma-nowhere}]
This one belongs to no statement that exists.
\end{proof}
"""
    (project / "sets.tex").write_text(SETS.replace(r"\end{document}", from_another_chapter(more)), encoding="utf-8")
    stacks.build(project, tmp_path / "out")
    corpus = rows(tmp_path / "out" / "stacks-qa" / "corpus.jsonl")
    assert corpus["000B-proof"]["text"] == "Both follow from Lemma [ref] and some work."
    assert not {"000B", "algebra-lemma-untagged"} & set(all_judged(tmp_path / "out" / "stacks-qa"))
    assert all_judged(tmp_path / "out" / "stacks-premise")["000B"] == ["0001"]
    assert card(tmp_path / "out" / "stacks-qa")["counts"]["left_out"]["proofs of no statement"] == 2


def from_another_chapter(text: str) -> str:
    """Return text written for another chapter, whose labels carry the chapter's name."""
    return re.sub(r"\\ref\{lemma-", r"\\ref{algebra-lemma-", text)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (r"a \% b % c", r"a \% b "),
        (r"a \\% c", r"a \\"),
        ("a%\n  b", "ab"),
        ("a % c\n\nb", "a \n\nb"),
        (r"\verb|%| b % c", r"\verb|%| b "),
        ("% whole line\nb", "b"),
        *((code + " % gone", code + " ") for code in (
            "\\begin{lstlisting}\n50% of it\n\\end{lstlisting} a",
            "\\begin{Verbatim}\n50% of it\n\\end{Verbatim} a",
            "see \\url{https://example.org/a%20b} and \\href{https://example.org/a%20b}{c}",
            "50\\% and \\verb|%| and \\lstinline!%! a",
        )),
    ],
)  # fmt: skip
def test_comments_go_as_in_tex(source: str, expected: str):
    """Escaped signs, code and addresses stay, an escaped backslash escapes nothing, a paragraph break survives."""
    assert latex.strip_comments(source) == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (r"{\bf Bold} and {\it $x$ it}", "Bold and $x$ it"),
        (r"\emph{a \textbf{b {\rm c}}} d", "a b c d"),
        (r"resp.\ a~b, c\,d", "resp. a b, c d"),
        (r"G\"odel, \'{E}tale, na\"{\i}ve, \o re, Erd\H{o}s, \c{c}a", "Gödel, Étale, naïve, øre, Erdős, ça"),
        (r"$a\label{x}$ and \eqref{x}, \hyperref[lemma-x]{this lemma}", "$a$ and [ref], this lemma"),
        (r"\begin{align*} a &= \text{$c$}\\ b\nonumber\end{align*}", r"\begin{align*} a &= \text{$c$}\\ b\end{align*}"),
        (r"\begin{equation} a \end{equation}and $$b$$", "$$ a $$and $$ b $$"),
        (r"\[ a \] and \( b \)", r"\[ a \] and \( b \)"),
        (r"costs \$5 and \{x\}", r"costs \$5 and \{x\}"),
        (r"\begin{enumerate}\setcounter{enumi}{2}\item a\item b\end{enumerate}", "(3) a\n(4) b"),
        (r"\begin{itemize}\item a\end{itemize} b", "* a\nb"),
        (r"(\romannumeral2) see \href{http://x.org/a}{there}", "(ii) see there"),
        ("one\ntwo\n\n\\medskip\\noindent\nthree", "one two\nthree"),
        (r"$a$$b$", "$a$$b$"),
        (r"$x \text{ if $\bar a~b$ holds}$ c~d", r"$x \text{ if $\bar a~b$ holds}$ c d"),
        ("\\index{universal!property!of truncation}%\nFor any $A$", "For any $A$"),
        ("Let\\index{ring!of $\\{0\\}$|see{zero}} it \\index[notation]{a}be", "Let it be"),
        ("A category\n\\index{category}\nis small.", "A category is small."),
        (
            "A\\label{a{b}}\\todo[inline]{prove \\emph{it}}\\glossary{x}\\nomenclature[a]{$x$}{a letter} ring.",
            "A ring.",
        ),
        (
            "\\hypertarget{a}{The words} of a target\\markboth{A}{B}\\addcontentsline{toc}{section}{C}.",
            "The words of a target.",
        ),
        ("$a\\index{b}\\label{c}$ and \\index{never ends", "$a$ and never ends"),
        ("See \\\\index{x}", "See indexx"),
    ],
)
def test_prose_loses_its_commands_and_formulas_keep_theirs(source: str, expected: str):
    """Prose loses its commands; formulas keep theirs; index entries, labels, notes and the like are no text."""
    assert latex.latex_to_prose(latex.strip_comments(source)) == expected


def test_what_cannot_be_read_is_counted_and_kept():
    """An open formula, an open brace and an unknown command lose no word."""
    odd: Counter[str] = Counter()
    assert latex.latex_to_prose(r"cost $5 and \emph{more \unknown{x}", odd) == "cost 5 and more x"
    assert odd == {
        "formulas that do not close": 1,
        "braces that do not close": 1,
        "command outside mathematics: unknown": 1,
    }


LEFTOVER = re.compile(
    r"\\(?:label|ref|eqref|pageref|cite|item|emph|footnote|hyperref|slogan|reference|(?:med|big|small)skip|noindent|it|bf)\b"
    r"|\\(?:begin|end)\{(?!(?:align|aligned|eqnarray|matrix|gather|multline|cases|split|array|smallmatrix)\*?\})"
)


def without_formulas(text: str) -> str:
    """Return the text outside mathematics, by a small automaton of its own."""
    text = re.sub(r"\\begin\{(align|eqnarray|gather)(\*?)\}.*?\\end\{\1\2\}|\\\[.*?\\\]", " ", text, flags=re.DOTALL)
    outside, in_formula, depth = [], False, 0
    for token in re.findall(r"\\.|\$\$|[${}]|[^\\${}]+|\\", text, flags=re.DOTALL):
        if token in ("$", "$$") and depth == 0:
            in_formula = not in_formula
        elif in_formula:
            depth += {"{": 1, "}": -1}.get(token, 0)
        else:
            outside.append(token)
    return "".join(outside)


def test_the_real_archive_agrees_with_the_shared_collections(shared_file: Callable[[str], Path], tmp_path: Path):
    """Documents, queries and judgements per query within 5 %, judgements mostly equal, and no command left in prose."""
    source = shared_file("sources/stacks-project.tar.gz")
    stacks.build(source, tmp_path)
    left_out = card(tmp_path / "stacks-premise-earlier")["counts"]["left_out"]
    assert left_out["judgements of a statement that stands later (the rule would hide it)"] == 19
    seen: set[str] = set()
    for name in NAMES:
        theirs = shared_file(f"data/{name.removesuffix('-earlier')}")
        corpus = rows(tmp_path / name / "corpus.jsonl")
        other = rows(next(theirs.glob("corpus.jsonl*")))
        assert len(corpus) == pytest.approx(len(other), rel=0.05)
        ours, others = judged_by_split(tmp_path / name), judged_by_split(theirs)
        assert ours.keys() == others.keys()
        for split, queries in ours.items():
            assert len(queries) == pytest.approx(len(others[split]), rel=0.05), (name, split)
            per_query, expected = (sum(map(len, found.values())) / len(found) for found in (queries, others[split]))
            assert per_query == pytest.approx(expected, rel=0.05), (name, split)
        texts = {**corpus, **rows(tmp_path / name / "queries.jsonl")}
        seen |= {f"{row.get('title', '')} {row['text']}" for row in texts.values()}
    assert not [text for text in seen if LEFTOVER.search(text)]
    assert not [text for text in seen if re.search(r"\\[^%&#_$]|(?<!\\)[{}~]", without_formulas(text))]
    ours, others = all_judged(tmp_path / "stacks-premise"), all_judged(shared_file("data/stacks-premise"))
    assert not others.keys() - ours.keys()
    assert sum(set(ours[query]) == set(docs) for query, docs in others.items()) > 0.99 * len(others)


@pytest.mark.parametrize(
    "piece",
    ["{", "$", "${", "$$", "\\[", "\\begin{align}", "\\emph{", "\\emph{x}", "\\index{", "\\index{x}", "\\footnote{",
     "\\label{", "\\begin{verbatim}", "\\verb|", "\\href{", "\\'", "\\item[", "\\begin{enumerate}", "\\cite[", "%",
     "\\", "\\url{{"],
)  # fmt: skip
def test_prose_that_does_not_end_is_read_soon(piece: str, in_time: None):
    """Four hundred thousand characters, for which a time that grows with the square is minutes."""
    latex.latex_to_prose(latex.strip_comments("Let " + piece * (400_000 // len(piece))))


def test_numbers_of_lists_do_not_fill_the_memory():
    """A numeral of a thousand digits is no numeral."""
    source = (
        rf"\begin{{enumerate}}\setcounter{{enumi}}{{{'9' * 5000}}}\item a \romannumeral{'9' * 5000} b\end{{enumerate}}"
    )
    assert len(latex.latex_to_prose(source)) < 20_000
