"""The how-to for compression loops runs, and the number in it changes what a loop chooses.

NNCF, OpenVINO and transformers are no dependencies. Small stand-ins call the page's functions as
those libraries do (arguments, order of calls, what is done with the answer) and decide by the
same rule; what they compress has losses that can be counted by hand.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from tests.test_documentation import FENCED

import fairweight as fw

PAGE = Path(__file__).resolve().parents[1] / "docs/how-to/use-in-a-compression-loop.md"
MAX_DROP = 0.01  # as on the page

Ints = NDArray[np.int64]

LABEL: Ints = np.arange(1000) % 2
GROUP = np.repeat(["A", "B"], [900, 100])
NUMBERS = np.arange(1000)


def logits(examples: Ints, lost: Ints) -> NDArray[np.float64]:
    """Of two classes: right everywhere but on the examples that were lost."""
    answer = np.where(np.isin(examples, lost), 1 - LABEL[examples], LABEL[examples])
    return np.eye(2)[answer]


# --- a loop of the shape of nncf.quantize_with_accuracy_control -----------------------------------

# In int8 the head costs one of A's 900 answers, the stem eight of B's 100.
COST = {"head": NUMBERS[:1], "stem": NUMBERS[-8:]}


@dataclass(frozen=True)
class Layered:
    """A model of two layers, some of them in int8; its images are the numbers of examples."""

    int8: frozenset[str] = frozenset()

    def compiled(self) -> Callable[[Ints], dict[int, NDArray[np.float64]]]:
        lost = np.concatenate([NUMBERS[:0], *(COST[layer] for layer in self.int8)])
        return lambda images: {0: logits(images, lost)}


@dataclass(frozen=True)
class Dataset:
    """Like nncf.Dataset: items as they are for validation, transformed for inference."""

    data_source: Iterable[Any]
    transform_func: Callable[[Any], Any] = lambda item: item

    def get_data(self, indices: list[int] | None = None) -> Iterator[Any]:
        items = list(self.data_source)
        return iter(items if indices is None else [items[index] for index in indices])


def quantize_with_accuracy_control(
    model: Layered,
    calibration_dataset: Dataset,
    validation_dataset: Dataset,
    validation_fn: Callable[[Any, Iterable[Any]], tuple[float, list[float]]],
    max_drop: float = 0.01,
) -> Layered:
    """Everything in int8, then layers back in floating point until the drop is small enough."""

    def measured(candidate: Layered, indices: list[int] | None = None) -> float:
        metric, values = validation_fn(candidate.compiled(), validation_dataset.get_data(indices))
        assert isinstance(metric, float)
        assert all(isinstance(value, float) for value in values)
        assert len(values) == len(list(validation_dataset.get_data(indices)))
        return metric

    measured(model, [0])  # one item first, to see what the function returns
    wanted = measured(model) - max_drop
    small = Layered(frozenset(COST))
    while measured(small) < wanted:
        rest = [Layered(small.int8 - {layer}) for layer in sorted(small.int8)]
        # Layers are ranked on a part of the data: here on the batches that lost something.
        small = max(rest, key=lambda candidate: measured(candidate, [0, 9]))
    return small


def accuracy(model: Any, batches: Iterable[Any]) -> tuple[float, list[float]]:
    """What is usually given: the share of right answers, as a whole and by batch."""
    right = [model(images)[0].argmax(axis=1) == label for images, label, _, _ in batches]
    return float(np.concatenate(right).mean()), [float(batch.mean()) for batch in right]


# --- a loop of the shape of transformers.Trainer --------------------------------------------------

# What the pruned network gets wrong in each epoch: nothing, two of A, seven of B too, many of both.
LOST = [
    NUMBERS[:0],
    NUMBERS[:2],
    np.r_[NUMBERS[:2], NUMBERS[-7:]],
    np.r_[NUMBERS[:60], NUMBERS[-30:]],
]


@dataclass
class Network:
    epoch: int = 0  # how far it is pruned


class TrainerCallback:
    def on_epoch_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> Any: ...

    def on_evaluate(self, args: Any, state: Any, control: Any, **kwargs: Any) -> Any: ...


class PruneMore(TrainerCallback):
    def on_epoch_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        kwargs["model"].epoch = state.epoch


@dataclass
class TrainingArguments:
    output_dir: str
    eval_strategy: str
    save_strategy: str


@dataclass
class Trainer:
    """Evaluates after every epoch, then asks the callbacks, then saves, then perhaps stops."""

    model: Network
    args: TrainingArguments
    train_dataset: Any
    eval_dataset: Ints
    compute_metrics: Callable[[Any], dict[str, float]]
    callbacks: list[TrainerCallback]
    saved: list[int] = field(default_factory=list)  # epochs

    def train(self) -> None:
        assert (self.args.eval_strategy, self.args.save_strategy) == ("epoch", "epoch")
        control = SimpleNamespace(should_training_stop=False, should_save=False)
        for epoch in range(len(LOST)):
            state = SimpleNamespace(epoch=epoch)
            control = self.call("on_epoch_begin", state, control)
            control.should_save = True
            found = self.compute_metrics(
                SimpleNamespace(
                    predictions=logits(self.eval_dataset, LOST[self.model.epoch]),
                    label_ids=LABEL[self.eval_dataset],
                )
            )
            metrics = {f"eval_{name}": value for name, value in found.items()}
            control = self.call("on_evaluate", state, control, metrics=metrics)
            if control.should_save:
                self.saved.append(epoch)
            if control.should_training_stop:
                break

    def call(self, event: str, state: Any, control: Any, **given: Any) -> Any:
        for callback in self.callbacks:
            answer = getattr(callback, event)(self.args, state, control, model=self.model, **given)
            control = control if answer is None else answer  # None leaves things as they are
        return control


# --- the page, with the stand-ins in the libraries' places ----------------------------------------


def module(name: str, **members: Any) -> ModuleType:
    made = ModuleType(name)
    vars(made).update(members)
    return made


@pytest.fixture(scope="module")
def page() -> Iterator[dict[str, Any]]:
    """The names of the page after all its code has run, blocks that need the libraries too."""
    names: dict[str, Any] = {
        "validation_batches": [(part, LABEL[part], GROUP[part]) for part in np.split(NUMBERS, 10)],
        "calibration_images": NUMBERS[:100],
        "network": Network(),
        "prune_more": PruneMore(),
        "train_dataset": NUMBERS,
        "eval_dataset": NUMBERS,
    }

    class Core:
        def read_model(self, path: str) -> Layered:
            assert path == "model.xml"
            return Layered()

    stands_in = [
        module(
            "nncf",
            Dataset=Dataset,
            quantize_with_accuracy_control=quantize_with_accuracy_control,
        ),
        module("openvino", Core=Core, compile_model=Layered.compiled),
        module(
            "transformers",
            Trainer=Trainer,
            TrainerCallback=TrainerCallback,
            TrainingArguments=TrainingArguments,
        ),
    ]
    blocks = FENCED.findall(PAGE.read_text(encoding="utf-8"))
    # `py`: what needs a library that is not installed, which other tests of pages leave out.
    assert [language for language, _ in blocks] == [
        "python",
        "python",
        "py",
        "python",
        "py",
        "python",
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(fw.audit.__kwdefaults__, "n_boot", 40)
        for made in stands_in:
            patch.setitem(sys.modules, made.__name__, made)
        for _, body in blocks:
            exec(compile(body, PAGE.name, "exec"), names)
        yield names


def test_quantisation_keeps_another_layer(page: dict[str, Any]) -> None:
    """All in int8: 9 of 1,000 answers lost, but 8 of B's 100. Without the stem: 1 of A's 900."""
    validation = Dataset(page["validation"])
    everything = Layered(frozenset({"head", "stem"})).compiled()
    dense = accuracy(Layered().compiled(), validation.get_data())[0]
    assert dense - accuracy(everything, validation.get_data())[0] == pytest.approx(9 / 1000)
    assert page["worst_group"](everything, validation.get_data())[0] == pytest.approx(-8 / 100)

    by_accuracy = quantize_with_accuracy_control(
        Layered(), Dataset([]), validation, accuracy, max_drop=MAX_DROP
    )
    assert by_accuracy.int8 == {"head", "stem"}
    assert page["small"].int8 == {"head"}
    kept = page["small"].compiled()
    assert page["worst_group"](kept, validation.get_data())[0] == pytest.approx(-1 / 900)


def test_a_part_of_the_data_is_measured_as_it_is(page: dict[str, Any]) -> None:
    """NNCF asks for single items and for parts: the last batch of 100 is all of B."""
    validation = Dataset(page["validation"])
    everything = Layered(frozenset({"head", "stem"})).compiled()
    shift, by_batch = page["worst_group"](everything, validation.get_data([0, 9]))
    assert shift == pytest.approx(-8 / 100)
    assert by_batch == pytest.approx([99 / 100, 92 / 100])
    assert page["worst_group"](everything, validation.get_data([0]))[0] == pytest.approx(-1 / 100)


def test_an_item_too_small_for_a_group_gives_nan_and_no_error(page: dict[str, Any]) -> None:
    image = NUMBERS[:1]
    item = (image, LABEL[image], GROUP[image], LABEL[image])
    shift, by_batch = page["worst_group"](Layered().compiled(), [item])
    assert np.isnan(shift)
    assert by_batch == [1.0]


def test_pruning_stops_an_epoch_earlier(page: dict[str, Any]) -> None:
    """Epochs lose 0, 2, 9 and 90 of 1,000 answers, and of B's 100: 0, 0, 7 and 30."""

    def top_line(evaluated: Any) -> dict[str, float]:
        right = evaluated.predictions.argmax(axis=1) == evaluated.label_ids
        return {"worst_group_shift": float(right.mean()) - 1.0}  # the dense model is always right

    by_accuracy = Trainer(
        Network(), page["trainer"].args, NUMBERS, NUMBERS, top_line,
        [PruneMore(), page["StopWhereAGroupPays"](MAX_DROP)],
    )  # fmt: skip
    by_accuracy.train()
    assert by_accuracy.saved == [0, 1, 2]
    assert page["trainer"].saved == [0, 1]
    assert page["network"].epoch == 2  # evaluated, found wanting, not saved


