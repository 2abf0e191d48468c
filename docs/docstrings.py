"""Numpydoc docstrings and signatures as Markdown, read from the source without importing it."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

from generate_reference import cell, plain, table

Callable_: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
WIDTH = 88
_SECTION = re.compile(r"^([A-Z][a-z]+)\n-{3,}\n", re.MULTILINE)
_LISTS = ("Parameters", "Raises", "Attributes")


def definitions(source: Path) -> dict[str, ast.stmt]:
    """Functions and classes of a module by their names."""
    kinds = (ast.FunctionDef, ast.ClassDef)
    body = ast.parse(source.read_text(encoding="utf-8")).body
    return {node.name: node for node in body if isinstance(node, kinds)}


def members(node: ast.ClassDef) -> Iterator[Callable_]:
    """Methods and properties that a reader may use."""
    for inner in node.body:
        if isinstance(inner, ast.FunctionDef) and not inner.name.startswith("_"):
            yield inner


def is_property(node: Callable_) -> bool:
    return any(ast.unparse(one) == "property" for one in node.decorator_list)


def signature(node: Callable_, name: str) -> str:
    """A call as it is written, a parameter per line where it is long."""
    given = _parameters(node.args)
    ends = f" -> {ast.unparse(node.returns)}" if node.returns is not None else ""
    line = f"{name}({', '.join(given)}){ends}"
    if len(line) > WIDTH:
        line = f"{name}(\n" + "".join(f"    {one},\n" for one in given) + f"){ends}"
    return fenced(line)


def _parameters(arguments: ast.arguments) -> list[str]:
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults = [None] * (len(positional) - len(arguments.defaults)) + list(arguments.defaults)
    given = [_parameter(a, d) for a, d in zip(positional, defaults, strict=True) if a.arg != "self"]
    if arguments.vararg is not None:
        given.append(f"*{_parameter(arguments.vararg, None)}")
    elif arguments.kwonlyargs:
        given.append("*")
    keywords = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    given += [_parameter(a, d) for a, d in keywords]
    if arguments.kwarg is not None:
        given.append(f"**{_parameter(arguments.kwarg, None)}")
    return given


def _parameter(argument: ast.arg, default: ast.expr | None) -> str:
    kind = f": {ast.unparse(argument.annotation)}" if argument.annotation is not None else ""
    if default is None:
        return f"{argument.arg}{kind}"
    return f"{argument.arg}{kind}{' = ' if kind else '='}{ast.unparse(default)}"


def fenced(code: str) -> str:
    """As written in this project: with double quotes, which `ast` does not keep."""
    return f"```python\n{code.replace(chr(39), chr(34))}\n```"


def fields(node: ast.ClassDef, name: str) -> str | None:
    """The fields of a dataclass as a call, None of other classes."""
    if not any("dataclass" in ast.unparse(one) for one in node.decorator_list):
        return None
    lines = [ast.unparse(one) for one in node.body if isinstance(one, ast.AnnAssign)]
    return fenced(f"{name}(\n" + "".join(f"    {line},\n" for line in lines) + ")")


def described(node: ast.stmt) -> list[str]:
    """A docstring as Markdown, part by part."""
    text = inspect.cleandoc(ast.get_docstring(node) or "")  # type: ignore[arg-type]
    parts = _SECTION.split(text + "\n")
    found = list(_paragraphs(parts[0]))
    for title, body in zip(parts[1::2], parts[2::2], strict=True):
        if title == "Examples":
            found += [f"**{title}**", f"```pycon\n{body.strip()}\n```"]
        elif title in _LISTS:
            entries, rest = _entries(body)
            found += [f"**{title}**", table(("", ""), entries), *_paragraphs(rest)]
        else:
            found += [f"**{title}**", *_paragraphs(body)]
    return found


def _paragraphs(text: str) -> Iterator[str]:
    for block in re.split(r"\n\s*\n", text.strip("\n")):
        lines = block.splitlines()
        if not block.strip():
            continue
        if lines[0].startswith(">>>"):
            yield f"```pycon\n{block}\n```"
        elif all(line.startswith("    ") for line in lines):
            yield "```text\n" + inspect.cleandoc(block) + "\n```"
        else:
            yield plain(" ".join(lines))


def _entries(body: str) -> tuple[list[tuple[str, str]], str]:
    """Names with what is said of each; and what follows behind the list."""
    found: list[tuple[str, str]] = []
    lines = body.strip("\n").splitlines()
    for at, line in enumerate(lines):
        after = lines[at + 1] if at + 1 < len(lines) else ""
        if line and not line.startswith(" "):
            if not after.startswith(" "):
                return found, "\n".join(lines[at:])
            names = (f"`{name.strip()}`" for name in line.split(","))
            found.append((", ".join(names), ""))
        elif line.strip():
            name, said = found[-1]
            found[-1] = (name, f"{said} {cell(line)}".strip())
    return found, ""
