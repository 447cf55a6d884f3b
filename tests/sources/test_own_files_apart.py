"""A proof apart from its statement, in another file or after it is stated again, in one's own LaTeX."""

from __future__ import annotations

from pathlib import Path

import pytest

from mirblab.sources.own import latex

BOOK = r"\documentclass{book}"
ONE = r"\begin{lemma}\label{one} One.\end{lemma}"
TWO = r"\begin{lemma}\label{two} Two.\end{lemma}"
PROOF = r"\begin{proof} By hand. \end{proof}"


@pytest.mark.parametrize(
    ("main", "files", "proved"),
    [
        (rf"{ONE}{TWO} \input{{proofs/p}}", {"proofs/p.tex": PROOF}, ["two"]),
        (rf"{ONE} \input{{proofs/p}}{TWO}", {"proofs/p.tex": PROOF}, ["one"]),
        (r"\input{a}\input{b}\input{p}", {"a.tex": ONE, "b.tex": TWO, "p.tex": PROOF}, ["two"]),
        (rf"{ONE}\input{{a}}\input{{p}}", {"a.tex": "Some words.", "p.tex": PROOF}, []),
        (rf"{ONE} \section{{Later}} \input{{p}}", {"p.tex": PROOF}, []),
        (rf"{ONE} \input{{p}}", {"p.tex": rf"\section{{Later}} {PROOF}"}, []),
        (rf"{ONE}{PROOF} \input{{p}}", {"p.tex": r"\begin{proof} Another. \end{proof}"}, ["one"]),
        (rf"{ONE} \begin{{remark}} It is.\end{{remark}}\input{{p}}", {"p.tex": PROOF}, ["one"]),
        (rf"\input{{p}}{ONE}", {"p.tex": PROOF}, []),
        (r"\input{a}\input{p}", {"a.tex": rf"{ONE} \subsection{{Notes}} No.", "p.tex": PROOF}, []),
        (rf"{ONE}{TWO} \input{{p}}", {"p.tex": r"\begin{proof}[Proof of \ref{one}] By hand. \end{proof}"}, ["one"]),
    ],
)  # fmt: skip
def test_a_proof_in_a_file_apart_is_that_of_the_statement_before(tmp_path, main, files, proved):
    """It belongs to the statement before the input, unless a heading, a proof or a file of words stands between."""
    for name, text in {"book.tex": BOOK + main, **files}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, "utf-8")
    names: list[str] = sorted(["book.tex", *files])
    content = latex.read_latex({name: Path(tmp_path / name) for name in names})
    assert [each.label for each in content.statements if each.proofs] == proved
    assert all(len(each.proofs) < 2 for each in content.statements)


@pytest.mark.parametrize("label", ["", r"\label{one}"])
def test_a_statement_that_is_stated_again_is_proved_there(tmp_path, label):
    r"""By thm-restate; the proof was that of the statement before it, or of none in another file."""
    main = rf"{BOOK}\begin{{restatable}}[Main]{{theorem}}{{again}}{label} One.\end{{restatable}}{TWO}\input{{p}}"
    later = rf"\begin{{lemma}} Three.\end{{lemma}} Now we can see it. \again* {PROOF} \again \section{{Index}}"
    (tmp_path / "book.tex").write_text(main, "utf-8")
    (tmp_path / "p.tex").write_text(later, "utf-8")
    content = latex.read_latex({name: tmp_path / name for name in ("book.tex", "p.tex")})
    assert [(each.id, len(each.proofs)) for each in content.statements] == [
        ("one" if label else "again", 1), ("two", 0), ("p.tex:1", 0)
    ]  # fmt: skip
    assert content.statements[0].proofs[0].text == "By hand." and content.statements[0].text == "One."
