"""Runs mutants: each in a process of its own, with the tests that reach its line, up to the first failure.

A mutant within a function runs in a fork of a process that has collected the tests, quick tests first. What stands
outside functions (constants, defaults) is imported anew with the change, in a fork that has no module of the project.
"""

# ruff: noqa: T201 - what it prints is its output

from __future__ import annotations

import contextlib
import gc
import importlib
import itertools
import os
import pickle
import resource
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest
from coverage import Coverage
from mutants import Mutant

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "context_summarize"
WAIT = 2.0
"""Seconds on the clock for each second of processor time that a mutant may take on an idle machine."""
SURVIVED, KILLED, OTHER_SHAPE = 0, 1, 3
"""What the process of a mutant ends with; any other end (a signal, no memory) is a killed mutant as well."""
OPTIONS = ("-qq", "--no-header", "-n", "0", "-p", "no:cacheprovider")
"""Of each run of pytest."""


@dataclass(slots=True)
class Baseline:
    """What the tests do without a mutant."""

    reached: dict[str, dict[int, list[str]]] = field(default_factory=dict)
    """Module → line → the tests that reach it."""
    seconds: dict[str, float] = field(default_factory=dict)
    """Test → how long it takes."""
    failed: dict[str, str] = field(default_factory=dict)
    """Test that fails, twice → how, in one line."""
    unsteady: set[str] = field(default_factory=set)
    """Tests that passed when they were run again: a failure of theirs finds no mutant."""


@dataclass(slots=True)
class Work:
    """One mutant, and how it ended."""

    module: str
    mutant: Mutant
    tests: tuple[str, ...]
    """Files and folders with the tests that are to find it."""
    end: int | None = None


def path_of(module: str) -> Path:
    """The file of a module of the list."""
    return PACKAGE / f"{module}.py"


# --- processes ------------------------------------------------------------------------------------------------------


def forked(run: Callable[[], int], *, silent: bool = True, seconds: int | None = None) -> int:
    """Start this in a process of its own; its id."""
    sys.stdout.flush()
    if child := os.fork():
        return child
    os.setsid()  # so that its own children end with it
    if silent:
        null = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(null, number)
    if seconds is not None:
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
    code = KILLED
    try:
        code = run()
    except BaseException:
        traceback.print_exc()
        raise
    finally:
        os._exit(code)


def _busy() -> float:
    """How much longer than on an idle machine work takes now."""
    return max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


@contextlib.contextmanager
def limited(seconds: float) -> Iterator[None]:
    """End the process of a mutant that hangs here: a test that waits for ever costs no processor time."""
    timer = threading.Timer(_busy() * seconds, os._exit, [KILLED])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def run_all(works: Iterable[tuple[Work, Callable[[], int], float]], jobs: int) -> None:
    """Run the mutants, so many at a time; one that takes longer than its seconds is killed."""
    waiting, running = iter(works), dict[int, tuple[Work, float]]()
    while True:
        for work, run, seconds in itertools.islice(waiting, max(0, jobs - len(running))):
            running[forked(run, seconds=int(seconds))] = (work, time.monotonic() + WAIT * _busy() * seconds)
        if not running:
            return
        for child, (work, deadline) in list(running.items()):
            done, status = os.waitpid(child, os.WNOHANG)
            if not done and time.monotonic() < deadline:
                continue
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)
            if not done:
                os.waitpid(child, 0)
            work.end = os.waitstatus_to_exitcode(status) if done else KILLED
            del running[child]
        time.sleep(0.005)


# --- changes within functions: forks of a process that has collected the tests ----------------------------------------


def functions_of(code: CodeType) -> Iterator[CodeType]:
    """The functions of a module and of its classes, those within functions aside."""
    for one in code.co_consts:
        if isinstance(one, CodeType):
            if one.co_flags & 0x02:  # has local variables: no class body
                yield one
            else:
                yield from functions_of(one)


def change_function(module: str, mutant: Mutant) -> bool:
    """Put the changed code into the function, whoever holds it; False if it cannot take the new code's place."""
    path = path_of(module)
    was = list(functions_of(compile(path.read_text("utf-8"), str(path), "exec")))
    now = list(functions_of(compile(mutant.tree, str(path), "exec")))
    pairs = [(old, new) for old, new in zip(was, now, strict=True) if old.co_qualname == mutant.function]
    changed = {(old.co_qualname, old.co_firstlineno): new for old, new in pairs if old.co_freevars == new.co_freevars}
    if len(changed) < len(pairs):
        return False
    found = 0
    for one in gc.get_objects():
        if isinstance(one, FunctionType) and one.__code__.co_filename == str(path):
            code = changed.get((one.__code__.co_qualname, one.__code__.co_firstlineno))
            if code is not None:
                one.__code__ = code
                found += 1
    return found > 0


