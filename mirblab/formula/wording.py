"""wording: fonts, names of several letters, and text inside a formula."""

from __future__ import annotations

from mirblab.formula.reader import Line, Reader
from mirblab.formula.symbols import COMMANDS, FONT_COMMANDS, LETTERS, PLAIN, STYLED

# Old switches of fonts hold until the end of their group when no brace follows.
_SWITCHES = frozenset(rf"\{name}" for name in "bf rm it sf tt cal sl em mit scr frak boldmath rmfamily".split())


def words(reader: Reader, line: Line, token: str) -> None:
    r"""Put the text of `\text{...}` or the name of `\operatorname{...}`, which come as one token."""
    command, _, inner = token.partition("{")
    said = " ".join(inner[:-1].replace("~", " ").split())
    if command.startswith(r"\operatorname"):
        name = said.replace(" ", "")
        reader.put(line, COMMANDS.get("\\" + name) or "V!" + name, reader.spans[reader.i - 1])
    elif said:
        reader.put(line, "T!" + said, reader.spans[reader.i - 1])


def text(reader: Reader, line: Line, token: str) -> None:
    r"""Read a `\text{...}` that holds dollars, commands or braces."""
    if reader.tokens[reader.i] == "{":
        reader.i += 1
        line.groups.append((len(line.nodes), line.font, line.plain))
        line.font, line.plain = "text", PLAIN
        _stretch(reader, line)


def dollar(reader: Reader, line: Line, token: str) -> None:
    """Go back from mathematics to the text around it; elsewhere a dollar says nothing."""
    if line.font == "text" and line.groups:
        _stretch(reader, line)


def _stretch(reader: Reader, line: Line) -> None:
    """Put the words up to the next dollar or to the end of the text."""
    tokens, first, level = reader.tokens, reader.i, 0
    while tokens[reader.i] not in ("", "$") and (level or tokens[reader.i] != "}"):
        level += (tokens[reader.i] == "{") - (tokens[reader.i] == "}")
        reader.i += 1
    if reader.i > first:
        start, end = reader.spans[first][0], reader.spans[reader.i - 1][1]
        found = reader.source[start:end] if start < end else " ".join(tokens[first : reader.i])
        said = " ".join(found.replace("{", "").replace("}", "").replace("~", " ").split())
        if said:
            reader.put(line, "T!" + said, (start, end))
    if tokens[reader.i] == "$":
        reader.i += 1


def font(reader: Reader, line: Line, token: str) -> None:
    """Change the font of the next argument, or of the rest of the group after an old switch."""
    name, following = FONT_COMMANDS[token], reader.tokens[reader.i]
    if following == "{":
        reader.i += 1
        line.groups.append((len(line.nodes), line.font, line.plain))
        line.font, line.plain = name, STYLED[name]
    elif token in _SWITCHES:
        line.font, line.plain = name, STYLED[name]
    else:
        label = STYLED[name].get(following) or LETTERS.get(name, {}).get(following)
        if label is not None:
            reader.i += 1
            reader.put(line, label, reader.spans[reader.i - 1])


def letter(reader: Reader, line: Line, token: str) -> None:
    """Put a letter in a font in which neighbouring letters are one name."""
    nodes, label, (start, end) = line.nodes, LETTERS[line.font][token], reader.spans[reader.i - 1]
    begin = line.groups[-1][0] if line.groups else 0
    before = reader.tokens[reader.i - 2] if reader.i > 1 else ""
    if len(nodes) > begin and nodes[-1] == len(reader.labels) - 1 and before in LETTERS["rm"]:
        reader.labels[nodes[-1]] += label[2:]
        reader.where[nodes[-1]] = (reader.where[nodes[-1]][0], end)
    else:
        reader.put(line, label, (start, end))


def wildcard(reader: Reader, line: Line, token: str) -> None:
    r"""Put the query variable of `\qvar{x}` or `\qvar x` (NTCIR), of one or more letters."""
    tokens, start, name = reader.tokens, reader.i - 1, ""
    if tokens[reader.i] == "{":
        reader.i += 1
        while tokens[reader.i] not in ("}", ""):
            name += tokens[reader.i].lstrip("\\")
            reader.i += 1
        reader.i += tokens[reader.i] == "}"
    elif tokens[reader.i] not in ("", "}", "&"):
        name = tokens[reader.i].lstrip("\\")
        reader.i += 1
    reader.put(line, "?" + name, (reader.spans[start][0], reader.spans[reader.i - 1][1]))
