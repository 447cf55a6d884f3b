"""threads: threads of questions and answers as self-contained HTML pages."""

from __future__ import annotations

import base64
import hashlib
import html as standard
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from html import escape
from pathlib import Path
from xml.parsers import expat

from mirblab.core.atomic_files import write_text
from mirblab.core.errors import MirblabError
from mirblab.core.terminal import say
from mirblab.core.wording import counted
from mirblab.display.escape import format_value
from mirblab.display.text import CONTROL, template
from mirblab.sources.arqmath import release as texts
from mirblab.sources.shared import html
from mirblab.sources.shared.html import title_to_text
from mirblab.sources.stackexchange import dump
from mirblab.sources.stackexchange import threads as reader
from mirblab.sources.stackexchange.threads import Comment, Link, Post, Thread

Render = Callable[[str, bool], str]  # LaTeX without delimiters, and whether it is a display, to a `<math>` element
TAGS = frozenset(
    "math mrow mi mn mo mtext mspace ms mfrac msqrt mroot mstyle merror mpadded mphantom menclose msub msup msubsup "
    "munder mover munderover mmultiscripts mprescripts none mtable mtr mtd semantics annotation".split()
)
ATTRIBUTES = frozenset(
    "accent accentunder alttext aria-label class columnalign columnlines columnspan data-loose depth dir display "
    "displaystyle fence form height intent largeop linethickness lspace mathvariant maxsize minsize movablelimits "
    "notation rowlines rowspan rspace scriptlevel separator stretchy symmetric voffset width xmlns".split()
)
_LONGEST = 20_000  # characters of LaTeX; a longer formula is shown as its source
_WIDE = 60  # characters of LaTeX; a longer formula may be wider than a small screen, so it can be scrolled

_TAGS = frozenset(
    "a b blockquote br code dd del dl dt em h1 h2 h3 h4 hr i ins kbd li ol p pre s strike strong sub sup table tbody "
    "td th thead tr u ul".split()
)
_SCHEMES = ("http://", "https://", "mailto:")
# While a post is sanitised, numbers between these two characters replace its formulas. It must not have them, also not
# as character references.
_OPEN, _CLOSE = "\ue000", "\ue001"
_PLACE = re.compile("\ue000([0-9]{1,9})\ue001")
_PRIVATE = re.compile("[\ue000\ue001]|&#(?:0*5734[45](?![0-9])|[xX]0*[eE]00[01](?![0-9a-fA-F]));?")
_CODE = re.compile(r"<(/?)(pre|code)\b[^<>]*>", re.IGNORECASE)
# All lengths are bounded, so that no post takes more than linear time.
_CONTAINER = re.compile(r"<span\b[^<>]{0,200}\bmath-container\b[^<>]{0,200}>([^<]*)</span>", re.IGNORECASE)
_DOLLARS = re.compile(
    r"(\$\$[^$<]{1,9000}\$\$)|(?<![\\$\w])(\$(?=[^\s$<])[^$<]{1,2000}?(?<![\s\\])\$)(?![\w$])|"
    r"(\\begin\{(align|equation|gather|eqnarray|multline)(\*?)\}[^<]{0,5000}?\\end\{\4\5\})"
)
_IMAGE = re.compile(r"<img\b[^<>]*>", re.IGNORECASE)
_ALT = re.compile(r"""\balt\s*=\s*(?:"([^"]*)"|'([^']*)')""", re.IGNORECASE)

STYLE = f"\n{template('thread.css')}\n"  # the exact content of the <style> element, since the policy has its hash
_HASH = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
POLICY = f"default-src 'none'; style-src 'sha256-{_HASH}'; base-uri 'none'; form-action 'none'"

INDEX = "index.html"


def write_thread_pages(
    origin: str | Path, ids: Iterable[str | int], out: str | Path, *, formulas: str = "mathml"
) -> list[Path]:
    """Write a page for each thread and an index page to the folder *out*; return their paths, the index first.

    *origin* is a Stack Exchange dump or an ARQMath release (a folder or a .7z archive), *ids* are those of questions or
    of answers. *formulas*: "mathml" or "latex". The pages need no network, script or other file. None is written when
    an id is unknown. Invalid rows of the dump are counted and printed.

    >>> import tempfile
    >>> import mirblab as lab
    >>> pages = write_thread_pages(lab.sources.example_dump(), [5], tempfile.mkdtemp())
    >>> [page.name for page in pages]
    ['index.html', 'thread-5.html']
    """
    if formulas not in ("mathml", "latex"):
        raise MirblabError(f"formulas are 'mathml' or 'latex', not '{formulas}'")
    problems = dump.RowProblems()
    threads = reader.read_threads(origin, ids, problems)
    render = render_mathml if formulas == "mathml" else None
    shown = [thread.question.id for thread in threads]
    texts = {page_name(thread.question.id): thread_page(thread, render, shown) for thread in threads}
    texts = {INDEX: thread_index(threads, render, Path(origin).resolve().name)} | texts
    for name, text in texts.items():
        write_text(Path(out) / name, text)
    for example in problems.examples:
        say(f"  {example}")
    return [Path(out) / name for name in texts]


