"""The fixtures of the project's tests, for the tests of the benchmarks, and what ends a benchmark's hold on memory."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from tests.conftest import amplifier_home, no_hang

__all__ = ["amplifier_home", "no_hang"]


@pytest.fixture(autouse=True)
def collected_again() -> Iterator[None]:
    """`benchmarks/speed` freezes its rows for a process that ends soon; this one goes on."""
    yield
    gc.unfreeze()
