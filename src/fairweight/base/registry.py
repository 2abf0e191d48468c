"""What other packages offer under an entry point, loaded when somebody asks for it."""

from __future__ import annotations

import warnings


def load_entry_points(group: str, what: str) -> None:
    """Import everything of a group; what cannot be loaded is named in a warning.

    Parameters
    ----------
    what
        How the warning calls it: `metric`.
    """
    from importlib.metadata import entry_points

    for point in entry_points(group=group):
        try:
            point.load()
        except Exception as error:  # another package's error must not stop our own work
            package = point.dist.name if point.dist is not None else point.value
            warnings.warn(
                f"The package '{package}' offers the {what} '{point.name}', which cannot be "
                f"loaded ({type(error).__name__}: {error}); update or remove the package.",
                stacklevel=4,
            )
