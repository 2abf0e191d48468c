"""`fairweight study`: populations of runs that survive anything, and what papers claim of them."""

from __future__ import annotations

import functools
import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer
from rich.text import Text

from fairweight.auditing.table_files import plain_records
from fairweight.base.files import atomic_file, check_file
from fairweight.cli import options as o
from fairweight.cli.screen import bar, listing, plain_console, study_bars
from fairweight.errors import InputError
from fairweight.report.numbers import number
from fairweight.runs.runner import cores
from fairweight.runs.runner import run as run_stages
from fairweight.runs.store import Store

if TYPE_CHECKING:
    from rich.console import Console

    from fairweight.runs.listing import Listed
    from fairweight.runs.plan import StudyPlan
    from fairweight.runs.runner import News

ALONE = 30.0  # seconds of work below which loading torch in other processes takes longer
STORE = "fairweight-runs"
FORMATS = (".md", ".csv", ".json")  # of judged claims
UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
PACKED = ("predict", "similarity")  # kinds of stages whose outputs are packed

study = typer.Typer(
    name="study",
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="Populations and studies: dense models, their copies, predictions and audits, each made "
    "once and kept.\n\nTry one on the bundled digits: "
    "`fairweight study run resource-efficient --preset smoke`.",
)

Which: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="NAME|FILE",
        help="A study that comes with fairweight (`fairweight study list`), or your own .toml.",
        show_default=False,
    ),
]
Preset: TypeAlias = Annotated[
    str | None,
    o.OPTION("Which size of a study of ours; by default laptop.", "smoke|quick|laptop|paper"),
]
StoreFolder: TypeAlias = Annotated[str, o.OPTION("Where finished stages are kept.", "DIR")]
DataFolder: TypeAlias = Annotated[
    str | None,
    o.OPTION("The folder with data sets; by default the variable FAIRWEIGHT_DATA.", "DIR"),
]


@study.command("list")
def list_studies() -> None:
    """List the studies that come with fairweight, and their presets.

    All of them, then one as a file to change:

        fairweight study list

        fairweight study new --from resource-efficient > mine.toml
    """
    from fairweight.studies import library

    table = listing("study", "presets", "what it is")
    for name in library.names():
        held = library.presets(name)
        title = library.study(name, "laptop" if "laptop" in held else held[0]).title
        table.add_row(name, ", ".join(held), title)
    plain_console().print(table)


@study.command("new")
def new(
    origin: Annotated[
        str, o.OPTION("The study to start from.", "NAME", flag="--from")
    ] = "mnist-lenet",
    preset: Preset = None,
) -> None:
    """Print a commented study to start from.

    Write it to a file, change it, look at its cost, run it:

        fairweight study new > mine.toml

        fairweight study run mine.toml --data DIR --dry-run

        fairweight study run mine.toml --data DIR
    """
    from fairweight.studies import library

    typer.echo(library.text(origin, preset or library.DEFAULT), nl=False)


