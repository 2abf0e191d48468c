"""What a newcomer relies on: the files that must be there and what must never be committed."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import tomllib
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[1]
LARGEST_FILE_BYTES = 1_000_000

# A home or work folder of some machine; system paths such as /dev/null and /usr/bin/env are not.
MACHINE_PATH = re.compile(r"(?<![\w.~/-])/(?:home|Users|root|work|tmp|mnt)/[\w.-]+|[A-Z]:\\Users\\")


def tracked_files() -> list[Path]:
    """Files that are committed or would be: tracked, or new and not ignored."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout: which files are tracked is unknown")
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    ).stdout
    paths = [ROOT / os.fsdecode(name) for name in listing.split(b"\0") if name]
    return [path for path in paths if path.is_file()]


def texts() -> dict[Path, str]:
    contents = {}
    for path in tracked_files():
        data = path.read_bytes()
        if b"\0" not in data:
            contents[path] = data.decode("utf-8")
    return contents


def normalised(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def pinned() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = [line.split("==") for line in lines if line and not line.startswith("#")]
    return {normalised(name): version for name, version in pins}


def test_the_pattern_finds_machine_paths_and_only_those() -> None:
    # Put together here, or this file would be found as well.
    for path in ("home/me/data", "root/x.csv", "work/main"):
        assert MACHINE_PATH.search(f"see '/{path}'")
    for text in ("https://example.org/home/page", "#!/usr/bin/env bash", "../work/data", "a/tmp/b"):
        assert not MACHINE_PATH.search(text)


def test_no_machine_paths() -> None:
    found = {
        str(path.relative_to(ROOT)): match.group()
        for path, text in texts().items()
        if (match := MACHINE_PATH.search(text))
    }
    assert found == {}


def test_no_large_files() -> None:
    large = {path.name for path in tracked_files() if path.stat().st_size > LARGEST_FILE_BYTES}
    assert large == set()


def test_no_pickles() -> None:
    assert [path for path in tracked_files() if path.suffix in {".pkl", ".pickle"}] == []


def test_the_licence_is_apache_2() -> None:
    text = (ROOT / "LICENSE").read_text()
    assert "Apache License" in text
    assert "Version 2.0, January 2004" in text
    assert "END OF TERMS AND CONDITIONS" in text


def test_the_first_screen_of_the_readme_names_the_two_commands() -> None:
    screen = (ROOT / "README.md").read_text().splitlines()[:60]
    for command in ("make demo", "make test"):
        assert any(line.startswith(command) for line in screen)


@pytest.mark.parametrize(
    "name", ["CHANGELOG.md", "CONTRIBUTING.md", "ARCHITECTURE.md", "SECURITY.md"]
)
def test_the_pages_of_a_repository_exist(name: str) -> None:
    assert (ROOT / name).read_text().startswith("# ")


def test_ci_runs_what_a_developer_runs() -> None:
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    assert script.read_text().splitlines()[-1] == "exec make check test"


def test_constraints_pin_every_dependency_that_make_installs() -> None:
    """What is declared, and what that needs in turn, as far as it is installed here."""
    named = declared()
    known: dict[str, Any] = {}
    assert len(named) > 15
    while named:
        requirement = Requirement(named.pop())
        name = normalised(requirement.name)
        extras = requirement.extras or {""}
        if name in known and known[name] >= extras:
            continue
        known[name] = known.get(name, set()) | extras
        with contextlib.suppress(PackageNotFoundError):
            named += [
                text
                for text in requires(name) or ()
                if any(applies(Requirement(text), extra) for extra in extras)
            ]
    known.pop("fairweight", None)
    assert len(known) > 60
    assert set(known) - set(pinned()) == set(), "run: make lock"
    assert "torch" in pinned()  # else pip takes the build with gigabytes of CUDA


def declared() -> list[str]:
    """What `make` installs: dependencies, extras and groups of pyproject.toml."""
    document = tomllib.loads((ROOT / "pyproject.toml").read_text())
    found = [*document["project"]["dependencies"]]
    for extra in ("explain", "lab", "ray", "web"):
        found += document["project"]["optional-dependencies"][extra]
    for entries in document["dependency-groups"].values():
        found += [entry for entry in entries if isinstance(entry, str)]
    return [entry for entry in found if not entry.startswith("fairweight[")]


def applies(requirement: Requirement, extra: str) -> bool:
    return requirement.marker is None or requirement.marker.evaluate({"extra": extra})


def test_constraints_name_versions_and_no_places() -> None:
    assert "fairweight" not in pinned()
    for name, version in pinned().items():
        assert re.fullmatch(r"\d[\w.+!]*", version), f"{name}=={version}"


def test_extras_are_those_of_the_design() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert set(project["optional-dependencies"]) == {
        "all", "explain", "frames", "lab", "ray", "sql", "tflite", "web",
    }  # fmt: skip


def test_groups_are_for_those_who_work_on_it() -> None:
    document = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert set(document["dependency-groups"]) == {"dev", "docs"}


def test_hooks_run_what_make_check_runs() -> None:
    hooks = (ROOT / ".pre-commit-config.yaml").read_text()
    assert "repo: local" in hooks
    assert "http" not in hooks  # nothing is fetched
    recipe = (ROOT / "Makefile").read_text().partition("\ncheck:")[2].partition("\n\n")[0]
    for tool in ("ruff check", "ruff format", "mypy", "lint-imports"):
        assert tool in hooks
        assert tool in recipe
