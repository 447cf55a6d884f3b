"""tokenizers: how a text becomes the terms of BM25, by name."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache, cached_property, partial
from itertools import chain
from typing import Any

from mirblab.core.errors import unknown
from mirblab.formula.in_text import STOP_WORDS, english_stemmer, split_text
from mirblab.formula.ngrams import latex_ngrams
from mirblab.formula.ngrams import pya0_symbols as pretokens

# Spellings of symbols, each with the one that replaces it: LaTeX, Unicode, and the ASCII of proof assistants.
SPELLINGS = {
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

# Commands of typesetting, which have no meaning.
TYPESETTING = frozenset(
    r"\left \right \big \Big \bigg \Bigg \bigl \bigr \Bigl \Bigr \displaystyle \textstyle \quad \qquad \begin \end "
    r"\text \textrm \textbf \textit \mathrm \mathbf \mathit \rm \bf \it \emph \limits \nolimits \label \ref".split()
)
GREEK = frozenset(
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron pi rho sigma tau upsilon phi chi "
    "psi omega".split()
)


NGRAM_LENGTH = 4


def character_ngrams(text: str, n: int = NGRAM_LENGTH, across: bool = True) -> list[str]:
    """Return the substrings of *n* characters of a text, in order, with repeats; a shorter text is one substring.

    Compatible characters are one (`ﬁ` is `fi`, `ℝ` is `R`), case is folded, and each stretch of white space and dollars
    is one blank, also before and after the text; all other signs are kept. Without *across* each word is cut by itself.
    McNamee and Mayfield (Information Retrieval 2004) recommend four characters across blanks for English; on seven
    collections lengths of 3 to 5, across or not, differ by at most 0.009 nDCG@10: benchmarks/chargrams_choice.py.
    """
    words = unicodedata.normalize("NFKC", text).casefold().replace("$", " ").split()
    spans = [f" {' '.join(words)} "] if across and words else [f" {word} " for word in words]
    return [span[at : at + n] for span in spans for at in range(max(1, len(span) - n + 1))]


Tokens = list[list[str]]
Reader = Callable[[str], Iterable]

# The longest form that is remembered, and the number of remembered forms: long formulas hardly ever occur again.
LONGEST_REMEMBERED, MOST_REMEMBERED = 24, 1 << 19

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
# A font command may contain white space; any other match ends before it.
_ACROSS = re.compile(rf"{_FONT}(?:\s|\{{\s|\{{\\?\w+\s)")
_WORD = re.compile(r"(?u)\b\w\w+\b")
_UPPER, _LOWER = "A-ZÀ-ÖØ-Þ", "a-zß-öø-ÿĀ-ɏ"  # Latin letters, with accents: théorème is one word
_PARTS = re.compile(rf"[{_UPPER}]+(?![{_LOWER}])|[{_UPPER}]?[{_LOWER}]+|\d+|[^\W\d_{_UPPER}{_LOWER}]+")
_PUNCTUATION = frozenset("|*_-")


def tokenizer(name: str) -> Callable[[Iterable[str]], Tokens]:
    r"""Return the tokenizer of that name: texts in, one list of tokens for each out.

    `mirb` is the published benchmark's, `words` the same without stemming, `math` keeps mathematics; `pya0` and
    `pya0-wide` read prose as `math` does and formulas as PyA0; `latex-ngrams` reads formulas only, `prose` the text
    outside them; `chargrams` gives all substrings of four characters.

    >>> tokenizer("mirb")(["Let the rings $R_1$ and x be given"])
    [['let', 'ring', 'r_1', 'given']]
    >>> tokenizer("math")(["Let $x \\le y$ and f ≤ g"])
    [['let', 'x', '\\le', 'y', 'f', '\\le', 'g']]
    >>> tokenizer("pya0")(["Bounds for $\\dfrac{x}2$"]), tokenizer("latex-ngrams")(["Prose and $x+1$"])
    ([['bound', '$frac$', '${$', '$x$', '$}$', '$2$']], [['x', 'plus', '1', '$ x', ..., 'plus 1 $']])
    """
    if name not in TOKENIZERS:
        raise unknown("tokenizer", name, TOKENIZERS)
    return TOKENIZERS[name]


def token_reader(name: str, term: Callable[[str], object] = str) -> Reader:
    """Return the tokenizer of that name for one text at a time; it yields *term* of each token, such as a number."""
    if name not in _READERS:
        raise unknown("tokenizer", name, _READERS)
    return _READERS[name](term)


def math_tokens(texts: Iterable[str], **switches: bool) -> Tokens:
    """Return the tokens of the tokenizer `math`, with the switches of `MathAnalysis`."""
    return [list(tokens) for tokens in map(_read_math(str, MathAnalysis(**switches)), texts)]


def _read_pya0(term: Callable[[str], object], wide: bool = False) -> Reader:
    prose = _read_math(term)
    memo = _Memo(lambda latex: tuple(term(f"${symbol}$") for symbol in pretokens(latex, wide=wide)))

    def read(text: str) -> Iterable:
        return chain.from_iterable(
            (memo[part] if place % 2 else prose(part)) for place, part in enumerate(split_text(text))
        )

    return read


def _read_runs(cut: Callable[[str], list[str]], term: Callable[[str], object]) -> Reader:
    return lambda text: map(term, cut(text))


def _read_prose(term: Callable[[str], object]) -> Reader:
    read = _read_math(term)
    return lambda text: chain.from_iterable(map(read, split_text(text)[::2]))


def _read_words(term: Callable[[str], object], stem: bool = False) -> Reader:
    """Read lower-case words of two or more characters without stop words, as bm25s does; *stem*: Snowball English."""
    root = english_stemmer() if stem else str
    memo = _Memo(lambda word: term(root(word)))
    return lambda text: [memo[word] for word in _WORD.findall(text.lower()) if word not in STOP_WORDS]


def _read_math(term: Callable[[str], object], analysis: Callable[[str], Iterable[str]] | None = None) -> Reader:
    analyse = analysis or MathAnalysis()
    memo = _Memo(lambda form: tuple(map(term, analyse(form))))
    spans = _Memo(lambda span: tuple(chain.from_iterable(map(memo.__getitem__, _SURFACE.findall(span)))))

    # Most parts between blanks were read before, and looking them up costs far less than matching them again.
    def read(text: str) -> Iterable:
        if not text.isascii():  # an accent that is a character of its own would cut the word
            text = unicodedata.normalize("NFC", text)
        parts = text.split() if _ACROSS.search(text) is None else (text,)
        return chain.from_iterable(map(spans.__getitem__, parts))

    return read


class _Memo(dict[str, Any]):
    def __init__(self, function: Callable) -> None:
        super().__init__()
        self.function = function

    def __missing__(self, form: str) -> object:
        result = self.function(form)
        if len(form) <= LONGEST_REMEMBERED and len(self) < MOST_REMEMBERED:
            self[form] = result
        return result


@dataclass(frozen=True)
class MathAnalysis:
    r"""The tokens of one command, symbol, number, letter or name of a text with mathematics.

    A LaTeX command is one token, with its letter where it sets a font (`\mathbb{R}`, ℝ); Unicode, LaTeX and ASCII
    spellings of a symbol are one token; Greek letters are their names; names of proof assistants (`Nat.add_comm`) are
    split, and kept *whole* beside their parts; braces, dollars and punctuation vanish. Switches: *stem* (Snowball
    English, lower-case words only), *stop* (33 words), *letters* (single letters), *symbols* (commands and symbols),
    *case* (single letters keep their case). The defaults won on development queries: benchmarks/tokenizer_choice.py.
    """

    stem: bool = True
    stop: bool = True
    letters: bool = True
    symbols: bool = True
    whole: bool = True
    case: bool = True

    @cached_property
    def _root(self) -> Callable[[str], str]:
        return english_stemmer() if self.stem else str

    def __call__(self, surface: str) -> tuple[str, ...]:
        if surface in SPELLINGS:
            return (SPELLINGS[surface],) if self.symbols else ()
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
        if greek in GREEK:
            return (greek,) if self.symbols else ()
        return (surface,) if self.symbols and surface not in TYPESETTING else ()

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
        return "" if self.stop and lower in STOP_WORDS else self._root(lower)


def _greek(letter: str) -> str:
    if letter.isascii():
        return ""
    name = unicodedata.name(letter, "").split()
    return name[-1].lower() if name and name[0] == "GREEK" and name[-1].lower() in GREEK else ""


def _tokenize_all(read: Callable[[], Reader], texts: Iterable[str]) -> Tokens:
    return [list(tokens) for tokens in map(read(), texts)]


_READERS: dict[str, Callable[[Callable], Reader]] = {
    "math": _read_math,
    "mirb": lambda term: _read_words(term, stem=True),
    "words": _read_words,
    "pya0": _read_pya0,
    "pya0-wide": partial(_read_pya0, wide=True),
    "latex-ngrams": partial(_read_runs, latex_ngrams),
    "prose": _read_prose,
    "chargrams": partial(_read_runs, character_ngrams),
}
TOKENIZERS: dict[str, Callable[[Iterable[str]], Tokens]] = {
    name: partial(_tokenize_all, cache(partial(own, str))) for name, own in _READERS.items()
}
