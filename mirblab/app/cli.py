"""cli: the commands of mirblab."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from mirblab import __version__
from mirblab.app import stores
from mirblab.core import terminal
from mirblab.core.errors import MirblabError
from mirblab.core.terminal import say
from mirblab.core.wording import cut_long
from mirblab.lessons import build as lessons_command

On = Annotated[
    str, typer.Option("--on", help="local, pool:N (N processes here), or a Dask scheduler, as tcp://HOST:PORT.")
]
Insecure = Annotated[
    bool,
    typer.Option("--insecure", help="Let whoever can reach the scheduler run any program as the user of its workers."),
]
Set = Annotated[list[str] | None, typer.Option("--set", help="A parameter, as name=value; may be repeated.")]


def parse_settings(pairs: Iterable[str] | None, texts: Collection[str] = ()) -> dict[str, Any]:
    """Return parameters from name=value; a value that is no literal of Python or TOML is a text, as are all *texts*.

    >>> parse_settings(["seed=3", "data=mini-views", "decay=true"])
    {'seed': 3, 'data': 'mini-views', 'decay': True}
    >>> parse_settings(["name=1_000", "text='body'"], texts=["name", "text"])
    {'name': '1_000', 'text': 'body'}
    """
    settings: dict[str, Any] = {}
    for pair in pairs or []:
        name, sign, value = pair.partition("=")
        if not sign:
            raise MirblabError(f"--set wants name=value, found '{pair}'; write for example --set seed=1")
        name = name.strip()
        try:
            settings[name] = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            settings[name] = {"true": True, "false": False}.get(value, value)
        if name in texts and not isinstance(settings[name], str):
            settings[name] = value
    return settings


def parse_seed(text: str) -> int:
    """Return a seed; MirblabError for what is no whole number from 0."""
    if not text.isdecimal():
        raise MirblabError(f"a seed is a whole number from 0, found '{text}'; write --seeds 0,1,2")
    return int(text)


def split_names(text: str) -> list[str]:
    """Return the names in a comma-separated text; a comma before a weight, as in bm25>maxsim@50,0.5, is part of a name.

    >>> split_names("bm25, bm25>maxsim@50,0.5, bm25>maxsim@50,cv, minilm")
    ['bm25', 'bm25>maxsim@50,0.5', 'bm25>maxsim@50,cv', 'minilm']
    """
    return [name.strip() for name in re.split(r",(?!(?:cv|[\d.]+)\s*(?:,|$))", text) if name.strip()]


def train(
    name: Annotated[str, typer.Argument(help="A recipe of registry/trained.toml, such as minilm-math.")],
    settings: Set = None,
    out: Annotated[str, typer.Option(help="A name for the model; default: the recipe's.")] = "",
    seeds: Annotated[str, typer.Option(help="A model for each of several seeds, 0,1,2: NAME-seed-0 and so on.")] = "",
    force: Annotated[bool, typer.Option(help="Train again what exists, or was begun.")] = False,
    on: On = "local",
    insecure: Insecure = False,
) -> None:
    """Train an encoder or a reranker and store it in the models folder; a stopped or killed training goes on."""
    from mirblab.app import console, places
    from mirblab.train.command import run_training

    changes = parse_settings(settings)
    if not seeds:
        if on != places.LOCAL:
            raise MirblabError(f"one training runs in this process; for --on {on} give several seeds: --seeds 0,1,2")
        raise typer.Exit(run_training(name, changes, out=out, force=force))
    if "seed" in changes:
        raise MirblabError(f"--seeds {seeds} and seed {changes['seed']} are both given; leave one of them out")
    numbers = list(dict.fromkeys(parse_seed(text.strip()) for text in seeds.split(",")))
    with places.open_place(on, insecure=insecure) as place:
        raise typer.Exit(console.train_seeds(place, name, changes, numbers, out=out, force=force))


def rephrase(
    source: Annotated[
        str, typer.Argument(help="A table of views: mathlib-views, mini-views, or a file.")
    ] = "mathlib-views",
    model: Annotated[str, typer.Option(help="The chat model; default: MIRBLAB_CHAT_MODEL.")] = "",
    url: Annotated[str, typer.Option(help="Its address, http://localhost:8000/v1; default: MIRBLAB_CHAT_URL.")] = "",
    rules: Annotated[bool, typer.Option("--rules", help="Rephrase by rules, without a model.")] = False,
    negatives: Annotated[bool, typer.Option("--negatives", help="Also three wrong versions of each.")] = False,
    split: Annotated[str, typer.Option(help="The split whose statements are rephrased; empty: all.")] = "train",
    modules: Annotated[str, typer.Option(help="all, or mathematics.")] = "all",
    limit: Annotated[int, typer.Option(min=0, help="The size of a random sample; 0: all.")] = 0,
    seed: Annotated[int, typer.Option(min=0, help="The seed of the rules and of the sample.")] = 0,
    out: Annotated[str, typer.Option(help="A .parquet or .jsonl file; default: data/rephrasings/.")] = "",
    settings: Set = None,
) -> None:
    """Rephrase statements, for training; nothing is asked twice. --set in_flight=8 or budget=5 limits a model."""
    from mirblab.train.rephrase import run_rephrasing

    status = run_rephrasing(
        source, rules=rules, model=model, url=url, negatives=negatives, out=out, seed=seed,
        limits=parse_settings(settings), split=split, modules=modules, limit=limit,
    )  # fmt: skip
    raise typer.Exit(status)


def diff(
    first: Annotated[str, typer.Argument(help="A system, such as bm25, or a run file in TREC's format.")],
    second: Annotated[str, typer.Argument(help="What it is compared with: another system or run file.")],
    collection: Annotated[str, typer.Option(help="The collection of both, by name or folder.")],
    measures: Annotated[str, typer.Option(help="Measures, separated by commas; the first ranks the queries.")] = (
        "nDCG@10,AP,R@100"
    ),
    k: Annotated[int, typer.Option(help="The number of first documents that are compared.")] = 10,
    out: Annotated[Path | None, typer.Option(help="A .csv file for everything, query by query.")] = None,
    queries: Annotated[int, typer.Option(help="How many queries that gained, and that lost, are shown.")] = 5,
    p: Annotated[float, typer.Option(help="Rank-biased overlap's p, 0 to 1: 0.9 is about ten ranks.")] = 0.9,
    depth: Annotated[
        int | None, typer.Option(help="The number of documents per query; default: 1000, or what the measures need.")
    ] = None,
    split: Annotated[str, typer.Option(help="The split whose queries are used.")] = "test",
    seed: Annotated[int, typer.Option(min=0, help="The seed of the test and the intervals.")] = 0,
) -> None:
    """Compare two runs of a collection: means, significance, queries, documents that moved, unjudged documents."""
    from mirblab.analysis import compare_runs

    comparison = compare_runs.compare_runs(
        first, second, collection, split_names(measures), k=k, n_queries=queries, p=p, depth=depth, split=split,
        seed=seed,
    )  # fmt: skip
    compare_runs.print_comparison(comparison)
    if out is not None:
        say(f"wrote {compare_runs.write_comparison(comparison, out)}")


def figures(
    remove: Annotated[
        list[str] | None, typer.Option(help="A run by hand, as listed here, or all of them; may be repeated.")
    ] = None,
) -> None:
    """List the tables and figures of suites and of runs by hand; --remove removes those of runs by hand."""
    from mirblab.app import console, hand_runs

    for run in hand_runs.remove_hand_runs(remove or []):
        say(f"removed {run.folder}")
    if not remove:
        console.print_figures()


EVERY_DAY = (
    "search", "similar", "run", "diff", "judge", "report", "batch", "plan", "figures", "build", "add", "list",
    "lessons", "doctor",
)  # fmt: skip


class CommandGroups(TyperGroup):
    """The commands in two groups: those of every day, in the order of `EVERY_DAY`, and the others by name."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write both groups into the help."""
        others = sorted(set(self.commands) - set(EVERY_DAY))
        for title, names in (("Every day", EVERY_DAY), ("Also", others)):
            with formatter.section(title):
                formatter.write_dl([(name, self.commands[name].get_short_help_str(150)) for name in names])


