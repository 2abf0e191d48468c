"""What a network predicts when only one of its units is compressed, and when all but one are."""

from __future__ import annotations

import hashlib
import json
import tempfile
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from fairweight.base.files import atomic_file
from fairweight.base.types import Progress
from fairweight.data.dataset import Images
from fairweight.errors import InputError, UnknownNameError
from fairweight.lab.artifacts import CARD, Card, Outputs, load
from fairweight.lab.batches import Batch, Scaling, as_floats, batches_of, read_batches
from fairweight.lab.compression.calibration import calibration_rows, drawn_unless_chosen
from fairweight.lab.compression.registry import PartlyCompressed, fields_of
from fairweight.lab.compression.unit_models import UnitModels
from fairweight.lab.loaders import Loaded, digest_of_files, open_onnx
from fairweight.lab.onnx_models import card_of, put_card, read_onnx, to_onnx, write_onnx
from fairweight.lab.partition import Prepared, prepare
from fairweight.lab.prediction_rows import read_outputs
from fairweight.lab.training import Method, named_method, variant_name
from fairweight.lab.units import Level, Unit
from fairweight.specs.data import Data
from fairweight.specs.toml import as_spec

AT_ONCE = 256  # examples
TIMED_AT_ONCE = 8
TIMED = 11  # pairs of calls; all but the outer two give limits with an error of 1.2 %


@dataclass(frozen=True)
class FloatNetwork:
    """A float network as an ONNX file, with what is needed to run it and to compress it.

    file       the float ONNX file
    module     what it was exported from; None for files of others
    variant    what the float model is called
    folder     for files that are needed as long as it is open
    """

    file: Path
    folder: Path
    card: Card
    module: nn.Module | None
    variant: str
    scaling: Scaling | None


@contextmanager
def opened_network(
    model: nn.Module | str | Path, example: Any = None, *, scaling: Scaling | None = None
) -> Iterator[FloatNetwork]:
    """A folder of the lab, a module or an ONNX file; exported where it has to be.

    Parameters
    ----------
    example
        A batch of inputs as the model takes them (or bytes, with a scaling): for the export.
    """
    with tempfile.TemporaryDirectory(prefix="fairweight-") as folder:
        module: nn.Module | None = None
        card: Card | None = None
        if isinstance(model, nn.Module):
            module, card = model, Card()
        elif Path(model).is_dir():
            module, card = load(model)
        if module is None or card is None:
            path = Path(str(model))
            if path.suffix != ".onnx":
                raise InputError(
                    f"'{path}' cannot be compressed unit by unit; give a folder that `train` or "
                    f"`compress` wrote (with {CARD}), or an .onnx file."
                )
            card = card_of(read_onnx(path), f"'{path}'")
            called = path.stem if card is None else card.variant
            card = card or Card()
            yield FloatNetwork(
                path, Path(folder), card, None, called, card.preprocessing or scaling
            )
            return
        scale = card.preprocessing or scaling
        images = as_floats(example, scale, "The model")[:TIMED_AT_ONCE].contiguous()
        file = to_onnx(module, images, Path(folder) / "float.onnx", card=card)
        yield FloatNetwork(file, Path(folder), card, module, card.variant, scale)


@dataclass(frozen=True)
class JudgedExamples:
    """The examples that models are judged on, in batches, with labels as places of classes."""

    batches: tuple[Batch, ...]
    labels: NDArray[np.int64]
    classes: tuple[str, ...] | None
    task: int | None = None  # which of several binary tasks

    @classmethod
    def of(
        cls,
        given: Iterable[Any] | Images,
        *,
        ids: Any = None,
        groups: Mapping[str, Any] | None = None,
        classes: Sequence[str] | None = None,
        task: str | None = None,
    ) -> JudgedExamples:
        if isinstance(given, Images):
            classes = classes or given.classes
            given = batches_of(given, AT_ONCE)
        held = tuple(read_batches(given, ids=ids, groups=groups))
        names = None if classes is None else tuple(map(str, classes))
        labels = np.concatenate([batch.labels for batch in held])
        place = None
        if labels.ndim == 2:
            if names is None or task is None or task not in names:
                listed = ", ".join(names or ())
                raise InputError(
                    f"The labels are {labels.shape[1]} tasks, and units are judged on one: name it "
                    f"(--task NAME, task=). {listed}".rstrip()
                )
            place = names.index(task)
            labels, names = labels[:, place], ("0", "1")
        elif task is not None:
            raise InputError(f"There is one label, so task = '{task}' cannot be chosen.")
        if labels.dtype.kind not in "iu":
            if names is None:
                raise InputError(
                    "The labels are text, and the classes' order is not known: give classes=."
                )
            unknown = next((one for one in labels.tolist() if str(one) not in names), None)
            if unknown is not None:
                raise UnknownNameError("The label", str(unknown), names)
            labels = np.array([names.index(str(one)) for one in labels.tolist()])
        return cls(held, labels.astype(np.int64), names, place)

    @property
    def ids(self) -> NDArray[Any]:
        return np.concatenate([batch.ids for batch in self.batches])

    @property
    def groups(self) -> dict[str, NDArray[Any]]:
        names = self.batches[0].groups
        return {name: np.concatenate([b.groups[name] for b in self.batches]) for name in names}

    def digest(self) -> str:
        total = hashlib.sha256(f"{self.task}".encode())
        for batch in self.batches:
            total.update(batch.digest().encode())
        return total.hexdigest()

    def __len__(self) -> int:
        return len(self.labels)


