"""`fairweight.lab` is a surface whose names are loaded when they are used."""

from __future__ import annotations

import importlib
import inspect
import json
import pkgutil
import pydoc
import re
import subprocess
import sys
from types import ModuleType

import pytest

from fairweight import lab
from fairweight.errors import InputError


def test_a_new_process_loads_torch_with_the_first_function() -> None:
    """And `predict` is a function although its module was imported before it."""
    program = (
        "import json, sys, fairweight.lab\n"
        "before = 'torch' in sys.modules\n"
        "import fairweight.lab.prediction\n"
        "from fairweight.lab import predict\n"
        "fairweight.lab.build('lenet', classes=2, channels=1, size=28)\n"
        "print(json.dumps([before, 'torch' in sys.modules, fairweight.lab.predict is predict,\n"
        "    predict.__module__]))"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert json.loads(run.stdout) == [False, True, True, "fairweight.lab.prediction"]


@pytest.mark.parametrize("name", lab.__all__)
def test_every_public_name_is_a_function_and_listed(name: str) -> None:
    assert callable(getattr(lab, name))
    assert name in dir(lab)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'biuld'"):
        _ = lab.biuld


def test_no_module_has_the_name_of_a_function() -> None:
    # Python binds a module to its package when it is first imported, in the function's place.
    modules = {module.name for module in pkgutil.iter_modules(lab.__path__)}
    assert modules & set(lab.__all__) == set()


def test_help_shows_every_function_with_its_parameters() -> None:
    text = pydoc.plain(pydoc.render_doc(lab))
    for name in ("train", "compress", "distil", "predict", "similarity"):
        function = getattr(lab, name)
        assert f"{name}(" in text
        described = pydoc.plain(pydoc.render_doc(function))
        for parameter in inspect.signature(function).parameters:
            assert re.search(rf"^ +([a-z_]+, )*{parameter}(, [a-z_]+)*$", described, re.MULTILINE)


def test_without_torch_a_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> ModuleType:
        raise ModuleNotFoundError("No module named 'torch'", name="torch")

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(InputError, match=r"needs 'torch'.*pip install 'fairweight\[lab\]'"):
        _ = lab.build


def test_a_mistake_of_our_own_is_not_called_a_missing_installation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def missing(name: str) -> ModuleType:
        raise ModuleNotFoundError("No module named", name="fairweight.lab.nowhere")

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(ModuleNotFoundError):
        _ = lab.build
