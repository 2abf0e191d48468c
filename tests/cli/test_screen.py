"""Progress without a terminal: lines, also before the first step."""

from __future__ import annotations

import time

import pytest

from fairweight.cli import screen


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(screen, "LINE_EVERY", 0.05)


def lines(capsys: pytest.CaptureFixture[str], least: int) -> list[str]:
    """What was said once so many lines are there; two seconds are enough on any machine."""
    told: list[str] = []
    for _ in range(200):
        told += capsys.readouterr().err.splitlines()
        if len(told) >= least:
            break
        time.sleep(0.01)
    assert len(told) >= least
    return told


def test_a_long_call_says_what_it_does_before_its_first_step(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with screen.bar() as move:
        assert lines(capsys, 2)[0].startswith("… reading and aligning (")
        move("counting", 3, 8)
        assert "counting: 3 of 8 (" in lines(capsys, 2)[-1]
    capsys.readouterr()
    time.sleep(0.15)
    assert capsys.readouterr().err == ""  # it ends with the work


def test_training_says_its_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    with screen.training_bar("training dense, seed 0") as move:
        assert "training dense, seed 0: reading data (" in lines(capsys, 1)[0]
        move({"loss": 0.5, "accuracy": 0.75}, 10, 40)
        said = lines(capsys, 2)[-1]
    assert "training dense, seed 0: 10 of 40, loss 0.500 · accuracy 75.0 % (" in said


def test_quick_work_and_a_terminal_have_no_lines(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(screen, "LINE_EVERY", 10.0)
    with screen.bar() as move:
        move("counting", 1, 1)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(screen, "LINE_EVERY", 0.01)
    monkeypatch.setenv("FORCE_COLOR", "1")
    with screen.bar():
        time.sleep(0.1)
    assert "… " not in capsys.readouterr().err