class UnitPredictor:
    """Predictions of the models of one network, each computed once and stored in a folder.

    Parameters
    ----------
    store
        The folder; what is in it already is not computed again. None keeps them in memory alone.
    outputs
        What a model gives that does not say it.
    """

    def __init__(
        self,
        models: UnitModels,
        network: FloatNetwork,
        calibration: NDArray[Any],
        examples: JudgedExamples,
        *,
        store: Path | None,
        outputs: Outputs | None = None,
    ) -> None:
        self.models = models
        self.network = network
        self.calibration = calibration
        self.examples = examples
        self._store = store
        self._outputs = outputs
        self._kept: dict[frozenset[str], NDArray[np.int64]] = {}
        # Everything that decides the predictions but the units that are compressed.
        held = [
            fields_of(models.spec),
            digest_of_files([network.file]),
            hashlib.sha256(np.ascontiguousarray(calibration).tobytes()).hexdigest(),
            repr(network.scaling),
            outputs,
            examples.digest(),
        ]
        self._key = json.dumps(held, sort_keys=True, default=str)

    def of(self, names: Collection[str]) -> NDArray[np.int64]:
        """Predicted classes (places in the examples' classes) with these units compressed."""
        which = frozenset(self.models.layers(names))
        if which not in self._kept:
            place = self._place(which)
            found = None if place is None else _read(place, len(self.examples))
            if found is None:
                found = self.ask(self.models.of(names))
                if place is not None:
                    place.parent.mkdir(parents=True, exist_ok=True)
                    with atomic_file(place, "wb") as file:
                        np.save(file, found.astype(np.int32), allow_pickle=False)
            self._kept[which] = found
        return self._kept[which]

    def has(self, names: Collection[str]) -> bool:
        """Whether these predictions are there already."""
        which = frozenset(self.models.layers(names))
        place = self._place(which)
        return which in self._kept or (place is not None and place.is_file())

    def right(self, names: Collection[str]) -> NDArray[np.bool_]:
        """Whether each prediction is right."""
        return np.asarray(self.of(names) == self.examples.labels)

    def ask(self, made: PartlyCompressed) -> NDArray[np.int64]:
        """Predictions of any model of the same inputs and classes."""
        with self._opened(made) as opened:
            own = opened.classes
            kind = opened.outputs or self._outputs
            parts = []
            for batch in self.examples.batches:
                tasks = batch.labels.shape[1] if batch.labels.ndim == 2 else None
                answers, kind = read_outputs(
                    opened.run(batch.inputs),
                    n=len(batch),
                    tasks=tasks,
                    kind=kind,
                    shown="The model",
                )
                predicted = answers.predicted
                if tasks is not None:
                    predicted = predicted[:, self.examples.task]
                parts.append(np.asarray(predicted, dtype=np.int64))
        predicted = np.concatenate(parts)
        names = self.examples.classes
        if own is not None and names is not None and self.examples.task is None and own != names:
            if set(own) != set(names):
                apart = sorted(set(own) ^ set(names))
                raise InputError(
                    f"The model has other classes than the labels, such as '{apart[0]}'; give "
                    "examples of its own task."
                )
            predicted = np.array([names.index(name) for name in own])[predicted]
        return predicted

    def write(self, names: Collection[str], out: str | Path, why: Mapping[str, str]) -> Path:
        """Write the model in which these units are compressed; its card says why others are not.

        Parameters
        ----------
        why
            By unit that stays in float.
        """
        import onnx

        made = self.models.of(names)
        model = onnx.ModelProto()
        model.CopyFrom(made.model)
        card = self.network.card
        compression = {
            **card.compression,
            **({"quantisation": dict(made.facts)} if made.facts else {}),
            "method": self.models.method.name,
            "spec": fields_of(self.models.spec),
            "float_units": dict(why),
        }
        put_card(
            model,
            replace(
                card,
                variant=f"{self.models.method.name}-mixed",
                parent=f"{card.variant}:{card.seed}",
                compression=compression,
                measured={},
            ),
        )
        return write_onnx(model, out)

    @contextmanager
    def _opened(self, made: PartlyCompressed) -> Iterator[Loaded]:
        with tempfile.TemporaryDirectory(prefix="fairweight-") as folder:
            path = Path(folder) / "model.onnx"
            write_onnx(made.model, path)
            yield open_onnx(path, "The model", scaling=self.network.scaling)

    def _place(self, which: frozenset[str]) -> Path | None:
        if self._store is None:
            return None
        text = self._key + json.dumps(sorted(which))
        return self._store / f"{hashlib.sha256(text.encode()).hexdigest()[:40]}.npy"

    def latency_gain(self, names: Collection[str], more: Collection[str]) -> float | None:
        """Milliseconds per example that compressing `more` instead of `names` saves.

        Both models take turns on the same small batch. None where the difference lies within the
        noise: the second smallest and the second largest difference have different signs.
        """
        if self.models.simulated:
            return None
        batch = self.examples.batches[0].inputs[:TIMED_AT_ONCE]
        with self._opened(self.models.of(names)) as one, self._opened(self.models.of(more)) as two:
            differences = []
            for turn in range(TIMED + 1):
                taken = []
                for model in (one, two):
                    start = time.perf_counter()
                    model.run(batch)
                    taken.append(time.perf_counter() - start)
                if turn:  # the first warms up
                    differences.append(1000 * (taken[0] - taken[1]) / len(batch))
        differences.sort()
        low, high = differences[1], differences[-2]
        return median(differences) if low > 0 or high < 0 else None


