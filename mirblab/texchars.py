"""texchars: characters that pdfLaTeX does not know, as commands of its kernel, amsmath and amssymb."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from itertools import groupby

from mirblab.formula import symbols

_MORE = r"""
− -|‐ {-}|‖ \Vert|• \bullet|· \cdot|⬝ \cdot|∫ \int|∬ \iint|∭ \iiint|∮ \oint|∯ \oint\!\!\!\!\!\int|⧸ /|⁄ /|⅟ 1/
′ {}'|″ {}''|° {}^{\circ}|ᗮ {}^{\perp}|ᘁ {}^{\ast}|⟂ \perp|⨯ \times|⊛ \circledast|⍟ \circledast|✶ \star|✝ \dagger
⁎ *|○ \bigcirc|⦃ \{\!\{|⦄ \}\!\}|⟦ [\![|⟧ ]\!]|⟪ \langle\!\langle|⟫ \rangle\!\rangle|⁅ [|⁆ ]|⦋ \underline{[}
⦌ \underline{]}|⸨ (\!(|⸩ )\!)|⟮ (|⟯ )|≔ :=|≕ =:|≼ \preccurlyeq|≽ \succcurlyeq|≦ \leqq|≧ \geqq|⩿ \leqslant
≌ \overset{\backsim}{=}|⥤ \stackrel{\rightharpoonup}{\rightharpoondown}|↥ \underline{\uparrow}|↧ \overline{\downarrow}
⤳ \rightsquigarrow|⤏ \dashrightarrow|⤞ \dashrightarrow|⇨ \Rightarrow|↿ \upharpoonleft|▸ \blacktriangleright
◃ \triangleleft|⨅ \mathop{\sqcap}|⨍ -\!\!\!\!\!\int|∆ \Delta|µ \mu|∌ \not\ni|∛ \sqrt[3]{}|⋰ \cdot^{\cdot^{\cdot}}
"""
# Commands that trees know and LaTeX with amsmath and amssymb does not.
_MISSING = frozenset(
    """
