"""The documentation is held to the code: its commands and Python blocks run, its settings and events are the code's."""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
import textwrap
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from types import ModuleType
from typing import Any

import click
import pytest
from amplifier_core.testing import MockCoordinator

from context_summarize import Config, SummarizingContextManager, mount
from context_summarize.cli import main
from context_summarize.config import SETTINGS
from context_summarize.events import ALL_EVENTS
from context_summarize.session.compaction import Preview
from context_summarize.session.statistics import Statistics
from context_summarize.testing import ScriptedProvider, tool_session
from tests.support.effort import LONG
from tests.support.paths import ROOT
from tests.support.recorder import Recorder

PAGES = [
    *(ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "examples/README.md")),
    *sorted((ROOT / "docs").glob("*.md")),
]
LEFT_OUT = {
    "make ": "each target makes an environment; .ci/run runs those that must pass, and a test here looks for each name",
    "pip install ": "installs; tests/host/test_wheel.py installs the wheel",
    "python -m benchmarks.": "a model or other libraries are asked; benchmarks/tests does it by script",
    ".venv/bin/": "the environment that `make` makes; the tests themselves run in one like it",
}
"""Commands that are not run, by how they begin, and why."""

ROWS = 301
"""Rows of the example that commands of the documentation read on a desk; in CI they read the whole recording."""

yaml = importlib.import_module("yaml")  # comes with amplifier-core, without types


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block."""

    page: Path
    language: str
    text: str


def _blocks(page: Path) -> Iterator[Block]:
    for _, language, text in re.findall(r"^( *)```(\w+)\n(.*?)^\1```$", page.read_text("utf-8"), re.S | re.M):
        yield Block(page, language, textwrap.dedent(text))


BLOCKS = [block for page in PAGES for block in _blocks(page)]


def _commands(page: Path) -> list[str]:
    """Every line of the page's `sh` blocks, in order, comments aside."""
    text = "".join(block.text for block in _blocks(page) if block.language == "sh")
    lines = (re.sub(r"(^|\s)#.*", "", line).strip() for line in text.replace("\\\n", " ").splitlines())
    return [line for line in lines if line]


def _is_left_out(command: str) -> bool:
    return command.startswith(tuple(LEFT_OUT))


RUN = {page: [line for line in _commands(page) if not _is_left_out(line)] for page in PAGES}


def _named(page: Path) -> str:
    return str(page.relative_to(ROOT))


# --- commands and programs ------------------------------------------------------------------------------------------


@pytest.fixture
def workshop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the examples in it and a home of its own, in which the commands of the environment are found."""
    if LONG:
        (tmp_path / "examples").symlink_to(ROOT / "examples")
    else:
        shutil.copytree(ROOT / "examples", tmp_path / "examples")
        recording = tmp_path / "examples" / "airline-desk.jsonl"
        recording.write_text("".join(recording.read_text("utf-8").splitlines(keepends=True)[:ROWS]), "utf-8")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("AMPLIFIER_HOME")
    monkeypatch.setenv("PATH", os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"])))
    return tmp_path


@pytest.mark.parametrize("page", [page for page, commands in RUN.items() if commands], ids=_named)
def test_every_command_of_a_page_runs(page: Path, workshop: Path) -> None:
    """One after the other in one folder, as a reader would; each ends with exit status 0."""
    for command in RUN[page]:
        done = subprocess.run(command, shell=True, cwd=workshop, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"


def test_commands_are_found_and_none_is_left_out_for_nothing() -> None:
    """So that the test above is one; and each reason for leaving one out has its command."""
    assert {"docs/start.md", "docs/prompts.md", "docs/operations.md", "docs/troubleshooting.md"} <= {
        _named(page) for page, run in RUN.items() if run
    }
    everything = [command for page in PAGES for command in _commands(page)]
    assert [start for start in LEFT_OUT if not any(line.startswith(start) for line in everything)] == []


def test_every_make_target_that_is_named_exists() -> None:
    """In commands and in running text."""
    made = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.M))
    for page in PAGES:
        text = page.read_text("utf-8")
        named = {line.split()[1] for line in _commands(page) if line.startswith("make ")} | set(
            re.findall(r"`make ([a-z-]+)[^`]*`", text)
        )
        assert named <= made, _named(page)


INLINE = sorted(
    {
        command
        for page in PAGES
        for command in re.findall(
            r"`((?:[A-Z_]+=\S+ )*(?:\S*pytest|\S*python -m|\S*context-summarize) [^`\n]+)`", page.read_text()
        )
    }
)
"""Commands in running text and in tables. Most are long: they are checked, not run."""


def _words(command: str) -> list[str]:
    """The words of a command from its program on; a trial's settings before it are left out."""
    return [word for word in shlex.split(command) if not re.fullmatch(r"[A-Z_]+=\S+", word)]


