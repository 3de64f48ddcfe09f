"""`context-summarize exam`: asks a model what it still knows of a session, from the request that this module sends."""

from __future__ import annotations

import asyncio
import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from context_summarize.cli.common import (
    check_output,
    heading,
    progressing,
    read_config,
    remark,
    sentence,
    table,
)
from context_summarize.cli.providers import opened, prices_for, provider_options
from context_summarize.cli.recordings import CONFIG_HELP, SESSION_HELP, opened_recording
from context_summarize.config import OFFLINE, Config
from context_summarize.errors import CommandError
from context_summarize.exam.answers import answer_all, grade_all, results
from context_summarize.exam.asking import Model
from context_summarize.exam.offline import OfflineExaminee
from context_summarize.exam.paper import Paper, write_json
from context_summarize.exam.questions import SPANS, TOKENS, questions_in, write_questions
from context_summarize.exam.views import ARMS, views_of
from context_summarize.messages.rows import JsonRow, saved_json
from context_summarize.providers.offline import OfflineProvider
from context_summarize.redaction import build_redactor
from context_summarize.replay import replay
from context_summarize.session.windows import request_budget
from context_summarize.tokens.counter import TokenCounter
from context_summarize.transcript.marks import counted

_PIPE = "offline tries the pipe alone: no model is asked, nothing is paid, and the answers mean nothing."
_ABOUT = (
    "How many facts of the right answer the model stated. Last request: it saw what this module sends. With recall: "
    "the same, and the tool that reads messages back. Newest rows: as many as have the size of that request. It wrote "
    "the questions and graded the answers itself, without knowing which view they are from."
)


@click.command("exam", short_help="Ask a model what it still knows of a session.", epilog=SESSION_HELP)
@click.argument("session", metavar="SESSION")
@provider_options(required=True)
@click.option("--config", "settings", multiple=True, metavar="KEY=VALUE", help=CONFIG_HELP)
@click.option("--questions", metavar="FILE.json", help="Questions to ask; a file that is missing is written.")
@click.option("--json", "kept", metavar="FILE.json", help="Everything, written as it comes.  [default: NAME.exam.json]")
@click.option("--yes", is_flag=True, help="Do not ask before it costs something.")
def exam_command(
    session: str,
    settings: tuple[str, ...],
    questions: str | None,
    kept: str | None,
    **asked: Any,
) -> None:
    """Ask a model what it still knows of a session, from the request that this module sends.

    The model writes summaries and questions, answers them from three views of the session, and grades the answers.
    Answers are kept in a file as they come: after Ctrl-C or a failure, the same command goes on.

    Exit status: 0 done, 1 not confirmed, 2 if the session, an option or the model cannot be used, 3 if answers are
    missing, 130 interrupted.
    """
    yes, is_offline = asked.pop("yes"), asked["provider"] == OFFLINE
    config, recording = read_config(settings), opened_recording(session)
    path = Path(kept or f"{recording.name}{'.offline' * is_offline}.exam.json")
    asks = Path(questions) if questions else None
    for file in filter(None, (path, asks)):
        check_output(file, ".json")
    digest = hashlib.sha256(saved_json(recording.rows).encode("utf-8", "replace")).hexdigest()[:16]
    given = questions_in(asks) if asks else None
    paper = Paper(path, {"session": recording.name, "digest": digest, "settings": list(settings), **asked})
    if given:
        if paper.questions not in ([], given):
            raise CommandError(f"{path} has other questions than {questions}; name another file")
        paper.data["questions"] = paper.data["questions"] or {"given": given}
    writer = hashlib.sha256(json.dumps(asked).encode()).hexdigest()[:8]  # another model writes other summaries
    config = replace(config, cache=config.cache or str(path.with_suffix(f".{writer}.db")))
    remark(_PIPE if is_offline else asyncio.run(_estimate(recording.rows, config, asked, path)), "green")
    if not (yes or is_offline):
        click.confirm("Begin?", abort=True, err=True)
    errors = asyncio.run(_examine(recording.rows, config, paper, asked, None if given else asks))
    _print(paper, is_offline=is_offline)
    if errors:
        again = f"MISSING: {counted(len(errors), 'answer')} of the model; the same command asks again. The first: "
        remark(again + errors[0], "red")
        click.get_current_context().exit(3)


