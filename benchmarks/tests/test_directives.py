"""The bars of `benchmarks/directives.py`: what is found, what is taken back, what is taken by mistake."""

from __future__ import annotations

import pytest

from benchmarks.directives import constraints, false_ones, found, kept, sentences, still_in_force, turns

MADE = sentences()


def test_every_direct_one_is_found() -> None:
    assert len(MADE["direct"]) > 100
    assert [one for one in MADE["direct"] if not found(one)] == []


def test_at_least_95_in_100_paraphrased_ones_are_found() -> None:
    assert len(MADE["paraphrased"]) > 100
    assert sum(bool(found(one)) for one in MADE["paraphrased"]) >= 0.95 * len(MADE["paraphrased"])


def test_ones_in_other_languages_are_found() -> None:
    assert [one for one in MADE["languages"] if not found(one)] == []


def test_what_is_taken_back_is_not_in_force() -> None:
    assert still_in_force(MADE["withdrawn"]) == []


def test_every_constraint_of_compint_is_found_in_each_form() -> None:
    assert len(constraints()) == 60
    assert [one for one in constraints() if not found(one)] == []


def test_at_most_5_in_100_user_turns_are_taken_by_mistake() -> None:
    said = turns(None)
    assert len(false_ones(said)) <= len(said) // 20


@pytest.mark.parametrize("kind", ["direct", "paraphrased"])
async def test_thirty_of_them_outlive_compactions_and_restarts_in_a_window_of_40k(kind: str) -> None:
    said = MADE[kind][:30]
    here, _, _ = await kept(said, 40_000, compactions=4)
    assert here == len(said)