def test_the_callback_stops_where_no_group_can_be_measured(page: dict[str, Any]) -> None:
    control = SimpleNamespace(should_training_stop=False, should_save=True)
    callback = page["StopWhereAGroupPays"](MAX_DROP)
    metrics = {"eval_worst_group_shift": float("nan")}
    returned = callback.on_evaluate(None, None, control, metrics)
    assert returned.should_training_stop
    assert not returned.should_save


@settings(max_examples=50)
@given(
    size=st.lists(st.integers(10, 30), min_size=1, max_size=4),
    seed=st.integers(0, 1000),
)
def test_the_worst_group_never_loses_less_than_all(size: list[int], seed: int) -> None:
    """So that control by it, with the same limit, accepts nothing more: the page says so."""
    rng = np.random.default_rng(seed)
    label, dense, small = rng.integers(0, 2, (3, sum(size)))
    group = np.repeat([f"g{index}" for index in range(len(size))], size)
    shift = fw.worst_group_shift(label, {"dense": dense, "s": small}, sensitive_features=group)
    assert shift <= (small == label).mean() - (dense == label).mean() + 1e-12


def test_a_really_pruned_network_is_chosen_differently() -> None:
    """Few eights in training: pruning costs eights first, and top-line accuracy hardly sees it."""
    torch = pytest.importorskip("torch")
    from fairweight.data.digits import digits
    from fairweight.lab.batches import examples, model_input
    from fairweight.lab.compression.pruner import prune
    from fairweight.lab.compression.registry import spec_of
    from fairweight.lab.loop import train
    from fairweight.specs.training import Training

    data = digits()
    rng = np.random.default_rng(1)
    order = rng.permutation(len(data.labels))
    few = (data.labels != 8) | (rng.random(len(order)) < 0.15)
    taught, asked = order[:1000][few[order[:1000]]], order[1000:]
    torch.manual_seed(1)
    network = torch.nn.Sequential(
        torch.nn.Flatten(), torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10)
    )
    made = train(
        network,
        examples(data.images[taught], data.labels[taught]),
        None,
        Training(epochs=8, batch_size=32, lr=0.05, seed=1),
    )
    label = data.labels[asked]
    images = model_input(examples(data.images[asked], label).images, made.scaling)

    @torch.no_grad()
    def answers(model: Any) -> Ints:
        found: Ints = model.eval()(images).argmax(1).numpy()
        return found

    dense = answers(made.model)
    small = {
        sparsity: answers(prune(made.model, spec_of("global-magnitude", sparsity=sparsity)))
        for sparsity in (0.1, 0.7, 0.95)
    }
    drop = {s: (dense == label).mean() - (found == label).mean() for s, found in small.items()}
    shift = {
        s: fw.worst_group_shift(
            label, {"dense": dense, "small": found}, sensitive_features=data.labels[asked]
        )
        for s, found in small.items()
    }
    assert max(s for s in small if drop[s] <= 0.05) == 0.7
    assert max(s for s in small if shift[s] >= -0.05) == 0.1
