"""Prompt sets: the shipped ones; found by name or folder, checked with messages that name file and variable, filled."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from context_summarize.config import Config
from context_summarize.errors import TemplateError
from context_summarize.replay import replay
from context_summarize.summaries.prompts import load_prompts
from context_summarize.testing import ScriptedProvider
from context_summarize.tokens.counter import TokenCounter
from tests.support.rows import tool_session

GOOD = {
    "segment.md": "Summarise in $words words what $fence encloses.",
    "merge.md": "Merge in $words words what $fence encloses.",
}


def write_set(folder: Path, **files: str | bytes | None) -> str:
    """A good set with some files replaced (`segment=…`) or, with None, left out; returns the folder's path."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in GOOD.items():
        wanted = files.get(name.removesuffix(".md"), text)
        if wanted is not None:
            (folder / name).write_bytes(wanted if isinstance(wanted, bytes) else wanted.encode())
    return str(folder)


every_set = pytest.mark.parametrize("name", ["default", "coding", "conversation", "brief", "small"])


@every_set
def test_a_set_asks_for_the_same_headings_twice(name):
    prompts = load_prompts(name)
    headings, again = (re.findall(r"(?m)^([A-Z][a-z ]+): ", part.body) for part in (prompts.segment, prompts.merge))
    assert headings == again
    assert len(headings) >= 4
    assert prompts.rules_heading in headings


@every_set
async def test_a_whole_replay_is_summarised_with_its_prompts(name):
    """Segments and merges; the instructions are the set's, and every summary is taken."""
    counter = TokenCounter()
    await counter.load()
    provider = ScriptedProvider(then=f"Goal: {name} was asked for. State: done.", context_window=8_000)
    config = Config(prompts=name, keep_recent=4, summary_share=0.02)
    result = await replay(tool_session(40, size=900), provider, config=config)
    assert result.failed is None
    assert sum(line.event["fallbacks"] for line in result.compactions) == 0
    assert sum(line.event["merged"] for line in result.compactions) >= 1
    prompts = load_prompts(name)
    asked = {str(request.messages[0].content).split("\n")[0] for request in provider.requests}
    bodies = (prompts.segment.body, prompts.merge.body.replace("$count", "2"))
    assert asked == {body.split("\n")[0] for body in bodies}


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ({"merge": None}, "merge.md: missing; a prompt set needs segment.md, merge.md"),
        ({"merge": ""}, "merge.md: no text in it"),
        ({"merge": "---\nversion: 1\n---\n\n"}, "merge.md: no text in it"),
        ({"merge": b"caf\xe9 $words $fence"}, "merge.md: not UTF-8 at byte 3"),
        ({"merge": "---\nversion: 1\n"}, "merge.md: the header has no end"),
        ({"merge": "---\nversoin: 1\n---\n"}, "line 2: unknown key 'versoin' (did you mean 'version'?)"),
        ({"merge": "---\nwords\n---\n"}, "line 2: unknown key 'words'; write key: value"),
        ({"merge": "---\nrule: a\n---\n"}, "key: value; this header takes rules, rules_heading, variables, version"),
        ({"merge": "$words"}, "merge.md: the variable $fence is missing; this file needs $fence, $words"),
        ({"segment": "$words $fence ${Wrods}"}, "segment.md: unknown variable $Wrods (did you mean 'words'?)"),
        ({"segment": "$words $fence\nIt costs $5"}, "a single $ at '$5', line 2 of the text; write $$"),
    ],
)
def test_a_set_that_cannot_be_used_is_refused_with_file_and_remedy(tmp_path, files, told):
    with pytest.raises(TemplateError) as caught:
        load_prompts(write_set(tmp_path, **files))
    assert told in str(caught.value)
    assert str(tmp_path) in str(caught.value)
