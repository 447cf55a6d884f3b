"""Every lesson keeps to the rules, its solutions pass, its empty exercises fail, and its two versions are written."""

from __future__ import annotations

import ast
import functools
import json
import pkgutil
import re
from pathlib import Path
from types import SimpleNamespace

import matplotlib
import pytest
import typer
from typer.testing import CliRunner

import mirblab.lessons
from mirblab.core import paths
from mirblab.core.errors import MirblabError
from mirblab.display import figures
from mirblab.lessons import build, checks, exercises
from mirblab.lessons.build import BEGIN, END, lessons, without_solutions
from mirblab.lessons.guesses import Guess, Note, guess

LESSONS = build.lesson_notebooks()
TOPICS = [found.name for found in pkgutil.iter_modules(checks.__path__) if found.name in exercises.TOPICS]
SHORTER = {"epochs": 0.5, "seeds": [0], "depths": [5]}  # what takes most of the time of its lesson
CHECK = re.compile(r'lab\.lessons\.check\("(\w+)\.(\w+)", (\w+)\)')


def text(cell) -> str:
    return "".join(cell["source"])


def tags(cell) -> list[str]:
    return cell["metadata"].get("tags", [])


def read_solutions(source: str) -> list[str]:
    return re.findall(f"{BEGIN}\n(.*?)\n *{END}", source, re.DOTALL)


def code(book) -> list:
    return [cell for cell in book["cells"] if cell["cell_type"] == "code"]


def tagged(book, tag: str) -> list:
    return [cell for cell in code(book) if tag in tags(cell)]


@pytest.fixture(scope="module", params=LESSONS, ids=lambda path: path.stem)
def lesson(request):
    """Both versions of a lesson."""
    path = request.param
    return SimpleNamespace(
        name=path.stem,
        path=path,
        student=build.lesson_version(path, for_teacher=False),
        teacher=build.lesson_version(path, for_teacher=True),
    )


@pytest.fixture(scope="module")
def ran(lesson, tmp_path_factory):
    """What the checks said and how many figures were shown: the student's version whole, then the solutions."""
    matplotlib.use("Agg")
    folder, said, shown = tmp_path_factory.mktemp("figures"), [], []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paths, "figures", lambda: folder)
        patch.setattr(figures, "_picture_bytes", picture_bytes)
        patch.setattr(figures, "_DPI", 60)
        patch.setattr(mirblab.lessons, "check", lambda name, answer: said.append(exercises.check(name, answer)))
        space = {"display": lambda *things: shown.extend(things)}
        for cell in code(lesson.student):
            run(cell, space, shown)
            space.update({name: value for name, value in SHORTER.items() if name in space})
        n_empty = len(said)
        for cell in tagged(lesson.teacher, "exercise") + tagged(lesson.teacher, "check"):
            run(cell, space, shown)
    pictures = [thing for thing in shown if "<img" in str(getattr(thing, "data", ""))]
    return SimpleNamespace(empty=said[:n_empty], solved=said[n_empty:], n_figures=len(pictures))


def picture_bytes(figure, suffix, *more, draw=figures._picture_bytes):
    """Return the PNG, which is shown; the other formats of a plot are tested where plots are."""
    return draw(figure, suffix, *more) if suffix == "png" else b""


def run(cell, space: dict, shown: list) -> None:
    """Execute a cell as a notebook does, its last expression shown."""
    tree = ast.parse(text(cell))
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, cell["id"], "exec"), space)
    if last is not None:
        shown.append(eval(compile(ast.Expression(last.value), cell["id"], "eval"), space))


def test_a_lesson_says_first_what_the_hour_is_for(lesson):
    """A question, what one does, what one should know, how long it takes."""
    first = text(lesson.teacher["cells"][0])
    assert first.splitlines()[0].startswith("# ") and first.splitlines()[0].endswith("?")
    assert all(word in first for word in ("**In this hour**", "**You should know**", "**It takes**"))
    assert len(lesson.teacher["cells"]) <= 44


