"""metamath: a statement of a Metamath database to its operator tree, without the database.

The signs are those of set.mm, where connectives, sums and the like always stand in parentheses with blanks around each
sign. What has no entry here is a constant or a variable, and of three expressions in a row the second is an operation
of the other two. `tests/formula/test_formal.py` compares the trees with those of the database's own grammar.
"""

from __future__ import annotations

import re

from mirblab.formula.formal.signs import operation_name, parse_spellings
from mirblab.formula.operators import Operations
from mirblab.formula.tree import Tree

# One letter, or the name of a Greek one, with what tells variables apart; an operation such as .+ of a structure.
_VARIABLE = re.compile(r"(?!R1$)(?:[A-Za-z]|ph|ps|ch|th|ta|et|ze|si|rh|mu|la|ka)['\"0-9]{0,2}|\.(?:[^\w\s.]+_?|[01]\.)")
_LIST, _SUBSTITUTED = ",", "F!substituted"
_CLOSERS = {"(": ")", "{": "}", "<.": ">.", "[": "]", "[_": "]_", "<<": ">>", "(.": ")."}
_ENDS = frozenset(_CLOSERS.values())
# What stands between the parts of a line, from loose to tight; all other operations stand in parentheses or alone.
_CONNECTIVES = dict.fromkeys(r"-> <-> \/ /\ -/\ \/_ until".split(), 5)
_SPLITS = {"=>": 0, "&": 1, "|": 2, "|->": 3, "->.": 3, ",": 4} | _CONNECTIVES
# Before a statement, up to the end of the part in which they stand.
_OF_STATEMENTS = frozenset("-. A. E. E! E* F/ F/_ Ord Lim Rel Fun Tr Smo Er Prt [.] <> ()".split())
# Before one expression, or before so many.
_OF_CLASSES = dict.fromkeys(
    "~P U. |^| suc `' dom ran -u oF oR if sup rec recs seqom Pred TrPred pprod gcdOLD _pred _trCl _TrFo "
    "Fix Image Funpart FullFun _fns -e -.g".split(),
    1,
) | {"seq": 2, "A.g": 2, "E.g": 2, "S_": 3, "S.": 4}  # S. A B _d x
_SIGNS = parse_spellings(r"""
→ ->
↔ <->
∧ /\
∨ \/
¬ -.
∀ A.
∃ E.
≠ =/=
∈ e.
∉ e/
⊆ C_
⊂ C.
∪ u. U. U_
∩ i^i |^| |^|_
∖ \
× X.
⋅ x.
∘ o.
≤ <_
- -u
∑ sum_
∏ prod_
↦ |->
∅ (/)
ℕ NN
ℤ ZZ
ℝ RR
ℂ CC
ℚ QQ
""")
_QUANTIFIERS = frozenset("A. E. E! E* F/ F/_ iota iota_".split())
_CLASS_BINDERS = frozenset("U_ |^|_ X_ sum_ prod_ prod2_ prod3_ sup_ inf_".split())


def read_metamath(text: str) -> Tree:
    """Return the operator tree of a statement: `hypothesis & hypothesis => conclusion`, each with `|-` before it.

    What stands before the first of them is a title, and not read.

    >>> from mirblab.formula.tree import write_tangent
    >>> write_tangent(read_metamath("|- ( ph -> A. x e. A ( F ` x ) = 0 )"))
    '[F!→,0[V!ph],1[O!forall,0[O!in,0[V!x],1[V!A]],1[U!eq,0[V!F,0[V!x]],1[N!0]]]]'
    """
    symbols = text.split()
    starts = [at for at, symbol in enumerate(symbols) if symbol == "|-" and symbols[at - 1 : at] not in (["&"], ["=>"])]
    return _Reading([symbol for symbol in symbols[max(starts, default=0) :] if symbol != "|-"]).whole()


