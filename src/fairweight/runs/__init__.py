"""Runs of studies: what is to be done (plan), who does it (runner), where it goes (store)."""
