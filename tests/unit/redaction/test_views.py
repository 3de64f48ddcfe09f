"""Texts without their disguises: what a view shows, and where each of its places stands in the text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_summarize.redaction.spans import Span
from context_summarize.redaction.views import View, view_of


def view(text: str, *, joined: bool = True) -> View:
    made = view_of(text, joined=joined)
    assert made is not None
    return made


@pytest.mark.parametrize(
    ("text", "joined", "spaced"),
    [
        ("\x1b[32mkey\x1b[0m", "key", " key "),
        ("[36mkey[0m", "key", " key "),
        ("\\033[31mkey\\e[0m", "key", " key "),
        ("^[[1mkey", "key", " key"),
        ("\u241b[1mkey", "key", " key"),
        ("k\u200bey\ufeff", "key", "k ey "),
        ("k%65y=%22a%2522", 'key="a"', 'key="a"'),
        ("%09%0A%0d%20%7E%7F", "\t\n\r ~ ", "\t\n\r ~ "),
        ("&#9;&#10;&#13;&#31;&#32;&#33;&#126;&#127;&#200;", "\t\n\r  !~  ", "\t\n\r  !~  "),
        ("&#x22;&#X27;&#34;", '"\'"', '"\'"'),
        ("&quot;&apos;&lt;&gt;&nbsp;&amp;&amp;lt;", "\"'<> &<", "\"'<> &<"),
        ("\\u0022key\\x3d\\/", '"key=/', '"key=/'),
        ("key=3Da=22", 'key=a"', 'key=a"'),
        ("key \\\n    on", "key on", "key \\\n    on"),
        ("key \\\r\n  on", "key on", "key \\\r\n  on"),
        ("'abcd'\n  'efghijkl'", "'abcdefghijkl'", "'abcd'\n  'efghijkl'"),
        ("a" * 40 + "\nbcdefgh1", "a" * 40 + "bcdefgh1", "a" * 40 + "\nbcdefgh1"),
    ],
    ids=ascii,
)
def test_a_view_shows_the_text_as_it_is_meant(text: str, joined: str, spaced: str) -> None:
    """Continued lines are one line in the joined view only; the other has a space for each colour code."""
    assert view(text).text == joined
    assert view(text, joined=False).text == spaced


@pytest.mark.parametrize(
    "text", ["", "plain", "100 % of it", "a & b", "[1] and [2, 3]", "größer 日本", "a = 3\nb", "C:\\dir", "a/b"]
)
def test_a_text_that_is_as_it_is_meant_has_no_view(text: str) -> None:
    assert view_of(text, joined=True) is None
    assert view_of(text, joined=False) is None


PARTS = (
    ("key ", "key ", "key "), ("Zz", "Zz", "Zz"), ("日", "日", "日"),
    ("\x1b[32m", "", " "), ("\u200b", "", " "), ("%22", '"', '"'), ("&amp;lt;", "<", "<"), ("\\/", "/", "/"),
)  # fmt: skip
"""Pieces of a text, each with what the joined view and the other one show of it."""


@given(st.lists(st.sampled_from(PARTS), max_size=8), st.booleans(), st.data())
def test_a_place_of_a_view_is_found_in_the_text(
    parts: list[tuple[str, str, str]], joined: bool, data: st.DataObject
) -> None:
    """A span reaches from where its first character stands to where its last one ends, disguises within it included."""
    stands: list[tuple[str, int, int]] = []
    at = 0
    for text, *shown in [("\\x41", "A", "A"), *parts]:
        for index, char in enumerate(shown[0 if joined else 1]):
            stands.append((char, at + index, at + index + 1) if text in shown else (char, at, at + len(text)))
        at += len(text)
    made = view("\\x41" + "".join(text for text, *_ in parts), joined=joined)
    first, last = sorted(data.draw(st.tuples(*[st.integers(0, len(stands) - 1)] * 2)))

    assert made.text == "".join(char for char, _, _ in stands)
    assert made.back(Span(first, last + 1, "JWT")) == Span(stands[first][1], stands[last][2], "JWT")


@pytest.mark.parametrize(
    ("text", "joined"),
    [
        ("TOKEN\u200bTOKEN", True),
        ("x TOKEN\\\n  TOKEN y", True),
        ("x TOKEN\\\n  TOKENS", False),
        ("x TOKEN\\\n  TOKEN.", True),
        ("x TOKEN\\\n  TOKEN.s", False),
        ("TOK%45NTOKEN", True),
        ("\x1b[1mTOKENTOKEN\x1b[0m", False),
        ("%20TOKENTOKEN%20", False),
    ],
    ids=ascii,
)
def test_a_token_is_joined_where_the_text_holds_more_than_the_view_shows_of_it(text: str, joined: bool) -> None:
    """Not where it ends within another token, and not for what stands around it."""
    made = view(text)
    first = made.text.index("TOKENTOKEN")
    assert made.is_joined(Span(first, first + 10, "JWT")) is joined
