"""Every module of the source has its tests, and it is known where (tests/mirror.py)."""

from __future__ import annotations

from tests import mirror, quick


def test_every_module_has_a_test_file_of_its_name_or_a_line_that_says_where_it_is_tested() -> None:
    untested = [module for module in mirror.modules() if not mirror.tests_of(module)]
    assert untested == [], "write tests/a/test_b.py, or a line of tests/mirror.toml"


def test_lines_are_about_modules_and_tests_that_are_there() -> None:
    """Run `python -m tests.mirror` after moving modules or tests."""
    lines = mirror.stated()
    assert set(lines) - set(mirror.modules()) == set()
    assert {test for tests in lines.values() for test in tests} - set(mirror.test_files()) == set()
    needless = [module for module in lines if (mirror.TESTS / mirror.own(module)).exists()]
    assert needless == []


def test_the_tests_that_are_named_load_the_module() -> None:
    wrong = [
        (module, test)
        for module, tests in mirror.stated().items()
        for test in tests
        if module != "__main__.py" and module not in mirror.near(test)
    ]
    assert wrong == []


def test_a_module_without_tests_is_found() -> None:
    assert mirror.tests_of("tables/nowhere.py") == []
    assert mirror.tests_of("auditing/pipeline.py") == ["auditing/test_pipeline.py"]
    assert not any(name.startswith("web/") for name in mirror.near("tables/test_canonical.py"))


def test_make_quick_begins_with_what_changed() -> None:
    changed = ["docs/guide.md", "src/fairweight/errors.py", "tests/test_api.py"]
    first, *rest = quick.chosen(changed)
    assert first == "test_api.py"
    tested = mirror.tests_of("errors.py")
    assert rest[: len(tested)] == tested
    assert rest[len(tested) :][: len(quick.CORE)] == list(quick.CORE)
    assert "security/test_inputs.py" in rest  # imports it, and nothing says that it tests it
    assert set(rest) <= set(mirror.test_files())
