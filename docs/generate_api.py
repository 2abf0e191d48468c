"""Write python.md and lab.md of docs/reference from the docstrings of what is public.

    python docs/generate_api.py

The source is read, not imported, so that neither torch nor anything else is needed. A test fails
when a page is not what the code says.

Why not mkdocstrings (1.0, with mkdocstrings-python 2.0, tried on `fw.audit_table`): its page exists
only in the built site, while these are read on Git hosts too; defaults that stand in one place are
shown as `AuditOptions.alpha` instead of 0.05; and parameters that are described together (`label`,
`id`: "names of the columns") all get the default of the first.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from docstrings import definitions, described, fields, is_property, members, signature
from generate_reference import REFERENCE, table

import fairweight

SOURCE = Path(fairweight.__file__).parent
MADE = "<!-- Made by docs/generate_api.py from the docstrings: do not edit. -->"


def python_page() -> str:
    """What `import fairweight as fw` offers."""
    homes = ("api.py", "audits.py", "precision.py")
    found = {name: node for home in homes for name, node in definitions(SOURCE / home).items()}
    names = [name for name in fairweight.__all__ if name in found]
    functions = [name for name in names if isinstance(found[name], ast.FunctionDef)]
    classes = [name for name in names if isinstance(found[name], ast.ClassDef)]
    parts = [
        MADE,
        "# Python",
        "`import fairweight as fw` loads next to nothing; what is used is loaded when it is used. "
        "Arrays go to `fw.audit`, tables and files to `fw.audit_table`; both give an `fw.Audit`, "
        "and `fw.load` gives one that was saved. Every other command is a function too: it takes "
        "what `fw.audit_table` takes, or a [`fw.TableSpec`](#fwtablespec) where columns have names "
        "of their own, and [`fw.AuditOptions`](#fwauditoptions). "
        "Single metrics on arrays are in [`fw.metrics`](#fwmetrics), models in "
        "[`fw.lab`](lab.md). Wrong input raises "
        "[`fairweight.errors.InputError`](#fairweighterrors), whose one sentence says which "
        "argument, what was given, and what to do.",
    ]
    for name in functions:
        parts += [f"## fw.{name}", *_function(found[name], f"fw.{name}")]
    for name in classes:
        parts += [f"## fw.{name}", *_class(found[name], "audit")]
    for name, module in (("TableSpec", "tables/spec.py"), ("AuditOptions", "specs/audit.py")):
        node = definitions(SOURCE / module)[name]
        assert isinstance(node, ast.ClassDef)
        parts += [f"## fw.{name}", *described(node)]
    mitigations = definitions(SOURCE / "mitigate.py")
    parts += ["## fw.mitigate", *_class(mitigations["Mitigation"], "mitigation")]
    for name in ("thresholds", "overrides", "cascade"):
        parts += [f"### fw.mitigate.{name}", *_function(mitigations[name], f"fw.mitigate.{name}")]
    parts += ["## fw.metrics", *_metrics()]
    parts += ["## fairweight.errors", *_errors()]
    return _with_defaults("\n\n".join(parts) + "\n")


def _with_defaults(page: str) -> str:
    """The page with the defaults of requests as values: `AuditOptions.alpha` is 0.05."""
    requests = {"TableSpec": fairweight.TableSpec, "AuditOptions": fairweight.AuditOptions}

    def value(found: re.Match[str]) -> str:
        held = getattr(requests[found[1]], found[2])
        return repr(str(held) if isinstance(held, str) else held)

    return re.sub(r"(?<== )(TableSpec|AuditOptions)\.(\w+)", value, page)


def lab_page() -> str:
    """What `fairweight.lab` offers."""
    from fairweight import lab

    parts = [
        MADE,
        "# The lab in Python",
        "Models are built, trained, compressed and asked in `fairweight.lab`, the only part that "
        "loads torch: `pip install 'fairweight[lab]'`. The same from the command line: "
        "[train, compress, predict, audit](../how-to/train-and-compress.md).",
    ]
    for name in sorted(lab.__all__, key=str.lower):
        module = lab._HOMES[name].replace(".", "/")
        node = definitions(SOURCE / "lab" / f"{module}.py")[name]
        parts.append(f"## lab.{name}")
        if isinstance(node, ast.ClassDef):
            parts += _class(node, name.lower())
        else:
            parts += _function(node, f"lab.{name}")
    return "\n\n".join(parts) + "\n"


def _function(node: ast.stmt, name: str) -> list[str]:
    assert isinstance(node, ast.FunctionDef)
    return [signature(node, name), *described(node)]


def _class(node: ast.stmt, call: str) -> Iterator[str]:
    """A class: its text, its properties as a table, its methods one by one."""
    assert isinstance(node, ast.ClassDef)
    yield from described(node)
    made = fields(node, node.name)
    if made is not None:
        yield made
    properties = [one for one in members(node) if is_property(one)]
    if properties:
        yield table(("property", "", ""), [_property(one, call) for one in properties])
    for one in members(node):
        if not is_property(one):
            yield f"### {call}.{one.name}"
            yield signature(one, f"{call}.{one.name}")
            yield from described(one)


def _property(node: ast.FunctionDef, call: str) -> tuple[str, str, str]:
    kind = ast.unparse(node.returns).replace("|", "\\|") if node.returns is not None else ""
    said = next(iter(described(node)), "").replace("|", "\\|")
    return f"`{call}.{node.name}`", f"`{kind}`", said


def _metrics() -> Iterator[str]:
    from fairweight import metrics
    from fairweight.auditing.metrics import metrics as entries

    yield (
        "Every metric that can be told from arrays is a function of the same name: "
        "`fw.metrics.recall(y_true, y_pred)`, with the arguments that scikit-learn's users know. "
        "`fw.metrics.names()` lists them, `help(fw.metrics.recall)` says what one means; a metric "
        "of your own is [one function of counts](../how-to/write-a-metric.md)."
    )
    said = {entry.name: entry.summary for entry in entries()}
    rows = [(f"[`{name}`](metrics.md#{name})", said[name]) for name in metrics.names()]
    yield table(("metric", ""), rows)


def _errors() -> Iterator[str]:
    found = definitions(SOURCE / "errors.py").items()
    for name, node in ((n, node) for n, node in found if isinstance(node, ast.ClassDef)):
        yield f"**`{name}`**"
        yield from described(node)


PAGES: dict[str, Callable[[], str]] = {"python.md": python_page, "lab.md": lab_page}


def main() -> None:
    """Write every page."""
    for name, page in PAGES.items():
        (REFERENCE / name).write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
