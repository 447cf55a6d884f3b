"""metamath: a Metamath database as a collection of premises."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from mirblab.core import paths
from mirblab.core.errors import MirblabError
from mirblab.core.terminal import say
from mirblab.core.text_files import LineProblems, read_lines
from mirblab.core.wording import first_names
from mirblab.sources.shared import builder, release
from mirblab.sources.shared.builder import CollectionRows, Judgement, LibraryStatement, Row
from mirblab.sources.shared.release import Origin

_LONGEST = 12  # letters of a step
_CODE = re.compile(r"[U-Y]*[A-T]")
_CODES = re.compile(r"(?:[U-Y]*[A-T]Z?|\?)*")
PROVABLE = "|-"
_HEADING = re.compile(r"(?:#{8,}|(?:#\*){4,}#?|(?:=-){4,}=?|(?:-\.){4,}-?)")
_DATE = re.compile(r"\[\d{1,2}-\w{3}-\d{2,4}\]")
_DAY = re.compile(r"(\d{1,2})-([A-Z][a-z]{2})-(\d{4})\b")
_CONTRIBUTED = re.compile(rf"\(Contributed by\b[^()]*?{_DAY.pattern}")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
URL = "https://github.com/metamath/set.mm"
LICENCE = "CC0-1.0"
# The databases of that repository which are in the public domain; peano.mm says that it is under the GPL.
PUBLIC = ("set.mm", "iset.mm", "nf.mm", "ql.mm", "hol.mm", "big-unifier.mm", "demo0.mm", "miu.mm")
N_HUBS_SHOWN = 20
_NONE = "no premise that was there at the beginning"
_OLD = re.compile(r"(?:OLD|ALT)[A-Z0-9]*$")
_NOTE = re.compile(
    r"\s*\((?:Contributed|Revised|Proof (?:shortened|modification)|New usage|The proof was shortened|Moved)\b"
    r"[^()]*(?:\([^()]*\)[^()]*)*\)"
)
_LABEL_MARK = re.compile(r"(?:^|(?<=\s))~\s+(?=\S)")
_FORMULA = re.compile(r"`[^`]*`")
_SOURCE = re.compile(r"(?:[A-Z]\w+ )?\S+ (?:\([^)]*\) )?(?:of|in) \[\w+\]|\[\w+\]|pp?\. [\d-]+")


@dataclass(frozen=True)
class ProofLabels:
    """The distinct labels that a proof uses; how many more a compressed proof lists; whether steps are missing."""

    labels: list[str]
    idle: int = 0
    incomplete: bool = False


@dataclass(eq=False, slots=True)
class Assertion:
    """A `$a` or `$p` that begins with `|-`; `text` is `hypothesis & hypothesis => statement`, `order` counts from 0.

    `contributed` is the first day that its comment or a remark below its proof names, None where none does.
    """

    label: str
    kind: str
    text: str
    uses: list[str]
    comment: str
    section: str
    in_mathbox: bool
    order: int
    contributed: date | None = None


@dataclass(frozen=True)
class Period:
    """What is asked: the theorems contributed from the day `at`, on, and before `until` (None: all later ones)."""

    at: date
    until: date | None = None

    def __contains__(self, day: date) -> bool:
        return self.at <= day and (self.until is None or day < self.until)


@dataclass
class Database:
    """The assertions in the order of the file, a hash of the files, and counts of irregularities."""

    assertions: list[Assertion]
    digest: str
    odd: Counter[str]


def build(
    origin: str | Path | None, out: Path, *, seed: int = 0, at: str | date = "", until: str | date = ""
) -> list[Path]:
    """Write metamath-premise and metamath-informal under *out* and return their folders.

    *origin* is a .mm file (or gzipped), a folder, archive or git URL with one, or None for a shallow clone of the
    public set.mm. *seed* draws the test queries. With *at*, a day such as 2014-01-01, the collection is
    metamath-premise-at-2014-01-01 alone: the assertions contributed before that day, and as test queries the theorems
    contributed from it on, before *until* ("": all later ones). Where no comment is a query,
    metamath-informal is not made. Raises MirblabError for other formats and days, and where no proof uses an assertion.
    """
    out, period = Path(out), read_period(at, until)
    suffix = f"-at-{period.at}" if period else ""
    options = {key: value for key, value in {"seed": seed, "at": at, "until": until}.items() if value}
    with _opened(origin) as (source, path):
        database = read_database(path)
        made, content = _collections(database, path.name, period, seed), f"blake2b:{database.digest}"
        is_public = path.name.removesuffix(".gz") in PUBLIC
        origins, licence = release.find_credits(source, LICENCE, is_public=is_public)
        with builder.replace_folders(out, tuple(f"{name}{suffix}" for name in made)) as folders:
            for folder, (name, (rows, more)) in zip(folders, made.items(), strict=True):
                about = builder.read_about(name) | {"content": content, "seed": seed, "database": path.name, **more}
                builder.write_collection(
                    folder, rows, about, origins, builder="metamath", revision=content, licence=licence, options=options
                )
    return [out / f"{name}{suffix}" for name in made]


def _collections(
    database: Database, shown: str, period: Period | None, seed: int
) -> dict[str, tuple[CollectionRows, Row]]:
    """Return the rows of each collection that has a query, and more for its card; *shown* names the database."""
    if not database.assertions:
        raise MirblabError(f"{shown} asserts nothing that begins with '|-'; is it a logic in Metamath?")
    if period:
        return {"metamath-premise": _premises_of(database, period, seed)}
    made = {name: rows_of(database, seed) for name, rows_of in COLLECTIONS.items()}
    asked = {name: (rows, more) for name, (rows, more) in made.items() if any(rows.judged.values())}
    if "metamath-premise" not in asked:
        raise MirblabError(
            f"{shown}: {len(database.assertions):,} assertions that begin with '|-', and no proof uses another one, so "
            "that there is no query; nothing was written"
        )
    if len(asked) < len(made):
        say(f"metamath-informal is not made: no comment in {shown} describes one assertion alone")
    return asked


def find_database(source: str | Path) -> Path:
    """Return a database: a file, the name of one in the data folder, or "mini" for the bundled one; "a|b": the first.

    >>> find_database("set.mm|mini").name
    'mini.mm'
    """
    for name in str(source).split("|"):
        path = paths.bundled_path("data", "mini", "metamath", "mini.mm") if name == "mini" else paths.expand_home(name)
        for place in (path, paths.data() / name):
            if place.is_file():
                return place
    raise MirblabError(f"no database '{source}', neither as a file .mm or .mm.gz nor in {paths.data()}")


def read_period(at: str | date, until: str | date = "") -> Period | None:
    """Return the period of two days in ISO form, None for none; MirblabError for other values.

    >>> read_period("2014-01-01", "2015-01-01")
    Period(at=datetime.date(2014, 1, 1), until=datetime.date(2015, 1, 1))
    """
    try:
        days = [date.fromisoformat(str(day)) if day else None for day in (at, until)]
    except ValueError as error:
        raise MirblabError(f"a day is written 2014-01-01; found at={at!s:.40}, until={until!s:.40}") from error
    if days[0] is None:
        if days[1] is not None:
            raise MirblabError("until needs at, the day from which theorems are asked")
        return None
    if days[1] is not None and days[1] <= days[0]:
        raise MirblabError(f"until must be later than at; found at={at}, until={until}")
    return Period(days[0], days[1])


def read_database(path: Path) -> Database:
    """Read a database, plain or gzipped, and the files that it includes; MirblabError with file and line."""
    tokens = Tokens(path)
    reader = Reader(tokens)
    reader.read()
    return Database(reader.assertions, tokens.digest.hexdigest(), reader.odd)


class Reader:
    """What a database states, read from its tokens; `mirblab.formula.metamath` keeps more of each statement."""

    def __init__(self, tokens: Tokens) -> None:
        self.tokens, self.stream = tokens, tokens.read(tokens.path)
        self.assertions: list[Assertion] = []
        self.odd: Counter[str] = Counter()
        self.codes: dict[str, str] = {}  # label to typecode; "" for hypotheses
        self.floating: list[tuple[str, str]] = []  # label and variable of each $f in force
        self.essential: list[tuple[str, list[str]]] = []  # label and tokens of each $e in force
        self.disjoint: list[list[str]] = []  # variables of each $d in force
        self.scopes: list[tuple[int, int, int]] = []
        self.comment, self.section, self.n_assertions, self.in_mathbox = "", "", 0, False
        self.latest: Assertion | None = None  # the statement above, unless it is none that is kept

    def read(self) -> None:
        """Read all statements; MirblabError with file and line."""
        label = ""
        for token in self.stream:
            if token.startswith("$("):
                self._remark(token[2:].split())
                continue
            if token[0] == "$":
                self._statement(token, label)
                label = self.comment = ""
            elif label:
                raise self._error(f"'{token}' follows the label '{label}'; expected $e, $f, $a or $p")
            else:
                label = token
        if label or self.scopes:
            raise self._error(f"the file ends in the middle of {'a scope' if self.scopes else 'a statement'}")

    def _statement(self, keyword: str, label: str) -> None:
        if label and keyword not in ("$e", "$f", "$a", "$p"):
            raise self._error(f"'{keyword}' after the label '{label}'; expected $e, $f, $a or $p")
        if keyword == "${":
            self.scopes.append((len(self.floating), len(self.essential), len(self.disjoint)))
        elif keyword == "$}" and self.scopes:
            n_floating, n_essential, n_disjoint = self.scopes.pop()
            del self.floating[n_floating:], self.essential[n_essential:], self.disjoint[n_disjoint:]
        elif keyword in ("$c", "$v"):
            self._words()
        elif keyword == "$d":
            self.disjoint.append(self._words())
        elif keyword in ("$e", "$f", "$a", "$p"):
            self.keep(keyword, label, self._words())
        else:
            raise self._error(f"'{keyword}' is not allowed here")

    def _words(self) -> list[str]:
        words: list[str] = []
        for token in self.stream:
            if token == "$.":
                return words
            if token in ("${", "$}", "$c", "$v", "$d", "$e", "$f", "$a", "$p"):
                break
            if not token.startswith("$("):
                words.append(token)
        raise self._error("a statement does not end with '$.'")

    def keep(self, keyword: str, label: str, words: list[str]) -> None:
        """Keep a statement with a label: a hypothesis ($f, $e), an axiom ($a), or a theorem with its proof ($p)."""
        if not label or label in self.codes:
            raise self._error(f"the label '{label}' is taken" if label else f"'{keyword}' has no label")
        if not words:
            raise self._error(f"the statement '{label}' is empty")
        self.codes[label], self.latest = words[0] if keyword in ("$a", "$p") else "", None
        if keyword == "$f":
            self.floating.append((label, words[-1]))
        elif keyword == "$e":
            self.essential.append((label, words))
        else:
            self._assertion(keyword, label, words)

    def _assertion(self, keyword: str, label: str, words: list[str]) -> None:
        order, self.n_assertions = self.n_assertions, self.n_assertions + 1
        statement, proof = words, ProofLabels([])
        if keyword == "$p":
            if "$=" not in words:
                raise self._error(f"the theorem '{label}' has no proof; expected '$='")
            split = words.index("$=")
            statement = words[:split]
            proof = read_proof(words[split + 1 :], self._mandatory(statement), f"{self.tokens.where} ('{label}')")
        if not statement or statement[0] != PROVABLE:
            return
        self.odd["labels that a compressed proof lists and does not use"] += proof.idle
        self.odd["labels in proofs that nothing earlier has"] += sum(name not in self.codes for name in proof.labels)
        self.odd["proofs that lack steps (documents, no queries)"] += proof.incomplete
        hypotheses = " & ".join(" ".join(tokens) for _, tokens in self.essential)
        text = f"{hypotheses} => {' '.join(statement)}" if hypotheses else " ".join(statement)
        kind = "axiom" if keyword == "$a" else "unproved" if proof.incomplete else "theorem"
        uses = [name for name in proof.labels if self.codes.get(name) == PROVABLE and name != label]
        self.latest = Assertion(label, kind, text, uses, self.comment, self.section, self.in_mathbox, order)
        self.latest.contributed = _first_day(_CONTRIBUTED, self.comment)
        self.assertions.append(self.latest)

    def _mandatory(self, statement: list[str]) -> list[str]:
        """Return the labels of the mandatory hypotheses: those of the variables, and the essential ones."""
        symbols = set(statement).union(*(tokens for _, tokens in self.essential))
        floating = [label for label, variable in self.floating if variable in symbols]
        return floating + [label for label, _ in self.essential]

    def _remark(self, words: list[str]) -> None:
        """Keep a comment for the assertion that follows; a heading begins a section."""
        if words and _HEADING.fullmatch(words[0]):
            end = next((place for place, word in enumerate(words[1:], 1) if _HEADING.fullmatch(word)), len(words))
            self.section, self.comment = " ".join(words[1:end]), ""
            self.in_mathbox = self.in_mathbox or "mathbox" in self.section.casefold()
        elif not (len(words) == 1 and _DATE.fullmatch(words[0])):
            self.comment = " ".join(words)
        elif self.latest and (day := _first_day(_DAY, words[0])):
            self.latest.contributed = min(day, self.latest.contributed or day)

    def _error(self, what: str) -> MirblabError:
        return MirblabError(f"{self.tokens.where}: {what}")


def read_proof(proof: Sequence[str], mandatory: Sequence[str], where: str) -> ProofLabels:
    """Return the labels that a proof uses; a compressed one counts the *mandatory* hypotheses before its list.

    Both notations are those of the Metamath book (Megill and Wheeler 2019, section 4.4 and appendix B).
    """
    if not proof:
        raise MirblabError(f"{where}: the proof is empty; an unfinished one is written '?'")
    if proof[0] != "(":
        return ProofLabels([label for label in dict.fromkeys(proof) if label != "?"], incomplete="?" in proof)
    if ")" not in proof:
        raise MirblabError(f"{where}: the list of labels of a compressed proof has no ')'")
    close = list(proof).index(")")
    listed, letters = proof[1:close], "".join(proof[close + 1 :])
    if not _CODES.fullmatch(letters):
        raise MirblabError(
            f"{where}: '{letters[:40]}' is no compressed proof: letters A to Z and '?' only, Z after a step"
        )
    codes = set(_CODE.findall(letters))
    if long := [code for code in codes if len(code) > _LONGEST]:
        raise MirblabError(
            f"{where}: '{long[0][:40]}' is no step of a compressed proof: it has {len(long[0]):,} letters"
        )
    numbers = {decode_step(code) for code in codes}
    first, known = len(mandatory) + 1, len(mandatory) + len(listed)
    if numbers and max(numbers) > known + letters.count("Z"):
        raise MirblabError(f"{where}: a compressed proof of {known} labels names the step {max(numbers)}")
    labels = [label for place, label in enumerate(listed, first) if place in numbers]
    return ProofLabels(list(dict.fromkeys(labels)), len(listed) - len(labels), "?" in letters)


def decode_step(code: str) -> int:
    """Return the number, from 1, that a step of letters U to Y and a last letter A to T encodes.

    >>> [decode_step(code) for code in ("A", "T", "UA", "YT", "UUA")]
    [1, 20, 21, 120, 121]
    """
    high = 0
    for letter in code[:-1]:
        high = 5 * high + ord(letter) - ord("U") + 1
    return 20 * high + ord(code[-1]) - ord("A") + 1


class Tokens:
    """The tokens of a file and of the files that it includes; a comment is one token, which begins with `$(`."""

    def __init__(self, path: Path) -> None:
        self.path, self.root = path, path.parent.resolve()
        self.seen: set[Path] = set()
        self.digest = hashlib.blake2b(digest_size=16)
        self.where = path.name

    def read(self, path: Path) -> Iterator[str]:
        """Yield the tokens of one file; a file that was read before has none, as Metamath defines it."""
        if path.resolve() in self.seen:
            return
        self.seen.add(path.resolve())
        problems, inside = LineProblems(path), list[str]()
        for number, line in read_lines(path, problems):
            self.digest.update(line.encode() + b"\n")
            self.where = f"{path.name}, line {number}"
            for token in line.split():
                if inside:
                    inside.append(token)
                    if token == {"$(": "$)", "$[": "$]"}[inside[0]]:
                        whole, inside = inside, []
                        yield from self._whole(whole)
                        self.where = f"{path.name}, line {number}"
                elif token in ("$(", "$["):
                    inside = [token]
                else:
                    yield token
        problems.raise_if_any()
        if inside:
            raise MirblabError(f"{path.name}: the last '{inside[0]}' does not end")

    def _whole(self, inside: list[str]) -> Iterator[str]:
        if inside[0] == "$(":
            yield " ".join(inside[:-1])
            return
        path = (self.root / " ".join(inside[1:-1])).resolve()
        if not path.is_relative_to(self.root) or not os.path.isfile(path):  # False also for a name that is too long
            raise MirblabError(
                f"{self.where}: includes '{path.name:.100}', which is not in the folder of {self.path.name}; "
                "put it there"
            )
        yield from self.read(path)


@contextlib.contextmanager
def _opened(origin: str | Path | None) -> Iterator[tuple[Origin, Path]]:
    path = None if origin is None else paths.expand_home(origin)
    if path is not None and path.is_file() and path.name.endswith((".mm", ".mm.gz")):
        yield Origin(path, URL, "", path.name), path  # a licence beside it may be that of something else
        return
    with release.open_origin(origin, URL) as source:
        patterns = ("*.mm", "*.mm.gz", "*/*.mm", "*/*.mm.gz")
        databases = [path for pattern in patterns for path in sorted(source.folder.glob(pattern))]
        databases = [path for path in databases if path.name in ("set.mm", "set.mm.gz")] or databases
        if len(databases) != 1:
            names = first_names((path.name for path in databases), 8, "none")
            raise MirblabError(f"looked for set.mm, or one database *.mm, found {names}; name the file with --from")
        yield source, databases[0]


def _premises(database: Database, seed: int) -> tuple[CollectionRows, Row]:
    left_out, statements = Counter(database.odd), list[LibraryStatement]()
    for each in database.assertions:
        uses = [] if each.kind == "unproved" else each.uses
        about = {"kind": each.kind, "section": each.section, "description": clean_comment(each.comment)}
        reason = exclusion_reason(each)
        statements.append(LibraryStatement(each.label, "", each.text, uses, each.order, about, reason))
    rows = builder.premise_collection(statements, seed, left_out)
    return rows, _leave_out_hubs(rows, statements)


def _leave_out_hubs(rows: CollectionRows, statements: list[LibraryStatement]) -> Row:
    """Add the split test_nohub, without what over one percent of the proofs use, and return the card's note on it."""
    hubs = builder.find_hubs(statements)
    rows.judged["test_nohub"] = builder.drop_documents(rows.judged["test"], hubs, rows.left_out)
    share = round(sum(hubs.values()) / max(1, sum(len(item.uses) for item in statements)), 4)
    return {"hubs": {"number": len(hubs), "share": share, "most_used": dict([*hubs.items()][:N_HUBS_SHOWN])}}


