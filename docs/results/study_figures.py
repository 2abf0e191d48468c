"""Figures of a study's results, as files small enough to stand beside a page."""

from __future__ import annotations

import io
import shutil
from pathlib import Path

# They hold images, which may be somebody else's.
PICTURES = ("HK-F3", "SS-F1", "PA-F10")
# They show every variant and mark one of them.
ALL_VARIANTS = ("SG-T1", "SG-F3", "SG-F4", "SG-F5", "SG-F6", "SS-F2")
LARGEST = 40_000  # bytes of a drawing; above it stands a picture of few colours
SCALE = 1.0  # pixels of that picture for a pixel of the drawing
COLOURS = 128


def kept(folder: Path, *, pictures: bool = False) -> list[Path]:
    """Those of single variants, and of those that show all variants one."""
    shown: dict[str, Path] = {}
    for path in sorted(folder.glob("*.svg")):
        if path.stem.startswith(PICTURES) and not pictures:
            continue
        id = next((id for id in ALL_VARIANTS if path.stem.startswith(f"{id}-")), path.stem)
        shown[id] = path
    return list(shown.values())


def put(figure: Path, target: Path) -> Path:
    """Copy a figure to `target`, as a PNG where it is large; returns where it went."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if figure.stat().st_size <= LARGEST:
        shutil.copyfile(figure, target)
        return target
    import vl_convert
    from PIL import Image

    drawn = vl_convert.svg_to_png(figure.read_text(encoding="utf-8"), scale=SCALE)
    picture = Image.open(io.BytesIO(drawn)).convert("RGB")
    # By coverage of colours: the median cut makes those of thin lines alike.
    picture = picture.quantize(COLOURS, method=Image.Quantize.MAXCOVERAGE)
    made = target.with_suffix(".png")
    picture.save(made, optimize=True)
    return made
