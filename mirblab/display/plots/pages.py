"""pages: an interactive page of a projection."""

from __future__ import annotations

import html
import json
import re
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from mirblab.core.errors import MirblabError, unknown
from mirblab.core.paths import write_text
from mirblab.display.plots.maps import COLOURS
from mirblab.display.text import beginning, escaped, is_large
from mirblab.formula import in_text, markup
from mirblab.formula.latex import parser as reader

STYLE = """
:root { color-scheme: light dark; --ground: #fff; --ink: #111; --quiet: #5f5f5f; --rule: #d8d8d8; --line: #a8a8a8; }
@media (prefers-color-scheme: dark) {
  :root { --ground: #16181c; --ink: #eee; --quiet: #a9a9a9; --rule: #3c4048; --line: #6d727b; }
}
body { margin: 0 auto; max-width: 76rem; padding: 1rem; font: 16px/1.5 sans-serif; background: var(--ground);
  color: var(--ink); }
h1 { font-size: 1.25rem; margin: 0; } .quiet { color: var(--quiet); font-size: 0.9rem; margin: 0.3rem 0; }
fieldset { border: 0; padding: 0; margin: 0.3rem 0; display: flex; flex-wrap: wrap; gap: 0.2rem 1.2rem; }
legend { float: left; margin-right: 1rem; color: var(--quiet); }
label svg { width: 1em; height: 1em; vertical-align: -0.1em; margin: 0 0.3em; }
main { display: flex; flex-wrap: wrap; gap: 1rem; align-items: flex-start; }
#map { flex: 3 1 32rem; min-width: 0; width: 100%; height: auto; border: 1px solid var(--rule); }
#told { flex: 2 1 20rem; min-width: 0; overflow-x: auto; }
#told h2 { font-size: 1rem; margin: 0.8rem 0 0.2rem; } #told p { margin: 0; overflow-wrap: anywhere; }
.point { stroke: var(--ink); stroke-width: 1; cursor: pointer; outline: none; }
.point.chosen, .point.partner { stroke-width: 4; } .point:focus-visible { stroke-width: 5; }
.link { stroke: var(--line); stroke-width: 1.2; } .link.chosen { stroke: var(--ink); stroke-width: 3; }
.away { display: none; }
"""

