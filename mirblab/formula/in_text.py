"""in_text: the formulas in a text and in a collection."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from mirblab.data.collection import Collection
from mirblab.sources.shared.lean_source import MODIFIERS

_KEYWORDS = "theorem|lemma|def|abbrev|instance|structure|class|inductive|example|axiom|opaque"
_PROVED = r"^\|- (?![^|{\n]{0,20}\|)"  # no absolute value of something negative
_NAMED = r"^(?:[A-Z\d_']{2,}|\w*_\w+) \|- (?![^|{\n]{0,20}\|)"  # by a name such as ADD_SYM or num_INDUCTION
# A statement of Metamath behind a title that ends in punctuation: after the last turnstile that begins a statement
# comes a sign that Metamath sets between blanks; no command of LaTeX, and no word with a full stop at the end.
_SIGN = r"(?:.* )?(?:\(|[AE]\.|e\.|-\.|C_|=/=|[ui]\.|<_|x\.) "
_TITLED = rf"\A(?!.*\\[A-Za-z]{{2}})(?>[^$\n]*[^\w\s&>] \|- )(?={_SIGN})[^$\n]+(?<![a-z]{{2}}[.,;:?!])\Z"
_QUANTIFIED = r"(?:^|[\s(])[!?][a-z]\w{0,2}(?: [a-z]\w{0,2})*\.\s"
_NO_LATEX = r"\A(?!.*(?:\$|\\[A-Za-z]))"
# A name bound to a type, a function, a universe, or a dotted name beside a sign that Lean's users type.
_TYPE = r"(?:[A-Z]\w+|[^\x00-\x7f]|\S+ [→↔≤∈≠⟶])"
_BOUND = rf"(?:[({{⦃]|\[[a-z])[^\W\d][^()\[\]{{}}⦃⦄:]* : {_TYPE}|[∀∃λ∑∏⨆⨅⋃⋂][^:,]{{1,60}} : {_TYPE}"
_FUNCTION = r"\bfun [^.;]{1,200}?(?:=>|↦)|\bType(?:\*| max\b)"
_DOTTED = r"(?=.*[∀∃λ→↔ℕℤℚℝℂ∈∧∨¬≤≥≠∑∏⊆⟶≃₀-₉]).*?\b[A-Za-z]\w*\.[A-Za-z]\w+"
# The first that is found names the language.
_LANGUAGES = (
    ("Isabelle", re.compile(r"\\<[A-Za-z^]+>|goal \(\d+ subgoal|^\w+: (?:shows|assumes|fixes) ")),
    ("HOL", re.compile(rf"(?:{_PROVED}|{_NAMED})(?:[!?~A-Za-z]|[({{]\S|&\d|\d+ [A-Z]{{2}})|{_QUANTIFIED}")),
    ("Metamath", re.compile(rf"=> \|- |{_PROVED}|{_TITLED}")),
    ("Lean", re.compile(rf"⊢|\binst✝|^(?:(?:{MODIFIERS}) )*(?:{_KEYWORDS}) [^\s\d][^$\n]* :=?(?:\s|$)", re.MULTILINE)),
    ("Lean", re.compile(rf"{_NO_LATEX}(?:.*?(?:{_BOUND}|{_FUNCTION})|{_DOTTED})", re.DOTALL)),
)  # fmt: skip
# A statement of Rocq has no word of its own: signs that neither LaTeX nor prose has, in most texts of a collection.
_ROCQ = re.compile(
    r"(?:^|\s)(?:->|<->|==>|=>|:=|:>|=[12i]|\\(?:is|isn't|proper)|<\||:[&|\\]:|\^\+|\*:|<=|==)\s"
    r"|%[NRZCQg]\b|#\||\.\+1|\[(?:::|the|ffun|set|seq|max|min|exists|forall)\s|'[A-Z][A-Za-z]*[_\[(]"
    r"|\\(?:sum|big\w*|prod|max)_\(|^[a-zA-Z][\w' ]*\s:\s|[({]\w[\w' ]*\s:\s|\bforall\s[^,]+,"
)
_NO_ROCQ = re.compile(r"\$|\\\(|\\\[|\\[a-z]+\{|[_^]\{|\|-|[⊢∀∃λ→↔ℕℤℚℝℂ∈∧∨≤≥]")
_ENOUGH_ROCQ = 20  # texts, of which a majority is no chance
_ENOUGH_SIGNS = 1000  # texts of a collection that are looked at
_DISPLAYS = (
    "align|alignat|aligned|alignedat|array|[bBpvV]?matrix|cases|CD|displaymath|eqnarray|equation|flalign|gather|"
    "gathered|math|multline|smallmatrix|split|subequations|xalignat"
)
_TOKEN = re.compile(
    rf"\\(?P<ends>begin|end)\s*\{{\s*(?P<name>(?:{_DISPLAYS})\*?)\s*\}}"
    # Only in these a dollar sign inside a formula is text: `\text{if $x$ is odd}`.
    r"|(?P<text>\\(?:text[a-z]*|[hmf]box|intertext|tag\*?|parbox\s*\{[^{}$]*\})\s*\{)"
    r"|(?P<sign>\\[()\[\]]|\${1,3}|\[/?i?math\])"
    r"|(?P<brace>[{}])"
    r"|\\.",
    re.DOTALL,
)
_COMMAND = re.compile(r"\\[A-Za-z]")
_CLOSER = {"$": "$", "$$": "$$", "\\(": "\\)", "\\[": "\\]", "[imath]": "[/imath]", "[math]": "[/math]"}
_AMOUNT = re.compile(r"\d[\d,.]*(?:[kKmMbB]|bn)?(?!\w)")
_MATHS_IN_DELIMITERS = re.compile(r"[\\^_={<>+]")
_NO_FUNCTION = r"(?!(?:sin|cos|tan|log|ln|exp|lim|max|min|mod|gcd|det|sup|inf)\b)"
_PLAIN_WORD = re.compile(rf"(?<![\\A-Za-z{{]){_NO_FUNCTION}[A-Za-z]{{2,}}")  # of prose
_ARGUMENT = re.compile(r"\\[A-Za-z]+\*?\s*\{[^{}]*\}")
# Between blanks, so that it is no product of variables: "dx" and "AB" are, "is" hardly ever.
_PROSE = re.compile(
    rf"(?<!\S)[(\"']?{_NO_FUNCTION}(?:(?=[a-z'’-]*?[a-z]{{3}})[a-z'’-]++|(?:an|as|at|be|by|do|if|in|is|it|no|of|on|or|so|"
    r"to|we)\b)[)\"'.,;:?!]*+(?!\S)",
    re.IGNORECASE,
)
_LONE_WORD = re.compile(r"\s*[A-Z]?[a-z]{4,}[.,;:?!]*\s*")
_SIGNS_PER_WORD = 4  # of mathematics, in what has no delimiters and may be a formula
_MANY_WORDS = 3  # without a sign of mathematics these are prose
_BEGINS, _ENDS = " \n,.;:?!)", " \n("  # of prose between two formulas
# The 33 words that Lucene, and with it bm25s, leaves out of English text.
STOP_WORDS = frozenset(
    "a an and are as at be but by for if in into is it no not of on or such that the their then there these they this "
    "to was will with".split()
)
Token = tuple[str, int, int]  # kind, start, end
# Start and end without delimiters, with them, and whether these are signs outside of any text group.
Span = tuple[int, int, int, int, bool]
FORMULA_TASK = "Formula Retrieval"
_IN_CONTEXT = re.compile(r"\s*Formula:\s*(?P<formula>.*?)\s*(?:Context:.*)?", re.DOTALL)
_DELIMITERS = ("$", "\\(", "\\[", "math]")
_OPENS = re.compile(r"(\$+|\\[(\[]|\[i?math\])\s*\Z")
_CLOSES = re.compile(r"\s*(\$+|\\[)\]]|\[/i?math\])")
_MATHS = re.compile(r"[\\^_={}&+<>]")
_WORD = re.compile(r"(?<![\\A-Za-z{])[A-Za-z]{4,}")
_MOST_WORDS = 2  # neither commands nor in braces, as names and texts are
_ENOUGH, _MOST = 1000, 0.9  # texts that are looked at, and the share of them that must be formulas


@lru_cache(maxsize=512)  # a text that is shown is asked about by each step of it
def is_formal(text: str) -> str:
    """Return the proof assistant whose language a text is in: Isabelle, HOL, Metamath or Lean; "" for none.

    A text with a formula between delimiters is not in Lean, whatever signs of logic it has.
    """
    found = next((name for name, pattern in _LANGUAGES if pattern.search(text)), "")
    return "" if found == "Lean" and has_marked_formula(text) else found


def english_stemmer() -> Callable[[str], str]:
    """Return the function that reduces a word in lower case to its stem (Snowball English)."""
    import Stemmer

    return Stemmer.Stemmer("english").stemWord


def has_marked_formula(text: str) -> bool:
    r"""Return whether delimiters mark a formula in a text; a dollar may be an operator of Lean as well.

    >>> has_marked_formula("so $x$ is even"), has_marked_formula("f $ g $ x"), has_marked_formula("Q($a) → Q($b)")
    (True, False, False)
    """
    spans = _formula_spans(text)
    return any(_is_delimited(text[outer:after], text[after : after + 1]) for _, _, outer, after, _ in spans)


def _is_delimited(marked: str, following: str) -> bool:
    """Return whether the signs around a formula delimit it; the dollars of f $ g $ x, f <$> g <$> x and Q($a) do not.

    Delimiters have a command between them, or else no name or bracket behind them, and single ones no blank inside.
    """
    inner = marked[1:-1]
    if marked[0] != "$" or _COMMAND.search(inner):
        return True
    is_operator = following.isalnum() or following in tuple("_([{<>")
    return not is_operator and (inner[:1] == "$" or inner.strip() == inner)


def formal_language(texts: Sequence[str]) -> str:
    """Return the proof assistant of most of *texts* (of a thousand of them, evenly spread); "" where most have none.

    It is one of those of `is_formal`, or Rocq, whose statements are told from others in numbers only.
    """
    looked_at = texts[:: max(1, len(texts) // _ENOUGH_SIGNS)]
    names = Counter(map(is_formal, looked_at))
    n_others = names.pop("", 0)
    if 2 * n_others < len(looked_at):
        return names.most_common(1)[0][0]
    if len(looked_at) < _ENOUGH_ROCQ:
        return ""
    return "Rocq" if 2 * sum(map(looks_like_rocq, looked_at)) > len(looked_at) else ""


def looks_like_rocq(text: str) -> bool:
    r"""Return whether a text has signs as statements of Rocq have them, and none of LaTeX; a single one may be prose.

    >>> looks_like_rocq("m n : m + n = n + m -> P"), looks_like_rocq(r"$m$ -> $n$")
    (True, False)
    """
    return _ROCQ.search(text) is not None and _NO_ROCQ.search(text) is None


def marked_formulas(text: str) -> list[tuple[str, int, int]]:
    r"""Return the formulas of a text in order: LaTeX without delimiters, and where it starts and ends in the text.

    Delimiters are `$`, `$$`, `\(`, `\[`, `[imath]`, `[math]`; display environments stay part of the LaTeX. An escaped
    `\$` is none, a dollar in `\text{}` belongs to the formula around it, and sums of money are no formulas.
    """
    return [(text[start:end], start, end) for start, end, _, _, _ in _formula_spans(text)]


def _formula_spans(text: str) -> Iterator[Span]:
    if "$" not in text and "\\" not in text and "[/" not in text:
        return
    tokens = _tokens(text)
    limits, jumps = _groups(tokens)
    search = _Search(text, tokens, limits, jumps)
    at = 0
    while at < len(tokens):
        closer = search.closer(at)
        if closer < 0:
            at = search.after(at)
            continue
        kind, outer, start = tokens[at]
        end, after = tokens[closer][1:]
        used = end + start - outer
        if kind[0] == "$" and used < after:  # the next formula begins without a blank between
            tokens[closer] = (_kind(text[used:after]), used, after)
            after, closer = used, closer - 1
        if kind.startswith("begin"):
            start, end = outer, after
        inner = text[start:end]
        if inner.strip():
            is_plain = not kind.startswith("begin") and limits[at] == len(tokens)
            start, end = start + len(inner) - len(inner.lstrip()), end - len(inner) + len(inner.rstrip())
            yield start, end, outer, after, is_plain
        at = closer + 1


def _tokens(text: str) -> list[Token]:
    found = []
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup
        if kind == "name":
            found.append((f"{match['ends']} {match['name']}", *match.span()))
        elif kind is not None:
            found.append((kind if kind == "text" else _kind(match[kind]), *match.span()))
    return found


def _kind(sign: str) -> str:
    return "$$" if sign == "$$$" else sign  # some posts have three dollars


def _groups(tokens: list[Token]) -> tuple[list[int], dict[int, int]]:
    """Return for each token where the innermost text group around it ends, and for each such group its last token."""
    jumps: dict[int, int] = {}
    opened: list[int] = []
    for place, (kind, _, _) in enumerate(tokens):
        if kind in ("{", "text"):
            opened.append(place)
        elif kind == "}" and opened and tokens[first := opened.pop()][0] == "text":
            jumps[first] = place
    limits: list[int] = []
    inside = [len(tokens)]
    for place in range(len(tokens)):
        while inside[-1] <= place:
            inside.pop()
        limits.append(inside[-1])
        if place in jumps:
            inside.append(jumps[place])
    return limits, jumps


def _environment_ends(tokens: list[Token], limits: list[int]) -> dict[int, int]:
    """Return the last token of each environment by its first: an end closes the last of its name in its text group."""
    ends: dict[int, int] = {}
    opened: defaultdict[tuple[int, str], list[int]] = defaultdict(list)
    for place, (kind, _, _) in enumerate(tokens):
        side, _, name = kind.partition(" ")
        begun = opened[limits[place], name]
        if side == "begin":
            begun.append(place)
        elif side == "end" and begun:
            ends[begun.pop()] = place
    return ends


class _Search:
    """The partners of opening tokens; a search that failed once in a group is not repeated there."""

    def __init__(self, text: str, tokens: list[Token], limits: list[int], jumps: dict[int, int]) -> None:
        self.text, self.tokens, self.limits, self.jumps = text, tokens, limits, jumps
        self.environment_ends = _environment_ends(tokens, limits)
        self.absent: set[tuple[str, int]] = set()
        self.dollars = sum(end - start for kind, start, end in tokens if kind[0] == "$")

    def closer(self, at: int) -> int:
        kind, _, start = self.tokens[at]
        if kind.startswith("begin"):
            return self.environment_ends.get(at, -1)
        wanted = _CLOSER.get(kind, "")
        found = self._next(at, wanted) if wanted else -1
        if kind == "$" and (found < 0 or self._is_prose(start, found)):
            self.dollars -= 1
            return -1
        return found

    def after(self, at: int) -> int:
        """Return where to go on after a token that opens nothing: two dollars without partner may be one."""
        kind, _, end = self.tokens[at]
        partner = self._next(at, "$") if kind == "$$" else -1
        if partner < 0:
            return at + 1
        inner = self.text[end : self.tokens[partner][1]]
        if not _MATHS_IN_DELIMITERS.search(inner) and len(_PLAIN_WORD.findall(inner)) > _MANY_WORDS:
            return at + 1
        self.tokens[at] = ("$", end - 1, end)
        return at

    def _next(self, at: int, wanted: str) -> int:
        limit = self.limits[at]
        if (wanted, limit) in self.absent:
            return -1
        place = at + 1
        while place < limit:
            kind = self.tokens[place][0]
            if kind == wanted or wanted == "$" == kind[:1]:
                return place
            place = self.jumps.get(place, place) + 1
        self.absent.add((wanted, limit))
        return -1

    def _is_prose(self, start: int, closer: int) -> bool:
        """Return whether the text between two dollars is money, or prose where one dollar has no partner."""
        end = self.tokens[closer][1]
        inner, following = self.text[start:end], self.text[end + 1 : end + 2]
        if _MATHS_IN_DELIMITERS.search(inner):
            return False
        if _AMOUNT.match(inner):
            ends_open = inner[-1] in _ENDS and _PLAIN_WORD.search(inner) is not None
            return ends_open or (following.isdigit() and not inner[-1].isdigit())
        if self.tokens[closer][0] != "$$" and self.dollars % 2 == 0:
            return False
        n_words = len(_PLAIN_WORD.findall(inner))
        return n_words > _MANY_WORDS or (n_words > 0 and inner[0] in _BEGINS and inner[-1] in _ENDS)


def split_at_formulas(text: str) -> list[str]:
    """Return the parts of a text: prose (possibly empty), LaTeX, prose, ..., prose, without the delimiters."""
    return _cut_at_spans(text, _formula_spans(text))


def _cut_at_spans(text: str, spans: Iterable[Span]) -> list[str]:
    found, last = [], 0
    for start, end, outer, after, _ in spans:
        found += [text[last:outer], text[start:end]]
        last = after
    return [*found, text[last:]]


def split_text(text: str) -> list[str]:
    """Return the parts of a text as `split_at_formulas` does; ["", text, ""] for a formula without delimiters."""
    if is_formal(text):
        return [text]
    spans = list(_formula_spans(text))
    found = _cut_at_spans(text, spans)
    if any(is_plain for *_, is_plain in spans) or not text.strip():
        return found
    outside = "".join(found[::2])
    return ["", text, ""] if is_bare_formula(outside) or not outside.strip() else found


def count_prose_words(text: str) -> int:
    """Return the number of words of prose in a text, without those in arguments of commands.

    >>> count_prose_words(r"where x is the sum of \\text{all} terms")
    6
    """
    return len(_PROSE.findall(_ARGUMENT.sub(" ", text)))


def is_bare_formula(text: str) -> bool:
    """Return whether a text without delimiters is a formula: it has hardly any words, or far more mathematics."""
    if not text.strip() or _LONE_WORD.fullmatch(text):
        return False
    n_words, n_signs = count_prose_words(text), len(_MATHS_IN_DELIMITERS.findall(text))
    is_one = len(text.split(None, 1)) == 1  # "ABC", "a-b" and the like
    return n_words <= max(is_one or n_signs > 0, n_signs // _SIGNS_PER_WORD) and not is_formal(text)


@dataclass(frozen=True, slots=True)
class TextFormulas:
    """The distinct formulas of texts; text i has `numbers[starts[i] : starts[i + 1]]`, positions in `formulas`."""

    formulas: list[str]
    numbers: np.ndarray
    starts: np.ndarray

    @property
    def is_single(self) -> bool:
        """Return whether no text has more than one formula."""
        return bool(np.diff(self.starts).max(initial=0) <= 1)

    def column(self) -> list[str]:
        """Return the formula of each text, empty where there is none; only when no text has several."""
        sizes, first = np.diff(self.starts).tolist(), self.starts.tolist()
        return [self.formulas[self.numbers[at]] if size else "" for size, at in zip(sizes, first, strict=False)]

    def best(self, scores: np.ndarray) -> np.ndarray:
        """Return for each text the largest of the scores of its formulas, 0 for a text without any; float32."""
        found = np.zeros(len(self.starts) - 1, dtype=np.float32)
        filled = np.flatnonzero(np.diff(self.starts))
        if len(filled):
            found[filled] = np.maximum.reduceat(scores[self.numbers], self.starts[filled])
        return found

    def take(self, places: np.ndarray) -> TextFormulas:
        """Return the formulas of the texts at *places*, in that order, with the same numbers."""
        sizes = np.diff(self.starts)[places]
        starts = np.concatenate([[0], np.cumsum(sizes)])
        rows = np.arange(starts[-1]) + np.repeat(self.starts[places] - starts[:-1], sizes)
        return TextFormulas(self.formulas, self.numbers[rows], starts)


@dataclass(frozen=True, slots=True)
class FormulaReader:
    """How a collection's formulas are read: `is_bare`, each text is one; `language`, a proof assistant, has none."""

    is_bare: bool
    language: str = ""

    @classmethod
    def of(cls, collection: Collection, role: str = "document") -> FormulaReader:
        """Return the reader of a collection's documents, or with *role* "query" of its queries."""
        card = collection.card
        if card.task == FORMULA_TASK:
            return cls(is_bare=True)
        of_documents = card.language or formal_language(collection.texts)
        is_bare = not of_documents and are_formulas(card.task, collection.texts)
        if role == "document":
            return cls(is_bare, of_documents)
        return cls(is_bare, card.language or formal_language(collection.query_texts))

    def formulas(self, text: str) -> list[str]:
        """Return the LaTeX of the formulas in a text, as `text_formulas` does; none in a proof assistant's."""
        return [] if self.language else text_formulas(text, self.is_bare)

    def owned(self, texts: Sequence[str]) -> TextFormulas:
        """Return the formulas of *texts*, as `collect_formulas` does."""
        return collect_formulas([""] * len(texts) if self.language else texts, self.is_bare)


