"""JSON with very long strings, written and read in pieces."""

from __future__ import annotations

import json

import pytest

from context_summarize.persistence import long_lines
from context_summarize.persistence.long_lines import decoded, dumped, loaded

LONG = 'a "quoted" line\\ with \u00e9, \u4e2d\u6587, \U0001f600, \ud83d and \x01 in it\n' * 40_000


class TestLongLines:
    @pytest.mark.parametrize("value", [LONG, {"content": LONG, "n": 1}, [{"a": [LONG, 2.5, None], "b": {}}, "x"]])
    def test_they_are_the_same_json(self, value: object) -> None:
        """Files of other versions can be read, and the other way round."""
        text = "".join(dumped(value))
        assert text == json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        assert loaded(text) == value
        assert decoded(text.encode("utf-8", "surrogatepass")) == text

    def test_no_step_takes_more_than_a_piece(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The interpreter's lock is not held for the whole of a row."""
        assert max(map(len, dumped({"content": LONG}))) < 700_000
        read: list[int] = []
        whole = json.loads

        def noted(text: str) -> object:
            read.append(len(text))
            return whole(text)

        monkeypatch.setattr(json, "loads", noted)
        assert loaded("".join(dumped({"content": LONG}))) == {"content": LONG}
        assert max(read) < 700_000

    def test_escapes_stay_whole_at_every_cut(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Backslashes, escapes of four digits, and two of them that are one character."""
        value = {"content": '\\\\"\n\u0007\U0001f600\\u12' * 40, "long string0": "long string"}
        for size in range(12, 60):
            monkeypatch.setattr(long_lines, "_LONG", size)
            assert loaded(json.dumps(value)) == value
            assert loaded("".join(dumped(value))) == value

    @pytest.mark.parametrize("end", ["", '"', '"]', "\\", '\\"'])
    def test_damaged_ones_are_refused(self, end: str) -> None:
        """A torn line is no row."""
        with pytest.raises(ValueError, match=r"."):
            loaded('{"content":"' + "x" * 600_000 + end)
