"""tokenizers: tokenizers by name."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable
from functools import cache, partial
from itertools import chain

from mirblab.core.errors import unknown
from mirblab.formula.in_text import split_text
from mirblab.formula.words import latex_ngrams
from mirblab.formula.words import pya0_symbols as pretokens

# The 33 words that Lucene, and with it bm25s, leaves out of English text.
STOP_WORDS = frozenset(
    "a an and are as at be but by for if in into is it no not of on or such that the their then there these they this "
    "to was will with".split()
)

# What is written in several ways, onto one of them: LaTeX, Unicode, and the ASCII of proof assistants.
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

# Commands that set type and mean nothing.
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
    r"""Return the runs of *n* characters of a text, in their order, with repeats.

    Compatible characters are one (`ﬁ` is `fi`, `ℝ` is `R`), case is folded, and blanks and dollars of every kind are
    one blank, which also stands before and after the text, so that a run sees where words begin and end; all other
    signs are kept, since they are the mathematics. With *across* runs reach over blanks, else each word, between two
    blanks, is cut by itself. What is shorter than *n* is one run.

    Runs share what words do not: stems, endings, parts of commands and of names. Four characters over blanks is what
    McNamee and Mayfield (Information Retrieval 2004) recommend for English; on seven bundled collections lengths of
    three to five and both boundaries lie within 0.009 nDCG@10 of each other: benchmarks/chargrams_choice.py.

    >>> character_ngrams("Let $x$")
    [' let', 'let ', 'et x', 't x ']
    >>> character_ngrams("a ring", across=False)
    [' a ', ' rin', 'ring', 'ing ']
    """
    words = unicodedata.normalize("NFKC", text).casefold().replace("$", " ").split()
    spans = [f" {' '.join(words)} "] if across and words else [f" {word} " for word in words]
    return [span[at : at + n] for span in spans for at in range(max(1, len(span) - n + 1))]


Tokens = list[list[str]]
Reader = Callable[[str], Iterable]

# A form that was seen is remembered up to this length, and so many of them: long formulas hardly ever return.
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
# A font command may reach over white space; any other match ends before it.
_ACROSS = re.compile(rf"{_FONT}(?:\s|\{{\s|\{{\\?\w+\s)")
_WORD = re.compile(r"(?u)\b\w\w+\b")
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_A-Za-z]+")
_PUNCTUATION = frozenset("|*_-")


def tokenizer(name: str) -> Callable[[Iterable[str]], Tokens]:
    """Return the tokenizer of that name: texts in, one list of tokens for each out.

    `mirb` is the published benchmark's, `words` the same without stemming, `math` keeps mathematics; `pya0` and
    `pya0-wide` read prose as `math` does and formulas as PyA0; `latex-ngrams` reads formulas only, `prose` what is
    outside of them; `chargrams` cuts the text into runs of four characters.

    >>> tokenizer("mirb")(["Let the rings $R_1$ and x be given"])
    [['let', 'ring', 'r_1', 'given']]
    >>> tokenizer("math")(["Let $x \\\\le y$ and f ≤ g"])
    [['let', 'x', '\\\\le', 'y', 'f', '\\\\le', 'g']]
    >>> tokenizer("pya0")(["Bounds for $\\\\dfrac{x}2$"]), tokenizer("latex-ngrams")(["Prose and $x+1$"])
    ([['bound', '$frac$', '${$', '$x$', '$}$', '$2$']], [['x', 'plus', '1', '$ x', ..., 'plus 1 $']])
    """
    if name not in TOKENIZERS:
        raise unknown("tokenizer", name, TOKENIZERS)
    return TOKENIZERS[name]


def token_reader(name: str, term: Callable[[str], object] = str) -> Reader:
    """Return the tokenizer of that name for one text at a time, so that no tokens pile up; see `tokenizer`.

    It yields what *term* makes of each token, for example its number, asked for anew only where it must be.

    >>> read = token_reader("mirb", {"ring": 0, "field": 1}.__getitem__)
    >>> [list(read(text)) for text in ("rings", "and fields")]
    [[0], [1]]
    """
    if name not in _READERS:
        raise unknown("tokenizer", name, _READERS)
    return _READERS[name](term)


def word_tokens(texts: Iterable[str], stem: bool = False) -> Tokens:
    r"""Return lower-case words of two or more characters, `(?u)\b\w\w+\b`, without the 33 English stop words.

    These are the defaults of bm25s; with *stem*, Snowball's English stemmer is applied. Single letters and
    symbols, and with them most of mathematics, vanish.
    """
    return [list(tokens) for tokens in map(_read_words(str, stem), texts)]


def mirb_tokens(texts: Iterable[str]) -> Tokens:
    """Return the tokens of the published benchmark: `word_tokens` with Snowball's English stemmer."""
    return word_tokens(texts, stem=True)


def math_tokens(
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

    >>> math_tokens(["open maps: IsOpenMap.comp (α → ℝ)"])
    [['open', 'map', 'isopenmap.comp', 'open', 'map', 'comp', 'alpha', '\\to', 'R']]
    """
    return [list(tokens) for tokens in map(_read_math(str, stem, stop, letters, symbols, whole, case), texts)]


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
    root = _stemmer() if stem else str
    memo = _Memo(lambda word: term(root(word)))
    return lambda text: [memo[word] for word in _WORD.findall(text.lower()) if word not in STOP_WORDS]


def _read_math(
    term: Callable[[str], object],
    stem: bool = True,
    stop: bool = True,
    letters: bool = True,
    symbols: bool = True,
    whole: bool = True,
    case: bool = True,
) -> Reader:
    analysis = _Analysis(stem, stop, letters, symbols, whole, case)
    memo = _Memo(lambda form: tuple(map(term, analysis(form))))
    spans = _Memo(lambda span: tuple(chain.from_iterable(map(memo.__getitem__, _SURFACE.findall(span)))))

    # Most of what stands between blanks was seen before, which costs far less than to match it again.
    def read(text: str) -> Iterable:
        parts = text.split() if _ACROSS.search(text) is None else (text,)
        return chain.from_iterable(map(spans.__getitem__, parts))

    return read


class _Memo(dict):
    """What a function returned for each form seen, if it is short and not too many were seen before."""

    def __init__(self, function: Callable) -> None:
        super().__init__()
        self.function = function

    def __missing__(self, form: str) -> object:
        found = self.function(form)
        if len(form) <= LONGEST_REMEMBERED and len(self) < MOST_REMEMBERED:
            self[form] = found
        return found


class _Analysis:
    """One surface form to its tokens."""

    def __init__(self, stem: bool, stop: bool, letters: bool, symbols: bool, whole: bool, case: bool) -> None:
        self.stem = _stemmer() if stem else str
        self.stop = STOP_WORDS if stop else frozenset()
        self.letters, self.symbols, self.whole, self.case = letters, symbols, whole, case

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
        return "" if lower in self.stop else self.stem(lower)


def _greek(letter: str) -> str:
    """Return the name of a Greek letter, else an empty string."""
    if letter.isascii():
        return ""
    name = unicodedata.name(letter, "").split()
    return name[-1].lower() if name and name[0] == "GREEK" and name[-1].lower() in GREEK else ""


def _stemmer() -> Callable[[str], str]:
    import Stemmer

    return Stemmer.Stemmer("english").stemWord


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