def _read(place: Path, n: int) -> NDArray[np.int64] | None:
    """Stored predictions; None where there are none, or not those of so many examples."""
    try:
        held = np.load(place, allow_pickle=False)
    except (OSError, ValueError):
        return None
    if held.shape != (n,) or held.dtype.kind != "i":
        return None
    return np.asarray(held, dtype=np.int64)


def unit_predictors(
    network: FloatNetwork,
    spec: Method,
    parts: Sequence[JudgedExamples],
    *,
    calibration: Iterable[Any] | Images | None,
    level: Level,
    store: str | Path | None,
) -> list[UnitPredictor]:
    """Predictors of the same models on several sets of examples; none was used to calibrate."""
    name, wanted = named_method(spec)
    wanted = drawn_unless_chosen(spec, wanted)
    needed = getattr(wanted, "calibration_examples", 1)
    checked = [
        calibration_inputs(
            calibration, needed, network, part, seen=needed > 1, method=name, spec=wanted
        )
        for part in parts
    ]
    inputs = checked[0]
    models = UnitModels(
        network.file, wanted, inputs, network.folder, level=level, network=network.module
    )
    place = None if store is None else Path(store)
    return [UnitPredictor(models, network, inputs, part, store=place) for part in parts]


@dataclass(frozen=True)
class UnitPredictions:
    """Predictions of a network, of its compression, and of both with one unit exchanged.

    Places of classes, one per example; `not_reached` are units for which the budget was too small.

    baseline, full  nothing compressed, everything compressed
    alone           by unit: only it is compressed
    without         by unit: all but it are compressed
    float_bytes     size of the network with nothing compressed
    saved_bytes     by unit, what compressing it alone saves; under "" of everything
    latency_ms      by unit, per example: what compressing it saves; None within the noise
    """

    variant: str
    compressed: str
    units: tuple[Unit, ...]
    examples: JudgedExamples
    baseline: NDArray[np.int64]
    full: NDArray[np.int64]
    alone: Mapping[str, NDArray[np.int64]]
    without: Mapping[str, NDArray[np.int64]]
    float_bytes: int
    saved_bytes: Mapping[str, int]
    latency_ms: Mapping[str, float | None]
    simulated: bool
    not_reached: tuple[str, ...] = ()
    notes: tuple[str, ...] = field(default=())


ALL = ""


