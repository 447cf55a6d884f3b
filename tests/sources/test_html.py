"""The HTML of posts to text: mathematics stays, nothing else of the markup does, every layer of escaping is undone."""

from __future__ import annotations

import gzip
import html as standard
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mirblab.sources.shared import html
from mirblab.sources.stackexchange import dump


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("<p>Let $x$ be.</p>\n\n<p>So</p>", "Let $x$ be. So"),
        ("a<br>b<hr/>c<br />d", "a b c d"),
        ("<p><em>e</em>m <strong class='x'>b</strong>old x<sup>2</sup></p>", "em bold x2"),
        ("<ul>\n<li>one</li><li>two</li></ul><h2>t</h2><blockquote><p>q</p></blockquote>", "one two t q"),
        ('<span class="math-container">$$a\n\\\\ b$$</span>', "$$a \\\\ b$$"),
        ('<span class="math-container" id="3">$x$</span>,', "$x$,"),
        ("<span id='3' class='math-container'>x</span>", "$x$"),
        ('<span class="math-container"> $x$ </span>', "$x$"),
        (
            '<span class="math-container">\\begin{align}a &amp;= b\\end{align}</span>',
            "$$\\begin{align}a &= b\\end{align}$$",
        ),
        ('<span class="math-container">\\[x\\] </span> <span class="math-container">\\(y\\)</span>', "$$x$$ $y$"),
        ("<p>\\begin{align}\na &amp;= b\n\\end{align}</p>", "\\begin{align} a &= b \\end{align}"),
        ("<!-- language: <b>py --><p>a<!-- b --></p><script>evil()</script><STYLE>x</STYLE>z", "a z"),
        ("a<!-- never closed <p>b</p>", "a"),
        ("<P>A</P><BR>B", "A B"),
        (
            "1 &lt; 2 &amp;&amp; 3 &gt; 2 &quot;q&quot; &#39;s&#39; &eacute;&nbsp;&#x3b1;",
            "1 < 2 && 3 > 2 \"q\" 's' é α",
        ),
        ("<code>&lt;img src=x onerror=alert(1)&gt;</code>", "<img src=x onerror=alert(1)>"),
        ("", ""),
        ("<p></p>", ""),
    ],
)
def test_html_becomes_text(source: str, text: str):
    """By hand."""
    assert html.html_to_text(source) == (text, False)


def test_code_keeps_its_lines():
    """Also beside prose, coloured, with blank lines; its entities are text."""
    code = '<pre class="lang-py"><code>\n<span class="kw">if</span> a &lt; b:\n\n    f()  \n</code></pre>'
    assert html.html_to_text(f"<p>See:</p>\n\n{code}\n\n<p>End.</p>") == ("See:\nif a < b:\n\n    f()\nEnd.", False)
    assert html.html_to_text("<p>a</p><pre>open") == ("a\nopen", False)


@pytest.mark.parametrize(
    ("source", "text", "layers"),
    [
        ("a & b && c", "a & b && c", 0),
        ("a &lt; b", "a < b", 1),
        ("a &amp;lt; b", "a < b", 2),
        ("a &amp;amp;lt; b &gt; c", "a < b > c", 3),
        ("a &#38;#60; b", "a < b", 2),
        ("a &#38;amp;#x26;lt; b", "a < b", 4),
        ("&" + "#38;amp;#x26;" * 20 + "lt;", "<", 61),
        ("&amp;", "&", 1),
        ("&amp;amp;", "&", 2),
        ("&nosuch; &amp;nosuch;", "&nosuch; &nosuch;", 1),
        ("a &not b &notin c &lt d &amp e", "a &not b &notin c &lt d &amp e", 0),
        ("&num;&am&#112;;lt;", "#<", 3),
        ("&#xD800;&#0;|&#99999999;", "\ufffd\ufffd|\ufffd", 1),
    ],
)
def test_entities_are_undone_layer_by_layer(source: str, text: str, layers: int):
    """Until nothing changes, and LaTeX's ampersands are none."""
    assert html.unescape_entities(source) == (text, layers)


def test_text_that_was_escaped_twice_is_reported():
    """One layer belongs to HTML."""
    assert html.html_to_text("<p>a &amp;lt; b</p>") == ("a < b", True)
    assert html.html_to_text("<ul><li>a &amp;amp; b</ul>") == ("a & b", True)
    assert html.title_to_text("a &amp;lt; b") == ("a < b", True)


