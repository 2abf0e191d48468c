"""Smoke studies from stored answers: all that comes after prediction is made anew.

`stages/NAME.zip` holds what the models of a smoke study left: training tables, answers, rows of
the variants table, distances. These are put into an empty store as finished stages, and
`fairweight study run NAME --preset smoke` does the rest. Training may differ in the last bit on
another processor; it is compared by the keys of its stages, which say everything that decides it.

    python -m tests.same.studies      # train again and write stages/NAME.zip; seldom needed
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd

import fairweight as fw

from .comparison import Frames, flat, frames_in, within
from .inside import Member, all_presets, fairweight, planned, stage_folder, viewer, write_stages
from .pages import drawn, numbers, of_page, pictures

HERE = Path(__file__).parent
STAGES, CLAIMS = HERE / "stages", HERE / "claims"
SMOKE = "smoke"
NAMES = (
    "characterising-bias",
    "prune-responsibly",
    "pruned-vision-bias",
    "resource-efficient",
    "simon-says",
)


# ---------------------------------------------------------------- a study


def study(name: str, folder: Path) -> Frames:
    """Tables, pages, figures and verdicts of a smoke study."""
    results = run(name, folder)
    made: dict[str, pd.DataFrame] = {"plan": keys(name)}
    for place in sorted(path for path in results.iterdir() if path.is_dir()):
        made |= within(place.name, frames_in(place))  # variants and training tables
        if (place / "audit").is_dir():
            made |= within(place.name, of_audit(place / "audit"))
        else:  # classes, settings
            tables = frames_in(place / "tables")
            made |= within(place.name, tables)
            first = next(results.glob("*/audit"))
            made |= within(place.name, drawn(fw.load(first), **tables))
        if place.name == "settings":
            made |= within(place.name, two_settings(fw.load(first), tables["settings"]))
        made |= within(place.name, pictures(place))
    return made | verdicts(name, results, folder)


def two_settings(audit: fw.Audit, settings: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The figure of attributes in several settings without a backdoor: one of them twice."""
    joint = settings[settings["setting"] == "joint"]
    again = joint.assign(setting="single", value=joint["value"] / 2)
    return drawn(audit, ["IO-F3"], settings=pd.concat([joint, again], ignore_index=True))


def run(name: str, folder: Path) -> Path:
    """Put the stored stages into a store, and let the study do what is left; its results."""
    members, stages = planned(name, SMOKE)
    held = stored(name, members)
    write_stages(folder / "store", name, SMOKE, held)
    told = fairweight(
        "study", "run", name, "--preset", SMOKE, "--store", folder / "store", "--workers", "0"
    )
    expected = f"{len(stages) - len(held)} stages made, {len(held)} were there."
    if expected not in " ".join(told.split()):
        raise RuntimeError(f"The study did other work than '{expected}': {told}")
    return folder / "store" / "results" / f"{name}-{SMOKE}"


def stored(name: str, members: Iterable[Member]) -> dict[str, dict[str, bytes]]:
    """The files of every stage that makes, asks or compares a model, by its key."""
    found: dict[str, dict[str, bytes]] = {}
    with zipfile.ZipFile(STAGES / f"{name}.zip") as archive:
        files = archive.namelist()
        for member in members:
            for role, key in member.stages.items():
                start = place_of(member, role)
                own = {
                    file.removeprefix(start): archive.read(file)
                    for file in files
                    if file.startswith(start) and not file.endswith("/")
                }
                found.setdefault(key, {}).update(own)
    return found


def answers_of(name: str, experiment: str) -> pd.DataFrame:
    """The stored answers of an experiment's models about the test examples, in long form."""
    members = [one for one in planned(name, SMOKE)[0] if one.experiment == experiment]
    held = stored(name, members)
    return pd.concat(
        [
            pd.read_parquet(io.BytesIO(held[one.stages["asked"]]["predictions.parquet"]))
            for one in members
        ],
        ignore_index=True,
    )


