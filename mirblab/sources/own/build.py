"""build: your own files as collections."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

from mirblab.core import paths
from mirblab.core.errors import MirblabError, suggest
from mirblab.core.terminal import say
from mirblab.core.text_files import LineProblems
from mirblab.data.collection import read_card_table
from mirblab.sources import mini
from mirblab.sources.own import latex, tables
from mirblab.sources.own.latex import LatexContent, Statement
from mirblab.sources.own.tables import SUFFIXES, Cells, Table, decode_file
from mirblab.sources.shared import builder, release
from mirblab.sources.shared.builder import CollectionRows, Row, UniqueIds, fold_text, replace_folders
from mirblab.sources.shared.release import Origin

_SEVERAL = re.compile(r"[;,|\s]+")
_MOST = 2**31
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
_WANTED = "a folder of .tex files, one .tex file, or a table (.csv, .tsv, .jsonl)"
_SOURCE = "own files"
_UNSTATED = "not stated"


@dataclass
class Documents:
    """The corpus of a table; `of_line` says which document a row became, by its line."""

    rows: dict[str, Row] = field(default_factory=dict)
    of_line: dict[int, str] = field(default_factory=dict)


@dataclass
class OwnCollection:
    """One collection to write: its name, its parts, and what its card says of it."""

    name: str
    parts: CollectionRows
    about: Row


def build(
    origin: str | Path | None, out: Path, *, name: str = "", id: str = "", text: str = "", title: str = "",
    query: str = "", query_id: str = "", doc_id: str = "", relevance: str = "", queries: str = "", qrels: str = "",
    encoding: str = "", delimiter: str = "", licence: str = _UNSTATED,
) -> list[Path]:  # fmt: skip
    """Write the collections of one's own files under *out*, print what was taken for what, and return the folders.

    Of LaTeX: <name>-qa, statement to its proof, and <name>-premise, statement to the results that it and its proof
    refer to, as far as there are any. Of a table: <name>, whose queries stand in its column *query*, else in the file
    *queries* (judged there, in a column *doc_id*, or in a third file, *qrels*), else are the titles (known items).
    *id*, *text*, *title*, *query*, *query_id*, *doc_id* and *relevance* name columns ("": guessed from their names;
    "-": none); *name* is the origin's where it is not given. Everything is in the split test. The folders appear
    whole, in place of those that were built so before. Raises MirblabError with file and line, and what to do.
    """
    columns = {"id": id, "text": text, "title": title, "query": query, "query_id": query_id, "doc_id": doc_id,
               "relevance": relevance}  # fmt: skip
    files = {"queries": queries, "qrels": qrels}
    given = {**columns, "encoding": encoding, "delimiter": delimiter}
    with _opened(origin) as found:
        stem = paths.checked_name(name or _stem(found.shown))
        chosen = _files(found)
        if isinstance(chosen, dict):
            _refuse_for_latex({**columns, **files, "delimiter": delimiter})
            made, read = collections_from_latex(stem, chosen, encoding), list(chosen.values())
        else:
            made, read = collection_from_table(stem, chosen, columns, files, encoding, delimiter)
        for one in made:
            _refuse_taken(Path(out) / one.name)
        told = {key: value for key, value in {"name": name, **given}.items() if value}
        told |= {key: Path(value).name for key, value in files.items() if value}
        told |= {"licence": licence} if licence != _UNSTATED else {}
        revision = release.hash_files(read)
        with replace_folders(Path(out), tuple(one.name for one in made)) as folders:
            for folder, one in zip(folders, made, strict=True):
                facts = {"builder": "own", "revision": revision, "licence": licence, "options": told}
                builder.write_collection(folder, one.parts, one.about, found, **facts)
    return [Path(out) / one.name for one in made]


def collections_from_latex(stem: str, files: Mapping[str, Path], encoding: str) -> list[OwnCollection]:
    """Return statement to proof, and statement to the results that it refers to, as far as the files have any."""
    found = latex.read_latex(files, encoding)
    latex.require_statements(found, len(files), stem)
    answers, premises = _answers(found), _premises(found)
    made = [
        OwnCollection(f"{stem}-qa", answers, {"title": f"{stem}: statement to its proof", **_PROOFS}),
        OwnCollection(
            f"{stem}-premise", premises, {"title": f"{stem}: statement to the results it refers to", **_REFERENCES}
        ),
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


def collection_from_table(
    stem: str, path: Path, columns: Mapping[str, str], files: Mapping[str, str], encoding: str, delimiter: str
) -> tuple[list[OwnCollection], list[Path]]:
    """Return the collection of a table, with those of its queries and judgements, and the files that were read."""
    left_out: Counter[str] = Counter()
    table, taken = _taken(path, tables.DOCUMENTS, columns, encoding, delimiter, left_out)
    if files["qrels"] and not files["queries"]:
        raise MirblabError("--set qrels=FILE says which document answers which query; give --set queries=FILE, too")
    if not files["queries"]:
        tables.require_roles(path.name, taken, table.columns, "text")
        if "query" not in taken and "title" not in taken:
            raise MirblabError(_no_queries(path, table.columns))
        role = "query" if "query" in taken else "title"
        say(f"{path.name}: {len(table.rows):,} rows; taken: {tables.describe_assignment(taken, table.columns)}"
              + ("" if role == "query" else "; each title is the query for its own text"))  # fmt: skip
        found = read_documents(table, taken, left_out, titled=role == "query")
        parts = queries_in_column(table, taken, found, role, left_out)
        about = _QUESTIONS if role == "query" else _TITLES
        return [OwnCollection(stem, parts, _about(stem, parts, about))], [path]
    parts, read = _with_queries(path, columns, files, encoding, delimiter, left_out)
    return [OwnCollection(stem, parts, _about(stem, parts, _QUESTIONS))], read


def queries_in_column(
    table: Table, taken: Mapping[str, str], found: Documents, role: str, left_out: Counter[str]
) -> CollectionRows:
    """Return the collection whose queries stand beside their documents, in the column of the *role* (query, title).

    Equal texts, but for case and blanks, are one query with several relevant documents.
    """
    asked, names, problems = _Asked(), UniqueIds(), _problems(table, taken)
    for line, cells in table.rows:
        text, doc = _cell(cells, taken, role), found.of_line.get(line, "")
        if doc and not text:
            left_out[f"documents without a {role} (no queries)"] += 1
        elif doc:
            given = _cell(cells, taken, "query_id") if role == "query" else ""
            name = asked.names.get(fold_text(text)) or names.new(given or f"{doc}-{role}")
            relevance = _relevance(cells, taken, line, problems) if role == "query" else 1
            asked.add(name, text, doc, relevance, line, problems)
    problems.raise_if_any()
    return asked.parts(found, left_out, table, role)


def _answers(found: LatexContent) -> CollectionRows:
    """Return statement to proof; equal proofs are one document, which answers each of its statements."""
    left_out, queries, proofs = Counter(found.odd), list[Row](), list[tuple[str, int, str]]()
    statements = {one.id: one for one in found.statements}
    for one in found.statements:
        left_out["statements without a proof"] += not one.proofs
        texts = [proof.text for proof in one.proofs if not builder.is_trivial_proof(proof.text)]
        left_out["proofs under six words, or omitted"] += len(one.proofs) - len(texts)
        proofs += [(one.id, number, text) for number, text in enumerate(texts, 1)]
        queries += [_query(one)] if texts else []
    documents, answers, _ = builder.merge_proofs(proofs, left_out)
    corpus = [
        {"_id": name, "title": "", "text": text, "metadata": _metadata(statements[statement])}
        for name, (statement, text) in documents.items()
    ]
    pairs = [(statement, name, 1) for statement, names in answers.items() for name in names]
    return CollectionRows(corpus, queries, {"test": pairs}, left_out)


def _premises(found: LatexContent) -> CollectionRows:
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
    return CollectionRows(corpus, queries, {"test": pairs}, left_out)


def _query(one: Statement) -> Row:
    text = f"{one.title.rstrip('.')}. {one.text}" if one.title else one.text
    return {"_id": one.id, "text": text, "metadata": _metadata(one)}


def _metadata(one: Statement) -> Row:
    return {"order": one.order, "kind": one.kind, "file": one.file, "line": one.line, "label": one.label}


def _with_queries(
    path: Path, columns: Mapping[str, str], files: Mapping[str, str], encoding: str, delimiter: str,
    left_out: Counter[str],
) -> tuple[CollectionRows, list[Path]]:  # fmt: skip
    """Return the collection of documents and queries that stand in files of their own."""
    roles = {role: tables.DOCUMENTS[role] for role in ("text", "id", "title")}
    table, taken = _taken(path, roles, columns, encoding, delimiter, left_out)
    tables.require_roles(path.name, taken, table.columns, "text", "id")
    say(f"{path.name}: {len(table.rows):,} documents; taken: {tables.describe_assignment(taken, table.columns)}")
    asked, chosen = _taken(_beside(path, files["queries"]), tables.QUERIES, columns, encoding, delimiter, left_out)
    tables.require_roles(asked.path.name, chosen, asked.columns, "query", *([] if files["qrels"] else ["doc_id"]))
    say(f"{asked.path.name}: {len(asked.rows):,} queries; taken: {tables.describe_assignment(chosen, asked.columns)}")
    found, read, judged = read_documents(table, taken, left_out), [path, asked.path], None
    if files["qrels"]:
        tables.require_roles(asked.path.name, chosen, asked.columns, "query_id")
        judged = _taken(_beside(path, files["qrels"]), tables.QRELS, columns, encoding, delimiter, left_out)
        tables.require_roles(judged[0].path.name, judged[1], judged[0].columns, "query_id", "doc_id")
        told = tables.describe_assignment(judged[1], judged[0].columns)
        say(f"{judged[0].path.name}: {len(judged[0].rows):,} judgements; taken: {told}")
        read.append(judged[0].path)
    return queries_in_table(asked, chosen, found, left_out, judged), read


def read_documents(table: Table, taken: Mapping[str, str], left_out: Counter[str], *, titled: bool = True) -> Documents:
    """Return the documents of a *table*; without *titled* their titles are left out, since they become the queries.

    Without a column of ids they are numbered. Rows without a text are left out, those that repeat a document merged;
    both are counted. Raises MirblabError with the lines for an id given to two texts, and for a row without one.
    """
    found, problems = Documents(), _problems(table, taken)
    lines: dict[str, int] = {}
    for number, (line, cells) in enumerate(table.rows, 1):
        text, title = _cell(cells, taken, "text"), _cell(cells, taken, "title")
        given = _cell(cells, taken, "id") if "id" in taken else f"row-{number}"
        name = "_".join(given.split())
        row = {"_id": name, "title": title if titled else "", "text": text, "metadata": {"line": line}}
        if not text:
            left_out["rows without a text"] += 1
            continue
        if not name:
            problems.note(
                line, f"no id in the column '{taken['id']}'; give it one, or say --set id=- to number the rows"
            )
        elif name in found.rows and (found.rows[name]["text"], found.rows[name]["title"]) != (text, row["title"]):
            problems.note(line, f"the id '{name}' again, with another text; first on line {lines[name]}; give each "
                                "document an id of its own")  # fmt: skip
        else:
            left_out["rows that repeat a document (merged)"] += name in found.rows
            left_out["ids whose blanks became '_'"] += name != given
            found.rows.setdefault(name, row)
            found.of_line[line] = name
            lines.setdefault(name, line)
    problems.raise_if_any()
    return found


def queries_in_table(
    table: Table, taken: Mapping[str, str], found: Documents, left_out: Counter[str],
    judged: tuple[Table, Mapping[str, str]] | None = None,
) -> CollectionRows:  # fmt: skip
    """Return the collection whose queries stand in a *table* of their own, with the documents that answer them.

    The documents are named in that table, several of them with ";" between, or in a third one, *judged*: query_id,
    doc_id and, where it is there, relevance. Raises MirblabError with file and line for ids that nothing has.
    """
    asked, problems = _Asked(), _problems(table, taken)
    for number, (line, cells) in enumerate(table.rows, 1):
        text = _cell(cells, taken, "query")
        name = "_".join(_cell(cells, taken, "query_id").split()) or f"query-{number}"
        if not text:
            left_out["rows without a query"] += 1
            continue
        if asked.texts.get(name, text) != text:
            problems.note(line, f"the query id '{name}' again, with another text; give each query an id of its own")
        asked.texts.setdefault(name, text)
        if judged is None:
            _judge(asked, name, cells, taken, line, found, problems)
    problems.raise_if_any()
    if judged is not None:
        problems = _problems(*judged)
        for line, cells in judged[0].rows:
            name = "_".join(_cell(cells, judged[1], "query_id").split())
            if name not in asked.texts:
                problems.note(
                    line, f"judges the query '{name}', which {table.path.name} lacks{suggest(name, asked.texts)}"
                )
            else:
                _judge(asked, name, cells, judged[1], line, found, problems)
        problems.raise_if_any()
    return asked.parts(found, left_out, table, "query")


def _problems(table: Table, taken: Mapping[str, str]) -> LineProblems:
    """Return the problems of a table: what is no id in a column that is taken for ids; further ones can be noted."""
    problems, columns = (
        LineProblems(table.path),
        {taken[role] for role in ("id", "query_id", "doc_id") if role in taken},
    )
    for (line, column), shown in table.no_ids.items():
        if column in columns:
            what = f"must be a text or a whole number, found {shown}; an id stands between quotes"
            problems.note(line, f"'{column}' {what}")
    return problems


def _judge(
    asked: _Asked,
    name: str,
    cells: Cells,
    taken: Mapping[str, str],
    line: int,
    found: Documents,
    problems: LineProblems,
) -> None:
    """Add what one row says of the query *name*."""
    given = _cell(cells, taken, "doc_id")
    whole = "_".join(given.split())
    for doc in [whole] if whole in found.rows else filter(None, _SEVERAL.split(given)):
        if doc not in found.rows:
            problems.note(line, f"names the document '{doc}', which is not there{suggest(doc, found.rows)}")
        else:
            asked.add(name, asked.texts[name], doc, _relevance(cells, taken, line, problems), line, problems)


class _Asked:
    """Queries by id, their ids by folded text, and the judgements."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self.names: dict[str, str] = {}
        self.judged: dict[tuple[str, str], int] = {}

    def add(self, name: str, text: str, doc: str, relevance: int, line: int, problems: LineProblems) -> None:
        """Take in one judgement; a pair that is judged twice must be judged alike."""
        self.texts.setdefault(name, text)
        self.names.setdefault(fold_text(text), name)
        if self.judged.setdefault((name, doc), relevance) != relevance:
            problems.note(line, f"judges '{doc}' for '{name}' a second time, with another relevance; keep one")

    def parts(self, found: Documents, left_out: Counter[str], table: Table, role: str) -> CollectionRows:
        """Return the collection; a query without a judgement is left out. MirblabError when no query is left."""
        asked = {name for name, _ in self.judged}
        left_out["queries without a judgement"] += len(self.texts.keys() - asked)
        if not any(relevance > 0 for relevance in self.judged.values()):
            raise MirblabError(f"{table.path.name}: no {role} has a relevant document; judge at least one")
        queries = [{"_id": name, "text": text} for name, text in self.texts.items() if name in asked]
        pairs = [(*pair, relevance) for pair, relevance in self.judged.items()]
        return CollectionRows(list(found.rows.values()), queries, {"test": pairs}, left_out)


