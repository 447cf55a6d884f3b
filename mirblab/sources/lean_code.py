"""lean_code: Lean source without comments, docstrings, attributes and proofs."""

from __future__ import annotations

import re
from collections.abc import Iterator

_TOKEN = re.compile(r"""'\\?"'|"(?:\\.|[^"\\])*"|/-|--[^\n]*""", re.DOTALL)
_INK = re.compile(r"[^\n]")
_IS_THEOREM = re.compile(r"(?:(?:private|protected|nonrec|noncomputable|scoped|local|public)\s+)*(?:theorem|lemma)\b")
_IN_STATEMENT = re.compile(
    r"""'\\?"'|"(?:\\.|[^"\\])*"|(?<![\w.'])(?:let|letI|have|haveI|where)(?![\w'])|:=|[(\[{⟨⦃]|[)\]}⟩⦄]|\n\s*\|[^|\n]*=>""",
    re.DOTALL,
)


def without_comments(code: str) -> str:
    """Return Lean source without line comments, block comments (they nest) and docstrings; texts in quotes stay.

    >>> without_comments('def f := "a -- b" /- c /- d -/ e -/ -- g')
    'def f := "a -- b"'
    """
    kept = (code[start:end] for kind, start, end in pieces(code) if kind != "comment")
    lines = (line.rstrip() for line in "".join(kept).split("\n"))
    return "\n".join(line for line in lines if line).strip()


def pieces(code: str) -> Iterator[tuple[str, int, int]]:
    """Yield what Lean source consists of, in order: the kind (code, text in quotes, or comment) and its place.

    >>> list(pieces('f "--" /-- g -/'))
    [('code', 0, 2), ('text', 2, 6), ('code', 6, 7), ('comment', 7, 15)]
    """
    at = 0
    while token := _TOKEN.search(code, at):
        begin, end, text = token.start(), token.end(), token.group()
        if begin > at:
            yield "code", at, begin
        at = _comment_end(code, end) if text == "/-" else end
        yield "text" if text[0] in "'\"" else "comment", begin, at
    if at < len(code):
        yield "code", at, len(code)


def blanked(code: str) -> str:
    """Return Lean source, as long as it was, with blanks for comments and for what stands in quotes.

    >>> blanked('f "--" -- g')
    'f "  "     '
    """
    parts = []
    for kind, start, end in pieces(code):
        part = code[start:end]
        if kind == "text":
            part = part[0] + _INK.sub(" ", part[1:-1]) + part[-1]
        parts.append(_INK.sub(" ", part) if kind == "comment" else part)
    return "".join(parts)


def _comment_end(code: str, at: int) -> int:
    """Return where the block comment ends that is open at *at*; quotes in it open nothing."""
    depth = 1
    for token in re.compile(r"/-|-/").finditer(code, at):
        depth += 1 if token.group() == "/-" else -1
        if depth == 0:
            return token.end()
    return len(code)


def without_attributes(code: str) -> str:
    """Return a declaration without the attributes before it, `@[simp, to_additive "a text"]`.

    >>> without_attributes('@[simp, to_additive (attr := simp) "x ] y"] theorem a : b')
    'theorem a : b'
    """
    while code.startswith("@["):
        depth, end = 0, len(code)
        for token in re.finditer(r'"(?:\\.|[^"\\])*"|[\[\]]', code, re.DOTALL):
            depth += {"[": 1, "]": -1}.get(token.group(), 0)
            if depth == 0 and token.group() == "]":
                end = token.end()
                break
        code = code[end:].lstrip()
    return code


def statement(code: str) -> str:
    """Return a declaration without comments, docstrings and attributes, and a theorem or lemma without its proof.

    What a definition, structure or instance says is in its body, which stays. A proof begins at the first `:=` that
    stands in no bracket and belongs to no `let`, at `where`, or at the first case `| pattern =>` of its own line.

    >>> statement("/-- Doc. -/ @[simp] theorem a (n : Nat := 0) : n = n := by\\n  rfl -- done")
    'theorem a (n : Nat := 0) : n = n'
    >>> statement("def two : Nat := 1 + 1")
    'def two : Nat := 1 + 1'
    """
    code = without_attributes(without_comments(code))
    if not _IS_THEOREM.match(code):
        return code
    depth, bindings = 0, 0
    for token in _IN_STATEMENT.finditer(code):
        text = token.group()
        if text[0] in "([{⟨⦃)]}⟩⦄":
            depth += 1 if text in "([{⟨⦃" else -1
        elif depth == 0 and text[0] in "lh":
            bindings += 1
        elif depth == 0 and (text in (":=", "where") or text[0] == "\n"):
            if text == ":=" and bindings:
                bindings -= 1
            else:
                return code[: token.start()].rstrip()
    return code
