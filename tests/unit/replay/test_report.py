"""What a report holds, and that recorded text stays text in it."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

import pytest

from context_summarize.errors import ReportUnwritable
from context_summarize.messages.rows import JsonRow
from context_summarize.replay.audit import Audit
from context_summarize.replay.report import render_report, write_report
from context_summarize.replay.report_rows import parts_of_row
from context_summarize.replay.result import ReplayResult
from context_summarize.testing import assistant, call, result, tool_session, user
from tests.support.replayed import HOSTILE, demo, hostile, large, plain, replayed, session

__all__ = ("demo", "hostile", "plain")

SECRET = "ghp_" + "a1B2c3D4e5F6" * 3


# --- the page as text -----------------------------------------------------------------------------------------------


@dataclass
class Parsed(HTMLParser):
    """What an HTML parser sees: elements with their attributes, and the text in styles and scripts."""

    elements: list[tuple[str, dict[str, str | None]]] = field(default_factory=list)
    raw: list[str] = field(default_factory=list)
    comments: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_comment(self, data):
        self.comments.append(data)

    def handle_data(self, data):
        if self.cdata_elem:
            self.raw.append(data)


def parsed(page: str) -> Parsed:
    parser = Parsed()
    parser.feed(page)
    parser.close()
    return parser


def block(page: str) -> dict[str, Any]:
    """The data of a page, found as a browser finds it."""
    found = re.search(r'<script type="application/json" id="data">(.*?)</script', page, re.S)
    assert found is not None
    data: dict[str, Any] = json.loads(found[1])
    return data


def test_the_data_block_decodes_to_what_the_replay_saw(plain):
    """Totals, checks, requests, compactions and the last view are those of the result."""
    data = block(render_report(plain))

    assert (data["source"], data["provider"], data["offline"]) == ("session.jsonl", "scripted", False)
    assert (data["window"], data["budget"], data["threshold"], data["target"]) == (8_000, 6_000, 4_200, 1_800)
    shares = {"compact_threshold": "0.7", "target_usage": "0.3", "summary_share": "0.12"}
    assert data["settings"] == {**shares, "fan_in": "2"}
    assert data["totals"].pop("numbered") == len(plain.rows)
    assert all(value == getattr(plain, name) for name, value in data["totals"].items())
    assert [(check["name"], check["ok"]) for check in data["checks"]] == [(c.name, c.ok) for c in plain.checks]
    lines = enumerate(plain.request_lines, 1)
    assert [line[:3] for line in data["requests"]] == [[number, line.message, line.tokens] for number, line in lines]
    assert len(data["compactions"]) == len(plain.boundaries) >= 5
    for told, line in zip(data["compactions"], plain.boundaries, strict=True):
        assert data["requests"][told["request"] - 1][:3] == [told["request"], line.message, line.after_tokens]


def roles_and_texts(data: dict[str, Any], ids: list[int]) -> list[tuple[str, list[str]]]:
    """What the page shows of these rows."""
    messages = {number: (role, parts) for number, role, _, parts in data["messages"]}
    found = []
    for told in (data["rows"][at] for at in ids):
        role, parts = messages[told[1]] if isinstance(told, list) else (told["role"], told["parts"])
        found.append((role, [text for *_, text in parts]))
    return found


def shown(row: JsonRow) -> tuple[str, list[str]]:
    """The same of a row of a view."""
    return row["role"], [text for *_, text in parts_of_row(row, {})]


def expanded(runs: list[int]) -> list[int]:
    """Positions from first, count, first, count …"""
    pairs = zip(runs[::2], runs[1::2], strict=True)
    return [at for first, count in pairs for at in range(first, first + count)]


def every_view(data: dict[str, Any]) -> list[list[int]]:
    """The rows of each request, as the slider puts them together."""
    views: list[list[int]] = []
    for *_, same, runs in data["requests"]:
        views.append([*(views[-1][:same] if views else []), *expanded(runs)])
    return views


def views_of(rows: list[JsonRow], **settings: Any) -> tuple[list[list[JsonRow]], ReplayResult]:
    """Every view that the manager has served, and the replay in which it did."""
    served: list[list[JsonRow]] = []
    view = Audit.view

    def heard(self: Audit, number: int, rows: list[JsonRow], *, made_compaction: bool) -> None:
        served.append(rows)
        view(self, number, rows, made_compaction=made_compaction)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Audit, "view", heard)
        return served, replayed(rows, **settings)


OPEN = [*tool_session(30, size=800), call("open", "wait"), user("go on"), assistant("now"), user("x"), assistant("y")]
SYSTEM = [{"role": "system", "content": "Be brief. " * 20}, *tool_session(60, size=800)]


@pytest.mark.parametrize(
    ("rows", "settings"),
    [
        (session(90, size=600), {}),
        (SYSTEM, {"elide_tool_results": 200, "keep_recent": 4, "target_usage": 0.5}),
        (OPEN, {"segment_tokens": 1_000}),
    ],
    ids=["merges", "shortened", "open call"],
)
def test_the_slider_shows_each_request_as_it_was_sent(rows, settings):
    """The differences add up to the rows of every view, and a row weighs what it weighs there."""
    served, told = views_of(rows, **settings)
    data = block(render_report(told))

    assert len(told.boundaries) >= 2
    views = every_view(data)
    assert [roles_and_texts(data, ids) for ids in views] == [[shown(row) for row in view] for view in served]
    for ids, line in zip(views, told.request_lines, strict=True):
        sizes = [told[0] if isinstance(told, list) else told["tokens"] for told in (data["rows"][at] for at in ids)]
        assert sum(sizes) == line.tokens


def test_each_text_stands_in_the_page_once(plain):
    """A row that shows a message as it is names the message."""
    data = block(render_report(plain))

    own = [row for row in data["rows"] if isinstance(row, dict)]
    assert {row["kind"] for row in own} <= {"summary", "actions", "shortened", "made"}
    assert len(own) < len(data["rows"]) / 5
    texts = [json.dumps(row["parts"]) for row in own]
    assert len(set(texts)) == len(texts)


def test_a_compaction_tells_what_it_summarised_and_the_request_without_it(plain):
    """The summarised ranges follow each other; the unsent view goes on from the one before and has the size told."""
    data = block(render_report(plain))
    views = every_view(data)

    end = 0
    for told in data["compactions"]:
        before, earlier = expanded(told["before"]), views[told["request"] - 2]
        assert before[: len(earlier)] == earlier
        sizes = [row[0] if isinstance(row, list) else row["tokens"] for row in (data["rows"][at] for at in before)]
        assert sum(sizes) == told["before_tokens"]
        first, last = told.get("summarised", [end + 1, end])
        assert first == end + 1
        gone = {row[1] for row in (data["rows"][at] for at in before) if isinstance(row, list)}
        assert set(range(first, last + 1)) <= gone
        end = last
    assert end == data["nodes"][-1]["last"]


def test_rows_are_told_by_the_numbers_of_their_messages():
    """System rows have none, so that numbers and places in the file differ; frames and tables agree."""
    told = replayed(SYSTEM)
    data = block(render_report(told))

    assert data["totals"]["numbered"] == len(SYSTEM) - 1
    assert data["messages"][0][:2] == [1, "user"]
    assert all(type(message[0]) is int for message in data["messages"])
    assert all(line.message == line.row - 1 for line in told.request_lines)
    assert [line[1] for line in data["requests"]] == [line.row - 1 for line in told.request_lines]
    assert [each["message"] for each in data["compactions"]] == [line.row - 1 for line in told.boundaries]
    spans = [row["span"] for row in data["rows"] if isinstance(row, dict) and row["kind"] == "summary"]
    assert all(data["messages"][last - 1][0] == last for _, last in spans)


def test_the_row_of_actions_is_told_from_summaries_and_speech(plain):
    data = block(render_report(plain))

    told = [data["rows"][at] for at in every_view(data)[-1]]
    [actions] = [row for row in told if isinstance(row, dict) and row["kind"] == "actions"]
    assert actions["span"] == [1, data["nodes"][-1]["last"]]
    assert actions["parts"][0][2].startswith("[Actions in messages 1 to ")


def test_the_tree_holds_every_summary_with_its_sources(plain):
    """Neighbours follow each other without a gap, at every level, down to messages that are all there."""
    data = block(render_report(plain))

    def check(nodes: list[dict[str, Any]], first: int) -> int:
        for node in nodes:
            assert node["kept"]
            assert node["first"] == first
            assert not node["children"] or check(node["children"], first) == node["last"]
            first = node["last"] + 1
        return first - 1

    last = check(data["nodes"], 1)
    assert max(node["level"] for node in data["nodes"]) >= 1
    assert [message[0] for message in data["messages"]][:last] == list(range(1, last + 1))
    assert (data["messages"][0][1], data["messages"][0][3]) == ("user", [["text", "", "Begin. "]])
    assert (data["messages"][2][1], data["messages"][2][3][0][:2]) == ("tool", ["result", "read"])
    last_view = (data["rows"][at] for at in every_view(data)[-1])
    spans = [tuple(row["span"]) for row in last_view if isinstance(row, dict) and row["kind"] == "summary"]
    assert spans == [(node["first"], node["last"]) for node in data["nodes"]]


def test_recorded_text_adds_no_element_and_no_comment(plain, hostile):
    """A parser sees the same elements in a hostile page as in a harmless one; the text itself is kept."""
    page, harmless = parsed(render_report(hostile)), parsed(render_report(plain))

    assert page.elements == harmless.elements
    assert page.comments == harmless.comments == []
    assert len(page.raw) == 3
    data = block(render_report(hostile))
    assert data["source"] == HOSTILE
    assert data["messages"][0][3][0][2] == f"Begin. {HOSTILE}"
    # A summary is stored without lone surrogates, which no client could send.
    assert HOSTILE.replace("\ud800", "\ufffd") in data["nodes"][-1]["text"]


def test_a_page_is_valid_utf_8_whatever_was_recorded(hostile, tmp_path):
    """A lone surrogate is no character, and a tool's output may hold one."""
    write_report(hostile, tmp_path / "report.html")

    assert (tmp_path / "report.html").read_bytes().decode("utf-8") == render_report(hostile)


