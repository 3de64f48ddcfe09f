"""`Config`: every setting, checked once, when it is made from the mapping that the host hands to `mount()`."""

from __future__ import annotations

import difflib
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from os import PathLike
from typing import Any

from context_summarize.errors import ConfigError

logger = logging.getLogger(__name__)

ALIASES = {"compaction_threshold": "compact_threshold"}
_NOTICE = "nothing: frames and marks stand where something is missing"
FOREIGN_KEYS = {
    "protected_recent": "keep_recent",
    "protected_tool_results": "keep_recent",
    "truncate_chars": "elide_tool_results",
    "truncate_boundary": "elide_tool_results",
    "token_meter": "nothing: the provider's own figures are used",
    "target_threshold": "target_usage",
    "storage_path": "persistence",
    "transcript_path": "persistence",
    "memory_files": "nothing",
    "output_reserve_fraction": "safety_margin",
    "summary_trigger": "prefetch_threshold",
    "summarize_trigger": "prefetch_threshold",
    "summarization_model": "summary_model",
    "summarization_prompt_path": "prompts",
    "summarization_timeout_s": "request_timeout",
    "summary_target_tokens": "summary_tokens",
    "max_summary_tiers": "summary_share",
    "verbatim_window_tokens": "keep_recent",
    "large_result_threshold": "elide_tool_results",
    "compaction_notice_enabled": _NOTICE,
    "compaction_notice_token_reserve": _NOTICE,
    "compaction_notice_verbosity": _NOTICE,
    "compaction_notice_min_level": _NOTICE,
}
"""Keys of the sibling context modules, with what takes their place here; bundles that swap modules bring them."""


def _setting(default: Any, text: str) -> Any:
    return field(default=default, metadata={"doc": text})


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """The settings of one session; `Config.from_mapping` reads and checks them."""

    summary_provider: str | None = _setting(
        None, "Name of a mounted provider that writes the summaries; none = the provider of the request."
    )
    summary_model: str | None = _setting(None, "Model for summaries; none = the provider's own default.")
    keep_recent: int = _setting(
        10, "Newest rows that stay verbatim (count, 0 or more; 0 = none beyond the newest message or tool group)."
    )
    compact_threshold: float = _setting(0.7, "Share of the budget whose use makes a boundary (above 0, at most 1).")
    target_usage: float = _setting(
        0.3, "Share of the budget in use after a boundary (above 0, below compact_threshold)."
    )
    prefetch_threshold: float | None = _setting(
        0.5, "Share of the budget whose use starts background work (below compact_threshold); none = off."
    )
    max_tokens: int | None = _setting(
        None, "Upper bound of the budget in tokens; none = what the provider's window gives."
    )
    safety_margin: int = _setting(1000, "Tokens left free beside the provider's max_output_tokens.")
    auto_compact: bool = _setting(
        True, "False: boundaries are made only by compact(), and where a request does not fit otherwise."
    )
    compaction_strategy: str = _setting(
        "summarize", "`summarize`, or `truncate`: digests made by code only, no provider call."
    )
    preserve_system: bool = _setting(True, "False: stored system rows leave the view when their range is folded.")
    segment_tokens: int | None = _setting(
        None, "Length of a segment in tokens (bytes / 4); none = the power of two nearest to budget / 8, 512 … 16,384."
    )
    summary_tokens: int | None = _setting(
        None, "Length asked of a summary in tokens; none = a tenth of a segment, 100 … 1,600."
    )
    summary_share: float = _setting(
        0.25, "Share of the budget that all summaries together may hold before old ones merge."
    )
    fan_in: int = _setting(6, "Neighbouring summaries that one merge joins (2 or more).")
    min_fold: float = _setting(0.1, "Share of the budget that a boundary must free to be worth making.")
    summary_role: str = _setting(
        "system", "Role of a summary's row: `system`, or `user` for hosts that cache the system block whole."
    )
    prompts: str = _setting("default", "Name of a set in prompts/, or path to a folder of templates.")
    elide_tool_results: int | str | None = _setting(
        "auto",
        "Tool results above this many tokens are cut at a boundary; none = never; default: min(4000, budget / 10).",
    )
    redact: bool | tuple[str, ...] = _setting(
        True,
        "True: secrets of known formats are taken out of what is summarised; false: not; a list: further patterns.",
    )
    max_concurrency: int = _setting(4, "Provider calls for summaries under way at once.")
    wait_seconds: float = _setting(60.0, "Seconds that a request waits for late summaries.")
    request_timeout: float = _setting(120.0, "Seconds that one provider call for a summary may take.")
    retry_attempts: int = _setting(3, "Attempts for one summary when the provider's error is retryable.")
    cache: str | None = _setting(
        None, "`memory`, a file, or a store's address; none = a file in the user's Amplifier folder."
    )
    persistence: Mapping[str, Any] | None = _setting(None, "`{path: …}` keeps the history in a file; none = memory.")
    recall_tool: bool = _setting(False, "True mounts a tool that reads folded rows back.")
    debug: bool = _setting(False, "True emits `context:message_added:debug` for every row.")

    def __post_init__(self) -> None:
        _check_counts(self)
        _check_shares(self)
        _check_words(self)

    @classmethod
    def from_mapping(cls, config: Mapping[str, Any] | None) -> Config:
        """Read the mapping that a host hands over; `None` and `{}` give the defaults.

        Raises:
            ConfigError: an unknown key (with the nearest known one) or a wrong value.
        """
        if config is None:
            return cls()
        if not isinstance(config, Mapping):
            raise ConfigError(f"config must be a mapping of settings, got {type(config).__name__}")
        known = {item.name for item in fields(cls)}
        given: dict[str, Any] = {}
        foreign: list[str] = []
        for key, value in config.items():
            name = ALIASES.get(key, key)
            if name in known:
                if name in given:
                    both = " and ".join(sorted(k for k in config if ALIASES.get(k, k) == name))
                    raise ConfigError(f"{both} are the same setting; keep one of them")
                given[name] = _as_meant(name, value)
            elif key in FOREIGN_KEYS:
                foreign.append(f"{key} (here: {FOREIGN_KEYS[key]})")
            else:
                raise ConfigError(f"unknown setting {key!r}{_nearest(str(key), known)}")
        if foreign:
            logger.warning("settings of another context module are ignored: %s", ", ".join(foreign))
        return cls(**given)


