"""readers: every reader of a file that others wrote, with small sound inputs, for tests that damage them.

`READERS` is a list of records. A record names one file of an input; `prepare` writes the sound files beside it, `read`
reads the input in which that file lies. A reader may return, or raise MirblabError or FileNotFoundError; nothing else.
"""

from __future__ import annotations

import gzip
import io
import json
import shutil
import sys
import tarfile
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1] / "support"))

import metamath_database

from mirblab.analysis import topics
from mirblab.core import paths
from mirblab.data import collection, runs
from mirblab.data.collection import load_folder
from mirblab.display.threads import sanitize_html
from mirblab.evaluation import arqmath
from mirblab.formula import mathml
from mirblab.formula.in_text import marked_formulas
from mirblab.formula.latex import parser
from mirblab.formula.mathml import parse_content_mathml
from mirblab.sources import (
    benchmarks,
    holstep,
    hub,
    lean,
    lean_views,
    leandojo,
    mapl,
    mathlib_informal,
    meld,
    metamath,
    naturalproofs,
    ntcir,
    rocq,
    same_theorem,
    stacks,
)
from mirblab.sources.arqmath import build as arqmath_build
from mirblab.sources.arqmath.formulas import read_formula_rows
from mirblab.sources.blueprints import build as blueprints_build
from mirblab.sources.own import build as own_build
from mirblab.sources.shared import html
from mirblab.sources.shared.latex import latex_to_prose, strip_comments
from mirblab.sources.stackexchange import build, threads
from mirblab.sources.stackexchange.dump import RowProblems


@dataclass(frozen=True)
class Reader:
    """One file that is read: its place below a folder, sound contents, pieces of its format, and the call."""

    name: str
    file: str
    valid: tuple[bytes, ...]
    call: Callable[[Path], object]  # takes the folder in which the file and those beside it lie
    tokens: tuple[bytes, ...] = ()
    beside: Mapping[str, bytes] = field(default_factory=dict)

    def prepare(self, root: Path) -> Path:
        """Write the files beside the input into the folder *root* and return the place of the input."""
        for name, raw in {**self.beside, self.file: self.valid[0]}.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_bytes(raw)
        return root / self.file

    def read(self, path: Path) -> None:
        """Read the input at *path*, the place that `prepare` gave; what is built is removed again."""
        try:
            self.call(path.parents[self.file.count("/")])
        finally:
            shutil.rmtree(_out(path.parents[self.file.count("/")]), ignore_errors=True)


def _out(root: Path) -> Path:
    return root.with_name(f"{root.name}-out")


def _build(build: Callable[..., object], place: str = "", **options: Any) -> Callable[[Path], object]:
    """Return the call of a builder on the folder, or on a *place* in it."""
    return lambda root: build(root / place, _out(root), **options)


def _text(read: Callable[[str], object], name: str) -> Callable[[Path], object]:
    """Return the call of a reader of text, which takes any characters."""
    return lambda root: read((root / name).read_bytes().decode("utf-8", "replace"))


def _json(*rows: object) -> bytes:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def _packed(files: Mapping[str, bytes], mode: str = "w:gz") -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode=mode) as tar:
        for name, raw in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(raw)
            tar.addfile(member, io.BytesIO(raw))
    return made.getvalue()


def _zipped(files: Mapping[str, bytes]) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name, raw in files.items():
            archive.writestr(zipfile.ZipInfo(name), raw, zipfile.ZIP_DEFLATED)  # of the same day each time
    return made.getvalue()


def _sevenzip(files: Mapping[str, bytes]) -> bytes:
    import py7zr

    made = io.BytesIO()
    with py7zr.SevenZipFile(made, "w") as archive:
        for name, raw in files.items():
            archive.writestr(raw, name)
    return made.getvalue()


def _parquet(rows: list[dict[str, Any]]) -> bytes:
    import pyarrow
    from pyarrow import parquet

    made = io.BytesIO()
    parquet.write_table(pyarrow.Table.from_pylist(rows), made)
    return made.getvalue()


def _pieces(text: str, *more: bytes) -> tuple[bytes, ...]:
    """Return the words of a text, and *more*: pieces of a format that are put where they do not belong."""
    return (*(word.encode() for word in text.split()), *more)