app = typer.Typer(
    name="mirblab",
    cls=CommandGroups,
    help="A workbench for mathematical information retrieval: search, compare, build collections, run notebooks.",
    invoke_without_command=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

Only = Annotated[list[str] | None, typer.Option(help="Only notebooks whose name begins so; may be repeated.")]


def print_version(wanted: bool) -> None:
    """Print the version and end, if it is *wanted*."""
    if wanted:
        say(f"mirblab {__version__}")
        raise typer.Exit


@app.callback()
def start(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=print_version, is_eager=True)
    ] = False,
) -> None:
    """Print the next steps when no command is given."""
    if context.invoked_subcommand is None:
        from mirblab.app import console

        console.print_welcome()


@app.command()
def build(
    source: Annotated[
        str,
        typer.Argument(help="What to build: stacks, mirb, mirb-mathlib, stackexchange ..."),
    ],
    origin: Annotated[
        str, typer.Option("--from", help="A folder, an archive or a URL; default: the source's public repository.")
    ] = "",
    at: Annotated[str, typer.Option(help="A day, as 2014-01-01, or a commit: the library as it was then.")] = "",
    until: Annotated[str, typer.Option(help="With --at: ask what was proved from then to this day or commit.")] = "",
    settings: Set = None,
    on: On = "local",
    insecure: Insecure = False,
) -> None:
    """Turn raw mathematics into collections in the data folder; `mirblab build SOURCE --set x=1` names its options."""
    from mirblab.app import console, places
    from mirblab.sources import catalogue

    options = parse_settings(settings, catalogue.text_options(source))
    options |= {name: day for name, day in (("at", at), ("until", until)) if day}
    with places.open_place(on, insecure=insecure) as place:
        place.run(console.build_collections, source, places.whole_path(origin), options)


