"""Specs of compression: what they refuse, and what they write down."""

from __future__ import annotations

import dataclasses
import subprocess
import sys

import pytest
from pydantic import ValidationError

from fairweight.specs.compression import (
    AGP,
    GMP,
    GMP_PRETRAINED,
    GlobalMagnitude,
    Iterative,
    L1Structured,
    L1Unstructured,
    NOfM,
    OneShot,
    Polynomial,
    ZhuGupta,
)


def test_specs_do_not_load_torch() -> None:
    program = "import sys, fairweight.specs.compression; print('torch' in sys.modules)"
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == "False"


@pytest.mark.parametrize("sparsity", [1.5, -0.1, float("nan"), "0.5", True, None])
def test_a_sparsity_is_a_number_from_0_to_1(sparsity: object) -> None:
    with pytest.raises(ValidationError):
        GlobalMagnitude(sparsity=sparsity)


@pytest.mark.parametrize("sparsity", [0, 1, 0.5])
def test_both_ends_are_sparsities(sparsity: float) -> None:
    assert GlobalMagnitude(sparsity=sparsity).sparsity == sparsity


def test_layers_are_written_down() -> None:
    assert GlobalMagnitude(sparsity=0.5).layers == ("*",)
    assert L1Structured(sparsity=0.5).layers == ("*", "!@last")
    assert L1Structured(sparsity=0.5, dim=1).layers == ("*", "!@first")
    assert NOfM().layers == ("*", "!@first")
    assert L1Structured(sparsity=0.5, layers=("conv1",)).layers == ("conv1",)


def test_specs_are_frozen_and_compare_by_value() -> None:
    spec = L1Unstructured(sparsity=0.5)
    with pytest.raises(dataclasses.FrozenInstanceError):
        spec.sparsity = 0.7
    assert spec == L1Unstructured(sparsity=0.5, layers=("*",), schedule=OneShot())
    assert hash(spec) == hash(L1Unstructured(sparsity=0.5))
    assert spec != GlobalMagnitude(sparsity=0.5)


def test_a_schedule_may_be_named() -> None:
    assert L1Unstructured(sparsity=0.5, schedule="zhu-gupta").schedule == ZhuGupta()
    given = {"kind": "gmp", "start": 1, "every": 4, "end": 60}
    assert GlobalMagnitude(sparsity=0.9, schedule=given).schedule == GMP_PRETRAINED


@pytest.mark.parametrize(
    "make",
    [
        lambda: GMP(start=10, end=10),
        lambda: AGP(start=1, end=6, every=5),
        lambda: Polynomial(start=100, end=100),
        lambda: Iterative(epochs=3, rewind_to=3),
        lambda: Iterative(share=1.0),
        lambda: GlobalMagnitude(sparsity=1, schedule=Iterative()),
        lambda: NOfM(n=5, m=4),
        lambda: NOfM(schedule=AGP()),
        lambda: NOfM(schedule=OneShot(of="remaining")),
        lambda: GlobalMagnitude(sparsity=0.5, schedule="never"),
        lambda: GlobalMagnitude(sparsity=0.5, sparsities=0.5),  # type: ignore[call-arg]
    ],
)
def test_what_cannot_be_is_refused(make: object) -> None:
    with pytest.raises(ValidationError):
        make()


def test_n_of_m_says_its_sparsity() -> None:
    assert [NOfM(n=n, m=m).sparsity for n, m in ((2, 4), (1, 4), (1, 8))] == [0.5, 0.75, 0.875]
    assert NOfM(schedule=OneShot(epoch=3)).schedule == OneShot(epoch=3)
