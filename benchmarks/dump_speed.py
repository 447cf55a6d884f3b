"""dump_speed: MB/s and peak memory of the Stack Exchange builder on a generated dump, beside reading alone.

    python benchmarks/dump_speed.py [--megabytes 2000] [--questions 0.45] [--packed xml|gz|7z] [--folder /tmp]
                                    [--rounds 1] [--beside]

The dump has the attributes, the escaping and about the lengths of math.stackexchange.com's posts. A share of them are
questions, of which 30 % have a link and a figure; duplicate links are one for 25 questions. The builder runs in a child
process: its wall and CPU time go from the first byte read to the collection on disk, its peak is the resident memory
of the whole process, and MB are those of the unpacked Posts.xml. `--beside` adds what reading the rows costs alone,
ours and by xml.parsers.expat in one go (which stops at the first malformed row). The dump is deleted at the end.
"""

from __future__ import annotations

import argparse
import gzip
import html
import json
import os
import platform
import random
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from xml.parsers import expat

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from mirblab.sources.stackexchange import build, dump

FORMULAS = (
    r"$f(x)$", r"$\epsilon > 0$", r"$a_1 < a_2 < \dots < a_n$", r"$$\int_0^\infty e^{-x^2}\,dx = \frac{\sqrt\pi}{2}$$",
    r"$\mathbb{R}^n$", r"$\begin{pmatrix} 1 & 0 \\ 0 & 1 \end{pmatrix}$", r"$\sum_{k=1}^n k^2$", r"$G/H$",
    "\\begin{align}\nx &= y + 1 \\\\ z &\\ge 0\n\\end{align}",
)  # fmt: skip
TAGS = [f"tag-{number}" for number in range(400)]


