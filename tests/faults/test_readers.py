"""Every reader takes the sound inputs on which the others stand."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from readers import MANY_DIGITS, READERS, Reader

from mirblab.core.errors import MirblabError

CHAIN = [b"a" + b"".join(b"%c" % (97 + int(digit)) for digit in f"{n:04}") for n in [*range(7000), 0]]
BY_NAME = {reader.name: reader for reader in READERS}
# What ended in a traceback, or did not end, before issue 17.
HEADER = b"id\tpost_id\tthread_id\ttype\tcomment_id\told_visual_id\tvisual_id\tissue\tformula\n"
FORMERLY = [
    ("ntcir: topics.txt", b"NTCIR12-MathWiki-" + MANY_DIGITS + b"\ta+b\n"),
    ("ntcir: qrels.txt", b"NTCIR12-MathWiki-" + b"9" * 90_000 + b"x xxx Area:0 4.0\n"),
    (
        "arqmath: Formulas/latex_representation_v3/1.tsv",
        HEADER + b"7\t10\t1\tanswer\t\t1100\t" + MANY_DIGITS + b"\tv\ta\n",
    ),
    (
        "blueprints: Verso: tiny/One.lean",
        b'theorem one : 1 = 1 := rfl\nattribute [blueprint "l"]\nattribute [blueprint]',
    ),
    ("blueprints: tiny/One.lean", b"theorem one : 1 = 1 := rfl\n" + b"private\n" * 12_500),
    ("blueprints: tiny/One.lean", b"theorem one " + b"{x y " * 20_000),
    ("topic labels", b"query_id,category\nA.1,a\rb\n"),
    ("text: MathML", b"<math" + b"\\left(" * 16_000),
    ("text: MathML", b"<math><mi>&#" + MANY_DIGITS + b";</mi></math>"),
    ("text: LaTeX prose", b"\\emph{" * 16_000),
    ("text: LaTeX prose", b"${" * 50_000),
    ("text: LaTeX prose", b"$" + b" " * 99_000 + b"x$"),
    ("text: LaTeX prose", b"\\romannumeral " + MANY_DIGITS),
    ("own: latex", b"\\begin{lemma}[" * 7000),
    ("own: latex", b"\\newcommand\\a{" * 7000),
    ("own: latex", b"\\begin{lemma}" + b" " * 90_000 + b"x\\end{lemma}"),
    ("own: latex", b"\\newenvironment{" + b" " * 90_000),
    ("own: latex", b"\\declaretheorem[" + b"name=" * 18_000),
    ("own: latex", b"".join(b"\\def\\%s{\\%s}" % pair for pair in pairwise(CHAIN))),
    ("own: latex", b"\\def\\a{" + b"\\b" * 20_000 + b"}\\begin{lemma}" + b"\\a" * 20_000 + b"\\end{lemma}"),
    ("stacks: sets.tex", b"\\begin{verbatim}" * 6000),
    ("metamath: set.mm", b"$c a $.\n$( Many words are said here. $)\na $p a $= ( ) " + b"U" * 90_000 + b"A $.\n"),
]


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)
def test_sound_inputs_are_read(reader: Reader, tmp_path: Path):
    """Else a damaged input would be refused for what is wrong with the sound one."""
    path = reader.prepare(tmp_path / "the-input")
    for content in reader.valid:
        path.write_bytes(content)
        reader.read(path)


def attempt(reader: Reader, path: Path, content: bytes) -> None:
    """Read a damaged input: a result, or a refusal that names the file or the folder."""
    path.write_bytes(content)
    try:
        reader.read(path)
    except (MirblabError, FileNotFoundError) as error:
        names = (path.name, "the-input", Path(reader.file).parts[0])
        assert any(name in str(error) for name in names)


@pytest.mark.parametrize(
    ("name", "content"), FORMERLY, ids=lambda part: str(part)[:40] if isinstance(part, str) else ""
)
def test_what_broke_a_reader_once_is_read_or_refused(name: str, content: bytes, tmp_path: Path, in_time: None):
    """With the name of the file, and within seconds."""
    attempt(BY_NAME[name], BY_NAME[name].prepare(tmp_path / "the-input"), content)
