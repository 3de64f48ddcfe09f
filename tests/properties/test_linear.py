"""For every pattern and every reader of foreign text: four times the text costs about four times the CPU.

A regular expression holds the interpreter's lock: one that takes seconds stops the whole process, in a thread too.
"""

from __future__ import annotations

import ast
import asyncio
import gc
import importlib
import itertools
import json
import pkgutil
import random
import re
import sys
import time
import timeit
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import regex

import context_summarize
from context_summarize import SummarizingContextManager
from context_summarize.core.log import Log
from context_summarize.messages.reading import analyse
from context_summarize.recall import RecallQuery
from context_summarize.testing import ScriptedProvider
from tests.support.cli import call as command
from tests.support.cli import store
from tests.support.effort import LONG, full, some
from tests.support.inside import text_of
from tests.support.paths import ROOT
from tests.support.rows import assistant, call, feed, result, user
from tests.support.secrets import known

pytestmark = pytest.mark.usefixtures("no_hang")

SIGNS = ".…,;:!?=/#*@%&|~$_+-–\\\"'`“”„«»‹›「」『』()[]{}<> \t\xa0\n\r\u2028\u030019aAé完\u200b\x1b"  # noqa: RUF001
"""Of each class one or more: dots, quotes, brackets, blanks, line ends, digits, dashes, letters, combining marks."""
WORDS = ["a: b, ", "password=", "call f(", "```\n", "> ", "a1", "Never x. ", "<a>", "http://", "1,", '\\"', '{"a":', "\n\n", "#1 user\n"]  # fmt: skip  # noqa: E501
MEASURED = 4
"""Times that a growth is measured before it is believed."""
GROWTH = 6
"""Times the CPU that four times the text may cost."""


