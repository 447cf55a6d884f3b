"""deposit: an import on disk: written whole, never over another, and never twice."""

from __future__ import annotations

import csv
import hashlib
import json
import shutil
from dataclasses import asdict, replace
from pathlib import Path

from mirblab import damage, import_record, mteb_json, partials, paths, results
from mirblab.errors import MirblabError
from mirblab.foreign import Found
from mirblab.import_record import Record

_FACTS = ("kind", "sha256", "origin", "systems", "collections", "measures", "candidates_only")


def same(record: Record, found: Found | None) -> Record | None:
    """Return the earlier import of the same, or None; MirblabError when the name is that of another one."""
    other = next((other for other in results.records() if other.name.casefold() == record.name.casefold()), None)
    if other is None:
        return None
    differs = [name for name in _FACTS if getattr(other, name) != getattr(record, name)]
    if not differs and found is not None and _stored(other) != {key: value for key, (value, _) in found.rows.items()}:
        differs = ["values"]  # the same file, read otherwise: as percent
    if differs:
        raise MirblabError(
            f"'{record.name}' was imported on {other.date} from {other.file} and differs in {', '.join(differs)}; "
            f"give another --name, or remove {other.folder} first"
        )
    return other


def _stored(record: Record) -> dict[tuple[str, ...], float]:
    rows = results.read_values(record)[results.COLUMNS].itertuples(index=False, name=None)
    return {row[:4]: row[4] for row in rows}


def check_free(record: Record, found: Found | None) -> None:
    """Raise MirblabError when a run or a value of the same system is there under another name."""
    for other in results.records():
        both = set(record.systems) & set(other.systems) and set(record.collections) & set(other.collections)
        if not both or other.kind != record.kind:
            continue
        if found is None:
            what = f"a run of '{record.systems[0]}' on {record.collections[0]}"
        else:
            key = next((key for key in _stored(other) if key in found.rows), None)
            what = "" if key is None else f"{key[2]} of '{key[0]}' on {key[1]}"
        if what:
            raise MirblabError(f"{what} was imported already, as '{other.name}'; remove {other.folder}, or give "
                               "another --system")  # fmt: skip


def set_aside_damaged(record: Record) -> None:
    """Set aside an import of the record's name that is damaged, with a warning, so that it can be taken in anew."""
    if not record.folder.exists():
        return
    try:
        earlier = import_record.read(record.folder / import_record.RECORD)
        (earlier.run_file if earlier.kind == "run" else earlier.values_file)()
    except (MirblabError, FileNotFoundError) as error:
        damage.set_aside(record.folder, str(error), "it is taken in anew")


def write(source: Path, record: Record, found: Found | None) -> Record:
    """Write the folder of an import: the given files, the values, the record, which is returned with its checksums.

    It appears whole or not at all. MirblabError when the given files change meanwhile.
    """
    beside = partials.beside(record.folder)
    with paths.writing(record.folder):
        try:
            for path in files(source):
                target = beside / import_record.GIVEN / record.file / path.relative_to(source)  # "." for a file
                paths.make_folder(target.parent)
                with paths.writing(target, path.stat().st_size):
                    shutil.copyfile(path, target)
            if digest(beside / import_record.GIVEN / record.file) != record.sha256:
                raise MirblabError(f"{source} changed while it was read; import it again when it is whole")
            if found is not None:
                record = replace(record, values_sha256=_write_values(beside / import_record.VALUES, found))
            record = record.sealed()
            with paths.open_to_write(beside / import_record.RECORD, "w") as file:
                file.write(json.dumps(asdict(record), indent=2, ensure_ascii=False) + "\n")
            paths.flush_tree(beside)
            beside.rename(record.folder)
            paths.flush_folder(results.folder())
        finally:
            shutil.rmtree(beside, ignore_errors=True)
    return record


def _write_values(path: Path, found: Found) -> str:
    """Write values as CSV and return the sha256 of the file."""
    with paths.open_to_write(path, "w") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([results.COLUMNS, *((*key, repr(value)) for key, (value, _) in found.rows.items())])
    return import_record.sha256(path)


def digest(source: Path) -> str:
    """Return the sha256 of a file, or, of a folder, that of names and contents of what is read of it."""
    if source.is_file():
        return import_record.sha256(source)
    lines = [f"{path.relative_to(source).as_posix()}\t{digest(path)}\n" for path in files(source)]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def files(source: Path) -> list[Path]:
    """Return the files of an import: the one given, or those of a folder of results that are read."""
    if source.is_file():
        return [source]
    return [path for path in sorted(source.rglob("*.json")) if path.name == mteb_json.META or mteb_json.is_result(path)]
