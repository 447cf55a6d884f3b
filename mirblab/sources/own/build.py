"""build: your own files as collections."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path, PurePosixPath

from mirblab.core import atomic_files, paths
from mirblab.core.errors import MirblabError, suggest
from mirblab.core.terminal import say
from mirblab.core.text_files import LineProblems
from mirblab.core.wording import first_names
from mirblab.data.collection import read_card_table
from mirblab.sources import mini
from mirblab.sources.own import latex, reading
from mirblab.sources.own.environment_names import is_rarely_proved
from mirblab.sources.own.latex import LatexContent, Statement
from mirblab.sources.own.tex_files import DEFINITIONS, document_files
from mirblab.sources.shared import builder, release, tables
from mirblab.sources.shared.builder import CollectionRows, Judgement, Row, UniqueIds, replace_folders
from mirblab.sources.shared.release import Origin
from mirblab.sources.shared.tables import SUFFIXES, Cells, Table

_SEVERAL = re.compile(r"[;,|\s]+")
_MOST = 2**31
_QUESTIONS: Row = {
    "task": "Question-Answer Retrieval",
    "instruction": "Given a mathematical query, retrieve relevant answers.",
}
_TITLES: Row = {"task": "Known-Item Retrieval", "instruction": "Given a title, retrieve the text that it stands above."}
_WANTED = "a folder of .tex files, one .tex file, or a table (.csv, .tsv, .jsonl)"
_SOURCE = "own files"
_UNSTATED = "not stated"
NamedCollection = tuple[str, CollectionRows, Row]  # its name, its rows, and what its card says of it
ReadTable = Callable[[Path, Mapping[str, tuple[str, ...]]], Table]


def build(
    origin: str | Path | None, out: Path, *, name: str = "", id: str = "", text: str = "", title: str = "",
    query: str = "", query_id: str = "", doc_id: str = "", relevance: str = "", queries: str = "", qrels: str = "",
    encoding: str = "", delimiter: str = "", licence: str = _UNSTATED,
) -> list[Path]:  # fmt: skip
    """Write the collections of your own files under *out*, print how they were read, and return the folders.

    LaTeX gives <name>-qa (statement to its proof) and <name>-premise (all statements, and as queries those that refer
    to others; there may be none), each with a page reading.md that shows what was read beside its source. A table
    gives <name>; its queries are its column *query*, else the file *queries* (with a column *doc_id*, or with the file
    *qrels*), else the titles. *id* to *relevance* name columns ("": guessed, "-": none);
    *name* "" is that of the origin. The only split is test. Raises MirblabError with file and line, and what to do.
    """
    columns = {"id": id, "text": text, "title": title, "query": query, "query_id": query_id, "doc_id": doc_id,
               "relevance": relevance}  # fmt: skip
    files = {"queries": queries, "qrels": qrels}
    given = {**columns, "encoding": encoding, "delimiter": delimiter}
    with _opened(origin) as opened:
        stem, page = paths.checked_name(name or _stem(opened.shown)), ""
        chosen = _files(opened, encoding)
        if isinstance(chosen, dict):
            for option, value in {**columns, **files, "delimiter": delimiter}.items():
                if value:
                    raise MirblabError(
                        f"--set {option}={value} is about tables, and these are LaTeX files; leave it out, or give the "
                        "table itself with --from"
                    )
            collections, page = _collections_from_latex(stem, chosen, encoding)
            read = list(chosen.values())
        else:
            collections, read = _collection_from_table(stem, chosen, columns, files, encoding, delimiter)
        names = tuple(name for name, *_ in collections)
        for target in (Path(out) / each for each in names):
            is_own = str(read_card_table(target).get("command", "")).startswith("mirblab build own ")
            if target.name in mini.COLLECTIONS or ((target / "card.toml").is_file() and not is_own):
                raise MirblabError(f"'{target.name}' is the name of another collection here; say --set name=ANOTHER")
        options = {key: value for key, value in {"name": name, **given}.items() if value}
        options |= {key: Path(value).name for key, value in files.items() if value}
        options |= {"licence": licence} if licence != _UNSTATED else {}
        facts: Row = {"builder": "own", "revision": release.hash_files(read), "licence": licence, "options": options}
        unasked = [each for each, parts, _ in collections if not parts.queries]
        with replace_folders(Path(out), names, unasked) as folders:
            for folder, (_, parts, about) in zip(folders, collections, strict=True):
                builder.write_collection(folder, parts, about, opened, **facts)
                if page:
                    atomic_files.write_bytes(folder / reading.PAGE, page.encode("utf-8", "replace"))
        if page:
            say(f"what was read, ten of the texts beside their source, and the commands without a rule: "
                f"{Path(out) / names[0] / reading.PAGE}")  # fmt: skip
    return [Path(out) / name for name in names]


def _collections_from_latex(stem: str, files: Mapping[str, Path], encoding: str) -> tuple[list[NamedCollection], str]:
    """Return the collections of LaTeX *files*, and the page that shows how they were read."""
    content = latex.read_latex(files, encoding)
    n_files = sum(not name.lower().endswith(DEFINITIONS) for name in files)
    latex.require_statements(content, n_files, stem)
    statements = content.statements
    to_proof, to_references = builder.read_task("stacks-qa"), builder.read_task("stacks-premise")
    about = {"title": f"{stem}: statement to the results it refers to", **to_references, "candidates": "not-self"}
    answers, premises = _answers(content), _premises(content)
    collections: list[NamedCollection] = [(f"{stem}-premise", premises, about)]
    if answers.queries:
        collections.insert(0, (f"{stem}-qa", answers, {"title": f"{stem}: statement to its proof", **to_proof}))
    if not premises.queries:
        say(f"{stem}-premise has all statements and no query, because none refers to another by \\ref: search it and "
            "compare its statements")  # fmt: skip
    n_proved = sum(bool(statement.proofs) for statement in statements)
    n_labelled = sum(bool(statement.label) for statement in statements)
    say(f"{stem}: {n_files:,} .tex files, {len(statements):,} statements; a proof has {n_proved:,} of them, "
        f"a label {n_labelled:,}")  # fmt: skip
    say("  " + ", ".join(f"{kind} {count:,}" for kind, count in reading.count_kinds(content).most_common(12)))
    return collections, reading.describe_reading(stem, content, files, encoding)


def _collection_from_table(
    stem: str, path: Path, columns: Mapping[str, str], files: Mapping[str, str], encoding: str, delimiter: str
) -> tuple[list[NamedCollection], list[Path]]:
    left_out: Counter[str] = Counter()

    def read(file: Path, roles: Mapping[str, tuple[str, ...]]) -> Table:
        table = tables.read_table(file, encoding, delimiter)
        left_out["empty rows"] += table.n_empty
        named = {role: columns[role] for role in roles if role in columns}
        table.roles = tables.assign_columns(file.name, table.columns, roles, named, table.number_columns())
        if roles is tables.QRELS and columns["relevance"] != tables.NONE:
            _require_relevance(table)
        return table

    if files["qrels"] and not files["queries"]:
        raise MirblabError("--set qrels=FILE says which document answers which query; give --set queries=FILE, too")
    about = _QUESTIONS
    if files["queries"]:
        parts, read_files = _with_queries(path, files, read, left_out)
    else:
        table, read_files = read(path, tables.DOCUMENTS), [path]
        table.require_roles("text")
        if not table.roles.keys() & {"query", "title"}:
            shown = first_names((f"'{name}'" for name in table.columns), 12)
            raise MirblabError(
                f"{path.name} has texts and nothing to ask for them; found the columns {shown}; needed is a column of "
                "titles (--set title=COLUMN: each title then asks for its own text), one of questions (--set "
                "query=COLUMN), or a file of queries (--set queries=FILE with the columns id, text, doc_id)"
            )
        role = "query" if "query" in table.roles else "title"
        say(f"{path.name}: {len(table.rows):,} rows; taken: {table.describe_roles()}"
            + ("" if role == "query" else "; each title is the query for its own text"))  # fmt: skip
        parts = _queries_in_column(table, role, left_out)
        about = _QUESTIONS if role == "query" else _TITLES
    grades = sorted({0, 1, *(relevance for *_, relevance in parts.judged["test"])})
    return [(stem, parts, {"title": stem, **about, "relevance_levels": grades})], read_files


def _queries_in_column(table: Table, role: str, left_out: Counter[str]) -> CollectionRows:
    """Return the collection whose queries are the column *role*.

    Texts that differ in blanks, or in case outside of formulas, are one query, unless they have ids that differ.
    """
    documents, doc_of_line = read_documents(table, left_out, titled=role == "query")
    queries, names, problems = _Queries(), UniqueIds(), table.id_problems()
    asked: dict[str, dict[str, str]] = {}  # by folded text and given id, "" for none, the query's id
    for line, cells in table.rows:
        text, doc = table.cell(cells, role), doc_of_line.get(line, "")
        if doc and not text:
            left_out[f"documents without a {role} (no queries)"] += 1
        elif doc:
            given = table.cell(cells, "query_id") if role == "query" else ""
            same = asked.setdefault(builder.fold_prose(text), {})
            known = same.get(given) if given else next(iter(same.values()), None)
            left_out[f"rows whose {role} is that of an earlier row (one query)"] += known is not None
            name = same.setdefault(given, known or names.new(given or f"{doc}-{role}"))
            relevance = _relevance(table, cells, line, problems) if role == "query" else 1
            queries.judge(name, text, doc, relevance, line, problems)
    problems.raise_if_any()
    return queries.collection(documents, left_out, table.path.name, role)


def _answers(content: LatexContent) -> CollectionRows:
    """Return statement to proof; equal proofs are one document, relevant for each of its statements."""
    left_out, proofs = Counter(content.odd), dict[str, list[str]]()
    statements = {group[0].id: group for group in _equal_statements(content)}
    left_out["statements with the text of another one (merged)"] += len(content.statements) - len(statements)
    for name, group in statements.items():
        given = [proof.text for statement in group for proof in statement.proofs]
        left_out["statements without a proof"] += not given
        proofs[name] = [text for text in given if not builder.is_trivial_proof(text)]
        left_out["proofs under six words, or omitted"] += len(given) - len(proofs[name])
    corpus, answers, _ = builder.merge_proofs(proofs, lambda name: _metadata(statements[name][0]), left_out)
    queries = [_query(statements[name][0]) for name in proofs if name in answers]
    pairs = [(name, doc, 1) for name, docs in answers.items() for doc in docs]
    return CollectionRows(corpus, queries, {"test": pairs}, left_out)


def _premises(content: LatexContent) -> CollectionRows:
    """Return statement to the older statements that it and its proofs refer to; equal statements are one document."""
    left_out, queries, pairs = Counter(content.odd), list[Row](), list[Judgement]()
    groups = _equal_statements(content)
    first = {statement: group[0] for group in groups for statement in group}
    left_out["statements with the text of another one (merged)"] += len(content.statements) - len(groups)
    for statement, *equal in groups:
        used: dict[str, None] = {}
        for label, file, line in (place for each in (statement, *equal) for place in _references(each)):
            other = content.labels.find(label, file)
            left_out["references to what is no statement here (sections, equations, other texts)"] += other is None
            if other is None:
                continue
            is_itself, is_later = first[other] is statement, content.is_later(other, file, line)
            left_out["references to the statement itself"] += is_itself
            left_out["references to a later statement"] += is_later and not is_itself
            used |= {} if is_itself or is_later else {first[other].id: None}
        is_query = bool(used) and not is_rarely_proved(statement.kind)
        left_out["statements that refer to no older one (documents, no queries)"] += not used
        left_out["examples, exercises, definitions and the like (documents, no queries)"] += bool(used) > is_query
        queries += [_query(statement)] if is_query else []
        pairs += [(statement.id, name, 1) for name in used if is_query]
    corpus = [
        {"_id": each.id, "title": each.title, "text": each.text, "metadata": _metadata(each)} for each, *_ in groups
    ]
    return CollectionRows(corpus, queries, {"test": pairs}, left_out)


def _equal_statements(content: LatexContent) -> list[list[Statement]]:
    """Return the statements that say the same, as in a book and its slides, in order, the kinds with proofs first."""
    groups: dict[tuple[str, ...], list[Statement]] = {}
    for statement in content.statements:
        named = [
            other.id if (other := content.labels.find(label, statement.file)) else label
            for label in statement.references
        ]
        groups.setdefault((statement.text, *named), []).append(statement)
    return [sorted(group, key=lambda one: is_rarely_proved(one.kind)) for group in groups.values()]


def _references(statement: Statement) -> Iterator[tuple[str, str, int]]:
    """Yield the labels that a statement and its proofs refer to, each with its file and the line of the text."""
    yield from ((label, statement.file, statement.line) for label in statement.references)
    for proof in statement.proofs:
        yield from ((label, proof.stem, proof.line) for label in proof.references)


def _query(statement: Statement) -> Row:
    text = builder.title_before_text(statement.title, statement.text)
    return {"_id": statement.id, "text": text, "metadata": _metadata(statement)}


def _metadata(statement: Statement) -> Row:
    return {key: getattr(statement, key) for key in ("order", "kind", "file", "line", "label")}


def _with_queries(
    path: Path, files: Mapping[str, str], read: ReadTable, left_out: Counter[str]
) -> tuple[CollectionRows, list[Path]]:
    table = read(path, {role: tables.DOCUMENTS[role] for role in ("text", "id", "title")})
    table.require_roles("text", "id")
    # With judgements in a file of their own, a document beside a query says nothing.
    asked = {role: tables.QUERIES[role] for role in ("query_id", "query")} if files["qrels"] else tables.QUERIES
    queries = read(_beside(path, files["queries"]), asked)
    queries.require_roles("query", *(["query_id"] if files["qrels"] else ["doc_id"]))
    judged = read(_beside(path, files["qrels"]), tables.QRELS) if files["qrels"] else None
    if judged:
        judged.require_roles("query_id", "doc_id")
    every = {"documents": table, "queries": queries} | ({"judgements": judged} if judged else {})
    for what, each in every.items():
        say(f"{each.path.name}: {len(each.rows):,} {what}; taken: {each.describe_roles()}")
    documents, _ = read_documents(table, left_out)
    return _queries_in_table(queries, documents, left_out, judged), [each.path for each in every.values()]


def read_documents(
    table: Table, left_out: Counter[str], *, titled: bool = True
) -> tuple[dict[str, Row], dict[int, str]]:
    """Return the documents of a *table* by id, and the id for each line; *titled* False: titles become queries."""
    documents: dict[str, Row] = {}
    doc_of_line: dict[int, str] = {}
    lines: dict[str, int] = {}
    problems = table.id_problems()
    for number, (line, cells) in enumerate(table.rows, 1):
        text, title = table.cell(cells, "text"), table.cell(cells, "title") if titled else ""
        given = table.cell(cells, "id") if "id" in table.roles else f"row-{number}"
        name = "_".join(given.split())
        row = {"_id": name, "title": title, "text": text, "metadata": {"line": line}}
        if not text:
            left_out["rows without a text"] += 1
        elif not name:
            problems.note(
                line, f"no id in the column '{table.roles['id']}'; give it one, or say --set id=- to number the rows"
            )
        elif name in documents and (documents[name]["text"], documents[name]["title"]) != (text, title):
            problems.note(line, f"the id '{name}' again, with another text; first on line {lines[name]}; give each "
                                "document an id of its own")  # fmt: skip
        else:
            left_out["rows that repeat a document (merged)"] += name in documents
            left_out["ids whose blanks became '_'"] += name != given
            documents.setdefault(name, row)
            doc_of_line[line] = name
            lines.setdefault(name, line)
    problems.raise_if_any()
    return documents, doc_of_line


def _queries_in_table(
    table: Table, documents: Mapping[str, Row], left_out: Counter[str], judged: Table | None
) -> CollectionRows:
    """Return the collection of a *table* of queries, whose documents are named there (between ";") or in *judged*."""
    queries, problems = _Queries(), table.id_problems()
    for number, (line, cells) in enumerate(table.rows, 1):
        text = table.cell(cells, "query")
        name = "_".join(table.cell(cells, "query_id").split()) or f"query-{number}"
        if not text:
            left_out["rows without a query"] += 1
            continue
        if queries.texts.setdefault(name, text) != text:
            problems.note(line, f"the query id '{name}' again, with another text; give each query an id of its own")
        if judged is None:
            _judge_documents(queries, name, table, cells, line, documents, problems)
    problems.raise_if_any()
    if judged is not None:
        problems = judged.id_problems()
        for line, cells in judged.rows:
            name = "_".join(judged.cell(cells, "query_id").split())
            if name not in queries.texts:
                problems.note(
                    line, f"judges the query '{name}', which {table.path.name} lacks{suggest(name, queries.texts)}"
                )
            else:
                _judge_documents(queries, name, judged, cells, line, documents, problems)
        problems.raise_if_any()
    return queries.collection(documents, left_out, table.path.name, "query")


def _judge_documents(
    queries: _Queries, name: str, table: Table, cells: Cells, line: int, documents: Mapping[str, Row],
    problems: LineProblems,
) -> None:  # fmt: skip
    given = table.cell(cells, "doc_id")
    whole = "_".join(given.split())
    for doc in [whole] if whole in documents else filter(None, _SEVERAL.split(given)):
        if doc not in documents:
            problems.note(line, f"names the document '{doc}', which is not there{suggest(doc, documents)}")
        else:
            relevance = _relevance(table, cells, line, problems)
            queries.judge(name, queries.texts[name], doc, relevance, line, problems)


class _Queries:
    """The texts of queries by id, and the judgements."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self.judged: dict[tuple[str, str], int] = {}

    def judge(self, name: str, text: str, doc: str, relevance: int, line: int, problems: LineProblems) -> None:
        self.texts.setdefault(name, text)
        if self.judged.setdefault((name, doc), relevance) != relevance:
            problems.note(line, f"judges '{doc}' for '{name}' a second time, with another relevance; keep one")

    def collection(self, documents: Mapping[str, Row], left_out: Counter[str], file: str, role: str) -> CollectionRows:
        judged = {name for name, _ in self.judged}
        left_out["queries without a judgement"] += len(self.texts.keys() - judged)
        if not any(relevance > 0 for relevance in self.judged.values()):
            raise MirblabError(f"{file}: no {role} has a relevant document; judge at least one")
        queries = [{"_id": name, "text": text} for name, text in self.texts.items() if name in judged]
        pairs = [(*pair, relevance) for pair, relevance in self.judged.items()]
        return CollectionRows(list(documents.values()), queries, {"test": pairs}, left_out)


