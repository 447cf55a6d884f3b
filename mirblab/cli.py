"""cli: the command `mirblab`: build, add, run, batch, plan, train, cache and doctor."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from mirblab import arguments, diff_command, figures_command, stores, terminal, train_commands
from mirblab.arguments import Set
from mirblab.errors import MirblabError
from mirblab.lessons import command as lessons_command
from mirblab.terminal import say

app = typer.Typer(
    name="mirblab",
    help="A workbench for mathematical information retrieval: build collections, run suites of notebooks.",
    invoke_without_command=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

Only = Annotated[list[str] | None, typer.Option(help="Only notebooks whose name begins so; may be repeated.")]


@app.callback()
def start(context: typer.Context) -> None:
    """Say what one can do here, where no command is given."""
    if context.invoked_subcommand is None:
        from mirblab import welcome

        welcome.show()


@app.command()
def build(
    source: Annotated[
        str,
        typer.Argument(help="What to build: stacks, mirb, mirb-mathlib, stackexchange ..."),
    ],
    origin: Annotated[
        str, typer.Option("--from", help="A folder, an archive or a URL; default: the source's public repository.")
    ] = "",
    settings: Set = None,
) -> None:
    """Turn raw mathematics into collections in the data folder; `mirblab build SOURCE --set x=1` names its options."""
    from mirblab import builders

    for folder in builders.build(source, origin, **arguments.settings(settings)):
        _describe(folder)


@app.command()
def add(
    folder: Annotated[Path, typer.Argument(help="A folder with corpus, queries and qrels in BEIR's layout.")],
    name: Annotated[str, typer.Option(help="Its name here; default: the folder's.")] = "",
    candidates: Annotated[
        list[str] | None,
        typer.Option(help="Rule for the card: judged, not-self, earlier, tags, or all; may be repeated."),
    ] = None,
    task: Annotated[str, typer.Option(help="Its task, for averages in tables.")] = "",
    paper: Annotated[str, typer.Option(help="The published collection that it follows, as MIRB prints it.")] = "",
    relevant_from: Annotated[int, typer.Option(help="The smallest relevance that counts as relevant.")] = 0,
    again: Annotated[bool, typer.Option("--again", help="Accept what was changed in it since, in place.")] = False,
) -> None:
    """Check a collection and copy it into the data folder, so that suites find it by name."""
    from mirblab import intake

    card = {"candidates": candidates, "task": task, "paper": paper, "relevant_from": relevant_from or None}
    target, notes = intake.again(folder, name, **card) if again else intake.add(folder, name, **card)
    _describe(target, notes)


@app.command()
def batch(
    suite: Annotated[str, typer.Argument(help="Which suite: mini (bundled), open (everything built or added).")],
    only: Only = None,
    settings: Set = None,
    plan: Annotated[bool, typer.Option("--plan", help="Print what would run, and stop.")] = False,
    jobs: Annotated[int, typer.Option(help="Notebooks at once; 0: one per two cores, at least two.")] = 0,
    force: Annotated[bool, typer.Option(help="Run notebooks that are fresh, too.")] = False,
) -> None:
    """Run a suite's notebooks; tables and figures land in figures/<suite>/. A second run makes only what changed."""
    from mirblab import console, suites

    chosen = suites.read(suite, arguments.settings(settings), only, fetch=not plan)
    if plan:
        console.show_plan(chosen, force=force)
        return
    try:
        raise typer.Exit(console.run_batch(chosen, n_workers=jobs, force=force))
    except KeyboardInterrupt:
        say("stopped; what is encoded, searched or drawn is kept: the same command goes on from there", to=sys.stderr)
        raise typer.Exit(130) from None


@app.command()
def run(
    system: Annotated[str, typer.Argument(help="A system, such as bm25, minilm or bm25+minilm>maxsim@20.")],
    collections: Annotated[list[str], typer.Argument(help="Collections, by name or folder.")],
    measures: Annotated[str, typer.Option(help="Measures, separated by commas.")] = "nDCG@10,R@100",
    out: Annotated[Path | None, typer.Option(help="A folder for TREC run files.")] = None,
    split: Annotated[str, typer.Option(help="Which split's queries.")] = "test",
) -> None:
    """Search collections with one system, and print what it reaches."""
    from mirblab import console

    console.show_values(system, collections, [name.strip() for name in measures.split(",")], out, split)


@app.command()
def plan(
    suite: Annotated[str, typer.Argument(help="Which suite; mirb also shows what each model would cost.")],
    only: Only = None,
    settings: Set = None,
    models: Annotated[str, typer.Option(help="For mirb: encoders, separated by commas.")] = "",
) -> None:
    """Print what a batch would run, what is stored already, and how long and how large the rest is."""
    from mirblab import console, suites

    if suite == "mirb":
        console.show_costs([name.strip() for name in models.split(",")] if models else None)
        return
    console.show_plan(suites.read(suite, arguments.settings(settings), only))


