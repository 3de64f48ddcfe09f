"""Long texts are searched in windows: a secret is found wherever it stands in them, as in a short text."""

from __future__ import annotations

import random

import pytest

from tests.support.secrets import key_block, known, make

LENGTH = 150_000
WINDOW = 64_000
FILLER = "so it was. "


def within(at: int, secret: str) -> tuple[str, str]:
    """Words before and after a secret that begins at this place of a long text."""
    words = FILLER * (LENGTH // len(FILLER))
    before = words[: max(0, at - 1)] + "\n" * (at > 0)
    return before, "\n" + words[at + len(secret) :]


def _token() -> str:
    return make("glp|at-{A20}", random.Random(1))


def test_a_secret_at_the_edge_of_a_window_becomes_one_mark() -> None:
    """Wherever the edge cuts it, and where it ends or begins right at it."""
    token = _token()
    for edge in (0, WINDOW, LENGTH):
        for from_edge in (-26, -13, -1, 0):
            before, after = within(max(0, edge + from_edge), token)
            assert known(before + token + after) == before + "[redacted: GitLab token]" + after


@pytest.mark.parametrize(("begins", "lines"), [(0, 700), (WINDOW - 300, 200), (WINDOW - 40, 700), (LENGTH, 700)])
def test_a_key_that_is_longer_than_what_a_window_shows_is_found_whole(begins: int, lines: int) -> None:
    """Up to 45,000 characters; what follows it stays."""
    key = "\n".join(key_block(random.Random(lines), lines))
    before, after = within(begins, "")

    assert known(before + key + after) == before + "[redacted: private key]" + after