def place_of(member: Member, role: str) -> str:
    """Where the files of a stage are in the archive."""
    return f"{member.experiment}/{member.variant}/{member.seed}/{role}/"


def of_audit(folder: Path) -> dict[str, pd.DataFrame]:
    """Tables of a published audit, the numbers on its page, and what can be drawn of it."""
    audit = fw.load(folder)
    # Tables in which every row of `results` stands again are not compared twice.
    again = {"overall", "by_group", "by_class", "groupings"}
    tables = {
        name: frame for name, frame in frames_in(folder / "tables").items() if name not in again
    }
    return without_pictures(tables) | {"page": of_page(folder / "report.html")} | drawn(audit)


def without_pictures(tables: Frames) -> dict[str, pd.DataFrame]:
    """The tables without images as text."""
    return {name: frame.drop(columns="image", errors="ignore") for name, frame in tables.items()}


def verdicts(name: str, results: Path, folder: Path) -> dict[str, pd.DataFrame]:
    """The paper's claims on these results, where most cannot be told, and claims about them."""
    made: dict[str, pd.DataFrame] = {}
    own = CLAIMS / f"{name}.toml"
    if not own.is_file():
        return made
    (folder / "own.claims.toml").write_bytes(own.read_bytes())
    for which in (name, str(folder / "own.toml")):
        said = folder / f"{Path(which).stem}.json"
        # The authors' files may be there or not, so they are not read.
        with mock.patch.dict(os.environ, FAIRWEIGHT_GOLDEN="nowhere", FAIRWEIGHT_REAL="nowhere"):
            fairweight("study", "claims", which, "--results", results, "--out", said)
        document = json.loads(said.read_text(encoding="utf-8"))
        lines = pd.DataFrame(document["lines"])
        kept = [column for column in lines if column not in ("statement", "place", "why")]
        lines = lines[lines["source"] == "run"]
        made[f"claims/{Path(which).stem}"] = lines[kept]
        made[f"claims/{Path(which).stem}/summary"] = numbers(document["summary"])
    return made


# ---------------------------------------------------------------- plans


def keys(name: str) -> pd.DataFrame:
    """The key of every stage of a smoke study: whose it is, and what it does."""
    members, stages = planned(name, SMOKE)
    rows = [
        (place_of(one, role).rstrip("/"), key)
        for one in members
        for role, key in one.stages.items()
    ]
    known = {key for _, key in rows}
    rows += [(kind, key) for kind, key in stages if key not in known]
    return pd.DataFrame(rows, columns=["part", "key"])


def plans(folder: Path) -> Frames:
    """Of every preset of every study the stages: how many of each kind, and a digest of the keys.

    Of a population one digest by variant and by what the stages do: tens of thousands of keys
    would say nothing more.
    """
    made: dict[str, pd.DataFrame] = {}
    for name, preset in all_presets():
        members, stages = planned(name, preset)
        of: dict[tuple[str, str], list[str]] = {}
        for kind, key in stages:
            of.setdefault((kind, "all"), []).append(key)
        rows = [(*place, len(own), digest(own)) for place, own in of.items()]
        made[f"{name} {preset}/kinds"] = pd.DataFrame(rows, columns=["kind", "part", "n", "keys"])
        of = {}
        for one in members:
            for role, key in one.stages.items():
                # Thousands of rounds (…-r19) and settings: by experiment and method.
                whose = f"{one.experiment} {re.sub('-r[0-9]+$', '', one.variant)}"
                of.setdefault((whose, role), []).append(key)
        rows = [(*place, len(own), digest(own)) for place, own in of.items()]
        made[f"{name} {preset}/models"] = pd.DataFrame(
            rows, columns=["variant", "part", "n", "keys"]
        )
    return made


def digest(of: Iterable[str]) -> str:
    """Eight bytes that change with any of the keys."""
    return hashlib.sha256(" ".join(sorted(of)).encode()).hexdigest()[:16]


# ---------------------------------------------------------------- the viewer


