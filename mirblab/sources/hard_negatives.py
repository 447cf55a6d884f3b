"""hard_negatives: wrong proofs, made by rule, and proofs of similar statements, for collections of proofs."""

from __future__ import annotations

import contextlib
import itertools
import random
import re
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from mirblab.core import paths
from mirblab.core.errors import MirblabError
from mirblab.core.terminal import progress
from mirblab.data import beir as on_disk
from mirblab.data import digests
from mirblab.data.collection import Collection, read_card_table, read_splits
from mirblab.data.near_duplicates import fold_text
from mirblab.sources import mini
from mirblab.sources.shared import builder, latex
from mirblab.sources.shared.builder import CollectionRows, Judgement, Row
from mirblab.sources.shared.release import Origin

HIDDEN = "\ue000"
_NOTIONS = """
injective surjective|injection surjection|injectivity surjectivity|monomorphism epimorphism|kernel cokernel
left-exact right-exact|left-adjoint right-adjoint|open-immersion closed-immersion|open-subset closed-subset
open-subscheme closed-subscheme|open-subspace closed-subspace|open-set closed-set|open-interval closed-interval
open-ball closed-ball|open-covering closed-covering|open-cover closed-cover|open-neighbourhood closed-neighbourhood
finitely-many infinitely-many|upper-bound lower-bound|maximum minimum|maximal minimal|supremum infimum
increasing decreasing|convex concave|positive negative|union intersection|largest smallest
countable uncountable|convergent divergent|bounded unbounded|reducible irreducible|necessary sufficient
"""
_ARROWS = r"\Rightarrow \Leftarrow|\Longrightarrow \Longleftarrow|\implies \impliedby"


def _both_ways(pairs: list[list[str]]) -> dict[str, str]:
    """Return each word of a pair to its opposite; a hyphen stands for a blank."""
    named = [[name.replace("-", " ") for name in pair] for pair in pairs]
    return {one: other for first, second in named for one, other in ((first, second), (second, first))}


