"""What all tests share: where Amplifier's inherited suites find the module, and a switch that forbids skips."""

from __future__ import annotations

import logging
import os
import signal
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest.mock import AsyncMock, Mock

import pytest
from hypothesis import Phase, settings

import context_summarize
from tests.support.effort import LONG, SMALL_EXAMPLES

NO_SKIPS = "CONTEXT_SUMMARIZE_NO_SKIPS"
"""Environment variable: `1` fails a session in which anything was skipped."""


@pytest.fixture
def module_path() -> Path:
    """The package that the inherited validation suites load; without it they skip themselves."""
    return Path(context_summarize.__file__).parent


@pytest.fixture
def module_type() -> str:
    """The kind of module that the inherited validation suites expect."""
    return "context"


@pytest.fixture(autouse=True)
def amplifier_home(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Each test has an Amplifier folder of its own, made at first need: no test finds the summaries of another."""
    monkeypatch.setenv("AMPLIFIER_HOME", str(tmp_path_factory.getbasetemp() / f"home-{uuid.uuid4().hex}"))


@pytest.fixture(autouse=True)
def screen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The screen of the kernel's mock coordinator is called as hosts' screens are: nobody awaits it."""
    monkeypatch.setattr("amplifier_core.testing.AsyncMock", lambda **given: AsyncMock(**given) if given else Mock())


@pytest.fixture
def no_hang() -> Iterator[None]:
    """Ends a test that hangs; far above what it takes, so that no machine is too slow for it."""

    def stop(signum: int, frame: object) -> None:
        raise TimeoutError("hangs: still at it after a minute")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def warnings(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    """The warnings so far."""
    return lambda: [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fails a session in which a test, or a whole file, was skipped, where that is forbidden."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")  # none in a process of xdist's
    if reporter is None or os.environ.get(NO_SKIPS) != "1":
        return
    if (skips := reporter.stats.get("skipped")) and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
        reporter.write_line(f"\n{NO_SKIPS} forbids skips, and there were {len(skips)}", red=True)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What is marked `ci` comes first, so that no process ends with it; on a desk it is left out unless asked for."""
    late = [item for item in items if item.get_closest_marker("ci")]
    others = [item for item in items if not item.get_closest_marker("ci")]
    if late and not LONG and "ci" not in config.getoption("-m"):
        config.hook.pytest_deselected(items=late)
        late = []
    items[:] = [*late, *others]


def pytest_unconfigure() -> None:
    if "amplifier_core" in sys.modules:
        time.sleep(0.2)  # the kernel's own threads can crash an interpreter that ends right after a session


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    # Fresh draws in CI too, where Hypothesis repeats its own by default: each run looks at histories that no run before
    # has seen, and one that fails prints how to repeat it. No deadline: machines differ, and are busy. Shrinking the
    # life of a whole manager takes minutes: `--hypothesis-profile shrink` asks for it.
    settings.register_profile("shrink", max_examples=SMALL_EXAMPLES, deadline=None, derandomize=False, print_blob=True)
    phases = (Phase.explicit, Phase.reuse, Phase.generate)
    settings.register_profile("effort", settings.get_profile("shrink"), phases=phases)
    settings.load_profile(config.getoption("--hypothesis-profile") or "effort")
