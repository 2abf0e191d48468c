"""Whether a study reproduces what its paper claims, judged from stored results."""