def _relevance(table: Table, cells: Cells, line: int, problems: LineProblems) -> int:
    given = table.cell(cells, "relevance") if "relevance" in table.roles else "1"
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


def _require_relevance(judged: Table) -> None:
    """Raise MirblabError for judgements without a column of relevance that have a column of numbers instead."""
    unused = [name for name in judged.columns if name not in judged.roles.values()]
    numbers = judged.number_columns()
    if "relevance" not in judged.roles and (found := [name for name in unused if name in numbers]):
        raise MirblabError(
            f"{judged.path.name}: no column looks like the relevance, so that each judgement would count as relevant, "
            f"but '{found[0]}' has numbers; say --set relevance={found[0]}, or --set relevance=- if it is none"
        )


def _beside(path: Path, given: str) -> Path:
    """Return a file given by its path, or by its path from the folder of *path*."""
    for file in (paths.expand_home(given), path.parent / given):
        if os.path.isfile(file):
            return file
    raise MirblabError(f"no file '{given}', neither here nor beside {path.name}; give its whole path")


def _opened(origin: str | Path | None) -> AbstractContextManager[Origin]:
    if origin is None:
        raise MirblabError(f"say where your files are: --from, with {_WANTED}")
    path = paths.expand_home(origin)
    if path.is_dir() or release.is_remote(str(origin)) or re.search(r"\.(tar|tgz|zip|tar\.\w+)$", path.name.lower()):
        return release.open_origin(path if path.exists() else str(origin), _SOURCE)
    if not path.is_file():
        raise MirblabError(f"no file or folder '{origin}'; looked in {Path.cwd()}; give the whole path to {_WANTED}")
    if not path.name.lower().endswith((*SUFFIXES, ".tex")):
        tables.decode_file(path)  # raises an error that names a spreadsheet's own format
        raise MirblabError(f"{path.name} is not {_WANTED}; give it the right ending if it is one")
    return nullcontext(Origin(path, _SOURCE, "", path.name))