def _relevance(cells: Cells, taken: Mapping[str, str], line: int, problems: LineProblems) -> int:
    """Return the relevance that a row gives, 1 where no column holds one; what is no whole number is noted."""
    given = _cell(cells, taken, "relevance") if "relevance" in taken else "1"
    try:
        number = float(given)
        if number.is_integer() and 0 <= number < _MOST:
            return int(number)
    except (ValueError, OverflowError):
        pass
    problems.note(
        line, f"the relevance must be a whole number from 0, found '{given}'; --set relevance=- leaves it out"
    )
    return 0


def _cell(cells: Cells, taken: Mapping[str, str], role: str) -> str:
    return cells[taken[role]].strip() if role in taken else ""


def _taken(
    path: Path, roles: Mapping[str, tuple[str, ...]], columns: Mapping[str, str], encoding: str, delimiter: str,
    left_out: Counter[str],
) -> tuple[tables.Table, dict[str, str]]:  # fmt: skip
    """Return a table, and which of its columns is taken for which of the *roles*."""
    table = tables.read_table(path, encoding, delimiter)
    left_out["empty rows"] += table.n_empty
    asked = {role: columns[role] for role in roles if role in columns}
    return table, tables.assign_columns(path.name, table.columns, roles, asked)


def _beside(path: Path, given: str) -> Path:
    """Return a further file: as it is given, or beside the first one."""
    for found in (paths.expand_home(given), path.parent / given):
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


