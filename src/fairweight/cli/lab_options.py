"""Options that the commands of the lab share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from fairweight.cli.assignments import assignments, merged
from fairweight.errors import InputError
from fairweight.trust import trusting

if TYPE_CHECKING:
    from fairweight.specs.distillation import Distillation

DATA, NETWORK, TRAINING, PRUNING, OUTPUT = "Data", "Network", "Training", "Pruning", "Output"
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
    from fairweight.specs.read_spec import read_toml

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
    from fairweight.lab.distill.terms import terms_of
    from fairweight.specs.distillation import Distillation
    from fairweight.specs.read_spec import read_spec

    fields = assignments(options, "--distill-option")
    spec = read_spec(Distillation, {**fields, "losses": losses}, "The distillation")
    terms_of(spec)
    return spec


def _augmentation(text: str) -> dict[str, Any]:
    words = [word.strip() for word in text.split(",") if word.strip()]
    if not words:
        raise InputError(f"--augment {text!r} names nothing; write, for example, crop=4,flip")
    return assignments([w if "=" in w else f"{w}=true" for w in words], "--augment")