def thread_page(thread: Thread, render: Render | None = None, shown: Iterable[str] = ()) -> str:
    """Return the page of a thread: title, question, tags, answers in order, comments, links, votes and names.

    Posts are sanitized (`sanitize_html`), and the page's policy forbids scripts and downloads. *render* converts LaTeX
    to MathML (None: formulas are shown as code). Linked questions that are in *shown* become links to their pages.
    Equal threads give equal bytes.
    """
    title = sanitize_line(thread.question.title, render) or f"Question {escape(thread.question.id)}"
    parts = [
        f"<main>\n<h1>{title}</h1>",
        _post(thread.question, "question", render, extra=_tags(thread)),
        f"<h2>{counted(len(thread.answers), 'answer')}</h2>",
        *(_post(post, "answer", render, is_accepted=post.id == thread.accepted) for post in thread.answers),
        _links(thread.links, set(shown), render),
        "</main>",
    ]
    name = thread.question.title
    plain = title_to_text(name)[0] if "math-container" in name else name
    return _document(plain or f"Question {thread.question.id}", "\n".join(part for part in parts if part))


def _post(post: Post, kind: str, render: Render | None, *, extra: str = "", is_accepted: bool = False) -> str:
    known = post.score is not None
    score = f'<span class="score">{format_value(post.score)}</span><span class="small">score</span> ' if known else ""
    votes = f'<span class="small">{post.votes[0]:,} up, {post.votes[1]:,} down</span>' if post.votes else ""
    accepted = '<span class="accepted">✓ accepted</span>' if is_accepted else ""
    side, name = f"{score}{votes}{accepted}", f"{kind} {escape(post.id)}"
    signed = ", ".join(part for part in (escape(post.author), escape(post.created[:10])) if part)
    meta = f'<p class="meta">{name}{", by " if post.author else ", " if signed else ""}{signed}</p>'
    return (
        f'<article class="post{"" if side else " bare"}" id="post-{escape(post.id)}" aria-label="{name}">\n'
        + (f'<div class="side">{side}</div>\n' if side else "")
        + f'<div class="body">\n{sanitize_html(post.body, render).strip()}\n{extra}{meta}'
        f"{_comments(post.comments, render)}</div>\n</article>"
    )


def _comments(comments: list[Comment], render: Render | None) -> str:
    items = []
    for comment in comments:
        score = f"<b>{comment.score}</b> " if comment.score else ""
        signed = escape(", ".join(part for part in (comment.author, comment.created[:10]) if part))
        by = f'<span class="small"> – {signed}</span>' if signed else ""
        items.append(f"<li>{score}{sanitize_line(comment.text, render)}{by}</li>")
    return f'\n<ul class="comments" aria-label="comments">{"".join(items)}</ul>\n' if items else ""


def _links(links: list[Link], shown: set[str], render: Render | None) -> str:
    items = []
    for link in links:
        title = (
            sanitize_line(link.title, render)
            if link.title
            else f"question {escape(link.id)}, which is not in the files"
        )
        if link.id in shown:
            title = f'<a href="{page_name(escape(link.id))}">{title}</a>'
        items.append(f'<li>{title} <span class="small">({link.kind})</span></li>')
    return f"<h2>Linked questions</h2>\n<ul>{''.join(items)}</ul>" if items else ""


def _tags(thread: Thread) -> str:
    counts = thread.tag_counts
    items = "".join(
        f"<li>{escape(tag)}" + (f' <span class="small">{counts[tag]:,}</span>' if tag in counts else "") + "</li>"
        for tag in thread.question.tags
    )
    return f'<ul class="tags" aria-label="tags">{items}</ul>\n' if items else ""


def thread_index(threads: Sequence[Thread], render: Render | None = None, source: str = "") -> str:
    """Return the page that lists threads: title, number of answers, score, tags."""
    rows = [
        f'<tr><td><a href="{page_name(escape(thread.question.id))}">'
        f"{sanitize_line(thread.question.title, render) or escape(thread.question.id)}</a></td>"
        f'<td class="number">{len(thread.answers)}</td><td class="number">{format_value(thread.question.score)}</td>'
        f"<td>{escape(', '.join(thread.question.tags))}</td></tr>"
        for thread in threads
    ]
    head = "".join(f'<th scope="col">{name}</th>' for name in ("Question", "Answers", "Score", "Tags"))
    where = f'<p class="meta">from {escape(source)}</p>' if source else ""
    body = (
        f"<main>\n<h1>{counted(len(threads), 'question thread')}</h1>{where}\n"
        f"<table><thead><tr>{head}</tr></thead>\n<tbody>\n" + "\n".join(rows) + "\n</tbody></table>\n</main>"
    )
    return _document("Question threads", body)


def _document(title: str, body: str) -> str:
    page = template("thread.html").format(policy=escape(POLICY), title=escape(title.strip()), style=STYLE, body=body)
    return CONTROL.sub("\ufffd", page + "\n")


