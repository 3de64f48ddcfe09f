"""Passwords and other secrets that a word in some language names, and sentences and values that stay."""

from __future__ import annotations

import json
import re

import pytest

from tests.support.paths import ROOT
from tests.support.secrets import known


def _lines(name: str) -> list[str]:
    lines = (ROOT / "tests" / "corpora" / name).read_text("utf-8").splitlines()
    return [re.sub(r"\A(?:[a-z]{2}|--): ", "", line).replace("⏎", "\n") for line in lines]


def _within(text: str, depth: int) -> str:
    """JSON text within JSON text, so deep."""
    return _within(json.dumps({"out": text, "n": depth}), depth - 1) if depth else text


def _without(text: str, depth: int) -> str:
    return _without(json.loads(text)["out"], depth - 1) if depth else text


@pytest.mark.parametrize("depth", [0, 1, 3, 5])
@pytest.mark.parametrize(("name", "most"), [("secrets_by_language.txt", 7), ("strong_secrets.txt", 0)])
def test_a_named_secret_and_nothing_else_goes_as_deep_as_it_is_in_json(name, most, depth):
    """Every strong one, and all but one in twenty of those that may look like words."""
    forms, wrong = _lines(name), []
    for form in forms:
        clean = known(_within(re.sub("[⟦⟧]", "", form), depth))
        inner = _without(clean, depth)
        if re.split(r"\[redacted: [\w ]*\]", inner) != re.split("⟦.*?⟧", form):
            wrong.append((form, inner))
        assert known(clean) == clean

    assert len(forms) >= max(40, 20 * most)
    assert len(wrong) <= most, wrong


@pytest.mark.parametrize("name", ["harmless_by_language.txt", "ordinary_values.txt", "harmless_texts.txt"])
def test_harmless_texts_and_ordinary_values_stay(name):
    lines = _lines(name)
    touched = [text for text in lines if known(text) != text or known(json.dumps(text)) != json.dumps(text)]

    assert len(lines) >= 48
    assert touched == []


@pytest.mark.parametrize("sign", [",", ";", "\t", " | "])
def test_a_column_of_passwords_goes_whole_from_the_longest_table(sign):
    head = [sign.join(("host", "password", "port")), *(["---|---|---"] if "|" in sign else [])]
    rows = [sign.join((f"db{at}", "maple", "5432")) for at in range(6_000)]
    clean = known("\n".join([*head, *rows, "", "the maple is a tree"]))

    assert clean.count("[redacted: password]") == 6_000
    assert clean.count("maple") == 1