def test_three_to_five_exercises_have_checks(lesson):
    """A check follows its exercise and holds nothing else; one exercise may go without."""
    cells = lesson.teacher["cells"]
    bare = 0
    for cell, after in zip(cells, [*cells[1:], None], strict=True):
        if "exercise" in tags(cell):
            bare += after is None or "check" not in tags(after)
            assert read_solutions(text(cell)) or "check" not in tags(after)
        if "check" in tags(cell):
            assert all(CHECK.fullmatch(line) for line in text(cell).splitlines()), text(cell)
    assert 3 <= len(tagged(lesson.teacher, "exercise")) - bare <= 5
    assert bare <= 1


def test_a_guess_is_asked_before_its_answer(lesson):
    """At least one in each of three steps; the comparison stands in a later cell, each guess is compared."""
    asked: dict[str, int] = {}
    compared: dict[str, int] = {}
    for place, cell in enumerate(code(lesson.teacher)):
        asked |= {name: place for name in re.findall(r"(\w+) = lab\.lessons\.guess\(", text(cell))}
        compared |= {name: place for name in re.findall(r"(\w+)\.compare\(", text(cell)) if name in asked}
    assert len(asked) >= 3
    assert all(asked[name] < compared.get(name, -1) for name in asked)


def test_links_lead_to_lessons_only(lesson):
    """The folder of a class has no other notebooks."""
    texts = [text(cell) for cell in lesson.student["cells"] + lesson.teacher["cells"]]
    assert set(re.findall(r"\]\((\w+)\.ipynb\)", "\n".join(texts))) <= {path.stem for path in LESSONS}


def test_the_students_version_hides_every_solution(lesson):
    """The marks and what stands between them are gone; everything else is the same."""
    whole = "\n".join(map(text, code(lesson.student)))
    assert "SOLUTION" not in whole
    for cell in tagged(lesson.teacher, "exercise"):
        for solution in read_solutions(text(cell)):
            assert solution.strip() not in whole
    assert [cell["id"] for cell in lesson.student["cells"]] == [cell["id"] for cell in lesson.teacher["cells"]]
    assert [tags(cell) for cell in lesson.student["cells"]] == [tags(cell) for cell in lesson.teacher["cells"]]


def test_what_only_the_batch_needs_is_left_out(lesson):
    """Cells tagged remove-cell are in neither version; all others are."""
    source = json.loads(lesson.path.read_text("utf-8"))["cells"]
    kept = [cell["id"] for cell in source if "remove-cell" not in tags(cell)]
    assert [cell["id"] for cell in lesson.teacher["cells"]] == kept


def test_every_solution_passes_its_check(ran):
    """The teacher's version is right."""
    assert ran.solved and [verdict for verdict in ran.solved if not verdict.passed] == []


def test_the_students_version_runs_and_every_check_asks_politely(ran):
    """Nothing is written yet, and it says so."""
    assert len(ran.empty) == len(ran.solved)
    assert all(not verdict.passed and verdict.message.startswith("Not written yet") for verdict in ran.empty)


def test_a_lesson_has_three_figures(ran):
    """Each through the outputs, with caption and alt text."""
    assert ran.n_figures >= 3


@pytest.mark.parametrize("topic", TOPICS)
def test_every_check_is_used_and_every_name_exists(topic):
    """In one lesson, once."""
    used = [
        name
        for path in LESSONS
        for cell in tagged(build.lesson_version(path, for_teacher=True), "check")
        for name in CHECK.findall(text(cell))
    ]
    names = [name for found, name, _ in used if found == topic]
    assert sorted(names) == sorted(exercises.checks_of_topic(topic))


