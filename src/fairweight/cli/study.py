"""`fairweight study`: populations of runs that survive anything."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from fairweight.cli.options import Overwrite, TrustModule
from fairweight.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console

    from fairweight.runs.plan import Listed, Plan
    from fairweight.runs.runner import News
    from fairweight.runs.stage import Stage
    from fairweight.runs.store import Store
    from fairweight.specs.claims import Claims
    from fairweight.studies.claims import Judged
    from fairweight.studies.pilots import Pilot

ALONE = 30.0  # seconds of work below which loading torch in other processes takes longer
STORE = "fairweight-runs"
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
    typer.Option(
        metavar="smoke|quick|laptop|paper",
        help="Which size of a study of ours; by default laptop.",
    ),
]
StoreFolder: TypeAlias = Annotated[
    str, typer.Option("--store", metavar="DIR", help="Where finished stages are kept.")
]
DataFolder: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--data",
        metavar="DIR",
        help="The folder with data sets; by default the variable FAIRWEIGHT_DATA.",
    ),
]


@study.command("list")
def list_studies() -> None:
    """List the studies that come with fairweight, and their presets.

    All of them, then one as a file to change:

        fairweight study list

        fairweight study new --from resource-efficient > mine.toml
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from fairweight.studies.library import names, presets
    from fairweight.studies.library import study as read

    table = Table(box=None, padding=(0, 2, 0, 0))
    for column in ("study", "presets", "what it is"):
        table.add_column(column, style="bold" if column == "study" else None)
    for name in names():
        held = presets(name)
        title = read(name, "laptop" if "laptop" in held else held[0]).title
        table.add_row(Text(name), ", ".join(held), Text(title))
    Console().print(table)


@study.command("new")
def new(
    origin: Annotated[
        str,
        typer.Option("--from", metavar="NAME", help="The study to start from."),
    ] = "mnist-lenet",
    preset: Preset = None,
) -> None:
    """Print a commented study to start from.

    Write it to a file, change it, look at its cost, run it:

        fairweight study new > mine.toml

        fairweight study run mine.toml --data DIR --dry-run

        fairweight study run mine.toml --data DIR
    """
    from fairweight.studies.library import DEFAULT, text

    typer.echo(text(origin, preset or DEFAULT), nl=False)


@study.command("run")
def run(
    which: Which,
    preset: Preset = None,
    data: DataFolder = None,
    store: StoreFolder = STORE,
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
        typer.Option(
            help="Processes of one thread each, 0 for none; by default one per core, and none for "
            "half a minute of work."
        ),
    ] = None,
    ray: Annotated[
        str | None,
        typer.Option(
            metavar="local|ADDRESS",
            help="Run on a Ray cluster; its nodes must share the store's folder.",
        ),
    ] = None,
    gpus: Annotated[float, typer.Option(help="GPUs per stage, on Ray.")] = 0.0,
    budget: Annotated[
        str | None,
        typer.Option(metavar="60m", help="Stop cleanly after this time: 90s, 60m, 8h."),
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
        bool, typer.Option("--dry-run", help="Only say what is there and what the rest will take.")
    ] = False,
    trust_module: TrustModule = None,
    overwrite: Overwrite = False,
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
    from rich.console import Console

    from fairweight.cli.options import require_lab
    from fairweight.cli.progress import bar, study_bars

    require_lab()
    from fairweight.runs.packed import needed, pack, restore
    from fairweight.runs.plan import save
    from fairweight.runs.runner import cores
    from fairweight.runs.runner import run as run_stages
    from fairweight.studies.library import require_data, require_weights

    limit = None if budget is None else seconds_of(budget, "--budget")
    folder = _data(data)
    console = Console()
    plan, room = _planned(which, preset, store, data, console)
    if not dry_run:
        require_data(plan.experiments.values(), data)
        require_weights(plan.experiments.values(), weights or ())
    room.register(plan.study.name, list(plan.stages))
    if packed is not None and not dry_run:
        with bar() as move:
            restored = restore(plan, room, Path(packed), folder, progress=move)
        if restored:
            told = f"Predictions of {restored} models were read from '{packed}'."
            console.print(told, markup=False, highlight=False)
    stages, seconds = _announce(plan, room, data, workers or cores(), console, dry_run=dry_run)
    save(plan.study, stages, room.root)
    if dry_run:
        return
    if workers is None and ray is None and seconds < ALONE:
        workers = 0
    with study_bars(plan.study.name) as progress:

        def told_of(news: News) -> None:
            progress(news)
            if packed is not None and news.event == "done" and news.stage.kind in PACKED:
                pack(plan, room, Path(packed))

        outcome = run_stages(
            stages if packed is None else needed(stages, room.done()),
            room,
            workers=workers,
            ray=ray,
            gpus=gpus,
            data=folder,
            weights=weights or (),
            budget=limit,
            progress=told_of,
        )
    if packed is not None:  # what was there before this run too
        pack(plan, room, Path(packed))
    _publish(plan, room, console, overwrite=overwrite)
    told = f"{len(outcome.done)} stages made, {len(outcome.cached)} were there"
    told += f", {len(outcome.failed)} failed" if outcome.failed else ""
    told += f", {len(outcome.left)} left" if outcome.left else ""
    console.print(f"{told}.", highlight=False)
    if outcome.failed:
        console.print(
            "See why: fairweight study status NAME; try them again: fairweight study retry NAME",
            markup=False,
            highlight=False,
        )
    if outcome.stopped:
        why = "the budget was used up" if outcome.stopped == "budget" else "interrupted"
        console.print(f"Stopped: {why}. The same command goes on.", highlight=False)
    if not outcome.complete:
        raise typer.Exit(130 if outcome.stopped == "interrupt" else 1)


