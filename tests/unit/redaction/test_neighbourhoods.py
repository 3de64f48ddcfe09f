"""Every known format in every neighbourhood in which a session meets one: all are found, and nothing else is."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import random
import sysconfig
import textwrap
import urllib.parse
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.effort import full
from tests.support.secrets import TEMPLATES, key_block, known, make

NEIGHBOURHOODS: dict[str, Callable[[str], str]] = {
    "alone": lambda s: s,
    "colour": lambda s: f"\x1b[32m{s}\x1b[0m",
    "colour in JSON": lambda s: json.dumps({"out": f"\x1b[32m{s}\x1b[0m"}),
    "colour without escape": lambda s: f"[36m{s}[0m",
    "hyperlink": lambda s: f"\x1b]8;;https://x.example/?k={s}\x1b\\link\x1b]8;;\x1b\\",
    "percent quotes": lambda s: f"q=%22{s}%22&x=1",
    "percent twice": lambda s: f"q=%2522{s}%2522",
    "percent escaped": lambda s: f"https://x.example/?v={urllib.parse.quote(s, safe='')}&x=1",
    "read_file": lambda s: f"     1\t# settings\n     2\t{s}\n     3\tend",
    "cat -n": lambda s: f"    12  {s}\n    13  end",
    "diff added": lambda s: f"--- a\n+++ b\n@@ -1 +1 @@\n+{s}\n end",
    "log": lambda s: f"2026-01-02T03:04:05.678Z INFO  [main] app - {s}",
    "JSON": lambda s: json.dumps({"value": s, "n": 1}),
    "JSON in JSON": lambda s: json.dumps({"body": json.dumps({"a": f"x\n{s}\ny"})}),
    "JSON escaped": lambda s: '{"a": "\\u0022' + s + '\\u0022\\u003d"}',
    "dotenv": lambda s: f"A=1\nX_VALUE={s}\nB=2",
    "shell": lambda s: f"export X='{s}'; echo \"{s}\" && run --key={s} --x",
    "XML attribute": lambda s: f'<add key="x" value="{s}"/>',
    "XML entities": lambda s: f"&quot;{s}&quot; &lt;{s}&gt; &#34;{s}&#x22;",
    "Markdown code": lambda s: f"Use `{s}` or **{s}** or _{s}_.",
    "sentence": lambda s: f"The value is {s}. Is it {s}? No, {s}! Or {s}; {s}: {s}, {s}",
    "dashes": lambda s: f"{s} - and {s}-- or –{s}– …{s}…",
    "brackets": lambda s: f"({s}) [{s}] {{{s}}} <{s}> «{s}» “{s}”",
    "zero width": lambda s: f"\u200b{s}\u200b",
    "byte order mark": lambda s: f"\ufeff{s}",
    "quoted-printable": lambda s: f"value=3D{s}\n",
}
"""What stands around a token; a block of several lines has its own below."""


def test_every_format_is_found_in_every_neighbourhood():
    """Tokens are drawn anew for each neighbourhood, by its name."""
    for name, put in NEIGHBOURHOODS.items():
        drawn = random.Random(name)
        for made in (make(form, drawn) for _, form in TEMPLATES):
            text = put(made)
            clean = known(text)
            assert not any(piece in clean for piece in (made[-12:], made[:16])), (name, made, clean)
            assert "[redacted: " in clean
            assert known(clean) == clean


def _numbered(form: str) -> Callable[[list[str]], str]:
    return lambda lines: "\n".join(form.format(n=at, line=line) for at, line in enumerate(lines, 7))


BLOCKS: dict[str, Callable[[list[str]], str]] = {
    "alone": "\n".join,
    "Windows line ends": "\r\n".join,
    "read_file": _numbered("{n:>6}\t{line}"),
    "grep -n": _numbered("keys/id_rsa:{n}:{line}"),
    "diff added": _numbered("+{line}"),
    "cat -A": _numbered("{line}$"),
    "git blame": _numbered("^1a2b3c4d (A. Author 2026-01-02 03:04:05 +0100 {n}) {line}"),
    "log": _numbered("2026-01-02T03:04:{n:02}.678Z INFO [main] {line}"),
    "YAML": lambda lines: "key: |\n" + "\n".join("    " + line for line in lines) + "\nother: 1",
    "Python": lambda lines: "KEY = (\n" + "\n".join(f'    "{line}\\n"' for line in lines) + "\n)",
    "JSON": lambda lines: json.dumps({"private_key": "\n".join(lines), "n": 1}),
    "JSON in JSON": lambda lines: json.dumps({"body": json.dumps({"k": "\n".join(lines)})}),
    "numbers in JSON": lambda lines: json.dumps({"out": _numbered("{n:>6}\t{line}")(lines)}),
    "XML entities": lambda lines: "<k>" + "&#10;".join(lines) + "</k>",
    "percent": lambda lines: "k=" + urllib.parse.quote("\n".join(lines), safe=""),
    "colour": _numbered("\x1b[32m{n}\x1b[0m:{line}"),
    "one line": lambda lines: " ".join(lines),
    "base64": lambda lines: "client-key-data: " + base64.b64encode("\n".join(lines).encode()).decode(),
    "base64 lines": lambda lines: base64.encodebytes("\n".join(lines).encode()).decode(),
    "base64 narrow lines": lambda lines: textwrap.fill(base64.b64encode("\n".join(lines).encode()).decode(), 60),
    "base64 of JSON": lambda lines: base64.b64encode(json.dumps({"key": "\n".join(lines)}).encode()).decode(),
}


@pytest.mark.parametrize(("kind", "length"), [("RSA ", 49), ("OPENSSH ", 6)])
def test_a_private_key_is_found_in_every_neighbourhood(kind, length):
    """Keys of RSA with 4,096 bits are longer than other keys."""
    for name, block in BLOCKS.items():
        lines = key_block(random.Random(f"{name}{kind}"), length, kind)
        clean = known(f"before\n{block(lines)}\nafter mia_li_3668")

        assert clean.count("[redacted: private key]") == 1, name
        assert [line for line in lines[1:-1] if line in clean] == []
        assert "-----BEGIN" not in clean
        assert clean.startswith("before\n")
        assert clean.endswith("\nafter mia_li_3668"), name
        assert known(clean) == clean
        encoded = name.startswith("base64") and base64.b64encode(lines[3].encode()).decode()[4:-4]
        assert not encoded or encoded not in clean


def test_a_private_key_that_is_cut_or_split_over_blocks_is_found():
    """Each part of a message is searched alone: a first part without an end, and a last one without a beginning."""
    for name in [name for name in BLOCKS if not name.startswith(("base64", "one line"))]:
        lines = key_block(random.Random(name), 8)
        whole = BLOCKS[name](lines)
        at = whole.index(lines[4][:30]) if lines[4][:30] in whole else whole.index(lines[4][:4])
        first, last = known(whole[:at]), known(whole[at:])

        assert "[redacted: private key]" in first, name
        assert "[redacted: private key]" in last, name
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


def test_the_lines_of_a_certificate_and_of_hashes_stay():
    drawn = random.Random(3)
    lines = key_block(drawn, 8)[1:-1]
    edge = "CERTIFICATE-----"
    hashes = [hashlib.sha256(line.encode()).hexdigest() for line in lines]
    for text in ("\n".join([f"-----BEGIN {edge}", *lines, f"-----END {edge}"]), "\n".join(hashes)):
        assert known(text) == text
    tail = "\n".join([*lines, f"-----END {edge}"])
    assert known(tail) == tail


HELD = (
    ("Cookie: theme=dark; sessionid={}; lang=en", 32), ("Set-Cookie: session={}; Path=/; HttpOnly", 64),
    ("curl -b 'sid={}' https://x.example", 32), ("connect.sid=s%3A{}.abc", 32), ("https://{}@git.example/x.git", 40),
    ("mysql -uroot -p{} shop", 12), ("sshpass -p '{}' ssh h", 12), ("redis-cli -h r -a {} ping", 20),
    ("docker login -u me -p {} reg.example", 16), ("echo {} | docker login -u me --password-stdin", 16),
    ("http -a me:{} x.example", 12), ("openssl enc -pass pass:{} -in x", 16), ("db.x:5432:app:app_user:{}", 16),
    ("jdbc:oracle:thin:scott/{}@//h:1521/x", 16), ('variable "db_password" {{ default = "{}" }}', 16),
    ('network={{ psk="{}" }}', 16), ("ansible_ssh_pass={}", 12), ("APP_KEY=base64:{}=", 43), ("FERNET_KEY={}=", 43),
    ("SECRET_KEY_BASE={}", 64), ("VAULT_TOKEN=s.{}", 24), ("MJ_APIKEY_PRIVATE={}", 32), ("FAL_KEY={}", 32),
    ("Authorization: GenieKey {}", 36), ("Authorization: SSWS 00{}", 40), ("X-Auth-Key: {}", 37),
    ("https://mainnet.infura.io/v3/{}", 32), ("https://x.example/?X-Amz-Signature={}", 64),
    ("https://x.example/a?appid={}", 32), ('Client("AC' + "0a" * 16 + '", "{}")', 0),
)  # fmt: skip
"""Where a value without a format of its own stands, and how long it is there; 0 for 32 of hexadecimal digits."""


def test_a_value_whose_place_tells_is_found():
    for form, length in HELD:
        drawn = random.Random(form)
        for _ in range(5):
            value = make(f"{{A{length}}}" if length else "{x32}", drawn)
            clean = known(form.format(value))
            assert value not in clean, clean
            assert known(clean) == clean


def test_ids_and_hashes_stay():
    drawn = random.Random(7)
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
    text = "\n".join(lines)

    assert known(text) == text
    assert known(json.dumps(text)) == json.dumps(text)
    assert known(html.escape(text)) == html.escape(text)


def _sources() -> list[Path]:
    stdlib = Path(sysconfig.get_path("stdlib"))
    own = [path for path in sorted(stdlib.rglob("*.py")) if not {"site-packages", "test"} & set(path.parts)]
    return own[:: full(8, 48)]


def test_source_code_stays():
    size, touched = 0, []
    for path in _sources():
        text = path.read_text("utf-8", "replace")
        size += len(text)
        lines = known(text).splitlines()
        # The standard library documents one password.
        touched += [line for line in lines if "[redacted: " in line and line not in text and "sekrit" not in text]

    assert size > full(800_000, 150_000)
    assert touched == []
