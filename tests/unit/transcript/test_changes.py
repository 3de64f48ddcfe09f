"""Diffs by lines."""

from __future__ import annotations

import pytest

from context_summarize.transcript.changes import diff


@pytest.mark.parametrize(
    ("old", "new", "lines"),
    [
        ("a\nb\nc", "a\nX\nc", [" a", "-b", "+X", " c"]),
        ("", "a\nb", ["+a", "+b"]),
        ("a", "", ["-a"]),
        ("same", "same", []),
        ("1\n2\n3\n4\n5\n6\n7", "1\n2\n3\n4\n5\n6\nX", [" 5", " 6", "-7", "+X"]),
        ("a\nb\n1\n2\n3\n4\n5\nc", "A\nb\n1\n2\n3\n4\n5\nC", ["-a", "+A", " b", " 1", "@@", " 4", " 5", "-c", "+C"]),
    ],
)
def test_a_diff_has_the_changed_lines_and_those_near_them(old, new, lines):
    assert diff(old, new) == lines