@study.command("status")
def status(
    which: Which,
    preset: Preset = None,
    data: DataFolder = None,
    store: StoreFolder = STORE,
    trust_module: TrustModule = None,
) -> None:
    """Say how far a study is: what is done, running, failed and left, and why stages failed.

    For example:

        fairweight study status resource-efficient --preset smoke
    """
    from rich.console import Console
    from rich.table import Table

    from fairweight.runs.catalogue import status as look

    console = Console()
    stages, room = _listed(which, preset, store, data)
    found = look(stages, room)
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("stages", style="bold")
    columns = ("done", "running", "failed", "left")
    for column in columns:
        table.add_column(column, justify="right")
    for kind in dict.fromkeys(stage.kind for stage in stages.values()):
        table.add_row(kind, *(str(getattr(found, column)[kind]) for column in columns))
    table.add_row("all", *(str(getattr(found, column).total()) for column in columns))
    console.print(table)
    if found.seconds_left:
        console.print(
            f"About {time_text(found.seconds_left)} of one core are left, counting running "
            "stages in full.",
            highlight=False,
        )
    failed = room.failed()
    for key in sorted(stages.keys() & failed.keys()):
        record = failed[key]
        last = str(record["traceback"]).strip().splitlines()[-1]
        console.print(f"{stages[key].label}: {last} ({key[:12]})", markup=False, highlight=False)


@study.command("retry")
def retry(
    which: Which,
    preset: Preset = None,
    data: DataFolder = None,
    store: StoreFolder = STORE,
    trust_module: TrustModule = None,
) -> None:
    """Forget why stages failed, so that the next `study run` tries them again.

    For example:

        fairweight study retry mine.toml
    """
    stages, room = _listed(which, preset, store, data)
    failed = [key for key in room.failed() if key in stages]
    room.forget_failures(failed)
    typer.echo(f"{len(failed)} failed stages will be tried again by: fairweight study run {which}")


@study.command("report")
def report(
    which: Which,
    preset: Preset = None,
    data: DataFolder = None,
    store: StoreFolder = STORE,
    trust_module: TrustModule = None,
    overwrite: Overwrite = False,
) -> None:
    """Write the tables and reports of what is finished, also while a study runs.

    For example:

        fairweight study report resource-efficient --preset smoke
    """
    from rich.console import Console

    console = Console()
    plan, room = _planned(which, preset, store, data, console)
    _publish(plan, room, console, overwrite=overwrite)


@study.command("export")
def export(
    out: Annotated[
        str, typer.Argument(metavar="FILE", help="A .parquet or .csv file.")
    ] = "runs.parquet",
    store: StoreFolder = STORE,
    overwrite: Overwrite = False,
) -> None:
    """Write one row per finished stage: what it was, how long it took, what it weighs.

    For example:

        fairweight study export runs.csv
    """
    from fairweight.base.files import check_file
    from fairweight.runs.catalogue import export as write

    check_file(out, inputs=[store], overwrite=overwrite, option="FILE")
    write(_store(store), out)
    typer.echo(f"Written to {out}")


