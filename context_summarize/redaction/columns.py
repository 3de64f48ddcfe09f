"""Secrets in the columns of a table, CSV or Markdown, under a heading that says so."""

from __future__ import annotations

import re
from collections.abc import Iterator

from context_summarize.redaction.formats import Span
from context_summarize.redaction.values import is_named, is_secret, is_weak
from context_summarize.redaction.words import shapes, telling

_AT = shapes("columns.at")
_CELL = {sign: re.compile(rf'[^\S\n\t]*+(?:"[^"\n]*+"[^{sign}\n]*+|[^{sign}\n]*+)[{sign}\n]?') for sign in "|,;\t"}
_EDGES = " \t\r\n\"'`*_}]|,;"


def _cells(text: str, first: int, end: int, sign: str) -> list[tuple[int, int]]:
    """Returns the places of a row's cells, without quotes, emphasis and the end of a JSON string around the table."""
    cells = []
    for found in _CELL[sign].finditer(text, first, end):
        if found.start() == end:
            break
        at = found.start() + len(found[0]) - len(found[0].lstrip(_EDGES))
        inner = _AT["inner"].match(text, at, found.end())
        cells.append((at, at + len(inner[0].rstrip(_EDGES) if inner else "")))
    return cells


def _secret_columns(text: str, first: int, end: int, sign: str) -> dict[int, bool]:
    """Returns the columns that hold secrets, each with True if it holds passwords; none if the row has no headings."""
    cells = [text[slice(*cell)].rpartition('"')[2] for cell in _cells(text, first, end, sign)]
    after = text[end + 1 : _line_end(text, end + 1)]
    if sign == "|":
        is_head = _AT["rule"].fullmatch(after) is not None
    else:
        is_head = len(_cells(after, 0, len(after), sign)) == len(cells)
        is_head = is_head and not any(map(_AT["no_heading"].fullmatch, cells))
        # In code a list of names goes on over lines.
        is_head = is_head and not _AT["indented"].match(text, first) and text[first:end].rstrip()[-1:] != sign
    secret = {}
    for at, cell in enumerate(cells if is_head else ()):
        word = next((word for word in telling(cell) if _AT["s"].fullmatch(cell, word.end())), None)
        if word and is_named(word, cell[: word.start()]):
            secret[at] = not (word.lastgroup or "").endswith("_other")
    return secret


def _line_end(text: str, at: int) -> int:
    return text.find("\n", at) % (len(text) + 1)


def columns(text: str) -> Iterator[Span]:
    """Finds secrets under telling headings. A row with another number of cells ends the table."""
    done = 0
    for word in telling(text):
        if word.start() < done or not (heading := _AT["heading"].match(text, word.end())):
            continue
        first, done = text.rfind("\n", 0, word.start()) + 1, _line_end(text, word.end())
        sign = heading["sign"] or next((sign for sign in _CELL if sign in text[first : word.start()]), "")
        secret = _secret_columns(text, first, done, sign) if sign else {}
        count = len(_cells(text, first, done, sign)) if secret else 0
        end = done
        while secret and end + 1 < len(text):
            done, end = end + 1, _line_end(text, end + 1)
            cells = _cells(text, done, end, sign)
            if max(secret) >= len(cells) or abs(len(cells) - count) > (sign == "|"):
                break
            for column, password in secret.items():
                value = text[slice(*cells[column])]
                strong = len(value) >= (6 if password else 16) and is_secret(value, password, False)
                if strong or (password and is_weak(value)):
                    yield Span(*cells[column], "password" if password else "secret")
