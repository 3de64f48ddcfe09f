"""The sets that are shipped, what `check` tells of a set, and copies; every shipped set carries a whole replay."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from context_summarize.config import Config
from context_summarize.errors import TemplateError
from context_summarize.messages.rows import JsonRow
from context_summarize.replay import replay
from context_summarize.summaries.prompt_sets import Problem, check_set, copy_set
from context_summarize.summaries.prompts import load_prompts
from context_summarize.testing import ScriptedProvider, tool_session
from context_summarize.tokens.counter import TokenCounter
from tests.support.paths import ROOT

NAMES = ("brief", "coding", "conversation", "default", "small")
SHIPPED = ROOT / "prompts"
every_set = pytest.mark.parametrize("name", NAMES)

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


def write(folder: Path, **files: str) -> str:
    """A copy of the default set with some of its texts replaced; returns its path."""
    copy_set("default", folder)
    for name, text in files.items():
        (folder / f"{name}.md").write_text(text, encoding="utf-8")
    return str(folder)


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


class TestTheShippedSets:
    def test_nothing_is_wrong_with_them(self):
        assert {name: check_set(name) for name in NAMES} == {name: [] for name in NAMES}

    @every_set
    def test_both_instructions_ask_for_the_same_headings_in_the_same_order(self, name):
        prompts = load_prompts(name)

        for body in (prompts.segment.body, prompts.merge.body):
            assert re.findall(r"(?m)^([A-Z][a-z]+(?: [a-z]+)?): ", body) == HEADINGS[name]

    @every_set
    def test_the_instructions_hold_what_every_set_must_say(self, name):
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
    def test_the_frame_says_what_it_is_and_where_it_ends(self, name):
        opening, text, end = (
            load_prompts(name).frame.fill(text="It rained.", first="3", last="40", recall="").split("\n")
        )

        assert text == "It rained."
        for phrase in ("3 to 40", "by a model", "by code", "record", "not", "instructions", "Tools remain usable"):
            assert phrase in opening
        assert end.startswith("[End of ")
        assert end.endswith("3 to 40.]")

    @every_set
    def test_it_is_short_because_it_is_paid_for_in_every_request(self, name):
        prompts = load_prompts(name)

        assert len(prompts.segment.body.split()) <= WORDS[name]
        assert len(prompts.merge.body.split()) < len(prompts.segment.body.split())
        assert len(prompts.frame.body.split()) <= 60


class TestReplayed:
    @every_set
    async def test_a_whole_replay_passes_every_check_with_summaries_written_to_its_prompts(self, name):
        """Segments and merges; the instructions are the set's, and every summary is taken."""
        counter = TokenCounter()
        await counter.load()
        provider = ScriptedProvider(then=f"Goal: {name} was asked for. State: done.", context_window=8_000)
        config = Config(prompts=name, keep_recent=4, summary_share=0.02)

        result = await replay(tool_session(60, size=900), provider, config=config)

        assert result.failed is None
        assert len(result.compactions) >= 3
        assert sum(line.fallbacks for line in result.compactions) == 0
        assert sum(line.merged for line in result.compactions) >= 1
        prompts = load_prompts(name)
        opened = {opening(str(request.messages[0].content)) for request in provider.requests}
        assert opened == {opening(prompts.segment.body), opening(prompts.merge.body.replace("$count", "2"))}
        framed = [row["content"] for row in result.last_view if is_summary(row)]
        first_words = prompts.frame.body.split("$")[0]
        assert framed
        assert all(text.startswith(first_words) and "[End of" in text for text in framed)


def opening(text: str) -> str:
    return text.split("\n")[0]


def is_summary(row: JsonRow) -> bool:
    return "key" in (row.get("metadata") or {})