@study.command("gc")
def gc(
    store: StoreFolder = STORE,
    delete: Annotated[
        bool, typer.Option("--delete", help="Really remove it; without this it is only shown.")
    ] = False,
) -> None:
    """Show what no study of the store refers to and half-done work, and remove it with --delete.

    First look, then remove:

        fairweight study gc

        fairweight study gc --delete
    """
    room = _store(store)
    found, leftovers = room.garbage(), room.leftovers()
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
        room.remove([key for key, _ in found])
        room.clear([folder for folder, _ in leftovers])
        typer.echo("Removed.")
    else:
        typer.echo("Nothing was removed; `fairweight study gc --delete` does it.")


def _planned(
    which: str, preset: str | None, store: str, data: str | None, console: Console
) -> tuple[Plan, Store]:
    from fairweight.runs.plan import plan
    from fairweight.studies.library import available
    from fairweight.studies.library import study as read

    kept, absent = available(read(which, preset), data)
    for name in absent:
        told = f"The experiment '{name}' is left out: its data are not there (--data)."
        console.print(told, markup=False, highlight=False)
    return plan(kept), _store(store)


def _listed(which: str, preset: str | None, store: str, data: str | None) -> tuple[Listed, Store]:
    from fairweight.runs.plan import listed
    from fairweight.studies.library import available
    from fairweight.studies.library import study as read

    room = _store(store)
    kept, _ = available(read(which, preset), data)
    return listed(kept, room.root), room


def _store(folder: str) -> Store:
    from fairweight.runs.store import Store

    return Store(folder)


def _data(folder: str | None) -> Path | None:
    import os

    given = folder if folder is not None else os.environ.get("FAIRWEIGHT_DATA")
    if folder is not None and not Path(folder).is_dir():
        raise InputError(f"The data folder '{folder}' does not exist; give one that does.")
    return None if given is None else Path(given)


def _announce(
    plan: Plan, store: Store, data: str | None, workers: int, console: Console, *, dry_run: bool
) -> tuple[list[Stage], float]:
    """Say what is there and what the rest will take; stages with their times, and the sum."""
    from fairweight.cli.progress import bar
    from fairweight.runs.cost import ASSUMED, Cost, costs
    from fairweight.runs.plan import with_work

    done = store.done() & plan.stages.keys()
    left = [key for key in plan.stages if key not in done]
    with bar() as progress:
        folder = store.root / "costs"
        each = costs(plan, _data(data), cache=folder, measure=not dry_run, progress=progress)
    total = sum((each[key] for key in left), Cost(0.0, 0.0))
    console.print(
        f"{plan.study.name}: {len(plan.models)} models, {len(plan.stages)} stages, "
        f"{len(done)} of them done; about {time_text(total.seconds)} of one core are left "
        f"({time_text(total.seconds / max(workers, 1))} with {workers}), "
        f"{total.bytes / 1e6:,.0f} MB.",
        markup=False,
        highlight=False,
    )
    if dry_run:
        hours = total.gpu_seconds / 3600
        about = f"{hours:,.0f}" if hours >= 10 else f"{hours:.2g}"
        told = f"On GPUs about {about} GPU hours (assumed: {ASSUMED})."
        console.print(told, markup=False, highlight=False)
    return with_work(plan, {key: cost.seconds for key, cost in each.items()}), total.seconds


def _publish(plan: Plan, store: Store, console: Console, *, overwrite: bool) -> None:
    from fairweight.studies.publication import publish

    def tell(sentence: str) -> None:
        console.print(sentence, markup=False, highlight=False, soft_wrap=True)

    out = store.root / "results" / plan.study.name
    for folder in publish(plan, store, out, overwrite=overwrite, tell=tell):
        report = folder / "audit" / "report.html"
        shown = report if report.is_file() else folder
        console.print(f"{folder.name}: {shown}", markup=False, highlight=False, soft_wrap=True)


# `fairweight study claims`: what a paper claims, judged from the results of its study.

FORMATS = (".md", ".csv", ".json")


