"""`fairweight sensitivity` and `compress --policy`: which layer hurts whom, and what it takes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

import fairweight as fw
from fairweight.audits import check_report, checked_policy
from fairweight.base.files import check_file
from fairweight.cli import options as o
from fairweight.cli.lab import MethodOptions
from fairweight.cli.predict import ExampleOptions, prepared_data
from fairweight.cli.screen import bar, plain_console, reader_may_leave, show_audit
from fairweight.errors import InputError

UNITS = o.panel("Units")


@o.takes
def sensitivity(
    context: typer.Context,
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help="A folder that `train` or `compress` wrote, or an .onnx file in float.",
            show_default=False,
        ),
    ],
    method: Annotated[
        str,
        UNITS(
            "What is done to a unit: int8-static, int8-dynamic, weight-bits, or a method of "
            "pruning (`fairweight methods` lists them).",
            "NAME",
            show_default=False,
        ),
    ],
    groups: Annotated[
        str | None,
        UNITS(
            "Group columns and their combinations; by default every column of the data. Classes "
            "where it has none.",
            "a,b,a*b",
        ),
    ] = None,
    unit: Annotated[
        str, UNITS("A layer, or the block that names of layers share.", "layer|block")
    ] = "layer",
    *,
    method_fields: MethodOptions,
    cluster: Annotated[
        str | None, UNITS("The column whose examples belong together (a person).", "COL")
    ] = None,
    task: Annotated[
        str | None, UNITS("Of a model of several attributes: the one that is judged.", "NAME")
    ] = None,
    examples: ExampleOptions,
    options: o.OfAudit,
    policy: Annotated[
        str | None,
        o.OUTPUT("A policy (TOML): its verdict follows the summary and is the exit code.", "FILE"),
    ] = None,
    budget: Annotated[
        str | None, o.OUTPUT("Stop after this time with what is there: 30m, 2h.", "TIME")
    ] = None,
    store: Annotated[
        str | None,
        o.OUTPUT(
            "Keeps every model's predictions, so that nothing is computed twice; by default "
            "DIR-units beside the report.",
            "DIR",
        ),
    ] = None,
    threads: o.Threads = None,
    trust_module: o.TrustModule = None,
    out: Annotated[str, o.OUTPUT("Where the report goes.", "DIR")] = "fairweight-sensitivity",
    overwrite: o.Overwrite = False,
    quiet: o.Quiet = False,
) -> None:
    """Which layer's compression hurts whom: each unit compressed alone, and left out.

    Layers of a model that `train` wrote, on its own test examples:

        fairweight sensitivity models/dense-0 --method int8-static --groups race,race*gender

    Weights at 4 bits in an ONNX file of your own, by block, within half an hour:

        fairweight sensitivity net.onnx --method weight-bits --method-option bits=4 --unit block
        --dataset folders --data DIR --budget 30m

    Units are ranked on one half of the examples, and judged on the other. An
    interrupted run, or one that ended with its budget, goes on when it is repeated.
    Writes what `fairweight audit` writes, with one more table, `sensitivity`.
    """
    o.require_lab(threads)
    from fairweight.cli.study import seconds_of
    from fairweight.report.explanation_sentences import explanation_sentences

    read = [model, *([policy] if policy else [])]
    check_report(out, inputs=read, overwrite=overwrite)
    asked = checked_policy(policy) if policy is not None else None
    if asked is not None:
        options = replace(options, confirmatory=asked.confirmatory())
    limit = None if budget is None else seconds_of(budget, "--budget")
    fields = method_fields.spec_fields()
    examples.check()
    console = plain_console()
    with bar() as progress:
        progress("reading data", 0, 1)
        judged, prepared = examples.read([model])
        apart = None if prepared is None or examples.part == "train" else prepared.train
        made = fw.sensitivity(
            model,
            {"method": method, **fields},
            judged,
            groups=o.split_names(groups, "--groups"),
            calibration=apart,
            unit=unit_level(unit),
            cluster=cluster,
            task=task,
            scaling=examples.scaling(),
            store=store or f"{Path(out)}-units",
            budget=limit,
            options=options,
            command=o.shell_command(context),
            announce=None if quiet else lambda line: console.print(line, soft_wrap=True),
            progress=progress,
        )
        verdict = made.gate(asked) if asked else None
        progress("writing the report", 1, 1)
        made.save(out, verdict=verdict, overwrite=overwrite)
    if not quiet:
        with reader_may_leave():
            for sentence in explanation_sentences(made.result):
                console.print(sentence, soft_wrap=True)
            show_audit(made.result, str(Path(out, "report.html")))
    if verdict is not None:
        from fairweight.cli.audit import leave

        leave(verdict, quiet=quiet)


def unit_level(text: str) -> Any:
    """The kind of unit, as the lab calls it."""
    if text not in ("layer", "block"):
        raise InputError(f"--unit {text} cannot be used; write layer or block.")
    return text


def compress_by_group(
    model: str,
    spec: dict[str, Any],
    policy: str,
    *,
    groups: list[str] | None,
    unit: str,
    most_bytes: int | None,
    dataset: str | None,
    dataset_options: dict[str, Any],
    data: str | None,
    scaling: Any,
    out: str | None,
    overwrite: bool,
) -> NoReturn:
    """Mixed precision by group: choose, judge, write the file and its audit, end with the gate."""
    from fairweight.cli.audit import leave
    from fairweight.precision import Mixed, mixed_precision
    from fairweight.report.unit_sentences import mixed_sentences

    asked = checked_policy(policy)
    source = Path(model)
    stem = source.stem if source.suffix == ".onnx" else source.name
    place = (
        Path(out) if out is not None else source.with_name(f"{stem}-{spec['method']}-mixed.onnx")
    )
    if place.suffix != ".onnx":
        raise InputError(f"Mixed precision is written as ONNX; --out {place} must end in .onnx.")
    report = place.with_name(f"{place.stem}-audit")
    check_file(str(place), inputs=(model, policy), overwrite=overwrite)
    check_report(str(report), inputs=(model, policy), overwrite=overwrite)
    console = plain_console()
    with bar() as progress:
        progress("reading data", 0, 1)
        prepared = prepared_data([model], dataset, dataset_options, data)
        found = mixed_precision(
            model,
            spec,
            asked,
            place,
            validation=prepared.part("validation"),
            judged=prepared.test,
            groups=groups,
            calibration=prepared.train,
            unit=unit_level(unit),
            scaling=scaling,
            most_bytes=most_bytes,
            store=place.with_name(f"{place.stem}-units"),
            progress=progress,
        )
        if isinstance(found, Mixed):
            found.audit.save(report, verdict=found.verdict, overwrite=overwrite)
    if not isinstance(found, Mixed):
        fails = found.exit_code == 1
        n = len(prepared.part("validation"))
        console.print(
            "Even the uncompressed model fails this policy, so no precision meets it."
            if fails
            else f"The {n:,} validation examples are too few: even an unchanged model does not "
            "pass this policy on them. Nothing was written.",
            soft_wrap=True,
        )
        leave(found, quiet=False)
    table = found.audit.explanations["mixed_precision"]
    for sentence in mixed_sentences(table):
        console.print(sentence, soft_wrap=True)
    console.print(f"The search ended because {found.reason}.", soft_wrap=True)
    steps = found.audit.explanations["mixed_precision_steps"]
    if steps["verdict"].iloc[-1] == "pass" and not found.verdict.passed:
        console.print(
            "It passes on the validation examples, on which it was chosen, and not on those that "
            "judge it. Choose by a stricter policy (half of the margin, say), and gate by this "
            "one.",
            soft_wrap=True,
        )
    console.print(f"Written to {place}; report: {report / 'report.html'}", soft_wrap=True)
    leave(found.verdict, quiet=False)
