"""own: a folder of LaTeX, or a table of texts, to collections that every command and notebook takes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from mirblab import paths
from mirblab.card import raw
from mirblab.errors import MirblabError
from mirblab.sources import mini, own_table, own_tasks, release, shape
from mirblab.sources import origin as origins
from mirblab.sources.origin import Origin, together

_WANTED = "a folder of .tex files, one .tex file, or a table (.csv, .tsv, .jsonl)"
_SOURCE = "own files"
_UNSTATED = "not stated"


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
        stem = paths.clean_name(name or _stem(found.shown))
        chosen = _files(found)
        if isinstance(chosen, dict):
            _refuse_for_latex({**columns, **files, "delimiter": delimiter})
            made, read = own_tasks.of_latex(stem, chosen, encoding), list(chosen.values())
        else:
            made, read = own_tasks.of_table(stem, chosen, columns, files, encoding, delimiter)
        for one in made:
            _refuse_taken(Path(out) / one.name)
        told = {key: value for key, value in {"name": name, **given}.items() if value}
        told |= {key: Path(value).name for key, value in files.items() if value}
        told |= {"licence": licence} if licence != _UNSTATED else {}
        revision = release.revision(read)
        with together(Path(out), tuple(one.name for one in made)) as folders:
            for folder, one in zip(folders, made, strict=True):
                shape.save(folder, one.parts, one.about, found, builder="own", revision=revision, licence=licence,
                           options=told)  # fmt: skip
    return [Path(out) / one.name for one in made]


def _opened(origin: str | Path | None) -> AbstractContextManager[Origin]:
    """Return what yields the origin: a file alone, or what `origins.opened` knows."""
    if origin is None:
        raise MirblabError(f"say where your files are: --from, with {_WANTED}")
    path = paths.given(origin)
    if path.is_dir() or _is_remote(str(origin)) or re.search(r"\.(tar|tgz|tar\.\w+)$", path.name.lower()):
        return origins.opened(path if path.exists() else str(origin), _SOURCE)
    if not path.is_file():
        raise MirblabError(f"no file or folder '{origin}'; looked in {Path.cwd()}; give the whole path to {_WANTED}")
    if not path.name.lower().endswith((*own_table.SUFFIXES, ".tex")):
        own_table.decoded(path)  # a spreadsheet's own format is told as that
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
    tables = [path for name, path in inside.items() if name.lower().endswith(own_table.SUFFIXES)]
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
    is_own = str(raw(target).get("command", "")).startswith("mirblab build own ")
    if target.name in mini.COLLECTIONS or ((target / "card.toml").is_file() and not is_own):
        raise MirblabError(f"'{target.name}' is the name of another collection here; say --set name=ANOTHER")
