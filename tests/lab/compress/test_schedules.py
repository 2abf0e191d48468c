"""The schedule tables of the papers, and what is due when."""

from __future__ import annotations

import pytest

from fairweight.lab.compression.schedules import (
    Step,
    agp,
    due,
    gmp,
    iterative,
    n_rounds,
    n_updates,
    n_updates_in_all,
    polynomial,
    updates,
    zhu_gupta,
)
from fairweight.specs.compression import (
    AGP,
    GMP,
    GMP_PRETRAINED,
    GMP_RANDOM_INIT,
    GMP_RANDOM_INIT_SHORT,
    Iterative,
    OneShot,
    Polynomial,
    Schedule,
    ZhuGupta,
)

# Simon Says, final .45: epochs 1, 6, …, 116.
AGP_45 = [
    .1, .1437, .1836, .2199, .2527, .2822, .3087, .3322, .3529, .3711, .3868, .4003,
    .4117, .4212, .4290, .4353, .4401, .4438, .4464, .4482, .4492, .4498, .4500, .4500,
]  # fmt: skip

GRADUAL: list[Schedule] = [
    AGP(),
    GMP_RANDOM_INIT,
    GMP_RANDOM_INIT_SHORT,
    GMP_PRETRAINED,
    ZhuGupta(),
    Polynomial(end=1050),
]


def test_agp_is_the_table_of_simon_says() -> None:
    assert [round(agp(epoch, final=0.45), 4) for epoch in range(1, 117, 5)] == AGP_45


def test_agp_holds_between_its_updates_and_after() -> None:
    assert agp(0, final=0.45) == 0
    assert agp(10, final=0.45) == agp(6, final=0.45) != agp(11, final=0.45)
    assert agp(116, final=0.45) == agp(240, final=0.45) == 0.45
    assert list(updates(AGP())) == list(range(1, 117, 5))


def test_gmp_acts_at_the_published_epochs() -> None:
    assert list(updates(GMP_RANDOM_INIT)) == [10, 20, 30, 40, 50, 60, 70, 80]
    assert list(updates(GMP_RANDOM_INIT_SHORT)) == list(range(2, 16))
    assert list(updates(GMP_PRETRAINED))[-1] == 57


def test_gmp_follows_its_formula() -> None:
    # .9 - (.9 - .05) (1 - (40 - 10) / 71)³
    assert gmp(40, final=0.9) == pytest.approx(0.9 - 0.85 * (41 / 71) ** 3)
    assert gmp(10, final=0.9) == pytest.approx(0.05)
    assert gmp(9, final=0.9) == 0


def test_gmp_as_published_never_quite_arrives_and_ours_does() -> None:
    published = gmp(79, final=0.99, start=1, every=4, end=60, finish=False)
    assert round(published, 5) == 0.98988  # .99 - .94 (3 / 59)³
    assert gmp(79, final=0.99, start=1, every=4, end=60) == 0.99
    assert gmp(99, final=0.9) == 0.9


def test_zhu_gupta_is_cubic_by_step() -> None:
    assert list(updates(ZhuGupta())) == list(range(1000, 9001, 500))
    assert len(updates(ZhuGupta())) == 17
    # .9 (1 - (1 - 2000 / 8000)³) = .9 (1 - .421875)
    assert zhu_gupta(3000, final=0.9) == pytest.approx(0.9 * 0.578125)
    assert zhu_gupta(3499, final=0.9) == zhu_gupta(3000, final=0.9)
    assert zhu_gupta(1000, final=0.9) == pytest.approx(0)
    assert zhu_gupta(9000, final=0.9) == zhu_gupta(10_000, final=0.9) == 0.9


def test_polynomial_is_tfmots() -> None:
    # From .5 to .8 by power 3 at a quarter of the way: .8 - .3 · .75³ = .8 - .3 · .421875
    value = polynomial(250, final=0.8, initial=0.5, end=1000, every=50)
    assert value == pytest.approx(0.8 - 0.3 * 0.421875)
    # 1,050 is no multiple of 100: tfmot's last update is at 1,000, 1/21 of the way left.
    left = polynomial(2000, final=0.8, end=1050, finish=False)
    assert left == pytest.approx(0.8 - 0.8 / 21**3)
    assert polynomial(1000, final=0.8, end=1050) == 0.8


def test_iterative_is_a_share_of_what_remains() -> None:
    assert iterative(0) == 0
    assert iterative(3) == pytest.approx(1 - 0.8 * 0.8 * 0.8)
    assert round(iterative(19), 5) == 0.98559
    assert round(iterative(20), 5) == 0.98847


@pytest.mark.parametrize("rounds", range(40))
def test_rounds_are_found_in_the_sparsity(rounds: int) -> None:
    assert n_rounds(iterative(rounds)) == rounds


def test_the_last_round_takes_only_what_is_left_to_take() -> None:
    # After three rounds .512 remains; .5 is reached by removing 1 - .5 / .512 of that.
    schedule = Iterative()
    steps = [due(schedule, 0.5, update) for update in (1, 2, 3, 4)]
    assert [step.amount for step in steps[:3]] == [0.2, 0.2, 0.2]
    assert steps[3].amount == pytest.approx(1 - 0.5 / 0.512)
    assert {step.of for step in steps} == {"remaining"}
    assert due(schedule, iterative(19), 19).amount == pytest.approx(0.2)


@pytest.mark.parametrize("schedule", GRADUAL, ids=lambda s: s.kind)
@pytest.mark.parametrize("sparsity", [0.0, 0.02, 0.9, 1.0])
def test_gradual_schedules_never_fall_and_arrive(schedule: Schedule, sparsity: float) -> None:
    amounts = [
        due(schedule, sparsity, update).amount
        for update in range(1, n_updates_in_all(schedule, sparsity) + 1)
    ]
    assert amounts == sorted(amounts)
    assert amounts[-1] == sparsity


def test_updates_come_due_by_epoch_or_by_step() -> None:
    def count(schedule: Schedule, epoch: int, steps: int) -> int:
        return n_updates(schedule, 0.5, epoch=epoch, steps=steps)

    # Epochs of AGP count from 1: its first update is before any training.
    assert [count(AGP(), epoch, 0) for epoch in (0, 4, 5, 115, 200)] == [1, 1, 2, 24, 24]
    assert [count(GMP(), epoch, 0) for epoch in (9, 10, 19, 20, 99)] == [0, 1, 1, 2, 8]
    assert [count(ZhuGupta(), 0, s) for s in (999, 1000, 1499, 1500, 99_999)] == [0, 1, 1, 2, 17]
    assert [count(OneShot(epoch=2), epoch, 0) for epoch in (0, 1, 2, 9)] == [0, 0, 1, 1]
    # .5 takes four rounds of 20 %.
    assert [count(Iterative(epochs=2), epoch, 0) for epoch in (0, 1, 2, 5, 8, 99)] == [
        0, 0, 1, 2, 4, 4,
    ]  # fmt: skip


def test_one_shot_passes_on_what_the_share_is_of() -> None:
    assert due(OneShot(of="remaining"), 0.2, 1) == Step(0.2, "remaining", 1)