async def _estimate(rows: list[JsonRow], config: Config, asked: dict[str, Any], path: Path) -> str:
    """Returns a sentence on what a whole exam costs, by a replay without the model."""
    count = TokenCounter().count
    async with opened(**asked) as (name, provider):
        budget = await request_budget(config, None, provider)
        prices = prices_for(name, provider)
    with progressing() as progress:
        step, config = progress("Estimating", len(rows)), replace(config, cache="memory")
        played = await replay(rows, OfflineProvider(count), config=config, token_budget=budget, progress=step)
    questions, view = 2 * SPANS + 2, played.requests[-1].tokens if played.requests else 0
    answers = len(ARMS) * questions * 4 // 3  # some take a call of recall before them
    calls = answers + questions + SPANS + 1 + played.totals.calls
    read = (answers + 1) * view + questions * 600 + SPANS * TOKENS + played.totals.input_tokens
    wrote = 200 * calls
    costs = f"some {prices.of_calls(read, wrote):.2f} dollars at list prices of {prices.name}" if prices else ""
    about = f"About {calls:,} calls, {read:,} tokens in, {wrote:,} out: {costs or 'dollars unknown'}."
    return f"{about} What is paid for is kept in {path}, and not asked for again."


async def _examine(
    rows: list[JsonRow], config: Config, paper: Paper, asked: dict[str, Any], asks: Path | None
) -> list[str]:
    """Plays the session, and asks for what the paper lacks; new questions are also written into the file `asks`.

    Returns the errors of the calls that were not answered.
    """
    count, clean = TokenCounter().count, build_redactor(config.redact) or str
    async with opened(**asked) as (name, provider):
        if isinstance(provider, OfflineProvider):
            provider = OfflineExaminee(count, **provider.get_info().defaults)
        with progressing() as progress:
            step = progress("Summarising", len(rows))
            played = await replay(rows, provider, name=name, config=config, progress=step)
            if played.problem is not None:
                raise CommandError(played.problem)
            model = Model(name, provider, 2 * config.wait_seconds, clean, paper.data["used"])
            async with views_of(rows, provider, config, count, clean) as views:
                paper.data["tokens"] = views.tokens
                if "given" not in paper.data["questions"]:
                    await write_questions(model, paper, views, count, progress("Writing questions", SPANS + 1))
                if asks is not None:
                    write_json(asks, paper.questions)
                number = len(paper.questions)
                await answer_all(model, paper, views, progress("Answering", len(ARMS) * number))
                await grade_all(model, paper, progress("Grading", number))
    return model.errors


def _print(paper: Paper, *, is_offline: bool) -> None:
    questions, answers, used = paper.questions, paper.data["answers"].values(), paper.data["used"]
    if is_offline:
        parts = f"{len(questions)} questions, {sum(map(len, answers))} answers and {len(paper.data['grades'])} grades"
        sentence(f"\nThe pipe works: {parts} are in {paper.path}.")
        return
    heading("What the model still knows", _ABOUT)
    table(("Question", *(name.capitalize() for name in ARMS.values())), results(paper))
    recalls = sum(len(one["recall"]["recalls"]) for one in answers if "recall" in one)
    sentence(
        f"\nThe request has {paper.data['tokens']:,} tokens. recall was called {recalls} times. Beside the summaries, "
        f"the exam took {used['calls']:,} calls, {used['input']:,} tokens in and {used['output']:,} out. "
        f"Questions, answers and grades are in {paper.path}."
    )