def collection_language(collection: Collection) -> str:
    """Return the proof assistant whose language a collection's documents are in, or else its queries; "" for none."""
    return FormulaReader.of(collection).language or FormulaReader.of(collection, "query").language


def count_without_formula(
    queries: Sequence[bool] | np.ndarray, documents: Sequence[bool] | np.ndarray, language: str = ""
) -> dict[str, Any]:
    """Return the attrs of a run about texts without a formula; *queries* and *documents* say which texts have one.

    `note` is there where most queries or documents have none; it names the *language* that was read as words.

    >>> count_without_formula([True, True], [False, False, True])["note"]
    '0 of 2 queries and 2 of 3 documents have no formula'
    >>> count_without_formula([True, True], [True, True, True])
    {'no_formula': {'queries': [0, 2], 'documents': [0, 3]}}
    """
    texts = {"queries": queries, "documents": documents}
    counts = {name: [len(have) - int(np.count_nonzero(have)), len(have)] for name, have in texts.items()}
    found: dict[str, Any] = {"no_formula": counts}
    if any(2 * n_lacking > n_texts for n_lacking, n_texts in counts.values()):
        shares = " and ".join(f"{n:,} of {total:,} {what}" for what, (n, total) in counts.items())
        found["note"] = f"{shares} have no formula{f'; texts in {language} are read as words' if language else ''}"
    return found


