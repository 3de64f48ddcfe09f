"""`compare`: columns of settings, what it says of price and quality, and what it refuses."""

from __future__ import annotations

import importlib
import json
import re

import pytest

from context_summarize.cli.compare_output import pasted
from context_summarize.cli.config_sets import read_set
from context_summarize.config import Config
from context_summarize.replay.comparison import Column, Prices, cheapest, kept_at_end
from context_summarize.replay.report import report_data
from context_summarize.replay.result import Check, ReplayResult, RequestLine
from context_summarize.testing import user
from tests.support.cli import NARROW, call, plain_terminal, recorded, refusal, store  # noqa: F401
from tests.support.replayed import demo  # noqa: F401

yaml = importlib.import_module("yaml")  # comes with amplifier-core, without types
SMALL = "compact_threshold=0.5 target_usage=0.2 prefetch_threshold=none"


@pytest.fixture
def session(tmp_path):
    return recorded(tmp_path)


# --- what it shows ----------------------------------------------------------------------------------------------------


def test_two_configs_stand_side_by_side_and_the_cheaper_one_is_ready_to_paste(session):
    told = call("compare", session, *NARROW, "--config", "defaults", "--config", SMALL)

    assert told.exit_code == 0, told.output
    lines = told.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    for name in ("Compactions", "Mean request", "Calls for summaries", "Values kept", "Price together"):
        assert re.search(rf"^{name} +\S+ +\S+", told.stdout, re.MULTILINE), name
    assert re.search(r"^  of them cached +[\d.]+% +[\d.]+%$", told.stdout, re.MULTILINE), "no percentage of percentages"
    said = " ".join(told.stdout.split())
    assert "The price is measured, the quality is not" in said
    best = re.search(r"([AB]) costs least: \$[\d.]+, [\d.]+% less than [AB] \(\$[\d.]+\)\. By price alone, take:", said)
    assert best is not None
    settings = {"A": {}, "B": dict(read_set(SMALL))}[best[1]]
    assert read_set_of("\n".join(lines[lines.index("session:") :])) == settings


def read_set_of(text: str) -> dict:
    return dict(yaml.safe_load(text)["session"]["context"]["config"])


def test_one_config_is_compared_with_the_defaults(session):
    data = json.loads(call("compare", session, *NARROW, "--config", SMALL, "--json").stdout)

    assert [(column["label"], column["source"]) for column in data["columns"]] == [("A", "defaults"), ("B", SMALL)]
    assert data["columns"][1]["config"] == {
        "compact_threshold": 0.5,
        "target_usage": 0.2,
        "prefetch_threshold": None,
    }
    prices = {column["price"]: column["label"] for column in data["columns"]}
    assert data["best"] == prices[min(prices)]
    documented = " ".join(call("compare", "--help").stdout.split())
    assert [key for key in (*data, *data["columns"][0]) if key not in documented] == []


def test_the_figures_are_those_of_replay_and_the_price_is_their_sum(session):
    """Each column is a replay of its own, which finds no summary of another."""
    prices = ("--price-in", 2, "--price-cached", 0.5, "--price-out", 10)
    data = json.loads(call("compare", session, *NARROW, "--config", "cache=memory", *prices, "--json").stdout)
    alone = json.loads(call("replay", session, *NARROW, "--json").stdout)

    first, second = data["columns"]
    assert {**first, "label": "", "source": "", "config": {}} == {**second, "label": "", "source": "", "config": {}}
    assert data["best"] is None, "both cost the same"
    for key in ("requests", "provider_calls", "provider_input_tokens", "provider_output_tokens", "largest_view"):
        assert first[key] == alone[key]
    fresh = first["read"] * (1 - first["cached_share"])
    agent = (2 * fresh + 0.5 * (first["read"] - fresh)) / 1e6
    assert first["price_agent"] == pytest.approx(agent, rel=1e-3)
    made = (2 * alone["provider_input_tokens"] + 10 * alone["provider_output_tokens"]) / 1e6
    assert first["price_summaries"] == pytest.approx(made, abs=1e-6)
    assert first["price"] == pytest.approx(first["price_agent"] + first["price_summaries"], abs=2e-6)


