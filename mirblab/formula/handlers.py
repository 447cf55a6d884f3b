"""handlers: which function reads each token that is more than one symbol."""

from __future__ import annotations

import re

from mirblab.formula import environments, fences, scripts, structures, wording
from mirblab.formula.reader import BRACKET, CELL, GROUP, LEFT, REST, SINGLE, Line, Reader
from mirblab.formula.symbols import BARS, CLOSERS, FONT_COMMANDS, INTEGRALS, OPENERS, character

_NO_DIGIT = re.compile(r"[^\w.]+")


def number(reader: Reader, line: Line, token: str) -> None:
    """Put a number without the blanks and marks between its thousands, or three dots as one symbol."""
    label = "V!…" if token[-1] == "." else "N!" + (token if token.isalnum() else _NO_DIGIT.sub("", token))
    reader.put(line, label, reader.spans[reader.i - 1])


def brace(reader: Reader, line: Line, token: str) -> None:
    """Open a group on the line; its nodes are spliced into it."""
    line.groups.append((len(line.nodes), line.font, line.plain))


def unbrace(reader: Reader, line: Line, token: str) -> None:
    """Close a group, or the argument that the brace ends."""
    if line.groups:
        _, line.font, line.plain = line.groups.pop()
    elif line.kind == GROUP:
        fences.settle(reader, line)
        reader.close(line)
    elif line.kind in (REST, SINGLE) or (line.kind == CELL and line.data.is_braced):
        reader.i -= 1
        reader.close(line)
    else:
        reader.problem("closing brace without its partner", reader.i - 1)


def finish(reader: Reader, line: Line, token: str) -> None:
    """End the formula: close whatever is open."""
    reader.i -= 1
    if line.kind in (GROUP, BRACKET) or line.groups:
        reader.problem("brace or bracket not closed", reader.i)
    if any(kind == LEFT for _, kind in line.fences):
        reader.problem(r"\left without its \right", reader.i)
    fences.settle(reader, line)
    reader.close(line)


def skip(reader: Reader, line: Line, token: str) -> None:
    """Pass over a command that changes only the looks."""


def skip_argument(reader: Reader, line: Line, token: str) -> None:
    """Pass over a command and its argument in braces, or one token where a tag has none."""
    environments.option(reader)
    if reader.tokens[reader.i] != "{" and token.startswith(r"\tag"):
        reader.i += reader.tokens[reader.i] not in ("", "}")
    environments.braces(reader)


def skip_arguments(reader: Reader, line: Line, token: str) -> None:
    """Pass over a command and its two arguments in braces."""
    skip_argument(reader, line, token)
    environments.braces(reader)


def skip_length(reader: Reader, line: Line, token: str) -> None:
    """Pass over a command and its length, such as 3pt."""
    if reader.tokens[reader.i] == "-":
        reader.i += 1
    if reader.tokens[reader.i][:1].isdigit() or reader.tokens[reader.i][:1] == ".":
        reader.i += 1
        unit = "".join(reader.tokens[reader.i : reader.i + 2])
        reader.i += 2 * (unit in ("pt", "em", "ex", "mu", "cm", "mm", "in", "pc", "bp", "sp"))


def unknown(reader: Reader, line: Line, token: str) -> None:
    """Put what no table knows: text, a number, a character, or an unknown command as a variable with its name."""
    if token[0] != "\\" or len(token) == 1:
        if token[0] == "'":
            scripts.prime(reader, line, token)
        elif token[0] in "0123456789." or token[0].isdecimal():
            number(reader, line, token)
        else:
            reader.put(line, character(token), reader.spans[reader.i - 1])
    elif token.startswith(r"\begin{") or token.startswith(r"\begin "):
        environments.begin(reader, line, token)
    elif token[-1] == "}" and len(token) > 2:
        (environments.finish if token.startswith(r"\end") else wording.words)(reader, line, token)
    else:
        reader.problem(f"unknown command {token}", reader.i - 1)
        if token[1].isalpha():
            reader.put(line, "V!" + token[1:], reader.spans[reader.i - 1])


def _all(handler: object, names: str) -> dict[str, object]:
    """Return the commands of these names with one handler."""
    return dict.fromkeys([f"\\{name}" for name in names.split()], handler)


HANDLERS = (
    _all(
        skip,
        "displaystyle textstyle scriptstyle scriptscriptstyle limits nolimits displaylimits nonumber notag hfill "
        "hline quad qquad thinspace medspace thickspace negthinspace negmedspace negthickspace enspace enskip "
        "mathstrut strut par noindent protect relax allowbreak nobreak hfil vfill break null nobreakspace space hss "
        "llap rlap mathllap mathrlap mathclap clap bigm Bigm biggm Biggm tiny scriptsize footnotesize small "
        "normalsize large Large LARGE huge Huge mathop mathbin mathrel mathord mathopen mathclose mathpunct "
        "mathinner centering smash smash* boxed fbox ensuremath unboldmath leavevmode cancel bcancel xcancel hfill* "
        "mathchoice mathpalette normalfont upshape itshape bfseries noalign displaybreak",
    )
    | dict.fromkeys(["~", "%", *(f"\\{char}" for char in ",;:! >/-()[]@\n\t")], skip)
    | _all(skip_argument, "label tag tag* hspace hspace* vspace vspace* phantom hphantom vphantom color textcolor ref")
    | _all(skip_argument, "eqref cite citep citet mspace raisebox colorbox footnote hyperref footnotemark cline")
    | _all(skip_arguments, "rule definecolor setlength fcolorbox")
    | _all(skip_length, "hskip vskip kern mkern mskip")
    | _all(structures.fraction, "frac dfrac tfrac cfrac nicefrac sfrac")
    | _all(structures.binomial, "binom dbinom tbinom")
    | _all(environments.braced, " ".join(environments.BRACED))
    | _all(structures.infix, " ".join(structures.INFIX))
    | _all(structures.enclosed, " ".join(structures.ENCLOSING))
    | _all(structures.accent, " ".join((*structures.ACCENTS, *structures.UNDER)))
    | _all(structures.arrow, " ".join((*structures.ARROWS, "xleftarrow*", "xrightarrow*")))
    | _all(structures.stacked, "overset stackrel underset")
    | _all(structures.modulo, "pmod pod")
    | _all(wording.text, "text mbox textrm textnormal textit textbf textsf texttt textsc textup textmd hbox intertext")
    | dict.fromkeys(FONT_COMMANDS, wording.font)
    | dict.fromkeys("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", wording.letter)
    | dict.fromkeys(environments.SEPARATORS, environments.separator)
    | dict.fromkeys(OPENERS, fences.opener)
    | dict.fromkeys(CLOSERS, fences.closer)
    | dict.fromkeys(BARS, fences.bar)
    | dict.fromkeys(INTEGRALS, scripts.integral)
    | _all(fences.sized, "big Big bigg Bigg bigl Bigl biggl Biggl bigr Bigr biggr Biggr")
    | _all(fences.side, "left right middle")
    | _all(brace, "bgroup begingroup")
    | _all(unbrace, "egroup endgroup")
    | {"^": scripts.script, "_": scripts.script, r"\sp": scripts.script, r"\sb": scripts.script}
    | {"{": brace, "}": unbrace, "": finish, "$": wording.dollar, "'": scripts.prime}
    | dict.fromkeys(scripts.PRIMES, scripts.prime_sign)
    | {r"\sqrt": structures.root, r"\not": structures.negated, r"\qvar": wording.wildcard}
)
