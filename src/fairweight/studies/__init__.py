"""Experiments that make prediction tables and ask the audit about them."""