@pytest.mark.parametrize("columns", [36, 50, 80])
def test_many_columns_on_a_narrow_terminal_are_shown_in_parts(session, monkeypatch, columns):
    """No figure is cut, whatever the width."""
    monkeypatch.setenv("COLUMNS", str(columns))
    sets = [part for at in range(4) for part in ("--config", f"keep_recent={at}")]

    told = call("compare", session, *NARROW, *sets)

    tables = [line for line in told.stdout.splitlines() if re.match(r"(Price together|Requests) ", line)]
    assert "…" not in told.stdout
    assert max(map(len, tables)) <= columns
    assert sum(len(re.findall(r"\$[\d.]+", line)) for line in tables) == 4


def test_differences_are_coloured_on_a_terminal(session, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")

    shown = call("compare", session, *NARROW, "--config", SMALL).stdout

    price = next(line for line in shown.splitlines() if "Price together" in line)
    assert "\x1b[31m" in price
    assert "\x1b[32m" in price


def test_a_recording_without_an_assistant_costs_nothing(tmp_path):
    told = call("compare", store(tmp_path / "a.jsonl", [user("x")]), "--config", "keep_recent=2")

    assert told.exit_code == 0, told.output
    assert "No config costs less than the others." in told.stdout


def test_where_nothing_compacts_no_config_is_recommended_and_a_window_is_named_that_would(session):
    """Its prices differ by what is prefetched alone; the named window holds what is said of it."""
    high = "compact_threshold=0.7 target_usage=0.3"
    options = ("--config", f"{high} keep_recent=3", "--config", f"{high} prefetch_threshold=none keep_recent=2")
    told = call("compare", session, *options)

    said = " ".join(told.stdout.split())
    assert "Nothing compacted in any column: none is recommended. The largest request holds" in said
    assert "costs least" not in said
    window = re.search(r"a compaction runs from 24,500 tokens on\. Use --window (\d+) to see some\.", said)
    assert window, said
    assert json.loads(call("compare", session, *options, "--json").stdout)["best"] is None
    there = json.loads(call("compare", session, *options, "--window", window[1], "--json").stdout)
    assert all(column["compactions"] > 0 for column in there["columns"])
    assert there["best"]


def test_the_values_kept_are_those_that_the_report_finds_in_the_summaries(demo):  # noqa: F811
    """Of all summarised messages, also behind a merge: less than what the summaries hold of their sources."""
    told = report_data(demo)["values"]

    kept = kept_at_end(demo)

    assert kept is not None
    assert (kept.values, kept.kept) == (told["all"], told["in_text"] + told["in_ledger"])
    assert kept.share < demo.coverage
    assert kept_at_end(ReplayResult(provider="p", budget=1)) is None


def test_the_defaults_alone_are_compared_with_nothing(session):
    assert "--config defaults alone is compared with nothing" in refusal("compare", session, "--config", "defaults")
    assert "column A shows the defaults" in call("compare", session, *NARROW, "--config", SMALL).stderr


# --- which is better --------------------------------------------------------------------------------------------------


def column(label: str, tokens: int, *, broken: bool = False, silent: bool = False) -> Column:
    result = ReplayResult(provider="p", budget=1, request_lines=[RequestLine(1, tokens, 1)])
    result.checks = [Check("Within budget", "views", broken=int(broken))]
    result.failed_summaries = int(silent)
    return Column(label, label, {}, result)


PRICES = Prices(input=3, cached=0.3, output=15)


def test_a_config_that_fails_is_never_the_better_one():
    """However cheap: its requests would be refused, or nothing was summarised."""
    good, broken, silent = column("A", 100), column("B", 10, broken=True), column("C", 10, silent=True)

    assert cheapest([good, broken, silent], PRICES) is good
    assert cheapest([broken, silent], PRICES) is None
    assert cheapest([column("A", 5), column("B", 5)], PRICES) is None


# --- settings ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "settings"),
    [
        ("defaults", {}),
        (" ", {}),
        ("keep_recent=3", {"keep_recent": 3}),
        ("keep_recent=3,target_usage=0.2  redact=[\"a, b=c\"]", {"keep_recent": 3, "target_usage": 0.2, "redact": ["a, b=c"]}),  # noqa: E501
        ("prompts=/a b/c, cache=none", {"prompts": "/a b/c", "cache": None}),
    ],
)  # fmt: skip
def test_settings_may_be_written_as_pairs(given, settings):
    assert read_set(given) == settings


