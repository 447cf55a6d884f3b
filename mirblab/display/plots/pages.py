"""pages: a projection as an interactive HTML page, and pages shown in a notebook."""

from __future__ import annotations

import html
import json
import re
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from mirblab.core.atomic_files import write_text
from mirblab.core.errors import MirblabError
from mirblab.display.figures import require_columns
from mirblab.display.plots.maps import COLOURS, region_colours
from mirblab.display.text import CONTROL, escape_html, is_large, source_beginning, template
from mirblab.formula import in_text, markup
from mirblab.formula.latex import parser as reader

if TYPE_CHECKING:
    from IPython.display import HTML

STYLE, SCRIPT = template("map.css"), template("map.js")

_WIDTH, _HEIGHT, _MARGIN = 10_000, 7_200, 240  # of the drawing, in its own units
_LARGEST = 8_000_000  # characters of a page that stands in a notebook
_DOT, _FEW = 19.0, 80  # the width of a dot on a map of up to so many statements
_SINGLE_ROW = re.compile(r"<mrow>(<(m[ion])\b[^<>]*>[^<]*</\2>)</mrow>")
# A browser's default attributes of brackets, at the ends of a row and elsewhere.
_DEFAULT_ATTRIBUTES = re.compile(
    r'<mo (?:form="(?:pre|post)fix" lspace="0" rspace="0" stretchy="(?:true|false)"|'
    r'data-loose="true" stretchy="false")>'
    r"([()\[\]{}])"
)
_HEAD = re.compile(r"^<math [^>]*>")
_SIGN = re.compile(r"<(m[ion])>([^<&\s]|&(?:lt|gt|amp);)</\1>")
_KINDS = {"L": "mi", "N": "mn"}  # by the first letter of a sign's category in Unicode; all others are operators


def map_page(maps: pd.DataFrame, path: str | Path, *, title: str = "", caption: str = "", address: str = "") -> Path:
    """Write *maps* as one interactive HTML page to *path*, and return the path.

    It shows the formulas and the partner of a chosen statement; statements can be searched, drawn around, listed,
    copied and downloaded as CSV; regions or fields, kinds and seeds can be chosen. *maps* is from
    `projection.seeded_maps`: id, class_id, field, kind, text, x, y, seed, and optional columns of
    `projection.point_trustworthiness` and `projection.label_regions`. *address*: where a statement can be read, with
    "{}" for its id. Everything is escaped, the page needs no network, and equal tables give equal bytes. MirblabError
    for an address that is none.

    >>> import tempfile
    >>> rows = [("a", "p", "f", "pair", "$x<y$ & so", 0.0, 1.0, 0), ("b", "p", "g", "pair", "then", 1.0, 0.0, 0)]
    >>> maps = pd.DataFrame(rows, columns=["id", "class_id", "field", "kind", "text", "x", "y", "seed"])
    >>> found = map_page(maps, Path(tempfile.mkdtemp()) / "map.html", title="Two statements").read_text("utf-8")
    >>> '["",0," & so"]' in found, "math>x&lt;y" in found
    (True, True)
    """
    path = Path(path)
    text = map_page_html(maps, title or "Map of statements", caption, address)
    write_text(path, text)
    return path


def map_page_html(maps: pd.DataFrame, title: str, caption: str = "", address: str = "") -> str:
    """Return the page of `map_page`; MirblabError for a missing column, or maps of different statements."""
    require_columns(maps, "id", "class_id", "field", "kind", "text", "x", "y", "seed")
    if address and not (re.match(r"https?://", address) and "{}" in address):
        raise MirblabError(f"'{address}' is no address of statements; give one such as https://example.org/tag/{{}}")
    parts = [part.sort_values("id", kind="stable") for _, part in maps.groupby("seed", sort=False)]
    if not parts or any(part.id.tolist() != parts[0].id.tolist() for part in parts):
        raise MirblabError("the maps are empty or show other statements for another seed; take those of one call")
    first = parts[0].astype({"id": str, "class_id": str, "field": str, "kind": str})
    groups, group_names = _groups(parts, first), _group_names(first)
    is_distractor = first.kind == "distractor"
    kinds = [" or ".join(sorted(first.kind[~is_distractor].unique())), *first.kind[is_distractor].unique()]
    fields, classes = pd.Categorical(first.field), pd.Categorical(first.class_id)
    texts, sources = _split_texts(first.text.tolist())
    data = {
        "groups": groups, "region": "region" in first, "kinds": kinds, "address": address, "links": _links(first),
        "size": _DOT * min(1.0, _FEW / len(first)) ** 0.5, "ids": first.id.tolist(),
        "group": pd.Categorical(group_names, [group["name"] for group in groups]).codes.tolist(),
        "field": fields.codes.tolist(), "fields": fields.categories.tolist(),
        "kind": is_distractor.astype(int).tolist(),
        "class": classes.codes.tolist(), "classes": classes.categories.tolist(),
        "at": [_page_positions(part).ravel().tolist() for part in parts],
        "numbers": [_numbers(part) for part in parts] if "kept" in first else [],
        "texts": texts, "sources": sources, "formulas": [_formula_html(source) for source in sources],
    }  # fmt: skip
    return template("map.html").format(
        title=escape_html(title), caption=escape_html(caption),
        legend=_legend(first, group_names, groups, kinds, [part.seed.iloc[0] for part in parts]),
        data=_json(data), script=SCRIPT, style=STYLE, allowed="script-src 'unsafe-inline'",
    ) + "\n"  # fmt: skip


