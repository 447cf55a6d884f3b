r"""formulas: rewritings of a LaTeX formula, each checked by its values: `a+b` as `b+a`, `\frac{a}{b}` as `a/b`.

A rule proposes changes of the source at an operation; only those are kept whose formula has the same values at random
points (rules that keep the meaning) or other values (rules that change it). So letters stand for numbers: a formula
about matrices or groups has no values of its own, and letters that are often such things are left out by the rules.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import numpy as np

from mirblab.formula.latex.parser import parse_latex
from mirblab.formula.operators import operator_tree
from mirblab.formula.rewriting.evaluation import are_equal, evaluate_latex
from mirblab.formula.tree import Tree
from mirblab.sources.hard_negatives import Change

Span = tuple[int, int]
_BRACKET = re.compile(
    r"(?P<escaped>\\[{}\\])|(?P<open>\\left\s*[(\[]|\\[bB]igg?l?\s*[(\[]|[({\[])|"
    r"(?P<close>\\right\s*[)\]]|\\[bB]igg?r?\s*[)\]]|[)}\]])"
)
_BLANK = r"(?:\s|\\[,;:! ]|~)*"
_PLUS = re.compile(rf"{_BLANK}\+{_BLANK}")
_SIGN = re.compile(rf"{_BLANK}(?:\\cdot(?![a-zA-Z])|\\times(?![a-zA-Z])|\*){_BLANK}")
_JUXTAPOSED = re.compile(_BLANK)
_SLASH = re.compile(rf"{_BLANK}/{_BLANK}")
_FRACTION = re.compile(r"\\[dt]?frac(?![a-zA-Z])\s*")
_ROOT = re.compile(r"\\sqrt\s*(?=\{)")
_POWER = re.compile(r"\s*\^\s*")
_SIDES = re.compile(
    rf"{_BLANK}(?P<sign>=|(?<!\\)[<>]|\\(?:leq?|geq?|leqslant|geqslant|lt|gt|neq?)(?![a-zA-Z])){_BLANK}"
)
_COMMAND_END = re.compile(r"\\[a-zA-Z]+\Z")
_TURNED = {"<": ">", r"\le": r"\ge", r"\leq": r"\geq", r"\leqslant": r"\geqslant", r"\lt": r"\gt"}
_TURNED |= {other: one for one, other in _TURNED.items()}
_OTHER_STRICTNESS = {"<": r"\le", ">": r"\ge", r"\lt": r"\le", r"\gt": r"\ge",
                     **dict.fromkeys((r"\le", r"\leq", r"\leqslant"), "<"),
                     **dict.fromkeys((r"\ge", r"\geq", r"\geqslant"), ">")}  # fmt: skip
# Products of these may not commute (matrices, sets, maps, permutations), or they are no factors (f(x), dx).
_NO_NUMBERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZdfghu")
_NO_NUMBER = re.compile(r"\\(?:phi|varphi|psi|sigma|tau|pi|rho|Phi|Psi|Delta|Gamma)(?![a-zA-Z])")
_COMMAND = re.compile(r"\\[a-zA-Z]+")
# Names of functions that are written as letters, as in sinx.
_NAME = re.compile(
    r"(?<!\\)(?<![A-Za-z])(?:arc)?(?:sin|cos|tan|cot|sec|csc|log|ln|exp|lim|max|min|sup|inf|det|dim|ker|gcd|mod)"
)
_INVERSE = re.compile(r"\^\s*\{\s*-")
_HALF = re.compile(r"\{\s*(?:1\s*/\s*2|\\[dt]?frac\s*\{?\s*1\s*\}?\s*\{?\s*2\s*\}?)\s*\}")
_MINUS_ONE = re.compile(r"\{\s*-\s*1\s*\}")
_BIG_O = re.compile(r"(?:\\math(?:cal|rm)\s*)?\{?\s*[oO]\s*\}?\s*(?:\\left|\\[bB]igg?l?)?\s*[({]")
_ATOM = re.compile(r"\d+|[A-Za-z]|\\[a-zA-Z]+|[A-Za-z](?:_(?:\w|\{\w+\}))?(?:\^(?:\w|\{\w+\}))?")


class Source:
    """A formula and its operator tree, with the part of the source that each operation covers."""

    def __init__(self, latex: str, tree: Tree) -> None:
        self.latex, self.tree = latex, tree
        self.below: list[list[int]] = [[] for _ in tree.labels]
        for node, parent in enumerate(tree.parents):
            if parent >= 0:
                self.below[parent].append(node)
        self.pairs = _bracket_pairs(latex)
        self.inner = self._covered()

    def _covered(self) -> list[Span]:
        inner = [(start, end) if end > 0 else (len(self.latex), 0) for start, end in self.tree.spans]
        for node in range(len(inner) - 1, -1, -1):
            for each in self.below[node]:
                inner[node] = min(inner[node][0], inner[each][0]), max(inner[node][1], inner[each][1])
            inner[node] = self._balanced(inner[node])
        return inner

    def _balanced(self, span: Span) -> Span:
        """Return the span with the partner of each bracket in it."""
        start, end = span
        for (one, one_end), (other, other_end) in self.pairs:
            if (start <= one < end) != (start <= other < end):
                start, end = min(start, one), max(end, other_end)
                return self._balanced((start, end)) if one_end > one else (start, end)
        return start, end

    def outer(self, node: int) -> Span:
        """Return the span of an operation with the brackets around it alone."""
        start, end = self.inner[node]
        for (one, one_end), (other, other_end) in self.pairs:  # inner pairs come first
            is_around = one_end <= start and end <= other
            if is_around and not (self.latex[one_end:start] + self.latex[end:other]).strip():
                start, end = one, other_end
        limit = self.inner[self.tree.parents[node]] if node else (0, len(self.latex))
        return (start, end) if limit[0] <= start and end <= limit[1] else self.inner[node]

    def text(self, span: Span) -> str:
        """Return the source in a span."""
        return self.latex[span[0] : span[1]]

    def operands(self, label: str, gap: re.Pattern[str]) -> Iterator[tuple[int, list[Span]]]:
        """Yield each operation *label* whose operands stand side by side with only a *gap* between neighbours."""
        for node, name in enumerate(self.tree.labels):
            if name == label and len(self.below[node]) > 1:
                spans = [self.outer(each) for each in self.below[node]]
                between = zip(spans, spans[1:], strict=False)
                if all(one[1] <= other[0] and gap.fullmatch(self.text((one[1], other[0]))) for one, other in between):
                    yield node, spans


def _bracket_pairs(latex: str) -> list[tuple[Span, Span]]:
    """Return the spans of opening and closing bracket of each pair, a pair before those around it."""
    waiting, pairs = list[Span](), list[tuple[Span, Span]]()
    for match in _BRACKET.finditer(latex):
        if match["open"]:
            waiting.append(match.span())
        elif match["close"] and waiting:
            pairs.append((waiting.pop(), match.span()))
    return pairs


def commute_sums(source: Source) -> Iterator[Change]:
    """Yield `a + b` as `b + a`, for each two neighbours of a sum."""
    for _, spans in source.operands("U!plus", _PLUS):
        for one, other in zip(spans, spans[1:], strict=False):
            if source.text(one)[0] not in "+-":
                yield _exchanged(source, one, other)


def commute_products(source: Source) -> Iterator[Change]:
    r"""Yield `a \cdot b` as `b \cdot a` and `ab` as `ba`, for numbers and letters that are usually numbers."""
    if _INVERSE.search(source.latex):
        return
    names = list(_NAME.finditer(source.latex))
    for gap in (_SIGN, _JUXTAPOSED):
        for node, spans in source.operands("U!times", gap):
            texts = [source.text(span) for span in spans]
            is_size = node == 0 and len(spans) == 2 and r"\times" in source.latex
            if is_size or any(_may_not_commute(text) or text[0] in "+-" for text in texts):
                continue
            for one, other in zip(spans, spans[1:], strict=False):
                is_digit = gap is _JUXTAPOSED and any(source.text(each)[0].isdigit() for each in (one, other))
                is_call = gap is _JUXTAPOSED and source.text(other)[0] in "(["
                is_name = gap is _JUXTAPOSED and any(one[0] < name.end() and name.start() < other[1] for name in names)
                if not (is_digit or is_call or is_name):
                    yield _exchanged(source, one, other)


def turn_relations(source: Source) -> Iterator[Change]:
    r"""Yield `a = b` as `b = a` and `a < b` as `b > a` where the formula is one relation."""
    if source.tree.labels[0] in ("U!eq", "U!neq", "O!lt", "O!gt", "O!leq", "O!geq"):
        for _, (one, other) in source.operands(source.tree.labels[0], _SIDES):
            gap = source.text((one[1], other[0]))
            sign = gap.strip()
            turned = gap.replace(sign, _TURNED.get(sign, sign))
            yield _change(source, one[0], other[1], [source.text(other), turned, source.text(one)])


def reassociate(source: Source) -> Iterator[Change]:
    r"""Yield `a + b + c` as `a + (b + c)`, and so for products with a sign."""
    for label, gap in (("U!plus", _PLUS), ("U!times", _SIGN)):
        for _, spans in source.operands(label, gap):
            if len(spans) > 2 and not (label == "U!times" and any(map(_may_not_commute, map(source.text, spans)))):
                start, end = spans[-2][0], spans[-1][1]
                yield Change(start, end, f"({source.text((start, end))})")


def inline_fractions(source: Source) -> Iterator[Change]:
    r"""Yield `\frac{a}{b}` as `a/b`, with the brackets that it needs; derivatives and mixed numbers stay."""
    for node, whole, above, below in _fractions(source):
        if source.latex[: whole[0]].rstrip()[-1:].isdigit() and (above + below).isdigit():
            continue
        parent = source.tree.labels[source.tree.parents[node]] if node else ""
        new = f"{_bracketed(above)}/{_bracketed(below)}"
        is_alone = parent in ("", "U!eq", "O!lt", "O!leq", "O!gt", "O!geq", "U!plus") or source.outer(node) != whole
        yield Change(*whole, new if is_alone else f"({new})")


def build_fractions(source: Source) -> Iterator[Change]:
    r"""Yield `a/b` as `\frac{a}{b}`, unless a factor follows, as in `a/bc`; `K/k` and `R/I` are often no quotients."""
    for node, (one, other) in source.operands("O!divide", _SLASH):
        parent = source.tree.labels[source.tree.parents[node]] if node else ""
        texts = [source.text(each) for each in (one, other)]
        if parent not in ("U!times", "O!divide", "O!SUP") and not any(map(_may_not_commute, texts)):
            numerator, denominator = (source.text(source.inner[each]) for each in source.below[node])
            yield Change(one[0], other[1], rf"\frac{{{numerator}}}{{{denominator}}}")


def write_roots_as_powers(source: Source) -> Iterator[Change]:
    r"""Yield `\sqrt{a}` as `a^{1/2}` with the brackets that it needs."""
    for node, label in enumerate(source.tree.labels):
        match = _ROOT.match(source.latex, source.inner[node][0]) if label == "O!root" else None
        if match and (argument := source.outer(source.below[node][0]))[0] == match.end():
            inside = source.latex[argument[0] + 1 : argument[1] - 1].strip()
            base = inside if re.fullmatch(r"\d+|[A-Za-z]|\\[a-zA-Z]+", inside) else f"({inside})"
            yield Change(match.start(), argument[1], base + "^{1/2}")


def write_powers_as_roots(source: Source) -> Iterator[Change]:
    r"""Yield `a^{1/2}` as `\sqrt{a}`, and `2^{-1}` or `(1+x)^{-1}` as `\frac{1}{...}`.

    A letter to the power -1 stays, because it may be the inverse of a map, a matrix or an element of a group.
    """
    for node, (base, exponent) in source.operands("O!SUP", _POWER):
        inner = source.text(source.inner[source.below[node][0]])
        is_number = inner.isdigit() or source.tree.labels[source.below[node][0]] in ("U!plus", "O!minus")
        if _HALF.fullmatch(source.text(exponent)):
            yield Change(base[0], exponent[1], rf"\sqrt{{{inner}}}")
        elif is_number and _MINUS_ONE.fullmatch(source.text(exponent)) and not _may_not_commute(inner):
            yield Change(base[0], exponent[1], rf"\frac{{1}}{{{inner}}}")


def exchange_signs(source: Source) -> Iterator[Change]:
    """Yield a sum as a difference and a difference as a sum, at the last sign of each, but not before O(x) and o(x)."""
    for node, label in enumerate(source.tree.labels):
        if label in ("U!plus", "O!minus") and len(source.below[node]) > 1:
            left, right = (source.outer(each) for each in source.below[node][-2:])
            gap = source.text((left[1], right[0]))
            if gap.strip() in ("+", "-") and not _BIG_O.match(source.text(right)):
                place = left[1] + len(gap) - len(gap.lstrip())
                yield Change(place, place + 1, "-" if gap.strip() == "+" else "+")


def exchange_strictness(source: Source) -> Iterator[Change]:
    r"""Yield `<` as `\le` and `\le` as `<`, and so for greater."""
    for match in _SIDES.finditer(source.latex):
        if match["sign"] in _OTHER_STRICTNESS:
            new = _OTHER_STRICTNESS[match["sign"]]
            yield _change(source, *match.span("sign"), [new])


def invert_fractions(source: Source) -> Iterator[Change]:
    r"""Yield `\frac{a}{b}` as `\frac{b}{a}`; derivatives stay."""
    for _, whole, above, below in _fractions(source):
        command = source.latex[whole[0] : source.latex.index("{", whole[0])]
        yield Change(*whole, f"{command}{{{below}}}{{{above}}}")


def exchange_powers(source: Source) -> Iterator[Change]:
    """Yield `a^{n}` as `n^{a}` where both are a letter or a number."""
    for _, (base, exponent) in source.operands("O!SUP", _POWER):
        texts = [source.text(each).strip("{} ") for each in (base, exponent)]
        if all(re.fullmatch(r"\d+|[A-Za-z]|\\[a-zA-Z]+", text) for text in texts) and not texts[0].isupper():
            yield _change(source, base[0], exponent[1], [f"{texts[1]}^{{{texts[0]}}}"])


KEEPING: dict[str, Callable[[Source], Iterator[Change]]] = {
    "sum-commuted": commute_sums,
    "product-commuted": commute_products,
    "relation-turned": turn_relations,
    "reassociated": reassociate,
    "fraction-inlined": inline_fractions,
    "fraction-built": build_fractions,
    "root-as-power": write_roots_as_powers,
    "power-as-root": write_powers_as_roots,
}
CHANGING: dict[str, Callable[[Source], Iterator[Change]]] = {
    "plus-minus": exchange_signs,
    "strictness-changed": exchange_strictness,
    "fraction-inverted": invert_fractions,
    "power-exchanged": exchange_powers,
}

_OF_AXIOMS = ("sum-commuted", "product-commuted", "reassociated")
_ZERO = 1e-8


def rewrite_formula(latex: str, rule: str) -> list[str]:
    r"""Return the formulas that a *rule* of `KEEPING` or `CHANGING` makes of one, checked by their values.

    Empty where the rule does not apply, where the formula has no known value (`evaluation.evaluate_latex`), and where
    the values do not confirm the rule.

    >>> rewrite_formula(r"\frac{a+b}{2} = c", "fraction-inlined"), rewrite_formula("x < y", "strictness-changed")
    (['(a+b)/2 = c'], ['x \\le y'])
    """
    find, keeps = (KEEPING[rule], True) if rule in KEEPING else (CHANGING[rule], False)
    before = evaluate_latex(latex)
    if before is None:
        return []
    tree = operator_tree(parse_latex(latex))
    if not tree.spans:
        return []
    found = dict.fromkeys(latex[: one.start] + one.new + latex[one.end :] for one in find(Source(latex, tree)))
    if rule in _OF_AXIOMS and any(not (np.abs(part.values) > _ZERO).any() for part in before):
        return []  # xy = yx says that x and y commute, and is not to become xy = xy
    return [new for new in found if new != latex and are_equal(before, evaluate_latex(new)) is keeps]


def _fractions(source: Source) -> Iterator[tuple[int, Span, str, str]]:
    """Yield node, span, numerator and denominator of each fraction of two groups in braces that is no derivative."""
    for node, label in enumerate(source.tree.labels):
        match = _FRACTION.match(source.latex, source.inner[node][0]) if label == "O!divide" else None
        if match:
            one, other = (source.outer(each) for each in source.below[node])
            groups = [source.text(each) for each in (one, other)]
            if one[0] == match.end() and all(text[0] == "{" and text[-1] == "}" for text in groups):
                above, below = (text[1:-1].strip() for text in groups)
                if not _is_derivative(above + below):
                    yield node, (match.start(), other[1]), above, below


def _may_not_commute(text: str) -> bool:
    return bool(_NO_NUMBER.search(text)) or not _NO_NUMBERS.isdisjoint(_COMMAND.sub("", text))


def _is_derivative(text: str) -> bool:
    return r"\partial" in text or "d" in _COMMAND.sub("", text)


def _bracketed(text: str) -> str:
    return text if _ATOM.fullmatch(text) else f"({text})"


def _exchanged(source: Source, one: Span, other: Span) -> Change:
    gap = source.text((one[1], other[0]))
    return _change(source, one[0], other[1], [source.text(other), gap, source.text(one)])


def _change(source: Source, start: int, end: int, pieces: list[str]) -> Change:
    r"""Return the change to all *pieces* in a row, with a blank where a command would run into a letter."""
    new = ""
    for piece in pieces:
        new += " " * bool(_COMMAND_END.search(new) and piece[:1].isalpha()) + piece
    new = " " * bool(_COMMAND_END.search(source.latex[:start]) and new[:1].isalpha()) + new
    return Change(start, end, new + " " * bool(_COMMAND_END.search(new) and source.latex[end : end + 1].isalpha()))