def _premises_of(database: Database, period: Period, seed: int) -> tuple[CollectionRows, Row]:
    """Return the database as it was at the beginning of the *period*, and the theorems of the period as queries.

    An assertion without a day, as most axioms, is as old as the oldest theorem that uses it. Statements and proofs are
    those of today: what was changed since has its present form, and what was deleted is missing.
    """
    left_out, days = Counter(database.odd), contribution_days(database)
    known = {label for label, day in days.items() if day < period.at}
    left_out["assertions of which no day is known"] = len(database.assertions) - len(days)
    left_out["assertions of the period or later, not among the documents"] = len(days) - len(known)
    statements = list[LibraryStatement]()
    for each in database.assertions:
        if each.label in known:
            uses = [label for label in each.uses if label in known and each.kind != "unproved"]
            about, reason = _about(each, days), exclusion_reason(each)
            statements.append(LibraryStatement(each.label, "", each.text, uses, each.order, about, reason))
    queries, test = _asked(database, period, days, known, left_out)
    if not test:
        known_days = f"{min(days.values())} to {max(days.values())}" if days else "none"
        raise MirblabError(
            f"no theorem with an earlier premise was contributed from {period.at} on, before "
            f"{period.until or 'today'}; the days known are {known_days}"
        )
    older = builder.premise_collection(statements, seed, left_out)
    judged = {"test": test, "dev": older.judged["dev"], "train": older.judged["train"] + older.judged["test"]}
    rows = CollectionRows(older.corpus, [*older.queries, *queries], judged, left_out)
    return rows, {"at": str(period.at), "until": str(period.until or ""), **_leave_out_hubs(rows, statements)}


