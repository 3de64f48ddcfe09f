"""A small session goes as it is recorded: each request, its size and what changed."""

from __future__ import annotations

from tests.support.recorded import FILE, taped


def test_a_session_is_as_recorded():
    """A change that is meant is recorded by `python tools/recorded.py --write`."""
    assert taped() == FILE.read_text("utf-8").splitlines()
