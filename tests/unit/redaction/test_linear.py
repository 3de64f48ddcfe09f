"""Hostile texts of one sign, of two, or of a telling word and a sign: four times the length costs at most six times."""

from __future__ import annotations

import time

import pytest

from tests.support.effort import full
from tests.support.secrets import known

SIGNS = [
    ".", '"', "'", "`", "«", "“", "「",
    "(", "]", "{", "<", ">", "\\", " ", "\t", "\n", "\r\n", "\\n", "7", "-", "_", ":",
    ",", ";", "=", "/", "|", "&", "%25", "@", "$", "+", "a", "A", "ß", "密", "e\u0301", "\u200b", "\x1b[", "\\u0022",
]  # fmt: skip
WORDS = [
    "password", "password is", "Passwort der ", "mot de passe", "密码", "パスワードは", "비밀번호", "Пароль ", "token",
    "API key", "name: DB_PASSWORD value", "value", "://", "curl -u ", "eyJ", "sk-", "key-", "authorization: ",
    "cookie: ", "requirepass ", "totp ", "seed phrase ", "user,password\n",
    "--token ", "glpat-", "&amp;", "password:x&", "password (", "password (a", "| password ", "['password'] ",
    "LS0tLS1CRUdJTiBQUklWQVRFIEtFWS0tLS0t", "-----BEGIN PRIVATE KEY-----\nProc-Type: ", "A" * 39 + "1\n",
    "|password|\n|---|\n", 'variable "password" {',
    "-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----", "A" * 64 + "\n",
]  # fmt: skip
AWAKE = "ghp_ eyJ token= :// curl login bearer -----END PRIVATE KEY----- sk- password Passwort 密码 cookie totp\n"
"""Wakes every rule."""


def _cpu(unit: str, length: int) -> float:
    text = AWAKE + unit * (length // len(unit))
    began = time.thread_time()
    known(text)
    return time.thread_time() - began


@pytest.mark.parametrize("first", SIGNS + WORDS, ids=repr)
def test_the_cost_is_linear(first):
    """A ratio of small costs is noise: only what costs a sixth of a second is measured again."""
    long = full(100_000, 25_000)
    for second in SIGNS[::9]:
        for unit in (first + second, second + first):
            if (cost := _cpu(unit, long)) > long / 600_000:
                cost = min(cost, _cpu(unit, long))
                assert cost < 6 * max(_cpu(unit, long // 4), _cpu(unit, long // 4)) + 0.1, unit
            assert cost < long / 100_000, unit