_RELATIONS = r"\leqslant \geqslant|\leq \geq|\le \ge|\subseteq \supseteq|\subsetneq \supsetneq|\subset \supset"
_RELATIONS += r"|\prec \succ|\preceq \succeq|\ll \gg|\lt \gt|< >"
OPPOSITE_RELATION = _both_ways([pair.split() for pair in _RELATIONS.split("|")])
OPPOSITE_ARROW = _both_ways([pair.split() for pair in _ARROWS.split("|")])
# A limit of numbers has no opposite, but every colimit does.
OPPOSITE_NOTION = _both_ways([pair.split() for pair in re.split(r"[|\n]", _NOTIONS.strip())]) | {"colimit": "limit"}
_OPERATIONS = r"\cup \cap|\bigcup \bigcap|\sup \inf|\max \min|\Ker \Coker|\ker \coker"
OPPOSITE_OPERATION = _both_ways([pair.split() for pair in _OPERATIONS.split("|")])
OPPOSITE_LOGIC = {r"\forall": r"\exists", r"\exists": r"\forall"}
OPPOSITE_QUANTIFIER = dict.fromkeys(("for every", "for all", "for each"), "for some")
OPPOSITE_QUANTIFIER |= {"for some": "for every", "every": "some"}
QUANTIFIER = re.compile(
    r"(?<!almost )\b(?:for (?:every|all|each|some)|every)\b(?! (?:but|time|other|reason)\b)", re.IGNORECASE
)
NON = re.compile(
    r"(?:\b(?P<article>an?)\s+)?\b(?P<word>non-?(?P<rest>zero|empty|trivial|constant|negative))\b", re.IGNORECASE
)
_STEP = re.compile(
    r"\[ref\]|\b(?:by|since|because|hence|thus|therefore|so|follows|implies|we (?:get|have|see))\b", re.I
)
_SIGNPOST = re.compile(r"\b(?:have|need|want|remains|suffices|going) to (?:show|prove|check|see|find)\b", re.I)
_END = re.compile(rf"[.!?](?=\s+[A-Z{HIDDEN}])|\n")
_ABBREVIATION = re.compile(r"(?:\b(?:i\.e|e\.g|resp|cf|Prop|Thm|Lem|Def|Eq|vs|[A-Z]))\.$")
_HYPOTHESIS = re.compile(
    rf"\b(?:assume|suppose|if|since|because|as)\s+(?:that\s+)?{HIDDEN}+\s+(?P<verb>is|are)\b"
    r"(?!\s+(?:not|no|to|the|any|in|also|then|both|either|only|an? \w+ of)\b)",
    re.I,
)
_IF_THEN = re.compile(
    r"\b(?:If|if) (?P<one>[^.;:\n]{2,240}?),? then "
    r"(?!(?:we|let|set|put|take|choose|denote|replace|also|so|this|it|there)\b)(?P<other>[^.;:\n]{2,240}?)(?=[.;:](?:\s|\Z)|\n|\Z)"
)
_ITEM = rf"(?:\(\w{{1,4}}\)|{HIDDEN}+)"
_IMPLIES = re.compile(rf"(?P<one>{_ITEM}) implies (?:that )?(?P<other>{_ITEM})(?=\s*(?:[.,;:)]|\Z|and\b))")
_DIAGRAM = re.compile(r"\\xymatrix|\\begin\{(?:CD|tikzcd|array|matrix)|\\left\s*[<>]|\\right\s*[<>]")
_MINUS_ONE = re.compile(r"\(\s*-\s*1\s*\)\s*\Z")
_INDEX = re.compile(
    r"(?P<base>\\[A-Za-z]+\{[A-Za-z]+\}|\\?[A-Za-z]+'*)_(?:(?P<bare>[a-z0-9])(?![A-Za-z0-9])|\{(?P<braced>[a-z0-9]{1,3})\})"
)
_OPERATOR = re.compile(r"\\(?:o?times|o?plus|circ|cup|cap|(?:co)?prod|sum|(?:co)?lim|sup|inf|max|min|int|big\w+)\Z")
_SHIFT = re.compile(r"[_^]\{[^{}]*?\b[a-z]\s*(?P<sign>[+-])\s*1(?!\d)[^{}]*\}")
_PAIR = re.compile(r"_\{(?P<pair>[i-npq]{2})\}")
_TOKEN = re.compile(r"[^\W\d_]+|\d+|[^\w\s$(){}\[\]\\,.;:'\"`]")
_LONGEST = 200  # signs of an edit that are kept in the metadata
DEFAULT = "stacks-qa"
NEAR = 5  # proofs of similar statements for each query
NOTE = (
    "Corrupted copies are made by rule and read by nobody: some mistakes may do no harm. Equal scores are ordered by "
    "id, descending, and a copy comes before its original, so a system that scores both alike gains nothing."
)
KEPT = ("task", "instruction", "relevance_levels", "relevant_from", "candidates", "language")
# "Injective" and "surjective" are opposites of maps only, not of modules or resolutions.
NOTION = re.compile(
    r"(?:\b(?P<article>an?)\s+)?(?<![-\w])(?P<word>"
    + "|".join(name.replace(" ", r"\s+") for name in sorted(OPPOSITE_NOTION, reverse=True))
    + r")(?![-\w])"
    rf"(?!\s+(?:{HIDDEN}+-)?(?:resolution|object|module|hull|envelope|dimension|abelian|sheaf|sheaves))",
    re.IGNORECASE,
)
_COMMANDS = [name for name in OPPOSITE_RELATION if name[0] == "\\"]


def command_pattern(names: Iterable[str]) -> str:
    """Return a pattern for whole commands, longest first."""
    return "(?:" + "|".join(re.escape(name) for name in sorted(names, reverse=True)) + ")(?![A-Za-z])"


_RELATION = re.compile(rf"(?<!\\not)(?<!\\not ){command_pattern(_COMMANDS)}|(?<![@\-=\\<>])[<>](?![@\-=<>])")


class Change(NamedTuple):
    """One edit: the text from `start` to `end` becomes `new`."""

    start: int
    end: int
    new: str


