"""Losses that hold a student near its teacher, and the object that adds them up in training."""

# Importing a module registers its losses; the order is the order of listings.
from fairweight.lab.distillation import losses as losses  # isort: skip
from fairweight.lab.distillation import contrastive as contrastive  # isort: skip
