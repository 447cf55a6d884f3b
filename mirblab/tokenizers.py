"""tokenizers: text to tokens for BM25, by name: as published, plain words, and words with mathematics."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable
from itertools import chain

from mirblab.errors import unknown

Tokens = list[list[str]]

# The 33 words that Lucene, and with it bm25s, leaves out of English text.
STOP_WORDS = frozenset(
    "a an and are as at be but by for if in into is it no not of on or such that the their then there these they this "
    "to was will with".split()
)

# Blackboard, script and the like around one symbol; in Unicode these letters decompose onto the plain one.
_FONT = r"\\(?:mathbb|mathcal|mathfrak|mathscr|mathbf|mathrm|mathsf|mathit|boldsymbol|bm|Bbb|cal)(?![A-Za-z])"
_SURFACE = re.compile(
    rf"{_FONT}\s*(?:\{{\s*\\?\w+\s*\}}|[A-Za-z](?![A-Za-z]))"
    r"|\\[A-Za-z]+"  # LaTeX commands
    r"|[^\W\d_][\w'’]*(?:\.[^\W\d_][\w']*)*"  # words and dotted names
    r"|\d+(?:\.\d+)?"
    r"|<->|<=>|==>|-->|\|->|:=|=>|->|<-|>=|<=|/=|!=|/\\|\\/|\|-"
    r"|[^\s\w$(){}\[\]\\,.;:'\"`’“”&%~#@?|*_-]"  # any other symbol that is not mere punctuation
    r"|[|*_-]"
)
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_A-Za-z]+")
_PUNCTUATION = frozenset("|*_-")

# What is written in several ways, onto one of them: LaTeX, Unicode, and the ASCII of proof assistants.
_SAME = {
    spelling: words[0]
    for words in (
        line.split()
        for line in r"""
        \to → -> \rightarrow \longrightarrow ⟶ -->
        \mapsto ↦ |-> \longmapsto
        \implies ⇒ => \Rightarrow ⟹ \Longrightarrow ==>
        \iff ↔ <-> \leftrightarrow ⇔ <=> \Leftrightarrow ⟺ \Longleftrightarrow
        \le ≤ <= \leq \leqslant ⩽
        \ge ≥ >= \geq \geqslant ⩾
        \ne ≠ != /= \neq
        \in ∈
        \notin ∉
        \subset ⊂
        \subseteq ⊆
        \supset ⊃
        \supseteq ⊇
        \cup ∪ \bigcup ⋃
        \cap ∩ \bigcap ⋂
        \setminus ∖ \backslash
        \emptyset ∅ \varnothing
        \forall ∀ \<forall>
        \exists ∃ \<exists>
        \neg ¬ \lnot
        \wedge ∧ /\ \land \bigwedge ⋀
        \vee ∨ \/ \lor \bigvee ⋁
        \vdash ⊢ |-
        \sum ∑
        \prod ∏
        \int ∫
        \infty ∞
        \partial ∂
        \nabla ∇
        \cdot · ⋅
        \times ×
        \otimes ⊗
        \oplus ⊕
        \circ ∘
        \cong ≅
        \simeq ≃
        \sim ∼
        \approx ≈
        \equiv ≡
        \mid ∣ \vert \lvert \rvert
        \sqrt √
        \perp ⊥ \bot
        \top ⊤
        \langle ⟨
        \rangle ⟩
        \pm ±
        \prec ≺
        \ll ≪
        \gg ≫
        \ldots … \dots \cdots ⋯
        \prime ′
        \leftarrow ← <-
        \hookrightarrow ↪
        """.strip().splitlines()
    )
    for spelling in words
}

# Commands that set type and mean nothing.
_SILENT = frozenset(
    r"\left \right \big \Big \bigg \Bigg \bigl \bigr \Bigl \Bigr \displaystyle \textstyle \quad \qquad \begin \end "
    r"\text \textrm \textbf \textit \mathrm \mathbf \mathit \rm \bf \it \emph \limits \nolimits \label \ref".split()
)
_GREEK = frozenset(
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron pi rho sigma tau upsilon phi chi "
    "psi omega".split()
)


def tokenizer(name: str) -> Callable[[Iterable[str]], Tokens]:
    """Return the tokenizer of that name: texts in, one list of tokens for each out.

    `mirb` is the published benchmark's, `words` the same without stemming, `math` keeps mathematics.

    >>> tokenizer("mirb")(["Let the rings $R_1$ and x be given"])
    [['let', 'ring', 'r_1', 'given']]
    >>> tokenizer("math")(["Let $x \\\\le y$ and f ≤ g"])
    [['let', 'x', '\\\\le', 'y', 'f', '\\\\le', 'g']]
    """
    if name not in TOKENIZERS:
        raise unknown("tokenizer", name, TOKENIZERS)
    return TOKENIZERS[name]


def words(texts: Iterable[str], stem: bool = False) -> Tokens:
    r"""Return lower-case words of two or more characters, `(?u)\b\w\w+\b`, without the 33 English stop words.

    These are the defaults of bm25s; with *stem*, Snowball's English stemmer is applied. Single letters and
    symbols, and with them most of mathematics, vanish.
    """
    memo = _Memo(_stemmer() if stem else str)
    find = re.compile(r"(?u)\b\w\w+\b").findall
    return [[memo[word] for word in find(text.lower()) if word not in STOP_WORDS] for text in texts]


def mirb(texts: Iterable[str]) -> Tokens:
    """Return the tokens of the published benchmark: `words` with Snowball's English stemmer."""
    return words(texts, stem=True)


