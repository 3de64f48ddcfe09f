"""Secrets of known formats, and values that a word or a place tells, wherever they stand; and what stays."""

from __future__ import annotations

import base64
import csv
import hashlib
import html
import io
import json
import random
import re
import sysconfig
import textwrap
import urllib.parse
import uuid
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.support.effort import full, some
from tests.support.paths import corpus
from tests.support.secrets import TEMPLATES, key_block, known, make


def _plain(line: str) -> str:
    """A line of a corpus without the language before it."""
    return re.sub(r"\A(?:[a-z]{2}|--): ", "", line).replace("⏎", "\n")


def _within(text: str, depth: int) -> str:
    """JSON text within JSON text, so deep."""
    return _within(json.dumps({"out": text, "n": depth}), depth - 1) if depth else text


def _without(text: str, depth: int) -> str:
    return _without(json.loads(text)["out"], depth - 1) if depth else text


@pytest.mark.parametrize("depth", [0, 1, 3, 5])
@pytest.mark.parametrize(("name", "most"), [("secrets_by_language.txt", 7), ("strong_secrets.txt", 0)])
def test_a_named_secret_and_nothing_else_goes_as_deep_as_it_is_in_json(name, most, depth):
    """Every strong one, and all but one in twenty of those that may look like words."""
    forms, wrong = [_plain(line) for line in corpus(name)], []
    for form in forms:
        clean = known(_within(re.sub("[⟦⟧]", "", form), depth))
        inner = _without(clean, depth)
        if re.split(r"\[redacted: [\w ]*\]", inner) != re.split("⟦.*?⟧", form):
            wrong.append((form, inner))
        assert known(clean) == clean

    assert len(forms) >= max(40, 20 * most)
    assert len(wrong) <= most, wrong


def test_every_format_is_found_in_every_neighbourhood():
    """Tokens are drawn anew for each neighbourhood; `{%}` is where one is percent-encoded."""
    for line in some(corpus("neighbourhoods.txt"), 3):
        name, _, form = line.encode("latin-1", "backslashreplace").decode("unicode_escape").partition(": ")
        drawn = random.Random(name)
        for made in (make(template, drawn) for _, template in TEMPLATES):
            clean = known(form.replace("{}", made).replace("{%}", urllib.parse.quote(made, safe="")))
            assert not any(piece in clean for piece in (made[-12:], made[:16])), (line, made, clean)
            assert "[redacted: " in clean
            assert known(clean) == clean


NUMBERED = (
    "{line}", "{line}\r", "{n:>6}\t{line}", "keys/id_rsa:{n}:{line}", "+{line}", "{line}$",
    "^1a2b3c4d (A. Author 2026-01-02 03:04:05 +0100 {n}) {line}", "2026-01-02T03:04:{n:02}.678Z INFO [main] {line}",
    "\x1b[32m{n}\x1b[0m:{line}",
)  # fmt: skip
"""How tools show the lines of a file."""


def _shown(form: str, lines: list[str]) -> str:
    return "\n".join(form.format(n=at, line=line) for at, line in enumerate(lines, 7))


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


WHOLE: dict[str, Callable[[list[str]], str]] = {
    "one line": lambda lines: " ".join(lines),
    "base64": lambda lines: "client-key-data: " + _encoded("\n".join(lines)),
    "base64 lines": lambda lines: base64.encodebytes("\n".join(lines).encode()).decode(),
    "base64 narrow lines": lambda lines: textwrap.fill(_encoded("\n".join(lines)), 60),
    "base64 of JSON": lambda lines: _encoded(json.dumps({"key": "\n".join(lines)})),
}
BLOCKS: dict[str, Callable[[list[str]], str]] = {
    **{form: partial(_shown, form) for form in NUMBERED},
    "YAML": lambda lines: "key: |\n" + "\n".join("    " + line for line in lines) + "\nother: 1",
    "Python": lambda lines: "KEY = (\n" + "\n".join(f'    "{line}\\n"' for line in lines) + "\n)",
    "JSON": lambda lines: json.dumps({"private_key": "\n".join(lines), "n": 1}),
    "JSON in JSON": lambda lines: json.dumps({"body": json.dumps({"k": "\n".join(lines)})}),
    "numbers in JSON": lambda lines: json.dumps({"out": _shown("{n:>6}\t{line}", lines)}),
    "XML entities": lambda lines: "<k>" + "&#10;".join(lines) + "</k>",
    "percent": lambda lines: "k=" + urllib.parse.quote("\n".join(lines), safe=""),
}


