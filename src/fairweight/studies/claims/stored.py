"""The published tables of a study, read once each."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from fairweight.errors import InputError
from fairweight.report.frames import FRAMES
from fairweight.tables.write import settle

if TYPE_CHECKING:
    import pandas as pd


CHANGE_FITS = "individual_change_fits"  # lines through the changes of individuals


class NotThereError(Exception):
    """Why a table or a row cannot be had; a claim that needs it cannot be told."""


class Stored:
    """Reads tables of a study's published folder and keeps them: claims share most of them."""

    def __init__(self, root: Path) -> None:
        if not root.is_dir():
            raise InputError(
                f"There are no results in '{root}'; run the study, or give --results DIR."
            )
        self.root = root
        self._frames: dict[tuple[str, str], pd.DataFrame] = {}

    def table(self, folder: str, name: str) -> pd.DataFrame:
        """A table of an experiment's audit, or of another folder with `tables`."""
        key = (folder, name)
        if key not in self._frames:
            self._frames[key] = self._read(folder, name)
        return self._frames[key]

    def _read(self, folder: str, name: str) -> pd.DataFrame:
        import pandas as pd

        place = self.root / folder
        settle(place)
        if (place / "audit").is_dir():
            place = place / "audit"
        if not place.is_dir():
            raise NotThereError(f"these results have no {folder}")
        if name == CHANGE_FITS:
            from fairweight.auditing.explain.individual_fits import individual_fits

            return individual_fits(self.table(folder, "individuals"), sides=("shift",))
        path = place / "tables" / f"{name}.parquet"
        if path.is_file():
            return pd.read_parquet(path)
        if name in FRAMES and (place / "audit.json").is_file():
            return self._from_audit(place / "audit.json", folder, name)
        raise NotThereError(f"{folder} has no table {name}")

    def _from_audit(self, path: Path, folder: str, name: str) -> pd.DataFrame:
        from fairweight.report.machine import from_json

        result = from_json(path.read_text(encoding="utf-8"))
        for held in FRAMES:
            self._frames.setdefault((folder, held), getattr(result, held))
        return self._frames[folder, name]
