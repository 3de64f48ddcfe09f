"""Benchmarks of this package and of other libraries, on one harness: `benchmarks/run.py`."""
