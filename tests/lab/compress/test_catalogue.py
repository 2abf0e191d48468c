"""What people are told of methods is what the code does."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from pydantic.dataclasses import dataclass

from fairweight.lab.compression.descriptions import FORMULAS, catalogue, schedules
from fairweight.lab.compression.registry import method, spec_of, unregister
from fairweight.lab.compression.schedules import due, iterative, n_rounds, updates
from fairweight.specs.compression import (
    AGP,
    GMP,
    GMP_PRETRAINED,
    Iterative,
    OneShot,
    Polynomial,
    ToSparsity,
    ZhuGupta,
)

GRADUAL = [
    AGP(),
    AGP(initial=0.2, start=3, end=41, every=7),
    GMP(),
    GMP_PRETRAINED,
    ZhuGupta(),
    Polynomial(end=1000),
    Polynomial(end=950, start=30, every=70, power=2, initial=0.3),
]


def computed(schedule: str, /, **names: Any) -> float:
    value: float = eval(FORMULAS[schedule].removed, {"min": min}, names)
    return value


@pytest.mark.parametrize("schedule", GRADUAL)
@pytest.mark.parametrize("sparsity", [0.45, 0.99])
def test_the_formulas_of_gradual_schedules(schedule: Any, sparsity: float) -> None:
    moments = updates(schedule)
    assert len(moments) > 3
    for number, t in enumerate(moments, start=1):
        told = computed(schedule.kind, t=t, sparsity=sparsity, **dataclasses.asdict(schedule))
        if number == len(moments):
            told = sparsity  # as the text says of the last update
        assert due(schedule, sparsity, number).amount == pytest.approx(told, abs=1e-12)


def test_the_formulas_of_the_others() -> None:
    assert due(OneShot(), 0.7, 1).amount == computed("one-shot", sparsity=0.7)
    rounds = n_rounds(0.5)
    reached = [computed("iterative", t=t, sparsity=0.5, share=0.2) for t in range(1, rounds + 1)]
    assert reached[:-1] == [iterative(t) for t in range(1, rounds)]
    left = 1.0
    for number, told in enumerate(reached, start=1):
        left *= 1 - due(Iterative(), 0.5, number).amount  # a share of what remains
        assert 1 - left == pytest.approx(told)


def test_every_schedule_has_a_formula() -> None:
    assert [schedule.name for schedule in schedules()] == list(FORMULAS)


def test_the_defaults_of_an_entry_are_those_of_its_spec() -> None:
    for entry in catalogue():
        values: dict[str, float] = {"sparsity": 0.5, "bits": 4}
        required = {field.name: values[field.name] for field in entry.fields if field.required}
        spec = spec_of(entry.name, **required)
        told = {field.name: field.default for field in entry.fields} | required
        for name, value in dataclasses.asdict(spec).items():
            if name == "schedule" and isinstance(told[name], str):
                value = value["kind"]
            assert told[name] == value, (entry.name, name)


def test_a_method_with_fields_that_must_be_given() -> None:
    """Of another package: nothing can be tried, so that nothing is ruled out."""

    @dataclass(frozen=True, kw_only=True)
    class Scored(ToSparsity):
        """By a table.

        Parameters
        ----------
        table
            A file of scores.
        """

        table: str

    method("test-scored", spec=Scored, summary="By a table")(lambda model, spec, step: {})
    try:
        (entry,) = (entry for entry in catalogue() if entry.name == "test-scored")
    finally:
        unregister("test-scored")
    assert [(f.name, f.meaning) for f in entry.fields if f.required][-1] == (
        "table",
        "A file of scores.",
    )
    assert entry.schedules == schedules()
