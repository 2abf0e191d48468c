"""What stages will cost: steps of their networks, measured or counted, times the number planned."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from fairweight.base.files import atomic_file
from fairweight.data.registry import OFFICIAL
from fairweight.errors import InputError
from fairweight.lab.compression.registry import base_method
from fairweight.lab.flops import count_flops, count_parameters
from fairweight.lab.models.registry import build_from_file
from fairweight.lab.partition import prepare
from fairweight.runs.stage import MODELS, STAGES, Cost, ExampleCost, StageKind, canonical, digest
from fairweight.specs.fields import recorded
from fairweight.specs.study import Expected, Experiment

if TYPE_CHECKING:
    from fairweight.runs.plan import StudyPlan

# What networks would take on a GPU: counted operations at an assumed rate, nothing measured.

# One GPU of a data centre sustains about this in 32 bits with networks of these kinds, and to start
# the kernels of one step takes about so long, however small the network is.
FLOPS = 1e13  # operations per second
STEP = 0.005  # seconds
BACKWARDS = 2  # times the operations forwards: for the weights and for the activations
ASKED_AT_ONCE = 512

ASSUMED = (
    f"{FLOPS / 1e12:.0f} TFLOP/s sustained, at least {1000 * STEP:.0f} ms a step; nothing measured"
)


def training_seconds(
    n: int, *, epochs: int, batch_size: int, flops: float, taught: bool = False
) -> float:
    """Cost of training on `n` examples.

    Parameters
    ----------
    flops
        Operations forwards, for one example.
    taught
        Whether a teacher of the same size answers too.

    >>> training_seconds(1000, epochs=10, batch_size=100, flops=1e9)
    3.0
    >>> training_seconds(1000, epochs=10, batch_size=100, flops=1.0)  # 100 steps
    0.5
    """
    passes = 1 + BACKWARDS + (1 if taught else 0)
    return epochs * max(passes * n * flops / FLOPS, math.ceil(n / batch_size) * STEP)


def asking_seconds(n: int, flops: float) -> float:
    """Cost of predicting `n` examples."""
    return max(n * flops / FLOPS, math.ceil(n / ASKED_AT_ONCE) * STEP)


# Measured on the 3,338 stages of prune-responsibly (LeNet and a narrow VGG-11, two workers on two
# busy cores), which took 1.9 h. With 1 s to begin any stage the estimate was 2.2 h, and 2 to 6
# times too long for predictions (LeNet, 10,000 examples: 1.5 s for 0.6 s). With these it is 1.8 h,
# and within 30 % for each of its seven experiments.
START = 0.8  # seconds for a training's data and inputs, and for writing the model
ASK = 0.1  # the same for predictions
SPECTRA = 3.0  # eigenvalues of representations
ROW_BYTES = 12  # of predictions, compressed; with scores 4 more per class
PARAMETER_BYTES = 4.5  # of a model on disk


def training_cost(training: Mapping[str, Any], unit: ExampleCost, *, taught: bool) -> Cost:
    """Steps of the student, and the teacher's predictions of the same images."""
    per_example = unit.train_s + (unit.predict_s if taught else 0.0)
    on_gpu = training_seconds(
        unit.n_train,
        epochs=training["epochs"],
        batch_size=training["batch_size"],
        flops=unit.flops,
        taught=taught,
    )
    return Cost(float(training["epochs"]) * unit.n_train * per_example, 0.0, on_gpu)


def train_cost(spec: Mapping[str, Any], unit: ExampleCost) -> Cost:
    taught = spec.get("distill") is not None
    begun = Cost(START, PARAMETER_BYTES * unit.n_params)
    return begun + training_cost(spec["training"], unit, taught=taught)


def compress_cost(spec: Mapping[str, Any], unit: ExampleCost) -> Cost:
    method, finetune = base_method(spec["method"]["method"]), spec["finetune"]
    size = PARAMETER_BYTES * unit.n_params * method.weight_bits / 32
    begun = Cost(START + method.seconds, size)
    taught = spec.get("distill") is not None
    return begun if finetune is None else begun + training_cost(finetune, unit, taught=taught)


def predict_cost(spec: Mapping[str, Any], unit: ExampleCost) -> Cost:
    row = ROW_BYTES + (4 * unit.classes if spec["scores"] else 0)
    seconds = ASK + unit.n_test * unit.predict_s
    return Cost(seconds, row * unit.n_test, asking_seconds(unit.n_test, unit.flops))


def similarity_cost(spec: Mapping[str, Any], unit: ExampleCost) -> Cost:
    asked = 2 * min(spec["examples"] or unit.n_test, unit.n_test)
    seconds = START + SPECTRA + asked * unit.predict_s
    return Cost(seconds, 1e3, asking_seconds(asked, unit.flops))


STAGES.add("train", StageKind("fairweight.runs.stages:train", MODELS, train_cost))
STAGES.add("compress", StageKind("fairweight.runs.stages:compress", MODELS, compress_cost))
STAGES.add("predict", StageKind("fairweight.runs.stages:predict", MODELS, predict_cost))
STAGES.add("similarity", StageKind("fairweight.runs.stages:similarity", MODELS, similarity_cost))


MEASURED_STEPS = 3
MEASURED_SECONDS = 3.0
MEASURED_PIXELS = 131_072  # 128 images of 32 × 32
# Where nothing is run: FLOPs per second of one core, and seconds for an image whatever it is. All
# registered networks of 32 × 32 pixels are within a factor of 2 on a server's core of 2023, but for
# MobileNet, whose narrow layers take three times as long.
TRAIN_RATE, PREDICT_RATE = 22e9, 80e9
TRAIN_IMAGE, PREDICT_IMAGE = 1e-4, 3e-5


