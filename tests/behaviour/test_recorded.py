"""Requests, events and summaries of whole sessions are as recorded; `python tools/recorded.py` tells more."""

from __future__ import annotations

import json

import pytest

from tests.support.effort import LONG
from tests.support.recorded import FILE, KINDS, scripts, taped

SCRIPTS, RECORDED = scripts(), json.loads(FILE.read_text("utf-8"))


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_session_is_as_recorded(name):
    """A change that is meant is recorded by `python tools/recorded.py --write`."""
    most = None if LONG else SCRIPTS[name].short

    tape = taped(SCRIPTS[name], most=most)

    assert tape.differences(RECORDED[name], is_part=most is not None) == []
    assert all(tape.digests()[kind] for kind in KINDS)
