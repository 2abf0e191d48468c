"""Which slices pay in excess: a search over columns and their pairs that does not flatter itself.

`find.py` calls the stages in order: columns and bins, halves, candidates, tests, list,
confirmation.
"""

UNSEARCHED = "Slices were not searched: "  # how such a note begins
