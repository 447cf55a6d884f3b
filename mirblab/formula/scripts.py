"""scripts: superscripts, subscripts, primes, and the integral signs whose limits they are."""

from __future__ import annotations

from mirblab.formula.reader import BAR, DOUBTFUL, LEFT, NOTHING, OPENING, Line, Reader
from mirblab.formula.symbols import BIG, CLOSING, INTEGRALS

Span = tuple[int, int]
PRIMES = {r"\prime": 1, "′": 1, "″": 2, "‴": 3, "⁗": 4, "’": 1}


def script(reader: Reader, line: Line, token: str) -> None:
    """Read a superscript or subscript; with nothing before it, it hangs on an empty node."""
    nodes, base = line.nodes, _last(reader, line)
    label, is_upper = reader.labels[base], token in ("^", r"\sp")
    if (base, "o" if is_upper else "u") in reader.braced:  # what an over- or underbrace says
        relation = "o" if is_upper else "u"
        base = reader.wrap(line, len(nodes) - 1, "M!1x1", "w", reader.where[base])
    elif label in BIG or label[1:2] != "!" and label[0] != "?" and label not in CLOSING:
        relation = "o" if is_upper else "u"
    else:
        relation = "a" if is_upper else "b"
    before = reader.ends.get((base, relation))
    if before is not None and reader.labels[before][0] != "′":  # x'^2 is one script in TeX, x^1^2 an error
        reader.problem(f"second {'superscript' if is_upper else 'subscript'} on one symbol", reader.i - 1)
    parent, hang = reader.place(base, relation)
    reader.argument(parent, hang, scripted, (base, relation))


def _last(reader: Reader, line: Line) -> int:
    """Return the node that a script hangs on: the last one, or an empty one where there is nothing to hang on.

    That is so at the beginning of a line, after an opening fence, and after `{}` unless an operand stands before.
    """
    nodes, at = line.nodes, reader.i - 1
    kind = line.fences[-1][1] if line.fences and line.fences[-1][0] == len(nodes) - 1 else NOTHING
    if kind in (BAR, DOUBTFUL):  # it has a script, so it opens nothing
        line.fences.pop()
    if nodes and kind not in (OPENING, LEFT):
        label = reader.labels[nodes[-1]]
        if label[1:2] == "!" or label in CLOSING or at < 2 or reader.tokens[at - 2 : at] != ["{", "}"]:
            return nodes[-1]
    reader.bare.append(reader.put(line, "W!", (reader.spans[at][0],) * 2))
    return nodes[-1]


def scripted(reader: Reader, nodes: list[int], key: tuple[int, str]) -> None:
    """Note where the line of a script ends, for one that comes after it."""
    reader.ends[key] = nodes[-1]


def integral(reader: Reader, line: Line, token: str) -> None:
    """Put an integral sign; with one there can be differentials."""
    reader.has_integral = True
    reader.put(line, INTEGRALS[token], reader.spans[reader.i - 1])


def prime(reader: Reader, line: Line, token: str) -> None:
    """Put primes as one superscript."""
    base, label, span = _last(reader, line), *_primes(reader)
    parent, hang = reader.place(base, "a")
    reader.ends[base, "a"] = reader.add(label, span, parent, hang)


def prime_sign(reader: Reader, line: Line, token: str) -> None:
    r"""Put `\prime` or its character: as a symbol in a superscript, otherwise as a superscript itself."""
    if token == r"\prime" or (line.relation == "a" and not line.nodes):
        reader.put(line, *_primes(reader))
    else:
        prime(reader, line, token)


def _primes(reader: Reader) -> tuple[str, Span]:
    """Return the label and the span of all primes from the token just read on."""
    first = reader.i - 1
    while (token := reader.tokens[reader.i])[:1] == "'" or token in PRIMES:
        reader.i += 1
    count = sum(PRIMES.get(token) or len(token) for token in reader.tokens[first : reader.i])
    return "′" * count, (reader.spans[first][0], reader.spans[reader.i - 1][1])
