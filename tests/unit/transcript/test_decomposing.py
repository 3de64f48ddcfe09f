"""Normal form NFKD in pieces: as Python's for real texts, and quick for runs of marks."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_summarize.transcript.decomposing import decomposed
from tests.support.effort import HUGE


@given(st.text(st.sampled_from("aé\u0301\u0323ﬁ½한\u1100\u1161 \n漢"), max_size=20).map(lambda text: text * 40))
def test_a_real_text_is_decomposed_as_a_whole(text):
    longest = max(map(len, "".join(" " if not unicodedata.combining(c) else c for c in text).split()), default=0)
    assert longest > 30 or decomposed(text) == unicodedata.normalize("NFKD", text)


@pytest.mark.usefixtures("no_hang")
@pytest.mark.parametrize("unit", ["\u0300\u0316", "\u05b0\u05c1"])
def test_marks_without_end_are_no_hang(unit):
    text = unit * (HUGE // len(unit))
    assert len(decomposed(text)) >= 0.9 * HUGE