SCRIPT = """
'use strict';
const data = JSON.parse(document.getElementById('data').textContent);
const map = document.getElementById('map'), told = document.getElementById('told');
const sources = document.getElementById('texts').children, formulas = document.getElementById('formulas').children;
const hidden = {field: new Set(), kind: new Set()};
let seed = 0, chosen = -1;

function made(name, attributes, parent) {
  const element = document.createElementNS(map.namespaceURI, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return parent.appendChild(element);
}
function completed() {  // each sign of a formula that has no element of its own gets one
  const kinds = [[/\\p{L}/u, 'mi'], [/\\p{N}/u, 'mn'], [/./su, 'mo']], texts = [];
  const walker = document.createTreeWalker(document.getElementById('formulas'), NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) texts.push(walker.currentNode);
  for (const text of texts) {
    const row = text.parentElement;
    if (/^(m[ion]|mtext|code|div)$/.test(row.localName)) continue;
    text.replaceWith(...[...text.data].map(sign => {
      const token = document.createElementNS(row.namespaceURI, kinds.find(([pattern]) => pattern.test(sign))[1]);
      token.textContent = sign;
      return token;
    }));
  }
}
function shape(point) {  // a dot, or a triangle for a distractor
  return point.kind ? 'M0-8.1 7 4.1H-7Z' : 'M-8.5 0a8.5 8.5 0 1 0 17 0a8.5 8.5 0 1 0-17 0';
}
function statement(place) {
  const text = sources[place].cloneNode(true);
  for (const mark of text.querySelectorAll('i')) mark.replaceWith(formulas[Number(mark.textContent)].cloneNode(true));
  return text;
}
function words(name, text) {
  const element = document.createElement(name);
  element.textContent = text;
  return told.appendChild(element);
}
function said([kept, k, full, here]) {
  const rank = `; its partner is neighbour ${full} in the full space, ${here} here`;
  return `This map keeps ${kept} of its ${k} nearest${full ? rank : ''}.`;
}
function shown(point) { return !hidden.field.has(point.field) && !hidden.kind.has(point.kind); }

completed();
const scale = data.size / 17;
const links = data.links.map(([a, b]) => ({a, b, element: made('line', {class: 'link'}, map)}));
const dots = data.points.map((point, place) => {
  const hollow = point.field % 14 > 6, colour = data.colours[point.field % 7];
  const dot = made('path', {class: 'point', d: shape(point), tabindex: -1, role: 'button',
    fill: hollow ? 'var(--ground)' : colour}, map);
  if (hollow) dot.style.stroke = colour;
  dot.addEventListener('mouseenter', () => choose(place));
  dot.addEventListener('focus', () => choose(place));
  dot.addEventListener('click', () => dot.focus());
  return dot;
});
function draw() {
  data.points.forEach((point, place) => {
    const [x, y] = point.at[seed], size = scale * (point.kind ? 0.75 : 1);
    dots[place].setAttribute('transform', `translate(${x} ${y}) scale(${size.toFixed(3)})`);
    dots[place].classList.toggle('away', !shown(point));
  });
  for (const link of links) {
    const [a, b] = [data.points[link.a], data.points[link.b]];
    const [x1, y1] = a.at[seed], [x2, y2] = b.at[seed];
    for (const [key, value] of Object.entries({x1, y1, x2, y2})) link.element.setAttribute(key, value);
    link.element.classList.toggle('away', !shown(a) || !shown(b));
  }
  const first = data.points.findIndex(shown);
  dots.forEach((dot, place) => { dot.tabIndex = place === (chosen < 0 ? first : chosen) ? 0 : -1; });
}
function partners(place) { return links.flatMap(({a, b}) => a === place ? [b] : b === place ? [a] : []); }
function choose(place) {
  chosen = place;
  const others = partners(place), point = data.points[place];
  dots.forEach((dot, other) => {
    dot.classList.toggle('chosen', other === place);
    dot.classList.toggle('partner', others.includes(other));
    dot.tabIndex = other === place ? 0 : -1;
  });
  for (const link of links) link.element.classList.toggle('chosen', link.a === place || link.b === place);
  dots[place].setAttribute('aria-label', `${data.fields[point.field]}: ${statement(place).textContent}`);
  told.replaceChildren();
  words('h2', `${data.fields[point.field]}, ${data.kinds[point.kind]}`);
  told.append(statement(place));
  if (point.numbers) words('p', said(point.numbers[seed])).className = 'quiet';
  for (const other of others) {
    words('h2', `${data.kinds[data.points[other].kind]}: ${data.fields[data.points[other].field]}`);
    told.append(statement(other));
  }
}
function towards(place, dx, dy) {  // the nearest shown point within 45 degrees of a direction
  const [x, y] = data.points[place].at[seed];
  let best = place, least = Infinity;
  data.points.forEach((point, other) => {
    const along = (point.at[seed][0] - x) * dx + (point.at[seed][1] - y) * dy;
    const aside = Math.abs((point.at[seed][0] - x) * dy) + Math.abs((point.at[seed][1] - y) * dx);
    if (other !== place && shown(point) && along > 0 && aside <= along && along + aside < least)
      [best, least] = [other, along + aside];
  });
  return best;
}
const arrows = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1]};
map.addEventListener('keydown', event => {
  if (chosen < 0) return;
  if (event.key in arrows) dots[towards(chosen, ...arrows[event.key])].focus();
  else if (event.key === 'Enter') { const [other] = partners(chosen); if (other !== undefined) dots[other].focus(); }
  else return;
  event.preventDefault();
});
for (const box of document.querySelectorAll('input')) box.addEventListener('change', () => {
  if (box.name === 'seed') seed = Number(box.value);
  else hidden[box.name][box.checked ? 'delete' : 'add'](Number(box.value));
  if (chosen >= 0 && !shown(data.points[chosen])) { chosen = -1; told.replaceChildren(); }
  draw();
  if (chosen >= 0) choose(chosen);
});
draw();
"""


