"""Runs of studies: what is to be done (plan), by whom (runner), and where it is kept (store)."""
