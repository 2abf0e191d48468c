"""How large the house is: files, functions, names and imports of the source, counted.

python -m tests.house

A figure that grows wants a reason. Nested functions, long lambdas and long files are counted too,
so that nothing is merely hidden.
"""

from __future__ import annotations

import ast
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"
LONG_FILE = 700
# Modules that a registry, the command line or the application loads by design.
LEAVES = (
    "fairweight.cli.", "fairweight.web.pages.", "fairweight.report.figures.",
    "fairweight.lab.models.", "fairweight.data.", "fairweight.auditing.metrics.",
)  # fmt: skip
AUDIT = """
import sys, fairweight.cli
sys.argv = ["fairweight", "audit", "dense.csv", "int8.csv", "--quiet"]
try:
    fairweight.cli.main()
except SystemExit as done:
    assert not done.code, done.code
print(sum(name.partition(".")[0] == "fairweight" for name in sys.modules))
"""
Function = ast.FunctionDef | ast.AsyncFunctionDef


def modules() -> dict[str, ast.Module]:
    """Every module of the source by its dotted name."""
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        name = ".".join(path.relative_to(SOURCE).with_suffix("").parts)
        found[name.removesuffix(".__init__")] = ast.parse(path.read_text(encoding="utf-8"))
    return found


def imported(tree: ast.AST, known: dict[str, ast.Module]) -> set[str]:
    """Modules of ours that this one imports, anywhere in it."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                found |= {inner if inner in known else node.module}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return found & set(known)


def functions(node: ast.AST, inside: bool = False) -> Iterator[tuple[Function, bool]]:
    """Every function, and whether it stands inside another."""
    for child in ast.iter_child_nodes(node):
        is_function = isinstance(child, Function)
        if is_function:
            yield child, inside
        yield from functions(child, inside or is_function)


def used_once(tree: ast.Module) -> int:
    """Private functions of a module's top level that its code names exactly once."""
    uses = Counter(node.id for node in ast.walk(tree) if isinstance(node, ast.Name))
    return sum(
        isinstance(node, Function) and node.name.startswith("_") and uses[node.name] == 1
        for node in tree.body
    )


def loaded_by_an_audit() -> int:
    """Modules of ours that an audit of two CSV files loads, measured."""
    with tempfile.TemporaryDirectory() as folder:
        for name, wrong in (("dense", 3), ("int8", 7)):
            rows = [f"{i},{i % 2},{(i + (i < wrong)) % 2},{'fm'[i % 2]}" for i in range(60)]
            text = "\n".join(["example_id,label,prediction,sex", *rows])
            Path(folder, f"{name}.csv").write_text(text, encoding="utf-8")
        done = subprocess.run(
            [sys.executable, "-c", AUDIT], cwd=folder, capture_output=True, text=True, check=True
        )
    return int(done.stdout.split()[-1])


def figures() -> dict[str, int]:
    """Every figure by what it counts."""
    known = modules()
    every = [found for tree in known.values() for found in functions(tree)]
    importers = defaultdict(set)
    for name, tree in known.items():
        for other in imported(tree, known) - {name}:
            importers[other].add(name)
    classes = Counter(
        node.name
        for tree in known.values()
        for node in tree.body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    lines = {
        path: len(path.read_text(encoding="utf-8").splitlines()) for path in SOURCE.rglob("*.py")
    }
    return {
        "source files": len(lines),
        "lines": sum(lines.values()),
        "functions": len(every),
        "modules imported by exactly one other": sum(
            len(who) == 1 and not name.startswith(LEAVES) for name, who in importers.items()
        ),
        "repeated public class names": sum(times > 1 for times in classes.values()),
        "modules loaded by an audit of two CSV files": loaded_by_an_audit(),
        "imports inside functions": sum(
            isinstance(node, ast.Import | ast.ImportFrom)
            for function, nested in every
            if not nested
            for node in ast.walk(function)
        ),
        "private functions used once": sum(used_once(tree) for tree in known.values()),
        "nested functions": sum(nested for _, nested in every),
        "lambdas longer than a line": sum(
            isinstance(node, ast.Lambda) and node.end_lineno != node.lineno
            for tree in known.values()
            for node in ast.walk(tree)
        ),
        f"files over {LONG_FILE} lines": sum(size > LONG_FILE for size in lines.values()),
    }


def main() -> None:
    for what, number in figures().items():
        print(f"{number:>7,}  {what}")


if __name__ == "__main__":
    main()
