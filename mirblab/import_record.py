"""import_record: what is known of one import, kept in record.json beside it, and checked whenever it is read."""

from __future__ import annotations

import hashlib
import json
import shlex
from dataclasses import MISSING, asdict, dataclass, fields, replace
from pathlib import Path

from mirblab import damage, json_text, paths
from mirblab.errors import MirblabError

RECORD, VALUES, GIVEN = "record.json", "values.csv", "given"


@dataclass(frozen=True)
class Record:
    """What is known of one import: the file it came from, who measured, and what is in it.

    `kind` is "run" or "values"; `file` is the given path's own name, `sha256` that of its content, `date` the day
    of the import; `candidates_only`: documents that are no candidates are cut from the run. `n_rows` counts the rows
    of a run, `n_unknown` those of its collection's queries whose document the collection lacks; `values_sha256` is
    that of the stored values, and `seal` a checksum over all the rest.
    """

    name: str
    kind: str
    file: str
    sha256: str
    date: str
    origin: str
    systems: list[str]
    collections: list[str]
    measures: list[str]
    candidates_only: bool = False
    n_rows: int = 0
    n_unknown: int = 0
    values_sha256: str = ""
    seal: str = ""

    @property
    def folder(self) -> Path:
        """Return where the import lies."""
        return folder() / self.name

    @property
    def command(self) -> str:
        """Return the command that takes the import in anew, given the file that it came from."""
        told = {"--origin": self.origin, "--name": self.name}
        if self.kind == "run":
            told = {"--system": self.systems[0], "--collection": self.collections[0]} | told
        words = [word for option, value in told.items() for word in (option, value)]
        cut = ["--candidates-only"] if self.candidates_only else []
        return shlex.join(["mirblab", "import-results", self.file, *words, *cut])

    def sealed(self) -> Record:
        """Return the record with its checksum."""
        content = json.dumps(asdict(replace(self, seal="")), sort_keys=True)
        return replace(self, seal=hashlib.blake2b(content.encode(), digest_size=16).hexdigest())

    def run_file(self) -> Path:
        """Return the copy of the run that was given; MirblabError when it is not what was imported."""
        return self._checked(self.folder / GIVEN / self.file, self.sha256)

    def values_file(self) -> Path:
        """Return the file of the stored values; MirblabError when it is not what was imported."""
        return self._checked(self.folder / VALUES, self.values_sha256)

    def _checked(self, path: Path, expected: str) -> Path:
        found = sha256(path) if path.is_file() else "missing"
        if found != expected and (expected or found == "missing"):  # imports of older versions know no values_sha256
            raise MirblabError(
                f"{path} is not what was imported on {self.date}: its sha256 is {found}, that of the import was "
                f"{expected or 'not kept'}; take the original in anew: {self.command}"
            )
        return path


def folder() -> Path:
    """Return the folder of everything imported: `<home>/results`."""
    return paths.home() / "results"


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read(path: Path) -> Record:
    """Return the record in a file; MirblabError with file and line, and what to do, for one that is damaged."""
    again = f"take the original in anew: mirblab import-results FILE --name {shlex.quote(path.parent.name)}"
    try:
        found = json_text.read(path)
    except MirblabError as error:
        raise MirblabError(f"{error}; {again}") from error
    wrong = _flaw(found, path.parent.name)
    if wrong:
        raise MirblabError(f"{path} is no record of an import: {wrong}; {again}")
    return Record(**found)


def verify(folder: Path) -> list[str]:
    """Compare the imports in *folder* with their records; return a line for each that differs, and for strangers."""
    wrong = []
    for path in damage.sound(folder):
        try:
            record = read(path / RECORD) if path.is_dir() else None
            if record is None:
                wrong.append(damage.stranger(path))
            elif record.kind == "run":
                record.run_file()
            else:
                record.values_file()
        except (MirblabError, OSError) as error:
            wrong.append(str(error))
    return wrong


def _flaw(found: object, name: str) -> str:
    """Return what is wrong with the content of a record, or an empty string."""
    if not isinstance(found, dict):
        return f"expected a JSON object, found {type(found).__name__}"
    kinds = {"list[str]": list, "bool": bool, "int": int, "str": str}
    for one in fields(Record):
        if one.name not in found and one.default is MISSING:
            return f"it has no '{one.name}'"
        value, kind = found.get(one.name, one.default), kinds[str(one.type)]
        if type(value) is not kind or (kind is list and not (value and all(type(text) is str for text in value))):
            if one.name == "measures" and value == []:  # of a run
                continue
            return f"'{one.name}' must be {one.type}, found {json.dumps(value, default=str)[:60]}"
    more = sorted(found.keys() - {one.name for one in fields(Record)})
    if more:
        return f"it has the unknown key '{more[0]}'"
    if found["name"] != name or found["kind"] not in ("run", "values") or Path(found["file"]).name != found["file"]:
        return "its name, kind or file is another one"
    record = Record(**found)
    return "it was changed after the import" if record.seal and record.sealed() != record else ""
