"""Numbers with their nouns, in the singular or plural."""

from __future__ import annotations


def counted(number: int, one: str, several: str = "") -> str:
    """Return a number, thousands separated, and the words for *one* thing or for *several* ("": with -s or -ies).

    >>> counted(1, "query"), counted(2000, "query"), counted(0, "row is", "rows are")
    ('1 query', '2,000 queries', '0 rows are')
    """
    if number == 1:
        return f"1 {one}"
    plural = f"{one[:-1]}ies" if one.endswith("y") else f"{one}s"
    return f"{number:,} {several or plural}"