DIGITS = b"9" * 30
MANY_DIGITS = b"9" * 5000  # more than Python reads
XML = _pieces(
    """< > /> </ & &amp; &lt; &#0; &#x10FFFF; &#99999999999; " ' = <row <!-- --> <![CDATA[ ]]> <?xml ?> &e; Id=
    <posts> </posts> -1 １ """,
    DIGITS, MANY_DIGITS, b"&#" + MANY_DIGITS + b";", b"\xef\xbb\xbf", b"\x00", b"\xef\xbf\xbe", 
    b' xmlns:a="b"', b'<row Id="1" />',
    b'<!DOCTYPE a [<!ENTITY e "x">]>',
)  # fmt: skip
JSON = _pieces(
    r"""{ } [ ] , : " null true NaN Infinity 1e400 -0 1.5 \ud800 \u0000 "_id" "text" "" {} []""",
    DIGITS, MANY_DIGITS, b"[" * 3000, b'{"a":' * 3000, b"\n", b"\r", b"\xe2\x80\xa8", b"\xef\xbb\xbf",
)  # fmt: skip
CELLS = _pieces(
    '" "" , ; 0 -1 1e400 nan inf １', DIGITS, MANY_DIGITS, b"\t", b"\n", b"\r", b"\x00", b"\xef\xbb\xbf", b" "
)
LATEX = _pieces(
    r"""\ { } $ $$ % \begin{ \end{ \begin{lemma} \end{lemma} \begin{proof} \end{proof} \label{ \ref{ \index{
    \left( \right)
    \newcommand \def \newcommand\begin{x} \newtheorem{a}{b} #1 #9 [ ] \verb| \begin{verbatim} \item \lean{ \input{ \[ \]
    \' ^ _ & \\ ~ \footnote{ \romannumeral99999 \url{ \emph{ \begin{enumerate}""",
    "\ue000".encode(), "\ue0001\ue001".encode(),
)  # fmt: skip
CODE = _pieces(
    """/- -/ /-- -- (* *) " ( ) { } ⟨ ⟩ @[ ] := : theorem namespace end variable Lemma Proof. Qed. Module End Section .
    ```lean ``` « » open alias where | #doc :::theorem ::: $ _ Require""",
    b"\n", b"\t", b"section\n", b"#doc (Manual) ", b"Require Import ", b"namespace A\n", b"end A\n",
)  # fmt: skip
MM = _pieces("$( $) $[ $] $c $v $f $e $a $p $= $. ${ $} $d ( ) ? A UZ Z |- wff set.mm ../x", b" ", b"\n")

_POSTS = b"""<?xml version="1.0" encoding="utf-8"?>
<posts>
  <row Id="1" PostTypeId="1" Title="Sums &amp;lt; 1" Score="3"
    Body="&lt;p&gt;What is &lt;span class=&quot;math-container&quot;&gt;$a &amp;lt; b$&lt;/span&gt;?&lt;/p&gt;"
    Tags="&lt;sums&gt;&lt;limits&gt;" CreationDate="2012-01-02T03:04:05" AcceptedAnswerId="10" />
  <row Id="2" PostTypeId="1" Title="Second" Score="1" Body="&lt;p&gt;The same&lt;pre&gt;code&lt;/pre&gt;&lt;/p&gt;"
    Tags="|sums|" />
  <row Id="10" PostTypeId="2" ParentId="1" Score="5" Body="&lt;p&gt;An answer $x$.&lt;/p&gt;"
    CreationDate="2012-01-02T03:04:05" />
  <row Id="11" PostTypeId="2" ParentId="1" Body="No." CreationDate="2012-01-02T03:04:05" />
</posts>
"""
_LINKS = (
    b'<?xml version="1.0"?>\n<postlinks>\n<row Id="9" PostId="1" RelatedPostId="2" LinkTypeId="3" />\n</postlinks>\n'
)
_COMMENTS = b'<comments>\n<row Id="1" PostId="10" Score="2" Text="so $x&lt;1$" UserId="7" />\n</comments>\n'
_USERS = b'<users>\n<row Id="7" DisplayName="Emmy &amp; Co" />\n</users>\n'
_DUMP = {"Posts.xml": _POSTS, "PostLinks.xml": _LINKS, "Comments.xml": _COMMENTS, "Users.xml": _USERS}

