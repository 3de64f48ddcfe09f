"""What the documentation tells is what the code has: settings, events, methods, files; its programs and commands."""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest
import yaml  # type: ignore[import-untyped]  # comes with amplifier-core
from amplifier_core.testing import MockCoordinator

from context_summarize import Config, SummarizingContextManager, mount
from context_summarize.events import ALL_EVENTS
from context_summarize.session.steering import Preview
from context_summarize.stores import open_store
from context_summarize.summaries.services import Statistics
from context_summarize.testing import ScriptedProvider
from tests.support.bare_host import run_python
from tests.support.pages import PAGES, blocks, commands, named, table
from tests.support.paths import ROOT
from tests.support.recorder import Recorder
from tests.support.rows import tool_session

EXAMPLE = ROOT / "examples" / "session.py"
HOSTS = (ROOT / "docs" / "hosts.md").read_text("utf-8")


def _section(title):
    return HOSTS.split(f"\n## {title}\n")[1].split("\n## ")[0]


def _keys(text):
    """Names in the first cells of the tables of a text, and before the colons of its lists."""
    heads = [row[0] for row in table(text)] + re.findall(r"^\* ([^:]+):", text, re.M)
    return {key for head in heads for key in re.findall(r"`([a-z_]+)`", head)}


def test_every_program_of_a_page_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    programs = blocks("python")
    assert programs
    for _, text in programs:
        exec(text, {"__name__": "__main__"})


def test_the_example_session_compacts_recalls_and_resumes_without_a_call(tmp_path):
    """It ends well in an empty folder, far from the checkout's own modules, and each of its four lines says so."""
    sizes, saved, recalled, resumed = run_python(EXAMPLE.read_text("utf-8"), tmp_path).stdout.splitlines()
    messages, sent, compactions, calls = map(int, re.findall(r"\d+", sizes))
    assert sent < messages / 2
    assert min(compactions, calls) > 0
    assert re.fullmatch(r"compact\(\) saved [\d,]+ tokens", saved)
    assert recalled == "recall found ORD-12: parcel PX-127"
    assert resumed == "after a restart: the same request True, 0 calls"


def test_the_settings_of_every_session_are_accepted_without_a_warning(caplog):
    sessions = [text for _, text in blocks("yaml") if text.startswith("session:")]
    assert len(sessions) > 1
    for text in sessions:
        Config.from_mapping(yaml.safe_load(text)["session"]["context"].get("config"))
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
    """All but those that the module itself connects to hooks, and to the end of a session."""
    names = {name for name in vars(SummarizingContextManager) if not name.startswith("_")}
    page = _section("Methods") + _section("Steering")
    told = {name for name in re.findall(r"`([a-z_]+)[`(]", page) if name in names}
    assert names - told == {"session", "finish", "observe_response", "prepare"}


async def test_the_page_for_hosts_has_every_capability(monkeypatch):
    registered = set()
    monkeypatch.setattr(MockCoordinator, "register_capability", lambda self, name, value: registered.add(name))
    await (await mount(MockCoordinator(), {"cache": "memory"}))()
    assert registered == set(re.findall(r"`(context\.[a-z_]+)`", _section("Methods")))


def _left(folder):
    """Names of the files, with DATE for the date of an archive; all for the user alone."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert {path.stat().st_mode & 0o777 for path in files} <= {0o600}
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o700}
    return {re.sub(r"\.\d{4}-[^.]+\.\w+\.", ".DATE.", path.name) for path in files}


async def test_the_page_on_privacy_names_every_file_of_a_session(tmp_path):
    """A short session leaves its history alone, a long one summaries; what was cleared stays in an archive."""
    store = open_store(str(tmp_path / "context-summarize" / "summaries.db"))
    settings = {"persistence": {"path": tmp_path / "histories" / "NAME.jsonl"}, "announce": False}
    manager = SummarizingContextManager(MockCoordinator(), store=store, config=settings)
    provider = ScriptedProvider(then="Goal: orders.", context_window=12_000, max_output_tokens=1_000)
    left, rows = [], tool_session(60, size=800)
    for part in (rows[:4], rows):
        await manager.set_messages(part)
        await manager.get_messages_for_request(provider=provider)
        await manager.settle()  # nothing is written while the files are looked at
        left.append(_left(tmp_path))
    await manager.clear()
    await manager.close()
    short, long = left
    assert short == {"NAME.jsonl", "NAME.jsonl.lock"}
    assert long - short == {"summaries.db", "summaries.db-wal", "summaries.db-shm"}
    assert _left(tmp_path) == {*short, "summaries.db", "NAME.DATE.jsonl"}
    page = (ROOT / "docs" / "privacy.md").read_text("utf-8")
    for name in ("summaries.db`", "`summaries.db-wal`", "`-shm`", "`….lock`", "`NAME.DATE.jsonl`"):
        assert name in page


LEFT_OUT = ("make ", "pip install ", "python -m benchmarks.", ".venv/bin/")
"""Beginnings of commands that are not run: they install something, or run for long in an environment of their own."""

RUN = {page: [line for line in commands(page) if not line.startswith(LEFT_OUT)] for page in PAGES}


@pytest.mark.ci
@pytest.mark.parametrize("page", [page for page, lines in RUN.items() if lines], ids=named)
def test_every_command_of_a_page_runs(page, tmp_path, monkeypatch):
    """In a folder that has the examples, with a home of its own."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("AMPLIFIER_HOME")
    monkeypatch.setenv("PATH", os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"])))
    for command in RUN[page]:
        subprocess.run(command, shell=True, cwd=tmp_path, check=True)
