"""A report of any session: whatever its rows and summaries hold, no markup of theirs becomes part of the page."""

from __future__ import annotations

import asyncio
from html.parser import HTMLParser
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from context_summarize import Config
from context_summarize.replay.player import Setup, replay
from context_summarize.replay.report import render_report
from context_summarize.testing import ScriptedProvider, assistant, call, result, user

PARTS = st.sampled_from(
    [
        "</script>", "<script>", "<!--", "-->", "<img src=x onerror=a()>", "<a href='javascript:a()'>", "]]>", "&lt;",
        "&#60;script&#62;", '"', "'", "`", "${a()}", "\u2028", "\u202e", "\ud800", "\x00", "<svg/onload=a()>",
        "</style>", "</title>", "<base href=//x>",
        "<meta http-equiv=refresh content=0>", "\\u003cscript\\u003e", "{{7*7}}", "</pre>",
    ]
)  # fmt: skip
TEXTS = st.lists(PARTS | st.text(max_size=8), max_size=8).map("".join)


class Markup(HTMLParser):
    """Every tag of a page with the names of its attributes, and what lies in its scripts."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.kinds: set[tuple[str, tuple[str, ...]]] = set()
        self.scripts = 0
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.kinds.add((tag, tuple(sorted(name for name, _ in attrs))))
        self.scripts += tag == "script"

    def handle_comment(self, data: str) -> None:
        self.kinds.add(("<!--", ()))


def page(texts: list[str], name: str = "lookup") -> Markup:
    """The report of a session that holds these texts in every place where a text can be."""
    rows: list[Any] = []
    for turn, text in enumerate(texts * 4):
        rows += [
            user(f"Always look up {turn}. {text}"),
            call(f"c{turn}", f"read{name}", text=text, path=f"{turn}{text}"),
            result(f"c{turn}", f"value-{turn:04d} {text} " * 30, f"read{name}"),
            assistant(f"Done with {turn}. {text}"),
        ]
    provider = ScriptedProvider(context_window=4_000, max_output_tokens=500, then=f"Goal: it was done. {texts[0]}")
    config = Config.from_mapping({"fan_in": 2, "segment_tokens": 256})
    made = asyncio.run(replay(rows, Setup(provider=provider, name=name, source=f"{name}.jsonl", config=config)))
    return Markup(render_report(made))


@given(texts=st.lists(TEXTS, min_size=3, max_size=3), name=TEXTS)
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_no_text_of_a_session_becomes_markup_of_its_report(texts: list[str], name: str) -> None:
    """The page has the scripts, the tags and the attributes that a harmless session's page has, and no others."""
    plain, drawn = page(["one", "two", "three"]), page(texts, name)
    assert drawn.scripts == plain.scripts
    assert drawn.kinds <= plain.kinds
