"""Which branch of a conditional is printed in one's own LaTeX."""

from __future__ import annotations

from pathlib import Path

import pytest

from mirblab.sources.own import latex

BOTH = r"\iflong Long.\else Short.\fi"


def read(tmp_path: Path, files: dict[str, str]) -> dict[str, list[str]]:
    """Return the texts of the statements of each file."""
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, "utf-8")
    content = latex.read_latex({name: tmp_path / name for name in sorted(files)})
    return {name: [each.text for each in content.statements if each.file == name] for name in files}


@pytest.mark.parametrize(
    ("preamble", "inside", "text"),
    [
        (r"\newtoggle{long}\toggletrue{long}", r"A\iftoggle{long}{ B}{ C} D", "A B D"),
        (r"\newtoggle{long}\settoggle{long}{false}", r"A\iftoggle{long}{ B}{ C}\nottoggle{long}{ D}{}", "A C D"),
        (r"\newbool{long}\booltrue{long}", r"A\ifbool{long}{ B \ifbool{other}{}{}}{ C}", "A B other"),
        (r"\newboolean{long}\setboolean{long}{true}", r"A\ifthenelse{\boolean{long}}{ B}{ C}", "A B"),
        (r"\newboolean{long}\setboolean{long}{true}", r"A\ifthenelse{\NOT\boolean{long}}{ B}{ C}", "A C"),
        (r"\newif\iflong\longtrue", r"A\ifbool{long}{ B}{ C}", "A B"),
        (r"\newif\iflong\newtoggle{long}\longtrue", r"A\iftoggle{long}{ B}{ C}", "A C"),
        (r"\newtoggle{long}\newcommand{\only}[1]{\iftoggle{long}{#1}{}}", r"A\only{ B} C", "A C"),
        (r"\newtoggle{long}", r"A \iftoggle{long}", "A long"),
    ],
)  # fmt: skip
def test_switches_of_packages_are_those_of_newif(tmp_path, preamble, inside, text):
    """Of ifthen and etoolbox, whose branches are arguments; before, both were printed, after the switch's name."""
    source = rf"{preamble}\begin{{theorem}}{inside}\end{{theorem}}"
    assert read(tmp_path, {"a.tex": source}) == {"a.tex": [text]}


def test_a_switch_holds_for_its_document(tmp_path):
    """Two papers in a folder set a switch of one name each in its own way, whatever the order of their names."""
    main = r"\documentclass{article}\newif\iflong%s\input{%s}\begin{lemma} " + BOTH + r"\end{lemma}"
    part = r"\begin{lemma} Here: " + BOTH + r"\end{lemma}"
    files = {
        "a/main.tex": main % (r"\longtrue", "one"), "a/one.tex": part,
        "b/main.tex": main % (r"\longfalse", "two"), "b/two.tex": part,
    }  # fmt: skip
    assert read(tmp_path, files) == {
        "a/main.tex": ["Long."], "a/one.tex": ["Here: Long."],
        "b/main.tex": ["Short."], "b/two.tex": ["Here: Short."],
    }  # fmt: skip


def test_of_several_documents_the_largest_sets_the_switch(tmp_path):
    """The book, not its slides or its preview, says what a chapter of both has."""
    files = {
        "book.tex": r"\documentclass{book}\newif\iflong\longtrue\input{one}\input{two}",
        "slides.tex": r"\documentclass{beamer}\newif\iflong\input{one}",
        "one.tex": r"\begin{lemma} One. " + BOTH + r"\end{lemma}",
        "two.tex": r"\begin{lemma} Two. " + BOTH + r"\end{lemma}",
    }
    found = read(tmp_path, files)
    assert (found["one.tex"], found["two.tex"]) == (["One. Long."], ["Two. Long."])