_COLUMNS = "id\tpost_id\tthread_id\ttype\tcomment_id\told_visual_id\tvisual_id\tissue\tformula\n"
_FORMULAS = (
    _COLUMNS + "7\t10\t1\tanswer\t\t1100\t100\tv\ta+b+c\n6\t1\t1\tquestion\t\t1100\t100\t\ta&gt;b% +c\n5\t10\t1\t"
    'comment\t4\t1100\t200\t\t"""quoted"\n'
).encode()
_ARQMATH = {
    "Collection/Posts.V1.3.xml": _POSTS,
    "Formulas/latex_representation_v3/1.tsv": _FORMULAS,
    "Topics/Topics_Task1_2022_V0.1.xml": b"""<?xml version="1.0"?>
<Topics>
  <Topic number="A.301"><Title>Is &lt;span class="math-container" id="q_1"&gt;$n&amp;lt;m$&lt;/span&gt;?</Title>
    <Question>&lt;p&gt;I guess.&lt;/p&gt;</Question><Tags>algebra,order</Tags></Topic>
</Topics>""",
    "Topics/Topics_V1.1.xml": b"""<Topics><Topic number="B.301"><Formula_Id>q_1</Formula_Id><Latex>n&amp;lt;m</Latex>
<Title>Why?</Title><Question>&lt;p&gt;Because.&lt;/p&gt;</Question><Tags>order</Tags></Topic></Topics>""",
    "Qrels/qrel_task1_2022_official": b"A.301\t0\t10\t3\nA.301\t0\t11\t0\n",
    "Qrels/qrel_task2_2022_official.tsv": b"B.301 0 100 3\nB.301 0 200 1\n",
}
_NTCIR = {
    "topics-concrete.txt": b"NTCIR12-MathWiki-1\ta+b\nNTCIR12-MathWiki-2\tx &lt; y\n",
    "topics.txt": b"NTCIR12-MathWiki-1\ta+b\nNTCIR12-MathWiki-2\tx &lt; y\n",
    "qrels.txt": b"NTCIR12-MathWiki-1 xxx Area:0 4.0\nNTCIR12-MathWiki-2 xxx Area:1 0.0\n",
    "formulas.tsv": b"Area:0\ta+b% +c\nArea:1\tx\n",
}
_ARTICLE = b"""<!DOCTYPE html><html><body><p>Nothing &nbsp; here.</p>
<math id="m1" alttext="not this" display="block"><semantics><mi>a</mi>
 <annotation encoding="application/x-tex">a&lt;b%
c</annotation></semantics></math>
<m:math alttext='"2 > 1"'><m:mn>2</m:mn></m:math> <math><mi>no latex</mi></math>
<formula id="Other_article:7"><m:math alttext="d"><m:mi>d</m:mi></m:math></formula> <math alttext="e"/>
</body></html>"""

_LONG = "A proof of quite enough words that says something new about"


def _item(number: int, kind: str, text: str, *refs: int) -> dict[str, Any]:
    made: dict[str, Any] = {"id": number, "type": kind, "label": f"lemma-{number}", "title": f"Lemma {number}"}
    made |= {"categories": [], "contents": [text], "refs": [], "ref_ids": []}
    proof = {"contents": [f"{_LONG} {number}."], "refs": [], "ref_ids": list(refs)}
    return made | ({"proofs": [proof]} if kind == "theorem" else {})


_PROOFS = json.dumps(
    {
        "dataset": {
            "theorems": [
                _item(0, "theorem", "Every ring is nice.", 2),
                _item(1, "theorem", r"See \ref{lemma-0}.", 0, 2),
            ],
            "definitions": [_item(2, "definition", "A ring is $R$.")],
            "others": [],
            "retrieval_examples": [0, 1],
        },
        "splits": {
            name: {"ref_ids": [], "examples": [[place, 0]]} for name, place in (("test", 0), ("valid", 1), ("train", 1))
        },
    }
).encode()

_PREMISE = {
    "full_name": "Nat.zero_add",
    "code": "@[simp] theorem zero_add (n : ℕ) : 0 + n = n := by simp /- a -/",
    "start": [3, 1],
    "end": [5, 9],
    "kind": "commanddeclaration",
}
_MENTION = {"full_name": "Nat.zero_add", "def_path": "A.lean", "def_pos": [4, 9], "def_end_pos": [4, 20]}
_TACTIC = {
    "tactic": "rw",
    "annotated_tactic": ["rw <a>x</a>", [_MENTION]],
    "state_before": "⊢ a = 1",
    "state_after": "",
}
_THEOREM = {
    "url": "u",
    "commit": "3c30",
    "file_path": "X.lean",
    "full_name": "T.one",
    "start": [1, 1],
    "end": [2, 2],
    "traced_tactics": [_TACTIC],
}


def _theorem(state: str) -> bytes:
    return json.dumps([_THEOREM | {"traced_tactics": [_TACTIC | {"state_before": f"⊢ {state}"}]}]).encode()


_LEANDOJO = {f"novel_premises/{name}.json": _theorem(name) for name in ("test", "val", "train")}
_LEANDOJO["corpus.jsonl"] = _json({"path": "A.lean", "imports": [], "premises": [_PREMISE]})

