"""`context-summarize exam`: asks a model what it still knows of a session, from the request that this module sends."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from dataclasses import replace
from itertools import count as counting
from pathlib import Path
from typing import Any

import click

from context_summarize.cli.common import Progressing, heading, progressing, read_config, remark, sentence, table
from context_summarize.cli.providers import opened, prices_for, provider_options
from context_summarize.cli.recordings import CONFIG_HELP, SESSION_HELP, opened_recording
from context_summarize.config import Config
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

_ABOUT = (
    "Facts of right answers that the answers state. Last request: what this module sends. With recall: the same, and "
    "the tool that reads messages back. Newest rows: as many as have the size of that request. The model wrote the "
    "questions and graded the answers itself, without knowing which view they are from."
)


@click.command("exam", short_help="Ask a model what it still knows of a session.", epilog=SESSION_HELP)
@click.argument("session", metavar="SESSION")
@provider_options(required=True)
@click.option("--config", "settings", multiple=True, metavar="KEY=VALUE", help=CONFIG_HELP)
@click.option("--questions", metavar="FILE.json", help="Questions to ask; a file that is missing is written.")
@click.option("--json", "kept", metavar="FILE.json", help="Everything, written as it comes.  [default: NAME.exam.json]")
@click.option("--timeout", type=click.FloatRange(min=0.1), default=300.0, show_default=True, help="Seconds of a call.")
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
    timeout, yes = asked.pop("timeout"), asked.pop("yes")
    config, recording = read_config(settings), opened_recording(session)
    path = Path(kept or f"{recording.name}{'.offline' * (asked['provider'] == OfflineProvider.name)}.exam.json")
    given = questions_in(Path(questions)) if questions else None
    digest = hashlib.sha256(saved_json(recording.rows).encode("utf-8", "replace")).hexdigest()[:16]
    about = {"session": recording.name, "digest": digest, "settings": list(settings), **asked}
    paper = Paper(path, about)
    if given and paper.data["questions"] not in ([], given):
        raise CommandError(f"{path} has other questions than {questions}; name another file")
    paper.data["questions"] = given or paper.data["questions"]
    exam = _Exam(recording.rows, replace(config, cache=config.cache or str(path.with_suffix(".db"))), asked, paper)
    with progressing() as progress:
        estimate = asyncio.run(exam.estimate(progress))
    remark(f"{estimate} What is paid for is kept in {path}, and not asked for again.", "green")
    if not yes and asked["provider"] != OfflineProvider.name:
        click.confirm("Begin?", abort=True, err=True)
    with progressing() as progress:
        asyncio.run(exam.run(progress, timeout, Path(questions) if questions else None))
    _print(paper)


class _Exam:
    """One run of the command."""

    def __init__(self, rows: list[JsonRow], config: Config, asked: dict[str, Any], paper: Paper) -> None:
        self._rows, self._config, self._asked, self._paper = rows, config, asked, paper
        self._count = TokenCounter().count

    async def estimate(self, progress: Progressing) -> str:
        """Returns a sentence on what a whole exam costs, by a replay without the model."""
        async with opened(**self._asked) as (name, provider):
            budget = await request_budget(self._config, None, provider)
            prices = prices_for(name, provider)
        config, step = replace(self._config, cache="memory"), progress("Estimating", len(self._rows))
        played = await replay(
            self._rows, OfflineProvider(self._count), config=config, token_budget=budget, progress=step
        )
        asked, view = 2 * SPANS + 2, played.requests[-1].tokens if played.requests else 0
        answers = len(ARMS) * asked * 4 // 3  # some take a call of recall before them
        calls = answers + asked + SPANS + 1 + played.provider_calls
        read = (answers + 1) * view + asked * 600 + SPANS * TOKENS + played.provider_input_tokens
        wrote = 200 * calls
        costs = f"some {prices.of_calls(read, wrote):.2f} dollars at list prices of {prices.name}" if prices else ""
        return f"About {calls:,} calls, {read:,} tokens in, {wrote:,} out: {costs or 'dollars unknown'}."

    async def run(self, progress: Progressing, seconds: float, questions: Path | None) -> None:
        """Plays the session, and asks for what the paper lacks."""
        paper, config, clean = self._paper, self._config, build_redactor(self._config.redact) or str
        step = progress("Summarising", len(self._rows))
        async with opened(**self._asked) as (name, provider):
            if isinstance(provider, OfflineProvider):
                provider = OfflineExaminee(self._count, **provider.get_info().defaults)
            played = await replay(self._rows, provider, name=name, config=config, progress=step)
            if played.problem is not None:
                raise CommandError(played.problem)
            model = Model(name, provider, seconds, clean, paper.data["used"])
            async with views_of(self._rows, provider, config, self._count, clean) as views:
                paper.data["tokens"] = views.tokens
                if not paper.data["questions"]:
                    done = _ticking(progress("Writing questions", SPANS + 1))
                    await write_questions(model, paper, views, self._count, done)
                if questions is not None:
                    write_json(questions, paper.data["questions"])
                asked = len(paper.data["questions"])
                await answer_all(model, paper, views, _ticking(progress("Answering", len(ARMS) * asked)))
                await grade_all(model, paper, _ticking(progress("Grading", asked)))
        paper.data["results"] = results(paper)
        paper.save()


def _ticking(bar: Callable[[int], None]) -> Callable[[], None]:
    steps = counting(1)
    return lambda: bar(next(steps))


def _print(paper: Paper) -> None:
    data = paper.data
    heading("What the model still knows", _ABOUT)
    rows = [
        (line["kind"], line["questions"], *(f"{line['facts'][arm]} of {line['of'][arm]}" for arm in ARMS))
        for line in data["results"]
        if line["questions"]
    ]
    if rows:
        table(("Kind", "Questions", *(name.capitalize() for name in ARMS.values())), rows)
    used, recalls = data["used"], [len(one["recall"].get("recalls", ())) for one in data["answers"].values()]
    sentence(
        f"\nThe request has {data['tokens']:,} tokens. recall was called {sum(recalls)} times. Beside the summaries, "
        f"the exam took {used['calls']:,} calls, {used['input']:,} tokens in and {used['output']:,} out."
    )
    if lacking := paper.errors():
        text = f"MISSING: {counted(len(lacking), 'answer')} of the model; the same command asks again"
        remark(f"{text}. The first: {lacking[0]}", "red")
        click.get_current_context().exit(3)