def page_frame(path: str | Path, title: str, link: str) -> HTML:
    """Return the page at *path* as HTML that a notebook shows in place, and a *link* to it.

    The page is in the notebook, so that it is shown from any folder, and in a frame of its own, whose scripts reach
    neither the notebook nor the server. A page over 8 MB is linked only. An untrusted notebook shows the link alone.

    >>> import tempfile
    >>> page = Path(tempfile.mkdtemp()) / "page.html"
    >>> _ = page.write_text("<p>x")
    >>> page_frame(page, "A page", "../page.html").data[:62]
    '<figure style="margin: 0"><iframe sandbox srcdoc="&lt;p&gt;x" '
    """
    from IPython.display import HTML

    page, shown = Path(path).read_text("utf-8"), ""
    if len(page) <= _LARGEST:
        # Other files are not within the frame.
        inner = html.escape(re.sub(r' href="(?![a-z]+:)[^"]*"', "", page))
        may = '="allow-scripts allow-downloads allow-popups allow-popups-to-escape-sandbox" allow="clipboard-write"'
        shown = (
            f'<iframe sandbox{may if "<script>" in page else ""} srcdoc="{inner}" title="{html.escape(title)}" '
            'style="width: 100%; height: 46em; border: 1px solid #888"></iframe>'
        )
    where = "Where no frame is seen, trust the notebook or open" if shown else "The page is large; open"
    to = f'<a href="{html.escape(link)}" target="_blank">{html.escape(link)}</a>'
    return HTML(
        f'<figure style="margin: 0">{shown}<figcaption>{escape_html(title)}. {where} {to}.</figcaption></figure>'
    )


def _split_texts(texts: Sequence[str]) -> tuple[list[list[str | int]], list[str]]:
    """Return statements as prose and, at odd places, the number of a formula; and the LaTeX of each formula once."""
    places: dict[str, int] = {}
    statements = [
        [
            places.setdefault(part, len(places)) if place % 2 else part
            for place, part in enumerate(in_text.split_text(text))
        ]
        for text in texts
    ]
    return statements, list(places)


def _group_names(points: pd.DataFrame) -> pd.Series:
    return points.region.astype(str) if "region" in points else points.field


def _groups(parts: list[pd.DataFrame], first: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the regions, or else fields: name, colour, whether dots are hollow, and where a region's words stand."""
    if "region" not in first:
        names = sorted(first.field.unique())
        looks = {name: (COLOURS[n % len(COLOURS)], n // len(COLOURS) % 2 == 1) for n, name in enumerate(names)}
        return [{"name": name, "colour": colour, "hollow": hollow} for name, (colour, hollow) in looks.items()]
    looks = region_colours(first.region)
    at = {
        name: [
            np.median(_page_positions(part)[(part.region == name).to_numpy()], axis=0).round().astype(int).tolist()
            for part in parts
        ]
        for name in looks
        if (first.region == name).any()
    }
    return [{"name": name, "colour": looks[name][0], "hollow": looks[name][1], "at": at[name]} for name in at]


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


def _page_positions(part: pd.DataFrame) -> np.ndarray:
    """Return where the statements of one map are on its drawing, (n, 2), in whole units of the drawing."""
    x, y = part.x.to_numpy() - part.x.min(), part.y.max() - part.y.to_numpy()
    room = min((_WIDTH - 2 * _MARGIN) / max(x.max(), 1e-9), (_HEIGHT - 2 * _MARGIN) / max(y.max(), 1e-9))
    x, y = x * room, y * room
    at = np.stack([x + (_WIDTH - x.max()) / 2, y + (_HEIGHT - y.max()) / 2], axis=1)
    return at.round().astype(int)


def _numbers(part: pd.DataFrame) -> list[int]:
    """Return for each point how many of its k nearest a map keeps, k, and its partner's ranks in full space and map."""
    kept = (part.k * part.kept).round().astype(int)
    return np.stack([kept, part.k, part.partner_full, part.partner_map], axis=1).astype(int).ravel().tolist()


def _legend(
    points: pd.DataFrame, names: pd.Series, groups: list[dict[str, Any]], kinds: list[str], seeds: Sequence[int]
) -> str:
    boxes = []
    for place, group in enumerate(groups):
        colour, hollow = group["colour"].replace("#000000", "currentColor"), group["hollow"]
        look = f'fill="{"none" if hollow else colour}" stroke="{colour if hollow else "currentColor"}"'
        swatch = f'<svg viewBox="-10 -10 20 20" aria-hidden="true"><circle r="8" stroke-width="2" {look}/></svg>'
        n_points = (names == group["name"]).sum()
        boxes.append(_box("group", place, f"{swatch}{escape_html(group['name'] or 'no region')} ({n_points:,})"))
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
    """Return JSON that ends no script element, since every "<" is escaped, nor has signs that HTML may not have."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    return CONTROL.sub(lambda sign: f"\\u{ord(sign[0]):04x}", text)
