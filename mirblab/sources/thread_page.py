"""thread_page: a question thread as one HTML page that needs no network, no script and no other file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from mirblab.sources.html import title_text
from mirblab.sources.thread_html import CONTROL, safe, safe_line
from mirblab.sources.thread_math import Render
from mirblab.sources.thread_style import POLICY, STYLE
from mirblab.sources.threads import Comment, Link, Post, Thread


def file_name(question_id: str) -> str:
    """Return the name of a thread's page.

    >>> file_name("77")
    'thread-77.html'
    """
    return f"thread-{question_id}.html"


def page(thread: Thread, render: Render | None = None, shown: Iterable[str] = (), language: str = "en") -> str:
    """Return the page of a thread: title, question, tags, answers in order, comments, links, votes and names.

    Nothing of the posts runs or is fetched (`thread_html.safe`), and the page's policy forbids both besides.
    *render* makes MathML of LaTeX (None: formulas stay code); links go to the pages of the questions *shown*.
    The same thread gives the same bytes.
    """
    title = safe_line(thread.question.title, render) or f"Question {escape(thread.question.id)}"
    n_answers = len(thread.answers)
    parts = [
        f"<main>\n<h1>{title}</h1>",
        _post(thread.question, "question", render, extra=_tags(thread)),
        f"<h2>{n_answers} answer{'' if n_answers == 1 else 's'}</h2>",
        *(_post(post, "answer", render, is_accepted=post.id == thread.accepted) for post in thread.answers),
        _links(thread.links, set(shown), render),
        "</main>",
    ]
    plain = thread.question.title if "math-container" not in thread.question.title else _words(thread.question.title)
    return _document(plain or f"Question {thread.question.id}", "\n".join(part for part in parts if part), language)


def index(threads: Sequence[Thread], render: Render | None = None, source: str = "", language: str = "en") -> str:
    """Return the page that lists threads: title, number of answers, score, tags."""
    rows = [
        f'<tr><td><a href="{file_name(escape(thread.question.id))}">'
        f"{safe_line(thread.question.title, render) or escape(thread.question.id)}</a></td>"
        f'<td class="number">{len(thread.answers)}</td><td class="number">{_score(thread.question)}</td>'
        f"<td>{escape(', '.join(thread.question.tags))}</td></tr>"
        for thread in threads
    ]
    head = "".join(f'<th scope="col">{name}</th>' for name in ("Question", "Answers", "Score", "Tags"))
    where = f'<p class="meta">from {escape(source)}</p>' if source else ""
    body = (
        f"<main>\n<h1>{len(threads):,} question threads</h1>{where}\n<table><thead><tr>{head}</tr></thead>\n<tbody>\n"
        + "\n".join(rows)
        + "\n</tbody></table>\n</main>"
    )
    return _document("Question threads", body, language)


def _document(title: str, body: str, language: str) -> str:
    page = (
        f'<!DOCTYPE html>\n<html lang="{escape(language)}">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(POLICY)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>{escape(title.strip())}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )
    return CONTROL.sub("\ufffd", page)


def _words(title: str) -> str:
    """Return a title without tags, for the browser's bar."""
    return title_text(title)[0]


def _score(post: Post) -> str:
    return "–" if post.score is None else f"{post.score:,}".replace("-", "−")


def _post(post: Post, kind: str, render: Render | None, *, extra: str = "", is_accepted: bool = False) -> str:
    known = post.score is not None
    score = f'<span class="score">{_score(post)}</span><span class="small">score</span> ' if known else ""
    votes = f'<span class="small">{post.votes[0]:,} up, {post.votes[1]:,} down</span>' if post.votes else ""
    accepted = '<span class="accepted">✓ accepted</span>' if is_accepted else ""
    side, name = f"{score}{votes}{accepted}", f"{kind} {escape(post.id)}"
    signed = ", ".join(part for part in (escape(post.author), escape(post.created[:10])) if part)
    meta = f'<p class="meta">{name}{", by " if post.author else ", " if signed else ""}{signed}</p>'
    return (
        f'<article class="post{"" if side else " bare"}" id="post-{escape(post.id)}" aria-label="{name}">\n'
        + (f'<div class="side">{side}</div>\n' if side else "")
        + f'<div class="body">\n{safe(post.body, render).strip()}\n{extra}{meta}'
        f"{_comments(post.comments, render)}</div>\n</article>"
    )


def _tags(thread: Thread) -> str:
    counts = thread.tag_counts
    items = "".join(
        f"<li>{escape(tag)}" + (f' <span class="small">{counts[tag]:,}</span>' if tag in counts else "") + "</li>"
        for tag in thread.question.tags
    )
    return f'<ul class="tags" aria-label="tags">{items}</ul>\n' if items else ""


def _comments(comments: list[Comment], render: Render | None) -> str:
    items = []
    for said in comments:
        score = f"<b>{said.score}</b> " if said.score else ""
        signed = escape(", ".join(part for part in (said.author, said.created[:10]) if part))
        by = f'<span class="small"> – {signed}</span>' if signed else ""
        items.append(f"<li>{score}{safe_line(said.text, render)}{by}</li>")
    return f'\n<ul class="comments" aria-label="comments">{"".join(items)}</ul>\n' if items else ""


def _links(links: list[Link], shown: set[str], render: Render | None) -> str:
    items = []
    for link in links:
        title = (
            safe_line(link.title, render) if link.title else f"question {escape(link.id)}, which is not in the files"
        )
        if link.id in shown:
            title = f'<a href="{file_name(escape(link.id))}">{title}</a>'
        items.append(f'<li>{title} <span class="small">({link.kind})</span></li>')
    return f"<h2>Linked questions</h2>\n<ul>{''.join(items)}</ul>" if items else ""