@pytest.mark.parametrize(
    "text",
    [
        "keep_recent: 3\n",
        '{"keep_recent": 3}',
        "session:\n  context:\n    module: context-summarize\n    config:\n      keep_recent: 3\n",
        "---\nbundle: {name: x}\nsession:\n  context: {config: {keep_recent: 3}}\n---\n# A bundle\n\n- of: {text\n",
        "config: {keep_recent: 3}",
    ],
)
def test_settings_may_stand_in_a_file_of_any_of_these_forms(tmp_path, text):
    (tmp_path / "a=b.yaml").write_text(text)

    assert read_set(str(tmp_path / "a=b.yaml")) == {"keep_recent": 3}


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"- a\n- b\n", "holds no settings; expected KEY: VALUE lines"),
        (b"5", "holds no settings"),
        (b"1: 2", "holds no settings"),
        (b"\xff", "is not UTF-8 (byte 1)"),
        (b"a: [", "is neither JSON nor YAML"),
        (b"!!python/object/apply:os.system ['true']", "is neither JSON nor YAML"),
        (b"[" * 100_000, "is neither JSON nor YAML"),
        (b"keep_recnt: 3", "unknown setting 'keep_recnt'; did you mean 'keep_recent'?"),
        (b"x" * 1_000_001, "is larger than 1,000,000 bytes"),
    ],
)
def test_a_file_without_settings_is_one_line(session, tmp_path, content, says):
    (tmp_path / "a.yaml").write_bytes(content)

    assert says in refusal("compare", session, "--config", tmp_path / "a.yaml")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--config", "nix.yaml"], "--config 'nix.yaml' is no file and has no KEY=VALUE; name a settings file"),
        (["--config", "x" * 5_000], "is no file and has no KEY=VALUE"),
        (["--config", "keep_recent=1 keep_recent=2"], "gives keep_recent twice"),
        (["--config", "keep_recent=4 target_usage"], "target_usage has no value; expected KEY=VALUE"),
        (["--config", "keep_recent=none"], "keep_recent must be a whole number of 0 or more, got none"),
        (["--config", "keep_recent=-1"], "keep_recent must be a whole number of 0 or more, got -1"),
        (["--config", "keep_recent=1"] * 9, "9 times --config; at most 8 columns are compared"),
        (["--config", "defaults", "--price-in", "1", "--price-cached", "2"], "--price-cached 2 is above --price-in 1"),
    ],
)
def test_options_that_cannot_be_used_are_one_line(session, options, says):
    """Every set is checked before the first replay."""
    assert says in refusal("compare", session, *options)


@pytest.mark.parametrize("price", ["-1", "nan", "inf", "cheap"])
def test_a_price_is_a_number_of_dollars(session, price):
    told = call("compare", session, "--config", "defaults", "--price-in", price)

    assert told.exit_code == 2
    assert "--price-in" in told.stderr
    assert "Traceback" not in told.output


def test_what_is_pasted_is_read_again_as_it_was():
    """Whatever a value holds."""
    settings = {"redact": ['a: "b" # c', "é"], "cache": None, "prompts": "~/my prompts", "keep_recent": 0}

    assert read_set_of("\n".join(pasted(settings))) == settings
    assert read_set_of("\n".join(pasted({}))) == {}
    Config.from_mapping(settings)
