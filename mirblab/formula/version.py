"""version: a hash of the code that turns a formula into tokens, so that an index is never read by other code."""

from __future__ import annotations

import hashlib
import re
from functools import lru_cache
from pathlib import Path

_IMPORT = re.compile(r"^\s*from mirblab\.formula(?:\.(\w+) import| import ([\w, ]+))", re.MULTILINE)


@lru_cache
def code_hash(*modules: str) -> str:
    """Return the hash of the named modules of this package and of all that they import from it, 16 digits.

    Without names those that parse and that make tokens.

    >>> len(code_hash()), code_hash("tree") == code_hash("tokens")
    (16, False)
    """
    home, waiting, seen = Path(__file__).parent, list(modules or ("latex", "operators", "tokens")), {}
    while waiting:
        name = waiting.pop()
        path = home / f"{name}.py"
        if name in seen or not path.is_file():
            continue
        seen[name] = path.read_text("utf-8")
        for one, several in _IMPORT.findall(seen[name]):
            waiting += [one] if one else re.findall(r"\w+", several)
    text = "\0".join(f"{name}\0{seen[name]}" for name in sorted(seen))
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
