"""The sessions whose requests and events are recorded, each made by a seed: nothing in them depends on the machine."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from benchmarks.sessions import recorded
from context_summarize.testing import JsonRow
from tests.support.rows import assistant, calls, result, user

_NAMES = ("parser", "loader", "cache", "session", "router", "schema", "worker", "ledger", "index", "report", "widget")
_VERBS = ("read", "write", "merge", "split", "check", "load", "store", "resolve", "render", "drop", "count", "follow")
_CORRECTIONS = (
    "No, leave {path} as it is: the {name} has to stay compatible with version {number}.",
    "From now on never edit {path} without running its tests. The limit is {number}, not {more}.",
    "That is wrong. Please always name the {name} in the message, and use port {number}.",
    "Actually, I meant {path}. The other file belongs to another team; do not touch it.",
)


@dataclass(frozen=True, kw_only=True)
class Script:
    """What is played: a request comes before every assistant row, and one at the end."""

    rows: list[JsonRow]
    window: int
    settings: dict[str, Any] = field(default_factory=dict)
    steps: Mapping[int, tuple[Any, ...]] = field(default_factory=dict)
    """Before the row of this number: a method of the manager, and its arguments."""
    restarts_at: int | None = None
    """Before this row the session ends, and goes on with a new manager over the same store."""
    pause: float | None = None
    """Virtual seconds between requests, with a summariser that is slow and now and then refuses; None = until idle."""
    short: int | None = None
    """Requests of a shorter play, which has a compaction as well; None = all."""
    tells_usage: bool = False
    """The provider says how large each request was."""


def scripts() -> dict[str, Script]:
    """All sessions by name."""
    desk, coding = recorded(), list(_coding(random.Random(1)))
    steered: dict[int, tuple[Any, ...]] = {90: ("pin", [2, 5]), 200: ("preview",), 201: ("compact", "failing tests")}
    steered |= {202: ("undo",), 300: ("unpin",)}
    return {
        "desk-8k": Script(rows=desk, window=8_000, short=200),
        "desk-40k": Script(rows=desk, window=40_000, short=250),
        "desk-200k": Script(rows=recorded(2)[:1_800], window=200_000, short=500),
        "coding": Script(
            rows=coding, window=40_000, settings={"prompts": "coding"}, steps=steered, tells_usage=True, short=140
        ),
        "long-turn": Script(rows=list(_long_turn(random.Random(2))), window=30_000, pause=4.0, short=90),
        "resumed": Script(rows=desk[:700], window=12_000, restarts_at=401),
    }


def _coding(draw: random.Random) -> Iterator[JsonRow]:
    """Turns of an agent that reads, edits and tests, several calls at once now and then, and a user who corrects it."""
    yield {"role": "system", "content": "You are a coding agent. Work in small steps, and run the tests after each."}
    for turn in range(45):
        name, path = draw.choice(_NAMES), _path(draw)
        told = f"Please make the {name} {draw.choice(_VERBS)} each {draw.choice(_NAMES)} once; begin with {path}."
        if turn % 3 == 2:
            number = draw.randrange(1_000, 9_000)
            told = draw.choice(_CORRECTIONS).format(path=path, name=name, number=number, more=number + 7)
        yield user(told)
        for step in range(draw.randint(2, 5)):
            yield from _step(draw, f"{turn:02d}_{step}", path)
        yield assistant(f"The {name} is done: {path} has a new check; see DEV-{draw.randrange(10_000)}.")


def _long_turn(draw: random.Random) -> Iterator[JsonRow]:
    """One message of the user, and some 200 calls."""
    yield user("Go through the whole project and mend every failing test. Never change a public name. Budget: 4 hours.")
    for step in range(150):
        yield from _step(draw, f"{step:03d}", _path(draw))
    yield assistant("All tests pass.")


def _step(draw: random.Random, at: str, path: str) -> Iterator[JsonRow]:
    """An assistant row with one to three calls, and their results."""
    made = [_call(draw, path if number == 0 else _path(draw)) for number in range(draw.choice((1, 1, 1, 2, 3)))]
    given = [(f"call_{at}_{number}", name, arguments) for number, (name, arguments, _) in enumerate(made)]
    yield calls(*given, text=draw.choice(("", f"Let me look at {path}.", "I edit it now, then I run the tests.")))
    for (call_id, name, _), (_, _, text) in zip(given, made, strict=True):
        yield result(call_id, text, name)


def _call(draw: random.Random, path: str) -> tuple[str, dict[str, Any], str]:
    """Name, arguments and result of a call. Texts have 300 to 5,000 tokens, and edits a line."""
    code = [_line(draw) for _ in range(int(draw.choice((25, 40, 60, 90, 150, 400)) * draw.uniform(0.9, 1.1)))]
    match draw.randrange(5):
        case 0 | 1:
            return "read_file", {"file_path": path}, "\n".join(f"{at:5}\t{line}" for at, line in enumerate(code, 1))
        case 2:
            edit = {"file_path": path, "old_string": "\n".join(code[:3]), "new_string": "\n".join(code[3:9])}
            return "edit_file", edit, f"{path} was edited: 1 replacement."
        case 3:
            failed = [f"FAILED {path}::test_{draw.choice(_VERBS)}_{at} - assert {at} == {at * 3}" for at in range(20)]
            told = f"{len(failed)} failed, {draw.randrange(900)} passed in {draw.randrange(90)}.25s"
            return "bash", {"command": f"pytest -q {path}"}, "\n".join([*failed, *code[:60], told])
        case _:
            found = [f"{_path(draw)}:{draw.randrange(400)}: {line.strip()}" for line in code]
            return "grep", {"pattern": draw.choice(_NAMES), "path": "src"}, "\n".join(found)


def _path(draw: random.Random) -> str:
    return f"src/{draw.choice(_NAMES)}/{draw.choice(_VERBS)}_{draw.choice(_NAMES)}.py"


def _line(draw: random.Random) -> str:
    verb, name, number = draw.choice(_VERBS), draw.choice(_NAMES), draw.randrange(10_000)
    forms = (
        f"    {name}_{verb} = self.{verb}_{draw.choice(_NAMES)}({number})",
        f"def {verb}_{name}(value: int = {number}) -> None:",
        f"    # The {name} must {verb} what it was given.",
        f"    raise ValueError('{name} {number} was not found')",
        "",
    )
    return draw.choice(forms)