def sanitize_html(source: str, render: Render | None = None) -> str:
    r"""Return the HTML of a post without scripts, external content and markup that affects the rest of the page.

    Text, lists, tables, code and links to http, https and mail stay; pictures become their alternative text. Formulas
    (in containers, between `$` or `$$`, and environments such as align, but not in code) become the MathML of *render*
    after a check; where there is none, they become code.
    """
    import nh3

    shown: list[str] = []

    def put(match: re.Match[str]) -> str:
        shown.append(formula_html(match[0] if match.re is _DOLLARS else match[1], render))
        return f"{_OPEN}{len(shown) - 1}{_CLOSE}"

    parts = [
        part if is_code else _DOLLARS.sub(put, _CONTAINER.sub(put, _IMAGE.sub(_alternative, part)))
        for part, is_code in _split_code(_PRIVATE.sub("\ufffd", CONTROL.sub("\ufffd", source)))
    ]
    clean = nh3.clean(
        "".join(parts),
        tags=set(_TAGS),
        clean_content_tags={"script", "style"},
        attributes={"a": {"href"}, "ol": {"start"}, "td": {"colspan", "rowspan"}, "th": {"colspan", "rowspan"}},
        attribute_filter=_allowed,
        url_schemes={"http", "https", "mailto"},
        link_rel="noopener noreferrer nofollow",
    )
    return _PLACE.sub(lambda match: shown[int(match[1])] if int(match[1]) < len(shown) else "", clean)


def _allowed(tag: str, attribute: str, value: str) -> str | None:
    """Return an attribute's value, or None for a forbidden address or a formula's placeholder."""
    if _PRIVATE.search(value):
        return None
    if attribute == "rel":  # nh3 adds it itself
        return value
    if attribute == "href":
        return value if value.strip().lower().startswith(_SCHEMES) else None
    return value if value.isdecimal() and len(value) < 4 else None


def _split_code(source: str) -> Iterator[tuple[str, bool]]:
    """Yield the parts of a post in order, and whether each is code, in which a dollar begins no formula."""
    begin, name = 0, ""
    for match in _CODE.finditer(source):
        is_end, tag = bool(match[1]), match[2].lower()
        if is_end == bool(name) and (not name or tag == name):
            end = match.end() if is_end else match.start()
            yield source[begin:end], is_end
            begin, name = end, "" if is_end else tag
    yield source[begin:], bool(name)


def _alternative(match: re.Match[str]) -> str:
    alt = _ALT.search(match[0])
    text = (alt[1] or alt[2] or "").strip() if alt else ""
    return f"[picture: {text or 'without a description'}]".replace("<", "&lt;").replace("$", "&#36;")


def sanitize_line(source: str, render: Render | None = None) -> str:
    """Return a title or comment as safe HTML: plain text, unless it contains a formula container."""
    return sanitize_html(
        source if "math-container" in source else standard.escape(html.unescape_entities(source)[0]), render
    )


def formula_html(source: str, render: Render | None = None) -> str:
    """Return a formula of a post, with or without delimiters, as MathML or code.

    >>> formula_html("$x &lt; 1$")
    '<code class="latex">x &lt; 1</code>'
    """
    text = texts.clean_latex(source).text
    latex = html.strip_delimiters(text)
    if not latex:
        return ""
    is_display = text.startswith(("$$", "\\[", "\\begin"))
    markup = check_mathml(render(latex, is_display)) if render and len(latex) <= _LONGEST else ""
    markup = markup or f'<code class="latex">{escape(latex)}</code>'
    kind = "display" if is_display else "wide" if len(latex) >= _WIDE and markup.startswith("<math") else ""
    return f'<span class="{kind}">{markup}</span>' if kind else markup


def check_mathml(markup: str) -> str:
    """Return MathML that has only allowed elements and attributes, else ""."""
    ok: list[bool] = []
    parser = expat.ParserCreate("UTF-8")

    def start(name: str, attributes: dict[str, str]) -> None:
        ok.append(name in TAGS and (bool(ok) or name == "math") and set(attributes) <= ATTRIBUTES)

    parser.StartElementHandler = start
    for kind in ("StartDoctypeDecl", "Comment", "ProcessingInstruction", "StartCdataSection"):
        setattr(parser, f"{kind}Handler", lambda *_: ok.append(False))
    try:
        parser.Parse(markup.encode(), True)
    except (expat.ExpatError, UnicodeEncodeError):
        return ""
    return markup if ok and all(ok) else ""


def page_name(question_id: str) -> str:
    """Return the file name of a thread's page."""
    return f"thread-{question_id}.html"


def render_mathml(latex: str, is_display: bool) -> str:
    """Return Presentation MathML of LaTeX without delimiters; the LaTeX is its alternative text."""
    from mirblab.formula import markup
    from mirblab.formula.latex import parser

    return markup.to_mathml(parser.parse_latex(latex), latex=latex, display=is_display)