def _about(stem: str, parts: CollectionRows, about: Row) -> Row:
    """Return what the card says: title, task, and the grades that occur."""
    grades = sorted({0, 1, *(relevance for *_, relevance in parts.judged["test"])})
    return {"title": stem, **about, "relevance_levels": grades}


def _opened(origin: str | Path | None) -> AbstractContextManager[Origin]:
    """Return what yields the origin: a file alone, or an origin as `open_origin` takes it."""
    if origin is None:
        raise MirblabError(f"say where your files are: --from, with {_WANTED}")
    path = paths.expand_home(origin)
    if path.is_dir() or _is_remote(str(origin)) or re.search(r"\.(tar|tgz|tar\.\w+)$", path.name.lower()):
        return release.open_origin(path if path.exists() else str(origin), _SOURCE)
    if not path.is_file():
        raise MirblabError(f"no file or folder '{origin}'; looked in {Path.cwd()}; give the whole path to {_WANTED}")
    if not path.name.lower().endswith((*SUFFIXES, ".tex")):
        decode_file(path)  # raises an error that names a spreadsheet's own format
        raise MirblabError(f"{path.name} is not {_WANTED}; give it the right ending if it is one")
    return nullcontext(Origin(path, _SOURCE, "", path.name))


def _is_remote(origin: str) -> bool:
    return "://" in origin or bool(re.match(r"[\w.-]+@[\w.-]+:", origin))


