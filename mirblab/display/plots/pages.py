"""pages: a projection as an interactive HTML page."""

from __future__ import annotations

import html
import json
import re
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from mirblab.core.atomic_files import write_text
from mirblab.core.errors import MirblabError
from mirblab.display.figures import require_columns
from mirblab.display.plots.maps import COLOURS
from mirblab.display.text import escape_html, is_large, source_beginning, template
from mirblab.formula import in_text, markup
from mirblab.formula.latex import parser as reader

STYLE, SCRIPT = template("map.css"), template("map.js")

_WIDTH, _HEIGHT, _MARGIN = 1000, 720, 24  # of the drawing, in its own units
_DOT, _FEW = 19.0, 80  # the width of a dot on a map of up to so many statements
_SINGLE_ROW = re.compile(r"<mrow>(<(m[ion])\b[^<>]*>[^<]*</\2>)</mrow>")
# A browser's default attributes of brackets, at the ends of a row and elsewhere.
_DEFAULT_ATTRIBUTES = re.compile(
    r'<mo (?:form="(?:pre|post)fix" lspace="0" rspace="0" stretchy="(?:true|false)"|fence="false" stretchy="false")>'
    r"([()\[\]{}])"
)
_HEAD = re.compile(r"^<math [^>]*>")
_SIGN = re.compile(r"<(m[ion])>([^<&\s]|&(?:lt|gt|amp);)</\1>")
_KINDS = {"L": "mi", "N": "mn"}  # by the first letter of a sign's category in Unicode; all others are operators


def map_page(maps: pd.DataFrame, path: str | Path, *, title: str = "", caption: str = "") -> Path:
    """Write *maps* as one interactive HTML page to *path*, and return the path.

    It shows the formulas and the partner of a chosen statement; fields, kinds and seeds can be chosen. *maps* is from
    `projection.seeded_maps`: id, class_id, field, kind, text, x, y, seed, and optional columns of
    `projection.point_trustworthiness`. Everything is escaped, and equal tables give equal bytes.

    >>> import tempfile
    >>> rows = [("a", "p", "f", "pair", "$x<y$ & so", 0.0, 1.0, 0), ("b", "p", "g", "pair", "then", 1.0, 0.0, 0)]
    >>> maps = pd.DataFrame(rows, columns=["id", "class_id", "field", "kind", "text", "x", "y", "seed"])
    >>> found = map_page(maps, Path(tempfile.mkdtemp()) / "map.html", title="Two statements").read_text("utf-8")
    >>> "<p><i>0</i> &amp; so</p>" in found, "<math>x&lt;y</math>" in found
    (True, True)
    """
    path = Path(path)
    text = map_page_html(maps, title or "Map of statements", caption)
    write_text(path, text)
    return path


def map_page_html(maps: pd.DataFrame, title: str, caption: str = "") -> str:
    """Return the page of `map_page`; MirblabError for a missing column, or maps of different statements."""
    require_columns(maps, "id", "class_id", "field", "kind", "text", "x", "y", "seed")
    parts = [part.sort_values("id", kind="stable") for _, part in maps.groupby("seed", sort=False)]
    if not parts or any(part.id.tolist() != parts[0].id.tolist() for part in parts):
        raise MirblabError("the maps are empty or show other statements for another seed; take those of one call")
    first = parts[0].astype({"class_id": str, "field": str, "kind": str})
    texts, formulas = _statements_html(first.text.tolist())
    fields = sorted(first.field.unique())
    is_distractor = first.kind == "distractor"
    kinds = [" or ".join(sorted(first.kind[~is_distractor].unique())), *first.kind[is_distractor].unique()]
    data = {
        "fields": fields, "kinds": kinds, "colours": COLOURS, "links": _links(first),
        "size": _DOT * min(1.0, _FEW / len(first)) ** 0.5, "points": _points(parts, fields),
    }  # fmt: skip
    seeds = [part.seed.iloc[0] for part in parts]
    return template("map.html").format(
        title=escape_html(title), caption=escape_html(caption), legend=_legend(first, fields, kinds, seeds),
        width=_WIDTH, height=_HEIGHT,
        texts="\n".join(texts), formulas="\n".join(formulas), data=_json(data), script=SCRIPT,
        style=STYLE, allowed="script-src 'unsafe-inline'",
    ) + "\n"  # fmt: skip