def _files(opened: Origin, encoding: str) -> dict[str, Path] | Path:
    if opened.folder.is_file():
        is_latex = opened.folder.suffix.lower() == ".tex"
        return document_files(opened.folder, encoding) if is_latex else opened.folder
    listed = release.list_files(opened.folder)
    files = {name: listed[name] for name in sorted(listed, key=PurePosixPath)}
    if any(name.lower().endswith(".tex") for name in files):
        return {name: path for name, path in files.items() if name.lower().endswith((".tex", *DEFINITIONS))}
    if any(name.startswith("corpus.jsonl") for name in files) and any(name.startswith("queries") for name in files):
        raise MirblabError(
            f"{opened.shown} is a collection already; run: mirblab add FOLDER, then open 11_main_table with it"
        )
    table_files = [path for name, path in files.items() if name.lower().endswith(SUFFIXES)]
    if len(table_files) == 1:
        return table_files[0]
    what = "several tables; give the one with the documents itself" if table_files else f"neither; give {_WANTED}"
    raise MirblabError(
        f"{opened.shown}: looked for .tex files, or one table, and found {what}; it holds {first_names(files, 8)}"
    )


def _stem(shown: str) -> str:
    """Return a collection's name from that of its origin: `my-thesis` for `My Thesis.tar.gz`."""
    plain = re.sub(r"(\.(csv|tsv|tab|jsonl|ndjson|tex|tar|gz|tgz|bz2|xz|zip|git))+$", "", shown.rstrip("/").lower())
    return re.sub(r"[^a-z0-9]+", "-", plain.rpartition("/")[2]).strip("-") or "own"