@pytest.mark.parametrize("topic", TOPICS)
def test_no_hint_holds_a_line_of_the_solution(topic):
    """A hint says what is wrong, not what is right."""
    source = (Path(checks.__path__[0]) / f"{topic}.py").read_text("utf-8")
    said = [
        squeezed(node.value)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    asked = [
        (path, cell) for path in LESSONS for cell in tagged(build.lesson_version(path, for_teacher=True), "exercise")
    ]
    own = [cell for path, cell in asked if f'"{topic}.' in checks_after(path, cell)]
    solved = [solution for cell in own for solution in read_solutions(text(cell))]
    lines = {squeezed(line.strip().removeprefix("return ")) for solution in solved for line in solution.splitlines()}
    assert solved
    assert not [(line, hint) for line in lines if re.search(r"[-+*/(\[]", line) for hint in said if line in hint]


def checks_after(path: Path, cell) -> str:
    cells = build.lesson_version(path, for_teacher=True)["cells"]
    place = [one["id"] for one in cells].index(cell["id"])
    return text(cells[place + 1]) if place + 1 < len(cells) else ""


def squeezed(line: str) -> str:
    return re.sub(r"\s+", "", line)


def boom(*given, **named):
    raise RuntimeError("boom")


WRONG = {
    "text": "no answer",
    "number": -12345.678,
    "nan": float("nan"),
    "object": object(),
    "list": [object()],
    "dict": {"no": "answer"},
    "raises": boom,
    "to text": lambda *g, **n: "no answer",
    "to nan": lambda *g, **n: float("nan"),
    "to number": lambda *g, **n: -98765.4,
    "to list": lambda *g, **n: [],
    "no arguments": lambda: 0,
}


@functools.cache
def function_exercises() -> set[str]:
    """Return the exercises whose answer is a function: the lesson defines what it gives to the check."""
    sources = ["\n".join(map(text, code(build.lesson_version(path, for_teacher=True)))) for path in LESSONS]
    asked = [(source, *found) for source in sources for found in CHECK.findall(source)]
    return {f"{topic}.{name}" for source, topic, name, answer in asked if f"def {answer}(" in source}


@pytest.mark.parametrize("topic", TOPICS)
@pytest.mark.parametrize("answer", WRONG.values(), ids=WRONG)
def test_no_answer_makes_a_check_raise(topic, answer):
    """Whatever the answer is, there is a verdict, and a hint; it has the words of a function's own error."""
    for name in exercises.checks_of_topic(topic):
        verdict = exercises.check(f"{topic}.{name}", answer)
        assert not verdict.passed and not verdict.is_empty and len(verdict.message) > 10, (name, verdict)
        fails = answer is boom and f"{topic}.{name}" in function_exercises()
        assert ("RuntimeError: boom" in verdict.message) == fails, (name, verdict)


@pytest.mark.parametrize("topic", TOPICS)
@pytest.mark.parametrize(
    "answer", [..., None, lambda *g, **n: None, lambda *g, **n: ...], ids=["dots", "none", "fn", "fd"]
)
def test_what_is_not_written_is_called_so(topic, answer):
    """By the same words for numbers, tables and functions; a function is only called where one was asked for."""
    for name in exercises.checks_of_topic(topic):
        verdict = exercises.check(f"{topic}.{name}", answer)
        assert not verdict.passed
        is_empty = not callable(answer) or f"{topic}.{name}" in function_exercises()
        assert verdict.message.startswith("Not written yet") == is_empty, (name, verdict)


def test_an_unknown_exercise_names_the_nearest():
    """A misspelt name is the notebook's mistake, and no verdict."""
    with pytest.raises(MirblabError, match="did you mean 'collection.density'"):
        exercises.check("collection.densty", 1)
    with pytest.raises(MirblabError, match="did you mean 'collection'"):
        exercises.check("colection.density", 1)


def test_a_hint_names_the_error_the_input_and_the_line():
    """Of the function that the student wrote."""

    def density(n_judged, n_queries, n_docs):
        return n_judged / (n_queries - n_queries)

    hint = exercises.check("collection.density", density).message
    assert "ZeroDivisionError" in hint and "`6, 4, 5`" in hint and "`return n_judged / (n_queries - n_queries)`" in hint


def test_a_verdict_is_shown_once_and_again_where_it_is_asked_for():
    """As the last line of its cell, in the middle of one, and later by its name; in a notebook."""
    from IPython.core.interactiveshell import InteractiveShell
    from IPython.utils.capture import capture_output

    shell = InteractiveShell.instance()
    try:
        with capture_output() as shown:
            shell.run_cell(
                "from mirblab.lessons import check\nv = check('collection.density', 3)\nv", store_history=True
            )
        assert len(shown.outputs) == 1 and "✗ Not yet." in shown.outputs[0].data["text/html"]
        with capture_output() as shown:
            shell.run_cell("v", store_history=True)
        assert len(shown.outputs) == 1
    finally:
        InteractiveShell.clear_instance()


def test_a_guess_starts_empty_and_takes_what_is_chosen():
    """Buttons and slider; Run All chooses nothing."""
    mine = Guess("Which?", ["a", "b"])
    buttons = mine._widget()
    assert buttons.value is None and repr(mine.compare("b")) == "You did not guess; it is “b”."
    buttons.value = "a"
    assert repr(mine.compare("b")) == "You guessed “a”; it is “b”." and mine.compare("a").kind == "right"
    much = Guess("How much?", (0.0, 100.0))
    slider = much._widget().children[1]
    assert "nothing chosen" in much._widget().children[3].value and much.chosen is None
    slider.value = 40
    assert (
        "too high" in repr(much.compare(10.0))
        and "too low" in repr(much.compare(90))
        and "close" in repr(much.compare(41.5))
    )
    assert Guess("How many?", (0, 9)).compare(3.0).heading == "You did not guess; it is 3."


def test_a_guess_without_choices_and_an_answer_that_is_none_are_errors():
    """The notebook's author sees them first."""
    with pytest.raises(MirblabError, match="two or more choices"):
        guess("Which?", ["a"])
    with pytest.raises(MirblabError, match="two or more choices"):
        guess("How many?", (3, 3))
    with pytest.raises(MirblabError, match="did you mean 'words'"):
        Guess("Which?", ["words", "math"]).compare("wordy")


def test_a_note_escapes_what_comes_from_an_answer():
    """Also between backticks."""
    note = Note("wrong", "✗ Not yet.", "found `<img src=x onerror=alert(1)>` & <script>", choices="<b>")
    html = note._repr_html_()
    assert "<img" not in html and "<script" not in html and "<b>" not in html and "<code>&lt;img" in html
    assert 'aria-live="polite"' in html and "var(--jp-" in html
    formula = Note("guess", "Your guess:", r"Is $x^2 < \text{<script>}$ left? `a$b`")._repr_html_()
    assert "<msup>" in formula and "<script" not in formula and "<code>a$b</code>" in formula


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("### BEGIN SOLUTION\nx = 1", "cell c1, line 1: '### BEGIN SOLUTION' is never closed"),
        ("x = 1\n### END SOLUTION", "cell c1, line 2: '### END SOLUTION' has no beginning"),
        (
            "### BEGIN SOLUTION\n### BEGIN SOLUTION\n### END SOLUTION",
            "line 2: a solution begins inside the one of line 1",
        ),
        ("# begin solution\nx = 1", "'# begin solution' is misspelt"),
    ],
)
def test_a_broken_mark_names_the_cell_and_the_line(source, said):
    """Else a solution would be handed out."""
    with pytest.raises(MirblabError, match=re.escape(said)):
        without_solutions(source, "cell c1")