@pytest.mark.parametrize("command", [line for line in INLINE if "pytest " in line])
def test_every_test_that_the_running_text_names_exists(command: str) -> None:
    """Its files and folders are there, and each word of `-k` selects a test of theirs."""
    words = _words(command)[1:]
    chosen = words[words.index("-k") + 1] if "-k" in words else ""
    paths = [ROOT / word.partition("::")[0] for word in words if word.startswith("tests/")]
    assert paths
    assert [path for path in paths if not path.exists()] == []
    files = [file for path in paths for file in (sorted(path.rglob("test_*.py")) if path.is_dir() else [path])]
    names = "\n".join(
        f"{file.name} {line}"
        for file in files
        for line in re.findall(r"(?:def|class) \w+|\"[\w-]+\"", file.read_text("utf-8"))
    )
    for word in re.findall(r"\w+", re.sub(r"\b(?:or|and|not)\b", "", chosen)):
        assert word.lower() in names.lower(), word


@pytest.mark.parametrize("command", [line for line in INLINE if "python -m" in line and "pytest" not in line])
def test_every_module_that_the_running_text_runs_exists(command: str) -> None:
    """The benchmarks ask models or other libraries, so they have tests of their own."""
    words = _words(command)
    name = words[words.index("-m") + 1]
    assert importlib.util.find_spec(name) is not None or name in {"twine", "benchmarks.peers"}, name


@pytest.mark.parametrize("command", [line for line in INLINE if re.match(r"\S*context-summarize ", line)])
def test_every_option_that_the_running_text_names_exists(command: str) -> None:
    """Of the commands of `context-summarize`."""
    found: click.Command = main
    for word in _words(command)[1:]:
        if isinstance(found, click.Group):
            if word in found.commands:
                found = found.commands[word]
                continue
            assert word.startswith("-"), f"{word} is no command"
        if word.startswith("-"):
            options = {name for parameter in found.params for name in parameter.opts} | {"--help", "--version"}
            assert word.partition("=")[0] in options, word


PROGRAMS = [block for block in BLOCKS if block.language == "python"]