class Corrupted(NamedTuple):
    """A proof with one mistake: the words before and after the change, and the whole text."""

    before: str
    after: str
    text: str


def build(origin: str | Path | None, out: Path, *, seed: int = 0, near: int = NEAR) -> list[Path]:
    """Write <name>-hard and <name>-hard-pool under *out* and return their folders.

    *origin* is a collection, statement to proof, by name or folder (None: stacks-qa). Its corpus gains at most one
    wrong copy per relevant proof of test and kind of mistake (`KINDS`), drawn with *seed* and judged 0. In
    <name>-hard-pool a query may return only its proofs, their wrong copies, and the proofs of the *near* most similar
    statements, so that nDCG@1 and RR show whether a system prefers the true proof. What a query of the origin may not
    return it may not return here, nor a wrong copy of it. MirblabError for the rule "tags", by which no copy could ever
    be returned.
    """
    if near < 0:
        raise MirblabError(f"near must be 0 or more, found {near}")
    out = Path(out)
    with _opened(str(origin or DEFAULT), out) as (folder, shown):
        source = _read(folder)
    negatives = _negatives(source, seed, near)
    name = paths.checked_name(str(source.card.get("name") or shown))
    names = (f"{name}-hard", f"{name}-hard-pool")
    licence = str(source.card.get("licence") or "unknown")
    where = Origin(out, str(source.card.get("source", "")), str(source.card.get("revision", "")), shown)
    with builder.replace_folders(out, names) as folders:
        for target, pools in zip(folders, ({}, negatives.pools(source)), strict=True):
            about = _about(source, negatives, bool(pools)) | {"seed": seed, "near": near}
            parts = _parts(source, negatives, pools)
            options = ({"seed": seed} if seed else {}) | ({"near": near} if near != NEAR else {})
            builder.write_collection(
                target, parts, about, where, builder="hard", revision="unknown", licence=licence, options=options
            )
    return [out / name for name in names]


@contextlib.contextmanager
def _opened(name: str, out: Path) -> Iterator[tuple[Path, str]]:
    if name in mini.COLLECTIONS:
        with tempfile.TemporaryDirectory(prefix="mirblab-") as folder:
            yield mini.build(name, Path(folder) / name), name
        return
    places = (out / name, paths.data() / name, paths.expand_home(name))
    known = [folder for folder in places if folder.is_dir() and on_disk.find_texts(folder, "corpus")]
    if not known:
        raise MirblabError(f"'{name}' is neither a collection that is built nor the folder of one; build it first")
    yield known[0], known[0].resolve().name


def _read(folder: Path) -> _Source:
    digests.check_digests(folder)
    whole = read_splits(folder, ["test"])[0]
    if "tags" in whole.candidates.names:
        raise MirblabError(
            f"the card of {whole.name} says candidates = 'tags', by which no wrong copy could be returned, since it "
            "has the tags of its proof; take the rule out of the card of a copy of it, and make that one hard"
        )
    corpus, queries = (on_disk.read_texts(folder, stem) for stem in ("corpus", "queries"))
    about = read_card_table(folder)
    judged: dict[str, list[Judgement]] = {}
    proofs: dict[str, list[str]] = {}
    for split in sorted({"test", *on_disk.split_names(folder)}):
        qrels = on_disk.read_qrels(folder, split, pd.Index(queries.query_id), pd.Index(corpus.doc_id))
        judged[split] = list(zip(qrels.query_id, qrels.doc_id, qrels.relevance.tolist(), strict=True))
        for query, doc, relevance in judged[split]:
            relevant = proofs.setdefault(query, [])
            if relevance >= about.get("relevant_from", 1) and doc not in relevant:
                relevant.append(doc)
    rows = _rows(folder, "corpus"), _rows(folder, "queries")
    lists, groups = on_disk.read_lists(folder), on_disk.read_group_rows(folder)
    return _Source(*rows, about, judged["test"], proofs, lists, groups, partial(_permits, whole))


