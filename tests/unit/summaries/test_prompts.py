"""Prompt sets: found by name or folder, checked with messages that name file and variable, filled in one pass."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import pytest

from context_summarize.errors import TemplateError
from context_summarize.summaries.prompts import available_sets, load_prompts, sets_of
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

        assert sets_of(package) == package / "_prompts"
        assert available_sets(root=sets_of(package)) == available_sets(root=SHIPPED)

    def test_a_tilde_stands_for_the_home_folder(self, tmp_path, monkeypatch):
        monkeypatch.setenv("HOME", str(tmp_path))
        write_set(tmp_path / "mine")

        assert load_prompts("~/mine").segment.path == tmp_path / "mine" / "segment.md"

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

    def test_a_name_never_leads_out_of_the_sets(self, tmp_path):
        write_set(tmp_path)
        (tmp_path / "sets").mkdir()

        with pytest.raises(TemplateError, match="is not a folder"):
            load_prompts("../x", root=tmp_path / "sets")


class TestFiles:
    def test_a_missing_file_is_named(self, tmp_path):
        message = refusal(write_set(tmp_path, merge=None))

        assert str(tmp_path / "merge.md") in message
        assert "missing" in message

    @pytest.mark.parametrize("text", ["", "\n \n", "---\nversion: 1\n---\n\n"])
    def test_a_file_without_text_is_refused(self, tmp_path, text):
        assert f"{tmp_path / 'merge.md'}: no text" in refusal(write_set(tmp_path, merge=text))

    def test_a_file_that_is_not_utf_8_is_refused(self, tmp_path):
        assert "frame.md: not UTF-8 at byte 3" in refusal(write_set(tmp_path, frame=b"caf\xe9 $text $first $last"))

    def test_a_byte_order_mark_and_foreign_line_ends_change_nothing(self, tmp_path):
        text = "---\nversion: 2\n---\n\nIn $words words,\nwithin $fence.\n"
        plain = load_prompts(write_set(tmp_path / "a", segment=text)).segment
        windows = load_prompts(write_set(tmp_path / "b", segment="\ufeff" + text.replace("\n", "\r\n"))).segment

        assert plain.body == "In $words words,\nwithin $fence."
        assert (windows.body, windows.header, windows.hash) == (plain.body, plain.header, plain.hash)

    def test_the_hash_is_of_the_whole_file_without_trailing_newlines(self, tmp_path):
        text = "---\nversion: 2\n---\n$words $fence"
        template = load_prompts(write_set(tmp_path, segment=text + "\n\n\n")).segment

        assert template.hash == hashlib.sha256(text.encode()).hexdigest()


class TestHeader:
    def test_a_header_gives_version_and_rules(self, tmp_path):
        header = "---\nversion: 7b\n\nvariables: fence, words\nrules: Always, from  now on, don’t, always,\n---\n"
        prompts = load_prompts(write_set(tmp_path, segment=header + GOOD["segment.md"]))

        assert prompts.segment.header["version"] == "7b"
        assert prompts.segment.body == GOOD["segment.md"]
        assert prompts.rule_signs == ("always", "from now on", "don't")

    @pytest.mark.parametrize(
        ("header", "message"),
        [
            ("---\nversion: 1\n", "line 3: 'Merge in $words words what $fence encloses.' is no line of a header"),
            ("---\nversion: 1\n---x: 1\n", "unknown key '---x'"),
            ("---\nversoin: 1\n---\n", "line 2: unknown key 'versoin' (did you mean 'version'?)"),
            ("---\nwords\n---\n", "line 2: 'words' is no line of a header; write key: value"),
            ("---\nrules: always\n---\n", "unknown key 'rules'; this header takes variables, version"),
        ],
    )
    def test_a_wrong_header_is_refused(self, tmp_path, header, message):
        seen = refusal(write_set(tmp_path, merge=header + GOOD["merge.md"]))

        assert str(tmp_path / "merge.md") in seen
        assert message in seen


class TestVariables:
    @pytest.mark.parametrize(
        ("name", "variable"), [("segment.md", "words"), ("merge.md", "fence"), ("frame.md", "text")]
    )
    def test_a_missing_variable_is_named_with_its_file(self, tmp_path, name, variable):
        folder = write_set(tmp_path, **{name.removesuffix(".md"): GOOD[name].replace(f"${variable}", "")})

        assert f"{tmp_path / name}: the variable ${variable} is missing" in refusal(folder)

    def test_an_unknown_variable_is_named_with_its_file_and_the_known_ones(self, tmp_path):
        message = refusal(write_set(tmp_path, segment=GOOD["segment.md"] + " ${Wrods}"))

        assert f"{tmp_path / 'segment.md'}: unknown variable $Wrods (did you mean 'words'?)" in message
        assert "$fence, $words" in message

    @pytest.mark.parametrize("bad", ["$5", "${words"])
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
