"""The studies that come with fairweight: one folder each, one TOML file per preset."""

from __future__ import annotations

from pathlib import Path

from fairweight.errors import InputError, UnknownNameError
from fairweight.specs.read_study import read_study
from fairweight.specs.study import Study

FOLDER = Path(__file__).parent / "specs"
PRESETS = ("smoke", "laptop", "paper")
DEFAULT = "laptop"


def names() -> list[str]:
    """Every study that comes with fairweight."""
    return sorted(path.name for path in FOLDER.iterdir() if path.is_dir())


def presets(name: str) -> list[str]:
    """The presets of a study, small ones first."""
    return [preset for preset in PRESETS if (_folder(name) / f"{preset}.toml").is_file()]


def text(name: str, preset: str = DEFAULT) -> str:
    """The commented TOML of a study."""
    return _file(name, preset).read_text(encoding="utf-8")


def study(name: str, preset: str | None = None) -> Study:
    """A study by its name, or from the TOML file of that path."""
    if name.endswith(".toml"):
        if preset is not None:
            raise InputError(
                f"--preset {preset} belongs to the studies that come with fairweight; '{name}' is "
                "one whole study."
            )
        return read_study(name)
    return read_study(_file(name, preset or DEFAULT))


def _file(name: str, preset: str) -> Path:
    file = _folder(name) / f"{preset}.toml"
    if not file.is_file():
        raise UnknownNameError(f"The preset of '{name}'", preset, presets(name))
    return file


def _folder(name: str) -> Path:
    if name not in names():
        raise UnknownNameError(
            "Study", name, names(), remedy="A study of your own is the path of its .toml file."
        )
    return FOLDER / name