def test_two_solutions_in_one_cell_both_go():
    """They keep their indentation; a value that the solution replaces is where to write."""
    source = f"a = ...\n{BEGIN}\na = 1\n{END}\nif a:\n    {BEGIN}\n    b = 2\n    {END}"
    assert without_solutions(source).splitlines() == [
        "a = ...  # write here",
        "if a:",
        "    ...  # write here",
    ]


def test_work_is_never_overwritten_without_force(tmp_path):
    """Nothing is written at all when one file was edited; the second run over the same files is silent."""
    written = build.write_lessons(tmp_path, only=["01", "02"])
    assert [path.name[:2] for path in written] == ["01", "02"]
    with pytest.raises(MirblabError, match="give one of the two"):
        build.write_lessons(tmp_path, force=True, keep=True)
    assert build.write_lessons(tmp_path, only=["01", "02"]) == []
    book = json.loads(written[0].read_text("utf-8"))
    tagged(book, "exercise")[0]["source"] = ["def density(*given):\n", "    return 0.5"]
    written[0].write_text(json.dumps(book), "utf-8")
    written[1].unlink()
    with pytest.raises(MirblabError, match="01_what_is_a_test_collection.ipynb"):
        build.write_lessons(tmp_path, only=["01", "02"])
    assert not written[1].exists()
    assert build.write_lessons(tmp_path, only=["01", "02"], keep=True) == [written[1]]
    assert "return 0.5" in written[0].read_text("utf-8")
    written[1].unlink()
    assert build.write_lessons(tmp_path, only=["01", "02"], force=True) == written
    written[0].write_text("no notebook", "utf-8")
    with pytest.raises(MirblabError, match="--force"):
        build.write_lessons(tmp_path, only=["01"])


