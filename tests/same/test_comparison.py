"""`make same` finds what differs, names it, and ends with 1."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from . import __main__ as command
from . import comparison
from .audits import AUDITS
from .comparison import by_column, cells, differences, first_of, flat, made_again
from .inside import all_presets, figure_ids, planned
from .pages import numbers, pictures
from .studies import CLAIMS, NAMES, SMOKE, STAGES, digest, keys, place_of, stored

ROOT = Path(__file__).resolve().parents[2]


def tiny() -> dict[str, pd.DataFrame]:
    """Two rows of results, and a frame without rows."""
    results = pd.DataFrame(
        {
            "variant": "int8",
            "metric": "accuracy",
            "group": ["sex=F", "sex=M"],
            "n": [40, 60],
            "shift": [-0.025, np.nan],
            "status": ["ok", "small_group: n < 100"],
        }
    )
    return {"results": results, "power": pd.DataFrame(columns=["variant", "n"])}


def found(changed: dict[str, pd.DataFrame]) -> pd.DataFrame:
    return differences(cells(tiny()), cells(changed))


def with_results(**columns: object) -> dict[str, pd.DataFrame]:
    return tiny() | {"results": tiny()["results"].assign(**columns)}


def test_nothing_differs_from_itself_nor_by_rounding_nor_by_order() -> None:
    assert found(tiny()).empty
    # −0.025 · (1 + 8e-13) is within a relative 1e-12; NaN equals NaN.
    assert found(with_results(shift=[-0.025 * (1 + 8e-13), np.nan])).empty
    assert found(tiny() | {"results": tiny()["results"][::-1]}).empty
    assert found(dict(reversed(tiny().items()))).empty


def test_a_changed_number_is_named() -> None:
    differing = found(with_results(shift=[-0.025 * (1 + 2e-12), np.nan]))
    assert len(differing) == 1
    assert first_of(differing) == (
        "results, row 'int8, accuracy, sex=F', column shift: stored -0.025, now -0.02500000000005"
    )
    assert by_column([differing, differing]) == ["results, changed: shift 2"]


@pytest.mark.parametrize("value", [0.0, -np.inf, 1e-9])
def test_a_number_in_the_place_of_nan_or_nan_in_its_place_differs(value: float) -> None:
    assert list(found(with_results(shift=[-0.025, value]))["column"]) == ["shift"]
    assert list(found(with_results(shift=[value, np.nan]))["column"]) == ["shift"]


def test_infinity_is_equal_to_itself_alone() -> None:
    before, after = (cells(with_results(shift=[np.inf, low])) for low in (np.inf, -np.inf))
    assert differences(before, before).empty
    assert len(differences(before, after)) == 1
    assert len(differences(before, cells(with_results(shift=[np.inf, 5.0])))) == 1


def test_shrunk_individuals_are_compared_to_six_digits() -> None:
    def people(shift: float) -> pd.DataFrame:
        return cells({"why/individuals": pd.DataFrame({"individual": ["7"], "shift": [shift]})})

    assert differences(people(0.5), people(0.5 + 4e-7)).empty
    assert len(differences(people(0.5), people(0.5 + 6e-7))) == 1


def test_a_missing_row_and_an_added_one_are_found() -> None:
    gone = found(tiny() | {"results": tiny()["results"][:1]})
    assert set(gone["row"]) == {"int8, accuracy, sex=M"}
    assert by_column([gone]) == ["results, missing: n 1, shift 1, status 1"]
    assert first_of(gone).endswith("column n: stored 60.0, now missing")
    again = tiny() | {"results": pd.concat([tiny()["results"], tiny()["results"][:1]])}
    assert set(found(again)["row"]) == {"int8, accuracy, sex=F #2"}
    filled = tiny() | {"power": pd.DataFrame({"variant": ["int8"], "n": [3]})}
    assert by_column([found(filled)]) == ["power, missing: (no rows) 1", "power, added: n 1"]


def test_rows_that_are_only_names_count_too() -> None:
    before, after = ({"f": pd.DataFrame({"variant": names})} for names in (["a", "b"], ["a"]))
    assert list(differences(cells(before), cells(after))["row"]) == ["b"]
    bare = cells({"f": pd.DataFrame({"count": [3, 4]})})
    assert list(bare["row"]) == ["#1", "#2"]


def test_a_changed_text_is_found() -> None:
    differing = found(with_results(status=["ok", "ok"]))
    assert first_of(differing) == (
        "results, row 'int8, accuracy, sex=M', column status: "
        "stored 'small_group: n < 100', now 'ok'"
    )
    assert len(found(with_results(status=["ok", None]))) == 1
    assert len(found(with_results(n=["40", "60"]))) == 2  # a text is no number


def test_columns_and_frames_that_come_or_go_are_found() -> None:
    assert by_column([found(with_results(churn=[0.1, np.nan]))]) == ["results, added: churn 2"]
    dropped = tiny() | {"results": tiny()["results"].drop(columns="n")}
    assert by_column([found(dropped)]) == ["results, missing: n 2"]
    assert by_column([found({"results": tiny()["results"]})]) == ["power, missing: (no rows) 1"]
    more = tiny() | {"verdict": flat({"outcome": "pass", "passing": ["int8"]})}
    assert by_column([found(more)]) == ["verdict, added: value 2"]
    other = tiny() | {"power": pd.DataFrame(columns=["variant"])}
    assert by_column([found(other)]) == ["power, changed: (no rows) 1"]


def test_the_command_stores_compares_and_ends_with_1_where_something_differs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = {"tiny": lambda folder: tiny()}
    monkeypatch.setattr(command, "AUDITS", made)
    for module in (command, comparison):
        monkeypatch.setattr(module, "VALUES", tmp_path / "values")
    assert command.main(["--jobs", "1"]) == 1
    assert "not stored" in capsys.readouterr().out
    assert command.main(["--store"]) == 0
    assert command.main(["tiny"]) == 0
    assert capsys.readouterr().out.endswith("The same.\n")

    made["tiny"] = lambda folder: with_results(n=[41, 60])
    assert command.main([]) == 1
    told = capsys.readouterr().out
    assert "tiny: 1 of 7 values differ; the first:\n  results, row 'int8, acc" in told
    assert (
        "column n: stored 40.0, now 41.0\nDifferences by column:\n  results, changed: n 1" in told
    )

    made["tiny"] = lambda folder: {}["gone"]
    assert command.main(["--store"]) == 1
    assert "tiny: could not be made\nTraceback" in capsys.readouterr().out
    del made["tiny"]
    made["other"] = lambda folder: tiny()
    assert command.main(["--store"]) == 0
    assert [path.name for path in (tmp_path / "values").iterdir()] == ["other.parquet"]
    with pytest.raises(SystemExit, match="2"):
        command.main(["tiny"])


@pytest.mark.slow  # `make check` works with two processes; failures of one are told below
def test_processes_find_the_same_as_one_and_a_failure_in_one_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for module in (command, comparison):
        monkeypatch.setattr(module, "VALUES", tmp_path / "values")
    monkeypatch.setattr(command, "AUDITS", {"good": good, "bad": bad, "again": good})
    assert command.main(["--store", "--jobs", "2"]) == 1
    told = capsys.readouterr().out
    # In the order of their names, whoever was ready first.
    assert told.index("good: 7 of 7") < told.index("bad: could not be made")
    assert told.index("bad: could not be made") < told.index("again: 7 of 7")
    assert "ZeroDivisionError" in told
    assert sorted(path.stem for path in (tmp_path / "values").iterdir()) == ["again", "good"]
    with pytest.raises(SystemExit, match="2"):
        command.main(["--jobs", "0"])


def good(folder: Path) -> dict[str, pd.DataFrame]:
    assert not list(folder.iterdir())
    return tiny()


def bad(folder: Path) -> dict[str, pd.DataFrame]:
    return {"f": pd.DataFrame({"n": [1 // 0]})}


def test_an_audit_that_cannot_be_made_says_why() -> None:
    made = made_again("bad", bad)
    assert made.values is None
    assert made.error.endswith("ZeroDivisionError: integer division or modulo by zero\n")


def test_numbers_of_a_text_are_counted_and_its_words_are_not() -> None:
    said = numbers("Women lose 3.1 points (−1.2 to 5), men 3.1; 12 % of 1,200.")
    assert dict(zip(said["part"], said["value"], strict=True)) == {
        "3.1": 2, "−1.2": 1, "5": 1, "12 %": 1, "1,200": 1,
    }  # fmt: skip
    assert numbers("Made of '/some/x7/dense3.csv' with 0.1.0 and 1.2.3.dev4.").empty
    assert differences(cells({"t": numbers("a 1")}), cells({"t": numbers("b 1")})).empty
    assert len(differences(cells({"t": numbers("a 1")}), cells({"t": numbers("a 2")}))) == 2


def test_of_pictures_the_numbers_of_marks_are_read(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "F.svg").write_text(
        '<svg xmlns="http://www.w3.org/2000/svg"><path aria-label="shift: 0.25; n: 7" d="M9,9"/>'
        "</svg>"
    )
    found = pictures(tmp_path)
    assert {name: list(frame["part"]) for name, frame in found.items()} == {
        "in/F.svg": ["0.25", "7"]
    }


def test_every_stage_of_a_smoke_study_that_needs_a_model_is_stored() -> None:
    assert {path.stem for path in STAGES.iterdir()} == set(NAMES)
    assert {path.stem for path in CLAIMS.iterdir()} == set(NAMES)
    assert sum(path.stat().st_size for path in STAGES.iterdir()) < 500_000
    for name in NAMES:
        members, stages = planned(name, SMOKE)
        held = stored(name, members)
        assert set(held) == {
            key for kind, key in stages if kind not in ("audit", "classes", "settings")
        }
        for member in members:
            assert "predictions.parquet" in held[member.stages["asked"]], place_of(member, "asked")


def test_a_key_is_named_by_whose_stage_it_is() -> None:
    named = keys("simon-says")
    assert list(named["part"][-2:]) == ["audit", "audit"]
    before, after = (
        cells({"plan": named}),
        cells({"plan": named.replace(named["key"][0], "0" * 32)}),
    )
    assert first_of(differences(before, after)).startswith(
        "plan, row 'balanced/dense/0/made', column key: stored '"
    )


def test_a_digest_does_not_depend_on_order_and_changes_with_any_key() -> None:
    assert digest(["a", "b"]) == digest(["b", "a"])
    assert len({digest(["a", "b"]), digest(["a", "c"]), digest(["a"]), digest(["ab"])}) == 4


def test_the_keys_of_every_preset_are_stored() -> None:
    held = comparison.read("plans")
    assert held is not None
    assert {frame.partition("/")[0] for frame in held["frame"]} == {
        f"{name} {preset}" for name, preset in all_presets()
    }


def test_every_figure_is_drawn_by_some_audit() -> None:
    drawn: set[str] = set()
    for name in AUDITS:
        held = comparison.read(name)
        assert held is not None
        drawn |= {frame.rpartition("/")[2].partition(" ")[0] for frame in held["frame"].unique()}
    assert set(figure_ids()) - drawn == set()


def test_the_values_of_every_audit_are_stored_and_no_others() -> None:
    assert len(AUDITS) >= 30
    assert {path.name for path in comparison.VALUES.iterdir()} == {f"{n}.parquet" for n in AUDITS}
    sizes = [path.stat().st_size for path in comparison.VALUES.iterdir()]
    assert sum(sizes) < 4_000_000
    for name in AUDITS:
        held = comparison.read(name)
        assert held is not None
        assert list(held.columns) == comparison.CELL
        assert len(held) > 100
        assert not held.duplicated(comparison.PLACE).any()


@pytest.mark.slow
@pytest.mark.parametrize("hash_seed", ["0", "77"])
def test_every_number_is_the_stored_one(hash_seed: str) -> None:
    made = subprocess.run(
        [sys.executable, "-m", "tests.same", "--jobs", "1"],
        cwd=ROOT,
        env=os.environ | {"PYTHONHASHSEED": hash_seed, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 0, made.stdout + made.stderr