def _statements_html(texts: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return statements as HTML, with `<i>n</i>` for a formula, and each distinct formula once, as MathML."""
    places: dict[str, int] = {}
    statements = []
    for text in texts:
        parts = [
            f"<i>{places.setdefault(part, len(places))}</i>" if place % 2 else escape_html(part)
            for place, part in enumerate(in_text.split_text(text))
        ]
        statements.append(f"<p>{''.join(parts)}</p>")
    return statements, [_formula_html(source) for source in places]


def _formula_html(latex: str) -> str:
    """Return a formula as MathML without what a browser or the script adds, which makes it a fifth as long."""
    tree = reader.parse_latex(latex)
    if is_large(tree):
        return source_beginning(latex)
    inner = _HEAD.sub("", markup.to_mathml(tree)).removeprefix("<mrow>").removesuffix("</mrow></math>")
    short = _SIGN.sub(_shorten_token, _DEFAULT_ATTRIBUTES.sub(r"<mo>\1", _SINGLE_ROW.sub(r"\1", inner)))
    return f"<math>{short}</math>"


def _shorten_token(token: re.Match[str]) -> str:
    usual = _KINDS.get(unicodedata.category(html.unescape(token[2]))[0], "mo")
    return token[2] if token[1] == usual else token[0]


def _links(points: pd.DataFrame) -> list[list[int]]:
    pairs = points[(points.kind != "distractor") & (points.class_id != "")]
    at = pd.Series(range(len(points)), index=points.index)
    groups = [at[part.index].tolist() for _, part in pairs.groupby("class_id", sort=True)]
    return [list(two) for group in groups for two in zip(group, group[1:], strict=False)]


def _points(parts: list[pd.DataFrame], fields: list[str]) -> list[dict[str, Any]]:
    places = list(zip(*(_page_positions(part) for part in parts), strict=True))
    numbers = list(zip(*(_numbers(part) for part in parts), strict=True)) if "kept" in parts[0] else []
    points = []
    for place, (field, kind) in enumerate(zip(parts[0].field, parts[0].kind, strict=True)):
        point = {"field": fields.index(str(field)), "kind": int(kind == "distractor"), "at": places[place]}
        points.append(point | ({"numbers": numbers[place]} if numbers else {}))
    return points


def _page_positions(part: pd.DataFrame) -> list[tuple[int, int]]:
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
        boxes.append(_box("field", place, f"{swatch}{escape_html(field)} ({(points.field == field).sum():,})"))
    path = ("M-8 0a8 8 0 1 0 16 0a8 8 0 1 0-16 0", "M0-9 8 6H-8Z")
    for place, kind in enumerate(kinds):
        swatch = f'<svg viewBox="-10 -10 20 20" aria-hidden="true"><path fill="currentColor" d="{path[place]}"/></svg>'
        n_points = ((points.kind == "distractor") == bool(place)).sum()
        boxes.append(_box("kind", place, f"{swatch}{escape_html(kind)} ({n_points:,})"))
    legend = f"<fieldset><legend>Show</legend>{''.join(boxes)}</fieldset>"
    if len(seeds) == 1:
        return legend
    maps = [_box("seed", place, escape_html(str(seed)), "radio", place == 0) for place, seed in enumerate(seeds)]
    return f"{legend}\n<fieldset><legend>Map of seed</legend>{''.join(maps)}</fieldset>"


def _box(name: str, value: int, text: str, kind: str = "checkbox", is_on: bool = True) -> str:
    on = " checked" if is_on else ""
    return f'<label><input type="{kind}" name="{name}" value="{value}" autocomplete="off"{on}>{text}</label>'


def _json(data: dict[str, Any]) -> str:
    """Return JSON that ends no script element: every "<" is escaped."""
    return json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