def _asked(
    database: Database, period: Period, days: dict[str, date], known: set[str], left_out: Counter[str]
) -> tuple[list[Row], list[Judgement]]:
    """Return the theorems of a *period* as queries, and those of their premises that are *known* at its beginning."""
    queries, judged = list[Row](), list[Judgement]()
    texts = Counter(each.text for each in database.assertions)
    for each in database.assertions:
        if each.kind != "theorem" or each.label not in days or days[each.label] not in period:
            continue
        uses = [label for label in each.uses if label in known]
        reason = exclusion_reason(each) or ("shared text" if texts[each.text] > 1 else "") or ("" if uses else _NONE)
        if reason:
            left_out[f"theorems of the period that are no query: {reason}"] += 1
            continue
        left_out["premises of the period, not judged"] += len(each.uses) - len(uses)
        queries.append({"_id": each.label, "text": each.text, "metadata": {"order": each.order, **_about(each, days)}})
        judged += [(each.label, label, 1) for label in uses]
    return queries, judged


def _about(each: Assertion, days: dict[str, date]) -> Row:
    return {"kind": each.kind, "section": each.section, "contributed": str(days[each.label])}


def contribution_days(database: Database) -> dict[str, date]:
    """Return the day of each assertion; one without a day has that of the oldest theorem that uses it, if any."""
    days = {each.label: each.contributed for each in database.assertions if each.contributed}
    inherited: dict[str, date] = {}
    for each in reversed(database.assertions):
        if day := days.get(each.label) or inherited.get(each.label):
            for label in each.uses:
                if label not in days:
                    inherited[label] = min(day, inherited.get(label, day))
    return days | inherited


