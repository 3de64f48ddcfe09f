"""Plays a session while a large model writes the summaries, through files; then shuffles and scores answers.

    python -m benchmarks.by_hand play ROWS.jsonl WORK [--window 40000] [--config JSON] [--serve PORT]
    python -m benchmarks.by_hand shuffle QUESTIONS.json SHEET.json ARM=ANSWERS.json …
    python -m benchmarks.by_hand score QUESTIONS.json SHEET.json GRADES.json ARM=ANSWERS.json …
    python -m benchmarks.by_hand table benchmarks/hand/entire-6d9f76bd01e9.json

ROWS.jsonl holds a row in Amplifier's form a line. `play` looks each summary up in WORK/answers/KEY.txt and writes the
missing ones into WORK/todo-N.txt; answer them there, and play again, until it says that none is missing: parts first,
then the merges of them. WORK/request.txt is then the last request as the model gets it, WORK/newest.txt the newest rows
of equal size, WORK/history.txt everything. `--serve` answers the tool `recall` on loopback meanwhile:
`curl -s localhost:PORT -d '{"words": "…"}'`.

Five people, and none of them twice. One writes the summaries, part by part and blind to all else. One reads the whole
session and writes the questions, each with the facts that a right answer states. One answers each arm, from that
arm's request alone. Two grade the shuffled sheet, without the arms' names. Everybody is asked what hindered them.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import random
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from amplifier_core.message_models import ChatRequest, Message

from benchmarks.tokens import Row, text_of
from context_summarize import SummarizingContextManager
from context_summarize.recall.tools import RecallTool
from context_summarize.testing import ScriptedProvider

_FILE = 90_000
"""Characters of one file with parts, as far as a part does not take more."""
_DELIMITER = re.compile(r"=== transcript [0-9a-f]+ ===")


class ByHand:
    """The summariser: it reads its answers from files, and notes which are missing.

    Args:
        work: the folder with `answers`.
    """

    def __init__(self, work: Path) -> None:
        self._answers, self.missing = work / "answers", dict[str, tuple[str, str]]()
        """Each missing one's instruction and text, by key."""
        self._answers.mkdir(parents=True, exist_ok=True)

    def answer(self, request: ChatRequest) -> str:
        """Returns the summary that was written for a request; else words of its text, which void the run."""
        instruction, *rest = [_said(message) for message in request.messages]
        body = "\n\n".join(rest)
        key = hashlib.sha256(f"{instruction}\n{body}".encode()).hexdigest()[:12]
        file = self._answers / f"{key}.txt"
        if file.exists():
            return file.read_text("utf-8").strip()
        if "PENDING" not in body:  # else it merges what is not written yet
            self.missing[key] = (instruction, body)
        words = body.split()
        return " ".join(["PENDING", *words[:: max(1, len(words) // 180)]])

    def write_missing(self, work: Path) -> int:
        """Writes what is missing into files; an instruction stands once, before its parts. Returns the files."""
        for file in work.glob("todo-*.txt"):
            file.unlink()
        parts = defaultdict[str, list[str]](list)
        for key, (instruction, body) in self.missing.items():
            head = f"######## PART: write its summary to {self._answers / key}.txt ########"
            parts[_DELIMITER.sub("=== transcript … ===", instruction)].append(f"{head}\n{body}\n\n")
        files = [""]
        for instruction, texts in parts.items():
            head = f"######## INSTRUCTION for the parts below ########\n{instruction}\n\n"
            files[-1] += head
            for text in texts:
                if len(files[-1]) + len(text) > _FILE and files[-1] != head:
                    files.append(head)
                files[-1] += text
        for at, text in enumerate(files, 1):
            (work / f"todo-{at}.txt").write_text(text, "utf-8")
        return len(files)


def _said(message: Message) -> str:
    content = message.content
    return content if isinstance(content, str) else "\n".join(getattr(block, "text", "") for block in content)


async def play(rows: Sequence[Row], work: Path, window: int, config: Mapping[str, Any], port: int | None) -> str:
    """Plays a session as a host does; returns a line that says what is missing, or what was written."""
    by_hand, context = ByHand(work), SummarizingContextManager(config={"cache": "memory", **config})
    provider = ScriptedProvider(then=by_hand.answer, context_window=window)
    for row in rows:
        if row["role"] == "assistant":
            await context.get_messages_for_request(provider=provider)
            await context.settle()
        await context.add_message(dict(row))
    request = await context.get_messages_for_request(provider=provider)
    if by_hand.missing:
        return f"{len(by_hand.missing)} summaries are missing: see todo-1.txt to todo-{by_hand.write_missing(work)}.txt"
    texts, left = [_shown(row) for row in rows], sum(len(_shown(row)) for row in request)
    newest = list[str]()
    while len(newest) < len(texts) and (left := left - len(texts[-1 - len(newest)])) >= 0:
        newest.insert(0, texts[-1 - len(newest)])
    for name, shown in (("request", map(_shown, request)), ("newest", newest), ("history", texts)):
        (work / f"{name}.txt").write_text("\n\n".join(shown), "utf-8")
    if port is not None:
        await _serve(RecallTool(lambda: context), port)
    return (
        f"nothing is missing: {len(rows)} rows, {sum(map(len, map(_shown, request))) // 4:,} tokens in the last request"
    )


def _shown(row: Mapping[str, Any]) -> str:
    calls = [f"call {call['tool']}({json.dumps(call['arguments'])})" for call in row.get("tool_calls") or ()]
    return "\n".join([f"=== {row['role']}", text_of(dict(row)), *calls])


async def _serve(tool: RecallTool, port: int) -> None:
    async def one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        size = re.search(r"content-length: (\d+)", head)
        result = await tool.execute(json.loads(await reader.readexactly(int(size[1]) if size else 0)))
        writer.write(f"HTTP/1.0 200 OK\r\n\r\n{result.output if result.success else result.error}\n".encode())
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(one, "127.0.0.1", port) as server:
        await server.serve_forever()


def shuffled(questions: Sequence[Mapping[str, Any]], arms: Mapping[str, Mapping[str, str]]) -> list[dict[str, Any]]:
    """Returns the sheet for the graders: each answer with its question and facts, without its arm.

    Args:
        arms: each arm's answers, by the question's id.
    """
    sheet = [
        {"question": one["question"], "facts": one["facts"], "answer": answers.get(str(one["id"]), "")}
        for one in questions
        for answers in arms.values()
    ]
    random.Random(len(sheet)).shuffle(sheet)
    return [{"number": number, **entry} for number, entry in enumerate(sheet)]


def scores(
    questions: Sequence[Mapping[str, Any]],
    arms: Mapping[str, Mapping[str, str]],
    sheet: Sequence[Mapping[str, Any]],
    grades: Mapping[str, float],
) -> dict[str, dict[str, float]]:
    """Returns for each arm the mean grade of each kind of question, and of all.

    Args:
        grades: 1, 0.5 or 0 for each number of the sheet.
    """
    graded = {(entry["question"], entry["answer"]): grades[str(entry["number"])] for entry in sheet}
    found = defaultdict[str, dict[str, list[float]]](lambda: defaultdict(list))
    for arm, answers in arms.items():
        for one in questions:
            grade = graded[one["question"], answers.get(str(one["id"]), "")]
            found[arm][one["kind"]].append(grade)
            found[arm]["all"].append(grade)
    return {arm: {kind: fmean(values) for kind, values in kinds.items()} for arm, kinds in found.items()}


def table(kept: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    """Returns for each arm the right answers by kind, and of all, of a kept exam; of several grades the mean counts."""
    found = defaultdict[str, dict[str, float]](lambda: defaultdict(float))
    for one in kept["questions"]:
        for arm, grades in one["grades"].items():
            for kind in (one["kind"], "all"):
                found[arm][kind] += fmean(grades)
    return found


def _read(path: Path) -> Any:
    return json.loads(path.read_text("utf-8"))


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs one of the three commands."""
    parser = argparse.ArgumentParser(description="by hand: play, shuffle, score")
    commands = parser.add_subparsers(dest="command", required=True)
    player = commands.add_parser("play")
    player.add_argument("rows", type=Path)
    player.add_argument("work", type=Path)
    player.add_argument("--window", type=int, default=40_000)
    player.add_argument("--config", type=json.loads, default={})
    player.add_argument("--serve", type=int, metavar="PORT")
    for name, files in (("shuffle", ("questions", "sheet")), ("score", ("questions", "sheet", "grades"))):
        command = commands.add_parser(name)
        for file in files:
            command.add_argument(file, type=Path)
        command.add_argument("arms", nargs="+", metavar="ARM=ANSWERS")
    commands.add_parser("table").add_argument("kept", type=Path)
    given = parser.parse_args(arguments)
    if given.command == "table":
        for arm, kinds in table(_read(given.kept)).items():
            print(arm, "  ".join(f"{kind} {right:.1f}" for kind, right in kinds.items()))
        return
    if given.command == "play":
        rows = [json.loads(line) for line in given.rows.read_text("utf-8").splitlines()]
        print(asyncio.run(play(rows, given.work, given.window, given.config, given.serve)))
        return
    questions = _read(given.questions)
    arms = {arm: _read(Path(path)) for arm, path in (one.split("=", 1) for one in given.arms)}
    if given.command == "shuffle":
        given.sheet.write_text(json.dumps(shuffled(questions, arms), indent=1, ensure_ascii=False), "utf-8")
        return
    for arm, kinds in scores(questions, arms, _read(given.sheet), _read(given.grades)).items():
        print(arm, "  ".join(f"{kind} {share:.0%}" for kind, share in kinds.items()))


if __name__ == "__main__":
    main()
