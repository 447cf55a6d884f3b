"""parse_speed: formulas parsed per second, beside pya0 and latex2mathml where installed, and agreement with LaTeXML.

    python benchmarks/parse_speed.py [--n 502459] [--others 20000] [--gold] [--problems 30]

Needs `data/formulas.tsv.gz`, and for `--gold` `sources/latexml-gold`, in MIRBLAB_SHARED. CPU time of one process.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import os
import platform
import sys
import time
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path

from mirblab.formula import mathml
from mirblab.formula.latex.parser import parse_latex
from mirblab.formula.tree import Tree

SHARED = Path(os.environ.get("MIRBLAB_SHARED", "../shared"))


def formulas(n: int) -> list[str]:
    """Return *n* formulas, evenly spread over the file."""
    with gzip.open(SHARED / "data" / "formulas.tsv.gz", "rt", encoding="utf-8") as lines:
        found = [line.rstrip("\n").split("\t", 1)[1] for line in lines]
    return found[:: max(1, len(found) // n)][:n]


def speed(parse: Callable[[str], object], texts: list[str]) -> tuple[float, int]:
    """Return formulas per second of CPU and how many raised an exception."""
    failed, begun = 0, time.process_time()
    for text in texts:
        try:
            parse(text)
        except Exception:
            failed += 1
    return len(texts) / (time.process_time() - begun), failed


def others() -> Iterator[tuple[str, Callable[[str], object]]]:
    """Yield the name and the function of each other parser that is installed."""
    try:
        import latex2mathml.converter

        yield f"latex2mathml {metadata.version('latex2mathml')}", latex2mathml.converter.convert
    except ImportError:
        print("latex2mathml: not installed")
    try:
        import pya0

        def parsed(text: str) -> None:
            if pya0.parse(text)[0] != "OK":
                raise ValueError(text)

        yield f"pya0 {metadata.version('pya0')}", parsed
    except ImportError:
        print("pya0: not installed")


def bag(tree: Tree) -> Counter:
    """Return the multiset of symbols and of adjacent pairs; the font of a letter does not count."""
    labels = [label[:2] + unicodedata.normalize("NFKC", label[2:]) if "!" in label else label for label in tree.labels]
    return Counter(labels) + Counter((labels[parent], labels[child], how) for parent, child, how in tree.edges())


def agreement(one: Counter, other: Counter) -> float:
    """Return F1 of two multisets, from 0 to 1; 1 for two empty ones."""
    size = sum(one.values()) + sum(other.values())
    return 2 * sum((one & other).values()) / size if size else 1.0


def gold() -> Iterator[tuple[str, str]]:
    """Yield LaTeX and LaTeXML's Presentation MathML of each formula."""
    csv.field_size_limit(10**9)
    for year in (2020, 2021):
        columns = []
        for kind in ("latex", "slt"):
            path = SHARED / "sources" / "latexml-gold" / f"{year}.{kind}.tsv.gz"
            with gzip.open(path, "rt", encoding="utf-8", newline="") as lines:
                columns.append({row[0]: row[4] for row in list(csv.reader(lines, delimiter="\t"))[1:]})
        for name in columns[0].keys() & columns[1].keys():
            yield columns[0][name], columns[1][name]


def main() -> None:
    """Print speed, problems, and with --gold the agreement with LaTeXML."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=502_459)
    parser.add_argument("--others", type=int, default=20_000, help="how many formulas the other parsers get")
    parser.add_argument("--gold", action="store_true")
    parser.add_argument("--problems", type=int, default=0, help="print the commonest")
    given = parser.parse_args()
    texts = formulas(given.n)
    size = sum(map(len, texts)) / len(texts)
    print(f"Python {platform.python_version()}, {len(texts):,} formulas of {size:.1f} characters on average")
    per_second, failed = speed(parse_latex, texts)
    print(f"mirblab: {per_second:,.0f} formulas per second of CPU, {failed} exceptions")
    found = [parse_latex(text).problems for text in texts]
    n_problems = sum(map(bool, found))
    print(f"         {n_problems:,} with problems ({n_problems / len(texts):.1%})")
    kinds = Counter(problem.rpartition(" at ")[0] for problems in found for problem in problems)
    for kind, count in kinds.most_common(given.problems):
        print(f"         {count:7,} {kind}")
    sample = texts[:: max(1, len(texts) // given.others)][: given.others]
    for name, function in others() if given.others else ():
        per_second, failed = speed(function, sample)
        print(f"{name}: {per_second:,.0f} per second of CPU, {failed} of {len(sample):,} failed", flush=True)
    if given.gold:
        scores = [agreement(bag(parse_latex(latex)), bag(mathml.parse_mathml(xml))) for latex, xml in gold()]
        same, low = (sum(test(score) for score in scores) for test in ((1.0).__eq__, (0.5).__gt__))
        print(
            f"LaTeXML, {len(scores):,} formulas: mean F1 {sum(scores) / len(scores):.4f}, "
            f"identical {same / len(scores):.1%}, below 0.5 {low / len(scores):.1%}"
        )
    sys.stdout.flush()


if __name__ == "__main__":
    main()
