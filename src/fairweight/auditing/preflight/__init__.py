"""Before compressing: what the dense model's predictions alone say about who is at risk."""