@app.command()
def add(
    folder: Annotated[Path, typer.Argument(help="A folder with corpus, queries and qrels in BEIR's layout.")],
    name: Annotated[str, typer.Option(help="Its name here; default: the folder's.")] = "",
    candidates: Annotated[
        list[str] | None,
        typer.Option(help="Rule for the card: judged, not-self, earlier, tags, or all; may be repeated."),
    ] = None,
    task: Annotated[str, typer.Option(help="Its task, for averages in tables.")] = "",
    instruction: Annotated[str, typer.Option(help="The task in a sentence, for models that take one.")] = "",
    paper: Annotated[str, typer.Option(help="The printed name of the published collection that it follows.")] = "",
    relevant_from: Annotated[int, typer.Option(help="The smallest relevance that counts as relevant.")] = 0,
    again: Annotated[bool, typer.Option("--again", help="Accept a changed collection as it is.")] = False,
) -> None:
    """Check a collection and copy it into the data folder, so that suites find it by name."""
    from mirblab.app import console
    from mirblab.sources import catalogue

    card = {
        "candidates": candidates,
        "task": task,
        "instruction": instruction,
        "paper": paper,
        "relevant_from": relevant_from or None,
    }
    target, notes = catalogue.accept_changes(folder, name, **card) if again else catalogue.add(folder, name, **card)
    console.print_collection(target, notes)


@app.command()
def convert(
    collection: Annotated[str, typer.Argument(help="A collection, by name or folder.")],
    to: Annotated[str, typer.Option(help="parts (Parquet, read as needed), or jsonl (BEIR's layout).")] = "parts",
    out: Annotated[str, typer.Option(help="A new folder for it; default: the collection's own is replaced.")] = "",
) -> None:
    """Write a collection's corpus in parts, so that it may be larger than memory, or as corpus.jsonl again."""
    from mirblab.app import console
    from mirblab.sources import catalogue

    console.print_collection(catalogue.convert(collection, out, to=to))


@app.command()
def batch(
    suite: Annotated[
        str,
        typer.Argument(
            help="mini or findings (bundled), open (built or added), or a paper: mirb, zhong, meld, arqmath."
        ),
    ],
    only: Only = None,
    settings: Set = None,
    plan: Annotated[bool, typer.Option("--plan", help="Print what would run, and stop.")] = False,
    jobs: Annotated[int, typer.Option(min=0, help="Notebooks at once; 0: one per two cores, at least two.")] = 0,
    force: Annotated[bool, typer.Option(help="Run notebooks that are fresh, too.")] = False,
    on: On = "local",
    insecure: Insecure = False,
) -> None:
    """Run a suite's notebooks; tables and figures land in figures/<suite>/. A second run makes only what changed."""
    from mirblab.app import console, places, suite_files

    missing: dict[str, str] = {}
    chosen = suite_files.read_suite(suite, parse_settings(settings), only, fetch=not plan, tell=missing.__setitem__)
    with places.open_place(on, jobs, insecure=insecure) as place:
        if plan:
            console.print_plan(chosen, missing, place, force=force)
            return
        console.print_missing(missing)
        status = console.run_batch(chosen, place, force=force)
    raise typer.Exit(status)


