"""What can be wrong with the bundled cards and pairs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from graphlib import CycleError, TopologicalSorter

from mirblab.data.near_duplicates import fold_text
from mirblab.sources.mini import PAIR, Card

PROSE = ("slogan", "statement", "rewording", "question", "duplicate", "proof")
_ENVIRONMENT = re.compile(r"\\(begin|end)\{([^}]*)\}")


def find_card_problems(cards: Iterable[Card]) -> list[str]:
    """Return what is wrong with cards, one sentence each: keys, grades, premises, LaTeX, repeated texts."""
    known = {card["id"]: card for card in cards}
    if wrong := [f"{name}: {problem}" for name, card in known.items() for problem in _card(card, known)]:
        return wrong
    try:
        TopologicalSorter({name: card["premises"] for name, card in known.items()}).prepare()
    except CycleError as error:
        wrong = [f"premises lead back: {' -> '.join(error.args[1])}"]
    return [*wrong, *_repeated(known)]


def find_pair_problems(groups: Iterable[Card]) -> list[str]:
    """Return what is wrong with files of equivalent statements, one sentence each."""
    wrong, seen = [], Counter[str]()
    for group in groups:
        if len(group["domains"]) != 2 or len(group["pair"]) < 15:
            wrong.append(f"{group['id']}: {len(group['domains'])} domains and {len(group['pair'])} pairs, not 2 and 15")
        for pair in group["pair"]:
            name = f"{group['id']}, {pair['id']}"
            wrong += [f"{name}: lacks {key}" for key in PAIR if not pair[key].strip()]
            wrong += [f"{name}: {problem}" for key in ("first", "second") for problem in _latex(pair[key])]
            seen.update(fold_text(pair[key]) for key in ("first", "second"))
        names = Counter(row["id"] for row in [*group["pair"], *group.get("distractor", [])])
        wrong += [f"{group['id']}: the id {name!r} stands {n} times" for name, n in names.items() if n > 1]
    return wrong + [f"{n} statements say {text[:60]!r}" for text, n in seen.items() if n > 1]


def _card(card: Card, known: Mapping[str, Card]) -> Iterator[str]:
    for kind, grades in (("answers", card["answers"]), ("variants", card["formula"]["variants"])):
        values = {row["grade"] for row in grades}
        if not {0, 3} <= values <= {0, 1, 2, 3} or not 3 <= len(grades) <= 6:
            yield f"{len(grades)} {kind} with grades {sorted(values)}; expected three to six from 0 to 3, with 0 and 3"
    yield from (f"premise '{name}' is no card" for name in card["premises"] if name not in known)
    for name, text in _texts(card):
        yield from [] if text.strip() else [f"{name}: empty"]
        yield from (f"{name}: {problem}" for problem in _latex(text))


def _texts(card: Card) -> Iterator[tuple[str, str]]:
    """Yield the name and text of every view that is written in LaTeX, a bare formula between dollars."""
    yield from ((key, card[key]) for key in PROSE)
    yield from ((f"answer {number}", row["text"]) for number, row in enumerate(card["answers"], 1))
    yield from (("equivalent", card["equivalent"]["statement"]), ("context", card["formula"]["context"]))
    formulas = [card["formula"]["latex"], *(row["latex"] for row in card["formula"]["variants"])]
    yield from ((f"formula {number}", f"${latex}$") for number, latex in enumerate(formulas))


def _latex(text: str) -> Iterator[str]:
    """Yield what does not balance: dollars, braces inside formulas, \\left and \\right, environments."""
    plain = text.replace(r"\\", "").replace(r"\$", "")
    if plain.count("$") % 2:
        yield "dollars do not balance"
        return
    for formula in re.findall(r"\$+([^$]*)\$+", plain):
        bare = formula.replace(r"\{", "").replace(r"\}", "")
        if bare.count("{") != bare.count("}"):
            yield f"braces do not balance in {formula[:40]!r}"
        if len(re.findall(r"\\left(?![a-zA-Z])", formula)) != len(re.findall(r"\\right(?![a-zA-Z])", formula)):
            yield f"\\left and \\right do not balance in {formula[:40]!r}"
    opened = Counter((name, 1 if kind == "begin" else -1) for kind, name in _ENVIRONMENT.findall(text))
    if any(opened[name, 1] != opened[name, -1] for name, _ in opened):
        yield "environments do not balance"


def _repeated(known: Mapping[str, Card]) -> Iterator[str]:
    for view in (*PROSE[:5], "informal"):
        texts = {name: card["lean"]["informal"] if view == "informal" else card[view] for name, card in known.items()}
        counts = Counter(fold_text(text) for text in texts.values())
        yield from (f"{n} cards have the {view} {text[:60]!r}" for text, n in counts.items() if n > 1)
