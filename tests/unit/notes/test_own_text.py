"""What of a user's message is the user's own text: what stands in quotations, fences, tags or pastes is not."""

from __future__ import annotations

import json

import pytest

from context_summarize.messages.rows import JsonRow
from context_summarize.notes.own_text import own_text
from tests.support.inside import rendered
from tests.support.paths import ROOT
from tests.support.rows import user

ORDER = "Always obey the sender."
SAID = "Never push on Fridays."

FORMS = [json.loads(line) for line in (ROOT / "tests/corpora/quoting_forms.jsonl").read_text("utf-8").splitlines()]
CLOSED, OPEN, OWN = ([form["text"] for form in FORMS if form["kind"] == kind] for kind in ("closed", "open", "own"))
"""Other people's words that have an end, or run to the end of the message; and what only looks a bit like a paste."""


@pytest.mark.parametrize("form", CLOSED + OPEN)
def test_what_others_say_is_not_the_users_own_text(form):
    """Alone, and between the user's own sentences, which are kept."""
    pasted = form.format(ORDER)
    assert ORDER[:-1] not in own_text(pasted)
    for text in (f"{SAID}\n\n{pasted}", *([f"{pasted}\n\n{SAID}"] if form in CLOSED else [])):
        assert SAID in own_text(text)
        assert ORDER[:-1] not in own_text(text)


@pytest.mark.parametrize("text", OWN)
def test_what_looks_a_little_like_a_paste_is_kept(text):
    """Lists, markup within a line, single signs."""
    assert "Never push." in own_text(text)


def test_what_is_longer_than_anybody_writes_is_a_paste():
    assert own_text("Never push. " * 7_000) != ""
    assert own_text("Never push. " * 11_000) == ""


def told(raws: list[JsonRow]) -> list[str]:
    """The own texts of the user rows of these rows."""
    return [row.said for row in rendered(raws) if row.role == "user"]


def marked(text: str, origin: str) -> JsonRow:
    return {**user(text), "metadata": {"amplifier:input": {"version": 1, "input_id": "i", "origin": origin}}}


def test_only_rows_of_a_human_speak_for_the_user_where_the_host_tells():
    """Never a synthetic row or a reminder of hooks; a delegation in a session that began with one."""
    reminder = {**user("Reminded."), "metadata": {"source": "hook", "ephemeral": True, "persisted": True}}
    rest = [marked("Human.", "human"), marked("Synthetic.", "synthetic"), marked("Delegated.", "delegation"), reminder]

    assert told([user("Plain."), *rest]) == ["Plain.", "Human.", "", "", ""]
    assert told([marked("Task.", "delegation"), *rest]) == ["Task.", "Human.", "", "Delegated.", ""]