@app.command()
def run(
    system: Annotated[str, typer.Argument(help="A system, such as bm25, minilm or bm25+minilm>maxsim@20.")],
    collections: Annotated[list[str], typer.Argument(help="Collections, by name or folder.")],
    measures: Annotated[str, typer.Option(help="Measures, separated by commas.")] = "nDCG@10,R@100",
    out: Annotated[Path | None, typer.Option(help="A folder for run files.")] = None,
    form: Annotated[str, typer.Option("--format", help="Of run files: trec, or arqmath (task 1).")] = "trec",
    split: Annotated[str, typer.Option(help="The split whose queries are used.")] = "test",
    settings: Set = None,
    on: On = "local",
    insecure: Insecure = False,
) -> None:
    """Search collections with one system, and print the means of the measures; --set k1=0.9 changes its settings."""
    from mirblab.app import console, places
    from mirblab.retrieval import systems

    chosen = systems.system(system, **parse_settings(settings))
    with places.open_place(on, insecure=insecure) as place:
        console.print_values(chosen, collections, place, split_names(measures), out, split, form)


@app.command()
def search(
    collection: Annotated[str, typer.Argument(help="A collection, by name or folder.")],
    text: Annotated[list[str] | None, typer.Argument(help="What to search for; formulas between dollars.")] = None,
    by: Annotated[str, typer.Option(help="A system; mirblab run --help has examples.")] = "hybrid",
    depth: Annotated[int, typer.Option("-n", "--depth", help="How many documents.")] = 10,
    file: Annotated[Path | None, typer.Option(help="A LaTeX file, whose statements are searched for.")] = None,
    out: Annotated[Path | None, typer.Option(help="A CSV file for the documents with their whole texts.")] = None,
    on: On = "local",
    insecure: Insecure = False,
) -> None:
    """Search a collection for a text or formula, and print the best documents."""
    from mirblab.app import console, places
    from mirblab.app.batch import run_tasks

    if bool(text) == (file is not None):
        raise MirblabError("give a text to search for, or --file with a LaTeX file")
    with places.open_place(on, insecure=insecure) as place:
        found = run_tasks.Cluster(place).search(file or " ".join(text or []), collection, by, depth=depth)
    console.print_documents(found, out)


@app.command()
def similar(
    left: Annotated[str, typer.Argument(help="A collection, by name or folder.")],
    right: Annotated[str | None, typer.Argument(help="A second one; pairs then have a statement of either.")] = None,
    by: Annotated[str, typer.Option(help="BM25, an encoder, structure, or a fusion of them.")] = "minilm",
    n: Annotated[int, typer.Option("-n", help="How many pairs.")] = 20,
    copies: Annotated[bool, typer.Option("--copies", help="Also pairs of nearly the same wording.")] = False,
    queries: Annotated[bool, typer.Option("--queries", help="Queries are statements, too.")] = False,
    out: Annotated[Path | None, typer.Option(help="A CSV file for the pairs with their whole texts.")] = None,
    on: On = "local",
    insecure: Insecure = False,
) -> None:
    """Print the pairs of statements that probably say the same, best first."""
    from mirblab.app import console, places
    from mirblab.app.batch import run_tasks

    with places.open_place(on, insecure=insecure) as place:
        pairs = run_tasks.Cluster(place).similar(left, right, by, n=n, copies=copies, queries=queries)
    console.print_pairs(pairs, out)


