"""blueprint_scope: what namespaces, sections, `variable`, `omit` and `include` mean for the next declaration."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from mirblab.sources.blueprint_binders import ATOM, Binder, binders, groups, mentioned

_DEEPEST = 100  # namespaces in which a name is looked up


@dataclass
class _Level:
    """One open namespace, section or `mutual`; `name` is "" for one without a name."""

    name: str
    is_namespace: bool
    variables: list[tuple[Binder, set[str]]] = field(default_factory=list)  # each with what its type mentions
    included: set[str] = field(default_factory=set)
    omitted: set[str] = field(default_factory=set)


class Scope:
    """The open namespaces and sections of a Lean file, outermost first.

    >>> scope = Scope()
    >>> scope.enter("A.B", is_namespace=True)
    >>> scope.variable("{G : Type*} [Group G] (n : Nat)")
    >>> scope.full_name("c"), [binder.type for binder in scope.needed("(x : G) : x = x", set())]
    ('A.B.c', ['Type*', 'Group G'])
    >>> scope.leave("B")
    >>> scope.full_name("c")
    'A.c'
    """

    def __init__(self) -> None:
        """Begin at the top of a file."""
        self._levels = [_Level("", False)]

    def enter(self, name: str, *, is_namespace: bool) -> None:
        """Open a namespace or section; `A.B` opens two."""
        for part in re.findall(ATOM, name) or [""]:
            self._levels.append(_Level(part, is_namespace))

    def leave(self, name: str) -> None:
        """Close the innermost level, with a name as many as it has parts; an `end` too much is passed over."""
        for _ in re.findall(ATOM, name) or [""]:
            if len(self._levels) > 1:
                self._levels.pop()

    def names(self, name: str) -> list[str]:
        """Return what *name* may stand for where it is used, the innermost namespace first."""
        if name.startswith("_root_."):
            return [name.removeprefix("_root_.")]
        parts = [level.name for level in self._levels if level.is_namespace]
        outermost = max(0, len(parts) - _DEEPEST)
        return [".".join([*parts[:count], name]) for count in range(len(parts), outermost - 1, -1)]

    def full_name(self, name: str) -> str:
        """Return the name that a declaration called *name* gets here."""
        if name.startswith("_root_."):
            return name.removeprefix("_root_.")
        return ".".join([*(level.name for level in self._levels if level.is_namespace), name])

    def variable(self, text: str) -> None:
        """Add the binders of a `variable` command; one without a type changes how an older one is bound."""
        level = self._levels[-1]
        for group in groups(text)[0]:
            for binder in binders(group):
                older = [known for known, _ in self._variables() if known.name and known.name == binder.name]
                if older and not binder.type:
                    binder = Binder(binder.style, binder.name, older[-1].type)
                level.variables.append((binder, mentioned(binder.type)))

    def include(self, text: str) -> None:
        """Note the names of an `include` command."""
        self._levels[-1].included |= set(re.findall(ATOM, text))

    def omit(self, text: str) -> None:
        """Note the names and instances of an `omit` command."""
        found, after = groups(text)
        inner = {" ".join(group[1:-1].split()) for group in found}
        self._levels[-1].omitted |= inner | {name for part in inner for name in part.split()[:1]}
        self._levels[-1].omitted |= set(re.findall(ATOM, text[after:]))

    def _variables(self) -> list[tuple[Binder, set[str]]]:
        return [known for level in self._levels for known in level.variables]

    def needed(self, text: str, own: Iterable[str]) -> list[Binder]:
        """Return the variables that a declaration takes, in their order.

        As Lean does: those that its *text* or another one taken mentions, those included, and the instances all of
        whose variables are taken; *own* are the names that the declaration binds itself.
        """
        known = self._visible()
        omitted = set().union(*(level.omitted for level in self._levels))
        included = set().union(*(level.included for level in self._levels)) - omitted
        wanted = mentioned(text) - set(own) | included
        taken: set[int] = set()
        while more := {place for place in known if place not in taken and _is_taken(known, place, wanted, omitted)}:
            taken |= more
            wanted |= set().union(*(known[place][1] for place in more))
        return [known[place][0] for place in sorted(taken)]

    def _visible(self) -> dict[int, tuple[Binder, set[str]]]:
        """Return the variables that no later one of the name hides, in order, and what the type of each mentions.

        A variable whose binder was changed stays where it was first.
        """
        places: dict[str, int] = {}
        found: dict[int, tuple[Binder, set[str]]] = {}
        for number, (binder, mentions) in enumerate(self._variables()):
            place = places.setdefault(binder.name, number) if binder.name else number
            if place in found and found[place][0].type != binder.type:
                del found[place]
                place = places[binder.name] = number
            found[place] = binder, mentions
        return dict(sorted(found.items()))


def _is_taken(known: dict[int, tuple[Binder, set[str]]], place: int, wanted: set[str], omitted: set[str]) -> bool:
    binder, mentions = known[place]
    if binder.type in omitted or binder.name in omitted:
        return binder.name in wanted and binder.name != ""
    if binder.name in wanted and binder.name:
        return True
    names = {other.name for other, _ in known.values() if other.name}
    # One that names no variable hides some behind a notation; it then comes with any other variable.
    return binder.is_instance and (mentions & names <= wanted if mentions & names else bool(names & wanted))