@pytest.mark.parametrize(("kind", "length"), [("RSA ", 49), ("OPENSSH ", 6)])
@pytest.mark.parametrize("name", [*BLOCKS, *WHOLE])
def test_a_private_key_is_found_in_every_neighbourhood(name, kind, length):
    """Keys of RSA with 4,096 bits are longer than other keys."""
    lines = key_block(random.Random(f"{name}{kind}"), length, kind)
    clean = known(f"before\n{(BLOCKS | WHOLE)[name](lines)}\nafter mia_li_3668")

    assert clean.count("[redacted: private key]") == 1
    assert [line for line in lines[1:-1] if line in clean or _encoded(line)[4:-4] in clean] == []
    assert "-----BEGIN" not in clean
    assert clean.startswith("before\n")
    assert clean.endswith("\nafter mia_li_3668")
    assert known(clean) == clean


@pytest.mark.parametrize("name", BLOCKS)
def test_a_private_key_that_is_cut_or_split_over_blocks_is_found(name):
    """Each part of a message is searched alone: a first part without an end, and a last one without a beginning."""
    lines = key_block(random.Random(name), 8)
    whole = BLOCKS[name](lines)
    at = whole.index(lines[4][:30]) if lines[4][:30] in whole else whole.index(lines[4][:4])
    first, last = known(whole[:at]), known(whole[at:])

    assert "[redacted: private key]" in first
    assert "[redacted: private key]" in last
    assert [line for line in lines[1:-1] if line in first or line in last] == []


@pytest.mark.parametrize(
    "split", ["{}\\\n    {}", '"{}"\n    "{}"', "'{}' +\n  '{}'", "{}\n{}", "\x1b[31m{}\x1b[0m{}", "\u200b{}\u200b{}"]
)
def test_a_token_that_is_split_over_lines_is_found_whole(split):
    drawn = random.Random(split)
    for kind, form in TEMPLATES:
        if kind in ("Anthropic key", "OpenAI key", "JWT") and "w" in form:
            value = make(form, drawn)
            clean = known("x = " + split.format(value[:60], value[60:]) + "\nafter")
            assert value[:60] not in clean
            assert value[60:] not in clean, (value, clean)
            assert clean.endswith("\nafter")


def test_a_value_whose_place_tells_is_found():
    """The last one that is drawn."""
    for form in corpus("secret_places.txt"):
        drawn = random.Random(form)
        for _ in range(5):
            pieces = re.split(r"(\{[Ax]\d+\})", form)
            pieces[1::2] = values = [make(piece, drawn) for piece in pieces[1::2]]
            clean = known("".join(pieces))
            assert values[-1] not in clean, clean
            assert known(clean) == clean


def test_at_such_a_place_a_name_with_a_number_stays():
    """In drawn characters letters and digits follow each other more often."""
    text = "git clone https://{}@git.example/x.git"
    assert known(text.format("continuous-integration2")) == text.format("continuous-integration2")
    assert "[redacted: " in known(text.format("continuous2integration"))


@pytest.mark.parametrize("form", corpus("assignments.txt"))
def test_an_assigned_secret_is_found_whatever_stands_before_the_sign_of_assignment(form):
    words = [(word, "hunter2" * 2) for word in ("password", "DB_PASSWORD")]
    words += [(word, "Zx81kQp0vT3m" + "N7aLr92w") for word in ("API_TOKEN", "api_key", "openai_key", "Secret key")]
    for word, value in words:
        text = form.format(value, w=word)
        for given in (text, json.dumps(text, ensure_ascii=False)):
            clean = known(given)
            assert value not in clean, given
            assert "[redacted: " in clean
            assert known(clean) == clean


NAMES = ("maple", "Winter24!", "sommer", "hunter2", "blue river", "pa,ss;wd|x", "4711")