def _permits(collection: Collection, query: str, doc: str) -> bool:
    """Return whether a query of a collection may return a document."""
    if not collection.candidates.rules:
        return True
    places = (
        ids.get_indexer(pd.Index([name])) for ids, name in ((collection.query_ids, query), (collection.doc_ids, doc))
    )
    return bool(collection.candidates.permits(*places)[0])


def _rows(folder: Path, stem: str) -> dict[str, Row]:
    return {str(row["_id"]): row for row in on_disk.read_rows(folder, stem)}


def _negatives(source: _Source, seed: int, n_near: int) -> _Negatives:
    left_out: Counter[str] = Counter()
    query_ids = list(dict.fromkeys(query for query, *_ in source.judged))
    if not any(source.proofs[query] for query in query_ids):
        raise MirblabError("no query of test has a relevant document, so that there is no proof to corrupt")
    proof_ids = sorted({doc for query in query_ids for doc in source.proofs[query]})
    by_proof = corrupt_documents(source.corpus, proof_ids, seed, left_out)
    texts = {name: row["text"] for name, row in source.queries.items()}
    near = find_nearest_proofs(texts, source.proofs, query_ids, n_near, source.permits)
    copies = {query: [row for doc in source.proofs[query] for row in by_proof[doc]] for query in query_ids}
    left_out["queries without a corrupted copy of their proof"] = sum(not rows for rows in copies.values())
    left_out["queries without a relevant document"] = sum(not source.proofs[query] for query in query_ids)
    left_out["queries of other splits"] = len(source.queries) - len(query_ids)
    return _Negatives(copies, near, left_out)


def corrupt_documents(
    corpus: Mapping[str, Row], wanted: Sequence[str], seed: int, left_out: Counter[str]
) -> dict[str, list[Row]]:
    """Return, for each *wanted* document, at most one copy per kind of mistake, with the id `<document>~<kind>`."""
    texts = {fold_text(row["text"]) for row in corpus.values()}
    copies: dict[str, list[Row]] = {name: [] for name in wanted}
    with progress(len(wanted), "corrupting proofs", "proof") as bar:
        for name, kind in itertools.product(wanted, KINDS):
            row, bad = corpus[name], corrupt(corpus[name]["text"], kind, f"{seed}:{name}")
            bar.update(kind == next(iter(KINDS)))
            if bad is None:
                left_out[f"proofs without a place for a mistake of the kind {kind}"] += 1
            elif fold_text(bad.text) in texts:
                left_out["corrupted copies with the text of another document"] += 1
            else:
                texts.add(fold_text(bad.text))
                edit = {"of": name, "before": bad.before[:_LONGEST], "after": bad.after[:_LONGEST]}
                more = {**(row.get("metadata") or {}), "corrupted": kind, **edit}
                same: Row = {key: row[key] for key in ("order", "tags") if key in row}
                title = row.get("title") or ""
                copies[name].append(
                    {"_id": f"{name}~{kind}", "title": title, "text": bad.text, **same, "metadata": more}
                )
    return copies


def corrupt(proof: str, kind: str, seed: str) -> Corrupted | None:
    """Return *proof* with one mistake of a *kind* drawn by *seed*, or None; the mistake may be harmless."""
    options = [(change, proof[: change.start] + change.new + proof[change.end :]) for change in KINDS[kind](proof)]
    options = [(change, text) for change, text in options if text.split() != proof.split()]
    if not options:
        return None
    change, text = random.Random(f"{seed}:{kind}").choice(options)
    return Corrupted(proof[change.start : change.end], change.new, text)


def reverse_relations(proof: str) -> Iterator[Change]:
    """Yield the inequalities and inclusions of the formulas, reversed, except in indices and diagrams."""
    for start, formula in _formulas(proof):
        if not _DIAGRAM.search(formula) and not {"<", ">"} <= set(formula):
            for match in _RELATION.finditer(formula):
                if not _in_script(formula, match.start()):
                    yield Change(start + match.start(), start + match.end(), OPPOSITE_RELATION[match[0]])


