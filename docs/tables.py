"""tables: docs/tables.md, generated from the suites: python docs/tables.py."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mirblab.app import hand_runs, suite_files
from mirblab.core import paths

PAGE = Path(__file__).resolve().parent / "tables.md"
SUITES = ("mirb", "zhong", "meld", "arqmath")
# What each paper has that is a result or an example; MIRB's and ARQMath's Figure 1 are drawings of the tasks.
PARTS = {
    "mirb": [f"Table {number}" for number in range(1, 18)],
    "zhong": [*(f"Table {number}" for number in range(1, 5)), *(f"Figure {number}" for number in range(1, 4))],
    "meld": [*(f"Table {number}" for number in range(1, 12)), "Figure 1"],
    "arqmath": ["Table 1", "Figure 2", "Figure 3"],
}
REFERENCES = {
    "mirb": "Ju and Dong, *MIRB: Mathematical Information Retrieval Benchmark*, arXiv 2505.15585, 2025.",
    "zhong": (
        "Zhong, Yang, Xie and Lin, *Evaluating Token-Level and Passage-Level Dense Retrieval Models for Math "
        "Information Retrieval*, Findings of EMNLP 2022 (arXiv 2203.11163)."
    ),
    "meld": (
        "Ye, Rao, Carlin et al., *Does My Embedding Reflect That A = B? Evaluating Mathematical Equivalence in "
        "Embedding Models*, 2026."
    ),
    "arqmath": (
        "Zanibbi, Mansouri, Agarwal and Oard, *ARQMath: A New Benchmark for Math-Aware CQA and Math Formula "
        "Retrieval*, SIGIR Forum 54(2), 2020."
    ),
}
HEAD = """# Which table of which paper is made where

This page is generated from `notebooks/suites/` by `python docs/tables.py`. `mirblab plan SUITE` says what a suite
needs, and `mirblab batch SUITE` makes it: tables and figures are written to `figures/<suite>/<notebook>/`.

A part is *complete* if it needs nothing that is missing here. Otherwise the fifth column says what is missing and what
was made instead; the last says with which data it was last made, and when. `a, else b`: b is used where a is not here.

Names that begin with `mini-` are bundled. [This table](howto/collection.md#the-collections-of-the-tables) says what the
other collections are, and which of them are made by no builder.
"""
BUILDERS = """
## Builders that were tried on made-up files only

The releases of **NaturalProofs**, **LeanDojo**, **MAPL**, **HolStep** and of **informalised Mathlib**, and
MIRB's datasets on **the Hub**, could not be fetched where this was written, nor could the sets that newer papers
use: **MathNet-Retrieve**, **TheoremSearch**, TheoremGraph's **theorem-matching**, **MathlibQR** and
**MathlibMPR** of LeanSearch v2, and **BRIGHT**. Their builders are tested on small files that were made up after the
published formats, so that the first build of a real release may show something that those files do not have. The same
holds for the encoders and rerankers on the Hub and for the vendors' models: tiny models and local servers stand for
them in the tests. The builder of **MELD** was tried on a public copy of its file, not on the Hub.
"""


def rows(suite: str) -> Iterator[tuple[str, str, str, str, str, str]]:
    """Return part, notebook, data, whether it is complete, what is missing and from what it was last made, in the
    suite's order.
    """
    content = suite_files.read_suite_file(suite)
    shared = content.get("parameters", {})
    for entry in content["notebook"]:
        for made in entry.get("makes", []):
            for part in made["parts"]:
                missing = made.get("missing", "")
                yield part, entry["name"], data(entry, shared), "no" if missing else "yes", missing, made["made"]
    for left in content.get("unmade", []):
        for part in left["parts"]:
            yield part, "–", "–", "no", left["missing"], "no: no notebook makes it"


def data(entry: Mapping[str, Any], shared: Mapping[str, Any]) -> str:
    """Return the collections of a suite's entry, in words."""
    given = entry.get("parameters", {})
    names = [*given.get("collections", []), *filter(None, [given.get("collection")]), *given.get("mirb", [])]
    known = hand_runs.notebook_parameters(paths.bundled_path("notebooks", f"{entry['name']}.ipynb"))
    if not names and "collections" in shared and "collections" in known:
        return "the suite's collections"
    return "; ".join(map(in_words, names)) or "bundled"


def in_words(name: str) -> str:
    """Return "a|b?" as "a, else b"."""
    return ", else ".join(name.removesuffix("?").split("|"))


def page() -> str:
    """Return the page."""
    text = HEAD
    for suite in SUITES:
        content = suite_files.read_suite_file(suite)
        found = sorted(rows(suite), key=lambda row: PARTS[suite].index(row[0]))
        text += f"\n## {content['paper']}: the suite `{suite}`\n\n{REFERENCES[suite]}\n\n"
        if note := content.get("note"):
            text += f"{note}\n\n"
        if collections := content.get("parameters", {}).get("collections"):
            text += f"The suite's collections: {'; '.join(map(in_words, collections))}.\n\n"
        text += "| part | notebook | data | complete | what is missing | last made |\n"
        text += "| --- | --- | --- | --- | --- | --- |\n"
        alike = dict[tuple[str, ...], list[str]]()
        for part, book, *rest in found:
            alike.setdefault((part.split()[0], link(book), *rest), []).append(part)
        text += "".join(f"| {' | '.join((join_parts(parts), *rest))} |\n" for (_, *rest), parts in alike.items())
    return text + BUILDERS


def join_parts(parts: Sequence[str]) -> str:
    """Return "Table 2", "Table 3" and "Table 5" as "Tables 2-3, 5": *parts* are of one kind, in their order."""
    if len(parts) == 1:
        return parts[0]
    runs = list[list[int]]()
    for number in (int(part.split()[1]) for part in parts):
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return f"{parts[0].split()[0]}s {', '.join('-'.join(map(str, dict.fromkeys((run[0], run[-1])))) for run in runs)}"


def link(notebook: str) -> str:
    """Return a link to the notebook's page of the site."""
    return f"[{notebook}](notebooks/{notebook}.html)" if notebook != "–" else notebook


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
    print(f"wrote {PAGE}")