_PAIRS = [
    {
        "statement": "lemma x: a",
        "state": f"proof (prove)\n goal (1 subgoal):\n  1. s{n}",
        "step": "by simp",
        "premise_name": name,
        "premise_statement": f"{name}: shows x",
    }
    for n, name in [(0, "c"), (1, "c"), (2, "c"), (3, "c"), (0, "own0"), (1, "own1"), (2, "own2")]
]

_HOLSTEP = {
    "train/00001": b"N ADD_SYM\nC |- (!m. m = m)\nT t\nD ADD_CLAUSES\nA |- (!n. n = n)\nT t\n"
    b"+ |- a step\nT t\n- |- b\nT t\n",
    "test/0001": b"N MULT_SYM\nC |- (!m. m = m * 1)\nT t\nD ADD_SYM\nA |- (!m. m = m)\nT t\n"
    b"D ADD_0\nA |- (!n. n = 0 + n)\nT t\n",
}
_INFORMAL = {
    "data.jsonl": _json(
        {
            "module_name": ["M"],
            "kind": "theorem",
            "name": ["Is", "fixed"],
            "signature": "(K) : a = b",
            "informal_name": "Fixed",
            "informal_description": "For $K$.",
        },
        {"name": "Nat.zero", "formal_statement": "0 = 0", "informal_statement": "Zero."},
    ),
    "queries.jsonl": _json({"_id": 1, "text": "query 1"}, {"_id": 2, "text": "query 2"}),
    "judgements.tsv": b"query-id\tcorpus-id\tscore\n1\tIs.fixed\t2\n2\tNat.zero\t1\n",
}
_KEYS = ["id", "module", "kind", "split", "informal", "signature", "type"]
_JUDGED = [
    {"_id": "cayley", "title": "", "text": "|- ph", "metadata": {"description": "Cayley's Theorem."}},
    {"_id": "eirr", "title": "", "text": "|- ps"},
]
_VIEWS = [
    dict(zip(_KEYS, row, strict=True))
    for row in (
        ["Nat.b", "Mathlib.Data.Nat", "def", "test", "The number b.", "def Nat.b : Nat", "Nat"],
        ["Nat.le", "Mathlib.Order.Nat", "theorem", "test", "It is less.", "theorem Nat.le : a < b", "a < b"],
        ["Nat.c", "Mathlib.Data.Nat", "lemma", "train", "c.", "lemma Nat.c : c = c", "c = c"],
    )
]
_SMALL = {
    f"small/{file.relative_to(place).as_posix()}": file.read_bytes()
    for place in [paths.bundled_path("data", "mini", "blueprint")]
    for file in sorted(place.rglob("*"))
    if file.is_file()
}
_TINY = {
    "tiny/lakefile.toml": b"",
    "tiny/One.lean": b"/-- A docstring. -/\n@[simp] theorem one (n : Nat) : 1 = 1 := rfl\n"
    b"namespace A\nvariable {x : Nat}\nlemma two : x = x := by\n  -- end A\n  rfl\nend A\n",
    "tiny/blueprint/src/content.tex": b"\\begin{lemma}\\label{l}\\lean{one}\n"
    b" The number one is\n equal to itself.\n\\end{lemma}\n"
    b"\\begin{theorem}\\label{t}\\lean{A.two}\\uses{l} Two things are always the same.\\end{theorem}\n",
}
_VERSO = {
    "tiny/lakefile.toml": b"",
    "tiny/One.lean": b'theorem one : 1 = 1 := rfl\nattribute [blueprint "l"] one\n',
    "tiny/Chapter.lean": _SMALL["small/Small/Chapter.lean"],
}
_MELD = {
    "pairs": [
        {
            "id": 1,
            "entry_1": {"framing": "vector spaces", "statement": "Every space has a $basis$."},
            "entry_2": {"framing": "module theory", "statement": "Every module over a field is free."},
        },
        {
            "id": 2,
            "entry_1": {"framing": "vector spaces", "statement": "A map has a rank."},
            "entry_2": {"framing": "module theory", "statement": "A morphism has a length of image."},
        },
    ],
    "distractors": {"module theory": ["Some modules are not free."]},
}

