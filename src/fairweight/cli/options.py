"""Options that several commands share: which columns of which tables are what."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, TypeVar

import typer

from fairweight.base.trust import trusting
from fairweight.errors import InputError

if TYPE_CHECKING:
    from fairweight.auditing.prediction_matrix import Answers
    from fairweight.specs.training import Distillation

TABLES, COLUMNS, STATISTICS, OUTPUT = "Tables", "Columns", "Statistics", "Output"

Files: TypeAlias = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE...",
        help="Predictions: one table, or one file per model (`NAME=FILE`; the first is the "
        "baseline, a NAME given again is another seed). Parquet, CSV, Arrow, JSON lines, globs, "
        "`file.duckdb::SELECT ...`.",
        show_default=False,
    ),
]
Baseline: TypeAlias = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="The dense model's variant.", rich_help_panel=TABLES),
]
Examples: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="FILE", help="Groups and labels, a row per example.", rich_help_panel=TABLES
    ),
]
Train: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="Training labels and groups (or their counts): the sign of bias amplification.",
        rich_help_panel=TABLES,
    ),
]
Variants: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="One row per variant and seed; `parent` (dense:3) says what it was derived from.",
        rich_help_panel=TABLES,
    ),
]
Missing: TypeAlias = Annotated[
    str,
    typer.Option(
        metavar="error|drop",
        help="What to do about examples that some variant lacks.",
        rich_help_panel=TABLES,
    ),
]
Id: TypeAlias = Annotated[
    str,
    typer.Option("--id", metavar="COL", help="Identity of the example.", rich_help_panel=COLUMNS),
]
Label: TypeAlias = Annotated[
    str, typer.Option(metavar="COL", help="True class.", rich_help_panel=COLUMNS)
]
Predictions: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--prediction",
        metavar="NAME=COL",
        help="In a wide table, the column with a variant's predictions; repeat it for every "
        "variant, and for every seed of a variant.",
        rich_help_panel=COLUMNS,
    ),
]
Scores: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--score",
        metavar="NAME=COL",
        help="The same for scores: probability of the positive class (two classes) or of the "
        "predicted one (more classes).",
        rich_help_panel=COLUMNS,
    ),
]
Groups: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="a,b,a*b",
        help="Group columns and intersections; by default every column that looks like one. "
        "A name with a comma or a star is quoted: '\"age, years\",sex'.",
        rich_help_panel=COLUMNS,
    ),
]
Task: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="COL", help="Which of several labels a row speaks of.", rich_help_panel=COLUMNS
    ),
]
Cluster: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="COL",
        help="Examples that belong together (one person, one writer): resampled whole.",
        rich_help_panel=COLUMNS,
    ),
]
Weight: TypeAlias = Annotated[
    str | None, typer.Option(metavar="COL", help="Sampling weight.", rich_help_panel=COLUMNS)
]
Count: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="COL",
        help="How many examples a row stands for (`GROUP BY ..., count(*)`); by default one.",
        rich_help_panel=COLUMNS,
    ),
]
Force: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--force",
        help="Take labels and predictions that do not look like classes as they are.",
        rich_help_panel=COLUMNS,
    ),
]
VariantColumn: TypeAlias = Annotated[
    str,
    typer.Option(metavar="COL", help="Long tables: the variant.", rich_help_panel=COLUMNS),
]
SeedColumn: TypeAlias = Annotated[
    str,
    typer.Option(metavar="COL", help="Long tables: the member.", rich_help_panel=COLUMNS),
]
PredictionColumn: TypeAlias = Annotated[
    str,
    typer.Option(
        metavar="COL", help="Long tables, files per model: the answer.", rich_help_panel=COLUMNS
    ),
]
ScoreColumn: TypeAlias = Annotated[
    str,
    typer.Option(
        metavar="COL", help="Long tables, files per model: the score.", rich_help_panel=COLUMNS
    ),
]
Positive: TypeAlias = Annotated[
    str | None,
    typer.Option(metavar="X", help="Positive class of binary labels.", rich_help_panel=COLUMNS),
]
ScoreClasses: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="a,b,c",
        help="Class of each entry of the score vectors, if the file does not say.",
        rich_help_panel=COLUMNS,
    ),
]
Members: TypeAlias = Annotated[
    str,
    typer.Option(
        metavar="retrained|repeated",
        help="What several seeds are: models trained again, or the same model run again "
        "(decoding repeats, checkpoints).",
        rich_help_panel=STATISTICS,
    ),
]
NBoot: TypeAlias = Annotated[
    int, typer.Option(help="Bootstrap replicates.", rich_help_panel=STATISTICS)
]
MinGroup: TypeAlias = Annotated[
    int, typer.Option(help="Smaller groups are shown, not judged.", rich_help_panel=STATISTICS)
]
RandomState: TypeAlias = Annotated[
    int, typer.Option(help="Seed of all random numbers.", rich_help_panel=STATISTICS)
]
Quiet: TypeAlias = Annotated[
    bool, typer.Option("--quiet", "-q", help="Print no summary.", rich_help_panel=OUTPUT)
]


Overwrite: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--overwrite",
        help="Replace files too that fairweight did not write, or that were changed since.",
        rich_help_panel=OUTPUT,
    ),
]
# Parameters that name files or folders which are read.
_READ = (
    "files", "examples", "train", "variants", "policy", "confirm", "validation", "rule", "labels",
    "audit", "models", "model", "teacher", "init", "training", "backdoor", "a", "b",
)  # fmt: skip


def inputs(values: dict[str, Any]) -> list[str]:
    """The files that a command reads, as they were given, from its parameters."""
    found: list[str] = []
    for held in (values.get(name) for name in _READ):
        found += held if isinstance(held, list) else [str(held)] if held else []
    return found


def split_names(text: str | None, option: str) -> list[str] | None:
    """`a,b,c` as names; a name with a comma is quoted: `"a,b"`.

    >>> split_names('cat,"dog, small"', "--score-classes")
    ['cat', 'dog, small']
    """
    if text is None:
        return None
    from fairweight.tables.names import unquoted

    return [unquoted(item) for item in _items(text, option)]


def _items(text: str, option: str) -> list[str]:
    """The items of a list as they are written; an empty list is refused."""
    from fairweight.tables.names import split_list

    items = split_list(text)
    if not items:
        raise InputError(f"{option} {text!r} names nothing; write names with commas: a,b,c")
    return items


def named_columns(given: list[str] | None, option: str) -> dict[str, list[str]] | None:
    """`NAME=COL` options as a dict; a name that is given again is another seed.

    >>> named_columns(["dense=a", "int8=b", "int8=c"], "--prediction")
    {'dense': ['a'], 'int8': ['b', 'c']}
    """
    if not given:
        return None
    from fairweight.tables.names import split_pair

    found: dict[str, list[str]] = {}
    for item in given:
        pair = split_pair(item)
        if pair is None:
            raise InputError(f"{option} {item!r} is not of the form NAME=COLUMN.")
        found.setdefault(pair[0], []).append(pair[1])
    return found


def table_options(values: dict[str, Any]) -> dict[str, Any]:
    """The keyword arguments of `audit_table` and `align` from a command's parameters."""
    return {
        "baseline": values["baseline"],
        "predictions": named_columns(values["prediction"], "--prediction"),
        "scores": named_columns(values["score"], "--score"),
        "label": values["label"],
        "id": values["id_"],
        "groups": None if values["groups"] is None else _items(values["groups"], "--groups"),
        "task": values["task"],
        "examples": values["examples"],
        "train": values["train"],
        "variants": values.get("variants"),  # `count` keeps nothing of it, so it has no such option
        "cluster": values["cluster"],
        "weight": values["weight"],
        "count": values.get("count"),  # commands that look at single examples have no such option
        "missing": values["missing"],
        "variant": values["variant_column"],
        "seed": values["seed_column"],
        "prediction": values["prediction_column"],
        "score": values["score_column"],
    }


