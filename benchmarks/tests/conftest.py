"""The fixtures of the project's tests, for the tests of the benchmarks."""

from __future__ import annotations

from tests.conftest import amplifier_home, no_hang

__all__ = ["amplifier_home", "no_hang"]