def test_the_policy_lets_the_pages_own_style_and_script_run_and_nothing_else(plain):
    page = parsed(render_report(plain))
    [policy] = [named["content"] for tag, named in page.elements if named.get("http-equiv")]
    style, _, script = (
        f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'" for text in page.raw
    )

    assert policy is not None
    assert policy.split("; ") == [
        "default-src 'none'",
        f"style-src {style}",
        f"script-src {script}",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
    ]


def test_the_page_asks_for_nothing_from_elsewhere(plain):
    page = parsed(render_report(plain))
    style, _, script = page.raw

    builder = [named[key] for _, named in page.elements for key in ("src", "href", "srcset") if key in named]
    assert builder == ["data:,"]
    assert "url(" not in style
    assert "@import" not in style
    assert script.replace("http://www.w3.org/2000/svg", "").count("http") == 0
    assert not re.search(r"\b(fetch|XMLHttpRequest|import|innerHTML|outerHTML|insertAdjacentHTML|eval)\b", script)


def test_secrets_are_masked_unless_the_settings_say_otherwise():
    """Originals and the last view are shown to whoever gets the page, so the setting holds for them too."""
    rows = session(40, f" {SECRET} ")

    assert SECRET not in render_report(replayed(rows))
    assert "[redacted: " in render_report(replayed(rows))
    assert SECRET in render_report(replayed(rows, redact=False))


