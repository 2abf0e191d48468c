"""What people say about single examples: verdicts, notes and the labels that they stand for."""
