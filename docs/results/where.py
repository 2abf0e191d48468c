"""Run the grid of where.toml: units of networks compressed one by one, audited by group.

    python docs/results/where.py STORE DATA [--budget 3600]

STORE holds a folder per network, as `train` wrote it; networks that are not there are named and
left out. Predictions are kept in STORE, so that an interrupted run goes on.
"""

from __future__ import annotations

import argparse
import time
import tomllib
from pathlib import Path

import fairweight as fw
from fairweight.lab.compression.registry import spec_from
from fairweight.report.explanation_sentences import explanation_sentences

GRID = Path(__file__).with_name("where.toml")


def main(store: Path, data: Path, budget: float | None) -> None:
    """Every network and method; an audit each, and what is said of it."""
    begun = time.monotonic()
    for network in tomllib.loads(GRID.read_text(encoding="utf-8"))["network"]:
        model = store / network["model"]
        if not model.is_dir():
            print(f"{network['name']}: no model in {model.name}, left out")
            continue
        for method in network["methods"]:
            left = None if budget is None else budget - (time.monotonic() - begun)
            made = fw.sensitivity(
                model,
                method,
                groups=None if network["groups"] == ["class"] else network["groups"],
                unit=network["unit"],
                task=network.get("task"),
                part=network["judged"],
                root=data,
                store=store / "units",
                budget=None if left is None else max(0.0, left),
                announce=print,
            )
            called = f"{network['name']}-{spec_from(method).variant(method['method'])}"
            made.save(store / f"audit-{called}")
            for sentence in explanation_sentences(made.result):
                print(f"{called}: {sentence}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("store", type=Path)
    parser.add_argument("data", type=Path)
    parser.add_argument("--budget", type=float, help="seconds")
    asked = parser.parse_args()
    main(asked.store, asked.data, asked.budget)
