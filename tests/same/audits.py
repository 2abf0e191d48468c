"""Small fixed audits, from fixed data, whose every number is stored (`make same`).

Each function below is given an empty folder and returns frames. Only the public surface is used:
`import fairweight as fw`, the command line, and the files that it writes.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pandas as pd

import fairweight as fw

from .comparison import Frames, flat, frames_in, within
from .inside import fairweight, with_units
from .pages import NUMBER, drawn, numbers, page, pictures, texts
from .studies import STUDIES, answers_of, without_pictures

AUDITS: dict[str, Callable[[Path], Frames]] = {}
FEW = {"n_boot": 200, "random_state": 1}
FEW_OPTIONS = ("--n-boot", "200", "--random-state", "1", "--quiet")


def fixed(make: Callable[[Path], Frames]) -> Callable[[Path], Frames]:
    """Make it one of the audits, under the function's name."""
    AUDITS[make.__name__] = make
    return make


# ---------------------------------------------------------------- the data


def people(n: int = 400, *, classes: str = "abc", first_id: int = 0) -> pd.DataFrame:
    """Examples of persons: label, groups, who they are of, weight, and how hard they are."""
    rng = np.random.default_rng(18 + first_id)
    sex = np.where(rng.random(n) < 0.4, "F", "M")
    leaning = rng.random(n) < np.where(sex == "F", 0.4, 0.1)  # the first class is commoner in F
    return pd.DataFrame(
        {
            "example_id": np.arange(first_id, first_id + n),
            "label": np.where(leaning, classes[0], rng.choice(list(classes), n)),
            "sex": sex,
            "age": rng.choice(["young", "middle", "old"], n, p=[0.5, 0.3, 0.2]),
            "person": first_id + rng.integers(0, n // 4, n),
            "sampled": rng.integers(1, 5, n) / 2,
            "hard": rng.random(n) < 0.25,
        }
    )


def mistaken(answers: Any, chance: Any, seed: int, classes: str = "abc") -> np.ndarray:
    """The answers with each exchanged for the next class by a chance."""
    after = dict(zip(classes, classes[1:] + classes[0], strict=True))
    other = np.array([after[answer] for answer in answers])
    return np.where(np.random.default_rng(seed).random(len(other)) < chance, other, answers)


def dense(table: pd.DataFrame, seed: int = 0, classes: str = "abc") -> np.ndarray:
    """A model that errs on 3 % of the easy examples and 30 % of the hard ones."""
    return mistaken(table["label"], np.where(table["hard"], 0.3, 0.03), 100 + seed, classes)


def compressed(
    table: pd.DataFrame,
    origin: np.ndarray,
    seed: int = 0,
    *,
    loss: float = 0.1,
    classes: str = "abc",
) -> np.ndarray:
    """A copy of a model that answers otherwise on 2 % of the examples, and on more of the old."""
    return mistaken(origin, np.where(table["age"] == "old", loss, 0.02), 200 + seed, classes)


def wide(n: int = 400, *, classes: str = "abc") -> pd.DataFrame:
    """A row per example, with the answers of three models."""
    table = people(n, classes=classes)
    origin = dense(table, classes=classes)
    return table.drop(columns="hard").assign(
        pred_dense=origin,
        pred_int8=compressed(table, origin, 1, classes=classes),
        pred_pruned=compressed(table, origin, 2, loss=0.3, classes=classes),
    )


def long(
    table: pd.DataFrame, members: dict[tuple[str, int], np.ndarray], **more: Any
) -> pd.DataFrame:
    """A row per example and model; `members` are answers by variant and seed."""
    parts = [
        table.drop(columns="hard").assign(variant=variant, seed=seed, prediction=answers)
        for (variant, seed), answers in members.items()
    ]
    return pd.concat(parts, ignore_index=True).assign(**more)


def population(
    table: pd.DataFrame, variants: dict[str, float], *, seeds: int, classes: str = "abc"
) -> dict[tuple[str, int], np.ndarray]:
    """Dense members 0, 1, … and copies of each; `variants` maps a name to what the old lose."""
    members = {("dense", seed): dense(table, seed, classes) for seed in range(seeds)}
    for place, (name, loss) in enumerate(variants.items()):
        for seed in range(seeds):
            origin, luck = members["dense", seed], 10 * (place + 1) + seed
            members[name, seed] = compressed(table, origin, luck, loss=loss, classes=classes)
    return members


def scored(n: int = 400, *, first_id: int = 0, seed: int = 0) -> pd.DataFrame:
    """Two classes in a long table with the probability of "yes": `small` is less sure of it."""
    rng = np.random.default_rng(300 + first_id + seed)
    table = people(n, classes="yn", first_id=first_id)
    table["label"] = table["label"].map({"y": "yes", "n": "no"})
    sure = np.where(table["label"] == "yes", 1.2, -1.2) + rng.normal(size=n)
    shifts = {"dense": sure, "small": sure - 0.6 - 0.4 * (table["sex"] == "F")}
    parts = []
    for variant, position in shifts.items():
        noisy = position + 0.4 * rng.normal(size=n)
        # Four digits, so that the last bit of an exponential is nobody's business.
        score = np.round(1 / (1 + np.exp(-noisy)), 4)
        answer = np.where(score > 0.5, "yes", "no")
        part = table.drop(columns="hard").assign(variant=variant, seed=seed)
        parts.append(part.assign(prediction=answer, score=score))
    return pd.concat(parts, ignore_index=True)


# ---------------------------------------------------------------- what was made, as frames


FRAMES = (
    "results", "per_seed", "confusion", "reliability", "data", "power", "concentration",
    "group_error", "bounds", "variants", "lead", "left_out",
)  # fmt: skip


def frames_of(audit: fw.Audit) -> dict[str, pd.DataFrame]:
    """Every frame of an audit, and its one number."""
    held = {name: getattr(audit, name) for name in FRAMES}
    made = {name: frame for name, frame in held.items() if frame is not None}
    made |= audit.explanations
    made["audit"] = flat({"worst_group_shift": audit.worst_group_shift()})
    return made


# ---------------------------------------------------------------- audits


@fixed
def pages(folder: Path) -> Frames:
    """What is read of a pair, of tasks, of a population and of explanations."""
    made: dict[str, pd.DataFrame] = {}
    table, columns = wide(), {"dense": "pred_dense", "int8": "pred_int8", "tiny": "pred_pruned"}
    audits = {
        "pair": fw.audit_table(table, predictions=columns, groups=["sex", "age"], **FEW),
        "tasks": fw.audit_table(attributes(), task="task", groups=["sex"], positive="y", **FEW),
        "scores": fw.audit_table(scored(), groups=["sex"], positive="yes", **FEW),
        "explained": explained(folder),
    }
    for name, audit in audits.items():
        made[f"{name}/page"] = page(audit, folder)
        made |= within(name, drawn(audit))
        made |= within(name, texts(audit))
    return made


@fixed
def terminal(folder: Path) -> Frames:
    """What is printed of a pair with a policy, and of a population; wide enough for every table."""
    wide().to_csv(folder / "wide.csv", index=False)
    table = people()
    members = population(table, {"half": 0.03, "tenth": 0.25}, seeds=4)
    long(table, members).to_parquet(folder / "members.parquet")
    (folder / "policy.toml").write_text("schema = 1\n" + POLICIES["strict"])
    commands: dict[str, tuple[Any, ...]] = {
        "pair": ("audit", folder / "wide.csv", "--policy", folder / "policy.toml"),
        "members": ("audit", folder / "members.parquet", "--margin", "0.02"),
        "gate": ("gate", folder / "wide.csv", "--policy", folder / "policy.toml"),
    }
    made: dict[str, pd.DataFrame] = {}
    for name, words in commands.items():
        out = () if name == "gate" else ("--out", folder / name)
        told = fairweight(
            *words,
            "--groups",
            "sex,age",
            *out,
            *FEW_OPTIONS[:-1],
            code=0 if name == "members" else 1,
        )
        kept = [line for line in told.splitlines() if str(folder) not in line]
        made[name] = numbers("\n".join(kept))
    return made


@fixed
def pair(folder: Path) -> Frames:
    """Two models as arrays, three classes, groups and their intersection."""
    table = wide()
    return frames_of(
        fw.audit(
            table["label"],
            {"dense": table["pred_dense"], "int8": table["pred_int8"]},
            sensitive_features=table[["sex", "age"]],
            groups=["sex", "age", "sex*age"],
            **FEW,
        )
    )


@fixed
def wide_table(folder: Path) -> Frames:
    """A CSV file with a column per model, two classes, two variants, a training table."""
    wide(classes="yn").to_csv(folder / "wide.csv", index=False)
    people(300, classes="yn", first_id=5000).to_csv(folder / "train.csv", index=False)
    fairweight(
        "audit", folder / "wide.csv", "--train", folder / "train.csv", "--positive", "y",
        "--groups", "sex", "--correction", "bh", "--out", folder / "out", *FEW_OPTIONS,
    )  # fmt: skip
    return frames_of(fw.load(folder / "out"))


@fixed
def files(folder: Path) -> Frames:
    """A file per model, a table of examples; abstentions, unknown groups, ranks, other options."""
    table = wide().assign(sex=lambda t: t["sex"].mask(t["example_id"] % 9 == 0))
    table[["example_id", "label", "sex"]].to_csv(folder / "examples.csv", index=False)
    for name in ("dense", "int8"):
        part = table[["example_id"]].assign(prediction=table[f"pred_{name}"])
        part["label_rank"] = np.where(part["prediction"] == table["label"], 1, 7)
        part["prediction"] = part["prediction"].mask(part["example_id"] % 40 == len(name))
        part.iloc[len(name) :].to_parquet(folder / f"{name}.parquet")
    fairweight(
        "audit", f"dense={folder / 'dense.parquet'}", f"int8={folder / 'int8.parquet'}",
        "--examples", folder / "examples.csv", "--missing", "drop", "--exact",
        "--group-error", "0.05", "--zero-baseline", "epsilon", "--reference-shift", "0.05",
        "--alpha", "0.1", "--min-group", "30", "--out", folder / "out", *FEW_OPTIONS,
    )  # fmt: skip
    return frames_of(fw.load(folder / "out"))


@fixed
def clusters(folder: Path) -> Frames:
    """Several examples of each person."""
    columns = {"dense": "pred_dense", "int8": "pred_int8"}
    return frames_of(
        fw.audit_table(wide(), predictions=columns, groups=["sex", "age"], cluster="person", **FEW)
    )


@fixed
def weights(folder: Path) -> Frames:
    """Sampling weights."""
    columns = {"dense": "pred_dense", "int8": "pred_int8"}
    return frames_of(
        fw.audit_table(wide(), predictions=columns, groups=["sex", "age"], weight="sampled", **FEW)
    )


@fixed
def options(folder: Path) -> Frames:
    """A margin, a side that is always watched, no correction, numbers of few left out."""
    wide(classes="yn").to_csv(folder / "wide.csv", index=False)
    people(300, classes="yn", first_id=5000).to_csv(folder / "train.csv", index=False)
    fairweight(
        "audit", folder / "wide.csv", "--train", folder / "train.csv", "--positive", "y",
        "--groups", "sex,age", "--margin", "0.02", "--fixed-side", "sex=F", "--no-filters",
        "--correction", "none", "--zero-baseline", "absolute", "--suppress-small",
        "--out", folder / "out", *FEW_OPTIONS,
    )  # fmt: skip
    return frames_of(fw.load(folder / "out"))


def attributes(n: int = 300) -> pd.DataFrame:
    """Two tasks of the same examples."""
    parts = []
    for place, task in enumerate(("hat", "glasses")):
        table = people(n, classes="yn")
        table["label"] = mistaken(table["label"], 0.4 * place, place, "yn")
        origin = dense(table, place, "yn")
        members = {
            ("dense", 0): origin,
            ("small", 0): compressed(table, origin, place, loss=0.15, classes="yn"),
        }
        parts.append(long(table, members, task=task))
    return pd.concat(parts, ignore_index=True)


@fixed
def tasks(folder: Path) -> Frames:
    """Two tasks of one data set with clusters, and a training table."""
    table = attributes()
    first = people(300, classes="yn", first_id=5000)
    train = pd.concat([first.assign(task="hat"), first.assign(task="glasses")])
    return frames_of(
        fw.audit_table(
            table, task="task", groups=["sex"], cluster="person", train=train, positive="y", **FEW
        )
    )


@fixed
def scores(folder: Path) -> Frames:
    """The probability of one of two classes."""
    return frames_of(fw.audit_table(scored(), groups=["sex", "age"], positive="yes", **FEW))


@fixed
def score_vectors(folder: Path) -> Frames:
    """The probabilities of three classes."""
    table = wide()
    vectors = {}
    for name in ("dense", "int8"):
        rng = np.random.default_rng(len(name))
        hundredths = rng.integers(1, 30, (len(table), 3))
        chosen = table[f"pred_{name}"].map({"a": 0, "b": 1, "c": 2})
        hundredths[np.arange(len(table)), chosen] = 0
        hundredths[np.arange(len(table)), chosen] = 100 - hundredths.sum(axis=1)
        vectors[name] = hundredths / 100
    return frames_of(
        fw.audit(
            table["label"],
            {"dense": table["pred_dense"], "int8": table["pred_int8"]},
            y_score=vectors,
            sensitive_features=table[["sex"]],
            **FEW,
        )
    )


# ---------------------------------------------------------------- populations


def costs(seeds: int) -> pd.DataFrame:
    """A variants table: who was made from whom, and what each costs."""
    rows = [("dense", seed, None, 0.0, 900, 8.0) for seed in range(seeds)]
    rows += [("half", seed, f"dense:{seed}", 0.5, 500, 5.0) for seed in range(seeds)]
    rows += [("tenth", seed, f"dense:{seed}", 0.9, 120, 2.5) for seed in range(seeds)]
    columns = ["variant", "seed", "parent", "sparsity", "size_bytes", "latency_ms"]
    return pd.DataFrame(rows, columns=columns)


@fixed
def population_with_parents(folder: Path) -> Frames:
    """Four dense models and two copies of each, with their parents and costs."""
    table = people()
    members = population(table, {"half": 0.03, "tenth": 0.25}, seeds=4)
    long(table, members).to_parquet(folder / "predictions.parquet")
    costs(4).to_csv(folder / "variants.csv", index=False)
    fairweight(
        "audit", folder / "predictions.parquet", "--variants", folder / "variants.csv",
        "--groups", "age", "--out", folder / "out", *FEW_OPTIONS,
    )  # fmt: skip
    return frames_of(fw.load(folder / "out"))


@fixed
def population_by_seed(folder: Path) -> Frames:
    """Members with the same seed belong together; and the same members under other seeds."""
    table = people()
    members = population(table, {"pruned": 0.2}, seeds=4)
    apart = {(name, seed + 10 * (name != "dense")): one for (name, seed), one in members.items()}
    made = {
        name: fw.audit_table(long(table, given), groups=["age"], **FEW)
        for name, given in {"paired": members, "unpaired": apart}.items()
    }
    return {
        f"{name}/{key}": frame for name, audit in made.items()
        for key, frame in frames_of(audit).items() if key in ("results", "lead", "per_seed")
    }  # fmt: skip


@fixed
def population_repeated(folder: Path) -> Frames:
    """The same models run again: nothing is said about retraining."""
    table = people()
    members = population(table, {"int8": 0.05}, seeds=3)
    return frames_of(
        fw.audit_table(long(table, members), groups=["age"], members="repeated", **FEW)
    )


@fixed
def population_unequal(folder: Path) -> Frames:
    """Three dense models and five others that were not made from them, two classes."""
    table = people(classes="yn")
    members = population(table, {"pruned": 0.2}, seeds=5, classes="yn")
    of_dense = np.stack([members["dense", seed] for seed in range(3)], axis=1)
    of_pruned = np.stack([members["pruned", seed] for seed in range(5)], axis=1)
    return frames_of(
        fw.audit(
            table["label"],
            {"dense": of_dense, "pruned": of_pruned},
            sensitive_features=table[["sex"]],
            positive="y",
            **FEW,
        )
    )


@fixed
def population_with_clusters_and_weights(folder: Path) -> Frames:
    """Three members on both sides, several examples of each person, sampling weights."""
    table = people()
    members = population(table, {"pruned": 0.2}, seeds=3)
    return frames_of(
        fw.audit_table(
            long(table, members), groups=["sex"], cluster="person", weight="sampled", **FEW
        )
    )


@fixed
def population_with_scores(folder: Path) -> Frames:
    """Three members on both sides with the probability of one of two classes."""
    table = pd.concat([scored(300, seed=seed) for seed in range(3)], ignore_index=True)
    return frames_of(fw.audit_table(table, groups=["sex"], positive="yes", **FEW))


@fixed
def one_against_several(folder: Path) -> Frames:
    """One dense model, three copies of it."""
    table = people()
    origin = dense(table)
    members = {("dense", 0): origin}
    members |= {("int8", seed): compressed(table, origin, seed) for seed in range(3)}
    return frames_of(fw.audit_table(long(table, members), groups=["sex"], **FEW))


# ---------------------------------------------------------------- cubes, gates, choices


@fixed
def cube(folder: Path) -> Frames:
    """Two parts of a table, counted and audited together; and counted with clusters."""
    table = wide()
    options = ("--prediction", "dense=pred_dense", "--prediction", "int8=pred_int8")
    for name, part in {"one": table[:150], "two": table[150:]}.items():
        part.to_csv(folder / f"{name}.csv", index=False)
        fairweight(
            "count", folder / f"{name}.csv", *options, "--groups", "sex,age",
            "--out", folder / f"cube-{name}.parquet", "--quiet",
        )  # fmt: skip
    fairweight(
        "audit", folder / "cube-one.parquet", folder / "cube-two.parquet",
        "--out", folder / "out", *FEW_OPTIONS,
    )  # fmt: skip
    table.to_csv(folder / "all.csv", index=False)
    fairweight(
        "count", folder / "all.csv", *options, "--groups", "sex", "--cluster", "person",
        "--out", folder / "cube-persons.parquet", "--quiet",
    )  # fmt: skip
    persons = fw.audit_table(folder / "cube-persons.parquet", **FEW)
    members = people()
    long(members, population(members, {"int8": 0.1}, seeds=1)).to_parquet(folder / "long.parquet")
    fairweight(
        "count", folder / "long.parquet", "--groups", "sex", "--parts", "2", "--workers", "1",
        "--out", folder / "cube-parts.parquet", "--quiet",
    )  # fmt: skip
    return frames_of(fw.load(folder / "out")) | {
        "counted": pd.read_parquet(folder / "cube-one.parquet"),
        "parts": pd.read_parquet(folder / "cube-parts.parquet"),
        **within("persons", {"results": persons.results}),
    }


@fixed
def counted(folder: Path) -> Frames:
    """A table that was counted before: each row stands for several examples."""
    keys = ["label", "sex", "age", "pred_dense", "pred_int8"]
    table = wide().groupby(keys, as_index=False).size().rename(columns={"size": "n"})
    columns = {"dense": "pred_dense", "int8": "pred_int8"}
    return frames_of(
        fw.audit_table(table, predictions=columns, groups=["sex", "age"], count="n", **FEW)
    )


@fixed
def many_classes(folder: Path) -> Frames:
    """A thousand classes, few examples of each."""
    rng = np.random.default_rng(41)
    label = np.repeat(np.arange(1000), 6)
    before = np.where(rng.random(6000) < 0.85, label, (label + 1) % 1000)
    after = np.where(
        rng.random(6000) < np.where(label < 100, 0.7, 0.95), before, (label + 2) % 1000
    )
    audit = fw.audit(
        label,
        {"dense": before, "int8": after},
        sensitive_features={"half": np.where(label % 2, "odd", "even")},
        n_boot=20,
        random_state=1,
    )
    rows = audit.results
    confirmed = rows[rows["metric"].isin(["accuracy", "recall", "precision", "heterogeneity"])]
    return {"results": confirmed, "lead": audit.lead, "power": audit.power}


@fixed
def suppressed(folder: Path) -> Frames:
    """An audit for publication, without numbers of fewer than 40 examples."""
    table = wide()
    made = fw.audit_table(
        table,
        predictions={"dense": "pred_dense", "int8": "pred_int8"},
        groups=["sex*age"],
        **FEW,
    )
    return frames_of(made.suppressed(40))


POLICIES: dict[str, str] = {
    "lenient": """
        min_group_size = 20
        [[rule]]
        metric = "accuracy"
        by = "overall"
        margin = 0.15
        [[rule]]
        metric = "accuracy"
        by = "group"
        columns = ["sex"]
        margin = 0.2
    """,
    "strict": """
        min_group_size = 20
        [[rule]]
        metric = "accuracy"
        by = "group"
        margin = 0.01
        [[rule]]
        metric = "group_gap"
        by = "grouping"
        margin = 0.05
        [[rule]]
        metric = "recall"
        by = "class"
        margin = 0.05
        min = 0.8
    """,
    "small": """
        min_group_size = 300
        [[rule]]
        metric = "accuracy"
        by = "group"
        margin = 0.02
    """,
    "absent": """
        min_group_size = 20
        require_groups = ["sex=X"]
        [[rule]]
        metric = "accuracy"
        by = "group"
        margin = 0.5
    """,
}


def counted_tests(path: Path) -> dict[str, Any]:
    """What a JUnit file says of each test, and the numbers of every suite."""
    told: dict[str, Any] = {}
    for number, element in enumerate(ElementTree.parse(path).iter()):
        kept = {name: said for name, said in element.items() if name not in ("timestamp", "time")}
        text = " ".join(NUMBER.findall(" ".join([kept.pop("message", ""), element.text or ""])))
        told[f"{number} {element.tag}"] = kept | {"numbers": text}
    return told


@fixed
def gate(folder: Path) -> Frames:
    """Two variants, four policies: a pass, a failure, what cannot be told, and a refusal."""
    table = wide()
    table.to_csv(folder / "wide.csv", index=False)
    made: dict[str, pd.DataFrame] = {}
    for (name, text), code in zip(POLICIES.items(), (0, 1, 3, 2), strict=True):
        policy, verdict = folder / f"{name}.toml", folder / f"{name}.json"
        policy.write_text("schema = 1\n" + text)
        fairweight(
            "gate", folder / "wide.csv", "--groups", "sex,age", "--policy", policy,
            "--json", verdict, "--junit", folder / f"{name}.xml",
            "--markdown", folder / f"{name}.md", *FEW_OPTIONS, code=code,
        )  # fmt: skip
        if code == 2:
            assert not verdict.exists()
            continue
        made[f"{name}/junit"] = flat(counted_tests(folder / f"{name}.xml"))
        made[f"{name}/markdown"] = numbers((folder / f"{name}.md").read_text(encoding="utf-8"))
        said = json.loads(verdict.read_text())
        made[f"{name}/endpoints"] = pd.DataFrame(said["endpoints"])
        answer = {key: said[key] for key in ("outcome", "exit_code", "variants", "passing")}
        made[f"{name}/verdict"] = flat(answer)
    return made


@fixed
def gate_again(folder: Path) -> Frames:
    """The same examples gated three times, with a level for each look."""
    wide().to_csv(folder / "wide.csv", index=False)
    (folder / "policy.toml").write_text("schema = 1\n" + POLICIES["strict"])
    made: dict[str, pd.DataFrame] = {}
    for look in ("first", "second", "third"):
        fairweight(
            "gate", folder / "wide.csv", "--groups", "sex", "--policy", folder / "policy.toml",
            "--looks", "3", "--log", folder / "looks.jsonl", "--json", folder / f"{look}.json",
            *FEW_OPTIONS, code=1,
        )  # fmt: skip
        said = json.loads((folder / f"{look}.json").read_text())
        made[f"{look}/endpoints"] = pd.DataFrame(said["endpoints"])
    return made


@fixed
def gate_of_populations(folder: Path) -> Frames:
    """Members, persons and weights against one policy."""
    table = people(300)
    members = population(table, {"half": 0.02, "tenth": 0.3}, seeds=3)
    made: dict[str, pd.DataFrame] = {}
    options: dict[str, dict[str, Any]] = {
        "members": {},
        "persons": {"cluster": "person"},
        "weights": {"weight": "sampled"},
    }
    (folder / "policy.toml").write_text("schema = 1\n" + POLICIES["strict"])
    for name, given in options.items():
        audit = fw.audit_table(long(table, members), groups=["age"], **given, **FEW)
        verdict = audit.gate(folder / "policy.toml", require="any")
        made[f"{name}/endpoints"] = verdict.rows
        made[f"{name}/verdict"] = flat({"outcome": verdict.outcome, "variants": verdict.variants})
    return made


# The figures that an answer fills.
OF_CHOICE: dict[str, tuple[str, ...]] = {
    "smallest": ("FW-5",),
    "frontier": ("PA-F4a",),
    "three": ("PA-F4a", "PA-F4b"),
    "weighed": ("FW-5",),
}


@fixed
def choose(folder: Path) -> Frames:
    """Among three variants: the smallest that may be used, a frontier, and by weights."""
    table = people()
    members = population(table, {"half": 0.03, "tenth": 0.25}, seeds=3)
    long(table, members).to_parquet(folder / "predictions.parquet")
    costs(3).to_csv(folder / "variants.csv", index=False)
    audit = fw.audit_table(long(table, members), groups=["age"], **FEW)
    questions: dict[str, tuple[str, ...]] = {
        "smallest": ("--objective", "size_bytes", "--require", "accuracy>=0.85",
                     "--require", "worst_group_shift@age>=-0.1"),
        "frontier": ("--objective", "sparsity", "--objective", "accuracy"),
        "three": ("--objective", "sparsity", "--objective", "accuracy",
                  "--objective", "group_gap@age"),
        "weighed": ("--worth", "accuracy=1", "--worth", "sparsity=0.1",
                    "--confirm-share", "0.4"),
    }  # fmt: skip
    made: dict[str, pd.DataFrame] = {}
    for name, words in questions.items():
        fairweight(
            "choose", folder / "predictions.parquet", "--variants", folder / "variants.csv",
            "--groups", "age", *words, "--out", folder / name, *FEW_OPTIONS,
        )  # fmt: skip
        said = json.loads((folder / name / "choice.json").read_text())
        made[f"{name}/answer"] = flat({key: said[key] for key in ("chosen", "qualifying")})
        tables = frames_in(folder / name / "tables")
        made |= within(
            name, tables | pictures(folder / name) | drawn(audit, OF_CHOICE[name], **tables)
        )
    return made


# ---------------------------------------------------------------- which examples, and why


def explained(folder: Path) -> fw.Audit:
    """A population with persons, parents and sparsities, with every explanation."""
    table = people()
    members = population(table, {"half": 0.05, "tenth": 0.3}, seeds=4)
    rng = np.random.default_rng(4)
    height = np.tile(rng.integers(150, 200, len(table)), len(members))
    long(table, members, height=height).to_parquet(folder / "predictions.parquet")
    distances = {"svcca.block1": lambda models: 0.1 + models["sparsity"] / 4 + models["seed"] / 100}
    costs(4).assign(**distances).to_csv(folder / "variants.csv", index=False)
    people(300, first_id=5000).to_csv(folder / "train.csv", index=False)
    fairweight(
        "explain", folder / "predictions.parquet", "--variants", folder / "variants.csv",
        "--train", folder / "train.csv", "--groups", "sex,age", "--cluster", "person",
        "--individual-group", "sex", "--out", folder / "out", *FEW_OPTIONS,
    )  # fmt: skip
    return fw.load(folder / "out")


@fixed
def explain(folder: Path) -> Frames:
    """Every explanation."""
    return explained(folder).explanations


@fixed
def units(folder: Path) -> Frames:
    """Units of a network: what one does alone, and what comes back without it."""
    table = wide(2000)
    lost = (table["pred_int8"] != table["label"]) & (table["pred_dense"] == table["label"])
    names = {}
    for place, name in enumerate(("stem", "block", "fc")):
        own = (
            lost
            & (np.arange(len(table)) % 6 >= (0, 4, 5)[place])
            & (np.arange(len(table)) % 6 < (4, 5, 6)[place])
        )
        table[f"without_{name}"] = table["pred_int8"].where(~own, table["label"])
        table[f"alone_{name}"] = table["pred_dense"].where(~own, table["pred_int8"])
        names[name] = (f"without_{name}", f"alone_{name}")
    columns = {"dense": "pred_dense", "int8": "pred_int8"}
    audit = fw.audit_table(table, predictions=columns, groups=["sex", "age"], **FEW)
    audit = with_units(audit, table, names)
    return audit.explanations | drawn(audit, ["FW-8"]) | texts(audit)


@fixed
def explain_images(folder: Path) -> Frames:
    """Images of the bundled digits: who wrote them is made up."""
    table = answers_of("resource-efficient", "structured")
    place = table["example_id"].map({id: i for i, id in enumerate(table["example_id"].unique())})
    table.assign(writer=place // 12, desk=(place // 12) % 2).to_parquet(folder / "asked.parquet")
    fairweight(
        "explain", folder / "asked.parquet", "--dataset", "digits", "--groups", "ink,desk",
        "--cluster", "writer", "--individual-group", "desk", "--out", folder / "out", *FEW_OPTIONS,
    )  # fmt: skip
    audit = fw.load(folder / "out")
    figures = ["SS-F1", "HK-F3", "PA-F10", "PA-F11"]
    return without_pictures(audit.explanations) | drawn(audit, figures)


@fixed
def explain_tasks(folder: Path) -> Frames:
    """Two attributes of one data set, before and after their thresholds were changed."""
    table = attributes()
    moved = table[table["variant"] == "small"].assign(
        variant="small+thresholds",
        prediction=lambda t: mistaken(t["prediction"], 0.05, 7, "yn"),
    )
    pd.concat([table, moved]).to_parquet(folder / "tasks.parquet")
    train = people(300, classes="yn", first_id=5000)
    both = pd.concat([train.assign(task="hat"), train.assign(task="glasses")])
    both.to_parquet(folder / "train.parquet")
    fairweight(
        "explain", folder / "tasks.parquet", "--task", "task", "--groups", "sex,age",
        "--train", folder / "train.parquet", "--positive", "y", "--part", "exemplars",
        "--out", folder / "out", *FEW_OPTIONS,
    )  # fmt: skip
    audit = fw.load(folder / "out")
    return audit.explanations | drawn(audit, ["IO-F1b", "IO-F2", "IO-F5a"])


@fixed
def exemplars(folder: Path) -> Frames:
    """The examples on which populations differ, of every kind."""
    table = people(250)
    members = population(table, {"half": 0.05, "tenth": 0.3}, seeds=3)
    long(table, members).to_parquet(folder / "predictions.parquet")
    fairweight(
        "exemplars", folder / "predictions.parquet", "--groups", "sex",
        "--kind", "modal,unanimous,taxicab,jaccard", "--percentile", "90,95",
        "--random-state", "1", "--out", folder / "out", "--quiet",
    )  # fmt: skip
    return frames_in(folder / "out")


@fixed
def preflight(folder: Path) -> Frames:
    """Three dense models alone, with scores."""
    table = pd.concat([scored(150, seed=seed) for seed in range(3)], ignore_index=True)
    table[table["variant"] == "dense"].to_parquet(folder / "dense.parquet")
    fairweight(
        "preflight", folder / "dense.parquet", "--groups", "sex,age",
        "--out", folder / "out", "--quiet",
    )  # fmt: skip
    made = frames_in(folder / "out")
    del made["preflight_evidence"]  # a table of the package, copied
    return made


# ---------------------------------------------------------------- what helps


# The figures that a mitigation is judged by.
OF_MITIGATION = {"thresholds": ["FW-2"], "overrides": ["FW-4", "IO-F6"], "cascade": ["FW-4"]}


def mitigated(folder: Path, kind: str, *words: Any) -> Frames:
    """Run a mitigation on scored predictions; other examples are in `validation.parquet`."""
    scored(200).to_parquet(folder / "test.parquet")
    scored(200, first_id=5000).to_parquet(folder / "validation.parquet")
    models = pd.DataFrame({"variant": ["dense", "small"], "seed": 0, "latency_ms": [8.0, 2.0]})
    models.to_csv(folder / "variants.csv", index=False)
    fairweight(
        "mitigate", kind, folder / "test.parquet", "--variants", folder / "variants.csv",
        "--groups", "sex", "--positive", "yes", *words, "--out", folder / "out", *FEW_OPTIONS,
    )  # fmt: skip
    rule = json.loads((folder / "out" / f"{kind}.json").read_text())
    rule.pop("fitted_on", None)  # digests of the examples
    audit = fw.load(folder / "out")
    made = {"rule": flat(rule), "results": audit.results}
    return frames_in(folder / "out") | made | drawn(audit, OF_MITIGATION[kind])


@fixed
def thresholds(folder: Path) -> Frames:
    """Another threshold, fitted on other examples."""
    return mitigated(folder, "thresholds", "--validation", folder / "validation.parquet")


@fixed
def overrides(folder: Path) -> Frames:
    """The dense model's answers on the examples of which it is least sure."""
    return mitigated(folder, "overrides", "--budget", "0.1")


@fixed
def cascade(folder: Path) -> Frames:
    """The dense model answers where the small one is unsure."""
    validation = ("--validation", folder / "validation.parquet")
    return mitigated(folder, "cascade", *validation, "--margin", "0.05")


# ---------------------------------------------------------------- studies

AUDITS |= STUDIES