@study.command("run")
def run(
    which: Which,
    preset: Preset = None,
    data: DataFolder = None,
    store: StoreFolder = STORE,
    experiment: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Only this experiment of the study, with the models that it needs; may be "
            "repeated.",
        ),
    ] = None,
    weights: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE",
            help="A file of ImageNet weights that the study names by its SHA-256; by default that "
            "of the installed package. May be repeated.",
        ),
    ] = None,
    workers: Annotated[
        int | None,
        o.OPTION(
            "Processes of one thread each, 0 for none; by default one per core, and none for "
            "half a minute of work."
        ),
    ] = None,
    ray: Annotated[
        str | None,
        o.OPTION("Run on a Ray cluster; its nodes must share the store's folder.", "local|ADDRESS"),
    ] = None,
    gpus: Annotated[float, o.OPTION("GPUs per stage, on Ray.")] = 0.0,
    budget: Annotated[
        str | None, o.OPTION("Stop cleanly after this time: 90s, 60m, 8h.", "60m")
    ] = None,
    packed: Annotated[
        str | None,
        typer.Option(
            metavar="DIR",
            help="Also keep what each finished member predicted, in files under 1 MB; what they "
            "hold is not made again if the store is lost.",
        ),
    ] = None,
    dry_run: Annotated[
        bool, o.OPTION("Only say what is there and what the rest will take.", flag="--dry-run")
    ] = False,
    trust_module: o.TrustModule = None,
    overwrite: o.Overwrite = False,
) -> None:
    """Do what a study asks for and is not there yet; interrupted, it goes on where it stopped.

    On the bundled digits, in seconds:

        fairweight study run resource-efficient --preset smoke

    What would it take, and then for an hour at most:

        fairweight study run resource-efficient --data DIR --dry-run

        fairweight study run resource-efficient --data DIR --budget 60m

    It goes member by member: dense model 0 and all its copies, then dense model 1.
    Reports and tables are in STORE/results/NAME when it ends; models, predictions and
    audits are shared by all studies of a store.
    """
    o.require_lab()
    from fairweight.runs import listing as lists
    from fairweight.runs import packed as packs
    from fairweight.runs.cost import ASSUMED, costs
    from fairweight.runs.plan import with_work
    from fairweight.runs.stage import Cost
    from fairweight.studies import library

    limit = None if budget is None else seconds_of(budget, "--budget")
    if data is not None and not Path(data).is_dir():
        raise InputError(f"The data folder '{data}' does not exist; give one that does.")
    given = data if data is not None else os.environ.get("FAIRWEIGHT_DATA")
    folder = None if given is None else Path(given)
    console = plain_console()
    plan, place = _planned(which, preset, store, data, console)
    chosen = plan.stages_of(experiment) if experiment else plan.stages
    models = [model for model in plan.models if model.made_by in chosen]
    if not dry_run:
        needed = [plan.experiments[name] for name in {model.experiment for model in models}]
        library.require_data(needed, data)
        library.require_weights(needed, weights or ())
    place.register(plan.study.name, list(plan.stages))
    if packed is not None and not dry_run:
        with bar() as progress:
            restored = packs.restore(
                plan, place, Path(packed), folder, only=chosen, progress=progress
            )
        if restored:
            console.print(f"Predictions of {restored} models were read from '{packed}'.")
    if not dry_run:
        packs.check_same_models(plan, place, chosen)
    processes = workers or cores()
    done = place.done() & chosen.keys()
    ahead = chosen.keys() - done
    if packed is not None:  # models of which nothing else is asked are not made
        ahead = {stage.key for stage in packs.needed(chosen.values(), done)}
    with bar() as progress:
        each = costs(
            plan, folder, cache=place.root / "costs", measure=not dry_run, progress=progress
        )
    total = sum((each[key] for key in chosen if key in ahead), Cost(0.0, 0.0))
    console.print(
        f"{plan.study.name}: {len(models)} models, {len(chosen)} stages, "
        f"{len(done)} of them done; about {time_text(total.seconds)} of one core are left "
        f"({time_text(total.seconds / max(processes, 1))} with {processes}), "
        f"{total.bytes / 1e6:,.0f} MB."
    )
    seconds = {key: cost.seconds for key, cost in each.items()}
    lists.save(plan.study, with_work(plan.stages, seconds), place.root)
    if dry_run:
        hours = total.gpu_seconds / 3600
        about = f"{hours:,.0f}" if hours >= 10 else f"{hours:.2g}"
        console.print(f"On GPUs about {about} GPU hours (assumed: {ASSUMED}).")
        return
    if workers is None and ray is None and total.seconds < ALONE:
        workers = 0
    with study_bars(plan.study.name) as shown:

        def told_of(news: News) -> None:
            shown(news)
            if packed is not None and news.event == "done" and news.stage.kind in PACKED:
                packs.pack(plan, place, Path(packed))

        stages = with_work(chosen, seconds)
        outcome = run_stages(
            stages if packed is None else packs.needed(stages, place.done()),
            place,
            workers=workers,
            ray=ray,
            gpus=gpus,
            data=folder,
            weights=weights or (),
            budget=limit,
            progress=told_of,
        )
    if packed is not None:  # what was there before this run too
        packs.pack(plan, place, Path(packed))
    _publish(plan, place, console, overwrite=overwrite)
    told = f"{len(outcome.done)} stages made, {len(outcome.cached)} were there"
    told += f", {len(outcome.failed)} failed" if outcome.failed else ""
    told += f", {len(outcome.left)} left" if outcome.left else ""
    console.print(f"{told}.")
    if outcome.failed:
        console.print(
            "See why: fairweight study status NAME; try them again: fairweight study retry NAME"
        )
    if outcome.stopped:
        why = "the budget was used up" if outcome.stopped == "budget" else "interrupted"
        console.print(f"Stopped: {why}. The same command continues.")
    if not outcome.complete:
        raise typer.Exit(130 if outcome.stopped == "interrupt" else 1)