@app.command()
def redraw(
    path: Annotated[Path, typer.Argument(help="The .csv or .json file beside a map.")],
    out: Annotated[Path, typer.Option(help="The folder for the pictures.")] = Path("redrawn"),
) -> None:
    """Draw a map again from its stored coordinates, to the same bytes."""
    from mirblab import redrawing

    for written in redrawing.redraw(path, out):
        say(written)


for command in (diff_command.diff, figures_command.figures, lessons_command.lessons):
    app.command()(command)
app.command()(train_commands.train)
app.command()(train_commands.rephrase)


@app.command()
def report(
    name: Annotated[str, typer.Argument(help="A collection, by name or folder.")],
    encoder: Annotated[list[str] | None, typer.Option(help="Whose maximum length counts; may be repeated.")] = None,
    other: Annotated[list[str] | None, typer.Option(help="A collection that may share texts; may be repeated.")] = None,
    run: Annotated[list[Path] | None, typer.Option(help="A run file, for its judged share; may be repeated.")] = None,
    threshold: Annotated[float, typer.Option(help="Jaccard similarity of near-duplicates.")] = 0.8,
    split: Annotated[str, typer.Option(help="Which judgements.")] = "test",
    seed: Annotated[int, typer.Option(help="For samples and hashes.")] = 0,
) -> None:
    """Print what makes a collection easier, harder or less fair than it looks, worst first."""
    from mirblab import inspection, report_view, runs, shelf

    found = inspection.report(
        shelf.load(name, split),
        encoders=["minilm"] if encoder is None else encoder,
        others=[shelf.load(one) for one in other or []],
        runs=[runs.read_run(path) for path in run or []],
        threshold=threshold,
        seed=seed,
    )
    report_view.show(found)


@app.command("import-results")
def import_results(
    path: Annotated[Path, typer.Argument(help="A TREC run, a CSV, a JSON file of MTEB, or a folder of them.")],
    system: Annotated[str, typer.Option(help="Its name here, where the file has none.")] = "",
    collection: Annotated[str, typer.Option(help="What it was measured on; a run's is guessed from its ids.")] = "",
    origin: Annotated[str, typer.Option(help="Who measured; tables show it.")] = "",
    name: Annotated[str, typer.Option(help="The folder's name in results/.")] = "",
    percent: Annotated[bool, typer.Option("--percent", help="Values are from 0 to 100.")] = False,
    candidates_only: Annotated[
        bool, typer.Option("--candidates-only", help="Cut documents that a query may not return.")
    ] = False,
) -> None:
    """Take in what others measured: it appears in tables, marked, as a system of its own."""
    from mirblab import imports

    record, notes = imports.add(
        path, system=system, collection=collection, origin=origin, name=name, percent=percent,
        candidates_only=candidates_only,
    )  # fmt: skip
    where = f"{', '.join(record.systems[:5])} on {', '.join(record.collections[:5])}: in {record.folder}"
    say("\n  note: ".join([where, *notes]))


@app.command()
def cache(
    verify: Annotated[
        bool, typer.Option("--verify", help="Check everything that is stored, and remove what killed processes left.")
    ] = False,
    remove: Annotated[str, typer.Option(help=f"Remove what is stored: {stores.described()}")] = "",
) -> None:
    """Show what is stored, how large it is, and whether it is sound."""
    from mirblab import console

    raise typer.Exit(console.show_cache(verify=verify, remove=remove))


@app.command()
def threads(
    origin: Annotated[str, typer.Argument(help="A Stack Exchange dump or an ARQMath release: a folder or an archive.")],
    ids: Annotated[list[str], typer.Argument(help="Numbers of questions or answers.")],
    out: Annotated[Path, typer.Option(help="The folder for the pages.")] = Path("threads"),
    formulas: Annotated[str, typer.Option(help="mathml, or latex as it is written.")] = "mathml",
) -> None:
    """Write question threads as HTML pages that need no network."""
    from mirblab import threads as pages

    written = pages.write(origin, ids, out, formulas=formulas)
    say(f"{len(written) - 1} threads; open {written[0]}")


@app.command()
def doctor() -> None:
    """Find what is wrong with this installation, and say how to mend it."""
    from mirblab import console

    raise typer.Exit(console.show_doctor())


def _describe(folder: Path, notes: Iterable[str] = ()) -> None:
    """Print what a collection on disk holds."""
    from mirblab.collection import load_folder

    found = load_folder(folder)
    shown = ", ".join(found.candidates.names) or "all documents"
    say(f"{found.name}: {len(found.queries):,} queries, {len(found.corpus):,} documents; candidates: {shown}")
    say("\n  note: ".join([f"  in {folder}", *notes]))


def main() -> None:
    """Run the command; what the user got wrong is one line on standard error and exit status 2."""
    terminal.say_warnings()
    try:
        app()
    except (MirblabError, FileNotFoundError) as error:
        say(f"mirblab: {error}", to=sys.stderr)
        sys.exit(2)