def test_shortened_rows_are_told_from_whole_ones():
    rows = [user("Begin.")]
    for turn in range(30):
        text = "word " * (1_100 if turn % 5 == 3 else 100)
        rows += [call(str(turn), "read"), result(str(turn), text, "read"), user(f"next {turn}")]
    told = replayed(
        [*rows, assistant("x")], elide_tool_results=200, keep_recent=4, target_usage=0.5, segment_tokens=1_000
    )

    data = block(render_report(told))
    shortened = [row for row in data["rows"] if isinstance(row, dict) and row["kind"] == "shortened"]

    assert shortened
    assert all(row["whole"] > 1_000 > row["tokens"] for row in shortened)
    assert all(rows[row["message"] - 1]["content"] == "word " * 1_100 for row in shortened)
    assert all("characters left out to save room" in row["parts"][0][2] for row in shortened)
    assert {row["parts"][0][1] for row in shortened} == {"read"}


def test_calls_and_results_are_told_from_speech(plain):
    messages = block(render_report(plain))["messages"]

    speech, made = messages[1][3]
    assert speech == ["text", "", "I look at it. "]
    assert made[:2] == ["call", "read"]
    assert json.loads(made[2])["path"].startswith("src/file_")
    assert messages[2][3][0][:2] == ["result", "read"]


def test_the_page_of_the_demo_is_small(demo):
    """One file that a browser opens at once and a mail carries."""
    assert len(render_report(demo).encode()) < 2_000_000


def test_a_page_stays_of_a_size_that_a_browser_opens_whatever_the_session():
    """Long texts are cut and say by how much; of very many rows the middle of each node goes."""
    told = large()
    page = render_report(told)
    data = block(page)

    assert len(page.encode()) < 4_000_000
    assert all(message[3][0][2].endswith("characters not in this page]") for message in data["messages"])
    numbers = {message[0] for message in data["messages"]}
    assert all({node["first"], node["last"]} <= numbers for node in data["nodes"])
    assert len(every_view(data)[-1]) == 5_001
    assert "characters not in this page]" in data["nodes"][0]["text"]
    assert (len(data["nodes"][0]["ledger"]), data["nodes"][0]["facts_left_out"]) == (100, 200)


def test_a_long_chart_keeps_its_ends_its_extremes_and_its_compactions():
    told = large()
    tokens = [line.tokens for line in told.request_lines]
    points = block(render_report(told))["requests"]

    assert len(points) <= 2_100
    assert (points[0][0], points[-1][0]) == (1, 60_000)
    assert 30_011 in {point[0] for point in points}
    assert {min(tokens), max(tokens)} <= {point[2] for point in points}
    assert points == sorted(points)


def test_a_file_that_cannot_be_written_is_told_with_its_name(plain, tmp_path):
    with pytest.raises(ReportUnwritable, match=r"none/report.html cannot be written: No such file"):
        write_report(plain, tmp_path / "none" / "report.html")
