"""Benchmarks on real conversations with gold answers: fetched, never shipped, because they have no free licence."""
