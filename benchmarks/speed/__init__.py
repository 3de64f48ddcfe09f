"""The bars of speed and memory, measured through the public names alone: `python -m benchmarks.speed`."""
