"""Do LaTeX and LaTeXML's MathML of the same formulas give the same trees? On a release of ARQMath, or its sample."""

from __future__ import annotations

import argparse
import os
import platform
import time
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from mirblab.formula import mathml, tree
from mirblab.formula.latex.parser import parse_latex
from mirblab.formula.mathml import parse_content_mathml
from mirblab.sources.arqmath import release
from mirblab.sources.arqmath.formulas import Formula, read_formula_rows
from mirblab.sources.stackexchange.dump import RowProblems


def read_formulas(origin: Path, representation: str) -> Iterator[Formula]:
    """Yield the formulas of a release as "latex", "slt" (Presentation MathML) or "opt" (Content MathML)."""
    paths = sorted(
        origin.rglob(f"{representation}_representation_v3/*.tsv*"), key=lambda path: int(path.name.partition(".")[0])
    )
    return map(Formula._make, read_formula_rows(paths, RowProblems()))


def pairs(parsed: tree.Tree) -> Counter[tuple[str, ...]]:
    """Return the multiset of symbols and of adjacent pairs of a tree."""
    labels = parsed.labels
    found: Counter[tuple[str, ...]] = Counter((label,) for label in labels)
    found.update((labels[parent], labels[child], relation) for parent, child, relation in parsed.edges())
    return found


def f1(one: tree.Tree, other: tree.Tree) -> float:
    """Return the overlap of two trees' symbols and pairs, 0 to 1."""
    left, right = pairs(one), pairs(other)
    both = sum((left & right).values())
    return 2 * both / max(sum(left.values()) + sum(right.values()), 1)


def main() -> None:
    """Stream both representations side by side, and print how often they agree, and how fast each is."""
    shared = Path(os.environ.get("MIRBLAB_SHARED", Path(__file__).parents[2] / "shared"))
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--origin", type=Path, default=shared / "sources" / "arqmath-collection")
    parser.add_argument("--most", type=int, default=100_000, help="how many formulas")
    parser.add_argument("--examples", type=int, default=8)
    parser.add_argument("--opt", action="store_true", help="also read Content MathML")
    args = parser.parse_args()
    spent, counts, scores, shown = Counter(), Counter(), [], []
    sources = zip(read_formulas(args.origin, "latex"), read_formulas(args.origin, "slt"), strict=True)
    for written, marked in islice(sources, args.most):
        if written.id != marked.id:
            counts["not side by side"] += 1
            continue
        latex = release.clean_latex(written.formula).text
        begin = time.perf_counter()
        one = parse_latex(latex)
        middle = time.perf_counter()
        other = mathml.parse_mathml(marked.formula)
        spent["latex"] += middle - begin
        spent["mathml"] += time.perf_counter() - middle
        kind = "with LaTeXML's error markup" if "ltx_ERROR" in marked.formula or "merror" in marked.formula else "clean"
        same = one == other
        counts[kind, "same" if same else "different"] += 1
        if kind == "clean":
            scores.append(f1(one, other))
            if not same and len(shown) < args.examples:
                shown.append((latex[:100], scores[-1]))
    n = len(scores)
    print(f"Python {platform.python_version()}; {sum(counts.values()):,} formulas")
    for key, count in sorted(counts.items(), key=str):
        print(f"  {key}: {count:,}")
    print(f"clean: {counts['clean', 'same'] / n:.1%} identical, mean F1 {sum(scores) / n:.4f}, "
          f"{sum(score < 0.5 for score in scores) / n:.2%} below 0.5")  # fmt: skip
    for name in ("latex", "mathml"):
        print(f"{name}: {sum(counts.values()) / spent[name]:,.0f} formulas a second")
    for text, score in shown:
        print(f"  {score:.2f}  {text}")
    if args.opt:
        rows = islice(read_formulas(args.origin, "opt"), args.most)
        sizes = [len(parse_content_mathml(row.formula)) for row in rows]
        print(f"opt: {len(sizes):,} operator trees, {sum(sizes) / max(len(sizes), 1):.1f} nodes on average")


if __name__ == "__main__":
    main()
