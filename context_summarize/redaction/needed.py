"""Which formats may stand in a text at all: those whose needed words it holds, and whose shortest run fits into it."""

from __future__ import annotations

from bisect import bisect_right

from context_summarize.redaction.formats import FORMATS, Format

_WORDS = sorted(
    ((word, at) for at, known in enumerate(FORMATS) for word in known.needs), key=lambda w: FORMATS[w[1]].run
)
"""The needed words of all formats, each with the index of its format; formats with short runs first."""
_RUNS = [FORMATS[at].run for _, at in _WORDS]


def formats_in(text: str, longest: int) -> list[Format]:
    """The formats that may match somewhere in the text, in their order.

    Args:
        longest: characters of the longest run without a blank.
    """
    low = text.lower()
    found = {at for word, at in _WORDS[: bisect_right(_RUNS, longest)] if word in (low if word.islower() else text)}
    return [FORMATS[at] for at in sorted(found)]