def shapes(one: str, other: str, size: int) -> Iterator[str]:
    """Texts of about so many characters of two units: in turn, halves, and one of the other after many."""
    yield (one + other) * (size // len(one + other))
    yield one * (size // 2 // len(one)) + other * (size // 2 // len(other))
    yield one * (size // len(one)) + other


def cheapest(run: Callable[[Any], Any], given: Any, clock: Callable[[], float], times: int) -> float:
    """Seconds of CPU of the cheapest run: what else the machine does costs nothing."""
    return min(timeit.repeat(partial(run, given), timer=clock, number=1, repeat=times))


def grows(run: Callable[[Any], Any], short: Any, long: Any, slack: float, clock: Any = time.process_time) -> str:
    """Why the longer run costs too much; "" where it costs about four times the shorter, or less than the slack."""
    if cheapest(run, long, clock, 1) < slack:
        return ""
    for _ in range(MEASURED):  # growth that is not there each time is the machine's
        cost, before = cheapest(run, long, clock, 3), cheapest(run, short, clock, 3)
        if cost <= GROWTH * before + slack:
            return ""
    return f"{before:.3f} s, then {cost:.3f} s"


def slow(
    run: Callable[[str], Any], pairs: Iterable[tuple[str, str]], size: int, slack: float, clock: Any = time.thread_time
) -> list[Any]:
    """The pairs of units of which a text of this size costs too much."""
    return [
        (one, other, why)
        for one, other in pairs
        for short, long in zip(shapes(one, other, size // 4), shapes(one, other, size), strict=True)
        if (why := grows(run, short, long, slack, clock))
    ]


def held(thing: Any, seen: set[int]) -> Iterator[Any]:
    """The patterns that a value leads to: what it lists, its attributes, and what functions close over; no classes."""
    if id(thing) in seen or isinstance(thing, type | ModuleType):
        return
    seen.add(id(thing))
    if isinstance(thing, re.Pattern | regex.Pattern):
        yield thing
    else:
        for item in gc.get_referents(thing):
            yield from held(item, seen)


def patterns() -> Iterator[tuple[str, Any, bool]]:
    """(place, pattern, whether it is looked for at the start alone) of each pattern of the package, in calls too.

    One that ends with the text looks back from a place, and is shown a few words before it: readers are tested whole.
    """
    found = pkgutil.walk_packages(context_summarize.__path__, "context_summarize.")
    modules = {info.name: importlib.import_module(info.name) for info in found}
    seen = {id(vars(module)) for module in sys.modules.values() if isinstance(module, ModuleType)}
    for place, module in modules.items():
        uses: dict[str, set[str]] = {}
        for node in ast.walk(ast.parse(Path(str(module.__file__)).read_text("utf-8"))):
            match node:
                case ast.Call(ast.Attribute(ast.Name("re"), name), [ast.Constant(str(text)), *_]) if name != "compile":
                    yield f"{place}:{node.lineno}", re.compile(text), False
                case ast.Attribute(ast.Name(of) | ast.Subscript(ast.Name(of)), name):
                    uses.setdefault(of, set()).add(name)
        for name, value in vars(module).items():
            at_start = bool(uses.get(name)) and uses[name] <= {"match", "fullmatch"}
            for pattern in held(value, seen):
                if not pattern.pattern.endswith(r"\Z"):
                    yield f"{place}.{name}", pattern, at_start


PATTERNS = list(patterns())
SIZE = full(6_000, 3_000)
PAIRS = [*itertools.product([*SIGNS, *WORDS], repeat=2)]
DRAWN = full(8, 4)
"""Pairs of signs that each pattern is shown, other ones for each, and the same in each run."""


def search(pattern: Any, at_start: bool, text: str) -> None:
    if at_start:
        pattern.match(text)
        pattern.fullmatch(text)
    else:
        pattern.findall(text)


@pytest.mark.parametrize(("pattern", "at_start"), [pytest.param(*rest, id=place) for place, *rest in PATTERNS])
def test_every_pattern_is_linear(pattern, at_start):
    """For runs of each sign, and for pairs of them; a difference of some milliseconds is noise."""
    pairs = [*((sign, "a") for sign in some(SIGNS, 4)), *random.Random(repr(pattern.pattern)).sample(PAIRS, DRAWN)]
    assert slow(partial(search, pattern, at_start), pairs, SIZE, 0.004) == []


def test_the_patterns_of_all_rooms_are_found():
    places = " ".join(place for place, *_ in PATTERNS)
    for room in ("notes", "redaction", "recall", "transcript", "tokens", "summaries", "session", "history_file"):
        assert f"context_summarize.{room}" in places


async def life(text: str) -> None:
    """A session in which everybody says this text, to its end: compacted, summarised with it, and read back."""
    provider = ScriptedProvider(then=f"## Standing rules\n- {text[:2_000]}\n## State\nNever done: {text[:2_000]}")
    manager = SummarizingContextManager(keep_recent=2, segment_tokens=512, cache="memory", prefetch=False)
    said = f"Never drop it. {text}"
    rows = [user(said), assistant(said), call("c", command=said), result("c", said), user("Go on."), assistant("Ok.")]
    await feed(manager, rows)
    await manager.get_messages_for_request(6_000, provider)
    await manager.compact()
    await manager.get_messages_for_request(6_000, None)
    for query in (RecallQuery(messages="1-9"), RecallQuery(words=f"drop {text[:300]}")):
        await manager.recall(query)
    await manager.close()


READ = full(8_000, 5_000)
UNITS = [*SIGNS, *WORDS] if LONG else [".", *random.Random(5).sample([*SIGNS, *WORDS], 2)]
"""Units of hostile texts."""


@pytest.mark.parametrize("unit", UNITS, ids=repr)
def test_every_row_of_a_session_is_read_in_linear_time(unit):
    """What users, agents and tools write, what a summary quotes, and what is looked for."""
    pairs = [(unit, random.Random(unit).choice(SIGNS))]
    assert slow(lambda text: asyncio.run(life(f"{text}a")), pairs, 4 * READ, full(3, 1), time.process_time) == []


@pytest.mark.parametrize("unit", UNITS, ids=repr)
def test_every_row_of_a_recording_is_read_in_linear_time(unit, tmp_path):
    def replayed(size: int) -> None:
        text = unit * (size // len(unit)) + "a"
        rows = [user(text), call("c", command=text), result("c", text), assistant(text), user("Go on.")]
        path = store(tmp_path / "session.jsonl", rows * 2)
        for asked in (["replay", path, "--window", 6_000, "--html", tmp_path / "page.html"], ["inspect", path]):
            assert command(*asked).exit_code == 0

    assert not grows(replayed, READ // 2, 2 * READ, full(3, 1)), unit


TELLING = [json.loads(line) for line in (ROOT / "tests/corpora/telling_words.jsonl").read_text("utf-8").splitlines()]
AWAKE = "ghp_ eyJ token= :// curl login bearer -----END PRIVATE KEY----- sk- password Passwort 密码 cookie totp\n"
"""Wakes every rule."""
SEARCHED = full(50_000, 25_000)


@pytest.mark.parametrize("unit", some([*SIGNS, *TELLING], 6), ids=repr)
def test_a_text_is_searched_for_secrets_in_linear_time(unit):
    """All rules together, for a sign or a telling word, and any sign."""
    pairs = [(unit, other) for other in random.Random(unit).sample(SIGNS, full(2, 1))]
    assert slow(lambda text: known(AWAKE + text), pairs, SEARCHED, SEARCHED / 600_000) == []


@pytest.mark.parametrize("unit", ["a\n", "\n", "[m1 ", "  1→x\n", "}\n{\n", "<system-reminder>"], ids=repr)
def test_a_part_is_rendered_in_linear_time(unit):
    """Diffs, repeats, and lines with names that are used later, of a text of one unit."""

    def rendered(size: int) -> None:
        text = unit * (size // len(unit))
        edit = call("a", "Edit", old_string=f"{text}\nx", new_string=f"y\n{text}")
        text_of([user(text), edit, result("a", text), call("b", "Read", path="a_b"), result("b", f"{text}z")])

    assert not grows(rendered, 5_000, 20_000, 0.3)


def test_rows_are_taken_in_in_linear_time():
    """However many results come before the first user message."""
    block = {"type": "tool_result", "tool_use_id": "x", "content": "done"}
    row = user([block, {"type": "text", "text": "next"}])

    def taken(count: int) -> None:
        history = Log(len)
        for _ in range(count):
            history.add(analyse(row))
        history.running_hashes("", len(history.rendered))

    assert not grows(taken, 2_000, 8_000, 0.4)
