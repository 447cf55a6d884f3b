"""build: the site as a folder of files that needs no network: python docs/build.py [OUT]."""

from __future__ import annotations

import html
import json
import re
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, FileSystemLoader

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
# jsonschema imports it where it can, which takes 2.5 s, for formats that no notebook has.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]

import books  # noqa: E402
import interface  # noqa: E402
import picture  # noqa: E402
from words import markdown, plain, slug  # noqa: E402

MENU = {
    "index.html": "Start",
    "notebooks/index.html": "Notebooks",
    "howto/index.html": "How to",
    "teachers.html": "Teaching",
    "api/index.html": "Interface",
    "architecture.html": "Architecture",
    "glossary.html": "Glossary",
}
_HEADING = re.compile(r'<(?:h[1-4]|tr) id="([^"]+)">(?:<th scope="row">)?(.*?)</(?:h[1-4]|th)>', re.DOTALL)
_ROW = re.compile(r"<tr>\s*<td>(.*?)</td>")


@dataclass(frozen=True)
class Page:
    """One page: its path in the site, and its content, which begins with its only h1."""

    path: str
    body: str

    @property
    def title(self) -> str:
        """Return its h1 as plain words."""
        found = re.search(r"<h1[^>]*>(.*?)</h1>", self.body, re.DOTALL)
        return plain(found[1]) if found else self.path

    @property
    def root(self) -> str:
        """Return the way from the page's folder to the site's."""
        return "../" * self.path.count("/")


def pages(known: list[interface.Package]) -> list[Page]:
    """Return every page of the site."""
    found = [Page(f"{path.stem}.html", _text(path, known)) for path in sorted(HERE.glob("*.md"))]
    found += [Page(f"howto/{path.stem}.html", _text(path, known)) for path in sorted((HERE / "howto").glob("*.md"))]
    found += [Page("api/index.html", interface.index(known))]
    found += [Page(f"api/{package.name}.html", interface.page(package)) for package in known]
    found += [Page("notebooks/index.html", books.index())]
    return found + [Page(f"notebooks/{source.stem}.html", books.page(source)) for source in books.sources()]


def _text(path: Path, known: list[interface.Package]) -> str:
    """Return a page of Markdown; links to other Markdown pages lead to their HTML."""
    made = re.sub(r'(href="(?![a-z]+:)[^"#]+)\.md(?=["#])', r"\1.html", markdown(path.read_text("utf-8")))
    if path.stem == "architecture":
        return made.replace("</h1>", f"</h1>{picture.figure(known)}", 1)
    return _ROW.sub(_term, made) if path.stem == "glossary" else made


def _term(row: re.Match[str]) -> str:
    """Return a row of the glossary with its word as the row's head, and an anchor."""
    return f'<tr id="{slug(row[1])}"><th scope="row">{row[1]}</th>'


def entries(page: Page) -> list[dict[str, str]]:
    """Return what the search knows of a page: the page itself, and each of its headings."""
    words = plain(page.body)[:4000]
    found = [{"t": page.title, "u": page.path, "s": words}]
    for anchor, inner in _HEADING.findall(page.body):
        found.append({"t": plain(inner), "u": f"{page.path}#{anchor}", "s": page.title})
    return found


def build(out: Path) -> int:
    """Write the site to the folder *out*, replacing what is there; return the number of pages.

    Raises FileExistsError for a folder that is neither empty nor a site of ours.
    """
    if out.exists() and any(out.iterdir()) and not (out / "search-index.js").is_file():
        raise FileExistsError(f"{out} holds other files; name an empty folder")
    shutil.rmtree(out, ignore_errors=True)
    frame = Environment(loader=FileSystemLoader(HERE / "look"), autoescape=False).get_template("page.html.jinja2")
    packages = interface.packages()
    all_pages = pages(packages)
    menu = {path: name for path, name in MENU.items() if path in {page.path for page in all_pages}}
    for page in all_pages:
        target = out / page.path
        target.parent.mkdir(parents=True, exist_ok=True)
        written = frame.render(page=page, title=html.escape(page.title), menu=menu, packages=packages, root=page.root)
        target.write_text(written, "utf-8")
    for name in ("site.css", "search.js"):
        shutil.copyfile(HERE / "look" / name, out / name)
    shutil.copytree(HERE / "pictures", out / "pictures")
    found = [entry for page in all_pages for entry in entries(page)]
    text = json.dumps(found, ensure_ascii=False, separators=(",", ":")).replace("</", "<\\/")
    (out / "search-index.js").write_text(f"window.searchIndex = {text};\n", "utf-8")
    return len(all_pages)


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "site"
    print(f"{build(target)} pages; open {target / 'index.html'}")
