"""Losses that hold a student near its teacher, and the object that adds them up in training."""

# Importing the losses registers them.
from fairweight.lab.distillation import contrastive as contrastive
from fairweight.lab.distillation import losses as losses
