"""Question threads: what is read from a dump, what is left of nasty posts, and the pages that come out."""

from __future__ import annotations

import gzip
import re
import subprocess
import sys
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import pytest

from mirblab.core.errors import MirblabError
from mirblab.display import threads
from mirblab.display import threads as display_threads
from mirblab.display.threads import _TAGS, check_mathml, sanitize_html, sanitize_line, thread_index, thread_page
from mirblab.sources.stackexchange import dump
from mirblab.sources.stackexchange import threads as reader


def attribute(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")


def file_of(root: str, *rows: dict[str, object]) -> str:
    lines = ["".join(f' {name}="{attribute(str(value))}"' for name, value in row.items()) for row in rows]
    body = "".join(f"  <row{line} />\n" for line in lines)
    return f'<?xml version="1.0" encoding="utf-8"?>\n<{root}>\n{body}</{root}>\n'


SUM = '<span class="math-container" id="9">$\\sum k$</span>'
POSTS = [
    {"Id": 1, "PostTypeId": 1, "AcceptedAnswerId": 12, "Title": "How to sum $k$ & more?", "Score": 3, "OwnerUserId": 7,
     "Body": f"<p>I have {SUM} and 1 &lt; 2.</p>", "Tags": "<sums><limits>", "CreationDate": "2015-01-02T03:04:05"},
    {"Id": 2, "PostTypeId": 1, "Title": f"Is {SUM} finite?", "Body": "<p>?</p>", "Tags": "|sums|"},
    {"Id": 10, "PostTypeId": 2, "ParentId": 1, "Body": "<p>second</p>", "Score": 5, "OwnerDisplayName": "gone"},
    {"Id": 11, "PostTypeId": 2, "ParentId": 1, "Body": "<p>third</p>", "Score": -2},
    {"Id": 12, "PostTypeId": 2, "ParentId": 1, "Body": "<p>first</p>", "Score": 0, "OwnerUserId": 8},
    {"Id": 13, "PostTypeId": 2, "ParentId": 2, "Body": "<p>elsewhere</p>", "Score": 9},
]  # fmt: skip
LINKS = [
    {"Id": 1, "PostId": 1, "RelatedPostId": 2, "LinkTypeId": 1},
    {"Id": 2, "PostId": 1, "RelatedPostId": 99, "LinkTypeId": 3},
    {"Id": 3, "PostId": 2, "RelatedPostId": 1, "LinkTypeId": 3},
    {"Id": 4, "PostId": 2, "RelatedPostId": 98, "LinkTypeId": 1},
]
COMMENTS = [
    {"Id": 1, "PostId": 10, "Score": 2, "Text": "is a<b? $x<1$", "CreationDate": "2015-02-03T00:00:00", "UserId": 7},
    {"Id": 2, "PostId": 1, "Score": 0, "Text": f"see {SUM}", "UserDisplayName": "someone"},
    {"Id": 3, "PostId": 13, "Score": 0, "Text": "on another page"},
]
USERS = [{"Id": 7, "DisplayName": "Emmy & Co", "Reputation": 9}, {"Id": 8, "DisplayName": "Carl"}, {"Id": 9}]
VOTES = [{"Id": n, "PostId": 12, "VoteTypeId": kind} for n, kind in enumerate((2, 2, 3, 1, 5))]
TAGS = [{"Id": 1, "TagName": "sums", "Count": 1234}]
FILES = {"PostLinks": LINKS, "Comments": COMMENTS, "Users": USERS, "Votes": VOTES, "Tags": TAGS}


@pytest.fixture
def dumped(tmp_path: Path) -> Path:
    """Return a folder with all files of a dump, one of them gzipped and with a version."""
    folder = tmp_path / "site"
    folder.mkdir()
    with gzip.open(folder / "Posts.V1.3.xml.gz", "wt", encoding="utf-8") as file:
        file.write(file_of("posts", *POSTS))
    for stem, rows in FILES.items():
        (folder / f"{stem}.xml").write_text(file_of(stem.lower(), *rows), encoding="utf-8")
    return folder


def test_a_thread_is_read_with_all_that_belongs_to_it(dumped: Path):
    """Answers: the accepted one first, then by score; links in both directions; names instead of numbers."""
    [thread] = reader.read_threads(dumped, ["1"])
    assert thread.question.title == "How to sum $k$ & more?" and thread.question.tags == ["sums", "limits"]
    assert [post.id for post in thread.answers] == ["12", "10", "11"] and thread.accepted == "12"
    assert [(post.score, post.author) for post in thread.answers] == [(0, "Carl"), (5, "gone"), (-2, "")]
    assert thread.question.author == "Emmy & Co" and thread.tag_counts == {"sums": 1234}
    assert [(link.id, link.kind) for link in thread.links] == [
        ("2", "related"), ("99", "duplicate of"), ("2", "has the duplicate"),
    ]  # fmt: skip
    assert thread.links[0].title.startswith("Is <span") and thread.links[1].title == ""
    assert [said.author for said in thread.answers[1].comments] == ["Emmy & Co"]
    assert thread.answers[0].votes == (2, 1) and thread.question.votes == (0, 0)


def test_posts_alone_are_enough(tmp_path: Path):
    """As in the sample of the ARQMath collection: no score, no date, no other file."""
    (tmp_path / "Posts.xml").write_text(file_of("posts", *({k: v for k, v in row.items() if k in (
        "Id", "PostTypeId", "ParentId", "Body", "Title")} for row in POSTS)))  # fmt: skip
    [thread] = reader.read_threads(tmp_path, [1])
    assert [post.id for post in thread.answers] == ["10", "11", "12"] and not thread.accepted and not thread.links
    assert thread.question.score is None and thread.question.votes is None
    assert "3 answers" in thread_page(thread)


def test_votes_stand_in_for_scores_and_for_the_accepted_answer(dumped: Path):
    """Where the posts do not have them."""
    stripped = [{k: v for k, v in row.items() if k not in ("Score", "AcceptedAnswerId")} for row in POSTS]
    (dumped / "Posts.V1.3.xml.gz").unlink()
    (dumped / "Posts.xml").write_text(file_of("posts", *stripped), encoding="utf-8")
    [thread] = reader.read_threads(dumped, ["1"])
    assert thread.accepted == "12" and thread.answers[0].id == "12" and thread.answers[0].score == 1


def test_the_id_of_an_answer_gives_its_thread_once(dumped: Path):
    """In the order of the ids that were given."""
    assert [thread.question.id for thread in reader.read_threads(dumped, ["13", "1", "11", "2"])] == ["2", "1"]


def test_unknown_ids_are_named(dumped: Path):
    with pytest.raises(
        MirblabError, match=r"Posts.V1.3.xml.gz has no question and no answer 77, 78; 6 posts were read"
    ):
        reader.read_threads(dumped, ["1", "77", "78"])
    with pytest.raises(MirblabError, match="ids of posts are whole numbers, found 'A.1'"):
        reader.read_threads(dumped, ["A.1"])
    with pytest.raises(MirblabError, match="give the ids of the questions"):
        reader.read_threads(dumped, [])
    with pytest.raises(FileNotFoundError, match="no Posts.xml"):
        reader.read_threads(dumped.parent, ["1"])


def test_broken_rows_are_noted_and_passed_over(dumped: Path):
    (dumped / "Comments.xml").write_text('<comments>\n<row Id="1" PostId="10" Text="cut\n</comments>\n')
    odd = dump.RowProblems()
    [thread] = reader.read_threads(dumped, ["1"], odd)
    assert not thread.answers[1].comments and odd.counts == {"Comments.xml: rows cut off": 1}


def test_memory_does_not_grow_with_the_dump(tmp_path: Path):
    """A thread out of 60 MB of posts takes under 30 MB more than an import."""
    filler = attribute("<p>" + "x" * 3000 + "</p>")
    with open(tmp_path / "Posts.xml", "w", encoding="utf-8") as file:
        file.write("<posts>\n")
        for number in range(100, 20_000):
            file.write(f'<row Id="{number}" PostTypeId="2" ParentId="{number // 3}" Body="{filler}" />\n')
        file.write('<row Id="7" PostTypeId="1" Title="last" Body="" />\n</posts>\n')
    code = (
        "import resource, sys; from mirblab.sources.stackexchange import threads\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "n_threads = len(threads.read_threads(sys.argv[1], ['7']))\n"
        "print(n_threads, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True)
    n_threads, more = map(int, done.stdout.split())
    assert n_threads == 1 and more < 30_000


# Every tag and attribute that a page of ours may have; anything else came out of a post.
ALLOWED = {"html": {"lang"}, "meta": {"charset", "http-equiv", "content", "name"}, "a": {"href", "rel"}}
ATTRIBUTES = {"class", "id", "aria-label", "scope", "start", "colspan", "rowspan", *display_threads.ATTRIBUTES}
TAGS = _TAGS | display_threads.TAGS | {
    "html", "head", "meta", "title", "style", "body", "main", "article", "div", "span",
}  # fmt: skip


class Audit(HTMLParser):
    """Collects what a page has that it should not have."""

    def __init__(self) -> None:
        super().__init__()
        self.bad: list[str] = []
        self.n_styles = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.n_styles += tag == "style"
        if tag not in TAGS:
            self.bad.append(tag)
        for name, value in attrs:
            if name not in ALLOWED.get(tag, ATTRIBUTES):
                self.bad.append(f"{tag} {name}={value}")
            if name == "href" and not re.match(r"https?://|mailto:|thread-[0-9]+\.html$", value or ""):
                self.bad.append(f"{tag} {name}={value}")

    handle_startendtag = handle_starttag


def audit(text: str) -> list[str]:
    found = Audit()
    found.feed(text)
    found.close()
    return found.bad


NASTY = [
    "<script>alert(1)</script>",
    "<SCRIPT SRC=//evil.example/x.js></SCRIPT>",
    "<scr<script>ipt>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    '<img src="https://evil.example/pixel.png" alt="<script>alert(1)</script>">',
    "<img alt='\"><script>alert(1)</script>' src=x>",
    '<a href="javascript:alert(1)">x</a>',
    '<a href="JaVa\tScRiPt:alert(1)">x</a>',
    '<a href="&#106;avascript:alert(1)">x</a>',
    '<a href=" data:text/html,<script>alert(1)</script>">x</a>',
    '<a href="//evil.example">x</a>',
    '<a href="https://ok.example" onclick="alert(1)" style="position:fixed" target="_top">x</a>',
    '<p style="background:url(https://evil.example)" onmouseover=alert(1) id="post-1" class="accepted">x</p>',
    "<style>body{display:none}</style>",
    '<link rel="stylesheet" href="https://evil.example/x.css">',
    '<meta http-equiv="refresh" content="0;url=https://evil.example">',
    '<base href="https://evil.example/">',
    '<iframe src="https://evil.example"></iframe><object data="x"></object><embed src="x">',
    '<form action="https://evil.example"><input name="q"><button>go</button></form>',
    "<svg onload=alert(1)><script>alert(1)</script><style><img src=x onerror=alert(1)></style></svg>",
    "<math><mtext><table><mglyph><style><!--</style><img title=\"--&gt;&lt;img src=x onerror=alert(1)&gt;\">",
    '<math href="javascript:alert(1)"><mi xlink:href="javascript:alert(1)">x</mi></math>',
    "<video><source onerror=alert(1)></video><audio src=x onerror=alert(1)>",
    "<details open ontoggle=alert(1)>x</details>",
    "</article></main></body></html><script>alert(1)</script>",
    "<!-- --><script>alert(1)</script><!--",
    "<![CDATA[<script>alert(1)</script>]]>",
    "<noscript><p title=\"</noscript><img src=x onerror=alert(1)>\"></noscript>",
    "<template><script>alert(1)</script></template><textarea></textarea><script>alert(1)</script>",
    "$</math><script>alert(1)</script>$",
    '<span class="math-container">$\\text{&lt;script&gt;alert(1)&lt;/script&gt;}$</span>',
    '<span class="math-container">$x&lt;/mi&gt;&lt;img src=x onerror=alert(1)&gt;$</span>',
    '<a title="<span class=math-container>$\\&quot; onmouseover=alert(1) x$</span>" href="https://ok.example">x</a>',
    '<a href="https://ok.example/<span class=math-container>$\\&quot; onmouseover=alert(1) x$</span>">x</a>',
    "\ue0000\ue001 \ue0009\ue001 \ue000",
    "<pre><code>$x$ &lt;script&gt;alert(1)&lt;/script&gt;</code></pre><code><img src=x onerror=alert(1)></code>",
    "<p>" + "<b>" * 5000 + "deep",
    "\x00<scr\x00ipt>alert(1)</script>",
]  # fmt: skip


def to_math(latex: str, is_display: bool = False) -> str:
    """Return MathML of one element, as a renderer that escapes as it should."""
    return f"<math><mi>{latex.replace('&', '&amp;').replace('<', '&lt;').replace('>', '&gt;')}</mi></math>"


@pytest.mark.parametrize("render", [None, to_math, lambda latex, _: f"<math><mi>{latex}</mi></math>"],
                         ids=["code", "mathml", "mathml that forgets to escape"])  # fmt: skip
@pytest.mark.parametrize("nasty", NASTY, ids=range(len(NASTY)))
def test_nothing_nasty_survives_wherever_it_stands(nasty: str, render):
    """In a body, title, comment, tag, name, date or linked title: only known tags and attributes are on the page."""
    said = [reader.Comment(text, 1, nasty, "", nasty) for text in (nasty, f"math-container {nasty}")]
    post = reader.Post("1", nasty, nasty, [nasty], 1, nasty, "", nasty, None, said)
    thread = reader.Thread(post, [post], "1", [reader.Link("2", "related", nasty)], {nasty: 3})
    for text in (thread_page(thread, render, ["2"]), thread_index([thread], render, nasty)):
        assert audit(text) == []
        assert text.count("<style>") == 1 and text.count("<main>") == 1 and text.rstrip().endswith("</html>")


@pytest.mark.parametrize(
    ("begin", "end"),
    [
        ("&#xE000;", "&#xE001;"),
        ("&#Xe000;", "&#xe001"),
        ("&#x0000E000;", "&#57345;"),
        ("&#0057344;", "&#57345"),
        ("&#xE0\ue00000;", "&#xE0&#xE001;01;"),
    ],
)
def test_a_character_reference_is_no_formulas_place(begin, end):
    """Neither one formula twice nor a number of any length; references to other characters stay."""
    for number in ("0", "9" * 5000):
        shown = sanitize_html(f"$x$ {begin}{number}{end}</p>", to_math)
        assert shown.count("<math>") == 1 and number in shown and "\ue000" not in shown
    assert sanitize_html("&#573440; &#xE0000;", to_math) == sanitize_html(f"{chr(573440)} {chr(0xE0000)}", to_math)


def test_a_place_of_a_formula_cannot_be_forged():
    """The private characters that mark places are replaced in posts."""
    assert sanitize_html("\ue0000\ue001 $x$ \ue0007\ue001", to_math) == "�0� <math><mi>x</mi></math> �7�"
    assert sanitize_html('<a href="https://e.org/$x$">e</a>', to_math) == '<a rel="noopener noreferrer nofollow">e</a>'


def test_the_audit_sees_what_it_should_see():
    """A page that was not cleaned fails."""
    assert audit("<script>alert(1)</script>") == ["script"]
    assert audit('<p onclick="x()"><a href="javascript:x()">x</a>') == ["p onclick=x()", "a href=javascript:x()"]


def test_what_a_post_says_stays():
    """Lists, tables, code and links stay; a picture becomes its text; unclosed tags are closed."""
    source = '<ol start="3"><li>one<li><code>a &lt; $b$</code></ol><table><tr><td colspan=2>x</table><a href="https://e.org/q?a=1&amp;b=2">e</a>'
    assert sanitize_html(source) == (
        '<ol start="3"><li>one</li><li><code>a &lt; $b$</code></li></ol><table><tbody><tr><td colspan="2">x</td></tr>'
        '</tbody></table><a href="https://e.org/q?a=1&amp;b=2" rel="noopener noreferrer nofollow">e</a>'
    )
    assert (
        sanitize_html('<p>see <img src="//e.org/a.png" alt="a graph of $f$"></p>')
        == "<p>see [picture: a graph of $f$]</p>"
    )


@pytest.mark.parametrize(
    ("source", "latex"),
    [
        ('<span class="math-container" id="5">$a &amp;lt; b% +c$</span>', ["a < b+c"]),
        ("so $a &lt; b$ and $$c$$ hold", ["a < b", "c"]),
        ("it costs $5 and $6 or 7 $", []),
        (r"\begin{align} a &amp;= b \end{align}", [r"\begin{align} a &= b \end{align}"]),
        ("<pre>$x$</pre> <code>$y$</code> $z$", ["z"]),
        ("<code>$unclosed $x$", []),
        ('<span class="math-container">\\(q\\)</span>', ["q"]),
        ('<span class="math-container">$$</span>', []),
    ],
)
def test_formulas_are_found_and_given_to_the_renderer(source: str, latex: list[str]):
    """In containers, between dollars and in environments, unescaped and without delimiters; not in code."""
    found: list[str] = []
    sanitize_html(source, lambda one, _: found.append(one) or to_math(one))
    assert found == latex


def test_an_empty_formula_leaves_nothing():
    assert (
        sanitize_html('<p>a<span class="math-container">$$</span>b <span class="math-container">$ $</span></p>')
        == "<p>ab </p>"
    )


def test_a_display_is_a_block_and_a_formula_in_a_line_is_not():
    assert sanitize_html("$$x$$", to_math) == '<span class="display"><math><mi>x</mi></math></span>'
    assert sanitize_html("$x$", to_math) == "<math><mi>x</mi></math>"
    told: dict[str, bool] = {}
    sanitize_html("$x$ $$y$$", lambda latex, is_display: told.update({latex: is_display}) or to_math(latex))
    assert told == {"x": False, "y": True}
    assert sanitize_html("$x$", lambda *_: "<math><script/></math>") == '<code class="latex">x</code>'


@pytest.mark.parametrize(
    "markup",
    ["", "x", "<mi>x</mi>", "<math>", "<math><mi>x</mi></math><b/>", "<math><script/></math>",
     "<math><mi onclick='x'>x</mi></math>", "<math><mi style='x'>x</mi></math>", "<math href='https://e.org'/>",
     "<!DOCTYPE math [<!ENTITY e 'x'>]><math><mi>&e;</mi></math>", "<math><!-- x --></math>",
     "<math><![CDATA[<script>]]></math>", "<math><?x y?></math>", "<math><annotation-xml/></math>"],
)  # fmt: skip
@pytest.mark.attacks
def test_markup_that_is_not_plain_mathml_is_refused(markup: str):
    assert check_mathml(markup) == ""


def test_a_title_is_plain_text_unless_a_container_shows_that_it_is_html():
    assert sanitize_line("Is a<b & $c>d$ &amp; e?", to_math) == "Is a&lt;b &amp; <math><mi>c&gt;d</mi></math> &amp; e?"
    assert sanitize_line(f"Is <em>{SUM}</em>?", to_math) == "Is <em><math><mi>\\sum k</mi></math></em>?"


@pytest.mark.attacks
def test_pages_are_written_with_an_index_and_without_anything_from_outside(dumped: Path, tmp_path: Path):
    """Both pages link to each other; the policy forbids scripts and fetching; the same dump gives the same bytes."""
    written = threads.write_thread_pages(dumped, ["1", "2"], tmp_path / "out", formulas="latex")
    assert [path.name for path in written] == ["index.html", "thread-1.html", "thread-2.html"]
    index, one, two = (path.read_text("utf-8") for path in written)
    assert 'href="thread-1.html"' in index and 'href="thread-2.html"' in one and 'href="thread-1.html"' in two
    for text in (index, one, two):
        assert audit(text) == [] and "src=" not in text and "url(" not in text
        assert text.startswith('<!DOCTYPE html>\n<html lang="en">') and "default-src &#x27;none&#x27;" in text
    assert "<title>How to sum $k$ &amp; more?</title>" in one and "<title>Is $\\sum k$ finite?</title>" in two
    for part in (
        "3 answers",
        "✓ accepted",
        "2 up, 1 down",
        "Emmy &amp; Co",
        "2015-01-02",
        "1,234",
        "−2",
        "question 99",
    ):
        assert part in one
    assert one.index("first") < one.index("second") < one.index("third")
    again = threads.write_thread_pages(dumped, ["1", "2"], tmp_path / "again", formulas="latex")
    assert [path.read_bytes() for path in again] == [path.read_bytes() for path in written]


def test_nothing_is_written_when_an_id_is_unknown(dumped: Path, tmp_path: Path):
    with pytest.raises(MirblabError, match="no question and no answer 5"):
        threads.write_thread_pages(dumped, ["1", "5"], tmp_path / "out")
    with pytest.raises(MirblabError, match="formulas are 'mathml' or 'latex', not 'png'"):
        threads.write_thread_pages(dumped, ["1"], tmp_path / "out", formulas="png")
    assert not (tmp_path / "out").exists()


def test_the_policy_names_the_style_of_the_page(dumped: Path, tmp_path: Path):
    """The browser takes no other style; the hash is that of what stands between the tags."""
    import base64
    import hashlib

    text = threads.write_thread_pages(dumped, ["1"], tmp_path / "out", formulas="latex")[1].read_text("utf-8")
    style = text[text.index("<style>") + 7 : text.index("</style>")]
    assert f"sha256-{base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()}" in text


@pytest.mark.parametrize(
    "unit", ["<span math-container ", "$", "$$x", "<pre>", "<img ", "\\begin{align}x", "<a href='"]
)
def test_no_post_takes_long(unit: str, in_time: None):
    """Sixty thousand characters, twice what a post may have, of what a pattern could begin again and again on."""
    sanitize_html(unit * (60_000 // len(unit)), to_math)


def test_a_thread_of_the_sample_release_is_rendered(shared_file: Callable[[str], Path], tmp_path: Path):
    """Formulas of a real thread become MathML by our own parser, nine in ten at least."""
    folder = shared_file("sources/arqmath-collection")
    text = threads.write_thread_pages(folder, ["8337"], tmp_path)[1].read_text("utf-8")
    assert audit(text) == [] and "16 answers" in text
    assert text.count("<math") > 9 * text.count('<code class="latex">') and text.count("<math") > 100
