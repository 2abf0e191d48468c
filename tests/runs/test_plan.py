"""From a study to its stages: each piece of work once, named by its full spec."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from fairweight.errors import InputError
from fairweight.runs.plan import plan
from fairweight.runs.stage import canonical, key_of
from fairweight.specs.study import Study
from fairweight.specs.toml import read_study
from fairweight.studies.library import names, presets, study, text

FINETUNE = {"epochs": 1}


def made(*copies: dict[str, Any], **changes: Any) -> Study:
    experiment: dict[str, Any] = {
        "name": "a",
        "data": {"name": "digits"},
        "model": {"architecture": "lenet"},
        "training": {"epochs": 3},
        "members": 2,
        "copies": list(copies),
    }
    return read_study({"name": "s", "experiment": [experiment | changes]})


def test_keys_are_pinned() -> None:
    """Who changes this loses every stage of every store: raise FORMAT, and say so."""
    assert key_of("train", {"epochs": 3, "lr": 0.1}, ("x",)) == "fe4a5117a3235c45aa71aa05c5c7c419"
    assert canonical({"b": 1, "a": [0.1, None, True]}) == '{"a":[0.1,null,true],"b":1}'


def test_a_dense_model_is_trained_once_for_all_that_start_from_it() -> None:
    planned = plan(
        made(
            {"method": "global-magnitude", "grid": {"sparsity": [0.5, 0.9]}},
            {"method": "int8-static"},
        )
    )
    kinds = Counter(stage.kind for stage in planned.stages.values())
    assert kinds == {"train": 2, "compress": 6, "predict": 8, "audit": 1}
    by_key = planned.stages
    for model in planned.models:
        if model.variant != "dense":
            (parent,) = by_key[model.made_by].inputs
            assert parent == next(
                m.made_by for m in planned.models if m.variant == "dense" and m.seed == model.seed
            )
            assert model.parent == f"dense:{model.seed}"
    assert {m.variant for m in planned.models} == {
        "dense", "global-magnitude-50", "global-magnitude-90", "int8-static",
    }  # fmt: skip


def test_stages_come_after_what_they_need() -> None:
    planned = plan(made({"method": "global-magnitude", "fields": {"sparsity": 0.5}}))
    seen: set[str] = set()
    for key, stage in planned.stages.items():
        assert set(stage.inputs) <= seen
        assert key == stage.key == key_of(stage.kind, stage.spec, stage.inputs)
        seen.add(key)


def test_rounds_continue_from_the_round_before() -> None:
    planned = plan(
        made(
            {
                "method": "global-magnitude",
                "fields": {"sparsity": 0.2},
                "name": "lth",
                "rounds": 3,
                "rewind": True,
                "finetune": FINETUNE,
            }
        )
    )
    of_seed = [m for m in planned.models if m.seed == 0]
    assert [m.variant for m in of_seed] == ["dense", "lth-r1", "lth-r2", "lth-r3"]
    for before, after in itertools.pairwise(of_seed):
        assert planned.stages[after.made_by].inputs == (before.made_by,)
    assert of_seed[2].parent == "lth-r1:0"
    method = planned.stages[of_seed[1].made_by].spec["method"]
    assert method["schedule"] == {"kind": "one-shot", "epoch": 0, "of": "remaining"}
    longer = plan(
        made(
            {
                "method": "global-magnitude",
                "fields": {"sparsity": 0.2},
                "name": "other",
                "rounds": 4,
                "rewind": True,
                "finetune": FINETUNE,
            }
        )
    )
    shared = planned.stages.keys() & longer.stages.keys()
    assert sum(planned.stages[key].kind == "compress" for key in shared) == 6  # 3 rounds, 2 seeds


def test_members_and_seeds() -> None:
    planned = plan(made({"method": "int8-dynamic", "members": 1}, members=3, first_seed=5))
    assert [(m.variant, m.seed) for m in planned.models] == [
        ("dense", 5), ("dense", 6), ("dense", 7), ("int8-dynamic", 5),
    ]  # fmt: skip


def test_a_default_that_changes_changes_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fields left at their default are inside the name."""
    before = plan(made({"method": "random-unstructured", "fields": {"sparsity": 0.5}}))
    spec = next(s.spec for s in before.stages.values() if s.kind == "compress")
    assert spec["method"]["seed"] == 0
    assert spec["method"]["layers"] == ["*"]
    train = next(s.spec for s in before.stages.values() if s.kind == "train")
    assert train["training"]["momentum"] == 0.9
    assert train["data"]["validation"] == 0.1
    changed = {**train, "training": {**train["training"], "momentum": 0.8}}
    assert key_of("train", changed) not in before.stages


