"""metamath_proofs: which labels a Metamath proof uses, whether it is written out or compressed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from mirblab.errors import MirblabError

_LONGEST = 12  # letters of a step
_CODE = re.compile(r"[U-Y]*[A-T]")
_CODES = re.compile(r"(?:[U-Y]*[A-T]Z?|\?)*")


@dataclass(frozen=True)
class Used:
    """The labels that a proof uses, each once; how many a compressed one lists in vain; whether steps are missing."""

    labels: list[str]
    idle: int = 0
    incomplete: bool = False


def used(proof: Sequence[str], mandatory: Sequence[str], where: str) -> Used:
    """Return what the tokens between `$=` and `$.` use, in the order of first use, or of the list in parentheses.

    *mandatory* are the labels of the theorem's own hypotheses, which a compressed proof counts before its list.
    Both notations are those of the Metamath book (Megill and Wheeler, 2019, section 4.4 and appendix B). Raises
    MirblabError, which begins with *where*, for a proof that cannot be read.

    >>> used(["wph", "wps", "ax-mp", "ax-mp", "?"], [], "tiny.mm, line 1").labels
    ['wph', 'wps', 'ax-mp']
    >>> used("( ax-mp idi ) AZBDC".split(), ["wph"], "tiny.mm, line 1")
    Used(labels=['ax-mp', 'idi'], idle=0, incomplete=False)
    """
    if not proof:
        raise MirblabError(f"{where}: the proof is empty; an unfinished one is written '?'")
    if proof[0] != "(":
        return Used([label for label in dict.fromkeys(proof) if label != "?"], incomplete="?" in proof)
    if ")" not in proof:
        raise MirblabError(f"{where}: the list of labels of a compressed proof has no ')'")
    close = list(proof).index(")")
    listed, letters = proof[1:close], "".join(proof[close + 1 :])
    if not _CODES.fullmatch(letters):
        raise MirblabError(
            f"{where}: '{letters[:40]}' is no compressed proof: letters A to Z and '?' only, Z after a step"
        )
    codes = set(_CODE.findall(letters))
    if long := [code for code in codes if len(code) > _LONGEST]:
        raise MirblabError(
            f"{where}: '{long[0][:40]}' is no step of a compressed proof: it has {len(long[0]):,} letters"
        )
    numbers = {number(code) for code in codes}
    first, known = len(mandatory) + 1, len(mandatory) + len(listed)
    if numbers and max(numbers) > known + letters.count("Z"):
        raise MirblabError(f"{where}: a compressed proof of {known} labels names the step {max(numbers)}")
    labels = [label for place, label in enumerate(listed, first) if place in numbers]
    return Used(list(dict.fromkeys(labels)), len(listed) - len(labels), "?" in letters)


def number(code: str) -> int:
    """Return the number, from 1, that some of U to Y and one of A to T write.

    >>> [number(code) for code in ("A", "T", "UA", "YT", "UUA")]
    [1, 20, 21, 120, 121]
    """
    high = 0
    for letter in code[:-1]:
        high = 5 * high + ord(letter) - ord("U") + 1
    return 20 * high + ord(code[-1]) - ord("A") + 1
