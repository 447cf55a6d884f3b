"""fuzz_formulas: random and mutated LaTeX and MathML through every parser: no exception, no hang, no memory growth.

    python benchmarks/fuzz_formulas.py [--n 100000] [--seed 0] [--parsers latex,mathml,content]

Mutations start from the formulas of MIRBLAB_SHARED where there is one, else from a few built in. Exits with 1 when
anything raised or took longer than a second of CPU.
"""

from __future__ import annotations

import argparse
import gc
import gzip
import importlib
import os
import platform
import random
import resource
import time
from collections.abc import Callable, Iterator
from pathlib import Path

LATEX = [
    r"\sum_{i=0}^{n} \binom{n}{i}^2 = \frac{(2n)!}{n!^2}",
    r"\begin{pmatrix} a & b \\ c & d \end{pmatrix}^{-1} \left( x, y \right] \text{ if $x>0$}",
    r"\left\{ \left.\frac{\partial f}{\partial x}\right|_{x=0} \right\} \overline{AB} \not\in \mathbb{R}^{n\times m}",
    r"|x|+||y||_2 \leq {a \over b} \sqrt[3]{\hat{x}_1'} \overset{a}{\to} \qvar{x} &lt; 3 \pmod{7}",
]
VOCABULARY = (
    r"\frac \sqrt \left \right \begin{matrix} \end{matrix} \begin{cases} \end{align} \over \choose \hat \overline \not "
    r"\text{a} \text \mathbb \mathrm \operatorname{Hom} \underbrace \overset \underset \xrightarrow \pmod \qvar "
    r"\limits \bigl \bigr | || \| ( ) [ ] \{ \} { } ^ _ & \\ ' $ % # ~ , . ... 12 3.5 x y \alpha \sum \int d \le = + - "
    r"&amp; &lt; \ \foo é 字 ∑ \hline \cr \tag \hspace \color \kern 3pt \rm \bf \substack \displaystyle \sp \[ \] \( \)"
).split()
MATHML = [
    '<math xmlns="http://www.w3.org/1998/Math/MathML"><mrow><mi>x</mi><mo>=</mo><msup><mn>2</mn><mi>n</mi></msup>'
    "</mrow></math>",
    "<math><mrow><mo>(</mo><mtable><mtr><mtd><mi>a</mi></mtd><mtd/></mtr></mtable><mo>)</mo></mrow></math>",
    "<math><apply><plus/><ci>x</ci><apply><csymbol>superscript</csymbol><ci>y</ci><cn>2</cn></apply></apply></math>",
]
TAGS = (
    "<mi> </mi> <mn> </mn> <mo> </mo> <mrow> </mrow> <mfrac> </mfrac> <msub> </msub> <msup> <munderover> <mtable> "
    "<mtr> <mtd/> <mroot> <msqrt> <mfenced> <apply> </apply> <plus/> <ci> </ci> <cn> </cn> <!-- --> &lt; &amp; &bad; "
    "x 2 + <math> </math> <mstyle <semantics> <annotation> <![CDATA[ ]]> <?x ?> <merror> ∑ ⁢ </ > <"
).split()


def formulas(n: int) -> list[str]:
    """Return up to *n* real formulas, and those that are built in."""
    path = Path(os.environ.get("MIRBLAB_SHARED", "../shared")) / "data" / "formulas.tsv.gz"
    if not path.is_file():
        return LATEX
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return LATEX + [line.rstrip("\n").split("\t", 1)[1] for line, _ in zip(lines, range(n), strict=False)]


def mutated(text: str, words: list[str], dice: random.Random) -> str:
    """Return *text* with one to six pieces dropped, doubled, moved or put in."""
    for _ in range(dice.randint(1, 6)):
        start = dice.randint(0, len(text))
        end = min(len(text), start + dice.randint(0, 8))
        kind = dice.randrange(5)
        middle = ("", text[start:end] * 2, dice.choice(words), text[start:end][::-1], chr(dice.randrange(32, 0x2FFF)))
        text = text[:start] + middle[kind] + text[end if kind != 2 else start :]
    return text


def strange(words: list[str], dice: random.Random) -> str:
    """Return a string that no author writes: random pieces, or one piece very often."""
    if dice.random() < 0.97:
        return dice.choice(("", " ")).join(dice.choices(words, k=dice.randint(1, 60)))
    return "".join(dice.choices(words, k=dice.randint(1, 3))) * dice.choice((100, 1000, 5000))


def samples(seeds: list[str], words: list[str], n: int, seed: int) -> Iterator[str]:
    """Yield *n* strings, seven in ten of them mutated, the others random."""
    dice = random.Random(seed)
    for _ in range(n):
        yield mutated(dice.choice(seeds), words, dice) if dice.random() < 0.7 else strange(words, dice)


def fuzz(parse: Callable, texts: Iterator[str], limit: float = 1.0) -> tuple[list[str], float, float]:
    """Return what went wrong, the longest CPU time of one string in seconds, and the growth of memory in MB.

    Memory is compared between the end and the first tenth, after which caches are full.
    """
    faults: list[str] = []
    longest, early, count = 0.0, 0, 0
    for count, text in enumerate(texts):
        begun = time.process_time()
        try:
            parse(text)
        except Exception as error:
            faults.append(f"{type(error).__name__}: {error} on {text[:200]!r}")
        took = time.process_time() - begun
        longest = max(longest, took)
        if took > limit:
            faults.append(f"{took:.2f} s on {text[:200]!r} ({len(text)} characters)")
        if count == 10_000:
            gc.collect()
            early = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    growth = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - early) / 1024 if early else float("nan")
    return faults, longest, growth


def main() -> None:
    """Print one line per parser."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--parsers", default="latex,mathml,content")
    given = parser.parse_args()
    print(f"Python {platform.python_version()}, {given.n:,} strings each, seed {given.seed}")
    n_faults = 0
    for name in given.parsers.split(","):
        parse = importlib.import_module(f"mirblab.formula.{name}").parse
        seeds, words = (formulas(50_000), VOCABULARY) if name == "latex" else (MATHML, TAGS)
        begun = time.process_time()
        faults, longest, growth = fuzz(parse, samples(seeds, words, given.n, given.seed))
        took = time.process_time() - begun
        print(f"{name:8} {len(faults)} faults, longest {longest:.3f} s, memory +{growth:.1f} MB, {took:.0f} s of CPU")
        for fault in faults[:10]:
            print("   ", fault)
        n_faults += len(faults)
    raise SystemExit(n_faults > 0)


if __name__ == "__main__":
    main()
