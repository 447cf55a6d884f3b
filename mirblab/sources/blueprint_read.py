"""blueprint_read: one repository of a blueprint, read whole: its documents, its statements and their declarations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from mirblab.sources import blueprint_attributes, blueprint_lean, blueprint_nodes, blueprint_verso
from mirblab.sources.blueprint_files import Repository
from mirblab.sources.blueprint_lean import Lean
from mirblab.sources.blueprint_library import Library
from mirblab.sources.blueprint_nodes import Node
from mirblab.sources.blueprint_pairs import Pair, pairs
from mirblab.sources.shape import Row


class Blueprint:
    """What stands in a repository: the `nodes` of its blueprint, in all formats, and the `library` of declarations."""

    def __init__(self, repository: Repository, odd: Counter[str]) -> None:
        """Read all files of a repository; what is odd in them is counted."""
        self.repository = repository
        self.nodes: list[Node] = []
        leans: list[Lean] = []
        verso: list[Node] = []
        known = blueprint_nodes.kinds(repository.latex.values())
        for path, source in repository.latex.items():
            self.nodes += blueprint_nodes.read(source, known, path, odd)
        for path, code in repository.lean.items():
            lean = blueprint_lean.read(code)
            told, more = blueprint_verso.read(code[blueprint_lean.prose(code) :], known, path, odd)
            self.nodes += blueprint_attributes.read(lean, path, odd)
            verso += told
            for found in (lean, *more):
                for declaration in found.declarations:
                    declaration.path = path
                leans.append(found)
        # Of a statement in several formats the first is kept: LaTeX, then attributes, then Verso.
        self.nodes += verso
        self.library = Library(repository.name, leans, odd)

    def missing(self) -> set[str]:
        """Return what the names may stand for that the repository does not declare."""
        names = (names for node in self.nodes for names in node.names if self.library.find(names)[0] is None)
        return {name for each in names for name in each}

    def pairs(self, mathlib: Mapping[str, str], left_out: Counter[str]) -> tuple[list[Pair], Row]:
        """Return the statements with their declarations, and what the card says of the repository."""
        found: Counter[str] = Counter()
        made = pairs(self.nodes, self.library, mathlib, found, left_out)
        left_out["names that no file declares (mathlib's, of another library, or out of date)"] += found["not found"]
        names = {how: count for how, count in sorted(found.items()) if count}
        counts = {"declarations": len(self.library.documents), "nodes": len(self.nodes), "queries": len(made)}
        about = {"commit": self.repository.commit, "licence": self.repository.licence}
        return made, {**about, "content": self.repository.digest, **counts, "names": names}