def shell_command(context: typer.Context) -> str:
    """The command as it was typed, quoted so that it can be typed again."""
    import shlex

    return shlex.join(["fairweight", *(context.obj or [])])


# `--set name=value` options: fields of a spec that have no option of their own.


def assignments(given: list[str] | None, option: str) -> dict[str, Any]:
    """Names and values; a dotted name goes into a table, and what is no JSON is text.

    >>> assignments(["momentum=0.8", "augment.flip=true", "schedule=step"], "--set")
    {'momentum': 0.8, 'augment': {'flip': True}, 'schedule': 'step'}
    """
    found: dict[str, Any] = {}
    for item in given or []:
        name, equals, text = item.partition("=")
        if not (name and equals):
            raise InputError(f"{option} {item!r} is not of the form NAME=VALUE.")
        *tables, last = name.split(".")
        place = found
        for table in tables:
            inner = place.setdefault(table, {})
            if not isinstance(inner, dict):
                raise InputError(f"{option} sets '{table}' both as a value and as a table.")
            place = inner
        place[last] = _value(text)
    return found


def merged(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    """Two sets of fields; the second decides, and tables are joined.

    >>> merged({"augment": {"flip": True}}, {"augment": {"crop": 4}})
    {'augment': {'flip': True, 'crop': 4}}
    """
    both = dict(first)
    for name, value in second.items():
        held = both.get(name)
        if isinstance(held, dict) and isinstance(value, dict):
            value = merged(held, value)
        both[name] = value
    return both


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


# Options that the commands of the lab share.

DATA, NETWORK, TRAINING, PRUNING = "Data", "Network", "Training", "Pruning"
DISTILLATION, TRUST = "Distillation", "Trust"

DataFolder: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--data",
        metavar="DIR",
        help="The folder with data sets; by default the variable FAIRWEIGHT_DATA.",
        rich_help_panel=DATA,
    ),
]
DatasetOptions: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--dataset-option",
        metavar="NAME=VALUE",
        help="An option of the data set (`fairweight datasets NAME` lists them); may be repeated.",
        rich_help_panel=DATA,
    ),
]
AskedDataset: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="What to ask about; by default what the models were trained on.",
        rich_help_panel=DATA,
    ),
]
AskedPart: TypeAlias = Annotated[
    str,
    typer.Option(
        metavar="test|validation|train",
        help="Which examples, as the models' cards divide them.",
        rich_help_panel=DATA,
    ),
]
Tasks: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="a,b",
        help="Of several attributes only these: one by itself, two as a co-trained pair.",
        rich_help_panel=DATA,
    ),
]
Epochs: TypeAlias = Annotated[
    int | None,
    typer.Option(help="Passes over the training examples.", rich_help_panel=TRAINING),
]
BatchSize: TypeAlias = Annotated[
    int | None, typer.Option(help="Examples per step.", rich_help_panel=TRAINING)
]
LearningRate: TypeAlias = Annotated[
    float | None, typer.Option("--lr", help="Learning rate.", rich_help_panel=TRAINING)
]
Optimizer: TypeAlias = Annotated[
    str | None,
    typer.Option(metavar="sgd|adam", help="How weights are changed.", rich_help_panel=TRAINING),
]
Augmentation: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="crop=4,flip",
        help="Random changes of training images: crop=PIXELS, flip, rotate=DEGREES, shift=SHARE, "
        "zoom=SHARE.",
        rich_help_panel=TRAINING,
    ),
]
TrainingSet: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="Any other field of the training: momentum=0.8, schedule=constant, warmup_epochs=5, "
        'weight_decay=1e-4, decay_of=[["*.bias",0]]; may be repeated.',
        rich_help_panel=TRAINING,
    ),
]
TrainingFile: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--training",
        metavar="FILE",
        help="These fields from a TOML file; options decide where both speak.",
        rich_help_panel=TRAINING,
    ),
]
Device: TypeAlias = Annotated[
    str, typer.Option(metavar="cpu|cuda|mps", help="Where it runs.", rich_help_panel=TRAINING)
]
Threads: TypeAlias = Annotated[
    int | None,
    typer.Option(
        help="Threads of torch; small networks are fastest with 1 and several processes.",
        rich_help_panel=TRAINING,
    ),
]
Sparsity: TypeAlias = Annotated[
    float | None,
    typer.Option(help="Share of weights (or slices) to remove.", rich_help_panel=PRUNING),
]
Layers: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="PATTERNS",
        help="Which layers: 'layer1.*,fc', '@conv', '!@last' (all but the last).",
        rich_help_panel=PRUNING,
    ),
]
MethodOptions: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--method-option",
        metavar="NAME=VALUE",
        help="Another field of the method (`fairweight methods NAME` lists them): n=1, dim=1, "
        "schedule=gmp, schedule.end=60; may be repeated.",
        rich_help_panel=PRUNING,
    ),
]
Distill: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="LOSSES",
        help="Hold the model near a teacher while it trains: kd, at+kd (`fairweight methods` "
        "lists the losses).",
        rich_help_panel=DISTILLATION,
    ),
]
DistillOptions: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--distill-option",
        metavar="NAME=VALUE",
        help="Another field of it: weights.at=500, options.kd.temperature=2, cache=true; may be "
        "repeated.",
        rich_help_panel=DISTILLATION,
    ),
]
Variant: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="What the model is called in tables.", rich_help_panel=OUTPUT
    ),
]
Onnx: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--onnx", help="Also write model.onnx, which is what ships.", rich_help_panel=OUTPUT
    ),
]


