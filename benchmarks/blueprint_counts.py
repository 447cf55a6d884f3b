"""blueprint_counts: do ours agree with others' reading of the same repositories: queries, pairs, texts, leaks.

    python benchmarks/blueprint_counts.py [--mathlib PLACE | --mathlib ""] [--show 0] [--seed 0]

Builds from $MIRBLAB_SHARED/sources/blueprints (default ../shared) into a temporary folder and compares with
$MIRBLAB_SHARED/data/blueprints, restricted to the same repositories. Theirs resolves names of mathlib, so ours is
built with mathlib's statements, too: by default those of $MIRBLAB_SHARED/data/mathlib-informal, and once without.
A pair is a statement, known by repository and label, and the name of a declaration; texts of declarations are
compared word by word (the ratio of difflib, 1 for equal). --show prints pairs on which the two differ.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import gzip
import io
import json
import os
import platform
import statistics
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np

from mirblab.sources.blueprints import build
from mirblab.sources.blueprints.build import RUN, leaks_statement

SHARED = Path(os.environ.get("MIRBLAB_SHARED", "../shared"))
Texts = dict[str, str]
Pairs = set[tuple[str, str]]


def read(folder: Path) -> tuple[Texts, Texts, Pairs]:
    """Return texts of queries and documents by id, and the judged pairs, of a collection."""
    texts = []
    for stem in ("queries", "corpus"):
        plain = folder / f"{stem}.jsonl"
        opened = open(plain, encoding="utf-8") if plain.exists() else gzip.open(f"{plain}.gz", "rt", encoding="utf-8")
        with opened as file:
            texts.append({row["_id"]: row["text"] for row in map(json.loads, file)})
    lines = (folder / "qrels" / "test.tsv").read_text("utf-8").splitlines()[1:]
    return texts[0], texts[1], {(line.split("\t")[0], line.split("\t")[1]) for line in lines}


def within(theirs: tuple[Texts, Texts, Pairs], names: set[str]) -> tuple[Texts, Texts, Pairs]:
    """Return what belongs to the repositories *names*."""
    queries = {key: text for key, text in theirs[0].items() if key.split(":")[1] in names}
    judged = {pair for pair in theirs[2] if pair[0] in queries}
    used = {doc for _, doc in judged}
    docs = {key: text for key, text in theirs[1].items() if key.split(":")[0] in names or key in used}
    return queries, docs, judged


def folded(text: str) -> str:
    """Return the letters and digits of a statement, for comparing two ways of cleaning it."""
    return "".join(char for char in text.casefold() if char.isalnum())


def same_queries(ours: Texts, theirs: Texts) -> dict[str, str]:
    """Return our query by theirs: the one of the label, else one of the repository with nearly the same text."""
    found = {key: key for key in theirs if key in ours}
    left = {key: folded(text) for key, text in ours.items() if key not in found}
    for key, text in theirs.items():
        if key not in found:
            repo, plain = key.split(":")[1], folded(text)
            near = [
                (difflib.SequenceMatcher(None, plain, other, autojunk=False).ratio(), name)
                for name, other in left.items()
                if name.split(":")[1] == repo and 0.5 < (len(other) + 1) / (len(plain) + 1) < 2
            ]
            if near and max(near)[0] > 0.8:
                found[key] = max(near)[1]
                del left[found[key]]
    return found


def similarity(one: str, other: str) -> float:
    """Return how much of two texts is the same, word by word, from 0 to 1."""
    return difflib.SequenceMatcher(None, one.split(), other.split(), autojunk=False).ratio()


def compare(ours: tuple[Texts, Texts, Pairs], theirs: tuple[Texts, Texts, Pairs], given: argparse.Namespace) -> None:
    """Print counts by repository, precision and recall of the pairs, and how alike the texts are."""
    print("\n| repository | our queries | theirs | ratio | our pairs | theirs |\n|---|---|---|---|---|---|")
    for name in sorted({key.split(":")[1] for key in theirs[0]}):
        counts = [sum(key.split(":")[1] == name for key in side[0]) for side in (ours, theirs)]
        judged = [sum(pair[0].split(":")[1] == name for pair in side[2]) for side in (ours, theirs)]
        print(f"| {name} | {counts[0]} | {counts[1]} | {counts[0] / counts[1]:.3f} | {judged[0]} | {judged[1]} |")
    renamed = same_queries(ours[0], theirs[0])
    told = {(renamed.get(query, query), doc) for query, doc in theirs[2]}
    both = told & ours[2]
    print(f"\nqueries of theirs that ours has: {len(renamed):,} of {len(theirs[0]):,}")
    print(f"pairs: precision {len(both) / len(ours[2]):.4f}, recall {len(both) / len(told):.4f} of {len(told):,}")
    queries = [similarity(ours[0][mine], theirs[0][key]) for key, mine in renamed.items()]
    print(f"texts of {len(queries):,} queries: {spread(queries)}")
    for what, keys in (("paired documents", {doc for _, doc in both}), ("documents", set(ours[1]) & set(theirs[1]))):
        alike = [similarity(ours[1][key], theirs[1][key]) for key in sorted(keys)]
        print(f"texts of {len(alike):,} {what} that both have: {spread(alike)}")
    lost = set(theirs[1]) - set(ours[1])
    print(f"documents: ours {len(ours[1]):,}, theirs {len(theirs[1]):,}, of which ours lacks {len(lost):,}")
    show("only ours", ours[2] - told, ours, given)
    show("only theirs", told - ours[2], theirs, given)


def spread(values: list[float]) -> str:
    """Return median, mean and the share of equal texts."""
    equal = sum(value == 1 for value in values) / len(values)
    return f"similarity median {statistics.median(values):.3f}, mean {statistics.mean(values):.3f}; equal {equal:.1%}"


def show(title: str, differing: Pairs, side: tuple[Texts, Texts, Pairs], given: argparse.Namespace) -> None:
    """Print a sample of pairs."""
    chosen = sorted(differing)
    picked = np.random.default_rng(given.seed).permutation(len(chosen))[: given.show]
    print(f"\npairs {title}: {len(chosen)}")
    for place in sorted(picked):
        query, doc = chosen[place]
        print(f"  {query} ~ {doc}\n    {side[0].get(query, '')[:200]!r}\n    {side[1].get(doc, '')[:200]!r}")


def leaking(side: tuple[Texts, Texts, Pairs]) -> int:
    """Return how many pairs have a document that holds its query: whole, or a run of its words."""
    return sum(leaks_statement(side[0][query], side[1][doc]) for query, doc in side[2])


def built(place: Path, mathlib: str) -> list[tuple[Texts, Texts, Pairs]]:
    """Return our three collections, and print what building them took."""
    begun = time.perf_counter()
    with contextlib.redirect_stdout(io.StringIO()):
        folders = build.build(SHARED / "sources" / "blueprints", place, mathlib=mathlib)
    print(f"\n## mathlib: {Path(mathlib).name or 'not given'}; built in {time.perf_counter() - begun:.1f} s")
    return [read(folder) for folder in folders[: len(build.COLLECTIONS)]]


def main() -> None:
    """Print the comparison, with mathlib's statements and without."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mathlib", default=str(SHARED / "data" / "mathlib-informal"), help="statements of mathlib")
    parser.add_argument("--show", type=int, default=0, help="how many differing pairs to print")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    theirs = read(SHARED / "data" / "blueprints")
    print(f"python {platform.python_version()}; {vars(given)}; a leak: the whole text, or {RUN} words in a row")
    for mathlib in dict.fromkeys((given.mathlib, "")):
        with tempfile.TemporaryDirectory() as place:
            whole, paired, leaky = built(Path(place), mathlib)
        part = within(theirs, {key.split(":")[1] for key in whole[0]})
        compare(whole, part, given)
        counts = {"ours": whole, "ours, paired": paired, "theirs": part, "ours, leaky": leaky}
        for name, side in counts.items():
            print(f"pairs whose document holds the statement, {name}: {leaking(side):,} of {len(side[2]):,}")
        repeated = Counter(" ".join(text.casefold().split()) for text in whole[1].values())
        print(f"documents with the text of another one: {sum(count - 1 for count in repeated.values()):,}")


if __name__ == "__main__":
    main()
