"""history: a library at a commit, and what was proved afterwards, from the history of its git repository."""

from __future__ import annotations

import contextlib
import io
import re
import tempfile
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from mirblab.core import paths
from mirblab.core.atomic_files import make_folder
from mirblab.core.errors import MirblabError
from mirblab.core.terminal import say
from mirblab.data import beir
from mirblab.sources.shared import builder, release
from mirblab.sources.shared.builder import CollectionRows, Judgement, Row

Build = Callable[..., list[Path]]
_LEAST_SHARE = 0.1  # of the new statements, with an answer that was there: the proof of a new statement is new, too
_DAY = re.compile(r"\d{4}-\d\d-\d\d")


@dataclass
class State:
    """A commit of a repository, its day, and the collections of its files, with their cards, by name."""

    commit: str
    day: str
    rows: dict[str, CollectionRows]
    cards: dict[str, Row]


def build(
    source: str, build_source: Build, origin: str | Path | None, out: Path, *, at: str, until: str = "", **options: Any
) -> list[Path]:
    """Write the collections of a *source* as of a commit or a day, `<name>-at-<at>`, under *out*; return their folders.

    *origin* is a clone with its history, or the URL of one. *at* is a day, such as 2020-01-01 (the last commit of the
    main line before it), or a commit (its id, a tag, a branch). Without *until* the collections are those that
    *build_source* makes of the files then. With it, also a day or a commit ("HEAD": the newest), documents are those of
    *at*, and test queries are the statements that are new since and use a document of *at*; collections without such
    queries, or with few, are left out. The splits dev and train are of *at*: who learns from them sees nothing later.
    Raises MirblabError for a folder without a history, an unknown commit, and a period without a query.
    """
    out = Path(out)
    with _opened(origin) as (repository, shown, address), tempfile.TemporaryDirectory(prefix="mirblab-") as name:
        commits = [find_commit(repository, commit) for commit in (at, until) if commit]
        states = [_build_state(repository, shown, *commit, Path(name), build_source, options) for commit in commits]
        before = states[0]
        rows = _with_later_queries(*states) if until else before.rows
        label = at[:12] if re.fullmatch(r"[0-9a-f]{12,}", at) else re.sub(r"[^\w.-]+", "-", at)
        days = [word for flag, value in (("--at", at), ("--until", until)) if value for word in (flag, value)]
        command = builder.build_command(source, address, options, *days)
        names = {f"{name}-at-{label}": name for name in rows}
        unasked = [folder for folder, name in names.items() if not rows[name].queries]
        with builder.replace_folders(out, tuple(names), unasked) as folders:
            for folder in folders:
                card = before.cards[names[folder.name]]
                card |= {"name": folder.name, "source": address, "revision": before.commit, "at": at,
                         "command": command}  # fmt: skip
                if until:
                    card |= {"until": until, "revision_until": states[1].commit}
                builder.write_rows(folder, rows[names[folder.name]], card)
    return [out / name for name in names]


def find_commit(repository: Path, at: str) -> tuple[str, str]:
    """Return the id and the day of a commit: the last one of the main line before a day, or the one that *at* names."""
    if _DAY.fullmatch(at):
        try:
            date.fromisoformat(at)
        except ValueError as error:
            raise MirblabError(f"'{at}' is no day; write it as 2020-01-31") from error
        found = release.run_git(repository, "rev-list", "-1", "--first-parent", f"--before={at}T00:00:00Z", "HEAD")
        if not found:
            first = release.run_git(repository, "log", "--first-parent", "--reverse", "--format=%cs").partition("\n")[0]
            raise MirblabError(f"{repository.name} has no commit before {at}: its history here begins on {first}")
    else:
        try:
            found = release.run_git(
                repository, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{at}^{{commit}}"
            )
        except MirblabError as error:
            raise MirblabError(
                f"{repository.name} has no commit '{at}'; give a day as 2020-01-31, or a commit, a tag or a branch "
                "of a clone with its history (a shallow clone has only the newest commit)"
            ) from error
    return found, release.run_git(repository, "show", "--no-patch", "--format=%cs", found)