def body(draw: random.Random, *, dropped: bool) -> str:
    """Return the HTML of a post: two to six paragraphs, words by Zipf's law, a formula after every tenth word."""
    parts = []
    for _ in range(draw.randint(2, 6)):
        words = [f"word{int(8000 ** draw.random())}" for _ in range(draw.randint(10, 60))]
        for place in range(len(words) // 10):
            formula = html.escape(draw.choice(FORMULAS), quote=False)
            words.insert(place * 11, f'<span class="math-container">{formula}</span>')
        parts.append(f"<p>{' '.join(words)}.</p>\n")
    if draw.random() < 0.03:
        parts.append("<pre><code>for i in range(10):\n    print(i &lt; 3)\n</code></pre>\n")
    if dropped:
        parts.append('<p><a href="https://example.org/x" rel="nofollow">here</a> <img src="y.png" alt="z"></p>')
    return "".join(parts)


def attribute(text: str) -> str:
    """Return a text escaped as the dumps escape attributes."""
    return html.escape(text, quote=True).replace("&#x27;", "'").replace("\n", "&#xA;")


def make(folder: Path, megabytes: float, questions: float) -> tuple[int, int, float]:
    """Write Posts.xml and PostLinks.xml; return rows, questions and the megabytes of the posts."""
    draw, number, asked = random.Random(0), 0, []
    bodies = [attribute(body(draw, dropped=place % 10 >= 7)) for place in range(3000)]
    with open(folder / "Posts.xml", "w", encoding="utf-8-sig", newline="\n") as file:
        written = file.write('<?xml version="1.0" encoding="utf-8"?>\n<posts>\n')
        while written < megabytes * 1e6:
            number += 1
            is_question = draw.random() < questions
            more = f'ParentId="{asked[-1] if asked else 1}"'
            if is_question:
                asked.append(number)
                tags = attribute("".join(f"<{tag}>" for tag in draw.sample(TAGS, draw.randint(1, 5))))
                title = attribute(f"Why is $x < {number}$ in word{int(8000 ** draw.random())}?")
                more = f'Title="{title}" Tags="{tags}" AnswerCount="2" ViewCount="{number % 977}"'
            written += file.write(
                f'  <row Id="{number}" PostTypeId="{1 if is_question else 2}" CreationDate="2024-01-02T03:04:05.678" '
                f'Score="{number % 37}" Body="{draw.choice(bodies)}" OwnerUserId="{number % 90001}" '
                f'LastActivityDate="2024-01-02T03:04:05.678" CommentCount="{number % 7}" {more} '
                f'ContentLicense="CC BY-SA 4.0" />\n'
            )
        file.write("</posts>\n")
    with open(folder / "PostLinks.xml", "w", encoding="utf-8-sig", newline="\n") as file:
        file.write('<?xml version="1.0" encoding="utf-8"?>\n<postlinks>\n')
        for place in range(len(asked) // 10):
            one, other, kind = draw.choice(asked), draw.choice(asked), 3 if place % 5 < 2 else 1
            file.write(f'  <row Id="{place + 1}" CreationDate="2024-01-02T03:04:05.678" PostId="{one}" ')
            file.write(f'RelatedPostId="{other}" LinkTypeId="{kind}" />\n')
        file.write("</postlinks>\n")
    return number, len(asked), (folder / "Posts.xml").stat().st_size / 1e6


def pack(folder: Path, packed: str) -> Path:
    """Return what the builder is given: the folder, its files gzipped, or one .7z archive; the plain files go."""
    if packed == "xml":
        return folder
    paths = sorted(folder.glob("*.xml"))
    if packed == "7z":
        import py7zr

        with py7zr.SevenZipFile(folder / "site.7z", "w", filters=[{"id": py7zr.FILTER_BZIP2}]) as archive:
            for path in paths:
                archive.write(path, path.name)
    for path in paths:
        if packed == "gz":
            with open(path, "rb") as plain, gzip.open(f"{path}.gz", "wb", compresslevel=1) as file:
                while block := plain.read(2**20):
                    file.write(block)
        path.unlink()
    return folder / "site.7z" if packed == "7z" else folder


def peak() -> float:
    """Return this process's largest resident memory in MiB; getrusage would count its parent's until it began."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1024
    raise SystemExit("this kernel does not tell the peak memory of a process")


def child(task: str, origin: str, out: str) -> None:
    """Do one task and print seconds, CPU seconds and peak memory in MiB as JSON."""
    os.environ["MIRBLAB_PROGRESS"] = "0"
    begun, begun_busy = time.perf_counter(), time.process_time()
    before = peak()
    if task == "build":
        build.build(origin, Path(out), name="benchmark-dup")
    elif task == "rows":
        with open(Path(origin) / "Posts.xml", "rb") as file:
            wanted = ("Id", "Title", "Body", "Tags")
            rows = dump.read_rows(file, "Posts.xml", wanted, dump.RowProblems(), build.QUESTION)
            print(f"rows: {sum(1 for _ in rows):,}")
    else:
        seen = [0]

        def count(name: str, attributes: dict[str, str]) -> None:
            seen[0] += attributes.get("PostTypeId") == "1"

        parser = expat.ParserCreate()
        parser.StartElementHandler = count
        with open(Path(origin) / "Posts.xml", "rb") as file:
            parser.ParseFile(file)
        print(f"rows: {seen[0]:,}")
    seconds, busy = time.perf_counter() - begun, time.process_time() - begun_busy
    print(json.dumps([seconds, busy, peak(), before]))


def main() -> None:
    """Make the dump, build from it in a child, print the numbers, delete it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=float, default=2000)
    parser.add_argument("--questions", type=float, default=0.45, help="the share of the posts that are questions")
    parser.add_argument("--packed", choices=("xml", "gz", "7z"), default="xml")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--beside", action="store_true", help="time reading alone, too, ours and expat's")
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        return child(*given.child)
    print(
        f"Python {platform.python_version()}, numpy {version('numpy')}, {expat.EXPAT_VERSION}; {os.cpu_count()} cores"
    )
    with tempfile.TemporaryDirectory(prefix="dump-speed-", dir=given.folder) as name:
        folder = Path(name) / "site"
        folder.mkdir()
        n_rows, n_questions, size = make(folder, given.megabytes, given.questions)
        print(
            f"Posts.xml: {size:,.0f} MB, {n_rows:,} rows, {n_questions:,} of them questions, packed as {given.packed}"
        )
        origin = pack(folder, given.packed)
        tasks = ("build", *(("rows", "expat") if given.beside and given.packed == "xml" else ()))
        for task in tasks * given.rounds:
            command = [sys.executable, __file__, "--child", task, str(origin), str(Path(name) / "out")]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                raise SystemExit(done.stderr)
            *said, last = done.stdout.splitlines()
            seconds, busy, most, before = json.loads(last)
            print("\n".join(f"    {line}" for line in said))
            print(
                f"{task}: {size / seconds:.1f} MB/s of wall time ({seconds:.1f} s), {size / busy:.1f} of CPU time ",
                end="",
            )
            print(f"({busy:.1f} s); peak {most:.0f} MiB, {before:.0f} of them before it began")


if __name__ == "__main__":
    main()
