"""Reads what `compare --config` names: a settings file, or settings as KEY=VALUE."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from context_summarize.cli.pairs import read_pairs
from context_summarize.cli.terminal import Refused
from context_summarize.config import PROFILES

DEFAULTS = "defaults"
"""Names the set without any setting."""
_MOST_BYTES = 1_000_000


def read_set(given: str) -> Mapping[str, Any]:
    """The settings that one `--config` names. They are not checked.

    Args:
        given: `defaults`; a JSON or YAML file with settings, or with a session that has them under
            `session.context.config`; or pairs such as `keep_recent=20 compact_threshold=0.6`, separated by spaces or
            commas.

    Raises:
        Refused: it is none of these, or the file cannot be read.
    """
    for read in _READERS:
        settings = read(given)
        if settings is not None:
            return settings
    if given in PROFILES:
        raise Refused(f"--config {given!r} is no file and has no KEY=VALUE; write profile={given}")
    raise Refused(
        f"--config {given!r} is no file and has no KEY=VALUE; name a settings file, settings such as "
        f'"keep_recent=20 compact_threshold=0.6", or {DEFAULTS}'
    )


def _defaults(given: str) -> Mapping[str, Any] | None:
    return {} if given.strip() in ("", DEFAULTS) else None


def _pairs(given: str) -> Mapping[str, Any] | None:
    return read_pairs(given) if "=" in given else None


def _file(given: str) -> Mapping[str, Any] | None:
    path = Path(given)
    try:
        if not path.is_file():
            return None
    except (OSError, ValueError):
        return None  # a name that no disk can hold
    try:
        with path.open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Refused(f"{given} is not UTF-8 (byte {error.start + 1}); save the file as UTF-8") from None
    except OSError as error:
        raise Refused(f"{given} cannot be read: {error.strerror or error}") from None
    if len(data) > _MOST_BYTES:
        raise Refused(f"{given} is larger than {_MOST_BYTES:,} bytes; name a file of settings")
    return _settings_of(_parsed(text, given), given)


def _parsed(text: str, name: str) -> Any:
    """The value of a JSON or YAML file; of a bundle in Markdown, its front matter."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    import yaml  # type: ignore[import-untyped]  # comes with amplifier-core; JSON needs none

    try:
        return next(iter(yaml.safe_load_all(text)), None)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise Refused(f"{name} is neither JSON nor YAML: {error}") from None


def _settings_of(value: Any, name: str) -> Mapping[str, Any]:
    """The settings of a file: the file itself, or what it gives the context module."""
    if value is None:
        return {}
    for key in ("session", "context", "config"):
        if isinstance(value, Mapping) and isinstance(value.get(key), Mapping):
            value = value[key]
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise Refused(f"{name} holds no settings; expected KEY: VALUE lines, or a session with context.config")
    return value


_READERS: tuple[Callable[[str], Mapping[str, Any] | None], ...] = (_defaults, _file, _pairs)
"""Tried in this order; each returns None for what it does not read. Another kind of set is one more reader."""