@contextlib.contextmanager
def _opened(origin: str | Path | None) -> Iterator[tuple[Path, str, str]]:
    """Yield the repository of *origin*, its name, and its address, for a card, without a path of this machine."""
    if not origin:
        raise MirblabError("a day or a commit needs the history: give a clone with it, or its URL, with --from")
    path, text = paths.expand_home(origin), str(origin)
    if path.is_dir():
        release.run_git(path, "rev-parse", "--git-dir")
        yield path, path.resolve().name.removesuffix(".git"), path.resolve().name
    elif release.is_remote(text):
        with tempfile.TemporaryDirectory(prefix="mirblab-") as name:
            public = release.clone(text, Path(name) / "source", whole=True)
            yield Path(name) / "source", public.rstrip("/").rpartition("/")[2].removesuffix(".git"), public
    else:
        raise MirblabError(f"'{text}' is neither a clone nor a git URL; a day or a commit needs the history")


def _build_state(
    repository: Path, name: str, commit: str, day: str, place: Path, build_source: Build, options: Mapping[str, Any]
) -> State:
    """Return the collections of the files of a commit; they are built below *place*."""
    say(f"{name} on {day}, commit {commit[:12]}")
    archive, files, empty = place / f"{commit}.tar", place / commit / name, make_folder(place / "empty")
    # With an empty working tree and no index git reads no .gitattributes, which can leave files out of an archive.
    git_dir, inner = (
        release.run_git(repository, "rev-parse", f"--{what}") for what in ("absolute-git-dir", "show-prefix")
    )
    words = (f"--git-dir={git_dir}", "--work-tree=.", "archive", "--worktree-attributes", "--format=tar")
    release.run_git(empty, *words, f"--output={archive}", f"{commit}:{inner}", GIT_INDEX_FILE=str(place / "index"))
    release.unpack(archive, files)
    with contextlib.redirect_stdout(io.StringIO()):  # what is written in the end is counted
        folders = build_source(files, place / commit / "built", **options)
    cards = {folder.name: tomllib.loads((folder / "card.toml").read_text("utf-8")) for folder in folders}
    rows = {folder.name: _read_rows(folder, cards[folder.name]) for folder in folders}
    return State(commit, day, rows, cards)


def _read_rows(folder: Path, card: Row) -> CollectionRows:
    judged: dict[str, list[Judgement]] = {}
    for path in sorted((folder / "qrels").glob("*.tsv")):
        pairs = (line.split("\t") for line in path.read_text("utf-8").splitlines()[1:])
        judged[path.stem] = [(query, document, int(grade)) for query, document, grade in pairs]
    corpus, queries = (list(beir.read_rows(folder, stem)) for stem in ("corpus", "queries"))
    left_out = Counter(card["counts"]["left_out"])
    return CollectionRows(corpus, queries, judged, left_out, beir.read_group_rows(folder), beir.read_lists(folder))


def _with_later_queries(before: State, after: State) -> dict[str, CollectionRows]:
    """Return the collections of *before* with the new statements of *after* as test queries, if any have an answer.

    A statement is new if neither its id nor its text was there; a renamed document is found by its text.
    """
    found: dict[str, CollectionRows] = {}
    for name in (name for name in before.rows if name in after.rows):
        parts, n_new = _later(before.rows[name], after.rows[name], before.cards[name])
        n_asked = len({query for query, *_ in parts.judged["test"]})
        if n_asked < max(1, _LEAST_SHARE * n_new):
            say(f"{name}: {n_asked:,} of {n_new:,} new statements have an answer that was there; left out")
        # One task may have two collections with different candidate rules, which are the same for what is new.
        elif all(parts.judged["test"] != other.judged["test"] for other in found.values()):
            found[name] = parts
    if not found:
        raise MirblabError(
            f"between {before.day} and {after.day} no collection has enough new statements that use one that was "
            f"there; the collections are {', '.join(before.rows)}; take a longer period"
        )
    return found