def test_a_file_that_was_only_run_or_only_handed_out_is_nobodys_work(tmp_path):
    """Outputs are not work, and an earlier version that nobody touched is replaced."""
    (path,) = build.write_lessons(tmp_path, only=["01"])
    book = json.loads(path.read_text("utf-8"))
    code(book)[0] |= {"execution_count": 1, "outputs": [{"output_type": "stream", "name": "stdout", "text": "x"}]}
    path.write_text(json.dumps(book), "utf-8")
    assert build.write_lessons(tmp_path, only=["01"]) == []
    book["cells"][0]["source"] = ["# An earlier title"]
    book["metadata"]["mirblab"] = {"lesson": path.stem, "cells": build.digest_cells(book)}
    path.write_text(json.dumps(book), "utf-8")
    assert build.write_lessons(tmp_path, only=["01"]) == [path]
    assert "An earlier title" not in path.read_text("utf-8")


def test_solutions_do_not_replace_the_students_copies(tmp_path):
    """Nor copies the solutions, unless it is said; the sources of the lessons are no place for either."""
    (path,) = build.write_lessons(tmp_path, only=["01"])
    with pytest.raises(MirblabError, match="are the students' version, so nothing was written"):
        build.write_lessons(tmp_path, only=["01"], for_teacher=True)
    assert build.write_lessons(tmp_path, only=["01"], for_teacher=True, keep=True) == []
    assert build.write_lessons(tmp_path, only=["01"], for_teacher=True, force=True) == [path]
    assert "BEGIN SOLUTION" in path.read_text("utf-8")
    with pytest.raises(MirblabError, match="are the teacher's version"):
        build.write_lessons(tmp_path, only=["01"])
    with pytest.raises(MirblabError, match="the notebooks that the lessons are made from"):
        build.write_lessons(build.paths.bundled_path("notebooks"), only=["01"], force=True)


def test_the_versions_are_clean_notebooks(lesson):
    """Valid for nbformat; no outputs, no metadata but tags, kernel and the stamp."""
    import nbformat

    for book in (lesson.student, lesson.teacher):
        nbformat.validate(nbformat.from_dict(book))
        assert not any(cell["outputs"] or cell["execution_count"] for cell in code(book))
        assert set(book["metadata"]) <= {"kernelspec", "language_info", "mirblab"}


def test_the_command_writes_and_refuses(tmp_path):
    """One line per file; an unknown lesson names those that there are."""
    app = typer.Typer()
    app.command()(lessons)
    done = CliRunner().invoke(app, ["--out", str(tmp_path), "--only", "02"])
    assert done.exit_code == 0 and done.output.strip() == str(tmp_path / "02_bm25_by_hand.ipynb")
    assert CliRunner().invoke(app, ["--out", str(tmp_path), "--only", "02"]).output == ""
    failed = CliRunner().invoke(app, ["--out", str(tmp_path), "--only", "99"])
    assert isinstance(failed.exception, MirblabError) and "02_bm25_by_hand" in str(failed.exception)