_PAPER = rb"""\documentclass{amsart}
\newtheorem{satz}{Theorem}
\newcommand{\R}{\mathbb{R}}
\newcommand{\norm}[2][2]{\lVert #2 \rVert_{#1}}
\def\pair#1#2{(#1,#2)}
\begin{document}
\begin{satz}[Main result]\label{main} % a comment
Every $x \in \R$ has $\norm{x} \ge 0$ and \pair{a}{b}\index{norm!of a vector}.
\end{satz}
\begin{proof}
By Lemma~\ref{help} and a look at $\norm[1]{x}$ we are done here.
\begin{enumerate}\item One \footnote{Two.} \item three \end{enumerate}
\end{proof}
\begin{lemma}\label{help} Helpful \verb|%| \emph{thing}. \end{lemma}
\begin{verbatim}
\begin{satz}Code is no statement.\end{satz}
\end{verbatim}
\end{document}
"""
_TABLE = (
    b'id,title,text,proof,uses,field\na,One,"Every $x$, is","By b, it\nholds so.",b,algebra\n'
    b"b,Two,Some y,Clear from a.,a,logic\n"
)
_ROWS = _json(
    {"id": "a", "title": "One", "text": "Every $x$", "proof": "By b it holds.", "uses": ["b"]},
    {"id": "b", "title": "Two", "text": "Some y", "proof": "Clear from a.", "uses": ["a"]},
)
_METAMATH = {"set.mm": metamath_database.MAIN.encode(), "logic.mm": metamath_database.LOGIC.encode()}
_ONE_FILE = (metamath_database.LOGIC + metamath_database.MAIN.replace("$[ logic.mm $]", "")).encode()
_LEAN = {
    "lakefile.toml": b'name = "tiny"\nsrcDir = "src/"\n',
    "src/Tiny/Zero.lean": """namespace Tiny /- A comment. /- nested -/ -/
variable {G : Type*} [Mul G] (k : ℕ)
/-- The product of an element of `G` by itself. -/
@[to_additive (attr := simp) twice] def square (x : G) : G := x * x
section
open Nat hiding add in
private lemma sq_one (h : Pair x) : 1 = 1 := by rintro ⟨x, hx⟩ | x; exact h.le (fun y ↦ ?_)
end end Tiny
""".encode(),
    "src/Tiny.lean": "import Tiny.Zero\nopen Tiny\nalias ⟨_, two⟩ := square\n"
    "theorem last : 2 = 2 := by simp [two, _root_.Tiny.square]\n".encode(),
}
_ROCQ = {
    "_CoqProject": b"-R . tiny\nbase/nat.v # the first one\nlast.v\n",
    "base/nat.v": b"""(* A comment. Lemma sham : True. (* nested. "*)" *) *)
Notation "x .+ y" := (add x y) (at level 50).
Lemma addC x y : x + y = y + x. Proof. by elim: x => [|x IH]. Qed.
Module Theory. Section Ops. Variables (op : nat -> nat).
#[local] Lemma addA : op (op n) = n :> nat. Proof. by rewrite !addC. Qed.
End Ops. End Theory.
""",
    "last.v": b"From tiny.base Require Import nat.\nRemark far : 3 = 3. Proof. by rewrite addC Theory.addA. Qed.\n",
}
_STACKS = {
    "chapters.tex": rb"\begin{enumerate}\item \hyperref[sets-section-phantom]{Set Theory}\end{enumerate}",
    "tags/tags": b"0001,sets-lemma-set\n0002,sets-theorem-main\n",
    "sets.tex": rb"""\input{preamble}
\title{Set Theory}
\begin{document}
\section{Sets}
\label{section-sets}
\begin{lemma}
\label{lemma-set}
\begin{slogan} Sets are small. \end{slogan}
Every set is \emph{small} % \end{lemma} in a comment
in {\it the} sense of \cite[Theorem 3]{Kunen}, at 50\% of its size.
\end{lemma}
\begin{theorem}\label{theorem-main} The \'etale $a = b$. \end{theorem}
\begin{proof}
By Lemma \ref{lemma-set} and Section \ref{section-sets} this is so for all of them.
\end{proof}
\end{document}
""",
}
_CORPUS = [{"_id": "d1", "title": "T", "text": "document $1$"}, {"_id": "d2", "text": "document 2"}]
_BEIR = {
    "corpus.jsonl": _json(*_CORPUS, {"_id": "d3", "text": "x", "metadata": {"order": 3, "tags": "a, b"}}),
    "queries.jsonl": _json({"_id": "q1", "text": "query 1", "tags": ["a"]}, {"_id": "q2", "text": "query 2"}),
    "qrels/test.tsv": b"query-id\tcorpus-id\tscore\nq1\td1\t1\nq2\td2\t2\nq2\td1\t0\n",
    "excluded_ids.jsonl": _json({"query-id": "q1", "excluded-ids": ["d2"]}, {"query-id": "q2", "excluded-ids": []}),
    "groups.tsv": b"query-id\tgroup\tcorpus-id\nq1\ta\td1\nq2\ta\td2\n",
    "card.toml": b'name = "tiny"\nrelevant_from = 1\nlicence = "CC0"\n[counts]\ndocuments = 3\n',
}
_HUB = {
    "corpus/corpus-00000-of-00001.parquet": _parquet(_CORPUS),
    "queries/queries-00000-of-00001.parquet": _parquet([{"_id": "q1", "text": "query 1"}]),
    "default/test-00000-of-00001.parquet": _parquet([{"query-id": "q1", "corpus-id": "d1", "score": 1.0}]),
}
_MATHNET = {
    f"{tier}/{name}": _json(row)
    for tier in benchmarks.TIERS
    for name, row in (
        ("corpus.jsonl", {"_id": "d1", "text": "one"}),
        ("queries.jsonl", {"_id": "q1", "text": "query 1"}),
        ("qrels/test.jsonl", {"query-id": "q1", "corpus-id": "d1", "score": 1}),
    )
}
_ARXIV = "https://arxiv.org/abs/2310.15076"
_THEOREM_SEARCH = {
    "theorem.parquet": _parquet([{"theorem_id": 1, "paper_id": 7, "name": "Theorem 3.1", "body": "Let $X$ be."}]),
    "paper.parquet": _parquet([{"paper_id": 7, "link": _ARXIV}]),
    "theorem_slogan.parquet": _parquet([{"theorem_id": 1, "slogan": "one"}]),
    "theorems-test.parquet": _parquet(
        [{"query": "q", "theorem number": "3.1", "paper title": "t", "link to paper on arxiv": _ARXIV}]
    ),
}
_MATCHING = (
    b"formal_decl,formal_slogan,arxiv_id,informal_ref,informal_slogan,paper_title,gpt54_label\n"
    b'Nat.add,sum,2310.15076,Theorem 1,"a ""sum""",On sums,exact\nNat.mul,product,2310.15076,Lemma 2,of,On,wrong\n'
)
_LEANSEARCH = {
    "declarations.jsonl": _json({"name": ["Nat", "add"], "informal_name": "Sum", "informal_description": "a sum"}),
    "MathlibQR.json": json.dumps([{"id": "1", "full_name": "Nat.add", "q1a_lean": "a + b", "kind": "def"}]).encode(),
    "MathlibQR_shared171.json": json.dumps({"shared_declarations": ["Nat.add"]}).encode(),
    "MathlibMPR.json": json.dumps(
        [{"id": "m", "NL_main_result": "sums", "premise_group": [{"kind": "original", "docs": ["Nat.add"]}]}]
    ).encode(),
}
_BRIGHT = {
    "documents/aops-00000-of-00001.parquet": _parquet([{"id": "a", "content": "one"}, {"id": "b", "content": "two"}]),
    "examples/aops-00000-of-00001.parquet": _parquet(
        [{"id": "1", "query": "q", "gold_ids": ["a"], "excluded_ids": ["b"]}]
    ),
}
_MATHML = (
    b'<?xml version="1.0"?><math xmlns="http://www.w3.org/1998/Math/MathML" alttext="a"><semantics><mrow>'
    b"<msup><mi>x</mi><mn>2</mn></msup><mo>=</mo><mfrac><mn>1</mn><mrow><mo>(</mo><mi>y</mi><mo>)</mo></mrow></mfrac></mrow>"
    b'<annotation encoding="application/x-tex">x^2</annotation></semantics></math>',
    b'<m:math><m:mtable><m:mtr><m:mtd><m:mi mathvariant="bold">a</m:mi></m:mtd></m:mtr></m:mtable>&lt;&alpha;</m:math>',
    b"<math><mmultiscripts><mi>a</mi><mn>1</mn><none/><mprescripts/><mn>2</mn><mn>3</mn></mmultiscripts><mfenced"
    b' open="[" separators=";,"><mi>a</mi><mi>b</mi></mfenced><qvar name="x"/></math>',
)
_CONTENT = (
    b"<math><apply><eq/><apply><power/><ci>x</ci><cn>2</cn></apply><cn type='rational'>1<sep/>2</cn></apply></math>",
    b"<m:math><m:apply><m:sum/><m:bvar><m:ci>i</m:ci></m:bvar><m:interval><m:cn>0</m:cn><m:ci>n</m:ci></m:interval>"
    b"<m:apply><m:csymbol cd='ambiguous'>subscript</m:csymbol><m:ci>a</m:ci><m:ci>i</m:ci>"
    b"</m:apply></m:apply></m:math>",
)
_POST = (
    b'<p>Take <span class="math-container" id="7">$a &lt; b$</span> at <b>5% off</b>,  '
    b"<pre><code>x</code></pre> $$y$$</p>"
)


