"""Train, compress, predict and audit on real data, and write the pages of this folder.

    python docs/results/lab_runs.py mnist --data DIR --work DIR
    python docs/results/lab_runs.py cifar10 --data DIR --work DIR

Every step is one command of fairweight, run in the folder of --work. What is there already is not
made again, so an interrupted run goes on; the page is written from the tables at the end.
"""

from __future__ import annotations

import argparse
import shlex
import subprocess
import sys
from pathlib import Path

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


def run(commands: list[str], data: Path, work: Path) -> list[str]:
    """Run what is not there yet; the commands as they were."""
    for number, command in enumerate(commands, start=1):
        target = _target(command)
        print(f"[{number}/{len(commands)}] fairweight {command}", flush=True)
        if target is not None and (work / target).exists():
            continue
        words = [sys.executable, "-m", "fairweight", *shlex.split(command)]
        words += ["--data", str(data)] if words[3] in ("train", "compress", "predict") else []
        subprocess.run(words, cwd=work, check=True)
    return commands


def _target(command: str) -> str | None:
    words = shlex.split(command)
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["mnist", "cifar10"])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    given = parser.parse_args()
    work = given.work / given.what
    work.mkdir(parents=True, exist_ok=True)
    run(MNIST if given.what == "mnist" else cifar10(), given.data.resolve(), work)


if __name__ == "__main__":
    main()
