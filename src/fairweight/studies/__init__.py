"""Experiments that make prediction tables and audit them."""