@app.command()
def judge(
    collection: Annotated[str, typer.Argument(help="A collection, by name or folder.")],
    systems: Annotated[list[str], typer.Argument(help="The systems whose first documents are judged.")],
    judge: Annotated[str, typer.Option("--judge", help="Who judges; default: the user's name.")] = "",
    depth: Annotated[int, typer.Option("-n", "--depth", help="How many documents of each system.")] = 10,
    disputed: Annotated[
        int, typer.Option(min=0, help="At most so many of these: where the systems disagree most. 0: all.")
    ] = 0,
    seed: Annotated[int, typer.Option(min=0, help="Of the random order.")] = 0,
    rejudge: Annotated[bool, typer.Option("--rejudge", help="Also what the collection has judgements of.")] = False,
    merge: Annotated[list[Path] | None, typer.Option(help="Another judge's file to add; may be repeated.")] = None,
    agreement: Annotated[bool, typer.Option("--agreement", help="Ask nothing; print agreement and effect.")] = False,
) -> None:
    """Judge documents in random order; what is judged is stored at once, and the same command goes on."""
    from mirblab.app import judging_screen

    found = judging_screen.judge(systems, collection, depth, judge=judge, disputed=disputed, seed=seed, rejudge=rejudge)
    for path in merge or []:
        say(f"{found.merge(path):,} judgements added from {path}")
    if not agreement and not merge:
        judging_screen.judge_in_terminal(found)
    say(f"\n{found.agreement().to_markdown()}\n{found.changes().to_markdown()}")


@app.command()
def serve(
    collection: Annotated[str, typer.Argument(help="A collection, by name or folder.")],
    by: Annotated[str, typer.Option(help="A system; mirblab list systems has them.")] = "hybrid",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port on this machine; 0: any free one.")] = 8765,
    stdio: Annotated[bool, typer.Option("--stdio", help="Answer only the program that started this, by MCP.")] = False,
) -> None:
    """Answer other programs on this machine, such as an editor: search and similar over HTTP and as tools of MCP."""
    from mirblab.app import server

    server.serve(collection, by, port=port, stdio=stdio)


@app.command()
def plan(
    suite: Annotated[str, typer.Argument(help="Which suite; that of a paper also shows what each model would cost.")],
    only: Only = None,
    settings: Set = None,
    models: Annotated[str, typer.Option(help="Encoders, separated by commas: their costs by collection.")] = "",
    on: On = "local",
    insecure: Insecure = False,
) -> None:
    """Print what a batch would run, what is stored or missing, and how long and how large the rest is."""
    from mirblab.app import console, places, suite_files
    from mirblab.app.batch import run_planning

    missing: dict[str, str] = {}
    chosen = suite_files.read_suite(suite, parse_settings(settings), only, tell=missing.__setitem__)
    with places.open_place(on, insecure=insecure) as place:
        console.print_plan(chosen, missing, place)
    encoders, rerankers = run_planning.encoders_in(suite), run_planning.reranked_in(suite)
    console.print_costs(suite_files.collection_sizes(suite), split_names(models), encoders, rerankers)


@app.command()
def verify(
    suite: Annotated[str, typer.Argument(help="mini; findings: tables of notebooks; open: what is built or added.")],
    systems: Annotated[str, typer.Option(help="Only these systems or tables, separated by commas.")] = "",
    collections: Annotated[str, typer.Option(help="Only these collections or notebooks, separated by commas.")] = "",
    update: Annotated[bool, typer.Option("--update", help="Store this machine's values as the expected ones.")] = False,
) -> None:
    """Compute what is expected of systems and of notebooks' tables, and print OK, OKish or FAIL for each."""
    from mirblab.app import console, places, verification

    chosen = split_names(systems), split_names(collections)
    verification.check_names(suite, *chosen)
    if jobs := verification.table_jobs(suite, chosen[1]):
        with places.open_place() as place:
            console.run_batch(jobs, place)
    if update:
        say(f"wrote {verification.update(suite, *chosen)}")
    else:
        raise typer.Exit(console.print_verification(suite, *chosen))


@app.command("list")
def list_names(what: Annotated[str, typer.Argument(help="collections, systems, models or measures.")]) -> None:
    """List the collections, systems, models or measures, with what each needs before it can be used."""
    from mirblab.app import console

    console.print_inventory(what)


@app.command()
def redraw(
    path: Annotated[Path, typer.Argument(help="The .csv or .json file beside a map.")],
    out: Annotated[Path, typer.Option(help="The folder for the pictures.")] = Path("redrawn"),
) -> None:
    """Draw a map again from its stored coordinates, to the same bytes."""
    from mirblab.analysis import projection

    for written in projection.redraw(path, out):
        say(written)


for command in (diff, figures, lessons_command.lessons, train, rephrase):
    app.command()(command)


