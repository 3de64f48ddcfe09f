"""Mutation testing: `make mutate` for all modules of the list, `python tools/mutate.py core/plan` for one."""

# ruff: noqa: T201 - what it prints is its output

from __future__ import annotations

import argparse
import importlib
import os
import sys
import time
from collections import defaultdict
from collections.abc import Sequence

from mutant_runs import OTHER_SHAPE, ROOT, SURVIVED, Work, path_of, run_functions, run_modules
from mutants import mutants_of, sampled

BAR = 0.9
"""Share of the mutants of a module that the tests must find."""
MOST = 160
"""Mutants of a module; of a larger number a sample is taken, the same each time."""
_PLAN_TESTS = (
    "tests/unit/core/test_plan.py",
    "tests/behaviour/test_compaction.py",
    "tests/behaviour/test_floors.py",
)
TESTS: dict[str, tuple[str, ...]] = {
    "redaction/redactor": (
        "tests/unit/redaction/test_windows.py",
        "tests/unit/redaction/test_neighbourhoods.py",
        "tests/unit/redaction/test_redactor.py",
    ),
    "summaries/breaker": ("tests/unit/summaries/test_breaker.py", "tests/unit/summaries/test_call.py"),
    "summaries/call": ("tests/unit/summaries/test_call.py", "tests/unit/summaries/test_breaker.py"),
    "summaries/failures": ("tests/unit/summaries/test_call.py",),
    "summaries/answer": ("tests/behaviour/test_answers.py", "tests/unit/summaries/test_call.py"),
    "summaries/registry": (
        "tests/unit/summaries/test_registry.py",
        "tests/behaviour/test_races.py::TestSessionEnd",
        "tests/behaviour/test_races.py::TestNoWaiting",
    ),
    "core/node_builder": ("tests/unit/core/test_segments.py", "tests/unit/core/test_history.py"),
    "core/plan": _PLAN_TESTS,
    "core/draft": _PLAN_TESTS,
}
"""Modules that are mutated, each with the tests that are to find its mutants."""
PRELOADED = ("markdown_it", "pydantic", "regex", "rich.console", "tenacity", "tiktoken")
"""Imported once for all: libraries that bring no plugin of pytest."""


def report(works: Sequence[Work]) -> bool:
    """Print the survivors and the figures of each module; False if one is below the bar."""
    by_module = defaultdict[str, list[Work]](list)
    for work in works:
        by_module[work.module].append(work)
    for module, of_module in by_module.items():
        for work in of_module:
            if work.end == SURVIVED:
                where = f"{path_of(module).relative_to(ROOT)}:{work.mutant.line}"
                print(f"{where}: {work.mutant.change}\n    {work.mutant.text}")
    print(f"\n{'module':<24}{'mutants':>9}{'killed':>9}{'share':>8}")
    good = True
    for module, of_module in by_module.items():
        killed = sum(work.end != SURVIVED for work in of_module)
        good &= killed >= BAR * len(of_module)
        print(f"{module:<24}{len(of_module):>9}{killed:>9}{killed / len(of_module):>8.0%}")
    return good


def main() -> int:
    """Mutate the named modules, or all of the list; 1 if the tests find too few of the mutants of one."""
    parser = argparse.ArgumentParser(prog="python tools/mutate.py", description=__doc__.splitlines()[0])
    parser.add_argument("module", nargs="*", choices=[[], *TESTS], help="all of them without a name")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes at a time")
    parser.add_argument("--most", type=int, default=MOST, help="mutants of a module; a sample if it has more")
    given = parser.parse_args()
    os.chdir(ROOT)
    os.environ["CI"] = "true"  # random tests draw the same examples each time
    sys.path.insert(0, str(ROOT))
    for name in PRELOADED:
        importlib.import_module(name)
    started, works = time.monotonic(), list[Work]()
    for module in given.module or TESTS:
        every = mutants_of(path_of(module).read_text("utf-8"))
        works += [Work(module, mutant, TESTS[module]) for mutant in sampled(every, given.most)]
        if len(every) > given.most:
            print(f"{module}: {given.most} of {len(every)} mutants, drawn by hash")
    run_functions([work for work in works if work.mutant.function is not None], given.jobs)
    run_modules([work for work in works if work.end in (None, OTHER_SHAPE)], given.jobs, seconds=120)
    good = report(works)
    print(f"{time.monotonic() - started:.0f} s")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
