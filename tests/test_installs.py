"""Every documented install, in a fresh environment, from the wheel, outside the repository.

They need a package index (or a cache of pip) and minutes, so they are slow; without an index they
are skipped.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

ROOT = Path(__file__).resolve().parents[1]
OURS = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")  # nothing of the repository may be found


def documented() -> list[str]:
    """The commands below README's heading Install."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    block = text.split("\n## Install\n")[1].split("```")[1]
    lines = [line.split("  #")[0].strip() for line in block.splitlines()[1:]]
    return [line for line in lines if line]


def quiet(words: Sequence[str | Path], cwd: Path, timeout: int = 1500) -> str:
    """What a command prints, in an environment that knows nothing of the repository."""
    environment = {key: value for key, value in os.environ.items() if key not in OURS}
    done = subprocess.run(
        list(map(str, words)),
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    said = done.stdout + done.stderr
    if done.returncode and re.search("No matching distribution|Connection|resolve host", said):
        pytest.skip("no package index can be reached")
    assert done.returncode == 0, said
    return done.stdout


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, as it would be published."""
    out = tmp_path_factory.mktemp("wheel")
    quiet([sys.executable, "-m", "pip", "wheel", "--no-deps", "-q", "-w", out, ROOT], out)
    (found,) = out.glob("fairweight-*.whl")
    return found


def fresh(folder: Path) -> Path:
    """The Python of an empty environment."""
    quiet([sys.executable, "-m", "venv", folder / "environment"], folder)
    return folder / "environment/bin/python"


def from_wheel(line: str, wheel: Path) -> list[str]:
    """A documented line with the wheel in place of the folder of the repository."""
    words = shlex.split(line)
    place = {".": str(wheel), "constraints.txt": str(ROOT / "constraints.txt")}
    return [re.sub(r"^\.(?=\[)", str(wheel), place.get(word, word)) for word in words]


def test_the_readme_says_how_to_install_and_to_try() -> None:
    lines = documented()
    assert "python3 -m pip install ." in lines
    assert "uvx --from . fairweight demo --quick" in lines
    first = (ROOT / "README.md").read_text(encoding="utf-8").split("```")[1].splitlines()
    commands = [line.split("  #")[0].strip() for line in first[1:] if line]
    assert commands == [
        "python3 -m pip install .",
        "fairweight audit dense.csv int8.csv --groups sex,age",
    ]
    wheel = Path("/w/fairweight.whl")
    assert from_wheel("pip install '.[lab]'", wheel) == ["pip", "install", f"{wheel}[lab]"]


WORKS = {
    "": ["demo", "--quick"],
    "[lab]": ["methods", "global-magnitude"],
    "[web]": ["view", "--help"],
}


@pytest.mark.slow
@pytest.mark.parametrize("line", [line for line in documented() if "pip install" in line])
def test_an_install_works_outside_the_repository(line: str, wheel: Path, tmp_path: Path) -> None:
    python = fresh(tmp_path)
    words = from_wheel(line, wheel)
    quiet([python, *words[1:], "-q"], tmp_path)
    extra = next((name for name in WORKS if name and name in line), "")
    program = python.with_name("fairweight")
    assert quiet([program, *WORKS[extra]], tmp_path)
    place = quiet([python, "-c", "import fairweight; print(fairweight.__file__)"], tmp_path)
    assert str(ROOT) not in place
    if extra:
        return
    # The README's first block, and a verdict in a shell script.
    i = np.arange(900)
    sex, age = np.where(i % 3, "F", "M"), np.where(i % 5 < 2, "old", "young")
    people = pd.DataFrame({"example_id": i, "label": i % 2, "sex": sex, "age": age})
    for name in ("dense", "int8"):
        people.assign(prediction=people["label"]).to_csv(tmp_path / f"{name}.csv", index=False)
    tables = ["dense.csv", "int8.csv", "--groups", "sex,age"]
    assert "int8" in quiet([program, "audit", *tables], tmp_path)
    (tmp_path / "policy.toml").write_text(
        quiet([program, "gate", "--init", *tables], tmp_path), encoding="utf-8"
    )
    said = quiet([program, "gate", *tables, "--policy", "policy.toml"], tmp_path)
    assert said.startswith("Gate: PASS")


@pytest.mark.slow
def test_it_can_be_tried_without_an_install(wheel: Path, tmp_path: Path) -> None:
    (line,) = [line for line in documented() if line.startswith("uvx ")]
    uvx = shutil.which("uvx")
    if uvx is None:
        python = fresh(tmp_path)
        quiet([python, "-m", "pip", "install", "-q", "uv"], tmp_path)
        uvx = str(python.with_name("uvx"))
    said = quiet([uvx, "--python", sys.executable, *from_wheel(line, wheel)[1:]], tmp_path)
    assert "dense" in said
    assert (tmp_path / "fairweight-demo").is_dir()


MLFLOW = """
import mlflow, numpy as np, fairweight as fw

mlflow.set_tracking_uri("sqlite:///runs.db")
mlflow.set_experiment("audits")
y = np.arange(400) % 2
sex = np.where(np.arange(400) % 4 == 0, "a/b", "c=d & e")
int8 = np.where(np.arange(400) % 40 == 0, 1 - y, y)
audit = fw.audit(y, {"dense": y, "int8": int8}, sensitive_features={"sex": sex}, n_boot=20)
verdict = audit.gate({"rule": [{"metric": "accuracy", "by": "group", "margin": 0.02}]})
with mlflow.start_run() as run:
    audit.log_to(run, verdict=verdict)
client = mlflow.MlflowClient()
held = client.get_run(run.info.run_id).data
files = {file.path for file in client.list_artifacts(run.info.run_id, "fairweight")}
assert held.metrics["fairweight/int8/accuracy/shift"] == -10 / 400, held.metrics
assert held.metrics["fairweight/int8/accuracy/sex_a_b/shift"] == -0.1, held.metrics
assert held.tags["fairweight.verdict.int8"] == verdict.outcome, held.tags
assert {"fairweight/report.html", "fairweight/audit.json"} <= files, files
print("mlflow", mlflow.__version__)
"""


@pytest.mark.slow
def test_an_audit_goes_into_mlflow_with_an_sqlite_store(wheel: Path, tmp_path: Path) -> None:
    python = fresh(tmp_path)
    quiet([python, "-m", "pip", "install", "-q", wheel, "mlflow"], tmp_path)
    (tmp_path / "log.py").write_text(MLFLOW, encoding="utf-8")
    assert "mlflow 3" in quiet([python, "log.py"], tmp_path)
    assert (tmp_path / "runs.db").stat().st_size > 0
