"""logic: statements contraposed, said with a definition in place of its term, or for one value of a variable."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from random import Random
from typing import Any, Literal

from mirblab.core.errors import MirblabError
from mirblab.core.registry import check_table, entry_file, read_registry
from mirblab.sources.hard_negatives import HIDDEN, Change, fit_article, mask_formulas

_H = f"{HIDDEN}+"  # a formula with its delimiters, every character hidden
_CONDITIONAL = re.compile(
    r"(?:\A|(?<=[.?!] )|(?<=\n))(?P<begin>(?:If|(?:Suppose|Assume)(?: that)?) )(?P<one>[^.;:?!\n]{1,240}?)"
    r"(?P<middle>\s?,? then |\s?\. Then )(?P<other>[^.;:?!\n]{1,240}?)(?=\s?(?:\.(?:\s|\Z)|\Z))"
)
# The sentence before is read in this one, so that it has to stay as it is.
_REFERS = re.compile(
    r"\s?\.\s+(?:Conversely|The converse|In (?:this|that|particular)|Moreover|Furthermore|Hence|Thus|Therefore|So|Then|"
    r"This|That|It|Its|They|These|Those|Also|But|However|And|Or|Otherwise|If not|Similarly|Likewise|The same|Here)\b"
)
_SUBJECT = rf"(?:{_H}|the (?:{_H}-)?(?:[a-z]+ ){{1,3}}(?:of )?{_H})"
_IS = re.compile(rf"(?P<subject>{_SUBJECT}) is (?P<no>not )?(?P<rest>.+)")
_PAIR_IS = re.compile(
    rf"(?P<subject>{_H} and {_H}) are (?P<no>not )?(?P<rest>(?:coprime|relatively prime|isomorphic|homeomorphic|"
    rf"homotopic|conjugate|disjoint|equivalent|linearly independent|independent|similar)(?: (?:in|over) {_H})?)"
)
_HAS = re.compile(rf"(?P<subject>{_SUBJECT}) has (?P<article>an?|no) (?P<rest>.+)")
_VERB = {
    f"{verb}{end}": verb
    for end, verbs in {"s": "divide contain commute belong lie generate converge diverge split preserve factor",
                       "es": "vanish"}.items()
    for verb in verbs.split()
}  # fmt: skip
_DOES = re.compile(rf"(?P<subject>{_SUBJECT}) (?:(?P<verb>{'|'.join(_VERB)})|does not (?P<base>[a-z]+))(?P<rest>.*)")
# Words whose place in the clause says what is negated, and words that take up another clause.
_SCOPE = re.compile(
    r"\b(?:and|or|either|neither|nor|both|any|every|everywhere|each|all|some|no|none|only|least|most|exactly|also|then|"
    r"still|already|always|never|too|itself|just|hence|therefore|thus|automatically|necessarily|unique|uniquely|same|"
    r"but|if|iff|unless|whenever|when|where|that|which|whose|for|such|with|well|again|one|two|three|called|denoted|"
    r"said|defined|given|fact|its|their|this|these|those|other|more|so|not|we|let|as|there|almost|clearly|obviously|"
    r"number|property|ref|assumed|known|true|false|possible|because)\b"
    r"|[(),\[\]\"*`]"
)
_CAPITAL = re.compile(
    r"\b(?!(?:Noetherian|Artinian|Hausdorff|Cohen|Macaulay|Jacobson|Gorenstein|Galois|Hermitian|Zariski|Euclidean|"
    r"Banach|Hilbert|Boolean|Lipschitz|Borel|Lebesgue|Riemann|Nagata|Dedekind|Karoubian|Koszul|Abelian|Archimedean|Lie|"
    r"Sylow|Frobenius|Cauchy)\b)[A-Z][\w]*"
)
_RELATION = re.compile(
    r"[=<>:∈≤≥≠]|\\(?:leq?|geq?|leqslant|geqslant|lt|gt|neq?|in|ni|notin|mid|nmid|(?:sub|sup)set\w*|cong|equiv|sim|simeq|"
    r"approx|prec\w*|succ\w*|(?:long)?mapsto|forall|exists|text|mbox|[lc]?dots|q?quad|iff|implies|Rightarrow|wedge|"
    r"vee|land|lor|neg|not|to|pm|longrightarrow|rightarrow|not|ll|gg|propto|parallel|perp|coloneqq)(?![a-zA-Z])"
)
_ARROWS = frozenset((r"\to", r"\rightarrow", r"\longrightarrow"))
_NEGATION = {
    "=": r"\neq", r"\neq": "=", r"\ne": "=", "≠": "=", r"\in": r"\notin", r"\notin": r"\in", "∈": r"\notin",
    r"\mid": r"\nmid", r"\nmid": r"\mid", r"\cong": r"\not\cong", r"\equiv": r"\not\equiv",
}  # fmt: skip
_ORDER = {"<": r"\geq", r"\lt": r"\geq", ">": r"\leq", r"\gt": r"\leq", "≤": ">", "≥": "<",
          **dict.fromkeys((r"\leq", r"\le", r"\leqslant"), ">"),
          **dict.fromkeys((r"\geq", r"\ge", r"\geqslant"), "<")}  # fmt: skip
# Where not less does not mean greater or equal.
_NOT_TOTAL = re.compile(r"\border(?:s|ed|ing|ings)?\b|poset|lattice|partial|subgroup|matri|operator|complex", re.I)
_NAME = re.compile(
    r"\\(?:alpha|beta|gamma|delta|epsilon|varepsilon|zeta|eta|theta|kappa|lambda|mu|nu|xi|rho|sigma|tau|phi|varphi|chi|"
    r"psi|omega|Gamma|Delta|Theta|Lambda|Xi|Sigma|Phi|Psi|Omega)(?![a-zA-Z])|\\[a-zA-Z]+(?P<letter>)|[a-zA-Z]"
)


def contrapose(text: str) -> list[str]:
    r"""Return the texts in which one "If P, then Q." has become "If not Q, then not P.", as "Suppose P. Then Q." too.

    P and Q are negated where that is certain: "is", "has a", a few verbs, and formulas with one relation of `=`, `\in`,
    `\mid`, `\cong`, or an order of real numbers. "P and R" becomes "not P or not R". A sentence stays when a clause has
    a quantifier, a second clause or a pronoun without a clear noun, when Q needs what P introduces, or when the next
    sentence refers to it.

    >>> contrapose("Let $n$ be an integer. If $n^2$ is even, then $n$ is even.")
    ['Let $n$ be an integer. If $n$ is not even, then $n^2$ is not even.']
    """
    masked, found = mask_formulas(text), list[str]()
    for match in _CONDITIONAL.finditer(masked):
        (start, end), (first, last) = match.span("one"), match.span("other")
        turned = _turned(text[: match.start()], text[start:end], text[first:last])
        if turned and not _REFERS.match(masked, match.end()):
            found.append(text[:start] + turned[0] + text[end:first] + turned[1] + text[last:])
    return found


def _turned(before: str, condition: str, conclusion: str) -> tuple[str, str] | None:
    """Return the negated conclusion and the negated condition, or None where one is not certain."""
    masked = mask_formulas(condition)
    if conclusion.startswith("it "):
        subject = re.match(rf"{_H}(?= is (?:not )?[a-z -]+\Z)", masked)
        is_clear = re.fullmatch(r"(?:Let [^.]*\.\s+)*", mask_formulas(before))  # no other thing that "it" may be
        if not subject or not is_clear or re.search(r"\b(?:an?|the)\b", masked):
            return None
        conclusion = condition[: subject.end()] + conclusion.removeprefix("it")
    is_total = not _NOT_TOTAL.search(before + condition + conclusion)
    parts, both = [condition], re.split(r",? and ", masked)
    if len(both) == 2 and negate_clause(condition, is_total) is None:
        parts = [condition[: len(both[0])], condition[-len(both[1]) :]]
    if any(not _introduced(part, len(parts)) <= _names(before) for part in parts):
        return None
    negated = [negate_clause(part, is_total) for part in (conclusion, *parts)]
    if None in negated or not _names(conclusion) <= _names(before + condition):
        return None
    return str(negated[0]), " or ".join(str(part) for part in negated[1:])


def _introduced(part: str, n_parts: int) -> set[str]:
    """Return the letters whose meaning a condition gives: "$x$ is a", or an element where there are more conditions."""
    if match := re.match(rf"{_H}(?= is an? )", mask_formulas(part)):
        return _names(part[: match.end()])
    match = re.match(r"\$[^$=<>]*(?=\\in(?![a-zA-Z]))", part)
    return _names(match[0] + "$") if match and n_parts > 1 else set()


def negate_clause(clause: str, is_total: bool = True) -> str | None:
    r"""Return the negation of one *clause*, or None where it is not certain; *is_total*: not less is greater or equal.

    >>> negate_clause("$G$ has a normal subgroup"), negate_clause("$x < y$"), negate_clause("some $x$ is even")
    ('$G$ has no normal subgroup', '$x \\geq y$', None)
    """
    masked = mask_formulas(clause)
    if re.fullmatch(_H, masked):
        return _negated_formula(clause, is_total)
    match = next((one for each in (_IS, _PAIR_IS, _HAS, _DOES) if (one := each.fullmatch(masked))), None)
    if match is None:
        return None
    rest = re.sub(r"\Aan? ", "", match["rest"])
    formulas = [clause[slice(*one.span())] for one in re.finditer(_H, masked)]
    is_thing = rest != match["rest"] or match.re is _HAS
    if is_thing and re.search(rf"(?<! of)(?<! in)(?<! on)(?<! at)(?<! to)(?<! over) {HIDDEN}", rest):
        return None  # "has a limit $L$" says what L is
    has_scope = _SCOPE.search(match["subject"].replace(" and ", " ") + " " + rest) or re.search(r"\ban?\b", rest)
    if has_scope or _CAPITAL.search(masked) or not all(_is_term(one) for one in formulas):
        return None
    start, place = match.start("rest"), match.end("subject")
    groups = match.groupdict()
    if "article" in groups:
        if re.search(r"(?<![sui])s\b", rest):
            return None  # "no zeros" has no singular
        article = "no " if match["article"] != "no" else fit_article("a", rest)
        return clause[: match.start("article")] + article + clause[match.end("article") + 1 :]
    if "verb" in groups:
        if match["base"]:
            third = next((form for form, verb in _VERB.items() if verb == match["base"]), None)
            return third and clause[:place] + " " + third + clause[start:]
        return clause[:place] + f" does not {_VERB[match['verb']]}" + clause[start:]
    verb = masked[place : match.start("no") if match["no"] else start]
    return clause[:place] + verb + ("" if match["no"] else "not ") + clause[start:]


def _negated_formula(formula: str, is_total: bool) -> str | None:
    inner = formula.strip("$")
    outside = _blank_brackets(inner)
    relations = list(_RELATION.finditer(outside))
    if formula[:1] != "$" or len(relations) != 1 or re.search(r"[,;.]|\\not", outside):
        return None
    (start, end), sign = relations[0].span(), relations[0][0]
    new = _NEGATION.get(sign)
    if sign in _ORDER and is_total and not re.search(r"\\infty|[A-Z]", inner):
        new = _ORDER[sign]
    if new is None or not inner[:start].strip() or not inner[end:].strip():
        return None
    gap = " " * (new[-1].isalpha() and inner[end].isalpha())
    marks = formula[: len(formula) - len(formula.lstrip("$"))]
    return marks + inner[:start] + new + gap + inner[end:] + marks


def _is_term(formula: str) -> bool:
    """Return whether a formula names one thing: no relation or list outside of brackets, but an arrow may be a map."""
    outside = _blank_brackets(formula.strip("$"))
    return "," not in outside and all(one[0] in _ARROWS for one in _RELATION.finditer(outside))


def _blank_brackets(latex: str) -> str:
    """Return LaTeX of the same length with blanks for all that stands in brackets or braces."""
    signs, depth = list(latex), 0
    for match in re.finditer(r"\\?[()\[\]{}]|\\?.", latex, re.DOTALL):
        mark = match[0][-1]
        depth -= mark in ")]}"
        if depth > 0 or mark in "()[]{}":
            signs[match.start() : match.end()] = " " * len(match[0])
        depth += mark in "([{"
    return "".join(signs)


def _names(text: str) -> set[str]:
    """Return the Latin and Greek letters in the formulas of a text."""
    masked = mask_formulas(text)
    inside = "".join(sign if hidden == HIDDEN else " " for sign, hidden in zip(text, masked, strict=True))
    return {match[0] for match in _NAME.finditer(inside) if match["letter"] is None}


_DETERMINER = r"\b(?P<determiner>[Aa]n?|[Tt]he|[Ee]very|[Ee]ach|[Aa]ny|[Ss]ome|[Nn]o) "
_ADJECTIVES = (
    r"(?P<adjectives>(?:(?:finite|infinite|countable|given|non-?trivial|non-?zero|non-?empty|commutative|Noetherian|"
    r"proper|square|real|positive|arbitrary) )*)"
)
_PLACE = rf"(?P<place> (?:of|in|on) {_H})?"
_NOUN_ENDS = r"(?=\s?[.,;:?)]|\s?\Z|\n| (?:is(?! one| an? )|has|then|be|we|there|satisfies|contains)\b)"
_CLAUSE_BEGINS = (
    r"(?:\A|(?<=[.?!;:] )|(?<=\n)|(?<=\b[Ii]f )|(?<=\bthat )|(?<=\b[Tt]hen )|(?<=\bwhere )|(?<=\b[Ww]henever )|"
    r"(?<=\b[Ss]ince )|(?<=\b[Ss]uppose )|(?<=\b[Aa]ssume )|(?<=\bbecause )|(?<=\bwhen ))"
)
_CLAUSE_ENDS = (
    rf"(?=\s?[.;?)]|\s?\Z|\s?,(?= (?:{HIDDEN}|(?:and )?then|we|there|the|so|hence|prove|show)\b)|"
    r" (?:if|iff|then|whenever|when)\b)"
)
# What a letter stands for by custom, where the sense of a term depends on it.
_SUBJECTS = {
    "map": r"(?:[fghuv]|\\(?:phi|varphi|psi|alpha|beta|pi)|.*\\to)(?![a-zA-Z])",
    "number": r"[a-cnmklpqNxy](?:\^|_|\Z|[+\-])",
    "structure": r"[A-Z](?![a-z])",
    "matrix": r"[A-Z](?:_|\^|\Z)",
}


_FIELDS: dict[str, Any] = dict.fromkeys("noun noun_becomes clause clause_becomes where never".split(), str)
_FIELDS["subject"] = Literal["map", "number", "structure", "matrix"]
_BLANKS = dict.fromkeys(("noun", "name", "place", "other"), "")  # what a wording may have in braces


def expand_definitions(text: str) -> list[str]:
    """Return the texts in which one term of `registry/definitions.toml` is replaced by its definition.

    A noun is replaced after an article, with its name and place ("a closed subset $Z$ of $X$"), and a clause ("$f$ is
    injective") where it is a whole one; both only before a pause or a verb, so that nothing else is taken for part of
    the definition.

    >>> expand_definitions("Let $G$ be an abelian group.")
    ['Let $G$ be a group in which any two elements commute.']
    """
    masked = mask_formulas(text)
    changes = [
        change
        for name, entry in read_registry("definitions").items()
        for change in _expansions(text, masked, _checked(name, entry))
    ]
    return [text[: one.start] + one.new + text[one.end :] for one in changes]


def _checked(name: str, entry: Mapping[str, Any]) -> dict[str, str]:
    def where(_: str) -> str:
        return f"the definition '{name}' in {entry_file('definitions', name)}"

    checked, field = check_table(where, entry, _FIELDS), ""
    for part in ("noun", "clause"):
        if (part in checked) != (f"{part}_becomes" in checked):
            raise MirblabError(f"{where('')} has only one of {part} and {part}_becomes; write both or neither")
    try:
        for field in checked:
            re.compile(checked[field]) if not field.endswith("_becomes") else checked[field].format(**_BLANKS)
    except (re.error, KeyError, ValueError, IndexError, AttributeError) as error:
        raise MirblabError(
            f"{where('')}: {field} is {checked[field]!r:.80}, which cannot be read ({error}); write a regular "
            f"expression, or a wording with {', '.join(f'{{{blank}}}' for blank in _BLANKS)}"
        ) from error
    return checked


def _expansions(text: str, masked: str, entry: Mapping[str, str]) -> Iterator[Change]:
    if "where" in entry and not re.search(entry["where"], text, re.IGNORECASE):
        return
    if "never" in entry and re.search(entry["never"], text, re.IGNORECASE):
        return
    yield from _noun_expansions(text, masked, entry)
    yield from _clause_expansions(text, masked, entry)


def _noun_expansions(text: str, masked: str, entry: Mapping[str, str]) -> Iterator[Change]:
    if "noun" not in entry:
        return
    place = _PLACE if "{place}" in entry["noun_becomes"] else ""
    pattern = rf"{_DETERMINER}{_ADJECTIVES}(?P<noun>{entry['noun']})(?P<name> {_H})?{place}{_NOUN_ENDS}"
    for match in re.finditer(pattern, masked):
        named = {field: text[slice(*match.span(field))] for field in match.groupdict() if match[field]}
        outside = _blank_brackets(named.get("name", "").strip(" $"))
        is_one = match["determiner"].lower() in ("a", "an", "some")
        if "," in outside or "=" in outside or (match["name"] and not is_one):
            continue  # "the local ring $A$" is one by another sentence
        parts = {"name": "", "place": "", **named, "noun": named["noun"].split()[-1]}
        new = match["adjectives"] + entry["noun_becomes"].format(**parts)
        is_indefinite = match["determiner"].lower() in ("a", "an")
        determiner = fit_article(match["determiner"], new) if is_indefinite else match["determiner"] + " "
        yield Change(*match.span(), determiner + new)


def _clause_expansions(text: str, masked: str, entry: Mapping[str, str]) -> Iterator[Change]:
    if "clause" not in entry:
        return
    becomes = entry["clause_becomes"]
    other = rf"and (?P<other>{_H}) " if "{other}" in becomes else ""
    place = rf"(?P<place> in {_H})?" if "{place}" in becomes else ""
    pattern = rf"{_CLAUSE_BEGINS}(?P<name>{_H}) {other}{entry['clause']}{place}{_CLAUSE_ENDS}"
    for match in re.finditer(pattern, masked):
        named = {field: text[slice(*match.span(field))] for field in match.groupdict() if match[field]}
        formulas = [named[field] for field in ("name", "other") if field in named]
        subject = re.compile(_SUBJECTS.get(entry.get("subject", ""), ""))
        if all(_is_term(one) and subject.match(one.strip("$ ")) for one in formulas):
            new = becomes.format(**{"place": "", **named})
            yield Change(*match.span(), new[0].upper() + new[1:] if _begins_sentence(masked, match.start()) else new)


def _begins_sentence(masked: str, place: int) -> bool:
    return not masked[:place].strip() or masked[:place].rstrip()[-1] in ".?!"


_LETTER = r"(?P<letter>[a-zA-Z]|\\(?:varepsilon|epsilon|delta|alpha|lambda)(?![a-zA-Z]))"
_BOUND = r"(?:\s*(?P<sign>>|\\geq?|\\gt|≥|\\geqslant)\s*(?P<bound>\d))?"
_NOT_MORE = r"(?!\s*(?:[_^]|\\(?:cup|cap|setminus|times)(?![a-zA-Z])|-))"
# No second variable, and no condition on the values: "for all primes $p$ dividing $n$" is not true of p = 5 alone.
_ALONE = (
    r"(?! and \$|\s?,?\s?(?:that|which|whose|with|such|dividing|not|greater|less|of|coprime|relatively|prime|odd|"
    r"even|satisfying|where|for which|integer|but|except)\b)"
)
_KINDS = (
    r"(?:positive |non-?negative |natural |real |rational |complex |odd |even |prime )?"
    r"(?:integer|number|prime)s?"
)
_FOR_ALL = r"(?P<begin>\b[Ff]or )(?:every|all|each|any) "
_POSITIVE = r"(?P<positive>\s*[_^](?:\+|\{\s*(?:\+|>\s*0|\\geq?\s*[01]|\\geqslant\s*[01])\s*\}))?"
_SET = r"\\(?:math(?:bb|bf)\s*\{?\s*(?P<set>[NZQRC])\s*\}?|(?P<short>[NZQRC])(?![a-zA-Z]))"
_IN_WORDS = re.compile(rf"{_FOR_ALL}(?P<kind>{_KINDS}) \${_LETTER}\s*{_BOUND}\${_ALONE}")
_IN_SET = re.compile(rf"{_FOR_ALL}\${_LETTER}\s*\\in\s*{_SET}{_POSITIVE}\s*\${_ALONE}")
_IN_BOUND = re.compile(rf"{_FOR_ALL}\${_LETTER}{_BOUND}\${_ALONE}")
_IN_FORMULA = re.compile(rf"(?P<begin>\\forall\s*){_LETTER}\s*\\in\s*{_SET}{_POSITIVE}{_NOT_MORE}")
_INTEGERS = frozenset("ijklmnrdMNp")


def instantiate(text: str, seed: str) -> list[str]:
    r"""Return the texts in which one variable with a known domain has a value of it, drawn by *seed*.

    "For every integer $n \geq 2$" becomes "for $n = 7$", and `\forall x \in \mathbb{R}` becomes
    `\forall x \in \{\frac{3}{2}\}`.
    The special case follows from the statement and does not say the same.

    >>> instantiate(r"For every integer $n \geq 2$ there is a prime.", "0")
    ['For $n = 7$ there is a prime.']
    """
    found = []
    for pattern in (_IN_WORDS, _IN_SET, _IN_BOUND, _IN_FORMULA):
        for match in pattern.finditer(text):
            value = _value(match, seed + text)
            rest = text[: match.start()] + text[match.end() :]
            if value and not _is_bound(match["letter"], rest):
                letter = match["letter"]
                new = rf"{letter} \in \{{{value}\}}" if pattern is _IN_FORMULA else f"${letter} = {value}$"
                found.append(text[: match.start()] + match["begin"] + new + text[match.end() :])
    return found


def _value(match: re.Match[str], seed: str) -> str | None:
    """Return a value of the domain that a quantifier names, or None where it names none."""
    groups = match.groupdict()
    letter, kind = match["letter"], groups.get("kind") or ""
    if groups.get("bound") is None and not kind and "set" not in groups:
        return None
    random = Random(f"{seed}:{letter}")
    domain = groups.get("set") or groups.get("short") or ""
    if not domain and not kind:
        is_small = letter in (r"\varepsilon", r"\epsilon", r"\delta") and match["sign"] in (">", r"\gt")
        domain = "N" if letter in _INTEGERS else "R" if is_small else ""
        if not domain:
            return None
    least = int(groups.get("bound") or 0)
    if "prime" in kind:
        return random.choice([prime for prime in ("5", "7", "11", "13") if int(prime) > least])
    if kind in ("number", "numbers"):
        return None
    if "odd" in kind or "even" in kind:
        return str(least + least % 2 + random.choice((3, 5, 7)) + ("even" in kind))
    if domain in ("N", "Z") or "integer" in kind or "natural" in kind:
        return str(least + random.choice(range(3, 9)))
    if domain in tuple("QRC") or "number" in kind:
        return rf"\frac{{{2 * least + random.choice((1, 3, 5))}}}{{2}}"
    return None


def _is_bound(letter: str, rest: str) -> bool:
    """Return whether a letter runs over something or tends to something elsewhere, or has a value already."""
    name = re.escape(letter) + r"(?![a-zA-Z])"
    return bool(
        re.search(rf"[$({{,]\s*{name}\s*(?:\\to(?![a-zA-Z])|\\rightarrow|=|:|\\in(?![a-zA-Z]))|_\{{\s*{name}", rest)
        or re.search(rf"(?:every|all|each|any|some|an?|integers?|\\forall|\\exists)\s*\$?\s*{name}", rest)
        or re.search(r"\b(?:large|small)\b", rest)
    )