def data_for(
    card: Card, given: Any, *, part: str, root: str | Path | None
) -> tuple[Images, Images | None]:
    """Examples to judge on and to calibrate with: parts of the data that a card or a spec names."""
    if isinstance(given, Prepared):
        return given.part(part), given.train if part != "train" else None
    if given is None and not card.data:
        raise InputError(
            "The model does not say what data it was trained on; name the data set (--dataset "
            "NAME), or give batches."
        )
    spec = as_spec(Data, given or card.data, "The data", "name")
    prepared = prepare(spec, root)
    return prepared.part(part), prepared.train if part != "train" else None


def calibration_inputs(
    given: Iterable[Any] | Images | None,
    needed: int,
    network: FloatNetwork,
    examples: JudgedExamples,
    *,
    seen: bool,
    method: str,
    spec: Any = None,
) -> NDArray[np.float32]:
    """The inputs that a method calibrates with, as the model takes them: of images those that its
    spec chooses, of batches the first.

    Parameters
    ----------
    seen
        Whether what they are matters; else some judged inputs serve for their shape.
    """
    shown = "The calibration"
    if given is None:
        if seen:
            raise InputError(
                f"{method} needs calibration examples that are not judged, such as the first "
                "100 training examples: give calibration= (from the command line: a data set with "
                "a training part, not --all-examples, and not --part train)."
            )
        first = examples.batches[0].inputs[:1]
        return as_floats(first, network.scaling, shown).cpu().numpy()
    if isinstance(given, Images):
        judged = set(map(str, examples.ids.tolist()))
        rows = np.arange(min(needed, len(given)))
        if hasattr(spec, "calibration_examples"):
            rows = calibration_rows(given, spec)
        both = [one for one in given.example_id[rows].tolist() if str(one) in judged]
        batches: Iterable[Any] = [given.images[rows]]
    elif getattr(spec, "calibration", "first") not in ("first", "random"):
        raise InputError(
            f"calibration = '{spec.calibration}' draws from a data set with labels and groups, and "
            "the calibration examples are arrays; give images of a data set, or leave it out."
        )
    else:
        batches = [given] if hasattr(given, "ndim") else given
        both = []
    taken: list[NDArray[np.float32]] = []
    for one in batches:
        inputs = one.get("image", one.get("inputs")) if isinstance(one, Mapping) else one
        inputs = inputs[0] if isinstance(inputs, tuple | list) else inputs
        taken.append(as_floats(inputs, network.scaling, shown).cpu().numpy()[:needed])
        if sum(map(len, taken)) >= needed:
            break
    if not taken:
        raise InputError(f"{method} needs calibration examples, and there are none.")
    found = np.concatenate(taken)[:needed]
    if not isinstance(given, Images):
        # By their values: ids of training examples are not known here.
        judged = {
            _digest(row)
            for batch in examples.batches
            for row in as_floats(batch.inputs, network.scaling, shown).cpu().numpy()
        }
        both = [str(place) for place, row in enumerate(found) if _digest(row) in judged]
    if both:
        raise InputError(
            f"{len(both)} of the {len(found)} calibration examples are also judged (the first is "
            f"'{both[0]}'); calibrate with others, such as training examples."
        )
    return np.ascontiguousarray(found, dtype=np.float32)


def _digest(row: NDArray[Any]) -> str:
    return hashlib.sha256(np.ascontiguousarray(row).tobytes()).hexdigest()


