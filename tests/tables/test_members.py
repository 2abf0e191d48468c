"""What `--missing drop` leaves out: counted by who lacks it, by label and by group."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import fairweight as fw
from fairweight.auditing.counts.cube_file import read_cubes, write_cube
from fairweight.auditing.counts.group_by import count
from fairweight.errors import InputError
from fairweight.tables.align import align
from fairweight.tables.joins import LeftOutExamples
from fairweight.tables.spec import TableSpec, sources_of


def model(ids: list[int], **more: Any) -> pd.DataFrame:
    """Examples by number: label by parity, the first five are women."""
    i = np.array(ids)
    return pd.DataFrame(
        {
            "example_id": i,
            "label": np.where(i % 2 == 0, "even", "odd"),
            "prediction": np.where(i % 2 == 0, "even", "odd"),
            "sex": np.where(i < 5, "F", "M"),
        }
    ).assign(**more)


def left_out(tables: Any, **more: Any) -> list[LeftOutExamples]:
    with align(
        TableSpec(sources_of(tables), missing="drop", **{"groups": ["sex"]} | more)
    ) as found:
        return list(found.left_out)


def part(
    label: str | None, sex: Any, lacks: str, n: int, weight: float | None = None
) -> LeftOutExamples:
    groups = {} if sex is ... else {"sex": sex}
    return LeftOutExamples(None, label, groups, tuple(lacks.split("+")), n, weight or float(n))


ALL = list(range(10))


def test_nothing_is_left_out_of_complete_tables() -> None:
    shuffled = model(ALL).sample(frac=1, random_state=1)
    assert left_out({"dense": model(ALL), "int8": shuffled}) == []


def test_both_sides() -> None:
    """int8 lacks 0, 2 (women, even) and 7 (a man, odd); dense lacks 9 (a man, odd)."""
    found = left_out({"dense": model(ALL[:9]), "int8": model([1, 3, 4, 5, 6, 8, 9])})
    assert sorted(found, key=str) == sorted(
        [part("even", "F", "int8", 2), part("odd", "M", "int8", 1), part("odd", "M", "dense", 1)],
        key=str,
    )


def test_three_models_each_lack_something() -> None:
    """0 is lacked by b and c, 1 by c alone, 9 is only in b, 8 only in the first."""
    tables = {
        "a": model(ALL[:9]),
        "b": model([1, 2, 3, 4, 5, 6, 7, 9]),
        "c": model([2, 3, 4, 5, 6, 7]),
    }
    found = {(p.label, p.groups["sex"], p.lacks): p.n for p in left_out(tables)}
    assert found == {
        ("even", "F", ("b", "c")): 1,  # 0
        ("even", "M", ("b", "c")): 1,  # 8
        ("odd", "F", ("c",)): 1,  # 1
        ("odd", "M", ("a", "c")): 1,  # 9
    }


def test_a_row_that_several_others_have_is_one_row() -> None:
    tables = {"a": model(ALL[:9]), "b": model(ALL), "c": model(ALL)}
    assert left_out(tables) == [part("odd", "M", "a", 1)]


def test_long_tables_and_seeds() -> None:
    rows = [model(ALL, variant="dense", seed=s) for s in (0, 1)]
    rows += [model(ALL, variant="int8", seed=0), model(ALL[1:], variant="int8", seed=1)]
    assert left_out(pd.concat(rows)) == [part("even", "F", "int8", 1)]


def test_groups_that_nobody_tells_are_unknown() -> None:
    """Only dense has the column: of a row that dense lacks nobody knows the sex."""
    tables = {"dense": model(ALL[:9]), "int8": model(ALL).drop(columns="sex")}
    assert left_out(tables) == [part("odd", ..., "dense", 1)]
    bare = model(ALL)[["example_id", "prediction"]]
    assert left_out({"dense": model(ALL[:9]), "int8": bare}) == [part(None, ..., "dense", 1)]
    # and the other way round: only int8 has the column, and lacks the row
    tables = {"dense": model(ALL).drop(columns="sex"), "int8": model(ALL[:9])}
    assert left_out(tables) == [part("odd", ..., "int8", 1)]


def test_an_examples_table_tells_them() -> None:
    examples = model(ALL)[["example_id", "sex", "label"]]
    tables = {"dense": model(ALL[:9]), "int8": model(ALL)[["example_id", "prediction"]]}
    tables["dense"] = tables["dense"][["example_id", "prediction"]]
    assert left_out(tables, examples=examples) == [part("odd", "M", "dense", 1)]


def test_a_missing_value_is_known_to_be_missing() -> None:
    whole = model(ALL)
    whole.loc[0, "sex"] = None
    assert left_out({"dense": whole, "int8": whole.iloc[1:]}) == [part("even", None, "int8", 1)]


def test_weights_are_added_up() -> None:
    whole = model(ALL, w=2.5)
    found = left_out({"dense": whole, "int8": whole.iloc[3:]}, weight="w")
    assert sorted((p.label, p.n, p.weight) for p in found) == [("even", 2, 5.0), ("odd", 1, 2.5)]


def test_weights_that_are_no_numbers_are_refused_in_words() -> None:
    whole = model(ALL, w="heavy")
    with pytest.raises(InputError, match="weight column 'w' must hold numbers"):
        left_out({"dense": whole, "int8": whole.iloc[3:]}, weight="w")
    for extra in (
        {"dense": whole.iloc[3:], "int8": whole},
        {"dense": whole, "int8": whole.iloc[3:]},
    ):
        with pytest.raises(InputError):
            left_out(extra, weight="w")


def test_values_are_canonical() -> None:
    """A label of 1.0 here and 1 there is one class; text ids beside numbers too."""
    one = model(ALL, label=[float(i % 2) for i in ALL], prediction=[i % 2 for i in ALL])
    other = one.assign(label=[str(i % 2) for i in ALL]).astype({"example_id": str})
    found = left_out({"dense": one.iloc[:9], "int8": other})
    assert [p.label for p in found] == ["1"]


def tables(n: int = 400) -> dict[str, pd.DataFrame]:
    ids = list(range(n))
    sex = np.where(np.arange(n) % 4 == 0, "F", "M")
    site = np.where(np.arange(n) % 3 == 0, "x", "y")
    whole = model(ids, sex=sex, site=site, w=1.0 + (np.arange(n) % 4 == 0))
    return {"dense": whole, "int8": whole[whole["example_id"] % 40 != 0]}


def held(audit: fw.Audit, **keys: Any) -> list[tuple[int, float]]:
    rows = audit.result.left_out
    for name, wanted in keys.items():
        rows = rows[rows[name] == wanted]
    return list(zip(rows["n"].tolist(), rows["n_weighted"].tolist(), strict=True))


def test_the_audit_counts_them_in_every_row_that_they_would_be_in() -> None:
    """10 of 400 are missing (every 40th): women, even, 4 of them at x (0, 120, 240, 360)."""
    groups = ["sex", "site", "sex*site"]
    audit = fw.audit_table(tables(), groups=groups, missing="drop", n_boot=20)
    assert held(audit, kind="overall") == [(10, 10.0)]
    assert held(audit, kind="class", **{"class": "even"}) == [(10, 10.0)]
    assert held(audit, group="sex=F") == [(10, 10.0)]
    assert held(audit, group="site=x") == [(4, 4.0)]
    assert held(audit, kind="intersection", group="sex=F & site=y") == [(6, 6.0)]
    assert held(audit, group="sex=M") == []
    assert set(audit.result.left_out["lacks"]) == {"int8"}


def test_weights_count_in_examples_of_the_rows_own_mean() -> None:
    """Women weigh 2: ten of them are ten among women, and 10 × 2 / mean weight overall."""
    audit = fw.audit_table(tables(), groups=["sex"], weight="w", missing="drop", n_boot=20)
    assert held(audit, group="sex=F") == [(10, 10.0)]
    mean = (90 * 2 + 300) / 390  # of those that are left
    assert held(audit, kind="overall")[0][1] == pytest.approx(20 / mean)


def test_unknown_groups_count_in_every_level() -> None:
    given = tables()
    swapped = {"dense": given["int8"], "int8": given["dense"].drop(columns=["sex", "label"])}
    audit = fw.audit_table(swapped, groups=["sex"], missing="drop", n_boot=20)
    for keys in ({"group": "sex=F"}, {"group": "sex=M"}, {"class": "even"}, {"class": "odd"}):
        assert held(audit, **keys) == [(10, 10.0)]


def test_a_cube_keeps_them_and_cubes_add(tmp_path: Any) -> None:
    with align(TableSpec(sources_of(tables()), groups=["sex"], missing="drop")) as aligned:
        cube = count(aligned)
        for name in ("a", "b"):
            write_cube(cube, tmp_path / name, groupings=("sex",), baseline="dense")
        write_cube(cube, tmp_path / "few", groupings=("sex",), baseline="dense", suppress=100)
    again, _, _ = read_cubes([tmp_path / "a"])
    assert again.left_out == cube.left_out
    both, _, _ = read_cubes([tmp_path / "a", tmp_path / "b"])
    assert sum(p.n for p in both.left_out) == 20
    # Suppressed cells are examples of which nothing is known: one cell here, of at most 99.
    few, _, _ = read_cubes([tmp_path / "few"])
    assert few.left_out == (*cube.left_out, LeftOutExamples(None, None, {}, (), 99, 99.0))
    audit = fw.audit_table(str(tmp_path / "few"), n_boot=20)
    assert set(audit.result.left_out["lacks"]) == {"int8", "(suppressed)"}


def test_suppressing_hides_the_number_and_not_the_fact() -> None:
    audit = fw.audit_table(tables(), groups=["sex", "site"], missing="drop", n_boot=20)
    shown = audit.suppressed().result.left_out
    assert shown["group"].tolist() == audit.result.left_out["group"].tolist()
    n = dict(zip(shown["group"], shown["n"].isna(), strict=True))
    assert n["site=x"]  # 4 of them
    assert not n["sex=F"]  # 10
