"""picture: the twelve packages in the order in which they may import each other, as a drawing."""

from __future__ import annotations

import html

from interface import Package
from words import inline, plain

LIBRARY = ("core", "data", "formula", "evaluation", "encoders", "retrieval", "display")
_WIDTH, _HEIGHT, _STEP, _NAME = 900, 34, 42, 150


def figure(known: list[Package]) -> str:
    """Return the packages as inline SVG with a caption; each box leads to the package's page.

    The colours come from the style of the page, so that the picture is readable in both colour schemes.
    """
    boxes = "".join(_box(one, top=number * _STEP + 1) for number, one in enumerate(known))
    order = f"{len(known)} packages from top to bottom: {', '.join(one.name for one in known)}"
    return (
        f'<figure><svg class="packages" viewBox="0 0 {_WIDTH} {len(known) * _STEP}" role="img" '
        f'aria-labelledby="packages-title packages-desc"><title id="packages-title">The packages of mirblab</title>'
        f'<desc id="packages-desc">{html.escape(order)}</desc>{boxes}</svg><figcaption>Each package imports only from '
        "those above it. Boxes with a thick border are the small helper library.</figcaption></figure>"
    )


def _box(package: Package, top: int) -> str:
    """Return a package as a box with its name and the first line of its docstring."""
    kind, line = "library" if package.name in LIBRARY else "workshop", top + _HEIGHT / 2 + 5
    return (
        f'<a href="api/{package.name}.html"><rect class="{kind}" x="2" y="{top + 1}" width="{_WIDTH - 4}" '
        f'height="{_HEIGHT}" rx="4"/><text class="package-name" x="16" y="{line}">{package.name}</text>'
        f'<text class="summary" x="{_NAME}" y="{line}">{html.escape(plain(inline(package.summary)))}</text></a>'
    )