def math(
    texts: Iterable[str],
    *,
    stem: bool = True,
    stop: bool = True,
    letters: bool = True,
    symbols: bool = True,
    whole: bool = True,
    case: bool = True,
) -> Tokens:
    r"""Return words and mathematics: commands, symbols, digits, single letters, and the parts of names.

    A LaTeX command is one token, with its letter where it sets a font (`\mathbb{R}`, ℝ); Unicode, LaTeX and
    ASCII spellings of a symbol are one token; Greek letters are their names; names of proof assistants
    (`Nat.add_comm`, `IsOpenMap`) are split, and kept *whole* beside their parts; braces, dollars and
    punctuation vanish. Switches: *stem* (Snowball English, lower-case words only), *stop* (33 words), *letters*
    (single letters), *symbols* (commands and symbols), *case* (single letters keep their case, X is not x). The
    defaults won on development queries: benchmarks/tokenizer_choice.py.

    >>> math(["open maps: IsOpenMap.comp (α → ℝ)"])
    [['open', 'map', 'isopenmap.comp', 'open', 'map', 'comp', 'alpha', '\\to', 'R']]
    """
    memo = _Memo(_Analysis(stem, stop, letters, symbols, whole, case))
    return [list(chain.from_iterable(map(memo.__getitem__, _SURFACE.findall(text)))) for text in texts]


class _Memo(dict):
    """What a function returned for each surface form seen: texts repeat their words."""

    def __init__(self, function: Callable) -> None:
        super().__init__()
        self.function = function

    def __missing__(self, surface: str) -> object:
        found = self[surface] = self.function(surface)
        return found


class _Analysis:
    """One surface form to its tokens."""

    def __init__(self, stem: bool, stop: bool, letters: bool, symbols: bool, whole: bool, case: bool) -> None:
        self.stem = _stemmer() if stem else str
        self.stop = STOP_WORDS if stop else frozenset()
        self.letters, self.symbols, self.whole, self.case = letters, symbols, whole, case

    def __call__(self, surface: str) -> tuple[str, ...]:
        if surface in _SAME:
            return (_SAME[surface],) if self.symbols else ()
        if surface[0] == "\\":
            return self._command(surface)
        plain = unicodedata.normalize("NFKC", surface)
        if plain[0].isalpha():
            return self._name(plain)
        if plain[0].isdigit():
            return (plain,) if self.letters else ()
        return () if surface in _PUNCTUATION or not self.symbols else (plain,)

    def _command(self, surface: str) -> tuple[str, ...]:
        inner = re.search(r"[\s{]+\\?(\w+)\s*\}?$", surface)
        if inner:
            return self._name(inner.group(1))
        greek = surface[1:].removeprefix("var").lower()
        if greek in _GREEK:
            return (greek,) if self.symbols else ()
        return (surface,) if self.symbols and surface not in _SILENT else ()

    def _name(self, name: str) -> tuple[str, ...]:
        parts = [self._word(part) for part in _PARTS.findall(name)]
        kept = tuple(part for part in parts if part)
        if self.whole and len(parts) > 1:
            return (name.lower(), *kept)
        return kept

    def _word(self, part: str) -> str:
        if len(part) == 1:
            greek = _greek(part)
            if greek:
                return greek if self.symbols else ""
            return (part if self.case else part.lower()) if self.letters and part != "a" else ""
        lower = part.lower()
        return "" if lower in self.stop else self.stem(lower)


def _greek(letter: str) -> str:
    """Return the name of a Greek letter, else an empty string."""
    if letter.isascii():
        return ""
    name = unicodedata.name(letter, "").split()
    return name[-1].lower() if name and name[0] == "GREEK" and name[-1].lower() in _GREEK else ""


def _stemmer() -> Callable[[str], str]:
    import Stemmer

    return Stemmer.Stemmer("english").stemWord


TOKENIZERS: dict[str, Callable[[Iterable[str]], Tokens]] = {"math": math, "mirb": mirb, "words": words}