@pytest.mark.parametrize("block", PROGRAMS, ids=lambda block: _named(block.page))
def test_every_python_block_of_docs_runs(block: Block, tmp_path: Path) -> None:
    """Each is a whole program that ends without an error, in a folder of its own."""
    done = subprocess.run([sys.executable, "-c", block.text], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


# --- settings -------------------------------------------------------------------------------------------------------


def _settings(block: Block) -> Any:
    """What a session of this YAML gives the module."""
    return yaml.safe_load(block.text)["session"]["context"]["config"]


SESSIONS = [block for block in BLOCKS if block.language == "yaml" and block.text.startswith("session:")]


@pytest.mark.parametrize("block", SESSIONS, ids=lambda block: _named(block.page))
def test_the_settings_of_every_session_are_accepted(block: Block, caplog: pytest.LogCaptureFixture) -> None:
    """And not passed over with a warning, as those of other modules are."""
    Config.from_mapping(_settings(block))
    assert caplog.records == []


def _script() -> ModuleType:
    path = ROOT / "docs" / "make_configuration.py"
    spec = importlib.util.spec_from_file_location("make_configuration", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_tables_of_settings_are_those_of_the_code() -> None:
    """`python docs/make_configuration.py` would change nothing, and each of its tables stands on the page once."""
    script = _script()
    page = script.PAGE.read_text("utf-8")
    assert script.renewed(page) == page, "run `python docs/make_configuration.py`"
    for name in script.TABLES:
        assert page.count(f"<!-- {name}: ") == 1
    for name, item in SETTINGS.items():
        assert f"| `{name}` | " in page
        assert item.description
        assert item.description in page


@pytest.mark.parametrize("name", sorted(SETTINGS))
def test_the_defaults_on_the_page_are_the_defaults(name: str) -> None:
    """What the table says of a setting is what a session without settings has."""
    rows = [line for line in _script().PAGE.read_text("utf-8").splitlines() if line.startswith(f"| `{name}` | ")]
    assert len(rows) >= 1
    default = getattr(Config(), name)
    assert yaml.safe_load(rows[0].split("|")[2].strip(" `")) == default


def test_the_settings_stand_on_one_page() -> None:
    """A second table would contradict the first one sooner or later."""
    tables = [_named(page) for page in PAGES if "| key | default |" in page.read_text("utf-8")]
    assert tables == ["docs/configuration.md"]


def test_an_old_table_is_renewed() -> None:
    """Whatever was changed in it by hand; a page that lost a mark is left alone."""
    script = _script()
    page = script.PAGE.read_text("utf-8")
    assert script.renewed(page.replace("| `keep_recent` |", "| `keep_most` |")) == page
    without = page.replace("<!-- end of aliases -->", "")
    with pytest.raises(ValueError, match="unpack"):
        script.renewed(without)


def _rows(text: str) -> Iterator[list[str]]:
    """The cells of every line of a table."""
    for line in text.splitlines():
        if line.startswith("| "):
            yield [cell.strip() for cell in line.strip("|").split("|")]


# --- events ---------------------------------------------------------------------------------------------------------

EVENTS_PAGE = (ROOT / "docs" / "events.md").read_text("utf-8")


def _told() -> dict[str, set[str]]:
    """Event → keys of its payload, as the page has them."""
    section = EVENTS_PAGE.split("## Events\n")[1].split("\n## ")[0]
    parts = re.split(r"^### `(.+)`$", section, flags=re.M)[1:]
    return {
        name: {key for row in _rows(text) for key in re.findall(r"`([a-z_]+)`", row[0])}
        for name, text in zip(parts[::2], parts[1::2], strict=True)
    }


async def _heard(provider: ScriptedProvider, rows: list[dict[str, Any]]) -> Recorder:
    recorder = Recorder({"one": provider})
    manager = SummarizingContextManager(recorder, keep_recent=4, prefetch_threshold=None, retry_attempts=1, debug=True)
    for row in rows:
        await manager.add_message(row)
    await manager.get_messages_for_request(provider=provider)
    await manager.close()
    return recorder


def _provider(then: Any, context_window: int = 8_000) -> ScriptedProvider:
    return ScriptedProvider(then=then, context_window=context_window, max_output_tokens=context_window // 8)


async def test_the_page_on_events_has_every_event_with_its_keys() -> None:
    """Those of runs in which summaries are made, cannot be had, and in which nothing fits."""
    rows = tool_session(30, size=800)
    rule = {"role": "system", "content": "rule " * 400}
    runs = [
        await _heard(_provider("Goal: orders were looked up."), rows),
        await _heard(_provider(RuntimeError("down")), rows),
        await _heard(_provider("Goal.", context_window=100), [rule, *rows[:2]]),
    ]
    told = _told()
    assert set(told) == set(ALL_EVENTS)
    for name in ALL_EVENTS:
        payloads = [data for run in runs for data in run.of(name)]
        assert payloads, f"no run has {name}"
        assert all(set(data) == told[name] for data in payloads), name


@pytest.mark.parametrize("value", [Preview, Statistics], ids=lambda value: value.__name__)
def test_the_page_on_events_has_every_field_of(value: type[Preview | Statistics]) -> None:
    """And no others."""
    table = EVENTS_PAGE.split(f"\n## {value.__name__}\n")[1].split("\n## ")[0]
    named = {key for row in _rows(table) for key in re.findall(r"`([a-z_]+)`", row[0])}
    assert named == {item.name for item in fields(value)}


class Registry(MockCoordinator):
    """A coordinator that remembers what was registered."""

    def register_capability(self, name: str, value: Any) -> None:
        self.registered = [*getattr(self, "registered", []), name]
        super().register_capability(name, value)


async def test_every_capability_that_a_session_offers_is_on_the_page() -> None:
    """In the table on steering, and no others."""
    coordinator = Registry()
    cleanup = await mount(coordinator, {"cache": "memory"})
    table = EVENTS_PAGE.split("\n## Steering\n")[1].split("\n## ")[0]
    named = {name for row in _rows(table) for name in re.findall(r"`(context\.[a-z_]+)`", row[0])}
    assert set(coordinator.registered) == named
    await cleanup()


# --- links ----------------------------------------------------------------------------------------------------------


def _anchors(page: Path) -> set[str]:
    """The headings of a page as the addresses that forges give them."""
    text = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.S | re.M)
    titles = re.findall(r"^#+ (.+)$", text, re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=_named)
def test_every_link_leads_somewhere(page: Path) -> None:
    """To a file that is there, and to a heading in it where one is named."""
    text = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.S | re.M)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+://", target):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), target
        if anchor:
            assert anchor in _anchors(file), target


def test_every_page_is_linked_from_the_readme_or_from_a_page_that_is() -> None:
    """So that readers find it."""
    found, new = set(), {ROOT / "README.md"}
    while new:
        found |= new
        targets = {
            (page.parent / target.partition("#")[0]).resolve()
            for page in new
            for target in re.findall(r"\]\(([^)\s]+\.md(?:#[^)]*)?)\)", page.read_text("utf-8"))
            if "://" not in target
        }
        new = {path for path in targets if path in PAGES} - found
    assert sorted(map(_named, set(PAGES) - found)) == []


def test_the_index_leads_to_every_page_of_docs() -> None:
    """Once each."""
    index = ROOT / "docs" / "index.md"
    linked = re.findall(r"\]\(([\w-]+\.md)\)", index.read_text("utf-8"))
    assert sorted(linked) == sorted(page.name for page in index.parent.glob("*.md") if page != index)


def test_no_address_has_an_owner_to_be_filled_in() -> None:
    """The repository may be anywhere: pages say where you got it."""
    named = [_named(page) for page in [*PAGES, ROOT / "bundle.md"] if "OWNER" in page.read_text("utf-8")]
    assert named == []


def test_every_page_calls_the_distribution_by_its_name() -> None:
    """The name in pyproject.toml, and no other."""
    name = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["name"]
    installed = {
        found for page in PAGES for found in re.findall(r"pip install '?([a-z][a-z-]*)", page.read_text("utf-8"))
    }
    assert installed <= {name}
