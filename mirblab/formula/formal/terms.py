"""terms: a statement in Lean, Rocq or HOL to its operator tree, read tolerantly and without a proof assistant."""

from __future__ import annotations

import re
from itertools import pairwise

from mirblab.formula.formal.languages import (
    APPLIED,
    ASCRIBED,
    DEFINED,
    DIVIDERS,
    HOL,
    INTEGRALS,
    LEAN,
    MULTIPLIED,
    PIPED,
    RELATED,
    RIGHT,
    ROCQ,
    TIGHTEST,
    Language,
)
from mirblab.formula.formal.signs import operation_name
from mirblab.formula.operators import Operations
from mirblab.formula.tree import OPERANDS, Tree

LANGUAGES = {each.name: each for each in (LEAN, ROCQ, HOL)}
_PROGRAM = re.compile(r"\swhere\s.*", re.DOTALL)  # the fields of a structure, which are proofs or programs
_LETTER = re.compile(r"[^\W\d_][\d'₀-₉]*")
_ASSOCIATIVE = frozenset("U!plus U!times U!and U!or U!union U!intersect".split())
_QUANTIFIER = "O!forall"
_CLOSERS = ")]}⟩⟧⦄⌋⌉⟫⟯"
_CLOSING = frozenset([*_CLOSERS, "|", "‖"])
_SUBSCRIPTS = re.compile("[ₐ-ₜᵢ-ᵪ]+")
_HOLE = "·"  # the argument of a function in parentheses, (· + 1) of Lean
_OPENERS = frozenset("( [ { ⦃ `( `{".split())
_BRACKETS = {"|": "F!abs", "`|": "F!abs", "‖": "O!norm", "⌊": "F!floor", "⌈": "F!ceiling", "#|": "#", "#|`": "#"}


def read_term(text: str, language: str) -> Tree:
    """Return the operator tree of a statement in a *language*, Lean, Rocq or HOL; it never fails.

    A declaration's binders, its type and its value are the operands of one quantifier, as in a statement with `∀`:
    of a binder its type or condition. Variables are the names that a statement binds, and single letters; of other
    names the last part counts, so that s.card, Finset.card s and card s are the same. Types of terms, (0 : ℝ), and
    coercions are left out.

    >>> from mirblab.formula.tree import write_tangent
    >>> write_tangent(read_term("theorem two {x : ℝ} (h : 0 < x) : x + 0 = x", "Lean"))
    '[O!forall,0[ℝ],1[O!lt,0[N!0],1[V!x]],2[U!eq,0[U!plus,0[V!x],1[N!0]],1[V!x]]]'
    """
    known = LANGUAGES[language]
    if known is LEAN and "⊢" in text:
        goals = [read_term(_declared(goal), language) for goal in _goals(text)]
        return goals[0] if len(goals) == 1 else _joined(goals)
    head = known.head.match(text) if known.head else None
    is_declaration = known is LEAN and head is not None
    return _Reading(known, text[head.end() if head else 0 :], is_declaration).whole()


def _goals(text: str) -> list[str]:
    """Return the goals of a proof state of Lean, which blank lines part; a part without ⊢ belongs to the next one."""
    found = [""]
    for part in re.split(r"\n[ \t]*(?=\n)", text):
        if "⊢" in found[-1] and "⊢" in part:
            found.append("")
        found[-1] += part
    return found


def _joined(goals: list[Tree]) -> Tree:
    """Return one tree that states all of the *goals*, of each of which there is one root."""
    labels, parents, relations = ["U!and"], [-1], ["-"]
    for number, goal in enumerate(goals):
        start = len(labels)
        labels += goal.labels
        parents += [0, *(parent + start for parent in goal.parents[1:])]
        relations += [OPERANDS[min(number, 61)], *goal.relations[1:]]
    return Tree(labels, parents, "".join(relations))


def _declared(text: str) -> str:
    """Return a goal of Lean, a line for each hypothesis and what is to be proved behind ⊢, as a declaration."""
    context, _, goal = re.sub(r"✝[⁰¹²³⁴-⁹]*", "", text).partition("⊢")
    lines = [line.strip() for line in re.split(r"\n(?!\s)", context)]
    groups = [f"({line})" for line in lines if line and not line.startswith("case ")]
    return f"{' '.join(groups)} : {goal.split('⊢')[0]}"


