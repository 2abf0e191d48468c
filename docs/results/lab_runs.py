"""Train, compress, predict and audit on real data, and write the pages of this folder.

    python docs/results/lab_runs.py mnist --data DIR --work DIR
    python docs/results/lab_runs.py cifar10 --data DIR --work DIR

Every step is one command of fairweight, run in the folder of --work. What is there already is not
made again, so an interrupted run goes on; the page is written from the tables at the end.
"""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

PAGES = Path(__file__).parent

MNIST = [
    "train --dataset mnist --epochs 10 --batch-size 32 --lr 0.01 --threads 1 --out models/dense-0",
    "train --dataset mnist --epochs 60 --batch-size 32 --lr 0.01 --set schedule=constant "
    "--threads 1 --method iterative-magnitude --sparsity 0.9855884812 "
    "--method-option schedule.epochs=3 --variant rewound-98.6 --out models/rewound-98.6-0",
    "compress models/dense-0 --method int8-static",
]

FINETUNE = "--epochs 4 --lr 0.02 --augment crop=4,flip --threads 1"
DENSE = (
    "train --dataset cifar10 --model resnet8x4 --width 0.25 --epochs 30 --lr 0.1 "
    "--set weight_decay=5e-4 --augment crop=4,flip --threads 1 --onnx --out models/dense-0"
)
AT_ONCE = (
    "l1-structured", "l2-structured", "linf-structured", "random-structured",
    "l1-unstructured", "random-unstructured", "global-magnitude",
)  # fmt: skip
GRADUAL = {
    "agp-weights": "schedule=agp|schedule.end=4|schedule.every=1",
    "agp-filters": "schedule=agp|schedule.end=4|schedule.every=1",
    "gmp-pretrained": "schedule=gmp|schedule.start=0|schedule.every=1|schedule.end=3",
    "zhu-gupta": "schedule=zhu-gupta|schedule.start=0|schedule.every=20|schedule.end=200",
    "polynomial": "schedule=polynomial|schedule.every=20|schedule.end=200",
    "iterative": "schedule=iterative|schedule.epochs=1|schedule.share=0.3",
}
UNDERLYING = {"polynomial": "l1-unstructured", "iterative": "global-magnitude"}


def cifar10() -> list[str]:
    """Every method at two sparsities, int8 of both kinds, and pruning from the first weights."""
    made = [DENSE]
    for method in AT_ONCE:
        made += [
            f"compress models/dense-0 --method {method} --sparsity {share} {FINETUNE} --onnx"
            for share in (0.5, 0.8)
        ]
    made += [
        f"compress models/dense-0 --method n-of-m --method-option n={n} {FINETUNE} --onnx"
        for n in (2, 1)
    ]
    for name, options in GRADUAL.items():
        words = " ".join(f"--method-option {option}" for option in options.split("|"))
        for share in (0.5, 0.8):
            epochs = 8 if name == "iterative" else 4
            length = FINETUNE.replace("--epochs 4", f"--epochs {epochs}")
            made.append(
                f"compress models/dense-0 --method {UNDERLYING.get(name, name)} "
                f"--sparsity {share} {words} {length} --onnx "
                f"--variant {name}-{100 * share:g} --out models/{name}-{100 * share:g}-0"
            )
    made += [
        f"compress models/dense-0 --method l1-structured --sparsity {share} --remove-channels "
        f"{FINETUNE} --onnx --variant removed-{100 * share:g} "
        f"--out models/removed-{100 * share:g}-0"
        for share in (0.5, 0.8)
    ]
    made += [
        f"train --dataset cifar10 --model resnet8x4 --width 0.25 --epochs 20 --lr 0.1 "
        f"--set weight_decay=5e-4 --augment crop=4,flip --threads 1 "
        f"--method gmp-random-init-short --sparsity {share} --onnx "
        f"--variant gmp-random-init-{100 * share:g} --out models/gmp-random-init-{100 * share:g}-0"
        for share in (0.5, 0.8)
    ]
    made += [f"compress models/dense-0 --method {kind}" for kind in ("int8-static", "int8-dynamic")]
    return made


def run(commands: list[str], data: Path, work: Path) -> None:
    """Run what is not there yet."""
    for number, command in enumerate(commands, start=1):
        target = _target(command)
        print(f"[{number}/{len(commands)}] fairweight {command}", flush=True)
        if target is not None and (work / target).exists():
            continue
        words = [sys.executable, "-m", "fairweight", *shlex.split(command)]
        words += ["--data", str(data)] if words[3] in ("train", "compress", "predict") else []
        subprocess.run(words, cwd=work, check=True)


def ask(work: Path) -> list[str]:
    """Predictions from the ONNX files where there are any, and the audit."""
    models = []
    for path in sorted((work / "models").iterdir()):
        if path.suffix == ".onnx":
            models.append(str(path.relative_to(work)))
        elif path.is_dir() and not path.name.startswith("."):
            held = path / "model.onnx"
            models.append(str((held if held.is_file() else path).relative_to(work)))
    return [
        f"predict {' '.join(models)} --variants variants.parquet --remeasure --threads 1",
        "audit predictions.parquet --variants variants.parquet --baseline dense --quiet "
        "--out audit",
    ]


def _target(command: str) -> str | None:
    words = shlex.split(command)
    if words[0] == "audit":
        return None
    if "--out" in words:
        return words[words.index("--out") + 1]
    if words[0] == "compress" and "--variant" not in words:
        method = words[words.index("--method") + 1]
        if method.startswith("int8"):
            return f"models/{method}-0.onnx"
        if method == "n-of-m":
            return f"models/{words[words.index('--method-option') + 1][2:]}-of-4-0"
        return f"models/{method}-{100 * float(words[words.index('--sparsity') + 1]):g}-0"
    return None