@app.command()
def report(
    name: Annotated[str, typer.Argument(help="A collection, by name or folder.")],
    encoder: Annotated[list[str] | None, typer.Option(help="Whose maximum length counts; may be repeated.")] = None,
    other: Annotated[list[str] | None, typer.Option(help="A collection that may share texts; may be repeated.")] = None,
    run: Annotated[list[Path] | None, typer.Option(help="A run file, for its judged share; may be repeated.")] = None,
    threshold: Annotated[float, typer.Option(help="Jaccard similarity of near-duplicates.")] = 0.8,
    split: Annotated[str, typer.Option(help="Which judgements.")] = "test",
    seed: Annotated[int, typer.Option(min=0, help="The seed of samples and hashes.")] = 0,
) -> None:
    """Print what makes a collection easier, harder or less fair than it looks, most severe first."""
    from mirblab.analysis import collection_report, compare_runs
    from mirblab.sources import catalogue

    collection = catalogue.load(name, split)
    collection_report.print_report(
        collection_report.report(
            collection,
            encoders=["minilm"] if encoder is None else encoder,
            others=other or [],
            runs=[compare_runs.read_run_file(path, collection) for path in run or []],
            threshold=threshold,
            seed=seed,
        )
    )


@app.command("import-results")
def import_results(
    path: Annotated[
        Path | None,
        typer.Argument(
            help="A run (TREC or ARQMath), a CSV, a JSON file of MTEB, or a folder of them; none: list the imports."
        ),
    ] = None,
    system: Annotated[str, typer.Option(help="The name of the system, where the file has none.")] = "",
    collection: Annotated[str, typer.Option(help="The collection; that of a run is guessed from its ids.")] = "",
    origin: Annotated[str, typer.Option(help="Who measured the values; tables show it.")] = "",
    name: Annotated[str, typer.Option(help="The folder's name in results/.")] = "",
    percent: Annotated[bool, typer.Option("--percent", help="Values are from 0 to 100.")] = False,
    candidates_only: Annotated[
        bool, typer.Option("--candidates-only", help="Cut documents that a query may not return.")
    ] = False,
) -> None:
    """Import results that others measured, or list them: runs become systems, which tables mark."""
    from mirblab.app import console
    from mirblab.evaluation import imported

    if path is None:
        console.print_imports()
        return
    record, notes = imported.import_results(
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
    remove: Annotated[str, typer.Option(help=f"Remove what is stored: {stores.describe_parts()}")] = "",
    long: Annotated[bool, typer.Option("--long", help="Vectors by model, role and prompt, and empty stores.")] = False,
) -> None:
    """Show what is stored, how large it is, and whether it is sound."""
    from mirblab.app import console

    raise typer.Exit(console.print_stores(verify=verify, remove=remove, long=long))


@app.command()
def threads(
    origin: Annotated[str, typer.Argument(help="A Stack Exchange dump or an ARQMath release: a folder or an archive.")],
    ids: Annotated[list[str], typer.Argument(help="Numbers of questions or answers.")],
    out: Annotated[Path, typer.Option(help="The folder for the pages.")] = Path("threads"),
    formulas: Annotated[str, typer.Option(help="mathml, or latex as it is written.")] = "mathml",
) -> None:
    """Write question threads as HTML pages that need no network."""
    from mirblab.display import threads as pages

    written = pages.write_thread_pages(origin, ids, out, formulas=formulas)
    say(f"{len(written) - 1} threads; open {written[0]}")


@app.command()
def doctor() -> None:
    """Check this installation, and print how to repair what is wrong."""
    from mirblab.app import console

    raise typer.Exit(console.print_diagnosis())


def main() -> None:
    """Run the command; an error of the user is one line on standard error and exit status 2, Ctrl-C one and 130."""
    terminal.escape_what_streams_cannot_carry()
    terminal.say_warnings()
    try:
        app()
    except SystemExit as end:
        if end.code == 130:  # so Typer ends after Ctrl-C
            say("stopped; finished vectors, runs and figures are stored, and the same command continues", to=sys.stderr)
        raise
    except MirblabError as error:
        say(f"mirblab: {error}", to=sys.stderr)
        sys.exit(2)
    except OSError as error:
        name = cut_long(str(error.filename or ""), 100)
        told = f"{name} cannot be opened: {error.strerror}; check the path" if name else error.strerror or error
        say(f"mirblab: {told}", to=sys.stderr)
        sys.exit(2)