@pytest.mark.parametrize(
    ("sign", "head"), [(",", "password"), (";", "Passwort"), ("\t", "contraseña"), ("|", "Пароль")]
)
def test_a_column_of_passwords_goes_whole_from_a_long_table(sign, head):
    """Under words of several languages, whatever the passwords look like, and in JSON."""
    out = io.StringIO()
    writer = csv.writer(out, delimiter=sign, lineterminator="\n")
    writer.writerows([["host", head, "port"], *([["---"] * 3] if sign == "|" else [])])
    writer.writerows((f"db{at}", f"{NAMES[at % (5 if sign == '|' else 7)]}q{at}", 5432) for at in range(2_000))
    table = f"{out.getvalue()}\nthe maple is a tree"
    for given in (table, json.dumps({"out": table})):
        clean = known(given)
        assert clean.count("[redacted: password]") == 2_000
        assert re.search(r"q\d", clean) is None
        assert clean.count("maple") == 1


def test_the_lines_of_a_certificate_ids_and_hashes_stay():
    drawn, edge = random.Random(7), "CERTIFICATE-----"
    body = key_block(drawn, 8)[1:-1]
    hashes = [hashlib.sha256(line.encode()).hexdigest() for line in body]
    lines = []
    for _ in range(100):
        data = drawn.randbytes(64)
        lines += [
            f"id {uuid.UUID(bytes=data[:16])}",
            f"commit {hashlib.sha1(data).hexdigest()} sha256:{hashlib.sha256(data).hexdigest()}",
            f'"integrity": "sha512-{base64.b64encode(data).decode()}",',
            f'h1:{base64.b64encode(data[:32]).decode()} {hashlib.md5(data).hexdigest()} etag W/"{data[:8].hex()}"',
            f"trace-{data[:16].hex()}-{data[:8].hex()}-01 urn:uuid:{uuid.UUID(bytes=data[16:32])}",
            f"span_{data[:8].hex()} run-{uuid.UUID(bytes=data[:16])} call_{base64.b32encode(data[:15]).decode()}",
        ]

    for told in (lines, hashes, [f"-----BEGIN {edge}", *body, f"-----END {edge}"], [*body, f"-----END {edge}"]):
        text = "\n".join(told)
        for given in (text, json.dumps(text), html.escape(text)):
            assert known(given) == given


def test_source_code_stays():
    stdlib, size, touched = Path(sysconfig.get_path("stdlib")), 0, []
    own = [path for path in sorted(stdlib.rglob("*.py")) if not {"site-packages", "test"} & set(path.parts)]
    for path in own[:: full(8, 96)]:
        text = path.read_text("utf-8", "replace")
        size += len(text)
        lines = known(text).splitlines()
        # The standard library documents one password.
        touched += [line for line in lines if "[redacted: " in line and line not in text and "sekrit" not in text]

    assert size > full(800_000, 60_000)
    assert touched == []


def _code(found: re.Match[str]) -> str:
    return base64.b64encode(found[1].replace("|", "").encode()).decode()


def forms() -> list[tuple[str, str, list[str]]]:
    """(line, text, secrets of the text) for each form; a secret is drawn."""
    made = []
    for line in corpus("secrets_of_2026.txt"):
        drawn, secrets = random.Random(line), []
        pieces = re.split("⟦(.*?)⟧", line.partition(": ")[2].replace("⏎", "\n"))
        for at, piece in enumerate(pieces):
            pieces[at] = re.sub(
                "<b64:(.*?)>", _code, make(piece, drawn) if at % 2 or ("{" in piece and "|" not in piece) else piece
            )
            secrets += [pieces[at]] if at % 2 else []
        made.append((line, "".join(pieces).replace("PRIV|ATE", "PRIV" + "ATE"), secrets))
    return made


def test_at_least_19_of_20_forms_of_secrets_go():
    """Of providers, twelve languages and configuration."""
    made = forms()
    left = []
    for line, text, secrets in made:
        clean = known(text)
        left += [line for secret in secrets if secret in clean or (len(secret) > 30 and secret[8:28] in clean)]

    assert len(made) >= 200
    assert len(set(left)) <= len(made) / 20, left


@pytest.mark.parametrize(
    "name", ["harmless_by_language.txt", "ordinary_values.txt", "harmless_code.txt", "harmless_texts.txt"]
)
def test_at_most_one_harmless_line_in_20_is_hit(name):
    lines = list(map(_plain, corpus(name)))
    hit = [known(line) for line in lines if known(line) != line or known(json.dumps(line)) != json.dumps(line)]

    assert len(lines) >= 48
    assert len(hit) <= len(lines) / 20, hit
