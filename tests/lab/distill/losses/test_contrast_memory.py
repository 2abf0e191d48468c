"""What CRD takes of memory is said before it is taken."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
import torch

from fairweight.errors import InputError
from fairweight.lab.distillation import contrastive
from fairweight.lab.distillation.contrastive import ContrastiveRepresentation, ContrastMemory
from fairweight.lab.distillation.registry import LossSetting


@pytest.fixture
def free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with 0.4 GB."""
    file = tmp_path / "meminfo"
    file.write_text("MemTotal: 900000 kB\nMemAvailable: 400000 kB\n")
    monkeypatch.setattr(contrastive, "_MEMINFO", file)


def test_the_published_setting_by_hand() -> None:
    needed = ContrastMemory(50_000, 128, 16_384, 64)
    assert needed.banks == 2 * 4 * 50_000 * 128
    # Copies of 64 × 16,385 rows would take 1.07 GB; copies of both banks and products 90 MB.
    assert needed.multiplies_whole_banks
    assert needed.step == 2 * 4 * 50_000 * 128 + 3 * 4 * 64 * 50_000 + 64 * 64 * 16_385
    assert needed.total == needed.banks + needed.step
    assert str(needed) == (
        "two banks of 50,000 × 128 (51.2 MB) and steps of 64 × 16,384 negatives (156.7 MB)"
    )


def test_few_negatives_of_many_examples_are_copied() -> None:
    needed = ContrastMemory(1_000_000, 128, 16, 64)
    assert not needed.multiplies_whole_banks
    assert needed.step == 2 * 4 * 64 * 17 * 128 + 64 * 64 * 17


def setting(n: int) -> LossSetting:
    shown = {"pooled": torch.ones(2, 8)}
    return LossSetting(torch.arange(n) % 2, shown, shown, 0, 1024)


@pytest.mark.usefixtures("free")
def test_what_does_not_fit_is_refused_with_a_number_that_does() -> None:
    with pytest.raises(InputError) as caught:
        ContrastiveRepresentation(setting(5_000))
    sentence = str(caught.value)
    assert "two banks of 5,000 × 128 (5.1 MB) and steps of 1,024 × 16,384 negatives" in sentence
    # 5.1 MB of banks, 5.1 of copies, 61.4 of products and 64 × 1024 × 16,385 bytes.
    assert "would take 1.1 GB of memory, and 0.4 GB are free" in sentence
    assert "use fewer negatives: options = {crd = {negatives = 4096}}" in sentence
    ContrastiveRepresentation(setting(5_000), negatives=4096)
    with pytest.raises(InputError):
        ContrastiveRepresentation(setting(5_000), negatives=8192)


@pytest.mark.usefixtures("free")
def test_banks_that_do_not_fit_are_refused_whatever_the_negatives() -> None:
    with pytest.raises(InputError, match="the banks alone need more: train with fewer examples"):
        ContrastiveRepresentation(setting(500_000))


@pytest.mark.usefixtures("free")
def test_memory_is_stated_before_it_is_refused(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO), pytest.raises(InputError):
        ContrastiveRepresentation(setting(500_000))
    assert "The loss 'crd' takes two banks of 500,000 × 128 (512.0 MB)" in caplog.text
