"""Amplifier's own command line with the foundation bundle: six turns with all that goes wrong in a day.

python -m benchmarks.hosts.command_line [--amplifier FILE] [--windows 200000 100000] [--shapes openai chat-completions]

`amplifier run` is real, with the bundle's prompt, hooks, tools and sub-agents, a process for each turn. A script
replaces the model, on a strict local server, and nothing is sent anywhere else. It reads files with `read_file`, now
and then three at once; in turn 2 a sub-agent reads them; turn 3 is killed; in turn 4 the server refuses a request for
its length; in turn 5 summaries take eight seconds. The modules that Amplifier cannot load are printed first.

Amplifier fetches the modules of the bundle with git, and installs them beside itself. Its home is a new folder.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO

from benchmarks.hosts.server import TOO_LONG, Item, Model, RefusedError, message, serving
from benchmarks.report import Figures, table
from benchmarks.sessions import ROOT
from benchmarks.tokens import count

TURNS, REQUESTS = 6, 36
"""Turns of a session, and requests of each."""
SIDE, KILLED, REFUSED, SLOW = 2, 3, 4, 5
"""Turns in which something happens."""
SLOW_SECONDS = 8.0
SHAPES = {"openai": "provider-openai", "chat-completions": "provider-chat-completions"}
CONTEXTS: Mapping[str, tuple[Sequence[str], Mapping[str, str]]] = {
    "context-summarize": ([f"file://{ROOT}"], {"cache": "{folder}/summaries.db"}),
    "context-simple": ([], {}),
}
"""For each context the bundles beside foundation, which itself mounts context-simple, and the settings."""
COLUMNS = (
    *("window", "shape", "context", "turns failed", "requests", "refused", "faults", "compactions", "breaks"),
    *("cached", "largest", "calls", "waits", "longest wait"),
)
_MARK = re.compile(r"\[(main|side) turn (\d+)\]")
_LEFT_OUT = re.compile(r"^Bundle: ([\w.-]+)$|Failed to activate ([\w-]+):", re.MULTILINE)
_FOUNDATION = "git+https://github.com/microsoft/amplifier-foundation@main"
_PROVIDER = {"api_key": "none", "default_model": "gpt-5", "use_streaming": False, "max_retries": 0, "max_tokens": 4_096}
_HOOK = """
import json
from amplifier_core.models import HookResult
__amplifier_module_type__ = "hook"

async def mount(coordinator, config):
    async def note(event, data):
        with open(config["file"], "a") as file:
            file.write(json.dumps({"event": event, **{key: data.get(key) for key in ("wait_ms", "attempts")}}) + "\\n")
        return HookResult(action="continue")

    own = "context-summarize:summary", "context-summarize:failure"
    for name in ("context:post_compact", "context:compaction", *own):
        coordinator.hooks.register(name, note, name="benchmark")
"""
"""A module of Amplifier that writes a context's events into a file."""


@dataclass(slots=True)
class Talk(Model):
    """One conversation: the user's, or a sub-agent's."""

    is_side: bool = False
    turn: int = 0
    steps: Counter[int] = field(default_factory=Counter)
    """Requests that were answered, by turn."""

    def output(self, number: int) -> Sequence[Item]:
        step = self.steps[self.turn]
        self.steps[self.turn] += 1
        if step >= REQUESTS - 1:
            return [message(f"Turn {self.turn} is done: the files are read.")]
        if self.turn == SIDE and step == 1 and not self.is_side:
            told = {"agent": "self", "instruction": f"[side turn {SIDE}] Read the files and say what they are for."}
            return [_call(number, 0, "delegate", {**told, "context_depth": "none"})]
        chance = random.Random(1_000 * self.turn + step)
        return [_call(number, at, "read_file", _read(chance)) for at in range(3 if step % 6 == 5 else 1)]


