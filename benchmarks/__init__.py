"""Speed and memory beside peers and limits, measured in one run: `python -m benchmarks`.

Each benchmark is one module with `TITLE`, `SETTING` (what is measured, in a sentence) and
`run(settings)`, which returns lines, and perhaps `NEEDS`, packages without which it is left out.
Absolute times of a shared machine mean little, so every line is a ratio. Nothing here is asserted
by a test: tests only check that the benchmarks run.
"""