class _Reading:
    """One statement: its tokens, the place in them, the names that it binds, and the operations so far.

    *is_declaration*: what stands first are the binders of a declaration, which may have no type.
    """

    def __init__(self, language: Language, text: str, is_declaration: bool) -> None:
        self.language, self.is_declaration = language, is_declaration
        found = list(language.token.finditer(_PROGRAM.sub("", text)))
        self.tokens = [match[0].split(" ")[0].replace(",,", ",") for match in found]
        self.is_glued = [one.end() == other.start() for one, other in pairwise(found)]  # no blank behind the token
        self.at, self.grown = 0, Operations()
        self.bound: set[str] = set()
        self.spines: set[int] = set()  # applications, which take further arguments
        self.closers: list[str] = []
        self.has_hole = False

    def whole(self) -> Tree:
        parts: list[int] = []
        if self.has_header():
            parts = self.names({":", ":="})
        while self.at < len(self.tokens):
            before = self.at
            if self.tokens[self.at] in (",", "⊢", ";"):
                self.at += 1
            parts.append(self.line(0))
            self.at += self.at == before  # what nothing opened
        parts = self.telling(parts)
        root = parts[0] if len(parts) == 1 else self.forall(parts)
        return self.grown.tree(root, spans=False)

    def telling(self, parts: list[int]) -> list[int]:
        """Return the *parts* that say something, or where none does one that says nothing."""
        return [part for part in parts if self.grown.labels[part] != "W!"] or [self.grown.add("W!")]

    def forall(self, parts: list[int]) -> int:
        last = parts[-1]
        if self.grown.labels[last] == _QUANTIFIER:
            parts = [*parts[:-1], *self.grown.operands[last]]
        return self.grown.add(_QUANTIFIER, parts)

    def has_header(self) -> bool:
        """Return whether the statement begins with names and groups before a colon, as a declaration does."""
        closers: list[str] = []
        for token in self.tokens:
            if closers and (token == closers[-1] or token in ")]}⟩⦄⟧"):
                closers.pop()
            elif token in self.language.fences and token != "|" and token != "‖":
                closers.append(self.language.fences[token])
            elif closers:
                continue
            elif token == ":" or self.is_declaration and token in (":=", "extends"):
                return True
            elif token in self.language.binders or not (token[0].isalpha() or token[0] == "_"):
                return False
        return self.is_declaration

    def peek(self, ahead: int = 0) -> str:
        """Return the next token, or the one so many tokens *ahead* of it; "" behind the last."""
        return self.tokens[self.at + ahead] if self.at + ahead < len(self.tokens) else ""

    def line(self, loosest: int) -> int:
        """Return the operation of what follows, up to an end or a sign that binds no more tightly than *loosest*."""
        language, grown = self.language, self.grown
        pieces: list[int] = []
        joined = -1  # an operation of several operands that this line made, which may take another one
        while self.at < len(self.tokens):
            token = self.tokens[self.at]
            opens = self.opens_bar(bool(pieces))
            if self.is_end(token) and not opens:
                break
            if token[0] == "%" and token[1:2].isalpha():  # a scope of Rocq
                self.at += 1
                continue
            if self.takes_suffix(pieces):
                continue
            if token == "%[" and pieces:  # a = b %[mod c] of Rocq
                if loosest >= RELATED:
                    break
                pieces = [grown.add(token, [self.applied(pieces), self.operand()])]
                continue
            is_operand = self.is_dotted()
            if not is_operand and (
                pieces
                and (token in language.postfixes or token[:2] == "%:" or self.is_mark())
                or token[0] == "."
                and len(token) > 1
                and token[1] not in "."
            ):
                self.at += 1
                if pieces:
                    pieces[-1] = self.projected(token, pieces[-1])
                continue
            is_operand = is_operand or self.is_binder(token) or token in self.bound or self.is_notation()
            joins = bool(pieces) and not is_operand
            tight = language.tightness(token) if joins or token == ":=" else -1
            if tight < 0 or token in language.silent or opens:
                if pieces and loosest >= TIGHTEST:
                    break
                operand = self.operand()
                pieces += [operand] if operand >= 0 else []
                continue
            if tight <= loosest:
                break
            self.at += 1
            common = language.spelled.get(token, token)
            left = self.applied(pieces)
            if tight == APPLIED:
                pieces = [left] if token == "|>" and self.peek()[:1] == "." else [self.piped(token, left)]
                continue
            if tight == ASCRIBED and language is ROCQ and self.closers[-1:] == ["}"]:  # {homo f : x y / R x y}
                self.names({"/"})
                pieces = [self.applied([left, self.line(0)])]
                continue
            has_ring = language is LEAN and self.peek() == "[" and self.is_glued[self.at - 1]
            about = [self.operand()] if has_ring else []  # M →ₗ[R] N
            right = self.line(tight - 1 if common in RIGHT or common[0] in "→≃↪" else tight)
            if tight == ASCRIBED and self.closers[-1:] != ["|"]:  # but the index of a subgroup, #|G : H|
                pieces = [left]
                continue
            label = operation_name(token, language.spelled)
            if left == joined and grown.labels[left] == label and label in _ASSOCIATIVE:
                grown.operands[left].append(right)
            elif label in _ASSOCIATIVE and common in RIGHT and grown.labels[right] == label:
                grown.operands[right].insert(0, left)
                left = right
            else:
                left = grown.add(label, [left, right, *about])
            joined, pieces = left, [left]
        return self.applied(pieces)

    def takes_suffix(self, pieces: list[int]) -> bool:
        """Return whether p.[x], r.(field) or s`_i of Rocq comes next, and let the last of the *pieces* take it."""
        token = self.peek()
        if not pieces or token not in (".[", ".(", "`_"):
            return False
        if token == ".(":
            pieces[-1] = self.applied([self.operand(), pieces[-1]])
        else:
            pieces[-1] = self.grown.add(token, [pieces[-1], *(self.subscript() if token == "`_" else [self.operand()])])
        return True

    def piped(self, token: str, left: int) -> int:
        """Return f <| x or x |> f as f x; of what follows <| all is the argument."""
        if token == "<|":
            return self.applied([left, self.line(PIPED - 1)])
        return self.applied([self.line(APPLIED), left])

    def opens_bar(self, has_left: bool) -> bool:
        """Return whether a bar of Lean opens an absolute value: no blank stands behind it.

        Behind an expression, *has_left*, a blank stands before it, and it is not that of a set, {x | p x}.
        """
        if self.language is not LEAN or self.peek() != "|" or not any(self.is_glued[self.at : self.at + 1]):
            return False
        return not has_left or not self.is_glued[self.at - 1] and self.closers[-1:] != ["}"]

    def is_dotted(self) -> bool:
        """Return whether a name of Lean without its namespace comes next, .atTop, which a blank parts from a term."""
        token, is_glued = self.peek(), self.at > 0 and self.is_glued[self.at - 1]
        is_name = self.language is LEAN and token[0] == "." and token[1:2].isalpha()
        return is_name and (not is_glued or self.tokens[self.at - 1] in "([{⟨⟦⦃")

    def is_mark(self) -> bool:
        """Return whether subscripts alone follow a bracket of Lean without a blank, as in ‖x‖ₑ."""
        is_behind = self.language is LEAN and self.is_glued[self.at - 1] and self.tokens[self.at - 1] in _CLOSING
        return is_behind and _SUBSCRIPTS.fullmatch(self.peek()) is not None

    def is_end(self, token: str) -> bool:
        if token in _CLOSERS or token in (",", ";", ">>", "]>", "then", "else", "end") or token in self.language.ends:
            return True
        return bool(self.closers) and token == self.closers[-1]

    def applied(self, pieces: list[int]) -> int:
        if not pieces:
            return self.grown.add("W!")
        first = pieces[0]
        if len(pieces) == 1:
            return first
        if first in self.spines:
            self.grown.operands[first] += pieces[1:]
            return first
        made = self.grown.apply(first, pieces[1:])
        self.spines.add(made)
        return made

    def projected(self, token: str, piece: int) -> int:
        """Return the application of what stands behind an expression: a field (.symm), a sign (⁻¹)."""
        if token in self.language.silent or token[0] == "%" and token[1:2] != ":":
            return piece
        made = self.grown.add(operation_name(token.lstrip(".") or token, self.language.spelled), [piece])
        self.spines.add(made)
        return made

    def operand(self) -> int:
        """Return the next expression without what follows it; -1 for what says nothing."""
        language, grown = self.language, self.grown
        token = self.tokens[self.at]
        is_binder = self.is_binder(token)
        self.at += 1
        if token in language.silent or token == "_":
            return -1
        if is_binder:
            return self.binder(token)
        if token in language.prefixes:
            return grown.add(operation_name(token, language.spelled), [self.line(language.prefixes[token] - 1)])
        if token == "{" and language is ROCQ and (divider := self.divider()):
            return self.dependent_pairs(divider)
        if token in language.fences:
            return self.group(token)
        if token == "if":
            return self.conditional()
        if token == "let" and language is not LEAN:
            return self.local_definition()
        if token == "match" and language is ROCQ:
            return self.cases()
        if "0" <= token[0] <= "9":
            return grown.add(f"N!{token}")
        if token == _HOLE and language is LEAN:
            self.has_hole = True
            return grown.add(f"V!{_HOLE}")
        if token[0] == ".":
            return self.named(token[1:])
        if language is ROCQ and token[0] in "'\\`":
            return self.notation(token)
        if token[0].isalpha() or token[0] in "_'«":
            return self.named(token)
        return grown.add(operation_name(token.split("%")[0] or token, language.spelled))

    def is_binder(self, token: str) -> bool:
        r"""Return whether a sign binds variables; that of a large operation of Rocq, \max, has an index behind it."""
        is_large = token[:1] == "\\" and len(token) > 1 and token not in self.language.spelled
        return token in self.language.binders and (not is_large or self.peek(1) in ("_", "["))

    def is_notation(self) -> bool:
        r"""Return whether a sign of Rocq is no operation between two terms but has operands behind it: \sigma(M)."""
        token = self.peek()
        is_named = self.language is ROCQ and token[0] == "\\" and token not in self.language.spelled
        return is_named and self.peek(1) in ("(", "_") and self.is_glued[self.at]

    def notation(self, token: str) -> int:
        """Return a sign of Rocq with the operands that no blank parts from it: 'N_G(A), 'E_p^2(G), 'O_p^'(G)."""
        operands: list[int] = []
        while self.at < len(self.tokens) and self.is_glued[self.at - 1]:
            if self.peek() in ("(", "["):
                operands.append(self.operand())
            elif self.peek() == "_" or self.peek() == "^" and self.peek(2) == "(":
                operands += self.subscript()
            elif self.peek() == "^'" and operands and self.peek(1) == "(":
                self.at += 1
                operands[-1] = self.projected("^'", operands[-1])
            else:
                break
        made = self.grown.add(operation_name(token, self.language.spelled), operands)
        self.spines.add(made)
        return made

    def subscript(self) -> list[int]:
        """Pass the sign of a script and return the operand behind it, or none."""
        self.at += 1
        if self.at == len(self.tokens) or self.is_end(self.peek()):
            return []
        operand = self.operand()
        while self.peek()[:2] in (".+", ".-", ".*") and operand >= 0 and self.is_glued[self.at - 1]:  # 'I_n.+1
            operand = self.projected(self.peek(), operand)
            self.at += 1
        return [operand] if operand >= 0 else []

    def divider(self) -> str:
        """Return the sign between type and property in {x : A & B x} or {x : A | B x} of Rocq; "" for others."""
        depth, has_type = 0, False
        for token in self.tokens[self.at :]:
            depth += (token in self.language.fences and token != "|") - (token in _CLOSERS)
            if depth < 0 or not (has_type or token == ":" or token[0].isalpha() or token[0] == "_"):
                return ""
            has_type = has_type or token == ":"
            if has_type and depth == 0 and token in ("&", "|"):
                return token
        return ""

    def dependent_pairs(self, divider: str) -> int:
        """Return the type of pairs {x : A & B x}, or of elements with a property, as ∃ (x : A), B x."""
        self.closers.append(divider)
        operands = self.names({divider})
        self.closers[-1] = "}"
        operands += self.terms("}")
        self.closers.pop()
        return self.grown.add(operation_name("∃", self.language.spelled), self.telling(operands))

    def terms(self, end: str) -> list[int]:
        """Return the terms up to an *end*, which is passed, and pass the signs between them."""
        found: list[int] = []
        while self.at < len(self.tokens) and self.peek() != end and self.peek() not in _CLOSERS:
            before = self.at
            found.append(self.line(0))
            self.at += self.at == before  # a sign between two terms
        self.at += self.peek() == end
        return found

    def conditional(self) -> int:
        parts = [self.line(0)]
        for word in ("then", "else"):
            if self.peek() == word:
                self.at += 1
                parts.append(self.line(DEFINED))
        return self.grown.add("if", parts)

    def cases(self) -> int:
        """Return match a with b => c | d => e end of Rocq as an operation of all five."""
        self.closers.append("with")
        operands = [self.line(0)]
        self.at += self.peek() == "with"
        self.closers[-1] = "|"
        operands += self.terms("end")
        self.closers.pop()
        return self.grown.add("match", self.telling(operands))

    def local_definition(self) -> int:
        """Return let x := a in b of Rocq, or let x = a in b of HOL, as an operation of a and b."""
        self.closers.append("in")
        defined = self.names({":=", "="})
        defined.append(self.line(0))
        self.closers.pop()
        self.at += self.peek() == "in"
        return self.grown.add("let", [*defined, self.line(0)])

    def named(self, token: str) -> int:
        """Return a name: a variable, a constant by its last part, or fields of a variable: s.ncard is ncard of s."""
        first, *fields = token.split(".{")[0].split(".")
        if self.is_variable(first):
            piece = self.grown.add(f"V!{first}")
            for name in fields:
                piece = self.projected(name, piece)
            return piece
        last = fields[-1] if fields else first
        if last.isdigit() and len(fields) > 1:
            last = fields[-2]
        return self.grown.add(operation_name(last or token, self.language.spelled))

    def is_variable(self, name: str) -> bool:
        if name in self.bound:
            return True
        return _LETTER.fullmatch(name) is not None and name not in self.language.spelled and name not in "ℕℤℚℝℂ𝓝∞π𝟙ℙ"

    def binder(self, token: str) -> int:
        """Return a quantifier, a function or a large operation: its domains and conditions, then its body."""
        language = self.language
        label = "O!lambda" if token in ("fun", "λ", "\\", "lambda") else operation_name(token, language.spelled)
        if self.peek() in ("_", "[") and token[0] == "\\":  # \sum_(i < n) F i, \big[op/idx]_(i in A) F i
            operands = [self.operand()] if self.peek() == "[" else []
            if self.peek() == "_":
                self.at += 1
                operands.append(self.operand() if self.peek() else self.grown.add("W!"))
        else:
            operands = self.names(set(language.ends))
        body = self.line(max(language.binders[token] - 1, 0))
        measure = []
        if token in INTEGRALS and self.peek() == "∂":
            self.at += 1
            measure = [self.line(MULTIPLIED - 1)]
        operands = [operand for operand in operands if operand >= 0]
        if label == _QUANTIFIER:  # nothing follows the binders of a structure, whose fields are left out
            return self.forall(operands if operands and self.grown.labels[body] == "W!" else [*operands, body])
        return self.grown.add(label, [*operands, body, *measure])

    def names(self, ends: set[str]) -> list[int]:
        """Read variables up to a sign of *ends*; return their types and what is said about them (x ∈ s, x < 2)."""
        found: list[int] = []
        name = ""
        has_pattern = self.language is HOL  # !(x,y). f x y
        takes_commas = has_pattern or ends == set(self.closers[-1:])  # in a group between terms
        while self.at < len(self.tokens):
            token = self.tokens[self.at]
            if token in ends:
                self.at += 1
                break
            is_comma = token == ","
            if token in ")]}⦄" or is_comma and not takes_commas or self.closers and token == self.closers[-1]:
                break
            self.at += 1
            if is_comma and has_pattern:
                continue
            if token in _OPENERS:
                self.closers.append(self.language.fences[token])
                found += self.names({self.closers[-1]}) if self.is_binding(token) else self.grouped(token)
                self.closers.pop()
            elif token in (":", ","):
                if self.language is HOL:
                    self.end_type()
                found.append(self.line(ASCRIBED))
                if self.peek() == ":=":
                    self.at += 1
                    self.line(0)
            elif token[0].isalpha() or token[0] == "_":
                name = token
                self.bound.add(name)
                if token in self.language.words:
                    found.append(self.line(ASCRIBED))
            else:
                left = self.grown.add(f"V!{name}" if name else "W!")
                right = self.line(self.language.tightness(token))
                found.append(self.grown.add(operation_name(token, self.language.spelled), [left, right]))
        return [part for part in found if part >= 0 and self.grown.labels[part] != "W!"]

    def end_type(self) -> None:
        """Put a comma between a type of HOL and a single letter behind it, which is the next variable: !x:real y."""
        depth = 0
        for place in range(self.at, len(self.tokens)):
            token, before = self.tokens[place], self.tokens[place - 1]
            depth += (token in ("(", "[")) - (token in _CLOSERS)
            if depth < 0 or token in self.language.ends:
                return
            if depth == 0 and _LETTER.fullmatch(token) and (before[-1].isalnum() or before[-1] in ")'"):
                self.tokens.insert(place, ",")
                self.is_glued.insert(place, False)
                return

    def is_binding(self, opener: str) -> bool:
        """Return whether a group has names and a colon, not a type alone, as [Group G] and `{Group G} have.

        In HOL it has names alone.
        """
        if self.language is HOL:
            return True
        for token in self.tokens[self.at :]:
            if token == ":":
                return True
            if not (token[0].isalpha() or token[0] == "_"):
                return token in (")", "}", "⦄") and opener[0] != "`"
        return False

    def grouped(self, opener: str) -> list[int]:
        """Return the type in a group of an instance, or the types, as in `{Ring A, !Ordered A}, and pass its end."""
        types: list[int] = []
        while not types or self.peek() == ",":
            self.at += self.peek() == ","
            self.at += self.peek() == "!" and opener[0] == "`"
            types.append(self.line(0))
        self.at += self.peek() == self.closers[-1]
        return types

    def group(self, opener: str) -> int:
        """Return the operation of a bracket: in parentheses what stands there, else its elements in the bracket."""
        divider, closer = DIVIDERS.get(opener, ""), self.language.fences[opener]
        self.closers.append(divider or closer)
        elements: list[int] = []
        around, self.has_hole = self.has_hole, self.has_hole and opener != "("
        while self.at < len(self.tokens):
            before = self.at
            if self.peek() not in _CLOSERS and (
                self.peek() != self.closers[-1] or not elements and self.opens_bar(False)
            ):
                elements.append(self.line(0))
            token = self.peek()
            if token == closer or token in _CLOSERS:
                self.at += token == closer or closer == "[" and token == "]"  # an interval: `]a, b[ or `]a, b]
                break
            self.at += 1 if token in (",", ";", divider) or self.at == before or token in self.language.ends else 0
        self.closers.pop()
        if opener == "(":
            if self.has_hole and len(elements) == 1:
                elements = [self.grown.add("O!lambda", elements)]
            self.has_hole = around
        if opener in ("(", ".(", ".[", "%[") and len(elements) == 1:
            return elements[0]
        if opener == "{" and len(elements) == 1:
            only = elements[0]
            below = self.grown.operands[only]
            if self.grown.labels[only] == "O!conditional-set":
                return only
            if self.language is ROCQ and below and self.grown.labels[below[0]] == "subset":  # {subset A <= B}
                return self.grown.add("O!subset", self.grown.operands[below[0]] + below[1:])
        if divider:
            return self.grown.add(operation_name(opener[1:], self.language.spelled), elements)
        names = {"{": "M!S-", "(": "M!V-"}
        label = f"{names[opener]}{len(elements)}" if opener in names else f"M!D-{opener}{closer}"
        return self.grown.add(_BRACKETS.get(opener, label), elements)
