"""What every layer rests on: errors, files, locks, random streams, registries, words, types."""
