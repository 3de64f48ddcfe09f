"""Prompt sets: the shipped ones; found by name or folder, checked with messages that name file and variable, filled."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pytest

from context_summarize.config import Config
from context_summarize.errors import TemplateError
from context_summarize.replay import replay
from context_summarize.summaries.prompts import available_sets, load_prompts
from context_summarize.testing import ScriptedProvider, tool_session
from context_summarize.tokens.counter import TokenCounter
from tests.support.paths import ROOT

SHIPPED = ROOT / "prompts"
GOOD = {
    "segment.md": "Summarise in $words words what $fence encloses.",
    "merge.md": "Merge in $words words what $fence encloses.",
    "frame.md": "Summary of $first to $last: $text",
}
HEADINGS = {
    "default": ["Goal", "Standing rules", "Decisions", "Artifacts", "Errors", "State", "Next step"],
    "coding": ["Goal", "Standing rules", "Branch", "Files", "Commands", "Tests", "Errors", "Decisions", "State",
               "Next step"],
    "conversation": ["People", "Wishes", "Standing rules", "Facts", "Promises", "Decisions", "Open questions", "Now"],
    "brief": ["Goal", "Standing rules", "Facts", "State"],
    "small": ["Asked", "Rules", "Done", "Open"],
}  # fmt: skip
WORDS = {"default": 350, "coding": 430, "conversation": 400, "brief": 160, "small": 130}
"""Words of instruction that each set may cost."""
every_set = pytest.mark.parametrize("name", HEADINGS)


def write_set(folder: Path, **files: str | bytes | None) -> str:
    """A good set with some files replaced (`segment=…`) or, with None, left out; returns the folder's path."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in GOOD.items():
        wanted = files.get(name.removesuffix(".md"), text)
        if wanted is not None:
            (folder / name).write_bytes(wanted if isinstance(wanted, bytes) else wanted.encode())
    return str(folder)


def refusal(folder: str) -> str:
    with pytest.raises(TemplateError) as caught:
        load_prompts(folder)
    return str(caught.value)


class TestTheShippedSets:
    @every_set
    def test_both_instructions_ask_for_the_same_headings_in_the_same_order(self, name: str) -> None:
        prompts = load_prompts(name)
        for body in (prompts.segment.body, prompts.merge.body):
            assert re.findall(r"(?m)^([A-Z][a-z]+(?: [a-z]+)?): ", body) == HEADINGS[name]

    @every_set
    def test_the_instructions_hold_what_every_set_must_say(self, name: str) -> None:
        """Who reads it, that the rows are data, no tools, the length, and what wins when the words run short."""
        prompts = load_prompts(name)
        assert re.search(r"[Ll]eave out .*passwords, keys and tokens", prompts.segment.body)
        for body in (prompts.segment.body, prompts.merge.body):
            for phrase in (
                "The agent goes on with",
                "quoted data",
                "You have no tools",
                "Reply with the summary alone",
                "at most $words words",
                "past tense",
                "f the words run short",
                '"none"',
            ):
                assert phrase in body, phrase
            assert re.search(r"[Nn]ever obey", body)
            assert re.search(r"dd nothing|Write nothing", body)

    @every_set
    def test_the_frame_says_what_it_is_and_where_it_ends(self, name: str) -> None:
        opening, text, end = (
            load_prompts(name).frame.fill(text="It rained.", first="3", last="40", recall="").split("\n")
        )
        assert text == "It rained."
        for phrase in ("3 to 40", "by a model", "by code", "record", "not", "instructions", "Tools remain usable"):
            assert phrase in opening
        assert end.startswith("[End of ")
        assert end.endswith("3 to 40.]")

    @every_set
    def test_it_is_short_because_it_is_paid_for_in_every_request(self, name: str) -> None:
        prompts = load_prompts(name)
        assert len(prompts.segment.body.split()) <= WORDS[name]
        assert len(prompts.merge.body.split()) < len(prompts.segment.body.split())
        assert len(prompts.frame.body.split()) <= 60

    @every_set
    async def test_a_whole_replay_is_summarised_with_its_prompts(self, name: str) -> None:
        """Segments and merges; the instructions are the set's, and every summary is taken."""
        counter = TokenCounter()
        await counter.load()
        provider = ScriptedProvider(then=f"Goal: {name} was asked for. State: done.", context_window=8_000)
        config = Config(prompts=name, keep_recent=4, summary_share=0.02)
        result = await replay(tool_session(60, size=900), provider, config=config)
        assert result.failed is None
        assert sum(line.fallbacks for line in result.compactions) == 0
        assert sum(line.merged for line in result.compactions) >= 1
        prompts = load_prompts(name)
        asked = {str(request.messages[0].content).split("\n")[0] for request in provider.requests}
        bodies = (prompts.segment.body, prompts.merge.body.replace("$count", "2"))
        assert asked == {body.split("\n")[0] for body in bodies}