_WIDTH, _HEIGHT, _MARGIN = 1000, 720, 24  # of the drawing, in its own units
_DOT, _FEW = 19.0, 80  # the width of a dot on a map of up to so many statements
_ONE = re.compile(r"<mrow>(<(m[ion])\b[^<>]*>[^<]*</\2>)</mrow>")
# What a browser takes anyway, for brackets at the ends of a row and elsewhere.
_USUAL = re.compile(
    r'<mo (?:form="(?:pre|post)fix" lspace="0" rspace="0" stretchy="(?:true|false)"|fence="false" stretchy="false")>'
    r"([()\[\]{}])"
)
_HEAD = re.compile(r"^<math [^>]*>")
_SIGN = re.compile(r"<(m[ion])>([^<&\s]|&(?:lt|gt|amp);)</\1>")
_KINDS = {"L": "mi", "N": "mn"}  # by the first letter of a sign's category in Unicode; all others are operators
_PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; {allowed}">
<style>{style}</style></head>
<body><h1>{title}</h1>
<p class="quiet">{caption}</p>
{legend}
<main><svg id="map" viewBox="0 0 {width} {height}" role="group" aria-label="{title}"></svg>
<section id="told" aria-live="polite"><p class="quiet">Point at a statement, or reach one by the tab key: arrow keys
lead to its neighbours, Enter to its partner.</p></section></main>
<noscript>This page shows its map by a script that stands in it.</noscript>
<div id="texts" hidden>{texts}</div>
<div id="formulas" hidden>{formulas}</div>
<script type="application/json" id="data">{data}</script>
<script>{script}</script>
</body></html>
"""


def map_page(maps: pd.DataFrame, path: str | Path, *, title: str = "", caption: str = "") -> Path:
    """Write the *maps* of `projection.seeded_maps` as one interactive page to *path*, and return it.

    Pointing at a statement, or reaching it by keys, shows it with rendered formulas and marks its partner; boxes hide
    fields and kinds; with several seeds one chooses among their maps. *maps*: id, class_id, field, kind, text, x, y,
    seed; with the numbers of `projection.per_point` each statement tells its own. Everything is escaped, nothing comes
    from elsewhere, and the same table gives the same bytes.

    >>> import tempfile
    >>> rows = [("a", "p", "f", "pair", "$x<y$ & so", 0.0, 1.0, 0), ("b", "p", "g", "pair", "then", 1.0, 0.0, 0)]
    >>> maps = pd.DataFrame(rows, columns=["id", "class_id", "field", "kind", "text", "x", "y", "seed"])
    >>> found = map_page(maps, Path(tempfile.mkdtemp()) / "map.html", title="Two statements").read_text("utf-8")
    >>> "<p><i>0</i> &amp; so</p>" in found, "<math>x&lt;y</math>" in found
    (True, True)
    """
    path = Path(path)
    text = page(maps, title or "Map of statements", caption)
    write_text(path, text)
    return path


def page(maps: pd.DataFrame, title: str, caption: str = "") -> str:
    """Return the page of `map_page` as HTML; MirblabError for a missing column or maps of unequal statements."""
    for column in ("id", "class_id", "field", "kind", "text", "x", "y", "seed"):
        if column not in maps:
            raise unknown("column", column, [str(name) for name in maps.columns])
    parts = [part.sort_values("id", kind="stable") for _, part in maps.groupby("seed", sort=False)]
    if not parts or any(part.id.tolist() != parts[0].id.tolist() for part in parts):
        raise MirblabError("the maps are empty or show other statements for another seed; take those of one call")
    first = parts[0].astype({"class_id": str, "field": str, "kind": str})
    texts, formulas = _written(first.text)
    fields = sorted(first.field.unique())
    is_distractor = first.kind == "distractor"
    kinds = [" or ".join(sorted(first.kind[~is_distractor].unique())), *first.kind[is_distractor].unique()]
    data = {
        "fields": fields, "kinds": kinds, "colours": COLOURS, "links": _links(first),
        "size": _DOT * min(1.0, _FEW / len(first)) ** 0.5, "points": _points(parts, fields),
    }  # fmt: skip
    seeds = [part.seed.iloc[0] for part in parts]
    return _PAGE.format(
        title=escaped(title), caption=escaped(caption), legend=_legend(first, fields, kinds, seeds), width=_WIDTH,
        height=_HEIGHT, texts="\n".join(texts), formulas="\n".join(formulas), data=_json(data), script=SCRIPT,
        style=STYLE, allowed="script-src 'unsafe-inline'",
    )  # fmt: skip


def _written(texts: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return statements as HTML, `<i>n</i>` for a formula, and each distinct formula once, as MathML."""
    places: dict[str, int] = {}
    found = []
    for text in texts:
        parts = [
            f"<i>{places.setdefault(part, len(places))}</i>" if place % 2 else escaped(part)
            for place, part in enumerate(in_text.parts(text))
        ]
        found.append(f"<p>{''.join(parts)}</p>")
    return found, [_formula(source) for source in places]


def _formula(latex: str) -> str:
    """Return a formula as MathML without what a browser or the script adds, which makes it a fifth as long.

    A letter, a digit or another sign that stands in no element of its own is an identifier, a number or an operator.
    """
    tree = reader.parse_latex(latex)
    if is_large(tree):
        return beginning(latex)
    inner = _HEAD.sub("", markup.mathml(tree)).removeprefix("<mrow>").removesuffix("</mrow></math>")
    short = _SIGN.sub(_bare, _USUAL.sub(r"<mo>\1", _ONE.sub(r"\1", inner)))
    return f"<math>{short}</math>"


