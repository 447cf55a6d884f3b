"""The site builds offline, every link leads somewhere, nothing remote is loaded, and the how-to pages are true."""

from __future__ import annotations

import doctest
import importlib
import os
import re
import runpy
import socket
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote, urldefrag

import pytest
from lxml import etree
from lxml.html import document_fromstring

from mirblab.app.verification import read_expected

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
REMOTE = re.compile(r"^(?:[a-z]+:)?//", re.IGNORECASE)
PACKAGES = runpy.run_path(str(next((ROOT / "tests").rglob("test_architecture.py"))))["PACKAGES"]
FENCE = re.compile(r"^```(\w+) ?(\S*)\n(.*?)^```", re.MULTILINE | re.DOTALL)


class Read:
    """What the tests ask of a page."""

    def __init__(self, text: str) -> None:
        found = [(one.tag, dict(one.attrib)) for one in document_fromstring(text).iter(etree.Element)]
        self.ids = [attributes["id"] for _, attributes in found if attributes.get("id")]
        self.links = [attributes["href"] for tag, attributes in found if tag == "a" and attributes.get("href")]
        names = ("src", "href", "data", "poster", "srcset")
        others = [attributes for tag, attributes in found if tag != "a"]
        self.loaded = [attributes[name] for attributes in others for name in names if attributes.get(name)]
        self.levels = [int(tag[1]) for tag, _ in found if re.fullmatch("h[1-6]", tag)]
        self.without_alt = sum(tag == "img" and not (attributes.get("alt") or "").strip() for tag, attributes in found)


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """The whole site, built once in a process of its own, with one notebook that was executed."""
    home, out = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("out") / "site"
    executed = home / "figures" / "_executed" / "mini" / "00_start_here.ipynb"
    executed.parent.mkdir(parents=True)
    executed.write_text(_with_output((ROOT / "notebooks" / "00_start_here.ipynb").read_text("utf-8")), "utf-8")
    env = os.environ | {"MIRBLAB_HOME": str(home)}
    done = subprocess.run(
        [sys.executable, "docs/build.py", str(out)], cwd=ROOT, env=env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return out


def _with_output(text: str) -> str:
    import nbformat

    book = nbformat.reads(text, as_version=4)
    last = [cell for cell in book.cells if cell.cell_type == "code"][-1]
    data = {"text/html": '<img alt="a dot" src="data:image/png;base64,AAAA">', "text/plain": "a dot"}
    widget = {"application/vnd.jupyter.widget-view+json": {"model_id": "x"}, "text/plain": "HBox(children=())"}
    last.outputs = [
        nbformat.v4.new_output("display_data", data=data),
        nbformat.v4.new_output("display_data", data=widget),
        nbformat.v4.new_output("display_data", data=widget | {"text/html": "<p>said in words</p>"}),
        nbformat.v4.new_output("stream", text="\x1b[31mred <b>words</b>\x1b[0m"),
    ]
    return nbformat.writes(book)


@pytest.fixture(scope="module")
def pages(site) -> dict[str, Read]:
    return {path.relative_to(site).as_posix(): Read(path.read_text("utf-8")) for path in site.rglob("*.html")}


def test_every_link_and_every_anchor_leads_somewhere(site, pages):
    """From any page to a file of the site, and to an id on it."""
    lost = []
    for name, page in pages.items():
        for link in page.links:
            if REMOTE.match(link) or link.startswith("data:"):
                continue
            path, anchor = urldefrag(link)
            target = (site / name).parent.joinpath(unquote(path)).resolve() if path else site / name
            at = (
                target.relative_to(site.resolve()).as_posix() if target.is_file() and path else name if not path else ""
            )
            if not at or (anchor and at in pages and unquote(anchor) not in pages[at].ids):
                lost.append(f"{name}: {link}")
    assert not lost, "\n".join(lost[:40])


def test_no_page_loads_anything_from_elsewhere(site, pages):
    """Scripts, styles, pictures and fonts lie in the site; the browser is told to refuse the rest."""
    for name, page in pages.items():
        for address in page.loaded:
            assert not REMOTE.match(address) and not address.startswith("http"), f"{name} loads {address}"
            if not address.startswith("data:"):
                assert (site / name).parent.joinpath(address).is_file(), f"{name}: {address}"
        assert "default-src 'self'" in (site / name).read_text("utf-8")
    for path in [*site.glob("*.css"), site / "search.js"]:
        assert not re.search(r"url\(|@import|https?://|fetch\(", path.read_text("utf-8")), path.name


def test_every_page_has_one_title_headings_in_order_and_unique_anchors(pages):
    """As a screen reader goes through it; pictures have a text."""
    for name, page in pages.items():
        assert page.levels[:1] == [1] and page.levels.count(1) == 1, f"{name}: {page.levels[:9]}"
        steps = [(a, b) for a, b in zip(page.levels, page.levels[1:], strict=False) if b > a + 1]
        assert not steps, f"{name}: {steps}"
        assert len(set(page.ids)) == len(page.ids), f"{name}: {sorted({i for i in page.ids if page.ids.count(i) > 1})}"
        assert page.without_alt == 0, name
        assert "content" in page.ids and "#content" in page.links


@pytest.mark.parametrize("package", ["", *PACKAGES])
def test_every_public_name_has_its_place(package, pages, site):
    """On the page of all names or on its package's, with a link to its description."""
    page = f"api/{package or 'index'}.html"
    shown = re.findall(r"<code>(lab\.[\w.]+)</code></a>", (site / page).read_text("utf-8"))
    module = importlib.import_module(f"mirblab.{package}" if package else "mirblab")
    names = [f"lab.{package}.{name}" if package else f"lab.{name}" for name in getattr(module, "__all__", [])]
    assert set(names) <= set(shown) and len(set(shown)) == len(shown)
    if package == "display":
        assert {f"lab.plots.{name}" for name in module.plots.__all__} <= set(shown)


def test_every_package_is_in_the_picture_and_in_the_navigation_in_order(site):
    """Each leads to its page; the picture has words for those who do not see it."""
    text = (site / "architecture.html").read_text("utf-8")
    assert re.findall(r'class="package-name"[^>]*>([^<]+)<', text) == PACKAGES
    assert "<title id=" in text and "<desc id=" in text
    page = (site / "api" / "index.html").read_text("utf-8")
    assert re.findall(r'<li><a href="(\w+)\.html"', page.partition("</nav>")[0]) == PACKAGES


def test_asterisks_in_docstrings_are_rendered(site):
    """`*run*` is the argument of that name, in a description and in the tables of names."""
    for path in (site / "api").glob("*.html"):
        text = re.sub(r"<pre.*?</pre>", "", path.read_text("utf-8"), flags=re.DOTALL)
        assert not re.search(r"(?<![\w*`])\*[a-z_]+\*(?![\w*])", text), path.stem
    assert "<em>run</em>" in (site / "api" / "evaluation.html").read_text("utf-8")


def test_every_notebook_has_a_page_and_says_whether_it_was_executed(site):
    """A widget is shown by its page, or not at all; what a program printed is text."""
    for source in (ROOT / "notebooks").glob("*.ipynb"):
        text = (site / "notebooks" / f"{source.stem}.html").read_text("utf-8")
        assert ("shown without outputs" in text) == (source.stem != "00_start_here"), source.stem
        assert '<span class="k">assert</span>' not in text, source.stem
    text = (site / "notebooks" / "00_start_here.html").read_text("utf-8")
    assert 'alt="a dot"' in text and "said in words" in text and "widget-view" not in text
    assert "HBox(" not in text
    assert "red &lt;b&gt;words" in text and "\x1b" not in text


def test_formulas_are_mathml_and_no_dollar_is_left(site, monkeypatch):
    """Without MathJax."""
    text = (site / "howto" / "collection.html").read_text("utf-8")
    assert "$G$" in text  # in code it stays what it is
    monkeypatch.syspath_prepend(str(DOCS))
    words = importlib.import_module("words")
    assert doctest.testmod(words).failed == doctest.testmod(importlib.import_module("interface")).failed == 0
    made = words.markdown("Let $x^2 < y$ be.\n\n<script>alert(1)</script> <img src=x onerror=alert(1)>")
    assert "<msup>" in made and "$" not in made and "<script" not in made and "<img" not in made


def test_the_search_finds_names_and_terms(site):
    """Its index is a file beside the pages, with public names, headings and the glossary."""
    text = (site / "search-index.js").read_text("utf-8")
    assert text.startswith("window.searchIndex = [") and "</" not in text
    assert all(f'"{word}"' in text for word in ("bootstrap_intervals", "Glossary", "Add a lesson", "unjudged"))


def test_a_folder_with_other_files_is_not_overwritten(tmp_path, monkeypatch):
    """A slip of the keyboard costs nothing."""
    (tmp_path / "thesis.tex").write_text("all", "utf-8")
    monkeypatch.syspath_prepend(str(DOCS))
    with pytest.raises(FileExistsError, match="holds other files"):
        importlib.import_module("build").build(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_contrast_is_enough_in_both_schemes():
    """At least 4.5 to 1 for text on both grounds (WCAG AA)."""
    css = (DOCS / "look" / "site.css").read_text("utf-8")
    schemes = re.findall(r":root \{(.*?)\}", css, re.DOTALL)
    assert len(schemes) == 2
    for block in schemes:
        colours = dict(re.findall(r"--(\w+): (#\w{6})", block))
        for ground in ("ground", "soft"):
            for name in ("ink", "quiet", "link", "word", "text", "note", "number"):
                assert _contrast(colours[name], colours[ground]) >= 4.5, (name, ground)
        assert _contrast(colours["ink"], colours["mark"]) >= 4.5


def _contrast(one: str, other: str) -> float:
    def light(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    dark, bright = sorted((light(one), light(other)))
    return (bright + 0.05) / (dark + 0.05)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@pytest.mark.parametrize(
    "page", sorted((DOCS / "howto").glob("*.md")) + [DOCS / "index.md"], ids=lambda path: path.stem
)
def test_the_snippets_run_in_the_order_in_which_they_stand(page, tmp_path, link_vectors, command_process):
    """TOML with a file name goes into the home folder, Python and shell run in one folder; other blocks are text."""
    text = page.read_text("utf-8")
    if page.stem == "cluster":
        text = text.replace("8786", str(free_port()))
    blocks = FENCE.findall(text)
    if not {kind for kind, *_ in blocks} & {"python", "sh"}:
        pytest.skip("a page without snippets to run")
    folder, script = tmp_path / "work", []
    folder.mkdir()
    link_vectors(tmp_path)
    for kind, name, body in blocks:
        if kind == "toml" and name:
            body = f"from pathlib import Path\nf = Path({str(tmp_path / name)!r})\nf.parent.mkdir(parents=True, exist_ok=True)\nf.open('a').write({body!r})\n"  # noqa: E501
        elif kind == "sh":
            body = f"run_shell({body!r})\n"
        elif kind != "python":
            continue
        script.append(body)
    env = {"MIRBLAB_HOME": str(tmp_path), "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = command_process.run_code("\n".join(script), folder, **env)
    assert done.returncode == 0, done.stderr[-2000:]


def test_the_picture_of_the_readme_is_small():
    """With a text for those who do not see it."""
    readme = (ROOT / "README.md").read_text("utf-8")
    found = re.findall(r"!\[([^\]]*)\]\(([^)]+)\)", readme)
    assert found and all(len(alt) > 20 for alt, _ in found)
    assert all((ROOT / path).stat().st_size < 300_000 for _, path in found)


def test_the_architecture_names_every_package_and_only_files_that_exist():
    """The packages in their order; files from the top of the checkout or of the package."""
    text = (DOCS / "architecture.md").read_text("utf-8")
    assert re.findall(r"^### ([a-z]+)$", text, re.MULTILINE) == PACKAGES
    assert len(text.splitlines()) <= 300
    named = set(re.findall(r"`([\w.-]+/[\w./-]*)`", text))
    assert len(named) > 80
    assert not {name for name in named if not (ROOT / name).exists() and not (ROOT / "mirblab" / name).exists()}


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md"])
def test_what_the_readme_links_to_exists(name):
    """Files of the checkout; and every notebook that is named."""
    text = (ROOT / name).read_text("utf-8")
    for path in re.findall(r"\]\(([^)#]+)\)", text):
        assert REMOTE.match(path) or path.startswith("http") or (ROOT / path).exists(), path
    named = set(re.findall(r"`(\d\d_[a-z_]+)`", text))
    assert named <= {path.stem for path in (ROOT / "notebooks").glob("*.ipynb")}, named


def test_the_readmes_code_runs(tmp_path, link_vectors, command_process):
    """The screen of code, and the one on formulas."""
    link_vectors(tmp_path)
    readme = (ROOT / "README.md").read_text("utf-8")
    code = "\n".join(body for kind, _, body in FENCE.findall(readme) if kind == "python")
    done = command_process.run_code(code, tmp_path, MIRBLAB_HOME=str(tmp_path), MPLBACKEND="agg")
    assert code and done.returncode == 0, done.stderr[-2000:]


def test_every_command_in_readme_and_docs_exists():
    """With the options that are shown."""
    from typer.main import get_command

    from mirblab.app.cli import app

    known = get_command(app).commands
    texts = [path.read_text("utf-8") for path in [ROOT / "README.md", *DOCS.rglob("*.md")]]
    for line in re.findall(r"(?<![\w/])mirblab ([a-z][a-z-]+)((?: [^\n`#]+)?)", "\n".join(texts)):
        if line[0] in known:
            options = {option for one in known[line[0]].params for option in one.opts} | {"--help"}
            assert set(re.findall(r"(?<!\S)--[a-z-]+", line[1])) <= options, line
    shown = re.findall(r"(?:^|`)mirblab ([a-z-]+)", "\n".join(texts), re.MULTILINE)
    assert set(shown) <= set(known), set(shown) - set(known)


def test_every_collection_of_the_expected_values_is_explained():
    """A reader of the tables learns where it comes from; similar.md explains those of one theorem in two libraries."""
    page = (DOCS / "howto" / "collection.md").read_text("utf-8")
    names = {name for name in read_expected("open").collection if not name.startswith("same-theorem-")}
    assert {name for name in names if f"`{name}`" not in page} == set()


def test_pages_name_every_key_and_the_glossary_every_suite():
    """A reader of the code is not the only one who can use a hosted model."""
    texts = [path.read_text("utf-8") for path in [ROOT / "README.md", *DOCS.rglob("*.md")]]
    sources = [path.read_text("utf-8") for path in (ROOT / "mirblab" / "encoders" / "hosted").glob("*.py")]
    keys = set(re.findall(r'"([A-Z_]+_KEY)"', "\n".join(sources)))
    assert len(keys) == 4 and {key for key in keys if f"`{key}`" not in "\n".join(texts)} == set()
    glossary = (DOCS / "glossary.md").read_text("utf-8")
    suites = {path.stem for path in (ROOT / "notebooks" / "suites").glob("*.toml")}
    assert {name for name in suites if f"`{name}`" not in glossary} == set()
