"""formal: texts in the languages of proof assistants, told by their signs, which are neither prose nor LaTeX."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

_KEYWORDS = "theorem|lemma|def|abbrev|instance|structure|class|inductive|example|axiom|opaque"
_MODIFIERS = "noncomputable|private|protected|local|scoped|nonrec|partial|unsafe"
_PROVED = r"^\|- (?![^|{\n]{0,20}\|)"  # no absolute value of something negative
_NAMED = r"^(?:[A-Z\d_']{2,}|\w*_\w+) \|- (?![^|{\n]{0,20}\|)"  # by a name such as ADD_SYM or num_INDUCTION
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
    ("HOL", re.compile(rf"(?:{_PROVED}|{_NAMED})(?:[!?~A-Za-z]|\(\S)|{_QUANTIFIED}")),
    ("Metamath", re.compile(rf"=> \|- |{_PROVED}")),
    ("Lean", re.compile(rf"⊢|\binst✝|^(?:(?:{_MODIFIERS}) )*(?:{_KEYWORDS}) \S[^$\n]* :=?(?:\s|$)", re.MULTILINE)),
    ("Lean", re.compile(rf"{_NO_LATEX}(?:.*?(?:{_BOUND}|{_FUNCTION})|{_DOTTED})", re.DOTALL)),
)  # fmt: skip
_ENOUGH = 1000  # texts of a collection that are looked at


@lru_cache(maxsize=512)  # a text that is shown is asked about by each step of it
def formal(text: str) -> str:
    """Return the proof assistant whose language a text is in: Isabelle, HOL, Metamath or Lean; "" for none.

    >>> formal("∀ (n : ℕ), n.divisors.sum Nat.totient = n"), formal("|- !x. x = x"), formal(r"f : X \\to Y")
    ('Lean', 'HOL', '')
    """
    return next((name for name, pattern in _LANGUAGES if pattern.search(text)), "")


def language(texts: Sequence[str]) -> str:
    """Return the proof assistant whose language most of *texts* are in; "" where most are in none.

    One text may have no sign of its language, or a misleading one; at most a thousand, evenly spread, are looked at.

    >>> language(["|- !x. x = x", "T", "|- !x y. x + y = y + x"]), language(["Let $x$ be one.", "|- !x. x = x"])
    ('HOL', '')
    """
    looked_at = texts[:: max(1, len(texts) // _ENOUGH)]
    names = Counter(map(formal, looked_at))
    n_others = names.pop("", 0)
    return names.most_common(1)[0][0] if 2 * n_others < len(looked_at) else ""
