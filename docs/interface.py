"""interface: the pages of the twelve packages, made from their docstrings, and the list of public names.

The files are read and not imported, so that a page costs little and shows signatures as they are written.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from words import code, docstring, inline

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "mirblab"
_WIDE = 100
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Package:
    """A package of mirblab: its name, the first line of its docstring, and its modules by their dotted names."""

    name: str
    summary: str
    modules: tuple[str, ...]


def packages() -> list[Package]:
    """Return the packages in the order in which they may import each other, which tests/test_architecture.py holds."""
    source = next((ROOT / "tests").rglob("test_architecture.py")).read_text("utf-8")
    order = next(node.value for node in ast.parse(source).body if isinstance(node, ast.Assign)
                 and ast.unparse(node.targets[0]) == "PACKAGES")  # fmt: skip
    return [Package(name, summary(read(name)), _modules(name)) for name in ast.literal_eval(order)]


def _modules(package: str) -> tuple[str, ...]:
    """Return the modules of a package, those at its top first; of sub-packages only what they hold."""
    paths = [path for path in (PACKAGE / package).rglob("*.py") if path.name != "__init__.py"]
    names = [path.relative_to(PACKAGE).with_suffix("").parts for path in paths]
    return tuple(".".join(parts) for parts in sorted(names, key=lambda parts: (parts[:-1], parts)))


def public(package: str = "") -> dict[str, str]:
    """Return where each public name of mirblab or of one of its packages is defined, as "module.name".

    >>> public()["evaluate"], public("evaluation")["significance_letters"]
    ('evaluation.measures.evaluate', 'evaluation.significance.significance_letters')
    """
    stub = PACKAGE.joinpath(*package.split("."), "__init__.pyi") if package else PACKAGE / "__init__.pyi"
    body = ast.parse(stub.read_text("utf-8")).body if stub.is_file() else []
    return {
        alias.name: ".".join(part for part in (package, node.module, alias.name) if part)
        for node in body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def summary(node: ast.Module | Function | ast.ClassDef) -> str:
    """Return the first line of a docstring, without the module's own name in front.

    >>> summary(ast.parse("'runs: what a system returned.'"))
    'what a system returned.'
    """
    return re.sub(r"^[a-z_0-9]+: ", "", ((ast.get_docstring(node) or "").splitlines() or [""])[0])


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


def page(package: Package) -> str:
    """Return a package's page: its public names, and the public functions and classes of its modules."""
    parts = [f"<h1>{package.name}</h1><p>{inline(package.summary)}</p>{names(package.name)}"]
    links = ", ".join(f'<a href="#{dotted}">{dotted.partition(".")[2]}</a>' for dotted in package.modules)
    parts.append(f'<h2 id="modules">Modules</h2><p>{links}</p>')
    for dotted in package.modules:
        tree = read(dotted)
        about = docstring(re.sub(r"^[a-z_0-9]+: ", "", ast.get_docstring(tree) or ""))
        parts.append(f'<section><h2 id="{dotted}">{dotted}</h2>{about}')
        parts += [_member(node, dotted) for node in shown(tree.body)]
        parts.append("</section>")
    return "\n".join(parts)


def _member(node: Function | ast.ClassDef, above: str, level: int = 3) -> str:
    """Return the part on a function, a method or a class: its name as heading, its signature, its docstring."""
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


def index(known: list[Package]) -> str:
    """Return the page that lists the packages, and the names that `lab` has from each of them."""
    lines, tables, places = [], [], public()
    for one in known:
        lines.append(f'<li><a href="{one.name}.html">{one.name}</a>: {inline(one.summary)}</li>')
        rows = [_row("lab", name, place) for name, place in places.items() if place.split(".")[0] == one.name]
        tables += [f"<h3>{one.name}</h3>", _TABLE.format(rows="".join(rows))] if rows else []
    return _INDEX.format(packages="".join(lines), names="".join(tables))


def names(package: str) -> str:
    """Return the table of a package's public names, those of `plots` included, or an empty text where it has none."""
    rows = [_row(f"lab.{package}", name, place) for name, place in public(package).items()]
    if package == "display":
        rows += [_row("lab.plots", name, place) for name, place in public("display.plots").items()]
    return f'<h2 id="names">Public names</h2>{_TABLE.format(rows="".join(rows))}' if rows else ""


def _row(above: str, name: str, place: str) -> str:
    """Return the row of a public name: how it is written, with a link to its description, and its first line."""
    package, module = place.split(".")[0], place.rpartition(".")[0]
    path = PACKAGE.joinpath(*place.split("."))
    if path.is_dir() or path.with_suffix(".py").is_file():
        what, anchor = summary(read(place)), "names" if path.is_dir() else place
    else:
        node = next((node for node in read(module).body if getattr(node, "name", "") == name), None)
        what, anchor = (summary(node), place) if node else ("a constant", module)
    target = f"{package}.html#{anchor}"
    return f'<tr><th scope="row"><a href="{target}"><code>{above}.{name}</code></a></th><td>{inline(what)}</td></tr>'


_TABLE = """<div class="wide" tabindex="0"><table>
<thead><tr><th scope="col">name</th><th scope="col">what it is</th></tr></thead>
<tbody>{rows}</tbody></table></div>"""
_INDEX = """<h1>Interface</h1>
<h2 id="packages">Packages</h2>
<p>Each package imports only from those before it; the <a href="../architecture.html">architecture</a> says why.</p>
<ol>{packages}</ol>
<h2 id="names">Public names</h2>
<p><code>import mirblab as lab</code> gives these names; each package's page lists its own.</p>
{names}"""