def are_formulas(task: str, texts: Sequence[str]) -> bool:
    """Return whether each of a collection's texts is one formula: what the *task* says, else how most of them look."""
    if task:
        return task == FORMULA_TASK
    looked_at = [text for text in texts[:: max(1, len(texts) // _ENOUGH)] if text.strip()]
    alone = sum(
        (bool(_MATHS.search(text)) or len(text.split()) == 1)
        and not _marked_only(text)
        and len(_WORD.findall(text)) <= _MOST_WORDS
        for text in looked_at
    )
    return bool(looked_at) and alone >= _MOST * len(looked_at)


def _marked_only(text: str) -> list[str]:
    """Return the formulas that delimiters mark in a text; none where mathematics stands between them, too."""
    if not any(delimiter in text for delimiter in _DELIMITERS):
        return []
    found, last = marked_formulas(text), 0
    for _, start, end in found:
        before = text[last:start]
        delimiter = _OPENS.search(before)
        if delimiter is None or _MATHS.search(_CLOSES.sub("", before[: delimiter.start()], count=1)):
            return []
        last = end
    return [] if _MATHS.search(_CLOSES.sub("", text[last:], count=1)) else [latex for latex, _, _ in found]


def text_formulas(text: str, bare: bool) -> list[str]:
    r"""Return the LaTeX of the formulas in a text; with *bare* those of a collection whose texts are formulas.

    A bare text is one formula unless delimiters mark its formulas; of "Formula: ... Context: ..." it is the first part.
    Elsewhere only what is marked is a formula.

    >>> text_formulas(r"x^2 + \text{if $x$ is odd}", bare=True), text_formulas("$x$ and $y$", bare=True)
    (['x^2 + \\text{if $x$ is odd}'], ['x', 'y'])
    >>> text_formulas("Formula: a+b Context: Let $a$ be one.", bare=True), text_formulas("Why?", bare=False)
    (['a+b'], [])
    """
    if not bare:
        return [latex for latex, _, _ in marked_formulas(text)]
    if text.startswith("Formula:") and (match := _IN_CONTEXT.fullmatch(text)) is not None:
        text = match["formula"]
    return _marked_only(text) or ([text] if text.strip() else [])


def collect_formulas(texts: Iterable[str], bare: bool) -> TextFormulas:
    """Return the formulas of *texts*, read as `text_formulas` does."""
    return number_formulas(text_formulas(text, bare) for text in texts)


def number_formulas(formulas: Iterable[Sequence[str]]) -> TextFormulas:
    """Return the *formulas* of each text as one table, where each distinct formula stands once."""
    known: dict[str, int] = {}
    numbers: list[int] = []
    starts = [0]
    for of_text in formulas:
        numbers += [known.setdefault(formula, len(known)) for formula in of_text]
        starts.append(len(numbers))
    return TextFormulas(list(known), np.array(numbers, dtype=np.int64), np.array(starts, dtype=np.int64))
