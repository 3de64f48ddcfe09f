"""What a long memory costs and keeps: `python -m benchmarks.memory`."""
