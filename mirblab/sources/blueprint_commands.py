"""blueprint_commands: where the commands of a Lean file begin and end, and what stands before each."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from mirblab.sources.blueprint_binders import CLOSING, OPENING

KINDS = ("theorem", "lemma", "def", "abbrev", "instance", "structure", "class inductive", "class", "inductive", "axiom",
         "opaque", "irreducible_def", "coinductive")  # fmt: skip
_MODIFIERS = r"(?:(?:private|protected|noncomputable|nonrec|unsafe|partial|public|meta|local|scoped)\s+){0,8}"
_DECLARED = "|".join(kind.replace(" ", r"\s+") for kind in KINDS)
_SCOPED = "namespace|section|end|mutual|variables?|omit|include"
# Terms and tactics hold words of the second list, too, but not at the beginning of a line.
_BEGINS = re.compile(
    rf"^[ \t]*(?:@\[|{_MODIFIERS}(?:{_DECLARED}|{_SCOPED}|example|alias)(?![\w'.!?]))"
    r"|^(?:open|set_option|attribute|universe|import|export|notation3?|infix[lr]?|prefix|postfix|macro|macro_rules|syntax"
    r"|elab|elab_rules|initialize|run_cmd|add_decl_doc|library_note|blueprint_comment|tex_prelude|recall|proof_wanted"
    r"|deriving\s+instance|simproc|local|scoped|public|meta|suppress_compilation|assert_not_exists|#[a-z_]+)(?![\w'.!?])",
    re.MULTILINE,
)
_ONCE = re.compile(r"(open|set_option|omit|include|variable|universe|attribute)\b(.*?)\sin(?=\s|$)", re.DOTALL)
WORD = re.compile(rf"{_MODIFIERS}(?P<word>{_DECLARED}|{_SCOPED}|attribute|alias)(?![\w'.!?])")


@dataclass
class Command:
    """A command from `begin` to `end`; its keyword, with modifiers, stands at `at`.

    Before it stand `attributes`, the insides of `@[...]`, and `once`, keyword and rest of each `... in`.
    """

    begin: int
    at: int = -1
    end: int = -1
    attributes: list[str] = field(default_factory=list)
    once: list[tuple[str, str]] = field(default_factory=list)


def commands(code: str, masked: str) -> Iterator[Command]:
    """Yield the commands of Lean source in order; *masked* is the source with blanks for comments and texts.

    >>> code = "open A in\\n@[simp]\\nprivate theorem a : b := c\\nend A"
    >>> [(code[one.at : one.end], one.attributes, one.once) for one in commands(code, code)]
    [('private theorem a : b := c', ['simp'], [('open', ' A')]), ('end A', [], [])]
    """
    starts = [match.start() for match in _BEGINS.finditer(masked)]
    waiting: Command | None = None
    for start, after in itertools.pairwise([*starts, len(masked)]):
        end = start + len(masked[start:after].rstrip())
        start = end - len(masked[start:end].lstrip())
        found = waiting or Command(start)
        found.at, found.end = _before(found, code, masked, start, end), end
        # What stands alone, an attribute or `open ... in`, is said of the next command.
        waiting = found if found.at >= end else None
        if waiting is None:
            yield found


def _before(found: Command, code: str, masked: str, at: int, end: int) -> int:
    """Take attributes and `... in` off the beginning of a command, and return where the rest begins."""
    while True:
        at = end - len(masked[at:end].lstrip())
        if masked.startswith("@[", at):
            close = closing(masked, at + 1, end)
            found.attributes.append(code[at + 2 : close])
            at = close + 1
        elif once := _ONCE.match(masked, at, end):
            found.once.append((once[1], once[2]))
            at = once.end()
        else:
            return at


def closing(masked: str, start: int, end: int) -> int:
    """Return the place of the bracket that closes the first one at or after *start*, *end* when none does.

    >>> closing("a [b [c]] d", 0, 11)
    8
    """
    depth = 0
    for at in range(start, end):
        sign = masked[at]
        depth += (sign in OPENING) - (sign in CLOSING)
        if depth == 0 and sign in CLOSING:
            return at
    return end