def viewed(folder: Path) -> Frames:
    """The twins for programs of the viewer's pages, of two studies."""
    made: dict[str, pd.DataFrame] = {}
    for name, key in {"characterising-bias": "digits", "pruned-vision-bias": "joint"}.items():
        results = run(name, folder / name)
        variant = next(
            path.name for path in (results / key / "predictions").iterdir() if path.name != "dense"
        )
        with viewer(results, folder / name) as client:
            for page in (
                "/index.json", f"/audit/{key}.json", f"/audit/{key}/variant.json?variant={variant}",
                f"/audit/{key}/level.json?by=class", f"/audit/{key}/level.json?by=group",
                f"/audit/{key}/task.json", f"/audit/{key}/examples.json?changed=lost",
                f"/audit/{key}/pairs.json", f"/audit/{key}/figure.json?id=FW-1",
            ):  # fmt: skip
                answer = client.get(page)
                if answer.status_code != 200:
                    made[f"{name} {page}"] = flat({"status": answer.status_code})
                    continue
                leaves = flat(answer.json())
                kept = [not isinstance(value, str) for value in leaves["value"]]
                made[f"{name} {page}"] = leaves[kept]
    return made


STUDIES: dict[str, Callable[[Path], Frames]] = {"plans": plans, "viewed": viewed} | {
    f"study-{name}": partial(study, name) for name in NAMES
}


# ---------------------------------------------------------------- making the stored stages


def make(name: str) -> None:
    """Train a smoke study and keep of its stages what the later ones read."""
    STAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "store"
        fairweight("study", "run", name, "--preset", SMOKE, "--store", store, "--workers", "0")
        done: set[str] = set()
        with zipfile.ZipFile(STAGES / f"{name}.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            for member in planned(name, SMOKE)[0]:
                for role, key in member.stages.items():
                    if key in done:
                        continue
                    done.add(key)
                    for path in sorted(stage_folder(store, key).iterdir()):
                        if path.suffix in (".parquet", ".json") and path.name != "stage.json":
                            when = zipfile.ZipInfo(place_of(member, role) + path.name)
                            archive.writestr(when, kept(path, member), zipfile.ZIP_DEFLATED)


def kept(path: Path, member: Member) -> bytes:
    """A file as it is stored; answers are exchanged for plausible ones."""
    if path.name == "variant.json":
        row: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return json.dumps(row).encode()
    if path.name != "predictions.parquet":
        return path.read_bytes()
    table, room = pd.read_parquet(path), io.BytesIO()
    answered(table, member).to_parquet(room, index=False, compression="zstd")
    return room.getvalue()


def answered(table: pd.DataFrame, member: Member) -> pd.DataFrame:
    """Answers that err here and there: a smoke study's networks learn next to nothing.

    Members of a variant share what is hard; copies err as their dense member does and more,
    above all on heavy ink and on one class.
    """
    classes = sorted(table["label"].unique())
    after = dict(zip(classes, [*classes[1:], classes[0]], strict=True))

    def luck(*words: Any) -> np.ndarray:
        seed = zlib.crc32(" ".join(map(str, words)).encode())
        return np.random.default_rng(seed).random(len(table))

    hard = luck("hard") < 0.2
    wrong = luck("dense", member.seed) < np.where(hard, 0.35, 0.04)
    if member.variant != "dense":
        weak = (table["ink"] == "heavy") | (table["label"] == classes[-1])
        wrong ^= luck(member.variant, member.seed) < np.where(weak, 0.15, 0.03)
    prediction = table["label"].mask(wrong, table["label"].map(after))
    sure = 0.5 + 0.5 * np.where(hard, 0.4, 0.9) * luck("score", member.variant, member.seed)
    score = np.where((prediction == classes[0]) & ("task" in table), 1 - sure, sure)
    return table.assign(
        prediction=prediction.astype(table["prediction"].dtype),
        score=np.round(score, 3).astype(table["score"].dtype),
    )


if __name__ == "__main__":
    for asked in sys.argv[1:] or NAMES:
        make(asked)
