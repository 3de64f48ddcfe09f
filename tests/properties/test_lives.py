"""Random lives of a session: what hosts do in any order and at once, with restarts, each of which shows an equal view.

A life that fails prints its seed: `CONTEXT_SUMMARIZE_LIFE=<seed> pytest tests/properties/test_lives.py` repeats it.
"""

from __future__ import annotations

import random
from pathlib import Path

from tests.support.effort import LIFE, LIVES
from tests.support.life import Life
from tests.support.virtual import run_virtually

STEPS = 60


def lived(seed: int, folder: Path) -> None:
    """One life in virtual time.

    Raises:
        AssertionError: a rule is broken; its notes name the seed and what was done.
    """
    lives = list[Life]()

    async def live() -> None:
        lives.append(Life(seed, folder))
        await lives[0].live(STEPS)

    try:
        run_virtually(live())
    except BaseException as error:
        done = "; ".join(lives[0].log) if lives else "nothing"
        error.add_note(f"seed {seed}; repeat it with CONTEXT_SUMMARIZE_LIFE={seed}; done: {done}")
        raise


def test_whatever_a_host_does_the_rules_hold_and_a_resume_shows_an_equal_view(tmp_path: Path) -> None:
    """Fresh lives at each run."""
    for seed in [int(LIFE)] if LIFE else random.SystemRandom().sample(range(10**9), LIVES):
        lived(seed, tmp_path)
