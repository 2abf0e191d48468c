"""Where each module of the source is tested: a file of its own name, or a line of mirror.toml.

    python -m tests.mirror

`src/fairweight/a/b.py` is tested by `tests/a/test_b.py`, or `mirror.toml` says where. The command
writes that file again after modules or tests were moved: lines that hold stay, and where one is
missing it names the tests that import the module, or what imports it: read them, and correct the
line. What nobody imports has to be written by hand; `tests/test_mirror.py` fails until it is.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path

TESTS = Path(__file__).parent
SOURCE = TESTS.parent / "src" / "fairweight"
STATED = TESTS / "mirror.toml"
HEAD = """\
# Where modules are tested that have no test file of their own name (tests/mirror.py).
# Paths are below src/fairweight and below tests. `python -m tests.mirror` writes this file again.

"""
# Read by their form: to parse every file would take seconds.
FROM = re.compile(r"^ *from (fairweight[\w.]*) import (\([^)]*\)|.*)$", re.MULTILINE)
PLAIN = re.compile(r"""(?:^ *import |["'])(fairweight[\w.]*)""", re.MULTILINE)
# These load the modules of a folder by names that they list.
LOADERS = {"cli/app.py": "cli", "tables/logs/log.py": "tables/logs"}
MOST = 2  # files that the command writes for a module


def modules() -> list[str]:
    """Every module that defines something, by its path."""
    paths = sorted(SOURCE.rglob("*.py"))
    return [path.relative_to(SOURCE).as_posix() for path in paths if _defines(path)]


def _defines(path: Path) -> bool:
    """A package without functions and classes only passes names on."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    if path.name != "__init__.py":
        return True
    return any(isinstance(n, kinds) for n in ast.parse(path.read_text(encoding="utf-8")).body)


def own(module: str) -> str:
    """The test file of its name.

    >>> own("tables/align.py")
    'tables/test_align.py'
    """
    folder, _, name = module.rpartition("/")
    return f"{folder}/test_{name}".removeprefix("/")


def stated() -> dict[str, list[str]]:
    """What mirror.toml says: modules, and the files that test them."""
    return tomllib.loads(STATED.read_text(encoding="utf-8")) if STATED.exists() else {}


def tests_of(module: str) -> list[str]:
    """The files that test a module."""
    return [own(module)] if (TESTS / own(module)).exists() else stated().get(module, [])


def test_files() -> list[str]:
    """Every test file, by its path."""
    return sorted(path.relative_to(TESTS).as_posix() for path in TESTS.rglob("test_*.py"))


@cache
def imported(path: Path) -> frozenset[str]:
    """Modules of the source that a file imports, at its top or inside its functions."""
    known = _by_dotted_name()
    names = _named(path.read_text(encoding="utf-8"))
    found = {known[name] for name in names if name in known}
    if path.is_relative_to(SOURCE):
        folder = LOADERS.get(path.relative_to(SOURCE).as_posix())
        found |= {module for module in known.values() if folder and module.startswith(f"{folder}/")}
    return frozenset(found)


def near(test: str) -> set[str]:
    """Modules that a test file imports, itself or by its folder's conftest, and three steps on."""
    path = TESTS / test
    conftest = path.with_name("conftest.py")
    found = {*imported(path), *(imported(conftest) if conftest.exists() else ())}
    for _ in range(3):
        found |= {inner for module in found for inner in imported(SOURCE / module)}
    return found


def written() -> str:
    """mirror.toml as it should be."""
    lines = []
    held, files = stated(), set(test_files())
    users = {test: imported(TESTS / test) for test in sorted(files)}
    for module in modules():
        if own(module) in files:
            continue
        there = [test for test in held.get(module, []) if test in files]
        if not there:
            found = [test for test, names in users.items() if module in names]
            found = found or _indirect(module, users)
            nearest = sorted(found, key=partial(_distance, module, users))
            there = sorted(nearest[:MOST])
        if there:
            lines.append(f'"{module}" = [{", ".join(f"{test!r}" for test in there)}]')
    return HEAD + "\n".join(lines).replace("'", '"') + "\n"


def _indirect(module: str, users: dict[str, frozenset[str]]) -> list[str]:
    """Tests of the modules that import a module which no test imports by itself."""
    others = [other for other in modules() if module in imported(SOURCE / other)]
    found = {test for test, names in users.items() if names & {*others}}
    found |= {test for other in others for test in tests_of(other)} & {*users}
    return [test for test in found if module in near(test)]


def _distance(
    module: str, users: dict[str, frozenset[str]], test: str
) -> tuple[bool, bool, int, str]:
    """Nearest are tests that name the module, those of its folder, and those of few modules."""
    path = Path(module)
    named = path.stem.removesuffix("s") in Path(test).stem
    return not named, not Path(test).is_relative_to(path.parent), len(users[test]), test


@cache
def _by_dotted_name() -> dict[str, str]:
    paths = [path.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*.py")]
    return {_dotted(path): path for path in paths}


def _dotted(module: str) -> str:
    name = "fairweight." + module.removesuffix(".py").replace("/", ".")
    return name.removesuffix(".__init__")


def _named(text: str) -> Iterator[str]:
    """Dotted names that are imported, or stand in a text: some modules are loaded by their name."""
    for module, names in FROM.findall(text):
        yield module
        yield from (f"{module}.{name}" for name in re.findall(r"\w+", names))
    yield from PLAIN.findall(text)


if __name__ == "__main__":
    STATED.write_text(written(), encoding="utf-8")