def test_a_grid_of_experiments() -> None:
    planned = plan(made(grid={"model.width": [0.5, 1.0], "training.lr": [0.1]}))
    assert list(planned.experiments) == ["a-0.5-0.1", "a-1.0-0.1"]
    assert planned.experiments["a-0.5-0.1"].model.width == 0.5
    with pytest.raises(InputError, match=r"the grid names 'model\.with'"):
        plan(made(grid={"model.with": [1]}))


@pytest.mark.parametrize(
    ("copies", "reason"),
    [
        ([{"method": "globl-magnitude"}], "Method 'globl-magnitude' does not exist"),
        ([{"method": "global-magnitude", "fields": {"sparsity": 2}}], "sparsity = 2"),
        ([{"method": "int8-static"}, {"method": "int8-static"}], "two variants named"),
        ([{"method": "int8-static", "name": "x-{depth}"}], "cannot be filled in"),
        ([{"method": "global-magnitude", "rewind": True}], "rewind needs rounds"),
        ([{"method": "global-magnitude", "rounds": 2}], "rounds need finetune"),
        ([{"methd": "int8-static"}], "methd"),
    ],
)
def test_what_cannot_be_planned(copies: list[dict[str, Any]], reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        plan(made(*copies))


def test_pruned_from_the_first_weights_is_no_child() -> None:
    planned = plan(
        made(
            {
                "method": "gmp-random-init-short",
                "fields": {"sparsity": 0.9},
                "start": "first-weights",
                "finetune": {"epochs": 20},
            }
        )
    )
    copy = planned.models[-1]
    assert copy.parent is None
    assert planned.stages[copy.made_by].kind == "train"
    assert planned.stages[copy.made_by].spec["training"]["epochs"] == 20


@pytest.mark.parametrize("name", names())
def test_the_studies_of_the_library_can_be_planned(name: str) -> None:
    for preset in presets(name):  # all are planned in studies/test_stage_keys.py
        held = study(name, preset)
        assert held.title
        assert text(name, preset).startswith("# ")
    assert plan(study(name, "smoke")).stages
    with pytest.raises(InputError, match="The preset of"):
        study(name, "huge")


def test_unknown_studies_and_files() -> None:
    with pytest.raises(InputError, match="Study 'resource-eficient' does not exist"):
        study("resource-eficient")
    with pytest.raises(InputError, match="does not exist"):
        study("none.toml")
    with pytest.raises(InputError, match="one whole study"):
        study("none.toml", "smoke")


def test_names_of_experiments_differ() -> None:
    one = made().experiment[0]
    with pytest.raises(ValueError, match="two experiments named 'a'"):
        replace(made(), experiment=(one, one))


def test_methods_and_treatments_in_a_grid_are_variants_of_their_own() -> None:
    planned = plan(
        made(
            {
                "method": "l1-unstructured",
                "name": "{method}-{rewind}",
                "fields": {"sparsity": 0.2},
                "grid": {"method": ["l1-unstructured", "l1-structured"], "rewind": [True, False]},
                "rounds": 2,
                "finetune": FINETUNE,
            },
            members=1,
        )
    )
    assert [m.variant for m in planned.models] == [
        "dense",
        "l1-unstructured-rewind-r1", "l1-unstructured-rewind-r2",
        "l1-unstructured-finetune-r1", "l1-unstructured-finetune-r2",
        "l1-structured-rewind-r1", "l1-structured-rewind-r2",
        "l1-structured-finetune-r1", "l1-structured-finetune-r2",
    ]  # fmt: skip
    treatments = {m.variant: planned.stages[m.made_by].spec for m in planned.models[1:]}
    assert treatments["l1-structured-rewind-r2"]["rewind"] is True
    assert treatments["l1-structured-finetune-r1"]["method"]["method"] == "l1-structured"


def test_only_some_variants_are_audited_and_all_classes_are_tabulated() -> None:
    copy = {"method": "global-magnitude", "grid": {"sparsity": [0.5, 0.9]}}
    one = made(copy, audited=["global-magnitude-90"])
    planned = plan(replace(one, classes=True))
    spec = planned.stages[planned.audits["a"]].spec
    assert [row[:2] for row in spec["models"]] == [
        ["dense", 0], ["dense", 1], ["global-magnitude-90", 0], ["global-magnitude-90", 1],
    ]  # fmt: skip
    assert planned.classes is not None
    (experiment,) = planned.stages[planned.classes].spec["experiments"]
    assert len(experiment["models"]) == len(experiment["asked_by"]) == 6
    with pytest.raises(InputError, match="'global-magnitude-99'"):
        plan(made(copy, audited=["global-magnitude-99"]))


def test_an_audited_round_descends_from_the_nearest_audited_one() -> None:
    """Else its members would be taken for strangers, and the audit for one of unpaired models."""
    copy = {
        "method": "global-magnitude", "name": "g", "fields": {"sparsity": 0.2}, "rounds": 4,
        "finetune": FINETUNE,
    }  # fmt: skip
    for audited, parents in (
        (["g-r4"], {"g-r4": "dense:1"}),
        (["g-r2", "g-r4"], {"g-r2": "dense:1", "g-r4": "g-r2:1"}),
    ):
        planned = plan(made(copy, audited=audited))
        rows = planned.stages[planned.audits["a"]].spec["models"]
        assert {row[0]: row[2] for row in rows if row[1] == 1 and row[2] is not None} == parents
    everything = plan(made(copy))
    rows = everything.stages[everything.audits["a"]].spec["models"]
    assert ["g-r4", 1, "g-r3:1"] in rows


def test_keys_are_those_from_before_there_were_weights_and_drawn_backdoors() -> None:
    """Found by planning the same study before they came."""
    planned = plan(made({"method": "global-magnitude", "name": "g", "fields": {"sparsity": 0.5},
                         "finetune": FINETUNE}))  # fmt: skip
    keys = {model.variant: model.made_by for model in planned.models if model.seed == 0}
    assert keys == {
        "dense": "01efc7b25a83e575db8846683caf8f83",
        "g": "c1e13df4bfaea7a578a51c04a14aa9e8",
    }
    assert planned.audits == {"a": "91bd8f4b258d0de60cc310b8d83723aa"}  # reads predictions alone
    weighted = {**FINETUNE, "weighting": "class-balanced"}
    other = plan(made({"method": "global-magnitude", "name": "g", "fields": {"sparsity": 0.5},
                       "finetune": weighted}))  # fmt: skip
    assert keys["dense"] in other.stages
    assert keys["g"] not in other.stages


def test_validation_examples_are_asked_beside_the_others() -> None:
    copy = {"method": "global-magnitude", "name": "g", "fields": {"sparsity": 0.5}}
    plain, both = plan(made(copy)), plan(made(copy, ask_validation=True))
    assert plain.stages.keys() < both.stages.keys()
    more = [both.stages[key] for key in both.stages.keys() - plain.stages.keys()]
    assert [stage.spec["part"] for stage in more] == ["validation"] * 4
    assert {model.validated_by for model in both.models} == {stage.key for stage in more}
    assert both.audits == plain.audits  # they decide nothing about the audit


def test_experiments_with_a_setting_are_set_side_by_side() -> None:
    copy = {"method": "global-magnitude", "name": "g", "fields": {"sparsity": 0.5}}
    one, *_ = made(copy, setting="joint").experiment
    alone = plan(made(copy, setting="joint"))
    assert alone.settings is None
    other = replace(one, name="b", setting="single", fixed_side="ink=light")
    third = replace(one, name="c", setting=None)
    planned = plan(replace(made(), experiment=(one, other, third)))
    assert planned.settings is not None
    stage = planned.stages[planned.settings]
    assert stage.spec == {"settings": [["a", "joint"], ["b", "single"]]}
    assert stage.inputs == (planned.audits["a"], planned.audits["b"])
    assert planned.stages[planned.audits["b"]].spec["fixed_side"] == "ink=light"
    assert "fixed_side" not in planned.stages[planned.audits["a"]].spec


def taught(**changes: Any) -> dict[str, Any]:
    return {
        "method": "global-magnitude",
        "name": "{distill}-{sparsity}",
        "fields": {"sparsity": 0.5},
        "grid": {"distill": ["plain", "kd", "at+kd"]},
        "finetune": FINETUNE,
    } | changes


def test_losses_are_part_of_the_grid() -> None:
    lesson = {"losses": "kd", "options": {"kd": {"temperature": 2.0}}, "weights": {"at": 5.0}}
    planned = plan(made(taught(distill=lesson)))
    specs = {
        model.variant: planned.stages[model.made_by].spec
        for model in planned.models
        if model.variant != "dense"
    }
    assert list(specs) == ["plain-50", "kd-50", "at-kd-50"]
    assert "distill" not in specs["plain-50"]
    assert specs["kd-50"]["distill"]["options"] == {"kd": {"temperature": 2.0}}
    assert specs["kd-50"]["distill"]["weights"] == {}
    assert specs["at-kd-50"]["distill"]["weights"] == {"at": 5.0}


def test_a_plain_copy_keeps_the_key_that_it_had_before_there_were_teachers() -> None:
    before = plan(made({"method": "global-magnitude", "name": "plain-50",
                        "fields": {"sparsity": 0.5}, "finetune": FINETUNE}))  # fmt: skip
    keys = {model.made_by for model in plan(made(taught())).models if model.variant == "plain-50"}
    assert keys == {model.made_by for model in before.models if model.variant == "plain-50"}


def test_rounds_are_taught_by_the_dense_member() -> None:
    planned = plan(made(taught(grid={}, name="r", distill={"losses": "kd"}, rounds=2)))
    dense = {m.seed: m.made_by for m in planned.models if m.variant == "dense"}
    first, second = (
        next(m for m in planned.models if (m.variant, m.seed) == (f"r-r{number}", 1))
        for number in (1, 2)
    )
    assert planned.stages[first.made_by].inputs == (dense[1],)
    assert planned.stages[second.made_by].inputs == (first.made_by, dense[1])


def test_teachers_of_another_experiment() -> None:
    base = {
        "model": {"architecture": "lenet"},
        "training": {"epochs": 3},
        "members": 2,
        "copies": [taught()],
    }
    reduced = {"name": "digits", "shares": {"3": 0.1}}
    fields = {
        "name": "s",
        "experiment": [
            base | {"name": "whole", "data": {"name": "digits"}},
            base | {"name": "reduced", "data": reduced, "teachers": "whole"},
        ],
    }
    planned = plan(read_study(fields))
    kinds = Counter(stage.kind for stage in planned.stages.values())
    assert kinds == {"train": 2, "compress": 12, "predict": 14, "audit": 2}
    audit = planned.stages[planned.audits["reduced"]]
    assert audit.spec["data"]["shares"] == {"3": 0.1}  # whose training examples the audit counts
    assert {planned.stages[key].kind for key in audit.inputs} == {"predict"}
    fields["experiment"][1]["teachers"] = "hole"
    with pytest.raises(InputError, match="whole"):
        plan(read_study(fields))


def test_stages_know_their_member() -> None:
    planned = plan(made(taught(), {"method": "int8-static"}, members=2, first_seed=5))
    for model in planned.models:
        for key in (model.made_by, model.asked_by):
            assert planned.stages[key].member == model.seed - 5
    assert planned.stages[planned.audits["a"]].member > 10**6


def test_one_teacher_of_many_students() -> None:
    planned = plan(made(taught(from_seed=1, members=4), members=2))
    students = [model for model in planned.models if model.variant == "kd-50"]
    assert [model.seed for model in students] == [0, 1, 2, 3]
    assert {model.parent for model in students} == {"dense:1"}
    assert len({model.made_by for model in students}) == 4
    with pytest.raises(InputError, match="from_seed = 2 is no dense member's seed"):
        plan(made(taught(from_seed=2)))


def test_representations_are_compared_with_the_dense_member() -> None:
    planned = plan(made(taught(), {"method": "int8-static"}, similarity={"measure": "cka"}))
    dense = {m.seed: m.made_by for m in planned.models if m.variant == "dense"}
    for model in planned.models:
        if model.variant == "int8-static":
            assert model.compared_by is None
            continue
        assert model.compared_by is not None
        near = dense[1 - model.seed] if model.variant == "dense" else dense[model.seed]
        assert planned.stages[model.compared_by].inputs == (model.made_by, near)
    audit = planned.stages[planned.audits["a"]]
    assert audit.spec["compared"] == [True] * 8 + [False] * 2
    assert len(audit.inputs) == 10 + 8


def test_the_stages_of_one_experiment_are_those_that_it_needs() -> None:
    copies = [{"method": "int8-static"}]
    one = {
        "name": "first",
        "data": {"name": "digits"},
        "model": {"architecture": "lenet"},
        "training": {"epochs": 3},
        "copies": copies,
    }
    taught = one | {"name": "taught", "teachers": "first", "data": {"name": "digits", "size": 16}}
    other = one | {"name": "other", "training": {"epochs": 4}}
    planned = plan(read_study({"name": "s", "experiment": [one, taught, other]}))
    own = {name: planned.stages_of([name]) for name in planned.experiments}
    assert all(
        set(stage.inputs) <= own[name].keys() for name in own for stage in own[name].values()
    )
    trained = {name: {k for k, s in own[name].items() if s.kind == "train"} for name in own}
    assert trained["first"] <= trained["taught"]  # its teachers
    assert trained["other"].isdisjoint(trained["first"])
    assert {planned.audits[name] for name in own} & own["other"].keys() == {planned.audits["other"]}
    assert planned.stages_of(list(own)) == planned.stages
    with pytest.raises(InputError, match=r"experiment 'frist' .* Did you mean 'first'"):
        planned.stages_of(["frist"])