Alpha Aut Beta CC Chi Coker Complex Complexes End Epsilon Eta Ext FF Gal Hom Iota Kappa Ker Mor Mu N NN Nu Ob Omicron PP
Proj Q QQ R RR Reals Res Rho Sch Sh Spec Tau Tor Tr Z ZZ Zeta alef alefsym arccosh arccot arccsc arcsec arcsinh arctanh
argmax argmin cn cnums coker colim coloneqq csch curl dd degree diag divides dn eps eqqcolon exist grad gt id iddots im
infin integers isin lcm llbracket lt natnums naturals omicron ord qed qedsymbol rank rationals real reals rk rrbracket
sech semicolon sgn sign sn span supp thetasym tr vol weierp
""".split()
)
_LIKE_LATIN = ("ΑΒΕΖΗΙΚΜΝΟΡΤΧο", "ABEZHIKMNOPTXo")
_LETTERS = ("LATIN", "DOUBLE-STRUCK", "MATHEMATICAL DOUBLE-STRUCK")  # they stay, or get their alphabet's command
# The kind of letter in a character's Unicode name, and its command; the first that the name holds.
_ALPHABETS = (
    ("DOUBLE-STRUCK CAPITAL", "mathbb"), ("DOUBLE-STRUCK", "mathbf"), ("SCRIPT CAPITAL", "mathcal"),
    ("SCRIPT", "mathit"), ("FRAKTUR", "mathfrak"), ("BLACK-LETTER", "mathfrak"), ("SANS-SERIF", "mathsf"),
    ("MONOSPACE", "mathtt"), ("BOLD", "mathbf"), ("ITALIC", "mathit"),
)  # fmt: skip
_SCRIPTS = {"<super>": "^", "<sub>": "_"}
_KNOWN = frozenset("–—‘’‚“”„‹›«»¿¡§¶©£")  # to LaTeX, as is every Latin letter
_SPECIAL = frozenset(r"_%&#${}\^~<>|")  # to LaTeX
_NOT_ASCII = re.compile(r"[^\x00-\x7f]+")
_NAME = re.compile(r"\\[A-Za-z]+")
_COMMAND = re.compile(r"\\[A-Za-z]+$")

Piece = tuple[str, str]  # "" for text, "$" for mathematics, "^" and "_" for scripts; LaTeX


def with_commands(text: str, is_maths: bool = False) -> str:
    r"""Return *text* with commands in `$…$` for what pdfLaTeX does not know; in mathematics, without the dollars.

    Letters of other scripts stay: a document that has them needs babel. What has no command is its code point.

    >>> print(with_commands("∀ x₁ ∈ 𝓝 a, f⁻¹ ≤ é ⥢"), with_commands("αx⁻¹", is_maths=True))
    $\forall$ x$_{1}$ $\in$ $\mathcal{N}$ a, f$^{-1}$ $\le$ é $\mathtt{U{+}2962}$ \alpha x{}^{-1}
    >>> print(with_commands(r"\Spec(\ZZ)", is_maths=True))
    \operatorname{Spec}(\mathbb{Z})
    """
    if is_maths:
        text = _NAME.sub(lambda found: _known(found[0]), text)

    def written(found: re.Match[str]) -> str:
        pieces = [piece for char in found[0] for piece in _pieces(char)]
        return "".join(_run(list(run), is_maths) for _, run in groupby(pieces, key=lambda piece: piece[0] != ""))

    return _NOT_ASCII.sub(written, unicodedata.normalize("NFC", text))


def _known(command: str) -> str:
    """Return a command, or what LaTeX knows in its place."""
    if command[1:] not in _MISSING:
        return command
    label = symbols.COMMANDS[command].removeprefix("V!")
    return rf"\operatorname{{{label}}}" if len(label) > 1 else "".join(text for _, text in _pieces(label))


def _run(pieces: list[Piece], is_maths: bool) -> str:
    """Return neighbouring pieces, all of them text or none, as LaTeX."""
    if not pieces[0][0]:
        return "".join(text for _, text in pieces)
    made = ""
    for kind, run in groupby(pieces, key=lambda piece: piece[0]):
        inner = " ".join(text for _, text in run)
        if kind == "$":
            made += inner + " " * bool(_COMMAND.search(inner))
        else:  # an empty base before it wherever something else may have a script already
            made += f"{'{}' * (is_maths or made != '')}{kind}{{{inner.replace(' ', '')}}}"
    return made if is_maths else f"${made.rstrip()}$"


@lru_cache(maxsize=4096)
def _pieces(char: str) -> tuple[Piece, ...]:
    """Return what is written for one character, nothing for one that is not seen."""
    if char in _commands():
        return (("$", _commands()[char]),)
    how, *codes = unicodedata.decomposition(char).split() or [""]
    plain = "".join(chr(int(code, 16)) for code in codes) if how.startswith("<") else ""
    if how in _SCRIPTS:
        return ((_SCRIPTS[how], "".join(text for part in plain for _, text in _pieces(part))),)
    name, category = unicodedata.name(char, ""), unicodedata.category(char)
    font = next((font for words, font in _ALPHABETS if words in name), "") if how == "<font>" else ""
    if font:
        return (("$", rf"\{font}{{{_commands().get(plain, plain)}}}"),)
    if plain and not _SPECIAL & set(plain):
        return tuple(piece for part in plain for piece in _pieces(part))
    if char.isascii() or category[0] in "LZ" or char in _KNOWN:
        return (("", char),)
    return () if category in ("Cf", "Mn") else (("$", rf"\mathtt{{U{{+}}{ord(char):04X}}}"),)


@lru_cache(maxsize=1)
def _commands() -> dict[str, str]:
    """Return character -> command: the first that each label has, Greek letters like Latin ones, and more signs."""
    found: dict[str, str] = {}
    for command, label in symbols.COMMANDS.items():
        char = label.removeprefix("V!")
        if len(char) == 1 and not (char.isascii() or char in _KNOWN or unicodedata.name(char).startswith(_LETTERS)):
            found.setdefault(char, command)
    found |= {char: rf"\mathrm{{{like}}}" for char, like in zip(*_LIKE_LATIN, strict=True)}
    return found | dict(entry.split(None, 1) for line in _MORE.strip().splitlines() for entry in line.split("|"))
