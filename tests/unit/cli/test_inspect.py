"""`inspect`: what it draws on terminals of any width, and what it tells machines."""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import replace

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from context_summarize.cli import inspect as cli_inspect
from context_summarize.cli import inspect_output
from context_summarize.cli.inspect_output import shared_cells
from context_summarize.cli.main import main
from context_summarize.replay.inspected import told_when
from context_summarize.replay.inspection import inspect_rows
from context_summarize.testing import assistant, result, tool_session, user
from context_summarize.testing import call as made_call
from tests.support.cli import EXAMPLE, NARROW, call, plain_terminal, recorded, refusal, store  # noqa: F401

KEYS = {
    *("file", "rows", "messages", "groups", "largest_group", "pins", "tokens", "segment_tokens", "summary_tokens"),
    *("segments", "unsegmented", "largest", "use", "next", "requests", "boundaries", "calls", "input_tokens"),
    *("output_tokens", "tree"),
}


@pytest.fixture
def session(tmp_path):
    return recorded(tmp_path)


def test_the_example_is_drawn_with_window_segments_and_tree():
    """The figures are those of the recording, and the tree has two levels."""
    told = call("inspect", EXAMPLE)

    assert (told.exit_code, told.stderr) == (0, "")
    assert re.search(r"^Rows +1,335  120,073 tokens", told.stdout, re.MULTILINE)
    assert re.search(r"^\[█+▓*▒+░+·+ +\]$", told.stdout, re.MULTILINE)
    assert re.search(r"^ +0 +1 to \d+ +[\d,]+ → [\d,]+  summary", told.stdout, re.MULTILINE)
    assert re.search(r"^├── level 1  1 to \d+  [\d,]+ → [\d,]+  \d+%$", told.stdout.replace(" \n", "\n"), re.MULTILINE)
    assert re.search(r"^│   ├── level 0  1 to \d+  [\d,]+ → [\d,]+  \d+%", told.stdout, re.MULTILINE)
    assert "offline provider wrote the texts; it is not a model" in " ".join(told.stdout.split())


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_no_line_is_wider_than_the_terminal_and_no_figure_is_cut(session, monkeypatch, columns):
    """The bar fills the width up to 100 columns."""
    monkeypatch.setenv("COLUMNS", str(columns))

    lines = call("inspect", session, *NARROW).stdout.splitlines()

    assert max(map(len, lines)) <= columns
    assert "…" not in "".join(lines)
    [bar] = [line.rstrip() for line in lines if line.startswith("[")]
    assert len(bar) == min(columns, 100)


def test_json_is_one_object_with_the_keys_that_the_help_names(session):
    """The parts of the window make up the window, and the tree covers the summarised messages without a gap."""
    told = call("inspect", session, *NARROW, "--json")

    assert (told.exit_code, told.stderr) == (0, "")
    data = json.loads(told.stdout)
    assert data.keys() == KEYS
    use = data["use"]
    assert sum(use[part] for part in ("system", "pins", "summaries", "verbatim", "free")) == use["budget"] == 4_000
    assert use["budget"] + use["reserved"] == use["window"] == 6_000
    assert [node["first"] for node in data["tree"]] == [1, *(node["last"] + 1 for node in data["tree"][:-1])]
    for node in data["tree"]:
        assert (node["level"] > 0) == bool(node["children"])
    documented = " ".join(call("inspect", "--help").stdout.split())
    assert [key for key in KEYS if not re.search(rf"\b{key}\b[,. (]", documented)] == []


def test_a_session_that_fits_says_that_there_is_nothing_yet(tmp_path):
    """No segment, no tree, nothing to summarise, and no division by zero."""
    told = call("inspect", store(tmp_path / "short.jsonl", tool_session(2)))

    assert told.exit_code == 0, told.output
    assert "None: the recording is too short." in told.stdout
    assert "None: no compaction ran in this session." in told.stdout
    assert re.search(r"^Summarised +nothing  no further segment is closed yet", told.stdout, re.MULTILINE)


