"""own_tasks: which tasks one's own files make: proofs and references of statements, questions or titles of a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mirblab import paths
from mirblab.errors import MirblabError
from mirblab.sources import own_columns, own_latex, own_rows, own_table
from mirblab.sources.own_latex import Found, Statement
from mirblab.sources.shape import Parts, Row, folded
from mirblab.sources.stacks import is_trivial
from mirblab.terminal import say

_PROOFS: Row = {"task": "Question-Answer Retrieval", "instruction": "Given a math theorem, retrieve its proof."}
_REFERENCES: Row = {
    "task": "Premise Retrieval",
    "instruction": "Given a math theorem, retrieve useful references, such as theorems, lemmas, and definitions, that "
    "are useful for proving the given theorem.",
    "candidates": "not-self",
}
_QUESTIONS: Row = {
    "task": "Question-Answer Retrieval",
    "instruction": "Given a mathematical query, retrieve relevant answers.",
}
_TITLES: Row = {"task": "Known-Item Retrieval", "instruction": "Given a title, retrieve the text that it stands above."}


@dataclass
class Made:
    """One collection to write: its name, its parts, and what its card says of it."""

    name: str
    parts: Parts
    about: Row


def of_latex(stem: str, files: Mapping[str, Path], encoding: str) -> list[Made]:
    """Return statement to proof, and statement to the results that it refers to, as far as the files have any."""
    found = own_latex.read(files, encoding)
    own_latex.refuse_empty(found, len(files), stem)
    answers, premises = _answers(found), _premises(found)
    made = [
        Made(f"{stem}-qa", answers, {"title": f"{stem}: statement to its proof", **_PROOFS}),
        Made(f"{stem}-premise", premises, {"title": f"{stem}: statement to the results it refers to", **_REFERENCES}),
    ]
    made = [one for one in made if one.parts.queries]
    if not made:
        raise MirblabError(
            f"{stem}: {len(found.statements):,} statements, but no proof of over five words (\\begin{{proof}}) and no "
            r"\ref to another of them, so there is nothing to ask for; add proofs or references, or make a table with "
            "the columns id, query, text"
        )
    say(f"{stem}: {len(files):,} .tex files, {len(found.statements):,} statements; a proof has "
          f"{sum(bool(one.proofs) for one in found.statements):,} of them, a label "
          f"{sum(bool(one.label) for one in found.statements):,}")  # fmt: skip
    return made


def _answers(found: Found) -> Parts:
    """Return statement to proof; equal proofs are one document, which answers each of its statements."""
    left_out, rows, queries, pairs = (
        Counter(found.odd),
        dict[str, Row](),
        list[Row](),
        dict[tuple[str, str, int], None](),
    )
    for one in found.statements:
        left_out["statements without a proof"] += not one.proofs
        proofs = [proof.text for proof in one.proofs if not is_trivial(proof.text)]
        left_out["proofs under six words, or omitted"] += len(one.proofs) - len(proofs)
        for number, proof in enumerate(proofs, 1):
            name = f"{one.id}-proof" + (f"-{number}" if number > 1 else "")
            left_out["proofs with the text of another one (merged)"] += folded(proof) in rows
            row = rows.setdefault(folded(proof), {"_id": name, "title": "", "text": proof, "metadata": _metadata(one)})
            pairs[one.id, row["_id"], 1] = None
        queries += [_query(one)] if proofs else []
    return Parts(list(rows.values()), queries, {"test": list(pairs)}, left_out)


def _premises(found: Found) -> Parts:
    """Return statement to the other statements that it or its proof refers to."""
    left_out, queries, pairs = Counter(found.odd), list[Row](), list[tuple[str, str, int]]()
    for one in found.statements:
        labels = [(label, one.file) for label in one.references]
        labels += [(label, proof.stem) for proof in one.proofs for label in proof.references]
        places = [found.places.find(*label) for label in labels]
        left_out["references to what is no statement here (sections, equations, other texts)"] += places.count(None)
        left_out["references to the statement itself"] += places.count(one)
        used = list(dict.fromkeys(place.id for place in places if place is not None and place is not one))
        left_out["statements that refer to no other (documents, no queries)"] += not used
        queries += [_query(one)] if used else []
        pairs += [(one.id, name, 1) for name in used]
    corpus = [
        {"_id": one.id, "title": one.title, "text": one.text, "metadata": _metadata(one)} for one in found.statements
    ]
    return Parts(corpus, queries, {"test": pairs}, left_out)


def _query(one: Statement) -> Row:
    text = f"{one.title.rstrip('.')}. {one.text}" if one.title else one.text
    return {"_id": one.id, "text": text, "metadata": _metadata(one)}


def _metadata(one: Statement) -> Row:
    return {"order": one.order, "kind": one.kind, "file": one.file, "line": one.line, "label": one.label}


def of_table(
    stem: str, path: Path, columns: Mapping[str, str], files: Mapping[str, str], encoding: str, delimiter: str
) -> tuple[list[Made], list[Path]]:
    """Return the collection of a table, with those of its queries and judgements, and the files that were read."""
    left_out: Counter[str] = Counter()
    table, taken = _taken(path, own_columns.DOCUMENTS, columns, encoding, delimiter, left_out)
    if files["qrels"] and not files["queries"]:
        raise MirblabError("--set qrels=FILE says which document answers which query; give --set queries=FILE, too")
    if not files["queries"]:
        own_columns.need(path.name, taken, table.columns, "text")
        if "query" not in taken and "title" not in taken:
            raise MirblabError(_no_queries(path, table.columns))
        role = "query" if "query" in taken else "title"
        say(f"{path.name}: {len(table.rows):,} rows; taken: {own_columns.told(taken, table.columns)}"
              + ("" if role == "query" else "; each title is the query for its own text"))  # fmt: skip
        found = own_rows.documents(table, taken, left_out, titled=role == "query")
        parts = own_rows.beside(table, taken, found, role, left_out)
        about = _QUESTIONS if role == "query" else _TITLES
        return [Made(stem, parts, _about(stem, parts, about))], [path]
    parts, read = _with_queries(path, columns, files, encoding, delimiter, left_out)
    return [Made(stem, parts, _about(stem, parts, _QUESTIONS))], read


def _with_queries(
    path: Path, columns: Mapping[str, str], files: Mapping[str, str], encoding: str, delimiter: str,
    left_out: Counter[str],
) -> tuple[Parts, list[Path]]:  # fmt: skip
    """Return the collection of documents and queries that stand in files of their own."""
    roles = {role: own_columns.DOCUMENTS[role] for role in ("text", "id", "title")}
    table, taken = _taken(path, roles, columns, encoding, delimiter, left_out)
    own_columns.need(path.name, taken, table.columns, "text", "id")
    say(f"{path.name}: {len(table.rows):,} documents; taken: {own_columns.told(taken, table.columns)}")
    asked, chosen = _taken(_beside(path, files["queries"]), own_columns.QUERIES, columns, encoding, delimiter, left_out)
    own_columns.need(asked.path.name, chosen, asked.columns, "query", *([] if files["qrels"] else ["doc_id"]))
    say(f"{asked.path.name}: {len(asked.rows):,} queries; taken: {own_columns.told(chosen, asked.columns)}")
    found, read, judged = own_rows.documents(table, taken, left_out), [path, asked.path], None
    if files["qrels"]:
        own_columns.need(asked.path.name, chosen, asked.columns, "query_id")
        judged = _taken(_beside(path, files["qrels"]), own_columns.QRELS, columns, encoding, delimiter, left_out)
        own_columns.need(judged[0].path.name, judged[1], judged[0].columns, "query_id", "doc_id")
        told = own_columns.told(judged[1], judged[0].columns)
        say(f"{judged[0].path.name}: {len(judged[0].rows):,} judgements; taken: {told}")
        read.append(judged[0].path)
    return own_rows.listed(asked, chosen, found, left_out, judged), read


def _taken(
    path: Path, roles: Mapping[str, tuple[str, ...]], columns: Mapping[str, str], encoding: str, delimiter: str,
    left_out: Counter[str],
) -> tuple[own_table.Table, dict[str, str]]:  # fmt: skip
    """Return a table, and which of its columns is taken for which of the *roles*."""
    table = own_table.read(path, encoding, delimiter)
    left_out["empty rows"] += table.n_empty
    asked = {role: columns[role] for role in roles if role in columns}
    return table, own_columns.taken(path.name, table.columns, roles, asked)


def _beside(path: Path, given: str) -> Path:
    """Return a further file: as it is given, or beside the first one."""
    for found in (paths.given(given), path.parent / given):
        if found.is_file():
            return found
    raise MirblabError(f"no file '{given}', neither here nor beside {path.name}; give its whole path")


def _no_queries(path: Path, columns: list[str]) -> str:
    shown = ", ".join(f"'{name}'" for name in columns[:12])
    return (
        f"{path.name} has texts and nothing to ask for them; found the columns {shown}; needed is a column of titles "
        "(--set title=COLUMN: each title then asks for its own text), one of questions (--set query=COLUMN), or a file "
        "of queries (--set queries=FILE with the columns id, text, doc_id)"
    )


def _about(stem: str, parts: Parts, about: Row) -> Row:
    """Return what the card says: title, task, and the grades that occur."""
    grades = sorted({0, 1, *(relevance for *_, relevance in parts.judged["test"])})
    return {"title": stem, **about, "relevance_levels": grades}