def change_quantifiers(proof: str) -> Iterator[Change]:
    r"""Yield "for all", "every" and "for some" of the prose, and \forall and \exists of formulas, exchanged."""
    for match in QUANTIFIER.finditer(mask_formulas(proof)):
        yield Change(match.start(), match.end(), _alike(match[0], OPPOSITE_QUANTIFIER[match[0].lower()]))
    yield from _exchanged(proof, OPPOSITE_LOGIC)


def exchange_notions(proof: str) -> Iterator[Change]:
    r"""Yield words exchanged for their opposite (injective, surjective; open, closed) and operations (\cup, \cap)."""
    for match in NOTION.finditer(mask_formulas(proof)):
        new = _alike(match["word"], OPPOSITE_NOTION[" ".join(match["word"].lower().split())])
        yield Change(match.start(), match.end(), fit_article(match["article"] or "", new) + new)
    yield from _exchanged(proof, OPPOSITE_OPERATION)


def change_hypotheses(proof: str) -> Iterator[Change]:
    """Yield "since $x$ is ..." with a "not" added, and words such as "nonzero" without their "non"."""
    prose = mask_formulas(proof)
    for match in _HYPOTHESIS.finditer(prose):
        yield Change(match.end("verb"), match.end("verb"), " not")
    for match in NON.finditer(prose):
        new = _alike(match["word"], match["rest"].lower())
        yield Change(match.start(), match.end(), fit_article(match["article"] or "", new) + new)


def fit_article(old: str, new: str) -> str:
    """Return the article *old* with its blank in the form that the word *new* needs; "" stays ""."""
    if not old:
        return ""
    with_n = new[0].lower() in "aeiou" and not new.lower().startswith(("uni", "one-"))
    return f"{old[0]}{'n' if with_n else ''} "


def drop_steps(proof: str) -> Iterator[Change]:
    """Yield the inner sentences that argue or refer, each removed, except at the beginning of a list item."""
    spans = list(_sentences(proof))
    for (start, end), (later, _) in zip(spans[1:-1], spans[2:], strict=True):
        text = proof[start:end]
        argues = _STEP.search(mask_formulas(text)) and not _SIGNPOST.search(text)
        if argues and text[0] not in "(*" and "\n" not in proof[end:later]:
            yield Change(start, later, "")


def swap_indices(proof: str) -> Iterator[Change]:
    """Yield formulas with the indices of two different letters exchanged, _{ij} turned round, or n + 1 as n - 1."""
    for start, formula in ((start, formula) for start, formula in _formulas(proof) if not _DIAGRAM.search(formula)):
        indices = [match for match in _INDEX.finditer(formula) if not _OPERATOR.match(match["base"])]
        for one, other in itertools.pairwise(indices):
            if one["base"] != other["base"] and (one["bare"] or one["braced"]) != (other["bare"] or other["braced"]):
                first, second = formula[one.end("base") : one.end()], formula[other.end("base") : other.end()]
                new = f"{one['base']}{second}{formula[one.end() : other.end('base')]}{first}"
                yield Change(start + one.start(), start + other.end(), new)
        for match in _SHIFT.finditer(formula):
            if match[0][0] == "^" and _MINUS_ONE.search(formula, 0, match.start()):  # (-1)^{n+1} is (-1)^{n-1}
                continue
            sign = start + match.start("sign")
            yield Change(sign, sign + 1, {"+": "-", "-": "+"}[match["sign"]])
        for match in _PAIR.finditer(formula):
            yield Change(start + match.start("pair"), start + match.end("pair"), match["pair"][::-1])


def reverse_implications(proof: str) -> Iterator[Change]:
    r"""Yield "if A, then B" as "if B, then A", "A implies B" as "B implies A", and \Rightarrow as \Leftarrow."""
    prose = mask_formulas(proof)
    for match in itertools.chain(_IF_THEN.finditer(prose), _IMPLIES.finditer(prose)):
        (first, one_end), (other_start, last) = match.span("one"), match.span("other")
        if "only if" not in match[0]:
            new = proof[other_start:last] + proof[one_end:other_start] + proof[first:one_end]
            yield Change(first, last, new)
    yield from _exchanged(proof, OPPOSITE_ARROW)