def _later(before: CollectionRows, after: CollectionRows, card: Row) -> tuple[CollectionRows, int]:
    """Return *before* with the new statements of *after* as test queries, and how many statements are new.

    Every document is older than a new statement, also by the rule "earlier" of the *card*.
    """
    corpus, left_out = list(before.corpus), Counter[str]()
    fold = _unfolded if card.get("language") else builder.fold_prose
    same_text = Counter(fold(row["text"]) for row in corpus)
    by_text = {text: row["_id"] for row in corpus if same_text[text := fold(row["text"])] == 1}
    texts = {row["_id"]: fold(row["text"]) for row in after.corpus}
    known = {row["_id"] for row in corpus}
    asked, earlier = {row["_id"] for row in before.queries}, {fold(row["text"]) for row in before.queries}
    rules = card.get("candidates", [])
    is_ordered = "earlier" in ([rules] if isinstance(rules, str) else rules)
    latest = 1 + max((_order(row) for row in corpus), default=0)

    def place(name: str) -> str:
        return name if name in known else by_text.get(texts.get(name, ""), "")

    queries: list[Row] = []
    uses: dict[str, list[Judgement]] = {}
    for pairs in after.judged.values():
        for query, document, grade in pairs:
            uses.setdefault(query, []).append((query, document, grade))
    test: list[Judgement] = []
    for row in after.queries:
        if row["_id"] in asked or row["_id"] in known:
            continue
        if (text := fold(row["text"])) in earlier or text in same_text:
            left_out["statements of the period whose text was there under another id (no queries)"] += 1
            continue
        given = dict.fromkeys(uses.get(row["_id"], []))
        renamed = [(query, place(name), grade) for query, name, grade in given]
        kept = list(dict.fromkeys(pair for pair in renamed if pair[1]))
        left_out["answers of the period, not judged"] += len(given) - len(kept)
        left_out["statements of the period without an answer that was there (no queries)"] += not kept
        if kept:
            queries.append(_ordered(row, latest) if is_ordered else row)
            test += kept
    judged = {"test": test, "dev": before.judged.get("dev", []),
              "train": before.judged.get("train", []) + before.judged.get("test", [])}  # fmt: skip
    n_new = len(queries) + left_out["statements of the period without an answer that was there (no queries)"]
    new = dict.fromkeys(row["_id"] for row in queries)
    placed = [(query, group, place(name)) for query, group, name in after.groups if query in new]
    groups = [*before.groups, *dict.fromkeys(row for row in placed if row[2])]
    lists = {stem: dict(listed) for stem, listed in before.lists.items()}
    if "excluded_ids" in after.lists:
        lists.setdefault("excluded_ids", {})
    for stem, listed in lists.items():
        theirs = dict(after.lists.get(stem, {}))
        for query in new:
            if query in theirs or stem == "candidates":  # of which each query needs a list
                names = map(place, theirs[query]) if query in theirs else known
                listed[query] = sorted(set(filter(None, names)))
    return CollectionRows(corpus, [*before.queries, *queries], judged, left_out, groups, lists), n_new


def _unfolded(text: str) -> str:
    return " ".join(text.split())


def _order(row: Row) -> int:
    """Return the place of a row in its library, -1 where it has none."""
    about = row.get("metadata")
    order = row.get("order", about.get("order") if isinstance(about, dict) else None)
    return order if isinstance(order, int) else -1


def _ordered(row: Row, order: int) -> Row:
    """Return a row with another place in its library."""
    about = row.get("metadata")
    if "order" in row or not isinstance(about, dict):
        return row | {"order": order}
    return row | {"metadata": about | {"order": order}}
