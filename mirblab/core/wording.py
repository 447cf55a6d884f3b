"""Numbers with their nouns, names in a row, and long words cut, for messages."""

from __future__ import annotations

from collections.abc import Iterable


def counted(number: int, one: str, several: str = "") -> str:
    """Return a number, thousands separated, and the words for *one* thing or for *several* ("": with -s or -ies).

    >>> counted(1, "query"), counted(2000, "query"), counted(0, "row is", "rows are")
    ('1 query', '2,000 queries', '0 rows are')
    """
    if number == 1:
        return f"1 {one}"
    plural = f"{one[:-1]}ies" if one.endswith("y") else f"{one}s"
    return f"{number:,} {several or plural}"


def cut_long(text: str, longest: int) -> str:
    """Return a text of at most *longest* characters as it is, and of a longer one its beginning.

    >>> cut_long("short", 5), cut_long("too long", 5)
    ('short', 'too l …')
    """
    return text if len(text) <= longest else f"{text[:longest]} …"


def shorten_label(label: str, longest: int) -> str:
    """Return a label of at most *longest* characters, ending in "…" if it was cut.

    >>> shorten_label("bezout", 6), shorten_label("pythagoras", 6)
    ('bezout', 'pytha…')
    """
    return label if len(label) <= longest else f"{label[: longest - 1]}…"


def first_names(names: Iterable[str], n: int, none: str = "nothing") -> str:
    """Return the first *n* names with commas between, and how many more there are; *none* if there are none.

    >>> first_names(["a", "b", "c"], 2), first_names([], 2)
    ('a, b, and 1 more', 'nothing')
    """
    names = list(names)
    more = f", and {len(names) - n:,} more" if len(names) > n else ""
    return (", ".join(names[:n]) or none) + more
