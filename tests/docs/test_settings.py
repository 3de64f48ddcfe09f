"""Settings, events and capabilities that the documentation tells are those of the code; its Python programs run."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from dataclasses import fields

import pytest
import yaml  # type: ignore[import-untyped]  # comes with amplifier-core
from amplifier_core.testing import MockCoordinator

from context_summarize import Config, SummarizingContextManager, mount
from context_summarize.events import ALL_EVENTS
from context_summarize.session.steering import Preview
from context_summarize.summaries.services import Statistics
from context_summarize.testing import ScriptedProvider
from tests.support.pages import blocks, named, table
from tests.support.paths import ROOT
from tests.support.recorder import Recorder
from tests.support.rows import tool_session

HOSTS = (ROOT / "docs" / "hosts.md").read_text("utf-8")


def _section(title):
    return HOSTS.split(f"\n## {title}\n")[1].split("\n## ")[0]


def _keys(text):
    """Names in the first cells of the tables of a text, and before the colons of its lists."""
    heads = [row[0] for row in table(text)] + re.findall(r"^\* ([^:]+):", text, re.M)
    return {key for head in heads for key in re.findall(r"`([a-z_]+)`", head)}


@pytest.mark.parametrize("block", blocks("python"), ids=lambda block: named(block.page))
def test_every_program_of_a_page_runs(block, tmp_path):
    done = subprocess.run([sys.executable, "-c", block.text], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_settings_of_every_session_are_accepted_without_a_warning(caplog):
    sessions = [block for block in blocks("yaml") if block.text.startswith("session:")]
    assert len(sessions) > 1
    for block in sessions:
        Config.from_mapping(yaml.safe_load(block.text)["session"]["context"]["config"])
    assert caplog.records == []


def test_the_tables_of_settings_are_those_of_the_code():
    script = runpy.run_path(str(ROOT / "docs" / "make_configuration.py"))
    page = script["PAGE"].read_text("utf-8")
    assert script["renewed"](page) == page, "run `python docs/make_configuration.py`"


def test_the_page_on_prompts_has_every_set():
    page = (ROOT / "docs" / "prompts.md").read_text("utf-8").split("## Writing your own")[0]
    assert _keys(page) == {folder.name for folder in (ROOT / "prompts").iterdir() if folder.is_dir()}


async def _heard(then, rows, context_window=8_000):
    """The events of one request after these rows, with a provider that answers so."""
    provider = ScriptedProvider(then=then, context_window=context_window, max_output_tokens=context_window // 8)
    recorder = Recorder({"one": provider})
    manager = SummarizingContextManager(recorder, keep_recent=4, prefetch=False)
    for row in rows:
        await manager.add_message(row)
    await manager.get_messages_for_request(provider=provider)
    await manager.close()
    return recorder.events


async def test_the_page_for_hosts_has_every_event_with_its_keys():
    """Those of requests whose summaries are made, whose provider is down, and in which nothing fits."""
    rows = tool_session(30, size=800)
    prompt = {"role": "system", "content": "rule " * 400}
    events = [
        *await _heard("Goal: orders were looked up.", rows),
        *await _heard(RuntimeError("down"), rows),
        *await _heard("Goal.", [prompt, *rows[:2]], context_window=100),
    ]
    parts = re.split(r"^### `(.+)`$", _section("Events"), flags=re.M)[1:]
    told = {name: _keys(text) for name, text in zip(parts[::2], parts[1::2], strict=True)}
    assert {name for name, _ in events} == set(ALL_EVENTS) == set(told)
    for name, payload in events:
        assert set(payload) == told[name], name


@pytest.mark.parametrize("value", [Preview, Statistics])
def test_the_page_for_hosts_has_every_field_of(value):
    assert _keys(_section(value.__name__)) == {item.name for item in fields(value)}


def test_the_page_for_hosts_has_every_method():
    """All but those that the module itself connects to hooks, to the end of a wait, and to that of a session."""
    names = {name for name in vars(SummarizingContextManager) if not name.startswith("_")}
    page = _section("Methods") + _section("Steering")
    told = {name for name in re.findall(r"`([a-z_]+)[`(]", page) if name in names}
    assert names - told == {"conversation", "finish", "observe_response", "prepare", "stop_waiting"}


async def test_the_page_for_hosts_has_every_capability(monkeypatch):
    registered = set()
    monkeypatch.setattr(MockCoordinator, "register_capability", lambda self, name, value: registered.add(name))
    await (await mount(MockCoordinator(), {"cache": "memory"}))()
    assert registered == set(re.findall(r"`(context\.[a-z_]+)`", _section("Methods")))
