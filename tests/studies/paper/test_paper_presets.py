"""Every kind of stage of every `paper` preset runs: two steps each, on tiny official files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from fairweight.runs.plan import StudyPlan, plan
from fairweight.runs.runner import News, run
from fairweight.runs.stage import Stage
from fairweight.runs.store import Store
from fairweight.specs.study import Study
from fairweight.studies.library import names, presets, study
from fairweight.studies.publication import publish

from .official_files import write_all
from .shortened import EPOCHS, in_pairs, shortened
from .stage_kinds import kinds

torch = pytest.importorskip("torch")

PRESET = "paper"
SWEEP = "prune-responsibly"  # 51,264 models: kinds of stages meet in pairs
CASE_STUDY = "global"  # on QMNIST, beside the sweep
ALL_KINDS = [name for name in names() if PRESET in presets(name) and name != SWEEP]


@pytest.fixture(scope="module")
def official(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_all(tmp_path_factory.mktemp("official"))


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Counter[str]]:
    """Steps of optimisers so far, by `taken`; decoded images stay below the test's folder."""
    from torch.optim.optimizer import register_optimizer_step_post_hook

    monkeypatch.setenv("FAIRWEIGHT_CACHE", str(tmp_path / "decoded"))
    counted: Counter[str] = Counter()
    hook = register_optimizer_step_post_hook(lambda *_: counted.update(["taken"]))
    yield counted
    hook.remove()


def due(stage: Stage) -> int:
    """Steps that a stage must take: those of its training, and of a stage before it (FSP)."""
    if stage.kind == "compress":
        return EPOCHS if stage.spec["finetune"] is not None else 0
    if stage.kind != "train":
        return 0
    taught = stage.spec.get("distill") or {"losses": ""}
    return EPOCHS * (2 if "fsp" in taught["losses"].split("+") else 1)


def run_all(planned: StudyPlan, store: Store, data: Path, steps: Counter[str]) -> None:
    """Run a plan in this process; every stage must end, with the steps that are due."""
    before: dict[str, int] = {}
    wrong: list[str] = []

    def told(news: News) -> None:
        if news.event == "started":
            before[news.stage.key] = steps["taken"]
        elif news.event == "done":
            taken = steps["taken"] - before[news.stage.key]
            if taken != due(news.stage):
                wrong.append(f"{news.stage.label}: {taken} steps")
        elif news.event == "failed":
            wrong.append(f"{news.stage.label}: {news.words}")

    outcome = run(planned.stages.values(), store, workers=0, data=data, progress=told)
    assert wrong == []
    assert set(outcome.done) == set(planned.stages)


def test_all_five_papers_have_the_preset() -> None:
    assert {*ALL_KINDS, SWEEP} == {
        "characterising-bias", "prune-responsibly", "pruned-vision-bias", "resource-efficient",
        "simon-says",
    }  # fmt: skip


@pytest.mark.parametrize("name", ALL_KINDS)
def test_nothing_is_forgotten_when_a_study_is_shortened(name: str) -> None:
    whole = study(name, PRESET)
    few = tuple(replace(one, members=min(one.members, 2)) for one in whole.experiment)
    assert kinds(plan(shortened(whole))) == kinds(plan(replace(whole, experiment=few)))


def test_in_a_sweep_any_two_of_network_data_and_copy_meet() -> None:
    short = shortened(study(SWEEP, PRESET))
    every, some = _met(short), _met(in_pairs(short))
    every = {met for met in every if met[2] != CASE_STUDY}
    some = {met for met in some if met[2] != CASE_STUDY}
    networks, data, copies = (sorted(set(values)) for values in zip(*every, strict=True))
    assert len(every) == len(networks) * len(data) * len(copies) == 4 * 8 * 14
    assert {(network, one) for network, one, _ in some} == set(product(networks, data))
    assert {(network, copy) for network, _, copy in some} == set(product(networks, copies))
    assert {(one, copy) for _, one, copy in some} == set(product(data, copies))


def _met(short: Study) -> set[tuple[str, str, str]]:
    """Architectures, data sets and names of copies that belong together."""
    return {
        (one.model.architecture, one.data.name, str(copy.name))
        for one in short.experiment
        for copy in one.copies
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", [*ALL_KINDS, SWEEP])
def test_every_kind_of_stage_takes_two_steps(
    name: str, official: Path, steps: Counter[str], tmp_path: Path
) -> None:
    short = shortened(study(name, PRESET))
    planned = plan(in_pairs(short) if name == SWEEP else short)
    store = Store(tmp_path / "store")
    run_all(planned, store, official, steps)
    published = publish(planned, store, tmp_path / "results")
    assert {folder.name for folder in published} >= set(planned.audits)
