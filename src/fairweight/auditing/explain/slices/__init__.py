"""Which slices pay in excess: a search over columns and their pairs that does not flatter itself.

`search.py` calls the steps in order: columns and bins, halves, candidates, tests, list,
confirmation.
"""

UNSEARCHED = "Slices were not searched: "  # how such a note begins