def costs(
    plan: StudyPlan,
    data: Path | None,
    *,
    cache: Path | None = None,
    measure: bool = True,
    progress: Callable[[str, int, int], None] | None = None,
) -> dict[str, Cost]:
    """The cost of every stage of a plan.

    Parameters
    ----------
    data
        The folder with data sets, for the number of examples where an experiment does not say it.
    cache
        A folder in which measured units are kept, so that the next call measures nothing.
    measure
        Whether a step of each network is timed. If not, no network is made: costs follow from the
        shapes of registered architectures.
    """
    units: dict[str, ExampleCost] = {}
    for number, (name, experiment) in enumerate(plan.experiments.items()):
        if progress is not None:
            progress(f"measuring a step of {name}", number, len(plan.experiments))
        units[name] = _unit(experiment, data, cache, measure)
    whose = {model.made_by: model.experiment for model in plan.models}
    whose |= {m.compared_by: m.experiment for m in plan.models if m.compared_by is not None}
    whose |= {model.asked_by: model.experiment for model in plan.models}
    whose |= {m.validated_by: m.experiment for m in plan.models if m.validated_by is not None}
    whose |= {key: name for name, key in plan.audits.items()}
    return {
        key: STAGES[stage.kind].cost(stage.spec, units.get(whose.get(key, "")))
        for key, stage in plan.stages.items()
    }


def _unit(
    experiment: Experiment, data: Path | None, cache: Path | None, measure: bool
) -> ExampleCost:
    asked = {
        "data": recorded(experiment.data),
        "model": recorded(experiment.model),
        "batch_size": experiment.training.batch_size,
        "expected": None if experiment.expected is None else asdict(experiment.expected),
    }
    file = None if cache is None else cache / f"{digest(canonical(asked))}.json"
    if file is not None and file.is_file():
        try:
            return ExampleCost(**json.loads(file.read_text(encoding="utf-8")))
        except (TypeError, ValueError):
            pass  # of another version: measured again
    if not measure:
        return _from_shapes(experiment, data)
    unit = _measured(experiment, data)
    if file is not None:
        with atomic_file(file) as stream:
            stream.write(json.dumps(asdict(unit)))
    return unit


def _measured(experiment: Experiment, data: Path | None) -> ExampleCost:
    expected = experiment.expected or _known(experiment, data)
    with torch.random.fork_rng(devices=[]):
        network = _network(experiment, expected)
    # A whole batch of large images would take longer to measure than it is worth.
    fits = max(2, MEASURED_PIXELS // expected.size**2)
    batch = min(experiment.training.batch_size, expected.train, fits)
    images = torch.rand(batch, expected.channels, expected.size, expected.size)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        train_s = _step_seconds(network, images, backwards=True) / batch
        predict_s = _step_seconds(network, images, backwards=False) / batch
    finally:
        torch.set_num_threads(threads)
    return ExampleCost(
        train_s,
        predict_s,
        expected.train,
        expected.test,
        expected.classes,
        count_parameters(network).total,
        count_flops(network, images).dense,
    )


def _from_shapes(experiment: Experiment, data: Path | None) -> ExampleCost:
    """Cost per example of a registered architecture, counted from the shapes of its layers."""
    name = experiment.model.architecture
    if ":" in name:
        raise InputError(
            f"The experiment '{experiment.name}' has a network of your own ('{name}'), whose cost "
            "is not known before it is made; leave --dry-run out: the cost is the first thing said."
        )
    expected = experiment.expected or _known(experiment, data)
    with torch.device("meta"):
        network = _network(experiment, expected)
        image = torch.empty(1, expected.channels, expected.size, expected.size)
    try:
        flops = count_flops(network, image).dense
    except RuntimeError as error:
        raise InputError(
            f"The experiment '{experiment.name}': '{name}' cannot take images of {expected.size} "
            f"pixels ({str(error)[:100]})."
        ) from error
    return ExampleCost(
        flops / TRAIN_RATE + TRAIN_IMAGE,
        flops / PREDICT_RATE + PREDICT_IMAGE,
        expected.train,
        expected.test,
        expected.classes,
        count_parameters(network).total,
        flops,
    )


def _network(experiment: Experiment, expected: Expected) -> Any:
    shape = {"classes": expected.classes, "channels": expected.channels, "size": expected.size}
    options = {**shape, "width": experiment.model.width, **experiment.model.options}
    where = f"The experiment '{experiment.name}'"
    return build_from_file(experiment.model.architecture, options, where)


def _step_seconds(network: Any, images: Any, *, backwards: bool) -> float:
    """Processor seconds of a step. The least of a few is used, since other work only adds time."""
    network.train(backwards)
    taken: list[float] = []
    while len(taken) <= MEASURED_STEPS and sum(taken) < MEASURED_SECONDS:
        begun = time.process_time()
        with torch.set_grad_enabled(backwards):
            output = network(images)
            if backwards:
                output.square().mean().backward()
        taken.append(time.process_time() - begun)
    return min(taken)


def _known(experiment: Experiment, data: Path | None) -> Expected:
    """The numbers of examples: counted, or those that are published where the data are absent."""
    try:
        parts = prepare(experiment.data, data)
    except InputError:
        official = OFFICIAL.get(experiment.data.name)
        if official is None:
            raise
        return Expected(
            train=round(official.train * (1 - experiment.data.validation)),
            test=official.test,
            size=experiment.data.size or official.size,
            channels=official.channels,
            classes=official.classes,
        )
    _, size, _, channels = parts.train.images.shape
    return Expected(
        train=len(parts.train),
        test=len(parts.test),
        size=size,
        channels=channels,
        classes=len(parts.train.classes),
    )