def _trust_modules(context: typer.Context, names: list[str] | None) -> list[str] | None:
    context.with_resource(trusting(modules=names or ()))
    return names


def _trust_files(context: typer.Context, files: list[str] | None) -> list[str] | None:
    context.with_resource(trusting(files=files or ()))
    return files


# Both act by being given: what they name is trusted until the command ends.
TrustModule: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--trust-module",
        metavar="MODULE",
        help="Import this module where a card or a study names a network of it "
        "(`MODULE:function`); may be repeated.",
        callback=_trust_modules,
        rich_help_panel=TRUST,
    ),
]
TrustFile: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--trust-file",
        metavar="FILE",
        help="Open this .pt2 file, which can run any code; may be repeated.",
        callback=_trust_files,
        rich_help_panel=TRUST,
    ),
]


def require_lab() -> None:
    """A sentence where torch is missing, before anything is read."""
    from importlib.util import find_spec

    if find_spec("torch") is None:
        raise InputError(
            "This command needs the lab, which is not installed: pip install 'fairweight[lab]'"
        )


def limit_threads(threads: int | None) -> None:
    """Give torch a number of threads, if one was asked for."""
    if threads is None:
        return
    if threads < 1:
        raise InputError(f"--threads {threads} cannot be used; give at least 1.")
    import torch

    torch.set_num_threads(threads)


