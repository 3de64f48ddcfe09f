"""Amplifier's own loops and providers, run against a local server that refuses what a real one would refuse."""
