"""reading: a page that shows what was read of your own LaTeX."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from mirblab.sources.own.latex import LatexContent, Statement
from mirblab.sources.own.tex_files import decode_source

PAGE = "reading.md"
_SHOWN, _LINES = 10, 40  # how many statements, and how many lines of source for each text


def count_kinds(content: LatexContent) -> Counter[str]:
    """Return the number of statements of each kind, and of the proofs."""
    kinds = Counter(statement.kind for statement in content.statements)
    return kinds + Counter({"proof": len(content.proofs)})


def describe_reading(stem: str, content: LatexContent, files: Mapping[str, Path], encoding: str) -> str:
    """Return a page in Markdown: counts by environment, ten statements with source, commands without a rule.

    The ten are drawn with a fixed seed, so that the same files give the same page.
    """
    drawn = random.Random(0).sample(content.statements, min(_SHOWN, len(content.statements)))
    kinds, unknown = count_kinds(content), content.unknown
    without_rule = [f"| `{name}` | {count:,} |" for name, count in unknown.most_common(40)]
    lines = [
        f"# What was read: {stem}",
        "",
        "JupyterLab shows this page with its formulas: right click, Open With, Markdown Preview.",
        "",
        "| environment | printed as | number |",
        "|---|---|---:|",
        *(
            f"| `{name}` | {content.printed.get(name, '')} | {count:,} |"
            for name, count in content.environments.most_common()
        ),
        "",
        "Statements: " + ", ".join(f"{kind} {count:,}" for kind, count in kinds.most_common()) + ".",
        "",
        "## Commands and environments outside of formulas that have no rule",
        "",
        f"They are left out, and what stands in their braces is kept; {len(unknown):,} names, the most frequent first."
        if unknown
        else "None.",
        *(["", "| name | number |", "|---|---:|", *without_rule] if unknown else []),
        "",
        f"## {len(drawn)} statements, drawn at random",
        "",
    ]
    for statement in drawn:
        lines += _show(statement, files, encoding)
    return "\n".join(lines)


def _show(statement: Statement, files: Mapping[str, Path], encoding: str) -> list[str]:
    heading = f"### {statement.id} ({statement.kind}, {statement.file}, line {statement.line})"
    lines = [heading, "", *([f"**{statement.title}**", ""] if statement.title else []), _paragraphs(statement.text), ""]
    lines += _source(files[statement.file], encoding, statement.line)
    for proof in statement.proofs[:1]:
        lines += ["**Its proof**", "", _paragraphs(proof.text), "", *_source(files[proof.stem], encoding, proof.line)]
    return lines


def _paragraphs(text: str) -> str:
    return text.replace("\n", "\n\n")


def _source(path: Path, encoding: str, line: int) -> list[str]:
    """Return the lines of a file from an environment's first to its last, at most forty, as a block of code."""
    lines = decode_source(path, encoding).split("\n")[max(0, line - 1) :][:_LINES]
    opened = re.search(r"\\begin\s*\{([^{}]*)\}", lines[0]) if line and lines else None
    ending = re.compile(r"\\end\s*\{" + re.escape(opened[1]) + r"\}" if opened else r"\\(?:qed|end)")
    last = next((number for number, each in enumerate(lines, 1) if ending.search(each)), len(lines))
    # A fence that is longer than any in the source.
    return ["`````latex", *lines[:last], "`````", ""]