class Collected:
    """A pytest plugin: measures the collected tests, then runs them for each mutant instead of once."""

    def __init__(self, works: Sequence[Work], jobs: int, answer: Path) -> None:
        self._works, self._jobs, self._answer = works, jobs, answer
        self._baseline = Baseline()
        self._items: dict[str, pytest.Item] = {}

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self) -> None:
        """Found examples are not made smaller here: that takes long, and nobody reads them."""
        from hypothesis import Phase, settings  # a plugin: pytest is to import it

        settings.register_profile(
            "mutate", settings.get_profile("effort"), phases=[Phase.explicit, Phase.generate], database=None
        )
        settings.load_profile("mutate")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """How long each test takes, and which fail."""
        seconds = self._baseline.seconds
        seconds[report.nodeid] = seconds.get(report.nodeid, 0.0) + report.duration
        if report.failed:
            crash = getattr(report.longrepr, "reprcrash", None)
            self._baseline.failed[report.nodeid] = " ".join(str(crash or report.longrepr).split())

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """The whole run."""
        if session.testsfailed:
            raise session.Interrupted("errors while collecting")
        self._items = {item.nodeid: item for item in session.items}
        for module in {work.module for work in self._works}:
            importlib.import_module(f"context_summarize.{module.replace('/', '.')}")
        measured = self._answer.with_suffix(".baseline")
        child = forked(lambda: self._measure(session, measured))
        end = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if not measured.exists():
            raise session.Interrupted(f"the process of the tests without a mutant ended with {end}")
        self._baseline = pickle.loads(measured.read_bytes())
        for nodeid in sorted(self._baseline.unsteady):
            print(f"left out, it fails now and then: {nodeid}")
        for nodeid, how in self._baseline.failed.items():
            print(f"fails without a mutant: {nodeid}\n    {how}")
        if self._baseline.failed:
            raise session.Interrupted("tests fail without a mutant")
        run_all((self._prepared(session, work) for work in self._works), self._jobs)
        self._answer.write_bytes(pickle.dumps([work.end for work in self._works]))
        return True

    def _measure(self, session: pytest.Session, answer: Path) -> int:
        modules = sorted({work.module for work in self._works})
        watched = Coverage(data_file=None, config_file=False, include=[str(path_of(module)) for module in modules])
        watched.start()
        for nodeid in self._items:
            watched.switch_context(nodeid)
            self._run(session, [nodeid])
        watched.stop()
        data = watched.get_data()
        for module in modules:
            self._baseline.reached[module] = data.contexts_by_lineno(str(path_of(module)))
        failed = set(self._baseline.failed)
        self._baseline.failed.clear()
        for nodeid in sorted(failed):
            self._run(session, [nodeid])
        self._baseline.unsteady = failed - set(self._baseline.failed)
        answer.write_bytes(pickle.dumps(self._baseline))
        return SURVIVED

    def _run(self, session: pytest.Session, nodeids: Sequence[str], *, timed: bool = False) -> int:
        os.environ["PYTEST_DEBUG_TEMPROOT"] = tempfile.mkdtemp(dir=self._answer.parent)
        for at, nodeid in enumerate(nodeids):
            item = self._items[nodeid]
            following = self._items[nodeids[at + 1]] if at + 1 < len(nodeids) else None
            with limited(3 + 10 * self._baseline.seconds.get(nodeid, 0.0)) if timed else contextlib.nullcontext():
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if session.testsfailed:
                return KILLED
        return SURVIVED

    def _prepared(self, session: pytest.Session, work: Work) -> tuple[Work, Callable[[], int], float]:
        """The mutant with what to run, and the seconds that this may take."""
        lines = self._baseline.reached[work.module]
        tests = sorted(
            {test for test in lines.get(work.mutant.line, []) if test.startswith(work.tests)} - self._baseline.unsteady,
            key=lambda test: self._baseline.seconds.get(test, 0.0),
        )

        def run() -> int:
            return self._run(session, tests, timed=True) if change_function(work.module, work.mutant) else OTHER_SHAPE

        return work, run, 3 + 4 * sum(self._baseline.seconds.get(test, 0.0) for test in tests)


def run_functions(works: Sequence[Work], jobs: int) -> None:
    """Run the mutants within functions.

    Raises:
        SystemExit: the tests fail without a mutant, twice, or cannot be collected.
    """
    with tempfile.TemporaryDirectory() as folder:
        answer = Path(folder) / "answer"
        files = sorted({test for work in works for test in work.tests})
        arguments = [*OPTIONS, "--capture=no", *files]
        child = forked(lambda: int(pytest.main(arguments, [Collected(works, jobs, answer)])), silent=False)
        os.waitpid(child, 0)
        if not answer.exists():
            sys.exit("no mutant was run; see above. The tests: `python -m pytest " + " ".join(files) + "`")
        for work, end in zip(works, pickle.loads(answer.read_bytes()), strict=True):
            work.end = end


# --- changes outside functions: the module is imported anew -----------------------------------------------------------


class Changed(SourceFileLoader):
    """Finds and loads one module in its changed form."""

    def __init__(self, module: str, mutant: Mutant) -> None:
        super().__init__(f"context_summarize.{module.replace('/', '.')}", str(path_of(module)))
        self._mutant = mutant

    def get_code(self, fullname: str) -> CodeType:
        """The changed module, compiled."""
        return compile(self._mutant.tree, self.path, "exec")

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """As a finder: this module only."""
        return spec_from_file_location(name, self.path, loader=self) if name == self.name else None


class Limited:
    """A pytest plugin: no test may take longer than so many seconds."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self) -> Generator[None, object, object]:
        """Each test, with its setup."""
        with limited(self._seconds):
            return (yield)


def run_modules(works: Sequence[Work], jobs: int, seconds: float) -> None:
    """Run the mutants outside functions, each for at most so long."""

    def prepared(work: Work) -> tuple[Work, Callable[[], int], float]:
        def run() -> int:
            os.environ["PYTEST_DEBUG_TEMPROOT"] = tempfile.mkdtemp(dir=folder)
            sys.meta_path.insert(0, Changed(work.module, work.mutant))
            return int(pytest.main([*OPTIONS, "-x", *work.tests], [Limited(seconds / 8)]) != 0)

        return work, run, seconds

    with tempfile.TemporaryDirectory() as folder:
        run_all(map(prepared, works), jobs)