_MAY_BE_NONE = ("prefetch_threshold", "max_tokens", "segment_tokens", "summary_tokens", "elide_tool_results")
"""Settings without text values that may be off."""


def _as_meant(name: str, value: Any) -> Any:
    """YAML writes none as `null`; who writes `none` there gets a text, and means the same."""
    if name in _MAY_BE_NONE and isinstance(value, str) and value.casefold() == "none":
        return None
    return tuple(value) if name == "redact" and isinstance(value, list) else value


def _nearest(key: str, known: set[str]) -> str:
    close = difflib.get_close_matches(key, sorted(known | set(ALIASES)), n=1, cutoff=0.4)
    return f"; did you mean {close[0]!r}?" if close else f"; known settings: {', '.join(sorted(known))}"


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_COUNTS: dict[str, tuple[int, bool, str]] = {
    # setting: (least value, may be none, remedy)
    "keep_recent": (0, False, "use 0 to keep only the newest message or tool group"),
    "max_tokens": (1, True, "leave it out to use the provider's window"),
    "safety_margin": (0, False, "use 0 for no margin"),
    "segment_tokens": (64, True, "leave it out to derive it from the budget"),
    "summary_tokens": (16, True, "leave it out to derive it from the segment"),
    "fan_in": (2, False, "the default is 6"),
    "max_concurrency": (1, False, "use 1 for one call at a time"),
    "retry_attempts": (1, False, "use 1 for no retry"),
}


def _check_counts(config: Config) -> None:
    for name, (least, optional, remedy) in _COUNTS.items():
        value = getattr(config, name)
        if value is None and optional:
            continue
        if not _is_int(value) or value < least:
            raise ConfigError(f"{name} must be a whole number of {least} or more, got {value!r}; {remedy}")
    shorten_above = config.elide_tool_results
    if shorten_above not in (None, "auto") and not (_is_int(shorten_above) and int(shorten_above) >= 1):
        raise ConfigError(
            f"elide_tool_results must be tokens (1 or more), none or 'auto', got {shorten_above!r}; none is never"
        )
    for name in ("wait_seconds", "request_timeout"):
        value = getattr(config, name)
        if not _is_number(value) or not 0 <= value < float("inf") or (name == "request_timeout" and value == 0):
            raise ConfigError(f"{name} must be seconds (a finite number of 0 or more), got {value!r}")


def _check_shares(config: Config) -> None:
    for name in ("compact_threshold", "target_usage", "summary_share", "min_fold"):
        value = getattr(config, name)
        least_ok = value >= 0 if name == "min_fold" and _is_number(value) else _is_number(value) and value > 0
        if not least_ok or value > 1:
            raise ConfigError(f"{name} must be a share of the budget above 0 and at most 1, got {value!r}; 0.7 is 70 %")
    if config.target_usage >= config.compact_threshold:
        raise ConfigError(
            f"target_usage must be below compact_threshold, got {config.target_usage!r} and "
            f"{config.compact_threshold!r}; a boundary must free something"
        )
    prefetch = config.prefetch_threshold
    if prefetch is not None and (not _is_number(prefetch) or not 0 < prefetch <= 1):
        raise ConfigError(f"prefetch_threshold must be above 0 and at most 1, or none, got {prefetch!r}; none = off")


def _check_words(config: Config) -> None:
    for name, allowed in (("compaction_strategy", ("summarize", "truncate")), ("summary_role", ("system", "user"))):
        value = getattr(config, name)
        if value not in allowed:
            raise ConfigError(f"{name} must be {' or '.join(map(repr, allowed))}, got {value!r}")
    for name in ("auto_compact", "preserve_system", "recall_tool", "debug"):
        value = getattr(config, name)
        if not isinstance(value, bool):
            raise ConfigError(f"{name} must be true or false, got {value!r}")
    for name in ("summary_provider", "summary_model", "cache"):
        value = getattr(config, name)
        if value is not None and (not isinstance(value, str) or not value.strip()):
            raise ConfigError(f"{name} must be a name, got {value!r}; leave it out for the default")
    if not isinstance(config.prompts, str) or not config.prompts.strip():
        raise ConfigError(f"prompts must be the name of a set or a folder, got {config.prompts!r}; try 'default'")
    if not isinstance(config.redact, bool) and not (
        isinstance(config.redact, tuple) and all(isinstance(item, str) for item in config.redact)
    ):
        raise ConfigError(f"redact must be true, false or a list of patterns, got {config.redact!r}")
    persistence = config.persistence
    if persistence is not None and not (isinstance(persistence, Mapping) and set(persistence) == {"path"}):
        raise ConfigError(f"persistence must be {{path: …}}, got {persistence!r}; leave it out to keep it in memory")
    path = persistence and persistence["path"]
    if persistence is not None and not (isinstance(path, str | PathLike) and str(path).strip()):
        raise ConfigError(
            f"persistence.path must name a file, got {path!r}; leave persistence out to keep it in memory"
        )