def _first_day(pattern: re.Pattern[str], text: str) -> date | None:
    """Return the first day in a text that exists and is not after today."""
    for number, month, year in pattern.findall(text):
        with contextlib.suppress(ValueError):  # no such month or day
            if (day := date(int(year), _MONTHS.index(month) + 1, int(number))) <= date.today():
                return day
    return None


def _informal(database: Database, seed: int) -> tuple[CollectionRows, Row]:
    """Return comment to statement; comments that describe several statements or none are left out."""
    left_out, asked = Counter(database.odd), list[str]()
    comments = {each.label: clean_comment(each.comment) for each in database.assertions}
    repeated, texts = Counter(comments.values()), Counter(each.text for each in database.assertions)
    for each in database.assertions:
        reason = exclusion_reason(each) or _unfit(comments[each.label], each.label)
        reason = reason or ("the comment of another one" if repeated[comments[each.label]] > 1 else "")
        if reason := reason or ("the text of another one" if texts[each.text] > 1 else ""):
            left_out[f"assertions that are no query: {reason}"] += 1
        else:
            asked.append(each.label)
    where = builder.draw_splits(asked, seed)
    judged: dict[str, list[Judgement]] = {split: [] for split in (*builder.SIZES, "train")}
    corpus, queries = list[Row](), list[Row]()
    for each in database.assertions:
        about = {"order": each.order, "kind": each.kind, "section": each.section}
        corpus.append({"_id": each.label, "title": "", "text": each.text, "metadata": about})
        if each.label in where:
            queries.append({"_id": f"{each.label}-comment", "text": comments[each.label], "metadata": about})
            judged[where[each.label]].append((f"{each.label}-comment", each.label, 1))
    return CollectionRows(corpus, queries, judged, left_out), {}


def clean_comment(comment: str) -> str:
    """Return a comment without marks of labels and notes on contributions and revisions."""
    return " ".join(_LABEL_MARK.sub("", _NOTE.sub("", comment)).split())


def exclusion_reason(each: Assertion) -> str:
    """Return why an assertion is no query, "" when it may be one."""
    if each.in_mathbox:
        return "in a mathbox"
    is_old = _OLD.search(each.label) or "obsolete" in each.comment.casefold()
    return "an old or alternative version" if is_old else ""


def _unfit(text: str, label: str) -> str:
    """Return why a comment is no query for its assertion, "" when it is one."""
    if label in {word.strip(".,;:()\"'") for word in text.split()}:
        return "the comment names the assertion itself"
    if text.startswith("Lemma for"):
        return 'the comment begins with "Lemma for"'
    n_words = len(_SOURCE.sub(" ", _FORMULA.sub(" ", text)).split())
    return "" if n_words >= 5 else "the comment has under five words, formulas and sources not counted"


COLLECTIONS = {"metamath-premise": _premises, "metamath-informal": _informal}
