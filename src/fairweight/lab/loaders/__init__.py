"""Models as people have them: one file per kind, each opened as the same few things."""
