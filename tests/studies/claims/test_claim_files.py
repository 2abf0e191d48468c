"""The claims that come with fairweight: they parse, and name what their laptop study has."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from fairweight.auditing.metrics import registry
from fairweight.auditing.schema import AUDIT_TABLES, TABLES, column_names
from fairweight.errors import InputError
from fairweight.runs.plan import Plan, plan
from fairweight.specs.claims import Claim
from fairweight.studies import library
from fairweight.studies.claims import CHANGE_FITS, table_of

MITIGATIONS = ("-thresholds", "-overrides")
STUDIES = library.with_claims()
KNOWN = {
    **{name: column_names(name) for name in TABLES},
    CHANGE_FITS: column_names("individual_fits"),
}


@pytest.fixture(scope="module", params=STUDIES)
def written(request: pytest.FixtureRequest) -> tuple[Plan, tuple[Claim, ...]]:
    name = str(request.param)
    return plan(library.study(name, "laptop")), library.claims(name).claim


def test_the_five_papers_have_claims() -> None:
    assert STUDIES == [
        "characterising-bias", "prune-responsibly", "pruned-vision-bias", "resource-efficient",
        "simon-says",
    ]  # fmt: skip
    with pytest.raises(InputError, match=r"'mnist-lenet' has no claims .* characterising-bias"):
        library.claims("mnist-lenet")


def sides(claim: Claim) -> Iterator[tuple[str, dict[str, Any]]]:
    """The folder and the rows of a claim, and those that are subtracted."""
    if claim.folder is None:
        return
    yield claim.folder, dict(claim.where)
    if claim.against is not None:
        other = dict(claim.where)
        for old, new in claim.against.replace.items():
            other = {
                key: tuple(str(v).replace(old, new) for v in value)
                if isinstance(value, tuple)
                else value
                for key, value in other.items()
            }
        yield claim.against.folder or claim.folder, other | dict(claim.against.where)


def texts(where: dict[str, Any], column: str) -> list[str]:
    value = where.get(column, ())
    return [str(v) for v in (value if isinstance(value, tuple) else (value,)) if v != "*"]


def test_folders_and_variants_are_planned(written: tuple[Plan, tuple[Claim, ...]]) -> None:
    made, claims = written
    for claim in claims:
        for folder, where in sides(claim):
            if folder == "classes":
                assert made.classes is not None
                continue
            name = folder
            for ending in MITIGATIONS:
                name = name.removesuffix(ending)
            assert name in made.experiments, claim.id
            experiment = made.experiments[name]
            assert experiment.audit or name != folder, claim.id
            variants = {model.variant for model in made.of(name)}
            for variant in texts(where, "variant"):
                assert variant.partition("+")[0] in variants, claim.id
            for task in texts(where, "task"):
                assert task in experiment.data.tasks, claim.id


def test_tables_columns_and_metrics_exist(written: tuple[Plan, tuple[Claim, ...]]) -> None:
    metrics = {entry.name for entry in registry.metrics()}
    for claim in written[1]:
        if claim.folder is None:
            continue
        columns = KNOWN[table_of(claim)]
        extra = {"seed", "rank"} if claim.against is not None else set()
        named = {*claim.where, *claim.each, *(claim.against.where if claim.against else ())}
        assert named <= {*columns, *extra}, claim.id
        assert claim.value is None or claim.value in columns, claim.id
        assert claim.mean_over is None or claim.mean_over in columns, claim.id
        for _, where in sides(claim):
            assert set(texts(where, "metric")) <= metrics, claim.id


def test_groups_are_columns_of_the_experiment(written: tuple[Plan, tuple[Claim, ...]]) -> None:
    made, claims = written
    for claim in claims:
        if claim.folder not in made.experiments or table_of(claim) not in AUDIT_TABLES:
            continue
        groups = made.experiments[claim.folder].groups
        if groups is None:
            continue
        for _, where in sides(claim):
            for name in texts(where, "group"):
                for part in name.split(" & "):
                    assert part.partition("=")[0] in groups, claim.id


def test_every_line_is_a_list_that_is_named(written: tuple[Plan, tuple[Claim, ...]]) -> None:
    """What is not stored is missed only where it is listed."""
    for claim in written[1]:
        listed = {column for column, value in claim.where.items() if isinstance(value, tuple)}
        assert set(claim.each) <= listed, claim.id
        assert listed - set(claim.each) <= {"against"}, claim.id