def find_nearest_proofs(
    texts: Mapping[str, str],
    proofs: Mapping[str, Sequence[str]],
    query_ids: Sequence[str],
    n: int,
    permits: Callable[[str, str], bool] = lambda query, doc: True,
) -> dict[str, list[str]]:
    """Return for each query the first proofs of the *n* other statements whose texts score highest by BM25.

    BM25 is that of Lucene (k1 = 1.2, b = 0.75); ties go by id. Statements without a shared word, with its proof, or
    with a proof that the query may not return, as *permits* says, do not count.
    """
    import bm25s
    import numpy as np

    stated = sorted(name for name in proofs if proofs[name])
    index = bm25s.BM25(method="lucene", k1=1.2, b=0.75)
    index.index([_TOKEN.findall(texts[name].casefold()) for name in stated], show_progress=False)
    nearest: dict[str, list[str]] = {}
    with progress(len(query_ids), "looking for near statements", "query") as bar:
        for query in query_ids:
            scores, relevant = index.get_scores(_TOKEN.findall(texts[query].casefold())), set(proofs[query])
            ranked = (stated[number] for number in np.argsort(-scores, kind="stable") if scores[number] > 0)
            others = (proofs[name][0] for name in ranked if name != query and not relevant.intersection(proofs[name]))
            allowed = filter(partial(permits, query), dict.fromkeys(others))
            nearest[query] = list(itertools.islice(allowed, n))
            bar.update()
    return nearest


def _in_script(formula: str, place: int) -> bool:
    depths: list[bool] = []
    for match in re.finditer(r"\\.|[_^]\{|[{}]", formula[:place]):
        if match[0] == "}":
            del depths[-1:]
        elif match[0][-1] == "{" and match[0][0] != "\\":
            depths.append(match[0] != "{")
    return any(depths)


def _alike(old: str, new: str) -> str:
    """Return *new* with a capital where *old* has one."""
    return new[0].upper() + new[1:] if old[0].isupper() else new