def _family(
    name: str, files: Mapping[str, bytes], call: Callable[[Path], object], tokens: tuple[bytes, ...]
) -> list[Reader]:
    """Return a reader for each file of an input."""
    return [
        Reader(
            f"{name}: {file}",
            file,
            (raw,),
            call,
            tokens,
            {other: rest for other, rest in files.items() if other != file},
        )
        for file, raw in files.items()
    ]


READERS: list[Reader] = [
    *_family(
        "stackexchange",
        {name: _DUMP[name] for name in ("Posts.xml", "PostLinks.xml")},
        _build(build.build),
        XML,
    ),
    Reader("7z archive", "site.7z", (_sevenzip(_DUMP),), _build(build.build, "site.7z"), (b"7z\xbc\xaf\x27\x1c",)),
    *_family(
        "threads",
        _DUMP,
        lambda root: [
            sanitize_html(post.body)
            for thread in threads.read_threads(root, ["1"])
            for post in (thread.question, *thread.answers)
        ],
        XML,
    ),
    *_family("arqmath", _ARQMATH, _build(arqmath_build.build), XML + CELLS),
    Reader(
        "arqmath formulas",
        "latex_representation_v3/1.tsv",
        (_FORMULAS,),
        lambda root: list(read_formula_rows([root / "latex_representation_v3" / "1.tsv"], RowProblems())),
        CELLS,
    ),
    *_family("ntcir", _NTCIR, _build(ntcir.build), CELLS),
    Reader(
        "ntcir: article",
        "pages/Area.html",
        (_ARTICLE,),
        _build(ntcir.build),
        XML,
        {name: raw for name, raw in _NTCIR.items() if name != "formulas.tsv"},
    ),
    Reader("naturalproofs", "data/naturalproofs_stacks.json", (_PROOFS,), _build(naturalproofs.build), JSON),
    *_family("leandojo", _LEANDOJO, _build(leandojo.build), JSON + CODE),
    Reader("mapl: json lines", "full_dataset.jsonl", (_json(*_PAIRS),), _build(mapl.build, test=1, dev=1), JSON),
    Reader(
        "mapl: array",
        "full_dataset.json",
        (json.dumps(_PAIRS, indent=1).encode(),),
        _build(mapl.build, test=1, dev=1),
        JSON,
    ),
    *_family(
        "holstep",
        _HOLSTEP,
        _build(holstep.build),
        (b"\nN ", b"\nC ", b"\nD ", b"\nA ", b"\nT ", b"\n+ ", b"|- ", b"\r", b"\x00"),
    ),
    *_family("mathlib-informal", _INFORMAL, _build(mathlib_informal.build), JSON + CELLS),
    Reader("views: json lines", "views.jsonl", (_json(*_VIEWS),), _build(lean_views.build), JSON),
    Reader("views: gzip", "views.jsonl.gz", (gzip.compress(_json(*_VIEWS), mtime=0),), _build(lean_views.build)),
    Reader("views: parquet", "views.parquet", (_parquet(_VIEWS),), _build(lean_views.build), (b"PAR1",)),
    *_family("blueprints", _TINY, _build(blueprints_build.build), LATEX + CODE),
    *_family("blueprints: Verso", _VERSO, _build(blueprints_build.build), CODE + LATEX),
    *[
        Reader(
            f"blueprints: {Path(file).name}",
            file,
            (_SMALL[file],),
            _build(blueprints_build.build),
            LATEX + CODE,
            {name: raw for name, raw in _SMALL.items() if name != file},
        )
        for file in ("small/Small/Parity.lean", "small/blueprint/src/content.tex", "small/blueprint/src/macros.tex")
    ],
    Reader(
        "blueprints: tar",
        "tiny.tar.gz",
        (_packed(_TINY), _packed(_TINY, "w"), _packed(_TINY, "w:xz"), _packed(_TINY, "w:bz2")),
        _build(blueprints_build.build, "tiny.tar.gz"),
    ),
    Reader(
        "blueprints: zip",
        "tiny.zip",
        (_zipped(_TINY),),
        _build(blueprints_build.build, "tiny.zip"),
        (b"PK\1\2", b"../"),
    ),
    Reader("meld", meld.FILE_NAME, (json.dumps(_MELD).encode(),), _build(meld.build), JSON),
    Reader("own: latex", "mine/a.tex", (_PAPER,), _build(own_build.build, "mine"), LATEX),
    Reader("own: csv", "mine.csv", (_TABLE,), _build(own_build.build, "mine.csv"), CELLS),
    Reader("own: tsv", "mine.tsv", (_TABLE.replace(b",", b"\t"),), _build(own_build.build, "mine.tsv"), CELLS),
    Reader("own: json lines", "mine.jsonl", (_ROWS,), _build(own_build.build, "mine.jsonl"), JSON),
    *_family("metamath", _METAMATH, _build(metamath.build, "set.mm"), MM),
    Reader("metamath: gzip", "set.mm.gz", (gzip.compress(_ONE_FILE, mtime=0),), _build(metamath.build, "set.mm.gz")),
    *_family("lean", _LEAN, _build(lean.build), CODE),
    *_family("rocq", _ROCQ, _build(rocq.build), CODE),
    Reader("same-theorem: corpus", "setmm/corpus.jsonl", (_json(*_JUDGED),), _build(same_theorem.build), JSON),
    *_family("stacks", _STACKS, _build(stacks.build), LATEX + CELLS),
    *_family("hub: parquet", _HUB, _build(hub.build, names=["mirb-mathlib"]), (b"PAR1",)),
    *_family("mathnet", _MATHNET, _build(benchmarks.mathnet), JSON),
    *_family("theoremsearch", _THEOREM_SEARCH, _build(benchmarks.theorem_search, text="slogan"), (b"PAR1",)),
    Reader("theorem-matching", "theorem_matching.csv", (_MATCHING,), _build(benchmarks.theorem_matching), CELLS),
    *_family("leansearch", _LEANSEARCH, _build(benchmarks.leansearch), JSON),
    *_family("bright", _BRIGHT, _build(benchmarks.bright), (b"PAR1",)),
    *_family("collection", _BEIR, load_folder, JSON + CELLS),
    Reader(
        "card",
        "card.toml",
        (_BEIR["card.toml"],),
        collection.read_card_table,
        (b"[", b"]", b"=", b'"', b"\n", b"'''", b"1e400", b"\xff", b"a.b"),
    ),
    Reader(
        "run",
        "run.trec",
        (b"q1 Q0 d1 1 2.5 bm25\nq1 Q0 d2 2 1.5 bm25\n",),
        lambda root: runs.read_trec_rows(root / "run.trec"),
        CELLS,
    ),
    Reader(
        "run: gzip",
        "run.trec.gz",
        (gzip.compress(b"q1 Q0 d1 1 2.5 bm25\n" * 9, mtime=0),),
        lambda root: runs.read_trec_rows(root / "run.trec.gz"),
    ),
    Reader(
        "submission",
        "a.tsv",
        (b"A.1\t77\t1\t0.9\tours\nA.1\t78\t2\t0.8\tours\n",),
        lambda root: arqmath.read_submission(root / "a.tsv"),
        CELLS,
    ),
    Reader(
        "topic labels",
        "labels.csv",
        (b"query_id,kind,difficulty\nA.1,proof,hard\nA.2,concept,easy\n",),
        lambda root: topics.read_labels(root / "labels.csv"),
        CELLS,
    ),
    Reader(
        "text: MathML",
        "a.xml",
        _MATHML,
        _text(mathml.parse_mathml, "a.xml"),
        XML + (b"<mi>", b"<mrow>", b"\\left(", b"<mfrac/>"),
    ),
    Reader(
        "text: Content MathML",
        "a.xml",
        _CONTENT,
        _text(parse_content_mathml, "a.xml"),
        XML + (b"<apply>", b"<ci>", b"<cn>"),
    ),
    Reader(
        "text: LaTeX formula",
        "a.tex",
        (rb"\frac{a}{b}_{i}^{2} \left( \begin{pmatrix} a & b \\ c \end{pmatrix} \right) \text{if $x$}",),
        _text(parser.parse_latex, "a.tex"),
        LATEX,
    ),
    Reader(
        "text: LaTeX prose",
        "a.tex",
        (_PAPER,),
        _text(lambda text: latex_to_prose(strip_comments(text)), "a.tex"),
        LATEX,
    ),
    Reader(
        "text: post",
        "a.html",
        (_POST,),
        _text(
            lambda text: (
                html.html_to_text(text),
                html.find_formulas(text),
                sanitize_html(text),
                marked_formulas(text),
            ),
            "a.html",
        ),
        XML,
    ),
]