def sensitivity(
    model: nn.Module | str | Path,
    spec: Method,
    batches: Iterable[Any] | Images | None = None,
    *,
    groups: Mapping[str, Any] | None = None,
    ids: Any = None,
    calibration: Iterable[Any] | Images | None = None,
    unit: Level = "layer",
    task: str | None = None,
    classes: Sequence[str] | None = None,
    outputs: Outputs | None = None,
    scaling: Scaling | None = None,
    part: str = "test",
    root: str | Path | None = None,
    store: str | Path | None = None,
    budget: float | None = None,
    latency: bool = True,
    announce: Callable[[str], None] | None = None,
    progress: Progress | None = None,
) -> UnitPredictions:
    """Predictions of a network with one unit compressed alone, and with all but one compressed.

    `fairweight.sensitivity` makes them and audits them.

    Parameters
    ----------
    model
        A folder that `train` or `compress` wrote, an ONNX file of any architecture, or a torch
        module from images to logits.
    spec
        What is done to a unit, as for `compress`: int8, weights at a few bits, or pruning (at once
        and without finetuning; channels are set to 0, not removed).
    batches
        What is judged, as for `predict`; by default the part of the data that the card names.
    groups, ids, classes, outputs, scaling, part, root
        As for `predict`.
    calibration
        Inputs that give the ranges of activations, none of them judged; by default training
        examples of the data that the card names.
    unit
        `layer`: a node with weights and the weightless ones behind it. `block`: all layers whose
        names share their beginning.
    task
        Of models of several binary tasks: the one that is judged.
    store
        A folder that keeps predictions: what was computed is not computed again.
    budget
        Seconds; then it stops with what is there.
    latency
        Whether models are timed in turns.
    announce
        Called with a sentence on what this will take, before most of it is done.
    """
    tell = progress or (lambda what, done, total: None)
    name, wanted = named_method(spec)
    compressed = variant_name(name, wanted, after="dense")
    wanted = drawn_unless_chosen(spec, wanted)
    begun = time.monotonic()
    if batches is None:
        card = load(model)[1] if isinstance(model, str | Path) and Path(model).is_dir() else None
        if card is None and isinstance(model, str | Path) and Path(model).suffix == ".onnx":
            card = card_of(read_onnx(model), f"'{model}'")
        batches, training = data_for(card or Card(), None, part=part, root=root)
        calibration = training if calibration is None else calibration
    examples = JudgedExamples.of(batches, ids=ids, groups=groups, classes=classes, task=task)
    with opened_network(model, examples.batches[0].inputs, scaling=scaling) as network:
        needed = getattr(wanted, "calibration_examples", 1)
        inputs = calibration_inputs(
            calibration, needed, network, examples, seen=needed > 1, method=name, spec=wanted
        )
        tell("calibrating", 0, 1)
        models = UnitModels(
            network.file, wanted, inputs, network.folder, level=unit, network=network.module
        )
        names = [one.name for one in models.units]
        if len(names) < 2:
            raise InputError(
                f"The network has one unit ('{names[0]}'), so none can be left out; use "
                "--unit layer, or a network with more layers."
            )
        predictor = UnitPredictor(
            models,
            network,
            inputs,
            examples,
            store=None if store is None else Path(store),
            outputs=outputs,
        )
        # What is asked: without first, since units are ranked by it.
        every = frozenset(names)
        asked = [(one, every - {one}) for one in names] + [(one, frozenset([one])) for one in names]
        missing = [which for _, which in asked if not predictor.has(which)]
        started = time.monotonic()
        tell("asking the float model", 0, len(asked) + 2)
        fresh = not predictor.has(())
        baseline = predictor.of(())
        took = time.monotonic() - started
        if announce is not None:
            kept = len(asked) - len(missing)
            already = f", {kept} of them kept from before" if kept else ""
            cost = f": about {_minutes(took * (len(missing) + 1))}" if fresh else ""
            word = "layers" if unit == "layer" else "blocks"
            announce(
                f"{len(names)} {word}, {len(asked) + 2} models on {len(examples):,} "
                f"examples{already}{cost}."
            )
        full = predictor.of(every)
        done: dict[tuple[str, bool], NDArray[np.int64]] = {}
        for place, (one, which) in enumerate(asked):
            if (
                budget is not None
                and time.monotonic() - begun > budget
                and not predictor.has(which)
            ):
                continue
            tell(f"asking {name}", place + 2, len(asked) + 2)
            done[one, len(which) == 1] = predictor.of(which)
        timed: dict[str, float | None] = dict.fromkeys(names)
        if latency and not models.simulated:
            for place, one in enumerate(names):
                if budget is not None and time.monotonic() - begun > budget:
                    break
                tell("timing", place, len(names))
                timed[one] = predictor.latency_gain(every - {one}, every)
        saved = {one: models.saved_bytes([one]) for one in names}
        saved[ALL] = models.saved_bytes(names)
    without = {one: found for (one, single), found in done.items() if not single}
    return UnitPredictions(
        variant=network.variant,
        compressed=compressed,
        units=models.units,
        examples=examples,
        baseline=baseline,
        full=full,
        alone={one: found for (one, single), found in done.items() if single},
        without=without,
        float_bytes=models.float_bytes,
        saved_bytes=saved,
        latency_ms=timed,
        simulated=models.simulated,
        not_reached=tuple(one for one in names if one not in without),
    )


def _minutes(seconds: float) -> str:
    """A duration in words.

    >>> _minutes(30), _minutes(600)
    ('1 minute', '10 minutes')
    """
    minutes = max(1, round(seconds / 60))
    return "1 minute" if minutes == 1 else f"{minutes:,} minutes"
