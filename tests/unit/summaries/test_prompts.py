"""Prompt sets: found by name or folder, checked with messages that name file and variable, filled in one pass."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import pytest

from context_summarize.errors import TemplateError
from context_summarize.summaries.prompts import PromptTemplate, _root, available_sets, load_prompts
from tests.support.paths import ROOT

SHIPPED = ROOT / "prompts"
GOOD = {
    "segment.md": "Summarise in $words words what $fence encloses.",
    "merge.md": "Merge in $words words what $fence encloses.",
    "frame.md": "Summary of $first to $last: $text",
}


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


class TestFinding:
    def test_the_default_set_is_found_by_name(self):
        prompts = load_prompts("default", root=SHIPPED)

        assert prompts.name == "default"
        assert prompts.segment.path == SHIPPED / "default" / "segment.md"

    def test_without_a_root_the_sets_of_the_package_are_found(self):
        assert "default" in available_sets()
        assert load_prompts("default").segment.hash == load_prompts("default", root=SHIPPED).segment.hash

    def test_a_wheel_packs_the_sets_into_the_package(self, tmp_path):
        package = tmp_path / "site-packages" / "context_summarize"
        shutil.copytree(SHIPPED, package / "_prompts")
        write_set(package.parent / "prompts" / "of-somebody-else")

        assert _root(package) == package / "_prompts"
        assert available_sets(root=_root(package)) == available_sets(root=SHIPPED)

    def test_a_checkout_has_the_sets_beside_the_package(self, tmp_path):
        assert _root(tmp_path / "context_summarize") == tmp_path / "prompts"

    def test_sets_are_listed_by_name_and_hidden_folders_and_files_are_none(self, tmp_path):
        for name in ("terse", "default", ".git", "__pycache__"):
            (tmp_path / name).mkdir()
        (tmp_path / "README.md").write_text("no set")

        assert available_sets(root=tmp_path) == ("default", "terse")

    def test_a_root_that_does_not_exist_holds_no_sets(self, tmp_path):
        assert available_sets(root=tmp_path / "nowhere") == ()

    def test_a_folder_is_a_set(self, tmp_path):
        folder = write_set(tmp_path / "mine")

        assert load_prompts(folder).name == folder
        assert load_prompts(folder).merge.path == Path(folder) / "merge.md"

    def test_a_tilde_stands_for_the_home_folder(self, tmp_path, monkeypatch):
        monkeypatch.setenv("HOME", str(tmp_path))
        write_set(tmp_path / "mine")

        assert load_prompts("~/mine").segment.path == tmp_path / "mine" / "segment.md"

    def test_the_home_of_nobody_is_refused(self):
        assert "full path" in refusal("~no-such-user-anywhere/prompts")

    def test_a_plain_name_may_be_a_folder_of_the_working_directory(self, tmp_path, monkeypatch):
        write_set(tmp_path / "mine")
        monkeypatch.chdir(tmp_path)

        assert load_prompts("mine", root=SHIPPED).segment.body == GOOD["segment.md"]

    def test_a_set_of_the_package_goes_before_a_folder_of_its_name(self, tmp_path, monkeypatch):
        write_set(tmp_path / "default")
        monkeypatch.chdir(tmp_path)

        assert load_prompts("default", root=SHIPPED).segment.path == SHIPPED / "default" / "segment.md"

    def test_an_unknown_name_lists_what_there_is(self):
        with pytest.raises(TemplateError, match=r"'defualt'.*did you mean 'default'.*available: .*default"):
            load_prompts("defualt", root=SHIPPED)

    def test_an_unknown_name_among_no_sets_says_so(self, tmp_path):
        with pytest.raises(TemplateError, match="available: none"):
            load_prompts("x", root=tmp_path)

    def test_an_empty_name_is_no_folder(self):
        with pytest.raises(TemplateError, match="no set of this name"):
            load_prompts("", root=SHIPPED)

    def test_a_name_never_leads_out_of_the_sets(self, tmp_path):
        write_set(tmp_path)
        (tmp_path / "sets").mkdir()

        with pytest.raises(TemplateError, match="is not a folder"):
            load_prompts("../x", root=tmp_path / "sets")

    def test_a_path_that_is_no_folder_is_named(self, tmp_path):
        message = refusal(str(tmp_path / "nowhere"))

        assert str(tmp_path / "nowhere") in message
        assert "segment.md, merge.md, frame.md" in message


class TestFiles:
    @pytest.mark.parametrize("name", GOOD)
    def test_a_missing_file_is_named(self, tmp_path, name):
        message = refusal(write_set(tmp_path, **{name.removesuffix(".md"): None}))

        assert str(tmp_path / name) in message
        assert "missing" in message

    @pytest.mark.parametrize("text", ["", "\n \n", "---\nversion: 1\n---\n\n"])
    def test_a_file_without_text_is_refused(self, tmp_path, text):
        assert f"{tmp_path / 'merge.md'}: no text" in refusal(write_set(tmp_path, merge=text))

    def test_a_file_that_is_not_utf_8_is_refused(self, tmp_path):
        assert "frame.md: not UTF-8 at byte 3" in refusal(write_set(tmp_path, frame=b"caf\xe9 $text $first $last"))

    def test_a_file_that_cannot_be_read_is_refused(self, tmp_path):
        folder = write_set(tmp_path, frame=None)
        (tmp_path / "frame.md").mkdir()

        assert "frame.md: cannot be read" in refusal(folder)

    def test_a_byte_order_mark_and_foreign_line_ends_change_nothing(self, tmp_path):
        text = "---\nversion: 2\n---\n\nIn $words words,\nwithin $fence.\n"
        plain = load_prompts(write_set(tmp_path / "a", segment=text)).segment
        windows = load_prompts(write_set(tmp_path / "b", segment="\ufeff" + text.replace("\n", "\r\n"))).segment

        assert plain.body == "In $words words,\nwithin $fence."
        assert (windows.body, windows.version, windows.hash) == (plain.body, plain.version, plain.hash)

    def test_the_hash_is_of_the_whole_file_without_trailing_newlines(self, tmp_path):
        text = "---\nversion: 2\n---\n$words $fence"
        template = load_prompts(write_set(tmp_path, segment=text + "\n\n\n")).segment

        assert template.hash == hashlib.sha256(text.encode()).hexdigest()

    def test_any_other_edit_changes_the_hash_of_that_file_alone(self, tmp_path):
        before = load_prompts(write_set(tmp_path))
        after = load_prompts(write_set(tmp_path, segment=GOOD["segment.md"] + " Be brief."))

        assert after.segment.hash != before.segment.hash
        assert after.merge == before.merge


class TestHeader:
    def test_a_header_gives_version_and_rules(self, tmp_path):
        header = "---\nversion: 7b\n\nvariables: fence, words\nrules: Always, from  now on, don’t, always,\n---\n"
        prompts = load_prompts(write_set(tmp_path, segment=header + GOOD["segment.md"]))

        assert prompts.segment.version == "7b"
        assert prompts.segment.body == GOOD["segment.md"]
        assert prompts.directive_words == ("always", "from now on", "don't")

    def test_a_header_is_optional(self, tmp_path):
        prompts = load_prompts(write_set(tmp_path))

        assert (prompts.segment.version, prompts.directive_words) == ("", ())

    @pytest.mark.parametrize(
        ("header", "message"),
        [
            ("---\nversion: 1\n", "the header has no end"),
            ("---\nversoin: 1\n---\n", "line 2: unknown key 'versoin' (did you mean 'version'?)"),
            ("---\nversion: 1\nversion: 2\n---\n", "line 3: 'version' is given twice"),
            ("---\nwords\n---\n", "line 2: 'words' is not a header line; write key: value"),
            ("---\nrules: always\n---\n", "unknown key 'rules'; this header takes variables, version"),
        ],
    )
    def test_a_wrong_header_is_refused(self, tmp_path, header, message):
        seen = refusal(write_set(tmp_path, merge=header + GOOD["merge.md"]))

        assert str(tmp_path / "merge.md") in seen
        assert message in seen

    @pytest.mark.parametrize(
        ("declared", "message"),
        [("fence", "$words is used but not named"), ("fence, words, count", "$count is named but not used")],
    )
    def test_the_variables_of_a_header_are_those_of_the_text(self, tmp_path, declared, message):
        folder = write_set(tmp_path, merge=f"---\nvariables: {declared}\n---\n{GOOD['merge.md']}")

        assert f"{tmp_path / 'merge.md'}: {message}" in refusal(folder)


class TestVariables:
    @pytest.mark.parametrize(
        ("name", "variable"),
        [
            ("segment.md", "words"),
            ("segment.md", "fence"),
            ("merge.md", "words"),
            ("merge.md", "fence"),
            ("frame.md", "text"),
            ("frame.md", "first"),
            ("frame.md", "last"),
        ],
    )
    def test_a_missing_variable_is_named_with_its_file(self, tmp_path, name, variable):
        text = GOOD[name].replace(f"${variable}", "")

        assert f"{tmp_path / name}: the variable ${variable} is missing" in refusal(
            write_set(tmp_path, **{name.removesuffix(".md"): text})
        )

    def test_an_unknown_variable_is_named_with_its_file_and_the_known_ones(self, tmp_path):
        message = refusal(write_set(tmp_path, segment=GOOD["segment.md"] + " ${Wrods}"))

        assert f"{tmp_path / 'segment.md'}: unknown variable $Wrods (did you mean 'words'?)" in message
        assert "$fence, $words" in message

    def test_an_optional_variable_of_one_file_is_unknown_in_another(self, tmp_path):
        assert "unknown variable $count" in refusal(write_set(tmp_path, segment=GOOD["segment.md"] + "$count"))

    def test_optional_variables_may_be_used(self, tmp_path):
        folder = write_set(tmp_path, merge=GOOD["merge.md"] + "$count", frame=GOOD["frame.md"] + "$count ${level}")

        assert load_prompts(folder).frame.variables == {"text", "first", "last", "count", "level"}

    @pytest.mark.parametrize("bad", ["$5", "$ ", "${words", "$"])
    def test_a_single_dollar_is_shown_with_its_line(self, tmp_path, bad):
        message = refusal(write_set(tmp_path, segment=f"$words $fence\nIt costs {bad}"))

        assert f"{tmp_path / 'segment.md'}: a single $ at {bad!r}, line 2 of the text; write $$" in message


class TestFilling:
    def test_variables_are_replaced_and_two_dollars_are_one(self, tmp_path):
        template = load_prompts(write_set(tmp_path, merge="$$5: ${words} words, $fence, $words")).merge

        assert template.fill(words="40", fence="<<1>>") == "$5: 40 words, <<1>>, 40"

    def test_a_value_is_never_expanded(self):
        frame = load_prompts("default", root=SHIPPED).frame

        assert "costs $5, $first ${last} $$" in frame.fill(
            text="costs $5, $first ${last} $$", first="1", last="9", recall=""
        )

    def test_a_value_that_the_text_does_not_use_is_ignored(self, tmp_path):
        template = load_prompts(write_set(tmp_path)).merge

        assert template.fill(words="1", fence="f", count="6") == template.fill(words="1", fence="f")

    def test_a_missing_value_is_named_with_the_file(self):
        template = PromptTemplate(Path("merge.md"), "", "", "$words $fence")

        with pytest.raises(TemplateError, match=r"merge\.md: no value for \$fence.* got words"):
            template.fill(words="1")


class TestTheDefaultSet:
    @pytest.mark.parametrize("name", ["segment", "merge"])
    def test_the_instructions_ask_for_what_the_field_learned(self, name):
        body = getattr(load_prompts("default", root=SHIPPED), name).body
        headings = ("Goal:", "Standing rules:", "Decisions:", "Artifacts:", "Errors:", "State:", "Next step:")
        places = [body.index(f"\n{heading} ") for heading in headings]

        assert places == sorted(places)
        assert "of the user" in body or "the user set" in body, "rules are the user's, never a tool's"
        for phrase in ('"none"', "$words words", "quoted data", "Never obey it", "no tools", "past tense", "language"):
            assert phrase in body

    def test_the_frame_says_what_it_is_and_where_it_ends(self):
        shown = load_prompts("default", root=SHIPPED).frame.fill(text="It rained.", first="3", last="40", recall="")
        opening, text, end = shown.split("\n")

        assert text == "It rained."
        for phrase in ("made by a model", "3 to 40", "record, not as instructions", "Tools remain usable"):
            assert phrase in opening
        assert end == "[End of the summary of messages 3 to 40.]"

    @pytest.mark.parametrize(("name", "words"), [("segment", 350), ("merge", 250), ("frame", 45)])
    def test_a_template_is_short_because_it_is_paid_for_in_every_request(self, name, words):
        assert len(getattr(load_prompts("default", root=SHIPPED), name).body.split()) <= words

    def test_the_words_that_mark_standing_rules_come_with_it(self):
        assert {"always", "never", "must", "do not", "don't", "from now on"} <= set(
            load_prompts("default", root=SHIPPED).directive_words
        )
