"""The claims that come with fairweight: they parse, and name what their laptop study has."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any

import pytest

from fairweight.auditing.metrics import registry
from fairweight.auditing.schema import AUDIT_TABLES, TABLES, column_names
from fairweight.errors import InputError
from fairweight.runs.plan import StudyPlan, plan
from fairweight.specs.claims import Claims, Part
from fairweight.studies import library
from fairweight.studies.estimates import CHANGE_FITS, LEVEL, table_of

MITIGATIONS = ("-thresholds", "-overrides")
STUDIES = library.with_claims()
KNOWN = {
    **{name: column_names(name) for name in TABLES},
    CHANGE_FITS: column_names("individual_fits"),
}


@pytest.fixture(scope="module", params=STUDIES)
def written(request: pytest.FixtureRequest) -> tuple[StudyPlan, Claims]:
    name = str(request.param)
    return plan(library.study(name, "laptop")), library.claims(name)


def parts(claims: Claims) -> Iterator[tuple[str, Part]]:
    """Every part that the data allow, with the name of its claim."""
    for claim in claims.claim:
        for part in (claim, *claim.also):
            if part.folder is not None:
                yield claim.id, part


def test_the_five_papers_have_claims() -> None:
    assert STUDIES == [
        "characterising-bias", "prune-responsibly", "pruned-vision-bias", "resource-efficient",
        "simon-says",
    ]  # fmt: skip
    with pytest.raises(InputError, match=r"'mnist-lenet' has no claims .* characterising-bias"):
        library.claims("mnist-lenet")


def sides(part: Part) -> Iterator[tuple[str, dict[str, Any]]]:
    """The folder and the rows of a part, and those that are subtracted."""
    yield str(part.folder), dict(part.where)
    if part.against is not None:
        other = dict(part.where)
        for old, new in part.against.replace.items():
            other = {
                key: tuple(str(v).replace(old, new) for v in value)
                if isinstance(value, tuple)
                else value
                for key, value in other.items()
            }
        yield part.against.folder or str(part.folder), other | dict(part.against.where)


def texts(where: dict[str, Any], column: str) -> list[str]:
    value = where.get(column, ())
    values = value if isinstance(value, tuple) else (value,)
    return [str(v) for v in values if v != "*" and LEVEL not in str(v)]


def test_folders_and_variants_are_planned(written: tuple[StudyPlan, Claims]) -> None:
    made, claims = written
    for id, part in parts(claims):
        for folder, where in sides(part):
            name = folder
            for ending in MITIGATIONS:
                name = name.removesuffix(ending)
            assert name in made.experiments, id
            experiment = made.experiments[name]
            assert experiment.audit or name != folder, id
            variants = {model.variant for model in made.of(name)}
            named = [*texts(where, "variant"), *([part.control] if part.control else [])]
            for variant in named:
                assert variant.partition("+")[0] in variants, id
            for task in texts(where, "task"):
                assert task in experiment.data.tasks or not experiment.data.tasks, id


def test_levels_have_variants(written: tuple[StudyPlan, Claims]) -> None:
    made, claims = written
    for id, part in parts(claims):
        against = part.against.level if part.against is not None else None
        other = part.against.folder if part.against is not None else None
        for level, folder in ((part.level, part.folder), (against, other or part.folder)):
            if level is None:
                continue
            models = made.of(level.folder or str(folder))
            assert any(fnmatchcase(model.variant, level.family) for model in models), id


def test_tables_columns_and_metrics_exist(written: tuple[StudyPlan, Claims]) -> None:
    metrics = {entry.name for entry in registry.metrics()}
    for id, part in parts(written[1]):
        columns = KNOWN[table_of(part)]
        extra = {"seed", "rank"} if part.against is not None else set()
        named = {*part.where, *part.each, *(part.against.where if part.against else ())}
        assert named <= {*columns, *extra}, id
        for column in (part.value, part.mean_over, part.difficulty):
            assert column is None or column in columns, id
        for _, where in sides(part):
            assert set(texts(where, "metric")) <= metrics, id


def test_groups_are_columns_of_the_experiment(written: tuple[StudyPlan, Claims]) -> None:
    made, claims = written
    for id, part in parts(claims):
        if part.folder not in made.experiments or table_of(part) not in AUDIT_TABLES:
            continue
        groups = made.experiments[part.folder].groups
        if groups is None:
            continue
        for _, where in sides(part):
            for name in texts(where, "group"):
                for one in name.split(" & "):
                    assert one.partition("=")[0] in groups, id


def test_every_line_is_a_list_that_is_named(written: tuple[StudyPlan, Claims]) -> None:
    """What is not stored is missed only where it is listed."""
    for id, part in parts(written[1]):
        listed = {column for column, value in part.where.items() if isinstance(value, tuple)}
        assert set(part.each) == listed, id


def test_finetuned_variants_have_a_control_beside_them(written: tuple[StudyPlan, Claims]) -> None:
    """Where the study has one, and the claim is about what compression changed."""
    made, claims = written
    for id, part in parts(claims):
        models = {model.variant for model in made.of(str(part.folder))} if part.folder in (
            made.experiments
        ) else set()  # fmt: skip
        change = part.value in (None, "shift", "compressed") and table_of(part) == "results"
        if "control" in models and part.level is not None and change:
            assert part.control == "control", id


def test_what_is_not_allowed_has_a_reason_and_what_is_reckons_with_the_members(
    written: tuple[StudyPlan, Claims],
) -> None:
    made, claims = written
    assert all(one.unjudged for one in claims.claim if one.folder is None)
    folders = {str(part.folder) for _, part in parts(claims)} & set(made.experiments)
    least = {
        len({model.seed for model in made.of(name) if model.variant == "dense"}) for name in folders
    }
    assert min(least) >= 4
    assert claims.members in least
    for one in claims.regime:
        assert one.folder in made.experiments