def test_long_results_that_will_be_cut_are_counted(tmp_path):
    """Shortening comes before summarising, and is shown even if nothing is summarised."""
    rows = [*tool_session(2, size=3_000), user("thanks")]

    told = call(
        "inspect",
        store(tmp_path / "long.jsonl", rows),
        *NARROW,
        "--config",
        "keep_recent=2",
        "--config",
        "compact_threshold=0.7",
    )

    assert re.search(r"^Shortened +2  long rows reduced", told.stdout, re.MULTILINE), told.output
    assert re.search(r"^Freed +[1-9][\d,]*  tokens", told.stdout, re.MULTILINE)


def test_without_automatic_compactions_it_says_when_one_runs(session):
    """With `auto_compact: false` the threshold has no meaning."""
    told = call("inspect", session, "--config", "auto_compact=false")

    assert "auto_compact is off" in " ".join(told.stdout.split())


def told_at(used: int, threshold: int | None, budget: int = 2_000) -> str:
    found = asyncio.run(inspect_rows(tool_session(3), window=6_000, max_output=1_000))
    use = replace(found.use, budget=budget, free=budget - used, threshold=threshold)
    return f"{used:,} {told_when(replace(found, use=use))}"


@pytest.mark.parametrize(
    ("used", "threshold", "says"),
    [
        (1_399, 1_400, "1,399 tokens now; the compaction runs at 1,400 tokens"),
        (1_400, 1_400, "1,400 tokens now, the threshold is 1,400: a compaction runs as soon as it frees at least 4"),
        (1_503, 1_400, "1,503 tokens now, the threshold is 1,400: a compaction runs as soon as it frees at least 4"),
        (1_503, None, "1,503 tokens now; a compaction runs when a request does not fit 2,000 tokens (auto_compact is"),
        (2_001, 1_400, "2,001 tokens now, above the budget of 2,000: no compaction can make the request smaller yet"),
        (2_001, None, "2,001 tokens now, above the budget of 2,000: no compaction can make the request smaller yet"),
    ],
)
def test_when_the_next_compaction_runs_is_right_whatever_the_size_is(used, threshold, says):
    assert told_at(used, threshold).startswith(says)


def test_a_session_that_stands_above_the_threshold_is_not_told_that_it_will_compact_there(tmp_path):
    """Its newest group alone is above it."""
    rows = [user("Read it."), made_call("1", "read"), result("1", "word " * 3_000)]

    shown = " ".join(call("inspect", store(tmp_path / "a.jsonl", rows), *NARROW).stdout.split())

    assert re.search(r"When 3,\d+ tokens now, the threshold is 1,800: a compaction runs as soon as it frees", shown)


def test_a_merged_summary_is_measured_against_its_messages(session):
    """Their size, and their exact values, whatever the summaries between them and it have lost."""
    data = json.loads(call("inspect", session, *NARROW, "--json").stdout)

    merged = next(node for node in data["tree"] if node["level"] > 0)
    leaves = leaves_of(merged)
    sizes = {line["first"]: line["tokens"] for line in data["segments"]}
    assert merged["original_tokens"] == sum(leaf["original_tokens"] for leaf in leaves) > merged["source_tokens"]
    assert all(leaf["original_tokens"] == sizes[leaf["first"]] for leaf in leaves)
    assert merged["values"] >= max(leaf["values"] for leaf in leaves)
    assert merged["values"] <= sum(leaf["values"] for leaf in leaves)
    shown = call("inspect", session, *NARROW).stdout
    share = f"{merged['values_kept'] / merged['values']:.0%}"
    assert re.search(rf"level {merged['level']}  1 to {merged['last']}  [\d,]+ → {merged['tokens']:,}  {share}", shown)


def leaves_of(node: dict) -> list[dict]:
    return [node] if not node["children"] else [leaf for child in node["children"] for leaf in leaves_of(child)]