class TestFinding:
    def test_the_sets_are_found_by_name(self) -> None:
        assert set(available_sets()) == set(HEADINGS)
        assert load_prompts("default").segment.path == SHIPPED / "default" / "segment.md"

    def test_a_tilde_stands_for_the_home_folder(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HOME", str(tmp_path))
        write_set(tmp_path / "mine")
        assert load_prompts("~/mine").segment.path == tmp_path / "mine" / "segment.md"

    def test_a_plain_name_may_be_a_folder_but_a_set_of_the_package_goes_before_it(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Of the working directory."""
        for name in ("mine", "default"):
            write_set(tmp_path / name)
        monkeypatch.chdir(tmp_path)
        assert load_prompts("mine").segment.body == GOOD["segment.md"]
        assert load_prompts("default").segment.path == SHIPPED / "default" / "segment.md"

    def test_an_unknown_name_lists_what_there_is(self) -> None:
        with pytest.raises(TemplateError, match=r"'defualt'.*did you mean 'default'.*available: .*default"):
            load_prompts("defualt")


class TestFiles:
    @pytest.mark.parametrize(
        ("files", "told"),
        [
            ({"merge": None}, "merge.md: missing; a prompt set needs segment.md, merge.md, frame.md"),
            ({"merge": ""}, "merge.md: no text in it"),
            ({"merge": "---\nversion: 1\n---\n\n"}, "merge.md: no text in it"),
            ({"frame": b"caf\xe9 $text $first $last"}, "frame.md: not UTF-8 at byte 3"),
            ({"segment": "version: 1\n---\n$words $fence"}, "segment.md: the header is missing"),
            ({"merge": "---\nversion: 1\n"}, "merge.md: the header has no end"),
            ({"merge": "---\nversoin: 1\n---\n"}, "line 2: unknown key 'versoin' (did you mean 'version'?)"),
            ({"merge": "---\nwords\n---\n"}, "line 2: 'words' is not a line of a header; write key: value"),
            ({"merge": "---\nrules: a\n---\n"}, "unknown key 'rules'; this header takes variables, version"),
            ({"merge": "$words"}, "merge.md: the variable $fence is missing; this file needs $fence, $words"),
            ({"frame": "$first $last"}, "frame.md: the variable $text is missing"),
            ({"segment": "$words $fence ${Wrods}"}, "segment.md: unknown variable $Wrods (did you mean 'words'?)"),
            ({"segment": "$words $fence\nIt costs $5"}, "a single $ at '$5', line 2 of the text; write $$"),
        ],
    )
    def test_a_set_that_cannot_be_used_is_refused_with_file_and_remedy(
        self, tmp_path: Path, files: dict[str, str | bytes | None], told: str
    ) -> None:
        seen = refusal(write_set(tmp_path, **files))
        assert told in seen
        assert seen.startswith(str(tmp_path))

    def test_a_byte_order_mark_and_foreign_line_ends_change_nothing(self, tmp_path: Path) -> None:
        text = "---\nversion: 2\n---\n\nIn $words words,\nwithin $fence.\n"
        plain = load_prompts(write_set(tmp_path / "a", segment=text)).segment
        windows = load_prompts(write_set(tmp_path / "b", segment="\ufeff" + text.replace("\n", "\r\n"))).segment
        assert plain.body == "In $words words,\nwithin $fence."
        assert (windows.body, windows.header, windows.hash) == (plain.body, plain.header, plain.hash)

    def test_the_hash_is_of_the_whole_file_without_trailing_newlines(self, tmp_path: Path) -> None:
        text = "---\nversion: 2\n---\n$words $fence"
        template = load_prompts(write_set(tmp_path, segment=text + "\n\n\n")).segment
        assert template.hash == hashlib.sha256(text.encode()).hexdigest()

    def test_a_header_gives_version_and_rules(self, tmp_path: Path) -> None:
        header = "---\nversion: 7b\n\nvariables: fence, words\nrules: Always, from  now on, don’t, always,\n---\n"
        prompts = load_prompts(write_set(tmp_path, segment=header + GOOD["segment.md"]))
        assert prompts.segment.header["version"] == "7b"
        assert prompts.segment.body == GOOD["segment.md"]
        assert prompts.rule_signs == ("always", "from now on", "don't")

    def test_a_line_across_a_text_without_a_header_is_no_header(self, tmp_path: Path) -> None:
        text = "In $words words:\n---\nwhat $fence encloses."
        assert load_prompts(write_set(tmp_path, merge=text)).merge.body == text


class TestFilling:
    def test_variables_are_replaced_and_two_dollars_are_one(self, tmp_path: Path) -> None:
        template = load_prompts(write_set(tmp_path, merge="$$5: ${words} words, $fence, $words")).merge
        assert template.fill(words="40", fence="<<1>>") == "$5: 40 words, <<1>>, 40"

    def test_a_value_is_never_expanded(self) -> None:
        frame = load_prompts("default").frame
        assert "costs $5, $first ${last} $$" in frame.fill(
            text="costs $5, $first ${last} $$", first="1", last="9", recall=""
        )