def _bare(token: re.Match[str]) -> str:
    usual = _KINDS.get(unicodedata.category(html.unescape(token[2]))[0], "mo")
    return token[2] if token[1] == usual else token[0]


def _links(points: pd.DataFrame) -> list[list[int]]:
    """Return the pairs of positions that a line joins: each member of a class and the next."""
    pairs = points[(points.kind != "distractor") & (points.class_id != "")]
    at = pd.Series(range(len(points)), index=points.index)
    groups = [at[part.index].tolist() for _, part in pairs.groupby("class_id", sort=True)]
    return [list(two) for group in groups for two in zip(group, group[1:], strict=False)]


def _points(parts: list[pd.DataFrame], fields: list[str]) -> list[dict[str, Any]]:
    places = list(zip(*(_places(part) for part in parts), strict=True))
    numbers = list(zip(*(_numbers(part) for part in parts), strict=True)) if "kept" in parts[0] else []
    found = []
    for place, row in enumerate(parts[0][["field", "kind"]].itertuples(index=False)):
        kind = int(row.kind == "distractor")
        point = {"field": fields.index(str(row.field)), "kind": kind, "at": places[place]}
        found.append(point | ({"numbers": numbers[place]} if numbers else {}))
    return found


def _places(part: pd.DataFrame) -> list[tuple[int, int]]:
    """Return where the points of one map are on the drawing, one scale for both axes."""
    x, y = part.x.to_numpy() - part.x.min(), part.y.max() - part.y.to_numpy()
    room = min((_WIDTH - 2 * _MARGIN) / max(x.max(), 1e-9), (_HEIGHT - 2 * _MARGIN) / max(y.max(), 1e-9))
    x, y = x * room, y * room
    x, y = x + (_WIDTH - x.max()) / 2, y + (_HEIGHT - y.max()) / 2
    return list(zip(x.round().astype(int).tolist(), y.round().astype(int).tolist(), strict=True))


def _numbers(part: pd.DataFrame) -> list[list[int]]:
    """Return for each point how many of its k nearest one map keeps, k, and its partner's ranks: full space, map."""
    kept = (part.k * part.kept).round().astype(int)
    return pd.DataFrame({"kept": kept, "k": part.k, "full": part.partner_full, "map": part.partner_map}).values.tolist()


def _legend(points: pd.DataFrame, fields: list[str], kinds: list[str], seeds: Sequence[int]) -> str:
    boxes = []
    for place, field in enumerate(fields):
        colour, hollow = COLOURS[place % len(COLOURS)], place // len(COLOURS) % 2 == 1
        look = f'fill="{"none" if hollow else colour}" stroke="{colour if hollow else "currentColor"}"'
        swatch = f'<svg viewBox="-10 -10 20 20" aria-hidden="true"><circle r="8" stroke-width="2" {look}/></svg>'
        boxes.append(_box("field", place, f"{swatch}{escaped(field)} ({(points.field == field).sum():,})"))
    path = ("M-8 0a8 8 0 1 0 16 0a8 8 0 1 0-16 0", "M0-9 8 6H-8Z")
    for place, kind in enumerate(kinds):
        swatch = f'<svg viewBox="-10 -10 20 20" aria-hidden="true"><path fill="currentColor" d="{path[place]}"/></svg>'
        n_points = ((points.kind == "distractor") == bool(place)).sum()
        boxes.append(_box("kind", place, f"{swatch}{escaped(kind)} ({n_points:,})"))
    legend = f"<fieldset><legend>Show</legend>{''.join(boxes)}</fieldset>"
    if len(seeds) == 1:
        return legend
    maps = [_box("seed", place, escaped(str(seed)), "radio", place == 0) for place, seed in enumerate(seeds)]
    return f"{legend}\n<fieldset><legend>Map of seed</legend>{''.join(maps)}</fieldset>"


def _box(name: str, value: int, text: str, kind: str = "checkbox", is_on: bool = True) -> str:
    on = " checked" if is_on else ""
    return f'<label><input type="{kind}" name="{name}" value="{value}" autocomplete="off"{on}>{text}</label>'


def _json(data: dict[str, Any]) -> str:
    """Return JSON that ends no script element: every "<" is written as an escape."""
    return json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