@study.command("status")
def status(
    which: Which,
    preset: Preset = None,
    data: DataFolder = None,
    store: StoreFolder = STORE,
    trust_module: o.TrustModule = None,
) -> None:
    """Say how far a study is: what is done, running, failed and left, and why stages failed.

    For example:

        fairweight study status resource-efficient --preset smoke
    """
    from fairweight.runs import listing as lists

    stages, place = _listed(which, preset, store, data)
    found = lists.status(stages, place)
    columns = ("done", "running", "failed", "left")
    table = listing("stages", *columns, numbers=columns)
    for kind in dict.fromkeys(stage.kind for stage in stages.values()):
        table.add_row(kind, *(str(getattr(found, column)[kind]) for column in columns))
    table.add_row("all", *(str(getattr(found, column).total()) for column in columns))
    console = plain_console()
    console.print(table)
    if found.seconds_left:
        console.print(
            f"About {time_text(found.seconds_left)} of one core are left, counting running "
            "stages in full."
        )
    failed = place.failed()
    for key in sorted(stages.keys() & failed.keys()):
        last = str(failed[key]["traceback"]).strip().splitlines()[-1]
        console.print(f"{stages[key].label}: {last} ({key[:12]})")


@study.command("retry")
def retry(
    which: Which,
    preset: Preset = None,
    data: DataFolder = None,
    store: StoreFolder = STORE,
    trust_module: o.TrustModule = None,
) -> None:
    """Forget why stages failed, so that the next `study run` tries them again.

    For example:

        fairweight study retry mine.toml
    """
    stages, place = _listed(which, preset, store, data)
    failed = [key for key in place.failed() if key in stages]
    place.forget_failures(failed)
    typer.echo(f"{len(failed)} failed stages will be tried again by: fairweight study run {which}")


@study.command("report")
def report(
    which: Which,
    preset: Preset = None,
    data: DataFolder = None,
    store: StoreFolder = STORE,
    trust_module: o.TrustModule = None,
    overwrite: o.Overwrite = False,
) -> None:
    """Write the tables and reports of what is finished, also while a study runs.

    For example:

        fairweight study report resource-efficient --preset smoke
    """
    console = plain_console()
    plan, place = _planned(which, preset, store, data, console)
    _publish(plan, place, console, overwrite=overwrite)


@study.command("export")
def export(
    out: Annotated[
        str, typer.Argument(metavar="FILE", help="A .parquet or .csv file.")
    ] = "runs.parquet",
    store: StoreFolder = STORE,
    overwrite: o.Overwrite = False,
) -> None:
    """Write one row per finished stage: what it was, how long it took, what it weighs.

    For example:

        fairweight study export runs.csv
    """
    from fairweight.runs import catalogue

    check_file(out, inputs=[store], overwrite=overwrite, option="FILE")
    catalogue.export(Store(store), out)
    typer.echo(f"Written to {out}")


@study.command("gc")
def gc(
    store: StoreFolder = STORE,
    delete: Annotated[
        bool, o.OPTION("Really remove it; without this it is only shown.", flag="--delete")
    ] = False,
) -> None:
    """Show what no study of the store refers to and half-done work, and remove it with --delete.

    First look, then remove:

        fairweight study gc

        fairweight study gc --delete
    """
    place = Store(store)
    found, leftovers = place.garbage(), place.leftovers()
    for name, size in (*found, *leftovers):
        typer.echo(f"{name}  {size / 1e6:,.1f} MB")
    if not found and not leftovers:
        typer.echo("Every stage belongs to a study, and no half-done work is left.")
        return
    total = sum(size for _, size in (*found, *leftovers))
    typer.echo(
        f"{len(found)} stages that no study refers to, {len(leftovers)} folders of half-done or "
        f"damaged work, {total / 1e6:,.1f} MB"
    )
    if delete:
        place.remove([key for key, _ in found])
        place.clear([folder for folder, _ in leftovers])
        typer.echo("Removed.")
    else:
        typer.echo("Nothing was removed; `fairweight study gc --delete` does it.")


def _planned(
    which: str, preset: str | None, store: str, data: str | None, console: Console
) -> tuple[StudyPlan, Store]:
    """The plan of a study, without experiments whose data are not there, and its store."""
    from fairweight.runs.plan import plan
    from fairweight.studies import library

    present, absent = library.available(library.study(which, preset), data)
    for name in absent:
        console.print(f"The experiment '{name}' is left out: its data are not there (--data).")
    return plan(present), Store(store)


def _listed(which: str, preset: str | None, store: str, data: str | None) -> tuple[Listed, Store]:
    """The stages of a study as its last run listed them, and its store."""
    from fairweight.runs.listing import listed
    from fairweight.studies import library

    place = Store(store)
    present, _ = library.available(library.study(which, preset), data)
    return listed(present, place.root), place


def _publish(plan: StudyPlan, store: Store, console: Console, *, overwrite: bool) -> None:
    """Write what is finished into the store's results, and say where."""
    from fairweight.studies.publication import publish

    out = store.root / "results" / plan.study.name
    tell = functools.partial(console.print, soft_wrap=True)
    for folder in publish(plan, store, out, overwrite=overwrite, tell=tell):
        report = folder / "audit" / "report.html"
        tell(f"{folder.name}: {report if report.is_file() else folder}")


