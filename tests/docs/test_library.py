"""The page on loops of one's own: its loops are those of the example, which runs; so does its capability for agents."""

from __future__ import annotations

import re
import runpy
import threading
from itertools import chain, pairwise
from typing import Any

from context_summarize.testing import ScriptedProvider
from tests.support.pages import blocks
from tests.support.paths import ROOT

EXAMPLE = ROOT / "examples" / "library.py"


def _blocks(language: str) -> list[str]:
    return [text for page, text in blocks(language) if page.name == "library.md"]


def test_both_loops_of_the_example_compact_and_no_server_refuses_a_request_of_theirs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(EXAMPLE.parent)
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    openai, anthropic = capsys.readouterr().out.splitlines()
    assert list(tmp_path.iterdir()) == []
    for line, name in ((openai, "OpenAI"), (anthropic, "Anthropic")):
        messages, requests, compactions, calls, failed = map(int, re.findall(r"\d+", line))
        assert line.startswith(name)
        assert (messages, requests, failed) == (1 + 30 * 4, 60, 0)
        assert min(compactions, calls) > 0


def test_the_loops_of_the_page_are_those_of_the_example():
    whole = EXAMPLE.read_text("utf-8")
    [loop] = [text for text in _blocks("python") if "client." in text]
    head, *functions = loop.strip().split("\n\n\n")
    assert [function in whole for function in functions] == [True, True]
    imported = set(re.findall(r"\w+", " ".join(re.findall(r"import (.+)", whole))))
    assert set(re.findall(r"\w+", " ".join(re.findall(r"import (.+)", head)))) <= imported
    [excerpts] = _blocks("py")
    function = {line.strip() for line in whole.split("async def with_anthropic")[1].splitlines()}
    assert {line.strip() for line in excerpts.splitlines() if line.strip() and not line.startswith("#")} <= function


def test_the_recipe_for_a_synchronous_loop_sends_summaries_that_its_client_wrote():
    [recipe] = [text for text in _blocks("python") if "asyncio.Runner" in text]
    there: dict[str, Any] = {}
    exec(recipe, there)
    requests: list[Any] = []

    def send(rows, max_tokens):
        if threading.current_thread() is threading.main_thread():
            requests.append(rows)
            return "It is on its way. " * 60
        return "Goal: the user asks for orders."

    there["synchronous"](send, [f"question {number} " * 100 for number in range(40)])
    assert len(requests) == 40
    assert any("Goal: the user asks for orders." in row["content"] for row in requests[-1])


async def test_the_capability_for_pydantic_ai_sends_whole_pairs_that_fit_and_keeps_the_history():
    # Here, as it takes a second in each process that collects this file.
    from pydantic_ai import Agent, ModelResponse, TextPart, ToolCallPart, ToolReturnPart, UserPromptPart
    from pydantic_ai.models.function import FunctionModel

    from examples.capability import Summarizing

    requests: list[list[Any]] = []

    def answer(messages, info):
        requests.append(messages)
        if isinstance(messages[-1].parts[-1], UserPromptPart):
            calls = [ToolCallPart("lookup", {"order": "x"}, f"c{len(requests)}-{at}") for at in range(2)]
            return ModelResponse([TextPart("Let me look."), *calls])
        return ModelResponse([TextPart("It is on its way.")])

    provider = ScriptedProvider(context_window=8_000, max_output_tokens=1_000)
    agent = Agent(FunctionModel(answer), system_prompt="Be kind.", capabilities=[Summarizing(provider)])

    @agent.tool_plain
    def lookup(order: str) -> str:
        return f"{order}: " + ", ".join(f"stop {at} {at * 7 % 31} kg" for at in range(60))

    history: list[Any] = []
    for number in range(20):
        history = (await agent.run(f"Where is {number}?", message_history=history)).all_messages()

    assert len(history) == 20 * 4
    assert provider.calls > 0
    assert len(requests[-1]) < 50
    for asked, answered in chain.from_iterable(map(pairwise, requests)):
        calls = [part.tool_call_id for part in asked.parts if isinstance(part, ToolCallPart)]
        results = [part.tool_call_id for part in answered.parts if isinstance(part, ToolReturnPart)]
        assert sorted(results) == sorted(calls)
