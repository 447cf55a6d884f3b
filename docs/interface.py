"""interface: the API pages, one for each room, from the docstrings; and where each public name stands.

The files are read, not imported, so that a page costs nothing and shows signatures as they are written.
"""

from __future__ import annotations

import ast
import html
import re
import runpy
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from words import code, docstring

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "mirblab"
_WIDE = 100
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Room:
    """A room: its name, the rooms that it may import, and its modules by their dotted names."""

    name: str
    may_import: frozenset[str]
    modules: tuple[str, ...]


def rooms() -> dict[str, Room]:
    """Return the rooms of the table in tests/test_architecture.py, in its order, with the modules that exist."""
    table = runpy.run_path(str(ROOT / "tests" / "test_architecture.py"))
    found: dict[str, list[str]] = {name: [] for name in table["MAY_IMPORT"]}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        dotted = ".".join(part for part in parts if part != "__init__")
        if dotted and not dotted.startswith("__"):
            found.setdefault(table["ROOM"].get(parts[0], parts[0]), []).append(dotted)
    may = table["MAY_IMPORT"]
    return {name: Room(name, frozenset(may.get(name, ())), tuple(found[name])) for name in found if found[name]}


def public() -> dict[str, str]:
    """Return where each public name of mirblab is defined, as "module.name", or "module" where it is one."""
    tree = ast.parse((PACKAGE / "__init__.pyi").read_text("utf-8"))
    found = {}
    for node in tree.body:
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                found[alias.name] = defined(node.module, alias.name) if node.module else alias.name
    return dict(sorted(found.items(), key=lambda item: item[0].lower()))


def defined(module: str, name: str) -> str:
    """Return where a name is defined that *module* has, or passes on, as "module.name".

    >>> defined("significance", "wide")
    'matrices.wide'
    """
    for node in read(module).body:
        if isinstance(node, ast.ImportFrom) and name in {alias.name for alias in node.names}:
            return defined((node.module or "").removeprefix("mirblab."), name)
    return f"{module}.{name}"


def addresses(known: dict[str, Room]) -> dict[str, str]:
    """Return the page of each module, relative to the folder of the API pages."""
    return {module: f"{room.name}.html" for room in known.values() for module in room.modules}


def first_sentence(text: str) -> str:
    """Return the first line of a docstring, without the module's own name in front.

    >>> first_sentence("runs: what a system returned.")
    'what a system returned.'
    """
    return re.sub(r"^[a-z_]+: ", "", (text.strip().splitlines() or [""])[0])


@cache
def read(dotted: str) -> ast.Module:
    """Return the syntax tree of a module of mirblab, or of a package's own file."""
    path = PACKAGE.joinpath(*dotted.split("."))
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return ast.parse(file.read_text("utf-8"))


def shown(body: list[ast.stmt]) -> list[Function | ast.ClassDef]:
    """Return the public functions and classes of a module or a class that have a docstring, as they stand."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return [node for node in body if isinstance(node, kinds) and node.name[0] != "_" and ast.get_docstring(node)]


def page(room: Room) -> str:
    """Return a room's page: its modules, and of each its public functions and classes."""
    needs = ", ".join(f'<a href="{name}.html">{name}</a>' for name in sorted(room.may_import))
    parts = [f"<h1>{html.escape(room.name)}</h1>", f"<p>May import: {needs or 'nothing of mirblab'}.</p>"]
    for dotted in room.modules:
        tree = read(dotted)
        about = docstring((ast.get_docstring(tree) or "").partition(": ")[2])
        parts.append(f'<section><h2 id="{dotted}">{dotted}</h2>{about}')
        parts += [_member(node, dotted) for node in shown(tree.body)]
        parts.append("</section>")
    return "\n".join(parts)


def _member(node: Function | ast.ClassDef, above: str, level: int = 3) -> str:
    """Return what is said of a function, a method or a class: its name as heading, how it is called, its docstring."""
    anchor, body = f"{above}.{node.name}", docstring(ast.get_docstring(node) or "")
    call = class_head(node) if isinstance(node, ast.ClassDef) else signature(node, is_method=level > 3)
    own = f'<h{level} id="{anchor}">{node.name}</h{level}>{code(call, "python")}<div class="doc">{body}</div>'
    inner = shown(node.body) if isinstance(node, ast.ClassDef) and level == 3 else []
    return own + "".join(_member(one, anchor, 4) for one in inner)


