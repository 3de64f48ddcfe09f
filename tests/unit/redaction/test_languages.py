"""Passwords and other secrets that a word in some language names, and sentences and values that stay."""

from __future__ import annotations

import json
import re

import pytest

from tests.support.paths import ROOT
from tests.support.secrets import known

CORPORA = ROOT / "tests" / "corpora"


def _lines(name: str) -> list[str]:
    return [line.replace("⏎", "\n") for line in (CORPORA / name).read_text("utf-8").splitlines()]


def _within(text: str, depth: int) -> str:
    """JSON text within JSON text, so deep."""
    return _within(json.dumps({"out": text, "n": depth}), depth - 1) if depth else text


def _without(text: str, depth: int) -> str:
    return _without(json.loads(text)["out"], depth - 1) if depth else text


@pytest.mark.parametrize("depth", [0, 1, 3, 5])
def test_nine_of_ten_secrets_go_as_deep_as_they_stand_in_json(depth):
    forms = [line[4:] for line in _lines("secrets_by_language.txt")]
    kept = []
    for form in forms:
        text = _within(re.sub("[⟦⟧]", "", form), depth)
        clean = known(text)
        inner = _without(clean, depth)
        kept += [form for secret in re.findall("⟦(.*?)⟧", form) if secret in inner]
        assert known(clean) == clean

    assert len(forms) >= 120
    assert len(kept) <= len(forms) / 10, kept


def test_of_a_secret_nothing_is_left_and_nothing_else_goes():
    forms = [line[4:] for line in _lines("secrets_by_language.txt")]
    parts = [(known(re.sub("[⟦⟧]", "", form)), re.split("⟦.*?⟧", form)) for form in forms]
    inexact = [clean for clean, around in parts if re.split(r"\[redacted: [\w ]*\]", clean) != around]

    assert len(inexact) <= len(forms) / 20, inexact


@pytest.mark.parametrize("name", ["harmless_by_language.txt", "ordinary_values.txt", "harmless_texts.txt"])
def test_harmless_texts_and_ordinary_values_stay(name):
    lines = [line[4:] if name == "harmless_by_language.txt" else line for line in _lines(name)]
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