def claims(
    which: Which,
    preset: Preset = None,
    results: Annotated[
        str | None,
        typer.Option(
            metavar="DIR",
            help=f"What the study published; by default {STORE}/results/NAME.",
        ),
    ] = None,
    out: Annotated[
        str | None, typer.Option(metavar="FILE", help="A .md, .csv or .json file.")
    ] = None,
    overwrite: Overwrite = False,
    pilot: Annotated[
        bool,
        typer.Option(
            "--pilot", help="How wide intervals will be, reckoned from a pilot's results."
        ),
    ] = False,
) -> None:
    """Judge the claims of a study's paper from its results.

    Each claim names a quantity, a direction and the smallest effect that matters,
    and says whether it was written before the run. The interval that the study
    stored decides: it reproduces, is weaker than claimed, does not reproduce,
    cannot be told, or its regime was not reached:

        fairweight study claims characterising-bias

        fairweight study claims simon-says --results DIR --out claims.md

    With --pilot the results are those of a first member: it says of which claims
    the interval will be narrow enough.

    A study of your own, mine.toml, has its claims in mine.claims.toml.
    """
    from fairweight.base.files import check_file
    from fairweight.studies.claims import judged
    from fairweight.studies.library import claims as written
    from fairweight.studies.library import study as read
    from fairweight.studies.pilots import piloted

    if out is not None and Path(out).suffix not in FORMATS:
        raise InputError(f"--out '{out}' must end in {', '.join(FORMATS)}.")
    asked = written(which)
    folder = Path(results or f"{STORE}/results/{read(which, preset).name}")
    if pilot:
        if out is not None:
            raise InputError("--pilot prints a table; leave --out out.")
        _show_pilot(piloted(asked, folder), asked.members)
        return
    if out is not None:
        own = Path(which).with_suffix(".claims.toml") if which.endswith(".toml") else None
        given = [which, str(folder), None if own is None else str(own)]
        check_file(out, inputs=given, overwrite=overwrite)
    found = judged(asked, folder)
    if out is None:
        _show(found)
        return
    _write(asked, found, Path(out))
    typer.echo(f"Written to {out}")


def _write(asked: Claims, found: list[Judged], path: Path) -> None:
    import json

    from fairweight.auditing.table_files import plain_records
    from fairweight.base.files import atomic_file
    from fairweight.studies.claims import frame
    from fairweight.studies.claims_page import markdown, summary

    with atomic_file(path) as file:
        if path.suffix == ".md":
            file.write(markdown(asked, found))
        elif path.suffix == ".csv":
            frame(found).to_csv(file, index=False, lineterminator="\n")
        else:
            document = {
                "schema": 1,
                "paper": asked.paper,
                "title": asked.title,
                "written": asked.written.isoformat(),
                "summary": summary(found),
                "lines": plain_records(frame(found)),
            }
            json.dump(document, file, ensure_ascii=False, allow_nan=False, indent=2)


def _show(found: list[Judged]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from fairweight.studies.claims_page import needed, of_line, summary

    table = Table(box=None, padding=(0, 2, 0, 0))
    for column in ("claim", "it would take", "this run", "verdict"):
        table.add_column(column, style="bold" if column == "claim" else None)
    for one in found:
        for number, part in enumerate(one.parts):
            name, takes = one.claim.id if number == 0 else "  and", Text(needed(part.part))
            if len(part.lines) > 1 or part.lines[0].name:
                table.add_row(Text(name), takes, "", Text(part.verdict, style="bold"))
            for line in part.lines:
                more = "; ".join(filter(None, (line.estimate.reason, *line.notes)))
                verdict = Text(line.verdict + (f": {more}" if more else ""))
                own = (f"  {line.name}", Text("")) if line.name else (name, takes)
                table.add_row(Text(own[0]), own[1], Text(of_line(line)), verdict)
    console = Console(highlight=False)
    console.print(table)
    console.print()
    console.print(Text(summary(found)))


def _show_pilot(found: list[Pilot], members: int) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from fairweight.report.numbers import number

    table = Table(box=None, padding=(0, 2, 0, 0))
    for column in ("claim", "line", "half-width to expect", "at most", ""):
        table.add_column(column, style="bold" if column == "claim" else None)
    for one in found:
        width = number(one.half_width) if one.half_width == one.half_width else ""
        told = one.reason or ("narrow enough" if one.sharp else "too wide")
        table.add_row(one.claim, Text(one.line), width, number(one.needed), Text(told))
    console = Console(highlight=False)
    console.print(table)
    names = {one.claim for one in found}
    sharp = {name for name in names if all(one.sharp for one in found if one.claim == name)}
    console.print(
        f"\nWith {members} members on a side {len(sharp)} of {len(names)} claims have intervals "
        "whose half-width is below half of the effect that matters, in every line.",
        soft_wrap=True,
    )


# Times as people write and read them.

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def seconds_of(text: str, option: str) -> float:
    """`90s`, `60m`, `1.5h` or `2d` in seconds.

    >>> seconds_of("60m", "--budget")
    3600.0
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smhd])", text.strip())
    if match is None or float(match[1]) == 0:
        raise InputError(f"{option} {text!r} is no time; write 90s, 60m, 8h or 2d.")
    return float(match[1]) * _UNITS[match[2]]


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