def class_head(node: ast.ClassDef) -> str:
    """Return a class's first line, and the fields that it declares."""
    bases = f"({', '.join(map(ast.unparse, node.bases))})" if node.bases else ""
    fields = [
        one for one in node.body if isinstance(one, ast.AnnAssign) and not ast.unparse(one.target).startswith("_")
    ]
    return f"class {node.name}{bases}:\n" + "".join(f"    {ast.unparse(one)}\n" for one in fields)


def signature(node: Function, *, is_method: bool = False) -> str:
    """Return how a function is called, with its types, one argument per line where it is long.

    >>> signature(ast.parse("def f(self, a: int, *, b=2) -> str: ...").body[0], is_method=True)
    'f(a: int, *, b=2) -> str'
    """
    decorators = {ast.unparse(one).split(".")[-1] for one in node.decorator_list}
    back = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    if decorators & {"property", "cached_property"}:
        return node.name + back
    given = _arguments(node.args)[1 if is_method and "staticmethod" not in decorators else 0 :]
    line = f"{node.name}({', '.join(given)}){back}"
    return line if len(line) <= _WIDE else f"{node.name}(\n" + "".join(f"    {one},\n" for one in given) + f"){back}"


def _arguments(found: ast.arguments) -> list[str]:
    first = [*found.posonlyargs, *found.args]
    values = [None] * (len(first) - len(found.defaults)) + found.defaults
    parts = [_argument(one, value) for one, value in zip(first, values, strict=True)]
    if found.posonlyargs:
        parts.insert(len(found.posonlyargs), "/")
    if found.vararg:
        parts.append(f"*{_argument(found.vararg, None)}")
    elif found.kwonlyargs:
        parts.append("*")
    parts += [_argument(one, value) for one, value in zip(found.kwonlyargs, found.kw_defaults, strict=True)]
    return [*parts, f"**{_argument(found.kwarg, None)}"] if found.kwarg else parts


def _argument(one: ast.arg, value: ast.expr | None) -> str:
    shown_value = "" if value is None else ast.unparse(value)
    if one.annotation is None:
        return f"{one.arg}={shown_value}" if value else one.arg
    return f"{one.arg}: {ast.unparse(one.annotation)}" + (f" = {shown_value}" if value else "")


def index(known: dict[str, Room]) -> str:
    """Return the page of all public names, and of all rooms."""
    pages = addresses(known)
    rows = [_row(name, place, pages) for name, place in public().items()]
    lines = []
    for room in known.values():
        what = html.escape(first_sentence(ast.get_docstring(read(room.modules[0])) or ""))
        lines.append(f'<li><a href="{room.name}.html">{room.name}</a> ({len(room.modules)}): {what}</li>')
    return _INDEX.format(rows="".join(rows), rooms="".join(lines))


def _row(name: str, place: str, pages: dict[str, str]) -> str:
    module = place if place in pages else place.rpartition(".")[0]
    tree = read(module)
    nodes = [node for node in tree.body if getattr(node, "name", "") == name] if place != module else [tree]
    what = html.escape(first_sentence(ast.get_docstring(nodes[0]) or "")) if nodes else ""
    link = f'<a href="{pages[module]}#{place}"><code>lab.{name}</code></a>'
    return f'<tr><th scope="row">{link}</th><td>{what}</td></tr>'


_INDEX = """<h1>Interface</h1>
<p><code>import mirblab as lab</code> gives these names.</p>
<h2 id="names">Public names</h2>
<div class="wide" tabindex="0"><table><thead><tr><th scope="col">name</th><th scope="col">what it is</th></tr></thead>
<tbody>{rows}</tbody></table></div>
<h2 id="rooms">Rooms</h2>
<p>All modules, by the room that they belong to; the <a href="../rooms.html">picture of the rooms</a> shows who leans on
whom.</p>
<ul>{rooms}</ul>"""
