"""provability: how good a run is when a proof checker decides which of the retrieved statements would have done."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

import pandas as pd

from mirblab.core.errors import MirblabError, check_positive
from mirblab.core.terminal import progress
from mirblab.core.wording import counted
from mirblab.data.collection import Collection, from_rows
from mirblab.data.runs import order_run, system_of
from mirblab.formula.metamath.database import Logic, read_logic
from mirblab.formula.metamath.proving import LIMIT, Application, Goal, Outcome, Prover
from mirblab.sources.metamath import PROVABLE

Search = tuple[str, tuple[str, ...], int]  # a goal, the statements that may be applied first, the depth or _USEFUL
_USEFUL = 3  # of depth 2, where any earlier statements may follow the first
_MEASURE = re.compile(r"Provable@([1-9]\d*),([12])|Useful@([1-9]\d*)")


def goal_collection(logic: Logic, goals: Sequence[Goal], name: str = "metamath-goals") -> Collection:
    """Return goals as queries, and the statements of their database that begin with `|-` as documents.

    Relevant are the statements that the author applied to the goal. A query may return what stands before its theorem
    in the database. Texts are those of the collections that `mirblab build metamath` makes.

    >>> from mirblab.formula.metamath.database import read_logic
    >>> from mirblab.formula.metamath.proving import proof_goals
    >>> logic = read_logic("mini")
    >>> goal_collection(logic, proof_goals(logic, "syl"))
    Collection('metamath-goals', test: 2 queries, 216 documents, 2 judgements)
    """
    if not goals:
        raise MirblabError("there is no goal; draw some with draw_goals")
    statements = [each for each in logic.statements.values() if each.expression[0] == PROVABLE]
    corpus = [{"_id": each.label, "text": each.text, "metadata": {"order": each.order}} for each in statements]
    queries = [{"_id": goal.goal_id, "text": goal.text, "metadata": {"order": goal.order}} for goal in goals]
    judged = [(goal.goal_id, label, 1) for goal in goals for label in sorted(goal.used)]
    card = {"name": name, "task": "premise retrieval", "source": logic.name, "candidates": ["earlier"]}
    return from_rows(corpus, queries, judged, card)


class Provability:
    """Decides for goals of one database whether retrieved statements prove them; what was decided is remembered.

    A search for a proof ends after *limit* unifications, so that the values do not depend on the machine's speed.

    >>> from mirblab.formula.metamath.database import read_logic
    >>> from mirblab.formula.metamath.proving import proof_goals
    >>> logic = read_logic("mini")
    >>> run = pd.DataFrame({"query_id": "mpd", "doc_id": ["ax-mp", "a2i"], "score": [2.0, 1.0]})
    >>> judge = Provability(logic, proof_goals(logic, "mpd", whole=True))
    >>> judge.evaluate(run, ["Provable@2,1", "Provable@2,2"]).value.tolist()
    [0.0, 1.0]
    """

    def __init__(self, logic: Logic, goals: Sequence[Goal], *, limit: int = LIMIT) -> None:
        check_positive(limit=limit)
        self.prover, self.limit = Prover(logic), limit
        self.goals = {goal.goal_id: goal for goal in goals}
        self.decided: dict[Search, Outcome] = {}

    @property
    def n_exhausted(self) -> int:
        """Return the number of searches that the limit ended."""
        return sum(outcome.is_exhausted for outcome in self.decided.values())

    def evaluate(self, run: pd.DataFrame, measures: Sequence[str]) -> pd.DataFrame:
        """Return a value, 0 or 1, for each goal and measure, as `lab.evaluate` does.

        *Provable@k,d*: a proof of depth d applies only the first k retrieved statements. At depth 1 one statement is
        applied whose hypotheses the goal's context has; at depth 2 its hypotheses may be concluded from the context by
        one more statement each. *Useful@k*: one of the first k begins such a proof of depth 2, whose other statements
        may be any earlier ones of the database. A goal that is not in the run has the value 0. MirblabError for no
        measure, an unknown one, and a run with queries that are no goals here.
        """
        if not measures:
            raise MirblabError("no measure was named; name one or more, such as Useful@10")
        parsed = {name: _parse(name) for name in measures}
        rankings = self._rankings(run, max(k for k, _ in parsed.values()))
        rows = []
        with progress(len(self.goals), "proving") as bar:
            for goal_id, goal in sorted(self.goals.items()):
                known: dict[tuple[int, int], bool] = {}
                for name, (k, depth) in sorted(parsed.items(), key=lambda item: item[1]):
                    first = tuple(rankings.get(goal_id, [])[:k])
                    # What fewer statements prove, or a proof of smaller depth, more and deeper ones prove as well.
                    proved = any(value for (n, d), value in known.items() if n <= k and d <= depth)
                    if not proved:
                        proved = any(self.useful_proof(goal, label) for label in first) if depth == _USEFUL else (
                            self._proof(goal, first, depth) is not None)  # fmt: skip
                    known[k, depth] = proved
                    rows.append((name, goal_id, float(proved)))
                bar.update()
        values = pd.DataFrame(rows, columns=["measure", "query_id", "value"])
        values.insert(0, "collection", str(run.attrs.get("collection") or ""))
        values.insert(0, "system", system_of(run))
        order = {name: place for place, name in enumerate(parsed)}
        return values.sort_values("measure", key=lambda column: column.map(order), kind="stable", ignore_index=True)

    def documents(self, run: pd.DataFrame, k: int = 10) -> pd.DataFrame:
        """Return what the first k documents of each goal would have done: one row per goal and document.

        Columns: system, query_id, rank, doc_id, used (the author applied it), closes (it alone proves the goal from the
        context), useful (it begins a proof of depth 2 whose other statements are any earlier ones), undecided (the
        limit ended the search for such a proof).
        """
        check_positive(k=k)
        rows = []
        with progress(len(self.goals), "proving") as bar:
            for goal_id, ranking in sorted(self._rankings(run, k).items()):
                goal = self.goals[goal_id]
                for rank, label in enumerate(ranking, 1):
                    proof = self.useful_proof(goal, label)
                    closes = proof is not None and proof.depth == 1
                    undecided = self.decided[goal_id, (label,), _USEFUL].is_exhausted
                    rows.append((goal_id, rank, label, label in goal.used, closes, proof is not None, undecided))
                bar.update()
        table = pd.DataFrame(rows, columns=["query_id", "rank", "doc_id", "used", "closes", "useful", "undecided"])
        table.insert(0, "system", system_of(run))
        return table

    def useful_proof(self, goal: Goal, label: str) -> Application | None:
        """Return a checked proof of depth 1 or 2 that begins with a statement, the rest any earlier ones, or None."""
        return self._proof(goal, (label,), _USEFUL)

    def _proof(self, goal: Goal, first: tuple[str, ...], depth: int) -> Application | None:
        search = (goal.goal_id, first, depth)
        if search not in self.decided:
            then, at_most = (None, 2) if depth == _USEFUL else ((), depth)
            self.decided[search] = self.prover.prove(goal, first, then, depth=at_most, limit=self.limit)
        return self.decided[search].proof

    def _rankings(self, run: pd.DataFrame, k: int) -> dict[str, list[str]]:
        ordered = order_run(run)
        first = ordered[ordered["rank"] <= k]
        unknown = sorted(set(first.query_id.astype("str")) - set(self.goals))
        if unknown:
            wrong = counted(len(unknown), "query that is no goal", "queries that are no goals")
            raise MirblabError(f"the run has {wrong} here, such as '{unknown[0]}'")
        groups = first.astype({"query_id": "str", "doc_id": "str"}).groupby("query_id", sort=False)
        return {str(name): group.doc_id.tolist() for name, group in groups}


def prove_goals(
    database: str, known: str, limit: int, goals: Sequence[Goal], runs: Sequence[pd.DataFrame], measures: Sequence[str]
) -> dict[Search, Outcome]:
    """Return what a `Provability` of some goals decides when it evaluates *runs* and lists their first documents.

    A process reads *database* once. MirblabError where it is another one than that of the goals, which is *known*.
    """
    judge = _open_judge(database, limit)
    if repr(judge.prover.logic) != known:
        raise MirblabError(f"'{database}' is {judge.prover.logic} here, and the goals are of {known}")
    judge.goals, judge.decided = {goal.goal_id: goal for goal in goals}, {}
    useful = [k for k, depth in map(_parse, measures) if depth == _USEFUL]
    for run in runs:
        if useful:
            judge.documents(run, max(useful))
        judge.evaluate(run, measures)
    return judge.decided


@lru_cache(maxsize=1)
def _open_judge(database: str, limit: int) -> Provability:
    return Provability(read_logic(database), [], limit=limit)


def _parse(name: str) -> tuple[int, int]:
    """Return k and the depth of a measure, `_USEFUL` for proofs that begin with a retrieved statement."""
    match = _MEASURE.fullmatch(name)
    if not match:
        raise MirblabError(f"no measure '{name}'; it is Provable@k,1 or Provable@k,2 or Useful@k, such as Useful@10")
    return (int(match[1]), int(match[2])) if match[1] else (int(match[3]), _USEFUL)