def _files(found: Origin) -> dict[str, Path] | Path:
    """Return the .tex files below the folder by their names there, or else its only table."""
    if found.folder.is_file():
        return {found.folder.name: found.folder} if found.folder.suffix.lower() == ".tex" else found.folder
    below = {path.relative_to(found.folder): path for path in sorted(found.folder.rglob("*")) if path.is_file()}
    inside = {name.as_posix(): path for name, path in below.items() if not any(part[0] == "." for part in name.parts)}
    chosen = {name: path for name, path in inside.items() if name.lower().endswith(".tex")}
    if chosen:
        return chosen
    if any(name.startswith("corpus.jsonl") for name in inside) and any(name.startswith("queries") for name in inside):
        raise MirblabError(f"{found.shown} is a collection already; run: mirblab add FOLDER")
    tables = [path for name, path in inside.items() if name.lower().endswith(SUFFIXES)]
    if len(tables) == 1:
        return tables[0]
    shown = ", ".join(list(inside)[:8]) or "nothing"
    what = "several tables; give the one with the documents itself" if tables else f"neither; give {_WANTED}"
    raise MirblabError(f"{found.shown}: looked for .tex files, or one table, and found {what}; it holds {shown}")


def _refuse_for_latex(options: Mapping[str, str]) -> None:
    """Raise MirblabError for options that are about tables only."""
    for option, value in options.items():
        if value:
            raise MirblabError(f"--set {option}={value} is about tables, and these are LaTeX files; leave it out, or "
                               "give the table itself with --from")  # fmt: skip


def _stem(shown: str) -> str:
    """Return a name for a collection from that of its origin.

    >>> _stem("My Thesis.tar.gz")
    'my-thesis'
    """
    plain = re.sub(r"(\.(csv|tsv|tab|jsonl|ndjson|tex|tar|gz|tgz|bz2|xz|git))+$", "", shown.rstrip("/").lower())
    return re.sub(r"[^a-z0-9]+", "-", plain.rpartition("/")[2]).strip("-") or "own"


def _refuse_taken(target: Path) -> None:
    """Raise MirblabError where the name is another collection's: only what was built so before is replaced."""
    is_own = str(read_card_table(target).get("command", "")).startswith("mirblab build own ")
    if target.name in mini.COLLECTIONS or ((target / "card.toml").is_file() and not is_own):
        raise MirblabError(f"'{target.name}' is the name of another collection here; say --set name=ANOTHER")
