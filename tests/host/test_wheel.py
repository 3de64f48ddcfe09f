"""The wheel: built, installed into a fresh environment, and replayed from an empty folder with an empty home."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from email import message_from_bytes
from itertools import islice
from pathlib import Path

import pytest

from tests.support.bare_host import bare_host, run, run_python
from tests.support.paths import ROOT

pytestmark = [pytest.mark.wheel, pytest.mark.ci]

EXAMPLE = ROOT / "examples" / "airline-desk.jsonl"
ROWS = 300
"""Rows of the example that are replayed: enough for some compactions in a window of 12,000 tokens."""


@dataclass(frozen=True)
class Installed:
    """A fresh environment that holds the wheel and what it depends on, and nothing of the repository."""

    wheel: Path
    bin: Path


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """Build and install once. pip asks the package index that it is set up for."""
    folder = tmp_path_factory.mktemp("wheel")
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "COV_", "VIRTUAL"))}

    def run_here(*command: object) -> None:
        subprocess.run(list(map(str, command)), cwd=folder, env=environment, timeout=600, check=True)

    run_here(sys.executable, "-m", "venv", "venv")
    pip = (folder / "venv" / "bin" / "python", "-m", "pip", "--disable-pip-version-check", "--quiet")
    run_here(*pip, "wheel", "--no-deps", "--wheel-dir", "dist", ROOT)
    [wheel] = (folder / "dist").iterdir()
    run_here(*pip, "install", wheel)
    return Installed(wheel, folder / "venv" / "bin")


def test_the_wheel_holds_the_packages_the_prompts_and_the_ranks_and_nothing_else(installed):
    """Tests, examples and the top-level prompts/ stay out: a wheel's top level is everybody's site-packages."""
    names = zipfile.ZipFile(installed.wheel).namelist()
    top = {name.split("/")[0] for name in names}
    [info] = [name for name in top if name.endswith(".dist-info")]

    assert installed.wheel.name.startswith("amplifier_module_context_summarize-")
    assert installed.wheel.name.endswith("-py3-none-any.whl")
    assert top - {info} == {
        "context_summarize",
        "amplifier_module_context_summarize",
        "amplifier_module_tool_context_recall",
        "amplifier_module_tool_context_steering",
    }
    files = [path for path in (ROOT / "context_summarize").rglob("*") if path.is_file() and path.suffix != ".pyc"]
    prompts = [path.relative_to(ROOT / "prompts").as_posix() for path in (ROOT / "prompts").rglob("*.md")]
    assert files
    assert {path.relative_to(ROOT).as_posix() for path in files} <= set(names)
    assert prompts
    assert {f"context_summarize/_prompts/{name}" for name in prompts if "/" in name} <= set(names)
    assert {f"amplifier_module_context_summarize/{name}" for name in ("__init__.py", "py.typed")} <= set(names)
    assert f"{info}/licenses/LICENSE" in names
    assert [name for name in names if "__pycache__" in name or name.endswith(".pyc")] == []


def test_the_page_of_a_package_index_has_no_link_into_the_repository(installed):
    """The README's links and pictures, and the project's own links, have addresses at one place."""
    with zipfile.ZipFile(installed.wheel) as wheel:
        [name] = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
        metadata = message_from_bytes(wheel.read(name))
    page = str(metadata.get_payload())
    links = re.findall(r"\]\(([^)]+)\)", page) + re.findall(r'src(?:set)?="([^"]+)"', page)
    own = {address.split(", ")[1] for address in metadata.get_all("Project-URL", [])}
    [home] = [address for address in own if all(other.startswith(address) for other in own)]
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert [link for link in links if not link.startswith("https://")] == []
    files = [link.removeprefix(home).split("/", 3)[3].partition("#")[0] for link in links if link.startswith(home)]
    assert files
    assert [file for file in files if not (ROOT / file).exists()] == []


def test_prompts_and_ranks_are_found_from_the_wheel(installed, tmp_path):
    """No file of the repository is needed, and no download: the process forbids sockets."""
    script = """
        import sys

        def offline(event, args):
            if event in ("socket.connect", "socket.getaddrinfo"):
                raise PermissionError(event)

        sys.addaudithook(offline)
        from context_summarize import SummarizingContextManager
        from context_summarize.testing import measure
        SummarizingContextManager(prompts="coding")
        print(measure({"role": "user", "content": "hello world"}) - measure({"role": "user", "content": ""}))
    """
    assert run_python(script, tmp_path, str(installed.bin / "python")).stdout.strip() == "2"


def test_a_session_mounts_it_by_its_name(installed, tmp_path):
    """A real session with the installed module: loaded by entry point, rows in, view out, cleaned up."""
    view, used = run_python(bare_host(), tmp_path, str(installed.bin / "python")).stdout.splitlines()

    assert view == "[{'role': 'user', 'content': 'hello', 'metadata': {'shown_by': 'context-summarize'}}]"
    assert Path(used).is_relative_to(installed.bin.parent)


def test_the_installed_command_replays_a_recorded_session(installed, tmp_path):
    """From an empty folder, with an empty home: compactions run, all checks pass, and nothing is left behind."""
    short = tmp_path / "short.jsonl"
    with EXAMPLE.open(encoding="utf-8") as lines:
        short.write_text("".join(islice(lines, ROWS)), "utf-8")
    command = [installed.bin / "context-summarize", "replay", short, "--window", "14600"]

    done = run([*map(str, command)], tmp_path)

    assert "Traceback" not in done.stderr
    assert len(re.findall(r"[\d,]{5,} → [\d,]{5,}", done.stdout)) >= 3, "compactions, as tokens before and after"
