"""A verdict shown: on a terminal, as Markdown, as JUnit XML and as JSON."""