def test_fallback_summaries_are_marked_and_cost_nothing(session):
    """`compaction_strategy: truncate` asks no provider; the parts of a merge are not stored."""
    told = call("inspect", session, *NARROW, "--config", "compaction_strategy=truncate")

    assert told.exit_code == 0, told.output
    assert re.search(r"level \d  .*  fallback(?:  rest)?$", told.stdout.replace(" \n", "\n"), re.MULTILINE)
    assert re.search(r"^Tokens in +0 ", told.stdout, re.MULTILINE)
    assert "about" not in told.stdout.split("Next compaction")[1].split("Recording")[0]


def test_many_segments_and_summaries_are_counted_rather_than_listed(session, monkeypatch):
    """The middle of the table and the leaves of the tree give way."""
    monkeypatch.setattr(inspect_output, "_MOST_SEGMENTS", 5)
    monkeypatch.setattr(inspect_output, "_MOST_NODES", 3)
    data = json.loads(call("inspect", session, *NARROW, "--json").stdout)

    told = call("inspect", session, *NARROW)

    assert f"{len(data['segments']) - 5} more" in told.stdout
    assert len(re.findall(r"^ *\d+ +[\d,]+ to .*(?:summary|verbatim) *$", told.stdout, re.MULTILINE)) == 5
    merged = next(node for node in data["tree"] if node["level"] == 1)
    assert f"{len(merged['children'])} summaries of level 0" in told.stdout


def test_what_a_recording_holds_does_not_steer_the_terminal(tmp_path):
    """Names of files and tools are recorded text too."""
    rows = [
        user("x"),
        made_call("1", "look\x1b[31m\n[bold]", at=1),
        result("1", "long " * 50, name="n"),
        assistant("y"),
    ]

    told = call("inspect", store(tmp_path / "a\x1b[31m.jsonl", rows))

    assert told.exit_code == 0, told.output
    assert "\x1b" not in told.output
    assert "tool look [31m [bold]" in told.stdout


def test_a_terminal_that_knows_ascii_only_gets_a_bar_all_the_same(session):
    """Letters stand for shades."""
    told = CliRunner(charset="ascii").invoke(main, ["inspect", str(session), *NARROW])

    assert told.exit_code == 0, told.output
    assert re.search(r"^\[P*s+v+\.+ +\]$", told.stdout, re.MULTILINE)


def test_colours_appear_on_a_terminal_only(session, monkeypatch):
    """And not there either where NO_COLOR is set."""
    assert "\x1b" not in call("inspect", session, *NARROW).output
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[35mlevel 0" in call("inspect", session, *NARROW).stdout
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[35m" not in call("inspect", session, *NARROW).stdout


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--config", "keep_recnt=3"], "Error: unknown setting 'keep_recnt'; did you mean 'keep_recent'?"),
        (["--config", "keep_recent"], "expected KEY=VALUE"),
    ],
)
def test_a_wrong_setting_is_one_line(session, options, says):
    """The same lines as those of `replay`."""
    assert says in refusal("inspect", session, *options)


def test_a_file_without_a_session_is_one_line(tmp_path):
    """The same lines as those of `replay`."""
    assert "cannot be read: No such file" in refusal("inspect", tmp_path / "none.jsonl")
    (tmp_path / "empty.jsonl").write_text("")
    assert "holds no messages" in refusal("inspect", tmp_path / "empty.jsonl", "--json")


def test_an_interruption_ends_with_130_and_one_line(session, monkeypatch):
    """Nothing half is printed."""

    async def inspect_rows(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(cli_inspect, "inspect_rows", inspect_rows)

    told = call("inspect", session, "--json")

    assert (told.exit_code, told.stdout, told.stderr) == (130, "", "Interrupted.\n")


@given(st.lists(st.integers(0, 10**7), min_size=1, max_size=6), st.integers(20, 98))
def test_the_bar_is_filled_and_whatever_is_there_is_seen(sizes, width):
    """Cells add up to the width; a part has a cell if, and only if, it has a size."""
    cells = shared_cells(sizes, width)

    if sum(sizes):
        assert sum(cells) == width
        assert [cell > 0 for cell in cells] == [size > 0 for size in sizes]
    else:
        assert set(cells) == {0}