def training_fields(
    file: str | None,
    *,
    epochs: int | None,
    batch_size: int | None,
    lr: float | None,
    optimizer: str | None,
    augment: str | None,
    others: list[str] | None,
    seed: int | None,
) -> dict[str, Any]:
    """The fields of a training from a file, then from options."""
    from fairweight.specs.toml import read_toml

    given = {} if file is None else read_toml(file, "The training file")
    options: dict[str, Any] = {
        "epochs": epochs,
        "batch_size": batch_size,
        "lr": lr,
        "optimizer": optimizer,
        "seed": seed,
        "augment": None if augment is None else _augmentation(augment),
    }
    given = merged(given, assignments(others, "--set"))
    return merged(given, {name: value for name, value in options.items() if value is not None})


def method_fields(
    sparsity: float | None, layers: str | None, others: list[str] | None
) -> dict[str, Any]:
    """The fields of a method from options; `schedule=gmp` and `schedule.end=60` are one table."""
    plain = [item for item in others or [] if not item.startswith("schedule=")]
    kinds = [item.partition("=")[2] for item in others or [] if item.startswith("schedule=")]
    fields = assignments(plain, "--method-option")
    if kinds:
        held = fields.get("schedule", {})
        fields["schedule"] = {"kind": kinds[-1], **held} if isinstance(held, dict) else kinds[-1]
    if sparsity is not None:
        fields["sparsity"] = sparsity
    if layers is not None:
        fields["layers"] = tuple(part.strip() for part in layers.split(",") if part.strip())
    return fields