def results(work: Path) -> pd.DataFrame:
    """What each variant is, costs and does, from the tables of the audit."""
    import pandas as pd

    variants = pd.read_parquet(work / "variants.parquet").set_index("variant")
    found = pd.read_parquet(work / "audit" / "tables" / "results.parquet")
    found = found[(found["scope"] == "model") & found["task"].isna()]

    def column(metric: str, by: str, name: str) -> pd.Series:
        rows = found[(found["metric"] == metric) & (found["by"] == by)]
        return rows.groupby("variant")[name].min()

    variants["accuracy"] = column("accuracy", "overall", "compressed")
    variants["shift"] = column("accuracy", "overall", "shift")
    variants["low"] = column("accuracy", "overall", "ci_low")
    variants["high"] = column("accuracy", "overall", "ci_high")
    variants["worst class"] = column("recall", "class", "shift")
    dense = found[(found["metric"] == "accuracy") & (found["by"] == "overall")]
    variants.loc["dense", "accuracy"] = dense["baseline"].iloc[0]
    return variants


def cifar10_page(work: Path, commands: list[str]) -> str:
    rows = [
        "| variant | zeros | parameters | FLOPs without zeros | size | images/s | accuracy | "
        "change, 95 % | worst class |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for name, row in results(work).sort_values("accuracy", ascending=False).iterrows():
        shift = (
            ""
            if name == "dense"
            else (f"{100 * row['shift']:+.1f} [{100 * row['low']:+.1f}, {100 * row['high']:+.1f}]")
        )
        worst = "" if name == "dense" else f"{100 * row['worst class']:+.1f}"
        rows.append(
            f"| {name} | {100 * row['sparsity']:.1f} % | {row['n_params']:,.0f} | "
            f"{row['flops_sparse'] / 1e6:.2f} M | {row['size_bytes'] / 1000:,.0f} kB | "
            f"{row['items_per_s']:,.0f} | {100 * row['accuracy']:.2f} % | {shift} | {worst} |"
        )
    return "\n".join(
        [
            "# Every method on CIFAR-10",
            "",
            "A small ResNet (resnet8x4, a quarter of its width) on the 10,000 images of CIFAR-10's "
            "first batch, 10 % of them for validation; asked about the 10,000 test images. Every "
            "method at two sparsities, with four epochs of finetuning (iterative: eight); pruning "
            "from the first weights; channels really removed; int8 of both kinds. Predictions come "
            "from the exported ONNX files. Change and worst class are points against the dense "
            "model, paired on the same images. One model per variant: this shows that the line "
            "works end to end, and is no evidence about methods.",
            "",
            *rows,
            "",
            "Images per second: all files in ONNX Runtime, one thread, batches of 64, one after "
            "another; single runs of a shared machine, so differences of a tenth mean nothing. "
            "Zeros bring no speed; removed channels do.",
            "",
            *_made_by("cifar10", commands),
        ]
    )


def mnist_page(work: Path, commands: list[str]) -> str:
    card = json.loads((work / "models" / "rewound-98.6-0" / "model.json").read_text())
    weights = 59838  # of LeNet at 28 pixels, biases not counted
    rows = ["| round | zeros | weights left | validation accuracy |", "|---:|---:|---:|---:|"]
    for number, epoch in enumerate(card["training"]["history"][2::3]):
        left = round(weights * (1 - epoch["sparsity"]))
        rows.append(
            f"| {number} | {100 * epoch['sparsity']:.2f} % | {left:,} | "
            f"{100 * epoch['accuracy']:.2f} % |"
        )
    found = results(work)
    told = [
        f"- `{name}`: {100 * row['accuracy']:.2f} % of the 10,000 test images, "
        f"{100 * row['sparsity']:.2f} % zeros"
        for name, row in found.iterrows()
    ]
    return "\n".join(
        [
            "# LeNet on MNIST: dense, and 19 rounds with rewinding",
            "",
            "LeNet as in Paganini's appendix, without augmentation. `dense`: 10 epochs. "
            "`rewound-98.6`: 20 trainings of three epochs each; after each but the last, 20 % of "
            "the remaining weights go (globally, by magnitude) and the others return to their "
            "first values.",
            "",
            *told,
            "",
            *rows,
            "",
            "One model each: this shows that the line works end to end. Nineteen prunings leave "
            "862 weights, as 1 − 0.8¹⁹ says.",
            "",
            *_made_by("mnist", commands),
        ]
    )


def _made_by(what: str, commands: list[str]) -> list[str]:
    return [
        "## Made by",
        "",
        "```sh",
        f"python docs/results/lab_runs.py {what} --data DIR --work DIR",
        "```",
        "",
        "which runs, in this order (each with `--data DIR`):",
        "",
        "```text",
        *(f"fairweight {command}" for command in commands),
        "```",
        "",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["mnist", "cifar10"])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    given = parser.parse_args()
    work = given.work / given.what
    work.mkdir(parents=True, exist_ok=True)
    commands = MNIST if given.what == "mnist" else cifar10()
    run(commands, given.data.resolve(), work)
    asked = ask(work)
    run(asked, given.data.resolve(), work)
    page = mnist_page if given.what == "mnist" else cifar10_page
    out = PAGES / f"lab-{given.what}.md"
    out.write_text(page(work, [*commands, *asked]), encoding="utf-8")


if __name__ == "__main__":
    main()
