"""How many secrets go, and how much of harmless texts and of code goes with them; `pytest -s` prints the figures."""

from __future__ import annotations

import base64
import csv
import io
import json
import random
import re
from collections.abc import Callable

import pytest

from tests.support.effort import full
from tests.support.paths import corpus
from tests.support.secrets import known, make


def _encoded(found: re.Match[str]) -> str:
    return base64.b64encode(found[1].replace("|", "").encode()).decode()


def forms() -> list[tuple[str, str, list[str]]]:
    """(line, text, secrets of the text) for each form; a secret is drawn."""
    made = []
    for line in corpus("secrets_of_2026.txt"):
        drawn, secrets = random.Random(line), []
        pieces = re.split("⟦(.*?)⟧", line.partition(": ")[2].replace("⏎", "\n"))
        for at, piece in enumerate(pieces):
            pieces[at] = re.sub(
                "<b64:(.*?)>", _encoded, make(piece, drawn) if at % 2 or ("{" in piece and "|" not in piece) else piece
            )
            secrets += [pieces[at]] if at % 2 else []
        made.append((line, "".join(pieces).replace("PRIV|ATE", "PRIV" + "ATE"), secrets))
    return made


NAMES = ("maple", "Winter24!", "sommer", "hunter2", "blue river", "pa,ss;wd|x", "4711")


def _csv(sign: str, head: str, rows: int) -> tuple[str, list[str]]:
    out = io.StringIO()
    writer = csv.writer(out, delimiter=sign, lineterminator="\n")
    writer.writerow(["id", "host", head, "note"])
    secrets = [f"{NAMES[at % 7]}q{at}" for at in range(rows)]
    writer.writerows((at, f"db{at}.example", secret, "seen in spring") for at, secret in enumerate(secrets))
    return out.getvalue(), secrets


def _markdown(head: str, rows: int) -> tuple[str, list[str]]:
    secrets = [f"{NAMES[at % 5]}q{at}" for at in range(rows)]
    lines = [f"| {at} | {secret} | in use |" for at, secret in enumerate(secrets)]
    return "\n".join([f"| id | {head} | state |", "|---|---|---|", *lines]), secrets


def _json(head: str, rows: int) -> tuple[str, list[str]]:
    secrets = [f"{NAMES[at % 5]}q{at}" for at in range(rows)]
    return json.dumps([{"id": at, head: secret, "n": None} for at, secret in enumerate(secrets)]), secrets


TABLES: dict[str, Callable[[], tuple[str, list[str]]]] = {
    "csv 10": lambda: _csv(",", "password", 10),
    "csv 300": lambda: _csv(",", "passwd", 300),
    "csv of many rows": lambda: _csv(",", "password", full(20_000, 2_000)),
    "semicolons": lambda: _csv(";", "Passwort", full(2_000, 400)),
    "tabs": lambda: _csv("\t", "contraseña", full(2_000, 400)),
    "bars": lambda: _markdown("Password", full(2_000, 400)),
    "bars in Russian": lambda: _markdown("Пароль", 100),
    "JSON": lambda: _json("password", full(2_000, 400)),
    "JSON in Chinese": lambda: _json("密码", 100),
    "a table in JSON": lambda: (json.dumps({"out": (table := _csv(",", "password", 200))[0]}), table[1]),
}


def leaks(text: str, secrets: list[str]) -> bool:
    """Whether one of the secrets, or a long piece of one, is left."""
    return any(secret in text or (len(secret) > 30 and secret[8:28] in text) for secret in secrets)


def rate(name: str, hits: list[str], count: int) -> float:
    """Prints how many of so many were hit, and which; returns the share."""
    print(f"{name}: {len(hits)} of {count} ({len(hits) / count:.1%})", *hits, sep="\n    ")  # noqa: T201
    return len(hits) / count


def test_at_least_19_of_20_forms_of_secrets_go():
    """Of providers, twelve languages, configuration, and tables of 10 to 20,000 rows."""
    made = forms()
    left = [line for line, text, secrets in made if leaks(known(text), secrets)]
    tables = {name: table() for name, table in TABLES.items()}
    left += [name for name, (text, secrets) in tables.items() if leaks(known(text), secrets)]

    assert len(made) + len(TABLES) >= 210
    assert rate("secrets that stay", left, len(made) + len(TABLES)) <= 0.05


@pytest.mark.parametrize(
    "name", ["harmless_by_language.txt", "ordinary_values.txt", "harmless_code.txt", "harmless_texts.txt"]
)
def test_at_most_one_harmless_line_in_20_is_hit(name):
    lines = [re.sub(r"\A(?:[a-z]{2}|--): ", "", line).replace("⏎", "\n") for line in corpus(name)]
    hit = [known(line) for line in lines if known(line) != line or known(json.dumps(line)) != json.dumps(line)]

    assert len(lines) >= 48
    assert rate(name, hit, len(lines)) <= 0.05