def distillation(losses: str | None, options: list[str] | None) -> Distillation | None:
    """The distillation that options ask for, if they do; its losses are looked up."""
    if losses is None:
        if options:
            raise InputError("--distill-option needs --distill LOSSES, such as --distill at+kd.")
        return None
    from fairweight.lab.distillation.registry import terms_of
    from fairweight.specs.toml import read_spec
    from fairweight.specs.training import Distillation

    fields = assignments(options, "--distill-option")
    spec = read_spec(Distillation, {**fields, "losses": losses}, "The distillation")
    terms_of(spec)
    return spec


def _augmentation(text: str) -> dict[str, Any]:
    words = [word.strip() for word in text.split(",") if word.strip()]
    if not words:
        raise InputError(f"--augment {text!r} names nothing; write, for example, crop=4,flip")
    return assignments([w if "=" in w else f"{w}=true" for w in words], "--augment")


# Options that the mitigations share, and how their tables are read.

T = TypeVar("T")
MITIGATION = "Mitigation"
FITTED = "The thresholds would be judged on rows on which they were fitted"

Validation: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        metavar="FILE",
        help="Predictions on validation rows, in the layout of FILE; repeat it for one file per "
        "model (`NAME=FILE`). No example or cluster may be in both, under whatever identity.",
        rich_help_panel=MITIGATION,
    ),
]
VariantNames: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="NAME,NAME",
        help="Only these variants; by default all but the baseline.",
        rich_help_panel=MITIGATION,
    ),
]
Rule: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="FILE.json",
        help="Apply and judge this rule of an earlier run instead of making one.",
        rich_help_panel=MITIGATION,
    ),
]
Alpha: TypeAlias = Annotated[
    float, typer.Option(help="Level of intervals.", rich_help_panel=STATISTICS)
]


def read_tasks(given: Sequence[str], values: dict[str, Any]) -> list[Answers]:
    """The answers of every task of these tables."""
    from fairweight.auditing.prediction_matrix import from_aligned, tasks_of
    from fairweight.auditing.vocabulary import joined, of_answers
    from fairweight.tables.align import align

    source = list(given) if len(given) > 1 else given[0]
    options = table_options(values) | {
        "score_classes": split_names(values["score_classes"], "--score-classes")
    }
    with align(source, **options) as aligned:
        positive = None if aligned.has_task else values["positive"]
        tasks = [from_aligned(aligned, task, positive=positive) for task in tasks_of(aligned)]
    joined(map(of_answers, tasks)).check(tasks[0].baseline, force=values["force"])
    return tasks


def read_rule(path: str, kind: str, from_json: Callable[[dict[str, Any]], T]) -> T:
    """A rule of an earlier run, checked to be of this kind and whole."""
    import json
    from pathlib import Path

    try:
        held = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"--rule '{path}' cannot be read: {error.strerror}.") from None
    except ValueError:
        raise InputError(
            f"--rule '{path}' is no JSON; give the {kind}.json of an earlier run."
        ) from None
    found = held.get("kind") if isinstance(held, dict) else None
    if found != kind:
        raise InputError(
            f"--rule '{path}' is no rule of the kind {kind}"
            + (f", but of the kind {found}." if found else "; give the file of an earlier run.")
        )
    try:
        return from_json(held)
    except (AttributeError, KeyError, TypeError, ValueError):
        raise InputError(
            f"--rule '{path}' is not whole; give the {kind}.json of an earlier run as it was "
            "written."
        ) from None


def check_out(values: dict[str, Any]) -> None:
    """Before long work, whether the folder may be written."""
    from fairweight.base.files import check_folder
    from fairweight.report.html import names

    known = ("predictions.parquet", *(f"audit/{name}" for name in names()))
    given = {"inputs": inputs(values), "overwrite": values["overwrite"], "names": known}
    check_folder(values["out"], **given)


def check_statistics(values: dict[str, Any]) -> None:
    """Before long work, what the audit would refuse at its end."""
    if not 0 < values["alpha"] < 1:
        raise InputError(
            f"--alpha {values['alpha']:g} cannot be used; give a level between 0 and 1."
        )
    for name, least in (("n_boot", 20), ("min_group", 1), ("random_state", 0)):
        if values[name] < least:
            flag = "--" + name.replace("_", "-")
            raise InputError(f"{flag} {values[name]} cannot be used; give at least {least}.")
