"""mutations: a sound input damaged in the ways in which files are damaged, and in ways that a format invites."""

from __future__ import annotations

import random

from readers import Reader


def mutant(reader: Reader, seed: int) -> bytes:
    """Return one of the reader's sound inputs after one to four random changes; the same seed gives the same bytes."""
    chance = random.Random(seed)
    content = chance.choice(reader.valid)
    for _ in range(chance.choice((1, 1, 1, 2, 4))):
        content = chance.choice(_CHANGES)(content, reader, chance)
    return content


def _place(content: bytes, chance: random.Random) -> int:
    return chance.randrange(len(content) + 1)


def _part(content: bytes, chance: random.Random) -> tuple[int, int]:
    start = _place(content, chance)
    return start, min(len(content), start + chance.choice((1, 2, 8, 40, 300)))


def _flip(content: bytes, _: Reader, chance: random.Random) -> bytes:
    at = _place(content, chance)
    return (
        content[:at] + bytes([content[at] ^ 1 << chance.randrange(8)]) + content[at + 1 :] if at < len(content) else b""
    )


def _change(content: bytes, _: Reader, chance: random.Random) -> bytes:
    at = _place(content, chance)
    return content[:at] + bytes([chance.randrange(256)]) + content[at + 1 :]


def _insert(content: bytes, _: Reader, chance: random.Random) -> bytes:
    at = _place(content, chance)
    return content[:at] + chance.randbytes(chance.choice((1, 1, 3))) + content[at:]


def _delete(content: bytes, _: Reader, chance: random.Random) -> bytes:
    start, end = _part(content, chance)
    return content[:start] + content[end:]


def _truncate(content: bytes, _: Reader, chance: random.Random) -> bytes:
    return content[: _place(content, chance)]


def _double(content: bytes, _: Reader, chance: random.Random) -> bytes:
    start, end = _part(content, chance)
    at = _place(content, chance)
    return content[:at] + content[start:end] * chance.choice((1, 1, 2, 50)) + content[at:]


def _line(content: bytes, _: Reader, chance: random.Random) -> bytes:
    """Leave a line out, double it, or put it elsewhere."""
    rows = content.splitlines(keepends=True) or [b""]
    row = rows.pop(chance.randrange(len(rows)))
    for _ in range(chance.randrange(3)):
        rows.insert(chance.randrange(len(rows) + 1), row)
    return b"".join(rows)


def _splice(content: bytes, reader: Reader, chance: random.Random) -> bytes:
    """Put a piece of the format somewhere, often in the place of another."""
    piece = chance.choice(reader.tokens or (b"\x00", b"\xff" * 8))
    start, end = _part(content, chance) if chance.random() < 0.3 else (_place(content, chance),) * 2
    return content[:start] + piece + content[end:]


def _exchange(content: bytes, reader: Reader, chance: random.Random) -> bytes:
    """Put a piece of the format in the place of another piece of the format."""
    there = [piece for piece in reader.tokens if piece in content]
    if not there:
        return _splice(content, reader, chance)
    old = chance.choice(there)
    parts = content.split(old)
    at = chance.randrange(1, len(parts))
    return old.join(parts[:at]) + chance.choice(reader.tokens) + old.join(parts[at:])


def _nest(content: bytes, reader: Reader, chance: random.Random) -> bytes:
    """Repeat a piece of the format many times."""
    at = _place(content, chance)
    piece = chance.choice(reader.tokens or (b"\x00",))
    return content[:at] + piece * min(chance.choice((20, 300, 3000)), 60_000 // len(piece) or 1) + content[at:]


_CHANGES = (_flip, _change, _insert, _delete, _truncate, _double, _line, _splice, _splice, _exchange, _exchange, _nest)
