"""Pruning and quantisation: methods, schedules, masks of channels, int8."""

# Importing a module registers its methods; the order is the order of listings.
from fairweight.lab.compression import methods as methods  # isort: skip
from fairweight.lab.compression import int8 as int8  # isort: skip
from fairweight.lab.compression import weight_bits as weight_bits  # isort: skip