@given(st.text(st.sampled_from("ab<>&;#x\n é$"), max_size=30), st.integers(1, 5))
@settings(max_examples=300, deadline=None)
def test_any_text_comes_back_from_any_number_of_escapings(text: str, layers: int):
    """Unless it was an entity itself."""
    escaped = text
    for _ in range(layers):
        escaped = escaped.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    bare = html.unescape_entities(text)[0]
    assert html.unescape_entities(escaped)[0] == bare
    assert html.html_to_text(f"<p>{escaped}</p>")[0] == " ".join(bare.split())
    assert html.unescape_entities(bare) == (bare, 0)


class _Text(HTMLParser):
    """The oracle: the characters between the tags, as the standard library's parser finds them."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []

    def handle_data(self, data: str) -> None:
        self.parts.append(data)


def test_real_posts_have_the_characters_that_a_parser_finds(shared_file: Callable[[str], Path]):
    """Every question of the shared files, white space aside; and no tag or entity is left."""
    source = shared_file("sources/stackexchange/coffee.Posts.xml.gz")
    with gzip.open(source) as stream:
        bodies = [row["Body"] for _, row in dump.read_rows(stream, source.name, ("Body",), dump.RowProblems())]
    assert len(bodies) == 592
    for body in bodies:
        oracle = _Text()
        oracle.feed(body)
        oracle.close()
        text, _ = html.html_to_text(body)
        assert "".join(text.split()) == "".join("".join(oracle.parts).split())
        assert not re.search(r"</?(?:p|a|em|strong|li|ul|code|br)\b", text)


def test_no_entity_is_left_in_the_formulas_of_arqmath(shared_file: Callable[[str], Path]):
    """1,955 formulas of all posts have an entity that is escaped twice, as the notes on the data say."""
    source = shared_file("sources/arqmath-collection/Posts.V1.3.xml.gz")
    named, entity = re.compile("&(?:lt|gt|amp);"), re.compile("&(?:lt|gt|amp|quot|#[0-9]+);")
    n_deep, n_formulas = 0, 0
    with gzip.open(source) as stream:
        for _, row in dump.read_rows(stream, source.name, ("Title", "Body"), dump.RowProblems()):
            post = f"{row.get('Title', '')} {row['Body']}"
            for escaped in re.findall(r'class="math-container" id="\d+">([^<]*)<', post):
                if named.search(standard.unescape(escaped)):
                    n_deep += 1
                    assert html.unescape_entities(escaped)[1] > 1
            formulas = html.find_formulas(post)
            n_formulas += len(formulas)
            assert not [formula for formula in formulas if entity.search(formula.latex)]
            assert not entity.search(html.html_to_text(post)[0])
    assert n_deep == 1955
    assert n_formulas == post_count(source)


def post_count(source: Path) -> int:
    """Count the containers in the raw file, which has them escaped once."""
    with gzip.open(source, "rt", encoding="utf-8") as file:
        return sum(line.count("&lt;span class=") for line in file)


def test_what_the_paper_leaves_out_is_seen():
    """Figures, links and tables, in any case; not what is only spoken of."""
    assert html.find_elements('<p><IMG SRC="x"></p>') == ("figure",)
    assert html.find_elements('<a\nhref="x">y</a><svg/>') == ("figure", "link")
    assert html.find_elements("<table><tr><td>1</td></tr></table>") == ("table",)
    assert html.find_elements("<abbr>a</abbr><em>a</em><code>&lt;a href&gt; &lt;table&gt;</code> a<b $<i$") == ()


def test_formulas_come_with_their_ids():
    """Unescaped, without delimiters, in order."""
    one, other = '<span class="math-container" id="1">$a &amp;lt; b$', '<span class="math-container">\\[c\\]'
    assert html.find_formulas(f"<p>{one}</span> {other}</span>$d$</p>") == [("1", "a < b"), ("", "c")]
    assert html.find_formulas('<span class="math-container">$</span><span class="other">$x$</span>') == [("", "$")]


@pytest.mark.parametrize(
    "evil",
    [
        "<a " * 500_000,
        "<!--" * 300_000,
        "-->" + "<!--" * 300_000,
        "<script" * 200_000,
        "<pre" * 300_000,
        "<pre>" * 300_000,
        '<span class="math-container" ' * 50_000,
        '<span class="math-container">' * 50_000,
        "&amp;" * 300_000,
        "&" + "amp;" * 300_000 + "lt",
        "&semi" * 300_000 + ";",
        "&#38" * 300_000 + ";",
        "<" * 1_000_000,
    ],
    ids=lambda evil: evil[:12],
)
@pytest.mark.attacks
def test_a_post_that_was_made_to_be_slow_is_read_soon(evil: str, in_time: None):
    """One of over a megabyte takes seconds at worst, not hours."""
    html.find_elements(evil), html.html_to_text(evil), html.find_formulas(evil), html.title_to_text(evil)