@dataclass(slots=True)
class Script:
    """The model of a session: both conversations, and what happens in their turns."""

    window: int
    main: Talk = field(init=False)
    side: Talk = field(init=False)
    process: subprocess.Popen[bytes] | None = None
    """The command that runs now."""

    def __post_init__(self) -> None:
        self.main, self.side = (Talk([], self.window, count, is_side=is_side) for is_side in (False, True))

    def respond(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Answers a request. The newest mark in a message of the user names the conversation."""
        talk = self.main
        if body.get("tools"):
            texts = (json.dumps(item.get("content")) for item in reversed(body["input"]) if item.get("role") == "user")
            mark = next(filter(None, (None if "system-reminder" in text else _MARK.search(text) for text in texts)))
            talk = self.side if mark[1] == "side" else self.main
            talk.turn = int(mark[2])
            half_way = talk is self.main and talk.steps[talk.turn] == REQUESTS // 2
            if half_way and talk.turn == REFUSED and len(talk.too_long) == 0:
                talk.too_long.append(len(talk.requests))
                raise RefusedError(TOO_LONG, "context_length_exceeded")
            if half_way and talk.turn == KILLED and self.process is not None:
                self.process.kill()
        elif self.main.turn == SLOW:
            time.sleep(SLOW_SECONDS)
        return talk.respond(body)


def _call(number: int, at: int, name: str, arguments: Mapping[str, Any]) -> Item:
    id_ = f"call_{number:04d}_{at}_{random.Random(str(arguments)).randrange(10**6):06d}"
    told = {"id": f"fc_{id_}", "call_id": id_, "name": name, "arguments": json.dumps(arguments)}
    return {"type": "function_call", "status": "completed", **told}


def _read(chance: random.Random) -> dict[str, Any]:
    """Returns arguments that read 300 to 5,000 tokens."""
    file = chance.choice(_files())
    return {"file_path": str(file), "offset": chance.randrange(1, 200), "limit": chance.choice((30, 60, 120, 240, 400))}


def _files() -> list[Path]:
    found = sorted(Path(json.__file__).parent.parent.glob("[a-z]*.py"))
    return [file for file in found if file.stat().st_size > 30_000]


def play(amplifier: str, home: Path, window: int, shape: str, context: str) -> Figures:
    """Plays one session, in a folder of its own within the home, and returns its figures."""
    folder, script = home / f"{window}-{shape}-{context}", Script(int(1.1 * window))
    events = _prepare(folder, window, context)
    sessions, failed, name = home / ".amplifier" / "projects", 0, ""
    with serving(script.respond) as address:
        provider = {"module": SHAPES[shape], "config": {**_PROVIDER, "base_url": address, "priority": 1}}
        settings = json.dumps({"config": {"providers": [provider]}})
        (home / ".amplifier" / "settings.yaml").write_text(settings, "utf-8")
        for turn in range(1, TURNS + 1):
            prompt = f"[main turn {turn}] Read the next files and say what they are for."
            chosen = ["--resume", name] if name else ["--bundle", f"file://{folder / 'bundle.md'}"]
            said = folder / f"turn-{turn}.txt"
            command = [amplifier, "run", "--mode", "single", *chosen, prompt]
            with said.open("wb") as out:
                script.process = _started(command, folder / "work", home, out)
                failed += script.process.wait(timeout=1_800) != 0
            if turn == 1:
                name = next(sessions.glob(f"*{folder.name}*/sessions/*")).name
                left_out = {"".join(found) for found in _LEFT_OUT.findall(said.read_text("utf-8"))}
                print(f"left out by Amplifier: {', '.join(sorted(left_out)) or 'nothing'}", file=sys.stderr)
    (folder / "requests.json").write_text(json.dumps([script.main.requests, script.side.requests]), "utf-8")
    return {"window": window, "shape": shape, "context": context, "turns failed": failed, **_figures(script, events)}


def _prepare(folder: Path, window: int, context: str) -> Path:
    """Writes the bundle and the hook of a session, and returns the file into which the hook writes events."""
    hook, events = folder / "hook", folder / "events.jsonl"
    beside, own = CONTEXTS[context]
    settings = {"max_tokens": window, **{name: value.format(folder=folder) for name, value in own.items()}}
    bundle = {
        "bundle": {"name": "bench", "version": "1.0.0"},
        "includes": [{"bundle": address} for address in (_FOUNDATION, *beside)],
        "session": {"context": {"module": context, "config": settings}},
        "hooks": [{"module": "hooks-bench", "source": f"file://{hook}", "config": {"file": str(events)}}],
    }
    texts = {events: "", folder / "bundle.md": f"---\n{json.dumps(bundle)}\n---\n"}
    for path, text in {**texts, hook / "amplifier_module_hooks_bench" / "__init__.py": _HOOK}.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    (folder / "work").mkdir()
    return events


def _started(command: Sequence[str], work: Path, home: Path, out: BinaryIO) -> subprocess.Popen[bytes]:
    beside = Path(command[0]).parent
    own = {"HOME": str(home), "VIRTUAL_ENV": str(beside.parent), "PATH": f"{beside}:{os.environ['PATH']}"}
    environment = {**os.environ, **own}
    return subprocess.Popen(command, cwd=work, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=out)


def _lasting(request: str) -> int:
    """Counts the characters of a request without the reminders at its end, which hooks write anew each time."""
    parts = request.split("\0")
    while "<system-reminder" in parts[-1]:
        parts.pop()
    return len("\0".join(parts))


def _figures(script: Script, events: Path) -> Figures:
    told = [json.loads(line) for line in events.read_text("utf-8").splitlines()]
    waits = [one["wait_ms"] / 1_000 for one in told if (one["wait_ms"] or 0) >= 100]
    talks = [(talk, talk.equal()) for talk in (script.main, script.side) if talk.requests]
    later = [(talk, equal, at) for talk, equal in talks for at in range(1, len(equal))]
    return {
        "requests": sum(len(talk.requests) for talk, _ in talks),
        "refused": sum(len(talk.too_long) for talk, _ in talks),
        "faults": sum(len(talk.faults) for talk, _ in talks),
        "compactions": sum(one["event"] == "context:compaction" for one in told),
        "breaks": sum(equal[at] < _lasting(talk.requests[at - 1]) for talk, equal, at in later),
        "cached": sum(equal[at] for _, equal, at in later) / sum(len(talk.requests[at]) for talk, _, at in later),
        "largest": max(talk.largest for talk, _ in talks),
        "calls": sum(one["attempts"] or 0 for one in told),
        "waits": len(waits),
        "longest wait": max(waits, default=0.0),
    }


def main() -> int:
    """Plays all sessions and prints one table."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.hosts.command_line", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--amplifier", default="amplifier", metavar="FILE", help="the command (%(default)s)")
    parser.add_argument("--windows", type=int, nargs="+", default=[200_000, 100_000], help="tokens (%(default)s)")
    parser.add_argument("--shapes", nargs="+", choices=list(SHAPES), default=list(SHAPES))
    parser.add_argument("--contexts", nargs="+", choices=list(CONTEXTS), default=list(CONTEXTS))
    parser.add_argument("--keep", type=Path, metavar="DIR", help="write all files there, and keep them")
    given = parser.parse_args()
    amplifier = shutil.which(given.amplifier)
    if amplifier is None:
        print(
            f"not run: there is no command {given.amplifier!r}; install Amplifier's command line, or name it",
            file=sys.stderr,
        )
        return 0
    with TemporaryDirectory() as folder:
        home = given.keep or Path(folder)
        (home / ".amplifier").mkdir(parents=True, exist_ok=True)
        found = [
            play(amplifier, home, window, shape, context)
            for window in given.windows
            for shape in given.shapes
            for context in given.contexts
        ]
    print(table(found, COLUMNS))
    return 0


if __name__ == "__main__":
    sys.exit(main())
