"""Starting must be quick: heavy libraries are loaded only by what needs them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import fairweight as fw

HEAVY = {
    "duckdb", "fairlearn", "fastapi", "jinja2", "numpy", "pandas", "polars", "pyarrow", "ray",
    "scipy", "sklearn", "statsmodels", "torch", "vl_convert",
}  # fmt: skip


def loaded_by(program: str) -> set[str]:
    """Top-level packages, outside the standard library, that a fresh interpreter has loaded."""
    # Compared with the start, because coverage tools and .pth files load packages of their own.
    script = "\n".join(
        [
            "import json, sys",
            "before = set(sys.modules)",
            program,
            "new = {name.partition('.')[0] for name in set(sys.modules) - before}",
            "print(json.dumps(sorted(new - sys.stdlib_module_names)))",
        ]
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(json.loads(run.stdout.splitlines()[-1]))


def test_the_probe_sees_what_is_loaded() -> None:
    assert "numpy" in loaded_by("import numpy")


def test_import_loads_nothing_but_fairweight() -> None:
    assert loaded_by("import fairweight") == {"fairweight"}


def test_help_loads_nothing_heavy() -> None:
    program = (
        "from fairweight.cli import main\n"
        "sys.argv = ['fairweight', '--help']\n"
        "try:\n"
        "    main()\n"
        "except SystemExit as stop:\n"
        "    assert not stop.code, stop.code\n"
    )
    loaded = loaded_by(program)
    assert "fairweight" in loaded
    assert loaded & HEAVY == set()


# What `fairweight audit` of a file loads, from the command to the report. A package that is new
# here costs every audit its start: .1 to .3 s for most of these.
OF_AN_AUDIT = {
    "annotated_doc", "annotated_types", "charset_normalizer", "cloudpickle", "cython_runtime",
    "dateutil", "duckdb", "fairweight", "jinja2", "markupsafe", "numpy", "pandas", "pyarrow",
    "pydantic", "pydantic_core", "pytz", "rich", "scipy", "shellingham", "six", "typer",
    "typing_extensions", "typing_inspection", "tzdata",
}  # fmt: skip


def test_an_audit_loads_what_is_listed(tmp_path: Path) -> None:
    rows = [f"{i},{i % 3},{i % 3 if i % 7 else 0},{i % 3 if i % 5 else 1}" for i in range(120)]
    table = tmp_path / "p.csv"
    table.write_text("\n".join(["example_id,label,pred_dense,pred_int8", *rows]))
    words = ["fairweight", "audit", str(table), "--n-boot", "20", "--quiet"]
    program = (
        "from fairweight.cli import main\n"
        f"sys.argv = {[*words, '--out', str(tmp_path / 'out')]!r}\n"
        "try:\n"
        "    main()\n"
        "except SystemExit as stop:\n"
        "    assert not stop.code, stop.code\n"
        "assert not {'scipy.stats', 'scipy.optimize', 'pyarrow.dataset'} & set(sys.modules)\n"
    )
    loaded = {name for name in loaded_by(program) if not name.startswith("_")}
    assert loaded <= OF_AN_AUDIT


@pytest.mark.parametrize("name", fw.__all__)
def test_every_public_name_exists_and_is_listed(name: str) -> None:
    assert getattr(fw, name) is not None
    assert name in dir(fw)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'adit'"):
        _ = fw.adit


def test_audit_stays_a_function_when_used_twice() -> None:
    # A module of that name would replace the function as soon as something imported it.
    program = (
        "import fairweight as fw\n"
        "for _ in range(2):\n"
        "    audit = fw.audit([0, 1, 0, 1], {'dense': [0, 1, 0, 1], 'small': [0, 1, 1, 1]},"
        " n_boot=20, random_state=0)\n"
        "    assert callable(fw.audit) and type(audit) is fw.Audit, fw.audit\n"
        "from fairweight import audit\n"
        "import fairweight.api, fairweight.metrics\n"
        "assert audit is fw.audit and fw.metrics is fairweight.metrics\n"
    )
    assert {"fairweight", "duckdb"} <= loaded_by(program)