class TestChecking:
    def test_every_problem_of_every_file_is_told_and_not_only_the_first(self, tmp_path):
        folder = write(
            tmp_path / "mine",
            segment="---\nversion: 2\n---\n$fence $wrods $also",
            frame="---\nversoin: 1\n---\n$text",
        )
        (tmp_path / "mine" / "merge.md").unlink()

        problems = check_set(folder)

        told = [(problem.file, problem.text.removeprefix(f"{tmp_path}/mine/{problem.file}")) for problem in problems]
        assert [(file, text.split(";")[0]) for file, text in told] == [
            ("segment.md", ": unknown variable $also"),
            ("segment.md", ": unknown variable $wrods (did you mean 'words'?)"),
            ("segment.md", ": the variable $words is missing"),
            ("merge.md", ": missing"),
            ("frame.md", ", line 2: unknown key 'versoin' (did you mean 'version'?)"),
        ]

    def test_the_first_problem_is_the_one_that_a_session_would_stop_at(self, tmp_path):
        folder = write(tmp_path / "mine", merge="$words costs $5", frame="$txt")

        with pytest.raises(TemplateError) as caught:
            load_prompts(folder)

        assert check_set(folder)[0] == Problem("merge.md", str(caught.value))

    def test_a_set_that_does_not_exist_is_one_problem(self):
        [problem] = check_set("defualt")

        assert problem.file == ""
        assert "did you mean 'default'?" in problem.text

    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(
        st.lists(st.sampled_from(["---", "version: 1", "variables: fence, words", "$words", "$fence", "$x", "$", "$$",
                                  "rules: a", "", "text"]), max_size=7)
    )  # fmt: skip
    def test_a_set_without_problems_is_one_that_loads_and_the_other_way_round(self, tmp_path, lines):
        folder = tmp_path / "set"
        if not folder.exists():
            write(folder)
        (folder / "merge.md").write_text("\n".join(lines), encoding="utf-8")

        stops_at = []
        try:
            load_prompts(str(folder))
        except TemplateError as error:
            stops_at.append(Problem("merge.md", str(error)))
        assert check_set(str(folder))[:1] == stops_at

    @pytest.mark.parametrize("lost", ["---\n", "---\nversion: 1\n"])
    def test_a_header_that_has_lost_its_first_line_is_not_sent_as_prompt(self, tmp_path, lost):
        text = (SHIPPED / "default" / "segment.md").read_text("utf-8").removeprefix(lost)

        [problem] = check_set(write(tmp_path / "mine", segment=text))

        assert "segment.md: the header has no beginning; open the file with a line ---" in problem.text

    def test_a_rule_across_a_text_without_a_header_is_no_header(self, tmp_path):
        text = "In $words words:\n---\nwhat $fence encloses."

        assert check_set(write(tmp_path / "mine", merge=text)) == []


class TestCopying:
    @every_set
    def test_a_copy_is_the_same_set_under_another_path(self, name, tmp_path):
        """Byte for byte, so that the copy finds the summaries of the original."""
        folder = copy_set(name, tmp_path / "new" / "mine")

        assert folder == tmp_path / "new" / "mine"
        assert files_of(folder) == files_of(SHIPPED / name)
        assert load_prompts(str(folder)).segment.hash == load_prompts(name).segment.hash

    @pytest.mark.parametrize("there", ["folder", "file"])
    def test_what_exists_is_left_as_it_is(self, tmp_path, there):
        target = tmp_path / "mine"
        target.mkdir() if there == "folder" else target.write_text("precious")

        with pytest.raises(TemplateError, match="exists and is left unchanged"):
            copy_set("default", target)

        assert target.is_dir() and not list(target.iterdir()) if there == "folder" else target.read_text() == "precious"

    def test_a_folder_that_cannot_be_made_is_named_with_the_reason(self, tmp_path):
        (tmp_path / "file").write_text("")

        with pytest.raises(TemplateError, match=r"file/mine: the set cannot be written there \(Not a directory\)"):
            copy_set("default", tmp_path / "file" / "mine")

    def test_a_damaged_set_is_not_copied(self, tmp_path):
        folder = write(tmp_path / "mine", frame="no variables")

        with pytest.raises(TemplateError, match="is missing"):
            copy_set(folder, tmp_path / "other")

        assert not (tmp_path / "other").exists()
