"""The command line with any file and any options: an answer, or one line that says what is wrong; never a traceback."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.properties.strategies import JSON
from tests.support.cli import call

ROLES = st.sampled_from(["user", "assistant", "tool", "system", "developer", "robot", "", None, 5])
ROWS = st.fixed_dictionaries(
    {"role": ROLES, "content": JSON | st.just("\x1b[2J\x1b]0;owned\x07 <b>[red]text[/red]")},
    optional={"tool_calls": JSON, "tool_call_id": JSON, "name": JSON, "metadata": JSON},
)
LINES = st.one_of(
    ROWS.map(lambda row: json.dumps(row).encode()),
    JSON.map(lambda value: json.dumps(value).encode()),
    st.binary(max_size=40),
    st.sampled_from([b"", b"[" * 5_000, b'{"role": "user"', b"NaN", b"\xef\xbb\xbf{}", b"\x00", b"9" * 5_000]),
)
VALUES = st.sampled_from(
    ["0", "-1", "1", "6000", "1e9", "9" * 30, "nan", "", "x", "\u0660", "true", "[]", "keep_recent"]
)
SETTINGS = st.sampled_from(["keep_recent", "summary_share", "max_tokens", "redact", "cache", "nonsense", "", "prompts"])
OPTIONS = st.one_of(
    st.tuples(st.just("--window"), VALUES),
    st.tuples(st.just("--config"), st.builds("{}={}".format, SETTINGS, VALUES)),
    st.tuples(st.sampled_from(["--show-view", "--nonsense", "-x", "--help", "--"])),
)


@given(
    command=st.sampled_from(["inspect", "replay", "prompts", ""]),
    lines=st.lists(LINES, max_size=6),
    options=st.lists(OPTIONS, max_size=3),
)
@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
def test_every_call_of_the_command_answers_or_says_in_words_what_is_wrong(command, lines, options, tmp_path):
    """Exit code 0, 1 or 2; a refusal says something; no control character of a recording reaches the terminal."""
    session = tmp_path / "drawn.jsonl"
    session.write_bytes(b"\n".join(lines))
    given_options: list[Any] = [word for option in options for word in option]
    told = call(*([command] if command else []), session, *given_options)
    assert told.exception is None or isinstance(told.exception, SystemExit), told.exception
    assert told.exit_code in (0, 1, 2), told.output
    if told.exit_code == 2:
        assert told.stderr.strip()
    assert "Traceback" not in told.output
    assert "\x1b]0;" not in told.output
    assert "\x07" not in told.output
