"""Cards, studies and manifests that are almost right: refused by a sentence, or harmless."""

from __future__ import annotations

import json
import random
import re
import shutil
import tomllib
from pathlib import Path
from typing import Any

import pytest

from fairweight.base.files import MANIFEST, PENDING, STEPS, atomic_directory, finish, manifest
from fairweight.errors import InputError, OutputError
from fairweight.specs.study import Expected
from fairweight.specs.toml import read_study

from .mutations import CASES, as_json, below, fuzz, hostile, mutated, mutated_bytes

pytestmark = pytest.mark.filterwarnings("error")


# --- cards ---------------------------------------------------------------------------------------


@CASES
def test_cards(tmp_path: Path, canary: Path, cases: int) -> None:
    """A model's folder with a changed card is opened, and its data are named."""
    pytest.importorskip("torch")
    from fairweight.lab.artifacts import Card, load, save
    from fairweight.lab.batches import Scaling
    from fairweight.lab.models.registry import build
    from fairweight.lab.prediction import data_of, model_files

    shape = {"classes": 3, "channels": 1, "size": 8}
    cards = []
    for name, own in (("lenet", {}), ("resnet18", {"width": 0.1, "stem": "imagenet"})):
        options = {**shape, **own}
        card = Card(
            architecture=name,
            options=options,
            classes=("a", "b", "c"),
            preprocessing=Scaling((0.5,), (0.25,)),
            data={"name": "digits", "options": {"attributes": False}, "validation": 0.1},
            training={"epochs": 1, "after": {"seed": 1}},
            compression={"sparsity": 0.5},
            measured={"n_params": 3},
            notes=("a note",),
        )
        save(build(name, **options), tmp_path / name, card)
        cards.append((name, json.loads((tmp_path / name / "model.json").read_text())))

    def made(rng: random.Random) -> tuple[str, bytes]:
        name, card = rng.choice(cards)
        if rng.random() < 0.3:
            return name, mutated_bytes(json.dumps(card).encode(), rng)
        return name, as_json(mutated(card, rng))

    def attempt(case: tuple[str, bytes]) -> None:
        name, content = case
        (tmp_path / name / "model.json").write_bytes(content)
        load(tmp_path / name)
        data_of(model_files([str(tmp_path / name)]))

    tally = fuzz(attempt, made, cases)
    assert tally["refused"] >= cases / 10
    assert tally["accepted"] >= cases / 10
    assert {path.name for path in tmp_path.iterdir()} == {"lenet", "resnet18", "importable"}


# --- studies -------------------------------------------------------------------------------------

STUDY = """
name = "s"
title = "what it is"
classes = true

[[experiment]]
name = "first"
data = {name = "digits", options = {attributes = false}, validation = 0.1, tasks = []}
model = {architecture = "lenet", width = 0.5, options = {}}
training = {epochs = 2, lr = 0.1, optimizer = "sgd", schedule = "cosine"}
members = 2
groups = ["slant", "slant*ink"]
setting = "joint"
explain = ["exemplars", "similarity"]
similarity = {measure = "cka"}
figures = ["FW-1"]
expected = {train = 100, test = 50, size = 8, channels = 1}

[[experiment.copies]]
method = "global-magnitude"
grid = {sparsity = [0.5, 0.9]}
name = "pruned-{sparsity}"
finetune = {epochs = 1}
rounds = 2
rewind = true

[[experiment.copies]]
method = "l1-structured"
fields = {sparsity = 0.5, dim = 0}
grid = {distill = ["plain", "kd"]}
name = "{distill}-{sparsity}"
finetune = {epochs = 1}
members = 1
from_seed = 0

[[experiment]]
name = "second"
data = {name = "digits"}
model = {architecture = "vgg11", width = 0.1}
training = {epochs = 1}
members = 1
teachers = "first"
setting = "single"
grid = {"training.lr" = [0.1, 0.01]}
copies = [{method = "int8-static"}]
"""


@CASES
def test_studies(tmp_path: Path, canary: Path, monkeypatch: pytest.MonkeyPatch, cases: int) -> None:
    """A changed study is read, planned, and its cost is estimated as by a dry run."""
    pytest.importorskip("torch")
    from fairweight.base.trust import NAME
    from fairweight.runs import cost
    from fairweight.runs.plan import plan
    from fairweight.studies import library as _library  # noqa: F401  registers those of audits

    pattern = re.compile(NAME)
    few = Expected(train=10, test=10, size=8, channels=1, classes=10)
    monkeypatch.setattr(cost, "_known", lambda *_: few)  # the data are not what is looked at
    document = tomllib.loads(STUDY)
    file = tmp_path / "study.toml"

    def made(rng: random.Random) -> dict[str, Any] | bytes:
        if rng.random() < 0.2:
            return mutated_bytes(STUDY.encode(), rng)
        changed = mutated(document, rng)
        return changed if isinstance(changed, dict) else {"name": changed}

    def attempt(given: dict[str, Any] | bytes) -> None:
        if isinstance(given, bytes):
            file.write_bytes(given)
        planned = plan(read_study(file if isinstance(given, bytes) else given))
        for name in (*planned.experiments, *(model.variant for model in planned.models)):
            assert pattern.fullmatch(name), name
        cost.costs(planned, None, measure=False)

    tally = fuzz(attempt, made, cases)
    assert tally["refused"] > cases / 10
    assert tally["accepted"] > cases / 20
    assert {path.name for path in tmp_path.iterdir()} <= {"study.toml", "importable"}


