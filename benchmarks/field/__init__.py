"""This module measured beside its peers on the same sessions: `python -m benchmarks.field`."""