class _Reading:
    """One statement: its symbols, the place in them, and the operations so far."""

    def __init__(self, symbols: list[str]) -> None:
        self.symbols, self.at, self.grown = symbols, 0, Operations()

    def whole(self) -> Tree:
        parts = [self.line(-1)]
        while self.at < len(self.symbols):  # a closing bracket that nothing opened
            self.at += 1
            parts.append(self.line(-1))
        return self.grown.tree(self.joined(parts), spans=False)

    def line(self, loosest: int) -> int:
        """Return the operation of the parts up to the end of a group, or to a sign that is no tighter."""
        left, last = self.part(), ""
        while self.at < len(self.symbols):
            sign = self.symbols[self.at]
            tightness = _SPLITS.get(sign, -1)
            if tightness <= loosest:
                break
            self.at += 1
            right = self.line(tightness)
            if sign == last:
                self.grown.operands[left].append(right)
            else:
                left = self.grown.add(operation_name(sign, _SIGNS), [left, right])
            last = sign
        return left

    def part(self) -> int:
        """Return the operation of the expressions up to the next sign between parts, or to the end of a group."""
        found: list[int] = []
        while self.at < len(self.symbols):
            symbol = self.symbols[self.at]
            if symbol in _SPLITS or symbol in _ENDS:
                break
            found.append(self.expression())
        return self.joined(found)

    def joined(self, found: list[int]) -> int:
        """Return three expressions as the operation in the middle, others as the first one's application."""
        if len(found) == 1:
            return found[0]
        if not found:
            return self.grown.add("W!")
        if self.grown.labels[found[1]] == "`":  # F ` A
            return self.grown.apply(found[0], found[2:])
        if len(found) == 5 and not self.grown.operands[found[3]]:  # F : A --> B
            arrow = self.grown.labels[found[3]]
            return self.grown.add(arrow, [found[0], found[2], found[4]])
        if len(found) >= 3:
            return self.grown.apply(found[1], [found[0], *found[2:]])
        return self.grown.apply(found[0], found[1:])

    def expression(self) -> int:
        symbol = self.symbols[self.at]
        self.at += 1
        if symbol in _QUANTIFIERS:
            return self.grown.add(operation_name(symbol, _SIGNS), [self.domain(), self.part()])
        if symbol in _OF_STATEMENTS:
            return self.grown.add(operation_name(symbol, _SIGNS), [self.part()])
        if symbol in _CLASS_BINDERS:
            return self.grown.add(operation_name(symbol, _SIGNS), [self.domain(), self.operand()])
        if symbol in _OF_CLASSES:
            operands = [self.operand() for _ in range(_OF_CLASSES[symbol])]
            if self.grown.labels[operands[-1]] == _LIST:
                operands[-1:] = self.grown.operands[operands[-1]]
            return self.grown.add(operation_name(symbol, _SIGNS), operands)
        return self.group(symbol) if symbol in _CLOSERS else self.grown.add(self.leaf(symbol))

    def operand(self) -> int:
        """Return the next expression; an empty one at the end of a part."""
        is_end = self.at >= len(self.symbols) or self.symbols[self.at] in _ENDS or self.symbols[self.at] in _SPLITS
        return self.grown.add("W!") if is_end else self.expression()

    def domain(self) -> int:
        """Return the variable of a quantifier, with the class that it ranges over, if there is one."""
        variable = self.operand()
        if self.symbols[self.at : self.at + 1] != ["e."]:
            return variable
        self.at += 1
        return self.grown.add("O!in", [variable, self.operand()])

    def group(self, opener: str) -> int:
        """Return the operation of a group in brackets, and of what a substitution or a class stands before."""
        inner = self.line(-1)
        grown, labels = self.grown, self.grown.labels
        self.at += self.symbols[self.at : self.at + 1] == [_CLOSERS[opener]]
        elements = grown.operands[inner] if labels[inner] == _LIST else [inner]
        if opener == "(":
            return inner
        if opener == "{":
            return inner if labels[inner] == "O!conditional-set" else grown.add(f"M!S-{len(elements)}", elements)
        if opener == "<.":
            return grown.add(f"M!V-{len(elements)}", elements)
        if opener == "[" and labels[inner] == "O!divide":
            return grown.add(_SUBSTITUTED, [inner, self.part()])
        return grown.add(_SUBSTITUTED if opener == "[_" else f"M!D-{opener}", [inner, self.operand()])

    def leaf(self, symbol: str) -> str:
        if symbol.isdecimal():
            return f"N!{symbol}"
        is_variable = _VARIABLE.fullmatch(symbol) is not None
        return f"V!{symbol}" if is_variable else operation_name(symbol, _SIGNS)
