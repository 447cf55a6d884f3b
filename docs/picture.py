"""picture: the rooms of mirblab as a drawing: houses of rooms in the order in which data flows, and their imports."""

from __future__ import annotations

import html
from collections.abc import Mapping

from interface import Room

# Which rooms stand together, each house on those before it; a room that is named nowhere stands in the last house.
HOUSES = {
    "Ground": "errors ids json_text paths packed partials damage family parameters toml progress lines registry "
    "rooms best",
    "Collections": "digests folder card candidates rules collection sources shelf intake builders equivalence",
    "Runs, measures": "runs sealed run_store results measures holes grouping topic_labels published imports",
    "Formulas": "formula excerpts instances threads",
    "Models": "api cache encode dense late rerank models",
    "Search": "lexical fusion recipes systems",
    "Tables, plots": "tables scales plots prose formula_view mapview redrawing browse",
    "Statistics": "significance features pairs duel ablation costs inspection neighbours separability projection views",
    "Work": "train making by_hand outputs suites stamps worker batch",
    "Front door": "failures moves explore lessons doctor welcome console cli",
}
_WIDTH, _BOX, _HEIGHT, _GAP, _ROW = 1120, 118, 26, 8, 8
_LEFT, _RIGHT, _TOP = 190, 168, 14


def houses(known: Mapping[str, Room]) -> dict[str, list[str]]:
    """Return the rooms of each house; every room stands in exactly one."""
    found = {name: [room for room in rooms.split() if room in known] for name, rooms in HOUSES.items()}
    placed = {room for rooms in found.values() for room in rooms}
    found[list(HOUSES)[-1]] += [room for room in known if room not in placed and not room.startswith("__")]
    return {name: rooms for name, rooms in found.items() if rooms}


def imports(known: Mapping[str, Room], grouped: Mapping[str, list[str]]) -> dict[str, set[str]]:
    """Return the other houses whose rooms those of each may import, without the ground, on which all stand."""
    house = {room: name for name, rooms in grouped.items() for room in rooms}
    found = {
        name: {house[one] for room in rooms for one in known[room].may_import if one in house}
        for name, rooms in grouped.items()
    }
    return {name: needs - {name, "Ground"} for name, needs in found.items()}


def svg(known: Mapping[str, Room]) -> str:
    """Return the picture as inline SVG; colours come from the page's style, so that it is readable in both schemes."""
    grouped, parts, top = houses(known), [], _TOP
    leans, numbers = imports(known, grouped), {name: str(n) for n, name in enumerate(grouped, 1)}
    for name, rooms in grouped.items():
        height = _house_height(rooms)
        needs = [numbers[one] for one in grouped if one in leans[name]]
        parts.append(_house(f"{numbers[name]} {name}", rooms, needs, top, height))
        top += height + 2 * _ROW
    count = f"{len(grouped)} houses with {sum(map(len, grouped.values()))} rooms, from the ground to the front door"
    said = f"{count}; the table below says which house leans on which."
    return (
        f'<svg class="rooms" viewBox="0 0 {_WIDTH} {top}" role="img" aria-labelledby="rooms-title rooms-desc">'
        f'<title id="rooms-title">The rooms of mirblab</title><desc id="rooms-desc">{html.escape(said)}</desc>'
        f"{''.join(parts)}</svg>"
    )


def _per_row() -> int:
    return (_WIDTH - _LEFT - _RIGHT) // (_BOX + _GAP)


def _house_height(rooms: list[str]) -> int:
    return -(-len(rooms) // _per_row()) * (_HEIGHT + _GAP) + _GAP


def _house(name: str, rooms: list[str], needs: list[str], top: int, height: int) -> str:
    parts = [f'<rect class="house" x="1" y="{top}" width="{_WIDTH - 2}" height="{height}" rx="8"/>']
    parts.append(f'<text class="name" x="16" y="{top + height / 2 + 5}">{html.escape(name)}</text>')
    leaning = f"on {', '.join(needs)}" if needs else ""
    parts.append(f'<text class="leans" x="{_WIDTH - 14}" y="{top + height / 2 + 5}">{leaning}</text>')
    for place, room in enumerate(rooms):
        x = _LEFT + place % _per_row() * (_BOX + _GAP)
        y = top + _GAP + place // _per_row() * (_HEIGHT + _GAP)
        parts.append(
            f'<a href="api/{room}.html"><rect class="room" x="{x}" y="{y}" width="{_BOX}" height="{_HEIGHT}" rx="4"/>'
        )
        parts.append(f'<text class="room-name" x="{x + _BOX / 2}" y="{y + 18}">{html.escape(room)}</text></a>')
    return "".join(parts)


def page(known: Mapping[str, Room]) -> str:
    """Return the page with the picture and the same as a table."""
    grouped = houses(known)
    leans, rows = imports(known, grouped), []
    numbers = {name: number for number, name in enumerate(grouped, 1)}
    for name, rooms in grouped.items():
        links = ", ".join(f'<a href="api/{room}.html">{room}</a>' for room in rooms)
        needs = ", ".join(f"{numbers[one]} {one}" for one in grouped if one in leans[name]) or "the ground only"
        rows.append(f'<tr><th scope="row">{numbers[name]} {name}</th><td>{links}</td><td>{needs}</td></tr>')
    return _PAGE.format(svg=svg(known), rows="".join(rows))


_PAGE = """<h1>The rooms</h1>
<p>Every module belongs to a room, and a table in <code>tests/test_architecture.py</code> says which room may import
which; no two rooms lean on each other. Data flows one way: sources, collection, systems, runs, measures, values, then
statistics, tables and plots. All stand on the ground.</p>
<figure>{svg}<figcaption>Houses of rooms, the ground first; at the right the houses that it leans on.
Each room leads to its interface.</figcaption></figure>
<h2 id="who-leans-on-whom">Who leans on whom</h2>
<div class="wide" tabindex="0"><table>
<thead><tr><th scope="col">house</th><th scope="col">rooms</th><th scope="col">leans on</th></tr></thead>
<tbody>{rows}</tbody></table></div>"""