def _sentences(proof: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of each sentence; a line is at least one."""
    prose, start = mask_formulas(proof), 0
    for match in _END.finditer(prose):
        if match[0] == "\n" or not _ABBREVIATION.search(prose[: match.end()][-8:]):
            if proof[start : match.end()].strip():
                yield start, match.start() if match[0] == "\n" else match.end()
            start = match.end() + len(prose[match.end() :]) - len(prose[match.end() :].lstrip())
    if proof[start:].strip():
        yield start, len(proof)


def mask_formulas(text: str) -> str:
    """Return the text, as long as before, with `HIDDEN` for every character of a formula."""
    for start, end in find_formula_spans(text):
        text = text[:start] + HIDDEN * (end - start) + text[end:]
    return text


def _exchanged(proof: str, commands: dict[str, str]) -> Iterator[Change]:
    """Yield the commands of the formulas that have an opposite, replaced by it."""
    pattern = re.compile(command_pattern(commands))
    for start, formula in _formulas(proof):
        for match in pattern.finditer(formula):
            yield Change(start + match.start(), start + match.end(), commands[match[0]])


def _formulas(proof: str) -> Iterator[tuple[int, str]]:
    for start, end in find_formula_spans(proof):
        yield start, proof[start:end]


def find_formula_spans(text: str) -> list[tuple[int, int]]:
    """Return start and end of each formula, delimiters included; a dollar inside braces ends none."""
    return [(start, end) for start, end, is_closed in latex.find_formulas(text) if is_closed]


def _parts(source: _Source, negatives: _Negatives, pools: dict[str, list[str]]) -> CollectionRows:
    """Return the collection over all documents, or, with *pools*, over those that are in one."""
    near_to: dict[str, list[str]] = defaultdict(list)
    for query, docs in negatives.near.items():
        for doc in docs:
            near_to[doc].append(query)
    corpus = {
        name: _with_metadata(row, {"near_to": near_to[name]}) if name in near_to else row
        for name, row in source.corpus.items()
    }
    corpus |= {row["_id"]: row for rows in negatives.copies.values() for row in rows}
    if pools:
        wanted = {name for names in pools.values() for name in names}
        corpus = {name: row for name, row in corpus.items() if name in wanted}
    asked = {query: docs for query, docs in negatives.near.items() if not pools or query in pools}
    queries = (
        _with_metadata(
            source.queries[query], {"negatives": dict(sorted(negatives.counts(query).items())), "near": docs}
        )
        for query, docs in asked.items()
    )
    wrong = [(query, row["_id"], 0) for query, rows in negatives.copies.items() for row in rows]
    judged = [pair for pair in (*source.judged, *wrong) if pair[0] in asked and pair[1] in corpus]
    groups = [row for row in source.groups if row[0] in asked and row[2] in corpus]
    lists = _lists(source, negatives, asked, corpus) | ({"candidates": pools} if pools else {})
    left_out = Counter(negatives.left_out)
    return CollectionRows(corpus.values(), queries, {"test": judged}, left_out, groups, lists)


def _lists(source: _Source, negatives: _Negatives, asked: Container[str], corpus: Container[str]) -> on_disk.QueryLists:
    """Return the source's lists of documents, each with its wrong copies, without what is not asked or not there."""
    copies: dict[str, dict[str, None]] = defaultdict(dict)
    for row in (row for rows in negatives.copies.values() for row in rows):
        copies[row["metadata"]["of"]][row["_id"]] = None
    return {
        stem: {
            query: [name for doc in docs for name in (doc, *copies.get(doc, ())) if name in corpus]
            for query, docs in listed.items()
            if query in asked
        }
        for stem, listed in source.lists.items()
    }


def _with_metadata(row: Row, more: Row) -> Row:
    return {**row, "metadata": {**(row.get("metadata") or {}), **more}}


def _about(source: _Source, negatives: _Negatives, is_pool: bool) -> Row:
    total = sum((negatives.counts(query) for query in negatives.copies), Counter[str]())
    title = str(source.card.get("title") or "Statement to its proof")
    more = "among corrupted copies and near proofs only" if is_pool else "with corrupted copies among the documents"
    kept = {key: source.card[key] for key in KEPT if key in source.card}
    return {**kept, "title": f"{title}, {more}", "note": NOTE, "negatives": dict(sorted(total.items()))}


@dataclass
class _Source:
    """A collection to be made harder: rows by id, card, judgements of test, relevant documents of each statement.

    `lists`, `groups` and `permits` say what a query may return, and which relevant documents replace each other.
    """

    corpus: dict[str, Row]
    queries: dict[str, Row]
    card: Row
    judged: list[Judgement]
    proofs: dict[str, list[str]]
    lists: on_disk.QueryLists
    groups: list[tuple[str, ...]]
    permits: Callable[[str, str], bool]


@dataclass
class _Negatives:
    """By test query, the corrupted copies of its proofs and the proofs of similar statements."""

    copies: dict[str, list[Row]]
    near: dict[str, list[str]]
    left_out: Counter[str]

    def pools(self, source: _Source) -> dict[str, list[str]]:
        """Return the candidates of each query, relevant documents first, without what its list in the source lacks."""
        pools: dict[str, list[str]] = {}
        for query, rows in self.copies.items():
            listed = source.lists.get("candidates", {}).get(query, source.corpus)
            copies = (row["_id"] for row in rows if row["metadata"]["of"] in listed)
            pools[query] = [*(doc for doc in source.proofs[query] if doc in listed), *copies, *self.near[query]]
        return {query: list(dict.fromkeys(names)) for query, names in pools.items() if names}

    def counts(self, query: str) -> Counter[str]:
        return Counter(row["metadata"]["corrupted"] for row in self.copies[query]) + Counter(near=len(self.near[query]))


KINDS: dict[str, Callable[[str], Iterator[Change]]] = {
    "relation-reversed": reverse_relations,
    "quantifier-changed": change_quantifiers,
    "notion-exchanged": exchange_notions,
    "hypothesis-changed": change_hypotheses,
    "step-dropped": drop_steps,
    "indices-swapped": swap_indices,
    "converse": reverse_implications,
}
