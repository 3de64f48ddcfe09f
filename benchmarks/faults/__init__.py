"""A failing summariser, contestant by contestant: `python -m benchmarks.faults`."""
