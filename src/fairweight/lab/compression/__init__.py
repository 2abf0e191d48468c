"""Pruning and quantisation: methods, schedules, masks of channels, int8."""

# Importing a module registers its methods; the order is the order of listings.
from fairweight.lab.compression import methods as methods  # isort: skip
from fairweight.lab.compression import quantisation as quantisation  # isort: skip