# --- manifests -----------------------------------------------------------------------------------


@CASES
def test_manifests(tmp_path: Path, cases: int) -> None:
    """Whatever a folder's lists say, files of the user stay, inside and outside of it."""
    start, out = tmp_path / "start", tmp_path / "work" / "out"
    with atomic_directory(start) as folder:
        for name in ("audit.json", "report.html", "tables/a.csv", "stale.csv"):
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text("old")
    listed = manifest(start)
    precious = {"notes.txt": "mine", "tables/mine.csv": "mine", "../thesis.tex": "mine"}
    steps = {
        "writes": {"audit.json": listed["audit.json"], "notes.txt": "0", "new.csv": "0"},
        "removes": {"stale.csv": listed["stale.csv"], "tables/mine.csv": "0"},
        "completion": ["audit.json"],
    }

    def made(rng: random.Random) -> tuple[str, bytes, bool]:
        files: dict[str, Any] = dict(listed)
        for _ in range(rng.randrange(3)):
            name = rng.choice([*precious, "link/thesis.tex", "tables/../../thesis.tex", "link"])
            files[name] = rng.choice([None, "0" * 64, hostile(rng)])
        held: Any = rng.choice([{"format": 2, "files": files}, list(files), steps])
        place = f"{PENDING}/{STEPS}" if held is steps else MANIFEST
        changed = mutated(held, rng) if rng.random() < 0.9 else held
        content = as_json(changed)
        if rng.random() < 0.2:
            content = mutated_bytes(content, rng)
        return place, content, rng.random() < 0.5

    def attempt(case: tuple[str, bytes, bool]) -> None:
        place, content, overwrite = case
        shutil.rmtree(tmp_path / "work", ignore_errors=True)
        shutil.copytree(start, out)
        (out / "link").symlink_to("..")
        for name, text in precious.items():
            (out / name).write_text(text)
        (out / place).parent.mkdir(exist_ok=True)
        (out / place).write_bytes(content)
        for name in ("notes.txt", "audit.json", "new.csv") if place != MANIFEST else ():
            (out / PENDING / name).write_text("theirs")
        try:
            finish(out)
            with atomic_directory(out, overwrite=overwrite) as folder:
                for name in ("audit.json", "report.html", "tables/a.csv"):
                    (folder / name).parent.mkdir(exist_ok=True)
                    (folder / name).write_text("new")
        finally:
            for name, text in precious.items():
                assert (out / name).read_text() == text, name
            assert (out / "link").is_symlink()
        assert (out / "audit.json").read_text() == "new"
        assert set(manifest(out)) == {"audit.json", "report.html", "tables/a.csv"}
        assert not (out / PENDING).exists()

    tally = fuzz(attempt, made, cases)
    assert tally["refused"] >= cases / 10
    assert tally["accepted"] >= cases / 10
    assert set(below(tmp_path / "work")) >= {"out", "thesis.tex"}


# --- what these have found -----------------------------------------------------------------------


def test_a_field_of_a_copy_may_be_named_like_an_argument() -> None:
    pytest.importorskip("torch")
    from fairweight.lab.compression.registry import spec_of

    with pytest.raises(InputError, match="'global-magnitude': the field 'name' does not exist"):
        spec_of("global-magnitude", name="pruned")


def test_steps_whose_last_files_are_no_list_are_refused(tmp_path: Path) -> None:
    out = tmp_path / "out"
    (out / PENDING).mkdir(parents=True)
    (out / PENDING / STEPS).write_text(
        '{"writes": {"new.csv": "0"}, "removes": {}, "completion": 1}'
    )
    with pytest.raises(OutputError, match="not a folder that fairweight wrote"):
        finish(out)


def test_a_grid_does_not_make_names_without_end() -> None:
    pytest.importorskip("torch")
    from fairweight.runs.plan import plan

    study = {
        "name": "s",
        "experiment": [
            {
                "name": "first",
                "data": {"name": "digits"},
                "model": {"architecture": "lenet"},
                "training": {"epochs": 1},
                "grid": {"model.architecture": ["x" * 2000]},
            }
        ],
    }
    with pytest.raises(InputError, match=r"grid of 'first' is 'first-x+…', which cannot be"):
        plan(read_study(study))
