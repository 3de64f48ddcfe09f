"""The command line with any file: an answer, or one line that says what is wrong; never a traceback."""

from __future__ import annotations

import json
import re

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


@given(command=st.sampled_from(["inspect", "replay", "prompts"]), lines=st.lists(LINES, max_size=6))
@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
def test_every_file_is_read_or_refused_in_words(command, lines, tmp_path):
    """Exit code 0, 1 or 2; a refusal says something; no control character of a recording reaches the terminal."""
    session = tmp_path / "drawn.jsonl"
    session.write_bytes(b"\n".join(lines))
    told = call(command, session)
    assert told.exception is None or isinstance(told.exception, SystemExit), told.exception
    assert told.exit_code in (0, 1, 2), told.output
    assert told.stdout.strip() or told.stderr.strip()
    assert "Traceback" not in told.output
    assert not re.search(r"\x1b\]0;|\x07", told.output)
