"""From specs to files: train a model, compress one, ask many. What commands and studies call."""