@study.command("claims")
def claims(
    which: Which,
    preset: Preset = None,
    results: Annotated[
        str | None, o.OPTION(f"What the study published; by default {STORE}/results/NAME.", "DIR")
    ] = None,
    out: Annotated[str | None, o.OPTION("A .md, .csv or .json file.", "FILE")] = None,
    overwrite: o.Overwrite = False,
    pilot: Annotated[
        bool,
        o.OPTION("How wide intervals will be, computed from a pilot's results.", flag="--pilot"),
    ] = False,
) -> None:
    """Judge the claims of a study's paper from its results.

    Each claim names a quantity, a direction and the smallest effect that matters,
    and says whether it was written before the run. The interval that the study
    stored decides: reproduces, weaker than claimed, does not reproduce, cannot
    tell, or regime not reached:

        fairweight study claims characterising-bias

        fairweight study claims simon-says --results DIR --out claims.md

    With --pilot the results are those of a first member: it says of which claims
    the interval will be narrow enough.

    A study of your own, mine.toml, has its claims in mine.claims.toml.
    """
    from fairweight.studies import claims_page, library
    from fairweight.studies.claims import frame, judged
    from fairweight.studies.pilots import piloted

    if out is not None and Path(out).suffix not in FORMATS:
        raise InputError(f"--out '{out}' must end in {', '.join(FORMATS)}.")
    asked = library.claims(which)
    folder = Path(results or f"{STORE}/results/{library.study(which, preset).name}")
    if pilot:
        if out is not None:
            raise InputError("--pilot prints a table; leave --out out.")
        widths = piloted(asked, folder)
        table = listing("claim", "line", "half-width to expect", "at most", "")
        for expected in widths:
            width = (
                number(expected.half_width) if expected.half_width == expected.half_width else ""
            )
            told = expected.reason or ("narrow enough" if expected.sharp else "too wide")
            table.add_row(expected.claim, expected.line, width, number(expected.needed), told)
        console = plain_console()
        console.print(table)
        names = {expected.claim for expected in widths}
        sharp = {name for name in names if all(w.sharp for w in widths if w.claim == name)}
        console.print(
            f"\nWith {asked.members} members on a side {len(sharp)} of {len(names)} claims have "
            "intervals whose half-width is below half of the effect that matters, in every line.",
            soft_wrap=True,
        )
        return
    if out is not None:
        own = Path(which).with_suffix(".claims.toml") if which.endswith(".toml") else None
        given = [which, str(folder), None if own is None else str(own)]
        check_file(out, inputs=given, overwrite=overwrite)
    found = judged(asked, folder)
    if out is None:
        table = listing("claim", "it would take", "this run", "verdict")
        for one in found:
            for place, part in enumerate(one.parts):
                name, takes = one.claim.id if place == 0 else "  and", claims_page.needed(part.part)
                if len(part.lines) > 1 or part.lines[0].name:
                    table.add_row(name, takes, "", Text(part.verdict, style="bold"))
                for line in part.lines:
                    more = "; ".join(filter(None, (line.estimate.reason, *line.notes)))
                    verdict = line.verdict + (f": {more}" if more else "")
                    of = (f"  {line.name}", "") if line.name else (name, takes)
                    table.add_row(of[0], of[1], claims_page.of_line(line), verdict)
        console = plain_console()
        console.print(table)
        console.print()
        console.print(claims_page.summary(found))
        return
    with atomic_file(out) as file:
        if out.endswith(".md"):
            file.write(claims_page.markdown(asked, found))
        elif out.endswith(".csv"):
            frame(found).to_csv(file, index=False, lineterminator="\n")
        else:
            document = {
                "schema": 1,
                "paper": asked.paper,
                "title": asked.title,
                "written": asked.written.isoformat(),
                "summary": claims_page.summary(found),
                "lines": plain_records(frame(found)),
            }
            json.dump(document, file, ensure_ascii=False, allow_nan=False, indent=2)
    typer.echo(f"Written to {out}")


def seconds_of(text: str, option: str) -> float:
    """`90s`, `60m`, `1.5h` or `2d` in seconds.

    >>> seconds_of("60m", "--budget")
    3600.0
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smhd])", text.strip())
    if match is None or float(match[1]) == 0:
        raise InputError(f"{option} {text!r} is no time; write 90s, 60m, 8h or 2d.")
    return float(match[1]) * UNITS[match[2]]


def time_text(seconds: float) -> str:
    """Seconds as a rough time.

    >>> time_text(4.2), time_text(400), time_text(9000), time_text(2e6)
    ('4 s', '7 min', '2.5 h', '23 days')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    if seconds < 2 * 86400:
        return f"{seconds / 3600:.1f} h"
    return f"{seconds / 86400:.0f} days"
