"""Small real results for the gallery: networks of the bundled digits, trained in seconds."""
